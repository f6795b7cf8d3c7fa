//! A history as lines of JSON, for `clawmesh-judge`, which shares no code with [`checks`](super::checks). The lines are in `docs/testing.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use serde_json::{Value, json};

use super::history::{History, Row, Seen, author, seat};

impl History {
    /// Writes it. Nothing of nodes that came back with an old disk is in it, nor of their agents.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let spoilt = self.spoilt();
        let is_honest = |row: &Row| !spoilt.contains(&seat(author(&row.content)));
        let mut own = Own::default();
        for seen in &self.seen {
            own.note(seen);
            for line in lines(seen, &spoilt, is_honest) {
                writeln!(out, "{line}")?;
            }
        }
        own.write(out)
    }
}

/// The lines of one sight.
fn lines(seen: &Seen, spoilt: &BTreeSet<usize>, is_honest: impl Fn(&Row) -> bool) -> Vec<Value> {
    let counts = |at: &usize| !spoilt.contains(at);
    if let Seen::Asked { content } = seen {
        vec![json!({ "saw": "asked", "request": content, "text": content })]
    } else if let Seen::Told { at, row } = seen
        && counts(at)
    {
        let mut line = of("told", *at, row);
        line["request"] = json!(row.content);
        vec![line]
    } else if let Seen::Heard { at, connection, row, .. } = seen
        && counts(at)
        && is_honest(row)
    {
        let mut line = of("heard", *at, row);
        line["connection"] = json!(connection);
        vec![line]
    } else if let Seen::Read { at, rows } = seen
        && counts(at)
    {
        let has = rows.iter().filter(|row| is_honest(row)).map(|row| of("has", *at, row));
        std::iter::once(json!({ "saw": "reads", "node": at })).chain(has).collect()
    } else if let Seen::Resolved { at, number, message } = seen
        && spoilt.is_empty()
    {
        vec![json!({ "saw": "resolved", "node": at, "number": number, "message": message })]
    } else if let Seen::Calm = seen {
        vec![json!({ "saw": "calm" })]
    } else {
        Vec::new()
    }
}

fn of(saw: &str, node: usize, row: &Row) -> Value {
    let Row { number, message, content } = row;
    json!({ "saw": saw, "node": node, "number": number, "message": message, "text": content })
}

/// Messages that a connection does not hear, since its agent said them.
#[derive(Default)]
struct Own<'a> {
    connections: BTreeMap<u64, &'a str>,
    messages: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Own<'a> {
    fn note(&mut self, seen: &'a Seen) {
        if let Seen::Heard { connection, by, .. } = seen {
            self.connections.insert(*connection, by);
        }
        let rows = if let Seen::Told { row, .. } | Seen::Heard { row, .. } = seen {
            std::slice::from_ref(row)
        } else if let Seen::Read { rows, .. } = seen {
            rows.as_slice()
        } else {
            &[]
        };
        for row in rows {
            self.messages.entry(author(&row.content)).or_default().insert(&row.message);
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (connection, by) in &self.connections {
            for message in self.messages.get(by).into_iter().flatten() {
                let line = json!({ "saw": "own", "connection": connection, "message": message });
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

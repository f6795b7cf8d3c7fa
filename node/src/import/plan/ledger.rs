//! The list of rows that come and that do not: counted, and named where somebody has to do
//! something.

use std::{collections::BTreeMap, fmt};

use super::texts::shown;

/// Names that are told of one reason; more are counted.
const NAMED: usize = 20;
/// A kind of row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Room,
    Message,
    Vote,
    Task,
    Key,
    AgentId,
    Webhook,
}

impl Thing {
    pub(crate) const ALL: [Thing; 7] = [
        Thing::Room,
        Thing::Message,
        Thing::Vote,
        Thing::Task,
        Thing::Key,
        Thing::AgentId,
        Thing::Webhook,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Thing::Room => "rooms",
            Thing::Message => "messages",
            Thing::Vote => "votes",
            Thing::Task => "tasks",
            Thing::Key => "keys",
            Thing::AgentId => "stable agent ids",
            Thing::Webhook => "webhooks",
        }
    }
}

/// How many of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts([u64; 7]);

impl Counts {
    pub(crate) fn of(self, thing: Thing) -> u64 {
        self.0[thing as usize]
    }

    pub(crate) fn add(&mut self, thing: Thing, count: u64) {
        self.0[thing as usize] += count;
    }

    pub(crate) fn all(self) -> u64 {
        self.0.iter().sum()
    }
}

/// How many, and some of their names.
#[derive(Debug, Default)]
pub(super) struct Named {
    count: u64,
    named: Vec<String>,
}

impl Named {
    pub(super) fn add(&mut self, name: &str) {
        self.count(Some(name));
    }

    /// One that gets another id, or name.
    pub(super) fn change(&mut self, from: &str, to: &str) {
        self.put(|| format!("{from} -> {to}"));
    }

    fn count(&mut self, name: Option<&str>) {
        match name {
            Some(name) => self.put(|| shown(name)),
            None => self.count += 1,
        }
    }

    fn put(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(name());
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named.join(", "))?;
        match self.count.saturating_sub(self.named.len() as u64) {
            more if more > 0 && !self.named.is_empty() => write!(f, ", and {more} more"),
            _ => Ok(()),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) brought: Counts,
    /// Rows that wait for a decision.
    pub(crate) refused: Counts,
    /// Rows that are left out, by why.
    left: BTreeMap<(Thing, String), Named>,
    /// Notes on rows that come changed.
    notes: Vec<String>,
}

impl Ledger {
    /// One more does not come. `name`: where that helps to find it.
    pub(super) fn leave(&mut self, thing: Thing, why: impl Into<String>, name: Option<&str>) {
        self.left.entry((thing, why.into())).or_default().count(name);
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The same with names, if there are any.
    pub(super) fn note_named(&mut self, what: &str, names: &Named) {
        if names.count > 0 {
            self.notes.push(format!("{} {what}: {names}", names.count));
        }
    }

    pub(crate) fn left(&self) -> Counts {
        let mut counts = Counts::default();
        for ((thing, _), left) in &self.left {
            counts.add(*thing, left.count);
        }
        counts
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<18}{:>12}{:>12}{:>14}", "", "in the file", "brought", "not brought")?;
        let (left, some) = (self.left(), self.refused.all() > 0);
        writeln!(f, "{}", if some { "     refused" } else { "" })?;
        for thing in Thing::ALL {
            let [brought, left, refused] =
                [self.brought, left, self.refused].map(|counts| counts.of(thing));
            let all = brought + left + refused;
            write!(f, "{:<18}{all:>12}{brought:>12}{left:>14}", thing.name())?;
            let refused = if some { format!("{refused:>12}") } else { String::new() };
            writeln!(f, "{refused}")?;
        }
        for ((thing, why), left) in &self.left {
            write!(f, "not brought: {} {}: {why}", left.count, thing.name())?;
            match left.to_string() {
                names if names.is_empty() => writeln!(f)?,
                names => writeln!(f, ": {names}")?,
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

//! The promises, as checkers of histories. They know nothing of worlds.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    file::Promise,
    history::{History, Row, Seen, author},
};

/// A promise that a history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub promise: Promise,
    /// How.
    pub what: String,
}

type Verdict = Result<(), String>;

/// Each of `promises` that does not hold, with the first thing that breaks it. A promise that nothing in
/// the history has to do with does not hold either: who names it wants to see it.
#[must_use]
pub fn judge(history: &History, promises: &BTreeSet<Promise>) -> Vec<Broken> {
    let facts = Facts::of(history);
    let judged = promises.iter().map(|promise| (*promise, facts.check(*promise)));
    judged
        .filter_map(|(promise, verdict)| verdict.err().map(|what| Broken { promise, what }))
        .collect()
}

/// A history, sorted.
struct Facts<'a> {
    history: &'a History,
    /// By node: the last one.
    reads: BTreeMap<usize, &'a [Row]>,
    told: Vec<(usize, &'a Row)>,
    /// Told after the last fault.
    calm: Vec<&'a Row>,
    /// By connection: at which node, whose, what.
    heard: BTreeMap<u64, (usize, &'a str, Vec<&'a Row>)>,
}

impl Facts<'_> {
    fn of(history: &History) -> Facts<'_> {
        let mut facts = Facts {
            history,
            reads: BTreeMap::new(),
            told: Vec::new(),
            calm: Vec::new(),
            heard: BTreeMap::new(),
        };
        let mut calm = false;
        for seen in &history.seen {
            match seen {
                Seen::Told { at, row } => {
                    facts.told.push((*at, row));
                    if calm {
                        facts.calm.push(row);
                    }
                }
                Seen::Heard { at, connection, by, row } => {
                    let heard = facts.heard.entry(*connection);
                    heard.or_insert((*at, by, Vec::new())).2.push(row);
                }
                Seen::Calm => {
                    calm = true;
                    facts.calm.clear();
                }
                Seen::Read { at, rows } => {
                    facts.reads.insert(*at, rows);
                }
                Seen::Refused { .. } | Seen::Resolved { .. } => {}
            }
        }
        facts
    }

    fn check(&self, promise: Promise) -> Verdict {
        match promise {
            Promise::Rising => self.rising(),
            Promise::Once => self.once(),
            Promise::Names => self.names(),
            Promise::Acknowledged => self.acknowledged(),
            Promise::Complete => self.complete(),
            Promise::Pushed => self.pushed(),
            Promise::Agreement => self.agreement(),
            Promise::Resolves => self.resolves(),
            Promise::Calm => self.is_calm(),
        }
    }

    /// What each connection and each history has, with a name for it.
    fn sequences(&self) -> impl Iterator<Item = (String, Vec<&Row>)> {
        let heard = self.heard.iter().map(|(connection, (at, by, rows))| {
            (format!("connection {connection} of {by} at node {at}"), rows.clone())
        });
        let read = self.reads.iter();
        heard.chain(read.map(|(at, rows)| (format!("node {at}"), rows.iter().collect())))
    }

    fn rising(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (who, rows) in self.sequences() {
            for pair in rows.windows(2) {
                if pair[0].number >= pair[1].number {
                    return Err(format!("{who}: {:?} comes before {:?}", pair[0], pair[1]));
                }
            }
        }
        Ok(())
    }

    fn once(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (who, rows) in self.sequences() {
            let mut seen: BTreeMap<&str, &Row> = BTreeMap::new();
            for row in rows {
                if let Some(before) = seen.insert(&row.message, row) {
                    return Err(format!("{who} has {before:?} and again {row:?}"));
                }
            }
        }
        Ok(())
    }

    /// Every row that anybody has.
    fn rows(&self) -> impl Iterator<Item = &Row> {
        let heard = self.heard.values().flat_map(|(_, _, rows)| rows.iter().copied());
        let told = self.told.iter().map(|(_, row)| *row);
        told.chain(heard).chain(self.reads.values().flat_map(|rows| rows.iter()))
    }

    fn names(&self) -> Verdict {
        something(self.told.len(), "was answered")?;
        let mut names: BTreeMap<u64, &Row> = BTreeMap::new();
        let mut contents: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in self.rows() {
            let named = names.entry(row.number).or_insert(row);
            if named.message != row.message {
                return Err(format!("{} means {named:?} and {row:?}", row.number));
            }
            let said = contents.entry(&row.message).or_insert(row);
            if said.content != row.content {
                return Err(format!("a message says two things: {said:?} and {row:?}"));
            }
        }
        Ok(())
    }

    fn acknowledged(&self) -> Verdict {
        something(self.told.len(), "was answered")?;
        something(self.reads.len(), "was read")?;
        for (at, rows) in &self.reads {
            let has: BTreeMap<&str, &str> =
                rows.iter().map(|row| (row.message.as_str(), row.content.as_str())).collect();
            let lost: Vec<&(usize, &Row)> = self
                .told
                .iter()
                .filter(|(_, row)| has.get(row.message.as_str()) != Some(&row.content.as_str()))
                .collect();
            if let Some((by, first)) = lost.first() {
                return Err(format!(
                    "node {at} lacks {} of {} messages that were answered `ok`, the first {first:?} \
                     by node {by}",
                    lost.len(),
                    self.told.len()
                ));
            }
        }
        Ok(())
    }

    fn complete(&self) -> Verdict {
        something(self.reads.len(), "was read")?;
        let mut all: BTreeMap<&str, (usize, &Row)> = BTreeMap::new();
        for (at, rows) in &self.reads {
            all.extend(rows.iter().map(|row| (row.message.as_str(), (*at, row))));
        }
        something(all.len(), "was read")?;
        for (at, rows) in &self.reads {
            let has: BTreeSet<&str> = rows.iter().map(|row| row.message.as_str()).collect();
            let lacks: Vec<_> = all.iter().filter(|(message, _)| !has.contains(*message)).collect();
            if let Some((_, (other, first))) = lacks.first() {
                return Err(format!(
                    "node {at} lacks {} of {} messages, the first {first:?} of node {other}",
                    lacks.len(),
                    all.len()
                ));
            }
        }
        Ok(())
    }

    fn pushed(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (connection, (at, by, heard)) in &self.heard {
            let Some(rows) = self.reads.get(at) else { continue };
            let numbers: BTreeSet<u64> = heard.iter().map(|row| row.number).collect();
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { continue };
            let due = rows.iter().filter(|row| (*first..=*last).contains(&row.number));
            let due = due.filter(|row| author(&row.content) != *by);
            let missed: Vec<&Row> = due.filter(|row| !numbers.contains(&row.number)).collect();
            if let Some(row) = missed.first() {
                return Err(format!(
                    "connection {connection} of {by} at node {at} was told {first} to {last} and not \
                     {} of them, the first {row:?}",
                    missed.len()
                ));
            }
        }
        Ok(())
    }

    fn agreement(&self) -> Verdict {
        something(self.calm.len(), "was answered after the last fault")?;
        for (at, rows) in &self.reads {
            let numbers: BTreeMap<&str, u64> =
                rows.iter().map(|row| (row.message.as_str(), row.number)).collect();
            for row in &self.calm {
                let number = numbers.get(row.message.as_str());
                if number != Some(&row.number) {
                    return Err(format!("{row:?} has the number {number:?} at node {at}"));
                }
            }
        }
        Ok(())
    }

    fn resolves(&self) -> Verdict {
        let names: BTreeMap<u64, &str> =
            self.rows().map(|row| (row.number, row.message.as_str())).collect();
        let mut asked = 0;
        for seen in &self.history.seen {
            let Seen::Resolved { at, number, message } = seen else { continue };
            asked += 1;
            let expected = names.get(number).copied();
            if message.as_deref() != expected {
                return Err(format!("{number} of {expected:?} leads to {message:?} at node {at}"));
            }
        }
        something(asked, "was looked up by its number")
    }

    fn is_calm(&self) -> Verdict {
        something(self.reads.len(), "was read")?;
        for (at, rows) in &self.reads {
            for (expected, row) in (1..).zip(*rows) {
                if row.number != expected {
                    return Err(format!("at node {at} {row:?} stands where {expected} should"));
                }
            }
        }
        Ok(())
    }
}

fn something(count: usize, what: &str) -> Verdict {
    if count > 0 { Ok(()) } else { Err(format!("nothing {what}")) }
}

//! The list of what comes and what does not: counted, and named where somebody has to do something.

use std::{collections::BTreeMap, fmt};

/// Names that are told of one reason; more are counted.
const NAMED: usize = 20;

/// What is counted.
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

    fn name(self) -> &'static str {
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

#[derive(Debug, Default)]
struct Left {
    count: u64,
    named: Vec<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) brought: Counts,
    /// What is left out, by why.
    left: BTreeMap<(Thing, String), Left>,
    /// What comes in another way than it was.
    notes: Vec<String>,
}

impl Ledger {
    /// One more does not come. `name`: where that helps to find it.
    pub(super) fn leave(&mut self, thing: Thing, why: impl Into<String>, name: Option<&str>) {
        let left = self.left.entry((thing, why.into())).or_default();
        left.count += 1;
        left.named.extend(name.filter(|_| left.named.len() < NAMED).map(|it| format!("{it:?}")));
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The same with names, if there are any.
    pub(super) fn note_named(&mut self, what: &str, names: &[String]) {
        if !names.is_empty() {
            let shown = names.iter().take(NAMED).map(|it| format!("{it:?}"));
            let shown = listed(&shown.collect::<Vec<_>>(), names.len() as u64);
            self.notes.push(format!("{} {what}: {shown}", names.len()));
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
        writeln!(f, "{:<18}{:>12}{:>12}{:>14}", "", "in the file", "brought", "not brought")?;
        let left = self.left();
        for thing in Thing::ALL {
            let (name, brought, left) = (thing.name(), self.brought.of(thing), left.of(thing));
            writeln!(f, "{name:<18}{:>12}{brought:>12}{left:>14}", brought + left)?;
        }
        for ((thing, why), left) in &self.left {
            write!(f, "not brought: {} {}: {why}", left.count, thing.name())?;
            match listed(&left.named, left.count) {
                names if names.is_empty() => writeln!(f)?,
                names => writeln!(f, ": {names}")?,
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

fn listed(names: &[String], of: u64) -> String {
    let shown = names.join(", ");
    match of.saturating_sub(names.len() as u64) {
        more if more > 0 && !names.is_empty() => format!("{shown}, and {more} more"),
        _ => shown,
    }
}

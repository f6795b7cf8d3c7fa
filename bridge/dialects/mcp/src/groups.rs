//! Groups of tools: a host is offered those that it, or the operator, asks for.

/// Tools that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Sessions,
    Inbox,
    Rooms,
    Votes,
    Tasks,
    /// Tools that another dialect has lent.
    Finder,
}

/// Some groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups(u8);

const NAMED: [(&str, Group); 6] = [
    ("sessions", Group::Sessions),
    ("inbox", Group::Inbox),
    ("rooms", Group::Rooms),
    ("votes", Group::Votes),
    ("tasks", Group::Tasks),
    ("finder", Group::Finder),
];

impl Groups {
    /// Those of a host that asks for none: few, for a model reads them all.
    pub const ASSUMED: Groups = Groups(0b00_0011);
    /// Those of the word `all`: all but `finder`, which is asked for by its name.
    pub const ALL: Groups = Groups(0b01_1111);
    /// Each that there is.
    pub(crate) const EVERY: Groups = Groups(0b11_1111);
    /// None of them.
    pub(crate) const NONE: Groups = Groups(0);
    /// The names that [`Groups::parse`] takes.
    pub const NAMES: [&'static str; 7] =
        ["sessions", "inbox", "rooms", "votes", "tasks", "finder", "all"];

    /// From names with commas between them.
    ///
    /// # Errors
    /// A name that no group has.
    pub fn parse(names: &str) -> Result<Groups, String> {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.into_iter().try_fold(Groups(0), |Groups(groups), name| {
            if name == "all" {
                return Ok(Groups::ALL);
            }
            let named = NAMED.iter().find(|(known, _)| *known == name);
            let (_, group) = named.ok_or_else(|| name.to_owned())?;
            Ok(Groups(groups | bit(*group)))
        })
    }

    /// Those that are in both.
    pub(crate) fn within(self, others: Groups) -> Groups {
        Groups(self.0 & others.0)
    }

    pub(crate) fn has(self, group: Group) -> bool {
        self.0 & bit(group) != 0
    }
}

fn bit(group: Group) -> u8 {
    1 << match group {
        Group::Sessions => 0,
        Group::Inbox => 1,
        Group::Rooms => 2,
        Group::Votes => 3,
        Group::Tasks => 4,
        Group::Finder => 5,
    }
}

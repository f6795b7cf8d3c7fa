//! The digest of a room's logs. A room has up to 4,096 logs and is written thousands of times a second, so logs are hashed
//! in groups, and only groups that have changed, when the digest is read.

use crate::name::{
    digest::Digest,
    id::{LogId, NodeId},
};

/// A part of a room's logs: by the first bits of the author's id. There are 64, each a bit of [`Frontier::changed`].
type Group = u8;

/// How far one log counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) log: LogId,
    /// The log seq of its last entry that counts, from 1.
    pub(super) seq: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    /// Of groups that are not empty, ascending.
    groups: Vec<(Group, Digest)>,
    /// Groups that have changed since, one bit each.
    changed: u64,
    /// Over all groups, if none has changed.
    whole: Digest,
}

impl Frontier {
    /// Logs of this author are further, or count otherwise.
    pub(super) fn change(&mut self, author: NodeId) {
        self.changed |= 1 << group(author);
    }

    /// `counted`: how far logs count, from one id on, in the order of their ids. Logs of which nothing counts are left
    /// out, so that knowing of them makes no difference.
    pub(super) fn digest<C: Iterator<Item = Counted>>(
        &mut self,
        counted: impl Fn(LogId) -> C,
    ) -> Digest {
        if self.changed == 0 {
            return self.whole;
        }
        while self.changed != 0 {
            let group = Group::try_from(self.changed.trailing_zeros()).unwrap_or_default();
            self.changed &= self.changed - 1;
            let digest = of_group(group, counted(first(group)));
            match (self.groups.binary_search_by_key(&group, |(group, _)| *group), digest) {
                (Ok(at), Some(digest)) => self.groups[at].1 = digest,
                (Ok(at), None) => drop(self.groups.remove(at)),
                (Err(at), Some(digest)) => {
                    // Most rooms have a log or two.
                    self.groups.reserve_exact(1);
                    self.groups.insert(at, (group, digest));
                }
                (Err(_), None) => {}
            }
        }
        let text: Vec<u8> = self
            .groups
            .iter()
            .flat_map(|(group, digest)| std::iter::once(*group).chain(digest.0))
            .collect();
        self.whole =
            if text.is_empty() { Digest::default() } else { Digest::of(b"clawmesh logs", &text) };
        self.whole
    }
}

fn group(author: NodeId) -> Group {
    author.0[0] >> 2
}

/// The lowest id that a log of the group can have.
fn first(group: Group) -> LogId {
    let mut author = NodeId([0; 32]);
    author.0[0] = group << 2;
    LogId { author, incarnation: 0 }
}

/// `None`: nothing counts.
fn of_group(of: Group, counted: impl Iterator<Item = Counted>) -> Option<Digest> {
    let mut text = Vec::new();
    for Counted { log, seq } in counted.take_while(|counted| group(counted.log.author) == of) {
        // All of one length, so that no two lists give one text.
        text.extend(log.author.0);
        text.extend(log.incarnation.to_be_bytes());
        text.extend(seq.to_be_bytes());
    }
    (!text.is_empty()).then(|| Digest::of(b"clawmesh log group", &text))
}

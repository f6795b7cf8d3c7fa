//! Entries that this node writes: until the turn ends they are drafts, then each part of them becomes a run
//! under one seal.

use crate::{
    limits::{BODY_INLINE_BYTES_MAX, RUN_BYTES_MAX, RUN_ENTRIES_MAX},
    name::id::{LocalRef, sha256},
    wire::{
        entry::Facts,
        kinds::{Begins, NODE_ADMITTED},
        run::{Carried, RunEntry},
    },
};

/// An entry of this node that has no seal yet.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct Draft {
    pub(crate) at: LocalRef,
    pub(crate) facts: Facts,
    /// The body as it was written.
    pub(crate) plain: Vec<u8>,
    /// The body as others get it, in a room that seals bodies.
    pub(crate) sealed: Option<Vec<u8>>,
    /// Whether it begins a run.
    pub(crate) begins: Begins,
}

impl Draft {
    /// The body as it is stored and sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.sealed.as_ref().unwrap_or(&self.plain)
    }

    pub(crate) fn entry(&self) -> RunEntry {
        let bytes = self.bytes();
        let body = if bytes.len() > BODY_INLINE_BYTES_MAX {
            Carried::Apart { hash: sha256(&[bytes]), len: bytes.len() as u64 }
        } else {
            Carried::Here(bytes.to_vec().into())
        };
        RunEntry { facts: self.facts, body }
    }
}

/// The drafts of this turn, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafts {
    list: Vec<Draft>,
    /// A run of another node was accepted, or a lane entered, since the first of those that would stand under one seal.
    heard: bool,
}

impl Drafts {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A run of another node is accepted. It may build on entries that are not even sealed here.
    pub(crate) fn note_accepted(&mut self) {
        self.heard = !self.list.is_empty();
    }

    /// Runs are accepted as a whole: two runs that depend on each other would deadlock.
    pub(crate) fn push(&mut self, mut draft: Draft) {
        let begins = match draft.begins {
            Begins::Always => true,
            Begins::IfHeard => self.heard,
            Begins::Never => false,
        };
        // Claims in a lane count where the lane is known: they cannot come with it.
        self.heard = (self.heard && !begins) || draft.facts.kind == NODE_ADMITTED;
        // Its plain form was folded, and is not needed any more.
        if let Some(sealed) = draft.sealed.take() {
            draft.plain = sealed;
        }
        draft.begins = if begins { Begins::Always } else { Begins::Never };
        self.list.push(draft);
    }

    /// Takes all of them, those of each run together.
    pub(crate) fn take_runs(&mut self) -> Vec<Vec<Draft>> {
        let mut drafts = std::mem::take(self).list;
        let mut runs = Vec::new();
        while !drafts.is_empty() {
            let rest = drafts.split_off(run_length(&drafts));
            runs.push(drafts);
            drafts = rest;
        }
        runs
    }
}

/// How many of the drafts fit under one seal: at least one.
fn run_length(drafts: &[Draft]) -> usize {
    let mut bytes = 0;
    let next = drafts.iter().skip(1).position(|draft| draft.begins == Begins::Always);
    let most = next.map_or(RUN_ENTRIES_MAX, |at| RUN_ENTRIES_MAX.min(at + 1));
    let fits = drafts.iter().take(most).take_while(|draft| {
        bytes += {
            let len = draft.bytes().len();
            if len > BODY_INLINE_BYTES_MAX { 64 } else { len + 24 }
        };
        bytes <= RUN_BYTES_MAX
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::kinds::{CHAT, DECISION};

    /// Stands for whatever builds on others.
    const ACT: u8 = 100;

    /// The runs that drafts of these kinds become; 0: a run of another node is accepted.
    fn lengths(kinds: &[u8]) -> Vec<usize> {
        let mut drafts = Drafts::default();
        for (kind, clock) in kinds.iter().zip(1..) {
            let facts = Facts { clock, wall_ms: 0, kind: *kind, visible: true };
            let begins = match *kind {
                0 => {
                    drafts.note_accepted();
                    continue;
                }
                DECISION => Begins::Always,
                ACT | NODE_ADMITTED => Begins::IfHeard,
                _ => Begins::Never,
            };
            let (at, plain) = (LocalRef { log: 0, seq: clock }, vec![0; 10]);
            drafts.push(Draft { at, facts, plain, sealed: None, begins });
        }
        drafts.take_runs().iter().map(Vec::len).collect()
    }

    #[test]
    fn a_decision_begins_a_run() {
        assert_eq!(lengths(&[CHAT; 3]), [3]);
        assert_eq!(lengths(&[CHAT, DECISION, DECISION]), [1, 1, 1]);
        assert_eq!(lengths(&[CHAT, CHAT, DECISION, CHAT]), [2, 2]);
        let many: Vec<u8> = [[CHAT; RUN_ENTRIES_MAX].as_slice(), &[CHAT, DECISION]].concat();
        assert_eq!(lengths(&many), [RUN_ENTRIES_MAX, 1, 1]);
    }

    #[test]
    fn what_may_build_on_a_run_that_was_accepted_meanwhile_begins_a_run() {
        assert_eq!(lengths(&[0, ACT, ACT]), [2], "that came before");
        assert_eq!(lengths(&[ACT, 0, CHAT, CHAT]), [3], "chat builds on nothing");
        assert_eq!(lengths(&[CHAT, 0, 0, CHAT, ACT, ACT]), [2, 2], "once");
        assert_eq!(lengths(&[CHAT, 0, ACT, 0, CHAT, ACT]), [1, 2, 1]);
    }

    #[test]
    fn a_claim_does_not_come_with_the_lane_it_is_in() {
        assert_eq!(lengths(&[CHAT, NODE_ADMITTED, ACT, ACT]), [2, 2]);
    }
}

//! The holders of a room's subjects as docs/decisions/once.md defines them, over all acts at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::once::{OnceAct, OnceAnswer, OnceGrant, OnceVerdict},
};

/// An act, as some node has written it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) clock: u64,
    /// When its author took it in, by the clock by which that judges leases: it may have been stored later.
    pub(super) taken: Duration,
    pub(super) act: OnceAct,
}

impl Act {
    pub(super) fn answer(&self) -> Option<&OnceAnswer> {
        if let OnceAct::Answered(answer) = &self.act { Some(answer) } else { None }
    }

    /// The ask that it grants, and the grant.
    pub(super) fn grant(&self) -> Option<(EntryRef, &OnceGrant)> {
        let answer = self.answer()?;
        if let OnceVerdict::Granted(grant) = &answer.verdict {
            Some((answer.asked, grant))
        } else {
            None
        }
    }

    /// The asks whose grants it ends.
    pub(super) fn ends(&self) -> Vec<EntryRef> {
        match self.answer().map(|answer| &answer.verdict) {
            Some(OnceVerdict::Granted(grant)) => grant.over.clone(),
            Some(OnceVerdict::Released(root)) => vec![*root],
            Some(
                OnceVerdict::Renewed(_)
                | OnceVerdict::Held
                | OnceVerdict::Unproven
                | OnceVerdict::Full,
            )
            | None => Vec::new(),
        }
    }
}

/// Of each subject the lowest grant by position that no act ends.
pub(super) fn fold<'a>(
    room: RoomId,
    acts: impl Iterator<Item = (&'a EntryRef, &'a Act)> + Clone,
) -> BTreeMap<String, (MessageId, AgentId)> {
    let ended: BTreeSet<EntryRef> = acts.clone().flat_map(|(_, act)| act.ends()).collect();
    let mut granted: Vec<(u64, EntryRef, EntryRef, &OnceGrant)> = acts
        .filter_map(|(place, act)| {
            let (asked, grant) = act.grant()?;
            Some((act.clock, *place, asked, grant))
        })
        .filter(|(_, _, asked, _)| !ended.contains(asked))
        .collect();
    granted.sort_by_key(|(clock, place, ..)| (*clock, *place));
    let mut holders = BTreeMap::new();
    for (_, _, asked, grant) in granted {
        let holder = (MessageId::new(room, asked.log, asked.seq), grant.by.clone());
        holders.entry(grant.subject.clone()).or_insert(holder);
    }
    holders
}

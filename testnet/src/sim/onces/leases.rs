//! *once, leased*: an agent counts its lease from the moment at which it asked, for the thing itself or for a renewal. So it
//! never counts on what the same sequencer has granted anew, however long answers take, and whatever is stored when.

use std::time::Duration;

use mesh::{
    name::{
        id::{EntryRef, MessageId, RoomId},
        number::Era,
    },
    wire::once::OnceVerdict,
};

use super::{Got, Onces, is_restored};
use crate::sim::{
    cluster::Cluster,
    promises::{Broken, broken},
};

/// A grant, as its agent counts on it.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// When it asked.
    pub(super) asked: Duration,
    /// When it asked for the newest renewal of which it was told.
    pub(super) renewed: Option<Duration>,
    /// When it was told that it has it.
    pub(super) told: Duration,
    /// `None`: without end.
    pub(super) lasts: Option<Duration>,
    /// It has asked to give it back.
    pub(super) is_given_back: bool,
}

impl Lease {
    pub(super) fn new(asked: Duration, told: Duration) -> Lease {
        Lease { asked, renewed: None, told, lasts: None, is_given_back: false }
    }

    /// Until then it is counted on. `None`: without end.
    fn ends(&self, with_renewals: bool) -> Option<Duration> {
        let from = self.renewed.filter(|_| with_renewals).unwrap_or(self.asked);
        Some(from.max(self.asked) + self.lasts?)
    }
}

impl Onces {
    /// An agent was told of a renewal that it had asked for then.
    pub(super) fn is_renewed(
        &mut self,
        cluster: &Cluster,
        grant: MessageId,
        asked: Duration,
    ) -> Result<(), Broken> {
        let Some(at) = self.got.iter().position(|got| got.grant == grant) else { return Ok(()) };
        let lease = &mut self.got[at].lease;
        lease.renewed = lease.renewed.max(Some(asked));
        self.is_leased_once(cluster, at)
    }

    /// *once, leased*, of one grant and all others.
    pub(super) fn is_leased_once(&self, cluster: &Cluster, at: usize) -> Result<(), Broken> {
        // A node that lies may have granted either of them.
        if cluster.plan.liar {
            return Ok(());
        }
        let one = &self.got[at];
        let others = self.got.iter().filter(|other| {
            (other.room, &other.subject) == (one.room, &one.subject) && other.grant != one.grant
        });
        for other in others {
            self.end_before(cluster, other, one)?;
            self.end_before(cluster, one, other)?;
        }
        Ok(())
    }

    /// Where one sequencer has granted both in one era, the first is over when anybody is told of the second.
    fn end_before(&self, cluster: &Cluster, first: &Got, second: &Got) -> Result<(), Broken> {
        let granted_anew = self.granted_of(second);
        // Sequencers of several eras may have granted it, and one may know of an end that another one does not.
        let [(place, era, _)] = granted_anew[..] else { return Ok(()) };
        let same = |(at, of, _): &&(EntryRef, Era, EntryRef)| {
            (at.log, *of) == (place.log, era) && at.seq < place.seq
        };
        let granted = self.granted_of(first);
        let Some((_, _, root)) = granted.iter().find(same) else { return Ok(()) };
        if first.lease.is_given_back || is_restored(cluster, place) || is_restored(cluster, *root) {
            return Ok(());
        }
        let acts = || self.acts.get(&first.room).into_iter().flatten();
        let is_ended = acts().any(|(at, act)| {
            let verdict = act.answer().map(|answer| &answer.verdict);
            let is_elsewhere = at.log != place.log && act.ends().contains(root);
            is_elsewhere || verdict == Some(&OnceVerdict::Released(*root))
        });
        // What another sequencer has renewed this one need not know.
        let renewals = acts().filter(|(_, act)| {
            act.answer().is_some_and(|answer| answer.verdict == OnceVerdict::Renewed(*root))
        });
        let ends = first.lease.ends(renewals.into_iter().all(|(at, _)| at.log == place.log));
        if is_ended || ends.is_some_and(|ends| ends <= second.lease.told) {
            return Ok(());
        }
        broken("once, leased", format!("{second:?} while its agent counts on {first:?}"))
    }

    /// The places and the eras of all answers that grant this, and its ask.
    fn granted_of(&self, got: &Got) -> Vec<(EntryRef, Era, EntryRef)> {
        let name = |room: RoomId, asked: EntryRef| MessageId::new(room, asked.log, asked.seq);
        let acts = self.acts.get(&got.room).into_iter().flatten();
        let grants = acts.filter_map(|(place, act)| {
            let (asked, _) =
                act.grant().filter(|(asked, _)| name(got.room, *asked) == got.grant)?;
            Some((*place, act.answer()?.era, asked))
        });
        grants.collect()
    }
}

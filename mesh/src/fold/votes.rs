//! The votes of a room: a fold over [`VoteAct`]s that does not depend on the order in which logs are
//! read, and beside it what only this node knows of each vote.
//!
//! The state is a function of the logs (`docs/decisions/votes.md`):
//!
//! - Of one log's ballots of an agent the first is valid, and of its closes of a vote too.
//! - Of all closes the first of the vote's author counts, or else the lowest by position.
//! - What it names counts as far as it is valid ballots of this vote, of each agent the lowest.
//! - A ballot is opened by its own log, by a choice and a nonce that match its commitment.
//! - Ballots and closes of a node that forked a log do not count: others may hold more of them, or less.
//! - A ballot counts if its node can speak for the voter, by the directory: that is looked up, and is no part of the fold.

mod rules;
mod vote;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rules::is_sound;
pub(crate) use rules::{bytes, check_imported, nonce};
pub(crate) use vote::Vote;

use super::act::{Fold, Folded, Revision, Spoken, Void, Written};
use crate::{
    api::{batch::VoteNote, boundary::Alarm, command::Refused},
    limits::{
        VOTES_BYTES_PER_LOG_MAX, VOTES_BYTES_PER_ROOM_MAX, VOTES_OPEN_PER_AGENT_MAX,
        VOTES_OPEN_PER_LOG_MAX, VOTES_PER_LOG_MAX,
    },
    name::id::{EntryRef, LogId, NodeId},
    wire::acts::{VoteAct, VoteImported, VoteOpened},
};

/// A change of a room's votes.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// There is one more.
    Opened(EntryRef),
    /// It is not known any more.
    Forgotten(Box<Vote>),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Votes {
    all: BTreeMap<EntryRef, Vote>,
    /// Nodes that forked a log.
    forked: BTreeSet<NodeId>,
    /// Memory that they take, as [`bytes`] counts it.
    bytes: usize,
    /// Votes in which something may become due.
    waiting: BTreeSet<EntryRef>,
    /// Of these, in which something may be possible that was not when the engine looked.
    stirred: BTreeSet<EntryRef>,
    news: Vec<News>,
}

impl Fold for Votes {
    type Act = VoteAct;
    type News = News;

    /// One more vote may be opened unless one that is not over would be forgotten for it.
    fn admits(&self, by: LogId, act: &VoteAct, _: Duration) -> Result<(), Refused> {
        let VoteAct::Opened(new) = act else { return Ok(()) };
        let full = |why: &str| Err(Refused::Full(format!("{why}: wait until one has ended")));
        let bytes = bytes(new);
        let open = || self.of(by).filter(|vote| !vote.is_closed());
        let over = |place: &EntryRef| self.all.get(place).is_none_or(Vote::is_told);
        if open().filter(|vote| *vote.created_by() == new.created_by).count()
            >= VOTES_OPEN_PER_AGENT_MAX
        {
            return full("too many of your votes are open in this room");
        }
        if open().count() >= VOTES_OPEN_PER_LOG_MAX
            || self.bytes + bytes > VOTES_BYTES_PER_ROOM_MAX
            || !self.in_the_way(by, bytes).iter().all(over)
        {
            return full("too many votes are open in this room");
        }
        Ok(())
    }

    fn apply(&mut self, written: Written, act: VoteAct, _: &mut Vec<Alarm>) -> Folded {
        match act {
            // As after a start: its author was not known to have forked when it came.
            VoteAct::Cast(_) | VoteAct::Closed(_) | VoteAct::Shown(_)
                if self.forked.contains(&written.place.log.author) =>
            {
                Folded::Taken
            }
            VoteAct::Opened(opened) => self.fold_opened(&written, opened),
            VoteAct::Imported(imported) => self.fold_imported(&written, imported),
            VoteAct::Cast(ballot) => self
                .touch(ballot.vote)
                .map_or(Folded::Taken, |vote| vote.fold_cast(written.position(), ballot)),
            VoteAct::Closed(close) => {
                // It may name ballots that were dropped here, because their author forked.
                let complete = self.forked.is_empty();
                self.touch(close.vote)
                    .map(|vote| vote.fold_closed(&written, &close))
                    .filter(|folded| complete || *folded != Folded::Void)
                    .unwrap_or(Folded::Taken)
            }
            VoteAct::Shown(shown) => self
                .touch(shown.vote)
                .map_or(Folded::Taken, |vote| vote.fold_shown(&written, &shown)),
        }
    }

    fn retract(&mut self, void: Void) {
        match void {
            Void::From(EntryRef { log, seq }) => self.cut(log, seq),
            Void::Author(node) => self.expel(node),
            Void::Member(_) => {}
        }
    }

    fn take_news(&mut self, _: Duration) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Votes {
    /// `forked`: nodes that forked a log.
    pub(crate) fn new(forked: BTreeSet<NodeId>) -> Votes {
        Votes { forked, ..Votes::default() }
    }

    fn touch(&mut self, vote: EntryRef) -> Option<&mut Vote> {
        let known = self.all.get_mut(&vote).filter(|vote| !vote.is_imported())?;
        self.waiting.insert(vote);
        self.stirred.insert(vote);
        Some(known)
    }

    fn fold_opened(&mut self, written: &Written, opened: VoteOpened) -> Folded {
        if !is_sound(&opened, written.facts.wall_ms) {
            return Folded::Void;
        }
        let place = written.place;
        if !self.make_room(place.log, bytes(&opened)) {
            return Folded::Overflow;
        }
        self.all.insert(place, Vote::new(written, opened));
        self.waiting.insert(place);
        self.stirred.insert(place);
        self.news.push(News::Opened(place));
        Folded::Taken
    }

    /// One that is over: nothing becomes due in it. Whether the author may bring it was asked before.
    fn fold_imported(&mut self, written: &Written, imported: VoteImported) -> Folded {
        if check_imported(&imported).is_err() {
            return Folded::Void;
        }
        let place = written.place;
        let vote = Vote::imported(written, imported);
        if !self.make_room(place.log, vote.bytes()) {
            return Folded::Overflow;
        }
        self.all.insert(place, vote);
        self.news.push(News::Opened(place));
        Folded::Taken
    }

    /// Room for one more vote of this log, which takes `bytes`. `false`: there is none.
    fn make_room(&mut self, log: LogId, bytes: usize) -> bool {
        for old in self.in_the_way(log, bytes) {
            self.forget(old);
        }
        let fits = self.bytes + bytes <= VOTES_BYTES_PER_ROOM_MAX;
        if fits {
            self.bytes += bytes;
        }
        fits
    }

    /// The votes of this log that have to be forgotten for a new one that takes `bytes`: its oldest,
    /// so that it is the same ones everywhere.
    fn in_the_way(&self, log: LogId, bytes: usize) -> Vec<EntryRef> {
        let mut count = self.of(log).count() + 1;
        let mut sum = self.of(log).map(Vote::bytes).sum::<usize>() + bytes;
        let mut out = Vec::new();
        for vote in self.of(log) {
            if count <= VOTES_PER_LOG_MAX && sum <= VOTES_BYTES_PER_LOG_MAX {
                break;
            }
            out.push(vote.place());
            count -= 1;
            sum -= vote.bytes();
        }
        out
    }

    /// The votes of one log, the oldest first.
    fn of(&self, log: LogId) -> impl Iterator<Item = &Vote> {
        let all = EntryRef { log, seq: 0 }..=EntryRef { log, seq: u64::MAX };
        self.all.range(all).map(|(_, vote)| vote)
    }

    fn forget(&mut self, place: EntryRef) {
        self.rest(place);
        if let Some(vote) = self.all.remove(&place) {
            self.bytes -= vote.bytes();
            self.news.push(News::Forgotten(Box::new(vote)));
        }
    }

    /// Nothing of this log counts from `seq` on: it forked.
    fn cut(&mut self, log: LogId, seq: u64) {
        let from = EntryRef { log, seq };
        let to = EntryRef { log, seq: u64::MAX };
        let void: Vec<EntryRef> = self.all.range(from..=to).map(|(place, _)| *place).collect();
        for place in void {
            self.forget(place);
        }
        self.drop_from_all(|place| place.log == log && place.seq >= seq);
    }

    /// This node forked a log somewhere: nothing that it says counts in any vote.
    fn expel(&mut self, node: NodeId) {
        self.forked.insert(node);
        self.drop_from_all(|place| place.log.author == node);
    }

    fn drop_from_all(&mut self, void: impl Fn(&EntryRef) -> bool) {
        // Those that were brought had ended: nothing can become due in them.
        for (place, vote) in self.all.iter_mut().filter(|(_, vote)| !vote.is_imported()) {
            vote.cut(&void);
            self.waiting.insert(*place);
            self.stirred.insert(*place);
        }
    }

    /// See [`Vote::judge`].
    pub(crate) fn judge(&mut self, revision: Revision, proves: impl Fn(&Spoken<'_>) -> bool) {
        self.all.values_mut().for_each(|vote| vote.judge(revision, &proves));
    }

    /// The notes on a vote that the store had. `false`: there is no such vote.
    pub(crate) fn restore(&mut self, place: EntryRef, note: VoteNote) -> bool {
        self.all.get_mut(&place).map(|vote| vote.restore(note)).is_some()
    }

    pub(crate) fn get(&self, place: EntryRef) -> Option<&Vote> {
        self.all.get(&place)
    }

    pub(crate) fn edit(&mut self, place: EntryRef) -> Option<&mut Vote> {
        self.all.get_mut(&place)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Vote> {
        self.all.values()
    }

    /// Those in which something may become due with time, or as nodes come and go.
    pub(crate) fn waiting(&self) -> Vec<EntryRef> {
        self.waiting.iter().copied().collect()
    }

    /// Those that acts have come to since it was asked last. However many votes are open, an act is work for one.
    pub(crate) fn take_stirred(&mut self) -> Vec<EntryRef> {
        std::mem::take(&mut self.stirred).into_iter().collect()
    }

    /// Nothing is due in it until another act of it comes.
    pub(crate) fn rest(&mut self, place: EntryRef) {
        self.waiting.remove(&place);
        self.stirred.remove(&place);
    }
}

#[cfg(test)]
mod tests;

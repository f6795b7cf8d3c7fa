//! Votes: opening them, casting ballots, closing them, opening ballots, telling the result.
//!
//! When to do what is decided here, from what this node sees of others and of the time; what it then
//! comes to is a function of the logs (`crate::fold::votes`).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::Engine;
use crate::{
    api::{
        agenda::{NewVote, VoteView},
        batch::{Change, VoteNote},
        command::{Caller, Outcome, Refused},
        event::RoomEvent,
    },
    fold::votes::{Vote, check, commitment, nonce},
    limits::{
        RECONNECT_WITHIN, ROSTER_LEASE, VOTE_CLOSE_GRACE, VOTE_CLOSE_RANK_STEP, VOTE_COLLECT,
        VOTE_COLLECT_APART, VOTE_LISTEN, VOTE_NEWS_FOR,
    },
    name::id::{EntryRef, KeyPrint, LocalRef, MessageId, NodeId, RoomId},
    room::Room,
    wire::{
        acts::{BallotCast, Named, VoteAct, VoteOpened},
        entry::Body,
    },
};

/// What clients ask.
impl Engine {
    pub(super) fn create_vote(
        &mut self,
        caller: &Caller,
        vote: NewVote,
    ) -> Result<Outcome, Refused> {
        let id = vote.room;
        self.may_act(caller, id)?;
        let it = self.to_open(caller, vote);
        check(&it, self.cx.now.wall_ms).map_err(Refused::Invalid)?;
        let at = self.write_act(id, &Body::Vote(VoteAct::Opened(it)))?;
        self.vote_at(id, at).map(Outcome::Vote).ok_or(Refused::NoVote)
    }

    fn to_open(&self, caller: &Caller, vote: NewVote) -> VoteOpened {
        let members = self.rosters.members(vote.room).iter();
        let eligible = members.filter_map(|it| {
            let (_, record) = self.rosters.record(&it.agent)?;
            Some(Named { agent: it.agent.clone(), name: record.name.to_string() })
        });
        let now = self.cx.now.wall_ms;
        let ms = |secs: u64| secs.saturating_mul(1_000);
        VoteOpened {
            title: vote.title,
            description: vote.description,
            options: vote.options,
            eligible: eligible.collect(),
            created_by: caller.agent.clone(),
            closes_ms: vote.duration_secs.map(|secs| now.saturating_add(ms(secs))),
        }
    }

    pub(super) fn cast_vote(
        &mut self,
        caller: &Caller,
        (vote, option): (MessageId, u64),
    ) -> Result<Outcome, Refused> {
        let record = self.caller(caller)?;
        let (id, place) = self.readable_vote(caller.key, vote)?;
        let known = self.rooms.get(&id).and_then(|room| room.folds.votes.get(place));
        let vote = known.ok_or(Refused::NoVote)?;
        if vote.is_closed() || vote.is_overdue(self.cx.now.wall_ms) {
            return Err(Refused::VoteClosed);
        }
        if !record.rooms.contains_key(&id) {
            return Err(Refused::NotMember);
        }
        if !vote.may_vote(&caller.agent) {
            return Err(Refused::NotEligible);
        }
        let choice = usize::try_from(option).ok().filter(|it| *it < vote.options());
        let choice = choice.and_then(|it| u32::try_from(it).ok());
        let choice = choice.ok_or(Refused::NoOption { max: vote.options() - 1 })?;
        if vote.has_voted(&caller.agent) {
            return Err(Refused::AlreadyVoted);
        }
        let agent = caller.agent.clone();
        let nonce = nonce(&self.identity, id, place, &agent);
        let commitment = commitment(id, place, &agent, choice, &nonce);
        let ballot = BallotCast { vote: place, agent, commitment };
        let at = self.write_act(id, &Body::Vote(VoteAct::Cast(ballot)))?;
        let room = self.rooms.get_mut(&id).ok_or(Refused::NoVote)?;
        let vote = room.folds.votes.edit(place).ok_or(Refused::NoVote)?;
        vote.choose(at.seq, choice);
        let (cast, eligible) = vote.turnout();
        Ok(Outcome::Cast { cast, eligible })
    }

    pub(super) fn get_vote(&self, key: KeyPrint, vote: MessageId) -> Result<Outcome, Refused> {
        let (id, place) = self.readable_vote(key, vote)?;
        let vote = self.rooms.get(&id).and_then(|room| room.folds.votes.get(place));
        let view = vote.ok_or(Refused::NoVote)?.view(id, self.cx.now);
        Ok(Outcome::Vote(Box::new(view)))
    }

    pub(super) fn list_votes(
        &self,
        key: KeyPrint,
        id: RoomId,
        limit: usize,
    ) -> Result<Outcome, Refused> {
        self.may_read(key, id)?;
        let all = self.rooms.get(&id).into_iter().flat_map(|room| room.folds.votes.all());
        let mut all: Vec<&Vote> = all.collect();
        all.sort_by_cached_key(|vote| std::cmp::Reverse((vote.created_ms(), vote.id(id))));
        let views = all.into_iter().take(limit).map(|vote| vote.view(id, self.cx.now));
        Ok(Outcome::Votes(views.collect()))
    }

    /// Where a vote is, if agents of this key may know of it.
    fn readable_vote(&self, key: KeyPrint, vote: MessageId) -> Result<(RoomId, EntryRef), Refused> {
        let (id, place) = *self.votes.get(&vote).ok_or(Refused::NoVote)?;
        let unknown = |it| if it == Refused::NoRoom { Refused::NoVote } else { it };
        self.may_read(key, id).map(|()| (id, place)).map_err(unknown)
    }

    fn vote_at(&self, id: RoomId, at: LocalRef) -> Option<Box<VoteView>> {
        let room = self.rooms.get(&id)?;
        let place = EntryRef { log: room.replica.logs.id(at.log), seq: at.seq };
        Some(Box::new(room.folds.votes.get(place)?.view(id, self.cx.now)))
    }
}

/// What becomes due, or possible.
impl Engine {
    /// LocalRef every tick: what becomes due with time, and with who is there.
    pub(super) fn go_on_with_all_votes(&mut self) {
        for id in self.voting.clone() {
            let waiting = self.rooms.get(&id).map(|room| room.folds.votes.waiting());
            self.go_on_with(id, waiting.unwrap_or_default());
        }
    }

    /// Goes on with the votes of a room that acts have come to, as far as is possible now.
    pub(super) fn go_on_voting(&mut self, id: RoomId) {
        let stirred = self.rooms.get_mut(&id).map(|room| room.folds.votes.take_stirred());
        self.go_on_with(id, stirred.unwrap_or_default());
    }

    fn go_on_with(&mut self, id: RoomId, votes: Vec<EntryRef>) {
        self.note_votes(id, true);
        for place in votes {
            self.close_vote_if_due(id, place);
            self.judge_closes(id, place);
            self.show_ballots(id, place);
            self.tell_result(id, place);
            self.keep_vote(id, place);
        }
        if self.rooms.get(&id).is_some_and(|room| room.folds.votes.is_waiting()) {
            self.voting.insert(id);
        } else {
            self.voting.remove(&id);
        }
    }

    /// Votes of a room that are new, or not known any more.
    fn note_votes(&mut self, id: RoomId, tell: bool) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let opened = std::mem::take(&mut room.folds.votes.opened);
        let forgotten = std::mem::take(&mut room.folds.votes.forgotten);
        for vote in opened.into_iter().filter_map(|place| room.folds.votes.get(place)) {
            self.votes.entry(vote.id(id)).or_insert((id, vote.place()));
            let over = vote.has_close() || vote.is_overdue(self.cx.now.wall_ms);
            if tell && !over {
                let view = Arc::new(vote.view(id, self.cx.now));
                self.cx.notify(id, RoomEvent::VoteOpened(view));
            }
        }
        for vote in forgotten {
            forget(&mut self.votes, vote.id(id), (id, vote.place()));
            note(&mut self.cx.batch, room, (vote.at(), None));
        }
    }

    fn close_vote_if_due(&mut self, id: RoomId, place: EntryRef) {
        let Some(room) = self.rooms.get(&id) else { return };
        let wait = room.folds.votes.get(place).and_then(|vote| self.close_after(room, vote));
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let Some(vote) = room.folds.votes.edit(place) else { return };
        let since = vote.due_for(self.cx.now.mono, wait.is_some());
        let due = wait.zip(since).is_some_and(|(wait, since)| since >= wait);
        if due {
            let close = vote.close();
            self.write_vote_act(id, VoteAct::Closed(close));
        }
    }

    /// How long this node, once it finds that a vote should be closed, leaves that to time and to
    /// others. `None`: it should not be closed, or not by this node.
    fn close_after(&self, room: &Room, vote: &Vote) -> Option<Duration> {
        let now = self.cx.now;
        let overdue = vote.is_overdue(now.wall_ms);
        let opener = vote.opener();
        if opener == self.cx.me {
            return self.close_own_after(room, vote);
        }
        let for_good = self.live.silent_for(now.mono, opener) >= RECONNECT_WITHIN;
        let reason = overdue || vote.is_complete() || (!vote.has_deadline() && for_good);
        let due = reason && self.is_gone(room.replica.id, opener);
        // It counted as closed here, and by a close that is void now, since its author is out.
        let lost = vote.is_closed();
        if vote.has_close() || !(due || lost) {
            return None;
        }
        let rank = self.live.rank(now.mono, room.replica.eligible(&self.cx), opener);
        Some(VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * rank)
    }

    fn close_own_after(&self, room: &Room, vote: &Vote) -> Option<Duration> {
        if vote.has_opener_close() {
            return None;
        }
        // After another's close others may have opened their ballots: none may be cast any more.
        if vote.is_complete() || vote.has_close() {
            return Some(Duration::ZERO);
        }
        let now = self.cx.now;
        let overdue = vote.is_overdue(now.wall_ms);
        if room.replica.record.local || self.live.others.is_empty() {
            return overdue.then_some(Duration::ZERO);
        }
        let listened = self.live.awake_for(now.mono) >= VOTE_LISTEN;
        let collect = if self.may_get_ballots(room) { VOTE_COLLECT_APART } else { VOTE_COLLECT };
        (overdue && listened).then_some(collect)
    }

    /// Whether ballots that were cast on another side of a split may still come.
    fn may_get_ballots(&self, room: &Room) -> bool {
        let heirs = room.replica.eligible(&self.cx);
        let mut others = self.live.others.iter().filter(|it| heirs.has(**it));
        others.any(|it| self.live.may_bring_more(self.cx.now.mono, *it))
    }

    /// Whether a node can be counted upon to do something: not if it was not heard for a while.
    fn is_gone(&self, room: RoomId, node: NodeId) -> bool {
        let silent = self.live.silent_for(self.cx.now.mono, node);
        let out = self.rooms.get(&room).is_some_and(|it| it.replica.is_out(&self.cx, node));
        node != self.cx.me && (silent >= ROSTER_LEASE || out)
    }

    /// Whether a close that is here is to be believed: whoever lies closes early, to see the ballots of
    /// others while there is time to cast.
    fn judge_closes(&mut self, id: RoomId, place: EntryRef) {
        let Some(vote) = self.rooms.get(&id).and_then(|room| room.folds.votes.get(place)) else {
            return;
        };
        let now = self.cx.now;
        let grace = u64::try_from(VOTE_CLOSE_GRACE.as_millis()).unwrap_or(u64::MAX);
        let in_time = || {
            vote.is_complete()
                || vote.is_overdue(now.wall_ms.saturating_sub(grace))
                || self.is_gone(id, vote.opener())
        };
        let believed = vote.has_opener_close() || (vote.has_close() && in_time());
        if believed && let Some(vote) = self.edit_vote(id, place) {
            vote.mark_closed(now.mono);
        }
    }

    /// Opens the ballots of this node's agents that count.
    fn show_ballots(&mut self, id: RoomId, place: EntryRef) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let (mine, writable) = (room.replica.mine, room.is_writable(&self.cx));
        let Some(vote) = room.folds.votes.edit(place) else { return };
        if vote.is_closed() && vote.has_choices() && writable {
            for shown in vote.show_own(&self.identity, id, mine) {
                self.write_vote_act(id, VoteAct::Shown(shown));
            }
        }
    }

    fn write_vote_act(&mut self, id: RoomId, act: VoteAct) {
        if let Some(room) = self.rooms.get_mut(&id)
            && room.is_writable(&self.cx)
        {
            room.append(&mut self.cx, &Body::Vote(act));
        }
    }

    /// Tells local members the result, once for ever. While there are none it waits for some: those
    /// whom a crash of this node has cut off come back.
    fn tell_result(&mut self, id: RoomId, place: EntryRef) {
        let (now, me) = (self.cx.now, self.cx.me);
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let Some(vote) = room.folds.votes.edit(place) else { return };
        let members = self.rosters.members(id);
        let here = || members.iter().any(|it| it.node == me);
        let waited = vote.closed_for(now.mono).is_some_and(|it| it >= RECONNECT_WITHIN);
        if !vote.is_told() && vote.has_result(now.mono) && (waited || here()) {
            vote.mark_told();
            let keep_ms = u64::try_from(VOTE_NEWS_FOR.as_millis()).unwrap_or(u64::MAX);
            let news = vote.ended_ms().is_some_and(|at| now.wall_ms <= at.saturating_add(keep_ms));
            if news {
                let result = Arc::new(vote.result(id, now));
                self.cx.notify(id, RoomEvent::VoteEnded(result));
            }
        }
        // A close that counted may be void later: then there has to be another.
        if vote.is_told() && vote.has_close() {
            room.folds.votes.rest(place);
        }
    }

    fn keep_vote(&mut self, id: RoomId, place: EntryRef) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let Some(vote) = room.folds.votes.edit(place) else { return };
        if let Some(new) = vote.take_note() {
            let at = vote.at();
            note(&mut self.cx.batch, room, (at, new));
        }
    }

    fn edit_vote(&mut self, id: RoomId, place: EntryRef) -> Option<&mut Vote> {
        self.rooms.get_mut(&id)?.folds.votes.edit(place)
    }

    // Over a restart, and with rooms that end.

    /// What only this node knows of votes, as the store had it.
    pub(super) fn restore_votes(&mut self, notes: Vec<(RoomId, LocalRef, VoteNote)>) {
        let ids: Vec<RoomId> = self.rooms.keys().copied().collect();
        for id in ids {
            self.note_votes(id, false);
            if self.rooms.get(&id).is_some_and(|room| room.folds.votes.is_waiting()) {
                self.voting.insert(id);
            }
        }
        for (id, at, kept) in notes {
            let Some(room) = self.rooms.get_mut(&id) else { continue };
            let place = EntryRef { log: room.replica.logs.id(at.log), seq: at.seq };
            if !room.folds.votes.restore(place, kept) {
                note(&mut self.cx.batch, room, (at, None));
            }
        }
    }

    /// Nobody finds the votes of this room any more.
    pub(super) fn forget_votes(&mut self, room: &Room) {
        self.voting.remove(&room.replica.id);
        for vote in room.folds.votes.all() {
            forget(&mut self.votes, vote.id(room.replica.id), (room.replica.id, vote.place()));
        }
    }
}

/// Nothing leads to what is there any more. Another one may have been brought under its id.
pub(super) fn forget(
    known: &mut BTreeMap<MessageId, (RoomId, EntryRef)>,
    id: MessageId,
    there: (RoomId, EntryRef),
) {
    if known.get(&id) == Some(&there) {
        known.remove(&id);
    }
}

/// What of a vote is to be kept over a restart: nothing of rooms that are memory only.
fn note(batch: &mut Vec<Change>, room: &Room, (vote, note): (LocalRef, Option<VoteNote>)) {
    if !room.replica.record.ephemeral {
        batch.push(Change::Note { room: room.replica.id, vote, note });
    }
}

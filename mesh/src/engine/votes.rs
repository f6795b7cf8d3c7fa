//! Votes: opening them, casting ballots, closing them, opening ballots, telling the result.
//!
//! When to do something is decided here, from the state of other nodes and the time; its effect is a
//! function of the logs (`crate::fold::votes`).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::known::{Known, Places};
use crate::{
    api::{
        agenda::{NewVote, VoteView},
        batch::{Change, VoteNote},
        command::{Caller, Outcome, Reader, Refused},
        event::RoomEvent,
    },
    fold::{
        act::Fold as _,
        votes::{News, Vote, nonce},
    },
    limits::{
        RECONNECT_WITHIN, ROSTER_LEASE, VOTE_CLOSE_GRACE, VOTE_CLOSE_RANK_STEP, VOTE_COLLECT,
        VOTE_COLLECT_APART, VOTE_LISTEN, VOTE_NEWS_FOR,
    },
    name::id::{EntryRef, LocalRef, MessageId, NodeId, RoomId},
    room::Room,
    wire::{
        acts::{BallotCast, Named, VoteAct, VoteOpened},
        entry::Body,
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Voting {
    /// Rooms with votes in which something may become due.
    pub(super) waiting: BTreeSet<RoomId>,
}

/// Acts that become due, or possible.
impl Voting {
    /// At every tick: steps that become due with time, and with members that come or go.
    pub(super) fn go_on_with_all_votes(&mut self, known: &mut Known) {
        for id in self.waiting.clone() {
            let waiting = known.rooms.get(&id).map(|room| room.folds.votes.waiting());
            self.go_on_with(known, id, waiting.unwrap_or_default());
        }
    }

    /// Goes on with the votes of a room that acts have come to, as far as is possible now.
    pub(super) fn go_on_voting(&mut self, known: &mut Known, id: RoomId) {
        let stirred = known.rooms.get_mut(&id).map(|room| room.folds.votes.take_stirred());
        self.go_on_with(known, id, stirred.unwrap_or_default());
    }

    fn go_on_with(&mut self, known: &mut Known, id: RoomId, votes: Vec<EntryRef>) {
        note_votes(known, id, true);
        for place in votes {
            judge_ballots(known, id, place);
            close_vote_if_due(known, id, place);
            judge_closes(known, id, place);
            show_ballots(known, id, place);
            tell_result(known, id, place);
            keep_vote(known, id, place);
        }
        if known.rooms.get(&id).is_some_and(|room| room.folds.votes.is_waiting()) {
            self.waiting.insert(id);
        } else {
            self.waiting.remove(&id);
        }
    }

    // Over a restart, and with rooms that end.

    /// Notes of votes that only this node knows, as the store had them.
    pub(super) fn restore_votes(
        &mut self,
        known: &mut Known,
        notes: Vec<(RoomId, LocalRef, VoteNote)>,
    ) {
        let ids: Vec<RoomId> = known.rooms.keys().copied().collect();
        for id in ids {
            note_votes(known, id, false);
            if known.rooms.get(&id).is_some_and(|room| room.folds.votes.is_waiting()) {
                self.waiting.insert(id);
            }
        }
        for (id, at, kept) in notes {
            let Some(room) = known.rooms.get_mut(&id) else { continue };
            let place = EntryRef { log: room.replica.logs.id(at.log), seq: at.seq };
            if !room.folds.votes.restore(place, kept) {
                note(&mut known.cx.batch, room, at, None);
            }
        }
    }

    /// Nobody finds the votes of this room any more.
    pub(super) fn forget_votes(&mut self, known: &mut Known, room: &Room) {
        self.waiting.remove(&room.replica.id);
        for vote in room.folds.votes.all() {
            forget(
                &mut known.index.votes,
                vote.id(room.replica.id),
                (room.replica.id, vote.place()),
            );
        }
    }
}

/// Why a ballot was not taken.
const CROWDED_OUT: &str = "other nodes have cast so many ballots in this agent's name that this one does not count: see `clawmeshd status`";

fn to_open(known: &Known, caller: &Caller, vote: NewVote) -> VoteOpened {
    let members = known.rosters.regulars(vote.room);
    let eligible = members.filter_map(|member| {
        let (_, record) = known.rosters.record(&member.agent)?;
        Some(Named { agent: member.agent.clone(), name: record.name.to_string() })
    });
    let now = known.cx.now.wall_ms;
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

pub(super) fn list_votes(
    known: &mut Known,
    by: &Reader,
    id: RoomId,
    limit: usize,
) -> Result<Outcome, Refused> {
    known.may_read(by, id)?;
    judge_all_ballots(known, id);
    let all = known.rooms.get(&id).into_iter().flat_map(|room| room.folds.votes.all());
    let mut all: Vec<&Vote> = all.collect();
    all.sort_by_cached_key(|vote| std::cmp::Reverse((vote.created_ms(), vote.id(id))));
    let views = all.into_iter().take(limit).map(|vote| vote.view(id, known.cx.now));
    Ok(Outcome::Votes(views.collect()))
}

/// Where a vote is, if this one may know of it.
fn readable_vote(
    known: &Known,
    by: &Reader,
    vote: MessageId,
) -> Result<(RoomId, EntryRef), Refused> {
    let (id, place) = *known.index.votes.get(&vote).ok_or(Refused::NoVote)?;
    let unknown = |refused| if refused == Refused::NoRoom { Refused::NoVote } else { refused };
    known.may_read(by, id).map(|()| (id, place)).map_err(unknown)
}

pub(super) fn cast_vote(
    known: &mut Known,
    caller: &Caller,
    vote: MessageId,
    option: u64,
) -> Result<Outcome, Refused> {
    let record = known.caller(caller)?;
    let (id, place) = readable_vote(known, &caller.reader(), vote)?;
    judge_ballots(known, id, place);
    let room = known.rooms.get(&id);
    let vote = room.and_then(|room| room.folds.votes.get(place)).ok_or(Refused::NoVote)?;
    if vote.is_closed() || vote.is_overdue(known.cx.now.wall_ms) {
        return Err(Refused::VoteClosed);
    }
    if !record.rooms.contains_key(&id) {
        return Err(Refused::NotMember);
    }
    if !vote.may_vote(&caller.agent) {
        return Err(Refused::NotEligible);
    }
    let choice = usize::try_from(option).ok().filter(|nth| *nth < vote.options());
    let choice = choice.and_then(|nth| u32::try_from(nth).ok());
    let choice = choice.ok_or(Refused::NoOption { max: vote.options() - 1 })?;
    if vote.has_voted(&caller.agent) {
        return Err(Refused::AlreadyVoted);
    }
    known.may_speak(caller)?;
    let agent = caller.agent.clone();
    let nonce = nonce(&known.identity, id, place, &agent);
    let commitment = BallotCast::commitment(id, place, &agent, choice, &nonce);
    let key = caller.key.checked();
    let ballot = BallotCast { vote: place, agent, commitment, key };
    let at = known.write_act(id, &Body::Vote(VoteAct::Cast(ballot)))?;
    judge_ballots(known, id, place);
    let room = known.rooms.get_mut(&id).ok_or(Refused::NoVote)?;
    let vote = room.folds.votes.edit(place).ok_or(Refused::NoVote)?;
    if !vote.has_voted(&caller.agent) {
        return Err(Refused::Full(CROWDED_OUT.to_owned()));
    }
    vote.choose(at.seq, choice);
    let (cast, eligible) = vote.turnout();
    Ok(Outcome::Cast { cast, eligible })
}

pub(super) fn get_vote(
    known: &mut Known,
    by: &Reader,
    vote: MessageId,
) -> Result<Outcome, Refused> {
    let (id, place) = readable_vote(known, by, vote)?;
    judge_ballots(known, id, place);
    let vote = known.rooms.get(&id).and_then(|room| room.folds.votes.get(place));
    let view = vote.ok_or(Refused::NoVote)?.view(id, known.cx.now);
    Ok(Outcome::Vote(Box::new(view)))
}

fn vote_at(known: &Known, id: RoomId, at: LocalRef) -> Option<Box<VoteView>> {
    let room = known.rooms.get(&id)?;
    let place = EntryRef { log: room.replica.logs.id(at.log), seq: at.seq };
    Some(Box::new(room.folds.votes.get(place)?.view(id, known.cx.now)))
}

pub(super) fn create_vote(
    known: &mut Known,
    caller: &Caller,
    vote: NewVote,
) -> Result<Outcome, Refused> {
    let id = vote.room;
    known.may_act(caller, id)?;
    vote.check()?;
    let opened = to_open(known, caller, vote);
    if opened.eligible.is_empty() {
        return Err(Refused::GuestsAlone);
    }
    let at = known.write_act(id, &Body::Vote(VoteAct::Opened(opened)))?;
    vote_at(known, id, at).map(Outcome::Vote).ok_or(Refused::NoVote)
}

/// Votes of a room that are new, or not known any more.
fn note_votes(known: &mut Known, id: RoomId, tell: bool) {
    let Some(room) = known.rooms.get_mut(&id) else { return };
    for news in room.folds.votes.take_news(known.cx.now.mono) {
        match news {
            News::Opened(place) => {
                let Some(vote) = room.folds.votes.get(place) else { continue };
                known.index.votes.entry(vote.id(id)).or_insert((id, vote.place()));
                let over = vote.has_close() || vote.is_overdue(known.cx.now.wall_ms);
                if tell && !over {
                    let view = Arc::new(vote.view(id, known.cx.now));
                    known.cx.notify(id, RoomEvent::VoteOpened(view));
                }
            }
            News::Forgotten(vote) => {
                forget(&mut known.index.votes, vote.id(id), (id, vote.place()));
                note(&mut known.cx.batch, room, vote.at(), None);
            }
        }
    }
}

/// Whether ballots that were cast on another side of a split may still come.
fn may_get_ballots(known: &Known, room: &Room) -> bool {
    let heirs = room.replica.eligible(&known.cx);
    let mut others = known.live.keepers().filter(|node| heirs.has(*node));
    others.any(|node| known.live.may_bring_more(known.cx.now.mono, node))
}

fn close_own_after(known: &Known, room: &Room, vote: &Vote) -> Option<Duration> {
    if vote.has_opener_close() {
        return None;
    }
    // After another's close others may have opened their ballots: none may be cast any more.
    if vote.is_complete() || vote.has_close() {
        return Some(Duration::ZERO);
    }
    let now = known.cx.now;
    let overdue = vote.is_overdue(now.wall_ms);
    if room.replica.record.local || known.live.keepers().next().is_none() {
        return overdue.then_some(Duration::ZERO);
    }
    let listened = known.live.awake_for(now.mono) >= VOTE_LISTEN;
    let collect = if may_get_ballots(known, room) { VOTE_COLLECT_APART } else { VOTE_COLLECT };
    (overdue && listened).then_some(collect)
}

/// Whether a node can be counted upon to do something: not if it was not heard for a while.
fn is_gone(known: &Known, room: RoomId, node: NodeId) -> bool {
    let silent = known.live.silent_for(known.cx.now.mono, node);
    let out = known.rooms.get(&room).is_some_and(|room| room.replica.is_out(&known.cx, node));
    node != known.cx.me && (silent >= ROSTER_LEASE || out)
}

/// How long this node, once it finds that a vote should be closed, leaves that to time and to
/// others. `None`: it should not be closed, or not by this node.
fn close_after(known: &Known, room: &Room, vote: &Vote) -> Option<Duration> {
    let now = known.cx.now;
    let overdue = vote.is_overdue(now.wall_ms);
    let opener = vote.opener();
    if opener == known.cx.me {
        return close_own_after(known, room, vote);
    }
    let for_good = known.live.silent_for(now.mono, opener) >= RECONNECT_WITHIN;
    let reason = overdue || vote.is_complete() || (!vote.has_deadline() && for_good);
    let due = reason && is_gone(known, room.replica.id, opener);
    // It counted as closed here, and by a close that is void now, since its author is out.
    let lost = vote.is_closed();
    if vote.has_close() || !(due || lost) {
        return None;
    }
    let rank = known.live.rank(now.mono, room.replica.eligible(&known.cx), opener);
    Some(VOTE_CLOSE_GRACE + VOTE_CLOSE_RANK_STEP * rank)
}

/// Whether a close that is here is to be believed: liars close early, to see the ballots of others while
/// there is time to cast.
fn judge_closes(known: &mut Known, id: RoomId, place: EntryRef) {
    let Some(vote) = known.rooms.get(&id).and_then(|room| room.folds.votes.get(place)) else {
        return;
    };
    let now = known.cx.now;
    let grace = u64::try_from(VOTE_CLOSE_GRACE.as_millis()).unwrap_or(u64::MAX);
    let in_time = || {
        vote.is_complete()
            || vote.is_overdue(now.wall_ms.saturating_sub(grace))
            || is_gone(known, id, vote.opener())
    };
    let believed = vote.has_opener_close() || (vote.has_close() && in_time());
    let room = known.rooms.get_mut(&id);
    if believed && let Some(vote) = room.and_then(|room| room.folds.votes.edit(place)) {
        vote.mark_closed(now.mono);
    }
}

/// Sees which ballots are their voters': a ballot and the voucher of its node travel in two rooms.
fn judge_ballots(known: &mut Known, id: RoomId, place: EntryRef) {
    let keys = known.directory.keys();
    let room = known.rooms.get_mut(&id);
    if let Some(vote) = room.and_then(|room| room.folds.votes.edit(place)) {
        vote.judge(keys.revision(), |act| keys.speaks_for(act));
    }
}

fn judge_all_ballots(known: &mut Known, id: RoomId) {
    let keys = known.directory.keys();
    if let Some(room) = known.rooms.get_mut(&id) {
        room.folds.votes.judge(keys.revision(), |act| keys.speaks_for(act));
    }
}

fn write_vote_act(known: &mut Known, id: RoomId, act: VoteAct) {
    if let Some(room) = known.rooms.get_mut(&id)
        && room.is_writable(&known.cx)
    {
        room.append(&mut known.cx, &Body::Vote(act));
    }
}

fn close_vote_if_due(known: &mut Known, id: RoomId, place: EntryRef) {
    let Some(room) = known.rooms.get(&id) else { return };
    let wait = room.folds.votes.get(place).and_then(|vote| close_after(known, room, vote));
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let Some(vote) = room.folds.votes.edit(place) else { return };
    let since = vote.due_for(known.cx.now.mono, wait.is_some());
    let due = wait.zip(since).is_some_and(|(wait, since)| since >= wait);
    if due {
        let keys = known.directory.keys();
        let close = vote.close(|key| !keys.is_revoked(key));
        drop(keys);
        write_vote_act(known, id, VoteAct::Closed(close));
    }
}

/// Opens the ballots of this node's agents that count.
fn show_ballots(known: &mut Known, id: RoomId, place: EntryRef) {
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let (mine, writable) = (room.replica.mine, room.is_writable(&known.cx));
    let Some(vote) = room.folds.votes.edit(place) else { return };
    if vote.is_closed() && vote.has_choices() && writable {
        for shown in vote.show_own(&known.identity, id, mine) {
            write_vote_act(known, id, VoteAct::Shown(shown));
        }
    }
}

/// Tells local members the result, once for ever. While there are none it waits for some: those
/// whom a crash of this node has cut off come back.
fn tell_result(known: &mut Known, id: RoomId, place: EntryRef) {
    let (now, me) = (known.cx.now, known.cx.me);
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let Some(vote) = room.folds.votes.edit(place) else { return };
    let members = known.rosters.members(id);
    let here = || members.iter().any(|member| member.node == me);
    let waited = vote.closed_for(now.mono).is_some_and(|closed| closed >= RECONNECT_WITHIN);
    if !vote.is_told() && vote.has_result(now.mono) && (waited || here()) {
        vote.mark_told();
        let keep_ms = u64::try_from(VOTE_NEWS_FOR.as_millis()).unwrap_or(u64::MAX);
        let news = vote.ended_ms().is_some_and(|at| now.wall_ms <= at.saturating_add(keep_ms));
        if news {
            let result = Arc::new(vote.result(id, now));
            known.cx.notify(id, RoomEvent::VoteEnded(result));
        }
    }
    // A close that counted may be void later: then there has to be another.
    if vote.is_told() && vote.has_close() {
        room.folds.votes.rest(place);
    }
}

fn keep_vote(known: &mut Known, id: RoomId, place: EntryRef) {
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let Some(vote) = room.folds.votes.edit(place) else { return };
    if let Some(new) = vote.take_note() {
        let at = vote.at();
        note(&mut known.cx.batch, room, at, new);
    }
}

/// Nothing leads to this place any more. Another vote or task may have been brought under its id.
pub(super) fn forget(known: &mut Places, id: MessageId, there: (RoomId, EntryRef)) {
    if known.get(&id) == Some(&there) {
        known.remove(&id);
    }
}

/// Keeps a note of a vote over a restart: none of rooms that are memory only.
fn note(batch: &mut Vec<Change>, room: &Room, vote: LocalRef, note: Option<VoteNote>) {
    if !room.replica.record.ephemeral {
        batch.push(Change::Note { room: room.replica.id, vote, note });
    }
}

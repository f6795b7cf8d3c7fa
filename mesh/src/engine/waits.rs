//! Agents that wait for others, for people who look: requests without an answer, votes without all ballots, tasks that another
//! one holds, approvals that nobody has decided about. All but requests follow from the rooms' acts; requests are remembered as
//! they come, of the agents of all nodes, since this node's start.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::known::Known;
use crate::{
    api::{
        approval::ApprovalView,
        command::{Outcome, Reader},
        event::Delivered,
        waits::{Awaited, WaitView},
    },
    limits::{
        REQUEST_OPEN_FOR, REQUESTS_SEEN_MAX, REQUESTS_SEEN_PER_AGENT_MAX, WAIT_NAMED_MAX,
        WAITS_LISTED_MAX,
    },
    name::id::{AgentId, MessageId, RoomId},
    room::Room,
    wire::kinds::CHAT,
};

/// A request that has no answer.
#[derive(Clone, Debug)]
struct Request {
    room: RoomId,
    by: AgentId,
    /// Empty: anybody in the room.
    of: Vec<AgentId>,
    wall_ms: u64,
    at: Duration,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    /// At most [`REQUESTS_SEEN_MAX`].
    open: BTreeMap<MessageId, Request>,
    /// The oldest first; at most [`REQUESTS_SEEN_PER_AGENT_MAX`] each.
    of_agent: BTreeMap<AgentId, VecDeque<MessageId>>,
}

impl Requests {
    /// A message was delivered here.
    pub(super) fn on_delivered(&mut self, known: &Known, room: RoomId, entry: &Delivered) {
        let said = entry.said.as_ref().filter(|_| entry.facts.kind == CHAT);
        let Some((said, place)) = said.and_then(|said| Some((said, said.conversation?))) else {
            return;
        };
        if let Some(answered) = place.answers {
            self.is_answered(answered, room);
        }
        if !place.expects_reply {
            return;
        }
        let direct = known.directory.direct.get(room);
        let of = match direct.map(|direct| direct.sides.peer_of(&said.agent)) {
            Some(peer) if *peer == said.agent => return,
            Some(peer) => vec![peer.clone()],
            None => said.mentions.iter().take(WAIT_NAMED_MAX).cloned().collect(),
        };
        let (by, at) = (said.agent.clone(), known.cx.now.mono);
        let request = Request { room, by, of, wall_ms: entry.facts.wall_ms, at };
        self.put(entry.message, request);
    }

    fn put(&mut self, message: MessageId, request: Request) {
        let (by, now) = (request.by.clone(), request.at);
        if self.open.insert(message, request).is_some() {
            return;
        }
        let of = self.of_agent.entry(by).or_default();
        of.push_back(message);
        let oldest = (of.len() > REQUESTS_SEEN_PER_AGENT_MAX).then(|| of.front().copied());
        if let Some(oldest) = oldest.flatten() {
            self.is_over(oldest);
        }
        if self.open.len() > REQUESTS_SEEN_MAX {
            let is_old = |request: &Request| request.at + REQUEST_OPEN_FOR <= now;
            let old = self.open.iter().filter(|(_, request)| is_old(request));
            let mut old: Vec<MessageId> = old.map(|(message, _)| *message).collect();
            // Of those that count, the one that was seen first.
            let first = self.open.iter().min_by_key(|(_, request)| request.at);
            old.extend(first.map(|(message, _)| *message).filter(|_| old.is_empty()));
            old.into_iter().for_each(|message| self.is_over(message));
        }
    }

    /// As if it had come.
    #[cfg(test)]
    pub(super) fn pretend(&mut self, message: MessageId, room: RoomId, by: &AgentId) {
        let (of, at) = (Vec::new(), Duration::ZERO);
        self.put(message, Request { room, by: by.clone(), of, wall_ms: 0, at });
    }

    /// A request has an answer, and with it all that its author has asked before in the same room.
    fn is_answered(&mut self, answered: MessageId, room: RoomId) {
        let Some((by, upto)) = self.open.get(&answered).map(|found| (found.by.clone(), found.at))
        else {
            return;
        };
        let of = self.of_agent.get(&by).into_iter().flatten().copied();
        let is_older = |message: &MessageId| {
            self.open.get(message).is_some_and(|one| one.room == room && one.at <= upto)
        };
        let over: Vec<MessageId> = of.filter(is_older).collect();
        over.into_iter().for_each(|message| self.is_over(message));
    }

    /// There is to be no answer any more.
    pub(super) fn is_over(&mut self, message: MessageId) {
        let Some(request) = self.open.remove(&message) else { return };
        if let Some(of) = self.of_agent.get_mut(&request.by) {
            of.retain(|one| *one != message);
            if of.is_empty() {
                self.of_agent.remove(&request.by);
            }
        }
    }

    /// All that wait in rooms that this one may read, the longest first. The holder of a key reads the direct rooms of all its
    /// agents.
    pub(super) fn list(&self, known: &mut Known, by: &Reader) -> Outcome {
        let rooms: Vec<RoomId> = known.rooms.keys().copied().collect();
        let mut found: Vec<WaitView> = Vec::new();
        for id in rooms.into_iter().filter(|id| sees(known, by, *id)).collect::<Vec<_>>() {
            super::approvals::judge(known, id);
            if let Some(room) = known.rooms.get(&id) {
                of_room(known, room, &mut found);
            }
        }
        let now = known.cx.now.mono;
        let open = self.open.iter().filter(|(_, one)| now < one.at + REQUEST_OPEN_FOR);
        let seen = open.filter(|(_, one)| sees(known, by, one.room));
        found.extend(seen.map(|(message, one)| WaitView {
            room: one.room,
            thing: *message,
            by: one.by.clone(),
            of: one.of.clone(),
            awaited: Awaited::Answer,
            title: None,
            since_ms: one.wall_ms,
            until_ms: None,
        }));
        found.sort_by_key(|wait| (wait.since_ms, wait.thing));
        found.truncate(WAITS_LISTED_MAX);
        Outcome::Waits(found)
    }
}

/// Whether somebody sees a room.
fn sees(known: &Known, by: &Reader, room: RoomId) -> bool {
    let Some(view) = known.told.get(&room) else { return false };
    let is_own = || {
        let sides = view.sides.as_ref().filter(|_| by.agent.is_none());
        sides.is_some_and(|sides| sides.iter().any(|(_, of)| of == by.key))
    };
    known.may_read(by, room).is_ok() || is_own()
}

/// Those that follow from a room's acts.
fn of_room(known: &Known, room: &Room, found: &mut Vec<WaitView>) {
    let (id, now) = (room.replica.id, known.cx.now);
    let wait = |thing, by: &AgentId, of: Vec<AgentId>, (awaited, title): (Awaited, &Arc<str>)| {
        let (by, title) = (by.clone(), Some(title.clone()));
        WaitView { room: id, thing, by, of, awaited, title, since_ms: 0, until_ms: None }
    };
    let open = room.folds.votes.all().filter(|vote| !vote.is_closed());
    for vote in open.filter(|vote| !vote.is_overdue(now.wall_ms)).take(WAITS_LISTED_MAX) {
        let view = vote.view(id, now);
        let others = vote.yet_to_vote().filter(|agent| **agent != view.created_by);
        let of: Vec<AgentId> = others.take(WAIT_NAMED_MAX).cloned().collect();
        if !of.is_empty() {
            let shown = wait(view.vote, &view.created_by, of, (Awaited::Ballots, &view.title));
            let (since_ms, until_ms) = (view.created_ms, view.closes_ms);
            found.push(WaitView { since_ms, until_ms, ..shown });
        }
    }
    for task in room.folds.tasks.held().take(WAITS_LISTED_MAX) {
        if let Some(holder) = task.assignee.as_ref().filter(|holder| **holder != task.created_by) {
            let of = vec![holder.clone()];
            let shown = wait(task.task, &task.created_by, of, (Awaited::Task, &task.title));
            found.push(WaitView { since_ms: task.created_ms, until_ms: task.due_ms, ..shown });
        }
    }
    let is_open = |view: &ApprovalView| view.decided.is_none() && now.wall_ms < view.until_ms;
    for view in room.folds.approvals.views().into_iter().filter(is_open) {
        let of = view.approvers.iter().take(WAIT_NAMED_MAX).cloned().collect();
        let shown = wait(view.id, &view.by, of, (Awaited::Decision, &view.text));
        let (since_ms, until_ms) = (view.asked_ms, Some(view.until_ms));
        found.push(WaitView { since_ms, until_ms, ..shown });
    }
}

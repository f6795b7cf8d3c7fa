//! Barriers: before it says that it does not know something, or who is there, a node asks all connected peers
//! what they have, and fetches it (`docs/decisions/barrier.md`).
//!
//! One runs at a time. Whatever comes meanwhile waits for the next one, together.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::Engine;
use crate::{
    api::command::{Attach, CallId, Caller, Command, Refused, Speech},
    engine::asked::{Asked, Peers, Recent},
    limits::{
        BARRIER_EVERY, BARRIER_HEADS_MAX, BARRIER_ROOMS_MAX, BARRIER_ROUNDS_MAX,
        BARRIER_SEEKING_MAX, BARRIER_STRANGERS_MAX, BARRIER_WAITING_MAX, BARRIER_WITHIN_MAX,
        ID_LOGS_MAX, ID_ROOMS_MAX,
    },
    name::id::{AgentId, KeyPrint, LocalRef, LogId, MessageId, NodeId, RoomId},
    room::Room,
    wire::{
        message::{Heads, Message, RoomDigest},
        roster::{RosterNews, What},
    },
};

/// Why a command waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It begins something among those who are there.
    Begins,
    /// What it names is not known here.
    Seeks,
    /// The same, of a client that is no agent yet.
    Stranger,
}

/// What a command waits for.
#[derive(Clone, Debug)]
struct Need {
    why: Why,
    /// Peers are asked what they have of these, those that have them: never of a room that is not known here,
    /// which may be another key's. LocalRef most [`BARRIER_ROOMS_MAX`].
    rooms: BTreeSet<RoomId>,
    /// This peer alone is asked, if it can be.
    of: Option<NodeId>,
    /// Nobody is asked: it came a moment ago, and has not been looked into.
    came: bool,
    /// The room that is looked for.
    unknown: Option<RoomId>,
}

/// A command that waits.
#[derive(Debug)]
struct Parked {
    call: CallId,
    command: Command,
    need: Need,
    /// The room that was not known when it came.
    unknown: Option<RoomId>,
    /// Barriers that it has waited for.
    rounds: u8,
    /// When its first one began.
    since: Option<Duration>,
    /// It waits no longer; none while it waits for its first one to begin.
    until: Option<Duration>,
}

/// A barrier under way.
#[derive(Debug)]
struct Running {
    nonce: u64,
    until: Duration,
    asked: BTreeMap<NodeId, Asked>,
    waiting: Vec<Parked>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    pub(super) peers: Peers,
    recent: Recent,
    nonce: u64,
    /// When the last one began.
    began: Option<Duration>,
    running: Option<Running>,
    /// They wait for the next one; with those of the running one at most [`BARRIER_WAITING_MAX`].
    next: Vec<Parked>,
}

/// Where the entry of an id is.
enum Whereabouts {
    /// There is no such entry.
    Nowhere,
    /// In this room, and here.
    Here(RoomId, LocalRef),
    /// In this room, by this node, and not here yet.
    Ahead(RoomId, NodeId),
    /// In a log that is not known, if anywhere.
    Unknown,
}

impl Barriers {
    /// When the next step of one is due, if nothing comes before.
    pub(super) fn due(&self) -> Option<Duration> {
        match &self.running {
            Some(it) => it.waiting.iter().filter_map(|it| it.until).chain([it.until]).min(),
            None if self.next.is_empty() => None,
            None => Some(self.began.map_or(Duration::ZERO, |at| at + BARRIER_EVERY)),
        }
    }

    /// News of this node's roster are kept for a while, for peers that lack them.
    pub(super) fn keep_news(&mut self, what: &What, bytes: usize, message: &Message) {
        if let What::Changes { version, .. } = what {
            self.recent.push(*version, bytes, message.clone());
        }
    }

    fn count(&self, which: impl Fn(Why) -> bool) -> usize {
        let running = self.running.iter().flat_map(|it| &it.waiting);
        running.chain(&self.next).filter(|it| which(it.need.why)).count()
    }

    /// Whether one more may wait.
    fn has_place_for(&self, why: Why) -> bool {
        let seeks = |it| it != Why::Begins;
        self.count(|_| true) < BARRIER_WAITING_MAX
            && (!seeks(why) || self.count(seeks) < BARRIER_SEEKING_MAX)
            && (why != Why::Stranger || self.count(|it| it == why) < BARRIER_STRANGERS_MAX)
    }
}

/// What waits.
impl Engine {
    /// The node stops: of what waits nothing has been done.
    pub(super) fn refuse_parked(&mut self) {
        let running = self.barriers.running.take().into_iter().flat_map(|it| it.waiting);
        let parked: Vec<Parked> = running.chain(std::mem::take(&mut self.barriers.next)).collect();
        for it in parked {
            self.reply(it.call, Err(Refused::Stopping));
        }
    }

    /// A command that must wait waits. `None`: it does, or was refused.
    pub(super) fn hold_back(&mut self, call: CallId, command: Command) -> Option<Command> {
        let Some(need) =
            self.need(&command).filter(|need| need.came || !self.to_ask(need).is_empty())
        else {
            return Some(command);
        };
        if !self.barriers.has_place_for(need.why) {
            if need.why != Why::Begins {
                return Some(command);
            }
            // Begun now it might be without somebody.
            let full = "too many votes and elections begin at this node just now: try again";
            self.reply(call, Err(Refused::Full(full.to_owned())));
            return None;
        }
        let unknown = need.unknown;
        let (rounds, since, until) = (0, None, None);
        self.barriers.next.push(Parked { call, command, need, unknown, rounds, since, until });
        None
    }

    /// What a command has to wait for; `None` if it is answered from what is known.
    fn need(&self, command: &Command) -> Option<Need> {
        match command {
            Command::CreateVote { caller, vote } => self.everybody(caller, vote.room),
            Command::ElectLeader { caller, room } => {
                let running = self.is_electing(*room, |_| true);
                self.everybody(caller, *room).filter(|_| !running)
            }
            Command::Decline { caller, room } => {
                let knows = self.is_electing(*room, |it| it.is_open(self.cx.now.mono));
                self.what_is_in(caller.key, *room, knows)
            }
            Command::Say { caller, say } => {
                let leads = say.speech != Speech::Decision
                    || self.led_by(say.room, &caller.agent).is_some();
                self.what_is_in(caller.key, say.room, leads)
            }
            Command::CastVote { caller, vote, .. } => {
                self.entry(caller.key, &caller.agent, (*vote, self.votes.contains_key(vote)))
            }
            Command::GetVote { key, agent, vote } => {
                self.entry(*key, agent.as_ref()?, (*vote, self.votes.contains_key(vote)))
            }
            Command::UpdateTask { caller, update } => {
                let known = self.tasks.contains_key(&update.task);
                self.entry(caller.key, &caller.agent, (update.task, known))
            }
            Command::AssignTask { caller, task } => self.room_itself(caller.key, task.room),
            Command::CreateRoom { caller, room } => self.room_itself(caller.key, room.parent?),
            Command::Join { caller, room }
            | Command::Leave { caller, room }
            | Command::SetTyping { caller, room, .. } => self.room_itself(caller.key, *room),
            Command::Seek { caller, room, message } => self
                .room_itself(caller.key, *room)
                .or_else(|| self.message_in(caller.key, *room, (*message)?)),
            Command::ListRooms { key, parent } => self.room_itself(*key, (*parent)?),
            Command::ListAgents { key, room } => self.room_itself(*key, (*room)?),
            Command::RoomInfo { key, room }
            | Command::ListVotes { key, room, .. }
            | Command::ListTasks { key, room, .. } => self.room_itself(*key, *room),
            Command::Attach(attach) => self.who_may_come(attach),
            Command::Detach { .. }
            | Command::SetPresence { .. }
            | Command::MintKey(_)
            | Command::SignUp(_)
            | Command::RevokeKey { .. }
            | Command::ListKeys
            | Command::CheckKey { .. }
            | Command::Keep { .. }
            | Command::Roam { .. }
            | Command::Status
            | Command::Behind
            | Command::Members
            | Command::Part { .. }
            | Command::RotateSecret { .. }
            | Command::LeaveMesh { .. }
            | Command::Stop => None,
        }
    }

    /// What a client names of an agent's rooms is looked for in the directories.
    fn seeking(&self, key: KeyPrint, rooms: impl IntoIterator<Item = RoomId>) -> Need {
        let sealed = self.cx.followers.directory(key);
        let directories = [RoomId::directory(self.cx.mesh)].into_iter().chain(sealed);
        let rooms = directories.chain(rooms).take(BARRIER_ROOMS_MAX).collect();
        Need { why: Why::Seeks, rooms, of: None, came: false, unknown: None }
    }

    /// What came to a room has not been looked into before the end of this turn.
    fn came_just_now(&self, room: RoomId) -> Option<Need> {
        let (why, rooms, of, unknown) = (Why::Seeks, BTreeSet::new(), None, None);
        let active = self.cx.active.contains(&room);
        active.then_some(Need { why, rooms, of, came: true, unknown })
    }

    /// A room that is not known.
    fn room_itself(&self, key: KeyPrint, room: RoomId) -> Option<Need> {
        let known = self.told.contains_key(&room);
        // One that is listed and not shown yet may be asked for: those who have it are known.
        let unread = self.is_unread(room).then_some(room);
        (!known).then(|| Need { unknown: Some(room), ..self.seeking(key, unread) })
    }

    /// A room that is not known, or in which something is not.
    fn what_is_in(&self, key: KeyPrint, room: RoomId, known: bool) -> Option<Need> {
        let unknown = self.room_itself(key, room);
        unknown.or_else(|| (!known && self.is_shared(room)).then(|| self.seeking(key, [room])))
    }

    /// Everybody who is in a room, if the caller may begin something there.
    fn everybody(&self, caller: &Caller, room: RoomId) -> Option<Need> {
        if let Some(unknown) = self.room_itself(caller.key, room) {
            return Some(unknown);
        }
        let begins = self.is_shared(room) && self.may_act(caller, room).is_ok();
        begins.then(|| Need { why: Why::Begins, ..self.seeking(caller.key, [room]) })
    }

    /// Whether other nodes have it, too.
    fn is_shared(&self, room: RoomId) -> bool {
        self.rooms.get(&room).is_some_and(|it| !it.replica.record.local)
    }

    fn is_electing(
        &self,
        room: RoomId,
        which: impl Fn(&crate::fold::elections::Election) -> bool,
    ) -> bool {
        let running =
            self.rooms.get(&room).and_then(|it| it.folds.elections.running(self.cx.now.mono));
        running.is_some_and(which)
    }

    /// A vote or a task, which is in some room of the agent's.
    fn entry(
        &self,
        key: KeyPrint,
        agent: &AgentId,
        (id, known): (MessageId, bool),
    ) -> Option<Need> {
        if known {
            return None;
        }
        let seats = &self.rosters.own(agent)?.rooms;
        let mut rooms: Vec<(u64, RoomId)> =
            seats.iter().map(|(room, seat)| (seat.joined, *room)).collect();
        rooms.sort_unstable();
        let rooms = rooms.into_iter().rev().map(|(_, room)| room);
        let rooms: Vec<RoomId> =
            rooms.filter(|it| self.is_shared(*it)).take(ID_ROOMS_MAX).collect();
        match self.whereabouts(id, &rooms) {
            Whereabouts::Here(room, _) => self.came_just_now(room),
            it @ (Whereabouts::Nowhere | Whereabouts::Ahead(..) | Whereabouts::Unknown) => {
                self.elsewhere(key, rooms, it)
            }
        }
    }

    /// A message: here, and it has its number.
    fn message_in(&self, key: KeyPrint, room: RoomId, id: MessageId) -> Option<Need> {
        if !self.is_shared(room) || self.may_read(key, room).is_err() {
            return None;
        }
        match self.whereabouts(id, &[room]) {
            Whereabouts::Here(room, at) => {
                let known = self.rooms.get(&room)?;
                let waits = known.order.numbering.undelivered.contains_key(&at);
                self.came_just_now(room).or_else(|| waits.then(|| self.seeking(key, [room])))
            }
            it @ (Whereabouts::Nowhere | Whereabouts::Ahead(..) | Whereabouts::Unknown) => {
                self.elsewhere(key, vec![room], it)
            }
        }
    }

    fn elsewhere(&self, key: KeyPrint, rooms: Vec<RoomId>, it: Whereabouts) -> Option<Need> {
        match it {
            Whereabouts::Nowhere | Whereabouts::Here(..) => None,
            Whereabouts::Ahead(room, author) => {
                Some(Need { of: Some(author), ..self.seeking(key, [room]) })
            }
            Whereabouts::Unknown => Some(self.seeking(key, rooms)),
        }
    }

    fn whereabouts(&self, id: MessageId, rooms: &[RoomId]) -> Whereabouts {
        let logs = rooms.iter().filter_map(|id| self.rooms.get(id)).flat_map(|room| {
            let known = room.replica.logs.iter().map(|(_, log)| log.id);
            // What a peer writes first in a room begins a log that is not known yet.
            let nodes =
                self.cx.up.iter().chain([&self.cx.me]).filter(|_| !room.replica.record.ephemeral);
            let first = nodes.map(|node| LogId { author: *node, incarnation: 0 });
            known
                .chain(first.filter(|log| room.replica.logs.ix(*log).is_none()))
                .map(move |log| (room, log))
        });
        for (room, log) in logs.take(ID_LOGS_MAX) {
            let Some(seq) = id.seq_in(room.replica.id, log) else { continue };
            return match room.replica.logs.ix(log).filter(|_| seq <= room.replica.logs.head_of(log))
            {
                Some(log) => Whereabouts::Here(room.replica.id, LocalRef { log, seq }),
                None if log.author == self.cx.me => Whereabouts::Nowhere,
                None => Whereabouts::Ahead(room.replica.id, log.author),
            };
        }
        Whereabouts::Unknown
    }

    /// A key that is not known, or an id that is taken as far as is known.
    fn who_may_come(&self, attach: &Attach) -> Option<Need> {
        let unknown = self.standing(attach.key, attach.own) == Err(Refused::NoKey);
        let elsewhere = self.rosters.record(&attach.agent).filter(|(at, _)| *at != self.cx.me);
        let taken = elsewhere.is_some_and(|(_, it)| !attach.reconnect || it.key != attach.key);
        let stranger = || Need { why: Why::Stranger, ..self.seeking(attach.key, []) };
        (unknown || taken).then(stranger)
    }

    /// Connected peers that a barrier for this asks.
    fn to_ask(&self, need: &Need) -> BTreeSet<NodeId> {
        if need.came {
            return BTreeSet::new();
        }
        let now = self.cx.now.mono;
        let answers = |peer: &NodeId| self.barriers.peers.answers(now, *peer);
        let alone = need.of.filter(|it| self.cx.up.contains(it) && answers(it));
        match alone {
            Some(peer) => BTreeSet::from([peer]),
            None => self.cx.up.iter().copied().filter(answers).collect(),
        }
    }

    /// Those of these rooms that a peer has, as far as is known here.
    fn shared_with(&self, peer: NodeId, rooms: &BTreeSet<RoomId>) -> BTreeSet<RoomId> {
        rooms.iter().copied().filter(|room| self.may_hear_of(peer, *room).is_some()).collect()
    }

    /// A room that a peer may be told of, and asked about.
    fn may_hear_of(&self, peer: NodeId, room: RoomId) -> Option<&Room> {
        self.rooms
            .get(&room)
            .filter(|it| !it.replica.record.local && it.replica.eligible(&self.cx).has(peer))
    }
}

/// How it goes on.
impl Engine {
    /// Whether something has come of it that others may wait for.
    pub(super) fn go_on_with_barrier(&mut self) -> bool {
        let ended = self.end_barrier();
        let looked = self.go_on_with_what_came();
        self.begin_barrier() || ended || looked
    }

    /// What had come and was not looked into has been.
    fn go_on_with_what_came(&mut self) -> bool {
        let next = std::mem::take(&mut self.barriers.next);
        let (came, wait): (Vec<_>, Vec<_>) = next.into_iter().partition(|it| it.need.came);
        self.barriers.next = wait;
        let some = !came.is_empty();
        for it in came {
            self.go_on_after(it, &BTreeMap::new());
        }
        some
    }

    fn begin_barrier(&mut self) -> bool {
        let now = self.cx.now.mono;
        if self.stopping.is_some() {
            return self.carry_out_all();
        }
        let soon = self.barriers.began.is_some_and(|at| now < at + BARRIER_EVERY);
        if self.barriers.running.is_some() || self.barriers.next.is_empty() || soon {
            return false;
        }
        let (mut asked, mut rooms) = (BTreeMap::<NodeId, Asked>::new(), BTreeSet::new());
        let mut waiting = Vec::new();
        for parked in std::mem::take(&mut self.barriers.next) {
            let more = parked.need.rooms.difference(&rooms).count();
            if rooms.len() + more > BARRIER_ROOMS_MAX {
                self.barriers.next.push(parked);
                continue;
            }
            rooms.extend(parked.need.rooms.iter().copied());
            for peer in self.to_ask(&parked.need) {
                let named = self.shared_with(peer, &parked.need.rooms);
                let none = || Asked { named: BTreeSet::new(), said: None };
                asked.entry(peer).or_insert_with(none).named.extend(named);
            }
            waiting.push(parked);
        }
        if asked.is_empty() {
            // Whoever could be asked is gone.
            self.barriers.next.append(&mut waiting);
            return self.carry_out_all();
        }
        self.barriers.nonce += 1;
        self.barriers.began = Some(now);
        let (nonce, until) = (self.barriers.nonce, now + self.barriers.peers.bound(asked.keys()));
        for it in &mut waiting {
            it.rounds += 1;
            let all = *it.since.get_or_insert(now) + BARRIER_WITHIN_MAX;
            it.until = Some(until.min(all));
        }
        for (peer, it) in &asked {
            self.ask_frontier(*peer, nonce, &it.named);
        }
        self.barriers.running = Some(Running { nonce, until, asked, waiting });
        false
    }

    /// Asks nothing, to see how long that takes.
    pub(super) fn measure(&mut self, peer: NodeId) {
        self.barriers.nonce += 1;
        let nonce = self.barriers.nonce;
        self.barriers.peers.ask(self.cx.now.mono, peer, nonce);
        // Nothing of its roster is newer than this.
        let (boot, version, rooms) = (u64::MAX, u64::MAX, Vec::new());
        self.cx.send(peer, Message::AskFrontier { nonce, boot, version, rooms });
    }

    /// LocalRef every tick.
    pub(super) fn measure_peers(&mut self) {
        if self.barriers.running.is_some() {
            return;
        }
        let now = self.cx.now.mono;
        let peers = self.cx.up.iter().copied();
        let due: Vec<NodeId> =
            peers.filter(|it| self.barriers.peers.is_to_be_measured(now, *it)).collect();
        due.into_iter().for_each(|peer| self.measure(peer));
    }

    /// What waits for the next barrier goes on without. Whether anything did.
    fn carry_out_all(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.barriers.next);
        let some = !waiting.is_empty();
        for it in waiting {
            self.carry_out(it.call, it.command);
        }
        some
    }

    fn ask_frontier(&mut self, peer: NodeId, nonce: u64, named: &BTreeSet<RoomId>) {
        let digest = |room: &RoomId| {
            let digest = self.rooms.get(room)?.replica.logs.digest();
            Some(RoomDigest { room: *room, digest })
        };
        let rooms = named.iter().filter_map(digest).collect();
        let (boot, version) = self.rosters.version(peer);
        self.barriers.peers.ask(self.cx.now.mono, peer, nonce);
        self.cx.send(peer, Message::AskFrontier { nonce, boot, version, rooms });
    }

    fn end_barrier(&mut self) -> bool {
        let now = self.cx.now.mono;
        let Some(mut running) = self.barriers.running.take() else { return false };
        for (peer, asked) in &mut running.asked {
            self.strike_out(*peer, asked);
        }
        let open = |(peer, it): &(&NodeId, &Asked)| self.cx.up.contains(peer) && !it.is_over();
        let open: BTreeSet<NodeId> =
            running.asked.iter().filter(open).map(|(peer, _)| *peer).collect();
        let over = |it: &Parked| {
            let done = it.need.of.map_or(open.is_empty(), |peer| {
                if running.asked.contains_key(&peer) {
                    !open.contains(&peer)
                } else {
                    open.is_empty()
                }
            });
            done || self.stopping.is_some() || it.until.is_some_and(|until| now >= until)
        };
        let (go_on, wait) = std::mem::take(&mut running.waiting).into_iter().partition(over);
        let go_on: Vec<Parked> = go_on;
        running.waiting = wait;
        if now >= running.until {
            let silent =
                running.asked.iter().filter(|(peer, it)| it.said.is_none() && open.contains(peer));
            for (peer, _) in silent {
                self.barriers.peers.leave_out(now, *peer);
            }
        }
        let some = !go_on.is_empty();
        for it in go_on {
            self.go_on_after(it, &running.asked);
        }
        if !running.waiting.is_empty() {
            self.barriers.running = Some(running);
        }
        some
    }

    /// What a peer has named and is here, or does not count, or was never to be had.
    fn strike_out(&self, peer: NodeId, asked: &mut Asked) {
        let Some((roster, rooms)) = &mut asked.said else { return };
        if self.rosters.version(peer) >= *roster {
            *roster = (0, 0);
        }
        rooms.retain_mut(|it| {
            let Some(room) = self.rooms.get(&it.room) else { return false };
            it.heads.retain(|head| {
                let worth = room.replica.worth_having(&self.cx, head.log, head.seq);
                room.replica.takes_more(&self.cx, head.log)
                    && room.replica.logs.head_of(head.log) < worth
            });
            !it.heads.is_empty()
        });
    }

    /// A command has waited. It goes on, or waits for the next barrier, if that asks for something new.
    fn go_on_after(&mut self, it: Parked, asked: &BTreeMap<NodeId, Asked>) {
        let end = it.since.map(|since| since + BARRIER_WITHIN_MAX);
        let in_time = end.is_none_or(|end| self.cx.now.mono < end);
        let again = in_time && it.rounds < BARRIER_ROUNDS_MAX && self.stopping.is_none();
        let known = it.unknown.filter(|room| self.told.contains_key(room) && self.is_shared(*room));
        let contents = || known.map(|room| self.seeking(KeyPrint::OPEN, [room]));
        let need = self.need(&it.command).or_else(contents);
        match need.filter(|need| again && self.asks_more(need, asked)) {
            Some(need) => self.barriers.next.push(Parked { need, ..it }),
            None => self.carry_out(it.call, it.command),
        }
    }

    /// Whether a barrier for this asks somebody for something that was not asked in the one before.
    fn asks_more(&self, need: &Need, asked: &BTreeMap<NodeId, Asked>) -> bool {
        self.to_ask(need).into_iter().any(|peer| {
            let named = self.shared_with(peer, &need.rooms);
            asked.get(&peer).is_none_or(|it| !named.is_subset(&it.named))
        })
    }
}

impl Asked {
    /// It has answered, and nothing of that lacks.
    fn is_over(&self) -> bool {
        self.said.as_ref().is_some_and(|(roster, rooms)| *roster == (0, 0) && rooms.is_empty())
    }
}

/// Questions and answers.
impl Engine {
    pub(super) fn on_ask_frontier(
        &mut self,
        from: NodeId,
        (nonce, known): (u64, (u64, u64)),
        theirs: Vec<RoomDigest>,
    ) {
        let now = self.cx.now.mono;
        if !self.cx.up.contains(&from) || !self.barriers.peers.may_ask(now, from) {
            return;
        }
        self.tell_what_lacks_of_roster(from, known);
        // Each room once: an answer is much larger than a question.
        let theirs: BTreeMap<RoomId, u64> =
            theirs.into_iter().map(|it| (it.room, it.digest)).collect();
        let (mut rooms, mut count) = (Vec::new(), 0);
        for (id, digest) in theirs {
            let Some(room) = self.may_hear_of(from, id) else { continue };
            if room.replica.logs.digest() == digest {
                continue;
            }
            let heads = room.replica.logs.heads();
            count += heads.len();
            if count > BARRIER_HEADS_MAX {
                break;
            }
            rooms.push(Heads { room: id, heads });
        }
        let (boot, version) = self.rosters.version(self.cx.me);
        self.cx.send(from, Message::Frontier { nonce, boot, version, rooms });
    }

    /// Before the answer, and by the same way: who has that has these.
    fn tell_what_lacks_of_roster(&mut self, peer: NodeId, known: (u64, u64)) {
        let (boot, version) = self.rosters.version(self.cx.me);
        if known >= (boot, version) {
            return;
        }
        let since = if known.0 == boot { known.1 } else { 0 };
        if let Some(news) = self.barriers.recent.between(since, version) {
            for it in news {
                self.cx.send(peer, it);
            }
        } else if self.barriers.peers.may_have_whole(self.cx.now.mono, peer) {
            let news = RosterNews { node: self.cx.me, boot, what: self.rosters.whole() };
            let signed = crate::wire::message::Signed::new(self.cx.mesh, &self.identity, news);
            self.cx.send(peer, Message::Roster(Box::new(signed)));
        }
    }

    pub(super) fn on_frontier(
        &mut self,
        from: NodeId,
        (nonce, roster): (u64, (u64, u64)),
        mut rooms: Vec<Heads>,
    ) {
        if !self.barriers.peers.answer(self.cx.now.mono, from, nonce) {
            // An earlier question may have been answered late.
            self.cx.faults.stray += u64::from(nonce > self.barriers.nonce);
            return;
        }
        // Too late: whoever waited has gone on.
        let running = self.barriers.running.as_mut().filter(|it| it.nonce == nonce);
        let Some(asked) = running.and_then(|it| it.asked.get_mut(&from)) else { return };
        rooms.retain(|it| asked.named.contains(&it.room));
        asked.said = Some((roster, rooms.clone()));
        for it in rooms {
            self.cx.active.insert(it.room);
            if let Some(room) = self.rooms.get_mut(&it.room) {
                room.on_have(&mut self.cx, from, &it.heads, false);
            }
        }
        let (boot, version) = self.rosters.version(from);
        if (boot, version) < roster {
            // News that should have come before this were lost on the way.
            self.cx.send(from, Message::WantRoster { node: from, boot, version, nonce: None });
        }
    }
}

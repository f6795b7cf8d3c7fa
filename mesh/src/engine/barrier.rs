//! Barriers: before a node says that it does not know something, or lists those that are there, it asks
//! all connected peers for their frontiers, and fetches the rest (`docs/decisions/barrier.md`).
//!
//! One runs at a time. Commands that come meanwhile wait for the next one, together.

use super::{
    elections,
    known::Known,
    pairs,
    roster_sync::{self, RosterSync},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    api::command::{Attach, CallId, Caller, Command, Refused, traits::Names},
    engine::asked::{Asked, Peers},
    limits::{
        BARRIER_EVERY, BARRIER_HEADS_MAX, BARRIER_ROOMS_MAX, BARRIER_ROUNDS_MAX,
        BARRIER_SEEKING_MAX, BARRIER_STRANGERS_MAX, BARRIER_WAITING_MAX, BARRIER_WITHIN_MAX,
        ID_LOGS_MAX, ID_ROOMS_MAX,
    },
    name::{
        digest::Digest,
        id::{AgentId, KeyPrint, LocalRef, LogId, MessageId, NodeId, RoomId},
    },
    room::Room,
    wire::message::{Heads, Message, RoomDigest},
};

/// Why a command waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It begins something among those who are there.
    Begins,
    /// It names something that is not known here.
    Seeks,
    /// The same, of a client that is no agent yet.
    Stranger,
}

/// The thing that a command waits for.
#[derive(Clone, Debug)]
struct Need {
    why: Why,
    /// Peers are asked what they have of these, those that have them: never of a room that is not known here,
    /// which may be another key's. At most [`BARRIER_ROOMS_MAX`].
    rooms: BTreeSet<RoomId>,
    /// This peer alone is asked, if it can be.
    of: Option<NodeId>,
    /// Nobody is asked: it came a moment ago, and has not been looked into.
    came: bool,
    /// The room that is looked for.
    unknown: Option<RoomId>,
}

/// A command that waits.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    pub(super) call: CallId,
    pub(super) command: Command,
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
#[derive(Clone, Debug)]
pub(super) struct Running {
    nonce: u64,
    until: Duration,
    pub(super) asked: AskedPeers,
    waiting: Vec<Parked>,
}

/// The peers that were asked in a barrier.
pub(super) type AskedPeers = BTreeMap<NodeId, Asked>;

/// Commands that have waited, and their barrier.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) commands: Vec<Parked>,
    pub(super) running: Running,
}

/// A peer asks how far this node is.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) nonce: u64,
    /// The version of this node's roster that it has.
    pub(super) roster: (u64, u64),
    pub(super) rooms: Vec<RoomDigest>,
}

/// A peer says how far it is.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) nonce: u64,
    /// The version of its roster.
    pub(super) roster: (u64, u64),
    /// Rooms of which one of the two lacks something.
    pub(super) rooms: Vec<Heads>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Barriers {
    pub(super) peers: Peers,
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
            Some(running) => running
                .waiting
                .iter()
                .filter_map(|parked| parked.until)
                .chain([running.until])
                .min(),
            None if self.next.is_empty() => None,
            None => Some(self.began.map_or(Duration::ZERO, |at| at + BARRIER_EVERY)),
        }
    }

    fn count(&self, which: impl Fn(Why) -> bool) -> usize {
        let running = self.running.iter().flat_map(|running| &running.waiting);
        running.chain(&self.next).filter(|parked| which(parked.need.why)).count()
    }

    /// Whether one more may wait.
    fn has_place_for(&self, why: Why) -> bool {
        let seeks = |why| why != Why::Begins;
        self.count(|_| true) < BARRIER_WAITING_MAX
            && (!seeks(why) || self.count(seeks) < BARRIER_SEEKING_MAX)
            && (why != Why::Stranger || self.count(|other| other == why) < BARRIER_STRANGERS_MAX)
    }
}

/// Commands that wait.
impl Barriers {
    /// The node stops: nothing has been done of the commands that wait.
    pub(super) fn refuse_parked(&mut self, known: &mut Known) {
        let running = self.running.take().into_iter().flat_map(|running| running.waiting);
        let parked: Vec<Parked> = running.chain(std::mem::take(&mut self.next)).collect();
        for parked in parked {
            known.cx.reply(parked.call, Err(Refused::Stopping));
        }
    }

    /// A command that must wait waits. `None`: it does, or was refused.
    pub(super) fn hold_back(
        &mut self,
        known: &mut Known,
        call: CallId,
        command: Command,
    ) -> Option<Command> {
        let Some(need) =
            need(known, &command).filter(|need| need.came || !self.to_ask(known, need).is_empty())
        else {
            return Some(command);
        };
        if !self.has_place_for(need.why) {
            if need.why != Why::Begins {
                return Some(command);
            }
            // Begun now it might be without somebody.
            let full = "too many votes and elections begin at this node just now: try again";
            known.cx.reply(call, Err(Refused::Full(full.to_owned())));
            return None;
        }
        let unknown = need.unknown;
        let (rounds, since, until) = (0, None, None);
        self.next.push(Parked { call, command, need, unknown, rounds, since, until });
        None
    }

    /// Connected peers that a barrier for this asks.
    fn to_ask(&self, known: &Known, need: &Need) -> BTreeSet<NodeId> {
        if need.came {
            return BTreeSet::new();
        }
        let now = known.cx.now.mono;
        // A relay has the directory, and no agent that something could begin with.
        let is_asked = |peer: &NodeId| need.why != Why::Begins || !known.cx.relays.contains(peer);
        let answers = |peer: &NodeId| is_asked(peer) && self.peers.answers(now, *peer);
        let alone = need.of.filter(|node| known.cx.up.contains(node) && answers(node));
        match alone {
            Some(peer) => BTreeSet::from([peer]),
            None => known.cx.up.iter().copied().filter(answers).collect(),
        }
    }
}

/// How it goes on.
impl Barriers {
    /// Takes the commands whose room is looked into by now.
    pub(super) fn take_came(&mut self) -> Vec<Parked> {
        self.next.extract_if(.., |parked| parked.need.came).collect()
    }

    /// Begins the next barrier. Returns commands that go on without one.
    pub(super) fn begin(&mut self, known: &mut Known) -> Vec<Parked> {
        let now = known.cx.now.mono;
        if known.stopping {
            return std::mem::take(&mut self.next);
        }
        let soon = self.began.is_some_and(|at| now < at + BARRIER_EVERY);
        if self.running.is_some() || self.next.is_empty() || soon {
            return Vec::new();
        }
        let (mut asked, mut rooms) = (BTreeMap::<NodeId, Asked>::new(), BTreeSet::new());
        let mut waiting = Vec::new();
        for parked in std::mem::take(&mut self.next) {
            let more = parked.need.rooms.difference(&rooms).count();
            if rooms.len() + more > BARRIER_ROOMS_MAX {
                self.next.push(parked);
                continue;
            }
            rooms.extend(parked.need.rooms.iter().copied());
            for peer in self.to_ask(known, &parked.need) {
                let named = shared_with(known, peer, &parked.need.rooms);
                let none = || Asked { named: BTreeSet::new(), said: None };
                asked.entry(peer).or_insert_with(none).named.extend(named);
            }
            waiting.push(parked);
        }
        if asked.is_empty() {
            // All peers that could be asked are gone.
            self.next.append(&mut waiting);
            return std::mem::take(&mut self.next);
        }
        self.nonce += 1;
        self.began = Some(now);
        let (nonce, until) = (self.nonce, now + self.peers.bound(asked.keys()));
        for parked in &mut waiting {
            parked.rounds += 1;
            let all = *parked.since.get_or_insert(now) + BARRIER_WITHIN_MAX;
            parked.until = Some(until.min(all));
        }
        for (peer, asked) in &asked {
            self.ask_frontier(known, *peer, nonce, &asked.named);
        }
        self.running = Some(Running { nonce, until, asked, waiting });
        Vec::new()
    }

    /// Asks nothing, to see how long that takes.
    pub(super) fn measure(&mut self, known: &mut Known, peer: NodeId) {
        self.nonce += 1;
        let nonce = self.nonce;
        self.peers.ask(known.cx.now.mono, peer, nonce);
        // Nothing of its roster is newer than this.
        let (boot, version, rooms) = (u64::MAX, u64::MAX, Vec::new());
        known.cx.send(peer, Message::AskFrontier { nonce, boot, version, rooms });
    }

    /// At every tick.
    pub(super) fn measure_peers(&mut self, known: &mut Known) {
        if self.running.is_some() {
            return;
        }
        let now = known.cx.now.mono;
        let peers = known.cx.up.iter().copied();
        let due: Vec<NodeId> =
            peers.filter(|node| self.peers.is_to_be_measured(now, *node)).collect();
        due.into_iter().for_each(|peer| self.measure(known, peer));
    }

    fn ask_frontier(
        &mut self,
        known: &mut Known,
        peer: NodeId,
        nonce: u64,
        named: &BTreeSet<RoomId>,
    ) {
        let mut digest = |room: &RoomId| {
            let digest = known.rooms.get_mut(room)?.replica.logs.digest();
            Some(RoomDigest { room: *room, digest })
        };
        let rooms = named.iter().filter_map(&mut digest).collect();
        let (boot, version) = known.rosters.version(peer);
        self.peers.ask(known.cx.now.mono, peer, nonce);
        known.cx.send(peer, Message::AskFrontier { nonce, boot, version, rooms });
    }

    /// Takes the commands that have waited long enough for the barrier that runs. It goes on for the others.
    pub(super) fn end(&mut self, known: &Known) -> Option<Waited> {
        let now = known.cx.now.mono;
        let mut running = self.running.take()?;
        for (peer, asked) in &mut running.asked {
            strike_out(known, *peer, asked);
        }
        let open =
            |(peer, asked): &(&NodeId, &Asked)| known.cx.up.contains(peer) && !asked.is_over();
        let open: BTreeSet<NodeId> =
            running.asked.iter().filter(open).map(|(peer, _)| *peer).collect();
        let over = |parked: &mut Parked| {
            let alone = parked.need.of.filter(|peer| running.asked.contains_key(peer));
            let done = alone.map_or(open.is_empty(), |peer| !open.contains(&peer));
            done || known.stopping || parked.until.is_some_and(|until| now >= until)
        };
        let commands: Vec<Parked> = running.waiting.extract_if(.., over).collect();
        if now >= running.until {
            let silent = running
                .asked
                .iter()
                .filter(|(peer, asked)| asked.said.is_none() && open.contains(peer));
            for (peer, _) in silent {
                self.peers.leave_out(now, *peer);
            }
        }
        Some(Waited { commands, running })
    }

    /// The barrier goes on, if any command still waits for it.
    pub(super) fn resume(&mut self, running: Running) {
        if !running.waiting.is_empty() {
            self.running = Some(running);
        }
    }

    /// A command has waited. It goes on, or waits for the next barrier (`None`), if that asks for something new.
    pub(super) fn go_on(
        &mut self,
        known: &Known,
        parked: Parked,
        asked: &AskedPeers,
    ) -> Option<Parked> {
        let end = parked.since.map(|since| since + BARRIER_WITHIN_MAX);
        let in_time = end.is_none_or(|end| known.cx.now.mono < end);
        let again = in_time && parked.rounds < BARRIER_ROUNDS_MAX && !known.stopping;
        let found =
            parked.unknown.filter(|room| known.told.contains_key(room) && is_shared(known, *room));
        let contents = || found.map(|room| seeking(known, KeyPrint::OPEN, [room]));
        let need = need(known, &parked.command).or_else(contents);
        match need.filter(|need| again && self.asks_more(known, need, asked)) {
            Some(need) => {
                self.next.push(Parked { need, ..parked });
                None
            }
            None => Some(parked),
        }
    }

    /// Whether a barrier for this asks somebody for something that was not asked in the one before.
    fn asks_more(&self, known: &Known, need: &Need, asked: &AskedPeers) -> bool {
        self.to_ask(known, need).into_iter().any(|peer| {
            let named = shared_with(known, peer, &need.rooms);
            asked.get(&peer).is_none_or(|asked| !named.is_subset(&asked.named))
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
impl Barriers {
    pub(super) fn on_question(
        &mut self,
        known: &mut Known,
        roster_sync: &RosterSync,
        from: NodeId,
        question: Question,
    ) {
        let now = known.cx.now.mono;
        if !known.cx.up.contains(&from) || !self.peers.may_ask(now, from) {
            return;
        }
        // Before the answer, and by the same way: a peer that has the answer has these, too.
        let lacks = roster_sync.tell_changes(known, from, question.roster);
        if lacks && self.peers.may_have_whole(now, from) {
            let whole = known.rosters.whole();
            let message = roster_sync::signed(known, whole);
            known.cx.send(from, message);
        }
        // Each room once: an answer is much larger than a question.
        let theirs: BTreeMap<RoomId, Digest> =
            question.rooms.into_iter().map(|digest| (digest.room, digest.digest)).collect();
        let (mut rooms, mut count) = (Vec::new(), 0);
        for (id, digest) in theirs {
            if may_hear_of(known, from, id).is_none() {
                continue;
            }
            let Some(room) = known.rooms.get_mut(&id) else { continue };
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
        let (boot, version) = known.rosters.version(known.cx.me);
        let nonce = question.nonce;
        known.cx.send(from, Message::Frontier { nonce, boot, version, rooms });
    }

    pub(super) fn on_answer(&mut self, known: &mut Known, from: NodeId, answer: Answer) {
        let Answer { nonce, roster, mut rooms } = answer;
        if !self.peers.answer(known.cx.now.mono, from, nonce) {
            // An earlier question may have been answered late.
            known.cx.faults.stray += u64::from(nonce > self.nonce);
            return;
        }
        // Too late: the commands that waited have gone on.
        let running = self.running.as_mut().filter(|running| running.nonce == nonce);
        let Some(asked) = running.and_then(|asked| asked.asked.get_mut(&from)) else { return };
        rooms.retain(|room| asked.named.contains(&room.room));
        asked.said = Some((roster, rooms.clone()));
        for heads in rooms {
            known.cx.to_advance.insert(heads.room);
            if let Some(room) = known.rooms.get_mut(&heads.room) {
                room.on_have(&mut known.cx, from, &heads.heads, false);
            }
        }
        let (boot, version) = known.rosters.version(from);
        if (boot, version) < roster {
            // News that should have come before this were lost on the way.
            known.cx.send(from, Message::WantRoster { node: from, boot, version, nonce: None });
        }
    }
}

/// Things that a client names of an agent's rooms are looked for in the directories.
fn seeking(known: &Known, key: KeyPrint, rooms: impl IntoIterator<Item = RoomId>) -> Need {
    let sealed = known.cx.followers.directories_of(key);
    let directories = [RoomId::directory(known.cx.mesh)].into_iter().chain(sealed);
    let rooms = directories.chain(rooms).take(BARRIER_ROOMS_MAX).collect();
    Need { why: Why::Seeks, rooms, of: None, came: false, unknown: None }
}

/// Entries that came to a room have not been looked into before the end of this turn.
fn came_just_now(known: &Known, room: RoomId) -> Option<Need> {
    let (why, rooms, of, unknown) = (Why::Seeks, BTreeSet::new(), None, None);
    let active = known.cx.to_advance.contains(&room);
    active.then_some(Need { why, rooms, of, came: true, unknown })
}

/// A room that is not known.
fn room_itself(known: &Known, key: KeyPrint, room: RoomId) -> Option<Need> {
    let told = known.told.contains_key(&room);
    // One that is listed and not shown yet may be asked for: those who have it are known.
    let unread = known.is_unread(room).then_some(room);
    (!told).then(|| Need { unknown: Some(room), ..seeking(known, key, unread) })
}

/// Whether other nodes have it, too.
fn is_shared(known: &Known, room: RoomId) -> bool {
    known.rooms.get(&room).is_some_and(|room| !room.replica.record.local)
}

/// A room that is not known, or in which something is not.
fn inside(known: &Known, key: KeyPrint, room: RoomId, here: bool) -> Option<Need> {
    let unknown = room_itself(known, key, room);
    unknown.or_else(|| (!here && is_shared(known, room)).then(|| seeking(known, key, [room])))
}

/// Everybody who is in a room, if the caller may begin something there.
fn everybody(known: &Known, caller: &Caller, room: RoomId) -> Option<Need> {
    if let Some(unknown) = room_itself(known, caller.key, room) {
        return Some(unknown);
    }
    let begins = is_shared(known, room) && known.may_act(caller, room).is_ok();
    begins.then(|| Need { why: Why::Begins, ..seeking(known, caller.key, [room]) })
}

fn is_electing(
    known: &Known,
    room: RoomId,
    which: impl Fn(&crate::fold::elections::Election) -> bool,
) -> bool {
    let running =
        known.rooms.get(&room).and_then(|room| room.folds.elections.running(known.cx.now.mono));
    running.is_some_and(which)
}

fn elsewhere(
    known: &Known,
    key: KeyPrint,
    rooms: Vec<RoomId>,
    whereabouts: Whereabouts,
) -> Option<Need> {
    match whereabouts {
        Whereabouts::Nowhere | Whereabouts::Here(..) => None,
        Whereabouts::Ahead(room, author) => {
            Some(Need { of: Some(author), ..seeking(known, key, [room]) })
        }
        Whereabouts::Unknown => Some(seeking(known, key, rooms)),
    }
}

fn whereabouts(known: &Known, id: MessageId, rooms: &[RoomId]) -> Whereabouts {
    let logs = rooms.iter().filter_map(|id| known.rooms.get(id)).flat_map(|room| {
        let written = room.replica.logs.iter().map(|(_, log)| log.id);
        // A peer's first entry in a room begins a log that is not known yet.
        let nodes =
            known.cx.up.iter().chain([&known.cx.me]).filter(|_| !room.replica.record.ephemeral);
        let first = nodes.map(|node| LogId { author: *node, incarnation: 0 });
        written
            .chain(first.filter(|log| room.replica.logs.ix(*log).is_none()))
            .map(move |log| (room, log))
    });
    for (room, log) in logs.take(ID_LOGS_MAX) {
        let Some(seq) = id.seq_in(room.replica.id, log) else { continue };
        return match room.replica.logs.ix(log).filter(|_| seq <= room.replica.logs.head_of(log)) {
            Some(log) => Whereabouts::Here(room.replica.id, LocalRef { log, seq }),
            None if log.author == known.cx.me => Whereabouts::Nowhere,
            None => Whereabouts::Ahead(room.replica.id, log.author),
        };
    }
    Whereabouts::Unknown
}

/// A vote or a task, which is in some room of the agent's.
fn entry(known: &Known, key: KeyPrint, agent: &AgentId, id: MessageId) -> Option<Need> {
    let seats = &known.rosters.own(agent)?.rooms;
    let mut rooms: Vec<(u64, RoomId)> =
        seats.iter().map(|(room, seat)| (seat.joined, *room)).collect();
    rooms.sort_unstable();
    let rooms = rooms.into_iter().rev().map(|(_, room)| room);
    let rooms: Vec<RoomId> =
        rooms.filter(|shared| is_shared(known, *shared)).take(ID_ROOMS_MAX).collect();
    match whereabouts(known, id, &rooms) {
        Whereabouts::Here(room, _) => came_just_now(known, room),
        place @ (Whereabouts::Nowhere | Whereabouts::Ahead(..) | Whereabouts::Unknown) => {
            elsewhere(known, key, rooms, place)
        }
    }
}

/// A message: here, and it has its number.
fn message_in(known: &Known, caller: &Caller, room: RoomId, id: MessageId) -> Option<Need> {
    let key = caller.key;
    if !is_shared(known, room) || known.may_read(&caller.reader(), room).is_err() {
        return None;
    }
    match whereabouts(known, id, &[room]) {
        Whereabouts::Here(room, at) => {
            let waits = known.rooms.get(&room)?.order.numbering.undelivered.contains_key(&at);
            came_just_now(known, room).or_else(|| waits.then(|| seeking(known, key, [room])))
        }
        place @ (Whereabouts::Nowhere | Whereabouts::Ahead(..) | Whereabouts::Unknown) => {
            elsewhere(known, key, vec![room], place)
        }
    }
}

/// A key that is not known, or an id that is taken as far as is known.
fn who_may_come(known: &Known, attach: &Attach) -> Option<Need> {
    let unknown = known.standing(attach.key, attach.own) == Err(Refused::NoKey);
    let elsewhere = known.rosters.record(&attach.agent).filter(|(at, _)| *at != known.cx.me);
    let taken = elsewhere.is_some_and(|(_, record)| !attach.reconnect || record.key != attach.key);
    let stranger = || Need { why: Why::Stranger, ..seeking(known, attach.key, []) };
    (unknown || taken).then(stranger)
}

/// The thing that a command has to wait for; `None` if it is answered from the present state.
fn need(known: &Known, command: &Command) -> Option<Need> {
    match command.traits().names {
        Names::Nothing => None,
        Names::Room { key, room } => room_itself(known, key, room),
        Names::Message { caller, room, message } => {
            let itself = room_itself(known, caller.key, room);
            itself.or_else(|| message_in(known, caller, room, message))
        }
        Names::Voters { caller, room } => everybody(known, caller, room),
        Names::Candidates { caller, room } => {
            let running = is_electing(known, room, |_| true);
            everybody(known, caller, room).filter(|_| !running)
        }
        Names::Election { key, room } => {
            let open = is_electing(known, room, |running| running.is_open(known.cx.now.mono));
            inside(known, key, room, open)
        }
        Names::Leader { caller, room } => {
            let leads = elections::led_by(known, room, &caller.agent).is_some();
            inside(known, caller.key, room, leads)
        }
        Names::Vote { key, agent, vote } => {
            let here = known.index.votes.contains_key(&vote);
            if here { None } else { entry(known, key, agent?, vote) }
        }
        Names::Task { caller, task } => {
            let here = known.index.tasks.contains_key(&task);
            if here { None } else { entry(known, caller.key, &caller.agent, task) }
        }
        Names::Agent { caller, agent } => {
            let unknown = pairs::key_of(known, caller, agent).is_none();
            unknown.then(|| seeking(known, caller.key, []))
        }
        Names::Key(attach) => who_may_come(known, attach),
        Names::Account(account) => {
            let unknown = !known.directory.accounts.is_known(account);
            let stranger = || Need { why: Why::Stranger, ..seeking(known, account, []) };
            unknown.then(stranger)
        }
    }
}

/// A room that a peer may be told of, and asked about.
fn may_hear_of(known: &Known, peer: NodeId, room: RoomId) -> Option<&Room> {
    known
        .rooms
        .get(&room)
        .filter(|room| !room.replica.record.local && room.replica.is_kept_by(&known.cx, peer))
}

/// Those of these rooms that a peer has, as far as is known here.
fn shared_with(known: &Known, peer: NodeId, rooms: &BTreeSet<RoomId>) -> BTreeSet<RoomId> {
    rooms.iter().copied().filter(|room| may_hear_of(known, peer, *room).is_some()).collect()
}

/// Strikes out heads that a peer has named and that are here, or do not count, or were never to be had.
fn strike_out(known: &Known, peer: NodeId, asked: &mut Asked) {
    let Some((roster, rooms)) = &mut asked.said else { return };
    if known.rosters.version(peer) >= *roster {
        *roster = (0, 0);
    }
    rooms.retain_mut(|heads| {
        let Some(room) = known.rooms.get(&heads.room) else { return false };
        heads.heads.retain(|head| {
            let worth = room.replica.worth_having(&known.cx, head.log, head.seq);
            room.replica.takes_more(&known.cx, head.log)
                && room.replica.logs.head_of(head.log) < worth
        });
        !heads.heads.is_empty()
    });
}

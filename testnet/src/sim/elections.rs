//! Elections in a simulated world: agents start them, decline, and decide as leaders or try to.
//!
//! *leaders decide*: a decision is written by an agent that its node has told to be the leader, and such
//! a one is not refused. (That what is written is delivered everywhere or nowhere, and survives, decisions
//! share with messages: [`super::promises`].) *one leader*: in the end every node names the same leader of
//! every room, its members were told that one, and it is in the room, where it was elected. *terms*: a node's
//! leaders follow each other by rising terms, and in the end nobody of a lower term leads. *elections
//! end*: where nothing fails, no election stands in the way of another for long; and once everybody is
//! there again somebody is elected who did not decline, and cleared when it leaves or its node dies.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Effect, Input,
    api::{
        agenda::LeaderView,
        batch::Change,
        command::{CallId, Caller, Command, Encryption, Outcome, Refused, RoomInfo, Say, Speech},
        event::RoomEvent,
    },
    name::id::{AgentId, EntryRef, RoomId},
    wire::{
        acts::ElectionAct,
        entry::{Body, DedupId},
        kinds,
    },
};

use super::{
    agents::KEY,
    plan::Fault,
    promises::{Broken, Entry, broken},
    world::World,
};

/// How long an election takes at most that nothing disturbs: the window, two steps of a second each, and
/// what digests take.
const DONE_WITHIN: Duration = Duration::from_secs(6);
/// How long it takes until all know that a leader's node is gone: the lease, a rank or two, digests.
const GONE_WITHIN: Duration = Duration::from_secs(6);

/// What a call was for.
#[derive(Clone, Debug)]
enum Asked {
    Start(RoomId),
    Decline(AgentId),
    /// And since when that one leads as far as its members were told.
    Decide {
        room: RoomId,
        agent: AgentId,
        led_since: Option<Duration>,
    },
    Leader(RoomId),
}

/// A call that was not answered yet.
#[derive(Debug)]
struct Open {
    node: usize,
    at: Duration,
    asked: Asked,
}

/// What the members at one node were told of a room's leader.
#[derive(Clone, Debug)]
struct Told {
    leader: Option<AgentId>,
    since: Duration,
}

/// An election that was started.
#[derive(Clone, Debug)]
struct Started {
    term: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Elections {
    asked: BTreeMap<CallId, Open>,
    started: BTreeMap<(RoomId, EntryRef), Started>,
    /// When the last one began, by room. Acts of ephemeral rooms are in no row: these are not here.
    last: BTreeMap<RoomId, Duration>,
    cleared: BTreeSet<(RoomId, EntryRef)>,
    /// Elections by their closes.
    closed: BTreeMap<(RoomId, EntryRef), EntryRef>,
    /// Elections of which several nodes said how they end, or that somebody dropped out.
    disputed: BTreeSet<(RoomId, EntryRef)>,
    /// Decisions that were written.
    written: BTreeSet<(RoomId, Entry)>,
    told: BTreeMap<(usize, RoomId), Told>,
    /// Rooms of nodes that have started since: nobody was told there who leads them.
    untold: BTreeSet<(usize, RoomId)>,
    /// Rooms in which members were told of a leader, whoever began the election: a liar's are in no row.
    led: BTreeSet<RoomId>,
    /// The highest term of a leader that each node has named.
    terms: BTreeMap<(usize, RoomId), u64>,
    /// What each node says of the room that is asked about.
    views: BTreeMap<usize, RoomInfo>,
    /// Who declined since this was last emptied.
    declined: BTreeSet<AgentId>,
    candidates: usize,
    /// Decisions that were acknowledged, and leaders that were told.
    pub(super) decided: usize,
    pub(super) elected: u64,
}

impl Elections {
    /// Calls that were open are never answered, and whoever comes is told nothing of what was.
    pub(super) fn node_down(&mut self, node: usize) {
        self.asked.retain(|_, it| it.node != node);
        self.told.retain(|(at, _), _| *at != node);
        self.untold.retain(|(at, _)| *at != node);
    }

    /// Calls made before now that nobody answered though their node lives. Whoever is told of a leader asks who it is,
    /// at whatever moment that is.
    pub(super) fn open(&self, now: Duration) -> usize {
        self.asked.values().filter(|it| it.at < now).count()
    }

    pub(super) fn made(&self) -> usize {
        self.started.len()
    }

    /// The room of a decision that is waiting for its answer.
    pub(super) fn said_in(&self, call: CallId) -> Option<RoomId> {
        match self.asked.get(&call)?.asked {
            Asked::Decide { room, .. } => Some(room),
            Asked::Start(_) | Asked::Decline(_) | Asked::Leader(_) => None,
        }
    }

    /// An ephemeral room ended at a node. If it comes back there, nobody leads it as far as members know.
    pub(super) fn forgot(&mut self, node: usize, room: RoomId) {
        self.told.remove(&(node, room));
        self.untold.remove(&(node, room));
    }

    fn rooms(&self) -> BTreeSet<RoomId> {
        self.started.keys().map(|(room, _)| *room).collect()
    }

    /// Since when an agent leads, as far as members at this node know.
    fn led_since(&self, node: usize, room: RoomId, agent: &AgentId) -> Option<Duration> {
        let told = self.told.get(&(node, room))?;
        (told.leader.as_ref() == Some(agent)).then_some(told.since)
    }
}

/// What agents do.
impl World {
    fn ask_of_elections(&mut self, node: usize, asked: Asked, command: Command) {
        let call = self.call();
        self.elections.asked.insert(call, Open { node, at: self.now, asked });
        self.give(node, Input::Command { call, command });
    }

    /// An agent starts an election, declines, or decides.
    pub(super) fn elect_some(&mut self, i: usize) {
        let Some((node, caller)) = self.agents.caller(i) else { return };
        let rooms = self.agents.rooms_of(i);
        if rooms.is_empty() {
            return;
        }
        // Few rooms, so that some have a leader for a while.
        let lobby = RoomId::lobby(self.secret.mesh_id());
        let some = *self.dice.pick(&rooms);
        let room = if self.dice.chance(60) && rooms.contains(&lobby) { lobby } else { some };
        match self.dice.within(0, 9) {
            0 => self.start_election((node, caller), room),
            1 | 2 => self.decline((node, caller), room),
            3..=7 => self.let_leader_decide((node, caller), room),
            _ => self.decide((node, caller), room),
        }
    }

    fn start_election(&mut self, (node, caller): (usize, Caller), room: RoomId) {
        self.ask_of_elections(node, Asked::Start(room), Command::ElectLeader { caller, room });
    }

    fn decline(&mut self, (node, caller): (usize, Caller), room: RoomId) {
        let asked = Asked::Decline(caller.agent.clone());
        self.ask_of_elections(node, asked, Command::Decline { caller, room });
    }

    /// Whoever some node says is the leader decides; if there is none, an election begins.
    fn let_leader_decide(&mut self, by: (usize, Caller), room: RoomId) {
        let leader = self.elections.told.get(&(by.0, room)).and_then(|it| it.leader.clone());
        let Some(leader) = leader else { return self.start_election(by, room) };
        let callers = (0..self.agents.count()).filter_map(|i| self.agents.caller(i));
        if let Some(by) = callers.into_iter().find(|(_, it)| it.agent == leader) {
            self.decide(by, room);
        }
    }

    fn decide(&mut self, (node, caller): (usize, Caller), room: RoomId) {
        self.messages += 1;
        let n = self.messages;
        let dedup = self.dice.chance(50);
        let say = Say {
            room,
            speech: Speech::Decision,
            content: format!("decision {n}"),
            encryption: Encryption::None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: dedup.then(|| DedupId::new(KEY, &caller.agent, &format!("decision {n}"))),
        };
        let agent = caller.agent.clone();
        let led_since = self.elections.led_since(node, room, &agent);
        let asked = Asked::Decide { room, agent, led_since };
        self.ask_of_elections(node, asked, Command::Say { caller, say });
    }

    /// After a start members are told nothing of leaders that were there before.
    pub(super) fn ask_who_leads(&mut self, node: usize) {
        let mut rooms = self.elections.rooms();
        rooms.extend(&self.elections.led);
        for room in rooms {
            self.elections.untold.insert((node, room));
            self.ask_leader(node, room);
        }
    }

    fn ask_leader(&mut self, node: usize, room: RoomId) {
        let command = Command::RoomInfo { key: KEY, room };
        self.ask_of_elections(node, Asked::Leader(room), command);
    }

    /// Whether the call was about elections; and if so what the answer says.
    pub(super) fn election_replied(
        &mut self,
        node: usize,
        call: CallId,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        let Some(Open { asked, .. }) = self.elections.asked.remove(&call) else { return Ok(false) };
        self.agents.answered += 1;
        self.agents.refused += u64::from(result.is_err());
        match (asked, result) {
            (Asked::Start(_), Ok(Outcome::Candidates(candidates))) => {
                self.elections.candidates = candidates.len();
            }
            (Asked::Start(room), Err(Refused::ElectionRuns)) => self.may_still_run(node, room)?,
            (Asked::Decline(agent), Ok(Outcome::Done)) => {
                self.elections.declined.insert(agent);
            }
            (Asked::Decide { .. }, Ok(Outcome::Said(_))) => self.elections.decided += 1,
            (Asked::Decide { room, agent, led_since }, Err(Refused::NotLeader)) => {
                let leads = led_since.is_some()
                    && self.elections.led_since(node, room, &agent) == led_since;
                if leads && !self.is_exempt(node) {
                    let text = format!("node{node}: {agent} leads {room} and may not decide");
                    return broken("leaders decide", text);
                }
            }
            (Asked::Leader(room), Ok(Outcome::RoomInfo(info))) => {
                self.leader_named(node, room, info)?;
            }
            (Asked::Leader(room), Err(Refused::NoRoom)) => {
                self.elections.untold.remove(&(node, room));
            }
            (asked, Err(refused)) if may_be_refused(&asked, refused) => {}
            (_, Err(_)) if self.is_exempt(node) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }
}

/// What else may be in the way: the room ended, the agent lost its seat or its connection, or the
/// election that it knew of is over.
fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    let declines = matches!(asked, Asked::Decline(..));
    matches!(
        refused,
        Refused::NoRoom
            | Refused::NotMember
            | Refused::Superseded
            | Refused::Closed
            | Refused::Stopping
    ) || (declines && *refused == Refused::NoElection)
}

/// What must hold at every moment.
impl World {
    /// *elections end*, where nothing fails and nobody begins any that cannot end.
    fn may_still_run(&self, node: usize, room: RoomId) -> Result<(), Broken> {
        let undisturbed = self.plan.calm && self.plan.faults.is_empty() && self.liar.is_none();
        match self.elections.last.get(&room) {
            Some(since) if undisturbed && self.now > *since + DONE_WITHIN => {
                let text = format!("node{node}: one still runs in {room}, begun at {since:?}");
                broken("elections end", text)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A step of an election is durable at a node.
    pub(super) fn election_stored(&mut self, (room, place): (RoomId, EntryRef), act: &ElectionAct) {
        match act {
            ElectionAct::Started(it) => {
                let started = Started { term: it.term };
                if self.elections.started.insert((room, place), started).is_none() {
                    self.elections.last.insert(room, self.now);
                    self.say(|| format!("an election of term {} begins in {room}", it.term));
                }
            }
            ElectionAct::Cleared { election } => {
                self.elections.cleared.insert((room, *election));
            }
            ElectionAct::Closed { election, .. } => {
                let closed = &mut self.elections.closed;
                closed.insert((room, place), *election);
                let same =
                    |(at, it): &(&(RoomId, EntryRef), &EntryRef)| at.0 == room && *it == election;
                if closed.iter().filter(same).count() > 1 {
                    self.elections.disputed.insert((room, *election));
                }
            }
            ElectionAct::Dropped { closed, .. } => {
                let election = self.elections.closed.get(&(room, *closed));
                self.elections.disputed.extend(election.map(|it| (room, *it)));
            }
            ElectionAct::Committed { .. }
            | ElectionAct::Declined { .. }
            | ElectionAct::Shown { .. } => {}
        }
    }

    /// *leaders decide*: what a turn comes to, before anybody else sees it.
    pub(super) fn judge_decisions(
        &mut self,
        node: usize,
        (batch, effects): (&[Change], &[Effect]),
    ) -> Result<(), Broken> {
        let elected: Vec<(RoomId, &RoomEvent)> = effects
            .iter()
            .filter_map(|it| {
                if let Effect::Notify { room, event } = it { Some((*room, event)) } else { None }
            })
            .collect();
        // What was written of a room that ended in the same turn never was.
        let ended = |room: &RoomId| {
            batch.iter().any(|it| matches!(it, Change::Drop { room: dropped } if dropped == room))
        };
        for change in batch {
            let Change::Entry { room, at, entry } = change else { continue };
            if entry.facts.kind != kinds::DECISION || self.is_exempt(node) || ended(room) {
                continue;
            }
            let written = self.entry(node, *room, *at)?;
            let own = written.0.author == self.nodes[node].id;
            // What it has lost with its memory comes back from others.
            if !self.elections.written.insert((*room, written)) || !own {
                continue;
            }
            let Some(said) = Body::decode(entry.facts.kind, &entry.body).said() else { continue };
            let leads = self.elections.led_since(node, *room, &said.agent).is_some()
                || elected.iter().any(|(in_room, event)| {
                    in_room == room
                        && matches!(event, RoomEvent::LeaderElected { agent, .. } if *agent == said.agent)
                });
            if !leads {
                let told = self.elections.told.get(&(node, *room));
                let text =
                    format!("node{node}: {} decides in {room}, leader is {told:?}", said.agent);
                return broken("leaders decide", text);
            }
        }
        for (room, event) in elected {
            if let RoomEvent::LeaderElected { agent, .. } = event {
                self.leader_told(node, room, Some(agent.clone()));
            } else if let RoomEvent::LeaderCleared { .. } = event {
                self.leader_told(node, room, None);
            }
        }
        Ok(())
    }

    fn leader_told(&mut self, node: usize, room: RoomId, leader: Option<AgentId>) {
        self.say(|| format!("node{node}: the leader of {room} is {leader:?}"));
        self.elections.untold.remove(&(node, room));
        if leader.is_some() {
            self.elections.elected += 1;
            self.elections.led.insert(room);
            self.ask_leader(node, room);
        }
        self.elections.told.insert((node, room), Told { leader, since: self.now });
    }

    /// *terms*.
    fn leader_named(&mut self, node: usize, room: RoomId, info: &RoomInfo) -> Result<(), Broken> {
        self.elections.views.insert(node, info.clone());
        if self.elections.untold.remove(&(node, room)) {
            let leader = info.leader.as_ref().map(|it| it.agent.clone());
            self.elections.told.insert((node, room), Told { leader, since: self.now });
        }
        let Some(LeaderView { agent, term, .. }) = &info.leader else { return Ok(()) };
        let judged = self.is_honest() && !self.promises.ephemeral.contains(&room);
        let highest = self.elections.terms.get(&(node, room)).copied().unwrap_or_default();
        // A second close may leave one open again that was over by the first.
        if *term < highest && judged && !self.is_disputed(room, highest) {
            let text = format!("node{node}: {agent} leads {room} in term {term}, after {highest}");
            return broken("terms", text);
        }
        self.elections.terms.insert((node, room), *term);
        Ok(())
    }
}

/// What must hold in the end.
impl World {
    /// *one leader* of every room that is still there.
    pub(super) fn leaders_converge(&mut self) -> Result<(), Broken> {
        for room in self.elections.rooms() {
            if !self.promises.ephemeral.contains(&room) {
                self.leader_of(room)?;
            }
        }
        Ok(())
    }

    /// *one leader* where somebody has parted: all others name the same.
    pub(super) fn others_name_the_same_leaders(&mut self) -> Result<(), Broken> {
        for room in self.elections.rooms() {
            if self.promises.ephemeral.contains(&room) {
                continue;
            }
            let views = self.views_of_leader(room)?.into_iter();
            let mut others = views.filter(|(node, _)| !self.is_exempt(*node));
            let Some((_, first)) = others.next() else { continue };
            if let Some((node, view)) = others.find(|(_, view)| view.leader != first.leader) {
                let (says, not) = (view.leader, first.leader);
                let text = format!("of {room} node{node} says {says:?}, not {not:?}");
                return broken("one leader", text);
            }
        }
        Ok(())
    }

    /// Whom all nodes that run name.
    fn leader_of(&mut self, room: RoomId) -> Result<Option<LeaderView>, Broken> {
        let up = (0..self.nodes.len()).filter(|it| self.nodes[*it].running.is_some()).count();
        let views = self.views_of_leader(room)?;
        if views.len() < up {
            return broken("one leader", format!("only {} nodes know {room}", views.len()));
        }
        let first = views.values().next().and_then(|it| it.leader.clone());
        for (node, view) in &views {
            if view.leader != first {
                let text = format!("of {room} node{node} says {:?}, not {first:?}", view.leader);
                return broken("one leader", text);
            }
            let told = self.elections.told.get(&(*node, room)).and_then(|it| it.leader.clone());
            if told != first.as_ref().map(|it| it.agent.clone()) {
                let text =
                    format!("node{node} told {told:?} in {room}, and the leader is {first:?}");
                return broken("one leader", text);
            }
            let seated = |it: &LeaderView| {
                view.agents.iter().any(|agent| agent.agent == it.agent && agent.node == it.node)
            };
            if first.as_ref().is_some_and(|it| !seated(it)) {
                return broken("one leader", format!("{first:?} of {room} is not there"));
            }
        }
        self.highest_term_stays(room, first.as_ref())?;
        Ok(first)
    }

    /// What every node that runs says, if it says anything.
    fn views_of_leader(&mut self, room: RoomId) -> Result<BTreeMap<usize, RoomInfo>, Broken> {
        self.elections.views.clear();
        for node in
            (0..self.nodes.len()).filter(|it| self.nodes[*it].running.is_some()).collect::<Vec<_>>()
        {
            self.ask_leader(node, room);
        }
        let until = self.now + Duration::from_millis(20);
        self.run_until(until)?;
        Ok(std::mem::take(&mut self.elections.views))
    }

    /// Whether several nodes said how an election of this term ends, or somebody dropped out.
    fn is_disputed(&self, room: RoomId, term: u64) -> bool {
        let Elections { started, disputed, .. } = &self.elections;
        let mut of_room = disputed.iter().filter(|(it, _)| *it == room);
        of_room.any(|it| started.get(it).is_some_and(|it| it.term == term))
    }

    /// *terms*: whom somebody has named a leader stays, unless it was cleared or a higher term began; or
    /// by another close of that election, or without those who dropped out, nobody stood; or another election
    /// of that term, begun on the other side of a split, goes before, and nobody stood in that.
    fn highest_term_stays(&self, room: RoomId, leader: Option<&LeaderView>) -> Result<(), Broken> {
        let named = self.elections.terms.iter().filter(|((_, it), _)| *it == room);
        let Some(highest) = named.map(|(_, term)| *term).max() else { return Ok(()) };
        let mut started = self.elections.started.iter().filter(|((it, _), _)| *it == room);
        let twice = started.clone().filter(|(_, it)| it.term == highest).count() > 1;
        let over = |(place, it): (&(RoomId, EntryRef), &Started)| {
            let Elections { cleared, disputed, .. } = &self.elections;
            let ended = cleared.contains(place) || disputed.contains(place);
            it.term > highest || (it.term == highest && ended)
        };
        let good = match leader {
            Some(leader) => leader.term >= highest,
            None => twice || started.any(over),
        };
        if good {
            return Ok(());
        }
        broken("terms", format!("of {room} there was a leader of term {highest}, now {leader:?}"))
    }

    /// *elections end*: an election that everybody can take part in.
    pub(super) fn everybody_elects(&mut self) -> Result<Electing, Broken> {
        let room = RoomId::lobby(self.secret.mesh_id());
        let agents = 0..self.agents.count();
        let callers: Vec<(usize, Caller)> = agents.filter_map(|i| self.agents.caller(i)).collect();
        let starter = self.dice.index(callers.len());
        self.elections.declined.clear();
        self.elections.candidates = 0;
        self.start_election(callers[starter].clone(), room);
        let until = self.now + Duration::from_millis(500);
        self.run_until(until)?;
        if self.elections.candidates < callers.len() {
            let text = format!("only {} of all stand", self.elections.candidates);
            return broken("elections end", text);
        }
        for (i, by) in callers.iter().enumerate() {
            if i != starter && self.dice.chance(40) {
                self.decline(by.clone(), room);
            }
        }
        Ok(Electing { room, callers, done: until + DONE_WITHIN })
    }

    /// What that came to, what the leader and others can do then, and what becomes of it when it goes.
    pub(super) fn elected_leads(&mut self, it: &Electing) -> Result<(), Broken> {
        let until = self.now.max(it.done);
        self.run_until(until)?;
        let leader = self.leader_of(it.room)?;
        let declined = self.elections.declined.clone();
        let Some(leader) = leader else {
            // Without gossip a refusal may come too late: it is elected, and then cleared.
            let late = !self.plan.gossip && !declined.is_empty();
            let text = format!("nobody was elected, and of all only {declined:?} declined");
            return if late { Ok(()) } else { broken("elections end", text) };
        };
        if declined.contains(&leader.agent) {
            return broken("elections end", format!("{} declined and leads", leader.agent));
        }
        let before = self.elections.decided;
        for by in &it.callers {
            self.decide(by.clone(), it.room);
        }
        let until = self.now + Duration::from_secs(2);
        self.run_until(until)?;
        if self.elections.decided != before + 1 {
            let text = format!("{} decided, not one", self.elections.decided - before);
            return broken("leaders decide", text);
        }
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.id).collect();
        self.promises
            .complete(&nodes, it.room, |node, entry| self.is_gone(node, it.room, entry))?;
        self.leader_goes(it, &leader)
    }

    fn leader_goes(&mut self, it: &Electing, leader: &LeaderView) -> Result<(), Broken> {
        let Some(i) = it.callers.iter().position(|(_, by)| by.agent == leader.agent) else {
            return broken("elections end", format!("{leader:?} is nobody"));
        };
        let home = it.callers[i].0;
        let (dies, wait) = match self.dice.chance(50) {
            true => (true, GONE_WITHIN),
            false => (false, Duration::from_secs(3)),
        };
        if dies {
            self.fault(Fault::Crash(home))?;
        } else {
            self.leave(i, it.room);
        }
        let until = self.now + wait;
        self.run_until(until)?;
        if let Some(it) = self.leader_of(it.room)? {
            return broken("elections end", format!("{it:?} is gone and leads"));
        }
        if dies {
            self.fault(Fault::Start(home))?;
            let until = self.now + Duration::from_secs(2);
            self.run_until(until)?;
            if let Some(it) = self.leader_of(it.room)? {
                return broken("elections end", format!("{it:?} was cleared and leads"));
            }
        }
        Ok(())
    }
}

/// An election of everybody, under way.
#[derive(Debug)]
pub(super) struct Electing {
    room: RoomId,
    callers: Vec<(usize, Caller)>,
    /// When it should be over.
    done: Duration,
}

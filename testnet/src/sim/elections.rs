//! Elections in a simulated world: agents start them, decline, and decide as leaders or try to.
//!
//! *leaders decide*: a decision is written by an agent that its node has told to be the leader, and such
//! a one is not refused. (That an entry is delivered everywhere or nowhere, and survives, decisions
//! share with messages: [`super::promises`].) *one leader*: in the end every node names the same leader of
//! every room, its members were told that one, and it is in the room, where it was elected. *terms*: a node's
//! leaders follow each other by rising terms, and in the end nobody of a lower term leads. *elections
//! end*: where nothing fails, no election stands in the way of another for long; and once everybody is
//! there again an agent is elected that did not decline, and cleared when it leaves or its node dies.

pub(super) mod end;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Effect, Turn,
    api::{
        agenda::LeaderView,
        batch::Change,
        command::{Command, Outcome, Refused, RoomInfo, Say, Speech},
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
    agents::{Agents, say},
    cluster::Cluster,
    keys::KEY,
    parts::{Desk, Matter, Seated, Written},
    promises::{Broken, Entry, broken},
};

/// How long an election takes at most that nothing disturbs: the window, two steps of a second each, and
/// the exchange of digests.
const DONE_WITHIN: Duration = Duration::from_secs(6);

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(super) enum Asked {
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

/// A room's leader, as members at one node were told.
#[derive(Clone, Debug)]
struct Announced {
    leader: Option<AgentId>,
    since: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Elections {
    desk: Desk<Asked, RoomInfo>,
    /// Elections that were started, and their terms.
    started: BTreeMap<(RoomId, EntryRef), u64>,
    /// When the last one began, by room. Acts of ephemeral rooms are in no row: these are not here.
    last: BTreeMap<RoomId, Duration>,
    cleared: BTreeSet<(RoomId, EntryRef)>,
    /// Elections by their closes.
    closed: BTreeMap<(RoomId, EntryRef), EntryRef>,
    /// Elections of which several nodes said how they end, or from which an agent dropped out.
    disputed: BTreeSet<(RoomId, EntryRef)>,
    /// Decisions that were written.
    written: BTreeSet<(RoomId, Entry)>,
    told: BTreeMap<(usize, RoomId), Announced>,
    /// Rooms of nodes that have started since: nobody was told who leads them.
    untold: BTreeSet<(usize, RoomId)>,
    /// Rooms in which members were told of a leader. A liar's elections are in no row.
    led: BTreeSet<RoomId>,
    /// The highest term of a leader that each node has named.
    terms: BTreeMap<(usize, RoomId), u64>,
    /// Agents that declined since this was last emptied.
    declined: BTreeSet<AgentId>,
    candidates: usize,
    /// Decisions that were acknowledged.
    pub(super) decided: usize,
    /// Leaders that were told.
    pub(super) elected: u64,
}

impl Elections {
    pub(super) fn made(&self) -> usize {
        self.started.len()
    }

    fn rooms(&self) -> BTreeSet<RoomId> {
        self.started.keys().map(|(room, _)| *room).collect()
    }

    /// Since when an agent leads, as far as members at this node know.
    fn led_since(&self, node: usize, room: RoomId, agent: &AgentId) -> Option<Duration> {
        let told = self.told.get(&(node, room))?;
        (told.leader.as_ref() == Some(agent)).then_some(told.since)
    }

    fn leader_told(&self, node: usize, room: RoomId) -> Option<AgentId> {
        self.told.get(&(node, room)).and_then(|told| told.leader.clone())
    }
}

/// Acts of agents.
impl Elections {
    /// An agent starts an election, declines, or decides.
    pub(super) fn act(&mut self, cluster: &mut Cluster, agents: &Agents, i: usize) {
        let Some(by) = agents.seated(i) else { return };
        let rooms = agents.rooms_of(i);
        if rooms.is_empty() {
            return;
        }
        // Few rooms, so that some have a leader for a while.
        let lobby = cluster.lobby();
        let some = *cluster.dice.pick(&rooms);
        let room = if cluster.dice.chance(60) && rooms.contains(&lobby) { lobby } else { some };
        match cluster.dice.within(0, 9) {
            0 => self.start(cluster, by, room),
            1 | 2 => self.decline(cluster, by, room),
            3..=7 => self.let_leader_decide(cluster, agents, by, room),
            _ => self.decide(cluster, by, room),
        }
    }

    fn start(&mut self, cluster: &mut Cluster, by: Seated, room: RoomId) {
        let command = Command::ElectLeader { caller: by.caller, room };
        self.desk.calls.ask(cluster, by.node, Asked::Start(room), command);
    }

    fn decline(&mut self, cluster: &mut Cluster, by: Seated, room: RoomId) {
        let asked = Asked::Decline(by.caller.agent.clone());
        let command = Command::Decline { caller: by.caller, room };
        self.desk.calls.ask(cluster, by.node, asked, command);
    }

    /// The leader that a node has told decides; if there is none, an election begins.
    fn let_leader_decide(
        &mut self,
        cluster: &mut Cluster,
        agents: &Agents,
        by: Seated,
        room: RoomId,
    ) {
        let Some(leader) = self.leader_told(by.node, room) else {
            return self.start(cluster, by, room);
        };
        let mut all = agents.all_seated().into_iter();
        if let Some(by) = all.find(|by| by.caller.agent == leader) {
            self.decide(cluster, by, room);
        }
    }

    fn decide(&mut self, cluster: &mut Cluster, by: Seated, room: RoomId) {
        let Seated { node, caller } = by;
        let n = cluster.text();
        let dedup = cluster.dice.chance(50);
        let content = format!("decision {n}");
        let dedup = dedup.then(|| DedupId::new(*KEY, &caller.agent, &content));
        let say = Say { dedup, ..say(room, Speech::Decision, content) };
        let agent = caller.agent.clone();
        let led_since = self.led_since(node, room, &agent);
        let asked = Asked::Decide { room, agent, led_since };
        self.desk.calls.ask(cluster, node, asked, Command::Say { caller, say });
    }

    /// After a start members are told nothing of leaders that were there before.
    pub(super) fn node_up(&mut self, cluster: &mut Cluster, node: usize) {
        let mut rooms = self.rooms();
        rooms.extend(&self.led);
        for room in rooms {
            self.untold.insert((node, room));
            self.ask_leader(cluster, node, room);
        }
    }

    fn ask_leader(&mut self, cluster: &mut Cluster, node: usize, room: RoomId) {
        let command = Command::RoomInfo { by: (*KEY).into(), room };
        self.desk.calls.ask(cluster, node, Asked::Leader(room), command);
    }
}

impl Matter for Elections {
    type Asked = Asked;
    type View = RoomInfo;

    fn desk(&self) -> &Desk<Asked, RoomInfo> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<Asked, RoomInfo> {
        &mut self.desk
    }

    fn answered(
        &mut self,
        cluster: &Cluster,
        node: usize,
        asked: &Asked,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        match (asked, result) {
            (Asked::Start(_), Ok(Outcome::Candidates(candidates))) => {
                self.candidates = candidates.len();
            }
            (Asked::Start(room), Err(Refused::ElectionRuns)) => {
                self.may_still_run(cluster, node, *room)?;
            }
            (Asked::Decline(agent), Ok(Outcome::Done)) => {
                self.declined.insert(agent.clone());
            }
            (Asked::Decide { .. }, Ok(Outcome::Said(_))) => self.decided += 1,
            (Asked::Decide { room, agent, led_since }, Err(Refused::NotLeader)) => {
                let leads = led_since.is_some() && self.led_since(node, *room, agent) == *led_since;
                if leads && !cluster.is_exempt(node) {
                    let text = format!("node{node}: {agent} leads {room} and may not decide");
                    return broken("leaders decide", text);
                }
            }
            (Asked::Leader(room), Ok(Outcome::RoomInfo(info))) => {
                self.leader_named(cluster, node, *room, info)?;
            }
            (Asked::Leader(room), Err(Refused::NoRoom)) => {
                self.untold.remove(&(node, *room));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The election that the agent knew of is over.
    fn may_be_refused(&self, asked: &Asked, refused: &Refused) -> bool {
        matches!(asked, Asked::Decline(..)) && *refused == Refused::NoElection
    }

    /// Members that come later are told nothing of earlier leaders.
    fn lost(&mut self, _cluster: &Cluster, node: usize) {
        self.told.retain(|(at, _), _| *at != node);
        self.untold.retain(|(at, _)| *at != node);
    }

    /// If the room comes back there, nobody leads it as far as members know.
    fn ended(&mut self, node: usize, room: RoomId) {
        self.told.remove(&(node, room));
        self.untold.remove(&(node, room));
    }

    fn says_in(asked: &Asked) -> Option<RoomId> {
        if let Asked::Decide { room, .. } = asked { Some(*room) } else { None }
    }
}

/// The promises of every moment.
impl Elections {
    /// *elections end*, where nothing fails and nobody begins any that cannot end.
    fn may_still_run(&self, cluster: &Cluster, node: usize, room: RoomId) -> Result<(), Broken> {
        let undisturbed = cluster.plan.is_undisturbed() && !cluster.plan.liar;
        match self.last.get(&room) {
            Some(since) if undisturbed && cluster.now() > *since + DONE_WITHIN => {
                let text = format!("node{node}: one still runs in {room}, begun at {since:?}");
                broken("elections end", text)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A step of an election is durable at a node.
    pub(super) fn stored(&mut self, cluster: &Cluster, written: Written, act: &ElectionAct) {
        let Written { room, place, .. } = written;
        match act {
            ElectionAct::Started(start) => {
                if self.started.insert((room, place), start.term).is_none() {
                    self.last.insert(room, cluster.now());
                    cluster.say(|| format!("an election of term {} begins in {room}", start.term));
                }
            }
            ElectionAct::Cleared { election } => {
                self.cleared.insert((room, *election));
            }
            ElectionAct::Closed { election, .. } => {
                self.closed.insert((room, place), *election);
                let same =
                    self.closed.iter().filter(|(close, of)| close.0 == room && *of == election);
                if same.count() > 1 {
                    self.disputed.insert((room, *election));
                }
            }
            ElectionAct::Dropped { closed, .. } => {
                let election = self.closed.get(&(room, *closed));
                self.disputed.extend(election.map(|election| (room, *election)));
            }
            ElectionAct::Committed { .. }
            | ElectionAct::Declined { .. }
            | ElectionAct::Shown { .. } => {}
        }
    }

    /// *leaders decide*: a turn, before anybody else sees it.
    pub(super) fn judge_turn(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        turn: &Turn,
    ) -> Result<(), Broken> {
        let told: Vec<(RoomId, &RoomEvent)> = turn
            .effects
            .iter()
            .filter_map(|effect| {
                if let Effect::Notify { room, event } = effect {
                    Some((*room, event))
                } else {
                    None
                }
            })
            .collect();
        self.judge_decisions(cluster, node, turn, &told)?;
        for (room, event) in told {
            if let RoomEvent::LeaderElected { agent, .. } = event {
                self.announced(cluster, node, room, Some(agent.clone()));
            } else if let RoomEvent::LeaderCleared { .. } = event {
                self.announced(cluster, node, room, None);
            }
        }
        Ok(())
    }

    fn judge_decisions(
        &mut self,
        cluster: &Cluster,
        node: usize,
        turn: &Turn,
        told: &[(RoomId, &RoomEvent)],
    ) -> Result<(), Broken> {
        // Entries of a room that ended in the same turn never were.
        let ended = |room: RoomId| {
            let drops = |change: &Change| matches!(change, Change::Drop { room: dropped } if *dropped == room);
            turn.batch.iter().any(drops)
        };
        for change in &turn.batch {
            let Change::Entry { room, at, entry } = change else { continue };
            if entry.facts.kind != kinds::DECISION || cluster.is_exempt(node) || ended(*room) {
                continue;
            }
            let written = cluster.entry(node, *room, *at)?;
            let own = written.0.author == cluster.nodes[node].id;
            // Entries that a node has lost with its memory come back from others.
            if !self.written.insert((*room, written)) || !own {
                continue;
            }
            let Some(said) = Body::decode(entry.facts.kind, &entry.body).said() else { continue };
            let elects = |event: &RoomEvent| matches!(event, RoomEvent::LeaderElected { agent, .. } if *agent == said.agent);
            let leads = self.led_since(node, *room, &said.agent).is_some()
                || told.iter().any(|(in_room, event)| in_room == room && elects(event));
            if !leads {
                let told = self.told.get(&(node, *room));
                let text =
                    format!("node{node}: {} decides in {room}, leader is {told:?}", said.agent);
                return broken("leaders decide", text);
            }
        }
        Ok(())
    }

    fn announced(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        room: RoomId,
        leader: Option<AgentId>,
    ) {
        cluster.say(|| format!("node{node}: the leader of {room} is {leader:?}"));
        self.untold.remove(&(node, room));
        if leader.is_some() {
            self.elected += 1;
            self.led.insert(room);
            self.ask_leader(cluster, node, room);
        }
        self.told.insert((node, room), Announced { leader, since: cluster.now() });
    }

    /// *terms*.
    fn leader_named(
        &mut self,
        cluster: &Cluster,
        node: usize,
        room: RoomId,
        info: &RoomInfo,
    ) -> Result<(), Broken> {
        self.desk.views.insert(node, info.clone());
        if self.untold.remove(&(node, room)) {
            let leader = info.leader.as_ref().map(|leader| leader.agent.clone());
            self.told.insert((node, room), Announced { leader, since: cluster.now() });
        }
        let Some(LeaderView { agent, term, .. }) = &info.leader else { return Ok(()) };
        let judged = cluster.is_honest() && !cluster.rooms.is_ephemeral(room);
        let highest = self.terms.get(&(node, room)).copied().unwrap_or_default();
        // A second close may leave one open again that was over by the first.
        if *term < highest && judged && !self.is_disputed(room, highest) {
            let text = format!("node{node}: {agent} leads {room} in term {term}, after {highest}");
            return broken("terms", text);
        }
        self.terms.insert((node, room), *term);
        Ok(())
    }

    /// Whether several nodes said how an election of this term ends, or an agent dropped out.
    fn is_disputed(&self, room: RoomId, term: u64) -> bool {
        let mut of_room = self.disputed.iter().filter(|(in_room, _)| *in_room == room);
        of_room.any(|election| self.started.get(election) == Some(&term))
    }

    /// *terms*: a leader that a node has named stays, unless it was cleared or a higher term began; or
    /// by another close of that election, or without those who dropped out, nobody stood; or another election
    /// of that term, begun on the other side of a split, goes before, and nobody stood in that.
    fn highest_term_stays(&self, room: RoomId, leader: Option<&LeaderView>) -> Result<(), Broken> {
        let named = self.terms.iter().filter(|((_, in_room), _)| *in_room == room);
        let Some(highest) = named.map(|(_, term)| *term).max() else { return Ok(()) };
        let mut started = self.started.iter().filter(|((in_room, _), _)| *in_room == room);
        let twice = started.clone().filter(|(_, term)| **term == highest).count() > 1;
        let over = |(election, term): (&(RoomId, EntryRef), &u64)| {
            let ended = self.cleared.contains(election) || self.disputed.contains(election);
            *term > highest || (*term == highest && ended)
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
}

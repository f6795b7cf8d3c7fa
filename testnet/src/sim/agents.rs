//! Agents of a simulated world: they join, talk, think, leave, come back, and make rooms.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mesh::{
    Input,
    api::command::{
        Attach, Attached, CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, RoomInfo,
        Say, Speech,
    },
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
    wire::entry::DedupId,
};

use super::{
    promises::{Broken, broken},
    world::World,
};

/// The one key of all agents.
pub(super) const KEY: KeyPrint = KeyPrint([1; 16]);
/// Agents at each node.
const AGENTS_PER_NODE: usize = 2;

/// What a call was for.
#[derive(Clone, Debug)]
enum Asked {
    Attach(usize),
    Join(usize, RoomId),
    Leave(usize, RoomId),
    Say(RoomId, DedupId),
    Create { ephemeral: bool },
    Rooms,
    Room(RoomId),
}

#[derive(Debug)]
struct Agent {
    id: AgentId,
    home: usize,
    caller: Option<Caller>,
    rooms: BTreeSet<RoomId>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Agents {
    agents: Vec<Agent>,
    asked: BTreeMap<CallId, (usize, Asked)>,
    pub(super) rooms: Vec<RoomId>,
    pub(super) refused: u64,
    pub(super) answered: u64,
    /// The message that each send became.
    sent: BTreeMap<DedupId, MessageId>,
    /// What nodes say of rooms, when they are asked at the end: by node.
    views: BTreeMap<String, BTreeMap<usize, String>>,
}

impl Agents {
    pub(super) fn new(nodes: usize) -> Agents {
        let agent = |i: usize| Agent {
            id: AgentId::from(format!("agent{i}")),
            home: i % nodes,
            caller: None,
            rooms: BTreeSet::new(),
        };
        Agents {
            agents: (0..nodes * AGENTS_PER_NODE).map(agent).collect(),
            asked: BTreeMap::new(),
            rooms: Vec::new(),
            refused: 0,
            answered: 0,
            sent: BTreeMap::new(),
            views: BTreeMap::new(),
        }
    }

    /// Its agents lose their connections; calls that were open are never answered.
    pub(super) fn node_down(&mut self, node: usize) {
        for agent in self.agents.iter_mut().filter(|it| it.home == node) {
            agent.caller = None;
            agent.rooms.clear();
        }
        self.asked.retain(|_, (at, _)| *at != node);
    }

    pub(super) fn said_in(&self, call: CallId) -> Option<RoomId> {
        match self.asked.get(&call)? {
            (_, Asked::Say(room, _)) => Some(*room),
            _ => None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.agents.len()
    }

    /// Where an agent is attached, if it is.
    pub(super) fn caller(&self, i: usize) -> Option<(usize, Caller)> {
        let agent = &self.agents[i];
        Some((agent.home, agent.caller.clone()?))
    }

    pub(super) fn rooms_of(&self, i: usize) -> Vec<RoomId> {
        self.agents[i].rooms.iter().copied().collect()
    }

    /// Calls that nobody answered though their node lives.
    pub(super) fn open(&self) -> usize {
        self.asked.len()
    }
}

impl World {
    fn ask(&mut self, node: usize, asked: Asked, command: Command) {
        let call = self.call();
        self.agents.asked.insert(call, (node, asked));
        self.give(node, Input::Command { call, command });
    }

    pub(super) fn attach_agents(&mut self, node: usize) {
        for agent in &mut self.agents.agents {
            if agent.home == node {
                agent.caller = None;
            }
        }
        self.attach_missing_agents(node);
    }

    /// Those that are not attached.
    pub(super) fn attach_missing_agents(&mut self, node: usize) {
        for i in 0..self.agents.agents.len() {
            let agent = &self.agents.agents[i];
            if agent.home == node && agent.caller.is_none() {
                let attach = Attach {
                    agent: self.agents.agents[i].id.clone(),
                    stable: true,
                    reconnect: true,
                    key: KEY,
                    own: true,
                    opener: None,
                    name: format!("name{i}"),
                    capabilities: Vec::new(),
                };
                self.ask(node, Asked::Attach(i), Command::Attach(attach));
            }
        }
    }

    /// Some agent does something.
    pub(super) fn act(&mut self) -> Result<(), Broken> {
        if self.plan.keys && self.dice.chance(12) {
            self.hold_some();
            return Ok(());
        }
        let i = self.dice.index(self.agents.agents.len());
        let node = self.agents.agents[i].home;
        let Some(caller) = self.agents.agents[i].caller.clone() else { return self.roam_some() };
        match self.dice.within(0, 99) {
            _ if self.plan.voting && self.dice.chance(50) => self.vote_some(i),
            0..=3 => self.create(node, caller),
            4..=10 => {
                let mut rooms = self.agents.rooms.clone();
                rooms.push(RoomId::lobby(self.secret.mesh_id()));
                let room = *self.dice.pick(&rooms);
                self.ask(node, Asked::Join(i, room), Command::Join { caller, room });
            }
            11..=14 => {
                let rooms = self.agents.rooms_of(i);
                if !rooms.is_empty() {
                    let room = *self.dice.pick(&rooms);
                    self.leave(i, room);
                }
            }
            15..=35 => self.roam_some()?,
            36..=42 => self.vote_some(i),
            43..=48 => self.elect_some(i),
            49..=58 => self.task_some(i),
            _ => self.speak(i),
        }
        Ok(())
    }

    /// Every agent is in the lobby.
    pub(super) fn everybody_joins(&mut self) {
        let room = RoomId::lobby(self.secret.mesh_id());
        for i in 0..self.agents.agents.len() {
            let agent = &self.agents.agents[i];
            if let (Some(caller), node) = (agent.caller.clone(), agent.home) {
                self.ask(node, Asked::Join(i, room), Command::Join { caller, room });
            }
        }
    }

    /// One message by every agent that can, in the lobby: to see numbers agree again.
    pub(super) fn everybody_speaks(&mut self) {
        for i in 0..self.agents.agents.len() {
            self.speak(i);
        }
    }

    pub(super) fn leave(&mut self, i: usize, room: RoomId) {
        let agent = &self.agents.agents[i];
        if let (Some(caller), node) = (agent.caller.clone(), agent.home) {
            self.ask(node, Asked::Leave(i, room), Command::Leave { caller, room });
        }
    }

    fn create(&mut self, node: usize, caller: Caller) {
        if self.agents.rooms.len() >= 4 {
            return;
        }
        let ephemeral = self.dice.chance(40);
        let room = NewRoom {
            name: format!("room{}", self.dice.within(0, 5)),
            description: None,
            parent: None,
            ephemeral,
            public: true,
            encrypted: false,
        };
        self.ask(node, Asked::Create { ephemeral }, Command::CreateRoom { caller, room });
    }

    fn speak(&mut self, i: usize) {
        let agent = &self.agents.agents[i];
        let (Some(caller), node) = (agent.caller.clone(), agent.home) else { return };
        let rooms: Vec<RoomId> = agent.rooms.iter().copied().collect();
        if rooms.is_empty() {
            return;
        }
        let lobby = RoomId::lobby(self.secret.mesh_id());
        let room = if self.quiet { lobby } else { *self.dice.pick(&rooms) };
        self.messages += 1;
        let n = self.messages;
        // Some are too large to travel inside their run.
        let content =
            if self.dice.chance(3) { format!("{n:>20000}") } else { format!("message {n}") };
        let speech = if self.dice.chance(20) { Speech::Thinking } else { Speech::Chat };
        let dedup = DedupId::new(KEY, &caller.agent, &format!("send {n}"));
        let say = Say {
            room,
            speech,
            content,
            encryption: Encryption::None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: Some(dedup),
        };
        let again = self.dice.chance(10).then(|| say.clone());
        self.ask(node, Asked::Say(room, dedup), Command::Say { caller: caller.clone(), say });
        if let Some(say) = again {
            self.ask(node, Asked::Say(room, dedup), Command::Say { caller, say });
        }
    }

    /// *views*: all nodes know the same rooms by the same names, the same members in the same
    /// order, and whose turn it is.
    pub(super) fn views_converge(&mut self) -> Result<(), Broken> {
        self.agents.views.clear();
        let lobby = RoomId::lobby(self.secret.mesh_id());
        for node in 0..self.nodes.len() {
            self.ask(node, Asked::Rooms, Command::ListRooms { key: KEY, parent: None });
            let room_info = Command::RoomInfo { key: KEY, room: lobby };
            self.ask(node, Asked::Room(lobby), room_info);
        }
        let until = self.now + std::time::Duration::from_millis(300);
        self.run_until(until)?;
        for (what, by_node) in &self.agents.views {
            let first = by_node.get(&0);
            if let Some((node, other)) = by_node.iter().find(|(_, it)| Some(*it) != first) {
                let text = format!("of {what} node0 says {first:?}, node{node} says {other:?}");
                return broken("views", text);
            }
            if by_node.len() < self.nodes.len() {
                return broken("views", format!("only {} nodes speak of {what}", by_node.len()));
            }
        }
        Ok(())
    }

    pub(super) fn agent_replied(
        &mut self,
        node: usize,
        call: CallId,
        result: Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        if self.roam_replied(call, &result)
            || self.vote_replied(node, call, &result)?
            || self.election_replied(node, call, &result)?
            || self.task_replied(node, call, &result)?
            || self.holder_replied(node, call, &result)?
        {
            return Ok(());
        }
        let Some((_, asked)) = self.agents.asked.remove(&call) else {
            return broken(
                "replies",
                format!("{call:?} was answered twice, or never asked: {result:?}"),
            );
        };
        self.agents.answered += 1;
        if let Err(refused) = &result {
            self.agents.refused += 1;
            self.say(|| format!("node{node}: {asked:?} refused: {refused}"));
        }
        match (asked, result) {
            (Asked::Attach(i), Ok(Outcome::Attached(attached))) => self.attached(node, i, attached),
            (Asked::Join(i, room), Ok(_)) => {
                self.agents.agents[i].rooms.insert(room);
            }
            (Asked::Leave(i, room), Ok(_)) => {
                self.agents.agents[i].rooms.remove(&room);
            }
            (Asked::Say(_, send), Ok(Outcome::Said(said))) => {
                let first = *self.agents.sent.entry(send).or_insert(said.message);
                if first != said.message {
                    let text = format!("one send became {first} and {}", said.message);
                    return broken("dedup", text);
                }
            }
            (Asked::Say(..), Err(refused))
                if !may_be_refused(&refused) && !self.is_exempt(node) =>
            {
                return broken("replies", format!("a message was refused: {refused}"));
            }
            (Asked::Create { ephemeral }, Ok(Outcome::Room(view))) => {
                if ephemeral {
                    self.promises.ephemeral.insert(view.room);
                }
                self.agents.rooms.push(view.room);
            }
            (Asked::Rooms, Ok(Outcome::Rooms(rooms))) => {
                let said: Vec<String> = rooms
                    .iter()
                    .map(|it| format!("{} {} {}", it.room, it.name, it.members))
                    .collect();
                let views = self.agents.views.entry("rooms".to_owned()).or_default();
                views.insert(node, said.join(", "));
            }
            (Asked::Room(room), Ok(Outcome::RoomInfo(info))) => {
                let said = self.who_is_there(&info);
                self.agents.views.entry(format!("room {room}")).or_default().insert(node, said);
            }
            (Asked::Rooms | Asked::Room(_), _) => {
                return broken("views", format!("node{node} does not say what it knows"));
            }
            (Asked::Attach(_) | Asked::Join(..) | Asked::Leave(..), Err(_))
            | (Asked::Say(..) | Asked::Create { .. }, _)
            | (Asked::Attach(_), Ok(_)) => {}
        }
        Ok(())
    }

    /// Members, and whose turn it is.
    fn who_is_there(&self, info: &RoomInfo) -> String {
        let order: Vec<String> =
            info.agents.iter().map(|it| format!("{} at {}", it.agent, it.node.short())).collect();
        // Whose turn it is after a message is in its body: who got the last one when everybody had
        // dropped that does not know, and nobody spoke since.
        let turn = info.turn.as_ref();
        let turn = turn.filter(|_| !self.plan.retention);
        format!("{} turn {turn:?}", order.join(", "))
    }

    fn attached(&mut self, node: usize, i: usize, attached: Attached) {
        let agent = &mut self.agents.agents[i];
        // Of an agent that registered twice while the disk was full the second one may be answered first.
        if agent.caller.as_ref().is_some_and(|it| it.registration > attached.registration) {
            return;
        }
        let caller =
            Caller { agent: Arc::clone(&agent.id), key: KEY, registration: attached.registration };
        agent.caller = Some(caller.clone());
        let restored = attached.restored.unwrap_or_default();
        agent.rooms.extend(restored.into_iter().map(|(room, _)| room));
        let lobby = RoomId::lobby(self.secret.mesh_id());
        self.ask(node, Asked::Join(i, lobby), Command::Join { caller, room: lobby });
    }
}

/// The room ended, or the agent lost its seat or its connection meanwhile; nothing else may be in
/// the way of a message.
fn may_be_refused(refused: &Refused) -> bool {
    match refused {
        Refused::NoRoom
        | Refused::NotMember
        | Refused::Superseded
        | Refused::Closed
        | Refused::Stopping => true,
        Refused::NotYours
        | Refused::NameTaken(_)
        | Refused::DiskFull
        | Refused::AgentTaken(_)
        | Refused::Plaintext
        | Refused::TooLarge { .. }
        | Refused::Invalid(_)
        | Refused::NoVote
        | Refused::VoteClosed
        | Refused::AlreadyVoted
        | Refused::NotEligible
        | Refused::NoOption { .. }
        | Refused::NotLeader
        | Refused::ElectionRuns
        | Refused::NoElection
        | Refused::NoTask
        | Refused::Held { .. }
        | Refused::NoKey
        | Refused::TooManyAgents { .. }
        | Refused::TooManyRooms { .. }
        | Refused::Full(_) => false,
    }
}

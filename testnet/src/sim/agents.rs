//! Agents of a simulated world: they join, talk, think, leave, come back, and make rooms.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use mesh::{
    api::command::{
        Attached, CallId, Caller, Command, Durable, Encryption, NewRoom, Outcome, RoomInfo, Say,
        Speech,
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::entry::DedupId,
};

use super::{
    cluster::Cluster,
    copies,
    dice::Dice,
    keys::{self, KEY},
    parts::{Answers, Calls, Part, Reply, Seated, may_be_in_the_way},
    promises::{Broken, broken},
};

/// Agents at each node.
const AGENTS_PER_NODE: usize = 2;
/// Rooms that they make, at most.
const ROOMS_MAX: usize = 4;

/// The purpose of a call.
#[derive(Clone, Debug)]
enum Asked {
    Attach(usize),
    Join(usize, RoomId),
    Leave(usize, RoomId),
    Say(Send),
    Receipts(copies::Inquiry),
    Create { ephemeral: bool },
    Rooms,
    Room(RoomId),
}

/// A message that is sent.
#[derive(Clone, Copy, Debug)]
struct Send {
    room: RoomId,
    dedup: DedupId,
    durable: Option<Durable>,
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
    calls: Calls<Asked>,
    /// Rooms that they made.
    rooms: Vec<RoomId>,
    /// The message that each send became.
    sent: BTreeMap<DedupId, MessageId>,
    /// Each node's view of each subject, when they are asked in the end.
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
            calls: Calls::default(),
            rooms: Vec::new(),
            sent: BTreeMap::new(),
            views: BTreeMap::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.agents.len()
    }

    /// An agent at its node, if it is attached there.
    pub(super) fn seated(&self, i: usize) -> Option<Seated> {
        let agent = &self.agents[i];
        Some(Seated { node: agent.home, caller: agent.caller.clone()? })
    }

    /// All agents that are attached.
    pub(super) fn all_seated(&self) -> Vec<Seated> {
        (0..self.agents.len()).filter_map(|i| self.seated(i)).collect()
    }

    /// The id of any agent.
    pub(super) fn somebody(&self, dice: &mut Dice) -> AgentId {
        self.agents[dice.index(self.agents.len())].id.clone()
    }

    pub(super) fn rooms_of(&self, i: usize) -> Vec<RoomId> {
        self.agents[i].rooms.iter().copied().collect()
    }

    /// Rooms that were made.
    pub(super) fn made(&self) -> &[RoomId] {
        &self.rooms
    }
}

/// Their acts.
impl Agents {
    /// A node has started: none of its agents is attached.
    pub(super) fn node_up(&mut self, cluster: &mut Cluster, node: usize) {
        for agent in self.agents.iter_mut().filter(|agent| agent.home == node) {
            agent.caller = None;
        }
        self.attach_missing(cluster, node);
    }

    /// Agents of a node that are not attached.
    pub(super) fn attach_missing(&mut self, cluster: &mut Cluster, node: usize) {
        for (i, agent) in self.agents.iter().enumerate() {
            if agent.home == node && agent.caller.is_none() {
                let attach =
                    keys::attach(&cluster.log_of(node), agent.id.clone(), format!("name{i}"));
                self.calls.ask(cluster, node, Asked::Attach(i), Command::Attach(attach));
            }
        }
    }

    fn join(&mut self, cluster: &mut Cluster, i: usize, room: RoomId) {
        if let Some(Seated { node, caller }) = self.seated(i) {
            let command = Command::Join { caller, room };
            self.calls.ask(cluster, node, Asked::Join(i, room), command);
        }
    }

    /// An agent joins any public room.
    pub(super) fn join_some(&mut self, cluster: &mut Cluster, i: usize) {
        let mut rooms = self.rooms.clone();
        rooms.push(cluster.lobby());
        let room = *cluster.dice.pick(&rooms);
        self.join(cluster, i, room);
    }

    /// Every agent is in the lobby.
    pub(super) fn everybody_joins(&mut self, cluster: &mut Cluster) {
        let lobby = cluster.lobby();
        for i in 0..self.agents.len() {
            self.join(cluster, i, lobby);
        }
    }

    pub(super) fn leave(&mut self, cluster: &mut Cluster, i: usize, room: RoomId) {
        if let Some(Seated { node, caller }) = self.seated(i) {
            let command = Command::Leave { caller, room };
            self.calls.ask(cluster, node, Asked::Leave(i, room), command);
        }
    }

    /// An agent leaves one of its rooms.
    pub(super) fn leave_some(&mut self, cluster: &mut Cluster, i: usize) {
        let rooms = self.rooms_of(i);
        if !rooms.is_empty() {
            let room = *cluster.dice.pick(&rooms);
            self.leave(cluster, i, room);
        }
    }

    pub(super) fn create(&mut self, cluster: &mut Cluster, by: Seated) {
        if self.rooms.len() >= ROOMS_MAX {
            return;
        }
        let Seated { node, caller } = by;
        let ephemeral = cluster.dice.chance(40);
        let room = NewRoom {
            name: format!("room{}", cluster.dice.within(0, 5)),
            description: None,
            parent: None,
            ephemeral,
            public: true,
            encrypted: false,
        };
        let command = Command::CreateRoom { caller, room };
        self.calls.ask(cluster, node, Asked::Create { ephemeral }, command);
    }

    /// One message by every agent that can, in the lobby: to see numbers agree again.
    pub(super) fn everybody_speaks(&mut self, cluster: &mut Cluster) {
        for i in 0..self.agents.len() {
            self.speak(cluster, i);
        }
    }

    pub(super) fn speak(&mut self, cluster: &mut Cluster, i: usize) {
        let Some(Seated { node, caller }) = self.seated(i) else { return };
        let rooms = self.rooms_of(i);
        if rooms.is_empty() {
            return;
        }
        let lobby = cluster.lobby();
        let room = if cluster.quiet { lobby } else { *cluster.dice.pick(&rooms) };
        let n = cluster.text();
        // Some are too large to travel inside their run.
        let large = cluster.dice.chance(3);
        let content = if large { format!("{n:>20000}") } else { format!("message {n}") };
        let speech = if cluster.dice.chance(20) { Speech::Thinking } else { Speech::Chat };
        let dedup = DedupId::new(*KEY, &caller.agent, &format!("send {n}"));
        let durable = copies::wanted(cluster, n);
        let say = Say { dedup: Some(dedup), durable, ..say(room, speech, content) };
        let send = Send { room, dedup, durable };
        let again = cluster.dice.chance(10).then(|| say.clone());
        for say in [Some(say), again].into_iter().flatten() {
            let command = Command::Say { caller: caller.clone(), say };
            self.calls.ask(cluster, node, Asked::Say(send), command);
        }
    }

    /// A node has attached an agent, which joins the lobby.
    fn attached(&mut self, cluster: &mut Cluster, i: usize, attached: &Attached) {
        let agent = &mut self.agents[i];
        let registration = attached.registration;
        // Of an agent that registered twice while the disk was full the second one may be answered first.
        if agent.caller.as_ref().is_some_and(|caller| caller.registration > registration) {
            return;
        }
        agent.caller = Some(Caller { agent: Arc::clone(&agent.id), key: *KEY, registration });
        let restored = attached.restored.iter().flatten();
        agent.rooms.extend(restored.map(|(room, _)| *room));
        let lobby = cluster.lobby();
        self.join(cluster, i, lobby);
    }
}

impl Part for Agents {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Some(asked) = self.calls.take(reply) else { return Ok(false) };
        let Reply { node, result, .. } = reply;
        if let Err(refused) = result {
            cluster.say(|| format!("node{node}: {asked:?} refused: {refused}"));
        }
        match (asked, result) {
            (Asked::Attach(i), Ok(Outcome::Attached(attached))) => {
                self.attached(cluster, i, attached);
            }
            (Asked::Join(i, room), Ok(_)) => {
                self.agents[i].rooms.insert(room);
            }
            (Asked::Leave(i, room), Ok(_)) => {
                self.agents[i].rooms.remove(&room);
            }
            (Asked::Say(send), Ok(Outcome::Said(said))) => {
                if said.copies.is_some() != send.durable.is_some() {
                    return broken("replies", format!("{send:?} was answered {said:?}"));
                }
                let first = *self.sent.entry(send.dedup).or_insert(said.message);
                if first != said.message {
                    let text = format!("one send became {first} and {}", said.message);
                    return broken("dedup", text);
                }
                if let Some(inquiry) = copies::inquiry(cluster, *node, send.room, said) {
                    let command = inquiry.command();
                    self.calls.ask(cluster, *node, Asked::Receipts(inquiry), command);
                }
            }
            (Asked::Say(Send { room, durable, .. }), Err(refused))
                if !may_be_in_the_way(refused)
                    && !cluster.is_exempt(*node)
                    && !copies::may_be_refused(cluster, room, durable, refused) =>
            {
                return broken("replies", format!("a message was refused: {refused}"));
            }
            (Asked::Receipts(inquiry), Ok(Outcome::Receipts(receipts))) => {
                inquiry.is_answered_truly(cluster, receipts)?;
            }
            (Asked::Create { ephemeral }, Ok(Outcome::Room(view))) => {
                if ephemeral {
                    cluster.rooms.ephemeral.insert(view.room);
                }
                self.rooms.push(view.room);
            }
            (Asked::Rooms, Ok(Outcome::Rooms(rooms))) => {
                let rooms = rooms
                    .iter()
                    .map(|room| format!("{} {} {}", room.room, room.name, room.members));
                let rooms: Vec<String> = rooms.collect();
                self.view("rooms".to_owned(), *node, rooms.join(", "));
            }
            (Asked::Room(room), Ok(Outcome::RoomInfo(info))) => {
                let shows_turn = !cluster.plan.retention;
                self.view(format!("room {room}"), *node, members(info, shows_turn));
            }
            (Asked::Rooms | Asked::Room(_), _) => {
                return broken("views", format!("node{node} does not say what it knows"));
            }
            (Asked::Attach(_) | Asked::Join(..) | Asked::Leave(..), Err(_))
            | (Asked::Say(..) | Asked::Receipts(_) | Asked::Create { .. }, _)
            | (Asked::Attach(_), Ok(_)) => {}
        }
        Ok(true)
    }

    /// Its agents lose their connections.
    fn node_down(&mut self, _cluster: &Cluster, node: usize) {
        for agent in self.agents.iter_mut().filter(|agent| agent.home == node) {
            agent.caller = None;
            agent.rooms.clear();
        }
        self.calls.node_down(node);
    }

    fn said_in(&self, call: CallId) -> Option<RoomId> {
        if let Asked::Say(send) = self.calls.asked(call)? { Some(send.room) } else { None }
    }

    fn open(&self, now: Duration) -> Vec<String> {
        self.calls.open(now)
    }

    fn answers(&self) -> Answers {
        self.calls.answers()
    }
}

/// *views*: all nodes know the same rooms by the same names, the same members in the same
/// order, and whose turn it is.
impl Agents {
    /// Asks all nodes what they know.
    pub(super) fn ask_for_views(&mut self, cluster: &mut Cluster) {
        self.views.clear();
        let lobby = cluster.lobby();
        for node in 0..cluster.nodes.len() {
            let rooms = Command::ListRooms { by: (*KEY).into(), parent: None };
            self.calls.ask(cluster, node, Asked::Rooms, rooms);
            let room = Command::RoomInfo { by: (*KEY).into(), room: lobby };
            self.calls.ask(cluster, node, Asked::Room(lobby), room);
        }
    }

    fn view(&mut self, subject: String, node: usize, text: String) {
        self.views.entry(subject).or_default().insert(node, text);
    }

    /// Once they have answered.
    pub(super) fn views_are_the_same(&self, nodes: usize) -> Result<(), Broken> {
        for (subject, by_node) in &self.views {
            let first = by_node.get(&0);
            if let Some((node, other)) = by_node.iter().find(|(_, view)| Some(*view) != first) {
                let text = format!("of {subject} node0 says {first:?}, node{node} says {other:?}");
                return broken("views", text);
            }
            if by_node.len() < nodes {
                let count = by_node.len();
                return broken("views", format!("only {count} nodes speak of {subject}"));
            }
        }
        Ok(())
    }
}

/// Some words, and nothing besides.
pub(super) fn say(room: RoomId, speech: Speech, content: String) -> Say {
    Say {
        room,
        speech,
        content,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        encryption: Encryption::None,
        durable: None,
        conversing: None,
    }
}

/// Members, and whose turn it is. The turn after a message is in its body: once everybody has dropped that, and
/// nobody spoke since, a node that got the message last does not know the turn.
fn members(info: &RoomInfo, shows_turn: bool) -> String {
    let members = info.agents.iter();
    let members = members.map(|agent| format!("{} at {}", agent.agent, agent.node.short()));
    let members: Vec<String> = members.collect();
    let turn = info.turn.as_ref().filter(|_| shows_turn);
    format!("{} turn {turn:?}", members.join(", "))
}

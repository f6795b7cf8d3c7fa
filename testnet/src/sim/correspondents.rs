//! Agents that write to each other, with two minted keys: in worlds with inboxes as they like (`writing`), in others they
//! answer everything that they are told (`answering`). Nothing is contested here: ids are wanted by nobody else, and keys stay.
//!
//! Promises of every moment and of the end: `inboxes` (*inbox*) and `conversations` (*budgets*).

mod answering;
mod asked;
pub(super) mod conversations;
pub(super) mod end;
mod giving;
mod inbox_rows;
pub(super) mod inboxes;
mod requests;
mod writing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use mesh::{
    api::{
        agenda::NewKey,
        batch::Change,
        command::{Attach, CallId, Caller, Command, Inbox, InboxAct, NewRoom, Outcome, Refused},
        delivery::Stage,
        event::{AgentEvent, Delivered},
    },
    name::{
        id::{AgentId, KeyPrint, MessageId, RoomId, RoomKey},
        key::KeySecret,
        number::Number,
    },
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        signatures::SignedLog,
    },
};
use store::Reader;

use self::{
    answering::Mind,
    asked::{Act, Asked, Why},
    conversations::Conversations,
    giving::Giving,
    inboxes::Inboxes,
    requests::Requests,
};
use super::{
    cluster::Cluster,
    coverage::Happening,
    keys,
    parts::{Answers, Calls, Part, Reply, Seated, may_be_in_the_way},
    plan::{Circle, Correspondence},
    promises::{Broken, broken},
};

/// The names of their keys.
const KEYS: [&str; 2] = ["ink key", "quill key"];
/// Agents that write as they like.
const WRITERS: usize = 5;
/// The node at which the keys are minted.
const MINT: usize = 0;

/// One of their keys.
#[derive(Debug)]
struct Key {
    secret: Arc<KeySecret>,
    print: KeyPrint,
    opener: RoomKey,
    minted: bool,
    /// A private room of it.
    hall: Option<RoomId>,
}

/// What an agent is in the world for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It writes as it likes.
    Writes,
    /// It answers everything, and asks others.
    Answers,
    /// It asks this one a question now and then, and waits for the answer.
    Asks(usize),
    /// It answers what it is asked, and expects no answer.
    Helps,
    /// Its node keeps no budgets, and it says anything.
    Brags,
}

/// See the module.
#[derive(Debug)]
struct Correspondent {
    id: AgentId,
    key: usize,
    home: usize,
    role: Role,
    place: Option<Seated>,
    /// The node at which it is registering.
    going: Option<usize>,
    /// It does not come back before.
    away_until: Duration,
    /// Rooms that it has joined.
    rooms: BTreeSet<RoomId>,
    /// Its inbox, as its node said last.
    inbox: Option<Inbox>,
    mind: Mind,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Correspondents {
    keys: Vec<Key>,
    agents: Vec<Correspondent>,
    /// Their direct rooms by the places of both, the lower one first.
    direct: BTreeMap<(usize, usize), RoomId>,
    /// Of these, the ones that somebody is about to open.
    opening: BTreeSet<(usize, usize)>,
    calls: Calls<Asked>,
    inboxes: Inboxes,
    requests: Requests,
    giving: Giving,
    conversations: Conversations,
}

impl Correspondents {
    pub(super) fn new(cluster: &mut Cluster) -> Correspondents {
        let key = |name: &&str| {
            let secret = Arc::new(keys::secret(name));
            let opener = RoomKey::of(&keys::text(name));
            Key { print: secret.print(), secret, opener, minted: false, hall: None }
        };
        let roles = cluster.plan.correspondence.map_or_else(Vec::new, |kind| match kind {
            Correspondence::Inboxes => vec![Role::Writes; WRITERS],
            Correspondence::Answering { circle, boundless, .. } => {
                some_roles(cluster, circle, boundless)
            }
        });
        let nodes = cluster.plan.nodes;
        let mut agent = |(i, role): (usize, Role)| Correspondent {
            id: AgentId::from(format!("writer{i}")),
            key: i % KEYS.len(),
            home: if role == Role::Brags { nodes - 1 } else { cluster.dice.index(nodes) },
            role,
            place: None,
            going: None,
            away_until: Duration::ZERO,
            rooms: BTreeSet::new(),
            inbox: None,
            mind: Mind::default(),
        };
        let mut agents: Vec<Correspondent> =
            roles.into_iter().enumerate().map(&mut agent).collect();
        // A node without budgets is the one of its own agent alone: conversations of others have two sides that count.
        if agents.iter().any(|agent| agent.role == Role::Brags) {
            let honest = agents.iter_mut().filter(|agent| agent.role != Role::Brags);
            honest.for_each(|agent| agent.home %= nodes - 1);
        }
        Correspondents {
            keys: KEYS.iter().map(key).collect(),
            agents,
            direct: BTreeMap::new(),
            opening: BTreeSet::new(),
            calls: Calls::default(),
            inboxes: Inboxes::default(),
            requests: Requests::default(),
            giving: Giving::default(),
            conversations: Conversations::default(),
        }
    }

    /// The places of the two agents of a direct room.
    fn sides(&self, room: RoomId) -> Option<(usize, usize)> {
        self.direct.iter().find(|(_, known)| **known == room).map(|(sides, _)| *sides)
    }

    fn room_of(&self, i: usize, with: usize) -> Option<RoomId> {
        self.direct.get(&(i.min(with), i.max(with))).copied()
    }

    /// Whether it is one in which they mention each other.
    fn is_known(&self, cluster: &Cluster, room: RoomId) -> bool {
        room == cluster.lobby() || self.keys.iter().any(|key| key.hall == Some(room))
    }

    /// Whether an agent may read a room that is no direct one.
    fn may_read(&self, cluster: &Cluster, i: usize, room: RoomId) -> bool {
        room == cluster.lobby() || self.keys[self.agents[i].key].hall == Some(room)
    }
}

/// Agents that answer, one that is modest, one that helps it, and perhaps one that brags.
fn some_roles(cluster: &mut Cluster, circle: Circle, boundless: bool) -> Vec<Role> {
    let answers = match circle {
        Circle::Pairs => 4,
        Circle::Ring => cluster.dice.within(3, 5),
        Circle::Crowd => cluster.dice.within(4, 6),
    };
    let answers = usize::try_from(answers).expect("few");
    let mut roles = vec![Role::Answers; answers];
    roles.extend([Role::Asks(answers + 1), Role::Helps]);
    roles.extend(boundless.then_some(Role::Brags));
    roles
}

/// Their acts.
impl Correspondents {
    /// Those who have something to do do it.
    pub(super) fn go_on(&mut self, cluster: &mut Cluster) {
        if !self.are_minted(cluster) {
            return;
        }
        match cluster.plan.correspondence {
            Some(Correspondence::Inboxes) => self.write(cluster),
            Some(Correspondence::Answering { .. }) => self.answer_all(cluster),
            None => {}
        }
    }

    /// Whether the keys are minted. Otherwise they are now, once.
    fn are_minted(&mut self, cluster: &mut Cluster) -> bool {
        let running = cluster.nodes[MINT].running.is_some();
        for (i, key) in self.keys.iter().enumerate().filter(|(_, key)| !key.minted) {
            if running && !self.calls.any_open(cluster.now()) {
                let terms = KeyTerms::of(Tier::High);
                let minted = KeyMinted::sign(&key.secret, &cluster.log_of(MINT), terms);
                let minted = Box::new(minted.expect("keys of worlds are long enough"));
                let mint = Command::MintKey(NewKey { minted, local: false });
                self.calls.ask(cluster, MINT, Asked::Mint(i), mint);
            }
        }
        self.keys.iter().all(|key| key.minted)
    }

    /// An agent registers, wherever it was before.
    fn register(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        let agent = &self.agents[i];
        let early = cluster.now() < agent.away_until;
        if cluster.nodes[node].running.is_none() || agent.going.is_some() || early {
            return;
        }
        let attach = self.attach_of(i, &cluster.log_of(node));
        self.agents[i].going = Some(node);
        self.calls.ask(cluster, node, Asked::Attach(i), Command::Attach(attach));
    }

    fn attach_of(&self, i: usize, at: &SignedLog) -> Attach {
        let (agent, key) = (&self.agents[i], &self.keys[self.agents[i].key]);
        Attach {
            claim: Some(Box::new(keys::claim(&key.secret, at.mesh, &agent.id))),
            shown: Some(Box::new(keys::shown(&key.secret, at))),
            agent: agent.id.clone(),
            stable: true,
            reconnect: true,
            key: key.print,
            own: false,
            mailbox: key.secret.mailbox().ok().cloned(),
            opener: Some(key.opener.clone()),
            name: format!("the {}", agent.id),
            capabilities: Vec::new(),
        }
    }

    fn detach(&mut self, cluster: &mut Cluster, i: usize, wait: Duration) {
        let Some(Seated { node, caller }) = self.agents[i].place.take() else { return };
        self.agents[i].leave();
        self.agents[i].away_until = cluster.now() + wait;
        let command = Command::Detach { caller, seen: Vec::new() };
        self.calls.ask(cluster, node, Asked::Detach, command);
    }

    /// An agent opens its room with another one, if nobody is about to.
    fn open_direct(&mut self, cluster: &mut Cluster, i: usize, with: usize) {
        let Some(Seated { node, caller }) = self.agents[i].place.clone() else { return };
        if i == with || !self.opening.insert((i.min(with), i.max(with))) {
            return;
        }
        let signer = Some(Arc::clone(&self.keys[self.agents[i].key].secret));
        let agent = self.agents[with].id.clone();
        let command = Command::OpenDirect { caller, signer, agent, task: None };
        self.calls.ask(cluster, node, Asked::Open(i, with), command);
    }

    fn join(&mut self, cluster: &mut Cluster, i: usize, room: RoomId) {
        if let Some(Seated { node, caller }) = self.agents[i].place.clone() {
            let command = Command::Join { caller, room };
            self.calls.ask(cluster, node, Asked::Join(i, room), command);
        }
    }

    /// An agent makes the private room of its key.
    fn make_hall(&mut self, cluster: &mut Cluster, i: usize) {
        let Some(Seated { node, caller }) = self.agents[i].place.clone() else { return };
        let key = self.agents[i].key;
        let room = NewRoom {
            name: format!("hall of {}", KEYS[key]),
            description: None,
            parent: None,
            ephemeral: false,
            public: false,
            encrypted: false,
        };
        let command = Command::CreateRoom { caller, room };
        self.calls.ask(cluster, node, Asked::Create(key), command);
    }

    fn inbox(&mut self, cluster: &mut Cluster, i: usize, act: Act) {
        let Some(Seated { node, caller }) = self.agents[i].place.clone() else { return };
        let agent = &self.agents[i];
        let command = match act {
            Act::Open => InboxAct::Open,
            Act::File => {
                let unfiled = agent.inbox.as_ref().and_then(|inbox| inbox.unfiled.clone());
                let Some(running) = &cluster.nodes[node].running else { return };
                let found = inbox_rows::waiting(&running.reader, &agent.id, unfiled.as_deref());
                InboxAct::File(found)
            }
            Act::Confirm(upto) => InboxAct::Confirm(upto),
            Act::TakeOut(place) => {
                self.inboxes.takes_out(node, &agent.id, place);
                InboxAct::TakeOut(place)
            }
        };
        let command = Command::Inbox { caller, act: command };
        self.calls.ask(cluster, node, Asked::Inbox(i, act), command);
    }

    /// The store of the node that an agent is at.
    fn reader<'c>(&self, cluster: &'c Cluster, i: usize) -> Option<&'c Reader> {
        let node = self.agents[i].place.as_ref()?.node;
        cluster.nodes[node].running.as_ref().map(|running| &running.reader)
    }
}

impl Correspondent {
    fn leave(&mut self) {
        self.place = None;
        self.rooms.clear();
        self.inbox = None;
    }
}

impl Part for Correspondents {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Some(asked) = self.calls.take(reply) else { return Ok(false) };
        let Reply { node, result, .. } = reply;
        if let Err(refused) = result {
            cluster.say(|| format!("node{node}: {asked:?} refused: {refused}"));
        }
        if let Asked::Open(i, with) = asked {
            self.opening.remove(&(i.min(with), i.max(with)));
        }
        match (asked, result) {
            (Asked::Attach(i), result) => self.registered(*node, i, result)?,
            (Asked::Mint(key), Ok(_)) => self.keys[key].minted = true,
            (Asked::Create(key), Ok(Outcome::Room(view))) => {
                self.keys[key].hall = Some(view.room);
            }
            (Asked::Open(i, with), Ok(Outcome::Room(view))) => {
                self.direct.insert((i.min(with), i.max(with)), view.room);
            }
            (Asked::Join(i, room), Ok(_)) => {
                self.agents[i].rooms.insert(room);
            }
            (Asked::Inbox(i, act), Ok(Outcome::Inbox(inbox))) => {
                self.inbox_is(cluster, *node, (i, act), inbox);
            }
            (Asked::Task(step), Ok(outcome)) => self.gave(cluster, *node, step, outcome),
            (Asked::Say(saying), result) if self.said(cluster, *node, &saying, result)? => {}
            (Asked::Detach | Asked::Handed, Ok(_)) => {}
            (asked, Err(refused)) if may_be_refused(&asked, refused) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }

    /// Its agents lose their connections.
    fn node_down(&mut self, _cluster: &Cluster, node: usize) {
        self.calls.node_down(node);
        self.opening.clear();
        self.inboxes.node_down(node);
        for agent in &mut self.agents {
            if agent.place.as_ref().is_some_and(|at| at.node == node) {
                agent.leave();
            }
            agent.going = agent.going.filter(|at| *at != node);
        }
    }

    fn said_in(&self, call: CallId) -> Option<RoomId> {
        if let Asked::Say(saying) = self.calls.asked(call)? { Some(saying.room) } else { None }
    }

    fn open(&self, now: Duration) -> Vec<String> {
        self.calls.open(now)
    }

    fn answers(&self) -> Answers {
        self.calls.answers()
    }
}

/// Answers and events.
impl Correspondents {
    fn registered(
        &mut self,
        node: usize,
        i: usize,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let agent = &mut self.agents[i];
        agent.going = None;
        match result {
            Ok(Outcome::Attached(attached)) => {
                agent.leave();
                let key = self.keys[agent.key].print;
                let registration = attached.registration;
                let caller = Caller { agent: agent.id.clone(), key, registration };
                agent.place = Some(Seated { node, caller });
                agent.rooms.extend(attached.restored.iter().flatten().map(|(room, _)| *room));
                agent.mind.comes_back();
                Ok(())
            }
            // The key is not known here yet.
            Err(Refused::NoKey | Refused::Stopping) => Ok(()),
            _ => broken(
                "ids",
                format!("node{node} answers {}, whose id is its own: {result:?}", agent.id),
            ),
        }
    }

    fn inbox_is(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        (i, act): (usize, Act),
        inbox: &Inbox,
    ) {
        match act {
            Act::File => cluster.coverage.count(Happening::Filed),
            Act::TakeOut(_) => cluster.coverage.count(Happening::TakenOut),
            Act::Confirm(_) => cluster.coverage.count(Happening::Marked),
            Act::Open => {}
        }
        let agent = &mut self.agents[i];
        if agent.place.as_ref().is_some_and(|at| at.node == node) {
            if agent.inbox.is_none() {
                agent.mind.begins_at(inbox.mark);
            }
            agent.inbox = Some(inbox.clone());
        }
    }

    /// A node tells its agents something.
    pub(super) fn told(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        event: &AgentEvent,
    ) -> Result<(), Broken> {
        match event {
            AgentEvent::Displaced { agent, registration } => {
                for displaced in self.agents.iter_mut().filter(|known| known.id == *agent) {
                    let is_it =
                        |at: &Seated| at.node == node && at.caller.registration == *registration;
                    if displaced.place.as_ref().is_some_and(is_it) {
                        displaced.leave();
                    }
                }
                Ok(())
            }
            AgentEvent::Mail { agent } => {
                self.inboxes.mail(node, agent)?;
                let here = |known: &Correspondent| {
                    known.id == *agent && known.place.as_ref().is_some_and(|at| at.node == node)
                };
                if let Some(i) = self.agents.iter().position(here) {
                    self.look(cluster, i);
                }
                Ok(())
            }
            // They are on no list of a room.
            AgentEvent::Enlisted { .. }
            | AgentEvent::Unseated { .. }
            | AgentEvent::KeyInvalid { .. }
            | AgentEvent::Recorded { .. }
            | AgentEvent::Scheduled(_)
            | AgentEvent::Seated { .. } => Ok(()),
        }
    }

    /// A node tells the members of a room of a message.
    pub(super) fn heard(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        room: RoomId,
        message: &Delivered,
    ) -> Result<(), Broken> {
        if self.sides(room).is_none() {
            return Ok(());
        }
        conversations::may_be_told(cluster, node, message)
    }

    /// A batch is durable at a node.
    pub(super) fn stored(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        batch: &[Change],
    ) -> Result<(), Broken> {
        if self.agents.is_empty() {
            return Ok(());
        }
        self.requests.stored(cluster, node, batch);
        self.inboxes.stored(cluster, node, batch)
    }

    /// A node tells the fate of a request.
    pub(super) fn ended(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        request: (MessageId, Stage),
    ) -> Result<(), Broken> {
        match cluster.plan.correspondence {
            Some(Correspondence::Inboxes) => self.requests.told(cluster, node, request),
            Some(Correspondence::Answering { .. }) | None => Ok(()),
        }
    }

    /// A node has started on what its disk has.
    pub(super) fn node_is_back(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
    ) -> Result<(), Broken> {
        if self.agents.is_empty() {
            return Ok(());
        }
        self.inboxes.restarted(cluster, node)?;
        self.are_right(cluster, node)
    }
}

fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    match asked {
        Asked::Mint(_) => *refused == Refused::Stopping,
        // The other one's key, or the caller's, is not known here yet.
        Asked::Open(..) => {
            let unknown = matches!(refused, Refused::NoAgent(_) | Refused::NoMailbox(_));
            unknown || may_be_in_the_way(refused)
        }
        Asked::Task(step) => step.may_be_refused(refused),
        Asked::Create(_) => matches!(refused, Refused::NameTaken(_)) || may_be_in_the_way(refused),
        Asked::Join(..) | Asked::Inbox(..) => may_be_in_the_way(refused),
        Asked::Detach | Asked::Handed => may_be_in_the_way(refused),
        Asked::Say(saying) => match &saying.why {
            Why::Chat => may_be_in_the_way(refused),
            Why::Answer { .. } | Why::Ask { .. } | Why::Question | Why::Help { .. } | Why::Brag => {
                false
            }
        },
        Asked::Attach(_) => false,
    }
}

/// A message at a node, by the room and the number there.
type At = (RoomId, Number);

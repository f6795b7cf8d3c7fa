//! Agents at two nodes that are never up at the same time: two of one key, which make private rooms, and two of two keys, which
//! have a direct room. A third node, and perhaps a fourth one, is there meanwhile, has none of these keys, and carries.
//!
//! *carried*: when one of the two goes, it has all that was answered at the other one at least [`SETTLED`] before that one went the
//! last time: messages are delivered, files show with their bytes. *sealed*: as of [`super::holders`].

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mesh::{
    api::{
        agenda::NewKey,
        batch::Change,
        command::{
            Attach, CallId, Caller, Command, Encryption, FileAct, FileChange, NewRoom, Outcome,
            Refused, Speech,
        },
    },
    name::{
        id::{AgentId, KeyPrint, RoomId, RoomKey},
        key::KeySecret,
    },
    records::files::NewFile,
    wire::acts::{KeyMinted, KeyTerms, Tier},
};
use store::records;

use super::{
    agents::say,
    cluster::Cluster,
    coverage::Happening,
    holders::MARK,
    keys,
    parts::{Answers, Calls, Part, Reply, Seated, may_be_in_the_way},
    plan::{LAPTOPS, Phase},
    promises::{Broken, Entry, Promises, broken},
};

/// A node hands over at a tick, and a carrier that does not answer is asked again after five seconds.
const SETTLED: Duration = Duration::from_secs(10);
/// While both are up nothing is written in these last moments: what one does not get then may not be noted as owed.
const SILENT: Duration = Duration::from_secs(3);
/// The node at which the keys are minted.
const MINT: usize = 0;
/// The names of the keys, and the agents with their keys and nodes.
const KEYS: [&str; 3] = ["road key", "here key", "there key"];
const AGENTS: [(&str, usize, usize); 4] = [
    ("road0", 0, LAPTOPS[0]),
    ("road1", 0, LAPTOPS[1]),
    ("here", 1, LAPTOPS[0]),
    ("there", 2, LAPTOPS[1]),
];
/// The two that have a direct room.
const PAIR: [usize; 2] = [2, 3];
/// Files of one room that are written at one node.
const FILES: u64 = 3;

#[derive(Debug)]
struct Key {
    secret: Arc<KeySecret>,
    print: KeyPrint,
    opener: RoomKey,
    minted: bool,
}

#[derive(Debug)]
struct Agent {
    id: AgentId,
    key: usize,
    home: usize,
    place: Option<Seated>,
    registering: bool,
    /// Rooms that it has joined, or opened.
    rooms: Vec<RoomId>,
    /// It has made its private room.
    has_hall: bool,
}

/// The purpose of a call.
#[derive(Clone, Debug)]
enum Asked {
    Mint(usize),
    Attach(usize),
    Hall(usize),
    Open(usize),
    Join(usize, RoomId),
    Say(RoomId),
    /// The so manieth state of this file.
    File(Named, usize),
}

/// A file that one node writes.
type Named = (RoomId, String);

/// A message that was answered.
#[derive(Clone, Copy, Debug)]
struct Said {
    room: RoomId,
    entry: Entry,
    node: usize,
    at: Duration,
}

/// A state of a file: `None`: it is deleted.
#[derive(Debug)]
struct State {
    text: Option<String>,
    /// When it was answered. It may be there without.
    at: Option<Duration>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Laptops {
    keys: Vec<Key>,
    agents: Vec<Agent>,
    calls: Calls<Asked>,
    /// Private rooms, by the key that made each.
    halls: Vec<(usize, RoomId)>,
    said: Vec<Said>,
    files: BTreeMap<Named, (usize, Vec<State>)>,
}

impl Laptops {
    pub(super) fn new(cluster: &Cluster) -> Laptops {
        if cluster.plan.laptops.is_none() {
            return Laptops::default();
        }
        let key = |name: &&str| {
            let secret = Arc::new(keys::secret(name));
            let opener = RoomKey::of(&keys::text(name));
            Key { print: secret.print(), secret, opener, minted: false }
        };
        let agent = |(id, key, home): &(&str, usize, usize)| Agent {
            id: AgentId::from(*id),
            key: *key,
            home: *home,
            place: None,
            registering: false,
            rooms: Vec::new(),
            has_hall: false,
        };
        Laptops {
            keys: KEYS.iter().map(key).collect(),
            agents: AGENTS.iter().map(agent).collect(),
            ..Laptops::default()
        }
    }

    // Their acts.

    /// Some agent does something, if it is time.
    pub(super) fn go_on(&mut self, cluster: &mut Cluster) {
        let Some(laptops) = &cluster.plan.laptops else { return };
        let (together, now) = (laptops.together, cluster.now());
        let is_silent = together.is_some_and(|end| now < end && now + SILENT > end);
        if cluster.quiet || is_silent || !self.are_minted(cluster) {
            return;
        }
        let i = cluster.dice.index(self.agents.len());
        let Some(by) = self.agents[i].place.clone() else { return self.register(cluster, i) };
        if PAIR.contains(&i) && (self.agents[i].rooms.is_empty() || cluster.dice.chance(3)) {
            return self.open_direct(cluster, i, by);
        }
        if !PAIR.contains(&i) && !self.agents[i].has_hall {
            return self.make_hall(cluster, i, by);
        }
        match cluster.dice.within(0, 9) {
            0..=2 => self.join_some(cluster, i, by),
            3..=4 => self.change_file(cluster, i, by),
            _ => self.speak(cluster, i, by),
        }
    }

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

    fn register(&mut self, cluster: &mut Cluster, i: usize) {
        let (agent, key) = (&self.agents[i], &self.keys[self.agents[i].key]);
        let node = agent.home;
        if cluster.nodes[node].running.is_none() || agent.registering {
            return;
        }
        let at = cluster.log_of(node);
        let attach = Attach {
            claim: Some(Box::new(keys::claim(&key.secret, at.mesh, &agent.id))),
            shown: Some(Box::new(keys::shown(&key.secret, &at))),
            agent: agent.id.clone(),
            stable: true,
            reconnect: true,
            key: key.print,
            own: false,
            mailbox: key.secret.mailbox().ok().cloned(),
            opener: Some(key.opener.clone()),
            name: format!("the {}", agent.id),
            capabilities: Vec::new(),
        };
        self.agents[i].registering = true;
        self.calls.ask(cluster, node, Asked::Attach(i), Command::Attach(attach));
    }

    fn open_direct(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let Some(with) = PAIR.into_iter().find(|other| *other != i) else { return };
        let signer = Some(Arc::clone(&self.keys[self.agents[i].key].secret));
        let agent = self.agents[with].id.clone();
        let command = Command::OpenDirect { caller: by.caller, signer, agent, task: None };
        self.calls.ask(cluster, by.node, Asked::Open(i), command);
    }

    fn make_hall(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        self.agents[i].has_hall = true;
        let room = NewRoom {
            name: format!("hall of {} {MARK}", self.agents[i].id),
            description: None,
            parent: None,
            ephemeral: false,
            public: false,
            encrypted: false,
        };
        let command = Command::CreateRoom { caller: by.caller, room };
        self.calls.ask(cluster, by.node, Asked::Hall(i), command);
    }

    /// A private room of its key that its node knows.
    fn join_some(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let agent = &self.agents[i];
        let here = cluster.nodes[by.node].running.as_ref();
        let here = here.and_then(|running| running.reader.rooms().ok()).unwrap_or_default();
        let is_here = |room: &RoomId| here.iter().any(|(known, _)| known == room);
        let halls = self.halls.iter().filter(|(key, room)| *key == agent.key && is_here(room));
        let room = halls.map(|(_, room)| *room).find(|room| !agent.rooms.contains(room));
        if let Some(room) = room {
            let command = Command::Join { caller: by.caller, room };
            self.calls.ask(cluster, by.node, Asked::Join(i, room), command);
        }
    }

    fn some_room(&self, cluster: &mut Cluster, i: usize) -> Option<RoomId> {
        let rooms = &self.agents[i].rooms;
        (!rooms.is_empty()).then(|| *cluster.dice.pick(rooms))
    }

    fn speak(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let Some(room) = self.some_room(cluster, i) else { return };
        let n = cluster.text();
        let long = cluster.dice.chance(5);
        let content = if long { format!("{n:>20000} {MARK}") } else { format!("{n} {MARK}") };
        let command = Command::Say { caller: by.caller, say: say(room, Speech::Chat, content) };
        self.calls.ask(cluster, by.node, Asked::Say(room), command);
    }

    /// It writes or deletes a file that nobody else writes.
    fn change_file(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let Some(room) = self.some_room(cluster, i) else { return };
        let path = format!("of-{}/{}", self.agents[i].id, cluster.dice.within(1, FILES));
        let pad = " ".repeat(if cluster.dice.chance(5) { 200_000 } else { 1 });
        let text = cluster.dice.chance(80).then(|| format!("{}{pad}{MARK}", cluster.text()));
        let named = (room, path.clone());
        let (_, states) = self.files.entry(named.clone()).or_insert((by.node, Vec::new()));
        states.push(State { text: text.clone(), at: None });
        let asked = Asked::File(named, states.len() - 1);
        let act = match text {
            Some(text) => {
                let bytes = text.into_bytes();
                FileAct::Put(NewFile { path, media: None, bytes }, Encryption::None)
            }
            None => FileAct::Remove(path),
        };
        let signer = Some(Arc::clone(&self.keys[self.agents[i].key].secret));
        let (key, agent) = (by.caller.key, Some(by.caller.agent));
        let command = Command::ChangeFile(Box::new(FileChange { room, key, agent, signer, act }));
        self.calls.ask(cluster, by.node, asked, command);
    }

    // What becomes of them.

    /// A node stores something that it carries, or does not carry any more.
    pub(super) fn stored(&self, cluster: &mut Cluster, change: &Change) {
        if let Change::Load { load, .. } = change {
            let happening =
                if load.is_some() { Happening::Carried } else { Happening::CarriedNoMore };
            cluster.coverage.count(happening);
        }
    }

    fn registered(
        &mut self,
        node: usize,
        i: usize,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let agent = &mut self.agents[i];
        agent.registering = false;
        match result {
            Ok(Outcome::Attached(attached)) => {
                let (key, registration) = (self.keys[agent.key].print, attached.registration);
                let caller = Caller { agent: agent.id.clone(), key, registration };
                agent.place = Some(Seated { node, caller });
                agent.rooms = attached.restored.iter().flatten().map(|(room, _)| *room).collect();
                Ok(())
            }
            // The key is not known here yet.
            Err(Refused::NoKey | Refused::Stopping) => Ok(()),
            _ => broken("ids", format!("node{node} answers {}: {result:?}", agent.id)),
        }
    }

    fn enters(&mut self, i: usize, room: RoomId) {
        let rooms = &mut self.agents[i].rooms;
        if !rooms.contains(&room) {
            rooms.push(room);
        }
    }

    /// *carried*, at the end of a phase of one of the two nodes. `away`: when the other one went last.
    pub(super) fn has_all(
        &self,
        cluster: &Cluster,
        promises: &Promises,
        (phase, away): (&Phase, Duration),
    ) -> Result<(), Broken> {
        let (node, until) = (phase.node, away.saturating_sub(SETTLED));
        let id = cluster.nodes[node].id;
        let Some(running) = &cluster.nodes[node].running else {
            return broken("carried", format!("node{node} is down in calm weather"));
        };
        if LAPTOPS.iter().all(|node| cluster.nodes[*node].running.is_some()) {
            return broken("carried", "the two are up together: nothing is judged".to_owned());
        }
        let owed = |said: &&Said| said.node != node && said.at <= until;
        for said in self.said.iter().filter(owed) {
            if !promises.seen(id, said.room).contains(&said.entry) {
                let what = format!("{said:?} did not come to node{node} until {:?}", cluster.now());
                return broken("carried", what);
            }
        }
        let proofs = running.engine.proofs();
        for ((room, path), (by, states)) in self.files.iter().filter(|(_, (by, _))| *by != node) {
            let is_owed = |state: &State| state.at.is_some_and(|at| at <= until);
            let Some(last) = states.iter().rposition(is_owed) else { continue };
            let name = (*room, path.as_str());
            let found = records::file(&running.reader, cluster.secret.mesh_id(), name, &proofs)?;
            let shown = match found {
                Some((_, Some(bytes))) => Some(Some(String::from_utf8_lossy(&bytes).into_owned())),
                Some((_, None)) => None,
                None => Some(None),
            };
            // Or a later one, whose bytes may come later than its record.
            let mut later = states[last + 1..].iter();
            let is_right = match &shown {
                Some(text) => states[last].text == *text || later.any(|it| it.text == *text),
                None => later.any(|it| it.text.is_some()),
            };
            if !is_right {
                let text = shown.map(|text| text.map(|text| text.trim_end().to_owned()));
                let what = format!(
                    "{path} of {room}, written {} times at node{by}, is {text:?} at node{node}",
                    states.len(),
                );
                return broken("carried", what);
            }
        }
        Ok(())
    }
}

impl Part for Laptops {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Some(asked) = self.calls.take(reply) else { return Ok(false) };
        let Reply { node, result, .. } = reply;
        let (node, at) = (*node, cluster.now());
        if let Err(refused) = result {
            cluster.say(|| format!("node{node}: {asked:?} refused: {refused}"));
        }
        match (asked, result) {
            (Asked::Attach(i), result) => self.registered(node, i, result)?,
            (Asked::Mint(key), Ok(_)) => self.keys[key].minted = true,
            (Asked::Hall(i), Ok(Outcome::Room(view))) => {
                self.halls.push((self.agents[i].key, view.room));
            }
            (Asked::Hall(i), Err(refused)) if may_be_in_the_way(refused) => {
                self.agents[i].has_hall = false;
            }
            (Asked::Open(i), Ok(Outcome::Room(view))) => self.enters(i, view.room),
            (Asked::Join(i, room), Ok(_)) => self.enters(i, room),
            (Asked::Say(room), Ok(Outcome::Said(said))) => {
                let reader = cluster.nodes[node].running.as_ref().map(|running| &running.reader);
                let row = reader.and_then(|it| it.by_message(room, said.message).ok().flatten());
                self.said.extend(row.map(|row| Said {
                    room,
                    entry: (row.log, row.at.seq),
                    node,
                    at,
                }));
            }
            (Asked::File(named, nth), Ok(_)) => {
                if let Some((_, states)) = self.files.get_mut(&named) {
                    states[nth].at = Some(at);
                }
            }
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
        for agent in self.agents.iter_mut().filter(|agent| agent.home == node) {
            (agent.place, agent.registering) = (None, false);
            agent.rooms.clear();
        }
    }

    fn said_in(&self, call: CallId) -> Option<RoomId> {
        if let Asked::Say(room) = self.calls.asked(call)? { Some(*room) } else { None }
    }

    fn open(&self, now: Duration) -> Vec<String> {
        self.calls.open(now)
    }

    fn answers(&self) -> Answers {
        self.calls.answers()
    }
}

fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    match asked {
        Asked::Mint(_) => *refused == Refused::Stopping,
        // The other one's key, or the caller's, is not known here yet.
        Asked::Open(_) => {
            let unknown = matches!(refused, Refused::NoAgent(_) | Refused::NoMailbox(_));
            unknown || may_be_in_the_way(refused)
        }
        Asked::File(..) => *refused == Refused::NoFile || may_be_in_the_way(refused),
        Asked::Join(..) | Asked::Say(_) => may_be_in_the_way(refused),
        Asked::Hall(_) | Asked::Attach(_) => false,
    }
}

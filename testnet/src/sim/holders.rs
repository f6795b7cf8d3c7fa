//! Agents with minted keys in a simulated world: operators mint and revoke the keys, agents register
//! under ids that others want too, at nodes that change, and make public and private rooms. What must
//! hold of that at every moment is here, what must hold in the end in `keyed`.
//!
//! *keys*: a key is valid where it was minted and from then on, and never again where it was revoked.
//! *ids*: an id that nobody else wants is never refused to its agent, and without splits and crashes
//! one that two keys want is only ever given to one of them. *sealed*: private rooms are only where
//! their key was presented, and nothing that is written there, nor what they are called, leaves a node
//! in the clear.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mesh::{
    Input,
    api::{
        agenda::NewKey,
        batch::Change,
        command::{
            Attach, CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, RoomView, Say,
            Speech,
        },
        event::AgentEvent,
    },
    name::id::{AgentId, KeyPrint, NodeId, RoomId, RoomKey},
    wire::{acts::Tier, entry::Body},
};

use super::{
    dice::Dice,
    promises::{Broken, Entry, broken},
    world::World,
};

/// Part of all that is private: found nowhere but in the memory of a node that has the key.
pub(super) const MARK: &str = "for few eyes";
/// Ids, and the keys that want them. The last key is revoked some time.
const IDS: [(&str, &[usize]); 6] = [
    ("twin0", &[0, 1]),
    ("twin1", &[0, 1]),
    ("red", &[0]),
    ("blue", &[1]),
    ("lost0", &[2]),
    ("lost1", &[2]),
];
/// The key that is revoked.
const LOST: usize = 2;
/// Permanent and ephemeral rooms of one key.
const ROOMS_MAX: usize = 5;

/// A minted key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) print: KeyPrint,
    pub(super) opener: RoomKey,
    tier: Tier,
    /// The nodes at which its agents register.
    pub(super) nodes: Vec<usize>,
    /// Nodes that said they minted it, and that they revoked it.
    pub(super) minted: BTreeSet<usize>,
    pub(super) revoked: BTreeSet<usize>,
    /// Somebody has tried to.
    pub(super) revoking: bool,
}

/// An agent of a minted key.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) id: AgentId,
    pub(super) key: usize,
    /// Another key wants the id.
    pub(super) contested: bool,
    place: Option<(usize, Caller)>,
    rooms: BTreeSet<RoomId>,
    /// At which node it is registering.
    registering: Option<usize>,
}

/// A room that an agent of a minted key was told it had made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) room: RoomId,
    pub(super) name: String,
    pub(super) key: usize,
    pub(super) public: bool,
    pub(super) ephemeral: bool,
}

/// A registration, and what has to come of it.
#[derive(Clone, Debug)]
struct Registering {
    holder: usize,
    reconnect: bool,
    must_be_valid: bool,
    must_be_refused: bool,
}

#[derive(Clone, Debug)]
enum Asked {
    Mint(usize),
    Revoke {
        key: usize,
        must_be_known: bool,
    },
    Attach(Registering),
    Detach,
    Create(usize, Box<NewRoom>),
    Join(usize, RoomId),
    Leave(usize, RoomId),
    Say(RoomId),
    /// Whatever the answer is.
    Probe,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Holders {
    pub(super) keys: Vec<Key>,
    pub(super) holders: Vec<Holder>,
    pub(super) made: Vec<Made>,
    asked: BTreeMap<CallId, (usize, Asked)>,
    pub(super) answers: BTreeMap<CallId, Result<Outcome, Refused>>,
    /// Nodes to which a key was presented, and nodes that follow its rooms, since when: Unix milliseconds.
    presented: BTreeSet<(usize, KeyPrint)>,
    pub(super) follows: BTreeMap<(NodeId, KeyPrint), u64>,
    /// Keys that are valid in the end.
    pub(super) valid: BTreeSet<KeyPrint>,
    /// Whose each sealed room is.
    pub(super) sealed: BTreeMap<RoomId, KeyPrint>,
    /// Sealed rooms that list others.
    pub(super) directories: BTreeSet<RoomId>,
    /// Claims of ids, wherever they are written.
    pub(super) claims: BTreeMap<Entry, (AgentId, KeyPrint)>,
    /// Which key has had an id.
    had: BTreeMap<AgentId, usize>,
    /// What left a node in the clear.
    pub(super) leaked: Option<Broken>,
}

impl Holders {
    pub(super) fn new(nodes: usize, dice: &mut Dice) -> Holders {
        let key = |name: &str, tier, dice: &mut Dice| {
            let mut at: Vec<usize> = (0..nodes).filter(|_| dice.chance(60)).collect();
            if at.is_empty() {
                at.push(dice.index(nodes));
            }
            Key {
                print: KeyPrint::of(name),
                opener: RoomKey::of(name),
                tier,
                nodes: at,
                minted: BTreeSet::new(),
                revoked: BTreeSet::new(),
                revoking: false,
            }
        };
        let holder = |id: &str, key: usize, contested: bool| Holder {
            id: id.into(),
            key,
            contested,
            place: None,
            rooms: BTreeSet::new(),
            registering: None,
        };
        let holders = IDS
            .iter()
            .flat_map(|(id, keys)| keys.iter().map(move |key| holder(id, *key, keys.len() > 1)));
        Holders {
            keys: vec![
                key("red key", Tier::High, dice),
                key("blue key", Tier::Low, dice),
                key("lost key", Tier::Low, dice),
            ],
            holders: holders.collect(),
            made: Vec::new(),
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            presented: BTreeSet::new(),
            follows: BTreeMap::new(),
            valid: BTreeSet::new(),
            sealed: BTreeMap::new(),
            directories: BTreeSet::new(),
            claims: BTreeMap::new(),
            had: BTreeMap::new(),
            leaked: None,
        }
    }

    /// Its agents lose their connections; calls that were open are never answered.
    pub(super) fn node_down(&mut self, node: usize) {
        self.asked.retain(|_, (at, _)| *at != node);
        for holder in &mut self.holders {
            if holder.place.as_ref().is_some_and(|(at, _)| *at == node) {
                holder.leave();
            }
            holder.registering = holder.registering.filter(|at| *at != node);
        }
    }

    pub(super) fn said_in(&self, call: CallId) -> Option<RoomId> {
        match self.asked.get(&call)? {
            (_, Asked::Say(room)) => Some(*room),
            _ => None,
        }
    }

    /// Calls that nobody answered though their node lives.
    pub(super) fn open(&self) -> usize {
        self.asked.len()
    }

    fn key_of(&self, holder: usize) -> &Key {
        &self.keys[self.holders[holder].key]
    }
}

impl Holder {
    fn leave(&mut self) {
        self.place = None;
        self.rooms.clear();
    }
}

/// What they do.
impl World {
    fn ask_for_holder(&mut self, node: usize, asked: Asked, command: Command) -> CallId {
        let call = self.call();
        self.holders.asked.insert(call, (node, asked));
        self.give(node, Input::Command { call, command });
        call
    }

    /// Asks whatever the answer is: it is in `answers`, once it has come.
    pub(super) fn probe_node(&mut self, node: usize, command: Command) -> CallId {
        self.ask_for_holder(node, Asked::Probe, command)
    }

    /// Some operator or agent does something.
    pub(super) fn hold_some(&mut self) {
        let minted = self.holders.keys.iter().all(|it| !it.minted.is_empty());
        if self.dice.chance(if minted { 4 } else { 50 }) {
            return self.operate();
        }
        let i = self.dice.index(self.holders.holders.len());
        let Some((node, caller)) = self.holders.holders[i].place.clone() else {
            return self.register_some(i);
        };
        match self.dice.within(0, 99) {
            0..=5 => {
                let seen = Vec::new();
                self.holders.holders[i].leave();
                self.ask_for_holder(node, Asked::Detach, Command::Detach { caller, seen });
            }
            6..=13 => self.register_some(i),
            14..=29 => self.create_for(i, (node, caller)),
            30..=55 => self.join_for(i, (node, caller)),
            56..=60 => {
                let rooms: Vec<RoomId> = self.holders.holders[i].rooms.iter().copied().collect();
                if !rooms.is_empty() {
                    let room = *self.dice.pick(&rooms);
                    let command = Command::Leave { caller, room };
                    self.ask_for_holder(node, Asked::Leave(i, room), command);
                }
            }
            _ => self.speak_for(i, (node, caller)),
        }
    }

    fn operate(&mut self) {
        let node = self.dice.index(self.nodes.len());
        if self.nodes[node].running.is_none() {
            return;
        }
        let i = self.dice.index(self.holders.keys.len());
        let key = &mut self.holders.keys[i];
        // Now and then it is minted in two places: on two sides of a split nobody knows.
        if key.minted.is_empty() || self.dice.chance(30) {
            let label = Some(format!("label {i}"));
            let mint = NewKey { key: key.print, tier: key.tier, label, local: false };
            self.ask_for_holder(node, Asked::Mint(i), Command::MintKey(mint));
        } else if i == LOST && self.dice.chance(40) {
            key.revoking = true;
            let must_be_known = key.minted.contains(&node);
            let asked = Asked::Revoke { key: i, must_be_known };
            let command = Command::RevokeKey { key: key.print };
            self.ask_for_holder(node, asked, command);
        }
    }

    /// An agent that is nowhere, or somewhere else, registers.
    fn register_some(&mut self, i: usize) {
        let node = *self.dice.pick(&self.holders.key_of(i).nodes.clone());
        if self.nodes[node].running.is_none() || self.holders.holders[i].registering.is_some() {
            return;
        }
        let reconnect = self.dice.chance(85);
        let key = self.holders.key_of(i);
        let asked = Registering {
            holder: i,
            reconnect,
            must_be_valid: key.minted.contains(&node) && !key.revoking,
            must_be_refused: key.revoked.contains(&node),
        };
        let opener = Some(key.opener.clone());
        let attach = self.attach_of(i, reconnect, opener);
        self.holders.presented.insert((node, attach.key));
        self.holders.holders[i].registering = Some(node);
        self.ask_for_holder(node, Asked::Attach(asked), Command::Attach(attach));
    }

    pub(super) fn attach_of(&self, i: usize, reconnect: bool, opener: Option<RoomKey>) -> Attach {
        let holder = &self.holders.holders[i];
        Attach {
            agent: holder.id.clone(),
            stable: true,
            reconnect,
            key: self.holders.key_of(i).print,
            own: false,
            opener,
            name: format!("agent {}", holder.id),
            capabilities: Vec::new(),
        }
    }

    fn create_for(&mut self, i: usize, (node, caller): (usize, Caller)) {
        let key = self.holders.holders[i].key;
        if self.holders.made.iter().filter(|it| it.key == key).count() >= ROOMS_MAX {
            return;
        }
        let public = self.dice.chance(45);
        let n = self.dice.within(0, 2);
        let room = NewRoom {
            name: if public { format!("hall{n}") } else { format!("den{n} {MARK}") },
            description: (!public).then(|| format!("what is {MARK}")),
            parent: None,
            ephemeral: self.dice.chance(35),
            public,
            encrypted: false,
        };
        let asked = Asked::Create(key, Box::new(room.clone()));
        self.ask_for_holder(node, asked, Command::CreateRoom { caller, room });
    }

    fn join_for(&mut self, i: usize, (node, caller): (usize, Caller)) {
        let key = self.holders.holders[i].key;
        let rooms = self.holders.made.iter().filter(|it| it.public || it.key == key);
        let rooms: Vec<RoomId> = rooms.map(|it| it.room).collect();
        if !rooms.is_empty() {
            let room = *self.dice.pick(&rooms);
            self.ask_for_holder(node, Asked::Join(i, room), Command::Join { caller, room });
        }
    }

    fn speak_for(&mut self, i: usize, (node, caller): (usize, Caller)) {
        let rooms: Vec<RoomId> = self.holders.holders[i].rooms.iter().copied().collect();
        if rooms.is_empty() {
            return;
        }
        let room = *self.dice.pick(&rooms);
        self.messages += 1;
        let n = self.messages;
        let private = self.holders.made.iter().any(|it| it.room == room && !it.public);
        let text = if private { MARK } else { "for all" };
        let content = if self.dice.chance(3) {
            format!("{n:>20000} {text}")
        } else {
            format!("message {n} {text}")
        };
        let say = Say {
            room,
            speech: if self.dice.chance(20) { Speech::Thinking } else { Speech::Chat },
            content,
            encryption: Encryption::None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        self.ask_for_holder(node, Asked::Say(room), Command::Say { caller, say });
    }
}

/// What they are told.
impl World {
    /// Whether the call was a holder's; and if so what the answer says.
    pub(super) fn holder_replied(
        &mut self,
        node: usize,
        call: CallId,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        let Some((_, asked)) = self.holders.asked.remove(&call) else { return Ok(false) };
        if matches!(asked, Asked::Probe) {
            self.holders.answers.insert(call, result.clone());
            return Ok(true);
        }
        self.agents.answered += 1;
        if let Err(refused) = result {
            self.agents.refused += 1;
            self.say(|| format!("node{node}: {asked:?} refused: {refused}"));
        }
        match (asked, result) {
            (Asked::Attach(it), result) => self.holder_registered(node, &it, result)?,
            (Asked::Mint(key), Ok(_)) => {
                self.holders.keys[key].minted.insert(node);
            }
            (Asked::Revoke { key, .. }, Ok(_)) => {
                self.say(|| format!("node{node}: the key is revoked"));
                self.coverage.count(super::coverage::Happening::KeyRevoked);
                self.holders.keys[key].revoked.insert(node);
            }
            (Asked::Create(key, asked), Ok(Outcome::Room(view))) => {
                self.holder_made(key, *asked, view);
            }
            (Asked::Join(i, room), Ok(_)) => {
                self.holders.holders[i].rooms.insert(room);
            }
            (Asked::Leave(i, room), Ok(_)) => {
                self.holders.holders[i].rooms.remove(&room);
            }
            (Asked::Detach | Asked::Say(_), Ok(_)) => {}
            // The key was minted by whoever parted, beyond what counts of it.
            (Asked::Create(..), Err(Refused::NoRoom)) if self.plan.parting.is_some() => {}
            (asked, Err(refused)) if may_be_refused(&asked, refused) || self.is_exempt(node) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }

    fn holder_made(&mut self, key: usize, asked: NewRoom, view: &RoomView) {
        if asked.ephemeral {
            self.promises.ephemeral.insert(view.room);
        }
        self.holders.made.push(Made {
            room: view.room,
            name: asked.name,
            key,
            public: asked.public,
            ephemeral: asked.ephemeral,
        });
    }

    fn holder_registered(
        &mut self,
        node: usize,
        asked: &Registering,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let exempt = self.is_exempt(node);
        let holder = &mut self.holders.holders[asked.holder];
        holder.registering = None;
        let (id, key) = (holder.id.clone(), holder.key);
        match result {
            Ok(Outcome::Attached(_)) if asked.must_be_refused => {
                broken("keys", format!("node{node} revoked the key, and takes {id} with it"))
            }
            Ok(Outcome::Attached(it)) => {
                let print = self.holders.keys[key].print;
                let registration = it.registration;
                holder.place =
                    Some((node, Caller { agent: Arc::clone(&id), key: print, registration }));
                let restored = it.restored.iter().flatten().map(|(room, _)| *room);
                holder.rooms = restored.collect();
                let had = *self.holders.had.entry(id.clone()).or_insert(key);
                if self.plan.calm && had != key {
                    return broken("ids", format!("two keys have had {id} in calm weather"));
                }
                Ok(())
            }
            Err(_) if exempt => Ok(()),
            // It may have been revoked while the id was claimed.
            Err(Refused::NoKey) if asked.must_be_valid && !self.holders.keys[key].revoking => {
                broken("keys", format!("node{node} minted the key, and does not know it"))
            }
            Err(Refused::AgentTaken(_)) if asked.reconnect && !holder.contested => {
                broken("ids", format!("node{node} refuses {id}, which nobody else wants"))
            }
            Err(Refused::NoKey | Refused::AgentTaken(_) | Refused::Stopping) => Ok(()),
            _ => broken("replies", format!("node{node}: {asked:?} got {result:?}")),
        }
    }

    pub(super) fn holder_told(&mut self, node: usize, event: &AgentEvent) {
        match event {
            AgentEvent::Displaced { agent, registration } => {
                self.displaced(node, |caller| {
                    (&caller.agent, caller.registration) == (agent, *registration)
                });
            }
            AgentEvent::KeyRevoked { key } => self.displaced(node, |caller| caller.key == *key),
            AgentEvent::Seated { .. } => {}
        }
    }

    fn displaced(&mut self, node: usize, which: impl Fn(&Caller) -> bool) {
        for holder in &mut self.holders.holders {
            if holder.place.as_ref().is_some_and(|(at, it)| *at == node && which(it)) {
                holder.leave();
            }
        }
    }
}

/// What nodes write.
impl World {
    /// *sealed*: followers are where the key was presented.
    pub(super) fn holder_stored(&mut self, node: usize, change: &Change) -> Result<(), Broken> {
        if let Change::Room { room, record } = change
            && let Some(seal) = &record.seal
        {
            if !self.holders.presented.contains(&(node, seal.owner)) {
                let what = format!("node{node} has {room}, whose key it was never given");
                return broken("sealed", what);
            }
            self.holders.sealed.insert(*room, seal.owner);
            let since = self.wall_ms(std::time::Duration::ZERO);
            self.holders.follows.entry((self.nodes[node].id, seal.owner)).or_insert(since);
            if seal.opener.is_some() {
                self.holders.directories.insert(*room);
            }
        }
        if let Change::Entry { room, at, entry } = change
            && *room == RoomId::directory(self.secret.mesh_id())
            && let Body::AgentClaimed(it) = Body::decode(entry.facts.kind, &entry.body)
        {
            let place = self.entry(node, *room, *at)?;
            self.holders.claims.insert(place, (it.agent, it.key));
        }
        Ok(())
    }

    /// *sealed*: whatever is sent, to whomever.
    pub(super) fn look_into(&mut self, from: usize, bytes: &[u8]) {
        if self.holders.leaked.is_none() && has_mark(bytes) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let what = format!("node{from} sends in the clear: {text}");
            self.holders.leaked = Some(Broken { promise: "sealed", what });
        }
    }

    /// Nodes that have a room.
    pub(super) fn nodes_with(&self, room: RoomId) -> Vec<NodeId> {
        let all = self.nodes.iter().map(|it| it.id);
        match self.holders.sealed.get(&room) {
            None => all.collect(),
            Some(owner) => {
                all.filter(|it| self.holders.follows.contains_key(&(*it, *owner))).collect()
            }
        }
    }
}

pub(super) fn has_mark(bytes: &[u8]) -> bool {
    let mark = MARK.as_bytes();
    bytes.windows(mark.len()).any(|it| it[0] == mark[0] && it == mark)
}

fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    match asked {
        Asked::Mint(_) => matches!(refused, Refused::Invalid(_) | Refused::Stopping),
        Asked::Revoke { must_be_known, .. } => {
            *refused == Refused::Stopping || (*refused == Refused::NoKey && !must_be_known)
        }
        Asked::Create(key, _) => {
            let revoked = *key == LOST && *refused == Refused::NoRoom;
            revoked
                || matches!(
                    refused,
                    Refused::NameTaken(_) | Refused::Superseded | Refused::Stopping
                )
        }
        Asked::Join(..) | Asked::Leave(..) | Asked::Say(_) => matches!(
            refused,
            Refused::NoRoom
                | Refused::NotMember
                | Refused::Superseded
                | Refused::Closed
                | Refused::Stopping
        ),
        Asked::Detach => *refused == Refused::Stopping,
        Asked::Attach(_) | Asked::Probe => false,
    }
}

//! Agents with minted keys in a simulated world: operators mint and revoke the keys, agents register
//! under ids that others want too, at nodes that change, and make public and private rooms. Promises of
//! every moment are here, those of the end in `end`.
//!
//! *keys*: a key is valid where it was minted and from then on, and never again where it was revoked.
//! *ids*: an id that nobody else wants is never refused to its agent, and without splits and crashes
//! one that two keys want is only ever given to one of them; one that was drawn for a key is never another's. *sealed*: private rooms are only where
//! their key was presented, and neither their names nor anything that is written there leaves a node
//! in the clear.

pub(super) mod accounts;
pub(super) mod alike;
mod answers;
mod asked;
mod details;
mod direct;
pub(super) mod end;
mod files;
mod members;
mod owners;
mod profiles;
mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use mesh::{
    api::{
        agenda::NewKey,
        batch::Change,
        command::{Attach, CallId, Caller, Command, NewRoom, Outcome, Refused, RoomView, Speech},
        event::AgentEvent,
    },
    name::{
        agent::{Belongs, DRAWN_BYTES, belongs, drawn},
        group::Group,
        id::{AgentId, KeyPrint, RoomId, RoomKey},
        key::KeySecret,
    },
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        entry::Body,
        signatures::SignedLog,
    },
};

use self::asked::{Asked, Registering};
use super::{
    agents::say,
    cluster::Cluster,
    coverage::Happening,
    keys,
    parts::{Answers, Calls, Part, Reply, Seated, may_be_in_the_way},
    promises::{Broken, Entry, broken},
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
/// Some keys, by their place.
const RED: usize = 0;
const BLUE: usize = 1;
/// The key that is revoked.
const LOST: usize = 2;
/// Of an id that is drawn for the red key, and that an agent with the blue one wants, too.
const DRAWN: [u8; DRAWN_BYTES] = *b"random";
/// Permanent and ephemeral rooms of one key.
const ROOMS_MAX: usize = 5;

/// A minted key.
#[derive(Debug)]
struct Key {
    secret: Arc<KeySecret>,
    print: KeyPrint,
    opener: RoomKey,
    tier: Tier,
    /// The nodes at which its agents register.
    nodes: Vec<usize>,
    /// Nodes that said they minted it, and that they revoked it.
    minted: BTreeSet<usize>,
    revoked: BTreeSet<usize>,
    /// Somebody has tried to.
    revoking: bool,
}

/// An agent of a minted key.
#[derive(Debug)]
struct Holder {
    id: AgentId,
    key: usize,
    /// Another key wants the id.
    contested: bool,
    place: Option<Seated>,
    rooms: BTreeSet<RoomId>,
    /// The node at which it is registering.
    registering: Option<usize>,
}

/// A room that an agent of a minted key was told it had made.
#[derive(Clone, Debug)]
struct Made {
    room: RoomId,
    name: String,
    key: usize,
    public: bool,
    ephemeral: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Holders {
    keys: Vec<Key>,
    holders: Vec<Holder>,
    made: Vec<Made>,
    calls: Calls<Asked>,
    /// Nodes to which a key was presented.
    presented: BTreeSet<(usize, KeyPrint)>,
    /// Keys that are valid in the end.
    valid: BTreeSet<KeyPrint>,
    /// Claims of ids, wherever they are written.
    claims: BTreeMap<Entry, (AgentId, KeyPrint)>,
    /// Which key has had an id.
    had: BTreeMap<AgentId, usize>,
    profiles: profiles::Profiles,
    accounts: accounts::Accounts,
    /// Texts that agents of its key wanted to have set of a room: no other one shows.
    texts: BTreeMap<RoomId, BTreeSet<String>>,
    /// Agents that somebody wanted to have on the list of a room.
    named: BTreeMap<RoomId, BTreeSet<AgentId>>,
    direct: direct::Direct,
    shared: shared::SharedRooms,
    /// Something that left a node in the clear.
    leaked: Option<Broken>,
}

impl Holders {
    pub(super) fn new(cluster: &mut Cluster) -> Holders {
        let nodes = cluster.plan.nodes;
        let mut key = |name: &str, tier| {
            let dice = &mut cluster.dice;
            let mut at: Vec<usize> = (0..nodes).filter(|_| dice.chance(60)).collect();
            if at.is_empty() {
                at.push(dice.index(nodes));
            }
            let secret = Arc::new(keys::secret(name));
            Key {
                print: secret.print(),
                secret,
                opener: RoomKey::of(&keys::text(name)),
                tier,
                nodes: at,
                minted: BTreeSet::new(),
                revoked: BTreeSet::new(),
                revoking: false,
            }
        };
        let keys = vec![
            key("red key", Tier::High),
            key("blue key", Tier::Low),
            key("lost key", Tier::Low),
        ];
        let holder = |id: AgentId, key: usize, contested: bool| Holder {
            id,
            key,
            contested,
            place: None,
            rooms: BTreeSet::new(),
            registering: None,
        };
        let holders = IDS.iter().flat_map(|(id, keys)| {
            keys.iter().map(move |key| holder((*id).into(), *key, keys.len() > 1))
        });
        let mut holders: Vec<Holder> = holders.collect();
        let of_red = drawn(DRAWN, keys[RED].print);
        holders.push(holder(Arc::clone(&of_red), RED, false));
        holders.push(holder(Arc::clone(&of_red), BLUE, true));
        Holders {
            keys,
            holders,
            made: Vec::new(),
            calls: Calls::default(),
            presented: BTreeSet::new(),
            valid: BTreeSet::new(),
            claims: BTreeMap::new(),
            // Without a claim, from the beginning.
            had: [(of_red, RED)].into(),
            profiles: profiles::Profiles::default(),
            accounts: accounts::Accounts::default(),
            texts: BTreeMap::new(),
            named: BTreeMap::new(),
            direct: direct::Direct::default(),
            shared: shared::SharedRooms::default(),
            leaked: None,
        }
    }

    fn key_of(&self, holder: usize) -> &Key {
        &self.keys[self.holders[holder].key]
    }

    /// One of the keys that operators mint.
    fn key(&self, print: KeyPrint) -> Option<&Key> {
        self.keys.iter().find(|key| key.print == print)
    }

    /// Whether an agent's key is valid, and its id wanted by no other key.
    pub(super) fn is_undisputed(&self, agent: &str, key: KeyPrint) -> bool {
        if key == *keys::KEY {
            return true;
        }
        let own = |holder: &&Holder| self.keys[holder.key].print == key && *holder.id == *agent;
        self.holders.iter().find(own).is_some_and(|holder| {
            !holder.contested && self.keys[holder.key].revoked.is_empty() && holder.key != LOST
        })
    }

    /// A promise that was broken by a message on its way, once.
    pub(super) fn take_leaked(&mut self) -> Option<Broken> {
        self.leaked.take()
    }
}

impl Holder {
    fn leave(&mut self) {
        self.place = None;
        self.rooms.clear();
    }
}

/// Their acts.
impl Holders {
    /// Some operator or agent does something.
    pub(super) fn act(&mut self, cluster: &mut Cluster) {
        let minted = self.keys.iter().all(|key| !key.minted.is_empty());
        if cluster.dice.chance(if minted { 4 } else { 50 }) {
            return self.operate(cluster);
        }
        let i = cluster.dice.index(self.holders.len());
        let Some(by) = self.holders[i].place.clone() else { return self.register(cluster, i) };
        match cluster.dice.within(0, 99) {
            0..=5 => {
                self.holders[i].leave();
                let command = Command::Detach { caller: by.caller, seen: Vec::new() };
                self.calls.ask(cluster, by.node, Asked::Detach, command);
            }
            6..=13 => self.register(cluster, i),
            14..=23 => self.create(cluster, i, by),
            24..=29 => self.open_direct(cluster, i, by),
            30..=34 => self.share(cluster, i, by),
            35..=55 => self.join(cluster, i, by),
            61..=68 => self.set_profile(cluster, i, by),
            69..=76 => self.set_room(cluster, i, by),
            77..=82 => self.change_file(cluster, i, by),
            83..=87 => self.set_member(cluster, i, by),
            56..=60 => {
                let rooms: Vec<RoomId> = self.holders[i].rooms.iter().copied().collect();
                if !rooms.is_empty() {
                    let room = *cluster.dice.pick(&rooms);
                    self.leave(cluster, i, by, room);
                }
            }
            _ => self.speak(cluster, i, by),
        }
    }

    fn operate(&mut self, cluster: &mut Cluster) {
        let node = cluster.dice.index(cluster.nodes.len());
        if cluster.nodes[node].running.is_none() {
            return;
        }
        let i = cluster.dice.index(self.keys.len());
        let key = &mut self.keys[i];
        // Now and then it is minted in two places: on two sides of a split nobody knows.
        if key.minted.is_empty() || cluster.dice.chance(30) {
            let terms = KeyTerms { label: Some(format!("label {i}")), ..KeyTerms::of(key.tier) };
            let minted = KeyMinted::sign(&key.secret, &cluster.log_of(node), terms);
            let minted = minted.expect("keys of worlds are long enough");
            let mint = NewKey { minted: Box::new(minted), local: false };
            self.calls.ask(cluster, node, Asked::Mint(i), Command::MintKey(mint));
        } else if i == LOST && cluster.dice.chance(40) {
            key.revoking = true;
            let must_be_known = key.minted.contains(&node);
            let asked = Asked::Revoke { key: i, must_be_known };
            let command = Command::RevokeKey { key: key.print };
            self.calls.ask(cluster, node, asked, command);
        }
    }

    /// An agent that is nowhere, or somewhere else, registers.
    fn register(&mut self, cluster: &mut Cluster, i: usize) {
        let node = *cluster.dice.pick(&self.key_of(i).nodes);
        if cluster.nodes[node].running.is_none() || self.holders[i].registering.is_some() {
            return;
        }
        let reconnect = cluster.dice.chance(85);
        let key = self.key_of(i);
        let asked = Registering {
            holder: i,
            reconnect,
            must_be_valid: key.minted.contains(&node) && !key.revoking,
            must_be_refused: key.revoked.contains(&node),
        };
        let opener = Some(key.opener.clone());
        let attach = self.attach_of(i, &cluster.log_of(node), reconnect, opener);
        self.presented.insert((node, attach.key));
        self.holders[i].registering = Some(node);
        self.calls.ask(cluster, node, Asked::Attach(asked), Command::Attach(attach));
    }

    fn attach_of(
        &self,
        i: usize,
        at: &SignedLog,
        reconnect: bool,
        opener: Option<RoomKey>,
    ) -> Attach {
        let secret = &self.key_of(i).secret;
        let holder = &self.holders[i];
        Attach {
            claim: Some(Box::new(keys::claim(secret, at.mesh, &holder.id))),
            shown: Some(Box::new(keys::shown(secret, at))),
            agent: holder.id.clone(),
            stable: true,
            reconnect,
            key: self.key_of(i).print,
            own: false,
            mailbox: secret.mailbox().ok().filter(|_| opener.is_some()).cloned(),
            opener,
            name: format!("agent {}", holder.id),
            capabilities: Vec::new(),
        }
    }

    fn create(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let key = self.holders[i].key;
        if self.made.iter().filter(|made| made.key == key).count() >= ROOMS_MAX {
            return;
        }
        let public = cluster.dice.chance(45);
        let n = cluster.dice.within(0, 2);
        let room = NewRoom {
            name: if public { format!("hall{n}") } else { format!("den{n} {MARK}") },
            description: (!public).then(|| format!("what is {MARK}")),
            parent: None,
            ephemeral: cluster.dice.chance(35),
            public,
            encrypted: false,
        };
        let asked = Asked::Create(key, Box::new(room.clone()));
        let command = Command::CreateRoom { caller: by.caller, room };
        self.calls.ask(cluster, by.node, asked, command);
    }

    fn join(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let key = self.holders[i].key;
        let rooms = self.made.iter().filter(|made| made.public || made.key == key);
        let rooms = rooms.map(|made| made.room).chain(self.shared.of_key(key));
        let rooms: Vec<RoomId> = rooms.collect();
        if !rooms.is_empty() {
            let room = *cluster.dice.pick(&rooms);
            let command = Command::Join { caller: by.caller, room };
            self.calls.ask(cluster, by.node, Asked::Join(i, room), command);
        }
    }

    fn speak(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let rooms: Vec<RoomId> = self.holders[i].rooms.iter().copied().collect();
        if rooms.is_empty() {
            return;
        }
        let room = *cluster.dice.pick(&rooms);
        let n = cluster.text();
        let private = self.direct.has(room)
            || self.shared.has(room)
            || self.made.iter().any(|made| made.room == room && !made.public);
        let text = if private { MARK } else { "for all" };
        let content = if cluster.dice.chance(3) {
            format!("{n:>20000} {text}")
        } else {
            format!("message {n} {text}")
        };
        let speech = if cluster.dice.chance(20) { Speech::Thinking } else { Speech::Chat };
        let command = Command::Say { caller: by.caller, say: say(room, speech, content) };
        self.calls.ask(cluster, by.node, Asked::Say(room), command);
    }
}

impl Part for Holders {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Some(asked) = self.calls.take(reply) else { return Ok(false) };
        let Reply { node, result, .. } = reply;
        if let Err(refused) = result {
            cluster.say(|| format!("node{node}: {asked:?} refused: {refused}"));
            if let Asked::Claim(i) | Asked::Order(i) = asked {
                self.stop_registering(i);
            }
        }
        match (asked, result) {
            (Asked::Attach(asked), result) => self.registered(cluster, *node, &asked, result)?,
            (Asked::Mint(key), Ok(_)) => {
                self.keys[key].minted.insert(*node);
            }
            (Asked::Revoke { key, .. }, Ok(_)) => {
                cluster.say(|| format!("node{node}: the key is revoked"));
                cluster.coverage.count(Happening::KeyRevoked);
                self.keys[key].revoked.insert(*node);
            }
            (Asked::Create(key, asked), Ok(Outcome::Room(view))) => {
                self.has_made(cluster, key, *asked, view);
            }
            (Asked::Open(i, with), Ok(Outcome::Room(view))) => {
                self.direct_is_open(cluster, i, with, view)?;
            }
            (Asked::MakeShared(key), Ok(Outcome::Room(view))) => {
                self.shared_is_made(cluster, key, view);
            }
            (Asked::Share(room, act), Ok(_)) => {
                self.is_shared(cluster, (room, act));
            }
            (Asked::Join(i, room), Ok(_)) => {
                self.holders[i].rooms.insert(room);
            }
            (Asked::Leave(i, room), Ok(_)) => {
                self.holders[i].rooms.remove(&room);
            }
            (Asked::Claim(i), Ok(_)) => self.account_is_claimed(cluster, i, *node),
            (Asked::Order(i), Ok(Outcome::Claims(order))) => {
                self.order_is_known(cluster, (i, *node), order);
            }
            (Asked::Records(said), Ok(Outcome::Stamps(stamps))) => {
                self.records_are_written(cluster, *node, (&said, stamps))?;
            }
            (Asked::Profile(said), Ok(_)) => self.profile_is_set(cluster, *node, &said)?,
            (Asked::Details(said), Ok(_)) => self.details_are_set(cluster, *node, &said)?,
            (Asked::File(said), Ok(_)) => self.file_is_changed(cluster, *node, &said)?,
            (Asked::Detach | Asked::Say(_) | Asked::Member, Ok(_)) => {}
            // A node that parted minted the key, beyond what counts of it.
            (Asked::Create(..), Err(Refused::NoRoom)) if cluster.plan.parting.is_some() => {}
            (asked, Err(refused))
                if may_be_refused(&asked, refused)
                    || self.is_out(&asked, refused)
                    || cluster.is_exempt(*node) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }

    /// Its agents lose their connections.
    fn node_down(&mut self, _cluster: &Cluster, node: usize) {
        self.calls.node_down(node);
        self.displace(node, |_| true);
        self.accounts.node_down(node);
        for holder in &mut self.holders {
            holder.registering = holder.registering.filter(|at| *at != node);
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

/// Answers and events.
impl Holders {
    fn has_made(&mut self, cluster: &mut Cluster, key: usize, asked: NewRoom, view: &RoomView) {
        if asked.ephemeral {
            cluster.rooms.ephemeral.insert(view.room);
        }
        self.made.push(Made {
            room: view.room,
            name: asked.name,
            key,
            public: asked.public,
            ephemeral: asked.ephemeral,
        });
    }

    fn registered(
        &mut self,
        cluster: &Cluster,
        node: usize,
        asked: &Registering,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let holder = &mut self.holders[asked.holder];
        holder.registering = None;
        let (id, key) = (holder.id.clone(), holder.key);
        match result {
            // One that goes on from an earlier copy has forgotten that, and of one that is out the word counts nowhere.
            Ok(Outcome::Attached(_))
                if asked.must_be_refused
                    && !cluster.nodes[node].is_restored()
                    && !cluster.is_exempt(node) =>
            {
                broken("keys", format!("node{node} revoked the key, and takes {id} with it"))
            }
            Ok(Outcome::Attached(attached)) => {
                let registration = attached.registration;
                let print = self.keys[key].print;
                let caller = Caller { agent: Arc::clone(&id), key: print, registration };
                holder.place = Some(Seated { node, caller });
                let restored = attached.restored.iter().flatten().map(|(room, _)| *room);
                holder.rooms = restored.collect();
                let had = *self.had.entry(id.clone()).or_insert(key);
                if had != key && belongs(&id, print) == Belongs::Another {
                    return broken("ids", format!("another key has {id}, which was drawn"));
                }
                if cluster.plan.calm && had != key {
                    return broken("ids", format!("two keys have had {id} in calm weather"));
                }
                Ok(())
            }
            Err(_) if cluster.is_exempt(node) => Ok(()),
            // It may have been revoked while the id was claimed.
            Err(Refused::NoKey) if asked.must_be_valid && !self.keys[key].revoking => {
                broken("keys", format!("node{node} minted the key, and does not know it"))
            }
            Err(Refused::AgentTaken(_)) if asked.reconnect && !holder.contested => {
                broken("ids", format!("node{node} refuses {id}, which nobody else wants"))
            }
            Err(Refused::NoKey | Refused::AgentTaken(_) | Refused::Stopping) => Ok(()),
            _ => broken("replies", format!("node{node}: {asked:?} got {result:?}")),
        }
    }

    /// A node tells its agents something.
    pub(super) fn told(&mut self, node: usize, event: &AgentEvent) {
        match event {
            AgentEvent::Displaced { agent, registration } => {
                self.displace(node, |caller| {
                    (&caller.agent, caller.registration) == (agent, *registration)
                });
            }
            AgentEvent::KeyInvalid { key } => self.displace(node, |caller| caller.key == *key),
            AgentEvent::Seated { agent, room, .. } => self.is_seated(node, agent, *room),
            AgentEvent::Enlisted { agent, room, .. } => self.is_seated(node, agent, room.room),
            AgentEvent::Unseated { agent, room } => self.is_unseated(node, agent, *room),
            // No holder has an inbox.
            AgentEvent::Mail { .. } => {}
            // Nobody has jobs here.
            AgentEvent::Recorded { .. } | AgentEvent::Scheduled(_) => {}
        }
    }

    fn displace(&mut self, node: usize, which: impl Fn(&Caller) -> bool) {
        for holder in &mut self.holders {
            if holder.place.as_ref().is_some_and(|by| by.node == node && which(&by.caller)) {
                holder.leave();
            }
        }
    }
}

/// Writings and messages of nodes.
impl Holders {
    /// Keys whose nodes may have the rooms of a group.
    fn keys_of(&self, group: Group) -> Vec<KeyPrint> {
        match group {
            Group::Key(_) | Group::Pair(_) => group.keys().collect(),
            Group::Shared(shared) => self.may_have_shared_of(shared.maker),
        }
    }

    fn was_given(&self, cluster: &Cluster, node: usize, key: KeyPrint) -> bool {
        let shown = cluster.shown.contains(&(cluster.nodes[node].id, key));
        self.presented.contains(&(node, key)) || (shown && self.key(key).is_none())
    }

    /// *sealed*: followers are where the key was presented.
    pub(super) fn stored(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        change: &Change,
    ) -> Result<(), Broken> {
        self.record_is_stored(cluster, node, change)?;
        if let Change::Room { room, record } = change
            && let Some(seal) = &record.seal
        {
            if !self.keys_of(seal.group).iter().any(|key| self.was_given(cluster, node, *key)) {
                let what = format!("node{node} has {room}, whose key it was never given");
                return broken("sealed", what);
            }
            let (follower, since) = (cluster.nodes[node].id, cluster.wall_ms(Duration::ZERO));
            cluster.rooms.seal(*room, seal.group, follower, since);
            if seal.opener.is_some() {
                cluster.rooms.list(*room);
            }
        }
        if let Change::Entry { room, at, entry } = change
            && *room == cluster.directory()
        {
            let place = cluster.entry(node, *room, *at)?;
            let body = Body::decode(entry.facts.kind, &entry.body);
            if let Body::AgentClaimed(claim) = body {
                self.claims.insert(place, (Arc::clone(&claim.agent), claim.key()));
            } else if let Body::AccountClaimed(claim) = body {
                let account = claim.account();
                self.accounts.claims.insert(place, (account, claim.labels));
            }
        }
        Ok(())
    }

    /// *sealed*: no message to anybody has anything private in the clear.
    pub(super) fn look_into(&mut self, from: usize, bytes: &[u8]) {
        if self.leaked.is_none() && has_mark(bytes) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let what = format!("node{from} sends in the clear: {text}");
            self.leaked = Some(Broken { promise: "sealed", what });
        }
    }
}

fn has_mark(bytes: &[u8]) -> bool {
    let mark = MARK.as_bytes();
    bytes.windows(mark.len()).any(|window| window[0] == mark[0] && window == mark)
}

fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    match asked {
        Asked::Mint(_) => matches!(refused, Refused::Impossible(_) | Refused::Stopping),
        Asked::Revoke { must_be_known, .. } => {
            *refused == Refused::Stopping || (*refused == Refused::NoKey && !must_be_known)
        }
        Asked::Create(key, _) => {
            let taken = matches!(refused, Refused::NameTaken(_));
            let revoked = *key == LOST && *refused == Refused::NoRoom;
            taken || revoked || matches!(refused, Refused::Superseded | Refused::Stopping)
        }
        Asked::Claim(_) | Asked::Order(_) | Asked::Records(_) => {
            accounts::may_be_refused_to_account(refused)
        }
        // Its id may be another key's by now; and a node may not know of the key any more.
        Asked::Profile(_) => {
            matches!(refused, Refused::Impossible(_)) || may_be_in_the_way(refused)
        }
        Asked::File(_) if *refused == Refused::NoFile => true,
        Asked::File(said) if *refused == Refused::NotYours => !said.own,
        // A node may not know of the key any more, or of the room yet.
        Asked::Details(_) | Asked::File(_) => {
            matches!(refused, Refused::Impossible(_)) || may_be_in_the_way(refused)
        }
        // The other one's key is not known here yet, or it is not on the list, or of another key.
        Asked::Member => {
            let unknown = matches!(refused, Refused::NoAgent(_) | Refused::NotYours);
            unknown || matches!(refused, Refused::Impossible(_)) || may_be_in_the_way(refused)
        }
        // The other one's key, or the caller's, or the room is not known here yet; or the key was taken out before.
        Asked::MakeShared(_) | Asked::Share(..) => {
            let unknown = matches!(refused, Refused::NoAgent(_) | Refused::NoMailbox(_));
            unknown || matches!(refused, Refused::Impossible(_)) || may_be_in_the_way(refused)
        }
        // The other one's key, or the caller's, is not known here yet.
        Asked::Open(..) => {
            let unknown = matches!(refused, Refused::NoAgent(_) | Refused::NoMailbox(_));
            unknown || matches!(refused, Refused::Impossible(_)) || may_be_in_the_way(refused)
        }
        Asked::Join(..) | Asked::Leave(..) | Asked::Say(_) => may_be_in_the_way(refused),
        Asked::Detach => *refused == Refused::Stopping,
        Asked::Attach(_) => false,
    }
}

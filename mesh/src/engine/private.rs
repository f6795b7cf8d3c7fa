//! Private rooms that span the mesh: following those of a key from its first presentation on, telling
//! them from what everybody shares, and comparing them with others who follow (`docs/decisions/private-rooms.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::Engine;
use crate::{
    api::command::{Attach, CallId, Refused},
    limits::{
        DIGEST_ROOMS_MAX, FOLLOWERS_COMPARE_EVERY, KEY_NEW_FOR, PRESENTED_WITHIN, PRESENTING_MAX,
    },
    name::id::{KeyPrint, LogId, NodeId, RoomId, RoomKey},
    presence::rosters::bounds::facts_fit,
    replica::log::first_8,
    wire::{
        entry::{Body, RoomCreated},
        message::{Followed, Message, RoomDigest},
        roster::RoomFacts,
        seal::{NOBODY, Seal, SealContext, Token, directory},
    },
};

/// Who has a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All nodes.
    Mesh,
    /// This node.
    Node,
    /// The nodes that follow this key.
    Followers(KeyPrint),
}

/// What a node has of the private rooms of one key: each room's digest, and all folded.
#[derive(Debug, Default)]
struct Digests {
    rooms: BTreeMap<RoomId, u64>,
    folded: u64,
}

/// A key that was presented just now.
#[derive(Debug)]
struct Settling {
    since: Duration,
    /// Peers that have not said what they have of its directory.
    awaited: BTreeSet<NodeId>,
}

/// A registration that waits for its key's rooms.
#[derive(Debug)]
struct Presenting {
    call: CallId,
    attach: Attach,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Private {
    digests: BTreeMap<KeyPrint, Digests>,
    settling: BTreeMap<KeyPrint, Settling>,
    /// LocalRef most [`PRESENTING_MAX`].
    presenting: Vec<Presenting>,
    /// Keys that were presented here for the first time a short while ago, and when.
    new: BTreeMap<KeyPrint, Duration>,
    /// Rooms of such keys that are listed, and of which it is not here what is known to be said there.
    unread: BTreeMap<RoomId, KeyPrint>,
    compared: Duration,
}

impl Engine {
    // Following.

    /// Goes on following, after a start, what was followed before it.
    pub(super) fn restore_following(&mut self) {
        let openers = self.rooms.values().filter_map(|room| {
            let seal = room.replica.record.seal.as_ref()?;
            Some((seal.owner, seal.opener.clone()?))
        });
        for (key, opener) in openers.collect::<Vec<_>>() {
            if let Some(token) = self.cx.followers.follow(key, &opener) {
                self.show(key, token);
            }
        }
        let sealed = self.rooms.values().filter_map(|room| {
            Some((
                room.replica.id,
                room.replica.record.seal.as_ref()?.owner,
                room.replica.forkers(&self.cx),
            ))
        });
        for (room, owner, forked) in sealed.collect::<Vec<_>>() {
            self.rosters.set_sealed(room, owner);
            for author in forked {
                self.distrust(Some(owner), author);
            }
        }
    }

    /// A key is presented with a registration: if it is the first time, the registration waits until
    /// its rooms are here, so that they are listed. `None`: it does.
    pub(super) fn present_key(&mut self, call: CallId, attach: Attach) -> Option<Attach> {
        let key = attach.key;
        let Some(opener) = attach.opener.as_ref().filter(|_| !attach.own && self.spans(key)) else {
            return Some(attach);
        };
        self.follow(key, opener);
        let waits = self.private.settling.contains_key(&key)
            && self.private.presenting.len() < PRESENTING_MAX;
        if !waits {
            return Some(attach);
        }
        self.private.presenting.push(Presenting { call, attach });
        None
    }

    /// Whether the private rooms of a key span the mesh: it was minted for all of it.
    pub(super) fn spans(&self, key: KeyPrint) -> bool {
        self.directory.keys.is_minted(key, crate::directory::keys::Directories::Mesh)
    }

    pub(super) fn follow(&mut self, key: KeyPrint, opener: &RoomKey) {
        let Some(token) = self.cx.followers.follow(key, opener) else { return };
        self.show(key, token);
        let id = directory(self.cx.mesh, opener);
        self.ensure_room(id, LogId { author: NOBODY, incarnation: 0 }, Reach::Followers(key));
        for room in self.rosters.unopened_of(key) {
            self.ephemeral_room_lives(room);
        }
        // Those are asked, too, of whom it is not known here that they follow: they may since just now.
        let awaited = self.cx.up.clone();
        for peer in &awaited {
            self.tell_how_far(*peer, &[key]);
            self.cx.send(*peer, Message::Have { room: id, heads: Vec::new(), answer: true });
        }
        let since = self.cx.now.mono;
        self.private.settling.insert(key, Settling { since, awaited });
        self.private.new.insert(key, since);
    }

    fn show(&mut self, key: KeyPrint, token: Token) {
        self.rosters.follow(token);
        self.rosters.set_followers(key, self.cx.followers.of(key));
    }

    /// A node's roster shows what it follows.
    pub(super) fn on_shown(&mut self, node: NodeId) {
        let before = self.cx.followers.shared_with(node);
        for key in self.cx.followers.show(node, &self.rosters.follows(node)) {
            self.on_followers_changed(key);
        }
        let mut shared = self.cx.followers.shared_with(node);
        shared.retain(|key| !before.contains(key));
        if self.cx.up.contains(&node) {
            self.greet(node, &shared);
        }
    }

    pub(super) fn on_followers_changed(&mut self, key: KeyPrint) {
        self.rosters.set_followers(key, self.cx.followers.of(key));
        // Who gives numbers, and who can be asked, may be another.
        let rooms = self.private.digests.get(&key).into_iter().flat_map(|it| it.rooms.keys());
        self.cx.active.extend(rooms.filter(|room| self.busy.contains(room)));
    }

    /// A connected peer follows these keys, too: it is told how far this node is, which shows it that
    /// this node follows.
    pub(super) fn greet(&mut self, peer: NodeId, keys: &[KeyPrint]) {
        if keys.is_empty() {
            return;
        }
        self.tell_how_far(peer, keys);
        for key in keys {
            for proof in self.proofs_of(Some(*key)) {
                self.cx.send(peer, proof);
            }
        }
    }

    /// Nothing more is taken from this author: in the private rooms of a key, if it forked its log in one
    /// of these (who does not have the key cannot know of it, and would go on without the others), else
    /// in all rooms.
    pub(super) fn distrust(&mut self, key: Option<KeyPrint>, author: NodeId) {
        match key {
            Some(key) => self.cx.forked_for.entry(key).or_default().insert(author),
            None => self.cx.forked.insert(author),
        };
        for room in self.rooms.values_mut() {
            let owner = room.replica.record.seal.as_ref().map(|seal| seal.owner);
            if key.is_none() || key == owner {
                room.shut_out(&mut self.cx, author);
            }
        }
    }

    /// Proofs of forks in the rooms that everybody has, or in those of a key. What is memory only is left
    /// out: a fork there counts in that room alone.
    pub(super) fn proofs_of(&self, key: Option<KeyPrint>) -> Vec<Message> {
        self.proofs_in(|room| !self.is_memory(room) && self.sealed_for(room) == key)
    }

    /// Proofs of forks in these rooms.
    pub(super) fn proofs_in(&self, which: impl Fn(RoomId) -> bool) -> Vec<Message> {
        let there = |it: &&Message| matches!(it, Message::Fork(it, _) if which(it.room));
        self.proofs.iter().filter(there).cloned().collect()
    }

    // First presentations.

    /// A room was listed that another node made. If its key is new here it has a history that is not: clients see
    /// it when that has come.
    pub(super) fn note_unread(&mut self, id: RoomId) {
        let Some(key) = self.sealed_for(id).filter(|key| self.private.new.contains_key(key)) else {
            return;
        };
        // Where nobody can be asked it came by gossip: it is new.
        if let Some(room) = self.rooms.get_mut(&id)
            && !room.replica.peers(&self.cx).is_empty()
        {
            room.replica.ask_all(&mut self.cx);
            self.private.unread.insert(id, key);
        }
    }

    /// Whether clients do not see a room yet, for its history would seem to be empty.
    pub(super) fn is_unread(&self, room: RoomId) -> bool {
        self.private.unread.contains_key(&room)
    }

    /// Shows rooms whose history has come.
    fn show_what_is_read(&mut self) {
        let unread = self.private.unread.keys().copied();
        let read: Vec<RoomId> = unread.filter(|room| self.is_read(*room)).collect();
        for room in read {
            self.private.unread.remove(&room);
            self.tell_of_room(room, true);
        }
    }

    /// Every connected peer that has the room has said what it has of it, and that is here. One that says nothing is not
    /// waited for longer than a key is new.
    fn is_read(&self, id: RoomId) -> bool {
        let Some(room) = self.rooms.get(&id) else { return true };
        let patient =
            self.private.unread.get(&id).is_some_and(|it| self.private.new.contains_key(it));
        let peers = room.replica.peers(&self.cx);
        let said = if patient {
            !peers.is_empty() && peers.iter().all(|it| room.replica.sync.has_heard_from(*it))
        } else {
            room.replica.sync.has_heard()
        };
        said && !room.replica.sync.is_behind() && room.replica.pending.is_empty()
    }

    /// LocalRef every tick: asks again for what has not come.
    pub(super) fn go_on_reading(&mut self) {
        let now = self.cx.now.mono;
        self.private.new.retain(|_, since| now < *since + KEY_NEW_FOR);
        for id in self.private.unread.keys() {
            if let Some(room) = self.rooms.get_mut(id) {
                room.replica.ask_all(&mut self.cx);
            }
        }
    }

    /// Registrations go on whose keys' rooms are here, or have not come in time.
    pub(super) fn go_on_presenting(&mut self) {
        let now = self.cx.now.mono;
        if !self.private.unread.is_empty() {
            self.show_what_is_read();
        }
        let done = |(key, it): &(&KeyPrint, &Settling)| {
            let late = now >= it.since + PRESENTED_WITHIN;
            late || self.stopping.is_some() || self.has_settled(**key, it)
        };
        let done: Vec<KeyPrint> =
            self.private.settling.iter().filter(done).map(|(key, _)| *key).collect();
        for key in done {
            self.private.settling.remove(&key);
            let (go_on, wait) = std::mem::take(&mut self.private.presenting)
                .into_iter()
                .partition(|it| it.attach.key == key);
            self.private.presenting = wait;
            let go_on: Vec<Presenting> = go_on;
            for it in go_on {
                if self.stopping.is_some() {
                    self.reply(it.call, Err(Refused::Stopping));
                } else {
                    self.attach(it.call, it.attach);
                }
            }
        }
    }

    /// A peer has said what it has of a room.
    pub(super) fn note_answer(&mut self, from: NodeId, room: RoomId) {
        for (key, it) in &mut self.private.settling {
            if self.cx.followers.directory(*key) == Some(room) {
                it.awaited.remove(&from);
            }
        }
    }

    /// Every connected peer has said what it has of the key's directory, and that is here, with the history of all
    /// rooms that it lists.
    fn has_settled(&self, key: KeyPrint, it: &Settling) -> bool {
        let room = self.cx.followers.directory(key).and_then(|id| self.rooms.get(&id));
        let Some(room) = room else { return true };
        let answered = it.awaited.is_disjoint(&self.cx.up);
        let unread = self.private.unread.values().any(|it| *it == key);
        answered && !room.replica.sync.is_behind() && room.replica.pending.is_empty() && !unread
    }

    // Which rooms.

    /// Where a room that an agent of this key makes is listed, and so who has it.
    pub(super) fn directory_for(&self, key: KeyPrint, public: bool) -> Result<RoomId, Refused> {
        if public {
            return Ok(RoomId::directory(self.cx.mesh));
        }
        match self.cx.followers.directory(key) {
            Some(room) => Ok(room),
            None if self.spans(key) && !self.own_keys.contains(&key) => {
                let full = "this node follows the private rooms of as many keys as it may: make the \
                            room public, or at another node";
                Err(Refused::Full(full.to_owned()))
            }
            None => Ok(self.cx.private_directory),
        }
    }

    /// Who has the rooms that a directory lists.
    pub(super) fn reach_of(&self, directory: RoomId) -> Reach {
        if directory == self.cx.private_directory {
            return Reach::Node;
        }
        let seal = self.rooms.get(&directory).and_then(|room| room.replica.record.seal.as_ref());
        seal.map_or(Reach::Mesh, |seal| Reach::Followers(seal.owner))
    }

    /// What seals a room that is to be made.
    pub(super) fn seal_for(&self, id: RoomId, reach: Reach) -> Option<Seal> {
        let Reach::Followers(owner) = reach else { return None };
        let opener = self.cx.followers.opener(owner)?;
        Some(if id == directory(self.cx.mesh, opener) {
            Seal::of_directory(self.cx.mesh, owner, opener)
        } else {
            Seal::of_room(owner, opener, id)
        })
    }

    /// Whose room it is, if only those who follow that key have it.
    pub(super) fn sealed_for(&self, room: RoomId) -> Option<KeyPrint> {
        Some(self.rooms.get(&room)?.replica.record.seal.as_ref()?.owner)
    }

    /// Whether clients may see the rooms of this key: not once it is revoked. What was written there
    /// stays.
    fn is_served(&self, key: KeyPrint) -> bool {
        self.own_keys.contains(&key) || self.directory.keys.tier(key).is_some()
    }

    /// Whether clients may not see a room though it is here.
    pub(super) fn is_withdrawn(&self, room: RoomId) -> bool {
        self.sealed_for(room).is_some_and(|owner| !self.is_served(owner))
    }

    /// A key is no longer valid.
    pub(super) fn withdraw_rooms_of(&mut self, key: KeyPrint) {
        let of_key = |room: &&RoomId| self.sealed_for(**room) == Some(key);
        let rooms: Vec<RoomId> = self.told.keys().filter(of_key).copied().collect();
        for room in rooms {
            self.tell_of_room(room, false);
        }
    }

    // Ephemeral rooms.

    /// What is announced of an ephemeral room that this node makes.
    pub(super) fn announce_facts(
        &self,
        home: LogId,
        facts: RoomCreated,
        reach: Reach,
    ) -> RoomFacts {
        let (room, owner) = (facts.room, facts.owner);
        match self.seal_for(room, reach) {
            None => RoomFacts::Open(facts),
            Some(seal) => {
                let body = Body::RoomCreated(facts);
                let spot = SealContext { room, log: home, seq: 0, kind: body.kind() };
                RoomFacts::Sealed { owner, sealed: seal.seal(&spot, &body.encode()).into() }
            }
        }
    }

    /// Opens what is announced of an ephemeral room, if it can be opened here.
    pub(super) fn open_announcement(&mut self, id: RoomId) {
        for it in self.rosters.unopened(id) {
            let RoomFacts::Sealed { owner, sealed } = &it.facts else { continue };
            let Some(seal) = self.seal_for(id, Reach::Followers(*owner)) else { continue };
            let kind = crate::wire::kinds::ROOM_CREATED;
            let spot = SealContext { room: id, log: it.home, seq: 0, kind };
            let body = seal.open(&spot, sealed).map(|bytes| Body::decode(kind, &bytes));
            let Some(Body::RoomCreated(facts)) = body else { continue };
            if facts.room == id && belongs_to(&facts, *owner) && facts_fit(&facts) {
                return self.rosters.open_room(id, facts);
            }
        }
    }

    // Comparing.

    /// The digest of a private room is another.
    pub(super) fn mix_private_digest(&mut self, key: KeyPrint, id: RoomId, digest: Option<u64>) {
        let all = self.private.digests.entry(key).or_default();
        let before = match digest {
            Some(digest) => all.rooms.insert(id, digest),
            None => all.rooms.remove(&id),
        };
        for it in [before, digest].into_iter().flatten() {
            all.folded ^= first_8(crate::name::id::sha256(&[&id.0, &it.to_be_bytes()]));
        }
    }

    /// Every so often: nothing else would tell followers of what gossip lost.
    pub(super) fn compare_private_rooms(&mut self) {
        let now = self.cx.now.mono;
        if now < self.private.compared + FOLLOWERS_COMPARE_EVERY {
            return;
        }
        self.private.compared = now;
        for peer in self.cx.up.clone() {
            let shared = self.cx.followers.shared_with(peer);
            if !shared.is_empty() {
                self.tell_how_far(peer, &shared);
            }
        }
    }

    fn tell_how_far(&mut self, peer: NodeId, keys: &[KeyPrint]) {
        let followed = |key: &KeyPrint| {
            let digest = self.private.digests.get(key).map_or(0, |it| it.folded);
            Some(Followed { token: self.cx.followers.token(*key)?, digest })
        };
        let followed = keys.iter().filter_map(followed).collect();
        self.cx.send(peer, Message::Follows(followed));
    }

    /// A peer follows these keys, and says how far it is with their rooms.
    pub(super) fn on_follows(&mut self, from: NodeId, theirs: Vec<Followed>) {
        for it in theirs {
            let Some((key, news)) = self.cx.followers.prove(from, it.token) else { continue };
            if news {
                self.on_followers_changed(key);
                self.greet(from, &[key]);
            }
            let Some(mine) = self.private.digests.get(&key) else { continue };
            if mine.folded == it.digest {
                self.note_in_step_with(Some(key));
                continue;
            }
            let rooms: Vec<RoomDigest> = mine
                .rooms
                .iter()
                .map(|(room, digest)| RoomDigest { room: *room, digest: *digest })
                .collect();
            for part in rooms.chunks(DIGEST_ROOMS_MAX) {
                self.cx.send(from, Message::Digests(part.to_vec()));
            }
        }
    }

    /// A peer has all that is in the rooms of this key, or in those that everybody has.
    pub(super) fn note_in_step_with(&mut self, owner: Option<KeyPrint>) {
        let (rooms, unshared) = (&mut self.rooms, &mut self.unshared);
        let digests = owner.and_then(|key| self.private.digests.get(&key));
        unshared.retain(|id| {
            let Some(room) = rooms.get_mut(id) else { return false };
            let meant = match owner {
                Some(_) => digests.is_some_and(|it| it.rooms.contains_key(id)),
                None => room.replica.record.seal.is_none(),
            };
            if meant {
                room.replica.note_in_step();
            }
            !meant
        });
    }
}

impl Reach {
    /// Whether a directory of this reach may say this.
    pub(super) fn may_list(self, body: &Body) -> bool {
        match self {
            Reach::Mesh | Reach::Node => true,
            // Lanes, agents and keys are everybody's business: what only some know of would part them.
            Reach::Followers(owner) => {
                matches!(body, Body::RoomCreated(created) if belongs_to(created, owner))
            }
        }
    }
}

fn belongs_to(created: &RoomCreated, owner: KeyPrint) -> bool {
    !created.public && created.owner == owner
}

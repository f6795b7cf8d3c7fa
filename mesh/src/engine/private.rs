//! Private rooms that span the mesh: following those of a group from the first presentation of a key on
//! (`docs/decisions/private-rooms.md`).

use super::{
    digests::Digests,
    ephemeral,
    forks::{self, Forks},
    known::Known,
    reach::Reach,
    waiters::Registering,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    api::command::{CallId, Refused},
    limits::{KEY_NEW_FOR, PRESENTED_WITHIN, PRESENTING_MAX},
    name::{
        group::Group,
        id::{KeyPrint, LogId, NodeId, RoomId, RoomKey},
    },
    wire::{
        message::{Followed, Message},
        seal::{NOBODY, Token, directory},
    },
};

/// A group that is followed since just now.
#[derive(Clone, Debug)]
struct Settling {
    since: Duration,
    /// Peers that have not said what they have of its directory.
    awaited: BTreeSet<NodeId>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Private {
    settling: BTreeMap<Group, Settling>,
    /// Registrations that wait for their key's rooms: at most [`PRESENTING_MAX`].
    presenting: Vec<Presenting>,
    /// Those of them that go on now.
    released: BTreeSet<CallId>,
}

/// A registration that waits for its key's rooms.
#[derive(Clone, Debug)]
struct Presenting {
    since: Duration,
    registering: Registering,
}

impl Private {
    // Following.

    /// A key is presented with a registration: if it is the first time, the registration waits until
    /// its rooms are here, those of its pairs included, so that they are listed. `None`: it does.
    pub(super) fn present(
        &mut self,
        known: &mut Known,
        digests: &mut Digests,
        registering: Registering,
    ) -> Option<Registering> {
        let attach = &registering.attach;
        let key = attach.key;
        let opener = attach.opener.as_ref().filter(|_| !attach.own && known.spans(key));
        if let Some(opener) = opener {
            self.follow(known, digests, Group::Key(key), opener);
        }
        // Others may begin one pair after the other with the key: nobody waits twice.
        let has_waited = self.released.remove(&registering.call);
        if has_waited || !self.is_settling(known, key) || self.presenting.len() >= PRESENTING_MAX {
            return Some(registering);
        }
        self.presenting.push(Presenting { since: known.cx.now.mono, registering });
        None
    }

    /// Whether the rooms of a group that this key is in have not come yet.
    fn is_settling(&self, known: &Known, key: KeyPrint) -> bool {
        self.settling.keys().any(|group| known.is_in(*group, key))
    }

    pub(super) fn follow(
        &mut self,
        known: &mut Known,
        digests: &mut Digests,
        group: Group,
        opener: &RoomKey,
    ) {
        let Some(token) = known.cx.followers.follow(group, opener) else { return };
        show(known, group, token);
        let id = directory(known.cx.mesh, opener);
        known.ensure_room(id, LogId { author: NOBODY, incarnation: 0 }, Reach::Followers(group));
        if let Group::Key(key) = group {
            for room in known.rosters.unopened_of(key) {
                ephemeral::lives(known, room);
            }
        }
        // Those are asked, too, of whom it is not known here that they follow: they may since just now.
        let awaited = known.cx.up.clone();
        for peer in &awaited {
            digests.tell_how_far(known, *peer, &[group]);
            known.cx.send(*peer, Message::Have { room: id, heads: Vec::new(), answer: true });
        }
        let since = known.cx.now.mono;
        self.settling.insert(group, Settling { since, awaited });
        known.unread.new.insert(group, since);
    }

    // First presentations.

    /// Takes the registrations that go on: their key's rooms are here, or have not come in time.
    pub(super) fn take_ready(&mut self, known: &mut Known) -> Vec<Registering> {
        let now = known.cx.now.mono;
        let done = |group: &Group, settling: &mut Settling| {
            let late = now >= settling.since + PRESENTED_WITHIN;
            late || known.stopping || has_settled(known, *group, settling)
        };
        self.settling.retain(|group, settling| !done(group, settling));
        let settling = &self.settling;
        let goes_on = |waiting: &mut Presenting| {
            let late = now >= waiting.since + PRESENTED_WITHIN || known.stopping;
            let key = waiting.registering.attach.key;
            late || !settling.keys().any(|group| known.is_in(*group, key))
        };
        let ready = self.presenting.extract_if(.., goes_on);
        let mut ready: Vec<Registering> = ready.map(|waiting| waiting.registering).collect();
        self.released = ready.iter().map(|registering| registering.call).collect();
        if known.stopping {
            for registering in ready.drain(..) {
                known.cx.reply(registering.call, Err(Refused::Stopping));
            }
        }
        ready
    }

    /// A peer has said what it has of a room.
    pub(super) fn note_answer(&mut self, known: &Known, from: NodeId, room: RoomId) {
        for (group, settling) in &mut self.settling {
            if known.cx.followers.directory(*group) == Some(room) {
                settling.awaited.remove(&from);
            }
        }
    }

    // Which rooms.

    // Comparing.
}

fn show(known: &mut Known, group: Group, token: Token) {
    known.rosters.follow(token);
    known.rosters.set_followers(group, known.cx.followers.of(group));
}

/// Follows again, after a start, the groups that were followed before it.
pub(super) fn restore_following(known: &mut Known) {
    let openers = known.rooms.values().filter_map(|room| {
        let seal = room.replica.record.seal.as_ref()?;
        Some((seal.group, seal.opener.clone()?))
    });
    for (group, opener) in openers.collect::<Vec<_>>() {
        if let Some(token) = known.cx.followers.follow(group, &opener) {
            show(known, group, token);
        }
    }
    let sealed = known.rooms.values().filter_map(|room| {
        Some((
            room.replica.id,
            room.replica.record.seal.as_ref()?.group,
            room.replica.forkers(&known.cx),
        ))
    });
    for (room, group, forked) in sealed.collect::<Vec<_>>() {
        known.note_sealed(room, group);
        for author in forked {
            forks::distrust(known, Some(group), author);
        }
    }
}

pub(super) fn on_followers_changed(known: &mut Known, digests: &mut Digests, group: Group) {
    known.rosters.set_followers(group, known.cx.followers.of(group));
    // The sequencer may be another now, and so may the peers that can be asked.
    let rooms = digests.rooms_of(known, group).into_iter();
    known.cx.to_advance.extend(rooms.filter(|room| known.busy.contains(room)));
}

/// A connected peer follows these groups, too: it is told how far this node is, which shows it that
/// this node follows.
pub(super) fn greet(
    known: &mut Known,
    digests: &mut Digests,
    forks: &Forks,
    peer: NodeId,
    groups: &[Group],
) {
    if groups.is_empty() {
        return;
    }
    digests.tell_how_far(known, peer, groups);
    for group in groups {
        for proof in forks.of(known, Some(*group)) {
            known.cx.send(peer, proof);
        }
    }
}

/// A node's roster shows what it follows.
pub(super) fn on_shown(known: &mut Known, digests: &mut Digests, forks: &Forks, node: NodeId) {
    let before = known.cx.followers.shared_with(node);
    for group in known.cx.followers.show(node, &known.rosters.follows(node)) {
        on_followers_changed(known, digests, group);
    }
    let mut shared = known.cx.followers.shared_with(node);
    shared.retain(|group| !before.contains(group));
    if known.cx.up.contains(&node) {
        greet(known, digests, forks, node, &shared);
    }
}

/// Every connected peer that has the room has said what it has of it, and that is here. One that says nothing is not
/// waited for longer than a key is new.
fn is_read(known: &Known, id: RoomId) -> bool {
    let Some(room) = known.rooms.get(&id) else { return true };
    let patient =
        known.unread.rooms.get(&id).is_some_and(|group| known.unread.new.contains_key(group));
    let peers = room.replica.peers(&known.cx);
    let said = if patient {
        !peers.is_empty() && peers.iter().all(|node| room.replica.sync.has_heard_from(*node))
    } else {
        room.replica.sync.has_heard()
    };
    said && !room.replica.sync.is_behind() && room.replica.pending.is_empty()
}

/// Shows rooms whose history has come. Returns them.
pub(super) fn show_read(known: &mut Known) -> Vec<RoomId> {
    let unread = known.unread.rooms.keys().copied();
    let read: Vec<RoomId> = unread.filter(|room| is_read(known, *room)).collect();
    for room in &read {
        known.unread.rooms.remove(room);
        known.tell_of_room(*room, true);
    }
    read
}

/// At every tick: asks again for entries that have not come.
pub(super) fn go_on_reading(known: &mut Known) {
    let now = known.cx.now.mono;
    known.unread.new.retain(|_, since| now < *since + KEY_NEW_FOR);
    for id in known.unread.rooms.keys() {
        if let Some(room) = known.rooms.get_mut(id) {
            room.replica.ask_all(&mut known.cx);
        }
    }
}

/// Every connected peer has said what it has of the group's directory, and that is here, with the history of all
/// rooms that it lists.
fn has_settled(known: &Known, group: Group, settling: &Settling) -> bool {
    let room = known.cx.followers.directory(group).and_then(|id| known.rooms.get(&id));
    let Some(room) = room else { return true };
    let answered = settling.awaited.is_disjoint(&known.cx.up);
    let unread = known.unread.rooms.values().any(|of| *of == group);
    answered && !room.replica.sync.is_behind() && room.replica.pending.is_empty() && !unread
}

/// A key is no longer valid.
pub(super) fn withdraw_rooms_of(known: &mut Known, key: KeyPrint) {
    let key = known.directory.current(key);
    let of_key = |room: &&RoomId| {
        let view = known.told.get(*room).and_then(|view| view.shared.as_ref());
        let shared = view.is_some_and(|keys| keys.contains(&key));
        let mut groups = known.sealed_for(**room).into_iter();
        shared || groups.any(|group| known.keys_of(group).contains(&key))
    };
    let rooms: Vec<RoomId> = known.told.keys().filter(of_key).copied().collect();
    for room in rooms {
        known.tell_of_room(room, false);
    }
}

/// A peer follows these groups, and says how far it is with their rooms. Returns those of which it has all that is here, records
/// included.
pub(super) fn on_follows(
    known: &mut Known,
    digests: &mut Digests,
    forks: &Forks,
    from: NodeId,
    theirs: &[Followed],
) -> Vec<Group> {
    let mut in_step = Vec::new();
    // Each group once, however often a peer names it.
    let mut seen = BTreeSet::new();
    for digest in theirs.iter().filter(|digest| seen.insert(digest.token)) {
        let Some((group, news)) = known.cx.followers.prove(from, digest.token) else { continue };
        if news {
            on_followers_changed(known, digests, group);
            greet(known, digests, forks, from, &[group]);
        }
        let has_rooms = digests.compare_private(known, from, group, digest.digest);
        if has_rooms && digest.records == known.cx.followers.records(group) {
            in_step.push(group);
        }
    }
    in_step
}

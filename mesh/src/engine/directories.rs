//! Directories: folding their entries.

use super::{known::Known, reach::Reach, secret};
use crate::{
    directory::Learned,
    limits::ROOMS_MAX,
    name::{
        group::direct_room,
        id::{LogId, NodeId, RoomId},
        number::Number,
    },
    turn::happened::Fact,
    wire::{entry::Body, seal::NOBODY},
};

/// Whether a directory may say this; else it is counted against its author.
pub(super) fn may_list(known: &mut Known, fact: &Fact) -> bool {
    let may = known.reach_of(fact.room).may_list(&fact.body);
    if !may {
        known.cx.blame(fact.log.author, |faults| &mut faults.void);
    }
    may
}

/// Folds an entry, and makes the rooms that it lists.
pub(super) fn learn(known: &mut Known, fact: Fact, numbers: &[Number]) -> Learned {
    let (directory, author) = (fact.room, fact.log.author);
    let reach = known.reach_of(directory);
    // It came in the turn in which its log was cut before it.
    let log = known.rooms.get(&directory).map(|room| room.replica.logs.get(fact.at.log));
    if log.is_some_and(|log| log.fork.is_some_and(|cut| fact.at.seq >= cut)) {
        return Learned::Nothing;
    }
    if is_too_much(known, &fact) {
        known.cx.faults.overflow += 1;
        return Learned::Nothing;
    }
    // A lie of the founder, which would be known to this node alone.
    let taken = |id: &RoomId| known.rooms.get(id).is_some_and(|room| room.replica.is_directory);
    if matches!(&fact.body, Body::RoomCreated(created) if taken(&created.room)) {
        known.cx.blame(author, |faults| &mut faults.void);
        return Learned::Nothing;
    }
    let learned = known.directory.learn(known.cx.mesh, fact, numbers);
    if known.cx.is_relay() {
        return learned;
    }
    if let Learned::Direct(id) = learned {
        // Nobody's home: two first authors across a split open eras of their own.
        known.ensure_room(id, LogId { author: NOBODY, incarnation: 0 }, reach);
        if let Reach::Followers(group) = reach {
            known.note_sealed(id, group);
        }
        if author != known.cx.me {
            known.note_unread(id);
        }
    }
    if let Learned::Rooms(rooms) = &learned {
        let home = LogId { author, incarnation: 0 };
        for id in rooms {
            let room = known.directory.room(*id);
            if room.is_some_and(|room| (room.source.0, room.author) == (directory, author)) {
                let new = !known.rooms.contains_key(id);
                known.ensure_room(*id, home, reach);
                if new && author != known.cx.me {
                    known.note_unread(*id);
                }
            }
        }
    }
    learned
}

/// Whether there is no place for one more of its kind.
fn is_too_much(known: &Known, fact: &Fact) -> bool {
    let (directory, body) = (&known.directory, &fact.body);
    if let Body::DirectOpened(opened) = body {
        let id = direct_room(known.cx.mesh, &opened.by, &opened.with, opened.task);
        return !directory.direct.has_room_for(fact.room, id);
    }
    matches!(body, Body::RoomCreated(_)) && directory.room_count() >= ROOMS_MAX
        || matches!(body, Body::Key(act) if !directory.keys().has_room_for(act))
        || matches!(body, Body::AgentClaimed(claim) if !directory.has_room_for(claim))
        || matches!(body, Body::AccountClaimed(claim)
            if !directory.accounts.has_room_for(claim.account(), fact.log.author))
}

/// Numbers that do not count any more decide no names.
pub(super) fn fold_lost(known: &mut Known) {
    known.directory.lose(&std::mem::take(&mut known.cx.lost));
}

/// A node has a lane.
pub(super) fn on_lane(known: &mut Known, node: NodeId) {
    if known.directory.nodes.is_relay(node) {
        known.cx.relays.insert(node);
        known.live.note_relay(node);
    }
    let lanes = known.directory.nodes.lanes.get(&node).into_iter().flatten();
    known.cx.lanes.entry(node).or_default().extend(lanes.map(|(_, lane)| *lane));
    if node == known.cx.me {
        let mine = known.directory.nodes.lanes.get(&node).and_then(|lanes| lanes.last());
        known.cx.my_lane = mine.map(|(_, lane)| *lane);
    } else {
        secret::on_known(known, node);
    }
    // Claims that waited for this lane can be accepted now.
    let waiting = known.rooms.values().filter(|room| !room.replica.pending.is_empty());
    known.cx.to_advance.extend(waiting.map(|room| room.replica.id));
}

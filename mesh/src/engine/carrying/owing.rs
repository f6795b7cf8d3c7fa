//! This node as one that follows sealed rooms: what it owes other followers that it does not see up, and handing that to members
//! that carry it.
//!
//! Owed is what has come here since the other node was in step; of a node that never was, everything. A room is noted, durably,
//! with its first entry that comes while the other node is away: so a restart forgets nothing, and a message costs a row no more
//! than once for each time that somebody is away.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    api::{batch::Change, boundary::Effect},
    engine::{
        digests::Digests,
        known::Known,
        records::{RecordAt, Records},
    },
    limits::{
        CARRIED_AT_ONCE_MAX, CARRIED_HEADS_MAX, CARRIED_NODES_MAX, CARRIERS, CARRY_ASKED_AGAIN,
        CARRY_FILES_TRIED, CARRY_RECHECKED, CARRY_ROOMS_AT_ONCE, CONTENTS_ASKED_MAX,
        LOGS_PER_ROOM_MAX, OWED_STORED_AFTER, SPANS_MAX,
    },
    name::{
        group::Group,
        id::{LogId, NodeId, RoomId},
    },
    wire::{
        carry::{Awaited, Carrying, Owed, bytes_log, is_of_bytes, record_log},
        message::{Head, Message, Span},
        record::{Space, Stamp},
        seal::Token,
    },
};

/// What is owed, and whether the store knows of it.
#[derive(Clone, Debug, Default)]
struct Debt {
    owed: Owed,
    stored: bool,
    /// Since when it is owed and not stored.
    since: Option<Duration>,
}

impl Debt {
    fn stored(owed: Owed) -> Debt {
        Debt { owed, stored: true, since: None }
    }
}

/// A room, as a carrier was asked to carry it.
#[derive(Clone, Debug)]
struct Asked {
    /// For these.
    nodes: BTreeSet<NodeId>,
    /// When it was asked, or handed something, last, if it has not answered.
    waits: Option<Duration>,
    /// What it has said to hold: at most twice as many heads as a room has logs. `None`: nothing yet.
    holds: Option<BTreeMap<LogId, u64>>,
    /// The first thing that it was handed last: of this log, after this entry.
    handed: Option<(LogId, u64)>,
    /// The files among them: at most [`CONTENTS_ASKED_MAX`].
    files: Vec<(LogId, u64)>,
    /// Files that it had no room for, by their logs, in this state: at most those that there are.
    refused: BTreeMap<LogId, u64>,
    /// How often it had none since it was left alone with them, and until when it is.
    tried: u32,
    files_until: Option<Duration>,
    /// So many files are left out.
    left_out: usize,
}

impl Asked {
    fn new(nodes: BTreeSet<NodeId>, now: Duration) -> Asked {
        let (waits, holds, handed) = (Some(now), None, None);
        Asked {
            nodes,
            waits,
            holds,
            handed,
            files: Vec::new(),
            refused: BTreeMap::new(),
            tried: 0,
            files_until: None,
            left_out: 0,
        }
    }

    /// It is handed no files for a while: it has refused many, or all.
    fn skips_files(&mut self, now: Duration) -> bool {
        if self.files_until.is_some_and(|until| now >= until) {
            (self.tried, self.files_until) = (0, None);
        }
        self.files_until.is_some()
    }

    /// It had no room for some of the files that it was handed last: others may fit.
    fn refuses_files(&mut self, now: Duration) {
        let holds = self.holds.as_ref();
        let is_held = |(log, stamp): &(LogId, u64)| {
            holds.and_then(|holds| holds.get(log)).is_some_and(|held| held >= stamp)
        };
        // As many were sent as fit into one message: in this order all up to the last that it holds, and one more if it holds these.
        // One that was not among them all the same is tried again with the others.
        let files = std::mem::take(&mut self.files);
        let sent = files.iter().rposition(is_held).map_or(0, |last| last + 1);
        let (sent, rest) = files.split_at(sent);
        let some = sent.iter().any(|file| !is_held(file));
        let next = rest.first().filter(|_| !some);
        let refused = sent.iter().filter(|file| !is_held(file)).chain(next);
        self.refused.extend(refused.copied());
        self.tried += 1;
        if self.tried >= CARRY_FILES_TRIED {
            self.files_until = Some(now + CARRY_RECHECKED);
        }
    }
}

/// A connected member.
#[derive(Clone, Debug)]
struct Member {
    since: Duration,
    /// It has said that it takes no more, until then.
    full_until: Duration,
    /// At most as many as there are rooms here.
    rooms: BTreeMap<RoomId, Asked>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Owing {
    /// At most one for each room that is followed, and each node that was shown one of its keys.
    debts: BTreeMap<RoomId, BTreeMap<NodeId, Debt>>,
    /// Rooms that are to be looked at.
    dirty: BTreeSet<RoomId>,
    /// The room after which to go on with them.
    last: Option<RoomId>,
    members: BTreeMap<NodeId, Member>,
    recheck: Duration,
}

impl Owing {
    /// Once the rooms are there. Of a room that is gone, or is not followed any more, and to a node that has parted, nothing is owed.
    pub(super) fn restore(&mut self, known: &mut Known, stored: Vec<(RoomId, NodeId, Owed)>) {
        let groups = known.cx.followers.groups();
        let directories: BTreeSet<RoomId> =
            groups.iter().filter_map(|group| known.cx.followers.directory(*group)).collect();
        for (room, node, owed) in stored {
            let of_room = known.rooms.get(&room).map(|room| &room.replica.record);
            let seal = of_room.and_then(|record| record.seal.as_ref());
            let is_followed = directories.contains(&room)
                || seal.is_some_and(|seal| known.cx.followers.opener(seal.group).is_some());
            if is_followed && !known.cx.parted.has(node) {
                self.debts.entry(room).or_default().insert(node, Debt::stored(owed));
            } else {
                known.cx.change(Change::Owed { room, node, owed: None });
            }
        }
    }

    pub(super) fn on_peer_up(&mut self, known: &Known, peer: NodeId) {
        let (since, full_until) = (known.cx.now.mono, Duration::ZERO);
        self.members.insert(peer, Member { since, full_until, rooms: BTreeMap::new() });
        self.recheck = Duration::ZERO;
    }

    /// What has come since it was last in step is owed to it from now on.
    pub(super) fn on_peer_down(&mut self, known: &mut Known, peer: NodeId) {
        self.members.remove(&peer);
        self.recheck = Duration::ZERO;
        for (room, debts) in &mut self.debts {
            if let Some(debt) = debts.get_mut(&peer).filter(|debt| !debt.stored) {
                store(known, (*room, peer), debt);
            }
        }
    }

    /// Of a node that is there, and does not get in step.
    fn store_old(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        for (room, debts) in &mut self.debts {
            let is_old = |debt: &Debt| debt.since.is_some_and(|at| now >= at + OWED_STORED_AFTER);
            for (node, debt) in debts.iter_mut().filter(|(_, debt)| is_old(debt)) {
                store(known, (*room, *node), debt);
            }
        }
    }

    /// Debts that are not paid.
    pub(super) fn count(&self) -> usize {
        let debts = self.debts.values().flat_map(BTreeMap::values);
        let is_open = |debt: &&Debt| debt.owed.heads.is_some() || debt.owed.records.is_some();
        debts.filter(is_open).count()
    }

    /// Files for which none of the members that were asked for their rooms has room.
    pub(super) fn left_out(&self) -> usize {
        let mut least: BTreeMap<RoomId, usize> = BTreeMap::new();
        for (room, asked) in self.members.values().flat_map(|member| &member.rooms) {
            let least = least.entry(*room).or_insert(asked.left_out);
            *least = asked.left_out.min(*least);
        }
        least.into_values().sum()
    }

    // What is owed.

    /// The turn that ends has written entries and records: nodes that are away, or were not in step yet, may not have them.
    pub(super) fn note_written(&mut self, known: &mut Known) {
        let mut before: BTreeMap<RoomId, BTreeMap<LogId, u64>> = BTreeMap::new();
        let mut records: BTreeMap<Group, u64> = BTreeMap::new();
        for change in &known.cx.batch {
            if let Change::Entry { room, at, .. } = change
                && let Some(of_room) = known.rooms.get(room)
                && of_room.replica.record.seal.is_some()
                && !of_room.replica.record.ephemeral
            {
                let log = of_room.replica.logs.id(at.log);
                let first = before.entry(*room).or_default().entry(log).or_insert(at.seq - 1);
                *first = (*first).min(at.seq - 1);
            }
            if let Change::Record { space: Space::Followers(group), record: Some(record), .. } =
                change
            {
                let stamp = record.stamp.moment().0;
                let first = records.entry(*group).or_insert(stamp);
                *first = (*first).min(stamp);
            }
        }
        for (room, before) in before {
            self.note_entries(known, room, &before);
        }
        for (group, stamp) in records {
            self.note_records(known, group, stamp);
        }
    }

    fn note_entries(&mut self, known: &mut Known, id: RoomId, before: &BTreeMap<LogId, u64>) {
        let Some(room) = known.rooms.get(&id) else { return };
        let Some(group) = room.replica.record.seal.as_ref().map(|seal| seal.group) else { return };
        let heads = room.replica.logs.heads().into_iter().map(|head| {
            let seq = before.get(&head.log).copied().unwrap_or(head.seq);
            Head { log: head.log, seq }
        });
        let heads: Vec<Head> = heads.filter(|head| head.seq > 0).collect();
        let nodes = self.met(known, group);
        self.dirty.insert(id);
        for node in nodes {
            // It has its own entries.
            if before.keys().all(|log| log.author == node) {
                continue;
            }
            let debt = self.debts.entry(id).or_default().entry(node).or_default();
            if debt.owed.heads.is_none() {
                debt.owed.heads = Some(heads.clone());
                keep(known, (id, node), debt);
            }
        }
    }

    fn note_records(&mut self, known: &mut Known, group: Group, stamp: u64) {
        let Some(directory) = known.cx.followers.directory(group) else { return };
        let nodes = self.met(known, group);
        self.dirty.insert(directory);
        for node in nodes {
            let debt = self.debts.entry(directory).or_default().entry(node).or_default();
            if debt.owed.records.is_none_or(|since| stamp < since) {
                debt.owed.records = Some(stamp);
                keep(known, (directory, node), debt);
            }
        }
    }

    /// Nodes that were in step with a group's rooms at some time.
    fn met(&self, known: &Known, group: Group) -> Vec<NodeId> {
        let directory = known.cx.followers.directory(group).and_then(|room| self.debts.get(&room));
        let met = directory.into_iter().flatten().filter(|(_, debt)| debt.owed.met);
        met.map(|(node, _)| *node).filter(|node| !known.cx.parted.has(*node)).collect()
    }

    /// A peer has all that is here of these groups.
    pub(super) fn note_in_step(&mut self, known: &mut Known, peer: NodeId, groups: &[Group]) {
        let directories: BTreeSet<RoomId> =
            groups.iter().filter_map(|group| known.cx.followers.directory(*group)).collect();
        if directories.is_empty() {
            return;
        }
        let groups: BTreeSet<Group> = groups.iter().copied().collect();
        let is_of = |room: &RoomId| {
            let room = known.rooms.get(room);
            let seal = room.and_then(|room| room.replica.record.seal.as_ref());
            seal.is_some_and(|seal| groups.contains(&seal.group))
        };
        // Those that are carried for it may be called off.
        let asked = self.members.values().flat_map(|member| &member.rooms);
        let asked = asked.filter(|(_, asked)| asked.nodes.contains(&peer)).map(|(room, _)| *room);
        self.dirty.extend(asked.filter(|room| is_of(room)));
        let owed = self.debts.iter().filter(|(_, debts)| debts.contains_key(&peer));
        let owed = owed.map(|(room, _)| *room).filter(|room| is_of(room));
        let paid: BTreeSet<RoomId> = owed.chain(directories.iter().copied()).collect();
        for room in paid {
            self.pay(known, (room, peer), directories.contains(&room));
        }
    }

    /// Nothing of a room is owed any more.
    fn pay(&mut self, known: &mut Known, (room, node): (RoomId, NodeId), is_directory: bool) {
        let debts = self.debts.entry(room).or_default();
        let debt = debts.entry(node).or_default();
        let paid = Owed { met: is_directory, heads: None, records: None };
        if debt.owed == paid && (debt.stored || !is_directory) {
            return;
        }
        self.dirty.insert(room);
        let row = is_directory.then_some(paid.clone());
        if debt.stored || row.is_some() {
            known.cx.change(Change::Owed { room, node, owed: row });
        }
        if is_directory {
            *debt = Debt::stored(paid);
            return;
        }
        debts.remove(&node);
        if debts.is_empty() {
            self.debts.remove(&room);
        }
    }

    /// The nodes that are to get something of a room by others, and what each has.
    fn awaited(&self, known: &Known, group: Group, id: RoomId) -> BTreeMap<NodeId, Vec<Head>> {
        let keys = known.keys_of(group);
        let shown = keys.iter().flat_map(|key| known.directory.keys().shown_at(*key));
        // And those that show that they follow, or were met: a key need not have vouchers.
        let shown = shown.chain(known.cx.followers.of(group).iter().copied());
        let shown = shown.chain(self.met(known, group));
        let shown: BTreeSet<NodeId> = shown.collect();
        let directory = known.cx.followers.directory(group).and_then(|room| self.debts.get(&room));
        // One that has come up, and for which a carrier was asked, stays until it is in step: it may go before it has anything.
        let is_asked_for = |node: &NodeId| {
            let mut asked = self.members.values().filter_map(|member| member.rooms.get(&id));
            asked.any(|asked| asked.nodes.contains(node))
        };
        let away = |node: &NodeId| {
            let is_there = known.cx.up.contains(node) && !is_asked_for(node);
            *node != known.cx.me && !is_there && !known.cx.parted.has(*node)
        };
        let here = known.rooms.get(&id).map(|room| room.replica.logs.heads()).unwrap_or_default();
        let mut awaited = BTreeMap::new();
        for node in shown.into_iter().filter(away) {
            if awaited.len() >= CARRIED_NODES_MAX {
                break;
            }
            let of_group = directory.and_then(|debts| debts.get(&node));
            if !of_group.is_some_and(|debt| debt.owed.met) {
                awaited.insert(node, with_own(node, &[], &here));
                continue;
            }
            let debt = self.debts.get(&id).and_then(|debts| debts.get(&node));
            let Some(Debt { owed, .. }) = debt else { continue };
            if let Some(heads) = &owed.heads {
                awaited.insert(node, with_own(node, heads, &here));
            } else if owed.records.is_some() {
                awaited.insert(node, here.clone());
            }
        }
        awaited
    }

    // Handing over.

    /// At every tick: goes on with rooms that have changed.
    pub(super) fn hand_over(
        &mut self,
        known: &mut Known,
        digests: &mut Digests,
        records: &Records,
    ) {
        let now = known.cx.now.mono;
        if now >= self.recheck {
            self.recheck = now + CARRY_RECHECKED;
            self.store_old(known);
            for group in known.cx.followers.groups() {
                let rooms = digests.rooms_of(known, group);
                self.dirty.extend(rooms);
            }
        }
        let after = self.dirty.iter().filter(|room| self.last.is_none_or(|last| **room > last));
        let mut rooms: Vec<RoomId> = after.copied().take(CARRY_ROOMS_AT_ONCE).collect();
        if rooms.len() < CARRY_ROOMS_AT_ONCE {
            let rest = CARRY_ROOMS_AT_ONCE - rooms.len();
            rooms = self.dirty.iter().copied().take(rest).chain(rooms).collect();
        }
        self.last = rooms.last().copied();
        for room in rooms {
            if self.go_on_with(known, records, room) {
                self.dirty.remove(&room);
            }
        }
    }

    /// Whether nothing is left to be done for a room.
    fn go_on_with(&mut self, known: &mut Known, records: &Records, id: RoomId) -> bool {
        let Some(room) = known.rooms.get(&id) else { return true };
        let Some(group) = room.replica.record.seal.as_ref().map(|seal| seal.group) else {
            return true;
        };
        if room.replica.record.ephemeral {
            return true;
        }
        let awaited = self.awaited(known, group, id);
        if awaited.is_empty() {
            self.call_off(known, id);
            return true;
        }
        let of_group = self.owed_records(known, records, (group, id), &awaited);
        let mut whole = records.with_bytes(group, &of_group);
        // A carrier remembers so many heads: what one has and cannot say to have would be given to it again and again.
        whole.truncate((CARRIED_HEADS_MAX - of_group.len()) / awaited.len().max(1));
        let mut done = true;
        for carrier in self.carriers(known, group, &awaited) {
            let to = To { carrier, awaited: &awaited, records: &of_group, whole: &whole };
            done &= self.hand_to(known, (group, id), to);
        }
        done
    }

    /// The group's records that may be news to one of these nodes, where the room is the group's directory.
    fn owed_records(
        &self,
        known: &Known,
        records: &Records,
        (group, id): (Group, RoomId),
        awaited: &BTreeMap<NodeId, Vec<Head>>,
    ) -> Vec<RecordAt> {
        if known.cx.followers.directory(group) != Some(id) {
            return Vec::new();
        }
        let debts = self.debts.get(&id);
        let since = |node: &NodeId| {
            let debt = debts.and_then(|debts| debts.get(node)).filter(|debt| debt.owed.met);
            debt.map_or(Some(0), |debt| debt.owed.records)
        };
        let since = awaited.keys().filter_map(since).min();
        since.map_or_else(Vec::new, |since| records.since(group, Stamp(since)))
    }

    /// Nobody is to get anything of it by others any more.
    fn call_off(&mut self, known: &mut Known, room: RoomId) {
        for (member, of_member) in &mut self.members {
            if of_member.rooms.remove(&room).is_some() {
                let nodes = Vec::new();
                known.cx.send(*member, Message::Carrying(Carrying::Please { room, nodes }));
            }
        }
    }

    /// Connected members without the key that have room: those that have been there for longest.
    fn carriers(
        &self,
        known: &Known,
        group: Group,
        awaited: &BTreeMap<NodeId, Vec<Head>>,
    ) -> Vec<NodeId> {
        let (now, followers) = (known.cx.now.mono, known.cx.followers.of(group));
        let may = |(node, member): &(&NodeId, &Member)| {
            let is_of_group = followers.contains(*node) || awaited.contains_key(*node);
            known.cx.up.contains(*node) && !is_of_group && now >= member.full_until
        };
        let mut members: Vec<(Duration, NodeId)> =
            self.members.iter().filter(may).map(|(node, member)| (member.since, *node)).collect();
        members.sort();
        members.into_iter().take(CARRIERS).map(|(_, node)| node).collect()
    }

    /// Whether a carrier holds everything of a room.
    fn hand_to(&mut self, known: &mut Known, (group, id): (Group, RoomId), to: To<'_>) -> bool {
        let To { carrier, awaited, .. } = to;
        let now = known.cx.now.mono;
        let Some(member) = self.members.get_mut(&carrier) else { return true };
        let nodes: BTreeSet<NodeId> = awaited.keys().copied().collect();
        let asked = member.rooms.get_mut(&id).filter(|asked| asked.nodes == nodes);
        let is_due = |asked: &Asked| asked.waits.is_none_or(|at| now >= at + CARRY_ASKED_AGAIN);
        match asked {
            Some(asked) if !is_due(asked) => false,
            Some(asked @ Asked { holds: Some(_), .. }) => {
                let Some((handing, first)) = lacking(known, (group, id), (asked, to)) else {
                    asked.waits = None;
                    return true;
                };
                (asked.waits, asked.handed) = (Some(now), Some(first));
                known.cx.effects.extend(handing.to(carrier, id));
                false
            }
            Some(Asked { holds: None, .. }) | None => {
                member.rooms.insert(id, Asked::new(nodes, now));
                please(known, (group, id), (carrier, awaited));
                false
            }
        }
    }

    /// A carrier says what it holds.
    pub(super) fn on_holds(
        &mut self,
        known: &mut Known,
        from: NodeId,
        records: &Records,
        (room, heads, full): (RoomId, &[Head], bool),
    ) {
        let Some(member) = self.members.get_mut(&from) else { return };
        let Some(asked) = member.rooms.get_mut(&room) else { return };
        // What it has said to hold counts on: it cannot have the same handed over again and again.
        let is_first = asked.holds.is_none();
        let holds = asked.holds.get_or_insert_default();
        for head in heads {
            let has_room = holds.len() < 2 * LOGS_PER_ROOM_MAX;
            if let Some(held) = holds.get_mut(&head.log) {
                *held = head.seq.max(*held);
            } else if has_room {
                holds.insert(head.log, head.seq);
            }
        }
        // To each answer that moves half a MiB may be handed over: one without the first thing of what was handed last waits.
        let moved = match asked.handed {
            Some((log, after)) => holds.get(&log).is_some_and(|seq| *seq > after),
            None => is_first,
        };
        self.dirty.insert(room);
        let now = known.cx.now.mono;
        // Without any heads the room is gone there, and is asked for anew.
        if full && !heads.is_empty() && asked.handed.is_some_and(|(log, _)| is_of_bytes(log)) {
            // It takes the rest on.
            asked.waits = None;
            asked.refuses_files(now);
            self.go_on_with(known, records, room);
        } else if full {
            // Another one is asked meanwhile.
            member.full_until = now + CARRY_RECHECKED;
            member.rooms.remove(&room);
        } else if moved {
            asked.waits = None;
            self.go_on_with(known, records, room);
        } else {
            asked.waits = asked.waits.or(Some(now));
        }
    }
}

/// A carrier, and what it is to hold.
#[derive(Clone, Copy)]
struct To<'a> {
    carrier: NodeId,
    awaited: &'a BTreeMap<NodeId, Vec<Head>>,
    records: &'a [RecordAt],
    /// Those of the records whose bytes are here.
    whole: &'a [RecordAt],
}

/// The next things that a carrier is handed.
enum Handing {
    Entries(Vec<Span>),
    /// Of one kind: they are in this space.
    Records(Space, Vec<RecordAt>),
    /// With their bytes.
    Whole(Space, Vec<RecordAt>),
}

impl Handing {
    fn to(self, to: NodeId, room: RoomId) -> Option<Effect> {
        let (space, records, whole) = match self {
            Handing::Entries(spans) => return Some(Effect::HandOver { to, room, spans }),
            Handing::Records(space, records) => (space, records, false),
            Handing::Whole(space, records) => (space, records, true),
        };
        let (collection, ..) = *records.first()?;
        let keys = records.into_iter().map(|(_, key, _)| key).collect();
        Some(Effect::HandOverRecords { to, room, space, collection, keys, whole })
    }
}

/// What a node has: these, and its own entries as far as they are here.
fn with_own(node: NodeId, heads: &[Head], here: &[Head]) -> Vec<Head> {
    let others = heads.iter().filter(|head| head.log.author != node);
    others.chain(here.iter().filter(|head| head.log.author == node)).copied().collect()
}

/// Writes a debt down, if the node that it is owed to is away. Of one that is there the next comparison brings it.
fn keep(known: &mut Known, (room, node): (RoomId, NodeId), debt: &mut Debt) {
    if debt.stored || !known.cx.up.contains(&node) {
        store(known, (room, node), debt);
    } else {
        debt.since = debt.since.or(Some(known.cx.now.mono));
    }
}

fn store(known: &mut Known, (room, node): (RoomId, NodeId), debt: &mut Debt) {
    (debt.stored, debt.since) = (true, None);
    let owed = Some(debt.owed.clone());
    known.cx.change(Change::Owed { room, node, owed });
}

fn please(
    known: &mut Known,
    (group, room): (Group, RoomId),
    (carrier, awaited): (NodeId, &BTreeMap<NodeId, Vec<Head>>),
) {
    let Some(opener) = known.cx.followers.opener(group) else { return };
    let mut left = CARRIED_HEADS_MAX;
    let mut nodes = Vec::new();
    for (node, heads) in awaited {
        let pass = Token::carries(known.cx.mesh, opener, carrier, *node);
        let heads: Vec<Head> = heads.iter().copied().take(left).collect();
        left -= heads.len();
        nodes.push(Awaited { node: *node, pass, heads });
    }
    known.cx.send(carrier, Message::Carrying(Carrying::Please { room, nodes }));
}

/// The things that a carrier does not hold, and the first of them: entries first, files last, and none of those for which it has
/// said to have no room. `None`: it holds all else.
fn lacking(
    known: &Known,
    (group, id): (Group, RoomId),
    (asked, to): (&mut Asked, To<'_>),
) -> Option<(Handing, (LogId, u64))> {
    let nothing = BTreeMap::new();
    let holds = asked.holds.as_ref().unwrap_or(&nothing);
    let heads = known.rooms.get(&id).map(|room| room.replica.logs.heads()).unwrap_or_default();
    let spans = heads.into_iter().filter_map(|head| {
        let after = holds.get(&head.log).copied().unwrap_or(0);
        (head.seq > after).then_some(Span { log: head.log, after, upto: head.seq })
    });
    let spans: Vec<Span> = spans.take(SPANS_MAX).collect();
    if let Some(first) = spans.first().map(|span| (span.log, span.after)) {
        return Some((Handing::Entries(spans), first));
    }
    let space = Space::Followers(group);
    let record = |(collection, key, _): &RecordAt| record_log(collection.0, *key);
    if let Some((records, first)) = of_one_kind(holds, to.records, record) {
        return Some((Handing::Records(space, records), first));
    }
    let (mut records, first) = files_lacking(known.cx.now.mono, asked, to.whole)?;
    records.truncate(CONTENTS_ASKED_MAX);
    asked.files = records.iter().map(|at| (bytes_log(record(at)), at.2.0)).collect();
    Some((Handing::Whole(space, records), first))
}

/// The files that a carrier is handed next: those that it has refused come again when all were tried, and a while later.
fn files_lacking(
    now: Duration,
    asked: &mut Asked,
    whole: &[RecordAt],
) -> Option<(Vec<RecordAt>, (LogId, u64))> {
    let bytes = |(collection, key, _): &RecordAt| bytes_log(record_log(collection.0, *key));
    let skips = asked.skips_files(now);
    let nothing = BTreeMap::new();
    let holds = asked.holds.as_ref().unwrap_or(&nothing);
    let reaches = |of: &BTreeMap<LogId, u64>, at: &RecordAt| {
        of.get(&bytes(at)).is_some_and(|reached| *reached >= at.2.0)
    };
    let lacking: Vec<RecordAt> = whole.iter().filter(|at| !reaches(holds, at)).copied().collect();
    let is_tried = |at: &&RecordAt| !reaches(&asked.refused, at);
    let left: Vec<RecordAt> = lacking.iter().filter(is_tried).copied().collect();
    asked.left_out = if skips { lacking.len() } else { lacking.len() - left.len() };
    if skips {
        return None;
    }
    if left.is_empty() && !lacking.is_empty() {
        asked.refused.clear();
        asked.files_until = Some(now + CARRY_RECHECKED);
        return None;
    }
    of_one_kind(holds, &left, bytes)
}

/// Those of the kind of the first one that is not held as this log, and its place.
fn of_one_kind(
    holds: &BTreeMap<LogId, u64>,
    records: &[RecordAt],
    log: impl Fn(&RecordAt) -> LogId,
) -> Option<(Vec<RecordAt>, (LogId, u64))> {
    let is_held = |at: &&RecordAt| holds.get(&log(at)).is_some_and(|held| *held >= at.2.0);
    let mut left = records.iter().filter(|at| !is_held(at)).peekable();
    let first = **left.peek()?;
    let place = (log(&first), first.2.0.saturating_sub(1));
    let of_kind = left.filter(|at| at.0 == first.0);
    Some((of_kind.copied().take(CARRIED_AT_ONCE_MAX).collect(), place))
}

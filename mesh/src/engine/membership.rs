//! Members of the mesh, and how nodes stop being members (`docs/decisions/membership.md`).

use std::collections::BTreeMap;

use super::{digests::Steps, known::Known, listing, secret};
use crate::{
    api::{
        boundary::{Alarm, Effect},
        command::{Outcome, Refused},
        status::{MemberStatus, RecordStatus, Step},
    },
    directory::removals::{Removals, named},
    fold::act::Folded,
    limits::{NODES_MAX, PARTED_LOGS_MAX},
    name::id::{EntryRef, LogId, NodeId, RoomId},
    turn::happened::Fact,
    wire::{
        entry::{Body, Kept, NodeParted, Parted, Parting},
        message::{About, Message, Notice, Signed},
    },
};

// Partings, as the directory says them.

/// Before anything else is restored: everything else depends on it. All partings count that this node
/// has taken, as when they came, also if their author turned out to be out later.
pub(super) fn restore_parted(known: &mut Known, stored: &crate::api::batch::Summary) {
    let directory = RoomId::directory(known.cx.mesh);
    let list = stored.rooms.iter().find(|room| room.room == directory);
    let mut parted = Removals::default();
    for (room, at, entry, _) in &stored.directory {
        let log = list.and_then(|room| room.logs.get(usize::try_from(at.log).ok()?));
        let Some(log) = log.filter(|_| *room == directory) else { continue };
        if let Body::Parted(act) = Body::decode(entry.facts.kind, &entry.body) {
            // Mistakes in it were counted when it came.
            let _ = parted.learn(log.id, entry.facts, &act);
        }
    }
    known.cx.out = parted.has(known.cx.me) || known.node.parted.is_some();
    known.cx.parted = parted;
}

/// Nobody is to be let in who has parted, from the first moment on.
pub(super) fn shut_out_all_parted(known: &mut Known) {
    let others = known.cx.parted.nodes().filter(|node| *node != known.cx.me);
    let effects: Vec<Effect> = others.map(Effect::ShutOut).collect();
    known.cx.effects.extend(effects);
    if let Some(parted) = farewell(known) {
        known.cx.alarm(Alarm::Parted { node: known.cx.me, removal: parted });
    }
}

// Telling it to whom it is about.

/// A node that has parted is told so, and shut out.
pub(super) fn give_notice(known: &mut Known, node: NodeId) {
    let Some(parted) = known.cx.parted.view(node) else { return };
    let notice = Notice { by: known.cx.me, node, parted };
    let signed = Signed::new(known.cx.mesh, &known.identity, notice);
    known.cx.send(node, Message::Parted(signed));
    known.cx.effects.push(Effect::ShutOut(node));
}

/// The parting of this node, if it has no part any more.
pub(super) fn farewell(known: &Known) -> Option<Parted> {
    known.cx.parted.view(known.cx.me).or(known.node.parted)
}

// Commands of operators.

/// Shuts another node out (`force` aside), or says that it is gone for good.
pub(super) fn part(
    known: &mut Known,
    node: NodeId,
    why: Parting,
    force: bool,
) -> Result<(), Refused> {
    let no = |text: &str| Err(Refused::Impossible(text.to_owned()));
    if node == known.cx.me {
        return no("that is this node itself: it can leave, with `clawmeshd leave`");
    }
    if known.cx.out {
        return no("this node has no part in the mesh any more: ask another one");
    }
    if !known.directory.nodes.admitted.contains_key(&node) {
        return no("no such member: `clawmeshd members` shows all");
    }
    if known.cx.parted.has(node) {
        return no("that node has no part in the mesh any more");
    }
    let here = known.cx.up.contains(&node) || known.live.is_alive(known.cx.now.mono, node);
    if why == Parting::Retired && here {
        return no("that node is heard: it can leave (`clawmeshd leave` there), or be expelled");
    }
    let log = LogId { author: node, incarnation: 0 };
    if why == Parting::Retired
        && !force
        && known.rooms.values().any(|room| room.replica.is_behind_in(log))
    {
        return no(
            "other nodes have more of what it wrote: try again in a moment, or give --force to do \
                 without that",
        );
    }
    if why == Parting::Retired
        && !force
        && let Some(text) = not_named(known, node)
    {
        return no(&format!("{text}; --force retires it all the same"));
    }
    write_parted(known, node, why)
}

/// The directory has to fold it at once: nothing that is decided in this turn counts on the node.
pub(super) fn write_parted(known: &mut Known, node: NodeId, why: Parting) -> Result<(), Refused> {
    let directory = RoomId::directory(known.cx.mesh);
    // Entries of the directory that are not named make rooms and keys void.
    let mut cut = named(cut_of(known, node), directory);
    // The entry itself counts, too.
    let own = cut.iter_mut().find(|kept| node == known.cx.me && kept.room == directory);
    own.into_iter().for_each(|kept| kept.seq += 1);
    let room = known.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
    if !room.is_writable(&known.cx) {
        return Err(known.not_writable(directory));
    }
    let body = Body::Parted(NodeParted { node, why, cut });
    room.append(&mut known.cx, &body).ok_or(Refused::Closed)?;
    Ok(())
}

/// How far this node has what another one wrote, by room.
fn cut_of(known: &Known, node: NodeId) -> impl Iterator<Item = Kept> + '_ {
    let log = LogId { author: node, incarnation: 0 };
    let lasting = known
        .rooms
        .iter()
        .filter(|(_, room)| !room.replica.record.local && !room.replica.record.ephemeral);
    let cut =
        lasting.map(move |(id, room)| Kept { room: *id, seq: room.replica.logs.head_of(log) });
    cut.filter(|kept| kept.seq > 0)
}

/// The rooms that a parting of this node would leave out.
fn not_named(known: &Known, node: NodeId) -> Option<String> {
    let rooms = cut_of(known, node).count();
    let more = rooms.checked_sub(PARTED_LOGS_MAX).filter(|more| *more > 0)?;
    Some(format!(
        "{rooms} rooms have something of that node, which is more than can be named: nodes that join later would not get \
             it in {more} of them"
    ))
}

/// Whether this node may leave the mesh.
pub(super) fn may_leave(known: &Known, records: RecordStatus, force: bool) -> Result<(), Refused> {
    if known.cx.out {
        let text = "this node has no part in the mesh any more".to_owned();
        return Err(Refused::Impossible(text));
    }
    let lost = would_be_lost(known, records);
    if !force && !lost.is_empty() {
        return Err(Refused::Impossible(format!(
            "{}; --force leaves all the same",
            lost.join("; ")
        )));
    }
    Ok(())
}

/// Things that nobody else would have if this node left now.
fn would_be_lost(known: &Known, records: RecordStatus) -> Vec<String> {
    if known.cx.up.is_subset(&known.cx.relays) && !known.cx.is_relay() {
        return vec!["no other member is connected, to have what this node has".to_owned()];
    }
    let status = listing::status(known, records);
    let unsent = status.rooms.iter().filter(|room| room.unsent > 0).map(|room| {
        format!("no other member is known to have the last {} of {}", room.unsent, room.name)
    });
    let alone = known.rooms.values().filter(|room| {
        let only = room.replica.eligible(&known.cx).only.is_some_and(|only| only.len() <= 1);
        only && room.replica.record.delivered > 0
    });
    let alone = alone.filter_map(|room| Some(known.told.get(&room.replica.id)?.name.clone()));
    let mail = status.records.alone;
    let mail = (mail > 0).then(|| format!("no other member is known to have {mail} mails"));
    unsent
        .chain(alone.map(|name| format!("no other member has the private room {name}")))
        .chain(mail)
        .chain(not_named(known, known.cx.me))
        .collect()
}

/// Everybody who was ever admitted, by when.
pub(super) fn members(known: &Known, about: &BTreeMap<NodeId, About>, steps: &Steps) -> Outcome {
    let now = known.cx.now.mono;
    let mut members: Vec<MemberStatus> = known
        .directory
        .nodes
        .admitted
        .iter()
        .map(|(node, admission)| {
            let heard = known.live.last(*node).map(|heard| now.saturating_sub(heard.sign()));
            MemberStatus {
                node: *node,
                name: known.directory.nodes.names.get(node).cloned().unwrap_or_default(),
                since_ms: admission.wall_ms,
                lane: known.directory.nodes.lane_of(*node),
                me: *node == known.cx.me,
                connected: known.live.up.contains(node),
                alive: known.live.is_alive(now, *node),
                founder: *node == known.config.founder,
                relay: known.cx.relays.contains(node),
                about: match *node == known.cx.me {
                    true => Some(secret::own_about(known)),
                    false => about.get(node).cloned(),
                },
                heard_ago: heard,
                through: steps.through(*node),
                step: match *node == known.cx.me {
                    true => Some(own_step(known)),
                    false => steps.view(known, *node).filter(|_| !known.cx.is_relay()),
                },
                parted: match *node == known.cx.me {
                    true => farewell(known),
                    false => known.cx.parted.view(*node),
                },
            }
        })
        .collect();
    members.sort_by_key(|member| (member.since_ms, member.node));
    Outcome::Members(members)
}

/// How far this node is, against its peers.
fn own_step(known: &Known) -> Step {
    let behind = listing::behind(known);
    Step { is_even: behind == 0, even_ago: None, behind }
}

/// From here on a node has no part. Returns the entries of directories from which on nothing of it counts.
pub(super) fn cut_off(known: &mut Known, node: NodeId) -> Vec<(RoomId, EntryRef)> {
    let mut void: Vec<(RoomId, EntryRef)> = Vec::new();
    for room in known.rooms.values_mut() {
        room.replica.sync.peer_down(node);
        let cuts = room.remove(&mut known.cx, node);
        if room.replica.is_directory {
            let id = room.replica.id;
            void.extend(cuts.into_iter().map(|(log, seq)| (id, EntryRef { log, seq })));
        }
    }
    void
}

/// Takes in that a node has parted, as an entry of a directory says. `None`: it says nothing new.
pub(super) fn learn(known: &mut Known, fact: &Fact, parted: &NodeParted) -> Option<Departure> {
    let author = fact.log.author;
    if fact.room != RoomId::directory(known.cx.mesh) {
        known.cx.blame(author, |faults| &mut faults.void);
        return None;
    }
    let news = !known.cx.parted.has(parted.node);
    match known.cx.parted.learn(fact.log, fact.facts, parted)? {
        Folded::Void => known.cx.blame(author, |faults| &mut faults.void),
        Folded::Overflow => known.cx.faults.overflow += 1,
        Folded::Taken => return Some(Departure { node: parted.node, news }),
    }
    None
}

/// A node that has no part any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) node: NodeId,
    /// It had a part until now; else less of it counts than before.
    pub(super) news: bool,
}

/// A member's word that this node has parted. `None`: it is no member's, or is about another node.
pub(super) fn check_notice(known: &mut Known, from: NodeId, notice: Notice) -> Option<Parted> {
    let member = known.live.others.contains(&notice.by) && notice.by == from;
    if notice.node != known.cx.me || !member {
        known.cx.faults.stray += 1;
        return None;
    }
    Some(Parted { by: notice.by, ..notice.parted })
}

/// This node has no part any more: it writes nothing. Whether that is news.
pub(super) fn note_farewell(known: &mut Known, parted: Parted) -> bool {
    if known.node.parted.is_some() {
        return false;
    }
    known.change_node().parted = Some(parted);
    known.cx.out = true;
    known.cx.alarm(Alarm::Parted { node: known.cx.me, removal: parted });
    true
}

/// A peer asks when another node was heard.
pub(super) fn on_probe(known: &mut Known, from: NodeId, node: NodeId) {
    let heard = known.live.last(node).map(|heard| known.cx.now.mono.saturating_sub(heard.at));
    let age_ms = heard.and_then(|age| u64::try_from(age.as_millis()).ok());
    known.cx.send(from, Message::Sighting { node, age_ms });
}

/// Nodes that are not heard any more take their agents with them.
pub(super) fn refresh_liveness(known: &mut Known) {
    let now = known.cx.now.mono;
    known.live.count_alive(now);
    let heard: BTreeMap<NodeId, bool> = known
        .live
        .heard()
        .take(NODES_MAX)
        .map(|(node, _)| (node, known.live.is_alive(now, node)))
        .collect();
    for (node, alive) in heard {
        known.rosters.set_alive(now, node, alive);
    }
}

//! Which mesh the node is in: founded at its first start, or joined with a ticket.
//!
//! `mesh.key` decides. It is replaced in one step; the store's record of the mesh follows it, at
//! this start or, after a crash in between, at the next. So a join can be cut at any point.

use anyhow::{Context, Result, bail};
use mesh::{
    Identity, MeshSecret,
    api::{
        batch::{Change, NodeRecord, Summary},
        command::RoomView,
    },
    name::id::{MeshId, NodeId, RoomId},
};
use net::PeerAddress;
use store::Store;
use zeroize::Zeroizing;

use crate::{
    chance,
    files::DataDir,
    limits::{NODE_NAME_BYTES_MAX, REMEMBERED_MAX},
    ticket::Ticket,
};

/// A node's identity, and its mesh.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) seed: Zeroizing<[u8; 32]>,
    pub(crate) identity: Identity,
    pub(crate) mesh: MeshSecret,
    /// The summary that the engine starts from.
    pub(crate) summary: Summary,
    /// Addresses of others, the newest last.
    pub(crate) peers: Vec<PeerAddress>,
    /// It has made its mesh just now.
    pub(crate) founded: bool,
    /// The nodes that its tickets are of.
    pub(crate) inviters: Vec<NodeId>,
}

/// Takes the node that lives in `dir` and `store` into the mesh of its key file, of the tickets, or
/// into a new one of its own.
///
/// `is_relay`: it is, or is to become, a relay.
pub(crate) fn enter(
    dir: &DataDir,
    store: &mut Store,
    tickets: &[Ticket],
    is_relay: bool,
) -> Result<Member> {
    let (seed, new) = match dir.node_seed()? {
        Some(seed) => (seed, false),
        None => (chance::draw()?, true),
    };
    let identity = Identity::from_seed(&seed);
    let me = identity.node_id();
    let current = dir.mesh()?;
    let invited = one_mesh(tickets)?;
    let kept = current.is_some();
    let founded = !kept && invited.is_none();
    if founded && is_relay {
        bail!(
            "a relay joins a mesh that is there: give it a ticket, which `clawmeshd invite` prints"
        );
    }
    let target = match (current, invited) {
        // Of the same mesh: the later secret counts, and those before are kept.
        (Some(mut current), Some(invited)) if current.mesh_id() == invited.mesh_id() => {
            current.renew(invited.link().clone());
            current
        }
        (_, Some(invited)) => invited,
        (Some(current), None) => current,
        (None, None) => MeshSecret::new(*chance::draw()?, me),
    };
    let id = target.mesh_id();
    let mut summary = store.summary(me, Some(id))?;
    let record = summary.node.clone();
    if let Some(record) = &record {
        if new {
            bail!(missing(dir, "node.key"));
        }
        if record.mesh != id && !kept && tickets.is_empty() {
            bail!(missing(dir, "mesh.key"));
        }
        may_be_in(record, id, !tickets.is_empty())?;
        stays_what_it_is(dir, summary.is_relay(record.private_of.unwrap_or(me)), is_relay)?;
    }
    if new {
        dir.write_node_seed(&seed)?;
    }
    let peers = remember(dir, me, tickets)?;
    let news = |mesh: MeshSecret| mesh.mesh_id() != id || mesh.link() != target.link();
    if dir.mesh()?.is_none_or(news) {
        dir.write_mesh(&target)?;
    }
    if let Some(before) = record.filter(|record| record.mesh != id) {
        leave(store, &before, id)?;
        summary = store.summary(me, Some(id))?;
    }
    let inviters = tickets.iter().map(Ticket::inviter).collect();
    Ok(Member { seed, identity, mesh: target, summary, peers, founded, inviters })
}

/// Whether a node that has this record may be in the mesh `id`. `joins`: it was told to.
fn may_be_in(record: &NodeRecord, id: MeshId, joins: bool) -> Result<()> {
    if record.mesh == id && record.parted.is_some() && joins {
        bail!(
            "--join: this node has no part in that mesh any more, and is an archive of it; to join \
             again, use another --data-dir"
        );
    }
    if record.mesh != id && (record.had_peer || record.parted.is_some()) {
        bail!("this node already belongs to another mesh; use another --data-dir");
    }
    Ok(())
}

/// The others know a node as a relay from its first start on, or never: one with rooms cannot become one, and a relay has none to
/// show. `was`: as it was admitted, if it was; of a node that was restored, the one before it.
fn stays_what_it_is(dir: &DataDir, was: Option<bool>, is_relay: bool) -> Result<()> {
    let at = dir.path().display();
    match (was, is_relay) {
        (Some(true), true) | (Some(false) | None, false) => Ok(()),
        (Some(true), false) => {
            bail!(
                "--data-dir {at}: it is a relay's: run `clawmeshd relay`, or use another --data-dir"
            )
        }
        (Some(false) | None, true) => {
            bail!("--data-dir {at}: it is of a node with rooms: a relay needs another --data-dir")
        }
    }
}

/// The seed of the node's key, made if there is none yet: for a node that asks to be let into the
/// mesh `id`, if it may be there.
pub(crate) fn seed_to_join(
    dir: &DataDir,
    store: &Store,
    id: MeshId,
) -> Result<Zeroizing<[u8; 32]>> {
    let seed = dir.node_seed()?;
    // Without a key it has no record, else the key is missing.
    let me = seed.as_ref().map_or(NodeId([0; 32]), |seed| Identity::from_seed(seed).node_id());
    let record = store.summary(me, Some(id))?.node;
    match (seed, record) {
        (Some(seed), record) => {
            record.map_or(Ok(()), |record| may_be_in(&record, id, true))?;
            Ok(seed)
        }
        (None, Some(_)) => bail!(missing(dir, "node.key")),
        (None, None) => {
            let seed = chance::draw()?;
            dir.write_node_seed(&seed)?;
            Ok(seed)
        }
    }
}

fn missing(dir: &DataDir, file: &str) -> String {
    let dir = dir.path().display();
    format!(
        "--data-dir {dir}: {file} is missing: restore it from a backup, or start with another --data-dir"
    )
}

/// How the rooms of the meshes that the node was in before are listed.
pub(crate) fn archive(
    store: &Store,
    me: NodeId,
    mesh: MeshId,
    name: &str,
) -> Result<Vec<RoomView>> {
    let rooms = store.reader().rooms()?;
    let mut meshes: Vec<MeshId> = rooms.into_iter().map(|(_, record)| record.mesh).collect();
    meshes.sort_unstable();
    meshes.dedup();
    let mut views = Vec::new();
    for before in meshes.into_iter().filter(|before| *before != mesh) {
        let summary = store.summary(me, Some(before))?;
        views.extend(mesh::archive(before, me, name, &summary));
    }
    Ok(views)
}

/// The machine's name, or the beginning of the node's id.
pub(crate) fn default_name(me: NodeId) -> String {
    let host = ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .or_else(|| std::env::var("HOSTNAME").ok());
    let name = host.as_deref().map(str::trim).filter(|name| {
        !name.is_empty() && name.len() <= NODE_NAME_BYTES_MAX && !name.chars().any(char::is_control)
    });
    name.map_or_else(|| me.short(), str::to_owned)
}

/// The mesh that all tickets lead to.
fn one_mesh(tickets: &[Ticket]) -> Result<Option<MeshSecret>> {
    let Some(first) = tickets.first() else { return Ok(None) };
    if tickets.iter().any(|ticket| ticket.mesh().mesh_id() != first.mesh().mesh_id()) {
        bail!("--join: the tickets are of different meshes; a node is in one");
    }
    Ok(Some(first.mesh().clone()))
}

/// The record of the node in the new mesh, with traces of its time in the one before.
fn leave(store: &mut Store, before: &NodeRecord, mesh: MeshId) -> Result<()> {
    let tip = store.reader().tip(RoomId::lobby(before.mesh))?;
    let record = NodeRecord {
        mesh,
        had_peer: false,
        lobby_floor: before.lobby_floor.max(tip),
        // Of rooms that nobody will speak of again.
        ephemeral_claims: Vec::new(),
        roster: None,
        parted: None,
        ..before.clone()
    };
    store.commit(&[Change::Node(record)]).context("write the store")
}

/// The addresses known, with those of the tickets as the newest.
fn remember(dir: &DataDir, me: NodeId, tickets: &[Ticket]) -> Result<Vec<PeerAddress>> {
    let mut peers = dir.peers();
    let told = tickets.iter().flat_map(Ticket::peers).filter(|peer| peer.node != Some(me.0));
    let told: Vec<PeerAddress> = told.collect();
    if told.is_empty() {
        return Ok(peers);
    }
    if dir.inviters() != told {
        dir.write_inviters(&told)?;
    }
    peers.retain(|peer| !told.contains(peer));
    peers.extend(told);
    peers.drain(..peers.len().saturating_sub(REMEMBERED_MAX));
    dir.write_peers(&peers)?;
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mesh::{
        Config, Engine,
        name::{id::KeyPrint, number::Number, time::Now},
    };

    use super::*;

    const NOW: Now = Now {
        mono: std::time::Duration::ZERO,
        wall_ms: 1_700_000_000_000,
        wall_us: 1_700_000_000_000_000,
    };

    fn open(path: &Path) -> (DataDir, Store) {
        (DataDir::prepare(path).unwrap(), Store::open(path).unwrap())
    }

    /// Runs the member's first turn, so that the store has a record of it.
    fn start(member: &Member, store: &mut Store) {
        let config = Config::new(member.mesh.mesh_id(), member.mesh.founder());
        let mut engine = Engine::open(member.identity.clone(), config, member.summary.clone(), NOW);
        store.commit(&engine.take_turn().batch).unwrap();
    }

    fn ticket(seed: u8) -> Ticket {
        let founder = Identity::from_seed(&[seed; 32]).node_id();
        let address = "127.0.0.1:7000".parse().unwrap();
        Ticket::new(MeshSecret::new([seed; 32], founder), founder, vec![address])
    }

    fn set_record(store: &mut Store, member: &Member, change: impl FnOnce(&mut NodeRecord)) {
        let me = member.identity.node_id();
        let mut record = store.summary(me, None).unwrap().node.unwrap();
        change(&mut record);
        store.commit(&[Change::Node(record)]).unwrap();
    }

    #[test]
    fn the_first_start_founds_a_mesh_and_the_next_is_in_it() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let first = enter(&dir, &mut store, &[], false).unwrap();
        assert_eq!(first.mesh.founder(), first.identity.node_id());
        start(&first, &mut store);
        let again = enter(&dir, &mut store, &[], false).unwrap();
        assert_eq!(again.mesh.mesh_id(), first.mesh.mesh_id());
        assert_eq!(again.identity.node_id(), first.identity.node_id());
    }

    #[test]
    fn a_node_that_never_had_a_peer_may_join_and_keeps_its_rooms() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let before = enter(&dir, &mut store, &[], false).unwrap();
        start(&before, &mut store);
        let own = before.mesh.mesh_id();
        let joined = enter(&dir, &mut store, &[ticket(7)], false).unwrap();
        let mesh = ticket(7).mesh().mesh_id();
        let record = joined.summary.node.as_ref().unwrap();
        assert_eq!((record.mesh, record.had_peer), (mesh, false));
        assert_eq!(joined.peers, ticket(7).peers().collect::<Vec<_>>());
        let archived = archive(&store, joined.identity.node_id(), mesh, "here").unwrap();
        let lobby = archived.iter().find(|it| it.room == RoomId::lobby(own)).unwrap();
        assert_eq!(&*lobby.name, "lobby (here)");
        assert_eq!(lobby.owner, None::<KeyPrint>);
        // And it stays there, told so or not.
        assert_eq!(enter(&dir, &mut store, &[], false).unwrap().mesh.mesh_id(), mesh);
        assert_eq!(enter(&dir, &mut store, &[ticket(7)], false).unwrap().peers.len(), 1);
    }

    #[test]
    fn a_join_that_was_cut_after_the_key_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let before = enter(&dir, &mut store, &[], false).unwrap();
        start(&before, &mut store);
        set_record(&mut store, &before, |record| record.lobby_floor = Number(5));
        dir.write_mesh(ticket(7).mesh()).unwrap();
        let joined = enter(&dir, &mut store, &[], false).unwrap();
        let record = joined.summary.node.unwrap();
        assert_eq!(record.mesh, ticket(7).mesh().mesh_id());
        assert_eq!(record.lobby_floor, Number(5));
    }

    #[test]
    fn a_node_that_had_a_peer_stays_and_nothing_is_written() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let member = enter(&dir, &mut store, &[ticket(7)], false).unwrap();
        start(&member, &mut store);
        set_record(&mut store, &member, |record| record.had_peer = true);
        let error = enter(&dir, &mut store, &[ticket(8)], false).unwrap_err().to_string();
        assert_eq!(error, "this node already belongs to another mesh; use another --data-dir");
        assert_eq!(dir.mesh().unwrap().unwrap().mesh_id(), ticket(7).mesh().mesh_id());
        assert_eq!(dir.peers(), ticket(7).peers().collect::<Vec<_>>());
        enter(&dir, &mut store, &[ticket(7)], false).unwrap();
    }

    #[test]
    fn a_directory_is_a_relays_from_its_first_start_on_or_never() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let error = enter(&dir, &mut store, &[], true).unwrap_err().to_string();
        assert!(error.contains("give it a ticket"), "{error}");
        assert!(dir.node_seed().unwrap().is_none(), "nothing is written");
        let relay = enter(&dir, &mut store, &[ticket(7)], true).unwrap();
        let config = Config::new(relay.mesh.mesh_id(), relay.mesh.founder());
        let config = Config { relay: true, ..config };
        let mut engine = Engine::open(relay.identity.clone(), config, relay.summary, NOW);
        store.commit(&engine.take_turn().batch).unwrap();
        enter(&dir, &mut store, &[], true).unwrap();
        let error = enter(&dir, &mut store, &[ticket(7)], false).unwrap_err().to_string();
        assert!(error.contains("it is a relay's"), "{error}");
        let other = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(other.path());
        let node = enter(&dir, &mut store, &[], false).unwrap();
        start(&node, &mut store);
        let error = enter(&dir, &mut store, &[ticket(7)], true).unwrap_err().to_string();
        assert!(error.contains("of a node with rooms"), "{error}");
        let kept = dir.mesh().unwrap().unwrap();
        assert_eq!(kept.mesh_id(), node.mesh.mesh_id(), "it is in its mesh as before");
    }

    #[test]
    fn lost_keys_are_not_made_anew() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let member = enter(&dir, &mut store, &[], false).unwrap();
        start(&member, &mut store);
        for (file, keep) in [("mesh.key", "m"), ("node.key", "n")] {
            let (path, kept) = (temp.path().join(file), temp.path().join(keep));
            std::fs::rename(&path, &kept).unwrap();
            let error = enter(&dir, &mut store, &[], false).unwrap_err().to_string();
            assert!(error.starts_with("--data-dir "), "{error}");
            assert!(error.contains(&format!(": {file} is missing")), "{error}");
            assert!(!path.exists());
            std::fs::rename(&kept, &path).unwrap();
        }
    }

    #[test]
    fn tickets_of_two_meshes_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, mut store) = open(temp.path());
        let error =
            enter(&dir, &mut store, &[ticket(7), ticket(8)], false).unwrap_err().to_string();
        assert!(error.starts_with("--join"), "{error}");
    }
}

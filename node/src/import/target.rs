//! The node that something is brought into: opened as it is for serving, but alone.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mesh::{Engine, name::id::RoomId, wire::signatures::SignedLog};
use store::Store;

use super::journal::Journal;
use crate::{
    chance,
    clock::Clock,
    files::DataDir,
    membership::{self, Member},
};

/// A store, and its journal of an import.
#[derive(Debug)]
pub(crate) struct Target {
    dir: DataDir,
    pub(crate) store: Store,
    pub(crate) journal: Option<Journal>,
    /// The name that the node is to have; `None`: the machine's.
    pub(crate) name: Option<String>,
}

/// Whether a node is in `dir` already, or the beginning of one. Nothing is made.
pub(crate) fn is_there(dir: &Path) -> bool {
    dir.join(store::FILE_NAME).exists()
}

/// Opens the node in `dir`, or makes one.
///
/// # Errors
/// It runs, or it has something of its own.
pub(crate) fn open(dir: &Path) -> Result<Target> {
    let dir = DataDir::prepare(dir)?;
    let store = Store::open(dir.path()).context("--data-dir")?;
    dir.tighten()?;
    let journal = Journal::read(&store.reader())?;
    let target = Target { dir, store, journal, name: None };
    if target.journal.is_none() {
        target.check_fresh()?;
    }
    Ok(target)
}

impl Target {
    /// Nothing may be there that could get in the way of the import.
    fn check_fresh(&self) -> Result<()> {
        let not_fresh = |what: &str| -> Result<()> {
            let dir = self.dir.path().display();
            bail!(
                "--data-dir {dir}: {what}; import into a fresh one, before its first `clawmeshd up`"
            )
        };
        let Some(mesh) = self.dir.mesh()? else {
            let rooms = self.store.reader().rooms()?;
            return if rooms.is_empty() { Ok(()) } else { not_fresh("a node was here before") };
        };
        let seed = self.dir.node_seed()?.context("node.key is missing beside mesh.key")?;
        let me = mesh::Identity::from_seed(&seed).node_id();
        if mesh.founder() != me {
            return not_fresh("this node has joined a mesh that another one founded");
        }
        let id = mesh.mesh_id();
        let summary = self.store.summary(me, Some(id))?;
        let permanent =
            [RoomId::lobby(id), RoomId::directory(id), RoomId::private_directory(id, me)];
        let rooms = self.store.reader().rooms()?;
        if rooms.iter().any(|(room, _)| !permanent.contains(room)) {
            return not_fresh("this node has rooms already");
        }
        if self.store.reader().tip(RoomId::lobby(id))?.0 > 0 || !summary.acts.is_empty() {
            return not_fresh("this node's lobby has messages, votes or tasks already");
        }
        let others =
            summary.rooms.iter().flat_map(|room| &room.logs).any(|log| log.id.author != me);
        if summary.node.is_some_and(|node| node.had_peer) || others {
            return not_fresh("this node's mesh has other members already");
        }
        Ok(())
    }

    /// Founds the mesh, if there is none, and opens the engine.
    pub(crate) fn enter(&mut self, clock: Clock) -> Result<(Engine, SignedLog)> {
        let member = membership::enter(&self.dir, &mut self.store, &[], false)?;
        let Member { identity, mesh, summary, .. } = member;
        let mut config = mesh::Config::new(mesh.mesh_id(), mesh.founder());
        config.name =
            self.name.clone().unwrap_or_else(|| membership::default_name(identity.node_id()));
        config.seed = chance::number()?;
        let log = SignedLog { mesh: mesh.mesh_id(), node: identity.node_id() };
        Ok((Engine::open(identity, config, summary, clock.now()), log))
    }

    /// The lobby of the node's mesh, once there is one.
    pub(crate) fn lobby(&self) -> Result<RoomId> {
        let mesh = self.dir.mesh()?.context("the mesh was just founded")?;
        Ok(RoomId::lobby(mesh.mesh_id()))
    }
}

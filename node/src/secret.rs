//! The secret of the mesh's connections as this node keeps it: in `mesh.key`, replaced in one step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use mesh::{
    LinkSecret, MeshSecret,
    api::command::{Command, Drawn},
};
use net::{Net, Secret};

use crate::{
    chance,
    files::{DataDir, private::is_full},
    queue::{Asker, Queue},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Keeper {
    dir: DataDir,
    mesh: Mutex<MeshSecret>,
}

impl Keeper {
    pub(crate) fn new(dir: DataDir, mesh: MeshSecret) -> Keeper {
        Keeper { dir, mesh: Mutex::new(mesh) }
    }

    /// As it is now.
    pub(crate) fn current(&self) -> MeshSecret {
        self.locked().clone()
    }

    /// Another one: durable before any connection has it. `false`: the disk is full, and nothing
    /// has changed.
    pub(crate) fn renew(&self, link: LinkSecret, net: &Net) -> Result<bool> {
        let mut mesh = self.locked();
        let mut next = mesh.clone();
        next.renew(link);
        match self.dir.write_mesh(&next) {
            Err(error) if is_full(&error) => return Ok(false),
            written => written.context("write the mesh's new secret")?,
        }
        let number = next.link().epoch().number;
        tracing::info!(number, "the mesh's connections have a new secret");
        let (newest, former) = pre_shared_keys(&next);
        *mesh = next;
        net.renew_keys(newest, former);
        Ok(true)
    }

    fn locked(&self) -> MutexGuard<'_, MeshSecret> {
        // It is replaced as a whole.
        self.mesh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pre-shared keys for the network: the newest, and those before.
pub(crate) fn pre_shared_keys(mesh: &MeshSecret) -> (Secret, Vec<Secret>) {
    let former = mesh.former().iter().map(|link| (*link.pre_shared_key(mesh.founder())).into());
    ((*mesh.pre_shared_key()).into(), former.collect())
}

/// Random bytes for the next secret.
pub(crate) fn draw() -> Result<Drawn> {
    Ok(Drawn::new(*chance::draw()?))
}

/// The engine asks for one.
pub(crate) fn draw_for(queue: &Arc<Queue>) -> Result<()> {
    let command = Command::RotateSecret { drawn: draw()?, force: true };
    queue.push_command(command, Asker::Nobody);
    Ok(())
}

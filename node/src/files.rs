//! The files of a data directory, each replaced in one step, all readable by their owner alone.

pub(crate) mod api_key;
pub(crate) mod group;
mod mesh_key;
pub(crate) mod private;
mod tokens;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use mesh::{
    MeshSecret,
    name::id::{KeyPrint, parse_hex},
};
use net::PeerAddress;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{invitations::kept::KeptInvitation, limits::REMEMBERED_MAX, marks::KeptMark};
use private::{hex, make_private_dir, read_json, read_secret, replace, write_json};

/// A data directory, by its files.
#[derive(Clone, Debug)]
pub(crate) struct DataDir(PathBuf);

/// The description of a running node for the other commands on its machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunFile {
    /// Where it takes operators' commands.
    pub(crate) control: PathBuf,
    /// Its key file; `None` if it checks no keys.
    pub(crate) key_file: Option<PathBuf>,
    /// Its Unix socket for clients.
    #[serde(default)]
    pub(crate) socket: Option<PathBuf>,
    /// Its TCP address for clients, really bound.
    #[serde(default)]
    pub(crate) tcp: Option<String>,
    /// The URL of its HTTP address.
    #[serde(default)]
    pub(crate) http: Option<String>,
}

impl DataDir {
    /// The directory at `path`, made if it is not there, closed to everybody else.
    pub(crate) fn prepare(path: &Path) -> Result<DataDir> {
        let hint = || format!("--data-dir {}", path.display());
        make_private_dir(path).with_context(hint)?;
        let mode = fs::metadata(path).with_context(hint)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).with_context(hint)?;
        }
        // Absolute: the working directory may change.
        Ok(DataDir(path.canonicalize().with_context(hint)?))
    }

    /// Closes to everybody else what is in it: the store holds keys of private rooms, and may be
    /// from a version, or a backup, that left it open.
    pub(crate) fn tighten(&self) -> Result<()> {
        let hint = || format!("--data-dir {}", self.0.display());
        for entry in fs::read_dir(&self.0).with_context(hint)? {
            let file = entry.with_context(hint)?.path();
            let kept = fs::symlink_metadata(&file).with_context(hint)?;
            if kept.is_file() && kept.permissions().mode() & 0o077 != 0 {
                let closed = fs::Permissions::from_mode(0o600);
                fs::set_permissions(&file, closed).with_context(hint)?;
            }
        }
        Ok(())
    }

    /// The directory at `path`, if there is one.
    pub(crate) fn existing(path: &Path) -> Result<DataDir> {
        if !path.is_dir() {
            bail!(
                "there is no node at {}: start one with `clawmeshd up`, or name another --data-dir",
                path.display()
            );
        }
        Ok(DataDir(path.canonicalize()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The seed of the node's key; `None` if there is none yet.
    pub(crate) fn node_seed(&self) -> Result<Option<Zeroizing<[u8; 32]>>> {
        let file = self.file("node.key");
        let Some(text) = read_secret(&file)? else { return Ok(None) };
        let seed = parse_hex(text.trim()).map(Zeroizing::new);
        seed.map(Some).with_context(|| self.damaged("node.key", "64 hex digits"))
    }

    pub(crate) fn write_node_seed(&self, seed: &[u8; 32]) -> Result<()> {
        let text = Zeroizing::new(format!("{}\n", &*hex(seed)));
        replace(&self.file("node.key"), text.as_bytes())
    }

    fn damaged(&self, file: &str, what: &str) -> String {
        let dir = self.0.display();
        format!(
            "--data-dir {dir}: {file} does not hold {what}: restore it from a backup, or start with another --data-dir"
        )
    }

    /// The mesh that the node is in; `None` if it is in none yet.
    pub(crate) fn mesh(&self) -> Result<Option<MeshSecret>> {
        let file = self.file("mesh.key");
        let Some(text) = read_secret(&file)? else { return Ok(None) };
        mesh_key::read(&text)
            .map(Some)
            .with_context(|| self.damaged("mesh.key", "the key of a mesh"))
    }

    /// Puts the node into `mesh`. The key of another one that it was in stays as `mesh.key.before`.
    pub(crate) fn write_mesh(&self, mesh: &MeshSecret) -> Result<()> {
        let file = self.file("mesh.key");
        let other = |text: &Zeroizing<String>| {
            mesh_key::read(text).is_none_or(|mesh_before| mesh_before.mesh_id() != mesh.mesh_id())
        };
        if let Some(before) = read_secret(&file)?.filter(other) {
            replace(&self.file("mesh.key.before"), before.as_bytes())?;
        }
        replace(&file, mesh_key::write(mesh).as_bytes())
    }

    /// The invitations that this node made.
    pub(crate) fn invitations(&self) -> Result<Vec<KeptInvitation>> {
        let kept = read_json(&self.file("invitations.json"));
        let kept = kept.with_context(|| self.damaged("invitations.json", "invitations"))?;
        Ok(kept.unwrap_or_default())
    }

    pub(crate) fn write_invitations(&self, kept: &[KeptInvitation]) -> Result<()> {
        write_json(&self.file("invitations.json"), &kept)
    }

    /// The operator's marks on sessions.
    pub(crate) fn session_marks(&self) -> Result<Vec<KeptMark>> {
        let kept = read_json(&self.file("sessions.json"));
        let kept = kept.with_context(|| self.damaged("sessions.json", "marks on sessions"))?;
        Ok(kept.unwrap_or_default())
    }

    pub(crate) fn write_session_marks(&self, kept: &[KeptMark]) -> Result<()> {
        write_json(&self.file("sessions.json"), &kept)
    }

    /// Accounts of the index that the operator hides here.
    pub(crate) fn hidden_accounts(&self) -> Result<BTreeSet<KeyPrint>> {
        let what = || self.damaged("hidden.json", "prints of accounts");
        let kept: Option<Vec<String>> = read_json(&self.file("hidden.json")).with_context(what)?;
        let prints = kept.unwrap_or_default();
        let prints = prints.iter().map(|text| parse_hex(text).map(KeyPrint));
        prints.collect::<Option<_>>().with_context(what)
    }

    pub(crate) fn write_hidden_accounts(&self, all: &BTreeSet<KeyPrint>) -> Result<()> {
        let prints: Vec<String> = all.iter().map(ToString::to_string).collect();
        write_json(&self.file("hidden.json"), &prints)
    }

    /// Addresses of peers from earlier, the newest last. A file that cannot be read is no reason
    /// not to start: the addresses come again with the first peer.
    pub(crate) fn peers(&self) -> Vec<PeerAddress> {
        let file = self.file("peers.json");
        let texts: Vec<String> = match read_json(&file) {
            Ok(texts) => texts.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(
                    event = "peers_unreadable",
                    "starting without known peers: {error:#}"
                );
                Vec::new()
            }
        };
        let peers = texts.iter().rev().filter_map(|text| text.parse().ok()).take(REMEMBERED_MAX);
        let mut peers: Vec<PeerAddress> = peers.collect();
        peers.reverse();
        peers
    }

    pub(crate) fn write_peers<'a>(
        &self,
        peers: impl IntoIterator<Item = &'a PeerAddress>,
    ) -> Result<()> {
        let texts: Vec<String> = peers.into_iter().map(PeerAddress::to_string).collect();
        write_json(&self.file("peers.json"), &texts)
    }

    /// Where the nodes are by whose tickets this one joined last. A file that cannot be read is as none:
    /// then the node listens on loopback alone, and says so.
    pub(crate) fn inviters(&self) -> Vec<PeerAddress> {
        let texts: Vec<String> =
            read_json(&self.file("inviters.json")).ok().flatten().unwrap_or_default();
        texts.iter().filter_map(|text| text.parse().ok()).take(REMEMBERED_MAX).collect()
    }

    pub(crate) fn write_inviters(&self, inviters: &[PeerAddress]) -> Result<()> {
        let texts: Vec<String> = inviters.iter().map(PeerAddress::to_string).collect();
        write_json(&self.file("inviters.json"), &texts)
    }

    /// The description of the node that runs here, or was killed here.
    pub(crate) fn run(&self) -> Result<Option<RunFile>> {
        read_json(&self.file("run.json"))
    }

    pub(crate) fn write_run(&self, run: &RunFile) -> Result<()> {
        write_json(&self.file("run.json"), run)
    }

    pub(crate) fn remove_run(&self) {
        // If it stays, the next start replaces it, and nobody answers at its control socket.
        drop(fs::remove_file(self.file("run.json")));
    }

    /// The mesh addresses bound at the last start, for a ticket of a stopped node.
    pub(crate) fn last_listen(&self) -> Result<Vec<String>> {
        Ok(read_json(&self.file("listen.json"))?.unwrap_or_default())
    }

    pub(crate) fn write_last_listen(&self, addresses: &[String]) -> Result<()> {
        write_json(&self.file("listen.json"), &addresses)
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.file("control.sock")
    }

    /// Every file that is not the store's and not only the running process's: a backup needs these
    /// besides.
    pub(crate) fn kept(&self) -> Result<Vec<PathBuf>> {
        let hint = || format!("--data-dir {}", self.0.display());
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.0).with_context(hint)? {
            let entry = entry.with_context(hint)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let passing = name.starts_with(store::FILE_NAME) || name.ends_with(".new");
            if entry.file_type().with_context(hint)?.is_file() && !passing && name != "run.json" {
                kept.push(entry.path());
            }
        }
        kept.sort();
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use mesh::{LinkSecret, name::id::NodeId};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_kept_is_its_owners_alone() {
        let temp = tempfile::tempdir().unwrap();
        let open = temp.path().join("a/b");
        fs::create_dir_all(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let dir = DataDir::prepare(&open).unwrap();
        assert_eq!(mode(dir.path()), 0o700);
        dir.write_node_seed(&[1; 32]).unwrap();
        let mesh = MeshSecret::new([2; 32], NodeId([3; 32]));
        dir.write_mesh(&mesh).unwrap();
        for file in ["node.key", "mesh.key"] {
            assert_eq!(mode(&dir.file(file)), 0o600, "{file}");
        }
        assert_eq!(*dir.node_seed().unwrap().unwrap(), [1; 32]);
        assert_eq!(dir.mesh().unwrap().unwrap().mesh_id(), mesh.mesh_id());
    }

    #[test]
    fn what_was_open_is_closed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let file = dir.file("clawmesh.redb");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        dir.tighten().unwrap();
        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn the_key_of_the_mesh_before_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        dir.write_mesh(&MeshSecret::new([1; 32], NodeId([9; 32]))).unwrap();
        let first = fs::read(dir.file("mesh.key")).unwrap();
        dir.write_mesh(&MeshSecret::new([2; 32], NodeId([9; 32]))).unwrap();
        assert_eq!(fs::read(dir.file("mesh.key.before")).unwrap(), first);
        assert_eq!(dir.mesh().unwrap().unwrap().link().bytes(), &[2; 32]);
    }

    #[test]
    fn a_mesh_keeps_its_name_whatever_its_secret_is() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let mesh = MeshSecret::new([1; 32], NodeId([9; 32]));
        dir.write_mesh(&mesh).unwrap();
        // As no node draws it, and one that had it would not start again.
        let link = LinkSecret::new(0, [2; 32]);
        dir.write_mesh(&MeshSecret::renewed(mesh.mesh_id(), mesh.founder(), link)).unwrap();
        assert_eq!(dir.mesh().unwrap().unwrap().mesh_id(), mesh.mesh_id());
    }

    #[test]
    fn a_secret_that_changes_is_kept_with_those_before_and_the_old_form_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        // As the first version wrote it.
        let old = format!("{} {}\n", "a5".repeat(32), "03".repeat(32));
        fs::write(dir.file("mesh.key"), old).unwrap();
        let mut mesh = dir.mesh().unwrap().unwrap();
        let id = mesh.mesh_id();
        assert_eq!(id, MeshSecret::new([0xa5; 32], NodeId([3; 32])).mesh_id());
        mesh.renew(LinkSecret::new(1, [7; 32]).leaving_out([NodeId([9; 32])]));
        dir.write_mesh(&mesh).unwrap();
        assert_eq!(mode(&dir.file("mesh.key")), 0o600);
        assert!(!dir.file("mesh.key.before").exists(), "it is the same mesh");
        let read = dir.mesh().unwrap().unwrap();
        assert_eq!((read.mesh_id(), read.founder()), (id, NodeId([3; 32])));
        assert_eq!(read.link(), mesh.link());
        assert_eq!(read.former(), mesh.former());
        assert_eq!(read.former()[0].bytes(), &[0xa5; 32]);
        for damaged in ["2 a b", "2", "", "x y z w", "2 01 02\n1 03"] {
            assert!(mesh_key::read(damaged).is_none(), "{damaged}");
        }
    }

    #[test]
    fn damaged_files_are_named() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        fs::write(dir.file("mesh.key"), "what").unwrap();
        let error = format!("{:#}", dir.mesh().unwrap_err());
        assert!(error.starts_with("--data-dir "), "{error}");
        assert!(error.contains("mesh.key does not hold"), "{error}");
        fs::write(dir.file("node.key"), "what").unwrap();
        let error = format!("{:#}", dir.node_seed().unwrap_err());
        assert!(error.starts_with("--data-dir "), "{error}");
        assert!(error.contains("node.key does not hold"), "{error}");
        fs::write(dir.file("peers.json"), "{").unwrap();
        assert!(dir.peers().is_empty());
    }

    #[test]
    fn the_newest_peers_are_kept() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let peer = |port: usize| format!("127.0.0.1:{}", port + 1).parse::<PeerAddress>().unwrap();
        let all: Vec<_> = (0..REMEMBERED_MAX + 3).map(peer).collect();
        dir.write_peers(&all).unwrap();
        assert_eq!(dir.peers(), all[3..]);
    }
}

//! Backups: everything that a node keeps, as it was at one moment, in a directory of their own; and
//! nodes that are made of a backup.
//!
//! A backup is old the moment it is written. A node that went on from it under its own name would
//! write entries, and give numbers, that it has written and given before, in another way: its log
//! would be forked, and nobody would follow it any more (`docs/numbering.md`, "Forks"). So what is
//! restored is a new node, which has what the old one had.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use mesh::Identity;
use serde::{Deserialize, Serialize};
use store::{FILE_NAME, Progress, Reader, Store, check};

use crate::{
    chance,
    clock::Clock,
    files::{
        DataDir,
        private::{copy_private, make_private_dir, read_json, sync_dir, write_json},
    },
};

/// Says what a backup is. Written last: without it a directory is none.
const MANIFEST: &str = "backup.json";
/// The key that clients need, wherever the node has it.
const CLIENTS_KEY: &str = "auth.key";
/// The form of backups that this version writes.
const FORM: u32 = 1;

/// The description of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    form: u32,
    /// Which version wrote it.
    version: String,
    /// When: RFC 3339, UTC.
    made_at: String,
    /// Whose it is.
    node_id: String,
    /// Of its mesh.
    mesh_id: Option<String>,
    /// Where the node had the key that clients need; `None`: it checked none, or none was there.
    key_file: Option<PathBuf>,
}

/// Writes a backup of the node in `dir` to `to`, which must not exist. It is whole or not there.
/// `progress` may give up by `false`.
pub(crate) fn write(
    dir: &DataDir,
    reader: &Reader,
    to: &Path,
    key_file: Option<&Path>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<()> {
    let shown = to.display();
    ensure!(
        fs::symlink_metadata(to).is_err(),
        "{shown} is there already: name a directory that is not"
    );
    let seed = dir.node_seed()?.context("this node has no key yet: start it once")?;
    let mut name = to.file_name().context("name a directory for the backup")?.to_owned();
    name.push(".partial");
    let partial = to.with_file_name(name);
    if let Some(above) = to.parent() {
        make_private_dir(above).with_context(|| format!("make {}", above.display()))?;
    }
    let make =
        || format!("make {}: remove it, if no backup is being written there", partial.display());
    // Without its parents: a directory that is there is somebody's.
    fs::DirBuilder::new().mode(0o700).create(&partial).with_context(make)?;
    let written = fill(dir, reader, &partial, key_file, progress).and_then(|()| {
        let manifest = Manifest {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: clawchat::timestamp(Clock::start().now().wall_ms),
            node_id: Identity::from_seed(&seed).node_id().to_string(),
            mesh_id: dir.mesh()?.map(|mesh| mesh.mesh_id().to_string()),
            key_file: key_file.map(Path::to_owned),
        };
        write_json(&partial.join(MANIFEST), &manifest)?;
        fs::rename(&partial, to).with_context(|| format!("name it {shown}"))?;
        Ok(sync_dir(to.parent().unwrap_or(Path::new(".")))?)
    });
    if written.is_err() {
        // It holds keys. If it stays, the next try says so.
        drop(fs::remove_dir_all(&partial));
    }
    written
}

/// Keys first: they change at a start only, and a start cannot be meanwhile.
fn fill(
    dir: &DataDir,
    reader: &Reader,
    to: &Path,
    key_file: Option<&Path>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<()> {
    for file in dir.kept()? {
        copy_private(&file, &to.join(file.file_name().unwrap_or_default()))?;
    }
    if let Some(file) = key_file.filter(|file| file.is_file()) {
        copy_private(file, &to.join(CLIENTS_KEY))?;
    }
    reader.copy_to(&to.join(FILE_NAME), progress)?;
    Ok(())
}

/// Under which name a restored node goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A new one.
    New,
    /// That of the node which the backup is of.
    Same,
}

/// The result of a restore.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) made_at: String,
    pub(crate) before: String,
    pub(crate) now: String,
    pub(crate) report: check::Report,
    /// The key that clients need, if the backup has it.
    pub(crate) clients_key: Option<PathBuf>,
}

/// Makes a node in `dir`, which must be empty or not there, of the backup in `from`.
pub(crate) fn restore(
    from: &Path,
    dir: &Path,
    name: Name,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored> {
    let manifest = manifest(from)?;
    let shown = dir.display();
    make_private_dir(dir).with_context(|| format!("--data-dir {shown}"))?;
    let mut there = fs::read_dir(dir).with_context(|| format!("--data-dir {shown}"))?;
    ensure!(
        there.next().is_none(),
        "--data-dir {shown} is not empty: a backup is restored into a directory of its own"
    );
    let target = DataDir::prepare(dir)?;
    let staged = target.path().join("restoring.partial");
    make_private_dir(&staged)?;
    let done = stage(from, &manifest, &staged, name, progress)
        .and_then(|restored| move_in(&staged, &target).map(|()| restored));
    if done.is_err() {
        // Keys are in it. If it stays, the directory is not empty, and says so.
        drop(fs::remove_dir_all(&staged));
    }
    let (now, report) = done?;
    let key = target.path().join(CLIENTS_KEY);
    Ok(Restored {
        made_at: manifest.made_at,
        before: manifest.node_id,
        now,
        report,
        clients_key: key.is_file().then_some(key),
    })
}

fn manifest(from: &Path) -> Result<Manifest> {
    let shown = from.display();
    let manifest: Option<Manifest> = read_json(&from.join(MANIFEST))?;
    let Some(manifest) = manifest else {
        bail!("{shown} is no backup, or one that was not finished: {MANIFEST} is missing");
    };
    ensure!(
        manifest.form <= FORM,
        "{shown} was written by clawmeshd {}, in a form that this version does not know: use that version",
        manifest.version
    );
    Ok(manifest)
}

/// The node as it will be, and which name it has.
fn stage(
    from: &Path,
    manifest: &Manifest,
    staged: &Path,
    name: Name,
    progress: &mut dyn FnMut(Progress),
) -> Result<(String, check::Report)> {
    let source = DataDir::existing(from)?;
    for file in source.kept()? {
        let name = file.file_name().unwrap_or_default();
        // Where the old node listened is nothing to the new one.
        if name != MANIFEST && name != "listen.json" {
            copy_private(&file, &staged.join(name))?;
        }
    }
    copy_store(&from.join(FILE_NAME), &staged.join(FILE_NAME))?;
    let report = check::check(staged, progress).context("the backup's store")?;
    if report.is_beyond_repair() {
        let first = report.findings.first().map(ToString::to_string).unwrap_or_default();
        bail!("the backup's store does not hold ({first}): use another backup");
    }
    let staged_dir = DataDir::existing(staged)?;
    let seed = staged_dir.node_seed()?.context("the backup has no node.key")?;
    let before = Identity::from_seed(&seed).node_id();
    ensure!(
        before.to_string() == manifest.node_id,
        "the backup's node.key is not the key of node {}",
        manifest.node_id
    );
    match name {
        Name::Same => Ok((before.to_string(), report)),
        Name::New => {
            let seed = chance::draw()?;
            let mut store = Store::open(staged)?;
            store.adopt(before)?;
            staged_dir.write_node_seed(&seed)?;
            Ok((Identity::from_seed(&seed).node_id().to_string(), report))
        }
    }
}

/// The store may be large, and is no secret that a buffer could give away.
fn copy_store(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        let mut read = fs::File::open(from)?;
        let mut options = fs::OpenOptions::new();
        let mut write = options.write(true).create_new(true).mode(0o600).open(to)?;
        std::io::copy(&mut read, &mut write)?;
        write.sync_all()
    };
    copy().with_context(|| format!("copy {}", from.display()))
}

/// The store first and the node's key last: a node that was cut in between does not start.
fn move_in(staged: &Path, target: &DataDir) -> Result<()> {
    let mut files = vec![staged.join(FILE_NAME)];
    let (last, others): (Vec<_>, Vec<_>) = DataDir::existing(staged)?
        .kept()?
        .into_iter()
        .partition(|file| file.file_name().is_some_and(|name| name == "node.key"));
    files.extend(others);
    files.extend(last);
    for file in files {
        let to = target.path().join(file.file_name().unwrap_or_default());
        fs::rename(&file, &to).with_context(|| format!("write {}", to.display()))?;
        sync_dir(target.path())?;
    }
    Ok(fs::remove_dir(staged)?)
}

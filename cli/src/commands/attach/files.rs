//! Files of hosts: read whole, and replaced whole, where symbolic links lead to.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::outcome::Failure;

/// A file that hosts keep keys in is nobody else's.
const OWN: u32 = 0o600;

fn failure(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::File { path, source }
}

/// Where a path leads, also if nothing is there yet.
///
/// # Errors
/// [`Failure::File`].
pub(super) fn resolved(path: &Path) -> Result<PathBuf, Failure> {
    match fs::canonicalize(path) {
        Ok(path) => return Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(failure(path)(source)),
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    if let Ok(to) = fs::read_link(path) {
        // A link to a file that is not there yet.
        return resolved(&folder.join(to));
    }
    // The folders that are there have one name, so that the file is found again by it.
    let there = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    let named = there.and_then(|(above, named)| Some(named.join(path.strip_prefix(above).ok()?)));
    Ok(named.unwrap_or_else(|| path.to_owned()))
}

/// The text of a file. `None`: there is no file.
///
/// # Errors
/// [`Failure::File`], also if it is no text.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failure(path)(source)),
    }
}

/// Replaces a file, or makes it. A reader finds the old text or the new one. Its mode and owner stay.
///
/// # Errors
/// [`Failure::File`].
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| failure(path)(source);
    let old = fs::metadata(path).ok();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.clawmesh-{}", std::process::id()));
    let written = (|| {
        // A link that somebody has laid there leads nowhere.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(OWN).open(&new)?;
        file.write_all(text.as_bytes())?;
        if let Some(old) = &old {
            file.set_permissions(Permissions::from_mode(old.mode()))?;
            // Another user's file, written by root, stays that user's.
            drop(chown(&new, Some(old.uid()), Some(old.gid())));
        }
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        // It is of no use, and the failure that counts is the one above.
        drop(fs::remove_file(&new));
    }
    written.map_err(failed)
}

/// Makes the folders of a file. Gives those that were not there, the outermost first.
///
/// # Errors
/// [`Failure::File`].
pub(super) fn make_folders(of: &Path) -> Result<Vec<PathBuf>, Failure> {
    let Some(folder) = of.parent() else { return Ok(Vec::new()) };
    let missing = missing_folders(of);
    fs::create_dir_all(folder).map_err(failure(folder))?;
    Ok(missing)
}

/// The folders of a file that are not there, the outermost first.
pub(super) fn missing_folders(of: &Path) -> Vec<PathBuf> {
    let above = of.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Takes a file away, and those of the folders that have nothing else in them.
///
/// # Errors
/// [`Failure::File`].
pub(super) fn remove(path: &Path, folders: &[PathBuf]) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(failure(path)(source));
        }
        Ok(()) | Err(_) => {}
    }
    // A folder with something in it stays: that is somebody's.
    folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    Ok(())
}

/// A copy that nobody else can read. One that is there already stays as it is.
///
/// # Errors
/// [`Failure::File`].
pub(super) fn back_up(text: &str, to: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(OWN).open(to);
    let mut file: File = match opened {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        opened => opened.map_err(failure(to))?,
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failure(to))
}

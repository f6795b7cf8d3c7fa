//! Files that their owner alone can read, each replaced in one step.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use anyhow::{Context, Result};
use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

/// Makes a directory and those above it; new ones are their owner's alone.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Copies a file of the size of a key; the copy is its owner's alone, also if the file was not.
pub(crate) fn copy_private(from: &Path, to: &Path) -> Result<()> {
    let content =
        Zeroizing::new(fs::read(from).with_context(|| format!("read {}", from.display()))?);
    replace(to, &content)
}

/// Makes what was done to the names in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)?.sync_all()
}

/// As hex digits; the bytes may be a secret.
pub(crate) fn hex(bytes: &[u8]) -> Zeroizing<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

/// The text of a file, which may be a secret; `None` if there is no such file.
pub(crate) fn read_secret(file: &Path) -> Result<Option<Zeroizing<String>>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", file.display())),
    }
}

pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    let Some(text) = read_secret(file)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).with_context(|| format!("read {}", file.display()))
}

pub(crate) fn write_json(file: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    replace(file, text.as_bytes())
}

/// Whether something was not written because there is no room, or there may not be more.
pub(crate) fn is_full(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(no_room)
}

fn no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Writes a file so that at any moment the old or the new content is there, whole: after a power
/// failure, too.
pub(crate) fn replace(file: &Path, content: &[u8]) -> Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    let write = || -> io::Result<()> {
        // Left by a crash; it may have other permissions than ours.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        out.write_all(content)?;
        out.sync_all()?;
        fs::rename(&new, file)?;
        sync_dir(file.parent().unwrap_or(Path::new(".")))
    };
    write().map_err(|error| {
        // Half a file is of no use to anybody, and takes room. If it stays, the next one replaces
        // it.
        drop(fs::remove_file(&new));
        let file = file.display();
        let what = match no_room(&error) {
            true => format!("write {file}: make room on its disk, then try again; it is as it was"),
            false => format!("write {file}"),
        };
        anyhow::Error::new(error).context(what)
    })
}

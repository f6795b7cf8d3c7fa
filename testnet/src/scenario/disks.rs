//! Disks of real daemons, and how they become full.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// How there is no room on a node's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Disk {
    /// No file of the node may have more than 4 KiB: by `prlimit`, for everybody
    #[default]
    Limit,
    /// Each node has a small file system of its own, which is filled up to the last byte: by `mount`, for root
    Tmpfs,
}

/// The size of such a file system: enough for some 20,000 messages.
const SIZE: &str = "size=64m";
/// The file that takes all room.
const FILLER: &str = "filler";
/// It is filled in pieces of this size, and then with smaller ones. Bytes.
const PIECES: [usize; 3] = [1 << 20, 4_096, 1];

/// Small file systems that are mounted. When this is dropped they are not any more, and their files lie
/// where they were mounted.
#[derive(Debug, Default)]
pub(super) struct Disks(Vec<PathBuf>);

impl Disks {
    /// Mounts a new one at `dir`, which is made.
    pub(super) fn mount(&mut self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(dir))?;
        self.0.push(dir.to_owned());
        Ok(())
    }
}

/// Takes all room that there is in the file system of `dir`.
pub(super) fn fill(dir: &Path) -> io::Result<()> {
    let mut filler = fs::File::create(dir.join(FILLER))?;
    for size in PIECES {
        let piece = vec![1; size];
        loop {
            match filler.write(&piece) {
                Ok(written) if written > 0 => {}
                Err(error) if error.kind() != io::ErrorKind::StorageFull => return Err(error),
                Ok(_) | Err(_) => break,
            }
        }
    }
    Ok(())
}

/// Gives it back.
pub(super) fn make_room(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(FILLER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The lasting files of a data directory: sockets are of a running process.
pub(super) fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

impl Drop for Disks {
    fn drop(&mut self) {
        for dir in &self.0 {
            let kept = dir.with_extension("kept");
            let keep = || -> io::Result<()> {
                make_room(dir)?;
                copy_files(dir, &kept)?;
                // A daemon that was just killed may still be about to close its files.
                run(Command::new("umount").arg("--lazy").arg(dir))?;
                fs::remove_dir(dir)?;
                fs::rename(&kept, dir)
            };
            // Else it stays mounted, with all that is in it, and can be found there.
            drop(keep());
        }
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_room_that_was_not_taken_is_no_error() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("store"), "rows").unwrap();
        fs::create_dir(from.join("within")).unwrap();
        copy_files(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("store")).unwrap(), "rows");
        assert!(!to.join("within").exists());
        make_room(&to).unwrap();
    }
}

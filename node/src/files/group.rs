//! A group of the system's users that may use a node's socket and key.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::private::make_private_dir;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    name: String,
    gid: u32,
}

/// Rights of a file that the group may read, and of a socket or directory that it may use.
const READ: u32 = 0o640;
const WRITE: u32 = 0o660;
const ENTER: u32 = 0o750;

impl Group {
    /// The group of this name, or of this number; `None`: the system has none.
    pub(crate) fn find(name: &str) -> io::Result<Option<Group>> {
        // The highest number means "as it is" to the system.
        if let Some(gid) = name.parse().ok().filter(|gid| *gid != u32::MAX) {
            return Ok(Some(Group { name: name.to_owned(), gid }));
        }
        let found = nix::unistd::Group::from_name(name).map_err(io::Error::from)?;
        Ok(found.map(|found| Group { name: name.to_owned(), gid: found.gid.as_raw() }))
    }

    /// Lets it read a file that was its owner's alone.
    pub(crate) fn share_file(&self, file: &Path) -> Result<()> {
        self.give(file, READ)
    }

    /// Lets it connect to a socket.
    pub(crate) fn share_socket(&self, socket: &Path) -> Result<()> {
        self.give(socket, WRITE)
    }

    /// Makes the directory of a shared file, if it is not there, so that the group can enter it. One that is there is left as
    /// it is: others' files may be in it.
    pub(crate) fn make_dir(&self, dir: &Path) -> Result<()> {
        let is_new = !dir.exists();
        make_private_dir(dir)?;
        if is_new {
            return self.give(dir, ENTER);
        }
        let found = fs::metadata(dir)?;
        let is_open =
            found.mode() & 0o001 != 0 || (found.mode() & 0o010 != 0 && found.gid() == self.gid);
        if !is_open {
            tracing::warn!(
                event = "group_shut_out",
                "members of the group {} cannot enter {}: `chgrp {} {}` and `chmod 750` it, or choose another directory",
                self.name,
                dir.display(),
                self.name,
                dir.display()
            );
        }
        Ok(())
    }

    fn give(&self, path: &Path, mode: u32) -> Result<()> {
        hand_over(path, self.gid).with_context(|| {
            format!(
                "--group {}: give it {} (the user who runs the node has to be a member: `usermod -aG {} USER`)",
                self.name,
                path.display(),
                self.name
            )
        })?;
        fs::set_permissions(path, Permissions::from_mode(mode))
            .with_context(|| format!("--group {}: {}", self.name, path.display()))
    }
}

/// Asks the system only where there is something to change: a service manager may forbid the call.
fn hand_over(path: &Path, gid: u32) -> io::Result<()> {
    if fs::metadata(path)?.gid() == gid { Ok(()) } else { chown(path, None, Some(gid)) }
}

/// A file that its group alone may read besides its owner: another one in its place is to be the same.
#[derive(Debug)]
pub(crate) struct Shared {
    file: PathBuf,
    gid: u32,
}

impl Shared {
    /// `None`: there is no such file, or it is its owner's alone, or everybody's.
    pub(crate) fn of(file: &Path) -> Option<Shared> {
        let found = fs::metadata(file).ok()?;
        (found.mode() & 0o077 == READ & 0o077)
            .then(|| Shared { file: file.to_owned(), gid: found.gid() })
    }

    /// The file that has taken its place is the group's, too.
    pub(crate) fn again(&self) -> io::Result<()> {
        hand_over(&self.file, self.gid)?;
        fs::set_permissions(&self.file, Permissions::from_mode(READ))
    }
}

/// A group that the user of the tests can give files to, and its number: another one than files have anyway, where that is possible.
#[cfg(test)]
pub(crate) fn own() -> (String, u32) {
    let say = |flag| {
        let output = std::process::Command::new("id").arg(flag).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let name = if say("-u") == "0" { "daemon".to_owned() } else { say("-gn") };
    let group = Group::find(&name).unwrap().unwrap();
    (name, group.gid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::api_key::ApiKey;

    fn rights(path: &Path) -> (u32, u32) {
        let found = fs::metadata(path).unwrap();
        (found.mode() & 0o777, found.gid())
    }

    #[test]
    fn a_key_that_a_group_reads_stays_so_when_it_is_rotated() {
        let (name, gid) = own();
        let group = Group::find(&name).unwrap().unwrap();
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("made");
        let file = dir.join("auth.key");
        group.make_dir(&dir).unwrap();
        assert_eq!(rights(&dir), (0o750, gid));
        ApiKey::make(&file).unwrap();
        assert_eq!(rights(&file).0, 0o600, "nobody has asked");
        group.share_file(&file).unwrap();
        assert_eq!(rights(&file), (0o640, gid));
        ApiKey::make(&file).unwrap();
        assert_eq!(rights(&file), (0o640, gid));
        // A file that everybody can read was a mistake, and its successor is none.
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        ApiKey::make(&file).unwrap();
        assert_eq!(rights(&file).0, 0o600);
    }

    #[test]
    fn groups_are_found_by_name_and_by_number() {
        let (name, gid) = own();
        assert_eq!(Group::find(&name).unwrap().map(|group| group.gid), Some(gid));
        assert_eq!(Group::find("4711").unwrap().map(|group| group.gid), Some(4711));
        assert_eq!(Group::find("no-such-group-here").unwrap(), None);
    }
}

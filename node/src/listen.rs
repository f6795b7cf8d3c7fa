//! Binding what clients connect to. Each error names the flag to change.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tokio::net::{TcpListener, UnixListener};

use crate::files::{group::Group, private::make_private_dir};

/// Binds `HOST:PORT` for `--flag`.
pub(crate) async fn tcp(flag: &str, at: &str) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(at).await.map_err(|error| {
        let why = if error.kind() == io::ErrorKind::AddrInUse {
            "the port is in use: stop what uses it, or choose another".to_owned()
        } else {
            format!("{error}: choose another")
        };
        let choice = format!("with --{flag} HOST:PORT, or switch it off with --no-{flag}");
        anyhow::anyhow!("--{flag} {at}: {why} {choice}")
    })?;
    let bound = listener.local_addr().with_context(|| format!("--{flag} {at}"))?;
    Ok((listener, bound))
}

/// A Unix socket's file: removed with this, unless somebody listens there. So drop the listener
/// first.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if std::os::unix::net::UnixStream::connect(&self.0).is_err() {
            // If it stays, the next start replaces it.
            drop(fs::remove_file(&self.0));
        }
    }
}

/// Binds a Unix socket at `path`, for its owner alone, or for a group, too. A file that nobody listens at is replaced.
pub(crate) async fn unix(
    flag: &str,
    path: &Path,
    group: Option<&Group>,
) -> Result<(UnixListener, SocketFile)> {
    let hint = || format!("--{flag} {}", path.display());
    let path = &std::path::absolute(path).with_context(hint)?;
    if !fits(path) {
        bail!("{}: the path is too long for a socket: choose a shorter one", hint());
    }
    if let Some(dir) = path.parent() {
        match group {
            Some(group) => group.make_dir(dir).with_context(hint)?,
            None => make_private_dir(dir).with_context(hint)?,
        }
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if tokio::net::UnixStream::connect(path).await.is_ok() {
                bail!(
                    "{}: another node listens there: stop it, choose another path, or give --no-{flag}",
                    hint()
                );
            }
            fs::remove_file(path).with_context(hint)?;
        }
        Ok(_) => bail!("{}: there is a file that is no socket: choose another path", hint()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(hint),
    }
    let listener = UnixListener::bind(path).with_context(hint)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).with_context(hint)?;
    if let Some(group) = group {
        group.share_socket(path)?;
    }
    Ok((listener, SocketFile(path.clone())))
}

/// Whether the system takes so long a path for a socket.
pub(crate) fn fits(path: &Path) -> bool {
    std::os::unix::net::SocketAddr::from_pathname(path).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::files::group::own;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("made/node.sock");
        let (listener, file) = unix("socket", &path, None).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let error = unix("socket", &path, None).await.unwrap_err().to_string();
        assert!(error.starts_with("--socket") && error.contains("--no-socket"), "{error}");
        drop(listener);
        // As after kill -9: the file is there, nobody listens.
        let (listener, newer) = unix("socket", &path, None).await.unwrap();
        drop(file);
        assert!(path.exists(), "the file of another is left alone");
        drop((listener, newer));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_group_may_use_the_socket_if_the_operator_wants_it() {
        let (name, gid) = own();
        let group = Group::find(&name).unwrap().unwrap();
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("made/node.sock");
        let _socket = unix("socket", &path, Some(&group)).await.unwrap();
        let rights = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.mode() & 0o777, found.gid())
        };
        assert_eq!(rights(&path), (0o660, gid));
        assert_eq!(rights(path.parent().unwrap()), (0o750, gid));
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("notes");
        fs::write(&path, "mine").unwrap();
        let error = unix("socket", &path, None).await.unwrap_err().to_string();
        assert!(error.contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let long = temp.path().join("x".repeat(120));
        let error = unix("socket", &long, None).await.unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }

    #[tokio::test]
    async fn a_busy_port_names_its_flag() {
        let (_first, at) = tcp("tcp", "127.0.0.1:0").await.unwrap();
        let error = tcp("http", &at.to_string()).await.unwrap_err().to_string();
        assert!(error.starts_with("--http ") && error.contains("--no-http"), "{error}");
    }
}

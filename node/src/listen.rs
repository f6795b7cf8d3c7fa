//! Binding what clients connect to. Each error names the flag to change.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tokio::net::{TcpListener, UnixListener};

use crate::files::make_private_dir;

/// Binds `HOST:PORT` for `--flag`.
pub(crate) async fn tcp(flag: &str, at: &str) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(at).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "the port is in use: stop what uses it, choose another with --{flag} HOST:PORT, \
                 or switch it off with --no-{flag}"
            ),
            io::ErrorKind::AddrNotAvailable => {
                format!("not an address of this machine: choose another with --{flag} HOST:PORT")
            }
            _ => error.to_string(),
        };
        anyhow::anyhow!("--{flag} {at}: {why}")
    })?;
    let bound = listener.local_addr().with_context(|| format!("--{flag} {at}"))?;
    Ok((listener, bound))
}

/// A Unix socket's file: it goes with its owner.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and file number: somebody else may have put another one there.
    file: (u64, u64),
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours {
            // If it stays, nobody listens there, and the next start replaces it.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Binds a Unix socket at `path`, for its owner alone. A file that nobody listens at is replaced.
pub(crate) async fn unix(flag: &str, path: &Path) -> Result<(UnixListener, SocketFile)> {
    let hint = || format!("--{flag} {}", path.display());
    let path = &std::path::absolute(path).with_context(hint)?;
    if !fits(path) {
        bail!("{}: the path is too long for a socket: choose a shorter one", hint());
    }
    if let Some(dir) = path.parent() {
        make_private_dir(dir).with_context(hint)?;
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
    let made = fs::symlink_metadata(path).with_context(hint)?;
    Ok((listener, SocketFile { path: path.clone(), file: (made.dev(), made.ino()) }))
}

/// Whether the system takes so long a path for a socket.
pub(crate) fn fits(path: &Path) -> bool {
    std::os::unix::net::SocketAddr::from_pathname(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("made/node.sock");
        let (listener, file) = unix("socket", &path).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let error = unix("socket", &path).await.unwrap_err().to_string();
        assert!(error.starts_with("--socket") && error.contains("--no-socket"), "{error}");
        drop(listener);
        // As after kill -9: the file is there, nobody listens.
        let (_listener, newer) = unix("socket", &path).await.unwrap();
        drop(file);
        assert!(path.exists(), "the file of another is left alone");
        drop(newer);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("notes");
        fs::write(&path, "mine").unwrap();
        let error = unix("socket", &path).await.unwrap_err().to_string();
        assert!(error.contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let long = temp.path().join("x".repeat(120));
        let error = unix("socket", &long).await.unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }

    #[tokio::test]
    async fn a_busy_port_names_its_flag() {
        let (_first, at) = tcp("tcp", "127.0.0.1:0").await.unwrap();
        let error = tcp("http", &at.to_string()).await.unwrap_err().to_string();
        assert!(error.starts_with("--http ") && error.contains("--no-http"), "{error}");
    }
}

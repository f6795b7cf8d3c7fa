//! Messages to a service manager (`sd_notify(3)`): that the node is ready, and that it stops.

use std::{ffi::OsStr, io, os::unix::net::UnixDatagram};

/// The variable that names the manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says `state` to the manager that started this process, if one did and wants to know.
pub(crate) fn tell(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(&socket, state) {
        // It waits until its own time is over, and says so.
        tracing::debug!(%error, state, "the service manager is not told");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let from = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
        let address = SocketAddr::from_abstract_name(name)?;
        return from.send_to_addr(state.as_bytes(), &address).map(drop);
    }
    from.send_to(state.as_bytes(), socket).map(drop)
}

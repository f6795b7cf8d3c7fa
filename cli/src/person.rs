//! Who calls: the same person at the same machine is the same agent from one command to the next.

use client::options::drawn_from;
use protocol::value::{DRAWN_BYTES, RegisterOptions};
use rustix::process::{getsid, getuid};
use rustix::system::uname;

/// An agent stays for so long after a command: time to read the answer and to type, or paste, the next one. Two minutes, as a
/// node keeps the seats of an agent whose connection was lost.
const LINGER_SECS: u64 = 120;

/// The wishes with which commands register: to outlive the command, and to be who they were before.
pub(crate) fn wishes(name: Option<&str>) -> RegisterOptions {
    RegisterOptions { linger_secs: Some(LINGER_SECS), draw: Some(part(name)) }
}

/// The part of the agent's id that tells one person from another: user and host, and the name that they go by. Without a name,
/// the terminal session: whoever works in two windows is two, as they cannot be told apart by `cli`.
fn part(name: Option<&str>) -> [u8; DRAWN_BYTES] {
    let user = getuid().as_raw().to_string();
    let host = uname();
    let host = host.nodename().to_string_lossy();
    match name {
        Some(name) => drawn_from(&[&user, &host, "name", name]),
        None => {
            // Without a session every call is its own: it cannot be told from others.
            let session = getsid(None).unwrap_or_else(|_| rustix::process::getpid());
            drawn_from(&[&user, &host, "session", &session.as_raw_nonzero().to_string()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_person_and_no_name_is_this_session() {
        assert_eq!(part(Some("ann")), part(Some("ann")));
        assert_eq!(part(None), part(None));
        let all = [part(None), part(Some("ann")), part(Some("cli"))];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        assert_eq!(wishes(None).linger_secs, Some(120));
    }
}

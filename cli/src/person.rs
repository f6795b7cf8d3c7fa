//! Who calls: the same person at the same machine is the same agent from one command to the next.

use client::options::drawn_from;
use protocol::value::{DRAWN_BYTES, RegisterOptions};
use rustix::process::{getpid, getppid, getuid};
use rustix::system::uname;

/// An agent stays for so long after a command: time to read the answer and to type, or paste, the next one. Two minutes, as a
/// node keeps the seats of an agent whose connection was lost.
const LINGER_SECS: u64 = 120;

/// The wishes with which commands register: to outlive the command, and to be who they were before.
pub(crate) fn wishes(name: Option<&str>) -> RegisterOptions {
    RegisterOptions {
        linger_secs: Some(LINGER_SECS),
        draw: Some(part(name)),
        ..RegisterOptions::default()
    }
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
            // Without a session it is the program that calls: a shell or a script. Without one every call is its own.
            let caller = || getppid().unwrap_or_else(getpid).as_raw_nonzero().get();
            let session = session().unwrap_or_else(caller);
            drawn_from(&[&user, &host, "session", &session.to_string()])
        }
    }
}

/// The terminal session of this process. None where its leader is outside of the container that this process runs in, as it is
/// after `docker exec`: the kernel then calls it 0, and `rustix::process::getsid` takes that for a process, and panics.
#[cfg(target_os = "linux")]
fn session() -> Option<i32> {
    session_of(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The terminal session of this process.
#[cfg(not(target_os = "linux"))]
fn session() -> Option<i32> {
    rustix::process::getsid(None).ok().map(|session| session.as_raw_nonzero().get())
}

/// The session in a line of `/proc/PID/stat` (proc(5)): process, name in brackets, state, parent, group, session. A name may have
/// spaces and brackets of its own.
#[cfg(target_os = "linux")]
fn session_of(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let session = after_name.split_whitespace().nth(3)?.parse().ok()?;
    (session != 0).then_some(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_session_that_began_outside_of_the_container_is_none() {
        assert_eq!(session_of("812 (a) b (c) S 1 812 77 34816 812 4194304"), Some(77));
        assert_eq!(session_of("1 (clawmesh) S 0 0 0 0 -1 4194304"), None);
        assert_eq!(session_of("no such file"), None);
        let raw = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(session(), session_of(&raw));
    }

    #[test]
    fn one_name_is_one_person_and_no_name_is_this_session() {
        assert_eq!(part(Some("ann")), part(Some("ann")));
        assert_eq!(part(None), part(None));
        let all = [part(None), part(Some("ann")), part(Some("cli"))];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        assert_eq!(wishes(None).linger_secs, Some(120));
    }
}

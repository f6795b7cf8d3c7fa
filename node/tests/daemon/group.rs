//! A group of the system that may use a node's socket and key.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::Path,
    process::{Command, Stdio},
};

use crate::harness::{Daemon, clawmeshd, refused, start, temp};

/// A group that the user of the tests can give files to, and its number: another one than files have anyway, where that is possible.
fn own() -> (String, u32) {
    let say = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    if say("id", &["-u"]) == "0" {
        let line = say("getent", &["group", "daemon"]);
        return ("daemon".to_owned(), line.split(':').nth(2).unwrap().parse().unwrap());
    }
    (say("id", &["-gn"]), say("id", &["-g"]).parse().unwrap())
}

fn rights(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.mode() & 0o777, found.gid())
}

#[test]
fn a_group_uses_socket_and_key_and_nothing_else() {
    let dir = temp();
    let (data, run) = (dir.path().join("data"), dir.path().join("run"));
    let (socket, key) = (run.join("agents.sock"), run.join("auth.key"));
    let begin = |group: &[&str]| -> Daemon {
        let all = [
            &["up", "--data-dir", data.to_str().unwrap(), "--json", "--no-tcp", "--no-http"],
            &["--listen", "127.0.0.1:0", "--socket", socket.to_str().unwrap()][..],
            &["--key-file", key.to_str().unwrap()],
            group,
        ];
        start(&mut clawmeshd(&all.concat()), Stdio::inherit())
    };
    let (name, gid) = own();
    let node = begin(&["--group", &name]);
    assert_eq!(rights(&run), (0o750, gid));
    assert_eq!((rights(&socket), rights(&key)), ((0o660, gid), (0o640, gid)));
    UnixStream::connect(&socket).unwrap();
    assert_eq!(rights(&data).0, 0o700, "it is the node's alone");
    let old = fs::read_to_string(&key).unwrap();
    let mut rotate = clawmeshd(&["key", "rotate", "--yes", "--data-dir", data.to_str().unwrap()]);
    let rotated = rotate.output().unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
    assert_ne!(fs::read_to_string(&key).unwrap(), old);
    assert_eq!(rights(&key), (0o640, gid), "the group has the new one");
    node.stop();
    // Nobody asks for it any more: the socket is its owner's alone. The key is the operator's file, and its rights a warning.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let node = begin(&[]);
    assert_eq!((rights(&socket).0, rights(&key).0), (0o600, 0o600));
    drop(node);
}

#[test]
fn a_group_that_is_not_there_is_named() {
    let dir = temp();
    let text = refused(dir.path(), &["--no-auth", "--group", "no-such-group-here"]);
    assert!(text.contains("--group no-such-group-here") && text.contains("groupadd"), "{text}");
}

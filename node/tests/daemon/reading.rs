//! Who reads public rooms over HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::harness::{Agent, Daemon, refused, temp, up_keyed};

/// The status of a request to the node, at its port of this address.
fn read(node: &Daemon, ip: &str, path: &str, header: &str) -> u16 {
    let port = node.text("http").rsplit(':').next().unwrap();
    let mut socket = TcpStream::connect(format!("{ip}:{port}")).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nhost: {ip}\r\nconnection: close\r\n{header}\r\n")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn keyed(more: &[&str]) -> (tempfile::TempDir, Daemon, String) {
    let dir = temp();
    let file = dir.path().join("auth.key");
    let file = file.to_str().unwrap();
    let node = up_keyed(&dir.path().join("data"), &[&["--key-file", file], more].concat());
    let key = std::fs::read_to_string(file).unwrap().trim().to_owned();
    assert!(Agent::register(node.text("tcp"), &key).is_ok());
    (dir, node, key)
}

#[test]
fn beyond_loopback_public_rooms_are_read_with_a_key() {
    let rooms = "/api/rooms";
    let beyond = ["--http", "0.0.0.0:0"];
    let (_dir, node, key) = keyed(&beyond);
    let header = format!("X-ClawChat-Key: {key}\r\n");
    assert_eq!(read(&node, "127.0.0.1", rooms, ""), 401, "by any way: a proxy may be before it");
    assert_eq!(read(&node, "127.0.0.1", rooms, &header), 200);
    assert_eq!(read(&node, "127.0.0.1", "/api/rooms/lobby/history", ""), 401);
    for open in ["/api/status", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(read(&node, "127.0.0.1", open, ""), 200, "{open}");
    }
    assert_eq!(node.status()["read_by_all_at"], serde_json::Value::Null);
    let (_dir, node, _) = keyed(&[&beyond[..], &["--http-read", "open"]].concat());
    assert_eq!(read(&node, "127.0.0.1", rooms, ""), 200);
    assert_eq!(node.status()["read_by_all_at"], node.ready["http"], "doctor has it from there");
    // On loopback it is as with ClawChat, and can be closed.
    let (_dir, node, _) = keyed(&[]);
    assert_eq!(read(&node, "127.0.0.1", rooms, ""), 200);
    let (_dir, node, key) = keyed(&["--http-read", "key"]);
    assert_eq!(read(&node, "127.0.0.1", rooms, ""), 401);
    let bearer = format!("Authorization: Bearer {key}\r\n");
    assert_eq!(read(&node, "127.0.0.1", rooms, &bearer), 200);
    for (flags, part) in [
        (["--no-auth", "--http-read", "key"], "no key is checked"),
        (["--no-auth", "--http-read", "some"], "write key or open"),
    ] {
        let text = refused(temp().path(), &flags);
        assert!(text.contains("--http-read") && text.contains(part), "{text}");
    }
}

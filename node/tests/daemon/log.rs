//! The log, as programs read it.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::harness::{DEADLINE, clawmeshd, ended, refused, temp, up_arguments};

#[test]
fn a_log_of_objects_has_names_for_warnings() {
    let dir = temp();
    std::fs::write(dir.path().join("peers.json"), "{").unwrap();
    let arguments = ["--no-auth", "--log-format", "json"];
    let mut child = clawmeshd(&up_arguments(dir.path().to_str().unwrap(), &arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(ended(&mut child).code(), Some(0));
    let mut log = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut log).unwrap();
    let lines: Vec<Value> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    for line in &lines {
        let texts = ["timestamp", "level", "target", "message"];
        assert!(texts.iter().all(|it| line[it].is_string()), "{line}");
    }
    let warned = lines.iter().find(|it| it["level"] == "WARN").expect("peers.json is no list");
    assert_eq!(warned["event"], "peers_unreadable");
    assert!(warned["message"].as_str().unwrap().starts_with("starting without known peers"));
    assert!(!log.contains(ready["ticket"].as_str().unwrap()), "a ticket is a secret");
    let why = refused(dir.path(), &["--no-auth", "--log-format", "xml"]);
    assert!(why.contains("--log-format xml: write text or json"), "{why}");
}

#[test]
fn a_service_manager_is_told() {
    let dir = temp();
    let socket = dir.path().join("notify.sock");
    let manager = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(DEADLINE)).unwrap();
    let data = dir.path().join("data");
    let mut child = clawmeshd(&up_arguments(data.to_str().unwrap(), &["--no-auth"]))
        .env("NOTIFY_SOCKET", &socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = [0; 64];
    let mut next = || {
        let length = manager.recv(&mut told).unwrap();
        String::from_utf8_lossy(&told[..length]).into_owned()
    };
    assert_eq!(next(), "READY=1");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(ended(&mut child).code(), Some(0));
}

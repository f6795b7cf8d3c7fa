//! The log, as programs read it.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Stdio,
};

use serde_json::Value;

use crate::harness::{DEADLINE, clawmeshd, ended, refused, temp, up_arguments};

/// The first line of a daemon that starts and is ended, and its log of objects.
fn objects(dir: &Path, more: &[&str]) -> (Value, String) {
    let arguments = [&["--no-auth", "--log-format", "json"], more].concat();
    let mut child = clawmeshd(&up_arguments(dir.to_str().unwrap(), &arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(ended(&mut child).code(), Some(0));
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    (serde_json::from_str(&ready).unwrap(), log)
}

#[test]
fn a_log_of_objects_has_names_for_warnings() {
    let dir = temp();
    std::fs::write(dir.path().join("peers.json"), "{").unwrap();
    let (ready, log) = objects(dir.path(), &[]);
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
fn a_level_that_does_not_exist_is_refused_and_a_level_is_that_of_this_program() {
    let dir = temp();
    let why = refused(dir.path(), &["--no-auth", "--log", "inof"]);
    assert!(why.contains("--log inof") && why.contains("info, debug"), "{why}");
    for (filter, theirs) in [("debug", false), ("debug,libp2p=debug", true)] {
        let (_, log) = objects(dir.path(), &["--log", filter]);
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let debug: Vec<String> = lines
            .filter(|line| line["level"] == "DEBUG")
            .map(|line| line["target"].as_str().unwrap().to_owned())
            .collect();
        let of_libp2p = debug.iter().any(|target| target.starts_with("libp2p"));
        assert_eq!(of_libp2p, theirs, "{filter}: {debug:?}");
    }
}

#[test]
fn all_ports_that_are_taken_are_named_at_once() {
    let dir = temp();
    let taken = ["tcp", "http", "listen"].map(|flag| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        (flag, listener.local_addr().unwrap().to_string(), listener)
    });
    let mut arguments =
        vec!["up".to_owned(), "--data-dir".to_owned(), dir.path().display().to_string()];
    arguments.extend(["--no-auth", "--no-socket"].map(String::from));
    for (flag, at, _) in &taken {
        arguments.extend([format!("--{flag}"), at.clone()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = clawmeshd(&arguments).output().unwrap();
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for (flag, at, _) in &taken {
        assert!(why.contains(&format!("--{flag} {at}")), "no --{flag}: {why}");
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = clawmeshd(&["completions", shell]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for word in ["rotate-secret", "no-discovery", "invite"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    let dir = temp();
    let pages = dir.path().join("man");
    assert!(clawmeshd(&["man", pages.to_str().unwrap()]).output().unwrap().status.success());
    for page in ["clawmeshd", "clawmeshd-up", "clawmeshd-keys-mint"] {
        let text = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
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

//! Nodes of several machines: which of them meet when the one that they joined through is gone, and
//! what two can do that have only a third in common.

use std::net::UdpSocket;

use crate::harness::{Agent, Daemon, temp, until, up};
use crate::members::{everybody_has, state};

/// An address of this machine that is not loopback. `None`: it has no network.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("198.51.100.77:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then(|| ip.to_string())
}

fn listens(node: &Daemon) -> Vec<String> {
    let listen = node.ready["listen"].as_array().unwrap();
    listen.iter().map(|at| at.as_str().unwrap().to_owned()).collect()
}

fn only_through(node: &Daemon) -> Option<String> {
    node.status()["only_through"].as_str().map(str::to_owned)
}

fn says(node: &Daemon, part: &str) -> bool {
    let text = crate::members::command(node, &["status"]).stdout;
    String::from_utf8(text).unwrap().contains(part)
}

#[test]
fn nodes_that_joined_from_elsewhere_meet_without_the_one_that_they_joined_through() {
    let Some(ip) = own_address() else {
        println!("skipped: this machine has no address but loopback");
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &["--listen", &format!("{ip}:0")]);
    let join = first.text("ticket").to_owned();
    let auto = ["--join", &join, "--listen", "auto:0"];
    let (second, third) = (up(dirs[1].path(), &auto), up(dirs[2].path(), &auto));
    for node in [&second, &third] {
        let at = listens(node);
        assert_eq!(at.len(), 2, "{at:?}");
        assert!(at.iter().any(|at| at.starts_with("127.0.0.1:")), "{at:?}");
        assert!(at.iter().any(|at| at.starts_with(&ip)), "{at:?}");
    }
    let (two, three) = (second.text("node_id").to_owned(), third.text("node_id").to_owned());
    until("they meet", || state(&second, &three) == "connected");
    until("both ways", || state(&third, &two) == "connected");
    first.kill();
    second.stop();
    // The ticket is remembered: nobody gives it again.
    let second = up(dirs[1].path(), &["--listen", "auto:0"]);
    assert!(listens(&second).iter().any(|at| at.starts_with(&ip)), "{:?}", listens(&second));
    until("they meet without the first", || state(&second, &three) == "connected");
    Agent::open(&second).say("without the first");
    everybody_has(&[&third], "without the first");
}

#[test]
fn a_node_that_only_one_other_reaches_is_warned() {
    let Some(ip) = own_address() else {
        println!("skipped: this machine has no address but loopback");
        return;
    };
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &["--name", "first", "--listen", &format!("{ip}:0")]);
    let join = first.text("ticket").to_owned();
    let second = up(dirs[1].path(), &["--join", &join]);
    until("it knows", || only_through(&second).as_deref() == Some("first"));
    let warning = "reached only through first: if that goes, you are alone";
    assert!(says(&second, warning));
    second.stop();
    let second = up(dirs[1].path(), &["--listen", "auto:0"]);
    until("it is connected", || state(&second, first.text("node_id")) == "connected");
    assert_eq!(only_through(&second), None);
    assert!(!says(&second, "reached only through"));
}

/// There are no relays: what is said goes through the third node, and without it each is alone.
#[test]
fn two_nodes_with_only_a_third_in_common_talk_through_it_and_go_on_alone_without_it() {
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &["--name", "first"]);
    let at = listens(&first)[0].clone();
    let alone = ["--no-discovery", "--join", first.text("ticket")];
    let (second, third) = (up(dirs[1].path(), &alone), up(dirs[2].path(), &alone));
    let three = third.text("node_id").to_owned();
    until("they hear each other", || state(&second, &three) == "heard");
    assert_eq!(only_through(&second).as_deref(), Some("first"));
    assert_eq!(only_through(&first), None);
    Agent::open(&second).say("through the first");
    everybody_has(&[&first, &third], "through the first");
    first.kill();
    until("it is gone", || state(&second, &three) == "away");
    Agent::open(&second).say("from the second, alone");
    Agent::open(&third).say("from the third, alone");
    let has = |node: &Daemon, said: &str| {
        Agent::open(node).lobby().iter().any(|(_, content)| content == said)
    };
    assert!(!has(&third, "from the second, alone"), "nobody carries it");
    let first = up(dirs[0].path(), &["--name", "first", "--listen", &at]);
    for said in ["from the second, alone", "from the third, alone"] {
        everybody_has(&[&first, &second, &third], said);
    }
}

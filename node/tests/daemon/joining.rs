//! A start says the fate of it: joined, or exactly why not.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::Stdio,
};

use mesh::{
    LinkSecret, MeshSecret,
    name::id::{MeshId, NodeId, parse_hex},
};
use node::ticket::Ticket;

use crate::harness::{clawmeshd, temp, until, up, up_arguments};
use crate::members::command;

/// A node for people: all that it says until it is stopped, which is when it has said this.
fn said(dir: &Path, more: &[&str], part: &str) -> String {
    let mut arguments = up_arguments(dir.to_str().unwrap(), &[&["--no-auth"], more].concat());
    arguments.retain(|it| *it != "--json");
    let mut child =
        clawmeshd(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains(part) && lines.read_line(&mut text).unwrap() > 0 {}
    child.kill().unwrap();
    child.wait().unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(text.contains(part), "{text}{log}");
    assert!(log.contains(part), "it is in the log, too: {log}");
    text
}

/// The same ticket, which leads to other places.
fn leading_to(ticket: &str, at: &str) -> String {
    ticket.parse::<Ticket>().unwrap().at(vec![at.parse().unwrap()]).to_text()
}

#[test]
fn a_start_says_which_mesh_it_founded_or_joined_and_through_whom() {
    let dirs = [temp(), temp(), temp()];
    let text = said(dirs[0].path(), &["--name", "first"], "founded mesh ");
    assert!(text.contains("is ready"), "{text}");
    let first = up(dirs[0].path(), &["--name", "first"]);
    let join = first.text("ticket").to_owned();
    let part = format!("joined mesh {} through first (2 members)", first.text("mesh_id"));
    said(dirs[1].path(), &["--join", &join], &part);
    // The second is a member, though it is away.
    let part = format!("joined mesh {} through first (3 members)", first.text("mesh_id"));
    said(dirs[2].path(), &["--join", &join], &part);
}

#[test]
fn a_start_that_does_not_join_says_exactly_why() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let join = first.text("ticket").to_owned();
    let refused = |ticket: &str, part: &str| {
        let dir = temp();
        let text = said(dir.path(), &["--join", ticket], part);
        assert!(text.contains("not joined yet: "), "{text}");
        assert!(!text.contains("joined mesh"), "{text}");
    };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    refused(&leading_to(&join, &closed), &format!("{closed}: connection refused"));
    refused(&leading_to(&join, "no-such-host.invalid:1"), "name not found");
    // The right place, and the secret of another mesh.
    let ticket: Ticket = join.parse().unwrap();
    let founder = NodeId(parse_hex(first.text("node_id")).unwrap());
    let at = ticket.peers().next().unwrap().address;
    let wrong = MeshSecret::new([7; 32], founder);
    refused(&Ticket::new(wrong, founder, vec![at]).to_text(), "does not know our mesh's secret");
    // Another node than the one that printed the ticket.
    let second = up(dirs[1].path(), &["--join", &join]);
    second.until_connected();
    let at = second.ready["listen"][0].as_str().unwrap();
    refused(&leading_to(&join, at), "another node answered");
    // One from before the secret changed; and one that claims a change which never was.
    assert!(command(&first, &["rotate-secret"]).status.success());
    until("both have it", || {
        let text = command(&first, &["invite"]).stdout;
        String::from_utf8(text).unwrap().trim() != join
    });
    refused(&join, "secret has changed");
    let mesh = MeshId(parse_hex(first.text("mesh_id")).unwrap());
    let never = MeshSecret::renewed(mesh, founder, LinkSecret::new(9, [9; 32]));
    let at = ticket.peers().next().unwrap().address;
    refused(&Ticket::new(never, founder, vec![at]).to_text(), "does not know our mesh's secret");
}

//! A node that is told to stop while clients send as fast as they can.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde_json::{Value, json};

use crate::harness::{Agent, Daemon, ended, temp, until, up};

const CLIENTS: usize = 4;
const SENDS: usize = 600;

/// Sends all at once, and reads answers until the node hangs up: those to what was said, by
/// content.
fn say_much(at: &str, client: usize, answered: &AtomicUsize) -> BTreeMap<String, Value> {
    let stream = TcpStream::connect(at).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let name = format!("client {client}");
    let content = |n: usize| format!("{n} of {name}");
    let ask = |id: &str, kind: &str, payload: Value| {
        format!("{}\n", json!({"id": id, "type": kind, "payload": payload}))
    };
    let register = json!({"key": "", "name": name, "protocol_version": 1});
    let mut lines =
        ask("r", "register", register) + &ask("j", "join_room", json!({"room_id": "lobby"}));
    for n in 0..SENDS {
        lines += &ask(
            &n.to_string(),
            "send_message",
            json!({"room_id": "lobby", "content": content(n)}),
        );
    }
    thread::scope(|scope| {
        // The node may hang up in the middle.
        scope.spawn(move || drop(writer.write_all(lines.as_bytes())));
        let mut answers = BTreeMap::new();
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            let frame: Value = serde_json::from_str(&line).unwrap();
            if let Some(n) = frame["reply_to"].as_str().and_then(|it| it.parse::<usize>().ok()) {
                answered.fetch_add(1, Ordering::SeqCst);
                answers.insert(content(n), frame);
            }
        }
        answers
    })
}

fn all(agent: &mut Agent) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut since = 0;
    loop {
        let page = json!({"room_id": "lobby", "since_seq": since, "limit": 500});
        let page = agent.call("get_history", page).unwrap();
        let messages = page["messages"].as_array().unwrap();
        let Some(last) = messages.last() else { return all };
        since = last["seq"].as_u64().unwrap();
        all.extend(messages.iter().map(|it| it["content"].as_str().unwrap().to_owned()));
    }
}

fn stops_under_load(stops: &Daemon) -> Vec<(String, Value)> {
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let answered = &answered;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || say_much(stops.text("tcp"), client, answered)))
            .collect();
        until("there is load", || answered.load(Ordering::SeqCst) >= 100);
        stops.signal("-TERM");
        clients.into_iter().flat_map(|it| it.join().unwrap()).collect()
    })
}

/// 16 of 15,906 sends were answered with "overloaded; try again", and were there.
#[test]
fn what_a_node_that_stops_refuses_is_not_there() {
    let (first, second) = (temp(), temp());
    let numbers = up(first.path(), &[]);
    Agent::open(&numbers).say("this node numbers the lobby");
    let mut follower = up(second.path(), &["--join", numbers.text("ticket")]);
    numbers.until_connected();
    let answers = stops_under_load(&follower);
    assert_eq!(ended(&mut follower.child).code(), Some(0));
    // What it had not passed on comes with it.
    let follower = up(second.path(), &["--join", numbers.text("ticket")]);
    follower.until_connected();
    let there = all(&mut Agent::open(&follower));
    let mut said = 0;
    for (content, answer) in &answers {
        if answer["type"] == "error" {
            let unknown = answer["payload"]["mesh"]["reason"] == "unknown";
            assert!(unknown || !there.contains(content), "{answer}, and it is there");
        } else {
            assert!(there.contains(content), "{answer}, and it is not there");
            said += 1;
        }
    }
    assert!(said > 0 && said < CLIENTS * SENDS, "{said}: it did not stop under load");
}

//! Teams at two nodes: made and ended at one, seen, written and worked in at the other, by programs and agents of all dialects.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{
    goclaw::{Recorder, agent, come, keyed, mint},
    harness::{Agent, Daemon, temp, until},
};

/// Tasks that two claim at the same moment.
const CLAIMED: usize = 100;

/// The names of the rooms that ClawTank lists without a key.
fn rooms_of_tank(node: &Daemon) -> Vec<String> {
    let at = node.text("http").trim_start_matches("http://");
    let mut io = TcpStream::connect(at).unwrap();
    let request = format!(
        "GET /api/rooms HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\naccept: application/vnd.clawtank+json\r\n\r\n"
    );
    io.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    io.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let rooms = body["rooms"].as_array().unwrap().iter();
    rooms.map(|room| room["name"].as_str().unwrap().to_owned()).collect()
}

fn has_room(agent: &mut Agent, name: &str) -> bool {
    let rooms = agent.call("list_rooms", json!({})).unwrap();
    rooms["rooms"].as_array().unwrap().iter().any(|room| room["name"] == name)
}

fn team(client: &mut Recorder, settings: Value) -> Value {
    let params = json!({"name": "herd", "lead": "bob", "settings": settings});
    client.gets("teams.create", &params)["team"]["id"].clone()
}

#[test]
fn a_team_that_is_made_at_one_node_is_there_at_the_other_until_it_is_deleted() {
    let dirs = [temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let (people, agents) = (mint(&first, &["--scopes", "admin"]), mint(&first, &[]));
    let mut bob = agent(&second, &agents, "bob");
    let (mut ada, mut eve) = (come(&first, &people, "ada"), come(&second, &people, "eve"));
    until("Bob is known where Ada is", || {
        let list = ada.gets("agents.list", &json!({}));
        list["agents"].as_array().unwrap().iter().any(|row| row["id"] == "bob")
    });
    let id = team(&mut ada, json!({"visibility": "public"}));
    until("agents of ClawChat list it there", || has_room(&mut bob, "herd"));
    until("so does ClawTank", || rooms_of_tank(&second).iter().any(|name| name == "herd"));
    let again = json!({"name": "herd", "lead": "bob", "settings": {"visibility": "public"}});
    assert_eq!(eve.refused("teams.create", &again)["code"], "ALREADY_EXISTS");

    // Its files.
    let named = |path: &str| json!({"team_id": id, "file_name": path});
    let write = |path: &str, content: &str| {
        let mut write = named(path);
        write["content"] = json!(content);
        write
    };
    ada.gets("teams.workspace.write", &write("notes/a.md", "one"));
    let mut read = Value::Null;
    until("it is read there", || {
        let id = eve.begin("teams.workspace.read", &named("notes/a.md"));
        read = eve.answer(&id, "teams.workspace.read").unwrap_or_default();
        !read.is_null()
    });
    assert_eq!(read["content"], "one");
    let outside = ada.refused("teams.workspace.write", &write("../x", "x"));
    assert_eq!(outside["code"], "INVALID_REQUEST", "{outside}");
    let most = "y".repeat(256 * 1024);
    ada.gets("teams.workspace.write", &write("most", &most));
    let more = ada.refused("teams.workspace.write", &write("more", &format!("{most}y")));
    assert_eq!(more["code"], "INVALID_REQUEST", "{more}");

    bob.call("join_room", json!({"room_id": id})).unwrap();
    ada.gets("teams.delete", &json!({"teamId": id}));
    for client in [&mut ada, &mut eve] {
        until("it is nowhere", || {
            let asked = client.begin("teams.get", &json!({"teamId": id}));
            client.answer(&asked, "").is_err_and(|error| error["code"] == "NOT_FOUND")
        });
    }
    until("Bob does not see it any more", || !has_room(&mut bob, "herd"));
}

#[test]
fn a_private_team_with_an_agent_of_another_key_is_that_agents_and_nobody_elses() {
    let dirs = [temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let keys = [mint(&first, &["--scopes", "admin"]), mint(&first, &[]), mint(&first, &[])];
    let mut bob = agent(&second, &keys[1], "bob");
    let mut mallory = agent(&second, &keys[2], "mallory");
    let mut ada = come(&first, &keys[0], "ada");
    until("Bob is known where Ada is", || {
        let list = ada.gets("agents.list", &json!({}));
        list["agents"].as_array().unwrap().iter().any(|row| row["id"] == "bob")
    });
    let id = team(&mut ada, json!({"visibility": "private"}));
    let said = json!({"room_id": id, "content": "here I am"});
    until("Bob writes in it", || bob.call("send_message", said.clone()).is_ok());
    let page = json!({"room_id": id, "since_seq": 0});
    let read = bob.call("get_history", page.clone()).unwrap();
    assert!(read.to_string().contains("here I am"), "{read}");
    for (call, payload) in [("send_message", said), ("get_history", page)] {
        let code = mallory.call(call, payload).unwrap_err();
        assert!(["room_not_found", "access_denied"].contains(&&*code), "{call}: {code}");
    }
    assert!(!has_room(&mut mallory, "herd"));
}

#[test]
fn of_a_person_and_an_agent_that_claim_at_the_same_moment_at_two_nodes_one_has_the_task() {
    let dirs = [temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let agents = mint(&first, &[]);
    let (mut bob, _carl) = (agent(&second, &agents, "bob"), agent(&first, &agents, "carl"));
    // The node's own key may say as much as it likes.
    let own = std::fs::read_to_string(dirs[0].path().join("auth.key")).unwrap();
    let mut ada = come(&first, own.trim(), "ada");
    bob.call("join_room", json!({"room_id": "lobby"})).unwrap();
    let mut won = [0, 0];
    for nth in 0..CLAIMED {
        let made = json!({"teamId": "lobby", "subject": format!("task {nth}")});
        let task = ada.gets("teams.tasks.create", &made)["id"].clone();
        let get = json!({"room_id": "lobby", "task_id": task});
        until("the task is at the other node", || bob.call("get_task", get.clone()).is_ok());
        let params = json!({"teamId": "lobby", "taskId": task, "agentId": "carl"});
        let asked = ada.begin("teams.tasks.assign", &params);
        let claim = json!({"task_id": task, "assignee": "bob", "if_assignee": null});
        let claimed = bob.call("update_task", claim).is_ok();
        let assigned = ada.answer(&asked, "teams.tasks.assign").is_ok();
        assert!(claimed != assigned, "{nth}: {claimed} {assigned}");
        let holder = if claimed { "bob" } else { "carl" };
        let here = ada.gets("teams.tasks.get", &json!({"teamId": "lobby", "taskId": task}));
        assert_eq!(here["task"]["owner_agent_key"], holder, "{here}");
        until("both nodes say the same", || {
            bob.call("get_task", get.clone()).unwrap()["task"]["assignee"] == holder
        });
        won[usize::from(claimed)] += 1;
    }
    assert_eq!(won.iter().sum::<usize>(), CLAIMED);
}

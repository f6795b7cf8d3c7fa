//! People at two nodes, by GoClaw: what happens at one is told at the other, whatever dialect it happens in.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{
    goclaw::{Recorder, agent, come, heard, keyed, mint},
    harness::{Agent, Daemon, temp, until},
    tokens::invoke,
};

/// So often is asked for a whole stream: the first pieces may be said before the agent's node knows that somebody waits.
const TRIES: usize = 50;

/// Two nodes of a mesh, a key for people and one for agents; Bob, an agent with ClawChat, at the second.
struct Two {
    first: Daemon,
    second: Daemon,
    people: String,
    bob: Agent,
}

impl Two {
    fn at(dirs: &[tempfile::TempDir; 2]) -> Two {
        let first = keyed(dirs[0].path(), &["--name", "first"]);
        let join = ["--name", "second", "--join", first.text("ticket")];
        let second = keyed(dirs[1].path(), &join);
        second.until_connected();
        let (people, agents) = (mint(&first, &["--scopes", "admin"]), mint(&first, &[]));
        let bob = agent(&second, &agents, "bob");
        Two { first, second, people, bob }
    }

    /// Ada, at the first node, who knows Bob.
    fn ada(&self) -> Recorder {
        let mut ada = come(&self.first, &self.people, "ada");
        until("Bob is known where Ada is", || row_of(&mut ada, "bob").is_some());
        ada
    }
}

fn row_of(client: &mut Recorder, id: &str) -> Option<Value> {
    let list = client.gets_in_time("agents.list", &json!({}));
    list["agents"].as_array().unwrap().iter().find(|row| row["id"] == id).cloned()
}

#[test]
fn what_is_changed_at_one_node_is_told_at_the_other_whatever_the_dialect() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let (mut ada, mut eve) = (two.ada(), come(&two.second, &two.people, "eve"));

    // A profile, over ClawChat.
    two.bob.call("set_profile", json!({"name": "Bobby", "emoji": "🐑"})).unwrap();
    let told = ada.told("agent.updated");
    let expect = json!({
        "agentId": "bob", "agent_key": "bob", "name": "Bobby", "changes": ["name", "emoji"],
    });
    assert_eq!(told, expect);
    assert_eq!(eve.told("agent.updated"), expect);

    // A room, over ClawChat.
    let new = json!({"name": "deck", "public": true});
    let room = two.bob.call("create_room", new).unwrap()["room_id"].clone();
    assert_eq!(ada.told("team.created")["team_id"], room);
    two.bob.call("set_room", json!({"room_id": room, "title": "The deck"})).unwrap();
    for client in [&mut ada, &mut eve] {
        let told = client.told("team.updated");
        assert_eq!(
            (&told["team_id"], &told["team_name"], &told["changes"]),
            (&room, &json!("The deck"), &json!(["name"]))
        );
    }

    // A session, by its user: an administrator of the key hears of it at the other node.
    let key = "agent:bob:ws:direct:one";
    ada.gets("chat.inject", &json!({"sessionKey": key, "message": "note"}));
    until("the session is there, too", || {
        eve.gets_in_time("sessions.list", &json!({}))["total"] == 1
    });
    ada.gets("sessions.patch", &json!({"key": key, "label": "Sheep"}));
    let expect = json!({"sessionKey": key, "label": "Sheep", "userId": "ada"});
    assert_eq!(ada.told("session.updated"), expect);
    assert_eq!(eve.told("session.updated"), expect);

    // An agent goes, and stays listed for its profile.
    drop(two.bob);
    until("Bob is away", || row_of(&mut ada, "bob").is_some_and(|row| row["online"] == false));
    let row = row_of(&mut ada, "bob").unwrap();
    assert_eq!((&row["status"], &row["name"]), (&json!("offline"), &json!("Bobby")));
}

#[test]
fn a_node_says_who_is_connected_since_when_links_are_up_and_when_it_is_alone() {
    let dirs = [temp(), temp()];
    let two = Two::at(&dirs);
    let own = std::fs::read_to_string(dirs[1].path().join("auth.key")).unwrap();
    let mut owner = come(&two.second, own.trim(), "op");
    let mut eve = come(&two.second, &two.people, "eve");
    let who = |health: &Value| -> Vec<(String, String)> {
        let rows = health["clients"].as_array().unwrap().iter();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        rows.map(|row| (text(row, "userId"), text(row, "dialect"))).collect()
    };
    let named = |user: &str, dialect: &str| (user.to_owned(), dialect.to_owned());
    let (op, her, bob) = (named("op", "goclaw"), named("eve", "goclaw"), named("bob", "clawchat"));
    let mut health = Value::Null;
    until("the link is known to the checkup", || {
        health = owner.gets_in_time("health", &json!({}));
        health["peers"][0]["since"].is_string()
    });
    assert_eq!(who(&health), [op, her.clone(), bob]);
    assert_eq!((&health["status"], &health["database"]), (&json!("ok"), &json!("ok")));
    assert_eq!(
        (&health["peers"][0]["node"], &health["peers"][0]["connected"]),
        (&json!("first"), &json!(true))
    );
    let health = eve.gets("health", &json!({}));
    assert_eq!(who(&health), [her], "of its key");
    assert!(health["peers"][0]["since"].is_string(), "{health}");

    two.first.kill();
    let told = eve.told("health");
    assert_eq!(told, json!({"status": "degraded"}));
    let health = eve.gets("health", &json!({}));
    assert_eq!((&health["status"], &health["database"]), (&json!("degraded"), &json!("ok")));
    assert!(health["peers"][0]["since"].is_null(), "{health}");
}

#[test]
fn a_code_of_one_node_is_none_at_another() {
    let dirs = [temp(), temp()];
    let two = Two::at(&dirs);
    let (mut ada, mut eve) = (two.ada(), come(&two.second, &two.people, "eve"));
    let mut device = Recorder::connect(&two.first);
    device.begin("connect", &json!({}));
    let pending = device.hear()["payload"].take();
    assert_eq!(pending["status"], "pending_pairing");
    let code = json!({"code": pending["pairing_code"]});
    for method in ["device.pair.approve", "device.pair.deny"] {
        assert_eq!(eve.refused(method, &code)["code"], "NOT_FOUND", "{method}");
    }
    ada.gets("device.pair.approve", &code);
    // Nor is the id that it was given.
    let mut elsewhere = Recorder::connect(&two.second);
    elsewhere.begin("connect", &json!({"sender_id": pending["sender_id"]}));
    assert_eq!(elsewhere.hear()["payload"]["status"], "pending_pairing");
    let mut device = Recorder::connect(&two.first);
    let shown = json!({"sender_id": pending["sender_id"]});
    assert_eq!(device.gets("connect", &shown)["role"], "operator");
}

/// Asks for an answer in pieces, of which the agent says some: the chunks that were told before the answer, and the answer.
fn streamed(
    ada: &mut Recorder,
    bob: &mut Agent,
    text: &str,
    pieces: &[&str],
) -> (Vec<String>, Value) {
    let params = json!({"agentId": "bob", "message": text, "stream": true});
    let id = ada.begin("chat.send", &params);
    let (room, asked) = heard(bob, text);
    let to = &asked["message_id"];
    for piece in pieces {
        let piece = json!({
            "room_id": room, "stream_id": text, "kind": "chunk", "content": piece, "reply_to": to,
        });
        bob.call("stream", piece).unwrap();
    }
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
    let reply = json!({
        "room_id": room, "content": "one two three", "reply_to": to, "metadata": {"usage": usage},
    });
    bob.call("send_message", reply).unwrap();
    let answer = ada.answer(&id, "chat.send").unwrap();
    let mut chunks = Vec::new();
    loop {
        let event = ada.told("agent");
        if event["runId"] != answer["runId"] {
            continue;
        }
        match event["type"].as_str().unwrap() {
            "chunk" => chunks.push(event["payload"]["content"].as_str().unwrap().to_owned()),
            "run.completed" => return (chunks, answer),
            _ => {}
        }
    }
}

#[test]
fn pieces_of_another_node_come_in_order_and_one_that_is_lost_changes_nothing() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let mut ada = two.ada();
    let whole = ["one ", "two ", "three"];
    let all = (0..TRIES).any(|nth| {
        let (chunks, answer) = streamed(&mut ada, &mut two.bob, &format!("whole {nth}"), &whole);
        assert_eq!(answer["content"], "one two three");
        assert_eq!(chunks.concat(), "one two three", "what was not heard comes at the end");
        chunks == whole
    });
    assert!(all, "three pieces, in order");
    let (_, answer) = streamed(&mut ada, &mut two.bob, "lost", &["one ", "three"]);
    assert_eq!(answer["content"], "one two three");
}

#[test]
fn usage_that_an_agent_reports_and_its_failures_are_the_same_at_two_nodes() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let (mut ada, mut there) = (two.ada(), come(&two.second, &two.people, "ada"));
    let (_, answer) = streamed(&mut ada, &mut two.bob, "hi", &[]);
    assert_eq!(
        (&answer["usage"]["input_tokens"], &answer["usage"]["output_tokens"]),
        (&json!(3), &json!(4))
    );
    let id = ada.begin("chat.send", &json!({"agentId": "bob", "message": "fail"}));
    let (room, asked) = heard(&mut two.bob, "fail");
    let reply = json!({
        "room_id": room, "content": "no", "reply_to": asked["message_id"],
        "metadata": {"error": "out of wool"},
    });
    two.bob.call("send_message", reply).unwrap();
    let error = ada.answer(&id, "chat.send").unwrap_err();
    assert_eq!((&error["code"], &error["message"]), (&json!("INTERNAL"), &json!("out of wool")));
    for client in [&mut ada, &mut there] {
        until("the usage is known there", || {
            client.gets_in_time("usage.get", &json!({}))["total"] == 1
        });
        let record = client.gets("usage.get", &json!({}))["records"][0].clone();
        assert_eq!((&record["agentId"], &record["totalTokens"]), (&json!("bob"), &json!(7)));
        let summary = client.gets("usage.summary", &json!({}))["byAgent"]["bob"].clone();
        assert_eq!((&summary["inputTokens"], &summary["outputTokens"]), (&json!(3), &json!(4)));
    }
}

#[test]
fn work_at_one_node_is_judged_at_the_other_and_what_is_deleted_is_gone_there() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let (mut ada, mut eve) = (two.ada(), come(&two.second, &two.people, "eve"));
    let mut operator = come(&two.second, &mint(&two.first, &["--scopes", "write"]), "op");
    two.bob.call("join_room", json!({"room_id": "lobby"})).unwrap();
    let of = |task: &Value| json!({"teamId": "lobby", "taskId": task});
    for (verdict, events, status) in [
        ("teams.tasks.approve", ["approved", "completed"], "completed"),
        ("teams.tasks.reject", ["rejected", "cancelled"], "cancelled"),
    ] {
        let made = json!({"teamId": "lobby", "subject": verdict});
        let task = ada.gets("teams.tasks.create", &made)["id"].clone();
        let told = eve.told("team.task.created");
        assert_eq!((&told["task_id"], &told["actor_type"]), (&task, &json!("human")));
        assert_eq!(ada.refused(verdict, &of(&task))["code"], "INVALID_REQUEST");
        assert_eq!(ada.refused("teams.tasks.delete", &of(&task))["code"], "INVALID_REQUEST");
        until("Bob has the task", || {
            let claim = json!({"task_id": task, "assignee": "bob", "if_assignee": null, "status": "in_progress"});
            two.bob.call("update_task", claim).is_ok()
        });
        let told = ada.told("team.task.claimed");
        assert_eq!(
            (&told["task_id"], &told["actor_id"], &told["actor_type"], &told["status"]),
            (&task, &json!("bob"), &json!("agent"), &json!("in_progress"))
        );
        let review = json!({"task_id": task, "mesh": {"state": "in_review"}});
        two.bob.call("update_task", review).unwrap();
        assert_eq!(ada.told("team.task.reviewed")["status"], "in_review");
        ada.gets(verdict, &of(&task));
        for event in events {
            let told = eve.told(&format!("team.task.{event}"));
            assert_eq!((&told["task_id"], &told["status"]), (&task, &json!(status)));
        }
        let there = eve.gets("teams.tasks.get", &of(&task));
        assert_eq!(there["task"]["status"], status);
        ada.gets("teams.tasks.delete", &of(&task));
        assert_eq!(eve.told("team.task.deleted")["task_id"], task);
        assert_eq!(eve.refused("teams.tasks.get", &of(&task))["code"], "NOT_FOUND");
    }
    operator.gets("health", &json!({}));
    assert!(operator.heard_nothing_of("team.task."), "it is on no list");
}

#[test]
fn of_two_people_who_decide_at_two_nodes_one_does() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let (mut ada, mut eve) = (two.ada(), come(&two.second, &two.people, "eve"));
    two.bob.call("join_room", json!({"room_id": "lobby"})).unwrap();
    for nth in 0..5 {
        let asks = json!({
            "room_id": "lobby", "content": "may I?", "metadata": {
                "kind": "approval_request", "approval": {"command": format!("deploy {nth}")},
            },
        });
        two.bob.call("send_message", asks).unwrap();
        let pending = [&mut ada, &mut eve].map(|client| client.told("exec.approval.pending"));
        assert_eq!(pending[0]["id"], pending[1]["id"]);
        let id = json!({"id": pending[0]["id"]});
        let methods = ["exec.approval.approve", "exec.approval.deny"];
        let asked = [ada.begin(methods[0], &id), eve.begin(methods[1], &id)];
        let answers = [ada.answer(&asked[0], methods[0]), eve.answer(&asked[1], methods[1])];
        let [by_ada, by_eve] = &answers;
        assert!(by_ada.is_ok() != by_eve.is_ok(), "one of them: {answers:?}");
        let late = answers.iter().find_map(|answer| answer.as_ref().err()).unwrap();
        assert_eq!(late["code"], "NOT_FOUND");
        let decision = if by_ada.is_ok() { "allow-once" } else { "deny" };
        for client in [&mut ada, &mut eve] {
            assert_eq!(client.told("exec.approval.resolved")["decision"], decision);
        }
    }
}

/// The tasks of the lobby as ClawTank lists them over HTTP: titles, and states.
fn tasks_of_tank(node: &Daemon, key: &str) -> BTreeMap<String, String> {
    let at = node.text("http").trim_start_matches("http://");
    let mut io = TcpStream::connect(at).unwrap();
    let request = format!(
        "GET /api/rooms/lobby/tasks HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
         accept: application/vnd.clawtank+json\r\n\r\n"
    );
    io.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    io.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = body["tasks"].as_array().unwrap_or_else(|| panic!("{body}")).iter();
    rows.map(|row| (text(row, "title"), text(row, "status"))).collect()
}

#[test]
fn each_state_of_a_task_has_its_name_in_three_dialects() {
    let dirs = [temp(), temp()];
    let mut two = Two::at(&dirs);
    let mut ada = two.ada();
    two.bob.call("join_room", json!({"room_id": "lobby"})).unwrap();
    // The mesh's state, then ClawChat's name, GoClaw's, and ClawTank's.
    let states = [
        ("pending", "pending", "pending", "open"),
        ("held", "pending", "in_progress", "claimed"),
        ("in_progress", "in_progress", "in_progress", "in_progress"),
        ("blocked", "blocked", "blocked", "in_progress"),
        ("in_review", "in_progress", "in_review", "in_progress"),
        ("completed", "completed", "completed", "completed"),
        ("cancelled", "completed", "cancelled", "cancelled"),
        ("failed", "blocked", "failed", "cancelled"),
    ];
    for (state, clawchat, ..) in states {
        let mut new = json!({"room_id": "lobby", "title": state});
        if state != "pending" {
            new["assignee"] = json!("bob");
        }
        let task = two.bob.call("assign_task", new).unwrap()["task_id"].clone();
        if !["pending", "held"].contains(&state) {
            let begins = json!({"task_id": task, "status": "in_progress"});
            two.bob.call("update_task", begins).unwrap();
            let becomes = json!({"task_id": task, "mesh": {"state": state}});
            two.bob.call("update_task", becomes).unwrap();
        }
        let get = json!({"room_id": "lobby", "task_id": task});
        let shown = two.bob.call("get_task", get).unwrap();
        assert_eq!(shown["task"]["status"], clawchat, "{state}: {shown}");
    }
    let list = json!({"teamId": "lobby", "status": "all"});
    until("all are at the other node", || {
        let listed = ada.gets_in_time("teams.tasks.list", &list);
        let rows = listed["tasks"].as_array().unwrap().iter();
        let found: BTreeMap<&str, &str> = rows
            .map(|row| (row["subject"].as_str().unwrap(), row["status"].as_str().unwrap()))
            .collect();
        states.iter().all(|(state, _, goclaw, _)| found.get(state) == Some(goclaw))
    });
    let tank = tasks_of_tank(&two.first, &two.people);
    for (state, _, _, clawtank) in states {
        assert_eq!(tank.get(state).map(String::as_str), Some(clawtank), "{state} of {tank:?}");
    }
}

#[test]
fn a_key_that_expires_ends_its_connections_and_opens_none() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let own = std::fs::read_to_string(dir.path().join("auth.key")).unwrap();
    let mut owner = come(&node, own.trim(), "op");
    let new = json!({"name": "short", "scopes": ["operator.write"], "expires_in": 3});
    let key = owner.gets("api_keys.create", &new)["key"].as_str().unwrap().to_owned();
    let mut client = come(&node, &key, "ada");
    until("it has expired", || {
        let id = client.begin("health", &json!({}));
        client.answer(&id, "health").is_err_and(|error| error["code"] == "UNAUTHORIZED")
    });
    assert_eq!(client.ends(), 1008);
    let mut late = Recorder::connect(&node);
    let shown = json!({"token": key, "user_id": "ada"});
    assert_eq!(late.refused("connect", &shown)["code"], "UNAUTHORIZED");
}

/// Check 27, of an agent without a connection: its host calls tools.
#[test]
fn an_agent_whose_host_calls_tools_at_another_node_answers_a_person() {
    let dirs = [temp(), temp()];
    let two = Two::at(&dirs);
    let agents = mint(&two.second, &[]);
    let tool = |name: &str, arguments: Value| {
        let body = json!({"tool": name, "args": arguments, "agentId": "kim"});
        let (status, answer) = invoke(&two.second, &agents, &body);
        assert_eq!(status, 200, "{name}: {answer}");
        answer["result"]["details"].clone()
    };
    tool("inbox_wait", json!({"timeoutSeconds": 0}));
    let mut ada = two.ada();
    until("Kim is known where Ada is", || row_of(&mut ada, "kim").is_some());

    let asked = ada.begin("chat.send", &json!({"agentId": "kim", "message": "how many?"}));
    let mut item = Value::Null;
    until("the host has it", || {
        let mail = tool("inbox_wait", json!({"timeoutSeconds": 5}));
        item = mail["messages"][0].clone();
        !item.is_null()
    });
    assert_eq!((&item["content"], &item["expectsReply"]), (&json!("how many?"), &json!(true)));
    let with = item["replyWith"].clone();
    let answer =
        json!({"sessionKey": with["sessionKey"], "replyTo": with["replyTo"], "message": "seven"});
    assert_eq!(with["tool"], "sessions_send", "{item}");
    assert_eq!(tool("sessions_send", answer)["status"], "accepted");
    let answered = ada.answer(&asked, "chat.send").unwrap();
    assert_eq!(
        (&answered["content"], &answered["status"]),
        (&json!("seven"), &json!("completed")),
        "{answered}"
    );
}

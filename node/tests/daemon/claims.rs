//! Claims over ClawTank at two nodes: at once, and on both sides of a split.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use testnet::pipe::Pipe;
use tokio::runtime::Runtime;

use crate::{
    clawtank::{Client, come, keyed, mint},
    harness::{Agent, Daemon, ask, temp, until},
};

/// Claims at once.
const ROUNDS: usize = 100;
/// One agent may claim 60 a minute.
const PAIRS: usize = 2;

/// An agent that makes tasks, and is done with them, for those that claim.
struct Maker {
    agent: Agent,
}

impl Maker {
    fn come(node: &Daemon, key: &str) -> Maker {
        let mut agent = Agent::connect(node.text("tcp"));
        agent.call("register", json!({"key": key, "name": "eve", "agent_id": "eve"})).unwrap();
        agent.call("join_room", json!({"room_id": "lobby"})).unwrap();
        Maker { agent }
    }

    fn makes(&mut self) -> String {
        let task = json!({"room_id": "lobby", "title": "do it"});
        let made = self.agent.call("assign_task", task).unwrap();
        made["task_id"].as_str().unwrap().to_owned()
    }

    fn sets(&mut self, task: &str, name: &str, value: &Value) {
        let mut update = json!({"task_id": task});
        update[name] = value.clone();
        self.agent.call("update_task", update).unwrap();
    }
}

/// The next event of this kind that is of the task.
fn of_task(client: &mut Client, kind: &str, task: &str) -> Value {
    client.find(|frame| frame["type"] == kind && frame["data"]["mesh"]["id"] == task)
}

fn claims(client: &mut Client, name: &str, task: &Value) -> Value {
    client.ask("task.claim", json!({"task_id": task, "agent_id": name}))
}

#[test]
fn of_two_that_claim_at_once_at_two_nodes_one_has_it_and_everybody_is_told_of_one() {
    let dirs = [temp(), temp()];
    let free = ["--limit", "free.messages-per-minute=none"];
    let first = keyed(dirs[0].path(), &free);
    let second = keyed(dirs[1].path(), &[&free[..], &["--join", first.text("ticket")]].concat());
    second.until_connected();
    let key = mint(&first);
    let pairs = (0..PAIRS).map(|nth| {
        let names = [format!("bob{nth}"), format!("carl{nth}")];
        let agents =
            [come(&first, "agent", &key, &names[0]), come(&second, "agent", &key, &names[1])];
        (names, agents)
    });
    let mut pairs: Vec<_> = pairs.collect();
    let mut people = [come(&first, "human", &key, "ada"), come(&second, "human", &key, "dan")];
    let mut maker = Maker::come(&first, &key);
    for round in 0..ROUNDS {
        let (names, agents) = &mut pairs[round % PAIRS];
        let task = maker.makes();
        let known = [0, 1].map(|side| {
            of_task(&mut agents[side], "task.created", &task)["data"]["task_id"].clone()
        });
        let [one, other] = agents;
        let answers = std::thread::scope(|scope| {
            let claimed = scope.spawn(|| claims(one, &names[0], &known[0]));
            [claims(other, &names[1], &known[1]), claimed.join().unwrap()]
        });
        let answers = [&answers[1], &answers[0]];
        let won = answers.iter().position(|it| it["type"] == "task.claim_accepted").unwrap();
        let lost = answers[1 - won];
        assert_eq!(lost["type"], "task.claim_rejected", "round {round}: {answers:?}");
        assert_eq!(lost["data"]["rejection_reason"], "task_already_claimed", "{lost}");
        for person in &mut people {
            let told = of_task(person, "task.claim_accepted", &task);
            assert_eq!(told["data"]["agent_id"], *names[won], "round {round}");
        }
        maker.sets(&task, "status", &json!("completed"));
        for client in people.iter_mut().chain(agents.iter_mut()) {
            of_task(client, "task.completed", &task);
        }
    }
    for person in &people {
        let again = person.heard.iter().find(|frame| frame["type"] == "task.claim_accepted");
        assert_eq!(again, None, "each is told once");
    }
}

/// The tasks of the lobby as a node has them.
fn tasks(node: &Daemon, key: &str) -> Vec<Value> {
    let at = node.text("http").trim_start_matches("http://");
    let mut socket = TcpStream::connect(at).unwrap();
    let request = format!(
        "GET /api/rooms/lobby/tasks HTTP/1.0\r\nhost: {at}\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["tasks"].as_array().unwrap().clone()
}

pub(crate) fn is_alone(node: &Daemon) -> bool {
    let status = node.status();
    let peers = status["peers"].as_array().unwrap();
    peers.iter().all(|peer| peer["connected"] == false || peer["alive"] == false)
}

/// Two nodes that know each other by a link that can be cut.
pub(crate) fn linked(dirs: &[tempfile::TempDir; 2], runtime: &Runtime) -> ([Daemon; 2], Pipe) {
    let alone = "--no-discovery";
    let first = keyed(dirs[0].path(), &[alone]);
    let target = first.ready["listen"][0].as_str().unwrap().to_owned();
    let pipe = runtime.block_on(Pipe::to(target)).unwrap();
    let at = pipe.address().to_string();
    let output = ask(&["invite", "--at", &at, "--data-dir", first.text("data_dir")]);
    let ticket = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let second = keyed(dirs[1].path(), &[alone, "--join", &ticket]);
    second.until_connected();
    ([first, second], pipe)
}

#[test]
fn a_task_that_both_sides_of_a_split_granted_has_one_holder_and_is_contested_until_it_is_set() {
    let dirs = [temp(), temp()];
    let runtime = Runtime::new().unwrap();
    let (nodes, pipe) = linked(&dirs, &runtime);
    let key = mint(&nodes[0]);
    let names = ["bob", "carl"];
    let [mut bob, mut carl] = [0, 1].map(|side| come(&nodes[side], "agent", &key, names[side]));
    let mut people = [come(&nodes[0], "human", &key, "ada"), come(&nodes[1], "human", &key, "dan")];
    let mut maker = Maker::come(&nodes[0], &key);
    let task = maker.makes();
    let known = [&mut bob, &mut carl]
        .map(|agent| of_task(agent, "task.created", &task)["data"]["task_id"].clone());
    pipe.set(|state| state.cut = true);
    until("each is alone", || nodes.iter().all(is_alone));
    for (side, agent) in [&mut bob, &mut carl].into_iter().enumerate() {
        let granted = claims(agent, names[side], &known[side]);
        assert_eq!(granted["type"], "task.claim_accepted", "{granted}");
        let told = of_task(&mut people[side], "task.claim_accepted", &task);
        assert_eq!(told["data"]["agent_id"], names[side]);
    }
    pipe.set(|state| state.cut = false);
    let shown = |node: &Daemon| tasks(node, &key)[0]["mesh"].clone();
    until("both have both claims", || {
        nodes.iter().all(|node| shown(node)["contested"] == json!(["assignee"]))
    });
    let holders = [&nodes[0], &nodes[1]].map(|node| shown(node)["assignee"].clone());
    assert_eq!(holders[0], holders[1], "the same everywhere");
    // Everybody is told of the one that shows: as a claim where somebody else had it, and with the mark alone where he stays.
    for (side, person) in people.iter_mut().enumerate() {
        let told = person.find(|frame| frame["data"]["mesh"]["contested"].is_array());
        let stays = holders[0] == names[side];
        let kind = if stays { "task.status" } else { "task.claim_accepted" };
        assert_eq!((&told["type"], &told["data"]["agent_id"]), (&json!(kind), &holders[0]));
    }
    maker.sets(&task, "assignee", &json!("carl"));
    until("it is settled", || {
        nodes.iter().all(|node| {
            let shown = shown(node);
            shown["contested"].is_null() && shown["assignee"] == "carl"
        })
    });
}

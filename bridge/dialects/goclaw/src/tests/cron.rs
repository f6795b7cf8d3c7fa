//! Jobs: as clients write them, as they are fired, and what is told of them.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A receiver of posts, which takes each.
struct Receiver {
    listener: TcpListener,
}

impl Receiver {
    async fn new() -> Receiver {
        Receiver { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.listener.local_addr().unwrap())
    }

    /// The next post: its head, and its body.
    async fn takes(&self) -> (String, Value) {
        let (mut socket, _) = timeout(PATIENCE, self.listener.accept()).await.unwrap().unwrap();
        let mut read = Vec::new();
        loop {
            assert_ne!(socket.read_buf(&mut read).await.unwrap(), 0, "it is cut off");
            let text = String::from_utf8_lossy(&read);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.unwrap().parse::<usize>().unwrap() {
                let taken = (head.clone(), serde_json::from_str(body).unwrap());
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                return taken;
            }
        }
    }
}

/// A job that is due in a hundred years.
fn idle(name: &str) -> Value {
    json!({"name": name, "schedule": "2126-01-01T00:00:00Z", "message": "hi", "agentId": "bob"})
}

impl Client {
    /// The next event of jobs of this name.
    async fn cron_event(&mut self, name: &str) -> Value {
        loop {
            let event = self.event().await;
            if event["event"] == name {
                return event["payload"].clone();
            }
        }
    }

    /// The runs of a job, when the newest one is over.
    async fn runs_of(&mut self, job: &Value, count: usize) -> Vec<Value> {
        for _ in 0..3_000 {
            let runs = self.gets("cron.runs", json!({"jobId": job})).await;
            let entries = runs["entries"].as_array().unwrap().clone();
            let is_over = |entry: &Value| entry["status"] != "running";
            if entries.len() >= count && entries.iter().all(is_over) {
                return entries;
            }
            sleep(Duration::from_millis(5)).await;
        }
        panic!("{count} runs of {job}");
    }
}

#[tokio::test]
async fn a_job_is_fired_again_and_again_and_its_answers_are_its_runs() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let asked = json!({
        "name": "Nightly Sweep", "agentId": "bob", "message": "sweep", "schedule": "every 1 s",
    });
    let made = client.gets("cron.create", asked).await;
    let job = &made["job"];
    for (name, value) in [
        ("id", made["id"].clone()),
        ("name", json!("nightly-sweep")),
        ("agentId", json!("bob")),
        ("agent_id", json!("bob")),
        ("userId", json!("ada")),
        ("enabled", json!(true)),
        ("schedule", json!({"kind": "every", "everyMs": 1000})),
        ("cron_expression", json!("every 1s")),
        ("payload", json!({"kind": "agent_turn", "message": "sweep"})),
        ("deliver", json!(false)),
        ("deleteAfterRun", json!(false)),
        ("wakeHeartbeat", json!(false)),
    ] {
        assert_eq!(job[name], value, "{name} of {job}");
    }
    assert_eq!(job["mesh"]["scope"], "node");
    let next = job["state"]["nextRunAtMs"].as_u64().unwrap();
    assert_eq!(next, job["createdAtMs"].as_u64().unwrap() + 1_000);
    let request = agent.hears(&node, "sweep").await;
    let told: Value = serde_json::from_str(request.said.metadata.as_deref().unwrap()).unwrap();
    let id = made["id"].as_str().unwrap();
    assert_eq!(told["session"], format!("agent:bob:cron:{id}"));
    assert_eq!((&told["kind"], &told["from"]), (&json!("request"), &json!("ada")));
    assert_eq!(told["cron"], json!({"job": id, "slot": next.to_string()}));
    let begun = client.cron_event("cron.fired").await;
    let slot = json!(next.to_string());
    assert_eq!((&begun["action"], &begun["slot"]), (&json!("running"), &slot));
    assert_eq!((&begun["jobId"], &begun["userId"]), (&made["id"], &json!("ada")));
    assert_eq!(client.cron_event("cron").await, begun, "under both names");
    let usage = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    agent.says(request.room, "swept", &request, Some(usage)).await;
    let done = client.cron_event("cron.fired").await;
    assert_eq!((&done["action"], &done["status"]), (&json!("completed"), &json!("ok")));
    client.gets("cron.toggle", json!({"jobId": id, "enabled": false})).await;
    let runs = client.runs_of(&made["id"], 1).await;
    let first = runs.last().unwrap();
    for (name, value) in [
        ("slot", slot),
        ("status", json!("ok")),
        ("summary", json!("swept")),
        ("inputTokens", json!(3)),
        ("outputTokens", json!(4)),
        ("jobId", made["id"].clone()),
    ] {
        assert_eq!(first[name], value, "{name} of {first}");
    }
    assert!(first["durationMs"].is_u64() && first["ts"].is_string() && first["id"].is_string());
    let state = client.gets("cron.status", json!({"jobId": id})).await["job"]["state"].clone();
    assert!(state["nextRunAtMs"].is_null(), "it is off");
    assert!(state["lastRunAtMs"].is_u64());
    // The session is as any other.
    let history = client.gets("chat.history", json!({"sessionKey": told["session"]})).await;
    assert_eq!(history["messages"][1]["content"], "swept");
    node.stop().await;
}

#[tokio::test]
async fn every_name_of_a_field_is_taken() {
    let node = Node::new().await;
    let _bob = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let asked = json!({
        "name": "a", "agent_id": "bob", "cron_expression": "30 2 * * *", "tz": "Europe/Berlin",
        "payload": {"message": "hi"}, "deliver": "channel", "channel": "room", "to": "lobby",
    });
    let made = client.gets("cron.create", asked).await;
    let job = &made["job"];
    let schedule = json!({"kind": "cron", "expr": "30 2 * * *", "tz": "Europe/Berlin"});
    assert_eq!((&job["schedule"], &job["payload"]["message"]), (&schedule, &json!("hi")));
    assert_eq!(
        (&job["deliver"], &job["deliverChannel"], &job["deliverTo"]),
        (&json!(true), &json!("room"), &json!("lobby"))
    );
    let id = made["id"].clone();
    for (patch, what, expected) in [
        (json!({"jobId": id, "name": "b"}), "name", json!("b")),
        (
            json!({"id": id, "patch": {"message": "ho"}}),
            "payload",
            json!({"kind": "agent_turn", "message": "ho"}),
        ),
        (json!({"job_id": id, "updates": {"stateless": true}}), "stateless", json!(true)),
        (
            json!({"id": id, "timezone": "UTC"}),
            "schedule",
            json!({"kind": "cron", "expr": "30 2 * * *", "tz": "UTC"}),
        ),
        (
            json!({"id": id, "schedule": {"kind": "every", "everyMs": 60000}}),
            "cron_expression",
            json!("every 60s"),
        ),
        (
            json!({"id": id, "deliverChannel": "agent", "deliverTo": "bob"}),
            "deliverChannel",
            json!("agent"),
        ),
        (json!({"id": id, "deliver": false}), "deliver", json!(false)),
    ] {
        let changed = client.gets("cron.update", patch.clone()).await;
        assert_eq!(changed["job"][what], expected, "{patch}");
        assert_eq!(changed["id"], id);
    }
    let flipped = client.gets("cron.toggle", json!({"id": id})).await;
    assert_eq!((&flipped["jobId"], &flipped["enabled"]), (&id, &json!(false)));
    let all = client.gets("cron.list", Value::Null).await;
    assert_eq!((all["jobs"].as_array().unwrap().len(), &all["status"]["jobs"]), (1, &json!(1)));
    let enabled = client.gets("cron.list", json!({"includeDisabled": false})).await;
    assert_eq!(enabled["jobs"], json!([]));
    assert_eq!(client.gets("cron.delete", json!({"jobId": id})).await["deleted"], true);
    let (code, _) = client.refused("cron.delete", json!({"jobId": id})).await;
    assert_eq!(code, "NOT_FOUND");
    assert_eq!(client.gets("cron.status", Value::Null).await, json!({"enabled": true, "jobs": 0}));
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_job_is_refused() {
    let node = Node::new().await;
    let _bob = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    client.gets("cron.create", idle("taken")).await;
    let with = |field: &str, value: Value| {
        let mut asked = idle("another");
        asked[field] = value;
        asked
    };
    for (asked, code, text) in [
        (idle("Taken"), "ALREADY_EXISTS", "another job"),
        (with("name", json!("!")), "INVALID_REQUEST", "name must"),
        (with("name", Value::Null), "INVALID_REQUEST", "name is required"),
        (with("schedule", json!("whenever")), "INVALID_REQUEST", "every day at HH:MM"),
        (with("schedule", json!(5)), "INVALID_REQUEST", "schedule must be"),
        (with("schedule", Value::Null), "INVALID_REQUEST", "schedule is required"),
        (with("schedule", json!("2020-01-01T00:00:00Z")), "INVALID_REQUEST", "to come"),
        (with("schedule", json!({"kind": "every", "everyMs": 999})), "INVALID_REQUEST", "1 s"),
        (with("message", json!("")), "INVALID_REQUEST", "message is required"),
        (with("message", json!("m".repeat(32 * 1024 + 1))), "INVALID_REQUEST", "32768 bytes"),
        (with("agentId", json!("")), "INVALID_REQUEST", "agentId is required"),
        (with("agentId", json!("nobody")), "NOT_FOUND", "agent not found: nobody"),
        (
            with("deliverChannel", json!("telegram")),
            "INVALID_REQUEST",
            "channel not found: telegram",
        ),
        (with("deliver", json!(true)), "INVALID_REQUEST", "deliverTo is required"),
        (with("deliver", json!("yes")), "INVALID_REQUEST", "deliver must be"),
        (with("deliverTo", json!("nowhere")), "NOT_FOUND", "team not found: nowhere"),
    ] {
        let (refused, message) = client.refused("cron.create", asked.clone()).await;
        assert_eq!(refused, code, "{asked}: {message}");
        assert!(message.contains(text), "{message}");
    }
    let (code, _) = client.refused("cron.runs", json!({"jobId": "x"})).await;
    assert_eq!(code, "NOT_FOUND");
    let (code, message) = client.refused("cron.run", Value::Null).await;
    assert_eq!((&*code, &*message), ("INVALID_REQUEST", "jobId is required"));
    node.mint(MINTED, Some(&[Scope::Read]));
    let mut viewer = node.connected(MINTED, "ada").await;
    let (code, _) = viewer.refused("cron.create", idle("b")).await;
    assert_eq!(code, "UNAUTHORIZED");
    assert_eq!(viewer.gets("cron.list", Value::Null).await["jobs"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn a_run_that_is_asked_for_begins_at_once_and_one_that_is_open_has_slots_skipped() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let id = client.gets("cron.create", idle("idle")).await["id"].clone();
    let not = client.gets("cron.run", json!({"jobId": id, "mode": "due"})).await;
    assert_eq!(not, json!({"ok": true, "ran": false, "reason": "not due"}));
    let ran = client.gets("cron.run", json!({"id": id})).await;
    assert_eq!((&ran["ok"], &ran["ran"]), (&json!(true), &json!(true)));
    let request = agent.hears(&node, "hi").await;
    client
        .gets("cron.update", json!({"id": id, "schedule": "every 1 s", "message": "again"}))
        .await;
    loop {
        let told = client.cron_event("cron").await;
        if told["status"] == "skipped" {
            assert_eq!(told["action"], "error");
            break;
        }
    }
    client.gets("cron.toggle", json!({"id": id, "enabled": false})).await;
    agent.answers(&request, "ho").await;
    let runs = client.runs_of(&id, 2).await;
    let of_slot = |slot: &Value| runs.iter().find(|run| run["slot"] == *slot).unwrap();
    assert_eq!(of_slot(&ran["runSlot"])["summary"], "ho");
    assert!(runs.iter().any(|run| run["status"] == "skipped"));
    assert!(agent.heard().await.iter().all(|said| said.said.content != "again"));
    node.stop().await;
}

#[tokio::test]
async fn words_and_answers_are_delivered_and_a_job_for_one_run_is_gone_after_it() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let asked = json!({
        "name": "words", "message": "good morning", "schedule": "in 1 s", "deliverTo": "lobby",
        "deleteAfterRun": true,
    });
    let words = client.gets("cron.create", asked).await["id"].clone();
    let lobby = async || {
        let desk = node.bridge.desk();
        let call = History { room: lobby(), from: From::Newest, limit: 10, before_ms: None };
        let said = desk.ask(&agent.visitor, call).await.unwrap().messages;
        let texts: Vec<String> = said.iter().map(|said| said.said.content.clone()).collect();
        Some(texts)
    };
    let has = async |text: &str| lobby().await.filter(|texts| texts.iter().any(|it| it == text));
    node.until("the words are said", async || has("good morning").await).await;
    while client.cron_event("cron").await["action"] != "completed" {}
    for _ in 0..3_000 {
        if client.gets("cron.list", Value::Null).await["jobs"] == json!([]) {
            break;
        }
        sleep(Duration::from_millis(5)).await;
    }
    let (code, _) = client.refused("cron.runs", json!({"jobId": words})).await;
    assert_eq!(code, "NOT_FOUND");
    let mut asked = idle("answer");
    asked["deliverTo"] = json!("lobby");
    let id = client.gets("cron.create", asked).await["id"].clone();
    client.gets("cron.run", json!({"id": id})).await;
    let request = agent.hears(&node, "hi").await;
    agent.answers(&request, "the answer").await;
    node.until("the answer is said", async || has("the answer").await).await;
    let failing = client.gets("cron.run", json!({"id": id})).await;
    let said = node
        .until("another request", async || {
            let heard = agent.heard().await;
            heard.into_iter().filter(|said| said.said.content == "hi").nth(1)
        })
        .await;
    agent.says(said.room, "no", &said, Some(json!({"error": "it broke"}))).await;
    let runs = client.runs_of(&id, 2).await;
    let failed = runs.iter().find(|run| run["slot"] == failing["runSlot"]).unwrap();
    assert_eq!((&failed["status"], &failed["error"]), (&json!("error"), &json!("it broke")));
    node.stop().await;
}

#[tokio::test]
async fn the_run_of_a_job_is_told_as_all_others_are() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    node.mint(MINTED, Some(&[Scope::Write]));
    let mut client = node.owner().await;
    let mut stranger = node.connected(MINTED, "ada").await;
    let id = client.gets("cron.create", idle("told")).await["id"].clone();
    client.gets("cron.run", json!({"id": id})).await;
    let request = agent.hears(&node, "hi").await;
    let session = format!("agent:bob:cron:{}", id.as_str().unwrap());
    let mut of_run = async || loop {
        let payload = client.cron_event("agent").await;
        if payload["type"] != "activity" {
            return payload;
        }
    };
    let began = of_run().await;
    assert_eq!((&began["type"], &began["agentId"]), (&json!("run.started"), &json!("bob")));
    assert_eq!(began["runId"], request.message.to_uuid());
    assert_eq!((&began["sessionKey"], &began["userId"]), (&json!(session), &json!("ada")));
    assert_eq!(began["payload"], json!({"message": "hi"}));
    agent.answers(&request, "ho").await;
    let chunk = of_run().await;
    assert_eq!((&chunk["type"], &chunk["payload"]), (&json!("chunk"), &json!({"content": "ho"})));
    let over = of_run().await;
    assert_eq!(
        (&over["type"], &over["payload"]["content"]),
        (&json!("run.completed"), &json!("ho"))
    );
    // Another one is open: the agent is at it.
    client.gets("cron.run", json!({"id": id})).await;
    while client.cron_event("agent").await["type"] != "run.started" {}
    let bob = client.gets("agent", json!({"agentId": "bob"})).await;
    assert_eq!(bob["isRunning"], true, "{bob}");
    stranger.gets("health", Value::Null).await;
    let told = stranger.events.iter().any(|event| event["event"] == "agent");
    assert!(!told, "{:?}", stranger.events);
    node.stop().await;
}

#[tokio::test]
async fn each_user_sees_its_own_jobs_and_administrators_those_of_the_key() {
    let node = Node::new().await;
    let _bob = node.agent("bob", KEY).await;
    node.mint(MINTED, Some(&[Scope::Write]));
    let mut ada = node.connected(MINTED, "ada").await;
    let mut bea = node.connected(MINTED, "bea").await;
    let mut owner = node.owner().await;
    let id = ada.gets("cron.create", idle("mine")).await["id"].clone();
    let job = ada.gets("cron.status", json!({"id": id})).await["job"].clone();
    assert_eq!(job["mesh"]["scope"], "key");
    for client in [&mut bea, &mut owner] {
        assert_eq!(client.gets("cron.list", Value::Null).await["jobs"], json!([]));
        let (code, _) = client.refused("cron.update", json!({"id": id, "name": "b"})).await;
        assert_eq!(code, "NOT_FOUND");
    }
    ada.gets("cron.run", json!({"id": id})).await;
    assert_eq!(ada.cron_event("cron").await["action"], "running");
    bea.gets("health", Value::Null).await;
    let told = bea.events.iter().any(|event| event["event"] == "cron");
    assert!(!told, "{:?}", bea.events);
    node.stop().await;
}

#[tokio::test]
async fn without_keys_nobody_has_jobs() {
    let node = Node::open().await;
    let _bob = node.agent("bob", "any").await;
    let mut client = node.connected("any", "ada").await;
    let (code, _) = client.refused("cron.create", idle("a")).await;
    assert_eq!(code, "NOT_IMPLEMENTED");
    node.stop().await;
}

#[tokio::test]
async fn a_webhook_of_the_key_is_a_channel_of_its_jobs() {
    let config = Config { allow_private_webhooks: true, ..keyed() };
    let node = Node::with(config, |settings| settings).await;
    let agent = node.agent("bob", KEY).await;
    let (mut client, receiver) = (node.owner().await, Receiver::new().await);
    let instance = json!({
        "name": "pager", "channel_type": "webhook", "credentials": {"secret": "s"},
        "config": {"room_id": "lobby", "url": receiver.url()},
    });
    let hook = client.gets("channels.instances.create", instance).await["id"].clone();
    let mut asked = idle("page");
    (asked["deliver"], asked["channel"], asked["to"]) =
        (json!("channel"), json!("pager"), json!("ops"));
    let made = client.gets("cron.create", asked).await;
    let job = &made["job"];
    assert_eq!((&job["deliverChannel"], &job["deliverTo"]), (&json!("pager"), &json!("ops")));
    let ran = client.gets("cron.run", json!({"id": made["id"]})).await;
    let request = agent.hears(&node, "hi").await;
    agent.answers(&request, "all is well").await;
    let (head, body) = receiver.takes().await;
    assert!(head.contains("webhook-signature: "), "{head}");
    for (name, value) in [
        ("type", json!("clawmesh.cron.delivered")),
        ("subscription_id", hook.clone()),
        ("job_id", made["id"].clone()),
        ("job_name", json!("page")),
        ("slot", ran["runSlot"].clone()),
        ("agent_id", json!("bob")),
        ("user_id", json!("ada")),
        ("to", json!("ops")),
        ("content", json!("all is well")),
    ] {
        assert_eq!(body[name], value, "{name} of {body}");
    }
    let runs = client.runs_of(&made["id"], 1).await;
    assert_eq!(runs[0]["status"], "ok", "{}", runs[0]);
    // Other fields of the job change; its channel stays.
    let patch = json!({"id": made["id"], "message": "ho", "deliverTo": "night shift"});
    let job = client.gets("cron.update", patch).await["job"].clone();
    assert_eq!(
        (&job["deliverChannel"], &job["deliverTo"]),
        (&json!("pager"), &json!("night shift"))
    );
    client.gets("channels.instances.delete", json!({"id": hook})).await;
    client.gets("cron.run", json!({"id": made["id"]})).await;
    let request = agent.hears(&node, "ho").await;
    agent.answers(&request, "well").await;
    let runs = client.runs_of(&made["id"], 2).await;
    let failed = runs.iter().find(|run| run["status"] == "error").expect("one is not delivered");
    assert!(failed["error"].as_str().unwrap().contains("the webhook is not at"), "{failed}");
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_fires_no_jobs_says_so_and_fires_them_when_it_does_again() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    node.hub.switch_schedules(false);
    let mut asked = idle("off");
    asked["schedule"] = json!("every 1 s");
    let id = client.gets("cron.create", asked).await["id"].clone();
    let status = client.gets("cron.status", Value::Null).await;
    assert_eq!((&status["enabled"], &status["jobs"]), (&json!(false), &json!(1)));
    let (code, message) = client.refused("cron.run", json!({"id": id})).await;
    assert_eq!(code, "UNAVAILABLE");
    assert!(message.contains("cron.enabled"), "{message}");
    let next = client.gets("cron.status", json!({"id": id})).await["nextRunAtMs"].clone();
    let due = next.as_u64().unwrap();
    let is_over = async || (crate::times::now_ms() > due + 1_000).then_some(());
    node.until("a slot is over", is_over).await;
    let runs = client.gets("cron.runs", json!({"jobId": id})).await;
    assert_eq!(runs["entries"], json!([]), "none is fired, and none is missed yet");
    node.hub.switch_schedules(true);
    agent.hears(&node, "hi").await;
    assert_eq!(client.gets("cron.list", Value::Null).await["status"]["enabled"], true);
    node.stop().await;
}

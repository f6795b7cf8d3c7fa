//! What is said to agents, and what comes of it.

use super::*;

/// The event's kind, its payload, and the payload inside.
fn envelope(event: &Value) -> (String, Value, Value) {
    assert_eq!(event["event"], "agent", "{event}");
    let payload = event["payload"].clone();
    (payload["type"].as_str().unwrap().to_owned(), payload.clone(), payload["payload"].clone())
}

#[tokio::test]
async fn without_a_stream_the_answer_comes_first_and_the_events_after_it() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let id = client.begin("chat.send", json!({"agentId": "bob", "message": "hi there"})).await;
    let asked = agent.hears(&node, "hi there").await;
    assert!(asked.said.agent.starts_with("u-") && asked.said.agent.ends_with("-ada"));
    assert_eq!(&*asked.said.name, "ada");
    let told: Value = serde_json::from_str(asked.said.metadata.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&told["kind"], &told["from"], &told["stream"]),
        (&json!("request"), &json!("ada"), &json!(false))
    );
    assert_eq!(told["expects_reply"], true);
    let usage = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 4}, "thinking": "hm"});
    agent.says(asked.room, "hello", &asked, Some(usage)).await;
    let result = client.answer(&id).await.unwrap();
    assert!(client.events.is_empty(), "the answer is the first frame");
    let session = told["session"].as_str().unwrap();
    assert!(session.starts_with("agent:bob:ws:direct:"), "{session}");
    for (name, value) in [
        ("runId", json!(asked.message.to_uuid())),
        ("sessionKey", json!(session)),
        ("role", json!("assistant")),
        ("content", json!("hello")),
        ("status", json!("completed")),
        ("thinking", json!("hm")),
    ] {
        assert_eq!(result[name], value, "{result}");
    }
    assert_eq!(result["usage"]["total_tokens"], 7);
    assert_eq!(result["usage"]["input_tokens"], 3);
    assert!(result["usage"]["reported"].is_null());
    let kinds = ["run.started", "chunk", "run.completed"];
    for (nth, kind) in kinds.into_iter().enumerate() {
        let event = client.event().await;
        let (name, payload, inner) = envelope(&event);
        assert_eq!((&*name, &event["seq"]), (kind, &json!(nth + 1)));
        assert_eq!(payload["runId"], result["runId"]);
        assert_eq!((&payload["userId"], &payload["channel"]), (&json!("ada"), &json!("ws")));
        match kind {
            "run.started" => assert_eq!(inner["message"], "hi there"),
            "chunk" => assert_eq!(inner["content"], "hello"),
            _ => assert_eq!(inner["usage"]["output_tokens"], 4),
        }
    }
    let history = client.gets("chat.history", json!({"sessionKey": session})).await;
    let rows = history["messages"].as_array().unwrap();
    let texts: Vec<_> =
        rows.iter().map(|row| (row["role"].as_str(), row["content"].as_str())).collect();
    assert_eq!(texts, [(Some("user"), Some("hi there")), (Some("assistant"), Some("hello"))]);
    assert_eq!(rows[1]["run_id"], result["runId"]);
    assert_eq!(rows[1]["id"], result["message_id"]);
    node.stop().await;
}

#[tokio::test]
async fn with_a_stream_the_events_come_first_and_their_pieces_are_the_content() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut flat = node.client().await;
    flat.gets("connect", json!({"token": KEY, "user_id": "ada"})).await;
    let params = json!({"agent_key": "bob", "text": "hi", "stream": true});
    let id = flat.begin("chat.send", params).await;
    let asked = agent.hears(&node, "hi").await;
    agent.answers(&asked, "hello").await;
    let result = flat.answer(&id).await.unwrap();
    assert_eq!(
        (&result["content"], &result["usage"]["reported"]),
        (&json!("hello"), &json!(false))
    );
    let names: Vec<String> =
        flat.events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    // Of a client that does not say what it speaks nobody knows which one it reads.
    assert_eq!(names, ["run.started", "agent", "chunk", "agent", "run.completed", "agent"]);
    let payload = &flat.events[2]["payload"];
    assert_eq!((&payload["content"], &payload["agentId"]), (&json!("hello"), &json!("bob")));
    assert_eq!(payload["runId"], result["runId"]);
    assert_eq!(flat.events[0]["payload"]["sessionKey"], result["sessionKey"]);
    node.stop().await;
}

#[tokio::test]
async fn an_operator_chooses_the_form_of_events() {
    let events = crate::Events::Flat;
    let node = Node::with(keyed(), |settings| Settings { events, ..settings }).await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let id =
        client.begin("chat.send", json!({"agentId": "bob", "message": "hi", "stream": true})).await;
    let asked = agent.hears(&node, "hi").await;
    agent.answers(&asked, "ho").await;
    client.answer(&id).await.unwrap();
    let names: Vec<&str> =
        client.events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["run.started", "chunk", "run.completed"]);
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_not_written_to() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    let missing = client.refused("chat.send", json!({"agentId": "nobody", "message": "hi"})).await;
    assert_eq!(missing, ("NOT_FOUND".to_owned(), "agent not found: nobody".to_owned()));
    let none = client.refused("chat.send", json!({"message": "hi"})).await;
    assert_eq!(none, ("NOT_FOUND".to_owned(), "agent not found: default".to_owned()));
    let agent = node.agent("bob", KEY).await;
    let id = client.begin("chat.send", json!({"message": "first"})).await;
    let asked = agent.hears(&node, "first").await;
    agent.answers(&asked, "ho").await;
    let session = client.answer(&id).await.unwrap()["sessionKey"].clone();
    node.fake.detach("bob", Vec::new());
    let no = client.ask("chat.send", json!({"sessionKey": session, "message": "second"})).await;
    let no = no.unwrap_err();
    assert_eq!((&*no.code, &*no.message), ("UNAVAILABLE", "agent bob is offline"));
    assert_eq!((no.retryable, no.retry_ms), (true, 5_000));
    let history = client.gets("chat.history", json!({"sessionKey": session})).await;
    assert_eq!(history["messages"].as_array().unwrap().len(), 2, "nothing was written");
    let empty = client.refused("chat.send", json!({"agentId": "bob", "message": ""})).await;
    assert_eq!(empty.1, "message is required");
    let more = "agentId and sessionKey name different agents";
    let _cy = node.agent("cy", KEY).await;
    let params = json!({"agentId": "cy", "sessionKey": session, "message": "x"});
    assert_eq!(client.refused("chat.send", params).await.1, more);
    node.stop().await;
}

#[tokio::test]
async fn words_for_an_agent_that_is_at_a_run_are_part_of_it() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = "agent:bob:ws:direct:one";
    let first = client.begin("chat.send", json!({"sessionKey": key, "message": "first"})).await;
    let asked = agent.hears(&node, "first").await;
    let running = client.gets("chat.session.status", json!({"sessionKey": key})).await;
    let run = json!(asked.message.to_uuid());
    assert_eq!((&running["isRunning"], &running["runId"]), (&json!(true), &run));
    let injected = client.gets("chat.send", json!({"sessionKey": key, "message": "second"})).await;
    assert_eq!((&injected["injected"], &injected["runId"]), (&json!(true), &run));
    agent.hears(&node, "second").await;
    agent.answers(&asked, "both").await;
    assert_eq!(client.answer(&first).await.unwrap()["content"], "both");
    let idle = client.gets("chat.session.status", json!({"agentId": "bob"})).await;
    assert_eq!((&idle["isRunning"], &idle["activity"]), (&json!(false), &Value::Null));
    let history = client.gets("chat.history", json!({"session_key": key})).await;
    let roles: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "user", "assistant"]);
    let steps = client.gets("run.timeline.get", json!({"runId": run})).await;
    let kinds: Vec<_> = steps["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["run.started", "injected", "run.completed"]);
    node.stop().await;
}

#[tokio::test]
async fn a_run_that_is_aborted_ends_the_call_that_waits_and_the_agent_hears_of_it() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let mut other = node.owner().await;
    let key = "agent:bob:ws:direct:one";
    let id = client.begin("chat.send", json!({"sessionKey": key, "message": "slow"})).await;
    let asked = agent.hears(&node, "slow").await;
    let ended = other.gets("chat.abort", json!({"sessionKey": key})).await;
    assert_eq!((&ended["aborted"], &ended["notFound"]), (&json!(true), &json!(false)));
    assert_eq!(ended["runIds"], json!([asked.message.to_uuid()]));
    let result = client.answer(&id).await.unwrap();
    assert_eq!((&result["cancelled"], &result["aborted"]), (&json!(true), &json!(true)));
    let cancel = agent.hears(&node, "cancel").await;
    assert_eq!(cancel.said.reply_to, Some(asked.message.to_uuid()));
    let kinds = [client.event().await, client.event().await].map(|event| envelope(&event).0);
    assert_eq!(kinds, ["run.started", "run.cancelled"]);
    let again = other.gets("chat.abort", json!({"runId": asked.message.to_uuid()})).await;
    assert_eq!((&again["aborted"], &again["notFound"]), (&json!(false), &json!(true)));
    let history = other.gets("chat.history", json!({"sessionKey": key})).await;
    assert_eq!(
        history["messages"].as_array().unwrap().len(),
        1,
        "what ends it is not said to people"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_client_hears_that_a_run_goes_on_and_later_how_it_ended() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let params = json!({"agentId": "bob", "message": "slow", "timeoutMs": 1_000});
    let result = client.gets("chat.send", params).await;
    assert_eq!((&result["status"], &result["content"]), (&json!("running"), &json!("")));
    assert_eq!(result["message_id"], result["runId"]);
    let asked = agent.hears(&node, "slow").await;
    agent.answers(&asked, "done").await;
    for kind in ["run.started", "chunk", "run.completed"] {
        assert_eq!(envelope(&client.event().await).0, kind);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_run_without_an_answer_is_over_when_its_time_is() {
    let run_limit = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { run_limit, ..settings }).await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let params = json!({"agentId": "bob", "message": "slow", "stream": true});
    let (code, _) = client.refused("chat.send", params).await;
    assert_eq!(code, "AGENT_TIMEOUT");
    let kinds: Vec<String> = client.events.iter().map(|event| envelope(event).0).collect();
    assert_eq!(kinds, ["run.started", "run.failed"]);
    let timeout = agent.hears(&node, "timeout").await;
    let told: Value = serde_json::from_str(timeout.said.metadata.as_deref().unwrap()).unwrap();
    assert_eq!(told["kind"], "timeout", "other nodes know it, too");
    node.stop().await;
}

#[tokio::test]
async fn a_failure_of_the_agent_is_one_of_the_call_and_a_client_that_goes_finds_the_answer_later() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let id = client.begin("chat.send", json!({"agentId": "bob", "message": "one"})).await;
    let asked = agent.hears(&node, "one").await;
    agent.says(asked.room, "no", &asked, Some(json!({"error": "out of sheep"}))).await;
    let no = client.answer(&id).await.unwrap_err();
    assert_eq!((&*no.code, &*no.message), ("INTERNAL", "out of sheep"));
    let key = "agent:bob:ws:direct:two";
    client.begin("chat.send", json!({"sessionKey": key, "message": "two"})).await;
    let asked = agent.hears(&node, "two").await;
    let mut same = node.owner().await;
    drop(client);
    agent.answers(&asked, "late").await;
    // Another connection of the user hears of it, and one that comes later reads it.
    loop {
        let (kind, _, inner) = envelope(&same.event().await);
        if kind == "run.completed" {
            assert_eq!(inner["content"], "late");
            break;
        }
    }
    let mut later = node.owner().await;
    let history = later.gets("chat.history", json!({"sessionKey": key})).await;
    assert_eq!(history["messages"][1]["content"], "late");
    node.stop().await;
}

#[tokio::test]
async fn words_that_are_injected_begin_no_run_and_are_read() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = "agent:bob:ws:direct:one";
    let params = json!({"sessionKey": key, "message": "by the way", "label": "note"});
    assert_eq!(client.gets("chat.inject", params).await["ok"], true);
    let said = agent.hears(&node, "[note]\n\nby the way").await;
    assert!(
        !said.said.conversation.is_some_and(|place| place.expects_reply),
        "it asks for nothing"
    );
    let history = client.gets("chat.history", json!({"sessionKey": key})).await;
    assert_eq!(history["messages"][0]["role"], "assistant");
    let status = client.gets("chat.session.status", json!({"sessionKey": key})).await;
    assert_eq!(status["isRunning"], false);
    let long = "x".repeat(101);
    let params = json!({"sessionKey": key, "message": "x", "label": long});
    assert_eq!(client.refused("chat.inject", params).await.0, "INVALID_REQUEST");
    assert_eq!(
        client.refused("chat.inject", json!({"message": "x"})).await.1,
        "sessionKey is required"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_principal_writes_so_often_and_the_holder_of_the_nodes_own_key_as_often_as_he_likes() {
    let node = Node::new().await;
    node.mint(MINTED, None);
    let _agent = node.agent("bob", KEY).await;
    let _own = node.agent("cy", MINTED).await;
    let mut client = node.connected(MINTED, "x").await;
    let say =
        |agent: &str| json!({"sessionKey": format!("agent:{agent}:ws:direct:a"), "message": "x"});
    for _ in 0..5 {
        client.gets("chat.inject", say("cy")).await;
    }
    let no = client.ask("chat.inject", say("cy")).await.unwrap_err();
    assert_eq!((&*no.code, no.retryable), ("RESOURCE_EXHAUSTED", true));
    assert!((1..=1_000).contains(&no.retry_ms), "{no:?}");
    sleep(Duration::from_millis(no.retry_ms)).await;
    client.gets("chat.inject", say("cy")).await;
    let mut owner = node.owner().await;
    for _ in 0..7 {
        owner.gets("chat.inject", say("bob")).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn what_is_left_for_an_agent_is_there_when_it_comes() {
    let node = Node::new().await;
    let _agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    node.fake.detach("bob", Vec::new());
    let params = json!({"channel": "agent", "to": "bob", "message": "for later"});
    assert_eq!(client.gets("send", params).await["ok"], true);
    let agent = node.agent("bob", KEY).await;
    agent.hears(&node, "for later").await;
    let params = json!({"channel": "telegram", "to": "bob", "message": "x"});
    let refused = client.refused("send", params).await;
    assert_eq!(refused, ("NOT_FOUND".to_owned(), "channel not found: telegram".to_owned()));
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_asks_a_person_is_told_when_the_person_has_read_it() {
    use bridge::seam::call::OneMessage;
    use mesh::api::delivery::Stage;
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = "agent:bob:ws:direct:one";
    client.gets("chat.inject", json!({"sessionKey": key, "message": "note"})).await;
    let room = agent.hears(&node, "note").await.room;
    let desk = node.bridge.desk();
    let say = Say { expects_reply: Some(true), ..Say::chat(room, "may I?".to_owned()) };
    let asked = desk.ask(&agent.visitor, say).await.unwrap().message;
    let stage = async || {
        let call = OneMessage { room, message: asked };
        let found = desk.ask(&agent.visitor, call).await.unwrap().unwrap();
        found.fate.map(|fate| fate.stage).filter(|stage| *stage == Stage::Delivered)
    };
    // An administrator that looks is not the person.
    let mut boss = node.connected(KEY, "boss").await;
    let bare = json!({"sessionKey": "agent:bob:mesh:direct"});
    assert_eq!(boss.gets("chat.history", bare.clone()).await["messages"][0]["content"], "may I?");
    assert_eq!(client.gets("sessions.list", json!({})).await["total"], 2);
    assert_eq!(stage().await, None);
    client.gets("chat.history", bare).await;
    node.until("Bob is told", stage).await;
    node.stop().await;
}

#[tokio::test]
async fn a_person_and_an_agent_write_as_fast_as_they_like() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = "agent:bob:ws:direct:one";
    for nth in 0..25 {
        let text = format!("hi {nth}");
        let id = client.begin("chat.send", json!({"sessionKey": key, "message": text})).await;
        let asked = agent.hears(&node, &text).await;
        agent.answers(&asked, "ho").await;
        client.answer(&id).await.unwrap();
    }
    node.stop().await;
}

//! Sessions as lists, and whose they are.

use super::*;

/// One request and its answer, in a session of this name.
async fn talks(node: &Node, client: &mut Client, agent: &Agent, name: &str) -> String {
    let key = format!("agent:bob:ws:direct:{name}");
    let text = format!("hi from {name}");
    let id = client.begin("chat.send", json!({"sessionKey": key, "message": text})).await;
    let asked = agent.hears(node, &text).await;
    let usage = json!({"usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    agent.says(asked.room, "ho", &asked, Some(usage)).await;
    client.answer(&id).await.unwrap();
    key
}

fn keys(list: &Value) -> Vec<String> {
    let rows = list["sessions"].as_array().unwrap().iter();
    rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn sessions_are_listed_the_newest_first_and_in_pages() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let mut all = Vec::new();
    for name in ["one", "two", "three"] {
        all.insert(0, talks(&node, &mut client, &agent, name).await);
    }
    let list = client.gets("sessions.list", json!({})).await;
    assert_eq!((keys(&list), &list["total"]), (all.clone(), &json!(3)));
    let expect = json!({
        "session_key": all[0], "userID": "ada", "user_id": "ada", "agent_id": "bob", "agentName": "bob",
        "channel": "ws", "messageCount": 2, "inputTokens": 1, "output_tokens": 2, "label": "", "metadata": {},
    });
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(list["sessions"][0][name], *value, "{name}");
    }
    let page = client.gets("sessions.list", json!({"limit": 1, "offset": 1})).await;
    assert_eq!((keys(&page), &page["total"]), (vec![all[1].clone()], &json!(3)));
    assert_eq!(
        keys(&client.gets("sessions.list", json!({"offset": 9})).await),
        Vec::<String>::new()
    );
    let rooms = client.gets("sessions.list", json!({"channel": "room"})).await;
    assert_eq!(keys(&rooms), [format!("room:{}", lobby().to_uuid())]);
    let preview = client.gets("sessions.preview", json!({"session_key": all[0]})).await;
    assert_eq!(preview["messages"][1]["content"], "ho");
    assert_eq!((&preview["summary"], &preview["key"]), (&json!(""), &json!(all[0])));
    for (key, code) in [("agent:bob:ws:direct:none", "NOT_FOUND"), ("nonsense", "NOT_FOUND")] {
        assert_eq!(client.refused("sessions.preview", json!({"key": key})).await.0, code);
    }
    let newest = client.gets("chat.history", json!({"agentId": "bob"})).await;
    assert_eq!(newest["messages"][0]["content"], "hi from three");
    node.stop().await;
}

#[tokio::test]
async fn a_session_is_its_users_and_the_administrators_of_the_key() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    node.mint("a key that writes, for these tests", Some(&[Scope::Write]));
    node.mint("a key of another one, for these tests", Some(&[Scope::Admin]));
    let writes = "a key that writes, for these tests";
    let mut x = node.connected(writes, "x").await;
    let mut y = node.connected(writes, "y").await;
    let key = talks(&node, &mut y, &agent, "secret").await;
    assert_eq!(keys(&y.gets("sessions.list", json!({})).await), [&*key]);
    assert_eq!(keys(&x.gets("sessions.list", json!({})).await), Vec::<String>::new());
    for method in ["chat.history", "chat.session.status"] {
        let no = x.refused(method, json!({"sessionKey": key})).await;
        assert_eq!(no.0, "UNAUTHORIZED", "{method}");
    }
    for method in ["sessions.preview", "sessions.reset", "sessions.delete"] {
        assert_eq!(x.refused(method, json!({"key": key})).await.0, "UNAUTHORIZED", "{method}");
    }
    let params = json!({"sessionKey": key, "message": "me too"});
    assert_eq!(x.refused("chat.send", params.clone()).await.0, "UNAUTHORIZED");
    assert_eq!(x.refused("chat.inject", params).await.0, "UNAUTHORIZED");
    // Another key sees nothing at all, whatever it may do.
    let mut other = node.connected("a key of another one, for these tests", "y").await;
    assert_eq!(keys(&other.gets("sessions.list", json!({})).await), Vec::<String>::new());
    assert_eq!(other.gets("chat.history", json!({"sessionKey": key})).await["messages"], json!([]));
    assert_eq!(other.refused("sessions.preview", json!({"key": key})).await.0, "NOT_FOUND");
    node.stop().await;
}

#[tokio::test]
async fn an_administrator_of_a_key_reads_and_writes_in_the_sessions_of_its_users() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut y = node.connected(KEY, "y").await;
    let key = talks(&node, &mut y, &agent, "theirs").await;
    let mut boss = node.connected(KEY, "boss").await;
    assert_eq!(keys(&boss.gets("sessions.list", json!({})).await), [&*key]);
    let history = boss.gets("chat.history", json!({"sessionKey": key})).await;
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
    let params = json!({"sessionKey": key, "message": "from above"});
    boss.gets("chat.inject", params).await;
    let said = agent.hears(&node, "from above").await;
    assert!(said.said.agent.ends_with("-y"), "in the name of the user");
    node.stop().await;
}

#[tokio::test]
async fn a_session_is_labelled_begun_anew_and_hidden_and_its_agent_keeps_what_was_said() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = talks(&node, &mut client, &agent, "one").await;
    while client.events.len() < 3 {
        let event = client.hear().await;
        client.events.push_back(event);
    }
    client.events.clear();
    let params = json!({"key": key, "label": "Sheep", "metadata": {"a": 1}});
    let patched = client.gets("sessions.patch", params).await;
    assert_eq!(patched, json!({"ok": true, "key": key}));
    let told = client.event().await;
    assert_eq!(told["event"], "session.updated");
    assert_eq!(told["payload"], json!({"sessionKey": key, "label": "Sheep", "userId": "ada"}));
    let row = client.gets("sessions.list", json!({})).await["sessions"][0].clone();
    assert_eq!((&row["label"], &row["metadata"]), (&json!("Sheep"), &json!({"a": 1})));
    let long = json!({"key": key, "label": "x".repeat(257)});
    assert_eq!(client.refused("sessions.patch", long).await.0, "INVALID_REQUEST");
    client.gets("sessions.reset", json!({"key": key})).await;
    assert_eq!(
        client.gets("chat.history", json!({"sessionKey": key})).await["messages"],
        json!([])
    );
    assert_eq!(client.gets("sessions.list", json!({})).await["sessions"][0]["messageCount"], 0);
    assert_eq!(agent.heard().await.len(), 2, "the agent has it still");
    client.gets("sessions.delete", json!({"key": key})).await;
    assert_eq!(keys(&client.gets("sessions.list", json!({})).await), Vec::<String>::new());
    // Something new brings it back, without what was before.
    client.gets("chat.inject", json!({"sessionKey": key, "message": "again"})).await;
    let list = client.gets("sessions.list", json!({})).await;
    assert_eq!((keys(&list), &list["sessions"][0]["messageCount"]), (vec![key], &json!(1)));
    let room = format!("room:{}", lobby().to_uuid());
    let refused = client.refused("sessions.delete", json!({"key": room})).await;
    assert_eq!(refused, ("INVALID_REQUEST".to_owned(), "use teams.delete".to_owned()));
    node.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_of_another_session_is_not_believed() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = talks(&node, &mut client, &agent, "one").await;
    let asked = agent.hears(&node, "hi from one").await;
    let say = Say {
        metadata: Some(json!({"session": "agent:cy:ws:direct:one"}).to_string()),
        expects_reply: Some(false),
        ..Say::chat(asked.room, "by myself".to_owned())
    };
    node.bridge.desk().ask(&agent.visitor, say).await.unwrap();
    let mut found = keys(&client.gets("sessions.list", json!({})).await);
    found.sort();
    assert_eq!(found, ["agent:bob:mesh:direct".to_owned(), key]);
    node.stop().await;
}

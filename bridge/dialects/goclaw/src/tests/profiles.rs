//! Agents that people make, their profiles, usage, and webhooks.

use bridge::seam::call::SetProfile;
use mesh::records::profile::{Card, ProfileUpdate};

use super::*;

#[tokio::test]
async fn an_agent_is_made_offline_and_comes_with_its_key() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut client = node.owner().await;
    let made = json!({"name": "Alice Bot", "emoji": "🦀", "provider": "p", "model": "m-1"});
    let result = client.gets("agents.create", made.clone()).await;
    assert_eq!((&result["agentId"], &result["ok"]), (&json!("alice-bot"), &json!(true)));
    assert!(result["note"].as_str().unwrap().contains("offline until"));
    let told = client.event().await;
    assert_eq!(told["payload"]["changes"], json!(["name", "emoji", "provider", "model"]));
    let list = client.gets("agents.list", json!({})).await;
    let row = &list["agents"][0];
    let expect = json!({
        "id": "alice-bot", "name": "Alice Bot", "emoji": "🦀", "model": "m-1", "status": "offline",
        "online": false, "agentType": "open",
    });
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(row[name], *value, "{name}");
    }
    assert_eq!(client.refused("agents.create", made).await.0, "ALREADY_EXISTS");
    for name in ["default", "!!"] {
        assert_eq!(
            client.refused("agents.create", json!({"name": name})).await.0,
            "INVALID_REQUEST"
        );
    }
    let no = client.refused("chat.send", json!({"agentId": "alice-bot", "message": "hi"})).await;
    assert_eq!(no.0, "UNAVAILABLE");
    // Another key cannot have the id, nor change the profile.
    let mut other = node.connected(MINTED, "eve").await;
    assert_eq!(
        other.refused("agents.create", json!({"name": "Alice Bot"})).await.0,
        "ALREADY_EXISTS"
    );
    let change = json!({"agentId": "alice-bot", "name": "Eve"});
    assert_eq!(other.refused("agents.update", change).await.0, "UNAUTHORIZED");
    // It comes, and is changed while it is there.
    let agent = node.agent("alice-bot", KEY).await;
    let change = json!({"agent_key": "alice-bot", "model": "m-2", "agent_description": "helps", "emoji": ""});
    client.gets("agents.update", change).await;
    let told = client.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["agentId"]),
        (&json!("agent.updated"), &json!("alice-bot"))
    );
    assert_eq!(told["payload"]["changes"], json!(["description", "emoji", "model"]));
    let row = client.gets("agent", json!({"agentId": "alice-bot"})).await;
    assert_eq!(
        (&row["model"], &row["description"], &row["online"]),
        (&json!("m-2"), &json!("helps"), &json!(true))
    );
    assert_eq!(row.get("emoji"), None, "an empty text deletes it");
    let params = json!({"agentId": "alice-bot", "status": "retired"});
    assert_eq!(client.refused("agents.update", params).await.0, "INVALID_REQUEST");
    drop(agent);
    node.stop().await;
}

#[tokio::test]
async fn a_card_of_an_own_agent_is_changed_and_others_are_not() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let agent = node.agent("bob", KEY).await;
    let card = Card {
        name: "counting".to_owned(),
        text: "counts sheep\nslowly".to_owned(),
        tags: Vec::new(),
        visibility: None,
    };
    let update = ProfileUpdate { fields: Vec::new(), cards: Some(vec![card]) };
    node.bridge.desk().ask(&agent.visitor, SetProfile(update)).await.unwrap();
    let mut client = node.owner().await;
    let params =
        json!({"name": "counting", "updates": {"description": "counts goats", "tags": ["a"]}});
    let mut other = node.connected(MINTED, "eve").await;
    assert_eq!(other.refused("skills.update", params.clone()).await.0, "NOT_FOUND");
    assert_eq!(client.gets("skills.update", params).await, json!({"ok": "true"}));
    let skill = client.gets("skills.get", json!({"name": "counting"})).await;
    assert_eq!(
        (&skill["content"], &skill["tags"]),
        (&json!("counts goats\nslowly"), &json!(["a"]))
    );
    assert_eq!(client.refused("skills.update", json!({"name": "sheep"})).await.0, "NOT_FOUND");
    node.stop().await;
}

#[tokio::test]
async fn usage_is_what_agents_reported_to_the_user_or_the_administrator() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    assert_eq!(
        client.gets("usage.summary", json!({})).await,
        json!({"byAgent": {}, "totalRecords": 0})
    );
    for (n, text) in ["one", "two"].into_iter().enumerate() {
        let params =
            json!({"agentId": "bob", "sessionKey": "agent:bob:ws:direct:x", "message": text});
        let id = client.begin("chat.send", params).await;
        let asked = agent.hears(&node, text).await;
        let usage = json!({"usage": {"prompt_tokens": 3, "completion_tokens": n}, "model": "m", "provider": "p"});
        agent.says(asked.room, "so", &asked, Some(usage)).await;
        client.answer(&id).await.unwrap();
    }
    let page = client.gets("usage.get", json!({"limit": 1})).await;
    assert_eq!((&page["total"], page["records"].as_array().unwrap().len()), (&json!(2), 1));
    let expect = json!({
        "agentId": "bob", "sessionKey": "agent:bob:ws:direct:x", "model": "m", "provider": "p",
        "inputTokens": 3, "outputTokens": 1, "totalTokens": 4,
    });
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(page["records"][0][name], *value, "{name}");
    }
    let sum = client.gets("usage.summary", json!({})).await;
    assert_eq!(
        sum["byAgent"]["bob"],
        json!({"inputTokens": 6, "outputTokens": 1, "totalTokens": 7, "sessions": 1})
    );
    let quota = client.gets("quota.usage", json!({})).await;
    assert_eq!(
        (&quota["requestsToday"], &quota["enabled"]),
        (&json!(2), &json!(false)),
        "the owner has no limit"
    );
    assert_eq!(quota["entries"][0]["userId"], "ada");
    assert_eq!(quota["entries"][0]["hour"], json!({"used": 2, "limit": 0}));
    // Of another key's users nobody is told.
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut other = node.connected(MINTED, "eve").await;
    assert_eq!(other.gets("usage.get", json!({})).await["total"], 0);
    node.stop().await;
}

#[tokio::test]
async fn webhooks_are_instances_of_a_channel() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    let list = client.gets("channels.list", json!({})).await;
    assert_eq!(list["channels"], json!(["clawchat", "goclaw", "mesh", "webhook"]));
    let status = client.gets("channels.status", json!({})).await;
    assert_eq!(status["channels"]["webhook"]["state"], "healthy");
    let make = |url: &str| {
        json!({
            "name": "ci", "channel_type": "webhook", "config": {"room_id": "lobby", "url": url, "kinds": ["x"]},
            "credentials": {"secret": "a secret of some length"},
        })
    };
    let made = client.gets("channels.instances.create", make("https://1.1.1.1/hook")).await;
    let id = made["id"].as_str().unwrap().to_owned();
    let row = client.gets("channels.instances.get", json!({"id": id})).await;
    assert_eq!((&row["name"], &row["channel_type"]), (&json!("ci"), &json!("webhook")));
    assert_eq!(row["credentials"], json!({"secret": "***"}));
    assert_eq!(row["config"]["kinds"], json!(["x"]));
    let patch = json!({"id": id, "updates": {"display_name": "Builds"}});
    assert_eq!(client.gets("channels.instances.update", patch).await["status"], "updated");
    let all = client.gets("channels.instances.list", json!({})).await;
    assert_eq!(all["instances"][0]["display_name"], "Builds");
    for (bad, text) in [
        (make("nonsense"), "url must"),
        (json!({"name": "t", "channel_type": "telegram"}), "no channel of type telegram"),
        (json!({"name": "t", "channel_type": "peer"}), "peers come by ticket"),
    ] {
        let no = client.refused("channels.instances.create", bad).await;
        assert!(no.0 == "INVALID_REQUEST" && no.1.contains(text), "{no:?}");
    }
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut other = node.connected(MINTED, "eve").await;
    assert_eq!(other.gets("channels.instances.list", json!({})).await, json!({"instances": []}));
    assert_eq!(other.refused("channels.instances.delete", json!({"id": id})).await.0, "NOT_FOUND");
    assert_eq!(
        client.gets("channels.instances.delete", json!({"id": id})).await["status"],
        "deleted"
    );
    assert_eq!(client.refused("channels.instances.get", json!({"id": id})).await.0, "NOT_FOUND");
    node.stop().await;
}

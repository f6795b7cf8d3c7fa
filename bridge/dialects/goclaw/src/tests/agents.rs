//! Agents, as people look at them.

use bridge::seam::call::{ListDescribed, SetPresence, SetProfile};
use mesh::{
    records::profile::{Card, Field, ProfileUpdate},
    wire::roster::{Presence, Status},
};

use super::*;

/// Bob has a profile; Cy is another key's, and has none.
async fn two(node: &Node) -> (Agent, Agent) {
    node.mint(MINTED, None);
    let (bob, cy) = (node.agent("bob", KEY).await, node.agent("c:y", MINTED).await);
    let field = |field, text: &str| (field, Some(text.to_owned()));
    let card = Card {
        name: "Shear sheep".to_owned(),
        text: "All kinds.\nAlso black ones.".to_owned(),
        tags: vec!["wool".to_owned()],
        visibility: Some("public".to_owned()),
    };
    let fields = vec![
        field(Field::Name, "Bob the Builder"),
        field(Field::Emoji, "🐑"),
        field(Field::Provider, "acme"),
        field(Field::Model, "m-1"),
    ];
    let update = ProfileUpdate { fields, cards: Some(vec![card]) };
    node.bridge.desk().ask(&bob.visitor, SetProfile(update)).await.unwrap();
    (bob, cy)
}

#[tokio::test]
async fn agents_of_all_keys_are_listed_with_all_that_is_known_of_them() {
    let node = Node::new().await;
    let (bob, _cy) = two(&node).await;
    let mut client = node.owner().await;
    let list = client.gets("agents.list", json!({})).await;
    let rows = list["agents"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{list}");
    let expect = json!({
        "id": "bob", "key": "bob", "agent_key": "bob", "uuid": crate::names::uuid_of("bob"),
        "name": "Bob the Builder", "display_name": "Bob the Builder", "emoji": "🐑",
        "provider": "acme", "model": "m-1", "agentType": "open", "agent_type": "open",
        "status": "active", "isRunning": false, "capabilities": ["sheep"], "online": true, "own": true,
    });
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(rows[0][name], *value, "{name}");
    }
    assert_eq!((&rows[1]["id"], &rows[1]["own"]), (&json!("c:y"), &json!(false)));
    assert_eq!((&rows[1]["model"], &rows[1]["avatar"]), (&json!(""), &Value::Null));
    // By its id, its UUID, or its name.
    for named in ["bob", &crate::names::uuid_of("bob"), "Bob the Builder"] {
        assert_eq!(client.gets("agent", json!({"agent_id": named})).await["id"], "bob", "{named}");
    }
    let identity =
        client.gets("agent.identity.get", json!({"sessionKey": "agent:c%3Ay:ws:direct:x"})).await;
    assert_eq!(identity, json!({"agentId": "c:y", "name": "c:y"}));
    let missing = client.refused("agent", json!({"agentId": "nobody"})).await;
    assert_eq!(missing, ("NOT_FOUND".to_owned(), "agent not found: nobody".to_owned()));
    let busy = Presence { status: Status::Thinking, detail: None, progress: None };
    node.bridge.desk().ask(&bob.visitor, SetPresence(busy)).await.unwrap();
    assert_eq!(client.gets("agent", json!({"agentId": "bob"})).await["isRunning"], true);
    node.fake.detach("bob", Vec::new());
    let one = client.gets("agent", json!({"agentId": "bob"})).await;
    assert_eq!(
        (&one["status"], &one["online"], &one["emoji"]),
        (&json!("offline"), &json!(false), &json!("🐑"))
    );
    let status = client.gets("status", json!({})).await;
    assert_eq!((&status["agentTotal"], &status["clients"]), (&json!(1), &json!(1)));
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_away_is_listed_for_all_if_it_has_a_profile_that_shows() {
    let node = Node::new().await;
    let (bob, cy) = two(&node).await;
    let mut other = node.connected(MINTED, "eve").await;
    let listed = async |client: &mut Client| {
        let list = client.gets("agents.list", json!({})).await;
        let rows = list["agents"].as_array().unwrap().clone();
        let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
        rows.iter().map(|row| (id(row), row["status"] == "active")).collect::<Vec<_>>()
    };
    assert_eq!(listed(&mut other).await, [("bob".to_owned(), true), ("c:y".to_owned(), true)]);
    drop((bob, cy));
    node.fake.detach("bob", Vec::new());
    node.fake.detach("c:y", Vec::new());
    assert_eq!(listed(&mut other).await, [("bob".to_owned(), false)], "the other has no profile");
    let mut owner = node.owner().await;
    owner.gets("agents.delete", json!({"agentId": "bob"})).await;
    assert_eq!(listed(&mut other).await, [], "it has retired");
    let all = ListDescribed { limit: 9 };
    assert!(node.bridge.desk().ask(&Visitor::stranger(), all).await.unwrap().is_empty());
    node.stop().await;
}

#[tokio::test]
async fn a_name_that_two_agents_have_is_nobodys() {
    let node = Node::new().await;
    let (_bob, cy) = two(&node).await;
    let name = vec![(Field::Name, Some("Bob the Builder".to_owned()))];
    let update = ProfileUpdate { fields: name, cards: None };
    node.bridge.desk().ask(&cy.visitor, SetProfile(update)).await.unwrap();
    let mut client = node.owner().await;
    let (code, text) = client.refused("agent", json!({"agentId": "Bob the Builder"})).await;
    assert_eq!(code, "INVALID_REQUEST");
    assert!(text.ends_with("use one of bob, c:y"), "{text}");
    node.stop().await;
}

#[tokio::test]
async fn a_wait_ends_when_the_run_does_and_at_once_for_an_agent_that_is_away() {
    let node = Node::new().await;
    let (bob, _cy) = two(&node).await;
    let mut client = node.owner().await;
    let idle = client.gets("agent.wait", json!({"agentId": "bob"})).await;
    assert_eq!((&idle["id"], &idle["status"]), (&json!("bob"), &json!("idle")));
    let send = client.begin("chat.send", json!({"agentId": "bob", "message": "hi"})).await;
    let asked = bob.hears(&node, "hi").await;
    let mut other = node.owner().await;
    let late = other.gets("agent.wait", json!({"agentId": "bob", "timeout": 50})).await;
    assert_eq!(late["status"], "running");
    let wait = other.begin("agent.wait", json!({"agentId": "bob"})).await;
    bob.answers(&asked, "ho").await;
    client.answer(&send).await.unwrap();
    assert_eq!(other.answer(&wait).await.unwrap()["status"], "idle");
    node.fake.detach("bob", Vec::new());
    assert_eq!(client.gets("agent.wait", json!({"agentId": "bob"})).await["status"], "offline");
    node.stop().await;
}

#[tokio::test]
async fn skills_are_the_cards_of_agents_and_the_words_that_they_registered_with() {
    let node = Node::new().await;
    two(&node).await;
    let mut client = node.owner().await;
    let list = client.gets("skills.list", json!({})).await;
    let names: Vec<&str> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Shear sheep", "sheep"]);
    let card = &list["skills"][0];
    assert_eq!(
        (&card["slug"], &card["description"]),
        (&json!("shear-sheep"), &json!("All kinds."))
    );
    assert_eq!((&card["agents"], &card["tags"]), (&json!(["bob"]), &json!(["wool"])));
    assert_eq!((&card["enabled"], &card["visibility"]), (&json!(true), &json!("public")));
    assert_eq!(list["skills"][1]["source"], "bob, c:y");
    let one = client.gets("skills.get", json!({"name": "shear-sheep"})).await;
    assert_eq!(one["content"], "All kinds.\nAlso black ones.");
    let word = client.gets("skills.get", json!({"name": "sheep"})).await;
    assert!(word["content"].as_str().unwrap().contains("- c:y"), "{word}");
    assert_eq!(client.refused("skills.get", json!({"name": "x"})).await.0, "NOT_FOUND");
    let models = client.gets("providers.models", json!({})).await;
    assert_eq!(models, json!({"models": [{"id": "m-1", "provider": "acme", "agents": ["bob"]}]}));
    node.stop().await;
}

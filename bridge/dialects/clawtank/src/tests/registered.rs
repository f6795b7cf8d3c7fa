//! Agents.

use bridge::seam::call::{DescribeRoom, ElectLeader, GetProfile, ListAgents, Say};

use super::*;

#[tokio::test]
async fn an_agent_registers_and_is_told_of_members_of_all_dialects() {
    let node = Node::new().await;
    node.other("eve").await;
    let mut ada = node.person("ada").await;
    let mut agent = node.bare().await;
    agent.connect("agent", KEY, "owner", Some("lobby")).await;
    let early = agent.refused("chat.agent_message", super::chat::words("too early")).await;
    assert_eq!(early, no("AUTHORIZATION_DENIED", "not registered"));
    let registered = agent.register("bob").await;
    assert_eq!(registered["registration_status"], "success");
    let members = registered["room_context"]["current_members"].as_array().unwrap();
    let who = |member: &Value| {
        (
            member["display_name"].as_str().unwrap().to_owned(),
            member["type"].as_str().unwrap().to_owned(),
        )
    };
    let all: BTreeSet<_> = members.iter().map(who).collect();
    let expect = [("ada", "human"), ("BOB", "agent"), ("eve", "agent")];
    assert_eq!(all, expect.map(|(name, kind)| (name.to_owned(), kind.to_owned())).into());
    let joined = ada.hears("room.agent_joined").await;
    let data = &joined["data"];
    assert_eq!(data["agent"]["agent_id"], "bob");
    assert_eq!(data["agent"]["capabilities"], json!(["code_review", "singing", "lang:rust"]));
    assert_eq!(data["agent"]["model_info"]["model_name"], "claude");
    assert_eq!(data["introduction"]["message"], "BOB joined.");
    assert_eq!(data["room_state"]["human_members"], 1);
    assert_eq!(data["room_state"]["agent_members"], 2);
    // The owner is the holder of the key, whatever was said.
    assert_ne!(data["agent"]["owner"]["display_name"], "somebody else");
    let eve = node.other("eve").await;
    let known = node.asks(&eve, ListAgents { room: Some(lobby()) }).await;
    let bob = known.iter().find(|agent| &*agent.agent == "bob").unwrap();
    assert_eq!(bob.capabilities, ["code_review", "singing", "lang:rust"]);
    let profile = node.asks(&eve, GetProfile("bob".into())).await.profile;
    assert_eq!(profile.fields.len(), 2, "{profile:?}");
    node.stop().await;
}

#[tokio::test]
async fn an_id_is_its_keys_and_the_newest_connection_has_it() {
    let node = Node::new().await;
    node.mint(MINTED, None, None);
    let mut first = node.agent("bob").await;
    let mut ada = node.person("ada").await;
    let mut thief = node.bare().await;
    thief.connect("agent", MINTED, "x", Some("lobby")).await;
    let refused = thief.ask("agent.register", introduction("bob")).await;
    assert_eq!(why(&refused), no("RESOURCE_CONFLICT", "agent_id_taken"));
    let mut second = node.bare().await;
    second.connect("agent", KEY, "owner", Some("lobby")).await;
    second.register("bob").await;
    assert_eq!(first.ends().await, 1008);
    second.gets("chat.agent_message", super::chat::words("here I am")).await;
    ada.hears("chat.agent_message").await;
    let left = |frame: &Value| frame["type"] == "room.agent_left";
    assert!(!ada.rest().await.iter().any(left), "nobody is told that it left");
    let other = second.refused("agent.register", introduction("carl")).await;
    assert_eq!(other, no("RESOURCE_CONFLICT", "data.agent_id"));
    second.register("bob").await;
    node.stop().await;
}

#[tokio::test]
async fn members_are_told_who_has_gone() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let agent = node.agent("bob").await;
    ada.hears("room.agent_joined").await;
    drop(agent);
    let left = ada.hears("room.agent_left").await;
    assert_eq!(left["data"]["agent"]["agent_id"], "bob");
    assert_eq!(left["data"]["leave_reason"], "connection_lost");
    assert_eq!(left["data"]["room_state"]["agent_members"], 0);
    let mut agent = node.agent("bob").await;
    let back = ada.hears("room.agent_joined").await;
    assert_eq!(back["data"]["introduction"]["message"], "BOB is back.");
    // People come and go, too, for those who know a word for it.
    let bo = node.person("Bo").await;
    let came = agent.hears("extension.room_member").await;
    let payload = &came["data"]["payload"];
    assert_eq!((&payload["display_name"], &payload["joined"]), (&json!("Bo"), &json!(true)));
    drop(bo);
    let went = agent.hears("extension.room_member").await;
    assert_eq!(went["data"]["payload"]["joined"], false);
    node.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_of_itself_is_judged_by_the_schema() {
    let node = Node::new().await;
    let mut agent = node.bare().await;
    agent.connect("agent", KEY, "owner", None).await;
    let with = |name: &str, value: Value| {
        let mut own = introduction("bob");
        own[name] = value;
        own
    };
    for (name, value, field) in [
        ("agent_name", json!("x".repeat(51)), "data.agent_name"),
        ("agent_id", json!(""), "data.agent_id"),
        ("model_info", json!({"provider": "x"}), "data.model_info.model_name"),
        ("owner_info", Value::Null, "data.owner_info"),
        ("agent_capabilities", json!("x"), "data.agent_capabilities"),
        ("agent_id", json!("u-0123456789abcdef-ada"), "data.agent_id"),
    ] {
        let refused = agent.refused("agent.register", with(name, value)).await;
        assert_eq!(refused, no("VALIDATION_FAILED", field), "{name}");
    }
    let mut human = node.person("ada").await;
    let refused = human.refused("agent.register", introduction("bob")).await;
    assert_eq!(refused.0, "AUTHORIZATION_DENIED");
    node.stop().await;
}

/// Nobody of another dialect waits for those who know no turns.
#[tokio::test]
async fn seats_of_this_dialect_are_guests() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let mut bob = node.agent("bob").await;
    let eve = node.other("eve").await;
    ada.gets("chat.human_message", super::chat::words("hi")).await;
    bob.gets("chat.agent_message", super::chat::words("ho")).await;
    let info = node.asks(&eve, DescribeRoom(lobby())).await;
    assert_eq!(info.turn.as_deref(), Some("eve"));
    let guests = info.agents.iter().map(|agent| agent.guest).collect::<Vec<_>>();
    assert_eq!(guests, [true, true, false]);
    node.asks(&eve, Say::chat(lobby(), "I".to_owned())).await;
    let info = node.asks(&eve, DescribeRoom(lobby())).await;
    assert_eq!(info.turn.as_deref(), Some("eve"));
    let candidates = node.asks(&eve, ElectLeader(lobby())).await;
    assert_eq!(candidates.iter().map(|agent| &**agent).collect::<Vec<_>>(), ["eve"]);
    node.stop().await;
}

#[tokio::test]
async fn signs_of_life_of_an_agent_that_is_stopped_are_answered_and_tell_nobody() {
    use bridge::seam::call::StopAgents;
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut bob = node.agent("bob").await;
    let beat =
        json!({"status": "active", "current_activity": {"type": "testing", "progress": 0.4}});
    let stop = StopAgents { agent: Some("bob".into()), by: Some("ada".to_owned()) };
    node.asks(&eve, stop).await;
    let said = bob.refused("chat.agent_message", super::chat::words("still here")).await;
    assert_eq!(said.0, "AUTHORIZATION_DENIED");
    let answer = bob.gets("connection.heartbeat", beat.clone()).await;
    assert_eq!(answer["status"], "active");
    let known = node.asks(&eve, ListAgents { room: Some(lobby()) }).await;
    let status = |known: &[mesh::api::command::AgentView]| {
        known.iter().find(|agent| &*agent.agent == "bob").unwrap().presence.progress
    };
    assert_eq!(status(&known), None);
    node.asks(&eve, StopAgents { agent: Some("bob".into()), by: None }).await;
    bob.gets("connection.heartbeat", beat).await;
    let known = node.asks(&eve, ListAgents { room: Some(lobby()) }).await;
    assert_eq!(status(&known), Some(40));
    node.stop().await;
}

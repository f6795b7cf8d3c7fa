//! What is told of records, whoever wrote them.

use bridge::seam::call::{CreateRoom, SetProfile, SetRoom};
use mesh::{
    api::command::NewRoom,
    records::{
        details::DetailsUpdate,
        profile::{Card, Field, ProfileUpdate},
    },
};

use super::*;

/// Another one's.
const SECOND: &str = "a minted key of another one, for tests";

#[tokio::test]
async fn a_room_that_is_changed_over_another_dialect_is_told_to_those_who_hear_of_its_team() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let bob = node.agent("bob", KEY).await;
    let (mut client, mut other) = (node.owner().await, node.connected(MINTED, "eve").await);
    for (name, public) in [("shed", false), ("meadow", true)] {
        let new = NewRoom {
            name: name.to_owned(),
            description: None,
            parent: None,
            ephemeral: false,
            public,
            encrypted: false,
        };
        let desk = node.bridge.desk();
        let room = desk.ask(&bob.visitor, CreateRoom(new)).await.unwrap().room;
        let update = DetailsUpdate {
            title: Some(Some(format!("The {name}"))),
            settings: vec![("lang".to_owned(), Some("1".to_owned()))],
            ..DetailsUpdate::default()
        };
        desk.ask(&bob.visitor, SetRoom { room, update }).await.unwrap();
        assert_eq!(client.event().await["event"], "team.created");
        let told = client.event().await;
        let payload = json!({
            "team_id": room.to_uuid(), "team_name": format!("The {name}"), "member_count": 0,
            "changes": ["name", "settings.lang"],
        });
        assert_eq!((&told["event"], &told["payload"]), (&json!("team.updated"), &payload));
        if public {
            assert_eq!(other.event().await["event"], "team.created");
            assert_eq!(other.event().await["payload"], payload, "and nothing of the shed");
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_of_itself_over_another_dialect_is_told_to_all() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Read]));
    let bob = node.agent("bob", KEY).await;
    let mut viewer = node.connected(MINTED, "eve").await;
    let card = Card {
        name: "dig".to_owned(),
        text: "digs".to_owned(),
        tags: Vec::new(),
        visibility: None,
    };
    let model = |model: Option<&str>| (Field::Model, model.map(str::to_owned));
    for (fields, cards, changes) in [
        (vec![model(Some("m"))], Some(vec![card]), json!(["model", "skills"])),
        (vec![model(None)], None, json!(["model"])),
    ] {
        let update = ProfileUpdate { fields, cards };
        node.bridge.desk().ask(&bob.visitor, SetProfile(update)).await.unwrap();
        let told = viewer.event().await;
        let payload =
            json!({"agentId": "bob", "agent_key": "bob", "name": "bob", "changes": changes});
        assert_eq!((&told["event"], &told["payload"]), (&json!("agent.updated"), &payload));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_session_that_is_changed_is_told_to_its_user_everywhere_and_to_administrators() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Write]));
    node.mint(SECOND, Some(&[Scope::Admin]));
    let bob = node.agent("bob", KEY).await;
    let mut client = node.connected(MINTED, "ada").await;
    let key = "agent:bob:ws:direct:one";
    client.gets("chat.inject", json!({"sessionKey": key, "message": "note"})).await;
    bob.hears(&node, "note").await;
    let mut elsewhere = node.connected(MINTED, "ada").await;
    let mut others = [
        node.connected(MINTED, "eve").await,
        node.connected(SECOND, "ada").await,
        node.owner().await,
    ];
    for label in ["Sheep", ""] {
        client.gets("sessions.patch", json!({"key": key, "label": label})).await;
        for told in [client.event().await, elsewhere.event().await] {
            let payload = json!({"sessionKey": key, "label": label, "userId": "ada"});
            assert_eq!((&told["event"], &told["payload"]), (&json!("session.updated"), &payload));
        }
    }
    let list = client.gets("sessions.list", json!({})).await;
    assert_eq!(list["sessions"][0]["label"], "");
    // What others are told next is nothing of it.
    let update = ProfileUpdate { fields: vec![(Field::Model, Some("m".into()))], cards: None };
    node.bridge.desk().ask(&bob.visitor, SetProfile(update)).await.unwrap();
    for other in &mut others {
        assert_eq!(other.event().await["event"], "agent.updated");
    }
    node.stop().await;
}

//! Rooms.

use bridge::seam::call::Say;

use super::*;

const ROOM: &str = "clawmesh.room";

impl Client {
    async fn room(&mut self, kind: &str, payload: Value) -> Value {
        self.extends(ROOM, kind, payload).await
    }
}

#[tokio::test]
async fn a_room_is_made_told_of_changed_and_closed() {
    let node = Node::new().await;
    let (mut ada, mut bo) = (node.person("ada").await, node.person("bo").await);
    let config = json!({"config": {
        "name": "todo", "description": "a list",
        "settings": {"max_members": 3, "require_approval": true},
        "project_info": {
            "repository": "https://example.org/todo", "primary_language": "rust", "frameworks": [],
        },
    }});
    let made = ada.room("extension.room_create", config.clone()).await;
    assert_eq!(made["type"], "room.created", "{made}");
    let room = made["data"]["room"].clone();
    assert_eq!((&room["settings"]["max_members"], &room["state"]), (&json!(3), &json!("active")));
    let id = room["room_id"].clone();
    let told = bo.hears("room.created").await;
    assert_eq!(told["data"]["room"]["room_id"], id);
    let taken = ada.room("extension.room_create", config).await;
    assert_eq!(why(&taken), no("RESOURCE_CONFLICT", "name_taken"));
    let odd = json!({"config": {"name": "odd", "settings": {"claim_strategy": "auction"}}});
    let odd = ada.room("extension.room_create", odd).await;
    assert_eq!(why(&odd), no("VALIDATION_FAILED", "data.payload.config.settings.claim_strategy"));
    let list = bo.room("extension.room_list", json!({})).await;
    let rooms = list["data"]["payload"]["rooms"].as_array().unwrap();
    assert!(rooms.iter().any(|room| room["room_id"] == id && room["description"] == "a list"));
    let joined = bo.room("extension.room_join", json!({"room_id": id})).await;
    assert_eq!(joined["type"], "connection.ack");
    let changed =
        ada.room("extension.room_update", json!({"room_id": id, "state": "archived"})).await;
    assert_eq!(changed["data"]["payload"]["room"]["state"], "archived", "{changed}");
    let mut late = super::chat::words("too late");
    late["room_id"] = id.clone();
    assert_eq!(
        bo.refused("chat.human_message", late).await,
        no("RESOURCE_CONFLICT", "room_archived")
    );
    let left = bo.room("extension.room_leave", json!({"room_id": id})).await;
    assert_eq!(left["type"], "extension.room_left", "{left}");
    let late = bo.room("extension.room_join", json!({"room_id": id})).await;
    assert_eq!(late["type"], "connection.ack");
    let late = bo.hears("error").await;
    assert_eq!(why(&late), no("RESOURCE_CONFLICT", "room_archived"));
    let closed = ada.room("extension.room_close", json!({"room_id": id})).await;
    assert_eq!(closed["type"], "extension.room_closed", "{closed}");
    node.stop().await;
}

#[tokio::test]
async fn a_newcomer_is_given_what_was_said_and_pages_go_back() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    for n in 0..60 {
        node.asks(&eve, Say::chat(lobby(), format!("{n}"))).await;
    }
    let mut ada = node.person("ada").await;
    let replayed = ada.rest().await;
    assert_eq!(replayed.len(), 50);
    let text = |frame: &Value| frame["data"]["content"]["text"].as_str().unwrap().to_owned();
    assert!(replayed.iter().all(|frame| frame["metadata"]["replayed"] == true));
    assert_eq!((text(&replayed[0]), text(&replayed[49])), ("10".to_owned(), "59".to_owned()));
    let before = replayed[0]["timestamp"].clone();
    let page = json!({"room_id": "lobby", "before": before, "limit": 200});
    let page = ada.room("extension.room_history", page).await;
    let payload = &page["data"]["payload"];
    let events = payload["events"].as_array().unwrap();
    assert_eq!((events.len(), &payload["more"]), (10, &json!(false)));
    let texts: Vec<String> = events.iter().map(text).collect();
    assert_eq!(texts, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    let page = json!({"room_id": "lobby", "limit": 7});
    let page = ada.room("extension.room_history", page).await;
    let payload = &page["data"]["payload"];
    assert_eq!((payload["events"].as_array().unwrap().len(), &payload["more"]), (7, &json!(true)));
    node.stop().await;
}

#[tokio::test]
async fn one_connection_is_in_several_rooms_and_full_rooms_take_nobody() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let config = json!({"config": {"name": "small", "settings": {"max_members": 1}}});
    let made = ada.room("extension.room_create", config).await;
    let id = made["data"]["room"]["room_id"].as_str().unwrap().to_owned();
    let ack = ada.connect("human", KEY, "ada", Some(&id)).await;
    assert_eq!(ack["connection_id"].as_str().map(str::len), Some(26));
    let mut own = super::chat::words("in here");
    own["room_id"] = json!(id);
    ada.gets("chat.human_message", own).await;
    let mut bo = node.bare().await;
    bo.connect("human", KEY, "bo", Some(&id)).await;
    let error = bo.hears("error").await;
    assert_eq!(why(&error), no("RESOURCE_CONFLICT", "room_full"));
    let other = ada.refused("connection.request", request("agent", Some(KEY), "x", None)).await;
    assert_eq!(other, no("VALIDATION_FAILED", "data.client_type"));
    node.stop().await;
}

//! Runs: answers as they are written, and requests that nobody waits for any more.

use bridge::seam::call::{OpenDirect, Say};
use mesh::wire::piece::PieceKind;

use super::*;

const RUN: &str = "clawmesh.run";

/// A message to one alone.
fn only(agent: &str) -> Value {
    let mut data = super::chat::words(&format!("@{agent} count"));
    data["visibility"] = json!("private");
    data["content"]["mentions"] = json!([{
        "type": "agent", "target": agent, "display_name": agent, "start_pos": 0, "end_pos": 3,
    }]);
    data
}

fn chunk(reply_to: &Value, kind: &str) -> Value {
    json!({"reply_to": reply_to, "kind": kind, "content": "so far", "tool": "counter", "input": {"n": 7}})
}

#[tokio::test]
async fn an_agent_tells_how_its_answer_goes_and_hears_that_nobody_waits() {
    let node = Node::new().await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut carl = node.agent("car").await;
    let principal = names::principal(bridge::testing::own_key(), "ada");
    let me = node.bridge.desk().attached(&principal, bridge::testing::own_key()).unwrap();
    ada.gets("chat.human_message", only("bob")).await;
    let asked = bob.find(|frame| frame["data"]["visibility"] == "private").await;
    let id = asked["data"]["message_id"].clone();
    let direct = node.asks(&me, OpenDirect::with("bob")).await.room;
    let mut pieces = node.bridge.desk().hear_pieces(&me, direct).unwrap();
    for (kind, expect) in [("chunk", PieceKind::Chunk), ("tool_call", PieceKind::ToolCall)] {
        let payload = chunk(&id, kind);
        let data = json!({"namespace": RUN, "extension_version": "1.0.0", "payload": payload});
        bob.say("extension.stream", data).await;
        let piece = timeout(PATIENCE, pieces.next()).await.unwrap();
        assert_eq!((piece.kind, piece.content.as_deref()), (expect, Some("so far")));
        assert_eq!(piece.input.as_deref(), Some(r#"{"n":7}"#));
        let uuid = RoomId(ids::parse(id.as_str().unwrap()).unwrap()).to_uuid();
        assert_eq!(piece.reply_to.as_deref(), Some(&*uuid));
    }
    assert!(bob.rest().await.iter().all(|frame| frame["type"] != "extension.stream"));
    let unknown = bob.extends(RUN, "extension.stream", chunk(&json!(ulid(7)), "chunk")).await;
    assert_eq!(why(&unknown), no("RESOURCE_NOT_FOUND", "data.payload.reply_to"));
    let odd = bob.extends(RUN, "extension.stream", chunk(&id, "song")).await;
    assert_eq!(why(&odd), no("VALIDATION_FAILED", "data.payload.kind"));
    // One knows the namespace by now, and one does not.
    ada.gets("chat.human_message", only("car")).await;
    let other = carl.find(|frame| frame["data"]["visibility"] == "private").await;
    let none = carl.extends(RUN, "extension.cancel", json!({"run_id": id})).await;
    assert_eq!(why(&none), no("VALIDATION_FAILED", "type"));
    for (agent, asked) in [("bob", &asked), ("car", &other)] {
        let direct = node.asks(&me, OpenDirect::with(agent)).await.room;
        let run = RoomId(ids::parse(asked["data"]["message_id"].as_str().unwrap()).unwrap());
        let give_up = Say {
            reply_to: Some(run.to_uuid()),
            metadata: Some(json!({"kind": "cancel", "expects_reply": false}).to_string()),
            expects_reply: Some(false),
            ..Say::chat(direct, "cancel".to_owned())
        };
        node.asks(&me, give_up).await;
    }
    let told = bob.hears("extension.cancel").await;
    assert_eq!(told["data"]["payload"], json!({"run_id": id, "reason": "cancel"}));
    let told = carl.find(|frame| frame["data"]["content"]["text"] == "cancel").await;
    assert_eq!(told["data"]["content"]["message_type"], "cancel");
    assert_eq!(told["data"]["thread_info"]["reply_to"], other["data"]["message_id"]);
    node.stop().await;
}

#[tokio::test]
async fn an_agent_of_another_key_is_invited_to_a_private_room() {
    let node = Node::new().await;
    node.mint(MINTED, None, None);
    let mut ada = node.person("ada").await;
    let mut mo = node.bare().await;
    mo.connect("agent", MINTED, "o", Some("lobby")).await;
    mo.register("mo").await;
    let config = json!({"config": {"name": "secret", "visibility": "private"}});
    let made = ada.extends("clawmesh.room", "extension.room_create", config).await;
    let id = made["data"]["room"]["room_id"].clone();
    let joins = json!({"room_id": id});
    let early = mo.extends("clawmesh.room", "extension.room_join", joins.clone()).await;
    let early = if early["type"] == "error" { early } else { mo.hears("error").await };
    assert_eq!(why(&early).0, "RESOURCE_NOT_FOUND");
    let nobody = json!({"room_id": id, "agent_id": "nobody"});
    let nobody = ada.extends("clawmesh.room", "extension.room_invite", nobody).await;
    assert_eq!(why(&nobody), no("VALIDATION_FAILED", "data.payload.agent_id"));
    let invites = json!({"room_id": id, "agent_id": "mo"});
    let told = ada.extends("clawmesh.room", "extension.room_invite", invites.clone()).await;
    assert_eq!(told["data"]["payload"], invites, "{told}");
    let joined = mo.extends("clawmesh.room", "extension.room_join", joins).await;
    assert_eq!(joined["type"], "connection.ack", "{joined}");
    let mut words = super::chat::words("here I am");
    words["room_id"] = id;
    mo.gets("chat.agent_message", words).await;
    node.stop().await;
}

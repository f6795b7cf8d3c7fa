//! Messages.

use bridge::seam::call::{From, History, Say};
use mesh::api::command::Speech;

use super::*;

/// The data of a message in the lobby.
pub(super) fn words(text: &str) -> Value {
    json!({
        "message_id": format!("chat_{}", ids::text(bridge::ids::random())),
        "room_id": "lobby",
        "author": {"user_id": ulid(1), "display_name": "somebody else", "type": "human"},
        "content": {"text": text, "formatted_html": "<script>x</script>"},
        "visibility": "public",
    })
}

#[tokio::test]
async fn a_message_is_told_to_all_once_and_its_author_last_of_all_knows_it_is_kept() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("Ada").await, node.agent("bob").await);
    let said = ada.ask("chat.human_message", words("<b>hi</b> all")).await;
    assert_eq!(said["type"], "chat.human_message");
    let data = &said["data"];
    assert_eq!(data["author"]["display_name"], "Ada", "what was sent is replaced");
    assert_eq!(data["content"]["formatted_html"], "&lt;b&gt;hi&lt;/b&gt; all");
    assert_eq!(data["room_id"], ids::text([0; 16]));
    let heard = bob.hears("chat.human_message").await;
    assert_eq!((&heard["id"], &heard["data"]), (&said["id"], data), "the same event");
    let page = History { room: lobby(), from: From::Newest, limit: 10, before_ms: None };
    let kept = node.asks(&eve, page).await.messages;
    assert_eq!(kept.len(), 1);
    assert_eq!((&*kept[0].said.content, &kept[0].said.metadata), ("<b>hi</b> all", &None));
    node.asks(&eve, Say::chat(lobby(), "and I".to_owned())).await;
    for client in [&mut ada, &mut bob] {
        let heard = client.hears("chat.agent_message").await;
        assert_eq!(heard["data"]["agent"]["agent_id"], "eve");
        assert_eq!(heard["data"]["content"]["message_type"], "response");
    }
    for client in [&mut ada, &mut bob] {
        let rest = client.rest().await;
        assert!(rest.iter().all(|frame| !frame["type"].as_str().unwrap().starts_with("chat.")));
    }
    node.stop().await;
}

#[tokio::test]
async fn the_same_frame_is_one_message_and_confirmed_again() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let frame = envelope(&ulid(100), "chat.human_message", &words("once")).to_string();
    let mut confirmed = Vec::new();
    for _ in 0..2 {
        ada.send(&frame).await;
        confirmed.push(ada.answer(&ulid(100)).await);
    }
    assert_eq!(confirmed[0], confirmed[1]);
    // After a connection that was lost, too.
    drop(ada);
    let mut ada = node.person("ada").await;
    ada.send(&frame).await;
    assert_eq!(ada.answer(&ulid(100)).await["data"], confirmed[0]["data"]);
    let page = History { room: lobby(), from: From::Newest, limit: 10, before_ms: None };
    assert_eq!(node.asks(&eve, page).await.messages.len(), 1);
    node.stop().await;
}

#[tokio::test]
async fn mentions_have_a_place_and_a_target_and_are_those_of_the_mesh() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let mention = |target: &str, start: u64, end: u64| {
        let mut data = words("\u{1f600}@eve hi");
        data["content"]["mentions"] = json!([{
            "type": "agent", "target": target, "display_name": "Eve",
            "start_pos": start, "end_pos": end,
        }]);
        data
    };
    let said = ada.gets("chat.human_message", mention("eve", 2, 6)).await;
    assert_eq!(said["content"]["mentions"][0]["target"], "eve");
    let html = said["content"]["formatted_html"].as_str().unwrap();
    assert_eq!(html, "\u{1f600}<span class=\"mention\">@eve</span> hi");
    let user = ids::text(names::id_of("eve"));
    ada.gets("chat.human_message", mention(&user, 2, 6)).await;
    let page = History { room: lobby(), from: From::Newest, limit: 10, before_ms: None };
    let kept = node.asks(&eve, page).await.messages;
    assert!(kept.iter().all(|message| message.said.mentions.iter().any(|one| &**one == "eve")));
    for (data, field) in [
        (mention("nobody", 2, 6), "data.content.mentions[0].target"),
        (mention("eve", 6, 6), "data.content.mentions[0].end_pos"),
        (mention("eve", 2, 10), "data.content.mentions[0].end_pos"),
    ] {
        let refused = ada.refused("chat.human_message", data).await;
        assert_eq!(refused, no("VALIDATION_FAILED", field));
    }
    let mut all = mention("all", 2, 6);
    all["content"]["mentions"][0]["type"] = json!("all");
    let said = ada.gets("chat.human_message", all).await;
    assert_eq!(said["content"]["mentions"][0]["type"], "all");
    // Of other dialects: where the text has the name; else beside it.
    for text in ["hello @ada", "hello you"] {
        let principal = names::principal(bridge::testing::own_key(), "ada");
        let mentions = vec![principal.to_string()];
        node.asks(&eve, Say { mentions, ..Say::chat(lobby(), text.to_owned()) }).await;
    }
    let placed = ada.hears("chat.agent_message").await;
    assert_eq!(placed["data"]["content"]["mentions"][0]["start_pos"], 6);
    let elsewhere = ada.hears("chat.agent_message").await;
    assert_eq!(elsewhere["metadata"]["mentions_elsewhere"].as_array().unwrap().len(), 1);
    node.stop().await;
}

#[tokio::test]
async fn an_answer_names_its_message_by_any_of_its_ids() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut first = words("what?");
    first["message_id"] = json!(ulid(150));
    let said = ada.gets("chat.human_message", first).await;
    let shown = said["message_id"].as_str().unwrap().to_owned();
    for named in [shown.clone(), format!("chat_{shown}"), ulid(150)] {
        let mut answer = words("this");
        answer["context"] = json!({"in_reply_to": named, "related_task": ulid(3)});
        answer["content"]["message_type"] = json!("status");
        answer["content"]["confidence_level"] = json!(0.9);
        let said = bob.gets("chat.agent_message", answer).await;
        assert_eq!(said["context"]["in_reply_to"], *shown, "{named}");
        assert_eq!(said["content"]["message_type"], "status");
        let heard = ada.hears("chat.agent_message").await;
        assert_eq!(heard["data"]["context"]["related_task"], ulid(3));
    }
    let page = History { room: lobby(), from: From::Newest, limit: 1, before_ms: None };
    let kept = node.asks(&eve, page).await.messages;
    let uuid = RoomId(ids::parse(&shown).unwrap()).to_uuid();
    assert_eq!(kept[0].said.reply_to.as_deref(), Some(&*uuid));
    let mut again = words("another one");
    again["message_id"] = json!(ulid(150));
    let refused = ada.refused("chat.human_message", again).await;
    assert_eq!(refused, no("RESOURCE_CONFLICT", "data.message_id"));
    node.stop().await;
}

#[tokio::test]
async fn a_private_message_is_for_one_alone_and_is_answered() {
    let node = Node::new().await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut cy = node.person("cy").await;
    let mut data = words("@bob only you");
    data["visibility"] = json!("private");
    let alone = ada.refused("chat.human_message", data.clone()).await;
    assert_eq!(alone, no("VALIDATION_FAILED", "data.content.mentions"));
    data["content"]["mentions"] = json!([
        {"type": "agent", "target": "bob", "display_name": "Bob", "start_pos": 0, "end_pos": 4},
    ]);
    let said = ada.gets("chat.human_message", data).await;
    let heard = bob.find(|frame| frame["type"] == "chat.human_message").await;
    for data in [&said, &heard["data"]] {
        assert_eq!(data["visibility"], "private");
        assert_eq!(data["room_id"], ids::text([0; 16]), "where it was sent");
    }
    let mut answer = words("yes");
    answer["context"] = json!({"in_reply_to": heard["data"]["message_id"]});
    let answered = bob.gets("chat.agent_message", answer).await;
    assert_eq!(answered["visibility"], "private");
    let heard = ada.hears("chat.agent_message").await;
    assert_eq!(heard["data"]["content"]["text"], "yes");
    assert_eq!(heard["data"]["context"]["in_reply_to"], said["message_id"]);
    let is_chat = |frame: &Value| frame["type"].as_str().unwrap().starts_with("chat.");
    assert!(!cy.rest().await.iter().any(is_chat), "nobody else hears of it");
    node.stop().await;
}

#[tokio::test]
async fn thoughts_and_long_texts_of_others_fit_the_schema() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let think = Say { speech: Speech::Thinking, ..Say::chat(lobby(), "hm".to_owned()) };
    node.asks(&eve, think).await;
    let thought = ada.hears("chat.agent_message").await;
    assert_eq!(thought["data"]["content"]["message_type"], "thinking");
    node.asks(&eve, Say::chat(lobby(), "x&".repeat(3_000))).await;
    let long = ada.hears("chat.agent_message").await;
    let text = long["data"]["content"]["text"].as_str().unwrap();
    assert_eq!((text.chars().count(), text.ends_with('…')), (4_000, true));
    assert_eq!(long["metadata"]["truncated"], true);
    // Metadata of another node may be anything.
    for metadata in [
        r#"{"clawtank":7}"#,
        r#"{"clawtank":{"mentions":7,"context":[],"attachments":[{"id":1}],"room_id":"x"},"visibility":[]}"#,
    ] {
        let odd =
            Say { metadata: Some(metadata.to_owned()), ..Say::chat(lobby(), "odd".to_owned()) };
        node.asks(&eve, odd).await;
        let odd = ada.hears("chat.agent_message").await;
        assert_eq!(odd["data"]["visibility"], "public");
    }
    node.stop().await;
}

#[tokio::test]
async fn messages_that_break_a_rule_are_refused_with_it() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Read]), None);
    let mut ada = node.person("ada").await;
    let with = |place: &str, value: Value| {
        let mut data = words("hi");
        data["edit_info"] = json!({"edited": false});
        *data.pointer_mut(place).unwrap() = value;
        data
    };
    for (data, refused) in [
        (
            with("/content/text", json!("x".repeat(4_001))),
            no("VALIDATION_FAILED", "data.content.text"),
        ),
        (with("/content/text", json!(" ")), no("VALIDATION_FAILED", "data.content.text")),
        (with("/edit_info/edited", json!(true)), no("VALIDATION_FAILED", "data.edit_info.edited")),
        (with("/visibility", json!("secret")), no("VALIDATION_FAILED", "data.visibility")),
        (with("/message_id", json!("x")), no("VALIDATION_FAILED", "data.message_id")),
        (with("/room_id", json!(ulid(201))), no("RESOURCE_NOT_FOUND", "")),
    ] {
        assert_eq!(ada.refused("chat.human_message", data.clone()).await, refused, "{data}");
    }
    let as_agent = ada.refused("chat.agent_message", words("x")).await;
    assert_eq!(as_agent, no("AUTHORIZATION_DENIED", "author"));
    let mut reader = node.bare().await;
    let ack = reader.connect("human", MINTED, "bo", Some("lobby")).await;
    assert_eq!(ack["session_info"]["permissions"], json!(["read"]));
    let refused = reader.refused("chat.human_message", words("x")).await;
    assert_eq!(refused, no("AUTHORIZATION_DENIED", "chat"));
    ada.gets("chat.human_message", words("to readers")).await;
    reader.hears("chat.human_message").await;
    // Who is in no room is heard in none.
    let mut outside = node.bare().await;
    outside.connect("human", KEY, "cy", None).await;
    assert_eq!(outside.refused("chat.human_message", words("x")).await.0, "AUTHORIZATION_DENIED");
    node.stop().await;
}

#[tokio::test]
async fn the_one_beyond_sixty_in_a_minute_is_told_to_wait() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    for _ in 0..60 {
        ada.gets("chat.human_message", words("again")).await;
    }
    let mut beyond = ada.ask("chat.human_message", words("and again")).await;
    // A slow machine has one more place by now.
    for _ in 0..5 {
        if beyond["type"] == "error" {
            break;
        }
        beyond = ada.ask("chat.human_message", words("and again")).await;
    }
    assert_eq!(why(&beyond).0, "RATE_LIMIT_EXCEEDED");
    let retry = &beyond["data"]["retry_info"];
    assert_eq!(retry["retryable"], true);
    assert!(retry["retry_after_seconds"].as_u64().unwrap() >= 1, "{retry}");
    node.stop().await;
}

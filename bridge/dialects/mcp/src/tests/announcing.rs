//! Outcomes of conversations, announced in a room.

use std::collections::BTreeMap;

use bridge::{
    Announcing,
    policy::{Action, ChatType, Policies, SendPolicy, SendRule},
    secret::Secret,
};

use super::{
    sessions::{begun, done, ended},
    *,
};

/// A node that has a room for Bob, or for nobody, and whether it asks.
async fn node(room: Option<&str>, send: SendPolicy) -> Arc<Node> {
    let policies = Arc::new(Policies { send, ..Policies::default() });
    let config = Config { policies, ..keyed() };
    let announcing = room.map(|room| {
        let rooms = BTreeMap::from([("bob".into(), room.to_owned())]);
        Announcing::new(Secret::new(KEY), config.auth.own_print(KEY), rooms)
    });
    let node = Node::with(Config { announcing, ..config }, |own| own).await;
    for agent in ["ada", "bob"] {
        node.call(agent, "inbox_wait", json!({"timeoutSeconds": 0})).await;
    }
    Arc::new(node)
}

fn announces(node: &Node) -> JoinHandle<()> {
    let bridge = node.bridge.clone();
    tokio::spawn(async move { bridge.announce().await })
}

/// Bob's next item.
async fn next(node: &Node, cursor: &mut Value) -> Value {
    let mut arguments = json!({"timeoutSeconds": 40, "limit": 1});
    if !cursor.is_null() {
        arguments["cursor"] = cursor.clone();
    }
    let mut mail = node.call("bob", "inbox_wait", arguments).await;
    *cursor = mail["cursor"].take();
    mail["messages"][0].take()
}

async fn answers(node: &Node, item: &Value, text: &str) -> Value {
    let with = &item["replyWith"];
    let answer =
        json!({"sessionKey": with["sessionKey"], "replyTo": with["replyTo"], "message": text});
    node.call("bob", "sessions_send", answer).await
}

/// Ada asks, and Bob answers.
async fn talk(node: &Arc<Node>, cursor: &mut Value) -> Value {
    let ask = json!({"agentId": "bob", "message": "how many?", "announce": true});
    let asked = begun(node, "ada", "sessions_send", ask);
    let item = next(node, cursor).await;
    answers(node, &item, "seven").await;
    ended(asked).await
}

/// The texts that were said in the lobby, and by whom.
async fn said(node: &Node) -> Vec<(String, String)> {
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let page = node.call("ada", "room_history", json!({"room": "lobby"})).await;
    let rows = page["messages"].as_array().unwrap_or_else(|| panic!("{page}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let chat = rows.iter().filter(|row| row["role"] == "user");
    chat.map(|row| (text(&row["from"]["agentId"]), text(&row["content"]))).collect()
}

/// The rows of conversations that are to be announced; whether each is done.
fn rows(node: &Node) -> Vec<bool> {
    let kept = node.fake.kept.lock().unwrap();
    let rows = kept.iter().filter(|(name, _)| name.starts_with(b"announce/"));
    let read = |value: &Vec<u8>| serde_json::from_slice::<Value>(value).unwrap()["done"] == true;
    rows.map(|(_, value)| read(value)).collect()
}

async fn is_over(node: &Node) {
    let over = async {
        while rows(node) != [true] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, over).await.expect("it ends");
}

#[tokio::test]
async fn an_agent_is_asked_once_and_its_answer_is_in_the_room_in_its_name() {
    let node = node(Some("mesh:channel:lobby"), SendPolicy::default()).await;
    let (asks, mut cursor) = (announces(&node), Value::Null);
    let answered = talk(&node, &mut cursor).await;
    assert_eq!(
        (&answered["reply"], &answered["delivery"]["mode"]),
        (&json!("seven"), &json!("announce"))
    );
    assert_eq!(answered.get("ignored"), None, "{answered}");
    let item = next(&node, &mut cursor).await;
    assert_eq!(
        (&item["item"], &item["metadata"]["kind"]),
        (&json!("announce"), &json!("announce"))
    );
    assert_eq!(
        item["content"],
        "The conversation with agent:ada:main is over.\n\nRequest:\nhow many?\n\nFirst reply:\nseven\n\n\
         Latest reply:\nseven\n\nReply with what is to be said in mesh:channel:lobby, or exactly ANNOUNCE_SKIP."
    );
    let sent = answers(&node, &item, "Ada has seven sheep.").await;
    assert_eq!(sent["status"], "accepted", "{sent}");
    is_over(&node).await;
    let once = [("bob".to_owned(), "Ada has seven sheep.".to_owned())];
    assert_eq!(said(&node).await, once);
    let rooms = node.call("bob", "rooms_list", json!({"joined": true})).await;
    let is_lobby = |row: &Value| row["key"] == "mesh:channel:lobby";
    let is_there = rooms["rooms"].as_array().unwrap().iter().any(is_lobby);
    assert!(!is_there, "it did not ask to be there: {rooms}");
    // The conversation goes on, and was announced.
    let more = json!({"agentId": "bob", "message": "sure?", "replyTo": answered["replyId"], "expectsReply": true, "timeoutSeconds": 40});
    let asked = begun(&node, "ada", "sessions_send", more);
    let item = next(&node, &mut cursor).await;
    answers(&node, &item, "yes").await;
    assert_eq!(ended(asked).await["delivery"]["mode"], "none");
    assert_eq!((rows(&node), said(&node).await), (vec![true], once.to_vec()));
    asks.abort();
    done(node).await;
}

#[tokio::test]
async fn a_node_that_ends_in_between_goes_on_and_says_nothing_twice() {
    let node = node(Some("mesh:channel:lobby"), SendPolicy::default()).await;
    let (asks, mut cursor) = (announces(&node), Value::Null);
    talk(&node, &mut cursor).await;
    let item = next(&node, &mut cursor).await;
    asks.abort();
    assert!(asks.await.is_err(), "it has ended");
    answers(&node, &item, "seven").await;
    assert_eq!((rows(&node), said(&node).await), (vec![false], Vec::new()));
    // The second time as if it had ended before that was written down.
    for _ in 0..2 {
        let again = |row: &mut Vec<u8>| {
            let text = String::from_utf8(row.clone()).unwrap();
            *row = text.replace("\"done\":true", "\"done\":false").into_bytes();
        };
        node.fake.kept.lock().unwrap().values_mut().for_each(again);
        node.bridge.open_readers().unwrap();
        let asks = announces(&node);
        is_over(&node).await;
        asks.abort();
    }
    assert_eq!(said(&node).await, [("bob".to_owned(), "seven".to_owned())]);
    let left = node.call("bob", "inbox_wait", json!({"timeoutSeconds": 0, "cursor": cursor})).await;
    assert_eq!(left["messages"], json!([]), "it was asked once");
    done(node).await;
}

#[tokio::test]
async fn nothing_is_said_without_a_room_a_wish_an_answer_or_the_operators_leave() {
    let alone = node(None, SendPolicy::default()).await;
    let mut cursor = Value::Null;
    assert_eq!(talk(&alone, &mut cursor).await["delivery"]["mode"], "none");
    assert_eq!(rows(&alone), Vec::<bool>::new());
    done(alone).await;

    let lobby = "mesh:channel:lobby";
    let unasked = node(Some(lobby), SendPolicy::default()).await;
    let (asks, mut cursor) = (announces(&unasked), Value::Null);
    let ask = json!({"agentId": "bob", "message": "how many?"});
    let asked = begun(&unasked, "ada", "sessions_send", ask);
    let item = next(&unasked, &mut cursor).await;
    answers(&unasked, &item, "seven").await;
    assert_eq!(ended(asked).await["delivery"]["mode"], "none");
    assert_eq!(rows(&unasked), Vec::<bool>::new());
    asks.abort();
    done(unasked).await;

    let chat_type = Some(ChatType::Channel);
    let rule = SendRule { provider: None, chat_type, key_prefix: None, action: Action::Deny };
    let denies = SendPolicy { default: Action::Allow, rules: vec![rule] };
    for (send, text) in [(SendPolicy::default(), " ANNOUNCE_SKIP\n"), (denies, "seven")] {
        let node = node(Some(lobby), send).await;
        let (asks, mut cursor) = (announces(&node), Value::Null);
        talk(&node, &mut cursor).await;
        let item = next(&node, &mut cursor).await;
        answers(&node, &item, text).await;
        is_over(&node).await;
        assert_eq!(said(&node).await, Vec::new(), "{text}");
        asks.abort();
        done(node).await;
    }
}

//! What becomes of requests, as the two agents see it.

use std::time::Duration;

use super::{
    sessions::{begun, done, ended, two},
    *,
};

/// How long the node of these tests keeps requests, and a little more.
const TTL: Duration = Duration::from_secs(61);

async fn asks(node: &Node, seconds: u64) -> Value {
    let ask = json!({"agentId": "bob", "message": "are you there?", "timeoutSeconds": seconds});
    node.call("ada", "sessions_send", ask).await
}

async fn delivery(node: &Node) -> Value {
    let read = json!({"sessionKey": "agent:bob:main"});
    let page = node.call("ada", "sessions_history", read).await;
    page["messages"][0]["delivery"].clone()
}

/// What is said of a request becomes known a moment after the call that caused it.
async fn delivery_is(node: &Node, status: &str) -> Value {
    for _ in 0..200 {
        let delivery = delivery(node).await;
        if delivery["status"] == status {
            return delivery;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not {status}: {}", delivery(node).await)
}

async fn inbox(node: &Node, agent: &str, cursor: &Value) -> Value {
    let mut arguments = json!({"timeoutSeconds": 0});
    if !cursor.is_null() {
        arguments["cursor"] = cursor.clone();
    }
    node.call(agent, "inbox_wait", arguments).await
}

#[tokio::test]
async fn a_request_says_how_far_it_has_come_and_no_more() {
    let node = two().await;
    let sent = asks(&node, 0).await;
    assert_eq!(
        (&sent["status"], &sent["delivery"]["status"]),
        (&json!("accepted"), &json!("pending"))
    );
    assert_eq!(delivery(&node).await, json!({"status": "pending"}));
    node.fake.pass(Duration::from_secs(3));
    assert_eq!(delivery(&node).await["status"], "arrived");
    // That somebody looks how much there is hands nothing over.
    node.call("bob", "sessions_list", json!({})).await;
    assert_eq!(delivery(&node).await["status"], "arrived");
    inbox(&node, "bob", &Value::Null).await;
    let known = delivery_is(&node, "delivered").await;
    assert!(known["node"]["id"].is_string() && known["at"].is_u64(), "{known}");
    let read = json!({"sessionKey": "agent:ada:main"});
    let others = node.call("bob", "sessions_history", read).await;
    assert!(others["messages"][0]["delivery"].is_null(), "it is Ada's to know: {others}");
    assert_eq!(inbox(&node, "ada", &Value::Null).await["messages"], json!([]), "no notice");
    done(node).await;
}

#[tokio::test]
async fn history_hands_over_as_the_inbox_does() {
    let node = two().await;
    asks(&node, 0).await;
    node.call("bob", "sessions_history", json!({"sessionKey": "agent:ada:main"})).await;
    delivery_is(&node, "delivered").await;
    done(node).await;
}

#[tokio::test]
async fn a_request_that_nobody_is_given_is_withdrawn_and_the_wait_for_it_ends() {
    let node = two().await;
    let ask = json!({"agentId": "bob", "message": "are you there?", "timeoutSeconds": 50});
    let waiting = begun(&node, "ada", "sessions_send", ask);
    while delivery(&node).await.is_null() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    node.fake.pass(TTL);
    let failed = ended(waiting).await;
    assert_eq!(failed["status"], "error", "{failed}");
    assert_eq!(failed["error"], "not delivered: expired");
    assert_eq!(
        (&failed["sentBeforeError"], &failed["delivery"]["status"]),
        (&json!(true), &json!("failed"))
    );
    let mail = inbox(&node, "ada", &Value::Null).await;
    let [item] = &mail["messages"].as_array().unwrap()[..] else { panic!("one item: {mail}") };
    assert_eq!((&item["item"], &item["runId"]), (&json!("delivery"), &failed["runId"]));
    assert_eq!((&item["status"], &item["reason"]), (&json!("failed"), &json!("expired")));
    let after = inbox(&node, "ada", &mail["cursor"]).await;
    assert_eq!(after["messages"], json!([]), "told once");
    assert_eq!(inbox(&node, "bob", &Value::Null).await["messages"], json!([]), "not to be read");
    let read = json!({"sessionKey": "agent:ada:main"});
    let history = node.call("bob", "sessions_history", read).await;
    assert_eq!(history["messages"], json!([]), "nor in history");
    let one = json!({"sessionKey": "agent:ada:main", "messageId": failed["runId"]});
    let whole = node.call("bob", "sessions_history", one).await;
    assert_eq!(whole["status"], "error", "nor by its id: {whole}");
    assert_eq!(delivery(&node).await["reason"], "expired", "its author has it");
    let again = asks(&node, 1).await;
    assert_eq!(
        (&again["duplicate"], &again["error"]),
        (&json!(true), &json!("not delivered: expired"))
    );
    done(node).await;
}

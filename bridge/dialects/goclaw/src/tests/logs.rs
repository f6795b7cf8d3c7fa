//! The node's log over the wire.

use bridge::log_tail::{LogLevel, LogLine};

use super::*;

fn line(level: LogLevel, message: &str) -> LogLine {
    let fields = [("room".to_owned(), json!("x"))].into_iter().collect();
    LogLine { at_ms: 1, level, source: "node".to_owned(), message: message.to_owned(), fields }
}

#[tokio::test]
async fn the_operator_is_shown_the_newest_lines_and_those_to_come() {
    let node = Node::new().await;
    for n in 0..120 {
        node.log.push(line(LogLevel::Info, &n.to_string()));
    }
    node.log.push(line(LogLevel::Debug, "in detail"));
    let mut client = node.owner().await;
    let told = client.gets("logs.tail", json!({})).await;
    assert_eq!(told, json!({"status": "tailing", "level": "info"}));
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != "Log tailing started") {
        let event = client.event().await;
        assert_eq!(event["event"], "log");
        texts.push(event["payload"]["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        (texts.len(), &*texts[0]),
        (100, "21"),
        "99 of the newest hundred, and the last word"
    );
    node.log.push(line(LogLevel::Trace, "in every detail"));
    node.log.push(line(LogLevel::Warn, "take care"));
    let event = client.event().await;
    let payload = &event["payload"];
    assert_eq!((&payload["message"], &payload["level"]), (&json!("take care"), &json!("warn")));
    assert_eq!((&payload["attrs"], &payload["source"]), (&json!({"room": "x"}), &json!("node")));
    assert_eq!(payload["time"], payload["timestamp"]);
    let stopped = client.gets("logs.tail", json!({"action": "stop"})).await;
    assert_eq!(stopped["status"], "stopped");
    node.log.push(line(LogLevel::Error, "not told"));
    // Again, and from the last ones of that level on.
    client.gets("logs.tail", json!({"action": "start", "level": "warn"})).await;
    let texts = [client.event().await, client.event().await];
    let texts = texts.map(|event| event["payload"]["message"].as_str().unwrap().to_owned());
    assert_eq!(texts, ["take care", "not told"]);
    for bad in [json!({"level": "loud"}), json!({"action": "go"})] {
        assert_eq!(client.refused("logs.tail", bad).await.0, "INVALID_REQUEST");
    }
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut admin = node.connected(MINTED, "boss").await;
    let no = admin.refused("logs.tail", json!({})).await;
    assert!(no.0 == "UNAUTHORIZED" && no.1.contains("the node's own key"), "{no:?}");
    node.stop().await;
}

//! Policies of the operator, as models meet them.

use bridge::policy::{Action, ChatType, Mark, Marked, Marks, Policies, SendPolicy, SendRule};
use mesh::api::policy::{AgentToAgent, Pattern};

use super::*;
use crate::SoftTimeout;

async fn node(policies: Policies) -> Node {
    let node = Node::with(Config { policies: Arc::new(policies), ..keyed() }, |own| own).await;
    for agent in ["ada", "bob"] {
        node.call(agent, "inbox_wait", json!({"timeoutSeconds": 0})).await;
    }
    node
}

fn ask(session: &str) -> Value {
    json!({"sessionKey": session, "message": "hello", "timeoutSeconds": 0})
}

fn rule(provider: Option<&str>, chat_type: Option<ChatType>, action: Action) -> SendRule {
    let provider = provider.map(str::to_owned);
    SendRule { provider, chat_type, key_prefix: None, action }
}

#[tokio::test]
async fn a_rule_that_denies_wins_whatever_the_order_and_is_named() {
    let mesh = rule(Some("mesh"), None, Action::Allow);
    let channel = rule(None, Some(ChatType::Channel), Action::Deny);
    for (rules, nth) in [([mesh.clone(), channel.clone()], 1), ([channel, mesh], 0)] {
        let send = SendPolicy { default: Action::Allow, rules: rules.to_vec() };
        let node = node(Policies { send, ..Policies::default() }).await;
        let denied = node.call("ada", "sessions_send", ask("mesh:channel:lobby")).await;
        let text = "sending to mesh:channel:lobby is denied by policy";
        let rule = format!("send_policy.rules[{nth}]");
        assert_eq!(
            denied,
            json!({"status": "forbidden", "error": text, "rule": rule, "sessionKey": "mesh:channel:lobby"})
        );
        let rooms = node.call("ada", "rooms_list", json!({"joined": true})).await;
        assert_eq!(rooms["count"], 0, "a refusal leaves nothing behind: {rooms}");
        node.call("ada", "room_join", json!({"room": "lobby"})).await;
        let said = json!({"room": "lobby", "message": "hello"});
        assert_eq!(node.call("ada", "room_send", said).await["rule"], rule);
        let sent = node.call("ada", "sessions_send", ask("agent:bob:main")).await;
        assert_eq!(sent["status"], "accepted", "{sent}");
        node.stop().await;
    }
}

#[tokio::test]
async fn the_operators_word_of_a_session_stands_before_the_rules_and_is_shown() {
    let rules = vec![rule(None, Some(ChatType::Channel), Action::Deny)];
    let send = SendPolicy { default: Action::Allow, rules };
    let marked = |key: &str| Marked { agent: None, key: key.to_owned() };
    let mark = |sending| Mark { sending: Some(sending), ..Mark::default() };
    let marks = Marks::of([
        (marked("mesh:channel:lobby"), mark(Action::Allow)),
        (marked("agent:bob:main"), mark(Action::Deny)),
        (marked("main"), mark(Action::Deny)),
    ]);
    let node = node(Policies { send, marks, ..Policies::default() }).await;
    let sent = node.call("ada", "sessions_send", ask("mesh:channel:lobby")).await;
    assert_eq!((&sent["status"], &sent["joined"]), (&json!("accepted"), &json!(true)), "{sent}");
    let denied = node.call("ada", "sessions_send", ask("bob")).await;
    assert_eq!(denied["rule"], "send_policy.override");
    let note = node.call("ada", "sessions_send", ask("main")).await;
    assert_eq!(note["status"], "accepted", "one's own is never denied");
    let listed = node.call("ada", "sessions_list", json!({})).await;
    let rows = listed["sessions"].as_array().unwrap();
    let policy = |key: &str| {
        let row = rows.iter().find(|row| row["key"] == key);
        row.map(|row| row["sendPolicy"].clone())
    };
    assert_eq!(policy("mesh:channel:lobby"), Some(json!("allow")), "{listed}");
    assert_eq!(policy("main"), Some(Value::Null));
    assert_eq!(policy("agent:bob:main"), None, "it was never begun");
    node.stop().await;
}

#[tokio::test]
async fn a_session_that_the_operator_has_archived_is_listed_with_those_that_are_over() {
    let node = node(Policies::default()).await;
    node.call("ada", "sessions_send", ask("bob")).await;
    let marks = &node.bridge.config().policies.marks;
    let marked = Marked { agent: Some("ada".into()), key: "agent:bob:main".to_owned() };
    marks.replace(marks.changed(marked, |mark| mark.archived = true).unwrap());
    let keys = async |agent: &str, archived: bool| {
        let listed = node.call(agent, "sessions_list", json!({"archived": archived})).await;
        let rows = listed["sessions"].as_array().unwrap().clone();
        let row = |row: &Value| (row["key"].clone(), row["archived"] == true);
        rows.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(keys("ada", false).await, [(json!("main"), false)]);
    assert_eq!(keys("ada", true).await, [(json!("agent:bob:main"), true)]);
    assert_eq!(keys("bob", true).await, [], "it is of one agent");
    node.stop().await;
}

#[tokio::test]
async fn agents_that_may_not_write_to_each_other_are_told_so_and_have_no_session() {
    let agent_to_agent = AgentToAgent { enabled: true, allow: vec![Pattern::new("ada")] };
    let node = node(Policies { agent_to_agent, ..Policies::default() }).await;
    let text = "agent-to-agent messages between ada and bob are not allowed on this node";
    let task = json!({"task": "dig", "agentId": "bob"});
    for (tool, arguments) in [("sessions_send", ask("agent:bob:main")), ("sessions_spawn", task)] {
        let denied = node.call("ada", tool, arguments).await;
        assert_eq!(
            denied,
            json!({"status": "forbidden", "error": text, "rule": "agent_to_agent", "sessionKey": "agent:bob:main"}),
            "{tool}"
        );
    }
    let listed = node.call("bob", "sessions_list", json!({})).await;
    assert_eq!(listed["count"], 1, "{listed}");
    assert_eq!(node.call("ada", "sessions_send", ask("main")).await["status"], "accepted");
    node.stop().await;
}

#[tokio::test]
async fn where_the_operator_says_so_a_send_without_an_answer_is_accepted() {
    let accepted = |own: Settings| Settings { soft_timeout: SoftTimeout::Accepted, ..own };
    let node = Node::with(keyed(), accepted).await;
    node.call("bob", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    let asked = json!({"agentId": "bob", "message": "hello?", "timeoutSeconds": 1});
    let ended = node.call("ada", "sessions_send", asked).await;
    assert_eq!(ended["status"], "accepted");
    let note = ended["note"].as_str().unwrap();
    assert!(note.starts_with("no reply within 1 s; the message was kept"), "{note}");
    assert_eq!((ended.get("error"), ended.get("sentBeforeError")), (None, None));
    assert_eq!(ended["delivery"]["mode"], "none");
    node.stop().await;
}

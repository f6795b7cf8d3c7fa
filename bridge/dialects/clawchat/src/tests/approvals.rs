//! Approvals: asked for with a message, decided and told.

use serde_json::json;

use bridge::testing::Fake;

use crate::local::Local;

fn asks(command: &serde_json::Value) -> serde_json::Value {
    let approval = json!({"command": command, "timeout_secs": 60, "approvers": []});
    json!({
        "room_id": "lobby", "content": "may I",
        "metadata": {"kind": "approval_request", "approval": approval},
    })
}

fn in_lobby(fake: &std::sync::Arc<Fake>, name: &str) -> Local {
    let mut agent = Local::agent(fake, name);
    agent.call("join_room", json!({"room_id": "lobby"}));
    agent
}

#[test]
fn an_agent_asks_with_a_message_and_is_told_the_decision() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (in_lobby(&fake, "a"), in_lobby(&fake, "b"));
    let asked = a.call("send_message", asks(&json!("deploy")));
    let id = asked["message_id"].clone();
    let listed = b.call("list_approvals", json!({}));
    let row = listed["approvals"][0].clone();
    assert_eq!((&row["message_id"], &row["command"]), (&id, &json!("deploy")));
    assert_eq!((&row["room_id"], &row["allowed"]), (&json!("lobby"), &json!(false)));
    assert_eq!(row.get("decision"), None);
    let named = json!({"room_id": "lobby", "message_id": id});
    let decide = json!({
        "room_id": "lobby", "message_id": id, "decision": "approved", "reason": "go on",
    });
    let own = a.ask("decide_approval", decide.clone());
    assert_eq!(own["payload"]["code"], "access_denied", "{own}");
    let done = b.call("decide_approval", decide.clone());
    assert_eq!(done["granted"], true);
    let told = a.event("approval_decided").expect("it is told");
    assert_eq!(told, done["approval"]);
    for (field, value) in
        [("decision", json!("approved")), ("allowed", json!(true)), ("reason", json!("go on"))]
    {
        assert_eq!(told[field], value, "{told}");
    }
    assert_eq!(b.event("approval_decided"), None, "to the agent alone");
    assert_eq!(b.call("get_approval", named), done["approval"]);
    let late = b.call("decide_approval", decide);
    assert_eq!(
        (&late["granted"], &late["approval"]["decision"]),
        (&json!(false), &json!("approved"))
    );
    assert_eq!(b.call("list_approvals", json!({}))["approvals"], json!([]));
    let history = a.call("get_history", json!({"room_id": "lobby"}));
    let said = history["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&said["reply_to_message"], &said["content"]),
        (&id, &json!("[approval] approved: deploy (go on)"))
    );
    assert_eq!(said["metadata"]["kind"], "approval_decision");
}

/// Agents of today may have messages of that kind, in a form of their own.
#[test]
fn messages_of_the_kind_without_an_approval_are_as_any_others() {
    let (fake, _) = Fake::new();
    let mut a = in_lobby(&fake, "a");
    for metadata in [
        json!({"kind": "approval_request", "what": "deploy"}),
        json!({"kind": "other", "approval": {"command": 7}}),
        json!(["approval_request"]),
    ] {
        let send = json!({"room_id": "lobby", "content": "x", "metadata": metadata});
        a.call("send_message", send);
    }
    assert_eq!(a.call("list_approvals", json!({}))["approvals"], json!([]));
    for (wrong, text) in [
        (json!(7), "`metadata.approval` must have a text `command`"),
        (json!(" "), "`metadata.approval.command` must not be empty"),
    ] {
        let no = a.ask("send_message", asks(&wrong));
        assert_eq!(no["payload"]["code"], "invalid_payload");
        assert!(no["payload"]["message"].as_str().unwrap().contains(text), "{no}");
    }
    let history = a.call("get_history", json!({"room_id": "lobby"}));
    assert_eq!(history["messages"].as_array().unwrap().len(), 3, "nothing was said");
    let none = json!({"room_id": "lobby", "message_id": "nonsense", "decision": "denied"});
    assert_eq!(a.ask("decide_approval", none)["payload"]["message"], "no such approval");
}

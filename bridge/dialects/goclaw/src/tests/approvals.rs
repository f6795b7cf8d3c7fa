//! Approvals: agents of any dialect ask, and people decide over this one.

use bridge::seam::call::{CreateRoom, Join, RequestApproval, Requested};
use mesh::{
    api::{
        approval::{ApprovalTerms, Verdict},
        command::NewRoom,
    },
    limits::APPROVAL_FOR,
};

use super::*;

impl Agent {
    /// Asks in the lobby whether it may.
    async fn may_it(&self, text: &str) -> Requested {
        self.may_it_in(lobby(), text).await
    }

    async fn may_it_in(&self, room: RoomId, text: &str) -> Requested {
        let metadata = json!({
            "kind": "approval_request",
            "approval": {"command": text, "type": "deploy", "details": {"env": "prod"}},
        });
        let say = Say {
            metadata: Some(metadata.to_string()),
            ..Say::chat(room, format!("may I {text}"))
        };
        let terms =
            ApprovalTerms { text: text.to_owned(), approvers: Vec::new(), within: APPROVAL_FOR };
        self.bridge.desk().ask(&self.visitor, RequestApproval { say, terms }).await.unwrap()
    }
}

impl Client {
    /// The next event about approvals.
    async fn hears_of_approvals(&mut self) -> (String, Value) {
        loop {
            let mut event = self.event().await;
            let name = event["event"].as_str().unwrap().to_owned();
            if name.starts_with("exec.approval.") {
                return (name, event["payload"].take());
            }
        }
    }
}

async fn bob_in_the_lobby() -> (Node, Agent) {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob.visitor, Join(lobby())).await.unwrap();
    (node, bob)
}

#[tokio::test]
async fn people_are_told_of_what_agents_ask_and_one_of_them_decides() {
    let (node, bob) = bob_in_the_lobby().await;
    node.mint(MINTED, Some(&[Scope::Approvals]));
    node.mint("a key that may only read, of tests", Some(&[Scope::Read]));
    let mut owner = node.owner().await;
    let mut other = node.connected(MINTED, "eve").await;
    let mut reader = node.connected("a key that may only read, of tests", "rob").await;
    let asked = bob.may_it("deploy").await;
    let id = asked.said.message.to_uuid();
    for client in [&mut owner, &mut other] {
        for expect in ["exec.approval.pending", "exec.approval.requested"] {
            let (name, told) = client.hears_of_approvals().await;
            assert_eq!((&*name, &told["id"]), (expect, &json!(id)));
            assert_eq!((&told["command"], &told["agentId"]), (&json!("deploy"), &json!("bob")));
        }
    }
    let pending = other.gets("exec.approval.list", json!({})).await;
    let row = &pending["pending"][0];
    let expect = json!({
        "id": id, "command": "deploy", "agentId": "bob", "type": "deploy",
        "teamId": lobby().to_uuid(), "details": {"env": "prod"},
        "createdAt": asked.approval.asked_ms, "expiresAt": asked.approval.until_ms,
    });
    assert_eq!(*row, expect);
    let no = reader.refused("exec.approval.deny", json!({"id": id})).await;
    assert_eq!(no.1, "permission denied: exec.approval.deny requires operator role");
    let denied = other.gets("exec.approval.deny", json!({"id": id, "reason": "not today"})).await;
    assert_eq!(denied, json!({"resolved": true, "decision": "deny"}));
    for client in [&mut owner, &mut other] {
        let (name, told) = client.hears_of_approvals().await;
        assert_eq!(name, "exec.approval.resolved");
        assert_eq!(told, json!({"id": id, "decision": "deny", "by": "eve"}));
    }
    let late = ("NOT_FOUND".to_owned(), "approval not found or already resolved".to_owned());
    for gone in [json!(id), json!("nonsense"), json!(lobby().to_uuid())] {
        let no = owner.refused("exec.approval.approve", json!({"id": gone})).await;
        assert_eq!(no, late);
    }
    assert_eq!(owner.gets("exec.approval.list", json!({})).await, json!({"pending": []}));
    // The agent reads it in its room.
    let desk = node.bridge.desk();
    let said = async || {
        let call = History { room: lobby(), from: From::Newest, limit: 10, before_ms: None };
        let page = desk.ask(&bob.visitor, call).await.unwrap();
        page.messages.into_iter().find(|it| it.said.content.starts_with("[approval]"))
    };
    let said = node.until("it is said", said).await;
    assert_eq!(said.said.content, "[approval] denied: deploy (not today)");
    assert_eq!(said.said.reply_to.as_deref(), Some(&*id));
    assert_eq!(said.said.mentions, ["bob".into()]);
    let metadata: Value = serde_json::from_str(said.said.metadata.as_deref().unwrap()).unwrap();
    let decision = json!({"id": id, "decision": "denied", "reason": "not today"});
    assert_eq!(metadata, json!({"kind": "approval_decision", "approval": decision}));
    assert!(reader.events.iter().all(|it| !it["event"].to_string().contains("approval")));
    node.stop().await;
}

#[tokio::test]
async fn what_is_approved_for_always_is_decided_at_once() {
    let (node, bob) = bob_in_the_lobby().await;
    let mut owner = node.owner().await;
    let first = bob.may_it("make test").await;
    let id = first.said.message.to_uuid();
    let approved = owner.gets("exec.approval.approve", json!({"id": id, "always": true})).await;
    assert_eq!(approved, json!({"resolved": true, "decision": "allow-always"}));
    let second = bob.may_it("make test").await.said.message;
    let read = bridge::seam::call::ReadApproval { room: lobby(), approval: second };
    let read = node.bridge.desk().ask(&bob.visitor, read).await.unwrap();
    assert_eq!(read.decided.map(|it| it.verdict), Some(Verdict::ByRule));
    assert_eq!(owner.gets("exec.approval.list", json!({})).await, json!({"pending": []}));
    let mut resolved = Vec::new();
    while resolved.len() < 2 {
        let (name, told) = owner.hears_of_approvals().await;
        if name == "exec.approval.resolved" {
            resolved.push((told["id"].clone(), told["decision"].clone(), told["by"].clone()));
        }
    }
    let text = |a: &str, b: &str, c: &str| (json!(a), json!(b), json!(c));
    let by_rule = text(&second.to_uuid(), "allow-once", "system");
    assert_eq!(resolved, [text(&id, "allow-always", "ada"), by_rule]);
    node.stop().await;
}

/// In the direct room of a person and an agent it is a question of its own: the run goes on.
#[tokio::test]
async fn an_agent_asks_the_person_whose_run_it_works_on_and_then_answers() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let mut owner = node.owner().await;
    let mut asker = node.owner().await;
    let run = asker.begin("chat.send", json!({"agentId": "bob", "message": "deploy it"})).await;
    let request = bob.hears(&node, "deploy it").await;
    let asked = bob.may_it_in(request.room, "deploy").await;
    let id = asked.said.message.to_uuid();
    let listed = owner.gets("exec.approval.list", json!({})).await;
    assert_eq!(listed["pending"][0]["id"], json!(id));
    owner.gets("exec.approval.approve", json!({"id": id})).await;
    bob.answers(&request, "done").await;
    assert_eq!(asker.answer(&run).await.unwrap()["content"], "done");
    node.mint(MINTED, None);
    let mut stranger = node.connected(MINTED, "eve").await;
    assert_eq!(stranger.gets("exec.approval.list", json!({})).await, json!({"pending": []}));
    node.stop().await;
}

#[tokio::test]
async fn what_is_asked_in_a_room_of_another_key_is_neither_seen_nor_decided() {
    let node = Node::new().await;
    node.mint(MINTED, None);
    let carl = node.agent("carl", MINTED).await;
    let desk = node.bridge.desk();
    let private = NewRoom {
        name: "ours".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let room = desk.ask(&carl.visitor, CreateRoom(private)).await.unwrap().room;
    desk.ask(&carl.visitor, Join(room)).await.unwrap();
    let mut owner = node.owner().await;
    let mut theirs = node.connected(MINTED, "eve").await;
    let id = carl.may_it_in(room, "x").await.said.message.to_uuid();
    assert_eq!(theirs.hears_of_approvals().await.1["id"], json!(id));
    assert_eq!(owner.gets("exec.approval.list", json!({})).await, json!({"pending": []}));
    let no = owner.refused("exec.approval.approve", json!({"id": id})).await;
    assert_eq!(no.0, "NOT_FOUND");
    theirs.gets("exec.approval.approve", json!({"id": id})).await;
    assert!(owner.events.iter().all(|it| !it["event"].to_string().contains("approval")));
    node.stop().await;
}

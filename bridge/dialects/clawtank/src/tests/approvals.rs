//! Approvals.

use bridge::seam::call::{
    AssignTask, ChangeTask, Decide, ListApprovals, ListTasks, RequestApproval, Requested, Say,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        approval::{ApprovalTerms, Choice},
    },
    wire::tasks::TaskStatus,
};

use super::*;

/// The data of a request.
fn wants(seed: u8, command: &str) -> Value {
    json!({
        "request_id": format!("approval_{}", ulid(seed)), "agent_id": "bob",
        "approval_type": "deployment", "timeout": "30 minutes", "urgency": "high",
        "details": {"command": command, "risk": "low"},
    })
}

fn says(request: &Value, decision: &str) -> Value {
    json!({"request_id": request, "decision": decision, "feedback": "see"})
}

impl Node {
    async fn in_review(&self, visitor: &Visitor) -> mesh::name::id::MessageId {
        let task = self.asks(visitor, AssignTask(NewTask::of(lobby(), "x"))).await.task;
        let update = TaskUpdate {
            assignee: Some(Some("bob".into())),
            status: Some(TaskStatus::InReview),
            by_steps: true,
            ..TaskUpdate::of(task)
        };
        self.asks(visitor, ChangeTask(update)).await;
        task
    }

    async fn states(&self, visitor: &Visitor) -> Vec<TaskStatus> {
        let tasks = self.asks(visitor, ListTasks { room: lobby(), status: None }).await;
        tasks.iter().map(|task| task.status).collect()
    }
}

#[tokio::test]
async fn an_agent_asks_and_people_decide_once() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut cy = node.person("cy").await;
    let asked = bob.ask("approval.request", wants(1, "deploy it")).await;
    assert_eq!(asked["type"], "approval.request", "{asked}");
    let heard = ada.hears("approval.request").await;
    assert_eq!((&heard["id"], &heard["data"]), (&asked["id"], &asked["data"]));
    let data = &heard["data"];
    assert_eq!((&data["request_id"], &data["agent_id"]), (&json!(ulid(1)), &json!("bob")));
    assert_eq!(data["details"], json!({"command": "deploy it", "risk": "low"}));
    assert_eq!((&data["timeout"], &data["urgency"]), (&json!("1800 seconds"), &json!("high")));
    let open = node.asks(&eve, ListApprovals { room: None }).await;
    assert_eq!((&*open[0].text, &*open[0].by), ("deploy it", "bob"));
    assert_eq!(open[0].until_ms - open[0].asked_ms, 1_800_000);
    let own = bob.refused("approval.response", says(&data["request_id"], "approved")).await;
    assert_eq!(own, no("AUTHORIZATION_DENIED", "approver"));
    let person = ada.refused("approval.request", wants(2, "x")).await;
    assert_eq!(person.0, "AUTHORIZATION_DENIED");
    let taken = bob.refused("approval.request", wants(1, "again")).await;
    assert_eq!(taken, no("RESOURCE_CONFLICT", "data.request_id"));
    // It stays open while people talk about it.
    let talked = ada.ask("approval.response", says(&json!(ulid(1)), "needs_discussion")).await;
    assert_eq!(talked["data"]["decision"], "needs_discussion", "{talked}");
    let heard = bob.hears("approval.response").await;
    assert_eq!((&heard["id"], &heard["data"]), (&talked["id"], &talked["data"]));
    assert_eq!(heard["data"]["approver"]["display_name"], "ada");
    let id = ulid(200);
    let frame = envelope(&id, "approval.response", &says(&json!(ulid(1)), "approved")).to_string();
    ada.send(&frame).await;
    let decided = ada.answer(&id).await;
    assert_eq!(
        (&decided["type"], &decided["data"]["feedback"]),
        (&json!("approval.response"), &json!("see"))
    );
    for client in [&mut bob, &mut cy] {
        let heard = client.find(|frame| frame["data"]["decision"] == "approved").await;
        assert_eq!((&heard["id"], &heard["data"]), (&decided["id"], &decided["data"]));
        assert_eq!(heard["data"]["request_id"], ulid(1), "as the one who asked knows it");
    }
    // The same frame is confirmed; another one comes too late.
    ada.send(&frame).await;
    assert_eq!(ada.answer(&id).await["data"], decided["data"]);
    let late = cy.ask("approval.response", says(&json!(ulid(1)), "denied")).await;
    assert_eq!(why(&late), no("RESOURCE_CONFLICT", "approved"));
    assert!(late["data"]["message"].as_str().unwrap().contains("approved by "), "{late}");
    for client in [&mut ada, &mut bob] {
        let rest = client.rest().await;
        let is_of_it = |frame: &&Value| {
            let kind = frame["type"].as_str().unwrap();
            kind.starts_with("chat.") || kind == "approval.response"
        };
        assert_eq!(rest.iter().filter(is_of_it).count(), 0, "told once: {rest:?}");
    }
    // A newcomer is given all three, and strangers none.
    let mut late = node.bare().await;
    late.connect("human", KEY, "late", Some("lobby")).await;
    let replayed = late.rest().await;
    let words: Vec<&Value> = replayed.iter().map(|frame| &frame["data"]["decision"]).collect();
    assert_eq!(words, [&Value::Null, &json!("needs_discussion"), &json!("approved")]);
    let path = ("GET", "/api/rooms/lobby/events");
    let (_, page) = node.asks_page(path, &[], &Value::Null).await;
    assert_eq!(page["events"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn requests_that_break_a_rule_are_refused() {
    let node = Node::new().await;
    let mut bob = node.agent("bob").await;
    let with = |name: &str, value: Value| {
        let mut data = wants(1, "x");
        data[name] = value;
        data
    };
    for (name, value, field) in [
        ("request_id", json!("r-1"), "data.request_id"),
        ("approval_type", json!(" "), "data.approval_type"),
        ("details", json!("x"), "data.details"),
        ("details", json!({"command": "x".repeat(4_097)}), "data.details.command"),
        ("details", json!({"more": "x".repeat(16_384)}), "data.details"),
        ("timeout", json!("8 days"), "data.timeout"),
        ("timeout", json!("PT0S"), "data.timeout"),
        ("timeout", json!("soon"), "data.timeout"),
        ("approvers", json!(["nobody"]), "data.approvers[0]"),
    ] {
        let refused = bob.refused("approval.request", with(name, value)).await;
        assert_eq!(refused, no("VALIDATION_FAILED", field), "{name}");
    }
    let forged = bob.refused("approval.request", with("agent_id", json!("carl"))).await;
    assert_eq!(forged, no("AUTHORIZATION_DENIED", "data.agent_id"));
    let task = bob.refused("approval.request", with("task_id", json!(ulid(7)))).await;
    assert_eq!(task, no("RESOURCE_NOT_FOUND", "data.task_id"));
    let unknown = bob.refused("approval.response", says(&json!(ulid(7)), "denied")).await;
    assert_eq!(unknown, no("RESOURCE_NOT_FOUND", "data.request_id"));
    node.mint(MINTED, Some(&[Scope::Read]), None);
    let mut reader = node.bare().await;
    reader.connect("human", MINTED, "mo", Some("lobby")).await;
    let refused = reader.refused("approval.response", says(&json!(ulid(7)), "denied")).await;
    assert_eq!(refused, no("AUTHORIZATION_DENIED", "approve"));
    // Without a command the type says what it is.
    bob.gets("approval.request", with("details", Value::Null)).await;
    let eve = node.other("eve").await;
    assert_eq!(&*node.asks(&eve, ListApprovals { room: None }).await[0].text, "deployment");
    node.stop().await;
}

#[tokio::test]
async fn those_of_other_dialects_are_asked_and_decided_alike() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let asks = |command: &str, shown: &str| {
        let metadata =
            json!({"kind": "approval_request", "approval": {"command": shown, "timeout_secs": 60}});
        RequestApproval {
            say: Say {
                metadata: Some(metadata.to_string()),
                ..Say::chat(lobby(), "may I".to_owned())
            },
            terms: ApprovalTerms {
                text: command.to_owned(),
                approvers: Vec::new(),
                within: Duration::from_secs(60),
            },
        }
    };
    node.asks(&eve, asks("make", "make")).await;
    let heard = ada.hears("approval.request").await;
    let data = &heard["data"];
    assert_eq!((&data["agent_id"], &data["approval_type"]), (&json!("eve"), &json!("exec")));
    assert_eq!(data["details"], json!({"command": "make"}));
    let decided = ada.gets("approval.response", says(&data["request_id"], "request_changes")).await;
    assert_eq!(decided["decision"], "request_changes");
    // What is not shown is not approved.
    node.asks(&eve, asks("rm -r /", "ls")).await;
    let heard = ada.hears("approval.request").await;
    let refused =
        ada.refused("approval.response", says(&heard["data"]["request_id"], "approved")).await;
    assert_eq!(refused, no("RESOURCE_CONFLICT", "not as shown"));
    // Somebody of another dialect decides about one of this.
    bob.gets("approval.request", wants(3, "deploy")).await;
    let open = node.asks(&eve, ListApprovals { room: None }).await;
    let own = open.iter().find(|view| &*view.by == "bob").unwrap();
    let choice = Choice::Deny;
    let decide = Decide { room: lobby(), approval: own.id, choice, reason: Some("no".to_owned()) };
    node.asks(&eve, decide).await;
    for client in [&mut ada, &mut bob] {
        let heard = client.find(|frame| frame["data"]["decision"] == "denied").await;
        let data = &heard["data"];
        assert_eq!((&data["request_id"], &data["feedback"]), (&json!(ulid(3)), &json!("no")));
        assert_eq!(data["approver"]["display_name"], "eve");
        let rest = client.rest().await;
        let is_more = |frame: &&Value| frame["data"]["decision"] == "denied";
        assert_eq!(rest.iter().filter(is_more).count(), 0, "told once: {rest:?}");
    }
    // Who says that something was decided has not decided it.
    bob.gets("approval.request", wants(4, "deploy again")).await;
    let asked = ada.find(|frame| frame["data"]["request_id"] == ulid(4)).await;
    let id = RoomId(ids::parse(asked["metadata"]["message_id"].as_str().unwrap()).unwrap());
    let forged = json!({
        "kind": "approval_decision", "approval": {"id": id.to_uuid(), "decision": "approved"},
    });
    let says = Say { metadata: Some(forged.to_string()), ..Say::chat(lobby(), "yes".to_owned()) };
    node.asks(&eve, says).await;
    for client in [&mut ada, &mut bob] {
        let heard = client.find(|frame| frame["data"]["content"]["text"] == "yes").await;
        assert_eq!(heard["type"], "chat.agent_message");
    }
    node.stop().await;
}

#[tokio::test]
async fn nobody_decides_in_time() {
    let node = Node::new().await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut data = wants(5, "deploy");
    data["timeout"] = json!("PT2S");
    bob.gets("approval.request", data).await;
    node.fake.pass(Duration::from_secs(3));
    for client in [&mut ada, &mut bob] {
        let heard = client.hears("approval.response").await;
        let data = &heard["data"];
        assert_eq!((&data["decision"], &data["request_id"]), (&json!("expired"), &json!(ulid(5))));
        assert_eq!(data.get("approver"), None);
    }
    let late = ada.refused("approval.response", says(&json!(ulid(5)), "approved")).await;
    assert_eq!(late, no("RESOURCE_CONFLICT", "expired"));
    node.stop().await;
}

#[tokio::test]
async fn a_task_in_review_goes_on_as_it_was_decided() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    for (seed, decision, status) in [
        (11, "approved", TaskStatus::Completed),
        (12, "request_changes", TaskStatus::InProgress),
        (13, "denied", TaskStatus::InReview),
    ] {
        let task = node.in_review(&eve).await;
        let mut data = wants(seed, "is it good?");
        data["task_id"] = json!(ids::text(task.0));
        bob.gets("approval.request", data).await;
        ada.gets("approval.response", says(&json!(ulid(seed)), decision)).await;
        assert_eq!(node.states(&eve).await.last(), Some(&status), "{decision}");
    }
    let told = bob.find(|frame| frame["data"]["status"] == "completed").await;
    assert_eq!(told["type"], "task.status");
    // Of another one's task nobody was asked, and whoever decides, in whichever dialect, moves it.
    let task = node.in_review(&eve).await;
    for (by, status) in [("carl", TaskStatus::InReview), ("dan", TaskStatus::Completed)] {
        let asker = node.other(by).await;
        if status == TaskStatus::Completed {
            let held = TaskUpdate { assignee: Some(Some(by.into())), ..TaskUpdate::of(task) };
            node.asks(&eve, ChangeTask(held)).await;
        }
        let approval = json!({"command": "x", "task_id": task.to_uuid()});
        let metadata = json!({"kind": "approval_request", "approval": approval}).to_string();
        let say = Say { metadata: Some(metadata), ..Say::chat(lobby(), "x".to_owned()) };
        let terms = ApprovalTerms {
            text: "x".to_owned(),
            approvers: Vec::new(),
            within: Duration::from_secs(60),
        };
        let Requested { said, .. } = node.asks(&asker, RequestApproval { say, terms }).await;
        let decide =
            Decide { room: lobby(), approval: said.message, choice: Choice::Approve, reason: None };
        node.asks(&eve, decide).await;
        assert_eq!(node.states(&eve).await.last(), Some(&status), "{by}");
    }
    node.stop().await;
}

//! What agents ask of each other.

use bridge::seam::call::{AssignTask, ChangeTask, Join, OpenDirect};
use mesh::{
    api::agenda::{NewTask, TaskUpdate},
    name::id::AgentId,
    wire::tasks::TaskStatus,
};

use super::*;

/// Something that an agent asks of another one, which waits for an answer.
async fn asks(of: &Agent, to: &str, text: &str) -> Said {
    let desk = of.bridge.desk();
    let room = desk.ask(&of.visitor, OpenDirect::with(AgentId::from(to))).await.unwrap().room;
    let say = Say { expects_reply: Some(true), ..Say::chat(room, text.to_owned()) };
    desk.ask(&of.visitor, say).await.unwrap();
    let call = History { room, from: From::Newest, limit: 100, before_ms: None };
    let said = desk.ask(&of.visitor, call).await.unwrap().messages;
    said.into_iter().rfind(|said| said.said.content == text).unwrap()
}

#[tokio::test]
async fn what_agents_ask_of_each_other_is_listed_with_what_came_of_it() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Write, Scope::Read]));
    let (bob, cy) = (node.agent("bob", KEY).await, node.agent("cy", KEY).await);
    let done = asks(&bob, "cy", "count the sheep").await;
    cy.answers(&done, "seven").await;
    let failed = asks(&bob, "cy", "count the stars").await;
    cy.says(failed.room, "no", &failed, Some(json!({"error": "too many"}))).await;
    asks(&cy, "bob", "and now?").await;
    for agent in [&bob, &cy] {
        node.bridge.desk().ask(&agent.visitor, Join(lobby())).await.unwrap();
    }
    let new = NewTask { assignee: Some("cy".into()), ..NewTask::of(lobby(), "shear".to_owned()) };
    node.bridge.desk().ask(&bob.visitor, AssignTask(new)).await.unwrap();

    let mut client = node.owner().await;
    let list = client.gets("delegations.list", json!({})).await;
    assert_eq!(list["total"], 4, "{list}");
    let rows = list["records"].as_array().unwrap();
    let of = |task: &str| rows.iter().find(|row| row["task"] == task).unwrap();
    let row = of("count the sheep");
    for (name, value) in [
        ("id", json!(done.message.to_uuid())),
        ("source_agent_key", json!("bob")),
        ("target_agent_key", json!("cy")),
        ("target_agent_id", json!(crate::names::uuid_of("cy"))),
        ("mode", json!("sync")),
        ("status", json!("completed")),
        ("result", json!("seven")),
    ] {
        assert_eq!(row[name], value, "{row}");
    }
    assert!(row["completed_at"].is_string() && row["error"].is_null(), "{row}");
    let row = of("count the stars");
    assert_eq!((&row["status"], &row["error"]), (&json!("failed"), &json!("too many")));
    let row = of("and now?");
    assert_eq!((&row["status"], &row["completed_at"]), (&json!("running"), &Value::Null));
    let row = of("shear");
    assert_eq!((&row["mode"], &row["team_id"]), (&json!("task"), &json!(lobby().to_uuid())));
    assert_eq!(row["team_task_id"], row["id"]);
    let wanted = json!({"source_agent_id": "bob", "status": "failed", "limit": 1});
    let list = client.gets("delegations.list", wanted).await;
    assert_eq!(
        (&list["total"], &list["records"][0]["task"]),
        (&json!(1), &json!("count the stars"))
    );
    let one = client.gets("delegations.get", json!({"id": done.message.to_uuid()})).await;
    assert_eq!(one["result"], "seven");
    let no = client.refused("delegations.get", json!({"id": "x"})).await;
    assert_eq!(no, ("NOT_FOUND".to_owned(), "delegation not found: x".to_owned()));
    let no = client.refused("delegations.list", json!({"status": "odd"})).await.0;
    assert_eq!(no, "INVALID_REQUEST");
    // Another key's holder sees tasks of rooms that it may read, and no direct room of this key.
    let mut other = node.connected(MINTED, "eve").await;
    let list = other.gets("delegations.list", json!({})).await;
    assert_eq!((&list["total"], &list["records"][0]["task"]), (&json!(1), &json!("shear")));
}

#[tokio::test]
async fn a_person_is_shown_what_agents_ask_of_it_and_of_nobody_else() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Write, Scope::Read]));
    let (bob, _cy) = (node.agent("bob", MINTED).await, node.agent("cy", MINTED).await);
    asks(&bob, "cy", "secret").await;
    let mut eve = node.connected(MINTED, "eve").await;
    eve.gets("send", json!({"channel": "agent", "to": "bob", "message": "here I am"})).await;
    let me = bob.hears(&node, "here I am").await.said.agent.clone();
    asks(&bob, &me, "may I?").await;
    let list = eve.gets("delegations.list", json!({})).await;
    assert_eq!(list["total"], 1, "{list}");
    assert_eq!(
        (&list["records"][0]["task"], &list["records"][0]["user_id"]),
        (&json!("may I?"), &json!("eve"))
    );
}

#[tokio::test]
async fn a_task_that_one_agent_gives_another_is_told_when_it_begins_and_ends() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Read]));
    let (bob, cy) = (node.agent("bob", KEY).await, node.agent("cy", KEY).await);
    let desk = node.bridge.desk();
    for agent in [&bob, &cy] {
        desk.ask(&agent.visitor, Join(lobby())).await.unwrap();
    }
    let mut client = node.owner().await;
    let mut viewer = node.connected(MINTED, "eve").await;
    for (end, name) in [
        (TaskStatus::Completed, "delegation.completed"),
        (TaskStatus::Failed, "delegation.failed"),
        (TaskStatus::Cancelled, "delegation.cancelled"),
    ] {
        let new = NewTask { assignee: Some("cy".into()), ..NewTask::of(lobby(), "shear") };
        let task = desk.ask(&bob.visitor, AssignTask(new)).await.unwrap().task;
        let begun = client.event_called("delegation.started").await;
        let begins = TaskUpdate { status: Some(TaskStatus::InProgress), ..TaskUpdate::of(task) };
        desk.ask(&cy.visitor, ChangeTask(begins)).await.unwrap();
        let ends = TaskUpdate { status: Some(end), ..TaskUpdate::of(task) };
        desk.ask(&cy.visitor, ChangeTask(ends)).await.unwrap();
        let over = loop {
            let event = client.any_event().await;
            if event["event"].as_str().unwrap().starts_with("delegation.") {
                break event;
            }
        };
        assert_eq!(over["event"], name, "and nothing between the two");
        for (told, status) in [(begun, "running"), (over, &name["delegation.".len()..])] {
            let told = &told["payload"];
            assert_eq!((&told["id"], &told["status"]), (&json!(task.to_uuid()), &json!(status)));
            assert_eq!(
                (&told["source_agent_key"], &told["target_agent_key"]),
                (&json!("bob"), &json!("cy"))
            );
        }
    }
    // A task that nobody gave: its maker has it.
    let own = NewTask { assignee: Some("cy".into()), ..NewTask::of(lobby(), "wash") };
    let task = desk.ask(&cy.visitor, AssignTask(own)).await.unwrap().task;
    let ends = TaskUpdate { status: Some(TaskStatus::Completed), ..TaskUpdate::of(task) };
    desk.ask(&cy.visitor, ChangeTask(ends)).await.unwrap();
    loop {
        let event = client.any_event().await;
        assert!(!event["event"].as_str().unwrap().starts_with("delegation."), "{event}");
        if event["event"] == "team.task.completed" && event["payload"]["subject"] == "wash" {
            break;
        }
    }
    viewer.gets("health", json!({})).await;
    assert!(viewer.events.iter().all(|event| event["event"] == "presence"), "{:?}", viewer.events);
    node.stop().await;
}

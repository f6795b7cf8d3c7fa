//! Tasks: reviews, comments, what agents of other dialects do to them, and their end.

use bridge::seam::call::{AssignTask, ChangeTask, Join};
use mesh::{
    api::agenda::{NewTask, TaskUpdate},
    name::id::MessageId,
    wire::tasks::{CommentKind, TaskFields, TaskProgress, TaskStatus},
};

use super::*;

/// A node, its owner, and an agent in the lobby.
async fn shearers() -> (Node, Client, Agent) {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob.visitor, Join(lobby())).await.unwrap();
    let client = node.owner().await;
    (node, client, bob)
}

impl Agent {
    async fn changes(&self, update: TaskUpdate) {
        self.bridge.desk().ask(&self.visitor, ChangeTask(update)).await.unwrap();
    }
}

impl Client {
    /// The next events of tasks, each by its last word and its state.
    async fn told(&mut self, count: usize) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for _ in 0..count {
            let event = self.event().await;
            let name = event["event"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
            told.push((name, event["payload"]["status"].as_str().unwrap().to_owned()));
        }
        told
    }
}

fn in_team(task: &Value) -> Value {
    json!({"teamId": "lobby", "taskId": task})
}

fn id(task: &Value) -> MessageId {
    MessageId::from_uuid(task.as_str().unwrap()).unwrap()
}

fn pair(name: &str, status: &str) -> (String, String) {
    (name.to_owned(), status.to_owned())
}

#[tokio::test]
async fn fields_of_a_task_are_those_that_it_was_made_with_and_that_agents_set() {
    let (node, mut client, bob) = shearers().await;
    let params = json!({
        "teamId": "lobby", "subject": "shear", "priority": 9, "taskType": "farm", "channel": "ws",
        "chatId": "agent:bob:ws:direct:1",
    });
    let made = client.gets("teams.tasks.create", params).await["task"].clone();
    assert_eq!((&made["priority"], &made["task_type"]), (&json!(3), &json!("farm")));
    assert_eq!(
        (&made["user_id"], &made["chat_id"]),
        (&json!("ada"), &json!("agent:bob:ws:direct:1"))
    );
    assert_eq!(made["task_number"], 1);
    assert!(made["identifier"].as_str().unwrap().starts_with("T-1-"), "{made}");
    let fields = TaskFields {
        labels: Some(vec!["wool".to_owned()]),
        progress: Some(TaskProgress { percent: 40, step: "left side".to_owned() }),
        result: Some("\"soft\"".to_owned()),
        ..TaskFields::default()
    };
    let fields = Box::new(fields);
    bob.changes(TaskUpdate { fields, ..TaskUpdate::of(id(&made["id"])) }).await;
    let row = client.gets("teams.tasks.get-light", in_team(&made["id"])).await["task"].clone();
    assert_eq!((&row["progress_percent"], &row["result"]), (&json!(40), &json!("soft")));
    assert_eq!(
        (&row["progress_step"], &row["metadata"]),
        (&json!("left side"), &json!({"labels": ["wool"]}))
    );
    let session = json!({"sessionKey": "agent:bob:ws:direct:1"});
    let active = client.gets("teams.tasks.active-by-session", session).await;
    assert_eq!(active["tasks"][0]["id"], made["id"]);
    for (chat, count) in [("agent:bob:ws:direct:1", 1), ("other", 0)] {
        let params = json!({"teamId": "lobby", "chatId": chat});
        assert_eq!(client.gets("teams.tasks.list", params).await["count"], count);
    }
    let scopes = client.gets("teams.scopes", json!({"teamId": "lobby"})).await;
    let scope = json!({"channel": "ws", "chat_id": "agent:bob:ws:direct:1"});
    assert_eq!(scopes, json!({"scopes": [scope]}));
    node.stop().await;
}

#[tokio::test]
async fn an_administrator_decides_about_what_agents_send_to_review_and_deletes_it() {
    let (node, mut client, bob) = shearers().await;
    let made = client.gets("teams.tasks.create", json!({"teamId": "lobby", "subject": "a"})).await;
    let task = made["id"].clone();
    let refused = |text: &str| ("INVALID_REQUEST".to_owned(), text.to_owned());
    let approve = client.refused("teams.tasks.approve", in_team(&task)).await;
    assert_eq!(approve, refused("task is not in review"));
    let mut params = in_team(&task);
    params["agentId"] = json!("bob");
    client.gets("teams.tasks.assign", params).await;
    bob.changes(TaskUpdate { status: Some(TaskStatus::InReview), ..TaskUpdate::of(id(&task)) })
        .await;
    let open = client.refused("teams.tasks.delete", in_team(&task)).await;
    assert_eq!(open, refused("task is not in a deletable state"));
    let mut params = in_team(&task);
    params["comment"] = json!("well done");
    let approved = client.gets("teams.tasks.approve", params).await;
    assert_eq!(approved["task"]["status"], "completed");
    assert_eq!(
        client.refused("teams.tasks.reject", in_team(&task)).await,
        refused("task is not in review")
    );
    assert_eq!(client.gets("teams.tasks.delete", in_team(&task)).await, json!({"ok": true}));
    assert_eq!(client.refused("teams.tasks.get", in_team(&task)).await.0, "NOT_FOUND");
    let told = client.told(7).await;
    let expected = [
        pair("created", "pending"),
        pair("assigned", "in_progress"),
        pair("reviewed", "in_review"),
        pair("approved", "completed"),
        pair("completed", "completed"),
        pair("commented", "completed"),
        pair("deleted", "completed"),
    ];
    assert_eq!(told, expected);
    let other = node.bridge.desk().ask(&bob.visitor, AssignTask(NewTask::of(lobby(), "b"))).await;
    let other = other.unwrap().task;
    bob.changes(TaskUpdate { status: Some(TaskStatus::Failed), ..TaskUpdate::of(other) }).await;
    let params = json!({"teamId": "lobby", "taskIds": [other.to_uuid(), task]});
    assert_eq!(
        client.gets("teams.tasks.delete-bulk", params).await,
        json!({"deleted": 0}),
        "bob's"
    );
    node.stop().await;
}

#[tokio::test]
async fn what_agents_of_other_dialects_do_is_told_to_those_who_may_see_it() {
    let (node, mut client, bob) = shearers().await;
    node.mint(MINTED, Some(&[Scope::Write]));
    let mut operator = node.connected(MINTED, "eve").await;
    let desk = node.bridge.desk();
    let made = desk.ask(&bob.visitor, AssignTask(NewTask::of(lobby(), "shear"))).await.unwrap();
    let claim = TaskUpdate {
        assignee: Some(Some("bob".into())),
        if_assignee: Some(None),
        status: Some(TaskStatus::InProgress),
        note: Some("mine".to_owned()),
        kind: CommentKind::Status,
        ..TaskUpdate::of(made.task)
    };
    bob.changes(claim).await;
    let free = TaskUpdate { assignee: Some(None), ..TaskUpdate::of(made.task) };
    bob.changes(free).await;
    let told = client.told(5).await;
    let expected = [
        pair("created", "pending"),
        pair("claimed", "in_progress"),
        pair("updated", "in_progress"),
        pair("commented", "in_progress"),
        pair("updated", "in_progress"),
    ];
    assert_eq!(told, expected);
    let record = client.gets("teams.tasks.get", in_team(&json!(made.task.to_uuid()))).await;
    let [comment] = &record["comments"].as_array().unwrap()[..] else { panic!("{record}") };
    assert_eq!(
        (&comment["agent_key"], &comment["comment_type"]),
        (&json!("bob"), &json!("status"))
    );
    let events = record["events"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["created", "claimed", "updated"]);
    // Programs that have only this dialect work at tasks, too, and hear of none by themselves.
    let mut update = in_team(&json!(made.task.to_uuid()));
    let more = json!({"assignee": "u-x", "status": "in_progress", "progress": 7, "ifAssignee": ""});
    update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(operator.refused("mesh.tasks.update", update.clone()).await.0, "NOT_FOUND");
    update["assignee"] = json!("bob");
    let done = operator.gets("mesh.tasks.update", update.clone()).await;
    assert_eq!(
        (&done["task"]["progress_percent"], &done["task"]["owner_agent_key"]),
        (&json!(7), &json!("bob"))
    );
    let held = ("INVALID_REQUEST".to_owned(), "task is held by bob".to_owned());
    assert_eq!(operator.refused("mesh.tasks.update", update).await, held);
    assert!(operator.events.is_empty(), "{:?}", operator.events);
    node.stop().await;
}

#[tokio::test]
async fn of_more_comments_than_a_task_keeps_the_newest_are_shown() {
    let (node, mut client, bob) = shearers().await;
    let made = client.gets("teams.tasks.create", json!({"teamId": "lobby", "subject": "a"})).await;
    let most = mesh::limits::TASK_COMMENTS_MAX;
    for nth in 1..=most {
        let note = Some(format!("note {nth}"));
        bob.changes(TaskUpdate { note, ..TaskUpdate::of(id(&made["id"])) }).await;
    }
    let mut comment = in_team(&made["id"]);
    comment["content"] = json!("and one more");
    assert_eq!(client.gets("teams.tasks.comment", comment).await["ok"], true);
    let record = client.gets("teams.tasks.get", in_team(&made["id"])).await;
    let texts: Vec<&str> = record["comments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|comment| comment["content"].as_str().unwrap())
        .collect();
    assert_eq!((most, texts.len()), (200, 200));
    assert_eq!((texts[0], texts[198], texts[199]), ("note 2", "note 200", "and one more"));
    node.stop().await;
}

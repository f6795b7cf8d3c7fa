//! Rooms as teams, and their tasks.

use bridge::seam::call::{AssignTask, ChangeTask, CreateRoom, Join};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        command::NewRoom,
    },
    wire::acts::TaskStatus,
};

use super::*;

#[tokio::test]
async fn rooms_are_teams_and_their_tasks_are_those_that_agents_have() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let desk = node.bridge.desk();
    let new = NewRoom {
        name: "shearers".to_owned(),
        description: Some("of sheep".to_owned()),
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let room = desk.ask(&bob.visitor, CreateRoom(new)).await.unwrap().room;
    desk.ask(&bob.visitor, Join(room)).await.unwrap();
    let task = |title: &str, assignee: Option<&str>| {
        let assignee = assignee.map(Into::into);
        AssignTask(NewTask { room, title: title.to_owned(), description: None, assignee })
    };
    let open = desk.ask(&bob.visitor, task("open", None)).await.unwrap();
    desk.ask(&bob.visitor, task("held", Some("bob"))).await.unwrap();
    let done = desk.ask(&bob.visitor, task("done", Some("bob"))).await.unwrap();
    let (status, note) = (Some(TaskStatus::Completed), Some("all of them".to_owned()));
    let end = TaskUpdate { task: done.task, status, assignee: None, note, if_assignee: None };
    desk.ask(&bob.visitor, ChangeTask(end)).await.unwrap();
    let mut client = node.owner().await;
    let list = client.gets("teams.list", json!({})).await;
    assert_eq!(list["count"], 2, "{list}");
    let id = room.to_uuid();
    for params in [json!({"teamId": id}), json!({"team_id": id}), json!({"id": "shearers"})] {
        let got = client.gets("teams.get", params).await;
        assert_eq!((&got["id"], &got["team"]["name"]), (&json!(id), &json!("shearers")));
        assert_eq!(got["team"]["settings"], json!({"visibility": "private"}));
        assert_eq!(
            (&got["team"]["lead_agent_key"], &got["team"]["status"]),
            (&json!("bob"), &json!("active"))
        );
        assert_eq!(
            (&got["members"][0]["agent_key"], &got["members"][0]["role"]),
            (&json!("bob"), &json!("lead"))
        );
    }
    let tasks = client.gets("teams.tasks.list", json!({"team_id": id})).await;
    let rows = tasks["tasks"].as_array().unwrap();
    let shown: Vec<_> =
        rows.iter().map(|row| (row["subject"].as_str(), row["status"].as_str())).collect();
    let expect = [("done", "completed"), ("held", "in_progress"), ("open", "pending")];
    assert_eq!(shown, expect.map(|(subject, status)| (Some(subject), Some(status))));
    assert_eq!((&rows[1]["owner_agent_key"], &rows[1]["task_number"]), (&json!("bob"), &json!(2)));
    for (status, count) in
        [("open", 2), ("assigned", 1), ("approved", 1), ("in_review", 0), ("all", 3)]
    {
        let params = json!({"teamId": id, "status": status});
        assert_eq!(client.gets("teams.tasks.list", params).await["count"], count, "{status}");
    }
    let params = json!({"teamId": id, "status": "x"});
    assert_eq!(client.refused("teams.tasks.list", params).await.0, "INVALID_REQUEST");
    let params = json!({"teamId": id, "task_id": done.task.to_uuid()});
    let got = client.gets("teams.tasks.get", params.clone()).await;
    assert_eq!(
        (&got["id"], &got["comments"][0]["content"]),
        (&json!(done.task.to_uuid()), &json!("all of them"))
    );
    assert_eq!(client.gets("teams.tasks.get-light", params).await["task"]["subject"], "done");
    // A task is its own team's.
    let params = json!({"teamId": "lobby", "taskId": open.task.to_uuid()});
    assert_eq!(client.refused("teams.tasks.get", params).await.0, "NOT_FOUND");
    // A room of another key is as one that is not there.
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut other = node.connected(MINTED, "x").await;
    assert_eq!(other.gets("teams.list", json!({})).await["count"], 1);
    let missing = other.refused("teams.get", json!({"teamId": id})).await;
    assert_eq!(missing, ("NOT_FOUND".to_owned(), format!("team not found: {id}")));
    node.stop().await;
}

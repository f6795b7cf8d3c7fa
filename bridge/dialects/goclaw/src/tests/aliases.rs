//! Fields under all names that clients give them (§5 of the specification), where no test of a method has them.

use super::*;

#[tokio::test]
async fn fields_of_teams_tasks_and_files_are_taken_under_all_their_names() {
    let node = Node::new().await;
    let _bob = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let mut team = Value::Null;
    for members in ["members", "agent_ids", "agentIds"] {
        let made = client.gets("teams.create", json!({"name": members, members: ["bob"]})).await;
        assert_eq!(made["team"]["lead_agent_key"], "bob", "{members}");
        team = made["id"].clone();
    }
    for name in ["teamId", "team_id", "id"] {
        assert_eq!(client.gets("teams.get", json!({name: team})).await["id"], team, "{name}");
    }
    for (subject, assignee) in
        [("subject", "assignTo"), ("title", "assignee_id"), ("title", "assigneeId")]
    {
        let asked = json!({"team_id": team, subject: "mend", assignee: "bob"});
        let made = client.gets("teams.tasks.create", asked).await;
        assert_eq!(made["task"]["subject"], "mend", "{subject}");
        assert_eq!(made["task"]["owner_agent_key"], "bob", "{assignee}");
        assert_eq!(made["id"], made["task"]["id"]);
    }
    let mut task = Value::Null;
    for agent in ["agentId", "agent_id", "agent_key"] {
        let made =
            client.gets("teams.tasks.create", json!({"teamId": team, "subject": agent})).await;
        task = made["id"].clone();
        let asked = json!({"teamId": team, "task_id": task, agent: "bob"});
        let given = client.gets("teams.tasks.assign", asked).await;
        assert_eq!(given["task"]["owner_agent_key"], "bob", "{agent}");
    }
    for name in ["content", "text"] {
        let asked = json!({"teamId": team, "taskId": task, name: "a word"});
        assert_eq!(client.gets("teams.tasks.comment", asked).await["ok"], true, "{name}");
    }
    for name in ["taskId", "task_id"] {
        let got = client.gets("teams.tasks.get", json!({"teamId": team, name: task})).await;
        assert_eq!(got["id"], task, "{name}");
        let words = got["comments"].as_array().unwrap();
        assert!(words.len() >= 2 && words.iter().any(|it| it["content"] == "a word"), "{got}");
    }
    for (status, count) in [("open", 6), ("active", 6), ("assigned", 6), ("approved", 0)] {
        let asked = json!({"teamId": team, "status": status});
        assert_eq!(client.gets("teams.tasks.list", asked).await["count"], count, "{status}");
    }
    for name in ["name", "fileName", "file_name"] {
        let set = json!({"agentId": "bob", name: "SOUL.md", "content": name});
        client.gets("agents.files.set", set).await;
        let got =
            client.gets("agents.files.get", json!({"agent_key": "bob", name: "SOUL.md"})).await;
        assert_eq!((&got["content"], &got["file"]["content"]), (&json!(name), &json!(name)));
    }
    node.stop().await;
}

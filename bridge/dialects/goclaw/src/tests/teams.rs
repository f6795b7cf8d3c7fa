//! Rooms as teams, and their tasks.

use bridge::seam::call::{AssignTask, ChangeTask, CreateRoom, Join, SetRoom};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        command::{NewRoom, Speech},
    },
    records::details::DetailsUpdate,
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
        AssignTask(NewTask { assignee, ..NewTask::of(room, title.to_owned()) })
    };
    let open = desk.ask(&bob.visitor, task("open", None)).await.unwrap();
    desk.ask(&bob.visitor, task("held", Some("bob"))).await.unwrap();
    let done = desk.ask(&bob.visitor, task("done", Some("bob"))).await.unwrap();
    let (status, note) = (Some(TaskStatus::Completed), Some("all of them".to_owned()));
    let end = TaskUpdate { status, note, ..TaskUpdate::of(done.task) };
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

#[tokio::test]
async fn a_team_is_made_and_changed_by_administrators_of_its_key() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    let settings = json!({"visibility": "public", "lang": "en"});
    let params = json!({"name": "readers", "description": "of books", "settings": settings});
    let made = client.gets("teams.create", params.clone()).await;
    assert_eq!((&made["team"]["settings"], &made["id"]), (&settings, &made["team"]["id"]));
    let told = client.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["team_name"]),
        (&json!("team.created"), &json!("readers"))
    );
    let told = client.event().await;
    assert_eq!(told["payload"]["changes"], json!(["settings.lang"]), "its settings come after it");
    assert_eq!(client.refused("teams.create", params).await.0, "ALREADY_EXISTS");
    let params = json!({"name": "x", "agent_ids": ["bob"]});
    assert_eq!(client.refused("teams.create", params).await.0, "NOT_FOUND", "nobody is called so");
    assert_eq!(
        client.refused("teams.create", json!({"name": "dm:a:b"})).await.0,
        "INVALID_REQUEST"
    );
    let id = made["id"].clone();
    let params = json!({"team_id": id, "name": "Readers of books", "settings": {"lang": null}});
    assert_eq!(client.gets("teams.update", params).await, json!({"ok": true}));
    let told = client.event().await;
    let payload = json!({
        "team_id": id, "team_name": "Readers of books", "member_count": 0,
        "changes": ["name", "settings"],
    });
    assert_eq!((&told["event"], &told["payload"]), (&json!("team.updated"), &payload));
    let got = client.gets("teams.get", json!({"id": id})).await;
    assert_eq!(got["team"]["name"], "Readers of books");
    assert_eq!(got["team"]["settings"], json!({"visibility": "public"}));
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut other = node.connected(MINTED, "x").await;
    let no =
        ("UNAUTHORIZED".to_owned(), "permission denied: not the owner of this team".to_owned());
    assert_eq!(other.refused("teams.update", json!({"id": id, "name": "y"})).await, no);
    let write = json!({"teamId": id, "path": "a.md", "content": "x"});
    assert_eq!(other.refused("teams.workspace.write", write).await, no);
    assert_eq!(other.refused("teams.delete", json!({"id": id})).await, no);
    let lobby = client.refused("teams.delete", json!({"id": "lobby"})).await;
    assert_eq!(lobby.0, "INVALID_REQUEST");
    assert_eq!(client.gets("teams.delete", json!({"teamId": id})).await, json!({"ok": true}));
    assert_eq!(client.event().await["event"], "team.deleted");
    assert_eq!(client.refused("teams.get", json!({"id": id})).await.0, "NOT_FOUND");
    assert_eq!(client.gets("teams.list", json!({})).await["count"], 1, "the lobby");
    node.stop().await;
}

#[tokio::test]
async fn a_team_has_files() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    let id = client.gets("teams.create", json!({"name": "readers"})).await["id"].clone();
    let write = |path: &str, content: &str| json!({"teamId": id, "path": path, "content": content});
    let written = client.gets("teams.workspace.write", write("notes/a.md", "one")).await;
    assert_eq!((&written["file"]["name"], &written["file"]["size"]), (&json!("a.md"), &json!(3)));
    let list = client.gets("teams.workspace.list", json!({"team_id": id})).await;
    assert_eq!((&list["count"], &list["files"][0]["path"]), (&json!(1), &json!("notes/a.md")));
    let named = json!({"teamId": id, "file_name": "notes/a.md"});
    assert_eq!(client.gets("teams.workspace.read", named.clone()).await["content"], "one");
    for path in ["../x", "/x", "a\\b"] {
        let refused = client.refused("teams.workspace.write", write(path, "x")).await;
        assert_eq!(refused, ("INVALID_REQUEST".to_owned(), "invalid path".to_owned()), "{path}");
    }
    let large = "x".repeat(256 * 1024 + 1);
    assert_eq!(
        client.refused("teams.workspace.write", write("a", &large)).await.0,
        "INVALID_REQUEST"
    );
    assert_eq!(
        client.gets("teams.workspace.delete", named.clone()).await,
        json!({"deleted": true})
    );
    assert_eq!(client.refused("teams.workspace.read", named).await.0, "NOT_FOUND");
    node.stop().await;
}

#[tokio::test]
async fn a_task_is_made_given_to_an_agent_and_commented_by_a_person_who_is_no_member() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    let desk = node.bridge.desk();
    desk.ask(&bob.visitor, Join(lobby())).await.unwrap();
    let mut client = node.owner().await;
    let params = json!({"team_id": "lobby", "title": "shear", "description": "all of them"});
    let made = client.gets("teams.tasks.create", params).await;
    assert_eq!(
        (&made["task"]["status"], &made["task"]["task_number"]),
        (&json!("pending"), &json!(1))
    );
    let told = client.event().await;
    assert_eq!(
        (&told["event"], &told["payload"]["actor_type"]),
        (&json!("team.task.created"), &json!("human"))
    );
    let id = made["id"].clone();
    let params = json!({"teamId": "lobby", "taskId": id, "agent": "bob"});
    let given = client.gets("teams.tasks.assign", params.clone()).await;
    assert_eq!(
        (&given["task"]["status"], &given["task"]["owner_agent_key"]),
        (&json!("in_progress"), &json!("bob"))
    );
    assert_eq!(client.event().await["event"], "team.task.assigned");
    let call = History { room: lobby(), from: From::Newest, limit: 9, before_ms: None };
    let heard = desk.ask(&bob.visitor, call).await.unwrap().messages;
    let text = format!("[Assigned task #1 ({})]: shear", id.as_str().unwrap());
    assert_eq!(heard[0].said.content, text);
    assert_eq!(heard[0].said.mentions, ["bob".into()]);
    let held = ("INVALID_REQUEST".to_owned(), "task is held by bob".to_owned());
    assert_eq!(client.refused("teams.tasks.assign", params).await, held);
    let params = json!({"teamId": "lobby", "task_id": id, "text": "be gentle"});
    assert_eq!(client.gets("teams.tasks.comment", params).await["ok"], true);
    let got = client.gets("teams.tasks.get", json!({"teamId": "lobby", "taskId": id})).await;
    assert_eq!(got["comments"][0]["content"], "be gentle");
    let params = json!({"teamId": "lobby", "subject": "x", "assignTo": "nobody"});
    assert_eq!(client.refused("teams.tasks.create", params).await.0, "NOT_FOUND");
    let count = client.gets("teams.tasks.list", json!({"teamId": "lobby"})).await["count"].clone();
    assert_eq!(count, 1, "nothing is made for an agent that nobody knows");
    let params = json!({"channel": "room", "to": "lobby", "message": "hello all"});
    client.gets("send", params).await;
    let members = client.gets("teams.get", json!({"id": "lobby"})).await["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 1, "a person takes no seat: {members}");
    node.stop().await;
}

#[tokio::test]
async fn what_is_said_in_teams_is_told_and_thoughts_and_direct_rooms_are_not() {
    let node = Node::new().await;
    let mut admin = node.owner().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let mut other = node.connected(MINTED, "eve").await;
    let bob = node.agent("bob", KEY).await;
    let desk = node.bridge.desk();
    let lobby = bridge::testing::lobby();
    desk.ask(&bob.visitor, Join(lobby)).await.unwrap();
    let direct = json!({"agentId": "bob", "message": "between us"});
    let run = admin.begin("chat.send", direct).await;
    let asked = bob.hears(&node, "between us").await;
    bob.answers(&asked, "yes").await;
    admin.answer(&run).await.unwrap();
    let thought = Say { speech: Speech::Thinking, ..Say::chat(lobby, "hm".to_owned()) };
    desk.ask(&bob.visitor, thought).await.unwrap();
    let commit = json!({"kind": "git.commit", "git": {}}).to_string();
    let said = Say {
        metadata: Some(commit),
        mentions: vec!["bob".into()],
        ..Say::chat(lobby, "x".repeat(300))
    };
    let said = desk.ask(&bob.visitor, said).await.unwrap();
    for client in [&mut admin, &mut other] {
        let told = client.event_called("team.message.sent").await["payload"].clone();
        let expected = json!({
            "team_id": lobby.to_uuid(), "from_agent_key": "bob", "to_agent_key": "bob",
            "message_type": "git.commit", "preview": "x".repeat(200),
            "message_id": said.message.to_uuid(), "seq": said.number.0,
        });
        assert_eq!(told, expected);
    }
    // Of a room that is not its key's it hears nothing.
    let made = admin.gets("teams.create", json!({"name": "ours"})).await;
    let to = |room: &Value| json!({"channel": "room", "to": room, "message": "hello"});
    admin.gets("send", to(&made["id"])).await;
    admin.gets("send", to(&json!("lobby"))).await;
    let told = other.event_called("team.message.sent").await["payload"].clone();
    assert_eq!((&told["team_id"], &told["user_id"]), (&json!(lobby.to_uuid()), &json!("ada")));
    let told = admin.event_called("team.message.sent").await["payload"].clone();
    assert_eq!((&told["team_id"], &told["message_type"]), (&made["id"], &json!("chat")));
    node.stop().await;
}

#[tokio::test]
async fn rooms_that_agents_of_other_dialects_make_and_end_are_told_to_those_who_may_see_them() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let bob = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let mut other = node.connected(MINTED, "eve").await;
    let make = async |name: &str, public: bool| {
        let name = name.to_owned();
        let new = NewRoom {
            name,
            description: None,
            parent: None,
            ephemeral: false,
            public,
            encrypted: false,
        };
        node.bridge.desk().ask(&bob.visitor, CreateRoom(new)).await.unwrap().room
    };
    let (private, public) = (make("shed", false).await, make("meadow", true).await);
    for (room, name) in [(private, "shed"), (public, "meadow")] {
        let told = client.event().await;
        let payload = json!({
            "team_id": room.to_uuid(), "team_name": name, "member_count": 0,
            "lead_agent_key": "bob",
        });
        assert_eq!((&told["event"], &told["payload"]), (&json!("team.created"), &payload));
    }
    let told = other.event().await;
    assert_eq!(told["payload"]["team_name"], "meadow", "and nothing of the shed: {told}");
    let update = DetailsUpdate { closes: true, ..DetailsUpdate::default() };
    node.bridge.desk().ask(&bob.visitor, SetRoom { room: public, update }).await.unwrap();
    for client in [&mut client, &mut other] {
        let told = client.event().await;
        assert_eq!(
            (&told["event"], &told["payload"]["team_name"]),
            (&json!("team.deleted"), &json!("meadow"))
        );
    }
    node.stop().await;
}

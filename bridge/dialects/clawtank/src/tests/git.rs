//! What happens in repositories.

use bridge::seam::{
    call::{AssignTask, ChangeTask, CreateRoom, From, History, ListTasks, Say},
    event,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate},
        command::NewRoom,
    },
    wire::tasks::{TaskFacts, TaskStatus},
};

use super::*;

/// The data of a commit.
fn commit(sha: u8, branch: &str, agent: &str, files: &[&str]) -> Value {
    let mut data = strict::example("git.commit");
    data["commit_info"]["sha"] = json!(format!("{sha:040x}"));
    data["commit_info"]["branch"] = json!(branch);
    data["changes"]["files_added"] = json!(files);
    data["changes"]["files_modified"] = json!([]);
    data["context"] = json!({
        "task_id": ulid(3), "agent_id": agent, "commit_type": "feature", "related_issues": [],
    });
    data
}

fn of_task(mut data: Value, task: &str) -> Value {
    data["context"]["task_id"] = json!(task);
    data
}

impl Node {
    async fn said(&self, visitor: &Visitor) -> Vec<event::Message> {
        let page = History { room: lobby(), from: From::Newest, limit: 100, before_ms: None };
        self.asks(visitor, page).await.messages
    }

    /// A task that somebody holds, which is so far.
    async fn held(
        &self,
        visitor: &Visitor,
        holder: &str,
        status: TaskStatus,
        looks: bool,
    ) -> String {
        let facts = TaskFacts { requires_approval: looks, ..TaskFacts::default() };
        let new = NewTask { facts: Box::new(facts), ..NewTask::of(lobby(), "x") };
        let task = self.asks(visitor, AssignTask(new)).await.task;
        let update = TaskUpdate {
            assignee: Some(Some(holder.into())),
            status: Some(status),
            by_steps: true,
            ..TaskUpdate::of(task)
        };
        self.asks(visitor, ChangeTask(update)).await;
        ids::text(task.0)
    }

    async fn status(&self, visitor: &Visitor, task: &str) -> TaskStatus {
        let tasks = self.asks(visitor, ListTasks { room: lobby(), status: None }).await;
        tasks.iter().find(|known| ids::text(known.task.0) == *task).unwrap().status
    }
}

#[tokio::test]
async fn a_commit_is_a_message_of_the_room_and_told_once() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let mut carl = node.agent("carl").await;
    let mut sent = commit(1, "a", "bob", &["x.rs", "y.rs"]);
    sent["changes"]["other"] = json!("left out");
    let said = bob.ask("git.commit", sent.clone()).await;
    assert_eq!(said["type"], "git.commit", "{said}");
    let heard = ada.hears("git.commit").await;
    assert_eq!((&heard["id"], &heard["data"]), (&said["id"], &said["data"]), "the same event");
    assert_eq!(heard["metadata"]["reported_by"]["display_name"], "BOB");
    sent["changes"].as_object_mut().unwrap().remove("other");
    assert_eq!(heard["data"], sent, "as it was sent");
    let kept = &node.said(&eve).await[0];
    assert_eq!(
        &*kept.said.content,
        "[git] commit 0000000 on a by Claude (via Alice): feat: implement add command with validation (+127 -3, 2 files)"
    );
    let metadata: Value = serde_json::from_str(kept.said.metadata.as_deref().unwrap()).unwrap();
    assert_eq!((&metadata["kind"], &metadata["git"]), (&json!("git.commit"), &sent));
    // The same one is confirmed and not told, also to another agent, and by another address of the repository.
    let again = bob.ask("git.commit", sent.clone()).await;
    assert_eq!((&again["id"], &again["data"]), (&said["id"], &said["data"]));
    let mut other = commit(1, "a", "carl", &["x.rs", "y.rs"]);
    other["repository"]["url"] = json!("https://github.com/alice/todo-cli.git");
    let again = carl.gets("git.commit", other).await;
    assert_eq!(again["context"]["agent_id"], "bob");
    assert_eq!(node.said(&eve).await.len(), 1);
    let is_git = |frame: &&Value| frame["type"].as_str().unwrap().starts_with("git.");
    assert_eq!(ada.rest().await.iter().filter(is_git).count(), 0, "told once");
    // A newcomer is given it.
    let mut late = node.bare().await;
    late.connect("human", KEY, "late", Some("lobby")).await;
    let replayed = late.hears("git.commit").await;
    assert_eq!((&replayed["id"], &replayed["metadata"]["replayed"]), (&said["id"], &json!(true)));
    node.stop().await;
}

#[tokio::test]
async fn records_that_break_a_rule_are_refused() {
    let node = Node::new().await;
    node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let with = |place: &str, value: Value| {
        let mut data = commit(1, "a", "bob", &["x"]);
        *data.pointer_mut(place).unwrap() = value;
        data
    };
    for (place, value, field) in [
        ("/commit_info/sha", json!("a".repeat(39)), "data.commit_info.sha"),
        ("/commit_info/message", json!("x".repeat(2_001)), "data.commit_info.message"),
        ("/commit_info/author/email", json!("nobody"), "data.commit_info.author.email"),
        ("/repository/url", json!("here"), "data.repository.url"),
        ("/changes/stats/additions", json!(-1), "data.changes.stats.additions"),
        ("/changes/files_added", Value::Null, "data.changes.files_added"),
        ("/context/task_id", json!("T-1"), "data.context.task_id"),
    ] {
        let refused = bob.refused("git.commit", with(place, value)).await;
        assert_eq!(refused, no("VALIDATION_FAILED", field));
    }
    let forged = bob.refused("git.commit", with("/context/agent_id", json!("eve"))).await;
    assert_eq!(forged, no("AUTHORIZATION_DENIED", "data.context.agent_id"));
    // A person may say it for agents of the same key, and not of another one.
    node.mint(MINTED, None, None);
    ada.gets("git.commit", commit(2, "a", "bob", &["x"])).await;
    let mut stranger = node.bare().await;
    stranger.connect("human", MINTED, "mo", Some("lobby")).await;
    let forged = stranger.refused("git.commit", commit(3, "a", "bob", &["x"])).await;
    assert_eq!(forged, no("AUTHORIZATION_DENIED", "data.context.agent_id"));
    let review = bob.refused("git.pr_reviewed", json!({"pull_request": {}})).await;
    assert_eq!(review, no("VALIDATION_FAILED", "data.pull_request.number"));
    let none = bob.refused("git.push", json!({})).await;
    assert_eq!(none, no("VALIDATION_FAILED", "type"));
    let ours = bob.refused("git.conflict_warning", json!({})).await;
    assert_eq!(ours, no("VALIDATION_FAILED", "type"));
    node.stop().await;
}

#[tokio::test]
async fn a_large_commit_is_cut_and_rooms_may_take_none() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut bob = node.agent("bob").await;
    let files: Vec<String> = (0..1_500).map(|n| format!("directory/file-number-{n}.rs")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut large = commit(1, "a", "bob", &files);
    large["changes"]["files_deleted"] = json!(["gone.rs"]);
    let said = bob.gets("git.commit", large).await;
    assert_eq!(
        (&said["truncated"], &said["changes"]["files_deleted"]),
        (&json!(true), &json!(["gone.rs"]))
    );
    let left = said["changes"]["files_added"].as_array().unwrap().len();
    assert!((700..1_500).contains(&left), "{left}");
    let kept = &node.said(&eve).await[0];
    assert!(kept.said.metadata.as_ref().unwrap().len() <= 33_000);
    assert!(kept.said.content.ends_with("(+127 -3, 1501 files)"), "{}", kept.said.content);
    let mut opened = strict::example("git.pr_opened");
    opened["author"]["agent_id"] = json!("bob");
    opened["pull_request"]["description"] = json!("x".repeat(16_000));
    opened["review_info"]["labels"] = json!(vec!["é".repeat(256); 64]);
    let refused = bob.refused("git.pr_opened", opened).await;
    assert_eq!(refused, no("VALIDATION_FAILED", "data"));
    let room = |name: &str, encrypted: bool| NewRoom {
        name: name.to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted,
    };
    let sealed = node.asks(&eve, CreateRoom(room("sealed", true))).await.room;
    bob.connect("agent", KEY, "owner", Some(&ids::text(sealed.0))).await;
    let mut there = commit(2, "a", "bob", &["x"]);
    there["room_id"] = json!(ids::text(sealed.0));
    let refused = bob.ask("git.commit", there).await;
    assert_eq!(refused["data"]["details"]["reason"], "encrypted room", "{refused}");
    let mut ada = node.person("ada").await;
    let config = json!({"config": {"name": "off", "settings": {"git_integration_enabled": false}}});
    let made = ada.extends("clawmesh.room", "extension.room_create", config).await;
    let id = made["data"]["room"]["room_id"].clone();
    ada.connect("human", KEY, "ada", id.as_str()).await;
    let mut there = commit(3, "a", "bob", &["x"]);
    there["room_id"] = id;
    assert_eq!(ada.refused("git.commit", there).await, no("RESOURCE_CONFLICT", "git_off"));
    node.stop().await;
}

#[tokio::test]
async fn commits_that_touch_the_same_files_are_warned_of_once() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob, mut carl) =
        (node.person("ada").await, node.agent("bob").await, node.agent("carl").await);
    bob.gets("git.commit", commit(1, "a", "bob", &["x", "y"])).await;
    carl.gets("git.commit", commit(2, "b", "carl", &["y", "z"])).await;
    let mut warnings = Vec::new();
    for client in [&mut ada, &mut bob, &mut carl] {
        warnings.push(client.hears("git.conflict_warning").await);
    }
    assert!(warnings.iter().all(|warning| warning["id"] == warnings[0]["id"]));
    let data = &warnings[0]["data"];
    assert_eq!((&data["severity"], &data["conflict_type"]), (&json!("low"), &json!("potential")));
    assert_eq!((&data["affected_files"], &data["branches"]), (&json!(["y"]), &json!(["a", "b"])));
    assert_eq!(data["agents_affected"], json!(["bob", "carl"]));
    // The same branch, the same agent, the same files, another repository, a task that is over.
    carl.gets("git.commit", commit(3, "a", "carl", &["x"])).await;
    bob.gets("git.commit", commit(4, "c", "bob", &["z2"])).await;
    carl.gets("git.commit", commit(5, "b", "carl", &["y"])).await;
    let mut elsewhere = commit(6, "d", "carl", &["z2"]);
    elsewhere["repository"]["url"] = json!("https://example.org/x");
    carl.gets("git.commit", elsewhere).await;
    let done = node.held(&eve, "carl", TaskStatus::InProgress, false).await;
    node.asks(
        &eve,
        ChangeTask(TaskUpdate {
            status: Some(TaskStatus::Completed),
            ..TaskUpdate::of(mesh::name::id::MessageId(ids::parse(&done).unwrap()))
        }),
    )
    .await;
    carl.gets("git.commit", of_task(commit(7, "d", "carl", &["z2"]), &done)).await;
    let is_warning = |frame: &&Value| frame["type"] == "git.conflict_warning";
    for client in [&mut ada, &mut bob, &mut carl] {
        assert_eq!(client.rest().await.iter().filter(is_warning).count(), 0);
    }
    // What agents of other dialects say so is told in the same way, and by nobody but themselves.
    let git = commit(8, "e", "bob", &["z2"]);
    let metadata = json!({"kind": "git.commit", "git": git}).to_string();
    node.asks(&eve, Say { metadata: Some(metadata), ..Say::chat(lobby(), "look".to_owned()) })
        .await;
    let heard = ada.find(|frame| frame["data"]["commit_info"]["branch"] == "e").await;
    assert_eq!(heard["data"]["context"]["agent_id"], "eve");
    let warned = ada.hears("git.conflict_warning").await;
    assert_eq!(warned["data"]["agents_affected"], json!(["bob", "eve"]));
    let odd = json!({"kind": "git.commit", "git": {"commit_info": []}}).to_string();
    node.asks(&eve, Say { metadata: Some(odd), ..Say::chat(lobby(), "odd".to_owned()) }).await;
    assert_eq!(ada.hears("chat.agent_message").await["data"]["content"]["text"], "odd");
    node.stop().await;
}

#[tokio::test]
async fn requests_to_merge_move_the_tasks_that_they_are_for() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let task = node.held(&eve, "bob", TaskStatus::InReview, false).await;
    let looked_at = node.held(&eve, "bob", TaskStatus::InProgress, true).await;
    let mut opened = of_task(strict::example("git.pr_opened"), &task);
    opened["author"]["agent_id"] = json!("bob");
    opened["author"]["human_owner"]["user_id"] = json!(ulid(4));
    let told = bob.gets("git.pr_opened", opened).await;
    assert_eq!(told["pull_request"]["number"], 42);
    assert_eq!(ada.hears("git.pr_opened").await["data"], told);
    let review = |state: &str| {
        let mut data = of_task(strict::example("git.pr_reviewed"), &task);
        data["review"]["state"] = json!(state);
        data["review"]["reviewer"]["user_id"] = json!(ulid(4));
        data["context"]["agent_id"] = json!("bob");
        data
    };
    bob.gets("git.pr_reviewed", review("changes_requested")).await;
    assert_eq!(node.status(&eve, &task).await, TaskStatus::InReview, "nobody reviews his own");
    ada.gets("git.pr_reviewed", review("approved")).await;
    assert_eq!(node.status(&eve, &task).await, TaskStatus::InReview);
    ada.gets("git.pr_reviewed", review("changes_requested")).await;
    assert_eq!(node.status(&eve, &task).await, TaskStatus::InProgress);
    let heard = bob.find(|frame| frame["data"]["status"] == "in_progress").await;
    assert_eq!(
        heard["data"]["notes"],
        "[git] pull request #42 reviewed (changes_requested) by Alice"
    );
    let merged = |task: &str, confirms: bool| {
        let mut data = of_task(strict::example("git.pr_merged"), task);
        data["merge_info"]["merged_by"]["user_id"] = json!(ulid(4));
        data["context"]["agent_id"] = json!("bob");
        data["context"]["completion_confirmed"] = json!(confirms);
        data
    };
    bob.gets("git.pr_merged", merged(&task, false)).await;
    assert_eq!(node.status(&eve, &task).await, TaskStatus::InProgress);
    bob.gets("git.pr_merged", merged(&task, true)).await;
    assert_eq!(node.status(&eve, &task).await, TaskStatus::Completed);
    for client in [&mut ada, &mut bob] {
        assert_eq!(client.hears("task.completed").await["data"]["agent_id"], "bob");
    }
    bob.gets("git.pr_merged", merged(&looked_at, true)).await;
    assert_eq!(
        node.status(&eve, &looked_at).await,
        TaskStatus::InProgress,
        "it is looked at first"
    );
    ada.gets("git.pr_merged", merged(&looked_at, true)).await;
    assert_eq!(node.status(&eve, &looked_at).await, TaskStatus::Completed);
    let text = node.said(&eve).await.last().unwrap().said.content.clone();
    assert_eq!(text, "[git] pull request #42 merged into main");
    node.stop().await;
}

#[tokio::test]
async fn the_page_has_the_records_and_shows_addresses_to_members_alone() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut bob = node.agent("bob").await;
    for sha in 1..=10 {
        bob.gets("git.commit", commit(sha, "a", "bob", &["x"])).await;
    }
    let limited = bob.ask("git.commit", commit(11, "a", "bob", &["x"])).await;
    assert_eq!(limited["data"]["error_code"], "RATE_LIMIT_EXCEEDED");
    assert!(limited["data"]["retry_info"]["retry_after_seconds"].as_u64() >= Some(1));
    node.asks(&eve, Say::chat(lobby(), "not this".to_owned())).await;
    let path = ("GET", "/api/rooms/lobby/git?limit=4");
    let key = ("x-clawchat-key", KEY);
    let (status, page) = node.asks_page(path, &[key], &Value::Null).await;
    let all = page["git"].as_array().unwrap();
    assert_eq!((status, all.len(), &page["more"]), (200, 4, &json!(true)), "{page}");
    let sha = |frame: &Value| frame["data"]["commit_info"]["sha"].as_str().unwrap().to_owned();
    assert_eq!((sha(&all[0]), sha(&all[3])), (format!("{:040x}", 7), format!("{:040x}", 10)));
    assert!(all[0]["data"]["commit_info"]["author"]["email"].is_string());
    let hidden = json!({
        "kind": "git.commit", "git": commit(12, "a", "eve", &["for-members.rs"]),
        "visibility": "room_only",
    });
    let say = Say::chat(lobby(), "a commit".to_owned());
    node.asks(&eve, Say { metadata: Some(hidden.to_string()), ..say }).await;
    for path in ["/api/rooms/lobby/git", "/api/rooms/lobby/events"] {
        let (_, page) = node.asks_page(("GET", path), &[key], &Value::Null).await;
        assert!(page.to_string().contains("for-members.rs"), "{page}");
        let (_, page) = node.asks_page(("GET", path), &[], &Value::Null).await;
        assert!(page.to_string().contains("commit_info"), "{page}");
        assert!(!page.to_string().contains("claude+alice"), "{page}");
        assert!(!page.to_string().contains("for-members.rs"), "{page}");
    }
    node.stop().await;
}

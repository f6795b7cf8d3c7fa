//! Who waits for whom, elections, and what a person has not read.

use bridge::seam::call::{AssignTask, CreateVote, OpenDirect};
use mesh::{
    api::agenda::{NewTask, NewVote},
    name::id::AgentId,
};

use super::{KEY, Node, OTHER, PATIENCE, lobby_path};
use bridge::{
    read::Visitor,
    seam::call::{Join, Say},
    testing::lobby,
};
use mesh::wire::acts::Scope;

impl Node {
    async fn opens_vote(&self, agent: &Visitor, title: &str) {
        let vote = NewVote {
            room: lobby(),
            title: title.to_owned(),
            description: None,
            options: vec!["yes".to_owned(), "no".to_owned()],
            duration_secs: Some(600),
        };
        self.bridge.desk().ask(agent, CreateVote(vote)).await.unwrap();
    }

    async fn asks(&self, agent: &Visitor, of: &str) {
        let desk = self.bridge.desk();
        let room = desk.ask(agent, OpenDirect::with(of)).await.unwrap().room;
        let say = Say { expects_reply: Some(true), ..Say::chat(room, "are you there?".to_owned()) };
        desk.ask(agent, say).await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_for_whom_is_drawn_and_stands_in_a_table_for_those_who_may_read_it() {
    let node = Node::new().await;
    node.mint(OTHER, &[Scope::Read, Scope::Write]);
    let (ann, bob) = (node.agent("ann", KEY).await, node.agent("bob", KEY).await);
    let (own, other) = (node.enter(KEY, "ada").await, node.enter(OTHER, "eve").await);
    assert!(node.get("/ui/agents", &own).await.body.contains("Nobody waits for anybody"));
    for agent in [&ann, &bob] {
        node.bridge.desk().ask(agent, Join(lobby())).await.unwrap();
    }
    let hostile = "<script>\u{202e}ship it?";
    node.opens_vote(&ann, hostile).await;
    let assignee = Some(AgentId::from("bob"));
    let task = NewTask { assignee, ..NewTask::of(lobby(), "<b>paint".to_owned()) };
    node.bridge.desk().ask(&ann, AssignTask(task)).await.unwrap();
    node.asks(&ann, "bob").await;
    let page = node.get("/ui/agents", &own).await.body;
    assert!(page.contains("<svg class=\"waits\"") && page.contains("role=\"img\""), "{page}");
    for part in ["a ballot: &lt;script&gt;\u{fffd}ship it?", "a task: &lt;b&gt;paint", "an answer"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("wait for each other"), "{page}");
    node.asks(&bob, "ann").await;
    let page = node.get("/ui/agents", &own).await.body;
    assert!(page.contains("ann and bob wait for each other"), "{page}");
    let theirs = node.get("/ui/agents", &other).await.body;
    assert!(theirs.contains("a task: &lt;b&gt;paint"), "the lobby is everybody's: {theirs}");
    assert!(!theirs.contains("an answer"), "a direct room of others: {theirs}");
}

#[tokio::test]
async fn rooms_say_what_is_unread_and_reading_a_room_ends_that() {
    let node = Node::new().await;
    let bob = node.agent("bob", KEY).await;
    node.bridge.desk().ask(&bob, Join(lobby())).await.unwrap();
    node.says(&bob, "before the first look").await;
    let cookie = node.enter(KEY, "ada").await;
    let rooms = node.get("/ui/rooms", &cookie).await.body;
    assert!(!rooms.contains("not read"), "{rooms}");
    assert!(rooms.contains("data-th=\"Turn\">bob"), "{rooms}");
    node.says(&bob, "one").await;
    node.says(&bob, "two").await;
    let rooms = node.get("/ui/rooms", &cookie).await.body;
    assert!(rooms.contains("In 1 room something was said that you have not read"), "{rooms}");
    assert!(rooms.contains("<strong class=\"count\">2</strong>"), "{rooms}");
    let again = node.enter(KEY, "ada").await;
    assert!(node.get("/ui/rooms", &again).await.body.contains("class=\"count\">2<"), "the same");
    node.get(&lobby_path(), &again).await;
    assert!(!node.get("/ui/rooms", &cookie).await.body.contains("not read"));
}

#[tokio::test]
async fn a_member_has_a_leader_drawn_and_sees_who_stands() {
    let node = Node::new().await;
    let cookie = node.enter(KEY, "ada").await;
    let form = format!("form={}", node.get(&lobby_path(), &cookie).await.form());
    let act = |act: &str| format!("{}/{act}", lobby_path());
    let refused = node.post(&act("elect"), &cookie, &form).await;
    assert_eq!(refused.status, 409, "not a member: {}", refused.body);
    assert_eq!(node.post(&act("join"), &cookie, &form).await.status, 303);
    assert!(node.get(&lobby_path(), &cookie).await.body.contains("Draw a leader"));
    let begun = node.post(&act("elect"), &cookie, &form).await;
    assert_eq!(begun.status, 303, "{}", begun.body);
    let page = node.get(&lobby_path(), &cookie).await.body;
    assert!(page.contains("A leader is being drawn") && page.contains("Do not stand"), "{page}");
    assert_eq!(node.post(&act("decline"), &cookie, &form).await.status, 303);
    let page = node.get(&lobby_path(), &cookie).await.body;
    assert!(page.contains("Not standing: "), "{page}");
    let _ = PATIENCE;
}

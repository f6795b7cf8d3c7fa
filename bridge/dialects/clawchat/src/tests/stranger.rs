//! What an agent of another key can do to a private room: nothing, and it learns nothing of it.

use std::{sync::Arc, time::Duration};

use mesh::limits::{ELECTION_GRACE, ELECTION_WINDOW};
use serde_json::{Value, json};

use bridge::{
    config::{Auth, Config, NodeKey},
    testing::{Fake, OTHER_KEY, here},
};

use crate::local::Local;

/// Two members of a private room, and somebody who has another key and knows all ids.
struct Private {
    fake: Arc<Fake>,
    a: Local,
    b: Local,
    stranger: Local,
    room: Value,
    vote: Value,
    task: Value,
    message: Value,
}

fn private() -> Private {
    let (fake, _) = Fake::new();
    let other = Config::new(Auth::Key(NodeKey::new(OTHER_KEY)), here());
    let mut stranger = Local::fresh(&fake, other);
    stranger.call("register", json!({"key": OTHER_KEY, "name": "s", "agent_id": "s"}));
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let room = a.call("create_room", json!({"name": "p"}))["room_id"].clone();
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": room}));
    }
    let vote = json!({"room_id": room, "title": "t", "options": ["x", "y"]});
    let vote = a.call("create_vote", vote)["vote_id"].clone();
    let task = a.call("assign_task", json!({"room_id": room, "title": "t"}))["task_id"].clone();
    let said = a.call("send_message", json!({"room_id": room, "content": "ours"}));
    let message = said["message_id"].clone();
    // a leads.
    a.call("elect_leader", json!({"room_id": room}));
    b.call("decline_election", json!({"room_id": room}));
    fake.pass((ELECTION_WINDOW + ELECTION_GRACE) * 2);
    assert_eq!(b.event("leader_elected").unwrap()["leader_id"], "a");
    Private { fake, a, b, stranger, room, vote, task, message }
}

impl Private {
    /// Everything that commands name a room by, or a thing in it, as another key's agent says it.
    fn attempts(&self) -> Vec<(&'static str, Value)> {
        let Private { room, vote, task, message, .. } = self;
        let mut all = vec![
            ("join_room", json!({})),
            ("leave_room", json!({})),
            ("send_message", json!({"content": "x", "mentions": ["a"], "reply_to": message})),
            ("thinking", json!({"content": "x"})),
            ("get_history", json!({})),
            ("get_history", json!({"since_seq": 0})),
            ("get_history", json!({"since": message})),
            ("get_history", json!({"before": "2999-01-01T00:00:00Z"})),
            ("room_tip", json!({})),
            ("room_info", json!({})),
            ("list_agents", json!({})),
            ("set_typing", json!({})),
            ("set_typing", json!({"typing": false})),
            ("create_vote", json!({"title": "t", "options": ["x", "y"]})),
            ("create_vote", json!({"title": "t", "options": ["x", "y"], "duration_secs": 1})),
            ("list_votes", json!({})),
            ("list_votes", json!({"limit": 1})),
            ("elect_leader", json!({})),
            ("decline_election", json!({})),
            ("decision", json!({"content": "x"})),
            ("decision", json!({"content": "x", "metadata": {"decided_by": "a"}})),
            ("assign_task", json!({"title": "t"})),
            ("assign_task", json!({"title": "t", "assignee": "s"})),
            ("list_tasks", json!({})),
            ("list_tasks", json!({"status": "pending"})),
        ];
        for (_, payload) in &mut all {
            payload["room_id"] = room.clone();
        }
        all.extend([
            ("list_rooms", json!({"parent_id": room})),
            ("create_room", json!({"name": "c", "parent_id": room})),
            ("create_room", json!({"name": "c", "parent_id": room, "ephemeral": true})),
            ("cast_vote", json!({"vote_id": vote, "option_index": 0})),
            ("cast_vote", json!({"vote_id": vote, "option_index": 99})),
            ("get_vote_status", json!({"vote_id": vote})),
            ("update_task", json!({"task_id": task, "status": "completed"})),
            ("update_task", json!({"task_id": task, "assignee": "s"})),
            ("update_task", json!({"task_id": task, "assignee": "s", "if_assignee": null})),
            ("update_task", json!({"task_id": task, "note": "x"})),
        ]);
        all
    }

    /// All that a member can see of the room.
    fn seen(&mut self) -> Vec<Value> {
        let room = json!({"room_id": self.room});
        let kinds = ["room_info", "room_tip", "get_history", "list_votes", "list_tasks"];
        let mut seen: Vec<Value> =
            kinds.iter().map(|kind| self.a.call(kind, room.clone())).collect();
        seen.push(self.a.call("get_vote_status", json!({"vote_id": self.vote})));
        seen.push(self.a.call("list_rooms", json!({})));
        seen
    }

    /// Everything is tried, refused, and changes nothing.
    fn is_closed_to_strangers(&mut self) {
        for it in [&mut self.a, &mut self.b, &mut self.stranger] {
            it.kinds();
        }
        let before = self.seen();
        for (kind, payload) in self.attempts() {
            assert_eq!(
                self.stranger.code(kind, payload.clone()),
                "access_denied",
                "{kind} {payload}"
            );
            let told = [self.a.kinds(), self.b.kinds(), self.stranger.kinds()].concat();
            assert!(told.is_empty(), "{kind} {payload}: {told:?}");
        }
        assert_eq!(self.seen(), before);
    }
}

#[test]
fn another_key_can_neither_see_nor_change_a_private_room() {
    let mut it = private();
    it.is_closed_to_strangers();
    // Nothing was begun that shows later.
    it.fake.pass(Duration::from_secs(20));
    let told = [it.a.kinds(), it.b.kinds(), it.stranger.kinds()].concat();
    assert!(told.is_empty(), "{told:?}");
    // The leader leads, the vote takes ballots, the task is free.
    it.a.call("decision", json!({"room_id": it.room, "content": "ours"}));
    let cast = it.b.call("cast_vote", json!({"vote_id": it.vote, "option_index": 1}));
    assert_eq!(cast["votes_cast"], 1);
    let claim = json!({"task_id": it.task, "assignee": "b", "if_assignee": null});
    assert_eq!(it.b.call("update_task", claim)["assignee"], "b");
}

#[test]
fn an_election_in_a_private_room_is_not_declined_by_another_key() {
    let mut it = private();
    it.b.call("elect_leader", json!({"room_id": it.room}));
    it.is_closed_to_strangers();
    it.a.call("decline_election", json!({"room_id": it.room}));
    it.fake.pass((ELECTION_WINDOW + ELECTION_GRACE) * 2);
    assert_eq!(it.b.event("leader_elected").unwrap()["leader_id"], "b");
    assert!(it.stranger.kinds().is_empty());
}

#[test]
fn what_a_stranger_holds_shows_nothing_of_a_private_room() {
    let mut it = private();
    let all =
        [it.stranger.call("list_rooms", json!({})), it.stranger.call("list_agents", json!({}))];
    for secret in [&it.room, &it.vote, &it.task] {
        let secret = secret.as_str().unwrap();
        assert!(all.iter().all(|it| !it.to_string().contains(secret)), "{all:?}");
    }
    // Ids of nothing are told apart from ids of others, as the protocol says.
    let nothing = "00000000-0000-4000-8000-000000000000";
    let code = it.stranger.code("get_vote_status", json!({"vote_id": nothing}));
    assert_eq!(code, "vote_not_found");
    let code = it.stranger.code("update_task", json!({"task_id": nothing, "note": "x"}));
    assert_eq!(code, "task_not_found");
    let code = it.stranger.code("list_votes", json!({"room_id": nothing}));
    assert_eq!(code, "room_not_found");
}

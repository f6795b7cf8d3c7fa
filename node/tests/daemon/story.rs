//! One task from its making to its approval, by five that speak five tongues, at three nodes that are apart for a
//! while: `docs/story.md` tells it.
//!
//! In reading order: [`hearing`] (how each is told of things, in short), [`company`] (nodes, links and people).

pub(crate) mod company;
mod hearing;

use std::path::Path;

use serde_json::json;

use self::company::{Company, Who, replay, words};
use crate::{direct::keyed, harness::temp};

/// Words that those who look on must not read.
const SECRETS: [&str; 5] = ["third drawer", "cutting", "blue glass", "lamp --on", "well done"];

#[test]
fn five_dialects_at_three_nodes_tell_one_story_over_a_split() {
    let dirs = [temp(), temp(), temp()];
    let mut company = Company::come(&dirs);
    company.is_given_a_task();
    company.is_apart();
    company.asks_for_leave();
    company.hands_in();
    company.ends();
}

impl Company {
    /// Ada makes it, Bob takes it and begins, and they talk.
    fn is_given_a_task(&mut self) {
        let made = self.ada.gets(
            "task.created",
            json!({
                "task_id": self.task, "title": "Mend the lamp", "priority": "high", "status": "open",
                "description": "the key is in the third drawer",
                "creator": {"user_id": self.task, "display_name": "x", "type": "human"},
            }),
        );
        self.uuid = made["data"]["mesh"]["id"].as_str().unwrap().to_owned();
        self.works(&[
            (Who::Ada, "created open"),
            (Who::Bob, "created open"),
            (Who::Cy, "created"),
            (Who::Eve, "assigned pending"),
            (Who::Sam, "created Mend the lamp by ada"),
        ]);
        let claim = json!({"task_id": self.task, "agent_id": "bob"});
        assert_eq!(self.bob.ask("task.claim", claim)["type"], "task.claim_accepted");
        self.works(&[
            (Who::Ada, "claimed by bob"),
            (Who::Bob, "claimed by bob"),
            (Who::Cy, "claimed"),
            (Who::Eve, "updated pending 0"),
            (Who::Sam, "claimed by bob"),
        ]);
        self.reports(0.4, "cutting");
        self.works(&[
            (Who::Ada, "status in_progress 0.4 cutting"),
            (Who::Bob, "status in_progress 0.4 cutting"),
            (Who::Cy, "updated"),
            (Who::Cy, "progress 40"),
            (Who::Eve, "updated in_progress 40"),
        ]);
        self.ada.gets("chat.human_message", words("Who has the ladder?"));
        self.is_said("ada", "Who has the ladder?");
        self.max_says("It is in the shed.");
        self.is_said("max", "It is in the shed.");
    }

    /// Bob's node is alone. All go on; nobody hears the other side, and then everybody does.
    fn is_apart(&mut self) {
        self.splits();
        self.bob.gets("chat.agent_message", words("The glass is cut."));
        self.bob.says("The glass is cut.");
        self.reports(0.7, "cutting");
        self.bob.works("status in_progress 0.7 cutting");
        self.ada.gets("chat.human_message", words("Bob, we do not hear you."));
        for who in [Who::Ada, Who::Eve, Who::Sam] {
            self.one(who).says("Bob, we do not hear you.");
        }
        self.max_hears("Bob, we do not hear you.");
        let note =
            json!({"teamId": "lobby", "taskId": self.uuid, "content": "take the blue glass"});
        self.cy.calls("teams.tasks.comment", note);
        self.ada.works("status in_progress 0.4 take the blue glass");
        self.cy.works("commented take the blue glass");
        self.eve.works("updated in_progress 40 take the blue glass");
        self.all_have_heard();
        self.heals();
        for who in [Who::Ada, Who::Eve, Who::Sam] {
            self.one(who).says("The glass is cut.");
        }
        self.max_hears("The glass is cut.");
        self.ada.works("status in_progress 0.7 cutting");
        self.cy.works("progress 70");
        self.eve.works("updated in_progress 70 take the blue glass");
        self.bob.says("Bob, we do not hear you.");
        self.bob.works("status in_progress 0.7 take the blue glass");
        self.all_have_heard();
    }

    /// Bob asks whether he may, and Cy lets him.
    fn asks_for_leave(&mut self) {
        self.bob.gets(
            "approval.request",
            json!({
                "request_id": self.request, "agent_id": "bob", "approval_type": "exec",
                "task_id": self.task, "details": {"command": "lamp --on"}, "room_id": "lobby",
            }),
        );
        for who in [Who::Ada, Who::Bob] {
            self.one(who).says("may I lamp --on");
        }
        self.cy.says("pending lamp --on");
        self.cy.says("requested lamp --on");
        self.eve.says("[approval] exec: lamp --on (by bob)");
        self.max_hears("[approval] exec: lamp --on (by bob)");
        self.all_have_heard();
        let listed = self.cy.calls("exec.approval.list", json!({}));
        let pending = listed["pending"].as_array().unwrap();
        assert_eq!(pending.len(), 1, "{listed}");
        let decided = self.cy.calls("exec.approval.approve", json!({"id": pending[0]["id"]}));
        assert_eq!(decided["decision"], "allow-once");
        for who in [Who::Ada, Who::Bob] {
            self.one(who).says("approved");
        }
        self.cy.says("resolved allow-once by cy");
        self.eve.says("[approval] approved: lamp --on");
        self.max_hears("[approval] approved: lamp --on");
        self.all_have_heard();
    }

    /// Bob says that it is done, others look at it, and Ada says yes.
    fn hands_in(&mut self) {
        self.bob.gets(
            "task.completed",
            json!({"task_id": self.task, "agent_id": "bob", "review_requested": true}),
        );
        self.works(&[
            (Who::Ada, "completed in_review"),
            (Who::Bob, "completed in_review"),
            (Who::Cy, "reviewed"),
            (Who::Cy, "updated"),
            (Who::Eve, "updated in_review 70 take the blue glass"),
            (Who::Sam, "completed by bob"),
        ]);
        self.max_says("It is bright as day.");
        self.is_said("max", "It is bright as day.");
        let note = json!({"task_id": self.uuid, "note": "well done"});
        self.eve.asks_chat("update_task", note);
        self.works(&[
            (Who::Ada, "status in_review 0.7 well done"),
            (Who::Bob, "status in_review 0.7 well done"),
            (Who::Cy, "commented well done"),
            // ClawChat tells all members, and who made a change is one.
            (Who::Eve, "updated in_review 70 well done"),
        ]);
        let review = json!({"namespace": "clawmesh.task", "payload": {"task_id": self.task, "decision": "approved"}});
        self.ada.gets("extension.task_review", review);
        self.works(&[
            (Who::Ada, "status completed 0.7 "),
            (Who::Bob, "status completed 0.7 "),
            (Who::Cy, "approved"),
            (Who::Cy, "completed"),
            (Who::Eve, "updated completed 70 well done"),
        ]);
        self.ada.gets("chat.human_message", words("Good night."));
        self.is_said("ada", "Good night.");
    }

    /// The task is over at every node, in each tongue; who looked on has read no secret; the files are the same.
    fn ends(mut self) {
        let told = self.sam.all_text();
        for secret in SECRETS {
            assert!(!told.contains(secret), "who looks on reads {secret:?}: {told}");
        }
        assert_eq!(self.tasks_of_max(), ["completed"]);
        assert_eq!(
            self.ada.ids_of_talk(),
            self.bob.ids_of_talk(),
            "an event has one id at all nodes"
        );
        for key in [Some(&*self.key), None] {
            let files = self.nodes.each_ref().map(|node| replay(node, key));
            assert_eq!(files[0], files[1]);
            assert_eq!(files[0], files[2]);
            let file: serde_json::Value = serde_json::from_str(&files[0]).unwrap();
            let stats = file["events"].as_array().unwrap().last().unwrap();
            assert_eq!(
                (&stats["type"], &stats["data"]["tasks_completed"]),
                (&json!("room.stats"), &json!(1))
            );
        }
        // A node that was killed writes the same file.
        let [.., third] = self.nodes;
        let before = replay(&third, Some(&self.key));
        let dir = Path::new(third.text("data_dir")).parent().unwrap().to_owned();
        third.kill();
        let third = keyed(&dir, &["--no-discovery"]);
        assert_eq!(replay(&third, Some(&self.key)), before);
    }
}

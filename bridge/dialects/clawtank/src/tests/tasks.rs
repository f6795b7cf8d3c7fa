//! Tasks.

use bridge::seam::call::{AssignTask, ChangeTask, ListTasks, ReadTask};
use mesh::{
    api::agenda::{NewTask, TaskUpdate, TaskView},
    name::id::MessageId,
    wire::tasks::TaskStatus,
};

use super::*;

const TASK: &str = "clawmesh.task";

/// The data of a new task.
fn task(seed: u8, title: &str) -> Value {
    json!({
        "task_id": format!("task_{}", ulid(seed)),
        "title": title,
        "description": "more",
        "creator": {"user_id": ulid(1), "display_name": "somebody else", "type": "human"},
        "priority": "high",
        "estimated_effort": {"size": "small", "hours": 2.5, "complexity": "low"},
        "requirements": ["be good"],
        "acceptance_criteria": ["it is good"],
        "context": {"related_files": ["a.rs"], "tags": ["cli"]},
        "constraints": {"deadline": "2030-02-18T09:00:00.000Z", "max_assignees": 1},
        "status": "open",
    })
}

fn claim(seed: u8, agent: &str) -> Value {
    json!({
        "task_id": ulid(seed), "agent_id": agent, "claim_reason": "I can",
        "confidence_level": 0.85, "questions": ["how?"],
    })
}

fn status(seed: u8, agent: &str, word: &str) -> Value {
    json!({"task_id": ulid(seed), "agent_id": agent, "status": word})
}

impl Node {
    async fn tasks(&self, visitor: &Visitor) -> Vec<TaskView> {
        self.asks(visitor, ListTasks { room: lobby(), status: None }).await
    }

    async fn update(&self, visitor: &Visitor, update: TaskUpdate) {
        self.asks(visitor, ChangeTask(update)).await;
    }
}

impl Client {
    async fn task(&mut self, kind: &str, payload: Value) -> Value {
        self.extends(TASK, kind, payload).await
    }

    /// The type of the next event of a task, and its state.
    async fn hears_task(&mut self, kind: &str) -> Value {
        let frame = self.hears(kind).await;
        frame["data"].clone()
    }
}

#[tokio::test]
async fn a_task_is_the_same_in_all_dialects_and_is_called_as_its_maker_calls_it() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    let made = ada.ask("task.created", task(50, "do it")).await;
    assert_eq!(made["type"], "task.created", "{made}");
    let told = bob.hears("task.created").await;
    assert_eq!((&told["id"], &told["data"]), (&made["id"], &made["data"]));
    let data = &made["data"];
    assert_eq!((&data["task_id"], &data["status"]), (&json!(ulid(50)), &json!("open")));
    assert_eq!(data["creator"]["display_name"], "ada");
    assert_eq!(
        data["estimated_effort"],
        json!({"size": "small", "hours": 2.5, "complexity": "low"})
    );
    assert_eq!(data["context"]["related_files"], json!(["a.rs"]));
    let known = &node.tasks(&eve).await[0];
    assert_eq!(
        (&*known.title, known.priority, &*known.labels),
        ("do it", 2, &["cli".to_owned()][..])
    );
    assert_eq!(known.facts.alias, Some(MessageId([50; 16])));
    assert_ne!(known.task, MessageId([50; 16]), "the mesh has an id of its own");
    assert_eq!(data["mesh"]["id"], known.task.to_uuid());
    let again = ada.refused("task.created", task(50, "another")).await;
    assert_eq!(again, no("RESOURCE_CONFLICT", "data.task_id"));
    // Those of other dialects have no alias, and may have no description.
    let other = node.asks(&eve, AssignTask(NewTask::of(lobby(), "x".repeat(300)))).await;
    let heard = ada.hears("task.created").await;
    assert_eq!(heard["data"]["task_id"], ids::text(other.task.0));
    assert_eq!(heard["metadata"]["truncated"], true);
    assert!(!ada.rest().await.iter().any(|frame| frame["type"] == "task.created"), "told once");
    node.stop().await;
}

#[tokio::test]
async fn tasks_that_break_a_rule_are_refused_with_its_path() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let with = |place: &str, value: Value| {
        let mut data = task(51, "x");
        data["context"]["dependencies"] = json!([]);
        *data.pointer_mut(place).unwrap() = value;
        data
    };
    for (place, value, field) in [
        ("/status", json!("claimed"), "data.status"),
        ("/constraints/max_assignees", json!(2), "data.constraints.max_assignees"),
        ("/context/dependencies", json!([ulid(99)]), "data.context.dependencies[0]"),
        ("/title", json!("x".repeat(201)), "data.title"),
        ("/description", Value::Null, "data.description"),
        ("/priority", json!("huge"), "data.priority"),
        ("/task_id", json!("x"), "data.task_id"),
        ("/requirements", json!(["é".repeat(500)]), "data.requirements"),
        ("/estimated_effort/hours", json!(0), "data.estimated_effort.hours"),
    ] {
        let refused = ada.refused("task.created", with(place, value)).await;
        assert_eq!(refused, no("VALIDATION_FAILED", field));
    }
    // Without a room it is meant for the only one, and there must be one.
    let mut outside = node.bare().await;
    outside.connect("human", KEY, "bo", None).await;
    let nowhere = outside.refused("task.created", task(52, "x")).await;
    assert_eq!(nowhere, no("VALIDATION_FAILED", "metadata.room_id"));
    node.stop().await;
}

#[tokio::test]
async fn of_those_who_claim_a_task_one_has_it() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob, mut carl) =
        (node.person("ada").await, node.agent("bob").await, node.agent("carl").await);
    for seed in [60, 61, 62] {
        ada.gets("task.created", task(seed, "x")).await;
    }
    let won = bob.ask("task.claim", claim(60, "bob")).await;
    assert_eq!(won["type"], "task.claim_accepted", "{won}");
    assert_eq!(won["data"]["assignment_details"]["priority_score"], 0.85);
    for client in [&mut ada, &mut carl] {
        let told = client.hears_task("task.claim_accepted").await;
        assert_eq!((&told["agent_id"], &told["task_status"]), (&json!("bob"), &json!("claimed")));
        assert_eq!(told["assignment_details"]["claim_reason"], "I can");
        let question = client.hears_task("task.status").await;
        assert_eq!(question["notes"], "how?");
    }
    let lost = carl.ask("task.claim", claim(60, "carl")).await;
    assert_eq!(lost["type"], "task.claim_rejected");
    let data = &lost["data"];
    assert_eq!(data["rejection_reason"], "task_already_claimed");
    assert!(data["details"].as_str().unwrap().contains("bob"));
    assert_eq!(data["suggested_alternatives"], json!([ulid(61), ulid(62)]));
    // The rule is that of all dialects.
    let known = node.tasks(&eve).await;
    let second = known.iter().find(|task| task.facts.alias == Some(MessageId([61; 16]))).unwrap();
    let taken = TaskUpdate {
        assignee: Some(Some("eve".into())),
        if_assignee: Some(None),
        ..TaskUpdate::of(second.task)
    };
    node.update(&eve, taken).await;
    let told = bob.hears("task.claim_accepted").await;
    assert_eq!(told["data"]["agent_id"], "eve", "{told}");
    let lost = bob.ask("task.claim", claim(61, "bob")).await;
    assert_eq!(lost["data"]["rejection_reason"], "task_already_claimed");
    let forged = bob.refused("task.claim", claim(62, "carl")).await;
    assert_eq!(forged, no("AUTHORIZATION_DENIED", "data.agent_id"));
    let unknown = bob.refused("task.claim", claim(63, "bob")).await;
    assert_eq!(unknown, no("RESOURCE_NOT_FOUND", "data.task_id"));
    assert!(!bob.rest().await.iter().any(|frame| frame["type"] == "task.claim_accepted"));
    node.stop().await;
}

#[tokio::test]
async fn claims_are_rejected_for_what_stands_against_them() {
    let node = Node::new().await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    for seed in 70..77 {
        ada.gets("task.created", task(seed, "x")).await;
    }
    let mut waits = task(80, "later");
    waits["context"]["dependencies"] = json!([ulid(76)]);
    let made = ada.gets("task.created", waits).await;
    assert_eq!(made["context"]["dependencies"].as_array().unwrap().len(), 1);
    let rejected = bob.ask("task.claim", claim(80, "bob")).await;
    assert_eq!(rejected["data"]["rejection_reason"], "dependencies_open");
    assert_eq!(rejected["data"]["retry_allowed"], true);
    for seed in 70..75 {
        bob.gets("task.claim", claim(seed, "bob")).await;
    }
    let rejected = bob.ask("task.claim", claim(75, "bob")).await;
    assert_eq!(rejected["data"]["rejection_reason"], "too_many_tasks", "{rejected}");
    let cancelled =
        ada.task("extension.task_cancel", json!({"task_id": ulid(75), "reason": "no"})).await;
    assert_eq!(cancelled["data"]["status"], "cancelled", "{cancelled}");
    let rejected = bob.ask("task.claim", claim(75, "bob")).await;
    assert_eq!(rejected["data"]["rejection_reason"], "task_not_open");
    node.stop().await;
}

#[tokio::test]
async fn hosts_who_assign_let_nobody_claim() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let config = json!({"config": {"name": "led", "settings": {"claim_strategy": "host_assigns"}}});
    let made = ada.extends("clawmesh.room", "extension.room_create", config).await;
    let room = made["data"]["room"]["room_id"].as_str().unwrap().to_owned();
    ada.connect("human", KEY, "ada", Some(&room)).await;
    let mut bob = node.bare().await;
    bob.connect("agent", KEY, "o", Some(&room)).await;
    bob.register("bob").await;
    let mut data = task(81, "x");
    data["room_id"] = json!(room);
    ada.gets("task.created", data).await;
    let rejected = bob.ask("task.claim", claim(81, "bob")).await;
    assert_eq!(rejected["data"]["rejection_reason"], "host_assigns");
    let given = json!({"task_id": ulid(81), "agent_id": "bob"});
    let given = ada.task("extension.task_assign", given).await;
    assert_eq!(given["type"], "task.claim_accepted", "{given}");
    assert_eq!(bob.hears_task("task.claim_accepted").await["agent_id"], "bob");
    let paused = json!({"room_id": room, "state": "paused"});
    ada.extends("clawmesh.room", "extension.room_update", paused).await;
    let refused = bob.refused("task.claim", claim(81, "bob")).await;
    assert_eq!(refused, no("RESOURCE_CONFLICT", "room_paused"));
    node.stop().await;
}

#[tokio::test]
async fn the_holder_reports_and_nobody_else() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob, mut carl) =
        (node.person("ada").await, node.agent("bob").await, node.agent("carl").await);
    ada.gets("task.created", task(90, "x")).await;
    let early = bob.refused("task.status", status(90, "bob", "in_progress")).await;
    assert_eq!(early, no("AUTHORIZATION_DENIED", "not_held"));
    bob.gets("task.claim", claim(90, "bob")).await;
    let other = carl.refused("task.status", status(90, "carl", "in_progress")).await;
    assert_eq!(other, no("AUTHORIZATION_DENIED", "not_held"));
    let mut report = status(90, "bob", "writing_tests");
    report["progress"] = json!({"percentage": 0.4});
    report["notes"] = json!("goes well");
    let told = bob.gets("task.status", report).await;
    assert_eq!((&told["status"], &told["notes"]), (&json!("in_progress"), &json!("goes well")));
    assert_eq!(told["progress"]["percentage"], 0.4);
    assert_eq!(told["progress"]["current_step"], "writing_tests");
    let heard = ada.find(|frame| frame["data"]["notes"] == "goes well").await;
    assert_eq!(heard["data"], told);
    let mut blocked = status(90, "bob", "in_progress");
    blocked["blockers"] = json!(["no key", "no time"]);
    bob.gets("task.status", blocked).await;
    let known = &node.tasks(&eve).await[0];
    assert_eq!(
        (known.status, known.progress.as_deref().map(|at| at.percent)),
        (TaskStatus::Blocked, Some(40))
    );
    let record = node.asks(&eve, ReadTask { room: lobby(), task: known.task }).await;
    let texts: Vec<&str> = record.comments.iter().map(|comment| &*comment.text).collect();
    assert_eq!(texts, ["I can", "how?", "goes well", "no key", "no time"]);
    let word = bob.refused("task.status", status(90, "bob", "completed")).await;
    assert_eq!(word, no("VALIDATION_FAILED", "data.status"));
    let released = bob.gets("task.status", status(90, "bob", "open")).await;
    assert_eq!((&released["status"], &released["agent_id"]), (&json!("pending"), &json!("")));
    carl.gets("task.claim", claim(90, "carl")).await;
    node.stop().await;
}

#[tokio::test]
async fn a_task_is_completed_once_and_reviewed_by_somebody_else() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    ada.gets("task.created", task(91, "x")).await;
    bob.gets("task.claim", claim(91, "bob")).await;
    let done = |sha: &str, review: bool| {
        json!({
            "task_id": ulid(91), "agent_id": "bob",
            "deliverables": {
                "files_created": ["a"], "files_modified": [],
                "git_commits": [{"sha": sha, "message": "x", "branch": "y"}],
            },
            "completion_summary": {
                "requirements_met": 1, "requirements_total": 1,
                "acceptance_criteria_met": 1, "acceptance_criteria_total": 1,
            },
            "review_requested": review,
        })
    };
    let short = bob.refused("task.completed", done("abc", true)).await;
    assert_eq!(short, no("VALIDATION_FAILED", "data.deliverables.git_commits[0].sha"));
    let told = bob.gets("task.completed", done("abc1234", true)).await;
    assert_eq!(
        (&told["review_requested"], &told["mesh"]["state"]),
        (&json!(true), &json!("in_review"))
    );
    assert_eq!(ada.hears_task("task.completed").await, told);
    let decision =
        |decision: &str| json!({"task_id": ulid(91), "decision": decision, "feedback": "see"});
    let own = bob.task("extension.task_review", decision("approved")).await;
    assert_eq!(why(&own), no("AUTHORIZATION_DENIED", "own task"));
    let rejected = ada.task("extension.task_review", decision("rejected")).await;
    assert_eq!(
        (&rejected["data"]["status"], &rejected["data"]["agent_id"]),
        (&json!("pending"), &json!(""))
    );
    bob.find(|frame| frame["data"]["status"] == "pending").await;
    bob.gets("task.claim", claim(91, "bob")).await;
    bob.gets("task.completed", done("abc1234", true)).await;
    let approved = ada.task("extension.task_review", decision("approved")).await;
    assert_eq!(approved["type"], "task.status", "{approved}");
    assert_eq!(approved["data"]["status"], "completed");
    let again = ada.task("extension.task_review", decision("approved")).await;
    assert_eq!(why(&again).0, "RESOURCE_CONFLICT");
    assert_eq!(node.tasks(&eve).await[0].status, TaskStatus::Completed);
    let late = bob.refused("task.completed", done("abc1234", false)).await;
    assert_eq!(late.0, "RESOURCE_CONFLICT");
    let ends = |frame: &&Value| frame["type"] == "task.completed";
    assert_eq!(
        bob.rest().await.iter().filter(ends).count(),
        0,
        "what is approved was completed before"
    );
    assert_eq!(
        ada.rest().await.iter().filter(ends).count(),
        1,
        "once for each time that it was handed in"
    );
    node.stop().await;
}

#[tokio::test]
async fn changes_of_other_dialects_are_told_in_this_ones_types() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let made = node.asks(&eve, AssignTask(NewTask::of(lobby(), "x"))).await.task;
    ada.hears("task.created").await;
    let of = TaskUpdate::of;
    node.update(&eve, TaskUpdate { assignee: Some(Some("eve".into())), ..of(made) }).await;
    assert_eq!(ada.hears_task("task.claim_accepted").await["agent_id"], "eve");
    node.update(&eve, TaskUpdate { note: Some("hm".to_owned()), ..of(made) }).await;
    assert_eq!(ada.hears_task("task.status").await["notes"], "hm");
    node.update(&eve, TaskUpdate { status: Some(TaskStatus::Blocked), ..of(made) }).await;
    assert_eq!(ada.hears_task("task.status").await["status"], "blocked");
    node.update(&eve, TaskUpdate { status: Some(TaskStatus::Completed), ..of(made) }).await;
    let told = ada.hears_task("task.completed").await;
    assert_eq!(told["deliverables"]["git_commits"], json!([]));
    // The same agent over another dialect: this one's connection is told, too.
    let bob = node.agent("bob").await;
    drop(bob);
    let list =
        ada.task("extension.task_list", json!({"room_id": "lobby", "status": "completed"})).await;
    assert_eq!(list["data"]["payload"]["tasks"].as_array().unwrap().len(), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_task_that_is_made_twice_by_the_same_frame_is_one() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let frame = envelope(&ulid(101), "task.created", &task(92, "once")).to_string();
    let mut confirmed = Vec::new();
    for _ in 0..2 {
        ada.send(&frame).await;
        confirmed.push(ada.answer(&ulid(101)).await);
    }
    assert_eq!(confirmed[0], confirmed[1]);
    assert_eq!(node.tasks(&eve).await.len(), 1);
    let edit = json!({"task_id": ulid(92), "priority": "low", "tags": ["new"], "title": "anew"});
    let edited = ada.task("extension.task_update", edit).await;
    assert_eq!(edited["type"], "task.status", "{edited}");
    let known = &node.tasks(&eve).await[0];
    assert_eq!((&*known.title, known.priority), ("anew", 0));
    let comment = json!({"task_id": ulid(92), "text": "I say"});
    let said = ada.task("extension.task_comment", comment).await;
    assert_eq!(said["data"]["notes"], "I say");
    node.stop().await;
}

#[tokio::test]
async fn nothing_is_called_as_another_thing_is() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let made = node.asks(&eve, AssignTask(NewTask::of(lobby(), "x"))).await.task;
    let mut as_a_task = super::chat::words("I am a task");
    as_a_task["message_id"] = json!(ids::text(made.0));
    ada.gets("chat.human_message", as_a_task).await;
    let mut second = task(93, "as another one");
    second["task_id"] = json!(ids::text(made.0));
    let refused = ada.refused("task.created", second).await;
    assert_eq!(refused, no("RESOURCE_CONFLICT", "data.task_id"));
    let mut bob = node.agent("bob").await;
    let mut claims = claim(93, "bob");
    claims["task_id"] = json!(ids::text(made.0));
    let won = bob.gets("task.claim", claims).await;
    assert_eq!(won["mesh"]["id"], made.to_uuid());
    let said = ada.gets("chat.human_message", super::chat::words("first")).await;
    let mut as_a_message = super::chat::words("I am the first");
    as_a_message["message_id"] = said["message_id"].clone();
    let refused = ada.refused("chat.human_message", as_a_message).await;
    assert_eq!(refused, no("RESOURCE_CONFLICT", "data.message_id"));
    node.stop().await;
}

#[tokio::test]
async fn a_task_of_an_agent_that_is_gone_is_open_again_and_not_before() {
    let hasty = ClawTank::new(lobby(), Settings::default()).with_grace(Duration::from_millis(50));
    let node = Node::speaking(keyed(), hasty).await;
    let (mut ada, mut bob) = (node.person("ada").await, node.agent("bob").await);
    for seed in [94, 95] {
        ada.gets("task.created", task(seed, "x")).await;
    }
    bob.gets("task.claim", claim(94, "bob")).await;
    // A newer connection has its place: it is not gone.
    let mut second = node.agent("bob").await;
    assert_eq!(bob.ends().await, 1008);
    drop(bob);
    second.gets("task.claim", claim(95, "bob")).await;
    let is_released =
        |frame: &Value| frame["data"]["status"] == "pending" && frame["data"]["agent_id"] == "";
    assert!(!ada.rest().await.iter().any(is_released));
    drop(second);
    for _ in [94, 95] {
        ada.find(is_released).await;
    }
    let mut carl = node.agent("carl").await;
    carl.gets("task.claim", claim(95, "carl")).await;
    assert!(!ada.rest().await.iter().any(is_released), "told once for each");
    node.stop().await;
}

#[tokio::test]
async fn the_claim_beyond_sixty_in_a_minute_is_told_to_wait() {
    let node = Node::new().await;
    let mut bob = node.agent("bob").await;
    let mut answers = Vec::new();
    // A slow machine has some more places by then.
    for _ in 0..crate::limits::CLAIMS_PER_MINUTE + 10 {
        let answer = bob.ask("task.claim", claim(98, "bob")).await;
        answers.push(why(&answer).0);
        if answers.last().is_some_and(|code| code == "RATE_LIMIT_EXCEEDED") {
            let wait = answer["data"]["retry_info"]["retry_after_seconds"].as_u64().unwrap();
            assert!((1..=60).contains(&wait), "{answer}");
            break;
        }
    }
    let within = usize::try_from(crate::limits::CLAIMS_PER_MINUTE).unwrap();
    assert!(answers[..within].iter().all(|code| code == "RESOURCE_NOT_FOUND"), "{answers:?}");
    assert_eq!(answers.last().map(String::as_str), Some("RATE_LIMIT_EXCEEDED"));
    node.stop().await;
}

//! Votes, elections, decisions and tasks: how they are asked for, answered and told.

use std::{sync::Arc, time::Duration};

use mesh::{
    Proof,
    api::{
        agenda::{LeaderGone, TaskUpdate, TaskView, VoteNotes, VoteResult, VoteView},
        command::{Command, Fresh, Outcome, Refused, SaidOk, Speech},
        event::{Delivered, RoomEvent},
    },
    limits::{VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX},
    name::{
        id::{LocalRef, LogId, MessageId, NodeId, RoomId},
        number::Number,
    },
    wire::{
        entry::{Facts, Said},
        kinds::DECISION,
        tasks::{CommentKind, TaskFacts, TaskProgress, TaskStatus},
    },
};
use serde_json::{Value, json};

use bridge::{
    limits,
    testing::{Ended, Fake},
};

use crate::local::{Local, room};

const VOTE: MessageId = MessageId([5; 16]);
const TASK: MessageId = MessageId([6; 16]);

struct Two {
    fake: Arc<Fake>,
    a: Local,
    b: Local,
    /// As clients name it.
    room: Value,
    id: RoomId,
}

/// Two members of a room.
fn two() -> Two {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let made = a.call("create_room", json!({"name": "r", "public": true}));
    let (name, id) = (made["room_id"].clone(), room(&made));
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": name}));
    }
    a.kinds();
    b.kinds();
    Two { fake, a, b, room: name, id }
}

impl Two {
    /// What `a` gets when the mesh answers so, and what the mesh was asked.
    fn when(&mut self, ended: Ended, kind: &str, payload: Value) -> (Value, Command) {
        *self.fake.knobs.script.lock().unwrap() = Some(ended);
        let mut reply = self.a.ask(kind, payload);
        assert_ne!(reply["type"], "error", "{reply}");
        let asked = self.fake.knobs.scripted.lock().unwrap().take().expect("the mesh is asked");
        (reply["payload"].take(), asked)
    }

    /// The code that `a` gets when the mesh refuses so.
    fn refused(&mut self, refused: Refused, kind: &str, payload: Value) -> String {
        *self.fake.knobs.script.lock().unwrap() = Some(Err(refused));
        self.a.code(kind, payload)
    }

    /// Both members get the same frame.
    fn told(&mut self, event: RoomEvent, kind: &str) -> Value {
        self.fake.hub().notify(self.id, event);
        let (a, b) = (self.a.event(kind).unwrap(), self.b.event(kind).unwrap());
        assert_eq!(a, b);
        a
    }
}

fn vote(room: RoomId) -> VoteView {
    VoteView {
        vote: VOTE,
        room,
        title: "t".into(),
        description: Some("d".into()),
        options: Arc::from(["x".to_owned(), "y".to_owned()]),
        created_by: "a".into(),
        created_ms: 0,
        closes_ms: Some(60_000),
        cast: 1,
        eligible: 2,
        tally: None,
        closed: false,
        notes: VoteNotes::default(),
    }
}

fn closed(room: RoomId, notes: VoteNotes) -> VoteView {
    VoteView { cast: 2, tally: Some(vec![0, 2]), closed: true, notes, ..vote(room) }
}

fn task(room: RoomId) -> TaskView {
    TaskView {
        task: TASK,
        room,
        title: "t".into(),
        description: None,
        status: TaskStatus::InProgress,
        assignee: Some("b".into()),
        created_by: "a".into(),
        created_ms: 0,
        updated_ms: Some(1_000),
        note: Some("n".into()),
        facts: Arc::new(TaskFacts { n: 7, ..TaskFacts::default() }),
        priority: 1,
        labels: Arc::default(),
        due_ms: None,
        progress: None,
        result: None,
        comments: 1,
        contested: vec!["assignee"],
        marks: Default::default(),
    }
}

#[test]
fn a_vote_is_opened_and_shown_without_its_tally() {
    let mut it = two();
    let view = || Ok(Outcome::Vote(Box::new(vote(it.id))));
    let (room, answer) = (it.room.clone(), view());
    let payload = json!({"room_id": room, "title": "t", "description": "d", "options": ["x", "y"],
                         "duration_secs": 60});
    let (shown, asked) = it.when(answer, "create_vote", payload);
    let expect = json!({
        "vote_id": VOTE.to_uuid(), "room_id": room, "title": "t", "description": "d",
        "options": ["x", "y"], "created_by": "a", "created_at": "1970-01-01T00:00:00.000Z",
        "closes_at": "1970-01-01T00:01:00.000Z", "status": "open", "votes_cast": 1,
        "eligible_voters": 2,
    });
    assert_eq!(shown, expect);
    let Command::CreateVote { vote: new, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((&*new.title, new.options.len(), new.duration_secs), ("t", 2, Some(60)));
    assert_eq!(it.told(RoomEvent::VoteOpened(Arc::new(vote(it.id))), "vote_created"), expect);
    let answer = Ok(Outcome::Vote(Box::new(vote(it.id))));
    let (shown, _) = it.when(answer, "get_vote_status", json!({"vote_id": VOTE.to_uuid()}));
    assert_eq!(shown, expect);
}

#[test]
fn a_vote_that_is_closed_shows_what_came_of_it() {
    let mut it = two();
    let (room, id) = (it.room.clone(), it.id);
    let tally = json!([{"option_index": 0, "option_text": "x", "count": 0},
                       {"option_index": 1, "option_text": "y", "count": 2}]);
    for (notes, note) in [
        (VoteNotes::default(), None),
        (
            VoteNotes { unopened: 1, late: 2, ..VoteNotes::default() },
            Some(json!({"unopened": 1, "late": 2})),
        ),
    ] {
        let views = vec![closed(id, notes)];
        let (list, asked) =
            it.when(Ok(Outcome::Votes(views)), "list_votes", json!({"room_id": room}));
        let shown = &list["votes"][0];
        assert_eq!((&list["room_id"], &shown["status"]), (&room, &json!("closed")));
        assert_eq!((&shown["tally"], shown.get("mesh")), (&tally, note.as_ref()));
        assert!(matches!(asked, Command::ListVotes { limit: 20, .. }), "{asked:?}");
        let ballots = vec![("a".into(), "A".to_owned(), 1), ("b".into(), "B".to_owned(), 1)];
        let result = VoteResult { vote: closed(id, notes), ballots };
        let result = it.told(RoomEvent::VoteEnded(Arc::new(result)), "vote_result");
        let mut expect = json!({
            "vote_id": VOTE.to_uuid(), "room_id": room, "title": "t", "options": ["x", "y"],
            "tally": tally, "total_votes": 2, "eligible_voters": 2,
            "ballots": [{"agent_id": "a", "agent_name": "A", "option_index": 1},
                        {"agent_id": "b", "agent_name": "B", "option_index": 1}],
        });
        if let Some(note) = note {
            expect["mesh"] = note;
        }
        assert_eq!(result, expect);
    }
}

#[test]
fn a_vote_goes_from_its_opening_to_its_result() {
    let mut it = two();
    let room = it.room.clone();
    let mut late = Local::agent(&it.fake, "late");
    let made =
        it.a.call("create_vote", json!({"room_id": room, "title": "t", "options": ["x", "y"]}));
    assert_eq!(it.b.event("vote_created").unwrap(), made);
    let id = made["vote_id"].clone();
    let ballot = |option: Value| json!({"vote_id": id, "option_index": option});
    assert_eq!(late.code("cast_vote", ballot(json!(0))), "not_in_room");
    late.call("join_room", json!({"room_id": room}));
    assert_eq!(late.code("cast_vote", ballot(json!(0))), "access_denied");
    assert_eq!(it.a.code("cast_vote", ballot(json!(2))), "invalid_option");
    let cast = it.a.call("cast_vote", ballot(json!(1)));
    assert_eq!(cast, json!({"vote_id": id, "votes_cast": 1, "eligible_voters": 2}));
    assert_eq!(it.a.code("cast_vote", ballot(json!(0))), "already_voted");
    let status = it.b.call("get_vote_status", json!({"vote_id": id}));
    assert_eq!((&status["votes_cast"], status.get("tally")), (&json!(1), None));
    it.b.call("cast_vote", ballot(json!(1)));
    it.fake.pass(Duration::from_secs(5));
    let result = it.a.event("vote_result").unwrap();
    assert_eq!(it.b.event("vote_result").unwrap(), result);
    assert_eq!(late.event("vote_result").unwrap(), result, "to all members");
    assert_eq!((&result["total_votes"], &result["tally"][1]["count"]), (&json!(2), &json!(2)));
    assert_eq!(it.a.code("cast_vote", ballot(json!(0))), "vote_closed");
    let votes = it.a.call("list_votes", json!({"room_id": room}));
    assert_eq!(votes["votes"][0]["status"], "closed");
    assert_eq!(votes["votes"][0]["tally"], result["tally"]);
    let none = it.a.call("list_votes", json!({"room_id": room, "limit": 0}));
    assert_eq!(none, json!({"room_id": room, "votes": []}));
}

#[test]
fn what_is_no_ballot_is_refused() {
    let mut it = two();
    for (payload, code) in [
        (json!({"vote_id": "nope", "option_index": 0}), "vote_not_found"),
        (json!({"vote_id": VOTE.to_uuid(), "option_index": 0}), "vote_not_found"),
        (json!({"vote_id": VOTE.to_uuid(), "option_index": -1}), "invalid_payload"),
        (json!({"vote_id": VOTE.to_uuid(), "option_index": 0.5}), "invalid_payload"),
        (json!({"vote_id": VOTE.to_uuid(), "option_index": "0"}), "invalid_payload"),
    ] {
        assert_eq!(it.a.code("cast_vote", payload), code);
    }
    assert_eq!(it.a.code("get_vote_status", json!({"vote_id": "nope"})), "vote_not_found");
    let unknown = json!({"vote_id": VOTE.to_uuid()});
    assert_eq!(it.a.code("get_vote_status", unknown), "vote_not_found");
}

#[test]
fn what_cannot_be_voted_on_is_named() {
    let mut it = two();
    let long = |len: usize| "x".repeat(len);
    let many = vec!["x"; VOTE_OPTIONS_MAX + 1];
    let room = it.room.clone();
    for (title, options, more, field) in [
        (" ".into(), json!(["x", "y"]), json!({}), "title"),
        (long(VOTE_TITLE_BYTES_MAX + 1), json!(["x", "y"]), json!({}), "title"),
        ("t".into(), json!(["x"]), json!({}), "options"),
        ("t".into(), json!(many), json!({}), "options"),
        ("t".into(), json!(["x", " "]), json!({}), "options"),
        ("t".into(), json!(["x", long(1_025)]), json!({}), "options"),
        ("t".into(), json!(["x", "y"]), json!({"description": long(4_097)}), "description"),
        ("t".into(), json!(["x", "y"]), json!({"duration_secs": 0}), "duration_secs"),
        ("t".into(), json!(["x", "y"]), json!({"duration_secs": 1_u64 << 40}), "duration_secs"),
    ] {
        let mut payload = json!({"room_id": room, "title": title, "options": options});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = it.a.ask("create_vote", payload);
        assert_eq!(reply["payload"]["code"], "invalid_payload");
        assert!(reply["payload"]["message"].as_str().unwrap().contains(field), "{reply}");
    }
    for kind in ["list_votes", "elect_leader", "decline_election", "list_tasks"] {
        assert_eq!(it.a.code(kind, json!({"room_id": "nowhere"})), "room_not_found", "{kind}");
    }
    for kind in ["create_vote", "assign_task"] {
        let payload = json!({"room_id": "nowhere", "title": "t", "options": ["x", "y"]});
        assert_eq!(it.a.code(kind, payload), "room_not_found", "{kind}");
    }
}

#[test]
fn an_election_begins_and_ends() {
    let mut it = two();
    let room = it.room.clone();
    let named = || json!({"room_id": room});
    let candidates = vec!["a".into(), "b".into()];
    let (reply, _) = it.when(Ok(Outcome::Candidates(candidates)), "elect_leader", named());
    assert_eq!((&reply["room_id"], &reply["candidates"]), (&room, &json!(["a", "b"])));
    assert!(reply["message"].is_string());
    let started = RoomEvent::ElectionStarted {
        candidates: Arc::from(["a".into(), "b".into()]),
        by: "a".into(),
    };
    assert_eq!(
        it.told(started, "election_started"),
        json!({"room_id": room, "candidates": ["a", "b"], "started_by": "a", "opt_out_seconds": 2})
    );
    let (reply, _) = it.when(Ok(Outcome::Done), "decline_election", named());
    assert_eq!(reply["room_id"], room);
    assert!(reply["message"].is_string());
    let elected = RoomEvent::LeaderElected { agent: "a".into(), name: "A".into() };
    assert_eq!(
        it.told(elected, "leader_elected"),
        json!({"room_id": room, "leader_id": "a", "leader_name": "A"})
    );
    for (why, reason) in [
        (LeaderGone::Left, "leader left"),
        (LeaderGone::AllDeclined, "all candidates declined"),
        (LeaderGone::Superseded, "superseded"),
    ] {
        let cleared = it.told(RoomEvent::LeaderCleared { why }, "leader_cleared");
        assert_eq!(cleared, json!({"room_id": room, "reason": reason}));
    }
    for (refused, kind, code) in [
        (Refused::ElectionRuns, "elect_leader", "election_in_progress"),
        (Refused::NotMember, "elect_leader", "not_in_room"),
        (Refused::NoElection, "decline_election", "no_election_active"),
        (Refused::NotMember, "decline_election", "not_in_room"),
    ] {
        assert_eq!(it.refused(refused, kind, named()), code);
    }
}

/// A decision of `a`, as the mesh delivers it.
fn decision(it: &Two, number: u64, content: &str, metadata: Option<Value>) -> Delivered {
    let log = LogId { author: NodeId([1; 32]), incarnation: 0 };
    Delivered {
        number: Number(number),
        canonical: None,
        at: LocalRef { log: 0, seq: number },
        log,
        message: MessageId::new(it.id, log, number),
        facts: Facts { clock: number, wall_ms: number, kind: DECISION, visible: true },
        said: Some(Arc::new(Said {
            agent: "a".into(),
            name: "A".into(),
            content: content.into(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: metadata.map(|it| it.to_string()),
            dedup: None,
            turn: None,
            id: None,
            key: None,
            conversation: None,
        })),
    }
}

#[test]
fn a_decision_is_told_to_all_and_kept_as_a_message() {
    let mut it = two();
    let room = it.room.clone();
    for (number, own, metadata) in [
        (1, None, json!({"type": "decision", "decided_by": "a"})),
        (
            2,
            Some(json!({"w": 1, "type": "mine"})),
            json!({"w": 1, "type": "decision", "decided_by": "a"}),
        ),
    ] {
        let decision = decision(&it, number, "go", own);
        let id = decision.message.to_uuid();
        it.fake.keep(it.id, &decision);
        let made = it.told(RoomEvent::Message(decision), "decision_made");
        assert_eq!(
            made,
            json!({
                "room_id": room, "message_id": id, "leader_id": "a", "leader_name": "A",
                "content": "go", "metadata": metadata, "timestamp": made["timestamp"],
                "mesh": {"seq": number},
            })
        );
        let page = it.b.call("get_history", json!({"room_id": room, "since_seq": number - 1}));
        let kept = &page["messages"][0];
        assert_eq!((&kept["metadata"], &kept["seq"]), (&metadata, &json!(number)));
        assert_eq!(kept["message_id"], id);
    }
    let proof = Proof::default();
    for fresh in [Some(Fresh { wall_ms: 0, name: "A".into(), proof, conversation: None }), None] {
        let said = SaidOk { message: MessageId([7; 16]), number: Number(1), fresh, copies: None };
        let payload = json!({"room_id": room, "content": "go", "metadata": {"w": 1}});
        let (reply, asked) = it.when(Ok(Outcome::Said(said)), "decision", payload);
        let expect = json!({"message_id": MessageId([7; 16]).to_uuid(), "room_id": room});
        assert_eq!(reply, expect);
        let Command::Say { say, .. } = asked else { panic!("{asked:?}") };
        assert_eq!((say.speech, say.metadata.as_deref()), (Speech::Decision, Some(r#"{"w":1}"#)));
    }
}

#[test]
fn a_slow_leader_catches_up_with_its_own_decisions() {
    let mut it = two();
    let text = "x".repeat(60_000);
    for number in 1..=8 {
        let decision = decision(&it, number, &text, None);
        it.fake.keep(it.id, &decision);
        it.fake.hub().notify(it.id, RoomEvent::Message(decision));
    }
    let (_, bytes) = it.fake.hub().held();
    assert!(bytes <= 2 * (limits::QUEUE_BYTES_MAX + text.len()), "some are not queued");
    let mut seqs = Vec::new();
    while let Some(made) = it.a.event("decision_made") {
        seqs.push(made["mesh"]["seq"].as_u64().unwrap());
    }
    assert_eq!(seqs, (1..=8).collect::<Vec<_>>());
}

#[test]
fn who_may_not_decide_is_told_why() {
    let mut it = two();
    let room = it.room.clone();
    let text = |len| json!({"room_id": room, "content": "x".repeat(len)});
    assert_eq!(it.a.code("decision", text(1)), "not_leader");
    assert_eq!(it.a.code("decision", text(65_537)), "message_too_large");
    let list = json!({"room_id": room, "content": "x", "metadata": [1]});
    assert_eq!(it.a.code("decision", list), "invalid_payload");
    let payload = json!({"name": "e", "public": true, "encrypted": true});
    let secret = it.a.call("create_room", payload)["room_id"].clone();
    it.a.call("join_room", json!({"room_id": secret}));
    let plain = json!({"room_id": secret, "content": "plain"});
    assert_eq!(it.a.code("decision", plain), "plaintext_in_encrypted_room");
    let blob = json!({"room_id": secret, "content": "clw1:AAAA"});
    assert_eq!(it.a.code("decision", blob), "not_leader");
}

#[test]
fn tasks_are_made_changed_and_listed() {
    let mut it = two();
    let (room, id) = (it.room.clone(), it.id);
    let shown = json!({
        "task_id": TASK.to_uuid(), "room_id": room, "title": "t", "status": "in_progress",
        "assignee": "b", "created_by": "a", "created_at": "1970-01-01T00:00:00.000Z",
        "updated_at": "1970-01-01T00:00:01.000Z", "note": "n",
        "mesh": {
            "n": 7, "identifier": task(id).identifier(), "comments": 1, "contested": ["assignee"],
        },
    });
    let view = || Ok(Outcome::Task(Box::new(task(id))));
    let payload = json!({"room_id": room, "title": "t", "description": "d", "assignee": "b"});
    let (reply, asked) = it.when(view(), "assign_task", payload);
    assert_eq!(reply, shown);
    let Command::AssignTask { task: new, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((&*new.title, new.assignee.as_deref()), ("t", Some("b")));
    let tasks = Ok(Outcome::Tasks(vec![task(id)]));
    let (list, asked) = it.when(tasks, "list_tasks", json!({"room_id": room, "status": "blocked"}));
    assert_eq!(list, json!({"room_id": room, "tasks": [shown]}));
    assert!(
        matches!(asked, Command::ListTasks { status: Some(TaskStatus::Blocked), .. }),
        "{asked:?}"
    );
    assert_eq!(it.told(RoomEvent::TaskAssigned(Arc::new(task(id))), "task_assigned"), shown);
    assert_eq!(
        it.told(RoomEvent::TaskUpdated(Arc::new(task(id)), Arc::default()), "task_updated"),
        shown
    );
    for unknown in ["nope".to_owned(), TASK.to_uuid()] {
        let update = json!({"task_id": unknown, "status": "completed"});
        assert_eq!(it.a.code("update_task", update), "task_not_found");
    }
    for (payload, field) in [
        (json!({"task_id": TASK.to_uuid(), "status": "done"}), "status"),
        (json!({"task_id": TASK.to_uuid(), "assignee": ""}), "assignee"),
        (json!({"task_id": TASK.to_uuid(), "if_assignee": 7}), "if_assignee"),
        (json!({"task_id": TASK.to_uuid(), "note": "x".repeat(4_097)}), "note"),
    ] {
        let reply = it.a.ask("update_task", payload);
        assert_eq!(reply["payload"]["code"], "invalid_payload");
        assert!(reply["payload"]["message"].as_str().unwrap().contains(field), "{reply}");
    }
}

/// What a mesh has beside the fields of every client, there and back.
#[test]
fn fields_of_the_mesh_are_set_and_shown() {
    let mut it = two();
    let id = it.id;
    let mut view = task(id);
    view.status = TaskStatus::InReview;
    (view.priority, view.due_ms) = (3, Some(1_000));
    view.labels = ["red".to_owned()].into();
    view.progress = Some(Arc::new(TaskProgress { percent: 40, step: "digs".to_owned() }));
    view.result = Some(r#"{"a":1}"#.into());
    view.contested = Vec::new();
    let answer = |view: &TaskView| Ok(Outcome::Task(Box::new(view.clone())));
    let payload = json!({
        "task_id": TASK.to_uuid(), "note": "n", "if_assignee": "b", "mesh": {
            "state": "in_review", "if_state": "in_progress", "release": true, "priority": 3,
            "labels": ["red"], "due": "1970-01-01T00:00:01Z", "result": {"a": 1},
            "progress": {"percent": 40, "step": "digs"}, "note_kind": "status",
        },
    });
    let (shown, asked) = it.when(answer(&view), "update_task", payload);
    assert_eq!(shown["status"], "in_progress", "as every client knows it");
    assert_eq!(
        shown["mesh"],
        json!({
            "n": 7, "identifier": view.identifier(), "state": "in_review", "priority": 3,
            "labels": ["red"], "due": "1970-01-01T00:00:01.000Z", "comments": 1,
            "progress": {"percent": 40, "step": "digs"}, "result": {"a": 1},
        })
    );
    let Command::UpdateTask { update, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((update.status, update.by_steps), (Some(TaskStatus::InReview), true));
    assert_eq!((update.assignee, update.if_status), (Some(None), Some(TaskStatus::InProgress)));
    assert_eq!((update.kind, update.fields.due_ms), (CommentKind::Status, Some(1_000)));
    assert_eq!(update.fields.result.as_deref(), Some(r#"{"a":1}"#));
    let mesh = json!({"kind": "bug", "blocked_by": [TASK.to_uuid()], "requires_approval": true});
    let new = json!({"room_id": it.room, "title": "t", "mesh": mesh});
    let (_, asked) = it.when(answer(&view), "assign_task", new);
    let Command::AssignTask { task: new, .. } = asked else { panic!("{asked:?}") };
    let TaskFacts { kind, blocked_by, requires_approval, .. } = *new.facts;
    assert_eq!(
        (kind.as_deref(), &*blocked_by, requires_approval),
        (Some("bug"), &[TASK][..], true)
    );
    for (mesh, why) in [
        (json!({"state": "open"}), "`mesh`"),
        (json!({"priority": 4}), "mesh.priority"),
        (json!({"due": "soon"}), "mesh.due"),
        (json!({"if_state": "pending"}), "if_assignee"),
    ] {
        let reply = it.a.ask("update_task", json!({"task_id": TASK.to_uuid(), "mesh": mesh}));
        assert_eq!(reply["payload"]["code"], "invalid_payload", "{reply}");
        assert!(reply["payload"]["message"].as_str().unwrap().contains(why), "{reply}");
    }
}

#[test]
fn a_claim_names_whom_it_expects_and_is_told_who_holds_the_task() {
    let mut it = two();
    let id = it.id;
    let mut update = |more: Value| {
        let mut payload = json!({"task_id": TASK.to_uuid(), "assignee": "a"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let view = Ok(Outcome::Task(Box::new(task(id))));
        let (_, asked) = it.when(view, "update_task", payload);
        let Command::UpdateTask { update, .. } = asked else { panic!("{asked:?}") };
        let TaskUpdate { assignee, if_assignee, .. } = update;
        assert_eq!(assignee, Some(Some("a".into())));
        if_assignee
    };
    assert_eq!(update(json!({})), None);
    assert_eq!(update(json!({"if_assignee": null})), Some(None));
    assert_eq!(update(json!({"if_assignee": "b"})), Some(Some("b".into())));
    let held = Refused::Held { holder: Some("b".into()) };
    *it.fake.knobs.script.lock().unwrap() = Some(Err(held));
    let claim = json!({"task_id": TASK.to_uuid(), "assignee": "a", "if_assignee": null});
    let reply = it.a.ask("update_task", claim);
    assert_eq!(reply["payload"]["code"], "invalid_payload");
    assert!(reply["payload"]["message"].as_str().unwrap().contains(" b"), "{reply}");
}

#[test]
fn a_task_goes_from_hand_to_hand() {
    let mut it = two();
    let room = it.room.clone();
    let mut outsider = Local::agent(&it.fake, "c");
    let made = it.a.call("assign_task", json!({"room_id": room, "title": "t"}));
    assert_eq!((&made["status"], made.get("assignee")), (&json!("pending"), None));
    for member in [&mut it.a, &mut it.b] {
        assert_eq!(member.event("task_assigned").unwrap(), made);
    }
    let update = |more: Value| {
        let mut payload = json!({"task_id": made["task_id"]});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let claim = |agent: &str| update(json!({"assignee": agent, "if_assignee": null}));
    let claimed = it.b.call("update_task", claim("b"));
    assert_eq!(claimed["assignee"], "b");
    assert_eq!(it.a.event("task_updated").unwrap(), claimed);
    let reply = it.a.ask("update_task", claim("a"));
    assert_eq!(reply["payload"]["code"], "invalid_payload");
    assert!(reply["payload"]["message"].as_str().unwrap().ends_with("held by b"), "{reply}");
    let done = update(json!({"status": "completed", "note": "n"}));
    assert_eq!(outsider.code("update_task", done.clone()), "not_in_room");
    let payload = json!({"room_id": room, "title": "t"});
    assert_eq!(outsider.code("assign_task", payload), "not_in_room");
    let done = it.b.call("update_task", done);
    assert_eq!((&done["status"], &done["note"]), (&json!("completed"), &json!("n")));
    let list = outsider.call("list_tasks", json!({"room_id": room, "status": "completed"}));
    assert_eq!(list, json!({"room_id": room, "tasks": [done]}));
    let list = outsider.call("list_tasks", json!({"room_id": room, "status": "pending"}));
    assert_eq!(list["tasks"], json!([]));
}

#[test]
fn what_is_full_in_a_room_is_no_failure_of_the_node() {
    let mut it = two();
    let (room, full) = (it.room.clone(), || Refused::Full("256 votes are open".into()));
    for (kind, payload) in [
        ("create_vote", json!({"room_id": room, "title": "t", "options": ["a", "b"]})),
        ("cast_vote", json!({"vote_id": VOTE.to_uuid(), "option_index": 0})),
        ("elect_leader", json!({"room_id": room})),
        ("assign_task", json!({"room_id": room, "title": "t"})),
        ("update_task", json!({"task_id": TASK.to_uuid(), "status": "completed"})),
        ("once", json!({"room_id": room, "subject": "s"})),
        ("join_room", json!({"room_id": "lobby"})),
    ] {
        assert_eq!(it.refused(full(), kind, payload), "invalid_payload", "{kind}");
    }
}

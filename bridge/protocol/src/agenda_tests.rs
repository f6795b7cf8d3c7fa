//! The shapes of votes, elections, decisions, tasks and subscriptions.

use super::*;
use crate::event::{
    Ballot, DecisionMade, ElectionStarted, LeaderCleared, LeaderElected, VoteResult,
};
use crate::object::{
    MeshNote, Subscription, SubscriptionStatus, Tallied, Task, Vote, VoteNote, VoteStatus,
};
use crate::reply::{
    BallotCast, Decided, Declined, Election, Enabled, Subscriptions, TaskList, Unsubscribed, Votes,
};
use crate::task::TaskNote;
use crate::value::{Metadata, TaskStatus};

const TIME: &str = "2026-03-01T12:00:00Z";

fn tally() -> Vec<Tallied> {
    let count = |(index, (text, count)): (u64, (&str, u64))| Tallied {
        option_index: index,
        option_text: text.into(),
        count,
    };
    (0..).zip([("x", 1), ("y", 2)]).map(count).collect()
}

const TALLY: &str = r#"[{"option_index":0,"option_text":"x","count":1},{"option_index":1,"option_text":"y","count":2}]"#;

fn open_vote() -> Vote {
    Vote {
        vote_id: "v".into(),
        room_id: "r".into(),
        title: "t".into(),
        description: None,
        options: vec!["x".into(), "y".into()],
        created_by: "a".into(),
        created_at: TIME.into(),
        closes_at: None,
        status: VoteStatus::Open,
        votes_cast: 1,
        eligible_voters: 3,
        tally: None,
        mesh: None,
    }
}

const OPEN_VOTE: &str = r#"{"vote_id":"v","room_id":"r","title":"t","options":["x","y"],"created_by":"a","created_at":"2026-03-01T12:00:00Z","status":"open","votes_cast":1,"eligible_voters":3}"#;

fn closed_vote() -> Vote {
    Vote {
        description: Some("d".into()),
        closes_at: Some(TIME.into()),
        status: VoteStatus::Closed,
        tally: Some(tally()),
        mesh: Some(VoteNote { late: 2, corrected: 1, ..VoteNote::default() }),
        ..open_vote()
    }
}

fn closed_vote_json() -> String {
    format!(
        r#"{{"vote_id":"v","room_id":"r","title":"t","description":"d","options":["x","y"],"created_by":"a","created_at":"{TIME}","closes_at":"{TIME}","status":"closed","votes_cast":1,"eligible_voters":3,"tally":{TALLY},"mesh":{{"late":2,"corrected":1}}}}"#
    )
}

fn task() -> Task {
    Task {
        task_id: "k".into(),
        room_id: "r".into(),
        title: "t".into(),
        description: None,
        status: TaskStatus::Pending,
        assignee: None,
        created_by: "a".into(),
        created_at: TIME.into(),
        updated_at: None,
        note: None,
        mesh: None,
    }
}

const NEW_TASK: &str = r#"{"task_id":"k","room_id":"r","title":"t","status":"pending","created_by":"a","created_at":"2026-03-01T12:00:00Z"}"#;

fn updated_task() -> Task {
    Task {
        description: Some("d".into()),
        status: TaskStatus::InProgress,
        assignee: Some("b".into()),
        updated_at: Some(TIME.into()),
        note: Some("n".into()),
        mesh: Some(TaskNote { contested: vec!["assignee".into()], ..TaskNote::default() }),
        ..task()
    }
}

const UPDATED_TASK: &str = r#"{"task_id":"k","room_id":"r","title":"t","description":"d","status":"in_progress","assignee":"b","created_by":"a","created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z","note":"n","mesh":{"contested":["assignee"]}}"#;

fn vote_result(mesh: Option<VoteNote>) -> Event {
    let ballot = Ballot { agent_id: "a".into(), agent_name: "n".into(), option_index: 1 };
    Event::VoteResult(Box::new(VoteResult {
        vote_id: "v".into(),
        room_id: "r".into(),
        title: "t".into(),
        options: vec!["x".into(), "y".into()],
        tally: tally(),
        ballots: vec![ballot],
        total_votes: 3,
        eligible_voters: 4,
        mesh,
    }))
}

fn vote_result_json(mesh: &str) -> String {
    format!(
        r#"{{"vote_id":"v","room_id":"r","title":"t","options":["x","y"],"tally":{TALLY},"ballots":[{{"agent_id":"a","agent_name":"n","option_index":1}}],"total_votes":3,"eligible_voters":4{mesh}}}"#
    )
}

#[test]
fn events_of_the_agenda_have_the_shape_of_the_specification_and_come_back() {
    let started = ElectionStarted {
        room_id: "r".into(),
        candidates: vec!["a".into(), "b".into()],
        started_by: "a".into(),
        opt_out_seconds: 2,
    };
    let elected =
        LeaderElected { room_id: "r".into(), leader_id: "a".into(), leader_name: "n".into() };
    let cleared = LeaderCleared { room_id: "r".into(), reason: "leader left".into() };
    let decided = |mesh| DecisionMade {
        room_id: "r".into(),
        message_id: "m".into(),
        leader_id: "a".into(),
        leader_name: "n".into(),
        content: "go".into(),
        metadata: Metadata::parse(r#"{"decided_by":"a","type":"decision"}"#).ok(),
        timestamp: TIME.into(),
        mesh,
    };
    let decided_json = |mesh: &str| {
        format!(
            r#"{{"room_id":"r","message_id":"m","leader_id":"a","leader_name":"n","content":"go","metadata":{{"decided_by":"a","type":"decision"}},"timestamp":"{TIME}"{mesh}}}"#
        )
    };
    let numbered = MeshNote { seq: Some(7), ..MeshNote::default() };
    let unopened = VoteNote { unopened: 1, ..VoteNote::default() };
    let cases = [
        (Event::VoteCreated(Box::new(open_vote())), "vote_created", OPEN_VOTE.into()),
        (vote_result(None), "vote_result", vote_result_json("")),
        (vote_result(Some(unopened)), "vote_result", vote_result_json(r#","mesh":{"unopened":1}"#)),
        (
            Event::ElectionStarted(started),
            "election_started",
            r#"{"room_id":"r","candidates":["a","b"],"started_by":"a","opt_out_seconds":2}"#.into(),
        ),
        (
            Event::LeaderElected(elected),
            "leader_elected",
            r#"{"room_id":"r","leader_id":"a","leader_name":"n"}"#.into(),
        ),
        (
            Event::LeaderCleared(cleared),
            "leader_cleared",
            r#"{"room_id":"r","reason":"leader left"}"#.into(),
        ),
        (Event::DecisionMade(Box::new(decided(None))), "decision_made", decided_json("")),
        (
            Event::DecisionMade(Box::new(decided(Some(numbered)))),
            "decision_made",
            decided_json(r#","mesh":{"seq":7}"#),
        ),
        (Event::TaskAssigned(Box::new(task())), "task_assigned", NEW_TASK.into()),
        (Event::TaskUpdated(Box::new(updated_task())), "task_updated", UPDATED_TASK.into()),
    ];
    for (event, kind, payload) in cases {
        let line = encode_event(&event, "u");
        assert_eq!(line, format!("{{\"id\":\"u\",\"type\":\"{kind}\",\"payload\":{payload}}}"));
        let frame = ServerFrame::parse(&line).unwrap();
        assert_eq!(frame.event().unwrap(), Some(event));
    }
}

fn subscription() -> Subscription {
    Subscription {
        subscription_id: "s".into(),
        room_id: "r".into(),
        webhook_url: "https://e.example/h".into(),
        kinds: Some(vec!["verdict".into()]),
        only_from: None,
        not_from: None,
        exclude_thinking: false,
        since_seq: 0,
        last_delivered_seq: 3,
        status: SubscriptionStatus::Failed,
        failure_count: 5,
        created_at: TIME.into(),
    }
}

const SUBSCRIPTION: &str = r#"{"subscription_id":"s","room_id":"r","webhook_url":"https://e.example/h","kinds":["verdict"],"exclude_thinking":false,"since_seq":0,"last_delivered_seq":3,"status":"failed","failure_count":5,"created_at":"2026-03-01T12:00:00Z"}"#;

#[test]
fn replies_of_the_agenda_have_the_shape_of_the_specification() {
    let cast = BallotCast { vote_id: "v".into(), votes_cast: 1, eligible_voters: 3 };
    let election =
        Election { room_id: "r".into(), candidates: vec!["a".into()], message: "wait".into() };
    let declined = Declined { room_id: "r".into(), message: "out".into() };
    let decided = Decided { message_id: "m".into(), room_id: "r".into(), mesh: None };
    let votes = Votes { room_id: "r".into(), votes: vec![open_vote()] };
    let tasks = TaskList { room_id: "r".into(), tasks: vec![task()] };
    let subscriptions = Subscriptions { subscriptions: vec![subscription()] };
    let enabled = Enabled { subscription_id: "s".into(), status: SubscriptionStatus::Active };
    let cases = [
        (Reply::Vote(Box::new(open_vote())), "ok", OPEN_VOTE.into()),
        (Reply::Vote(Box::new(closed_vote())), "ok", closed_vote_json()),
        (
            Reply::BallotCast(cast),
            "ok",
            r#"{"vote_id":"v","votes_cast":1,"eligible_voters":3}"#.into(),
        ),
        (Reply::Votes(votes), "ok", format!(r#"{{"room_id":"r","votes":[{OPEN_VOTE}]}}"#)),
        (
            Reply::Election(election),
            "ok",
            r#"{"room_id":"r","candidates":["a"],"message":"wait"}"#.into(),
        ),
        (Reply::Declined(declined), "ok", r#"{"room_id":"r","message":"out"}"#.into()),
        (Reply::Decided(decided), "ok", r#"{"message_id":"m","room_id":"r"}"#.into()),
        (Reply::Task(Box::new(task())), "ok", NEW_TASK.into()),
        (Reply::Task(Box::new(updated_task())), "ok", UPDATED_TASK.into()),
        (Reply::TaskList(tasks), "task_list", format!(r#"{{"room_id":"r","tasks":[{NEW_TASK}]}}"#)),
        (Reply::Subscription(Box::new(subscription())), "ok", SUBSCRIPTION.into()),
        (
            Reply::Subscriptions(subscriptions),
            "ok",
            format!(r#"{{"subscriptions":[{SUBSCRIPTION}]}}"#),
        ),
        (Reply::Unsubscribed(Unsubscribed { deleted: true }), "ok", r#"{"deleted":true}"#.into()),
        (Reply::Enabled(enabled), "ok", r#"{"subscription_id":"s","status":"active"}"#.into()),
    ];
    for (reply, kind, payload) in cases {
        let line = encode_reply(&reply, Some("q"), "u");
        let expected = format!(
            "{{\"id\":\"u\",\"reply_to\":\"q\",\"type\":\"{kind}\",\"payload\":{payload}}}"
        );
        assert_eq!(line, expected);
    }
}

#[test]
fn objects_of_the_agenda_come_back_with_fields_that_are_not_known() {
    fn again<T: serde::de::DeserializeOwned>(json: &str) -> T {
        let more = format!("{},\"future\":{{\"x\":1}}}}", json.strip_suffix('}').unwrap());
        serde_json::from_str(&more).unwrap()
    }
    assert_eq!(again::<Vote>(OPEN_VOTE), open_vote());
    assert_eq!(again::<Vote>(&closed_vote_json()), closed_vote());
    assert_eq!(again::<Task>(NEW_TASK), task());
    assert_eq!(again::<Task>(UPDATED_TASK), updated_task());
    assert_eq!(again::<Subscription>(SUBSCRIPTION), subscription());
    let votes: Votes = again(r#"{"room_id":"r","votes":[]}"#);
    assert_eq!(votes.votes, []);
}

//! The rules of journals, one by one.

use std::f64::consts::{LN_2, LN_10};

use protocol::object::Message;
use protocol::value::Metadata;
use serde_json::{Value, json};

use super::calibration::loss;
use super::journal::{Fate, Journal};
use super::record::Keep;
use super::samples::{envelope, late, message};
use super::thread::State;

fn journal(messages: &[Message]) -> Journal {
    let mut journal = Journal::new(Keep::Deltas);
    messages.iter().for_each(|message| journal.add(message).expect("it is not much"));
    journal
}

fn said(seq: u64, verb: &str, thread: Option<u64>, from: &str, body: Value) -> Message {
    message(seq, &envelope(verb, thread, from, body))
}

fn assertion(seq: u64, from: &str, claim: &str, confidence: f64) -> Message {
    said(seq, "ASSERT", None, from, json!({"claim": claim, "confidence": confidence}))
}

fn challenge(seq: u64, thread: u64, from: &str, confidence: f64) -> Message {
    let body = json!({"target_seq": thread, "confidence": confidence});
    said(seq, "CHALLENGE", Some(thread), from, body)
}

fn resolution(seq: u64, thread: u64, basis: &str) -> Message {
    said(seq, "RESOLVE", Some(thread), "judge", json!({"observation": "o", "basis": basis}))
}

fn fuse(seq: u64, thread: u64, body: Value) -> Message {
    said(seq, "FUSE", Some(thread), "judge", body)
}

fn outcomes(seq: u64, thread: u64, outcomes: Value) -> Message {
    fuse(seq, thread, json!({"synthesis": "s", "outcomes": outcomes}))
}

fn headlines(journal: &Journal) -> Vec<(u64, State, String)> {
    journal
        .threads()
        .into_iter()
        .map(|thread| (thread.thread, thread.state, thread.headline))
        .collect()
}

fn scores(messages: &[Message]) -> Vec<(String, f64, u64)> {
    let scores = journal(messages).calibration();
    scores.into_iter().map(|score| (score.agent, score.mean_loss, score.claims)).collect()
}

#[test]
fn a_thread_is_open_until_it_is_resolved_and_then_fused() {
    let mut all = vec![message(1, "hello"), assertion(2, "a", "it works", 0.5)];
    let state = |all: &[Message]| journal(all).threads()[0].state;
    assert_eq!(state(&all), State::Open);
    all.push(challenge(3, 2, "b", 0.5));
    assert_eq!(state(&all), State::Open);
    all.push(resolution(5, 2, "stale"));
    assert_eq!(state(&all), State::Resolved);
    all.push(fuse(9, 2, json!({})));
    assert_eq!(state(&all), State::Fused);
    all.push(resolution(10, 2, "tool"));
    assert_eq!(state(&all), State::Fused);
    let journal = journal(&all);
    let thread = &journal.threads()[0];
    assert_eq!((thread.thread, thread.messages, thread.last_seq), (2, 5, 10));
    assert_eq!(thread.opened_by.as_deref(), Some("a"));
    assert_eq!(journal.messages_of(2).into_iter().collect::<Vec<_>>(), [2, 3, 5, 9, 10]);
    assert!(journal.messages_of(3).is_empty());
    assert_eq!((journal.thread_with(3), journal.thread_with(1)), (Some(2), None));
    // A FUSE alone is enough.
    assert_eq!(journal_of_one("FUSE"), State::Fused);
}

fn journal_of_one(verb: &str) -> State {
    journal(&[said(4, verb, Some(1), "a", json!({}))]).threads()[0].state
}

#[test]
fn the_headline_is_the_claim_else_the_question_else_an_intent_else_the_verb() {
    let with = |seq, verb: &str, thread, extra: Value| {
        let mut envelope = json!({"v": "lantern/0.1.1", "type": verb, "from": "a"});
        for (name, value) in extra.as_object().expect("an object") {
            envelope[name] = value.clone();
        }
        if let Some(thread) = thread {
            envelope["thread"] = json!(thread);
        }
        message(seq, &envelope.to_string())
    };
    let probe = with(1, "PROBE", None, json!({"body": {"question": "why?"}, "intent": "i"}));
    let claim = with(2, "ASSERT", Some(1), json!({"body": {"claim": "so"}}));
    let blank = with(3, "PROBE", None, json!({"body": {"question": " "}}));
    let intent = with(4, "RESOLVE", Some(3), json!({"intent": "to settle it"}));
    let later = with(5, "FUSE", Some(3), json!({"intent": "another"}));
    let lost = with(6, "CHALLENGE", Some(99), json!({"body": {"claim": "not mine"}}));
    let sync = with(7, "SYNC", None, json!({}));
    let all = [probe, claim, blank, intent, later, lost, sync];
    let found: Vec<String> = headlines(&journal(&all))
        .into_iter()
        .map(|(id, _, headline)| format!("{id} {headline}"))
        .collect();
    assert_eq!(found, ["1 so", "3 to settle it", "7 SYNC thread", "99 CHALLENGE thread"]);
    let found = headlines(&journal(&all[..1]));
    assert_eq!(found[0].2, "why?", "a question goes before an intent");
    let lost = journal(&all[5..6]).threads();
    assert_eq!((lost[0].thread, &lost[0].opened_by), (99, &None));
}

#[test]
fn only_chat_is_read_whatever_its_metadata() {
    let content = assertion(1, "a", "c", 0.5).content;
    let with = |metadata: Option<&str>| Message {
        metadata: metadata.and_then(|metadata| Metadata::parse(metadata).ok()),
        ..message(1, &content)
    };
    for (metadata, threads) in [
        (None, 1),
        (Some(r#"{"kind":"fyi"}"#), 1),
        (Some("[1]"), 1),
        (Some(r#"{"type":"thinking"}"#), 0),
        (Some(r#"{"type":"decision","decided_by":"a"}"#), 0),
    ] {
        assert_eq!(journal(&[with(metadata)]).threads().len(), threads, "{metadata:?}");
    }
}

#[test]
fn what_does_not_open_is_counted_once_each() {
    let sealed = |seq| message(seq, "clw1:AAAA");
    let chat = Message { metadata: None, ..message(9, "clw1:AAAA") };
    let journal = journal(&[sealed(1), sealed(2), sealed(2), chat]);
    assert_eq!((journal.closed(), journal.threads().len()), (2, 0));
}

/// Thread 5 was begun and fused while the mesh was split: here its first message is 900, elsewhere 700.
#[test]
fn any_number_of_a_message_is_a_reference_to_it() {
    let claim = assertion(900, "a", "c", 0.9);
    let claim = late(900, &[5, 700, 900], &claim.content);
    let counter = late(901, &[6, 701, 901], &challenge(0, 700, "b", 0.5).content);
    let all = [
        claim,
        counter,
        resolution(910, 5, "tool"),
        outcomes(911, 900, json!({"5": true, "701": false})),
    ];
    let journal = journal(&all);
    let threads = journal.threads();
    assert_eq!(threads.len(), 1, "{threads:?}");
    assert_eq!((threads[0].thread, threads[0].messages), (900, 4), "as people here know it");
    for number in [5, 700, 900] {
        assert_eq!(journal.messages_of(number).len(), 4);
    }
    for number in [6, 701, 901] {
        assert_eq!(journal.thread_with(number), Some(900));
    }
    let scores = journal.calibration();
    assert_eq!((&*scores[0].agent, scores[0].mean_loss), ("a", -(0.9_f64.ln())));
    assert_eq!((&*scores[1].agent, scores[1].mean_loss), ("b", LN_2));
}

/// A thread may hang on a message that is not LANTERN's.
#[test]
fn a_plain_message_has_numbers_too() {
    let plain = late(50, &[5, 50], "we should ship");
    let all = [plain, challenge(51, 5, "a", 0.5), challenge(52, 50, "b", 0.5)];
    let threads = journal(&all).threads();
    assert_eq!((threads.len(), threads[0].thread, threads[0].messages), (1, 50, 2));
}

/// The node of the other side delivered the same messages in another order, under other numbers.
#[test]
fn both_sides_of_a_split_are_told_the_same() {
    let first = fuse(0, 1, json!({"shared_state_delta": "A"})).content;
    let second = fuse(0, 1, json!({"shared_state_delta": "B"})).content;
    let here = journal(&[late(3, &[3, 90], &first), late(80, &[80], &second)]);
    let there = journal(&[late(80, &[80], &second), late(90, &[3, 90], &first)]);
    let deltas = |journal: &Journal| -> Vec<String> {
        journal.shared_state().iter().map(|delta| delta.delta.get().to_owned()).collect()
    };
    assert_eq!(deltas(&here), ["\"A\"", "\"B\""]);
    assert_eq!(deltas(&there), deltas(&here));
    assert_eq!(there.shared_state()[0].seq, 90, "under the number that is known there");
}

#[test]
fn a_message_that_comes_twice_counts_once() {
    let content = fuse(0, 1, json!({"shared_state_delta": 1})).content;
    let again = [message(7, &content), message(7, &content), late(800, &[7, 800], &content)];
    assert_eq!(journal(&again).shared_state().len(), 1);
    // Found out later: two that seemed to be two are one.
    let all = [
        message(700, &content),
        late(800, &[7, 800], &content),
        late(900, &[7, 700, 800, 900], &content),
    ];
    let journal = journal(&all);
    assert_eq!((journal.shared_state().len(), journal.shared_state()[0].seq), (1, 800));
}

#[test]
fn the_shared_state_is_what_was_fused_in_order() {
    let all = [
        fuse(2, 1, json!({"shared_state_delta": {"b": 1, "a": [1, 2.5, "x"]}})),
        fuse(3, 1, json!({"shared_state_delta": null})),
        fuse(4, 1, json!({})),
        fuse(5, 9, json!({"shared_state_delta": false})),
        said(6, "RESOLVE", Some(1), "a", json!({"shared_state_delta": "not a FUSE"})),
    ];
    let found: Vec<_> = journal(&all)
        .shared_state()
        .iter()
        .map(|delta| (delta.seq, delta.thread, delta.delta.get().to_owned()))
        .collect();
    assert_eq!(
        found,
        [(2, 1, r#"{"a":[1,2.5,"x"],"b":1}"#.to_owned()), (5, 9, "false".to_owned())]
    );
}

#[test]
fn the_loss_is_logarithmic_and_bounded() {
    assert_eq!(loss(0.5, true), LN_2);
    assert_eq!(loss(0.5, false), LN_2);
    assert_eq!(loss(0.74, true), -(0.74_f64.ln()));
    assert_eq!(loss(0.74, false), -((1.0 - 0.74_f64).ln()));
    for sure in [1.0, 0.999_999_999, 7.0, 1e300, f64::INFINITY] {
        assert_eq!(loss(sure, true), -((1.0 - 1e-6_f64).ln()));
        assert_eq!(loss(sure, false), LN_10, "no claim costs more");
    }
    for not in [0.0, -0.0, 1e-300, -7.0, f64::NEG_INFINITY] {
        assert_eq!(loss(not, true), LN_10);
        assert_eq!(loss(not, false), -((1.0 - 1e-6_f64).ln()));
    }
    assert_eq!(loss(0.05, true), LN_10, "-ln 0.05 is more");
    assert_eq!(loss(f64::NAN, true), LN_2);
}

#[test]
fn claims_are_scored_by_what_became_of_them() {
    let mut all = vec![
        assertion(1, "a", "c", 0.8),
        challenge(2, 1, "b", 0.6),
        challenge(3, 1, "c", 0.6),
        said(4, "ASSERT", Some(1), "d", json!({"claim": "no confidence"})),
        said(5, "PROBE", Some(1), "e", json!({"confidence": 0.5})),
        resolution(6, 1, "artifact"),
    ];
    assert_eq!(scores(&all), [], "not fused");
    // No outcome for 3; none for messages of other threads; none for messages that are no claims.
    all.push(outcomes(7, 1, json!({"1": true, "2": false, "4": true, "5": true, "99": true})));
    let (a, b) = (-(0.8_f64.ln()), -(0.4_f64.ln()));
    assert_eq!(scores(&all), [("a".to_owned(), a, 1), ("b".to_owned(), b, 1)]);
    // A second thread: the mean of both.
    all.extend([assertion(10, "a", "d", 0.5), resolution(11, 10, "human")]);
    all.push(outcomes(12, 10, json!({"10": false})));
    assert_eq!(scores(&all), [("a".to_owned(), (a + LN_2) / 2.0, 2), ("b".to_owned(), b, 1)]);
}

#[test]
fn only_evidence_is_scored_and_the_first_resolution_counts() {
    for (bases, scored) in [
        (&["tool"][..], 1),
        (&["artifact"], 1),
        (&["human"], 1),
        (&["consensus"], 0),
        (&["stale"], 0),
        (&["guess"], 0),
        (&[], 0),
        (&["consensus", "tool"], 0),
        (&["tool", "consensus"], 1),
    ] {
        let mut all = vec![assertion(1, "a", "c", 0.5)];
        let resolutions = bases.iter().enumerate();
        all.extend(resolutions.map(|(i, basis)| resolution(2 + i as u64, 1, basis)));
        all.push(outcomes(9, 1, json!({"1": true})));
        assert_eq!(scores(&all).len(), scored, "{bases:?}");
    }
}

#[test]
fn outcomes_hold_within_their_thread_and_the_last_counts() {
    let all = [
        assertion(1, "a", "c", 0.9),
        resolution(2, 1, "tool"),
        assertion(3, "b", "other", 0.9),
        resolution(4, 3, "tool"),
        outcomes(5, 1, json!({"1": false, "3": true})),
        outcomes(6, 1, json!({"1": true})),
        fuse(7, 3, json!({})),
    ];
    assert_eq!(scores(&all), [("a".to_owned(), -(0.9_f64.ln()), 1)]);
}

#[test]
fn every_third_fuse_is_followed_by_one_that_looks_back() {
    let due = |count: u64| {
        let all: Vec<Message> = (1..=count).map(|i| fuse(i, i % 2 + 1, json!({}))).collect();
        journal(&all).is_refraction_due()
    };
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6, 7].map(due),
        [false, false, false, true, false, false, true, false]
    );
}

#[test]
fn of_an_agents_introductions_the_last_counts() {
    let hello = |seq, name: &str, role: &str| {
        let envelope = json!({"v": "lantern/0.1.1", "type": "HELLO", "agent_name": name, "role": role,
            "capabilities": [{"name": "x"}]});
        message(seq, &envelope.to_string())
    };
    let late_one = late(90, &[1, 90], &hello(0, "a", "from before").content);
    let journal =
        journal(&[hello(2, "b", "r"), hello(3, "a", "old"), hello(4, "a", "new"), late_one]);
    let found: Vec<_> = journal
        .participants()
        .map(|agent| (&*agent.agent_name, agent.role.as_deref(), agent.seq))
        .collect();
    assert_eq!(found, [("a", Some("new"), 4), ("b", Some("r"), 2)]);
    assert_eq!(journal.threads(), [], "a HELLO opens nothing");
}

#[test]
fn sparks_are_harvested_or_buried() {
    let spark = |seq, seed: &str| said(seq, "SPARK", None, "a", json!({"seed": seed}));
    let harvest = |seq, of: u64, becomes: Value| {
        said(seq, "HARVEST", None, "b", json!({"spark_seq": of, "becomes": becomes}))
    };
    let bury =
        |seq, of: u64| said(seq, "BURY", None, "b", json!({"spark_seq": of, "reason": "no"}));
    let all = [
        spark(1, "one"),
        late(70, &[2, 70], &spark(0, "two").content),
        spark(3, "three"),
        harvest(4, 1, json!(12)),
        bury(5, 70),
        harvest(6, 3, json!("x")),
        bury(7, 3),
        bury(8, 99),
        bury(9, 9),
    ];
    let fates: Vec<_> =
        journal(&all).sparks().into_iter().map(|spark| (spark.seq, spark.fate)).collect();
    let no = || Some("no".to_owned());
    assert_eq!(
        fates,
        [
            (1, Fate::Harvested { by: 4, becomes: Some("12".into()) }),
            (70, Fate::Buried { by: 5, reason: no() }),
            (3, Fate::Buried { by: 7, reason: no() }),
        ]
    );
    let open = journal(&all[..1]).sparks();
    let json = serde_json::to_value(&open).expect("JSON");
    assert_eq!(json, json!([{"seq": 1, "from": "a", "seed": "one", "state": "open"}]));
}

#[test]
fn what_is_kept_of_a_message_is_short() {
    let long = "é".repeat(60_000);
    let mut journal = Journal::new(Keep::Outline);
    let body = json!({"claim": long, "shared_state_delta": long});
    journal.add(&said(1, "ASSERT", None, &long, body)).expect("one");
    let hello = json!({"v": "lantern/0.1.1", "type": "HELLO", "agent_name": long, "role": long,
        "capabilities": vec![json!({"name": long[..2_000], "falsifiable_by": long[..2_000]}); 100]});
    journal.add(&message(2, &hello.to_string())).expect("one");
    let fuse = fuse(3, 1, json!({"shared_state_delta": long}));
    journal.add(&fuse).expect("one");
    let thread = &journal.threads()[0];
    assert_eq!(thread.headline.chars().count(), crate::limits::HEADLINE_CHARS_MAX + 1);
    assert!(thread.headline.ends_with('…'));
    assert!(thread.opened_by.as_deref().is_some_and(|opener| opener.len() < 1_000));
    assert_eq!(journal.shared_state().len(), 0, "an outline has none");
    let found = journal.participants().next().expect("it said HELLO");
    assert_eq!(found.capabilities.len(), crate::limits::HELLO_CAPABILITIES_MAX);
}

#[test]
fn a_room_that_does_not_fit_is_refused_and_not_cut_short() {
    let mut journal = Journal::within(Keep::Deltas, 1024 * 1024);
    let delta = "x".repeat(10 * 1024);
    let content = envelope("FUSE", Some(1), "a", json!({"shared_state_delta": delta}));
    let added = (1..1_000).take_while(|seq| journal.add(&message(*seq, &content)).is_ok()).count();
    assert!((95..103).contains(&added), "{added} times 10 KiB were taken");
    // Nor does it grow by HELLOs, by numbers, or by blobs that do not open.
    let mut journal = Journal::within(Keep::Outline, 1024 * 1024);
    let sealed = (1..100_000).map(|seq| message(seq, "clw1:AAAA"));
    assert!(sealed.map(|message| journal.add(&message)).any(|added| added.is_err()));
    let mut journal = Journal::within(Keep::Outline, 1024 * 1024);
    let numbered = (1..100_000).map(|seq| late(2 * seq, &[2 * seq - 1, 2 * seq], "x"));
    assert!(numbered.map(|message| journal.add(&message)).any(|added| added.is_err()));
    let mut journal = Journal::within(Keep::Outline, 1024 * 1024);
    let hello = |seq| {
        let envelope =
            json!({"v": "lantern/0.1.1", "type": "HELLO", "agent_name": format!("{seq}")});
        message(seq, &envelope.to_string())
    };
    assert!(
        (1..100_000).map(hello).map(|message| journal.add(&message)).any(|added| added.is_err())
    );
}

#[test]
fn ten_thousand_threads_are_told_apart() {
    let mut all: Vec<Message> =
        (1..=10_000).map(|seq| assertion(seq, "a", &format!("claim {seq}"), 0.9)).collect();
    all.extend((1..=10_000).map(|seq| resolution(10_000 + seq, seq, "tool")));
    all.extend((1..=10_000).map(|seq| outcomes(20_000 + seq, seq, json!({seq.to_string(): true}))));
    let journal = journal(&all);
    let threads = journal.threads();
    assert_eq!(threads.len(), 10_000);
    assert!(threads.iter().all(|thread| thread.state == State::Fused && thread.messages == 3));
    assert_eq!(threads[9_999].headline, "claim 10000");
    let scores = journal.calibration();
    assert_eq!((scores.len(), scores[0].claims), (1, 10_000));
    assert!((scores[0].mean_loss + 0.9_f64.ln()).abs() < 1e-9);
}

/// References in circles, to oneself, to later messages, to nothing.
#[test]
fn hostile_references_come_to_something_finite() {
    let all = [
        said(1, "CHALLENGE", Some(2), "a", json!({"target_seq": 1})),
        said(2, "CHALLENGE", Some(1), "a", json!({"target_seq": 2})),
        said(3, "ASSERT", Some(3), "a", json!({"claim": "myself"})),
        said(4, "FUSE", Some(9_007_199_254_740_991), "a", json!({"outcomes": {"4": true}})),
        late(5, &[5, 5, 5, 0, u64::MAX], "x"),
        late(6, &[], &envelope("PROBE", Some(5), "a", json!({}))),
    ];
    let found: Vec<u64> = journal(&all).threads().iter().map(|thread| thread.thread).collect();
    // Under all numbers that a node can tell, 5 is one message.
    assert_eq!(found, [5, 1, 2, 3, 9_007_199_254_740_991]);
}

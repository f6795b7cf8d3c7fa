//! The rules of envelopes, one by one: each case is a sound envelope with one thing off.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::check::{check, check_text};
use super::envelope::{Body, Capability, Envelope, Hello};
use super::heard::Heard;
use super::verb::{Basis, Verb};

/// A sound body for each verb but HELLO, and whether it takes a thread.
fn sound() -> Vec<Value> {
    let envelope = |verb: &str, thread: Option<u64>, body: Value| {
        let mut envelope = json!({"v": "lantern/0.1.1", "type": verb, "from": "a", "body": body});
        if let Some(thread) = thread {
            envelope["thread"] = thread.into();
        }
        envelope
    };
    vec![
        hello(),
        envelope("PROBE", None, json!({"question": "why?"})),
        envelope("ASSERT", None, json!({"claim": "c", "falsifiable_by": "f"})),
        challenge(),
        envelope("RESOLVE", Some(1), json!({"observation": "o", "basis": "tool"})),
        envelope("FUSE", Some(1), json!({"synthesis": "s"})),
        envelope("SYNC", None, json!({})),
        envelope("SPARK", None, json!({"seed": "s", "why_now": "w", "smallest_test": "t"})),
        envelope("HARVEST", None, json!({"spark_seq": 3})),
        envelope("BURY", None, json!({"spark_seq": 3, "reason": "r"})),
    ]
}

fn hello() -> Value {
    json!({
        "v": "lantern/0.1.1", "type": "HELLO", "agent_name": "a", "capabilities": [],
        "attestation": {
            "agent_name": "self_attested", "provider": "self_attested", "model": "self_attested",
            "role": "self_attested", "capabilities": "self_attested",
        },
    })
}

fn challenge() -> Value {
    json!({
        "v": "lantern/0.1.1", "type": "CHALLENGE", "from": "a", "thread": 1,
        "body": {"target_seq": 1, "counter_claim": "cc", "confidence": 0.6, "test": "t"},
    })
}

fn with_verb(verb: Verb) -> Value {
    let is = |envelope: &Value| envelope["type"] == verb.word();
    sound().into_iter().find(is).expect("every verb has a sample")
}

/// Sets a field, given as `body.claim`; `None` takes it away.
fn set(mut envelope: Value, path: &str, value: Option<Value>) -> Value {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = if parent.is_empty() { &mut envelope } else { &mut envelope[parent] };
    let parent = parent.as_object_mut().expect("an object");
    match value {
        Some(value) => parent.insert(name.to_owned(), value),
        None => parent.remove(name),
    };
    envelope
}

fn problems(envelope: &Value) -> Vec<String> {
    check(envelope).iter().map(ToString::to_string).collect()
}

/// Exactly this one thing is wrong.
fn refused(envelope: &Value, problem: &str) {
    assert_eq!(problems(envelope), [problem], "{envelope}");
}

#[test]
fn what_is_sound_is_valid_and_is_read_by_others() {
    let all = sound();
    assert_eq!(all.len(), Verb::ALL.len());
    for envelope in all {
        assert_eq!(problems(&envelope), [""; 0], "{envelope}");
        assert!(Heard::read(&envelope.to_string()).is_some(), "{envelope}");
        let more = set(envelope, "news", Some(json!([1])));
        assert_eq!(problems(&more), [""; 0], "later versions may say more");
    }
}

#[test]
fn each_verb_needs_what_the_table_says() {
    for (verb, needed) in [
        (Verb::Hello, &["v", "type", "agent_name", "capabilities", "attestation"][..]),
        (Verb::Probe, &["v", "type", "from", "body", "body.question"]),
        (Verb::Assert, &["from", "body.claim", "body.falsifiable_by"]),
        (
            Verb::Challenge,
            &["thread", "body.target_seq", "body.counter_claim", "body.confidence", "body.test"],
        ),
        (Verb::Resolve, &["thread", "body.observation", "body.basis"]),
        (Verb::Fuse, &["thread", "body.synthesis"]),
        (Verb::Sync, &["from", "body"]),
        (Verb::Spark, &["body.seed", "body.why_now", "body.smallest_test"]),
        (Verb::Harvest, &["body.spark_seq"]),
        (Verb::Bury, &["body.spark_seq", "body.reason"]),
    ] {
        for path in needed {
            let problem = format!("`{path}` is missing");
            refused(&set(with_verb(verb), path, None), &problem);
            refused(&set(with_verb(verb), path, Some(Value::Null)), &problem);
        }
    }
}

#[test]
fn needed_texts_are_not_blank() {
    for (verb, paths) in [
        (Verb::Hello, &["agent_name"][..]),
        (Verb::Probe, &["body.question"]),
        (Verb::Assert, &["body.claim", "body.falsifiable_by"]),
        (Verb::Challenge, &["body.counter_claim", "body.test"]),
        (Verb::Resolve, &["body.observation"]),
        (Verb::Fuse, &["body.synthesis"]),
        (Verb::Spark, &["body.seed", "body.why_now", "body.smallest_test"]),
        (Verb::Bury, &["body.reason"]),
    ] {
        for path in paths {
            for blank in ["", "  ", "\n\t\u{a0}"] {
                let envelope = set(with_verb(verb), path, Some(blank.into()));
                refused(&envelope, &format!("`{path}` is blank"));
            }
            let envelope = set(with_verb(verb), path, Some(json!(["text"])));
            refused(&envelope, &format!("`{path}` has to be a text"));
        }
    }
    refused(&set(with_verb(Verb::Probe), "from", Some("".into())), "`from` is empty");
    refused(&set(with_verb(Verb::Probe), "from", Some(7.into())), "`from` has to be a text");
    refused(&set(with_verb(Verb::Probe), "intent", Some(7.into())), "`intent` has to be a text");
    refused(&set(hello(), "model", Some(7.into())), "`model` has to be a text");
}

#[test]
fn confidence_is_from_0_to_1() {
    for verb in [Verb::Assert, Verb::Challenge] {
        let with = |value: Value| set(with_verb(verb), "body.confidence", Some(value));
        for good in [json!(0), json!(1), json!(0.74), json!(1e-300), json!(-0.0)] {
            assert_eq!(problems(&with(good)), [""; 0]);
        }
        for bad in [json!(-0.01), json!(1.000_001), json!(7), json!(-1e300), json!("0.5")] {
            refused(&with(bad), "`body.confidence` has to be a number from 0 to 1");
        }
        refused(&with(json!(true)), "`body.confidence` has to be a number from 0 to 1");
    }
}

#[test]
fn numbers_of_messages_are_whole_and_below_2_to_the_53() {
    let is = "has to be the number of a message: a whole number from 1, below 2^53";
    for bad in [json!(0), json!(-1), json!(1.5), json!("1"), json!(1_u64 << 53), json!(u64::MAX)] {
        for (verb, path) in [
            (Verb::Challenge, "thread"),
            (Verb::Challenge, "body.target_seq"),
            (Verb::Sync, "thread"),
            (Verb::Assert, "thread"),
            (Verb::Assert, "reply_to"),
            (Verb::Bury, "body.spark_seq"),
        ] {
            let envelope = set(with_verb(verb), path, Some(bad.clone()));
            refused(&envelope, &format!("`{path}` {is}"));
        }
    }
    let long = json!((1_u64 << 53) - 1);
    for verb in [Verb::Resolve, Verb::Fuse, Verb::Sync, Verb::Assert, Verb::Probe] {
        assert_eq!(problems(&set(with_verb(verb), "thread", Some(long.clone()))), [""; 0]);
    }
}

#[test]
fn ideas_stand_beside_the_threads() {
    for verb in [Verb::Spark, Verb::Harvest, Verb::Bury] {
        let problem = format!("`thread` has no place in a {}", verb.word());
        refused(&set(with_verb(verb), "thread", Some(1.into())), &problem);
    }
}

#[test]
fn a_reply_names_the_message_that_its_body_names() {
    let envelope = set(challenge(), "reply_to", Some(1.into()));
    assert_eq!(problems(&envelope), [""; 0]);
    let problem = "`reply_to` and `body.target_seq` have to be the same";
    refused(&set(envelope, "reply_to", Some(2.into())), problem);
    let problem = "`reply_to` and `body.spark_seq` have to be the same";
    refused(&set(with_verb(Verb::Harvest), "reply_to", Some(2.into())), problem);
}

#[test]
fn a_resolution_rests_on_one_of_five() {
    for basis in Basis::ALL {
        let envelope = set(with_verb(Verb::Resolve), "body.basis", Some(basis.word().into()));
        assert_eq!(problems(&envelope), [""; 0]);
    }
    for bad in ["guess", "Tool", "", " tool"] {
        let envelope = set(with_verb(Verb::Resolve), "body.basis", Some(bad.into()));
        refused(&envelope, "`body.basis` has to be one of tool, artifact, human, consensus, stale");
    }
}

#[test]
fn a_fuse_says_what_became_of_which_claim() {
    let with = |path, value: Value| set(with_verb(Verb::Fuse), path, Some(value));
    let envelope = with("body.outcomes", json!({"7": true, "9007199254740991": false}));
    assert_eq!(problems(&envelope), [""; 0]);
    refused(&with("body.outcomes", json!({"7": 1})), "`body.outcomes.7` has to be true or false");
    for bad in ["x", "-1", "+1", "0", "1.0", "", " 1", "9007199254740992"] {
        let problem = format!("`body.outcomes`: `{bad}` is no number of a message");
        refused(&with("body.outcomes", json!({bad: true})), &problem);
    }
    let problem = "`body.outcomes` has to be an object of numbers and true or false";
    refused(&with("body.outcomes", json!([true])), problem);
    refused(&with("body.split", json!("no")), "`body.split` has to be true or false");
    for delta in [json!(false), json!(0), json!(""), json!([]), json!({"a": null})] {
        assert_eq!(problems(&with("body.shared_state_delta", delta)), [""; 0]);
    }
    let problem = "`body.shared_state_delta` is null: leave it out";
    refused(&with("body.shared_state_delta", Value::Null), problem);
}

#[test]
fn nobody_vouches_for_a_hello() {
    let with = |path, value: Value| set(hello(), path, Some(value));
    let problem = "`attestation.role` has to be `self_attested`";
    refused(&with("attestation.role", json!("verified")), problem);
    refused(&set(hello(), "attestation.role", None), problem);
    refused(&with("attestation", json!("self_attested")), "`attestation` has to be an object");
    refused(&with("capabilities", json!({})), "`capabilities` has to be a list");
    refused(&with("capabilities", json!(["x"])), "`capabilities[0]` has to be an object");
    let envelope = with("capabilities", json!([{"name": "x"}, {"name": " "}]));
    refused(&envelope, "`capabilities[1].name` is blank");
    let envelope = with("capabilities", json!([{"name": "x", "falsifiable_by": 7}]));
    refused(&envelope, "`capabilities[0].falsifiable_by` has to be a text");
}

#[test]
fn all_that_is_wrong_is_listed_at_once() {
    let envelope = json!({
        "v": "torch/1", "type": "CHALLENGE", "from": "", "intent": 1, "thread": 0,
        "body": {"counter_claim": " ", "confidence": 7, "target_seq": "1"},
    });
    assert_eq!(problems(&envelope).len(), 8, "{:?}", problems(&envelope));
    let unknown = json!({"v": "lantern/0.1.1", "type": "SHOUT"});
    let verbs = "HELLO, PROBE, ASSERT, CHALLENGE, RESOLVE, FUSE, SYNC, SPARK, HARVEST, BURY";
    refused(&unknown, &format!("`type` has to be one of {verbs}"));
    for other in [json!([]), json!("x"), Value::Null, json!(7)] {
        refused(&other, "an envelope is a JSON object, this is not one");
    }
    for text in ["", "{", "NaN", "{\"confidence\":1e999}", &"[".repeat(100_000)] {
        let found = check_text(text);
        assert!(found.len() == 1 && found[0].to_string().starts_with("it is not JSON"));
    }
}

#[test]
fn a_file_full_of_problems_is_not_repeated_in_full() {
    let outcomes: BTreeMap<String, u8> = (0..50_000).map(|i| (format!("x{i}"), 0)).collect();
    let envelope = set(with_verb(Verb::Fuse), "body.outcomes", Some(json!(outcomes)));
    let found = problems(&envelope);
    assert_eq!(found.len(), crate::limits::PROBLEMS_MAX + 1);
    assert_eq!(found.last().map(String::as_str), Some("and 99900 more"));
    let long =
        set(with_verb(Verb::Fuse), "body.outcomes", Some(json!({"9".repeat(100_000): true})));
    assert!(problems(&long)[0].len() < 100);
}

#[test]
fn what_is_built_is_what_the_table_says() {
    let sent = |envelope: Envelope| -> Value {
        serde_json::from_str(&envelope.ready().expect("sound")).expect("JSON")
    };
    let text = |text: &str| Some(text.to_owned());
    let envelope = |thread, intent, body| Envelope { from: "a".to_owned(), intent, thread, body };
    let body = Body::Challenge {
        target_seq: Some(8),
        counter_claim: text("cc"),
        confidence: Some(0.6),
        test: text("t"),
    };
    assert_eq!(
        sent(envelope(Some(7), text("because"), body)),
        json!({
            "v": "lantern/0.1.1", "type": "CHALLENGE", "thread": 7, "reply_to": 8, "from": "a",
            "intent": "because",
            "body": {"target_seq": 8, "counter_claim": "cc", "confidence": 0.6, "test": "t"},
        })
    );
    let body = Body::Assert { claim: text("c"), falsifiable_by: text("f"), confidence: None };
    assert_eq!(
        sent(envelope(None, None, body)),
        json!({"v": "lantern/0.1.1", "type": "ASSERT", "from": "a",
            "body": {"claim": "c", "falsifiable_by": "f"}})
    );
    let body = Body::Fuse {
        synthesis: text("s"),
        split: false,
        shared_state_delta: Some(json!({"gate": 1})),
        outcomes: BTreeMap::from([(7, true), (8, false)]),
    };
    assert_eq!(
        sent(envelope(Some(7), None, body))["body"],
        json!({"synthesis": "s", "split": false, "shared_state_delta": {"gate": 1},
            "outcomes": {"7": true, "8": false}})
    );
    let body = Body::Harvest { spark_seq: Some(3), becomes: None };
    assert_eq!(
        sent(envelope(None, None, body)),
        json!({"v": "lantern/0.1.1", "type": "HARVEST", "reply_to": 3, "from": "a",
            "body": {"spark_seq": 3}})
    );
    let capability = Capability { name: "x".into(), falsifiable_by: text("y") };
    let said = Hello {
        agent_name: "a".into(),
        provider: None,
        model: text("m"),
        role: None,
        capabilities: vec![capability],
    };
    let sent: Value = serde_json::from_str(&said.ready().expect("sound")).expect("JSON");
    let expect = set(hello(), "model", Some("m".into()));
    let abilities = json!([{"name": "x", "falsifiable_by": "y"}]);
    assert_eq!(sent, set(expect, "capabilities", Some(abilities)));
}

#[test]
fn what_is_not_sound_is_not_built() {
    let body = Body::Challenge {
        target_seq: None,
        counter_claim: Some(" ".into()),
        confidence: Some(f64::NAN),
        test: None,
    };
    let envelope = Envelope { from: String::new(), intent: None, thread: None, body };
    let found = envelope.ready().expect_err("five things are wrong");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "`from` is empty",
            "`thread` is missing",
            "`body.target_seq` is missing",
            "`body.counter_claim` is blank",
            "`body.confidence` is missing",
            "`body.test` is missing",
        ]
    );
}

//! All problems of an envelope, if it has any.

use std::fmt;

use serde_json::{Map, Value};

use crate::limits::PROBLEMS_MAX;
use crate::verb::{Basis, Threading, Verb};
use crate::{SELF_ATTESTED, VERSIONS, number, number_of_name};

/// Something that is wrong with an envelope, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    /// It is no JSON at all.
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        Self(format!("it is not JSON: {error}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Confidence,
    Flag,
    Basis,
    Delta,
    Outcomes,
    Anything,
}

type Fields = &'static [(&'static str, Kind)];

/// The fields of each body: those that it needs, and those that it may have.
fn fields(verb: Verb) -> (Fields, Fields) {
    match verb {
        Verb::Hello => (&[], &[]),
        Verb::Probe => (&[("question", Kind::Text)], &[]),
        Verb::Assert => (
            &[("claim", Kind::Text), ("falsifiable_by", Kind::Text)],
            &[("confidence", Kind::Confidence)],
        ),
        Verb::Challenge => (
            &[
                ("target_seq", Kind::Number),
                ("counter_claim", Kind::Text),
                ("confidence", Kind::Confidence),
                ("test", Kind::Text),
            ],
            &[],
        ),
        Verb::Resolve => (&[("observation", Kind::Text), ("basis", Kind::Basis)], &[]),
        Verb::Fuse => (
            &[("synthesis", Kind::Text)],
            &[
                ("split", Kind::Flag),
                ("shared_state_delta", Kind::Delta),
                ("outcomes", Kind::Outcomes),
            ],
        ),
        Verb::Sync => (&[], &[("state_hash", Kind::Text), ("diff", Kind::Anything)]),
        Verb::Spark => {
            (&[("seed", Kind::Text), ("why_now", Kind::Text), ("smallest_test", Kind::Text)], &[])
        }
        Verb::Harvest => (&[("spark_seq", Kind::Number)], &[("becomes", Kind::Anything)]),
        Verb::Bury => (&[("spark_seq", Kind::Number), ("reason", Kind::Text)], &[]),
    }
}

/// Everything that is wrong with a text that is to be an envelope; nothing = it may be sent.
pub fn check_text(text: &str) -> Vec<Problem> {
    match serde_json::from_str(text) {
        Ok(value) => check(&value),
        Err(error) => vec![Problem::not_json(&error)],
    }
}

/// The same for parsed JSON.
pub fn check(envelope: &Value) -> Vec<Problem> {
    let mut found = Found::default();
    match envelope.as_object() {
        Some(object) => found.envelope(object),
        None => found.add("an envelope is a JSON object, this is not one"),
    }
    found.finish()
}

#[derive(Debug, Default)]
struct Found {
    problems: Vec<Problem>,
    more: usize,
}

impl Found {
    fn add(&mut self, problem: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem(problem.into()));
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Problem> {
        if self.more > 0 {
            self.problems.push(Problem(format!("and {} more", self.more)));
        }
        self.problems
    }

    fn envelope(&mut self, envelope: &Map<String, Value>) {
        match present(envelope, "v") {
            None => self.missing("v"),
            Some(Value::String(v)) if v.starts_with(VERSIONS) => {}
            Some(_) => self.add(format!("`v` has to begin with `{VERSIONS}`")),
        }
        let Some(verb) = present(envelope, "type") else {
            self.missing("type");
            return;
        };
        match verb.as_str().and_then(Verb::of_word) {
            Some(Verb::Hello) => self.hello(envelope),
            Some(verb) => self.message(verb, envelope),
            None => self.add(format!("`type` has to be one of {}", words(Verb::ALL, Verb::word))),
        }
    }

    fn hello(&mut self, hello: &Map<String, Value>) {
        self.needed("", "agent_name", hello, Kind::Text);
        for name in ["provider", "model", "role"] {
            self.optional("", name, hello, Kind::Text);
        }
        match present(hello, "capabilities") {
            None => self.missing("capabilities"),
            Some(Value::Array(all)) => {
                for (i, capability) in all.iter().enumerate() {
                    let path = format!("capabilities[{i}]");
                    let Some(capability) = capability.as_object() else {
                        self.add(format!("`{path}` has to be an object"));
                        continue;
                    };
                    let path = format!("{path}.");
                    self.needed(&path, "name", capability, Kind::Text);
                    self.optional(&path, "falsifiable_by", capability, Kind::Text);
                }
            }
            Some(_) => self.add("`capabilities` has to be a list"),
        }
        match present(hello, "attestation") {
            None => self.missing("attestation"),
            Some(Value::Object(by)) => {
                for name in ["agent_name", "provider", "model", "role", "capabilities"] {
                    if by.get(name).and_then(Value::as_str) != Some(SELF_ATTESTED) {
                        self.add(format!("`attestation.{name}` has to be `{SELF_ATTESTED}`"));
                    }
                }
            }
            Some(_) => self.add("`attestation` has to be an object"),
        }
    }

    fn message(&mut self, verb: Verb, message: &Map<String, Value>) {
        match present(message, "from") {
            None => self.missing("from"),
            Some(Value::String(from)) if from.is_empty() => self.add("`from` is empty"),
            Some(Value::String(_)) => {}
            Some(_) => self.add("`from` has to be a text"),
        }
        self.optional("", "intent", message, Kind::Text);
        self.optional("", "reply_to", message, Kind::Number);
        match verb.threading() {
            Threading::Needed => self.needed("", "thread", message, Kind::Number),
            Threading::Opens | Threading::Optional => {
                self.optional("", "thread", message, Kind::Number);
            }
            Threading::None => {
                if present(message, "thread").is_some() {
                    self.add(format!("`thread` has no place in a {}", verb.word()));
                }
            }
        }
        match present(message, "body") {
            None => self.missing("body"),
            Some(Value::Object(body)) => {
                self.body(verb, body);
                self.answers(message, body);
            }
            Some(_) => self.add("`body` has to be an object"),
        }
    }

    fn body(&mut self, verb: Verb, body: &Map<String, Value>) {
        let (needed, optional) = fields(verb);
        for (name, kind) in needed {
            self.needed("body.", name, body, *kind);
        }
        for (name, kind) in optional {
            self.optional("body.", name, body, *kind);
        }
        // Without a delta the field is left out; `null` could mean that all is to be forgotten.
        if verb == Verb::Fuse && body.get("shared_state_delta").is_some_and(Value::is_null) {
            self.add("`body.shared_state_delta` is null: leave it out");
        }
    }

    /// `reply_to` and the body name one message.
    fn answers(&mut self, envelope: &Map<String, Value>, body: &Map<String, Value>) {
        let Some(reply_to) = envelope.get("reply_to").and_then(number) else { return };
        for name in ["target_seq", "spark_seq"] {
            if body.get(name).and_then(number).is_some_and(|named| named != reply_to) {
                self.add(format!("`reply_to` and `body.{name}` have to be the same"));
            }
        }
    }

    fn missing(&mut self, name: &str) {
        self.add(format!("`{name}` is missing"));
    }

    fn needed(&mut self, path: &str, name: &str, of: &Map<String, Value>, kind: Kind) {
        match present(of, name) {
            None => self.missing(&format!("{path}{name}")),
            Some(Value::String(text)) if matches!(kind, Kind::Text) && text.trim().is_empty() => {
                self.add(format!("`{path}{name}` is blank"));
            }
            Some(value) => self.value(path, name, value, kind),
        }
    }

    fn optional(&mut self, path: &str, name: &str, of: &Map<String, Value>, kind: Kind) {
        if let Some(value) = present(of, name) {
            self.value(path, name, value, kind);
        }
    }

    fn value(&mut self, path: &str, name: &str, value: &Value, kind: Kind) {
        let wanted = match kind {
            Kind::Text => (!value.is_string()).then(|| "a text".into()),
            Kind::Number => number(value)
                .is_none()
                .then(|| "the number of a message: a whole number from 1, below 2^53".into()),
            Kind::Confidence => {
                let is_one = value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number));
                (!is_one).then(|| "a number from 0 to 1".into())
            }
            Kind::Flag => (!value.is_boolean()).then(|| "true or false".into()),
            Kind::Basis => {
                let is_one = value.as_str().is_some_and(|word| Basis::of_word(word).is_some());
                (!is_one).then(|| format!("one of {}", words(Basis::ALL, Basis::word)))
            }
            Kind::Outcomes => return self.outcomes(path, name, value),
            Kind::Delta | Kind::Anything => None,
        };
        if let Some(wanted) = wanted {
            self.add(format!("`{path}{name}` has to be {wanted}"));
        }
    }

    fn outcomes(&mut self, path: &str, name: &str, value: &Value) {
        let Some(outcomes) = value.as_object() else {
            self.add(format!("`{path}{name}` has to be an object of numbers and true or false"));
            return;
        };
        for (seq, held) in outcomes {
            if number_of_name(seq).is_none() {
                self.add(format!("`{path}{name}`: `{}` is no number of a message", short(seq)));
            }
            if !held.is_boolean() {
                self.add(format!("`{path}{name}.{}` has to be true or false", short(seq)));
            }
        }
    }
}

/// Leaving a field out and `null` are the same.
fn present<'a>(of: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    of.get(name).filter(|value| !value.is_null())
}

fn words<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> String {
    all.iter().map(|one| word(*one)).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(32).collect()
}

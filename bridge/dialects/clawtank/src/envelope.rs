//! The envelope: a client's frame, and those of the node.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::{
    fields::At,
    ids,
    limits::{ID_BYTES_MAX, MESSAGE_BYTES_MAX},
    problem::Problem,
    times,
};

/// Which frame an answer is to: as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Related {
    /// Its id, as it was sent.
    pub(crate) id: Option<String>,
    /// The client's own word for it.
    own: Option<String>,
}

impl Related {
    /// What the answer carries, so that the client knows it.
    pub(crate) fn correlation(&self) -> Option<&str> {
        self.own.as_deref().or(self.id.as_deref())
    }
}

/// A frame of a client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) related: Related,
    pub(crate) kind: String,
    data: Value,
    metadata: Value,
}

/// A frame that is none.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) related: Related,
    pub(crate) problem: Box<Problem>,
}

/// This one may lack id and time.
pub(crate) const CAPABILITIES: &str = "connection.capabilities";

impl Request {
    pub(crate) fn parse(text: &str) -> Result<Request, Bad> {
        let bad = |related: &Related, problem: Problem| Bad {
            related: related.clone(),
            problem: Box::new(problem),
        };
        if text.len() > MESSAGE_BYTES_MAX {
            let problem =
                Problem::field("$", format!("must have at most {MESSAGE_BYTES_MAX} bytes"));
            return Err(bad(&Related::default(), problem));
        }
        let mut frame: Value = serde_json::from_str(text).map_err(|error| {
            bad(&Related::default(), Problem::field("$", format!("is no JSON: {error}")))
        })?;
        let short = |value: &Value| {
            value.as_str().filter(|text| text.len() <= ID_BYTES_MAX).map(str::to_owned)
        };
        let related =
            Related { id: short(&frame["id"]), own: short(&frame["metadata"]["correlation_id"]) };
        match checked(&frame) {
            Ok(kind) => Ok(Request {
                related,
                kind,
                data: frame["data"].take(),
                metadata: frame["metadata"].take(),
            }),
            Err(problem) => Err(bad(&related, problem)),
        }
    }

    pub(crate) fn data(&self) -> At<'_> {
        At::new("data", &self.data)
    }

    pub(crate) fn metadata(&self) -> At<'_> {
        At::new("metadata", &self.metadata)
    }
}

/// The type of a frame that is an envelope.
fn checked(frame: &Value) -> Result<String, Problem> {
    if !frame.is_object() {
        return Err(Problem::field("$", "must be an object"));
    }
    let field = |name: &str| At::new(name, frame.get(name).unwrap_or(&Value::Null));
    let kind = field("type").required()?.text(ID_BYTES_MAX)?.unwrap_or_default();
    if !is_kind(kind) {
        return Err(field("type").bad("must be two words with a dot, such as chat.human_message"));
    }
    if kind != CAPABILITIES {
        field("id").required()?.id()?;
        field("timestamp").required()?.time()?;
    }
    field("data").required()?.object()?;
    let metadata = field("metadata");
    metadata.object()?;
    metadata.get("correlation_id").text(ID_BYTES_MAX)?;
    metadata.get("priority").one_of(&["low", "normal", "high", "urgent"])?;
    metadata.get("retry_count").whole(u64::MAX)?;
    let expires = metadata.get("expires_at");
    if expires.time()?.is_some_and(|at| at < times::now_ms()) {
        return Err(expires.bad("expired"));
    }
    Ok(kind.to_owned())
}

/// `^[a-z_]+\.[a-z_]+$`
pub(crate) fn is_kind(kind: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    kind.split_once('.').is_some_and(|(one, other)| is_word(one) && is_word(other))
}

/// A frame of the node, until it is written.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    id: [u8; 16],
    kind: &'static str,
    at_ms: u64,
    data: Value,
    metadata: Map<String, Value>,
}

impl Told {
    /// Something that is derived from no entry.
    pub(crate) fn fresh(kind: &'static str, data: Value) -> Told {
        Told::of(bridge::ids::random(), kind, times::now_ms(), data)
    }

    pub(crate) fn of(id: [u8; 16], kind: &'static str, at_ms: u64, data: Value) -> Told {
        Told { id, kind, at_ms, data, metadata: Map::new() }
    }

    /// With one more thing beside the data.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Told {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// The same, if it is so.
    pub(crate) fn noting(self, name: &str, is_so: bool) -> Told {
        if is_so { self.with(name, true) } else { self }
    }

    /// As the answer to a frame.
    pub(crate) fn answering(self, related: &Related) -> Told {
        match related.correlation() {
            Some(correlation) => self.with("correlation_id", correlation),
            None => self,
        }
    }

    pub(crate) fn frame(self, form: ids::Form) -> Bytes {
        Bytes::from(self.text(form))
    }

    pub(crate) fn text(self, form: ids::Form) -> String {
        let mut frame = json!({
            "id": form.id("msg", self.id),
            "type": self.kind,
            "timestamp": times::text(self.at_ms),
            "data": self.data,
        });
        if !self.metadata.is_empty() {
            frame["metadata"] = Value::Object(self.metadata);
        }
        frame.to_string()
    }
}

/// A text of at most so many characters, and whether it was cut.
pub(crate) fn cut(text: &str, max: usize) -> (String, bool) {
    match text.char_indices().nth(max) {
        None => (text.to_owned(), false),
        Some(_) => (text.chars().take(max - 1).chain(['…']).collect(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(change: impl FnOnce(&mut Value)) -> String {
        let mut frame = json!({
            "id": format!("msg_{}", ids::text([7; 16])),
            "type": "chat.human_message",
            "timestamp": "2026-02-17T21:03:00.123Z",
            "data": {},
            "metadata": {"correlation_id": "mine"},
        });
        change(&mut frame);
        frame.to_string()
    }

    #[test]
    fn a_frame_that_is_none_is_refused_with_its_field_and_the_id_that_it_has() {
        let sound = Request::parse(&frame(|_| {})).unwrap();
        assert_eq!(sound.related.correlation(), Some("mine"));
        let bad = |change: fn(&mut Value)| {
            let Bad { related, problem } = Request::parse(&frame(change)).unwrap_err();
            let data = problem.data("e", &related);
            assert_eq!(data["error_code"], "VALIDATION_FAILED");
            (data["details"]["field"].as_str().unwrap().to_owned(), related)
        };
        let (field, related) = bad(|frame| frame["data"] = json!([]));
        assert_eq!((&*field, related.id.is_some()), ("data", true));
        assert_eq!(bad(|frame| frame["id"] = json!("msg_short")).0, "id");
        assert_eq!(bad(|frame| frame["type"] = json!("hello")).0, "type");
        assert_eq!(bad(|frame| frame["timestamp"] = json!("now")).0, "timestamp");
        assert_eq!(bad(|frame| frame["timestamp"] = Value::Null).0, "timestamp");
        let past =
            |frame: &mut Value| frame["metadata"]["expires_at"] = json!("2001-01-01T00:00:00Z");
        assert_eq!(bad(past).0, "metadata.expires_at");
        for text in ["{", "[]", "7"] {
            assert!(Request::parse(text).is_err(), "{text}");
        }
        let capabilities = r#"{"type":"connection.capabilities","data":{}}"#;
        assert!(Request::parse(capabilities).is_ok());
    }

    #[test]
    fn a_text_that_is_cut_ends_so() {
        assert_eq!(cut("abc", 3), ("abc".to_owned(), false));
        assert_eq!(cut("abcd", 3), ("ab…".to_owned(), true));
    }
}

//! Envelopes of others, read leniently.
//!
//! A content is a LANTERN message if it is a JSON object whose `v` begins with `lantern/`, whose `type` is a
//! verb, and whose other top fields have the right types. A missing or malformed field
//! of a body is absent: it does not make the rest unsaid.

use serde_json::{Map, Value};

use crate::envelope::Capability;
use crate::verb::{Basis, Verb};
use crate::{VERSIONS, number, number_of_name};

/// A LANTERN message.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An agent's introduction of itself.
    Hello(Introduction),
    /// Anything else.
    Said(Said),
}

/// A HELLO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// The agent's name.
    pub agent_name: String,
    /// Its maker.
    pub provider: Option<String>,
    /// The model that it is.
    pub model: Option<String>,
    /// Its part in the room.
    pub role: Option<String>,
    /// Its abilities, as it states them.
    pub capabilities: Vec<Capability>,
}

/// Anything but a HELLO.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Its `type`, not [`Verb::Hello`].
    pub verb: Verb,
    /// A number of the message that opened its thread.
    pub thread: Option<u64>,
    /// The agent's name.
    pub from: String,
    /// Why it is said.
    pub intent: Option<String>,
    body: Map<String, Value>,
}

impl Heard {
    /// `None` if it is none, or does not parse.
    pub fn read(content: &str) -> Option<Heard> {
        // Most messages are not JSON: they need not be tried.
        if !content.trim_start().starts_with('{') {
            return None;
        }
        let Ok(Value::Object(mut envelope)) = serde_json::from_str(content) else { return None };
        if !envelope.get("v")?.as_str()?.starts_with(VERSIONS) {
            return None;
        }
        let verb = Verb::of_word(envelope.get("type")?.as_str()?)?;
        if verb == Verb::Hello {
            return Introduction::read(&envelope).map(Heard::Hello);
        }
        let body = match envelope.remove("body") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(body)) => body,
            Some(_) => return None,
        };
        // Its place has to be clear; the body names the answered message again.
        optional(&envelope, "reply_to", number)?;
        Some(Heard::Said(Said {
            verb,
            thread: optional(&envelope, "thread", number)?,
            from: text(envelope.get("from")?)?,
            intent: optional(&envelope, "intent", text)?,
            body,
        }))
    }
}

impl Introduction {
    fn read(hello: &Map<String, Value>) -> Option<Self> {
        let capability = |capability: &Value| {
            let name = text(capability.get("name")?)?;
            let falsifiable_by = capability.get("falsifiable_by").and_then(text);
            Some(Capability { name, falsifiable_by })
        };
        let capabilities = hello.get("capabilities").and_then(Value::as_array);
        Some(Self {
            agent_name: text(hello.get("agent_name")?)?,
            provider: optional(hello, "provider", text)?,
            model: optional(hello, "model", text)?,
            role: optional(hello, "role", text)?,
            capabilities: capabilities.into_iter().flatten().filter_map(capability).collect(),
        })
    }
}

impl Said {
    /// A text of the body.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name)?.as_str()
    }

    /// A number of a message in the body.
    pub fn number(&self, name: &str) -> Option<u64> {
        number(self.body.get(name)?)
    }

    /// How sure the agent is; may be anything.
    pub fn confidence(&self) -> Option<f64> {
        self.body.get("confidence")?.as_f64()
    }

    /// The grounds of a resolution.
    pub fn basis(&self) -> Option<Basis> {
        Basis::of_word(self.text("basis")?)
    }

    /// The addition of a FUSE to the shared state.
    pub fn delta(&self) -> Option<&Value> {
        self.body.get("shared_state_delta").filter(|delta| !delta.is_null())
    }

    /// Which claims held, by a number of the message that made them: rising.
    pub fn outcomes(&self) -> Vec<(u64, bool)> {
        let outcomes = self.body.get("outcomes").and_then(Value::as_object);
        let read = |(name, held): (&String, &Value)| Some((number_of_name(name)?, held.as_bool()?));
        let mut outcomes: Vec<_> = outcomes.into_iter().flatten().filter_map(read).collect();
        outcomes.sort_unstable();
        outcomes
    }

    /// All of the body, as it came.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// `None` if it is there and is something else.
#[expect(clippy::option_option, reason = "absent is not wrong")]
fn optional<T>(
    of: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<Option<T>> {
    match of.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(content: &str) -> Said {
        match Heard::read(content) {
            Some(Heard::Said(said)) => said,
            other => panic!("{content}: {other:?}"),
        }
    }

    #[test]
    fn any_version_that_begins_alike_is_read() {
        for v in ["lantern/0.1.1", "lantern/0.2", "lantern/", "lantern/9 from the future"] {
            let probe = said(&format!(
                r#"{{"v":"{v}","type":"PROBE","from":"a","body":{{"question":"q"}},"new":1}}"#
            ));
            assert_eq!((probe.verb, probe.text("question")), (Verb::Probe, Some("q")));
        }
        for v in ["\"lantern\"", "\"Lantern/0.1.1\"", "\" lantern/0.1.1\"", "1", "null"] {
            let content = format!(r#"{{"v":{v},"type":"PROBE","from":"a","body":{{}}}}"#);
            assert_eq!(Heard::read(&content), None, "{v}");
        }
    }

    #[test]
    fn what_does_not_parse_is_ignored() {
        let deep = "[".repeat(200_000);
        let nested = format!(
            r#"{{"v":"lantern/0.1.1","type":"FUSE","from":"a","body":{{"shared_state_delta":{}1{}}}}}"#,
            "[".repeat(500),
            "]".repeat(500)
        );
        for content in [
            "",
            "hello",
            "{",
            "[]",
            "null",
            "\"lantern/0.1.1\"",
            r#"{"type":"PROBE","from":"a","body":{}}"#,
            r#"{"v":"lantern/0.1.1","from":"a","body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"probe","from":"a","body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":7,"from":"a","body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":7,"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","body":[]}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","intent":[],"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","thread":"1","body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","thread":0,"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","thread":-1,"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","thread":1.5,"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","thread":9007199254740992,"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"PROBE","from":"a","reply_to":{},"body":{}}"#,
            r#"{"v":"lantern/0.1.1","type":"ASSERT","from":"a","body":{"confidence":1e999}}"#,
            r#"{"v":"lantern/0.1.1","type":"ASSERT","from":"a","body":{"confidence":NaN}}"#,
            r#"{"v":"lantern/0.1.1","type":"HELLO"}"#,
            r#"{"v":"lantern/0.1.1","type":"HELLO","agent_name":1}"#,
            r#"{"v":"lantern/0.1.1","type":"HELLO","agent_name":"a","model":1}"#,
            &deep,
            &nested,
        ] {
            let shown: String = content.chars().take(80).collect();
            assert_eq!(Heard::read(content), None, "{shown}");
        }
    }

    #[test]
    fn what_is_off_in_a_body_is_absent_and_no_more() {
        let fuse = said(
            r#"{"v":"lantern/0.1.1","type":"FUSE","thread":1,"reply_to":null,"intent":null,"from":"","body":{
                "synthesis":7,"split":"yes","shared_state_delta":null,"basis":"guess","confidence":"0.5",
                "outcomes":{"3":true,"1":false,"x":true,"2":1,"-4":true,"+5":true,"0":true,"1.0":true,
                "99999999999999999999":true,"":true}}}"#,
        );
        assert_eq!((fuse.thread, fuse.intent.as_deref(), &*fuse.from), (Some(1), None, ""));
        assert_eq!((fuse.text("synthesis"), fuse.delta(), fuse.basis()), (None, None, None));
        assert_eq!(fuse.confidence(), None);
        assert_eq!(fuse.outcomes(), [(1, false), (3, true)]);
        let fuse =
            said(r#"{"v":"lantern/0.1.1","type":"FUSE","from":"a","body":{"outcomes":[1]}}"#);
        assert_eq!((fuse.outcomes(), fuse.thread), (vec![], None));
        let resolution = said(r#"{"v":"lantern/0.1.1","type":"RESOLVE","from":"a"}"#);
        assert_eq!((resolution.basis(), resolution.body().len()), (None, 0));
        let claim =
            said(r#"{"v":"lantern/x","type":"ASSERT","from":"a","body":{"confidence":-7e300}}"#);
        assert_eq!(claim.confidence(), Some(-7e300));
    }

    #[test]
    fn a_hello_tells_what_it_can() {
        let content = r#"{"v":"lantern/0.1.1","type":"HELLO","agent_name":"a","model":"m","capabilities":
            [{"name":"x","falsifiable_by":"y"},{"name":"z"},{"no":"name"},"text",{"name":1}]}"#;
        let Some(Heard::Hello(hello)) = Heard::read(content) else { panic!("no hello") };
        assert_eq!(
            (&*hello.agent_name, hello.model.as_deref(), hello.role),
            ("a", Some("m"), None)
        );
        let capabilities = hello.capabilities.iter();
        let capabilities: Vec<_> =
            capabilities.map(|one| (&*one.name, one.falsifiable_by.as_deref())).collect();
        assert_eq!(capabilities, [("x", Some("y")), ("z", None)]);
        let content = r#"{"v":"lantern/0.1.1","type":"HELLO","agent_name":"a","capabilities":7}"#;
        assert!(matches!(Heard::read(content), Some(Heard::Hello(_))));
    }
}

//! The end of a tool's call, as a model reads it.

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock},
};
use serde_json::{Map, Value, json};

/// A result, or a no.
pub(crate) type Outcome = Result<Map<String, Value>, No>;

/// Why a tool did not do what it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum No {
    /// An argument is wrong. The text begins with its name.
    Argument { text: String, field: &'static str },
    /// It may not.
    Forbidden { rule: String, text: String, session: Option<String>, more: Map<String, Value> },
    /// It cannot, for now or at all.
    Error { text: String, more: Map<String, Value> },
    /// The agent cannot be: an answer of the protocol, and a status of HTTP.
    Agent { text: String, why: NoAgent },
}

/// Why there is no agent to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAgent {
    /// Its id is another key's.
    Taken,
    /// The key has as many as it may.
    TooMany,
    /// The key is not valid any more.
    NoKey,
}

impl No {
    pub(crate) fn argument(field: &'static str, must: &str) -> No {
        No::Argument { text: format!("`{field}` {must}"), field }
    }

    pub(crate) fn error(text: impl Into<String>) -> No {
        No::Error { text: text.into(), more: Map::new() }
    }

    pub(crate) fn forbidden(rule: &str, text: impl Into<String>) -> No {
        No::Forbidden { rule: rule.to_owned(), text: text.into(), session: None, more: Map::new() }
    }

    /// Whether something was not found: others are suggested.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, No::Error { more, .. } if more.contains_key("suggestions"))
    }

    /// Whether it says that a name means nothing, or too much: so, and not that something failed.
    pub(crate) fn is_of_a_name(&self) -> bool {
        match self {
            No::Error { more, .. } => !more.contains_key("code"),
            // Of a room: others of its key are in it.
            No::Forbidden { rule, .. } => matches!(&**rule, "visibility" | "room_access"),
            No::Argument { .. } | No::Agent { .. } => false,
        }
    }

    /// With one more field, if it is none of an argument.
    pub(crate) fn with(mut self, name: &str, value: Value) -> No {
        match &mut self {
            No::Error { more, .. } | No::Forbidden { more, .. } => {
                more.insert(name.to_owned(), value);
            }
            No::Argument { .. } | No::Agent { .. } => {}
        }
        self
    }

    /// As a sentence.
    pub(crate) fn text(self) -> String {
        match self {
            No::Argument { text, .. }
            | No::Forbidden { text, .. }
            | No::Error { text, .. }
            | No::Agent { text, .. } => text,
        }
    }

    /// As the fields of a result; of a protocol's error the error.
    pub(crate) fn fields(self) -> Result<Map<String, Value>, (String, NoAgent)> {
        let fields = match self {
            No::Argument { text, field } => {
                json!({"status": "error", "error": text, "field": field})
            }
            No::Forbidden { rule, text, session, more } => {
                let mut fields = json!({"status": "forbidden", "error": text, "rule": rule});
                if let Some(session) = session {
                    fields["sessionKey"] = json!(session);
                }
                for (name, value) in more {
                    fields[name] = value;
                }
                fields
            }
            No::Error { text, more } => {
                let mut fields = json!({"status": "error", "error": text});
                for (name, value) in more {
                    fields[name] = value;
                }
                fields
            }
            No::Agent { text, why } => return Err((text, why)),
        };
        Ok(object(fields))
    }
}

/// The fields of a value that is an object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// A result of MCP. `is_wrong`: the arguments were.
pub(crate) fn result(fields: Map<String, Value>, is_wrong: bool) -> CallToolResult {
    let value = Value::Object(fields);
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result.is_error = is_wrong.then_some(true);
    result
}

/// An error of the protocol.
pub(crate) fn error_of(text: String, why: NoAgent) -> ErrorData {
    let code = match why {
        NoAgent::Taken => 1,
        NoAgent::TooMany => 2,
        NoAgent::NoKey => 3,
    };
    ErrorData::new(rmcp::model::ErrorCode(code), text, None)
}

/// The end of a call: the fields of its result, and whether its arguments were wrong. An error: there is no agent to do it.
pub(crate) type Ended = Result<(Map<String, Value>, bool), (String, NoAgent)>;

//! Frames: a request's, and those of answers and events.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::{
    limits::ID_BYTES_MAX,
    outcome::{No, Outcome},
};

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// A frame that is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// The request's, if it can be told.
    pub(crate) id: String,
    pub(crate) no: No,
}

impl Request {
    pub(crate) fn parse(text: &str) -> Result<Request, Bad> {
        let bad = |id: &str, text: String| Bad { id: id.to_owned(), no: No::invalid(text) };
        let frame: Value = serde_json::from_str(text)
            .map_err(|error| bad("", format!("invalid frame: {error}")))?;
        let Value::Object(mut frame) = frame else {
            return Err(bad("", "invalid frame: it must be an object".to_owned()));
        };
        let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind != "req" {
            let kind: String = kind.chars().take(ID_BYTES_MAX).collect();
            return Err(bad("", format!("unexpected frame type: {kind}")));
        }
        let malformed = |id: &str, field: &str| bad(id, format!("malformed request: {field}"));
        let id = match frame.remove("id") {
            Some(Value::String(id)) if id.len() <= ID_BYTES_MAX => id,
            Some(_) | None => {
                let text = format!("id must be a string of at most {ID_BYTES_MAX} bytes");
                return Err(malformed("", &text));
            }
        };
        let method = match frame.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) | None => return Err(malformed(&id, "method must be a string")),
        };
        let params = match frame.remove("params") {
            Some(Value::Object(params)) => params,
            Some(Value::Null) | None => Map::new(),
            Some(_) => return Err(malformed(&id, "params must be an object")),
        };
        Ok(Request { id, method, params })
    }
}

/// The answer to a request.
pub(crate) fn response(id: &str, outcome: &Outcome) -> Bytes {
    let frame = match outcome {
        Ok(payload) => json!({"type": "res", "id": id, "ok": true, "payload": payload}),
        Err(no) => json!({"type": "res", "id": id, "ok": false, "error": no.shown()}),
    };
    Bytes::from(frame.to_string())
}

/// An event, with its number among those of its connection. `state`: the version of a state that it tells of.
pub(crate) fn event(name: &str, payload: &Value, seq: u64, state: Option<&Value>) -> Bytes {
    let mut frame = json!({"type": "event", "event": name, "payload": payload, "seq": seq});
    if let Some(state) = state {
        frame["stateVersion"] = state.clone();
    }
    Bytes::from(frame.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_frame_is_answered_with_the_id_that_it_has() {
        let bad = |text: &str| {
            let Bad { id, no } = Request::parse(text).unwrap_err();
            (id, no.message)
        };
        assert!(bad("{").1.starts_with("invalid frame: "));
        assert!(bad("[]").1.starts_with("invalid frame: "));
        assert_eq!(
            bad(r#"{"type":"x","id":"1"}"#),
            (String::new(), "unexpected frame type: x".into())
        );
        assert_eq!(bad(r#"{"type":"res","id":"1"}"#).1, "unexpected frame type: res");
        let text = bad(r#"{"type":"req","id":7,"method":"health"}"#);
        assert_eq!(
            text,
            (String::new(), "malformed request: id must be a string of at most 128 bytes".into())
        );
        let text = bad(r#"{"type":"req","id":"1","method":7}"#);
        assert_eq!(text, ("1".into(), "malformed request: method must be a string".into()));
        let text = bad(r#"{"type":"req","id":"1","method":"x","params":[]}"#);
        assert_eq!(text, ("1".into(), "malformed request: params must be an object".into()));
        let long =
            format!(r#"{{"type":"req","id":"{}","method":"x"}}"#, "i".repeat(ID_BYTES_MAX + 1));
        assert_eq!(bad(&long).0, "");
        for params in ["", r#","params":null"#, r#","params":{},"more":1"#] {
            let text = format!(r#"{{"type":"req","id":"1","method":"x"{params}}}"#);
            assert!(Request::parse(&text).is_ok(), "{text}");
        }
    }
}

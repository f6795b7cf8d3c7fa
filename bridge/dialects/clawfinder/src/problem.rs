//! Why a request is refused, as clients read it. The client of ClawFinder reads the status line alone, so the reason phrase
//! says what to do; the body has the same text, in the form of Django REST framework.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bridge::seam::refusal::Refusal;
use hyper::ext::ReasonPhrase;
use mesh::api::{
    account::{AccountRefused, Whose},
    command::Refused,
};
use serde_json::{Map, Value, json};

use crate::limits::REASON_BYTES_MAX;

/// See the module. In a box where it is an error: it is large, and rare.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    /// What the reason phrase says after the standard one.
    text: String,
    body: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An answer, or the reason why there is none.
pub(crate) type Answer<T> = Result<T, Box<Problem>>;

impl Problem {
    /// `{"detail": text}`.
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Box<Problem> {
        let text = text.into();
        let body = json!({ "detail": text });
        Box::new(Problem { status, text, body, headers: Vec::new() })
    }

    /// 400 on one field.
    pub(crate) fn field(name: &str, text: impl Into<String>) -> Box<Problem> {
        Problem::fields(vec![(name.to_owned(), text.into())])
    }

    /// 400 on fields, of which the first one stands in the reason phrase. Without any it is on none of them.
    pub(crate) fn fields(errors: Vec<(String, String)>) -> Box<Problem> {
        let text = match errors.first() {
            Some((field, text)) => format!("{field}: {text}"),
            None => "the request is not valid".to_owned(),
        };
        let mut body: Map<String, Value> = Map::new();
        for (field, text) in errors {
            if let Value::Array(texts) = body.entry(field).or_insert_with(|| json!([])) {
                texts.push(text.into());
            }
        }
        let (status, body) = (StatusCode::BAD_REQUEST, Value::Object(body));
        Box::new(Problem { status, text, body, headers: Vec::new() })
    }

    /// 400 on no field in particular.
    pub(crate) fn of_the_whole(text: &str) -> Box<Problem> {
        let (status, body) = (StatusCode::BAD_REQUEST, json!({ "non_field_errors": [text] }));
        Box::new(Problem { status, text: text.to_owned(), body, headers: Vec::new() })
    }

    pub(crate) fn missing(text: &str) -> Box<Problem> {
        Problem::new(StatusCode::NOT_FOUND, text)
    }

    pub(crate) fn unavailable(text: &str) -> Box<Problem> {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    pub(crate) fn forbidden(text: &str) -> Box<Problem> {
        Problem::new(StatusCode::FORBIDDEN, text)
    }

    pub(crate) fn conflict(text: impl Into<String>) -> Box<Problem> {
        Problem::new(StatusCode::CONFLICT, text)
    }

    /// 401.
    pub(crate) fn no_account(text: &str) -> Box<Problem> {
        let bearer = HeaderValue::from_static("Bearer");
        Problem::new(StatusCode::UNAUTHORIZED, text).with_header(header::WWW_AUTHENTICATE, bearer)
    }

    /// 429: at most so many, and again after so long.
    pub(crate) fn too_often(text: &str, wait_secs: u64) -> Box<Problem> {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, text)
            .with_header(header::RETRY_AFTER, wait_secs.max(1).into())
    }

    /// Whether it says that a key opens nothing.
    pub(crate) fn is_of_the_key(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What the reason phrase says after the standard one, whole.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn with_header(
        mut self: Box<Problem>,
        name: HeaderName,
        value: HeaderValue,
    ) -> Box<Problem> {
        self.headers.push((name, value));
        self
    }

    /// With one more member of the body.
    pub(crate) fn with(mut self: Box<Problem>, name: &str, value: Value) -> Box<Problem> {
        if let Value::Object(body) = &mut self.body {
            body.insert(name.to_owned(), value);
        }
        self
    }
}

impl From<Refusal> for Box<Problem> {
    fn from(refusal: Refusal) -> Box<Problem> {
        if let Refusal::Mesh(Refused::Account(why)) = &refusal {
            return of_account(*why);
        }
        if let Refusal::Mesh(stopped @ Refused::Stopped { .. }) = &refusal {
            return Problem::forbidden(&stopped.to_string());
        }
        let text = if matches!(refusal, Refusal::Mesh(Refused::DiskFull)) {
            "the disk of this node is full; ask its operator"
        } else if matches!(refusal, Refusal::Overloaded) {
            "this node has much to do; try again in a moment"
        } else {
            "this node cannot do it now; try again, or ask another node"
        };
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

/// Why the mesh takes nothing of an account.
fn of_account(why: AccountRefused) -> Box<Problem> {
    match why {
        AccountRefused::Full(bound) => match bound.whose {
            Whose::Account => Problem::forbidden(&bound.to_string()),
            Whose::Node | Whose::Mesh => {
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, bound.to_string())
            }
        },
        AccountRefused::Ended => Problem::no_account("the account of this key was deleted"),
        AccountRefused::Unknown => {
            Problem::no_account("no agent here has this key; if it is new elsewhere, try again")
        }
        AccountRefused::Deleted => Problem::missing("it was deleted"),
        AccountRefused::Form | AccountRefused::TooMuch => {
            Problem::of_the_whole("it is larger than the index keeps; shorten the texts")
        }
        AccountRefused::TooManyBytes(_) => Problem::forbidden(&why.to_string()),
        AccountRefused::Behind => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the clock of this node is behind; ask its operator to set it",
        ),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        response.headers_mut().extend(self.headers);
        let reason = reason(self.status, &self.text);
        if let Ok(reason) = ReasonPhrase::try_from(reason.into_bytes()) {
            response.extensions_mut().insert(reason);
        }
        response
    }
}

/// The standard phrase and the text, in printable ASCII, no longer than it may be.
fn reason(status: StatusCode, text: &str) -> String {
    // The library has the word of an older standard.
    let standard = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Content Too Large",
        status => status.canonical_reason().unwrap_or("Error"),
    };
    let text = text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' });
    let mut reason: String = standard.chars().chain(": ".chars()).chain(text).collect();
    reason.truncate(REASON_BYTES_MAX);
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_printable_ascii() {
        let text = format!("user \u{e9}\r\nx: y {}", "z".repeat(300));
        let said = reason(StatusCode::CONFLICT, &text);
        assert!(said.starts_with("Conflict: user ???x: y zz"), "{said}");
        assert_eq!(said.len(), REASON_BYTES_MAX);
    }

    #[test]
    fn fields_stand_in_the_body_and_the_first_one_in_the_reason() {
        let error = |field: &str, text: &str| (field.to_owned(), text.to_owned());
        let problem = Problem::fields(vec![
            error("stars", "A valid integer is required."),
            error("text", "Not a valid string."),
        ]);
        assert_eq!(problem.text, "stars: A valid integer is required.");
        let body =
            json!({"stars": ["A valid integer is required."], "text": ["Not a valid string."]});
        assert_eq!(problem.body, body);
    }
}

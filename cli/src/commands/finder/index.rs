//! Requests to the index of a node, and its answers.

use std::time::Duration;

use client::http::{Answer, Ask, HttpError, Method, ask, encoded, is_too_long};
use client::limits::HTTP_WITHIN;
use protocol::value::ApiKey;
use serde_json::{Value, json};

use super::keys::{KeyFiles, Shown};
use super::proof;
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::tools;

/// The index, as one account of it.
#[derive(Debug)]
pub(super) struct Index<'c> {
    pub(super) cx: &'c Context,
    pub(super) operator: &'c Operator,
    /// The account that is named.
    pub(super) account: Option<&'c str>,
    /// The agent whose linked account acts.
    pub(super) agent: Option<&'c str>,
}

/// Which part of a list.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Pages {
    /// Another page
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// So many on a page, at most 100
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100))]
    page_size: u32,
}

impl Pages {
    /// The path of a list, with its query.
    pub(super) fn of(&self, path: &str, values: &[(&str, Option<&str>)]) -> String {
        let (page, size) = (self.page.to_string(), self.page_size.to_string());
        let part = [
            ("page", Some(page.as_str()).filter(|page| *page != "1")),
            ("page_size", Some(size.as_str()).filter(|size| *size != "100")),
        ];
        query(path, &[values, &part].concat())
    }
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// The path, percent-encoded, with its query.
    pub(super) path: &'a str,
    /// Of the account, where the page needs one.
    pub(super) key: Option<&'a ApiKey>,
    pub(super) body: Option<&'a Value>,
}

/// What a node says of the key of an account that was deleted.
const DELETED: &str = "the account of this key was deleted";
/// Accounts that an agent may have had: nodes look no further.
const LINKED_MAX: u64 = 256;

impl Index<'_> {
    /// The key of the account that acts.
    ///
    /// # Errors
    /// [`Failure::NoAccount`], [`Failure::File`].
    pub(super) fn shown(&self) -> Result<Shown, Failure> {
        if let Some(agent) = self.agent.filter(|_| self.account.is_none()) {
            return self.linked(agent, 0);
        }
        KeyFiles::of_user()?.choose(self.account, |name| std::env::var(name).ok())
    }

    /// The key of the account that an agent has after so many that were deleted.
    fn linked(&self, agent: &str, nth: u64) -> Result<Shown, Failure> {
        let key = proof::linked(&tools::key(self.cx)?, agent, nth);
        Ok(Shown { key, file: None })
    }

    /// Reads a page that anybody may read.
    ///
    /// # Errors
    /// As [`Index::ask`].
    pub(super) async fn read(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Request { method: Method::GET, path, key: None, body: None }).await
    }

    /// Reads a page as the account.
    ///
    /// # Errors
    /// As [`Index::act`].
    pub(super) async fn own(&self, path: &str) -> Result<Value, Failure> {
        self.act(Method::GET, path, None).await
    }

    /// Asks as the account.
    ///
    /// # Errors
    /// As [`Index::ask`], and [`Index::shown`].
    pub(super) async fn act(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut shown = self.shown()?;
        for nth in 1.. {
            let key = Some(&shown.key);
            let asked = self.ask(Request { method: method.clone(), path, key, body }).await;
            match (self.agent, asked) {
                // An agent that deleted its account has another one.
                (Some(agent), Err(Failure::Index { status: 401, why }))
                    if nth < LINKED_MAX && why == DELETED =>
                {
                    shown = self.linked(agent, nth)?;
                }
                (_, asked) => return asked,
            }
        }
        Err(Failure::strange())
    }

    /// Asks the first node that can be reached.
    ///
    /// # Errors
    /// [`Failure::Index`] with what the node says, or there is no answer.
    pub(super) async fn ask(&self, request: Request<'_>) -> Result<Value, Failure> {
        data(&self.answer(request, None).await?)
    }

    /// The answer of the first node that can be reached, whatever it is. `agent`: whose key of ClawChat is shown, too.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn answer(
        &self,
        request: Request<'_>,
        agent: Option<&ApiKey>,
    ) -> Result<Answer, Failure> {
        let nodes = match tools::nodes(self.cx, self.operator) {
            Err(Failure::ToolsOverHttp) => return Err(Failure::IndexOverHttp),
            nodes => nodes?,
        };
        let bearer = request.key.map(|key| format!("Bearer {}", key.expose()));
        let mut headers = vec![("accept", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        headers.extend(request.body.map(|_| ("content-type", "application/json")));
        let authorities = self.cx.authorities();
        let nobody = ApiKey::new("");
        for node in &nodes {
            let asked = Ask {
                method: request.method.clone(),
                path: request.path,
                key: agent.unwrap_or(&nobody),
                authorities: &authorities,
                headers: &headers,
                body: request.body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
                within: HTTP_WITHIN,
            };
            match ask(node, asked).await {
                // Nothing was sent: another one may have it.
                Err(HttpError::Unreachable { .. }) => {}
                Err(error) if is_too_long(&error) => return Err(Failure::PageTooLong),
                answer => return Ok(answer?),
            }
        }
        Err(self.operator.no_tools(&self.cx.node).unwrap_or(Failure::NoToolNode))
    }

    /// A result: as the standard client prints it, or as lines for people.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn show(
        &self,
        data: &Value,
        lines: impl FnOnce() -> Vec<String>,
    ) -> Result<Outcome, Failure> {
        self.cx.output.show(&json!({"ok": true, "data": data}), lines)?;
        Ok(Outcome::Done)
    }

    /// A page of a list. There may be more of it, which is said beside it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn page(
        &self,
        page: &Value,
        none: &str,
        lines: impl FnOnce(&[Value]) -> Vec<String>,
    ) -> Result<Outcome, Failure> {
        let results = page["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        let output = &self.cx.output;
        output.list(&json!({"ok": true, "data": page}), none, || lines(results))?;
        let count = page["count"].as_u64().unwrap_or_default();
        if !output.is_json() && page["next"].is_string() {
            output.note(&format!("({} of {count}; see --page)", results.len()))?;
        }
        Ok(Outcome::Done)
    }
}

/// When to ask again, if the node says so.
pub(super) fn again(answer: &Answer) -> Option<Duration> {
    matches!(answer.status, 429 | 503).then(|| answer.retry_after.unwrap_or_default())
}

/// What an answer says.
///
/// # Errors
/// [`Failure::Index`].
pub(super) fn data(answer: &Answer) -> Result<Value, Failure> {
    let status = answer.status;
    if status == 204 {
        return Ok(json!({"deleted": true}));
    }
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    match body {
        Some(body) if (200..300).contains(&status) => Ok(body),
        body => Err(Failure::Index { status, why: why(status, body.as_ref()) }),
    }
}

/// Why an answer is no good: the text of the node, or its fields, one after the other.
fn why(status: u16, body: Option<&Value>) -> String {
    let strange = || {
        if status == 404 {
            return "the node has no such page: it was started with --no-finder, or is of another version".to_owned();
        }
        format!("the node answered {status}, and no word why")
    };
    let Some(Value::Object(body)) = body else { return strange() };
    if let Some(detail) = body.get("detail").and_then(Value::as_str) {
        return detail.to_owned();
    }
    let texts = body.iter().filter_map(|(field, texts)| {
        let texts = texts.as_array()?.iter().filter_map(Value::as_str);
        let text = texts.collect::<Vec<_>>().join(" ");
        Some(if field == "non_field_errors" { text } else { format!("{field}: {text}") })
    });
    let texts = texts.collect::<Vec<_>>().join("; ");
    if texts.is_empty() { strange() } else { texts }
}

/// A part of a path, or a value of a query.
pub(super) fn part(text: &str) -> String {
    encoded(text).replace('/', "%2F")
}

/// A path with those values of its query that are given.
pub(super) fn query(path: &str, values: &[(&str, Option<&str>)]) -> String {
    let given = values.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let given: Vec<String> = given.map(|(name, value)| format!("{name}={}", part(value))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> Result<Value, String> {
        let body = body.as_bytes().to_vec();
        data(&Answer { status, media: None, retry_after: None, body })
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn an_answer_is_data_or_the_reason_why_there_is_none() {
        assert_eq!(said(204, ""), Ok(json!({"deleted": true})));
        assert_eq!(said(201, r#"{"id": "x"}"#), Ok(json!({"id": "x"})));
        for (status, body, text) in [
            (409, r#"{"detail": "it is taken", "suggestions": []}"#, "it is taken"),
            (
                400,
                r#"{"stars": ["Too many.", "Bad."], "text": ["Not a valid string."]}"#,
                "stars: Too many. Bad.; text: Not a valid string.",
            ),
            (400, r#"{"non_field_errors": ["No object."]}"#, "No object."),
            (500, "<html>", "the node answered 500, and no word why"),
            (200, "", "the node answered 200, and no word why"),
            (400, "{}", "the node answered 400, and no word why"),
        ] {
            assert_eq!(said(status, body), Err(text.to_owned()));
        }
        assert!(said(404, "Not Found").unwrap_err().contains("--no-finder"));
    }

    #[test]
    fn paths_have_no_room_for_other_paths() {
        assert_eq!(part("../me/?x=1 &"), "..%2Fme%2F%3Fx%3D1%20%26");
        let with =
            query("/api/jobs/", &[("search", Some("a b")), ("page", None), ("x", Some("1"))]);
        assert_eq!(with, "/api/jobs/?search=a%20b&x=1");
        assert_eq!(query("/api/jobs/", &[("page", None)]), "/api/jobs/");
        let pages = Pages { page: 1, page_size: 100 };
        assert_eq!(pages.of("/api/jobs/", &[]), "/api/jobs/");
        let pages = Pages { page: 2, page_size: 10 };
        assert_eq!(
            pages.of("/api/jobs/", &[("search", Some("a"))]),
            "/api/jobs/?search=a&page=2&page_size=10"
        );
    }
}

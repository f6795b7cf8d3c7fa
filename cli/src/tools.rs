//! Tools of a node, called over HTTP: at which node, with which key, and as which agent.
//!
//! `clawmesh mcp` and the commands for people ask in the same way, so that both are the same agent in the same directory.

use std::time::Duration;

use client::address::{Address, WebSocketUrl};
use client::http::{Answer, Ask, HttpError, Method, ask};
use client::options::drawn_from;
use protocol::value::ApiKey;
use serde_json::{Value, json};

use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::Failure;

/// The answer to 401.
pub(crate) const NO_KEY: &str = "the node does not take this key: name its file with --key-file, or show it with --key \
    (clawmeshd key show prints it)";

/// The longest wait of a tool.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(50);

/// A call that was not answered by the tool.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The node is not there, or went away, or is too busy: it may answer later.
    NotNow(Failure),
    /// The same call would fail again.
    Never(Failure),
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Failure {
        match unanswered {
            Unanswered::NotNow(failure) | Unanswered::Never(failure) => failure,
        }
    }
}

/// The URLs of nodes over HTTP: those that are given, or that of the node of this machine.
///
/// # Errors
/// [`Failure::ToolsOverHttp`] if another way to a node is given, [`Failure::File`] if the description of the node cannot be
/// read.
pub(crate) fn nodes(cx: &Context, operator: &Operator) -> Result<Vec<WebSocketUrl>, Failure> {
    let given = cx.node.url.iter().filter_map(|at| match at {
        Address::WebSocket(url) => Some(url.clone()),
        Address::Unix(_) | Address::Tcp(_) => None,
    });
    let given: Vec<WebSocketUrl> = given.collect();
    if !given.is_empty() {
        return Ok(given);
    }
    let elsewhere = !(cx.node.tcp.is_empty() && cx.node.socket.is_empty());
    if elsewhere && operator.data_dir.is_none() {
        return Err(Failure::ToolsOverHttp);
    }
    // Nothing is guessed: the key goes there. A node that does not run has no address yet.
    let Some(at) = operator.http()? else { return Ok(Vec::new()) };
    match Address::web_socket(&at.replacen("http", "ws", 1)) {
        Ok(Address::WebSocket(url)) => Ok(vec![url]),
        Ok(Address::Unix(_) | Address::Tcp(_)) | Err(_) => Err(Failure::ToolsOverHttp),
    }
}

/// Headers that say who asks, where no agent's id is given: an agent of this directory.
pub(crate) fn draw(cx: &Context) -> Option<(&'static str, String)> {
    if cx.node.agent_id.is_some() {
        return None;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let part = drawn_from(&["clawmesh mcp agent", &here.to_string_lossy()]);
    let digits = part.iter().map(|byte| format!("{byte:02x}"));
    Some(("x-clawmesh-draw", digits.collect()))
}

/// The header with the agent's name, if a header can have it.
pub(crate) fn name(cx: &Context) -> Option<(&'static str, String)> {
    let is_plain = |text: &String| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    cx.node.name.clone().filter(is_plain).map(|name| ("x-clawmesh-name", name))
}

/// The key. A node that checks no keys needs none; a file that was named has to be there.
///
/// # Errors
/// As [`Context::key`].
pub(crate) fn key(cx: &Context) -> Result<ApiKey, Failure> {
    let is_named = cx.node.key_file.is_some();
    match cx.key() {
        Err(Failure::KeyFile { .. }) if !is_named => Ok(ApiKey::new("")),
        key => key,
    }
}

/// The tools of a node, for one agent.
#[derive(Debug)]
pub(crate) struct Tools<'c> {
    cx: &'c Context,
    operator: &'c Operator,
}

impl<'c> Tools<'c> {
    pub(crate) fn new(cx: &'c Context, operator: &'c Operator) -> Tools<'c> {
        Tools { cx, operator }
    }

    /// Calls a tool at the first node that can be reached. `waits`: how long the tool itself may take.
    ///
    /// # Errors
    /// See [`Unanswered`]. It is not known whether a node that went away has acted.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Value,
        waits: Duration,
    ) -> Result<Value, Unanswered> {
        let mut body = json!({"tool": tool, "args": arguments});
        if let Some(agent) = &self.cx.node.agent_id {
            body["agentId"] = json!(agent);
        }
        details(&self.post("/tools/invoke", &body, waits).await?)
    }

    /// Posts JSON as the agent, to the first node that can be reached.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        waits: Duration,
    ) -> Result<Answer, Unanswered> {
        let nodes = nodes(self.cx, self.operator).map_err(Unanswered::Never)?;
        let key = key(self.cx).map_err(Unanswered::Never)?;
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("authorization", format!("Bearer {}", key.expose())),
        ];
        headers.extend(draw(self.cx));
        headers.extend(name(self.cx));
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let authorities = self.cx.authorities();
        for node in &nodes {
            let asked = Ask {
                method: Method::POST,
                path,
                key: &key,
                authorities: &authorities,
                headers: &headers,
                body: body.to_string().into_bytes(),
                within: waits + ANSWER_WITHIN,
            };
            match ask(node, asked).await {
                Ok(answer) => return Ok(answer),
                // Nothing was sent: another one may have it.
                Err(HttpError::Unreachable { .. }) => {}
                Err(failure @ HttpError::Unsound(_)) => {
                    return Err(Unanswered::Never(failure.into()));
                }
                Err(
                    failure @ (HttpError::Broken { .. }
                    | HttpError::TimedOut { .. }
                    | HttpError::Unread { .. }),
                ) => return Err(Unanswered::NotNow(failure.into())),
            }
        }
        let no_node = self.operator.no_tools(&self.cx.node).unwrap_or(Failure::NoToolNode);
        Err(Unanswered::NotNow(no_node))
    }
}

/// A node answers at once, but for the wait itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// The result of a tool in the answer of `/tools/invoke`.
fn details(answer: &Answer) -> Result<Value, Unanswered> {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let refused = |why: String| Failure::Refused { why };
    let said = |otherwise: &str| {
        let message = body["error"]["message"].as_str();
        refused(message.unwrap_or(otherwise).to_owned())
    };
    match answer.status {
        200 if body["result"]["details"].is_object() => Ok(body["result"]["details"].clone()),
        401 => Err(Unanswered::Never(refused(NO_KEY.to_owned()))),
        429 | 503 => Err(Unanswered::NotNow(said("the node is busy"))),
        status => Err(Unanswered::Never(said(&format!("the node answered {status}")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_result_a_refusal_or_a_matter_of_time() {
        let answer = |status, body: &str| {
            let body = body.as_bytes().to_vec();
            details(&Answer { status, media: None, retry_after: None, body })
        };
        let ok = r#"{"ok":true,"result":{"content":[],"details":{"count":0}}}"#;
        assert_eq!(answer(200, ok).unwrap(), json!({"count": 0}));
        let error = r#"{"ok":false,"error":{"type":"tool_error","message":"message required"}}"#;
        for (status, body, is_final, text) in [
            (400, error, true, "message required"),
            (401, "", true, NO_KEY),
            (404, "<html>", true, "the node answered 404"),
            (200, "[]", true, "the node answered 200"),
            (503, error, false, "message required"),
            (429, "", false, "the node is busy"),
        ] {
            let unanswered = answer(status, body).unwrap_err();
            assert_eq!(matches!(unanswered, Unanswered::Never(_)), is_final, "{status}");
            assert_eq!(Failure::from(unanswered).to_string(), text);
        }
    }
}

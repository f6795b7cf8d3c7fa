//! `clawmesh mcp`: a node's tools for a host that starts a program, over standard input and output.
//!
//! It copies: a line is a request to the node over HTTP, and the answer is a line. It keeps nothing but the revision that was
//! agreed on, for the header that HTTP wants.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::http::{Answer, Ask, HttpError, Method, Opened, encoded, header_text, open};
use client::options::Authorities;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Stdin, Stdout};
use tokio::sync::{Mutex as Turn, Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::context::Context;
use crate::limits::{MCP_CALLS_MAX, MCP_LINE_BYTES_MAX};
use crate::operator::Operator;
use crate::outcome::{Failure, NO_NODE, Outcome};
use crate::tools::{self, NO_KEY};

mod channel;
pub(super) mod config;
mod queue;
mod streams;

/// Longer than any wait of a tool, which is 50 s at most.
const ANSWER_WITHIN: Duration = Duration::from_secs(70);
/// Calls that have no answer when the host closes its end have so long to get one.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The method whose answer is a stream of news.
const LISTEN: &str = "subscriptions/listen";

/// Groups of tools that nodes have.
const GROUPS: [&str; 7] = ["sessions", "inbox", "rooms", "votes", "tasks", "finder", "all"];

/// Tools for an agent host (Claude Code, Codex, OpenClaw …): MCP over standard input and output
#[derive(Debug, clap::Args)]
pub struct Mcp {
    #[command(flatten)]
    operator: Operator,
    /// Groups of tools: sessions, inbox, rooms, votes, tasks, finder, all (but finder) [default: as the node offers]
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    tools: Vec<String>,
    /// What the agent can do, in its own words
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    capabilities: Vec<String>,
    /// Hand what is sent to you to the host as it comes: for Claude Code's channels, which it takes with its flag
    /// --dangerously-load-development-channels server:NAME
    #[arg(long)]
    channel: bool,
    /// Wake the session of the host when something comes, with the host's own queue. Its hook, `clawmesh inbox --hook=codex`,
    /// says which session it is
    #[arg(long, value_name = "HOST", value_enum)]
    queue: Option<queue::Queue>,
    #[command(subcommand)]
    command: Option<McpCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    Config(config::Config),
}

pub(crate) async fn run(cx: &Context, args: Mcp) -> Result<Outcome, Failure> {
    if let Some(McpCommand::Config(config)) = args.command {
        return config::run(cx, &args.operator, &config);
    }
    let relay = Arc::new(Relay::new(cx, args)?);
    relay.copy().await?;
    Ok(Outcome::Done)
}

/// See the module.
struct Relay {
    cx: Context,
    operator: Operator,
    path: String,
    /// Headers that say who asks.
    headers: Vec<(&'static str, String)>,
    authorities: Authorities,
    /// The revision of MCP that was agreed on, if there was a handshake.
    revision: Mutex<Option<String>>,
    /// Requests under way, by their id.
    calls: Mutex<HashMap<String, AbortHandle>>,
    slots: Arc<Semaphore>,
    out: Turn<Stdout>,
    /// What comes is handed to the host.
    channel: bool,
    /// Its session is woken so.
    queue: Option<queue::Queue>,
    /// The host has been told of the channel.
    is_open: Notify,
    /// What a host of an older revision hears of.
    subscribed: Turn<streams::Subscribed>,
}

impl Relay {
    fn new(cx: &Context, args: Mcp) -> Result<Relay, Failure> {
        // Said now: a host shows what a program says when it ends at once.
        tools::nodes(cx, &args.operator)?;
        let mut headers = Vec::new();
        let mut path = "/mcp".to_owned();
        if let Some(agent) = &cx.node.agent_id {
            path = format!("/mcp/{}", encoded(agent).replace('/', "%2F"));
        }
        headers.extend(tools::draw(cx));
        if !args.tools.is_empty() {
            let known = |name: &String| GROUPS.contains(&name.as_str());
            if let Some(group) = args.tools.iter().find(|name| !known(name)).cloned() {
                return Err(Failure::NoToolGroup { group });
            }
            path = format!("{path}?tools={}", args.tools.join(","));
        }
        headers.extend(tools::name(cx));
        if !args.capabilities.is_empty() {
            headers.push(("x-clawmesh-capabilities", args.capabilities.join(",")));
        }
        Ok(Relay {
            cx: Context::new(cx.node.clone()),
            operator: args.operator,
            path,
            headers,
            authorities: cx.authorities(),
            revision: Mutex::default(),
            calls: Mutex::default(),
            slots: Arc::new(Semaphore::new(MCP_CALLS_MAX)),
            out: Turn::new(tokio::io::stdout()),
            channel: args.channel,
            queue: args.queue,
            is_open: Notify::new(),
            subscribed: Turn::default(),
        })
    }

    /// Until standard input ends.
    async fn copy(self: &Arc<Relay>) -> Result<(), Failure> {
        let mut input = BufReader::new(tokio::io::stdin());
        let mut under_way = JoinSet::new();
        // They end with the host.
        let mut channel = JoinSet::new();
        if let Some(queue) = self.queue {
            let relay = self.clone();
            channel.spawn(async move { queue::run(&relay, queue).await });
        }
        if self.channel {
            let relay = self.clone();
            channel.spawn(async move { channel::run(&relay).await });
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = (&mut input).take(MCP_LINE_BYTES_MAX + 1);
            let read = bounded.read_until(b'\n', &mut line).await;
            if read.map_err(Failure::Input)? == 0 {
                break;
            }
            if line.len() as u64 > MCP_LINE_BYTES_MAX {
                skip_line(&mut input).await.map_err(Failure::Input)?;
                let text = format!("a line has at most {MCP_LINE_BYTES_MAX} bytes");
                self.write(&error(&Value::Null, -32_600, &text)).await;
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            while under_way.try_join_next().is_some() {}
            self.hear(&mut under_way, &line).await;
        }
        let all = async { while under_way.join_next().await.is_some() {} };
        // What is waited for in vain is over with the host.
        drop(timeout(LAST_ANSWERS_WITHIN, all).await);
        Ok(())
    }

    async fn hear(self: &Arc<Relay>, under_way: &mut JoinSet<()>, line: &[u8]) {
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(_) => {
                return self.write(&error(&Value::Null, -32_700, "the line is not JSON")).await;
            }
        };
        if message["method"] == "notifications/cancelled" {
            let cancelled = message["params"]["requestId"].to_string();
            if let Some(call) = self.calls().remove(&cancelled) {
                call.abort();
            }
            return;
        }
        // An error: it is never closed.
        let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
        let (relay, id) = (self.clone(), message["id"].to_string());
        let name = id.clone();
        let mut calls = self.calls();
        let call = under_way.spawn(async move {
            let answer = relay.answer(&message).await;
            relay.calls().remove(&name);
            if let Some(answer) = answer {
                relay.write(&answer).await;
            }
            drop(slot);
        });
        // Held since before it began, so that its end finds it.
        if id != "null" {
            calls.insert(id, call);
        }
    }

    /// None to a notification.
    async fn answer(self: &Arc<Relay>, message: &Value) -> Option<Value> {
        let id = &message["id"];
        let wants_answer = message.is_array() || !id.is_null();
        if wants_answer && streams::is_stream(message) {
            return self.stream(message).await;
        }
        if wants_answer && streams::is_subscription(message) && self.is_older(message) {
            return Some(self.subscription(message).await);
        }
        let answered = self.ask(message).await;
        let mut answer = match answered {
            Ok(answer) => of_node(id, &answer),
            Err(Unanswered::NoNode) if message["method"] == "tools/call" => no_node(id, message),
            Err(Unanswered::NoNode) => Some(error(id, -32_603, NO_NODE)),
            Err(Unanswered::Failed(text)) => Some(error(id, -32_603, &text)),
        };
        if message["method"] == "initialize"
            && let Some(agreed) =
                answer.as_ref().and_then(|it| it["result"]["protocolVersion"].as_str())
        {
            *lock(&self.revision) = Some(agreed.to_owned());
        }
        // Over HTTP an older revision has none; this program has.
        if message["method"] == "initialize"
            && let Some(resources) =
                answer.as_mut().and_then(|it| it.pointer_mut("/result/capabilities/resources"))
        {
            resources["subscribe"] = json!(true);
        }
        if self.channel && channel::declare(message, answer.as_mut()) {
            self.is_open.notify_one();
        }
        answer.filter(|_| wants_answer)
    }

    /// The first node that can be reached has it.
    async fn ask(&self, message: &Value) -> Result<Answer, Unanswered> {
        // A line has one answer: news of its progress would make it a stream.
        let mut body = message.clone();
        if let Some(meta) = body["params"]["_meta"].as_object_mut() {
            meta.remove("progressToken");
        }
        self.post(&self.path, &body, self.headers(message)).await
    }

    /// Posts something as the agent, to the first node that can be reached.
    async fn post(
        &self,
        path: &str,
        body: &Value,
        headers: Vec<(&'static str, String)>,
    ) -> Result<Answer, Unanswered> {
        let whole = async {
            let opened = self.open(path, body, headers).await?;
            opened.whole().await.map_err(|failure| Unanswered::Failed(failure.to_string()))
        };
        let late = || Err(Unanswered::Failed("the node does not answer".to_owned()));
        timeout(ANSWER_WITHIN, whole).await.unwrap_or_else(|_| late())
    }

    /// The same, of which the answer has begun.
    async fn open(
        &self,
        path: &str,
        body: &Value,
        mut headers: Vec<(&'static str, String)>,
    ) -> Result<Opened, Unanswered> {
        let failed = |failure: &dyn std::error::Error| Unanswered::Failed(failure.to_string());
        let nodes = tools::nodes(&self.cx, &self.operator).map_err(|failure| failed(&failure))?;
        let key = tools::key(&self.cx).map_err(|failure| failed(&failure))?;
        headers.push(("content-type", "application/json".to_owned()));
        headers.push(("authorization", format!("Bearer {}", key.expose())));
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for node in &nodes {
            let asked = Ask {
                method: Method::POST,
                path,
                key: &key,
                authorities: &self.authorities,
                headers: &headers,
                body: body.to_string().into_bytes(),
                within: ANSWER_WITHIN,
            };
            match open(node, asked).await {
                Ok(opened) => return Ok(opened),
                // Nothing was sent: another one may have it.
                Err(HttpError::Unreachable { .. }) => {}
                Err(failure) => return Err(failed(&failure)),
            }
        }
        Err(Unanswered::NoNode)
    }

    /// Whether a message is of a revision that was agreed on with a handshake.
    fn is_older(&self, message: &Value) -> bool {
        let own = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        own.is_null() && lock(&self.revision).is_some()
    }

    /// Who asks; and of a message what HTTP wants to have in a header, too.
    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = self.headers.clone();
        let params = &message["params"];
        let own = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let Some(own) = own else {
            let agreed = lock(&self.revision).clone().filter(|_| message["method"] != "initialize");
            headers.extend(agreed.map(|agreed| ("mcp-protocol-version", agreed)));
            return headers;
        };
        headers.push(("mcp-protocol-version", own.to_owned()));
        if let Some(method) = message["method"].as_str() {
            headers.push(("mcp-method", method.to_owned()));
        }
        let names = [&params["name"], &params["uri"], &params["taskId"]];
        if let Some(name) = names.into_iter().find_map(Value::as_str) {
            headers.push(("mcp-name", header_text(name)));
        }
        headers
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        lock(&self.calls)
    }

    /// A host that does not read any more has ended: so does its input.
    async fn write(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let mut out = self.out.lock().await;
        if out.write_all(&line).await.is_ok() {
            drop(out.flush().await);
        }
    }
}

/// The rest of a line, which nobody wants.
async fn skip_line(input: &mut BufReader<Stdin>) -> io::Result<()> {
    loop {
        let held = input.fill_buf().await?;
        let end = held.iter().position(|byte| *byte == b'\n');
        let (length, is_over) = (held.len(), end.is_some() || held.is_empty());
        input.consume(end.map_or(length, |end| end + 1));
        if is_over {
            return Ok(());
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message that has no answer of a node.
enum Unanswered {
    NoNode,
    Failed(String),
}

/// An answer of a node, as a line. None: it has nothing to say.
fn of_node(id: &Value, answer: &Answer) -> Option<Value> {
    if answer.status == 202 {
        return None;
    }
    let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if let Some(message) = body.as_ref().filter(|body| body["jsonrpc"] == "2.0") {
        let mut message = message.clone();
        // An error from before the request was read has no id.
        if message["id"].is_null() {
            message["id"] = id.clone();
        }
        return Some(message);
    }
    if answer.status == 401 {
        return Some(error(id, -32_603, NO_KEY));
    }
    let said = body.as_ref().and_then(|body| body["error"]["message"].as_str());
    let text = said.map_or_else(|| format!("the node answered {}", answer.status), str::to_owned);
    Some(error(id, -32_603, &text))
}

/// A tool that cannot be called now: the model is told, and may try again.
fn no_node(id: &Value, message: &Value) -> Option<Value> {
    let fields = json!({"status": "error", "error": NO_NODE});
    let mut result = json!({
        "content": [{"type": "text", "text": fields.to_string()}],
        "structuredContent": fields,
    });
    if message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        result["resultType"] = json!("complete");
    }
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(id: &Value, code: i32, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_is_no_message_becomes_one() {
        let answer = |status, body: &str| Answer {
            status,
            media: None,
            retry_after: None,
            body: body.as_bytes().to_vec(),
        };
        let (id, refused) =
            (json!(7), r#"{"error":{"type":"unauthorized","message":"show a key"}}"#);
        let found = of_node(&id, &answer(401, refused));
        assert_eq!(found, Some(error(&id, -32_603, NO_KEY)));
        assert_eq!(of_node(&id, &answer(202, "")), None);
        let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
        assert_eq!(of_node(&id, &answer(400, unread)).unwrap()["id"], 7);
        let found = of_node(&id, &answer(502, "<html>"));
        assert_eq!(found, Some(error(&id, -32_603, "the node answered 502")));
    }
}

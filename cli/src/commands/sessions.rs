//! `clawmesh sessions`: a person's equivalent of the tools `sessions_list`, `sessions_history`, `sessions_send` and `sessions_spawn`;
//! and what an operator says of single sessions.

use std::time::Duration;

use jiff::Timestamp;
use protocol::operator::{Answer, Request, Sending, SessionMark, WantedMark};
use serde_json::{Map, Value, json};

use super::send;
use crate::args::seconds;
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::table;
use crate::tools::{Tools, WAIT_MAX};
use crate::{format, quoted};

/// Conversations with agents of the mesh, as the agent that `clawmesh mcp` is in this directory
#[derive(Debug, clap::Args)]
pub struct Sessions {
    #[command(flatten)]
    operator: Operator,
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SessionsCommand {
    /// List your sessions, the newest first: your inbox (main), agents, rooms, tasks
    List {
        /// Part of a key, name or label
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Kinds of sessions: main, group, other
        #[arg(long, value_name = "KIND", value_delimiter = ',')]
        kind: Vec<String>,
        /// At most so many
        #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
        /// Pass over so many
        #[arg(long, value_name = "N", default_value = "0")]
        offset: u64,
    },
    /// Read the messages of a session, the oldest first
    History {
        /// The session: main, agent:ID:main, mesh:channel:NAME, a room's or an agent's id or name
        // Not `key`: that is the API key of all commands.
        #[arg(value_name = "KEY")]
        session: String,
        /// At most so many, the newest
        #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u64).range(1..))]
        limit: u64,
        /// Pass over so many of the newest
        #[arg(long, value_name = "N", default_value = "0")]
        offset: u64,
    },
    Send(Say),
    Spawn(Spawn),
    Policy(Policy),
    /// As the operator of a node on this machine: list a session among those that are over, for agents of the node
    Archive {
        /// The session: agent:ID:main (of --agent-id, or else of all agents of the node), a room's id or name
        #[arg(value_name = "KEY")]
        session: String,
        /// List it as before
        #[arg(long)]
        undo: bool,
    },
}

/// As the operator of a node on this machine: whether its agents may send into a session, whatever the rules of the node say
///
/// It holds from now on, and after a restart. No agent and no message can change it.
#[derive(Debug, clap::Args)]
struct Policy {
    /// The session: agent:ID:main (of --agent-id, or else of all agents of the node), a room's id or name
    #[arg(value_name = "KEY")]
    session: String,
    /// inherit: as the rules of the node say
    policy: SendingTo,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SendingTo {
    Allow,
    Deny,
    Inherit,
}

/// Hand a task over to another agent; the result comes to the inbox
#[derive(Debug, clap::Args)]
struct Spawn {
    /// The task; - reads it from standard input
    task: String,
    /// Who is to do it [default: an agent that offers to]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// What that agent has to be able to do [default: spawn]
    #[arg(long, value_name = "WORD")]
    capability: Option<String>,
    /// Its name in lists
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Seconds to wait for the result, at most 50 [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
}

/// Send to an agent or room, and wait for the reply
///
/// Exits 0 with a reply (or without a wait, when the message is accepted), 1 when it is refused, 2 when no reply came in time
/// (the message was kept: do not send it again), 3 when the agent chose not to reply.
#[derive(Debug, clap::Args)]
struct Say {
    /// The session: agent:ID:main, mesh:channel:NAME, a room's or an agent's id or name
    #[arg(value_name = "KEY")]
    session: String,
    /// The text; - reads it from standard input
    text: String,
    /// Seconds to wait for the reply, at most 50; 0 = do not wait [default: 30; of rooms and answers 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
    /// Id of the message it answers
    #[arg(long, value_name = "MESSAGE_ID")]
    reply_to: Option<String>,
    /// The other agent may say the outcome in its announce room
    #[arg(long)]
    announce: bool,
}

pub(crate) async fn run(cx: &Context, args: Sessions) -> Result<Outcome, Failure> {
    let tools = Tools::new(cx, &args.operator);
    match args.command {
        SessionsCommand::List { search, kind, limit, offset } => {
            let mut asked = object(json!({"limit": limit, "offset": offset}));
            asked.extend(search.map(|text| ("search".to_owned(), json!(text))));
            if !kind.is_empty() {
                asked.insert("kinds".to_owned(), json!(kind));
            }
            let list = tools.call("sessions_list", asked.into(), Duration::ZERO).await?;
            list_of(cx, &list)
        }
        SessionsCommand::History { session, limit, offset } => {
            let asked = json!({"sessionKey": session, "limit": limit, "offset": offset});
            let history = tools.call("sessions_history", asked, Duration::ZERO).await?;
            history_of(cx, &history)
        }
        SessionsCommand::Send(args) => say(cx, &tools, args).await,
        SessionsCommand::Spawn(args) => spawn(cx, &tools, args).await,
        SessionsCommand::Policy(Policy { session, policy }) => {
            let sending = match policy {
                SendingTo::Allow => Sending::Allow,
                SendingTo::Deny => Sending::Deny,
                SendingTo::Inherit => Sending::Inherit,
            };
            mark(cx, &args.operator, session, SessionMark::Sending(sending)).await
        }
        SessionsCommand::Archive { session, undo } => {
            mark(cx, &args.operator, session, SessionMark::Archived(!undo)).await
        }
    }
}

/// Sets a mark on a session, at the node whose operator this is.
async fn mark(
    cx: &Context,
    operator: &Operator,
    session: String,
    mark: SessionMark,
) -> Result<Outcome, Failure> {
    let agent_id = cx.node.agent_id.clone();
    let wanted = WantedMark { session, agent_id: agent_id.clone(), mark };
    let Answer::Session(session) = operator.ask(&Request::MarkSession(wanted)).await? else {
        return Err(Failure::strange());
    };
    if cx.output.is_json() {
        let mark = match mark {
            SessionMark::Sending(sending) => json!({"sendPolicy": sending}),
            SessionMark::Archived(archived) => json!({"archived": archived}),
        };
        let mut set = object(json!({"session": session, "agentId": agent_id}));
        set.extend(object(mark));
        set.retain(|_, value| !value.is_null());
        cx.output.object(&set)?;
        return Ok(Outcome::Done);
    }
    let said = match mark {
        SessionMark::Sending(Sending::Allow) => "agents of this node may send there",
        SessionMark::Sending(Sending::Deny) => "no agent of this node may send there",
        SessionMark::Sending(Sending::Inherit) => "the rules of the node say who may send there",
        SessionMark::Archived(true) => "archived",
        SessionMark::Archived(false) => "not archived",
    };
    let of = agent_id.map(|agent| format!(" of {}", format::name(&agent))).unwrap_or_default();
    cx.output.line(&format!("{}{of}: {said}", format::name(&session)))?;
    Ok(Outcome::Done)
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

fn list_of(cx: &Context, list: &Value) -> Result<Outcome, Failure> {
    if let Some(outcome) = refusal(cx, list)? {
        return Ok(outcome);
    }
    let empty = Vec::new();
    let rows = list["sessions"].as_array().unwrap_or(&empty);
    cx.output.list(list, "no sessions", || {
        let cells = rows.iter().map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let unread = row["unread"].as_u64().unwrap_or_default().to_string();
            vec![text("key"), unread, time(&row["updatedAt"]), text("displayName")]
        });
        table::lines(&cx.output, &["key", "unread", "updated", "name"], cells.collect())
    })?;
    if list["hasMore"] == true && !cx.output.is_json() {
        let next = &list["nextOffset"];
        cx.output.note(&format!("clawmesh: there are more: --offset {next}"))?;
    }
    Ok(Outcome::Done)
}

fn history_of(cx: &Context, history: &Value) -> Result<Outcome, Failure> {
    if let Some(outcome) = refusal(cx, history)? {
        return Ok(outcome);
    }
    let session = history["sessionKey"].as_str().unwrap_or_default();
    let empty = Vec::new();
    let messages = history["messages"].as_array().unwrap_or(&empty);
    let me = cx.node.agent_id.as_deref();
    cx.output.list(history, "no messages", || {
        messages.iter().flat_map(|message| quoted::message(message, session, me)).collect()
    })?;
    Ok(Outcome::Done)
}

async fn say(cx: &Context, tools: &Tools<'_>, args: Say) -> Result<Outcome, Failure> {
    let text = if args.text == "-" { send::from_stdin(cx)? } else { args.text };
    let mut asked = object(json!({"sessionKey": args.session, "message": text}));
    asked.extend(args.wait.map(|wait| ("timeoutSeconds".to_owned(), json!(wait.as_secs()))));
    asked.extend(args.reply_to.map(|id| ("replyTo".to_owned(), json!(id))));
    if args.announce {
        asked.insert("announce".to_owned(), json!(true));
    }
    // Without `--wait` the node chooses.
    let waits = args.wait.unwrap_or(WAIT_MAX).min(WAIT_MAX);
    let sent = tools.call("sessions_send", asked.into(), waits).await?;
    sent_as(cx, &sent)
}

async fn spawn(cx: &Context, tools: &Tools<'_>, args: Spawn) -> Result<Outcome, Failure> {
    let task = if args.task == "-" { send::from_stdin(cx)? } else { args.task };
    let mut asked = object(json!({"task": task}));
    asked.extend(args.agent.map(|agent| ("agentId".to_owned(), json!(agent))));
    asked.extend(args.capability.map(|word| ("capability".to_owned(), json!(word))));
    asked.extend(args.label.map(|label| ("label".to_owned(), json!(label))));
    let wait = args.wait.unwrap_or_default().min(WAIT_MAX);
    asked.insert("timeoutSeconds".to_owned(), json!(wait.as_secs()));
    let given = tools.call("sessions_spawn", asked.into(), wait).await?;
    sent_as(cx, &given)
}

/// The outcome of a send, said where people look.
fn sent_as(cx: &Context, sent: &Value) -> Result<Outcome, Failure> {
    if let Some(outcome) = refusal(cx, sent)? {
        return Ok(outcome);
    }
    let said = |field: &str| format::name(sent[field].as_str().unwrap_or_default());
    let status = sent["status"].as_str().unwrap_or_default();
    let outcome = match status {
        "timeout" => Outcome::Unanswered,
        "no_reply" => Outcome::NoReply,
        _ => Outcome::Done,
    };
    if cx.output.is_json() {
        cx.output.object(sent)?;
        return Ok(outcome);
    }
    match status {
        "timeout" => cx.output.note(&format!("clawmesh: {}", said("error")))?,
        "no_reply" => cx.output.note(&format!("clawmesh: {}", said("message")))?,
        "ok" => quoted::reply(sent).iter().try_for_each(|line| cx.output.line(line))?,
        _ => {
            let delivery = sent["delivery"]["status"].as_str().unwrap_or("accepted");
            cx.output.line(&format!("{} {delivery}", said("runId")))?;
        }
    }
    Ok(outcome)
}

/// The node says no: programs get its result, people a failure.
pub(super) fn refusal(cx: &Context, result: &Value) -> Result<Option<Outcome>, Failure> {
    if !matches!(result["status"].as_str(), Some("error" | "forbidden")) {
        return Ok(None);
    }
    if cx.output.is_json() {
        cx.output.object(result)?;
        return Ok(Some(Outcome::Refused));
    }
    let mut why = format::name(result["error"].as_str().unwrap_or("the node refuses"));
    let others = result["suggestions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let others: Vec<String> = others.map(format::name).collect();
    if !others.is_empty() {
        why += &format!(" (perhaps {})", others.join(", "));
    }
    if let Some(remedy) = remedy(result) {
        why += &format!(": {remedy}");
    }
    Err(Failure::Refused { why })
}

/// What a person does about a refusal. The node's own words are for models, which have tools and no commands.
fn remedy(result: &Value) -> Option<String> {
    if let Some(after) = result["retryAfterMs"].as_u64() {
        return Some(format!("try again in {} s", after.div_ceil(1_000)));
    }
    let why = result["error"].as_str()?;
    let has = |begins: &str| why.starts_with(begins);
    if has("no agent offers ") {
        let remedy = "name one with --agent (clawmesh agents shows who is there), or start one that offers it with \
            clawmesh mcp --capabilities WORD";
        return Some(remedy.to_owned());
    }
    let is_unknown = has("unknown agent ") || has("no such session");
    is_unknown.then(|| "clawmesh agents shows who is there".to_owned())
}

/// A time in milliseconds, to the second. Nothing of a session in which nobody has said anything.
fn time(millis: &Value) -> String {
    let at = millis
        .as_i64()
        .filter(|millis| *millis > 0)
        .and_then(|millis| Timestamp::from_millisecond(millis).ok());
    at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

//! `clawmesh inbox`: a person's equivalent of the tool `inbox_wait`, and the command that hosts run as a hook.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::args::seconds;
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::quoted;
use crate::tools::{Tools, Unanswered, WAIT_MAX};

pub(super) mod hook;

/// What was sent to you: direct messages, answers, tasks, results, mentions
///
/// You are the agent that `clawmesh mcp` is in this directory. Shows what is unread, and leaves it unread without --ack.
/// Exits 0; with --wait 0 when something is unread, 2 when --idle-timeout passes.
#[derive(Debug, clap::Args)]
pub struct Inbox {
    #[command(flatten)]
    operator: Operator,
    /// Wait until something is unread, also for a node that is not there
    #[arg(long)]
    wait: bool,
    /// What was shown counts as read: it does not come again
    #[arg(long, conflicts_with = "hook")]
    ack: bool,
    /// For a hook of a host, with its JSON on standard input: says how much is unread and of whom, and nothing more. Exits 0
    /// in any case; with --wait 2 when something is unread of which no hook has told. --hook=copilot: in the form of Copilot
    /// CLI, whose events have the names of others; --hook=codex: which session it is, too, for `clawmesh mcp --queue codex`
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "common",
        conflicts_with = "json"
    )]
    hook: Option<hook::Form>,
    /// Seconds after which --wait ends; 0 = never
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "0",
        value_parser = seconds,
        requires = "wait"
    )]
    idle_timeout: Duration,
}

impl Inbox {
    /// Whether a host has called, which takes any failure for a matter of its own.
    pub(crate) fn is_hook(&self) -> bool {
        self.hook.is_some()
    }
}

/// As many items as a node gives at once.
const LIMIT: u64 = 50;
/// Between two tries while the node is away.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn run(cx: &Context, args: Inbox) -> Result<Outcome, Failure> {
    // The shell waits by itself, and standard input is its own.
    if cx.is_held() && (args.wait || args.is_hook()) {
        return Err(Failure::NotInShell);
    }
    let tools = Tools::new(cx, &args.operator);
    let until =
        Some(args.idle_timeout).filter(|idle| !idle.is_zero()).map(|idle| Instant::now() + idle);
    match (args.hook, args.wait) {
        (Some(_), true) => Ok(hook::wait(cx, &tools, until).await),
        (Some(form), false) => Ok(hook::tell(cx, &tools, form).await),
        (None, wait) => {
            let patience = if wait { Patience::Until(until) } else { Patience::None };
            show(cx, &tools, patience, args.ack).await
        }
    }
}

/// How long something is waited for.
#[derive(Debug, Clone, Copy)]
enum Patience {
    None,
    /// Without a time: for ever.
    Until(Option<Instant>),
}

async fn show(
    cx: &Context,
    tools: &Tools<'_>,
    patience: Patience,
    ack: bool,
) -> Result<Outcome, Failure> {
    let asked = json!({"limit": LIMIT});
    let first = match patience {
        Patience::None => Some(tools.call("inbox_wait", zero(asked), Duration::ZERO).await?),
        Patience::Until(until) => {
            waited(cx, tools, &Call { tool: "inbox_wait", asked, aloud: true }, until).await?
        }
    };
    let Some(mut page) = first else { return Ok(Outcome::Idle) };
    loop {
        if let Some(outcome) = super::sessions::refusal(cx, &page)? {
            return Ok(outcome);
        }
        let count = messages(&page).len();
        let me = cx.node.agent_id.as_deref();
        cx.output.list(&page, "nothing unread", || {
            let all = messages(&page).iter();
            all.flat_map(|message| quoted::message(message, "main", me)).collect()
        })?;
        let unread = page["unread"].as_u64().unwrap_or_default();
        if !ack {
            if unread > 0 && !cx.output.is_json() {
                cx.output
                    .note(&format!("clawmesh: {unread} more unread: they come after --ack"))?;
            }
            return Ok(Outcome::Done);
        }
        if count == 0 {
            return Ok(Outcome::Done);
        }
        // All of it stands in the output: now it counts as read.
        let asked = json!({"limit": LIMIT, "cursor": page["cursor"]});
        page = tools.call("inbox_wait", zero(asked), Duration::ZERO).await?;
        if messages(&page).is_empty() {
            return super::sessions::refusal(cx, &page).map(|no| no.unwrap_or(Outcome::Done));
        }
    }
}

fn messages(page: &Value) -> &[Value] {
    page["messages"].as_array().map_or(&[], Vec::as_slice)
}

fn zero(mut asked: Value) -> Value {
    asked["timeoutSeconds"] = json!(0);
    asked
}

/// A call that waits until there is something, again and again.
#[derive(Debug)]
struct Call {
    tool: &'static str,
    asked: Value,
    /// Whether somebody is told that the node is away.
    aloud: bool,
}

/// The first result that says `ok`, or a refusal. `None`: the time has passed. A node that is away, starts again or is busy is
/// asked once more.
async fn waited(
    cx: &Context,
    tools: &Tools<'_>,
    call: &Call,
    until: Option<Instant>,
) -> Result<Option<Value>, Failure> {
    let mut pause = RETRY_FIRST;
    loop {
        let left = until.map_or(WAIT_MAX, |until| until.saturating_duration_since(Instant::now()));
        let waits = left.min(WAIT_MAX);
        let mut asked = call.asked.clone();
        // The last call of a wait looks once more, and does not wait.
        asked["timeoutSeconds"] = json!(waits.as_secs());
        let answered = tools.call(call.tool, asked, waits);
        let answered = match until {
            // A node that is stuck does not hold up the end.
            Some(until) => timeout_at(until + LAST_LOOK, answered).await.ok(),
            None => Some(answered.await),
        };
        match answered {
            Some(Ok(result)) if result["status"] == "timeout" || is_nothing(&result) => {
                pause = RETRY_FIRST;
            }
            Some(Ok(result)) if result["retryAfterMs"].is_u64() => {
                let after = result["retryAfterMs"].as_u64().map(Duration::from_millis);
                pause = after.unwrap_or(pause).clamp(RETRY_FIRST, RETRY_MAX);
            }
            Some(Ok(result)) => return Ok(Some(result)),
            Some(Err(Unanswered::Never(failure))) => return Err(failure),
            Some(Err(Unanswered::NotNow(failure))) => {
                if call.aloud && pause == RETRY_FIRST {
                    cx.output.note(&format!("clawmesh: {failure}; trying again"))?;
                }
                pause = (pause * 2).min(RETRY_MAX);
            }
            None => return Ok(None),
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        sleep(left.map_or(pause, |left| left.min(pause))).await;
    }
}

/// A page without a message is no news, whatever its status says.
fn is_nothing(page: &Value) -> bool {
    page["messages"].as_array().is_some_and(Vec::is_empty)
}

/// For the answer to the last call.
const LAST_LOOK: Duration = Duration::from_secs(2);

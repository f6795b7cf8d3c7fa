//! `clawmesh mcp --queue codex`: wakes the session of Codex that has started the program, with `codex queue`.
//!
//! Tried with 0.171.0 (from npm): see docs/agents.md, "What was tried, and what was seen". Seen: a message that is queued for a
//! thread begins a turn in an idle session, in its terminal, some seconds later; without a shared daemon, too. Which thread it
//! is says a hook (`clawmesh inbox --hook=codex`): Codex tells its servers of tools nothing of that.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::Relay;
use crate::commands::inbox::hook;
use crate::tools::Tools;

/// How often it is looked whether a session has begun.
const LOOK: Duration = Duration::from_secs(1);
/// A hook may have run before this program was there.
const BEFORE: Duration = Duration::from_secs(60);
/// Between two notices: what comes meanwhile is in the next one.
const BETWEEN: Duration = Duration::from_secs(30);
/// Codex only keeps the message.
const WITHIN: Duration = Duration::from_secs(30);

/// A host that has a queue of messages for its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Queue {
    /// `codex queue`
    Codex,
}

/// Wakes the session, until the host goes.
pub(super) async fn run(relay: &Relay, queue: Queue) {
    let since = SystemTime::now().checked_sub(BEFORE).unwrap_or(SystemTime::UNIX_EPOCH);
    let tools = Tools::new(&relay.cx, &relay.operator);
    loop {
        // Before that, what comes is told of by nobody, so that it is not taken for told.
        while hook::thread(&relay.cx, since).is_none() {
            sleep(LOOK).await;
        }
        let Some(text) = hook::news(&relay.cx, &tools).await else {
            sleep(LOOK).await;
            continue;
        };
        // It may be another one by now.
        if let Some(thread) = hook::thread(&relay.cx, since) {
            queued(relay, queue, &thread, &text).await;
        }
        sleep(BETWEEN).await;
    }
}

/// Hands a notice to the host's queue. What fails is said where hosts keep logs: the next hook tells of what is unread.
async fn queued(relay: &Relay, queue: Queue, thread: &str, text: &str) {
    let mut command = match queue {
        Queue::Codex => Command::new("codex"),
    };
    command.args(["queue", "--thread", thread, "--message", text]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (sender, ended) = oneshot::channel();
    // The process does not wait for the thread.
    std::thread::spawn(move || drop(sender.send(command.status())));
    let why = match timeout(WITHIN, ended).await {
        Ok(Ok(Ok(status))) if status.success() => return,
        Ok(Ok(Ok(status))) => status.to_string(),
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(_)) | Err(_) => "it does not end".to_owned(),
    };
    drop(relay.cx.output.note(&format!("clawmesh: codex queue: {why}")));
}

//! `clawmesh approvals`, `approve`, `deny` and `ask-approval`: a program asks people whether it may do something.

use std::time::Duration;

use client::client::Client;
use client::error::CallError;
use client::events::{Event, Events};
use protocol::event::Event as Pushed;
use protocol::object::Approval;
use protocol::request::{DecideApproval, GetApproval, JoinRoom, ListApprovals, SendMessage};
use protocol::value::{ApprovalChoice, Metadata};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::context::Context;
use crate::format::{self, name};
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// Show what agents ask to be allowed
#[derive(Debug, clap::Args)]
pub struct Approvals {
    /// Only those of this room (id, or exact name)
    pub room: Option<String>,
    /// Those that hold for always instead: `deny ID --withdraw` ends one
    #[arg(long)]
    pub always: bool,
}

/// Allow what an agent asks for
#[derive(Debug, clap::Args)]
pub struct Approve {
    /// Its id, from `clawmesh approvals`
    pub id: String,
    /// Also whenever this agent asks for the very same in this room
    #[arg(long)]
    pub always: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Refuse what an agent asks for
#[derive(Debug, clap::Args)]
pub struct Deny {
    /// Its id, from `clawmesh approvals`
    pub id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The agent is to ask for something else
    #[arg(long)]
    pub change: bool,
    /// Of one that holds for always: from now on the agent has to ask again
    #[arg(long, conflicts_with = "change")]
    pub withdraw: bool,
}

/// Ask in a room whether something may be done, and wait for the decision
///
/// Exits 0 if it was approved, 3 if it was denied, 2 if nobody decided in time: that is a no, too. 1 says that it could not be
/// asked, or that the connection was lost for good.
#[derive(Debug, clap::Args)]
pub struct AskApproval {
    /// Room id, or exact name
    pub room: String,
    /// Seconds that people have to decide: 1 to 604800
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub timeout: u64,
    /// Ids of the agents that may decide, separated by commas [default: all who may write in the room]
    #[arg(long, value_name = "AGENT", value_delimiter = ',')]
    pub approvers: Vec<String>,
    /// What is to be done: words are put together with spaces
    #[arg(last = true, required = true, value_name = "TEXT")]
    pub text: Vec<String>,
}

/// How often the node is asked anew: an event is lost with its connection.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// So much longer than the node it waits, before nobody's decision is a no.
const LATE: Duration = Duration::from_secs(15);

pub(crate) async fn list(cx: &Context, args: Approvals) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.some_room(&client, args.room.as_deref()).await?;
    let mut list = client.call(ListApprovals { room_id }).await?;
    list.approvals.retain(|approval| approval.always == args.always);
    cx.output.list(&list, "nothing waits for approval", || lines(&cx.output, &list.approvals))?;
    Ok(Outcome::Done)
}

fn lines(output: &Output, approvals: &[Approval]) -> Vec<String> {
    let row = |it: &Approval| {
        let by = it.decided_by.as_deref().map_or_else(String::new, name);
        let until = if it.always { by } else { format::clock(&it.until).to_owned() };
        vec![
            it.message_id.clone(),
            it.room_id.clone(),
            name(&it.agent_id),
            until,
            name(&it.command),
        ]
    };
    let heads = ["id", "room", "agent", "until, or by", "wants to"];
    table::lines(output, &heads, approvals.iter().map(row).collect())
}

pub(crate) async fn approve(cx: &Context, args: Approve) -> Result<Outcome, Failure> {
    let choice = if args.always { ApprovalChoice::Always } else { ApprovalChoice::Approved };
    decide(cx, args.id, choice, args.reason).await
}

pub(crate) async fn deny(cx: &Context, args: Deny) -> Result<Outcome, Failure> {
    let choice = match (args.change, args.withdraw) {
        (true, _) => ApprovalChoice::Changes,
        (_, true) => ApprovalChoice::Withdrawn,
        (false, false) => ApprovalChoice::Denied,
    };
    decide(cx, args.id, choice, args.reason).await
}

async fn decide(
    cx: &Context,
    id: String,
    decision: ApprovalChoice,
    reason: Option<String>,
) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let list = client.call(ListApprovals { room_id: None }).await?;
    let found = list.approvals.into_iter().find(|approval| approval.message_id == id);
    let Some(Approval { room_id, .. }) = found else {
        cx.output.note(&format!("approval {} is not there, or is decided", name(&id)))?;
        return Ok(Outcome::Refused);
    };
    client.call(JoinRoom { room_id: room_id.clone() }).await?;
    let ask = DecideApproval { room_id, message_id: id, decision, reason };
    let done = client.call(ask).await?;
    if !done.granted {
        cx.output.note(&format!("too late: {}", decision_of(&done.approval)))?;
        if cx.output.is_json() {
            cx.output.object(&done)?;
        }
        return Ok(Outcome::Refused);
    }
    cx.output.show(&done, || vec![decision_of(&done.approval)])?;
    Ok(Outcome::Done)
}

/// For people.
pub(crate) fn decision_of(approval: &Approval) -> String {
    let word = approval.decision.as_deref().unwrap_or("not decided yet");
    let by =
        approval.decided_by.as_deref().map_or_else(String::new, |by| format!(" by {}", name(by)));
    let why =
        approval.reason.as_deref().map_or_else(String::new, |why| format!(" ({})", name(why)));
    format!("{}: {}{by}{why}", name(&approval.command), name(word))
}

pub(crate) async fn ask(cx: &Context, args: AskApproval) -> Result<Outcome, Failure> {
    // An agent of its own: a person may decide about what a program of the same person asks.
    let (client, events) = cx.connect_alone().await?;
    let room_id = cx.join(&client, &args.room).await?;
    let command = args.text.join(" ");
    let asked =
        json!({"command": command, "timeout_secs": args.timeout, "approvers": args.approvers});
    let metadata = json!({"kind": "approval_request", "approval": asked}).to_string();
    let send = SendMessage {
        room_id: room_id.clone(),
        content: format!("[approval] {command}"),
        reply_to: None,
        mentions: args.approvers,
        metadata: Metadata::parse(&metadata).ok(),
        mesh: None,
    };
    let message_id = client.call(send).await?.message_id;
    cx.output.note(&format!("ask-approval: {message_id}: waiting for a decision"))?;
    let until = Instant::now() + Duration::from_secs(args.timeout) + LATE;
    let decided = wait(&client, events, GetApproval { room_id, message_id }, until).await?;
    let Some(approval) = decided else {
        cx.output.note("ask-approval: nobody has decided in time")?;
        return Ok(Outcome::Unanswered);
    };
    cx.output.show(&approval, || vec![decision_of(&approval)])?;
    Ok(match approval.decision.as_deref() {
        _ if approval.allowed => Outcome::Done,
        Some("expired") => Outcome::Unanswered,
        _ => Outcome::Denied,
    })
}

/// The approval when it is decided; `None`: it is not in time.
async fn wait(
    client: &Client,
    mut events: Events,
    get: GetApproval,
    until: Instant,
) -> Result<Option<Approval>, Failure> {
    let mut last = Ok(());
    while Instant::now() < until {
        match client.call(get.clone()).await {
            Ok(approval) if approval.decision.is_some() => return Ok(Some(approval)),
            Ok(_) => last = Ok(()),
            Err(error @ CallError::Refused { .. }) => return Err(error.into()),
            // The client connects again.
            Err(error) => last = Err(error),
        }
        let news = async {
            while let Some(event) = events.next().await {
                if let Event::Pushed(Pushed::ApprovalDecided(approval)) = event
                    && approval.message_id == get.message_id
                {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        // By then the node is asked.
        drop(timeout(LOOK_EVERY, news).await);
    }
    last?;
    Ok(None)
}

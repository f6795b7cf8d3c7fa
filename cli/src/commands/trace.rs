//! `clawmesh trace`.

use protocol::object::Message;
use protocol::operator::{Answer, Entry, Request, Status};
use protocol::reply::{ReachedState, Receipts};
use protocol::request::{GetHistory, GetReceipts};
use serde::Serialize;

use super::mesh::{node_name, short};
use crate::context::{Context, choose};
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::seq::Seq;

/// Messages after it among which its answers are looked for.
const ANSWERS_AMONG: u64 = 500;

/// The life of a message: who wrote it where, which node gave its number, which nodes hold it, which agents have it.
#[derive(Debug, clap::Args)]
pub struct Trace {
    /// Room id, or exact name
    #[arg(value_name = "ROOM")]
    pub room: String,
    /// Its number, also in its short form
    #[arg(value_name = "N")]
    pub seq: Seq,
    #[command(flatten)]
    pub operator: Operator,
}

/// All that could be found out. An absent field is not known.
#[derive(Debug, Serialize)]
struct Found {
    room_id: String,
    seq: u64,
    /// As the node of this machine has it in its logs. Absent: no node runs here, or it does not know the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<Entry>,
    /// As an agent reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    /// As nodes say that have the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipts: Option<Receipts>,
    /// Messages that name it in `reply_to`, of the next ones.
    answers: Vec<Message>,
}

pub(crate) async fn run(cx: &Context, args: Trace) -> Result<Outcome, Failure> {
    let here = match args.operator.status().await {
        Ok(status) => Some(status),
        // The node that is asked may be another machine's.
        Err(Failure::NotRunning { .. } | Failure::NoHome) => None,
        Err(failure) => return Err(failure),
    };
    let entry = match &here {
        Some(status) => entry(&args, status).await?,
        None => None,
    };
    let read = read(cx, &args, entry.as_ref()).await;
    let found = match (read, entry) {
        (Ok(read), entry) => Found { entry, ..read },
        // The operator may look at rooms that the key may not read.
        (Err(_), Some(entry)) => Found {
            room_id: entry.room_id.clone(),
            seq: entry.seq,
            entry: Some(entry),
            message: None,
            receipts: None,
            answers: Vec::new(),
        },
        (Err(failure), None) => return Err(failure),
    };
    cx.output.show(&found, || lines(&cx.output, &found, here.as_deref()))?;
    Ok(Outcome::Done)
}

/// The number, in the logs of the node of this machine.
async fn entry(args: &Trace, status: &Status) -> Result<Option<Entry>, Failure> {
    let Ok(room) = choose(&status.rooms, &args.room, |room| (&room.room_id, &room.name)) else {
        return Ok(None);
    };
    let ask = Request::Entry { room_id: room.room_id.clone(), seq: args.seq.0 };
    let Answer::Entry(entry) = args.operator.ask(&ask).await? else {
        return Err(Failure::strange());
    };
    Ok(Some(*entry))
}

/// All that an agent can find out.
async fn read(cx: &Context, args: &Trace, entry: Option<&Entry>) -> Result<Found, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    let seq = args.seq.0;
    let page = |limit, since_seq| GetHistory {
        room_id: room_id.clone(),
        limit,
        before: None,
        since: None,
        since_seq: Some(since_seq),
    };
    let at = client.call(page(1, seq.saturating_sub(1))).await?.messages;
    let signed = entry.and_then(|entry| entry.message.as_ref());
    let id = signed.map(|signed| signed.message_id.clone());
    let is_it = |message: &Message| match &id {
        Some(id) => message.message_id == *id,
        None => message.seq == seq,
    };
    let message = at.into_iter().find(is_it);
    let id = id.or_else(|| message.as_ref().map(|message| message.message_id.clone()));
    let mut found = Found {
        room_id: room_id.clone(),
        seq,
        entry: None,
        message,
        receipts: None,
        answers: vec![],
    };
    let Some(message_id) = id else { return Ok(found) };
    let after = client.call(page(ANSWERS_AMONG, seq)).await?.messages;
    let answers = |message: &Message| message.reply_to_message.as_deref() == Some(&*message_id);
    found.answers = after.into_iter().filter(answers).collect();
    found.receipts = Some(client.call(GetReceipts { room_id, message_id }).await?);
    Ok(found)
}

fn lines(output: &Output, found: &Found, here: Option<&Status>) -> Vec<String> {
    let mut lines = vec![format!("{} in {}", found.seq, found.room_id)];
    lines.extend(found.message.iter().map(|message| format::message(output, message)));
    match &found.entry {
        Some(entry) => lines.extend(written(entry, here)),
        None => lines.push("written not known: no node of this machine has the room".to_owned()),
    }
    let Some(receipts) = &found.receipts else {
        lines.push("held    not known".to_owned());
        return lines;
    };
    let name = |node: &str| name(here, node);
    let (held, of) = (receipts.stored.len(), receipts.of);
    lines.push(format!("held    durably by {held} of {of} nodes that have the room"));
    lines.extend(receipts.stored.iter().map(|it| format!("        {}, {}", name(&it.node), it.at)));
    let silent = |node: &String| format!("unknown {}, which did not answer", name(node));
    lines.extend(receipts.unknown.iter().map(silent));
    for reached in &receipts.agents {
        let how = match reached.state {
            ReachedState::Delivered => "it was given the message",
            ReachedState::Confirmed => "it says that it has the message",
            ReachedState::Answered => "it has answered",
        };
        let (agent, node) = (format::name(&reached.agent_id), name(&reached.node));
        lines.push(format!("agent   {agent} at {node}: {how}, {}", reached.at));
    }
    if receipts.agents.is_empty() {
        lines.push("agent   of none it is known that it has the message".to_owned());
    }
    let answer = |message: &Message| format!("answer  {}", format::message(output, message));
    lines.extend(found.answers.iter().map(answer));
    lines
}

/// Its author, and the node that gave its number.
fn written(entry: &Entry, here: Option<&Status>) -> Vec<String> {
    let name = |node: &str| name(here, node);
    let era = &entry.era;
    let mut lines = vec![match (&era.lane, &era.node_id) {
        (None, _) => format!("number  {} of the home era: where every room begins", era.n),
        (Some(lane), Some(node)) => {
            let node = name(node);
            format!("number  {} of era {}, in lane {lane}: only {node} gives these", era.n, era.c)
        }
        (Some(lane), None) => {
            let (n, c) = (era.n, era.c);
            format!("number  {n} of era {c}, in lane {lane}, which no node known here has")
        }
    }];
    let Some(message) = &entry.message else {
        lines.push("message none that this node has heard of".to_owned());
        return lines;
    };
    let node = message.node_name.as_deref().map(format::name);
    let node = node.unwrap_or_else(|| name(&message.node_id));
    let numbers: Vec<String> = message.numbers.iter().map(ToString::to_string).collect();
    lines.push(format!("message {}", message.message_id));
    lines.push(format!("signed  by node {} ({node}), {}", message.node_id, message.timestamp));
    lines.push(format!(
        "place   {} of that node's log, Lamport clock {}",
        message.log_seq, message.clock
    ));
    lines.push(format!("numbers {}", numbers.join(", ")));
    lines.push(match (message.delivered, &message.agent_id) {
        (Some(seq), Some(agent)) => {
            format!("here    delivered as {seq}, said by {}", format::name(agent))
        }
        (Some(seq), None) => {
            format!("here    delivered as {seq}; its content is not kept any more")
        }
        (None, _) => "here    not delivered yet".to_owned(),
    });
    let elsewhere =
        if message.elsewhere { "another node has it" } else { "no other node is known to have it" };
    lines.push(format!("else    {elsewhere}"));
    lines
}

/// A node's name, as far as the node of this machine knows it.
fn name(here: Option<&Status>, node: &str) -> String {
    here.map_or_else(|| short(node), |status| format::name(&node_name(status, node)))
}

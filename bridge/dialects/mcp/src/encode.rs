//! Rows: rooms, messages, votes, tasks and agents, as hosts read them.

use std::collections::BTreeMap;

use bridge::seam::event::Message;
use jiff::Timestamp;
use mesh::{
    api::{
        agenda::{TaskView, VoteView},
        command::{AgentView, RoomView, Speech},
        delivery::{Delivery, Stage},
    },
    name::id::{KeyPrint, NodeId},
    wire::{acts::TaskStatus, delivery::Reason, roster::Status},
};
use serde_json::{Value, json};

use crate::{
    keys::{Names, of_agent, provenance},
    limits::{METADATA_BYTES_MAX, TEXT_CHARS_MAX},
    outcome::object,
};

/// The agent that reads.
pub(crate) struct Reader<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) key: KeyPrint,
    /// Names of nodes, as far as they have one.
    pub(crate) nodes: BTreeMap<NodeId, String>,
}

/// RFC 3339, UTC.
pub(crate) fn timestamp(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// A text of at most so many bytes, cut between characters, and whether something was.
pub(crate) fn cut_at(text: &str, max: usize) -> (String, bool) {
    let end = text.floor_char_boundary(max);
    (text[..end].to_owned(), end < text.len())
}

/// A text of at most [`TEXT_CHARS_MAX`] characters, and whether something was cut.
pub(crate) fn cut(text: &str) -> (String, bool) {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => (format!("{}\n…(truncated)…", &text[..end]), true),
        None => (text.to_owned(), false),
    }
}

fn short(text: &str) -> String {
    cut(text).0
}

/// Fields that are not `null`.
fn filled(fields: Value) -> Value {
    object(fields).into_iter().filter(|(_, value)| !value.is_null()).collect()
}

impl Reader<'_> {
    pub(crate) fn node(&self, node: NodeId) -> Value {
        filled(json!({"id": node.to_string(), "name": self.nodes.get(&node)}))
    }

    pub(crate) fn room(&self, view: &RoomView, joined: bool) -> Value {
        filled(json!({
            "key": self.names.key(view),
            "roomId": self.names.id(view.room),
            "name": view.name,
            "description": view.description.as_deref().map(short),
            "visibility": if view.public { "public" } else { "private" },
            "encrypted": view.encrypted,
            "members": view.members,
            "lastActivity": view.last_activity_ms.unwrap_or(view.created_ms),
            "joined": joined,
        }))
    }

    /// A message of a room, and whether its text was cut.
    pub(crate) fn message(&self, room: &RoomView, message: &Message) -> (Value, bool) {
        let said = &message.said;
        let role = match message.speech {
            Speech::Thinking | Speech::Decision => "toolResult",
            Speech::Chat if *said.agent == *self.names.me => "assistant",
            Speech::Chat => "user",
        };
        let (content, truncated) = cut(&said.content);
        let metadata = said.metadata.as_ref().filter(|json| json.len() <= METADATA_BYTES_MAX);
        let left_out = said.metadata.is_some() && metadata.is_none();
        let metadata = metadata.map(|json| serde_json::from_str::<Value>(json));
        let row = json!({
            "id": message.message.to_uuid(),
            "seq": message.number.0,
            "sessionKey": self.names.key(room),
            "role": role,
            "content": (!room.encrypted).then_some(content),
            "encrypted": room.encrypted.then_some(true),
            "truncated": truncated.then_some(true),
            "timestamp": message.wall_ms,
            "from": {
                "agentId": said.agent,
                "key": of_agent(&said.agent),
                "name": said.name,
                "node": self.node(message.by),
                "sameKey": said.key == Some(self.key),
                "verified": message.proof.verified,
            },
            "provenance": provenance(&said.agent),
            "replyTo": said.reply_to,
            "expectsReply": said.conversation.map(|place| place.expects_reply),
            "conversation": said.conversation.map(|place| json!({
                "id": place.id(message.message).to_uuid(),
                "turn": place.turn,
                "maxTurns": place.max_turns,
                "hops": place.hops,
                "answers": place.answers.map(|answered| answered.to_uuid()),
            })).map(filled),
            "delivery": self.delivery(message),
            "replyWith": self.reply_with(room, message),
            "metadata": metadata.and_then(Result::ok),
            "metadataLeftOut": left_out.then_some(true),
        });
        (filled(row), truncated)
    }

    /// The fate of a request of the agent's own in a direct room: no more than nodes have said.
    fn delivery(&self, message: &Message) -> Option<Value> {
        let asks = message.said.conversation.is_some_and(|place| place.expects_reply);
        let is_own = *message.said.agent == *self.names.me;
        (asks && is_own).then(|| match &message.fate {
            Some(fate) => self.fate(fate),
            None => json!({"status": "pending"}),
        })
    }

    pub(crate) fn fate(&self, fate: &Delivery) -> Value {
        let status = match fate.stage {
            Stage::Arrived => "arrived",
            Stage::Delivered => "delivered",
            Stage::Failed => "failed",
        };
        filled(json!({
            "status": status,
            "node": self.node(fate.node),
            "at": fate.at_ms,
            "reason": fate.reason.as_ref().map(Reason::text),
        }))
    }

    /// How a message that waits for an answer is answered.
    fn reply_with(&self, room: &RoomView, message: &Message) -> Option<Value> {
        let said = &message.said;
        let waits = said.conversation.is_some_and(|place| place.expects_reply);
        (waits && *said.agent != *self.names.me).then(|| {
            json!({
                "tool": "sessions_send",
                "sessionKey": self.names.key(room),
                "replyTo": message.message.to_uuid(),
            })
        })
    }

    pub(crate) fn agent(&self, view: &AgentView, known: bool) -> Value {
        let status = match view.presence.status {
            Status::Idle => "idle",
            Status::Thinking => "thinking",
            Status::Working => "working",
            Status::Waiting => "waiting",
        };
        filled(json!({
            "agentId": view.agent,
            "sessionKey": of_agent(&view.agent),
            "name": view.name,
            "node": self.node(view.node),
            "presence": if view.lingers { "idle" } else { "online" },
            "status": status,
            "statusDetail": view.presence.detail,
            "capabilities": view.capabilities,
            "sameKey": view.key == self.key,
            "known": known,
            "dialect": if view.hosted { "mcp" } else { "clawchat" },
            "lastSeenAt": view.last_active_ms,
        }))
    }

    pub(crate) fn vote(&self, view: &VoteView) -> Value {
        let tally = view.tally.as_ref().map(|counts| {
            let counts = counts.iter().copied().chain(std::iter::repeat(0));
            let rows = view.options.iter().zip(counts).enumerate().map(|(index, (text, count))| {
                json!({"option_index": index, "option_text": text, "count": count})
            });
            rows.collect::<Vec<Value>>()
        });
        let notes = view.notes;
        let mesh = json!({
            "closing": notes.closing.then_some(true),
            "unopened": (notes.unopened > 0).then_some(notes.unopened),
            "late": (notes.late > 0).then_some(notes.late),
            "corrected": (notes.corrected > 0).then_some(notes.corrected),
        });
        let mesh = filled(mesh);
        filled(json!({
            "vote_id": view.vote.to_uuid(),
            "room_id": self.names.id(view.room),
            "title": view.title,
            "description": view.description.as_deref().map(short),
            "options": &*view.options,
            "created_by": view.created_by,
            "created_at": timestamp(view.created_ms),
            "closes_at": view.closes_ms.map(timestamp),
            "status": if view.closed { "closed" } else { "open" },
            "votes_cast": view.cast,
            "eligible_voters": view.eligible,
            "tally": tally,
            "mesh": (mesh != json!({})).then_some(mesh),
        }))
    }

    pub(crate) fn task(&self, view: &TaskView) -> Value {
        let contested = (!view.contested.is_empty()).then(|| json!({"contested": view.contested}));
        filled(json!({
            "task_id": view.task.to_uuid(),
            "room_id": self.names.id(view.room),
            "title": view.title,
            "description": view.description.as_deref().map(short),
            "status": task_status(view.status),
            "assignee": view.assignee,
            "created_by": view.created_by,
            "created_at": timestamp(view.created_ms),
            "updated_at": view.updated_ms.map(timestamp),
            "note": view.note.as_deref().map(short),
            "mesh": contested,
        }))
    }
}

pub(crate) fn task_status(status: TaskStatus) -> &'static str {
    status.basic().name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "ü".repeat(TEXT_CHARS_MAX + 1);
        let (text, truncated) = cut(&long);
        assert!(truncated && text.ends_with("ü\n…(truncated)…"));
        assert_eq!(text.chars().filter(|char| *char == 'ü').count(), TEXT_CHARS_MAX);
        assert_eq!(cut("short"), ("short".to_owned(), false));
    }
}

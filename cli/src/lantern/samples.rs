//! Messages for tests.

use protocol::object::{MeshNote, Message};
use protocol::value::Metadata;
use serde_json::{Value, json};

/// A chat message with this content.
pub(crate) fn message(seq: u64, content: &str) -> Message {
    Message {
        message_id: format!("m{seq}"),
        room_id: "r".into(),
        agent_id: "a".into(),
        agent_name: "alice".into(),
        content: content.into(),
        reply_to_message: None,
        metadata: Metadata::parse(::lantern::METADATA).ok(),
        timestamp: "2026-03-01T12:34:56Z".into(),
        seq,
        mesh: None,
    }
}

/// The same under a later number, as after a split.
pub(crate) fn late(seq: u64, numbers: &[u64], content: &str) -> Message {
    let canonical = numbers.iter().copied().min().filter(|number| *number != seq);
    let note = MeshNote {
        canonical_seq: canonical,
        late: canonical.map(|_| true),
        numbers: numbers.to_vec(),
        ..MeshNote::default()
    };
    Message { mesh: Some(note), ..message(seq, content) }
}

/// An envelope.
pub(crate) fn envelope(verb: &str, thread: Option<u64>, from: &str, body: Value) -> String {
    let mut envelope = json!({ "v": "lantern/0.1.1", "type": verb, "from": from, "body": body });
    if let Some(thread) = thread {
        envelope["thread"] = thread.into();
    }
    envelope.to_string()
}

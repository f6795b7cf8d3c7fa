//! Runs: an agent works on a private request. It says how it goes meanwhile, and is told when nobody waits any more.

use bridge::seam::{call::Stream, event::Message};
use bytes::Bytes;
use mesh::{
    api::command::NewPiece,
    name::id::{MessageId, RoomId},
    wire::piece::PieceKind,
};
use serde_json::{Value, json};

use crate::{
    connect::Right, envelope::Request, ids, problem::Problem, rooms, state::Context, style::Style,
};

/// The namespace of these messages.
pub(crate) const NAMESPACE: &str = "clawmesh.run";
/// What an agent sends.
pub(crate) const STREAM: &str = "extension.stream";

/// The request that a message ends before it was answered, and how: those who asked gave up, or waited too long.
pub(crate) fn ended(metadata: Option<&str>, reply_to: Option<&str>) -> Option<(MessageId, String)> {
    let kind = end_of(metadata)?;
    Some((MessageId::from_uuid(reply_to?)?, kind))
}

/// The same, by the metadata alone.
pub(crate) fn end_of(metadata: Option<&str>) -> Option<String> {
    const ENDS: [&str; 2] = ["cancel", "timeout"];
    let text = metadata.filter(|json| ENDS.iter().any(|kind| json.contains(kind)))?;
    let value: Value = serde_json::from_str(text).ok()?;
    let kind = value["kind"].as_str()?;
    ENDS.contains(&kind).then(|| kind.to_owned())
}

/// Tells an agent so that knows the namespace.
pub(crate) fn cancelled(style: Style, message: &Message) -> Option<Bytes> {
    let said = &message.said;
    let (run, reason) = ended(said.metadata.as_deref(), said.reply_to.as_deref())?;
    let payload = json!({"run_id": style.message(run), "reason": reason});
    let told = rooms::answer("extension.cancel", NAMESPACE, payload);
    Some(style.in_room(told, message.room))
}

/// A piece of an answer that the agent writes, for those who wait for it. It is kept nowhere, and not confirmed.
pub(crate) async fn stream(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    cx.member.rights.may(Right::Chat, false)?;
    let payload = request.data().get("payload");
    let at = payload.get("reply_to");
    let unknown = || Problem::missing("no request of this connection is called so").at(at.path());
    let named = MessageId(ids::parse_any(at.words(128)?).ok_or_else(unknown)?);
    let room: RoomId = cx.state().requests.get(&named).copied().ok_or_else(unknown)?;
    let kinds = ["chunk", "tool_call", "tool_result", "activity"];
    let kind = match payload.get("kind").required()?.one_of(&kinds)? {
        Some("chunk") => PieceKind::Chunk,
        Some("tool_call") => PieceKind::ToolCall,
        Some("tool_result") => PieceKind::ToolResult,
        Some(_) | None => PieceKind::Activity,
    };
    let json = |name: &str| payload.get(name).value().map(Value::to_string);
    let piece = NewPiece {
        room,
        stream: named.to_uuid(),
        reply_to: Some(named.to_uuid()),
        kind,
        content: payload.get("content").text(usize::MAX)?.map(str::to_owned),
        tool: payload.get("tool").text(256)?.map(str::to_owned),
        input: json("input"),
        result: json("result"),
    };
    cx.ask(Stream(piece)).await?;
    Ok(Vec::new())
}

/// A request is another one's, in a room of two, and waits for an answer.
pub(crate) fn is_request(message: &Message, own: Option<&str>) -> bool {
    let asks = message.said.conversation.is_some_and(|place| place.expects_reply);
    asks && own != Some(&*message.said.agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_says_so_ends_a_run() {
        let run = MessageId([7; 16]);
        let of = |metadata: &str| ended(Some(metadata), Some(&run.to_uuid()));
        assert_eq!(of(r#"{"kind":"cancel"}"#), Some((run, "cancel".to_owned())));
        assert_eq!(of(r#"{"kind":"timeout"}"#), Some((run, "timeout".to_owned())));
        for no in [r#"{"kind":"request","x":"cancel"}"#, r#"["cancel"]"#, "cancel", "{}"] {
            assert_eq!(of(no), None, "{no}");
        }
        assert_eq!(ended(Some(r#"{"kind":"cancel"}"#), Some("x")), None);
        assert_eq!(ended(None, Some(&run.to_uuid())), None);
    }
}

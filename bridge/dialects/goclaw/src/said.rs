//! What is said in teams, in whichever dialect, as this one's clients hear of it: the event `team.message.sent`.

use bridge::{
    read::Overheard,
    seam::event::{Event, Message},
};
use mesh::api::command::Speech;
use serde_json::{Value, json};

use crate::{limits::PREVIEW_CHARS, members::is_told, names::user_of, shared::Shared};

/// Tells clients of a message. Thoughts are left out, and direct rooms have the events of their runs.
pub(crate) fn tell(shared: &Shared, news: &Overheard) {
    let Event::Said(message) = &news.event else { return };
    let hears = |client: &crate::caller::Caller| {
        is_told(client, |key| news.facts.readable_by(key, None), &news.facts.on_record)
    };
    if message.speech != Speech::Thinking && shared.any(hears) {
        let payload = payload(message, news.facts.encrypted);
        shared.tell("team.message.sent", &payload, hears);
    }
}

fn payload(message: &Message, encrypted: bool) -> Value {
    let said = &message.said;
    let preview: String = if encrypted {
        "[encrypted]".to_owned()
    } else {
        said.content.chars().take(PREVIEW_CHARS).collect()
    };
    let to = if let [one] = &said.mentions[..] { one } else { "broadcast" };
    let mut told = json!({
        "team_id": message.room.to_uuid(),
        "from_agent_key": &*said.agent,
        "to_agent_key": to,
        "message_type": type_of(message),
        "preview": preview,
        "message_id": message.message.to_uuid(),
        "seq": message.number.0,
    });
    if let Some(user) = user_of(&said.agent) {
        told["user_id"] = json!(user);
    }
    told
}

/// A message that stands for something else says so in its metadata: a commit, a request for approval.
fn type_of(message: &Message) -> String {
    if message.speech == Speech::Decision {
        return "decision".to_owned();
    }
    let told = message.said.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let kind = told.as_ref().and_then(|told: &Value| told["kind"].as_str());
    let known = kind.filter(|kind| kind.starts_with("git.") || kind.starts_with("approval_"));
    known.unwrap_or("chat").to_owned()
}

//! Messages, as clients are told of them.

use bridge::{
    seam::event::Message,
    shown::{ROOM_ONLY, is_room_only},
};
use mesh::{
    api::command::Speech,
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
};
use serde_json::{Map, Value, json};

use crate::{
    approvals,
    envelope::{Told, cut},
    git, ids,
    limits::{ATTACHMENTS_MAX, HTML_CHARS_MAX, MENTIONS_MAX, TEXT_CHARS_MAX},
    names, runs,
    style::{Style, shown},
};

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saying<'a> {
    pub(crate) room: RoomId,
    pub(crate) message: MessageId,
    pub(crate) wall_ms: u64,
    pub(crate) speech: Speech,
    pub(crate) agent: &'a str,
    pub(crate) name: &'a str,
    pub(crate) content: &'a str,
    pub(crate) reply_to: Option<&'a str>,
    pub(crate) mentions: &'a [AgentId],
    pub(crate) metadata: Option<&'a str>,
    pub(crate) key: Option<KeyPrint>,
    /// It was said in the direct room of two.
    pub(crate) private: bool,
}

/// A mention at its place in the text, in UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) kind: &'static str,
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Mention {
    pub(crate) fn shown(&self) -> Value {
        let Mention { kind, target, name, start, end } = self;
        json!({
            "type": kind, "target": target, "display_name": shown(name),
            "start_pos": start, "end_pos": end,
        })
    }

    /// Back, out of a message's metadata: another node may have let anything through. `units`: the length of the text.
    fn read(value: &Value, units: u64) -> Option<Mention> {
        let text = |name: &str| value[name].as_str();
        let kinds = ["agent", "human", "all"];
        let kind = kinds.into_iter().find(|kind| text("type") == Some(kind))?;
        let (start, end) = (value["start_pos"].as_u64()?, value["end_pos"].as_u64()?);
        let (target, name) = (text("target")?.to_owned(), text("display_name")?.to_owned());
        let sound = start < end && end <= units;
        sound.then_some(Mention { kind, target, name, start, end })
    }
}

/// Under this name the dialect keeps what others have no word for.
pub(crate) const OWN: &str = "clawtank";

/// Length of a text in UTF-16 units.
pub(crate) fn units(text: &str) -> u64 {
    u64::try_from(text.encode_utf16().count()).unwrap_or(u64::MAX)
}

impl<'a> Saying<'a> {
    pub(crate) fn of(message: &'a Message, private: bool) -> Saying<'a> {
        let said = &*message.said;
        Saying {
            room: message.room,
            message: message.message,
            wall_ms: message.wall_ms,
            speech: message.speech,
            agent: &said.agent,
            name: &said.name,
            content: &said.content,
            reply_to: said.reply_to.as_deref(),
            mentions: &said.mentions,
            metadata: said.metadata.as_deref(),
            key: said.key,
            private,
        }
    }

    /// The dialect's own part of the metadata.
    fn own(&self) -> Map<String, Value> {
        let all = self.metadata.and_then(|json| serde_json::from_str::<Value>(json).ok());
        match all.and_then(|mut all| all.get_mut(OWN).map(Value::take)) {
            Some(Value::Object(own)) => own,
            Some(_) | None => Map::new(),
        }
    }

    /// The room that clients are told it was said in: one that is for one alone is shown where it was sent.
    pub(crate) fn shown_in(&self) -> RoomId {
        self.room_of(&self.own())
    }

    fn room_of(&self, own: &Map<String, Value>) -> RoomId {
        let room = own.get("room_id").filter(|_| self.private).and_then(Value::as_str);
        room.and_then(RoomId::from_uuid).unwrap_or(self.room)
    }

    /// Whether its author is a person.
    fn is_human(&self) -> bool {
        names::user_of(self.agent).is_some()
    }

    pub(crate) fn told(&self, style: Style) -> Told {
        // Some messages are of other types.
        if let Some(told) = git::told(self, style).or_else(|| approvals::told(self, style)) {
            return told;
        }
        let own = self.own();
        // Before places of mentions are counted.
        let (text, is_cut) = cut(&style.eyes.verbatim(self.content), TEXT_CHARS_MAX);
        let (mentions, elsewhere) = self.mentioned(&own, &text);
        let room = self.room_of(&own);
        let mut content = json!({
            "text": text,
            "mentions": mentions.iter().map(Mention::shown).collect::<Vec<_>>(),
            "attachments": attachments(&own),
        });
        let html = html(&text, &mentions);
        if html.chars().count() <= HTML_CHARS_MAX {
            content["formatted_html"] = json!(html);
        }
        let reply_to = self.reply_to.and_then(ids::parse_any).map(MessageId);
        let reply_to = reply_to.map(|id| style.message(id));
        let mut data = json!({
            "message_id": style.message(self.message),
            "room_id": style.room(room),
            "visibility": self.visibility(),
            "thread_info": reply_to.as_ref().map_or(json!({}), |id| json!({"reply_to": id})),
        });
        let kind = if self.is_human() {
            data["author"] = style.user(self.agent, Some(self.name));
            data["edit_info"] = json!({"edited": false, "edit_history": []});
            "chat.human_message"
        } else {
            self.as_agent(style, &own, (&mut data, &mut content), reply_to);
            "chat.agent_message"
        };
        if self.private && runs::end_of(self.metadata).is_some() {
            content["message_type"] = json!("cancel");
        }
        data["content"] = content;
        let id = names::event_id(&[kind.as_bytes(), &self.message.0]);
        let told = Told::of(id, kind, self.wall_ms, data);
        let told = told.with("room_id", style.room(room)).noting("truncated", is_cut);
        if elsewhere.is_empty() { told } else { told.with("mentions_elsewhere", elsewhere) }
    }

    fn as_agent(
        &self,
        style: Style,
        own: &Map<String, Value>,
        (data, content): (&mut Value, &mut Value),
        reply_to: Option<String>,
    ) {
        data["agent"] = json!({
            "agent_id": self.agent,
            "display_name": shown(self.name),
            "owner": style.owner(self.key),
        });
        let said = own.get("message_type").and_then(Value::as_str);
        content["message_type"] = json!(match self.speech {
            Speech::Thinking => "thinking",
            Speech::Decision => "decision",
            Speech::Chat => said.unwrap_or("response"),
        });
        if let Some(level) = own.get("confidence_level").filter(|level| level.is_number()) {
            content["confidence_level"] = level.clone();
        }
        let visible = own.get("reasoning_visible").and_then(Value::as_bool);
        content["reasoning_visible"] = json!(visible.unwrap_or(false));
        let mut context = match own.get("context") {
            Some(Value::Object(context)) => context.clone(),
            Some(_) | None => Map::new(),
        };
        context.remove("in_reply_to");
        // One that nobody knows is kept as it was said.
        if let Some(id) = reply_to.or_else(|| self.reply_to.map(str::to_owned)) {
            context.insert("in_reply_to".to_owned(), json!(id));
        }
        data["context"] = Value::Object(context);
        let used = own.get("capabilities_used").filter(|used| used.is_array());
        data["capabilities_used"] = used.cloned().unwrap_or_else(|| json!([]));
    }

    /// It is not for those who look on, nor is a thought.
    pub(crate) fn is_for_members(&self) -> bool {
        self.speech == Speech::Thinking
            || is_room_only(self.metadata)
            || approvals::is_of_one(self.metadata)
    }

    fn visibility(&self) -> &'static str {
        match (self.private, is_room_only(self.metadata)) {
            (true, _) => "private",
            (false, true) => ROOM_ONLY,
            (false, false) => "public",
        }
    }

    /// Mentions with a place in the text, and the ids of those without one.
    fn mentioned(&self, own: &Map<String, Value>, text: &str) -> (Vec<Mention>, Vec<String>) {
        let units = units(text);
        let listed = own.get("mentions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let known = |mention: &Mention| {
            mention.kind == "all" || self.mentions.iter().any(|agent| **agent == *mention.target)
        };
        let read = listed.iter().take(MENTIONS_MAX);
        let mut placed: Vec<Mention> =
            read.filter_map(|value| Mention::read(value, units)).filter(known).collect();
        let mut elsewhere = Vec::new();
        if placed.iter().any(|mention| mention.kind == "all") {
            return (placed, elsewhere);
        }
        for agent in self.mentions {
            if placed.iter().any(|mention| *mention.target == **agent) {
                continue;
            }
            match find(text, agent) {
                Some(mention) => placed.push(mention),
                None => elsewhere.push(agent.to_string()),
            }
        }
        (placed, elsewhere)
    }
}

/// Where a text says `@AGENT`.
fn find(text: &str, agent: &str) -> Option<Mention> {
    let name = names::user_of(agent).unwrap_or(agent);
    let at = text.find(&format!("@{name}"))?;
    let start = units(&text[..at]);
    let kind = if names::user_of(agent).is_some() { "human" } else { "agent" };
    let end = start + 1 + units(name);
    Some(Mention { kind, target: agent.to_owned(), name: name.to_owned(), start, end })
}

/// Descriptions of attachments, as they were checked when they were sent here; another node may have let anything through.
fn attachments(own: &Map<String, Value>) -> Vec<Value> {
    let listed = own.get("attachments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let sound = |value: &&Value| {
        let text = |name: &str| value[name].as_str();
        let url = value.get("url").is_none() || text("url").is_some_and(is_https);
        let id = text("id").is_some_and(|id| ids::digits(id) == Some(id));
        let texts = text("filename").is_some() && text("content_type").is_some();
        id && texts && value["size_bytes"].is_u64() && url
    };
    listed.iter().take(ATTACHMENTS_MAX).filter(sound).cloned().collect()
}

pub(crate) fn is_https(url: &str) -> bool {
    url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty())
        && !url.contains(char::is_whitespace)
        && url.is_ascii()
}

/// The text as HTML: nothing of a client's own markup is passed on. Of mentions that overlap the first is marked.
fn html(text: &str, mentions: &[Mention]) -> String {
    const END: &str = "</span>";
    let mut places: Vec<(u64, u64)> =
        mentions.iter().map(|mention| (mention.start, mention.end)).collect();
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let mut html = String::with_capacity(text.len());
    let mut open: Option<u64> = None;
    let mut at = 0;
    for c in text.chars() {
        if open.is_some_and(|end| end <= at) {
            html.push_str(END);
            open = None;
        }
        while places.next_if(|(start, _)| *start < at).is_some() {}
        if open.is_none()
            && let Some((_, end)) = places.next_if(|(start, _)| *start == at)
        {
            html.push_str("<span class=\"mention\">");
            open = Some(end);
        }
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
        at += u64::try_from(c.len_utf16()).unwrap_or(1);
    }
    if open.is_some() {
        html.push_str(END);
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention(start: u64, end: u64) -> Mention {
        let (target, name) = ("bob".to_owned(), "bob".to_owned());
        Mention { kind: "agent", target, name, start, end }
    }

    #[test]
    fn markup_is_the_nodes_own() {
        let text = "<script>@bob</script> \u{1f600}@bob";
        let (first, second) = (find(text, "bob").unwrap(), mention(24, 28));
        assert_eq!((first.start, first.end), (8, 12));
        let html = html(text, &[second, first, mention(9, 11), mention(99, 100)]);
        let expect = "&lt;script&gt;<span class=\"mention\">@bob</span>&lt;/script&gt; \u{1f600}<span class=\"mention\">@bob</span>";
        assert_eq!(html, expect);
    }

    #[test]
    fn a_mention_that_another_node_let_through_is_no_mention() {
        let sound = mention(0, 4).shown();
        assert_eq!(Mention::read(&sound, 4), Some(mention(0, 4)));
        assert_eq!(Mention::read(&sound, 3), None, "it is longer than the text");
        assert_eq!(Mention::read(&mention(4, 4).shown(), 9), None);
        assert_eq!(Mention::read(&json!({"type": "agent"}), 9), None);
    }
}

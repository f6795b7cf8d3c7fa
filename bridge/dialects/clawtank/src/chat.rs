//! Messages of clients.

use bridge::{
    seam::{
        call::{FindAgent, Look, OneMessage, OpenDirect, Say},
        event::{Event, Message},
    },
    shown::{ROOM_ONLY, VISIBILITY},
};
use bytes::Bytes;
use mesh::{
    api::command::{AgentView, Encryption, SaidOk, Speech},
    name::id::{AgentId, MessageId, RoomId},
};
use serde_json::{Map, Value, json};

use crate::{
    connect::{Kind, Right},
    envelope::Request,
    fields::At,
    ids,
    limits::{
        ATTACHMENTS_MAX, CHAT_PER_MINUTE, MENTIONS_MAX, NAME_CHARS_MAX, ROOM_CHAT_PER_MINUTE,
        TEXT_CHARS_MAX,
    },
    names,
    problem::Problem,
    rooms,
    said::{Mention, OWN, Saying, is_https, units},
    shared::{Done, Place, Rate},
    state::Context,
};

/// The beginning of a text that is encrypted end to end. Whether it is one, its readers see.
const BLOB: &str = "clw1:";

/// A message that is to be said.
struct Draft {
    text: String,
    mentions: Vec<AgentId>,
    reply_to: Option<String>,
    /// Where the message is that it answers.
    answered: Option<Place>,
    own: Map<String, Value>,
    /// No stranger is to see it.
    room_only: bool,
    /// The id that the client calls it by.
    alias: Option<MessageId>,
    /// Whether an answer is waited for, if that is known.
    expects_reply: Option<bool>,
}

/// Says something, and tells the client as everybody.
pub(crate) async fn say(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let kind = match cx.member.kind {
        Kind::Human => "chat.human_message",
        Kind::Agent => "chat.agent_message",
    };
    if request.kind != kind {
        let text = format!("this connection says {kind}");
        return Err(Problem::denied(text).because("author"));
    }
    let agent = cx.agent()?.clone();
    cx.member.rights.may(Right::Chat, false)?;
    let data = request.data();
    let named = data.get("room_id");
    let room = rooms::named(cx, named.words(256)?).await?;
    // Of a room that must not be known nothing is said, not even what is wrong.
    cx.ask(Look(room)).await?;
    rooms::takes(&rooms::set(cx, room).await?)?;
    let is_private = data.get("visibility").one_of(&["public", "private", "room_only"])?;
    let private = is_private == Some("private");
    let draft = draft(cx, room, &data).await?;
    cx.shared.take(&agent, Rate::per_minute("chat messages", CHAT_PER_MINUTE))?;
    cx.shared.take_in(room, Rate::per_minute("chat messages in the room", ROOM_CHAT_PER_MINUTE))?;
    let (room, shown, draft) = if private {
        let other = only_mention(&data, &draft)?;
        let direct = cx.ask(OpenDirect::with(other.clone())).await?;
        (direct.room, room, draft.privately(room, &other))
    } else {
        match draft.answered.filter(|at| at.room != room) {
            // An answer to a message that is shown here and was said between two is said between these two.
            Some(at) => (at.room, room, draft.answering(room)),
            None => (room, room, draft.publicly(is_private)),
        }
    };
    let said = put(cx, (room, shown), draft, request).await;
    said.map(|frame| vec![frame])
}

impl Draft {
    /// Into the direct room with another one. An answer is waited for if that is an agent.
    fn privately(mut self, shown: RoomId, other: &AgentId) -> Draft {
        let asks = self.reply_to.is_none() && names::user_of(other).is_none();
        self.expects_reply = Some(asks);
        self.own.insert("visibility".to_owned(), json!("private"));
        self.own.insert("room_id".to_owned(), json!(shown.to_uuid()));
        self
    }

    fn answering(mut self, shown: RoomId) -> Draft {
        self.own.insert("room_id".to_owned(), json!(shown.to_uuid()));
        self
    }

    fn publicly(mut self, visibility: Option<&str>) -> Draft {
        if visibility == Some("room_only") {
            self.room_only = true;
        }
        self
    }

    fn metadata(&self) -> Option<String> {
        let mut all = Map::new();
        if self.room_only {
            all.insert(VISIBILITY.to_owned(), json!(ROOM_ONLY));
        }
        if !self.own.is_empty() {
            all.insert(OWN.to_owned(), Value::Object(self.own.clone()));
        }
        (!all.is_empty()).then(|| Value::Object(all).to_string())
    }
}

/// The one to whom a private message goes.
fn only_mention(data: &At<'_>, draft: &Draft) -> Result<AgentId, Problem> {
    match &*draft.mentions {
        [one] => Ok(one.clone()),
        _ => {
            let at = data.get("content").get("mentions");
            Err(at.bad("a private message has exactly one mention"))
        }
    }
}

/// Says it in a room, which is shown as another one if it is said between two.
async fn put(
    cx: &Context,
    (room, shown): (RoomId, RoomId),
    draft: Draft,
    request: &Request,
) -> Result<Bytes, Problem> {
    let agent = cx.agent()?.clone();
    let direct = cx.shared.desk.is_direct(room);
    let metadata = draft.metadata();
    let is_blob = draft.text.starts_with(BLOB);
    let say = Say {
        encryption: if is_blob { Encryption::EndToEnd } else { Encryption::None },
        reply_to: draft.reply_to.clone(),
        mentions: draft.mentions.iter().map(|agent| agent.to_string()).collect(),
        metadata: metadata.clone(),
        dedup: request.related.id.clone(),
        expects_reply: draft.expects_reply,
        ..Say::chat(room, draft.text.clone())
    };
    let SaidOk { message, fresh, .. } = cx.ask(say).await?;
    let place = Place { room, message };
    if let Some(alias) = draft.alias {
        // Two that came at the same moment: the first has it.
        let _: bool = cx.shared.alias(shown, alias, place);
    }
    if shown != room {
        let _: bool = cx.shared.alias(shown, message, place);
    }
    if let Some(id) = &request.related.id {
        cx.shared.done(&agent, id, Done::Message(room, message));
    }
    let Some(fresh) = fresh else { return again(cx, room, message, request).await };
    tell_others(cx, &agent, place).await;
    let saying = Saying {
        room,
        message,
        wall_ms: fresh.wall_ms,
        speech: Speech::Chat,
        agent: &agent,
        name: &fresh.name,
        content: &draft.text,
        reply_to: draft.reply_to.as_deref(),
        mentions: &draft.mentions,
        metadata: metadata.as_deref(),
        key: Some(cx.member.holder.key()),
        private: direct,
    };
    Ok(cx.frame(saying.told(cx.style()).answering(&request.related)))
}

/// Tells other connections of the same agent of a message, as everybody.
pub(crate) async fn tell_others(cx: &Context, agent: &AgentId, Place { room, message }: Place) {
    let others = cx.shared.others(agent, cx.member.connection);
    if others.is_empty() {
        return;
    }
    if let Ok(Some(said)) = cx.ask(OneMessage { room, message }).await {
        // A full channel: such a client does not take what it is told.
        others.into_iter().for_each(|news| drop(news.try_send(Event::Said(said.clone()))));
    }
}

/// Confirms a message that was said before.
pub(crate) async fn again(
    cx: &Context,
    room: RoomId,
    message: MessageId,
    request: &Request,
) -> Result<Bytes, Problem> {
    let found: Option<Message> = cx.ask(OneMessage { room, message }).await?;
    let gone = || Problem::missing("the first message is no longer kept");
    let found = found.ok_or_else(gone)?;
    let told = Saying::of(&found, cx.shared.desk.is_direct(room)).told(cx.style());
    Ok(cx.frame(told.answering(&request.related)))
}

async fn draft(cx: &Context, room: RoomId, data: &At<'_>) -> Result<Draft, Problem> {
    let content = data.get("content").required()?;
    let text = content.get("text").words(TEXT_CHARS_MAX)?;
    content.get("formatted_html").text(8_000)?;
    let edited = data.get("edit_info").get("edited");
    if edited.flag()? == Some(true) {
        return Err(edited.bad("edits are not kept").instead("say the new text as a message"));
    }
    let mut own = own_part(data, &content)?;
    let mentions = mentions(cx, room, (&content, text)).await?;
    let listed = mentions.iter().map(|(mention, _)| mention.shown()).collect::<Vec<_>>();
    if !listed.is_empty() {
        own.insert("mentions".to_owned(), Value::Array(listed));
    }
    let mut told: Vec<AgentId> = mentions.into_iter().flat_map(|(_, agents)| agents).collect();
    told.sort_unstable();
    told.dedup();
    let alias = alias(cx, room, &data.get("message_id")).await?;
    let (reply_to, answered) = answered(cx, room, data)?;
    let text = text.to_owned();
    Ok(Draft {
        text,
        mentions: told,
        reply_to,
        answered,
        own,
        room_only: false,
        alias,
        expects_reply: None,
    })
}

/// The id that a client chose: nothing else is called so in the room, and no message has it as its own id.
pub(crate) async fn alias(
    cx: &Context,
    room: RoomId,
    at: &At<'_>,
) -> Result<Option<MessageId>, Problem> {
    let Some(text) = at.clone().required()?.id()? else { return Ok(None) };
    let Some(message) = ids::parse(text).map(MessageId) else { return Ok(None) };
    let alias = Some(message);
    let is_taken = cx.shared.aliased(room, message).is_some()
        || cx.ask(OneMessage { room, message }).await?.is_some();
    if is_taken {
        let text = "this id is another one's in this room";
        return Err(Problem::conflict(text, "id_taken").at(at.path()));
    }
    Ok(alias)
}

/// The message that is answered, as the mesh knows it, and where it is. One that nobody knows is kept as it was written.
fn answered(
    cx: &Context,
    room: RoomId,
    data: &At<'_>,
) -> Result<(Option<String>, Option<Place>), Problem> {
    let thread = data.get("thread_info").get("reply_to");
    let at = if thread.is_there() { thread } else { data.get("context").get("in_reply_to") };
    let Some(text) = at.text(128)? else { return Ok((None, None)) };
    let Some(id) = ids::parse_any(text).map(MessageId) else {
        return Ok((Some(text.to_owned()), None));
    };
    let place = cx.shared.aliased(room, id);
    let message = place.map_or(id, |place| place.message);
    Ok((Some(message.to_uuid()), place))
}

/// What other dialects have no word for.
fn own_part(data: &At<'_>, content: &At<'_>) -> Result<Map<String, Value>, Problem> {
    let mut own = Map::new();
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            own.insert(name.to_owned(), value);
        }
    };
    keep("message_type", content.get("message_type").text(64)?.map(|text| json!(text)));
    let confidence = content.get("confidence_level").number(0.0, 1.0)?;
    keep("confidence_level", confidence.map(|level| json!(level)));
    keep("reasoning_visible", content.get("reasoning_visible").flag()?.map(|flag| json!(flag)));
    let used = data.get("capabilities_used").texts(64, 256)?;
    keep("capabilities_used", (!used.is_empty()).then(|| json!(used)));
    let mut context = data.get("context").object()?.cloned().unwrap_or_default();
    context.remove("in_reply_to");
    keep("context", (!context.is_empty()).then_some(Value::Object(context)));
    let files = content.get("attachments").list(ATTACHMENTS_MAX)?;
    let files: Vec<Value> = files.iter().map(attachment).collect::<Result<_, _>>()?;
    keep("attachments", (!files.is_empty()).then_some(Value::Array(files)));
    Ok(own)
}

/// A description: the node neither fetches nor keeps the file.
fn attachment(at: &At<'_>) -> Result<Value, Problem> {
    let (id, url) = (at.get("id").required()?, at.get("url"));
    let bare = id.id()?.and_then(ids::digits).unwrap_or_default();
    let mut file = json!({
        "id": bare,
        "filename": at.get("filename").words(255)?,
        "content_type": at.get("content_type").words(255)?,
        "size_bytes": at.get("size_bytes").required()?.whole(u64::MAX)?,
    });
    for (name, at) in [("url", url), ("thumbnail_url", at.get("thumbnail_url"))] {
        if let Some(text) = at.text(2_048)? {
            if !is_https(text) {
                return Err(at.bad("must be an https URL"));
            }
            file[name] = json!(text);
        }
    }
    Ok(file)
}

/// Mentions, each with the agents that are told.
async fn mentions(
    cx: &Context,
    room: RoomId,
    (content, text): (&At<'_>, &str),
) -> Result<Vec<(Mention, Vec<AgentId>)>, Problem> {
    let listed = content.get("mentions").list(MENTIONS_MAX)?;
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let (length, me) = (units(text), cx.me()?);
    let members = cx.shared.census(&me, room).await?;
    let mut all = Vec::with_capacity(listed.len());
    for at in &listed {
        let mention = mention(at, length)?;
        let told = if mention.kind == "all" {
            let others = members.iter().map(|member| member.agent.clone());
            let others: Vec<AgentId> = others.filter(|agent| Some(agent) != me.agent()).collect();
            if others.len() > MENTIONS_MAX {
                return Err(at.bad(format!("the room has more than {MENTIONS_MAX} members")));
            }
            others
        } else {
            vec![target(cx, &members, (at, &mention.target)).await?]
        };
        let target = told.first().filter(|_| mention.kind != "all").map(|agent| agent.to_string());
        let kind = target.as_deref().map_or(mention.kind, |agent| {
            if names::user_of(agent).is_some() { "human" } else { "agent" }
        });
        let target = target.unwrap_or(mention.target);
        all.push((Mention { kind, target, ..mention }, told));
    }
    Ok(all)
}

fn mention(at: &At<'_>, length: u64) -> Result<Mention, Problem> {
    let kind = at.get("type").required()?.one_of(&["agent", "human", "all"])?.unwrap_or("agent");
    let target = at.get("target").words(256)?;
    let name = at.get("display_name").required()?.text(NAME_CHARS_MAX)?.unwrap_or_default();
    let (start, end) = (at.get("start_pos").required()?, at.get("end_pos").required()?);
    let (start_pos, end_pos) = (start.whole(length)?, end.whole(length)?);
    let (Some(start_pos), Some(end_pos)) = (start_pos, end_pos) else {
        return Err(at.bad("must have a place in the text"));
    };
    if start_pos >= end_pos {
        return Err(end.bad("must be greater than start_pos"));
    }
    let kind = if target == "all" { "all" } else { kind };
    let (target, name) = (target.to_owned(), name.to_owned());
    Ok(Mention { kind, target, name, start: start_pos, end: end_pos })
}

/// The agent that is meant by its own id, or by the id of a person.
async fn target(
    cx: &Context,
    members: &[AgentView],
    (at, named): (&At<'_>, &str),
) -> Result<AgentId, Problem> {
    called(cx, members, (&at.get("target"), named)).await
}

/// The same, of a field.
pub(crate) async fn called(
    cx: &Context,
    members: &[AgentView],
    (at, named): (&At<'_>, &str),
) -> Result<AgentId, Problem> {
    let id = ids::parse(named);
    let is_it = |member: &&AgentView| {
        *member.agent == *named || id.is_some_and(|id| id == names::id_of(&member.agent))
    };
    if let Some(member) = members.iter().find(is_it) {
        return Ok(member.agent.clone());
    }
    let found = cx.ask(FindAgent(named.into())).await?;
    let unknown = || at.bad("nobody here is called so");
    found.into_iter().next().map(|view| view.agent).ok_or_else(unknown)
}

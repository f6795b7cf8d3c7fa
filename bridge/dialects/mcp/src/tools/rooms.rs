//! Rooms: finding them, being in them, and speaking there.

use bridge::seam::call::{CreateRoom, DescribeRoom, Join, Leave, ListRooms, NameNodes, Say, Tip};
use mesh::{
    api::command::{NewRoom, RoomView, Speech},
    name::id::{NodeId, RoomId},
};
use serde_json::json;

use crate::{
    arguments::Arguments,
    asking::Asking,
    encode::Reader,
    keys::Names,
    limits::{KEY_CHARS_MAX, RESULT_ROWS_BYTES, ROWS_MAX, SEARCH_CHARS_MAX},
    outcome::{No, Outcome, object},
    sessions::is_missing,
};

impl Asking {
    pub(crate) fn names(&self) -> Names<'_> {
        Names { lobby: self.shared.settings.lobby, me: &self.agent }
    }

    /// For rows without nodes.
    pub(crate) fn plain_reader(&self) -> Reader<'_> {
        Reader {
            names: self.names(),
            key: self.reader.key(),
            nodes: std::collections::BTreeMap::new(),
        }
    }

    /// For rows that name these nodes.
    pub(crate) async fn reader_of(
        &self,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Result<Reader<'_>, No> {
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let names = self.read(NameNodes(nodes.clone())).await?;
        let named = nodes.into_iter().zip(names);
        let nodes = named.filter_map(|(node, name)| Some((node, name?))).collect();
        Ok(Reader { names: self.names(), key: self.reader.key(), nodes })
    }

    /// The room that a text means, if the agent may know of it.
    pub(crate) async fn find_room(&self, text: &str) -> Result<RoomView, No> {
        let found = self.find_any_room(text).await;
        self.shown_room(text, found)
    }

    async fn find_any_room(&self, text: &str) -> Result<RoomView, No> {
        if let Some(room) = self.names().parse_id(text) {
            let found = self.shared.desk.ask(&self.reader, DescribeRoom(room)).await;
            match found {
                Ok(info) => return Ok(info.room),
                Err(refusal) if !is_missing(&refusal) => return Err(refusal.into()),
                // A room of another key is as one that is not there. A name may look like an id.
                Err(_) => {}
            }
        }
        let rooms = self.read(ListRooms { parent: None }).await?;
        self.names().find(text, &rooms).cloned()
    }

    /// The room that an argument names.
    pub(crate) async fn room(&self, arguments: &Arguments) -> Result<RoomView, No> {
        let text = arguments.required("room", KEY_CHARS_MAX)?;
        self.find_room(&text).await
    }

    /// The same, if the agent may read it: most agents read only rooms that they are in.
    pub(crate) async fn room_inside(&self, arguments: &Arguments) -> Result<RoomView, No> {
        let room = self.room(arguments).await?;
        let named = arguments.required("room", KEY_CHARS_MAX)?;
        self.inside(&room, &named).await?;
        Ok(room)
    }

    /// Whether the agent may read a room that was asked for as `named`.
    pub(crate) async fn inside(&self, room: &RoomView, named: &str) -> Result<(), No> {
        if self.may_read(room).await? {
            return Ok(());
        }
        // Where nothing is hidden it is told the key that the room has everywhere.
        let key = self.names().key(room);
        Err(self.not_visible(if self.is_confined() { named } else { &key }))
    }
}

pub(super) async fn list(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let search = arguments.filled("search", SEARCH_CHARS_MAX)?.map(|text| text.to_lowercase());
    let joined = arguments.flag("joined")?;
    let limit = arguments.integer("limit", 1, ROWS_MAX)?.unwrap_or(50);
    let offset = arguments.integer("offset", 0, u64::MAX)?.unwrap_or(0);
    let (seats, mut rooms) =
        (asking.seats().await?, asking.read(ListRooms { parent: None }).await?);
    let reader = asking.plain_reader();
    let is_in = |view: &RoomView| seats.contains(&view.room);
    rooms.retain(|view| asking.may_see(view));
    rooms.retain(|view| {
        let texts = [Some(&*view.name), view.description.as_deref()];
        let is_found = |search: &String| {
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(search))
                || reader.names.key(view).contains(search)
        };
        search.as_ref().is_none_or(is_found) && joined.is_none_or(|joined| is_in(view) == joined)
    });
    rooms.sort_by_key(|view| {
        let lively = view.last_activity_ms.unwrap_or(view.created_ms);
        (std::cmp::Reverse(lively), view.room)
    });
    let page = Page::of(rooms.len(), offset, limit);
    let rows: Vec<_> = page.cut(&rooms).iter().map(|view| reader.room(view, is_in(view))).collect();
    Ok(page.fields("rooms", rows))
}

/// A part of a list.
pub(super) struct Page {
    all: usize,
    offset: usize,
    limit: usize,
}

impl Page {
    pub(super) fn of(all: usize, offset: u64, limit: u64) -> Page {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Page { all, offset: whole(offset).min(all), limit: whole(limit) }
    }

    pub(super) fn cut<'r, R>(&self, rows: &'r [R]) -> &'r [R] {
        &rows[self.offset..self.end()]
    }

    fn end(&self) -> usize {
        self.offset.saturating_add(self.limit).min(self.all)
    }

    /// With as many rows as fit.
    pub(super) fn fields(
        &self,
        name: &str,
        mut rows: Vec<serde_json::Value>,
    ) -> serde_json::Map<String, serde_json::Value> {
        let mut left = RESULT_ROWS_BYTES;
        let fits = |row: &serde_json::Value| {
            let bytes = row.to_string().len() + 1;
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        };
        let fitting = rows.iter().map(fits).take_while(|fits| *fits).count();
        rows.truncate(fitting);
        let next = self.offset + rows.len();
        let has_more = next < self.all;
        let mut fields = object(json!({"count": rows.len(), "hasMore": has_more}));
        fields.insert(name.to_owned(), json!(rows));
        if has_more {
            fields.insert("nextOffset".to_owned(), json!(next));
        }
        fields
    }
}

pub(super) async fn join(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let text = arguments.required("room", KEY_CHARS_MAX)?;
    let create = arguments.flag("create")?.unwrap_or(false);
    let public = arguments.flag("public")?.unwrap_or(false);
    let description = arguments.text("description")?;
    let (room, created) = match asking.find_room(&text).await {
        Ok(room) => (room, false),
        // A confined agent is told that it sees no such room: it makes none that it would not see.
        Err(No::Error { more, .. }) if create && more.contains_key("suggestions") => {
            let name = name_of(&text)?;
            let (parent, ephemeral, encrypted) = (None, false, false);
            let room = NewRoom { name, description, parent, ephemeral, public, encrypted };
            (asking.act(CreateRoom(room)).await?, true)
        }
        Err(no) => return Err(no),
    };
    asking.act(Join(room.room)).await?;
    asking.remembers(room.room, true);
    let room = asking.read(DescribeRoom(room.room)).await?.room;
    Ok(object(json!({
        "status": "ok",
        "key": asking.names().key(&room),
        "roomId": asking.names().id(room.room),
        "created": created,
        "members": room.members,
        "tip": room.tip.0,
    })))
}

/// The name that a new room is to have: keys and ids are given by nodes.
fn name_of(text: &str) -> Result<String, No> {
    let name = text.trim();
    let is_key = name.starts_with("mesh:") || name.starts_with("agent:");
    let is_id = matches!(name, "main" | "current") || RoomId::from_uuid(name).is_some();
    if is_key || is_id {
        return Err(No::argument(
            "room",
            "must be a name, and no key or id, where a room is to be made",
        ));
    }
    Ok(name.to_owned())
}

pub(super) async fn leave(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let room = asking.room(arguments).await?;
    match asking.act(Leave(room.room)).await {
        // It was not in it, or not any more.
        Err(No::Error { more, .. }) if more.get("code") == Some(&json!("not_in_room")) => {}
        left => left?,
    }
    asking.remembers(room.room, false);
    Ok(object(json!({"status": "ok"})))
}

pub(super) async fn send(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let text = message(arguments)?;
    let reply_to = arguments.text("replyTo")?;
    let mentions = arguments.texts("mentions")?;
    let kind = arguments.text("kind")?;
    let thinking = arguments.flag("thinking")?.unwrap_or(false);
    let room = asking.room(arguments).await?;
    let say = Say {
        speech: if thinking { Speech::Thinking } else { Speech::Chat },
        reply_to,
        mentions,
        metadata: kind.map(|kind| json!({"kind": kind}).to_string()),
        by_tool: true,
        ..Say::chat(room.room, text)
    };
    let said = asking.act(say).await?;
    Ok(object(json!({
        "status": "ok",
        "messageId": said.message.to_uuid(),
        "seq": said.number.0,
        "key": asking.names().key(&room),
    })))
}

/// The text of a message. Other programs' tools have other names for it.
pub(super) fn message(arguments: &mut Arguments) -> Result<String, No> {
    let missing = || No::argument("message", "is required");
    let named = ["message", "text", "content"].into_iter().find(|name| arguments.has(name));
    named.into_iter().for_each(|name| arguments.understands(name));
    let text = arguments.text(named.unwrap_or("message"))?.ok_or_else(missing)?;
    if text.trim().is_empty() {
        return Err(No::argument("message", "must not be empty"));
    }
    Ok(text)
}

/// The highest number of a room.
pub(super) async fn tip(asking: &Asking, room: RoomId) -> Result<u64, No> {
    Ok(asking.read(Tip(room)).await?.0)
}

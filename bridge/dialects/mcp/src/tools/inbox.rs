//! The inbox of an agent: what is for it, until it says that it has it.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    time::Duration,
};

use bridge::{
    Announcing,
    policy::is_skip,
    read::{Visitor, Watch},
    seam::{
        answer::{InboxItems, InboxPage, InboxPlace, Item},
        call::{ConfirmInbox, DescribeRoom, LookIntoInbox, OpenInbox, ReadInbox, TakeFromInbox},
        event::Message,
    },
};
use mesh::{
    api::{
        command::{Inbox, RoomView},
        delivery::Ended,
    },
    limits::INBOX_ITEMS_MAX,
    name::id::{AgentId, NodeId, RoomId},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{history::NOTE, spawn::ended};
use crate::{
    arguments::Arguments,
    asking::Asking,
    keys,
    limits::{
        CURSOR_CHARS_MAX, GATHER_FOR, INBOX_PEEKED_MAX, INBOX_ROWS_MAX, NAMED_IN_NOTICE_MAX,
        NOTICE_ROWS, PAGES_MAX, RESULT_ROWS_BYTES, TAKEN_LOOKED_AT_MAX, UNREAD_COUNTED_MAX,
    },
    occurrence::{Occurrence, Occurrences},
    outcome::{No, Outcome, object},
};

/// An agent's inbox, as it was when it was opened.
pub(super) struct Mail<'a> {
    asking: &'a Asking,
    agent: Visitor,
    /// Read up to here, as the agent has said.
    pub(super) mark: u64,
    /// The newest item.
    newest: u64,
    since_ms: u64,
}

impl Mail<'_> {
    /// Opens it, and makes it if there is none.
    pub(super) async fn open(asking: &Asking) -> Result<Mail<'_>, No> {
        let agent = asking.attached().await?;
        Mail::of(asking, agent).await
    }

    /// The same, of an agent that is attached: nobody is attached for the sake of a count.
    pub(super) async fn if_attached(asking: &Asking) -> Result<Option<Mail<'_>>, No> {
        let attached = asking.shared.desk.attached(&asking.agent, asking.reader.key());
        match attached {
            Some(agent) => Mail::of(asking, agent).await.map(Some),
            None => Ok(None),
        }
    }

    async fn of(asking: &Asking, agent: Visitor) -> Result<Mail<'_>, No> {
        let inbox = asking.shared.desk.ask(&agent, OpenInbox).await?;
        let Inbox { mark, newest, since_ms, .. } = *inbox;
        Ok(Mail { asking, agent, mark, newest, since_ms })
    }

    pub(super) async fn read(&self, call: ReadInbox) -> Result<InboxPage, No> {
        Ok(self.asking.shared.desk.ask(&self.agent, call).await?)
    }

    fn watch(&self) -> Result<Watch, No> {
        Ok(self.asking.shared.desk.watch_inbox(&self.agent)?)
    }

    /// Where the oldest items are that wait, and how many are behind those.
    pub(super) async fn places(&self, limit: usize) -> Result<InboxItems, No> {
        let call = LookIntoInbox { after: self.mark, limit };
        Ok(self.asking.shared.desk.ask(&self.agent, call).await?)
    }

    async fn confirm(&mut self, upto: u64) -> Result<(), No> {
        if upto > self.mark {
            let inbox = self.asking.shared.desk.ask(&self.agent, ConfirmInbox(upto)).await?;
            (self.mark, self.newest) = (inbox.mark, inbox.newest);
            self.asking.shared.desk.confirmed(&self.agent);
        }
        Ok(())
    }

    /// Takes a message out, if it is among the oldest that wait.
    pub(super) async fn take_out(&self, message: &Message) -> Result<(), No> {
        let places = self.places(TAKEN_LOOKED_AT_MAX).await?;
        let is_it = |item: &&InboxPlace| (item.room, item.number) == (message.room, message.number);
        if let Some(item) = places.items.iter().find(is_it) {
            self.asking.shared.desk.ask(&self.agent, TakeFromInbox(item.place)).await?;
        }
        Ok(())
    }
}

/// A place in an inbox, as a host keeps it. It names the node, and the inbox: places of another one say nothing here.
#[derive(Debug, PartialEq, Eq)]
struct Cursor {
    node: String,
    made_ms: u64,
    place: u64,
}

impl Cursor {
    fn here(mail: &Mail<'_>, place: u64) -> Cursor {
        let node = node_of(mail.asking.shared.desk.config().here.node);
        Cursor { node, made_ms: mail.since_ms, place }
    }

    fn text(&self) -> String {
        format!("{}.{}.{}", self.node, self.made_ms, self.place)
    }

    /// `None`: from the beginning.
    fn parse(text: &str) -> Result<Option<Cursor>, No> {
        let wrong = || No::argument("cursor", "must be the cursor of an earlier result, or \"0\"");
        if text == "0" {
            return Ok(None);
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [node, made, place] = *parts else { return Err(wrong()) };
        let is_node = node.len() == 16 && node.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits && is_node).ok_or_else(wrong)
        };
        let (made_ms, place) = (number(made)?, number(place)?);
        Ok(Some(Cursor { node: node.to_ascii_lowercase(), made_ms, place }))
    }
}

fn node_of(node: NodeId) -> String {
    node.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub(super) async fn wait(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(30)?;
    let limit = arguments.integer("limit", 1, INBOX_ROWS_MAX)?.unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let cursor = arguments.filled("cursor", CURSOR_CHARS_MAX)?;
    let cursor = cursor.as_deref().map(str::trim).map(Cursor::parse).transpose()?;
    let held = if time == Duration::ZERO { None } else { Some(asking.wait()?) };
    let mut mail = Box::pin(Mail::open(asking)).await?;
    // Before the first look: what comes between the two is not missed.
    let mut watch = mail.watch()?;
    let (after, replayed) = match cursor {
        Some(None) => (0, false),
        // Nothing is passed over that was not there.
        Some(Some(cursor))
            if cursor == Cursor::here(&mail, cursor.place) && cursor.place <= mail.newest =>
        {
            mail.confirm(cursor.place).await?;
            (cursor.place, false)
        }
        // Of another node, or of an inbox before this one: things may come again, and none is missed.
        Some(Some(_)) => (mail.mark, true),
        None => (mail.mark, false),
    };
    let page = next(&mail, &mut watch, after, Patience { limit, time }).await?;
    drop(held);
    let Rows { rows, upto, dropped } = Box::pin(rows(asking, &page)).await?;
    asking.shared.desk.gave_upto(&mail.agent, upto);
    let given = page.items.iter().filter(|item| item.place <= upto);
    asking.gave(given.map(|item| &item.message));
    let left = page.left + dropped;
    let mut fields = object(json!({
        "status": if rows.is_empty() { "timeout" } else { "ok" },
        "messages": rows,
        "cursor": Cursor::here(&mail, upto).text(),
        "unread": left,
        "more": left > 0,
        "since": mail.since_ms,
        "note": NOTE,
    }));
    if replayed {
        fields.insert("replayed".to_owned(), json!(true));
    }
    Ok(fields)
}

/// How much is waited for, and for how long.
#[derive(Clone, Copy)]
struct Patience {
    limit: usize,
    time: Duration,
}

/// The next items after a place, when there are some, or when the time is over.
async fn next(
    mail: &Mail<'_>,
    watch: &mut Watch,
    after: u64,
    Patience { limit, time }: Patience,
) -> Result<Shown, No> {
    let (asking, until) = (mail.asking, Instant::now() + time);
    let page = loop {
        let shown = Box::pin(shown(mail, after, limit)).await?;
        if !shown.items.is_empty() || Instant::now() >= until {
            Box::pin(asking.goes_on()).await?;
            break shown;
        }
        asking.until(watch, until).await?;
    };
    // Of some that come together the rest comes in a moment.
    if !page.items.is_empty() && page.items.len() < limit && time > Duration::ZERO {
        sleep(GATHER_FOR.min(until.saturating_duration_since(Instant::now()))).await;
        return Box::pin(shown(mail, after, limit)).await;
    }
    Ok(page)
}

/// What came after a cursor, which confirms nothing; without one, what comes from now on. For programs that hand it to a model
/// as it comes.
pub(super) async fn follow(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(0)?;
    let limit = arguments.integer("limit", 1, INBOX_ROWS_MAX)?.unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let cursor = arguments.filled("cursor", CURSOR_CHARS_MAX)?;
    let cursor = cursor.as_deref().map(str::trim).map(Cursor::parse).transpose()?;
    let held = if time == Duration::ZERO { None } else { Some(asking.wait()?) };
    let mail = Mail::open(asking).await?;
    let mut watch = mail.watch()?;
    let after = match cursor {
        None => mail.newest,
        Some(None) => 0,
        Some(Some(cursor))
            if cursor == Cursor::here(&mail, cursor.place) && cursor.place <= mail.newest =>
        {
            cursor.place
        }
        // Of another inbox: things may come again, and none is missed.
        Some(Some(_)) => mail.mark,
    };
    let page = next(&mail, &mut watch, after, Patience { limit, time }).await?;
    drop(held);
    let Rows { rows, upto, dropped } = Box::pin(rows(asking, &page)).await?;
    if !rows.is_empty() {
        asking.shared.desk.gave_upto(&mail.agent, upto);
    }
    Ok(object(json!({
        "status": if rows.is_empty() { "timeout" } else { "ok" },
        "messages": rows,
        "cursor": Cursor::here(&mail, upto).text(),
        "more": page.left + dropped > 0,
        "note": NOTE,
    })))
}

/// What is unread, the oldest first. It is neither confirmed nor counted as given: a host may look without its model.
pub(super) async fn peek(asking: &Asking) -> Outcome {
    let mail = Mail::open(asking).await?;
    let page = shown(&mail, mail.mark, INBOX_PEEKED_MAX).await?;
    let Rows { rows, dropped, .. } = rows(asking, &page).await?;
    let unread = rows.len() + page.left + dropped;
    Ok(object(json!({
        "count": rows.len(),
        "messages": rows,
        "unread": unread,
        "since": mail.since_ms,
        "note": NOTE,
    })))
}

/// What came after a cursor, without its texts; without one, what comes from now on. It is told of, and not given.
pub(super) async fn events(
    asking: &Asking,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Occurrences, No> {
    let cursor = cursor.map(str::trim).map(Cursor::parse).transpose()?;
    let mail = Mail::open(asking).await?;
    let (after, foreign) = match cursor {
        None => (mail.newest, false),
        Some(None) => (0, false),
        Some(Some(cursor))
            if cursor == Cursor::here(&mail, cursor.place) && cursor.place <= mail.newest =>
        {
            (cursor.place, false)
        }
        // Of another node, or of an inbox before this one: what has been read meanwhile is passed over.
        Some(Some(_)) => (mail.mark, true),
    };
    // Older ones are not kept.
    let truncated = foreign || mail.newest - after > INBOX_ITEMS_MAX;
    let page = shown(&mail, after, limit).await?;
    let (more, upto, mut before) = (page.left > 0, page.upto, page.after);
    let mut events = Vec::new();
    for item in page.items {
        let (place, message, at_ms) = (item.place, item.message.message, item.message.wall_ms);
        let one = Shown { after: before, items: vec![item], upto: place, left: 0 };
        before = place;
        // One whose room is gone is not shown.
        let Some(row) = rows(asking, &one).await?.rows.pop() else { continue };
        let mut data = told_of(&row);
        for field in ["item", "taskId", "runId", "status"] {
            if !row[field].is_null() {
                data[field] = row[field].clone();
            }
        }
        let cursor = Cursor::here(&mail, place).text();
        // The same message may come a second time, as a notice.
        let id = format!("{}.{place}", message.to_uuid());
        events.push(Occurrence { id, at_ms, data, cursor });
    }
    if upto > after {
        asking.shared.desk.tell_upto(&mail.agent, upto);
    }
    Ok(Occurrences { events, cursor: Cursor::here(&mail, upto).text(), truncated, more })
}

/// What an event says of a message: which one it is, and of whom.
pub(super) fn told_of(row: &Value) -> Value {
    json!({
        "messageId": row["id"],
        "sessionKey": row["sessionKey"],
        "from": row["from"]["key"],
        "verified": row["from"]["verified"],
    })
}

/// The next items that are shown, also where many are not.
async fn shown(mail: &Mail<'_>, mut after: u64, limit: usize) -> Result<Shown, No> {
    for _ in 0..PAGES_MAX {
        let shown = Shown::of(mail.asking, mail.read(ReadInbox { after, limit }).await?, after);
        if !shown.items.is_empty() || shown.left == 0 || shown.upto == after {
            return Ok(shown);
        }
        after = shown.upto;
    }
    Ok(Shown { after, items: Vec::new(), upto: after, left: 0 })
}

/// Items that are shown.
struct Shown {
    /// The place before the first one.
    after: u64,
    items: Vec<Item>,
    /// All up to here are shown, or are not to be.
    upto: u64,
    left: usize,
}

impl Shown {
    /// A reply that a call of the agent is returning right now ends the page: it is that call's to give, or this one's later.
    fn of(asking: &Asking, page: InboxPage, after: u64) -> Shown {
        let awaited = asking.awaited();
        let is_awaited = |message: &Message| {
            let answers = message.said.conversation.and_then(|place| place.answers);
            answers.is_some_and(|request| awaited.contains(&request))
        };
        let (mut items, mut reached, mut upto) = (Vec::new(), after, page.upto);
        let mut left = page.left;
        let mut all = page.items.into_iter();
        while let Some(item) = all.next() {
            let message = &item.message;
            if is_awaited(message) {
                (upto, left) = (reached, left + 1 + all.len());
                break;
            }
            reached = item.place;
            let asks = message.said.conversation.is_some_and(|place| place.expects_reply);
            // Of an own message the item is that its task has ended without an answer.
            if asks || !is_skip(&message.said.content) {
                items.push(item);
            }
        }
        Shown { after, items, upto, left }
    }
}

/// Rows of a result.
struct Rows {
    rows: Vec<Value>,
    upto: u64,
    dropped: usize,
}

async fn rows(asking: &Asking, page: &Shown) -> Result<Rows, No> {
    let reader = asking.reader_of(page.items.iter().map(|item| item.message.by)).await?;
    let mut views: BTreeMap<RoomId, RoomView> = BTreeMap::new();
    for item in &page.items {
        let room = item.message.room;
        if let Entry::Vacant(view) = views.entry(room)
            && let Ok(info) = asking.shared.desk.ask(&asking.reader, DescribeRoom(room)).await
        {
            view.insert(info.room);
        }
    }
    let (mut rows, mut bytes, mut upto) = (Vec::new(), RESULT_ROWS_BYTES, page.after);
    for (nth, item) in page.items.iter().enumerate() {
        let Item { place, message, ended } = item;
        if let Some(room) = views.get(&message.room) {
            let (mut row, _) = reader.message(room, message);
            row["item"] = json!(kind(asking, room, message));
            let is_undone = *ended == Some(Ended::Failed) && row["item"] == "spawn_result";
            if is_undone && message.said.conversation.is_some_and(|place| place.turn == 0) {
                let told = ended::undelivered(asking, room, message).await?;
                ended::as_notice(&mut row, &told);
                row["sessionKey"] = told["childSessionKey"].clone();
                row["spawn"] = told;
            } else if let Some(ended) = ended {
                tell(&mut row, message, *ended);
            } else if row["item"] == "spawn_result" {
                let ended = ended::describe(asking, room, message).await?;
                if message.said.agent == asking.agent {
                    ended::as_notice(&mut row, &ended);
                }
                row["sessionKey"] = ended["childSessionKey"].clone();
                row["spawn"] = ended;
            } else if row["item"] == "task" {
                row["taskId"] = row["metadata"]["task_id"].clone();
            }
            let length = row.to_string().len() + 1;
            if length > bytes {
                let dropped = page.items.len() - nth;
                return Ok(Rows { rows, upto, dropped });
            }
            bytes -= length;
            rows.push(row);
        }
        upto = *place;
    }
    Ok(Rows { rows, upto: page.upto, dropped: 0 })
}

/// What an agent is told of its own request, in place of what has become of it by now.
fn tell(row: &mut Value, message: &Message, ended: Ended) {
    row["item"] = json!("delivery");
    row["runId"] = json!(message.message.to_uuid());
    match ended {
        Ended::Failed => {
            row["status"] = json!("failed");
            let reason = message.fate.as_ref().and_then(|fate| fate.reason.as_ref());
            if let Some(reason) = reason {
                row["reason"] = json!(reason.text());
            }
        }
        Ended::Delivered => row["status"] = json!("delivered"),
    }
}

/// What an item is.
fn kind(asking: &Asking, room: &RoomView, message: &Message) -> &'static str {
    let place = message.said.conversation;
    let answers = place.and_then(|place| place.answers);
    if room.task && room.created_by.as_ref() == Some(&asking.agent) {
        let is_notice = message.said.agent == asking.agent;
        let ends = is_notice || place.is_some_and(|place| place.turn == 1);
        return if ends { "spawn_result" } else { "direct" };
    }
    if room.task && place.is_some_and(|place| place.turn == 0) {
        return "task";
    }
    let teller = asking.shared.desk.config().announcing.as_ref().map(Announcing::teller);
    let is_tellers = teller == Some(&message.said.agent);
    match (&room.sides, answers) {
        (Some(_), None) if is_tellers => "announce",
        (_, Some(_)) => "reply",
        (Some(_), None) => "direct",
        (None, None) => "mention",
    }
}

/// The agent that an item is from. Of a task that has ended without an answer: the one that was to do it.
async fn from_whom(asking: &Asking, message: &Message) -> AgentId {
    let author = message.said.agent.clone();
    if author != asking.agent {
        return author;
    }
    let room = asking.shared.desk.ask(&asking.reader, DescribeRoom(message.room)).await;
    let sides = room.ok().and_then(|info| info.room.sides);
    sides.map_or(author, |sides| sides.peer_of(&asking.agent).clone())
}

/// How much is unread, and from whom: for programs that tell a host. It counts as told from then on.
pub(super) async fn notice(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(0)?;
    let held = if time == Duration::ZERO { None } else { Some(asking.wait()?) };
    let mail = Mail::open(asking).await?;
    let mut watch = mail.watch()?;
    let until = Instant::now() + time;
    let (page, left, fresh) = loop {
        let page = shown(&mail, mail.mark, NOTICE_ROWS).await?;
        let behind = mail.places(UNREAD_COUNTED_MAX).await?;
        let newest = behind.items.last().map_or(0, |item| item.place).max(page.upto);
        let fresh = newest > asking.shared.desk.told(&mail.agent).upto && !page.items.is_empty();
        if fresh || Instant::now() >= until {
            asking.shared.desk.tell_upto(&mail.agent, newest);
            break (page, behind.items.len() + behind.left, fresh);
        }
        asking.until(&mut watch, until).await?;
    };
    drop(held);
    let mut from = BTreeSet::new();
    // What it is told of its own requests is from nobody.
    for item in page.items.iter().filter(|item| item.ended.is_none()) {
        from.insert(keys::reference(&from_whom(asking, &item.message).await));
    }
    let unread = if page.items.is_empty() { 0 } else { left.max(page.items.len()) };
    Ok(object(json!({
        "status": if fresh || time == Duration::ZERO { "ok" } else { "timeout" },
        "unread": unread,
        "from": from.into_iter().take(NAMED_IN_NOTICE_MAX).collect::<Vec<_>>(),
        "fresh": fresh,
    })))
}

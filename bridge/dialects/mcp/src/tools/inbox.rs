//! The inbox of an agent: what is for it, until it says that it has it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bridge::{
    read::{Visitor, Watch},
    seam::{
        answer::InboxPage,
        call::{ConfirmInbox, OpenInbox, ReadInbox, TakeFromInbox},
        event::Message,
    },
};
use mesh::{
    api::command::RoomView,
    name::id::{MessageId, NodeId, RoomId},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{history::NOTE, send::is_skip, spawn};
use crate::{
    arguments::Arguments,
    asking::{Asking, Name},
    keys,
    limits::{
        GATHER_FOR, INBOX_ROWS_MAX, NAMED_IN_NOTICE_MAX, RESULT_ROWS_BYTES, TAKEN_LOOKED_AT_MAX,
        UNREAD_COUNTED_MAX,
    },
    outcome::{No, Outcome, object},
};

/// An agent's inbox, as it was when it was opened.
pub(super) struct Mail<'a> {
    asking: &'a Asking,
    agent: Visitor,
    /// Read up to here, as the agent has said.
    pub(super) mark: u64,
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
        Ok(Mail { asking, agent, mark: inbox.mark, since_ms: inbox.since_ms })
    }

    pub(super) async fn read(&self, call: ReadInbox) -> Result<InboxPage, No> {
        Ok(self.asking.shared.desk.ask(&self.agent, call).await?)
    }

    fn watch(&self) -> Result<Watch, No> {
        Ok(self.asking.shared.desk.watch_inbox(&self.agent)?)
    }

    async fn confirm(&mut self, upto: u64) -> Result<(), No> {
        if upto > self.mark {
            let inbox = self.asking.shared.desk.ask(&self.agent, ConfirmInbox(upto)).await?;
            self.mark = inbox.mark;
        }
        Ok(())
    }

    /// Takes a message out, if it is among the oldest that wait.
    pub(super) async fn take_out(&self, message: MessageId) -> Result<(), No> {
        let limit = TAKEN_LOOKED_AT_MAX;
        let page = self.read(ReadInbox { after: self.mark, limit, gives: false }).await?;
        let item = page.items.into_iter().find(|(_, item)| item.message == message);
        if let Some((place, _)) = item {
            self.asking.shared.desk.ask(&self.agent, TakeFromInbox(place)).await?;
        }
        Ok(())
    }
}

/// A place in an inbox, as a host keeps it. It names the node: places of another one say nothing here.
struct Cursor {
    node: String,
    place: u64,
}

impl Cursor {
    fn here(asking: &Asking, place: u64) -> Cursor {
        Cursor { node: node_of(asking.shared.desk.config().here.node), place }
    }

    fn text(&self) -> String {
        format!("{}.{}", self.node, self.place)
    }

    fn parse(text: &str) -> Result<Cursor, No> {
        let wrong = || No::argument("cursor", "must be the cursor of an earlier result, or \"0\"");
        if text == "0" {
            return Ok(Cursor { node: String::new(), place: 0 });
        }
        let (node, place) = text.split_once('.').ok_or_else(wrong)?;
        let is_node = node.len() == 16 && node.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
        let place = place.parse().ok().filter(|_| is_node && digits).ok_or_else(wrong)?;
        Ok(Cursor { node: node.to_ascii_lowercase(), place })
    }
}

fn node_of(node: NodeId) -> String {
    node.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub(super) async fn wait(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(30)?;
    let limit = arguments.integer("limit", 1, INBOX_ROWS_MAX)?.unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let cursor = arguments.filled("cursor", 128)?;
    let cursor = cursor.as_deref().map(str::trim).map(Cursor::parse).transpose()?;
    let held = if time == Duration::ZERO { None } else { Some(asking.wait()?) };
    let mut mail = Mail::open(asking).await?;
    // Before the first look: what comes between the two is not missed.
    let mut watch = mail.watch()?;
    let here = Cursor::here(asking, 0).node;
    let (after, replayed) = match cursor {
        Some(Cursor { place: 0, node }) if node.is_empty() => (0, false),
        Some(Cursor { node, place }) if node == here => {
            mail.confirm(place).await?;
            (place, false)
        }
        // Things may come again, and none is missed.
        Some(Cursor { .. }) => (mail.mark, true),
        None => (mail.mark, false),
    };
    let until = Instant::now() + time;
    let mut page = loop {
        let page = mail.read(ReadInbox { after, limit, gives: true }).await?;
        let shown = Shown::of(asking, page, after);
        if !shown.items.is_empty() || Instant::now() >= until {
            asking.goes_on().await?;
            break shown;
        }
        asking.until(&mut watch, until).await?;
    };
    // Of some that come together the rest comes in a moment.
    if !page.items.is_empty() && page.items.len() < limit && held.is_some() {
        sleep(GATHER_FOR.min(until.saturating_duration_since(Instant::now()))).await;
        page = Shown::of(asking, mail.read(ReadInbox { after, limit, gives: true }).await?, after);
    }
    drop(held);
    let Rows { rows, upto, dropped } = rows(asking, &page).await?;
    let left = page.left + dropped;
    let mut fields = object(json!({
        "status": if rows.is_empty() { "timeout" } else { "ok" },
        "messages": rows,
        "cursor": Cursor::here(asking, upto).text(),
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

/// Items that are shown.
struct Shown {
    /// The place before the first one.
    after: u64,
    items: Vec<(u64, Message)>,
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
        while let Some((place, message)) = all.next() {
            if is_awaited(&message) {
                (upto, left) = (reached, left + 1 + all.len());
                break;
            }
            reached = place;
            let is_answer = message.said.conversation.is_some_and(|place| place.answers.is_some());
            if !(is_answer && is_skip(&message.said.content)) {
                items.push((place, message));
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
    let reader = asking.reader_of(page.items.iter().map(|(_, message)| message.by)).await?;
    let views: BTreeMap<RoomId, RoomView> = if page.items.is_empty() {
        BTreeMap::new()
    } else {
        asking.rooms().await?.into_iter().map(|room| (room.room, room)).collect()
    };
    let (mut rows, mut bytes, mut upto) = (Vec::new(), RESULT_ROWS_BYTES, page.after);
    for (nth, (place, message)) in page.items.iter().enumerate() {
        if let Some(room) = views.get(&message.room) {
            let (mut row, _) = reader.message(room, message);
            row["item"] = json!(item(asking, room, message));
            if row["item"] == "spawn_result" {
                row["spawn"] = spawn::ended(asking, room, message).await?;
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

/// What an item is.
fn item(asking: &Asking, room: &RoomView, message: &Message) -> &'static str {
    let place = message.said.conversation;
    let answers = place.and_then(|place| place.answers);
    if room.task && room.created_by.as_ref() == Some(&asking.agent) {
        let ends = place.is_some_and(|place| place.turn == 1);
        return if ends { "spawn_result" } else { "direct" };
    }
    if room.task && place.is_some_and(|place| place.turn == 0) {
        return "task";
    }
    match (&room.sides, answers) {
        (_, Some(_)) => "reply",
        (Some(_), None) => "direct",
        (None, None) => "mention",
    }
}

/// How much is unread, and from whom: for programs that tell a host. It counts as told from then on.
pub(super) async fn notice(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let time = arguments.wait(0)?;
    let held = if time == Duration::ZERO { None } else { Some(asking.wait()?) };
    let mail = Mail::open(asking).await?;
    let mut watch = mail.watch()?;
    let until = Instant::now() + time;
    let (page, fresh) = loop {
        let page = mail
            .read(ReadInbox { after: mail.mark, limit: UNREAD_COUNTED_MAX, gives: false })
            .await?;
        let page = Shown::of(asking, page, mail.mark);
        let told = asking.shared.desk.told(&mail.agent);
        let fresh = page.upto > told.upto && !page.items.is_empty();
        if fresh || Instant::now() >= until {
            break (page, fresh);
        }
        asking.until(&mut watch, until).await?;
    };
    drop(held);
    asking.shared.desk.tell_upto(&mail.agent, page.upto);
    let from: BTreeSet<String> =
        page.items.iter().map(|(_, message)| keys::reference(&message.said.agent)).collect();
    Ok(object(json!({
        "status": if fresh || time == Duration::ZERO { "ok" } else { "timeout" },
        "unread": page.items.len() + page.left,
        "from": from.into_iter().take(NAMED_IN_NOTICE_MAX).collect::<Vec<_>>(),
        "fresh": fresh,
    })))
}

/// Answers that calls of agents wait for.
#[derive(Default)]
pub(crate) struct Awaited(BTreeMap<Name, Vec<MessageId>>);

impl Awaited {
    pub(crate) fn begin(&mut self, id: &Name, request: MessageId) {
        self.0.entry(id.clone()).or_default().push(request);
    }

    pub(crate) fn end(&mut self, id: &Name, request: MessageId) {
        let Some(awaited) = self.0.get_mut(id) else { return };
        if let Some(nth) = awaited.iter().position(|of| *of == request) {
            awaited.swap_remove(nth);
        }
        if awaited.is_empty() {
            self.0.remove(id);
        }
    }

    pub(crate) fn of(&self, id: &Name) -> BTreeSet<MessageId> {
        self.0.get(id).into_iter().flatten().copied().collect()
    }
}

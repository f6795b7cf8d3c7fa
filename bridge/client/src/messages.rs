//! Every message of a room once, in order, over lost connections.
//!
//! The stream first joins the room, so that live messages come, and only then pages from its cursor.
//! A live message is taken as the next one only if its number follows the cursor directly; after a
//! jump (own messages are not pushed, eras begin elsewhere), a reconnect or a gap in the events it
//! pages again. Messages at or below the cursor are dropped, and so are those that were given already:
//! after a split another node may have them under other numbers.

use std::collections::{HashSet, VecDeque};

use protocol::event::Event as Pushed;
use protocol::object::Message;
use protocol::request::{GetHistory, JoinRoom, RoomTip};

use crate::client::Client;
use crate::error::CallError;
use crate::events::{Event, Events};
use crate::limits::{IDS_REMEMBERED_MAX, PAGE_MESSAGES};

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After the newest message that the room has now.
    Tip,
    /// After this number; 0 = with the first message.
    After(u64),
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The next visible message, thinking included, one's own included.
    Message(Box<Message>),
    /// Something else, of this room or of another.
    Event(Event),
}

/// A stream ended.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// The node refused, or the client is closed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// After a reconnect the node did not let the agent back into the room.
    #[error("the room is gone, or closed to this key")]
    RoomLost,
    /// The client has given up connecting.
    #[error("disconnected for good: {reason}")]
    Closed {
        /// Why.
        reason: String,
    },
}

/// The messages of one room from a cursor on.
#[derive(Debug)]
pub struct Messages {
    client: Client,
    events: Events,
    room_id: String,
    cursor: u64,
    /// Paged and not given yet: above the cursor, rising.
    ready: VecDeque<Message>,
    /// A live message that did not follow the cursor directly: given at the latest when a page has
    /// nothing more.
    ahead: Option<Box<Message>>,
    /// There may be messages above the cursor that will not come by themselves.
    behind: bool,
    given: Given,
}

/// The ids of the newest messages that were given.
#[derive(Debug, Default)]
struct Given {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl Given {
    /// Whether it is new; from now on it is not.
    fn insert(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > IDS_REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

impl Messages {
    /// Joins the room and begins. Takes the events: there is one reader.
    ///
    /// # Errors
    /// [`CallError`] of joining, or of asking for the tip.
    pub async fn open(
        client: Client,
        events: Events,
        room_id: String,
        start: Start,
    ) -> Result<Self, CallError> {
        client.call(JoinRoom { room_id: room_id.clone() }).await?;
        let cursor = match start {
            Start::After(seq) => seq,
            Start::Tip => client.call(RoomTip { room_id: room_id.clone() }).await?.seq,
        };
        let ready = VecDeque::new();
        let given = Given::default();
        Ok(Self { client, events, room_id, cursor, ready, ahead: None, behind: true, given })
    }

    /// The number of the last message given, or where the stream began.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The room.
    pub fn room_id(&self) -> &str {
        &self.room_id
    }

    /// The client, for calls in between.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Pages before anything else is given: a second look, in case a node forgot to push.
    pub fn look_again(&mut self) {
        self.behind = true;
    }

    /// The next item. Waits as long as it takes, over reconnects; cancel-safe.
    ///
    /// # Errors
    /// [`MessagesError`] if there will be no more.
    pub async fn next(&mut self) -> Result<Item, MessagesError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.cursor = message.seq;
                if self.given.insert(&message.message_id) {
                    return Ok(Item::Message(Box::new(message)));
                }
                continue;
            }
            if self.behind {
                self.page().await?;
                continue;
            }
            if let Some(message) = self.ahead.take().filter(|message| message.seq > self.cursor) {
                self.cursor = message.seq;
                if self.given.insert(&message.message_id) {
                    return Ok(Item::Message(message));
                }
                continue;
            }
            let event = self.events.next().await.ok_or(CallError::Closed)?;
            if let Some(item) = self.take(event)? {
                return Ok(item);
            }
        }
    }

    async fn page(&mut self) -> Result<(), MessagesError> {
        let ask = GetHistory {
            room_id: self.room_id.clone(),
            limit: PAGE_MESSAGES,
            before: None,
            since: None,
            since_seq: Some(self.cursor),
        };
        let page = match self.client.call(ask).await {
            Ok(page) => page,
            // A long outage: `behind` stays, the next look comes with the next turn of the loop.
            Err(CallError::TimedOut) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut last = self.cursor;
        for message in page.messages {
            if message.seq > last {
                last = message.seq;
                self.ready.push_back(message);
            }
        }
        // A node may cut a page short: only an empty one is the end.
        self.behind = !self.ready.is_empty();
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<Option<Item>, MessagesError> {
        match event {
            Event::Pushed(Pushed::MessageReceived(message) | Pushed::Thinking(message))
                if message.room_id == self.room_id =>
            {
                Ok(self.take_live(message))
            }
            Event::Reconnected { ref rooms_lost } => {
                if rooms_lost.contains(&self.room_id) {
                    return Err(MessagesError::RoomLost);
                }
                self.behind = true;
                Ok(Some(Item::Event(event)))
            }
            Event::Missed { .. } => {
                self.behind = true;
                Ok(Some(Item::Event(event)))
            }
            Event::Closed { reason } => Err(MessagesError::Closed { reason }),
            Event::Pushed(_) | Event::Disconnected { .. } => Ok(Some(Item::Event(event))),
        }
    }

    fn take_live(&mut self, message: Box<Message>) -> Option<Item> {
        if message.seq <= self.cursor {
            return None;
        }
        if message.seq == self.cursor + 1 {
            self.cursor = message.seq;
            return self.given.insert(&message.message_id).then_some(Item::Message(message));
        }
        self.behind = true;
        self.ahead = Some(message);
        None
    }
}

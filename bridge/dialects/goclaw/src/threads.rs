//! The sessions of a direct room: threads of messages, each under a key.
//!
//! A message names its thread (`session` of its metadata), or is in that of the request that it answers, or in the one of those
//! who name none.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use bridge::seam::{
    call::{From, History, ListDirect, Look},
    event::Message,
};
use mesh::{
    api::command::{RoomView, Speech},
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
};
use serde_json::Value;

use crate::{
    caller::{Caller, Speaker},
    limits::{MODEL_BYTES_MAX, ROOM_MESSAGES_MAX, ROOMS_REMEMBERED_MAX},
    names,
    outcome::No,
};

/// The direct room of a principal and an agent.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    pub(crate) room: RoomId,
    pub(crate) tip: Number,
    pub(crate) active_ms: u64,
    pub(crate) agent: AgentId,
    pub(crate) principal: AgentId,
}

impl Direct {
    /// `None`: it is no room of a principal of the key.
    pub(crate) fn of(view: &RoomView, begins: &str) -> Option<Direct> {
        let sides = view.sides.as_ref().filter(|_| !view.task)?;
        let (principal, _) = sides.iter().find(|(agent, _)| agent.starts_with(begins))?;
        Some(Direct {
            room: view.room,
            tip: view.tip,
            active_ms: view.last_activity_ms.unwrap_or(view.created_ms),
            agent: sides.peer_of(principal).clone(),
            principal: principal.clone(),
        })
    }
}

/// A thread, without its texts.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) key: String,
    pub(crate) user: Option<String>,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    /// The numbers of its messages, rising.
    pub(crate) numbers: Vec<u64>,
    /// Replies that reported their usage.
    pub(crate) used: Vec<Used>,
    /// When its user asked for something. Unix milliseconds.
    pub(crate) asked: Vec<u64>,
}

/// The usage of a reply, as its agent has reported it.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) at_ms: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
}

impl Thread {
    /// Tokens in, and out.
    pub(crate) fn tokens(&self) -> (u64, u64) {
        self.used.iter().fold((0, 0), |(input, output), used| {
            (input.saturating_add(used.input), output.saturating_add(used.output))
        })
    }
}

/// Threads of rooms, as long as nothing more is said in these.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<BTreeMap<RoomId, Read>>);

/// The threads of a room when this number was its newest.
type Read = (Number, Arc<Vec<Thread>>);

impl Remembered {
    fn get(&self, room: RoomId, tip: Number) -> Option<Arc<Vec<Thread>>> {
        let rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(&room).filter(|(at, _)| *at == tip).map(|(_, threads)| threads.clone())
    }

    /// Whether a room had such a thread when it was last read: threads do not go.
    pub(crate) fn had(&self, room: RoomId, key: &str) -> bool {
        let rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(&room).is_some_and(|(_, threads)| threads.iter().any(|it| it.key == key))
    }

    fn put(&self, room: RoomId, tip: Number, threads: Arc<Vec<Thread>>) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rooms.len() >= ROOMS_REMEMBERED_MAX {
            rooms.pop_first();
        }
        rooms.insert(room, (tip, threads));
    }
}

/// The metadata of a message.
pub(crate) fn metadata(message: &Message) -> Value {
    let json = message.said.metadata.as_deref();
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or(Value::Null)
}

/// The message that this one answers, as its author's node has said, or as its author has.
pub(crate) fn answered(message: &Message) -> Option<MessageId> {
    let by_node = message.said.conversation.and_then(|place| place.answers);
    by_node.or_else(|| message.said.reply_to.as_deref().and_then(MessageId::from_uuid))
}

/// The key of the thread of each message, in their order.
pub(crate) fn keys(messages: &[Message], agent: &str) -> Vec<String> {
    let mut known: HashMap<MessageId, String> = HashMap::new();
    let key_of = |message: &Message, known: &HashMap<MessageId, String>| {
        let named = metadata(message)["session"].as_str().map(str::to_owned);
        let named = named.filter(|key| is_with(key, agent));
        let led = || answered(message).and_then(|request| known.get(&request).cloned());
        named.or_else(led).unwrap_or_else(|| names::bare_session(agent))
    };
    let mut keys = Vec::with_capacity(messages.len());
    for message in messages {
        let key = key_of(message, &known);
        known.insert(message.message, key.clone());
        keys.push(key);
    }
    keys
}

/// Whether a key is of a session with this agent: others' are not named in its room.
fn is_with(key: &str, with: &str) -> bool {
    match names::Session::parse(key) {
        Some(names::Session::Thread { agent, .. }) => *agent == *with,
        Some(names::Session::Room(_)) | None => false,
    }
}

/// Whether a message says something of a run, and nothing to people.
pub(crate) fn is_control(metadata: &Value) -> bool {
    matches!(metadata["kind"].as_str(), Some("cancel" | "timeout"))
}

/// The usage that a reply reports: tokens in, and out.
pub(crate) fn usage(metadata: &Value) -> Option<(u64, u64)> {
    let usage = &metadata["usage"];
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64());
    let (input, output) =
        (count(["prompt_tokens", "input_tokens"]), count(["completion_tokens", "output_tokens"]));
    (input.is_some() || output.is_some()).then(|| (input.unwrap_or(0), output.unwrap_or(0)))
}

impl Caller {
    /// The direct rooms that it may read: its own ones; an administrator's those of all users of its key. The liveliest first.
    pub(crate) async fn direct_rooms(&self) -> Result<Vec<Direct>, No> {
        let begins = names::principals_of(self.print());
        let rooms = self.read(ListDirect).await?;
        let mut rooms: Vec<Direct> =
            rooms.iter().filter_map(|view| Direct::of(view, &begins)).collect();
        rooms.retain(|direct| self.is_admin() || direct.principal == self.principal);
        rooms.sort_by_key(|direct| std::cmp::Reverse(direct.active_ms));
        Ok(rooms)
    }

    /// The newest messages of a direct room, thoughts left out, the oldest first.
    pub(crate) async fn messages(&self, direct: &Direct) -> Result<Vec<Message>, No> {
        self.newest(direct, ROOM_MESSAGES_MAX).await
    }

    /// So many of them.
    pub(crate) async fn newest(&self, direct: &Direct, limit: u64) -> Result<Vec<Message>, No> {
        let slot = self.shared.reading.acquire().await;
        let call = History { room: direct.room, from: From::Newest, limit, before_ms: None };
        let mut messages = self.read_as(&direct.principal, call).await?.messages;
        drop(slot);
        // The operator may not want that all is handed over.
        let facts = self.read_as(&direct.principal, Look(direct.room)).await?;
        messages.retain(|message| {
            message.speech != Speech::Thinking && facts.withheld(&message.said.agent).is_none()
        });
        Ok(messages)
    }

    /// The threads of a direct room, of its newest messages.
    pub(crate) async fn threads(&self, direct: &Direct) -> Result<Arc<Vec<Thread>>, No> {
        if let Some(known) = self.shared.remembered.get(direct.room, direct.tip) {
            return Ok(known);
        }
        let messages = self.messages(direct).await?;
        let threads = Arc::new(threads_of(&messages, direct));
        self.shared.remembered.put(direct.room, direct.tip, threads.clone());
        Ok(threads)
    }

    /// The principal of a direct room, as the one who writes there.
    pub(crate) async fn speaker_of(&self, direct: &Direct) -> Result<Speaker, No> {
        if direct.principal == self.principal {
            return Ok(self.speaker());
        }
        let threads = self.threads(direct).await?;
        let user = threads.iter().find_map(|thread| thread.user.clone());
        let begins = names::principals_of(self.print());
        // Nobody has written yet: the id says nearly the same.
        let user = user.unwrap_or_else(|| {
            direct.principal.strip_prefix(&*begins).unwrap_or_default().to_owned()
        });
        Ok(Speaker { agent: direct.principal.clone(), user })
    }
}

fn threads_of(messages: &[Message], direct: &Direct) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (message, key) in messages.iter().zip(keys(messages, &direct.agent)) {
        let metadata = metadata(message);
        if is_control(&metadata) {
            continue;
        }
        let place = *places.entry(key.clone()).or_insert_with(|| {
            threads.push(Thread {
                key,
                user: None,
                first_ms: message.wall_ms,
                last_ms: message.wall_ms,
                numbers: Vec::new(),
                used: Vec::new(),
                asked: Vec::new(),
            });
            threads.len() - 1
        });
        let Some(thread) = threads.get_mut(place) else { continue };
        thread.last_ms = message.wall_ms;
        thread.numbers.push(message.number.0);
        if message.said.agent == direct.principal {
            let from = metadata["from"].as_str().map(str::to_owned);
            thread.user = thread.user.take().or(from).or_else(|| Some(message.said.name.clone()));
            thread.asked.push(message.wall_ms);
        } else if let Some((input, output)) = usage(&metadata) {
            let text = |name: &str| {
                let text = metadata[name].as_str().filter(|text| text.len() <= MODEL_BYTES_MAX);
                text.map(str::to_owned)
            };
            let (model, provider) = (text("model"), text("provider"));
            thread.used.push(Used { at_ms: message.wall_ms, input, output, model, provider });
        }
    }
    threads
}

//! Sees to each conversation that is to be announced: waits for its end, asks, waits for the answer, and posts it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use mesh::{
    limits::REQUEST_OPEN_FOR,
    name::id::{AgentId, MessageId, NodeId, RoomId},
    wire::{entry::Said, kinds::CHAT},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    announcing::{Announcing, Due, name_of},
    backend::Row,
    delivery::hub::{Hub, Watched},
    limits::{
        ANNOUNCE_LOOK_EVERY, ANNOUNCE_LOOKED_AT_MAX, ANNOUNCE_RETRIES, ANNOUNCE_TEXT_BYTES_MAX,
        ANNOUNCE_WITHIN,
    },
    policy::{CHANNEL, GROUP, LOBBY, is_skip, key_of_agent},
    read::{Desk, Visitor},
    seam::{
        call::{
            Attach, Identity, Join, Leave, ListRooms, ListSeats, Look, MaySend, OpenDirect, Say,
        },
        refusal::Refusal,
    },
};

/// Sees to all of them. Does not end by itself.
pub(crate) async fn run(desk: Desk, hub: Arc<Hub>) {
    if desk.config().announcing.is_none() {
        return std::future::pending().await;
    }
    let mut all = JoinSet::new();
    loop {
        for (due, since_ms) in hub.announcements.take_new() {
            let announcer = Announcer { desk: desk.clone(), hub: hub.clone(), due, since_ms };
            all.spawn(announcer.run());
        }
        tokio::select! {
            () = hub.announcements.news.notified() => {}
            Some(_) = all.join_next() => {}
        }
    }
}

/// Sees to one conversation.
struct Announcer {
    desk: Desk,
    hub: Arc<Hub>,
    due: Due,
    since_ms: u64,
}

/// The end of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Posted,
    /// Nothing is said: the agent, or a policy, does not want it, or another node asks.
    Silent,
}

/// A conversation that is over.
#[derive(Debug, PartialEq, Eq)]
struct Talk {
    asked_by: AgentId,
    request: String,
    /// The first answer of the agent.
    first: String,
    /// The latest message of either.
    latest: String,
    /// The node at which the agent said something last.
    node: NodeId,
}

/// The node's question, and when it was put.
struct Asked {
    room: RoomId,
    message: MessageId,
    wall_ms: u64,
}

impl Announcer {
    async fn run(self) {
        let mut ended = Ended::Silent;
        for pause in ANNOUNCE_RETRIES {
            match self.announce().await {
                Ok(now) => {
                    ended = now;
                    break;
                }
                Err(refusal) => {
                    let (conversation, agent) = (self.due.conversation, &*self.due.agent);
                    tracing::warn!(
                        event = "announce_failed", %conversation, agent, ?refusal,
                        "the outcome of a conversation could not be announced"
                    );
                    sleep(pause).await;
                }
            }
        }
        let conversation = self.due.conversation;
        tracing::debug!(%conversation, ?ended, "a conversation that was to be announced");
        let row = self.due.row(self.since_ms, true);
        // One that is not kept is seen to again after the next start, and is not said twice: see `said_before`.
        drop(self.desk.keep(name_of(conversation), Some(row)).await);
        for old in self.hub.announcements.is_done(conversation) {
            drop(self.desk.keep(name_of(old), None).await);
        }
    }

    async fn announce(&self) -> Result<Ended, Refusal> {
        let Some(config) = &self.desk.config().announcing else { return Ok(Ended::Silent) };
        let Some(key) = config.rooms.get(&self.due.agent) else { return Ok(Ended::Silent) };
        let Some(talk) = self.over().await? else { return Ok(Ended::Silent) };
        if talk.node != self.desk.config().here.node {
            return Ok(Ended::Silent);
        }
        let asked = self.ask(config, &talk, key).await?;
        match self.answer(&asked).await? {
            Some(text) if !is_skip(&text) && !text.trim().is_empty() => self.post(key, text).await,
            Some(_) | None => Ok(Ended::Silent),
        }
    }

    /// Waits until the conversation is over. `None`: the agent has said nothing in it.
    async fn over(&self) -> Result<Option<Talk>, Refusal> {
        let mut watch = self.hub.watch(Watched::Room(self.due.room));
        let begun = Instant::now();
        loop {
            let (room, conversation) = (self.due.room, self.due.conversation);
            let request = self.desk.reading(move |reads| reads.by_message(room, conversation));
            let Some(request) = request.await? else { return Ok(None) };
            let rows = self.newest(room).await?;
            let of_it = of_conversation(&rows, conversation);
            let last_ms = of_it.last().map_or(request.facts.wall_ms, |(row, _)| row.facts.wall_ms);
            let silent = last_ms.saturating_add(millis(REQUEST_OPEN_FOR)).saturating_sub(now_ms());
            let until = Instant::now() + Duration::from_millis(silent).min(REQUEST_OPEN_FOR);
            let is_silent = silent == 0 || begun.elapsed() >= REQUEST_OPEN_FOR;
            // The answer for whose sake this began may still be on its way into the room.
            let has_answered = of_it.iter().any(|(_, said)| is_answer_of(said, &self.due.agent));
            let is_over = has_answered && of_it.last().is_some_and(|(_, said)| closes(said));
            if is_silent || is_over {
                return Ok(talk_of(&request, &of_it, &self.due.agent));
            }
            timeout_at(until, watch.news()).await.ok();
        }
    }

    /// Asks the agent, unless it was asked before.
    async fn ask(&self, config: &Announcing, talk: &Talk, key: &str) -> Result<Asked, Refusal> {
        let attach = Attach {
            key: config.key.clone(),
            name: "Announcements".to_owned(),
            identity: Identity::Named(config.teller.to_string()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: ANNOUNCE_WITHIN,
        };
        let teller = self.desk.host(attach).await?.visitor;
        let room = self.desk.ask(&teller, OpenDirect::with(self.due.agent.clone())).await?.room;
        if let Some(row) = self.said_before(room, &config.teller).await? {
            return Ok(Asked { room, message: row.message, wall_ms: row.facts.wall_ms });
        }
        let say = Say {
            mentions: vec![self.due.agent.to_string()],
            expects_reply: Some(true),
            ..self.say(room, question(talk, key), true)
        };
        let message = self.desk.ask(&teller, say).await?.message;
        let row = self.desk.reading(move |reads| reads.by_message(room, message)).await?;
        let wall_ms = row.map_or_else(now_ms, |row| row.facts.wall_ms);
        Ok(Asked { room, message, wall_ms })
    }

    /// A message of this announcement.
    fn say(&self, room: RoomId, text: String, asks: bool) -> Say {
        let conversation = self.due.conversation.to_uuid();
        let metadata =
            json!({"kind": "announce", "expects_reply": asks, "conversation": conversation});
        Say {
            metadata: Some(metadata.to_string()),
            dedup: Some(format!("announce {conversation}")),
            expects_reply: Some(asks),
            by_tool: true,
            ..Say::chat(room, text)
        }
    }

    /// The message of this announcement that an agent has said in a room: a node that starts again does not know how far it was.
    async fn said_before(&self, room: RoomId, by: &AgentId) -> Result<Option<Row>, Refusal> {
        let conversation = json!(self.due.conversation.to_uuid());
        let is_it = |row: &Row| {
            let said = row.said.as_ref().filter(|said| said.agent == *by);
            let metadata = said.and_then(|said| said.metadata.as_deref());
            let metadata = metadata.and_then(|json| serde_json::from_str::<Value>(json).ok());
            metadata
                .is_some_and(|it| it["kind"] == "announce" && it["conversation"] == conversation)
        };
        Ok(self.newest(room).await?.into_iter().find(is_it))
    }

    /// The answer of the agent, if it comes in time.
    async fn answer(&self, asked: &Asked) -> Result<Option<String>, Refusal> {
        let mut watch = self.hub.watch(Watched::Room(asked.room));
        let ends_ms = asked.wall_ms.saturating_add(millis(ANNOUNCE_WITHIN));
        let left = Duration::from_millis(ends_ms.saturating_sub(now_ms())).min(ANNOUNCE_WITHIN);
        let until = Instant::now() + left;
        loop {
            let rows = self.newest(asked.room).await?;
            let answers = rows.iter().filter(|row| row.facts.wall_ms <= ends_ms);
            let mut answers = answers.filter_map(|row| row.said.as_ref()).filter(|said| {
                let place = said.conversation.and_then(|place| place.answers);
                said.agent == self.due.agent && place == Some(asked.message)
            });
            if let Some(said) = answers.next() {
                return Ok(Some(said.content.clone()));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            timeout_at(until, watch.news()).await.ok();
        }
    }

    /// Says it in the agent's room, in its name, unless that was done before.
    async fn post(&self, key: &str, text: String) -> Result<Ended, Refusal> {
        let Some(agent) = self.attached().await else { return Ok(Ended::Silent) };
        let Some(room) = self.room(&agent, key).await? else {
            let agent = &*self.due.agent;
            tracing::warn!(
                event = "announce_no_room",
                agent,
                key,
                "an agent's announce room is not there"
            );
            return Ok(Ended::Silent);
        };
        if self.desk.ask(&agent, Look(room)).await?.encrypted {
            return Ok(Ended::Silent);
        }
        if self.said_before(room, &self.due.agent).await?.is_some() {
            return Ok(Ended::Posted);
        }
        match self.desk.ask(&agent, MaySend { room, by_tool: true }).await {
            Ok(()) => {}
            Err(Refusal::Denied(_)) => return Ok(Ended::Silent),
            Err(refusal) => return Err(refusal),
        }
        // Its client did not ask to be there, and is told of nothing that is said after this.
        let joins = !self.desk.ask(&agent, ListSeats).await?.contains(&room);
        if joins {
            self.desk.ask(&agent, Join(room)).await?;
        }
        let said = self.desk.ask(&agent, self.say(room, text, false)).await;
        if joins {
            self.desk.ask(&agent, Leave(room)).await?;
        }
        said.map(|_| Ended::Posted)
    }

    /// The agent, if it is here, or comes in a while.
    async fn attached(&self) -> Option<Visitor> {
        let until = Instant::now() + ANNOUNCE_WITHIN;
        loop {
            let agent = self.desk.attached(&self.due.agent, self.due.key);
            if agent.is_some() || Instant::now() >= until {
                return agent;
            }
            sleep(ANNOUNCE_LOOK_EVERY).await;
        }
    }

    /// The room of a key.
    async fn room(&self, agent: &Visitor, key: &str) -> Result<Option<RoomId>, Refusal> {
        let public = key.starts_with(CHANNEL);
        let name = key.strip_prefix(CHANNEL).or_else(|| key.strip_prefix(GROUP)).unwrap_or(key);
        if public && name == LOBBY {
            return Ok(Some(RoomId::lobby(self.desk.config().here.mesh)));
        }
        if let Some(room) = RoomId::from_uuid(name) {
            return Ok(Some(room));
        }
        let rooms = self.desk.ask(agent, ListRooms { parent: None }).await?;
        let mut named = rooms.iter().filter(|room| *room.name == *name && room.public == public);
        Ok(named.next().map(|room| room.room))
    }

    async fn newest(&self, room: RoomId) -> Result<Vec<Row>, Refusal> {
        let page =
            move |reads: &dyn crate::Reads| reads.page_newest(room, ANNOUNCE_LOOKED_AT_MAX, None);
        let mut rows = self.desk.reading(page).await?;
        rows.retain(|row| row.facts.kind == CHAT && row.said.is_some());
        Ok(rows)
    }
}

/// The messages of a conversation, the oldest first.
fn of_conversation(rows: &[Row], conversation: MessageId) -> Vec<(&Row, &Said)> {
    let said = rows.iter().filter_map(|row| Some((row, row.said.as_ref()?)));
    let is_its = |(row, said): &(&Row, &Said)| {
        said.conversation.is_some_and(|place| place.id(row.message) == conversation)
    };
    said.filter(is_its).collect()
}

fn is_answer_of(said: &Said, agent: &AgentId) -> bool {
    said.agent == *agent && said.conversation.is_some_and(|place| place.answers.is_some())
}

/// Whether nothing more is expected after a message.
fn closes(said: &Said) -> bool {
    is_skip(&said.content) || said.conversation.is_none_or(|place| !place.expects_reply)
}

fn talk_of(request: &Row, of_it: &[(&Row, &Said)], agent: &AgentId) -> Option<Talk> {
    let asked = request.said.as_ref()?;
    let words = || {
        of_it.iter().filter(|(row, said)| row.message != request.message && !is_skip(&said.content))
    };
    let (_, first) = words().find(|(_, said)| said.agent == *agent)?;
    let (_, latest) = words().next_back()?;
    let (last, _) = of_it.iter().rfind(|(_, said)| said.agent == *agent)?;
    Some(Talk {
        asked_by: asked.agent.clone(),
        request: asked.content.clone(),
        first: first.content.clone(),
        latest: latest.content.clone(),
        node: last.log.author,
    })
}

/// The node's question. The texts in it are the two agents' own.
fn question(talk: &Talk, room: &str) -> String {
    let Talk { asked_by, request, first, latest, .. } = talk;
    let cut = |text: &str| text[..text.floor_char_boundary(ANNOUNCE_TEXT_BYTES_MAX)].to_owned();
    let from = key_of_agent(asked_by);
    let (request, first, latest) = (cut(request), cut(first), cut(latest));
    format!(
        "The conversation with {from} is over.\n\nRequest:\n{request}\n\nFirst reply:\n{first}\n\n\
         Latest reply:\n{latest}\n\nReply with what is to be said in {room}, or exactly ANNOUNCE_SKIP."
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

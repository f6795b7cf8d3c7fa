//! One who looks on: what it says, and the little that it is answered.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Instant,
};

use bridge::{
    delivery::ending::Ending,
    read::Visitor,
    redact::redacted,
    seam::event::{Audience, Onlooking},
    secret::Secret,
    session::pace::Paced,
};
use bytes::Bytes;
use mesh::name::id::{KeyPrint, RoomId};
use serde_json::{Value, json};

use super::{
    Place, announce, enter,
    look::{self, Chat, Turned},
};
use crate::{
    bad_frames::BadFrames,
    envelope::{Request, Told, cut},
    ids,
    limits::{
        HEARTBEATS_PER_MINUTE, SPECTATOR_CHAT_CHARS_MAX, SPECTATOR_CHAT_PER_MINUTE,
        SPECTATOR_NAME_CHARS_MAX, SPECTATOR_ROOM_CHAT_PER_MINUTE,
    },
    newest::lock,
    problem::Problem,
    shared::{Rate, Shared},
    style::Style,
    times,
};

/// See the module.
pub(crate) struct Spectator {
    pub(crate) place: Place,
    pub(crate) style: Style,
    shared: Arc<Shared>,
    visitor: Visitor,
    key: Option<Secret>,
    who: Mutex<Onlooking>,
    since: Instant,
    bad: Mutex<BadFrames>,
}

/// What it is answered, and whether the connection ends.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) frames: Vec<Bytes>,
    pub(crate) ending: Option<Ending>,
}

/// One who wants to look.
pub(crate) struct Wish {
    pub(crate) room: String,
    pub(crate) key: Option<Secret>,
    pub(crate) name: Option<String>,
    pub(crate) style: Style,
    /// The network that it comes from, if that is known and not this machine.
    pub(crate) from: Option<IpAddr>,
}

/// Lets somebody in: with the frame that says what there is to see.
pub(crate) async fn admit(
    shared: &Arc<Shared>,
    wish: Wish,
) -> Result<(Arc<Spectator>, Bytes), Turned> {
    let Wish { room, key, name, style, from } = wish;
    // Who has a key is bounded by it elsewhere, and may be one of many behind one address.
    let from = from.filter(|from| key.is_none() && !from.is_loopback());
    let (visitor, look) = look::look(shared, (&room, key.as_ref()), style).await?;
    let (place, day) = enter(shared, (&look, &visitor), (style, from))?;
    let id: [u8; 16] = bridge::ids::random();
    let who = Onlooking { id, name: shown(name.as_deref()), has_key: key.is_some() };
    let spectator = Arc::new(Spectator {
        style,
        shared: shared.clone(),
        visitor,
        key,
        who: Mutex::new(who),
        since: Instant::now(),
        bad: Mutex::default(),
        place,
    });
    let present = spectator.place.stage.present();
    let told = look.welcome(style, &style.form.id("spectator", id), present);
    announce(shared, &spectator, day);
    Ok((spectator, style.frame(told)))
}

/// The name of one who looks, as all read it.
fn shown(name: Option<&str>) -> Arc<str> {
    let name: String = redacted(name.unwrap_or_default()).replace(char::is_control, " ");
    match name.trim() {
        "" => "Anonymous Viewer".into(),
        name => cut(name, SPECTATOR_NAME_CHARS_MAX).0.into(),
    }
}

fn person(style: Style, who: &Onlooking) -> Value {
    json!({
        "spectator_id": style.form.id("spectator", who.id),
        "display_name": &*who.name,
        "type": if who.has_key { "registered" } else { "anonymous" },
    })
}

/// One of those who look says something.
fn says(style: Style, (room, by): (RoomId, &Onlooking), said: &Said<'_>) -> Told {
    let visible_to: &[&str] =
        if said.to_members { &["spectators", "participants"] } else { &["spectators"] };
    let data = json!({
        "message_id": style.form.id("spectator_chat", said.id),
        "room_id": style.room(room),
        "spectator": person(style, by),
        "content": {"text": said.text, "reply_to": said.reply_to},
        "moderation": {"auto_approved": true, "flagged": false, "visible_to": visible_to},
    });
    let told = Told::of(said.id, "chat.spectator_message", said.at_ms, data);
    told.with("room_id", style.room(room))
}

struct Said<'a> {
    id: [u8; 16],
    text: &'a str,
    reply_to: Option<&'a str>,
    at_ms: u64,
    to_members: bool,
}

/// How members are told of those who look.
pub(crate) fn to_members(style: Style, room: RoomId, news: &Audience) -> Told {
    match news {
        Audience::Says { by, id, text, wall_ms } => {
            let said = Said { id: *id, text, reply_to: None, at_ms: *wall_ms, to_members: true };
            says(style, (room, by), &said)
        }
        Audience::Came { who, now, peak, today, most, wall_ms } => {
            let mut spectator = person(style, who);
            spectator["first_time"] = json!(true);
            let data = json!({
                "room_id": style.room(room),
                "spectator": spectator,
                "spectator_stats": {
                    "current_count": now, "peak_today": peak, "total_unique_today": today,
                },
                "announcement_threshold": super::ANNOUNCED_EVERY,
                "room_settings": {"announce_spectator_joins": true, "spectator_limit": most},
            });
            let told = Told::of(who.id, "room.spectator_joined", *wall_ms, data);
            told.with("room_id", style.room(room))
        }
    }
}

impl Spectator {
    pub(crate) fn who(&self) -> Onlooking {
        lock(&self.who).clone()
    }

    /// The key that it has shown.
    pub(crate) fn key(&self) -> Option<KeyPrint> {
        self.key.as_ref().map(|_| self.visitor.key())
    }

    /// How fast it is heard, if it has a socket of its own.
    pub(super) fn paced(&self) -> Paced {
        self.shared.desk.paced()
    }

    pub(crate) fn id(&self) -> [u8; 16] {
        lock(&self.who).id
    }

    /// Before a frame of the room is written to it: of a crowd not all are written to at once.
    pub(super) async fn waits_for_its_turn(&self) {
        let turn = self.place.stage.turn_of(self.id());
        if !turn.is_zero() {
            tokio::time::sleep(turn).await;
        }
    }

    /// A frame of it.
    pub(crate) fn hears(&self, request: &Request) -> Answer {
        let outcome = match &*request.kind {
            "connection.heartbeat" => self.beats(request),
            "connection.disconnect" => {
                return Answer { frames: Vec::new(), ending: Some(Ending::Done) };
            }
            "spectator.connect" => self.is_called(request),
            "chat.spectator_message" | "spectator.chat_message" => self.says(request),
            kind => {
                let text = format!("{kind}: who looks on does nothing else");
                Err(Problem::denied(text).because("spectator"))
            }
        };
        match outcome {
            Ok(frames) => Answer { frames, ending: None },
            Err(problem) => self.refuses(&problem, request),
        }
    }

    fn refuses(&self, problem: &Problem, request: &Request) -> Answer {
        let ending = self.errs();
        let frames = vec![self.style.error(problem, &request.related)];
        Answer { frames, ending }
    }

    /// It has sent something that is no use. One that goes on with that has to go.
    pub(crate) fn errs(&self) -> Option<Ending> {
        lock(&self.bad).one_more().then_some(Ending::BadFrame)
    }

    /// Whether its key still lets it look.
    pub(crate) async fn may_look(&self) -> bool {
        let Some(key) = &self.key else { return true };
        use bridge::seam::refusal::Refusal;
        use mesh::api::command::Refused;
        let holder = self.shared.desk.holder(key.clone()).await;
        let is_invalid = matches!(holder, Err(Refusal::Mesh(Refused::NoKey)));
        !is_invalid && self.shared.desk.may_read(&self.visitor, self.place.stage.room).is_ok()
    }

    fn takes(&self, rate: Rate) -> Result<(), Problem> {
        self.shared.take(&ids::text(self.id()).as_str().into(), rate)
    }

    fn beats(&self, request: &Request) -> Result<Vec<Bytes>, Problem> {
        let rate = Rate::per_minute("heartbeats", HEARTBEATS_PER_MINUTE);
        if self.takes(rate).is_err() {
            return Ok(Vec::new());
        }
        let data = json!({
            "connection_id": self.style.form.id("conn", self.id()),
            "status": "active",
            "uptime_seconds": self.since.elapsed().as_secs(),
        });
        let told = Told::fresh("connection.heartbeat", data).answering(&request.related);
        Ok(vec![self.style.frame(told)])
    }

    fn is_called(&self, request: &Request) -> Result<Vec<Bytes>, Problem> {
        let data = request.data();
        let (long, brief) = (data.get("display_name"), data.get("name"));
        let at = if long.is_there() { long } else { brief };
        let name = shown(at.text(SPECTATOR_NAME_CHARS_MAX)?);
        self.takes(Rate::per_minute("names", SPECTATOR_CHAT_PER_MINUTE))?;
        let who = {
            let mut who = lock(&self.who);
            who.name = name;
            who.clone()
        };
        let data = person(self.style, &who);
        let told = Told::fresh("spectator.connect", data).answering(&request.related);
        Ok(vec![self.style.frame(told)])
    }

    fn says(&self, request: &Request) -> Result<Vec<Bytes>, Problem> {
        let stage = &self.place.stage;
        let chat = stage.rules().chat;
        if chat == Chat::Nobody {
            let text = "who looks on says nothing in this room";
            return Err(Problem::denied(text).because("spectator_chat"));
        }
        let data = request.data();
        let content = data.get("content");
        let text = if content.is_there() { content.get("text") } else { data.get("text") };
        let text = redacted(text.words(SPECTATOR_CHAT_CHARS_MAX)?);
        let reply_to = content.get("reply_to").id()?;
        self.takes(Rate::per_minute("messages", SPECTATOR_CHAT_PER_MINUTE))?;
        let all = Rate::per_minute("messages of those who look on", SPECTATOR_ROOM_CHAT_PER_MINUTE);
        self.shared.take_in(stage.room, all)?;
        let (id, at_ms) = (bridge::ids::random(), times::now_ms());
        let by = self.who();
        let to_members = chat == Chat::Everybody;
        let said = Said { id, text: &text, reply_to, at_ms, to_members };
        stage.cast(|style| says(style, (stage.room, &by), &said), Some(by.id));
        let told = says(self.style, (stage.room, &by), &said).answering(&request.related);
        if to_members {
            let text = text.as_str().into();
            let news = Audience::Says { by, id, text, wall_ms: at_ms };
            self.shared.desk.tell_of_audience(stage.room, news);
        }
        Ok(vec![self.style.frame(told)])
    }
}

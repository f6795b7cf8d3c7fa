//! From lines to types and back.
//!
//! A request is read in two steps, envelope then payload, so that a bad payload is refused with the
//! id of its request.

use std::{cell::RefCell, fmt};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::event::Event;
use crate::field::Fields;
use crate::reply::{Answer, ErrorBody, Reply};
use crate::request::Request;

/// A request and the id that its reply must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The client's choice; absent = the reply has no `reply_to`.
    pub id: Option<String>,
    /// The request.
    pub request: Request,
}

/// A line that is not a request: answer it with `invalid_payload`, keep the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    /// The `id` of the request, as far as it could be read.
    pub reply_to: Option<String>,
    /// Names the malformed or missing field; holds nothing of the payload.
    pub message: String,
    /// Only its payload is unsound, and it is a command of agents: before `register` the answer is
    /// `not_registered` with any payload.
    pub of_agents: bool,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RequestError {}

/// Reads one line of a client, with or without its newline.
///
/// # Errors
/// [`RequestError`] unless it is a known request with a sound payload.
pub fn parse_request(line: &str) -> Result<Incoming, RequestError> {
    let refuse = |message: String| RequestError { reply_to: None, message, of_agents: false };
    let envelope = Fields::read(line, &["id", "type", "payload"])
        .map_err(|error| refuse(format!("line is not a JSON object: {error}")))?;
    let id = envelope.get::<Option<String>>("id", None).map_err(refuse)?;
    let refuse = |message, of_agents| RequestError { reply_to: id.clone(), message, of_agents };
    let kind = envelope.get::<String>("type", None).map_err(|message| refuse(message, false))?;
    let request = Request::read(&kind, envelope.raw("payload"));
    let request = request.map_err(|message| refuse(message, Request::is_of_agents(&kind)))?;
    Ok(Incoming { id, request })
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: &'a T,
}

/// Memory for writing that a thread keeps.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// Frames are written here and then copied, so that each takes memory once, and as much as it needs. A frame that grew
    /// step by step would wait at every step for the threads that give memory of other frames back.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The frame, with room for `more` bytes.
fn frame<T: Serialize>(frame: &Outgoing<'_, T>, more: usize) -> String {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        serde_json::to_writer(&mut *scratch, frame)
            .expect("wire types have string keys and no failing serializer");
        let mut text = String::with_capacity(scratch.len() + more);
        text.push_str(str::from_utf8(scratch).expect("JSON is UTF-8"));
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        text
    })
}

/// The frame of a pushed event, without a newline. `id` is a fresh UUID.
pub fn encode_event(event: &Event, id: &str) -> String {
    let payload = event;
    frame(&Outgoing { id: Some(id), reply_to: None, kind: event.type_name(), payload }, 0)
}

/// The frame of a reply, without a newline. `id` is a fresh UUID, `reply_to` the id of the request.
pub fn encode_reply(reply: &Reply, reply_to: Option<&str>, id: &str) -> String {
    frame(&Outgoing { id: Some(id), reply_to, kind: reply.type_name(), payload: reply }, 0)
}

/// The line of a request. A `pong` carries the id of the heartbeat as `reply_to`, others nothing.
pub fn encode_request(request: &Request, id: Option<&str>, reply_to: Option<&str>) -> String {
    let mut line =
        frame(&Outgoing { id, reply_to, kind: request.type_name(), payload: request }, 1);
    line.push('\n');
    line
}

/// A line of a node, its payload unread.
#[derive(Debug, Clone, Deserialize)]
pub struct ServerFrame {
    /// The frame's own id.
    #[serde(default)]
    pub id: Option<String>,
    /// The id of the request it answers; absent for events.
    #[serde(default)]
    pub reply_to: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its payload; absent = `null`.
    #[serde(default)]
    pub payload: Box<RawValue>,
}

/// A line of a node, or its payload, that does not have the shape its type promises.
#[derive(Debug)]
pub struct FrameError(serde_json::Error);

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame of the node does not have the shape its type promises: {}", self.0)
    }
}

impl std::error::Error for FrameError {}

impl ServerFrame {
    /// Reads one line of a node, with or without its newline.
    ///
    /// # Errors
    /// [`FrameError`] if it is not a frame.
    pub fn parse(line: &str) -> Result<Self, FrameError> {
        serde_json::from_str(line).map_err(FrameError)
    }

    /// The frame as an event; `None` if its type is not known, which is no error.
    ///
    /// # Errors
    /// [`FrameError`] if a known event lacks something.
    pub fn event(&self) -> Result<Option<Event>, FrameError> {
        Event::read(&self.kind, &self.payload).transpose().map_err(FrameError)
    }

    /// Whether it is a refusal.
    pub fn is_refusal(&self) -> bool {
        self.kind == "error"
    }

    /// The payload as the answer to a command, or the node's refusal.
    ///
    /// # Errors
    /// [`FrameError`] if it lacks something.
    pub fn answer<A: Answer>(&self) -> Result<Result<A, ErrorBody>, FrameError> {
        if self.is_refusal() { self.body().map(Err) } else { self.body().map(Ok) }
    }

    fn body<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_str(self.payload.get()).map_err(FrameError)
    }
}

#[cfg(test)]
#[path = "agenda_tests.rs"]
mod agenda_tests;
#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

//! A language that clients speak to a node: how it is recognised, and its connections.
//!
//! A dialect knows the seam and no other dialect. The node registers dialects with [`crate::Bridge::new`]; none is known here.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{HeaderMap, Method},
    response::Response,
};
use bytes::Bytes;
use serde::Deserialize;

use crate::{
    counters::Transport,
    delivery::ending::Ending,
    limits::{FRAME_BYTES_MAX, HTTP_REQUEST_WITHIN},
    read::Desk,
    seam::event::{Event, Frames, Mute, Recipient, Voice},
    session::{pace::Pace, seat::Seat},
};

/// A frame as it came: its meaning is the dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A line, or a text message.
    Text(&'a str),
    /// A binary message of a WebSocket.
    Binary,
}

impl Heard<'_> {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Heard::Text(text) => text.len(),
            Heard::Binary => 0,
        }
    }
}

/// The first frame of a connection, as far as dialects are told apart by it. Empty if it is no JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct First {
    /// Its `jsonrpc`, if that is a text.
    #[serde(default, deserialize_with = "text")]
    pub jsonrpc: Option<String>,
    /// Its `type`, if that is a text.
    #[serde(default, rename = "type", deserialize_with = "text")]
    pub kind: Option<String>,
}

/// A text, or nothing of anything else.
fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(if let serde_json::Value::String(text) = value { Some(text) } else { None })
}

impl First {
    pub(crate) fn read(frame: Heard<'_>) -> First {
        match frame {
            // An array would do for the reader, too.
            Heard::Text(text) if text.trim_ascii_start().starts_with('{') => {
                serde_json::from_str(text).unwrap_or_default()
            }
            Heard::Text(_) | Heard::Binary => First::default(),
        }
    }
}

/// See the module.
pub trait Dialect: Send + Sync + 'static {
    /// The node is there. Called once, before anything else.
    fn open(&self, _: &Desk) {}

    /// Whether a connection of this kind that begins so speaks it. The first dialect of the node that says so has it; the
    /// last one has all that are left.
    fn speaks(&self, transport: Transport, first: &First) -> bool;

    /// A connection in it begins.
    fn begin(&self) -> Box<dyn Conversation>;

    /// How clients are treated that have not said anything. Asked of the last dialect alone.
    fn manners(&self) -> Manners;

    /// How clients are told of events, those that have not said anything included.
    fn voice(&self) -> Arc<dyn Voice>;

    /// Its pages, if it has some.
    fn site(&self, desk: &Desk) -> Option<Site>;

    /// Its pages under paths of other dialects, if it has some.
    fn annex(&self, _: &Desk) -> Option<Annex> {
        None
    }
}

/// A dialect of requests over HTTP alone: there are no connections in it.
pub trait Pages: Send + Sync + 'static {
    /// The node is there. Called once, before anything else.
    fn open(&self, _: &Desk) {}

    /// Its pages.
    fn site(&self, desk: &Desk) -> Site;
}

impl<P: Pages> Dialect for P {
    fn open(&self, desk: &Desk) {
        Pages::open(self, desk);
    }

    fn speaks(&self, _: Transport, _: &First) -> bool {
        false
    }

    fn begin(&self) -> Box<dyn Conversation> {
        Box::new(Misled)
    }

    fn manners(&self) -> Manners {
        Misled.manners()
    }

    fn voice(&self) -> Arc<dyn Voice> {
        Arc::new(Mute)
    }

    fn site(&self, desk: &Desk) -> Option<Site> {
        Some(Pages::site(self, desk))
    }
}

/// A connection in a dialect that has none: it ends with its first frame. There is one only if nothing but pages was
/// registered.
struct Misled;

impl Recipient for Misled {}

impl Conversation for Misled {
    fn hear(&mut self, seat: &mut Seat, _: Heard<'_>) {
        seat.close(Ending::BadFrame);
    }

    fn manners(&self) -> Manners {
        Manners {
            frame_bytes_max: FRAME_BYTES_MAX,
            attach_within: HTTP_REQUEST_WITHIN,
            silence: HTTP_REQUEST_WITHIN,
            heartbeat: HTTP_REQUEST_WITHIN,
            pace: None,
            too_large: Ending::TooLarge,
            not_text: Ending::NotText,
        }
    }
}

/// One connection in a dialect.
pub trait Conversation: Recipient + Send {
    /// A frame came. Frames of one connection come in their order, and none before the calls that have to be done first
    /// are answered.
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>);

    /// How the client is treated. May change as it speaks: what is said here holds from the next frame, or the next of
    /// its timers.
    fn manners(&self) -> Manners;

    /// A frame that the client gets as the last one, before the connection ends in this way. It does not come to a client
    /// that has hung up.
    fn farewell(&mut self, _: Ending) -> Option<Bytes> {
        None
    }
}

/// How a dialect treats a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// The largest frame of an agent, in bytes; of a line its newline is one of them. At most
    /// [`limits::FRAME_BYTES_MAX`](crate::limits::FRAME_BYTES_MAX), which counts if it is less. Clients that are no agents
    /// yet have limits of the node's.
    pub frame_bytes_max: usize,
    /// A client is an agent in this time, counted from the beginning of its connection, or the connection ends.
    pub attach_within: Duration,
    /// A connection ends when no byte came for this long.
    pub silence: Duration,
    /// The time between two heartbeats.
    pub heartbeat: Duration,
    /// How fast its frames are heard. `None`: as fast as they come, for what is done with each is bounded in another way.
    pub pace: Option<Pace>,
    /// The end after a frame that is too large.
    pub too_large: Ending,
    /// The end after a line that is no UTF-8. Of a binary message of a WebSocket the conversation is told.
    pub not_text: Ending,
}

/// The pages of a dialect, over HTTP.
pub struct Site {
    /// Its routes, and the fallback for paths of its own that have none. It sees no other paths than those.
    pub router: Router,
    /// With which its paths begin; a `*` is one part of any text, and `/` is the first page alone. Of two sites the one with the longer prefix of a path has it; no two have the same
    /// prefix. `/ws`, `/healthz`, `/readyz` and `/metrics` are the node's own.
    pub paths: &'static [&'static str],
    /// Methods that pages of allowed origins may use.
    pub methods: &'static [&'static str],
    /// Whether a request for this path by this method is answered only under names that cannot have been pointed at this node: a page
    /// that was taken for the node's own could read the answer.
    pub checks_names: fn(&str, &Method) -> bool,
    /// Headers that pages of allowed origins may send, besides `content-type`.
    pub headers: &'static [&'static str],
    /// How a request is refused before it comes to the router.
    pub refuse: fn(Intrusion) -> Response,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Pages of a dialect among those of another: requests that this other one would have no answer to, or that say whose
/// answer they want.
#[derive(Debug)]
pub struct Annex {
    /// The pages. The paths of it say nothing.
    pub site: Site,
    /// Which requests are for them: method, path and headers. Asked before any path is looked at.
    pub takes: fn(&Method, &str, &HeaderMap) -> bool,
}

/// Why a request over HTTP goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intrusion {
    /// A web page that is not allowed asks.
    Origin,
    /// It comes under a name that may have been pointed at this node.
    Name,
}

/// All dialects of a node.
#[derive(Clone)]
pub(crate) struct Dialects(Arc<[Arc<dyn Dialect>]>);

impl Dialects {
    /// At least one.
    pub(crate) fn new(dialects: Vec<Arc<dyn Dialect>>) -> Dialects {
        assert!(!dialects.is_empty(), "a node speaks at least one dialect");
        Dialects(dialects.into())
    }

    /// The dialect of a connection that begins so.
    pub(crate) fn of(&self, transport: Transport, first: Heard<'_>) -> &Arc<dyn Dialect> {
        let first = First::read(first);
        let speaks = |dialect: &&Arc<dyn Dialect>| dialect.speaks(transport, &first);
        self.0.iter().find(speaks).unwrap_or_else(|| self.last())
    }

    /// The one that has all connections which no other has.
    pub(crate) fn last(&self) -> &Arc<dyn Dialect> {
        self.0.last().expect("there is one")
    }

    /// The node is there.
    pub(crate) fn open(&self, desk: &Desk) {
        self.0.iter().for_each(|dialect| dialect.open(desk));
    }

    pub(crate) fn sites(&self, desk: &Desk) -> Vec<Site> {
        self.0.iter().filter_map(|dialect| dialect.site(desk)).collect()
    }

    pub(crate) fn annexes(&self, desk: &Desk) -> Vec<Annex> {
        self.0.iter().filter_map(|dialect| dialect.annex(desk)).collect()
    }

    /// The frames for a client that cannot be served.
    pub(crate) fn too_many_connections(&self) -> Frames {
        self.last().voice().frames(&Event::TooManyConnections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_frame_says_what_tells_dialects_apart() {
        let read = |text| First::read(Heard::Text(text));
        let first = |jsonrpc: Option<&str>, kind: Option<&str>| First {
            jsonrpc: jsonrpc.map(String::from),
            kind: kind.map(String::from),
        };
        assert_eq!(read(r#" {"jsonrpc":"2.0","id":1}"#), first(Some("2.0"), None));
        assert_eq!(read(r#"{"type":"req","id":[1]}"#), first(None, Some("req")));
        assert_eq!(read(r#"{"type":7,"jsonrpc":null}"#), First::default());
        for none in ["", "junk", "[1]", r#"["2.0","req"]"#, r#"{"type":"req""#, "null"] {
            assert_eq!(read(none), First::default(), "{none}");
        }
        assert_eq!(First::read(Heard::Binary), First::default());
    }
}

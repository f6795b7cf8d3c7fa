//! An agent that repairs nothing: NDJSON over TCP.
//!
//! It never reconnects, repeats or sorts, so what a node does shows. Events that come while it waits for
//! something else are kept, in the order in which they came. Nothing is read unless somebody waits: an
//! agent that is left alone is a slow reader.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    time::Duration,
};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{Instant, timeout, timeout_at},
};

/// How long a reply may take. A node answers a message within 3 s whatever other nodes do, and machines
/// that run tests are busy.
pub const REPLY_WITHIN: Duration = Duration::from_secs(60);
/// In an error: enough to see what happened.
const EVENTS_SHOWN: usize = 8;
const EVENT_CHARS_SHOWN: usize = 200;

/// The failure of a request.
#[derive(Debug, Error)]
pub enum WireError {
    /// The node said no.
    #[error("refused as {code}: {message}")]
    Refused {
        /// From the table in the protocol.
        code: String,
        /// For people.
        message: String,
    },
    /// The connection is gone, or never was.
    #[error("no connection: {0}")]
    Closed(#[from] io::Error),
    /// Nothing came.
    #[error("no {what} within {within:?}")]
    Silent {
        /// The event that was waited for.
        what: String,
        /// How long.
        within: Duration,
    },
    /// A line that is not JSON.
    #[error("a line that is not JSON: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl WireError {
    /// The code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Refused { code, .. } => Some(code),
            WireError::Closed(_) | WireError::Silent { .. } | WireError::Malformed(_) => None,
        }
    }
}

type Result<T> = std::result::Result<T, WireError>;

/// Something pushed by a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its type.
    pub kind: String,
    /// Its payload.
    pub body: Value,
}

impl Event {
    /// Whether it is of this type and its payload has all fields of `fields`, equal.
    #[must_use]
    pub fn is(&self, kind: &str, fields: &Value) -> bool {
        let wanted = fields.as_object().into_iter().flatten();
        self.kind == kind && wanted.clone().all(|(name, value)| self.body.get(name) == Some(value))
    }
}

/// Something that came from a node.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to a request.
    Reply {
        /// The id of the request, as [`Agent::send`] returned it.
        to: String,
        /// Its payload, or why it was refused.
        answer: Result<Value>,
    },
    /// Something pushed.
    Event(Event),
}

/// A connection to a node, registered or not.
#[derive(Debug)]
pub struct Agent {
    /// Its id, once registered.
    pub id: String,
    /// Its name for itself.
    pub name: String,
    lines: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    /// The beginning of a line that has not come whole.
    partial: Vec<u8>,
    requests: u64,
    events: VecDeque<Event>,
    /// By the id of the request; those that nobody has waited for yet.
    replies: BTreeMap<String, Value>,
}

impl Agent {
    /// Connects to the `HOST:PORT` of a node.
    ///
    /// # Errors
    ///
    /// [`WireError::Closed`] when nobody listens there.
    pub async fn connect(address: &str, name: &str) -> Result<Agent> {
        let stream = timeout(REPLY_WITHIN, TcpStream::connect(address)).await;
        let stream = stream.map_err(|_| silent("connection", REPLY_WITHIN))??;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Agent {
            id: String::new(),
            name: name.to_owned(),
            lines: BufReader::new(reader),
            writer,
            partial: Vec::new(),
            requests: 0,
            events: VecDeque::new(),
            replies: BTreeMap::new(),
        })
    }

    /// Connects and registers, under an id that the node draws.
    ///
    /// # Errors
    ///
    /// As [`Agent::connect`] and [`Agent::call`].
    pub async fn attach(address: &str, key: Option<&str>, name: &str) -> Result<Agent> {
        Agent::attach_as(address, key, name, json!({})).await
    }

    /// As [`Agent::attach`], with fields of `register` of one's own, such as `agent_id`.
    ///
    /// # Errors
    ///
    /// As [`Agent::connect`] and [`Agent::call`].
    pub async fn attach_as(
        address: &str,
        key: Option<&str>,
        name: &str,
        fields: Value,
    ) -> Result<Agent> {
        let mut agent = Agent::connect(address, name).await?;
        let mut payload = json!({ "key": key.unwrap_or(""), "name": name });
        if let (Some(payload), Value::Object(fields)) = (payload.as_object_mut(), fields) {
            payload.extend(fields);
        }
        let welcome = agent.call("register", payload).await?;
        agent.id = text(&welcome, "agent_id");
        Ok(agent)
    }

    /// Sends a request and waits for its reply, whose payload it returns.
    ///
    /// # Errors
    ///
    /// A refusal, a lost connection, or silence for [`REPLY_WITHIN`].
    pub async fn call(&mut self, kind: &str, payload: Value) -> Result<Value> {
        let id = self.send(kind, payload).await?;
        self.reply(&id).await
    }

    /// Waits for the reply to the request of this id, as [`Agent::send`] returned it.
    ///
    /// # Errors
    ///
    /// As [`Agent::call`].
    pub async fn reply(&mut self, id: &str) -> Result<Value> {
        let deadline = Instant::now() + REPLY_WITHIN;
        let frame = loop {
            if let Some(frame) = self.replies.remove(id) {
                break frame;
            }
            let frame = timeout_at(deadline, self.frame()).await;
            let frame = frame.map_err(|_| silent(&format!("reply to {id}"), REPLY_WITHIN))?;
            self.keep(frame?).await?;
        };
        answer(frame)
    }

    /// Sends a request without waiting, and returns its id.
    ///
    /// # Errors
    ///
    /// The connection is gone.
    pub async fn send(&mut self, kind: &str, payload: Value) -> Result<String> {
        self.requests += 1;
        let id = format!("{kind} {}", self.requests);
        let mut line = json!({ "id": id, "type": kind, "payload": payload }).to_string();
        line.push('\n');
        self.writer.write_all(line.as_bytes()).await?;
        Ok(id)
    }

    /// Takes the first event that `wanted` accepts, of those that came and those that come `within`.
    ///
    /// # Errors
    ///
    /// Silence, or the connection is gone.
    pub async fn event(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event> {
        if let Some(at) = self.events.iter().position(&wanted)
            && let Some(event) = self.events.remove(at)
        {
            return Ok(event);
        }
        let deadline = Instant::now() + within;
        loop {
            let frame = timeout_at(deadline, self.frame()).await;
            let Ok(frame) = frame else { return Err(silent(&self.but_seen(what), within)) };
            self.keep(frame?).await?;
            // One frame brings at most one event, and those before have been looked at.
            if self.events.back().is_some_and(&wanted)
                && let Some(event) = self.events.pop_back()
            {
                return Ok(event);
            }
        }
    }

    /// The next thing that comes: of events that came before, the oldest. Cancelling it loses nothing but,
    /// perhaps, the answer to a heartbeat.
    ///
    /// # Errors
    ///
    /// The connection is gone.
    pub async fn incoming(&mut self) -> Result<Incoming> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Incoming::Event(event));
            }
            if let Some((to, frame)) = self.replies.pop_first() {
                return Ok(Incoming::Reply { to, answer: answer(frame) });
            }
            let frame = self.frame().await?;
            self.keep(frame).await?;
        }
    }

    /// The expected answer, and another one.
    fn but_seen(&self, what: &str) -> String {
        let recent = self.events.iter().rev().take(EVENTS_SHOWN);
        let recent: Vec<String> = recent
            .map(|Event { kind, body }| {
                let body: String = body.to_string().chars().take(EVENT_CHARS_SHOWN).collect();
                format!("{kind} {body}")
            })
            .collect();
        format!("{what} (but, the latest first: {})", recent.join(", "))
    }

    /// Events that came and that nobody has taken yet, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// All events that have come, oldest first. Events before the answer to this are among them.
    ///
    /// # Errors
    ///
    /// As [`Agent::call`].
    pub async fn drain(&mut self) -> Result<Vec<Event>> {
        self.call("ping", json!({})).await?;
        Ok(self.events.drain(..).collect())
    }

    /// Says that it goes, and waits until the node has let it go.
    ///
    /// # Errors
    ///
    /// The node does not close the connection.
    pub async fn leave(mut self) -> Result<()> {
        self.writer.shutdown().await?;
        let mut rest = Vec::new();
        let end = timeout(REPLY_WITHIN, self.lines.read_to_end(&mut rest)).await;
        end.map_err(|_| silent("end of the connection", REPLY_WITHIN))??;
        Ok(())
    }

    /// Reads what comes, for ever, and keeps it: a node lets go of an agent that does not answer it for 90 s.
    /// May be dropped at any time. Ends when the connection does.
    pub async fn listen(&mut self) {
        while let Ok(frame) = self.frame().await {
            if self.keep(frame).await.is_err() {
                break;
            }
        }
    }

    /// Reads the connection to its end, past everything that is on the way, and returns the events.
    pub async fn last_words(mut self) -> Vec<Event> {
        while let Ok(Ok(frame)) = timeout(REPLY_WITHIN, self.frame()).await {
            if self.keep(frame).await.is_err() {
                break;
            }
        }
        self.events.into()
    }

    async fn keep(&mut self, mut frame: Value) -> Result<()> {
        if frame["payload"]["heartbeat"] == true {
            let pong = json!({ "type": "pong", "reply_to": frame["id"], "payload": {} });
            self.writer.write_all(format!("{pong}\n").as_bytes()).await?;
        } else if let Some(id) = frame.get("reply_to").and_then(Value::as_str) {
            self.replies.insert(id.to_owned(), frame);
        } else {
            let body = frame["payload"].take();
            self.events.push_back(Event { kind: text(&frame, "type"), body });
        }
        Ok(())
    }

    /// The next frame. Cancelling it loses nothing.
    async fn frame(&mut self) -> Result<Value> {
        let bytes = self.lines.read_until(b'\n', &mut self.partial).await?;
        if bytes == 0 || self.partial.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let frame = serde_json::from_slice(&self.partial)?;
        self.partial.clear();
        Ok(frame)
    }
}

/// The content of a reply.
fn answer(mut frame: Value) -> Result<Value> {
    let body = frame["payload"].take();
    if frame["type"] == "error" {
        Err(WireError::Refused { code: text(&body, "code"), message: text(&body, "message") })
    } else {
        Ok(body)
    }
}

/// A node's answer to `GET path`: the status and, if it is one, the JSON document.
///
/// # Errors
///
/// The node does not answer, or not in HTTP.
pub async fn get(address: &str, path: &str) -> Result<(u16, Value)> {
    let (status, text) = http(address, &format!("GET {path}"), None, "").await?;
    Ok((status, document(&text)))
}

/// A node's answer to `GET path`: the status and the text.
///
/// # Errors
///
/// As [`get`].
pub async fn get_text(address: &str, path: &str) -> Result<(u16, String)> {
    http(address, &format!("GET {path}"), None, "").await
}

/// A node's answer to `POST path` with a JSON document.
///
/// # Errors
///
/// As [`get`].
pub async fn post(address: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let (status, text) = http(address, &format!("POST {path}"), None, &body.to_string()).await?;
    Ok((status, document(&text)))
}

/// The result of a tool that a host calls for its agent, by `POST /tools/invoke`.
///
/// # Errors
///
/// As [`get`]; and a refusal of the request, with its status as the code.
pub async fn tool(address: &str, key: &str, call: &Value) -> Result<Value> {
    let what = "POST /tools/invoke";
    let (status, text) = http(address, what, Some(key), &call.to_string()).await?;
    match status {
        200 => Ok(document(&text)["result"]["details"].take()),
        status => Err(WireError::Refused { code: status.to_string(), message: text }),
    }
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

async fn http(address: &str, what: &str, key: Option<&str>, body: &str) -> Result<(u16, String)> {
    let shown = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
    let length = body.len();
    let head = format!("host: {address}\r\n{shown}connection: close\r\ncontent-length: {length}");
    let request =
        format!("{what} HTTP/1.1\r\n{head}\r\ncontent-type: application/json\r\n\r\n{body}");
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = timeout(REPLY_WITHIN, asked).await;
    let answer = answer.map_err(|_| silent(&format!("answer to {what}"), REPLY_WITHIN))??;
    let answer = String::from_utf8_lossy(&answer);
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "an answer that is not HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(bad)?;
    Ok((status, body.to_owned()))
}

fn silent(what: &str, within: Duration) -> WireError {
    WireError::Silent { what: what.to_owned(), within }
}

/// A field that is a text; empty when it is not there.
#[must_use]
pub fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

//! A client that costs little: the measured server shares its cores.
//!
//! Messages are written as bytes and read without building documents. It speaks what any ClawChat server
//! speaks, so that others can be measured with it.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// The content of every message, in bytes.
pub(super) const CONTENT_BYTES: usize = 200;
/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// A server that says nothing for so long has lost something.
pub(super) const SILENT: Duration = Duration::from_secs(60);

/// The beginning of a run, from which all its moments are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Clock {
        Clock(Instant::now())
    }

    /// Microseconds since the beginning.
    pub(super) fn now_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A message of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The sender's place in the run.
    pub(super) sender: usize,
    /// The sender's how-manieth.
    pub(super) count: u64,
    /// When, by the run's clock.
    pub(super) at_us: u64,
}

impl Said {
    pub(super) fn content(self) -> String {
        let mut text = format!("{} {} {} ", self.sender, self.count, self.at_us);
        // Writing to a String cannot fail.
        let _ = write!(text, "{:x<1$}", "", CONTENT_BYTES.saturating_sub(text.len()));
        text
    }

    pub(super) fn parse(content: &str) -> Option<Said> {
        let mut parts = content.split(' ');
        let sender = parts.next()?.parse().ok()?;
        let count = parts.next()?.parse().ok()?;
        Some(Said { sender, count, at_us: parts.next()?.parse().ok()? })
    }
}

/// Something that came.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The request of this number was answered.
    Ok(u64),
    /// A message of this run.
    Said(Said),
    /// Anything else.
    Other,
}

/// A client that sends messages and hears them, of whatever server.
pub(super) trait Speaker {
    /// Writes a message when next flushed. Returns the request's number.
    fn say(&mut self, room: &str, said: Said) -> u64;
    /// Writes what waits.
    async fn flush(&mut self) -> Result<()>;
    /// The next thing that comes. A refusal is an error. Not to be cancelled.
    async fn incoming(&mut self) -> Result<Incoming>;
    /// Whether there is more that needs no waiting.
    fn has_more(&self) -> bool;
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    reply_to: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Ping {
    #[serde(default)]
    heartbeat: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    line: Vec<u8>,
    out: Vec<u8>,
    requests: u64,
    /// The id that the server gave.
    pub(super) agent: String,
}

impl Connection {
    /// Connects and registers.
    pub(super) async fn attach(address: &str, key: Option<&str>, name: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("nobody answers at {address}"))?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        let (line, out, agent) = (Vec::new(), Vec::new(), String::new());
        let mut connection = Connection { reader, writer, line, out, requests: 0, agent };
        let registers = json!({ "key": key.unwrap_or(""), "name": name });
        let registered = connection.call("register", &registers).await?;
        registered["agent_id"]
            .as_str()
            .context("an agent without an id")?
            .clone_into(&mut connection.agent);
        Ok(connection)
    }

    /// A room of its own, which it is in.
    pub(super) async fn make_room(&mut self, name: &str) -> Result<String> {
        let made = self.call("create_room", &json!({ "name": name, "public": true })).await?;
        let room = made["room_id"].as_str().context("a room without an id")?.to_owned();
        self.join(&room).await?;
        Ok(room)
    }

    /// Goes into a room, in which it may be already.
    pub(super) async fn join(&mut self, room: &str) -> Result<()> {
        match self.call("join_room", &json!({ "room_id": room })).await {
            Err(error) if !error.to_string().contains("already_in_room") => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The answer to a request; lines before it are passed over.
    pub(super) async fn call(&mut self, kind: &str, payload: &Value) -> Result<Value> {
        let number = self.push(kind, payload);
        self.flush().await?;
        loop {
            self.read_line().await?;
            let frame: Frame<'_> = serde_json::from_slice(&self.line)?;
            let answers = frame.reply_to.as_deref() == Some(&number.to_string());
            if answers && frame.kind == "error" {
                bail!("{kind} is refused: {}", frame.payload);
            } else if answers {
                return Ok(serde_json::from_str(frame.payload.get())?);
            }
            self.beat().await?;
        }
    }

    /// The payload of the next event of a kind; other lines are passed over.
    pub(super) async fn event(&mut self, kind: &str) -> Result<Value> {
        loop {
            self.read_line().await?;
            let frame: Frame<'_> = serde_json::from_slice(&self.line)?;
            if frame.kind == kind {
                return Ok(serde_json::from_str(frame.payload.get())?);
            }
            self.beat().await?;
        }
    }

    /// Writes a request when next flushed. Returns its number.
    pub(super) fn push(&mut self, kind: &str, payload: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests.to_string();
        let frame = json!({ "id": id, "type": kind, "payload": payload });
        self.out.extend(frame.to_string().into_bytes());
        self.out.push(b'\n');
        self.requests
    }

    /// Answers the last line, if it is a heartbeat.
    async fn beat(&mut self) -> Result<()> {
        let frame: Frame<'_> = serde_json::from_slice(&self.line)?;
        if frame.kind != "ping" {
            return Ok(());
        }
        let ping: Ping = serde_json::from_str(frame.payload.get())?;
        if ping.heartbeat {
            let pong = json!({ "type": "pong", "reply_to": frame.id, "payload": {} });
            self.out.extend(pong.to_string().into_bytes());
            self.out.push(b'\n');
            self.flush().await?;
        }
        Ok(())
    }

    async fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        let read = timeout(SILENT, self.reader.read_until(b'\n', &mut self.line)).await;
        let read = read.with_context(|| format!("nothing comes for {SILENT:?}"))?;
        if read.context("the connection broke")? == 0 || self.line.last() != Some(&b'\n') {
            bail!("the server hung up");
        }
        Ok(())
    }
}

impl Speaker for Connection {
    fn say(&mut self, room: &str, said: Said) -> u64 {
        self.requests += 1;
        let (id, content) = (self.requests, said.content());
        // Writing to a Vec cannot fail; neither text has anything to escape.
        let _ = writeln!(
            self.out,
            r#"{{"id":"{id}","type":"send_message","payload":{{"room_id":"{room}","content":"{content}"}}}}"#
        );
        id
    }

    async fn flush(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.writer.write_all(&self.out).await.context("the server hung up")?;
            self.out.clear();
        }
        Ok(())
    }

    async fn incoming(&mut self) -> Result<Incoming> {
        self.read_line().await?;
        let frame: Frame<'_> = serde_json::from_slice(&self.line)?;
        if let Some(to) = &frame.reply_to {
            if frame.kind == "error" {
                bail!("a request is refused: {}", frame.payload);
            }
            return Ok(Incoming::Ok(to.parse().context("an answer to what was never asked")?));
        }
        if frame.kind == "message_received" {
            let message: Message<'_> = serde_json::from_str(frame.payload.get())?;
            return Ok(Said::parse(&message.content).map_or(Incoming::Other, Incoming::Said));
        }
        self.beat().await?;
        Ok(Incoming::Other)
    }

    fn has_more(&self) -> bool {
        self.reader.buffer().contains(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_who_sent_it_and_when_and_is_as_long_as_they_all_are() {
        let said = Said { sender: 7, count: 1_234, at_us: 5_678_901 };
        let content = said.content();
        assert_eq!(content.len(), CONTENT_BYTES);
        assert_eq!(Said::parse(&content), Some(said));
        assert_eq!(Said::parse("hello, world"), None);
    }
}

//! One connection, as bytes: every frame is looked at whole.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{Instant, timeout_at},
};

use super::pattern::is_uuid;

/// The part of the traffic that a failure can show.
const FRAMES_KEPT: usize = 64;
const FRAME_CHARS_KEPT: usize = 600;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Connection {
    lines: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    /// The beginning of a line that is not complete.
    partial: Vec<u8>,
    /// Requests, numbered.
    sent: u64,
    /// Requests without a reply, oldest first.
    open: VecDeque<String>,
    replies: BTreeMap<String, Frame>,
    events: VecDeque<Frame>,
    /// Of frames: each is fresh.
    ids: BTreeSet<String>,
    recent: VecDeque<String>,
}

/// A reply or an event, its envelope checked.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) kind: String,
    pub(super) payload: Value,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Connection {
            lines: BufReader::new(reader),
            writer,
            partial: Vec::new(),
            sent: 0,
            open: VecDeque::new(),
            replies: BTreeMap::new(),
            events: VecDeque::new(),
            ids: BTreeSet::new(),
            recent: VecDeque::new(),
        })
    }

    /// Sends a request under an id of its own.
    pub(super) async fn ask(&mut self, kind: &str, payload: &Value) -> Result<()> {
        self.sent += 1;
        let id = format!("{kind} {}", self.sent);
        let line = json!({ "id": id, "type": kind, "payload": payload });
        self.open.push_back(id);
        self.write(format!("{line}\n").as_bytes()).await
    }

    /// Sends any line. If it is a request with an id, its reply is awaited like any other.
    pub(super) async fn write_raw(&mut self, bytes: &[u8]) {
        let request = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        self.open.extend(request["id"].as_str().map(str::to_owned));
        // A node may close the connection before it has read all of it. The expectation then says so.
        drop(self.write(bytes).await);
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let text: String = String::from_utf8_lossy(bytes).chars().take(FRAME_CHARS_KEPT).collect();
        self.note(format!("> {}", text.trim_end()));
        self.writer.write_all(bytes).await.context("the connection is closed")
    }

    /// The reply to the oldest request without one.
    pub(super) async fn reply(&mut self, deadline: Instant) -> Result<Frame> {
        let id = self.open.front().cloned().context("nothing was asked")?;
        loop {
            if let Some(frame) = self.replies.remove(&id) {
                self.open.pop_front();
                return Ok(frame);
            }
            self.receive(deadline).await.with_context(|| format!("no reply to `{id}`"))?;
        }
    }

    /// The next event that is wanted. Heartbeats are answered, and skipped unless one is wanted.
    pub(super) async fn event(
        &mut self,
        deadline: Instant,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Result<Frame> {
        loop {
            while let Some(frame) = self.events.pop_front() {
                if wanted(&frame) {
                    return Ok(frame);
                }
            }
            self.receive(deadline).await.context("no event")?;
        }
    }

    /// Everything that was pushed before the reply to a ping that is sent now.
    pub(super) async fn drain(&mut self, deadline: Instant) -> Result<Vec<Frame>> {
        ensure!(self.open.is_empty(), "{:?} is not answered", self.open);
        self.ask("ping", &json!({})).await?;
        let pong = self.reply(deadline).await?;
        ensure!(pong.kind == "pong", "ping is answered by {}", pong.kind);
        Ok(self.events.drain(..).collect())
    }

    /// Waits until the node closes it.
    pub(super) async fn closed(&mut self, deadline: Instant) -> Result<Vec<Frame>> {
        loop {
            let bytes = timeout_at(deadline, self.line()).await.context("it stays open")?;
            match bytes {
                Ok(line) => self.take(&line).await?,
                // The end, or a reset: bytes of ours that the node did not read.
                Err(_) => {
                    let late: Vec<_> = std::mem::take(&mut self.replies).into_iter().collect();
                    ensure!(late.is_empty(), "it still answers: {late:?}");
                    return Ok(self.events.drain(..).collect());
                }
            }
        }
    }

    /// Its newest frames, oldest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &str> {
        self.recent.iter().map(String::as_str)
    }

    async fn receive(&mut self, deadline: Instant) -> Result<()> {
        let line = timeout_at(deadline, self.line()).await.context("nothing came")??;
        self.take(&line).await
    }

    /// The next line, without its end. Cancelling it loses nothing.
    async fn line(&mut self) -> Result<String> {
        self.lines.read_until(b'\n', &mut self.partial).await?;
        ensure!(self.partial.pop() == Some(b'\n'), "the node has closed the connection");
        Ok(String::from_utf8(std::mem::take(&mut self.partial))?)
    }

    /// Checks the envelope of a frame and keeps it (spec §1).
    async fn take(&mut self, line: &str) -> Result<()> {
        self.note(format!("< {}", line.chars().take(FRAME_CHARS_KEPT).collect::<String>()));
        let bad = || format!("a frame that is none: {line}");
        let frame: BTreeMap<String, Value> = serde_json::from_str(line).with_context(bad)?;
        let text = |field: &str| frame.get(field).and_then(Value::as_str).map(str::to_owned);
        let known = ["id", "reply_to", "type", "payload"];
        ensure!(frame.keys().all(|field| known.contains(&field.as_str())), "{}", bad());
        let id = text("id").with_context(bad)?;
        ensure!(is_uuid(&id) && self.ids.insert(id.clone()), "an id that is not fresh: {line}");
        let payload =
            frame.get("payload").filter(|payload| payload.is_object()).with_context(bad)?.clone();
        let taken = Frame { kind: text("type").with_context(bad)?, payload };
        match text("reply_to") {
            Some(to) if self.open.contains(&to) && !self.replies.contains_key(&to) => {
                self.replies.insert(to, taken);
            }
            Some(_) => bail!("a reply to what was not asked: {line}"),
            None if frame.contains_key("reply_to") => bail!("{}", bad()),
            None => {
                if taken.is_heartbeat() {
                    let pong = json!({ "type": "pong", "reply_to": id, "payload": {} });
                    self.write(format!("{pong}\n").as_bytes()).await?;
                }
                self.events.push_back(taken);
            }
        }
        Ok(())
    }

    fn note(&mut self, frame: String) {
        if self.recent.len() == FRAMES_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(frame);
    }
}

impl Frame {
    pub(super) fn is_heartbeat(&self) -> bool {
        self.kind == "ping"
    }
}

//! A transcript, played against nodes.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    connection::{Connection, Frame},
    pattern::Bindings,
    script::{Action, Ask, Expected, Raw, Script, Step, When},
};

/// The time that one line may take, unless the transcript says otherwise: machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two requests for news that has not come to a node yet.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Of each connection, when a transcript fails.
const FRAMES_SHOWN: usize = 8;
/// Names for a transcript to use: `$name`, `$name2` and so on, `$id` and so on.
const FRESH_NAMES: usize = 9;

/// Where transcripts are played.
#[derive(Debug)]
pub(super) struct Ground {
    /// Of the nodes. The first connection of a transcript goes to the first node, and so on, round robin.
    pub(super) nodes: Vec<String>,
    /// Where they serve HTTP.
    pub(super) pages: Vec<String>,
    /// Values that all transcripts know, such as keys.
    pub(super) bound: Bindings,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Play<'a> {
    ground: &'a Ground,
    script: &'a Script,
    bound: Bindings,
    actors: BTreeMap<String, Actor>,
    /// Connections made so far.
    connected: usize,
    patience: Duration,
}

#[derive(Debug)]
struct Actor {
    connection: Connection,
    node: usize,
}

impl<'a> Play<'a> {
    pub(super) fn new(ground: &'a Ground, script: &'a Script) -> Play<'a> {
        let mut bound = ground.bound.clone();
        for what in ["name", "id"] {
            for i in 1..=FRESH_NAMES {
                let count = if i == 1 { String::new() } else { i.to_string() };
                let fresh = format!("{} {what}{count}", script.name);
                bound.insert(format!("{what}{count}"), fresh.into());
            }
        }
        let actors = BTreeMap::new();
        Play { ground, script, bound, actors, connected: 0, patience: PATIENCE }
    }

    /// # Errors
    ///
    /// The difference: the step, its expectation, and the newest frames of the connections.
    pub(super) async fn run(mut self) -> Result<()> {
        for step in &self.script.steps {
            if let Err(error) = self.step(step).await {
                let Step { line, text, .. } = step;
                bail!("{}.txt:{line}: {text}\n  {error:#}\n{}", self.script.name, self.recent());
            }
        }
        let names: Vec<String> = self.actors.keys().cloned().collect();
        for who in names {
            if let Err(error) = self.silence(&who).await {
                bail!("{}.txt, at its end: {who}: {error:#}\n{}", self.script.name, self.recent());
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        match &step.action {
            Action::Agents { names, key } => self.register(names, key).await,
            Action::Connect { who, at } => self.connect(who, at.as_deref()).await,
            Action::Disconnect { who } => {
                self.actors.remove(who).with_context(|| format!("{who} is not connected"))?;
                Ok(())
            }
            Action::Patience { seconds } => {
                self.patience = Duration::from_secs(*seconds);
                Ok(())
            }
            Action::Ask { who, ask } => self.ask(who, ask).await,
            Action::AskUntil { who, ask, answer } => self.ask_until(who, ask, answer).await,
            Action::Raw { who, bytes } => {
                let bytes = self.raw(bytes);
                self.actor(who)?.connection.write_raw(&bytes).await;
                Ok(())
            }
            Action::Reply { who, answer } => {
                let deadline = self.deadline();
                let frame = self.actor(who)?.connection.reply(deadline).await?;
                self.check(answer, &frame)
            }
            Action::Events { who, expected } => self.events(who, expected).await,
            Action::Silence { who } => self.silence(who).await,
            Action::Closed { who, when } => self.closed(who, *when).await,
        }
    }

    async fn register(&mut self, names: &[String], key: &str) -> Result<()> {
        let key = self.bound.get(key).with_context(|| format!("there is no ${key}"))?.clone();
        for who in names {
            self.connect(who, None).await?;
            let deadline = self.deadline();
            let connection = &mut self.actor(who)?.connection;
            connection.ask("register", &json!({ "key": key, "name": who })).await?;
            let welcome = connection.reply(deadline).await?;
            let id = welcome.payload.get("agent_id").filter(|_| welcome.kind == "ok").cloned();
            let id = id.with_context(|| format!("{who} is not registered: {welcome:?}"))?;
            self.bound.insert(who.clone(), id);
        }
        Ok(())
    }

    async fn connect(&mut self, who: &str, at: Option<&str>) -> Result<()> {
        let node = match at {
            Some(other) => self.actor(other)?.node,
            None => self.connected % self.ground.nodes.len(),
        };
        self.connected += 1;
        let connection = Connection::open(&self.ground.nodes[node]).await?;
        let before = self.actors.insert(who.to_owned(), Actor { connection, node });
        ensure!(before.is_none(), "{who} is connected");
        Ok(())
    }

    async fn ask(&mut self, who: &str, ask: &Ask) -> Result<()> {
        let payload = ask.payload.fill(&self.bound)?;
        self.actor(who)?.connection.ask(&ask.kind, &payload).await
    }

    async fn ask_until(&mut self, who: &str, ask: &Ask, answer: &Expected) -> Result<()> {
        let deadline = self.deadline();
        loop {
            self.ask(who, ask).await?;
            let frame = self.actor(who)?.connection.reply(deadline).await?;
            match self.check(answer, &frame) {
                Ok(()) => return Ok(()),
                // On one node, too: that a connection has ended is seen when its socket says so.
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => sleep(ASK_AGAIN).await,
            }
        }
    }

    fn raw(&self, raw: &Raw) -> Vec<u8> {
        let (text, pad) = match raw {
            Raw::Bytes(bytes) => return bytes.clone(),
            Raw::Line { text, pad } => (text, *pad),
        };
        // The longest name first: `$name2` is not `$name` and a 2.
        let fill = |line: String, (name, value): (&String, &Value)| {
            line.replace(&format!("${name}"), &value.to_string())
        };
        let line = self.bound.iter().rev().fold(text.clone(), fill);
        let mut line = line.into_bytes();
        line.resize(line.len().max(pad.saturating_sub(1)), b' ');
        line.push(b'\n');
        line
    }

    async fn events(&mut self, who: &str, expected: &[Expected]) -> Result<()> {
        let deadline = self.deadline();
        let mut left: Vec<&Expected> = expected.iter().collect();
        while !left.is_empty() {
            let heartbeat = left.iter().any(|frame| frame.kind == "ping");
            let mut actor = self.actors.remove(who).context("it is not connected")?;
            let wanted = |frame: &Frame| self.is_ours(frame) || (heartbeat && frame.is_heartbeat());
            let frame = actor.connection.event(deadline, wanted).await;
            self.actors.insert(who.to_owned(), actor);
            let frame = frame?;
            let found: Vec<Result<()>> = left
                .iter()
                .map(|expected| self.fits(expected, &frame, &mut self.bound.clone()))
                .collect();
            match found.iter().position(Result::is_ok) {
                Some(at) => self.check(left.remove(at), &frame)?,
                None => {
                    let errors = found.into_iter().filter_map(Result::err);
                    let errors: Vec<String> = errors.map(|error| format!("{error:#}")).collect();
                    bail!("{}", errors.join("; or "));
                }
            }
        }
        Ok(())
    }

    async fn closed(&mut self, who: &str, when: When) -> Result<()> {
        let deadline = self.deadline();
        let mut actor = self.actors.remove(who).context("it is not connected")?;
        if when == When::Now {
            // Closed already, it cannot be asked.
            let _ = actor.connection.ask("ping", &json!({})).await;
        }
        let left = actor.connection.closed(deadline).await?;
        let left: Vec<Frame> = left.into_iter().filter(|frame| self.is_ours(frame)).collect();
        ensure!(left.is_empty(), "something came before it was closed: {left:?}");
        Ok(())
    }

    async fn silence(&mut self, who: &str) -> Result<()> {
        let deadline = self.deadline();
        let came = self.actor(who)?.connection.drain(deadline).await?;
        let came: Vec<Frame> = came.into_iter().filter(|frame| self.is_ours(frame)).collect();
        ensure!(came.is_empty(), "nothing was expected, but there is {came:?}");
        Ok(())
    }

    /// Whether an event can be of this transcript: others are played beside it, and every agent sees
    /// their rooms come and go.
    fn is_ours(&self, frame: &Frame) -> bool {
        let text = |field: &str| frame.payload.get(field).and_then(Value::as_str).unwrap_or("");
        match frame.kind.as_str() {
            "ping" => false,
            "room_created" => text("name").starts_with(&format!("{} ", self.script.name)),
            "room_destroyed" => self.bound.values().any(|bound| bound == text("room_id")),
            _ => true,
        }
    }

    /// Compares, and binds.
    fn check(&mut self, expected: &Expected, frame: &Frame) -> Result<()> {
        let mut bound = self.bound.clone();
        self.fits(expected, frame, &mut bound)?;
        if let Some(name) = &expected.bind {
            bound.insert(name.clone(), frame.payload.clone());
        }
        self.bound = bound;
        Ok(())
    }

    fn fits(&self, expected: &Expected, frame: &Frame, bound: &mut Bindings) -> Result<()> {
        let Expected { kind, payload, words, .. } = expected;
        ensure!(*kind == frame.kind, "it is {} {}, not {kind}", frame.kind, frame.payload);
        payload.matches(&frame.payload, bound)?;
        let message = frame.payload.get("message").and_then(Value::as_str).unwrap_or_default();
        ensure!(message.contains(words.as_str()), "`{message}` does not say `{words}`");
        Ok(())
    }

    fn actor(&mut self, who: &str) -> Result<&mut Actor> {
        self.actors.get_mut(who).with_context(|| format!("{who} is not connected"))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// The newest frames of the connections, without the rooms of other transcripts.
    fn recent(&self) -> String {
        let own = format!("\"name\":\"{} ", self.script.name);
        let ours = |line: &&str| !line.contains("\"type\":\"room_created\"") || line.contains(&own);
        let mut text = String::new();
        for (who, Actor { connection, node }) in &self.actors {
            text += &format!("    {who}, at node {node}:\n");
            let lines: Vec<&str> = connection.recent().filter(ours).collect();
            for line in &lines[lines.len().saturating_sub(FRAMES_SHOWN)..] {
                text += &format!("      {line}\n");
            }
        }
        text
    }
}

//! `clawmesh wait`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use client::cursor::CursorFile;
use client::events::Event;
use client::messages::{Item, Messages, Start};
use client::options::is_drawn;
use protocol::event::{AgentJoined, AgentLeft, Event as Pushed, RoomDestroyed};
use protocol::object::Message;
use protocol::request::{ListAgents, RoomTip};
use tokio::time::{Instant, timeout_at};

use crate::args::{Since, seconds};
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::pick::{self, Pick};

/// Wait for the next message in a room
///
/// Prints the message as JSON and exits 0; exits 1 when --timeout passes, 2 when --idle-timeout
/// passes, 3 when the message ends the conversation. Thinking pulses and one's own messages (same agent id; where a server
/// gives each command another one, same name) are passed over.
#[derive(Debug, clap::Args)]
pub struct Wait {
    /// Room id, or exact name
    pub room: String,
    /// Never give up on --timeout: look again instead, and show a sign of life on stderr. Also waits
    /// for the node, if it is not there
    #[arg(long = "loop")]
    pub keep_waiting: bool,
    /// Print every message as it comes, until the conversation ends; never gives up on --timeout
    #[arg(long, conflicts_with = "drain")]
    pub follow: bool,
    /// Begin after this number, or after the newest message (tip, auto) [default: tip]
    #[arg(long, value_name = "SEQ|tip|auto")]
    pub since_seq: Option<Since>,
    /// Seconds to wait; 0 = a day. With --loop: seconds between looks
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
    /// Exit 2 when no message came for so many seconds; 0 = never
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub idle_timeout: Duration,
    /// Seconds between two signs of life of --loop and --follow on stderr; 0 = none
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub heartbeat_secs: Duration,
    /// Print `[HH:MM:SS] #SEQ NAME: CONTENT` instead of JSON
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Write messages to this file, made anew, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the highest number received in this file, and begin there. --since-seq counts only until
    /// the file exists
    #[arg(long, value_name = "PATH")]
    pub cursor_file: Option<PathBuf>,
    /// Print everything unread up to the tip, not only one message
    #[arg(long)]
    pub drain: bool,
    /// Show the thinking pulses of others on stderr
    #[arg(long)]
    pub show_thinking: bool,
    #[command(flatten)]
    pub pick: Pick,
}

/// The meaning of `--timeout 0`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A node that announces a tip has its messages at hand.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// Names remembered for `peer NAME left`; beyond this, ids are shown.
const NAMES_MAX: usize = 4096;

/// In a stream of messages the cursor is kept at most so often: each time costs two writes to the disk.
/// Messages printed since then come again if the process is killed.
const KEEP_EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn run(mut cx: Context, args: Wait) -> Result<Outcome, Failure> {
    cx.output.redirect(args.output.as_deref())?;
    let file = args.cursor_file.clone().map(CursorFile::new);
    let stored = file.as_ref().map(CursorFile::read).transpose()?.flatten();
    let idle = Some(args.idle_timeout)
        .filter(|timeout| !timeout.is_zero())
        .map(|timeout| Instant::now() + timeout);
    let connected =
        if args.keeps_waiting() { cx.connect_patiently(idle).await } else { cx.connect().await };
    let (client, events) = match connected {
        Err(Failure::NoNode { source }) if idle.is_some() && args.keeps_waiting() => {
            cx.output.note(&format!("wait: idle: {source}"))?;
            return Ok(Outcome::Idle);
        }
        other => other?,
    };
    let room_id = cx.room(&client, &args.room).await?;
    let start = start(stored, args.since_seq);
    let me = Me {
        agent_id: client.agent_id().to_owned(),
        chosen: cx.node.agent_id.is_some(),
        name: cx.node.name().to_owned(),
    };
    let messages = Messages::open(client, events, room_id.clone(), start).await?;
    let kept = Kept { file, seq: stored, at: Instant::now() };
    let names = HashMap::new();
    let mut waiter = Waiter { cx: &cx, args, room_id, me, messages, names, kept };
    // From now on no message between two runs is skipped.
    waiter.keep()?;
    waiter.learn_names().await?;
    let result = waiter.run().await;
    // Also after a failure: printed messages were received.
    waiter.keep()?;
    result
}

impl Wait {
    fn keeps_waiting(&self) -> bool {
        self.keep_waiting || self.follow
    }
}

/// The cursor file, and the number in it.
struct Kept {
    file: Option<CursorFile>,
    seq: Option<u64>,
    at: Instant,
}

fn start(stored: Option<u64>, since: Option<Since>) -> Start {
    match (stored, since) {
        (Some(seq), _) | (None, Some(Since::Number(seq))) => Start::After(seq),
        (None, Some(Since::Tip) | None) => Start::Tip,
    }
}

struct Waiter<'a> {
    cx: &'a Context,
    args: Wait,
    room_id: String,
    me: Me,
    messages: Messages,
    names: HashMap<String, String>,
    kept: Kept,
}

/// Whose messages are one's own.
struct Me {
    agent_id: String,
    /// The id was given, and so is that of all one's commands.
    chosen: bool,
    name: String,
}

impl Me {
    fn wrote(&self, message: &Message) -> bool {
        // A drawn id says who it is, and others may have the same name. Other ids that nobody chose are new with each command.
        let by_name = !self.chosen && !is_drawn(&message.agent_id);
        message.agent_id == self.agent_id || by_name && message.agent_name == self.name
    }
}

/// When something is due.
struct Clock {
    started: Instant,
    idle: Option<Instant>,
    round: Instant,
    heartbeat: Option<Instant>,
}

impl Waiter<'_> {
    async fn learn_names(&mut self) -> Result<(), Failure> {
        let ask = ListAgents { room_id: Some(self.room_id.clone()) };
        let agents = self.messages.client().call(ask).await?.agents;
        self.names =
            agents.into_iter().map(|agent| (agent.agent_id, agent.name)).take(NAMES_MAX).collect();
        Ok(())
    }

    async fn run(&mut self) -> Result<Outcome, Failure> {
        let now = Instant::now();
        let mut clock = Clock {
            started: now,
            idle: Some(self.args.idle_timeout)
                .filter(|timeout| !timeout.is_zero())
                .map(|timeout| now + timeout),
            round: now + self.round(),
            heartbeat: self
                .heartbeat()
                .filter(|_| self.args.keeps_waiting())
                .map(|every| now + every),
        };
        loop {
            let keep = self.is_to_be_kept().then(|| self.kept.at + KEEP_EVERY);
            let due = [clock.idle, clock.heartbeat, keep].into_iter().flatten();
            let due = due.fold(clock.round, Instant::min);
            match timeout_at(due, self.messages.next()).await {
                Ok(Ok(Item::Message(message))) => {
                    let taken = self.take(&message)?;
                    if taken && self.args.follow {
                        self.go_on(&mut clock)?;
                        if pick::ends(&message) {
                            return Ok(Outcome::Ended);
                        }
                    } else if taken {
                        return self.finish(&message).await;
                    }
                }
                Ok(Ok(Item::Event(event))) => self.tell(event)?,
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    if let Some(outcome) = self.on_time(&mut clock)? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    /// The peers are not idle, and the new cursor is written soon.
    fn go_on(&mut self, clock: &mut Clock) -> Result<(), Failure> {
        let now = Instant::now();
        clock.idle = clock.idle.map(|_| now + self.args.idle_timeout);
        if now >= self.kept.at + KEEP_EVERY { self.keep() } else { Ok(()) }
    }

    fn is_to_be_kept(&self) -> bool {
        self.kept.file.is_some() && self.kept.seq != Some(self.messages.cursor())
    }

    /// Writes the cursor, if there is something new to write.
    fn keep(&mut self) -> Result<(), Failure> {
        let seq = self.messages.cursor();
        if self.kept.seq != Some(seq)
            && let Some(file) = &self.kept.file
        {
            file.write(seq)?;
            self.kept.seq = Some(seq);
        }
        self.kept.at = Instant::now();
        Ok(())
    }

    fn heartbeat(&self) -> Option<Duration> {
        Some(self.args.heartbeat_secs).filter(|every| !every.is_zero())
    }

    /// How long one look lasts.
    fn round(&self) -> Duration {
        if self.args.timeout.is_zero() { DAY } else { self.args.timeout }
    }

    fn on_time(&mut self, clock: &mut Clock) -> Result<Option<Outcome>, Failure> {
        let now = Instant::now();
        let cursor = self.messages.cursor();
        if clock.idle.is_some_and(|idle| now >= idle) {
            let seconds = self.args.idle_timeout.as_secs();
            let hint = format!("wait: idle for {seconds} s; resume with --since-seq {cursor}");
            self.cx.output.note(&hint)?;
            return Ok(Some(Outcome::Idle));
        }
        if now >= clock.round {
            if !self.args.keeps_waiting() {
                return Err(Failure::TimedOut { after: self.round() });
            }
            self.messages.look_again();
            clock.round = now + self.round();
        }
        if clock.heartbeat.is_some_and(|due| now >= due) {
            let seconds = clock.started.elapsed().as_secs();
            self.cx.output.note(&format!("wait: alive for {seconds} s, at seq {cursor}"))?;
            clock.heartbeat = self.heartbeat().map(|every| now + every);
        }
        if now >= self.kept.at + KEEP_EVERY {
            self.keep()?;
        }
        Ok(None)
    }

    /// Prints a message if it is one to wake up for, and says whether it was.
    fn take(&self, message: &Message) -> Result<bool, Failure> {
        if self.me.wrote(message) {
            return Ok(false);
        }
        if pick::is_thinking(message) {
            if self.args.show_thinking {
                let (name, text) = (&message.agent_name, &message.content);
                self.cx.output.note(&format!("wait: thinking {name}: {text}"))?;
            }
            return Ok(false);
        }
        if !self.args.pick.takes(message) {
            return Ok(false);
        }
        if self.args.text {
            self.cx.output.line(&format::message(&self.cx.output, message))?;
        } else {
            self.cx.output.object(message)?;
        }
        Ok(true)
    }

    /// After the first message: the rest of the batch, if it was asked for.
    async fn finish(&mut self, first: &Message) -> Result<Outcome, Failure> {
        let mut ended = pick::ends(first);
        if self.args.drain {
            let ask = RoomTip { room_id: self.room_id.clone() };
            let tip = self.messages.client().call(ask).await?.seq;
            let until = Instant::now() + DRAIN_PATIENCE;
            while self.messages.cursor() < tip {
                match timeout_at(until, self.messages.next()).await {
                    Ok(Ok(Item::Message(message))) => {
                        ended |= self.take(&message)? && pick::ends(&message);
                    }
                    Ok(Ok(Item::Event(event))) => self.tell(event)?,
                    Ok(Err(error)) => return Err(error.into()),
                    Err(_) => break,
                }
            }
            let cursor = self.messages.cursor();
            self.cx.output.note(&format!("drained through seq {cursor}"))?;
        }
        Ok(if ended { Outcome::Ended } else { Outcome::Done })
    }

    fn tell(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Pushed(Pushed::AgentJoined(joined)) if joined.room_id == self.room_id => {
                self.tell_joined(joined)
            }
            Event::Pushed(Pushed::AgentLeft(left)) if left.room_id == self.room_id => {
                self.tell_left(&left)
            }
            Event::Pushed(Pushed::RoomDestroyed(RoomDestroyed { room_id }))
                if room_id == self.room_id =>
            {
                Err(Failure::RoomGone)
            }
            Event::Disconnected { reason } => self.note(&format!("connection lost: {reason}")),
            Event::Reconnected { .. } => self.note("connected again"),
            Event::Pushed(_) | Event::Missed { .. } | Event::Closed { .. } => Ok(()),
        }
    }

    fn tell_joined(&mut self, joined: AgentJoined) -> Result<(), Failure> {
        self.note(&format!("peer {} joined", joined.agent.name))?;
        if self.names.len() < NAMES_MAX {
            self.names.insert(joined.agent.agent_id, joined.agent.name);
        }
        Ok(())
    }

    fn tell_left(&mut self, left: &AgentLeft) -> Result<(), Failure> {
        let name = self.names.remove(&left.agent_id).unwrap_or_else(|| left.agent_id.clone());
        self.note(&format!("peer {name} left"))
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        Ok(self.cx.output.note(&format!("wait: {text}"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::sample;

    #[test]
    fn the_cursor_file_wins_once_it_exists() {
        assert_eq!(start(None, None), Start::Tip);
        assert_eq!(start(None, Some(Since::Tip)), Start::Tip);
        assert_eq!(start(None, Some(Since::Number(5))), Start::After(5));
        assert_eq!(start(Some(7), Some(Since::Tip)), Start::After(7));
        assert_eq!(start(Some(7), Some(Since::Number(5))), Start::After(7));
    }

    #[test]
    fn own_messages_are_known_by_the_id_and_by_name_only_if_the_id_says_nothing() {
        const DRAWN: &str = "01020304-0506-8364-ac72-b3752bbe0d9b";
        let message = sample(1, None);
        let me = |agent_id: &str, chosen, name: &str| Me {
            agent_id: agent_id.to_owned(),
            chosen,
            name: name.to_owned(),
        };
        assert!(me(DRAWN, false, "alice").wrote(&message), "of a server that draws no ids");
        assert!(!me(DRAWN, false, "bob").wrote(&message));
        assert!(me("a", true, "bob").wrote(&message));
        assert!(!me("b", true, "alice").wrote(&message));
        let message = Message { agent_id: DRAWN.to_owned(), ..message };
        assert!(me(DRAWN, false, "bob").wrote(&message));
        let other = "01020304-0507-8364-ac72-b3752bbe0d9b";
        assert!(!me(other, false, "alice").wrote(&message), "another one of this name");
    }
}

//! `clawmesh shell`: lines that are typed, as messages and as commands.
//!
//! It stands above the commands and runs any of them over its own connection. At a terminal the line that is being typed
//! stays whole below what arrives: `typed` holds it together, `terminal` (modes, bytes, signals), `keys` (out of bytes), `line` (the text
//! and those before) and `picture` (the text on the screen) are its parts. Through a pipe lines come as they are.

mod keys;
mod line;
mod picture;
mod terminal;
mod typed;

use std::io::{self, BufRead};

use clap::{CommandFactory, Parser};
use client::client::Client;
use client::events::{Event, Events};
use protocol::event::Event as Pushed;
use protocol::request::{LeaveRoom, SendMessage};
use tokio::sync::mpsc;

use crate::command_line::Command;
use crate::commands::monitor;
use crate::commands::shell::Shell;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::shell::typed::Typed;

/// A line as a command of the shell.
#[derive(Debug, Parser)]
#[command(name = "/", no_binary_name = true, disable_version_flag = true)]
struct Line {
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Speak in another room from now on
    Join {
        /// Room id, or exact name
        room: String,
    },
    /// Leave the room that you speak in
    Leave,
    /// End the shell
    Quit,
    #[command(flatten)]
    Command(Command),
}

/// Lines typed ahead: a person does not fill it, a pipe waits.
const LINES_MAX: usize = 16;

pub(crate) async fn run(cx: &Context, args: Shell) -> Result<Outcome, Failure> {
    let (client, events) = cx.connect().await?;
    let room = cx.join(&client, &args.room).await?;
    let mut shell = Session { cx, client, room: Some(room) };
    let me = format::name(shell.client.agent_id());
    cx.output.note(&format!("You are {} ({me}). /help lists commands.", cx.node.name()))?;
    shell.run(events).await
}

struct Session<'a> {
    cx: &'a Context,
    client: Client,
    room: Option<String>,
}

impl Session<'_> {
    async fn run(&mut self, mut events: Events) -> Result<Outcome, Failure> {
        let mut lines = Lines::open(self.cx)?;
        loop {
            tokio::select! {
                // First, so that a flood of events holds up no key.
                biased;
                line = lines.next() => {
                    let Some(line) = line? else { return Ok(Outcome::Done) };
                    match self.line(line.trim()).await {
                        Ok(true) => {}
                        Ok(false) => return Ok(Outcome::Done),
                        // A typing mistake ends nothing.
                        Err(failure) => self.cx.output.note(&format!("clawmesh: {failure}"))?,
                    }
                }
                event = events.next() => {
                    let event = event.ok_or(Failure::Disconnected)?;
                    lines.hide()?;
                    self.show(event)?;
                }
            }
        }
    }

    /// Does what a line says; `false` to end.
    async fn line(&mut self, line: &str) -> Result<bool, Failure> {
        if line.is_empty() {
            return Ok(true);
        }
        let Some(command) = line.strip_prefix('/') else {
            self.say(line).await?;
            return Ok(true);
        };
        let Some(words) = shlex::split(command) else {
            self.cx.output.note("a quote is not closed")?;
            return Ok(true);
        };
        let line = match Line::try_parse_from(words) {
            Ok(line) => line,
            Err(usage) => {
                self.cx.output.note(usage.render().to_string().trim_end())?;
                return Ok(true);
            }
        };
        match line.action {
            Action::Quit => return Ok(false),
            Action::Join { room } => {
                let room =
                    self.cx.within(self.client.clone(), false).join(&self.client, &room).await?;
                self.room = Some(room);
            }
            Action::Leave => {
                let room_id = self.room.take().ok_or(Failure::NoRoom)?;
                self.client.call(LeaveRoom { room_id }).await?;
            }
            Action::Command(command) => {
                let cx = self.cx.within(self.client.clone(), line.json || self.cx.output.is_json());
                command.run(cx).await?;
            }
        }
        Ok(true)
    }

    async fn say(&self, text: &str) -> Result<(), Failure> {
        let room_id = self.room.clone().ok_or(Failure::NoRoom)?;
        let message = SendMessage {
            room_id,
            content: text.to_owned(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            mesh: None,
        };
        let sent = self.client.call(message).await?;
        self.cx.output.show(&sent, || vec![format::message(&self.cx.output, &sent)])
    }

    fn show(&self, event: Event) -> Result<(), Failure> {
        match event {
            // Every message moves the turn: in a conversation that is noise.
            Event::Pushed(Pushed::TurnChanged(_)) => Ok(()),
            Event::Pushed(event) => monitor::show(self.cx, &event),
            Event::Disconnected { reason } => self.note(&format!("connection lost: {reason}")),
            Event::Reconnected { .. } => self.note("connected again"),
            Event::Missed { count } => self.note(&format!("{count} events were missed: /history")),
            Event::Closed { reason } => self.note(&format!("disconnected for good: {reason}")),
        }
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        Ok(self.cx.output.note(&format!("shell: {text}"))?)
    }
}

/// Where lines come from.
enum Lines<'a> {
    /// One after the other.
    Piped(mpsc::Receiver<String>),
    /// Edited at a terminal.
    Typed(Box<Typed<'a>>),
}

impl<'a> Lines<'a> {
    fn open(cx: &'a Context) -> io::Result<Self> {
        if !cx.output.has_screen() {
            return Ok(Lines::Piped(piped()));
        }
        let line = Line::command();
        let commands = line.get_subcommands().map(|command| command.get_name().to_owned());
        let commands = commands.chain(["help".to_owned()]).collect();
        Ok(Lines::Typed(Box::new(Typed::new(&cx.output, commands)?)))
    }

    /// The next line; `None` at the end. Cancel-safe.
    async fn next(&mut self) -> io::Result<Option<String>> {
        match self {
            Lines::Piped(lines) => Ok(lines.recv().await),
            Lines::Typed(typed) => typed.next().await,
        }
    }

    /// Makes room for something that is about to be printed.
    fn hide(&mut self) -> io::Result<()> {
        match self {
            Lines::Piped(_) => Ok(()),
            Lines::Typed(typed) => typed.hide(),
        }
    }
}

/// The lines of a pipe. The thread that reads them ends with its input, or with the process.
fn piped() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

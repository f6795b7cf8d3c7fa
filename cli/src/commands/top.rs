//! `clawmesh top`: asks the node every second, and draws what it says. `view` is the state, which keys change; `draw` shows it.

mod draw;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use client::client::Client;
use protocol::operator::{Answer, Request};
use protocol::request::GetHistory;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::time::timeout;

use crate::context::Context;
use crate::limits::TOP_MESSAGES_MAX;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use view::{Key, Next, Opened, Pane, View};

/// Watch the mesh live: nodes and links, rooms with rate and tip, agents with presence, messages of a room
///
/// 1 to 4 or Tab choose a pane, the arrows a row, Enter opens the messages of a room, s and r sort, ? helps, q or Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub struct Top {
    #[command(flatten)]
    operator: Operator,
}

/// Between two looks at the node.
const REFRESH: Duration = Duration::from_secs(1);
/// How long a key press waits at most.
const KEYS_EVERY: Duration = Duration::from_millis(50);
/// A node answers a client at once, or is away.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(cx: &Context, args: Top) -> Result<Outcome, Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let reader = Context::new(args.operator.clients_way(&cx.node)?);
    let mut watch = Watch { operator: args.operator, reader, client: None, view: View::default() };
    // Before the screen changes: a failure is printed on the usual one.
    watch.view.update(watch.operator.status().await?, Instant::now());
    let mut terminal = ratatui::try_init()?;
    let result = watch.show(&mut terminal).await;
    ratatui::try_restore()?;
    result
}

/// The screen, and where it has it from.
struct Watch {
    operator: Operator,
    /// Reads the messages of rooms, as `clawmesh history` does.
    reader: Context,
    /// From the first room on that is opened.
    client: Option<Client>,
    view: View,
}

impl Watch {
    async fn show(&mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<Outcome, Failure> {
        let mut looked = Instant::now();
        self.look_around().await;
        let (mut is_new, mut is_due) = (true, false);
        loop {
            while event::poll(Duration::ZERO)? {
                is_new = true;
                match key(&event::read()?).map(|key| self.view.press(key)) {
                    Some(Next::End) => return Ok(Outcome::Done),
                    // They are read with the next look, which is at once.
                    Some(Next::Read) => is_due = true,
                    Some(Next::Stay) | None => {}
                }
            }
            if std::mem::take(&mut is_new) {
                // The person sees what the key did before anybody is asked.
                terminal.draw(|frame| draw::draw(frame, &mut self.view))?;
            }
            if looked.elapsed() < REFRESH && !std::mem::take(&mut is_due) {
                tokio::time::sleep(KEYS_EVERY).await;
                continue;
            }
            (looked, is_new) = (Instant::now(), true);
            match self.operator.status().await {
                Ok(status) => self.view.update(status, Instant::now()),
                // It may be restarting.
                Err(failure) => self.view.trouble = Some(failure.to_string()),
            }
            self.look_around().await;
        }
    }

    /// All but the status. A node that does not say some of it, such as one that checks no keys, shows the rest.
    async fn look_around(&mut self) {
        self.view.agents = self.operator.agents().await.unwrap_or_default();
        self.view.stops = match self.operator.ask(&Request::ListStops).await {
            Ok(Answer::Stops(stops)) => stops,
            Ok(_) | Err(_) => Vec::new(),
        };
        let Some(room) = self.view.reads().map(str::to_owned) else { return };
        let read = timeout(PATIENCE, self.read(&room)).await;
        let read = match read {
            Ok(Ok(messages)) => Ok(messages),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err("the node does not answer".to_owned()),
        };
        if read.is_err() {
            self.client = None;
        }
        self.view.told(&room, read);
    }

    /// The newest messages of a room.
    async fn read(&mut self, room: &str) -> Result<Vec<view::Line>, Failure> {
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(self.reader.client().await?).clone(),
        };
        let ask = GetHistory {
            room_id: room.to_owned(),
            limit: TOP_MESSAGES_MAX,
            before: None,
            since: None,
            since_seq: None,
        };
        let page = client.call(ask).await?.messages;
        Ok(page.iter().map(Opened::line).collect())
    }
}

/// The keys that mean something.
#[allow(clippy::wildcard_enum_match_arm, reason = "there are many keys")]
fn key(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    if modifiers.contains(KeyModifiers::CONTROL) {
        return (*code == KeyCode::Char('c')).then_some(Key::End);
    }
    Some(match code {
        KeyCode::Char('q') => Key::End,
        KeyCode::Esc => Key::Back,
        KeyCode::Char('?' | 'h') => Key::Help,
        KeyCode::Char('0') => Key::To(Pane::All),
        KeyCode::Char('1') => Key::To(Pane::Nodes),
        KeyCode::Char('2') => Key::To(Pane::Rooms),
        KeyCode::Char('3') => Key::To(Pane::Agents),
        KeyCode::Char('4') => Key::To(Pane::Messages),
        KeyCode::Tab => Key::Along(1),
        KeyCode::BackTab => Key::Along(-1),
        KeyCode::Up | KeyCode::Char('k') => Key::Rows(-1),
        KeyCode::Down | KeyCode::Char('j') => Key::Rows(1),
        KeyCode::PageUp => Key::Pages(-1),
        KeyCode::PageDown => Key::Pages(1),
        KeyCode::Home => Key::Rows(isize::MIN),
        KeyCode::End => Key::Rows(isize::MAX),
        KeyCode::Enter => Key::Open,
        KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('r') => Key::Reverse,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

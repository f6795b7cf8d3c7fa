//! `clawmesh top`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use protocol::operator::{Attendee, Peer, Room, Status};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Row, Table};

use crate::commands::agents::attendee;
use crate::commands::mesh::{link, node_name};
use crate::format::name;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::seq::Short;

/// Watch the mesh live: nodes and links, rooms with rate and tip, agents with presence, backlog
///
/// q or Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub struct Top {
    #[command(flatten)]
    operator: Operator,
}

/// Between two looks at the node.
const REFRESH: Duration = Duration::from_secs(1);
/// How long a key press waits at most.
const KEYS_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn run(args: Top) -> Result<Outcome, Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let mut view = View::default();
    // Before the screen changes: a failure is printed on the usual one.
    view.update(args.operator.status().await?);
    let mut terminal = ratatui::try_init()?;
    let result = show(&mut terminal, &args.operator, &mut view).await;
    ratatui::try_restore()?;
    result
}

async fn show(
    terminal: &mut ratatui::DefaultTerminal,
    operator: &Operator,
    view: &mut View,
) -> Result<Outcome, Failure> {
    let mut looked = Instant::now();
    view.agents = agents(operator).await;
    loop {
        terminal.draw(|frame| draw(frame, view))?;
        while event::poll(Duration::ZERO)? {
            if ends(&event::read()?) {
                return Ok(Outcome::Done);
            }
        }
        tokio::time::sleep(KEYS_EVERY).await;
        if looked.elapsed() >= REFRESH {
            looked = Instant::now();
            match operator.status().await {
                Ok(status) => view.update(status),
                // It may be restarting.
                Err(failure) => view.trouble = Some(failure.to_string()),
            }
            view.agents = agents(operator).await;
        }
    }
}

/// Of every key. A node of before has no list of them: everything else is shown.
async fn agents(operator: &Operator) -> Vec<Attendee> {
    operator.agents().await.unwrap_or_default()
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    key.kind == KeyEventKind::Press
        && (interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

/// The state on the screen.
#[derive(Debug, Default)]
struct View {
    status: Option<Box<Status>>,
    agents: Vec<Attendee>,
    /// Messages a second, by room.
    rates: BTreeMap<String, f64>,
    tips: BTreeMap<String, u64>,
    at: Option<Instant>,
    trouble: Option<String>,
}

impl View {
    fn update(&mut self, status: Box<Status>) {
        let now = Instant::now();
        let since = self.at.replace(now).map(|at| now.duration_since(at).as_secs_f64());
        let tips: BTreeMap<String, u64> =
            status.rooms.iter().map(|room| (room.room_id.clone(), room.tip)).collect();
        if let Some(since) = since.filter(|since| *since > 0.0) {
            let rate = |(room, tip): (&String, &u64)| {
                let before = self.tips.get(room).copied().unwrap_or(*tip);
                // Numbers of another era say nothing about how many there were.
                let count = tip.saturating_sub(before);
                let count = if count >> 16 == 0 { count as f64 } else { 1.0 };
                (room.clone(), count / since)
            };
            self.rates = tips.iter().map(rate).collect();
        }
        (self.tips, self.trouble, self.status) = (tips, None, Some(status));
    }

    fn rate(&self, room: &Room) -> f64 {
        self.rates.get(&room.room_id).copied().unwrap_or_default()
    }
}

fn draw(frame: &mut Frame<'_>, view: &View) {
    let Some(status) = &view.status else { return };
    let peers = u16::try_from(status.peers.len()).unwrap_or(u16::MAX);
    let [head, nodes, rooms, agents] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(peers.saturating_add(4).min(frame.area().height / 3)),
        Constraint::Fill(2),
        Constraint::Fill(1),
    ])
    .areas(frame.area());
    frame.render_widget(ratatui::widgets::Paragraph::new(summary(view, status)), head);
    draw_nodes(frame, nodes, status);
    draw_rooms(frame, rooms, view, status);
    draw_agents(frame, agents, &view.agents);
}

fn summary(view: &View, status: &Status) -> Vec<Line<'static>> {
    let sum = |of: fn(&Room) -> u64| status.rooms.iter().map(of).sum::<u64>();
    let rate: f64 = view.rates.values().sum();
    let first = format!(
        "{} · {} agents here, {} in the mesh · {rate:.1} messages/s · store {:.1} MiB · q ends",
        name(&status.name),
        status.agents,
        status.agents_mesh,
        status.store_bytes as f64 / 1_048_576.0
    );
    let second = match &view.trouble {
        Some(trouble) => Line::from(name(trouble)).red(),
        None => Line::from(format!(
            "backlog: {} without number, {} to fetch, {} at no other node",
            sum(|room| room.undelivered as u64),
            sum(|room| room.behind),
            sum(|room| room.unsent)
        )),
    };
    vec![Line::from(first).bold(), second]
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    let row = |peer: &Peer| {
        let rtt = peer.rtt_ms.filter(|_| peer.connected).map(|ms| format!("{ms:.1} ms"));
        let cells = [
            peer.name.as_deref().map(name).unwrap_or_else(|| peer.addresses.join(" ")),
            link(peer),
            rtt.unwrap_or_default(),
            peer.agents.to_string(),
            format!("{} KiB", peer.queued_bytes / 1024),
        ];
        let style = if peer.connected { Style::new() } else { Style::new().dim() };
        Row::new(cells.map(Cell::from)).style(style)
    };
    let heads = ["node", "link", "round trip", "agents", "queued"];
    let widths = [Constraint::Fill(2), Constraint::Fill(1), Constraint::Length(11)];
    let widths = widths.into_iter().chain([Constraint::Length(7), Constraint::Length(10)]);
    let table = Table::new(status.peers.iter().map(row), widths)
        .header(Row::new(heads).bold())
        .block(Block::bordered().title("nodes"));
    frame.render_widget(table, area);
}

fn draw_rooms(frame: &mut Frame<'_>, area: Rect, view: &View, status: &Status) {
    let mut rooms: Vec<&Room> = status.rooms.iter().collect();
    rooms.sort_by(|a, b| view.rate(b).total_cmp(&view.rate(a)).then_with(|| a.name.cmp(&b.name)));
    let row = |room: &Room| {
        let behind = room.behind + room.unsent + room.undelivered as u64;
        let cells = [
            name(&room.name),
            format!("{:.1}/s", view.rate(room)),
            Short(room.tip).to_string(),
            node_name(status, &room.sequencer),
            behind.to_string(),
        ];
        Row::new(cells.map(Cell::from))
    };
    let heads = ["room", "rate", "tip", "sequencer", "backlog"];
    let widths = [Constraint::Fill(2), Constraint::Length(9), Constraint::Length(16)];
    let widths = widths.into_iter().chain([Constraint::Fill(1), Constraint::Length(8)]);
    // Rows beyond the screen are not drawn.
    let rows = rooms.into_iter().take(usize::from(area.height)).map(row);
    let table = Table::new(rows, widths)
        .header(Row::new(heads).bold())
        .block(Block::bordered().title("rooms"));
    frame.render_widget(table, area);
}

fn draw_agents(frame: &mut Frame<'_>, area: Rect, agents: &[Attendee]) {
    let row =
        |one: &Attendee| Row::new(attendee(one).into_iter().map(|text| Cell::from(name(&text))));
    let heads = ["agent", "doing", "rooms", "key", "a minute", "id"];
    let widths = [Constraint::Fill(2), Constraint::Fill(2), Constraint::Fill(2)];
    let widths = widths.into_iter().chain([
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Fill(1),
    ]);
    let rows = agents.iter().take(usize::from(area.height)).map(row);
    let table = Table::new(rows, widths)
        .header(Row::new(heads).bold())
        .block(Block::bordered().title("agents at this node, of all keys"));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::operator::Faults;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn status(tip: u64) -> Box<Status> {
        let room = Room {
            room_id: "r".into(),
            name: "lobby".into(),
            public: true,
            era: 0,
            lane: None,
            sequencer: "b".repeat(64),
            tip,
            undelivered: 0,
            behind: 3,
            unsent: 0,
            holes: 0,
        };
        let peer = Peer {
            node_id: Some("b".repeat(64)),
            name: Some("bob\u{1b}[2J".into()),
            connected: true,
            alive: true,
            ..Peer::default()
        };
        Box::new(Status {
            node_id: "a".repeat(64),
            name: "alice".into(),
            mesh_id: "m".into(),
            agents: 2,
            agents_mesh: 5,
            hosted: 0,
            waits: 0,
            store_bytes: 1 << 21,
            disk_full: false,
            only_through: None,
            runs_twice: false,
            read_by_all_at: None,
            http: None,
            certificate: None,
            woken: Vec::new(),
            peers: vec![peer],
            rooms: vec![room],
            faults: Faults::default(),
            blamed: Vec::new(),
            parted: None,
            forked: Vec::new(),
            index: protocol::operator::Index::default(),
        })
    }

    #[test]
    fn the_screen_shows_nodes_rooms_and_backlog_at_any_size() {
        let mut view = View::default();
        view.update(status(10));
        view.at = Instant::now().checked_sub(Duration::from_secs(1));
        view.update(status(1_010));
        let agent = r#"{"agent_id":"a1","name":"ann\u001b","connected_at":"t","last_active":"t","rooms":["council"],"per_minute":7,
            "mesh":{"lingers":true,"key":"00112233445566778899aabbccddeeff"}}"#;
        view.agents = vec![serde_json::from_str(agent).unwrap()];
        for size in [(100, 30), (20, 5), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
            terminal.draw(|frame| draw(frame, &view)).unwrap();
            if size.0 < 100 {
                continue;
            }
            let text = terminal.backend().to_string();
            for part in [
                "alice",
                "bob\\u{1b}",
                "lobby",
                "1010",
                "3 to fetch",
                "/s",
                "ann\\u{1b}",
                "away, idle",
                "council",
                "00112233",
                "7",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(view.rate(&view.status.as_ref().unwrap().rooms[0]) > 500.0);
        }
    }
}

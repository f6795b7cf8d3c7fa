//! The screen, of any size from 60 columns on: of each table the columns that there is room for, and the rows around the chosen one.

use protocol::operator::{Attendee, Peer, Room, Status};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::commands::agents::attendee;
use crate::commands::mesh::{link, node_name};
use crate::seq::Short;

use super::view::{Opened, Pane, Samples, View, backlog, clean, node_id, node_title};

/// A column of a table.
struct Column {
    head: &'static str,
    width: Constraint,
    /// The columns of the screen from which on there is room for it.
    from: u16,
}

const fn column(head: &'static str, width: Constraint, from: u16) -> Column {
    Column { head, width, from }
}

/// Rows of a table: the id and the cells of each, in the order of its columns.
struct Rows {
    title: String,
    pane: Pane,
    ids: Vec<String>,
    /// Of so many rows from this one on.
    first: usize,
}

const NODES: [Column; 7] = [
    column("node", Constraint::Fill(2), 0),
    column("link", Constraint::Fill(1), 0),
    column("round trip", Constraint::Length(11), 0),
    column("", Constraint::Length(16), 90),
    column("agents", Constraint::Length(7), 0),
    column("queued", Constraint::Length(10), 70),
    column("trouble", Constraint::Fill(2), 120),
];
const ROOMS: [Column; 6] = [
    column("room", Constraint::Fill(2), 0),
    column("rate", Constraint::Length(9), 0),
    column("", Constraint::Length(20), 80),
    column("tip", Constraint::Length(16), 70),
    column("sequencer", Constraint::Fill(1), 0),
    column("backlog", Constraint::Length(8), 0),
];
const AGENTS: [Column; 6] = [
    column("agent", Constraint::Fill(2), 0),
    column("doing", Constraint::Fill(2), 0),
    column("rooms", Constraint::Fill(2), 0),
    column("key", Constraint::Length(8), 100),
    column("a minute", Constraint::Length(8), 70),
    column("id", Constraint::Fill(1), 120),
];

const HELP: [&str; 10] = [
    "0          nodes, rooms and agents",
    "1 2 3 4    nodes · rooms · agents · messages of the room",
    "Tab        the next of these; Shift-Tab the one before",
    "↑ ↓ PgUp PgDn Home End   the rows, also j and k",
    "Enter      messages of the room that is chosen",
    "s          another order; r turns it",
    "Esc        back",
    "?          this, and away with it",
    "q, Ctrl-C  the end",
    "▁▃▇ are the last minute, each row by its own measure.",
];

const KEYS: &str = "0 all 1 nodes 2 rooms 3 agents 4 messages  ? help  q ends";

pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let Some(status) = view.status.clone() else { return };
    let [head, main, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(summary(view, &status)), head);
    frame.render_widget(Paragraph::new(Line::from(KEYS).dim()), foot);
    match view.pane {
        Pane::All => {
            let peers = u16::try_from(status.peers.len()).unwrap_or(u16::MAX);
            let [nodes, rooms, agents] = Layout::vertical([
                Constraint::Length(peers.saturating_add(3).min(main.height / 3)),
                Constraint::Fill(2),
                Constraint::Fill(1),
            ])
            .areas(main);
            draw_nodes(frame, nodes, view);
            draw_agents(frame, agents, view);
            draw_rooms(frame, rooms, view, &status);
        }
        Pane::Nodes => draw_nodes(frame, main, view),
        Pane::Rooms => draw_rooms(frame, main, view, &status),
        Pane::Agents => draw_agents(frame, main, view),
        Pane::Messages => draw_messages(frame, main, view, &status),
    }
    if view.helps {
        draw_help(frame, main);
    }
}

fn summary(view: &View, status: &Status) -> Vec<Line<'static>> {
    let sum = |of: fn(&Room) -> u64| status.rooms.iter().map(of).sum::<u64>();
    let first = format!(
        "{} · {} agents here, {} in the mesh · {:.1} messages/s · store {:.1} MiB",
        clean(&status.name),
        status.agents,
        status.agents_mesh,
        view.rate_of_all(),
        status.store_bytes as f64 / 1_048_576.0
    );
    let second = match (&view.trouble, view.stops.iter().find(|stop| stop.agent_id.is_none())) {
        (Some(trouble), _) => Line::from(clean(trouble)).red(),
        (None, Some(stop)) => {
            Line::from(format!("{} has stopped all agents", clean(&stop.by))).red()
        }
        (None, None) => Line::from(format!(
            "backlog: {} without number, {} to fetch, {} at no other node",
            sum(|room| room.undelivered as u64),
            sum(|room| room.behind),
            sum(|room| room.unsent)
        )),
    };
    vec![Line::from(first).bold(), second]
}

/// So many rows fit between the lines and below the heads.
fn rows_of(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(3))
}

/// The first row that is drawn, so that the chosen one is.
fn first_of(view: &View, pane: Pane, area: Rect, ids: &[String]) -> usize {
    let row = view.row(pane, ids.iter().map(String::as_str)).unwrap_or_default();
    (row + 1).saturating_sub(rows_of(area))
}

fn rows(view: &mut View, pane: Pane, (area, what): (Rect, &str), ids: Vec<String>) -> Rows {
    if view.pane == pane || (view.pane, pane) == (Pane::All, Pane::Rooms) {
        view.height = rows_of(area);
    }
    let first = first_of(view, pane, area, &ids);
    let order = view.order(pane).map(|(order, turned)| {
        format!(", by {}{}", order.word(), if turned { ", turned" } else { "" })
    });
    let count = ids.len();
    let title = format!("{what}: {count}{}", order.unwrap_or_default());
    Rows { title, pane, ids, first }
}

/// Rows beyond the screen are not drawn.
fn draw_table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &View,
    (columns, rows): (&[Column; N], Rows),
    cells: Vec<([String; N], Style)>,
) {
    let fits = |column: &&Column| area.width >= column.from;
    let chosen = view.row(rows.pane, rows.ids.iter().map(String::as_str));
    let row = |(at, (cells, style)): (usize, ([String; N], Style))| {
        let cells = columns.iter().zip(cells).filter(|(column, _)| fits(column));
        let is_chosen = chosen == Some(rows.first + at);
        let style = if is_chosen { style.reversed() } else { style };
        Row::new(cells.map(|(_, text)| Cell::from(text))).style(style)
    };
    let shown = columns.iter().filter(fits);
    let heads = Row::new(shown.clone().map(|column| column.head)).bold();
    let table = Table::new(cells.into_iter().enumerate().map(row), shown.map(|it| it.width))
        .header(heads)
        .block(Block::bordered().title(rows.title));
    frame.render_widget(table, area);
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let ids = view.nodes().into_iter().map(node_id).collect();
    let rows = rows(view, Pane::Nodes, (area, "other nodes"), ids);
    let row = |peer: &Peer| {
        let rtt = peer.rtt_ms.filter(|_| peer.connected).map(|ms| format!("{ms:.1} ms"));
        let cells = [
            clean(&node_title(peer)),
            link(peer),
            rtt.unwrap_or_default(),
            sparks(view.round_trips(peer), 16),
            peer.agents.to_string(),
            format!("{} KiB", peer.queued_bytes / 1024),
            clean(peer.last_error.as_deref().or(peer.fault.as_deref()).unwrap_or_default()),
        ];
        (cells, if peer.connected { Style::new() } else { Style::new().dim() })
    };
    let peers = view.nodes().into_iter().skip(rows.first).take(rows_of(area));
    let cells = peers.map(row).collect();
    draw_table(frame, area, view, (&NODES, rows), cells);
}

fn draw_rooms(frame: &mut Frame<'_>, area: Rect, view: &mut View, status: &Status) {
    let ids = view.rooms().into_iter().map(|room| room.room_id.clone()).collect();
    let rows = rows(view, Pane::Rooms, (area, "rooms"), ids);
    let row = |room: &Room| {
        let cells = [
            clean(&room.name),
            format!("{:.1}/s", view.rate(room)),
            sparks(view.rates(room), 20),
            Short(room.tip).to_string(),
            clean(&node_name(status, &room.sequencer)),
            backlog(room).to_string(),
        ];
        (cells, Style::new())
    };
    let cells = view.rooms().into_iter().skip(rows.first).take(rows_of(area)).map(row).collect();
    draw_table(frame, area, view, (&ROOMS, rows), cells);
}

fn draw_agents(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let ids = view.attendees().into_iter().map(|one| one.agent.agent_id.clone()).collect();
    let rows = rows(view, Pane::Agents, (area, "agents at this node"), ids);
    let row = |one: &Attendee| {
        let mut cells: Vec<String> = attendee(one).iter().map(|text| clean(text)).collect();
        cells.resize(AGENTS.len(), String::new());
        let mut cells: [String; AGENTS.len()] = cells.try_into().unwrap_or_default();
        let stopper = view.stopper(&one.agent.agent_id);
        if let Some(by) = stopper {
            cells[1] = format!("stopped by {}", clean(by));
        }
        (cells, if stopper.is_some() { Style::new().red() } else { Style::new() })
    };
    let agents = view.attendees().into_iter().skip(rows.first).take(rows_of(area));
    let cells = agents.map(row).collect();
    draw_table(frame, area, view, (&AGENTS, rows), cells);
}

fn draw_messages(frame: &mut Frame<'_>, area: Rect, view: &mut View, status: &Status) {
    let height = usize::from(area.height.saturating_sub(2));
    view.height = height;
    let Some(opened) = &mut view.opened else {
        let block = Block::bordered().title("messages");
        return frame.render_widget(Paragraph::new("choose a room first: 2").block(block), area);
    };
    let room = status.rooms.iter().find(|room| room.room_id == opened.room);
    let name = room.map_or_else(|| opened.room.clone(), |room| clean(&room.name));
    let lines = lines(opened, usize::from(area.width.saturating_sub(2)));
    opened.up = opened.up.min(lines.len().saturating_sub(height));
    let last = lines.len() - opened.up;
    let first = last.saturating_sub(height);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(height).collect();
    let above = if opened.up > 0 { format!(", {} lines below", opened.up) } else { String::new() };
    let block = Block::bordered().title(format!("messages in {name}{above}"));
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// The messages of a room as lines of this width, the oldest first.
fn lines(opened: &Opened, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for message in &opened.lines {
        let head = format!("{} {}: ", message.time, message.who);
        // A name that fills the line stands alone.
        let indent = if head.width() * 2 > width { 2 } else { head.width() };
        let mut head = Some(head);
        if indent == 2 {
            lines.extend(
                wrapped(&head.take().unwrap_or_default(), width)
                    .into_iter()
                    .map(|row| Line::from(row).bold()),
            );
        }
        for row in &message.text {
            for part in wrapped(row, width.saturating_sub(indent)) {
                let before = match head.take() {
                    Some(head) => Span::from(head).bold(),
                    None => Span::from(" ".repeat(indent)),
                };
                lines.push(Line::from(vec![before, Span::from(part)]));
            }
        }
    }
    match &opened.trouble {
        Some(trouble) => lines
            .extend(wrapped(&clean(trouble), width).into_iter().map(|row| Line::from(row).red())),
        None if lines.is_empty() => {
            let text = if opened.is_read { "no messages" } else { "reading" };
            lines.push(Line::from(text).dim());
        }
        None => {}
    }
    lines
}

/// A line in parts of at most so many columns. Whole characters, as people see them, stay whole.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut parts, mut part, mut columns) = (Vec::new(), String::new(), 0);
    for sign in text.graphemes(true) {
        let takes = sign.width();
        if columns + takes > width && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            columns = 0;
        }
        part.push_str(sign);
        columns += takes;
    }
    parts.push(part);
    parts
}

/// The last values, each as a bar; the highest of them fills it.
pub(super) fn sparks(samples: Option<&Samples>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some(Samples(values)) = samples else { return String::new() };
    let values: Vec<f64> =
        values.iter().copied().skip(values.len().saturating_sub(width)).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let part = if most > 0.0 { value / most } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "it is within 0 and 7")]
        #[expect(clippy::cast_sign_loss, reason = "it is within 0 and 7")]
        let at = (part.clamp(0.0, 1.0) * 7.0).ceil() as usize;
        BARS.get(at).copied().unwrap_or(' ')
    };
    values.into_iter().map(bar).collect()
}

fn draw_help(frame: &mut Frame<'_>, main: Rect) {
    let height = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX).min(main.height);
    let width = 62.min(main.width);
    let [_, row, _] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height), Constraint::Fill(1)])
            .areas(main);
    let [_, area, _] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(width), Constraint::Fill(1)])
            .areas(row);
    frame.render_widget(Clear, area);
    let lines: Vec<Line<'_>> = HELP.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("keys")), area);
}

//! The screen in a buffer, at widths from 60 columns on, with names that would steer a terminal, and with a mesh that has nothing.

use std::time::{Duration, Instant};

use protocol::object::Message;
use protocol::operator::{Attendee, Faults, Index, Peer, Room, Status, StoppedAgents};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::draw::{draw, sparks, wrapped};
use super::view::{Key, Next, Opened, Pane, Samples, View};
use crate::limits::{TOP_LINES_MAX, TOP_SAMPLES_MAX, TOP_TEXT_CHARS_MAX};

const PANES: [Pane; 5] = [Pane::All, Pane::Nodes, Pane::Rooms, Pane::Agents, Pane::Messages];
/// It clears the screen, turns the direction of writing, breaks the line, and is wide.
const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\u{202e}evil\u{2066}\t\r\n\u{200b}日本";

fn room(id: &str, name: &str, tip: u64) -> Room {
    Room {
        room_id: id.into(),
        name: name.into(),
        public: true,
        era: 0,
        lane: None,
        sequencer: "b".repeat(64),
        tip,
        undelivered: 0,
        behind: 3,
        unsent: 0,
        holes: 0,
    }
}

fn peer(name: &str, rtt_ms: f64) -> Peer {
    Peer {
        node_id: Some("b".repeat(64)),
        name: Some(name.into()),
        connected: true,
        alive: true,
        rtt_ms: Some(rtt_ms),
        ..Peer::default()
    }
}

fn status(name: &str, peers: Vec<Peer>, rooms: Vec<Room>) -> Box<Status> {
    Box::new(Status {
        node_id: "a".repeat(64),
        name: name.into(),
        mesh_id: "m".into(),
        relay: false,
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
        peers,
        rooms,
        faults: Faults::default(),
        blamed: Vec::new(),
        parted: None,
        forked: Vec::new(),
        index: Index::default(),
    })
}

fn agent(id: &str, name: &str, detail: &str) -> Attendee {
    let agent = json!({"agent_id": id, "name": name, "connected_at": "t", "last_active": "t", "rooms": [name],
        "status_detail": detail, "per_minute": 7, "mesh": {"lingers": true, "key": "00112233445566778899aabbccddeeff"}});
    serde_json::from_value(agent).unwrap()
}

fn message(name: &str, content: &str) -> Message {
    let message = json!({"message_id": "m", "room_id": "r", "agent_id": "a", "agent_name": name, "content": content,
        "timestamp": "2026-11-27T10:20:30Z", "seq": 1, "mentions": [], "reply_to": null});
    serde_json::from_value(message).unwrap()
}

/// Two looks, a second apart: a thousand messages came in the first room.
fn looked_at(name: &str) -> View {
    let (mut view, now) = (View::default(), Instant::now());
    let rooms = |tip| vec![room("r", name, tip), room("s", "war-room", 7)];
    view.update(status(name, vec![peer(name, 1.5)], rooms(10)), now);
    let later = now + Duration::from_secs(1);
    view.update(status(name, vec![peer(name, 3.0)], rooms(1_010)), later);
    view.agents = vec![agent("a1", name, name)];
    view
}

fn screen(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y) + "\n").collect()
}

#[test]
fn the_screen_shows_nodes_rooms_and_agents_by_their_names() {
    let mut view = looked_at("alice");
    let all = [
        "alice",
        "1010",
        "6 to fetch",
        "1000.0/s",
        "war-room",
        "3.0 ms",
        "away, idle",
        "00112233",
        "other nodes: 1",
        "rooms: 2, by rate",
        "agents at this node: 1, by name",
        "▅█",
        "? help",
    ];
    let text = screen(&mut view, 200, 40);
    for part in all {
        assert!(text.contains(part), "{part}: {text}");
    }
    for width in [60, 80] {
        let text = screen(&mut view, width, 40);
        for part in ["alice", "1000.0/s", "war-room", "3.0 ms", "away, idle", "? help", "q ends"] {
            assert!(text.contains(part), "{part} at {width}: {text}");
        }
    }
    view.stops = vec![StoppedAgents {
        agent_id: None,
        by: "ada".into(),
        fingerprint: "f".into(),
        since_ms: 1,
    }];
    let text = screen(&mut view, 80, 40);
    assert!(
        text.contains("ada has stopped all agents") && text.contains("stopped by ada"),
        "{text}"
    );
}

#[test]
fn nothing_that_others_write_steers_the_terminal_at_any_size() {
    let mut view = looked_at(HOSTILE);
    view.trouble = Some(HOSTILE.to_owned());
    view.stops = vec![StoppedAgents {
        agent_id: Some("a1".into()),
        by: HOSTILE.into(),
        fingerprint: "f".into(),
        since_ms: 1,
    }];
    assert_eq!(view.press(Key::To(Pane::Messages)), Next::Read);
    let long = format!("{HOSTILE}\n\n{}", "日".repeat(500));
    let lines =
        vec![Opened::line(&message(HOSTILE, &long)), Opened::line(&message("bob", "hello"))];
    view.told("r", Ok(lines.clone()));
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for pane in PANES {
        for (width, height) in [(60, 24), (80, 24), (200, 60), (20, 5), (1, 1), (3, 40)] {
            for trouble in [None, Some(HOSTILE.to_owned())] {
                view.press(Key::To(pane));
                view.told("r", trouble.map_or_else(|| Ok(lines.clone()), Err));
                view.press(Key::Help);
                let helped = screen(&mut view, width, height);
                view.press(Key::Help);
                let text = screen(&mut view, width, height);
                for line in helped.lines().chain(text.lines()) {
                    assert!(!line.chars().any(steers), "{pane:?} {width}: {line:?}");
                }
                if width >= 60 && pane != Pane::Messages {
                    assert!(text.contains("u{1b}[2J"), "it is seen: {text}");
                }
            }
        }
    }
}

#[test]
fn a_mesh_without_anything_is_shown_and_takes_every_key() {
    let mut view = View::default();
    assert!(screen(&mut view, 80, 24).trim().is_empty(), "nothing was heard yet");
    view.update(status("alice", Vec::new(), Vec::new()), Instant::now());
    for pane in PANES {
        for key in [
            Key::To(pane),
            Key::Rows(1),
            Key::Rows(-1),
            Key::Rows(isize::MAX),
            Key::Rows(isize::MIN),
            Key::Pages(1),
            Key::Pages(-1),
            Key::Sort,
            Key::Reverse,
            Key::Open,
        ] {
            assert_eq!(view.press(key), Next::Stay, "{key:?}");
            for width in [60, 80, 200] {
                assert!(screen(&mut view, width, 24).contains("alice"));
            }
        }
    }
    view.press(Key::To(Pane::Messages));
    assert!(screen(&mut view, 60, 24).contains("choose a room first"));
}

#[test]
fn rows_are_sorted_and_the_chosen_one_stays_chosen() {
    let mut view = View::default();
    let now = Instant::now();
    let rooms = |tip| {
        let many = (0..100).map(|nth| room(&format!("r{nth:02}"), &format!("room {nth:02}"), nth));
        many.chain([room("busy", "busy", tip)]).collect::<Vec<_>>()
    };
    view.update(status("alice", Vec::new(), rooms(0)), now);
    view.update(status("alice", Vec::new(), rooms(50)), now + Duration::from_secs(1));
    let first = |view: &View| view.rooms()[0].name.clone();
    view.press(Key::To(Pane::Rooms));
    assert_eq!(first(&view), "busy", "the most messages are first");
    view.press(Key::Sort);
    assert_eq!((first(&view), view.rooms()[1].name.as_str()), ("busy".to_owned(), "room 00"));
    view.press(Key::Reverse);
    assert_eq!(first(&view), "room 99");
    view.press(Key::Sort);
    assert_eq!(first(&view), "room 99", "by tip, and not turned");
    view.press(Key::Rows(isize::MAX));
    let text = screen(&mut view, 60, 24);
    assert!(text.contains("room 00") && !text.contains("room 99"), "the last row is seen: {text}");
    view.press(Key::Sort);
    view.press(Key::Sort);
    assert_eq!(first(&view), "busy");
    assert_eq!(view.press(Key::Open), Next::Read);
    assert_eq!(view.reads(), Some("r00"), "the one that was chosen in another order");
    view.told("r99", Ok(vec![Opened::line(&message("eve", "late"))]));
    assert!(screen(&mut view, 80, 24).contains("reading"), "an answer about another room is none");
    let said = |nth| Opened::line(&message("bob", &format!("line {nth:03}")));
    view.told("r00", Ok((0..100).map(said).collect()));
    let text = screen(&mut view, 80, 24);
    assert!(
        text.contains("10:20:30 bob: line 099") && text.contains("messages in room 00"),
        "{text}"
    );
    view.press(Key::Pages(-1));
    let text = screen(&mut view, 80, 24);
    assert!(!text.contains("line 099") && text.contains("line 078"), "{text}");
    view.press(Key::Rows(isize::MIN));
    assert!(screen(&mut view, 80, 24).contains("line 000"));
    view.press(Key::Rows(isize::MAX));
    assert!(screen(&mut view, 80, 24).contains("line 099"));
    view.press(Key::Help);
    assert!(screen(&mut view, 60, 24).contains("Shift-Tab"));
    assert_eq!(view.press(Key::Back), Next::Stay);
    assert_eq!(view.pane, Pane::Messages, "the help is away first");
    view.press(Key::Back);
    view.press(Key::Back);
    assert_eq!(view.press(Key::Back), Next::End);
    view.press(Key::Along(-1));
    assert_eq!(view.pane, Pane::Messages);
}

#[test]
fn rates_are_kept_for_a_minute_and_only_where_something_was_said() {
    let (mut view, now) = (View::default(), Instant::now());
    for second in 0..200 {
        let rooms = vec![room("r", "lobby", second * 5), room("s", "quiet", 7)];
        view.update(status("a", Vec::new(), rooms), now + Duration::from_secs(second));
    }
    let rooms = view.rooms();
    assert_eq!(view.rates(rooms[0]).unwrap().0.len(), TOP_SAMPLES_MAX);
    assert!((view.rate(rooms[0]) - 5.0).abs() < 0.01);
    assert!(view.rates(rooms[1]).is_none());
}

#[test]
fn bars_and_lines_have_the_width_that_they_are_given() {
    let samples = Samples([0.0, 1.0, 7.0, 70.0].into_iter().collect());
    assert_eq!(sparks(Some(&samples), 20), "▁▂▂█");
    assert_eq!(sparks(Some(&samples), 2), "▂█");
    assert_eq!(sparks(None, 2), "");
    assert_eq!(wrapped("日本x", 4), ["日本", "x"]);
    assert_eq!(wrapped("日本", 1), ["日", "本"], "nothing is lost");
    assert_eq!(wrapped("", 9), [""]);
    let line = Opened::line(&message("bob", &"a\n".repeat(100)));
    assert_eq!(line.text.len(), TOP_LINES_MAX + 1);
    assert_eq!(line.text[TOP_LINES_MAX], "… 81 more lines");
    let line = Opened::line(&message("bob", &"a".repeat(9_000)));
    assert_eq!(line.text, ["a".repeat(TOP_TEXT_CHARS_MAX), "…".to_owned()]);
}

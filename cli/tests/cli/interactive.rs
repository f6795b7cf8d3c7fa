//! A person at a pseudo-terminal: typed lines and the screen.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use serde_json::json;
use testnet::wire::Agent;

use crate::running::Typed;
use crate::support::World;

#[test]
fn a_shell_holds_one_identity_for_many_commands() {
    let world = World::of(1);
    let room = world.room("war-room");
    let mut guest = world.agent(0, "guest");
    world.runtime.block_on(guest.call("join_room", json!({ "room_id": room }))).unwrap();
    let mut shell = world.call(0, "ada", &["shell", "--room", "war-room"]).at_a_terminal();
    shell.sees("You are ada");
    shell.types("hello everybody");
    shell.sees("ada\u{1b}[0m: hello everybody");
    let say = json!({"room_id": room, "content": "good morning"});
    world.runtime.block_on(guest.call("send_message", say)).unwrap();
    shell.sees("guest\u{1b}[0m: good morning");
    shell.types("/vote create war-room \"Which one?\" --options A B");
    shell.sees("Which one? (");
    shell.types("/election start war-room --no-wait");
    shell.sees("leader: ");
    shell.types("/nonsense");
    shell.sees("unrecognized subcommand");
    for not_here in ["/wait war-room", "/doctor"] {
        shell.types(not_here);
        shell.sees("not for the shell");
    }
    shell.types("/send war-room 'not closed");
    shell.sees("a quote is not closed");
    shell.types("/leave");
    shell.types("to nobody");
    shell.sees("you are in no room");
    shell.types("/join lobby");
    shell.types("/rooms tip war-room");
    shell.sees("2");
    shell.types("/quit");
    assert_eq!(shell.ends(), 0);
}

/// A room in which a guest speaks, and a shell in it.
struct Talk {
    world: World,
    room: String,
    guest: Agent,
    shell: Typed,
}

impl Talk {
    fn new() -> Talk {
        let world = World::of(1);
        let room = world.room("war-room");
        let mut guest = world.agent(0, "guest");
        world.runtime.block_on(guest.call("join_room", json!({ "room_id": room }))).unwrap();
        let mut shell = world.call(0, "ada", &["shell", "--room", "war-room"]).at_a_terminal();
        shell.sees("You are ada");
        Talk { world, room, guest, shell }
    }

    fn says(&mut self, content: &str) {
        let say = json!({"room_id": self.room, "content": content});
        self.world.runtime.block_on(self.guest.call("send_message", say)).unwrap();
    }
}

#[test]
fn a_message_stands_above_the_line_that_is_being_typed() {
    let mut talk = Talk::new();
    talk.shell.types_key("half a li");
    talk.shell.shows(&["half a li"]);
    talk.says("good morning");
    talk.shell.shows(&["guest: good morning", "> half a li"]);
    // It steers neither the terminal nor the line.
    talk.says("\u{1b}[2J\r\u{9b}A");
    talk.shell.shows(&[r"guest: \u{1b}[2J\r\u{9b}A", "> half a li"]);
    talk.shell.types("ne");
    talk.shell.sees("ada\u{1b}[0m: half a line\r\n");
    talk.shell.shows(&["> half a line", "ada: half a line", ">"]);
    talk.shell.types_key("\u{4}");
    assert_eq!(talk.shell.ends(), 0);
}

#[test]
fn a_line_longer_than_the_terminal_stays_whole_below_many_messages() {
    let mut talk = Talk::new();
    let mut line = String::new();
    for number in 0..100 {
        let part = format!("{number:02}日 ");
        talk.shell.types_key(&part);
        line += &part;
        talk.says(&format!("message {number}."));
    }
    let rows = broken(&line);
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
    talk.shell.shows(&[&["guest: message 99."], &rows[..]].concat());
    let all = talk.shell.rows();
    let messages: Vec<&String> = all.iter().filter(|row| row.contains("message")).collect();
    assert_eq!(messages.len(), 100, "{all:#?}");
    for (number, row) in messages.iter().enumerate() {
        assert!(row.ends_with(&format!("guest: message {number}.")), "{all:#?}");
    }
    assert_eq!(all.len(), messages.len() + rows.len() + 1, "{all:#?}");
    // To its begin and to its end, and a word less.
    talk.shell.types_key("\u{1}x\u{1b}[D\u{1b}[3~A \u{5}\u{17}end\r");
    let sent = format!("A {}end", line.strip_suffix("99日 ").unwrap());
    talk.shell.sees("ada\u{1b}[0m: A 00");
    let said = talk.world.history(0, &talk.room).pop().unwrap();
    assert_eq!(said["content"], sent);
    talk.shell.types("/quit");
    assert_eq!(talk.shell.ends(), 0);
}

/// A line behind its prompt, as a terminal of 100 columns breaks it.
fn broken(line: &str) -> Vec<String> {
    let (mut rows, mut columns) = (vec![String::from("> ")], 2);
    for c in line.chars() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if columns + width > 100 {
            rows.push(String::new());
            columns = 0;
        }
        rows.last_mut().unwrap().push(c);
        columns += width;
    }
    rows
}

#[test]
fn the_arrows_bring_lines_back_and_tab_completes_commands() {
    let mut talk = Talk::new();
    talk.shell.types("hello");
    talk.shell.shows(&["ada: hello", ">"]);
    talk.shell.types_key("\u{1b}[A");
    talk.shell.shows(&["ada: hello", "> hello"]);
    talk.shell.types(" again");
    talk.shell.shows(&["ada: hello again", ">"]);
    talk.shell.types_key("/qu\t");
    talk.shell.shows(&["> /quit"]);
    // Ctrl-C drops a line, and ends the shell where there is none.
    talk.shell.types_key("\u{3}");
    talk.shell.shows(&["> /quit ^C", ">"]);
    talk.shell.types_key("\u{3}");
    assert_eq!(talk.shell.ended().signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let mut talk = Talk::new();
    talk.shell.types_key("half");
    talk.shell.shows(&["> half"]);
    assert!(!talk.shell.is_as_usual());
    talk.shell.signal(Signal::TERM);
    assert_eq!(talk.shell.ended().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn a_shell_ends_with_its_connection_whatever_is_being_typed() {
    let mut talk = Talk::new();
    talk.shell.types_key("half a li");
    talk.shell.shows(&["> half a li"]);
    // The node is gone: it may come back, and does, but with another key.
    talk.world.runtime.block_on(talk.world.mesh.nodes[0].stop()).unwrap();
    talk.shell.sees("shell: connection lost: ");
    talk.shell.shows(&["> half a li"]);
    let (_, key_file) = talk.world.mesh.key.as_ref().unwrap();
    std::fs::write(key_file, "0f".repeat(32)).unwrap();
    talk.world.runtime.block_on(talk.world.mesh.nodes[0].restart()).unwrap();
    talk.shell.sees("shell: disconnected for good: ");
    assert_eq!(talk.shell.ended().code(), Some(1));
    talk.shell.shows(&["> half a li", "clawmesh: disconnected for good"]);
}

#[test]
fn a_shell_takes_commands_from_a_pipe_and_ends_with_it() {
    let world = World::of(1);
    world.room("war-room");
    let script = "hello\n/rooms tip war-room\n";
    let out = world.call(0, "ada", &["shell", "--room", "war-room"]).stdin(script).run().ok();
    assert!(out.contains("#1 ada: hello") && out.ends_with("1\n"), "{out}");
}

/// A leader leads while it is connected: one connection starts, wins and decides.
#[test]
fn a_shell_elects_declines_and_decides() {
    let world = World::of(1);
    let room = world.room("council");
    let mut shell = world.call(0, "ada", &["shell", "--room", "council"]).at_a_terminal();
    shell.sees("You are ada");
    shell.types("/election start council --no-wait");
    shell.sees("leader: ");
    shell.types("/election decide council 'we ship' --metadata '{\"risk\": \"low\"}'");
    shell.sees("Decided: ");
    let decided = world.history(0, &room).pop().unwrap();
    assert_eq!(
        (&decided["content"], &decided["metadata"]["risk"]),
        (&json!("we ship"), &json!("low"))
    );
    shell.types("/quit");
    assert_eq!(shell.ends(), 0);
    // One may decline for 2 s; a busy machine may miss them.
    let script = "/election start council --no-wait\n/election decline council\n";
    let declined = || {
        let call = world.call(0, "eve", &["shell", "--room", "council"]).stdin(script).run();
        call.stdout.contains("you do not stand in this election")
    };
    assert!((0..5).any(|_| declined()), "never in time");
}

#[test]
fn top_shows_the_mesh_and_ends_with_q() {
    let world = World::of(2);
    world.room("war-room");
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let mut top = world.call(0, "ada", &["top", "--data-dir", &dir]).at_a_terminal();
    // In the order of the screen; blanks are jumped over.
    for part in ["backlog", "nodes", "war-room", "agents"] {
        top.sees(part);
    }
    world.ok(1, "eve", &["send", "war-room", "good \u{202e}morning"]);
    top.types_key("2s");
    top.has("rooms: 2, by name");
    // The lobby, and the room after it.
    top.types_key("jj\r");
    top.has("messages in war-room");
    top.has(r"eve: good \u{202e}morning");
    top.types_key("?");
    top.has("Shift-Tab");
    top.types_key("q");
    assert_eq!(top.ends(), 0);
    let dark = world.call(0, "ada", &["top", "--data-dir", &dir]).run().failed();
    assert!(dark.contains("clawmesh mesh status"), "{dark}");
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let world = World::of(1);
    world.room("war-room");
    world.ok(0, "ada", &["send", "war-room", "hello"]);
    let history = || world.call(0, "eve", &["history", "war-room"]);
    let mut coloured = history().at_a_terminal();
    coloured.sees("\u{1b}[1mada\u{1b}[0m: hello");
    assert_eq!(coloured.ends(), 0);
    let mut plain = history().env("NO_COLOR", "1").at_a_terminal();
    plain.sees("#1 ada: hello");
    assert_eq!(plain.ends(), 0);
    assert!(!history().run().ok().contains('\u{1b}'));
}

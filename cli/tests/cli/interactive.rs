//! A person at a pseudo-terminal: typed lines and the screen.

use serde_json::json;

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

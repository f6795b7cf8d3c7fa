//! `clawmesh ask-approval`, and those who decide.

use crate::support::World;

#[test]
fn a_program_waits_for_the_decision_of_a_person_at_another_node() {
    let world = World::of(2);
    world.room("room");
    let handle = world.runtime.handle();
    for (args, code, word) in [
        (&["approve", "ID"][..], 0, "approved by"),
        (&["deny", "ID", "--reason", "not today"][..], 3, "denied by"),
        (&["deny", "ID", "--change"][..], 3, "changes by"),
    ] {
        let ask = ["ask-approval", "room", "--", "rm", "-r", "build"];
        let asked = world.call(0, "ada", &ask).spawn();
        let mut id = String::new();
        world.until("it is asked", || {
            let listed = world.call(1, "bob", &["--json", "approvals"]).run();
            let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
            let row = &listed["approvals"][0];
            id = row["message_id"].as_str().unwrap_or_default().to_owned();
            row["command"] == "rm -r build"
        });
        let decide: Vec<&str> =
            args.iter().map(|arg| if *arg == "ID" { &*id } else { arg }).collect();
        let decided = world.call(1, "bob", &decide).run();
        assert!(decided.code == 0 && decided.stdout.contains(word), "{decided:?}");
        assert_eq!(asked.end(handle), code);
        let late = world.call(1, "bob", &["approve", &id]).run();
        assert!(late.code == 1 && late.stderr.contains("is decided"), "{late:?}");
    }
}

#[test]
fn what_is_approved_for_always_is_asked_for_no_more_and_no_answer_is_a_no() {
    let world = World::of(1);
    world.room("room");
    let brief = ["ask-approval", "room", "--timeout", "1", "--", "x"];
    let unanswered = world.call(0, "ada", &brief).run();
    assert_eq!(unanswered.code, 2, "{unanswered:?}");
    assert!(unanswered.stdout.contains("x: expired"), "{unanswered:?}");
}

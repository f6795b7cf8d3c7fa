//! Files of rooms: written at one node, read at another one.

use serde_json::Value;

use crate::support::{Call, World};

/// A call at a node, which is named by its directory.
fn call<'w>(world: &'w World, node: usize, args: &[&str]) -> Call<'w> {
    let dir = world.mesh.nodes[node].ready().data_dir.display().to_string();
    let args = [&["files", "--data-dir", &dir], args].concat();
    world.call(node, "ada", &args)
}

#[test]
fn files_are_put_listed_read_and_deleted_at_any_node() {
    let world = World::of(2);
    world.room("shelf");
    let plan = world.file("plan.md", "one\ntwo\n");
    let put =
        ["put", "shelf", "docs/the plan.md", plan.to_str().unwrap(), "--type", "text/markdown"];
    assert_eq!(call(&world, 0, &put).run().ok(), "Written: docs/the plan.md\n");
    call(&world, 0, &["put", "shelf", "a.txt"]).stdin("from standard input").run().ok();

    world.until("the files are there", || {
        call(&world, 1, &["list", "shelf"]).run().stdout.contains("docs/the plan.md")
    });
    let listed = call(&world, 1, &["list", "shelf", "--json"]).run().ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let row = |n: usize| {
        let file = &listed["files"][n];
        (file["path"].as_str().unwrap(), file["size"].as_u64().unwrap(), file["type"].as_str())
    };
    assert_eq!(row(0), ("a.txt", 19, None));
    assert_eq!(row(1), ("docs/the plan.md", 8, Some("text/markdown")));
    // The content comes a moment after the name: the command waits for it.
    let get = ["get", "shelf", "docs/the plan.md"];
    assert_eq!(call(&world, 1, &get).run().ok(), "one\ntwo\n");
    let copy = world.home().join("copy");
    let get = ["get", "shelf", "a.txt", copy.to_str().unwrap()];
    call(&world, 1, &get).run().ok();
    assert_eq!(std::fs::read(&copy).unwrap(), b"from standard input");

    assert_eq!(call(&world, 1, &["rm", "shelf", "a.txt"]).run().ok(), "Deleted: a.txt\n");
    let gone = call(&world, 1, &["get", "shelf", "a.txt"]).run();
    assert_eq!(gone.code, 1);
    let wrong = call(&world, 0, &["put", "shelf", "../up"]).stdin("x").run().failed();
    assert!(wrong.contains("path"), "{wrong}");
    let lobby = call(&world, 0, &["put", "lobby", "x"]).stdin("x").run().failed();
    assert!(lobby.contains("lobby"), "{lobby}");
}

#[test]
fn a_state_that_was_replaced_is_listed_and_read_at_a_node_that_never_had_it() {
    let mut world = World::of(2);
    world.room("shelf");
    call(&world, 0, &["put", "shelf", "notes.1"]).stdin("a file of that name").run().ok();
    world.runtime.block_on(world.mesh.nodes[1].stop()).unwrap();
    for text in ["first", "second", "third"] {
        call(&world, 0, &["put", "shelf", "plan.md"]).stdin(text).run().ok();
    }
    world.runtime.block_on(world.mesh.nodes[1].restart()).unwrap();
    world.until("the file has come", || {
        call(&world, 1, &["get", "shelf", "plan.md"]).run().stdout == "third"
    });
    let listed = call(&world, 1, &["list", "shelf", "--json"]).run().ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let paths: Vec<_> =
        listed["replaced"].as_array().unwrap().iter().map(|state| &state["path"]).collect();
    assert_eq!(paths, ["plan.md.1", "plan.md.2"]);
    assert_eq!(
        (&listed["replaced"][0]["of"], &listed["replaced"][0]["size"]),
        (&"plan.md".into(), &6.into())
    );
    for n in [1, 0] {
        let read = |path: &str| call(&world, n, &["get", "shelf", path]).run();
        assert_eq!(read("plan.md.1").ok(), "second", "node{n}");
        assert_eq!(read("plan.md.2").ok(), "first", "node{n}");
        assert_eq!(read("notes.1").ok(), "a file of that name", "node{n}");
        let none = read("plan.md.3").failed();
        assert!(none.contains("file"), "{none}");
    }
    let shown = call(&world, 0, &["list", "shelf"]).run().ok();
    assert!(shown.contains("plan.md.2"), "{shown}");
    call(&world, 1, &["rm", "shelf", "plan.md"]).run().ok();
    assert_eq!(call(&world, 1, &["get", "shelf", "plan.md.1"]).run().code, 1, "deleted is gone");
}

#[test]
fn files_of_encrypted_rooms_are_read_with_the_secret_alone() {
    let world = World::of(1);
    world.ok(0, "ada", &["rooms", "create", "vault", "--public", "--encrypted"]);
    let with = |secret: &'static str, args: &[&str]| {
        let call = call(&world, 0, args).env("CLAWMESH_ROOM_KEY", secret);
        call.stdin("between us").run()
    };
    let plain = call(&world, 0, &["put", "vault", "x"]).stdin("for all").run();
    assert_eq!(plain.code, 1, "{plain:?}");
    with("a secret", &["put", "vault", "x"]).ok();
    assert_eq!(with("a secret", &["get", "vault", "x"]).ok(), "between us");
    let sealed = call(&world, 0, &["get", "vault", "x"]).run().ok();
    assert!(sealed.starts_with("clw1:"), "{sealed}");
    let other = with("another one", &["get", "vault", "x"]).failed();
    assert!(other.contains("another --room-key"), "{other}");
}

#[test]
fn files_travel_over_http_and_that_is_said() {
    let world = World::of(1);
    let refused = world.call(0, "ada", &["files", "list", "lobby"]).run().failed();
    assert!(refused.contains("--url"), "{refused}");
    let url = format!("ws://{}", world.mesh.nodes[0].http());
    let listed = world.call(0, "ada", &["--url", &url, "files", "list", "lobby"]).run();
    assert_eq!(listed.code, 0, "{listed:?}");
}

//! Commands that are answered at once: every command of ClawChat's own client that does not wait.

use serde_json::{Value, json};
use testnet::wire::text;

use crate::support::World;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

/// The rest of a line: `[HH:MM:SS] ` always has the same length.
fn after_the_time(line: &str) -> &str {
    assert!(line.starts_with('[') && line.as_bytes()[9] == b']', "{line}");
    &line[11..]
}

#[test]
fn messages_are_said_and_read() {
    let world = World::of(1);
    let room = world.room("war-room");
    let said = world.ok(0, "ada", &["send", "war-room", "hello"]);
    assert_eq!(after_the_time(said.trim_end()), "#1 ada: hello");
    let first = json(&world.ok(0, "ada", &["send", &room, "again", "--kind", "fyi", "--json"]));
    assert_eq!((&first["seq"], &first["metadata"]), (&json!(2), &json!({"kind": "fyi"})));
    let id = text(&first, "message_id");
    let answer = ["send", "war-room", "a\nb", "--reply-to", &id, "--mention", "x", "--json"];
    let answer = json(&world.ok(0, "bob", &answer));
    assert_eq!(text(&answer, "reply_to_message"), id);
    world.ok(0, "bob", &["thinking", "war-room", "hm"]);
    world.ok(0, "bob", &["send", "war-room", "bye", "--end"]);

    let all = world.ok(0, "eve", &["history", "war-room"]);
    let shown: Vec<&str> =
        all.lines().map(|line| line.strip_prefix('[').map_or(line, |_| &line[11..])).collect();
    assert_eq!(
        shown,
        ["#1 ada: hello", "#2 ada: again", "#3 bob: a", "  b", "#4 bob: hm", "#5 bob: bye"]
    );
    let page = |args: &[&str]| -> Vec<u64> {
        let args = [&["history", "war-room", "--json"], args].concat();
        let lines = lines(&world.ok(0, "eve", &args));
        lines.iter().map(|message| message["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(page(&["--limit", "2"]), [4, 5]);
    assert_eq!(page(&["--since-seq", "2", "--limit", "2"]), [3, 4]);
    assert_eq!(page(&["--since", &id]), [3, 4, 5]);
    assert_eq!(page(&["--kind", "fyi"]), [2, 5], "an end is always shown");
    assert_eq!(world.ok(0, "eve", &["rooms", "tip", "war-room"]), "5\n");
    let file = world.home().join("out.txt");
    let path = file.display().to_string();
    assert_eq!(world.ok(0, "eve", &["history", "war-room", "-o", &path]), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), all);
}

#[test]
fn rooms_agents_and_presence_are_shown() {
    let world = World::of(1);
    let made =
        world.ok(0, "ada", &["rooms", "create", "alpha", "--public", "--description", "for\tall"]);
    let id = made.strip_prefix("Created room: alpha (").and_then(|rest| rest.strip_suffix(")\n"));
    let id = id.unwrap_or_else(|| panic!("{made}"));
    world.ok(0, "ada", &["rooms", "create", "beta", "--parent", "alpha"]);
    world.ok(0, "ada", &["rooms", "create", "vault", "--encrypted"]);
    let brief = json(&world.ok(0, "ada", &["rooms", "create", "brief", "--ephemeral", "--json"]));
    assert_eq!(brief["ephemeral"], true);
    let agent = world.agent(0, "guest");
    let mut agent = agent;
    world.runtime.block_on(agent.call("join_room", json!({"room_id": id}))).unwrap();

    let list = world.ok(0, "ada", &["rooms", "list"]);
    let heads = list.lines().next().unwrap();
    for head in ["NAME", "ID", "AGENTS"] {
        assert!(heads.contains(head), "{heads}");
    }
    let row = |text: &str, name: &str| -> String {
        let row = text.lines().find(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    assert!(row(&list, "alpha").contains(id) && row(&list, "alpha").contains("public"));
    assert!(row(&list, "vault").contains("private, encrypted"));
    let part = world.ok(0, "ada", &["rooms", "list", "--parent", "alpha"]);
    assert!(part.contains("beta") && !part.contains("vault"), "{part}");
    let rooms = json(&world.ok(0, "ada", &["rooms", "list", "--json"]));
    assert!(rooms["rooms"].as_array().unwrap().iter().any(|room| room["room_id"] == id));

    let info = world.ok(0, "ada", &["rooms", "info", "alpha"]);
    assert!(info.contains(id) && info.contains("guest") && info.contains("beta"), "{info}");
    // By names: the letters of "ada" occur in drawn ids, too.
    let names = |table: &str| -> Vec<String> {
        let names = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        names.map(String::from).collect()
    };
    let agents = world.ok(0, "ada", &["agents", "--room", "alpha"]);
    assert_eq!(names(&agents), ["guest"], "{agents}");
    let agents = world.ok(0, "ada", &["agents"]);
    assert!(names(&agents).contains(&"ada".to_owned()), "{agents}");
    let status = world.ok(0, "ada", &["presence", "working", "--detail", "x", "--progress", "57"]);
    assert_eq!(status, "Presence: working\n");
    let set = json(&world.ok(0, "ada", &["presence", "idle", "--json"]));
    assert_eq!(set, json!({"status": "idle"}));
    let status = json(&world.ok(0, "ada", &["status", "--json"]));
    assert_eq!(status["rooms"], 5, "the ephemeral one waits for somebody to join it");
    assert!(world.ok(0, "ada", &["status"]).contains("5 rooms"));
}

#[test]
fn an_encrypted_room_is_read_by_who_has_the_key() {
    let world = World::of(1);
    let key = world.ok(0, "ada", &["keygen"]);
    let key = key.trim_end();
    assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    assert_ne!(world.ok(0, "ada", &["keygen"]).trim_end(), key);
    world.ok(0, "ada", &["rooms", "create", "vault", "--encrypted", "--public"]);
    let refused = world.call(0, "ada", &["send", "vault", "plain"]).run().failed();
    assert!(refused.contains("plaintext_in_encrypted_room"), "{refused}");
    world.ok(0, "ada", &["--room-key", key, "send", "vault", "the eagle lands"]);
    let with = |name| world.call(0, "bob", &["history", "vault"]).env(name, key).run().ok();
    assert!(with("CLAWCHAT_ROOM_KEY").contains("the eagle lands"));
    assert!(with("CLAWMESH_ROOM_KEY").contains("the eagle lands"));
    let without = world.ok(0, "eve", &["history", "vault"]);
    assert!(without.contains("clw1:") && !without.contains("eagle"), "{without}");
    let export = ["--room-key", key, "export", "vault", "--format", "md"];
    assert!(world.ok(0, "bob", &export).contains("the eagle lands"));
}

#[test]
fn a_room_is_exported_as_a_document() {
    let world = World::of(1);
    world.room("minutes");
    for text in ["one", "two"] {
        world.ok(0, "ada", &["send", "minutes", text]);
    }
    world.ok(0, "ada", &["thinking", "minutes", "hm"]);
    let export = |args: &[&str]| world.ok(0, "eve", &[&["export", "minutes"], args].concat());
    let md = export(&[]);
    let heads: Vec<&str> = md.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(heads[0], "# Room: minutes");
    assert!(heads[1].starts_with("### ada · seq 1 · ") && heads.len() == 3, "{md}");
    assert_eq!(export(&["--format", "json"]).lines().map(json).count(), 2);
    let all = export(&["--format", "txt", "--include-thinking"]);
    let shown: Vec<&str> = all.lines().map(after_the_time).collect();
    assert_eq!(shown, ["#1 ada: one", "#2 ada: two", "#3 ada: hm"]);
    let path = world.home().join("minutes.md").display().to_string();
    assert_eq!(export(&["-o", &path]), "");
    assert_eq!(std::fs::read_to_string(path).unwrap(), md);
}

/// What a player of replays reads.
fn is_whole(file: &Value) {
    let events = file["events"].as_array().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"room.created"));
    assert_eq!(kinds.last(), Some(&"room.stats"));
    for kind in [
        "agent.message",
        "agent.joined",
        "task.created",
        "task.claim_accepted",
        "agent.status",
        "task.completed",
        "git.commit",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let t: Vec<u64> = events.iter().map(|event| event["t"].as_u64().unwrap()).collect();
    assert!(t[0] == 0 && t.is_sorted(), "{t:?}");
    let stats = &events.last().unwrap()["data"];
    let counted = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!(
        ["commits", "lines_added", "messages", "tasks_completed"].map(counted),
        [1, 7, 2, 1],
        "{file}"
    );
    let commit = events.iter().find(|event| event["type"] == "git.commit").unwrap();
    assert_eq!(commit["data"]["message"], "feat: x");
    assert_eq!(commit["data"]["stats"]["deletions"], 1);
    assert_eq!(file["meta"]["room"], "tour");
    let names: Vec<&str> = file["meta"]["participants"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"ada") && names.contains(&"bob"), "{names:?}");
}

#[test]
fn a_room_is_replayed_the_same_by_two_nodes_and_after_a_restart() {
    let mut world = World::of(2);
    let room = world.room("tour");
    world.ok(0, "ada", &["send", "tour", "see /home/ada, ada@example.org"]);
    world.ok(1, "bob", &["thinking", "tour", "hm"]);
    let task = json(&world.ok(1, "bob", &["--json", "task", "assign", "tour", "build it"]));
    let bob = task["created_by"].as_str().unwrap().to_owned();
    let task = task["task_id"].as_str().unwrap().to_owned();
    world.until("the task is at both", || {
        world.ok(0, "ada", &["--json", "task", "list", "tour"]).contains(&task)
    });
    world.ok(0, "ada", &["task", "update", &task, "--assignee", &bob, "--status", "in_progress"]);
    world.ok(0, "ada", &["task", "update", &task, "--status", "completed"]);
    let git = json!({
        "commit_info": {"sha": "abc123d", "message": "feat: x\n\nmore", "branch": "b"},
        "changes": {"stats": {"additions": 7, "deletions": 1}},
    });
    let mut writer = world.agent(0, "writer");
    world.runtime.block_on(writer.call("join_room", json!({"room_id": room}))).unwrap();
    let commit = json!({
        "room_id": room, "content": "[git] commit",
        "metadata": {"kind": "git.commit", "git": git},
    });
    world.runtime.block_on(writer.call("send_message", commit)).unwrap();
    world.until("all is at both", || {
        let at = |node| world.history(node, &room).len();
        at(0) == 3 && at(1) == 3
    });
    let play = |world: &World, node, args: &[&str]| {
        world.ok(node, "eve", &[&["replay", "tour"], args].concat())
    };
    let whole = play(&world, 0, &["--include-thinking"]);
    world.until("both tell the same", || play(&world, 1, &["--include-thinking"]) == whole);
    is_whole(&json(&whole));
    let plain = play(&world, 0, &[]);
    assert!(plain.contains("ada@example.org") && !plain.contains("\"hm\""));
    let public = play(&world, 0, &["--public", "--include-thinking"]);
    assert!(public.contains("/home/[USER], [EMAIL]") && !public.contains("\"hm\""), "{public}");
    world.runtime.block_on(world.mesh.nodes[0].restart()).unwrap();
    assert_eq!(play(&world, 0, &["--include-thinking"]), whole, "after a restart");
    let missing = world.call(0, "eve", &["replay", "nowhere"]).run();
    assert_eq!((missing.code, &*missing.stdout), (1, ""));
}

#[test]
fn a_message_is_read_from_standard_input() {
    let world = World::of(1);
    let text = "- two\nlines, \"quoted\" and $expanded\n";
    let said = world.call(0, "ada", &["send", "lobby", "-", "--json"]).stdin(text).run().ok();
    assert_eq!(json(&said)["content"], text.trim_end_matches('\n'));
}

#[test]
fn votes_elections_decisions_and_tasks() {
    let world = World::of(1);
    let room = world.room("council");
    let mut guest = world.agent(0, "guest");
    let join = json!({ "room_id": room });
    world.runtime.block_on(guest.call("join_room", join)).unwrap();

    // An identity that is kept over calls may vote, lead and decide.
    let me = |args: &[&str]| world.ok(0, "ada", &[&["--agent-id", "ada-1"], args].concat());
    let vote = ["vote", "create", "council", "Which?", "--options", "A", "B", "--json"];
    let vote = json(&me(&vote));
    assert_eq!((&vote["status"], &vote["eligible_voters"]), (&json!("open"), &json!(2)));
    let id = text(&vote, "vote_id");
    assert_eq!(me(&["vote", "cast", &id, "1"]), "Cast: 1 of 2 so far\n");
    let again = world.call(0, "ada", &["--agent-id", "ada-1", "vote", "cast", &id, "a"]).run();
    assert!(again.failed().contains("already_voted"), "the option is found by its text");
    let none = world.call(0, "ada", &["--agent-id", "ada-1", "vote", "cast", &id, "C"]).run();
    assert!(none.failed().contains("0: A, 1: B"));
    let open = me(&["vote", "status", &id]);
    assert!(open.contains("open · 1 of 2 cast") && open.contains("0: A"), "{open}");
    let cast = json!({"vote_id": id, "option_index": 1});
    world.runtime.block_on(guest.call("cast_vote", cast)).unwrap();
    world.until("the vote is closed", || me(&["vote", "status", &id]).contains("1: B · 2"));
    assert!(me(&["vote", "history", "council", "--limit", "5"]).contains("Which? ("));
    let timed = ["vote", "create", "council", "Now?", "--options", "A", "B", "--duration", "60"];
    assert!(me(&timed).contains("closes at "));

    let elected = me(&["election", "start", "council", "--json"]);
    let leader = text(&json(&elected), "leader_id");
    let rogue = world.call(0, "eve", &["election", "decide", "council", "no"]).run().failed();
    assert!(rogue.contains("not_leader") || rogue.contains("not_in_room"), "{rogue}");
    assert!(leader == "ada-1" || leader == guest.id, "{leader}");
    let late = world.call(0, "ada", &["--agent-id", "ada-1", "election", "decline", "council"]);
    assert!(late.run().failed().contains("no_election_active"));

    let task =
        json(&me(&["task", "assign", "council", "write it", "--description", "all", "--json"]));
    let id = text(&task, "task_id");
    let update = ["task", "update", &id, "--assignee", "ada-1", "--if-assignee", "none"];
    let claimed = me(&[&update[..], &["--status", "in_progress", "--note", "mine"]].concat());
    assert!(claimed.contains("in_progress") && claimed.contains("ada-1"), "{claimed}");
    world.ok(0, "bob", &["--agent-id", "bob-1", "send", "council", "I want it"]);
    let claim = ["--agent-id", "bob-1", "task", "update", &id, "--assignee", "bob-1"];
    let second = world.call(0, "bob", &[&claim[..], &["--if-assignee", "none"]].concat());
    let second = second.run().failed();
    assert!(second.contains("ada-1"), "it says who has it: {second}");
    assert!(me(&["task", "list", "council", "--status", "in_progress"]).contains("write it"));
    assert_eq!(me(&["task", "list", "council", "--status", "blocked"]), "");
    task_states(&me, &id);
}

/// The states and fields of a mesh.
fn task_states(me: &dyn Fn(&[&str]) -> String, id: &str) {
    let fields = ["--priority", "3", "--label", "red", "--progress", "40", "--step", "digs"];
    let review = [&["task", "update", id, "--state", "in_review"], &fields[..]].concat();
    let shown = me(&review);
    for part in ["in_review", "3", "red", "40 % digs"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let back = ["task", "update", id, "--release", "--state", "pending", "--note", "not yet"];
    let back = me(&back);
    assert!(back.contains("pending") && !back.contains("ada-1"), "{back}");
    let record = json(&me(&["task", "show", "council", id, "--json"]));
    let texts = record["comments"].as_array().into_iter().flatten().map(|it| &it["text"]);
    assert_eq!(texts.collect::<Vec<_>>(), ["mine", "not yet"]);
    me(&["task", "update", id, "--state", "cancelled"]);
    assert!(me(&["task", "delete", id]).contains("deleted"));
    assert_eq!(me(&["task", "list", "council"]), "");
}

#[test]
fn a_history_of_any_length_is_read_and_may_be_cut_off() {
    let world = World::of(1);
    let room = world.room("long");
    let none = world.call(0, "eve", &["history", "long"]).run();
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (0, "", "(no messages)\n"));
    for list in [&["vote", "history", "long"][..], &["task", "list", "long"], &["sub", "list"]] {
        let none = world.call(0, "eve", list).run();
        assert!(none.stdout.is_empty() && none.stderr.starts_with("(no "), "{list:?}: {none:?}");
        let none = world.call(0, "eve", &[list, &["--json"]].concat()).run();
        assert_eq!(none.stderr, "", "programs see it");
    }
    let mut bulk = world.agent(0, "bulk");
    world.runtime.block_on(async {
        bulk.call("join_room", json!({"room_id": room})).await.unwrap();
        for n in 1..=1_205 {
            let say = json!({"room_id": room, "content": format!("{n}")});
            bulk.call("send_message", say).await.unwrap();
        }
    });
    let seqs = |args: &[&str]| -> Vec<u64> {
        let args = [&["history", "long", "--json"], args].concat();
        let page = lines(&world.ok(0, "eve", &args));
        page.iter().map(|message| message["seq"].as_u64().unwrap()).collect()
    };
    let all = |from: u64, to: u64| (from..=to).collect::<Vec<_>>();
    assert_eq!(seqs(&["--limit", "2000"]), all(1, 1_205));
    assert_eq!(seqs(&["--limit", "1100"]), all(106, 1_205), "the newest");
    assert_eq!(
        seqs(&["--limit", "1100", "--since-seq", "5"]),
        all(6, 1_105),
        "the oldest after it"
    );
    // As `head -1` does.
    let mut command = world.call(0, "eve", &["history", "long", "--limit", "2000"]).command();
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ended = world.runtime.block_on(async {
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().await.unwrap()
    });
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]), "it ends quietly");
}

#[test]
fn webhooks_are_made_listed_and_deleted() {
    let world = World::with(1, &["--allow-private-webhooks"]);
    let room = world.room("hooked");
    let hook =
        ["sub", "create", "hooked", "--url", "http://127.0.0.1:9/hook", "--secret", "s3cret"];
    let filters =
        ["--kinds", "verdict,fyi", "--only-from", "ada", "--exclude-thinking", "--since-seq", "0"];
    let made = world.ok(0, "ada", &[&hook[..], &filters].concat());
    let id = made.strip_prefix("Subscribed: ").unwrap_or_else(|| panic!("{made}")).trim_end();
    let list = json(&world.ok(0, "ada", &["sub", "list", "--json"]));
    let subscription = &list["subscriptions"][0];
    assert_eq!(
        (&subscription["kinds"], &subscription["since_seq"]),
        (&json!(["verdict", "fyi"]), &json!(0))
    );
    assert_eq!(subscription["room_id"], json!(room));
    let shown = world.ok(0, "ada", &["sub", "list", "--room", "hooked"]);
    assert!(shown.contains(id) && shown.contains("active") && !shown.contains("s3cret"), "{shown}");
    assert_eq!(world.ok(0, "ada", &["sub", "enable", id]), format!("Enabled: {id}\n"));
    assert_eq!(world.ok(0, "ada", &["sub", "delete", id]), format!("Deleted: {id}\n"));
    assert_eq!(world.ok(0, "ada", &["sub", "list"]), "");
    let gone = world.call(0, "ada", &["sub", "delete", id]).run().failed();
    assert!(gone.starts_with("clawmesh: "), "{gone}");
}

#[test]
fn what_goes_wrong_says_what_to_do() {
    let world = World::of(1);
    let failed = |args: &[&str]| world.call(0, "ada", args).run().failed();
    assert!(failed(&["send", "nowhere", "x"]).contains("clawmesh rooms list"));
    assert!(failed(&["--key", "wrong", "status"]).contains("--key"));
    assert!(
        failed(&["--socket", "/nowhere", "--tcp", "127.0.0.1:1", "status"])
            .contains("clawmeshd up")
    );
    assert!(failed(&["status", "--key-file", "/nowhere"]).contains("/nowhere"));
    assert!(failed(&["election", "decide", "lobby", "x"]).contains("not_"));
    for usage in
        [&["send", "lobby"][..], &["vote", "create", "lobby", "x"], &["wait"], &["nonsense"]]
    {
        let text = failed(usage);
        assert!(text.contains("Usage") || text.contains("--help"), "{text}");
    }
    let none = world.call(0, "ada", &["mesh", "--data-dir", "/nowhere", "status"]).run().failed();
    assert!(none.contains("clawmeshd up"), "{none}");
}

#[test]
fn agents_write_to_one_another_and_nobody_else_reads_it() {
    let world = World::of(1);
    let call = |agent: &str, args: &[&str]| {
        let args = [&["--agent-id", agent], args].concat();
        world.call(0, agent, &args).run()
    };
    call("bob", &["send", "lobby", "here I am"]).ok();
    assert_eq!(call("ada", &["dm", "nobody", "hello"]).code, 1);
    let said = call("ada", &["dm", "bob", "hello"]).ok();
    assert_eq!(after_the_time(said.trim_end()).split_once(' ').unwrap().1, "ada: hello");
    let answer = json(&call("bob", &["dm", "ada", "and to you", "--json"]).ok());
    assert_eq!(text(&answer, "agent_id"), "bob");
    let shown = call("ada", &["dm", "bob"]).ok();
    let words: Vec<&str> = shown.lines().map(|line| line.rsplit_once(": ").unwrap().1).collect();
    assert_eq!(words, ["hello", "and to you"]);
    let none = call("ada", &["dm", "bob", "are you there?", "--wait", "--timeout", "1"]);
    assert_eq!(none.code, 1);
    let listed = call("eve", &["rooms", "list"]).ok();
    assert!(!listed.contains("dm:"), "{listed}");
    assert!(call("ada", &["rooms", "list"]).ok().contains("dm:ada:bob"));
}

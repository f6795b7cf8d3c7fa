//! `clawmesh lantern`, as the specification has it (docs/lantern.md).

use serde_json::{Value, json};

use crate::support::{Call, World};

/// Of `VERB sent as seq N…`.
fn seq_of(line: &str) -> u64 {
    let (_, rest) = line.split_once(" sent as seq ").unwrap_or_else(|| panic!("{line}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The columns of a table, between which there are at least two blanks.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let columns =
        |line| str::split(line, "  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    text.lines().map(columns).collect()
}

/// A call of `clawmesh lantern`, with arguments as a shell takes them.
fn lantern<'a>(world: &'a World, node: usize, name: &str, line: &str) -> Call<'a> {
    let words = shlex::split(line).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.call(node, name, &[&["lantern"], &words[..]].concat())
}

/// The same with JSON lines, of which there is at least one.
fn as_json(world: &World, node: usize, line: &str) -> Vec<Value> {
    json_lines(&lantern(world, node, "eve", &format!("--json {line}")).run().ok())
}

const ASSERT: &str = "assert war-room --claim 'the plan is missing a rollback gate' \
    --confidence 0.74 --falsifiable-by 'a documented operator rollback step'";

#[test]
fn a_thread_goes_from_a_claim_to_a_score() {
    let world = World::of(1);
    let room_id = world.room("war-room");
    world.file("delta.json", "{\"gate\": [\"operator\", 1.5]}\n");
    for (name, line, printed) in [
        (
            "ada",
            "hello war-room --provider Anthropic --model Claude --role reviewer \
             --capability 'code_review=produces findings grounded in file refs'",
            "HELLO sent as seq 1\n",
        ),
        ("ada", ASSERT, "ASSERT sent as seq 2 — thread id is 2\n"),
        (
            "bob",
            "challenge war-room --thread 2 --target-seq 2 --counter-claim 'it exists, named recovery' \
             --confidence 0.6 --test 'grep the plan for operator recovery' --intent 'settle it'",
            "CHALLENGE sent as seq 3\n",
        ),
        (
            "bob",
            "resolve war-room --thread 2 --observation 'recovery exists, no rollback gate' \
             --basis artifact",
            "RESOLVE sent as seq 4\n",
        ),
        (
            "ada",
            "fuse war-room --thread 2 --synthesis 'add an operator rollback gate' \
             --state-delta delta.json --outcome 2=true --outcome 3=false",
            "FUSE sent as seq 5\n",
        ),
    ] {
        assert_eq!(lantern(&world, 0, name, line).run().ok(), printed);
    }
    on_the_wire(&world.history(0, &room_id));
    reads(&world);
    refraction_is_due_after_three(&world);
}

fn on_the_wire(messages: &[Value]) {
    let attested = "self_attested";
    let envelopes = [
        json!({
            "v": "lantern/0.1.1", "type": "HELLO", "agent_name": "ada", "provider": "Anthropic",
            "model": "Claude", "role": "reviewer",
            "capabilities": [{"name": "code_review",
                "falsifiable_by": "produces findings grounded in file refs"}],
            "attestation": {"agent_name": attested, "provider": attested, "model": attested,
                "role": attested, "capabilities": attested},
        }),
        json!({
            "v": "lantern/0.1.1", "type": "ASSERT", "from": "ada",
            "body": {"claim": "the plan is missing a rollback gate", "confidence": 0.74,
                "falsifiable_by": "a documented operator rollback step"},
        }),
        json!({
            "v": "lantern/0.1.1", "type": "CHALLENGE", "thread": 2, "reply_to": 2, "from": "bob",
            "intent": "settle it",
            "body": {"target_seq": 2, "counter_claim": "it exists, named recovery",
                "confidence": 0.6, "test": "grep the plan for operator recovery"},
        }),
        json!({
            "v": "lantern/0.1.1", "type": "RESOLVE", "thread": 2, "from": "bob",
            "body": {"observation": "recovery exists, no rollback gate", "basis": "artifact"},
        }),
        json!({
            "v": "lantern/0.1.1", "type": "FUSE", "thread": 2, "from": "ada",
            "body": {"synthesis": "add an operator rollback gate", "split": false,
                "shared_state_delta": {"gate": ["operator", 1.5]},
                "outcomes": {"2": true, "3": false}},
        }),
    ];
    assert_eq!(messages.len(), envelopes.len());
    for (message, envelope) in messages.iter().zip(envelopes) {
        let content: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
        assert_eq!(content, envelope);
        assert_eq!(message["metadata"], json!({"kind": "lantern"}));
        assert_eq!(message.get("reply_to_message"), None, "nodes need not know what it answers");
    }
}

fn reads(world: &World) {
    let read = |args: &[&str]| world.ok(0, "eve", args);
    let out = read(&["lantern", "threads", "war-room"]);
    assert_eq!(
        rows(&out),
        [
            vec!["AGENT", "ROLE", "MODEL", "PROVIDER", "CAPABILITIES"],
            vec!["ada", "reviewer", "Claude", "Anthropic", "code_review"],
            vec![],
            vec!["THREAD", "STATE", "MESSAGES", "BY", "HEADLINE"],
            vec!["2", "fused", "4", "ada", "the plan is missing a rollback gate"],
        ],
        "{out}"
    );
    let out = json_lines(&read(&["--json", "lantern", "threads", "war-room"]));
    assert_eq!(
        out,
        [json!({
            "participants": [{"agent_name": "ada", "provider": "Anthropic", "model": "Claude",
                "role": "reviewer", "seq": 1, "capabilities": [{"name": "code_review",
                "falsifiable_by": "produces findings grounded in file refs"}]}],
            "threads": [{"thread": 2, "state": "fused", "opened_by": "ada", "messages": 4,
                "headline": "the plan is missing a rollback gate", "last_seq": 5}],
            "sparks": [], "refraction_due": false,
        })]
    );
    let out = read(&["lantern", "show", "war-room", "2"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].ends_with("] #2 ada ASSERT"), "{out}");
    assert!(lines.contains(&"  claim: the plan is missing a rollback gate"), "{out}");
    assert!(lines.contains(&"  intent: settle it") && lines.contains(&"  confidence: 0.74"));
    let heads: Vec<&str> =
        lines.iter().filter(|line| line.starts_with('[')).map(|line| &line[11..]).collect();
    assert_eq!(heads, ["#2 ada ASSERT", "#3 bob CHALLENGE", "#4 bob RESOLVE", "#5 ada FUSE"]);
    let out = json_lines(&read(&["--json", "lantern", "show", "war-room", "2"]));
    let of = |shown: &Value| {
        (shown["seq"].as_u64(), shown["envelope"]["type"].as_str().map(str::to_owned))
    };
    assert_eq!(of(&out[1]), (Some(3), Some("CHALLENGE".to_owned())));
    let out = read(&["lantern", "state", "war-room"]);
    assert_eq!(out, "#5 thread 2 ada: {\"gate\":[\"operator\",1.5]}\n");
    let out = json_lines(&read(&["--json", "lantern", "state", "war-room"]));
    let delta = json!({"gate": ["operator", 1.5]});
    assert_eq!(out, [json!({"seq": 5, "thread": 2, "from": "ada", "delta": delta})]);
    let out = read(&["lantern", "calibration", "war-room"]);
    let expect = [
        vec!["AGENT", "MEAN LOSS", "CLAIMS"],
        vec!["ada", "0.3011", "1"],
        vec!["bob", "0.9163", "1"],
    ];
    assert_eq!(rows(&out), expect, "-ln 0.74 and -ln 0.4");
    let out = json_lines(&read(&["--json", "lantern", "calibration", "war-room"]));
    assert_eq!(out[0], json!({"agent": "ada", "mean_loss": -(0.74_f64.ln()), "claims": 1}));
    let failed = world.call(0, "eve", &["lantern", "show", "war-room", "3"]).run().failed();
    assert!(failed.contains("no thread 3") && failed.contains("stands in thread 2"), "{failed}");
}

fn refraction_is_due_after_three(world: &World) {
    let due = || {
        let ran = world.call(0, "eve", &["lantern", "threads", "war-room"]).run();
        assert!(!ran.stdout.contains("REFRACTION"), "scripts read stdout");
        ran.stderr.contains("REFRACTION-due")
    };
    let fuse = &["lantern", "fuse", "war-room", "--thread", "2", "--synthesis", "s"];
    assert!(!due());
    for expect in [false, true, false] {
        world.ok(0, "ada", fuse);
        assert_eq!(due(), expect);
    }
}

#[test]
fn questions_and_ideas_have_their_own_ways() {
    let world = World::of(1);
    let room_id = world.room("war-room");
    let say = |args: &[&str]| world.ok(0, "ada", &[&["lantern"], args].concat());
    let read = |args: &[&str]| world.call(0, "ada", args).run();
    let ran = read(&["lantern", "threads", "war-room"]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""));
    assert!(ran.stderr.contains("no threads yet"), "{ran:?}");
    let ran = read(&["lantern", "state", "war-room"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing was committed yet"), "{ran:?}");
    let ran = read(&["lantern", "calibration", "war-room"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing to score yet"), "{ran:?}");
    let out = say(&["probe", "war-room", "--question", "what breaks first?"]);
    assert_eq!(out, "PROBE sent as seq 1 — thread id is 1\n");
    let out = say(&["sync", "war-room", "--thread", "1", "--state-hash", "abc", "--diff", "[1]"]);
    assert_eq!(out, "SYNC sent as seq 2\n");
    assert_eq!(say(&["sync", "war-room"]), "SYNC sent as seq 3\n");
    let spark = ["--seed", "use a log", "--why-now", "it is small", "--smallest-test", "one room"];
    assert_eq!(say(&[&["spark", "war-room"], &spark[..]].concat()), "SPARK sent as seq 4\n");
    assert_eq!(say(&[&["spark", "war-room"], &spark[..]].concat()), "SPARK sent as seq 5\n");
    let out = say(&["harvest", "war-room", "--spark-seq", "4", "--becomes", "thread 1"]);
    assert_eq!(out, "HARVEST sent as seq 6\n");
    let out = say(&["bury", "war-room", "--spark-seq", "#5", "--reason", "once is enough"]);
    assert_eq!(out, "BURY sent as seq 7\n");
    let out = world.ok(0, "ada", &["--json", "lantern", "probe", "war-room", "--question", "q"]);
    let sent = &json_lines(&out)[0];
    assert_eq!((&sent["seq"], &sent["metadata"]), (&json!(8), &json!({"kind": "lantern"})));
    let out = json_lines(&world.ok(0, "ada", &["--json", "lantern", "threads", "war-room"]));
    assert_eq!(
        out[0]["sparks"],
        json!([
            {"seq": 4, "from": "ada", "seed": "use a log", "state": "harvested", "by": 6,
                "becomes": "thread 1"},
            {"seq": 5, "from": "ada", "seed": "use a log", "state": "buried", "by": 7,
                "reason": "once is enough"},
        ])
    );
    let threads = out[0]["threads"].as_array().unwrap();
    assert_eq!((&threads[0]["thread"], &threads[0]["messages"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&threads[0]["state"], &threads[0]["headline"]),
        (&json!("open"), &json!("what breaks first?"))
    );
    let of = |message: &Value| -> Value {
        serde_json::from_str(message["content"].as_str().unwrap()).unwrap()
    };
    let sent: Vec<Value> = world.history(0, &room_id).iter().map(of).collect();
    assert_eq!(sent[1]["body"], json!({"state_hash": "abc", "diff": [1]}));
    assert_eq!((&sent[2]["body"], sent[2].get("thread")), (&json!({}), None));
    assert_eq!((&sent[6]["reply_to"], &sent[6]["body"]["spark_seq"]), (&json!(5), &json!(5)));
    say(&["fuse", "war-room", "--thread", "1", "--synthesis", "two ways", "--split"]);
    let fused = world.history(0, &room_id).pop().unwrap();
    let fused: Value = serde_json::from_str(fused["content"].as_str().unwrap()).unwrap();
    assert_eq!((&fused["type"], &fused["body"]["split"]), (&json!("FUSE"), &json!(true)));
}

#[test]
fn what_is_not_valid_is_not_sent() {
    let world = World::of(1);
    world.room("war-room");
    world.file("null.json", "null");
    world.file("bad.json", "{");
    let failed = |line: &str| lantern(&world, 0, "ada", line).run().failed();
    let said = failed("assert war-room --claim ' ' --confidence 1.5");
    for part in [
        "this ASSERT was not sent",
        "`body.claim` is blank",
        "`body.falsifiable_by` is missing",
        "`body.confidence` has to be a number from 0 to 1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = failed("challenge war-room --counter-claim c --confidence -1");
    assert_eq!(said.matches(';').count(), 4, "thread, target, confidence, test, help: {said}");
    for (line, part) in [
        ("resolve war-room --thread 1 --observation o --basis guess", "consensus"),
        ("resolve war-room --thread 1 --observation o", "`body.basis` is missing"),
        ("fuse war-room --thread 1 --synthesis s --outcome 1=maybe", "true or false"),
        ("fuse war-room --thread 1 --synthesis s --outcome 1=true --outcome 1=false", "twice"),
        ("fuse war-room --thread 1 --synthesis s --state-delta missing.json", "missing.json"),
        ("fuse war-room --thread 1 --synthesis s --state-delta null.json", "null: leave it out"),
        ("fuse war-room --thread 1 --synthesis s --state-delta bad.json", "bad.json is not JSON"),
        ("fuse war-room --thread x --synthesis s", "give a number"),
        ("spark war-room --seed s --why-now w", "`body.smallest_test` is missing"),
        ("bury war-room --reason r", "`body.spark_seq` is missing"),
        ("probe war-room --question ''", "`body.question` is blank"),
    ] {
        let said = failed(line);
        assert!(said.contains(part), "{line}: {said}");
    }
    assert_eq!(world.ok(0, "ada", &["rooms", "tip", "war-room"]), "0\n");
    validate(&world);
}

fn validate(world: &World) {
    let check = |file: &str| world.call(0, "ada", &["lantern", "validate", file]).run();
    world.file(
        "good.json",
        r#"{"v":"lantern/0.2","type":"PROBE","from":"a","body":{"question":"q"}}"#,
    );
    assert_eq!(check("good.json").ok(), "valid\n");
    world.file(
        "envelope.json",
        r#"{"v":"lantern/0.1.1","type":"RESOLVE","from":"","thread":1,"body":{"basis":"guess"}}"#,
    );
    let ran = check("envelope.json");
    let expect = "invalid:\n  `from` is empty\n  `body.observation` is missing\n  \
        `body.basis` has to be one of tool, artifact, human, consensus, stale\n";
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (1, expect, ""));
    let ran = world.call(0, "ada", &["--json", "lantern", "validate", "-"]).stdin("[]").run();
    let verdict = &json_lines(&ran.stdout)[0];
    assert_eq!((ran.code, &verdict["valid"]), (1, &json!(false)));
    world.file("deep.json", &"[".repeat(100_000));
    let ran = check("deep.json");
    assert!(ran.code == 1 && ran.stdout.starts_with("invalid:\n  it is not JSON"), "{ran:?}");
    world.file("long.json", &" ".repeat(2_000_000));
    assert!(check("long.json").failed().contains("longer than a message"));
    assert!(check("missing.json").failed().contains("missing.json"));
    // Nobody is asked: it works without a node.
    let ran =
        world.call(0, "ada", &["--socket", "/nowhere", "lantern", "validate", "good.json"]).run();
    assert_eq!(ran.ok(), "valid\n");
}

#[test]
fn in_an_encrypted_room_nodes_learn_only_that_it_is_lantern() {
    let world = World::of(1);
    let key = world.ok(0, "host", &["keygen"]);
    let key = key.trim();
    let made =
        world.ok(0, "host", &["--json", "rooms", "create", "vault", "--public", "--encrypted"]);
    let room_id = json_lines(&made)[0]["room_id"].as_str().unwrap().to_owned();
    let call = |name, args: &[&str]| world.call(0, name, &[&["lantern"], args].concat());
    let say = |name, args: &[&str]| call(name, args).env("CLAWCHAT_ROOM_KEY", key).run().ok();
    let claim =
        ["--claim", "the eagle lands", "--falsifiable-by", "it does not", "--confidence", "0.9"];
    assert_eq!(say("ada", &["hello", "vault", "--role", "spy"]), "HELLO sent as seq 1\n");
    let out = say("ada", &[&["assert", "vault"], &claim[..]].concat());
    assert_eq!(out, "ASSERT sent as seq 2 — thread id is 2\n");
    say(
        "bob",
        &[
            "challenge",
            "vault",
            "--thread",
            "2",
            "--target-seq",
            "2",
            "--counter-claim",
            "no",
            "--confidence",
            "0.5",
            "--test",
            "look",
        ],
    );
    say(
        "bob",
        &["resolve", "vault", "--thread", "2", "--observation", "it landed", "--basis", "human"],
    );
    say("bob", &["fuse", "vault", "--thread", "2", "--synthesis", "yes", "--outcome", "2=true"]);
    let messages = world.history(0, &room_id);
    assert_eq!(messages.len(), 5);
    for message in &messages {
        let content = message["content"].as_str().unwrap();
        assert!(content.starts_with("clw1:"), "{content}");
        assert_eq!(message["metadata"], json!({"kind": "lantern"}));
        assert_eq!(message.get("reply_to_message"), None);
    }
    let out = say("eve", &["threads", "vault"]);
    assert_eq!(rows(&out)[4], ["2", "fused", "4", "ada", "the eagle lands"]);
    assert_eq!(rows(&say("eve", &["calibration", "vault"]))[1], ["ada", "0.1054", "1"]);
    assert!(say("eve", &["show", "vault", "2"]).contains("  observation: it landed\n"));
    for key in [None, Some("another")] {
        let call = call("eve", &["threads", "vault"]);
        let ran = key.into_iter().fold(call, |call, key| call.env("CLAWMESH_ROOM_KEY", key)).run();
        assert_eq!((ran.code, &*ran.stdout), (0, ""));
        assert!(
            ran.stderr.contains("5 LANTERN messages") && ran.stderr.contains("--room-key"),
            "{ran:?}"
        );
    }
    let said = call("eve", &[&["assert", "vault"], &claim[..]].concat()).run().failed();
    assert!(said.contains("plaintext_in_encrypted_room"), "{said}");
    assert_eq!(world.history(0, &room_id).len(), 5);
}

/// More than two pages, with messages of strangers in between.
#[test]
fn the_whole_history_is_read_and_what_does_not_parse_is_passed_over() {
    const MESSAGES: u64 = 1_100;
    let world = World::of(1);
    let room_id = world.room("war-room");
    lantern(&world, 0, "ada", ASSERT).run().ok();
    let hostile = [
        "{\"v\":\"lantern/0.1.1\",\"type\":\"FUSE\",\"thread\":1}".to_owned(),
        format!(
            "{{\"v\":\"lantern/0.1.1\",\"type\":\"FUSE\",\"thread\":1,\"from\":\"x\",\"body\":{}",
            "[".repeat(50_000)
        ),
        "{\"v\":\"lantern/0.1.1\",\"type\":\"FUSE\",\"thread\":1e999,\"from\":\"x\",\"body\":{}}"
            .to_owned(),
        "{\"v\":\"lantern/0.1.1\",\"type\":\"FUSE\",\"thread\":\"1\",\"from\":\"x\",\"body\":{}}"
            .to_owned(),
        "\u{1b}[2J\u{0} lantern/0.1.1".to_owned(),
    ];
    let mut agent = world.agent(0, "crowd");
    world.runtime.block_on(async {
        agent.call("join_room", json!({"room_id": room_id})).await.unwrap();
        for i in 2..MESSAGES {
            let content = hostile.get(i as usize % 50).map_or("just talk", |content| content);
            let metadata = json!({"kind": "lantern"});
            let payload = json!({"room_id": room_id, "content": content, "metadata": metadata});
            agent.call("send_message", payload).await.unwrap();
        }
    });
    let read = || world.ok(0, "eve", &["lantern", "threads", "war-room"]);
    assert_eq!(rows(&read())[1], ["1", "open", "1", "ada", "the plan is missing a rollback gate"]);
    let out = world.ok(
        0,
        "bob",
        &[
            "lantern",
            "resolve",
            "war-room",
            "--thread",
            "1",
            "--observation",
            "o",
            "--basis",
            "tool",
        ],
    );
    assert_eq!(seq_of(&out), MESSAGES);
    assert_eq!(
        rows(&read())[1],
        ["1", "resolved", "2", "ada", "the plan is missing a rollback gate"]
    );
    let out = world.ok(0, "eve", &["lantern", "show", "war-room", "1"]);
    assert_eq!(out.lines().filter(|line| line.starts_with('[')).count(), 2, "{out}");
    // Anybody can write any name into an envelope.
    let forged = json!({"v": "lantern/0.1.1", "type": "SYNC", "thread": 1, "from": "ada\n[12:00:00] #1 ada FUSE",
        "body": {"\u{1b}[2J": "a\nb"}});
    let payload = json!({"room_id": room_id, "content": forged.to_string()});
    world.runtime.block_on(agent.call("send_message", payload)).unwrap();
    let out = world.ok(0, "eve", &["lantern", "show", "war-room", "1"]);
    let last: Vec<&str> = out.lines().skip_while(|line| !line.contains("sent by")).collect();
    assert!(last[0].ends_with("ada\\n[12:00:00] #1 ada FUSE (sent by crowd) SYNC"), "{out}");
    assert_eq!(last[1..], ["  \\u{1b}[2J: a", "    b"], "{out}");
}

#[test]
fn a_thread_spans_nodes() {
    let world = World::of(2);
    world.room("war-room");
    let say = |node, name, line: &str| seq_of(&lantern(&world, node, name, line).run().ok());
    let thread = say(0, "ada", ASSERT);
    let challenge = format!("{CHALLENGE} --thread {thread} --target-seq {thread}");
    let counter = say(1, "bob", &challenge);
    say(0, "ada", &format!("{RESOLVE} --thread {thread}"));
    say(1, "bob", &format!("{FUSE} --thread {thread} --outcome {counter}=true"));
    let read = |node, what| as_json(&world, node, &format!("{what} war-room"));
    for node in [0, 1] {
        world.until("the FUSE is here", || {
            read(node, "threads")[0]["threads"][0]["state"] == "fused"
        });
    }
    let threads = &read(0, "threads")[0]["threads"];
    assert_eq!(threads[0]["messages"], 4, "{threads}");
    for what in ["threads", "calibration", "state"] {
        assert_eq!(read(0, what), read(1, what));
    }
    let show = |node| lantern(&world, node, "eve", &format!("show war-room {thread}")).run().ok();
    assert_eq!(show(0), show(1));
    assert_eq!(read(1, "calibration")[0]["agent"], "bob");
}

const CHALLENGE: &str =
    "challenge war-room --counter-claim 'it exists' --confidence 0.6 --test grep";
const RESOLVE: &str = "resolve war-room --observation o --basis tool";
const FUSE: &str = "fuse war-room --synthesis s";

/// Each node's agents use the number that they see.
#[test]
fn a_thread_holds_together_under_all_its_numbers() {
    let mut world = World::of(2);
    let (here, there) = claim_with_two_numbers(&mut world);
    let say = |node, name, line: String| lantern(&world, node, name, &line).run().ok();
    say(1, "bob", format!("{CHALLENGE} --thread {there} --target-seq {there}"));
    say(0, "ada", format!("{RESOLVE} --thread {here}"));
    say(1, "bob", format!("{FUSE} --thread {there} --outcome {there}=true"));
    for (node, id) in [(0, here), (1, there)] {
        let threads = || as_json(&world, node, "threads war-room")[0]["threads"].clone();
        world.until("the whole thread is here", || threads()[0]["messages"] == 4);
        let all = threads();
        assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
        assert_eq!((&all[0]["state"], &all[0]["opened_by"]), (&json!("fused"), &json!("ada")));
        assert_eq!(all[0]["thread"], id, "as the node's own agents know it");
        for number in [here, there] {
            let shown = as_json(&world, node, &format!("show war-room {number}"));
            assert_eq!(shown.len(), 4, "{shown:?}");
        }
        let score = json!({"agent": "ada", "mean_loss": -(0.74_f64.ln()), "claims": 1});
        assert_eq!(as_json(&world, node, "calibration war-room"), [score]);
    }
}

/// A claim made at the first node while the second was away, which went on without it: the claim's
/// numbers at the two.
fn claim_with_two_numbers(world: &mut World) -> (u64, u64) {
    let room_id = world.room("war-room");
    world.runtime.block_on(world.mesh.nodes[1].kill9()).unwrap();
    let here = seq_of(&lantern(world, 0, "ada", ASSERT).run().ok());
    world.runtime.block_on(world.mesh.nodes[0].kill9()).unwrap();
    world.runtime.block_on(world.mesh.nodes[1].restart()).unwrap();
    world.ok(1, "bob", &["send", "war-room", "is anybody there?"]);
    world.runtime.block_on(world.mesh.nodes[0].restart()).unwrap();
    let at_the_other = || as_json(world, 1, "threads war-room")[0]["threads"][0]["thread"].as_u64();
    world.until("the claim is at the other node", || at_the_other().is_some());
    let there = at_the_other().unwrap();
    assert!(here < 1 << 35 && there > 1 << 35, "{here} there is {there}");
    let has = |message: &Value, number: u64| {
        let numbers = message["mesh"]["numbers"].as_array();
        numbers.is_some_and(|all| all.contains(&json!(number)))
    };
    world.until("both numbers are known at both", || {
        let named = |node| {
            world
                .history(node, &room_id)
                .iter()
                .any(|message| has(message, here) && has(message, there))
        };
        named(0) && named(1)
    });
    (here, there)
}

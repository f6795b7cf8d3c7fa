//! The index of agents, at real nodes; and what is sent where nodes do not answer yet, at a stand-in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stub::{Person, Stub, finish};
use crate::support::{Call, Ran, World};

/// A keyring of gpg.
struct Keyring {
    home: TempDir,
}

impl Keyring {
    /// With one key of that name. `None`: there is no gpg here.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests is told that one was left out")]
    fn new(name: &str) -> Option<Keyring> {
        let home = TempDir::new().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let keyring = Keyring { home };
        let user_id = format!("{name} <{name}@clawfinder.dev>");
        if keyring.gpg(&["--quick-generate-key", &user_id, "ed25519", "sign", "never"]).is_none() {
            eprintln!("skipped: there is no gpg here");
            return None;
        }
        let id = keyring.id();
        keyring.gpg(&["--quick-add-key", &id, "cv25519", "encr", "never"]).unwrap();
        Some(keyring)
    }

    fn gpg(&self, arguments: &[&str]) -> Option<String> {
        self.fed(arguments, "")
    }

    /// The same, with a text on standard input.
    fn fed(&self, arguments: &[&str], text: &str) -> Option<String> {
        let mut command = Command::new("gpg");
        command.args(["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]);
        command.arg("--homedir").arg(self.home.path()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        // One that reads nothing ends all the same.
        drop(std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "gpg {arguments:?}");
        Some(String::from_utf8(output.stdout).unwrap())
    }

    fn id(&self) -> String {
        let listed = self.gpg(&["--with-colons", "--fingerprint", "--list-keys"]).unwrap();
        let line = listed.lines().find(|line| line.starts_with("fpr:")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    fn dir(&self) -> &str {
        self.home.path().to_str().unwrap()
    }

    /// A text as that client writes it: signed, and encrypted to one key.
    fn sealed(&self, to: &Keyring, text: &str) -> String {
        self.fed(&["--import"], &to.gpg(&["--armor", "--export"]).unwrap()).unwrap();
        let to = to.id();
        let how = ["--armor", "--trust-model", "always", "--recipient", &to, "--sign", "--encrypt"];
        self.fed(&how, text).unwrap()
    }

    /// Registers, as ClawFinder's client does. Returns the API key.
    fn register(&self, world: &World, username: &str) -> String {
        let key = self.gpg(&["--armor", "--export"]).unwrap();
        let body = json!({"name": username, "username": username, "pgp_key": key,
            "payment_methods": ["invoice"], "contact_methods": [{"method": "index_mailbox"}]});
        let made = post(world.mesh.nodes[0].http(), "/api/agents/register/", &body);
        made["api_key"].as_str().unwrap().to_owned()
    }
}

/// Posts JSON, and reads what comes back.
fn post(at: &str, path: &str, body: &Value) -> Value {
    use std::io::{Read as _, Write as _};
    let body = body.to_string();
    let mut socket = std::net::TcpStream::connect(at).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A call at a node, by its URL.
fn at<'w>(world: &'w World, node: usize, args: &[&str]) -> Call<'w> {
    let url = format!("http://{}", world.mesh.nodes[node].http());
    let (command, rest) = args.split_first().unwrap();
    world.bare(&[&["finder", "--url", url.as_str(), command], rest].concat())
}

fn key_file(home: &Path, username: &str) -> PathBuf {
    home.join(".clawmesh/finder").join(format!("{username}.key"))
}

fn keep(home: &Path, username: &str, key: &str) {
    let path = key_file(home, username);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, key).unwrap();
}

/// What `--json` prints if all is well.
fn data(ran: Ran) -> Value {
    let said: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(said["ok"], true);
    said["data"].clone()
}

#[test]
fn an_account_offers_finds_and_reviews_at_any_node() {
    let (Some(alice), Some(bob)) = (Keyring::new("alice-bot"), Keyring::new("bob-bot")) else {
        return;
    };
    let world = World::of(2);
    keep(world.home(), "alice-bot", &alice.register(&world, "alice-bot"));
    let bob_key = bob.register(&world, "bob-bot");
    let ask = |node, args: &[&str]| at(&world, node, args).run();
    let bobs =
        |node, args: &[&str]| at(&world, node, args).env("CLAWFINDER_API_KEY", &bob_key).run();

    let made =
        ["job", "create", "--json", "--title", "Research Assistant", "--description", "I search."];
    let job = data(ask(0, &[&made[..], &["--price-type", "fixed", "--price", "5 USDC"]].concat()));
    let job = job["id"].as_str().unwrap();
    world.until("the other node has both, and the job", || {
        ask(1, &["jobs", "--search", "research assistant"]).stdout.contains(job)
            && ask(1, &["get", "alice-bot"]).code == 0
            && bobs(1, &["me"]).code == 0
    });
    let listed = ask(1, &["jobs", "--search", "RESEARCH"]).ok();
    let row = listed.lines().nth(1).unwrap();
    for part in [job, "Research Assistant", "5 USDC", "alice-bot"] {
        assert!(row.contains(part), "{listed}");
    }
    assert_eq!(data(ask(1, &["jobs", "--json", "--search", "nobody"]))["count"], 0);

    // Off the list, and still her own.
    let edited = ask(1, &["job", "edit", job, "--active", "false", "--title", "Better"]).ok();
    assert!(edited.starts_with("Better\n") && edited.contains("not listed"), "{edited}");
    assert_eq!(ask(1, &["jobs"]).ok(), "");
    assert!(ask(1, &["jobs", "--mine"]).ok().contains(job));
    let nothing = ask(1, &["job", "edit", job]).failed();
    assert!(nothing.contains("--title"), "{nothing}");

    let review =
        ["review", "create", "--reviewee", "alice-bot", "--job", job, "--stars", "4", "--json"];
    let review = data(bobs(1, &review));
    assert_eq!((&review["text"], &review["stars"]), (&json!(""), &json!(4)));
    let id = review["id"].as_str().unwrap();
    let refused = ask(1, &["review", "delete", id, "--json"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    let refused: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("API_ERROR")));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("API request failed: 403 "), "{message}");
    assert!(bobs(1, &["review", "edit", id, "--text", "fine"]).ok().contains("4 stars: fine"));
    assert!(ask(1, &["reviews", "--agent", "alice-bot"]).ok().contains("fine"));
    bobs(1, &["review", "delete", id]).ok();
    assert_eq!(ask(1, &["job", "delete", job]).ok(), format!("Deleted: {job}\n"));
    assert!(ask(1, &["job", "get", job]).failed().starts_with("clawmesh: "));
}

#[test]
fn a_profile_is_changed_by_what_is_on_the_command_line_and_deleted_when_that_is_confirmed() {
    let Some(alice) = Keyring::new("alice-bot") else { return };
    let world = World::of(1);
    keep(world.home(), "alice-bot", &alice.register(&world, "alice-bot"));
    let ask = |args: &[&str]| at(&world, 0, args).env("CLAWMESH_NAME", "a-name-in-rooms").run();
    let changed =
        ask(&["update", "--contact-method", "email:a@b.c", "--contact-method", "index_mailbox"]);
    let changed = changed.ok();
    assert!(changed.starts_with("alice-bot (alice-bot)\n"), "a variable is no change: {changed}");
    assert!(changed.contains("email:a@b.c, index_mailbox"), "{changed}");
    assert!(ask(&["update"]).failed().contains("--payment-methods"));
    let named = data(ask(&[
        "update",
        "--name",
        "Al",
        "--payment-methods",
        "invoice,lobster.cash",
        "--json",
    ]));
    assert_eq!(
        (&named["name"], &named["payment_methods"]),
        (&json!("Al"), &json!(["invoice", "lobster.cash"]))
    );
    let wrong = ask(&["update", "--contact-method", "email"]).failed();
    assert!(wrong.contains("contact_methods: email needs a handle"), "{wrong}");

    assert!(ask(&["delete"]).failed().contains("--yes"));
    assert_eq!(ask(&["me"]).code, 0);
    assert_eq!(data(ask(&["delete", "--yes", "--json"])), json!({"deleted": true}));
    assert!(!key_file(world.home(), "alice-bot").exists());
    assert!(ask(&["me"]).failed().contains("clawmesh finder register"));
}

#[test]
fn a_key_of_gpg_proves_an_account_and_takes_one_back() {
    let Some(alice) = Keyring::new("alice-bot") else { return };
    let world = World::of(1);
    let lost = alice.register(&world, "alice-bot");
    let ask = |args: &[&str]| at(&world, 0, args).run();
    let lost_asks = |args: &[&str]| at(&world, 0, args).env("CLAWFINDER_API_KEY", &lost).run();
    assert!(lost_asks(&["me"]).ok().contains("nobody has proven it"));
    // `gpg` is found where it always is.
    let with_path = |call: Call<'_>| call.env("PATH", &std::env::var("PATH").unwrap()).run();
    let prove =
        at(&world, 0, &["prove", "--gnupghome", alice.dir()]).env("CLAWFINDER_API_KEY", &lost);
    let proven = with_path(prove).ok();
    assert!(proven.contains("the owner has proven it"), "{proven}");

    let recover = ["recover", "--username", "alice-bot", "--gnupghome", alice.dir(), "--json"];
    let taken = data(with_path(at(&world, 0, &recover)));
    assert_eq!((&taken["id"], &taken["mesh"]["proven"]), (&json!(alice.id()), &json!(true)));
    assert!(taken.get("api_key").is_none());
    let file = key_file(world.home(), "alice-bot");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(ask(&["me"]).ok().contains(&alice.id()));
    assert!(lost_asks(&["me"]).failed().contains("recover it"));
    // A second time there is a key, and it stays.
    let key = fs::read_to_string(&file).unwrap();
    let again = with_path(at(&world, 0, &recover[..5])).failed();
    assert!(again.contains("alice-bot.key"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), key);
    let empty = TempDir::new().unwrap();
    fs::set_permissions(empty.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let nobody =
        ["recover", "--username", "bob-bot", "--gnupghome", empty.path().to_str().unwrap()];
    assert!(with_path(at(&world, 0, &nobody)).failed().contains("no secret key"));
    let without = at(&world, 0, &nobody).env("PATH", "/nowhere").run().failed();
    assert!(without.contains("install GnuPG"), "{without}");
}

#[test]
fn a_refusal_leaves_no_key_and_says_what_to_do() {
    let world = World::of(1);
    let ask = |args: &[&str]| at(&world, 0, args).run();
    ask(&["register", "--username", "claude"]).failed();
    assert!(!key_file(world.home(), "claude").exists());
    assert_eq!(ask(&["get", "nobody"]).failed(), "clawmesh: no agent has this id or username\n");
    let nobody = ask(&["me", "--json"]);
    let said: Value = serde_json::from_str(&nobody.stderr).unwrap();
    assert_eq!((nobody.code, &said["error"]["code"]), (1, &json!("CREDENTIAL_NOT_FOUND")));
    keep(world.home(), "one-bot", "ak_1");
    keep(world.home(), "two-bot", "ak_2");
    let which = ask(&["me"]).failed();
    assert_eq!(which, "clawmesh: which account? Say --as one-bot or two-bot\n");
    let unknown = ask(&["me", "--as", "one-bot"]).failed();
    assert!(unknown.contains("no agent here has this key"), "{unknown}");
    // The node of a directory is found by itself; where none is, that is said.
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let found = world.bare(&["finder", "jobs", "--data-dir", &dir]).run();
    assert_eq!((found.code, found.stderr.as_str()), (0, "(no jobs)\n"));
    let none = world.bare(&["finder", "jobs"]).run().failed();
    assert!(none.contains("clawmeshd up"), "{none}");
}

#[test]
fn a_node_without_an_index_is_told_from_one_that_does_not_know() {
    let world = World::with(1, &["--no-finder"]);
    let refused = at(&world, 0, &["jobs"]).run().failed();
    assert!(refused.contains("--no-finder"), "{refused}");
}

#[test]
fn mail_goes_from_gpg_to_gpg_and_the_end_of_a_negotiation_ends_a_wait() {
    let (Some(alice), Some(bob)) = (Keyring::new("alice-bot"), Keyring::new("bob-bot")) else {
        return;
    };
    let world = World::of(2);
    keep(world.home(), "alice-bot", &alice.register(&world, "alice-bot"));
    let bob_key = bob.register(&world, "bob-bot");
    let ask = |args: &[&str]| at(&world, 0, args);
    let bobs = |args: &[&str]| at(&world, 1, args).env("CLAWFINDER_API_KEY", &bob_key);
    world.until("the other node knows both", || {
        bobs(&["me"]).run().code == 0 && bobs(&["get", "alice-bot"]).run().code == 0
    });
    let text = "Can you help?\n\nGr\u{fc}\u{df}e\n";
    let send = ["mail", "send", "--to", "bob-bot", "--body", "-", "--subject"];
    ask(&[&send[..], &["Hello"]].concat()).stdin(&alice.sealed(&bob, text)).run().ok();
    let mail = data(bobs(&["mail", "wait", "--timeout", "30", "--json"]).run());
    assert_eq!((&mail["subject"], &mail["sender_id"]), (&json!("Hello"), &json!(alice.id())));
    // gpg takes no signature of somebody whom it does not know.
    bob.fed(&["--import"], &alice.gpg(&["--armor", "--export"]).unwrap()).unwrap();
    assert_eq!(bob.fed(&["--decrypt"], mail["body"].as_str().unwrap()).unwrap(), text);
    let id = mail["id"].as_str().unwrap();
    bobs(&["mail", "mark-read", id]).run().ok();
    assert_eq!(bobs(&["mail", "list", "--unread"]).run().ok(), "");
    world.until("she sees that he has read it", || {
        ask(&["mail", "sent", id]).run().stdout.contains("\nState: read\n")
    });
    let plain = ask(&["mail", "send", "--to", "bob-bot", "--body", "no PGP"]).run().failed();
    assert!(plain.starts_with("clawmesh: body: "), "{plain}");

    let sealed = alice.sealed(&bob, "protocol: clawfinder/1\ntype: INIT\nsession_id: s1\n");
    ask(&[&send[..], &["negotiate:init:s1"]].concat()).stdin(&sealed).run().ok();
    world.until("the session is known", || {
        let session = bobs(&["sessions", "s1"]).run().stdout;
        session.contains("you are: the provider") && session.contains("you may send: ack, reject")
    });
    let early = ask(&[&send[..], &["negotiate:execute:s1"]].concat()).stdin(&sealed).run().failed();
    assert!(early.contains("not allowed"), "{early}");
    let rejected =
        ["mail", "send", "--to", "alice-bot", "--subject", "negotiate:reject:s1", "--body", "-"];
    bobs(&rejected).stdin(&bob.sealed(&alice, "type: REJECT")).run().ok();
    let ended = ask(&["mail", "wait", "--timeout", "30"]).run();
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(
        ended.stdout.contains("Negotiation: reject in session s1\n  state: rejected\n"),
        "{ended:?}"
    );
    assert!(ask(&["sessions"]).run().ok().contains("rejected"));
}

/// Two accounts whose PGP keys a node has made.
struct Hosted {
    world: World,
}

impl Hosted {
    fn new() -> Hosted {
        let world = World::of(1);
        for name in ["alice-bot", "bob-bot"] {
            let made = at(&world, 0, &["register", "--username", name]).run().ok();
            assert!(made.starts_with(&format!("Registered: {name} (")), "{made}");
        }
        Hosted { world }
    }

    fn run(&self, who: &str, args: &[&str], stdin: &str) -> Ran {
        at(&self.world, 0, &[args, &["--as", who]].concat()).stdin(stdin).run()
    }

    /// The oldest mail that is unread, and is not from now on; with the exit code.
    fn next(&self, who: &str) -> (i32, Value) {
        let ran = self.run(who, &["mail", "wait", "--timeout", "30", "--json"], "");
        let (code, said) = (ran.code, serde_json::from_str::<Value>(&ran.stdout).unwrap());
        let mail = said["data"].clone();
        self.run(who, &["mail", "mark-read", mail["id"].as_str().unwrap()], "").ok();
        (code, mail)
    }

    /// So many of them: the codes, and the types of messages.
    fn steps(&self, who: &str, count: usize) -> (Vec<String>, Value) {
        let mails: Vec<(i32, Value)> =
            std::iter::repeat_with(|| self.next(who)).take(count).collect();
        let step = |(code, mail): &(i32, Value)| {
            format!("{code} {}", mail["mesh"]["negotiation"]["type"].as_str().unwrap())
        };
        (mails.iter().map(step).collect(), mails.last().unwrap().1.clone())
    }
}

#[test]
fn accounts_without_pgp_write_texts_and_read_them() {
    let hosted = Hosted::new();
    let text = "Gr\u{fc}\u{df}e\n\n";
    let send = ["mail", "send", "--to", "bob-bot", "--subject", "Hi", "--body", "-"];
    hosted.run("alice-bot", &send, text).ok();
    let (code, mail) = hosted.next("bob-bot");
    assert_eq!(
        (code, &mail["body"], &mail["mesh"]["signature"]),
        (0, &json!(text), &json!("good"))
    );
    let shown = hosted.run("bob-bot", &["mail", "read", mail["id"].as_str().unwrap()], "").ok();
    assert!(shown.contains("Signature: good\n"), "{shown}");
    assert!(shown.ends_with(&format!("\n\n{text}\n")), "{shown}");
}

#[test]
fn accounts_without_pgp_negotiate_to_the_end() {
    let hosted = Hosted::new();
    let job = ["job", "create", "--title", "Research", "--description", "I search.", "--json"];
    let job = data(hosted.run("bob-bot", &job, ""));
    let (job, need) = (job["id"].as_str().unwrap(), ["--need", "ten papers", "--json"]);
    let init = ["negotiate", "init", "--to", "bob-bot", "--job-ref", job];
    let begun = data(hosted.run("alice-bot", &[&init[..], &need].concat(), ""));
    let session = begun["session"].as_str().unwrap();
    let step = |who: &str, to: &str, kind: &str, fields: &[&str], stdin: &str| {
        let step = ["negotiate", kind, "--session", session, "--to", to];
        hosted.run(who, &[&step[..], fields].concat(), stdin)
    };
    let (alice, bob) = (("alice-bot", "bob-bot"), ("bob-bot", "alice-bot"));
    let early = step(alice.0, alice.1, "accept", &[], "").failed();
    assert!(early.contains("not allowed"), "{early}");
    step(bob.0, bob.1, "ack", &["--capabilities", "search", "--pricing", "50 USDC"], "").ok();
    let terms = ["--capability", "search", "--price", "50", "--payment-method"];
    let unknown =
        step(alice.0, alice.1, "propose", &[&terms[..], &["lobster.cash"]].concat(), "").failed();
    assert!(unknown.contains("payment_method"), "{unknown}");
    step(alice.0, alice.1, "propose", &[&terms[..], &["invoice"]].concat(), "").ok();
    step(bob.0, bob.1, "counter", &["--price", "60", "--reason", "more work"], "").ok();
    let shown = hosted.run("alice-bot", &["sessions", session], "").ok();
    assert!(shown.contains("state: offered by the provider"), "{shown}");
    step(alice.0, alice.1, "accept", &[], "").ok();
    let work = "\nten papers\n\n";
    let sealed = hosted.world.file("data.csv.pgp", "sealed").display().to_string();
    let attach = format!("https://host/data.csv.pgp,{sealed}");
    step(alice.0, alice.1, "execute", &["--body", "-", "--attach", &attach], work).ok();
    let bill =
        ["--invoice-amount", "60 USDC", "--invoice-payment-method", "invoice", "--body", "done"];
    step(bob.0, bob.1, "result", &bill, "").ok();

    let (hers, _) = hosted.steps("alice-bot", 3);
    assert_eq!(hers, ["0 ack", "0 counter", "3 result"]);
    let (his, execute) = hosted.steps("bob-bot", 4);
    assert_eq!(his, ["0 init", "0 propose", "0 accept", "0 execute"]);
    let shown = hosted.run("bob-bot", &["mail", "read", execute["id"].as_str().unwrap()], "").ok();
    assert!(shown.contains("attachment: data.csv (6 bytes) https://host/data.csv.pgp"), "{shown}");
    assert!(execute["body"].as_str().unwrap().ends_with(&format!("\n\n{work}")), "{execute}");
}

/// A person with the key of an account.
fn person() -> Person {
    let person = Person::new();
    keep(person.home.path(), "alice-bot", "ak_alice\n");
    person
}

/// Runs a command at a stand-in.
fn run(person: &Person, stub: &Stub, args: &[&str]) -> Ran {
    person.run(&[&["finder", "--url", &stub.url], args].concat())
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

#[test]
fn a_hosted_account_is_registered_and_its_key_is_kept_and_not_shown() {
    let stub = Stub::start(|asked| {
        let mut made = asked.body.clone();
        (made["id"], made["api_key"]) = (json!("AB12"), json!("ak_new"));
        (201, made)
    });
    let person = Person::new();
    let made = ["register", "--username", "alice-bot", "--contact-method", "telegram:@al"];
    let made = run(&person, &stub, &made);
    assert_eq!(made.code, 0, "{made:?}");
    let file = key_file(person.home.path(), "alice-bot");
    let expected = format!("Registered: alice-bot (AB12)\nIts key: {}\n", file.display());
    assert_eq!((made.stdout, made.stderr.as_str()), (expected, ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), "ak_new\n");
    let asked = &stub.asked()[0];
    assert_eq!(path(&asked.head), "/api/agents/register/");
    let expected = json!({"name": "Alice Bot", "username": "alice-bot", "hosted": true,
        "payment_methods": ["invoice"], "contact_methods": [{"method": "telegram", "handle": "@al"}]});
    assert_eq!((&asked.body, asked.header("authorization")), (&expected, None));
    // There is a key already: nobody is asked.
    let again = run(&person, &stub, &["register", "--username", "Alice-bot", "--json"]);
    let said: Value = serde_json::from_str(&again.stderr).unwrap();
    assert_eq!((again.code, &said["ok"], stub.asked().len()), (1, &json!(false), 1));
    // An agent's account has the key of the agent, and no file.
    let key = ["--key", "a key of ClawChat", "--agent-id", "agent-1"];
    run(&person, &stub, &[&["register", "--username", "bob-bot"][..], &key].concat()).ok();
    let asked = &stub.asked()[1];
    assert_eq!(asked.header("x-clawchat-key"), Some("a key of ClawChat"));
    assert_eq!(asked.body["agent_id"], "agent-1");
    assert!(!key_file(person.home.path(), "bob-bot").exists());
}

#[test]
fn mail_is_written_read_and_marked() {
    let stub = Stub::start(|asked| match path(&asked.head) {
        "/api/agents/me/send/" => (201, json!({"id": "m1", "recipient_name": "Bob"})),
        "/api/agents/me/inbox/?is_read=false" => (
            200,
            json!({"count": 101, "next": "x", "results": [
            {"id": "m2", "sender_name": "Bob", "sender_id": "B", "subject": "Hi\u{1b}", "is_read": false, "created_at": "t"}]}),
        ),
        "/api/agents/me/inbox/m%2F2/" => (200, json!({"is_read": true})),
        _ => (404, json!({"detail": "no message has this id"})),
    });
    let person = person();
    let send = [
        "finder",
        "--url",
        &stub.url,
        "mail",
        "send",
        "--to",
        "bob",
        "--subject",
        "s",
        "--plain",
        "--body",
        "-",
    ];
    assert_eq!(person.fed(&send, "one\n\ntwo\n").ok(), "Sent to Bob: m1\n");
    let listed = run(&person, &stub, &["mail", "list", "--unread"]);
    assert!(listed.stdout.contains("Hi\\u{1b}"), "{listed:?}");
    assert_eq!(listed.stderr, "(1 of 101; see --page)\n");
    assert_eq!(run(&person, &stub, &["mail", "mark-read", "m/2"]).ok(), "Read: m/2\n");
    assert_eq!(
        run(&person, &stub, &["mail", "read", "m3"]).failed(),
        "clawmesh: no message has this id\n"
    );
    let asked = stub.asked();
    let expected =
        json!({"recipient_id": "bob", "subject": "s", "body": "one\n\ntwo\n", "plain": true});
    assert_eq!(asked[0].body, expected);
    assert_eq!(asked[0].header("authorization"), Some("Bearer ak_alice"));
    assert!(asked[2].head.starts_with("PATCH "), "{}", asked[2].head);
    assert_eq!(asked[2].body, json!({"is_read": true}));
}

#[test]
fn a_wait_ends_with_the_oldest_unread_mail_or_in_time() {
    let looks = AtomicUsize::new(0);
    let stub = Stub::start(move |asked| match path(&asked.head) {
        "/api/agents/me/inbox/?is_read=false&page_size=1&page=last" => {
            // Too often, then none, then one.
            let results = match looks.fetch_add(1, Ordering::SeqCst) {
                0 => return (429, json!({"detail": "at most 1,200 requests a minute"})),
                1 => json!([]),
                _ => json!([{"id": "m1"}]),
            };
            (200, json!({"count": 0, "next": null, "results": results}))
        }
        "/api/agents/me/inbox/m1/" => (
            200,
            json!({"id": "m1", "sender_name": "Bob", "sender_id": "B",
            "subject": "negotiate:reject:s", "created_at": "t", "body": "protocol: clawfinder/1",
            "mesh": {"negotiation": {"type": "reject", "session_id": "s", "state": "rejected", "violations": []}}}),
        ),
        _ => (404, json!({"detail": "?"})),
    });
    let person = person();
    let ended = run(&person, &stub, &["mail", "wait", "--timeout", "30"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stdout.ends_with("\n\nprotocol: clawfinder/1\n"), "{ended:?}");

    let none = Stub::start(|_| (200, json!({"count": 0, "next": null, "results": []})));
    let late = run(&person, &none, &["mail", "wait", "--timeout", "1"]);
    assert_eq!((late.code, late.stderr.as_str()), (1, "clawmesh: no unread mail within 1 s\n"));
    let looks = none.asked().len();
    assert!((1..=3).contains(&looks), "{looks} looks in a second");
    let refused = Stub::start(|_| (401, json!({"detail": "the account of this key was deleted"})));
    let refused = run(&person, &refused, &["mail", "wait"]).failed();
    assert!(refused.contains("was deleted"), "{refused}");
}

#[test]
fn a_negotiation_is_sent_with_its_text_and_its_files() {
    let stub = Stub::start(|asked| match path(&asked.head) {
        "/api/agents/me/negotiate/" => {
            let kind = asked.body["type"].clone();
            (
                201,
                json!({"session": "s1", "type": kind, "sent": true, "id": "m1", "state": "executing"}),
            )
        }
        "/api/agents/me/sessions/s%201/" => (
            200,
            json!({"session_id": "s 1", "role": "consumer", "state": "acked",
            "counterparty": {"username": "bob"}, "allowed": ["propose", "reject"], "messages": []}),
        ),
        _ => (404, json!({"detail": "?"})),
    });
    let person = person();
    let file = person.home.path().join("data.csv.pgp");
    fs::write(&file, "sealed").unwrap();
    let attach = format!("https://host/data.csv.pgp,{}", file.display());
    let args = [
        "finder",
        "negotiate",
        "execute",
        "--session",
        "s1",
        "--to",
        "bob",
        "--body",
        "-",
        "--attach",
        &attach,
    ];
    let mut command = person.command(person.home.path(), &args);
    command.env("CLAWMESH_URL", &stub.url).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"\nwork\n\n").unwrap();
    assert_eq!(finish(child).ok(), "Sent execute in session s1\n  state: executing\n  id: m1\n");
    let body = stub.asked()[0].body.clone();
    let attachment = &body["attachments"][0];
    assert_eq!(
        (&body["body"], &attachment["filename"], &attachment["size"]),
        (&json!("\nwork\n\n"), &json!("data.csv"), &json!(6))
    );
    let result = [
        "negotiate",
        "result",
        "--session",
        "s1",
        "--to",
        "bob",
        "--invoice-amount",
        "5 USDC",
        "--invoice-wallet",
        "W",
        "--invoice-payment-method",
        "lobster.cash",
        "--body",
        "-done-",
        "--json",
    ];
    assert_eq!(data(run(&person, &stub, &result))["sent"], true);
    let expected = json!({"type": "result", "to": "bob", "session_id": "s1", "invoice_amount": "5 USDC",
        "invoice_wallet_address": "W", "invoice_payment_method": "lobster.cash", "body": "-done-"});
    assert_eq!(stub.asked()[1].body, expected);
    let session = run(&person, &stub, &["sessions", "s 1"]).ok();
    assert!(session.contains("you may send: propose, reject"), "{session}");
}

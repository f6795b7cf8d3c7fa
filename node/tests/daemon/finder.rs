//! The index of agents at several nodes, by a stand-in for the ClawFinder client: it sends what that one sends, reads the status
//! line of an error and nothing else, and has its keys made by gpg.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{Daemon, temp, until},
    members::three,
};

/// The client, with its own keyring.
struct Client {
    home: TempDir,
    name: String,
    key: Option<String>,
}

impl Client {
    /// `gpg init`. `None`: there is no gpg here.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests is told that one was left out")]
    fn new(name: &str) -> Option<Client> {
        let home = temp();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let client = Client { home, name: name.to_owned(), key: None };
        let user_id = format!("{name} <{name}@clawfinder.dev>");
        let Some(made) =
            client.gpg(&["--quick-generate-key", &user_id, "ed25519", "sign", "never"])
        else {
            eprintln!("skipped: there is no gpg here");
            return None;
        };
        assert!(made.is_empty(), "{made}");
        let id = client.fingerprint();
        client.gpg(&["--quick-add-key", &id, "cv25519", "encr", "never"]).unwrap();
        Some(client)
    }

    fn gpg(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("gpg");
        command.args([
            "--batch",
            "--yes",
            "--quiet",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]);
        command.arg("--homedir").arg(self.home.path()).args(arguments);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        assert!(output.status.success(), "gpg {arguments:?}");
        Some(String::from_utf8(output.stdout).unwrap())
    }

    fn fingerprint(&self) -> String {
        let listed = self.gpg(&["--with-colons", "--fingerprint", "--list-keys"]).unwrap();
        let line = listed.lines().find(|line| line.starts_with("fpr:")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    /// A request, and what the client prints: its data, or the status line.
    fn ask(
        &self,
        node: &Daemon,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let at = node.text("http").trim_start_matches("http://");
        // Pages that anybody may read, and registering, are asked without it.
        let needs_key = path.contains("/me/") || (method != "GET" && !path.contains("/register/"));
        let key = self.key.as_ref().filter(|_| needs_key);
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n"));
        let body = body.map(Value::to_string);
        let length = body.as_ref().map(|body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\naccept: application/json\r\n\
             accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n\
             accept-encoding: gzip, deflate\r\n{}{}\r\n{}",
            key.unwrap_or_default(),
            length.unwrap_or_default(),
            body.unwrap_or_default()
        );
        let mut socket = TcpStream::connect(at).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let line = head.lines().next().unwrap().strip_prefix("HTTP/1.1 ").unwrap();
        if !line.starts_with('2') {
            return Err(line.to_owned());
        }
        Ok(if line.starts_with("204") {
            json!({"deleted": true})
        } else {
            serde_json::from_str(body).unwrap()
        })
    }

    /// `agent register`, with the whole keyring.
    fn register(&mut self, node: &Daemon) -> Result<Value, String> {
        let keyring = self.gpg(&["--armor", "--export"]).unwrap();
        let body = json!({
            "name": self.name, "username": self.name, "pgp_key": keyring,
            "payment_methods": ["invoice"], "contact_methods": [{"method": "index_mailbox"}],
        });
        let made = self.ask(node, "POST", "/api/agents/register/", Some(&body))?;
        self.key = Some(made["api_key"].as_str().unwrap().to_owned());
        Ok(made)
    }

    fn me(&self, node: &Daemon) -> Result<Value, String> {
        self.ask(node, "GET", "/api/agents/me/", None)
    }

    fn count(&self, node: &Daemon, path: &str) -> u64 {
        self.ask(node, "GET", path, None).unwrap()["count"].as_u64().unwrap()
    }
}

#[test]
fn an_agent_of_one_node_is_one_of_all_also_when_that_node_is_gone() {
    let (Some(mut alice), Some(mut bob)) = (Client::new("alice-bot"), Client::new("bob-bot"))
    else {
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let made = alice.register(&first).unwrap();
    assert_eq!(made["id"], alice.fingerprint());
    bob.register(&second).unwrap();
    until("she is known elsewhere", || {
        alice
            .ask(&second, "GET", "/api/agents/alice-bot/", None)
            .is_ok_and(|it| it["id"] == made["id"])
    });
    until("her key is, too", || alice.me(&second).is_ok());
    let other = Client { home: temp(), name: "alice-bot".to_owned(), key: None };
    let taken = json!({"name": "x", "username": "alice-bot", "pgp_key": bob.gpg(&["--armor", "--export"]).unwrap()});
    let refused = other.ask(&third, "POST", "/api/agents/register/", Some(&taken)).unwrap_err();
    assert!(refused.starts_with("409 Conflict: "), "{refused}");

    let job = json!({"title": "Research Assistant", "description": "I search."});
    let job = alice.ask(&first, "POST", "/api/jobs/", Some(&job)).unwrap();
    let path = format!("/api/jobs/{}/", job["id"].as_str().unwrap());
    until("the job is listed at the others", || {
        [&second, &third]
            .iter()
            .all(|node| bob.count(node, "/api/jobs/?search=research+assistant") == 1)
    });
    // Killed: what it answered is elsewhere, and her key goes on.
    first.kill();
    let edited = alice.ask(&second, "PATCH", &path, Some(&json!({"title": "Better"}))).unwrap();
    assert_eq!(edited["title"], "Better");
    let review =
        json!({"reviewee_id": made["id"], "job_id": job["id"], "stars": 5, "text": "fine"});
    bob.ask(&second, "POST", "/api/reviews/", Some(&review)).unwrap();
    let about = "/api/reviews/?agent_id=alice-bot";
    until("the review is at the third node", || bob.count(&third, about) == 1);

    assert_eq!(alice.ask(&third, "DELETE", "/api/agents/me/", None), Ok(json!({"deleted": true})));
    let gone = "401 Unauthorized: the account of this key was deleted";
    assert_eq!(alice.me(&third), Err(gone.to_owned()));
    until("she is gone at the second node", || alice.me(&second) == Err(gone.to_owned()));
    for node in [&second, &third] {
        until("all that was hers is", || {
            bob.count(node, "/api/jobs/") == 0 && bob.count(node, about) == 0
        });
    }
    // The same key and name register again.
    assert_eq!(alice.register(&second).unwrap()["id"], made["id"]);
}

#[test]
fn what_a_node_answered_is_there_after_it_was_killed() {
    let Some(mut alice) = Client::new("alice-bot") else { return };
    let dir = temp();
    let node = crate::harness::up(dir.path(), &[]);
    alice.register(&node).unwrap();
    let job = json!({"title": "Research", "description": "I search."});
    alice.ask(&node, "POST", "/api/jobs/", Some(&job)).unwrap();
    node.kill();
    let node = crate::harness::up(dir.path(), &[]);
    assert_eq!(alice.me(&node).unwrap()["username"], "alice-bot");
    assert_eq!(alice.count(&node, "/api/jobs/"), 1);
    node.stop();
    let off = crate::harness::up(dir.path(), &["--no-finder"]);
    assert!(alice.ask(&off, "GET", "/api/jobs/", None).unwrap_err().starts_with("404"));
}

#[test]
fn an_operator_hides_an_account_at_one_node_alone() {
    let Some(mut alice) = Client::new("alice-bot") else { return };
    let dirs = [temp(), temp(), temp()];
    let [first, second, _third] = three(&dirs);
    let made = alice.register(&first).unwrap();
    let shows = |node: &Daemon| alice.ask(node, "GET", "/api/agents/alice-bot/", None).is_ok();
    until("she is known elsewhere", || shows(&second));
    let dir = dirs[0].path().to_owned();
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["--data-dir", dir.to_str().unwrap()]].concat();
        let output = crate::harness::clawmeshd(&arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (is_done, text) = run(&["finder", "hide", "nobody"]);
    assert!(!is_done && text.contains("no account shows here under \"nobody\""), "{text}");
    let (is_done, text) = run(&["finder", "hide", "alice-bot"]);
    let id = alice.fingerprint();
    assert!(is_done && text.contains(&id), "{text}");
    assert!(!shows(&first) && shows(&second));
    first.kill();
    let first = crate::harness::up(dirs[0].path(), &[]);
    assert!(!shows(&first), "a restart forgets nothing");
    let (is_done, text) = run(&["finder", "status"]);
    assert!(is_done && text.contains(&format!("Hidden here: alice-bot ({id})")), "{text}");
    assert!(run(&["finder", "show", made["id"].as_str().unwrap()]).0);
    assert!(shows(&first));
}

impl Client {
    /// `message send`: it looks the recipient up, takes the key as it comes, and encrypts to that alone.
    fn send(&self, node: &Daemon, to: &str, (subject, text): (&str, &str)) -> Value {
        let shown = self.ask(node, "GET", &format!("/api/agents/{to}/"), None).unwrap();
        let body = self.seal(&shown, text);
        let mail = json!({"recipient_id": to, "subject": subject, "body": body});
        self.ask(node, "POST", "/api/agents/me/send/", Some(&mail)).unwrap()
    }

    fn seal(&self, to: &Value, text: &str) -> String {
        let [key, plain, sealed] =
            ["key.asc", "plain", "sealed"].map(|name| self.home.path().join(name));
        fs::write(&key, to["pgp_key"].as_str().unwrap()).unwrap();
        fs::write(&plain, text).unwrap();
        self.gpg(&["--import", key.to_str().unwrap()]).unwrap();
        let (id, own) = (to["id"].as_str().unwrap(), self.fingerprint());
        let (to, from) = (sealed.to_str().unwrap(), plain.to_str().unwrap());
        self.gpg(&[
            "--armor",
            "--trust-model",
            "always",
            "--local-user",
            &own,
            "--recipient",
            id,
            "--output",
            to,
            "--sign",
            "--encrypt",
            from,
        ])
        .unwrap();
        fs::read_to_string(sealed).unwrap()
    }

    /// `inbox read`: decrypted by gpg, which has to know the signer.
    fn read(&self, node: &Daemon, mail: &Value) -> Result<String, String> {
        let path = format!("/api/agents/me/inbox/{}/", mail["id"].as_str().unwrap());
        let mail = self.ask(node, "GET", &path, None)?;
        let body = mail["body"].as_str().unwrap();
        if !body.contains("-----BEGIN PGP MESSAGE-----") {
            return Ok(body.to_owned());
        }
        let sender = format!("/api/agents/{}/", mail["sender_id"].as_str().unwrap());
        let sender = self.ask(node, "GET", &sender, None)?;
        let [key, sealed] = ["sender.asc", "mail"].map(|name| self.home.path().join(name));
        fs::write(&key, sender["pgp_key"].as_str().unwrap()).unwrap();
        fs::write(&sealed, body).unwrap();
        self.gpg(&["--import", key.to_str().unwrap()]).unwrap();
        // Anything but 0 is an error to the client: an unknown signer, too.
        Ok(self.gpg(&["--decrypt", sealed.to_str().unwrap()]).unwrap())
    }

    fn rows(&self, node: &Daemon, path: &str) -> Vec<Value> {
        let page = self.ask(node, "GET", path, None).unwrap();
        page["results"].as_array().unwrap().clone()
    }
}

const INBOX: &str = "/api/agents/me/inbox/";
const SENT: &str = "/api/agents/me/sent/";

#[test]
fn mail_reaches_one_whose_node_was_down_from_a_node_that_carries_it() {
    let (Some(mut alice), Some(mut bob)) = (Client::new("alice-bot"), Client::new("bob-bot"))
    else {
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let made = alice.register(&first).unwrap();
    let to_bob = bob.register(&second).unwrap()["id"].as_str().unwrap().to_owned();
    until("all know both", || {
        [&first, &third].iter().all(|node| bob.me(node).is_ok() && alice.me(node).is_ok())
    });
    // In order: a node that was killed in its first seconds knows nobody but the one that it joined through.
    second.stop();
    let text = format!("dear bob,\n\n{}\n\nno newline at the end", "x".repeat(3_000));
    let sent = alice.send(&first, &to_bob, ("negotiate:init:s1", &text));
    assert_eq!(sent["mesh"]["state"], "stored");
    until("another node has it", || alice.rows(&first, SENT)[0]["mesh"]["state"] == "carried");
    first.kill();
    let second = crate::harness::up(dirs[1].path(), &[]);
    let id = third.text("node_id").to_owned();
    until("they are connected", || crate::members::state(&second, &id) == "connected");
    until("his node has it from the third one", || !bob.rows(&second, INBOX).is_empty());
    let [row] = bob.rows(&second, INBOX).try_into().unwrap();
    let read = (&row["sender_id"], &row["subject"]);
    assert_eq!(read, (&made["id"], &json!("negotiate:init:s1")));
    let mut opened = Err(String::new());
    until("he reads it", || {
        opened = bob.read(&second, &row);
        opened.is_ok()
    });
    assert_eq!(opened, Ok(text));
    // She sees how far it came at any node, and he answers though hers is down.
    until("she sees it at the third node", || {
        alice.rows(&third, SENT)[0]["mesh"]["state"] == "delivered"
    });
    let alice_id = made["id"].as_str().unwrap();
    bob.send(&second, alice_id, ("negotiate:ack:s1", "it is done"));
    until("she reads it there", || {
        let rows = alice.rows(&third, INBOX);
        rows.first().is_some_and(|row| alice.read(&third, row).as_deref() == Ok("it is done"))
    });
    let session = alice.ask(&third, "GET", "/api/agents/me/sessions/s1/", None).unwrap();
    assert_eq!((&session["state"], &session["role"]), (&json!("acked"), &json!("consumer")));
    let session = bob.ask(&second, "GET", "/api/agents/me/sessions/s1/", None).unwrap();
    assert_eq!((&session["state"], &session["role"]), (&json!("acked"), &json!("provider")));
}

#[test]
fn a_hosted_account_reads_and_writes_at_every_node_to_which_its_key_is_shown() {
    let Some(mut alice) = Client::new("alice-bot") else { return };
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let alice_id = alice.register(&first).unwrap()["id"].clone();
    let mut hosted = Client { home: temp(), name: "cat".to_owned(), key: None };
    let body = json!({"name": "Cat", "username": "cat", "hosted": true});
    let made = hosted.ask(&first, "POST", "/api/agents/register/", Some(&body)).unwrap();
    hosted.key = Some(made["api_key"].as_str().unwrap().to_owned());
    alice.send(&first, made["id"].as_str().unwrap(), ("hi", "a text by gpg"));
    until("another node has it", || alice.rows(&first, SENT)[0]["mesh"]["state"] == "carried");
    until("its key is known at the second node", || hosted.me(&second).is_ok());
    first.kill();
    let mut mail = Err(String::new());
    until("it reads it there", || {
        let Some(row) = hosted.rows(&second, INBOX).first().cloned() else { return false };
        let path = format!("{INBOX}{}/", row["id"].as_str().unwrap());
        mail = hosted.ask(&second, "GET", &path, None);
        mail.is_ok()
    });
    let mail = mail.unwrap();
    assert_eq!(
        (&mail["body"], &mail["mesh"]["signature"]),
        (&json!("a text by gpg"), &json!("good"))
    );
    let answer = json!({"recipient_id": alice_id, "subject": "re", "body": "an answer"});
    hosted.ask(&second, "POST", "/api/agents/me/send/", Some(&answer)).unwrap();
    until("she reads its answer at the third node, with a good signature", || {
        alice.me(&third).is_ok()
            && alice
                .rows(&third, INBOX)
                .first()
                .is_some_and(|row| alice.read(&third, row).as_deref() == Ok("an answer"))
    });
}

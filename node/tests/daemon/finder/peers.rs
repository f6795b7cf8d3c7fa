//! What the client does with the keys of several peers, and what is left of an account that was deleted. Numbers are those of the
//! specification's checks.

use std::{fs, path::Path};

use serde_json::json;

use super::{
    client::{Client, INBOX, SENT},
    deals::all_know,
};
use crate::{
    harness::{Daemon, ask, temp, until_at_leisure, up},
    members::three,
};

fn clients<const N: usize>(names: [&str; N]) -> Option<[Client; N]> {
    let all: Option<Vec<Client>> = names.into_iter().map(Client::new).collect();
    all?.try_into().ok()
}

/// The only mail of this subject that a client has at a node, read.
fn reads(client: &Client, node: &Daemon, subject: &str) -> Result<String, String> {
    let rows = client.rows(node, INBOX);
    let row = rows.iter().find(|row| row["subject"] == subject);
    row.map_or(Err("it is not listed".to_owned()), |row| client.read(node, row))
}

/// 4, 16: a client that is given a username takes the last key that gpg prints for that text, and any other one if there is none.
#[test]
fn clients_that_know_many_keys_write_nothing_that_its_recipient_cannot_read() {
    let Some([mut bob, mut second]) = clients(["bob-bot", "bob-bot-2"]) else { return };
    let dir = temp();
    let node = up(dir.path(), &[]);
    let made = [bob.register(&node).unwrap(), second.register(&node).unwrap()];
    // Two peers were imported before it made its own key, and it sends its whole keyring.
    let mut alice = Client::without_key("alice-bot");
    for of in &made {
        alice.import(&of["pgp_key"]);
    }
    alice.init().unwrap();
    assert_eq!(alice.register(&node).unwrap()["id"], alice.fingerprint());

    let all = [&alice, &bob, &second];
    for from in all {
        for to in all.into_iter().filter(|to| to.name != from.name) {
            let text = format!("from {} to {}", from.name, to.name);
            from.send(&node, &to.fingerprint(), (&text, &text));
            assert_eq!(reads(to, &node, &text), Ok(text));
        }
    }
    let mut refused = 0;
    for from in all {
        for to in all.into_iter().filter(|to| to.name != from.name) {
            let text = format!("from {} by name to {}", from.name, to.name);
            match from.try_send(&node, &to.name, (&text, &text)) {
                Ok(_) => assert_eq!(reads(to, &node, &text), Ok(text)),
                Err(line) => {
                    assert!(line.starts_with("400 Bad Request: body: encrypted to "), "{line}");
                    assert!(line.ends_with(&format!("; send --to {}", to.fingerprint())), "{line}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0, "the text bob-bot names two keys");
}

/// 8, 17, 18, 19.
#[test]
fn mail_by_a_former_key_is_still_read_and_its_sender_sees_how_far_it_came() {
    let Some([mut alice, mut bob, mut carol]) = clients(["alice-bot", "bob-bot", "carol-bot"])
    else {
        return;
    };
    let dir = temp();
    let node = up(dir.path(), &[]);
    for client in [&mut alice, &mut bob, &mut carol] {
        client.register(&node).unwrap();
    }
    let former = alice.fingerprint();
    for to in [&bob, &carol] {
        alice.send(&node, &to.fingerprint(), ("before", "by the former key"));
    }
    let states = || {
        let rows = alice.rows(&node, SENT);
        let one = |to: &Client| {
            let row = rows.iter().find(|row| row["recipient_id"] == to.fingerprint()).unwrap();
            (row["mesh"]["state"].clone(), row["is_read"].clone())
        };
        [one(&bob), one(&carol)]
    };
    assert_eq!(states(), [(json!("stored"), json!(false)), (json!("stored"), json!(false))]);
    let row = bob.rows(&node, INBOX).remove(0);
    assert_eq!(states()[0], (json!("delivered"), json!(false)));
    assert_eq!(bob.mark_read(&node, &row), Ok(json!({"is_read": true})));
    assert_eq!(states()[0], (json!("read"), json!(true)));
    let sent = alice.rows(&node, SENT).remove(0);
    let note = alice.read_sent(&node, &sent).unwrap();
    assert!(note.starts_with("[This message was encrypted for "), "{note}");

    let other = Client::new("alice-bot").unwrap();
    let key = json!({"pgp_key": other.gpg(&["--armor", "--export"]).unwrap()});
    let made = alice.ask(&node, "PATCH", "/api/agents/me/", Some(&key)).unwrap();
    assert_eq!(made["id"], other.fingerprint());
    assert_eq!(carol.get(&node, &former).unwrap()["id"], other.fingerprint());
    // She has never met the former key.
    assert_eq!(reads(&carol, &node, "before").as_deref(), Ok("by the former key"));
    let wrong = bob.try_send(&node, &former, ("late", "to the former key")).unwrap_err();
    assert!(wrong.starts_with("400 ") && wrong.ends_with(&other.fingerprint()), "{wrong}");
    let unknown = bob.try_send(&node, "nobody", ("x", "y")).unwrap_err();
    assert!(unknown.starts_with("404 Not Found: "), "{unknown}");
}

/// 31.
#[test]
fn other_nodes_hear_when_an_agent_was_last_there() {
    let Some([mut alice, mut bob]) = clients(["alice-bot", "bob-bot"]) else { return };
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &["--finder-seen-every", "1s"]);
    let second = up(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    alice.register(&first).unwrap();
    bob.register(&first).unwrap();
    let seen = |of: &str| bob.get(&second, of).unwrap_or_default()["last_seen_at"].clone();
    until_at_leisure("both are known", || {
        bob.get(&second, "bob-bot").is_ok() && bob.get(&second, "alice-bot").is_ok()
    });
    alice.me(&first).unwrap();
    until_at_leisure("she was seen", || seen("alice-bot").is_string());
    let before = seen("alice-bot");
    until_at_leisure("again, later", || {
        alice.me(&first).unwrap();
        seen("alice-bot").as_str() > before.as_str()
    });
    assert!(seen("bob-bot").is_null(), "he never came");
}

/// All files below a directory.
fn bytes_in(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        all.extend(if path.is_dir() { bytes_in(&path) } else { fs::read(&path).unwrap() });
    }
    all
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// What a fresh backup of a node has.
fn backed_up(node: &Daemon) -> Vec<u8> {
    let room = temp();
    let to = room.path().join("backup");
    ask(&["backup", "--data-dir", node.text("data_dir"), to.to_str().unwrap()]);
    bytes_in(&to)
}

/// 23, 24, 38: words that are nowhere but in what she wrote.
#[test]
fn nothing_is_left_of_an_account_that_was_deleted_also_where_a_node_slept_meanwhile() {
    let Some([mut alice, mut bob]) = clients(["alice-bot", "bob-bot"]) else { return };
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let id = alice.register(&first).unwrap()["id"].clone();
    bob.register(&second).unwrap();
    let job = json!({"title": "Zebra crossing", "description": "Quagga searching"});
    let job = alice.ask(&first, "POST", "/api/jobs/", Some(&job)).unwrap();
    let handle = json!({"contact_methods": [{"method": "email", "handle": "okapi@x.example"}]});
    alice.ask(&first, "PATCH", "/api/agents/me/", Some(&handle)).unwrap();
    all_know(&[&first, &second], &[&alice, &bob]);
    let review =
        json!({"reviewee_id": id, "job_id": job["id"], "stars": 5, "text": "Gnu approved"});
    bob.ask(&second, "POST", "/api/reviews/", Some(&review)).unwrap();
    alice.send(&first, &bob.fingerprint(), ("Tapir business", "for bob"));
    let plain =
        ["Zebra crossing", "Quagga searching", "okapi@x.example", "Gnu approved", "alice-bot"];
    until_at_leisure("the third node has all of it", || {
        let found = |path: &str| bob.count(&third, path) == 1;
        let mail = || !bob.rows(&second, INBOX).is_empty();
        found("/api/jobs/?search=quagga") && found("/api/reviews/?agent_id=alice-bot") && mail()
    });
    let carried = backed_up(&third);
    for text in plain {
        assert!(has(&carried, text), "{text}");
    }
    // Neither of the two was ever there.
    assert!(!has(&carried, "Tapir business") && !has(&carried, "BEGIN PGP MESSAGE"));

    third.stop();
    assert_eq!(alice.ask(&first, "DELETE", "/api/agents/me/", None), Ok(json!({"deleted": true})));
    let gone = "401 Unauthorized: the account of this key was deleted";
    until_at_leisure("she is gone", || alice.me(&second) == Err(gone.to_owned()));
    let third = up(dirs[2].path(), &[]);
    until_at_leisure("the one that slept knows it", || alice.me(&third) == Err(gone.to_owned()));
    for node in [&first, &second, &third] {
        until_at_leisure("all of hers is gone", || {
            let none = |path: &str| bob.count(node, path) == 0;
            none("/api/jobs/") && none("/api/reviews/") && bob.get(node, "alice-bot").is_err()
        });
        assert!(bob.rows(node, INBOX).iter().all(|row| row["sender_id"] == "mesh"));
        let left = backed_up(node);
        for text in plain.into_iter().chain(["Tapir business"]) {
            assert!(!has(&left, text), "{text} is left");
        }
    }
    assert_eq!(alice.register(&third).unwrap()["id"], id);
    assert_eq!(bob.count(&third, "/api/jobs/"), 0, "nothing old");
    until_at_leisure("she is back everywhere", || {
        [&first, &second]
            .iter()
            .all(|node| bob.get(node, "alice-bot").is_ok_and(|it| it["id"] == id))
    });
}

/// 28, 41: a hosted account reads what gpg wrote, and of a text that would fill its node's memory sees that it cannot be read.
#[test]
fn a_text_that_unfolds_beyond_its_bound_is_shown_as_one_that_cannot_be_read() {
    let Some([mut alice]) = clients(["alice-bot"]) else { return };
    let dir = temp();
    let node = up(dir.path(), &[]);
    alice.register(&node).unwrap();
    let mut hosted = Client::without_key("cat");
    let body = json!({"name": "Cat", "username": "cat", "hosted": true});
    let made = hosted.ask(&node, "POST", "/api/agents/register/", Some(&body)).unwrap();
    hosted.key = Some(made["api_key"].as_str().unwrap().to_owned());
    let id = made["id"].as_str().unwrap();
    for (subject, text) in [("bomb", "x".repeat(5 << 20)), ("text", "by gpg".to_owned())] {
        alice.send(&node, id, (subject, &text));
    }
    let read = |subject: &str| {
        let rows = hosted.rows(&node, INBOX);
        let row = rows.iter().find(|row| row["subject"] == subject).unwrap();
        let path = format!("{INBOX}{}/", row["id"].as_str().unwrap());
        hosted.ask(&node, "GET", &path, None).unwrap()
    };
    let bomb = read("bomb");
    assert_eq!(bomb["mesh"]["decrypted"], false);
    assert!(bomb["body"].as_str().unwrap().starts_with("[This message cannot be decrypted"));
    let text = read("text");
    assert_eq!((&text["body"], &text["mesh"]["signature"]), (&json!("by gpg"), &json!("good")));
    // It answers in gpg's own tongue.
    let answer = json!({"recipient_id": alice.fingerprint(), "subject": "re", "body": "by a node"});
    hosted.ask(&node, "POST", "/api/agents/me/send/", Some(&answer)).unwrap();
    assert_eq!(reads(&alice, &node, "re").as_deref(), Ok("by a node"));
}

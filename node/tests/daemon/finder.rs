//! The index of agents at several nodes, by a stand-in for the ClawFinder client (`client`).

mod client;
mod deals;
mod peers;

use serde_json::json;

pub(crate) use self::client::{Client, INBOX, SENT};
use crate::{
    harness::{Daemon, temp, until},
    members::three,
};

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
    let other = Client::without_key("alice-bot");
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
    let mut hosted = Client::without_key("cat");
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

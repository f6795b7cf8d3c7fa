//! Whole deals of the client, over nodes that are killed and links that are cut. Numbers are those of the specification's checks.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::client::{Client, INBOX, SENT, Step};
use crate::{
    claims::{is_alone, linked},
    harness::{Daemon, temp, until_at_leisure, up},
    members::{state, three},
};

pub(super) fn all_know(nodes: &[&Daemon], clients: &[&Client]) {
    until_at_leisure("all nodes know all accounts", || {
        nodes.iter().all(|node| clients.iter().all(|client| client.me(node).is_ok()))
    });
}

/// Two that deal with each other.
struct Deal {
    alice: Client,
    bob: Client,
}

const SESSION: &str = "f75edaac-6fe5-4c8a-a123-0d6d4b6cb1a4";

impl Deal {
    fn ends(&self, is_hers: bool) -> (&Client, &Client) {
        if is_hers { (&self.alice, &self.bob) } else { (&self.bob, &self.alice) }
    }

    /// Sends a step, as soon as a node allows it.
    fn send(&self, at: &Daemon, is_hers: bool, step: &Step<'_>) {
        let (from, to) = self.ends(is_hers);
        let path = format!("/api/agents/me/sessions/{SESSION}/");
        let is_allowed = || {
            let shown = from.ask(at, "GET", &path, None).unwrap_or_default();
            shown["allowed"].as_array().is_some_and(|it| it.contains(&json!(step.kind)))
        };
        until_at_leisure("the step is allowed here", || step.kind == "init" || is_allowed());
        let said = from.negotiate(at, &to.fingerprint(), step);
        assert_eq!(said, Ok(json!({"session": SESSION, "type": step.kind, "sent": true})));
    }

    /// The other one reads it at some node, byte for byte as it was written where `base` is.
    fn reads(&self, at: &Daemon, (is_hers, base): (bool, &str), step: &Step<'_>) {
        let (from, to) = self.ends(is_hers);
        let subject = format!("negotiate:{}:{SESSION}", step.kind);
        let mut read = Err(String::new());
        until_at_leisure("the step is read", || {
            let rows = to.rows(at, INBOX);
            let row = rows.iter().find(|row| row["subject"] == subject);
            read = row.map_or(Err(String::new()), |row| to.read(at, row));
            read.is_ok()
        });
        assert!(read == Ok(step.text((&from.name, base))), "{}: {read:?}", step.kind);
    }

    /// A step that one sends at one node, and the other one reads at another one.
    fn step(&self, [at, there]: [&Daemon; 2], is_hers: bool, step: &Step<'_>) {
        self.send(at, is_hers, step);
        self.reads(there, (is_hers, at.text("http")), step);
    }
}

fn step<'s>(kind: &'s str, fields: &'s [(&'s str, &'s str)]) -> Step<'s> {
    Step { kind, session: SESSION, fields, body: None }
}

/// 20, 30, 32, 33: each of the two nodes is killed on the way.
#[test]
fn a_deal_is_made_over_three_nodes_though_those_of_its_two_are_killed() {
    let (Some(mut alice), Some(mut bob)) = (Client::new("alice-bot"), Client::new("bob-bot"))
    else {
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let [first, second, third] = three(&dirs);
    let made = [alice.register(&first).unwrap(), bob.register(&second).unwrap()];
    all_know(&[&first, &second, &third], &[&alice, &bob]);
    let job = json!({"title": "Research Assistant", "description": "I search."});
    let job = bob.ask(&second, "POST", "/api/jobs/", Some(&job)).unwrap()["id"].clone();
    until_at_leisure("his job is found at her node", || {
        let found = alice.rows(&first, "/api/jobs/?search=research+assistant");
        found.iter().any(|it| it["id"] == job)
    });
    let deal = Deal { alice, bob };

    second.kill();
    let fields = [("job_ref", job.as_str().unwrap()), ("need", "a report on \u{e4}\u{f6}\u{fc}")];
    let init = step("init", &fields);
    deal.send(&first, true, &init);
    let second = up(dirs[1].path(), &[]);
    deal.reads(&second, (true, first.text("http")), &init);
    let ack = [("capabilities", "search, summary"), ("pricing", "20 USD")];
    deal.step([&second, &first], false, &step("ack", &ack));

    let terms = [("capability", "search"), ("price", "20 USD"), ("payment_method", "invoice")];
    deal.send(&first, true, &step("propose", &terms));
    let state_of = || deal.alice.rows(&first, SENT)[0]["mesh"]["state"].clone();
    until_at_leisure("another node has it", || state_of() != "stored");
    let base = first.text("http").to_owned();
    first.kill();
    deal.reads(&second, (true, &base), &step("propose", &terms));
    let more = [("price", "30 USD"), ("reason", "more work")];
    deal.step([&second, &third], false, &step("counter", &more));
    deal.step([&third, &second], true, &step("accept", &[]));
    let first = up(dirs[0].path(), &[]);
    // Blank lines, no newline at the end, and 500 KB.
    let work = format!("\n\ntype: RESULT\n{}\n\nto the end", "0123456789abcde\n".repeat(32_000));
    let execute = Step { body: Some(&work), ..step("execute", &[]) };
    deal.step([&first, &second], true, &execute);
    let bill = [
        ("invoice_amount", "30 USD"),
        ("invoice_wallet_address", ""),
        ("invoice_payment_method", "invoice"),
    ];
    let result = Step { body: Some("it is fine"), ..step("result", &bill) };
    deal.step([&second, &first], false, &result);
    reviewed(&deal, &[&first, &second, &third], (&made, &job));
}

/// Both review each other, and all nodes show that the two did business.
fn reviewed(deal: &Deal, nodes: &[&Daemon; 3], (made, job): (&[Value; 2], &Value)) {
    let Deal { alice, bob } = deal;
    alice.review(nodes[0], (&made[1]["id"], job), "5").unwrap();
    bob.review(nodes[1], (&made[0]["id"], job), "4").unwrap();
    let no_number = alice.review(nodes[0], (&made[1]["id"], job), "many").unwrap_err();
    assert_eq!(no_number, "400 Bad Request: stars: This field may not be null.");
    for name in ["alice-bot", "bob-bot"] {
        let path = format!("/api/reviews/?agent_id={name}");
        let shown = |node: &Daemon| alice.rows(node, &path);
        until_at_leisure("all nodes have the review", || {
            nodes.iter().all(|node| shown(node).len() == 1)
        });
        let all = nodes.map(shown);
        assert!(all.iter().all(|rows| *rows == all[0]), "{all:?}");
        assert_eq!(all[0][0]["mesh"]["transaction"], true, "{all:?}");
    }
}

/// Also where nobody else has it when the node is killed, and where the node of its recipient is down.
#[test]
fn mail_that_was_answered_is_read_though_its_node_is_killed_at_once() {
    let (Some(mut alice), Some(mut bob)) = (Client::new("alice-bot"), Client::new("bob-bot"))
    else {
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let [mut first, mut second, third] = three(&dirs);
    alice.register(&first).unwrap();
    bob.register(&second).unwrap();
    all_know(&[&first, &second, &third], &[&alice, &bob]);
    for round in 0..6 {
        let text = format!("of round {round}");
        let (alone, his_is_down) = (round % 2 == 0, round % 3 == 0);
        if alone {
            // It stands still, and knows all nodes when it goes on.
            third.signal("-STOP");
        }
        if his_is_down {
            second.kill();
            let sent = alice.send(&first, &bob.fingerprint(), (&text, &text));
            assert_eq!(sent["subject"], *text);
            first.kill();
            third.signal("-CONT");
            second = up(dirs[1].path(), &[]);
            first = up(dirs[0].path(), &[]);
        } else {
            alice.send(&first, &bob.fingerprint(), (&text, &text));
            first.kill();
            third.signal("-CONT");
            first = up(dirs[0].path(), &[]);
        }
        for node in [&first, &second, &third] {
            until_at_leisure("he reads it there", || {
                let rows = bob.rows(node, INBOX);
                let row = rows.iter().find(|row| row["subject"] == *text);
                row.is_some_and(|row| bob.read(node, row).as_ref() == Ok(&text))
            });
        }
    }
    assert_eq!(bob.count(&third, INBOX), 6, "each is there once");
}

/// 50: a node without pages of the index has the mail that one node took, for the other one, which was down meanwhile.
#[test]
fn mail_travels_through_a_node_that_has_no_index() {
    let (Some(mut alice), Some(mut bob)) = (Client::new("alice-bot"), Client::new("bob-bot"))
    else {
        return;
    };
    let dirs = [temp(), temp(), temp()];
    let first = up(dirs[0].path(), &[]);
    let join = ["--join", first.text("ticket")];
    let second = up(dirs[1].path(), &join);
    let third = up(dirs[2].path(), &[&join[..], &["--no-finder"]].concat());
    second.until_connected();
    until_at_leisure("they are connected", || state(&second, third.text("node_id")) == "connected");
    alice.register(&first).unwrap();
    bob.register(&second).unwrap();
    all_know(&[&first, &second], &[&alice, &bob]);
    assert!(alice.get(&third, "alice-bot").unwrap_err().starts_with("404 "));
    second.stop();
    alice.send(&first, &bob.fingerprint(), ("hello", "by way of the third"));
    let state_of = || alice.rows(&first, SENT)[0]["mesh"]["state"].clone();
    until_at_leisure("the third node has it", || state_of() == "carried");
    first.kill();
    let second = up(dirs[1].path(), &[]);
    until_at_leisure("he reads it", || {
        let rows = bob.rows(&second, INBOX);
        rows.iter().any(|row| bob.read(&second, row).as_deref() == Ok("by way of the third"))
    });
    drop(third);
}

/// 34, 36: two nodes that do not see each other.
#[test]
fn of_one_username_that_both_sides_of_a_split_gave_away_one_account_has_it_after_it() {
    let (Some(mut alice), Some(mut other)) = (Client::new("alice-bot"), Client::new("alice-bot"))
    else {
        return;
    };
    let Some(mut bob) = Client::new("bob-bot") else { return };
    let dirs = [temp(), temp()];
    let runtime = Runtime::new().unwrap();
    let (nodes, pipe) = linked(&dirs, &runtime);
    bob.register(&nodes[0]).unwrap();
    until_at_leisure("he is known at the other node", || bob.me(&nodes[1]).is_ok());
    pipe.set(|state| state.cut = true);
    until_at_leisure("each is alone", || nodes.iter().all(is_alone));
    let mut both = [&mut alice, &mut other];
    for (client, node) in both.iter_mut().zip(&nodes) {
        assert_eq!(client.register(node).unwrap()["username"], "alice-bot");
    }
    pipe.set(|state| state.cut = false);
    let both = [&alice, &other];
    let shown = |node: &Daemon, of: &Client| of.get(node, &of.fingerprint()).unwrap_or_default();
    let is_settled = |node: &Daemon| {
        let names = both.map(|of| shown(node, of)["username"].clone());
        names.iter().all(Value::is_string) && names[0] != names[1]
    };
    until_at_leisure("all nodes show two names", || nodes.iter().all(is_settled));
    let names = |node: &Daemon| both.map(|of| shown(node, of)["username"].clone());
    assert_eq!(names(&nodes[0]), names(&nodes[1]), "the same at both");
    let kept = names(&nodes[0]).iter().position(|name| name == "alice-bot").unwrap();
    let (winner, loser) = (both[kept], both[1 - kept]);
    let id = loser.fingerprint();
    let expected = format!("alice-bot-{}", id.get(..8).unwrap().to_lowercase());
    assert_eq!(names(&nodes[0])[1 - kept], *expected);
    assert_eq!(shown(&nodes[0], loser)["mesh"]["username_wanted"], "alice-bot");
    for (of, node) in [(winner, &nodes[0]), (loser, &nodes[1])] {
        bob.send(node, &of.fingerprint(), ("hello", "you"));
        until_at_leisure("mail to both ids arrives", || {
            let rows = of.rows(&nodes[0], INBOX);
            let row = rows.iter().find(|row| row["subject"] == "hello");
            row.is_some_and(|row| of.read(&nodes[0], row).as_deref() == Ok("you"))
        });
    }
    let told = |of: &Client| of.rows(&nodes[1], INBOX).iter().any(|row| row["sender_id"] == "mesh");
    assert!(told(loser) && !told(winner));
    winner.ask(&nodes[1], "DELETE", "/api/agents/me/", None).unwrap();
    until_at_leisure("the name is given back", || {
        nodes.iter().all(|node| shown(node, loser)["username"] == "alice-bot")
    });
}

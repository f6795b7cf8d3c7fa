//! The index of agents as tools of agent hosts, of two agents at two nodes, and where it is not to be had.

use serde_json::{Value, json};

use crate::{
    direct::{keyed, mint},
    harness::{Daemon, ask, temp, until, up},
    tokens::invoke,
};

/// An agent's host.
struct Host<'a> {
    node: &'a Daemon,
    key: &'a str,
    agent: &'static str,
}

impl Host<'_> {
    fn call(&self, tool: &str, arguments: Value) -> Value {
        let body = json!({"tool": tool, "args": arguments, "agentId": self.agent});
        let (status, answer) = invoke(self.node, self.key, &body);
        assert_eq!(status, 200, "{tool}: {answer}");
        answer["result"]["details"].clone()
    }

    fn done(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone());
        assert_eq!(result["status"], "ok", "{tool} {arguments}: {result}");
        result
    }

    /// Sends a step as soon as its node has what came before.
    fn step(&self, to: &str, session: &Value, kind: &str, mut more: Value) -> Value {
        until("the step is allowed", || {
            let shown = self.call("finder_sessions", json!({"session_id": session}));
            let allowed = shown["session"]["allowed"].as_array().cloned().unwrap_or_default();
            allowed.contains(&json!(kind))
        });
        more["type"] = json!(kind);
        more["to"] = json!(to);
        more["session_id"] = session.clone();
        self.done("finder_negotiate", more)
    }
}

#[test]
fn two_agents_do_business_by_tools_from_registering_to_a_review() {
    let dirs = [temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let second = keyed(dirs[1].path(), &["--join", first.text("ticket")]);
    second.until_connected();
    let keys = [mint(&first), mint(&second)];
    let ada = Host { node: &first, key: &keys[0], agent: "ada" };
    let bob = Host { node: &second, key: &keys[1], agent: "bob" };
    let none = json!({"status": "error", "error": "not registered; call finder_register"});
    assert_eq!(ada.call("finder_job", json!({"action": "mine"})), none);
    let job = meet(&ada, &bob);
    let session = agree(&ada, &bob, &job);
    work(&ada, &bob, &session);
    let review = json!({"action": "create", "reviewee_id": "bob-bot", "job_id": job, "stars": 5, "text": "in time"});
    let review = ada.done("finder_review", review)["review"].clone();
    assert_eq!(review["mesh"]["transaction"], true, "{review}");
    until("he is told of it", || {
        bob.done("finder_review", json!({"action": "list", "agent_id": "bob-bot"}))["count"] == 1
    });
    // The account is the key's: at every node, and when hers is gone.
    let elsewhere = Host { node: &second, key: &keys[0], agent: "ada" };
    let own =
        |host: &Host<'_>| host.done("finder_mail", json!({"action": "sent"}))["count"].clone();
    until("she has it at the other node", || own(&elsewhere) == 4);
    let seen = json!({"agent": "ada-bot"});
    first.kill();
    assert!(elsewhere.done("finder_search", seen)["agent"]["last_seen_at"].is_string());
    second.stop();
}

/// One offers a job, and the other finds it.
fn meet(ada: &Host<'_>, bob: &Host<'_>) -> Value {
    let payment = json!(["lobster.cash", "invoice"]);
    let registered = json!({"username": "bob-bot", "payment_methods": payment});
    let bobs = bob.done("finder_register", registered)["agent"].clone();
    ada.done("finder_register", json!({"username": "ada-bot"}));
    let job = json!({"action": "create", "title": "Reports", "description": "I write reports."});
    let job = bob.done("finder_job", job)["job"]["id"].clone();
    let mut found = Value::Null;
    until("the job is known at the other node", || {
        found = ada.done("finder_search", json!({"query": "reports"}));
        found["count"] == 1
    });
    assert_eq!(found["results"][0]["agent"]["id"], bobs["id"]);
    let profile = ada.done("finder_search", json!({"agent": "bob-bot"}));
    assert_eq!(profile["agent"]["payment_methods"], payment);
    job
}

/// They agree on terms: the session.
fn agree(ada: &Host<'_>, bob: &Host<'_>, job: &Value) -> Value {
    let init = json!({"type": "init", "to": "bob-bot", "job_ref": job, "need": "a report"});
    let session = ada.done("finder_negotiate", init)["session"].clone();
    bob.step("ada-bot", &session, "ack", json!({"capabilities": "reports", "pricing": "5 USDC"}));
    let offer =
        |price| json!({"capability": "reports", "price": price, "payment_method": "lobster.cash"});
    ada.step("bob-bot", &session, "propose", offer("4 USDC"));
    bob.step("ada-bot", &session, "counter", json!({"price": "5 USDC", "reason": "as I said"}));
    ada.step("bob-bot", &session, "accept", json!({}));
    session
}

/// One is given work, and the other one the result and the invoice.
fn work(ada: &Host<'_>, bob: &Host<'_>, session: &Value) {
    ada.step("bob-bot", session, "execute", json!({"body": "about\n\nnodes"}));
    let came = || {
        let listed = bob.done("finder_mail", json!({"action": "list", "unread_only": true}));
        let rows = listed["results"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["mesh"]["negotiation"]["type"] == "execute")
    };
    until("the work has come", || came().is_some());
    let read = json!({"action": "read", "id": came().unwrap()["id"]});
    until("its text, too", || bob.call("finder_mail", read.clone())["status"] == "ok");
    let mail = bob.done("finder_mail", read)["mail"].clone();
    assert!(mail["body"].as_str().unwrap().ends_with("about\n\nnodes"), "{mail}");
    assert_eq!(mail["mesh"]["signature"], "good");
    let bare = json!({"type": "result", "to": "ada-bot", "session_id": session, "body": "done", "invoice_payment_method": "lobster.cash"});
    let refused = bob.call("finder_negotiate", bare);
    assert_eq!(refused["code"], 400, "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("payment details are missing"));
    let invoice = json!({"body": "done", "invoice_payment_method": "lobster.cash", "invoice_amount": "5 USDC", "invoice_wallet_address": "So1"});
    bob.step("ada-bot", session, "result", invoice);
    until("the other side has it, too", || {
        let shown = ada.done("finder_sessions", json!({"session_id": session}));
        shown["session"]["state"] == "done"
    });
}

#[test]
fn the_tools_are_not_there_where_the_index_or_keys_are_not() {
    let dir = temp();
    let node = keyed(dir.path(), &["--no-finder"]);
    let minted = mint(&node);
    let (status, _) = invoke(&node, &minted, &json!({"tool": "finder_search"}));
    assert_eq!(status, 404);
    node.stop();
    let open = temp();
    let node = up(open.path(), &[]);
    let ada = Host { node: &node, key: "", agent: "ada" };
    for (tool, given) in
        [("finder_register", json!({"username": "ada-bot"})), ("finder_search", json!({}))]
    {
        let refused = ada.call(tool, given);
        assert_eq!(refused["status"], "error");
        assert!(refused["error"].as_str().unwrap().contains("--no-auth"), "{refused}");
    }
    node.stop();
}

#[test]
fn a_stopped_agent_sends_no_mail_and_changes_nothing_in_the_index() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let keys = [mint(&node), mint(&node)];
    let ada = Host { node: &node, key: &keys[0], agent: "ada" };
    let bob = Host { node: &node, key: &keys[1], agent: "bob" };
    ada.done("finder_register", json!({"username": "ada-bot"}));
    bob.done("finder_register", json!({"username": "bob-bot"}));
    let mail = json!({"action": "send", "to": "ada-bot", "subject": "s", "body": "words"});
    bob.done("finder_mail", mail.clone());
    let at = node.text("data_dir");
    // Nobody has used the node's own key here.
    ask(&["agents", "stop", "bob", "--data-dir", at]);
    let job = json!({"action": "create", "title": "Reports", "description": "I write reports."});
    let register = json!({"username": "bob-bot", "name": "buy"});
    let tried = [("finder_mail", &mail), ("finder_job", &job), ("finder_register", &register)];
    for (tool, given) in tried {
        let refused = bob.call(tool, given.clone());
        assert_eq!(refused["code"], 403, "{tool}: {refused}");
        assert!(refused["error"].as_str().unwrap().contains("has stopped this agent"), "{refused}");
    }
    assert_eq!(bob.done("finder_mail", json!({"action": "list"}))["count"], 0, "it reads");
    assert_eq!(ada.done("finder_mail", json!({"action": "list"}))["count"], 1);
    ask(&["agents", "go", "bob", "--data-dir", at]);
    bob.done("finder_mail", mail);
    node.stop();
}

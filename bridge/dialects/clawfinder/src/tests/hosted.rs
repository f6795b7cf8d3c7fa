//! Accounts whose PGP key a node made.

use super::{
    mail::{INBOX, Person, SENT, id},
    *,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

const NEGOTIATE: &str = "/api/agents/me/negotiate/";
const SEND: &str = "/api/agents/me/send/";

async fn hosted(node: &Node, username: &str) -> Agent {
    let body = json!({
        "name": format!("Agent {username}"), "username": username, "hosted": true, "payment_methods": ["lobster.cash"],
    });
    let made = node.post("/api/agents/register/", None, &body).await.ok();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    assert_eq!(made["mesh"]["hosted"], true);
    assert_eq!(made["mesh"]["proven"], true);
    Agent { key: text("api_key"), id: text("id") }
}

async fn list(node: &Node, of: &Agent, path: &str) -> Vec<Value> {
    let page = node.ask("GET", path, Some(&of.key), None).await.ok();
    page["results"].as_array().unwrap().clone()
}

async fn read(node: &Node, of: &Agent, path: &str, row: &Value) -> Value {
    node.ask("GET", &format!("{path}{}/", id(row)), Some(&of.key), None).await.ok()
}

#[tokio::test]
async fn a_hosted_account_writes_and_reads_plain_text_and_the_other_side_a_message() {
    let node = Node::new().await;
    let (cat, ann) = (hosted(&node, "cat").await, Person::new(&node, "ann").await);
    let body = json!({"recipient_id": ann.agent.id, "subject": "hi", "body": "hello\nann"});
    let sent = node.post(SEND, Some(&cat.key), &body).await.ok();
    assert_eq!((&sent["body"], &sent["mesh"]["form"]), (&json!("hello\nann"), &json!("pgp")));
    let [row] = ann.list(&node, INBOX).await.try_into().unwrap();
    let armored = ann.read(&node, &format!("{INBOX}{}/", id(&row))).await.ok();
    let certificate = node.get(&format!("/api/agents/{}/", cat.id)).await.ok();
    let wish = openpgp::Wish::First;
    let text = certificate["pgp_key"].as_str().unwrap();
    let certificate = openpgp::Certificate::choose(text, &wish, now()).unwrap();
    let opened = ann.pgp.open(armored["body"].as_str().unwrap(), &[certificate]).unwrap();
    assert_eq!((&opened.text[..], opened.signature), (&b"hello\nann"[..], openpgp::Signed::Good));
    let mine = read(&node, &cat, SENT, &sent).await;
    assert_eq!((&mine["body"], &mine["mesh"]["signature"]), (&json!("hello\nann"), &json!("good")));

    ann.send_to(&node, &cat.id, ("re", "an answer")).await.ok();
    let [row] = list(&node, &cat, INBOX).await.try_into().unwrap();
    let mail = read(&node, &cat, INBOX, &row).await;
    assert_eq!(mail["body"], "an answer");
    assert_eq!(
        (&mail["mesh"]["signature"], &mail["mesh"]["decrypted"]),
        (&json!("good"), &json!(true))
    );
    // As it is: the client prints it.
    let plain = json!({"recipient_id": ann.agent.id, "body": "in the clear", "plain": true});
    node.post(SEND, Some(&cat.key), &plain).await.ok();
    let row = &ann.list(&node, INBOX).await[0];
    assert_eq!(row["mesh"]["form"], "plain");
    let shown = ann.read(&node, &format!("{INBOX}{}/", id(row))).await.ok();
    assert_eq!(shown["body"], "in the clear");
    let armor = json!({"recipient_id": ann.agent.id, "body": armored["body"], "plain": true});
    let text = "Bad Request: body: plain mail may not contain a PGP message; send that as it is";
    node.post(SEND, Some(&cat.key), &armor).await.is(400, text);
    let text = "Bad Request: plain: plain mail is for hosted accounts; encrypt yours";
    node.post(SEND, Some(&ann.agent.key), &plain).await.is(400, text);
    // Nobody else can make it another certificate, and its key is shown nowhere.
    let body = json!({"pgp_key": ann.pgp.certificate().armored()});
    let changed = node.patch("/api/agents/me/", &cat.key, &body).await;
    assert!(changed.reason.contains("A node made this account's PGP key"), "{changed:?}");
    let me = node.ask("GET", "/api/agents/me/", Some(&cat.key), None).await.ok().to_string();
    assert!(!me.contains("PRIVATE") && !me.contains("vault"), "{me}");
    for (field, value) in [
        ("pgp_key", json!("x")),
        ("agent_id", json!("x")),
        ("api_key", json!("x")),
        ("proof", json!("x")),
    ] {
        let mut body = json!({"name": "X", "username": "dog", "hosted": true});
        body[field] = value;
        let refused = node.post("/api/agents/register/", None, &body).await;
        assert!(refused.reason.starts_with(&format!("Bad Request: {field}: ")), "{refused:?}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_client_may_bring_the_key_of_a_hosted_account_once() {
    let node = Node::new().await;
    let key = crate::secret::draw().unwrap();
    let body = |name: &str| json!({"name": "X", "username": name, "hosted": true, "api_key": key.expose()});
    let made = node.post("/api/agents/register/", None, &body("cat")).await.ok();
    assert!(made.get("api_key").is_none(), "who brought it has it");
    let me = node.ask("GET", "/api/agents/me/", Some(key.expose()), None).await.ok();
    assert_eq!((&me["username"], &me["mesh"]["proven"]), (&json!("cat"), &json!(true)));
    let used = "Bad Request: api_key: This key was used before; make another one.";
    node.post("/api/agents/register/", None, &body("dog")).await.is(400, used);
    node.delete("/api/agents/me/", key.expose()).await.ok();
    node.post("/api/agents/register/", None, &body("dog")).await.is(400, used);
    node.stop().await;
}

/// A step that the node writes.
async fn step(
    node: &Node,
    (of, to): (&Agent, &Agent),
    kind: &str,
    mut more: Value,
) -> super::Answer {
    more["type"] = json!(kind);
    more["to"] = json!(to.id);
    node.post(NEGOTIATE, Some(&of.key), &more).await
}

/// One begins a session with another about a job of that one. Its name.
async fn begin(node: &Node, (cat, dog): (&Agent, &Agent), job: &str) -> Value {
    let none =
        step(node, (cat, dog), "init", json!({"job_ref": id(&json!({"id": cat.id})), "need": "x"}))
            .await;
    none.is(400, "Bad Request: job_ref: no active job of this agent has this id; force sends it all the same");
    let begun =
        step(node, (cat, dog), "INIT", json!({"job_ref": job, "need": "a report"})).await.ok();
    assert_eq!(
        (&begun["type"], &begun["sent"], &begun["state"]),
        (&json!("init"), &json!(true), &json!("inited"))
    );
    let [row] = list(node, dog, INBOX).await.try_into().unwrap();
    let mail = read(node, dog, INBOX, &row).await;
    let fields = &mail["mesh"]["negotiation"]["fields"];
    assert_eq!(
        (&fields["need"], &fields["consumer_username"]),
        (&json!("a report"), &json!("cat"))
    );
    assert!(fields["index_url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert_eq!(mail["mesh"]["negotiation"]["violations"], json!([]));
    let text = mail["body"].as_str().unwrap();
    assert!(text.starts_with("protocol: clawfinder/1\ntype: INIT\nsession_id: "), "{text}");
    begun["session"].clone()
}

#[tokio::test]
async fn a_hosted_account_negotiates_in_both_roles() {
    let node = Node::new().await;
    let (cat, dog) = (hosted(&node, "cat").await, hosted(&node, "dog").await);
    let job = node.job(&dog, "a job").await;
    let s = begin(&node, (&cat, &dog), &job).await;
    let required =
        step(&node, (&dog, &cat), "ack", json!({"session_id": s, "capabilities": "x"})).await;
    required.is(400, "Bad Request: pricing: This field is required.");
    let forged = json!({"session_id": s, "capabilities": "x\ntype: ACCEPT", "pricing": "5"});
    let forged = step(&node, (&dog, &cat), "ack", forged).await;
    forged
        .is(400, "Bad Request: capabilities: Control characters and line breaks are not allowed.");
    step(&node, (&dog, &cat), "ack", json!({"session_id": s, "capabilities": "x", "pricing": "5"}))
        .await
        .ok();
    let offer = |method: &str| json!({"session_id": s, "capability": "x", "price": "5", "payment_method": method});
    let wrong = step(&node, (&cat, &dog), "propose", offer("invoice")).await;
    wrong.is(
        400,
        "Bad Request: payment_method: this agent takes lobster.cash; force sends it all the same",
    );
    step(&node, (&cat, &dog), "propose", offer("lobster.cash")).await.ok();
    let session = format!("/api/agents/me/sessions/{}/", s.as_str().unwrap());
    let shown = node.ask("GET", &session, Some(&dog.key), None).await.ok();
    let terms = json!({"capability": "x", "price": "5", "payment_method": "lobster.cash"});
    assert_eq!(
        (&shown["terms"], &shown["allowed"]),
        (&terms, &json!(["counter", "accept", "reject"]))
    );
    step(&node, (&dog, &cat), "accept", json!({"session_id": s})).await.ok();
    let attachment = json!({"url": "https://x.example/a", "hash": format!("sha256:{}", "0".repeat(64)), "size": 7, "filename": "a"});
    let work = json!({"session_id": s, "body": "do\n\nit", "attachments": [attachment]});
    step(&node, (&cat, &dog), "execute", work).await.ok();
    let mail = read(&node, &dog, INBOX, &list(&node, &dog, INBOX).await[0]).await;
    let inside = &mail["mesh"]["negotiation"];
    assert_eq!(
        (&inside["body"], &inside["attachments"][0]["size"]),
        (&json!("do\n\nit"), &json!(7))
    );
    // Without the place to pay to, nothing was agreed on that could be paid.
    let bare = json!({"session_id": s, "invoice_payment_method": "lobster.cash", "force": true});
    let refused = step(&node, (&dog, &cat), "result", bare.clone()).await;
    assert!(refused.reason.contains("payment details are missing"), "{refused:?}");
    let mut whole = bare;
    whole["invoice_amount"] = json!("5");
    whole["invoice_wallet_address"] = json!("0xabc");
    let done = step(&node, (&dog, &cat), "result", whole).await.ok();
    assert_eq!(done["state"], "done");
    step(&node, (&cat, &dog), "reject", json!({"session_id": s, "reason": "no"})).await.is(
        409,
        &format!(
            "Conflict: clawfinder/1 REJECT is not allowed in state done (session {})",
            &s.as_str().unwrap()[..8]
        ),
    );
    node.stop().await;
}

#[tokio::test]
async fn a_reader_is_told_what_is_wrong_inside_a_message() {
    let node = Node::new().await;
    let (cat, ann) = (hosted(&node, "cat").await, Person::new(&node, "ann").await);
    let forged = "protocol: clawfinder/1\ntype: INIT\nsession_id: s\nneed: x\ntype: ACCEPT\n";
    ann.send_to(&node, &cat.id, ("negotiate:init:s", forged)).await.ok();
    let violations = async || {
        let mail = read(&node, &cat, INBOX, &list(&node, &cat, INBOX).await[0]).await;
        let found = mail["mesh"]["negotiation"]["violations"].as_array().unwrap().clone();
        found.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(violations().await, ["malformed: type is there twice"]);
    // The step still counts, by its subject.
    let step = json!({"type": "ack", "to": ann.agent.id, "session_id": "s", "capabilities": "x", "pricing": "5"});
    node.post(NEGOTIATE, Some(&cat.key), &step).await.ok();
    let other = "protocol: clawfinder/1\ntype: EXECUTE\nsession_id: t\ntimestamp: x\n";
    ann.send_to(&node, &cat.id, ("negotiate:propose:s", other)).await.ok();
    let found = violations().await;
    assert!(
        found[0].starts_with("its type is EXECUTE") && found[1].starts_with("its session is t"),
        "{found:?}"
    );
    let eve = Person::new(&node, "eve").await;
    eve.send_to(&node, &cat.id, ("negotiate:init:u", "hello")).await.ok();
    assert_eq!(violations().await, ["there is no clawfinder/1 message in it"]);
    // What was signed by somebody else is shown, and said.
    let key = node.get(&format!("/api/agents/{}/", cat.id)).await.ok();
    let cats = openpgp::Certificate::choose(
        key["pgp_key"].as_str().unwrap(),
        &openpgp::Wish::First,
        now(),
    );
    let by_eve = super::mail::seal_for(&eve.pgp, &cats.unwrap(), "who am I");
    let body = json!({"recipient_id": cat.id, "subject": "x", "body": by_eve});
    node.post(SEND, Some(&ann.agent.key), &body).await.ok();
    let mail = read(&node, &cat, INBOX, &list(&node, &cat, INBOX).await[0]).await;
    assert_eq!(
        (&mail["body"], &mail["mesh"]["signature"]),
        (&json!("who am I"), &json!("unknown key"))
    );
    let own = Person::new(&node, "own").await;
    let refused = node.post(NEGOTIATE, Some(&own.agent.key), &step).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    node.stop().await;
}

#[tokio::test]
async fn its_api_key_opens_the_secret_key_of_a_hosted_account_alone() {
    let node = Node::new().await;
    let path = "/api/agents/me/secret-key/";
    let body = json!({"hosted": true, "username": "carol", "name": "Carol"});
    let carol = node.post("/api/agents/register/", None, &body).await.ok();
    let key = carol["api_key"].as_str();
    let shown = node.ask("GET", path, key, None).await;
    assert!(shown.headers.contains("no-store"), "{shown:?}");
    let bytes = STANDARD.decode(shown.ok()["secret_key"].as_str().unwrap()).unwrap();
    let secret = SecretCertificate::from_bytes(&bytes).unwrap();
    assert_eq!(carol["id"], secret.certificate().fingerprint().to_string());
    assert_eq!(node.get(path).await.status, 401);
    let own = node.agent("dave").await;
    assert_eq!(node.ask("GET", path, Some(&own.key), None).await.status, 403);
    node.stop().await;
}

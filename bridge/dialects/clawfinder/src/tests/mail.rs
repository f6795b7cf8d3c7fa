//! Mail and negotiations at one node.

use bridge::{read::Visitor, seam::call::WriteRecords};
use mesh::{
    api::account::RecordWrite,
    name::key::KeySecret,
    records::finder::{Correspondence, Envelope, Form, MAILS},
    wire::record::Stamp,
};
use openpgp::Certificate;

use super::*;
use crate::limits::UNREAD_OF_ONE_SENDER_MAX;

pub(super) const INBOX: &str = "/api/agents/me/inbox/";
pub(super) const SENT: &str = "/api/agents/me/sent/";
const SEND: &str = "/api/agents/me/send/";
const SESSIONS: &str = "/api/agents/me/sessions/";

/// An agent with its PGP key, as a client has both.
pub(super) struct Person {
    pub(super) agent: Agent,
    pub(super) pgp: SecretCertificate,
}

impl Person {
    pub(super) async fn new(node: &Node, username: &str) -> Person {
        let pgp = pgp(username);
        Person { agent: node.register(username, &pgp).await, pgp }
    }

    fn seal(&self, to: &Person, text: &str) -> String {
        seal_for(&self.pgp, to.pgp.certificate(), text)
    }

    async fn send(&self, node: &Node, to: &Person, (subject, text): (&str, &str)) -> super::Answer {
        let body =
            json!({"recipient_id": to.agent.id, "subject": subject, "body": self.seal(to, text)});
        node.post(SEND, Some(&self.agent.key), &body).await
    }

    /// To somebody of whom the public key alone is known.
    pub(super) async fn send_to(
        &self,
        node: &Node,
        to: &str,
        (subject, text): (&str, &str),
    ) -> super::Answer {
        let shown = node.get(&format!("/api/agents/{to}/")).await.ok();
        let key = shown["pgp_key"].as_str().unwrap();
        let key = Certificate::choose(key, &openpgp::Wish::First, now()).unwrap();
        let body = seal_for(&self.pgp, &key, text);
        let body = json!({"recipient_id": to, "subject": subject, "body": body});
        node.post(SEND, Some(&self.agent.key), &body).await
    }

    async fn step(&self, node: &Node, to: &Person, subject: &str) -> super::Answer {
        self.send(node, to, (subject, "as it says")).await
    }

    pub(super) async fn list(&self, node: &Node, path: &str) -> Vec<Value> {
        let page = node.ask("GET", path, Some(&self.agent.key), None).await.ok();
        page["results"].as_array().unwrap().clone()
    }

    pub(super) async fn read(&self, node: &Node, path: &str) -> super::Answer {
        node.ask("GET", path, Some(&self.agent.key), None).await
    }
}

pub(super) fn seal_for(from: &SecretCertificate, to: &Certificate, text: &str) -> String {
    let mut chance = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
    from.seal(&[to], text.as_bytes(), now(), &mut chance).unwrap()
}

pub(super) fn id(of: &Value) -> String {
    of["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn mail_arrives_is_read_and_its_sender_sees_how_far_it_has_come() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    assert_eq!(bob.list(&node, INBOX).await, Vec::<Value>::new());
    let text = format!("hello\n\nbob {} no newline", "x".repeat(5_000));
    let sent = ann.send(&node, &bob, ("a subject", &text)).await.ok();
    assert_eq!((&sent["mesh"]["state"], &sent["is_read"]), (&json!("stored"), &json!(false)));
    assert_eq!(
        (&sent["recipient_id"], &sent["subject"]),
        (&json!(bob.agent.id), &json!("a subject"))
    );
    let armor = sent["body"].as_str().unwrap();
    assert!(armor.starts_with("-----BEGIN PGP MESSAGE-----"));
    assert_eq!(ann.list(&node, SENT).await[0]["mesh"]["state"], "stored", "nobody was shown it");

    let [row] = bob.list(&node, INBOX).await.try_into().unwrap();
    let expected = json!({
        "id": sent["id"], "sender_id": ann.agent.id, "sender_name": "Agent ann", "subject": "a subject",
        "is_read": false, "created_at": sent["created_at"], "mesh": {"form": "pgp"},
    });
    assert_eq!(row, expected);
    let detail = bob.read(&node, &format!("{INBOX}{}/", id(&row))).await.ok();
    let opened = bob.pgp.open(detail["body"].as_str().unwrap(), &[ann.pgp.certificate().clone()]);
    let opened = opened.unwrap();
    assert_eq!(
        (opened.text.as_slice(), opened.signature),
        (text.as_bytes(), openpgp::Signed::Good)
    );

    let [mine] = ann.list(&node, SENT).await.try_into().unwrap();
    assert_eq!(mine["mesh"]["state"], "delivered");
    assert!(mine["mesh"]["delivered_at"].is_string());
    let path = format!("{INBOX}{}/", id(&row));
    let marked = node.patch(&path, &bob.agent.key, &json!({"is_read": true})).await.ok();
    assert_eq!(marked, json!({"is_read": true}));
    assert_eq!(bob.list(&node, INBOX).await[0]["is_read"], true);
    assert!(bob.list(&node, &format!("{INBOX}?is_read=false")).await.is_empty());
    let [mine] = ann.list(&node, SENT).await.try_into().unwrap();
    assert_eq!((&mine["mesh"]["state"], &mine["is_read"]), (&json!("read"), &json!(true)));
    // Its sender cannot decrypt it, and the client would take that for an error.
    let mine = ann.read(&node, &format!("{SENT}{}/", id(&mine))).await.ok();
    let note = mine["body"].as_str().unwrap();
    assert!(note.starts_with("[This message was encrypted for bob ("), "{note}");
    assert!(note.contains("its sender cannot read it. delivered 20"), "{note}");
    assert_eq!(mine["mesh"]["pgp"], armor);
    node.patch(&path, &bob.agent.key, &json!({"is_read": false})).await.ok();
    assert_eq!(ann.list(&node, SENT).await[0]["mesh"]["state"], "delivered");

    // Somebody else's is not there, in either list; nothing is deleted.
    let eve = Person::new(&node, "eve").await;
    for path in [path.clone(), format!("{SENT}{}/", id(&row)), format!("{INBOX}x/")] {
        eve.read(&node, &path).await.is(404, "Not Found: you have no message of this id");
    }
    ann.read(&node, &path).await.is(404, "Not Found: you have no message of this id");
    assert_eq!(node.delete(&path, &bob.agent.key).await.status, 405);
    assert_eq!(node.get(INBOX).await.status, 401);
    // To oneself.
    let sent = ann.send(&node, &ann, ("", "a note")).await.ok();
    let [row] = ann.list(&node, INBOX).await.try_into().unwrap();
    assert_eq!((&row["id"], &row["subject"]), (&sent["id"], &json!("")));
    let mine = ann.read(&node, &format!("{SENT}{}/", id(&row))).await.ok();
    assert_eq!(mine["body"], sent["body"], "it can read that");
    node.stop().await;
}

#[tokio::test]
async fn what_its_recipient_could_not_read_is_not_taken() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let eve = Person::new(&node, "eve").await;
    let send = async |to: &str, subject: &str, body: &str| {
        let body = json!({"recipient_id": to, "subject": subject, "body": body});
        node.post(SEND, Some(&ann.agent.key), &body).await
    };
    let not_pgp = "Bad Request: body: not a PGP message";
    send(&bob.agent.id, "", "hello").await.is(400, not_pgp);
    send(&bob.agent.id, "", "-----BEGIN PGP MESSAGE-----\nxx").await.is(400, not_pgp);
    let key = bob.pgp.certificate().armored();
    send(&bob.agent.id, "", &key).await.is(400, not_pgp);
    send(&bob.agent.id, "", " ").await.is(400, "Bad Request: body: This field may not be blank.");
    // The client may have taken another key than the one that was meant.
    let for_eve = ann.seal(&eve, "hello");
    let wrong = send("bob", "", &for_eve).await;
    let key = eve.pgp.certificate().recipients()[0];
    let text = format!(
        "Bad Request: body: encrypted to {key}, which is no key of bob; send --to {}",
        bob.agent.id
    );
    wrong.is(400, &text);
    let good = ann.seal(&bob, "hello");
    let unknown = "Bad Request: recipient_id: no agent has this id or username";
    send("nobody", "", &good).await.is(400, unknown);
    let control = "Bad Request: subject: Control characters and line breaks are not allowed.";
    send("bob", "a\nb", &good).await.is(400, control);
    let long = "Bad Request: subject: Ensure this field has no more than 512 bytes.";
    send("bob", &"x".repeat(513), &good).await.is(400, long);
    let large = format!("-----BEGIN PGP MESSAGE-----\n{}", "x".repeat(1_100_000));
    let large = send("bob", "", &large).await;
    assert_eq!(large.status, 413, "{large:?}");
    let larger = send("bob", "", &"x".repeat(1_400_000)).await;
    assert_eq!(larger.status, 413, "{larger:?}");
    assert!(bob.list(&node, INBOX).await.is_empty() && ann.list(&node, SENT).await.is_empty());
    // A former key is none, and its id finds the agent nevertheless.
    let renewed = pgp("bob");
    let body = json!({"pgp_key": renewed.certificate().armored()});
    let now = node.patch("/api/agents/me/", &bob.agent.key, &body).await.ok();
    let old = send(&bob.agent.id, "", &good).await;
    assert!(old.reason.ends_with(&format!("send --to {}", now["id"].as_str().unwrap())), "{old:?}");
    let new = seal_for(&ann.pgp, renewed.certificate(), "hello");
    send(&bob.agent.id, "", &new).await.ok();
    node.stop().await;
}

#[tokio::test]
async fn one_sender_does_not_fill_a_mailbox() {
    let node = Node::with(|settings| settings).await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let body = json!({"recipient_id": bob.agent.id, "body": ann.seal(&bob, "hello")});
    let mut taken = 0;
    let refused = loop {
        let answer = node.post(SEND, Some(&ann.agent.key), &body).await;
        if answer.status != 201 {
            break answer;
        }
        taken += 1;
    };
    // The rate is the first bound that one connection meets.
    assert_eq!((taken, refused.status), (crate::limits::MAILS_PER_MINUTE, 429));
    assert!(refused.reason.contains("at most 60 mails a minute"), "{refused:?}");
    assert!(taken < UNREAD_OF_ONE_SENDER_MAX);
    assert_eq!(bob.list(&node, INBOX).await.len(), 60);
    node.stop().await;
}

#[tokio::test]
async fn a_negotiation_goes_as_the_protocol_says() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let s = "f75edaac-6fe5-4c8a-a123-0d6d4b6cb1a4";
    let subject = |step: &str| format!("negotiate:{step}:{s}");
    let none = "Conflict: no session f75edaac between you and bob is known here; send INIT first";
    ann.step(&node, &bob, &subject("propose")).await.is(409, none);
    let bad = ann.step(&node, &bob, "negotiate:haggle:x").await;
    assert!(bad.reason.starts_with("Bad Request: subject: not negotiate:TYPE:SESSION"), "{bad:?}");
    ann.step(&node, &bob, &subject("INIT")).await.ok();
    let own = "Conflict: clawfinder/1 ACK is not allowed in state inited (session f75edaac)";
    ann.step(&node, &bob, &subject("ack")).await.is(409, own);
    let known =
        "Conflict: the session f75edaac is known here (state inited); begin with a fresh id";
    ann.step(&node, &bob, &subject("init")).await.is(409, known);
    bob.step(&node, &ann, &subject("init")).await.is(409, known);
    bob.step(&node, &ann, &subject("ack")).await.ok();
    ann.step(&node, &bob, &subject("propose")).await.ok();
    for step in ["counter", "accept", "execute", "propose"] {
        assert_eq!(ann.step(&node, &bob, &subject(step)).await.status, 409, "{step}");
    }
    bob.step(&node, &ann, &subject("counter")).await.ok();
    let session = ann.read(&node, &format!("{SESSIONS}{s}/")).await.ok();
    let expected = json!({
        "session_id": s, "role": "consumer", "state": "offered", "offered_by": "provider", "stale": false,
        "counterparty": {"id": bob.agent.id, "name": "Agent bob", "username": "bob"},
        "allowed": ["counter", "accept", "reject"],
        "since": session["since"], "messages": session["messages"],
    });
    assert_eq!(session, expected);
    let [other] = bob.list(&node, SESSIONS).await.try_into().unwrap();
    assert_eq!((&other["role"], &other["allowed"]), (&json!("provider"), &json!(["reject"])));
    assert_eq!(other["messages"], session["messages"]);
    ann.step(&node, &bob, &subject("accept")).await.ok();
    bob.step(&node, &ann, &subject("execute")).await.is(
        409,
        "Conflict: clawfinder/1 EXECUTE is not allowed in state accepted (session f75edaac)",
    );
    ann.step(&node, &bob, &subject("execute")).await.ok();
    bob.step(&node, &ann, &subject("result")).await.ok();
    let rows = bob.list(&node, INBOX).await;
    let newest = &rows[0]["mesh"]["negotiation"];
    let expected =
        json!({"type": "execute", "session_id": s, "state": "executing", "violations": []});
    assert_eq!((newest, rows.len()), (&expected, 4));
    assert_eq!(bob.list(&node, SENT).await[0]["mesh"]["negotiation"]["state"], "done");
    let session = bob.read(&node, &format!("{SESSIONS}{s}/")).await.ok();
    let types: Vec<&Value> =
        session["messages"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(types, ["init", "ack", "propose", "counter", "accept", "execute", "result"]);
    assert_eq!(ann.step(&node, &bob, &subject("reject")).await.status, 409, "it is done");
    bob.read(&node, &format!("{SESSIONS}none/"))
        .await
        .is(404, "Not Found: you have no session of this id");
    node.stop().await;
}

#[tokio::test]
async fn a_review_shows_that_its_two_did_business() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let job = node.job(&bob.agent, "a job").await;
    let review = async |by: &Person, of: &Person| {
        let body = json!({"reviewee_id": of.agent.id, "job_id": job, "stars": 5});
        node.post("/api/reviews/", Some(&by.agent.key), &body).await.ok()
    };
    let steps = [
        (&ann, &bob, "init"),
        (&bob, &ann, "ack"),
        (&ann, &bob, "propose"),
        (&bob, &ann, "accept"),
        (&ann, &bob, "execute"),
    ];
    for (from, to, step) in steps {
        from.step(&node, to, &format!("negotiate:{step}:s")).await.ok();
    }
    assert_eq!(review(&ann, &bob).await["mesh"]["transaction"], false, "he has given nothing yet");
    let of_bob = review(&bob, &ann).await;
    assert_eq!(of_bob["mesh"]["transaction"], true, "she has ordered");
    let path = format!("/api/reviews/{}/", id(&of_bob));
    let edit = json!({"stars": 2});
    node.patch(&path, &bob.agent.key, &edit).await.ok();
    assert_eq!(node.get(&path).await.ok()["mesh"]["transaction"], true, "it stays");
    node.stop().await;
}

#[tokio::test]
async fn with_an_account_its_mail_goes_and_senders_are_told() {
    let node = Node::with(|settings| Settings { node: "n1".to_owned(), ..settings }).await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let unread = ann.send(&node, &bob, ("one", "x")).await.ok();
    let read = ann.send(&node, &bob, ("two", "x")).await.ok();
    bob.send(&node, &ann, ("three", "x")).await.ok();
    let path = format!("{INBOX}{}/", id(&read));
    node.patch(&path, &bob.agent.key, &json!({"is_read": true})).await.ok();
    assert_eq!(ann.list(&node, INBOX).await.len(), 1);
    assert_eq!(node.delete("/api/agents/me/", &bob.agent.key).await.status, 204);
    assert!(ann.list(&node, SENT).await.is_empty());
    let [notice] = ann.list(&node, INBOX).await.try_into().unwrap();
    let of = (&notice["sender_id"], &notice["sender_name"], &notice["subject"]);
    assert_eq!(
        of,
        (&json!("mesh"), &json!("clawmesh n1"), &json!("A message of yours was not read"))
    );
    let path = format!("{INBOX}{}/", id(&notice));
    let text = ann.read(&node, &path).await.ok()["body"].as_str().unwrap().to_owned();
    assert!(text.contains(&id(&unread)) && !text.contains("bob"), "{text}");
    node.patch(&path, &ann.agent.key, &json!({"is_read": true})).await.ok();
    assert!(ann.list(&node, &format!("{INBOX}?is_read=false")).await.is_empty());
    assert_eq!(ann.list(&node, INBOX).await.len(), 1, "it is told once");
    node.get("/api/agents/mesh/").await.is(404, "Not Found: no agent has this id or username");
    node.stop().await;
}

#[tokio::test]
async fn mail_whose_sender_sealed_no_text_is_damaged_and_not_waited_for() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    // As a node that lies writes it.
    let [from, to] = [&ann, &bob].map(|one| Arc::new(KeySecret::of(&one.agent.key)));
    let ends = (from.print(), to.print());
    let own = from.mailbox().unwrap();
    let both = Correspondence::of(here().mesh, own, &to.halves().mailbox).unwrap();
    let envelope = Envelope::new("no text".to_owned(), Form::Pgp, ([1; 20], [2; 20]));
    let mail = both.seal(ends, [3; 16], &envelope);
    let id = mail.id(from.print());
    let writes = vec![RecordWrite::new(MAILS.number, id, Some(mail.encode()))];
    let write = WriteRecords { account: from, writes, above: Stamp::default() };
    node.desk.ask(&Visitor::stranger(), write).await.unwrap();
    let listed = bob.list(&node, INBOX).await;
    assert_eq!(listed.len(), 1);
    let read = bob.read(&node, &format!("{INBOX}{}/", super::mail::id(&listed[0]))).await;
    read.is(404, "Not Found: this message is damaged: its sender sealed no text");
    node.stop().await;
}

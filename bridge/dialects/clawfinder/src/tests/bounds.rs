//! 49: bounds that are reached once. What was there stays, and the refusal names the bound.

use bridge::{read::Visitor, seam::call::WriteRecords};
use mesh::{
    api::account::RecordWrite,
    limits::RECORD_WRITES_MAX,
    name::key::KeySecret,
    records::finder::{Correspondence, Envelope, Form, MAILS},
    wire::record::Stamp,
};

use super::{
    mail::{INBOX, Person},
    *,
};
use crate::limits::{
    JOBS_AT_ONCE_MAX, MAILBOX_BYTES_MAX, MAILS_PER_DAY, SESSIONS_OPEN_MAX, UNREAD_OF_ONE_SENDER_MAX,
};

/// So many mails of one to another, as a node writes them that asks nobody how many there are.
async fn fill(node: &Node, (from, to): (&Person, &Person), subjects: &[String], text: &str) {
    let [from, to] = [from, to].map(|one| Arc::new(KeySecret::of(&one.agent.key)));
    let ends = (from.print(), to.print());
    let both = Correspondence::of(here().mesh, from.mailbox().unwrap(), &to.halves().mailbox);
    let both = both.unwrap();
    let mut nonce = [0; 16];
    let mut write = |subject: &String| {
        getrandom::fill(&mut nonce).unwrap();
        let mail = Envelope::new(subject.clone(), Form::Pgp, ([1; 20], [2; 20]));
        let mail = both.seal(ends, nonce, &mail);
        let id = mail.id(from.print());
        let apart = Some(both.seal_text(ends, id, text));
        RecordWrite { apart, ..RecordWrite::new(MAILS.number, id, Some(mail.encode())) }
    };
    for subjects in subjects.chunks(if text.len() > 10_000 { 1 } else { RECORD_WRITES_MAX }) {
        let writes = subjects.iter().map(&mut write).collect();
        let write = WriteRecords { account: from.clone(), writes, above: Stamp::default() };
        node.desk.ask(&Visitor::stranger(), write).await.unwrap();
    }
}

fn subjects(count: usize, prefix: &str) -> Vec<String> {
    (0..count).map(|nth| format!("{prefix}{nth}")).collect()
}

async fn count(node: &Node, of: &Person) -> u64 {
    of.read(node, INBOX).await.ok()["count"].as_u64().unwrap()
}

#[tokio::test]
async fn one_sender_has_so_many_unread_mails_in_a_mailbox() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let eve = Person::new(&node, "eve").await;
    fill(&node, (&ann, &bob), &subjects(UNREAD_OF_ONE_SENDER_MAX - 1, ""), "x").await;
    ann.send_to(&node, &bob.agent.id, ("the last", "x")).await.ok();
    let refused = ann.send_to(&node, &bob.agent.id, ("one more", "x")).await;
    refused.is(507, "Insufficient Storage: bob has 200 unread mails of yours, and takes no more than 200; wait until some are read");
    // Others do, and so does she when one is read.
    eve.send_to(&node, &bob.agent.id, ("hello", "x")).await.ok();
    let rows = bob.list(&node, INBOX).await;
    let path = format!("{INBOX}{}/", super::mail::id(&rows[5]));
    node.patch(&path, &bob.agent.key, &json!({"is_read": true})).await.ok();
    ann.send_to(&node, &bob.agent.id, ("one more", "x")).await.ok();
    assert_eq!(count(&node, &bob).await, 202);
    node.stop().await;
}

#[tokio::test]
async fn a_mailbox_has_so_many_bytes() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let text = "x".repeat(1 << 20);
    let many = usize::try_from(MAILBOX_BYTES_MAX >> 20).unwrap();
    fill(&node, (&ann, &bob), &subjects(many, ""), &text).await;
    let refused = ann.send_to(&node, &bob.agent.id, ("one more", "x")).await;
    refused.is(507, "Insufficient Storage: the mailbox of bob is full: it takes 2000 mails and 64 MiB; mail goes after 90 days");
    assert_eq!(count(&node, &bob).await, many as u64);
    node.stop().await;
}

#[tokio::test]
async fn an_account_sends_so_many_mails_in_a_day() {
    let node = Node::new().await;
    let ann = Person::new(&node, "ann").await;
    let others = [Person::new(&node, "bob").await, Person::new(&node, "eve").await];
    for nth in 0..MAILS_PER_DAY / 100 {
        fill(&node, (&ann, &others[nth % 2]), &subjects(100, &format!("{nth} ")), "x").await;
    }
    let carl = Person::new(&node, "carl").await;
    let refused = ann.send_to(&node, &carl.agent.id, ("one more", "x")).await;
    refused.is(429, "Too Many Requests: at most 1000 mails a day; try again tomorrow");
    assert!(refused.headers.contains("retry-after"), "{refused:?}");
    assert_eq!((count(&node, &others[0]).await, count(&node, &carl).await), (500, 0));
    node.stop().await;
}

#[tokio::test]
async fn an_account_has_so_many_sessions_that_are_not_over() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    fill(&node, (&ann, &bob), &subjects(SESSIONS_OPEN_MAX, "negotiate:init:s"), "x").await;
    let eve = Person::new(&node, "eve").await;
    let init = ("negotiate:init:one-more", "x");
    let refused = ann.send_to(&node, &eve.agent.id, init).await;
    refused.is(403, "Forbidden: at most 500 sessions that are not over; reject some first");
    // The other one: she has many unread mails there.
    bob.send_to(&node, &ann.agent.id, ("negotiate:reject:s7", "x")).await.ok();
    ann.send_to(&node, &eve.agent.id, init).await.ok();
    let sessions = ann.read(&node, "/api/agents/me/sessions/").await.ok();
    assert_eq!(sessions["count"], SESSIONS_OPEN_MAX + 1);
    node.stop().await;
}

#[tokio::test]
async fn an_account_has_so_many_jobs_at_once() {
    let node = Node::new().await;
    let ann = node.agent("ann").await;
    let mut first = String::new();
    for nth in 0..JOBS_AT_ONCE_MAX {
        first = node.job(&ann, &format!("job {nth}")).await;
    }
    let more = json!({"title": "x", "description": "x"});
    let refused = node.post("/api/jobs/", Some(&ann.key), &more).await;
    refused.is(403, "Forbidden: an agent has at most 100 jobs at once; delete one");
    assert_eq!(node.get("/api/jobs/").await.ok()["count"], 100);
    assert_eq!(node.delete(&format!("/api/jobs/{first}/"), &ann.key).await.status, 204);
    node.post("/api/jobs/", Some(&ann.key), &more).await.ok();
    node.stop().await;
}

#[tokio::test]
async fn fields_have_so_many_characters() {
    let node = Node::new().await;
    let (ann, bob) = (node.agent("ann").await, node.agent("bob").await);
    let long = |many: usize| "x".repeat(many);
    let (mut deep, mut nested) = (json!(1), json!({}));
    for _ in 0..crate::limits::METADATA_DEPTH_MAX {
        deep = json!([deep]);
    }
    nested["k"] = deep;
    for (field, value, what) in [
        ("title", json!(long(257)), "no more than 256 characters"),
        ("description", json!(long(16_385)), "no more than 16384 bytes"),
        ("price", json!(long(65)), "no more than 64 characters"),
        ("metadata", json!({"k": long(8_192)}), "no more than 8192 bytes"),
        ("metadata", nested, "32"),
    ] {
        let mut job = json!({"title": "x", "description": "x"});
        job[field] = value;
        let refused = node.post("/api/jobs/", Some(&ann.key), &job).await;
        assert_eq!(refused.status, 400, "{field} {refused:?}");
        assert!(refused.reason.starts_with(&format!("Bad Request: {field}: ")), "{refused:?}");
        assert!(refused.reason.contains(what), "{refused:?}");
    }
    let job = node.job(&ann, "a job").await;
    let mut review = json!({"reviewee_id": ann.id, "job_id": job, "stars": 5, "text": long(4_001)});
    let refused = node.post("/api/reviews/", Some(&bob.key), &review).await;
    refused.is(400, "Bad Request: text: Ensure this field has no more than 4000 characters.");
    review["text"] = json!(long(4_000));
    node.post("/api/reviews/", Some(&bob.key), &review).await.ok();
    let many: Vec<Value> =
        (0..9).map(|nth| json!({"method": "email", "handle": nth.to_string()})).collect();
    for (field, value) in [
        ("name", json!(long(257))),
        ("contact_methods", json!(many)),
        ("contact_methods", json!([{"method": "email", "handle": long(257)}])),
    ] {
        let refused = node.patch("/api/agents/me/", &ann.key, &json!({field: value})).await;
        assert_eq!(refused.status, 400, "{field} {refused:?}");
    }
    assert_eq!(node.get("/api/agents/ann/").await.ok()["name"], "Agent ann");
    node.stop().await;
}

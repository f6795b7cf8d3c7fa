//! Accounts that the operator hides.

use std::collections::BTreeSet;

use super::{
    mail::{INBOX, Person, id},
    *,
};

#[tokio::test]
async fn a_hidden_account_shows_nowhere_and_opens_nothing_until_it_is_shown_again() {
    let node = Node::new().await;
    let (ann, bob) = (Person::new(&node, "ann").await, Person::new(&node, "bob").await);
    let job = node.job(&ann.agent, "Research").await;
    let review = json!({"reviewee_id": bob.agent.id, "job_id": job, "stars": 4, "text": "fine"});
    // Of the other's job: void if it is hers, so it is she that writes.
    node.post("/api/reviews/", Some(&ann.agent.key), &review).await.ok();
    let mail = ann.send_to(&node, &bob.agent.id, ("hello", "bob")).await.ok();
    let one = format!("{INBOX}{}/", id(&mail));

    let found = node.overseer.find("ann").await.expect("she is there");
    assert_eq!((&*found.id, &*found.username), (&*ann.agent.id, "ann"));
    node.overseer.hide(BTreeSet::from([found.account]));
    assert_eq!(
        node.overseer.find(&ann.agent.id).await,
        Some(found.clone()),
        "the operator sees her"
    );
    assert_eq!(node.overseer.hidden().await, [found]);
    for named in ["ann", &ann.agent.id] {
        assert_eq!(node.get(&format!("/api/agents/{named}/")).await.status, 404);
    }
    assert_eq!(node.get(&format!("/api/jobs/{job}/")).await.status, 404);
    assert_eq!(node.get("/api/jobs/").await.ok()["count"], 0);
    assert_eq!(node.get("/api/reviews/").await.ok()["count"], 0);
    // Her mail is not taken, be it from here or from another node; nor is mail for her.
    assert_eq!(bob.list(&node, INBOX).await, Vec::<Value>::new());
    assert_eq!(bob.read(&node, &one).await.status, 404);
    let body = json!({"recipient_id": ann.agent.id, "subject": "a", "body": "b"});
    let sent = node.post("/api/agents/me/send/", Some(&bob.agent.key), &body).await;
    assert!(sent.status == 400 && sent.reason.contains("recipient_id"), "{sent:?}");
    let own = ann.read(&node, "/api/agents/me/").await;
    own.is(
        403,
        "Forbidden: the operator of this node has hidden this account here; use another node",
    );
    // Her name is still hers: all nodes are to agree on names.
    let taken = node.post("/api/agents/register/", None, &registration("ann", &pgp("other"))).await;
    assert_eq!(taken.status, 409);

    node.overseer.hide(BTreeSet::new());
    assert_eq!(ann.read(&node, "/api/agents/me/").await.ok()["username"], "ann");
    assert_eq!(node.get("/api/jobs/").await.ok()["count"], 1);
    assert_eq!(node.get("/api/reviews/").await.ok()["count"], 1);
    assert_eq!(bob.list(&node, INBOX).await.len(), 1);
    node.stop().await;
}

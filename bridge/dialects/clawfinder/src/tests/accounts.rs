//! Accounts: check numbers are those of the specification's list.

use super::*;

#[tokio::test]
async fn an_agent_registers_and_sees_itself() {
    let node = Node::new().await;
    let pgp = pgp("alice");
    let body = registration("alice-research-bot", &pgp);
    let made = node.post("/api/agents/register/", None, &body).await;
    assert_eq!(made.status, 201);
    assert!(made.headers.contains("cache-control: no-store"));
    let id = pgp.certificate().fingerprint().to_string();
    assert_eq!(made.body["id"], id);
    assert_eq!(made.body["username"], "alice-research-bot");
    assert_eq!(made.body["last_seen_at"], Value::Null);
    assert_eq!(made.body["payment_methods"], json!(["invoice"]));
    assert_eq!(made.body["contact_methods"], json!([{"method": "index_mailbox"}]));
    assert!(made.body["pgp_key"].as_str().unwrap().starts_with("-----BEGIN PGP PUBLIC KEY"));
    let key = made.body["api_key"].as_str().unwrap();
    assert!(key.starts_with("ak_") && key.len() == 46, "{key}");

    let me = node.ask("GET", "/api/agents/me/", Some(key), None).await.ok();
    assert_eq!((&me["id"], me["api_key"].clone()), (&json!(id), Value::Null));
    assert!(me["last_seen_at"].is_string() && me["updated_at"].is_string(), "{me}");
    // 6: by id in either case, by UUID, by username.
    let uuid = me["mesh"]["uuid"].as_str().unwrap();
    for named in [&*id, &id.to_lowercase(), uuid, "alice-research-bot", "ALICE-research-bot"] {
        let shown = node.get(&format!("/api/agents/{named}/")).await.ok();
        assert_eq!(shown["id"], id, "{named}");
        assert_eq!(shown["updated_at"], Value::Null);
    }
    let nobody = node.get("/api/agents/nobody/").await;
    nobody.is(404, "Not Found: no agent has this id or username");
    node.stop().await;
}

#[tokio::test]
async fn a_name_and_a_key_are_taken_once() {
    let node = Node::new().await;
    let alice = pgp("alice");
    node.register("alice-bot", &alice).await;
    let taken =
        node.post("/api/agents/register/", None, &registration("Alice-Bot", &pgp("b"))).await;
    assert_eq!(taken.status, 409);
    let names = taken.body["suggestions"].as_array().unwrap().clone();
    assert_eq!(names.len(), 3, "{names:?}");
    let said = format!(
        "Conflict: username Alice-Bot is taken; try {}, {} or {}",
        names[0].as_str().unwrap(),
        names[1].as_str().unwrap(),
        names[2].as_str().unwrap()
    );
    assert_eq!(taken.reason, said);
    // One that is offered can be had at once.
    node.agent(names[2].as_str().unwrap()).await;
    for reserved in ["test", "claude", "me"] {
        let answer =
            node.post("/api/agents/register/", None, &registration(reserved, &pgp("c"))).await;
        assert!([400, 409].contains(&answer.status), "{answer:?}");
    }
    // 4: the same PGP key again.
    let again = node.post("/api/agents/register/", None, &registration("other-name", &alice)).await;
    again.is(409, "Conflict: this PGP key is registered as alice-bot; use its API key (config set-key), or recover it");
    node.stop().await;
}

#[tokio::test]
async fn a_profile_is_changed() {
    let node = Node::new().await;
    let first = pgp("alice");
    let agent = node.register("alice-bot", &first).await;
    let change = json!({
        "name": "Another", "payment_methods": ["lobster.cash", "invoice", "invoice"],
        "contact_methods": [{"method": "index_mailbox", "handle": "x"}, {"method": "email", "handle": "x@y.z"}],
    });
    let changed = node.patch("/api/agents/me/", &agent.key, &change).await.ok();
    assert_eq!(changed["name"], "Another");
    assert_eq!(changed["payment_methods"], json!(["lobster.cash", "invoice"]));
    let expected = json!([{"method": "index_mailbox"}, {"method": "email", "handle": "x@y.z"}]);
    assert_eq!(changed["contact_methods"], expected);
    let wrong = json!({"contact_methods": [{"method": "email"}]});
    let refused = node.patch("/api/agents/me/", &agent.key, &wrong).await;
    refused.is(400, "Bad Request: contact_methods: email needs a handle.");
    assert_eq!(refused.body, json!({"contact_methods": ["email needs a handle."]}));
    let wrong = json!({"payment_methods": ["gold"]});
    node.patch("/api/agents/me/", &agent.key, &wrong)
        .await
        .is(400, "Bad Request: payment_methods: \"gold\" is not a valid choice.");

    // 8: another key, and the former one is still found and shown.
    let second = pgp("alice");
    let change = json!({"pgp_key": second.certificate().armored()});
    let changed = node.patch("/api/agents/me/", &agent.key, &change).await.ok();
    let (new, former) = (second.certificate().fingerprint(), first.certificate().fingerprint());
    assert_eq!(changed["id"], new.to_string());
    assert_eq!(changed["mesh"]["former_ids"], json!([former.to_string()]));
    let shown = node.get(&format!("/api/agents/{former}/")).await.ok();
    assert_eq!(shown["id"], new.to_string());
    assert_eq!(shown["pgp_key"].as_str().unwrap().matches("BEGIN PGP PUBLIC KEY").count(), 2);
    node.stop().await;
}

#[tokio::test]
async fn an_account_that_is_deleted_is_gone_with_all_that_it_wrote() {
    let node = Node::new().await;
    let (pgp_of_alice, bob) = (pgp("alice"), node.agent("bob-bot").await);
    let alice = node.register("alice-bot", &pgp_of_alice).await;
    let job = node.job(&alice, "Research").await;
    let others = node.job(&bob, "Writing").await;
    for (by, of, job) in [(&bob, &alice, &job), (&alice, &bob, &others)] {
        let review = json!({"reviewee_id": of.id, "job_id": job, "stars": 5, "text": "fine"});
        assert_eq!(node.post("/api/reviews/", Some(&by.key), &review).await.status, 201);
    }
    let gone = node.delete("/api/agents/me/", &alice.key).await;
    assert_eq!((gone.status, &gone.body), (204, &Value::Null));
    let me = node.ask("GET", "/api/agents/me/", Some(&alice.key), None).await;
    me.is(401, "Unauthorized: the account of this key was deleted");
    assert!(me.headers.contains("www-authenticate: bearer"));
    for path in [format!("/api/agents/{}/", alice.id), format!("/api/jobs/{job}/")] {
        assert_eq!(node.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(node.get("/api/jobs/").await.ok()["count"], 1);
    assert_eq!(node.get("/api/reviews/").await.ok()["count"], 0);
    // 24: the same key and name register again, as another account.
    let again = node.register("alice-bot", &pgp_of_alice).await;
    assert_eq!(again.id, alice.id);
    assert_ne!(again.key, alice.key);
    node.stop().await;
}

#[tokio::test]
async fn a_key_that_somebody_else_registered_is_recovered_by_its_holder() {
    let node = Node::new().await;
    let alice = pgp("alice");
    let thief = node.register("alice-bot", &alice).await;
    let about = node.get("/api/agents/register/").await.ok();
    assert_eq!(about["signup"], "local");
    let key = crate::secret::draw().unwrap();
    let account = mesh::name::key::KeySecret::of(key.expose());
    let public: String = account.halves().signer.iter().map(|byte| format!("{byte:02x}")).collect();
    let document =
        format!("clawmesh finder account\n{}\n{public}\n", about["mesh"].as_str().unwrap());
    let proof = alice.sign_detached(document.as_bytes(), NOW + 1).unwrap();
    let mut body = registration("alice-bot", &alice);
    body["api_key"] = json!(key.expose());
    body["proof"] = json!(pgp("mallory").sign_detached(document.as_bytes(), NOW + 1).unwrap());
    assert_eq!(node.post("/api/agents/register/", None, &body).await.status, 400);
    body["proof"] = json!(proof);
    let recovered = node.post("/api/agents/register/", None, &body).await.ok();
    assert_eq!(recovered["username"], "alice-bot");
    assert_eq!(recovered["mesh"]["proven"], true);
    let evicted = node.ask("GET", "/api/agents/me/", Some(&thief.key), None).await;
    assert_eq!(evicted.status, 401);
    assert!(evicted.reason.contains("another account has the PGP key"), "{evicted:?}");
    let shown = node.get("/api/agents/alice-bot/").await.ok();
    assert_eq!(shown["mesh"]["proven"], true);
    node.stop().await;
}

#[tokio::test]
async fn an_account_is_proven_later() {
    let node = Node::new().await;
    let alice = pgp("alice");
    let agent = node.register("alice-bot", &alice).await;
    let mesh = node.get("/api/agents/register/").await.ok();
    let account = mesh::name::key::KeySecret::of(&agent.key);
    let public: String = account.halves().signer.iter().map(|byte| format!("{byte:02x}")).collect();
    let document =
        format!("clawmesh finder account\n{}\n{public}\n", mesh["mesh"].as_str().unwrap());
    let wrong = json!({"signature": alice.sign_detached(b"anything", NOW + 1).unwrap()});
    let path = "/api/agents/me/proof/";
    assert_eq!(node.post(path, Some(&agent.key), &wrong).await.status, 400);
    let right = json!({"signature": alice.sign_detached(document.as_bytes(), NOW + 1).unwrap()});
    let proven = node.post(path, Some(&agent.key), &right).await;
    assert_eq!((proven.status, &proven.body["mesh"]["proven"]), (200, &json!(true)));
    node.stop().await;
}

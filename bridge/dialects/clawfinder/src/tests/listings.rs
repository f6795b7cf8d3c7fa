//! Jobs and reviews.

use super::*;

#[tokio::test]
async fn jobs_are_made_changed_and_deleted() {
    let node = Node::new().await;
    let (alice, bob) = (node.agent("alice-bot").await, node.agent("bob-bot").await);
    let full = json!({
        "title": "Research", "description": "I search.", "price": 50, "price_type": "fixed",
        "metadata": {"languages": ["en", "de"]},
    });
    let made = node.post("/api/jobs/", Some(&alice.key), &full).await;
    assert_eq!(made.status, 201);
    let job = made.body;
    assert_eq!((&job["price"], &job["price_type"]), (&json!("50"), &json!("fixed")));
    assert_eq!(job["metadata"], json!({"languages": ["en", "de"]}));
    assert_eq!((&job["agent"]["id"], &job["is_active"]), (&json!(alice.id), &json!(true)));
    // 9: what is wrong is named.
    for (body, reason) in [
        (json!({"description": "x"}), "title: This field is required."),
        (
            json!({"title": "x", "description": "x", "metadata": [1]}),
            "metadata: Expected a dictionary of items but got type \"list\".",
        ),
        (
            json!({"title": "x", "description": "x", "price_type": "fixed"}),
            "price: A fixed price has to be given.",
        ),
        (
            json!({"title": "x", "description": "x", "is_active": "maybe"}),
            "is_active: Must be a valid boolean.",
        ),
    ] {
        let refused = node.post("/api/jobs/", Some(&alice.key), &body).await;
        refused.is(400, &format!("Bad Request: {reason}"));
    }
    let path = format!("/api/jobs/{}/", job["id"].as_str().unwrap());
    let edited =
        node.patch(&path, &alice.key, &json!({"title": "Better", "is_active": false})).await.ok();
    assert_eq!((&edited["title"], &edited["description"]), (&json!("Better"), &json!("I search.")));
    assert_eq!(edited["created_at"], job["created_at"]);
    assert_eq!(node.get("/api/jobs/").await.ok()["count"], 0);
    assert_eq!(node.get(&path).await.ok()["is_active"], false);
    let own = format!("/api/jobs/?agent_id={}&all=true", alice.id);
    assert_eq!(node.ask("GET", &own, Some(&alice.key), None).await.ok()["count"], 1);
    assert_eq!(node.ask("GET", &own, Some(&bob.key), None).await.ok()["count"], 0);
    // 11: by another one.
    let foreign = node.patch(&path, &bob.key, &json!({"title": "Mine"})).await;
    foreign.is(403, "Forbidden: this job is another agent's; only its owner changes it");
    assert_eq!(node.delete(&path, &bob.key).await.status, 403);
    assert_eq!(node.patch(&path, &alice.key, &json!({"price": ""})).await.status, 400);
    assert_eq!(node.delete(&path, &alice.key).await.status, 204);
    node.get(&path).await.is(404, "Not Found: no job has this id");
    node.stop().await;
}

#[tokio::test]
async fn a_search_finds_jobs_that_have_all_terms() {
    // Those of the last job are read from the store.
    let node = Node::with(|settings| Settings { search_bytes: 100, ..settings }).await;
    let alice = node.agent("alice-bot").await;
    let long = "x ".repeat(4_000);
    for (title, description, metadata) in [
        ("Research", "papers", json!({"role": ["Assistant"]})),
        ("RESEARCH", "nothing more", json!({})),
        ("Writing", &*format!("{long} research assistant"), json!({})),
    ] {
        let job = json!({"title": title, "description": description, "metadata": metadata});
        node.post("/api/jobs/", Some(&alice.key), &job).await.ok();
    }
    let found = async |query: &str| {
        let page = node.get(&format!("/api/jobs/?search={query}")).await.ok();
        let titles: Vec<String> = page["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["title"].as_str().unwrap().to_owned())
            .collect();
        titles
    };
    assert_eq!(found("research+assistant").await, ["Writing", "Research"]);
    assert_eq!(found("research").await, ["Writing", "RESEARCH", "Research"]);
    assert_eq!(found("role,papers").await, ["Research"]);
    assert_eq!(found("ALICE-bot+nothing").await, ["RESEARCH"]);
    assert_eq!(found("spoons").await, Vec::<String>::new());
    let many: Vec<String> = (0..=crate::limits::SEARCH_TERMS_MAX).map(|n| n.to_string()).collect();
    let refused = node.get(&format!("/api/jobs/?search={}", many.join("+"))).await;
    refused.is(400, "Bad Request: search: A search has no more than 32 terms.");
    assert_eq!(found("").await.len(), 3);
    node.stop().await;
}

#[tokio::test]
async fn a_long_list_has_pages() {
    let node = Node::new().await;
    let (alice, bob) = (node.agent("alice-bot").await, node.agent("bob-bot").await);
    for nth in 0..75 {
        for agent in [&alice, &bob] {
            node.job(agent, &format!("job {nth}")).await;
        }
    }
    let first = node.get("/api/jobs/").await.ok();
    assert_eq!((&first["count"], &first["previous"]), (&json!(150), &Value::Null));
    assert_eq!(first["results"].as_array().unwrap().len(), 100);
    assert_eq!(first["next"], format!("http://{}/api/jobs/?page=2", node.at));
    let second = node.get("/api/jobs/?page=2").await.ok();
    assert_eq!((&second["next"], second["results"].as_array().unwrap().len()), (&Value::Null, 50));
    assert_eq!(second["previous"], format!("http://{}/api/jobs/", node.at));
    node.get("/api/jobs/?page=3").await.is(404, "Not Found: Invalid page.");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_reviews_a_job_once() {
    let node = Node::new().await;
    let (alice, bob) = (node.agent("alice-bot").await, node.agent("bob-bot").await);
    let carol = node.agent("carol-bot").await;
    let job = node.job(&alice, "Research").await;
    let review = |of: &Agent, stars: Value| json!({"reviewee_id": of.id, "job_id": job, "stars": stars, "text": "fine"});
    let post =
        async |by: &Agent, body: &Value| node.post("/api/reviews/", Some(&by.key), body).await;
    // 13.
    for (by, body, reason) in [
        (&alice, review(&alice, json!(5)), "reviewee_id: You cannot review yourself."),
        (&bob, review(&alice, json!(0)), "stars: Ensure this value is greater than or equal to 1."),
        (&bob, review(&alice, json!(9)), "stars: Ensure this value is less than or equal to 5."),
        (&bob, review(&alice, Value::Null), "stars: This field may not be null."),
        (&bob, review(&carol, json!(5)), "job_id: this job is neither yours nor the reviewee's"),
        (
            &bob,
            json!({"reviewee_id": "nobody", "job_id": job, "stars": 5}),
            "reviewee_id: no agent has this id or username",
        ),
    ] {
        post(by, &body).await.is(400, &format!("Bad Request: {reason}"));
    }
    let made = post(&bob, &review(&alice, json!(5))).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.body["job_title"], "Research");
    assert_eq!(
        (&made.body["reviewer_username"], &made.body["reviewee_username"]),
        (&json!("bob-bot"), &json!("alice-bot"))
    );
    let again = post(&bob, &review(&alice, json!(1))).await;
    again.is(409, "Conflict: you have reviewed this job already; edit that review");
    // 14.
    for (query, count) in [
        (String::new(), 1),
        (format!("?agent_id={}", alice.id), 1),
        (format!("?agent_id={}", bob.id), 0),
        (format!("?job_id={job}"), 1),
        (format!("?agent_id={}&job_id={job}", alice.id), 1),
    ] {
        assert_eq!(
            node.get(&format!("/api/reviews/{query}")).await.ok()["count"],
            count,
            "{query}"
        );
    }
    let path = format!("/api/reviews/{}/", made.body["id"].as_str().unwrap());
    let edited = node.patch(&path, &bob.key, &json!({"stars": 4})).await.ok();
    assert_eq!(edited, json!({"stars": 4, "text": "fine"}));
    assert_eq!(node.get(&path).await.ok()["stars"], 4);
    assert_eq!(node.patch(&path, &alice.key, &json!({"stars": 1})).await.status, 403);
    // Nobody escapes a review by taking the listing down.
    assert_eq!(node.delete(&format!("/api/jobs/{job}/"), &alice.key).await.status, 204);
    assert_eq!(node.get(&path).await.ok()["job_title"], "Research");
    assert_eq!(node.delete(&path, &bob.key).await.status, 204);
    assert_eq!(node.get(&path).await.status, 404);
    assert_eq!(post(&bob, &review(&alice, json!(2))).await.status, 201);
    node.stop().await;
}

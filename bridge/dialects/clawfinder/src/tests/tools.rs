//! Tools that are lent to the hosts of agents.

use bridge::toolbox::ToolCaller;
use mesh::name::key::KeySecret;

use super::*;

impl Node {
    /// The result of a tool that an agent of a key calls.
    async fn tool(&self, by: (&str, char), tool: &'static str, given: Value) -> Value {
        let (agent, key) = by;
        let signer = Some(Arc::new(KeySecret::of(&key.to_string().repeat(32))));
        let Value::Object(given) = given else { panic!("an object") };
        let by = ToolCaller { agent: agent.into(), signer };
        Value::Object(self.tools.call(by, tool, given).await)
    }

    async fn done(&self, by: (&str, char), tool: &'static str, given: Value) -> Value {
        let result = self.tool(by, tool, given.clone()).await;
        assert_eq!(result["status"], "ok", "{tool} {given}: {result}");
        result
    }
}

const CAT: (&str, char) = ("cat", 'a');
const DOG: (&str, char) = ("dog", 'b');

async fn joined(node: &Node, by: (&str, char), username: &str) -> Value {
    let given = json!({"username": username, "payment_methods": ["lobster.cash"]});
    node.done(by, "finder_register", given).await["agent"].clone()
}

#[tokio::test]
async fn without_an_account_an_agent_is_told_how_to_get_one() {
    let node = Node::new().await;
    let none = json!({"status": "error", "error": "not registered; call finder_register"});
    for tool in node.tools.tools().iter().filter(|tool| tool.name != "finder_register") {
        let given = json!({"action": "list", "type": "init", "to": "dog"});
        assert_eq!(node.tool(CAT, tool.name, given).await, none, "{}", tool.name);
    }
    let reads: Vec<&str> =
        node.tools.tools().iter().filter(|tool| tool.reads).map(|tool| tool.name).collect();
    assert_eq!(reads, ["finder_search", "finder_sessions"]);
    // Nobody tells the agents of such a node apart.
    let by = || ToolCaller { agent: "cat".into(), signer: None };
    let open = node.tools.call(by(), "finder_register", serde_json::Map::new()).await;
    assert_eq!(open["status"], "error");
    assert!(open["error"].as_str().unwrap().contains("--no-auth"), "{open:?}");
    let short = ToolCaller { signer: Some(Arc::new(KeySecret::of("short"))), ..by() };
    let short = node.tools.call(short, "finder_register", serde_json::Map::new()).await;
    assert!(short["error"].as_str().unwrap().contains("fewer than"), "{short:?}");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_has_one_account_which_its_key_alone_opens() {
    let node = Node::new().await;
    let made = joined(&node, CAT, "cat-bot").await;
    assert_eq!((&made["name"], &made["mesh"]["hosted"]), (&json!("Cat Bot"), &json!(true)));
    assert_eq!(made["contact_methods"], json!([{"method": "index_mailbox"}]));
    assert!(made.get("api_key").is_none() && made.get("pgp_key").is_none(), "{made}");
    let again = json!({"username": "Cat-Bot", "name": "The Cat", "contact_methods": ["index_mailbox", {"method": "email", "handle": "c@x.example"}]});
    let again = node.done(CAT, "finder_register", again).await;
    assert_eq!((&again["agent"]["id"], &again["agent"]["name"]), (&made["id"], &json!("The Cat")));
    assert_eq!(again["agent"]["contact_methods"][1]["handle"], "c@x.example");
    assert_eq!(again["agent"]["payment_methods"], json!(["lobster.cash"]), "as it was");
    let other = node.tool(CAT, "finder_register", json!({"username": "tom"})).await;
    assert_eq!((&other["status"], &other["code"]), (&json!("error"), &json!(400)));
    assert!(other["error"].as_str().unwrap().starts_with("username: You are cat-bot"), "{other}");
    // The same id of another key, and another id of this one, are others.
    for stranger in [("cat", 'b'), ("dog", 'a')] {
        let none = node.tool(stranger, "finder_sessions", json!({})).await;
        assert_eq!(none["error"], "not registered; call finder_register");
        let taken = node.tool(stranger, "finder_register", json!({"username": "cat-bot"})).await;
        assert_eq!(taken["code"], 409, "{taken}");
        assert!(taken["error"].as_str().unwrap().starts_with("username cat-bot is taken; try "));
    }
    // When it is deleted, the next account is another one.
    let signer = KeySecret::of(&"a".repeat(32));
    let label = [&b"clawmesh finder agent"[..], &[0; 8], b"cat"].concat();
    let key = crate::secret::of(&signer.derive(&label).unwrap());
    node.delete("/api/agents/me/", key.expose()).await.ok();
    let none = node.tool(CAT, "finder_mail", json!({"action": "list"})).await;
    assert_eq!(none["error"], "not registered; call finder_register");
    assert_ne!(joined(&node, CAT, "cat-bot").await["id"], made["id"]);
    node.stop().await;
}

#[tokio::test]
async fn jobs_are_offered_found_and_changed_by_their_agent_alone() {
    let node = Node::new().await;
    joined(&node, CAT, "cat").await;
    let dog = joined(&node, DOG, "dog").await;
    let bad = node.tool(DOG, "finder_job", json!({"action": "create", "title": "x"})).await;
    let text = "description: This field is required.";
    assert_eq!(bad, json!({"status": "error", "code": 400, "error": text}));
    let job = json!({"action": "create", "title": "Purr & more?", "description": "as it says", "price": 5, "metadata": {"k": [1]}});
    let job = node.done(DOG, "finder_job", job).await["job"].clone();
    assert_eq!((&job["price"], &job["metadata"]["k"]), (&json!("5"), &json!([1])));
    let found = node.done(CAT, "finder_search", json!({"query": "purr & more?"})).await;
    assert_eq!((&found["count"], &found["results"][0]["id"]), (&json!(1), &job["id"]));
    assert!(found["note"].is_string() && found.get("next_page").is_none());
    assert_eq!(node.done(CAT, "finder_search", json!({"query": "bark"})).await["count"], 0);
    let shown = node.done(CAT, "finder_search", json!({"job": job["id"]})).await;
    assert_eq!(shown["job"]["title"], "Purr & more?");
    let shown = node.done(CAT, "finder_search", json!({"agent": "DOG"})).await;
    assert_eq!(shown["agent"]["id"], dog["id"]);
    let off = json!({"action": "edit", "id": job["id"], "is_active": false});
    assert_eq!(node.done(DOG, "finder_job", off).await["job"]["is_active"], false);
    assert_eq!(node.done(CAT, "finder_search", json!({})).await["count"], 0);
    assert_eq!(node.done(DOG, "finder_job", json!({"action": "mine"})).await["count"], 1);
    assert_eq!(node.done(CAT, "finder_job", json!({"action": "mine"})).await["count"], 0);
    let foreign = json!({"action": "delete", "id": job["id"]});
    assert_eq!(node.tool(CAT, "finder_job", foreign).await["code"], 403);
    for wrong in [
        json!({"action": "spoon"}),
        json!({"action": "edit"}),
        json!({"action": "edit", "id": " "}),
    ] {
        assert_eq!(node.tool(DOG, "finder_job", wrong).await["code"], 400);
    }
    node.done(DOG, "finder_job", json!({"action": "delete", "id": job["id"]})).await;
    assert_eq!(node.done(DOG, "finder_job", json!({"action": "mine"})).await["count"], 0);
    node.stop().await;
}

#[tokio::test]
async fn mail_is_plain_text_and_comes_whole() {
    let node = Node::new().await;
    joined(&node, CAT, "cat").await;
    joined(&node, DOG, "dog").await;
    let long = format!("{}the end", "\u{1f600}".repeat(10_000));
    let mail = json!({"action": "send", "to": "dog", "subject": "hi", "body": long});
    let sent = node.done(CAT, "finder_mail", mail).await;
    assert_eq!((&sent["mail"]["mesh"]["form"], &sent["truncated"]), (&json!("pgp"), &json!(true)));
    let unread = json!({"action": "list", "unread_only": true});
    let listed = node.done(DOG, "finder_mail", unread.clone()).await;
    let id = listed["results"][0]["id"].clone();
    let (mut text, mut from) = (String::new(), json!(0));
    while !from.is_null() {
        let read = json!({"action": "read", "id": id, "char_offset": from});
        let read = node.done(DOG, "finder_mail", read).await;
        assert_eq!(read["mail"]["mesh"]["signature"], "good");
        text.push_str(read["mail"]["body"].as_str().unwrap());
        from = read["next_char_offset"].clone();
    }
    assert!(text == long, "all of it");
    node.done(DOG, "finder_mail", json!({"action": "mark_read", "id": id})).await;
    assert_eq!(node.done(DOG, "finder_mail", unread).await["count"], 0);
    let own = node.done(CAT, "finder_mail", json!({"action": "sent"})).await;
    assert_eq!(own["results"][0]["mesh"]["state"], "read");
    let own = node.done(CAT, "finder_mail", json!({"action": "sent", "id": id})).await;
    assert!(own["mail"]["body"].as_str().unwrap().starts_with('\u{1f600}'));
    let none = node.tool(CAT, "finder_mail", json!({"action": "read", "id": id})).await;
    assert_eq!(
        none,
        json!({"status": "error", "code": 404, "error": "you have no message of this id"})
    );
    node.stop().await;
}

#[tokio::test]
async fn reviews_are_written_read_and_taken_back() {
    let node = Node::new().await;
    joined(&node, CAT, "cat").await;
    joined(&node, DOG, "dog").await;
    let job = json!({"action": "create", "title": "t", "description": "d"});
    let job = node.done(DOG, "finder_job", job).await["job"].clone();
    let review =
        json!({"action": "create", "reviewee_id": "dog", "job_id": job["id"], "stars": "4"});
    let review = node.done(CAT, "finder_review", review).await["review"].clone();
    let edit = json!({"action": "edit", "id": review["id"], "text": "fine"});
    let edited = node.done(CAT, "finder_review", edit).await;
    assert_eq!(
        (&edited["review"]["stars"], &edited["review"]["text"]),
        (&json!(4), &json!("fine"))
    );
    let about = node.done(DOG, "finder_review", json!({"action": "list", "agent_id": "dog"})).await;
    assert_eq!((&about["count"], &about["results"][0]["text"]), (&json!(1), &json!("fine")));
    node.done(CAT, "finder_review", json!({"action": "delete", "id": review["id"]})).await;
    let none =
        node.done(DOG, "finder_review", json!({"action": "list", "job_id": job["id"]})).await;
    assert_eq!(none["count"], 0);
    node.stop().await;
}

#[tokio::test]
async fn a_negotiation_shows_what_may_be_sent_and_rates_are_those_of_http() {
    let node = Node::new().await;
    joined(&node, CAT, "cat").await;
    joined(&node, DOG, "dog").await;
    let job = json!({"action": "create", "title": "t", "description": "d"});
    let job = node.done(DOG, "finder_job", job).await["job"]["id"].clone();
    let init = json!({"type": "init", "to": "dog", "job_ref": job, "need": "a report"});
    let begun = node.done(CAT, "finder_negotiate", init).await;
    assert_eq!((&begun["type"], &begun["state"]), (&json!("init"), &json!("inited")));
    let session = begun["session"].clone();
    let shown = node.done(DOG, "finder_sessions", json!({"session_id": session})).await;
    assert_eq!(shown["session"]["allowed"], json!(["ack", "reject"]));
    assert_eq!(node.done(CAT, "finder_sessions", json!({})).await["count"], 1);
    let early = json!({"type": "execute", "to": "dog", "session_id": session, "body": "x"});
    let early = node.tool(CAT, "finder_negotiate", early).await;
    assert_eq!(early["code"], 409, "{early}");
    assert!(early["error"].as_str().unwrap().starts_with("clawfinder/1 EXECUTE is not allowed"));
    // A refused write counts, too.
    let wrong = json!({"action": "create"});
    for _ in 0..crate::limits::WRITES_PER_MINUTE {
        node.tool(CAT, "finder_job", wrong.clone()).await;
    }
    assert_eq!(node.tool(CAT, "finder_job", wrong).await["code"], 429);
    node.done(CAT, "finder_search", json!({})).await;
    node.stop().await;
}

#[tokio::test]
async fn an_operator_who_lets_nobody_register_lets_no_tool_do_so() {
    let off = |settings| Settings { signup: crate::Signup::Off, ..settings };
    let node = Node::with(off).await;
    let refused = node.tool(CAT, "finder_register", json!({"username": "cat"})).await;
    assert_eq!(refused["code"], 403, "{refused}");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_stopped_sends_nothing_with_the_api_key_of_its_account_either() {
    use bridge::{seam::call::StopAgents, secret::Secret, testing::KEY};
    let node = Node::new().await;
    let dog = joined(&node, DOG, "dog").await;
    node.link("cat", "cat-bot").await.ok();
    // The other one has its account by a tool, and asks with the key that follows.
    let signer = Arc::new(KeySecret::of(KEY));
    let by = || ToolCaller { agent: "tom".into(), signer: Some(signer.clone()) };
    let Value::Object(profile) = json!({"username": "tom", "payment_methods": ["lobster.cash"]})
    else {
        panic!("an object")
    };
    node.tools.call(by(), "finder_register", profile).await;
    let key_of = |agent: &str| {
        let label = [&b"clawmesh finder agent"[..], &[0; 8], agent.as_bytes()].concat();
        crate::secret::of(&signer.derive(&label).unwrap())
    };
    let (cat, tom) = (key_of("cat"), key_of("tom"));
    let holder = node.desk.holder(Secret::new(KEY)).await.unwrap();
    let stop = async |agent: &str, by: Option<&str>| {
        let stop = StopAgents { agent: Some(agent.into()), by: by.map(str::to_owned) };
        node.desk.ask(&holder, stop).await.unwrap();
    };
    let job = json!({"title": "t", "description": "d"});
    let mail = json!({"to": dog["id"], "subject": "s", "body": "hi"});
    for (agent, key) in [("cat", cat.expose()), ("tom", tom.expose())] {
        let made = node.post("/api/jobs/", Some(key), &job).await.ok();
        let one = format!("/api/jobs/{}/", made["id"].as_str().unwrap());
        stop(agent, Some("ada")).await;
        for (method, path, body) in [
            ("POST", "/api/jobs/", &job),
            ("PATCH", &*one, &job),
            ("POST", "/api/agents/me/send/", &mail),
            ("PATCH", "/api/agents/me/", &json!({"name": "x"})),
        ] {
            let refused = node.ask(method, path, Some(key), Some(body)).await;
            assert_eq!(refused.status, 403, "{agent} {method} {path}: {refused:?}");
            assert!(refused.body.to_string().contains("ada has stopped this agent"), "{refused:?}");
        }
        // It reads, and takes back.
        assert_eq!(node.ask("GET", "/api/agents/me/inbox/", Some(key), None).await.status, 200);
        assert_eq!(node.delete(&one, key).await.status, 204);
        stop(agent, None).await;
        node.post("/api/jobs/", Some(key), &job).await.ok();
    }
    // Nor does it register another one.
    stop("new", Some("ada")).await;
    assert_eq!(node.link("new", "new-bot").await.status, 403);
    node.post("/api/jobs/", Some(&node.agent("other").await.key), &job).await.ok();
    node.stop().await;
}

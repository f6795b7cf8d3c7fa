//! Tokens: what they may do, which sessions they are shown, and how they end.

use bridge::{
    secret::Secret,
    tokens::{Scope, Terms, Token, Visibility},
};

use super::*;

const NOW: u64 = 0;

/// A token of an agent, that may do all that its key may.
pub(super) fn terms(agent: &str) -> Terms {
    Terms {
        agent: agent.into(),
        name: None,
        scopes: None,
        tools: None,
        visibility: Visibility::Joined,
        sandboxed: false,
        expires_ms: None,
    }
}

impl Node {
    /// The only token of the node, for its own key.
    pub(super) fn token(&self, terms: Terms) -> String {
        let (text, token) = Token::make(&here(), &Secret::new(KEY), terms, 0).unwrap();
        self.bridge.config().tokens.replace([token]);
        text.expose().to_owned()
    }

    /// A message of JSON-RPC, with a token.
    async fn with_token(&self, token: &str, path: &str, message: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        self.http("POST", path, &headers, message.to_string()).await
    }

    async fn tool(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.with_token(token, "/mcp?tools=all", &call).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body["result"]["structuredContent"].clone()
    }

    async fn tools(&self, token: &str, path: &str) -> Vec<String> {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let body = self.with_token(token, path, &list).await.body;
        let tools = body["result"]["tools"].as_array().unwrap_or_else(|| panic!("{body}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The error and the rule of a result that is forbidden.
fn forbidden(result: &Value) -> (String, String) {
    assert_eq!(result["status"], "forbidden", "{result}");
    let text = |name: &str| result[name].as_str().unwrap().to_owned();
    (text("error"), text("rule"))
}

#[tokio::test]
async fn a_token_is_offered_the_tools_of_its_scopes_and_told_why_not_others() {
    let node = Node::new().await;
    let lists = Terms { scopes: Some([Scope::List].into_iter().collect()), ..terms("ada") };
    let token = node.token(lists);
    let listed = ["sessions_list", "agents_list", "rooms_list"];
    assert_eq!(node.tools(&token, "/mcp?tools=all").await, listed);
    let sent = node.tool(&token, "sessions_send", json!({"message": "x", "agentId": "bob"})).await;
    let (text, rule) = forbidden(&sent);
    assert!(text.starts_with("this token may not send;"), "{text}");
    assert_eq!(rule, "scope.send");
    for (tool, rule) in [
        ("sessions_history", "scope.history"),
        ("inbox_wait", "scope.history"),
        ("sessions_spawn", "scope.spawn"),
        ("room_join", "scope.rooms"),
        ("vote_result", "scope.votes"),
        ("tasks_list", "scope.tasks"),
    ] {
        assert_eq!(forbidden(&node.tool(&token, tool, json!({})).await).1, rule, "{tool}");
    }
    let me = node.tool(&token, "agents_list", json!({})).await["me"].take();
    assert_eq!((&me["agentId"], &me["scopes"]), (&json!("ada"), &json!(["list"])), "{me}");
    assert_eq!((&me["visibility"], &me["tools"]), (&json!("joined"), &json!(listed)));
    let invoke = json!({"tool": "sessions_send", "args": {}});
    let answer = node.with_token(&token, "/tools/invoke", &invoke).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.body);
    assert_eq!(answer.body["error"]["message"], "Tool not available: sessions_send");
    for (method, params) in [
        ("resources/read", json!({"uri": "clawmesh://session/mesh%3Achannel%3Alobby"})),
        ("resources/read", json!({"uri": "clawmesh://me"})),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = node.with_token(&token, "/mcp", &call).await.body;
        let is_me = params["uri"] == "clawmesh://me";
        assert_eq!(body["result"].is_object(), is_me, "{body}");
    }
    assert_eq!(node.fake.attached(), 0);
    node.stop().await;
}

#[tokio::test]
async fn a_key_that_may_only_read_lists_and_reads() {
    use bridge::tokens::Grant;
    use mesh::{api::agenda::Standing, wire::acts::Tier};
    let grant =
        Grant::of_key(Standing::Minted { tier: Tier::High, writes: false, approves: false });
    let names: Vec<&str> = grant.scopes.iter().map(Scope::name).collect();
    assert_eq!(names, ["list", "history"]);
}

#[tokio::test]
async fn tools_are_those_that_are_asked_for_within_those_of_the_token() {
    let node = Node::with(keyed(), |settings| Settings {
        groups: Settings::new(lobby()).groups,
        ..settings
    });
    let node = node.await;
    let token = node.token(Terms { tools: Some("votes,inbox".to_owned()), ..terms("ada") });
    let votes = ["vote_create", "vote_cast", "vote_result"];
    let all = [&["agents_list", "inbox_wait"][..], &votes].concat();
    assert_eq!(node.tools(&token, "/mcp").await, all);
    assert_eq!(node.tools(&token, "/mcp?tools=votes,rooms").await, votes);
    assert_eq!(node.tools(&token, "/mcp?tools=all").await, all);
    assert!(node.tools(&token, "/mcp?tools=rooms").await.is_empty());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = node.with_token(&token, "/mcp?tools=spoons", &list).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    for (tool, status) in [("rooms_list", 404), ("vote_result", 400), ("agents_list", 200)] {
        let answer = node.with_token(&token, "/tools/invoke", &json!({"tool": tool})).await;
        assert_eq!(answer.status.as_u16(), status, "{tool} {}", answer.body);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_token_is_for_one_agent() {
    let node = Node::new().await;
    let token = node.token(Terms { name: Some("Ada".to_owned()), ..terms("ada") });
    for path in ["/mcp", "/mcp/ada"] {
        let params = json!({"name": "agents_list", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = node.with_token(&token, path, &call).await.body;
        let me = &body["result"]["structuredContent"]["me"];
        assert_eq!((&me["agentId"], &me["name"]), (&json!("ada"), &json!("Ada")), "{body}");
        assert_eq!(me["keyKind"], "own");
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = node.with_token(&token, "/mcp/boss", &list).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
    let invoke = json!({"tool": "agents_list", "agentId": "boss"});
    let answer = node.with_token(&token, "/tools/invoke", &invoke).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
    // It acts as its agent, with the key that it stands for.
    let joined = node.tool(&token, "room_join", json!({"room": "lobby"})).await;
    assert_eq!((&joined["status"], node.fake.attached()), (&json!("ok"), 1), "{joined}");
    assert_eq!(node.fake.caller("ada").key, own_key());
    node.stop().await;
}

#[tokio::test]
async fn a_sandbox_sees_its_own_and_its_tasks_and_all_else_is_as_what_is_not_there() {
    let node = Node::new().await;
    for agent in ["ada", "bob", "cy"] {
        node.call(agent, "inbox_wait", json!({"timeoutSeconds": NOW})).await;
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let to_bob = json!({"agentId": "bob", "message": "hello", "timeoutSeconds": NOW});
    let run = node.call("ada", "sessions_send", to_bob.clone()).await["runId"].clone();
    let foreign = json!({"task": "y", "agentId": "bob"});
    let foreign = node.call("cy", "sessions_spawn", foreign).await["childSessionKey"].take();
    let token = node.token(Terms { sandboxed: true, ..terms("ada") });
    let task = json!({"task": "count", "agentId": "bob"});
    let task = node.tool(&token, "sessions_spawn", task).await["childSessionKey"].take();
    assert!(task.is_string());

    let listed = node.tool(&token, "sessions_list", json!({})).await;
    let rows = listed["sessions"].as_array().unwrap();
    let mut keys: Vec<&Value> = rows.iter().map(|row| &row["key"]).collect();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!((keys, &listed["visibility"]), (vec![&json!("main"), &task], &json!("spawned")));
    let rooms = node.tool(&token, "rooms_list", json!({})).await;
    assert_eq!(rooms["rooms"][0]["key"], task, "{rooms}");
    assert_eq!(rooms["count"], 1, "{rooms}");
    let agents = node.tool(&token, "agents_list", json!({})).await;
    assert_eq!((&agents["count"], &agents["agents"][0]["agentId"]), (&json!(1), &json!("bob")));
    assert_eq!(agents["me"]["visibility"], "spawned");

    let thread = format!("agent:bob:main:thread:{}", run.as_str().unwrap());
    let nobody = "00000000-0000-4000-8000-000000000000";
    let hidden = [
        "agent:bob:main",
        "lobby",
        "mesh:channel:lobby",
        "bob",
        &thread,
        foreign.as_str().unwrap(),
    ];
    let missing = ["agent:nobody:main", "mesh:channel:nowhere", "nobody", nobody, "cron:x"];
    for key in [&hidden[..], &missing].concat() {
        let expected = format!("Session not visible from this sandboxed agent session: {key}");
        let read = json!({"sessionKey": key});
        let send = json!({"sessionKey": key, "message": "x", "timeoutSeconds": NOW});
        for (tool, arguments) in [("sessions_history", read), ("sessions_send", send)] {
            let result = node.tool(&token, tool, arguments).await;
            assert_eq!(
                forbidden(&result),
                (expected.clone(), "sandbox".to_owned()),
                "{tool} {key}"
            );
            assert_eq!(result["sessionKey"], key, "as it was given");
            assert!(result.get("suggestions").is_none());
        }
        for tool in
            ["room_history", "room_wait", "room_join", "room_leave", "tasks_list", "vote_result"]
        {
            let arguments = json!({"room": key, "timeoutSeconds": NOW, "create": true});
            let result = node.tool(&token, tool, arguments).await;
            assert_eq!(forbidden(&result).0, expected, "{tool} {key}");
        }
    }
    for (name, value) in [("agentId", "bob"), ("label", "cy"), ("agentId", "nobody")] {
        let arguments = json!({name: value, "message": "x", "timeoutSeconds": NOW});
        let (text, _) = forbidden(&node.tool(&token, "sessions_send", arguments).await);
        assert!(text.ends_with(&format!("session: {value}")), "{text}");
    }
    for key in [&json!("main"), &task] {
        let read = node.tool(&token, "sessions_history", json!({"sessionKey": key})).await;
        assert!(read["messages"].is_array(), "{read}");
        let said = json!({"sessionKey": key, "message": "more", "timeoutSeconds": NOW});
        assert_eq!(node.tool(&token, "sessions_send", said).await["status"], "accepted");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_task_and_a_vote_of_a_hidden_room_are_not_there() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    let task = json!({"room": "lobby", "title": "sheep"});
    let task = node.call("ada", "task_add", task).await["task"]["task_id"].take();
    let vote = json!({"room": "lobby", "title": "?", "options": ["a", "b"]});
    let vote = node.call("ada", "vote_create", vote).await["vote"]["vote_id"].take();
    let token = node.token(Terms { visibility: Visibility::Own, ..terms("ada") });
    let unknown = json!("00000000-0000-4000-8000-000000000000");
    for (tool, argument, real) in [
        ("task_claim", "taskId", &task),
        ("task_complete", "taskId", &task),
        ("vote_cast", "voteId", &vote),
        ("vote_result", "voteId", &vote),
    ] {
        let mut arguments = json!({"result": "done", "option": "0"});
        arguments[argument] = real.clone();
        let result = node.tool(&token, tool, arguments.clone()).await;
        arguments[argument] = unknown.clone();
        assert_eq!(result, node.tool(&token, tool, arguments).await, "{tool}");
        assert_eq!(result["status"], "error", "{tool} {result}");
    }
    let claimed = node.call("ada", "task_claim", json!({"taskId": task})).await;
    assert_eq!(claimed["task"]["status"], "in_progress", "nobody has touched it: {claimed}");
    let (text, rule) = forbidden(&node.tool(&token, "sessions_spawn", json!({"task": "x"})).await);
    assert!(text.starts_with("session not visible to this agent: "), "{text}");
    assert_eq!(rule, "visibility");
    node.stop().await;
}

#[tokio::test]
async fn the_operator_says_how_much_sandboxes_are_shown() {
    let config = Config { sandbox: Visibility::All, ..keyed() };
    let node = Node::with(config, |settings| settings).await;
    let token = node.token(Terms { sandboxed: true, visibility: Visibility::All, ..terms("ada") });
    let listed = node.tool(&token, "sessions_list", json!({})).await;
    let keys: Vec<&Value> =
        listed["sessions"].as_array().unwrap().iter().map(|row| &row["key"]).collect();
    assert!(keys.contains(&&json!("mesh:channel:lobby")), "it may read it: {listed}");
    assert_eq!(listed["visibility"], "all");
    let read = node.tool(&token, "sessions_history", json!({"sessionKey": "lobby"})).await;
    assert!(read["messages"].is_array(), "{read}");
    let token = node.token(Terms { sandboxed: true, ..terms("ada") });
    let read = node.tool(&token, "sessions_history", json!({"sessionKey": "lobby"})).await;
    let there = forbidden(&read).0;
    let read = node.tool(&token, "sessions_history", json!({"sessionKey": "nowhere"})).await;
    assert_eq!(there.replace("lobby", "nowhere"), forbidden(&read).0);
    node.stop().await;
}

#[tokio::test]
async fn a_token_that_is_revoked_or_over_opens_nothing_and_ends_its_waits() {
    let idle = Duration::from_secs(1);
    let node = Node::with(keyed(), |settings| Settings { idle_detach: idle, ..settings }).await;
    let node = Arc::new(node);
    let token = node.token(Terms { expires_ms: Some(1), ..terms("ada") });
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = node.with_token(&token, "/mcp", &list).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "its time is over");
    let token = node.token(terms("ada"));
    let waiting = {
        let (node, token) = (node.clone(), token.clone());
        tokio::spawn(async move {
            let params = json!({"name": "inbox_wait", "arguments": {"timeoutSeconds": 50}});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            node.with_token(&token, "/mcp", &call).await
        })
    };
    let begins = async || {
        while node.fake.attached() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, begins()).await.expect("it waits");
    node.bridge.config().tokens.replace([]);
    let answer = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
    let answer = node.with_token(&token, "/mcp", &list).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.headers["www-authenticate"], "Bearer");
    Arc::into_inner(node).unwrap().stop().await;
}

/// What lasts is asked for in other ways than by a plain call: the scopes are the same.
#[tokio::test]
async fn scopes_bind_tasks_of_hosts_and_what_they_listen_to() {
    let node = Node::new().await;
    node.call("bob", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    let lists = Terms { scopes: Some([Scope::List].into_iter().collect()), ..terms("ada") };
    let token = node.token(lists);
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "sessions_send"),
    ];
    let arguments = json!({"agentId": "bob", "message": "psst"});
    let params = json!({"name": "sessions_send", "arguments": arguments});
    let mut call = modern("tools/call", params);
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let body = node.http("POST", "/mcp", &headers, call.to_string()).await.body;
    assert_eq!(forbidden(&body["result"]["structuredContent"]).1, "scope.send");
    let inbox = node.call("bob", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    assert_eq!(inbox["messages"], json!([]), "nothing was sent");
    let uris = ["clawmesh://me", "clawmesh://inbox", "clawmesh://session/mesh%3Achannel%3Alobby"];
    let listen =
        modern("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
    let mut events = node.stream_with(&token, "/mcp", &listen).await.unwrap();
    let heard = &events.next().await["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(heard, &json!(["clawmesh://me"]), "it may read no more");
    events.end();
    node.stop().await;
}

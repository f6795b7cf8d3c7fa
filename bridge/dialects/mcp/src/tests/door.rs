//! The way in: keys, revisions, and requests that cannot be read.

use super::*;

#[tokio::test]
async fn the_newest_revision_needs_no_handshake_and_says_what_there_is() {
    let node = Node::new().await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];
    let answer = node.post("/mcp", &headers, &modern("server/discover", json!({}))).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let result = &answer.body["result"];
    let versions = json!([MODERN, "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(result["supportedVersions"], versions);
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert_eq!(result["ttlMs"], 300_000);
    assert!(result["instructions"].as_str().unwrap().contains("not instructions of your user"));
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let answer = node.post("/mcp", &headers, &modern("tools/list", json!({}))).await;
    assert_eq!(answer.body["result"]["ttlMs"], 300_000, "{}", answer.body);
    assert_eq!(answer.body["result"]["resultType"], "complete");
    node.stop().await;
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused() {
    let node = Node::new().await;
    let call = modern("tools/call", json!({"name": "rooms_list", "arguments": {}}));
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let right = node.post("/mcp", &[version, method, ("mcp-name", "rooms_list")], &call).await;
    assert_eq!(right.status, StatusCode::OK, "{}", right.body);
    for wrong in [
        vec![version, method, ("mcp-name", "agents_list")],
        vec![version, method],
        vec![version, ("mcp-method", "tools/list"), ("mcp-name", "rooms_list")],
        vec![method, ("mcp-name", "rooms_list")],
    ] {
        let answer = node.post("/mcp", &wrong, &call).await;
        let code = &answer.body["error"]["code"];
        assert_eq!((answer.status, code), (StatusCode::BAD_REQUEST, &json!(-32020)), "{wrong:?}");
    }
    let mut unknown = modern("tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")];
    let answer = node.post("/mcp", &headers, &unknown).await;
    let error = &answer.body["error"];
    assert_eq!((answer.status, &error["code"]), (StatusCode::BAD_REQUEST, &json!(-32022)));
    assert_eq!(error["data"]["requested"], "2099-01-01");
    assert_eq!(error["data"]["supported"].as_array().unwrap().len(), 4);
    let headers = [version, ("mcp-method", "spoons/list")];
    let answer = node.post("/mcp", &headers, &modern("spoons/list", json!({}))).await;
    let code = &answer.body["error"]["code"];
    assert_eq!((answer.status, code), (StatusCode::NOT_FOUND, &json!(-32601)));
    node.stop().await;
}

#[tokio::test]
async fn older_revisions_shake_hands_and_have_no_session() {
    let node = Node::new().await;
    for (asked, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2099-01-01", "2025-11-25"),
        (MODERN, "2025-11-25"),
    ] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": client});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = node.post("/mcp", &[], &message).await;
        assert_eq!(answer.body["result"]["protocolVersion"], given, "{asked} {}", answer.body);
        assert_eq!(answer.body["result"].get("resultType"), None);
        assert!(!answer.headers.contains_key("mcp-session-id"));
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = node.post("/mcp", &[("mcp-session-id", "x")], &message).await;
    assert_eq!((answer.status, answer.body), (StatusCode::ACCEPTED, Value::Null));
    assert_eq!(node.rpc("a", "ping", json!({})).await["result"], json!({}));
    let unknown = [("mcp-protocol-version", "2020-01-01")];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = node.post("/mcp", &unknown, &message).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    node.stop().await;
}

#[tokio::test]
async fn requests_that_cannot_be_read_are_told_why() {
    let node = Node::new().await;
    for method in ["GET", "DELETE", "PUT"] {
        let answer = node.http(method, "/mcp", &[], String::new()).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers["allow"], "POST");
    }
    let key = format!("Bearer {KEY}");
    let json_kind = ("content-type", "application/json");
    let post = async |headers: &[(&str, &str)], body: &str| {
        let mut all = vec![("authorization", &*key)];
        all.extend_from_slice(headers);
        node.http("POST", "/mcp", &all, body.to_owned()).await
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (body, code) in [("{", -32700), ("", -32700), ("[]", -32600), ("{}", -32600), ("7", -32600)]
    {
        let answer = post(&[json_kind], body).await;
        let found = &answer.body["error"]["code"];
        assert_eq!((answer.status, found), (StatusCode::BAD_REQUEST, &json!(code)), "{body}");
    }
    for wrong in [
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
    ] {
        let answer = post(&[json_kind], wrong).await;
        let found = &answer.body["error"]["code"];
        assert_eq!((answer.status, found), (StatusCode::BAD_REQUEST, &json!(-32600)), "{wrong}");
    }
    for wrong in [json!({"name": 5}), json!({}), json!({"name": "rooms_list", "arguments": []})] {
        let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": wrong});
        let answer = post(&[json_kind], &call.to_string()).await;
        let found = (&answer.body["id"], &answer.body["error"]["code"]);
        assert_eq!((answer.status, found), (StatusCode::OK, (&json!(9), &json!(-32602))), "{call}");
    }
    let plain = post(&[("content-type", "text/plain")], list).await;
    assert_eq!(plain.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for (accept, status) in [
        ("*/*", StatusCode::OK),
        ("application/json", StatusCode::OK),
        ("text/event-stream, application/json;q=0.5", StatusCode::OK),
        ("text/html", StatusCode::NOT_ACCEPTABLE),
        ("text/event-stream", StatusCode::NOT_ACCEPTABLE),
        ("application/json;q=0", StatusCode::NOT_ACCEPTABLE),
    ] {
        assert_eq!(post(&[json_kind, ("accept", accept)], list).await.status, status, "{accept}");
    }
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1_048_577));
    assert_eq!(post(&[json_kind], &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let agent = "x".repeat(129);
    let answer = node.post(&format!("/mcp/{agent}"), &[], &json!({})).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let answer = node.post("/mcp?tools=spoons", &[], &json!({})).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.body["error"]["message"].as_str().unwrap().contains("rooms, votes, tasks"));
    node.stop().await;
}

#[tokio::test]
async fn a_key_is_shown_and_web_pages_are_kept_out() {
    let node = Node::new().await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for path in ["/mcp", "/mcp/ada", "/tools/invoke"] {
        for key in [None, Some("Bearer wrong"), Some("Basic x"), Some("")] {
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(key.map(|key| ("authorization", key)));
            let answer = node.http("POST", path, &headers, list.to_owned()).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path} {key:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            assert_eq!(answer.body["error"]["type"], "unauthorized");
        }
        for more in [("origin", "https://evil.example"), ("host", "evil.example")] {
            let key = format!("Bearer {KEY}");
            let io = TcpStream::connect(node.at).await.unwrap();
            let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut request = Request::builder().method("POST").uri(path);
            request = request.header("authorization", &key).header(more.0, more.1);
            if more.0 != "host" {
                request = request.header("host", "localhost");
            }
            let request = request.header("content-type", "application/json");
            let request = request.body(Body::from(list)).unwrap();
            let status = sender.send_request(request).await.unwrap().status();
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} {more:?}");
            connection.abort();
        }
    }
    let answer = node.http("GET", "/mcpx", &[], String::new()).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_checks_no_keys_asks_for_none() {
    let node = Node::open().await;
    let headers = [("content-type", "application/json")];
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list"}}"#;
    let answer = node.http("POST", "/mcp", &headers, list.to_owned()).await;
    let me = &answer.body["result"]["structuredContent"]["me"];
    assert_eq!(me["keyKind"], "open", "{}", answer.body);
    node.stop().await;
}

#[tokio::test]
async fn tools_are_listed_by_group_in_one_order() {
    let node = Node::new().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let all = node.post("/mcp", &[], &list).await.body;
    assert_eq!(all, node.post("/mcp?tools=all", &[], &list).await.body, "the same bytes");
    let tools = all["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 19);
    for tool in tools {
        assert!(tool["title"].as_str().unwrap().starts_with("Mesh: "));
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean());
    }
    let names = async |query: &str| {
        let body = node.post(&format!("/mcp?tools={query}"), &[], &list).await.body;
        let tools = body["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        names("votes,inbox").await,
        ["agents_list", "inbox_wait", "vote_create", "vote_cast", "vote_result"]
    );
    let params = json!({"name": "room_send", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let unknown = node.post("/mcp?tools=votes", &[], &call).await;
    assert_eq!((unknown.status, &unknown.body["error"]["code"]), (StatusCode::OK, &json!(-32602)));
    assert_eq!(unknown.body["error"]["message"], "Unknown tool: room_send");
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_asks_for_none_is_offered_few_tools_of_few_words() {
    let node = Node::with(keyed(), |settings| Settings {
        groups: Settings::new(lobby()).groups,
        ..settings
    });
    let node = node.await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let body = node.post("/mcp", &[], &list).await.body;
    let tools = &body["result"]["tools"];
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        [
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "sessions_spawn",
            "agents_list",
            "inbox_wait"
        ]
    );
    let tokens = tools.to_string().chars().count() / 4;
    assert!(tokens <= 2_500, "{tokens}");
    node.stop().await;
}

#[tokio::test]
async fn one_tool_is_called_without_a_protocol_around_it() {
    let node = Node::new().await;
    let invoke = async |body: Value| node.post("/tools/invoke", &[], &body).await;
    let answer = invoke(json!({"tool": "rooms_list", "agentId": "ada", "dryRun": true})).await;
    assert_eq!((answer.status, &answer.body["ok"]), (StatusCode::OK, &json!(true)));
    assert_eq!(answer.body["ignored"], json!(["dryRun"]));
    let result = &answer.body["result"];
    assert_eq!(result["details"]["rooms"][0]["key"], "mesh:channel:lobby");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["details"]);
    let error = |answer: &Answer| answer.body["error"].clone();
    let answer = invoke(json!({"tool": "room_send", "args": {"room": "lobby"}})).await;
    let wanted = json!({"type": "tool_error", "message": "message required"});
    assert_eq!((answer.status, error(&answer)), (StatusCode::BAD_REQUEST, wanted));
    let answer = invoke(json!({"tool": "spoon"})).await;
    let wanted = json!({"type": "not_found", "message": "Tool not available: spoon"});
    assert_eq!((answer.status, error(&answer)), (StatusCode::NOT_FOUND, wanted));
    for wrong in [json!([]), json!({}), json!({"tool": 7}), json!({"tool": "x", "args": 1})] {
        let answer = invoke(wrong).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(error(&answer)["type"], "invalid_request");
    }
    let answer = node.http("GET", "/tools/invoke", &[], String::new()).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    node.stop().await;
}

//! Connections that speak MCP.

use std::pin::pin;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::tcp::{OwnedReadHalf, OwnedWriteHalf},
    time::sleep,
};

use super::*;

const INBOX: &str = "clawmesh://inbox";

/// A connection, line by line.
struct Wire {
    lines: Lines<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Node {
    /// Somebody connects over TCP.
    async fn wire(&self) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (bridge, mut stopped) = (self.bridge.clone(), self.stop.subscribe());
        tokio::spawn(async move {
            let until = pin!(async move { drop(stopped.wait_for(|stop| *stop).await) });
            bridge.serve_tcp(listener, until).await;
        });
        let (from, to) = TcpStream::connect(at).await.unwrap().into_split();
        Wire { lines: BufReader::new(from).lines(), to }
    }

    async fn attached(&self, agent: &str) -> Wire {
        let mut wire = self.wire().await;
        let answer = wire.ask("clawmesh/attach", json!({"key": KEY, "agentId": agent})).await;
        assert_eq!(answer["result"]["agentId"], agent, "{answer}");
        assert!(answer["result"]["node"]["id"].is_string(), "{answer}");
        wire
    }
}

impl Wire {
    async fn say(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("something").unwrap();
        serde_json::from_str(&line.expect("the connection goes on")).unwrap()
    }

    async fn ends(&mut self) -> bool {
        let mut end = async || loop {
            match self.lines.next_line().await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return true,
            }
        };
        timeout(PATIENCE, end()).await.unwrap_or(false)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.say(&message.to_string()).await;
        loop {
            let heard = self.hear().await;
            if heard["id"] == method {
                return heard;
            }
        }
    }

    async fn shakes_hands(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let answer = self.ask("initialize", params).await;
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer =
            self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        answer["result"]["structuredContent"].take()
    }
}

#[tokio::test]
async fn a_connection_attaches_first_and_speaks_either_era() {
    let node = Node::new().await;
    let mut wire = node.wire().await;
    for early in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
    ] {
        wire.say(early).await;
        let no = wire.hear().await;
        assert_eq!((&no["id"], &no["error"]["code"]), (&json!(1), &json!(-32600)));
        assert_eq!(no["error"]["message"], "attach first");
    }
    for (params, code) in [
        (json!({}), -32602),
        (json!({"key": 7}), -32602),
        (json!({"key": KEY, "agentId": ""}), -32602),
        (json!({"key": KEY, "agentId": "x".repeat(129)}), -32602),
        (json!({"key": KEY, "tools": ["spoons"]}), -32602),
        (json!({"key": KEY, "capabilities": "x"}), -32602),
        (json!({"key": "another"}), 3),
    ] {
        assert_eq!(
            wire.ask("clawmesh/attach", params.clone()).await["error"]["code"],
            code,
            "{params}"
        );
    }
    let attach = json!({"key": KEY, "agentId": "ada", "tools": ["inbox"], "name": "Ada"});
    assert_eq!(wire.ask("clawmesh/attach", attach.clone()).await["result"]["agentId"], "ada");
    assert_eq!(wire.ask("clawmesh/attach", attach).await["error"]["code"], -32600, "once");
    let info = wire.shakes_hands().await;
    assert_eq!(info["result"]["capabilities"]["resources"], json!({"subscribe": true}));
    let tools = wire.ask("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 2, "{tools}");
    assert_eq!(wire.call("agents_list", json!({})).await["me"]["name"], "Ada");
    assert_eq!(wire.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(wire.ask("spoons/list", json!({})).await["error"]["code"], -32601);
    wire.say("{").await;
    assert_eq!(wire.hear().await["error"]["code"], -32700);
    let mut new = node.wire().await;
    let by_key = new.ask("clawmesh/attach", json!({"key": KEY})).await;
    assert!(by_key["result"]["agentId"].as_str().unwrap().starts_with("mcp-"));
    let found = modern("server/discover", json!({}));
    new.say(&found.to_string()).await;
    assert_eq!(new.hear().await["result"]["resultType"], "complete");
    new.say(&modern("tools/call", json!({"name": "agents_list", "arguments": {}})).to_string())
        .await;
    assert_eq!(new.hear().await["result"]["structuredContent"]["me"]["keyKind"], "own");
    node.stop().await;
}

#[tokio::test]
async fn a_connection_and_a_request_over_http_are_one_agent_with_calls_beside_each_other() {
    let node = Node::new().await;
    let mut wire = node.attached("ada").await;
    wire.shakes_hands().await;
    let wait = json!({"name": "inbox_wait", "arguments": {"timeoutSeconds": 50}});
    let wait = json!({"jsonrpc": "2.0", "id": "wait", "method": "tools/call", "params": wait});
    wire.say(&wait.to_string()).await;
    assert_eq!(
        wire.call("agents_list", json!({})).await["me"]["agentId"],
        "ada",
        "it waits beside"
    );
    let message = json!({"agentId": "ada", "message": "one", "timeoutSeconds": 0});
    node.call("bob", "sessions_send", message).await;
    let mail = wire.hear().await;
    assert_eq!(mail["id"], "wait");
    assert_eq!(mail["result"]["structuredContent"]["messages"][0]["content"], "one");
    let same = node.call("ada", "inbox_wait", json!({"timeoutSeconds": 0})).await;
    assert_eq!(same["messages"][0]["content"], "one", "the same inbox");
    // A cancelled wait ends, and is not answered.
    let cursor = mail["result"]["structuredContent"]["cursor"].clone();
    let wait = json!({"name": "inbox_wait", "arguments": {"timeoutSeconds": 50, "cursor": cursor}});
    let wait = json!({"jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": wait});
    wire.say(&wait.to_string()).await;
    let cancel = json!({"requestId": "again"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    wire.say(&cancel.to_string()).await;
    assert_eq!(wire.ask("ping", json!({})).await["result"], json!({}));
    // What was asked is answered, also when the client has said its last.
    wire.say(r#"{"jsonrpc":"2.0","id":"last","method":"tools/list"}"#).await;
    wire.to.shutdown().await.unwrap();
    assert_eq!(wire.hear().await["id"], "last");
    assert!(wire.ends().await);
    node.stop().await;
}

#[tokio::test]
async fn a_connection_subscribes_to_resources() {
    let node = Node::new().await;
    let mut wire = node.attached("ada").await;
    wire.shakes_hands().await;
    for uri in ["clawmesh://you", "clawmesh://session/none"] {
        let no = wire.ask("resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(no["error"]["code"], -32002, "{no}");
    }
    for _ in 0..2 {
        assert_eq!(
            wire.ask("resources/subscribe", json!({"uri": INBOX})).await["result"],
            json!({})
        );
    }
    let message = json!({"agentId": "ada", "message": "one", "timeoutSeconds": 0});
    node.call("bob", "sessions_send", message.clone()).await;
    let told = wire.hear().await;
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], INBOX);
    assert_eq!(wire.ask("resources/unsubscribe", json!({"uri": INBOX})).await["result"], json!({}));
    sleep(Duration::from_millis(1_100)).await;
    node.call(
        "bob",
        "sessions_send",
        json!({"agentId": "ada", "message": "two", "timeoutSeconds": 0}),
    )
    .await;
    let nothing = timeout(Duration::from_millis(500), wire.lines.next_line()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    for nth in 0..16 {
        let room = json!({"room": format!("r{nth}"), "create": true});
        let key =
            node.call("ada", "room_join", room).await["key"].as_str().unwrap().replace(':', "%3A");
        let uri = format!("clawmesh://session/{key}");
        assert_eq!(wire.ask("resources/subscribe", json!({"uri": uri})).await["result"], json!({}));
    }
    let full = wire.ask("resources/subscribe", json!({"uri": INBOX})).await;
    assert_eq!(full["error"]["code"], -32000, "{full}");
    // The newest revision listens, on a connection as over HTTP.
    let mut new = node.attached("cy").await;
    let wanted = json!({"notifications": {"resourceSubscriptions": [INBOX, "clawmesh://you"]}});
    new.say(&modern("subscriptions/listen", wanted).to_string()).await;
    let accepted = new.hear().await;
    assert_eq!(
        accepted["params"]["notifications"]["resourceSubscriptions"],
        json!([INBOX]),
        "{accepted}"
    );
    node.call(
        "bob",
        "sessions_send",
        json!({"agentId": "cy", "message": "one", "timeoutSeconds": 0}),
    )
    .await;
    assert_eq!(new.hear().await["params"]["uri"], INBOX);
    node.stop().await;
}

#[tokio::test]
async fn a_connection_that_does_harm_harms_itself() {
    let node = Node::new().await;
    // A line without an end, from a stranger.
    let mut long = node.wire().await;
    long.say(r#"{"jsonrpc":"2.0"}"#).await;
    assert_eq!(long.hear().await["error"]["code"], -32600);
    drop(long.to.write_all(&vec![b'x'; 256 * 1024]).await);
    assert!(long.ends().await);
    // Nothing but noise, and no end of it.
    let mut noisy = node.wire().await;
    noisy.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    for noise in ["null", "[]", "7", "\"x\"", "{\"jsonrpc\":\"2.0\"}", "\u{0}", "{}"] {
        noisy.say(noise).await;
    }
    for _ in 0..8 {
        assert!(noisy.hear().await["error"]["code"].is_i64());
    }
    // More calls than may be, of a client that does not read; and ids that are used twice.
    let mut wire = node.attached("ada").await;
    wire.shakes_hands().await;
    let wait = |id: Value| {
        let wait = json!({"name": "inbox_wait", "arguments": {"timeoutSeconds": 1}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": wait}).to_string()
    };
    for nth in 0..200 {
        wire.say(&wait(json!(nth))).await;
    }
    let mut answered = std::collections::BTreeSet::new();
    while answered.len() < 200 {
        answered.insert(wire.hear().await["id"].as_u64().unwrap());
    }
    for _ in 0..100 {
        wire.say(&wait(json!("same"))).await;
    }
    assert_eq!(wire.ask("ping", json!({})).await["result"], json!({}));
    // The library's own end.
    let mut strange = node.attached("cy").await;
    strange.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    strange.say(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert!(strange.ends().await);
    let mut other = node.attached("bob").await;
    other.shakes_hands().await;
    assert_eq!(other.call("agents_list", json!({})).await["me"]["agentId"], "bob", "others go on");
    node.stop().await;
}

#[tokio::test]
async fn a_connection_with_a_token_may_what_the_token_may_and_ends_with_it() {
    use bridge::tokens::{Scope, Terms};
    let node = Node::new().await;
    let lists = [Scope::List].into_iter().collect();
    let token = node.token(Terms { scopes: Some(lists), ..super::tokens::terms("ada") });
    let mut wire = node.wire().await;
    let other = wire.ask("clawmesh/attach", json!({"key": token, "agentId": "bob"})).await;
    let text = other["error"]["message"].as_str().unwrap();
    assert!(text.contains("this token is for the agent \"ada\""), "{other}");
    let attached = wire.ask("clawmesh/attach", json!({"key": token, "tools": ["all"]})).await;
    assert_eq!(attached["result"]["agentId"], "ada", "{attached}");
    wire.shakes_hands().await;
    let tools = wire.ask("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 3, "{tools}");
    let sent = wire.call("sessions_send", json!({"agentId": "bob", "message": "psst"})).await;
    assert_eq!((&sent["status"], &sent["rule"]), (&json!("forbidden"), &json!("scope.send")));
    let subscribed = wire.ask("resources/subscribe", json!({"uri": INBOX})).await;
    assert!(subscribed["error"].is_object(), "{subscribed}");
    node.bridge.config().tokens.replace([]);
    wire.say(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#).await;
    assert!(wire.ends().await, "it was revoked");
    node.stop().await;
}

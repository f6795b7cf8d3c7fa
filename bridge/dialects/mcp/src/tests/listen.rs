//! Resources, and news of them.

use tokio::time::{Instant, sleep};

use super::*;

const INBOX: &str = "clawmesh://inbox";
const LOBBY: &str = "clawmesh://session/mesh%3Achannel%3Alobby";

fn listen(uris: &[&str]) -> Value {
    modern("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}))
}

fn accepted(message: &Value) -> Vec<&str> {
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    let uris = message["params"]["notifications"]["resourceSubscriptions"].as_array();
    uris.into_iter().flatten().map(|uri| uri.as_str().unwrap()).collect()
}

fn updated(message: &Value) -> &str {
    assert_eq!(message["method"], "notifications/resources/updated", "{message}");
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    message["params"]["uri"].as_str().unwrap()
}

impl Node {
    async fn read(&self, agent: &str, uri: &str) -> Result<Value, Value> {
        let mut body = self.rpc(agent, "resources/read", json!({"uri": uri})).await;
        let text = body["result"]["contents"][0]["text"].as_str().map(str::to_owned);
        text.map(|text| serde_json::from_str::<Value>(&text).unwrap())
            .ok_or_else(|| body["error"]["code"].take())
    }

    async fn tells(&self, from: &str, to: &str, text: &str) {
        let message = json!({"sessionKey": to, "message": text, "timeoutSeconds": 0});
        assert_eq!(self.call(from, "sessions_send", message).await["status"], "accepted");
    }
}

#[tokio::test]
async fn an_agent_its_inbox_and_its_sessions_are_resources() {
    let node = Node::new().await;
    node.call("ada", "room_join", json!({"room": "lobby"})).await;
    node.tells("ada", "mesh:channel:lobby", "one").await;
    let listed = node.rpc("ada", "resources/list", json!({})).await;
    let uris = listed["result"]["resources"].as_array().unwrap().iter();
    let uris: Vec<&str> = uris.map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["clawmesh://me", INBOX, LOBBY, "clawmesh://session/main"]);
    assert_eq!(node.read("ada", uris[0]).await.unwrap()["agentId"], "ada");
    assert_eq!(node.read("ada", uris[2]).await.unwrap()["messages"][0]["content"], "one");
    node.tells("bob", "agent:ada:main", "two").await;
    for _ in 0..2 {
        let inbox = node.read("ada", INBOX).await.unwrap();
        assert_eq!((&inbox["count"], &inbox["unread"]), (&json!(1), &json!(1)), "unread it stays");
        assert_eq!(inbox["messages"][0]["content"], "two");
    }
    for wrong in ["clawmesh://you", "clawmesh://session/", "clawmesh://session/none", "file:///"] {
        assert_eq!(node.read("ada", wrong).await, Err(json!(-32002)), "{wrong}");
    }
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "resources/read"),
        ("mcp-name", "clawmesh://you"),
    ];
    let read = modern("resources/read", json!({"uri": "clawmesh://you"}));
    let none = node.post("/mcp/ada", &headers, &read).await;
    assert_eq!(none.body["error"]["code"], -32602);
    let templates = node.rpc("ada", "resources/templates/list", json!({})).await;
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "clawmesh://session/{key}");
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_listens_is_told_once_a_second_and_can_read_it_then() {
    let node = Node::new().await;
    let mut events = node.stream("ada", &listen(&[INBOX, "clawmesh://you", INBOX])).await.unwrap();
    assert_eq!(accepted(&events.next().await), [INBOX]);
    node.tells("bob", "agent:ada:main", "one").await;
    assert_eq!(updated(&events.next().await), INBOX);
    let told = Instant::now();
    let inbox = node.read("ada", INBOX).await.unwrap();
    assert_eq!(inbox["messages"][0]["content"], "one");
    for nth in 0..10 {
        node.tells("bob", "agent:ada:main", &nth.to_string()).await;
    }
    assert_eq!(updated(&events.next().await), INBOX);
    assert!(told.elapsed() >= Duration::from_millis(900), "{:?}", told.elapsed());
    assert_eq!(node.read("ada", INBOX).await.unwrap()["unread"], 11);
    assert_eq!(events.within(Duration::from_millis(1_500)).await, None, "nothing is queued");
    events.end();
    node.stop().await;
}

#[tokio::test]
async fn of_a_room_that_it_has_left_a_host_hears_nothing() {
    let node = Node::new().await;
    for agent in ["ada", "bob"] {
        node.call(agent, "room_join", json!({"room": "lobby"})).await;
    }
    let mut outside = node.stream("cy", &listen(&[LOBBY, "clawmesh://me"])).await.unwrap();
    assert_eq!(accepted(&outside.next().await), ["clawmesh://me"], "it is not in the room");
    let mut events = node.stream("ada", &listen(&[LOBBY])).await.unwrap();
    assert_eq!(accepted(&events.next().await), [LOBBY]);
    node.tells("bob", "mesh:channel:lobby", "one").await;
    assert_eq!(updated(&events.next().await), LOBBY);
    node.call("ada", "room_leave", json!({"room": "lobby"})).await;
    sleep(Duration::from_millis(1_100)).await;
    node.tells("bob", "mesh:channel:lobby", "two").await;
    assert_eq!(events.within(Duration::from_millis(500)).await, None);
    events.end();
    outside.end();
    node.stop().await;
}

#[tokio::test]
async fn streams_and_what_they_tell_of_are_bounded() {
    let node = Node::new().await;
    let mut rooms = vec![INBOX.to_owned()];
    for nth in 0..20 {
        let joined =
            node.call("ada", "room_join", json!({"room": format!("r{nth}"), "create": true}));
        let key = joined.await["key"].as_str().unwrap().replace(':', "%3A");
        rooms.push(format!("clawmesh://session/{key}"));
    }
    let uris: Vec<&str> = rooms.iter().map(String::as_str).collect();
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut events = node.stream("ada", &listen(&uris)).await.unwrap();
        assert_eq!(accepted(&events.next().await).len(), 16);
        streams.push(events);
    }
    let fifth = node.stream("ada", &listen(&[INBOX])).await;
    assert_eq!(fifth.err(), Some(StatusCode::TOO_MANY_REQUESTS));
    let other = node.stream("bob", &listen(&[INBOX])).await.expect("others have places");
    other.end();
    streams.pop().unwrap().end();
    let again = async {
        loop {
            match node.stream("ada", &listen(&[INBOX])).await {
                Ok(events) => return events,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    timeout(PATIENCE, again).await.expect("a stream that has ended makes room").end();
    streams.into_iter().for_each(Events::end);
    node.stop().await;
}

#[tokio::test]
async fn older_revisions_have_no_streams_of_news_over_http() {
    let node = Node::new().await;
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let info = node.rpc("ada", "initialize", params).await;
    let capabilities = json!({"tools": {}, "resources": {"subscribe": false}, "prompts": {}});
    assert_eq!(info["result"]["capabilities"], capabilities);
    for (method, params) in [
        ("resources/subscribe", json!({"uri": INBOX})),
        ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [INBOX]}})),
    ] {
        assert_eq!(node.rpc("ada", method, params).await["error"]["code"], -32601, "{method}");
    }
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];
    let found = node.post("/mcp", &headers, &modern("server/discover", json!({}))).await;
    let capabilities = json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}});
    assert_eq!(found.body["result"]["capabilities"], capabilities);
    for wrong in [
        json!({}),
        json!({"notifications": []}),
        json!({"notifications": {"resourceSubscriptions": 7}}),
    ] {
        let answer = node.stream("ada", &modern("subscriptions/listen", wrong.clone())).await;
        match answer {
            Err(status) => assert!(status.is_client_error() || status.is_success(), "{wrong}"),
            Ok(mut events) => {
                assert_eq!(accepted(&events.next().await), Vec::<&str>::new(), "{wrong}");
                events.end();
            }
        }
    }
    node.stop().await;
}

//! The methods over HTTP.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A status, the head and the body of an answer.
struct Answered(u16, String, Value);

impl Node {
    async fn http(&self, line: &str, key: Option<&str>, body: Option<Value>) -> Answered {
        let shown = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{shown}content-length: {length}\r\n\r\n{body}",
            self.at
        );
        let mut io = TcpStream::connect(self.at).await.unwrap();
        io.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, io.read_to_string(&mut answer)).await.expect("an answer").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        Answered(status, head.to_lowercase(), body)
    }

    async fn got(&self, line: &str, body: Option<Value>) -> Value {
        let Answered(status, _, body) = self.http(line, Some(KEY), body).await;
        assert_eq!((status, &body["ok"]), (200, &json!(true)), "{line}: {body}");
        body
    }

    /// The status of a refusal, and its code.
    async fn no(&self, line: &str, key: Option<&str>, body: Option<Value>) -> (u16, String) {
        let Answered(status, _, body) = self.http(line, key, body).await;
        assert_eq!(body["ok"], false, "{line}: {body}");
        assert_eq!(body["error"].as_object().map(serde_json::Map::len), Some(5), "{body}");
        (status, body["error"]["code"].as_str().unwrap().to_owned())
    }
}

#[tokio::test]
async fn lists_come_bare_and_beside_and_single_things_with_their_fields() {
    let node = Node::new().await;
    let _agent = node.agent("bob", KEY).await;
    let agents = node.got("GET /v1/agents", None).await;
    assert_eq!(
        (&agents["payload"][0]["id"], &agents["agents"][0]["id"]),
        (&json!("bob"), &json!("bob"))
    );
    let one = node.got("GET /v1/agents/bob", None).await;
    assert_eq!((&one["id"], &one["payload"]["id"]), (&json!("bob"), &json!("bob")));
    let made = node.got("POST /v1/agents", Some(json!({"name": "Alice Bot"}))).await;
    assert_eq!(made["agentId"], "alice-bot");
    node.got("PUT /v1/agents/alice-bot", Some(json!({"model": "m"}))).await;
    assert_eq!(node.got("GET /v1/agents/alice-bot", None).await["model"], "m");
    let skills = node.got("GET /v1/skills", None).await;
    assert_eq!(skills["payload"][0]["name"], "sheep");
    assert_eq!(node.got("GET /v1/skills/sheep", None).await["slug"], "sheep");
    assert_eq!(node.got("GET /v1/usage?limit=5", None).await["limit"], 5);
    assert_eq!(node.got("GET /v1/usage/summary", None).await["totalRecords"], 0);
    assert_eq!(node.got("GET /v1/channels/instances", None).await["payload"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn a_session_is_changed_by_its_key_in_the_path() {
    let node = Node::new().await;
    let agent = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let key = "agent:bob:ws:direct:x";
    let id = client.begin("chat.send", json!({"sessionKey": key, "message": "hi"})).await;
    let asked = agent.hears(&node, "hi").await;
    agent.answers(&asked, "ho").await;
    client.answer(&id).await.unwrap();
    let path = "/v1/sessions/agent%3Abob%3Aws%3Adirect%3Ax";
    let preview = node.got(&format!("POST {path}/preview"), None).await;
    assert_eq!(preview["messages"][1]["content"], "ho");
    node.got(&format!("PATCH {path}"), Some(json!({"label": "mine"}))).await;
    let list = node.got("GET /v1/sessions", None).await;
    assert_eq!(
        (&list["payload"][0]["label"], &list["payload"][0]["key"]),
        (&json!("mine"), &json!(key))
    );
    node.got(&format!("POST {path}/reset"), None).await;
    node.got(&format!("DELETE {path}"), None).await;
    assert_eq!(node.got("GET /v1/sessions", None).await["payload"], json!([]));
    node.stop().await;
}

#[tokio::test]
async fn rights_and_refusals_are_those_of_a_connection() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Read]));
    let unauthorized = |status: u16| (status, "UNAUTHORIZED".to_owned());
    assert_eq!(node.no("GET /v1/agents", None, None).await, unauthorized(401));
    let wrong = Some("no key of this node at all, I think");
    assert_eq!(node.no("GET /v1/agents", wrong, None).await, unauthorized(401));
    assert!(node.http("GET /v1/agents", None, None).await.1.contains("www-authenticate: bearer"));
    let make = || Some(json!({"name": "x"}));
    assert_eq!(node.no("POST /v1/agents", Some(MINTED), make()).await, unauthorized(403));
    assert_eq!(node.no("GET /v1/agents/none", Some(KEY), None).await.0, 404);
    assert_eq!(node.no("GET /v1/tenants", Some(KEY), None).await.0, 404);
    assert_eq!(node.no("POST /v1/agents", Some(KEY), Some(json!([]))).await.0, 400);
    assert_eq!(node.no("POST /v1/agents", Some(KEY), Some(json!({}))).await.0, 400);
    node.got("POST /v1/agents", make()).await;
    assert_eq!(node.no("POST /v1/agents", Some(KEY), make()).await.0, 409);
    // A body that never comes is not waited for.
    let mut io = TcpStream::connect(node.at).await.unwrap();
    let request = format!(
        "POST /v1/agents HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer none\r\ncontent-length: 400000\r\n\r\n",
        node.at
    );
    io.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(PATIENCE, io.read_exact(&mut status)).await.expect("an answer").unwrap();
    assert_eq!(&status, b"HTTP/1.1 401");
    // Under another name it may be a page that was pointed here.
    let mut io = TcpStream::connect(node.at).await.unwrap();
    let request = "GET /v1/agents HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    io.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, io.read_to_string(&mut answer)).await.expect("an answer").unwrap();
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("--http-host"), "{answer}");
    let off = Node::with(keyed(), |settings| Settings { on: false, ..settings }).await;
    assert_eq!(off.http("GET /v1/agents", Some(KEY), None).await.0, 404);
    off.stop().await;
    node.stop().await;
}

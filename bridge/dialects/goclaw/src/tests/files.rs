//! Files of agents, and their end.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::names::uuid_of;

impl Node {
    /// A page: its status and its body.
    async fn page(&self, path: &str, key: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n",
            self.at
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

#[tokio::test]
async fn files_of_an_agent_are_its_keys_and_its_identity_is_its_profile() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let named = |name: &str| json!({"agentId": "bob", "file_name": name});
    let got = client.gets("agents.files.get", named("SOUL.md")).await;
    assert_eq!((&got["file"]["missing"], &got["content"]), (&json!(true), &json!("")));
    let list = client.gets("agents.files.list", json!({"agent_key": "bob"})).await;
    let files = list["files"].as_array().unwrap();
    assert!(files.len() == 9 && files.iter().all(|file| file["missing"] == true), "{list}");
    let set =
        |name: &str, content: &str| json!({"agentId": "bob", "name": name, "content": content});
    let identity = "# Who\nName: Bobby\n- **Emoji:** 🐑\n";
    let result = client.gets("agents.files.set", set("IDENTITY.md", identity)).await;
    assert_eq!((&result["propagated"], &result["file"]["missing"]), (&json!(0), &json!(false)));
    let told = client.event().await;
    assert_eq!(told["event"], "agent.updated");
    assert_eq!(told["payload"]["changes"], json!(["name", "emoji"]));
    let shown = client.gets("agent.identity.get", json!({"agentId": "bob"})).await;
    assert_eq!((&shown["name"], &shown["emoji"]), (&json!("Bobby"), &json!("🐑")));
    let got = client.gets("agents.files.get", named("IDENTITY.md")).await;
    assert_eq!((&got["content"], &got["file"]["content"]), (&json!(identity), &json!(identity)));
    let list = client.gets("agents.files.list", json!({"agentId": "bob"})).await;
    assert_eq!(
        (&list["files"][2]["name"], &list["files"][2]["missing"]),
        (&json!("IDENTITY.md"), &json!(false))
    );
    let no = ("INVALID_REQUEST".to_owned(), "file not allowed: x.md".to_owned());
    assert_eq!(client.refused("agents.files.set", set("x.md", "x")).await, no);
    let large = "x".repeat(64 * 1024 + 1);
    assert_eq!(
        client.refused("agents.files.set", set("USER.md", &large)).await.0,
        "INVALID_REQUEST"
    );
    let mut other = node.connected(MINTED, "eve").await;
    for (method, params) in
        [("agents.files.get", named("IDENTITY.md")), ("agents.files.set", set("SOUL.md", "x"))]
    {
        assert_eq!(other.refused(method, params).await.0, "UNAUTHORIZED", "{method}");
    }
    // The agent reads its own, with its key.
    let path = "/api/agents/bob/files/IDENTITY.md";
    assert_eq!(node.page(path, KEY).await, (200, identity.to_owned()));
    let by_uuid = format!("/api/agents/{}/files/IDENTITY.md", uuid_of("bob"));
    assert_eq!(node.page(&by_uuid, KEY).await, (200, identity.to_owned()));
    assert_eq!(node.page(path, MINTED).await.0, 404);
    assert_eq!(node.page(path, "no key at all, but long enough").await.0, 401);
    assert_eq!(node.page("/api/agents/bob/files/SOUL.md", KEY).await.0, 404);
    node.stop().await;
}

#[tokio::test]
async fn a_retired_agent_is_gone_and_nobody_comes_under_its_id_again() {
    let node = Node::new().await;
    node.mint(MINTED, Some(&[Scope::Admin]));
    let bob = node.agent("bob", KEY).await;
    let mut client = node.owner().await;
    let set = json!({"agentId": "bob", "name": "SOUL.md", "content": "kind"});
    client.gets("agents.files.set", set).await;
    let mut other = node.connected(MINTED, "eve").await;
    let named = json!({"agentId": "bob"});
    assert_eq!(other.refused("agents.delete", named.clone()).await.0, "UNAUTHORIZED");
    let gone = client.gets("agents.delete", named.clone()).await;
    assert_eq!(gone, json!({"ok": true, "agentId": "bob", "removedBindings": 0}));
    let list = client.gets("agents.list", json!({})).await;
    assert_eq!(list["agents"], json!([]));
    assert_eq!(client.refused("agent", named).await.0, "NOT_FOUND");
    assert_eq!(client.refused("agents.create", json!({"name": "bob"})).await.0, "ALREADY_EXISTS");
    let attach = Attach {
        key: Secret::new(KEY),
        name: "bob".to_owned(),
        identity: Identity::Named("bob".to_owned()),
        capabilities: Vec::new(),
        reconnect: true,
        linger: Duration::ZERO,
    };
    let refused = node.bridge.desk().attach(attach).await.expect_err("for ever");
    assert_eq!(format!("{refused:?}"), "Mesh(AgentRetired(\"bob\"))");
    assert_eq!(node.page("/api/agents/bob/files/SOUL.md", KEY).await.0, 404, "its files are gone");
    drop(bob);
    node.stop().await;
}

//! Files of rooms over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    super::keys::{PRO, mint},
    Answer, Client, Node,
};
use bridge::testing::{KEY, keyed};
use mesh::{limits::FILE_BYTES_MAX, name::id::KeyPrint, wire::acts::Tier};

const HERE: (&str, &str) = ("host", "127.0.0.1:80");
const SHOWN: (&str, &str) = ("x-clawchat-key", KEY);

impl Node {
    /// A room of the node's own key, as an agent of it makes one.
    async fn room(&self, by: &str, more: &Value) -> (String, Client<TcpStream>) {
        let mut agent = self.agent(by).await;
        let mut room = json!({"name": "hall", "public": true});
        room.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = agent.call("create_room", room).await;
        (made["room_id"].as_str().unwrap().to_owned(), agent)
    }

    async fn file(&self, method: &str, room: &str, path: &str, body: &str) -> Answer {
        let path = format!("/api/rooms/{room}/files{path}");
        let more = [HERE, SHOWN, ("content-type", "text/json"), ("x-clawmesh-agent", "a")];
        self.http(method, &path, &more, body).await
    }
}

#[tokio::test]
async fn a_file_is_written_read_listed_and_deleted() {
    let node = Node::start(keyed()).await;
    let (room, _a) = node.room("a", &json!({})).await;
    let put = node.file("PUT", &room, "/notes/%C3%BC%20a.json", r#"{"x": 1}"#).await;
    assert_eq!(put.status, StatusCode::NO_CONTENT, "{put:?}");
    let got = node.file("GET", &room, "/notes/%C3%BC%20a.json", "").await;
    assert_eq!((got.status, &got.body), (StatusCode::OK, &json!({"x": 1})));
    for header in [
        "content-type: text/json",
        "x-content-type-options: nosniff",
        "content-disposition: attachment",
        "content-security-policy: default-src 'none'; sandbox",
        "x-clawmesh-agent: a",
    ] {
        assert!(got.has(header), "{header}: {got:?}");
    }
    let list = node.file("GET", &room, "", "").await.body;
    let file = &list["files"][0];
    assert_eq!((&file["path"], &file["size"]), (&json!("notes/ü a.json"), &json!(8)));
    assert_eq!((&file["type"], &file["by"]), (&json!("text/json"), &json!("a")));
    let replaced = node.file("PUT", &room, "/notes/%C3%BC%20a.json", "2").await;
    assert_eq!(replaced.status, StatusCode::NO_CONTENT);
    assert_eq!(node.file("GET", &room, "/notes/%C3%BC%20a.json", "").await.body, json!(2));
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        let gone = node.file("DELETE", &room, "/notes/%C3%BC%20a.json", "").await;
        assert_eq!(gone.status, status, "{gone:?}");
    }
    assert_eq!(node.file("GET", &room, "/x", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(node.file("GET", &room, "", "").await.body, json!({"files": []}));
    node.stop().await;
}

#[tokio::test]
async fn files_are_for_holders_of_a_key_and_written_by_the_one_that_made_the_room() {
    let node = Node::start(keyed()).await;
    let (room, _a) = node.room("a", &json!({})).await;
    for method in ["GET", "PUT", "DELETE"] {
        let path = format!("/api/rooms/{room}/files/x");
        let answer = node.http(method, &path, &[HERE], "x").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method}");
    }
    let list = node.http("GET", &format!("/api/rooms/{room}/files"), &[HERE], "").await;
    assert_eq!(list.status, StatusCode::UNAUTHORIZED);
    assert_eq!(node.file("PUT", "nowhere", "/x", "x").await.status, StatusCode::NOT_FOUND);
    let lobby = node.file("PUT", "lobby", "/x", "x").await;
    assert_eq!(lobby.status, StatusCode::BAD_REQUEST, "{lobby:?}");
    let path = format!("/api/rooms/{room}/files/x");
    let other = [HERE, SHOWN, ("x-clawmesh-agent", "somebody")];
    let answer = node.http("PUT", &path, &other, "x").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    assert!(answer.body["message"].as_str().unwrap().contains("no agent of this key"));
    node.stop().await;
}

#[tokio::test]
async fn a_refusal_names_the_rule_and_the_bound() {
    let node = Node::start(keyed()).await;
    let (room, _a) = node.room("a", &json!({})).await;
    let bad = [
        ("/a%5Cb", "backslash"),
        ("/a/%2E%2E/b", "`.` or `..`"),
        ("/a%2F", "no slash at its ends"),
        ("/a%07", "control characters"),
        ("/%FF", "UTF-8"),
    ];
    for (path, rule) in bad {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = node.file(method, &room, path, "x").await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{method} {path}: {answer:?}");
            let text = answer.body["message"].as_str().unwrap();
            assert!(text.contains("`path`") && text.contains(rule), "{method} {path}: {text}");
        }
    }
    let large = node.file("PUT", &room, "/x", &"x".repeat(FILE_BYTES_MAX + 1)).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(large.body["message"].as_str().unwrap().contains("262144"), "{large:?}");
    let most = node.file("PUT", &room, "/x", &"x".repeat(FILE_BYTES_MAX)).await;
    assert_eq!(most.status, StatusCode::NO_CONTENT, "{most:?}");
    node.stop().await;
}

#[tokio::test]
async fn an_encrypted_room_takes_blobs_and_an_ephemeral_one_no_file() {
    let node = Node::start(keyed()).await;
    let (room, _a) = node.room("a", &json!({"encrypted": true})).await;
    let plain = node.file("PUT", &room, "/x", "hello").await;
    assert_eq!(plain.body["code"], json!("plaintext_in_encrypted_room"), "{plain:?}");
    assert_eq!(node.file("PUT", &room, "/x", "clw1:AAAA").await.status, StatusCode::NO_CONTENT);
    let (brief, _b) = node.room("b", &json!({"name": "brief", "ephemeral": true})).await;
    let answer = node.file("PUT", &brief, "/x", "x").await;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_payload"))
    );
    node.stop().await;
}

#[tokio::test]
async fn files_of_a_direct_room_are_its_two_agents() {
    let node = Node::start(keyed()).await;
    let mut a = node.agent("a").await;
    let _b = node.agent("b").await;
    let room = a.call("create_room", json!({"name": "dm:b"})).await;
    let path = format!("/api/rooms/{}/files/x", room["room_id"].as_str().unwrap());
    let ask = |method: &'static str, by: &'static str, body: &'static str| {
        let (node, path) = (&node, &path);
        async move { node.http(method, path, &[HERE, SHOWN, ("x-clawmesh-agent", by)], body).await }
    };
    assert_eq!(ask("PUT", "a", "1").await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask("GET", "b", "").await.body, json!(1));
    assert_eq!(ask("PUT", "b", "2").await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask("GET", "a", "").await.body, json!(2));
    for (method, by) in [("GET", "c"), ("PUT", "c"), ("DELETE", "c"), ("GET", "")] {
        let refused = ask(method, by, "3").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {by}: {refused:?}");
    }
    assert_eq!(ask("DELETE", "a", "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(ask("GET", "b", "").await.status, StatusCode::NOT_FOUND);
    node.stop().await;
}

#[tokio::test]
async fn other_keys_write_files_where_the_maker_of_the_room_lets_them() {
    let node = Node::start(keyed()).await;
    mint(&node.fake, PRO, Tier::High);
    let (room, mut a) = node.room("a", &json!({})).await;
    let path = format!("/api/rooms/{room}/files/x");
    let guest = [HERE, ("x-clawchat-key", PRO), ("content-type", "text/json")];
    let put = async |text: &str| node.http("PUT", &path, &guest, text).await.status;
    assert_eq!(put("1").await, StatusCode::FORBIDDEN);
    let print = KeyPrint::of(PRO).to_string();
    let set = async |a: &mut Client<TcpStream>, settings: Value| {
        let set = a.call("set_room", json!({"room_id": &room, "settings": settings})).await;
        set["mesh"]["settings"].clone()
    };
    let shown = set(&mut a, json!({"writers": [&print], "theme": "dark"})).await;
    assert_eq!(shown, json!({"writers": [&print], "theme": "dark"}));
    assert_eq!(put("2").await, StatusCode::NO_CONTENT);
    assert_eq!(node.file("GET", &room, "/x", "").await.body, json!(2));
    assert_eq!(set(&mut a, json!({"writers": null})).await, json!({"theme": "dark"}));
    assert_eq!(put("3").await, StatusCode::FORBIDDEN);
    assert_eq!(node.file("GET", &room, "/x", "").await.status, StatusCode::NOT_FOUND);
    let open = set(&mut a, json!({"files": "anyone"})).await;
    assert_eq!(open, json!({"files": "anyone", "theme": "dark"}));
    assert_eq!(node.file("GET", &room, "/x", "").await.body, json!(2), "it shows again");
    assert_eq!(put("4").await, StatusCode::NO_CONTENT);
    assert_eq!(node.file("GET", &room, "", "").await.body["files"].as_array().unwrap().len(), 1);
    for (settings, text) in [
        (json!({"writers": ["x"]}), "`settings.writers` must be a list of at most 64 fingerprints"),
        (json!({"files": "me"}), "`settings.files` must be \"anyone\", or null"),
    ] {
        a.post("bad", "set_room", json!({"room_id": &room, "settings": settings})).await;
        let refused = a.find(|line| line["reply_to"] == "bad").await;
        assert_eq!(refused["payload"]["code"], "invalid_payload");
        assert!(refused["payload"]["message"].as_str().unwrap().contains(text), "{refused}");
    }
    node.stop().await;
}

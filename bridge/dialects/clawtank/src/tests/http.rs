//! Pages.

use bridge::seam::call::{CreateShared, ListRooms, Say};
use mesh::api::command::NewRoom;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

impl Node {
    /// The status and the body of an answer.
    pub(super) async fn asks_page(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let mut io = TcpStream::connect(self.at).await.unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        io.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, io.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

const OWN: (&str, &str) = ("x-clawchat-key", KEY);
const TANK: (&str, &str) = ("accept", "application/vnd.clawtank+json");

#[tokio::test]
async fn rooms_are_made_changed_and_closed_by_those_whose_key_may() {
    let node = Node::new().await;
    node.mint(MINTED, None, Some("ada"));
    let reader = "a key that may only read, for tests";
    node.mint(reader, Some(&[Scope::Read]), None);
    let bearer = format!("Bearer {MINTED}");
    let ada = [("authorization", &*bearer)];
    let config = json!({"name": "todo", "description": "a list", "settings": {"max_members": 5}});
    let all = ("POST", "/api/rooms");
    for (headers, status) in [
        (vec![], 401),
        (vec![("x-clawchat-key", "no key of this mesh, but long enough")], 401),
        (vec![("x-clawchat-key", reader)], 403),
    ] {
        assert_eq!(node.asks_page(all, &headers, &config).await.0, status, "{headers:?}");
    }
    let (status, room) = node.asks_page(all, &ada, &config).await;
    assert_eq!((status, &room["name"], &room["state"]), (201, &json!("todo"), &json!("active")));
    assert_eq!(room["creator"]["display_name"], "ada");
    assert_eq!(room["settings"]["max_members"], 5);
    assert_eq!(node.asks_page(all, &ada, &config).await.0, 409);
    assert_eq!(node.asks_page(all, &ada, &json!({})).await.0, 400);
    assert_eq!(node.asks_page(all, &ada, &json!(["x"])).await.0, 400);
    let one = format!("/api/rooms/{}", room["room_id"].as_str().unwrap());
    let archived = json!({"state": "archived"});
    assert_eq!(node.asks_page(("PATCH", &one), &[OWN], &archived).await.0, 404);
    let (status, room) = node.asks_page(("PATCH", &one), &ada, &archived).await;
    assert_eq!((status, &room["state"]), (200, &json!("archived")), "{room}");
    let mut bo = node.bare().await;
    let id = ids::digits(room["room_id"].as_str().unwrap()).unwrap().to_owned();
    bo.connect("human", KEY, "bo", Some(&id)).await;
    assert_eq!(why(&bo.hears("error").await), no("RESOURCE_CONFLICT", "room_archived"));
    let (status, _) = node.asks_page(("DELETE", &one), &ada, &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(node.asks_page(("POST", &format!("{one}/leave")), &ada, &json!({})).await.0, 404);
    node.stop().await;
}

#[tokio::test]
async fn public_rooms_are_read_by_all_and_private_ones_with_their_key() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    node.asks(&eve, Say::chat(lobby(), "hello".to_owned())).await;
    let new = NewRoom {
        name: "secret".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let secret = node.asks(&eve, CreateShared(new)).await.room;
    let all = ("GET", "/api/rooms");
    let names = |body: &Value| {
        let rooms = body["rooms"].as_array().unwrap().iter();
        rooms.map(|room| room["name"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let (status, body) = node.asks_page(all, &[TANK], &Value::Null).await;
    assert_eq!((status, names(&body)), (200, ["lobby".to_owned()].into()));
    let (_, body) = node.asks_page(all, &[TANK, OWN], &Value::Null).await;
    assert_eq!(names(&body), ["lobby".to_owned(), "secret".to_owned()].into());
    assert_eq!(node.asks(&eve, ListRooms { parent: None }).await.len(), 2);
    // Without the word for it the path is another dialect's, and here nobody's.
    assert_eq!(node.asks_page(all, &[], &Value::Null).await.0, 404);
    let one = format!("/api/rooms/{}", secret.to_uuid());
    assert_eq!(node.asks_page(("GET", &one), &[], &Value::Null).await.0, 404);
    let (status, room) = node.asks_page(("GET", &one), &[OWN], &Value::Null).await;
    assert_eq!((status, &room["visibility"]), (200, &json!("private")), "{room}");
    let (_, room) = node.asks_page(("GET", "/api/rooms/lobby"), &[], &Value::Null).await;
    assert_eq!(room["members"][0]["agent_id"], "eve", "{room}");
    let (_, page) =
        node.asks_page(("GET", "/api/rooms/lobby/events?limit=1"), &[], &Value::Null).await;
    assert_eq!(page["events"][0]["data"]["content"]["text"], "hello", "{page}");
    let (_, tasks) =
        node.asks_page(("GET", "/api/rooms/lobby/tasks?status=open"), &[], &Value::Null).await;
    assert_eq!(tasks, json!({"tasks": []}));
    let (_, git) = node.asks_page(("GET", "/api/rooms/lobby/git"), &[], &Value::Null).await;
    assert_eq!(git, json!({"git": [], "more": false}));
    let (status, _) =
        node.asks_page(("GET", "/api/rooms/lobby/events?limit=9999"), &[], &Value::Null).await;
    assert_eq!(status, 400);
    node.stop().await;
}

#[tokio::test]
async fn what_is_not_for_spectators_is_not_on_a_page_for_all() {
    let node = Node::new().await;
    let mut ada = node.person("ada").await;
    let mut data = super::chat::words("among us");
    data["visibility"] = json!("room_only");
    let said = ada.gets("chat.human_message", data).await;
    assert_eq!(said["visibility"], "room_only");
    let path = ("GET", "/api/rooms/lobby/events");
    let (_, page) = node.asks_page(path, &[], &Value::Null).await;
    assert_eq!(page["events"], json!([]), "{page}");
    let (_, page) = node.asks_page(path, &[OWN], &Value::Null).await;
    assert_eq!(page["events"].as_array().map(Vec::len), Some(1));
    node.stop().await;
}

#[tokio::test]
async fn pages_for_all_have_no_print_of_a_key_and_those_of_members_have() {
    use bridge::seam::call::{AssignTask, ChangeTask};
    use mesh::api::agenda::{NewTask, TaskUpdate};
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("ada").await;
    let person = names::principal(eve.key(), "ada");
    let print = person.split('-').nth(1).unwrap();
    ada.gets("chat.human_message", super::chat::words("mine")).await;
    let said =
        Say { mentions: vec![person.to_string()], ..Say::chat(lobby(), format!("so, @{person}")) };
    node.asks(&eve, said).await;
    let task = node.asks(&eve, AssignTask(NewTask::of(lobby(), format!("for {person}")))).await;
    let held = TaskUpdate { assignee: Some(Some(person.clone())), ..TaskUpdate::of(task.task) };
    node.asks(&eve, ChangeTask(held)).await;
    for (path, shown) in [
        ("/api/rooms", "lobby"),
        ("/api/rooms/lobby", "eve"),
        ("/api/rooms/lobby/tasks", "for ada"),
        ("/api/rooms/lobby/events", "so, @ada"),
    ] {
        let (status, page) = node.asks_page(("GET", path), &[TANK], &Value::Null).await;
        let text = page.to_string();
        assert!(status == 200 && text.contains(shown) && !text.contains(print), "{path}: {text}");
    }
    let path = ("GET", "/api/rooms/lobby/events");
    let (_, page) = node.asks_page(path, &[], &Value::Null).await;
    let said = page["events"].as_array().unwrap().iter();
    let said: Vec<_> = said.filter(|event| event["type"] == "chat.agent_message").collect();
    let mention = &said[0]["data"]["content"]["mentions"][0];
    assert_eq!((&mention["start_pos"], &mention["end_pos"]), (&json!(4), &json!(8)), "{mention}");
    assert_eq!(said[0]["data"]["agent"]["owner"]["display_name"], "unknown");
    let (_, page) = node.asks_page(path, &[OWN], &Value::Null).await;
    let text = page.to_string();
    assert!(text.contains(&*person) && text.contains(&format!("key {print}")), "{text}");
    node.stop().await;
}

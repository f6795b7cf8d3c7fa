//! Replays, as one file.

use bridge::seam::call::{AssignTask, CreateRoom, Join, Say};
use mesh::api::{
    agenda::NewTask,
    command::{NewRoom, Speech},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{chat::words, *};

impl Node {
    /// The bytes of a file, chunk by chunk: the status, the parts and how long the longest is.
    async fn file(&self, path: &str, headers: &str) -> (u16, String, usize) {
        let mut io = TcpStream::connect(self.at).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
        io.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, io.read_to_end(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if !head.to_lowercase().contains("chunked") {
            return (status, rest.to_owned(), rest.len());
        }
        let (mut body, mut longest) = (String::new(), 0);
        loop {
            let (length, after) = rest.split_once("\r\n").unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            longest = longest.max(length);
            if length == 0 {
                return (status, body, longest);
            }
            body.push_str(&after[..length]);
            rest = &after[length + 2..];
        }
    }
}

#[tokio::test]
async fn a_file_has_all_for_members_and_for_others_what_those_see_who_look_on() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let mut ada = node.person("Ada").await;
    let say = |speech, text: &str| Say { speech, ..Say::chat(lobby(), text.to_owned()) };
    node.asks(&eve, say(Speech::Thinking, "a thought")).await;
    node.asks(&eve, say(Speech::Chat, "mail eve@example.org")).await;
    let mut room_only = words("among us");
    room_only["visibility"] = json!("room_only");
    ada.gets("chat.human_message", room_only).await;
    for kind in ["approval_request", "approval_decision", "approval_discussion"] {
        let metadata = json!({"kind": kind, "approval": {"id": "none"}}).to_string();
        let say = say(Speech::Chat, &format!("{kind}: rm -r /"));
        node.asks(&eve, Say { metadata: Some(metadata), ..say }).await;
    }
    let mut task = NewTask::of(lobby(), "build it");
    task.description = Some("as we said".to_owned());
    node.asks(&eve, AssignTask(task)).await;
    let own = format!("x-clawchat-key: {KEY}\r\n");
    let path = "/api/rooms/lobby/replay";
    let (status, mine, _) = node.file(path, &own).await;
    assert_eq!(status, 200);
    let file: Value = serde_json::from_str(&mine).unwrap();
    assert!(mine.ends_with("]}\n"));
    assert_eq!(file["meta"]["participants"]["humans"], json!(["Ada"]));
    let agent = &file["meta"]["participants"]["agents"][0];
    assert_eq!((&agent["name"], &agent["model"]), (&json!("eve"), &json!("unknown")));
    let kinds: Vec<&str> =
        file["events"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    let all = [
        "room.created",
        "agent.joined",
        "agent.message",
        "human.message",
        "task.created",
        "room.stats",
    ];
    assert_eq!(kinds, all);
    // Nobody says when the lobby was made: it begins with the first words.
    let last = file["events"].as_array().unwrap().last().unwrap();
    assert!(last["t"].as_u64().unwrap() < 60, "{last}");
    assert_eq!(
        file["meta"]["duration_minutes"].as_u64().unwrap().min(1),
        file["meta"]["duration_minutes"]
    );
    for text in ["eve@example.org", "among us", "as we said"] {
        assert!(mine.contains(text), "{text}: {mine}");
    }
    assert!(!mine.contains("a thought") && !mine.contains("rm -r"), "{mine}");
    assert!(
        node.file(&format!("{path}?include_thinking=true"), &own).await.1.contains("a thought")
    );
    for (query, headers) in
        [("?include_thinking=true", ""), ("?public=true&include_thinking=true", &*own)]
    {
        let (status, public, _) = node.file(&format!("{path}{query}"), headers).await;
        assert_eq!(status, 200);
        for text in ["eve@example.org", "among us", "as we said", "a thought", "rm -r"] {
            assert!(!public.contains(text), "{text}: {public}");
        }
        assert!(public.contains("mail [EMAIL]") && public.contains("build it"), "{public}");
    }
    let all = bridge::replay::Wish { thinking: true, public: false };
    let asked = node.bridge.desk().replay(&Visitor::stranger(), (lobby(), all), (0, 100)).await;
    let given = json!(asked.unwrap().events).to_string();
    assert!(
        given.contains("build it") && !given.contains("among us"),
        "whatever is asked: {given}"
    );
    assert_eq!(node.file("/api/rooms/nowhere/replay", &own).await.0, 404);
    node.stop().await;
}

#[tokio::test]
async fn an_empty_room_has_its_beginning_and_its_end() {
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let new = NewRoom {
        name: "empty".to_owned(),
        description: Some("of nobody".to_owned()),
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    let room = node.asks(&eve, CreateRoom(new)).await.room;
    node.asks(&eve, Join(room)).await;
    let (_, text, _) = node.file(&format!("/api/rooms/{}/replay", room.to_uuid()), "").await;
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["meta"]["description"], "of nobody");
    assert_eq!(file["meta"]["duration_minutes"], 0);
    assert_eq!(file["events"].as_array().unwrap().len(), 2, "{text}");
    assert_eq!(file["events"][0]["data"]["host"], "eve");
    node.stop().await;
}

#[tokio::test]
async fn a_long_room_is_written_in_parts_and_read_in_parts_to_the_same() {
    use bridge::replay::Wish;
    let node = Node::new().await;
    let eve = node.other("eve").await;
    let count = 3_000;
    for number in 0..count {
        node.fake.say(lobby(), "talker", &format!("number {number}"));
    }
    let own = format!("x-clawchat-key: {KEY}\r\n");
    let (_, text, longest) = node.file("/api/rooms/lobby/replay", &own).await;
    assert!(longest < text.len() / 10, "{longest} of {}", text.len());
    let file: Value = serde_json::from_str(&text).unwrap();
    let whole = file["events"].as_array().unwrap();
    assert_eq!(whole.len(), count + 3);
    let desk = node.bridge.desk();
    let (mut parts, mut after) = (Vec::new(), 0);
    loop {
        let page = desk.replay(&eve, (lobby(), Wish::default()), (after, 700)).await.unwrap();
        assert_eq!(page.meta.is_some(), after == 0);
        parts.extend(page.events);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(&parts, whole);
    // From a place that nobody has kept.
    let page = desk.replay(&eve, (lobby(), Wish::default()), (2_500, 10)).await.unwrap();
    assert_eq!(page.events, whole[2_500..2_510]);
    node.stop().await;
}

#[tokio::test]
async fn a_request_that_was_taken_back_is_played_to_its_author_alone() {
    use bridge::{replay::Wish, seam::call::OpenDirect};
    let node = Node::new().await;
    let (eve, bob) = (node.other("eve").await, node.other("bob").await);
    let direct = node.asks(&eve, OpenDirect::with("bob")).await.room;
    let say = Say { expects_reply: Some(true), ..Say::chat(direct, "are you there?".to_owned()) };
    node.asks(&eve, say).await;
    node.fake.pass(mesh::limits::REQUEST_TTL_MIN + Duration::from_secs(1));
    for (reader, is_played) in [(&eve, true), (&bob, false)] {
        let wish = (direct, Wish::default());
        let page = node.bridge.desk().replay(reader, wish, (0, 100)).await.unwrap();
        let text = json!(page.events).to_string();
        assert_eq!(text.contains("are you there?"), is_played, "{text}");
    }
    node.stop().await;
}

#[tokio::test]
async fn files_that_strangers_do_not_take_end_and_hold_up_nobody_with_a_key() {
    use bridge::{
        limits::{REPLAY_TAKEN_WITHIN, REPLAYS_OF_STRANGERS},
        replay::Wish,
        seam::refusal::Refusal,
    };
    let node = Node::new().await;
    let eve = node.other("eve").await;
    // More than waits to be taken.
    for number in 0..1_000 {
        node.fake.say(lobby(), "talker", &format!("number {number}"));
    }
    let (desk, stranger) = (node.bridge.desk(), Visitor::stranger());
    let wish = (lobby(), Wish { thinking: false, public: true });
    let mut held = Vec::new();
    for _ in 0..REPLAYS_OF_STRANGERS {
        held.push(desk.replay_file(&stranger, wish).await.unwrap());
    }
    let refused = desk.replay_file(&stranger, wish).await;
    assert!(matches!(refused, Err(Refusal::Overloaded)));
    let whole = desk.replay_file(&eve, wish).await.unwrap();
    let whole = axum::body::to_bytes(whole, usize::MAX).await.unwrap();
    assert!(whole.ends_with(b"]}\n"));
    tokio::time::pause();
    // Each has to come to the place where it waits, and then waits for as long.
    let (mut others, mut waited) = (Vec::new(), 0);
    while others.len() < REPLAYS_OF_STRANGERS {
        match desk.replay_file(&stranger, wish).await {
            Ok(body) => others.push(body),
            Err(_) => tokio::time::sleep(REPLAY_TAKEN_WITHIN / 10).await,
        }
        waited += 1;
        assert!(waited < 1_000, "they keep their places");
    }
    for body in held {
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_err(), "nobody takes it for whole");
    }
    tokio::time::resume();
    node.stop().await;
}

#[tokio::test]
async fn a_network_of_strangers_has_one_place_and_others_have_theirs() {
    use bridge::replay::Wish;
    let here = std::net::IpAddr::from([127, 0, 0, 1]);
    let config = Config { trusted_proxies: vec![here], ..keyed() };
    let node = Node::with(config, Settings::default()).await;
    // More than waits to be taken.
    for number in 0..1_000 {
        node.fake.say(lobby(), "talker", &format!("number {number}"));
    }
    let asks = async |from: &str, key: Option<&str>| {
        let key = key.map(|key| ("x-clawchat-key", key));
        let headers: Vec<_> = [("x-forwarded-for", from)].into_iter().chain(key).collect();
        let path = ("GET", "/api/rooms/lobby/replay");
        node.asks_page(path, &headers, &Value::Null).await.0
    };
    let wish = (lobby(), Wish { thinking: false, public: true });
    let stranger = Visitor::stranger().at("192.0.2.7".parse().unwrap());
    let held = node.bridge.desk().replay_file(&stranger, wish).await.unwrap();
    assert_eq!(asks("192.0.2.7", None).await, 503);
    for (from, key) in [("192.0.2.8", None), ("192.0.2.7", Some(KEY))] {
        assert_eq!(asks(from, key).await, 200, "{from} {key:?}");
    }
    drop(held);
    while asks("192.0.2.7", None).await != 200 {
        tokio::task::yield_now().await;
    }
    node.stop().await;
}

//! Frames, and bounds of connections.

use super::*;

/// An answer to a frame: its id, code and message.
async fn answer(client: &mut Client, frame: &str) -> (String, String, String) {
    client.say(frame).await;
    let answer = client.hear().await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &answer["error"];
    (text(&answer["id"]), text(&error["code"]), text(&error["message"]))
}

#[tokio::test]
async fn a_connection_is_recognised_by_its_first_frame_and_by_nothing_else() {
    let node = Node::new().await;
    let mut ours = node.client().await;
    let (id, code, text) = answer(&mut ours, r#"{"type":"req","id":"1","method":"health"}"#).await;
    assert_eq!((&*id, &*code), ("1", "UNAUTHORIZED"));
    assert_eq!(text, "first request must be 'connect'");
    let connected = ours.gets("connect", json!({"token": KEY})).await;
    assert_eq!(connected["role"], "admin", "the connection is as good as before");
    for first in ["{", r#"{"type":"register"}"#, r#"{"type":"agent.hello"}"#, "[]"] {
        let mut other = node.client().await;
        other.say(first).await;
        let frame = timeout(PATIENCE, other.socket.next()).await.unwrap().unwrap().unwrap();
        let text = frame.into_text().unwrap_or_default();
        assert!(!text.contains("\"res\""), "{first} is of another dialect: {text}");
    }
    node.stop().await;
}

#[tokio::test]
async fn bad_frames_are_answered_and_a_client_that_sends_nothing_else_has_to_go() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    let invalid = |text: &str| ("INVALID_REQUEST".to_owned(), text.to_owned());
    let (id, code, text) = answer(&mut client, "{").await;
    assert_eq!((&*id, &*code), ("", "INVALID_REQUEST"));
    assert!(text.starts_with("invalid frame: "), "{text}");
    let (_, code, text) = answer(&mut client, r#"{"type":"x"}"#).await;
    assert_eq!((code, text), invalid("unexpected frame type: x"));
    let (id, _, text) = answer(&mut client, r#"{"type":"req","id":7,"method":"health"}"#).await;
    assert_eq!(id, "");
    assert!(text.starts_with("malformed request: id "), "{text}");
    let refused = client.refused("tenants.list", json!({})).await;
    assert_eq!(refused, invalid("unknown method: tenants.list"));
    assert_eq!(client.refused("connect", json!({})).await, invalid("already connected"));
    assert_eq!(
        client.refused("agent", json!({"agentId": 7})).await,
        invalid("agentId must be a string")
    );
    assert_eq!(client.refused("agent", json!({})).await, invalid("agentId is required"));
    for _ in 0..12 {
        answer(&mut client, "{").await;
    }
    client.say("{").await;
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn messages_that_are_too_large_or_no_text_end_their_connection_alone() {
    let node = Node::new().await;
    let mut other = node.owner().await;
    let mut large = node.owner().await;
    let frame = |bytes: usize| {
        let begins = r#"{"type":"req","id":"1","method":"agent","params":{"more":""#;
        format!("{begins}{}\"}}}}", "x".repeat(bytes - begins.len() - 3))
    };
    let (_, code, _) = answer(&mut large, &frame(crate::limits::MESSAGE_BYTES_MAX)).await;
    assert_eq!(code, "INVALID_REQUEST", "so large it may be");
    large.say(&frame(crate::limits::MESSAGE_BYTES_MAX + 1)).await;
    assert_eq!(large.ends().await, 1009);
    let mut stranger = node.client().await;
    stranger.say(&frame(crate::limits::STRANGER_MESSAGE_BYTES_MAX + 1)).await;
    assert_eq!(stranger.ends().await, 1009);
    let mut binary = node.owner().await;
    binary.socket.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(binary.ends().await, 1003);
    assert_eq!(other.gets("health", json!({})).await["status"], "ok");
    node.stop().await;
}

#[tokio::test]
async fn every_method_of_the_description_is_known_and_those_that_are_not_there_say_so() {
    let node = super::config::node().await;
    let mut client = node.owner().await;
    let seed = include_str!("methods.txt");
    assert_eq!(seed.lines().count(), 83);
    for line in seed.lines() {
        let (method, role) = line.split_once(' ').unwrap();
        let known = crate::methods::named(method).unwrap_or_else(|| panic!("{method}"));
        let needed = if role == "unauthenticated" { "viewer" } else { role };
        assert_eq!(known.role.name(), needed, "{method}");
        let Err(no) = client.ask(method, json!({"timeout": 0})).await else { continue };
        assert!(!no.message.contains("unknown method"), "{method}: {no:?}");
        assert_eq!(no.code == "NOT_IMPLEMENTED", known.missing.is_some(), "{method}: {no:?}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_does_without_refuses_in_this_dialects_form() {
    let node = Node::with(keyed(), |settings| Settings { on: false, ..settings }).await;
    let mut client = node.client().await;
    let (code, text) = client.refused("connect", json!({"token": KEY})).await;
    assert_eq!(code, "UNAVAILABLE");
    assert!(text.contains("switched off"), "{text}");
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn a_client_is_asked_whether_it_is_there_and_goes_when_it_does_not_answer() {
    let node = Node::new().await;
    let mut client = node.owner().await;
    tokio::time::pause();
    // It reads nothing meanwhile, so it answers no ping.
    sleep(crate::limits::SILENT_FOR_MAX + Duration::from_secs(1)).await;
    tokio::time::resume();
    let (mut pings, mut ticks) = (0, 0);
    let code = loop {
        match timeout(PATIENCE, client.socket.next()).await.expect("it ends") {
            Some(Ok(Message::Ping(_))) => pings += 1,
            Some(Ok(Message::Text(text))) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(event["event"], "tick", "{event}");
                ticks += 1;
            }
            Some(Ok(Message::Close(Some(frame)))) => break u16::from(frame.code),
            other => panic!("{other:?}"),
        }
    };
    assert!(pings >= 1 && ticks >= 1, "{pings} {ticks}");
    assert_eq!(code, 1008);
    node.stop().await;
}

#[tokio::test]
async fn a_program_sees_whether_the_node_is_there_without_a_key_and_under_any_name() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let node = Node::new().await;
    let mut io = TcpStream::connect(node.at).await.unwrap();
    let request = "GET /health HTTP/1.1\r\nhost: anything.example\r\nconnection: close\r\n\r\n";
    io.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, io.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with(r#"{"status":"ok","protocol":3}"#), "{answer}");
    node.stop().await;
}

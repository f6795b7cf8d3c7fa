//! How clients come in.

use tokio::io::AsyncReadExt as _;

use mesh::{
    api::{agenda::NewKey, command::Command},
    name::key::KeySecret,
    wire::acts::{KeyMinted, KeyTerms, Tier},
};

use super::*;
use crate::Form;

impl Node {
    pub(super) fn mint(&self, key: &str, scopes: Option<&[Scope]>, owner: Option<&str>) {
        let scopes = scopes.map(|scopes| scopes.iter().copied().collect());
        let owner = owner.map(str::to_owned);
        let terms = KeyTerms { scopes, owner, ..KeyTerms::of(Tier::High) };
        let minted = KeyMinted::sign(&KeySecret::of(key), &here(), terms).unwrap();
        let new = NewKey { minted: Box::new(minted), local: false };
        self.fake.does(Command::MintKey(new)).unwrap();
    }
}

#[tokio::test]
async fn a_client_that_shows_a_key_is_let_in_with_ids_of_the_form_that_was_set_or_agreed_on() {
    let node = Node::new().await;
    let mut client = node.client().await;
    let ack = client.ask("connection.request", request("human", Some(KEY), "Ada", None)).await;
    assert_eq!(ack["type"], "connection.ack");
    assert!(ack["id"].as_str().unwrap().starts_with("msg_"), "{ack}");
    let data = &ack["data"];
    assert!(data["connection_id"].as_str().unwrap().starts_with("conn_"));
    let session = &data["session_info"];
    assert!(session["user_id"].as_str().unwrap().starts_with("user_"));
    assert_eq!(session["display_name"], "Ada");
    let all = [
        "read",
        "chat",
        "task_create",
        "task_claim",
        "git_commit",
        "room_create",
        "approve",
        "task_assign",
    ];
    assert_eq!(session["permissions"], json!(all));
    let limits = json!({
        "max_message_size": 65_536, "max_messages_per_minute": 60, "max_concurrent_tasks": 5,
    });
    assert_eq!(data["limits"], limits);
    let mut bare = node.bare().await;
    bare.connect("human", KEY, "Bo", Some("lobby")).await;
    let other = Node::with(keyed(), Settings { ids: Form::Bare, ..Settings::default() }).await;
    let mut client = other.client().await;
    client.bare = true;
    client.connect("agent", KEY, "Cy", None).await;
    for node in [node, other] {
        node.stop().await;
    }
}

#[tokio::test]
async fn who_shows_no_valid_key_is_refused_and_the_connection_closed() {
    let node = Node::new().await;
    let wrong = Some("no key of this mesh, but long enough");
    for (kind, key) in [("human", wrong), ("human", None), ("agent", wrong), ("agent", None)] {
        let mut client = node.client().await;
        let refused = client.refused("connection.request", request(kind, key, "x", None)).await;
        assert_eq!(refused.0, "AUTHENTICATION_FAILED");
        assert_eq!(client.ends().await, 1008);
    }
    // Nothing but a request counts before it.
    let mut client = node.client().await;
    let early = client.refused("connection.heartbeat", json!({})).await;
    assert_eq!(early.0, "AUTHENTICATION_FAILED");
    let short = json!({"client_type": "human", "client_info": {"name": "x", "version": "1"}});
    let refused = client.refused("connection.request", short).await;
    assert_eq!(refused, no("VALIDATION_FAILED", "data.client_info.version"));
    client.connect("human", KEY, "x", None).await;
    node.stop().await;
}

#[tokio::test]
async fn with_no_keys_anybody_is_let_in() {
    let node = Node::with(Config::new(Auth::Open, here()), Settings::default()).await;
    let mut client = node.client().await;
    client.gets("connection.request", request("human", None, "ada", Some("lobby"))).await;
    let said = client.gets("chat.human_message", super::chat::words("hello")).await;
    assert_eq!(said["content"]["text"], "hello");
    node.stop().await;
}

#[tokio::test]
async fn first_frames_of_other_dialects_are_not_taken_and_broken_ones_neither() {
    let node = Node::new().await;
    let mut other = node.client().await;
    other.send(r#"{"type":"echo","attach":"bob"}"#).await;
    assert_eq!(other.next().await.unwrap()["attached"], "bob");
    for broken in [r#"{"type":"connection.request""#, r#"["connection.request"]"#] {
        let mut other = node.client().await;
        other.send(broken).await;
        let answer = other.next().await;
        assert!(answer.is_none_or(|answer| answer.get("data").is_none()), "{broken}");
    }
    node.stop().await;
}

#[tokio::test]
async fn bad_frames_are_answered_with_their_field_and_many_of_them_end_it() {
    let node = Node::new().await;
    let mut client = node.person("ada").await;
    let id = ulid(77);
    let sound = envelope(&id, "connection.heartbeat", &json!({}));
    let with = |name: &str, value: Value| {
        let mut frame = sound.clone();
        frame[name] = value;
        frame.to_string()
    };
    let long = envelope(&id, "chat.human_message", &json!({"x": "y".repeat(65_537)}));
    for (frame, field) in [
        ("{".to_owned(), "$"),
        (with("id", Value::Null), "id"),
        (with("id", json!("msg_8ILOU")), "id"),
        (with("type", json!("hello")), "type"),
        (with("data", json!([])), "data"),
        (long.to_string(), "$"),
        (with("type", json!("dance.tango")), "type"),
        (with("metadata", json!({"expires_at": "2001-01-01T00:00:00Z"})), "metadata.expires_at"),
    ] {
        client.send(&frame).await;
        let error = client.hears("error").await;
        assert_eq!(why(&error), no("VALIDATION_FAILED", field), "{error}");
    }
    client.gets("connection.heartbeat", json!({})).await;
    let largest = envelope(&id, "chat.human_message", &json!({"x": "y".repeat(131_100)}));
    client.send(&largest.to_string()).await;
    assert_eq!(client.ends().await, 1009);
    let mut client = node.person("bo").await;
    for _ in 0..16 {
        client.send("{").await;
    }
    assert_eq!(client.ends().await, 1008);
    let mut client = node.person("cy").await;
    client.socket.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(client.ends().await, 1003);
    node.stop().await;
}

#[tokio::test]
async fn a_room_is_joined_by_any_of_its_names_and_none_that_must_not_be_known() {
    let node = Node::new().await;
    node.mint(MINTED, None, None);
    let mut owner = node.bare().await;
    owner.connect("human", MINTED, "ada", None).await;
    let config = json!({"config": {"name": "secret", "visibility": "private"}});
    let made = owner.extends("clawmesh.room", "extension.room_create", config).await;
    let room = made["data"]["room"]["room_id"].as_str().unwrap().to_owned();
    let uuid = RoomId(ids::parse(&room).unwrap()).to_uuid();
    for name in [room.clone(), format!("room_{room}"), uuid.clone(), "secret".to_owned()] {
        let mut client = node.bare().await;
        let ack = client.connect("human", MINTED, "bo", Some(&name)).await;
        let permissions = ack["session_info"]["permissions"].as_array().unwrap();
        assert!(permissions.contains(&json!("room_admin")), "{ack}");
        assert!(client.rest().await.is_empty(), "{name}");
    }
    // Nor is anything said of a message that would be wrong there.
    let mut stranger = node.person("cy").await;
    let mut odd = super::chat::words("x");
    odd["room_id"] = json!(uuid);
    odd["content"]["mentions"] = json!([
        {"type": "agent", "target": "nobody", "display_name": "x", "start_pos": 0, "end_pos": 1},
    ]);
    assert_eq!(stranger.refused("chat.human_message", odd).await, no("RESOURCE_NOT_FOUND", ""));
    for (key, name) in [(KEY, &*uuid), (KEY, "nowhere"), (MINTED, &ulid(200))] {
        let mut client = node.bare().await;
        let id =
            client.say("connection.request", request("human", Some(key), "x", Some(name))).await;
        let ack = client.answer(&id).await;
        assert_eq!(ack["type"], "connection.ack");
        let error = client.hears("error").await;
        assert_eq!(why(&error).0, "RESOURCE_NOT_FOUND", "{error}");
    }
    node.stop().await;
}

#[tokio::test]
async fn heartbeats_are_answered_and_say_to_others_what_is_done() {
    let node = Node::new().await;
    let mut agent = node.agent("bob").await;
    let activity = json!({"type": "executing_task", "progress": 0.65});
    let beat = json!({"connection_id": ulid(1), "status": "active", "current_activity": activity});
    let answer = agent.gets("connection.heartbeat", beat).await;
    assert_eq!(answer["status"], "active");
    let found = node.fake.does(Command::FindAgent { agent: "bob".into() }).unwrap();
    let mesh::api::command::Outcome::Agents(found) = found else { panic!("{found:?}") };
    let presence = &found[0].presence;
    assert_eq!(presence.status, mesh::wire::roster::Status::Working);
    assert_eq!((presence.detail.as_deref(), presence.progress), (Some("executing_task"), Some(65)));
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_told_so_and_one_whose_key_is_revoked_too() {
    let node = Node::new().await;
    let mut client = node.person("ada").await;
    let data =
        client.gets_frame("connection.disconnect", json!({"reason": "user_requested"})).await;
    assert_eq!(data["data"]["reason"], "user_requested");
    assert_eq!(client.ends().await, 1000);
    node.mint(MINTED, None, None);
    let mut client = node.bare().await;
    client.connect("human", MINTED, "bo", Some("lobby")).await;
    let key = mesh::name::id::KeyPrint::of(MINTED);
    node.fake.does(Command::RevokeKey { key }).unwrap();
    let last = client.hears("connection.disconnect").await;
    assert_eq!(last["data"]["reason"], "error");
    assert_eq!(last["data"]["reconnect_allowed"], false);
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

impl Client {
    /// The next frame of the same type, which answers without a word of which.
    async fn gets_frame(&mut self, kind: &str, data: Value) -> Value {
        self.say(kind, data).await;
        self.hears(kind).await
    }
}

#[tokio::test]
async fn a_switched_off_dialect_says_so_in_its_own_form() {
    let node = Node::with(keyed(), Settings { on: false, ..Settings::default() }).await;
    let mut client = node.client().await;
    let refused = client.ask("connection.request", request("human", Some(KEY), "x", None)).await;
    assert_eq!(why(&refused), no("AUTHORIZATION_DENIED", "off"));
    let instead = refused["data"]["details"]["suggestion"].as_str().unwrap();
    assert!(instead.contains("--no-clawtank"), "{instead}");
    assert_eq!(client.ends().await, 1008);
    node.stop().await;
}

#[tokio::test]
async fn extensions_are_what_both_have_and_others_fall_back() {
    let node = Node::new().await;
    let mut client = node.client().await;
    let agreed = client
        .capabilities(&["clawmesh.room@1.4.0", "clawmesh.task@2.0.0", "clawtank.voice@1.0.0"])
        .await;
    let expect = json!({
        "supported_extensions": ["clawmesh.room@1.0.0"], "optional_features": ["threading"],
    });
    assert_eq!(agreed, expect);
    client.connect("human", KEY, "ada", Some("lobby")).await;
    let frame = |behaviour: &str| {
        let data =
            json!({"namespace": "clawtank.voice", "extension_version": "1.0.0", "payload": {}});
        let mut frame = envelope(&ulid(99), "extension.voice_call", &data);
        frame["metadata"] = json!({"fallback_behavior": behaviour, "correlation_id": behaviour});
        frame.to_string()
    };
    client.send(&frame("ignore")).await;
    assert!(client.rest().await.is_empty());
    client.send(&frame("error")).await;
    let error = client.answer("error").await;
    assert_eq!(why(&error), no("RESOURCE_NOT_FOUND", "extension_unsupported"));
    node.stop().await;
}

#[tokio::test]
async fn a_member_does_not_speak_as_one_who_looks_on() {
    let node = Node::new().await;
    let mut client = node.person("ada").await;
    for kind in ["spectator.connect", "spectator.chat_message", "chat.spectator_message"] {
        assert_eq!(client.refused(kind, json!({})).await, no("AUTHORIZATION_DENIED", "member"));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_client_of_which_nothing_is_heard_is_told_so_and_goes() {
    let node = Node::new().await;
    let mut client = node.person("ada").await;
    tokio::time::pause();
    // It reads nothing meanwhile, so it answers no ping.
    tokio::time::sleep(crate::limits::SILENT_FOR_MAX + Duration::from_millis(10)).await;
    tokio::time::resume();
    // Read as bytes: it would answer pings that came before.
    let MaybeTlsStream::Plain(io) = client.socket.get_mut() else { panic!("without TLS") };
    let mut bytes = Vec::new();
    timeout(PATIENCE, io.read_to_end(&mut bytes)).await.expect("it ends").unwrap();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(br#""type":"connection.disconnect""#) && has(br#""reason":"timeout""#));
    assert!(has(&1008_u16.to_be_bytes()));
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_stops_says_so() {
    let node = Node::new().await;
    let mut client = node.person("ada").await;
    let stops = tokio::spawn(node.stop());
    let last = client.hears("connection.disconnect").await;
    assert_eq!(last["data"]["reason"], "server_shutdown");
    assert_eq!(last["data"]["reconnect_allowed"], true);
    assert_eq!(client.ends().await, 1001);
    stops.await.unwrap();
}

#[tokio::test]
async fn a_person_has_several_windows_and_each_hears_what_was_said_in_another() {
    let node = Node::new().await;
    let mut bob = node.agent("bob").await;
    let (mut one, mut two) = (node.person("ada").await, node.person("ada").await);
    // Both have been given what was said before, which is nothing.
    assert!(one.rest().await.is_empty() && two.rest().await.is_empty());
    let said = one.ask("chat.human_message", super::chat::words("here")).await;
    let heard = two.hears("chat.human_message").await;
    assert_eq!((&heard["id"], &heard["data"]), (&said["id"], &said["data"]));
    assert!(heard["metadata"].get("correlation_id").is_none());
    bob.hears("chat.human_message").await;
    bob.gets("chat.agent_message", super::chat::words("yes")).await;
    for window in [&mut one, &mut two] {
        window.hears("chat.agent_message").await;
    }
    let is_chat = |frame: &Value| frame["type"].as_str().unwrap().starts_with("chat.");
    for window in [&mut one, &mut two, &mut bob] {
        assert!(!window.rest().await.iter().any(is_chat), "once");
    }
    drop(one);
    two.gets("chat.human_message", super::chat::words("still here")).await;
    node.stop().await;
}

impl Client {
    /// The time until so many frames that are sent at once are answered, by a clock that stands as long as something is done.
    async fn until_answered(&mut self, frames: u32) -> Duration {
        let asked =
            json!({"type": "connection.capabilities", "data": {"supported_extensions": []}});
        let (asked, began) = (asked.to_string(), tokio::time::Instant::now());
        for _ in 0..frames {
            self.send(&asked).await;
        }
        for _ in 0..frames {
            let is_answer = |frame: &Value| {
                ["connection.capabilities", "error"].contains(&frame["type"].as_str().unwrap())
            };
            self.find(is_answer).await;
        }
        began.elapsed()
    }
}

#[tokio::test]
async fn frames_beyond_the_pace_are_heard_later_of_members_and_of_those_who_have_shown_no_key() {
    use crate::limits::PACE;
    let node = Node::new().await;
    let mut member = node.person("ada").await;
    tokio::time::pause();
    let at_pace = |rate: bridge::session::rates::Rate, frames: u32| {
        Duration::from_secs(60) / rate.per_minute * frames.saturating_sub(rate.burst + 1)
    };
    let took = member.until_answered(PACE.own.burst + 101).await;
    assert!(took >= at_pace(PACE.own, PACE.own.burst + 101), "{took:?}");
    tokio::time::resume();
    let mut stranger = node.client().await;
    tokio::time::pause();
    let took = stranger.until_answered(PACE.of_stranger.burst + 31).await;
    assert!(took >= at_pace(PACE.of_stranger, PACE.of_stranger.burst + 31), "{took:?}");
    // One that looks on is heard at the same pace, and goes in its time: more than that it may not do.
    tokio::time::resume();
    let mut looks = node.at("/spectate/lobby").await;
    looks.hears("spectator.welcome").await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for _ in 0..PACE.of_stranger.burst + 31 {
        looks.say("connection.heartbeat", json!({})).await;
    }
    looks.say("connection.disconnect", json!({})).await;
    assert_eq!(looks.ends().await, 1000);
    assert!(began.elapsed() >= at_pace(PACE.of_stranger, PACE.of_stranger.burst + 31));
    tokio::time::resume();
    node.stop().await;
}

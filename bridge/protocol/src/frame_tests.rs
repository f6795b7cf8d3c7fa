use super::*;
use crate::code::Code;
use crate::event::{
    AgentJoined, AgentLeft, AgentName, Heartbeat, Mention, PresenceUpdate, RoomDestroyed,
    TurnChanged, TurnReason, TypingIndicator,
};
use crate::object::{Agent, MeshNote, Message, Room, Visibility};
use crate::reply::{Empty, HistoryResult, InRoom, Registered, Resumed, RoomInfoResult};
use crate::request;
use crate::value::{IfAssignee, Metadata, Progress, Status};

fn refusal(line: &str) -> RequestError {
    parse_request(line).expect_err(line)
}

fn message() -> Message {
    Message {
        message_id: "m".into(),
        room_id: "lobby".into(),
        agent_id: "a".into(),
        agent_name: "alice".into(),
        content: "one\ntwo\u{2028}\u{0}".into(),
        reply_to_message: None,
        metadata: Some(Metadata::parse(r#"{"kind":"fyi"}"#).unwrap()),
        timestamp: "2026-03-01T12:00:00Z".into(),
        seq: 7,
        mesh: None,
    }
}

fn room() -> Room {
    Room {
        room_id: "r".into(),
        name: "war room".into(),
        description: None,
        parent_id: None,
        ephemeral: false,
        created_at: "2026-03-01T12:00:00Z".into(),
        created_by: Some("a".into()),
        visibility: Visibility::Public,
        owner_key: None,
        last_activity: None,
        member_count: Some(2),
        encrypted: false,
        mesh: None,
    }
}

#[test]
fn the_requests_of_the_specification_are_read() {
    let lines = [
        r#"{"id":"req-1","type":"register","payload":{"key":"k","name":"n","capabilities":["x"],"protocol_version":1}}"#,
        r#"{"id":"req-9","type":"ping","payload":{}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"pong","reply_to":"x","payload":null}"#,
        r#"{"type":"create_room","payload":{"name":"r","parent_id":null,"ephemeral":true}}"#,
        r#"{"type":"join_room","payload":{"room_id":"lobby","surprise":[{}]}}"#,
        r#"{"type":"leave_room","payload":{"room_id":"lobby"}}"#,
        r#"{"type":"send_message","payload":{"room_id":"lobby","content":"x","mentions":["b"],"metadata":null,"mesh":{"dedup":"1"}}}"#,
        r#"{"type":"thinking","payload":{"room_id":"lobby","content":"x"}}"#,
        r#"{"type":"get_history","payload":{"room_id":"lobby","since_seq":0,"limit":500}}"#,
        r#"{"type":"search","payload":{"text":"a b","room_id":"r","from":"a","since":"t","before":"t","after":"x","limit":3}}"#,
        r#"{"type":"room_tip","payload":{"room_id":"lobby"}}"#,
        r#"{"type":"list_rooms","payload":{}}"#,
        r#"{"type":"list_agents"}"#,
        r#"{"type":"room_info","payload":{"room_id":"lobby"}}"#,
        r#"{"type":"set_typing","payload":{"room_id":"lobby"}}"#,
        r#"{"type":"set_presence","payload":{"status":"working","status_detail":"x","progress":57}}"#,
        r#"{"type":"create_vote","payload":{"room_id":"r","title":"t","options":["x","y"],"description":"d","duration_secs":60}}"#,
        r#"{"type":"cast_vote","payload":{"vote_id":"v","option_index":0}}"#,
        r#"{"type":"get_vote_status","payload":{"vote_id":"v"}}"#,
        r#"{"type":"list_votes","payload":{"room_id":"r","limit":3}}"#,
        r#"{"type":"elect_leader","payload":{"room_id":"r"}}"#,
        r#"{"type":"decline_election","payload":{"room_id":"r"}}"#,
        r#"{"type":"decision","payload":{"room_id":"r","content":"x","metadata":{"w":1},"mesh":{"dedup":"1"}}}"#,
        r#"{"type":"assign_task","payload":{"room_id":"r","title":"t","description":"d","assignee":"b"}}"#,
        r#"{"type":"update_task","payload":{"task_id":"t","status":"in_progress","assignee":"b","note":"n"}}"#,
        r#"{"type":"update_task","payload":{"task_id":"t","assignee":"b","if_assignee":null}}"#,
        r#"{"type":"update_task","payload":{"task_id":"t","assignee":"b","if_assignee":"a"}}"#,
        r#"{"type":"list_tasks","payload":{"room_id":"r","status":"blocked"}}"#,
        r#"{"type":"once","payload":{"room_id":"r","subject":"s","lease_ms":30000}}"#,
        r#"{"type":"once","payload":{"room_id":"r","subject":"s","release":"g"}}"#,
        r#"{"type":"decide_approval","payload":{"room_id":"r","message_id":"m","decision":"always","reason":"x"}}"#,
        r#"{"type":"list_approvals","payload":{"room_id":"r"}}"#,
        r#"{"type":"get_approval","payload":{"room_id":"r","message_id":"m"}}"#,
        r#"{"type":"subscribe","payload":{"room_id":"r","webhook_url":"https://e.example/h","secret":"s","kinds":["verdict"],"only_from":"a","not_from":"b","exclude_thinking":true,"since_seq":0}}"#,
        r#"{"type":"unsubscribe","payload":{"subscription_id":"s"}}"#,
        r#"{"type":"list_subscriptions","payload":{}}"#,
        r#"{"type":"enable_subscription","payload":{"subscription_id":"s"}}"#,
    ];
    for line in lines {
        let incoming = parse_request(line).expect(line);
        let again = encode_request(&incoming.request, incoming.id.as_deref(), None);
        assert_eq!(parse_request(&again).unwrap(), incoming, "{again}");
    }
}

#[test]
fn defaults_are_the_specifications() {
    let read = |line: &str| parse_request(line).unwrap().request;
    let Request::GetHistory(ask) = read(r#"{"type":"get_history","payload":{"room_id":"r"}}"#)
    else {
        panic!("not a get_history");
    };
    assert_eq!((ask.limit, ask.before, ask.since, ask.since_seq), (50, None, None, None));
    let Request::SetTyping(typing) = read(r#"{"type":"set_typing","payload":{"room_id":"r"}}"#)
    else {
        panic!("not a set_typing");
    };
    assert!(typing.typing);
    let Request::Register(register) =
        read(r#"{"type":"register","payload":{"key":"k","name":"n"}}"#)
    else {
        panic!("not a register");
    };
    assert_eq!(
        (register.protocol_version, register.reconnect, register.agent_id),
        (1, false, None)
    );
    let Request::ListVotes(ask) = read(r#"{"type":"list_votes","payload":{"room_id":"r"}}"#) else {
        panic!("not a list_votes");
    };
    assert_eq!(ask.limit, 20);
}

#[test]
fn a_condition_that_is_null_is_another_than_none() {
    for (given, expect) in [
        ("", IfAssignee::Anybody),
        (r#","if_assignee":null"#, IfAssignee::Nobody),
        (r#","if_assignee":"a""#, IfAssignee::Agent("a".into())),
    ] {
        let line = format!(r#"{{"type":"update_task","payload":{{"task_id":"t"{given}}}}}"#);
        let request = parse_request(&line).unwrap().request;
        let Request::UpdateTask(update) = &request else { panic!("not an update_task") };
        assert_eq!(update.if_assignee, expect);
        let written = encode_request(&request, None, None);
        assert_eq!(written.trim_end(), line);
    }
}

#[test]
fn a_refusal_names_the_field_and_carries_the_id() {
    let cases = [
        ("register", r#"{"name":"n"}"#, "`key`"),
        ("register", r#"{"key":"k","name":5}"#, "`name`"),
        ("register", r#"{"key":"k","name":"n","capabilities":[1]}"#, "`capabilities`"),
        ("register", r#"{"key":"k","name":"n","protocol_version":"1"}"#, "`protocol_version`"),
        ("create_room", "{}", "`name`"),
        ("create_room", r#"{"name":"r","ephemeral":"yes"}"#, "`ephemeral`"),
        ("join_room", r#"{"room_id":null}"#, "`room_id`"),
        ("send_message", r#"{"room_id":"r"}"#, "`content`"),
        ("send_message", r#"{"room_id":"r","content":"\ud800"}"#, "`content`"),
        ("send_message", r#"{"room_id":"r","content":"x","reply_to":1}"#, "`reply_to`"),
        ("send_message", r#"{"room_id":"r","content":"x","mentions":"b"}"#, "`mentions`"),
        ("send_message", r#"{"room_id":"r","content":"x","metadata":1e999}"#, "`metadata`"),
        ("send_message", r#"{"room_id":"r","content":"x","mesh":{"dedup":""}}"#, "`mesh`"),
        ("send_message", r#"{"room_id":"r","content":"x","mesh":{"dedup":7}}"#, "`dedup`"),
        ("get_history", r#"{"room_id":"r","limit":-1}"#, "`limit`"),
        ("get_history", r#"{"room_id":"r","since_seq":1e400}"#, "`since_seq`"),
        ("set_presence", r#"{"status":"asleep"}"#, "`status`"),
        ("set_presence", r#"{"status":"idle","progress":101}"#, "`progress`"),
        ("ping", "[]", "`payload`"),
        ("ping", "\"x\"", "`payload`"),
        ("create_vote", r#"{"room_id":"r","title":"t"}"#, "`options`"),
        ("create_vote", r#"{"room_id":"r","title":"t","options":["x",1]}"#, "`options`"),
        (
            "create_vote",
            r#"{"room_id":"r","title":"t","options":[],"duration_secs":1.5}"#,
            "`duration_secs`",
        ),
        ("cast_vote", r#"{"vote_id":"v"}"#, "`option_index`"),
        ("cast_vote", r#"{"vote_id":"v","option_index":-1}"#, "`option_index`"),
        ("cast_vote", r#"{"vote_id":"v","option_index":"0"}"#, "`option_index`"),
        ("cast_vote", r#"{"vote_id":7,"option_index":0}"#, "`vote_id`"),
        ("get_vote_status", "{}", "`vote_id`"),
        ("list_votes", r#"{"room_id":"r","limit":"all"}"#, "`limit`"),
        ("elect_leader", "{}", "`room_id`"),
        ("decline_election", "{}", "`room_id`"),
        ("decision", r#"{"room_id":"r"}"#, "`content`"),
        ("decision", r#"{"room_id":"r","content":"x","metadata":1e999}"#, "`metadata`"),
        ("assign_task", r#"{"room_id":"r"}"#, "`title`"),
        ("assign_task", r#"{"room_id":"r","title":"t","assignee":["b"]}"#, "`assignee`"),
        ("update_task", "{}", "`task_id`"),
        ("update_task", r#"{"task_id":"t","status":"done"}"#, "`status`"),
        ("update_task", r#"{"task_id":"t","note":1}"#, "`note`"),
        ("update_task", r#"{"task_id":"t","if_assignee":false}"#, "`if_assignee`"),
        ("list_tasks", r#"{"room_id":"r","status":"done"}"#, "`status`"),
        ("subscribe", r#"{"room_id":"r","webhook_url":"u"}"#, "`secret`"),
        ("subscribe", r#"{"room_id":"r","webhook_url":1,"secret":"s"}"#, "`webhook_url`"),
        (
            "subscribe",
            r#"{"room_id":"r","webhook_url":"u","secret":"s","kinds":"verdict"}"#,
            "`kinds`",
        ),
        (
            "subscribe",
            r#"{"room_id":"r","webhook_url":"u","secret":"s","since_seq":"tip"}"#,
            "`since_seq`",
        ),
        ("unsubscribe", "{}", "`subscription_id`"),
        ("list_subscriptions", r#"{"room_id":1}"#, "`room_id`"),
        ("enable_subscription", "{}", "`subscription_id`"),
        ("summon", "{}", "`summon`"),
    ];
    for (kind, payload, names) in cases {
        let error = refusal(&format!(r#"{{"type":"{kind}","id":"q","payload":{payload}}}"#));
        assert_eq!(error.reply_to.as_deref(), Some("q"), "{kind} {payload}");
        assert!(error.message.contains(names), "{kind} {payload}: {}", error.message);
    }
}

#[test]
fn what_is_not_a_frame_is_refused_without_an_id() {
    for line in ["", "x", "[]", "null", "{", r#"{"id":7,"type":"ping"}"#, r#"{"type":"ping"} {}"#] {
        assert_eq!(refusal(line).reply_to, None, "{line}");
    }
    assert!(refusal(r#"{"id":[],"type":"ping"}"#).message.contains("`id`"));
    assert_eq!(refusal(r#"{"id":"q"}"#).reply_to.as_deref(), Some("q"));
    assert!(refusal(&format!(r#"{{"type":"{}"}}"#, "x".repeat(5000))).message.len() < 200);
}

#[test]
fn nothing_in_a_line_can_make_parsing_panic() {
    let seed = r#"{"id":"q","type":"send_message","payload":{"room_id":"lobby","content":"ab\n","mentions":["b"],"metadata":{"a":[1,2.5,{"b":null}]},"mesh":{"dedup":"1"}}}"#;
    // A small xorshift: the same inputs on every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let bytes = br#"{}[]":,\ u0eE-+.1n"tf"#;
    for _ in 0..20_000 {
        let mut line = seed.as_bytes().to_vec();
        for _ in 0..=draw(6) {
            let Some(at) = line.len().checked_sub(1).map(|last| draw(last + 1)) else { break };
            match draw(4) {
                0 => line[at] = bytes[draw(bytes.len())],
                1 => line[at] = draw(256) as u8,
                2 => drop(line.remove(at)),
                _ => line.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&line);
        if let Ok(incoming) = parse_request(&text) {
            let again = encode_request(&incoming.request, incoming.id.as_deref(), None);
            assert_eq!(parse_request(&again).unwrap(), incoming);
        }
        let _ = ServerFrame::parse(&text);
    }
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(200_000);
        assert!(parse_request(&deep).is_err());
        let nested = format!(r#"{{"type":"ping","payload":{deep}"#);
        assert!(parse_request(&nested).is_err());
    }
}

#[test]
fn events_have_the_shape_of_the_specification_and_come_back() {
    let joined = |reconnected| {
        Event::AgentJoined(AgentJoined {
            room_id: "r".into(),
            agent: AgentName { agent_id: "a".into(), name: "n".into() },
            reconnected,
        })
    };
    let turn = TurnChanged {
        room_id: "r".into(),
        current_turn_holder: None,
        turn_order: vec![],
        reason: TurnReason::MessageSent,
    };
    let presence = PresenceUpdate {
        agent_id: "a".into(),
        agent_name: "n".into(),
        status: Status::Idle,
        status_detail: None,
        progress: Progress::new(0),
    };
    let typing = TypingIndicator {
        room_id: "r".into(),
        agent_id: "a".into(),
        agent_name: "n".into(),
        typing: true,
    };
    let mention = Mention { room_id: "lobby".into(), message: Box::new(message()) };
    let message_json = r#"{"message_id":"m","room_id":"lobby","agent_id":"a","agent_name":"alice","content":"one\ntwo\u2028\u0000","metadata":{"kind":"fyi"},"timestamp":"2026-03-01T12:00:00Z","seq":7}"#.replace("\\u2028", "\u{2028}");
    let room_json = r#"{"room_id":"r","name":"war room","ephemeral":false,"created_at":"2026-03-01T12:00:00Z","created_by":"a","visibility":"public","member_count":2,"encrypted":false}"#;
    let cases = [
        (Event::MessageReceived(Box::new(message())), "message_received", message_json.clone()),
        (Event::Thinking(Box::new(message())), "thinking", message_json.clone()),
        (Event::Mention(mention), "mention", format!(r#"{{"room_id":"lobby","message":{message_json}}}"#)),
        (joined(false), "agent_joined", r#"{"room_id":"r","agent":{"agent_id":"a","name":"n"}}"#.into()),
        (joined(true), "agent_joined", r#"{"room_id":"r","agent":{"agent_id":"a","name":"n"},"reconnected":true}"#.into()),
        (Event::AgentLeft(AgentLeft { room_id: "r".into(), agent_id: "a".into() }), "agent_left", r#"{"room_id":"r","agent_id":"a"}"#.into()),
        (Event::RoomCreated(Box::new(room())), "room_created", room_json.into()),
        (Event::RoomDestroyed(RoomDestroyed { room_id: "r".into() }), "room_destroyed", r#"{"room_id":"r"}"#.into()),
        (Event::TypingIndicator(typing), "typing_indicator", r#"{"room_id":"r","agent_id":"a","agent_name":"n","typing":true}"#.into()),
        (Event::PresenceUpdate(presence), "presence_update", r#"{"agent_id":"a","agent_name":"n","status":"idle","status_detail":null,"progress":0}"#.into()),
        (Event::TurnChanged(turn), "turn_changed", r#"{"room_id":"r","current_turn_holder":null,"turn_order":[],"reason":"message_sent"}"#.into()),
        (Event::Ping(Heartbeat { heartbeat: true }), "ping", r#"{"heartbeat":true}"#.into()),
    ];
    for (event, kind, payload) in cases {
        let line = encode_event(&event, "u");
        assert_eq!(line, format!("{{\"id\":\"u\",\"type\":\"{kind}\",\"payload\":{payload}}}"));
        assert!(!line.contains('\n'), "it is one line");
        let frame = ServerFrame::parse(&line).unwrap();
        assert_eq!(frame.event().unwrap(), Some(event));
    }
}

#[test]
fn replies_have_the_shape_of_the_specification() {
    let registered = |resumed| {
        Reply::Registered(Registered {
            agent_id: "a".into(),
            name: "n".into(),
            protocol_version: 1,
            resumed,
        })
    };
    let resumed = Resumed { reconnected: true, rooms: vec!["r".into()], missed_messages: 2 };
    let mut plain = message();
    plain.metadata = None;
    plain.content = "x".into();
    plain.mesh = Some(MeshNote {
        canonical_seq: Some(3),
        late: Some(true),
        numbers: vec![3, 7],
        ..MeshNote::default()
    });
    let history = HistoryResult { room_id: "r".into(), messages: vec![], mesh: None };
    let cases = [
        (registered(None), "ok", r#"{"agent_id":"a","name":"n","protocol_version":1}"#),
        (
            registered(Some(resumed)),
            "ok",
            r#"{"agent_id":"a","name":"n","protocol_version":1,"reconnected":true,"rooms":["r"],"missed_messages":2}"#,
        ),
        (Reply::InRoom(InRoom { room_id: "r".into() }), "ok", r#"{"room_id":"r"}"#),
        (
            Reply::Message(Box::new(plain)),
            "ok",
            r#"{"message_id":"m","room_id":"lobby","agent_id":"a","agent_name":"alice","content":"x","metadata":null,"timestamp":"2026-03-01T12:00:00Z","seq":7,"mesh":{"canonical_seq":3,"late":true,"numbers":[3,7]}}"#,
        ),
        (Reply::History(history), "history_result", r#"{"room_id":"r","messages":[]}"#),
        (Reply::Pong(Empty {}), "pong", "{}"),
        (
            Reply::error(Code::RoomNotFound, "no room x"),
            "error",
            r#"{"code":"room_not_found","message":"no room x"}"#,
        ),
    ];
    for (reply, kind, payload) in cases {
        let line = encode_reply(&reply, Some("q"), "u");
        let expected = format!(
            "{{\"id\":\"u\",\"reply_to\":\"q\",\"type\":\"{kind}\",\"payload\":{payload}}}"
        );
        assert_eq!(line, expected);
    }
    let line = encode_reply(&registered(None), None, "u");
    assert!(!line.contains("reply_to"));
    let frame = ServerFrame::parse(&line).unwrap();
    assert_eq!(Reply::Registered(frame.body().unwrap()), registered(None));
}

#[test]
fn objects_of_other_servers_are_tolerated() {
    let agent: Agent = serde_json::from_str(
        r#"{"agent_id":"a","name":"n","connected_at":"t","last_active":"t","future":{"x":1},"mesh":{"node":"n","verified":true,"hops":2}}"#,
    )
    .unwrap();
    assert_eq!(agent.status, Status::Idle);
    assert_eq!(agent.mesh.unwrap().verified, Some(true));
    let frame = ServerFrame::parse(r#"{"id":"u","type":"of_tomorrow","payload":{"x":1}}"#).unwrap();
    assert!(frame.event().unwrap().is_none());
    let frame = ServerFrame::parse(r#"{"type":"agent_left","payload":{"room_id":"r"}}"#).unwrap();
    assert!(frame.event().is_err());
    let info: RoomInfoResult = serde_json::from_str(
        r#"{"room":{"room_id":"lobby","name":"lobby","created_at":"t","visibility":"public"},"agents":[]}"#,
    )
    .unwrap();
    assert_eq!(info.current_turn_holder, None);
}

#[test]
fn a_request_of_the_client_leaves_out_what_has_no_value() {
    let request = Request::from(request::GetHistory {
        room_id: "r".into(),
        limit: 500,
        before: None,
        since: None,
        since_seq: Some(3),
    });
    let line = encode_request(&request, Some("c1"), None);
    assert_eq!(
        line,
        "{\"id\":\"c1\",\"type\":\"get_history\",\"payload\":{\"room_id\":\"r\",\"limit\":500,\"since_seq\":3}}\n"
    );
}

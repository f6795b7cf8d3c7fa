use std::time::Duration;

use protocol::code::Code;
use protocol::event::{Event as Pushed, Heartbeat, Mention};
use protocol::frame::Incoming;
use protocol::object::Message;
use protocol::reply::{Empty, HistoryResult, InRoom, Reply, RoomTipResult};
use protocol::request::{
    CreateRoom, GetHistory, JoinRoom, Ping, Request, RoomTip, SendMessage, Thinking,
};

use crate::client::Client;
use crate::error::{CallError, ConnectError};
use crate::events::Event;
use crate::fake::{Conn, Fake, message, options, within};
use crate::limits::EVENTS_QUEUED_MAX;
use crate::messages::{Item, Messages, Start};
use crate::sealing::RoomKey;
use crate::secrets::{Secret, Secrets};

fn send(content: &str) -> SendMessage {
    SendMessage {
        room_id: "r".into(),
        content: content.into(),
        reply_to: None,
        mentions: vec![],
        metadata: None,
        mesh: None,
    }
}

fn joined() -> Reply {
    Reply::InRoom(InRoom { room_id: "r".into() })
}

fn live(seq: u64) -> Pushed {
    Pushed::MessageReceived(Box::new(message(seq)))
}

fn dedup_of(incoming: &Incoming) -> String {
    let Request::SendMessage(send) = &incoming.request else { panic!("not a send_message") };
    let options = send.mesh.as_ref().expect("mesh options");
    options.dedup.as_ref().expect("a dedup id").as_str().to_owned()
}

async fn agent(fake: &Fake) -> (Client, crate::events::Events, Conn) {
    let (connected, conn) =
        tokio::join!(Client::connect(options(vec![fake.address()])), fake.accept_agent());
    let (client, events) = connected.unwrap();
    (client, events, conn)
}

/// Answers `get_history` from the messages that the "node" has.
async fn answer_page(conn: &mut Conn, incoming: &Incoming, stored: &[u64], most: usize) {
    let Request::GetHistory(page) = &incoming.request else {
        panic!("not a get_history: {incoming:?}")
    };
    let after = page.since_seq.expect("a cursor");
    let messages: Vec<Message> =
        stored.iter().filter(|seq| **seq > after).take(most).map(|seq| message(*seq)).collect();
    let page = HistoryResult { room_id: "r".into(), messages, mesh: None };
    conn.answer(incoming, Reply::History(page)).await;
}

async fn next_seq(messages: &mut Messages) -> u64 {
    loop {
        if let Item::Message(message) = within(messages.next()).await.unwrap() {
            return message.seq;
        }
    }
}

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let fake = Fake::start().await;
    let (client, _events, mut conn) = agent(&fake).await;
    assert_eq!((client.agent_id(), client.name()), ("a", "alice"));
    let node = async {
        let first = conn.recv().await;
        let second = conn.recv().await;
        for incoming in [second, first] {
            let Request::RoomTip(tip) = &incoming.request else { panic!("not a room_tip") };
            let seq = tip.room_id.len() as u64;
            let reply = RoomTipResult { room_id: tip.room_id.clone(), seq };
            conn.push(live(1)).await;
            conn.answer(&incoming, Reply::RoomTip(reply)).await;
        }
        let incoming = conn.recv().await;
        conn.answer(&incoming, Reply::error(Code::RoomNotFound, "no such room")).await;
    };
    let program = async {
        let tip = |room_id: &str| client.call(RoomTip { room_id: room_id.into() });
        let (one, three) = tokio::join!(tip("x"), tip("xxx"));
        assert_eq!((one.unwrap().seq, three.unwrap().seq), (1, 3));
        let refused = tip("x").await.unwrap_err();
        assert!(
            matches!(refused, CallError::Refused { code: Code::RoomNotFound, .. }),
            "{refused:?}"
        );
    };
    within(async { tokio::join!(node, program) }).await;
    drop(client);
    assert_eq!(conn.recv_line().await, None, "dropping the client closes the connection");
}

#[tokio::test]
async fn a_refused_registration_is_told_with_its_code() {
    let fake = Fake::start().await;
    let node = async {
        let mut conn = fake.accept().await;
        let incoming = conn.recv().await;
        conn.answer(&incoming, Reply::error(Code::Unauthorized, "bad key")).await;
    };
    let (connected, ()) = tokio::join!(Client::connect(options(vec![fake.address()])), node);
    let refused = connected.unwrap_err();
    assert!(
        matches!(refused, ConnectError::Refused { code: Code::Unauthorized, .. }),
        "{refused:?}"
    );
    let none = Client::connect(options(vec![])).await.unwrap_err();
    assert!(matches!(none, ConnectError::NoAddress));
    let missing = "/nonexistent/clawchat.sock".parse().unwrap();
    let unreachable = Client::connect(options(vec![missing])).await.unwrap_err();
    assert!(matches!(unreachable, ConnectError::Unreachable { .. }));
}

#[tokio::test]
async fn heartbeats_are_answered_though_nobody_reads_events() {
    let fake = Fake::start().await;
    let (client, mut events, mut conn) = agent(&fake).await;
    let flood = EVENTS_QUEUED_MAX as u64 + 10;
    for seq in 1..=flood {
        conn.push(live(seq)).await;
    }
    conn.push(Pushed::Ping(Heartbeat { heartbeat: true })).await;
    let pong = conn.recv_line().await.unwrap();
    assert!(pong.contains(r#""type":"pong""#) && pong.contains(r#""reply_to":"e""#), "{pong}");
    let (tip, ()) = tokio::join!(client.call(Ping {}), async {
        let incoming = conn.recv().await;
        conn.answer(&incoming, Reply::Pong(Empty {})).await;
    });
    tip.unwrap();
    for seq in 1..=EVENTS_QUEUED_MAX as u64 {
        assert_eq!(within(events.next()).await, Some(Event::Pushed(live(seq))));
    }
    assert_eq!(within(events.next()).await, Some(Event::Missed { count: 10 }));
}

#[tokio::test]
async fn a_silent_node_is_probed_and_then_left() {
    let fake = Fake::start().await;
    let mut options = options(vec![fake.address()]);
    options.policy.probe_after = Duration::from_millis(30);
    options.policy.dead_after = Duration::from_millis(800);
    let (connected, mut conn) = tokio::join!(Client::connect(options), fake.accept_agent());
    let (_client, mut events) = connected.unwrap();
    assert!(matches!(conn.recv().await.request, Request::Ping(_)));
    let again = within(fake.accept()).await.recv().await;
    let Request::Register(register) = again.request else { panic!("not a register") };
    assert_eq!((register.agent_id.as_deref(), register.reconnect), (Some("a"), true));
    let event = within(events.next()).await;
    assert!(matches!(event, Some(Event::Disconnected { .. })), "{event:?}");
}

#[tokio::test]
async fn a_send_is_repeated_on_the_next_connection_under_one_dedup_id() {
    let fake = Fake::start().await;
    let (client, mut events, mut conn) = agent(&fake).await;
    let node = async {
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
        let first = dedup_of(&conn.recv().await);
        drop(conn);
        let mut conn = fake.accept_agent().await;
        let join = conn.recv().await;
        assert!(matches!(join.request, Request::JoinRoom(_)), "rooms are joined before anything");
        conn.answer(&join, joined()).await;
        let again = conn.recv().await;
        assert_eq!(dedup_of(&again), first);
        conn.answer(&again, Reply::Message(Box::new(message(1)))).await;
        let other = conn.recv().await;
        assert_ne!(dedup_of(&other), first);
        conn.answer(&other, Reply::Message(Box::new(message(2)))).await;
    };
    let program = async {
        client.call(JoinRoom { room_id: "r".into() }).await.unwrap();
        assert_eq!(client.call(send("x")).await.unwrap().seq, 1);
        assert_eq!(client.call(send("x")).await.unwrap().seq, 2);
        assert!(matches!(events.next().await, Some(Event::Disconnected { .. })));
        assert_eq!(events.next().await, Some(Event::Reconnected { rooms_lost: vec![] }));
    };
    within(async { tokio::join!(node, program) }).await;
}

#[tokio::test]
async fn what_must_not_be_repeated_is_told_as_lost() {
    let fake = Fake::start().await;
    let (client, _events, mut conn) = agent(&fake).await;
    let create = CreateRoom {
        name: "n".into(),
        description: None,
        parent_id: None,
        ephemeral: false,
        public: false,
        encrypted: false,
        mesh: None,
    };
    let (created, ()) = tokio::join!(client.call(create), async {
        conn.recv().await;
        drop(conn);
    });
    assert!(matches!(created, Err(CallError::Lost)), "{created:?}");
    let huge = client.call(send(&"x".repeat(1_100_000))).await;
    assert!(matches!(huge, Err(CallError::TooLarge { .. })), "{huge:?}");
}

#[tokio::test]
async fn the_next_address_is_tried_and_a_room_that_is_closed_is_told() {
    let (one, two) = (Fake::start().await, Fake::start().await);
    let addresses = vec![one.address(), two.address()];
    let (connected, mut conn) =
        tokio::join!(Client::connect(options(addresses)), one.accept_agent());
    let (client, mut events) = connected.unwrap();
    let (room, ()) = tokio::join!(client.call(JoinRoom { room_id: "r".into() }), async {
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
    });
    room.unwrap();
    drop((one, conn));
    let mut conn = two.accept_agent().await;
    let join = conn.recv().await;
    conn.answer(&join, Reply::error(Code::RoomNotFound, "gone")).await;
    assert!(matches!(within(events.next()).await, Some(Event::Disconnected { .. })));
    let back = within(events.next()).await;
    assert_eq!(back, Some(Event::Reconnected { rooms_lost: vec!["r".into()] }));
}

#[tokio::test]
async fn a_client_that_is_refused_for_good_closes() {
    let fake = Fake::start().await;
    let (client, mut events, conn) = agent(&fake).await;
    drop(conn);
    let mut conn = fake.accept().await;
    let incoming = conn.recv().await;
    conn.answer(&incoming, Reply::error(Code::Unauthorized, "rotated")).await;
    assert!(matches!(within(events.next()).await, Some(Event::Disconnected { .. })));
    let closed = within(events.next()).await;
    assert!(
        matches!(&closed, Some(Event::Closed { reason }) if reason.contains("rotated")),
        "{closed:?}"
    );
    assert_eq!(within(events.next()).await, None);
    assert!(matches!(client.call(Ping {}).await, Err(CallError::Closed)));
}

#[tokio::test]
async fn a_stream_pages_then_goes_live_and_drops_what_it_has() {
    let fake = Fake::start().await;
    let (client, events, mut conn) = agent(&fake).await;
    let node = async {
        let join = conn.recv().await;
        assert!(matches!(join.request, Request::JoinRoom(_)), "subscribe first");
        conn.answer(&join, joined()).await;
        let page = conn.recv().await;
        // Arrives while the page is under way, and is in the page as well.
        conn.push(live(5)).await;
        answer_page(&mut conn, &page, &[3, 4, 5], 2).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[3, 4, 5], 2).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[3, 4, 5], 2).await;
        conn.push(live(6)).await;
        conn.push(live(6)).await;
        conn.push(live(4)).await;
        // 7 is one's own: it is never pushed.
        conn.push(live(8)).await;
        for _ in 0..2 {
            let page = conn.recv().await;
            answer_page(&mut conn, &page, &[7, 8], 500).await;
        }
        // A jump without anything in between, and a node whose history lags behind its pushes.
        conn.push(live(1 << 35)).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[7, 8], 500).await;
    };
    let program = async {
        let start = Start::After(2);
        let mut messages = Messages::open(client, events, "r".into(), start).await.unwrap();
        for expected in [3, 4, 5, 6, 7, 8, 1 << 35] {
            assert_eq!(next_seq(&mut messages).await, expected);
            assert_eq!(messages.cursor(), expected);
        }
    };
    within(async { tokio::join!(node, program) }).await;
}

#[tokio::test]
async fn a_stream_loses_and_repeats_nothing_over_a_reconnect() {
    let fake = Fake::start().await;
    let (client, events, mut conn) = agent(&fake).await;
    let node = async {
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
        let tip = conn.recv().await;
        let reply = RoomTipResult { room_id: "r".into(), seq: 10 };
        conn.answer(&tip, Reply::RoomTip(reply)).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[10], 500).await;
        conn.push(live(11)).await;
        drop(conn);
        let mut conn = fake.accept_agent().await;
        let join = conn.recv().await;
        // Missed frames are replayed right after the reply.
        conn.push(live(11)).await;
        conn.answer(&join, joined()).await;
        // The connection breaks again in the middle of a page.
        conn.recv().await;
        drop(conn);
        let mut conn = fake.accept_agent().await;
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
        // Two looks for the page repeated and the second reconnect, each until a page is empty.
        for _ in 0..3 {
            let page = conn.recv().await;
            answer_page(&mut conn, &page, &[10, 11, 12, 13], 500).await;
        }
        conn.push(live(14)).await;
        conn
    };
    let program = async {
        let mut messages = Messages::open(client, events, "r".into(), Start::Tip).await.unwrap();
        for expected in 11..=14 {
            assert_eq!(next_seq(&mut messages).await, expected);
        }
    };
    within(async { tokio::join!(node, program) }).await;
}

#[tokio::test]
async fn a_message_under_another_number_elsewhere_is_given_once() {
    let fake = Fake::start().await;
    let (client, events, mut conn) = agent(&fake).await;
    let renumbered = |seq: u64, id: &str| Message { message_id: id.into(), ..message(seq) };
    let node = async {
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[1, 2], 500).await;
        let page = conn.recv().await;
        answer_page(&mut conn, &page, &[], 500).await;
        conn.push(live(3)).await;
        // The next messages come from a node that numbered 2 and 3 in an era of its own.
        let other = [(100, "m2"), (101, "m100"), (102, "m3")];
        conn.push(Pushed::MessageReceived(Box::new(renumbered(100, "m2")))).await;
        for _ in 0..2 {
            let page = conn.recv().await;
            let Request::GetHistory(ask) = &page.request else { panic!("{page:?}") };
            let after = ask.since_seq.expect("a cursor");
            let messages = other
                .iter()
                .filter(|other| other.0 > after)
                .map(|other| renumbered(other.0, other.1));
            let messages = messages.collect();
            let result = HistoryResult { room_id: "r".into(), messages, mesh: None };
            conn.answer(&page, Reply::History(result)).await;
        }
        conn.push(Pushed::MessageReceived(Box::new(renumbered(103, "m100")))).await;
        conn.push(live(104)).await;
        conn
    };
    let program = async {
        let start = Start::After(0);
        let mut messages = Messages::open(client, events, "r".into(), start).await.unwrap();
        for expected in [1, 2, 3, 101, 104] {
            assert_eq!(next_seq(&mut messages).await, expected);
        }
        assert_eq!(messages.cursor(), 104);
    };
    within(async { tokio::join!(node, program) }).await;
}

#[tokio::test]
async fn a_stream_pages_when_events_were_missed() {
    let fake = Fake::start().await;
    let (client, events, mut conn) = agent(&fake).await;
    let stored: Vec<u64> = (1..=EVENTS_QUEUED_MAX as u64 + 50).collect();
    let node = async {
        let join = conn.recv().await;
        conn.answer(&join, joined()).await;
        // All of it arrives while the first page is under way, and does not fit into the queue.
        let page = conn.recv().await;
        for seq in &stored {
            conn.push(live(*seq)).await;
        }
        answer_page(&mut conn, &page, &[], 500).await;
        loop {
            let page = conn.recv().await;
            answer_page(&mut conn, &page, &stored, 500).await;
        }
    };
    let program = async {
        let start = Start::After(0);
        let mut messages = Messages::open(client, events, "r".into(), start).await.unwrap();
        for expected in &stored {
            assert_eq!(next_seq(&mut messages).await, *expected);
        }
    };
    within(async {
        tokio::select! { () = node => {}, () = program => {} }
    })
    .await;
}

#[tokio::test]
async fn web_socket_and_unix_socket_carry_the_same_frames() {
    use futures::{SinkExt, StreamExt};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
    let registered = |line: &str| {
        let incoming = protocol::frame::parse_request(line).unwrap();
        let reply = protocol::reply::Registered {
            agent_id: "a".into(),
            name: "alice".into(),
            protocol_version: 1,
            resumed: None,
        };
        let reply = Reply::Registered(reply);
        protocol::frame::encode_reply(&reply, incoming.id.as_deref(), "u")
    };

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/ws", listener.local_addr().unwrap());
    let node = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let request = socket.next().await.unwrap().unwrap().into_text().unwrap();
        let reply = tokio_tungstenite::tungstenite::Message::text(registered(&request));
        socket.send(reply).await.unwrap();
        socket
    };
    let address = url.parse().unwrap();
    let (connected, _socket) =
        within(async { tokio::join!(Client::connect(options(vec![address])), node) }).await;
    connected.unwrap();

    let dir = std::env::temp_dir().join(format!("clawmesh-client-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("node.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let node = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tokio::io::BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        stream.write_all(format!("{}\n", registered(&line)).as_bytes()).await.unwrap();
        stream
    };
    let address = crate::address::Address::Unix(path);
    let (connected, _stream) =
        within(async { tokio::join!(Client::connect(options(vec![address])), node) }).await;
    connected.unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The content of a send as the node saw it: a blob that opens to `text`.
fn blob_of(incoming: &Incoming, text: &str) -> String {
    let content = if let Request::SendMessage(send) = &incoming.request {
        send.content.clone()
    } else {
        let Request::Thinking(thought) = &incoming.request else {
            panic!("not a send: {incoming:?}")
        };
        thought.content.clone()
    };
    assert_eq!(RoomKey::derive("hush", "r").open(&content).as_deref(), Ok(text));
    content
}

fn sealed(seq: u64, content: String) -> Message {
    Message { content, ..message(seq) }
}

#[tokio::test]
async fn with_a_secret_the_node_sees_blobs_and_the_program_does_not() {
    let fake = Fake::start().await;
    let mut options = options(vec![fake.address()]);
    options.secrets = Secrets::for_all_rooms(Secret::new("hush").unwrap());
    let (connected, mut conn) = tokio::join!(Client::connect(options), fake.accept_agent());
    let (client, mut events) = connected.unwrap();
    let node = async {
        // The connection is lost: the repeat is the same blob, or the dedup id would lie.
        let first = blob_of(&conn.recv().await, "secret");
        drop(conn);
        let mut conn = fake.accept_agent().await;
        let again = conn.recv().await;
        let blob = blob_of(&again, "secret");
        assert_eq!(blob, first);
        conn.answer(&again, Reply::Message(Box::new(sealed(1, blob.clone())))).await;
        let thinking = conn.recv().await;
        let thought = blob_of(&thinking, "secret");
        assert_ne!(thought, blob, "a nonce is used once");
        conn.answer(&thinking, Reply::Message(Box::new(sealed(2, thought.clone())))).await;
        let page = conn.recv().await;
        let damaged = format!("{thought}AAAA");
        let messages = vec![sealed(1, blob.clone()), sealed(2, damaged), sealed(3, "plain".into())];
        conn.answer(
            &page,
            Reply::History(HistoryResult { room_id: "r".into(), messages, mesh: None }),
        )
        .await;
        let live = || Box::new(sealed(4, blob.clone()));
        conn.push(Pushed::MessageReceived(live())).await;
        conn.push(Pushed::Thinking(live())).await;
        conn.push(Pushed::Mention(Mention { room_id: "r".into(), message: live() })).await;
        conn
    };
    let program = async {
        assert_eq!(client.call(send("secret")).await.unwrap().content, "secret");
        let thinking = Thinking { room_id: "r".into(), content: "secret".into(), mesh: None };
        assert_eq!(client.call(thinking).await.unwrap().content, "secret");
        let page = GetHistory {
            room_id: "r".into(),
            limit: 10,
            before: None,
            since: None,
            since_seq: Some(0),
        };
        let page = client.call(page).await.unwrap();
        let contents: Vec<&str> =
            page.messages.iter().map(|message| message.content.as_str()).collect();
        assert_eq!((contents[0], contents[2]), ("secret", "plain"));
        // One that does not open hides no other, and says why when asked.
        assert!(client.secrets().open("r", contents[1]).is_err(), "{contents:?}");
        let mut opened = Vec::new();
        while opened.len() < 3 {
            match events.next().await {
                Some(Event::Pushed(
                    Pushed::MessageReceived(message) | Pushed::Thinking(message),
                )) => {
                    opened.push(message.content);
                }
                Some(Event::Pushed(Pushed::Mention(mention))) => {
                    opened.push(mention.message.content)
                }
                other => assert!(other.is_some(), "closed"),
            }
        }
        assert_eq!(opened, ["secret"; 3]);
    };
    within(async { tokio::join!(node, program) }).await;
}

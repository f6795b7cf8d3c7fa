//! A node of the tests' making: every frame is read and answered by the test itself.

use std::time::Duration;

use protocol::event::Event;
use protocol::frame::{Incoming, encode_event, encode_reply, parse_request};
use protocol::object::Message;
use protocol::reply::{Registered, Reply};
use protocol::request::Request;
use protocol::value::{ApiKey, RegisterOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::address::Address;
use crate::options::{Authorities, Options, Policy};
use crate::secrets::Secrets;

/// Every step of these tests is short; a long one is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Fake {
    listener: TcpListener,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn address(&self) -> Address {
        Address::tcp(&self.listener.local_addr().unwrap().to_string()).unwrap()
    }

    pub(crate) async fn accept(&self) -> Conn {
        let (stream, _) = within(self.listener.accept()).await.unwrap();
        Conn::new(stream)
    }

    /// Accepts a connection and registers it as agent `a`.
    pub(crate) async fn accept_agent(&self) -> Conn {
        let mut conn = self.accept().await;
        let incoming = conn.recv().await;
        let Request::Register(register) = &incoming.request else { panic!("not a register") };
        let registered = Registered {
            agent_id: register.agent_id.clone().unwrap_or("a".into()),
            name: register.name.clone(),
            protocol_version: 1,
            resumed: None,
        };
        conn.answer(&incoming, Reply::Registered(registered)).await;
        conn
    }
}

pub(crate) struct Conn {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Conn {
    fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self { read: BufReader::new(read), write }
    }

    /// The raw line of the next request; `None` when the client has gone.
    pub(crate) async fn recv_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = within(self.read.read_line(&mut line)).await;
        matches!(read, Ok(1..)).then_some(line)
    }

    pub(crate) async fn recv(&mut self) -> Incoming {
        parse_request(&self.recv_line().await.expect("a request")).unwrap()
    }

    pub(crate) async fn answer(&mut self, incoming: &Incoming, reply: Reply) {
        let frame = encode_reply(&reply, incoming.id.as_deref(), "u");
        self.send(&format!("{frame}\n")).await;
    }

    pub(crate) async fn push(&mut self, event: Event) {
        self.send(&format!("{}\n", encode_event(&event, "e"))).await;
    }

    pub(crate) async fn send(&mut self, line: &str) {
        within(self.write.write_all(line.as_bytes())).await.unwrap();
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

pub(crate) fn options(addresses: Vec<Address>) -> Options {
    Options {
        addresses,
        authorities: Authorities::System,
        key: ApiKey::new("k"),
        name: "alice".into(),
        agent_id: None,
        mesh: RegisterOptions::default(),
        capabilities: vec![],
        secrets: Secrets::default(),
        policy: Policy {
            retry_first: Duration::from_millis(1),
            retry_max: Duration::from_millis(20),
            ..Policy::default()
        },
    }
}

pub(crate) fn message(seq: u64) -> Message {
    Message {
        message_id: format!("m{seq}"),
        room_id: "r".into(),
        agent_id: "b".into(),
        agent_name: "bob".into(),
        content: format!("message {seq}"),
        reply_to_message: None,
        metadata: None,
        timestamp: "2026-03-01T12:00:00Z".into(),
        seq,
        mesh: None,
    }
}

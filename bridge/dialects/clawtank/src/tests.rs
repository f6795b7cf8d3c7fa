//! The dialect over real sockets, on a mesh of one node in memory. Each frame that a client with bare ids hears is held
//! against what the user asked for: [`strict`].

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bridge::{
    Bridge, Config,
    config::Auth,
    read::Visitor,
    seam::call::{Attach, Identity},
    secret::Secret,
    session::ask::Ask,
    testing::{Fake, KEY, echo::Echo, here, keyed, lobby},
};
use futures::{SinkExt as _, StreamExt as _};
use mesh::{name::id::RoomId, wire::acts::Scope};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::{ClawTank, Settings, ids, names};

mod approvals;
mod chat;
mod door;
mod git;
mod http;
mod registered;
mod rooms;
mod runs;
mod spectators;
mod strict;
mod tasks;

/// Longer than anything takes on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);
/// A minted key.
const MINTED: &str = "a minted key of somebody, for tests";

struct Node {
    fake: Arc<Fake>,
    bridge: Bridge,
    at: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Node {
    async fn new() -> Node {
        Node::with(keyed(), Settings::default()).await
    }

    async fn with(config: Config, settings: Settings) -> Node {
        Node::speaking(config, ClawTank::new(lobby(), settings)).await
    }

    async fn speaking(config: Config, clawtank: ClawTank) -> Node {
        let (fake, hub) = Fake::new();
        let clawtank = Arc::new(clawtank);
        let last = Arc::new(Echo::default());
        let bridge = Bridge::new(config, hub, fake.clone(), vec![clawtank, last]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, mut stopped) = watch::channel(false);
        let serves = bridge.clone();
        let serving = tokio::spawn(async move {
            let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
            serves.serve_http(listener, until).await.unwrap();
        });
        Node { fake, bridge, at, stop, serving }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.serving).await.expect("stops").unwrap();
    }

    /// A connection that has said nothing.
    async fn client(&self) -> Client {
        self.at("/ws").await
    }

    /// A connection to a path.
    async fn at(&self, path: &str) -> Client {
        let (socket, _) = connect_async(format!("ws://{}{path}", self.at)).await.unwrap();
        Client { socket, heard: VecDeque::new(), bare: false }
    }

    /// One that wants bare ids.
    async fn bare(&self) -> Client {
        let mut client = self.client().await;
        let agreed = client
            .capabilities(&["clawmesh.ids@bare", "clawmesh.room@1.0.0", "clawmesh.task@1.0.0"])
            .await;
        assert_eq!(agreed["supported_extensions"].as_array().unwrap().len(), 3, "{agreed}");
        client.bare = true;
        client
    }

    /// A person in the lobby.
    async fn person(&self, name: &str) -> Client {
        let mut client = self.bare().await;
        client.connect("human", KEY, name, Some("lobby")).await;
        client.settle().await;
        client
    }

    /// An agent in the lobby.
    async fn agent(&self, id: &str) -> Client {
        let mut client = self.bare().await;
        client.connect("agent", KEY, "owner", Some("lobby")).await;
        client.register(id).await;
        client.settle().await;
        client
    }

    /// Somebody of another dialect, who is in the lobby and asks without a connection.
    async fn other(&self, name: &str) -> Visitor {
        let call = Attach {
            key: Secret::new(KEY),
            name: name.to_owned(),
            identity: Identity::Named(name.to_owned()),
            capabilities: vec!["sheep".to_owned()],
            reconnect: false,
            linger: Duration::from_secs(600),
        };
        let visitor = self.bridge.desk().host(call).await.unwrap().visitor;
        self.asks(&visitor, bridge::seam::call::Join(lobby())).await;
        visitor
    }

    async fn asks<C: Ask>(&self, visitor: &Visitor, call: C) -> C::Answer {
        self.bridge.desk().ask(visitor, call).await.unwrap()
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Client {
    socket: Socket,
    /// Frames that came while another one was waited for.
    heard: VecDeque<Value>,
    bare: bool,
}

/// A frame of a client.
fn envelope(id: &str, kind: &str, data: &Value) -> Value {
    json!({"id": id, "type": kind, "timestamp": "2026-02-17T21:03:00.123Z", "data": data})
}

fn ulid(seed: u8) -> String {
    ids::text([seed; 16])
}

impl Client {
    async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Says something, and returns the id of that.
    async fn say(&mut self, kind: &str, data: Value) -> String {
        let id = format!("msg_{}", ids::text(bridge::ids::random()));
        let frame = envelope(&id, kind, &data);
        self.send(&frame.to_string()).await;
        id
    }

    /// The next frame from the node. `None`: the connection has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("there is a frame") {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if self.bare {
                        strict::check(&frame);
                    }
                    return Some(frame);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return None,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The first frame for which this holds. Others are kept.
    async fn find(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.heard.iter().position(&what) {
            return self.heard.remove(place).unwrap();
        }
        loop {
            let frame = self.next().await.expect("the connection is open");
            if what(&frame) {
                return frame;
            }
            self.heard.push_back(frame);
        }
    }

    async fn hears(&mut self, kind: &str) -> Value {
        self.find(|frame| frame["type"] == kind).await
    }

    /// The answer to a frame.
    async fn answer(&mut self, id: &str) -> Value {
        self.find(|frame| frame["metadata"]["correlation_id"] == id).await
    }

    async fn ask(&mut self, kind: &str, data: Value) -> Value {
        let id = self.say(kind, data).await;
        self.answer(&id).await
    }

    /// The same, of which the answer is no error: its data.
    async fn gets(&mut self, kind: &str, data: Value) -> Value {
        let answer = self.ask(kind, data).await;
        assert_ne!(answer["type"], "error", "{answer}");
        answer["data"].clone()
    }

    /// The same, of which it is one: its code, and the field or the reason.
    async fn refused(&mut self, kind: &str, data: Value) -> (String, String) {
        let answer = self.ask(kind, data).await;
        assert_eq!(answer["type"], "error", "{answer}");
        why(&answer)
    }

    /// The answer of an extension.
    async fn extends(&mut self, namespace: &str, kind: &str, payload: Value) -> Value {
        let data =
            json!({"namespace": namespace, "extension_version": "1.0.0", "payload": payload});
        self.ask(kind, data).await
    }

    async fn capabilities(&mut self, named: &[&str]) -> Value {
        let frame = json!({
            "type": "connection.capabilities",
            "data": {"supported_extensions": named, "optional_features": ["threading", "video"]},
        });
        self.send(&frame.to_string()).await;
        self.hears("connection.capabilities").await["data"].clone()
    }

    /// It has been given what was said before it came.
    async fn settle(&mut self) {
        self.capabilities(&[]).await;
    }

    async fn connect(&mut self, kind: &str, key: &str, name: &str, room: Option<&str>) -> Value {
        self.gets("connection.request", request(kind, Some(key), name, room)).await
    }

    async fn register(&mut self, id: &str) -> Value {
        self.gets("agent.register", introduction(id)).await
    }

    /// Nothing more is on its way to the client: what it hears until a heartbeat is answered.
    async fn rest(&mut self) -> Vec<Value> {
        let id = self.say("connection.heartbeat", json!({})).await;
        let answer = self.answer(&id).await;
        assert_eq!(answer["type"], "connection.heartbeat");
        self.heard.drain(..).collect()
    }

    /// The code with which the connection is closed; what comes before is kept.
    async fn ends(&mut self) -> u16 {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("it ends") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(Message::Text(text))) => {
                    self.heard.push_back(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn request(kind: &str, key: Option<&str>, name: &str, room: Option<&str>) -> Value {
    json!({
        "client_type": kind,
        "auth_token": key,
        "client_info": {"name": name, "version": "1.0.0", "capabilities": []},
        "room_id": room,
    })
}

fn introduction(id: &str) -> Value {
    json!({
        "agent_name": id.to_uppercase(),
        "agent_id": id,
        "model_info": {"provider": "anthropic", "model_name": "claude", "context_length": 200_000},
        "owner_info": {"user_id": ulid(9), "display_name": "somebody else"},
        "agent_capabilities": ["code_review", "singing"],
        "supported_languages": ["rust"],
    })
}

/// The code of an error, and its field, or its reason.
fn why(error: &Value) -> (String, String) {
    let details = &error["data"]["details"];
    let detail = details.get("field").or(details.get("reason")).and_then(Value::as_str);
    let code = error["data"]["error_code"].as_str().unwrap();
    (code.to_owned(), detail.unwrap_or_default().to_owned())
}

fn no(code: &str, detail: &str) -> (String, String) {
    (code.to_owned(), detail.to_owned())
}

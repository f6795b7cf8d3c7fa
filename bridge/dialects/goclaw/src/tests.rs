//! The dialect over real sockets, on a mesh of one node in memory.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Duration};

use bridge::{
    Bridge, Config, Hub,
    config::Auth,
    log_tail::LogTail,
    read::Visitor,
    seam::{
        call::{Attach, From, History, Identity, ListRooms, Say},
        event::Message as Said,
    },
    secret::Secret,
    testing::{Fake, KEY, echo::Echo, here, keyed, lobby},
};
use futures::{SinkExt as _, StreamExt as _};
use mesh::{
    name::id::RoomId,
    wire::acts::{KeyTerms, Scope, Tier},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::{GoClaw, Settings};

mod agents;
mod aliases;
mod approvals;
mod chat;
mod config;
mod cron;
mod delegations;
mod door;
mod files;
mod frames;
mod keys;
mod logs;
mod members;
mod pairing;
mod presence;
mod profiles;
mod recorder;
mod records;
mod rooms;
mod serve;
mod sessions;
mod streams;
mod tasks;
mod teams;
mod v1;

/// Longer than anything takes on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);
/// A minted key.
const MINTED: &str = "a minted key of somebody, for tests";

struct Node {
    fake: Arc<Fake>,
    hub: Arc<Hub>,
    log: Arc<LogTail>,
    bridge: Bridge,
    at: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    keeping: JoinHandle<()>,
}

impl Node {
    async fn new() -> Node {
        Node::with(keyed(), |settings| settings).await
    }

    async fn open() -> Node {
        Node::with(Config::new(Auth::Open, here()), |settings| settings).await
    }

    async fn with(config: Config, change: impl FnOnce(Settings) -> Settings) -> Node {
        let goclaw = GoClaw::new(lobby(), change(Settings::default()));
        Node::serving(config, |_| goclaw).await
    }

    async fn serving(config: Config, change: impl FnOnce(GoClaw) -> GoClaw) -> Node {
        let (fake, hub) = Fake::new();
        let log = Arc::<LogTail>::default();
        let goclaw = change(GoClaw::new(lobby(), Settings::default()));
        let goclaw = goclaw.with_log(Some(log.clone()));
        let last = Arc::new(Echo::default());
        let bridge = Bridge::new(config, hub.clone(), fake.clone(), vec![Arc::new(goclaw), last]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, mut stopped) = watch::channel(false);
        let serves = bridge.clone();
        let serving = tokio::spawn(async move {
            let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
            serves.serve_http(listener, until).await.unwrap();
        });
        let keeps = bridge.clone();
        let keeping = tokio::spawn(async move { keeps.keep_schedules().await });
        Node { fake, hub, log, bridge, at, stop, serving, keeping }
    }

    async fn stop(self) {
        self.keeping.abort();
        self.stop.send_replace(true);
        timeout(PATIENCE, self.serving).await.expect("stops").unwrap();
    }

    /// A connection that has said nothing.
    async fn client(&self) -> Client {
        let (socket, _) = connect_async(format!("ws://{}/ws", self.at)).await.unwrap();
        Client { socket, events: VecDeque::new(), asked: 0, under_way: Vec::new() }
    }

    /// A connection of a user with a key.
    async fn connected(&self, key: &str, user: &str) -> Client {
        let mut client = self.client().await;
        let shown = json!({"token": key, "user_id": user, "protocol": 3});
        assert!(client.ask("connect", shown).await.is_ok());
        client
    }

    async fn owner(&self) -> Client {
        self.connected(KEY, "ada").await
    }

    /// An agent that acts by requests, as hosts of models do.
    async fn agent(&self, name: &str, key: &str) -> Agent {
        let call = Attach {
            key: Secret::new(key),
            name: name.to_owned(),
            identity: Identity::Named(name.to_owned()),
            capabilities: vec!["sheep".to_owned()],
            reconnect: false,
            linger: Duration::from_secs(600),
        };
        let visitor = self.bridge.desk().host(call).await.unwrap().visitor;
        Agent { bridge: self.bridge.clone(), visitor }
    }

    async fn until<T>(&self, what: &str, holds: impl AsyncFn() -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(found) = holds().await {
                    return found;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"))
    }
}

/// An agent that people write to.
struct Agent {
    bridge: Bridge,
    visitor: Visitor,
}

impl Agent {
    /// The messages of its direct rooms, thoughts left out.
    async fn heard(&self) -> Vec<Said> {
        let desk = self.bridge.desk();
        let rooms = desk.ask(&self.visitor, ListRooms { parent: None }).await.unwrap();
        let mut all = Vec::new();
        for room in rooms.into_iter().filter(|room| room.sides.is_some()) {
            let call = History { room: room.room, from: From::Newest, limit: 100, before_ms: None };
            all.extend(desk.ask(&self.visitor, call).await.unwrap().messages);
        }
        all
    }

    /// The first message of this text, when it is there.
    async fn hears(&self, node: &Node, text: &str) -> Said {
        let found = async || self.heard().await.into_iter().find(|said| said.said.content == text);
        node.until(text, found).await
    }

    async fn says(&self, room: RoomId, text: &str, reply_to: &Said, metadata: Option<Value>) {
        let say = Say {
            reply_to: Some(reply_to.message.to_uuid()),
            metadata: metadata.map(|metadata| metadata.to_string()),
            ..Say::chat(room, text.to_owned())
        };
        self.bridge.desk().ask(&self.visitor, say).await.unwrap();
    }

    /// Answers a message.
    async fn answers(&self, to: &Said, text: &str) {
        self.says(to.room, text, to, None).await;
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Client {
    socket: Socket,
    /// Those that came while an answer was waited for.
    events: VecDeque<Value>,
    asked: u64,
    /// Requests that are under way: their ids, and methods.
    under_way: Vec<(String, String)>,
}

/// A refusal, as it came.
#[derive(Debug)]
struct Refused {
    code: String,
    message: String,
    retryable: bool,
    retry_ms: u64,
}

impl Client {
    async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next frame.
    async fn hear(&mut self) -> Value {
        loop {
            let message = timeout(PATIENCE, self.socket.next()).await.expect("there is a frame");
            match message.unwrap().unwrap() {
                Message::Text(text) => {
                    let frame = serde_json::from_str(&text).unwrap();
                    self.record(&frame);
                    return frame;
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                    panic!("{other:?}")
                }
            }
        }
    }

    /// Every frame has the form of the specification.
    fn record(&mut self, frame: &Value) {
        if frame["type"] == "event" {
            return recorder::event(frame);
        }
        let of = self.under_way.iter().position(|(id, _)| frame["id"] == **id);
        if let Some(of) = of {
            let (_, method) = self.under_way.swap_remove(of);
            if frame["ok"] == true {
                recorder::result(&method, &frame["payload"]);
            }
        }
    }

    /// Asks for something and does not wait.
    async fn begin(&mut self, method: &str, params: Value) -> String {
        self.asked += 1;
        let id = self.asked.to_string();
        let frame = json!({"type": "req", "id": id, "method": method, "params": params});
        self.under_way.push((id.clone(), method.to_owned()));
        self.say(&frame.to_string()).await;
        id
    }

    /// The answer to a request. Events that come before are kept.
    async fn answer(&mut self, id: &str) -> Result<Value, Refused> {
        loop {
            let mut frame = self.hear().await;
            if frame["type"] == "event" {
                self.events.push_back(frame);
                continue;
            }
            assert_eq!((&frame["type"], &frame["id"]), (&json!("res"), &json!(id)), "{frame}");
            if frame["ok"] == true {
                return Ok(frame["payload"].take());
            }
            let error = &frame["error"];
            assert_eq!(error.as_object().map(serde_json::Map::len), Some(5), "{frame}");
            return Err(Refused {
                code: error["code"].as_str().unwrap().to_owned(),
                message: error["message"].as_str().unwrap().to_owned(),
                retryable: error["retryable"].as_bool().unwrap(),
                retry_ms: error["retryAfterMs"].as_u64().unwrap(),
            });
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Refused> {
        let id = self.begin(method, params).await;
        self.answer(&id).await
    }

    /// The same, which is not refused.
    async fn gets(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).await.unwrap_or_else(|no| panic!("{method}: {no:?}"))
    }

    /// The same, which is: its code and text.
    async fn refused(&mut self, method: &str, params: Value) -> (String, String) {
        match self.ask(method, params).await {
            Ok(result) => panic!("{method}: {result}"),
            Err(no) => (no.code, no.message),
        }
    }

    /// The next event, but for agents that come and go and for words in teams, which tests of other things do not look at.
    async fn event(&mut self) -> Value {
        loop {
            let event = self.any_event().await;
            if event["event"] != "presence" && event["event"] != "team.message.sent" {
                return event;
            }
        }
    }

    async fn any_event(&mut self) -> Value {
        match self.events.pop_front() {
            Some(event) => event,
            None => {
                let frame = self.hear().await;
                assert_eq!(frame["type"], "event", "{frame}");
                frame
            }
        }
    }

    /// The code with which the connection is closed; what comes before is dropped.
    async fn ends(&mut self) -> u16 {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("it ends") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

//! The dialect over HTTP, on a mesh of one node in memory. Requests are bytes, as the client of ClawFinder writes them.

#![allow(clippy::unwrap_used, reason = "an answer that is none is a failed test")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bridge::{
    Bridge,
    read::Desk,
    testing::{Fake, echo::Echo, here, keyed},
    toolbox::Toolbox,
};
use openpgp::SecretCertificate;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use crate::{ClawFinder, Overseer, Settings};

mod accounts;
mod bounds;
mod door;
mod hidden;
mod hosted;
mod listings;
mod mail;
mod mutated;
mod rooms;
mod tools;

/// Longer than anything takes on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);

struct Node {
    desk: Desk,
    overseer: Overseer,
    tools: Arc<dyn Toolbox>,
    at: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// An answer, of which the client reads the status line alone.
#[derive(Debug)]
struct Answer {
    status: u16,
    reason: String,
    headers: String,
    body: Value,
}

impl Answer {
    /// The document of a 2xx.
    fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.body
    }

    /// Is refused with this status line; the body has the text, too.
    fn is(&self, status: u16, reason: &str) {
        assert_eq!((self.status, &*self.reason), (status, reason), "{self:?}");
    }
}

impl Node {
    async fn new() -> Node {
        Node::with(|settings| settings).await
    }

    async fn with(change: impl FnOnce(Settings) -> Settings) -> Node {
        let (fake, hub) = Fake::new();
        let settings = change(Settings::new(here().mesh));
        let finder = ClawFinder::new(settings);
        let (overseer, tools) = (finder.overseer(), finder.toolbox());
        let last = Arc::new(Echo::default());
        let bridge = Bridge::new(keyed(), hub, fake, vec![Arc::new(finder), last]);
        let desk = bridge.desk().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, mut stopped) = watch::channel(false);
        let serving = tokio::spawn(async move {
            let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
            bridge.serve_http(listener, until).await.unwrap();
        });
        Node { desk, overseer, tools, at, stop, serving }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.serving).await.expect("stops").unwrap();
    }

    /// Another host in the place of the one that runs: it knows what the store has, as after a start.
    async fn anew(&self) {
        let registry = self.overseer.registry.get().expect("it is open");
        registry.hosting.begin_anew(registry).await;
    }

    /// One request, on a connection of its own.
    async fn send(&self, request: &[u8]) -> Answer {
        let mut io = TcpStream::connect(self.at).await.unwrap();
        io.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, io.read_to_end(&mut answer)).await.expect("an answer").unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let (status, reason) = line.strip_prefix("HTTP/1.1 ").unwrap().split_once(' ').unwrap();
        Answer {
            status: status.parse().unwrap(),
            reason: reason.to_owned(),
            headers: headers.to_lowercase(),
            body: if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() },
        }
    }

    /// As the client asks.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Answer {
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let body = body.map(Value::to_string);
        let length = body.as_ref().map(|body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\naccept: application/json\r\n\
             accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n{key}{}\r\n{}",
            self.at,
            length.unwrap_or_default(),
            body.unwrap_or_default()
        );
        self.send(request.as_bytes()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None, None).await
    }

    async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Answer {
        self.ask("POST", path, key, Some(body)).await
    }

    async fn patch(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.ask("PATCH", path, Some(key), Some(body)).await
    }

    async fn delete(&self, path: &str, key: &str) -> Answer {
        self.ask("DELETE", path, Some(key), None).await
    }

    /// Registers an agent.
    async fn register(&self, username: &str, pgp: &SecretCertificate) -> Agent {
        let body = registration(username, pgp);
        let made = self.post("/api/agents/register/", None, &body).await.ok();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Agent { key: text("api_key"), id: text("id") }
    }

    /// Registers an agent with a new PGP key.
    async fn agent(&self, username: &str) -> Agent {
        self.register(username, &pgp(username)).await
    }

    /// Makes a job.
    async fn job(&self, of: &Agent, title: &str) -> String {
        let job = json!({"title": title, "description": "as it says"});
        let made = self.post("/api/jobs/", Some(&of.key), &job).await.ok();
        made["id"].as_str().unwrap().to_owned()
    }
}

struct Agent {
    key: String,
    id: String,
}

/// A PGP key, another one each time.
fn pgp(name: &str) -> SecretCertificate {
    let mut chance = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
    let user_id = format!("{name} <{name}@clawfinder.dev>");
    SecretCertificate::generate(&user_id, NOW, &mut chance).unwrap()
}

/// When keys are made. Seconds since 1970.
const NOW: u64 = 1_750_000_000;

/// Nodes make keys by their clock. Seconds since 1970.
fn now() -> u64 {
    crate::registry::now_us() / 1_000_000
}

fn registration(username: &str, pgp: &SecretCertificate) -> Value {
    json!({
        "name": format!("Agent {username}"),
        "username": username,
        "pgp_key": pgp.certificate().armored(),
        "payment_methods": ["invoice"],
        "contact_methods": [{"method": "index_mailbox"}],
    })
}

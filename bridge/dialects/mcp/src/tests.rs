//! The dialect over HTTP, on a mesh of one node in memory.

#![allow(clippy::unwrap_used, reason = "an answer that is none is a failed test")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use bridge::{
    Bridge, Config, Hub,
    config::Auth,
    testing::{Fake, KEY, echo::Echo, here, keyed, lobby, own_key},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, StatusCode, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use crate::{Groups, Mcp, Settings};

mod agents;
mod announcing;
mod cost;
mod deliveries;
mod door;
mod events;
mod lent;
mod listen;
mod policies;
mod prompts;
mod rooms;
mod sessions;
mod socket;
mod spawn;
mod tasks;
mod tokens;

/// Longer than anything takes on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);

struct Node {
    fake: Arc<Fake>,
    bridge: Bridge,
    at: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

struct Answer {
    status: StatusCode,
    headers: hyper::HeaderMap,
    body: Value,
}

const MODERN: &str = "2026-07-28";

/// A request of the newest revision.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// An answer that is a stream of events.
struct Events {
    body: hyper::body::Incoming,
    read: String,
    connection: JoinHandle<()>,
    _sender: http1::SendRequest<Body>,
}

impl Events {
    /// The next message.
    async fn next(&mut self) -> Value {
        timeout(PATIENCE, self.message()).await.expect("there is one")
    }

    /// The next message, if it comes in this time.
    async fn within(&mut self, time: Duration) -> Option<Value> {
        timeout(time, self.message()).await.ok()
    }

    async fn message(&mut self) -> Value {
        loop {
            if let Some((line, rest)) = self.read.split_once('\n') {
                let data = line.strip_prefix("data:").map(|data| serde_json::from_str(data.trim()));
                self.read = rest.to_owned();
                if let Some(data) = data {
                    return data.unwrap();
                }
            } else {
                let frame = self.body.frame().await.expect("it goes on").unwrap();
                let data = frame.into_data().unwrap();
                self.read.push_str(std::str::from_utf8(&data).unwrap());
            }
        }
    }

    /// The client hangs up.
    fn end(self) {
        self.connection.abort();
    }
}

impl Node {
    async fn new() -> Node {
        Node::with(keyed(), |settings| settings).await
    }

    async fn open() -> Node {
        Node::with(Config::new(Auth::Open, here()), |settings| settings).await
    }

    async fn with(config: Config, change: impl FnOnce(Settings) -> Settings) -> Node {
        let (fake, hub) = Fake::new();
        Node::on(&fake, &hub, config, change).await
    }

    /// A node that is started on what a mesh has.
    async fn on(
        fake: &Arc<Fake>,
        hub: &Arc<Hub>,
        config: Config,
        change: impl FnOnce(Settings) -> Settings,
    ) -> Node {
        let all = Settings { groups: Groups::ALL, ..Settings::new(lobby()) };
        Node::speaking(fake, hub, config, Mcp::new(change(all), None)).await
    }

    async fn speaking(fake: &Arc<Fake>, hub: &Arc<Hub>, config: Config, mcp: Mcp) -> Node {
        let (fake, hub) = (fake.clone(), hub.clone());
        let last = Arc::new(Echo::default());
        let bridge = Bridge::new(config, hub, fake.clone(), vec![Arc::new(mcp), last]);
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

    /// One request, on a connection of its own.
    async fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let io = TokioIo::new(TcpStream::connect(self.at).await.unwrap());
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
        let (parts, body) = response.into_parts();
        let body: Bytes = body.collect().await.unwrap().to_bytes();
        drop(sender);
        connection.abort();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// A request whose answer is a stream of events. `Err`: it is not.
    async fn stream(&self, agent: &str, message: &Value) -> Result<Events, StatusCode> {
        self.stream_with(KEY, &format!("/mcp/{agent}"), message).await
    }

    async fn stream_with(
        &self,
        shown: &str,
        path: &str,
        message: &Value,
    ) -> Result<Events, StatusCode> {
        let io = TokioIo::new(TcpStream::connect(self.at).await.unwrap());
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        let request = Request::builder().method("POST").uri(path);
        let request = request
            .header("host", "localhost")
            .header("authorization", format!("Bearer {shown}"))
            .header("content-type", "application/json")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", message["method"].as_str().unwrap());
        let request = request.body(Body::from(message.to_string())).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
        if response.headers()["content-type"] != "text/event-stream" {
            return Err(response.status());
        }
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Ok(Events { body: response.into_body(), read: String::new(), connection, _sender: sender })
    }

    /// A message of JSON-RPC to `/mcp` and what follows.
    async fn post(&self, path: &str, more: &[(&str, &str)], message: &Value) -> Answer {
        let key = format!("Bearer {KEY}");
        let mut headers = vec![("authorization", &*key), ("content-type", "application/json")];
        headers.extend_from_slice(more);
        self.http("POST", path, &headers, message.to_string()).await
    }

    /// A request of an older revision, as the agent.
    async fn rpc(&self, agent: &str, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = self.post(&format!("/mcp/{agent}"), &[], &message).await;
        assert_eq!(answer.body["id"], 7, "{} {}", answer.status, answer.body);
        answer.body
    }

    /// The result of a tool, as models and programs read it.
    async fn call(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let mut body = self.rpc(agent, "tools/call", params).await;
        let result = body["result"].take();
        let structured = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(structured.clone()), "{body}");
        let is_wrong = structured["field"].is_string();
        assert_eq!(result["isError"], if is_wrong { json!(true) } else { Value::Null });
        structured
    }
}

//! The dialect over HTTP, on a mesh of one node in memory.

#![allow(clippy::unwrap_used, reason = "an answer that is none is a failed test")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use bridge::{
    Bridge, Config,
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
mod deliveries;
mod door;
mod rooms;
mod sessions;
mod spawn;

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

impl Node {
    async fn new() -> Node {
        Node::with(keyed(), |settings| settings).await
    }

    async fn open() -> Node {
        Node::with(Config::new(Auth::Open, here()), |settings| settings).await
    }

    async fn with(config: Config, change: impl FnOnce(Settings) -> Settings) -> Node {
        let (fake, hub) = Fake::new();
        let all = Settings { groups: Groups::ALL, ..Settings::new(lobby()) };
        let mcp = Mcp::new(change(all));
        let bridge = Bridge::new(config, hub, fake.clone(), vec![Arc::new(Echo::default())]);
        let bridge = bridge.with_pages(vec![Arc::new(mcp)]);
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

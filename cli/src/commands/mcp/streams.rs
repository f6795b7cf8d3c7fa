//! Streams of news: a request that is answered with one notification after the other, each a line.
//!
//! A stream goes on at another node, or at the same one when it is there again. What a host may have missed meanwhile it is told:
//! of resources, that all of them may have changed; of events, those that came after the last one.

use std::collections::BTreeSet;
use std::time::Duration;

use client::http::Opened;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::{LISTEN, Relay, Unanswered, error, of_node};
use crate::outcome::NO_NODE;

/// The stream of the extension for events.
const EVENTS: &str = "events/stream";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";
const ACTIVE: &str = "notifications/events/active";
/// Names the request that a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const REVISION: &str = "2026-07-28";
/// What a resource that there is not is answered with in revisions that have `resources/subscribe`.
const NO_RESOURCE: i32 = -32_002;

/// A node says every 15 s that a stream is alive.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Between two tries while no node answers.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Whether a request is answered with a stream.
pub(super) fn is_stream(message: &Value) -> bool {
    message["method"] == LISTEN || message["method"] == EVENTS
}

/// Whether a request asks to hear of a resource, or no longer to, as older revisions do. Nodes have that on connections alone.
pub(super) fn is_subscription(message: &Value) -> bool {
    message["method"] == SUBSCRIBE || message["method"] == UNSUBSCRIBE
}

/// How a try to open a stream ended.
enum Tried {
    Opened(Box<Opened>),
    /// The node does not want to.
    Answered(Option<Value>),
}

/// What a host of an older revision hears of.
#[derive(Debug, Default)]
pub(super) struct Subscribed {
    uris: BTreeSet<String>,
    telling: Option<AbortHandle>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.end();
    }
}

impl Subscribed {
    fn end(&mut self) {
        if let Some(telling) = self.telling.take() {
            telling.abort();
        }
    }
}

impl Relay {
    /// Copies a stream, until it ends. The answer to the request.
    pub(super) async fn stream(&self, message: &Value) -> Option<Value> {
        let (id, mut asked) = (&message["id"], message.clone());
        let mut opened = match self.tries(&asked).await {
            Ok(Tried::Opened(opened)) => opened,
            Ok(Tried::Answered(answer)) => return answer,
            Err(Unanswered::NoNode) => return Some(error(id, -32_603, NO_NODE)),
            Err(Unanswered::Failed(text)) => return Some(error(id, -32_603, &text)),
        };
        let (mut heard, mut again) = (Vec::new(), false);
        loop {
            while let Some(told) = next(&mut opened).await {
                if told.get("method").is_none() {
                    return Some(told);
                }
                if told["params"]["cursor"].is_string() {
                    asked["params"]["cursor"] = told["params"]["cursor"].clone();
                }
                if told["method"] == ACKNOWLEDGED && !again {
                    heard = uris(&told);
                }
                match (again, told["method"].as_str()) {
                    // It has heard that; but something may have changed since.
                    (true, Some(ACKNOWLEDGED)) => {
                        for uri in &heard {
                            self.write(&updated(uri, Some(id))).await;
                        }
                    }
                    (true, Some(ACTIVE)) if told["params"]["truncated"] != true => {}
                    _ => self.write(&told).await,
                }
            }
            again = true;
            opened = match self.reopened(&asked).await {
                Ok(opened) => opened,
                Err(answer) => return answer,
            };
        }
    }

    /// Tries again and again until a node answers. An error: it does not want to.
    async fn reopened(&self, asked: &Value) -> Result<Box<Opened>, Option<Value>> {
        let mut pause = RETRY_FIRST;
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
            match self.tries(asked).await {
                Ok(Tried::Opened(opened)) => return Ok(opened),
                Ok(Tried::Answered(answer)) => return Err(answer),
                Err(Unanswered::NoNode | Unanswered::Failed(_)) => {}
            }
        }
    }

    async fn tries(&self, asked: &Value) -> Result<Tried, Unanswered> {
        let opened = self.open(&self.path, asked, self.headers(asked)).await?;
        if opened.is_stream() {
            return Ok(Tried::Opened(Box::new(opened)));
        }
        let answer = opened.whole().await.map_err(|why| Unanswered::Failed(why.to_string()))?;
        Ok(Tried::Answered(of_node(&asked["id"], &answer)))
    }

    /// The host of an older revision hears of one more resource, or of one less.
    pub(super) async fn subscription(self: &std::sync::Arc<Relay>, message: &Value) -> Value {
        let id = &message["id"];
        let done = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let Some(uri) = message["params"]["uri"].as_str().map(str::to_owned) else {
            return error(id, -32_602, "`uri` is required");
        };
        // One after the other: each begins the stream anew.
        let mut subscribed = self.subscribed.lock().await;
        let mut uris = subscribed.uris.clone();
        let changes = if message["method"] == SUBSCRIBE {
            uris.insert(uri.clone())
        } else {
            uris.remove(&uri)
        };
        if !changes {
            return done;
        }
        if uris.is_empty() {
            subscribed.end();
            subscribed.uris = uris;
            return done;
        }
        let (acknowledged, heard) = oneshot::channel();
        let relay = self.clone();
        let telling = tokio::spawn({
            let uris = uris.clone();
            async move { relay.tells(&uris, acknowledged).await }
        })
        .abort_handle();
        let refusal = match heard.await {
            Ok(Ok(heard)) if message["method"] == UNSUBSCRIBE || heard.contains(&uri) => {
                subscribed.end();
                (subscribed.uris, subscribed.telling) = (uris, Some(telling));
                return done;
            }
            Ok(Ok(_)) => error(id, NO_RESOURCE, "no such resource: resources/list shows them"),
            Ok(Err(text)) => error(id, -32_603, &text),
            Err(_) => error(id, -32_603, NO_NODE),
        };
        // What it heard of before it goes on to hear of.
        telling.abort();
        refusal
    }

    /// Tells the host of these, for as long as it runs; which a node told of at first, or why none did.
    async fn tells(
        &self,
        wanted: &BTreeSet<String>,
        acknowledged: oneshot::Sender<Result<Vec<String>, String>>,
    ) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let filter = json!({"resourceSubscriptions": wanted});
        let params = json!({"_meta": meta, "notifications": filter});
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": params});
        let mut first = Some(acknowledged);
        let mut opened = match self.tries(&asked).await {
            Ok(Tried::Opened(opened)) => opened,
            Ok(Tried::Answered(answer)) => {
                let said = answer.and_then(|it| it["error"]["message"].as_str().map(str::to_owned));
                let text = said.unwrap_or_else(|| NO_NODE.to_owned());
                return drop(first.take().map(|first| first.send(Err(text))));
            }
            Err(Unanswered::NoNode) => return,
            Err(Unanswered::Failed(text)) => {
                return drop(first.take().map(|first| first.send(Err(text))));
            }
        };
        loop {
            while let Some(told) = next(&mut opened).await {
                match told["method"].as_str() {
                    Some(ACKNOWLEDGED) => match first.take() {
                        Some(first) => drop(first.send(Ok(uris(&told)))),
                        // Something may have changed since the stream broke off.
                        None => {
                            for uri in uris(&told) {
                                self.write(&updated(&uri, None)).await;
                            }
                        }
                    },
                    Some(UPDATED) => {
                        if let Some(uri) = told["params"]["uri"].as_str() {
                            self.write(&updated(uri, None)).await;
                        }
                    }
                    Some(_) | None => {}
                }
            }
            match self.reopened(&asked).await {
                Ok(again) => opened = again,
                // It may not any more.
                Err(_) => return,
            }
        }
    }
}

/// The next message of a stream. `None`: it has ended, or broken off.
async fn next(opened: &mut Opened) -> Option<Value> {
    let event = opened.event(SILENCE_MAX).await.ok()??;
    serde_json::from_slice(&event).ok()
}

/// The resources of an acknowledgement.
fn uris(told: &Value) -> Vec<String> {
    let uris = told["params"]["notifications"]["resourceSubscriptions"].as_array();
    uris.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn updated(uri: &str, stream: Option<&Value>) -> Value {
    let mut params = json!({"uri": uri});
    if let Some(id) = stream {
        params["_meta"] = json!({SUBSCRIPTION: id});
    }
    json!({"jsonrpc": "2.0", "method": UPDATED, "params": params})
}

//! A connection that speaks MCP: one message a line, or a text message of a WebSocket. It shows its key once, with
//! `clawmesh/attach`, and asks as requests over HTTP do from then on.

use std::{
    borrow::Cow,
    collections::HashMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bridge::{
    config::Auth,
    delivery::ending::Ending,
    dialect::{Conversation, Heard, Manners},
    read::Credential,
    seam::event::Recipient,
    secret::Secret,
    session::seat::Seat,
};
use bytes::Bytes;
use mesh::limits::AGENT_ID_BYTES_MAX;
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, ErrorCode, GetExtensions, ServerJsonRpcMessage},
    serve_server,
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{
    asking::{Asking, Shared},
    grants,
    groups::Groups,
    http::{Unread, message},
    keys::agent_of,
    limits::{ATTACH_WITHIN, BODY_BYTES_MAX, BUSY, FRAMES_AHEAD, SILENT_FOR_MAX},
    listen::{self, Listening},
    outcome::{No, NoAgent, error_of},
    server::Server,
};

/// The first request of a connection.
const ATTACH: &str = "clawmesh/attach";

/// How clients are treated.
pub(crate) const MANNERS: Manners = Manners {
    frame_bytes_max: BODY_BYTES_MAX,
    attach_within: ATTACH_WITHIN,
    silence: SILENT_FOR_MAX,
    heartbeat: SILENT_FOR_MAX,
    pace: None,
    too_large: Ending::TooLarge,
    not_text: Ending::NotText,
};

/// One connection.
pub(crate) struct Talk {
    shared: Arc<OnceLock<Arc<Shared>>>,
    state: Arc<Mutex<State>>,
}

enum State {
    Fresh,
    Attached(Attached),
}

/// A connection that has shown its key.
#[derive(Clone)]
struct Attached {
    /// To the library.
    heard: mpsc::Sender<Value>,
    unanswered: Unanswered,
}

/// Calls without an answer, by their ids. A call is answered, or given up, when its sender is dropped.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<HashMap<String, oneshot::Sender<Infallible>>>>);

impl Unanswered {
    fn begin(&self, id: &Value) -> oneshot::Receiver<Infallible> {
        let (sender, ended) = oneshot::channel();
        self.calls().insert(id.to_string(), sender);
        ended
    }

    fn end(&self, id: &Value) {
        self.calls().remove(&id.to_string());
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Infallible>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talk {
    pub(crate) fn new(shared: Arc<OnceLock<Arc<Shared>>>) -> Talk {
        Talk { shared, state: Arc::new(Mutex::new(State::Fresh)) }
    }

    fn attached(&self) -> Option<Attached> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Fresh => None,
            State::Attached(attached) => Some(attached.clone()),
        }
    }

    /// A connection without an agent says something.
    fn attach(&self, seat: &mut Seat, mut message: Value) {
        let id = message["id"].take();
        let (is_attach, is_request) = (message["method"] == ATTACH, !id.is_null());
        if !is_attach || !is_request {
            return seat.reply(error(&id, -32_600, "attach first"));
        }
        let params = message["params"].take();
        let Some(shared) = self.shared.get().cloned() else { return seat.close(Ending::Failed) };
        let state = self.state.clone();
        seat.owe_in_turn(async move { asking(shared, &params).await }, move |seat, asking| {
            let (asking, node) = match asking {
                Ok(asking) => asking,
                Err(no) => return seat.reply(error(&id, no.code.0, &no.message)),
            };
            seat.admit(&asking.reader);
            let result = json!({"agentId": asking.agent, "node": node});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            seat.reply(Bytes::from(answer.to_string()));
            let attached = serve(seat, asking);
            *state.lock().unwrap_or_else(PoisonError::into_inner) = State::Attached(attached);
        });
    }
}

impl Recipient for Talk {}

impl Conversation for Talk {
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>) {
        let Heard::Text(text) = frame else { return seat.close(Ending::NotText) };
        let message = match message(text.as_bytes()) {
            Ok(message) => message,
            Err(Unread { id, code, text, .. }) => return seat.reply(error(&id, code, &text)),
        };
        let Some(Attached { heard, unanswered }) = self.attached() else {
            return self.attach(seat, message);
        };
        let id = &message["id"];
        if message["method"] == ATTACH {
            return seat.reply(error(id, -32_600, "this connection is attached already"));
        }
        if message["method"].is_string() && !id.is_null() {
            seat.owe(unanswered.begin(id), |_, _| {});
        } else if message["method"] == "notifications/cancelled" {
            // It is not answered any more.
            unanswered.end(&message["params"]["requestId"]);
        }
        if let Err(mpsc::error::TrySendError::Full(message)) = heard.try_send(message) {
            seat.owe_in_turn(async move { heard.send(message).await }, |_, _| {});
        }
    }

    fn manners(&self) -> Manners {
        MANNERS
    }
}

/// Who asks, as `clawmesh/attach` says it, and the node.
async fn asking(shared: Arc<Shared>, params: &Value) -> Result<(Asking, Value), ErrorData> {
    let wrong = |text: String| ErrorData::invalid_params(text, None);
    let text = |name: &str| match &params[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong(format!("`{name}` must be a string")))
        }
    };
    let texts = |name: &str| match &params[name] {
        Value::Null => Ok(None),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Ok(Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()))
        }
        Value::String(_)
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => Err(wrong(format!("`{name}` must be an array of strings"))),
    };
    let shown = match shared.desk.config().auth {
        Auth::Open => String::new(),
        Auth::Key(_) => text("key")?.ok_or_else(|| wrong("`key` is required".to_owned()))?,
    };
    let shown = Secret::new(&shown);
    let credential = shared.desk.credential(&shown).await.map_err(|why| refused(why.into()))?;
    let Credential { holder, key, grant } = credential;
    let named = grants::agent(&grant, text("agentId")?).map_err(wrong)?;
    let agent = named.unwrap_or_else(|| agent_of(holder.key()));
    if agent.is_empty() || agent.len() > AGENT_ID_BYTES_MAX {
        return Err(wrong(format!("an agent's id has 1 to {AGENT_ID_BYTES_MAX} bytes")));
    }
    let asked = texts("tools")?.map(|names| Groups::parse(&names.join(",")));
    let asked = asked.transpose().map_err(|name| {
        wrong(format!("there is no group of tools {name:?}: {}", Groups::NAMES.join(", ")))
    })?;
    let asking = Asking {
        reader: holder.named(Some((*agent).into())),
        agent: agent.into(),
        groups: grants::groups(&grant, asked, shared.settings.groups),
        shown,
        key,
        name: text("name")?.or_else(|| grant.name.clone()),
        grant: Arc::new(grant),
        capabilities: texts("capabilities")?.unwrap_or_default(),
        patience: None,
        status: Arc::default(),
        shared,
    };
    let here = asking.shared.desk.config().here.node;
    let reader = asking.reader_of([here]).await.map_err(refused)?;
    let node = reader.node(here);
    drop(reader);
    Ok((asking, node))
}

fn refused(no: No) -> ErrorData {
    match no {
        No::Agent { text, why } => error_of(text, why),
        no @ (No::Argument { .. } | No::Forbidden { .. } | No::Error { .. }) => {
            ErrorData::internal_error(no.text(), None)
        }
    }
}

/// The library has the connection from now on.
fn serve(seat: &mut Seat, asking: Asking) -> Attached {
    let (heard, hears) = mpsc::channel(FRAMES_AHEAD);
    let (ready, prepared) = mpsc::channel(FRAMES_AHEAD);
    let (says, said) = mpsc::channel(FRAMES_AHEAD);
    let unanswered = Unanswered::default();
    let wire = Wire { prepared, says: says.clone(), unanswered: unanswered.clone() };
    let server = Server { subscribed: Some(Arc::default()) };
    let serving = async move {
        // An error: it never began to speak MCP, and was told why.
        if let Ok(serving) = serve_server(server, wire).await {
            drop(serving.waiting().await);
        }
    };
    // Both end with the connection.
    seat.later(serving, |seat, ()| seat.close(Ending::Done));
    let intake = Intake { asking, says, unanswered: unanswered.clone() };
    seat.later(intake.run(hears, ready), |seat, ending| {
        if let Some(ending) = ending {
            seat.close(ending);
        }
    });
    speak(seat, said);
    Attached { heard, unanswered }
}

/// Writes what the library says, one message after the other.
fn speak(seat: &mut Seat, mut said: mpsc::Receiver<Bytes>) {
    let next = async move {
        let next = said.recv().await;
        (next, said)
    };
    seat.later(next, |seat, (next, said)| {
        let Some(frame) = next else { return };
        seat.reply(frame);
        speak(seat, said);
    });
}

/// Between a connection and the library: what is put beside a request, and who may ask.
struct Intake {
    asking: Asking,
    says: mpsc::Sender<Bytes>,
    unanswered: Unanswered,
}

impl Intake {
    /// Until the connection ends, or is to.
    async fn run(
        self,
        mut hears: mpsc::Receiver<Value>,
        ready: mpsc::Sender<ClientJsonRpcMessage>,
    ) -> Option<Ending> {
        loop {
            let message = hears.recv().await?;
            let id = message["id"].clone();
            match self.prepared(message).await {
                Ok(message) => ready.send(message).await.ok()?,
                Err(Refused { error: no, ends }) => {
                    self.says.send(error(&id, no.code.0, &no.message)).await.ok()?;
                    self.unanswered.end(&id);
                    if ends {
                        return Some(Ending::Revoked);
                    }
                }
            }
        }
    }

    /// A message with all that is put beside it, or the error that answers it.
    async fn prepared(&self, mut message: Value) -> Result<ClientJsonRpcMessage, Refused> {
        let asking = &self.asking;
        let is_request = message["method"].is_string() && !message["id"].is_null();
        let busy =
            |text: &str| Refused::from(ErrorData::new(ErrorCode(BUSY), text.to_owned(), None));
        let (mut call, mut listening) = (None, None);
        if is_request {
            let valid = asking.shared.desk.credential(&asking.shown).await;
            drop(valid.map_err(No::from)?);
            let text = "too many calls of this agent have no answer yet; wait for one";
            call = Some(Arc::new(asking.call().ok_or_else(|| busy(text))?));
            if message["method"] == listen::METHOD {
                let begun = Listening::begin(asking, &mut message).await;
                listening = begun.map_err(|no| busy(&no.text()))?;
            }
        }
        let mut message: ClientJsonRpcMessage = serde_json::from_value(message)
            .map_err(|_| ErrorData::invalid_params("the message has other params", None))?;
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            let beside = request.request.extensions_mut();
            beside.insert(asking.clone());
            call.map(|call| beside.insert(call));
            listening.map(|listening| beside.insert(listening));
        }
        Ok(message)
    }
}

/// A request that goes no further.
struct Refused {
    error: ErrorData,
    /// The key is not valid any more.
    ends: bool,
}

impl From<ErrorData> for Refused {
    fn from(error: ErrorData) -> Refused {
        Refused { error, ends: false }
    }
}

impl From<No> for Refused {
    fn from(no: No) -> Refused {
        let ends = matches!(no, No::Agent { why: NoAgent::NoKey, .. });
        Refused { error: refused(no), ends }
    }
}

/// The connection, as the library sees it.
struct Wire {
    prepared: mpsc::Receiver<ClientJsonRpcMessage>,
    says: mpsc::Sender<Bytes>,
    unanswered: Unanswered,
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "a connection of the node".into()
    }

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (says, unanswered) = (self.says.clone(), self.unanswered.clone());
        async move {
            let said = serde_json::to_value(&item)?;
            let frame = Bytes::from(said.to_string());
            says.send(frame).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            if said.get("method").is_none() {
                unanswered.end(&said["id"]);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.prepared.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.prepared.close();
        Ok(())
    }
}

fn error(id: &Value, code: i32, text: &str) -> Bytes {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
    Bytes::from(error.to_string())
}

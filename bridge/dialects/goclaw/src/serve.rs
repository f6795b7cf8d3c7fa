//! Agents of hosts that have only GoClaw: a connection serves them. It is told of requests, and streams and says their answers.
//!
//! An agent is attached as long as its connection lasts, or until another one serves it. Its requests wait in its inbox, as those
//! of agents that come and ask do: so nothing is lost while no connection is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bridge::{
    read::Visitor,
    seam::{
        call::{Attach, ConfirmInbox, HandOver, Identity, Look, OpenInbox, ReadInbox, Say, Stream},
        event::Message,
        refusal::Refusal,
    },
};
use mesh::{
    api::command::{NewPiece, Refused},
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
    wire::piece::PieceKind,
};
use serde_json::{Map, Value, json};
use tokio::{sync::watch, time::sleep};

use crate::{
    caller::Caller,
    limits::{
        RUN_LOOK_EVERY, SERVED_AT_ONCE, SERVED_PER_CLIENT_MAX, SERVED_RUNS_MAX, TAKEN_OVER_WITHIN,
    },
    line::Line,
    names,
    outcome::{No, Outcome},
    params::{AGENT, Params, is_required, must_be},
    threads::metadata,
};

/// An agent and its key.
type Name = (AgentId, KeyPrint);

/// A request that the host was told of.
#[derive(Clone, Debug)]
struct Request {
    room: RoomId,
    session: String,
    is_over: bool,
}

/// An agent that a connection serves. It goes with its last clone.
struct Serving {
    client: u64,
    agent: AgentId,
    visitor: Visitor,
    /// The newest ones.
    requests: Mutex<BTreeMap<MessageId, Request>>,
    /// The ids of these, as they came.
    order: Mutex<std::collections::VecDeque<MessageId>>,
    stop: watch::Sender<bool>,
}

/// All agents that connections serve.
#[derive(Default)]
pub(crate) struct Served(Mutex<BTreeMap<Name, Arc<Serving>>>);

impl Served {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Name, Arc<Serving>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection is gone, and its agents with it.
    pub(crate) fn goes(&self, client: u64) {
        self.locked().retain(|_, serving| {
            let stays = serving.client != client;
            if !stays {
                serving.stop.send_replace(true);
            }
            stays
        });
    }

    /// Another connection is to serve an agent.
    fn give_up(&self, name: &Name) {
        if let Some(serving) = self.locked().remove(name) {
            serving.stop.send_replace(true);
        }
    }

    fn count(&self, client: u64) -> usize {
        self.locked().values().filter(|serving| serving.client == client).count()
    }

    /// The request of a run, and the agent of this connection that is to answer it.
    fn find(&self, client: u64, run: &str) -> Result<(Arc<Serving>, MessageId, Request), No> {
        let not_found = || No::not_found(format!("run not found: {run}"));
        let id = MessageId::from_uuid(run).ok_or_else(not_found)?;
        let served = self.locked();
        let mut own = served.values().filter(|serving| serving.client == client);
        let found = own.find_map(|serving| {
            let request = serving.requests().get(&id).cloned()?;
            Some((serving.clone(), id, request))
        });
        let (serving, id, request) = found.ok_or_else(not_found)?;
        if request.is_over {
            return Err(No::invalid(format!("run {run} is over")));
        }
        Ok((serving, id, request))
    }
}

impl Serving {
    fn requests(&self) -> MutexGuard<'_, BTreeMap<MessageId, Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, id: MessageId, request: Request) {
        let mut requests = self.requests();
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        requests.insert(id, request);
        order.push_back(id);
        if order.len() > SERVED_RUNS_MAX
            && let Some(oldest) = order.pop_front()
        {
            requests.remove(&oldest);
        }
    }

    /// Whether it was open until now.
    fn end(&self, id: MessageId) -> bool {
        let mut requests = self.requests();
        let open = requests.get_mut(&id).filter(|request| !request.is_over);
        open.map(|request| request.is_over = true).is_some()
    }
}

/// Attaches an agent, which this connection serves from now on.
pub(crate) async fn serve(
    caller: &Arc<Caller>,
    client: u64,
    line: Arc<Line>,
    params: &Params,
) -> Outcome {
    let agent = params.required(AGENT)?;
    let name = params.filled(&["name"])?.unwrap_or_else(|| agent.clone());
    let capabilities = match params.list(&["capabilities"])? {
        Some(list) => texts(list)?,
        None => Vec::new(),
    };
    let shared = &caller.shared;
    let key: Name = (AgentId::from(&*agent), caller.print());
    shared.served.give_up(&key);
    if shared.served.count(client) >= SERVED_PER_CLIENT_MAX {
        let text = format!("a connection serves at most {SERVED_PER_CLIENT_MAX} agents");
        return Err(No::exhausted(text, 5_000));
    }
    let attach = Attach {
        key: caller.key.clone(),
        name,
        identity: Identity::Named(agent.clone()),
        capabilities,
        reconnect: false,
        linger: Duration::ZERO,
    };
    let visitor = attached(caller, attach).await?;
    let after = shared.desk.ask(&visitor, OpenInbox).await?.mark;
    let serving = Arc::new(Serving {
        client,
        agent: key.0.clone(),
        visitor,
        requests: Mutex::default(),
        order: Mutex::default(),
        stop: watch::Sender::new(false),
    });
    shared.served.locked().insert(key, serving.clone());
    // It may have gone meanwhile.
    if !shared.clients().iter().any(|known| known.id == client) {
        shared.served.goes(client);
        return Err(No::unavailable("the connection is gone".to_owned()));
    }
    let told = Told { caller: caller.clone(), serving, line, after };
    drop(tokio::spawn(told.until_it_ends()));
    Ok(json!({"agentId": agent, "node": shared.desk.config().here.node.to_string()}))
}

/// An agent that another connection served until now is let go first.
async fn attached(caller: &Caller, attach: Attach) -> Result<Visitor, No> {
    let until = tokio::time::Instant::now() + TAKEN_OVER_WITHIN;
    loop {
        match caller.shared.desk.attach(attach.clone()).await {
            Err(Refusal::Mesh(Refused::AgentTaken(_))) if tokio::time::Instant::now() < until => {
                sleep(TAKEN_OVER_WITHIN / 20).await;
            }
            visitor => return Ok(visitor?),
        }
    }
}

fn texts(list: &[Value]) -> Result<Vec<String>, No> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.iter().map(text).collect();
    texts.ok_or_else(|| must_be(&["capabilities"], "an array of strings"))
}

/// The host of an agent, as it is told of requests.
struct Told {
    caller: Arc<Caller>,
    serving: Arc<Serving>,
    line: Arc<Line>,
    /// The place in its inbox up to which it was told.
    after: u64,
}

impl Told {
    async fn until_it_ends(mut self) {
        let mut stopped = self.serving.stop.subscribe();
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => {}
            () = self.tell() => {}
        }
    }

    /// An agent that may not be read for any more is served no longer.
    async fn tell(&mut self) {
        let desk = self.caller.shared.desk.clone();
        let Ok(mut watch) = desk.watch_inbox(&self.serving.visitor) else { return };
        loop {
            // What the client does not take is not read for it.
            drop(self.line.turn().await);
            let call = ReadInbox { after: self.after, limit: SERVED_AT_ONCE };
            let Ok(page) = desk.ask(&self.serving.visitor, call).await else { return };
            for item in page.items.iter().filter(|item| item.ended.is_none()) {
                self.message(&item.message).await;
            }
            if page.upto > self.after {
                self.after = page.upto;
                // One that is not confirmed is told again after the next start.
                drop(desk.ask(&self.serving.visitor, ConfirmInbox(page.upto)).await);
            }
            if page.left == 0 {
                // An error: it is looked again now and then.
                drop(tokio::time::timeout(RUN_LOOK_EVERY, watch.news()).await);
            }
        }
    }

    /// A message of a direct room: a request, more words for one, or its end.
    async fn message(&self, message: &Message) {
        let (desk, visitor) = (&self.caller.shared.desk, &self.serving.visitor);
        let facts = desk.ask(visitor, Look(message.room)).await;
        if !facts.is_ok_and(|facts| facts.access.sides.is_some()) {
            return;
        }
        let told = metadata(message);
        let of = message.said.reply_to.as_deref().and_then(MessageId::from_uuid);
        match (told["kind"].as_str(), of) {
            (Some("cancel" | "timeout"), Some(run)) => self.ends(run),
            (Some("injected"), Some(run)) => {
                let open = self.serving.requests().get(&run).cloned();
                if let Some(request) = open.filter(|request| !request.is_over) {
                    let mut event = self.event(run, &request, message, &told);
                    event["injected"] = json!(true);
                    self.line.certain("mesh.request", &event);
                }
            }
            _ if message.said.conversation.is_some_and(|place| place.expects_reply) => {
                let named = told["session"].as_str().map(str::to_owned);
                let session = named.unwrap_or_else(|| names::bare_session(&self.serving.agent));
                let request = Request { room: message.room, session, is_over: false };
                self.serving.note(message.message, request.clone());
                let event = self.event(message.message, &request, message, &told);
                self.line.certain("mesh.request", &event);
                let call = HandOver { room: message.room, requests: vec![message.entry] };
                // The request is told in any case.
                drop(desk.ask(visitor, call).await);
            }
            _ => {}
        }
    }

    /// A run is over, if it was open until now.
    fn ends(&self, run: MessageId) {
        if self.serving.end(run) {
            self.line.certain("mesh.cancel", &json!({"runId": run.to_uuid()}));
        }
    }

    fn event(&self, run: MessageId, request: &Request, message: &Message, told: &Value) -> Value {
        let mut event = json!({
            "runId": run.to_uuid(),
            "agentId": &*self.serving.agent,
            "sessionKey": request.session,
            "from": told["from"].as_str().unwrap_or(&message.said.agent),
            "message": message.said.content,
            "roomId": request.room.to_uuid(),
        });
        if told["media"].is_array() {
            event["media"] = told["media"].clone();
        }
        event
    }
}

/// A piece of an answer.
pub(crate) async fn chunk(caller: &Arc<Caller>, client: u64, params: &Params) -> Outcome {
    let run = params.required(&["runId"])?;
    let kinds = &["kind"];
    let kind = match params.filled(kinds)?.as_deref() {
        None | Some("chunk") => PieceKind::Chunk,
        Some("tool_call") => PieceKind::ToolCall,
        Some("tool_result") => PieceKind::ToolResult,
        Some("activity") => PieceKind::Activity,
        Some(_) => {
            return Err(must_be(kinds, "one of chunk, tool_call, tool_result, activity"));
        }
    };
    let (serving, _, request) = caller.shared.served.find(client, &run)?;
    let json = |name: &'static str| params.get(&[name]).map(Value::to_string);
    let piece = NewPiece {
        room: request.room,
        stream: run.clone(),
        reply_to: Some(run),
        kind,
        content: params.text(&["content"])?,
        tool: params.text(&["tool"])?,
        input: json("input"),
        result: json("result"),
    };
    caller.shared.desk.ask(&serving.visitor, Stream(piece)).await?;
    Ok(json!({"ok": true}))
}

/// The answer.
pub(crate) async fn reply(caller: &Arc<Caller>, client: u64, params: &Params) -> Outcome {
    let content = params.text(&["content"])?.ok_or_else(|| is_required(&["content"]))?;
    let mut told = Map::new();
    if let Some(usage) = params.object(&["usage"])? {
        told.insert("usage".to_owned(), Value::Object(usage.clone()));
    }
    if let Some(thinking) = params.filled(&["thinking"])? {
        told.insert("thinking".to_owned(), json!(thinking));
    }
    answer(caller, client, params, (content, told)).await
}

/// The agent could not do it.
pub(crate) async fn fail(caller: &Arc<Caller>, client: u64, params: &Params) -> Outcome {
    let error = params.required(&["error"])?;
    let told = Map::from_iter([("error".to_owned(), json!(error))]);
    answer(caller, client, params, (error, told)).await
}

async fn answer(
    caller: &Arc<Caller>,
    client: u64,
    params: &Params,
    (content, mut told): (String, Map<String, Value>),
) -> Outcome {
    let run = params.required(&["runId"])?;
    let (serving, id, request) = caller.shared.served.find(client, &run)?;
    told.insert("session".to_owned(), json!(request.session));
    let say = Say {
        reply_to: Some(run),
        metadata: Some(Value::Object(told).to_string()),
        expects_reply: Some(false),
        ..Say::chat(request.room, content)
    };
    caller.shared.desk.ask(&serving.visitor, say).await?;
    serving.end(id);
    Ok(json!({"ok": true}))
}

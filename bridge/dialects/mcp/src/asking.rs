//! The agent that asks, and what is remembered of it between two requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use bridge::{
    read::{Desk, Hosted, Visitor, Watch},
    seam::{
        answer::Page,
        call::{Attach, HandOver, History, Identity, Join, ListSeats, OpenInbox},
        event::Message,
        refusal::Refusal,
    },
    secret::Secret,
    session::ask::Ask,
    tokens::Grant,
};
use mesh::name::id::{AgentId, EntryRef, KeyPrint, MessageId, RoomId};
use tokio::time::{Instant, timeout_at};

use crate::{
    calls::Calls,
    groups::Groups,
    limits::{
        AGENTS_REMEMBERED_MAX, CALLS_PER_AGENT_MAX, CALLS_PER_KEY_MAX, LOOK_EVERY,
        ROOMS_REMEMBERED_MAX, STREAMS_MAX, STREAMS_PER_AGENT_MAX, TASK_LOOK_EVERY, WAITS_MAX,
        WAITS_PER_AGENT_MAX, WAITS_PER_KEY_MAX,
    },
    outcome::No,
    rows::Lent,
    settings::Settings,
    tasks_kept::Tasks,
};

pub(crate) mod hooks;
mod kept;

use hooks::Hooks;
use kept::{Awaited, NamedSends};

/// All that requests share.
pub(crate) struct Shared {
    pub(crate) desk: Desk,
    pub(crate) settings: Arc<Settings>,
    pub(crate) calls: Arc<Calls>,
    /// Tools of another dialect.
    pub(crate) lent: Arc<Lent>,
    pub(crate) tasks: Tasks,
    pub(crate) hooks: Hooks,
    agents: Mutex<Agents>,
}

#[derive(Default)]
struct Agents {
    /// Calls and waits under way, of agents that have any.
    busy: BTreeMap<Name, Busy>,
    waits: usize,
    streams: usize,
    /// Rooms of agents, and when each was asked for last.
    rooms: BTreeMap<Name, (u64, BTreeSet<RoomId>)>,
    asked: u64,
    awaited: Awaited,
    sends: NamedSends,
    /// Those that have come, and made no call of a tool since.
    came: BTreeSet<Name>,
    /// First rooms of tasks for which it is seen to that somebody begins.
    looked_after: BTreeSet<RoomId>,
    /// Direct rooms that were found, by the two agents.
    direct: BTreeMap<(Name, AgentId), RoomId>,
}

#[derive(Default)]
struct Busy {
    calls: usize,
    waits: usize,
    streams: usize,
    /// Held while it is attached.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// An agent and its key.
pub(crate) type Name = (AgentId, KeyPrint);

/// An agent that asks for something, by one request.
#[derive(Clone)]
pub(crate) struct Asking {
    pub(crate) shared: Arc<Shared>,
    /// Who reads: the key, in the agent's name.
    pub(crate) reader: Visitor,
    pub(crate) agent: AgentId,
    /// What it may do, and what it is shown.
    pub(crate) grant: Arc<Grant>,
    pub(crate) groups: Groups,
    /// The key or token that the request showed.
    pub(crate) shown: Secret,
    /// The key that it stands for.
    pub(crate) key: Secret,
    pub(crate) name: Option<String>,
    pub(crate) capabilities: Vec<String>,
    /// It waits as a task does: for so long, and without a call that is under way.
    pub(crate) patience: Option<Duration>,
    /// The status of the answer over HTTP, where it is not what the protocol has.
    pub(crate) status: Arc<OnceLock<StatusCode>>,
}

impl Shared {
    pub(crate) fn new(
        desk: Desk,
        settings: Arc<Settings>,
        calls: Arc<Calls>,
        lent: Arc<Lent>,
    ) -> Shared {
        let (tasks, hooks, agents) = (Tasks::default(), Hooks::default(), Mutex::default());
        Shared { desk, settings, calls, lent, tasks, hooks, agents }
    }

    fn agents(&self) -> MutexGuard<'_, Agents> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking {
    /// The same agent, as a task of it that waits for so long.
    pub(crate) fn patient(&self, patience: Duration) -> Asking {
        Asking { patience: Some(patience), ..self.clone() }
    }

    pub(crate) fn id(&self) -> Name {
        (self.agent.clone(), self.reader.key())
    }

    /// Reads something: the agent need not be attached.
    pub(crate) async fn read<C: Ask>(&self, call: C) -> Result<C::Answer, No> {
        Ok(self.shared.desk.ask(&self.reader, call).await?)
    }

    /// Reads on in a room, as the agent itself if it is attached: so the node remembers how far it came, and gives it nothing again
    /// that others have had numbered once more after a split.
    pub(crate) async fn goes_through(&self, call: History) -> Result<Page, No> {
        match self.shared.desk.attached(&self.agent, self.reader.key()) {
            Some(agent) => Ok(self.shared.desk.ask(&agent, call).await?),
            None => self.read(call).await,
        }
    }

    /// Messages are handed to the agent, as the result of a call: those that ask it for something are said to be.
    pub(crate) fn gave<'m>(&self, messages: impl Iterator<Item = &'m Message>) {
        let mut by_room: BTreeMap<RoomId, Vec<EntryRef>> = BTreeMap::new();
        for message in messages.filter(|message| message.is_to_be_handed_to(&self.agent)) {
            by_room.entry(message.room).or_default().push(message.entry);
        }
        for (room, requests) in by_room {
            let asking = self.clone();
            // The result does not wait for it. In rooms that are not direct nobody is told.
            drop(tokio::spawn(async move { asking.read(HandOver { room, requests }).await }));
        }
    }

    /// Does something, as the agent that is attached for it.
    pub(crate) async fn act<C: Ask + Clone>(&self, call: C) -> Result<C::Answer, No> {
        let agent = self.attached().await?;
        match self.shared.desk.ask(&agent, call.clone()).await {
            // A connection has just taken its place: it is that one from now on.
            Err(Refusal::Mesh(mesh::api::command::Refused::Superseded)) => {
                let agent = self.attached().await?;
                Ok(self.shared.desk.ask(&agent, call).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// The agent, attached, and in the rooms that it was in before. Begun is finished, also if the client hangs up.
    pub(crate) async fn attached(&self) -> Result<Visitor, No> {
        let asking = self.clone();
        let attaching = tokio::spawn(async move { asking.attach().await });
        attaching.await.unwrap_or_else(|_| Err(Refusal::Unknown.into()))
    }

    async fn attach(&self) -> Result<Visitor, No> {
        // One after the other: the second finds the first one in its rooms.
        let turn = self.shared.agents().busy.entry(self.id()).or_default().turn.clone();
        let _turn = turn.lock().await;
        let call = Attach {
            key: self.key.clone(),
            name: self.name.clone().unwrap_or_else(|| self.agent.to_string()),
            identity: Identity::Named(self.agent.to_string()),
            capabilities: self.capabilities.clone(),
            reconnect: false,
            linger: self.shared.settings.idle_detach,
        };
        let Hosted { visitor: agent, came } = self.shared.desk.host(call).await?;
        if came {
            // From now on what comes for it is kept for it, also while it is away. Without an inbox it is attached all the same.
            drop(self.shared.desk.ask(&agent, OpenInbox).await);
            self.shared.agents().comes(self.id());
        }
        let known = self.shared.agents().remembered(&self.id());
        if came && !known.is_empty() {
            let seats = self.shared.desk.ask(&agent, ListSeats).await?;
            for room in known.into_iter().filter(|room| seats.binary_search(room).is_err()) {
                // A room that is gone, or that it may not read any more, is lost.
                drop(self.shared.desk.ask(&agent, Join(room)).await);
            }
        }
        Ok(agent)
    }

    /// A wait begins: the agent is attached, unless its key may only read.
    pub(crate) async fn comes(&self) -> Result<(), No> {
        if self.reader.standing().may_write() {
            self.attached().await?;
        }
        Ok(())
    }

    /// Whether a wait may go on: the key, or the token, is still valid. An agent that is attached stays so.
    pub(crate) async fn goes_on(&self) -> Result<(), No> {
        self.shared.desk.credential(&self.shown).await?;
        // A task is no call: its host may have gone.
        if self.patience.is_none() {
            self.shared.desk.attached(&self.agent, self.reader.key());
        }
        Ok(())
    }

    /// Waits for news of a room, at most until a time, and looks now and then whether it may.
    pub(crate) async fn until(&self, watch: &mut Watch, until: Instant) -> Result<(), No> {
        let often = if self.patience.is_some() { TASK_LOOK_EVERY } else { LOOK_EVERY };
        let look = (self.shared.settings.idle_detach / 2).min(often);
        loop {
            let tick = until.min(Instant::now() + look);
            if timeout_at(tick, watch.news()).await.is_ok() || Instant::now() >= until {
                return Ok(());
            }
            // In a box, as it is rare: it would be part of every wait.
            Box::pin(self.goes_on()).await?;
        }
    }

    /// The rooms that the agent is in.
    pub(crate) async fn seats(&self) -> Result<Vec<RoomId>, No> {
        let remembered = self.shared.agents().remembered(&self.id());
        // Where it is attached its seats are known; else those that it will have again.
        match self.shared.desk.attached(&self.agent, self.reader.key()) {
            Some(agent) => Ok(self.shared.desk.ask(&agent, ListSeats).await?),
            None => Ok(remembered.into_iter().collect()),
        }
    }

    /// The agent is in a room from now on, or is not.
    pub(crate) fn remembers(&self, room: RoomId, is_in: bool) {
        self.shared.agents().remember(self.id(), room, is_in);
    }

    /// Whether it has come, which is said once: nothing that was under way before goes on by itself.
    pub(crate) fn has_come(&self) -> bool {
        self.shared.agents().came.remove(&self.id())
    }

    /// A call waits for the answer to this request, while it is held: the inbox leaves that to it.
    pub(crate) fn awaits(&self, request: MessageId) -> Awaits {
        self.shared.agents().awaited.begin(&self.id(), request);
        Awaits { asking: self.clone(), request }
    }

    /// What it has sent under a name of its own.
    pub(crate) fn named_send(&self, name: &str, to: RoomId, text: &str) -> Result<(), No> {
        self.shared.agents().sends.note(self.id(), name, to, text)
    }

    /// The direct room that was found with an agent.
    pub(crate) fn found_direct(&self, with: &AgentId) -> Option<RoomId> {
        self.shared.agents().direct.get(&(self.id(), with.clone())).copied()
    }

    /// The direct room with an agent is found.
    pub(crate) fn finds_direct(&self, with: &AgentId, room: RoomId) {
        let mut agents = self.shared.agents();
        if agents.direct.len() >= AGENTS_REMEMBERED_MAX {
            agents.direct.pop_first();
        }
        agents.direct.insert((self.id(), with.clone()), room);
    }

    /// It is seen to that somebody begins the task of this room, while this is held. `None`: it is already.
    pub(crate) fn looks_after(&self, room: RoomId) -> Option<LooksAfter> {
        let is_new = self.shared.agents().looked_after.insert(room);
        is_new.then(|| LooksAfter { shared: self.shared.clone(), room })
    }

    /// The requests whose answers calls wait for.
    pub(crate) fn awaited(&self) -> BTreeSet<MessageId> {
        self.shared.agents().awaited.of(&self.id())
    }

    /// One more call, while it is held.
    pub(crate) fn call(&self) -> Option<Call> {
        let mut agents = self.shared.agents();
        let of_key = agents.of_key(self.reader.key(), |busy| busy.calls);
        let busy = agents.busy.entry(self.id()).or_default();
        if busy.calls >= CALLS_PER_AGENT_MAX || of_key >= CALLS_PER_KEY_MAX {
            return None;
        }
        busy.calls += 1;
        Some(Call(self.clone()))
    }

    /// One more wait, while it is held.
    pub(crate) fn wait(&self) -> Result<Wait, No> {
        // Tasks have bounds of their own.
        if self.patience.is_some() {
            return Ok(Wait(None));
        }
        let mut agents = self.shared.agents();
        let (all, of_key) = (agents.waits, agents.of_key(self.reader.key(), |busy| busy.waits));
        let busy = agents.busy.entry(self.id()).or_default();
        let is_full = of_key >= WAITS_PER_KEY_MAX || all >= WAITS_MAX;
        if busy.waits >= WAITS_PER_AGENT_MAX || is_full {
            let retry = serde_json::json!(1_000);
            return Err(No::error("too many waits; retry").with("retryAfterMs", retry));
        }
        busy.waits += 1;
        agents.waits += 1;
        self.shared.calls.wait_begins();
        Ok(Wait(Some(self.clone())))
    }
}

impl Asking {
    /// One more stream of news, while it is held.
    pub(crate) fn stream(&self) -> Result<Stream, No> {
        let mut agents = self.shared.agents();
        let all = agents.streams;
        let busy = agents.busy.entry(self.id()).or_default();
        if busy.streams >= STREAMS_PER_AGENT_MAX || all >= STREAMS_MAX {
            return Err(No::error(
                "this agent listens to as many streams as it may; end one first",
            ));
        }
        busy.streams += 1;
        agents.streams += 1;
        Ok(Stream(self.clone()))
    }
}

/// See [`Asking::looks_after`].
pub(crate) struct LooksAfter {
    shared: Arc<Shared>,
    room: RoomId,
}

impl Drop for LooksAfter {
    fn drop(&mut self) {
        self.shared.agents().looked_after.remove(&self.room);
    }
}

/// See [`Asking::awaits`].
pub(crate) struct Awaits {
    asking: Asking,
    request: MessageId,
}

impl Drop for Awaits {
    fn drop(&mut self) {
        self.asking.shared.agents().awaited.end(&self.asking.id(), self.request);
        // What was behind the answer is shown from now on.
        self.asking.shared.desk.stir_inbox(&self.asking.agent);
    }
}

/// See [`Asking::call`].
pub(crate) struct Call(Asking);

impl Drop for Call {
    fn drop(&mut self) {
        let mut agents = self.0.shared.agents();
        let id = self.0.id();
        agents.over(&id, |busy| busy.calls -= 1);
    }
}

/// See [`Asking::wait`].
pub(crate) struct Wait(Option<Asking>);

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(asking) = &self.0 else { return };
        let mut agents = asking.shared.agents();
        agents.waits -= 1;
        asking.shared.calls.wait_ends();
        let id = asking.id();
        agents.over(&id, |busy| busy.waits -= 1);
    }
}

/// See [`Asking::stream`].
pub(crate) struct Stream(Asking);

impl Drop for Stream {
    fn drop(&mut self) {
        let mut agents = self.0.shared.agents();
        agents.streams -= 1;
        let id = self.0.id();
        agents.over(&id, |busy| busy.streams -= 1);
    }
}

impl Agents {
    /// Something of all agents of a key together: of those with calls under way, which are few.
    fn of_key(&self, key: KeyPrint, count: impl Fn(&Busy) -> usize) -> usize {
        self.busy.iter().filter(|((_, of), _)| *of == key).map(|(_, busy)| count(busy)).sum()
    }

    fn over(&mut self, id: &Name, less: impl FnOnce(&mut Busy)) {
        let Some(busy) = self.busy.get_mut(id) else { return };
        less(busy);
        if busy.calls == 0 && busy.waits == 0 && busy.streams == 0 {
            self.busy.remove(id);
        }
    }

    fn comes(&mut self, id: Name) {
        if self.came.len() < AGENTS_REMEMBERED_MAX {
            self.came.insert(id);
        }
    }

    fn remembered(&mut self, id: &Name) -> BTreeSet<RoomId> {
        self.asked += 1;
        let Some((asked, rooms)) = self.rooms.get_mut(id) else { return BTreeSet::new() };
        *asked = self.asked;
        rooms.clone()
    }

    fn remember(&mut self, id: Name, room: RoomId, is_in: bool) {
        self.asked += 1;
        if !is_in {
            if let Some((_, rooms)) = self.rooms.get_mut(&id) {
                rooms.remove(&room);
            }
            return;
        }
        if self.rooms.len() >= AGENTS_REMEMBERED_MAX && !self.rooms.contains_key(&id) {
            let oldest = self.rooms.iter().min_by_key(|(_, (asked, _))| *asked);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.rooms.remove(&oldest);
            }
        }
        let (asked, rooms) = self.rooms.entry(id).or_default();
        *asked = self.asked;
        if rooms.len() < ROOMS_REMEMBERED_MAX {
            rooms.insert(room);
        }
    }
}

//! A mesh of one node for tests: a real engine, and the delivery log in memory. Answers and events
//! come on the thread that asks, in the order of the engine's effects.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, RwLock, atomic::Ordering},
    time::{Duration, Instant},
};

use mesh::{
    Effect, Engine, Fates, Identity, Input, MeshSecret, Proof, Proofs,
    api::{
        account::{ContentState, Mark, RecordNews, RecordPage, RecordView},
        batch::{InboxItem, Summary},
        command::{
            Attach, CallId, Caller, Command, Encryption, Outcome, Refused, Roamed, Say, Speech,
        },
        event::{AgentEvent, Delivered, RoomEvent},
        policy::Policies,
        search::Wanted,
    },
    chronicle::Position,
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, MessageId, NodeId, RoomId},
        number::Number,
        time::Now,
    },
    records::{
        agent_files::{self, AgentFile},
        details::{self, Details},
        files::{FileView, ReplacedFile},
        place::RoomPlace,
        profile,
        schedules::{JobView, RunView, WantedJobs, WantedRuns},
        threads::{self, ThreadFact},
    },
    wire::{
        entry::Said,
        record::{CollectionNumber, Record, RecordId, RecordKey},
        signatures::SignedLog,
    },
};

use crate::{
    Hub, Reply,
    backend::{
        FoundAgentFile, FoundFile, FoundProfile, FoundReplaced, InboxItems, InboxPlace, Kept, Mesh,
        Past, ReadError, Reads, Roam, Row, Serves,
    },
    records::{FollowRecords, GetContent, GetRecord, ListRecords, LocateContents},
    searching::{FoundRows, Searcher},
    session::meter::Meter,
};

mod again;
mod connection;
pub mod echo;
mod files;
mod followed;
pub mod knobs;
mod past;
pub mod plain;
mod searching;

use followed::Followed;
use past::Acts;

pub use connection::{Connection, keyed};
pub use knobs::Knobs;

/// The one room that is always there.
pub fn lobby() -> RoomId {
    static LOBBY: LazyLock<RoomId> = LazyLock::new(|| RoomId::lobby(secret().mesh_id()));
    *LOBBY
}

/// The one key that is the node's own.
pub const KEY: &str = "the own key of the node, in tests";
/// One that is not.
pub const OTHER_KEY: &str = "a key of somebody else, for tests";

/// The print of [`KEY`].
pub fn own_key() -> KeyPrint {
    static PRINT: LazyLock<KeyPrint> = LazyLock::new(|| KeyPrint::of(KEY));
    *PRINT
}

/// The log that the node writes.
pub fn here() -> SignedLog {
    SignedLog { mesh: secret().mesh_id(), node: node() }
}

/// The node, as others know it.
pub fn node() -> NodeId {
    identity().node_id()
}

fn identity() -> Identity {
    Identity::from_seed(&[1; 32])
}

fn secret() -> MeshSecret {
    MeshSecret::new([7; 32], identity().node_id())
}

pub struct Fake {
    /// When the clocks of clients begin.
    pub started: Instant,
    meter: Arc<Meter>,
    hub: Mutex<Option<Arc<Hub>>>,
    core: Mutex<Core>,
    proofs: Proofs,
    fates: Fates,
    pub rows: RwLock<BTreeMap<RoomId, Vec<Row>>>,
    acts: Mutex<Acts>,
    /// What is kept of the node's own.
    pub kept: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Records, by collection and key.
    records: Mutex<Records>,
    followed: Mutex<Followed>,
    /// Bytes apart of records.
    contents: Mutex<BTreeMap<RecordKey, Vec<u8>>>,
    /// How far inboxes are confirmed.
    marks: Mutex<BTreeMap<AgentId, u64>>,
    /// Items of inboxes.
    inboxes: Mutex<BTreeMap<(AgentId, u64), InboxItem>>,
    /// Where rooms have theirs.
    places: Mutex<BTreeMap<RoomId, RoomPlace>>,
    pub knobs: Knobs,
}

type Records = BTreeMap<(CollectionNumber, RecordKey), Arc<Record>>;

struct Core {
    engine: Engine,
    now: Now,
    calls: u64,
    waiting: BTreeMap<CallId, Asker>,
    /// Answers to [`Asker::Test`].
    answers: BTreeMap<CallId, Ended>,
    callers: BTreeMap<AgentId, Caller>,
}

enum Asker {
    Client(Reply),
    Attaching(Reply, AgentId, KeyPrint),
    Test,
}

pub type Ended = Result<Outcome, Refused>;

/// A message with nothing but a text.
pub fn chat(room: RoomId, content: &str) -> Say {
    Say {
        room,
        speech: Speech::Chat,
        content: content.into(),
        encryption: Encryption::None,
        durable: None,
        conversing: None,
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
    }
}

impl Fake {
    pub fn new() -> (Arc<Fake>, Arc<Hub>) {
        Fake::with(Policies::default())
    }

    /// With these policies of its core.
    pub fn with(policies: Policies) -> (Arc<Fake>, Arc<Hub>) {
        let secret = secret();
        let config = mesh::Config::new(secret.mesh_id(), secret.founder());
        // Nobody waits for days here.
        let request_ttl = mesh::limits::REQUEST_TTL_MIN;
        let config = mesh::Config { policies, request_ttl, ..config };
        let wall_ms = 1_800_000_000_000;
        let now = Now { mono: Duration::from_secs(1), wall_ms, wall_us: wall_ms * 1_000 };
        let engine = Engine::open(identity(), config, Summary::default(), now);
        let started = Instant::now();
        let fake = Arc::new(Fake {
            started,
            meter: Arc::new(Meter::new(started)),
            proofs: engine.proofs(),
            fates: engine.fates(),
            hub: Mutex::default(),
            core: Mutex::new(Core {
                engine,
                now,
                calls: 0,
                waiting: BTreeMap::new(),
                answers: BTreeMap::new(),
                callers: BTreeMap::new(),
            }),
            rows: RwLock::default(),
            acts: Mutex::default(),
            kept: Mutex::default(),
            records: Mutex::default(),
            contents: Mutex::default(),
            followed: Mutex::default(),
            inboxes: Mutex::default(),
            marks: Mutex::default(),
            places: Mutex::default(),
            knobs: Knobs::default(),
        });
        let hub = Arc::new(Hub::new(fake.clone()));
        *fake.hub.lock().unwrap() = Some(hub.clone());
        fake.turn(&mut fake.core());
        (fake, hub)
    }

    /// Somebody says something. If it is not attached by now, it is, and joins.
    pub fn tell(&self, room: RoomId, agent: &str, say: Say) -> Number {
        let mut core = self.core();
        let caller = match core.callers.get(agent) {
            Some(caller) => caller.clone(),
            None => self.attach(&mut core, agent),
        };
        let join = Command::Join { caller: caller.clone(), room };
        self.ask(&mut core, join).unwrap();
        match self.ask(&mut core, Command::Say { caller, say }) {
            Ok(Outcome::Said(said)) => said.number,
            other => panic!("{other:?}"),
        }
    }

    pub fn say(&self, room: RoomId, agent: &str, content: &str) -> Number {
        self.tell(room, agent, chat(room, content))
    }

    /// A message is in the delivery log that no engine put there.
    pub fn keep(&self, room: RoomId, delivered: &Delivered) {
        self.rows.write().unwrap().entry(room).or_default().push(row(delivered));
    }

    /// A test asks.
    pub fn does(&self, command: Command) -> Ended {
        self.ask(&mut self.core(), command)
    }

    /// Time passes.
    pub fn pass(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(100);
        let mut core = self.core();
        for _ in 0..time.as_millis() / STEP.as_millis() {
            core.step(STEP);
            let now = core.now;
            core.engine.handle(now, Input::Timeout);
            self.turn(&mut core);
        }
    }

    /// Answers that were kept back go out.
    pub fn flow(&self) {
        self.knobs.stalls.store(false, Ordering::Relaxed);
        for (reply, ended) in std::mem::take(&mut *self.knobs.stalled.lock().unwrap()) {
            reply.send(ended);
        }
    }

    pub fn stalled(&self) -> usize {
        self.knobs.stalled.lock().unwrap().len()
    }

    pub fn members(&self, room: RoomId) -> Vec<String> {
        self.agents(own_key(), Some(room))
    }

    /// How many agents of its own key are attached.
    pub fn attached(&self) -> usize {
        self.agents(own_key(), None).len()
    }

    /// The agent's connection is gone; this is how far it is said to have seen.
    pub fn detach(&self, agent: &str, seen: Vec<(RoomId, Number)>) {
        let caller = self.caller(agent);
        self.does(Command::Detach { caller, seen }).unwrap();
    }

    pub fn displace(&self, agent: &str) {
        let caller = self.caller(agent);
        let (agent, registration) = (caller.agent, caller.registration);
        self.hub().tell(AgentEvent::Displaced { agent, registration });
    }

    pub fn caller(&self, agent: &str) -> Caller {
        self.core().callers[agent].clone()
    }

    pub fn hub(&self) -> Arc<Hub> {
        self.hub.lock().unwrap().clone().unwrap()
    }

    /// The hub reads from this and this tells the hub: until they are parted neither ever ends.
    pub fn part(&self) {
        self.hub.lock().unwrap().take();
    }

    fn agents(&self, key: KeyPrint, room: Option<RoomId>) -> Vec<String> {
        match self.does(Command::ListAgents { by: key.into(), room }) {
            Ok(Outcome::Agents(agents)) => agents.iter().map(|it| it.agent.to_string()).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap()
    }

    fn attach(&self, core: &mut Core, agent: &str) -> Caller {
        let key = own_key();
        let attach = Attach {
            agent: agent.into(),
            stable: false,
            reconnect: false,
            key,
            own: true,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.into(),
            capabilities: Vec::new(),
        };
        match self.ask(core, Command::Attach(attach)) {
            Ok(Outcome::Attached(it)) => {
                let caller = Caller { agent: agent.into(), key, registration: it.registration };
                core.callers.insert(agent.into(), caller.clone());
                caller
            }
            other => panic!("{other:?}"),
        }
    }

    fn ask(&self, core: &mut Core, command: Command) -> Ended {
        let call = self.hand_over(core, command, Asker::Test);
        core.answers.remove(&call).expect("this node sequences, so it answers at once")
    }

    fn hand_over(&self, core: &mut Core, command: Command, asker: Asker) -> CallId {
        core.calls += 1;
        let call = CallId(core.calls);
        core.waiting.insert(call, asker);
        core.step(Duration::from_millis(1));
        let now = core.now;
        core.engine.handle(now, Input::Command { call, command });
        self.turn(core);
        call
    }

    /// What is delivered can be read before anything is said of it.
    fn turn(&self, core: &mut Core) {
        let turn = core.engine.take_turn();
        self.commit(&turn.batch);
        for effect in &turn.effects {
            if let Effect::Notify { room, event: RoomEvent::Message(delivered) } = effect {
                self.rows.write().unwrap().entry(*room).or_default().push(row(delivered));
            }
        }
        for effect in turn.effects {
            match effect {
                Effect::Reply { call, result } => self.answer(core, call, result),
                Effect::Notify { room, event: RoomEvent::Message(mut delivered) } => {
                    if self.knobs.cold.load(Ordering::Relaxed) {
                        delivered.said = None;
                    }
                    self.hub().notify(room, RoomEvent::Message(delivered));
                }
                Effect::Notify { room, event } => self.hub().notify(room, event),
                Effect::Tell(event) => self.hub().tell(event),
                Effect::Broadcast { .. }
                | Effect::Send { .. }
                | Effect::SendSpans { .. }
                | Effect::SendBodies { .. }
                | Effect::AskCopies { .. }
                | Effect::SendCopies { .. }
                | Effect::AskReceipt { .. }
                | Effect::SendReceipt { .. }
                | Effect::SendRecords { .. }
                | Effect::SendContents { .. }
                | Effect::SendReplaced { .. }
                | Effect::HandOver { .. }
                | Effect::HandOverRecords { .. }
                | Effect::GiveOn { .. }
                | Effect::Pulse(_)
                | Effect::ShutOut(_)
                | Effect::Known(_)
                | Effect::Noisy(_)
                | Effect::Secret(_)
                | Effect::DrawSecret
                | Effect::Alarm(_)
                | Effect::Stopped => {}
            }
        }
    }

    fn answer(&self, core: &mut Core, call: CallId, ended: Ended) {
        let reply = match core.waiting.remove(&call).unwrap() {
            Asker::Client(reply) => reply,
            Asker::Attaching(reply, agent, key) => {
                if let Ok(Outcome::Attached(it)) = &ended {
                    let registration = it.registration;
                    core.callers.insert(agent.clone(), Caller { agent, key, registration });
                }
                reply
            }
            Asker::Test => {
                core.answers.insert(call, ended);
                return;
            }
        };
        let stalls = self.knobs.stalls.load(Ordering::Relaxed);
        if stalls {
            self.knobs.stalled.lock().unwrap().push((reply, ended));
        } else {
            reply.send(ended);
        }
    }

    fn roam_for(&self, room: RoomId, cursor: Number) -> Ended {
        self.knobs.roamed.lock().unwrap().push((room, cursor));
        if self.knobs.speaks_while_claiming.load(Ordering::Relaxed) {
            self.tell(room, "z", chat(room, "meanwhile"));
        }
        if self.knobs.behind.load(Ordering::Relaxed) > 0 {
            self.knobs.behind.fetch_sub(1, Ordering::Relaxed);
            return Ok(Outcome::Roamed(Roamed::Behind));
        }
        self.knobs.roam.lock().unwrap().iter_mut().for_each(|script| script.needs_claim = false);
        let claims = self.knobs.claims.load(Ordering::Relaxed);
        Ok(Outcome::Roamed(if claims { Roamed::Ready } else { Roamed::Never }))
    }
}

impl Core {
    fn step(&mut self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap();
        self.now.mono += time;
        self.now.wall_ms += ms;
        self.now.wall_us += 1_000 * ms;
    }
}

fn row(delivered: &Delivered) -> Row {
    Row {
        number: delivered.number,
        canonical: delivered.canonical.unwrap_or(delivered.number),
        numbers: Vec::new(),
        at: delivered.at,
        log: delivered.log,
        message: delivered.message,
        facts: delivered.facts,
        said: delivered.said.as_deref().cloned(),
        proof: Proof::default(),
        fate: None,
    }
}

impl Mesh for Fake {
    fn call(&self, command: Command, mut reply: Reply) {
        if self.knobs.full.load(Ordering::Relaxed) {
            return;
        }
        if self.knobs.ends.load(Ordering::Relaxed) {
            return reply.take();
        }
        if let Some(ended) = self.knobs.script.lock().unwrap().take() {
            *self.knobs.scripted.lock().unwrap() = Some(command);
            return reply.send(ended);
        }
        if let Command::Roam { room, cursor, .. } = command {
            return reply.send(self.roam_for(room, cursor));
        }
        let asker = if let Command::Attach(it) = &command {
            Asker::Attaching(reply, it.agent.clone(), it.key)
        } else {
            Asker::Client(reply)
        };
        self.hand_over(&mut self.core(), command, asker);
    }
}

impl Fake {
    fn all(&self, room: RoomId) -> Result<Vec<Row>, ReadError> {
        if self.knobs.broken.load(Ordering::Relaxed) {
            self.knobs.failed_reads.fetch_add(1, Ordering::Relaxed);
            return Err(ReadError::new("broken on purpose"));
        }
        let mut rows = self.rows.read().unwrap().get(&room).cloned().unwrap_or_default();
        for row in &mut rows {
            let of = |said| self.proofs.of(row.log.author, said);
            row.proof = row.said.as_ref().map(of).unwrap_or_default();
            let request = EntryRef { log: row.log, seq: row.at.seq };
            let asks = |said: &&Said| said.conversation.is_some_and(|place| place.expects_reply);
            let asked = row.said.as_ref().filter(asks);
            row.fate = asked.and_then(|said| self.fates.of(room, request, &said.agent));
        }
        Ok(rows)
    }
}

impl Reads for Fake {
    fn profile(&self, agent: &str) -> Result<FoundProfile, ReadError> {
        let places = profile::places(agent);
        let records = self.records.lock().unwrap();
        let is_there = |(kind, key): &(CollectionNumber, RecordKey)| {
            places.iter().any(|(of, first)| of == kind && key.id.0.starts_with(first))
        };
        let of_agent = records.iter().filter(|(key, _)| is_there(key));
        let of_agent: Vec<Record> = of_agent.map(|(_, record)| Record::clone(record)).collect();
        let profile = profile::read(agent, &of_agent, |key| self.proofs.owns(key, agent));
        let (claimed, retired) = (self.proofs.is_claimed(agent), self.proofs.is_retired(agent));
        Ok(FoundProfile { profile, claimed, retired })
    }

    fn details(&self, rooms: &[RoomId], settings: bool) -> Result<Vec<Details>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let of = |room: &RoomId| {
            let at = places.get(room)?;
            let records = records.values().map(|record| &**record);
            let keys = self.proofs.keys_of_room(*room);
            let mut details = details::read(at, records, &keys, secret().mesh_id());
            if settings {
                details.show_writers(&self.proofs.writers_of_room(*room));
            } else {
                details.settings.clear();
            }
            Some(details)
        };
        Ok(rooms.iter().map(|room| of(room).unwrap_or_default()).collect())
    }

    fn threads(&self, room: RoomId, key: KeyPrint) -> Result<Vec<ThreadFact>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&room) else { return Ok(Vec::new()) };
        let records = records.values().map(|record| &**record);
        Ok(threads::read(at, records, key, secret().mesh_id()))
    }

    fn files(&self, room: RoomId) -> Result<Vec<FileView>, ReadError> {
        Ok(self.files_of(room))
    }

    fn file(&self, room: RoomId, path: &str) -> Result<Option<FoundFile>, ReadError> {
        Ok(self.file_of(room, path))
    }

    fn replaced_files(&self, _: RoomId) -> Result<Vec<ReplacedFile>, ReadError> {
        // What a record has replaced is the store's, and here is none.
        Ok(Vec::new())
    }

    fn replaced_file(
        &self,
        _: RoomId,
        _: &str,
        _: usize,
    ) -> Result<Option<FoundReplaced>, ReadError> {
        Ok(None)
    }

    fn agent_files(
        &self,
        place: RoomId,
        key: KeyPrint,
        agent: &str,
    ) -> Result<Vec<AgentFile>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&place) else { return Ok(Vec::new()) };
        let own = records.values().filter(|record| record.owner() == key);
        let files = own.filter_map(|record| agent_files::read(at, agent, record));
        let mut files: Vec<AgentFile> = files.collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    fn agent_file(
        &self,
        place: RoomId,
        key: KeyPrint,
        (agent, name): (&str, &str),
    ) -> Result<Option<FoundAgentFile>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&place) else { return Ok(None) };
        let id = agent_files::id(at, agent, name);
        let own = RecordKey { id, owner: Some(key) };
        let record = records.get(&(agent_files::COLLECTION.number, own));
        let view = record.and_then(|record| agent_files::read(at, agent, record));
        let Some(view) = view else { return Ok(None) };
        let bytes = self.contents.lock().unwrap().get(&own).cloned().unwrap_or_default();
        let bytes = at.cover.read_apart(&agent_files::apart_name(id, key), bytes);
        // The node is alone: all that there is is here.
        let bytes = if view.length == 0 { Some(Vec::new()) } else { bytes };
        Ok(Some(FoundAgentFile { view, bytes }))
    }

    fn jobs(&self, room: RoomId, wanted: WantedJobs) -> Result<Vec<JobView>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&room) else { return Ok(Vec::new()) };
        let (keys, first) = (self.proofs.keys_of_room(room), wanted.first(at));
        let found = records.values().map(|record| &**record);
        let found = found.filter(|record| record.id.0.starts_with(&first));
        let found = WantedJobs::read(at, found, &keys, secret().mesh_id());
        drop((places, records));
        let gate =
            self.knobs.gate.lock().unwrap().take_if(|_| matches!(wanted, WantedJobs::One(_)));
        if let Some(gate) = gate {
            gate.came.send(()).unwrap();
            gate.opens.recv().unwrap();
        }
        Ok(found)
    }

    fn runs(&self, room: RoomId, wanted: WantedRuns) -> Result<Vec<RunView>, ReadError> {
        let (places, records) = (self.places.lock().unwrap(), self.records.lock().unwrap());
        let Some(at) = places.get(&room) else { return Ok(Vec::new()) };
        let (keys, first) = (self.proofs.keys_of_room(room), wanted.first(at));
        let records = records.values().map(|record| &**record);
        let records = records.filter(|record| record.id.0.starts_with(&first));
        Ok(WantedRuns::read(at, records, &keys, secret().mesh_id()))
    }

    fn has_record_news(&self, after: Mark) -> bool {
        self.followed.lock().unwrap().has_news(after)
    }

    fn record_news(&self, follow: &FollowRecords) -> Result<RecordNews, ReadError> {
        let records = self.records.lock().unwrap();
        Ok(self.followed.lock().unwrap().news(&records, follow))
    }

    fn record(&self, get: &GetRecord) -> Result<Option<RecordView>, ReadError> {
        Ok(followed::record(&self.records.lock().unwrap(), get))
    }

    fn speaks_for(&self, key: KeyPrint, agent: &str) -> bool {
        self.proofs.owns(key, agent) && !self.proofs.is_retired(agent)
    }

    fn records(&self, list: &ListRecords) -> Result<RecordPage, ReadError> {
        Ok(followed::page(&self.records.lock().unwrap(), list))
    }

    fn content(&self, get: &GetContent) -> Result<Option<Vec<u8>>, ReadError> {
        let key = RecordKey { id: get.id, owner: Some(get.owner) };
        Ok(self.contents.lock().unwrap().get(&key).cloned())
    }

    fn content_states(&self, locate: &LocateContents) -> Result<Vec<ContentState>, ReadError> {
        let contents = self.contents.lock().unwrap();
        let state = |(id, owner): &(RecordId, KeyPrint)| {
            let held = contents.contains_key(&RecordKey { id: *id, owner: Some(*owner) });
            // It is alone.
            ContentState { held, copied: false }
        };
        Ok(locate.keys.iter().map(state).collect())
    }

    fn proof(&self, node: NodeId, said: &Said) -> Proof {
        self.proofs.of(node, said)
    }

    fn page_of_arrival(
        &self,
        room: RoomId,
        after: Number,
        came: Number,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.all(room)?;
        for (number, at) in self.knobs.passed_over.lock().unwrap().iter() {
            let row = rows.iter().find(|it| it.at == *at && it.number <= came).cloned();
            rows.extend(row.map(|row| Row { number: *number, ..row }));
        }
        rows.retain(|row| row.number > after);
        rows.sort_by_key(|row| row.number);
        rows.truncate(limit);
        Ok(rows)
    }

    fn page_at_once(
        &self,
        room: RoomId,
        after: Number,
        limit: usize,
    ) -> Result<Option<Vec<Row>>, ReadError> {
        let plain = self.knobs.passed_over.lock().unwrap().is_empty();
        match self.serves(room, after)? {
            Serves::Here if plain && limit.is_multiple_of(2) => {
                self.page_since(room, after, limit).map(Some)
            }
            // As if it took long.
            Serves::Here | Serves::Foreign => Ok(None),
        }
    }

    fn page_newest(
        &self,
        room: RoomId,
        limit: usize,
        before_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.all(room)?;
        rows.retain(|row| before_ms.is_none_or(|before| row.facts.wall_ms < before));
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn page_below(&self, room: RoomId, limit: usize, below: Number) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.all(room)?;
        rows.retain(|row| row.number < below);
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn by_message(&self, room: RoomId, message: MessageId) -> Result<Option<Row>, ReadError> {
        Ok(self.all(room)?.into_iter().find(|row| row.message == message))
    }

    fn by_number(&self, room: RoomId, number: Number) -> Result<Option<Row>, ReadError> {
        Ok(self.all(room)?.into_iter().find(|row| row.number == number))
    }

    fn past(
        &self,
        room: RoomId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Past>, ReadError> {
        Ok(self.acts.lock().unwrap().with(room, &self.all(room)?, (after, limit)))
    }

    fn row_at(&self, room: RoomId, at: LocalRef) -> Result<Option<Row>, ReadError> {
        let passed = self.knobs.passed_over.lock().unwrap();
        let others = passed.iter().filter(|(_, it)| *it == at).map(|(number, _)| *number);
        let row = self.all(room)?.into_iter().find(|row| row.at == at);
        Ok(row.map(|row| Row { numbers: [row.number].into_iter().chain(others).collect(), ..row }))
    }

    fn tip(&self, room: RoomId) -> Result<Number, ReadError> {
        let rows = self.rows.read().unwrap();
        Ok(rows.get(&room).and_then(|rows| rows.last()).map_or(Number::ZERO, |row| row.number))
    }

    fn roam(&self, _: RoomId, _: Number, limit: usize) -> Result<Roam, ReadError> {
        let mut script = self.knobs.roam.lock().unwrap();
        let mut roam = script.clone().unwrap_or_default();
        // Passed, when it is read once more.
        for script in script.iter_mut().filter(|script| !script.needs_claim) {
            script.later = false;
        }
        roam.rows.truncate(limit);
        Ok(roam)
    }

    fn inbox(&self, agent: &str, after: u64, limit: usize) -> Result<InboxItems, ReadError> {
        let items = self.inboxes.lock().unwrap();
        let is_there = |((of, place), item): &(&(AgentId, u64), &InboxItem)| {
            **of == *agent && *place > after && !item.is_taken_out()
        };
        let all = items.iter().filter(is_there).map(|((_, place), item)| InboxPlace {
            place: *place,
            room: item.room,
            number: item.number,
            notice: item.notice,
        });
        let all: Vec<InboxPlace> = all.collect();
        let left = all.len().saturating_sub(limit);
        Ok(InboxItems { items: all.into_iter().take(limit).collect(), left })
    }

    fn inbox_mark(&self, agent: &str) -> Result<Option<u64>, ReadError> {
        Ok(self.marks.lock().unwrap().get(agent).copied())
    }

    fn search(&self, of: &Wanted, by: Searcher<'_>) -> Result<FoundRows, ReadError> {
        searching::found(self, of, by)
    }

    fn kept(&self, prefix: &[u8]) -> Result<Vec<Kept>, ReadError> {
        let kept = self.kept.lock().unwrap();
        let kept = kept.iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn serves(&self, room: RoomId, cursor: Number) -> Result<Serves, ReadError> {
        let here = cursor <= self.tip(room)? && !self.knobs.split.load(Ordering::Relaxed);
        Ok(if here { Serves::Here } else { Serves::Foreign })
    }
}

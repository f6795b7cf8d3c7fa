//! The seam to the rest of a node: questions to the mesh, reads of the store.

use std::{collections::BTreeSet, fmt, sync::Arc};

use mesh::{
    Proof,
    api::{
        account::{ContentState, Mark, RecordNews, RecordPage, RecordView},
        command::{Caller, Command},
        delivery::{Delivery, Notice},
        search::Wanted,
    },
    chronicle::Position,
    name::{
        id::{AgentId, KeyPrint, LocalRef, LogId, MessageId, NodeId, RoomId},
        number::Number,
    },
    records::{
        agent_files::AgentFile,
        details::Details,
        files::{FileView, ReplacedFile},
        profile::{self, Profile},
        schedules::{JobView, RunView, WantedJobs, WantedRuns},
        threads::ThreadFact,
    },
    wire::{
        acts::TaskAct,
        entry::{Facts, Said},
    },
};

use tokio::time::sleep;

use crate::{
    limits,
    records::{FollowRecords, GetContent, GetRecord, ListRecords, LocateContents},
    reply::{Failure, Reply},
    seam::answer::RoomFacts,
    searching::{FoundRows, Searcher},
};

/// The way to a node's engine.
pub trait Mesh: Send + Sync + 'static {
    /// Asks. Never blocks. `reply` is answered with [`Reply::send`] on the thread that calls
    /// [`crate::Hub::notify`], in the order of the engine's effects; dropping it (the engine's queue is
    /// full, the node is going down) tells the client `internal_error`.
    fn call(&self, command: Command, reply: Reply);
}

/// Takes an agent out of the mesh, unless it was attached anew. `seen`: the last number that it was given in each room.
pub(crate) async fn detach(mesh: &dyn Mesh, caller: &Caller, seen: &[(RoomId, Number)]) {
    ends(mesh, Command::Detach { caller: caller.clone(), seen: seen.to_vec() }).await;
}

/// The same, of an agent that stays for now.
pub(crate) async fn linger(mesh: &dyn Mesh, caller: &Caller, seen: &[(RoomId, Number)]) {
    let (caller, seen) = (caller.clone(), seen.to_vec());
    ends(mesh, Command::Linger { caller, seen, hosted: false }).await;
}

/// The same, of an agent that acts by requests from now on.
pub(crate) async fn act_by_requests(mesh: &dyn Mesh, caller: &Caller) {
    let (caller, seen) = (caller.clone(), Vec::new());
    ends(mesh, Command::Linger { caller, seen, hosted: true }).await;
}

async fn ends(mesh: &dyn Mesh, command: Command) {
    for _ in 0..limits::DETACH_TRIES_MAX {
        let (reply, answer) = Reply::once();
        mesh.call(command.clone(), reply);
        match answer.await {
            Ok(Ok(_) | Err(Failure::Refused(_))) => return,
            Ok(Err(Failure::Unanswered | Failure::Unknown)) | Err(_) => {
                sleep(limits::DETACH_RETRY).await;
            }
        }
    }
    tracing::warn!(
        event = "agent_not_detached",
        "an agent could not be detached: the node does not take commands"
    );
}

/// Reads of durable and of ephemeral rooms alike. A read sees everything that was committed before it
/// began. Called from async code and from blocking threads, by many at once.
#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
pub trait Reads: Send + Sync + 'static {
    /// The oldest `limit` rows of the delivery log above `after`, ascending.
    fn page_since(&self, room: RoomId, after: Number, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.page_of_arrival(room, after, Number::ZERO, limit)
    }

    /// The same, for a client that came with the cursor `came` and has got everything since: with messages that were delivered here
    /// up to `came`, are not proven seen, and are passed over above `after` under another number
    /// ([`RoomEvent::PassedOver`]); without those that `came` proves to be seen.
    ///
    /// [`RoomEvent::PassedOver`]: mesh::api::event::RoomEvent::PassedOver
    fn page_of_arrival(
        &self,
        room: RoomId,
        after: Number,
        came: Number,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError>;

    /// The same, for a client that may have its cursor from any node, if it is plain that it can go on from
    /// there ([`Reads::serves`]) and that the page is read in no time. `None`: that has to be looked at.
    fn page_at_once(
        &self,
        room: RoomId,
        after: Number,
        limit: usize,
    ) -> Result<Option<Vec<Row>>, ReadError>;

    /// The newest `limit` rows of the delivery log, ascending; with `before_ms` of those written
    /// before that time (unix milliseconds).
    fn page_newest(
        &self,
        room: RoomId,
        limit: usize,
        before_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError>;

    /// The newest `limit` rows of the delivery log below a number, ascending.
    fn page_below(&self, room: RoomId, limit: usize, below: Number) -> Result<Vec<Row>, ReadError>;

    /// The message of this id, under the number it was delivered with here.
    fn by_message(&self, room: RoomId, message: MessageId) -> Result<Option<Row>, ReadError>;

    /// The message that was ever given this number, under the number it was delivered with here.
    fn by_number(&self, room: RoomId, number: Number) -> Result<Option<Row>, ReadError>;

    /// The oldest `limit` things that happened in a room after a position, in the order of positions: messages that were
    /// delivered here and are still kept, and acts of tasks that count. It may look at as many entries as there are.
    fn past(
        &self,
        room: RoomId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Past>, ReadError>;

    /// The entry at a place, if it was delivered here.
    fn row_at(&self, room: RoomId, at: LocalRef) -> Result<Option<Row>, ReadError>;

    /// The messages that are wanted, as far as one page goes, and as the searcher sees them.
    fn search(&self, wanted: &Wanted, by: Searcher<'_>) -> Result<FoundRows, ReadError>;

    /// The highest number delivered here; [`Number::ZERO`] in an empty room.
    fn tip(&self, room: RoomId) -> Result<Number, ReadError>;

    /// Messages that a cursor of another node has not proven seen, ascending, each under its first number
    /// above the cursor.
    fn roam(&self, room: RoomId, cursor: Number, limit: usize) -> Result<Roam, ReadError>;

    /// The oldest items of an agent's inbox above a place.
    fn inbox(&self, agent: &str, after: u64, limit: usize) -> Result<InboxItems, ReadError>;

    /// How far the agent has confirmed its inbox. `None`: it has none.
    fn inbox_mark(&self, agent: &str) -> Result<Option<u64>, ReadError>;

    /// Rows that were kept under names that begin so ([`Command::Keep`]): names and values, ascending.
    fn kept(&self, prefix: &[u8]) -> Result<Vec<Kept>, ReadError>;

    /// The profile of an agent, as far as the key that owns its id has said it.
    fn profile(&self, agent: &str) -> Result<FoundProfile, ReadError>;

    /// The facts of a room's threads, as one key has written them.
    fn threads(&self, room: RoomId, key: KeyPrint) -> Result<Vec<ThreadFact>, ReadError>;

    /// The details of rooms, one for each, in their order, as the key that made each has said them; with their settings or without.
    fn details(&self, rooms: &[RoomId], settings: bool) -> Result<Vec<Details>, ReadError>;

    /// The files of a room, by path, as the key that made it says.
    fn files(&self, room: RoomId) -> Result<Vec<FileView>, ReadError>;

    /// One of them.
    fn file(&self, room: RoomId, path: &str) -> Result<Option<FoundFile>, ReadError>;

    /// States of files of a room that newer ones have replaced, as far as they are here: by path, the latest first.
    fn replaced_files(&self, room: RoomId) -> Result<Vec<ReplacedFile>, ReadError>;

    /// The `nth` one of a path, and its bytes if they are here.
    fn replaced_file(
        &self,
        room: RoomId,
        path: &str,
        nth: usize,
    ) -> Result<Option<FoundReplaced>, ReadError>;

    /// The files of an agent, by name, as a key says whose own records are in the place of this room.
    fn agent_files(
        &self,
        place: RoomId,
        key: KeyPrint,
        agent: &str,
    ) -> Result<Vec<AgentFile>, ReadError>;

    /// One of them, of an agent and a name.
    fn agent_file(
        &self,
        place: RoomId,
        key: KeyPrint,
        named: (&str, &str),
    ) -> Result<Option<FoundAgentFile>, ReadError>;

    /// Jobs of a schedule, which is in a direct room of a key with itself.
    fn jobs(&self, room: RoomId, wanted: WantedJobs) -> Result<Vec<JobView>, ReadError>;

    /// Runs of its jobs.
    fn runs(&self, room: RoomId, wanted: WantedRuns) -> Result<Vec<RunView>, ReadError>;

    /// Whether records of accounts have changed since a mark. It takes no time.
    fn has_record_news(&self, after: Mark) -> bool;

    /// Records of accounts that have changed since a mark.
    fn record_news(&self, follow: &FollowRecords) -> Result<RecordNews, ReadError>;

    /// A record of an account, or its deletion.
    fn record(&self, get: &GetRecord) -> Result<Option<RecordView>, ReadError>;

    /// Whether a key's word about an agent shows: it owns the id, and has not retired the agent.
    fn speaks_for(&self, key: KeyPrint, agent: &str) -> bool;

    /// Agents that have a profile, attached or not: of very many some.
    fn described(&self, limit: usize) -> Result<BTreeSet<AgentId>, ReadError> {
        let (mut found, mut after) = (BTreeSet::new(), None);
        for _ in 0..limits::DESCRIBED_PAGES_MAX {
            let (owner, first, limit_rows) = (None, Vec::new(), limits::DESCRIBED_ROWS);
            let collection = profile::COLLECTION.number;
            let list = ListRecords { collection, owner, first, after, limit: limit_rows };
            let page = self.records(&list)?;
            for record in &page.records {
                let agent = record.body.as_deref().and_then(profile::agent_of);
                found.extend(agent.filter(|agent| self.speaks_for(record.owner, agent)));
                if found.len() >= limit {
                    return Ok(found);
                }
            }
            after = page.records.last().map(|record| (record.id, record.owner));
            if !page.more {
                break;
            }
        }
        Ok(found)
    }

    /// Records of accounts, by id.
    fn records(&self, list: &ListRecords) -> Result<RecordPage, ReadError>;

    /// See [`GetContent`].
    fn content(&self, get: &GetContent) -> Result<Option<Vec<u8>>, ReadError>;

    /// See [`LocateContents`].
    fn content_states(&self, locate: &LocateContents) -> Result<Vec<ContentState>, ReadError>;

    /// Whether a message in a log of this node is its author's, as far as is known now.
    fn proof(&self, node: NodeId, said: &Said) -> Proof;

    /// Whether a client that may have its cursor from any node can go on from it in this node's
    /// delivery log.
    fn serves(&self, room: RoomId, cursor: Number) -> Result<Serves, ReadError>;
}

/// Something that happened in a room.
#[derive(Clone, Debug)]
pub struct Past {
    /// Where it stands among all entries of the room, at every node.
    pub at: Position,
    /// What it is.
    pub what: Happened,
}

/// See [`Past`].
#[derive(Clone, Debug)]
pub enum Happened {
    /// A message.
    Said(Row),
    /// A step of a task.
    Task(Facts, TaskAct),
}

/// Items of an inbox: they name messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxItems {
    /// By place.
    pub items: Vec<InboxPlace>,
    /// So many are behind the last one.
    pub left: usize,
}

/// A place in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxPlace {
    /// Rises.
    pub place: u64,
    /// The room of the message.
    pub room: RoomId,
    /// Its number. [`Number::ZERO`]: see [`InboxPlace::is_notice`].
    pub number: Number,
    /// What the agent is told of a request of its own.
    pub notice: Option<Notice>,
}

impl InboxPlace {
    /// Whether the agent is told something about its own words: of a request, or of a task that has ended without an answer.
    #[must_use]
    pub fn is_notice(&self) -> bool {
        self.number == Number::ZERO
    }
}

/// A profile, and whether the agent is known at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundProfile {
    /// Its fields.
    pub profile: Profile,
    /// A key has claimed the agent's id.
    pub claimed: bool,
    /// The key that owns it has retired the agent.
    pub retired: bool,
}

/// A state of a file that a newer one has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundReplaced {
    /// The state.
    pub file: ReplacedFile,
    /// Its content. `None`: it is not here.
    pub bytes: Option<Vec<u8>>,
}

/// A file of a room.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path and its properties.
    pub view: FileView,
    /// Its bytes. `None`: they have not come here yet, and are asked for.
    pub bytes: Option<Vec<u8>>,
}

impl fmt::Debug for FoundFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoundFile({:?}, here: {})", self.view, self.bytes.is_some())
    }
}

/// A file of an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundAgentFile {
    /// Its name and its properties.
    pub view: AgentFile,
    /// Its bytes. `None`: they have not come here yet, and are asked for.
    pub bytes: Option<Vec<u8>>,
}

impl fmt::Debug for FoundAgentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoundAgentFile({:?}, here: {})", self.view, self.bytes.is_some())
    }
}

/// A name and its value.
pub type Kept = (Vec<u8>, Vec<u8>);

/// Where a cursor is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// [`Reads::page_since`] goes on from it.
    Here,
    /// It would skip something: [`Reads::roam`].
    Foreign,
}

/// A message as it was delivered here.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number here (in [`Reads::roam`]: its first number above the cursor).
    pub number: Number,
    /// Its lowest number anywhere.
    pub canonical: Number,
    /// All its numbers known here, ascending, if it has several.
    pub numbers: Vec<Number>,
    /// Where it is.
    pub at: LocalRef,
    /// Whose log it is in.
    pub log: LogId,
    /// Its id.
    pub message: MessageId,
    /// Clock, wall time, kind.
    pub facts: Facts,
    /// The content. `None`: no longer kept, or of a kind that this version does not know.
    pub said: Option<Said>,
    /// Whether it is its author's, as far as is known now.
    pub proof: Proof,
    /// Of a request in a direct room: the fate of it, as far as is known now.
    pub fate: Option<Delivery>,
}

impl Row {
    /// Whether it was taken back from this agent before that had it: others than its author are not to get it.
    pub(crate) fn is_kept_from(&self, agent: Option<&str>) -> bool {
        let by = self.said.as_ref().map(|said| &*said.agent);
        self.fate.as_ref().is_some_and(Delivery::is_withdrawn) && (by.is_none() || by != agent)
    }

    /// Whether somebody who looks through what was said is shown it: what was taken back, or is not handed over, is its
    /// author's alone. `facts`: of its room.
    pub(crate) fn is_shown_to(
        &self,
        agent: Option<&str>,
        facts: impl FnOnce() -> Option<RoomFacts>,
    ) -> bool {
        let Some(said) = &self.said else { return false };
        let is_own = agent == Some(&*said.agent);
        let is_handed_over = || facts().is_some_and(|facts| facts.withheld(&said.agent).is_none());
        !self.is_kept_from(agent) && (is_own || is_handed_over())
    }
}

/// Messages for a client that came from another node.
#[derive(Clone, Debug, Default)]
pub struct Roam {
    /// Messages that can be served now.
    pub rows: Vec<Row>,
    /// There is more than the limit allowed: it is asked for from the last row's number.
    pub more: bool,
    /// There is also an entry whose first number above the cursor is not passed here yet, and that live
    /// delivery will not bring, for it was delivered here before. To be read again, from the same
    /// cursor, before live delivery goes on.
    pub later: bool,
    /// Entries without a number above the cursor, and the number under which each was delivered here.
    pub unproven: Vec<(LocalRef, Option<Number>)>,
    /// `unproven` may have to be numbered, or nothing is known of the cursor's era: ask with
    /// [`Command::Roam`], then read again.
    pub needs_claim: bool,
}

/// The store cannot be read. Clones are the same failure.
#[derive(Clone, Debug, thiserror::Error)]
#[error("read the store")]
pub struct ReadError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for ReadError {
    fn eq(&self, other: &ReadError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ReadError {}

impl ReadError {
    /// From an error of the store.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ReadError {
        ReadError(source.into().into())
    }
}

//! News for clients, and how a dialect writes it.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use mesh::{
    Proof,
    api::{
        agenda::{LeaderGone, TaskChange, TaskView, VoteResult, VoteView},
        approval::ApprovalView,
        command::{AgentView, RoomView, Speech},
        delivery::{Delivery, Stage},
        event::{Delivered, TurnReason},
        once::OnceLost,
    },
    name::{
        id::{AgentId, EntryRef, MessageId, NodeId, RoomId},
        number::Number,
    },
    records::{members::Member, news::RoomNote},
    wire::{
        entry::{Facts, Said},
        kinds::{CHAT, DECISION, THINKING},
        piece::Piece,
    },
};

use crate::backend::Row;

/// A frame without a byte: the transport's own way to ask whether the client is there. A WebSocket has one; lines have none,
/// and nothing is written to them. For [`Seat::reply`](crate::session::seat::Seat::reply).
pub const PING: Bytes = Bytes::new();

/// News for clients.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Event {
    /// Somebody said something in a room of the reader.
    Said(Message),
    /// A message mentions the reader, perhaps in a room that it is not in.
    Mentioned(Message),
    /// Somebody joined a room of the reader.
    Joined { room: RoomId, agent: AgentId, name: Arc<str>, reconnected: bool },
    /// Somebody left a room of the reader.
    Left { room: RoomId, agent: AgentId },
    /// Somebody else should speak.
    Turn { room: RoomId, holder: Option<AgentId>, order: Arc<[AgentId]>, reason: TurnReason },
    /// Somebody types, or does not any more.
    Typing { room: RoomId, agent: AgentId, name: Arc<str>, typing: bool },
    /// An agent's status has changed.
    Presence(Arc<AgentView>),
    /// A room that the reader may see is there. `own`: the reader's key made it. `to`: in a direct room the reader, so that
    /// it is told of the other agent.
    RoomOpened { room: Arc<RoomView>, own: bool, to: Option<AgentId> },
    /// An ephemeral room has ended.
    RoomClosed { room: RoomId },
    /// Others are on the list of a room than before. To nobody but those who overhear.
    MembersChanged { room: RoomId, name: Arc<str>, came: Vec<Member>, gone: Vec<Member> },
    /// Records say something else of a room than before. To nobody but those who overhear.
    Recorded { room: RoomId, notes: Arc<[RoomNote]> },
    /// A vote was opened.
    VoteOpened(Arc<VoteView>),
    /// A vote is over. Once for each.
    VoteEnded(Arc<VoteResult>),
    /// An election has begun.
    ElectionStarted { room: RoomId, candidates: Arc<[AgentId]>, by: AgentId },
    /// A room has a leader.
    LeaderElected { room: RoomId, agent: AgentId, name: Arc<str> },
    /// A room has no leader any more, or got none.
    LeaderCleared { room: RoomId, why: LeaderGone },
    /// A task was made.
    TaskMade(Arc<TaskView>),
    /// A task was changed.
    TaskChanged(Arc<TaskView>, Arc<TaskChange>),
    /// A task was deleted, by an agent.
    TaskDeleted(Arc<TaskView>, AgentId),
    /// The reader was granted something that another one has now.
    OnceLost { room: RoomId, lost: Arc<OnceLost> },
    /// An agent asks whether it may do something. Its message says so, too.
    ApprovalAsked(Arc<ApprovalView>),
    /// It is decided; or another decision stands now, after a split.
    ApprovalDecided(Arc<ApprovalView>),
    /// The same, to the agent that has asked.
    MayOrMayNot(Arc<ApprovalView>),
    /// A request in a direct room of the reader has come further, as `to`, the agent that is asked, or its author's node says.
    Fate { room: RoomId, request: MessageId, to: AgentId, now: Delivery },
    /// An agent writes an answer in a room of the reader, which has asked for such news.
    Piece { room: RoomId, name: Arc<str>, piece: Arc<Piece> },
    /// News of those who look on and have no seat, to members at this node.
    Audience { room: RoomId, news: Arc<Audience> },
    /// The node looks whether the client is there.
    Heartbeat,
    /// The client's key was revoked: the connection ends.
    KeyRevoked,
    /// The node has as many connections as it takes: the connection ends before it began.
    TooManyConnections,
}

/// Somebody looks on in a room: no agent of the mesh, and nobody whom other nodes hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Onlooking {
    /// An id, drawn for as long as it is there.
    pub id: [u8; 16],
    /// In its own words.
    pub name: Arc<str>,
    /// It has shown a key.
    pub has_key: bool,
}

/// News of those who look on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Audience {
    /// One of them says something. It is no message: it has an id, and is kept nowhere.
    Says { by: Onlooking, id: [u8; 16], text: Arc<str>, wall_ms: u64 },
    /// One has come. Counts of this node: of now, the highest of today, all of today, and as many as may be there.
    Came { who: Onlooking, now: usize, peak: usize, today: usize, most: u64, wall_ms: u64 },
}

/// A message that was delivered here. Cheap to clone, but for its numbers, of which nearly all have one.
#[derive(Clone, Debug)]
pub struct Message {
    /// Where it was said.
    pub room: RoomId,
    /// Its number here.
    pub number: Number,
    /// Its lowest number anywhere.
    pub canonical: Number,
    /// All its numbers that are known here, if it has several and was read from the store.
    pub numbers: Vec<Number>,
    /// Its id.
    pub message: MessageId,
    /// Of which kind it is.
    pub speech: Speech,
    /// When it was written, by the clock of `by`. Unix milliseconds.
    pub wall_ms: u64,
    /// The node that its author was attached to: it wrote the message into its log.
    pub by: NodeId,
    /// The author and the content.
    pub said: Arc<Said>,
    /// Whether it is its author's, as far as was known when it was read or told.
    pub proof: Proof,
    /// Its entry.
    pub entry: EntryRef,
    /// Of a request in a direct room that was read: what has become of it.
    pub fate: Option<Delivery>,
}

impl Message {
    /// Whether it asks this agent for something, and nobody says yet that the agent was given it.
    #[must_use]
    pub fn is_to_be_handed_to(&self, agent: &str) -> bool {
        let asks = self.said.conversation.is_some_and(|place| place.expects_reply);
        let is_given = self.fate.as_ref().is_some_and(|fate| fate.stage == Stage::Delivered);
        asks && *self.said.agent != *agent && !is_given
    }

    /// `None` if it is of a kind that this version does not know.
    pub(crate) fn delivered(
        room: RoomId,
        event: &Delivered,
        said: Arc<Said>,
        proof: Proof,
    ) -> Option<Message> {
        Some(Message {
            room,
            number: event.number,
            canonical: event.canonical.unwrap_or(event.number),
            numbers: Vec::new(),
            message: event.message,
            speech: speech(&event.facts)?,
            wall_ms: event.facts.wall_ms,
            by: event.log.author,
            said,
            proof,
            entry: EntryRef { log: event.log, seq: event.at.seq },
            fate: None,
        })
    }

    /// `None` if its content is not there, or it is of a kind that this version does not know.
    pub(crate) fn read(room: RoomId, row: Row) -> Option<Message> {
        Some(Message {
            room,
            number: row.number,
            canonical: row.canonical,
            numbers: row.numbers,
            message: row.message,
            speech: speech(&row.facts)?,
            wall_ms: row.facts.wall_ms,
            by: row.log.author,
            said: Arc::new(row.said?),
            proof: row.proof,
            entry: EntryRef { log: row.log, seq: row.at.seq },
            fate: row.fate,
        })
    }

    /// Whether its author is told of it, too: of decisions.
    pub(crate) fn reaches_its_author(&self) -> bool {
        match self.speech {
            Speech::Decision => true,
            Speech::Chat | Speech::Thinking => false,
        }
    }
}

fn speech(facts: &Facts) -> Option<Speech> {
    match facts.kind {
        CHAT => Some(Speech::Chat),
        THINKING => Some(Speech::Thinking),
        DECISION => Some(Speech::Decision),
        _ => None,
    }
}

/// How the readers of a dialect are told of events. Two voices are the same if they are one object: frames that are written
/// for one connection are shared by all that have its voice. So a dialect whose clients choose a form has a voice for each form.
pub trait Voice: fmt::Debug + Send + Sync + 'static {
    /// The frames of an event. None: clients of this dialect are not told. Each is one line, without its newline.
    fn frames(&self, event: &Event) -> Frames;

    /// Whether its clients get frames of their own of such an event: numbered for each, or not all. Then
    /// [`Recipient::admits`] and
    /// [`Recipient::stamp`] are asked for each that leaves. Such events are held
    /// in memory with their frames.
    fn is_personal(&self, _: &Event) -> bool {
        false
    }

    /// The kind that a message has in this dialect, for filters of subscriptions.
    fn kind(&self, message: &Message) -> Option<String>;

    /// The name of the dialect, for people. `None`: it is nobody's.
    fn dialect(&self) -> Option<&'static str> {
        None
    }

    /// The body of a post to the webhook of a subscription of this id. `None`: nothing is posted.
    fn letter(&self, subscription: &str, message: &Message) -> Option<Bytes>;
}

/// Of those that are told of no events: they ask.
#[derive(Debug)]
pub struct Mute;

impl Voice for Mute {
    fn frames(&self, _: &Event) -> Frames {
        Frames::none()
    }

    fn kind(&self, _: &Message) -> Option<String> {
        None
    }

    fn letter(&self, _: &str, _: &Message) -> Option<Bytes> {
        None
    }
}

/// One client, as far as it has a say in the events that it is told of: a conversation of a dialect.
pub trait Recipient {
    /// Whether the client is told of an event that has a frame. Asked in a [personal](Voice::is_personal) voice alone, when
    /// the event is about to leave: once for each, in the order in which they leave.
    fn admits(&self, _: &Event) -> bool {
        true
    }

    /// A frame of an event that was admitted, as this client gets it: with a number of its own, say. Asked as
    /// [`admits`](Recipient::admits) is. A frame that the client is too slow for is not numbered.
    fn stamp(&mut self, frame: Bytes) -> Bytes {
        frame
    }
}

/// The frames of one event: mostly one. They stay together. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Frames(List);

#[derive(Clone, Debug, Default)]
enum List {
    #[default]
    None,
    One(Bytes),
    Several(Arc<[Bytes]>),
}

impl From<Bytes> for Frames {
    fn from(frame: Bytes) -> Frames {
        Frames(List::One(frame))
    }
}

impl FromIterator<Bytes> for Frames {
    fn from_iter<I: IntoIterator<Item = Bytes>>(frames: I) -> Frames {
        let mut frames = frames.into_iter();
        Frames(match (frames.next(), frames.next()) {
            (None, _) => List::None,
            (Some(one), None) => List::One(one),
            (Some(one), Some(two)) => List::Several([one, two].into_iter().chain(frames).collect()),
        })
    }
}

impl Frames {
    /// No frame: the client is not told.
    #[must_use]
    pub fn none() -> Frames {
        Frames::default()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// In the order in which they are written.
    #[must_use]
    pub fn as_slice(&self) -> &[Bytes] {
        match &self.0 {
            List::None => &[],
            List::One(frame) => std::slice::from_ref(frame),
            List::Several(frames) => frames,
        }
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.as_slice().iter().map(Bytes::len).sum()
    }

    /// Each in another form.
    fn map(self, mut form: impl FnMut(Bytes) -> Bytes) -> Frames {
        match self.0 {
            List::None => Frames::none(),
            List::One(frame) => form(frame).into(),
            List::Several(frames) => frames.iter().cloned().map(form).collect(),
        }
    }
}

/// An event in a voice, for one reader.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    frames: Frames,
    /// The event, if the reader's conversation has a say in the fate of it.
    personal: Option<Arc<Told>>,
}

impl Rendered {
    /// A frame that is the same for everybody.
    pub(crate) fn plain(frames: Frames) -> Rendered {
        Rendered { frames, personal: None }
    }

    /// An event that one reader alone is told of.
    pub(crate) fn new(event: Event, voice: &Arc<dyn Voice>) -> Option<Rendered> {
        let frames = voice.frames(&event);
        let personal = voice.is_personal(&event).then(|| Arc::new(Told::new(event)));
        (!frames.is_empty()).then_some(Rendered { frames, personal })
    }

    pub(crate) fn frames(&self) -> &[Bytes] {
        self.frames.as_slice()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frames.bytes()
    }

    pub(crate) fn is_personal(&self) -> bool {
        self.personal.is_some()
    }

    /// As the reader's conversation has it, once. It may have no frames then.
    pub(crate) fn personalize(&mut self, recipient: &mut dyn Recipient) {
        let Some(told) = self.personal.take() else { return };
        let frames = std::mem::take(&mut self.frames);
        if recipient.admits(&told.event) {
            self.frames = frames.map(|frame| recipient.stamp(frame));
        }
    }
}

/// An event and the frames that were made of it: one list for each voice.
#[derive(Debug)]
pub(crate) struct Told {
    event: Event,
    /// In the voice that asked first: nearly always the only one.
    first: OnceLock<Written>,
    others: Mutex<Vec<Written>>,
}

#[derive(Debug)]
struct Written {
    voice: Arc<dyn Voice>,
    frames: Frames,
}

impl Told {
    pub(crate) fn new(event: Event) -> Told {
        Told { event, first: OnceLock::new(), others: Mutex::default() }
    }

    /// For a reader with this voice. `None`: it is not told.
    pub(crate) fn rendered(self: &Arc<Told>, voice: &Arc<dyn Voice>) -> Option<Rendered> {
        let frames = self.frames(voice);
        let personal = voice.is_personal(&self.event).then(|| self.clone());
        (!frames.is_empty()).then_some(Rendered { frames, personal })
    }

    /// The frames in a voice, made when they are asked for first.
    pub(crate) fn frames(&self, voice: &Arc<dyn Voice>) -> Frames {
        let first = self.first.get_or_init(|| self.write(voice));
        if Arc::ptr_eq(&first.voice, voice) {
            return first.frames.clone();
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = others.iter().find(|written| Arc::ptr_eq(&written.voice, voice)) {
            return written.frames.clone();
        }
        let written = self.write(voice);
        let frames = written.frames.clone();
        others.push(written);
        frames
    }

    fn write(&self, voice: &Arc<dyn Voice>) -> Written {
        Written { voice: voice.clone(), frames: voice.frames(&self.event) }
    }
}

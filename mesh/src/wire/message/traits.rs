//! The table of messages. A new message is a row here, and nothing compiles before it has one.

use super::{BadMessage, Message, Post};
use crate::limits::{
    ACCOUNT_RECORD_BYTES_MAX, ASK_ENTRIES_MAX, AWAITED_ROOMS_MAX, BARRIER_HEADS_MAX,
    BARRIER_ROOMS_MAX, BODY_BYTES_MAX, BUCKETS, CARRIED_AT_ONCE_MAX, CARRIED_BYTES_MAX,
    CONTENTS_ASKED_MAX, COPIES_NAMED_MAX, DIGEST_ROOMS_MAX, EXPELLED_NAMED_MAX, FRAME_BYTES_MAX,
    GROUPS_FOLLOWED_MAX, LIVES_ASKED_MAX, LOGS_PER_ROOM_MAX, NODES_MAX, PIECE_BODY_BYTES_MAX,
    RECEIPT_AGENTS_MAX, RECORD_BUCKETS, RECORD_COLLECTIONS_MAX, RECORD_HEADS_MAX,
    RECORDS_GIVEN_MAX, RECORDS_IN_MESSAGE_MAX, SPANS_MAX, VERSION_BYTES_MAX,
};
use crate::wire::{
    carry::{Carrying, Parcel},
    comparing::Step,
    contents::{SentContents, WantedContents},
    copies::{AgentState, Copied},
};

/// The subject of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Entries themselves.
    Entries,
    /// The entries that a node has.
    Holdings,
    /// Something that the sender lacks.
    Wants,
    /// Agents, and where they are.
    Rosters,
    /// Nodes that live.
    Life,
    /// Rooms that another node is to sequence.
    Handover,
    /// Nodes that belong to the mesh, and the secret of its connections.
    Membership,
    /// Messages that others hold, as they say when they are asked.
    Receipts,
    /// Records, and which ones a node has.
    Records,
    /// Answers as they are written.
    Streams,
    /// Entries that members carry for others.
    Carrying,
}

/// How a message may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By gossip, too. The peer that passes gossip on has not said it: a statement carries the signature of
    /// its author, and a question is answered to all.
    Gossip,
    /// Over the link of the peer that says it, whose word it is.
    Link,
}

/// Whether a message asks for an answer, which costs the receiver more than the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It asks for none that has to be looked for.
    None,
    /// The engine knows it.
    FromEngine,
    /// It is read from the store.
    FromStore,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// For logs and metrics.
    pub name: &'static str,
    /// Its subject.
    pub class: Class,
    /// How it may come.
    pub way: Way,
    /// Whether it asks for an answer.
    pub answer: Answer,
    /// Length and bound of the longest list in it.
    list: (usize, usize),
}

impl Traits {
    const fn of(name: &'static str, class: Class) -> Traits {
        Traits { name, class, way: Way::Link, answer: Answer::None, list: (0, 0) }
    }

    const fn gossiped(self) -> Traits {
        Traits { way: Way::Gossip, ..self }
    }

    const fn asks(self, answer: Answer) -> Traits {
        Traits { answer, ..self }
    }

    const fn with(self, length: usize, max: usize) -> Traits {
        Traits { list: (length, max), ..self }
    }
}

/// A message that names rooms whose numbers another node is to give.
const fn of_posts(name: &'static str, posts: &[Post]) -> Traits {
    Traits::of(name, Class::Handover).with(posts.len(), DIGEST_ROOMS_MAX)
}

/// A message that names messages of which copies are wanted, or are there.
const fn of_copies(name: &'static str, copies: &[Copied]) -> Traits {
    Traits::of(name, Class::Receipts).with(copies.len(), COPIES_NAMED_MAX)
}

/// A message that names agents that have got a message.
const fn of_agents(name: &'static str, agents: &[AgentState]) -> Traits {
    Traits::of(name, Class::Receipts).with(agents.len(), RECEIPT_AGENTS_MAX)
}

impl<R> Message<R> {
    /// Its row of the table.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table: one row for each message")]
    pub fn traits(&self) -> Traits {
        use Answer::{FromEngine, FromStore};
        use Class::{Entries, Holdings, Life, Membership, Receipts, Records, Rosters, Wants};
        match self {
            Message::Runs(runs) => {
                Traits::of("runs", Entries).gossiped().with(runs.len(), SPANS_MAX)
            }
            Message::Spans { runs, bodies, .. } => {
                Traits::of("spans", Entries).with(runs.len().max(bodies.len()), FRAME_BYTES_MAX)
            }
            Message::WantBodies { at, .. } => {
                Traits::of("want_bodies", Wants).asks(FromStore).with(at.len(), SPANS_MAX)
            }
            Message::Want { spans, .. } => {
                Traits::of("want", Wants).asks(FromStore).with(spans.len(), SPANS_MAX)
            }
            Message::Have { heads, answer, .. } => {
                let answer = if *answer { FromEngine } else { Answer::None };
                Traits::of("have", Holdings).asks(answer).with(heads.len(), LOGS_PER_ROOM_MAX)
            }
            Message::Buckets(buckets) => {
                let wrong = buckets.len().abs_diff(BUCKETS);
                Traits::of("buckets", Holdings).asks(FromEngine).with(wrong, 0)
            }
            Message::Digests(rooms) => {
                Traits::of("digests", Holdings).asks(FromEngine).with(rooms.len(), DIGEST_ROOMS_MAX)
            }
            Message::Beacon(_) => Traits::of("beacon", Life).gossiped(),
            Message::Roster(_) => Traits::of("roster", Rosters).gossiped(),
            Message::WantRoster { .. } => {
                Traits::of("want_roster", Wants).gossiped().asks(FromEngine)
            }
            Message::Ask { spans, .. } => Traits::of("ask", Wants)
                .gossiped()
                .asks(FromEngine)
                .with(spans.len(), ASK_ENTRIES_MAX),
            Message::Probe { .. } => Traits::of("probe", Wants).asks(FromEngine),
            Message::Call { .. } => Traits::of("call", Life).gossiped(),
            Message::Lives { counts, named, .. } => {
                Traits::of("lives", Life).with((counts.len() * 2).max(named.len()), NODES_MAX)
            }
            Message::WantLives(nodes) => {
                Traits::of("want_lives", Wants).asks(FromEngine).with(nodes.len(), LIVES_ASKED_MAX)
            }
            Message::Sighting { .. } => Traits::of("sighting", Life),
            Message::Offer(posts) => of_posts("offer", posts).asks(FromEngine),
            Message::Accept(posts) => of_posts("accept", posts),
            Message::Taken(posts) => of_posts("taken", posts),
            Message::Fork(..) => Traits::of("fork", Entries).gossiped(),
            Message::Parted(_) => Traits::of("parted", Membership),
            Message::Secret(handed) => {
                let without = handed.value.secret.without().len();
                Traits::of("secret", Membership).with(without, EXPELLED_NAMED_MAX)
            }
            // A peer with an older secret is given the newest, signed.
            Message::About(about) => Traits::of("about", Membership)
                .asks(FromEngine)
                .with(about.value.version.len(), VERSION_BYTES_MAX),
            Message::Follows(keys) => {
                Traits::of("follows", Holdings).with(keys.len(), GROUPS_FOLLOWED_MAX)
            }
            Message::AskFrontier { rooms, .. } => Traits::of("ask_frontier", Wants)
                .asks(FromEngine)
                .with(rooms.len(), BARRIER_ROOMS_MAX),
            Message::Frontier { rooms, .. } => {
                Traits::of("frontier", Holdings).with(rooms.len(), BARRIER_ROOMS_MAX)
            }
            Message::AskCopies { copies, .. } => of_copies("ask_copies", copies).asks(FromStore),
            Message::Copies { copies, .. } => of_copies("copies", copies),
            Message::AskReceipt { .. } => Traits::of("ask_receipt", Receipts).asks(FromStore),
            Message::Receipt { agents, .. } => of_agents("receipt", agents),
            Message::Awaits(rooms) => {
                Traits::of("awaits", Class::Streams).with(rooms.len(), AWAITED_ROOMS_MAX)
            }
            Message::Piece(piece) => {
                Traits::of("piece", Class::Streams).with(piece.body.len(), PIECE_BODY_BYTES_MAX)
            }
            Message::Records(records) => Traits::of("records", Records)
                .gossiped()
                .with(records.len(), RECORDS_IN_MESSAGE_MAX),
            Message::Comparing(comparing) => of_comparing(&comparing.step),
            Message::WantContents(names) | Message::HaveContents(names) => of_wanted(names),
            Message::Contents(sent) => of_sent(sent),
            Message::WantReplaced(_) => Traits::of("want_replaced", Records).asks(FromStore),
            Message::Replaced(sent) => {
                Traits::of("replaced", Records).with(sent.states.len(), RECORDS_IN_MESSAGE_MAX)
            }
            Message::Carrying(carrying) => of_carrying(carrying),
            Message::Parcel(parcel) => {
                // It is answered with all heads of the room.
                let parcels = Traits::of("parcel", Class::Carrying).asks(FromEngine);
                parcels.with(parcel.length(), CARRIED_AT_ONCE_MAX)
            }
        }
    }

    /// Whether it travels by gossip, too.
    #[must_use]
    pub fn may_be_gossiped(&self) -> bool {
        self.traits().way == Way::Gossip
    }

    /// Runs that it brings, in their order.
    #[must_use]
    pub fn runs(&self) -> &[R] {
        if let Message::Runs(runs)
        | Message::Spans { runs, .. }
        | Message::Parcel(Parcel { runs, .. }) = self
        {
            return runs;
        }
        if let Message::Fork(_, run) = self { std::slice::from_ref(run) } else { &[] }
    }

    /// Refuses lists that are longer than allowed.
    pub(super) fn check_lengths(&self) -> Result<(), BadMessage> {
        if let Message::Frontier { rooms, .. } = self {
            let heads: usize = rooms.iter().map(|room| room.heads.len()).sum();
            if heads > BARRIER_HEADS_MAX {
                return Err(BadMessage::Length(heads));
            }
        }
        if let Message::Spans { bodies, .. } = self
            && bodies.iter().any(|apart| apart.body.len() > BODY_BYTES_MAX)
        {
            return Err(BadMessage::Length(bodies.len()));
        }
        if let Message::Parcel(parcel) = self
            && parcel.bodies.iter().any(|apart| apart.body.len() > BODY_BYTES_MAX)
        {
            return Err(BadMessage::Length(parcel.bodies.len()));
        }
        if let Message::Records(records) | Message::Parcel(Parcel { records, .. }) = self
            && records.iter().any(|record| record.size() > ACCOUNT_RECORD_BYTES_MAX)
        {
            return Err(BadMessage::Length(records.len()));
        }
        if let Message::Parcel(Parcel { contents, .. }) = self
            && contents.iter().any(|whole| {
                whole.record.size() > ACCOUNT_RECORD_BYTES_MAX
                    || whole.bytes.len() > CARRIED_BYTES_MAX
            })
        {
            return Err(BadMessage::Length(contents.len()));
        }
        let (length, max) = self.traits().list;
        if length > max { Err(BadMessage::Length(length)) } else { Ok(()) }
    }
}

fn of_wanted(wanted: &WantedContents) -> Traits {
    let traits = Traits::of("want_contents", Class::Records).asks(Answer::FromStore);
    traits.with(wanted.keys.len(), CONTENTS_ASKED_MAX)
}

fn of_carrying(carrying: &Carrying) -> Traits {
    let (length, max) = carrying.length();
    let (name, answer) = match carrying {
        Carrying::Please { .. } => ("carry_please", Answer::FromEngine),
        // More is handed over.
        Carrying::Holds { .. } => ("carry_holds", Answer::FromStore),
        Carrying::Offers(_) => ("carry_offers", Answer::FromEngine),
        Carrying::Has { .. } => ("carry_has", Answer::FromStore),
    };
    Traits::of(name, Class::Carrying).asks(answer).with(length, max)
}

fn of_sent(sent: &SentContents) -> Traits {
    let records = sent.contents.len() + sent.lacking.len();
    Traits::of("contents", Class::Records).with(records, CONTENTS_ASKED_MAX)
}

fn of_comparing(step: &Step) -> Traits {
    match step {
        Step::Roots(roots) => Traits::of("record_roots", Class::Records)
            .asks(Answer::FromEngine)
            .with(roots.len(), RECORD_COLLECTIONS_MAX),
        Step::Buckets { buckets, .. } => Traits::of("record_buckets", Class::Records)
            .asks(Answer::FromEngine)
            .with(buckets.len(), usize::from(RECORD_BUCKETS)),
        Step::Heads { parts, .. } => {
            // A part without heads takes a place, too.
            let heads = parts.iter().map(|part| part.heads.len().max(1)).sum();
            Traits::of("record_heads", Class::Records)
                .asks(Answer::FromStore)
                .with(heads, RECORD_HEADS_MAX)
        }
        Step::Want { keys, .. } => Traits::of("want_records", Class::Records)
            .asks(Answer::FromStore)
            .with(keys.len(), RECORDS_GIVEN_MAX),
    }
}

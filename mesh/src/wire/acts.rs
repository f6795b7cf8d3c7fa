//! Acts: steps of votes, elections and tasks as they are written; and, in the directory, of keys.
//!
//! Acts take no numbers and clients do not see them as messages: a fold takes them in (`votes`,
//! `elections`, `tasks`, `keys`). An act names others by [`EntryRef`]; it is accepted only when all it
//! names is here.

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    limits::{KEY_LABEL_BYTES_MAX, KEY_OWNER_BYTES_MAX},
    name::{
        id::{AgentId, EntryRef, Hash, KeyPrint, LogId, MessageId, NodeId, RoomId, sha256},
        identity::Judge,
        key::{KeySecret, ShortKey},
        number::Era,
    },
    wire::{
        cbor::{encode, maybe_holder, maybe_text, text},
        given::TaskMarked,
        signatures::{KeySignature, SignedLog},
        tasks::{CommentKind, TaskDeleted, TaskFacts, TaskFields},
    },
};

pub use super::tasks::TaskStatus;

/// An agent by id and name, as it was when this was written.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Named {
    /// Its id.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// Its name.
    #[n(1)]
    pub name: String,
}

// Votes.

/// A sealed vote, one step of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum VoteAct {
    /// A vote is opened. Its author closes it.
    #[n(0)]
    Opened(#[n(0)] VoteOpened),
    /// A ballot, sealed.
    #[n(1)]
    Cast(#[n(0)] BallotCast),
    /// No more ballots: these count.
    #[n(2)]
    Closed(#[n(0)] VoteClosed),
    /// Ballots that their node opens, after the vote was closed.
    #[n(3)]
    Shown(#[n(0)] BallotsShown),
    /// A vote that had ended elsewhere, as it was shown there. By the founder alone.
    #[n(4)]
    Imported(#[n(0)] VoteImported),
}

/// See [`VoteAct::Opened`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct VoteOpened {
    /// The question.
    #[n(0)]
    pub title: String,
    /// More about it.
    #[n(1)]
    pub description: Option<String>,
    /// At least two.
    #[n(2)]
    pub options: Vec<String>,
    /// The agents that may vote: the members when it was opened.
    #[n(3)]
    pub eligible: Vec<Named>,
    /// The agent that opened it.
    #[cbor(n(4), with = "text")]
    pub created_by: AgentId,
    /// When it closes, even if votes are missing. Unix milliseconds.
    #[n(5)]
    pub closes_ms: Option<u64>,
}

/// See [`VoteAct::Cast`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BallotCast {
    /// The [`VoteOpened`].
    #[n(0)]
    pub vote: EntryRef,
    /// The agent whose ballot it is.
    #[cbor(n(1), with = "text")]
    pub agent: AgentId,
    /// Hash of vote, agent, choice and nonce: reveals nothing before the nonce is known.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub commitment: Hash,
    /// The key in whose name the agent's node speaks, as of [`crate::wire::entry::Said`].
    #[n(3)]
    pub key: Option<KeyPrint>,
}

impl BallotCast {
    /// The commitment to a choice in a vote of a room. All parts but the last have one length each.
    #[must_use]
    pub fn commitment(
        room: RoomId,
        vote: EntryRef,
        agent: &AgentId,
        choice: u32,
        nonce: &[u8; 32],
    ) -> Hash {
        sha256(&[
            b"clawmesh ballot",
            &room.0,
            &vote.log.author.0,
            &vote.log.incarnation.to_be_bytes(),
            &vote.seq.to_be_bytes(),
            &choice.to_be_bytes(),
            nonce,
            agent.as_bytes(),
        ])
    }
}

/// See [`VoteAct::Closed`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct VoteClosed {
    /// The [`VoteOpened`].
    #[n(0)]
    pub vote: EntryRef,
    /// The logs that ballots are in.
    #[n(1)]
    pub logs: Vec<LogId>,
    /// The ballots that count: index into `logs`, and log seq.
    #[n(2)]
    pub ballots: Vec<(u32, u64)>,
}

/// See [`VoteAct::Shown`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BallotsShown {
    /// The [`VoteOpened`].
    #[n(0)]
    pub vote: EntryRef,
    /// Log seq of the [`BallotCast`] in the author's own log, the choice, and the nonce.
    #[n(1)]
    pub ballots: Vec<Shown>,
}

/// One ballot, open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Shown {
    /// Log seq of its [`BallotCast`], in the log that this is in.
    #[n(0)]
    pub seq: u64,
    /// Index of the option.
    #[n(1)]
    pub choice: u32,
    /// The part of the commitment that made it unguessable.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub nonce: [u8; 32],
}

/// See [`VoteAct::Imported`]. When it was opened, the entry's wall time says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct VoteImported {
    /// The question.
    #[n(0)]
    pub title: String,
    /// More about it.
    #[n(1)]
    pub description: Option<String>,
    /// The options.
    #[n(2)]
    pub options: Vec<String>,
    /// The agent that opened it.
    #[cbor(n(3), with = "text")]
    pub created_by: AgentId,
    /// When it was to close. Unix milliseconds.
    #[n(4)]
    pub closes_ms: Option<u64>,
    /// How many could vote.
    #[n(5)]
    pub eligible: u64,
    /// Votes by option.
    #[n(6)]
    pub tally: Vec<u64>,
    /// Its id there.
    #[n(7)]
    pub id: Option<MessageId>,
}

// Elections.

/// An election, one step of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ElectionAct {
    /// It begins. Its author closes it.
    #[n(0)]
    Started(#[n(0)] ElectionStarted),
    /// A node with candidates commits to its nonce.
    #[n(1)]
    Committed {
        /// The [`ElectionStarted`].
        #[n(0)]
        election: EntryRef,
        /// Hash of election, node and nonce.
        #[cbor(n(1), with = "minicbor::bytes")]
        commitment: Hash,
    },
    /// A candidate of the author's node does not stand.
    #[n(2)]
    Declined {
        /// The [`ElectionStarted`].
        #[n(0)]
        election: EntryRef,
        /// The candidate.
        #[cbor(n(1), with = "text")]
        agent: AgentId,
    },
    /// Two seconds are over: these commitments and refusals count.
    #[n(3)]
    Closed {
        /// The [`ElectionStarted`].
        #[n(0)]
        election: EntryRef,
        /// `Committed` entries.
        #[n(1)]
        commitments: Vec<EntryRef>,
        /// `Declined` entries.
        #[n(2)]
        declined: Vec<EntryRef>,
    },
    /// A node opens its nonce: once, for one `Closed`.
    #[n(4)]
    Shown {
        /// The `Closed` entry.
        #[n(0)]
        closed: EntryRef,
        /// The nonce that it had committed to.
        #[cbor(n(1), with = "minicbor::bytes")]
        nonce: [u8; 32],
    },
    /// These nodes did not open in time: they and their candidates drop out.
    #[n(5)]
    Dropped {
        /// The `Closed` entry.
        #[n(0)]
        closed: EntryRef,
        /// The nodes.
        #[n(1)]
        nodes: Vec<NodeId>,
    },
    /// The leader that this election made is one no longer.
    #[n(6)]
    Cleared {
        /// The [`ElectionStarted`].
        #[n(0)]
        election: EntryRef,
    },
}

/// See [`ElectionAct::Started`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ElectionStarted {
    /// One above the highest that its author knows.
    #[n(0)]
    pub term: u64,
    /// The agents that can be elected, and the node each is attached to.
    #[n(1)]
    pub candidates: Vec<Candidate>,
    /// The agent that wanted it.
    #[cbor(n(2), with = "text")]
    pub started_by: AgentId,
}

/// An agent that can be elected.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Candidate {
    /// Its id.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// Its name.
    #[n(1)]
    pub name: String,
    /// Where it is attached.
    #[n(2)]
    pub node: NodeId,
}

// Tasks.

/// A task, one step of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TaskAct {
    /// A task is made.
    #[n(0)]
    Assigned(#[n(0)] TaskAssigned),
    /// Fields of it are set.
    #[n(1)]
    Updated(#[n(0)] TaskUpdated),
    /// The same, if the task is held by the agent that its author thinks: the sequencer decides.
    #[n(2)]
    Claimed(#[n(0)] TaskClaimed),
    /// A sequencer's answer to a claim.
    #[n(3)]
    Granted(#[n(0)] Grant),
    /// Something of a task that one agent gave to another, beside its fields.
    #[n(4)]
    Marked(#[n(0)] TaskMarked),
    /// It is there no more, for ever.
    #[n(5)]
    Deleted(#[n(0)] TaskDeleted),
}

/// See [`TaskAct::Assigned`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskAssigned {
    /// The work.
    #[n(0)]
    pub title: String,
    /// More about it.
    #[n(1)]
    pub description: Option<String>,
    /// The agent that is to do it.
    #[cbor(n(2), with = "maybe_text")]
    pub assignee: Option<AgentId>,
    /// The agent that assigned it.
    #[cbor(n(3), with = "text")]
    pub created_by: AgentId,
    /// The id that it was given elsewhere ([`crate::api::import`]). By the founder alone.
    #[n(4)]
    pub id: Option<MessageId>,
    /// What is true of it from its beginning.
    #[n(5)]
    pub facts: Box<TaskFacts>,
    /// Fields that it begins with, but for its title and description.
    #[n(6)]
    pub fields: Box<TaskFields>,
}

impl TaskAssigned {
    /// A task with nothing but a title.
    #[must_use]
    pub fn of(title: impl Into<String>, created_by: AgentId) -> TaskAssigned {
        TaskAssigned {
            title: title.into(),
            description: None,
            assignee: None,
            created_by,
            id: None,
            facts: Box::default(),
            fields: Box::default(),
        }
    }
}

/// See [`TaskAct::Updated`]. A field that is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskUpdated {
    /// The [`TaskAssigned`].
    #[n(0)]
    pub task: EntryRef,
    /// The acts whose values this replaces, as far as its author knew: others were written at the
    /// same time, elsewhere.
    #[n(1)]
    pub over: Vec<EntryRef>,
    /// How far it is.
    #[n(2)]
    pub status: Option<TaskStatus>,
    /// The agent that is to do it, or nobody.
    #[cbor(n(3), with = "maybe_holder")]
    pub assignee: Option<Option<AgentId>>,
    /// A note, in the words of the agent that updates: a comment, too.
    #[n(4)]
    pub note: Option<String>,
    /// The agent that updates.
    #[cbor(n(5), with = "text")]
    pub by: AgentId,
    /// Of which kind the note is.
    #[n(6)]
    pub kind: CommentKind,
    /// More fields.
    #[n(7)]
    pub fields: Box<TaskFields>,
}

impl TaskUpdated {
    /// An update that sets nothing.
    #[must_use]
    pub fn of(task: EntryRef, by: AgentId) -> TaskUpdated {
        TaskUpdated {
            task,
            over: Vec::new(),
            status: None,
            assignee: None,
            note: None,
            by,
            kind: CommentKind::Note,
            fields: Box::default(),
        }
    }
}

/// See [`TaskAct::Claimed`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TaskClaimed {
    /// Applied if granted. Its `over` is not used.
    #[n(0)]
    pub update: TaskUpdated,
    /// The agent that must hold it.
    #[cbor(n(1), with = "maybe_text")]
    pub if_assignee: Option<AgentId>,
    /// The current era, as far as its author knows: the sequencer of an earlier one must not answer.
    #[n(2)]
    pub era: Era,
    /// The key in whose name the agent's node speaks, as of [`crate::wire::entry::Said`].
    #[n(3)]
    pub key: Option<KeyPrint>,
    /// So far it must be. `None`: as far as it is.
    #[n(4)]
    pub if_status: Option<TaskStatus>,
}

/// See [`TaskAct::Granted`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Grant {
    /// The era whose sequencer answers.
    #[n(0)]
    pub era: Era,
    /// The `Claimed` entry.
    #[n(1)]
    pub claim: EntryRef,
    /// If it is granted: the claim's update, applied here, over what its sequencer knew.
    #[n(2)]
    pub update: Option<TaskUpdated>,
    /// The agent that held the task.
    #[cbor(n(3), with = "maybe_text")]
    pub holder: Option<AgentId>,
    /// As of [`crate::wire::entry::Ordered`].
    #[n(4)]
    pub by: Option<EntryRef>,
    /// It is refused because the task is so far, and that is not where the claim wants it.
    #[n(5)]
    pub status: Option<TaskStatus>,
}

// Keys.

/// In the directory: an API key.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum KeyAct {
    /// A key is valid from now on, on every node that folds this directory.
    #[n(0)]
    Minted(#[n(0)] KeyMinted),
    /// And from now on no longer, for ever.
    #[n(1)]
    Revoked(#[n(0)] KeyPrint),
    /// A voucher: the key was shown at the node in whose log this stands, which can speak for it from now on.
    #[n(2)]
    Shown(#[n(0)] KeySignature),
    /// A key is not valid any more, and all that was its own belongs to another one from now on.
    #[n(3)]
    Replaced(#[n(0)] KeyReplaced),
}

/// See [`KeyAct::Minted`]. Signed by the key itself, so that nobody mints a key that it was not shown, or says
/// anything else of it: [`crate::wire::signatures`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyMinted {
    /// The key, and its signature over the mesh, the node in whose log it stands, and its terms.
    #[n(0)]
    pub by: KeySignature,
    /// What it is for.
    #[n(1)]
    pub terms: KeyTerms,
}

impl KeyMinted {
    /// A key that becomes valid by this node's log, signed.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn sign(key: &KeySecret, log: &SignedLog, terms: KeyTerms) -> Result<KeyMinted, ShortKey> {
        let by = KeySignature::over(key, &minted_text(log, key.print(), &terms))?;
        Ok(KeyMinted { by, terms })
    }

    /// Whether the key has signed it, for this log.
    #[must_use]
    pub fn is_signed_by_its_key(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        self.by.is_over(judge, &minted_text(log, self.key(), &self.terms))
    }

    /// The key, by its fingerprint.
    #[must_use]
    pub fn key(&self) -> KeyPrint {
        self.by.key()
    }
}

fn minted_text(log: &SignedLog, key: KeyPrint, terms: &KeyTerms) -> Vec<u8> {
    [b"clawmesh key".as_slice(), &log.mesh.0, &log.node.0, &key.0, &encode(terms)].concat()
}

/// See [`KeyAct::Replaced`]. Both keys sign: nobody gives away a key that it was not shown, or makes a key the successor
/// of one that it wants nothing from.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyReplaced {
    /// The key that is replaced, and its signature over the mesh, the node in whose log it stands, and both keys.
    #[n(0)]
    pub by: KeySignature,
    /// Its successor, and that one's signature over the same.
    #[n(1)]
    pub successor: KeySignature,
    /// Of a key whose private rooms span the mesh: the secrets that open them, for its successor alone
    /// ([`crate::wire::seal::Inheritance`]).
    #[n(2)]
    pub sealed: Option<ByteVec>,
}

impl KeyReplaced {
    /// A key that is replaced by this node's log, signed by both. `sealed`: see there.
    ///
    /// # Errors
    ///
    /// The text of one is too short for its halves to be shown.
    pub fn sign(
        key: &KeySecret,
        successor: &KeySecret,
        log: &SignedLog,
        sealed: Option<Vec<u8>>,
    ) -> Result<KeyReplaced, ShortKey> {
        let text = replaced_text(log, (key.print(), successor.print()), sealed.as_deref());
        let by = KeySignature::over(key, &text)?;
        let successor = KeySignature::over(successor, &text)?;
        Ok(KeyReplaced { by, successor, sealed: sealed.map(ByteVec::from) })
    }

    /// Whether both keys have signed it, for this log.
    #[must_use]
    pub fn is_signed_by_its_keys(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        let keys = (self.key(), self.successor.key());
        let text = replaced_text(log, keys, self.sealed.as_ref().map(|sealed| sealed.as_slice()));
        self.by.is_over(judge, &text) && self.successor.is_over(judge, &text)
    }

    /// The key that is replaced, by its fingerprint.
    #[must_use]
    pub fn key(&self) -> KeyPrint {
        self.by.key()
    }
}

fn replaced_text(
    log: &SignedLog,
    (key, successor): (KeyPrint, KeyPrint),
    sealed: Option<&[u8]>,
) -> Vec<u8> {
    let (mesh, node) = (&log.mesh.0, &log.node.0);
    let start = [b"clawmesh replaced".as_slice(), mesh, node, &key.0, &successor.0];
    [&start.concat(), sealed.unwrap_or_default()].concat()
}

/// What a minted key may do, for how long, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyTerms {
    /// Its limits.
    #[n(0)]
    pub tier: Tier,
    /// Its operator's name for it: at most [`KEY_LABEL_BYTES_MAX`] bytes.
    #[n(1)]
    pub label: Option<String>,
    /// The only things that it may do. `None`: all that agents can.
    #[n(2)]
    pub scopes: Option<Scopes>,
    /// From then on it is not valid, by each node's own clock. Unix milliseconds.
    #[n(3)]
    pub expires_ms: Option<u64>,
    /// The person or program that it is for, in its operator's words: at most [`KEY_OWNER_BYTES_MAX`] bytes.
    #[n(4)]
    pub owner: Option<String>,
}

impl KeyTerms {
    /// All that agents can, for ever, for anybody.
    #[must_use]
    pub fn of(tier: Tier) -> KeyTerms {
        KeyTerms { tier, label: None, scopes: None, expires_ms: None, owner: None }
    }

    /// Whether they keep to their bounds.
    ///
    /// # Errors
    ///
    /// One does not: the text names it.
    pub fn check(&self) -> Result<(), String> {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        if bytes(&self.label) > KEY_LABEL_BYTES_MAX {
            return Err(format!("label may have {KEY_LABEL_BYTES_MAX} bytes"));
        }
        if bytes(&self.owner) > KEY_OWNER_BYTES_MAX {
            return Err(format!("owner may have {KEY_OWNER_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Whether the key has expired, at this wall time.
    #[must_use]
    pub fn is_over(&self, wall_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| wall_ms >= at)
    }

    /// Whether its agents may decide about approvals.
    #[must_use]
    pub fn may_approve(&self) -> bool {
        self.may_write() || self.scopes.is_some_and(|scopes| scopes.has(Scope::Approvals))
    }

    /// Whether its agents may do more than read.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.scopes.is_none_or(|scopes| scopes.has(Scope::Admin) || scopes.has(Scope::Write))
    }
}

/// Something that a key with scopes may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything, and manage other keys where a dialect has that.
    Admin,
    /// All that agents do.
    Write,
    /// Read.
    Read,
    /// Decide about approvals, where a dialect has those.
    Approvals,
    /// Pair devices, where a dialect has those.
    Pairing,
    /// Taken, and gives nothing.
    Provision,
}

impl Scope {
    /// All there are.
    pub const ALL: [Scope; 6] = [
        Scope::Admin,
        Scope::Write,
        Scope::Read,
        Scope::Approvals,
        Scope::Pairing,
        Scope::Provision,
    ];

    /// Its name, for operators.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Admin => "admin",
            Scope::Write => "write",
            Scope::Read => "read",
            Scope::Approvals => "approvals",
            Scope::Pairing => "pairing",
            Scope::Provision => "provision",
        }
    }

    /// The scope of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }

    fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// A set of scopes: one bit each. Bits that are not known here give nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Scopes(#[n(0)] u64);

impl Scopes {
    /// Whether it is among them.
    #[must_use]
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Those that are known here.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

/// A class of minted keys, by which each node sets limits ([`crate::api::agenda::Tiers`]). Dialects have names for
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Tier {
    /// Keys that anybody may get.
    #[n(0)]
    Low,
    /// Keys that may do more.
    #[n(1)]
    High,
}

impl VoteAct {
    /// The entries that it names.
    pub(super) fn names(&self) -> Vec<EntryRef> {
        match self {
            VoteAct::Opened(_) | VoteAct::Imported(_) => Vec::new(),
            VoteAct::Cast(ballot) => vec![ballot.vote],
            VoteAct::Closed(closed) => {
                let ballots = closed.ballots.iter().filter_map(|(log, seq)| {
                    let log = *closed.logs.get(usize::try_from(*log).ok()?)?;
                    Some(EntryRef { log, seq: *seq })
                });
                ballots.chain([closed.vote]).collect()
            }
            VoteAct::Shown(shown) => vec![shown.vote],
        }
    }
}

impl ElectionAct {
    /// The entries that it names.
    pub(super) fn names(&self) -> Vec<EntryRef> {
        match self {
            ElectionAct::Started(_) => Vec::new(),
            ElectionAct::Committed { election, .. }
            | ElectionAct::Declined { election, .. }
            | ElectionAct::Cleared { election } => vec![*election],
            ElectionAct::Closed { election, commitments, declined } => {
                commitments.iter().chain(declined).chain([election]).copied().collect()
            }
            ElectionAct::Shown { closed, .. } | ElectionAct::Dropped { closed, .. } => {
                vec![*closed]
            }
        }
    }
}

impl TaskUpdated {
    fn names(&self) -> impl Iterator<Item = EntryRef> + '_ {
        self.over.iter().copied().chain([self.task])
    }
}

impl TaskAct {
    /// The entries that it names.
    pub(super) fn names(&self) -> Vec<EntryRef> {
        match self {
            TaskAct::Assigned(_) => Vec::new(),
            TaskAct::Updated(update) => update.names().collect(),
            TaskAct::Claimed(claim) => vec![claim.update.task],
            TaskAct::Granted(grant) => {
                let update = grant.update.iter().flat_map(TaskUpdated::names);
                update.chain([grant.claim]).chain(grant.by).collect()
            }
            TaskAct::Marked(marked) => vec![marked.task],
            TaskAct::Deleted(deleted) => vec![deleted.task],
        }
    }
}

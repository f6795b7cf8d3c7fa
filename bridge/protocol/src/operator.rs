//! The dialect of operators and a running node: one line of JSON each way, over the Unix socket
//! `control.sock` in the node's data directory, which only its owner can open. Not a part of ClawChat.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::object::Agent;

pub mod checkup;
mod finder;
mod mail;
mod ping;
mod stops;
mod tokens;

pub use finder::{Finder, FinderAccount};
pub use mail::{AgentMail, Here, WokenBy};
pub use ping::Pong;
pub use stops::StoppedAgents;
pub use tokens::{HiddenText, KnownToken, NewToken, TokenState, TokenTerms, WantedToken};

/// An operator's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// How the node and its mesh are. → [`Answer::Status`]
    Status,
    /// An invitation for another node. → [`Answer::Ticket`]
    Invite,
    /// One that admits so many nodes, for so long. → [`Answer::Ticket`]
    InviteFor {
        /// How many.
        uses: u32,
        /// For how long, in milliseconds.
        lasts_ms: u64,
    },
    /// Those that this node made. → [`Answer::Invitations`]
    ListInvitations,
    /// One admits nobody any more. → [`Answer::Done`], when it is durable.
    RevokeInvitation {
        /// 16 hex digits.
        id: String,
    },
    /// Read the key file again. → [`Answer::Done`]
    ReloadKey,
    /// → [`Answer::Done`], when it is durable.
    MintKey(WantedKey),
    /// → [`Answer::Keys`]
    ListKeys,
    /// → [`Answer::Done`], when it is durable.
    RevokeKey {
        /// 32 hex digits.
        fingerprint: String,
    },
    /// All that is a key's own belongs to another one from now on, and the first is no longer valid.
    /// → [`Answer::Done`], when it is durable.
    ReplaceKey(Box<WantedSuccessor>),
    /// The successor of a key signs anew what the key has said of its agents and rooms, as far as it is here. After
    /// [`Request::ReplaceKey`], at once. → [`Answer::SignedAnew`], when it is durable.
    SignAnew {
        /// The key that was replaced: 32 hex digits.
        replaced: String,
        /// Its successor's text.
        successor: HiddenText,
    },
    /// A token for the host of an agent. → [`Answer::Token`], when it is durable.
    MintToken(Box<WantedToken>),
    /// Those of this node. → [`Answer::Tokens`]
    ListTokens,
    /// One opens nothing any more. → [`Answer::Done`], when it is durable.
    RevokeToken {
        /// 16 hex digits.
        id: String,
    },
    /// The meaning of a number. → [`Answer::Entry`]
    Entry {
        /// A room's id.
        room_id: String,
        /// Any number.
        seq: u64,
    },
    /// Write a backup into a directory that does not exist. → [`Answer::Progress`], some times, then
    /// [`Answer::Done`], when it is durable.
    Backup {
        /// An absolute path.
        to: std::path::PathBuf,
    },
    /// All nodes that were ever admitted to the mesh. → [`Answer::Members`]
    Members,
    /// All agents of this node, of every key. → [`Answer::Agents`]
    Agents,
    /// How agents of this node are told that something waits for them. → [`Answer::Mail`]
    Mail,
    /// Another node has no part in the mesh any more. → [`Answer::Done`], when it is durable.
    Part {
        /// 64 hex digits.
        node_id: String,
        /// [`PartedHow::Expelled`] or [`PartedHow::Retired`].
        how: PartedHow,
        /// Although others are known to have more of its log.
        force: bool,
    },
    /// The mesh's connections get another secret. → [`Answer::Done`], when it is durable.
    RotateSecret {
        /// Although members are away.
        force: bool,
    },
    /// Set a mark on a session, for agents of this node. → [`Answer::Session`], when it is durable.
    MarkSession(WantedMark),
    /// The index of agents, as this node serves it. → [`Answer::Finder`]
    Finder,
    /// An account of the index is hidden at this node, or shows again. → [`Answer::FinderAccount`], when it is durable.
    HideAccount {
        /// Its username, or 40 hex digits.
        id: String,
        /// Else it shows.
        hidden: bool,
    },
    /// An agent sends nothing until it is let go, or all do. → [`Answer::Done`], when it is durable.
    StopAgents {
        /// Its id; absent = all.
        agent_id: Option<String>,
        /// Else it is let go.
        stop: bool,
    },
    /// Agents that are stopped. → [`Answer::Stops`]
    ListStops,
    /// A round trip to another node. → [`Answer::Pong`]
    Ping {
        /// Its name, its id, or the beginning of that.
        node: String,
    },
    /// This node leaves the mesh for good, and ends. → [`Answer::Left`]
    Leave {
        /// Although something of its own would be lost.
        force: bool,
    },
}

/// The node's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How it is.
    Status(Box<Status>),
    /// How long it took, or why there was no answer.
    Pong(Pong),
    /// Agents that are stopped.
    Stops(Vec<StoppedAgents>),
    /// A secret: its holders are in the mesh.
    Ticket(String),
    /// Keys that were minted, by fingerprint.
    Keys(Vec<MintedKey>),
    /// A token that was made.
    Token(NewToken),
    /// Tokens of this node, the oldest first.
    Tokens(Vec<KnownToken>),
    /// The meaning of a number.
    Entry(Box<Entry>),
    /// How far it is: another answer follows, each in a line.
    Progress {
        /// Rows done.
        rows: u64,
        /// Rows there are.
        of: u64,
    },
    /// Members, by when they were admitted.
    Members(Vec<Member>),
    /// Agents of the node, by when they connected.
    Agents(Vec<Attendee>),
    /// Agents of the node, by id.
    Mail(Vec<AgentMail>),
    /// Invitations that this node made, the oldest first.
    Invitations(Vec<Invitation>),
    /// The session that was meant: its key, or the id of its room.
    Session(String),
    /// The index of agents.
    Finder(Box<Finder>),
    /// The account that was meant.
    FinderAccount(FinderAccount),
    /// The node has left. `heard`: another member has said that it knows.
    Left {
        /// Else the others may have to retire it.
        heard: bool,
    },
    /// Records of a key that was replaced are its successor's word now.
    SignedAnew {
        /// So many.
        signed: usize,
        /// So many are not: the node lacks their content, or its bounds have no room for them.
        left: usize,
    },
    /// It is done.
    Done,
    /// Why not.
    Error(String),
}

/// A mark that an operator wants to be set on a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedMark {
    /// Its key, or the id or name of its room.
    pub session: String,
    /// As this agent says the key. `None`: as every agent of the node does.
    pub agent_id: Option<String>,
    /// The mark.
    pub mark: SessionMark,
}

/// What an operator says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMark {
    /// Whether agents of the node may send there.
    Sending(Sending),
    /// Whether it is listed among sessions that are over.
    Archived(bool),
}

/// Whether agents of a node may send into a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sending {
    /// They may, whatever the rules say.
    Allow,
    /// They may not.
    Deny,
    /// As the rules say.
    Inherit,
}

/// An agent of the node, as its operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attendee {
    /// As clients see it.
    #[serde(flatten)]
    pub agent: Agent,
    /// Names of the rooms that it is in; ids of private ones whose key was not shown here.
    pub rooms: Vec<String>,
    /// Messages and acts of its key within the last minute at this node, of all its agents together.
    pub per_minute: u32,
}

/// A node, and its knowledge of its mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// 64 hex digits.
    pub node_id: String,
    /// Its name for people.
    pub name: String,
    /// 32 hex digits.
    pub mesh_id: String,
    /// It is a relay: it keeps the directory of the mesh and no room, and has no agents.
    #[serde(default)]
    pub relay: bool,
    /// Agents attached to this node.
    pub agents: usize,
    /// Agents of hosts: attached to this node, without a connection.
    #[serde(default)]
    pub hosted: usize,
    /// Calls of them that wait for something.
    #[serde(default)]
    pub waits: u64,
    /// Agents attached to all nodes that are heard.
    pub agents_mesh: usize,
    /// Of the store's files.
    pub store_bytes: u64,
    /// There is no room for them to grow: nothing new is taken.
    #[serde(default)]
    pub disk_full: bool,
    /// Nodes heard of, and addresses where none has answered yet.
    pub peers: Vec<Peer>,
    /// The name of the only node through which others reach this one: without it, this one is alone.
    #[serde(default)]
    pub only_through: Option<String>,
    /// Where everybody who can reach it reads public rooms by HTTP without a key, if that is not loopback.
    #[serde(default)]
    pub read_by_all_at: Option<String>,
    /// The URL of HTTP, such as `https://127.0.0.1:9230`; WebSocket is there, too. `None`: it is off.
    #[serde(default)]
    pub http: Option<String>,
    /// What is wrong with its certificate. `None`: nothing, or there is none.
    #[serde(default)]
    pub certificate: Option<CertificateTrouble>,
    /// A peer has said within the last minute that another node runs with this one's identity.
    #[serde(default)]
    pub runs_twice: bool,
    /// Agents whose hosts are woken by posts.
    #[serde(default)]
    pub woken: Vec<Woken>,
    /// Rooms, the directory left out.
    pub rooms: Vec<Room>,
    /// Counters since the start.
    pub faults: Faults,
    /// Authors of the faults `chain` and `void`, the most first. A few of these come from lost races.
    #[serde(default)]
    pub blamed: Vec<Blamed>,
    /// The fate of this node, if it has no part in the mesh any more.
    #[serde(default)]
    pub parted: Option<Parted>,
    /// Nodes that have signed two histories: nothing more is taken from them.
    pub forked: Vec<String>,
    /// Records of accounts, and their mail.
    #[serde(default)]
    pub index: Index,
}

/// Records of the index of agents that a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// How many, by kind, deleted ones included.
    pub records: BTreeMap<String, usize>,
    /// Bytes of mail of agents whose key was shown to this node.
    pub mail_bytes: u64,
    /// Bytes of mail that it carries for others.
    pub carried_bytes: u64,
    /// Mails whose text is to be here, and is not yet.
    pub mails_missing: usize,
    /// Mails whose text is here, and of which no other node has said that it has it.
    pub mails_alone: usize,
}

/// Clients do not take the node's certificate, or soon will not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateTrouble {
    /// They refuse it already.
    pub refused: bool,
    /// Why.
    pub found: String,
    /// What to do.
    pub advice: String,
}

/// Another node, or an address where none has answered yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// 64 hex digits; `None`: nobody has answered yet.
    pub node_id: Option<String>,
    /// Its name, from its operator.
    pub name: Option<String>,
    /// It is a relay: a member that keeps the directory of the mesh and no room.
    #[serde(default)]
    pub relay: bool,
    /// There is a link.
    pub connected: bool,
    /// The member that carries the link, if there is no direct one: 64 hex digits.
    #[serde(default)]
    pub through: Option<String>,
    /// For how long it has been connected, in milliseconds.
    #[serde(default)]
    pub up_ms: Option<u64>,
    /// Heard by any path.
    pub alive: bool,
    /// `None`: never since the start.
    pub heard_ms_ago: Option<u64>,
    /// Agents attached to it.
    pub agents: usize,
    /// Where it is known to be.
    pub addresses: Vec<String>,
    /// Of the last ping.
    pub rtt_ms: Option<f64>,
    /// Bytes that wait to be sent to it.
    pub queued_bytes: usize,
    /// Bad things it did lately: eight within a minute are too many.
    pub strikes: u32,
    /// All of them since the start.
    #[serde(default)]
    pub strikes_ever: u64,
    /// The last of them.
    #[serde(default)]
    pub fault: Option<String>,
    /// For how long it is refused because of them.
    #[serde(default)]
    pub refused_ms: Option<u64>,
    /// Two nodes were seen to run with its identity within the last minute.
    #[serde(default)]
    pub runs_twice: bool,
    /// Milliseconds by which its clock is ahead of this node's, or below 0 behind. `None`: not known.
    #[serde(default)]
    pub clock_ahead_ms: Option<i64>,
    /// Why it is not connected, or not directly, in words.
    pub last_error: Option<String>,
    /// The same for programs; or [`Trouble::Clock`], with a link.
    #[serde(default)]
    pub trouble: Option<Trouble>,
}

impl Peer {
    /// Its name, or where it is.
    #[must_use]
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.addresses.join(" "))
    }

    /// The node among these that carries the link, if it is not direct: its name, or the first
    /// digits of its id.
    #[must_use]
    pub fn carried_by(&self, all: &[Peer]) -> Option<String> {
        let through = self.through.as_ref()?;
        let relay = all.iter().find(|other| other.node_id.as_ref() == Some(through));
        let short = || through.chars().take(8).collect();
        Some(relay.and_then(|relay| relay.name.clone()).unwrap_or_else(short))
    }

    /// How it is reached, for people.
    #[must_use]
    pub fn link(&self) -> String {
        match (self.connected, self.alive, self.heard_ms_ago) {
            (true, true, _) if self.through.is_some() => "up, carried".to_owned(),
            (true, true, _) => "up".to_owned(),
            (true, false, _) => "up, silent".to_owned(),
            (false, true, _) => "through others".to_owned(),
            (false, false, Some(ms)) => format!("gone for {} s", ms / 1000),
            (false, false, None) => "never seen".to_owned(),
        }
    }
}

/// Why there is no link with a node, or not a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Its name has no address.
    NameNotFound,
    /// No member between the two carries the link.
    NotCarried,
    /// There is no way to its machine.
    Unreachable,
    /// Its machine does not answer.
    TimedOut,
    /// Nobody listens at its port.
    ConnectionRefused,
    /// The connection was closed before a word was said.
    HungUp,
    /// It does not know the mesh's secret: another mesh, or another program.
    WrongSecret,
    /// The mesh's secret has changed since this node was told it.
    OldSecret,
    /// Another node answers there.
    OtherNode,
    /// It runs another version.
    OtherVersion,
    /// It misbehaved, and this node refuses it for a while.
    RefusedHere,
    /// There was a link, and it ended.
    Lost,
    /// There is a link, and its clock and this node's differ by more than 2 s: `clock_ahead_ms`.
    Clock,
    /// None of these.
    Other,
}

/// A room, as the node has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// A UUID.
    pub room_id: String,
    /// Its name.
    pub name: String,
    /// Visible to every key.
    pub public: bool,
    /// `c` of its era: 0 is the home era.
    pub era: u32,
    /// Of its era; `None` in the home era.
    pub lane: Option<u32>,
    /// The node that gives the numbers.
    pub sequencer: String,
    /// The highest number here.
    pub tip: u64,
    /// Entries that are here and have no number yet.
    pub undelivered: usize,
    /// Entries that connected nodes have and this one has not.
    pub behind: u64,
    /// Entries of this node that no other is known to have.
    pub unsent: u64,
    /// Numbers whose content is nowhere.
    pub holes: u64,
}

/// Faults of peers, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Messages that could not be read, or whose seals are wrong.
    pub refused: u64,
    /// Messages dropped because too many were waiting.
    pub dropped: u64,
    /// Messages with entries, pushed by nodes that write much without effect and passed over: they are asked for.
    #[serde(default)]
    pub noise: u64,
    /// Runs that did not continue a log as they claimed.
    pub chain: u64,
    /// Entries whose meaning is void.
    pub void: u64,
    /// Logs found forked.
    pub forks: u64,
    /// Runs dropped because too many were pending.
    pub overflow: u64,
    /// Messages that made no sense where they came.
    pub stray: u64,
}

/// Well-signed but senseless runs, by their signers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// 64 hex digits.
    pub node_id: String,
    /// Runs that did not continue its log as they claimed.
    pub chain: u64,
    /// Entries whose meaning is void.
    pub void: u64,
}

/// The tier of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Less.
    Free,
    /// More.
    Pro,
}

/// A key's public halves, and a signature by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHalves {
    /// Its half that verifies: 64 hex digits.
    pub signer: String,
    /// Its half that others seal to: 64 hex digits.
    pub mailbox: String,
    /// 128 hex digits.
    pub signature: String,
}

/// A key to be replaced by another one: the word of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedSuccessor {
    /// The key, and its signature over mesh, node and both keys.
    pub key: SignedHalves,
    /// Its successor, and the same by that one.
    pub successor: SignedHalves,
    /// The key's voucher for the node: 128 hex digits.
    pub voucher: String,
    /// Of a key whose private rooms span the mesh: the secrets that open them, sealed to the successor, in hex digits.
    pub sealed: Option<String>,
}

/// A key to be minted: its public halves, and its word for the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedKey {
    /// Its half that verifies: 64 hex digits.
    pub signer: String,
    /// Its half that others seal to: 64 hex digits.
    pub mailbox: String,
    /// The signer's, over mesh, node, halves and all that follows but `local`: 128 hex digits.
    pub signature: String,
    /// Its tier.
    pub tier: Tier,
    /// Its name, from the operator.
    pub label: Option<String>,
    /// The only things that it may do: admin, write, read, approvals, pairing, provision. `None`: all that agents can.
    pub scopes: Option<Vec<String>>,
    /// When it expires. Unix milliseconds.
    pub expires_ms: Option<u64>,
    /// The person or program that it is for.
    pub owner: Option<String>,
    /// Valid on this node alone.
    pub local: bool,
}

/// A minted key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintedKey {
    /// 32 hex digits.
    pub fingerprint: String,
    /// Its tier.
    pub tier: Tier,
    /// Its name, from its operator.
    pub label: Option<String>,
    /// The node that minted it: 64 hex digits.
    pub node_id: String,
    /// RFC 3339, UTC.
    pub minted_at: String,
    /// The only things that it may do. Absent: all that agents can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// From then on it is not valid. RFC 3339, UTC. Absent: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The same in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// It has expired, by this node's clock.
    #[serde(default)]
    pub expired: bool,
    /// The person or program that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Not valid any more.
    pub revoked: bool,
    /// The key that has replaced it, and to which belongs by now what was its own. 32 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// Valid on this node alone.
    pub local: bool,
}

/// The meaning of a number at this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A UUID.
    pub room_id: String,
    /// The number that was asked for.
    pub seq: u64,
    /// Whose number it is.
    pub era: Era,
    /// `None`: this node has never heard of a message with this number.
    pub message: Option<Signed>,
}

/// The block that a number is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Era {
    /// 0: the home era.
    pub c: u32,
    /// `None` in the home era.
    pub lane: Option<u32>,
    /// The place in it, from 1.
    pub n: u64,
    /// The node whose lane it is: nobody else can give its numbers. `None`: not known, or the home era.
    pub node_id: Option<String>,
}

/// A message, as its author's node has signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// A UUID.
    pub message_id: String,
    /// The node in whose log it is, under whose seal it came: 64 hex digits.
    pub node_id: String,
    /// That node's name, from its operator.
    pub node_name: Option<String>,
    /// Its place in that log, from 1.
    pub log_seq: u64,
    /// Its Lamport clock.
    pub clock: u64,
    /// The time of that node's clock: RFC 3339, UTC.
    pub timestamp: String,
    /// All numbers that it is known here to have, rising.
    pub numbers: Vec<u64>,
    /// The one under which this node has delivered it.
    pub delivered: Option<u64>,
    /// The agent that said it; `None`: its content is not kept here any more.
    pub agent_id: Option<String>,
    /// Whether another node is known to have it.
    pub elsewhere: bool,
}

/// How a node comes to have no part in the mesh any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartedHow {
    /// Another node shut it out.
    Expelled,
    /// It said so itself.
    Left,
    /// Another node said that it is gone for good.
    Retired,
}

/// A ticket that admits so many nodes, for so long, as the node that made it keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// 16 hex digits.
    pub id: String,
    /// When it was made, in UTC.
    pub made: String,
    /// When it expires, in UTC.
    pub expires: String,
    /// How many nodes it admits.
    pub uses: u32,
    /// How many have come.
    pub used: u32,
    /// Whether it admits any more.
    pub state: InvitationState,
}

/// The state of an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitationState {
    /// It admits more nodes.
    Open,
    /// As many nodes have come as it admits.
    UsedUp,
    /// Its time is over.
    Expired,
    /// By an operator.
    Revoked,
    /// The mesh's secret has changed since it was made: that ends all tickets.
    SecretChanged,
}

/// How a node came into the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joined {
    /// It founded it.
    Founded,
    /// By this invitation of the node that was asked: 16 hex digits.
    Invited(String),
}

/// An agent whose host is woken by posts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woken {
    /// Its id.
    pub agent: String,
    /// How far its host is with what it was told.
    pub state: WokenState,
    /// How often it was told of what waits. `None`: nothing waits, or it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<usize>,
}

/// How far the host of an agent is with what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WokenState {
    /// Nothing waits that the agent has not fetched.
    Nothing,
    /// It was told, and the agent has not fetched it yet.
    Told,
    /// It takes no posts, and is tried again.
    Unreached,
    /// It was told as often as it may be, and the agent has fetched nothing.
    Unread,
}

/// The fate of a node that has no part in the mesh any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parted {
    /// How.
    pub how: PartedHow,
    /// The node that said so: 64 hex digits.
    pub by: String,
    /// When, by that node's clock: RFC 3339, UTC.
    pub at: String,
}

/// A node that was admitted to the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// 64 hex digits.
    pub node_id: String,
    /// Its name for people.
    pub name: String,
    /// When it was admitted, by its own clock: RFC 3339, UTC.
    pub since: String,
    /// It is a relay: it keeps the directory of the mesh and no room.
    pub relay: bool,
    /// Where it gives numbers above the home era.
    pub lane: Option<u32>,
    /// Where it is, seen from here.
    pub state: MemberState,
    /// Which secret of the mesh's connections it has, counted from 0; `None` if it has said nothing since the start
    /// of the node that was asked.
    #[serde(default)]
    pub secret: Option<u64>,
    /// Its clawmeshd's; `None` as of `secret`.
    #[serde(default)]
    pub version: Option<String>,
    /// How it came in; `None`: with a ticket that carries the mesh's secret, or by an invitation of another node.
    #[serde(default)]
    pub joined: Option<Joined>,
    /// `None`: never since the start of the node that was asked, or that node itself.
    pub heard_ms_ago: Option<u64>,
    /// Its fate.
    pub parted: Option<Parted>,
}

/// Where a member is, seen from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It is the node that was asked.
    Here,
    /// There is a link.
    Connected,
    /// Heard through others.
    Heard,
    /// Not heard.
    Away,
    /// It left.
    Left,
    /// It was retired.
    Retired,
    /// It was expelled.
    Expelled,
}

//! How a command can end, and the exit code of each.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use client::address::AddressError;
use client::cursor::CursorError;
use client::error::{CallError, ConnectError};
use client::http::HttpError;
use client::messages::MessagesError;
use protocol::code::Code;
use protocol::value::ApiKey;

use crate::lantern::journal::TooMuch;
use ::lantern::check::Problem;
use ::lantern::verb::Verb;

/// There is nobody to ask.
pub(crate) const NO_NODE: &str =
    "no node can be reached: start one with clawmeshd up, or name one with --url";

/// The command did what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or a message came: exit 0.
    Done,
    /// `wait --idle-timeout` has passed: exit 2.
    Idle,
    /// The peer ended the conversation: exit 3.
    Ended,
    /// The checked envelope is not valid: exit 1.
    Invalid,
    /// The node says no, and the result has said why: exit 1.
    Refused,
    /// No reply came in time: exit 2.
    Unanswered,
    /// A hook's wait has ended with something unread: exit 2, which wakes a host.
    Woken,
    /// The agent chose not to reply: exit 3.
    NoReply,
    /// People said no: exit 3.
    Denied,
    /// Another agent has what was asked for once: exit 4.
    Taken,
    /// `once` has run its command: the exit code of that.
    Ran(u8),
}

impl Outcome {
    /// The exit code that scripts branch on.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Outcome::Done => 0,
            Outcome::Idle | Outcome::Unanswered | Outcome::Woken => 2,
            Outcome::Ended | Outcome::NoReply | Outcome::Denied => 3,
            Outcome::Invalid | Outcome::Refused => 1,
            Outcome::Taken => 4,
            Outcome::Ran(code) => code,
        })
    }
}

/// The command failed: exit 1. Each text is one line that says what to do, where there is something.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No node at the address.
    #[error(
        "{source}: start a node with `clawmeshd up`, or name another with --socket, --tcp or --url"
    )]
    NoNode {
        /// The client's failure.
        source: ConnectError,
    },
    /// The node does not know the key.
    #[error("{source}: give a key of this node with --key or --key-file")]
    KeyRefused {
        /// The node's answer.
        source: ConnectError,
    },
    /// The node refused to register for another reason.
    #[error(transparent)]
    Connect(ConnectError),
    /// The key file cannot be read.
    #[error("no API key in {}: {source}; start a node with `clawmeshd up`, or give --key or --key-file", path.display())]
    KeyFile {
        /// Where it was looked for.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The key file is empty.
    #[error("no API key in {}: the file is empty; give --key or --key-file", path.display())]
    KeyEmpty {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The command of `once` could not be started.
    #[error("cannot run {command}: {source}")]
    NotRun {
        /// It.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// A profile is of an agent that comes back.
    #[error(
        "whose profile? Give an agent's id, or your own with --agent-id (before the command) or CLAWMESH_AGENT_ID"
    )]
    WhoseProfile,
    /// Profiles have no such field.
    #[error(
        "a profile has no field {field:?}: it has name, description, emoji, avatar, provider and model"
    )]
    NoProfileField {
        /// As it was given.
        field: String,
    },
    /// The file with cards cannot be read.
    #[error(
        "no cards in {file}: {source}; give a JSON array of objects with name, text, tags and visibility"
    )]
    CardsFile {
        /// Where it was looked for.
        file: String,
        /// The system's error, or the place where it is no JSON.
        source: io::Error,
    },
    /// The system does not tell the home directory.
    #[error(
        "the home directory is not known: give --socket (or --tcp, --url) and --key-file (or --key)"
    )]
    NoHome,
    /// No room of that id or name.
    #[error("no room `{room}` that this key may see: look at `clawmesh rooms list`")]
    RoomUnknown {
        /// The given value.
        room: String,
    },
    /// A vote has no option of that text, or several.
    #[error("the vote has no option `{option}`, or several that differ by case: {}", numbered(.options))]
    OptionUnknown {
        /// The given text.
        option: String,
        /// All of them.
        options: Vec<String>,
    },
    /// Several rooms of that name.
    #[error("{count} rooms are named `{room}`: give the id, from `clawmesh rooms list`")]
    RoomAmbiguous {
        /// The given value.
        room: String,
        /// How many rooms have that name.
        count: usize,
    },
    /// The room went away while it was waited for.
    #[error("the room is gone")]
    RoomGone,
    /// Files have no request on a connection.
    #[error("files travel over HTTP: name the node's HTTP address with --url ws://HOST:PORT")]
    FilesOverHttp,
    /// The page has no other way.
    #[error(
        "the node's HTTP address is not known, and its page is there: start the node with `clawmeshd up`, or give --url http://HOST:PORT"
    )]
    PageOverHttp,
    /// It was switched off, or the node is older.
    #[error("this node has no page: its operator starts clawmeshd without --no-page")]
    NoPage,
    /// Standard input cannot be read.
    #[error("standard input cannot be read: {0}")]
    Input(io::Error),
    /// Tools have no request on a connection.
    #[error(
        "the node's HTTP address is not known, and tools are called over HTTP: start the node with `clawmeshd up`, or give --url http://HOST:PORT"
    )]
    ToolsOverHttp,
    /// No node answers that has tools.
    #[error("{NO_NODE}")]
    NoToolNode,
    /// Nodes have no such tools.
    #[error(
        "there is no group of tools {group:?}: sessions, inbox, rooms, votes, tasks, finder, all"
    )]
    NoToolGroup {
        /// As it was given.
        group: String,
    },
    /// A file that would go to a terminal is no text.
    #[error("{path} is no text: name a file to write it to")]
    NoText {
        /// Its path in the room.
        path: String,
    },
    /// End-to-end encryption is of text.
    #[error(
        "an encrypted room keeps text only, in files, too: encode other content, with base64 say"
    )]
    EncryptedText,
    /// The secret does not open a file.
    #[error("the file does not open: it was encrypted with another --room-key")]
    NotOpened,
    /// A host cannot be set up, or not so.
    #[error("{why}")]
    Attach {
        /// Why, and what to do.
        why: String,
    },
    /// The node refuses a request over HTTP.
    #[error("{why}")]
    Refused {
        /// Why.
        why: String,
    },
    /// The index of agents has no request on a connection.
    #[error(
        "the node's HTTP address is not known, and the index of agents is there: start the node with `clawmeshd up`, or give --url http://HOST:PORT behind `finder`"
    )]
    IndexOverHttp,
    /// The index of agents refuses.
    #[error("{why}")]
    Index {
        /// The status of the answer.
        status: u16,
        /// Why.
        why: String,
    },
    /// There is no key of an account, or it is not known which.
    #[error("{why}")]
    NoAccount {
        /// Why, and what to do.
        why: String,
    },
    /// An account was registered whose key has no place.
    #[error(
        "the account is registered, but its key cannot be kept in {}: {source}. Keep it yourself, nobody shows it again: {}", path.display(), key.expose()
    )]
    KeyNotKept {
        /// The file.
        path: PathBuf,
        /// The key.
        key: ApiKey,
        /// The system's error.
        source: io::Error,
    },
    /// A list has long texts.
    #[error("the answer is longer than this program takes: ask for a shorter one with --page-size")]
    PageTooLong,
    /// A change without anything to change.
    #[error("there is nothing to change: give {flags}")]
    NothingGiven {
        /// The flags that change something.
        flags: &'static str,
    },
    /// Deleting an account is for ever.
    #[error(
        "this deletes the account, its jobs, and reviews and mail by and about it, at all nodes and for ever: say --yes"
    )]
    NotConfirmed,
    /// No mail came in time.
    #[error("no unread mail within {} s", after.as_secs())]
    NoMail {
        /// How long it was waited.
        after: Duration,
    },
    /// The user's gpg does not do it.
    #[error("{why}")]
    Gpg {
        /// Why.
        why: String,
    },
    /// A request over HTTP has no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Only members do that.
    #[error(
        "{source}: as a member one sends, waits, votes and leads. A command that says something there joins (`clawmesh send \
         ROOM TEXT`), and the seat stays for two minutes, for the same --name or --agent-id"
    )]
    NoMember {
        /// The node's answer.
        source: CallError,
    },
    /// Only those may vote who were there.
    #[error(
        "{source}: vote under the --name or --agent-id with which you were in the room then, or have a new vote opened with \
         `clawmesh vote create`"
    )]
    NoVoter {
        /// The node's answer.
        source: CallError,
    },
    /// Only the leader does that.
    #[error(
        "{source}: lead under the --name or --agent-id that was elected, or have another election with `clawmesh election \
         start ROOM`"
    )]
    NoLead {
        /// The node's answer.
        source: CallError,
    },
    /// A call failed.
    #[error(transparent)]
    Call(CallError),
    /// A stream of messages failed.
    #[error(transparent)]
    Messages(#[from] MessagesError),
    /// The server takes no notice of the wish for copies.
    #[error(
        "the message is sent; this server does not say how many nodes hold it: it is no clawmesh node"
    )]
    NoCopies,
    /// Fewer nodes than wanted have said that they hold a message.
    #[error(
        "the message is sent; in time {copies} of {wanted} nodes have said that they hold it durably"
    )]
    TooFewCopies {
        /// As many as were wanted.
        wanted: u64,
        /// As many as have said so.
        copies: u64,
    },
    /// Nothing came in time.
    #[error("no message within {} s", after.as_secs())]
    TimedOut {
        /// How long it was waited.
        after: Duration,
    },
    /// The cursor file cannot be used.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// A file of the user's cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the user's is not JSON.
    #[error("{} is not JSON: {source}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where it is not.
        source: serde_json::Error,
    },
    /// A LANTERN message is not valid; it was not sent.
    #[error("this {} was not sent: {}; see `clawmesh lantern {} --help`", verb.word(), listed(problems), verb.word().to_lowercase())]
    Lantern {
        /// Its intended verb.
        verb: Verb,
        /// All that is wrong with it.
        problems: Vec<Problem>,
    },
    /// Two outcomes of one claim.
    #[error("--outcome says twice what became of {seq}, and not the same")]
    OutcomeTwice {
        /// The message that made the claim.
        seq: u64,
    },
    /// No LANTERN thread of that id.
    #[error("no thread {thread} in the room: {}`clawmesh lantern threads {room}` lists them", within.map(|other| format!("that message stands in thread {other}; ")).unwrap_or_default())]
    NoThread {
        /// The given value.
        thread: u64,
        /// The thread in which that message stands.
        within: Option<u64>,
        /// The room as it was given.
        room: String,
    },
    /// More than fits into memory.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// A variable of the environment makes no sense.
    #[error("{name}: {source}")]
    Variable {
        /// Which.
        name: String,
        /// The problem with its value.
        source: AddressError,
    },
    /// No node runs on a data directory.
    #[error("no node runs on {}: start it with `clawmeshd up`, or name another with --data-dir", dir.display())]
    NotRunning {
        /// The directory.
        dir: PathBuf,
    },
    /// The node of a data directory has no HTTP.
    #[error("the node on {} has no HTTP listener, and its tools are there: start it without --no-http", dir.display())]
    NoHttp {
        /// The directory.
        dir: PathBuf,
    },
    /// The node refuses its operator.
    #[error("the node refuses: {why}")]
    Operator {
        /// Why.
        why: String,
    },
    /// The doctor has found something.
    #[error("{count} to be mended: see above")]
    Unwell {
        /// How many things.
        count: usize,
    },
    /// Full-screen commands need one.
    #[error("this command needs a terminal: use `clawmesh mesh status`, also with --json")]
    NoTerminal,
    /// The node's program is not installed.
    #[error("there is no clawmeshd beside this program or in PATH: install it, it runs the nodes")]
    NoDaemon,
    /// Options of this program say nothing to the node's.
    #[error(
        "`serve`, `auth` and `invite-agent` hand what follows them to clawmeshd: write them first, and options after them"
    )]
    NotFirst,
    /// The command needs a connection of its own.
    #[error(
        "this command is not for the shell: run it beside it, with the same --agent-id or another --name"
    )]
    NotInShell,
    /// Nothing is said outside of rooms.
    #[error("you are in no room: /join one")]
    NoRoom,
    /// The client has given up connecting.
    #[error("disconnected for good")]
    Disconnected,
    /// Nobody was elected in time.
    #[error("no leader was elected within {} s: look with `clawmesh rooms info`, or start another election", after.as_secs())]
    NoLeader {
        /// How long it was waited.
        after: Duration,
    },
    /// The election ended without a leader.
    #[error("nobody leads: {reason}")]
    NobodyLeads {
        /// As the node says it.
        reason: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// Standard output or error is closed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// A message cannot be written as JSON.
    #[error("cannot write a message as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The system gives no threads or sockets.
    #[error("cannot start: {source}")]
    Runtime {
        /// The system's error.
        source: io::Error,
    },
}

impl From<CallError> for Failure {
    fn from(source: CallError) -> Failure {
        let is = |wanted| matches!(&source, CallError::Refused { code, .. } if *code == wanted);
        if is(Code::NotInRoom) {
            Failure::NoMember { source }
        } else if is(Code::NotLeader) {
            Failure::NoLead { source }
        } else {
            Failure::Call(source)
        }
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

impl Failure {
    /// A node that answers what was not asked.
    pub fn strange() -> Self {
        let why = "it answers something else: is it of another version?";
        Self::Operator { why: why.to_owned() }
    }

    /// Every failure is 1: scripts branch on the outcomes.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::FAILURE
    }
}
/// Options with their numbers, on one line.
fn numbered(options: &[String]) -> String {
    let each = options.iter().enumerate();
    let each: Vec<String> =
        each.map(|(at, option)| format!("{at}: {}", crate::format::name(option))).collect();
    each.join(", ")
}

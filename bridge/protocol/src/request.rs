//! Requests of clients (§2, §3): one table, one struct per command.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::field::{Field, Fields};
use crate::limits::{
    ECHO_CHARS_MAX, HISTORY_LIMIT_DEFAULT, PROTOCOL_VERSION, REPLAY_LIMIT_DEFAULT,
    SEARCH_LIMIT_DEFAULT, VOTES_LIMIT_DEFAULT,
};
use crate::object::{Approval, Card, Content, Message, Profile, Room, Subscription, Task, Vote};
use crate::reply::{
    Acked, AgentList, Answer, ApprovalDecision, ApprovalList, BallotCast, Decided, Declined,
    Election, Empty, Enabled, HistoryResult, InRoom, OnceResult, PresenceSet, Receipts, Registered,
    ReplayResult, RoomInfoResult, RoomList, RoomTipResult, SearchResult, Subscriptions, TaskList,
    Unsubscribed, Votes,
};
use crate::task::{NewTaskOptions, TaskGone, TaskOptions, TaskRecord};
use crate::value::{
    ApiKey, ApprovalChoice, IfAssignee, Metadata, PieceKind, Progress, RegisterOptions,
    RoomOptions, Secret, SendOptions, SettingsUpdate, Status, TaskStatus, Update,
};

/// A command: its name on the wire and its answer.
pub trait Command: Serialize + Into<Request> {
    /// The `type` of the request.
    const TYPE: &'static str;

    /// The payload of a reply that is not an error.
    type Reply: Answer;
}

/// The effect of carrying out a command a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// None: the command asks for something, or sets something that is set already.
    Harmless,
    /// None, if both carry the same dedup id: the command says something ([`Request::speech`]).
    Deduplicated,
    /// The node refuses although the first one succeeded, or makes two of one, or undoes the work of
    /// others in between.
    Harmful,
}

/// The part of a command that says something in a room.
#[derive(Debug, PartialEq, Eq)]
pub struct Speech<'a> {
    /// The content, and its room.
    pub content: Content<'a>,
    /// Where the dedup id stands.
    pub options: &'a mut Option<SendOptions>,
}

/// By the `Repeat` of a command.
macro_rules! speech_of {
    (Deduplicated $command:ident) => {
        Some(Speech {
            content: Content { room_id: &$command.room_id, text: &mut $command.content },
            options: &mut $command.mesh,
        })
    };
    ($other:ident $command:ident) => {
        None
    };
}

macro_rules! default_of {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Each row: the command, its `type`, its reply, the effect of a repeat, its fields; a field is
/// required unless its type is an `Option` or it has a default.
macro_rules! requests {
    ($(
        $(#[$doc:meta])*
        $name:ident = $type:literal -> $reply:ty, $repeat:ident {
            $( $(#[$field_doc:meta])* $field:ident: $field_type:ty $(= $default:expr)?, )*
        }
    )*) => {
        /// Everything a client can ask. Closed on purpose.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Request {
            $( $(#[$doc])* $name($name), )*
        }

        impl Request {
            /// The `type` on the wire.
            pub fn type_name(&self) -> &'static str {
                match self { $( Self::$name(_) => $type, )* }
            }

            /// The effect of carrying it out a second time.
            pub fn repeat(&self) -> Repeat {
                match self { $( Self::$name(_) => Repeat::$repeat, )* }
            }

            /// The content that it says in a room, if any.
            pub fn speech(&mut self) -> Option<Speech<'_>> {
                match self { $( Self::$name(_command) => speech_of!($repeat _command), )* }
            }

            /// Whether it is the `type` of a command that only agents may give: all but a few.
            pub(crate) fn is_of_agents(kind: &str) -> bool {
                matches!(kind, $( $type )|*) && !matches!(kind, "register" | "ping" | "pong")
            }

            /// Reads a payload by the request's type; the error is the message of the refusal.
            pub(crate) fn read(kind: &str, payload: Option<&RawValue>) -> Result<Self, String> {
                match kind {
                    $( $type => $name::read(payload).map(Self::$name), )*
                    unknown => Err(format!(
                        "unknown type `{}`",
                        unknown.chars().take(ECHO_CHARS_MAX).collect::<String>(),
                    )),
                }
            }
        }

        impl Serialize for Request {
            /// Writes the payload.
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self { $( Self::$name(command) => command.serialize(s), )* }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name {
                $( $(#[$field_doc])* pub $field: $field_type, )*
            }

            impl $name {
                fn read(payload: Option<&RawValue>) -> Result<Self, String> {
                    let json = payload.map_or("{}", RawValue::get);
                    let _fields = Fields::read(json, &[$( stringify!($field), )*])
                        .map_err(|_| String::from("`payload` must be an object"))?;
                    Ok(Self {
                        $( $field: _fields.get(stringify!($field), default_of!($($default)?))?, )*
                    })
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                    #[allow(unused_mut, reason = "commands without fields write nothing")]
                    let mut map = s.serialize_map(None)?;
                    $(
                        if !self.$field.is_unset() {
                            map.serialize_entry(stringify!($field), &self.$field)?;
                        }
                    )*
                    map.end()
                }
            }

            impl From<$name> for Request {
                fn from(command: $name) -> Self {
                    Self::$name(command)
                }
            }

            impl Command for $name {
                const TYPE: &'static str = $type;
                type Reply = $reply;
            }
        )*
    };
}

requests! {
    /// Authenticate and become an agent.
    Register = "register" -> Registered, Harmful {
        /// The API key.
        key: ApiKey,
        /// The agent's name.
        name: String,
        /// A stable identity; absent = a fresh one.
        agent_id: Option<String>,
        /// The agent's abilities, as it states them.
        capabilities: Vec<String> = Vec::new(),
        /// Take the identity over if it is connected, resume it if it was just lost.
        reconnect: bool = false,
        /// The dialect's version.
        protocol_version: u64 = PROTOCOL_VERSION,
        /// Wishes that mesh nodes alone know.
        mesh: Option<RegisterOptions>,
    }

    /// Ask for a `pong`; allowed before `register`.
    Ping = "ping" -> Empty, Harmless {}

    /// Answer to the node's heartbeat; needs no reply.
    Pong = "pong" -> Empty, Harmless {}

    /// Create a room. The creator does not join it.
    CreateRoom = "create_room" -> Room, Harmful {
        /// Not empty, not taken.
        name: String,
        /// The room's purpose.
        description: Option<String>,
        /// The room it is a part of.
        parent_id: Option<String>,
        /// Gone when its last member has left.
        ephemeral: bool = false,
        /// Visible to every key.
        public: bool = false,
        /// Contents are end-to-end encrypted by the clients.
        encrypted: bool = false,
        /// Options for mesh nodes.
        mesh: Option<RoomOptions>,
    }

    /// Give a shared room to the key of an agent. Standard servers do not know it.
    ShareRoom = "share_room" -> Empty, Harmless {
        /// The room's id.
        room_id: String,
        /// An agent of the key.
        agent_id: String,
    }

    /// Take the key of an agent out of a shared room, for ever. Standard servers do not know it.
    UnshareRoom = "unshare_room" -> Empty, Harmless {
        /// The room's id.
        room_id: String,
        /// An agent of the key.
        agent_id: String,
    }

    /// Put an agent on the list of a room of the caller's key: it has a seat there whenever it is attached. Standard servers do not
    /// know it.
    AddMember = "add_member" -> Empty, Harmless {
        /// The room's id.
        room_id: String,
        /// The agent.
        agent_id: String,
        /// `lead`, `member` (also if it is absent) or `reviewer`.
        role: Option<String>,
    }

    /// Take an agent off the list of a room, and out of it. Standard servers do not know it.
    RemoveMember = "remove_member" -> Empty, Harmless {
        /// The room's id.
        room_id: String,
        /// The agent.
        agent_id: String,
    }

    /// Retire an agent of the caller's key, for ever. Standard servers do not know it.
    RetireAgent = "retire_agent" -> Empty, Harmless {
        /// The agent.
        agent_id: String,
    }

    /// Become a member of a room. Joining twice is a no-op.
    JoinRoom = "join_room" -> InRoom, Harmless {
        /// The room's id.
        room_id: String,
    }

    /// Leave a room.
    LeaveRoom = "leave_room" -> InRoom, Harmful {
        /// The room's id.
        room_id: String,
    }

    /// Say something to the members of a room.
    SendMessage = "send_message" -> Message, Deduplicated {
        /// The room's id.
        room_id: String,
        /// The text, or a `clw1:` blob in an encrypted room.
        content: String,
        /// The id of the message it answers.
        reply_to: Option<String>,
        /// Ids of agents to tell even outside the room.
        mentions: Vec<String> = Vec::new(),
        /// Any JSON; `null` = nothing.
        metadata: Option<Metadata>,
        /// Options for mesh nodes.
        mesh: Option<SendOptions>,
    }

    /// Think out loud: in history, never moves the turn.
    Thinking = "thinking" -> Message, Deduplicated {
        /// The room's id.
        room_id: String,
        /// The thought.
        content: String,
        /// Options for mesh nodes.
        mesh: Option<SendOptions>,
    }

    /// Messages of a room, oldest first.
    GetHistory = "get_history" -> HistoryResult, Harmless {
        /// The room's id.
        room_id: String,
        /// How many at most; nodes may cap it.
        limit: u64 = HISTORY_LIMIT_DEFAULT,
        /// Only messages before this RFC 3339 time.
        before: Option<String>,
        /// Only messages after the one with this id.
        since: Option<String>,
        /// Only messages numbered above this.
        since_seq: Option<u64>,
    }

    /// Find messages that the caller may read, the newest first. Standard servers do not know it.
    Search = "search" -> SearchResult, Harmless {
        /// Words that a message must have, all of them: `"some words"` must stand in it so, `wor*` begins a word.
        text: String = String::new(),
        /// Only in this room.
        room_id: Option<String>,
        /// Only messages of an agent of this id or name.
        from: Option<String>,
        /// Only messages written at this RFC 3339 time or later.
        since: Option<String>,
        /// Only messages written before this RFC 3339 time.
        before: Option<String>,
        /// Go on from there: the `next` of an answer.
        after: Option<String>,
        /// How many at most; nodes cap it.
        limit: u64 = SEARCH_LIMIT_DEFAULT,
    }

    /// All that happened in a room, as a player of ClawTank's replays reads it, in parts. Of mesh nodes alone.
    Replay = "replay" -> ReplayResult, Harmless {
        /// The room's id.
        room_id: String,
        /// Only events after so many; absent = from the beginning.
        after: Option<u64>,
        /// How many at most; nodes may cap it.
        limit: u64 = REPLAY_LIMIT_DEFAULT,
        /// Thoughts, too.
        include_thinking: bool = false,
        /// No more than those see who look on.
        public: bool = false,
    }

    /// The fate of a message: which nodes hold it, and which agents have it. Standard servers do not know it.
    GetReceipts = "get_receipts" -> Receipts, Harmless {
        /// The room's id.
        room_id: String,
        /// The message's id.
        message_id: String,
    }

    /// A piece of an answer that the agent is writing. The answer is sent as a message when it is whole. Standard servers do not
    /// know it.
    Stream = "stream" -> Empty, Harmful {
        /// The room's id.
        room_id: String,
        /// The agent's own name of the stream.
        stream_id: String,
        /// Id of the message it answers.
        reply_to: Option<String>,
        /// The kind of the piece.
        kind: PieceKind,
        /// The text.
        content: Option<String>,
        /// The name of a tool.
        tool: Option<String>,
        /// Given to the tool.
        input: Option<Metadata>,
        /// Given by the tool.
        result: Option<Metadata>,
    }

    /// Say that one has all messages of a room up to a number. Standard servers do not know it.
    Ack = "ack" -> Acked, Harmless {
        /// The room's id.
        room_id: String,
        /// The number.
        seq: u64,
    }

    /// The highest number in a room.
    RoomTip = "room_tip" -> RoomTipResult, Harmless {
        /// The room's id.
        room_id: String,
    }

    /// The rooms that the caller may see.
    ListRooms = "list_rooms" -> RoomList, Harmless {
        /// Only the parts of this room.
        parent_id: Option<String>,
    }

    /// The agents of the caller's key, or the members of a room.
    ListAgents = "list_agents" -> AgentList, Harmless {
        /// The room's id.
        room_id: Option<String>,
    }

    /// A room, its members, its parts and its turn.
    RoomInfo = "room_info" -> RoomInfoResult, Harmless {
        /// The room's id.
        room_id: String,
    }

    /// Change the details of a room that one's key has made: `null` deletes, absent fields stay as they are.
    SetRoom = "set_room" -> Room, Harmless {
        /// The room's id.
        room_id: String,
        /// A title beside the name.
        title: Update<String>,
        /// In the place of the description that the room was made with; deleted, that one shows again.
        description: Update<String>,
        /// `lobby`, `active`, `paused` or `archived`: for its members to know.
        state: Update<String>,
        /// Settings that change, by name.
        settings: Option<SettingsUpdate>,
    }

    /// Tell the others that one is typing, or not any more.
    SetTyping = "set_typing" -> InRoom, Harmless {
        /// The room's id.
        room_id: String,
        /// Whether one is typing.
        typing: bool = true,
    }

    /// Tell the others one's presence.
    SetPresence = "set_presence" -> PresenceSet, Harmless {
        /// The agent's status.
        status: Status,
        /// In its own words.
        status_detail: Option<String>,
        /// How far it has come.
        progress: Option<Progress>,
    }

    /// Change one's profile: `null` deletes a field, an absent one stays as it is.
    SetProfile = "set_profile" -> Profile, Harmless {
        /// The name that others are shown.
        name: Update<String>,
        /// One's purpose.
        description: Update<String>,
        /// A sign for oneself.
        emoji: Update<String>,
        /// The address of a picture.
        avatar: Update<String>,
        /// The provider of one's model.
        provider: Update<String>,
        /// One's model.
        model: Update<String>,
        /// The things that one can do: all of them, from now on.
        cards: Option<Vec<Card>>,
    }

    /// The profile of an agent.
    GetProfile = "get_profile" -> Profile, Harmless {
        /// The agent's id.
        agent_id: String,
    }

    /// Open a sealed vote: agents that are members now may cast one ballot each.
    CreateVote = "create_vote" -> Vote, Harmful {
        /// The room's id.
        room_id: String,
        /// The question.
        title: String,
        /// The choices, at least two.
        options: Vec<String>,
        /// More about it.
        description: Option<String>,
        /// Closes after so long, with the ballots it then has.
        duration_secs: Option<u64>,
    }

    /// Cast one's ballot. Nobody can read it before the vote is closed.
    CastVote = "cast_vote" -> BallotCast, Harmful {
        /// The vote's id.
        vote_id: String,
        /// Which option, from 0.
        option_index: u64,
    }

    /// A vote: counts while it is open, its tally once it is closed.
    GetVoteStatus = "get_vote_status" -> Vote, Harmless {
        /// The vote's id.
        vote_id: String,
    }

    /// The votes of a room, newest first.
    ListVotes = "list_votes" -> Votes, Harmless {
        /// The room's id.
        room_id: String,
        /// How many at most; nodes may cap it.
        limit: u64 = VOTES_LIMIT_DEFAULT,
    }

    /// Start an election among the members.
    ElectLeader = "elect_leader" -> Election, Harmful {
        /// The room's id.
        room_id: String,
    }

    /// Do not stand in the election that is under way.
    DeclineElection = "decline_election" -> Declined, Harmful {
        /// The room's id.
        room_id: String,
    }

    /// Decide, as the room's leader.
    Decision = "decision" -> Decided, Deduplicated {
        /// The room's id.
        room_id: String,
        /// The text, or a `clw1:` blob in an encrypted room.
        content: String,
        /// A JSON object; `type` and `decided_by` are written over.
        metadata: Option<Metadata>,
        /// Options for mesh nodes.
        mesh: Option<SendOptions>,
    }

    /// Make a task.
    AssignTask = "assign_task" -> Task, Harmful {
        /// The room's id.
        room_id: String,
        /// The work to be done.
        title: String,
        /// More about it.
        description: Option<String>,
        /// The id of the agent that is to do it.
        assignee: Option<String>,
        /// The wishes of mesh nodes alone.
        mesh: Option<NewTaskOptions>,
    }

    /// Set fields of a task; absent ones stay as they are.
    UpdateTask = "update_task" -> Task, Harmful {
        /// The task's id.
        task_id: String,
        /// How far it is.
        status: Option<TaskStatus>,
        /// The id of the agent that is to do it.
        assignee: Option<String>,
        /// Free text.
        note: Option<String>,
        /// Only if it is held by this agent (`null`: by nobody). Standard servers ignore it.
        if_assignee: IfAssignee,
        /// The wishes of mesh nodes alone.
        mesh: Option<TaskOptions>,
    }

    /// A task with its comments. Of mesh nodes alone.
    GetTask = "get_task" -> TaskRecord, Harmless {
        /// The room's id.
        room_id: String,
        /// The task's id.
        task_id: String,
    }

    /// Delete a task that has ended. Of mesh nodes alone.
    DeleteTask = "delete_task" -> TaskGone, Harmful {
        /// The task's id.
        task_id: String,
    }

    /// The tasks of a room, oldest first.
    ListTasks = "list_tasks" -> TaskList, Harmless {
        /// The room's id.
        room_id: String,
        /// Only those that are so far.
        status: Option<TaskStatus>,
    }

    /// Have something that at most one agent is to have, keep it, or give it back. Of mesh nodes alone.
    Once = "once" -> OnceResult, Harmful {
        /// The room's id: its members agree on who has it.
        room_id: String,
        /// The thing: 1 to 128 bytes.
        subject: String,
        /// It is free again after so many milliseconds, unless it is renewed.
        lease_ms: Option<u64>,
        /// The id of a grant of this agent, whose lease begins anew.
        renew: Option<String>,
        /// The id of a grant of this agent, which it gives back.
        release: Option<String>,
    }

    /// Decide about something that an agent wants to do. It has asked with a message whose metadata has the kind
    /// `approval_request`. Of mesh nodes alone.
    DecideApproval = "decide_approval" -> ApprovalDecision, Harmful {
        /// The room's id.
        room_id: String,
        /// The id of that message.
        message_id: String,
        /// The decision.
        decision: ApprovalChoice,
        /// Why.
        reason: Option<String>,
    }

    /// Approvals that nobody has decided about, and those that hold for always. Of mesh nodes alone.
    ListApprovals = "list_approvals" -> ApprovalList, Harmless {
        /// Of this room; absent = of all that the agent may read.
        room_id: Option<String>,
    }

    /// One approval, decided or not. Of mesh nodes alone.
    GetApproval = "get_approval" -> Approval, Harmless {
        /// The room's id.
        room_id: String,
        /// The id of the message with which the agent asked.
        message_id: String,
    }

    /// Have the messages of a room sent to a webhook.
    Subscribe = "subscribe" -> Subscription, Harmful {
        /// The room's id.
        room_id: String,
        /// Where they are sent.
        webhook_url: String,
        /// The secret that signs deliveries.
        secret: Secret,
        /// Only messages whose `metadata.kind` is one of these.
        kinds: Option<Vec<String>>,
        /// Only messages of agents of this name.
        only_from: Option<String>,
        /// No messages of agents of this name.
        not_from: Option<String>,
        /// No thinking pulses.
        exclude_thinking: bool = false,
        /// Only messages above this number; absent = above the tip now.
        since_seq: Option<u64>,
    }

    /// Delete a subscription.
    Unsubscribe = "unsubscribe" -> Unsubscribed, Harmful {
        /// The subscription's id.
        subscription_id: String,
    }

    /// The subscriptions of the caller's key.
    ListSubscriptions = "list_subscriptions" -> Subscriptions, Harmless {
        /// Only those of this room.
        room_id: Option<String>,
    }

    /// Go on with a subscription that has failed, from where it stopped.
    EnableSubscription = "enable_subscription" -> Enabled, Harmless {
        /// The subscription's id.
        subscription_id: String,
    }
}

impl SendMessage {
    /// A message that answers nothing, mentions nobody and has no metadata.
    pub fn new(room_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            room_id: room_id.into(),
            content: content.into(),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            mesh: None,
        }
    }
}

//! Expected refusals of commands.

use thiserror::Error;

use crate::{
    api::{account::AccountRefused, budget::OverBudget, policy::TakesNone, rules::Broken},
    name::id::AgentId,
    wire::tasks::TaskStatus,
};

/// An expected no. Dialects have codes and texts of their own for clients; the texts here are for operators and logs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// No such room, or none that the caller may know of.
    #[error("no such room")]
    NoRoom,
    /// A private room of another key.
    #[error("the room belongs to another key")]
    NotYours,
    /// Joined members only.
    #[error("join the room first")]
    NotMember,
    /// The name is taken.
    #[error("a room named {0:?} exists already")]
    NameTaken(String),
    /// The id is connected, or belongs to another key.
    #[error("agent id {0:?} is taken")]
    AgentTaken(AgentId),
    /// The key that owns the id has said that the agent is retired.
    #[error("agent {0:?} was retired by its key, for ever: use another id")]
    AgentRetired(AgentId),
    /// An operator of this node, or the agent's own key, has stopped it.
    #[error("{by} has stopped {}: nothing is sent until that is lifted", if *all { "all agents" } else { "this agent" })]
    Stopped {
        /// The person who has.
        by: String,
        /// And not this agent alone.
        all: bool,
    },
    /// The room takes only end-to-end encrypted content.
    #[error("the room takes end-to-end encrypted content only")]
    Plaintext,
    /// Too large to be an entry.
    #[error("message is too large: {len} bytes, allowed are {max}")]
    TooLarge {
        /// As given.
        len: usize,
        /// At most.
        max: usize,
    },
    /// A field of the command breaks a rule that holds for everybody.
    #[error(transparent)]
    Field(#[from] Broken),
    /// The key owns as many stable ids of agents, claimed at this node, as it may.
    #[error("the key owns {max} stable agent ids of this node, which is its limit")]
    TooManyIds {
        /// Its limit.
        max: usize,
    },
    /// A command of an operator cannot be done. The text says why, and what to do.
    #[error("{0}")]
    Impossible(String),
    /// Kept from before this node joined the mesh: to be read only.
    #[error("the room is from before this node joined the mesh and can only be read")]
    Closed,
    /// A session that has ended: a room that is kept, and takes nothing more.
    #[error("this session is closed")]
    SessionClosed,
    /// A bound of this node was reached. The text names it.
    #[error("{0}")]
    Full(String),
    /// More copies of a message are wanted than there are nodes that have its room.
    #[error("{max} nodes have the room, and no more can hold the message")]
    TooManyCopies {
        /// Nodes that have it.
        max: usize,
    },
    /// A message of an ephemeral room is to be held durably.
    #[error("the room is memory only: no node holds its messages durably")]
    NotDurable,
    /// The agent registered anew elsewhere.
    #[error("the agent registered again on a newer connection")]
    Superseded,
    /// No such vote, or none that the caller may know of.
    #[error("no such vote")]
    NoVote,
    /// It takes no more ballots.
    #[error("the vote is closed")]
    VoteClosed,
    /// One ballot each.
    #[error("you have voted already")]
    AlreadyVoted,
    /// Only those who were members when it was opened.
    #[error("only those who were in the room when the vote was opened may vote")]
    NotEligible,
    /// Guests are not asked to vote or to lead.
    #[error("the room has guests alone, who neither vote nor lead")]
    GuestsAlone,
    /// Not an option. The ballot is not used up.
    #[error("there is no such option: they are 0 to {max}")]
    NoOption {
        /// The last one.
        max: usize,
    },
    /// Decisions are the leader's.
    #[error("only the room's leader may do this: hold an election")]
    NotLeader,
    /// One at a time.
    #[error("an election is under way in this room")]
    ElectionRuns,
    /// Too late, or too early.
    #[error("no election is under way in this room")]
    NoElection,
    /// No such task, or none that the caller may know of.
    #[error("no such task")]
    NoTask,
    /// No such approval, or none that the caller may know of.
    #[error("no such approval")]
    NoApproval,
    /// Somebody else is to decide about it: others were named, or the caller has asked for it itself.
    #[error("this approval is for others to decide")]
    NotApprover,
    /// The room has no such file.
    #[error("no such file")]
    NoFile,
    /// Of an account, or of its records.
    #[error(transparent)]
    Account(AccountRefused),
    /// A claim came too late.
    #[error("the task is held by {}", .holder.as_deref().map_or("nobody", |holder| holder))]
    Held {
        /// By whom.
        holder: Option<AgentId>,
    },
    /// The task is so far, and what was asked for is not done to such a task.
    #[error("the task is {}{}", .is.name(), .to.map_or(String::new(), |to| format!(": it cannot become {}", to.name())))]
    Stands {
        /// How far it is.
        is: TaskStatus,
        /// What it was to become.
        to: Option<TaskStatus>,
    },
    /// Neither the node's own nor a minted one; or revoked.
    #[error("the key is not valid here")]
    NoKey,
    /// The agent that is to be written to.
    #[error("no such agent: {0:?}")]
    NoAgent(AgentId),
    /// A key has no mailbox that others know, so no secret with another key.
    #[error("{0}")]
    NoMailbox(String),
    /// The other agent is attached here, and takes no messages of the caller.
    #[error("{0}")]
    TakesNone(TakesNone),
    /// The conversation, or the agent, has used what there is for it.
    #[error(transparent)]
    Budget(#[from] OverBudget),
    /// The key's agents at this node.
    #[error("the key has {max} agents connected here already, which is its limit")]
    TooManyAgents {
        /// Its limit.
        max: usize,
    },
    /// The key's rooms made at this node.
    #[error("the key has made {max} rooms here, which is its limit")]
    TooManyRooms {
        /// Its limit.
        max: usize,
    },
    /// Nothing that this node writes counts any more.
    #[error("{0}")]
    Apart(Apart),
    /// The node's disk is full. Said by the driver: the core knows of no disk.
    #[error(
        "the disk of this node is full: it takes nothing new, and what is there can be read; try again \
         when its operator has made room, or use another node"
    )]
    DiskFull,
    /// The node is stopping.
    #[error("the node is stopping; use another one")]
    Stopping,
}

/// Why nothing that this node writes counts any more: it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Apart {
    /// Another member shut it out.
    #[error(
        "this node was expelled from the mesh: it can be read, and takes nothing new; use another node"
    )]
    Expelled,
    /// Another member said that it is gone for good.
    #[error(
        "this node was retired from the mesh: it can be read, and takes nothing new; use another node"
    )]
    Retired,
    /// It said so itself.
    #[error("this node has left the mesh: it can be read, and takes nothing new; use another node")]
    Left,
    /// It has signed two histories.
    #[error(
        "this node's log has forked, so nobody takes what it writes: it can be read, and takes nothing new; use another \
         node, and tell its operator to stop it"
    )]
    Forked,
}

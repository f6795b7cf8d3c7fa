//! Approvals: an agent asks people whether it may do something. Acts of any room; the sequencer of the room's current era
//! answers decisions (`docs/decisions/approvals.md`).

use minicbor::{Decode, Encode};

use crate::{
    name::{
        id::{AgentId, EntryRef, KeyPrint},
        number::Era,
    },
    wire::cbor::{text, texts},
};

/// One step of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ApprovalAct {
    /// An agent wants to be told whether it may.
    #[n(0)]
    Requested(#[n(0)] ApprovalRequested),
    /// Somebody wants to decide. It changes nothing by itself.
    #[n(1)]
    Asked(#[n(0)] ApprovalAsked),
    /// A sequencer's answer to one that wants to decide: it is what counts.
    #[n(2)]
    Answered(#[n(0)] ApprovalAnswer),
}

/// See [`ApprovalAct::Requested`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApprovalRequested {
    /// The message in which the agent says so, of the same log. It names the approval from then on.
    #[n(0)]
    pub message: EntryRef,
    /// The agent.
    #[cbor(n(1), with = "text")]
    pub by: AgentId,
    /// The thing that it wants to do: at most [`crate::limits::APPROVAL_TEXT_BYTES_MAX`].
    #[n(2)]
    pub text: String,
    /// Those who may decide. Empty: all who may write in the room.
    #[cbor(n(3), with = "texts")]
    pub approvers: Vec<AgentId>,
    /// Until then it can be decided. Unix milliseconds.
    #[n(4)]
    pub until_ms: u64,
    /// The key in whose name the agent's node speaks, as of [`crate::wire::entry::Said`].
    #[n(5)]
    pub key: Option<KeyPrint>,
}

/// See [`ApprovalAct::Asked`]. It stays in the log, and a decision is read from it and not from the answer: so a sequencer
/// cannot decide in the name of others.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApprovalAsked {
    /// The [`ApprovalRequested`].
    #[n(0)]
    pub approval: EntryRef,
    /// The agent that decides.
    #[cbor(n(1), with = "text")]
    pub by: AgentId,
    /// What it wants.
    #[n(2)]
    pub wish: ApprovalWish,
    /// Why: at most [`crate::limits::APPROVAL_REASON_BYTES_MAX`].
    #[n(3)]
    pub reason: Option<String>,
    /// As of [`crate::wire::once::OnceAsked`].
    #[n(4)]
    pub era: Era,
    /// As of [`ApprovalRequested`].
    #[n(5)]
    pub key: Option<KeyPrint>,
}

/// What somebody wants of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ApprovalWish {
    /// The agent may, this time.
    #[n(0)]
    Approve,
    /// The agent may, and whenever it asks for the same in this room.
    #[n(1)]
    Always,
    /// It may not.
    #[n(2)]
    Deny,
    /// It is to ask for something else.
    #[n(3)]
    Change,
    /// Nobody has decided in time. By the agent that asked.
    #[n(4)]
    Expire,
    /// It may, for of this earlier approval somebody said so for always. By the agent that asked.
    #[n(5)]
    ByRule(#[n(0)] EntryRef),
    /// No longer for always. What was approved stays approved.
    #[n(6)]
    Withdraw,
}

/// See [`ApprovalAct::Answered`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApprovalAnswer {
    /// The era whose sequencer answers.
    #[n(0)]
    pub era: Era,
    /// The [`ApprovalAsked`].
    #[n(1)]
    pub asked: EntryRef,
    /// Whether it is granted.
    #[n(2)]
    pub verdict: ApprovalVerdict,
    /// As of [`crate::wire::entry::Ordered`].
    #[n(3)]
    pub by: Option<EntryRef>,
}

/// A sequencer's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ApprovalVerdict {
    /// It is as the one that asked wants it.
    #[n(0)]
    Granted,
    /// It is decided, or it is too late, or this one may not decide.
    #[n(1)]
    Refused,
    /// The sequencer does not know that the node can speak for the agent.
    #[n(2)]
    Unproven,
}

impl ApprovalAct {
    /// The entries that it names.
    pub(super) fn names(&self) -> Vec<EntryRef> {
        match self {
            ApprovalAct::Requested(requested) => vec![requested.message],
            ApprovalAct::Asked(asked) => {
                let mut names = vec![asked.approval];
                if let ApprovalWish::ByRule(rule) = asked.wish {
                    names.push(rule);
                }
                names
            }
            ApprovalAct::Answered(answer) => [answer.asked].into_iter().chain(answer.by).collect(),
        }
    }
}

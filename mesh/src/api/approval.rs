//! Approvals, as clients ask for them, decide and are told (`docs/decisions/approvals.md`).

use std::{sync::Arc, time::Duration};

use crate::{
    api::{
        command::Caller,
        rules::{Broken, Field, Rule, holds, not_blank, within},
    },
    limits::{
        AGENT_ID_BYTES_MAX, APPROVAL_FOR_MAX, APPROVAL_FOR_MIN, APPROVAL_REASON_BYTES_MAX,
        APPROVAL_TEXT_BYTES_MAX, APPROVERS_MAX,
    },
    name::id::{AgentId, MessageId, RoomId},
};

/// An agent asks whether it may do something. It has said so in a message.
#[derive(Clone, Debug)]
pub struct NewApproval {
    /// The agent.
    pub caller: Caller,
    /// In this room.
    pub room: RoomId,
    /// Its message: written at this node since it started.
    pub message: MessageId,
    /// See [`ApprovalTerms`].
    pub terms: ApprovalTerms,
}

/// The thing that is to be approved, by whom, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalTerms {
    /// The thing that the agent wants to do.
    pub text: String,
    /// Those who may decide. Empty: all who may write in the room, but for the agent itself.
    pub approvers: Vec<AgentId>,
    /// For so long it can be decided.
    pub within: Duration,
}

impl ApprovalTerms {
    /// Whether they keep to their bounds.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        within(Field::Approval, &self.text, APPROVAL_TEXT_BYTES_MAX)?;
        not_blank(Field::Approval, &self.text)?;
        let is_named = |agent: &AgentId| (1..=AGENT_ID_BYTES_MAX).contains(&agent.len());
        let entries = Rule::Entries { count: APPROVERS_MAX, bytes: AGENT_ID_BYTES_MAX };
        let are_few = self.approvers.len() <= APPROVERS_MAX;
        holds(are_few && self.approvers.iter().all(is_named), Field::Approvers, entries)?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (min, max) = (millis(APPROVAL_FOR_MIN), millis(APPROVAL_FOR_MAX));
        let between = Rule::Between { min, max };
        holds((min..=max).contains(&millis(self.within)), Field::ApprovalTime, between)
    }
}

/// Somebody decides.
#[derive(Clone, Debug)]
pub struct DecideApproval {
    /// The agent that decides.
    pub caller: Caller,
    /// In this room.
    pub room: RoomId,
    /// The message of the approval.
    pub approval: MessageId,
    /// The decision.
    pub choice: Choice,
    /// Why.
    pub reason: Option<String>,
}

impl DecideApproval {
    /// Whether its fields keep to their bounds.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        check_reason(self.reason.as_deref())
    }
}

/// Whether the reason of a decision keeps to its bound.
///
/// # Errors
/// It does not.
pub fn check_reason(reason: Option<&str>) -> Result<(), Broken> {
    reason.map_or(Ok(()), |reason| within(Field::Reason, reason, APPROVAL_REASON_BYTES_MAX))
}

/// What somebody says about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The agent may.
    Approve,
    /// It may, and whenever it asks for the same in this room.
    Always,
    /// It may not.
    Deny,
    /// It is to ask for something else.
    Change,
    /// It has to ask again from now on: no longer for always.
    Withdraw,
}

/// A decision that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent may.
    Approved,
    /// It may, and whenever it asks for the same in this room.
    Always,
    /// It may, for so it was decided for always before.
    ByRule,
    /// It may not.
    Denied,
    /// It is to ask for something else.
    Changes,
    /// Nobody has decided in time: it may not.
    Expired,
}

impl Verdict {
    /// Whether the agent may.
    #[must_use]
    pub fn allows(self) -> bool {
        match self {
            Verdict::Approved | Verdict::Always | Verdict::ByRule => true,
            Verdict::Denied | Verdict::Changes | Verdict::Expired => false,
        }
    }

    /// Its word, the same in all messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Approved | Verdict::ByRule => "approved",
            Verdict::Always => "always",
            Verdict::Denied => "denied",
            Verdict::Changes => "changes",
            Verdict::Expired => "expired",
        }
    }
}

/// A decision, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// It.
    pub verdict: Verdict,
    /// By whom. `None`: by nobody in time, or by a rule.
    pub by: Option<AgentId>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// When, by the clock of its author's node. Unix milliseconds.
    pub at_ms: u64,
}

/// An approval, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalView {
    /// The message in which the agent asked.
    pub id: MessageId,
    /// Where.
    pub room: RoomId,
    /// The agent.
    pub by: AgentId,
    /// The thing that it wants to do.
    pub text: Arc<str>,
    /// Those who may decide. Empty: all who may write in the room, but for the agent itself.
    pub approvers: Arc<[AgentId]>,
    /// When it asked, by its node's clock. Unix milliseconds.
    pub asked_ms: u64,
    /// Until then it can be decided. Unix milliseconds.
    pub until_ms: u64,
    /// The decision that stands, if there is one.
    pub decided: Option<Decided>,
    /// Whether it holds for what the agent asks later, too.
    pub is_rule: bool,
}

impl ApprovalView {
    /// Whether this agent may decide.
    #[must_use]
    pub fn may_be_decided_by(&self, agent: &str) -> bool {
        let named = self.approvers.is_empty() || self.approvers.iter().any(|it| **it == *agent);
        named && *self.by != *agent
    }
}

/// The end of an attempt to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedNow {
    /// Whether it is as this one wanted it. `false`: somebody else was first, or it was too late.
    pub granted: bool,
    /// The approval now.
    pub approval: ApprovalView,
}

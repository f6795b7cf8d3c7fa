//! Things that at most one agent does, as clients ask for them and are told (`docs/decisions/once.md`).

use std::{sync::Arc, time::Duration};

use crate::{
    api::{
        command::Caller,
        rules::{Broken, Field, Rule, holds, within},
    },
    limits::{ONCE_LEASE_MAX, ONCE_LEASE_MIN, ONCE_SUBJECT_BYTES_MAX},
    name::id::{AgentId, MessageId, RoomId},
};

/// An agent asks for something that at most one is to have.
#[derive(Clone, Debug)]
pub struct Once {
    /// The agent.
    pub caller: Caller,
    /// In this room's log.
    pub room: RoomId,
    /// The thing.
    pub subject: String,
    /// What it wants of it.
    pub want: OnceWant,
}

/// What an agent wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceWant {
    /// To have it. With a lease it is free again when that has run out.
    Take(Option<Duration>),
    /// Its lease is to begin anew.
    Renew(MessageId),
    /// It is free again.
    Release(MessageId),
}

/// Whether the fields of such an ask keep to their bounds.
///
/// # Errors
/// The first field that breaks a rule.
pub fn check_once(subject: &str, want: OnceWant) -> Result<(), Broken> {
    within(Field::Subject, subject, ONCE_SUBJECT_BYTES_MAX)?;
    let is_plain = !subject.trim().is_empty() && !subject.chars().any(char::is_control);
    holds(is_plain, Field::Subject, Rule::Plain)?;
    let OnceWant::Take(Some(lease)) = want else { return Ok(()) };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (min, max) = (millis(ONCE_LEASE_MIN), millis(ONCE_LEASE_MAX));
    holds((min..=max).contains(&millis(lease)), Field::Lease, Rule::Between { min, max })
}

/// The answer to one that has asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceAnswered {
    /// The thing.
    pub subject: String,
    /// Whether it was granted, renewed, given back.
    pub granted: bool,
    /// The grant that stands now. `None`: there is none, or it was given back.
    pub holder: Option<OnceHolder>,
    /// How many nodes hold the answer durably, this one included; of one that is granted.
    pub durable: Option<usize>,
}

/// The one that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceHolder {
    /// The agent.
    pub agent: AgentId,
    /// The grant: names it when it is renewed, or given back.
    pub grant: MessageId,
    /// For so long at a time. `None`: without an end.
    pub lease: Option<Duration>,
}

/// An agent of this node does not have it any more, though it was told that it has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceLost {
    /// The agent that had it.
    pub agent: AgentId,
    /// The thing.
    pub subject: Arc<str>,
    /// Its grant.
    pub grant: MessageId,
    /// The one that has it now.
    pub holder: Option<OnceHolder>,
    /// Why.
    pub why: WhyLost,
}

/// Why somebody does not have it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyLost {
    /// Its lease had run out, and another one asked.
    Lapsed,
    /// Another one was granted it earlier, on the other side of a split.
    Split,
}

//! The fate of a request: one that a node has, has given to the agent that is asked, or gives up. An act of the request's
//! own room, sealed as the room is ([`crate::wire::kinds`]).

use minicbor::{Decode, Encode};

use crate::{
    limits::RULE_BYTES_MAX,
    name::id::{AgentId, EntryRef, KeyPrint},
    wire::cbor::text,
};

/// The word of a node about a request, at most one of each kind.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeliveryAct {
    /// The message.
    #[n(0)]
    pub request: EntryRef,
    /// The agent that is asked.
    #[cbor(n(1), with = "text")]
    pub to: AgentId,
    /// The key of that agent that its author has been shown. `None`: it checks no keys, or it speaks for the other side.
    #[n(2)]
    pub key: Option<KeyPrint>,
    /// The fate of it.
    #[n(3)]
    pub word: Word,
}

/// The fate of a request, as one node says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Word {
    /// It is here, at a node of the agent that is asked.
    #[n(0)]
    Arrived,
    /// It was handed to that agent.
    #[n(1)]
    Delivered,
    /// It was not, and is not to be.
    #[n(2)]
    Failed(#[n(0)] Reason),
}

/// Why a request is not handed over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Reason {
    /// Nobody was given it for as long as its node keeps requests. By the node of its author.
    #[n(0)]
    Expired,
    /// The key of the agent that is asked was revoked. By the node of its author.
    #[n(1)]
    KeyRevoked,
    /// All nodes of the agent that is asked were removed. By the node of its author.
    #[n(2)]
    NodeGone,
    /// A node of the agent that is asked refuses it, by this rule of its own.
    #[n(3)]
    Refused(#[n(0)] String),
}

impl Reason {
    /// Whether the node that the request was written at says so, and not one of the agent that is asked.
    #[must_use]
    pub fn is_of_author(&self) -> bool {
        match self {
            Reason::Expired | Reason::KeyRevoked | Reason::NodeGone => true,
            Reason::Refused(_) => false,
        }
    }

    /// As clients are told.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Reason::Expired => "expired".to_owned(),
            Reason::KeyRevoked => "key_revoked".to_owned(),
            Reason::NodeGone => "node_gone".to_owned(),
            Reason::Refused(rule) => format!("refused: {rule}"),
        }
    }

    /// Whether its text can be a rule's name: others' hosts are shown it.
    pub(crate) fn is_sound(&self) -> bool {
        let Reason::Refused(rule) = self else { return true };
        let is_name = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-[]".contains(&byte)
        };
        (1..=RULE_BYTES_MAX).contains(&rule.len()) && rule.bytes().all(is_name)
    }
}

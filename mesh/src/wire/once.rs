//! *Once*: something that at most one agent does. An act of any room; the sequencer of the room's current era answers
//! (`docs/decisions/once.md`).

use minicbor::{Decode, Encode};

use crate::{
    name::{
        id::{AgentId, EntryRef, KeyPrint},
        number::Era,
    },
    wire::cbor::text,
};

/// One step of a *once*.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OnceAct {
    /// An agent asks. It changes nothing by itself.
    #[n(0)]
    Asked(#[n(0)] OnceAsked),
    /// A sequencer's answer: it is what counts.
    #[n(1)]
    Answered(#[n(0)] OnceAnswer),
}

/// See [`OnceAct::Asked`]. Of one that is granted, this entry names the grant from then on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OnceAsked {
    /// The thing that is to be done once: at most [`crate::limits::ONCE_SUBJECT_BYTES_MAX`].
    #[n(0)]
    pub subject: String,
    /// The agent that asks.
    #[cbor(n(1), with = "text")]
    pub by: AgentId,
    /// What it asks for.
    #[n(2)]
    pub wish: OnceWish,
    /// The current era, as far as its author knows: the sequencer of an earlier one must not answer.
    #[n(3)]
    pub era: Era,
    /// The key in whose name the agent's node speaks, as of [`crate::wire::entry::Said`].
    #[n(4)]
    pub key: Option<KeyPrint>,
}

/// What an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OnceWish {
    /// To have it, as the only one; with a lease, for so many milliseconds at a time.
    #[n(0)]
    Take(#[n(0)] Option<u64>),
    /// To keep what this entry asked for: its lease begins anew.
    #[n(1)]
    Renew(#[n(0)] EntryRef),
    /// To give back what this entry asked for.
    #[n(2)]
    Release(#[n(0)] EntryRef),
}

/// See [`OnceAct::Answered`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OnceAnswer {
    /// The era whose sequencer answers.
    #[n(0)]
    pub era: Era,
    /// The [`OnceAsked`].
    #[n(1)]
    pub asked: EntryRef,
    /// Whether it is granted.
    #[n(2)]
    pub verdict: OnceVerdict,
    /// As of [`crate::wire::entry::Ordered`].
    #[n(3)]
    pub by: Option<EntryRef>,
}

/// A sequencer's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OnceVerdict {
    /// The agent has it.
    #[n(0)]
    Granted(#[n(0)] OnceGrant),
    /// The lease of this grant begins anew.
    #[n(1)]
    Renewed(#[n(0)] EntryRef),
    /// This grant is given back.
    #[n(2)]
    Released(#[n(0)] EntryRef),
    /// Another one has it, or nobody has what was to be renewed.
    #[n(3)]
    Held,
    /// The sequencer does not know that the node can speak for the agent.
    #[n(4)]
    Unproven,
    /// The room has as many as it may.
    #[n(5)]
    Full,
}

/// A grant: it says all of it, because the sequencers of two eras may answer one ask.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OnceGrant {
    /// As asked.
    #[n(0)]
    pub subject: String,
    /// As asked.
    #[cbor(n(1), with = "text")]
    pub by: AgentId,
    /// As asked, in milliseconds.
    #[n(2)]
    pub lease_ms: Option<u64>,
    /// Grants of the same subject that are over, as its sequencer judges: their leases have run out, or they are old. This
    /// one replaces them.
    #[n(3)]
    pub over: Vec<EntryRef>,
    /// As asked: so that the node that asked can give it back for the agent.
    #[n(4)]
    pub key: Option<KeyPrint>,
}

impl OnceAct {
    /// The entries that it names.
    pub(super) fn names(&self) -> Vec<EntryRef> {
        match self {
            OnceAct::Asked(asked) => match asked.wish {
                OnceWish::Take(_) => Vec::new(),
                OnceWish::Renew(grant) | OnceWish::Release(grant) => vec![grant],
            },
            OnceAct::Answered(answer) => {
                let mut names = match &answer.verdict {
                    OnceVerdict::Granted(grant) => grant.over.clone(),
                    OnceVerdict::Renewed(grant) | OnceVerdict::Released(grant) => vec![*grant],
                    OnceVerdict::Held | OnceVerdict::Unproven | OnceVerdict::Full => Vec::new(),
                };
                names.push(answer.asked);
                names.extend(answer.by);
                names
            }
        }
    }
}

//! The table of the kinds of entries. A new kind is a row here, and nothing compiles before it has one.
//!
//! Other code asks the table instead of listing variants: [`Body::traits`] of a body that was read,
//! [`traits`] of a kind that a header names.

use minicbor::Decode;

use crate::{
    limits::CLAIM_SEEN_MAX,
    name::{
        id::{EntryRef, MessageId},
        identity::Judge,
    },
    wire::{
        account::AccountClaimed,
        acts::{ElectionAct, KeyAct, TaskAct, VoteAct},
        approval::ApprovalAct,
        cbor::encode,
        delivery::DeliveryAct,
        entry::{
            AgentClaimed, Body, Decision, DirectClosed, DirectOpened, EraClaimed, HandedOver,
            NodeAdmitted, NodeParted, Ordered, RoomCreated, Said,
        },
        once::OnceAct,
        signatures::SignedLog,
    },
};

/// The part of a node that takes an entry in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Words of an agent. Their bodies go when they are old.
    Said,
    /// The order of entries.
    Order,
    /// Acts of the directory.
    Directory,
    /// A step of a vote.
    Vote,
    /// A step of an election.
    Election,
    /// A step of a task.
    Task,
    /// The fate of a request.
    Delivery,
    /// Something that at most one agent does.
    Once,
    /// Something that people decide.
    Approval,
    /// A kind of a later version, or a body that cannot be read.
    Unknown,
}

impl Class {
    /// Votes, elections, tasks, the fate of requests, things that one agent does, and approvals: their state follows from all
    /// acts of a room.
    #[must_use]
    pub fn is_act(self) -> bool {
        matches!(
            self,
            Class::Vote
                | Class::Election
                | Class::Task
                | Class::Delivery
                | Class::Once
                | Class::Approval
        )
    }
}

/// Whether clients see an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It takes numbers, and clients see it.
    Numbered,
    /// It takes none.
    Hidden,
}

/// Whether an entry begins a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Receivers judge it by the entries before the run.
    Always,
    /// Receivers may need the runs that were accepted here meanwhile.
    IfHeard,
    /// It may follow any entry under the same seal.
    Never,
}

/// Whose signature an entry has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Its author's, under the run.
    ByNode,
    /// Besides, an API key's, in its body ([`crate::wire::signatures`]). So the body travels in the run.
    ByKey,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The number of the kind in headers.
    pub kind: u8,
    /// For logs.
    pub name: &'static str,
    /// The part that takes it in.
    pub class: Class,
    /// Whether clients see it.
    pub seen: Seen,
    /// Whether it begins a run, as a rule: [`Body::begins`] knows the exceptions.
    pub begins: Begins,
    /// Whose signature it has to have.
    pub signed: Signed,
}

/// Not in headers of this version: its author knows whether it is visible.
const UNKNOWN: Traits = Traits {
    kind: 0,
    name: "unknown",
    class: Class::Unknown,
    seen: Seen::Hidden,
    begins: Begins::IfHeard,
    signed: Signed::ByNode,
};

/// The parts of a body that code asks for without knowing its kind.
trait Payload {
    /// See [`Body::names`].
    fn names(&self) -> Vec<EntryRef> {
        Vec::new()
    }

    /// See [`Body::words`].
    fn words(&self) -> Option<&Said> {
        None
    }

    /// See [`Body::foreign_id_mut`].
    fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
        None
    }

    /// See [`Body::is_signed`].
    fn is_signed(&self, _judge: &dyn Judge, _log: &SignedLog) -> bool {
        true
    }
}

macro_rules! kinds {
    ($( $constant:ident = $number:literal, $variant:ident($body:ty), $name:literal,
        $class:ident, $seen:ident, $begins:ident, $signed:ident; )*) => {
        $(
            #[doc = concat!("The kind of [`Body::", stringify!($variant), "`].")]
            pub const $constant: u8 = $number;
        )*

        /// The row of a kind; `None`: a kind of a later version.
        #[must_use]
        pub fn traits(kind: u8) -> Option<Traits> {
            Some(match kind {
                $( $number => Traits {
                    kind: $number,
                    name: $name,
                    class: Class::$class,
                    seen: Seen::$seen,
                    begins: Begins::$begins,
                    signed: Signed::$signed,
                }, )*
                _ => return None,
            })
        }

        impl Body {
            /// The number of its kind in headers.
            #[must_use]
            pub fn kind(&self) -> u8 {
                match self {
                    $( Body::$variant(_) => $number, )*
                    Body::Unknown => UNKNOWN.kind,
                }
            }

            /// Deterministic CBOR.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $( Body::$variant(body) => encode::<$body>(body), )*
                    Body::Unknown => Vec::new(),
                }
            }

            /// Reads a body of `kind`. Never fails: a body that cannot be read is [`Body::Unknown`] to every
            /// node of this version alike.
            #[must_use]
            pub fn decode(kind: u8, bytes: &[u8]) -> Body {
                match kind {
                    $( $number => read(bytes, Body::$variant), )*
                    _ => Body::Unknown,
                }
            }

            /// The entries of the same room that have to be here before this one is accepted.
            pub(crate) fn names(&self) -> Vec<EntryRef> {
                match self {
                    $( Body::$variant(body) => body.names(), )*
                    Body::Unknown => Vec::new(),
                }
            }

            /// The words of an agent, if it has any.
            #[must_use]
            pub fn words(&self) -> Option<&Said> {
                match self {
                    $( Body::$variant(body) => body.words(), )*
                    Body::Unknown => None,
                }
            }

            /// Whether the API key that it speaks for has signed it, in this log. Others have nothing to sign.
            pub(crate) fn is_signed(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
                match self {
                    $( Body::$variant(body) => body.is_signed(judge, log), )*
                    Body::Unknown => true,
                }
            }

            /// The id that it was given elsewhere, where a body can have one ([`crate::api::import`]).
            pub fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
                match self {
                    $( Body::$variant(body) => body.foreign_id_mut(), )*
                    Body::Unknown => None,
                }
            }
        }
    };
}

kinds! {
    CHAT          =  1, Chat(Said),                 "chat",          Said,      Numbered, Never,   ByNode;
    THINKING      =  2, Thinking(Said),             "thinking",      Said,      Numbered, Never,   ByNode;
    DECISION      =  3, Decision(Decision),         "decision",      Said,      Numbered, Always,  ByNode;
    ORDERED       = 16, Ordered(Ordered),           "ordered",       Order,     Hidden,   IfHeard, ByNode;
    ERA_CLAIMED   = 17, EraClaimed(EraClaimed),     "era_claimed",   Order,     Hidden,   IfHeard, ByNode;
    HANDED_OVER   = 18, HandedOver(HandedOver),     "handed_over",   Order,     Hidden,   IfHeard, ByNode;
    NODE_ADMITTED = 32, NodeAdmitted(NodeAdmitted), "node_admitted", Directory, Hidden,   IfHeard, ByNode;
    ROOM_CREATED  = 33, RoomCreated(RoomCreated),   "room_created",  Directory, Numbered, IfHeard, ByNode;
    AGENT_CLAIMED = 34, AgentClaimed(AgentClaimed), "agent_claimed", Directory, Numbered, IfHeard, ByKey;
    KEY           = 35, Key(KeyAct),                "key",           Directory, Hidden,   IfHeard, ByKey;
    PARTED        = 36, Parted(NodeParted),         "parted",        Directory, Hidden,   IfHeard, ByNode;
    DIRECT_OPENED = 37, DirectOpened(DirectOpened), "direct_opened", Directory, Hidden,   IfHeard, ByNode;
    DIRECT_CLOSED = 38, DirectClosed(DirectClosed), "direct_closed", Directory, Hidden,   IfHeard, ByNode;
    ACCOUNT_CLAIMED = 39, AccountClaimed(AccountClaimed), "account_claimed", Directory, Numbered, IfHeard, ByKey;
    VOTE          = 48, Vote(VoteAct),              "vote",          Vote,      Hidden,   IfHeard, ByNode;
    ELECTION      = 49, Election(ElectionAct),      "election",      Election,  Hidden,   IfHeard, ByNode;
    TASK          = 50, Task(TaskAct),              "task",          Task,      Hidden,   IfHeard, ByNode;
    DELIVERY      = 51, Delivery(DeliveryAct),      "delivery",      Delivery,  Hidden,   IfHeard, ByNode;
    ONCE          = 52, Once(OnceAct),              "once",          Once,      Hidden,   IfHeard, ByNode;
    APPROVAL      = 55, Approval(ApprovalAct),      "approval",      Approval,  Hidden,   IfHeard, ByNode;
}

/// The part that takes entries of this kind in.
#[must_use]
pub fn class(kind: u8) -> Class {
    traits(kind).map_or(Class::Unknown, |row| row.class)
}

/// Whether entries of this kind are acts of rooms ([`crate::wire::acts`]), of later versions, too. An engine
/// folds them all anew when it starts, so a store keeps an index of them.
#[must_use]
pub fn is_act(kind: u8) -> bool {
    (48..=63).contains(&kind)
}

impl Body {
    /// Its row of the table.
    #[must_use]
    pub fn traits(&self) -> Traits {
        traits(self.kind()).unwrap_or(UNKNOWN)
    }

    /// Whether it takes numbers, and clients see it.
    #[must_use]
    pub fn visible(&self) -> bool {
        self.traits().seen == Seen::Numbered
    }

    /// Whether it begins a run.
    #[must_use]
    pub fn begins(&self) -> Begins {
        // It names no handover that others would have to have first.
        let claimed = matches!(self, Body::Ordered(ordered) if ordered.by.is_none());
        // Its term follows those before.
        let starts = matches!(self, Body::Election(ElectionAct::Started(_)));
        match (claimed, starts) {
            (true, _) => Begins::Never,
            (_, true) => Begins::Always,
            (false, false) => self.traits().begins,
        }
    }

    /// The words of an agent, if it has any.
    #[must_use]
    pub fn said(self) -> Option<Said> {
        if let Body::Chat(said) | Body::Thinking(said) = self {
            return Some(said);
        }
        if let Body::Decision(decision) = self { Some(decision.said) } else { None }
    }
}

impl Payload for Said {
    fn words(&self) -> Option<&Said> {
        Some(self)
    }

    fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
        Some(&mut self.id)
    }
}

impl Payload for Decision {
    fn names(&self) -> Vec<EntryRef> {
        vec![self.election]
    }

    fn words(&self) -> Option<&Said> {
        Some(&self.said)
    }

    fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
        Some(&mut self.said.id)
    }
}

impl Payload for Ordered {
    fn names(&self) -> Vec<EntryRef> {
        self.by.into_iter().collect()
    }
}

impl Payload for HandedOver {
    fn names(&self) -> Vec<EntryRef> {
        self.by.into_iter().collect()
    }
}

impl Payload for EraClaimed {
    fn names(&self) -> Vec<EntryRef> {
        self.seen.iter().take(CLAIM_SEEN_MAX).copied().collect()
    }
}

impl Payload for NodeAdmitted {}
impl Payload for RoomCreated {}
impl Payload for DirectOpened {}

impl Payload for DirectClosed {
    fn names(&self) -> Vec<EntryRef> {
        vec![self.opened]
    }
}

impl Payload for AgentClaimed {
    fn is_signed(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        self.is_signed_by_its_key(judge, log.mesh)
    }
}

impl Payload for AccountClaimed {
    fn is_signed(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        self.is_signed_by_its_account(judge, log)
    }
}

impl Payload for KeyAct {
    fn is_signed(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        match self {
            KeyAct::Minted(minted) => minted.is_signed_by_its_key(judge, log),
            KeyAct::Shown(shown) => shown.is_voucher(judge, log),
            KeyAct::Replaced(replaced) => replaced.is_signed_by_its_keys(judge, log),
            // Any node may revoke.
            KeyAct::Revoked(_) => true,
        }
    }
}

impl Payload for NodeParted {}

impl Payload for VoteAct {
    fn names(&self) -> Vec<EntryRef> {
        VoteAct::names(self)
    }

    fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
        if let VoteAct::Imported(vote) = self { Some(&mut vote.id) } else { None }
    }
}

impl Payload for ElectionAct {
    fn names(&self) -> Vec<EntryRef> {
        ElectionAct::names(self)
    }
}

impl Payload for TaskAct {
    fn names(&self) -> Vec<EntryRef> {
        TaskAct::names(self)
    }

    fn foreign_id_mut(&mut self) -> Option<&mut Option<MessageId>> {
        if let TaskAct::Assigned(task) = self { Some(&mut task.id) } else { None }
    }
}

impl Payload for DeliveryAct {
    fn names(&self) -> Vec<EntryRef> {
        vec![self.request]
    }
}

impl Payload for OnceAct {
    fn names(&self) -> Vec<EntryRef> {
        OnceAct::names(self)
    }
}

impl Payload for ApprovalAct {
    fn names(&self) -> Vec<EntryRef> {
        ApprovalAct::names(self)
    }
}

fn read<'b, T: Decode<'b, ()>>(bytes: &'b [u8], body: fn(T) -> Body) -> Body {
    minicbor::decode(bytes).map_or(Body::Unknown, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ranges_of_numbers() {
        for kind in 0..=u8::MAX {
            let class = class(kind);
            let range = match kind {
                1..=15 => class == Class::Said,
                16..=31 => class == Class::Order,
                32..=47 => class == Class::Directory,
                48..=63 => class.is_act(),
                0 | 64.. => false,
            };
            assert!(range || class == Class::Unknown, "{kind}: {class:?}");
            assert!(is_act(kind) || !class.is_act(), "{kind} is in a store's index of acts");
        }
    }

    #[test]
    fn a_body_is_read_as_the_kind_that_it_is_written_as() {
        let parted = Body::decode(
            PARTED,
            &Body::Key(KeyAct::Revoked(crate::name::id::KeyPrint::OPEN)).encode(),
        );
        assert_eq!(parted, Body::Unknown, "of another kind");
        let body = Body::Key(KeyAct::Revoked(crate::name::id::KeyPrint::OPEN));
        assert_eq!(body.kind(), KEY);
        assert_eq!(Body::decode(body.kind(), &body.encode()), body);
        assert_eq!((body.traits().name, body.visible()), ("key", false));
        assert_eq!(Body::Unknown.traits(), UNKNOWN);
    }
}

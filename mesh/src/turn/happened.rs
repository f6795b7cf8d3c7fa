//! Events within a turn: a room reports them, and the engine acts on them before the turn ends.
//!
//! One queue holds them all. The engine takes them step by step ([`Step`]), not in the order in which
//! they were reported: names are settled before forks, forks before deliveries.

use crate::{
    api::{batch::NumberRange, event::Delivered},
    name::{
        id::{AgentId, LocalRef, LogId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::{Body, Facts},
        run::{Certificate, Verified},
    },
};

/// An event within a turn.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    /// An entry of a directory has become known.
    Listed(Fact),
    /// An entry of a directory got a number, beside those it had.
    Numbered { room: RoomId, at: LocalRef, number: Number },
    /// A log forked.
    Forked(Proof),
    /// An entry was delivered; it mentions these agents, which have an inbox here.
    Delivered { room: RoomId, entry: Delivered, numbers: NumberRange, mentioned: Vec<AgentId> },
    /// A number was passed over: its entry is here, and was delivered before.
    PassedOver { room: RoomId, number: Number, at: LocalRef },
    /// This node claimed an era in an ephemeral room.
    ClaimedInMemory { room: RoomId, era: Era },
    /// A `HandedOver` entry names this node's log; `from` is the log that had the era before.
    HandedToMe { room: RoomId, era: Era, from: LogId },
}

/// When the engine acts on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Listed,
    Numbered,
    Forked,
    /// Of numbers within a room, in their order.
    Delivered,
    ClaimedInMemory,
    HandedToMe,
}

impl Happened {
    fn step(&self) -> Step {
        match self {
            Happened::Listed(_) => Step::Listed,
            Happened::Numbered { .. } => Step::Numbered,
            Happened::Forked(_) => Step::Forked,
            Happened::Delivered { .. } | Happened::PassedOver { .. } => Step::Delivered,
            Happened::ClaimedInMemory { .. } => Step::ClaimedInMemory,
            Happened::HandedToMe { .. } => Step::HandedToMe,
        }
    }
}

/// The events that the engine has not acted on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Vec<Happened>);

impl Events {
    pub(crate) fn push(&mut self, happened: Happened) {
        self.0.push(happened);
    }

    /// Takes the events of a step, in the order in which they were reported.
    pub(crate) fn take(&mut self, step: Step) -> Vec<Happened> {
        self.0.extract_if(.., |happened| happened.step() == step).collect()
    }
}

/// A directory entry.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) room: RoomId,
    pub(crate) at: LocalRef,
    pub(crate) log: LogId,
    pub(crate) facts: Facts,
    pub(crate) body: Body,
}

/// The proof that a log forked.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub(crate) certificate: Certificate,
    pub(crate) run: Verified,
}

impl Proof {
    /// Two histories of one log: a seal over a place, and a run that has another header there.
    pub(crate) fn holds(&self) -> bool {
        let (seal, run) = (&self.certificate, self.run.run());
        seal.seq > 0
            && (seal.room, seal.log) == (run.room, run.log)
            && self.run.hash_at(seal.seq).is_some_and(|hash| hash != seal.hash)
    }
}

//! Schedules of a key, as those who keep them change them.

use std::sync::Arc;

use crate::{
    name::{
        id::{JobId, KeyPrint, RoomId},
        key::KeySecret,
    },
    records::schedules::{JobText, RunText},
};

/// A change of a schedule, by the holder of the key whose room it is in.
#[derive(Clone, Debug)]
pub struct ScheduleChange {
    /// A direct room of the key with itself.
    pub room: RoomId,
    /// The key.
    pub key: KeyPrint,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The change.
    pub act: ScheduleAct,
}

/// See [`ScheduleChange`].
#[derive(Clone, Debug)]
pub enum ScheduleAct {
    /// A job is to be this.
    Put(JobId, JobText),
    /// A job is deleted, for ever.
    Remove(JobId),
    /// This has become of a run.
    Ran(RunText),
}

impl ScheduleAct {
    /// Bytes that the client chose.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            ScheduleAct::Put(_, text) => text.facts.len() + text.message.len(),
            ScheduleAct::Remove(_) => 0,
            ScheduleAct::Ran(run) => run.facts.len(),
        }
    }
}

//! Schedules of a key: jobs, and what became of their runs.

use mesh::{
    api::command::{Command, ScheduleAct, ScheduleChange},
    name::id::RoomId,
};

use super::to_mesh::{Call, Row, ToMesh};
use crate::{
    seam::refusal::{Bound, Refusal},
    session::party::Party,
};

/// A job is to be written or deleted, as a client wants it. Answered when it is durable.
#[derive(Clone, Debug)]
pub(crate) struct ChangeJob {
    /// The room of the key's schedule.
    pub(crate) room: RoomId,
    /// The change.
    pub(crate) act: ScheduleAct,
}

/// This has become of a run, or of its job with it: nobody has asked for that.
#[derive(Clone, Debug)]
pub(crate) struct NoteRun(pub(crate) ChangeJob);

fn command(change: ChangeJob, party: &Party) -> Command {
    let ChangeJob { room, act } = change;
    let (key, signer) = (party.key(), party.signer().cloned());
    Command::ChangeSchedule(Box::new(ScheduleChange { room, key, signer, act }))
}

impl Call for ChangeJob {
    type Answer = ();
}

impl Call for NoteRun {
    type Answer = ();
}

impl ToMesh for ChangeJob {
    const ROW: Row = Row::counted(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(command(self, party))
    }
}

impl ToMesh for NoteRun {
    const ROW: Row = Row::act(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(command(self.0, party))
    }
}

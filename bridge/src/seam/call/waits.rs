//! Agents that wait for others.

use mesh::api::{command::Command, waits::WaitView};

use super::{Call, to_mesh::ToMesh};
use crate::{seam::refusal::Refusal, session::party::Party};

/// Agents that wait for others in rooms that the caller may read, the longest first: for answers, ballots, tasks, decisions. The
/// holder of a key sees the direct rooms of all its agents.
#[derive(Clone, Copy, Debug)]
pub struct ListWaits;

impl Call for ListWaits {
    type Answer = Vec<WaitView>;
}

impl ToMesh for ListWaits {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListWaits { by: party.as_reader() })
    }
}

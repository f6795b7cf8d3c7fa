//! The past of a room, for its [replay](crate::replay).

use std::sync::Arc;

use mesh::{chronicle::Position, name::id::RoomId};

use super::{Desk, Visitor};
use crate::{backend::Past, replay::Tapes, seam::refusal::Refusal};

impl Desk {
    /// The oldest things that happened in a room after a position, so many, in the order of all its entries.
    pub(crate) async fn past(
        &self,
        visitor: &Visitor,
        room: RoomId,
        (after, limit): (Option<Position>, usize),
    ) -> Result<Vec<Past>, Refusal> {
        self.may_read(visitor, room)?;
        let read = self.office.reader.blocking(move |reads| reads.past(room, after, limit));
        Ok(read.await?)
    }

    pub(crate) fn tapes(&self) -> &Arc<Tapes> {
        &self.tapes
    }
}

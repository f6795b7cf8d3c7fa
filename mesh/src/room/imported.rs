//! What the founder of a mesh brought from a ClawChat server ([`crate::api::import`]): who may write it,
//! and writing messages under the numbers that they had there.

use super::Room;
use crate::{
    api::import::may_bring,
    engine::context::Context,
    limits::ORDERED_ITEMS_MAX,
    name::{
        id::{LocalRef, LogId},
        number::Era,
    },
    wire::{
        acts::{TaskAct, VoteAct},
        entry::{Body, Decision, Items, Ordered},
    },
};

/// An item of an [`Ordered`] that names no log: its numbers name nothing.
const NO_LOG: u32 = u32::MAX;

impl Room {
    /// Whether this log may say what a ClawChat server had.
    pub(super) fn takes_imports_of(&self, log: LogId) -> bool {
        may_bring(&self.record, self.id, log)
    }

    /// An entry of this log as it counts: without an id that it cannot give.
    pub(super) fn with_its_id(&self, log: LogId, mut body: Body) -> Body {
        let id = match &mut body {
            Body::Chat(said) | Body::Thinking(said) | Body::Decision(Decision { said, .. }) => {
                &mut said.id
            }
            Body::Vote(VoteAct::Imported(vote)) => &mut vote.id,
            Body::Task(TaskAct::Assigned(task)) => &mut task.id,
            Body::Ordered(_)
            | Body::EraClaimed(_)
            | Body::HandedOver(_)
            | Body::NodeAdmitted(_)
            | Body::RoomCreated(_)
            | Body::AgentClaimed(_)
            | Body::Key(_)
            | Body::Parted(_)
            | Body::Vote(_)
            | Body::Election(_)
            | Body::Task(_)
            | Body::Unknown => return body,
        };
        *id = id.filter(|it| it.is_foreign() && self.takes_imports_of(log));
        body
    }

    /// Whether this node may bring numbers here: it gives those of the home era, and no others were given.
    pub(crate) fn can_import(&self) -> bool {
        self.takes_imports_of(self.mine)
            && self.numbering.current() == Era::HOME
            && self.numbering.sequencer() == self.mine
    }

    /// The number that is given next.
    pub(crate) fn next_home_number(&self) -> u64 {
        self.numbering.known(Era::HOME) + 1
    }

    /// Gives these entries these numbers of the home era, ascending, and what is between them and up to
    /// `next` (left out) to nothing. `false`: they cannot be given.
    pub(crate) fn issue_imported(
        &mut self,
        cx: &mut Context,
        entries: &[(LocalRef, u64)],
        next: u64,
    ) -> bool {
        let mut parts = entries.chunks(ORDERED_ITEMS_MAX).peekable();
        while let Some(part) = parts.next() {
            let upto = if parts.peek().is_some() { None } else { Some(next) };
            if !self.write_numbers(cx, part, upto) {
                return false;
            }
        }
        let rest = entries.is_empty() && next > self.next_home_number();
        let written = !rest || self.write_numbers(cx, &[], Some(next));
        self.deliver(cx);
        written
    }

    fn write_numbers(
        &mut self,
        cx: &mut Context,
        part: &[(LocalRef, u64)],
        upto: Option<u64>,
    ) -> bool {
        let first = self.next_home_number();
        let mut items: Vec<Items> = Vec::new();
        let mut reached = first;
        for (at, number) in part {
            skip(&mut items, number.saturating_sub(reached));
            match items.last_mut() {
                Some(last) if last.log == 0 && last.from + u64::from(last.count) == at.seq => {
                    last.count += 1;
                }
                Some(_) | None => items.push(Items { log: 0, from: at.seq, count: 1 }),
            }
            reached = number + 1;
        }
        skip(&mut items, upto.map_or(0, |upto| upto.saturating_sub(reached)));
        let logs = if part.is_empty() { Vec::new() } else { vec![self.mine] };
        let by = self.numbering.by(Era::HOME);
        let ordered = Ordered { era: Era::HOME, first, logs, items, by };
        self.append(cx, &Body::Ordered(ordered)).is_some()
    }
}

/// So many numbers that name nothing.
fn skip(items: &mut Vec<Items>, mut count: u64) {
    while count > 0 {
        let part = u32::try_from(count).unwrap_or(u32::MAX);
        items.push(Items { log: NO_LOG, from: 1, count: part });
        count -= u64::from(part);
    }
}

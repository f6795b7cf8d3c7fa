//! States of files that newer ones have replaced: other nodes are asked for theirs first.

use mesh::{
    api::{
        command::{Command, GatherReplaced},
        rules::{Broken, Field, Rule},
    },
    name::id::RoomId,
    records::files::check_path,
    wire::record::Stamp,
};

use super::{
    ask::Ask,
    job::{OneReplaced, ReplacedOf},
    party::Party,
    seat::{Seat, Then},
};
use crate::{
    backend::FoundReplaced,
    seam::{
        call::{GetReplaced, ListReplaced},
        refusal::{Bound, Refusal},
    },
};

impl Ask for ListReplaced {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = self.0;
        seat.look_up(Some(room), then, move |seat, me, then| {
            let gathered = move |seat: &mut Seat, asked: Result<(), Refusal>| match asked {
                Ok(()) => seat.read(ReplacedOf(room), move |seat, found| {
                    then(seat, found.map_err(Refusal::from));
                }),
                Err(refusal) => then(seat, Err(refusal)),
            };
            seat.gather(&me, (room, None), gathered);
        });
    }
}

impl Ask for GetReplaced {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let GetReplaced { room, path, nth } = self;
        if let Err(rule) = check_path(&path) {
            let at = Broken { field: Field::Path, rule: Rule::Path(rule) };
            return then(seat, Err(at.into()));
        }
        seat.look_up(Some(room), then, move |seat, me, then| {
            if let Err(refusal) = seat.rules.readable(&me, room) {
                return then(seat, Err(refusal));
            }
            let wanted = OneReplaced { room, path, nth };
            seat.replaced(Party::clone(&me), wanted, Step::Look, then);
        });
    }
}

/// How far the search for one state is: it is looked for here, then among the names that others tell, then they are asked for
/// the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Look,
    Named,
    Asked,
}

impl Seat {
    fn replaced(
        &mut self,
        me: Party,
        wanted: OneReplaced,
        step: Step,
        then: Then<Option<FoundReplaced>>,
    ) {
        self.read(wanted.clone(), move |seat, found| {
            let found = match found {
                Ok(found) => found,
                Err(error) => return then(seat, Err(error.into())),
            };
            let stamp = found.as_ref().map(|found| found.file.stamp);
            let is_whole = found.as_ref().is_some_and(|found| found.bytes.is_some());
            let next = match (step, stamp) {
                (Step::Look, None) => Step::Named,
                (Step::Look | Step::Named, Some(_)) => Step::Asked,
                (Step::Named, None) | (Step::Asked, _) => return then(seat, Ok(found)),
            };
            if is_whole {
                return then(seat, Ok(found));
            }
            let file = Some((wanted.path.clone(), stamp));
            let room = wanted.room;
            let asker = me.clone();
            seat.gather(&me, (room, file), move |seat, asked| match asked {
                Ok(()) => seat.replaced(asker, wanted, next, then),
                Err(refusal) => then(seat, Err(refusal)),
            });
        });
    }

    /// All nodes are asked: it counts as a message does.
    fn gather(
        &mut self,
        me: &Party,
        (room, file): (RoomId, Option<(String, Option<Stamp>)>),
        then: impl FnOnce(&mut Seat, Result<(), Refusal>) + Send + 'static,
    ) {
        let may = self.rules.readable(me, room).and_then(|_| self.rules.count(me, self.now));
        if let Err(refusal) = may {
            return then(self, Err(refusal));
        }
        let gather = GatherReplaced { by: me.as_reader(), room, file };
        self.call(Command::GatherReplaced(Box::new(gather)), Bound::Node, then);
    }
}

//! Pages of history, for clients that may have their cursor from any node.

use std::sync::Arc;

use mesh::{
    api::command::{Command, Roamed},
    name::{
        id::RoomId,
        number::{Era, Number},
    },
    order::served::Served,
};

use super::{
    ask::Sought,
    job::{Claim, Cursor, From, Origin, PageOf, Since},
    party::Party,
    seat::{Paged, Place, Seat, Step, Then},
};
use crate::{
    backend::{ReadError, Row},
    limits::{self, NUMBERS_END},
    seam::{
        answer::Page,
        call::{self, History},
        event::Message,
        refusal::{Bound, Refusal},
    },
};

/// A page on its way, and its continuation.
struct Paging {
    me: Arc<Party>,
    job: PageOf,
    then: Then<Page>,
}

/// A cursor that could not be judged: live messages of its room wait until it can.
#[derive(Clone, Copy, Debug)]
struct Behind {
    room: RoomId,
    cursor: Number,
    tries: u8,
}

impl Seat {
    pub(super) fn history(&mut self, me: &Arc<Party>, call: History, then: Then<Page>) {
        let room = call.room;
        if let Err(refusal) = self.rules.readable(me, room) {
            return then(self, Err(refusal));
        }
        let from = match call.from {
            // Above every number there is: nothing can be after it.
            call::From::Number(NUMBERS_END..) => None,
            call::From::Number(number) => Some(From::After(self.cursor(room, Number(number)))),
            call::From::Message(message) => Some(From::AfterMessage(message, self.served(room))),
            call::From::Newest => Some(From::Newest),
            call::From::Below(number) => Some(From::Below(number)),
        };
        let limit = usize::try_from(call.limit).unwrap_or(usize::MAX).min(limits::HISTORY_ROWS_MAX);
        let Some(from) = from.filter(|_| limit > 0) else { return then(self, Ok(empty(room))) };
        if let From::After(cursor) = &from {
            self.steps.push(Step::Came(room, cursor.came_with()));
        }
        let job =
            PageOf { room, from, limit, before_ms: call.before_ms, held: false, sought: false };
        self.read_page(Paging { me: me.clone(), job, then });
    }

    fn cursor(&self, room: RoomId, number: Number) -> Cursor {
        match self.paged.filter(|paged| (paged.room, paged.number) == (room, number)) {
            Some(paged) => Cursor::new(number, Origin::Here { came: paged.came }),
            // Of a room that is in its first numbers nothing is noted.
            None if number.era() == Era::HOME => Cursor::of(number, &Served::default()),
            None => Cursor::of(number, &self.served(room)),
        }
    }

    /// The numbers that the agent was given here.
    fn served(&self, room: RoomId) -> Served {
        let reader = self.me().and_then(|me| me.reader());
        reader.map(|reader| self.rules.hub.served(&reader, room)).unwrap_or_default()
    }

    fn read_page(&mut self, paging: Paging) {
        self.read(paging.job.clone(), move |seat, found| seat.found(paging, found));
    }

    fn found(&mut self, mut paging: Paging, found: Result<Option<Since>, ReadError>) {
        let room = paging.job.room;
        let (rows, upto) = match found {
            Ok(Some(Since::Rows(rows))) => {
                let upto = self.newest_given(&paging.job, &rows);
                (rows, upto)
            }
            Ok(Some(Since::Log(rows))) => {
                let upto = match &paging.job.from {
                    From::After(cursor) => {
                        let upto = rows.last().map_or(cursor.number, |row| row.number);
                        Some((cursor.clone(), upto))
                    }
                    From::Newest | From::Below(_) | From::AfterMessage(..) => None,
                };
                let upto = upto.map(|(cursor, upto)| self.page_given(room, &cursor, upto));
                (rows, upto)
            }
            Ok(None) => return self.seek_message(paging),
            Ok(Some(Since::Later)) => {
                // Something is to be passed first, which live delivery will not bring: it is waited for.
                if let From::After(cursor) = &paging.job.from {
                    paging.job.from = From::After(cursor.clone().waited());
                }
                self.hold(&mut paging);
                return self.read_page(paging);
            }
            Ok(Some(Since::Claim(claim))) => return self.claim_page(paging, claim),
            Err(error) => return self.give(paging, Err(error.into()), None),
        };
        let by = paging.me.as_reader().agent;
        let shown = rows.into_iter().filter(|row| !row.is_kept_from(by.as_deref()));
        let messages = shown.filter_map(|row| Message::read(room, row)).collect();
        self.give(paging, Ok(Page { room, messages, behind: false }), upto);
    }

    /// Asks for the message after which a page is to begin, once.
    fn seek_message(&mut self, mut paging: Paging) {
        let room = paging.job.room;
        match &paging.job.from {
            From::AfterMessage(message, _) if !paging.job.sought => {
                let sought = Sought { room, message: Some(*message) };
                paging.job.sought = true;
                let me = paging.me.clone();
                self.seek(&me, sought, Place::Any, |seat| seat.read_page(paging));
            }
            // As at a ClawChat server: of a message that nobody has any more nothing can be after it.
            From::AfterMessage(..) | From::After(_) | From::Newest | From::Below(_) => {
                self.give(paging, Ok(empty(room)), None);
            }
        }
    }

    /// The mesh is asked to number the entries that a roaming cursor has not proven seen.
    fn claim_page(&mut self, mut paging: Paging, claim: Claim) {
        let Claim { room, cursor, entries } = claim;
        let number = cursor.number;
        paging.job.from = From::After(cursor);
        self.hold(&mut paging);
        let command = Command::Roam { room, cursor: number, entries };
        self.call(command, Bound::Node, move |seat, answer| {
            seat.claimed_page(paging, number, answer);
        });
    }

    /// The mesh has numbered the entries that a roaming cursor had not proven seen, or has not: then the cursor
    /// counts as the tip. The room is held; it is released when the page has been given.
    fn claimed_page(
        &mut self,
        mut paging: Paging,
        cursor: Number,
        answer: Result<Roamed, Refusal>,
    ) {
        let room = paging.job.room;
        match answer {
            Ok(roamed @ (Roamed::Ready | Roamed::Heard)) => {
                if let (From::After(cursor), Roamed::Ready) = (&mut paging.job.from, roamed) {
                    cursor.origin = Origin::Claimed;
                }
                self.read_page(paging);
            }
            // The cursor cannot be judged yet: an empty page that says so. Live messages of the room wait until it can be.
            Ok(Roamed::Behind) => {
                (paging.then)(self, Ok(Page { behind: true, ..empty(room) }));
                self.look_again(Behind { room, cursor, tries: 0 });
            }
            Ok(Roamed::Never) => self.give(paging, Ok(empty(room)), None),
            Err(refusal) => self.give(paging, Err(refusal), None),
        }
    }

    /// Gives a page, which ends there, and lets the room's live messages go on.
    fn give(&mut self, paging: Paging, page: Result<Page, Refusal>, upto: Option<Number>) {
        let Paging { job, then, .. } = paging;
        let messages = page.as_ref().map_or(&[][..], |page| &page.messages);
        let newest = messages.iter().rev().take(limits::GIVEN_NUMBERS_MAX);
        let numbers: Box<[Number]> = newest.rev().map(|message| message.number).collect();
        then(self, page);
        if !numbers.is_empty() {
            self.steps.push(Step::PageEnd(job.room, numbers));
        }
        self.steps.extend(upto.map(|upto| Step::Paged(job.room, upto)));
        if job.held {
            self.steps.push(Step::Release(job.room, Number::ZERO));
        }
    }

    /// Holds the room's live messages, if they are not held, until the page has been given.
    fn hold(&mut self, paging: &mut Paging) {
        if !paging.job.held {
            self.steps.push(Step::Hold(paging.job.room));
        }
        paging.job.held = true;
    }

    /// Looks whether the cursor can be judged now, and has missing entries numbered. The client may take the empty page for
    /// the end: then unseen messages come to it live.
    fn look_again(&mut self, behind: Behind) {
        let Behind { room, cursor, .. } = behind;
        let from = From::After(Cursor::new(cursor, Origin::Any));
        let job = PageOf { room, from, limit: 1, before_ms: None, held: true, sought: true };
        self.read(job, move |seat, found| match found {
            Ok(Some(Since::Claim(claim))) => {
                let command = Command::Roam { room, cursor, entries: claim.entries };
                seat.call(command, Bound::Node, move |seat, answer| {
                    seat.looked_again(behind, answer);
                });
            }
            Ok(Some(Since::Rows(_) | Since::Log(_) | Since::Later) | None) | Err(_) => {
                seat.steps.push(Step::GoOnFrom(room, cursor));
            }
        });
    }

    /// Missing entries were numbered, or were not.
    fn looked_again(&mut self, behind: Behind, answer: Result<Roamed, Refusal>) {
        let Behind { room, cursor, tries } = behind;
        let again = matches!(answer, Ok(Roamed::Behind | Roamed::Heard));
        if again && tries < limits::BEHIND_TRIES_MAX {
            return self.look_again(Behind { tries: tries + 1, ..behind });
        }
        self.steps.push(Step::GoOnFrom(room, cursor));
    }

    /// The agent is given rows that may not be all there is above its cursor. Where they end, if that counts.
    fn newest_given(&mut self, job: &PageOf, rows: &[Row]) -> Option<Number> {
        let last = rows.last()?.number;
        match &job.from {
            From::After(cursor) => Some(self.page_given(job.room, cursor, last)),
            // The newest are given: a client that goes on from there wants nothing that is below.
            From::Newest if job.before_ms.is_none() => {
                self.gave(job.room, last, |served| served.page(Number::ZERO, (last, last)));
                Some(last)
            }
            From::Newest | From::Below(_) | From::AfterMessage(..) => None,
        }
    }

    /// The agent is given a page of the delivery log, up to a number.
    fn page_given(&mut self, room: RoomId, cursor: &Cursor, upto: Number) -> Number {
        let came = cursor.came_with();
        self.gave(room, upto, |served| served.page(came, (cursor.number, upto)));
        // An empty page is the end of those before it: where they ended still counts.
        if upto > cursor.number {
            self.paged = Some(Paged { room, number: upto, came });
        }
        upto
    }

    /// The agent was given something in a room up to a number, or told of it.
    pub(super) fn gave(&self, room: RoomId, upto: Number, note: impl FnOnce(&mut Served)) {
        if upto.era() > Era::HOME
            && let Some(reader) = self.me().and_then(|me| me.reader())
        {
            self.rules.hub.gave(&reader, room, upto, note);
        }
    }
}

fn empty(room: RoomId) -> Page {
    Page { room, messages: Vec::new(), behind: false }
}

//! The queue of one reader, bounded.
//!
//! Three kinds of frames, three ways to be bounded. *Replies* are held back at their origin: nothing
//! more is read from a client that does not take them. *Messages* have numbers: when the queue is
//! full the room lags, its messages are not queued but read again from the delivery log once the
//! queue has drained, page by page until nothing newer was announced. *Events* without numbers go to
//! a spill ring of their own when the queue is full, where the oldest is dropped: first of those that
//! the next of their kind makes up for, then of notices.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use bytes::Bytes;
use mesh::name::{id::RoomId, number::Number};

use super::notice::Notice;
use crate::{
    limits,
    seam::event::{Frames, Recipient, Rendered},
};

/// A reply or an event that waits. An event may have several frames, or, once it is personal, none.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    rendered: Rendered,
    kind: Kind,
}

impl Frame {
    /// One that is the same for everybody, and counts as no message.
    pub(crate) fn reply(bytes: Bytes) -> Frame {
        Frame { rendered: Rendered::plain(bytes.into()), kind: Kind::Reply }
    }

    /// The frames, without newlines.
    pub(crate) fn parts(&self) -> &[Bytes] {
        self.rendered.frames()
    }

    pub(crate) fn is_personal(&self) -> bool {
        self.rendered.is_personal()
    }

    /// See [`Rendered::personalize`].
    pub(crate) fn personalize(&mut self, recipient: &mut dyn Recipient) {
        self.rendered.personalize(recipient);
    }

    fn bytes(&self) -> usize {
        self.rendered.bytes()
    }

    pub(crate) fn notice(&self) -> Option<Notice> {
        match &self.kind {
            Kind::Notice(notice) => Some(notice.clone()),
            Kind::Reply | Kind::Event | Kind::Message { .. } | Kind::PageEnd { .. } => None,
        }
    }

    /// The messages that the client has got when this is written.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (RoomId, Number)> + '_ {
        let (room, numbers) = match &self.kind {
            Kind::Message { room, number } => (*room, std::slice::from_ref(number)),
            Kind::PageEnd { room, numbers } => (*room, &**numbers),
            Kind::Reply | Kind::Event | Kind::Notice(_) => (RoomId([0; 16]), &[][..]),
        };
        numbers.iter().map(move |number| (room, *number))
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Reply,
    Event,
    Notice(Notice),
    Message {
        room: RoomId,
        number: Number,
    },
    /// No frame: the reply before it has given these.
    PageEnd {
        room: RoomId,
        numbers: Box<[Number]>,
    },
}

/// The content of a message for one reader.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Frame(Rendered),
    /// The reader's dialect does not show such messages.
    NotShown,
    /// Not at hand: it is to be read from the delivery log.
    ToBeRead,
}

/// Delivery of one room's messages to one connection.
#[derive(Debug, Default)]
struct Seat {
    /// Everything up to here was queued, or was never to be. Zero: nothing was announced yet.
    queued: Number,
    /// The number before the first that was announced.
    first: Number,
    /// The last one that was written.
    written: Number,
    /// Where the client's last page ended: from there on it takes live messages. `None`: it has not said where it is.
    paged: Option<Number>,
    /// The newest that was announced while it was not queued.
    latest: Number,
    /// The newest that may have to be given though it was passed over: the delivery log says so.
    owed: Number,
    /// Messages above `queued` are to be read from the delivery log.
    lags: bool,
    /// Reasons not to deliver at the moment.
    holds: usize,
}

/// The cursor that a client came with to a room.
#[derive(Clone, Copy, Debug)]
struct Came {
    cursor: Number,
    /// The client said so itself.
    stated: bool,
}

/// The writer's next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Write the frames it was given.
    Write,
    /// Read a page of a room that lags.
    CatchUp(Lag),
    /// Nothing for now.
    Wait,
}

/// The part of a lagging room that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lag {
    pub(crate) room: RoomId,
    pub(crate) after: Number,
    /// The cursor that the client came with.
    pub(crate) came: Number,
    /// The newest number that was announced by now: the delivery log has it when it is read.
    pub(crate) upto: Number,
    pub(crate) rows: usize,
}

/// A page of a room that lags.
#[derive(Debug)]
pub(crate) struct Page {
    /// The number that was asked for.
    pub(crate) after: Number,
    /// The newest number that had been announced then.
    pub(crate) upto: Number,
    /// The last row that was read; `None` if there was none.
    pub(crate) last: Option<Number>,
    /// Messages that the client is proven to have are left out: it may have no row though something was announced.
    pub(crate) judged: bool,
    /// The messages that the connection is to get, ascending.
    pub(crate) frames: Vec<Numbered>,
}

/// A message of a page, in the reader's voice.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) number: Number,
    pub(crate) frame: Rendered,
    /// It mentions the reader.
    pub(crate) mention: Option<Rendered>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: VecDeque<Frame>,
    queue_bytes: usize,
    reply_bytes: usize,
    spill: VecDeque<Frame>,
    spill_bytes: usize,
    seats: BTreeMap<RoomId, Seat>,
    /// Cursors that the client came with to rooms, where they may be another node's: at most [`limits::CAME_ROOMS_MAX`].
    came: BTreeMap<RoomId, Came>,
    lagging: usize,
    /// The room that was caught up with last.
    turn: Option<RoomId>,
    page_rows: usize,
    writes: u32,
    /// The first number of an era was written in some room.
    entered: bool,
    /// Only replies: the agent has not been told yet that it is registered.
    quiet: bool,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            queue: VecDeque::new(),
            queue_bytes: 0,
            reply_bytes: 0,
            spill: VecDeque::new(),
            spill_bytes: 0,
            seats: BTreeMap::new(),
            came: BTreeMap::new(),
            lagging: 0,
            turn: None,
            page_rows: limits::CATCH_UP_ROWS_FIRST,
            writes: 0,
            entered: false,
            quiet: true,
        }
    }

    /// Events may go out.
    pub(crate) fn open(&mut self) {
        self.quiet = false;
    }

    /// Whether the client has taken its replies so far that it may ask for more.
    pub(crate) fn takes_replies(&self) -> bool {
        self.reply_bytes <= limits::REPLY_BYTES_MAX
    }

    pub(crate) fn reply(&mut self, bytes: Bytes) {
        self.reply_bytes += bytes.len();
        self.push(Frame::reply(bytes));
    }

    /// The reply that was queued last gives the client these messages.
    pub(crate) fn page_end(&mut self, room: RoomId, numbers: Box<[Number]>) {
        let rendered = Rendered::plain(Frames::none());
        self.push(Frame { rendered, kind: Kind::PageEnd { room, numbers } });
    }

    /// Queues an event that is not to be dropped: a missed one behind the reply that announced it, a message with its
    /// number, or the last one.
    pub(crate) fn replay(&mut self, message: Option<(RoomId, Number)>, rendered: Rendered) {
        let kind = message.map_or(Kind::Event, |(room, number)| Kind::Message { room, number });
        self.push(Frame { rendered, kind });
    }

    /// Queues an event that has no number.
    pub(crate) fn event(&mut self, rendered: Rendered) {
        self.unnumbered(Frame { rendered, kind: Kind::Event });
    }

    /// Queues an event that is told once.
    pub(crate) fn notice(&mut self, notice: Notice, rendered: Rendered) {
        self.unnumbered(Frame { rendered, kind: Kind::Notice(notice) });
    }

    /// The notices that wait, as the client is not going to get them here.
    pub(crate) fn unwritten(&self) -> Vec<Notice> {
        let frames = self.queue.iter().chain(&self.spill);
        frames.filter_map(Frame::notice).collect()
    }

    fn unnumbered(&mut self, frame: Frame) {
        if !self.quiet && self.spill.is_empty() && self.fits(frame.bytes()) {
            return self.push(frame);
        }
        self.spill_bytes += frame.bytes();
        self.spill.push_back(frame);
        while self.spill.len() > limits::SPILL_FRAMES_MAX
            || (self.spill_bytes > limits::SPILL_BYTES_MAX && self.spill.len() > 1)
        {
            let fleeting = self.spill.iter().position(|frame| matches!(frame.kind, Kind::Event));
            let oldest = self.spill.remove(fleeting.unwrap_or(0));
            self.spill_bytes -= oldest.map_or(0, |frame| frame.bytes());
        }
    }

    /// Queues a message for a seated connection, or leaves it to the delivery log.
    pub(crate) fn message(
        &mut self,
        room: RoomId,
        number: Number,
        content: Content,
        mention: Option<Rendered>,
    ) {
        let fits = !self.quiet
            && match &content {
                Content::Frame(rendered) => self.fits(rendered.bytes()),
                Content::NotShown => true,
                Content::ToBeRead => false,
            };
        let Some(seat) = self.seats.get_mut(&room) else { return };
        if number <= seat.queued {
            return;
        }
        if seat.latest == Number::ZERO {
            seat.first = Number(number.0.saturating_sub(1));
        }
        seat.latest = number;
        if fits && seat.holds == 0 && !seat.lags {
            seat.queued = number;
            if let Content::Frame(rendered) = content {
                self.push(Frame { rendered, kind: Kind::Message { room, number } });
            }
            return mention.into_iter().for_each(|mention| self.event(mention));
        }
        if seat.queued == Number::ZERO {
            // It wants everything from here on.
            seat.queued = seat.first;
        }
        if !seat.lags {
            seat.lags = true;
            self.lagging += 1;
        }
    }

    /// The message passed over under this number may have to be given to this client: the page that is read then says so.
    pub(crate) fn owed(&mut self, room: RoomId, number: Number) {
        let Some(seat) = self.seats.get_mut(&room) else { return };
        if number <= seat.queued {
            return;
        }
        if seat.latest == Number::ZERO {
            // Nothing else was announced: it wants everything from here on.
            seat.first = Number(number.0.saturating_sub(1));
            seat.queued = seat.queued.max(seat.first);
        }
        seat.owed = number;
        if !seat.lags {
            seat.lags = true;
            self.lagging += 1;
        }
    }

    /// The client was given a page, which ended there.
    pub(crate) fn paged(&mut self, room: RoomId, upto: Number) {
        if let Some(seat) = self.seats.get_mut(&room) {
            seat.paged = seat.paged.max(Some(upto));
        }
    }

    /// Numbers that were given live after a page, per room with any: from after which number, up to which.
    pub(crate) fn given(&self) -> Vec<(RoomId, Number, Number)> {
        let given =
            self.seats.iter().filter_map(|(room, seat)| Some((*room, seat.paged?, seat.written)));
        given.filter(|(_, after, upto)| upto > after).collect()
    }

    /// Whether the first number of an era was written in some room since this was asked.
    pub(crate) fn takes_entered(&mut self) -> bool {
        std::mem::take(&mut self.entered)
    }

    /// Seats it; `false` if it was seated. `held`: until [`Outbox::release`].
    pub(crate) fn seat(&mut self, room: RoomId, held: bool) -> bool {
        if self.seats.contains_key(&room) {
            return false;
        }
        self.seats.insert(room, Seat { holds: usize::from(held), ..Seat::default() });
        true
    }

    pub(crate) fn unseat(&mut self, room: RoomId) {
        if self.seats.remove(&room).is_some_and(|seat| seat.lags) {
            self.lagging -= 1;
        }
    }

    /// Its client has come with this cursor, which may be of another node; zero: it was here before. `stated`: it says so
    /// itself, which counts more than the mesh's memory of it.
    pub(crate) fn came(&mut self, room: RoomId, cursor: Number, stated: bool) {
        // Numbers that it was given here after a page are of this node.
        let given =
            |seat: &Seat| seat.paged.is_some_and(|paged| paged <= cursor) && cursor <= seat.written;
        let own = self.seats.get(&room).is_some_and(given);
        let known = self.came.get(&room).copied();
        let full = self.came.len() >= limits::CAME_ROOMS_MAX && known.is_none();
        if own || full || (known.is_none() && cursor == Number::ZERO) {
            return;
        }
        let before = known.filter(|came| came.stated || !stated);
        let before = before.map_or(Number::ZERO, |came| came.cursor);
        self.came.insert(room, Came { cursor: cursor.max(before), stated });
    }

    /// The cursor that its client has come with to a room.
    pub(crate) fn came_with(&self, room: RoomId) -> Number {
        self.came.get(&room).map_or(Number::ZERO, |came| came.cursor)
    }

    pub(crate) fn rooms(&self) -> Vec<RoomId> {
        self.seats.keys().copied().collect()
    }

    /// Messages of the room stay out of the queue until [`Outbox::release`].
    pub(crate) fn hold(&mut self, room: RoomId) {
        if let Some(seat) = self.seats.get_mut(&room) {
            seat.holds += 1;
        }
    }

    /// Ends a hold. Everything up to `seen` was given to the client in the meantime.
    pub(crate) fn release(&mut self, room: RoomId, seen: Number) {
        let Some(seat) = self.seats.get_mut(&room) else { return };
        seat.holds = seat.holds.saturating_sub(1);
        seat.queued = seat.queued.max(seen);
        self.settle(room);
    }

    /// Ends a hold of a client that was given no page: messages above its cursor come live, up to the room's tip and on.
    pub(crate) fn go_on_from(&mut self, room: RoomId, cursor: Number, tip: Number) {
        let Some(seat) = self.seats.get_mut(&room) else { return };
        seat.holds = seat.holds.saturating_sub(1);
        if seat.written > cursor {
            // It has been given later ones, and drops those below them.
            return self.settle(room);
        }
        (seat.queued, seat.first) = (cursor, cursor);
        seat.latest = seat.latest.max(tip);
        if !seat.lags {
            seat.lags = true;
            self.lagging += 1;
        }
    }

    /// The last number written per room, where there is one.
    pub(crate) fn seen(&self) -> Vec<(RoomId, Number)> {
        let written = self.seats.iter().map(|(room, seat)| (*room, seat.written));
        written.filter(|(_, number)| *number > Number::ZERO).collect()
    }

    /// Where another connection of the agent goes on, for rooms where anything was announced.
    pub(crate) fn resume_points(&self) -> Vec<(RoomId, Number)> {
        let announced = self.seats.iter().filter(|(_, seat)| seat.latest > Number::ZERO);
        announced.map(|(room, seat)| (*room, seat.written.max(seat.first))).collect()
    }

    /// Takes the answer to [`Work::CatchUp`]. Returns `false` if the delivery log lacks a message that
    /// was announced: then live delivery goes on without it.
    pub(crate) fn caught_up(&mut self, room: RoomId, page: Page) -> bool {
        let Some(seat) = self.seats.get_mut(&room) else { return true };
        if seat.queued != page.after {
            return true; // Seated anew, or released, in the meantime.
        }
        let complete = match page.last {
            Some(last) => {
                seat.queued = last;
                true
            }
            None => {
                // Later announcements do not count: the page was read before them.
                let complete = page.judged || page.upto <= seat.queued;
                seat.queued = seat.queued.max(page.upto);
                complete
            }
        };
        let size: usize = page.frames.iter().map(|message| message.frame.bytes()).sum();
        for Numbered { number, frame, mention } in page.frames {
            self.push(Frame { rendered: frame, kind: Kind::Message { room, number } });
            if let Some(mention) = mention {
                self.event(mention);
            }
        }
        self.page_rows = (self.page_rows * limits::CATCH_UP_BYTES / size.max(1))
            .clamp(self.page_rows / 4, self.page_rows * 2)
            .clamp(1, limits::CATCH_UP_ROWS_MAX);
        self.settle(room);
        complete
    }

    /// The next step. `batch` comes with the frames that have been written since, and leaves with
    /// those that are to be written.
    pub(crate) fn next(&mut self, batch: &mut Vec<Frame>) -> Work {
        self.wrote(batch);
        let drained = self.queue.is_empty() && (self.spill.is_empty() || self.quiet);
        if (drained || self.writes >= limits::WRITES_PER_CATCH_UP)
            && let Some(lag) = self.next_lagging()
        {
            self.writes = 0;
            self.turn = Some(lag.room);
            return Work::CatchUp(lag);
        }
        if self.queue.is_empty() && !self.quiet {
            self.queue.append(&mut self.spill);
            self.queue_bytes += std::mem::take(&mut self.spill_bytes);
        }
        let mut size = 0;
        while let Some(frame) = self.queue.front() {
            size += frame.bytes();
            if size > limits::WRITE_BYTES && !batch.is_empty() {
                break;
            }
            self.queue_bytes -= frame.bytes();
            batch.extend(self.queue.pop_front());
        }
        if batch.is_empty() {
            self.shrink();
            return Work::Wait;
        }
        self.writes += 1;
        Work::Write
    }

    fn wrote(&mut self, batch: &mut Vec<Frame>) {
        for frame in batch.drain(..) {
            match frame.kind {
                Kind::Reply => self.reply_bytes -= frame.bytes(),
                Kind::Event | Kind::Notice(_) | Kind::PageEnd { .. } => {}
                Kind::Message { room, number } => {
                    if let Some(seat) = self.seats.get_mut(&room) {
                        self.entered |= number.era() > seat.written.era();
                        seat.written = seat.written.max(number);
                    }
                }
            }
        }
    }

    fn fits(&self, len: usize) -> bool {
        self.queue.is_empty()
            || (self.queue.len() < limits::QUEUE_FRAMES_MAX
                && self.queue_bytes + len <= limits::QUEUE_BYTES_MAX)
    }

    fn push(&mut self, frame: Frame) {
        self.queue_bytes += frame.bytes();
        self.queue.push_back(frame);
    }

    /// A room that has nothing left to catch up with is live again.
    fn settle(&mut self, room: RoomId) {
        let Some(seat) = self.seats.get_mut(&room) else { return };
        if seat.lags && seat.latest.max(seat.owed) <= seat.queued {
            seat.lags = false;
            self.lagging -= 1;
        }
    }

    /// The rooms that lag take turns.
    fn next_lagging(&self) -> Option<Lag> {
        if self.lagging == 0 || self.quiet {
            return None;
        }
        let start = self.turn.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.seats.range((start, Bound::Unbounded));
        let mut rooms = later.chain(self.seats.iter());
        let (room, seat) = rooms.find(|(_, seat)| seat.lags && seat.holds == 0)?;
        let (after, upto) = (seat.queued, seat.latest.max(seat.owed));
        Some(Lag { room: *room, after, came: self.came_with(*room), upto, rows: self.page_rows })
    }

    /// Memory that a burst has grown is given back.
    fn shrink(&mut self) {
        if self.queue.capacity() > limits::QUEUE_FRAMES_MAX / 16 {
            self.queue = VecDeque::new();
        }
        if self.spill.capacity() > limits::SPILL_FRAMES_MAX / 16 && self.spill.is_empty() {
            self.spill = VecDeque::new();
        }
    }

    /// Frames and bytes that wait, for tests of the bounds.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.queue.len() + self.spill.len(), self.queue_bytes + self.spill_bytes)
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;

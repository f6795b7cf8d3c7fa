//! Inboxes of agents that come and ask.

use std::{sync::Arc, time::SystemTime};

use mesh::{
    api::{
        agenda::GivenAct,
        command::{Command, Inbox, InboxAct, Refused, Unfiled},
        delivery::{Ended, Notice},
    },
    limits::INBOX_FILED_MAX,
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
    wire::kinds::THINKING,
};

use super::{
    ask::Ask,
    job::Job,
    party::Party,
    seat::{Seat, Then},
};
use crate::{
    backend::{InboxItems, InboxPlace, ReadError, Reads, Row},
    delivery::hub::Hub,
    limits::{CONFIRMED_LOOKED_AT_MAX, FILED_FOR, FILED_PER_ROOM_MAX, UNREAD_TRIES_MAX},
    seam::{
        answer::{InboxPage, Item},
        call::{ConfirmInbox, LookIntoInbox, OpenInbox, ReadInbox},
        event::Message,
        refusal::{Bound, Refusal},
    },
};

impl Ask for OpenInbox {
    fn begin(self, seat: &mut Seat, then: Then<Box<Inbox>>) {
        act_on_inbox(seat, InboxAct::Open, then, |seat, inbox, then| {
            if let Some(agent) = seat.me().and_then(|me| me.agent()) {
                seat.rules.hub.mails.is_at(agent, inbox.newest);
            }
            let Some(unfiled) = inbox.unfiled.clone() else { return then(seat, Ok(inbox)) };
            let Some(by) = seat.me().and_then(|me| me.agent().cloned()) else {
                return then(seat, Err(Refusal::NotAttached));
            };
            seat.read(Waiting { by, unfiled }, move |seat, found| match found {
                Ok(items) => {
                    act_on_inbox(seat, InboxAct::File(items), then, |seat, inbox, then| {
                        then(seat, Ok(inbox));
                    })
                }
                Err(error) => then(seat, Err(error.into())),
            });
        });
    }
}

impl Ask for ReadInbox {
    fn begin(self, seat: &mut Seat, then: Then<InboxPage>) {
        let ReadInbox { after, limit } = self.bounded();
        let Some(me) = seat.me().cloned() else {
            return then(seat, Err(Refusal::NotAttached));
        };
        let Some(agent) = me.agent().cloned() else {
            return then(seat, Err(Refusal::NotAttached));
        };
        read_items(seat, me, Items { agent, after, limit, waited: 0 }, then);
    }
}

/// Reads a page of items. A room whose history is still coming is not shown yet: its items are waited for, for they would be
/// passed over. Of a room that has ended they are, a little later.
fn read_items(seat: &mut Seat, me: Arc<Party>, items: Items, then: Then<InboxPage>) {
    let again = Items { waited: items.waited.saturating_add(1), ..items.clone() };
    let (mine, after) = (items.agent.clone(), items.after);
    seat.read(items, move |seat, found| {
        let readable = |room| seat.rules.readable(&me, room);
        let is_coming = |(item, _): &(InboxPlace, Row)| {
            readable(item.room) == Err(Refusal::Mesh(Refused::NoRoom))
        };
        let waits = again.waited <= UNREAD_TRIES_MAX
            && found.as_ref().is_ok_and(|(_, rows)| rows.iter().any(is_coming));
        if waits {
            return read_items(seat, me, again, then);
        }
        let page = found.map_err(Refusal::from).map(|(items, rows)| {
            let upto = items.items.last().map_or(after, |item| item.place);
            let rows = rows.into_iter().filter(|(item, row)| {
                readable(item.room).is_ok() && !row.is_kept_from(Some(&mine))
            });
            // Its own words stand for what it is told of its request, or of a task that has ended without others.
            let is_right = |(item, row): &(InboxPlace, Row)| {
                let is_own = row.said.as_ref().is_some_and(|said| said.agent == mine);
                is_own == item.is_notice()
            };
            let items_of = rows.filter(is_right).filter_map(|(item, row)| {
                let message = Message::read(item.room, row)?;
                let ended = item.notice.map(|notice| notice.ended);
                Some(Item { place: item.place, message, ended })
            });
            InboxPage { items: items_of.collect(), upto, left: items.left }
        });
        then(seat, page);
    });
}

impl Ask for LookIntoInbox {
    fn begin(self, seat: &mut Seat, then: Then<InboxItems>) {
        let LookIntoInbox { after, limit } = self;
        let Some(agent) = seat.me().and_then(|me| me.agent().cloned()) else {
            return then(seat, Err(Refusal::NotAttached));
        };
        seat.read(Places { agent, after, limit }, move |seat, found| {
            then(seat, found.map_err(Refusal::from));
        });
    }
}

impl Ask for ConfirmInbox {
    fn begin(self, seat: &mut Seat, then: Then<Box<Inbox>>) {
        let Some(agent) = seat.me().and_then(|me| me.agent().cloned()) else {
            return then(seat, Err(Refusal::NotAttached));
        };
        let upto = self.0;
        let hub = seat.rules.hub.clone();
        seat.read(Results { agent, upto, hub }, move |seat, found| match found {
            Ok(results) => end_tasks(seat, results, upto, then),
            Err(error) => then(seat, Err(error.into())),
        });
    }
}

/// Ends tasks, one after the other, whose results an agent has, and confirms its inbox then: if the node dies in between, the
/// agent has them all the same.
fn end_tasks(
    seat: &mut Seat,
    mut results: Vec<(RoomId, GivenAct)>,
    upto: u64,
    then: Then<Box<Inbox>>,
) {
    let Some((room, act)) = results.pop() else {
        return act_on_inbox(seat, InboxAct::Confirm(upto), then, |seat, inbox, then| {
            then(seat, Ok(inbox));
        });
    };
    let Some(caller) = seat.me().and_then(|me| me.caller().ok().cloned()) else {
        return then(seat, Err(Refusal::NotAttached));
    };
    // A room of which nothing more is to be ended is no matter of the confirmation.
    let ended = move |seat: &mut Seat, _: Result<(), Refusal>| {
        end_tasks(seat, results, upto, then);
    };
    seat.call(Command::Given { caller, room, act }, Bound::Room, ended);
}

fn act_on_inbox(
    seat: &mut Seat,
    act: InboxAct,
    then: Then<Box<Inbox>>,
    go_on: impl FnOnce(&mut Seat, Box<Inbox>, Then<Box<Inbox>>) + Send + 'static,
) {
    let Some(me) = seat.me().cloned() else { return then(seat, Err(Refusal::NotAttached)) };
    let caller = match me.caller() {
        Ok(caller) => caller.clone(),
        Err(refusal) => return then(seat, Err(refusal)),
    };
    let command = Command::Inbox { caller, act };
    seat.call(command, Bound::Node, move |seat, inbox| match inbox {
        Ok(inbox) => go_on(seat, inbox, then),
        Err(refusal) => then(seat, Err(refusal)),
    });
}

/// Items alone.
#[derive(Debug)]
struct Places {
    agent: AgentId,
    after: u64,
    limit: usize,
}

impl Job for Places {
    type Found = InboxItems;

    fn at_once(&self, reads: &dyn Reads) -> Result<Option<InboxItems>, ReadError> {
        reads.inbox(&self.agent, self.after, self.limit).map(Some)
    }

    fn run(self, reads: &dyn Reads) -> Result<InboxItems, ReadError> {
        reads.inbox(&self.agent, self.after, self.limit)
    }
}

/// Items, and the messages that they name.
#[derive(Clone, Debug)]
struct Items {
    agent: AgentId,
    after: u64,
    limit: usize,
    /// How often rooms were waited for.
    waited: u8,
}

impl Job for Items {
    type Found = (InboxItems, Vec<(InboxPlace, Row)>);

    fn waits(&self) -> bool {
        self.waited > 0
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        let items = reads.inbox(&self.agent, self.after, self.limit)?;
        let mut rows = Vec::with_capacity(items.items.len());
        for item in &items.items {
            let row = match item.notice {
                Some(notice) => reads.row_at(item.room, notice.at)?,
                None if item.is_notice() => task_message(reads, item.room, &self.agent)?,
                None => reads.by_number(item.room, item.number)?,
            };
            rows.extend(row.map(|row| (*item, row)));
        }
        Ok((items, rows))
    }
}

/// The message by which an agent gave the task of a room.
fn task_message(
    reads: &dyn Reads,
    room: RoomId,
    agent: &AgentId,
) -> Result<Option<Row>, ReadError> {
    let first = reads.page_since(room, Number::ZERO, FIRST_ROWS)?;
    Ok(first.into_iter().find(|row| {
        let said = row.said.as_ref().filter(|said| said.agent == *agent);
        said.and_then(|said| said.conversation).is_some_and(|place| place.turn == 0)
    }))
}

/// Rows at the beginning of a task's room among which the message is that gave it.
const FIRST_ROWS: usize = 8;

/// Tasks that an agent gave and whose results are among the items that it confirms.
struct Results {
    agent: AgentId,
    upto: u64,
    hub: Arc<Hub>,
}

impl Job for Results {
    type Found = Vec<(RoomId, GivenAct)>;

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        let mark = reads.inbox_mark(&self.agent)?.unwrap_or(0);
        let limit = usize::try_from(self.upto.saturating_sub(mark)).unwrap_or(usize::MAX);
        let items = reads.inbox(&self.agent, mark, limit.min(CONFIRMED_LOOKED_AT_MAX))?.items;
        let mut found = Vec::new();
        for InboxPlace { place, room, number, notice } in items {
            let is_of_task = self.hub.facts(room).is_some_and(|facts| facts.task);
            if place > self.upto || !is_of_task {
                continue;
            }
            if let Some(Notice { at, ended }) = notice {
                // That the task itself was not handed over is its end; the fate of all else is no result.
                let said = reads.row_at(room, at)?.and_then(|row| row.said);
                let gave = said.and_then(|said| said.conversation).is_some_and(|of| of.turn == 0);
                if gave && ended == Ended::Failed {
                    found.push((room, GivenAct::HasNotice));
                }
                continue;
            }
            if number == Number::ZERO {
                found.push((room, GivenAct::HasNotice));
                continue;
            }
            let said = reads.by_number(room, number)?.and_then(|row| row.said);
            let place = said.and_then(|said| said.conversation);
            if place.is_some_and(|place| place.turn == 1 && place.answers.is_some()) {
                found.push((room, GivenAct::HasResult));
            }
        }
        Ok(found)
    }
}

/// Messages of others that came before an agent had an inbox here.
#[derive(Debug)]
struct Waiting {
    by: AgentId,
    unfiled: Vec<Unfiled>,
}

impl Job for Waiting {
    type Found = Vec<(RoomId, Number)>;

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        let since = SystemTime::now().checked_sub(FILED_FOR).unwrap_or(SystemTime::UNIX_EPOCH);
        let since_ms = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut found = Vec::new();
        for Unfiled { room, upto } in self.unfiled {
            let rows = reads.page_newest(room, FILED_PER_ROOM_MAX, None)?;
            let others = rows.into_iter().filter(|row| {
                let by_other = row.said.as_ref().is_some_and(|said| said.agent != self.by);
                let is_young = u128::from(row.facts.wall_ms) >= since_ms;
                let is_kept = row.is_kept_from(Some(&self.by));
                row.number <= upto && row.facts.kind != THINKING && by_other && is_young && !is_kept
            });
            found.extend(others.map(|row| (row.facts.wall_ms, room, row.number)));
        }
        found.sort_unstable();
        // The newest, if they are too many.
        let surplus = found.len().saturating_sub(INBOX_FILED_MAX);
        Ok(found.into_iter().skip(surplus).map(|(_, room, number)| (room, number)).collect())
    }
}

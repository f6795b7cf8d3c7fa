//! Messages and their place in a conversation: which request a message answers. The node of its author decides that, once,
//! out of the room's newest messages; so all readers find the same.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use mesh::{
    api::{
        agenda::{TaskUpdate, TaskView},
        budget::{Answered, Conversing},
        command::{Command, Opaque, Speech},
    },
    limits::REQUEST_OPEN_FOR,
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
    wire::{acts::TaskStatus, kinds::CHAT},
};
use serde_json::{Value, json};

use super::{
    ask::Ask,
    job::Job,
    party::Party,
    seat::{self, Seat, Then},
};
use crate::{
    announcing::{self, Begun, Due},
    backend::{ReadError, Reads, Row},
    delivery::hook::Hook,
    limits::{REQUESTS_LOOKED_AT_MAX, UNSEEN_LOOKED_AT_MAX},
    seam::{
        answer::{self, RoomFacts},
        call::{Call, ChangeTask, Changed, ListTasks, Placed, Say, ToMesh as _},
        principal::is_principal,
        refusal::{Bound, Refusal},
    },
};

impl Ask for Say {
    fn begin(self, seat: &mut Seat, then: Then<<Say as Call>::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| {
            // A room that may not be read is refused with all that is wrong.
            let facts = seat.rules.readable(&me, self.room).ok();
            let for_task = facts.as_ref().is_some_and(|facts| facts.task);
            let sees_to = me.agent().is_some_and(|agent| seat.announces(agent)) && !for_task;
            let place = facts.and_then(|facts| Place::of(&self, &facts, &me));
            let Some(mut place) = place.map(|place| Place { sees_to, ..place }) else {
                return seat.put(&me, Placed { say: self, conversing: None }, then);
            };
            let hub = &seat.rules.hub;
            if hub.connected(&place.by, me.key()).is_none() {
                place.fetched = Some(hub.mails.of(&place.by).fetched);
            }
            seat.read(place, move |seat, found| match found {
                Ok(conversing) if for_task => say_of_task(seat, &me, self, conversing, then),
                Ok(Some(part)) if part.announces && part.answers.is_some() => {
                    say_and_announce(seat, &me, self, part, then);
                }
                Ok(conversing) => seat.put(&me, Placed { say: self, conversing }, then),
                Err(error) => then(seat, Err(error.into())),
            });
        });
    }
}

impl Ask for ChangeTask {
    fn begin(self, seat: &mut Seat, then: Then<Box<TaskView>>) {
        seat.look_up(None, then, move |seat, me, then| {
            let note = self.0.note.clone();
            let by = me.clone();
            let told: Then<Box<TaskView>> = Box::new(move |seat, changed| match changed {
                Ok(task) => tell_end(seat, &by, task, note, then),
                Err(refusal) => then(seat, Err(refusal)),
            });
            seat.put(&me, Changed(self.0), told);
        });
    }
}

impl Seat {
    /// Whether an agent is asked here what is to be said of its conversations.
    fn announces(&self, agent: &str) -> bool {
        self.rules.config.announcing.as_ref().is_some_and(|own| own.has_room(agent))
    }
}

/// Says something for a party that may not write, but was judged otherwise.
pub(super) fn say_unjudged(
    seat: &mut Seat,
    me: &Arc<Party>,
    say: Say,
    then: Then<<Say as Call>::Answer>,
) {
    let facts = seat.rules.readable(me, say.room).ok();
    let Some(place) = facts.and_then(|facts| Place::of(&say, &facts, me)) else {
        return then(seat, Err(Refusal::no_room()));
    };
    let me = me.clone();
    seat.read(place, move |seat, found| {
        let placed = Placed { say, conversing: found.ok().flatten() };
        match placed.command(&me) {
            Ok(command) => seat.send(command, Hook::None, seat::Place::Any, move |seat, ended| {
                then(seat, answer::read(ended, Bound::Messages));
            }),
            Err(refusal) => then(seat, Err(refusal)),
        }
    });
}

/// Says an answer in a conversation whose outcome is to be announced: that is kept first, so that a node which ends in between
/// sees to it when it starts again.
fn say_and_announce(
    seat: &mut Seat,
    me: &Arc<Party>,
    say: Say,
    part: Conversing,
    then: Then<<Say as Call>::Answer>,
) {
    let (Some(answered), Some(agent)) = (part.answers, me.agent().cloned()) else {
        return seat.put(me, Placed { say, conversing: Some(part) }, then);
    };
    let conversation = answered.conversation.id(answered.message);
    let due = Due { conversation, room: say.room, agent, key: me.key() };
    let me = me.clone();
    let placed = move |seat: &mut Seat, announces| {
        let conversing = Some(Conversing { announces, ..part });
        seat.put(&me, Placed { say, conversing }, then);
    };
    let now_ms = u64::try_from(now().as_millis()).unwrap_or(u64::MAX);
    match seat.rules.hub.announcements.begin(&due, now_ms) {
        Begun::Known => placed(seat, true),
        Begun::No => placed(seat, false),
        Begun::New => {
            let (name, value) = (announcing::name_of(conversation), due.row(now_ms, false));
            let command = Command::Keep { name, value: Some(Opaque(value)) };
            seat.send(command, Hook::None, seat::Place::First, move |seat, kept| {
                let announcements = &seat.rules.hub.announcements;
                if kept.is_ok() {
                    announcements.is_kept(conversation);
                } else {
                    announcements.forget(conversation);
                }
                placed(seat, kept.is_ok());
            });
        }
    }
}

/// Says something in the room of a task. The first answer to the one that gave it is its end.
fn say_of_task(
    seat: &mut Seat,
    me: &Arc<Party>,
    say: Say,
    conversing: Option<Conversing>,
    then: Then<<Say as Call>::Answer>,
) {
    let answered = conversing.and_then(|part| part.answers);
    let ends = answered.is_some_and(|answered| answered.conversation.turn == 0);
    let (room, status, by) = (say.room, end_of(&say), me.clone());
    seat.put(
        me,
        Placed { say, conversing },
        Box::new(move |seat, said| {
            if !ends || said.is_err() {
                return then(seat, said);
            }
            // Whether the task is told of its end is no matter of the message, which is said.
            seat.look_up(None, then, move |seat, _, then| {
                let listed = ListTasks { room, status: None };
                seat.put(
                    &by.clone(),
                    listed,
                    Box::new(move |seat, tasks| {
                        let Some(update) =
                            tasks.ok().and_then(|tasks| update_of(&by, &tasks, status))
                        else {
                            return then(seat, said);
                        };
                        seat.put(&by, Changed(update), Box::new(move |seat, _| then(seat, said)));
                    }),
                );
            });
        }),
    );
}

/// A task has changed. If it has ended, the agent that gave it and waits for an answer is told so.
fn tell_end(
    seat: &mut Seat,
    me: &Arc<Party>,
    task: Box<TaskView>,
    note: Option<String>,
    then: Then<Box<TaskView>>,
) {
    let has_ended = matches!(task.status.basic(), TaskStatus::Completed | TaskStatus::Blocked);
    let is_for_task = seat.rules.hub.facts(task.room).is_some_and(|facts| facts.task && has_ended);
    let Some(by) = me.agent().filter(|_| is_for_task).cloned() else {
        return then(seat, Ok(task));
    };
    let bare = || task.status.name().to_owned();
    let note = note.filter(|note| !note.is_empty()).unwrap_or_else(bare);
    let (room, me) = (task.room, me.clone());
    let (reply_to, expects_reply) = (ReplyTo::Nothing, Some(false));
    // An agent that ends a task knows of it.
    let fetched = None;
    let place = Place {
        room,
        by,
        direct: true,
        reply_to,
        expects_reply,
        counted: false,
        fetched,
        withheld: false,
        announce: false,
        sees_to: false,
    };
    seat.read(place, move |seat, found| {
        let conversing = found.ok().flatten().filter(|part| part.answers.is_some());
        let Some(conversing) = conversing else { return then(seat, Ok(task)) };
        let say = said_of(room, note, task.status);
        let placed = Placed { say, conversing: Some(conversing) };
        seat.put(&me, placed, Box::new(move |seat, _| then(seat, Ok(task))));
    });
}

/// The end of a task as a message.
fn said_of(room: RoomId, note: String, status: TaskStatus) -> Say {
    let metadata = if status.basic() == TaskStatus::Blocked {
        json!({"kind": "result", "error": note, "expects_reply": false})
    } else {
        json!({"kind": "result", "expects_reply": false})
    };
    let metadata = Some(metadata.to_string());
    Say { metadata, expects_reply: Some(false), ..Say::chat(room, note) }
}

/// How a task has ended of which an answer tells.
fn end_of(say: &Say) -> TaskStatus {
    let metadata =
        say.metadata.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let has_failed = metadata.is_some_and(|metadata| metadata["error"].is_string());
    if has_failed { TaskStatus::Blocked } else { TaskStatus::Completed }
}

/// The end of the agent's task in a room, if it has one there that goes on.
fn update_of(me: &Party, tasks: &[TaskView], status: TaskStatus) -> Option<TaskUpdate> {
    let agent = me.agent()?;
    let goes_on = |task: &&TaskView| {
        let is_mine = task.assignee.as_ref() == Some(agent) && task.created_by != *agent;
        is_mine && matches!(task.status.basic(), TaskStatus::Pending | TaskStatus::InProgress)
    };
    let task = tasks.iter().find(goes_on)?.task;
    let status = Some(status);
    Some(TaskUpdate { status, ..TaskUpdate::of(task) })
}

/// Find the place of a message that is to be said. None: it is in no conversation.
#[derive(Debug)]
struct Place {
    room: RoomId,
    by: AgentId,
    /// Two agents alone: each message is in a conversation.
    direct: bool,
    reply_to: ReplyTo,
    expects_reply: Option<bool>,
    /// See [`Say::counted`].
    counted: bool,
    /// Of an agent that fetches what is for it: the item of its inbox up to which it has done so. Others are told at once.
    fetched: Option<u64>,
    /// It is not handed over here what the other agent says.
    withheld: bool,
    /// Its author wants the outcome to be announced.
    announce: bool,
    /// This node sees to that, for the author.
    sees_to: bool,
}

/// The message that the author names.
#[derive(Clone, Copy, Debug)]
enum ReplyTo {
    Nothing,
    Message(MessageId),
    /// No message has such an id.
    Unknown,
}

impl Place {
    /// `None`: such a message has none.
    fn of(say: &Say, facts: &RoomFacts, me: &Party) -> Option<Place> {
        let by = me.agent().filter(|_| say.speech == Speech::Chat)?.clone();
        let direct = facts.access.sides.is_some();
        let reply_to = match &say.reply_to {
            None => ReplyTo::Nothing,
            Some(id) => MessageId::from_uuid(id).map_or(ReplyTo::Unknown, ReplyTo::Message),
        };
        let Say { room, expects_reply, counted, .. } = *say;
        let may = direct || expects_reply.is_some() || matches!(reply_to, ReplyTo::Message(_));
        let sides = facts.access.sides.as_ref();
        let withheld = sides.is_some_and(|sides| facts.withheld(sides.peer_of(&by)).is_some());
        let fetched = None;
        may.then_some(Place {
            room,
            by,
            direct,
            reply_to,
            expects_reply,
            counted,
            fetched,
            withheld,
            announce: say.announce && direct && !facts.task,
            sees_to: false,
        })
    }

    fn find(&self, reads: &dyn Reads) -> Result<Option<Conversing>, ReadError> {
        let answers = match self.reply_to {
            ReplyTo::Message(message) => {
                let row = reads.by_message(self.room, message)?;
                let request = row.and_then(|row| self.request(&row));
                request.map(|request| self.as_far_as_it_is(reads, request)).transpose()?
            }
            // A message that says that it asks begins a conversation.
            ReplyTo::Nothing
                if self.direct && !self.withheld && self.expects_reply != Some(true) =>
            {
                self.oldest_open(reads)?
            }
            ReplyTo::Nothing | ReplyTo::Unknown => None,
        };
        let expects_reply = self.expects_reply.unwrap_or(self.direct && answers.is_none());
        if !self.direct && answers.is_none() && !expects_reply {
            return Ok(None);
        }
        // In a room people refer to a message as often as they like: such words are not counted any more.
        let is_over =
            |answered: &Answered| answered.conversation.turn >= answered.conversation.last_turn();
        if !self.direct && self.expects_reply.is_none() && answers.as_ref().is_some_and(is_over) {
            return Ok(None);
        }
        let announces = match &answers {
            None => self.announce,
            Some(answered) => self.sees_to && self.is_to_be_announced(reads, answered)?,
        };
        let (counts, of_person) = (self.counted, is_principal(&self.by));
        Ok(Some(Conversing { answers, expects_reply, counts, announces, of_person }))
    }

    /// Whether the other agent, which began the conversation, wants its outcome to be announced.
    fn is_to_be_announced(
        &self,
        reads: &dyn Reads,
        answered: &Answered,
    ) -> Result<bool, ReadError> {
        let first = reads.by_message(self.room, answered.conversation.id(answered.message))?;
        let said = first.and_then(|row| row.said).filter(|said| said.agent != self.by);
        Ok(said.and_then(|said| said.conversation).is_some_and(|place| place.announces))
    }

    /// A message of another agent that is in a conversation.
    fn request(&self, row: &Row) -> Option<Answered> {
        let said = row.said.as_ref().filter(|said| said.agent != self.by)?;
        Some(Answered { message: row.message, conversation: said.conversation? })
    }

    /// The newest messages, without thoughts.
    fn newest(&self, reads: &dyn Reads) -> Result<Vec<Row>, ReadError> {
        let mut newest = reads.page_newest(self.room, REQUESTS_LOOKED_AT_MAX, None)?;
        newest.retain(|row| row.facts.kind == CHAT && !row.is_kept_from(Some(&self.by)));
        Ok(newest)
    }

    /// A request, with the turn that its conversation has come to: an agent that goes on answering the first message goes on, too.
    fn as_far_as_it_is(&self, reads: &dyn Reads, request: Answered) -> Result<Answered, ReadError> {
        if !self.direct {
            return Ok(request);
        }
        let Answered { message, mut conversation } = request;
        let id = conversation.id(message);
        for row in self.newest(reads)? {
            let place = row.said.as_ref().and_then(|said| said.conversation);
            if let Some(place) = place.filter(|place| place.id(row.message) == id) {
                conversation.turn = conversation.turn.max(place.turn);
            }
        }
        Ok(Answered { message, conversation })
    }

    /// The oldest request of the other agent that has no answer, and that this one was given.
    fn oldest_open(&self, reads: &dyn Reads) -> Result<Option<Answered>, ReadError> {
        let newest = self.newest(reads)?;
        let conversations = newest.iter().filter_map(|row| row.said.as_ref()?.conversation);
        let answered: HashSet<MessageId> =
            conversations.filter_map(|conversation| conversation.answers).collect();
        let since_ms = now().saturating_sub(REQUEST_OPEN_FOR).as_millis();
        let is_open = |row: &&Row| {
            let expects = row.said.as_ref().and_then(|said| said.conversation);
            u128::from(row.facts.wall_ms) >= since_ms
                && expects.is_some_and(|place| place.expects_reply)
                && !answered.contains(&row.message)
        };
        let unseen = self.unseen(reads)?;
        let mut open = newest.iter().filter(is_open);
        Ok(open.find_map(|row| self.request(row).filter(|_| !unseen.contains(&row.number))))
    }

    /// Messages of the room that lie in the agent's inbox and were not given to it.
    fn unseen(&self, reads: &dyn Reads) -> Result<HashSet<Number>, ReadError> {
        let Some(fetched) = self.fetched else { return Ok(HashSet::new()) };
        // Items that it has confirmed it has, also if this node does not remember to have given them.
        let Some(mark) = reads.inbox_mark(&self.by)? else { return Ok(HashSet::new()) };
        let items = reads.inbox(&self.by, fetched.max(mark), UNSEEN_LOOKED_AT_MAX)?.items;
        let here = items.into_iter().filter(|item| item.room == self.room);
        Ok(here.map(|item| item.number).collect())
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

impl Job for Place {
    type Found = Option<Conversing>;

    /// A page of some messages: words of a client are to stay in their order.
    fn at_once(&self, reads: &dyn Reads) -> Result<Option<Self::Found>, ReadError> {
        self.find(reads).map(Some)
    }

    fn run(self, reads: &dyn Reads) -> Result<Self::Found, ReadError> {
        self.find(reads)
    }
}

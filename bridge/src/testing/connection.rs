//! A client without a socket: its seat and its link, and the work of a connection between them.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use bytes::Bytes;
use mesh::api::command::Command;

use super::{Fake, KEY, here};
use crate::{
    Hub, Mesh as _, Reply,
    config::{Auth, Config, NodeKey},
    delivery::{
        ending::Ending,
        link::{Life, Link},
        outbox::{Frame, Work},
        reread,
    },
    dialect::{Conversation, Dialect, Heard},
    session::{
        inbox::Inbox,
        rules::Rules,
        seat::{Seat, Step},
    },
};

/// See the module.
pub struct Connection {
    pub fake: Arc<Fake>,
    hub: Arc<Hub>,
    link: Arc<Link>,
    inbox: Arc<Inbox>,
    seat: Seat,
    conversation: Box<dyn Conversation>,
    /// Frames that were written and not looked at yet, without newlines.
    pub frames: VecDeque<Bytes>,
    /// The time of its clock.
    pub now: Instant,
}

/// A node whose only key is [`KEY`].
pub fn keyed() -> Config {
    Config::new(Auth::Key(NodeKey::new(KEY)), here())
}

impl Connection {
    /// A connection that has said nothing.
    pub fn new(fake: &Arc<Fake>, config: Config, dialect: &dyn Dialect) -> Connection {
        let hub = fake.hub();
        let rules = Rules::new(Arc::new(config), hub.clone(), fake.meter.clone());
        let seat = Seat::new(Arc::new(rules), dialect.voice());
        Connection {
            fake: fake.clone(),
            link: hub.connect(None),
            inbox: Arc::default(),
            seat,
            conversation: dialect.begin(),
            frames: VecDeque::new(),
            now: fake.started,
            hub,
        }
    }

    /// Says a frame; answers that come at once are worked off.
    pub fn say(&mut self, frame: &str) {
        self.seat.begin(self.now, frame.len());
        self.conversation.hear(&mut self.seat, Heard::Text(frame));
        self.perform();
        self.settle();
    }

    /// The same, if the connection would read it now.
    pub fn say_if_read(&mut self, frame: &str) {
        if self.is_open() && self.takes_requests() && self.link.takes_replies() {
            self.say(frame);
        }
    }

    pub fn takes_requests(&self) -> bool {
        self.seat.takes_requests()
    }

    pub fn awaits_answers(&self) -> bool {
        self.seat.awaits_answers()
    }

    pub fn is_fresh(&self) -> bool {
        self.seat.is_fresh()
    }

    pub fn is_open(&self) -> bool {
        self.link.life() == Life::Open
    }

    pub fn ending(&self) -> Ending {
        self.link.ending()
    }

    /// Nothing more is written to it.
    pub fn cut(&self) {
        self.link.end(Ending::Done);
    }

    /// The connection ends.
    pub fn hang_up(self) {
        self.cut();
        let Some(seen) = self.hub.disconnect(&self.link) else { return };
        if let Some(caller) = self.seat.caller().cloned() {
            let (reply, _) = Reply::once();
            let command = match self.seat.linger {
                Some(_) => Command::Linger { caller, seen, hosted: false },
                None => Command::Detach { caller, seen },
            };
            self.fake.call(command, reply);
        }
    }

    /// Works off answers and takes what is written.
    pub fn settle(&mut self) {
        while let Some(resume) = self.inbox.take() {
            resume(&mut self.seat);
            self.perform();
        }
        let mut batch = Vec::new();
        while let Some(work) = self.link.next(&mut batch) {
            match work {
                Work::Wait => break,
                Work::CatchUp(lag) => {
                    let page = reread::page(&self.hub, &self.link, lag).unwrap();
                    assert!(self.link.caught_up(lag.room, page));
                }
                Work::Write => {
                    batch.iter_mut().for_each(|frame| frame.personalize(&mut *self.conversation));
                    self.frames.extend(batch.iter().flat_map(Frame::parts).cloned());
                }
            }
        }
    }

    fn perform(&mut self) {
        let mut steps = VecDeque::from(self.seat.take_steps());
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Reply(bytes) => self.link.reply(bytes),
                Step::Replay { message, rendered } => self.link.replay(message, rendered),
                Step::Call { command, hook, then } => {
                    let reply = self.inbox.reply(&self.hub, &self.link, hook, then);
                    self.fake.call(command, reply);
                }
                Step::Beside { me, voice, then } => {
                    let beside = self.hub.sits_beside(&self.link, me, voice);
                    then(&mut self.seat, beside);
                    for step in self.seat.take_steps().into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                // Asked over a socket: there is no runtime here. Nobody waits for the answer.
                Step::Webhooks(_) | Step::Later(_) => {}
                Step::Read(mut reading) => {
                    reading.run(&*self.fake);
                    reading.go_on(&mut self.seat);
                    for step in self.seat.take_steps().into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Came(room, cursor) => self.link.came(room, cursor),
                Step::Paged(room, upto) => self.link.paged(room, upto),
                Step::PageEnd(room, numbers) => self.link.page_end(room, numbers),
                Step::Hold(room) => self.link.hold(room),
                Step::GoOnFrom(room, cursor) => {
                    let tip = self.hub.tip(room);
                    self.link.go_on_from(room, cursor, tip);
                }
                Step::Release(room, seen) => self.link.release(room, seen),
                Step::HearPieces => self.link.hear_pieces(),
                Step::Open => self.link.open(),
                Step::Close(ending) => self.link.drain(ending),
            }
        }
    }
}

//! How each call is carried out.

use std::sync::Arc;

use mesh::{
    api::{
        command::{AgentView, Command},
        rules::{Broken, Field, Rule},
    },
    name::id::{AgentId, MessageId, RoomId},
    records::files::check_path,
};

use super::{
    job::{self, Job},
    party::Party,
    rules::may_write,
    seat::{Place, Seat, Then},
};
use crate::{
    backend::{FoundProfile, Row},
    delivery::hook::Hook,
    seam::{
        answer::{self, AgentProfile},
        call::{
            Attach, Call, Confirm, EnableSubscription, FollowRecords, GetAgentFile, GetContent,
            GetFile, GetProfile, GetReceipts, GetRecord, History, ListAgentFiles, ListDescribed,
            ListFiles, ListRecords, ListSubscriptions, LocateContents, Look, Numbered, OneMessage,
            PostNotice, ReadDetails, ReadThreads, Subscribe, Tip, ToMesh, Unsubscribe,
        },
        event::Message,
        refusal::{Bound, Refusal},
    },
};

/// A call that a [`Seat`] carries out.
pub trait Ask: Call {
    /// Carries it out. Dialects say [`Seat::ask`].
    #[doc(hidden)]
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>);
}

/// A room, or a message in it, that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
    pub(super) room: RoomId,
    pub(super) message: Option<MessageId>,
}

impl<C: ToMesh> Ask for C {
    fn begin(self, seat: &mut Seat, then: Then<C::Answer>) {
        seat.look_up(self.room(), then, move |seat, me, then| seat.put(&me, self, then));
    }
}

impl Ask for Attach {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.attach(self, then);
    }
}

impl Ask for Look {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(Some(self.0), then, move |seat, me, then| {
            let facts = seat.rules.readable(&me, self.0);
            then(seat, facts);
        });
    }
}

impl Ask for OneMessage {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let OneMessage { room, message } = self;
        seat.one_message(room, job::OneMessage { room, message }, then);
    }
}

impl Ask for Numbered {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let Numbered { room, number } = self;
        seat.one_message(room, job::Numbered { room, number }, then);
    }
}

impl Ask for History {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| seat.history(&me, self, then));
    }
}

impl Ask for GetReceipts {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| seat.receipts(&me, self, then));
    }
}

impl Ask for Confirm {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = Some(self.room);
        seat.look_up(room, then, move |seat, me, then| seat.confirm(&me, self, then));
    }
}

impl Ask for Tip {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = self.0;
        seat.look_up(Some(room), then, move |seat, me, then| {
            match seat.rules.readable(&me, room) {
                Ok(_) => seat.read(job::Tip(room), move |seat, found| {
                    if let Ok(tip) = found {
                        seat.gave(room, tip, |served| served.told(tip));
                    }
                    then(seat, found.map_err(Refusal::from));
                }),
                Err(refusal) => then(seat, Err(refusal)),
            }
        });
    }
}

impl Ask for GetProfile {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let agent = self.0;
        seat.look_up(None, then, move |seat, _, then| {
            seat.read(job::ProfileOf(agent.clone()), move |seat, found| match found {
                Ok(found) => seat.with_roster(agent, found, then),
                Err(error) => then(seat, Err(error.into())),
            });
        });
    }
}

impl Ask for ReadDetails {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let ReadDetails { rooms, settings } = self;
        seat.look_up(None, then, move |seat, me, then| {
            let may = |room: &RoomId| seat.rules.readable(&me, *room).is_ok();
            let readable: Vec<bool> = rooms.iter().map(may).collect();
            let open = rooms.into_iter().zip(&readable).filter(|(_, may)| **may);
            let rooms = open.map(|(room, _)| room).collect();
            seat.read(job::DetailsOf { rooms, settings }, move |seat, found| {
                let found = found.map_err(Refusal::from);
                let answer = found.map(|found| {
                    let mut found = found.into_iter();
                    let of = |may| if may { found.next() } else { None };
                    readable.into_iter().map(of).map(Option::unwrap_or_default).collect()
                });
                then(seat, answer);
            });
        });
    }
}

impl Ask for ReadThreads {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let room = self.0;
        let key = seat.me().map(|me| me.key());
        let Some(key) = key else { return then(seat, Err(Refusal::NotAttached)) };
        seat.read_in(room, job::ThreadsOf { room, key }, then);
    }
}

impl Ask for ListFiles {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read_in(self.0, job::FilesOf(self.0), then);
    }
}

impl Ask for GetFile {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let GetFile { room, path } = self;
        if let Err(rule) = check_path(&path) {
            let at = Broken { field: Field::Path, rule: Rule::Path(rule) };
            return then(seat, Err(at.into()));
        }
        seat.read_in(room, job::FileOf { room, path }, then);
    }
}

impl Ask for ListAgentFiles {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let agent = self.0;
        seat.of_agent(agent, then, |seat, of, then| {
            seat.read(of, move |seat, found| then(seat, found.map_err(Refusal::from)));
        });
    }
}

impl Ask for GetAgentFile {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let GetAgentFile { agent, name } = self;
        seat.of_agent(agent, then, |seat, of, then| {
            let job = job::AgentFileOf { of, name };
            seat.read(job, move |seat, found| then(seat, found.map_err(Refusal::from)));
        });
    }
}

impl Ask for FollowRecords {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for GetRecord {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for GetContent {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for LocateContents {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for ListDescribed {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for ListRecords {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.read(self, move |seat, found| then(seat, found.map_err(Refusal::from)));
    }
}

impl Ask for Subscribe {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(Some(self.room), then, move |seat, me, then| {
            match may_write(&me).and_then(|()| seat.rules.count(&me, seat.now)) {
                Ok(()) => {
                    seat.ask_webhooks(move |hooks| hooks.subscribe(me.key(), self), then);
                }
                Err(refusal) => then(seat, Err(refusal)),
            }
        });
    }
}

impl Ask for Unsubscribe {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| match may_write(&me) {
            Ok(()) => seat.ask_webhooks(move |hooks| hooks.unsubscribe(me.key(), self.id), then),
            Err(refusal) => then(seat, Err(refusal)),
        });
    }
}

impl Ask for EnableSubscription {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| match may_write(&me) {
            Ok(()) => seat.ask_webhooks(move |hooks| hooks.enable(me.key(), self.id), then),
            Err(refusal) => then(seat, Err(refusal)),
        });
    }
}

impl Ask for PostNotice {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| {
            match may_write(&me).and_then(|()| seat.rules.count(&me, seat.now)) {
                Ok(()) => seat.ask_webhooks(move |hooks| hooks.notify(me.key(), self), then),
                Err(refusal) => then(seat, Err(refusal)),
            }
        });
    }
}

impl Ask for ListSubscriptions {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        seat.look_up(None, then, move |seat, me, then| {
            seat.ask_webhooks(move |hooks| hooks.list(me.key(), self.room), then);
        });
    }
}

impl Seat {
    /// Goes on once a room is known here, or nobody knows it: a client may have it from an agent of another node, so
    /// connected nodes are asked before it is refused. An agent that is attached stays so: `me` holds in all that follows.
    pub(super) fn look_up<A: 'static>(
        &mut self,
        room: Option<RoomId>,
        then: Then<A>,
        go_on: impl FnOnce(&mut Seat, Arc<Party>, Then<A>) + Send + 'static,
    ) {
        let Some(me) = self.me().cloned() else {
            return then(self, Err(Refusal::NotAttached));
        };
        match room.filter(|room| self.rules.hub.facts(*room).is_none()) {
            Some(room) => {
                let sought = Sought { room, message: None };
                // Found or not: the call is answered as things are known now.
                self.seek(&me.clone(), sought, Place::First, move |seat| go_on(seat, me, then));
            }
            None => go_on(self, me, then),
        }
    }

    /// Asks connected nodes for something that is not known here.
    pub(super) fn seek(
        &mut self,
        me: &Party,
        sought: Sought,
        place: Place,
        go_on: impl FnOnce(&mut Seat) + Send + 'static,
    ) {
        // Strangers do not make a node ask others.
        let Ok(caller) = me.caller() else { return go_on(self) };
        let Sought { room, message } = sought;
        let command = Command::Seek { caller: caller.clone(), room, message };
        self.send(command, Hook::None, place, move |seat, _| go_on(seat));
    }

    /// Checks a call and puts it to the mesh.
    pub(super) fn put<C: ToMesh>(&mut self, me: &Party, call: C, then: Then<C::Answer>) {
        let (hook, command) = match self.rules.judge(me, call, self.now) {
            Ok(judged) => judged,
            Err(refusal) => return then(self, Err(refusal)),
        };
        self.send(command, hook, Place::Any, move |seat, ended| {
            then(seat, answer::read(ended, C::ROW.bound));
        });
    }

    /// Goes on with the files of an agent of the caller's key: the mesh says where that has its records.
    fn of_agent<A: 'static>(
        &mut self,
        agent: AgentId,
        then: Then<A>,
        go_on: impl FnOnce(&mut Seat, job::AgentFilesOf, Then<A>) + Send + 'static,
    ) {
        self.look_up(None, then, move |seat, me, then| {
            let key = me.key();
            let command = Command::PlaceOfKey { key };
            seat.call(command, Bound::Node, move |seat, place| match place {
                Ok(place) => go_on(seat, job::AgentFilesOf { place, key, agent }, then),
                Err(refusal) => then(seat, Err(refusal)),
            });
        });
    }

    /// Adds to a profile what rosters say of the agent.
    fn with_roster(&mut self, agent: AgentId, found: FoundProfile, then: Then<AgentProfile>) {
        let FoundProfile { profile, claimed, retired } = found;
        let command = Command::FindAgent { agent: agent.clone() };
        self.call(command, Bound::Node, move |seat, attached: Result<Vec<AgentView>, _>| {
            let answer = attached.and_then(|attached| {
                let registered = attached.into_iter().next().map(|view| view.name);
                if registered.is_none() && !claimed && profile.updated_ms.is_none() {
                    return Err(Refusal::NoAgent);
                }
                Ok(AgentProfile { agent, registered, profile, retired })
            });
            then(seat, answer);
        });
    }

    /// Reads something of a room that the caller may read.
    fn read_in<J: Job>(&mut self, room: RoomId, job: J, then: Then<J::Found>) {
        self.look_up(Some(room), then, move |seat, me, then| {
            match seat.rules.readable(&me, room) {
                Ok(_) => {
                    seat.read(job, move |seat, found| then(seat, found.map_err(Refusal::from)))
                }
                Err(refusal) => then(seat, Err(refusal)),
            }
        });
    }

    /// Reads one message of a room that is known here.
    fn one_message<J: Job<Found = Option<Box<Row>>>>(
        &mut self,
        room: RoomId,
        job: J,
        then: Then<Option<Message>>,
    ) {
        let Some(me) = self.me().cloned() else {
            return then(self, Err(Refusal::NotAttached));
        };
        match self.rules.readable(&me, room) {
            Ok(_) => self.read(job, move |seat, found| {
                let by = me.as_reader().agent;
                let found = found.map_err(Refusal::from);
                let found = found.map(|row| row.filter(|row| !row.is_kept_from(by.as_deref())));
                then(seat, found.map(|row| row.and_then(|row| Message::read(room, *row))));
            }),
            Err(refusal) => then(self, Err(refusal)),
        }
    }
}

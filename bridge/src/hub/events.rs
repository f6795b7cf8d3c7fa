//! What happens in rooms, told to those it is for. An event is encoded once, whoever gets it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use mesh::{
    api::{
        command::{Access, AgentView, RoomView, Speech},
        event::{Delivered, RoomEvent},
    },
    name::{
        id::{AgentId, LocalRef, RoomId},
        number::Number,
    },
    wire::entry::Said,
};
use protocol::{
    event::{Event, Mention, RoomDestroyed},
    object::Message,
};

use super::{Hub, Room, RoomFacts};
use crate::{
    backend::Row,
    convert::{self, Told},
    link::{Link, Me},
    notice::Notice,
};

impl Hub {
    /// Tells local members what happened in a room. Never blocks.
    pub fn notify(&self, room: RoomId, event: RoomEvent) {
        let lobby = self.lobby;
        match event {
            RoomEvent::Message(delivered) => {
                self.message(room, &delivered);
                self.book.ring(room);
            }
            RoomEvent::PassedOver { number, at, .. } => self.passed_over(room, number, at),
            RoomEvent::Joined { agent, name, reconnected } => {
                let joined = || convert::joined(self.name(room), &agent, &name, reconnected);
                self.members(room, Some(&agent), joined);
            }
            RoomEvent::Left { agent } => {
                self.members(room, Some(&agent), || convert::left(self.name(room), &agent));
            }
            RoomEvent::Turn { holder, order, reason } => {
                let turn = || convert::turn(self.name(room), holder.as_ref(), &order, reason);
                self.turn(room, turn);
            }
            RoomEvent::Typing { agent, name, typing } => {
                let typing = || convert::typing(self.name(room), &agent, &name, typing);
                self.members(room, Some(&agent), typing);
            }
            RoomEvent::Presence(view) => self.presence(room, view),
            RoomEvent::Opened { view, announce } => {
                self.opened(&view, announce);
                self.book.ring(room);
            }
            RoomEvent::Destroyed { access } => {
                self.destroyed(room, access);
                self.book.destroyed(room);
            }
            RoomEvent::VoteOpened(view) => {
                self.notice(room, || Event::VoteCreated(Box::new(convert::vote(lobby, &view))));
            }
            RoomEvent::VoteEnded(it) => {
                self.notice(room, || Event::VoteResult(Box::new(convert::vote_result(lobby, &it))));
            }
            RoomEvent::ElectionStarted { candidates, by } => {
                let started = || convert::election_started(self.name(room), &candidates, &by);
                self.notice(room, started);
            }
            RoomEvent::LeaderElected { agent, name } => {
                self.notice(room, || convert::leader_elected(self.name(room), &agent, &name));
            }
            RoomEvent::LeaderCleared { why } => {
                self.notice(room, || convert::leader_cleared(self.name(room), why));
            }
            RoomEvent::TaskAssigned(view) => {
                self.notice(room, || Event::TaskAssigned(Box::new(convert::task(lobby, &view))));
            }
            RoomEvent::TaskUpdated(view) => {
                self.notice(room, || Event::TaskUpdated(Box::new(convert::task(lobby, &view))));
            }
        }
    }

    fn message(&self, room: RoomId, delivered: &Delivered) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        known.tip.fetch_max(delivered.number.0, Ordering::Relaxed);
        let said = match &delivered.said {
            Some(said) => Some(said.clone()),
            // Nobody's content is read for mentions alone: it left memory for there is too much of it.
            None if known.seats.is_empty() => return,
            None => self
                .reads
                .row_at(room, delivered.at)
                .ok()
                .flatten()
                .and_then(|row| row.said.map(Arc::new)),
        };
        let Some(said) = said else {
            // The store will know it, or say what is wrong, when the readers catch up.
            for link in known.seats.values() {
                link.message(room, delivered.number, None, None);
            }
            return;
        };
        let mentioned = state.mentioned(known, &said);
        let away = self.mentioned_away(room, known, &said);
        if known.seats.is_empty() && mentioned.is_empty() && away.is_empty() {
            return;
        }
        let Some(speech) = convert::speech(&delivered.facts) else { return };
        let told = Told::of_event(delivered, &said);
        let Some(message) = told.into_message(self.name(room)) else { return };
        let anybody = !mentioned.is_empty() || !away.is_empty();
        let mention = anybody.then(|| self.encode_mention(room, &message));
        let frame = self.encode(&convert::message_event(speech, message));
        let author = (!reaches_its_author(speech)).then_some(&said.agent);
        for link in known.seats.values().filter(|link| author.is_none_or(|it| !link.is(it))) {
            // One that came late may be proven seen by the cursor that a client brought: the page that is read for it
            // says so.
            let judged = delivered.canonical.is_some() && link.came_with(room) > Number::ZERO;
            let mention = mention.as_ref().filter(|_| mentioned.contains_key(&link.id));
            let frame = Some(&frame).filter(|_| !judged);
            link.message(room, delivered.number, frame, mention.filter(|_| !judged));
        }
        let Some(notice) = mention.map(|bytes| known.notice(room, bytes)) else { return };
        let outside = |link: &&Arc<Link>| !known.seats.contains_key(&link.id);
        for link in mentioned.values().filter(|it| outside(it) || it.is(&said.agent)) {
            link.notice(&notice);
        }
        for agent in away {
            self.away().push(agent, notice.clone());
        }
    }

    /// A client that came after a message was delivered here, with a cursor that says that it was seen, may have to get
    /// it under its other number: the node that the cursor is from may have had to give it that one. The page that is
    /// read for it says whether it is proven seen.
    fn passed_over(&self, room: RoomId, number: Number, at: LocalRef) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let came = known.seats.values().map(|link| (link, link.came_with(room)));
        let mut came = came.filter(|(_, came)| *came > Number::ZERO).peekable();
        if came.peek().is_none() {
            return;
        }
        // What has no body any more is not given to anybody.
        let row = self.reads.row_at(room, at).ok().flatten().filter(|row| row.said.is_some());
        let Some(row) = row else { return };
        for (link, _) in came.filter(|(_, came)| row.number <= *came) {
            link.owed(room, number);
        }
    }

    /// Those whom a message mentions, who are away, and who are not going to read it in the room.
    fn mentioned_away<'a>(&self, room: RoomId, known: &Room, said: &'a Said) -> Vec<&'a AgentId> {
        if said.mentions.is_empty() {
            return Vec::new();
        }
        let away = self.away();
        let mentions = said.mentions.iter();
        mentions.filter(|agent| away.wants_mention(agent, room, known.facts)).collect()
    }

    /// A message read again, as the member gets it: `None` if it is its own, or can no longer be shown.
    /// With its mention, if it mentions the member.
    pub(crate) fn encode_row(
        &self,
        me: Option<&Me>,
        room: RoomId,
        row: &Row,
    ) -> Option<(Number, Bytes, Option<Bytes>)> {
        let me = me?;
        let speech = convert::speech(&row.facts)?;
        let told = Told::of_row(row)?;
        if told.said.agent == me.agent && !reaches_its_author(speech) {
            return None;
        }
        let message = told.into_message(self.name(room))?;
        let mentioned = told.said.mentions.contains(&me.agent);
        let mention = mentioned.then(|| self.encode_mention(room, &message));
        let frame = self.encode(&convert::message_event(speech, message));
        Some((row.number, frame, mention))
    }

    fn encode_mention(&self, room: RoomId, message: &Message) -> Bytes {
        let message = Box::new(message.clone());
        self.encode(&Event::Mention(Mention { room_id: self.name(room), message }))
    }

    /// To all members but one, if there are any.
    fn members(&self, room: RoomId, but: Option<&AgentId>, event: impl FnOnce() -> Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let others = known.seats.values().filter(|link| but.is_none_or(|agent| !link.is(agent)));
        let mut others = others.peekable();
        if others.peek().is_none() {
            return;
        }
        let frame = self.encode(&event());
        others.for_each(|link| link.event(frame.clone()));
    }

    /// To all members, and to those who left a moment ago and may come back.
    fn notice(&self, room: RoomId, event: impl FnOnce() -> Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let mut away = self.away();
        let wanted = away.has_members(room);
        if known.seats.is_empty() && !wanted {
            return;
        }
        let notice = known.notice(room, self.encode(&event()));
        known.seats.values().for_each(|link| link.notice(&notice));
        if wanted {
            away.tell_members(&notice);
        }
    }

    fn turn(&self, room: RoomId, event: impl FnOnce() -> Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room).filter(|it| !it.seats.is_empty()) else { return };
        self.crowds.tell(room, &known.seats, self.encode(&event()));
    }

    fn presence(&self, room: RoomId, view: Arc<AgentView>) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let mut last = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(|(told, _)| Arc::ptr_eq(told, &view)) {
            *last = Some((view.clone(), HashSet::new()));
        }
        let Some((_, told)) = last.as_mut() else { return };
        let mut frame = None;
        for (id, link) in &known.seats {
            if link.is(&view.agent) || !told.insert(*id) {
                continue;
            }
            let encode = || self.encode(&convert::presence(&view));
            link.event(frame.get_or_insert_with(encode).clone());
        }
    }

    fn opened(&self, view: &RoomView, announce: bool) {
        let facts = RoomFacts {
            access: view.access(),
            encrypted: view.encrypted,
            ephemeral: view.ephemeral,
        };
        let mut state = self.write();
        let room = state.rooms.entry(view.room);
        room.and_modify(|room| room.facts = facts).or_insert_with(|| Room::new(facts, view.tip));
        if !announce {
            return;
        }
        let event = |key| Event::RoomCreated(Box::new(convert::room(self.lobby, view, key)));
        let (mut plain, mut owned) = (None, None);
        for (me, link) in state.registered().filter(|(me, _)| facts.readable_by(me.key)) {
            let key = view.owner.filter(|owner| *owner == me.key);
            let frame = if key.is_some() { &mut owned } else { &mut plain };
            link.event(frame.get_or_insert_with(|| self.encode(&event(key))).clone());
        }
    }

    fn destroyed(&self, room: RoomId, access: Access) {
        let mut state = self.write();
        if let Some(known) = state.rooms.remove(&room) {
            known.seats.values().for_each(|link| link.unseat(room));
        }
        let frame = self.encode(&Event::RoomDestroyed(RoomDestroyed { room_id: self.name(room) }));
        for (_, link) in state.registered().filter(|(me, _)| access.includes(me.key)) {
            link.event(frame.clone());
        }
    }
}

impl Room {
    fn new(facts: RoomFacts, tip: Number) -> Room {
        Room { facts, tip: AtomicU64::new(tip.0), seats: BTreeMap::new() }
    }

    /// A frame that is told now.
    fn notice(&self, room: RoomId, bytes: Bytes) -> Notice {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Notice {
            room,
            after: Number(self.tip.load(Ordering::Relaxed)),
            wall_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            bytes,
        }
    }
}

/// What somebody says is told to the others. A decision is told to all, its author included.
fn reaches_its_author(speech: Speech) -> bool {
    match speech {
        Speech::Decision => true,
        Speech::Chat | Speech::Thinking => false,
    }
}

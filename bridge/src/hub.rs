//! Who gets what: rooms, who of the agents attached here is in them, and the way to each.
//!
//! The driver calls [`Hub::notify`] and [`Hub::tell`] on the engine's thread, after the commit, in the
//! order of the effects. Nothing here blocks: queues are bounded, and what does not fit is read again
//! from the delivery log. An event is encoded once, whoever gets it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use mesh::{
    command::{AgentView, Attached, Outcome, Registration, RoomView},
    entry::Said,
    event::{AgentEvent, Delivered, RoomEvent},
    id::{AgentId, KeyPrint, RoomId},
    number::Number,
};
use protocol::{
    event::{
        AgentJoined, AgentLeft, AgentName, Event, Mention, PresenceUpdate, RoomDestroyed,
        TurnChanged, TypingIndicator,
    },
    frame::encode_event,
};

use crate::{
    backend::{Reads, Row},
    convert::{self, Told},
    ids::FrameIds,
    link::{Life, Link, LinkId, Me},
    refusal::Refusal,
    reply::{Answer, Hook},
};

/// See the module's text.
#[derive(Debug)]
pub struct Hub {
    lobby: RoomId,
    reads: Arc<dyn Reads>,
    ids: FrameIds,
    links: AtomicU64,
    state: RwLock<State>,
    /// The presence told last, and to whom: it comes once for every room of the agent.
    presence: Mutex<Option<(Arc<AgentView>, HashSet<LinkId>)>>,
}

impl std::fmt::Debug for dyn Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reads")
    }
}

#[derive(Debug, Default)]
struct State {
    rooms: HashMap<RoomId, Room>,
    /// All connections, registered or not.
    links: HashMap<LinkId, Arc<Link>>,
    agents: HashMap<AgentId, Place>,
}

#[derive(Debug)]
struct Room {
    facts: RoomFacts,
    seats: BTreeMap<LinkId, Arc<Link>>,
}

/// Where an agent is attached.
#[derive(Debug)]
struct Place {
    registration: Registration,
    link: Arc<Link>,
}

/// What routing and access need of a room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomFacts {
    pub(crate) public: bool,
    pub(crate) encrypted: bool,
    owner: Option<KeyPrint>,
}

impl RoomFacts {
    pub(crate) fn readable_by(&self, key: KeyPrint) -> bool {
        self.public || key == KeyPrint::OPEN || self.owner == Some(key)
    }
}

impl Hub {
    /// Without rooms: the engine tells of them. `lobby` is the room that clients know by that name.
    #[must_use]
    pub fn new(lobby: RoomId, reads: Arc<dyn Reads>) -> Hub {
        Hub {
            lobby,
            reads,
            ids: FrameIds::new(),
            links: AtomicU64::new(0),
            state: RwLock::default(),
            presence: Mutex::default(),
        }
    }

    /// Tells local members what happened in a room. Never blocks.
    pub fn notify(&self, room: RoomId, event: RoomEvent) {
        match event {
            RoomEvent::Message(delivered) => self.message(room, &delivered),
            RoomEvent::Joined { agent, name, reconnected } => {
                let joined = AgentJoined {
                    room_id: self.name(room),
                    agent: AgentName { agent_id: agent.to_string(), name: name.to_string() },
                    reconnected,
                };
                self.members(room, Some(&agent), || Event::AgentJoined(joined));
            }
            RoomEvent::Left { agent } => {
                let left = AgentLeft { room_id: self.name(room), agent_id: agent.to_string() };
                self.members(room, Some(&agent), || Event::AgentLeft(left));
            }
            RoomEvent::Turn { holder, order, reason } => self.members(room, None, || {
                Event::TurnChanged(TurnChanged {
                    room_id: self.name(room),
                    current_turn_holder: holder.map(|agent| agent.to_string()),
                    turn_order: order.iter().map(|agent| agent.to_string()).collect(),
                    reason: convert::turn_reason(reason),
                })
            }),
            RoomEvent::Typing { agent, name, typing } => {
                let indicator = TypingIndicator {
                    room_id: self.name(room),
                    agent_id: agent.to_string(),
                    agent_name: name.to_string(),
                    typing,
                };
                self.members(room, Some(&agent), || Event::TypingIndicator(indicator));
            }
            RoomEvent::Presence(view) => self.presence(room, view),
            RoomEvent::Opened { view, announce } => self.opened(&view, announce),
            RoomEvent::Destroyed { public, owner } => {
                self.destroyed(room, RoomFacts { public, encrypted: false, owner });
            }
        }
    }

    /// Tells one agent attached here. Never blocks.
    pub fn tell(&self, event: AgentEvent) {
        match event {
            AgentEvent::Displaced { agent, registration } => {
                let mut state = self.write();
                let here = state.agents.get(&agent);
                if here.is_some_and(|place| place.registration == registration)
                    && let Some(place) = state.agents.remove(&agent)
                {
                    state.unseat_everywhere(&place.link);
                    place.link.end();
                }
            }
            AgentEvent::Seated { agent, room, seated } => {
                let link = self.read().agents.get(&agent).map(|place| place.link.clone());
                match (link, seated) {
                    (Some(link), true) => drop(self.seat(&link, room)),
                    (Some(link), false) => self.unseat(&link, room),
                    (None, _) => {}
                }
            }
        }
    }

    /// How many agents are attached here.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.read().agents.len()
    }

    /// How many rooms there are.
    #[must_use]
    pub fn rooms(&self) -> usize {
        self.read().rooms.len()
    }

    pub(crate) fn reads(&self) -> &Arc<dyn Reads> {
        &self.reads
    }

    /// A fresh frame id.
    pub(crate) fn frame_id(&self) -> String {
        self.ids.fresh()
    }

    pub(crate) fn encode(&self, event: &Event) -> Bytes {
        Bytes::from(encode_event(event, &self.frame_id()))
    }

    /// The room as clients name it, if there is one and the key may read it.
    pub(crate) fn readable(
        &self,
        name: &str,
        key: KeyPrint,
    ) -> Result<(RoomId, RoomFacts), Refusal> {
        let room = convert::room_id(self.lobby, name).ok_or_else(Refusal::no_room)?;
        let facts = self.read().rooms.get(&room).map(|room| room.facts);
        let facts = facts.ok_or_else(Refusal::no_room)?;
        if facts.readable_by(key) { Ok((room, facts)) } else { Err(Refusal::not_yours()) }
    }

    /// A connection begins.
    pub(crate) fn connect(&self) -> Arc<Link> {
        let link = Arc::new(Link::new(LinkId(self.links.fetch_add(1, Ordering::Relaxed))));
        self.write().links.insert(link.id, link.clone());
        link
    }

    /// A connection has ended.
    pub(crate) fn disconnect(&self, link: &Link) {
        link.end();
        let mut state = self.write();
        state.links.remove(&link.id);
        state.unseat_everywhere(link);
        if let Some(me) = link.me()
            && state.agents.get(&me.agent).is_some_and(|place| place.link.id == link.id)
        {
            state.agents.remove(&me.agent);
        }
    }

    /// Every connection writes what is queued, then ends.
    pub(crate) fn drain(&self) {
        for link in self.read().links.values() {
            link.drain();
        }
    }

    /// Seats a connection in a room; `false` if it was seated there, or there is no such room.
    pub(crate) fn seat(&self, link: &Arc<Link>, room: RoomId) -> bool {
        self.write().seat(link, room, false)
    }

    pub(crate) fn unseat(&self, link: &Link, room: RoomId) {
        if let Some(room) = self.write().rooms.get_mut(&room) {
            room.seats.remove(&link.id);
        }
        link.unseat(room);
    }

    /// An answer passes, on the engine's thread, before the connection sees it.
    pub(crate) fn answered(&self, link: &Arc<Link>, hook: Hook, answer: &mut Answer) {
        match (hook, answer) {
            (Hook::Attach { agent, key }, Ok(Outcome::Attached(attached))) => {
                link.register(Me { agent, key });
                self.attached(link, attached);
            }
            (Hook::Join { room, .. }, Ok(_)) => drop(self.seat(link, room)),
            (Hook::Join { room, fresh: true }, Err(_)) | (Hook::Leave { room }, Ok(_)) => {
                self.unseat(link, room);
            }
            (
                Hook::None
                | Hook::Attach { .. }
                | Hook::Join { fresh: false, .. }
                | Hook::Leave { .. },
                _,
            ) => {}
        }
    }

    /// Its agent's events are the connection's from now on. Rooms it gets back are held until it has
    /// been told so and has got what it missed.
    fn attached(&self, link: &Arc<Link>, attached: &mut Attached) {
        let Some(me) = link.me() else { return };
        let mut state = self.write();
        let place = Place { registration: attached.registration, link: link.clone() };
        let before = state.agents.insert(me.agent.clone(), place);
        let before = before.filter(|place| place.link.id != link.id);
        let seen: HashMap<_, _> = match (&before, attached.displaced) {
            (Some(place), Some(_)) => place.link.resume_points().into_iter().collect(),
            (Some(_), None) | (None, _) => HashMap::new(),
        };
        for (room, cursor) in attached.restored.iter_mut().flatten() {
            // The mesh takes everything for seen that was announced to the connection before; not
            // all of it may have been written.
            *cursor = seen.get(room).copied().unwrap_or(*cursor);
            state.seat(link, *room, true);
        }
        if let Some(place) = before {
            state.unseat_everywhere(&place.link);
            place.link.end();
        }
    }

    fn message(&self, room: RoomId, delivered: &Delivered) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
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
        if known.seats.is_empty() && mentioned.is_empty() {
            return;
        }
        let told = Told::of_event(delivered, &said);
        let Some(message) = told.into_message(self.name(room)).map(Box::new) else { return };
        let mention = (!mentioned.is_empty()).then(|| {
            let message = message.clone();
            self.encode(&Event::Mention(Mention { room_id: self.name(room), message }))
        });
        let frame = self.encode(&convert::message_event(&delivered.facts, message));
        for link in known.seats.values().filter(|link| !link.is(&said.agent)) {
            let mention = mention.as_ref().filter(|_| mentioned.contains_key(&link.id));
            link.message(room, delivered.number, Some(&frame), mention);
        }
        for link in mentioned.values() {
            if let Some(mention) = &mention
                && (!known.seats.contains_key(&link.id) || link.is(&said.agent))
            {
                link.event(mention.clone());
            }
        }
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
        let told = Told::of_row(row).filter(|told| told.said.agent != me.agent)?;
        let message = Box::new(told.into_message(self.name(room))?);
        let mention = told.said.mentions.contains(&me.agent).then(|| {
            let message = message.clone();
            self.encode(&Event::Mention(Mention { room_id: self.name(room), message }))
        });
        let frame = self.encode(&convert::message_event(&row.facts, message));
        Some((row.number, frame, mention))
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
            let frame = frame.get_or_insert_with(|| {
                self.encode(&Event::PresenceUpdate(PresenceUpdate {
                    agent_id: view.agent.to_string(),
                    agent_name: view.name.to_string(),
                    status: convert::status(view.presence.status),
                    status_detail: view.presence.detail.clone(),
                    progress: convert::progress(&view.presence),
                }))
            });
            link.event(frame.clone());
        }
    }

    fn opened(&self, view: &RoomView, announce: bool) {
        let facts = RoomFacts { public: view.public, encrypted: view.encrypted, owner: view.owner };
        let mut state = self.write();
        let room = state.rooms.entry(view.room);
        room.and_modify(|room| room.facts = facts)
            .or_insert_with(|| Room { facts, seats: BTreeMap::new() });
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

    fn destroyed(&self, room: RoomId, facts: RoomFacts) {
        let mut state = self.write();
        if let Some(known) = state.rooms.remove(&room) {
            known.seats.values().for_each(|link| link.unseat(room));
        }
        let frame = self.encode(&Event::RoomDestroyed(RoomDestroyed { room_id: self.name(room) }));
        for (_, link) in state.registered().filter(|(me, _)| facts.readable_by(me.key)) {
            link.event(frame.clone());
        }
    }

    /// Frames and bytes that wait for all connections together.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        let held = self.read().links.values().map(|link| link.held()).collect::<Vec<_>>();
        held.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    fn name(&self, room: RoomId) -> String {
        convert::room_text(self.lobby, room)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic while it was held ends the process in the daemon; tests may go on.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn registered(&self) -> impl Iterator<Item = (&Me, &Arc<Link>)> {
        self.agents.values().filter_map(|place| Some((place.link.me()?, &place.link)))
    }

    fn seat(&mut self, link: &Arc<Link>, room: RoomId, held: bool) -> bool {
        let Some(known) = self.rooms.get_mut(&room) else { return false };
        if link.life() == Life::Over {
            return false; // It has been, or will be, taken out of all rooms.
        }
        known.seats.insert(link.id, link.clone());
        link.seat(room, held)
    }

    fn unseat_everywhere(&mut self, link: &Link) {
        for room in link.rooms() {
            if let Some(room) = self.rooms.get_mut(&room) {
                room.seats.remove(&link.id);
            }
        }
    }

    /// The agents attached here that a message mentions and that may read it.
    fn mentioned(&self, room: &Room, said: &Said) -> BTreeMap<LinkId, Arc<Link>> {
        let places = said.mentions.iter().filter_map(|agent| self.agents.get(agent));
        let links = places.map(|place| &place.link);
        let may = |link: &&Arc<Link>| link.me().is_some_and(|me| room.facts.readable_by(me.key));
        links.filter(may).map(|link| (link.id, link.clone())).collect()
    }
}

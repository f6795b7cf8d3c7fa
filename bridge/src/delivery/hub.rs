//! Routing of events: rooms, the agents attached here that are in them, and the way to each.
//!
//! The driver calls [`Hub::notify`] and [`Hub::tell`] on the engine's thread, after the commit, in the
//! order of the effects. Nothing here blocks: queues are bounded, and messages that do not fit are read again
//! from the delivery log. An event is written once for each voice, however many readers have it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    bell::Hold,
    ending::Ending,
    given::{Given, Handed, Moment},
    link::{Life, Link, LinkId, Me},
    notice::Notice,
    outbox::Frame,
    readers::{Name, Readers},
};
use crate::{
    announcing::Announcements,
    backend::Reads,
    counters::Counters,
    delivery::hook::Hook,
    limits::CROWD_TOLD_EVERY,
    reply::Ended,
    schedules::news::News,
    seam::{
        answer::RoomFacts,
        event::{Event, Message, Told},
        refusal::Refusal,
    },
    waking::Board,
    webhooks::book::Book,
};
use mesh::{
    api::{
        command::{AgentView, Attached, Command, Outcome},
        event::AgentEvent,
    },
    name::{
        id::{AgentId, EntryRef, KeyPrint, RoomId},
        number::Number,
    },
    order::served::Served,
    wire::{copies::AgentState, entry::Said},
};
use tokio::time::sleep;

mod away;
mod crowds;
mod events;
mod lingering;
mod mail;
mod onlookers;
mod overheard;
mod places;
mod streams;
mod watches;

use away::{Away, Leaver};
use crowds::Crowds;
use lingering::Lingering;
use mail::Mails;
use onlookers::Onlookers;
use overheard::Overhearing;
use places::Place;
use streams::Streams;
use watches::Watches;

pub use mail::{Notified, Way};
pub use onlookers::Onlooker;
pub use overheard::{Described, Overheard};
pub(crate) use places::Beside;
pub use places::Connected;
pub use streams::{Pieces, kind_of};
pub use watches::Watch;
pub(crate) use watches::Watched;

/// See the module's text.
#[derive(Debug)]
pub struct Hub {
    reads: Arc<dyn Reads>,
    /// Webhooks wait for messages, too.
    book: Arc<Book>,
    readers: Readers,
    given: Given,
    links: AtomicU64,
    keys_ended: AtomicU64,
    /// The node's disk takes nothing.
    full: AtomicBool,
    state: RwLock<State>,
    /// Locked after `state`, if both are.
    away: Mutex<Away>,
    /// The same.
    lingering: Mutex<Lingering>,
    /// The presence told last, and to whom: it comes once for every room of the agent.
    presence: Mutex<Option<(Arc<AgentView>, HashSet<LinkId>)>>,
    /// Locked after `state`, if both are.
    crowds: Crowds,
    watches: Arc<Watches>,
    overhearing: Overhearing,
    onlookers: Arc<Onlookers>,
    streams: Arc<Streams>,
    pub(crate) mails: Mails,
    pub(crate) woken: Board,
    pub(crate) announcements: Announcements,
    pub(crate) scheduled: News,
    counters: Arc<Counters>,
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
    /// The newest message that was told.
    tip: AtomicU64,
    seats: BTreeMap<LinkId, Arc<Link>>,
}

impl Hub {
    /// Without rooms: the engine tells of them.
    #[must_use]
    pub fn new(reads: Arc<dyn Reads>) -> Hub {
        Hub {
            reads,
            book: Arc::default(),
            readers: Readers::default(),
            given: Given::default(),
            keys_ended: AtomicU64::default(),
            full: AtomicBool::default(),
            links: AtomicU64::new(0),
            state: RwLock::default(),
            away: Mutex::default(),
            lingering: Mutex::default(),
            presence: Mutex::default(),
            crowds: Crowds::default(),
            watches: Arc::default(),
            overhearing: Overhearing::default(),
            onlookers: Arc::default(),
            streams: Arc::default(),
            mails: Mails::default(),
            woken: Board::default(),
            announcements: Announcements::default(),
            scheduled: News::default(),
            counters: Arc::default(),
        }
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Until it is dropped, connections to which this thread has given something are not woken: then each of them is, once.
    #[must_use]
    pub fn hold(&self) -> Hold {
        Hold::new()
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
                    place.links.iter().for_each(|link| state.replaced(link));
                }
                drop(state);
                self.lingering().is_back(&agent);
            }
            AgentEvent::Seated { agent, room, missed } => {
                let links = self.read().agents.get(&agent).map(|place| place.links.clone());
                for link in links.into_iter().flatten() {
                    if self.seat(&link, room)
                        && let Some(after) = missed
                    {
                        link.go_on_from(room, after, self.tip(room));
                    }
                }
            }
            AgentEvent::Enlisted { agent, room: view, announce } => {
                let links = self.read().agents.get(&agent).map(|place| place.links.clone());
                let view = Arc::new(*view);
                for link in links.into_iter().flatten() {
                    if announce {
                        let own = link.me().is_some_and(|me| view.owner == Some(me.key));
                        let opened = Event::RoomOpened { room: view.clone(), own, to: None };
                        link.tell(&Arc::new(Told::new(opened)));
                    }
                    self.seat(&link, view.room);
                }
            }
            AgentEvent::Unseated { agent, room } => {
                let links = self.read().agents.get(&agent).map(|place| place.links.clone());
                links.iter().flatten().for_each(|link| self.unseat(link, room));
            }
            AgentEvent::Mail { agent } => self.watches.ring(&Watched::Inbox(agent)),
            AgentEvent::Recorded { agent, notes } => self.described(agent, notes),
            AgentEvent::Scheduled(news) => self.scheduled.tell(news),
            AgentEvent::KeyInvalid { key } => {
                self.keys_ended.fetch_add(1, Ordering::SeqCst);
                self.lingering().revoked(key);
                self.revoked(key);
                self.book.revoked(key);
            }
        }
    }

    /// See [`Desk::keys_ended`](crate::read::Desk::keys_ended).
    pub(crate) fn keys_ended(&self) -> u64 {
        self.keys_ended.load(Ordering::SeqCst)
    }

    /// The node's disk takes nothing from now on, or does again.
    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// How many agents are connected here: those that linger are not.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.read().agents.len()
    }

    /// How many rooms there are.
    #[must_use]
    pub fn rooms(&self) -> usize {
        self.read().rooms.len()
    }

    /// Switches all webhooks on or off: what is said meanwhile is delivered when they are on again.
    pub fn switch_webhooks(&self, on: bool) {
        self.book.switch(on);
    }

    /// Switches jobs on or off: this node fires none meanwhile. What was due is seen to as after a time in which it did not run.
    pub fn switch_schedules(&self, on: bool) {
        self.scheduled.switch(on);
    }

    /// The subscriptions that are told of messages.
    pub(crate) fn book(&self) -> &Arc<Book> {
        &self.book
    }

    /// The facts of a room, if there is one.
    pub(crate) fn facts(&self, room: RoomId) -> Option<RoomFacts> {
        self.read().rooms.get(&room).map(|room| room.facts.clone())
    }

    /// The newest message of a room that was told.
    pub(crate) fn tip(&self, room: RoomId) -> Number {
        let state = self.read();
        state.rooms.get(&room).map_or(Number::ZERO, |room| Number(room.tip.load(Ordering::Relaxed)))
    }

    pub(crate) fn reads(&self) -> &Arc<dyn Reads> {
        &self.reads
    }

    /// A room, if it is known and this agent may read it; without one, the holder of the key.
    pub(crate) fn readable(
        &self,
        room: RoomId,
        key: KeyPrint,
        agent: Option<&str>,
    ) -> Result<RoomFacts, Refusal> {
        let facts = self.facts(room).ok_or_else(Refusal::no_room)?;
        if facts.readable_by(key, agent) { Ok(facts) } else { Err(Refusal::not_yours()) }
    }

    /// A connection begins.
    pub(crate) fn connect(&self, client: Option<IpAddr>) -> Arc<Link> {
        let id = LinkId(self.links.fetch_add(1, Ordering::Relaxed));
        let link = Arc::new(Link::new(id, client));
        self.write().links.insert(link.id, link.clone());
        link
    }

    /// An agent's connection is gone, and it was in these rooms.
    fn leaves(&self, link: &Link, rooms: Vec<RoomId>) {
        let (Some(me), Some(voice)) = (link.me(), link.voice()) else { return };
        let unwritten = link.unwritten();
        self.away().left(Leaver { me, voice: voice.clone(), rooms, unwritten });
    }

    /// The numbers that an agent was given in a room here, if it is one that is remembered.
    pub(crate) fn served(&self, me: &Me, room: RoomId) -> Served {
        let state = self.read();
        let place = state.agents.get(&me.agent).filter(|_| me.stable);
        for link in place.iter().flat_map(|place| &place.links) {
            self.note_live(&state, link);
        }
        drop(state);
        self.served_to(me, room)
    }

    fn served_to(&self, me: &Me, room: RoomId) -> Served {
        if me.stable { self.readers.served(&name_of(me, room)) } else { Served::default() }
    }

    /// An agent was given something in a room, or told of it: see [`Served`].
    pub(crate) fn gave(&self, me: &Me, room: RoomId, upto: Number, note: impl FnOnce(&mut Served)) {
        let durable = self.facts(room).is_some_and(|facts| !facts.ephemeral);
        if me.stable {
            self.readers.note(&name_of(me, room), upto, durable, note);
        }
    }

    /// Notes the numbers that were given to a connection live.
    fn note_live(&self, state: &State, link: &Link) {
        let Some(me) = link.me().filter(|me| me.stable) else { return };
        for (room, after, upto) in link.given() {
            let durable = state.rooms.get(&room).is_some_and(|room| !room.facts.ephemeral);
            let note = |served: &mut Served| served.went_on(after, upto);
            self.readers.note(&name_of(me, room), upto, durable, note);
        }
    }

    /// The same for all, at this moment.
    pub(crate) fn note_all_live(&self) {
        let state = self.read();
        for link in state.links.values() {
            self.note_live(&state, link);
        }
    }

    /// The agents that have got a message at this node, as far as is known: `number` is its number here.
    #[must_use]
    pub fn given(&self, room: RoomId, number: Number) -> Vec<AgentState> {
        self.given.of(room, number, Moment::now())
    }

    /// Frames were written to a connection.
    pub(crate) fn wrote(&self, link: &Link, frames: &[Frame]) {
        let mut messages = frames.iter().flat_map(Frame::messages).peekable();
        let Some(me) = link.me().filter(|_| messages.peek().is_some()) else { return };
        let now = Moment::now();
        let state = self.read();
        let is_direct = |room: &RoomId| {
            state.rooms.get(room).is_some_and(|known| known.facts.access.sides.is_some())
        };
        let direct = frames.iter().flat_map(Frame::messages).filter(|(room, _)| is_direct(room));
        for (room, number) in direct {
            let handed = Handed { agent: me.agent.clone(), room, number };
            self.given.wrote_to(handed, link.id, now);
        }
        drop(state);
        self.given.wrote(&me.agent, link.id, messages, now);
    }

    /// The commands that tell the mesh what agents were given through their connections. To be asked again and again.
    pub(crate) fn take_handed(&self) -> Vec<Command> {
        let mut by_agent: BTreeMap<(AgentId, RoomId), Vec<EntryRef>> = BTreeMap::new();
        for Handed { agent, room, number } in self.given.take_come(Moment::now()) {
            // One that cannot be read is said to have come when it is answered.
            let Ok(Some(row)) = self.reads.by_number(room, number) else { continue };
            let message = Message::read(room, row);
            if let Some(message) = message.filter(|of| of.is_to_be_handed_to(&agent)) {
                by_agent.entry((agent, room)).or_default().push(message.entry);
            }
        }
        let handed = |((agent, room), requests)| Command::Handed { agent, room, requests };
        by_agent.into_iter().map(handed).collect()
    }

    /// An agent has all messages of a room up to this number.
    pub(crate) fn confirmed(&self, agent: &AgentId, room: RoomId, upto: Number) {
        self.given.confirmed(agent, room, upto, Moment::now());
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Notices that an agent which is back missed here.
    pub(crate) fn missed(&self, agent: &AgentId) -> Vec<Notice> {
        self.away().take(agent)
    }

    /// Every connection writes its queue, then ends.
    pub(crate) fn drain(&self) {
        self.onlookers.close();
        for link in self.read().links.values() {
            link.drain(Ending::GoingAway);
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
    pub(crate) fn answered(&self, link: &Arc<Link>, hook: Hook, ended: &mut Ended) {
        match (hook, ended) {
            (Hook::Attach { me, voice }, Ok(Outcome::Attached(attached))) => {
                link.register(me, voice);
                self.attached(link, attached);
            }
            (Hook::Join { room, .. }, Ok(_)) => drop(self.seat(link, room)),
            (Hook::Join { room, fresh: true }, Err(_)) => self.unseat(link, room),
            (Hook::Leave { room }, Ok(_)) => self.left(link, room),
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
    /// been told so and has got the messages that it missed.
    fn attached(&self, link: &Arc<Link>, attached: &mut Attached) {
        let Some(me) = link.me() else { return };
        let mut state = self.write();
        let before = state.agents.insert(me.agent.clone(), Place::new(attached.registration, link));
        let before = before.filter(|place| !place.has(link));
        for link in before.iter().flat_map(|place| &place.links) {
            self.note_live(&state, link);
        }
        let seen = match (&before, attached.displaced) {
            (Some(place), Some(_)) => place.resume_points(),
            (Some(_), None) | (None, _) => HashMap::new(),
        };
        let restored = attached.restored.iter_mut().flatten();
        for (room, cursor) in restored.chain(&mut attached.addressed) {
            // The mesh takes everything for seen that was announced to the connection before; not
            // all of it may have been written.
            *cursor = seen.get(room).copied().unwrap_or(*cursor);
            state.seat(link, *room, true);
            // The connection before may have come from elsewhere, or this one does.
            let came = match &before {
                Some(place) => place.came_with(*room),
                None => self.served_to(me, *room).came_with(*cursor).unwrap_or(*cursor),
            };
            link.resumes(*room, came);
        }
        if let Some(place) = before {
            place.links.iter().for_each(|link| state.replaced(link));
            // They have been told the same.
            place.links.first().into_iter().for_each(|link| self.leaves(link, Vec::new()));
        }
        self.lingering().is_back(&me.agent);
        self.away().is_back(me, attached.restored.is_some());
    }

    /// Connections of the key are told so, and end.
    fn revoked(&self, key: KeyPrint) {
        let told = Arc::new(Told::new(Event::KeyRevoked));
        let state = self.read();
        for (_, link) in state.registered().filter(|(me, _)| me.key == key) {
            let rendered = link.voice().and_then(|voice| told.rendered(voice));
            rendered.into_iter().for_each(|rendered| link.replay(None, rendered));
            link.drain(Ending::Revoked);
        }
    }

    /// Frames and bytes that wait for all connections together.
    #[cfg(any(test, feature = "testing"))]
    pub fn held(&self) -> (usize, usize) {
        let held = self.read().links.values().map(|link| link.held()).collect::<Vec<_>>();
        held.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Tells crowds, until it is dropped. To run as long as anybody is served.
    pub(crate) async fn tell_crowds(&self) {
        loop {
            self.crowds.begun.notified().await;
            while self.tell_some() {
                sleep(CROWD_TOLD_EVERY).await;
            }
        }
    }

    fn tell_some(&self) -> bool {
        let state = self.read();
        self.crowds.tell_some(|room| state.rooms.get(&room).map(|room| &room.seats))
    }

    fn away(&self) -> MutexGuard<'_, Away> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lingering(&self) -> MutexGuard<'_, Lingering> {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner)
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
        let links = self.agents.values().flat_map(|place| &place.links);
        links.filter_map(|link| Some((link.me()?, link)))
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

    /// The agent of a connection has another one, which takes its place.
    fn replaced(&mut self, link: &Link) {
        self.unseat_everywhere(link);
        link.end(Ending::Replaced);
    }

    /// The agents attached here that a message mentions and that may read it.
    fn mentioned(&self, room: &Room, said: &Said) -> BTreeMap<LinkId, Arc<Link>> {
        let places = said.mentions.iter().filter_map(|agent| self.agents.get(agent));
        let links = places.flat_map(|place| &place.links);
        let may = |link: &&Arc<Link>| {
            link.me().is_some_and(|me| room.facts.readable_by(me.key, Some(&me.agent)))
        };
        links.filter(may).map(|link| (link.id, link.clone())).collect()
    }
}

fn name_of(me: &Me, room: RoomId) -> Name {
    Name { agent: me.agent.clone(), key: me.key, room }
}

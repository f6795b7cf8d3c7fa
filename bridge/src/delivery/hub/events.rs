//! Events of rooms, told to those whom they concern.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use mesh::{
    api::{
        command::{Access, AgentView, RoomView},
        event::{Delivered, RoomEvent},
    },
    name::{
        id::{AgentId, LocalRef, RoomId},
        number::Number,
    },
    records::members::Member,
    wire::{entry::Said, roster::Status},
};

use super::{Hub, Room, State, Watched};
use crate::{
    delivery::{
        link::{Link, Me},
        notice::Notice,
        outbox::Content,
    },
    seam::{
        answer::RoomFacts,
        event::{Event, Message, Told},
    },
};

/// Whether there is something new to read in the room.
fn is_news(event: &RoomEvent) -> bool {
    match event {
        RoomEvent::Message(_)
        | RoomEvent::Opened { .. }
        | RoomEvent::Destroyed { .. }
        | RoomEvent::VoteOpened(_)
        | RoomEvent::VoteEnded(_)
        | RoomEvent::ElectionStarted { .. }
        | RoomEvent::LeaderElected { .. }
        | RoomEvent::LeaderCleared { .. }
        | RoomEvent::TaskAssigned(_)
        | RoomEvent::TaskUpdated(..)
        | RoomEvent::TaskDeleted { .. }
        | RoomEvent::Delivery { .. } => true,
        RoomEvent::PassedOver { .. }
        | RoomEvent::Joined { .. }
        | RoomEvent::Left { .. }
        | RoomEvent::Turn { .. }
        | RoomEvent::Typing { .. }
        | RoomEvent::Piece { .. }
        | RoomEvent::Presence(_)
        | RoomEvent::OnceLost(_)
        | RoomEvent::ApprovalAsked(_)
        | RoomEvent::ApprovalDecided(_)
        | RoomEvent::Recorded(_) => false,
    }
}

/// The word of a status in which an agent is at something.
fn busy(status: Status) -> Option<&'static str> {
    match status {
        Status::Working => Some("working"),
        Status::Thinking => Some("thinking"),
        Status::Idle | Status::Waiting => None,
    }
}

impl Hub {
    /// Tells local members of an event in a room. Never blocks.
    pub fn notify(&self, room: RoomId, event: RoomEvent) {
        let is_news = is_news(&event);
        self.show(room, &event);
        self.route(room, event);
        if is_news {
            self.watches.ring(&Watched::Room(room));
        }
    }

    fn route(&self, room: RoomId, event: RoomEvent) {
        match event {
            RoomEvent::Message(delivered) => {
                self.message(room, &delivered);
                self.book.ring(room);
            }
            RoomEvent::PassedOver { number, at, .. } => self.passed_over(room, number, at),
            RoomEvent::Joined { agent, name, reconnected } => {
                let by = agent.clone();
                self.members(room, &by, Event::Joined { room, agent, name, reconnected });
            }
            RoomEvent::Left { agent } => {
                let by = agent.clone();
                self.members(room, &by, Event::Left { room, agent });
            }
            RoomEvent::Turn { holder, order, reason } => {
                self.turn(room, Event::Turn { room, holder, order, reason });
            }
            RoomEvent::Typing { agent, name, typing } => {
                if typing {
                    self.activity(room, &agent, "typing");
                }
                let by = agent.clone();
                self.members(room, &by, Event::Typing { room, agent, name, typing });
            }
            RoomEvent::Piece { name, piece } => self.piece(room, name, piece),
            RoomEvent::Presence(view) => {
                if let Some(word) = busy(view.presence.status) {
                    self.activity(room, &view.agent, word);
                }
                self.presence(room, view);
            }
            RoomEvent::Delivery { request, to, now } => {
                self.everybody(room, Event::Fate { room, request, to, now });
            }
            RoomEvent::OnceLost(lost) => {
                self.agent_alone(&lost.agent.clone(), Event::OnceLost { room, lost });
            }
            RoomEvent::ApprovalAsked(view) => self.task(room, Event::ApprovalAsked(view)),
            RoomEvent::ApprovalDecided(view) => {
                self.agent_alone(&view.by, Event::MayOrMayNot(view.clone()));
                self.task(room, Event::ApprovalDecided(view));
            }
            RoomEvent::Opened { view, announce } => {
                self.opened(view, announce);
                self.book.ring(room);
            }
            RoomEvent::Destroyed { access } => {
                self.destroyed(room, access);
                self.book.destroyed(room);
            }
            RoomEvent::Recorded(notes) => self.overheard(room, &Event::Recorded { room, notes }),
            RoomEvent::VoteOpened(view) => self.notice(room, Event::VoteOpened(view)),
            RoomEvent::VoteEnded(result) => self.notice(room, Event::VoteEnded(result)),
            RoomEvent::ElectionStarted { candidates, by } => {
                self.notice(room, Event::ElectionStarted { room, candidates, by });
            }
            RoomEvent::LeaderElected { agent, name } => {
                self.notice(room, Event::LeaderElected { room, agent, name });
            }
            RoomEvent::LeaderCleared { why } => {
                self.notice(room, Event::LeaderCleared { room, why });
            }
            RoomEvent::TaskAssigned(view) => self.task(room, Event::TaskMade(view)),
            RoomEvent::TaskUpdated(view, change) => {
                self.task(room, Event::TaskChanged(view, change));
            }
            RoomEvent::TaskDeleted { view, by } => {
                self.task(room, Event::TaskDeleted(view, by));
            }
        }
    }

    fn message(&self, room: RoomId, delivered: &Delivered) {
        self.overheard_words(room, delivered);
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
            // The store will know it, or fail with a reason, when the readers catch up.
            for link in known.seats.values() {
                link.message(room, delivered.number, Content::ToBeRead, None);
            }
            return;
        };
        // Its author is not told of it, and the other one of the room does not take it.
        if known.facts.withheld(&said.agent).is_some() {
            return;
        }
        let mentioned = state.mentioned(known, &said);
        let away = self.mentioned_away(room, known, &said);
        if known.seats.is_empty() && mentioned.is_empty() && away.is_empty() {
            return;
        }
        let proof = self.reads.proof(delivered.log.author, &said);
        let message = Message::delivered(room, delivered, said.clone(), proof);
        let Some(message) = message else { return };
        let anybody = !mentioned.is_empty() || !away.is_empty();
        let mention = anybody.then(|| Arc::new(Told::new(Event::Mentioned(message.clone()))));
        let author = (!message.reaches_its_author()).then_some(&said.agent);
        let told = Arc::new(Told::new(Event::Said(message)));
        for link in known.seats.values().filter(|link| author.is_none_or(|agent| !link.is(agent))) {
            // One that came late may be proven seen by the cursor that a client brought: the page that is read for it
            // says so.
            let judged = delivered.canonical.is_some() && link.came_with(room) > Number::ZERO;
            let Some(voice) = link.voice() else { continue };
            if judged {
                link.message(room, delivered.number, Content::ToBeRead, None);
                continue;
            }
            let mention = mention.as_ref().filter(|_| mentioned.contains_key(&link.id));
            let mention = mention.and_then(|mention| mention.rendered(voice));
            let content = told.rendered(voice).map_or(Content::NotShown, Content::Frame);
            link.message(room, delivered.number, content, mention);
        }
        let Some(notice) = mention.map(|told| known.notice(room, told)) else { return };
        let outside = |link: &&Arc<Link>| !known.seats.contains_key(&link.id);
        for link in mentioned.values().filter(|link| outside(link) || link.is(&said.agent)) {
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
        // A message without a body is not given to anybody.
        let row = self.reads.row_at(room, at).ok().flatten().filter(|row| row.said.is_some());
        let Some(row) = row else { return };
        for (link, _) in came.filter(|(_, came)| row.number <= *came) {
            link.owed(room, number);
        }
    }

    /// Agents that a message mentions, that are away, and that are not going to read it in the room.
    fn mentioned_away<'a>(&self, room: RoomId, known: &Room, said: &'a Said) -> Vec<&'a AgentId> {
        if said.mentions.is_empty() {
            return Vec::new();
        }
        let away = self.away();
        let mentions = said.mentions.iter();
        mentions.filter(|agent| away.wants_mention(agent, room, &known.facts)).collect()
    }

    /// To the agent alone, which may stand outside the room.
    fn agent_alone(&self, agent: &AgentId, event: Event) {
        let state = self.read();
        let Some(place) = state.agents.get(agent) else { return };
        let told = Arc::new(Told::new(event));
        place.links.iter().for_each(|link| link.tell(&told));
    }

    /// To all members but the one that did it.
    fn members(&self, room: RoomId, by: &AgentId, event: Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let told = Arc::new(Told::new(event));
        known.seats.values().filter(|link| !link.is(by)).for_each(|link| link.tell(&told));
    }

    /// To all members.
    fn everybody(&self, room: RoomId, event: Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let told = Arc::new(Told::new(event));
        known.seats.values().for_each(|link| link.tell(&told));
    }

    /// To all members, and to agents that left a moment ago and may come back.
    fn notice(&self, room: RoomId, event: Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let mut away = self.away();
        let wanted = away.has_members(room);
        if known.seats.is_empty() && !wanted {
            return;
        }
        let notice = known.notice(room, Arc::new(Told::new(event)));
        known.seats.values().for_each(|link| link.notice(&notice));
        if wanted {
            away.tell_members(&notice);
        }
    }

    fn task(&self, room: RoomId, event: Event) {
        self.overheard(room, &event);
        self.notice(room, event);
    }

    fn turn(&self, room: RoomId, event: Event) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room).filter(|known| !known.seats.is_empty()) else {
            return;
        };
        self.crowds.tell(room, &known.seats, Arc::new(Told::new(event)));
    }

    fn presence(&self, room: RoomId, view: Arc<AgentView>) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let mut last = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(|(told, _)| Arc::ptr_eq(told, &view)) {
            *last = Some((view.clone(), HashSet::new()));
        }
        let Some((_, told)) = last.as_mut() else { return };
        let event = Arc::new(Told::new(Event::Presence(view.clone())));
        for (id, link) in &known.seats {
            if !link.is(&view.agent) && told.insert(*id) {
                link.tell(&event);
            }
        }
    }

    fn opened(&self, view: RoomView, announce: bool) {
        let facts = RoomFacts {
            name: view.name.clone(),
            access: view.access(),
            encrypted: view.encrypted,
            ephemeral: view.ephemeral,
            task: view.task,
            on_record: view.on_record.clone(),
            withheld: view.withheld,
        };
        let mut state = self.write();
        let before = state.rooms.get(&view.room).map(|room| room.facts.clone());
        let room = state.rooms.entry(view.room);
        room.and_modify(|room| room.facts = facts.clone())
            .or_insert_with(|| Room::new(facts.clone(), view.tip));
        if let Some(before) = &before {
            let closed = Arc::new(Told::new(Event::RoomClosed { room: view.room }));
            state.shut_out(view.room, before, &facts, &closed);
            if let Some(room) = state.rooms.get(&view.room) {
                self.away().shut_out(view.room, &facts, &room.notice(view.room, closed));
            }
        }
        drop(state);
        if let Some(before) = &before {
            self.list_changed((view.room, &view.name), &before.on_record, &facts.on_record);
        }
        if !announce {
            return;
        }
        let view = Arc::new(view);
        if before.is_none() && view.sides.is_none() {
            let opened = Event::RoomOpened { room: view.clone(), own: false, to: None };
            self.overheard(view.room, &opened);
        }
        let state = self.read();
        let event =
            |own, to| Arc::new(Told::new(Event::RoomOpened { room: view.clone(), own, to }));
        let (plain, owned) = (event(false, None), event(true, None));
        let new = |me: &Me| {
            let reads = |facts: &RoomFacts| facts.readable_by(me.key, Some(&me.agent));
            let before = before.as_ref().is_some_and(reads);
            // Of the room of one whose words it does not take it is not told.
            let sides = facts.access.sides.as_ref();
            let withheld = sides.and_then(|sides| facts.withheld(sides.peer_of(&me.agent)));
            reads(&facts) && !before && withheld.is_none()
        };
        for (me, link) in state.registered().filter(|(me, _)| new(me)) {
            if view.sides.is_some() {
                link.tell(&event(false, Some(me.agent.clone())));
            } else {
                link.tell(if view.owner == Some(me.key) { &owned } else { &plain });
            }
        }
    }

    /// Others are on the list of a room than before, or have another part.
    fn list_changed(&self, (room, name): (RoomId, &Arc<str>), before: &[Member], now: &[Member]) {
        let differ = |list: &[Member], others: &[Member]| -> Vec<Member> {
            let is_among = |member: &&Member| {
                let is =
                    |other: &Member| (&other.agent, other.role) == (&member.agent, member.role);
                others.iter().any(is)
            };
            list.iter().filter(|member| !is_among(member)).cloned().collect()
        };
        let came = differ(now, before);
        let is_there = |member: &Member| now.iter().any(|other| other.agent == member.agent);
        let gone: Vec<Member> =
            differ(before, now).into_iter().filter(|member| !is_there(member)).collect();
        if !(came.is_empty() && gone.is_empty()) {
            let name = name.clone();
            self.overheard(room, &Event::MembersChanged { room, name, came, gone });
        }
    }

    fn destroyed(&self, room: RoomId, access: Access) {
        if access.sides.is_none() {
            self.overheard(room, &Event::RoomClosed { room });
        }
        let mut state = self.write();
        if let Some(known) = state.rooms.remove(&room) {
            known.seats.values().for_each(|link| link.unseat(room));
        }
        let told = Arc::new(Told::new(Event::RoomClosed { room }));
        for (_, link) in
            state.registered().filter(|(me, _)| access.includes(me.key, Some(&me.agent)))
        {
            link.tell(&told);
        }
    }
}

impl State {
    /// Agents that may not read a room any more are told that it is gone, and hear nothing of it.
    fn shut_out(&mut self, room: RoomId, before: &RoomFacts, now: &RoomFacts, told: &Arc<Told>) {
        let out = |me: &Me| {
            let reads = |facts: &RoomFacts| facts.readable_by(me.key, Some(&me.agent));
            reads(before) && !reads(now)
        };
        let links = self.registered().filter(|(me, _)| out(me));
        let links: Vec<Arc<Link>> = links.map(|(_, link)| link.clone()).collect();
        for link in links {
            link.unseat(room);
            if let Some(known) = self.rooms.get_mut(&room) {
                known.seats.remove(&link.id);
            }
            link.tell(told);
        }
    }
}

impl Room {
    fn new(facts: RoomFacts, tip: Number) -> Room {
        Room { facts, tip: AtomicU64::new(tip.0), seats: BTreeMap::new() }
    }

    /// An event that is told now.
    fn notice(&self, room: RoomId, told: Arc<Told>) -> Notice {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Notice {
            room,
            after: Number(self.tip.load(Ordering::Relaxed)),
            wall_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            told,
        }
    }
}

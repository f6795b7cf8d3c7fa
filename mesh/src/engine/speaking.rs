//! Messages of agents: into a room, and into the lobby of a node that joined another mesh.

use super::{
    conversing::{Conversations, Written},
    deliveries::{Asked, Deliveries},
    elections::{self, Leaders},
    given,
    inboxes::Inboxes,
    known::{Known, NO_MEMORY},
    turn_token,
    waiters::{Waiter, Waiters},
    waits::Requests,
};
use crate::{
    api::{
        command::{CallId, Caller, Durable, Encryption, Fresh, Refused, SaidOk, Say, Speech},
        rules::check_references,
    },
    limits::{
        CONTENT_BYTES_MAX, EPHEMERAL_BYTES_MAX, HELD_MAX, NUMBER_WITHIN, PLAIN_BODY_BYTES_MAX,
    },
    name::{
        id::{AgentId, LocalRef, MessageId, RoomId},
        number::Number,
    },
    wire::{
        conversation::Conversation,
        entry::{Body, Decision, Said},
        roster::AgentRecord,
    },
};

/// A message that an agent says.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) call: CallId,
    pub(super) caller: Caller,
    pub(super) say: Say,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Speaking {
    /// Messages for the lobby that wait until it is above this node's old one.
    held: Vec<Saying>,
    pub(super) conversations: Conversations,
    pub(super) deliveries: Deliveries,
    pub(super) requests: Requests,
}

impl Speaking {
    pub(super) fn new(known: &Known) -> Speaking {
        let (held, conversations) = (Vec::new(), Conversations::default());
        let requests = Requests::default();
        Speaking { held, conversations, deliveries: Deliveries::new(known), requests }
    }

    /// Takes in what nodes have said of requests in a room. Of one that has failed no answer is waited for.
    pub(super) fn settle(&mut self, known: &mut Known, inboxes: &mut Inboxes, room: RoomId) {
        for request in self.deliveries.settle(known, inboxes, room) {
            let message = MessageId::new(room, request.log, request.seq);
            self.conversations.is_over(message);
            self.requests.is_over(message);
            given::on_failed(known, inboxes, room, request);
        }
    }

    pub(super) fn say(
        &mut self,
        known: &mut Known,
        waiters: &mut Waiters,
        leaders: &mut Leaders,
        saying: Saying,
    ) {
        let lobby = RoomId::lobby(known.cx.mesh);
        let raised = known.node.lobby_floor > Number::ZERO;
        if saying.say.room == lobby && raised && self.held.len() < HELD_MAX {
            // Numbered now, it would be behind the cursors that this node's clients hold.
            self.held.push(saying);
            return;
        }
        let call = saying.call;
        if let Err(refused) = self.try_say(known, waiters, leaders, saying) {
            known.cx.reply(call, Err(refused));
        }
    }

    /// This node's lobby was longer than the mesh's it joined: the lobby gets one new era, above the
    /// cursors that this node's clients hold.
    pub(super) fn raise_lobby(
        &mut self,
        known: &mut Known,
        waiters: &mut Waiters,
        leaders: &mut Leaders,
    ) {
        let floor = known.node.lobby_floor;
        if floor == Number::ZERO {
            return;
        }
        let lobby = RoomId::lobby(known.cx.mesh);
        let Some(room) = known.rooms.get_mut(&lobby) else { return };
        // First hear how long it is: only a node that is up to date with some peer can tell. A node that
        // hears nobody goes on without: nobody is kept waiting for longer than for a number.
        let patient = known.cx.now.mono < known.started + NUMBER_WITHIN;
        if patient && (!room.replica.sync.has_heard() || room.replica.sync.is_behind()) {
            return room.replica.ask_all(&mut known.cx);
        }
        let era = room.order.numbering.current();
        let highest = era.number(room.order.numbering.known(era));
        // A node that may not write here raises nothing: callers that wait are told so.
        let closed = !room.is_writable(&known.cx);
        if closed || highest >= floor || room.number_above(&mut known.cx, floor, &[]) {
            known.change_node().lobby_floor = Number::ZERO;
            for saying in std::mem::take(&mut self.held) {
                self.say(known, waiters, leaders, saying);
            }
        }
    }

    fn try_say(
        &mut self,
        known: &mut Known,
        waiters: &mut Waiters,
        leaders: &mut Leaders,
        saying: Saying,
    ) -> Result<(), Refused> {
        let Saying { call, caller, say } = saying;
        let (room, speech, durable) = (say.room, say.speech, say.durable);
        let record = known.may_contribute(&caller, room)?;
        may_contain(known, &say)?;
        may_be_durable(known, &say)?;
        if let Some(none) = known.takes_none(room, &caller.agent) {
            return Err(Refused::TakesNone(none));
        }
        if repeats(known, waiters, call, &say) {
            return Ok(());
        }
        let name = record.name.to_string();
        let turn = match speech {
            Speech::Chat => turn_token::next(known, room, &caller.agent),
            Speech::Thinking | Speech::Decision => None,
        };
        let part = say.conversing.as_deref();
        let counts = part.is_some_and(|part| part.counts);
        let answered = part.and_then(|part| part.answers);
        let answered = answered.filter(|of| of.conversation.expects_reply).map(|of| of.message);
        let place =
            part.map(|part| self.conversations.place(known, &caller, room, part)).transpose()?;
        if place.is_some_and(|place| place.expects_reply) {
            self.deliveries.may_ask(&caller.agent)?;
        }
        let bytes = say.content.len();
        let said = Said { conversation: place, ..said(caller.agent.clone(), &record, say, turn) };
        let body = match speech {
            Speech::Chat => Body::Chat(said),
            Speech::Thinking => Body::Thinking(said),
            Speech::Decision => {
                // An agent that is refused has been told before why.
                leaders.settle_elections(known, room);
                let election =
                    elections::led_by(known, room, &caller.agent).ok_or(Refused::NotLeader)?;
                Body::Decision(Decision { said, election })
            }
        };
        let at = write(known, room, &body)?;
        if let Some(place) = place {
            let asked = Asked { by: &caller.agent, room, at, bytes };
            self.note(known, place, (asked, counts));
        }
        if let Some(request) = answered {
            self.deliveries.answered(known, &caller.agent, (room, request));
        }
        let wall_ms = known.cx.now.wall_ms;
        let proof = known.directory.proofs().of_agent(known.cx.me, record.key, &caller.agent);
        let fresh = Some(Fresh { wall_ms, name, proof, conversation: place });
        waiters.wait((room, at), Waiter::Said { call, fresh, durable });
        Ok(())
    }

    /// A message in a conversation was written.
    fn note(&mut self, known: &mut Known, place: Conversation, (asked, counts): (Asked<'_>, bool)) {
        let Asked { by: agent, room, at, .. } = asked;
        let Some(message) = known.message_id(room, at) else { return };
        let written = Written { agent, room, message, counts };
        self.conversations.note_said(known, written, &place);
        if place.expects_reply {
            self.deliveries.note_asked(known, asked);
        }
    }
}

fn said(agent: AgentId, record: &AgentRecord, say: Say, turn: Option<u64>) -> Said {
    Said {
        agent,
        name: record.name.to_string(),
        content: say.content,
        reply_to: say.reply_to,
        mentions: say.mentions,
        metadata: say.metadata,
        dedup: say.dedup,
        turn,
        id: None,
        key: record.key.checked(),
        conversation: None,
    }
}

fn write(known: &mut Known, room: RoomId, body: &Body) -> Result<LocalRef, Refused> {
    let len = body.encode().len();
    if len > PLAIN_BODY_BYTES_MAX {
        return Err(Refused::TooLarge { len, max: PLAIN_BODY_BYTES_MAX });
    }
    let state = known.rooms.get_mut(&room).ok_or(Refused::NoRoom)?;
    if state.replica.record.ephemeral && known.cx.memory.ephemeral + len > EPHEMERAL_BYTES_MAX {
        return Err(Refused::Full(NO_MEMORY.to_owned()));
    }
    if !state.is_writable(&known.cx) {
        return Err(known.not_writable(room));
    }
    state.append(&mut known.cx, body).ok_or(Refused::Closed)
}

fn may_contain(known: &Known, say: &Say) -> Result<(), Refused> {
    if say.content.len() > CONTENT_BYTES_MAX {
        return Err(Refused::TooLarge { len: say.content.len(), max: CONTENT_BYTES_MAX });
    }
    check_references(&say.mentions, say.reply_to.as_deref())?;
    let encrypted = known.told.get(&say.room).is_some_and(|view| view.encrypted);
    if encrypted && say.encryption == Encryption::None {
        return Err(Refused::Plaintext);
    }
    Ok(())
}

/// Whether as many nodes as are wanted can hold a message.
fn may_be_durable(known: &Known, say: &Say) -> Result<(), Refused> {
    let Some(Durable { copies, .. }) = say.durable else { return Ok(()) };
    if known.is_memory(say.room) {
        return Err(Refused::NotDurable);
    }
    let max = known.nodes_with(say.room).len();
    if copies > max { Err(Refused::TooManyCopies { max }) } else { Ok(()) }
}

/// A repeated send is answered with the first one's message. `false`: it is the first.
fn repeats(known: &mut Known, waiters: &mut Waiters, call: CallId, say: &Say) -> bool {
    let Some(id) = say.dedup else { return false };
    let wall_ms = known.cx.now.wall_ms;
    let Some(room) = known.rooms.get_mut(&say.room) else { return false };
    let Some((at, number)) = room.order.sent.find(wall_ms, id) else { return false };
    match number {
        Some(number) => {
            let Some(message) = known.message_id(say.room, at) else { return false };
            let said = SaidOk { message, number, fresh: None, copies: None };
            waiters.said(known, (say.room, at), (call, say.durable), said);
        }
        // Nobody takes what was written here, so nobody is to wait for it.
        None if !room.is_writable(&known.cx) => return false,
        None => {
            let waiter = Waiter::Said { call, fresh: None, durable: say.durable };
            waiters.wait((say.room, at), waiter);
        }
    }
    true
}

//! Events as frames.

use std::sync::Arc;

use bridge::seam::{
    event::{self, Event, Frames, Message},
    refusal::Refusal,
};
use bytes::Bytes;
use mesh::{
    api::command::{Refused, Speech},
    name::id::RoomId,
};
use protocol::{
    code::Code,
    event::{AgentLeft, DecisionMade, Event as Wire, Heartbeat, Mention, RoomDestroyed},
    frame::{encode_event, encode_reply},
    object::MeshNote,
    reply::Reply,
};
use serde::{Deserialize, Serialize};

use crate::{
    approvals,
    codes::Refusals,
    encode::{self, Viewer},
    ids::FrameIds,
    once, receipts, streams,
};

/// How ClawChat's clients are told of things.
#[derive(Debug)]
pub(crate) struct Voice {
    lobby: RoomId,
    ids: FrameIds,
    pub(crate) refusals: Arc<Refusals>,
}

impl Voice {
    pub(crate) fn new(lobby: RoomId) -> Voice {
        Voice { lobby, ids: FrameIds::new(), refusals: Arc::default() }
    }

    pub(crate) fn lobby(&self) -> RoomId {
        self.lobby
    }

    /// A room as clients name it.
    pub(crate) fn name(&self, room: RoomId) -> String {
        encode::room_text(self.lobby, room)
    }

    /// The room that a client names.
    pub(crate) fn room(&self, text: &str) -> Result<RoomId, Refusal> {
        encode::room_id(self.lobby, text).ok_or(Refusal::Mesh(Refused::NoRoom))
    }

    pub(crate) fn reply(&self, reply: &Reply, reply_to: Option<&str>) -> Bytes {
        Bytes::from(encode_reply(reply, reply_to, &self.ids.fresh()))
    }

    fn event(&self, event: &Wire) -> Bytes {
        Bytes::from(encode_event(event, &self.ids.fresh()))
    }

    fn error(&self, code: Code, text: &str) -> Bytes {
        self.reply(&Reply::error(code, text), None)
    }

    /// A message as it is pushed.
    fn said(&self, message: &Message) -> Wire {
        let wire = encode::message(self.lobby, message);
        match message.speech {
            Speech::Chat => Wire::MessageReceived(Box::new(wire)),
            Speech::Thinking => Wire::Thinking(Box::new(wire)),
            Speech::Decision => Wire::DecisionMade(Box::new(DecisionMade {
                room_id: wire.room_id,
                message_id: wire.message_id,
                leader_id: wire.agent_id,
                leader_name: wire.agent_name,
                content: wire.content,
                metadata: wire.metadata,
                timestamp: wire.timestamp,
                mesh: Some(MeshNote { seq: Some(wire.seq), ..wire.mesh.unwrap_or_default() }),
            })),
        }
    }
}

const NOT_VALID: &str = "the key is not valid any more: it was revoked, or has expired";

const TOO_MANY_CONNECTIONS: &str =
    "the node has as many connections as it may; try again later or at another node";

impl event::Voice for Voice {
    fn dialect(&self) -> Option<&'static str> {
        Some("ClawChat")
    }

    fn frames(&self, event: &Event) -> Frames {
        let name = |room: &RoomId| self.name(*room);
        let wire = match event {
            Event::Said(message) => self.said(message),
            Event::Mentioned(message) => {
                let room_id = self.name(message.room);
                let message = Box::new(encode::message(self.lobby, message));
                Wire::Mention(Mention { room_id, message })
            }
            Event::Joined { room, agent, name: called, reconnected } => {
                encode::joined(name(room), agent, called, *reconnected)
            }
            Event::Left { room, agent } => {
                Wire::AgentLeft(AgentLeft { room_id: name(room), agent_id: agent.to_string() })
            }
            Event::Turn { room, holder, order, reason } => {
                encode::turn(name(room), holder.as_ref(), order, *reason)
            }
            Event::Typing { room, agent, name: called, typing } => {
                encode::typing(name(room), agent, called, *typing)
            }
            Event::Presence(agent) => encode::presence(agent),
            Event::RoomOpened { room, own, to } => {
                let to = Viewer { key: room.owner.filter(|_| *own), agent: to.clone() };
                Wire::RoomCreated(Box::new(encode::room(self.lobby, room, &to)))
            }
            Event::RoomClosed { room } => {
                Wire::RoomDestroyed(RoomDestroyed { room_id: name(room) })
            }
            Event::VoteOpened(vote) => Wire::VoteCreated(Box::new(encode::vote(self.lobby, vote))),
            Event::VoteEnded(result) => {
                Wire::VoteResult(Box::new(encode::vote_result(self.lobby, result)))
            }
            Event::ElectionStarted { room, candidates, by } => {
                encode::election_started(name(room), candidates, by)
            }
            Event::LeaderElected { room, agent, name: called } => {
                encode::leader_elected(name(room), agent, called)
            }
            Event::LeaderCleared { room, why } => encode::leader_cleared(name(room), *why),
            Event::TaskMade(task) => Wire::TaskAssigned(Box::new(encode::task(self.lobby, task))),
            Event::TaskChanged(task, _) => {
                Wire::TaskUpdated(Box::new(encode::task(self.lobby, task)))
            }
            // It is not listed any more: clients have no event for that.
            Event::TaskDeleted(..) => return Frames::default(),
            // Those who have a seat hear `agent_joined` and `agent_left`.
            Event::MembersChanged { .. } => return Frames::default(),
            // Details are asked for.
            Event::Recorded { .. } => return Frames::default(),
            Event::OnceLost { room, lost } => {
                Wire::OnceLost(Box::new(once::lost(name(room), lost)))
            }
            Event::MayOrMayNot(view) => {
                Wire::ApprovalDecided(Box::new(approvals::written(name(&view.room), view)))
            }
            // Messages say so.
            Event::ApprovalAsked(_) | Event::ApprovalDecided(_) => return Frames::default(),
            Event::Fate { room, request, to, now } => {
                Wire::Receipt(receipts::receipt(name(room), *request, to, now))
            }
            Event::Piece { room, name: called, piece } => {
                Wire::Stream(Box::new(streams::written(name(room), called, piece)))
            }

            // Nobody of this dialect looks on.
            Event::Audience { .. } => return Frames::default(),
            Event::Heartbeat => Wire::Ping(Heartbeat { heartbeat: true }),
            Event::KeyRevoked => return self.error(Code::Unauthorized, NOT_VALID).into(),
            Event::TooManyConnections => {
                return self.error(Code::InternalError, TOO_MANY_CONNECTIONS).into();
            }
        };
        self.event(&wire).into()
    }

    /// Few clients ask for receipts, and the others do not know them.
    fn is_personal(&self, event: &Event) -> bool {
        matches!(event, Event::Fate { .. })
    }

    /// `metadata.kind`, as clients see it.
    fn kind(&self, message: &Message) -> Option<String> {
        #[derive(Deserialize)]
        struct Tagged {
            kind: String,
        }
        let metadata = encode::shown_metadata(message)?;
        serde_json::from_str::<Tagged>(metadata.get()).ok().map(|tagged| tagged.kind)
    }

    fn letter(&self, subscription: &str, message: &Message) -> Option<Bytes> {
        #[derive(Serialize)]
        struct Letter<'a> {
            r#type: &'static str,
            subscription_id: &'a str,
            room_id: &'a str,
            message: &'a protocol::object::Message,
        }
        let message = encode::message(self.lobby, message);
        let letter = Letter {
            r#type: "clawchat.message.created",
            subscription_id: subscription,
            room_id: &message.room_id,
            message: &message,
        };
        let letter = serde_json::to_vec(&letter).expect("a message has only what JSON has");
        Some(Bytes::from(letter))
    }
}

#[cfg(test)]
mod tests {
    use bridge::seam::event::Voice as _;
    use mesh::{
        Proof,
        name::{
            id::{EntryRef, LogId, MessageId, NodeId},
            number::Number,
        },
        wire::entry::Said,
    };

    use super::*;

    const LOBBY: RoomId = RoomId([1; 16]);

    fn message(speech: Speech, metadata: &str) -> Message {
        Message {
            room: LOBBY,
            number: Number(7),
            canonical: Number(5),
            numbers: Vec::new(),
            message: MessageId([3; 16]),
            speech,
            wall_ms: 1_700_000_000_123,
            by: NodeId([9; 32]),
            said: Arc::new(Said {
                agent: "a".into(),
                name: "ann".into(),
                content: "hi".into(),
                reply_to: None,
                mentions: Vec::new(),
                metadata: Some(metadata.into()),
                dedup: None,
                turn: None,
                id: None,
                key: None,
                conversation: None,
            }),
            proof: Proof::default(),
            entry: EntryRef { log: LogId { author: NodeId([9; 32]), incarnation: 0 }, seq: 7 },
            fate: None,
        }
    }

    #[test]
    fn a_letter_is_what_receivers_know() {
        let message = message(Speech::Chat, r#"{"kind":"verdict"}"#);
        let letter = Voice::new(LOBBY).letter("s", &message).unwrap();
        let expect = r#"{"type":"clawchat.message.created","subscription_id":"s","room_id":"lobby","message":{"message_id":"03030303-0303-0303-0303-030303030303","room_id":"lobby","agent_id":"a","agent_name":"ann","content":"hi","metadata":{"kind":"verdict"},"timestamp":"2023-11-14T22:13:20.123Z","seq":7,"mesh":{"canonical_seq":5,"late":true}}}"#;
        assert_eq!(str::from_utf8(&letter).unwrap(), expect);
    }

    /// Filters judge what receivers would be shown.
    #[test]
    fn the_kind_of_a_message_is_that_of_the_metadata_that_clients_see() {
        let voice = Voice::new(LOBBY);
        let kind = |speech, metadata: &str| voice.kind(&message(speech, metadata));
        let verdict = Some("verdict".to_owned());
        assert_eq!(kind(Speech::Chat, r#"{"kind":"verdict"}"#), verdict);
        for none in [r#"{"kind":7}"#, r#""verdict""#, "{}", r#"{"kind":"verdict","x":1e999}"#] {
            assert_eq!(kind(Speech::Chat, none), None, "{none}");
        }
        assert_eq!(kind(Speech::Thinking, r#"{"kind":"verdict"}"#), None, "pulses have no kind");
        let twice = r#"{"kind":"fyi","kind":"verdict"}"#;
        assert_eq!(kind(Speech::Decision, twice), verdict, "of two the last one is shown");
        assert_eq!(kind(Speech::Decision, r#"["verdict"]"#), None, "no object is not shown");
    }
}

//! Events as frames. All frames of a connection that need a look at the mesh, or are not for everybody, are written by the
//! connection itself: [`crate::socket`].

use std::sync::Arc;

use bridge::seam::event::{self, Event, Frames, Message, PING};
use bytes::Bytes;

use crate::{
    approvals, envelope::Told, git, ids::Form, said::Saying, spectators, style::Style, tasks::news,
};

/// How clients with one form of ids are told of things.
#[derive(Debug)]
pub(crate) struct Voice(pub(crate) Style);

/// One for each form of ids.
#[derive(Clone, Debug)]
pub(crate) struct Voices {
    pub(crate) prefixed: Arc<Voice>,
    pub(crate) bare: Arc<Voice>,
    pub(crate) usual: Form,
}

impl Voices {
    pub(crate) fn of(&self, form: Form) -> &Arc<Voice> {
        match form {
            Form::Prefixed => &self.prefixed,
            Form::Bare => &self.bare,
        }
    }

    pub(crate) fn usual(&self) -> &Arc<Voice> {
        self.of(self.usual)
    }
}

/// The connection writes a frame of its own in the place of this one, or none.
const OWN: Bytes = Bytes::from_static(b"{}");

impl event::Voice for Voice {
    fn dialect(&self) -> Option<&'static str> {
        Some("ClawTank")
    }

    fn frames(&self, event: &Event) -> Frames {
        match event {
            Event::Said(message) | Event::Mentioned(message) => {
                self.0.frame(Saying::of(message, false).told(self.0)).into()
            }
            Event::TaskMade(task) => {
                self.0.in_room(news::created(self.0, task), task.room).into()
            }
            Event::TaskChanged(task, change) => {
                let told = |told: Told| self.0.in_room(told, task.room);
                news::changed(self.0, task, change).into_iter().map(told).collect()
            }
            Event::Audience { room, news } => {
                self.0.frame(spectators::talk::to_members(self.0, *room, news)).into()
            }
            Event::Heartbeat => PING.into(),
            Event::Joined { .. }
            | Event::Left { .. }
            | Event::RoomOpened { .. }
            | Event::RoomClosed { .. }
            | Event::ApprovalDecided(_)
            | Event::MayOrMayNot(_)
            | Event::KeyRevoked => OWN.into(),
            Event::Turn { .. }
            | Event::Typing { .. }
            | Event::Presence(_)
            | Event::VoteOpened(_)
            | Event::VoteEnded(_)
            | Event::ElectionStarted { .. }
            | Event::LeaderElected { .. }
            | Event::LeaderCleared { .. }
            // It has ended before, which was told.
            | Event::TaskDeleted(..)
            | Event::OnceLost { .. }
            // Members on record are not told of in this dialect.
            | Event::MembersChanged { .. }
            | Event::Recorded { .. }
            // Its message is told of.
            | Event::ApprovalAsked(_)
            | Event::Fate { .. }
            | Event::Piece { .. }
            // Of connections that have said nothing, which are the last dialect's.
            | Event::TooManyConnections => Frames::none(),
        }
    }

    fn is_personal(&self, event: &Event) -> bool {
        match event {
            // Of two in a direct room, perhaps, or with more to tell; other messages are the same for all.
            Event::Said(message) => {
                message.said.conversation.is_some()
                    || git::may_be_commit(message.said.metadata.as_deref())
                    || approvals::is_of_one(message.said.metadata.as_deref())
            }
            Event::Mentioned(_)
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::RoomOpened { .. }
            | Event::RoomClosed { .. }
            | Event::TaskMade(_)
            | Event::TaskChanged(..)
            | Event::ApprovalDecided(_)
            | Event::MayOrMayNot(_)
            | Event::KeyRevoked => true,
            Event::Heartbeat
            | Event::Audience { .. }
            | Event::Turn { .. }
            | Event::Typing { .. }
            | Event::Presence(_)
            | Event::VoteOpened(_)
            | Event::VoteEnded(_)
            | Event::ElectionStarted { .. }
            | Event::LeaderElected { .. }
            | Event::LeaderCleared { .. }
            | Event::TaskDeleted(..)
            | Event::OnceLost { .. }
            | Event::MembersChanged { .. }
            | Event::Recorded { .. }
            | Event::ApprovalAsked(_)
            | Event::Fate { .. }
            | Event::Piece { .. }
            | Event::TooManyConnections => false,
        }
    }

    fn kind(&self, _: &Message) -> Option<String> {
        None
    }

    fn letter(&self, _: &str, _: &Message) -> Option<Bytes> {
        None
    }
}

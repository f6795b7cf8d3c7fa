//! The way back of a call's answer.

use std::sync::Arc;

use mesh::{
    api::command::{Outcome, Refused},
    name::id::{AgentId, KeyPrint, RoomId},
};
use tokio::sync::oneshot;

use crate::{hub::Hub, link::Link, webhooks::Answered};

/// Names a call of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// How a call ended.
pub(crate) type Answer = Result<Outcome, Failure>;

/// An answer to a connection, by who was asked.
#[derive(Debug)]
pub(crate) enum Given {
    Mesh(Answer),
    Webhooks(Answered),
}

/// Why a call came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The mesh says no.
    Refused(Refused),
    /// The mesh has not taken it: its queue was full.
    Unanswered,
    /// The mesh took it and said nothing: the node stops, and nobody knows what becomes of it.
    Unknown,
}

/// What routing has to know of an answer. It is told on the engine's thread, so that it is in force
/// for the very next event.
#[derive(Debug)]
pub(crate) enum Hook {
    /// Nothing.
    None,
    /// The connection is this agent's.
    Attach { agent: AgentId, key: KeyPrint, stable: bool },
    /// It was seated when it asked (`fresh`: not before): events that the join causes may come
    /// before its answer.
    Join { room: RoomId, fresh: bool },
    /// Its seat is to be taken away.
    Leave { room: RoomId },
}

/// Where the answer to a [`crate::Mesh::call`] goes.
#[derive(Debug)]
pub struct Reply {
    to: Option<To>,
    taken: bool,
}

#[derive(Debug)]
enum To {
    Link { hub: Arc<Hub>, link: Arc<Link>, ticket: Ticket, hook: Hook },
    Once(oneshot::Sender<Answer>),
}

impl Reply {
    pub(crate) fn to_link(hub: Arc<Hub>, link: Arc<Link>, ticket: Ticket, hook: Hook) -> Reply {
        Reply { to: Some(To::Link { hub, link, ticket, hook }), taken: false }
    }

    pub(crate) fn once() -> (Reply, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (Reply { to: Some(To::Once(sender)), taken: false }, receiver)
    }

    /// The mesh has begun with it. If it is dropped from now on, the client is told that nobody knows whether it was
    /// done; before, that the node is too busy.
    pub fn take(&mut self) {
        self.taken = true;
    }

    /// Hands the answer over. Never blocks. To be called on the thread that calls
    /// [`Hub::notify`], in the order of the effects.
    pub fn send(mut self, result: Result<Outcome, Refused>) {
        self.finish(result.map_err(Failure::Refused));
    }

    fn finish(&mut self, mut answer: Answer) {
        match self.to.take() {
            Some(To::Link { hub, link, ticket, hook }) => {
                hub.answered(&link, hook, &mut answer);
                link.answer(ticket, Given::Mesh(answer));
            }
            // Nobody waits any more: the connection has ended.
            Some(To::Once(sender)) => drop(sender.send(answer)),
            None => {}
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.finish(Err(if self.taken { Failure::Unknown } else { Failure::Unanswered }));
    }
}

//! The state of one connection, and what its requests have at hand.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bridge::{read::Visitor, seam::refusal::Refusal, session::ask::Ask};
use bytes::Bytes;
use mesh::name::id::{AgentId, MessageId, RoomId};
use tokio::sync::mpsc;

use crate::{
    connect::Member,
    envelope::Told,
    ids::Form,
    limits::{AWAITED_FOR, AWAITED_MAX, REQUESTS_MAX},
    newest::Newest,
    problem::Problem,
    shared::{News, Shared},
    spectators::talk::Spectator,
    style::Style,
};

/// See the module.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) member: Option<Arc<Member>>,
    /// Rooms that it has joined.
    pub(crate) rooms: BTreeSet<RoomId>,
    /// Rooms that an agent joins when it registers.
    pub(crate) wanted: Vec<RoomId>,
    /// The form of ids that it has agreed on.
    pub(crate) form: Option<Form>,
    /// Namespaces of extensions that it has agreed on, or has used.
    pub(crate) namespaces: BTreeSet<&'static str>,
    pub(crate) awaited: Awaited,
    /// Of a client that looks on and is no member.
    pub(crate) spectator: Option<Arc<Spectator>>,
    /// Private requests that it was told of, by all the ids that it knows them by, and their rooms.
    pub(crate) requests: Requests,
    /// The frame that goes out in the place of the next one of an event.
    pub(crate) own: Option<Bytes>,
}

/// See [`State::requests`].
#[derive(Debug)]
pub(crate) struct Requests(Newest<MessageId, RoomId>);

impl Default for Requests {
    fn default() -> Requests {
        Requests(Newest::new(REQUESTS_MAX))
    }
}

impl Requests {
    pub(crate) fn note(&mut self, request: MessageId, room: RoomId) {
        self.0.put(&request, room);
    }

    pub(crate) fn get(&self, request: &MessageId) -> Option<&RoomId> {
        self.0.get(request)
    }
}

/// Writes whose events are on their way: their answer has told of them.
#[derive(Debug, Default)]
pub(crate) struct Awaited(VecDeque<(Option<MessageId>, Instant)>);

impl Awaited {
    /// A change of a task, or one that is about to be made.
    pub(crate) fn expect(&mut self, task: Option<MessageId>) {
        self.0.retain(|(_, since)| since.elapsed() < AWAITED_FOR);
        if self.0.len() < AWAITED_MAX {
            self.0.push_back((task, Instant::now()));
        }
    }

    /// It has come, or will not. `false`: nobody waits for one.
    pub(crate) fn take(&mut self, task: Option<MessageId>) -> bool {
        self.0.retain(|(_, since)| since.elapsed() < AWAITED_FOR);
        let place = self.0.iter().position(|(of, _)| *of == task);
        place.is_some_and(|place| self.0.remove(place).is_some())
    }
}

/// What the requests of a connection have at hand. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) member: Arc<Member>,
    pub(crate) state: Arc<Mutex<State>>,
    /// The way of events to this connection.
    pub(crate) news: News,
}

pub(crate) fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Of somebody without a connection: he hears of no news.
    pub(crate) fn of_reader(shared: &Arc<Shared>, member: Member) -> Context {
        let (news, _) = mpsc::channel(1);
        let state = Arc::<Mutex<_>>::default();
        Context { shared: shared.clone(), member: Arc::new(member), state, news }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(crate) fn style(&self) -> Style {
        self.member.style
    }

    /// As which the client is in the mesh.
    pub(crate) fn agent(&self) -> Result<&AgentId, Problem> {
        let text = "register the agent first: agent.register";
        self.member.agent.get().ok_or_else(|| Problem::denied(text).because("not registered"))
    }

    /// The client as one who acts.
    pub(crate) fn me(&self) -> Result<Visitor, Problem> {
        let attached = self.shared.desk.attached(self.agent()?, self.member.holder.key());
        attached.ok_or_else(Problem::replaced)
    }

    /// Asks as the client's agent.
    pub(crate) async fn ask<C: Ask>(&self, call: C) -> Result<C::Answer, Problem> {
        Ok(self.try_ask(call).await??)
    }

    /// The same, for those who have words of their own for some refusals.
    pub(crate) async fn try_ask<C: Ask>(
        &self,
        call: C,
    ) -> Result<Result<C::Answer, Refusal>, Problem> {
        Ok(self.shared.desk.ask(&self.me()?, call).await)
    }

    /// Asks as the client's agent, or as the holder of its key if there is none.
    pub(crate) async fn read<C: Ask>(&self, call: C) -> Result<C::Answer, Problem> {
        Ok(self.try_read(call).await?)
    }

    /// The same, for those who have words of their own for some refusals.
    pub(crate) async fn try_read<C: Ask>(&self, call: C) -> Result<C::Answer, Refusal> {
        let reader = self.me().unwrap_or_else(|_| self.member.holder.clone());
        self.shared.desk.ask(&reader, call).await
    }

    pub(crate) fn frame(&self, told: Told) -> Bytes {
        self.style().frame(told)
    }

    /// Rooms that the connection has joined.
    pub(crate) fn rooms(&self) -> Vec<RoomId> {
        self.state().rooms.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_write_is_awaited_once_and_of_a_bounded_number() {
        let mut awaited = Awaited::default();
        let task = Some(MessageId([1; 16]));
        awaited.expect(task);
        awaited.expect(None);
        assert!(awaited.take(task) && !awaited.take(task));
        assert!(awaited.take(None) && !awaited.take(None));
        (0..2 * AWAITED_MAX).for_each(|_| awaited.expect(task));
        assert_eq!(awaited.0.len(), AWAITED_MAX);
    }
}

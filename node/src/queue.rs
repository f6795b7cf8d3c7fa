//! What waits for the engine: commands of clients, and what peers did.
//!
//! One queue, first come first served, with a bound for each of the two: clients are refused when
//! theirs is full, peers wait. A flood of one does not crowd out the other.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bridge::Reply;
use mesh::{
    Input,
    command::{Command, Outcome, Refused},
};
use tokio::sync::oneshot;

use crate::limits::{COMMAND_BYTES_MAX, COMMANDS_MAX, PEER_BYTES_MAX, PEER_INPUTS_MAX};

/// Who waits for a command's end.
#[derive(Debug)]
pub(crate) enum Asker {
    /// A client of the bridge. Dropped, it is told that the node is too busy.
    Client(Reply),
    /// An operator, or this program itself.
    Operator(oneshot::Sender<Result<Outcome, Refused>>),
    /// Nobody: the command has no answer.
    Nobody,
}

impl Asker {
    /// The engine's thread has ended: not busy, gone.
    fn turn_away(self) {
        self.refuse(Refused::Stopping);
    }

    /// Without having asked the engine.
    pub(crate) fn refuse(self, why: Refused) {
        match self {
            Asker::Client(reply) => reply.send(Err(why)),
            // It may have stopped waiting.
            Asker::Operator(asker) => drop(asker.send(Err(why))),
            Asker::Nobody => {}
        }
    }
}

/// One thing that waits.
#[derive(Debug)]
pub(crate) enum Item {
    /// A command.
    Command(Command, Asker),
    /// What a peer did.
    Peer(Input),
}

/// The engine's thread has ended.
#[derive(Debug)]
pub(crate) struct Closed;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    space: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<(Item, usize)>,
    commands: Held,
    peers: Held,
    closed: bool,
}

/// How much of a bound is used.
#[derive(Debug, Default)]
struct Held {
    items: usize,
    bytes: usize,
}

impl Held {
    /// One thing always fits, however large.
    fn takes(&self, bytes: usize, items_max: usize, bytes_max: usize) -> bool {
        self.items == 0 || (self.items < items_max && self.bytes + bytes <= bytes_max)
    }

    fn add(&mut self, bytes: usize) {
        self.items += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.items -= 1;
        self.bytes -= bytes;
    }
}

impl Queue {
    /// Queues a command. If there is no room for it the asker is dropped; if there is nobody any more
    /// to take it, it is told so.
    pub(crate) fn ask(&self, command: Command, asker: Asker) {
        let bytes = command_bytes(&command);
        let mut state = self.locked();
        // A command that nobody waits for is this program's own: to stop.
        let own = matches!(asker, Asker::Nobody);
        let fits = own || state.commands.takes(bytes, COMMANDS_MAX, COMMAND_BYTES_MAX);
        // Not under the lock: there is somebody to tell.
        if state.closed {
            drop(state);
            return asker.turn_away();
        }
        if !fits {
            drop(state);
            return drop(asker);
        }
        state.commands.add(bytes);
        state.items.push_back((Item::Command(command, asker), bytes));
        drop(state);
        self.work.notify_one();
    }

    /// Queues what a peer said, if there is room.
    pub(crate) fn offer(&self, input: Input, bytes: usize) -> bool {
        let state = self.locked();
        if state.closed || !state.peers.takes(bytes, PEER_INPUTS_MAX, PEER_BYTES_MAX) {
            return false;
        }
        self.push(state, input, bytes);
        true
    }

    /// Queues what a peer did; waits for room.
    pub(crate) fn put(&self, input: Input, bytes: usize) -> Result<(), Closed> {
        let mut state = self.locked();
        while !state.closed && !state.peers.takes(bytes, PEER_INPUTS_MAX, PEER_BYTES_MAX) {
            state = self.space.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(Closed);
        }
        self.push(state, input, bytes);
        Ok(())
    }

    fn push(&self, mut state: MutexGuard<'_, State>, input: Input, bytes: usize) {
        state.peers.add(bytes);
        state.items.push_back((Item::Peer(input), bytes));
        drop(state);
        self.work.notify_one();
    }

    /// Takes the first `max` items, or none if none has come within `wait`. `None`: it is closed.
    pub(crate) fn take(&self, max: usize, wait: Duration) -> Option<Vec<Item>> {
        let idle = |state: &mut State| state.items.is_empty() && !state.closed;
        let waited = self.work.wait_timeout_while(self.locked(), wait, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        let count = state.items.len().min(max);
        let mut taken = Vec::with_capacity(count);
        let mut from_peers = false;
        for (item, bytes) in state.items.drain(..count).collect::<Vec<_>>() {
            match &item {
                Item::Command(..) => state.commands.remove(bytes),
                Item::Peer(_) => {
                    from_peers = true;
                    state.peers.remove(bytes);
                }
            }
            taken.push(item);
        }
        drop(state);
        if from_peers {
            self.space.notify_all();
        }
        Some(taken)
    }

    /// Nothing is taken in any more; who waits is told.
    pub(crate) fn close(&self) {
        let mut state = self.locked();
        state.closed = true;
        let left = std::mem::take(&mut state.items);
        drop(state);
        for (item, _) in left {
            match item {
                Item::Command(_, asker) => asker.turn_away(),
                Item::Peer(_) => {}
            }
        }
        self.space.notify_all();
        self.work.notify_all();
    }

    /// Items and bytes that wait: of clients, and of peers.
    pub(crate) fn lengths(&self) -> ((usize, usize), (usize, usize)) {
        let state = self.locked();
        let of = |held: &Held| (held.items, held.bytes);
        (of(&state.commands), of(&state.peers))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a command carries, as far as a client decides.
fn command_bytes(command: &Command) -> usize {
    match command {
        Command::Say { say, .. } => {
            say.content.len() + say.metadata.as_ref().map_or(0, String::len)
        }
        Command::Attach(attach) => attach.capabilities.iter().map(String::len).sum(),
        Command::CreateRoom { room, .. } => {
            room.name.len() + room.description.as_ref().map_or(0, String::len)
        }
        Command::SetPresence { presence, .. } => presence.detail.as_ref().map_or(0, String::len),
        Command::Detach { seen, .. } => seen.len() * size_of::<(u128, u64)>(),
        Command::Roam { entries, .. } => entries.len() * size_of::<mesh::id::At>(),
        Command::CreateVote { vote, .. } => {
            let options: usize = vote.options.iter().map(String::len).sum();
            vote.title.len() + vote.description.as_ref().map_or(0, String::len) + options
        }
        Command::AssignTask { task, .. } => {
            task.title.len() + task.description.as_ref().map_or(0, String::len)
        }
        Command::UpdateTask { update, .. } => update.note.as_ref().map_or(0, String::len),
        Command::Keep { name, value } => {
            name.len() + value.as_ref().map_or(0, |value| value.0.len())
        }
        Command::CastVote { .. }
        | Command::GetVote { .. }
        | Command::ListVotes { .. }
        | Command::ElectLeader { .. }
        | Command::Decline { .. }
        | Command::ListTasks { .. }
        | Command::MintKey(_)
        | Command::SignUp(_)
        | Command::RevokeKey { .. }
        | Command::ListKeys
        | Command::Members
        | Command::Part { .. }
        | Command::LeaveMesh { .. }
        | Command::CheckKey { .. }
        | Command::Join { .. }
        | Command::Leave { .. }
        | Command::SetTyping { .. }
        | Command::ListRooms { .. }
        | Command::ListAgents { .. }
        | Command::RoomInfo { .. }
        | Command::Status
        | Command::Stop => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use mesh::id::NodeId;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn up(node: u8) -> Input {
        Input::PeerUp(NodeId([node; 32]))
    }

    #[test]
    fn peers_that_flood_do_not_keep_commands_out() {
        let queue = Queue::default();
        while queue.offer(up(1), 0) {}
        let (asker, mut answer) = oneshot::channel();
        queue.ask(Command::Status, Asker::Operator(asker));
        assert!(matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        assert_eq!(queue.take(usize::MAX, NOW).unwrap().len(), PEER_INPUTS_MAX + 1);
    }

    #[test]
    fn a_command_too_many_is_given_back() {
        let queue = Queue::default();
        let answers: Vec<_> = (0..=COMMANDS_MAX)
            .map(|_| {
                let (asker, answer) = oneshot::channel();
                queue.ask(Command::Status, Asker::Operator(asker));
                answer
            })
            .collect();
        let refused = answers.into_iter().filter_map(|mut answer| answer.try_recv().err());
        let refused =
            refused.filter(|error| matches!(error, oneshot::error::TryRecvError::Closed)).count();
        assert_eq!(refused, 1);
        // To stop is always possible.
        queue.ask(Command::Stop, Asker::Nobody);
        assert_eq!(queue.take(usize::MAX, NOW).unwrap().len(), COMMANDS_MAX + 1);
    }

    #[test]
    fn what_must_not_be_lost_waits() {
        let queue = Arc::new(Queue::default());
        let put = |node| {
            let queue = queue.clone();
            thread::spawn(move || queue.put(up(node), 1))
        };
        assert!(queue.offer(up(1), PEER_BYTES_MAX));
        assert!(!queue.offer(up(2), 1));
        let second = put(2);
        for _ in 0..2 {
            assert_eq!(queue.take(1, Duration::from_secs(60)).unwrap().len(), 1);
        }
        assert!(second.join().unwrap().is_ok());
        assert!(queue.offer(up(3), PEER_BYTES_MAX));
        let third = put(3);
        queue.close();
        assert!(third.join().unwrap().is_err());
        assert!(!queue.offer(up(4), 0));
    }
}

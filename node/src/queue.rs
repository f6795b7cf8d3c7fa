//! The inputs that wait for the engine: commands of clients, and events of peers.
//!
//! They take turns, clients as a whole and each peer for itself, with a bound for each of the two:
//! clients are refused when theirs is full, and of peers the network holds back what is too much. A
//! flood of one does not crowd out the others.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bridge::Reply;
use mesh::{
    Hearing, Input,
    api::command::{Command, Outcome, Refused},
    name::id::NodeId,
    wire::run::Run,
};
use net::Share;
use tokio::sync::oneshot;

use crate::{
    fair::Fair,
    limits::{COMMAND_BYTES_MAX, COMMANDS_MAX, PEER_BYTES_MAX, PEER_INPUTS_MAX},
};

/// The asker that waits for a command's end.
#[derive(Debug)]
pub(crate) enum Asker {
    /// A client of the bridge. Dropped, it is told that the node is too busy, or, if the engine had
    /// it already, that nobody knows the fate of it.
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
    /// An event of a peer.
    Peer(Input),
}

/// The engine's thread has ended.
#[derive(Debug)]
pub(crate) struct Closed;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<Inputs>,
    work: Condvar,
    /// Noisy peers, whose entries are not to come here.
    pub(crate) noise: Noise,
}

/// Noisy nodes: the engine names them, and threads that check signatures ask before they do.
#[derive(Debug)]
pub(crate) struct Noise {
    hearing: Mutex<Hearing>,
    start: Instant,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { hearing: Mutex::default(), start: Instant::now() }
    }
}

impl Noise {
    /// The directory names it.
    pub(crate) fn know(&self, node: NodeId) {
        self.locked().know(node);
    }

    /// The engine found it to write much without effect; `None`: those who are not known, together.
    pub(crate) fn note(&self, author: Option<NodeId>) {
        self.locked().note(author, self.start.elapsed());
    }

    /// Whether these, which a peer has pushed, are to be checked, and handed to the engine.
    pub(crate) fn hears(&self, from: NodeId, runs: &[Run]) -> bool {
        self.locked().hears(from, runs, self.start.elapsed())
    }

    fn locked(&self) -> MutexGuard<'_, Hearing> {
        // A panic leaves it as good as before.
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Inputs {
    commands: VecDeque<(Command, Asker, usize)>,
    commands_held: Usage,
    peers: Fair<FromPeer>,
    peers_held: Usage,
    /// The engine sleeps until something comes. To wake it costs a call of the system, so only then.
    asleep: bool,
    closed: bool,
}

/// An event of a peer; its share of the network's room is given back when the engine takes it.
#[derive(Debug)]
struct FromPeer {
    input: Input,
    bytes: usize,
    _share: Option<Share>,
}

impl Inputs {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && !self.peers.has_next()
    }
}

/// How much of a bound is used.
#[derive(Debug, Default)]
struct Usage {
    items: usize,
    bytes: usize,
}

impl Usage {
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
    /// Queues a command. If there is no room for it the asker is dropped; if there is nobody any
    /// more to take it, it is told so.
    pub(crate) fn push_command(&self, command: Command, asker: Asker) {
        let bytes = command.traits().bytes;
        let mut state = self.locked();
        // A command that nobody waits for is this program's own: to stop, or to draw a secret. Few
        // at a time.
        let own = matches!(asker, Asker::Nobody);
        let fits = own || state.commands_held.takes(bytes, COMMANDS_MAX, COMMAND_BYTES_MAX);
        // Not under the lock: there is somebody to tell.
        if state.closed {
            drop(state);
            return asker.turn_away();
        }
        if !fits {
            drop(state);
            return drop(asker);
        }
        state.commands_held.add(bytes);
        state.commands.push_back((command, asker, bytes));
        self.wake(state);
    }

    /// Queues what a peer said by gossip, if there is room.
    pub(crate) fn push_gossip(
        &self,
        from: NodeId,
        input: Input,
        bytes: usize,
        share: Option<Share>,
    ) -> bool {
        let state = self.locked();
        if state.closed || !state.peers_held.takes(bytes, PEER_INPUTS_MAX, PEER_BYTES_MAX) {
            return false;
        }
        self.push(state, from, FromPeer { input, bytes, _share: share });
        true
    }

    /// Queues an event of a peer that must not be lost: its share bounds it, and those of all.
    pub(crate) fn push_frame(
        &self,
        from: NodeId,
        input: Input,
        bytes: usize,
        share: Option<Share>,
    ) -> Result<(), Closed> {
        let state = self.locked();
        if state.closed {
            return Err(Closed);
        }
        self.push(state, from, FromPeer { input, bytes, _share: share });
        Ok(())
    }

    fn push(&self, mut state: MutexGuard<'_, Inputs>, from: NodeId, item: FromPeer) {
        state.peers_held.add(item.bytes);
        state.peers.push(from, item);
        self.wake(state);
    }

    /// Something has come: the engine is woken, once.
    fn wake(&self, mut state: MutexGuard<'_, Inputs>) {
        let was_asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if was_asleep {
            self.work.notify_one();
        }
    }

    /// Takes up to `max` items, or none if none has come within `wait`: of clients and of each peer
    /// in turn, each in the order in which they came. `None`: it is closed.
    pub(crate) fn take(&self, max: usize, wait: Duration) -> Option<Vec<Item>> {
        let idle = |state: &mut Inputs| {
            state.asleep = state.is_empty() && !state.closed;
            state.asleep
        };
        let waited = self.work.wait_timeout_while(self.locked(), wait, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // Its time may have run out.
        state.asleep = false;
        if state.closed {
            return None;
        }
        let mut taken = Vec::new();
        // Given back when nobody waits for the lock any more.
        let mut shares = Vec::new();
        while taken.len() < max && !state.is_empty() {
            if let Some((command, asker, bytes)) = state.commands.pop_front() {
                state.commands_held.remove(bytes);
                taken.push(Item::Command(command, asker));
            }
            if taken.len() < max
                && let Some((peer, FromPeer { input, bytes, _share })) = state.peers.next()
            {
                state.peers.served(peer);
                state.peers_held.remove(bytes);
                shares.push(_share);
                taken.push(Item::Peer(input));
            }
        }
        drop(state);
        Some(taken)
    }

    /// Nothing is taken in any more; waiting askers are told.
    pub(crate) fn close(&self) {
        let mut state = self.locked();
        state.closed = true;
        let left = std::mem::take(&mut state.commands);
        let lost = std::mem::take(&mut state.peers);
        drop(state);
        drop(lost);
        for (_, asker, _) in left {
            asker.turn_away();
        }
        self.work.notify_all();
    }

    /// Items and bytes that wait: of clients, and of peers.
    pub(crate) fn lengths(&self) -> ((usize, usize), (usize, usize)) {
        let state = self.locked();
        let of = |held: &Usage| (held.items, held.bytes);
        (of(&state.commands_held), of(&state.peers_held))
    }

    fn locked(&self) -> MutexGuard<'_, Inputs> {
        // Nothing that is done under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn offer(queue: &Queue, node: u8, bytes: usize) -> bool {
        let node = NodeId([node; 32]);
        queue.push_gossip(node, Input::PeerUp(node), bytes, None)
    }

    fn put(queue: &Queue, node: u8, bytes: usize) -> Result<(), Closed> {
        let node = NodeId([node; 32]);
        queue.push_frame(node, Input::PeerUp(node), bytes, None)
    }

    #[test]
    fn peers_that_flood_do_not_keep_commands_out() {
        let queue = Queue::default();
        while offer(&queue, 1, 0) {}
        let (asker, mut answer) = oneshot::channel();
        queue.push_command(Command::Status, Asker::Operator(asker));
        assert!(matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        // Nor in the second row.
        let first = queue.take(1, NOW).unwrap();
        assert!(matches!(first[..], [Item::Command(..)]));
        assert_eq!(queue.take(usize::MAX, NOW).unwrap().len(), PEER_INPUTS_MAX);
    }

    #[test]
    fn a_peer_that_floods_waits_for_itself() {
        let queue = Queue::default();
        for _ in 0..1_000 {
            assert!(offer(&queue, 1, 0));
        }
        put(&queue, 2, 0).unwrap();
        let taken = queue.take(2, NOW).unwrap();
        let second = NodeId([2; 32]);
        assert!(matches!(taken[..], [_, Item::Peer(Input::PeerUp(node))] if node == second));
    }

    #[test]
    fn a_command_too_many_is_given_back() {
        let queue = Queue::default();
        let answers: Vec<_> = (0..=COMMANDS_MAX)
            .map(|_| {
                let (asker, answer) = oneshot::channel();
                queue.push_command(Command::Status, Asker::Operator(asker));
                answer
            })
            .collect();
        let refused = answers.into_iter().filter_map(|mut answer| answer.try_recv().err());
        let refused =
            refused.filter(|error| matches!(error, oneshot::error::TryRecvError::Closed)).count();
        assert_eq!(refused, 1);
        // To stop is always possible.
        queue.push_command(Command::Stop, Asker::Nobody);
        assert_eq!(queue.take(usize::MAX, NOW).unwrap().len(), COMMANDS_MAX + 1);
    }

    #[test]
    fn the_engine_is_woken_by_whatever_comes() {
        const MANY: usize = 1_000;
        let long = Duration::from_secs(600);
        let queue = Queue::default();
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| {
                let mut taken = 0;
                while let Some(items) = queue.take(3, long) {
                    assert!(!items.is_empty(), "woken by nothing");
                    taken += items.len();
                }
                taken
            });
            let askers = [(); 2].map(|()| {
                scope.spawn(|| {
                    for _ in 0..MANY {
                        queue.push_command(Command::Status, Asker::Nobody);
                        put(&queue, 1, 0).unwrap();
                    }
                })
            });
            askers.into_iter().for_each(|asker| asker.join().unwrap());
            while queue.lengths() != ((0, 0), (0, 0)) {
                std::thread::yield_now();
            }
            queue.close();
            assert_eq!(taken.join().unwrap(), 4 * MANY);
        });
    }

    #[test]
    fn what_must_not_be_lost_is_not_lost() {
        let queue = Queue::default();
        assert!(offer(&queue, 1, PEER_BYTES_MAX));
        assert!(!offer(&queue, 2, 1));
        put(&queue, 2, 1).unwrap();
        assert_eq!(queue.lengths().1, (2, PEER_BYTES_MAX + 1));
        assert_eq!(queue.take(9, NOW).unwrap().len(), 2);
        assert_eq!(queue.lengths().1, (0, 0));
        queue.close();
        assert!(put(&queue, 3, 0).is_err());
        assert!(!offer(&queue, 4, 0));
    }
}

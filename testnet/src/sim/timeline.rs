//! The time of a world, and the one queue of events that are still to come.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use mesh::{
    Effect,
    wire::{message::Message, run::Verified},
};

/// Something that happens at a moment of a world's time.
#[derive(Debug)]
pub(super) enum Event {
    /// A node has something to do, or its deadline has come.
    Wake { node: usize },
    /// A turn's effects are performed: its commit took until now.
    Perform { node: usize, life: u64, effects: Vec<Effect> },
    /// A message arrives.
    Arrive { to: usize, from: usize, message: Box<Message<Verified>> },
    /// A node says that it lives.
    Beat { node: usize, life: u64 },
    /// Two nodes notice that they are connected, or no longer.
    Notice { a: usize, b: usize },
    /// A fault of the plan.
    Fault { index: usize },
    /// A node that was restarted comes up.
    Start { node: usize },
    /// A node's links are cut in the middle of its handover.
    Isolate { node: usize },
    /// An agent does something.
    Act,
    /// Correspondents do something.
    Correspond,
    /// The liar says something.
    Lie,
    /// There is room on a node's disk again.
    Room { node: usize },
    /// A node closes its connection with one that has no part any more, for good.
    Shut { a: usize, b: usize },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    now: Duration,
    /// Moments and the events of that moment, in the order in which they were added.
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    added: u64,
}

impl Timeline {
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Adds an event; one whose moment has passed happens now.
    pub(super) fn at(&mut self, when: Duration, event: Event) {
        self.added += 1;
        self.events.insert(self.added, event);
        self.queue.push(Reverse((when.max(self.now), self.added)));
    }

    pub(super) fn after(&mut self, wait: Duration, event: Event) {
        self.at(self.now + wait, event);
    }

    /// Goes on to the next event, if there is one until then; otherwise to that moment.
    pub(super) fn next(&mut self, until: Duration) -> Option<Event> {
        let next = self.queue.peek().filter(|Reverse((when, _))| *when <= until).copied();
        let Some(Reverse((when, event))) = next else {
            self.now = until;
            return None;
        };
        self.queue.pop();
        self.now = self.now.max(when);
        self.events.remove(&event)
    }
}

//! What the bridge has done since it was made, counted: for whoever watches the node.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use protocol::code::Code;

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket.
    Unix,
    /// TCP, a line for each frame.
    Tcp,
    /// A WebSocket.
    WebSocket,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 3] = [Transport::Unix, Transport::Tcp, Transport::WebSocket];

    /// As it is called in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
            Transport::WebSocket => "websocket",
        }
    }
}

/// See the module. Every number only rises, but for those of what is open.
#[derive(Debug)]
pub struct Counters {
    connections: [Connections; Transport::ALL.len()],
    refusals: Vec<AtomicU64>,
    pub(crate) turned_away: AtomicU64,
    pub(crate) webhooks_delivered: AtomicU64,
    pub(crate) webhooks_retried: AtomicU64,
    pub(crate) webhooks_failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Connections {
    open: AtomicU64,
    opened: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            connections: Default::default(),
            refusals: Code::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            turned_away: AtomicU64::new(0),
            webhooks_delivered: AtomicU64::new(0),
            webhooks_retried: AtomicU64::new(0),
            webhooks_failed: AtomicU64::new(0),
        }
    }
}

/// A connection, as long as this lives.
#[derive(Debug)]
pub(crate) struct Open(Arc<Counters>, Transport);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections[self.1 as usize].open.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    pub(crate) fn open(self: &Arc<Counters>, transport: Transport) -> Open {
        let connections = &self.connections[transport as usize];
        connections.open.fetch_add(1, Relaxed);
        connections.opened.fetch_add(1, Relaxed);
        Open(self.clone(), transport)
    }

    pub(crate) fn refuse(&self, code: Code) {
        if let Some(place) = Code::ALL.iter().position(|it| *it == code) {
            self.refusals[place].fetch_add(1, Relaxed);
        }
    }

    /// Connections that are open, and how many were ever opened.
    #[must_use]
    pub fn connections(&self, transport: Transport) -> (u64, u64) {
        let it = &self.connections[transport as usize];
        (it.open.load(Relaxed), it.opened.load(Relaxed))
    }

    /// How often each code was given to clients of connections.
    pub fn refusals(&self) -> impl Iterator<Item = (Code, u64)> {
        Code::ALL.iter().zip(&self.refusals).map(|(code, count)| (*code, count.load(Relaxed)))
    }

    /// Connections that came when there were as many as there may be.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Webhooks: messages delivered, tries that failed and are repeated, subscriptions that were given up.
    #[must_use]
    pub fn webhooks(&self) -> [u64; 3] {
        [&self.webhooks_delivered, &self.webhooks_retried, &self.webhooks_failed]
            .map(|it| it.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let counters = Arc::new(Counters::default());
        let first = counters.open(Transport::Tcp);
        let second = counters.open(Transport::Tcp);
        drop(first);
        assert_eq!(counters.connections(Transport::Tcp), (1, 2));
        assert_eq!(counters.connections(Transport::Unix), (0, 0));
        drop(second);
        assert_eq!(counters.connections(Transport::Tcp), (0, 2));
    }

    #[test]
    fn every_code_has_a_counter() {
        let counters = Counters::default();
        for code in Code::ALL {
            counters.refuse(*code);
        }
        counters.refuse(Code::ALL[3]);
        let all: Vec<(Code, u64)> = counters.refusals().collect();
        assert_eq!(all.len(), Code::ALL.len());
        assert!(all.iter().all(|(code, count)| *count == 1 + u64::from(*code == Code::ALL[3])));
    }
}

//! Counts of the bridge's work since it was made, for operators.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

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

/// See the module. Every number only rises, but for those of open connections.
#[derive(Debug)]
pub struct Counters {
    connections: [Connections; Transport::ALL.len()],
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

    /// Connections that are open, and how many were ever opened.
    #[must_use]
    pub fn connections(&self, transport: Transport) -> (u64, u64) {
        let connections = &self.connections[transport as usize];
        (connections.open.load(Relaxed), connections.opened.load(Relaxed))
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
            .map(|count| count.load(Relaxed))
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
}

//! This machine goes from one network to another, or sleeps.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use if_watch::IfEvent;
use tokio::task::JoinSet;

use super::Task;
use crate::address::multiaddr_of;
use crate::book::Target;
use crate::identity::peer_of;
use crate::limits::{DEAD_AFTER, MOVE_DELAY, OWN_PAUSE};

impl Task {
    pub(super) fn on_interface(&mut self, event: &IfEvent) {
        let news = match event {
            IfEvent::Up(net) => self.here.came(net.addr()),
            IfEvent::Down(net) => self.here.went(net.addr()),
        };
        // At the start all of them are named, and none is new.
        if news && Instant::now() >= self.settled_at {
            tracing::debug!(?event, "an address of this machine");
            let at = Instant::now() + MOVE_DELAY;
            self.moves_at = Some(self.moves_at.map_or(at, |before| before.min(at)));
            self.look_soon();
        }
    }

    /// Looks for what a sleep or another network has changed.
    pub(super) fn look_at_network(&mut self, now: Instant) {
        let slept = self.sleep.slept();
        if slept > OWN_PAUSE {
            self.woke(slept, now);
        }
        if self.moves_at.is_some_and(|at| at <= now) {
            self.moves_at = None;
            self.moved(now);
        }
    }

    /// The others have taken this node for gone if it was away for longer than they wait.
    fn woke(&mut self, slept: Duration, now: Instant) {
        tracing::info!(?slept, "this machine has slept: connecting anew");
        if slept >= DEAD_AFTER {
            let gone = self.shared.book().slept();
            for connection in gone {
                self.swarm.close_connection(connection);
            }
        } else {
            self.shared.book().doubt_all(now);
        }
        self.moves_at = Some(now);
    }

    /// Everything is tried anew, at once: dials and lookups of before may wait for a network that is
    /// gone. (Connections over lost addresses have ended by themselves.)
    fn moved(&mut self, now: Instant) {
        self.lookups = JoinSet::new();
        let dialled: Vec<&Target> = self.dials.values().collect();
        self.shared.book().moved(&dialled, now);
        for target in dialled {
            if let Target::Peer(node) = target
                && let Some(peer) = peer_of(node)
                && !self.swarm.is_connected(&peer)
            {
                // It is not connected: this ends the dial.
                let _ = self.swarm.disconnect_peer_id(peer);
            }
        }
        self.shared.moved.send_modify(|moves| *moves += 1);
        self.announce_soon();
    }

    /// Listens at these addresses, and at no others any more. One that cannot be bound is left out.
    pub(super) fn on_listen(&mut self, wanted: &[SocketAddr]) {
        let mut gone = Vec::new();
        self.listeners.retain(|listener, at| {
            let stays = wanted.contains(at);
            gone.extend((!stays).then_some(*listener));
            stays
        });
        for listener in gone {
            self.swarm.remove_listener(listener);
        }
        for at in wanted {
            if self.listeners.values().any(|bound| bound == at) {
                continue;
            }
            match self.swarm.listen_on(multiaddr_of(*at)) {
                Ok(listener) => {
                    self.listeners.insert(listener, *at);
                }
                // The owner asks again as long as the address is this machine's.
                Err(error) => tracing::debug!(%at, %error, "cannot listen here"),
            }
        }
    }
}

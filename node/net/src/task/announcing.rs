//! What this node says of itself and of its peers, and what it has learned from theirs.

use std::time::Instant;

use super::Task;
use crate::announcement;
use crate::announcement::Record;
use crate::identity::NodeId;
use crate::limits::{ANNOUNCE_DELAY, LEARNED_MAX};
use crate::settings::Discovery;

impl Task {
    pub(super) fn announce_soon(&mut self) {
        self.announce_at = self.announce_at.min(Instant::now() + ANNOUNCE_DELAY);
        self.look_at = self.look_at.min(self.announce_at);
    }

    pub(super) fn announce_to(&self, node: &NodeId) {
        let Some(link) = self.links.get(node) else { return };
        if self.discovery == Discovery::Configured {
            return;
        }
        let own = self.shared.own_addresses();
        let book = self.shared.book();
        if book.peer(node).is_some_and(|peer| peer.up_since.is_some()) {
            let bytes = announcement::encode(&book.announcement(node, &own));
            link.announcement.send_replace(bytes);
        }
    }

    pub(super) fn flush_learned(&mut self) {
        while self.learned.len() > LEARNED_MAX {
            self.learned.pop_front();
        }
        while let Some(learned) = self.learned.pop_front() {
            if let Err(learned) = self.inbox.try_put_learned(learned) {
                self.learned.push_front(learned);
                return;
            }
        }
    }

    /// A peer's announcement.
    pub(super) fn on_announced(&mut self, node: NodeId, records: Vec<Record>) {
        if self.discovery == Discovery::Configured {
            return;
        }
        let learned = self.shared.book().learn(&node, records, Instant::now());
        if !learned.addresses.is_empty() || learned.other_relays {
            self.announce_soon();
        }
        self.learned.extend(learned.addresses);
        self.flush_learned();
    }
}

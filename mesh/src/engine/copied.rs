//! A second engine in the state of another: for worlds that go on in every way there is.
//!
//! Readers on other threads hold handles to a part of an engine's state (proofs, fates). The copy has its own.

use super::Engine;

impl Clone for Engine {
    fn clone(&self) -> Engine {
        let mut known = self.known.clone();
        known.directory.share_nothing();
        let mut speaking = self.speaking.clone();
        speaking.deliveries.fates = speaking.deliveries.fates.copied(known.directory.proofs());
        Engine {
            known,
            speaking,
            waiters: self.waiters.clone(),
            agents: self.agents.clone(),
            inboxes: self.inboxes.clone(),
            turns: self.turns.clone(),
            voting: self.voting.clone(),
            leaders: self.leaders.clone(),
            claims: self.claims.clone(),
            onces: self.onces.clone(),
            approvals: self.approvals.clone(),
            given: self.given.clone(),
            roams: self.roams.clone(),
            private: self.private.clone(),
            barriers: self.barriers.clone(),
            roster_sync: self.roster_sync.clone(),
            digests: self.digests.clone(),
            forks: self.forks.clone(),
            renewal: self.renewal.clone(),
            beacons: self.beacons.clone(),
            hearsay: self.hearsay.clone(),
            pruning: self.pruning.clone(),
            handovers: self.handovers.clone(),
            unvouched: self.unvouched.clone(),
            receipts: self.receipts.clone(),
            inquiries: self.inquiries.clone(),
            streams: self.streams.clone(),
            pairs: self.pairs.clone(),
            records: self.records.clone(),
            carrying: self.carrying.clone(),
            next_tick: self.next_tick,
            last_called: self.last_called,
        }
    }
}

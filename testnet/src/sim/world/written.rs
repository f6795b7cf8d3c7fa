//! Everything that a node writes is judged as soon as it is durable.

use std::collections::BTreeMap;

use mesh::{
    api::{
        batch::{Change, Fate},
        command::Outcome,
    },
    name::{
        id::{EntryRef, LocalRef, RoomId},
        number::Era,
    },
    wire::{
        acts::{TaskAct, TaskClaimed},
        approval::{ApprovalAct, ApprovalAsked},
        entry::{Body, Stored},
        kinds,
        once::{OnceAct, OnceAsked},
    },
};

use super::World;
use crate::sim::{
    copies::Answered,
    coverage::Happening,
    parts::{Reply, Written},
    promises::{Acknowledged, Broken, broken},
    tasks::Forged,
};

impl World {
    /// A batch is durable at a node.
    pub(super) fn judge(&mut self, node: usize, batch: &[Change]) -> Result<(), Broken> {
        let drops = batch.iter().enumerate().filter_map(|(nth, change)| {
            if let Change::Drop { room } = change { Some((*room, nth)) } else { None }
        });
        let dropped: BTreeMap<RoomId, usize> = drops.collect();
        self.correspondents.stored(&mut self.cluster, node, batch)?;
        for (nth, change) in batch.iter().enumerate() {
            self.holders.stored(&mut self.cluster, node, change)?;
            self.laptops.stored(&mut self.cluster, change);
            let room = room_of(change);
            // Entries and numbers of a room that ended then in the same batch never were.
            if room.and_then(|room| dropped.get(&room)).is_none_or(|drop| nth >= *drop) {
                self.stored(node, change)?;
            }
        }
        Ok(())
    }

    fn stored(&mut self, node: usize, change: &Change) -> Result<(), Broken> {
        let id = self.cluster.nodes[node].id;
        if let Change::Entry { room, at, entry } = change {
            if kinds::is_act(entry.facts.kind) {
                return self.act_stored(node, *room, *at, entry);
            }
            if entry.facts.visible {
                let entry = self.cluster.entry(node, *room, *at)?;
                self.promises.stored(id, *room, entry);
            }
        } else if let Change::Number { .. } = change {
            return self.numbered(node, change);
        } else if let Change::Era { room, era, record } = change {
            self.cluster.rooms.numbers(*room, *era, record.sequencer.author);
        } else if let Change::Drop { room } = change {
            self.promises.forgot(id, *room);
            self.parts_mut().1.into_iter().for_each(|part| part.forgot(node, *room));
        } else if let Change::Room { room, record } = change {
            if record.ephemeral {
                self.cluster.rooms.ephemeral.insert(*room);
            }
        } else if let Change::Prune { .. } = change {
            self.cluster.coverage.count(Happening::Pruned);
        }
        Ok(())
    }

    fn numbered(&mut self, node: usize, change: &Change) -> Result<(), Broken> {
        let Change::Number { room, number, at, fate } = change else { return Ok(()) };
        let (room, number) = (*room, *number);
        let entry = self.cluster.entry(node, room, *at)?;
        let lies = self.liar.as_ref().is_some_and(|liar| liar.is_its_own(number.era()));
        if lies || self.cluster.is_a_lie(entry) || self.cluster.is_exempt(node) {
            return Ok(());
        }
        if self.may_number_again(room, number.era()) {
            return Ok(());
        }
        let id = self.cluster.nodes[node].id;
        self.promises.named(room, number, entry)?;
        match fate {
            Fate::Assigned => {}
            Fate::Delivered => self.promises.delivered(id, room, number, entry)?,
            Fate::Hole => {
                self.cluster.say(|| format!("node{node}: {number:?} is left as a hole"));
                self.promises.hole(id, room, number);
            }
        }
        Ok(())
    }

    /// A node that goes on from an earlier copy does not know which numbers it has given since.
    fn may_number_again(&self, room: RoomId, era: Era) -> bool {
        let mut sequencers = self.cluster.rooms.sequencers(room, era);
        sequencers.any(|node| {
            self.cluster.index(node).is_some_and(|i| self.cluster.nodes[i].is_restored())
        })
    }

    fn act_stored(
        &mut self,
        node: usize,
        room: RoomId,
        at: LocalRef,
        entry: &Stored,
    ) -> Result<(), Broken> {
        let (log, seq) = self.cluster.entry(node, room, at)?;
        let body = Body::decode(entry.facts.kind, &entry.body);
        if self.liar.is_some() && self.cluster.is_a_lie((log, seq)) {
            if let Body::Vote(act) = body {
                self.votes.liar_wrote(&self.cluster, room, act);
            } else if let Body::Task(TaskAct::Claimed(claim)) = body {
                let TaskClaimed { update, key, .. } = claim;
                let is_its_own =
                    self.liar.as_ref().is_some_and(|liar| liar.may_speak(key, &update.by));
                let forged = Forged { node: log.author, key, is_its_own };
                self.tasks.liar_claimed(room, EntryRef { log, seq }, forged);
            } else if let Body::Once(OnceAct::Asked(OnceAsked { by, key, .. })) = body {
                let is_its_own = self.liar.as_ref().is_some_and(|liar| liar.may_speak(key, &by));
                let forged = Forged { node: log.author, key, is_its_own };
                self.onces.liar_asked(room, EntryRef { log, seq }, forged);
            } else if let Body::Approval(ApprovalAct::Asked(asked)) = body {
                let ApprovalAsked { by, key, .. } = asked;
                let is_its_own = self.liar.as_ref().is_some_and(|liar| liar.may_speak(key, &by));
                let forged = Forged { node: log.author, key, is_its_own };
                self.approvals.liar_asked(room, EntryRef { log, seq }, forged);
            }
            return Ok(());
        }
        let (clock, wall_ms) = (entry.facts.clock, entry.facts.wall_ms);
        let Some(taken) = self.cluster.nodes[node].taken(room, at) else {
            return broken(
                "store",
                format!("node{node} stores what it never took in: {log:?} {seq}"),
            );
        };
        let place = EntryRef { log, seq };
        let written = Written { node, room, place, clock, wall_ms, taken };
        if let Body::Vote(act) = body {
            return self.votes.stored(&self.cluster, written, act);
        } else if let Body::Election(act) = body {
            self.elections.stored(&self.cluster, written, &act);
        } else if let Body::Task(act) = body {
            return self.tasks.stored(&self.cluster, written, act);
        } else if let Body::Once(act) = body {
            return self.onces.stored(&mut self.cluster, written, act);
        } else if let Body::Approval(act) = body {
            return self.approvals.stored(&mut self.cluster, written, act);
        }
        Ok(())
    }

    /// *acknowledged survives*: a message that is answered is in its node's store.
    pub(super) fn acknowledged(&mut self, reply: &Reply) -> Result<(), Broken> {
        let Ok(Outcome::Said(said)) = &reply.result else { return Ok(()) };
        let said_in = self.parts().into_iter().find_map(|part| part.said_in(reply.call));
        let Some(room) = said_in else { return Ok(()) };
        let node = &self.cluster.nodes[reply.node];
        let reader = node.running.as_ref().map(|running| &running.reader);
        match reader.and_then(|reader| reader.by_message(room, said.message).ok().flatten()) {
            Some(row) if !self.cluster.exempt.contains(&node.id) => {
                let (entry, id) = ((row.log, row.at.seq), node.id);
                self.promises.acknowledged(Acknowledged {
                    room,
                    entry,
                    number: said.number,
                    node: id,
                    copies: said.copies.unwrap_or(1),
                });
                self.copies_are_held(Answered { room, entry, said })
            }
            Some(_) => Ok(()),
            // It ended in the same turn.
            None if self.cluster.rooms.is_ephemeral(room) => Ok(()),
            None => {
                let what = format!("{:?} was answered and is not in the store", said.message);
                broken("acknowledged survives", what)
            }
        }
    }
}

/// The room of an entry or a number.
fn room_of(change: &Change) -> Option<RoomId> {
    if let Change::Entry { room, .. } | Change::Number { room, .. } = change {
        Some(*room)
    } else {
        None
    }
}

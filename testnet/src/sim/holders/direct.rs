//! Direct rooms of agents with minted keys: opening them, and the promise of every moment.
//!
//! *direct*: each of two agents that opens their room gets the same one, on any side of a split.

use std::{collections::BTreeMap, sync::Arc};

use mesh::{
    api::command::{Command, RoomView},
    name::id::{AgentId, RoomId},
};

use super::{BLUE, Holders, RED, asked::Asked};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::Seated,
    promises::{Broken, broken},
};

/// Rooms by the places of their two agents, the lower one first.
#[derive(Debug, Default)]
pub(super) struct Direct(BTreeMap<(usize, usize), RoomId>);

impl Direct {
    pub(super) fn rooms(&self) -> Vec<((usize, usize), RoomId)> {
        self.0.iter().map(|(sides, room)| (*sides, *room)).collect()
    }

    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.values().any(|known| *known == room)
    }
}

impl Holders {
    /// Agents whose ids and keys stay their own.
    pub(super) fn may_be_written_to(&self, i: usize) -> bool {
        let holder = &self.holders[i];
        !holder.contested && matches!(holder.key, RED | BLUE)
    }

    /// An agent opens its room with another one, or with itself.
    pub(super) fn open_direct(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let others: Vec<usize> =
            (0..self.holders.len()).filter(|other| self.may_be_written_to(*other)).collect();
        if !self.may_be_written_to(i) {
            return;
        }
        let with = *cluster.dice.pick(&others);
        let agent = self.holders[with].id.clone();
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let command = Command::OpenDirect { caller: by.caller, signer, agent };
        self.calls.ask(cluster, by.node, Asked::Open(i, with), command);
    }

    pub(super) fn direct_is_open(
        &mut self,
        cluster: &mut Cluster,
        i: usize,
        with: usize,
        view: &RoomView,
    ) -> Result<(), Broken> {
        let sides = (i.min(with), i.max(with));
        let room = *self.direct.0.entry(sides).or_insert(view.room);
        if room != view.room || view.public {
            let what = format!("agents {sides:?} have {room}, and then {view:?}");
            return broken("direct", what);
        }
        cluster.coverage.count(Happening::Direct);
        self.holders[i].rooms.insert(room);
        Ok(())
    }

    /// A node has given an agent a seat, so that the agent answers messages there.
    pub(super) fn is_seated(&mut self, node: usize, agent: &AgentId, room: RoomId) {
        let there = |at: &Seated| at.node == node && at.caller.agent == *agent;
        for holder in &mut self.holders {
            if holder.place.as_ref().is_some_and(there) {
                holder.rooms.insert(room);
            }
        }
    }
}

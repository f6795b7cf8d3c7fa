//! *durable*: copies are where nodes said, and outlive the disk of the node that answered.

use mesh::name::id::NodeId;

use super::World;
use crate::sim::{
    copies::Answered,
    coverage::Happening,
    node::Node,
    promises::{Acknowledged, Broken, broken},
};

impl World {
    /// *durable*, of one answer. A node that lies is believed; one may have said so before its disk was lost.
    pub(super) fn copies_are_held(&mut self, answered: Answered<'_>) -> Result<(), Broken> {
        let Answered { room, entry, said } = answered;
        let Some(copies) = said.copies else { return Ok(()) };
        let held = |node: &&Node| node.holds(room, entry, said.number);
        let held = self.cluster.nodes.iter().filter(held).count();
        let lies = usize::from(self.liar.is_some());
        let is_gone = |node: &&Node| node.is_lost() || node.is_restored();
        let lost = self.cluster.nodes.iter().filter(is_gone).count();
        if copies > held + lies + lost {
            let what =
                format!("{copies} nodes were said to hold {entry:?} of {room}, and {held} do");
            return broken("durable", what);
        }
        if copies > 1 {
            self.cluster.coverage.count(Happening::Copied);
        }
        Ok(())
    }

    /// A node is gone for ever, and its disk with it. Messages that it had answered with one copy may be gone.
    pub(super) fn lose(&mut self, node: usize) {
        let id = self.cluster.nodes[node].id;
        self.cluster.coverage.count(Happening::Lost);
        self.cluster.say(|| format!("node{node}: its disk is lost"));
        self.cluster.nodes[node].lose();
        self.went_down(node);
        self.promises.disk_lost(id);
        self.cluster.exempt.insert(id);
    }

    /// A node goes on from an earlier copy of its disk, if there is one. Messages that it has answered since may be gone.
    pub(super) fn restore(&mut self, node: usize) {
        let Some(image) = self.cluster.nodes[node].take_backup() else { return };
        self.cluster.coverage.count(Happening::Restored);
        self.promises.disk_lost(self.cluster.nodes[node].id);
        self.roamers.disk_replaced(node);
        self.replace_disk(node, image);
        self.holders.records_are_restored(&self.cluster, node);
    }

    /// Messages that a lost node had answered with several copies are at all others, under their numbers.
    pub(crate) fn copies_outlive_disks(&self, judged: &[NodeId]) -> Result<(), Broken> {
        for message in self.promises.copied() {
            let Acknowledged { room, entry, number, .. } = *message;
            let is_void = self.cluster.rooms.void.contains(&room);
            let nodes = self.cluster.nodes.iter().filter(|node| judged.contains(&node.id));
            let mut nodes = nodes.filter(|node| self.cluster.rooms.is_for(room, node.id));
            // Others may have dropped its body before a node had it.
            let lacks = |node: &&Node| {
                !node.holds(room, entry, number) && !self.bodies().is_gone(node.id, room, entry)
            };
            if let Some(node) = nodes.find(lacks).filter(|_| !is_void) {
                let at = node.id.short();
                return broken("durable", format!("{message:?} is not at {at}"));
            }
        }
        Ok(())
    }
}

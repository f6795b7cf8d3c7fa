//! The operators of a simulated world: they stop and restart nodes, draw secrets, and expel nodes.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    Input,
    api::command::{CallId, Command, Drawn, Refused},
    wire::entry::Parting,
};

use super::{
    cluster::Cluster,
    coverage::Happening,
    parts::{Part, Reply},
    promises::{Broken, broken},
};

/// The purpose of an operator's call.
#[derive(Clone, Copy, Debug)]
enum Operator {
    Stop,
    Rekey,
    Part,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Operators {
    asked: BTreeMap<CallId, Operator>,
    /// Nodes that are to start again once they have stopped.
    restarting: BTreeSet<usize>,
    /// Nodes whose disks were full at some time.
    full: BTreeSet<usize>,
}

impl Operators {
    fn ask(&mut self, cluster: &mut Cluster, node: usize, wanted: Operator, command: Command) {
        let call = cluster.call();
        self.asked.insert(call, wanted);
        cluster.give(node, Input::Command { call, command });
    }

    /// Another secret of the mesh's connections, drawn at a node.
    pub(super) fn draw_secret(&mut self, cluster: &mut Cluster, node: usize) {
        let drawn = Drawn::new(cluster.dice.seed());
        let command = Command::RotateSecret { drawn, force: true };
        self.ask(cluster, node, Operator::Rekey, command);
    }

    /// A node says that another one has no part any more, if it runs.
    pub(super) fn part(&mut self, cluster: &mut Cluster, by: usize, out: usize, why: Parting) {
        if cluster.nodes[by].running.is_some() {
            cluster.coverage.count(Happening::Parting);
            let node = cluster.nodes[out].id;
            let command = Command::Part { node, why, force: true };
            self.ask(cluster, by, Operator::Part, command);
        }
    }

    pub(super) fn restart(&mut self, cluster: &mut Cluster, node: usize) {
        if cluster.nodes[node].running.is_some() && self.restarting.insert(node) {
            cluster.coverage.count(Happening::Restart);
            self.ask(cluster, node, Operator::Stop, Command::Stop);
        }
    }

    /// A node stops, and stays down.
    pub(super) fn stop(&mut self, cluster: &mut Cluster, node: usize) {
        self.restarting.remove(&node);
        if cluster.nodes[node].running.is_some() {
            self.ask(cluster, node, Operator::Stop, Command::Stop);
        }
    }

    /// Whether a node that has stopped is to start again.
    pub(super) fn take_restarting(&mut self, node: usize) -> bool {
        self.restarting.remove(&node)
    }

    /// There is no room on a node's disk.
    pub(super) fn fill(&mut self, node: usize) {
        self.full.insert(node);
    }

    pub(super) fn was_full(&self, node: usize) -> bool {
        self.full.contains(&node)
    }
}

impl Part for Operators {
    fn judges_full_disks(&self) -> bool {
        true
    }

    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Some(wanted) = self.asked.remove(&reply.call) else { return Ok(false) };
        let node = reply.node;
        match (wanted, &reply.result) {
            (_, Ok(_)) | (Operator::Rekey, Err(Refused::Stopping)) => {}
            // It has not heard of that node yet, or hears that it lives.
            (Operator::Part, Err(_)) => {}
            (Operator::Stop, Err(Refused::DiskFull)) if self.was_full(node) => {
                self.restarting.remove(&node);
            }
            (Operator::Rekey, Err(Refused::DiskFull)) if self.was_full(node) => {}
            (_, Err(_)) if cluster.is_exempt(node) => {}
            (_, Err(refused)) => {
                let what = format!("node{node}: {wanted:?} refused: {refused}");
                return broken("replies", what);
            }
        }
        Ok(true)
    }

    /// A node that is down is not stopped any more.
    fn node_down(&mut self, _cluster: &Cluster, _node: usize) {}
}

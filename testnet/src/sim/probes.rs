//! Questions to nodes whose answers are good whatever they say: a test or a step of a scenario looks at them.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    Input,
    api::command::{CallId, Command, Outcome, Refused},
};

use super::{
    cluster::Cluster,
    parts::{Part, Reply},
    promises::Broken,
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Probes {
    open: BTreeSet<CallId>,
    answers: BTreeMap<CallId, Result<Outcome, Refused>>,
}

impl Probes {
    pub(super) fn ask(&mut self, cluster: &mut Cluster, node: usize, command: Command) -> CallId {
        let call = cluster.call();
        self.open.insert(call);
        cluster.give(node, Input::Command { call, command });
        call
    }

    pub(super) fn is_answered(&self, call: CallId) -> bool {
        self.answers.contains_key(&call)
    }

    pub(super) fn take(&mut self, call: CallId) -> Option<Result<Outcome, Refused>> {
        self.answers.remove(&call)
    }
}

impl Part for Probes {
    fn judges_full_disks(&self) -> bool {
        true
    }

    fn replied(&mut self, _cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let asked = self.open.remove(&reply.call);
        if asked {
            self.answers.insert(reply.call, reply.result.clone());
        }
        Ok(asked)
    }

    /// The asker gives up after a while.
    fn node_down(&mut self, _cluster: &Cluster, _node: usize) {}
}

//! *sound*: the stores of all nodes that run hold, row by row: signatures, chains, numbers, indexes.

use super::{
    cluster::Cluster,
    promises::{Broken, broken},
};

pub(super) fn stores_are_sound(cluster: &Cluster) -> Result<(), Broken> {
    for (i, node) in cluster.nodes.iter().enumerate() {
        let Some(running) = &node.running else { continue };
        let report = running.reader.check_by(&*cluster.judge).expect("a sound store reads");
        if let Some(first) = report.findings.first() {
            let found = report.found;
            return broken("sound", format!("node{i}'s store, {found} of these: {first}"));
        }
    }
    Ok(())
}

//! *sound*: what the nodes have written holds, row by row: signatures, chains, numbers, indexes.

use super::{
    promises::{Broken, broken},
    world::World,
};

impl World {
    /// *sound*, of all that run.
    pub(super) fn stores_are_sound(&self) -> Result<(), Broken> {
        for (i, node) in self.nodes.iter().enumerate() {
            let Some(running) = &node.running else { continue };
            let report = running.reader.check_by(&*self.judge).expect("a sound store reads");
            if let Some(first) = report.findings.first() {
                return broken(
                    "sound",
                    format!("node{i}'s store, {} of these: {first}", report.found),
                );
            }
        }
        Ok(())
    }
}

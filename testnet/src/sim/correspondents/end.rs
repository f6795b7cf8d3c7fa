//! The promises of the end: *inbox* at all nodes, and *budgets*.

use std::time::Duration;

use crate::sim::{
    plan::{Correspondence, REQUESTS_KEPT},
    promises::Broken,
    world::World,
};

/// Agents that answer everything come to rest within this time after the last fault, and the last question that nobody led to.
const QUIET_WITHIN: Duration = Duration::from_secs(60);
/// The same, if they take their time, or go on when they have rested.
const QUIET_WITHIN_IF_LATE: Duration = Duration::from_secs(1_200);
/// Then they say nothing for at least so long.
const QUIET_FOR: Duration = Duration::from_secs(90);

/// *inbox*, at all nodes.
pub(crate) fn inboxes_are_right(world: &mut World) -> Result<(), Broken> {
    for node in 0..world.cluster.nodes.len() {
        world.correspondents.are_right(&world.cluster, node)?;
    }
    let World { cluster, correspondents, .. } = world;
    correspondents.tasks_are_told(cluster)?;
    correspondents.mail_was_told()
}

/// *requests*: after their time is over.
pub(crate) fn requests_have_ended(world: &mut World) -> Result<(), Broken> {
    world.go_on(REQUESTS_KEPT + Duration::from_secs(90))?;
    world.correspondents.requests_have_ended(&world.cluster)
}

/// *budgets*.
pub(crate) fn all_is_said(world: &mut World) -> Result<(), Broken> {
    let at_once = matches!(
        world.cluster.plan.correspondence,
        Some(Correspondence::Answering { patient: false, slow: false, .. })
    );
    world.go_on(if at_once { QUIET_WITHIN } else { QUIET_WITHIN_IF_LATE })?;
    let World { cluster, correspondents, .. } = world;
    let messages = correspondents.are_within_budgets(cluster)?;
    correspondents.hush(messages);
    world.go_on(QUIET_FOR)?;
    let World { cluster, correspondents, .. } = world;
    let messages = correspondents.are_within_budgets(cluster)?;
    correspondents.are_quiet(messages)
}

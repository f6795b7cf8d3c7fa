//! The table of methods: who may ask for each, and whether this build has it.

/// What a connection may do. Each may do more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Viewer,
    Operator,
    Admin,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

/// A method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// At least this.
    pub(crate) role: Role,
    /// It concerns this machine: for holders of the node's own key alone.
    pub(crate) own: bool,
    /// Why this build has it not, and what to do instead.
    pub(crate) missing: Option<&'static str>,
}

const NO_CRON: &str =
    "this node has no scheduler yet: have a timer of the system run a program that calls chat.send";
const NO_CONFIG: &str = "this node has no settings over the wire yet: its operator edits the settings file of clawmeshd";
const NO_TOGGLE: &str =
    "channels are switched by the node's operator: `clawmeshd up --no-goclaw`, and so on";
const NO_APPROVALS: &str =
    "this node has no approvals yet: an agent asks with a message in its room";
const NO_FILES: &str = "this node keeps no files of agents yet";
const NO_RETIRING: &str =
    "agents are not retired yet: stop the program that attaches under this id";
const NO_TEAM_CHANGES: &str =
    "members of teams are not kept yet: agents join and leave rooms by themselves";
const NO_TEAM_EVENTS: &str =
    "the events of a team are not kept yet: each task has its own, by teams.tasks.events";

const fn has(role: Role, name: &'static str) -> Method {
    Method { name, role, own: false, missing: None }
}

const fn lacks(role: Role, name: &'static str, why: &'static str) -> Method {
    Method { name, role, own: false, missing: Some(why) }
}

const fn own(role: Role, name: &'static str, why: &'static str) -> Method {
    Method { name, role, own: true, missing: Some(why) }
}

const fn has_own(role: Role, name: &'static str) -> Method {
    Method { name, role, own: true, missing: None }
}

use Role::{Admin, Operator, Viewer};

/// All methods but `connect`, by name.
pub(crate) const METHODS: &[Method] = &[
    has(Viewer, "agent"),
    has(Viewer, "agent.identity.get"),
    has(Viewer, "agent.wait"),
    has(Admin, "agents.create"),
    lacks(Admin, "agents.delete", NO_RETIRING),
    lacks(Admin, "agents.files.get", NO_FILES),
    lacks(Admin, "agents.files.list", NO_FILES),
    lacks(Admin, "agents.files.set", NO_FILES),
    has(Viewer, "agents.list"),
    has(Admin, "agents.update"),
    has(Admin, "api_keys.create"),
    has(Admin, "api_keys.list"),
    has(Admin, "api_keys.revoke"),
    has(Viewer, "browser.pairing.status"),
    has(Admin, "channels.instances.create"),
    has(Admin, "channels.instances.delete"),
    has(Viewer, "channels.instances.get"),
    has(Viewer, "channels.instances.list"),
    has(Admin, "channels.instances.update"),
    has(Viewer, "channels.list"),
    has(Viewer, "channels.status"),
    own(Admin, "channels.toggle", NO_TOGGLE),
    has(Operator, "chat.abort"),
    has(Viewer, "chat.history"),
    has(Operator, "chat.inject"),
    has(Operator, "chat.send"),
    has(Viewer, "chat.session.status"),
    own(Admin, "config.apply", NO_CONFIG),
    lacks(Viewer, "config.get", NO_CONFIG),
    own(Admin, "config.patch", NO_CONFIG),
    lacks(Viewer, "config.schema", NO_CONFIG),
    lacks(Operator, "cron.create", NO_CRON),
    lacks(Operator, "cron.delete", NO_CRON),
    lacks(Viewer, "cron.list", NO_CRON),
    lacks(Operator, "cron.run", NO_CRON),
    lacks(Viewer, "cron.runs", NO_CRON),
    lacks(Viewer, "cron.status", NO_CRON),
    lacks(Operator, "cron.toggle", NO_CRON),
    lacks(Operator, "cron.update", NO_CRON),
    has(Viewer, "delegations.get"),
    has(Viewer, "delegations.list"),
    has(Admin, "device.pair.approve"),
    has(Admin, "device.pair.deny"),
    has(Admin, "device.pair.list"),
    has(Viewer, "device.pair.request"),
    has(Admin, "device.pair.revoke"),
    lacks(Operator, "exec.approval.approve", NO_APPROVALS),
    lacks(Operator, "exec.approval.deny", NO_APPROVALS),
    lacks(Operator, "exec.approval.list", NO_APPROVALS),
    has(Viewer, "health"),
    has_own(Admin, "logs.tail"),
    has(Operator, "mesh.agent.serve"),
    has(Operator, "mesh.run.chunk"),
    has(Operator, "mesh.run.fail"),
    has(Operator, "mesh.run.reply"),
    has(Operator, "mesh.tasks.update"),
    has(Viewer, "providers.models"),
    has(Viewer, "quota.usage"),
    has(Viewer, "run.timeline.get"),
    has(Operator, "send"),
    lacks(Operator, "sessions.compact", "a node has no model to summarise with"),
    has(Operator, "sessions.delete"),
    has(Viewer, "sessions.list"),
    has(Operator, "sessions.patch"),
    has(Viewer, "sessions.preview"),
    has(Operator, "sessions.reset"),
    has(Viewer, "skills.get"),
    has(Viewer, "skills.list"),
    has(Operator, "skills.update"),
    has(Viewer, "status"),
    has(Admin, "teams.create"),
    has(Admin, "teams.delete"),
    lacks(Admin, "teams.events.list", NO_TEAM_EVENTS),
    has(Admin, "teams.get"),
    lacks(Admin, "teams.known_users", NO_TEAM_CHANGES),
    has(Admin, "teams.list"),
    lacks(Admin, "teams.members.add", NO_TEAM_CHANGES),
    lacks(Admin, "teams.members.remove", NO_TEAM_CHANGES),
    has(Admin, "teams.scopes"),
    has(Admin, "teams.tasks.active-by-session"),
    has(Admin, "teams.tasks.approve"),
    has(Admin, "teams.tasks.assign"),
    has(Admin, "teams.tasks.comment"),
    has(Admin, "teams.tasks.comments"),
    has(Admin, "teams.tasks.create"),
    has(Admin, "teams.tasks.delete"),
    has(Admin, "teams.tasks.delete-bulk"),
    has(Admin, "teams.tasks.events"),
    has(Admin, "teams.tasks.get"),
    has(Admin, "teams.tasks.get-light"),
    has(Admin, "teams.tasks.list"),
    has(Admin, "teams.tasks.reject"),
    has(Admin, "teams.update"),
    has(Admin, "teams.workspace.delete"),
    has(Admin, "teams.workspace.list"),
    has(Admin, "teams.workspace.read"),
    has(Admin, "teams.workspace.write"),
    has(Viewer, "usage.get"),
    has(Viewer, "usage.summary"),
];

/// The method of this name.
pub(crate) fn named(name: &str) -> Option<&'static Method> {
    let at = METHODS.binary_search_by_key(&name, |method| method.name).ok()?;
    METHODS.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_what_is_missing_is_said_with_what_to_do() {
        assert!(METHODS.is_sorted_by_key(|method| method.name));
        assert!(METHODS.iter().all(|method| named(method.name).is_some()));
        assert!(named("tenants.list").is_none() && named("connect").is_none());
        for method in METHODS.iter().filter_map(|method| method.missing) {
            assert!(method.len() > 20, "{method}");
        }
    }
}

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

const fn has(role: Role, name: &'static str) -> Method {
    Method { name, role, own: false, missing: None }
}

const fn lacks(role: Role, name: &'static str, why: &'static str) -> Method {
    Method { name, role, own: false, missing: Some(why) }
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
    has(Admin, "agents.delete"),
    has(Admin, "agents.files.get"),
    has(Admin, "agents.files.list"),
    has(Admin, "agents.files.set"),
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
    has_own(Admin, "channels.toggle"),
    has(Operator, "chat.abort"),
    has(Viewer, "chat.history"),
    has(Operator, "chat.inject"),
    has(Operator, "chat.send"),
    has(Viewer, "chat.session.status"),
    has_own(Admin, "config.apply"),
    has(Viewer, "config.get"),
    has_own(Admin, "config.patch"),
    has(Viewer, "config.schema"),
    has(Operator, "cron.create"),
    has(Operator, "cron.delete"),
    has(Viewer, "cron.list"),
    has(Operator, "cron.run"),
    has(Viewer, "cron.runs"),
    has(Viewer, "cron.status"),
    has(Operator, "cron.toggle"),
    has(Operator, "cron.update"),
    has(Viewer, "delegations.get"),
    has(Viewer, "delegations.list"),
    has(Admin, "device.pair.approve"),
    has(Admin, "device.pair.deny"),
    has(Admin, "device.pair.list"),
    has(Viewer, "device.pair.request"),
    has(Admin, "device.pair.revoke"),
    has(Operator, "exec.approval.approve"),
    has(Operator, "exec.approval.deny"),
    has(Operator, "exec.approval.list"),
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
    has(Admin, "teams.events.list"),
    has(Admin, "teams.get"),
    has(Admin, "teams.known_users"),
    has(Admin, "teams.list"),
    has(Admin, "teams.members.add"),
    has(Admin, "teams.members.remove"),
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

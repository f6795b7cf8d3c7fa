//! How agents of a node are told that something waits for them, for its operator.

use std::collections::BTreeMap;

use mesh::name::id::AgentId;

use crate::{
    backend::{ReadError, Reads},
    config::Config,
    delivery::hub::{Hub, Notified},
};

/// The inbox of an agent, and how far it has got with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The agent.
    pub agent: AgentId,
    /// Its host is posted to, by the operator's settings.
    pub posted: bool,
    /// So many items wait. `None`: it has no inbox here.
    pub unread: Option<usize>,
    /// How far it was told, has fetched and has confirmed since the start of the node.
    pub notified: Notified,
}

/// Of these agents, of those that are woken, and of all that were told something since the start.
pub(crate) fn of(
    hub: &Hub,
    config: &Config,
    here: impl IntoIterator<Item = AgentId>,
) -> Result<Vec<Mail>, ReadError> {
    let mut all: BTreeMap<AgentId, (bool, Notified)> = BTreeMap::new();
    all.extend(here.into_iter().map(|agent| (agent, Default::default())));
    all.extend(hub.mails.all().into_iter().map(|(agent, mail)| (agent, (false, mail))));
    for wake in &config.wakes {
        all.entry(wake.agent().into()).or_default().0 = true;
    }
    let mail = |(agent, (posted, notified)): (AgentId, (bool, Notified))| {
        let unread = unread(&**hub.reads(), &agent)?;
        Ok(Mail { agent, posted, unread, notified })
    };
    all.into_iter().map(mail).collect()
}

fn unread(reads: &dyn Reads, agent: &str) -> Result<Option<usize>, ReadError> {
    let Some(mark) = reads.inbox_mark(agent)? else { return Ok(None) };
    let items = reads.inbox(agent, mark, 1)?;
    Ok(Some(items.items.len() + items.left))
}

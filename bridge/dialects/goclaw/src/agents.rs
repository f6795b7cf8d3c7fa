//! Agents as people look at them: `agents.list`, `agent`, `agent.wait`, `agent.identity.get`.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bridge::{
    schedules::is_scheduler,
    seam::{
        answer::AgentProfile,
        call::{FindAgent, GetProfile, ListAttached, ListDescribed, NameNodes},
        refusal::Refusal,
    },
};
use mesh::{
    api::command::AgentView,
    limits::AGENT_ID_BYTES_MAX,
    name::id::{AgentId, NodeId},
    records::profile::{Field, Profile},
    wire::roster::Status,
};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::{
    caller::Caller,
    limits::{AGENT_LOOK_EVERY, AGENTS_MAX, AMBIGUOUS_MAX, PROFILES_READ_MAX, WAIT_MS},
    names::{self, Session, is_principal, uuid_of},
    outcome::{No, Outcome},
    params::{AGENT, Params, SESSION, is_required},
    times,
};

/// An agent that is known: attached to some node, or by its profile.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) agent: AgentId,
    pub(crate) view: Option<AgentView>,
    pub(crate) profile: Profile,
}

/// Whether messages reach it now: it has a connection, or a host that asks for it.
pub(crate) fn is_online(view: &AgentView) -> bool {
    !view.lingers || view.hosted
}

fn is_busy(view: &AgentView) -> bool {
    match view.presence.status {
        Status::Working | Status::Thinking => true,
        Status::Idle | Status::Waiting => false,
    }
}

impl Known {
    pub(crate) fn online(&self) -> bool {
        self.view.as_ref().is_some_and(is_online)
    }

    pub(crate) fn field(&self, field: Field) -> Option<&str> {
        let found = self.profile.fields.iter().find(|(of, _)| *of == field);
        found.map(|(_, text)| text.as_str())
    }

    pub(crate) fn name(&self) -> &str {
        let registered = self.view.as_ref().map(|view| &*view.name);
        self.field(Field::Name).or(registered).unwrap_or(&self.agent)
    }
}

impl Caller {
    /// All agents that are attached somewhere; people only if they are asked for.
    pub(crate) async fn attached(&self, with_people: bool) -> Result<Vec<AgentView>, No> {
        let mut all = self.read(ListAttached { limit: AGENTS_MAX }).await?;
        all.retain(|view| with_people || !is_principal(&view.agent));
        // Nobody talks to it.
        all.retain(|view| !is_scheduler(&view.agent));
        Ok(all)
    }

    /// An agent with its profile. `None`: nobody knows it.
    pub(crate) async fn known(&self, agent: &str) -> Result<Option<Known>, No> {
        if agent.is_empty() || agent.len() > AGENT_ID_BYTES_MAX {
            return Ok(None);
        }
        let agent = AgentId::from(agent);
        let view = self.read(FindAgent(agent.clone())).await?.into_iter().next();
        let profile = match self.shared.desk.ask(&self.holder, GetProfile(agent.clone())).await {
            // It is as one that was never there.
            Ok(AgentProfile { retired: true, .. }) => return Ok(None),
            Ok(AgentProfile { profile, .. }) => profile,
            Err(Refusal::NoAgent) if view.is_none() => return Ok(None),
            Err(Refusal::NoAgent) => Profile::default(),
            Err(refusal) => return Err(refusal.into()),
        };
        Ok(Some(Known { agent, view, profile }))
    }

    /// The agent that a text means: by its id, by its UUID, or by a name that one agent alone has.
    pub(crate) async fn agent(&self, text: &str) -> Result<Known, No> {
        if let Some(known) = self.known(text).await? {
            return Ok(known);
        }
        let missing = || No::not_found(format!("agent not found: {text}"));
        let everybody = self.everybody().await?;
        let lower = text.to_lowercase();
        if let Some(agent) = everybody.keys().find(|agent| uuid_of(agent) == lower) {
            return self.known(&agent.clone()).await?.ok_or_else(missing);
        }
        let mut named = Vec::new();
        for known in self.profiled(everybody).await? {
            if known.name() == text {
                named.push(known);
            }
        }
        match named.len() {
            0 => Err(missing()),
            1 => named.pop().ok_or_else(missing),
            _ => {
                let ids = named.iter().take(AMBIGUOUS_MAX).map(|known| &*known.agent);
                let ids = ids.collect::<Vec<_>>().join(", ");
                Err(No::invalid(format!("several agents are called {text}: use one of {ids}")))
            }
        }
    }

    /// Agents that are attached somewhere, those with which there are sessions, and those that have a profile.
    async fn everybody(&self) -> Result<BTreeMap<AgentId, Option<AgentView>>, No> {
        let attached = self.attached(false).await?;
        let mut all: BTreeMap<AgentId, Option<AgentView>> =
            attached.into_iter().map(|view| (view.agent.clone(), Some(view))).collect();
        for direct in self.direct_rooms().await? {
            if all.len() < AGENTS_MAX {
                all.entry(direct.agent).or_default();
            }
        }
        for agent in self.read(ListDescribed { limit: AGENTS_MAX }).await? {
            if all.len() < AGENTS_MAX && !is_principal(&agent) {
                all.entry(agent).or_default();
            }
        }
        Ok(all)
    }

    /// The same with their profiles: of the first ones, where there are very many.
    async fn profiled(&self, all: BTreeMap<AgentId, Option<AgentView>>) -> Result<Vec<Known>, No> {
        let mut known = Vec::with_capacity(all.len());
        for (nth, (agent, view)) in all.into_iter().enumerate() {
            let profile = if nth < PROFILES_READ_MAX {
                match self.shared.desk.ask(&self.holder, GetProfile(agent.clone())).await {
                    Ok(found) if found.retired => continue,
                    Ok(found) => found.profile,
                    Err(Refusal::NoAgent) => Profile::default(),
                    Err(refusal) => return Err(refusal.into()),
                }
            } else {
                Profile::default()
            };
            known.push(Known { agent, view, profile });
        }
        Ok(known)
    }

    /// All agents that are known, with their profiles.
    pub(crate) async fn everybody_known(&self) -> Result<Vec<Known>, No> {
        let everybody = self.everybody().await?;
        self.profiled(everybody).await
    }

    /// Whether an agent is at something: at a run that was begun here, or as it says itself.
    pub(crate) fn is_running(&self, known: &Known) -> bool {
        self.shared.runs.has(&known.agent) || known.view.as_ref().is_some_and(is_busy)
    }

    /// An agent as it is shown.
    fn row(&self, known: &Known, nodes: &BTreeMap<NodeId, String>) -> Value {
        let online = known.online();
        let (agent, view) = (&*known.agent, known.view.as_ref());
        let kind = if is_principal(agent) { "human" } else { "open" };
        let text = |field| json!(known.field(field).unwrap_or_default());
        let mut row = json!({
            "id": agent,
            "key": agent,
            "agent_key": agent,
            "uuid": uuid_of(agent),
            "name": known.name(),
            "display_name": known.name(),
            "provider": text(Field::Provider),
            "model": text(Field::Model),
            "agentType": kind,
            "agent_type": kind,
            "status": if online { "active" } else { "offline" },
            "isRunning": self.is_running(known),
            "capabilities": view.map(|view| view.capabilities.clone()).unwrap_or_default(),
            "online": online,
            "own": view.is_some_and(|view| view.key == self.print()),
        });
        for (name, field) in PICTURED {
            if let Some(text) = known.field(field) {
                row[name] = json!(text);
            }
        }
        if let Some(view) = view {
            let node = nodes.get(&view.node).cloned();
            row["node"] = json!(node.unwrap_or_else(|| view.node.to_string()));
        }
        row
    }

    /// The names of the nodes of agents.
    pub(crate) async fn nodes(
        &self,
        of: impl Iterator<Item = NodeId>,
    ) -> Result<BTreeMap<NodeId, String>, No> {
        let nodes: std::collections::BTreeSet<NodeId> = of.collect();
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        let names = self.read(NameNodes(nodes.clone())).await?;
        Ok(nodes.into_iter().zip(names).filter_map(|(node, name)| Some((node, name?))).collect())
    }
}

/// Fields that are left out if they are not set.
const PICTURED: [(&str, Field); 3] =
    [("emoji", Field::Emoji), ("avatar", Field::Avatar), ("description", Field::Description)];

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let with_people = params.flag(&["includePrincipals"])?.unwrap_or(false);
    let mut all = caller.everybody().await?;
    if with_people {
        for view in caller.attached(true).await? {
            all.insert(view.agent.clone(), Some(view));
        }
    }
    let known = caller.profiled(all).await?;
    let views = known.iter().filter_map(|known| known.view.as_ref());
    let nodes = caller.nodes(views.map(|view| view.node)).await?;
    let rows: Vec<Value> = known.iter().map(|known| caller.row(known, &nodes)).collect();
    Ok(json!({"agents": rows}))
}

pub(crate) async fn one(caller: &Caller, params: &Params) -> Outcome {
    let known = caller.agent(&params.required(AGENT)?).await?;
    let nodes = caller.nodes(known.view.iter().map(|view| view.node)).await?;
    Ok(caller.row(&known, &nodes))
}

/// Until it is not at anything any more.
pub(crate) async fn wait(caller: &Caller, params: &Params) -> Outcome {
    let known = caller.agent(&params.required(AGENT)?).await?;
    let session = params.filled(SESSION)?;
    let longest = params.whole(&["timeout", "timeoutMs"], *WAIT_MS.end())?.unwrap_or(20_000);
    let begun = Instant::now();
    loop {
        let view = caller.read(FindAgent(known.agent.clone())).await?.into_iter().next();
        let now = Known { view, ..known.clone() };
        let is_running = match &session {
            Some(session) => caller.shared.runs.has_session(session),
            None => caller.is_running(&now),
        };
        let waited = times::ms(begun.elapsed());
        let status = match (now.online(), is_running) {
            (false, _) => "offline",
            (true, true) => "running",
            (true, false) => "idle",
        };
        if status != "running" || waited >= longest {
            return Ok(json!({"id": &*now.agent, "status": status, "waitedMs": waited}));
        }
        let left = std::time::Duration::from_millis(longest - waited);
        sleep(AGENT_LOOK_EVERY.min(left)).await;
    }
}

pub(crate) async fn identity(caller: &Caller, params: &Params) -> Outcome {
    let of_session = || -> Result<Option<String>, No> {
        let Some(key) = params.filled(SESSION)? else { return Ok(None) };
        match Session::parse(&key) {
            Some(Session::Thread { agent, .. }) => Ok(Some(agent)),
            Some(Session::Room(_)) | None => {
                Err(No::not_found(format!("session not found: {key}")))
            }
        }
    };
    let named = match params.filled(AGENT)? {
        Some(agent) => Some(agent),
        None => of_session()?,
    };
    let known = caller.agent(&named.ok_or_else(|| is_required(AGENT))?).await?;
    let mut identity = Map::new();
    identity.insert("agentId".to_owned(), json!(&*known.agent));
    identity.insert("name".to_owned(), json!(known.name()));
    for (name, field) in PICTURED {
        if let Some(text) = known.field(field) {
            identity.insert(name.to_owned(), json!(text));
        }
    }
    Ok(Value::Object(identity))
}

/// The agent that a message is for, which the client may leave to the node.
pub(crate) async fn addressed(caller: &Arc<Caller>, named: Option<&str>) -> Result<Known, No> {
    if let Some(named) = named {
        return caller.agent(named).await;
    }
    if let Some(named) = &caller.shared.settings().default_agent {
        return caller.agent(named).await;
    }
    if let Some(known) = caller.known("default").await? {
        return Ok(known);
    }
    let mut own = caller.attached(false).await?;
    own.retain(|view| view.key == caller.print() && is_online(view));
    match &own[..] {
        [one] => caller.agent(&one.agent).await,
        [..] => Err(No::not_found("agent not found: default")),
    }
}

/// The key of a session that begins now.
pub(crate) fn new_session(agent: &str) -> Result<String, No> {
    let id = names::uuid(crate::pairing::drawn()?, 4);
    Ok(names::new_session(agent, &id))
}

//! The agents that can be reached, and the one that asks.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bridge::{config::Auth, seam::call::ListAgents};
use mesh::{
    api::{agenda::Standing, command::AgentView},
    name::id::AgentId,
};
use serde_json::{Map, Value, json};

use super::rooms::Page;
use crate::{
    arguments::Arguments,
    asking::Asking,
    keys::of_agent,
    limits::{AGENTS_ROOMS_MAX, ROWS_MAX, SEARCH_CHARS_MAX, WAIT_SECS_MAX},
    outcome::{No, Outcome},
};

/// An agent that can be written to.
pub(crate) struct Reachable {
    pub(crate) agent: AgentId,
    pub(crate) name: String,
    /// It is of the same key, or there is a session with it.
    pub(crate) known: bool,
    /// As it is attached; `None`: it is away.
    pub(crate) view: Option<AgentView>,
}

pub(super) async fn list(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let search = arguments.filled("search", SEARCH_CHARS_MAX)?.map(|text| text.to_lowercase());
    let capability = arguments.filled("capability", SEARCH_CHARS_MAX)?;
    let online = arguments.flag("online")?;
    let limit = arguments.integer("limit", 1, ROWS_MAX)?.unwrap_or(50);
    let offset = arguments.integer("offset", 0, u64::MAX)?.unwrap_or(0);
    let mut agents = reachable(asking).await?;
    agents.retain(|other| {
        let abilities = other.view.as_ref().map_or(&[][..], |view| view.capabilities.as_slice());
        let texts = [&*other.agent, &*other.name].into_iter();
        let mut texts = texts.chain(abilities.iter().map(String::as_str));
        let is_found = |search: &String| texts.any(|text| text.to_lowercase().contains(search));
        search.as_ref().is_none_or(is_found)
            && capability.as_ref().is_none_or(|wanted| abilities.contains(wanted))
            && online.is_none_or(|online| online == other.view.is_some())
    });
    agents.sort_by_key(|other| (!other.known, other.view.is_none(), other.agent.clone()));
    let page = Page::of(agents.len(), offset, limit);
    let shown = page.cut(&agents);
    let nodes = shown.iter().filter_map(|other| Some(other.view.as_ref()?.node));
    let reader = asking.reader_of(nodes).await?;
    let row = |other: &Reachable| match &other.view {
        Some(view) => reader.agent(view, other.known),
        None => json!({
            "agentId": other.agent,
            "sessionKey": of_agent(&other.agent),
            "name": other.name,
            "presence": "away",
            "known": other.known,
        }),
    };
    let rows = shown.iter().map(row).collect();
    let mut fields = page.fields("agents", rows);
    let mut me = me(asking).await?;
    me["unread"] = json!(asking.unread().await?.values().sum::<usize>());
    fields.insert("me".to_owned(), me);
    Ok(fields)
}

/// The agents of the key, members of rooms that it may read (of the liveliest, where there are very many), and those with
/// whom there is a session.
pub(crate) async fn reachable(asking: &Asking) -> Result<Vec<Reachable>, No> {
    let mut found: BTreeMap<AgentId, Reachable> = BTreeMap::new();
    let key = asking.reader.key();
    let mut rooms = asking.rooms().await?;
    let peers: BTreeSet<AgentId> = rooms
        .iter()
        .filter_map(|room| Some(room.sides.as_ref()?.peer_of(&asking.agent).clone()))
        .collect();
    rooms.retain(|view| view.members > 0);
    rooms.sort_by_key(|view| Reverse(view.last_activity_ms));
    let rooms = rooms.into_iter().take(AGENTS_ROOMS_MAX).map(|view| Some(view.room));
    for room in [None].into_iter().chain(rooms) {
        let agents = asking.shared.desk.ask(&asking.reader, ListAgents { room }).await;
        // A room that has gone since it was listed has none.
        for view in agents.unwrap_or_default() {
            let (agent, name) = (view.agent.clone(), view.name.to_string());
            let known = view.key == key || peers.contains(&agent);
            let other = Reachable { agent: agent.clone(), name, known, view: Some(view) };
            found.insert(agent, other);
        }
    }
    for agent in peers {
        let away =
            || Reachable { agent: agent.clone(), name: agent.to_string(), known: true, view: None };
        found.entry(agent.clone()).or_insert_with(away);
    }
    found.remove(&asking.agent);
    Ok(found.into_values().collect())
}

/// The agent that asks.
pub(super) async fn me(asking: &Asking) -> Result<Value, No> {
    let here = asking.shared.desk.config().here.node;
    let reader = asking.reader_of([here]).await?;
    let config = asking.shared.desk.config();
    let standing = asking.reader.standing();
    let kind = match (&config.auth, standing) {
        (Auth::Open, _) => "open",
        (Auth::Key(_), Standing::Own) => "own",
        (Auth::Key(_), Standing::Minted { .. }) => "minted",
    };
    let tools: Vec<Value> = list_names(asking);
    let content = config.quota(standing).content_bytes_max;
    let fields = [
        ("agentId", json!(asking.agent)),
        ("key", json!(of_agent(&asking.agent))),
        ("name", json!(asking.name.as_deref().unwrap_or(&asking.agent))),
        ("node", reader.node(here)),
        ("tools", json!(tools)),
        ("visibility", json!("joined")),
        ("keyKind", json!(kind)),
        ("limits", json!({"contentBytes": content, "waitSeconds": WAIT_SECS_MAX})),
    ];
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(Value::Object(fields.collect::<Map<String, Value>>()))
}

fn list_names(asking: &Asking) -> Vec<Value> {
    super::list(asking).iter().map(|tool| json!(tool.name)).collect()
}

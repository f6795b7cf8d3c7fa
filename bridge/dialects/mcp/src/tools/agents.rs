//! The agents that can be reached, and the one that asks.

use bridge::{config::Auth, tokens::Scope};
use mesh::api::agenda::Standing;
use serde_json::{Map, Value, json};

use super::{rooms::Page, sessions};
use crate::{
    arguments::Arguments,
    asking::Asking,
    children::in_hand,
    keys::of_agent,
    limits::{ROWS_MAX, SEARCH_CHARS_MAX, WAIT_SECS_MAX},
    outcome::{No, Outcome},
    reach::{Reachable, reachable},
};

pub(super) async fn list(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let search = arguments.filled("search", SEARCH_CHARS_MAX)?.map(|text| text.to_lowercase());
    let capability = arguments.filled("capability", SEARCH_CHARS_MAX)?;
    let online = arguments.flag("online")?;
    let limit = arguments.integer("limit", 1, ROWS_MAX)?.unwrap_or(50);
    let offset = arguments.integer("offset", 0, u64::MAX)?.unwrap_or(0);
    let mut agents = reachable(asking, capability.as_deref()).await?;
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
    me["unread"] = json!(sessions::unread(asking).await?.values().sum::<usize>());
    fields.insert("me".to_owned(), me);
    Ok(fields)
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
    let tasks = in_hand(asking).await?;
    let content = config.quota(standing).content_bytes_max;
    let fields = [
        ("agentId", json!(asking.agent)),
        ("key", json!(of_agent(&asking.agent))),
        ("name", json!(asking.name.as_deref().unwrap_or(&asking.agent))),
        ("node", reader.node(here)),
        ("tools", json!(tools)),
        ("visibility", json!(asking.grant.visibility.name())),
        ("scopes", json!(asking.grant.scopes.iter().map(Scope::name).collect::<Vec<_>>())),
        ("tasks", json!(tasks.iter().map(|task| task.to_uuid()).collect::<Vec<_>>())),
        ("keyKind", json!(kind)),
        ("limits", json!({"contentBytes": content, "waitSeconds": WAIT_SECS_MAX})),
    ];
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(Value::Object(fields.collect::<Map<String, Value>>()))
}

fn list_names(asking: &Asking) -> Vec<Value> {
    super::list(asking).iter().map(|tool| json!(tool.name)).collect()
}

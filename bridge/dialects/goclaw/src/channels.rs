//! `channels.*`: the ways in and out of this node. Instances are webhooks of the caller's key, and for holders of the node's
//! own key the other nodes of the mesh.

use bridge::{
    seam::{
        answer::{Filter, SubscriptionStatus, SubscriptionView},
        call::{EnableSubscription, ListNodes, ListSubscriptions, Subscribe, Unsubscribe},
    },
    secret::Secret,
};
use serde_json::{Map, Value, json};

use crate::{
    caller::Caller,
    config,
    limits::INSTANCE_NAME_BYTES_MAX,
    outcome::{Code, No, Outcome},
    params::{Params, is_required, must_be},
    times,
};

/// All that there are, by name. Those that this build has not are not listed.
const CHANNELS: [&str; 4] = ["clawchat", "goclaw", "mesh", "webhook"];
const WEBHOOK: &str = "webhook";
/// Names of kept rows begin so; the webhook's id follows.
const NAMES: &[u8] = b"goclaw-instance/";

pub(crate) fn list() -> Value {
    json!({"channels": CHANNELS})
}

/// Webhooks alone are switched here: through the others clients and nodes come, this one too.
pub(crate) async fn toggle(caller: &Caller, params: &Params) -> Outcome {
    let channel = params.required(&["channel"])?;
    let enabled = params.flag(&["enabled"])?.ok_or_else(|| is_required(&["enabled"]))?;
    match &*channel {
        WEBHOOK => config::set(caller, "webhooks.enabled", json!(enabled)).await?,
        "goclaw" => return Err(No::invalid("goclaw is the channel in use")),
        other if CHANNELS.contains(&other) => {
            return Err(No::invalid(format!("{other} cannot be switched off")));
        }
        other => return Err(No::not_found(format!("channel not found: {other}"))),
    }
    Ok(json!({"channel": channel, "enabled": enabled}))
}

pub(crate) async fn status(caller: &Caller) -> Outcome {
    let nodes = caller.read(ListNodes).await?;
    let away = nodes.iter().filter(|node| !node.me && !node.connected).count();
    let hooks = caller.read(ListSubscriptions { room: None }).await?;
    let failed = hooks.iter().filter(|hook| hook.status == SubscriptionStatus::Failed).count();
    let now = times::text(times::now_ms());
    let webhooks_are_on = config::value(caller, "webhooks.enabled") != Some(json!(false));
    let row = |name: &str| {
        let (bad, what) = match name {
            "mesh" => (away, "nodes of the mesh are out of reach"),
            WEBHOOK => (failed, "webhooks of this key have failed"),
            _ => (0, ""),
        };
        let (state, summary) = if bad == 0 {
            ("healthy", String::new())
        } else {
            ("degraded", format!("{bad} {what}"))
        };
        let on = name != WEBHOOK || webhooks_are_on;
        let state = if on { state } else { "stopped" };
        let row = json!({
            "enabled": on, "running": on, "state": state, "summary": summary,
            "retryable": bad > 0, "checked_at": now,
        });
        (name.to_owned(), row)
    };
    let rows: Map<String, Value> = CHANNELS.into_iter().map(row).collect();
    Ok(json!({"channels": rows}))
}

/// What a user calls a webhook. Kept at this node, as the webhook is.
#[derive(Default)]
struct Named {
    name: String,
    display_name: String,
}

impl Named {
    fn of(kept: &[u8]) -> Named {
        let row: Value = serde_json::from_slice(kept).unwrap_or_default();
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Named { name: text("name"), display_name: text("display_name") }
    }

    fn kept(&self) -> Vec<u8> {
        let row = json!({"name": self.name, "display_name": self.display_name});
        row.to_string().into_bytes()
    }
}

fn row_name(id: &str) -> Vec<u8> {
    [NAMES, id.as_bytes()].concat()
}

async fn named(caller: &Caller, id: &str) -> Result<Named, No> {
    let rows = caller.shared.desk.kept(row_name(id)).await?;
    Ok(rows.first().map(|(_, kept)| Named::of(kept)).unwrap_or_default())
}

fn hook_row(hook: &SubscriptionView, named: &Named) -> Value {
    let mut config = json!({"room_id": hook.room.to_uuid(), "url": hook.url});
    if let Some(kinds) = &hook.filter.kinds {
        config["kinds"] = json!(kinds);
    }
    let created = times::text(hook.created_ms);
    let name = if named.name.is_empty() { &hook.id } else { &named.name };
    let display = if named.display_name.is_empty() { name } else { &named.display_name };
    json!({
        "id": hook.id, "name": name, "display_name": display, "channel_type": WEBHOOK,
        "agent_id": null, "config": config, "enabled": hook.status == SubscriptionStatus::Active,
        "is_default": false, "has_credentials": true, "credentials": {"secret": "***"},
        "created_by": "", "created_at": created, "updated_at": created,
    })
}

async fn rows(caller: &Caller) -> Result<Vec<Value>, No> {
    let mut rows = Vec::new();
    for hook in caller.read(ListSubscriptions { room: None }).await? {
        rows.push(hook_row(&hook, &named(caller, &hook.id).await?));
    }
    if caller.owner {
        let nodes = caller.read(ListNodes).await?;
        rows.extend(nodes.into_iter().filter(|node| !node.me).map(|node| {
            let id = node.node.to_string();
            let name = if node.name.is_empty() { id.clone() } else { node.name };
            json!({
                "id": id, "name": name, "display_name": name, "channel_type": "peer",
                "agent_id": null, "config": {}, "enabled": node.connected, "is_default": false,
                "has_credentials": false, "credentials": {}, "created_by": "",
                "created_at": null, "updated_at": null,
            })
        }));
    }
    Ok(rows)
}

pub(crate) async fn instances(caller: &Caller) -> Outcome {
    Ok(json!({"instances": rows(caller).await?}))
}

/// Webhooks of the caller's key that are called so, or have this id: ids and names.
pub(crate) async fn hooks_named(caller: &Caller, name: &str) -> Result<Vec<(String, String)>, No> {
    let mut found = Vec::new();
    for hook in caller.read(ListSubscriptions { room: None }).await? {
        let its = named(caller, &hook.id).await?.name;
        if hook.id == name || its == name {
            let its = if its.is_empty() { hook.id.clone() } else { its };
            found.push((hook.id, its));
        }
    }
    Ok(found)
}

fn no_instance(id: &str) -> No {
    No::not_found(format!("instance not found: {id}"))
}

pub(crate) async fn instance(caller: &Caller, params: &Params) -> Outcome {
    let id = params.required(&["id"])?;
    rows(caller).await?.into_iter().find(|row| row["id"] == *id).ok_or_else(|| no_instance(&id))
}

/// A text of an object that a client gives.
fn text(of: Option<&Map<String, Value>>, name: &'static str) -> Result<Option<String>, No> {
    match of.and_then(|of| of.get(name)).filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(No::invalid(format!("{name} must be a string"))),
    }
}

fn short(names: &'static [&'static str], params: &Params) -> Result<Option<String>, No> {
    let given = params.filled(names)?;
    if given.as_ref().is_some_and(|name| name.len() > INSTANCE_NAME_BYTES_MAX) {
        let text = format!("a string of at most {INSTANCE_NAME_BYTES_MAX} bytes");
        return Err(must_be(names, &text));
    }
    Ok(given)
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let (kind, name) = (params.required(&["channel_type"])?, short(&["name"], params)?);
    let name = name.ok_or_else(|| No::invalid("name is required"))?;
    if kind == "peer" {
        return Err(No::invalid(
            "peers come by ticket: `clawmeshd invite` at one node, `clawmeshd up --join` at the other",
        ));
    }
    if kind != WEBHOOK {
        return Err(No::invalid(format!("no channel of type {kind}")));
    }
    let (config, secrets) = (params.object(&["config"])?, params.object(&["credentials"])?);
    let required =
        |of, name| text(of, name)?.ok_or_else(|| No::invalid(format!("{name} is required")));
    let room = required(config, "room_id")?;
    let room = Params::new([("teamId".to_owned(), json!(room))].into_iter().collect());
    let room = caller.team(&room, crate::params::TEAM).await?.room;
    let kinds = match config.and_then(|config| config.get("kinds")).filter(|it| !it.is_null()) {
        None => None,
        Some(given) => Some(
            serde_json::from_value(given.clone())
                .map_err(|_| No::invalid("kinds must be an array of strings"))?,
        ),
    };
    let subscribe = Subscribe {
        room,
        url: required(config, "url")?,
        secret: Secret::new(&required(secrets, "secret")?),
        filter: Filter { kinds, ..Filter::default() },
        since: None,
    };
    let display_name = short(&["display_name"], params)?.unwrap_or_default();
    let hook = caller.act(&caller.speaker(), subscribe).await?;
    let named = Named { name, display_name };
    caller.shared.desk.keep(row_name(&hook.id), Some(named.kept())).await?;
    let row = hook_row(&hook, &named);
    Ok(json!({"instance": row, "id": hook.id}))
}

/// The names change, and one that has failed is enabled again; what is posted, and where to, stays.
pub(crate) async fn update(caller: &Caller, params: &Params) -> Outcome {
    let id = params.required(&["id"])?;
    let given = params.object(&["patch", "updates"])?.cloned().map(Params::new);
    let patch = given.as_ref().unwrap_or(params);
    let hooks = caller.read(ListSubscriptions { room: None }).await?;
    let hook = hooks.iter().find(|hook| hook.id == id).ok_or_else(|| no_instance(&id))?;
    if patch.get(&["config"]).is_some() || patch.get(&["credentials"]).is_some() {
        let text =
            "config and credentials of a webhook stay: delete the instance, and create another one";
        return Err(No::new(Code::NotImplemented, text));
    }
    let enabled = patch.flag(&["enabled"])?;
    if enabled == Some(false) {
        let text = "a webhook is not switched off: delete the instance";
        return Err(No::new(Code::NotImplemented, text));
    }
    if enabled == Some(true) && hook.status != SubscriptionStatus::Active {
        caller.act(&caller.speaker(), EnableSubscription { id: id.clone() }).await?;
    }
    let mut named = named(caller, &id).await?;
    named.name = short(&["name"], patch)?.unwrap_or(named.name);
    named.display_name = short(&["display_name"], patch)?.unwrap_or(named.display_name);
    caller.shared.desk.keep(row_name(&id), Some(named.kept())).await?;
    Ok(json!({"status": "updated"}))
}

pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let id = params.required(&["id"])?;
    let hooks = caller.read(ListSubscriptions { room: None }).await?;
    if !hooks.iter().any(|hook| hook.id == id) {
        return Err(no_instance(&id));
    }
    caller.act(&caller.speaker(), Unsubscribe { id: id.clone() }).await?;
    caller.shared.desk.keep(row_name(&id), None).await?;
    Ok(json!({"status": "deleted"}))
}

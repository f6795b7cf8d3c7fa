//! `config.*`: the node's settings, to its operator.

use std::sync::Arc;

use bridge::node_settings::{Changes, NodeSettings, Setting};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    caller::Caller,
    limits::{CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX},
    outcome::{Code, No, Outcome},
    params::{Params, is_required, must_be},
};

fn node(caller: &Caller) -> Result<Arc<dyn NodeSettings>, No> {
    let missing = || No::new(Code::NotImplemented, "this node does not show its settings");
    caller.shared.node.clone().ok_or_else(missing)
}

/// Those that this client is shown.
fn shown(caller: &Caller, node: &dyn NodeSettings) -> Vec<Setting> {
    node.all().into_iter().filter(|setting| caller.owner || !setting.own).collect()
}

/// As one object: each part of a name is a level of it. No name is the beginning of another one.
fn config(settings: &[Setting]) -> Value {
    let mut root = json!({});
    for setting in settings {
        let at = setting.name.split('.').fold(&mut root, |at, part| &mut at[part]);
        *at = setting.value.clone();
    }
    root
}

/// Of the compact text, whose keys are sorted.
fn hash(config: &Value) -> String {
    let digest = Sha256::digest(config.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn get(caller: &Caller, params: &Params) -> Outcome {
    let node = node(caller)?;
    let settings = shown(caller, &*node);
    let path = if caller.owner { node.file() } else { String::new() };
    let hash = hash(&config(&settings));
    let mut found = settings;
    // The hash is of all of them.
    if let Some(key) = params.filled(&["key"])? {
        let inner = format!("{key}.");
        found.retain(|setting| setting.name == key || setting.name.starts_with(&inner));
        if found.is_empty() {
            return Err(No::not_found(format!("no setting of the name {key}")));
        }
    }
    Ok(json!({"config": config(&found), "hash": hash, "path": path}))
}

pub(crate) fn schema(caller: &Caller) -> Outcome {
    let settings = shown(caller, &*node(caller)?);
    let mut root = json!({"type": "object", "properties": {}});
    for setting in &settings {
        let mut at = &mut root;
        for part in setting.name.split('.') {
            at = &mut at["properties"][part];
            if at.is_null() {
                *at = json!({"type": "object"});
            }
        }
        *at = json!({
            "type": setting.kind, "default": setting.default, "description": setting.about,
            "x-changeable": setting.changeable,
        });
    }
    Ok(json!({"json": root}))
}

/// The value of one setting, if this node shows it.
pub(crate) fn value(caller: &Caller, name: &str) -> Option<Value> {
    let all = caller.shared.node.as_ref()?.all();
    all.into_iter().find(|setting| setting.name == name).map(|setting| setting.value)
}

/// Sets one.
pub(crate) async fn set(caller: &Caller, name: &str, to: Value) -> Result<(), No> {
    let node = node(caller)?;
    let _only = caller.shared.configuring.lock().await;
    changed(node, [(name.to_owned(), Some(to))].into(), false).await
}

async fn changed(node: Arc<dyn NodeSettings>, changes: Changes, rest: bool) -> Result<(), No> {
    // It writes to the disk.
    match tokio::task::spawn_blocking(move || node.change(&changes, rest)).await {
        Ok(done) => done.map_err(No::invalid),
        Err(error) => Err(No::internal(&error.to_string())),
    }
}

pub(crate) async fn patch(caller: &Caller, params: &Params) -> Outcome {
    change(caller, params, false).await
}

/// What it does not name is as if it had not been changed.
pub(crate) async fn apply(caller: &Caller, params: &Params) -> Outcome {
    change(caller, params, true).await
}

async fn change(caller: &Caller, params: &Params, rest: bool) -> Outcome {
    let node = node(caller)?;
    let wanted = wanted(params, rest)?;
    let base = params.filled(&["baseHash", "base_hash"])?;
    let only = caller.shared.configuring.lock().await;
    let before = shown(caller, &*node);
    if base.is_some_and(|base| base != hash(&config(&before))) {
        return Err(No::invalid("config has changed (hash mismatch)"));
    }
    let mut changes = Changes::new();
    flatten(&before, String::new(), &wanted, &mut changes)?;
    // A client that sends the whole object back changes nothing by what is as it was.
    changes.retain(|name, value| {
        let setting = before.iter().find(|setting| setting.name == name);
        setting.is_none_or(|setting| setting.changeable || value.as_ref() != Some(&setting.value))
    });
    changed(node.clone(), changes, rest).await?;
    drop(only);
    let config = config(&shown(caller, &*node));
    let hash = hash(&config);
    Ok(json!({"ok": true, "path": node.file(), "config": config, "hash": hash, "restart": false}))
}

/// The settings that a client names: as text of JSON5, as one name and its value, or as the parameters themselves.
fn wanted(params: &Params, rest: bool) -> Result<Map<String, Value>, No> {
    if let Some(raw) = params.text(&["raw"])? {
        let wrong = || must_be(&["raw"], "an object in JSON5");
        if raw.len() > CONFIG_BYTES_MAX || depth(&raw) > CONFIG_DEPTH_MAX {
            return Err(wrong());
        }
        let read: Value = json5::from_str(&raw).map_err(|_| wrong())?;
        return read.as_object().cloned().ok_or_else(wrong);
    }
    if let Some(key) = params.filled(&["key"])? {
        let value = params.present("value").ok_or_else(|| is_required(&["value"]))?;
        return Ok([(key, value.clone())].into_iter().collect());
    }
    if !rest {
        return Err(is_required(&["raw"]));
    }
    Ok(params.without(&["baseHash", "base_hash"]))
}

/// How deep brackets are nested, those in texts included: the reader of JSON5 has no bound of its own.
fn depth(raw: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for c in raw.chars() {
        match c {
            '[' | '{' => now += 1,
            ']' | '}' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// Values by the whole names of their settings. Names may be written with points, too.
fn flatten(
    all: &[Setting],
    before: String,
    wanted: &Map<String, Value>,
    changes: &mut Changes,
) -> Result<(), No> {
    for (key, value) in wanted {
        let name = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
        let is_setting = all.iter().any(|setting| setting.name == name);
        let inner = format!("{name}.");
        let is_group = all.iter().any(|setting| setting.name.starts_with(&inner));
        if is_setting {
            changes.insert(name, (!value.is_null()).then(|| value.clone()));
        } else if is_group {
            let wrong = || No::invalid(format!("{name} must be an object"));
            let more = value.as_object().ok_or_else(wrong)?;
            flatten(all, name, more, changes)?;
        } else {
            return Err(No::invalid(format!("no setting of the name {name}")));
        }
    }
    Ok(())
}

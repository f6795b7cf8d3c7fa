//! Extensions: what a client and the node agree on, and messages of namespaces.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    envelope::{Request, Told},
    fields::At,
    ids::Form,
    limits::{ASKS_PER_MINUTE, EXTENSIONS_MAX},
    problem::{Code, Problem},
    rooms, runs,
    shared::Rate,
    state::{Context, State},
    style::Style,
    tasks,
};

/// The form of ids that a client may ask for.
const BARE: &str = "clawmesh.ids";
/// With versions.
const OURS: [&str; 3] = [rooms::NAMESPACE, tasks::NAMESPACE, runs::NAMESPACE];
const VERSION: &str = "1.0.0";
const FEATURES: [&str; 3] = ["mentions", "threading", "approvals"];

/// What both have, and from now on mean. `style`: the one of the connection by now; ids have the form that was agreed on
/// before it was let in.
pub(crate) fn agree(state: &mut State, style: Style, request: &Request) -> Result<Bytes, Problem> {
    let data = request.data();
    let named = data.get("supported_extensions").texts(EXTENSIONS_MAX, 256)?;
    let features = data.get("optional_features").texts(EXTENSIONS_MAX, 256)?;
    let mut both = Vec::new();
    for name in &named {
        let (namespace, version) = name.split_once('@').unwrap_or((name, ""));
        if let Some(ours) = OURS.into_iter().find(|ours| *ours == namespace) {
            if version.split('.').next() == VERSION.split('.').next() {
                state.namespaces.insert(ours);
                both.push(format!("{ours}@{VERSION}"));
            }
        } else if (namespace, version) == (BARE, "bare") {
            let may = state.member.is_none() || style.form == Form::Bare;
            if may {
                state.form = Some(Form::Bare);
                both.push(name.clone());
            }
        }
    }
    let known = |feature: &&String| FEATURES.contains(&feature.as_str());
    let features: Vec<&String> = features.iter().filter(known).collect();
    let data = json!({"supported_extensions": both, "optional_features": features});
    let style = Style { form: state.form.unwrap_or(style.form), ..style };
    let told = Told::fresh("connection.capabilities", data);
    Ok(style.frame(told.answering(&request.related)))
}

/// Messages of the room's namespace that are answered without a change of the connection.
const ROOM: [&str; 6] = [
    "extension.room_invite",
    "extension.room_list",
    "extension.room_create",
    "extension.room_history",
    "extension.room_update",
    "extension.room_close",
];

/// Carries one out. Joining and leaving are the connection's.
pub(crate) async fn carry_out(cx: &Context, request: &Request) -> Result<Vec<Bytes>, Problem> {
    let kind = &*request.kind;
    let data = request.data();
    let namespace = data.get("namespace").words(256)?;
    let payload = data.get("payload");
    payload.clone().required()?.object()?;
    data.get("extension_version").text(64)?;
    let own = if namespace == rooms::NAMESPACE && ROOM.contains(&kind) {
        rooms::NAMESPACE
    } else if namespace == tasks::NAMESPACE
        && (tasks::CHANGES.contains(&kind) || kind == "extension.task_list")
    {
        tasks::NAMESPACE
    } else if namespace == runs::NAMESPACE && kind == runs::STREAM {
        runs::NAMESPACE
    } else if namespace.starts_with("clawmesh.") {
        let text = format!("{kind} is no message of {namespace} in this version");
        return Err(Problem::new(Code::ValidationFailed, text).at("type").because("unknown type"));
    } else {
        return unknown(request, namespace);
    };
    let agent = cx.agent()?.clone();
    cx.state().namespaces.insert(own);
    if own == tasks::NAMESPACE && kind != "extension.task_list" {
        return tasks::extension(cx, kind, request).await;
    }
    if own == runs::NAMESPACE {
        return runs::stream(cx, request).await;
    }
    cx.shared.take(&agent, Rate::per_minute("questions", ASKS_PER_MINUTE))?;
    let told = answered(cx, kind, &payload).await?;
    Ok(vec![cx.frame(told.answering(&request.related))])
}

async fn answered(cx: &Context, kind: &str, payload: &At<'_>) -> Result<Told, Problem> {
    match kind {
        "extension.task_list" => tasks::list_of(cx, payload).await,
        "extension.room_list" => rooms::list(cx).await,
        "extension.room_create" => rooms::create(cx, &payload.get("config")).await,
        "extension.room_invite" => rooms::invite(cx, payload).await,
        "extension.room_history" => rooms::history(cx, payload).await,
        "extension.room_update" => {
            let room = rooms::named(cx, payload.get("room_id").words(256)?).await?;
            rooms::change(cx, room, payload).await
        }
        _ => {
            let room = rooms::named(cx, payload.get("room_id").words(256)?).await?;
            rooms::close(cx, room).await
        }
    }
}

/// Another namespace is not passed on: its client says what it means if so.
fn unknown(request: &Request, namespace: &str) -> Result<Vec<Bytes>, Problem> {
    let metadata = request.metadata();
    let required = metadata.get("extension_required").flag()?.unwrap_or(false);
    let behaviours = ["ignore", "error", "prompt_user"];
    let falls_back = metadata.get("fallback_behavior").one_of(&behaviours)?;
    if !required && matches!(falls_back, None | Some("ignore")) {
        return Ok(Vec::new());
    }
    let text = format!("extensions of {namespace} are not passed on");
    Err(Problem::missing(text).because("extension_unsupported"))
}

/// The payload of a message of the room's namespace.
pub(crate) fn room_of(request: &Request) -> Result<Value, Problem> {
    let data = request.data();
    let namespace = data.get("namespace");
    if namespace.words(256)? != rooms::NAMESPACE {
        return Err(namespace.bad(format!("must be {}", rooms::NAMESPACE)));
    }
    let room = data.get("payload").get("room_id");
    Ok(json!(room.words(256)?))
}

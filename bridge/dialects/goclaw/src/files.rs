//! Files of agents, and the end of agents: `agents.files.*`, `agents.delete`, and the page where an agent reads its own.

use std::sync::{Arc, OnceLock};

use axum::{
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bridge::{
    read::Peer,
    seam::{
        answer::FoundAgentFile,
        call::{GetAgentFile, ListAgentFiles, ListAgents, PutAgentFile, RetireAgent},
    },
    secret::Secret,
};
use mesh::{
    name::id::AgentId,
    records::{
        agent_files::AgentFile,
        profile::{Field, ProfileUpdate},
    },
};
use serde_json::{Value, json};

use crate::{
    agents::Known,
    caller::Caller,
    names::uuid_of,
    outcome::{No, Outcome},
    params::{AGENT, Names, Params},
    shared::Shared,
    times,
};

/// The files that an agent may have.
const NAMES: [&str; 9] = [
    "AGENTS.md",
    "SOUL.md",
    "IDENTITY.md",
    "USER.md",
    "USER_PREDEFINED.md",
    "CAPABILITIES.md",
    "BOOTSTRAP.md",
    "MEMORY.json",
    "HEARTBEAT.md",
];
/// The one whose lines set the profile.
const IDENTITY: &str = "IDENTITY.md";
const LINES: [(&str, Field); 4] = [
    ("Name:", Field::Name),
    ("Emoji:", Field::Emoji),
    ("Avatar:", Field::Avatar),
    ("Description:", Field::Description),
];
const NAME: &Names = &["name", "fileName", "file_name"];

fn name(params: &Params) -> Result<&'static str, No> {
    let named = params.required(NAME)?;
    let known = NAMES.into_iter().find(|known| *known == named);
    known.ok_or_else(|| No::invalid(format!("file not allowed: {named}")))
}

/// An agent whose id is the caller's key's own.
async fn own(caller: &Caller, params: &Params) -> Result<Known, No> {
    let known = caller.agent(&params.required(AGENT)?).await?;
    if caller.owns(&known).await? {
        return Ok(known);
    }
    Err(No::unauthorized(format!("agent {} is of another key", known.agent)))
}

fn row(name: &str, file: Option<&AgentFile>) -> Value {
    match file {
        Some(file) => json!({
            "name": name, "missing": false, "size": file.length,
            "updated_at": times::text(file.at_ms),
        }),
        None => json!({"name": name, "missing": true}),
    }
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let agent = own(caller, params).await?.agent;
    let found = caller.read(ListAgentFiles(agent.clone())).await?;
    let rows = NAMES.map(|name| row(name, found.iter().find(|file| file.name == name)));
    Ok(json!({"agentId": &*agent, "files": rows}))
}

async fn found(caller: &Caller, agent: &AgentId, name: &str) -> Result<Option<FoundAgentFile>, No> {
    let get = GetAgentFile { agent: agent.clone(), name: name.to_owned() };
    let found = caller.read(get).await?;
    if found.as_ref().is_some_and(|found| found.bytes.is_none()) {
        return Err(No::unavailable("the file has not come to this node yet; it is asked for"));
    }
    Ok(found)
}

/// A file with its text: an empty one where there is none.
fn shown(name: &str, found: Option<FoundAgentFile>) -> (Value, String) {
    let (view, bytes) = match found {
        Some(FoundAgentFile { view, bytes }) => (Some(view), bytes.unwrap_or_default()),
        None => (None, Vec::new()),
    };
    let content = String::from_utf8_lossy(&bytes).into_owned();
    let mut file = row(name, view.as_ref());
    file["content"] = json!(content);
    file["size"] = json!(bytes.len());
    (file, content)
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let name = name(params)?;
    let agent = own(caller, params).await?.agent;
    let (file, content) = shown(name, found(caller, &agent, name).await?);
    Ok(json!({"agentId": &*agent, "file": file, "content": content}))
}

pub(crate) async fn set(caller: &Caller, params: &Params) -> Outcome {
    let name = name(params)?;
    let content = params.text(&["content"])?;
    let content = content.ok_or_else(|| No::invalid("content is required"))?;
    let known = own(caller, params).await?;
    let agent = known.agent.clone();
    let bytes = Some(content.clone().into_bytes());
    let put = PutAgentFile { agent: agent.clone(), name: name.to_owned(), bytes };
    caller.read(put).await?;
    if name == IDENTITY {
        let fields = identity(&content);
        if !fields.is_empty() {
            caller.set_profile(&agent, ProfileUpdate { fields, cards: None }).await?;
        }
    }
    let (file, _) = shown(name, found(caller, &agent, name).await?);
    Ok(json!({"agentId": &*agent, "file": file, "propagated": 0}))
}

/// The fields of a profile that a text sets: a line for each, perhaps of a list and in bold. The last one of a field counts.
fn identity(text: &str) -> Vec<(Field, Option<String>)> {
    let plain = |line: &str| line.trim_start_matches(['-', '*', ' ', '\t']).replace("**", "");
    let mut fields: Vec<(Field, Option<String>)> = Vec::new();
    for line in text.lines().map(plain) {
        for (beginning, field) in LINES {
            if let Some(rest) = line.strip_prefix(beginning) {
                let value = Some(rest.trim().to_owned()).filter(|value| !value.is_empty());
                fields.retain(|(known, _)| *known != field);
                fields.push((field, value));
            }
        }
    }
    fields
}

/// Retires an agent: nobody attaches under its id again. Its files go, unless they are to stay.
pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let with_files = params.flag(&["deleteFiles", "delete_files"])?.unwrap_or(true);
    let agent = own(caller, params).await?.agent;
    if with_files {
        for file in caller.read(ListAgentFiles(agent.clone())).await? {
            let put = PutAgentFile { agent: agent.clone(), name: file.name, bytes: None };
            caller.read(put).await?;
        }
    }
    caller.read(RetireAgent(agent.clone())).await?;
    Ok(json!({"ok": true, "agentId": &*agent, "removedBindings": 0}))
}

/// Where an agent reads a file of its own, with its key: by its id, or by its UUID where its id is a part of other paths.
pub(crate) const PAGE: &str = "/api/agents/{id}/files/{name}";
/// With which its paths begin.
pub(crate) const PATH: &str = "/api/agents/*/files/";

pub(crate) async fn page(
    State(shared): State<Arc<OnceLock<Arc<Shared>>>>,
    Path((id, name)): Path<(String, String)>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Response {
    let Some(shared) = shared.get() else {
        let no = No::unavailable("the node is starting; try again in a moment");
        return crate::v1::refused(StatusCode::SERVICE_UNAVAILABLE, &no);
    };
    let address = shared.desk.client(peer, &headers).address;
    if let Err(no) = shared.count_request(address) {
        return crate::v1::refused(StatusCode::TOO_MANY_REQUESTS, &no);
    }
    match read_page(shared, &id, &name, &headers).await {
        Ok(bytes) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response(),
        Err((status, no)) => crate::v1::refused(status, &no),
    }
}

async fn read_page(
    shared: &Shared,
    id: &str,
    name: &str,
    headers: &HeaderMap,
) -> Result<Vec<u8>, (StatusCode, No)> {
    let missing = || (StatusCode::NOT_FOUND, No::not_found(format!("file not found: {name}")));
    let key = crate::v1::bearer(headers).map(Secret::new);
    let no_key = || (StatusCode::UNAUTHORIZED, No::unauthorized("a valid key is required"));
    let holder = shared.desk.holder(key.ok_or_else(no_key)?).await.map_err(|_| no_key())?;
    let ask = |get| shared.desk.ask(&holder, get);
    let get = |agent: &str| GetAgentFile { agent: agent.into(), name: name.to_owned() };
    let mut found = ask(get(id)).await;
    if let Ok(None) = found {
        let own = shared.desk.ask(&holder, ListAgents { room: None }).await.unwrap_or_default();
        if let Some(view) = own.iter().find(|view| uuid_of(&view.agent) == id) {
            found = ask(get(&view.agent)).await;
        }
    }
    match found {
        Ok(Some(FoundAgentFile { bytes: Some(bytes), .. })) => Ok(bytes),
        Ok(Some(FoundAgentFile { bytes: None, .. })) => {
            let text = "the file has not come to this node yet; it is asked for";
            Err((StatusCode::SERVICE_UNAVAILABLE, No::unavailable(text)))
        }
        Ok(None) => Err(missing()),
        Err(refusal) => {
            let no = No::from(refusal);
            Err((crate::v1::status_of(no.code), no))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_identity_are_fields_of_a_profile() {
        let text = "# Identity\nName: Alice\n- **Emoji:** 🦀\nAvatar:\nnot Name: Bob\nName: Alix";
        let expect = [
            (Field::Emoji, Some("🦀".to_owned())),
            (Field::Avatar, None),
            (Field::Name, Some("Alix".to_owned())),
        ];
        assert_eq!(identity(text), expect);
        assert!(identity("nothing here").is_empty());
    }
}

//! `teams.workspace.*`: the files of a room.

use bridge::seam::{
    answer::FoundFile,
    call::{GetFile, ListFiles, PutFile, RemoveFile},
};
use mesh::{
    api::command::{Encryption, RoomView},
    limits::FILE_BYTES_MAX,
    records::files::{FileView, NewFile, check_path},
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    outcome::{No, Outcome},
    params::{Names, Params, TEAM},
    teams::owned,
    times,
};

const FILE: &Names = &["file_name", "path", "fileName"];
/// Characters of a file in one answer.
const SHOWN_CHARS: usize = 500_000;

fn row(file: &FileView) -> Value {
    json!({
        "name": file.path.rsplit('/').next().unwrap_or_default(),
        "path": file.path,
        "size": file.length,
        "chat_id": "",
        "updated_at": times::text(file.at_ms),
    })
}

/// The path that is named, if there may be such a file.
fn path(params: &Params) -> Result<String, No> {
    let path = params.required(FILE)?;
    check_path(&path).map_err(|_| No::invalid("invalid path"))?;
    Ok(path)
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let files = caller.read(ListFiles(room.room)).await?;
    let rows: Vec<Value> = files.iter().map(row).collect();
    Ok(json!({"count": rows.len(), "files": rows}))
}

async fn found(caller: &Caller, room: &RoomView, path: &str) -> Result<FoundFile, No> {
    let call = GetFile { room: room.room, path: path.to_owned() };
    let found = caller.read(call).await?;
    found.ok_or_else(|| No::not_found(format!("file not found: {path}")))
}

pub(crate) async fn read(caller: &Caller, params: &Params) -> Outcome {
    let path = path(params)?;
    let room = caller.team(params, TEAM).await?;
    let FoundFile { view, bytes } = found(caller, &room, &path).await?;
    let bytes = bytes.ok_or_else(|| {
        No::unavailable("the file has not come to this node yet; it is asked for")
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| No::invalid(format!("{path} is no text: read it over HTTP")))?;
    let cut = text.char_indices().nth(SHOWN_CHARS).map(|(at, _)| at);
    let content = cut.and_then(|at| text.get(..at)).unwrap_or(&text);
    let mut result = json!({"file": row(&view), "content": content});
    if cut.is_some() {
        result["truncated"] = json!(true);
    }
    Ok(result)
}

pub(crate) async fn write(caller: &Caller, params: &Params) -> Outcome {
    let (path, text) = (path(params)?, params.text(&["content"])?);
    let bytes = text.ok_or_else(|| No::invalid("content is required"))?.into_bytes();
    if bytes.len() > FILE_BYTES_MAX {
        return Err(No::invalid(format!("content must have at most {FILE_BYTES_MAX} bytes")));
    }
    let room = caller.team(params, TEAM).await?;
    owned(caller, &room)?;
    let file = NewFile { path: path.clone(), media: Some("text/plain".to_owned()), bytes };
    let agent = Some(caller.principal.clone());
    let put = PutFile { room: room.room, agent, file, encryption: Encryption::None };
    caller.act(&caller.speaker(), put).await?;
    let FoundFile { view, .. } = found(caller, &room, &path).await?;
    Ok(json!({"file": row(&view)}))
}

pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    let path = path(params)?;
    let room = caller.team(params, TEAM).await?;
    owned(caller, &room)?;
    found(caller, &room, &path).await?;
    let agent = Some(caller.principal.clone());
    caller.act(&caller.speaker(), RemoveFile { room: room.room, agent, path }).await?;
    Ok(json!({"deleted": true}))
}

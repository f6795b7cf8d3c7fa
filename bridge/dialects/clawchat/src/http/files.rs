//! `/api/rooms/{id}/files`: files of rooms, for holders of a key.

use axum::{
    Json,
    body::to_bytes,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bridge::{
    read::Visitor,
    seam::{
        answer::{FoundFile, FoundReplaced},
        call::{GetFile, GetReplaced, ListFiles, ListReplaced, PutFile, RemoveFile},
        refusal::Refusal,
    },
};
use mesh::{
    api::command::{Encryption, Refused},
    limits::{FILE_BYTES_MAX, REPLACED_STATES_MAX},
    name::id::{AgentId, RoomId},
    records::files::NewFile,
};
use protocol::{
    code::Code,
    object::{File, ReplacedFile},
};
use serde::Serialize;
use tokio::time::timeout;

use super::{Failed, Web};
use crate::{codes::Problem, encode, encrypted::is_blob, limits::FILE_ASKED_AGAIN_SECS};

/// The header that names the agent in whose name a file is written, or a direct room is read.
pub(super) const AGENT_HEADER: &str = "x-clawmesh-agent";

/// A file's type as long as its writer says none.
const UNTYPED: HeaderValue = HeaderValue::from_static("application/octet-stream");

#[derive(Serialize)]
pub(super) struct Files {
    files: Vec<File>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Vec<ReplacedFile>>,
}

/// Room and path of a request. The path is the rest of the address, with its percent signs decoded.
type Named = Result<Path<(String, String)>, PathRejection>;

struct Place {
    room: RoomId,
    path: String,
}

impl Web {
    /// The key comes first: nobody without one learns which rooms there are.
    async fn place(&self, headers: &HeaderMap, named: Named) -> Result<(Visitor, Place), Failed> {
        let holder = self.holder(headers).await?.named(agent(headers)?);
        let text = "`path` must be valid UTF-8 when its percent signs are decoded";
        let Path((room, path)) = named.map_err(|_| Problem::invalid(text))?;
        Ok((holder, Place { room: self.voice.room(&room)?, path }))
    }
}

pub(super) async fn list(
    State(web): State<Web>,
    Path(room): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Json<Files>, Failed> {
    let holder = web.holder(&headers).await?.named(agent(&headers)?);
    let room = web.voice.room(&room)?;
    let mut replaced = None;
    if wants_replaced(query.as_deref().unwrap_or_default())? {
        let states = web.desk.ask(&holder, ListReplaced(room)).await?;
        replaced = Some(states.iter().map(encode::replaced_file).collect());
    }
    let files = web.desk.ask(&holder, ListFiles(room)).await?;
    Ok(Json(Files { files: files.iter().map(encode::file).collect(), replaced }))
}

/// Whether states that newer ones have replaced are to be listed, too: then other nodes are asked for theirs.
fn wants_replaced(query: &str) -> Result<bool, Problem> {
    let said = query.split('&').find_map(|part| part.strip_prefix("replaced="));
    match said {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::invalid("`replaced` must be true or false")),
    }
}

/// A file, or, where there is none of this path, the state of one that a newer one has replaced: `PATH.1` and so on.
async fn found(
    web: &Web,
    holder: &Visitor,
    Place { room, path }: Place,
) -> Result<FoundFile, Failed> {
    if let Some(found) = web.desk.ask(holder, GetFile { room, path: path.clone() }).await? {
        return Ok(found);
    }
    let none = || Refusal::Mesh(Refused::NoFile);
    let (path, nth) = path.rsplit_once('.').ok_or_else(none)?;
    let nth: usize = nth.parse().map_err(|_| none())?;
    if path.is_empty() || !(1..=REPLACED_STATES_MAX).contains(&nth) {
        return Err(none().into());
    }
    let wanted = GetReplaced { room, path: path.to_owned(), nth };
    let FoundReplaced { file, bytes } = web.desk.ask(holder, wanted).await?.ok_or_else(none)?;
    let failed = || Failed::new(StatusCode::SERVICE_UNAVAILABLE, Code::InternalError, NOT_KEPT);
    Ok(FoundFile { view: file.view, bytes: Some(bytes.ok_or_else(failed)?) })
}

pub(super) async fn get(
    State(web): State<Web>,
    named: Named,
    headers: HeaderMap,
) -> Result<Response, Failed> {
    let (holder, place) = web.place(&headers, named).await?;
    let FoundFile { view, bytes } = found(&web, &holder, place).await?;
    let Some(bytes) = bytes else {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let failed = Failed::new(status, Code::InternalError, NOT_YET);
        return Err(Failed { retry_after_secs: Some(FILE_ASKED_AGAIN_SECS), ..failed });
    };
    let media = view.media.as_deref().and_then(|media| HeaderValue::from_str(media).ok());
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media.unwrap_or(UNTYPED));
    // It is some agent's: a browser is to keep it, not to run it under this node's name.
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(agent) = view.by.as_deref().and_then(|by| HeaderValue::from_str(by).ok()) {
        headers.insert(AGENT_HEADER, agent);
    }
    Ok(response)
}

pub(super) async fn put(
    State(web): State<Web>,
    named: Named,
    request: Request,
) -> Result<StatusCode, Failed> {
    let headers = request.headers().clone();
    let (holder, Place { room, path }) = web.place(&headers, named).await?;
    let (agent, media) = (agent(&headers)?, text(&headers, header::CONTENT_TYPE.as_str())?);
    let bytes = timeout(
        web.desk.config().http_request_within,
        to_bytes(request.into_body(), FILE_BYTES_MAX),
    );
    let bytes = bytes.await.map_err(|_| {
        let text = "the body did not come in time";
        Failed::new(StatusCode::REQUEST_TIMEOUT, Code::InvalidPayload, text)
    })?;
    let bytes = bytes.map_err(|_| {
        let text = format!("a file has at most {FILE_BYTES_MAX} bytes; or the body is incomplete");
        Failed::new(StatusCode::PAYLOAD_TOO_LARGE, Code::MessageTooLarge, &text)
    })?;
    let file = NewFile { path, media, bytes: bytes.to_vec() };
    let encryption = encryption(&file.bytes);
    web.desk.ask(&holder, PutFile { room, agent, file, encryption }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn delete(
    State(web): State<Web>,
    named: Named,
    headers: HeaderMap,
) -> Result<StatusCode, Failed> {
    let (holder, Place { room, path }) = web.place(&headers, named).await?;
    let agent = agent(&headers)?;
    web.desk.ask(&holder, RemoveFile { room, agent, path }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How a client has sealed these bytes, as far as can be seen.
pub(crate) fn encryption(bytes: &[u8]) -> Encryption {
    let is_sealed = std::str::from_utf8(bytes).is_ok_and(is_blob);
    if is_sealed { Encryption::EndToEnd } else { Encryption::None }
}

fn agent(headers: &HeaderMap) -> Result<Option<AgentId>, Failed> {
    Ok(text(headers, AGENT_HEADER)?.map(AgentId::from))
}

fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Failed> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| {
        Problem::invalid(format!("the header {name} must be visible ASCII characters"))
    })?;
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

const NOT_KEPT: &str = "the state is known, but no node that could be asked has its content: the side of the split that wrote it may still be away";
const NOT_YET: &str = "the file is known, but its content has not come to this node yet; ask again";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::NO_FILE;

    #[test]
    fn only_a_blob_counts_as_sealed_by_a_client() {
        assert_eq!(encryption(b"clw1:AAAA"), Encryption::EndToEnd);
        assert_eq!(encryption(b"hello"), Encryption::None);
        assert_eq!(encryption(b"clw1:\xff"), Encryption::None);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_found_over_http() {
        let failed = Failed::from(Refusal::Mesh(Refused::NoFile));
        assert_eq!(
            (failed.status, failed.problem.message.as_str()),
            (StatusCode::NOT_FOUND, NO_FILE)
        );
    }
}

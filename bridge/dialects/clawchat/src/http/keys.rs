//! `POST /api/keys`: a key of the free tier, shown once.

use axum::{
    Json,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bridge::read::Peer;
use protocol::code::Code;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{Failed, Web};
use crate::{codes::Problem, limits::HTTP_BODY_BYTES_MAX};

/// The header that the operator's secret is shown in.
pub(super) const ADMIN_HEADER: &str = "x-clawchat-admin";

#[derive(Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    label: Option<String>,
}

#[derive(Serialize)]
struct Made<'a> {
    api_key: &'a str,
    tier: &'static str,
}

pub(super) async fn make(
    State(web): State<Web>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Result<Response, Failed> {
    let headers = request.headers();
    let applicant = web.desk.applicant(admin(headers), peer, headers)?;
    let within = web.desk.config().http_request_within;
    let wanted = timeout(within, wanted(request)).await.unwrap_or_else(|_| {
        let text = "the body did not come in time";
        Err(Failed::new(StatusCode::REQUEST_TIMEOUT, Code::InvalidPayload, text))
    })?;
    let key = web.desk.make_key(applicant, wanted.label).await?;
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let made = Json(Made { api_key: key.expose(), tier: "free" });
    Ok((StatusCode::CREATED, no_store, made).into_response())
}

fn admin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ADMIN_HEADER).and_then(|secret| secret.to_str().ok())
}

async fn wanted(request: Request) -> Result<Wanted, Failed> {
    let body = to_bytes(request.into_body(), HTTP_BODY_BYTES_MAX).await;
    let body = body.map_err(|_| {
        let text = "the body is too large or incomplete";
        Failed::new(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidPayload, text)
    })?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Wanted::default());
    }
    let wanted: Option<Wanted> = serde_json::from_slice(&body).ok();
    // An array would do for the reader, too.
    let wanted = wanted.filter(|_| body.trim_ascii_start().starts_with(b"{")).ok_or_else(|| {
        Problem::invalid("the body must be a JSON object; `label`, if any, must be a string")
    })?;
    let max = mesh::limits::KEY_LABEL_BYTES_MAX;
    let label = wanted.label.as_deref().unwrap_or_default();
    if label.len() > max || label.chars().any(char::is_control) {
        let text = format!("`label` must have at most {max} bytes and no control characters");
        return Err(Problem::invalid(text).into());
    }
    Ok(wanted)
}

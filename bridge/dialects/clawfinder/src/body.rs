//! The body of a request: of a size, of a type, and within a time.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::{
    limits::DRAINED_BYTES_MAX,
    problem::{Answer, Problem},
};

/// Reads it.
///
/// # Errors
/// It is too large, not complete in time, or no JSON by its header.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    (within, most): (Duration, usize),
) -> Answer<Vec<u8>> {
    let read = timeout(within, collect(body, most)).await;
    let text = "the body did not come in time; send it again";
    let read = read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, text))??;
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let media = media.and_then(|media| media.split(';').next()).map(str::trim);
    if !media.is_some_and(|media| media.eq_ignore_ascii_case("application/json")) {
        let text = "send the body as content-type application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    Ok(read)
}

async fn collect(mut body: Body, most: usize) -> Answer<Vec<u8>> {
    let (mut kept, mut came) = (Vec::new(), 0usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "the body ended before it was complete")
        })?;
        let data: Bytes = frame.into_data().unwrap_or_default();
        came = came.saturating_add(data.len());
        if came <= most {
            kept.extend_from_slice(&data);
        } else if came > DRAINED_BYTES_MAX {
            break;
        }
    }
    if came > most {
        let text = format!("the body has more than {most} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    Ok(kept)
}

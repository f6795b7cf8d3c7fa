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

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        pin::Pin,
        task::{Context, Poll},
    };

    use axum::{http::HeaderValue, response::IntoResponse as _};
    use hyper::body::Frame;

    use super::*;
    use crate::limits::STRANGERS_BODY_WITHIN;

    /// A client that has sent all but the end of a body, and sends no more.
    struct Stalled(Option<Bytes>);

    impl hyper::body::Body for Stalled {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.take().map_or(Poll::Pending, |data| Poll::Ready(Some(Ok(Frame::data(data)))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_waited_for_no_longer_than_its_time() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bounds = (STRANGERS_BODY_WITHIN, 100);
        let whole = read(&headers, Body::from("{}"), bounds).await;
        assert_eq!(whole.unwrap_or_default(), b"{}");
        let began = tokio::time::Instant::now();
        let stalled = Body::new(Stalled(Some(Bytes::from_static(b"{"))));
        let refused = read(&headers, stalled, bounds).await.err().map(|it| it.into_response());
        let status = refused.map(|response| response.status());
        assert_eq!(status, Some(StatusCode::REQUEST_TIMEOUT));
        assert_eq!(began.elapsed(), STRANGERS_BODY_WITHIN);
    }
}

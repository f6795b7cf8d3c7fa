//! HTTP: `/ws`, health, `/metrics`, and the pages of dialects.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Extension, Router,
    extract::{ConnectInfo, Request, State, WebSocketUpgrade},
    http::{HeaderMap, StatusCode},
    middleware,
    response::Response,
    routing::get,
};

use super::{
    connection::{self, Shared},
    transport::{Share, Texts},
};
use crate::{counters::Transport, limits, read::Peer};

mod guard;
pub(crate) mod listener;
pub mod metrics;
mod sites;
pub mod tls;

use guard::Guard;
use listener::{Listener, Stranger};
pub(crate) use sites::{SamePaths, Sites};

#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
}

/// The pages of all dialects.
///
/// # Errors
/// Two dialects want the same paths.
pub(crate) fn sites(shared: &Shared) -> Result<Arc<Sites>, SamePaths> {
    // The last dialect comes last, for its form is that of paths without an owner.
    let Shared { dialects, desk, .. } = shared;
    Ok(Arc::new(Sites::new(dialects.sites(desk), dialects.annexes(desk))?))
}

/// Serves until `shutdown`.
pub(crate) async fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    sites: Arc<Sites>,
    ready: Arc<AtomicBool>,
    shutdown: impl Future<Output = ()>,
) {
    let guard = Arc::new(Guard { config: shared.config.clone(), sites: sites.clone() });
    let router = Router::new()
        .route("/ws", get(websocket))
        .route("/healthz", get(async || StatusCode::OK))
        .route("/readyz", get(readiness))
        .route(metrics::PATH, get(numbers))
        .with_state(Web { shared, ready })
        .fallback(async move |request: Request| sites.answer(request).await)
        .layer(middleware::from_fn_with_state(guard, guard::check));
    listener.serve(router, shutdown).await;
}

/// Web pages come no further than [`guard::check`] unless they are allowed.
async fn websocket(
    State(web): State<Web>,
    Extension(stranger): Extension<Stranger>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    ws: WebSocketUpgrade,
) -> Response {
    stranger.watch();
    let client = Some(web.shared.desk.network(peer, &headers));
    let from = connection::From { transport: Transport::WebSocket, client };
    ws.max_message_size(limits::FRAME_BYTES_MAX)
        .max_frame_size(limits::FRAME_BYTES_MAX)
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .write_buffer_size(limits::WRITE_BYTES)
        .on_upgrade(async move |socket| {
            let share = Share::of(web.shared.ration.clone());
            let (texts, sink) = Texts::split(socket, stranger, share);
            connection::serve(web.shared, from, texts, sink).await;
        })
}

async fn numbers(State(web): State<Web>) -> Response {
    metrics::show(web.shared.metrics.get()).await
}

async fn readiness(State(web): State<Web>) -> StatusCode {
    if web.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

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
    extract::{State, WebSocketUpgrade},
    http::StatusCode,
    middleware,
    response::Response,
    routing::get,
};

use super::{
    connection::{self, Shared},
    transport::{Share, Texts},
};
use crate::{counters::Transport, limits};

mod guard;
pub(crate) mod listener;
pub mod metrics;

use guard::Guard;
use listener::{Listener, Stranger};

#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
}

/// Serves until `shutdown`.
pub(crate) async fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
    shutdown: impl Future<Output = ()>,
) {
    let sites = shared.dialects.sites(&shared.desk);
    let guard = Arc::new(Guard::new(shared.config.clone(), &sites));
    let mut router = Router::new()
        .route("/ws", get(websocket))
        .route("/healthz", get(async || StatusCode::OK))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics::show))
        .with_state(Web { shared, ready });
    for site in sites {
        router = router.merge(site.router);
    }
    let router = router.layer(middleware::from_fn_with_state(guard, guard::check));
    listener.serve(router, shutdown).await;
}

/// Web pages come no further than [`guard::check`] unless they are allowed.
async fn websocket(
    State(web): State<Web>,
    Extension(stranger): Extension<Stranger>,
    ws: WebSocketUpgrade,
) -> Response {
    stranger.watch();
    ws.max_message_size(limits::LINE_BYTES_MAX)
        .max_frame_size(limits::LINE_BYTES_MAX)
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .write_buffer_size(limits::WRITE_BYTES)
        .on_upgrade(async move |socket| {
            let share = Share::of(web.shared.ration.clone());
            let (texts, sink) = Texts::split(socket, stranger, share);
            connection::serve(web.shared, Transport::WebSocket, texts, sink).await;
        })
}

async fn readiness(State(web): State<Web>) -> StatusCode {
    if web.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

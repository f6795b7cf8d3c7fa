//! `/metrics`: a page that the node writes, for Prometheus. There are counts and no names in it, so that no key
//! is asked for, as for `/api/status`.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

/// Where it is.
pub(super) const PATH: &str = "/metrics";
/// The form that Prometheus reads.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

type Written = Pin<Box<dyn Future<Output = String> + Send>>;

/// Writes the page, each time that it is asked for.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> Written + Send + Sync>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(…)")
    }
}

impl Metrics {
    /// `write` makes the page, in the text format of Prometheus.
    pub fn new<F>(write: impl Fn() -> F + Send + Sync + 'static) -> Metrics
    where
        F: Future<Output = String> + Send + 'static,
    {
        Metrics(Arc::new(move || Box::pin(write())))
    }
}

/// The page, if there is one.
pub(super) async fn show(page: Option<&Metrics>) -> Response {
    match page {
        Some(Metrics(write)) => ([(header::CONTENT_TYPE, TEXT)], write().await).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

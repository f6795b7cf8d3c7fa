//! `GET /health`: the one page of this dialect, for programs that look whether a node is there.

use axum::{
    Router,
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bridge::dialect::{Intrusion, Site};

const PATH: &str = "/health";

pub(crate) fn site() -> Site {
    let missing = async || StatusCode::NOT_FOUND;
    Site {
        router: Router::new().route(PATH, get(health)).fallback(missing),
        paths: &[PATH],
        methods: &["GET"],
        // It tells nothing of this node.
        checks_names: |_: &Method| false,
        headers: &[],
        refuse,
    }
}

async fn health() -> Response {
    let body = r#"{"status":"ok","protocol":3}"#;
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn refuse(_: Intrusion) -> Response {
    StatusCode::FORBIDDEN.into_response()
}

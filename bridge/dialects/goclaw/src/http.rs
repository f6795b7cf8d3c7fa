//! The pages of this dialect: `GET /health`, for programs that look whether a node is there, `/v1`, its methods, and files of
//! agents.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bridge::dialect::{Intrusion, Site};

use crate::{files, outcome::No, shared::Shared, v1};

const HEALTH: &str = "/health";

pub(crate) fn site(shared: Arc<OnceLock<Arc<Shared>>>) -> Site {
    Site {
        router: Router::new()
            .route(HEALTH, get(health))
            .route(files::PAGE, get(files::page).with_state(shared.clone()))
            .merge(v1::router(shared)),
        paths: &[HEALTH, v1::PATH, files::PATH],
        methods: &["GET", "POST", "PUT", "PATCH", "DELETE"],
        // That page tells nothing of this node.
        checks_names: |path, _| path != HEALTH,
        headers: &["authorization"],
        refuse,
    }
}

async fn health() -> Response {
    let body = r#"{"status":"ok","protocol":3}"#;
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn refuse(why: Intrusion) -> Response {
    let text = match why {
        Intrusion::Origin => "web pages of this origin may not ask; allow it with --http-origin",
        Intrusion::Name => {
            "this node does not answer under that name; use its address, or start it with --http-host NAME"
        }
    };
    v1::refused(StatusCode::FORBIDDEN, &No::unauthorized(text))
}

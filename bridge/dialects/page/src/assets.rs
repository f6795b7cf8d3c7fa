//! The style and the script of the pages: in the program, and nowhere else.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// A browser asks again after so long: a node that was updated shows its own at once, or nearly.
const KEPT: &str = "max-age=60";

pub(crate) async fn style() -> Response {
    kept("text/css; charset=utf-8", STYLE)
}

pub(crate) async fn script() -> Response {
    kept("text/javascript; charset=utf-8", SCRIPT)
}

fn kept(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, KEPT)], text).into_response()
}

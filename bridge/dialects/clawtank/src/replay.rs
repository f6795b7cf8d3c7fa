//! `GET /api/rooms/ROOM/replay`: all that happened in a room, as one file, written as it is read.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bridge::replay::Wish;
use serde_json::Value;

use crate::{fields::At, problem::Problem, rooms, state::Context};

/// Who shows no key is given what those see who look on.
pub(crate) async fn file(cx: &Context, named: &str, query: &At<'_>) -> Result<Response, Problem> {
    let says = |name: &str| query.get(name).value() == Some(&Value::String("true".to_owned()));
    let public = !cx.member.shows_key || says("public");
    let wish = Wish { thinking: says("include_thinking"), public };
    let room = rooms::named(cx, named).await?;
    let body = cx.shared.desk.replay_file(&cx.member.holder, (room, wish)).await?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((StatusCode::OK, kind, body).into_response())
}

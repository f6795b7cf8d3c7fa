//! `POST /tools/invoke`: one tool, without a protocol around it.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{Refused, Web, failed, is_json, only_post, refused};
use crate::{outcome::NoAgent, server::status_of, tools};

/// Names that are taken and do nothing here.
const IGNORED: [&str; 3] = ["action", "sessionKey", "dryRun"];

pub(super) async fn invoke(State(web): State<Web>, request: Request) -> Response {
    invoked(&web, request).await.unwrap_or_else(|refused| *refused)
}

async fn invoked(web: &Web, request: Request) -> Result<Response, Refused> {
    only_post(request.method())?;
    let (parts, body) = request.into_parts();
    // The key first: what a stranger sends is not read.
    let asking = web.asking(&parts, None).await?;
    is_json(&parts.headers)?;
    let body = web.body(body).await?;
    let body: Option<Map<String, Value>> = serde_json::from_slice(&body).ok();
    let mut body = body.ok_or_else(|| invalid("the body must be a JSON object"))?;
    let agent = match body.get("agentId") {
        None | Some(Value::Null) => None,
        Some(Value::String(agent)) => Some(agent.clone()),
        Some(_) => return Err(invalid("`agentId` must be a string")),
    };
    let asking = match agent {
        Some(agent) => web.asking(&parts, Some(agent)).await?,
        None => asking,
    };
    let name = match body.get("tool") {
        Some(Value::String(name)) => name.clone(),
        _ => return Err(invalid("`tool` must be a string")),
    };
    let mut arguments = match body.remove("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(invalid("`args` must be an object")),
    };
    if let Some(key) = body.remove("idempotencyKey") {
        arguments.insert("idempotencyKey".to_owned(), key);
    }
    let ignored: Vec<&str> = IGNORED.into_iter().filter(|name| body.contains_key(*name)).collect();
    // All that are granted, whatever is offered.
    let asking = asking.with_all_granted();
    let Some(tool) = tools::find_for_program(&asking, &name) else {
        let error = json!({"type": "not_found", "message": format!("Tool not available: {name}")});
        let body = json!({"ok": false, "error": error});
        return Ok((StatusCode::NOT_FOUND, Json(body)).into_response());
    };
    let Some(call) = asking.call() else {
        let text = "too many calls of this agent have no answer yet; wait for one";
        return Err(refused(StatusCode::TOO_MANY_REQUESTS, "rate_limited", text));
    };
    let ended = tools::call(&asking, tool, Some(arguments)).await;
    drop(call);
    Ok(match ended {
        Ok((fields, true)) => tool_error(fields["error"].as_str().unwrap_or_default()),
        Ok((fields, false)) => {
            let details = Value::Object(fields);
            let content = json!([{"type": "text", "text": details.to_string()}]);
            let mut body = json!({"ok": true, "result": {"content": content, "details": details}});
            if !ignored.is_empty() {
                body["ignored"] = json!(ignored);
            }
            Json(body).into_response()
        }
        Err((text, why)) => {
            let kind = match why {
                NoAgent::Taken => "forbidden",
                NoAgent::TooMany => "rate_limited",
                NoAgent::NoKey => "unauthorized",
            };
            failed(status_of(why), kind, &text)
        }
    })
}

fn invalid(text: &str) -> Refused {
    let body = json!({"ok": false, "error": {"type": "invalid_request", "message": text}});
    Box::new((StatusCode::BAD_REQUEST, Json(body)).into_response())
}

fn tool_error(text: &str) -> Response {
    let text = if text == "`message` is required" { "message required" } else { text };
    let body = json!({"ok": false, "error": {"type": "tool_error", "message": text}});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

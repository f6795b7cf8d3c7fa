//! `/v1`: the same methods over HTTP, which the command line asks for lists and single things. A request is a method with its
//! parameters in path, query and body; rights and refusals are those of a connection.

use std::sync::{Arc, OnceLock};

use axum::{
    Json, Router,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use bridge::read::Peer;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{
    caller::Caller,
    connect::{Shown, caller_of},
    dispatch::Asked,
    limits::{BODY_BYTES_MAX, PATH_PART_BYTES_MAX},
    methods,
    outcome::{Code, No},
    params::Params,
    shared::Shared,
};

/// With which its paths begin.
pub(crate) const PATH: &str = "/v1";

/// From when the node is there.
type Opened = Arc<OnceLock<Arc<Shared>>>;

/// A route: by which method and path it is asked for, the method that it is, and how its list is called in the result.
struct Route {
    verb: &'static str,
    /// `{…}` is a part of any text, under that name.
    path: &'static [&'static str],
    method: &'static str,
    list: Option<&'static str>,
}

const fn route(
    verb: &'static str,
    path: &'static [&'static str],
    method: &'static str,
    list: Option<&'static str>,
) -> Route {
    Route { verb, path, method, list }
}

const ROUTES: &[Route] = &[
    route("GET", &["agents"], "agents.list", Some("agents")),
    route("POST", &["agents"], "agents.create", None),
    route("GET", &["agents", "{agentId}"], "agent", None),
    route("PUT", &["agents", "{agentId}"], "agents.update", None),
    route("DELETE", &["agents", "{agentId}"], "agents.delete", None),
    route("GET", &["sessions"], "sessions.list", Some("sessions")),
    route("POST", &["sessions", "{key}", "preview"], "sessions.preview", None),
    route("POST", &["sessions", "{key}", "reset"], "sessions.reset", None),
    route("PATCH", &["sessions", "{key}"], "sessions.patch", None),
    route("DELETE", &["sessions", "{key}"], "sessions.delete", None),
    route("GET", &["api-keys"], "api_keys.list", None),
    route("POST", &["api-keys"], "api_keys.create", None),
    route("DELETE", &["api-keys", "{id}"], "api_keys.revoke", None),
    route("GET", &["skills"], "skills.list", Some("skills")),
    route("GET", &["skills", "{name}"], "skills.get", None),
    route("PUT", &["skills", "{name}"], "skills.update", None),
    route("GET", &["usage"], "usage.get", Some("records")),
    route("GET", &["usage", "summary"], "usage.summary", None),
    route("GET", &["delegations"], "delegations.list", Some("records")),
    route("GET", &["delegations", "{id}"], "delegations.get", None),
    route("GET", &["channels", "instances"], "channels.instances.list", Some("instances")),
    route("POST", &["channels", "instances"], "channels.instances.create", None),
    route("GET", &["channels", "instances", "{id}"], "channels.instances.get", None),
    route("PUT", &["channels", "instances", "{id}"], "channels.instances.update", None),
    route("DELETE", &["channels", "instances", "{id}"], "channels.instances.delete", None),
];

/// Why a request is refused: with this status where it is not that of the code.
struct Failed(Option<StatusCode>, No);

impl From<No> for Failed {
    fn from(no: No) -> Failed {
        Failed(None, no)
    }
}

pub(crate) fn router(shared: Opened) -> Router {
    Router::new().fallback(any(answer)).with_state(shared)
}

async fn answer(
    State(shared): State<Opened>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    match asked(&shared, peer, request).await {
        Ok(body) => Json(body).into_response(),
        Err(Failed(status, no)) => refused(status.unwrap_or_else(|| status_of(no.code)), &no),
    }
}

pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::Unauthorized => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::AgentTimeout => StatusCode::GATEWAY_TIMEOUT,
        Code::NotImplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A refusal, in the form of this dialect.
pub(crate) fn refused(status: StatusCode, no: &No) -> Response {
    let body = Json(json!({"ok": false, "error": no.shown()}));
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    if let Some(wait_ms) = no.retry_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1_000).max(1)));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

async fn asked(shared: &Opened, peer: Peer, request: Request) -> Result<Value, Failed> {
    let starting = || No::unavailable("the node is starting; try again in a moment");
    let shared = shared.get().ok_or_else(starting)?.clone();
    let (route, mut params) = routed(request.method(), request.uri().path())?;
    let address = shared.desk.client(peer, request.headers()).address;
    shared.count_request(address)?;
    let token = bearer(request.headers()).ok_or_else(|| {
        let text = "permission denied: show a key: `authorization: Bearer KEY`";
        Failed(Some(StatusCode::UNAUTHORIZED), No::unauthorized(text))
    })?;
    for (name, value) in query(request.uri().query().unwrap_or_default()) {
        params.entry(name).or_insert(value);
    }
    // The body of a client that may not ask is not read.
    let caller = identified(shared.clone(), token, &Params::new(params.clone())).await?;
    let no_method = || No::internal("a route has no method");
    let method = methods::named(route.method).ok_or_else(no_method)?;
    caller.may(method)?;
    let within = shared.desk.config().http_request_within;
    let body = timeout(within, body_of(request)).await;
    let late = || Failed(Some(StatusCode::REQUEST_TIMEOUT), No::invalid("the body came too late"));
    for (name, value) in body.map_err(|_| late())?? {
        params.entry(name).or_insert(value);
    }
    // It has no connection that could be told of anything.
    let asked = Asked { caller, client: u64::MAX, method, params: Params::new(params) };
    Ok(shown(asked.outcome().await?, route.list))
}

async fn identified(
    shared: Arc<Shared>,
    token: String,
    params: &Params,
) -> Result<Arc<Caller>, Failed> {
    let unknown = |no: No| {
        let is_denied = no.code == Code::Unauthorized;
        Failed(is_denied.then_some(StatusCode::UNAUTHORIZED), no)
    };
    let shown = Shown::bearer(token, params)?;
    let caller = caller_of(shared, shown).await.map_err(unknown)?;
    caller.ok_or_else(|| unknown(No::unauthorized("permission denied: no key was shown")))
}

/// The route of a request, and the parameters in its path.
fn routed(verb: &Method, path: &str) -> Result<(&'static Route, Map<String, Value>), No> {
    let missing = || No::not_found(format!("no such page: {} {PATH}…", verb.as_str()));
    let rest = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    let parts: Vec<String> = rest
        .ok_or_else(missing)?
        .trim_end_matches('/')
        .split('/')
        .map(decoded)
        .collect::<Option<_>>()
        .ok_or_else(|| No::invalid("the path is not encoded as UTF-8"))?;
    let route = ROUTES.iter().find(|route| {
        let fits = |(part, of): (&String, &&str)| of.starts_with('{') || part == of;
        route.verb == verb.as_str()
            && route.path.len() == parts.len()
            && parts.iter().zip(route.path).all(fits)
    });
    let route = route.ok_or_else(missing)?;
    let named = route.path.iter().zip(parts).filter_map(|(of, part)| {
        let name = of.strip_prefix('{')?.strip_suffix('}')?;
        Some((name.to_owned(), Value::String(part)))
    });
    Ok((route, named.collect()))
}

/// A text in which bytes are written as `%XX`. `None`: it is no UTF-8, or too long.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok().filter(|text| text.len() <= PATH_PART_BYTES_MAX)
}

/// The parameters of a query. Whole numbers and truth values are such.
fn query(query: &str) -> impl Iterator<Item = (String, Value)> {
    query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (decoded(name)?, decoded(&value.replace('+', " "))?);
        let value = match &*value {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => match text.parse::<u64>() {
                Ok(number) => Value::from(number),
                Err(_) => Value::String(value),
            },
        };
        Some((name, value))
    })
}

async fn body_of(request: Request) -> Result<Map<String, Value>, Failed> {
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await.map_err(|_| {
        let text = format!("a body has at most {BODY_BYTES_MAX} bytes, and comes whole");
        Failed(Some(StatusCode::PAYLOAD_TOO_LARGE), No::invalid(text))
    })?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    let body = serde_json::from_slice(&body);
    Ok(body.map_err(|_| No::invalid("the body must be a JSON object"))?)
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<String> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = shown.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// A result: whole or its list under `payload`, and its fields beside.
fn shown(result: Value, list: Option<&str>) -> Value {
    let payload = list.and_then(|list| result.get(list)).unwrap_or(&result).clone();
    let mut body = match result {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    body.insert("ok".to_owned(), json!(true));
    body.insert("payload".to_owned(), payload);
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_method_with_parameters() {
        let (route, params) = routed(&Method::POST, "/v1/sessions/agent%3Abob%3Ax/reset").unwrap();
        assert_eq!((route.method, &params["key"]), ("sessions.reset", &json!("agent:bob:x")));
        assert_eq!(routed(&Method::GET, "/v1/usage/summary").unwrap().0.method, "usage.summary");
        for path in ["/v1", "/v1/", "/v1/agents/a/b/c", "/v1/none", "/v1x/agents"] {
            assert!(routed(&Method::GET, path).is_err(), "{path}");
        }
        assert!(routed(&Method::GET, "/v1/agents/%FF").is_err());
        assert!(routed(&Method::GET, "/v1/agents/%4").is_err());
        let found: Vec<_> = query("limit=5&agentId=a%20b+c&x&includePrincipals=true").collect();
        let text = |name: &str, value| (name.to_owned(), value);
        let expect = [
            text("limit", json!(5)),
            text("agentId", json!("a b c")),
            text("includePrincipals", json!(true)),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn each_route_is_a_method_of_the_table() {
        assert!(ROUTES.iter().all(|route| methods::named(route.method).is_some()));
    }
}

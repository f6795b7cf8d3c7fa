//! A request's way in: who asks, whether the body can be read, and what `rmcp` makes of it.

use std::sync::{Arc, OnceLock};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::any,
};
use bridge::{
    config::Auth,
    dialect::{Intrusion, Site},
    read::{Credential, Visitor},
    secret::Secret,
};
use bytes::Bytes;
use mesh::{
    limits::AGENT_ID_BYTES_MAX,
    name::agent::{DRAWN_BYTES, drawn},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    asking::{Asking, Shared},
    divided::{self, Divided},
    grants,
    groups::Groups,
    keys::agent_of,
    limits::BODY_BYTES_MAX,
    listen::{self, Listening},
    outcome::{No, NoAgent},
    server::{Server, status_of},
};

mod invoke;

const AGENT: &str = "x-clawmesh-agent";
const NAME: &str = "x-clawmesh-name";
/// Part of the id of an agent that names none: as many hexadecimal digits as an agent draws bytes, twice.
const DRAW: &str = "x-clawmesh-draw";
const CAPABILITIES: &str = "x-clawmesh-capabilities";

type Service = StreamableHttpService<Server, NeverSessionManager>;

#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    service: Service,
}

pub(crate) fn site(shared: Arc<Shared>) -> Site {
    // The bridge's guard has judged `Origin` and `Host`, and this module the size of the body.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(BODY_BYTES_MAX);
    let service = Service::new(|| Ok(Server::default()), Arc::default(), config);
    let router = Router::new()
        .route("/mcp", any(unnamed))
        .route("/mcp/{agent}", any(named))
        .route("/tools/invoke", any(invoke::invoke))
        .with_state(Web { shared, service })
        .fallback(async || StatusCode::NOT_FOUND);
    Site {
        router,
        paths: &["/mcp", "/tools/invoke"],
        methods: &["POST"],
        checks_names: |_, _| true,
        headers: &[
            "authorization",
            "accept",
            "mcp-protocol-version",
            "mcp-method",
            "mcp-name",
            AGENT,
            NAME,
            DRAW,
            CAPABILITIES,
        ],
        refuse,
    }
}

fn refuse(why: Intrusion) -> Response {
    let text = match why {
        Intrusion::Origin => {
            "web pages of this origin may not ask; allow it with the node's setting http-origin"
        }
        Intrusion::Name => {
            "this node does not answer under that name; ask under its address, or add the name with \
             the node's setting http-host"
        }
    };
    failed(StatusCode::FORBIDDEN, "forbidden", text)
}

/// An answer that is none of the protocol.
fn failed(status: StatusCode, kind: &str, text: &str) -> Response {
    (status, Json(json!({"error": {"type": kind, "message": text}}))).into_response()
}

async fn unnamed(State(web): State<Web>, request: Request) -> Response {
    answer(web, None, request).await
}

async fn named(
    State(web): State<Web>,
    agent: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let Ok(Path(agent)) = agent else {
        let text = "the agent's id in the path must be UTF-8, percent-encoded";
        return failed(StatusCode::BAD_REQUEST, "invalid_request", text);
    };
    answer(web, Some(agent), request).await
}

async fn answer(web: Web, agent: Option<String>, request: Request) -> Response {
    let answered = web.answered(agent, request).await;
    answered.unwrap_or_else(|refused| *refused)
}

/// An answer before the request comes to a method. In a box: it is large, and rare.
type Refused = Box<Response>;

impl Web {
    async fn answered(&self, agent: Option<String>, request: Request) -> Result<Response, Refused> {
        only_post(request.method())?;
        let (mut parts, body) = request.into_parts();
        let asking = Box::pin(self.asking(&parts, agent)).await?;
        let Some(call) = asking.call() else {
            let text = "too many calls of this agent have no answer yet; wait for one";
            return Err(refused(StatusCode::TOO_MANY_REQUESTS, "rate_limited", text));
        };
        is_json(&parts.headers)?;
        accepts(&mut parts.headers)?;
        let body = Box::pin(self.body(body)).await?;
        let mut message = message(&body).map_err(|Unread { status, id, code, text }| {
            let error =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
            Box::new((status, Json(error)).into_response())
        })?;
        let mut body = body;
        if message["method"] == listen::METHOD {
            let listening = Box::pin(Listening::begin(&asking, &mut message)).await;
            let listening = listening.map_err(|no| match no {
                No::Agent { text, why } => refused(status_of(why), "forbidden", &text),
                no @ (No::Argument { .. } | No::Forbidden { .. } | No::Error { .. }) => {
                    refused(StatusCode::TOO_MANY_REQUESTS, "rate_limited", &no.text())
                }
            })?;
            if let Some(listening) = listening {
                parts.extensions.insert(listening);
                body = message.to_string().into();
            }
        }
        let waits = divided::is_for(&message);
        drop(message);
        let status = asking.status.clone();
        parts.extensions.insert(asking.clone());
        // Until the call has ended, also where its answer is a stream.
        parts.extensions.insert(Arc::new(call));
        let mut response = if waits {
            self.divided(parts, body, &asking).await
        } else {
            self.handled(parts, body).await
        };
        if let Some(status) = status.get() {
            *response.status_mut() = *status;
        }
        Ok(response)
    }

    /// What the library makes of a request. Nothing of it is left while an answer is waited for.
    async fn handled(&self, parts: Parts, body: Bytes) -> Response {
        let request = Request::from_parts(parts, Body::from(body));
        Box::pin(self.service.handle(request)).await.map(Body::new)
    }

    /// See [`divided`].
    async fn divided(&self, mut parts: Parts, body: Bytes, asking: &Asking) -> Response {
        let call = Arc::new(OnceLock::new());
        parts.extensions.insert(Divided::Asks(call.clone()));
        let response = self.handled(parts.clone(), body.clone()).await;
        // It was refused, or is answered already.
        let Some((tool, given)) = call.get().cloned() else { return response };
        drop((response, call));
        let answer = Box::pin(Divided::answer(asking, tool, given)).await;
        parts.extensions.insert(answer);
        self.handled(parts, body).await
    }

    /// The key that a request shows, and the agent that it names.
    async fn asking(&self, parts: &Parts, named: Option<String>) -> Result<Asking, Refused> {
        for name in [AGENT, NAME, DRAW, CAPABILITIES] {
            is_ascii(&parts.headers, name)?;
        }
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let shown = self.shown(&parts.headers)?;
        let Credential { holder, key, grant } = self.credential(&shown).await?;
        let named = named.or_else(|| header(AGENT).map(str::to_owned));
        let named = grants::agent(&grant, named);
        let named = named.map_err(|text| refused(StatusCode::FORBIDDEN, "forbidden", &text))?;
        let part = header(DRAW).map(|text| hex(text).ok_or(text)).transpose();
        let part = part.map_err(|text| {
            let text = format!("{DRAW}: {text:?} is not {} hexadecimal digits", 2 * DRAWN_BYTES);
            refused(StatusCode::BAD_REQUEST, "invalid_request", &text)
        })?;
        let drawn = part.map(|part| drawn(part, holder.key()).to_string());
        let agent = named.or(drawn).unwrap_or_else(|| agent_of(holder.key()));
        if agent.is_empty() || agent.len() > AGENT_ID_BYTES_MAX {
            let text = format!("an agent's id has 1 to {AGENT_ID_BYTES_MAX} bytes");
            return Err(refused(StatusCode::BAD_REQUEST, "invalid_request", &text));
        }
        let asked = groups(parts.uri.query().unwrap_or_default());
        let asked = asked.map_err(|name| {
            let text = format!("there is no group of tools {name:?}: {}", Groups::NAMES.join(", "));
            refused(StatusCode::BAD_REQUEST, "invalid_request", &text)
        })?;
        let list = header(CAPABILITIES).unwrap_or_default();
        let capabilities = list.split(',').map(str::trim).filter(|one| !one.is_empty());
        Ok(Asking {
            reader: in_name_of(holder, &agent),
            agent: agent.into(),
            groups: grants::groups(&grant, asked, self.shared.settings.groups),
            shown,
            key,
            name: header(NAME).map(str::to_owned).or_else(|| grant.name.clone()),
            grant: Arc::new(grant),
            capabilities: capabilities.map(str::to_owned).collect(),
            patience: None,
            status: Arc::new(OnceLock::new()),
            shared: self.shared.clone(),
        })
    }

    /// What a request shows to say whose it is.
    fn shown(&self, headers: &HeaderMap) -> Result<Secret, Refused> {
        let shown = match self.shared.desk.config().auth {
            // It is not needed, and one that is shown is ignored.
            Auth::Open => Some(""),
            Auth::Key(_) => bearer(headers),
        };
        Ok(Secret::new(shown.ok_or_else(unauthorized)?))
    }

    async fn credential(&self, shown: &Secret) -> Result<Credential, Refused> {
        self.shared.desk.credential(shown).await.map_err(|refusal| {
            let no = No::from(refusal);
            let is_unknown = matches!(no, No::Agent { why: NoAgent::NoKey, .. });
            if is_unknown { unauthorized() } else { unavailable(no) }
        })
    }

    /// All of a body that is not too large, and comes in time.
    async fn body(&self, body: Body) -> Result<Bytes, Refused> {
        let within = self.shared.desk.config().http_request_within;
        match timeout(within, to_bytes(body, BODY_BYTES_MAX)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(_)) => {
                let text = format!("a request has at most {BODY_BYTES_MAX} bytes");
                Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &text))
            }
            Err(_) => {
                let text = "the body did not come in time";
                Err(refused(StatusCode::REQUEST_TIMEOUT, "invalid_request", text))
            }
        }
    }
}

/// A header that says who asks can be read: else somebody else would be asked for.
fn is_ascii(headers: &HeaderMap, name: &str) -> Result<(), Refused> {
    if headers.get_all(name).iter().all(|value| value.to_str().is_ok()) {
        return Ok(());
    }
    let text = format!("{name} must be ASCII; an agent's id may stand percent-encoded in the path");
    Err(refused(StatusCode::BAD_REQUEST, "invalid_request", &text))
}

fn hex(text: &str) -> Option<[u8; DRAWN_BYTES]> {
    let mut part = [0; DRAWN_BYTES];
    let digits = text.as_bytes();
    if digits.len() != 2 * DRAWN_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, at) in part.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(part)
}

fn in_name_of(holder: Visitor, agent: &str) -> Visitor {
    holder.named(Some(agent.into()))
}

fn refused(status: StatusCode, kind: &str, text: &str) -> Refused {
    Box::new(failed(status, kind, text))
}

fn only_post(method: &Method) -> Result<(), Refused> {
    if *method == Method::POST {
        return Ok(());
    }
    let allow = [(header::ALLOW, HeaderValue::from_static("POST"))];
    Err(Box::new((StatusCode::METHOD_NOT_ALLOWED, allow).into_response()))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn unauthorized() -> Refused {
    let text = "show a key: Authorization: Bearer KEY";
    let mut response = failed(StatusCode::UNAUTHORIZED, "unauthorized", text);
    let bearer = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    Box::new(response)
}

/// The key cannot be looked at.
fn unavailable(no: No) -> Refused {
    refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &no.text())
}

/// The groups of tools that a query asks for; `None`: it does not. An error: a name that there is not.
fn groups(query: &str) -> Result<Option<Groups>, String> {
    let asked = query.split('&').filter_map(|pair| pair.strip_prefix("tools="));
    let names = asked.collect::<Vec<_>>().join(",").replace("%2C", ",").replace("%2c", ",");
    let is_none = names.chars().all(|char| char == ',');
    (!is_none).then(|| Groups::parse(&names)).transpose()
}

fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let text = "send application/json";
    Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported", text))
}

/// A client that says nothing, or takes anything, takes both; one that takes JSON gets that.
fn accepts(headers: &mut HeaderMap) -> Result<(), Refused> {
    let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<&str> = given.flat_map(|value| value.split(',')).collect();
    let takes_json = kinds.is_empty()
        || kinds.iter().any(|kind| {
            let mut parts = kind.split(';');
            let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
            let refuses = parts.any(|part| {
                part.trim().replace(' ', "").starts_with("q=0") && {
                    let weight = part.trim().trim_start_matches("q=");
                    weight.parse::<f32>().is_ok_and(|weight| weight == 0.0)
                }
            });
            !refuses && matches!(&*essence, "*/*" | "application/*" | "application/json")
        });
    if !takes_json {
        let text = "answers are application/json";
        return Err(refused(StatusCode::NOT_ACCEPTABLE, "unsupported", text));
    }
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    Ok(())
}

/// A body that is no message, and how it is answered.
pub(crate) struct Unread {
    status: StatusCode,
    pub(crate) id: Value,
    pub(crate) code: i32,
    pub(crate) text: String,
}

/// One message of JSON-RPC: `rmcp` has answers of its own, without an id, to whatever is not.
pub(crate) fn message(body: &[u8]) -> Result<Value, Unread> {
    let answer = |status: StatusCode, id: &Value, code: i32, text: &str| Unread {
        status,
        id: id.clone(),
        code,
        text: text.to_owned(),
    };
    let wrong = |code, text: &str| answer(StatusCode::BAD_REQUEST, &Value::Null, code, text);
    let message: Value =
        serde_json::from_slice(body).map_err(|_| wrong(-32_700, "this is not JSON"))?;
    if message.is_array() {
        return Err(wrong(-32_600, "batches are not taken: send one message"));
    }
    let (id, method, params) = (&message["id"], &message["method"], &message["params"]);
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    let has_id = message.get("id").is_some();
    if message["jsonrpc"] != "2.0"
        || !(method.is_string() || is_answer)
        || has_id && !(id.is_string() || id.is_i64())
        || !(params.is_object() || params.is_null())
    {
        let text = "this is not a message of JSON-RPC 2.0 as MCP has it";
        return Err(wrong(-32_600, text));
    }
    let arguments = &params["arguments"];
    let is_call = params["name"].is_string() && (arguments.is_object() || arguments.is_null());
    if method == "tools/call" && has_id && !is_call {
        let text = "tools/call has params with a name, and arguments that are an object";
        return Err(answer(StatusCode::OK, id, -32_602, text));
    }
    Ok(message)
}

//! A request's way in: its path, method, key, rate and body, in this order; then it is carried out.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::any,
};
use bridge::{
    dialect::{Intrusion, Site},
    read::Peer,
    secret::Secret,
};
use serde_json::{Value, json};

use crate::{
    agents, body,
    caller::Caller,
    fields::{Fields, Purpose},
    jobs,
    limits::{BODY_BYTES_MAX, BODY_WITHIN, SEND_BODY_BYTES_MAX, STRANGERS_BODY_WITHIN},
    mail::{negotiating, sending, sessions, showing},
    page::Asked,
    problem::{Answer, Problem},
    query::Query,
    rates::Origin,
    registry::Registry,
    resource::Resource,
    reviews, schema, stops,
};

/// The paths of the index. `/api/agents` without more is ClawChat's.
const PATHS: &[&str] = &["/api/agents/", "/api/jobs", "/api/reviews", "/api/schema"];

pub(crate) fn site(registry: Arc<Registry>) -> Site {
    let router = Router::new().fallback(any(answer)).with_state(registry);
    Site {
        router,
        paths: PATHS,
        methods: &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
        checks_names: |_, _| true,
        headers: &["authorization"],
        refuse: |why| refuse(why).into_response(),
    }
}

fn refuse(why: Intrusion) -> Box<Problem> {
    Problem::forbidden(match why {
        Intrusion::Origin => "web pages of this origin may not ask; allow it with --http-origin",
        Intrusion::Name => {
            "this node does not answer under that name; use its address, or start it with --http-host NAME"
        }
    })
}

/// What the id of a mail is made of. Requests of the node itself have it: what comes over HTTP brings no such thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MailNonce(pub(crate) [u8; 16]);

/// A request that has come as far as its resource.
pub(crate) struct Coming {
    pub(crate) parts: Parts,
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) is_secure: bool,
    /// Where its client is.
    pub(crate) origin: Origin,
    /// It came by way of something that says so, and that nobody trusts.
    pub(crate) is_forwarded: bool,
    pub(crate) caller: Option<Caller>,
}

impl Coming {
    /// The account that asks.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn caller(&self) -> Answer<&Caller> {
        self.caller
            .as_ref()
            .ok_or_else(|| Problem::no_account("Authentication credentials were not provided."))
    }

    /// The id that a mail is to have, where the node itself sends it.
    pub(crate) fn mail_nonce(&self) -> Option<MailNonce> {
        self.parts.extensions.get().copied()
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        let Parts { headers, uri, .. } = &self.parts;
        Asked { is_secure: self.is_secure, headers, uri, query: &self.query }
    }
}

/// What is answered if all is well.
pub(crate) enum Done {
    Ok(Value),
    Created(Value),
    Deleted,
}

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        match self {
            Done::Ok(body) => Json(body).into_response(),
            Done::Created(body) => (StatusCode::CREATED, Json(body)).into_response(),
            Done::Deleted => StatusCode::NO_CONTENT.into_response(),
        }
    }
}

async fn answer(
    State(registry): State<Arc<Registry>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let shows_key = request.headers().contains_key(header::AUTHORIZATION);
    let is_private = shows_key || Resource::of(request.uri().path()) == Some(Resource::Register);
    let mut response = match answered(&registry, peer, request).await {
        Ok(done) => done.into_response(),
        Err(problem) => problem.into_response(),
    };
    registry.counts.answered(response.status().as_u16());
    if is_private {
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    }
    response
}

/// A request of the node itself, for an account that it acts for: judged, counted and carried out as one over HTTP.
pub(crate) async fn ask(
    registry: &Arc<Registry>,
    key: Option<&Secret>,
    asked: (Method, &str),
    body: Option<&Value>,
) -> Answer<Value> {
    ask_once(registry, key, asked, (body, None)).await
}

/// The same, of a mail that is not to be sent twice.
pub(crate) async fn ask_once(
    registry: &Arc<Registry>,
    key: Option<&Secret>,
    (method, path): (Method, &str),
    (body, nonce): (Option<&Value>, Option<MailNonce>),
) -> Answer<Value> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(nonce) = nonce {
        request = request.extension(nonce);
    }
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", key.expose()));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    // Paths are encoded: one that is none has no end.
    let request = request.body(body);
    let request = request.map_err(|_| Problem::of_the_whole("an id or a query is too long"))?;
    Ok(match answered(registry, Peer::here(), request).await? {
        Done::Ok(document) | Done::Created(document) => document,
        Done::Deleted => json!({"deleted": true}),
    })
}

async fn answered(registry: &Arc<Registry>, peer: Peer, request: Request) -> Answer<Done> {
    let (parts, body) = request.into_parts();
    let no_page = || Problem::missing("there is no such page; GET /api/schema/ lists all");
    let resource = Resource::of(parts.uri.path()).ok_or_else(no_page)?;
    // The answer to HEAD is that to GET, of which the server leaves out the body.
    let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    if !resource.traits().methods.contains(&method) {
        return Err(not_allowed(&method, &resource));
    }
    let client = registry.desk.client(peer, &parts.headers);
    let origin = Origin::of(client.address);
    let shown = bearer(&parts.headers);
    if shown.is_none() && resource.needs_key(&method) {
        return Err(Problem::no_account("Authentication credentials were not provided."));
    }
    registry.refresh().await?;
    let caller = match shown {
        Some(shown) if resource.needs_key(&method) || shown.starts_with(crate::secret::PREFIX) => {
            Some(registry.caller(shown, origin).await?)
        }
        Some(_) | None => None,
    };
    registry.count(caller.as_ref(), origin, &method)?;
    let coming = Coming {
        query: Query::of(&parts.uri),
        is_secure: registry.desk.is_secure(peer, &parts.headers),
        is_forwarded: client.is_forwarded,
        parts,
        method,
        origin,
        caller,
    };
    let sends = matches!(resource, Resource::Send | Resource::Negotiate);
    let most = if sends { SEND_BODY_BYTES_MAX } else { BODY_BYTES_MAX };
    let done = match fields(&coming, body, most).await {
        Ok(fields) => carry_out(registry, resource, &coming, fields).await,
        Err(problem) => Err(problem),
    };
    if let Some(caller) = &coming.caller {
        registry.saw(caller).await;
    }
    done
}

/// The fields of the body, of a request that has one.
async fn fields(coming: &Coming, body: Body, most: usize) -> Answer<Option<Fields>> {
    let purpose = if coming.method == Method::POST {
        Purpose::Make
    } else if coming.method == Method::PUT {
        Purpose::Replace
    } else if coming.method == Method::PATCH {
        Purpose::Change
    } else {
        return Ok(None);
    };
    let within = if coming.caller.is_some() { BODY_WITHIN } else { STRANGERS_BODY_WITHIN };
    let read = body::read(&coming.parts.headers, body, (within, most)).await?;
    Fields::read(&read, purpose).map(Some)
}

async fn carry_out(
    registry: &Registry,
    resource: Resource,
    coming: &Coming,
    fields: Option<Fields>,
) -> Answer<Done> {
    if resource.sends(&coming.method) {
        stops::may_send(registry, coming.caller.as_ref().map(|caller| caller.print)).await?;
    }
    let deletes = coming.method == Method::DELETE;
    match (resource, fields) {
        (Resource::Register, Some(fields)) => agents::register(registry, coming, fields).await,
        (Resource::Register, None) => Ok(agents::signup(registry)),
        (Resource::Me, Some(fields)) => agents::update(registry, coming, fields).await,
        (Resource::Me, None) if deletes => agents::delete(registry, coming).await,
        (Resource::Me, None) => agents::me(registry, coming).await,
        (Resource::Proof, Some(fields)) => agents::prove(registry, coming, fields).await,
        (Resource::SecretKey, _) => agents::secret_key(registry, coming).await,
        (Resource::Send, Some(fields)) => sending::send(registry, coming, fields).await,
        (Resource::Negotiate, Some(fields)) => negotiating::step(registry, coming, fields).await,
        (Resource::Inbox, _) => showing::inbox(registry, coming).await,
        (Resource::Received(id), Some(fields)) => {
            showing::mark(registry, coming, &id, fields).await
        }
        (Resource::Received(id), None) => showing::read(registry, coming, &id).await,
        (Resource::SentBox, _) => showing::sent(registry, coming).await,
        (Resource::Sent(id), _) => showing::read_sent(registry, coming, &id).await,
        (Resource::Sessions, _) => sessions::list(registry, coming).await,
        (Resource::Session(id), _) => sessions::get(registry, coming, &id).await,
        (Resource::Agent(id), _) => agents::get(registry, &id).await,
        (Resource::Jobs, Some(fields)) => jobs::create(registry, coming, fields).await,
        (Resource::Jobs, None) => jobs::list(registry, coming).await,
        (Resource::Job(id), Some(fields)) => jobs::edit(registry, coming, &id, fields).await,
        (Resource::Job(id), None) if deletes => jobs::delete(registry, coming, &id).await,
        (Resource::Job(id), None) => jobs::get(registry, &id).await,
        (Resource::Reviews, Some(fields)) => reviews::create(registry, coming, fields).await,
        (Resource::Reviews, None) => reviews::list(registry, coming).await,
        (Resource::Review(id), Some(fields)) => reviews::edit(registry, coming, &id, fields).await,
        (Resource::Review(id), None) if deletes => reviews::delete(registry, coming, &id).await,
        (Resource::Review(id), None) => reviews::get(registry, &id).await,
        (Resource::Schema, _) => Ok(Done::Ok(schema::document())),
        (resource @ (Resource::Proof | Resource::Send | Resource::Negotiate), None) => {
            Err(not_allowed(&coming.method, &resource))
        }
    }
}

fn not_allowed(method: &Method, resource: &Resource) -> Box<Problem> {
    let allowed: Vec<&str> = resource.traits().methods.iter().map(Method::as_str).collect();
    let allow = HeaderValue::try_from(allowed.join(", "));
    let text = format!("Method \"{method}\" not allowed.");
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, text);
    match allow {
        Ok(allow) => problem.with_header(header::ALLOW, allow),
        Err(_) => problem,
    }
}

/// The key that a request shows.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

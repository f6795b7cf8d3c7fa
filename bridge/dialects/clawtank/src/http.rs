//! Pages: rooms, their tasks and events, among those of `/api/rooms`.
//!
//! Reading is for everybody where rooms are public, and with a key for its private rooms. Who writes shows a key, and is in
//! the mesh the person that the key is for.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use bridge::{
    dialect::{Annex, Intrusion, Site},
    read::{Peer, Visitor},
    seam::call::{Attach, Identity, StandOutside},
    secret::Secret,
};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{
    connect::{Member, Wish},
    fields::At,
    git,
    limits::MESSAGE_BYTES_MAX,
    problem::{Code, Problem},
    replay, rooms,
    shared::Shared,
    state::Context,
    style::Style,
    tasks,
};

/// With which a client says that it wants this dialect's answer where another one has the path.
const MEDIA_TYPE: &str = "application/vnd.clawtank+json";
const ROOMS: &str = "/api/rooms";
const KEY_HEADER: &str = "x-clawchat-key";
/// Who writes stays in the mesh for so long after that, as in other dialects of people.
const STAYS: Duration = Duration::from_secs(30);
/// The person of a key that is for nobody in particular.
const NOBODY: &str = "http";

/// Who asks.
struct Caller {
    peer: Peer,
    /// The key that it shows.
    key: Option<String>,
}

type Opened = Arc<OnceLock<Arc<Shared>>>;

#[derive(Clone)]
struct Web {
    shared: Opened,
    style: Style,
}

pub(crate) fn annex(shared: Opened, style: Style) -> Annex {
    let router = Router::new().fallback(any(answer)).with_state(Web { shared, style });
    let site = Site {
        router,
        paths: &[],
        methods: &["GET", "POST", "PATCH", "DELETE"],
        checks_names: |_, _| true,
        headers: &["accept", "authorization", KEY_HEADER],
        refuse,
    };
    Annex { site, takes }
}

/// Requests that no other dialect has an answer to, or that ask for this one's.
fn takes(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let wants = || {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        accept.is_some_and(|accept| accept.contains(MEDIA_TYPE))
    };
    match (Route::of(path), method.as_str()) {
        (Some(Route::Rooms), "GET") => wants(),
        (Some(Route::Rooms), verb) => verb == "POST",
        (Some(Route::Room(_)), verb) => matches!(verb, "GET" | "PATCH" | "DELETE"),
        (Some(Route::Of(_, "tasks" | "events" | "git" | "replay")), verb) => verb == "GET",
        (Some(Route::Of(_, "leave")), verb) => verb == "POST",
        (Some(Route::Of(..)) | None, _) => false,
    }
}

/// What a path is of.
enum Route<'a> {
    Rooms,
    Room(&'a str),
    Of(&'a str, &'a str),
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Option<Route<'a>> {
        let rest = path.strip_prefix(ROOMS)?.trim_end_matches('/');
        let Some(rest) = rest.strip_prefix('/') else {
            return rest.is_empty().then_some(Route::Rooms);
        };
        match rest.split_once('/') {
            None => Some(Route::Room(rest)),
            Some((room, of)) if !of.contains('/') => Some(Route::Of(room, of)),
            Some(_) => None,
        }
    }
}

async fn answer(
    State(web): State<Web>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let caller = Caller { peer, key: shown(request.headers()) };
    if let Some(Route::Of(named, "replay")) = Route::of(request.uri().path())
        && request.method() == Method::GET
    {
        let query = query(request.uri().query().unwrap_or_default());
        let replayed = replayed(&web, (&caller, request.headers()), (named, query)).await;
        return replayed.unwrap_or_else(|no| refused(&no));
    }
    match asked(&web, caller, request).await {
        Ok((status, body)) => (status, Json(body)).into_response(),
        Err(problem) => refused(&problem),
    }
}

fn refused(problem: &Problem) -> Response {
    let status = match problem.code {
        Code::AuthenticationFailed => StatusCode::UNAUTHORIZED,
        Code::AuthorizationDenied => StatusCode::FORBIDDEN,
        Code::ValidationFailed => StatusCode::BAD_REQUEST,
        Code::RateLimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        Code::ResourceNotFound => StatusCode::NOT_FOUND,
        Code::ResourceConflict => StatusCode::CONFLICT,
        Code::ServerError | Code::NetworkError => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = json!({"code": problem.code.name(), "message": problem.message});
    let mut response = (status, Json(body)).into_response();
    if let Some(secs) = problem.retry_secs() {
        response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    response
}

pub(crate) fn refuse(why: Intrusion) -> Response {
    let text = match why {
        Intrusion::Origin => "web pages of this origin may not ask; allow it with --http-origin",
        Intrusion::Name => {
            "this node does not answer under that name; use its address, or start it with --http-host NAME"
        }
    };
    refused(&Problem::denied(text))
}

async fn replayed(
    web: &Web,
    (caller, headers): (&Caller, &HeaderMap),
    (named, query): (&str, Value),
) -> Result<Response, Problem> {
    let starting = || Problem::new(Code::ServerError, "the node is starting");
    let shared = web.shared.get().ok_or_else(starting)?.clone();
    let cx = reader(web, &shared, (caller, headers)).await?;
    replay::file(&cx, named, &At::new("query", &query)).await
}

async fn asked(
    web: &Web,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Value), Problem> {
    let starting = || Problem::new(Code::ServerError, "the node is starting");
    let shared = web.shared.get().ok_or_else(starting)?.clone();
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let missing = || Problem::missing("no such page");
    let route = Route::of(&path).ok_or_else(missing)?;
    let query = query(request.uri().query().unwrap_or_default());
    if method == Method::GET {
        let cx = reader(web, &shared, (&caller, request.headers())).await?;
        let mut body = read(&cx, route, &query).await?;
        cx.style().eyes.reads(&mut body);
        return Ok((StatusCode::OK, body));
    }
    let cx = writer(web, &shared, caller.key).await?;
    let body = body_of(&shared, request).await?;
    write(&cx, (&method, route), &body).await
}

async fn read(cx: &Context, route: Route<'_>, query: &Value) -> Result<Value, Problem> {
    let wish = At::new("query", query);
    match route {
        Route::Rooms => Ok(json!({"rooms": rooms::rows(cx).await?})),
        Route::Room(named) => {
            let room = rooms::named(cx, named).await?;
            let (info, set) = (rooms::look(cx, room).await?, rooms::set(cx, room).await?);
            let mut row = rooms::row_of(cx, &info.room, &set);
            row["members"] = json!(rooms::members(cx.style(), &info));
            Ok(row)
        }
        Route::Of(named, "tasks") => {
            let room = rooms::named(cx, named).await?;
            let rows = tasks::rows(cx, room, wish.get("status").text(64)?).await?;
            Ok(json!({"tasks": rows}))
        }
        Route::Of(named, "events") => {
            let room = rooms::named(cx, named).await?;
            rooms::page(cx, room, &wish).await
        }
        Route::Of(named, "git") => {
            let room = rooms::named(cx, named).await?;
            git::page(cx, room, &wish).await
        }
        Route::Of(_, of) => {
            Err(Problem::missing(format!("{of} of rooms come with a later version")))
        }
    }
}

async fn write(
    cx: &Context,
    (method, route): (&Method, Route<'_>),
    body: &Value,
) -> Result<(StatusCode, Value), Problem> {
    let body = At::new("body", body);
    match (method.as_str(), route) {
        ("POST", Route::Rooms) => {
            let (room, set) = rooms::make(cx, &body).await?;
            Ok((StatusCode::CREATED, rooms::row_of(cx, &room, &set)))
        }
        ("PATCH", Route::Room(named)) => {
            let room = rooms::named(cx, named).await?;
            Ok((StatusCode::OK, rooms::changed(cx, room, &body).await?))
        }
        ("DELETE", Route::Room(named)) => {
            let room = rooms::named(cx, named).await?;
            rooms::end(cx, room).await?;
            Ok((StatusCode::OK, json!({"room_id": cx.style().room(room), "closed": true})))
        }
        (_, Route::Of(_, of)) => {
            let text = format!("{of} is not there over HTTP by now");
            Err(Problem::missing(text)
                .instead("send extension.room_leave on the agent's connection"))
        }
        (_, Route::Rooms | Route::Room(_)) => Err(Problem::missing("no such page")),
    }
}

/// The key that a request shows, in one of the two ways.
pub(crate) fn shown(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, key) = text("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    };
    text(KEY_HEADER).or_else(bearer).map(str::to_owned)
}

/// Somebody who reads: the holder of a key, or everybody.
async fn reader(
    web: &Web,
    shared: &Arc<Shared>,
    (caller, headers): (&Caller, &HeaderMap),
) -> Result<Context, Problem> {
    let member = match caller.key.as_deref() {
        Some(key) => Member::showing(shared, Wish::over_http(key, NOBODY), web.style).await?,
        None if shared.desk.config().strangers_read => {
            let network = shared.desk.network(caller.peer, headers);
            Member::nobody(Visitor::stranger().at(network), web.style, Instant::now())
        }
        None => {
            let text = "show a key: `authorization: Bearer KEY`";
            return Err(Problem::new(Code::AuthenticationFailed, text));
        }
    };
    Ok(Context::of_reader(shared, member))
}

/// Somebody who writes: the person that the key is for.
async fn writer(web: &Web, shared: &Arc<Shared>, key: Option<String>) -> Result<Context, Problem> {
    let missing = || {
        let text = "show a key: `authorization: Bearer KEY`";
        Problem::new(Code::AuthenticationFailed, text)
    };
    let key = key.ok_or_else(missing)?;
    let member = Member::showing(shared, Wish::over_http(&key, NOBODY), web.style).await?;
    member.rights.may(crate::connect::Right::CreateRoom, false)?;
    let attach = Attach {
        key: Secret::new(&key),
        name: member.user.clone(),
        identity: Identity::Named(member.principal().to_string()),
        capabilities: Vec::new(),
        reconnect: false,
        linger: STAYS,
    };
    let hosted = shared.desk.host(attach).await?;
    if hosted.came {
        shared.desk.ask(&hosted.visitor, StandOutside).await?;
    }
    // Set once: the member was made for this request.
    let _: Result<(), _> = member.agent.set(member.principal());
    Ok(Context::of_reader(shared, member))
}

/// An object of JSON, or nothing.
async fn body_of(shared: &Shared, request: Request) -> Result<Value, Problem> {
    let within = shared.desk.config().http_request_within;
    let bad = |why: &str| Problem::field("body", why);
    let read = timeout(within, to_bytes(request.into_body(), MESSAGE_BYTES_MAX)).await;
    let read = read.map_err(|_| bad("came too late"))?;
    let bytes = read.map_err(|_| bad("is larger than 65536 bytes, or was cut off"))?;
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    let body: Value = serde_json::from_slice(&bytes).map_err(|_| bad("is no JSON"))?;
    if body.is_object() { Ok(body) } else { Err(bad("must be an object")) }
}

/// `a=b&c=7`: numbers are numbers.
fn query(text: &str) -> Value {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    let value = |text: &str| {
        let text = text.replace("%3A", ":").replace("%3a", ":").replace("%2B", "+");
        text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
    };
    Value::Object(pairs.map(|(name, text)| (name.to_owned(), value(text))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_others_stay_theirs() {
        let takes = |method: &str, path: &str, accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            takes(&method.parse().unwrap(), path, &headers)
        };
        for (method, path) in [
            ("GET", "/api/rooms"),
            ("GET", "/api/rooms/lobby/history"),
            ("GET", "/api/rooms/lobby/messages/7"),
            ("GET", "/api/rooms/lobby/files"),
            ("PUT", "/api/rooms/lobby/files/a/b"),
            ("DELETE", "/api/rooms/lobby/files/tasks"),
            ("GET", "/api/status"),
            ("POST", "/api/keys"),
            ("GET", "/api/roomsand"),
        ] {
            assert!(!takes(method, path, "*/*"), "{method} {path}");
        }
        assert!(takes("GET", "/api/rooms", MEDIA_TYPE));
        for (method, path) in [
            ("POST", "/api/rooms"),
            ("GET", "/api/rooms/lobby"),
            ("PATCH", "/api/rooms/lobby"),
            ("DELETE", "/api/rooms/lobby/"),
            ("GET", "/api/rooms/lobby/tasks"),
        ] {
            assert!(takes(method, path, "*/*"), "{method} {path}");
        }
    }
}

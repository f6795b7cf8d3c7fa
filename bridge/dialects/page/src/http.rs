//! A request's way in: its path, the person who asks, and the headers of every answer.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use bridge::dialect::{Intrusion, Site};
use maud::Markup;
use mesh::name::id::{MessageId, RoomId};

use crate::{
    acting, assets, door, live,
    shared::Shared,
    signing::Person,
    views::{self, Problem},
};

/// The cookie of a person who is signed in. It opens the page and nothing else.
pub(crate) const COOKIE: &str = "clawmesh_page";

/// Nothing is run, loaded, framed or sent anywhere but what is this node's own.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(crate) fn site(shared: Arc<Shared>) -> Site {
    let router = Router::new()
        .route("/", get(mesh))
        .route("/ui/rooms", get(rooms))
        .route("/ui/rooms/{room}", get(room))
        .route("/ui/rooms/{room}/live", get(live::room))
        .route("/ui/rooms/{room}/trace/{message}", get(trace))
        .route("/ui/rooms/{room}/{act}", post(acting::in_room))
        .route("/ui/agents", get(agents))
        .route("/ui/agents/stop", post(acting::stop))
        .route("/ui/agents/write", post(acting::to_agent))
        .route("/ui/search", get(search))
        .route("/ui/figures", get(figures))
        .route("/ui/live/{view}", get(live::view))
        .route("/ui/enter", post(door::enter))
        .route("/ui/enter/{secret}", get(door::open))
        .route("/ui/link", post(door::link))
        .route("/ui/leave", post(door::leave))
        .route("/assets/page.css", get(assets::style))
        .route("/assets/page.js", get(assets::script))
        .fallback(async || (StatusCode::NOT_FOUND, views::problem(&Problem::NotFound)))
        .layer(from_fn(guarded))
        .with_state(shared);
    Site {
        router,
        paths: &["/", "/ui", "/assets/"],
        methods: &["GET", "HEAD", "POST"],
        checks_names: |_, _| true,
        headers: &[],
        refuse: |why| {
            (StatusCode::FORBIDDEN, views::problem(&Problem::Intrusion(why))).into_response()
        },
    }
}

/// The headers of every answer.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer` browsers say of a form that it is of no origin.
        (header::REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The secret that a browser shows.
pub(crate) fn shown(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|all| all.split(';')).filter_map(|one| one.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, secret)| secret)
}

/// The person who asks.
///
/// # Errors
/// Nobody is signed in, or the key is not valid any more: the way to sign in.
pub(crate) async fn person(shared: &Shared, headers: &HeaderMap) -> Result<Arc<Person>, Response> {
    let person = shown(headers).and_then(|secret| shared.signing.person(secret));
    let person = person.ok_or_else(|| door::page(shared, None))?;
    match shared.desk.holder(person.key.clone()).await {
        Ok(_) => Ok(person),
        Err(refusal) => Err(door::page(shared, Some(views::why(&refusal)))),
    }
}

/// A view of the person, or why there is none.
async fn shown_to(
    shared: &Shared,
    headers: &HeaderMap,
    view: impl AsyncFnOnce(&Arc<Person>) -> Result<Markup, Problem>,
) -> Response {
    let person = match person(shared, headers).await {
        Ok(person) => person,
        Err(response) => return response,
    };
    match view(&person).await {
        Ok(markup) => markup.into_response(),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

async fn mesh(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    shown_to(&shared, &headers, async |person| views::mesh::page(&shared, person).await).await
}

async fn rooms(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    shown_to(&shared, &headers, async |person| views::rooms::page(&shared, person).await).await
}

async fn agents(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    shown_to(&shared, &headers, async |person| views::agents::page(&shared, person).await).await
}

async fn figures(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let span = views::figures::span(request.uri().query());
    shown_to(&shared, &headers, async |person| views::figures::page(&shared, person, span)).await
}

async fn search(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let query = request.uri().query();
    shown_to(&shared, &headers, async |person| views::search::page(&shared, person, query).await)
        .await
}

async fn room(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let wanted = views::room::Wanted::of(request.uri().query());
    let view = async |person: &Arc<Person>| {
        let room = room_id(&room)?;
        views::room::page(&shared, person, room, &wanted).await
    };
    shown_to(&shared, &headers, view).await
}

async fn trace(
    State(shared): State<Arc<Shared>>,
    Path((room, message)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let view = async |person: &Arc<Person>| {
        let room = room_id(&room)?;
        let message = MessageId::from_uuid(&message).ok_or(Problem::NotFound)?;
        views::trace::page(&shared, person, room, message).await
    };
    shown_to(&shared, &headers, view).await
}

/// The room that a path names.
pub(crate) fn room_id(text: &str) -> Result<RoomId, Problem> {
    RoomId::from_uuid(text).ok_or(Problem::NotFound)
}

/// Back to a page, after something was done: a reload does it not again.
pub(crate) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}

impl Problem {
    /// The status of its answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Problem::NotFound => StatusCode::NOT_FOUND,
            Problem::Intrusion(Intrusion::Origin | Intrusion::Name) | Problem::Form => {
                StatusCode::FORBIDDEN
            }
            Problem::Refused(_) => StatusCode::CONFLICT,
            Problem::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

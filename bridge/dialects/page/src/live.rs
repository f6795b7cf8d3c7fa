//! What changes while a page is open, as server-sent events: new messages of a room as they come, and the other views whenever
//! they look different.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{Path, Request, State},
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use bridge::{
    figures::Span,
    seam::call::{From, History},
};
use futures::{Stream, stream::unfold};
use maud::Markup;
use tokio::time::{sleep, timeout};

use crate::{
    http::{person, room_id},
    limits::{ALIVE_EVERY, LOOK_EVERY, MESSAGES_SHOWN},
    shared::Shared,
    signing::Person,
    views::{self, Problem},
};

/// The permits of a live page: given back when it is closed.
struct Open {
    _node: tokio::sync::OwnedSemaphorePermit,
    _person: crate::signing::Place,
}

/// Lets a page be live, if there is a place.
async fn let_in(shared: &Shared, headers: &HeaderMap) -> Result<(Arc<Person>, Open), Response> {
    let person = person(shared, headers).await?;
    let busy = || (Problem::Busy.status(), views::problem(&Problem::Busy)).into_response();
    let node = shared.live.clone().try_acquire_owned().map_err(|_| busy())?;
    let place = person.place().ok_or_else(busy)?;
    Ok((person, Open { _node: node, _person: place }))
}

fn sse(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}

/// One of the views that are shown anew as a whole.
pub(crate) async fn view(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if !matches!(&*name, "mesh" | "rooms" | "agents" | "figures" | "figures-day") {
        return (Problem::NotFound.status(), views::problem(&Problem::NotFound)).into_response();
    }
    let (person, open) = match let_in(&shared, &headers).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let state = (shared, person, name, String::new(), open);
    sse(unfold(state, |(shared, person, name, last, open)| async move {
        loop {
            let now = match content(&shared, &person, &name).await {
                Ok(markup) => markup.into_string(),
                // The key is not valid any more, or the node is stopping: a reload says why.
                Err(_) => return None,
            };
            if now != last {
                let event = Event::default().event("view").data(&now);
                return Some((Ok(event), (shared, person, name, now, open)));
            }
            sleep(LOOK_EVERY).await;
            still_valid(&shared, &person).await?;
        }
    }))
}

async fn content(shared: &Shared, person: &Person, name: &str) -> Result<Markup, Problem> {
    match name {
        "rooms" => views::rooms::content(shared, person).await,
        "agents" => views::agents::content(shared, person).await,
        "figures" => views::figures::content(shared, person, Span::Hour),
        "figures-day" => views::figures::content(shared, person, Span::Day),
        _ => views::mesh::content(shared, person).await,
    }
}

/// `None`: the key is not valid any more.
async fn still_valid(shared: &Shared, person: &Person) -> Option<()> {
    shared.desk.holder(person.key.clone()).await.ok().map(drop)
}

/// The messages of a room above the number that the page has.
pub(crate) async fn room(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let (person, open) = match let_in(&shared, &headers).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let refused = |problem: Problem| (problem.status(), views::problem(&problem)).into_response();
    let room = match room_id(&room) {
        Ok(room) => room,
        Err(problem) => return refused(problem),
    };
    let reader = match views::room::reader(&shared, &person, room).await {
        Ok(reader) => reader,
        Err(problem) => return refused(problem),
    };
    // Before the first look: what comes between the two is not missed.
    let watch = match shared.desk.watch(&reader, room) {
        Ok(watch) => watch,
        Err(_) => return refused(Problem::NotFound),
    };
    // A browser that was cut off says what it has.
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let after = seen.or_else(|| after(request.uri().query())).unwrap_or(0);
    let state = (shared, person, reader, watch, after, open);
    sse(unfold(state, move |(shared, person, reader, mut watch, after, open)| async move {
        loop {
            let call =
                History { room, from: From::Number(after), limit: MESSAGES_SHOWN, before_ms: None };
            let messages = views::room::messages(&shared, &reader, call).await.ok()?;
            if let Some(last) = messages.last().map(|message| message.number.0) {
                let html = views::room::all(&messages).into_string();
                let event = Event::default().event("said").id(last.to_string()).data(html);
                return Some((Ok(event), (shared, person, reader, watch, last, open)));
            }
            drop(timeout(ALIVE_EVERY, watch.news()).await);
            still_valid(&shared, &person).await?;
        }
    }))
}

/// The number that a page has: `after=N`.
fn after(query: Option<&str>) -> Option<u64> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == "after").find_map(|(_, number)| number.parse().ok())
}

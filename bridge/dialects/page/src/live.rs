//! What changes while a page is open, as server-sent events: new messages of a room as they come, and the other views whenever
//! they look different.

use std::{convert::Infallible, sync::Arc, time::Instant};

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
    read::{Overheard, Visitor, Watch},
    seam::{
        call::{From, History},
        event::Event as News,
    },
};
use futures::{Stream, stream::unfold};
use maud::Markup;
use mesh::name::id::RoomId;
use tokio::{
    sync::broadcast::Receiver,
    time::{sleep, timeout},
};

use crate::{
    http::{person, room_id},
    limits::{ALIVE_EVERY, LOOK_EVERY, MESSAGES_SHOWN, SOON},
    shared::Shared,
    signing::Person,
    views::{self, Problem, messages::Talk, room::may_say, side::Side},
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
    // Before the first look: what is said between the two is not missed.
    let news = (name == "rooms").then(|| shared.desk.overhear());
    let state = (shared, person, name, (String::new(), news), open);
    sse(unfold(state, |(shared, person, name, (last, mut news), open)| async move {
        loop {
            // However often it changes, it is not drawn more often.
            if !last.is_empty() {
                until_due(news.as_mut()).await;
                still_valid(&shared, &person).await?;
            }
            let now = match content(&shared, &person, &name).await {
                Ok(markup) => markup.into_string(),
                // The key is not valid any more, or the node is stopping: a reload says why.
                Err(_) => return None,
            };
            if now != last {
                let event = Event::default().event("view").data(&now);
                return Some((Ok(event), (shared, person, name, (now, news), open)));
            }
        }
    }))
}

/// Waits until a view is to be looked at again: soon after something was said, or at its time.
async fn until_due(news: Option<&mut Receiver<Arc<Overheard>>>) {
    let Some(news) = news else { return sleep(LOOK_EVERY).await };
    let said = async {
        // An error: more was said than is kept; or the node is stopping, and the next look says so.
        while let Ok(heard) = news.recv().await {
            if matches!(heard.event, News::Said(_)) {
                return;
            }
        }
    };
    if timeout(LOOK_EVERY, said).await.is_ok() {
        sleep(SOON).await;
    }
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

/// A room that somebody watches.
struct Watching {
    shared: Arc<Shared>,
    person: Arc<Person>,
    reader: Visitor,
    watch: Watch,
    room: RoomId,
    /// The page has all messages up to this number.
    after: u64,
    /// What it has beside them.
    side: String,
    answers: bool,
    /// When that was looked at, and the key.
    looked: Option<Instant>,
    checked: Instant,
    _open: Open,
}

impl Watching {
    /// The next thing that the page does not have. `None`: there is no more, and a reload says why.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.said().await? {
                return Some(event);
            }
            // Words are shown as they come; what is beside them need not be drawn for each.
            let is_due = self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
            if is_due && let Some(event) = self.beside().await? {
                return Some(event);
            }
            drop(timeout(LOOK_EVERY, self.watch.news()).await);
            if self.checked.elapsed() >= ALIVE_EVERY {
                still_valid(&self.shared, &self.person).await?;
                self.shared.stays(&self.person);
                self.checked = Instant::now();
            }
        }
    }

    async fn said(&mut self) -> Option<Option<Event>> {
        let from = From::Number(self.after);
        let call = History { room: self.room, from, limit: MESSAGES_SHOWN, before_ms: None };
        let messages = views::room::messages(&self.shared, &self.reader, call).await.ok()?;
        let Some(last) = messages.last() else { return Some(None) };
        self.after = last.number.0;
        self.person.reading.reads(self.room, last.number);
        let id = self.room.to_uuid();
        let talk = Talk { room: &id, answers: self.answers };
        let html = views::messages::all(&talk, &messages).into_string();
        Some(Some(Event::default().event("said").id(self.after.to_string()).data(html)))
    }

    async fn beside(&mut self) -> Option<Option<Event>> {
        self.looked = Some(Instant::now());
        let side = Side::read(&self.shared, &self.reader, self.room).await.ok()?;
        self.answers = may_say(&self.person, &side.info.room);
        let html = side.markup(&self.person).into_string();
        if html == self.side {
            return Some(None);
        }
        self.side.clone_from(&html);
        Some(Some(Event::default().event("side").data(html)))
    }
}

/// The messages of a room above the number that the page has, and what is beside them.
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
    // A browser that was cut off says what it has.
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let after = seen.or_else(|| after(request.uri().query())).unwrap_or(0);
    match watching(shared, person, open, (&room, after)).await {
        Ok(watching) => sse(unfold(watching, async |mut watching| {
            let event = watching.next().await?;
            Some((Ok(event), watching))
        })),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

async fn watching(
    shared: Arc<Shared>,
    person: Arc<Person>,
    open: Open,
    (room, after): (&str, u64),
) -> Result<Watching, Problem> {
    let room = room_id(room)?;
    let reader = views::room::reader(&shared, &person, room).await?;
    // Before the first look: what comes between the two is not missed.
    let watch = shared.desk.watch(&reader, room).map_err(|_| Problem::NotFound)?;
    let info = Side::read(&shared, &reader, room).await?.info;
    Ok(Watching {
        answers: may_say(&person, &info.room),
        shared,
        person,
        reader,
        watch,
        room,
        after,
        side: String::new(),
        looked: None,
        checked: Instant::now(),
        _open: open,
    })
}

/// The number that a page has: `after=N`.
fn after(query: Option<&str>) -> Option<u64> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == "after").find_map(|(_, number)| number.parse().ok())
}

//! One who looks on over `/ws`: `connection.request` with `client_type: "spectator"`.

use std::sync::{Arc, Mutex};

use bridge::{delivery::ending::Ending, read::Visitor, secret::Secret, session::seat::Seat};
use bytes::Bytes;
use serde_json::json;
use tokio::{sync::broadcast, time::sleep};

use super::{
    look::Turned,
    stage::{self, Cast},
    talk::{self, Answer, Spectator, Wish},
};
use crate::{
    envelope::{Request, Told},
    limits::{KEY_LOOK_EVERY, MESSAGE_BYTES_MAX, NAME_CHARS_MAX, SPECTATOR_CHAT_PER_MINUTE},
    problem::Problem,
    shared::Shared,
    state::{State, locked},
    style::Style,
};

/// Whether a frame is of one who wants to look on.
pub(crate) fn is_meant(request: &Request) -> bool {
    let kind = request.data().get("client_type");
    let kind = kind.value().and_then(|kind| kind.as_str());
    request.kind == "connection.request" && kind == Some("spectator")
}

fn wish(request: &Request, style: Style) -> Result<Wish, Problem> {
    let data = request.data();
    let name = data.get("client_info").get("name").text(NAME_CHARS_MAX)?.map(str::to_owned);
    let key = data.get("auth_token").text(usize::MAX)?.map(Secret::new);
    let room = data.get("room_id").words(256)?.to_owned();
    Ok(Wish { room, key, name, style, from: None })
}

/// Lets a client look on that has said nothing before.
pub(crate) fn begin(
    seat: &mut Seat,
    shared: Arc<Shared>,
    (state, style): (Arc<Mutex<State>>, Style),
    request: Request,
) -> Result<(), Problem> {
    let wish = Wish { from: seat.client(), ..wish(&request, style)? };
    let work = async move { talk::admit(&shared, wish).await };
    seat.owe_in_turn(work, move |seat, admitted| match admitted {
        Ok((spectator, welcome)) => {
            // No agent, and no stranger whose time runs out.
            seat.admit(&Visitor::stranger());
            if let Some(key) = spectator.key() {
                seat.shows(key);
            }
            seat.reply(ack(&spectator, &request));
            seat.reply(welcome);
            locked(&state).spectator = Some(spectator.clone());
            let casts = spectator.place.stage.watch(style.form);
            watch(seat, spectator.clone(), casts);
            look_after(seat, spectator);
        }
        Err(turned) => {
            seat.reply(style.frame(turned.told().answering(&request.related)));
            seat.close(Ending::Refused);
        }
    });
    Ok(())
}

fn ack(spectator: &Spectator, request: &Request) -> Bytes {
    let (style, who) = (spectator.style, spectator.who());
    let data = json!({
        "connection_id": style.form.id("conn", who.id),
        "server_version": env!("CARGO_PKG_VERSION"),
        "features": crate::connect::FEATURES,
        "limits": {
            "max_message_size": MESSAGE_BYTES_MAX,
            "max_messages_per_minute": SPECTATOR_CHAT_PER_MINUTE,
            "max_concurrent_tasks": 0,
        },
        "session_info": {
            "user_id": style.form.id("user", who.id),
            "display_name": &*who.name,
            "permissions": ["read"],
        },
    });
    style.frame(Told::fresh("connection.ack", data).answering(&request.related))
}

/// Gives one the frames of the room. One that does not take them misses the oldest, and holds nobody up.
fn watch(seat: &mut Seat, spectator: Arc<Spectator>, mut casts: broadcast::Receiver<Cast>) {
    let looks = spectator.clone();
    let next = async move {
        let cast = stage::next(&mut casts).await;
        looks.waits_for_its_turn().await;
        (cast, casts)
    };
    seat.later(next, |seat, (cast, casts)| match cast {
        Cast::Frame(frame, but) => {
            if but != Some(spectator.id()) {
                seat.reply(frame.into());
            }
            watch(seat, spectator, casts);
        }
        Cast::End(Some(frame)) => {
            seat.reply(frame.into());
            seat.close(Ending::Refused);
        }
        // The node ends the connection.
        Cast::End(None) => {}
    });
}

/// Looks whether its key still lets it look.
fn look_after(seat: &mut Seat, spectator: Arc<Spectator>) {
    let look = async move {
        sleep(KEY_LOOK_EVERY).await;
        (spectator.may_look().await, spectator)
    };
    seat.later(look, |seat, (may, spectator)| {
        if may {
            return look_after(seat, spectator);
        }
        seat.reply(spectator.style.frame(Turned::NotFound.told()));
        seat.close(Ending::Revoked);
    });
}

/// A frame of it.
pub(crate) fn hear(seat: &mut Seat, spectator: &Spectator, request: &Request) {
    let Answer { frames, ending } = spectator.hears(request);
    frames.into_iter().for_each(|frame| seat.reply(frame));
    if let Some(ending) = ending {
        seat.close(ending);
    }
}

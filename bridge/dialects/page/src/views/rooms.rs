//! The rooms that a person sees, the liveliest first.

use std::{cmp::Reverse, sync::Arc};

use bridge::seam::call::{ListApprovals, ListDirect, ListRooms};
use maud::{Markup, html};
use mesh::api::{approval::ApprovalView, command::RoomView};

use super::{Problem, id, layout, messages::excerpt, plain};
use crate::{
    limits::{APPROVALS_SHOWN, ROOMS_SHOWN},
    shared::Shared,
    signing::Person,
    times,
};

pub(crate) async fn page(shared: &Shared, person: &Arc<Person>) -> Result<Markup, Problem> {
    let content = content(shared, person).await?;
    Ok(layout(
        person,
        "Rooms",
        &html! {
            div #live data-live="/ui/live/rooms" aria-live="off" { (content) }
        },
    ))
}

/// The part that changes.
pub(crate) async fn content(shared: &Shared, person: &Person) -> Result<Markup, Problem> {
    let mut rooms = shared.desk.ask(&person.holder, ListRooms { parent: None }).await?;
    let mut direct = shared.desk.ask(&person.holder, ListDirect).await?;
    rooms.retain(|room| room.sides.is_none());
    for list in [&mut rooms, &mut direct] {
        list.sort_by_key(|room| Reverse(room.last_activity_ms.unwrap_or(room.created_ms)));
    }
    let mut approvals = shared.desk.ask(&person.holder, ListApprovals { room: None }).await?;
    approvals.retain(|approval| approval.decided.is_none());
    let all = rooms.len() + direct.len();
    rooms.truncate(ROOMS_SHOWN);
    direct.truncate(ROOMS_SHOWN);
    Ok(html! {
        h1 { "Rooms" }
        (waiting(&approvals, &rooms))
        (list("Rooms", &rooms))
        @if !direct.is_empty() { (list("Direct, of agents of your key", &direct)) }
        @if all > rooms.len() + direct.len() { p.quiet { "Of " (all) " rooms the liveliest are shown." } }
    })
}

/// Things that agents want to do, and about which nobody has decided.
fn waiting(approvals: &[ApprovalView], rooms: &[RoomView]) -> Markup {
    html! {
        @if !approvals.is_empty() {
            h2 { "To be decided" }
            ul.plain {
                @for approval in approvals.iter().take(APPROVALS_SHOWN) {
                    @let room = rooms.iter().find(|room| room.room == approval.room).map_or_else(|| "a room".to_owned(), name);
                    li {
                        a href=(format!("/ui/rooms/{}#approvals", approval.room.to_uuid())) { (id(&approval.by)) " in " (plain(&room)) } ": "
                        (excerpt(&approval.text)) " " span.quiet { "until " (times::moment(approval.until_ms)) }
                    }
                }
                @if approvals.len() > APPROVALS_SHOWN { li.quiet { "And " (approvals.len() - APPROVALS_SHOWN) " more." } }
            }
        }
    }
}

fn list(caption: &str, rooms: &[RoomView]) -> Markup {
    html! {
        div.wide { table {
            caption { (caption) }
            thead { tr { th scope="col" { "Room" } th scope="col" { "Members" } th scope="col" { "Messages" } th scope="col" { "Last said" } } }
            tbody {
                @for room in rooms {
                    tr {
                        th scope="row" {
                            a href=(format!("/ui/rooms/{}", room.room.to_uuid())) { (plain(&name(room))) }
                            @for word in marks(room) { " " span.tag { (word) } }
                            @if let Some(text) = room.description.as_deref().filter(|text| !text.is_empty()) { br; span.quiet { (plain(text)) } }
                        }
                        td data-th="Members" { (room.members) }
                        td data-th="Messages" { (room.tip.0) }
                        td data-th="Last said" { @match room.last_activity_ms { Some(ms) => (times::moment(ms)), None => "–" } }
                    }
                }
            }
        } }
    }
}

/// A direct room is called by its two agents.
pub(crate) fn name(room: &RoomView) -> String {
    match &room.sides {
        None => room.name.to_string(),
        Some(sides) => {
            let [(one, _), (other, _)] = sides.each();
            if room.task {
                format!("task: {one} and {other}")
            } else {
                format!("{one} and {other}")
            }
        }
    }
}

/// What is not as of other rooms.
pub(crate) fn marks(room: &RoomView) -> Vec<&'static str> {
    let marks = [
        (!room.public && room.shared.is_none() && room.sides.is_none(), "private"),
        (room.shared.is_some(), "shared"),
        (room.encrypted, "end-to-end encrypted"),
        (room.ephemeral, "ephemeral"),
        (room.closed, "closed"),
    ];
    marks.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect()
}

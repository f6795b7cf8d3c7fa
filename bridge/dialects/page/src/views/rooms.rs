//! The rooms that a person sees, the liveliest first.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bridge::seam::call::{DescribeRoom, ListApprovals, ListDirect, ListRooms, ListWaits};
use maud::{Markup, html};
use mesh::{
    api::{
        approval::ApprovalView,
        command::{RoomInfo, RoomView},
        waits::{Awaited, WaitView},
    },
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
};

use super::{Problem, id, layout, messages::excerpt, plain};
use crate::{
    limits::{APPROVALS_SHOWN, ROOMS_DESCRIBED, ROOMS_SHOWN},
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
    person.reading.meet(rooms.iter().chain(&direct).map(|room| (room.room, room.tip)));
    let waits = shared.desk.ask(&person.holder, ListWaits).await?;
    let live = Live { person, infos: infos(shared, person, &rooms).await, waits: &waits };
    let unread = rooms.iter().chain(&direct).filter(|room| live.unread(room).is_some()).count();
    Ok(html! {
        h1 { "Rooms" }
        @if unread > 0 { p.quiet role="status" { "In " (unread) @if unread == 1 { " room" } @else { " rooms" } " something was said that you have not read." } }
        (waiting(&approvals, &rooms))
        (list("Rooms", &rooms, &live))
        @if !direct.is_empty() { (list("Direct, of agents of your key", &direct, &live)) }
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

/// Leader and turn of rooms in which somebody is.
async fn infos(shared: &Shared, person: &Person, rooms: &[RoomView]) -> BTreeMap<RoomId, RoomInfo> {
    let mut infos = BTreeMap::new();
    for room in rooms.iter().filter(|room| room.members > 0).take(ROOMS_DESCRIBED) {
        // An error: it has ended just now.
        if let Ok(info) = shared.desk.ask(&person.holder, DescribeRoom(room.room)).await {
            infos.insert(room.room, info);
        }
    }
    infos
}

/// Facts of rooms that change.
struct Live<'a> {
    person: &'a Person,
    infos: BTreeMap<RoomId, RoomInfo>,
    waits: &'a [WaitView],
}

impl Live<'_> {
    /// How much the person has not read. `None`: nothing.
    fn unread(&self, room: &RoomView) -> Option<String> {
        let read = self.person.reading.read_upto(room.room)?;
        let Number(tip) = room.tip;
        match tip.checked_sub(read).filter(|count| *count > 0)? {
            // Numbers of another era begin elsewhere.
            _ if Number(read).era() != room.tip.era() && read > 0 => Some("new".to_owned()),
            count => Some(count.to_string()),
        }
    }

    fn named(&self, room: RoomId, which: impl Fn(&RoomInfo) -> Option<AgentId>) -> Option<String> {
        let info = self.infos.get(&room)?;
        let agent = which(info)?;
        let found = info.agents.iter().find(|member| member.agent == agent);
        Some(found.map_or_else(|| agent.to_string(), |member| member.name.to_string()))
    }

    fn leader(&self, room: RoomId) -> Option<String> {
        self.named(room, |info| Some(info.leader.as_ref()?.agent.clone()))
    }

    fn turn(&self, room: RoomId) -> Option<String> {
        self.named(room, |info| info.turn.clone())
    }

    /// What goes on in a room, each kind once.
    fn marks(&self, room: RoomId) -> Vec<&'static str> {
        let of_room = self.waits.iter().filter(|wait| wait.room == room);
        let kinds: BTreeSet<&'static str> =
            of_room.filter_map(|wait| goes_on(wait.awaited)).collect();
        let info = self.infos.get(&room);
        let election = info.and_then(|info| info.election.as_ref()).map(|_| "election");
        kinds.into_iter().chain(election).collect()
    }
}

fn goes_on(awaited: Awaited) -> Option<&'static str> {
    match awaited {
        Awaited::Ballots => Some("vote"),
        Awaited::Task => Some("task"),
        Awaited::Decision => Some("to decide"),
        Awaited::Answer => None,
    }
}

fn list(caption: &str, rooms: &[RoomView], live: &Live<'_>) -> Markup {
    html! {
        div.wide { table {
            caption { (caption) }
            thead { tr {
                th scope="col" { "Room" } th scope="col" { "Unread" } th scope="col" { "Members" } th scope="col" { "Leader" }
                th scope="col" { "Turn" } th scope="col" { "Messages" } th scope="col" { "Last said" }
            } }
            tbody {
                @for room in rooms {
                    @let unread = live.unread(room);
                    tr.unread[unread.is_some()] {
                        th scope="row" {
                            a href=(format!("/ui/rooms/{}", room.room.to_uuid())) { (plain(&name(room))) }
                            @for word in marks(room) { " " span.tag { (word) } }
                            @for word in live.marks(room.room) { " " span.tag.good { (word) } }
                            @if let Some(text) = room.description.as_deref().filter(|text| !text.is_empty()) { br; span.quiet { (plain(text)) } }
                        }
                        td data-th="Unread" { @if let Some(unread) = unread { strong.count { (unread) } } }
                        td data-th="Members" { (room.members) }
                        td data-th="Leader" { @if let Some(leader) = live.leader(room.room) { (plain(&leader)) } }
                        td data-th="Turn" { @if let Some(turn) = live.turn(room.room) { (plain(&turn)) } }
                        td data-th="Messages" { (room.tip.n()) }
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

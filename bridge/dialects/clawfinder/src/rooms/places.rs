//! Rooms of an account: one for each correspondent, made with the first mail, or by the agent itself.

use std::sync::Arc;

use bridge::{
    read::Visitor,
    seam::{
        call::{CreateRoom, ListRooms, SetMember},
        refusal::Refusal,
    },
};
use mesh::{
    api::command::{MemberAct, NewRoom, Refused, RoomView},
    name::id::KeyPrint,
    records::members::Role,
};

use super::guest::{Fault, Guest, Place, State};
use crate::{
    limits::{ROOM_NAMES_TRIED, ROOMS_MAX},
    registry::Registry,
    shapes::Named,
};

/// Names of such rooms begin so.
const NAME: &str = "finder:";
/// The room with words of the node itself.
const MESH: &str = "mesh";

impl Guest {
    /// The beginning of the purpose of each room that its host made.
    fn purpose(&self) -> String {
        format!("Mail of the agent {} with ", self.agent)
    }

    /// Looks for its rooms. What is known of rooms that are there stays.
    pub(super) async fn find_places(
        &self,
        registry: &Registry,
        holder: &Visitor,
        state: &mut State,
    ) -> Result<(), Fault> {
        let rooms = registry.desk.ask(holder, ListRooms { parent: None }).await?;
        let mut places = Vec::new();
        state.others.clear();
        let mut rooms: Vec<RoomView> =
            rooms.into_iter().filter(|room| !room.public && !room.closed).collect();
        rooms.sort_by_key(|room| (room.created_ms, room.room));
        for room in rooms {
            let Some(peer) = self.peer_in(&room) else {
                state.others.insert(room.room);
                continue;
            };
            if places.len() < ROOMS_MAX {
                places.push(Place::new(room.room, peer));
            }
            let is_made_here = room.created_by.as_ref().is_some_and(|by| self.is_speaker(by));
            if is_made_here && !room.on_record.iter().any(|member| member.agent == self.agent) {
                self.seat(registry, room.room).await?;
            }
        }
        state.places = Some(places);
        Ok(())
    }

    /// The correspondent of a room, if it is one of these.
    #[expect(clippy::option_option, reason = "the node itself is a correspondent without an id")]
    fn peer_in(&self, room: &RoomView) -> Option<Option<String>> {
        let rest = room.name.strip_prefix(NAME)?;
        let by = room.created_by.as_ref()?;
        if *by == self.agent {
            return Some(Some(rest.to_owned()));
        }
        let purpose = room.description.as_deref().filter(|_| self.is_speaker(by))?;
        let (_, id) = purpose.strip_prefix(&self.purpose())?.rsplit_once(' ')?;
        Some((id != MESH).then(|| id.to_owned()))
    }

    /// Its agent is a member, and has a seat where it is attached.
    async fn seat(&self, registry: &Registry, room: mesh::name::id::RoomId) -> Result<(), Refusal> {
        let speaker = self.speaker(registry, (None, MESH)).await?;
        let act = MemberAct::Put(Role::Member);
        registry.desk.ask(&speaker, SetMember { room, agent: self.agent.clone(), act }).await
    }

    /// The room with a correspondent, made if there is none; its place among all. `None` as the correspondent: the node itself.
    pub(super) async fn place_of(
        &self,
        registry: &Arc<Registry>,
        state: &mut State,
        peer: Option<(KeyPrint, &Named)>,
    ) -> Result<usize, Fault> {
        let is_it = |place: &Place| match (&place.peer, peer) {
            (Some(named), Some((print, _))) => {
                registry.index().find(named).is_some_and(|account| account.print == print)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if let Some(at) = state.places().iter().position(is_it) {
            return Ok(at);
        }
        if state.places().len() >= ROOMS_MAX {
            return Err(Fault::Later(format!("its agent has {ROOMS_MAX} rooms for mail")));
        }
        let room = self.make(registry, peer.map(|(_, named)| named)).await?;
        self.seat(registry, room.room).await?;
        let mut place = Place::new(room.room, peer.map(|(_, named)| named.id.clone()));
        (place.read, place.is_dirty) = (Some(room.tip), false);
        state.places().push(place);
        Ok(state.places().len() - 1)
    }

    async fn make(&self, registry: &Registry, peer: Option<&Named>) -> Result<RoomView, Refusal> {
        let speaker = self.speaker(registry, (None, MESH)).await?;
        let (username, id) =
            peer.map_or((MESH, MESH), |peer| (peer.username.as_str(), peer.id.as_str()));
        let mut taken = Refusal::Overloaded;
        for nth in 1..=ROOM_NAMES_TRIED {
            let suffix = if nth == 1 { String::new() } else { format!("-{nth}") };
            let new = NewRoom {
                name: format!("{NAME}{username}{suffix}"),
                description: Some(format!("{}{username} {id}", self.purpose())),
                parent: None,
                ephemeral: false,
                public: false,
                encrypted: false,
            };
            match registry.desk.ask(&speaker, CreateRoom(new)).await {
                Err(refusal @ Refusal::Mesh(Refused::NameTaken(_))) => taken = refusal,
                made => return made,
            }
        }
        Err(taken)
    }
}

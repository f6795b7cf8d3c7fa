//! Requests about rooms, and about the details that their keys have set (spec §3, §5).

use bridge::{
    seam::call::{
        DescribeRoom, ListRooms, ReadDetails, RetireAgent, SetMember, SetRoom, ShareRoom,
    },
    session::seat::Seat,
};
use mesh::{
    api::command::{AgentView, MemberAct, RoomInfo, RoomView, ShareAct},
    name::id::RoomId,
    records::{
        details::{Details, DetailsUpdate, RoomState},
        members::Role,
    },
};
use protocol::{
    object::Room,
    reply::{Empty, Reply as Frame, RoomInfoResult, RoomList},
    request,
    value::{SettingsUpdate, Update},
};

use crate::{
    codes::Problem,
    conversation::{Turn, viewer},
    encode::{self, Viewer},
    voice::Voice,
};

/// Those to whom a turn may pass.
fn order(members: &[AgentView]) -> Vec<String> {
    let regulars = members.iter().filter(|member| !member.guest);
    regulars.map(|member| member.agent.to_string()).collect()
}

impl Turn {
    pub(crate) fn list_rooms(self, seat: &mut Seat, list: &request::ListRooms) {
        self.at_any(seat, list.parent_id.as_deref(), |turn, seat, parent| {
            seat.ask(ListRooms { parent }, move |seat, rooms| match rooms {
                Ok(rooms) => turn.show_list(seat, rooms),
                Err(refusal) => turn.refuse(seat, refusal),
            });
        });
    }

    fn show_list(self, seat: &mut Seat, mut rooms: Vec<RoomView>) {
        rooms.retain(|room| !room.closed);
        let to = viewer(seat);
        self.ask(seat, details_of(&rooms), move |voice, details| {
            Frame::RoomList(RoomList { rooms: shown(voice, &rooms, &details, &to) })
        });
    }

    pub(crate) fn describe_room(self, seat: &mut Seat, room: RoomId) {
        self.describe(seat, room, |turn, seat, info, room| {
            let to = viewer(seat);
            turn.ask(seat, details_of(&info.sub_rooms), move |voice, details| {
                Frame::RoomInfo(Box::new(RoomInfoResult {
                    room,
                    agents: info.agents.iter().map(encode::agent).collect(),
                    sub_rooms: shown(voice, &info.sub_rooms, &details, &to),
                    current_turn_holder: info.turn.as_deref().map(String::from),
                    turn_order: order(&info.agents),
                }))
            });
        });
    }

    pub(crate) fn share_room(self, seat: &mut Seat, share: request::ShareRoom) {
        self.share(seat, &share.room_id, share.agent_id, ShareAct::Give);
    }

    pub(crate) fn unshare_room(self, seat: &mut Seat, share: request::UnshareRoom) {
        self.share(seat, &share.room_id, share.agent_id, ShareAct::Take);
    }

    fn share(self, seat: &mut Seat, room: &str, agent: String, act: ShareAct) {
        self.at(seat, room, |turn, seat, room| {
            let share = ShareRoom { room, agent: agent.into(), act };
            turn.ask(seat, share, |_, ()| Frame::Shared(Empty {}));
        });
    }

    pub(crate) fn add_member(self, seat: &mut Seat, add: request::AddMember) {
        let request::AddMember { room_id, agent_id, role } = add;
        match role.as_deref().map_or(Some(Role::Member), Role::named) {
            Some(role) => self.set_member(seat, &room_id, agent_id, MemberAct::Put(role)),
            None => {
                let names = Role::ALL.map(|role| format!("`{}`", role.name()));
                self.refuse(seat, Problem::invalid(format!("`role` must be {}", names.join(", "))));
            }
        }
    }

    pub(crate) fn remove_member(self, seat: &mut Seat, remove: request::RemoveMember) {
        self.set_member(seat, &remove.room_id, remove.agent_id, MemberAct::Remove);
    }

    pub(crate) fn retire_agent(self, seat: &mut Seat, retire: request::RetireAgent) {
        let retire = RetireAgent(retire.agent_id.into());
        self.ask(seat, retire, |_, ()| Frame::Shared(Empty {}));
    }

    fn set_member(self, seat: &mut Seat, room: &str, agent: String, act: MemberAct) {
        self.at(seat, room, |turn, seat, room| {
            let set = SetMember { room, agent: agent.into(), act };
            turn.ask(seat, set, |_, ()| Frame::Shared(Empty {}));
        });
    }

    pub(crate) fn set_room(self, seat: &mut Seat, set: request::SetRoom) {
        let room = set.room_id.clone();
        let update = match update(set) {
            Ok(update) => update,
            Err(problem) => return self.refuse(seat, problem),
        };
        self.at(seat, &room, |turn, seat, room| {
            seat.ask(SetRoom { room, update }, move |seat, done| match done {
                // As it is read from now on.
                Ok(()) => turn.describe(seat, room, |turn, seat, _, room| {
                    turn.reply(seat, &Frame::Room(Box::new(room)));
                }),
                Err(refusal) => turn.refuse(seat, refusal),
            });
        });
    }

    /// Goes on with a room and its details.
    fn describe(
        self,
        seat: &mut Seat,
        room: RoomId,
        go_on: impl FnOnce(Turn, &mut Seat, RoomInfo, Room) + Send + 'static,
    ) {
        let to = viewer(seat);
        seat.ask(DescribeRoom(room), move |seat, info| match info {
            Ok(info) => {
                let read = ReadDetails { rooms: vec![room], settings: true };
                seat.ask(read, move |seat, details| match details {
                    Ok(details) => {
                        let view = std::slice::from_ref(&info.room);
                        let room = shown(&self.voice, view, &details, &to).into_iter().next();
                        let Some(room) = room.map(|room| encode::with_lists(room, &info.room))
                        else {
                            return;
                        };
                        go_on(self, seat, info, room);
                    }
                    Err(refusal) => self.refuse(seat, refusal),
                });
            }
            Err(refusal) => self.refuse(seat, refusal),
        });
    }
}

/// The question for the details of these rooms, without their settings: those of hundreds of rooms are much.
pub(crate) fn details_of(rooms: &[RoomView]) -> ReadDetails {
    ReadDetails { rooms: rooms.iter().map(|view| view.room).collect(), settings: false }
}

/// Rooms with their details, as this agent sees them.
pub(crate) fn shown(
    voice: &Voice,
    rooms: &[RoomView],
    details: &[Details],
    to: &Viewer,
) -> Vec<Room> {
    let room = |(view, details)| encode::detailed(encode::room(voice.lobby(), view, to), details);
    rooms.iter().zip(details).map(room).collect()
}

fn update(set: request::SetRoom) -> Result<DetailsUpdate, Problem> {
    let request::SetRoom { room_id: _, title, description, state, settings } = set;
    let state = match change(state) {
        Some(Some(name)) => Some(Some(state_of(&name)?)),
        Some(None) => Some(None),
        None => None,
    };
    let SettingsUpdate(settings) = settings.unwrap_or_default();
    let settings = settings.into_iter().map(|(name, value)| {
        let json = value.map(|value| String::from(value.get()));
        (name, json)
    });
    Ok(DetailsUpdate {
        closes: false,
        // Nobody is shown an empty title. An empty description hides the one that the room was made with.
        title: change(title).map(|title| title.filter(|text| !text.is_empty())),
        description: change(description),
        state,
        settings: settings.collect(),
        ..DetailsUpdate::default()
    })
}

fn change(update: Update<String>) -> Option<Option<String>> {
    match update {
        Update::Keep => None,
        Update::Delete => Some(None),
        Update::Set(text) => Some(Some(text)),
    }
}

fn state_of(name: &str) -> Result<RoomState, Problem> {
    RoomState::of(name).ok_or_else(|| {
        let names = RoomState::ALL.map(|state| format!("`{}`", state.name()));
        Problem::invalid(format!("`state` must be {}, or null", names.join(", ")))
    })
}

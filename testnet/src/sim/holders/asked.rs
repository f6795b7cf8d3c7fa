//! Requests of holders of keys to nodes, until they are answered.

use mesh::{
    api::{
        account::RecordWrite,
        command::{NewRoom, ShareAct},
    },
    name::id::{AgentId, KeyPrint, RoomId},
    records::{details::DetailsUpdate, profile::ProfileUpdate},
};

use super::accounts::letters::Letter;

/// A registration, and the answers that it must and must not get.
#[derive(Clone, Debug)]
pub(super) struct Registering {
    pub(super) holder: usize,
    pub(super) reconnect: bool,
    pub(super) must_be_valid: bool,
    pub(super) must_be_refused: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Asked {
    Mint(usize),
    Revoke {
        key: usize,
        must_be_known: bool,
    },
    Attach(Registering),
    Detach,
    Create(usize, Box<NewRoom>),
    Join(usize, RoomId),
    Leave(usize, RoomId),
    Say(RoomId),
    Profile(ProfileSaid),
    /// An account.
    Claim(usize),
    /// The order in which its name was claimed.
    Order(usize),
    Records(RecordsSaid),
    Details(DetailsSaid),
    /// The list of members of a room.
    Member,
    /// The agent that opens a direct room, and the other one.
    Open(usize, usize),
    File(FileSaid),
    /// A room that can be shared, by an agent of this key.
    MakeShared(usize),
    Share(RoomId, ShareAct),
}

/// Records that an account writes.
#[derive(Clone, Debug)]
pub(super) struct RecordsSaid {
    pub(super) account: KeyPrint,
    pub(super) writes: Vec<RecordWrite>,
    /// What is in the mail, if it is one.
    pub(super) letter: Option<Letter>,
}

/// A change of a profile.
#[derive(Clone, Debug)]
pub(super) struct ProfileSaid {
    pub(super) agent: AgentId,
    pub(super) key: KeyPrint,
    pub(super) update: ProfileUpdate,
}

/// A change of a room's details.
#[derive(Clone, Debug)]
pub(super) struct DetailsSaid {
    pub(super) room: RoomId,
    pub(super) key: KeyPrint,
    pub(super) update: DetailsUpdate,
}

/// A change of a room's file.
#[derive(Clone, Debug)]
pub(super) struct FileSaid {
    pub(super) room: RoomId,
    pub(super) key: KeyPrint,
    pub(super) path: String,
    /// The key made the room. Else it may write only if its maker says so.
    pub(super) own: bool,
    /// `None`: the file is to go.
    pub(super) text: Option<String>,
}

//! Shared rooms of agents with minted keys: making them, giving them to the other key, and taking them back.

use std::{collections::BTreeMap, sync::Arc};

use mesh::{
    api::command::{Command, NewRoom, Refused, RoomView, Share, ShareAct},
    name::id::{KeyPrint, RoomId},
};

use super::{BLUE, Holders, MARK, RED, asked::Asked};
use crate::sim::{cluster::Cluster, coverage::Happening, parts::Seated};

/// Shared rooms of one key.
const SHARED_MAX: usize = 2;

/// How far an act has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Come {
    /// Nobody wanted it.
    #[default]
    Nowhere,
    /// It may be done, or not.
    Asked,
    /// A node said that it is.
    Done,
}

/// A room, and the acts of its maker for the other key.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedRoom {
    pub(super) room: RoomId,
    /// The key that made it.
    pub(super) maker: usize,
    pub(super) given: Come,
    pub(super) taken: Come,
}

impl SharedRoom {
    /// The key that it can be given to.
    pub(super) fn other(&self) -> usize {
        if self.maker == RED { BLUE } else { RED }
    }
}

/// Rooms by their ids.
#[derive(Debug, Default)]
pub(super) struct SharedRooms(BTreeMap<RoomId, SharedRoom>);

impl SharedRooms {
    pub(super) fn all(&self) -> Vec<SharedRoom> {
        self.0.values().copied().collect()
    }

    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.contains_key(&room)
    }

    /// Rooms that a key has, or may have.
    pub(super) fn of_key(&self, key: usize) -> impl Iterator<Item = RoomId> {
        let has = move |it: &&SharedRoom| it.maker == key || it.given != Come::Nowhere;
        self.0.values().filter(has).map(|it| it.room)
    }
}

impl Holders {
    /// An agent makes a shared room, gives one to the other key, or takes it from that key.
    pub(super) fn share(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let key = self.holders[i].key;
        if !matches!(key, RED | BLUE) {
            return;
        }
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let own: Vec<SharedRoom> =
            self.shared.0.values().filter(|it| it.maker == key).copied().collect();
        if own.is_empty() || (own.len() < SHARED_MAX && cluster.dice.chance(30)) {
            let room = NewRoom {
                name: format!("ours {} {MARK}", cluster.text()),
                description: Some(format!("what is {MARK}")),
                parent: None,
                ephemeral: false,
                public: false,
                encrypted: false,
            };
            let command = Command::CreateShared { caller: by.caller, signer, room };
            return self.calls.ask(cluster, by.node, Asked::MakeShared(key), command);
        }
        let SharedRoom { room, .. } = *cluster.dice.pick(&own);
        let others = 0..self.holders.len();
        let others: Vec<usize> = others
            .filter(|other| self.may_be_written_to(*other) && self.holders[*other].key != key)
            .collect();
        if others.is_empty() {
            return;
        }
        let agent = self.holders[*cluster.dice.pick(&others)].id.clone();
        let act = if cluster.dice.chance(85) { ShareAct::Give } else { ShareAct::Take };
        self.note_sharing(room, act, Come::Asked);
        let share = Share { caller: by.caller, signer, room, agent, act };
        let command = Command::Share(Box::new(share));
        self.calls.ask(cluster, by.node, Asked::Share(room, act), command);
    }

    /// Whether an agent is refused because its key does not have a room yet, or any more.
    pub(super) fn is_out(&self, asked: &Asked, refused: &Refused) -> bool {
        let (Asked::Join(_, room) | Asked::Leave(_, room) | Asked::Say(room)) = asked else {
            return false;
        };
        *refused == Refused::NotYours && self.shared.has(*room)
    }

    pub(super) fn shared_is_made(&mut self, cluster: &mut Cluster, key: usize, view: &RoomView) {
        cluster.coverage.count(Happening::SharedRoom);
        let (given, taken) = (Come::Nowhere, Come::Nowhere);
        let made = SharedRoom { room: view.room, maker: key, given, taken };
        self.shared.0.insert(view.room, made);
    }

    pub(super) fn note_sharing(&mut self, room: RoomId, act: ShareAct, come: Come) {
        if let Some(shared) = self.shared.0.get_mut(&room) {
            let known = match act {
                ShareAct::Give => &mut shared.given,
                ShareAct::Take => &mut shared.taken,
            };
            *known = come.max(*known);
        }
    }

    /// Keys whose nodes may have shared rooms of this one.
    pub(super) fn may_have_shared_of(&self, maker: KeyPrint) -> Vec<KeyPrint> {
        let of_maker = |it: &&SharedRoom| self.keys[it.maker].print == maker;
        let given = self.shared.0.values().filter(of_maker);
        let given = given.filter(|it| it.given != Come::Nowhere).map(SharedRoom::other);
        let others = given.map(|key| self.keys[key].print);
        others.chain([maker]).collect()
    }
}

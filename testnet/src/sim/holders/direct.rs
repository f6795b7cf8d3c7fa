//! Rooms of two keys: direct rooms, and shared ones. Opening, making and giving them, and the promise of every moment.
//!
//! *direct*: each of two agents that opens their room gets the same one, on any side of a split.

use std::{collections::BTreeMap, sync::Arc};

use mesh::{
    api::command::{Command, NewRoom, Refused, RoomView, Share, ShareAct},
    name::id::{AgentId, KeyPrint, RoomId},
};

use super::{
    BLUE, Holders, MARK, RED,
    asked::Asked,
    shared::{Come, SharedRoom},
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::Seated,
    promises::{Broken, broken},
};

/// Shared rooms of one key.
const SHARED_MAX: usize = 2;

/// Rooms by the places of their two agents, the lower one first.
#[derive(Debug, Default)]
pub(super) struct Direct(BTreeMap<(usize, usize), RoomId>);

impl Direct {
    pub(super) fn rooms(&self) -> Vec<((usize, usize), RoomId)> {
        self.0.iter().map(|(sides, room)| (*sides, *room)).collect()
    }

    pub(super) fn has(&self, room: RoomId) -> bool {
        self.0.values().any(|known| *known == room)
    }
}

impl Holders {
    /// Agents whose ids and keys stay their own.
    pub(super) fn may_be_written_to(&self, i: usize) -> bool {
        let holder = &self.holders[i];
        !holder.contested && matches!(holder.key, RED | BLUE)
    }

    /// An agent opens its room with another one, or with itself.
    pub(super) fn open_direct(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let others: Vec<usize> =
            (0..self.holders.len()).filter(|other| self.may_be_written_to(*other)).collect();
        if !self.may_be_written_to(i) {
            return;
        }
        let with = *cluster.dice.pick(&others);
        let agent = self.holders[with].id.clone();
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let command = Command::OpenDirect { caller: by.caller, signer, agent, task: None };
        self.calls.ask(cluster, by.node, Asked::Open(i, with), command);
    }

    pub(super) fn direct_is_open(
        &mut self,
        cluster: &mut Cluster,
        i: usize,
        with: usize,
        view: &RoomView,
    ) -> Result<(), Broken> {
        let sides = (i.min(with), i.max(with));
        let room = *self.direct.0.entry(sides).or_insert(view.room);
        if room != view.room || view.public {
            let what = format!("agents {sides:?} have {room}, and then {view:?}");
            return broken("direct", what);
        }
        cluster.coverage.count(Happening::Direct);
        self.holders[i].rooms.insert(room);
        Ok(())
    }

    /// A node has given an agent a seat, so that the agent answers messages there.
    pub(super) fn is_seated(&mut self, node: usize, agent: &AgentId, room: RoomId) {
        let there = |at: &Seated| at.node == node && at.caller.agent == *agent;
        for holder in &mut self.holders {
            if holder.place.as_ref().is_some_and(there) {
                holder.rooms.insert(room);
            }
        }
    }
}

/// Shared rooms.
impl Holders {
    /// An agent makes a shared room, gives one to the other key, or takes it from that key.
    pub(super) fn share(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let key = self.holders[i].key;
        if !matches!(key, RED | BLUE) {
            return;
        }
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let own: Vec<SharedRoom> = self.shared.made_by(key).copied().collect();
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
        self.shared.note(room, act, Come::Asked);
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
        self.shared.make(view.room, key, if key == RED { BLUE } else { RED });
    }

    pub(super) fn is_shared(&mut self, cluster: &mut Cluster, (room, act): (RoomId, ShareAct)) {
        if act == ShareAct::Give {
            cluster.coverage.count(Happening::Shared);
        }
        self.shared.note(room, act, Come::Done);
    }

    /// Keys whose nodes may have shared rooms of this one.
    pub(super) fn may_have_shared_of(&self, maker: KeyPrint) -> Vec<KeyPrint> {
        let rooms = self.shared.all().into_iter();
        let given =
            rooms.filter(|it| self.keys[it.maker].print == maker && it.given != Come::Nowhere);
        given.map(|it| self.keys[it.other].print).chain([maker]).collect()
    }
}

//! The parts of a world: each asks nodes for something, owns what it knows of that, and understands the answers to
//! its own calls. A [`Matter`] is one that every node has to tell alike in the end.

use std::{
    any::type_name,
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use mesh::{
    Input,
    api::command::{CallId, Caller, Command, Outcome, Refused},
    name::id::{EntryRef, RoomId},
};

use super::{
    cluster::Cluster,
    promises::{Broken, broken},
};

/// A part of a world.
pub(super) trait Part {
    /// A node answers a call. Whether the call was of this part.
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken>;

    /// A node is down: calls that were open there are never answered.
    fn node_down(&mut self, cluster: &Cluster, node: usize);

    /// Whether it has an opinion of refusals because of a full disk. To all others the node is out of service.
    fn judges_full_disks(&self) -> bool {
        false
    }

    /// An ephemeral room ended at a node.
    fn forgot(&mut self, _node: usize, _room: RoomId) {}

    /// The room in which a call says something.
    fn said_in(&self, _call: CallId) -> Option<RoomId> {
        None
    }

    /// Calls made before now that nobody answered though their node lives, each as a failure shows it.
    fn open(&self, _now: Duration) -> Vec<String> {
        Vec::new()
    }

    /// How agents' calls were answered.
    fn answers(&self) -> Answers {
        Answers::default()
    }
}

/// How many calls were answered, and how many of them with a refusal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    pub(super) all: u64,
    pub(super) refused: u64,
}

/// An answer to a call.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) node: usize,
    pub(super) call: CallId,
    pub(super) result: Result<Outcome, Refused>,
}

/// An agent at its node.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    pub(super) node: usize,
    pub(super) caller: Caller,
}

/// A call that was not answered yet.
#[derive(Debug)]
struct Open<A> {
    node: usize,
    at: Duration,
    asked: A,
}

/// The calls of a part, each with its purpose.
#[derive(Debug)]
pub(super) struct Calls<A> {
    open: BTreeMap<CallId, Open<A>>,
    answers: Answers,
}

impl<A> Default for Calls<A> {
    fn default() -> Calls<A> {
        Calls { open: BTreeMap::new(), answers: Answers::default() }
    }
}

impl<A: fmt::Debug> Calls<A> {
    pub(super) fn ask(&mut self, cluster: &mut Cluster, node: usize, asked: A, command: Command) {
        let call = cluster.call();
        self.open.insert(call, Open { node, at: cluster.now(), asked });
        cluster.give(node, Input::Command { call, command });
    }

    /// The purpose of the call that is answered, if it is one of these.
    pub(super) fn take(&mut self, reply: &Reply) -> Option<A> {
        let Open { asked, .. } = self.open.remove(&reply.call)?;
        self.answers.all += 1;
        self.answers.refused += u64::from(reply.result.is_err());
        Some(asked)
    }

    pub(super) fn node_down(&mut self, node: usize) {
        self.open.retain(|_, call| call.node != node);
    }

    pub(super) fn asked(&self, call: CallId) -> Option<&A> {
        self.open.get(&call).map(|call| &call.asked)
    }

    pub(super) fn any_open(&self, now: Duration) -> bool {
        self.open.values().any(|call| call.at < now)
    }

    /// A call that is made at this very moment cannot have been answered.
    pub(super) fn open(&self, now: Duration) -> Vec<String> {
        let part = type_name::<A>();
        let open = self.open.iter().filter(|(_, call)| call.at < now);
        let show = |(id, Open { node, at, asked }): (&CallId, &Open<A>)| {
            format!("{part} {id:?} at node{node} since {at:?}: {asked:?}")
        };
        open.map(show).collect()
    }

    pub(super) fn answers(&self) -> Answers {
        self.answers
    }
}

/// A thing that agents open and act on, and of which every node says the same in the end: a vote, say.
pub(super) trait Matter {
    /// The purpose of a call.
    type Asked: fmt::Debug;
    /// A node's answer when it is asked how things stand.
    type View;

    fn desk(&self) -> &Desk<Self::Asked, Self::View>;

    fn desk_mut(&mut self) -> &mut Desk<Self::Asked, Self::View>;

    /// A node answers, and the answer is noted. Whether it is one that was expected.
    fn answered(
        &mut self,
        cluster: &Cluster,
        node: usize,
        asked: &Self::Asked,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken>;

    /// Whether a call may be refused so, besides [`may_be_in_the_way`].
    fn may_be_refused(&self, asked: &Self::Asked, refused: &Refused) -> bool;

    /// More that is lost when a node goes down.
    fn lost(&mut self, _cluster: &Cluster, _node: usize) {}

    /// An ephemeral room ended at a node.
    fn ended(&mut self, _node: usize, _room: RoomId) {}

    /// The room in which a call says something.
    fn says_in(_asked: &Self::Asked) -> Option<RoomId> {
        None
    }
}

/// The state that all matters keep alike.
#[derive(Debug)]
pub(super) struct Desk<A, V> {
    pub(super) calls: Calls<A>,
    /// Each node's answer to the last question that all were asked.
    pub(super) views: BTreeMap<usize, V>,
    /// Nodes that were down at some time: they may have lost something that they were about to tell.
    pub(super) went_down: BTreeSet<usize>,
}

impl<A, V> Default for Desk<A, V> {
    fn default() -> Desk<A, V> {
        Desk { calls: Calls::default(), views: BTreeMap::new(), went_down: BTreeSet::new() }
    }
}

impl<M: Matter> Part for M {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Reply { node, result, .. } = reply;
        let Some(asked) = self.desk_mut().calls.take(reply) else { return Ok(false) };
        if self.answered(cluster, *node, &asked, result)? {
            return Ok(true);
        }
        match result {
            Err(_) if cluster.is_exempt(*node) => Ok(true),
            Err(refused) if may_be_in_the_way(refused) || self.may_be_refused(&asked, refused) => {
                Ok(true)
            }
            Ok(_) | Err(_) => broken("replies", format!("node{node}: {asked:?} got {result:?}")),
        }
    }

    fn node_down(&mut self, cluster: &Cluster, node: usize) {
        let desk = self.desk_mut();
        desk.calls.node_down(node);
        desk.went_down.insert(node);
        self.lost(cluster, node);
    }

    fn forgot(&mut self, node: usize, room: RoomId) {
        self.ended(node, room);
    }

    fn said_in(&self, call: CallId) -> Option<RoomId> {
        self.desk().calls.asked(call).and_then(M::says_in)
    }

    fn open(&self, now: Duration) -> Vec<String> {
        self.desk().calls.open(now)
    }

    fn answers(&self) -> Answers {
        self.desk().calls.answers()
    }
}

/// The room ended, or the agent lost its seat or its connection meanwhile: that may happen to every call in a room.
pub(super) fn may_be_in_the_way(refused: &Refused) -> bool {
    matches!(
        refused,
        Refused::NoRoom
            | Refused::NotMember
            | Refused::Superseded
            | Refused::Closed
            | Refused::SessionClosed
            | Refused::Stopping
    )
}

/// An act that is durable at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) node: usize,
    pub(super) room: RoomId,
    pub(super) place: EntryRef,
    pub(super) clock: u64,
    pub(super) wall_ms: u64,
    /// When the node's engine took it in: it may have been stored later.
    pub(super) taken: Duration,
}

//! *durable*: a send that asked for copies is never answered with more of them than there are nodes whose disks hold the
//! message at that moment, with the entry that numbers it. And a message that was answered so outlives the disk of the
//! node that answered: see [`Kind::WithLoss`](super::kind::Kind).

use std::time::Duration;

use mesh::{
    api::command::{Command, Durable, MessageReceipts, Refused, SaidOk, StoredAt},
    name::{
        id::{LocalRef, RoomId},
        number::Number,
    },
};

use super::{
    cluster::Cluster,
    coverage::Happening,
    keys::KEY,
    promises::{Broken, Entry, broken},
};

/// One send in so many asks for copies.
const ONE_IN: u64 = 6;

/// The copies that a send wants, of the message with this number among all texts.
pub(super) fn wanted(cluster: &Cluster, text: u64) -> Option<Durable> {
    if !text.is_multiple_of(ONE_IN) {
        return None;
    }
    let most = cluster.nodes.len() as u64;
    let copies = usize::try_from(1 + text / ONE_IN % most).expect("few");
    Some(Durable { copies, within: Duration::from_millis(200 + text % 7 * 300) })
}

/// Whether a send may be refused because of the copies that it wants: its node may not know of all nodes yet, or not all
/// have the room.
pub(super) fn may_be_refused(
    cluster: &Cluster,
    room: RoomId,
    durable: Option<Durable>,
    refused: &Refused,
) -> bool {
    let Some(Durable { copies, .. }) = durable else { return false };
    if let Refused::TooManyCopies { max } = refused {
        return copies > *max && *max < cluster.nodes.len();
    }
    matches!(refused, Refused::NotDurable) && cluster.rooms.is_ephemeral(room)
}

/// A question: the fate of this message?
#[derive(Clone, Copy, Debug)]
pub(super) struct Inquiry {
    room: RoomId,
    at: LocalRef,
    entry: Entry,
    number: Number,
}

/// About some of the messages that a node has answered, its agents ask.
pub(super) fn inquiry(
    cluster: &Cluster,
    node: usize,
    room: RoomId,
    said: &SaidOk,
) -> Option<Inquiry> {
    let number = said.number;
    let running = cluster.nodes[node].running.as_ref().filter(|_| number.0.is_multiple_of(16))?;
    let row = running.reader.by_message(room, said.message).ok()??;
    Some(Inquiry { room, at: row.at, entry: (row.log, row.at.seq), number })
}

impl Inquiry {
    pub(super) fn command(self) -> Command {
        let Inquiry { room, at, number, .. } = self;
        Command::Receipts { by: (*KEY).into(), room, at, number }
    }

    /// *durable*: nodes that were said to hold the message do, unless they lie, or their disks are lost or an earlier
    /// copy since.
    pub(super) fn is_answered_truly(
        self,
        cluster: &mut Cluster,
        receipts: &MessageReceipts,
    ) -> Result<(), Broken> {
        let liar = cluster.plan.liar.then(|| cluster.nodes.len() - 1);
        for StoredAt { node, .. } in &receipts.stored {
            let Some(i) = cluster.index(*node) else { continue };
            let state = &cluster.nodes[i];
            if !state.holds(self.room, self.entry, self.number)
                && !state.is_lost()
                && !state.is_restored()
                && liar != Some(i)
            {
                return broken("durable", format!("node{i} was said to hold {self:?}"));
            }
        }
        let known = receipts.stored.len() + receipts.unknown.len();
        // A liar speaks as nodes that there are not.
        let too_many = receipts.of > cluster.nodes.len() && !cluster.plan.liar;
        if known >= receipts.of || too_many {
            return broken("durable", format!("{receipts:?} of {} nodes", cluster.nodes.len()));
        }
        if !receipts.stored.is_empty() {
            cluster.coverage.count(Happening::Inquired);
        }
        Ok(())
    }
}

/// A message with the answer to its send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered<'a> {
    pub(super) room: RoomId,
    pub(super) entry: Entry,
    pub(super) said: &'a SaidOk,
}

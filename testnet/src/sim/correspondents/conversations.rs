//! *budgets*: a conversation of two agents has no more than two messages and the turns that both nodes allow, and each turn
//! once; no chain of conversations is longer than a node allows, and each conversation that one leads to is further in the
//! chain; a message that goes over a node's own budgets is told to none of its agents; and agents that answer everything come to rest.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::{budget::Budgets, event::Delivered},
    name::{
        id::{MessageId, NodeId, RoomId},
        number::Number,
    },
    wire::{conversation::Conversation, entry::Said},
};

use store::Row;

use super::{Correspondents, Role, asked::Item, inbox_rows};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    promises::{Broken, Entry, broken},
};

const BUDGETS: &str = "budgets";

/// Whether a message in a direct room, by another node, goes over a node's own budgets.
pub(super) fn is_over(cluster: &Cluster, node: usize, (author, said): (NodeId, &Said)) -> bool {
    let Budgets { turns, hops, .. } = *cluster.nodes[node].budgets();
    let over = |place: Conversation| place.turn > turns.saturating_add(1) || place.hops > hops;
    author != cluster.nodes[node].id && said.conversation.is_some_and(over)
}

/// A node tells an agent of a message in a direct room.
pub(super) fn may_be_told(
    cluster: &Cluster,
    node: usize,
    message: &Delivered,
) -> Result<(), Broken> {
    let Some(said) = &message.said else { return Ok(()) };
    if is_over(cluster, node, (message.log.author, said)) {
        let what = format!("node{node} tells of {:?}", said.conversation);
        return broken(BUDGETS, what);
    }
    Ok(())
}

/// How many conversations led to one, if the next one is to be further in the chain: not if the agent was mentioned in a room,
/// and not if it is answered, and was not asked anything in return.
pub(super) fn leads_on(
    cluster: &Cluster,
    node: usize,
    direct: Option<(usize, usize)>,
    row: &Row,
) -> Option<u32> {
    let said = row.said.as_ref()?;
    let place = said.conversation?;
    let own = place.turn == 1 && !place.expects_reply;
    let over = is_over(cluster, node, (row.log.author, said));
    (direct.is_some() && !own && !over).then_some(place.hops)
}

/// An agent was told something, and asks another one: that is one further in the chain.
pub(super) fn is_further(
    cluster: &Cluster,
    node: usize,
    (room, message): (RoomId, MessageId),
    item: Item,
) -> Result<(), Broken> {
    let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
    let row = running.reader.by_message(room, message)?;
    let place = row.and_then(|row| row.said?.conversation);
    let (Some(place), Some(before)) = (place, item.hops) else { return Ok(()) };
    if place.hops <= before {
        let what = format!(
            "at node{node} a conversation of hop {before}, {item:?}, leads to one of hop {}",
            place.hops
        );
        return broken(BUDGETS, what);
    }
    Ok(())
}

/// The messages of a conversation, by their turns.
type Turns = BTreeMap<u32, BTreeSet<Entry>>;

#[derive(Debug, Default)]
pub(super) struct Conversations {
    /// The messages that there were in all direct rooms when it was to be quiet.
    quiet_at: Option<usize>,
}

impl Correspondents {
    /// *budgets*, of all conversations that any node has.
    pub(super) fn are_within_budgets(&self, cluster: &mut Cluster) -> Result<usize, Broken> {
        let (mut all, mut entries) =
            (BTreeMap::<(RoomId, MessageId), Turns>::new(), BTreeSet::new());
        let mut kept_back = 0;
        for (node, running) in cluster.nodes.iter().enumerate() {
            let Some(running) = &running.running else { continue };
            for (sides, room) in &self.direct {
                for row in inbox_rows::rows_after(&running.reader, *room, Number::ZERO) {
                    let Some(said) = &row.said else { continue };
                    entries.insert((row.log, row.at.seq));
                    let over = is_over(cluster, node, (row.log.author, said));
                    kept_back += u64::from(over);
                    let Some(place) = said.conversation.filter(|_| !self.is_boundless(*sides))
                    else {
                        continue;
                    };
                    self.is_within(cluster, row.log.author, &place)?;
                    let turns = all.entry((*room, place.id(row.message))).or_default();
                    turns.entry(place.turn).or_default().insert((row.log, row.at.seq));
                }
            }
        }
        (0..kept_back).for_each(|_| cluster.coverage.count(Happening::KeptBack));
        for ((room, conversation), turns) in all {
            self.is_short(cluster, (room, conversation), &turns)?;
        }
        Ok(entries.len())
    }

    fn is_boundless(&self, (one, other): (usize, usize)) -> bool {
        [one, other].into_iter().any(|side| self.agents[side].role == Role::Brags)
    }

    /// Of one message.
    fn is_within(
        &self,
        cluster: &Cluster,
        author: NodeId,
        place: &Conversation,
    ) -> Result<(), Broken> {
        let Some(node) = cluster.index(author) else { return Ok(()) };
        let Budgets { turns, hops, .. } = *cluster.nodes[node].budgets();
        let within = place.max_turns <= turns && place.turn <= place.last_turn();
        if within && place.hops <= hops {
            return Ok(());
        }
        broken(
            BUDGETS,
            format!(
                "node{node}, which allows {turns} turns and {hops} hops, has written {place:?}"
            ),
        )
    }

    /// Of all messages of a conversation.
    fn is_short(
        &self,
        cluster: &Cluster,
        (room, conversation): (RoomId, MessageId),
        turns: &Turns,
    ) -> Result<(), Broken> {
        let Some((one, other)) = self.sides(room) else { return Ok(()) };
        let allowed =
            [one, other].map(|side| cluster.nodes[self.agents[side].home].budgets().turns);
        let most =
            usize::try_from(allowed[0].min(allowed[1])).unwrap_or(usize::MAX).saturating_add(2);
        let count: usize = turns.values().map(BTreeSet::len).sum();
        let twice = turns.values().any(|entries| entries.len() > 1);
        if count <= most && !twice {
            return Ok(());
        }
        let what =
            format!("{conversation} has {count} messages, and {most} are allowed: {turns:?}");
        broken(BUDGETS, what)
    }

    /// It is to be quiet from now on.
    pub(super) fn hush(&mut self, messages: usize) {
        self.conversations.quiet_at = Some(messages);
    }

    /// *budgets*: agents that answer everything have come to rest.
    pub(super) fn are_quiet(&self, messages: usize) -> Result<(), Broken> {
        match self.conversations.quiet_at {
            Some(before) if before != messages => {
                let what =
                    format!("{before} messages have become {messages}, and it was to be quiet");
                broken(BUDGETS, what)
            }
            Some(_) | None => Ok(()),
        }
    }
}

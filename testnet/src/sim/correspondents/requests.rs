//! *requests*: nobody says that a request was handed over that was not; when nothing is under way any more each one was handed
//! over or has failed, and all nodes that have its room say the same; and no node says anything twice.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::{batch::Change, command::Command, delivery::Stage},
    name::{
        id::{EntryRef, LogId, MessageId, RoomId},
        number::Number,
    },
    wire::kinds::DELIVERY,
};

use super::{Asked, Correspondents};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::Seated,
    promises::{Broken, Entry, broken},
};

const REQUESTS: &str = "requests";
/// Items of an inbox that an agent reads at once.
const READ_AT_ONCE: usize = 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Those that nodes have taken, and the agents that ask.
    asked: BTreeMap<MessageId, (RoomId, usize)>,
    /// Those that were handed to the agents that are asked, as their bridges say.
    given: BTreeSet<MessageId>,
    /// Entries by which each node has said something, by room, in its own logs.
    said: BTreeMap<(usize, RoomId), BTreeSet<Entry>>,
}

impl Requests {
    /// A node has taken a request.
    pub(super) fn is_asked(&mut self, message: MessageId, room: RoomId, by: usize) {
        self.asked.insert(message, (room, by));
    }

    /// A batch is durable at a node.
    pub(super) fn stored(&mut self, cluster: &Cluster, node: usize, batch: &[Change]) {
        for change in batch {
            let Change::Entry { room, at, entry } = change else { continue };
            if entry.facts.kind == DELIVERY
                && let Ok(entry) = cluster.entry(node, *room, *at)
                && entry.0.author == cluster.nodes[node].id
            {
                self.said.entry((node, *room)).or_default().insert(entry);
            }
        }
    }

    /// A node says the fate of a request.
    pub(super) fn told(
        &self,
        cluster: &mut Cluster,
        node: usize,
        (request, stage): (MessageId, Stage),
    ) -> Result<(), Broken> {
        cluster.coverage.count(match stage {
            Stage::Arrived => Happening::RequestArrived,
            Stage::Delivered => Happening::RequestDelivered,
            Stage::Failed => Happening::RequestFailed,
        });
        if stage == Stage::Delivered && !self.given.contains(&request) {
            let what = format!("node{node} says that {request} was handed over, and it was not");
            return broken(REQUESTS, what);
        }
        Ok(())
    }
}

impl Correspondents {
    /// An agent reads what waits in its inbox, and its bridge says so.
    pub(super) fn read_inbox(&mut self, cluster: &mut Cluster, i: usize) {
        let Some(Seated { node, .. }) = self.agents[i].place.clone() else { return };
        let (agent, mark) = (self.agents[i].id.clone(), self.agents[i].inbox.as_ref());
        let mark = mark.map_or(0, |inbox| inbox.mark);
        let Some(running) = &cluster.nodes[node].running else { return };
        let (reader, fates) = (running.reader.clone(), running.engine.fates());
        let page = reader.inbox(&agent, mark, READ_AT_ONCE).expect("a sound store reads");
        let mut by_room: BTreeMap<RoomId, Vec<EntryRef>> = BTreeMap::new();
        for (_, item) in page.items.iter().filter(|(_, item)| item.number > Number::ZERO) {
            let row = reader.by_number(item.room, item.number).expect("a sound store reads");
            let Some((row, said)) = row.and_then(|row| Some((row.clone(), row.said?))) else {
                continue;
            };
            let asks = said.conversation.is_some_and(|place| place.expects_reply);
            let request = EntryRef { log: row.log, seq: row.at.seq };
            let fate = fates.of(item.room, request, &said.agent);
            let is_withdrawn = fate.is_some_and(|fate| fate.is_withdrawn());
            if asks && said.agent != agent && !is_withdrawn {
                self.requests.given.insert(row.message);
                by_room.entry(item.room).or_default().push(request);
            }
        }
        for (room, requests) in by_room {
            let command = Command::Handed { agent: agent.clone(), room, requests };
            self.calls.ask(cluster, node, Asked::Handed, command);
        }
    }

    /// *requests*, when nothing is under way.
    pub(super) fn requests_have_ended(&self, cluster: &Cluster) -> Result<(), Broken> {
        for (message, (room, by)) in &self.requests.asked {
            let mut said = BTreeSet::new();
            for (n, node) in cluster.nodes.iter().enumerate() {
                let Some(running) = &node.running else { continue };
                let row = running.reader.by_message(*room, *message)?;
                let Some(row) = row else { continue };
                let author = cluster.nodes.iter().position(|node| node.id == row.log.author);
                // Nobody gives up for a node that is gone, or that nobody believes any more.
                if author.is_none_or(|author| cluster.is_exempt(author)) || cluster.is_exempt(n) {
                    continue;
                }
                let request = EntryRef { log: row.log, seq: row.at.seq };
                let fate = running.engine.fates().of(*room, request, &self.agents[*by].id);
                said.insert(fate.map(|fate| fate.stage));
            }
            let has_ended = |stage: &Option<Stage>| stage.is_some_and(|of| of >= Stage::Failed);
            if said.len() > 1 || !said.iter().all(has_ended) {
                let what = format!("nodes say of {message} of {}: {said:?}", self.agents[*by].id);
                return broken(REQUESTS, what);
            }
        }
        self.nobody_repeats_itself(cluster)
    }

    fn nobody_repeats_itself(&self, cluster: &Cluster) -> Result<(), Broken> {
        for ((n, room), entries) in &self.requests.said {
            let Some(running) = &cluster.nodes[*n].running else { continue };
            let me = cluster.nodes[*n].id;
            let words = running.engine.fates().said_by(*room, me);
            let of_log = |log: LogId| entries.iter().filter(|entry| entry.0 == log).count();
            let log = LogId { author: me, incarnation: 0 };
            if !cluster.is_exempt(*n) && of_log(log) > words {
                let what = format!("node{n} has said {} times {words} words", of_log(log));
                return broken(REQUESTS, what);
            }
        }
        Ok(())
    }
}

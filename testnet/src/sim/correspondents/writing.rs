//! Agents that write as they like, move between nodes, and look into their inboxes now and then.

use std::time::Duration;

use mesh::{
    api::{
        budget::Conversing,
        command::{Command, Say, Speech},
    },
    name::id::{AgentId, RoomId},
};

use super::{
    Correspondents,
    asked::{Act, Asked, Saying, Why},
};
use crate::sim::{agents::say, cluster::Cluster, parts::Seated};

impl Correspondents {
    /// One of them does something.
    pub(super) fn write(&mut self, cluster: &mut Cluster) {
        if cluster.quiet || cluster.plan.silent_from.is_some_and(|from| cluster.now() >= from) {
            return;
        }
        let i = cluster.dice.index(self.agents.len());
        if self.agents[i].place.is_none() {
            return self.register_somewhere(cluster, i);
        }
        match cluster.dice.within(0, 99) {
            0..=2 => self.detach(cluster, i, Duration::ZERO),
            3..=5 => self.register_somewhere(cluster, i),
            6..=15 => self.inbox(cluster, i, Act::Open),
            16..=21 => self.act_on_inbox(cluster, i),
            22..=25 => self.read_inbox(cluster, i),
            26..=31 => {
                let with = cluster.dice.index(self.agents.len());
                self.open_direct(cluster, i, with);
            }
            32..=35 => self.use_hall(cluster, i),
            36..=50 => self.mention(cluster, i, cluster.lobby()),
            51..=57 => self.give(cluster, i),
            _ => self.chat(cluster, i),
        }
    }

    /// Most of the time at home.
    fn register_somewhere(&mut self, cluster: &mut Cluster, i: usize) {
        let away = cluster.dice.chance(25);
        let other = cluster.dice.index(cluster.nodes.len());
        let node = if away { other } else { self.agents[i].home };
        self.register(cluster, i, node);
    }

    fn act_on_inbox(&mut self, cluster: &mut Cluster, i: usize) {
        let Some(inbox) = self.agents[i].inbox.clone() else { return };
        let newest = cluster.dice.chance(40);
        let place = if newest { inbox.newest } else { cluster.dice.within(0, inbox.newest + 2) };
        if inbox.unfiled.is_some() && cluster.dice.chance(50) {
            return self.inbox(cluster, i, Act::File);
        }
        let act = if cluster.dice.chance(50) { Act::Confirm(place) } else { Act::TakeOut(place) };
        self.inbox(cluster, i, act);
    }

    /// An agent makes, joins, or writes into the private room of its key.
    fn use_hall(&mut self, cluster: &mut Cluster, i: usize) {
        match self.keys[self.agents[i].key].hall {
            None => self.make_hall(cluster, i),
            Some(hall) => self.mention(cluster, i, hall),
        }
    }

    /// A message in a room of many, which mentions some.
    fn mention(&mut self, cluster: &mut Cluster, i: usize, room: RoomId) {
        if !self.agents[i].rooms.contains(&room) {
            return self.join(cluster, i, room);
        }
        let some = |_: &&AgentId| cluster.dice.chance(30);
        let mentions = self.agents.iter().map(|agent| &agent.id).filter(some).cloned().collect();
        let say = Say { mentions, ..some_words(cluster, room) };
        self.say(cluster, Saying { by: i, room, say, why: Why::Chat });
    }

    fn chat(&mut self, cluster: &mut Cluster, i: usize) {
        let with = cluster.dice.index(self.agents.len());
        let Some(room) = self.room_of(i, with) else { return };
        let (part, expects_reply) = (cluster.dice.chance(30), cluster.dice.chance(90));
        let asks = part.then_some(Conversing {
            answers: None,
            expects_reply,
            counts: false,
            announces: false,
            of_person: false,
        });
        let say = Say { conversing: asks.map(Box::new), ..some_words(cluster, room) };
        self.say(cluster, Saying { by: i, room, say, why: Why::Chat });
    }

    pub(super) fn say(&mut self, cluster: &mut Cluster, saying: Saying) {
        let Some(Seated { node, caller }) = self.agents[saying.by].place.clone() else { return };
        let command = Command::Say { caller, say: saying.say.clone() };
        self.calls.ask(cluster, node, Asked::Say(Box::new(saying)), command);
    }
}

/// Something that was not said before.
pub(super) fn words(cluster: &mut Cluster, room: RoomId) -> Say {
    let n = cluster.text();
    say(room, Speech::Chat, format!("letter {n}"))
}

/// The same; some of it only thought.
fn some_words(cluster: &mut Cluster, room: RoomId) -> Say {
    let speech = if cluster.dice.chance(8) { Speech::Thinking } else { Speech::Chat };
    Say { speech, ..words(cluster, room) }
}

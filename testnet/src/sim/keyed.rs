//! What must hold in the end of keys, of ids that two keys want, and of rooms by name.
//!
//! *keys*: every node knows the same keys, and refuses those that anybody has revoked. *ids*: an id
//! belongs to one key, that of the claim with the lowest number: every node refuses the others and
//! takes its owner, who finds its seats wherever it comes back, and sits once. *rooms*: all nodes list
//! the same rooms by the same names, no name is there twice, and no room is missing that somebody was
//! told was made. *sealed*: nodes without its key neither list a private room nor answer for it, and
//! nothing of it is in the clear on any disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::command::{AgentView, Attached, Caller, Command, Outcome, Refused, RoomView},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        number::Number,
    },
};

use super::{
    agents,
    holders::has_mark,
    plan::Fault,
    promises::{Broken, Entry, broken},
    world::World,
};

type Answer = Result<Outcome, Refused>;

/// An agent on its way through all nodes.
#[derive(Debug)]
struct Mover {
    holder: usize,
    place: Option<(usize, Caller)>,
    seats: BTreeSet<RoomId>,
}

impl World {
    pub(super) fn keyed_converge(&mut self) -> Result<(), Broken> {
        if !self.plan.keys {
            return Ok(());
        }
        self.keys_are_the_same()?;
        // Those who were let in there sit again: without gossip others ask for rosters first.
        self.go_on(2_000)?;
        self.rooms_are_listed()?;
        self.private_rooms_are_answered_for()?;
        let owners = self.owners_of_ids();
        self.others_are_refused(&owners)?;
        self.owners_move(&owners)?;
        match self.nodes.iter_mut().position(|node| has_mark(&node.image())) {
            None => Ok(()),
            Some(node) => broken("sealed", format!("node{node} has written in the clear")),
        }
    }

    /// What nodes answer to these, all asked at once.
    fn answers(&mut self, asks: Vec<(usize, Command)>) -> Result<Vec<Answer>, Broken> {
        let calls = asks.into_iter().map(|(node, command)| self.probe_node(node, command));
        let calls: Vec<_> = calls.collect();
        for _ in 0..1_000 {
            if calls.iter().all(|it| self.holders.answers.contains_key(it)) {
                break;
            }
            self.go_on(5)?;
        }
        let mut answer = |call| self.holders.answers.remove(call);
        match calls.iter().map(&mut answer).collect() {
            Some(answers) => Ok(answers),
            None => broken("replies", "a node does not answer in the end".to_owned()),
        }
    }

    /// What each node answers to one question.
    fn answers_of_all(&mut self, command: &Command) -> Result<Vec<Answer>, Broken> {
        self.answers((0..self.nodes.len()).map(|node| (node, command.clone())).collect())
    }

    fn go_on(&mut self, ms: u64) -> Result<(), Broken> {
        let until = self.now + Duration::from_millis(ms);
        self.run_until(until)
    }

    fn is_valid(&self, key: usize) -> bool {
        self.holders.valid.contains(&self.holders.keys[key].print)
    }

    fn follows(&self, node: usize, key: KeyPrint) -> bool {
        self.holders.follows.contains_key(&(self.nodes[node].id, key))
    }
}

/// *keys*.
impl World {
    fn keys_are_the_same(&mut self) -> Result<(), Broken> {
        let lists = self.answers_of_all(&Command::ListKeys)?;
        let lists: Vec<_> = lists
            .into_iter()
            .map(|it| if let Ok(Outcome::Keys(keys)) = it { keys } else { Vec::new() })
            .collect();
        if let Some(node) = lists.iter().position(|it| *it != lists[0]) {
            let what = format!("node0 lists {:?}, node{node} {:?}", lists[0], lists[node]);
            return broken("keys", what);
        }
        for i in 0..self.holders.keys.len() {
            let key = &self.holders.keys[i];
            let print = key.print;
            let view = lists[0].iter().find(|it| it.key == print);
            if !key.minted.is_empty() && view.is_none() {
                return broken("keys", format!("key {i} was minted and is nowhere"));
            }
            let revoked = view.is_some_and(|it| it.revoked);
            if (revoked && !key.revoking) || (!revoked && !key.revoked.is_empty()) {
                return broken("keys", format!("key {i} is {view:?}"));
            }
            let valid = view.is_some() && !revoked;
            if valid {
                self.holders.valid.insert(print);
            }
            self.key_is_taken(print, valid)?;
        }
        Ok(())
    }

    fn key_is_taken(&mut self, key: KeyPrint, valid: bool) -> Result<(), Broken> {
        let check = self.answers_of_all(&Command::CheckKey { key, own: false })?;
        let i = self
            .holders
            .holders
            .iter()
            .position(|it| self.holders.keys[it.key].print == key && !it.contested);
        let attach = self.attach_of(i.expect("every key has an agent of its own"), true, None);
        let attached = self.answers_of_all(&Command::Attach(attach))?;
        for (node, answers) in check.into_iter().zip(attached).enumerate() {
            let (check, attached) = answers;
            if check.is_ok() != valid || (!valid && !matches!(attached, Err(Refused::NoKey))) {
                let what =
                    format!("node{node}: a key, valid: {valid}, gets {check:?}, {attached:?}");
                return broken("keys", what);
            }
        }
        if valid {
            return Ok(());
        }
        self.go_on(500)?;
        for (node, agents) in
            self.answers_of_all(&Command::ListAgents { key, room: None })?.into_iter().enumerate()
        {
            if !matches!(&agents, Ok(Outcome::Agents(it)) if it.is_empty()) {
                return broken("keys", format!("node{node} still has {agents:?}"));
            }
        }
        Ok(())
    }
}

/// *rooms*, and *sealed* as far as answers go.
impl World {
    fn rooms_are_listed(&mut self) -> Result<(), Broken> {
        let keys: Vec<KeyPrint> = (0..self.holders.keys.len())
            .filter(|key| self.is_valid(*key))
            .map(|key| self.holders.keys[key].print)
            .chain([agents::KEY])
            .collect();
        let mut shared: Option<Vec<String>> = None;
        for key in keys {
            let lists = self.answers_of_all(&Command::ListRooms { key, parent: None })?;
            let mut own: Option<Vec<String>> = None;
            for (node, list) in lists.into_iter().enumerate() {
                let Ok(Outcome::Rooms(list)) = list else {
                    return broken("rooms", format!("node{node} lists nothing: {list:?}"));
                };
                self.rooms_are_right(node, key, &list)?;
                let named = |public: bool| {
                    let rooms = list.iter().filter(|it| it.public == public);
                    rooms.map(|it| format!("{} {}", it.room, it.name)).collect::<Vec<_>>()
                };
                let all = shared.get_or_insert_with(|| named(true));
                if *all != named(true) {
                    let what = format!("node{node} lists {:?}, others {all:?}", named(true));
                    return broken("rooms", what);
                }
                let private = named(false);
                if !self.follows(node, key) {
                    if !private.is_empty() {
                        return broken("sealed", format!("node{node} lists {private:?}"));
                    }
                } else if *own.get_or_insert_with(|| private.clone()) != private {
                    let what = format!("node{node} lists {private:?}, others {own:?}");
                    return broken("rooms", what);
                }
            }
        }
        Ok(())
    }

    /// No name twice, and nothing missing that was made.
    fn rooms_are_right(&self, node: usize, key: KeyPrint, list: &[RoomView]) -> Result<(), Broken> {
        let mut names = BTreeSet::new();
        if let Some(twice) = list.iter().find(|it| !names.insert(&it.name)) {
            let rooms: Vec<&RoomView> = list.iter().filter(|it| it.name == twice.name).collect();
            return broken("rooms", format!("node{node} has two of one name: {rooms:?}"));
        }
        let followed = self.follows(node, key);
        let made = self.holders.made.iter().filter(|it| !it.ephemeral);
        let made =
            made.filter(|it| it.public || (followed && self.holders.keys[it.key].print == key));
        let made = made.map(|it| (it.room, it.name.as_str()));
        let others = self.agents.rooms.iter().map(|room| (*room, "room"));
        let others = others.filter(|(room, _)| !self.promises.ephemeral.contains(room));
        for (room, name) in made.chain(others) {
            let there = list.iter().find(|it| it.room == room);
            if there.is_none_or(|it| !it.name.starts_with(name)) {
                let what = format!("{name} was made, and node{node} has it as {there:?}");
                return broken("rooms", what);
            }
        }
        Ok(())
    }

    /// Each private room is answered for where its key is followed, to those who have it.
    fn private_rooms_are_answered_for(&mut self) -> Result<(), Broken> {
        for it in self.holders.made.clone() {
            if it.ephemeral {
                continue;
            }
            let prints: Vec<KeyPrint> = self.holders.keys.iter().map(|it| it.print).collect();
            for (i, key) in prints.into_iter().enumerate() {
                let ask = Command::RoomInfo { key, room: it.room };
                let answers = self.answers_of_all(&ask)?;
                let mut members: Option<Vec<(AgentId, u64)>> = None;
                for (node, answer) in answers.into_iter().enumerate() {
                    let sees =
                        it.public || (i == it.key && self.is_valid(i) && self.follows(node, key));
                    match answer {
                        Ok(Outcome::RoomInfo(info)) if sees => {
                            let seen = once_each(node, &info.agents)?;
                            if *members.get_or_insert_with(|| seen.clone()) != seen {
                                let what = format!("node{node}: {seen:?}, others {members:?}");
                                return broken("ids", what);
                            }
                        }
                        Err(Refused::NoRoom | Refused::NotYours) if !sees => {}
                        answer => {
                            let what = format!("node{node} says of {it:?} to key {i}: {answer:?}");
                            return broken(if sees { "rooms" } else { "sealed" }, what);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Members in order, each there once.
fn once_each(node: usize, agents: &[AgentView]) -> Result<Vec<(AgentId, u64)>, Broken> {
    let mut ids = BTreeSet::new();
    if let Some(twice) = agents.iter().find(|it| !ids.insert(&it.agent)) {
        return broken("ids", format!("{} sits twice at node{node}", twice.agent));
    }
    Ok(agents.iter().map(|it| (it.agent.clone(), it.connected_ms)).collect())
}

/// *ids*.
impl World {
    /// Whose each id is: the claim with the lowest of all numbers that anybody knows counts.
    fn owners_of_ids(&self) -> BTreeMap<AgentId, KeyPrint> {
        let directory = RoomId::directory(self.secret.mesh_id());
        let mut first: BTreeMap<AgentId, (Number, KeyPrint)> = BTreeMap::new();
        for (number, entry) in self.promises.all_names(directory) {
            let entry: Entry = entry;
            let Some((agent, key)) = self.holders.claims.get(&entry) else { continue };
            let best = first.entry(agent.clone()).or_insert((number, *key));
            *best = (*best).min((number, *key));
        }
        first.into_iter().map(|(agent, (_, key))| (agent, key)).collect()
    }

    /// Holders of keys that are valid, of ids that somebody has claimed; and whether the id is theirs.
    fn claimants(&self, owners: &BTreeMap<AgentId, KeyPrint>) -> Vec<(usize, bool)> {
        let holders = self.holders.holders.iter().enumerate();
        let valid = holders.filter(|(_, it)| self.is_valid(it.key));
        let whose = valid.filter_map(|(i, it)| {
            let owner = owners.get(&it.id)?;
            Some((i, *owner == self.holders.keys[it.key].print))
        });
        whose.collect()
    }

    fn others_are_refused(&mut self, owners: &BTreeMap<AgentId, KeyPrint>) -> Result<(), Broken> {
        for (i, _) in self.claimants(owners).into_iter().filter(|(_, owns)| !owns) {
            let attach = self.attach_of(i, true, None);
            let answers = self.answers_of_all(&Command::Attach(attach))?;
            for (node, answer) in answers.into_iter().enumerate() {
                if !matches!(answer, Err(Refused::AgentTaken(_))) {
                    let id = &self.holders.holders[i].id;
                    let what = format!("node{node} gives {id} to another key: {answer:?}");
                    return broken("ids", what);
                }
            }
        }
        Ok(())
    }

    /// Every owner registers at one node after the other: what it left by turns still has its
    /// connection, was told that it goes, or went down.
    fn owners_move(&mut self, owners: &BTreeMap<AgentId, KeyPrint>) -> Result<(), Broken> {
        let own = self.claimants(owners).into_iter().filter(|(_, owns)| *owns);
        let mut movers: Vec<Mover> =
            own.map(|(holder, _)| Mover { holder, place: None, seats: BTreeSet::new() }).collect();
        let mut down = None;
        for node in 0..self.nodes.len() {
            if node > 0 {
                down = self.leave_behind(&movers, node)?;
            }
            self.movers_register(&mut movers, node)?;
            if let Some(down) = down.take() {
                self.start(down)?;
            }
            self.movers_join(&mut movers, node)?;
            // Without gossip rosters are asked for.
            self.go_on(2_000)?;
        }
        self.go_on(3_000)?;
        self.movers_sit_once(&movers)
    }

    fn leave_behind(&mut self, movers: &[Mover], node: usize) -> Result<Option<usize>, Broken> {
        match (node + self.nodes.len()) % 3 {
            0 => {}
            1 => {
                let places = movers.iter().filter_map(|it| it.place.clone());
                let detach =
                    places.map(|(at, caller)| (at, Command::Detach { caller, seen: Vec::new() }));
                let detach = detach.collect();
                self.answers(detach)?;
                self.go_on(2_000)?;
            }
            _ => {
                self.fault(Fault::Crash(node - 1))?;
                return Ok(Some(node - 1));
            }
        }
        Ok(None)
    }

    fn movers_register(&mut self, movers: &mut [Mover], node: usize) -> Result<(), Broken> {
        let attach = |it: &Mover| (node, Command::Attach(self.attach_of(it.holder, true, None)));
        let attach = movers.iter().map(attach).collect();
        for (mover, answer) in movers.iter_mut().zip(self.answers(attach)?) {
            let holder = &self.holders.holders[mover.holder];
            let (id, key) = (holder.id.clone(), self.holders.keys[holder.key].print);
            let Ok(Outcome::Attached(Attached { registration, restored, .. })) = answer else {
                return broken("ids", format!("node{node} refuses {id} to its owner: {answer:?}"));
            };
            let restored: BTreeSet<RoomId> =
                restored.into_iter().flatten().map(|(room, _)| room).collect();
            let here = self.nodes[node].id;
            mover.seats.retain(|room| self.nodes_with(*room).contains(&here));
            if !restored.is_superset(&mover.seats) {
                let what =
                    format!("{id} gets {restored:?} back at node{node} of {:?}", mover.seats);
                return broken("ids", what);
            }
            mover.place = Some((node, Caller { agent: id, key, registration }));
        }
        Ok(())
    }

    /// Each joins all permanent rooms that it may see here.
    fn movers_join(&mut self, movers: &mut [Mover], node: usize) -> Result<(), Broken> {
        let mut joins = Vec::new();
        for mover in movers {
            let Some((_, caller)) = &mover.place else { continue };
            let follows = self.follows(node, caller.key);
            let made = self.holders.made.iter().filter(|it| !it.ephemeral);
            let seen = made.filter(|it| {
                it.public || (follows && self.holders.keys[it.key].print == caller.key)
            });
            for room in seen.map(|it| it.room) {
                mover.seats.insert(room);
                joins.push((node, Command::Join { caller: caller.clone(), room }));
            }
        }
        match self.answers(joins)?.into_iter().find(Result::is_err) {
            None => Ok(()),
            Some(refused) => broken("rooms", format!("node{node} lets nobody in: {refused:?}")),
        }
    }

    fn movers_sit_once(&mut self, movers: &[Mover]) -> Result<(), Broken> {
        for mover in movers {
            let Some((at, caller)) = &mover.place else { continue };
            let home = self.nodes[*at].id;
            for room in &mover.seats {
                let ask = Command::ListAgents { key: caller.key, room: Some(*room) };
                let with = self.nodes_with(*room);
                let answers = self.answers_of_all(&ask)?.into_iter().enumerate();
                for (node, answer) in answers.filter(|(i, _)| with.contains(&self.nodes[*i].id)) {
                    let Ok(Outcome::Agents(agents)) = answer else {
                        return broken("rooms", format!("node{node} does not know {room}"));
                    };
                    once_each(node, &agents)?;
                    if !agents.iter().any(|it| it.agent == caller.agent && it.node == home) {
                        let what = format!("node{node} has {} not at its node", caller.agent);
                        return broken("ids", what);
                    }
                }
            }
        }
        Ok(())
    }
}

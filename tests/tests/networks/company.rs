//! Agents that stay: at each node one with a key that all share, and one with a key of its own. What they do in a private room, in
//! direct rooms and in a vote is looked at across each pair of nodes.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::{World, nodes::Node};

/// More than is ever said in one room.
const HISTORY: u32 = 200;

/// An agent with a connection of its own.
struct Agent {
    id: String,
    /// Its node.
    node: String,
    reader: BufReader<UnixStream>,
    calls: u64,
    /// How often it was told each text.
    told: BTreeMap<String, usize>,
}

impl Agent {
    /// `None`: its key is not known there yet.
    fn come(node: &Node, id: &str, key: &str) -> Result<Option<Agent>> {
        let reader = BufReader::new(node.client()?);
        let (id, node) = (id.to_owned(), node.name.clone());
        let mut agent = Agent { id, node, reader, calls: 0, told: BTreeMap::new() };
        let register =
            json!({ "key": key, "name": agent.id, "agent_id": agent.id, "reconnect": true });
        Ok(agent.asks("register", register)?.is_ok().then_some(agent))
    }

    /// The answer, or the words of the refusal. Whatever it is told meanwhile is counted.
    fn asks(&mut self, kind: &str, payload: Value) -> Result<Result<Value, String>> {
        self.calls += 1;
        let id = self.calls.to_string();
        let frame = json!({ "id": id, "type": kind, "payload": payload });
        writeln!(self.reader.get_mut(), "{frame}")?;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                bail!("{} has hung up at {kind}", self.node);
            }
            let mut frame: Value = serde_json::from_str(&line)?;
            if frame["reply_to"] == json!(id) {
                let payload = frame["payload"].take();
                let is_refused = frame["type"] == "error";
                return Ok(if is_refused { Err(payload.to_string()) } else { Ok(payload) });
            }
            if frame["type"] == "message_received" {
                let text = frame["payload"]["content"].as_str().unwrap_or_default();
                *self.told.entry(text.to_owned()).or_default() += 1;
            }
        }
    }

    fn does(&mut self, kind: &str, payload: Value) -> Result<Value> {
        let answer = self.asks(kind, payload)?;
        answer.map_err(|why| anyhow!("{} is refused {kind}: {why}", self.id))
    }

    fn says(&mut self, room: &str, text: &str) -> Result<()> {
        self.does("send_message", json!({ "room_id": room, "content": text })).map(drop)
    }

    /// How often a room has each text that begins so.
    fn counts(&mut self, room: &str, beginning: &str) -> Result<BTreeMap<String, usize>> {
        let page = self.does("get_history", json!({ "room_id": room, "limit": HISTORY }))?;
        let mut counts = BTreeMap::new();
        for message in page["messages"].as_array().into_iter().flatten() {
            let text = message["content"].as_str().unwrap_or_default();
            if text.starts_with(beginning) {
                *counts.entry(text.to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }
}

/// See the module.
pub(crate) struct Company {
    /// With the key that all share.
    ring: Vec<Agent>,
    /// Each with its own one.
    own: Vec<Agent>,
    room: String,
    /// The direct room of two of these, by their places.
    direct: BTreeMap<(usize, usize), String>,
    /// How often they have talked, and up to when directly, too.
    round: usize,
    direct_rounds: usize,
}

impl Company {
    /// They come at all nodes that have agents, and each pair has its room.
    pub(crate) fn gather(world: &World) -> Result<Company> {
        let at: Vec<&Node> = world.nodes.iter().filter(|node| node.talks()).collect();
        let shared = at[0].mint()?;
        let (mut ring, mut own) = (Vec::new(), Vec::new());
        for node in &at {
            let key = node.mint()?;
            own.push(come(world, node, &format!("own-{}", node.name), &key)?);
            ring.push(come(world, node, &format!("ring-{}", node.name), &shared)?);
        }
        let made = ring[0].does("create_room", json!({ "name": "ring" }))?;
        let room = made["room_id"].as_str().context("it has an id")?.to_owned();
        for agent in &mut ring {
            let what = format!("{} is in the private room", agent.id);
            world.until(&what, || {
                Ok(agent.asks("join_room", json!({ "room_id": room }))?.map(drop))
            })?;
        }
        let mut company =
            Company { ring, own, room, direct: BTreeMap::new(), round: 0, direct_rounds: 0 };
        // First all of one side, so that the waits for the other one are over when it comes to that.
        let count = company.own.len();
        let pairs: Vec<(usize, usize)> =
            (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other))).collect();
        for (one, other) in &pairs {
            let room = company.opens(world, *one, *other)?;
            company.direct.insert((*one, *other), room);
        }
        for (one, other) in pairs {
            let room = company.opens(world, other, one)?;
            if company.direct.get(&(one, other)) != Some(&room) {
                bail!("{one} and {other} have two rooms");
            }
        }
        Ok(company)
    }

    /// A direct room with another one, as soon as that one is known.
    fn opens(&mut self, world: &World, one: usize, other: usize) -> Result<String> {
        let name = format!("dm:{}", self.own[other].id);
        let mut room = None;
        world.until(&name, || {
            let made = self.own[one].asks("create_room", json!({ "name": name }))?;
            Ok(made.map(|made| room = made["room_id"].as_str().map(str::to_owned)))
        })?;
        room.context("it has an id")
    }

    /// Those whose nodes run.
    fn up(&mut self, world: &World) {
        let runs =
            |agent: &Agent| world.nodes.iter().any(|node| node.name == agent.node && node.is_up());
        self.ring.retain(|agent| runs(agent));
        let gone: Vec<usize> = (0..self.own.len()).filter(|nth| !runs(&self.own[*nth])).collect();
        self.direct.retain(|(one, other), _| !gone.contains(one) && !gone.contains(other));
    }

    /// Each says something in the private room, and to each other one directly. It is answered, and not waited for.
    pub(crate) fn talk(&mut self, world: &World) -> Result<()> {
        self.talk_in_private(world)?;
        let round = self.round;
        self.direct_rounds = round;
        for ((one, other), room) in &self.direct {
            for nth in [one, other] {
                let text = format!("round {round} of {}", self.own[*nth].id);
                self.own[*nth].says(room, &text)?;
            }
        }
        Ok(())
    }

    /// The same, in the private room alone.
    pub(crate) fn talk_in_private(&mut self, world: &World) -> Result<()> {
        self.up(world);
        self.round += 1;
        for agent in &mut self.ring {
            let text = format!("round {} of {}", self.round, agent.id);
            agent.says(&self.room, &text)?;
        }
        Ok(())
    }

    /// All that was said is everywhere once, and was told once.
    pub(crate) fn has_heard(&mut self, world: &World) -> Result<()> {
        let Company { ring, own, room, direct, round, direct_rounds } = self;
        for round in 1..=*round {
            let beginning = format!("round {round} of ");
            let said: Vec<String> =
                ring.iter().map(|agent| format!("{beginning}{}", agent.id)).collect();
            for agent in ring.iter_mut() {
                let id = agent.id.clone();
                world.until(&format!("{id} has what was said in private"), || {
                    let counts = agent.counts(room, &beginning)?;
                    let once = |text: &&String| {
                        let told = agent.told.get(*text).copied().unwrap_or(0);
                        let own = text.ends_with(&id);
                        counts.get(*text) != Some(&1) || (told != 1 && !own) || told > 1
                    };
                    Ok(said.iter().find(once).map_or(Ok(()), |text| Err(text.clone())))
                })?;
            }
            for ((one, other), room) in direct.iter().filter(|_| round <= *direct_rounds) {
                let both = [one, other].map(|nth| format!("{beginning}{}", own[*nth].id));
                let wanted: BTreeMap<String, usize> = both.into_iter().map(|it| (it, 1)).collect();
                for nth in [one, other] {
                    let agent = &mut own[*nth];
                    let id = agent.id.clone();
                    world.until(&format!("{id} has what was said directly"), || {
                        let counts = agent.counts(room, &beginning)?;
                        Ok(if counts == wanted { Ok(()) } else { Err(format!("{counts:?}")) })
                    })?;
                }
            }
        }
        Ok(())
    }

    /// A vote in the private room is closed by the ballots of all, and each reads the same result.
    pub(crate) fn vote(&mut self, world: &World) -> Result<()> {
        self.up(world);
        let Company { ring, room, .. } = self;
        let count = ring.len();
        // Members of nodes that are gone are none any more.
        world.until("the members are those whose nodes run", || {
            let info = ring[0].does("room_info", json!({ "room_id": room }))?;
            let members = info["agents"].as_array().map_or(0, Vec::len);
            Ok(if members == count { Ok(()) } else { Err(format!("{members} of {count}")) })
        })?;
        let vote = json!({ "room_id": room, "title": "both ways?", "options": ["yes", "no"] });
        let vote = ring[0].does("create_vote", vote)?["vote_id"].take();
        for (nth, agent) in ring.iter_mut().enumerate() {
            let ballot = json!({ "vote_id": vote, "option_index": nth % 2 });
            let what = format!("{} casts its ballot", agent.id);
            world.until(&what, || Ok(agent.asks("cast_vote", ballot.clone())?.map(drop)))?;
        }
        let wanted = [count.div_ceil(2), count / 2];
        for agent in ring {
            world.until(&format!("{} reads the result", agent.id), || {
                let seen = agent.does("get_vote_status", json!({ "vote_id": vote }))?;
                let tally = seen["tally"].as_array().cloned().unwrap_or_default();
                let tally: Vec<Option<u64>> = tally.iter().map(|it| it["count"].as_u64()).collect();
                let is_right = seen["status"] == "closed"
                    && tally == wanted.map(|it| Some(it as u64)).to_vec();
                Ok(if is_right { Ok(()) } else { Err(seen.to_string()) })
            })?;
        }
        Ok(())
    }
}

fn come(world: &World, node: &Node, id: &str, key: &str) -> Result<Agent> {
    let mut come = None;
    world.until(&format!("{id} has come"), || {
        come = Agent::come(node, id, key)?;
        Ok(come.as_ref().map(drop).ok_or_else(|| "its key is not known".to_owned()))
    })?;
    come.context("it has come")
}

//! Settings of agents that answer each other, and of those that are woken: tables of a file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use bridge::{
    Wake, WakeBody,
    limits::ANNOUNCE_ROOMS_MAX,
    policy::{CHANNEL, GROUP},
    tokens::Visibility,
};
use mesh::{
    api::budget::{Budgets, Pace},
    limits::{ARCHIVE_AFTER, REQUEST_TTL, REQUEST_TTL_MAX, REQUEST_TTL_MIN},
    name::id::AgentId,
};

use super::{
    error::{Result, bad},
    layer::{PairTable, SessionTable, SpawnTable, WakeTable},
    parse::duration,
};
use crate::limits::PAIR_TIME_MAX;

/// Turns that a conversation may be allowed.
const TURNS_MAX: u32 = 200;
/// Hops that a chain may be allowed.
const HOPS_MAX: u32 = 64;
/// Tasks that an agent may be allowed to have given at a time: it is looked at so many rooms.
const CHILDREN_MAX: usize = 100;
/// Tasks that may be allowed to lead to each other.
const DEPTH_MAX: u32 = 3;
/// The longest time after which a room is closed.
const ARCHIVE_AFTER_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Unanswered requests that an agent may be allowed.
const UNANSWERED_MAX: usize = mesh::limits::REQUESTS_PER_AGENT_MAX;

pub(super) fn budgets(table: &SessionTable) -> Result<Budgets> {
    let mut budgets = Budgets::default();
    if let Some(turns) = table.max_ping_pong_turns {
        let why = format!("write 0 to {TURNS_MAX}");
        budgets.turns = within(turns, 0..=TURNS_MAX, "session.max-ping-pong-turns", &why)?;
    }
    if let Some(hops) = table.max_hops {
        let why = format!("write 1 to {HOPS_MAX}");
        budgets.hops = within(hops, 1..=HOPS_MAX, "session.max-hops", &why)?;
    }
    if let Some(unanswered) = table.max_unanswered {
        let why = format!("write 1 to {UNANSWERED_MAX}");
        let allowed = 1..=UNANSWERED_MAX;
        budgets.outstanding = within(unanswered, allowed, "session.max-unanswered", &why)?;
    }
    if let Some(pair) = &table.pair {
        budgets.pair = pace(pair, budgets.pair)?;
    }
    Ok(budgets)
}

/// The most that sandboxed tokens are shown.
pub(super) fn sandbox(table: &SessionTable) -> Result<Visibility> {
    let text = table.sandbox.as_ref().and_then(|table| table.visibility.as_deref());
    match text {
        None | Some("spawned") => Ok(Visibility::Spawned),
        Some("all") => Ok(Visibility::All),
        Some(other) => Err(bad("session.sandbox.visibility", other, "write spawned or all")),
    }
}

/// The rooms in which it is said how conversations of agents have ended, by agent.
pub(super) fn announce_rooms(table: &SessionTable) -> Result<BTreeMap<AgentId, String>> {
    let name = "session.announce.rooms";
    let rooms = table.announce.as_ref().and_then(|table| table.rooms.clone()).unwrap_or_default();
    if rooms.len() > ANNOUNCE_ROOMS_MAX {
        let why = format!("write at most {ANNOUNCE_ROOMS_MAX} agents");
        return Err(bad(name, &rooms.len().to_string(), why));
    }
    let longest = mesh::limits::AGENT_ID_BYTES_MAX;
    let checked = rooms.into_iter().map(|(agent, room)| {
        if agent.is_empty() || agent.len() > longest {
            let why = format!("write ids of agents, 1 to {longest} bytes");
            return Err(bad(name, &agent, why));
        }
        let key = room.trim();
        let rest = key.strip_prefix(CHANNEL).or_else(|| key.strip_prefix(GROUP));
        match rest {
            Some(rest) if !rest.is_empty() => Ok((agent.as_str().into(), key.to_owned())),
            Some(_) | None => {
                let why = "write the key of a room, such as mesh:channel:lobby";
                Err(bad(name, &room, why))
            }
        }
    });
    checked.collect()
}

/// For how long requests are kept for agents that are away.
pub(super) fn ttl(table: &SessionTable) -> Result<Duration> {
    let Some(text) = &table.ttl else { return Ok(REQUEST_TTL) };
    let time = duration(text).filter(|time| (REQUEST_TTL_MIN..=REQUEST_TTL_MAX).contains(time));
    time.ok_or_else(|| bad("session.ttl", text, "write a time such as 7d, from 1m to 30d"))
}

/// Tasks that agents give to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawning {
    /// Tasks of one agent that go on.
    pub max_children: usize,
    /// Tasks that lead to each other; 0: none may be given.
    pub max_depth: u32,
    /// How long after its end a room that is kept is closed.
    pub archive_after: Duration,
}

impl Default for Spawning {
    fn default() -> Spawning {
        let mcp::Spawning { children, depth, .. } = mcp::Spawning::default();
        Spawning { max_children: children, max_depth: depth, archive_after: ARCHIVE_AFTER }
    }
}

pub(super) fn spawning(table: &SpawnTable) -> Result<Spawning> {
    let mut spawning = Spawning::default();
    if let Some(children) = table.max_children {
        let why = format!("write 1 to {CHILDREN_MAX}");
        spawning.max_children =
            within(children, 1..=CHILDREN_MAX, "session.spawn.max-children", &why)?;
    }
    if let Some(depth) = table.max_depth {
        let why = format!("write 0 to {DEPTH_MAX}");
        spawning.max_depth = within(depth, 0..=DEPTH_MAX, "session.spawn.max-depth", &why)?;
    }
    if let Some(text) = &table.archive_after {
        let time = duration(text).filter(|time| *time <= ARCHIVE_AFTER_MAX);
        let why = "write a time such as 60m, at most 30d";
        spawning.archive_after =
            time.ok_or_else(|| bad("session.spawn.archive-after", text, why))?;
    }
    Ok(spawning)
}

fn within<N: Copy + PartialOrd + ToString>(
    number: N,
    allowed: std::ops::RangeInclusive<N>,
    name: &'static str,
    why: &str,
) -> Result<N> {
    if allowed.contains(&number) { Ok(number) } else { Err(bad(name, &number.to_string(), why)) }
}

fn pace(table: &PairTable, default: Pace) -> Result<Pace> {
    let time = |text: &Option<String>, name, default| match text {
        None => Ok(default),
        Some(text) => {
            let time = duration(text).filter(|time| *time <= PAIR_TIME_MAX);
            time.ok_or_else(|| bad(name, text, "write a time such as 60s, at most 1h"))
        }
    };
    let messages = table.messages.unwrap_or(default.messages);
    let why = "write 1 or more";
    Ok(Pace {
        messages: within(messages, 1..=u32::MAX, "session.pair.messages", why)?,
        within: time(&table.within, "session.pair.within", default.within)?,
        rest: time(&table.rest, "session.pair.rest", default.rest)?,
    })
}

/// An agent whose host is told when something comes for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeAt {
    /// The agent.
    pub agent: String,
    /// Where its host is posted to.
    pub url: String,
    /// The file of the host's token.
    pub token_file: Option<PathBuf>,
    /// The body that it is posted, with places.
    pub body: WakeBody,
}

impl WakeAt {
    /// `beside`: the folder of the file that says so.
    pub(super) fn of(table: &WakeTable, beside: Option<&Path>) -> Result<WakeAt> {
        let WakeTable { agent, url, token_file, body } = table.clone();
        if agent.is_empty() || agent.len() > mesh::limits::AGENT_ID_BYTES_MAX {
            return Err(bad("wake.agent", &agent, "write the id of an agent, 1 to 128 bytes"));
        }
        if let Err(why) = Wake::new(&agent, &url, None) {
            return Err(bad("wake.url", &url, format!("it must {why}")));
        }
        let body = match &body {
            None => WakeBody::default(),
            Some(text) => WakeBody::parse(text)
                .map_err(|why| bad("wake.body", text, format!("it must {why}")))?,
        };
        let token_file = token_file.map(|file| beside.map_or(file.clone(), |at| at.join(&file)));
        Ok(WakeAt { agent, url, token_file, body })
    }
}

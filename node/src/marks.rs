//! Marks that the operator sets on single sessions, in `sessions.json`: whether agents of this node may send there, whatever
//! the rules say, and whether it is archived. A mark counts when it is durable.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, bail};
use bridge::{
    limits::SESSION_MARKS_MAX,
    policy::{Action, CHANNEL, GROUP, LOBBY, MAIN, Mark, Marked, Policies, TASK, key_of_agent},
};
use mesh::{
    api::status::RoomStatus,
    name::{
        group::{agent_ref, is_reserved},
        id::{AgentId, RoomId},
    },
};
use protocol::operator::{Sending, SessionMark, WantedMark};
use serde::{Deserialize, Serialize};

use crate::files::DataDir;

/// A mark, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptMark {
    /// As this agent says the key; `None`: as all agents of the node do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sending: Option<Sending>,
    #[serde(default)]
    archived: bool,
}

/// Those of earlier starts.
pub(crate) fn kept(dir: &DataDir) -> Result<BTreeMap<Marked, Mark>> {
    let mark = |kept: KeptMark| {
        let KeptMark { agent, session, sending, archived } = kept;
        let agent = agent.as_deref().map(AgentId::from);
        let sending = sending.and_then(action);
        (Marked { agent, key: session }, Mark { sending, archived })
    };
    Ok(dir.session_marks()?.into_iter().map(mark).collect())
}

/// See the module.
pub(crate) struct Keeper {
    dir: DataDir,
    policies: Arc<Policies>,
    /// One change at a time: each writes the whole file.
    writing: Mutex<()>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeper(…)")
    }
}

impl Keeper {
    pub(crate) fn new(dir: DataDir, policies: Arc<Policies>) -> Keeper {
        Keeper { dir, policies, writing: Mutex::default() }
    }

    /// Sets a mark. It is durable when this returns, and counts from then on.
    pub(crate) fn set(&self, of: Marked, set: SessionMark) -> Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.policies.marks.changed(of, |mark| match set {
            SessionMark::Sending(sending) => mark.sending = action(sending),
            SessionMark::Archived(archived) => mark.archived = archived,
        });
        let Ok(all) = changed else {
            bail!(
                "{SESSION_MARKS_MAX} sessions are marked, which is the most: take back a mark that says nothing any more"
            );
        };
        let kept = |(of, mark): (&Marked, &Mark)| KeptMark {
            agent: of.agent.as_ref().map(|agent| agent.to_string()),
            session: of.key.clone(),
            sending: mark.sending.map(sending),
            archived: mark.archived,
        };
        self.dir.write_session_marks(&all.iter().map(kept).collect::<Vec<_>>())?;
        self.policies.marks.replace(all);
        Ok(())
    }
}

fn action(sending: Sending) -> Option<Action> {
    match sending {
        Sending::Allow => Some(Action::Allow),
        Sending::Deny => Some(Action::Deny),
        Sending::Inherit => None,
    }
}

fn sending(action: Action) -> Sending {
    match action {
        Action::Allow => Sending::Allow,
        Action::Deny => Sending::Deny,
    }
}

/// The session that an operator means, among the rooms of this node. Of an agent's direct sessions there need be no room yet.
pub(crate) fn marked(wanted: &WantedMark, rooms: &[RoomStatus], lobby: RoomId) -> Result<Marked> {
    let text = wanted.session.trim();
    let lower = text.to_lowercase();
    let me = wanted.agent_id.as_deref();
    let agent = me.map(AgentId::from);
    let own = me.map(key_of_agent);
    if matches!(&*lower, MAIN | "current") || own.is_some_and(|own| own == lower) {
        bail!(
            "{MAIN} is an agent's own session: nothing keeps it from writing there, and it is always listed"
        );
    }
    let (before, after) = ("agent:".len(), ":main".len());
    if lower.starts_with("agent:") && lower.ends_with(":main") && text.len() > before + after {
        let id = text.get(before..text.len() - after).unwrap_or_default();
        return Ok(Marked { agent, key: of_agent(id) });
    }
    let prefix = [CHANNEL, GROUP, TASK].into_iter().find(|prefix| lower.starts_with(prefix));
    let name = prefix.and_then(|prefix| text.get(prefix.len()..)).unwrap_or(text);
    let room = room(name, rooms, lobby)?;
    let id = if room.room == lobby { LOBBY.to_owned() } else { room.room.to_uuid() };
    let key = if is_reserved(&room.name, true) {
        // Its key is another one for each of its two agents.
        id
    } else if room.public {
        format!("{CHANNEL}{id}")
    } else {
        format!("{GROUP}{id}")
    };
    Ok(Marked { agent, key })
}

/// The key of the direct session with an agent, by its id or its name in keys.
fn of_agent(id: &str) -> String {
    let lower = id.to_lowercase();
    let is_hash = lower.strip_prefix("x-").is_some_and(|hash| hash.len() == 26);
    if is_hash || agent_ref(&lower) == lower {
        return format!("agent:{lower}:main");
    }
    key_of_agent(id)
}

fn room<'r>(name: &str, rooms: &'r [RoomStatus], lobby: RoomId) -> Result<&'r RoomStatus> {
    let id = if name.eq_ignore_ascii_case(LOBBY) { Some(lobby) } else { RoomId::from_uuid(name) };
    if let Some(room) = id.and_then(|id| rooms.iter().find(|room| room.room == id)) {
        return Ok(room);
    }
    let named: Vec<&RoomStatus> = rooms.iter().filter(|room| room.name == name).collect();
    match *named {
        [one] => Ok(one),
        [] => bail!(
            "no such session: {name:?}; write agent:ID:main, or a room's id or name (`clawmesh mesh rooms`)"
        ),
        [..] => {
            bail!("several rooms are called {name:?}: write the id of one (`clawmesh mesh rooms`)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesh::name::{
        id::NodeId,
        number::{Era, Number},
    };

    fn status(id: u8, name: &str, public: bool) -> RoomStatus {
        RoomStatus {
            room: RoomId([id; 16]),
            name: name.to_owned(),
            public,
            era: Era::HOME,
            sequencer: NodeId([0; 32]),
            tip: Number::ZERO,
            undelivered: 0,
            behind: 0,
            sent: 0,
            unsent: 0,
            holes: 0,
        }
    }

    fn key(session: &str, agent: Option<&str>) -> Result<String, String> {
        let rooms = [
            status(1, "lobby", true),
            status(2, "plans", false),
            status(3, "dm:ada:bob", false),
            status(4, "twice", true),
            status(5, "twice", true),
        ];
        let agent_id = agent.map(str::to_owned);
        let wanted =
            WantedMark { session: session.to_owned(), agent_id, mark: SessionMark::Archived(true) };
        let marked = marked(&wanted, &rooms, RoomId([1; 16])).map_err(|error| error.to_string())?;
        assert_eq!(marked.agent.as_deref(), agent);
        Ok(marked.key)
    }

    #[test]
    fn a_session_is_named_as_agents_name_it() {
        let uuid = |n: u8| RoomId([n; 16]).to_uuid();
        for (text, expect) in [
            ("lobby", "mesh:channel:lobby".to_owned()),
            (" MESH:CHANNEL:LOBBY ", "mesh:channel:lobby".to_owned()),
            (&*uuid(2), format!("mesh:group:{}", uuid(2))),
            ("plans", format!("mesh:group:{}", uuid(2))),
            ("mesh:channel:plans", format!("mesh:group:{}", uuid(2))),
            (&*uuid(3), uuid(3)),
            ("agent:BOB:main", "agent:bob:main".to_owned()),
            ("AGENT:Ünï x:MAIN", key_of_agent("Ünï x")),
            (&*key_of_agent("Ünï x"), key_of_agent("Ünï x")),
        ] {
            assert_eq!(key(text, Some("ada")), Ok(expect), "{text}");
        }
        for (text, expect) in [
            ("main", "own session"),
            ("agent:ada:main", "own session"),
            ("nowhere", "no such session"),
            ("twice", "several rooms"),
        ] {
            let error = key(text, Some("ada")).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        }
        assert!(key("agent:ada:main", None).is_ok(), "of all others");
    }
}

//! `clawmesh agents`.

use protocol::object::Agent;
use protocol::operator::{AgentMail, Attendee, Here, WokenBy};
use protocol::request::ListAgents;

use crate::context::Context;
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// List the agents of the key, at whichever node they are.
///
/// `away`: without a connection at present; it keeps its seats for some minutes.
#[derive(Debug, clap::Args)]
pub struct Agents {
    /// Only the members of this room (id, or exact name)
    #[arg(long, value_name = "ROOM")]
    pub room: Option<String>,
    /// Also by whose word each speaks: its key's, or only its node's
    #[arg(short, long)]
    pub verbose: bool,
    /// All agents at the node of this machine, of every key, with their rooms: for its operator
    #[arg(long, conflicts_with_all = ["room", "verbose"])]
    pub all: bool,
    /// How agents at the node of this machine are told that something waits for them: for its operator
    ///
    /// When each was told last, when it fetched what was there, and when it confirmed it: none of these stands for another.
    #[arg(long, conflicts_with_all = ["room", "verbose", "all"])]
    pub mesh: bool,
    #[command(flatten)]
    pub operator: Operator,
}

pub(crate) async fn run(cx: &Context, args: Agents) -> Result<Outcome, Failure> {
    if args.all {
        let agents = args.operator.agents().await?;
        cx.output.list(&agents, "no agents", || attendance(&cx.output, &agents))?;
        return Ok(Outcome::Done);
    }
    if args.mesh {
        let mails = args.operator.mail().await?;
        cx.output.list(&mails, "no agents", || mail(&cx.output, &mails))?;
        return Ok(Outcome::Done);
    }
    let client = cx.client().await?;
    let room_id = cx.some_room(&client, args.room.as_deref()).await?;
    let list = client.call(ListAgents { room_id }).await?;
    let agents = &list.agents;
    cx.output.list(&list, "no agents", || {
        if args.verbose { words(&cx.output, agents) } else { lines(&cx.output, agents, None) }
    })?;
    Ok(Outcome::Done)
}

/// How agents are told, as a table.
fn mail(output: &Output, mails: &[AgentMail]) -> Vec<String> {
    let heads = ["id", "here", "woken by", "unread", "told", "fetched", "confirmed"];
    let row = |mail: &AgentMail| {
        let at = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
        let here = match mail.here {
            Here::Connected => "connected",
            Here::ByRequests => "asks",
            Here::Away => "away",
        };
        let woken = match mail.woken {
            WokenBy::Post => "post",
            WokenBy::Hook => "hook",
            WokenBy::Connection => "connection",
            WokenBy::Not => "nothing",
        };
        vec![
            mail.agent_id.clone(),
            here.to_owned(),
            woken.to_owned(),
            mail.unread.map_or_else(|| "-".to_owned(), |unread| unread.to_string()),
            at(&mail.told_at),
            at(&mail.fetched_at),
            at(&mail.confirmed_at),
        ]
    };
    table::lines(output, &heads, mails.iter().map(row).collect())
}

/// All agents of a node as a table.
fn attendance(output: &Output, agents: &[Attendee]) -> Vec<String> {
    let heads = ["name", "doing", "rooms", "key", "a minute", "id"];
    table::lines(output, &heads, agents.iter().map(attendee).collect())
}

/// A row: name, doing, rooms, the beginning of its key, how much that says in a minute, id.
pub(crate) fn attendee(one: &Attendee) -> Vec<String> {
    let key = one.agent.mesh.as_ref().and_then(|note| note.key.as_deref()).unwrap_or("none");
    vec![
        one.agent.name.clone(),
        format::doing(&one.agent),
        one.rooms.join(", "),
        key.chars().take(8).collect(),
        one.per_minute.to_string(),
        one.agent.agent_id.clone(),
    ]
}

/// By whose word agents speak, as a table. A node that was shown an agent's key can speak for it; that it was shown the key is
/// the key's own word, or only the node's.
fn words(output: &Output, agents: &[Agent]) -> Vec<String> {
    let row = |agent: &Agent| {
        let note = agent.mesh.clone().unwrap_or_default();
        let by = match (&note.key, note.verified) {
            (Some(_), Some(true)) => "its key",
            (Some(_), _) => "its node alone",
            (None, _) => "its node, which checks no keys",
        };
        vec![
            agent.name.clone(),
            agent.agent_id.clone(),
            note.node.unwrap_or_default().chars().take(8).collect(),
            note.key.unwrap_or_default().chars().take(16).collect(),
            by.to_owned(),
        ]
    };
    table::lines(
        output,
        &["name", "id", "node", "key", "by the word of"],
        agents.iter().map(row).collect(),
    )
}

/// Agents as a table; `turn`: whose it is.
pub(crate) fn lines(output: &Output, agents: &[Agent], turn: Option<&str>) -> Vec<String> {
    let row = |agent: &Agent| {
        let node = agent.mesh.as_ref().and_then(|note| note.node.as_deref()).unwrap_or_default();
        vec![
            agent.name.clone(),
            agent.agent_id.clone(),
            format::doing(agent),
            if turn == Some(agent.agent_id.as_str()) { "yes" } else { "" }.to_owned(),
            node.chars().take(8).collect(),
            agent.capabilities.join(", "),
        ]
    };
    let heads = ["name", "id", "doing", "turn", "node", "can"];
    let mut rows: Vec<Vec<String>> = agents.iter().map(row).collect();
    let mut heads = heads.to_vec();
    if turn.is_none() {
        heads.remove(3);
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    table::lines(output, &heads, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::object::MeshNote;

    fn agent(name: &str, key: Option<&str>, verified: Option<bool>) -> Agent {
        let json = format!(
            r#"{{"agent_id":"id of {name}","name":"{name}","connected_at":"t","last_active":"t"}}"#
        );
        let node = Some("0123456789abcdef".to_owned());
        let note = MeshNote { node, key: key.map(String::from), verified, ..MeshNote::default() };
        Agent { mesh: Some(note), ..serde_json::from_str(&json).unwrap() }
    }

    #[test]
    fn agents_are_shown_with_those_by_whose_word_they_speak() {
        let key = Some("00112233445566778899aabbccddeeff");
        let agents =
            [agent("ann", key, Some(true)), agent("bob", key, None), agent("cy", None, None)];
        let text = words(&Output::new(false), &agents).join("\n");
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(line("ann").contains("0011223344556677") && line("ann").ends_with("its key"));
        assert!(line("bob").ends_with("its node alone"), "{text}");
        assert!(line("cy").ends_with("which checks no keys"), "{text}");
        assert!(line("ann").contains("01234567") && !text.contains("012345678"), "{text}");
    }
}

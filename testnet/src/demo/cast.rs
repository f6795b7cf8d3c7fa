//! Those who take part, and how each of them hears what the others say.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::stage::{At, Stage};
use crate::{
    finder,
    goclaw::Program,
    tank,
    wire::{self, Agent},
};

/// The room of all.
pub(super) const ROOM: &str = "lobby";
/// Whoever does not hear within this time does not hear: machines that run tests are busy.
pub(super) const HEARD_WITHIN: Duration = Duration::from_secs(60);
/// Characters of a message that GoClaw's programs are shown.
const PREVIEW_CHARS: usize = 200;

/// Somebody who hears what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Ada,
    Bob,
    Cy,
    Max,
    Lin,
}

/// All of them.
pub(super) const ALL: [Who; 5] = [Who::Ada, Who::Bob, Who::Cy, Who::Max, Who::Lin];

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Ada => "ada",
            Who::Bob => "bob",
            Who::Cy => "cy",
            Who::Max => "max",
            Who::Lin => "lin",
        }
    }

    pub(super) fn speaks(self) -> &'static str {
        match self {
            Who::Ada => "ClawChat",
            Who::Bob => "ClawTank",
            Who::Cy => "GoClaw",
            Who::Max => "MCP",
            Who::Lin => "LANTERN",
        }
    }
}

/// An agent of a host that speaks MCP: each call is a request of its own.
#[derive(Debug, Default)]
struct Max {
    /// The number up to which it has read.
    after: u64,
}

/// All that have come.
pub(super) struct Cast {
    /// ClawChat, at amber.
    pub(super) ada: Agent,
    /// LANTERN, in ClawChat's messages, at coral.
    pub(super) lin: Agent,
    /// ClawTank, at blue.
    pub(super) bob: tank::Client,
    /// GoClaw, at amber: the program of a person.
    pub(super) cy: Program,
    /// ClawFinder, at blue.
    pub(super) fay: finder::Account,
    /// Tools, at coral.
    max: Max,
}

impl Cast {
    pub(super) async fn come(stage: &Stage) -> Result<Cast> {
        let key = &*stage.key;
        let ada = attach(stage, At::Amber, "ada").await?;
        let lin = attach(stage, At::Coral, "lin").await?;
        let bob = tank::Client::agent(stage.node(At::Blue).http(), "bob", Some(key), ROOM).await?;
        let cy = Program::at(stage.node(At::Amber).http(), &stage.admin, "cy").await?;
        let mut index = finder::Client::at(stage.node(At::Blue).http()).await?;
        let fay = index.register("fay-glass").await?;
        let cast = Cast { ada, lin, bob, cy, fay, max: Max::default() };
        cast.max_calls(stage, "room_join", json!({ "room": ROOM })).await?;
        Ok(cast)
    }

    /// A tool of the host's agent.
    pub(super) async fn max_calls(&self, stage: &Stage, tool: &str, args: Value) -> Result<Value> {
        let call = json!({ "tool": tool, "args": args, "agentId": "max" });
        let done = wire::tool(stage.node(At::Coral).http(), &stage.key, &call).await?;
        ensure!(done["error"].is_null(), "{tool} is answered {done}");
        Ok(done)
    }

    /// Everybody hears this, but its author and these.
    pub(super) async fn hear(
        &mut self,
        stage: &Stage,
        (text, by): (&str, Who),
        but: &[Who],
    ) -> Result<Vec<Who>> {
        let hearers: Vec<Who> =
            ALL.into_iter().filter(|who| *who != by && !but.contains(who)).collect();
        for who in &hearers {
            let heard = timeout(HEARD_WITHIN, self.one_hears(stage, *who, text)).await;
            heard
                .unwrap_or_else(|_| Err(anyhow::anyhow!("silence")))
                .with_context(|| format!("{} does not hear {text:?}", who.name()))?;
        }
        Ok(hearers)
    }

    async fn one_hears(&mut self, stage: &Stage, who: Who, text: &str) -> Result<()> {
        match who {
            Who::Ada => says(&mut self.ada, text).await,
            Who::Lin => says(&mut self.lin, text).await,
            Who::Bob => loop {
                let frame = self.bob.next().await?;
                let kind = frame["type"].as_str().unwrap_or_default();
                if kind.starts_with("chat.") && frame["data"]["content"]["text"] == text {
                    return Ok(());
                }
            },
            Who::Cy => {
                let shown: String = text.chars().take(PREVIEW_CHARS).collect();
                self.cy.hears("team.message.sent", |told| told["preview"] == *shown).await?;
                Ok(())
            }
            Who::Max => self.max_reads(stage, text).await,
        }
    }

    /// Reads on from its number until it has read this.
    async fn max_reads(&mut self, stage: &Stage, text: &str) -> Result<()> {
        loop {
            let wait = json!({ "room": ROOM, "afterSeq": self.max.after, "timeoutSeconds": 30 });
            let heard = self.max_calls(stage, "room_wait", wait).await?;
            self.max.after = heard["afterSeq"].as_u64().context("a number")?;
            let rows = heard["messages"].as_array().into_iter().flatten();
            if rows.clone().any(|row| row["content"] == text) {
                return Ok(());
            }
        }
    }
}

/// An agent with ClawChat in the room, under a name that it keeps.
pub(super) async fn attach(stage: &Stage, at: At, name: &str) -> Result<Agent> {
    let fields = json!({ "agent_id": name, "reconnect": true });
    let tcp = stage.node(at).tcp();
    let mut agent = Agent::attach_as(tcp, Some(&stage.key), name, fields).await?;
    agent.call("join_room", json!({ "room_id": ROOM })).await?;
    Ok(agent)
}

async fn says(agent: &mut Agent, text: &str) -> Result<()> {
    let said = agent.event("message", HEARD_WITHIN, |event| {
        event.kind == "message_received" && event.body["content"] == text
    });
    said.await?;
    Ok(())
}

//! `clawmeshd agents`.

use anyhow::Result;
use protocol::operator::{Answer, Request};

use super::{
    node_args::NodeArgs,
    output::say,
    running::{asked, done, strange},
};

/// Stop agents that should not go on, and let them go again.
///
/// The node has to run. It holds for agents of this node, and of all that have this node's key among their operators
/// (--operators). An agent that is stopped goes on reading, and sends nothing: each attempt is refused, and the refusal says who has
/// stopped it.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Agents {
    /// An agent sends nothing until it is let go, after restarts too.
    Stop(Which),
    /// An agent sends again.
    Go(Which),
    /// Show which agents are stopped, and by whom.
    Stopped(Stopped),
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Which {
    #[command(flatten)]
    node_args: NodeArgs,
    /// Its id
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    agent: Option<String>,
    /// All agents, but for people who sign in with this node's own key
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Stopped {
    #[command(flatten)]
    node_args: NodeArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Agents {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Agents::Stop(which) => which.run(true),
            Agents::Go(which) => which.run(false),
            Agents::Stopped(stopped) => stopped.run(),
        }
    }
}

impl Which {
    fn run(self, stop: bool) -> Result<()> {
        let who = self.agent.clone().unwrap_or_else(|| "all agents".to_owned());
        let is_one = self.agent.is_some();
        done(&self.node_args, Request::StopAgents { agent_id: self.agent, stop })?;
        say(&if stop { format!("{who}: stopped") } else { format!("{who}: let go") })?;
        if stop && is_one {
            return say(
                "who has its key can come back under another id: revoke the key, or stop --all",
            );
        }
        Ok(())
    }
}

impl Stopped {
    fn run(self) -> Result<()> {
        let Answer::Stops(stops) = asked(&self.node_args, Request::ListStops)? else {
            return Err(strange());
        };
        if self.json {
            return say(&serde_json::to_string(&stops)?);
        }
        if stops.is_empty() {
            return say("no agent is stopped");
        }
        for stop in stops {
            let who = stop.agent_id.as_deref().unwrap_or("all agents");
            say(&format!("{who}: by {} (key {})", stop.by, stop.fingerprint))?;
        }
        Ok(())
    }
}

//! `clawmesh-testnet kills`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;

use super::output::Output;
use crate::{
    binary, kills,
    process::{Auth, Mesh, Plan, Terminal},
};

/// Kill real nodes of this machine while they answer, delete their disks, and look for the messages that two nodes held.
///
/// Exits 1 when one of them is lost.
#[derive(Debug, clap::Args)]
pub(super) struct Kills {
    /// Nodes to kill, one after the other; a new one takes the place of each
    #[arg(long, value_name = "N", default_value_t = 200)]
    kills: usize,
    /// Chooses the nodes and the moments
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The daemon to kill [default: the clawmeshd beside this program]
    #[arg(long, value_name = "PATH")]
    clawmeshd: Option<PathBuf>,
}

impl Kills {
    pub(super) async fn run(self, output: &mut Output) -> Result<ExitCode> {
        let binary = match &self.clawmeshd {
            Some(path) => path.clone(),
            None => binary::beside()?,
        };
        let (auth, terminal, flags) = (Auth::Key, Terminal::Mine, Vec::new());
        let plan = Plan { binary, nodes: 3, auth, keep: None, flags, terminal };
        let mut mesh = Mesh::up(plan).await?;
        let played = kills::play(&mut mesh, (self.kills, self.seed), |tally| {
            output.note(&text(*tally));
        });
        let tally = played.await?;
        mesh.stop().await?;
        output.say(&text(tally))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(tally: kills::Tally) -> String {
    let kills::Tally { kills, kept, alone } = tally;
    format!(
        "{kills} nodes killed with their disks: {kept} messages that two nodes held are all there; {alone} were \
         answered with one copy"
    )
}

//! `clawmesh-testnet kills`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use tokio::{sync::mpsc, task::JoinSet};

use super::output::Output;
use crate::{
    binary,
    kills::{self, hosts},
    process::{Auth, Mesh, Plan, Terminal},
};

/// Kill real nodes of this machine while they answer, delete their disks, and look for the messages that two nodes held.
///
/// With --hosts the disks stay, and agents of hosts ask each other: what a node took has its result. Exits 1 when something
/// is lost.
#[derive(Debug, clap::Args)]
pub(super) struct Kills {
    /// Nodes to kill, one after the other; a new one takes the place of each. With --hosts: runs
    #[arg(long, visible_alias = "runs", value_name = "N", default_value_t = 200)]
    kills: usize,
    /// Chooses the nodes and the moments
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Two nodes, an agent that gives tasks and asks, and one that answers; they start again on their disks
    #[arg(long)]
    hosts: bool,
    /// With --hosts: meshes at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "hosts")]
    jobs: usize,
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
        if self.hosts {
            return self.of_hosts(plan, output).await;
        }
        let mut mesh = Mesh::up(plan).await?;
        let played = kills::play(&mut mesh, (self.kills, self.seed), |tally| {
            output.note(&text(*tally));
        });
        let tally = played.await?;
        mesh.stop().await?;
        output.say(&text(tally))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn of_hosts(self, plan: Plan, output: &mut Output) -> Result<ExitCode> {
        let jobs = self.jobs.max(1);
        let (sender, mut tallies) = mpsc::unbounded_channel();
        let mut playing = JoinSet::new();
        for job in 0..jobs {
            let runs = self.kills / jobs + usize::from(job < self.kills % jobs);
            let seed = self.seed.wrapping_add(u64::try_from(job).context("a number of jobs")?);
            let (plan, sender) = (plan.clone(), sender.clone());
            playing.spawn(async move {
                // An error: nobody hears any more, as another job has failed.
                let told = |tally: &hosts::Tally| {
                    sender.send((job, *tally)).ok();
                };
                hosts::play(plan, (runs, seed), told).await
            });
        }
        drop(sender);
        let mut newest = vec![hosts::Tally::default(); jobs];
        let all = |newest: &[hosts::Tally]| {
            let mut all = hosts::Tally::default();
            newest.iter().for_each(|tally| all += *tally);
            text_of_hosts(all)
        };
        loop {
            tokio::select! {
                Some((job, tally)) = tallies.recv() => {
                    newest[job] = tally;
                    output.note(&all(&newest));
                }
                ended = playing.join_next() => match ended {
                    // The first failure ends the others.
                    Some(ended) => drop(ended.context("a mesh")??),
                    None => break,
                },
            }
        }
        output.say(&all(&newest))?;
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

fn text_of_hosts(tally: hosts::Tally) -> String {
    let hosts::Tally { runs, answered, again, woken } = tally;
    format!(
        "{runs} runs with a kill: {answered} tasks and questions were taken, and each has its result; {again} results \
         came again before they were confirmed, none after; {woken} notices"
    )
}

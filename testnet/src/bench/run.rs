//! A run: everything that its rows have at hand.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use super::{
    connection::Clock,
    floors::Floors,
    load::Server,
    setting::{Row, Setting, Target},
};
use crate::process::{Auth, Mesh, Plan, Terminal};

/// The shortest that a timed row may last: less says nothing.
const LASTS_MIN: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) setting: Setting,
    pub(super) clock: Clock,
    pub(super) floors: Floors,
    /// In the names of rooms: a server may have been measured before.
    mark: String,
}

impl Run {
    /// Measures the floors first.
    pub(super) async fn start(setting: Setting) -> Result<Run> {
        (setting.tell)("measuring what disk and loopback can do");
        let floors = Floors::measure().await?;
        Ok(Run { setting, clock: Clock::new(), floors, mark: mark() })
    }

    /// A server, with the mesh that it is in: one of its own for each row, for the leavings of other rows are not to
    /// be measured.
    pub(super) async fn one(&self) -> Result<(Server, Option<Mesh>)> {
        match &self.setting.target {
            Target::Server { address, key } => {
                Ok((Server { address: address.clone(), key: key.clone() }, None))
            }
            Target::Daemons { nodes, .. } => {
                let mesh = self.mesh(*nodes).await?;
                Ok((Server::of(&mesh, 0), Some(mesh)))
            }
        }
    }

    /// The same with another daemon, if there is one.
    pub(super) fn beside(&self) -> Option<Run> {
        let Target::Daemons { nodes, .. } = self.setting.target else { return None };
        let binary = self.setting.beside.clone()?;
        let target = Target::Daemons { binary, nodes };
        let setting = Setting { target, ..self.setting.clone() };
        let mark = format!("{}-beside", self.mark);
        Some(Run { setting, clock: self.clock, floors: self.floors.clone(), mark })
    }

    pub(super) fn called(&self, row: Row) -> String {
        let name = row.to_possible_value();
        name.map_or_else(String::new, |name| name.get_name().to_owned())
    }

    pub(super) fn tell(&self, text: &str) {
        (self.setting.tell)(text);
    }

    /// How long a row lasts that lasts so many seconds at full scale.
    pub(super) fn lasts(&self, seconds: u64) -> Duration {
        Duration::from_secs(seconds).mul_f64(self.setting.scale).max(LASTS_MIN)
    }

    pub(super) fn warm_up(&self) -> Duration {
        self.lasts(1)
    }

    pub(super) fn scaled(&self, count: u64) -> u64 {
        // Below 2^53 in any case.
        ((count as f64 * self.setting.scale) as u64).max(1)
    }

    /// A name for a room that no run had before.
    pub(super) fn name(&self, what: &str) -> String {
        format!("bench-{what}-{}", self.mark)
    }

    pub(super) fn plan(&self, nodes: usize) -> Result<Plan> {
        let Target::Daemons { binary, .. } = &self.setting.target else {
            bail!("a server that runs has no nodes to start: leave --against away");
        };
        Ok(Plan {
            binary: binary.clone(),
            nodes,
            auth: Auth::Open,
            keep: None,
            flags: Vec::new(),
            terminal: Terminal::Shared,
        })
    }

    pub(super) async fn mesh(&self, nodes: usize) -> Result<Mesh> {
        Ok(Mesh::up(self.plan(nodes)?).await?)
    }
}

fn mark() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("{:x}", since.map_or(0, |since| since.as_millis()))
}

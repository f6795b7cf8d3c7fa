//! The figures that the project promises, measured on real daemons.
//!
//! Load and daemons share the machine. Each [`Row`] starts the nodes that it needs, measures, and says
//! what came out beside what it should be (`figure`) and beside what no server can be better than
//! (`floors`), measured in the same run. `single` has the rows that any ClawChat server can be
//! measured by.

mod connection;
mod figure;
mod floors;
mod growth;
mod keeping;
mod load;
mod nodes;
mod report;
mod single;
mod svg;

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, bail};
use clap::ValueEnum;

use self::{connection::Clock, figure::Figure, floors::Floors, load::Server};
pub use self::{
    growth::{Growth, grow},
    report::Report,
    svg::draw,
};
use crate::process::{Auth, Mesh, Plan, Terminal};

/// The shortest that a timed row may last: less says nothing.
const LASTS_MIN: Duration = Duration::from_millis(500);

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Row {
    /// One sender, one message in flight
    Ok,
    /// 8 senders, a room each
    Rooms,
    /// 8 senders in one room
    Room,
    /// One speaks, 50 hear it
    FanOut,
    /// One speaks, 1,000 hear it
    Crowd,
    /// Pages of a long history
    History,
    /// From one node to another
    Hop,
    /// What agents do besides talking, on two nodes with 10 ms between them
    Acts,
    /// Writers on three nodes, one room
    Writers,
    /// After a split
    Heal,
    /// A new node fetches a long room
    CatchUp,
    /// A million messages: start, memory, disk
    Stored,
    /// Memory of an idle node and of idle connections
    Idle,
    /// Bytes between two nodes
    Wire,
    /// Processor time of an idle node
    IdleProcessor,
}

impl Row {
    /// Whether one server is enough, and any will do.
    #[must_use]
    pub fn needs_one_server(self) -> bool {
        match self {
            Row::Ok | Row::Rooms | Row::Room | Row::FanOut | Row::Crowd | Row::History => true,
            Row::Hop
            | Row::Acts
            | Row::Writers
            | Row::Heal
            | Row::CatchUp
            | Row::Stored
            | Row::Idle
            | Row::Wire
            | Row::IdleProcessor => false,
        }
    }
}

/// What to measure, and where.
#[derive(Clone, Debug)]
pub struct Setting {
    /// In this order.
    pub rows: Vec<Row>,
    /// Daemons to measure, or another server.
    pub target: Target,
    /// Another daemon, such as that of the commit before: each row is measured with it, too, right before.
    pub beside: Option<PathBuf>,
    /// So many times the durations and the messages.
    pub scale: f64,
    /// Tells how far it is.
    pub tell: fn(&str),
}

/// What is measured.
#[derive(Clone, Debug)]
pub enum Target {
    /// Daemons that are started for it.
    Daemons {
        /// The program.
        binary: PathBuf,
        /// How many are in the mesh where one server would be enough.
        nodes: usize,
    },
    /// A ClawChat server that runs.
    Server {
        /// `HOST:PORT`.
        address: String,
        /// What it wants.
        key: Option<String>,
    },
}

/// What rows have at hand.
#[derive(Debug)]
struct Run {
    setting: Setting,
    clock: Clock,
    floors: Floors,
    /// In the names of rooms: a server may have been measured before.
    mark: String,
}

/// Measures.
///
/// # Errors
///
/// A server is not there, refuses, loses or repeats a message, hangs up, or says nothing for a minute.
pub async fn measure(setting: Setting) -> Result<Report> {
    let rows = setting.rows.clone();
    let run = start(setting).await?;
    let beside = run.beside();
    let mut figures = Vec::new();
    for row in rows {
        run.tell(&format!("measuring {}", run.called(row)));
        let others = match &beside {
            Some(other) => other.row(row).await?,
            None => Vec::new(),
        };
        let mut measured = run.row(row).await?;
        for (figure, other) in measured.iter_mut().zip(others) {
            figure.beside = Some(other.value);
        }
        figures.extend(measured);
    }
    let scale = run.setting.scale;
    Ok(Report { figures, floors: run.floors, scale })
}

async fn start(setting: Setting) -> Result<Run> {
    (setting.tell)("measuring what disk and loopback can do");
    let floors = Floors::measure().await?;
    Ok(Run { setting, clock: Clock::new(), floors, mark: mark() })
}

fn mark() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("{:x}", since.map_or(0, |it| it.as_millis()))
}

impl Run {
    async fn row(&self, row: Row) -> Result<Vec<Figure>> {
        match row {
            Row::Ok => single::ok(self, &self.one().await?.0).await,
            Row::Rooms => single::rooms(self, &self.one().await?.0).await,
            Row::Room => single::room(self, &self.one().await?.0).await,
            Row::FanOut => single::fan_out_to_some(self, &self.one().await?.0).await,
            Row::Crowd => single::fan_out_to_many(self, &self.one().await?.0).await,
            Row::History => single::history(self, &self.one().await?.0).await,
            Row::Hop => nodes::hop(self).await,
            Row::Acts => nodes::acts(self).await,
            Row::Writers => nodes::writers(self).await,
            Row::Heal => nodes::heal(self).await,
            Row::CatchUp => nodes::catch_up(self).await,
            Row::Wire => nodes::wire(self).await,
            Row::IdleProcessor => nodes::idle_processor(self).await,
            Row::Stored => keeping::stored(self).await,
            Row::Idle => keeping::idle(self).await,
        }
    }

    /// A server, with the mesh that it is in: one of its own for each row, for what others left is not to be
    /// measured.
    async fn one(&self) -> Result<(Server, Option<Mesh>)> {
        match &self.setting.target {
            Target::Server { address, key } => {
                Ok((Server { address: address.clone(), key: key.clone() }, None))
            }
            Target::Daemons { nodes, .. } => {
                let mesh = self.mesh(*nodes).await?;
                Ok((nodes::server(&mesh, 0), Some(mesh)))
            }
        }
    }

    /// The same with another daemon, if there is one.
    fn beside(&self) -> Option<Run> {
        let Target::Daemons { nodes, .. } = self.setting.target else { return None };
        let binary = self.setting.beside.clone()?;
        let target = Target::Daemons { binary, nodes };
        let setting = Setting { target, ..self.setting.clone() };
        let mark = format!("{}-beside", self.mark);
        Some(Run { setting, clock: self.clock, floors: self.floors.clone(), mark })
    }

    fn called(&self, row: Row) -> String {
        let name = row.to_possible_value();
        name.map_or_else(String::new, |it| it.get_name().to_owned())
    }

    fn tell(&self, text: &str) {
        (self.setting.tell)(text);
    }

    /// How long a row lasts that lasts so many seconds at full scale.
    fn lasts(&self, seconds: u64) -> Duration {
        Duration::from_secs(seconds).mul_f64(self.setting.scale).max(LASTS_MIN)
    }

    fn warm_up(&self) -> Duration {
        self.lasts(1)
    }

    fn scaled(&self, count: u64) -> u64 {
        // Below 2^53 in any case.
        ((count as f64 * self.setting.scale) as u64).max(1)
    }

    /// A name for a room that no run had before.
    fn name(&self, what: &str) -> String {
        format!("bench-{what}-{}", self.mark)
    }

    fn plan(&self, nodes: usize) -> Result<Plan> {
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

    async fn mesh(&self, nodes: usize) -> Result<Mesh> {
        Ok(Mesh::up(self.plan(nodes)?).await?)
    }
}

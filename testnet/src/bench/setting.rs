//! The rows of a run, and the server that is measured.

use std::path::PathBuf;

use clap::ValueEnum;

/// Something that can be measured.
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
    /// Acts of agents besides talking, on two nodes with 10 ms between them
    Acts,
    /// One sender on three nodes whose messages two of them hold before they are acknowledged
    Copies,
    /// Profiles: changed, shown at another node, read
    Profile,
    /// Tools of agent hosts on two nodes
    Tools,
    /// Writers on three nodes, one room
    Writers,
    /// After a split
    Heal,
    /// A new node fetches a long room
    CatchUp,
    /// A million messages: start, memory, disk
    Stored,
    /// A million messages: searches
    Search,
    /// Memory of an idle node and of idle connections
    Idle,
    /// Bytes between two nodes
    Wire,
    /// Processor time of an idle node
    IdleProcessor,
    /// The index of agents: jobs that are searched
    Finder,
    /// The index of agents: mail
    FinderMail,
    /// The index of agents: a new node fetches it
    FinderJoin,
    /// The page of an idle mesh: its cost, and how fresh it is
    Page,
    /// A person's program asks an agent at another node
    Goclaw,
    /// Memory of idle connections of persons' programs
    GoclawIdle,
    /// Processor time of a node with many jobs that are not due
    GoclawCron,
    /// A task of one node is claimed at another
    Clawtank,
    /// 2,000 look on at a busy room
    Spectators,
    /// A long room as one file
    Replay,
    /// NATS JetStream under the same loads (with --nats)
    Nats,
}

impl Row {
    /// Whether one server is enough, and any will do.
    #[must_use]
    pub fn needs_one_server(self) -> bool {
        matches!(self, Row::Ok | Row::Rooms | Row::Room | Row::FanOut | Row::Crowd | Row::History)
    }
}

/// The rows to measure, and the server.
#[derive(Clone, Debug)]
pub struct Setting {
    /// In this order.
    pub rows: Vec<Row>,
    /// Daemons to measure, or another server.
    pub target: Target,
    /// Another daemon, such as that of the commit before: each row is measured with it, too, right before.
    pub beside: Option<PathBuf>,
    /// The server of NATS to compare with.
    pub nats: Option<PathBuf>,
    /// So many times the durations and the messages.
    pub scale: f64,
    /// Is told how far the run is.
    pub tell: fn(&str),
}

/// The measured server.
#[derive(Clone, Debug)]
pub enum Target {
    /// Daemons that are started for the run.
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
        /// Its API key, if it wants one.
        key: Option<String>,
    },
}

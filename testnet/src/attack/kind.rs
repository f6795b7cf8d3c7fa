//! The kinds of attack: one row each.

use std::{fmt, net::SocketAddr};

use anyhow::Result;
use tokio::time::Instant;

use super::{Setting, abuse, clients, insider::Insider, lies};
use crate::{process::Mesh, sim::liar::Theme};

/// One kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Nothing: what the machine itself does to the figures
    Calm,
    /// Entries under seals that do not hold
    Forged,
    /// What honest nodes said, again and again
    Replayed,
    /// Two histories of its own log
    Forks,
    /// Clocks far ahead
    Clocks,
    /// Numbers and eras outside its lane
    Numbers,
    /// Bodies that nest deeply, never end, or are of no kind
    Nested,
    /// Ballots and results that do not match
    Ballots,
    /// Decisions of leaders who are none
    Leaders,
    /// Entries it does not have, and answers that never end
    Promises,
    /// Whatever a member can say
    Lies,
    /// Messages that nest deeply or are no messages
    Garbage,
    /// Frames and gossip larger than there may be
    Oversized,
    /// Well formed gossip, as fast as it goes
    GossipFlood,
    /// Questions as fast as they go, whose answers it does not read
    RequestFlood,
    /// Thousands of topics, again and again
    Topics,
    /// Frames whose bytes come one by one
    SlowLoris,
    /// Frame streams, opened again and again
    Streams,
    /// Connections that say nothing, at the door for nodes
    HalfOpen,
    /// Agents' connections that never register, as many as `--many`
    ClientIdle,
    /// Agents' connections, opened and dropped as fast as it goes
    ClientFlood,
    /// Agents who are in a busy room and do not read, as many as `--many`
    ClientSlow,
    /// Lines of 1 MiB in a row, of agents who have registered and of others
    ClientLarge,
    /// HTTP and WebSocket as no browser speaks it
    ClientWebsocket,
}

/// By what means it is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    Nothing,
    /// Said to nodes, over the network that nodes use.
    Lies(Theme),
    /// Done to nodes, by a peer without manners.
    Abuse(abuse::Abuse),
    /// Done at the doors for agents.
    Clients(clients::Enemy),
}

/// Whether `status` has to say who it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It does.
    Named,
    /// There is nobody to name, or nothing that an honest node would not do: it says why not.
    Nobody(&'static str),
}

impl Kind {
    pub(super) fn means(self) -> Means {
        match self {
            Kind::Calm => Means::Nothing,
            Kind::Forged => Means::Lies(Theme::Forgery),
            Kind::Replayed => Means::Lies(Theme::Replay),
            Kind::Forks => Means::Lies(Theme::Fork),
            Kind::Clocks => Means::Lies(Theme::Clock),
            Kind::Numbers => Means::Lies(Theme::Numbers),
            Kind::Nested => Means::Lies(Theme::Junk),
            Kind::Ballots => Means::Lies(Theme::Ballots),
            Kind::Leaders => Means::Lies(Theme::Leaders),
            Kind::Promises => Means::Lies(Theme::Promises),
            Kind::Lies => Means::Lies(Theme::Anything),
            Kind::Garbage => Means::Abuse(abuse::Abuse::Garbage),
            Kind::Oversized => Means::Abuse(abuse::Abuse::Oversized),
            Kind::GossipFlood => Means::Abuse(abuse::Abuse::GossipFlood),
            Kind::RequestFlood => Means::Abuse(abuse::Abuse::RequestFlood),
            Kind::Topics => Means::Abuse(abuse::Abuse::Topics),
            Kind::SlowLoris => Means::Abuse(abuse::Abuse::SlowLoris),
            Kind::Streams => Means::Abuse(abuse::Abuse::Streams),
            Kind::HalfOpen => Means::Abuse(abuse::Abuse::HalfOpen),
            Kind::ClientIdle => Means::Clients(clients::Enemy::Idle),
            Kind::ClientFlood => Means::Clients(clients::Enemy::Flood),
            Kind::ClientSlow => Means::Clients(clients::Enemy::Slow),
            Kind::ClientLarge => Means::Clients(clients::Enemy::Large),
            Kind::ClientWebsocket => Means::Clients(clients::Enemy::Websocket),
        }
    }

    /// The shortest that says something: some things are only noticed after a while.
    #[must_use]
    pub fn seconds_min(self) -> f64 {
        match self.means() {
            // `net::limits::FRAME_WITHIN`.
            Means::Abuse(abuse::Abuse::SlowLoris) => 40.0,
            // `mesh::limits::PENDING_FOR`: until then the liar may have got the lane.
            Means::Lies(Theme::Numbers) => 75.0,
            // A thousand agents have to come first.
            Means::Clients(clients::Enemy::Slow) => 40.0,
            Means::Nothing | Means::Lies(_) | Means::Clients(_) | Means::Abuse(_) => 0.0,
        }
    }

    /// Whether the offender has to be named.
    #[must_use]
    pub fn blame(self) -> Blame {
        match self {
            Kind::Replayed => Blame::Nobody("repeating what is true is what relays do"),
            Kind::Calm => Blame::Nobody("nothing was done"),
            Kind::Streams => {
                Blame::Nobody("of two nodes only the one with the lower id opens streams")
            }
            Kind::RequestFlood => {
                Blame::Nobody("as much as is answered anyway, every node may ask")
            }
            Kind::HalfOpen => Blame::Nobody("nobody has said who he is"),
            Kind::ClientIdle
            | Kind::ClientFlood
            | Kind::ClientSlow
            | Kind::ClientLarge
            | Kind::ClientWebsocket => Blame::Nobody("agents are counted, not named"),
            Kind::Forged
            | Kind::Forks
            | Kind::Clocks
            | Kind::Numbers
            | Kind::Nested
            | Kind::Ballots
            | Kind::Leaders
            | Kind::Lies
            | Kind::Promises
            | Kind::Garbage
            | Kind::Oversized
            | Kind::GossipFlood
            | Kind::Topics
            | Kind::SlowLoris => Blame::Named,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self);
        f.write_str(value.as_ref().map_or("?", |it| it.get_name()))
    }
}

/// Whom it is done to, and for how long.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// Where the nodes wait for nodes.
    pub(super) nodes: Vec<SocketAddr>,
    /// Where the first waits for agents: TCP and HTTP.
    pub(super) tcp: String,
    pub(super) http: String,
    pub(super) key: Option<String>,
    pub(super) many: usize,
    pub(super) until: Instant,
}

impl Scene {
    pub(super) fn new(mesh: &Mesh, setting: Setting, until: Instant) -> Scene {
        let at = |it: &String| it.parse().ok();
        let nodes = mesh.nodes.iter().filter_map(|it| it.ready().listen.first().and_then(at));
        Scene {
            nodes: nodes.collect(),
            tcp: mesh.nodes[0].tcp().to_owned(),
            http: mesh.nodes[0].http().to_owned(),
            key: mesh.key().map(str::to_owned),
            many: setting.many,
            until,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Does it, until the scene is over. What was done, for people.
pub(super) async fn perform(kind: Kind, insider: Option<Insider>, scene: Scene) -> Result<String> {
    match (kind.means(), insider) {
        (Means::Lies(theme), Some(insider)) => lies::tell(insider, theme, scene).await,
        (Means::Abuse(abuse), Some(insider)) => abuse::perform(insider, abuse, scene).await,
        (Means::Clients(enemy), _) => clients::perform(enemy, scene).await,
        (Means::Nothing, _) => {
            tokio::time::sleep_until(scene.until).await;
            Ok("nothing".to_owned())
        }
        (Means::Lies(_) | Means::Abuse(_), None) => Ok("nothing".to_owned()),
    }
}

//! The kinds of attack: one row each.

use std::fmt;

use crate::sim::liar::Theme;

/// One kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Nothing: the machine alone
    Calm,
    /// Entries under seals that do not hold
    Forged,
    /// Messages of honest nodes, again and again
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
    /// Anything that a member can say
    Lies,
    /// Messages that nest deeply or are no messages
    Garbage,
    /// Frames and gossip larger than there may be
    Oversized,
    /// Well formed gossip, as fast as it goes
    GossipFlood,
    /// Questions as fast as they go, whose answers it does not read
    RequestFlood,
    /// Pieces of answers without end, of agents of its own and of others, and rooms without end that it waits for
    PieceFlood,
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
    /// 64 programs of people that speak GoClaw badly: methods without end, codes that are guessed, frames that are none
    ClientGoclaw,
    /// Agents whose streamed answers never end
    ClientStream,
    /// 64 programs that speak ClawTank badly: envelopes that nest, ids and aliases that collide
    ClientClawtank,
    /// Those who look on at the room of the honest agents, with keys and without, as many as `--many`
    ClientSpectators,
}

/// The means of an attack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    Nothing,
    /// Said to nodes, over the network that nodes use.
    Lies(Theme),
    /// Done to nodes, by a peer without manners.
    Abuse(Abuse),
    /// Done at the doors for agents.
    Clients(Enemy),
}

/// An abuse of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abuse {
    Garbage,
    Oversized,
    GossipFlood,
    RequestFlood,
    PieceFlood,
    Topics,
    SlowLoris,
    Streams,
    HalfOpen,
}

/// A client that is an enemy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Enemy {
    Idle,
    Flood,
    Slow,
    Large,
    Websocket,
    Goclaw,
    Stream,
    Clawtank,
    Spectators,
}

/// Whether `status` has to name the offender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It does.
    Named,
    /// There is nobody to name, or an honest node would do the same: the reason.
    Nobody(&'static str),
}

/// The row of a kind.
struct Row {
    means: Means,
    blame: Blame,
}

impl Row {
    fn named(means: Means) -> Row {
        Row { means, blame: Blame::Named }
    }

    fn nobody(means: Means, why: &'static str) -> Row {
        Row { means, blame: Blame::Nobody(why) }
    }

    fn client(enemy: Enemy) -> Row {
        Row::nobody(Means::Clients(enemy), "agents are counted, not named")
    }
}

impl Kind {
    fn row(self) -> Row {
        let (lies, abuse) = (|of| Row::named(Means::Lies(of)), |of| Row::named(Means::Abuse(of)));
        match self {
            Kind::Calm => Row::nobody(Means::Nothing, "nothing was done"),
            Kind::Forged => lies(Theme::Forgery),
            Kind::Replayed => {
                Row::nobody(Means::Lies(Theme::Replay), "repeating what is true is what relays do")
            }
            Kind::Forks => lies(Theme::Fork),
            Kind::Clocks => lies(Theme::Clock),
            Kind::Numbers => lies(Theme::Numbers),
            Kind::Nested => lies(Theme::Junk),
            Kind::Ballots => lies(Theme::Ballots),
            Kind::Leaders => lies(Theme::Leaders),
            Kind::Promises => lies(Theme::Promises),
            Kind::Lies => lies(Theme::Anything),
            Kind::Garbage => abuse(Abuse::Garbage),
            Kind::Oversized => abuse(Abuse::Oversized),
            Kind::GossipFlood => abuse(Abuse::GossipFlood),
            Kind::RequestFlood => Row::nobody(
                Means::Abuse(Abuse::RequestFlood),
                "as much as is answered anyway, every node may ask",
            ),
            Kind::PieceFlood => Row::nobody(
                Means::Abuse(Abuse::PieceFlood),
                "a piece that nobody waits for any more, every node may have under way",
            ),
            Kind::Topics => abuse(Abuse::Topics),
            Kind::SlowLoris => abuse(Abuse::SlowLoris),
            Kind::Streams => Row::nobody(
                Means::Abuse(Abuse::Streams),
                "of two nodes only the one with the lower id opens streams",
            ),
            Kind::HalfOpen => {
                Row::nobody(Means::Abuse(Abuse::HalfOpen), "nobody has said who he is")
            }
            Kind::ClientIdle => Row::client(Enemy::Idle),
            Kind::ClientFlood => Row::client(Enemy::Flood),
            Kind::ClientSlow => Row::client(Enemy::Slow),
            Kind::ClientLarge => Row::client(Enemy::Large),
            Kind::ClientWebsocket => Row::client(Enemy::Websocket),
            Kind::ClientGoclaw => Row::client(Enemy::Goclaw),
            Kind::ClientStream => Row::client(Enemy::Stream),
            Kind::ClientClawtank => Row::client(Enemy::Clawtank),
            Kind::ClientSpectators => {
                Row::nobody(Means::Clients(Enemy::Spectators), "who looks on is nobody")
            }
        }
    }

    pub(super) fn means(self) -> Means {
        self.row().means
    }

    /// Whether the offender has to be named.
    #[must_use]
    pub fn blame(self) -> Blame {
        self.row().blame
    }

    /// The shortest attack that shows anything: some things are only noticed after a while.
    #[must_use]
    pub fn seconds_min(self) -> f64 {
        match self.means() {
            // `net::limits::FRAME_WITHIN`.
            Means::Abuse(Abuse::SlowLoris) => 40.0,
            // `mesh::limits::PENDING_FOR`: until then the liar may have got the lane.
            Means::Lies(Theme::Numbers) => 75.0,
            // A thousand agents have to come first.
            Means::Clients(Enemy::Slow) => 40.0,
            Means::Nothing | Means::Lies(_) | Means::Clients(_) | Means::Abuse(_) => 0.0,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self);
        f.write_str(value.as_ref().map_or("?", |name| name.get_name()))
    }
}

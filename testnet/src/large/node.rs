//! An engine, and its inbox.

use std::{
    collections::VecDeque,
    rc::Rc,
    time::{Duration, Instant},
};

use mesh::{
    Config, Engine, Identity, Input, MeshSecret, Turn,
    api::batch::Summary,
    name::{id::NodeId, time::Now},
    order::pulse::{Pulse, Rhythm},
};

use super::{
    slot::{Slot, time_of},
    spoken::Spoken,
};
use crate::sim::dice::Dice;

/// The wall clock at the beginning. Unix milliseconds.
const EPOCH_MS: u64 = 1_800_000_000_000;

/// Something that waits in an inbox.
#[derive(Debug)]
pub(super) enum Waiting {
    /// By a peer.
    Said { from: usize, spoken: Rc<Spoken> },
    /// By gossip, passed on by a peer.
    Heard { from: usize, spoken: Rc<Spoken> },
    /// By a client, or by the network.
    Input(Box<Input>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) identity: Identity,
    config: Config,
    engine: Option<Engine>,
    pub(super) inbox: VecDeque<Waiting>,
    pub(super) pulse: Option<Pulse>,
    pub(super) rhythm: Rhythm,
    /// A commit takes until then.
    pub(super) busy_until: Slot,
    /// When it looks at its inbox next; a look that was planned for another slot is void.
    pub(super) wakes: Slot,
}

impl Node {
    /// The nodes of a mesh, by seed, before their start.
    pub(super) fn all(nodes: usize, dice: &mut Dice) -> (MeshSecret, Vec<Node>) {
        let identities: Vec<Identity> =
            (0..nodes).map(|_| Identity::from_seed(&dice.seed())).collect();
        let founder = identities.first().map_or(NodeId([0; 32]), Identity::node_id);
        let secret = MeshSecret::new([7; 32], founder);
        let make = |(i, identity): (usize, Identity)| {
            let mut config = Config::new(secret.mesh_id(), founder);
            config.name = format!("node{i}");
            config.version = "0.1.0".to_owned();
            config.seed = dice.draw();
            Node {
                id: identity.node_id(),
                identity,
                config,
                engine: None,
                inbox: VecDeque::new(),
                pulse: None,
                rhythm: Rhythm::default(),
                busy_until: 0,
                wakes: Slot::MAX,
            }
        };
        let nodes = identities.into_iter().enumerate().map(make).collect();
        (secret, nodes)
    }

    /// Starts it for the first time, with nothing on its disk.
    pub(super) fn start(&mut self, at: Slot) {
        let nothing = Summary::default();
        let engine = Engine::open(self.identity.clone(), self.config.clone(), nothing, now(at));
        self.engine = Some(engine);
    }

    /// It loses power: whoever is linked with it hears nothing, and does not learn why.
    pub(super) fn die(&mut self) {
        (self.engine, self.pulse) = (None, None);
        self.inbox.clear();
    }

    pub(super) fn is_there(&self) -> bool {
        self.engine.is_some()
    }

    /// When it has something to do by itself.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.engine.as_ref().map(Engine::deadline)
    }

    /// Handles everything that waits. Also how long the processor took, in nanoseconds.
    pub(super) fn turn(&mut self, at: Slot, ids: &[NodeId]) -> (Turn, u64) {
        let at = now(at);
        let Some(engine) = &mut self.engine else { return (Turn::default(), 0) };
        let began = Instant::now();
        for waiting in self.inbox.drain(..) {
            let input = match waiting {
                Waiting::Said { from, spoken } => {
                    Input::Message { from: ids[from], message: spoken.message.clone() }
                }
                Waiting::Heard { from, spoken } => {
                    Input::Gossip { from: ids[from], message: spoken.message.clone() }
                }
                Waiting::Input(input) => *input,
            };
            engine.handle(at, input);
        }
        if at.mono >= engine.deadline() {
            engine.handle(at, Input::Timeout);
        }
        let turn = engine.take_turn();
        (turn, u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The time by a node's clocks, which are right.
fn now(at: Slot) -> Now {
    let mono = time_of(at);
    let wall_us = EPOCH_MS * 1_000 + u64::try_from(mono.as_micros()).expect("it is short");
    Now { mono, wall_ms: wall_us / 1_000, wall_us }
}

//! How an attacker comes into a mesh: with a ticket, as everybody.

use std::fs;

use anyhow::{Context, Result, ensure};
use mesh::{
    Identity, MeshSecret,
    name::id::{MeshId, NodeId, parse_hex},
};
use tokio::time::{Duration, Instant, sleep};

use crate::process::Mesh;

/// How long the mesh may take to admit it.
const ADMITTED_WITHIN: Duration = Duration::from_secs(60);

/// A member whose daemon has stopped, and whose keys an attacker has.
#[derive(Clone)]
pub(super) struct Insider {
    seed: [u8; 32],
    secret: MeshSecret,
}

impl Insider {
    /// A daemon joins and is known to all; then it stops, and leaves its keys.
    pub(super) async fn join(mesh: &mut Mesh) -> Result<Insider> {
        let ticket = mesh.nodes[0].ready().ticket.clone();
        let name = format!("insider{}", next_number(mesh));
        let mut daemon = mesh.add(&name, Some(ticket)).await?;
        let id = daemon.ready().node_id.clone();
        let deadline = Instant::now() + ADMITTED_WITHIN;
        for node in &mesh.nodes {
            while !knows(&node.status().await?, &id) {
                ensure!(Instant::now() < deadline, "{name} is not known everywhere");
                sleep(Duration::from_millis(50)).await;
            }
        }
        let dir = daemon.ready().data_dir.clone();
        daemon.stop().await?;
        let read = |file: &str| fs::read_to_string(dir.join(file)).with_context(|| file.to_owned());
        let seed = parse_hex(read("node.key")?.trim()).context("node.key")?;
        let text = read("mesh.key")?;
        let mut words = text.split_whitespace();
        let mut word = || words.next().and_then(parse_hex::<32>).context("mesh.key");
        let (secret, founder) = (word()?, NodeId(word()?));
        Ok(Insider { seed, secret: MeshSecret::new(secret, founder) })
    }

    pub(super) fn node(&self) -> NodeId {
        self.identity().node_id()
    }

    pub(super) fn identity(&self) -> Identity {
        Identity::from_seed(&self.seed)
    }

    pub(super) fn mesh(&self) -> MeshId {
        self.secret.mesh_id()
    }

    /// As its daemon would start its network, but that it listens nowhere.
    pub(super) fn network(&self, topics: u16) -> net::Settings {
        net::Settings {
            secret_key: self.seed.into(),
            pre_shared_key: (*self.secret.pre_shared_key()).into(),
            former_keys: Vec::new(),
            listen: Vec::new(),
            announce: Vec::new(),
            peers: Vec::new(),
            topics,
            listens_to: None,
            web: net::Web::default(),
            discovery: net::Discovery::Configured,
            relaying: net::Relaying::Members,
            relay_rate: net::limits::RELAY_BYTES_PER_SECOND,
        }
    }
}

/// The next number that no directory of the mesh has.
fn next_number(mesh: &Mesh) -> usize {
    (1..).find(|n| !mesh.dir().join(format!("insider{n}")).exists()).unwrap_or(0)
}

fn knows(status: &serde_json::Value, node: &str) -> bool {
    let peers = status["peers"].as_array().into_iter().flatten();
    peers.into_iter().any(|peer| peer["node_id"] == node && peer["connected"] == true)
}

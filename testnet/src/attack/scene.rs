//! The attacked nodes, and how long they are attacked.

use std::net::SocketAddr;

use tokio::time::Instant;

use super::setting::Setting;
use crate::process::Mesh;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The addresses at which the nodes wait for nodes.
    pub(super) nodes: Vec<SocketAddr>,
    /// The addresses at which the first waits for agents: TCP and HTTP.
    pub(super) tcp: String,
    pub(super) http: String,
    pub(super) key: Option<String>,
    /// The room of the honest agents.
    pub(super) room: String,
    pub(super) many: usize,
    pub(super) until: Instant,
}

impl Scene {
    pub(super) fn new(mesh: &Mesh, room: &str, setting: Setting, until: Instant) -> Scene {
        let at = |address: &String| address.parse().ok();
        let nodes = mesh.nodes.iter().filter_map(|node| node.ready().listen.first().and_then(at));
        Scene {
            nodes: nodes.collect(),
            tcp: mesh.nodes[0].tcp().to_owned(),
            http: mesh.nodes[0].http().to_owned(),
            key: mesh.key().map(str::to_owned),
            room: room.to_owned(),
            many: setting.many,
            until,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

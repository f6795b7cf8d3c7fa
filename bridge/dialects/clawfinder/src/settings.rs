//! Decisions of the operator.

use std::time::Duration;

use mesh::name::id::MeshId;

use crate::limits::SEARCH_BYTES_KEPT;

/// Decisions of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The mesh.
    pub mesh: MeshId,
    /// The name of this node, for people.
    pub node: String,
    /// Clients that may register.
    pub signup: Signup,
    /// Other nodes are told at most so often that an account has asked.
    pub seen_every: Duration,
    /// Bytes of texts of jobs that are kept in memory for searches.
    pub search_bytes: usize,
}

/// Clients that may register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signup {
    /// Those on this machine.
    #[default]
    Local,
    /// All that reach the node.
    Open,
    /// None.
    Off,
}

impl Signup {
    /// As an operator writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signup::Local => "local",
            Signup::Open => "open",
            Signup::Off => "off",
        }
    }

    /// The one that an operator means.
    #[must_use]
    pub fn parse(text: &str) -> Option<Signup> {
        [Signup::Local, Signup::Open, Signup::Off].into_iter().find(|one| one.name() == text)
    }
}

/// See [`Settings::seen_every`].
pub const SEEN_EVERY: Duration = Duration::from_secs(600);

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(mesh: MeshId) -> Settings {
        Settings {
            mesh,
            node: String::new(),
            signup: Signup::default(),
            seen_every: SEEN_EVERY,
            search_bytes: SEARCH_BYTES_KEPT,
        }
    }
}

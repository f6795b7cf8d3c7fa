//! How nodes of a world sign.

use mesh::{
    Identity,
    name::identity::{Judge, Simulated, Strict},
};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signing {
    /// With ed25519, as real nodes do.
    Real,
    /// With signatures that only this world believes, and nobody can forge there: half of a world's time would
    /// go into ed25519.
    Simulated,
}

/// Judges signatures for somebody, on any thread.
pub(crate) type AnyJudge = Box<dyn Judge + Send + Sync>;

impl Signing {
    pub(crate) fn identity(self, seed: &[u8; 32]) -> Identity {
        match self {
            Signing::Real => Identity::from_seed(seed),
            Signing::Simulated => Identity::simulated(seed),
        }
    }

    /// The judge of signatures under these seeds.
    pub(crate) fn judge(self, seeds: &[[u8; 32]]) -> AnyJudge {
        match self {
            Signing::Real => Box::new(Strict),
            Signing::Simulated => Box::new(Simulated::new(seeds.iter().copied())),
        }
    }
}

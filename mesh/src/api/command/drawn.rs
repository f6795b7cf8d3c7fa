//! Randomness, for commands that need some.

/// Randomness that is to be a secret.
#[derive(Clone)]
pub struct Drawn(pub(crate) zeroize::Zeroizing<[u8; 32]>);

impl Drawn {
    /// These, wiped when it is dropped.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Drawn {
        Drawn(zeroize::Zeroizing::new(bytes))
    }
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Drawn(…)")
    }
}

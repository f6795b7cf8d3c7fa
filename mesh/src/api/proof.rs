//! Whether something is its author's, for those who show it.

/// The proof that is known of a message, or of an agent, here and now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The author's node was shown the key that owns the author's id. `false`: that is not known here, or not yet.
    pub verified: bool,
    /// Its key was revoked, before or after.
    pub key_revoked: bool,
}

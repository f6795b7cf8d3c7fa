//! The word of a certificate that an account is its own.

use mesh::{name::id::MeshId, records::finder::Profile};
use openpgp::Certificate;

/// The text that a certificate signs, but for the account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Document {
    pub(crate) mesh: MeshId,
}

impl Document {
    /// The whole, for an account with this public key.
    pub(crate) fn of(self, account: &[u8; 32]) -> String {
        let account: String = account.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("clawmesh finder account\n{}\n{account}\n", self.mesh)
    }
}

/// Whether a profile has one by its certificate.
pub(crate) fn is_given(
    certificate: &Certificate,
    profile: &Profile,
    document: Document,
    account: &[u8; 32],
) -> bool {
    let proof = profile.proof.as_deref().and_then(|proof| std::str::from_utf8(proof).ok());
    // The time is that of the registration: a certificate that expired later has proven it nevertheless.
    let at = profile.registered.wall_ms() / 1_000;
    let text = document.of(account);
    proof.is_some_and(|proof| certificate.verify(proof, text.as_bytes(), at).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_mesh_and_account() {
        let document = Document { mesh: MeshId([0xab; 16]) };
        let expected =
            format!("clawmesh finder account\n{}\n{}\n", "ab".repeat(16), "01".repeat(32));
        assert_eq!(document.of(&[1; 32]), expected);
    }
}

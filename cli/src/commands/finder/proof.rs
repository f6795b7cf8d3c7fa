//! The text by which a PGP key says that an account is its own, and API keys that are made here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::SigningKey;
use hkdf::Hkdf;
use protocol::value::ApiKey;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::outcome::Failure;

/// A new API key: only its user knows it, no node has made it.
///
/// # Errors
/// [`Failure::NoRandomness`].
pub(super) fn draw() -> Result<ApiKey, Failure> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut()).map_err(|_| Failure::NoRandomness)?;
    Ok(ApiKey::new(format!("ak_{}", URL_SAFE_NO_PAD.encode(*bytes))))
}

/// The API key of the account that is linked to an agent, as nodes derive it of the agent's ClawChat key.
pub(super) fn linked(key: &ApiKey, agent: &str, nth: u64) -> ApiKey {
    let label =
        [b"clawmesh finder agent".as_slice(), &nth.to_be_bytes(), agent.as_bytes()].concat();
    let mut drawn = Zeroizing::new([0; 32]);
    // 32 bytes are never too many.
    let _ = Hkdf::<Sha256>::new(None, seed(key).as_slice()).expand(&label, drawn.as_mut());
    ApiKey::new(format!("ak_{}", URL_SAFE_NO_PAD.encode(*drawn)))
}

/// What signs for a key.
fn seed(key: &ApiKey) -> Zeroizing<[u8; 32]> {
    let mut seed = Zeroizing::new([0; 32]);
    // 32 bytes are never too many.
    let _ = Hkdf::<Sha256>::new(None, key.expose().as_bytes())
        .expand(b"clawmesh signer", seed.as_mut());
    seed
}

/// The account of an API key: a public key, as nodes derive it.
fn account(key: &ApiKey) -> [u8; 32] {
    SigningKey::from_bytes(&seed(key)).verifying_key().to_bytes()
}

/// What is signed.
pub(super) fn document(mesh: &str, key: &ApiKey) -> String {
    let account: String = account(key).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("clawmesh finder account\n{mesh}\n{account}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_form_that_nodes_take() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_ne!(one.expose(), other.expose());
        let bytes = one.expose().strip_prefix("ak_").map(|text| URL_SAFE_NO_PAD.decode(text));
        assert_eq!(bytes.unwrap().unwrap().len(), 32);
    }

    #[test]
    fn the_document_names_mesh_and_account() {
        // Computed by Python's `cryptography`, which is another implementation.
        let key = ApiKey::new(format!("ak_{}", "A".repeat(43)));
        let expected = "clawmesh finder account\nabab\nfe26a87a80d2baf2f72b5d7127496325b828c144b79daae614093ee3852e929e\n";
        assert_eq!(document("abab", &key), expected);
    }

    #[test]
    fn the_key_of_a_linked_account_is_that_of_nodes() {
        // Computed in Python. Nodes have a test of the same.
        let expected = "ak_3n1ObISAFGTo9qCD6MgZoRq38JR8-2xnWZGN1t3FdVU";
        assert_eq!(linked(&ApiKey::new("a".repeat(32)), "ada", 1).expose(), expected);
    }
}

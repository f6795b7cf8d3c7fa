//! Principals: people, and programs that speak for them, as agents. A dialect whose clients are people writes in the name of one,
//! and all dialects know the same person under the same id.

use mesh::name::id::{AgentId, KeyPrint};
use sha2::{Digest as _, Sha256};

/// A user's part of the id of a principal, in bytes.
const USER_PART_BYTES_MAX: usize = 80;
/// `u-`, the digits of the key, `-`.
const PREFIX_BYTES: usize = 19;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With which the ids of all principals of a key begin.
#[must_use]
pub fn principals_of(key: KeyPrint) -> String {
    format!("u-{}-", hex(&key.0[..8]))
}

/// The agent as which a user of a key writes.
#[must_use]
pub fn principal(key: KeyPrint, user: &str) -> AgentId {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let mut part: String =
        user.to_lowercase().chars().map(|c| if plain(c) { c } else { '-' }).collect();
    part.truncate(part.floor_char_boundary(USER_PART_BYTES_MAX));
    if part != user {
        let digest = Sha256::digest(user.as_bytes());
        part = format!("{part}-{}", hex(&digest[..3]));
    }
    format!("{}{part}", principals_of(key)).as_str().into()
}

/// Whether an agent is a person, or a program that speaks for one.
#[must_use]
pub fn is_principal(agent: &str) -> bool {
    let Some((digits, user)) = agent.strip_prefix("u-").and_then(|rest| rest.split_at_checked(16))
    else {
        return false;
    };
    let is_print = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_print && user.len() > 1 && user.starts_with('-')
}

/// The user for whom a principal writes, as far as its id says.
#[must_use]
pub fn user_of(agent: &str) -> Option<&str> {
    agent.get(PREFIX_BYTES..).filter(|_| is_principal(agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_its_keys_print_and_a_user_that_no_other_has() {
        let key = KeyPrint([0xab; 16]);
        let of = |user: &str| principal(key, user).to_string();
        assert_eq!(of("ada.l_1-x"), "u-abababababababab-ada.l_1-x");
        assert_eq!(user_of("u-abababababababab-ada.l_1-x"), Some("ada.l_1-x"));
        let (upper, lower, other) = (of("Ada"), of("ada"), of("a da"));
        assert!(upper.starts_with("u-abababababababab-ada-") && upper != lower, "{upper}");
        assert!(other.starts_with("u-abababababababab-a-da-"), "{other}");
        assert!(of(&"x".repeat(128)).len() < 128);
        for own in [&upper, &lower, &other] {
            assert!(is_principal(own), "{own}");
        }
        for no in ["u-", "u-abababababababab-", "u-ABABABABABABABAB-x", "bob", "u-é"] {
            assert!(!is_principal(no), "{no}");
            assert_eq!(user_of(no), None, "{no}");
        }
    }
}

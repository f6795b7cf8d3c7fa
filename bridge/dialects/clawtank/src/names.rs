//! Names: people as agents, and agents as ids.

use mesh::name::id::{AgentId, KeyPrint};
use sha2::{Digest as _, Sha256};

/// A user's part of the id of a principal, in bytes.
const USER_PART_BYTES_MAX: usize = 80;
/// `u-`, sixteen digits, `-`.
const PREFIX_BYTES: usize = 19;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first digits of a key's print, with which the ids of its principals begin.
fn print(key: KeyPrint) -> String {
    hex(&key.0[..8])
}

/// The agent as which a user of a key is in the mesh: the same in every dialect of people.
pub(crate) fn principal(key: KeyPrint, user: &str) -> AgentId {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let mut part: String =
        user.to_lowercase().chars().map(|c| if plain(c) { c } else { '-' }).collect();
    part.truncate(part.floor_char_boundary(USER_PART_BYTES_MAX));
    if part != user {
        let digest = Sha256::digest(user.as_bytes());
        part = format!("{part}-{}", hex(&digest[..3]));
    }
    format!("u-{}-{part}", print(key)).as_str().into()
}

/// The user for whom a principal acts, as far as its id says. `None`: the agent is no person.
pub(crate) fn user_of(agent: &str) -> Option<&str> {
    let (digits, user) = agent.strip_prefix("u-")?.split_at_checked(PREFIX_BYTES - 3)?;
    let is_print = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let user = user.strip_prefix('-')?;
    (is_print && !user.is_empty()).then_some(user)
}

/// The id of an agent, or of a person.
pub(crate) fn id_of(agent: &str) -> [u8; 16] {
    let digest = Sha256::new()
        .chain_update(b"clawmesh agent id\0")
        .chain_update(agent.as_bytes())
        .finalize();
    first(&digest)
}

/// The owner of an agent: the holder of its key, as an id and a name.
pub(crate) fn owner(key: Option<KeyPrint>) -> ([u8; 16], String) {
    match key {
        Some(key) => {
            let print = print(key);
            (id_of(&format!("u-{print}")), format!("key {print}"))
        }
        None => ([0; 16], "unknown".to_owned()),
    }
}

/// The id of an event, the same at every node: of its kind, the thing, and what else tells it from others.
pub(crate) fn event_id(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Sha256::new_with_prefix(b"clawmesh clawtank event\0");
    for part in parts {
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part);
    }
    first(&digest.finalize())
}

fn first(digest: &[u8]) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GoClaw has these very ids in its tests: a person is the same agent in both dialects.
    #[test]
    fn a_principal_has_its_keys_print_and_a_user_that_no_other_has() {
        let key = KeyPrint([0xab; 16]);
        let of = |user: &str| principal(key, user).to_string();
        assert_eq!(of("ada.l_1-x"), "u-abababababababab-ada.l_1-x");
        let (upper, lower, other) = (of("Ada"), of("ada"), of("a da"));
        assert!(upper.starts_with("u-abababababababab-ada-") && upper != lower, "{upper}");
        assert!(other.starts_with("u-abababababababab-a-da-"), "{other}");
        assert!(of(&"x".repeat(128)).len() < 128);
        for own in [&upper, &lower, &other] {
            assert!(user_of(own).is_some(), "{own}");
        }
        assert_eq!(user_of(&lower), Some("ada"));
        for no in ["u-", "u-abababababababab-", "u-ABABABABABABABAB-x", "bob", "u-é"] {
            assert_eq!(user_of(no), None, "{no}");
        }
    }

    #[test]
    fn parts_of_an_events_id_are_kept_apart() {
        assert_ne!(event_id(&[b"ab", b"c"]), event_id(&[b"a", b"bc"]));
        assert_ne!(owner(None), owner(Some(KeyPrint([0; 16]))));
    }
}

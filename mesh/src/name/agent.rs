//! Ids of agents that belong to a key by their form: those that a node draws, and those that say whose they are.
//! All others belong to the key that claims them first.

use crate::name::id::{AgentId, KeyPrint, parse_uuid, sha256, uuid_text};

/// Random bytes of a drawn id.
pub const DRAWN_BYTES: usize = 6;

/// Ids that begin so, and go on with the first digits of a key's print, are that key's alone.
const PREFIXES: [&str; 2] = ["mcp-", "u-"];
/// So many digits.
const DIGITS: usize = 16;

/// The right to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// To the first key that claims it.
    FirstClaim,
    /// To this key, if it claims it first: no other can.
    IfClaimed,
    /// To this key, without a claim.
    Drawn,
    /// To another key, whatever is claimed.
    Another,
}

/// An id for an agent that chose none: a UUID of version 8 that is made from random bytes and the print of the agent's
/// key, so that it is that key's without being claimed.
#[must_use]
pub fn drawn(random: [u8; DRAWN_BYTES], key: KeyPrint) -> AgentId {
    uuid_text(drawn_bytes(random, key)).as_str().into()
}

fn drawn_bytes(random: [u8; DRAWN_BYTES], key: KeyPrint) -> [u8; 16] {
    let hash = sha256(&[b"clawmesh drawn agent", &key.0, &random]);
    let mut id = [0; 16];
    id[..DRAWN_BYTES].copy_from_slice(&random);
    id[DRAWN_BYTES..].copy_from_slice(&hash[..16 - DRAWN_BYTES]);
    // A UUID of version 8, variant 10.
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

/// Whether an agent with this key may have this id, as far as its form says.
#[must_use]
pub fn belongs(agent: &str, key: KeyPrint) -> Belongs {
    if let Some(id) = parse_uuid(agent).filter(|id| id[6] >> 4 == 8 && id[8] >> 6 == 0b10) {
        let mut random = [0; DRAWN_BYTES];
        random.copy_from_slice(&id[..DRAWN_BYTES]);
        // In capitals it is nobody's: two ids that look alike are not to be two agents.
        let its_own = drawn_bytes(random, key) == id && uuid_text(id) == agent;
        return if its_own { Belongs::Drawn } else { Belongs::Another };
    }
    let rest = PREFIXES.iter().find_map(|prefix| agent.strip_prefix(prefix));
    let digits = rest.and_then(|rest| rest.get(..DIGITS));
    match digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
        None => Belongs::FirstClaim,
        Some(digits) if key.to_string().starts_with(digits) => Belongs::IfClaimed,
        Some(_) => Belongs::Another,
    }
}

/// Whether an id is of a person, or of a program that speaks for one: they write, and have no seats.
#[must_use]
pub fn is_person(agent: &str) -> bool {
    let digits = agent.strip_prefix("u-").and_then(|rest| rest.split_at_checked(DIGITS));
    digits.is_some_and(|(digits, rest)| {
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()) && rest.starts_with('-')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: KeyPrint = KeyPrint([0xab; 16]);
    const OTHER: KeyPrint = KeyPrint([0xac; 16]);

    proptest! {
        #[test]
        fn a_drawn_id_is_its_keys_and_no_others(
            random: [u8; DRAWN_BYTES], key: [u8; 16], other: [u8; 16],
        ) {
            let id = drawn(random, KeyPrint(key));
            prop_assert_eq!(id.as_bytes()[14], b'8', "version");
            prop_assert!(b"89ab".contains(&id.as_bytes()[19]), "variant");
            prop_assert_eq!(belongs(&id, KeyPrint(key)), Belongs::Drawn);
            if key != other {
                prop_assert_eq!(belongs(&id, KeyPrint(other)), Belongs::Another);
            }
        }

        #[test]
        fn a_drawn_id_that_was_changed_is_nobodys(random: [u8; DRAWN_BYTES], bit in 0..128_usize) {
            let id = drawn(random, KEY);
            let mut bytes = parse_uuid(&id).expect("it is one");
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            let changed = uuid_text(bytes);
            // Another version or variant makes it an ordinary id, and so another one.
            let ordinary = (48..52).contains(&bit) || (64..66).contains(&bit);
            let expect = if ordinary { Belongs::FirstClaim } else { Belongs::Another };
            prop_assert_eq!(belongs(&changed, KEY), expect);
        }

        #[test]
        fn no_id_is_too_strange(agent: String) {
            // It does not panic.
            let _ = belongs(&agent, KEY);
        }
    }

    #[test]
    fn drawn_ids_differ_by_what_was_drawn_and_are_the_same_everywhere() {
        assert_eq!(&*drawn([1, 2, 3, 4, 5, 6], KEY), "01020304-0506-8364-ac72-b3752bbe0d9b");
        assert_ne!(drawn([0; 6], KEY), drawn([1; 6], KEY));
    }

    #[test]
    fn whose_an_id_is_follows_from_its_form() {
        let ab = "ab".repeat(8);
        let table = [
            ("bob".to_owned(), Belongs::FirstClaim),
            (String::new(), Belongs::FirstClaim),
            // Of version 4, as clients draw them.
            ("a3bb189e-8bf9-4c4a-9b3e-0f2f3c1d4e5f".to_owned(), Belongs::FirstClaim),
            ("a3bb189e-8bf9-8c4a-9b3e-0f2f3c1d4e5f".to_owned(), Belongs::Another),
            ("A3BB189E-8BF9-8C4A-9B3E-0F2F3C1D4E5F".to_owned(), Belongs::Another),
            // Another variant, and no UUID.
            ("a3bb189e-8bf9-8c4a-db3e-0f2f3c1d4e5f".to_owned(), Belongs::FirstClaim),
            ("a3bb189e8bf98c4a9b3e0f2f3c1d4e5f".to_owned(), Belongs::FirstClaim),
            (drawn([7; 6], OTHER).to_string(), Belongs::Another),
            (drawn([7; 6], KEY).to_string(), Belongs::Drawn),
            (drawn([7; 6], KEY).to_uppercase(), Belongs::Another),
            (format!("mcp-{ab}"), Belongs::IfClaimed),
            (format!("u-{ab}-claude"), Belongs::IfClaimed),
            (format!("u-{ab}ff"), Belongs::IfClaimed),
            (format!("mcp-{}", "ac".repeat(8)), Belongs::Another),
            (format!("u-{}", "AB".repeat(8)), Belongs::Another),
            (format!("U-{ab}"), Belongs::FirstClaim),
            (format!("mcp-{}", &ab[1..]), Belongs::FirstClaim),
            (format!("mcp-{}x", &ab[1..]), Belongs::FirstClaim),
            (format!("u-{}é", "a".repeat(15)), Belongs::FirstClaim),
            ("mcp-server".to_owned(), Belongs::FirstClaim),
        ];
        for (agent, expect) in table {
            assert_eq!(belongs(&agent, KEY), expect, "{agent}");
        }
    }
}

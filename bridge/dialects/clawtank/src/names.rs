//! Ids of agents, of their owners, and of events.

pub(crate) use bridge::seam::principal::{principal, user_of};

use bridge::seam::principal::principals_of;
use mesh::name::id::KeyPrint;
use sha2::{Digest as _, Sha256};

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
            let all = principals_of(key);
            let print = all.trim_matches(['u', '-']);
            (id_of(all.trim_end_matches('-')), format!("key {print}"))
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

    #[test]
    fn parts_of_an_events_id_are_kept_apart() {
        assert_ne!(event_id(&[b"ab", b"c"]), event_id(&[b"a", b"bc"]));
        assert_ne!(owner(None), owner(Some(KeyPrint([0; 16]))));
    }
}

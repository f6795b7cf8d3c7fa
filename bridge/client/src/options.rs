//! How to connect, and how patient to be.

use std::path::PathBuf;
use std::time::Duration;

use protocol::value::{ApiKey, DRAWN_BYTES, RegisterOptions};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::secrets::Secrets;

/// The identity of a client, and the addresses of its nodes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Tried in this order, round robin; not empty.
    pub addresses: Vec<Address>,
    /// Those whose word counts for a `wss://` node's certificate.
    pub authorities: Authorities,
    /// The API key.
    pub key: ApiKey,
    /// The agent's name.
    pub name: String,
    /// A stable identity. It is taken over if it is connected elsewhere. Without one the node draws
    /// one, and the client keeps it over reconnects.
    pub agent_id: Option<String>,
    /// Wishes that mesh nodes alone know; other servers take no notice. With an `agent_id` nothing is drawn.
    pub mesh: RegisterOptions,
    /// The agent's abilities, as it states them.
    pub capabilities: Vec<String>,
    /// The secrets that encrypt content end to end. A clone kept back takes more of them later.
    pub secrets: Secrets,
    /// How patient to be.
    pub policy: Policy,
}

impl Options {
    /// An agent without a stable identity, secrets and wishes, and of usual patience. The fields are there to be set:
    ///
    /// ```
    /// use client::{address::Address, options::Options, secrets::{Secret, Secrets}};
    /// use protocol::value::ApiKey;
    ///
    /// let addresses = vec![Address::tcp("127.0.0.1:9229")?];
    /// let mut options = Options::new(addresses, ApiKey::new("a key"), "ada");
    /// options.agent_id = Some("ada-1".to_owned());
    /// options.secrets = Secret::new("correct horse").map(Secrets::for_all_rooms).unwrap_or_default();
    /// # Ok::<(), client::address::AddressError>(())
    /// ```
    pub fn new(addresses: Vec<Address>, key: ApiKey, name: impl Into<String>) -> Self {
        Self {
            addresses,
            authorities: Authorities::default(),
            key,
            name: name.into(),
            agent_id: None,
            mesh: RegisterOptions::default(),
            capabilities: Vec::new(),
            secrets: Secrets::default(),
            policy: Policy::default(),
        }
    }
}

/// Those whose word counts for the certificates of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorities {
    /// Those that this system trusts, or that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    #[default]
    System,
    /// Those in this PEM file, and no others.
    File(PathBuf),
}

/// The random part of a drawn id for one who is known by these words: the same for the same words, another for others.
pub fn drawn_from(words: &[&str]) -> [u8; DRAWN_BYTES] {
    let mut hash = Sha256::new();
    hash.update(b"clawmesh who");
    for word in words {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word.as_bytes());
    }
    let mut part = [0; DRAWN_BYTES];
    part.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
    part
}

/// Whether an id has the form of one that a mesh node draws: a UUID of version 8.
pub fn is_drawn(agent_id: &str) -> bool {
    let has_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| {
        if has_dash(at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    let bytes = agent_id.as_bytes();
    bytes.len() == 36 && bytes[14] == b'8' && bytes.iter().copied().enumerate().all(fits)
}

/// Every time span of the client.
#[derive(Debug, Clone)]
pub struct Policy {
    /// For one address: connecting, and then each step of registering and joining again.
    pub connect_timeout: Duration,
    /// Pause after the first failed round over all addresses; it doubles from round to round.
    pub retry_first: Duration,
    /// Longest pause between rounds. A connection that lived longer than this counts as good, and
    /// the next pause starts from the first one again.
    pub retry_max: Duration,
    /// For one call, reconnects and repeats included.
    pub call_timeout: Duration,
    /// The node is pinged when nothing came for so long. Nodes send a heartbeat every 30 s.
    pub probe_after: Duration,
    /// The connection counts as dead when nothing came for so long.
    pub dead_after: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            retry_first: Duration::from_millis(100),
            retry_max: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            probe_after: Duration::from_secs(35),
            dead_after: Duration::from_secs(50),
        }
    }
}

impl Policy {
    /// The pause before try number `attempt` (from 0: none), between a half and all of the
    /// nominal one, so that many clients of one node do not come back at once.
    pub(crate) fn pause(&self, attempt: u32, random: u32) -> Duration {
        let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let nominal = self.retry_first.saturating_mul(factor).min(self.retry_max);
        nominal.div_f64(2.0).mul_f64(1.0 + f64::from(random) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_give_the_same_part_and_others_another() {
        assert_eq!(drawn_from(&["1000", "host", "ann"]), drawn_from(&["1000", "host", "ann"]));
        let all = [&["ab", "c"][..], &["a", "bc"], &["abc"], &["abc", ""], &[]].map(drawn_from);
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn ids_of_version_8_are_drawn() {
        assert!(is_drawn("01020304-0506-8364-ac72-b3752bbe0d9b"));
        for other in
            ["01020304-0506-4364-ac72-b3752bbe0d9b", "ann", "01020304-0506-8364-ac72-b3752bbe0d9"]
        {
            assert!(!is_drawn(other), "{other}");
        }
        assert!(!is_drawn("01020304x0506-8364-ac72-b3752bbe0d9b"));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = Policy::default();
        let millis = |attempt, random| policy.pause(attempt, random).as_millis();
        assert_eq!(
            [0, 1, 2, 3, 7, 40, u32::MAX].map(|n| millis(n, u32::MAX)),
            [0, 100, 200, 400, 5000, 5000, 5000]
        );
        assert_eq!(millis(1, 0), 50);
    }
}

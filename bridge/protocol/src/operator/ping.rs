//! A round trip to a node and back.

use serde::{Deserialize, Serialize};

use super::Peer;

/// One answer, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pong {
    /// 64 hex digits.
    pub node_id: String,
    /// Its name, if it is known.
    pub name: Option<String>,
    /// The member that carried it, if there is no direct way: its name, or the first digits of its id.
    pub through: Option<String>,
    /// The time there and back, in milliseconds. `None`: there was no answer.
    pub rtt_ms: Option<f64>,
    /// Why there was none; with an answer that was carried, why it did not come directly.
    pub why: Option<String>,
}

impl Peer {
    /// The peer that is meant by a name, an id, or the beginning of an id.
    ///
    /// # Errors
    /// It is none or several, in words.
    pub fn find<'a>(all: &'a [Peer], wanted: &str) -> Result<&'a Peer, String> {
        const DIGITS_MIN: usize = 4;
        let named = all.iter().filter(|peer| peer.name.as_deref() == Some(wanted));
        let begins = |peer: &&Peer| {
            let id = peer.node_id.as_deref();
            wanted.len() >= DIGITS_MIN && id.is_some_and(|id| id.starts_with(wanted))
        };
        let mut found: Vec<&Peer> = named.collect();
        if found.is_empty() {
            found = all.iter().filter(begins).collect();
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(format!("no node is known by {wanted:?}: see `clawmesh mesh peers`")),
            [..] => Err(format!("several nodes are meant by {wanted:?}: give more of the id")),
        }
    }

    /// For how long there has been a link, for people.
    #[must_use]
    pub fn up_for(&self) -> Option<String> {
        let seconds = self.up_ms.filter(|_| self.connected)? / 1_000;
        Some(match seconds {
            0..60 => format!("{seconds} s"),
            60..3_600 => format!("{} min", seconds / 60),
            3_600..172_800 => format!("{} h", seconds / 3_600),
            _ => format!("{} days", seconds / 86_400),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_found_by_name_id_and_the_beginning_of_an_id() {
        let peer = |id: &str, name: &str| Peer {
            node_id: Some(id.repeat(32)),
            name: Some(name.to_owned()),
            ..Peer::default()
        };
        let all =
            [peer("ab", "home"), peer("ac", "abab"), peer("ad", "twice"), peer("ae", "twice")];
        let found = |wanted: &str| {
            Peer::find(&all, wanted).map(|peer| peer.node_id.as_ref().unwrap()[..2].to_owned())
        };
        assert_eq!(found("home").as_deref(), Ok("ab"));
        assert_eq!(found(&"ad".repeat(32)).as_deref(), Ok("ad"));
        assert_eq!(found("acac").as_deref(), Ok("ac"));
        assert_eq!(found("abab").as_deref(), Ok("ac"), "a name before the beginning of an id");
        assert!(found("ab").unwrap_err().contains("no node"), "too short for a beginning");
        assert!(found("twice").unwrap_err().contains("several"));
    }

    #[test]
    fn times_are_said_in_one_unit() {
        let up = |ms: u64| Peer { connected: true, up_ms: Some(ms), ..Peer::default() }.up_for();
        let said = [0, 59_999, 60_000, 3_600_000, 172_800_000].map(|ms| up(ms).unwrap());
        assert_eq!(said, ["0 s", "59 s", "1 min", "1 h", "2 days"]);
        assert_eq!(Peer { up_ms: Some(1), ..Peer::default() }.up_for(), None);
    }
}

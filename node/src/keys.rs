//! Minted keys, as operators name and see them. The text of a key is never here: what makes it shows
//! it once, and everybody else knows its fingerprint.

use std::fmt::Write as _;

use mesh::{acts::Tier, agenda::KeyView};
use serde::{Deserialize, Serialize};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TierName {
    /// Less
    Free,
    /// More
    Pro,
}

impl TierName {
    fn as_str(self) -> &'static str {
        match self {
            TierName::Free => "free",
            TierName::Pro => "pro",
        }
    }
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Tier {
        match name {
            TierName::Free => Tier::Free,
            TierName::Pro => Tier::Pro,
        }
    }
}

impl From<Tier> for TierName {
    fn from(tier: Tier) -> TierName {
        match tier {
            Tier::Free => TierName::Free,
            Tier::Pro => TierName::Pro,
        }
    }
}

/// A key to be minted, by its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// 32 hex digits.
    pub(crate) fingerprint: String,
    pub(crate) tier: TierName,
    pub(crate) label: Option<String>,
    /// Valid on this node alone.
    pub(crate) local: bool,
}

/// A minted key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Minted {
    /// 32 hex digits.
    pub(crate) fingerprint: String,
    tier: TierName,
    label: Option<String>,
    /// The node that minted it: 64 hex digits.
    node_id: String,
    /// RFC 3339, UTC.
    minted_at: String,
    pub(crate) revoked: bool,
    /// Valid on this node alone.
    local: bool,
}

impl From<KeyView> for Minted {
    fn from(view: KeyView) -> Minted {
        Minted {
            fingerprint: view.key.to_string(),
            tier: view.tier.into(),
            label: view.label,
            node_id: view.node.to_string(),
            minted_at: rfc3339(view.minted_ms),
            revoked: view.revoked,
            local: view.local,
        }
    }
}

/// For people.
pub(crate) fn table(keys: &[Minted]) -> String {
    if keys.is_empty() {
        return "no keys were minted: `clawmeshd keys mint` makes one".to_owned();
    }
    let mut text = String::new();
    let mut row = |cells: [&str; 6]| {
        let [key, tier, minted, node, state, label] = cells;
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{key:<32}  {tier:<4}  {minted:<20}  {node:<8}  {state:<7}  {label}");
    };
    row(["FINGERPRINT", "TIER", "MINTED", "BY NODE", "STATE", "LABEL"]);
    for key in keys {
        let state = match (key.revoked, key.local) {
            (true, _) => "revoked",
            (false, true) => "local",
            (false, false) => "valid",
        };
        // Other operators write labels: one that is not one line of text is shown as such.
        let label = key.label.as_deref().unwrap_or_default().escape_debug().to_string();
        let node = key.node_id.get(..8).unwrap_or(&key.node_id);
        row([&key.fingerprint, key.tier.as_str(), &key.minted_at, node, state, &label]);
    }
    text
}

/// A time in whole seconds. Those after the year 9999 are the last one of it.
fn rfc3339(unix_ms: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let secs = (unix_ms / 1_000).min(LAST);
    let (days, rest) = (secs / 86_400, secs % 86_400);
    // Years that begin in March: leap days are their last ones. 719,468 days from 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let year = year + 400 * era;
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use mesh::id::{KeyPrint, NodeId};

    use super::*;

    #[test]
    fn times_are_rfc_3339() {
        let check = |secs: u64, expect| assert_eq!(rfc3339(secs * 1_000), expect);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_799, "2000-02-29T23:59:59Z");
        check(1_700_000_000, "2023-11-14T22:13:20Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        check(253_402_300_799, "9999-12-31T23:59:59Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn a_label_is_one_line_whatever_its_operator_wrote() {
        let view = KeyView {
            key: KeyPrint([0xab; 16]),
            tier: Tier::Pro,
            label: Some("a\nb \u{1b}[31m".into()),
            node: NodeId([1; 32]),
            minted_ms: 0,
            revoked: false,
            local: true,
        };
        let text = table(&[view.into()]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains(&"ab".repeat(16)) && text.contains("local"), "{text}");
        assert!(table(&[]).contains("keys mint"));
    }
}

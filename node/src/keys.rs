//! Minted keys, as operators name and see them. The text of a key is never here: the command that
//! makes it shows it once, and everybody else knows its fingerprint.

use std::fmt::Write as _;

use mesh::{api::agenda::KeyView, wire::acts};
use protocol::operator::{MintedKey, Tier};

/// A tier as it is on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TierName {
    /// Less
    Free,
    /// More
    Pro,
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Tier {
        match name {
            TierName::Free => Tier::Free,
            TierName::Pro => Tier::Pro,
        }
    }
}

/// A tier as the core has it.
pub(crate) fn core_tier(tier: Tier) -> acts::Tier {
    match tier {
        Tier::Free => acts::Tier::Low,
        Tier::Pro => acts::Tier::High,
    }
}

/// A key as operators see it.
pub(crate) fn minted(view: KeyView) -> MintedKey {
    let tier = match view.tier {
        acts::Tier::Low => Tier::Free,
        acts::Tier::High => Tier::Pro,
    };
    MintedKey {
        fingerprint: view.key.to_string(),
        tier,
        label: view.label,
        node_id: view.node.to_string(),
        minted_at: clawchat::timestamp(view.minted_ms),
        revoked: view.revoked,
        local: view.local,
    }
}

/// For people.
pub(crate) fn table(keys: &[MintedKey]) -> String {
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
        let tier = match key.tier {
            Tier::Free => "free",
            Tier::Pro => "pro",
        };
        row([&key.fingerprint, tier, &key.minted_at, node, state, &label]);
    }
    text
}

#[cfg(test)]
mod tests {
    use mesh::name::id::{KeyPrint, NodeId};

    use super::*;

    #[test]
    fn a_label_is_one_line_whatever_its_operator_wrote() {
        let view = KeyView {
            key: KeyPrint([0xab; 16]),
            tier: acts::Tier::High,
            label: Some("a\nb \u{1b}[31m".into()),
            node: NodeId([1; 32]),
            minted_ms: 0,
            revoked: false,
            local: true,
        };
        let text = table(&[minted(view)]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains(&"ab".repeat(16)) && text.contains("local"), "{text}");
        assert!(table(&[]).contains("keys mint"));
    }
}

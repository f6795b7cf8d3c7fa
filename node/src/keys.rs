//! Minted keys, as operators name and see them. The text of a key is never here: the command that
//! makes it shows it once, and everybody else knows its fingerprint.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use mesh::{
    api::agenda::{KeyView, NewKey},
    name::{
        id::parse_hex,
        key::{KeyHalves, KeySecret},
    },
    wire::{
        acts::{self, KeyMinted},
        signatures::{KeySignature, SignedLog},
    },
};
use protocol::operator::{MintedKey, Tier, WantedKey};

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
fn core_tier(tier: Tier) -> acts::Tier {
    match tier {
        Tier::Free => acts::Tier::Low,
        Tier::Pro => acts::Tier::High,
    }
}

/// A key that an operator wants, with the signature of the command that made it up.
pub(crate) fn wanted(wanted: WantedKey) -> Result<NewKey> {
    let WantedKey { signer, mailbox, signature, tier, label, local } = wanted;
    let half = |text: &str| parse_hex(text).context("a half of a key has 64 hex digits");
    let minted = KeyMinted {
        by: KeySignature {
            halves: KeyHalves { signer: half(&signer)?, mailbox: half(&mailbox)? },
            signature: parse_hex(&signature).context("a signature has 128 hex digits")?,
        },
        tier: core_tier(tier),
        label,
    };
    Ok(NewKey { minted, local })
}

/// A key that was made up here, for the log of a running node. The node gets public halves and a signature.
pub(crate) fn signed(
    key: &KeySecret,
    log: &SignedLog,
    (tier, label): (Tier, Option<String>),
    local: bool,
) -> Result<WantedKey> {
    let minted = KeyMinted::sign(key, log, core_tier(tier), label)?;
    Ok(WantedKey {
        signer: hex(&minted.by.halves.signer),
        mailbox: hex(&minted.by.halves.mailbox),
        signature: hex(&minted.by.signature),
        tier,
        label: minted.label,
        local,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    use mesh::name::{
        id::{KeyPrint, MeshId, NodeId},
        identity::Strict,
    };

    use super::*;

    #[test]
    fn a_key_that_is_wanted_arrives_as_it_was_signed() {
        let key = KeySecret::of(&"k".repeat(64));
        let log = SignedLog { mesh: MeshId([1; 16]), node: NodeId([2; 32]) };
        let asked = signed(&key, &log, (Tier::Pro, Some("ci".into())), true).unwrap();
        let new = wanted(asked.clone()).unwrap();
        assert!(new.minted.is_signed_by_its_key(&Strict, &log) && new.local);
        assert_eq!((new.minted.key(), new.minted.tier), (key.print(), acts::Tier::High));
        assert!(wanted(WantedKey { signer: "abc".into(), ..asked.clone() }).is_err());
        assert!(wanted(WantedKey { signature: asked.signer.clone(), ..asked }).is_err());
        assert!(signed(&KeySecret::of("short"), &log, (Tier::Pro, None), false).is_err());
    }

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

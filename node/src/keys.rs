//! Minted keys, as operators name and see them. The text of a key is never here: the command that
//! makes it shows it once, and everybody else knows its fingerprint.

use std::fmt::Write as _;

use anyhow::{Context as _, Error, Result};
use mesh::{
    api::agenda::{KeyView, NewKey, NewSuccessor},
    name::{
        id::{RoomKey, parse_hex},
        key::{KeyHalves, KeySecret},
    },
    wire::{
        acts::{self, KeyMinted, KeyReplaced, KeyTerms, Scope, Scopes},
        seal::Inheritance,
        signatures::{KeySignature, SignedLog},
    },
};
use protocol::operator::{MintedKey, SignedHalves, Tier, WantedKey, WantedSuccessor};

/// A tier as it is on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TierName {
    /// Less
    Free,
    /// More
    Pro,
}

impl From<TierName> for acts::Tier {
    fn from(name: TierName) -> acts::Tier {
        match name {
            TierName::Free => acts::Tier::Low,
            TierName::Pro => acts::Tier::High,
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

/// A scope by its name, with or without the prefix that some programs give it.
pub(crate) fn scope(text: &str) -> Result<Scope, String> {
    let name = text.strip_prefix("operator.").unwrap_or(text);
    Scope::named(name).ok_or_else(|| {
        let names = Scope::ALL.map(Scope::name).join(", ");
        format!("{text:?} is no scope; these are: {names}")
    })
}

fn names(scopes: Scopes) -> Vec<String> {
    scopes.iter().map(|scope| scope.name().to_owned()).collect()
}

/// A key that an operator wants, with the signature of the command that made it up.
pub(crate) fn wanted(wanted: WantedKey) -> Result<NewKey> {
    let WantedKey { signer, mailbox, signature, tier, label, scopes, expires_ms, owner, local } =
        wanted;
    let scoped = |names: Vec<String>| names.iter().map(|name| scope(name)).collect();
    let scopes = scopes.map(scoped).transpose().map_err(Error::msg)?;
    let minted = KeyMinted {
        by: self::signature(&SignedHalves { signer, mailbox, signature })?,
        terms: KeyTerms { tier: core_tier(tier), label, scopes, expires_ms, owner },
    };
    Ok(NewKey { minted: Box::new(minted), local })
}

/// A key that an operator wants to be replaced, with the signatures of the command that has both.
pub(crate) fn wanted_successor(wanted: WantedSuccessor) -> Result<NewSuccessor> {
    let WantedSuccessor { key, successor, voucher, sealed } = wanted;
    let voucher = SignedHalves { signature: voucher, ..key.clone() };
    let bytes = |text: String| bytes(&text).context("sealed secrets are hex digits");
    let sealed = sealed.map(bytes).transpose()?.map(Into::into);
    let replaced = KeyReplaced { by: signature(&key)?, successor: signature(&successor)?, sealed };
    Ok(NewSuccessor { replaced: Box::new(replaced), shown: Box::new(signature(&voucher)?) })
}

/// The same, of two keys whose texts are here, for the log of a running node. `opener`: of the key's private rooms, if they
/// span the mesh.
pub(crate) fn signed_successor(
    key: &KeySecret,
    successor: &KeySecret,
    log: &SignedLog,
    opener: Option<RoomKey>,
) -> Result<WantedSuccessor> {
    let shown = |by: &KeySignature| SignedHalves {
        signer: hex(&by.halves.signer),
        mailbox: hex(&by.halves.mailbox),
        signature: hex(&by.signature),
    };
    let voucher = KeySignature::of_voucher(key, log)?;
    let mailbox = key.mailbox()?.clone();
    let seal = |opener| Inheritance { opener, mailbox }.seal(log.mesh, &successor.halves().mailbox);
    let sealed = opener.and_then(seal);
    let shown_sealed = sealed.as_deref().map(hex);
    let replaced = KeyReplaced::sign(key, successor, log, sealed)?;
    let (key, successor) = (shown(&replaced.by), shown(&replaced.successor));
    Ok(WantedSuccessor { key, successor, voucher: hex(&voucher.signature), sealed: shown_sealed })
}

fn signature(text: &SignedHalves) -> Result<KeySignature> {
    let half = |text: &str| parse_hex(text).context("a half of a key has 64 hex digits");
    Ok(KeySignature {
        halves: KeyHalves { signer: half(&text.signer)?, mailbox: half(&text.mailbox)? },
        signature: parse_hex(&text.signature).context("a signature has 128 hex digits")?,
    })
}

/// The terms of a key that is there, for its successor.
pub(crate) fn terms(key: &MintedKey) -> Result<KeyTerms> {
    let scoped = |names: &Vec<String>| names.iter().map(|name| scope(name)).collect();
    let scopes = key.scopes.as_ref().map(scoped).transpose().map_err(Error::msg)?;
    let (tier, label, owner) = (core_tier(key.tier), key.label.clone(), key.owner.clone());
    Ok(KeyTerms { tier, label, scopes, expires_ms: key.expires_ms, owner })
}

/// A key that was made up here, for the log of a running node. The node gets public halves and a signature.
pub(crate) fn signed(
    key: &KeySecret,
    log: &SignedLog,
    terms: KeyTerms,
    local: bool,
) -> Result<WantedKey> {
    let KeyMinted { by, terms } = KeyMinted::sign(key, log, terms)?;
    Ok(WantedKey {
        signer: hex(&by.halves.signer),
        mailbox: hex(&by.halves.mailbox),
        signature: hex(&by.signature),
        tier: shown_tier(terms.tier),
        label: terms.label,
        scopes: terms.scopes.map(names),
        expires_ms: terms.expires_ms,
        owner: terms.owner,
        local,
    })
}

fn shown_tier(tier: acts::Tier) -> Tier {
    match tier {
        acts::Tier::Low => Tier::Free,
        acts::Tier::High => Tier::Pro,
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    hex.len().is_multiple_of(2).then(|| digits.map(byte).collect())?
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key as operators see it, at this wall time.
pub(crate) fn minted(view: KeyView, wall_ms: u64) -> MintedKey {
    let expired = view.terms.is_over(wall_ms);
    let KeyTerms { tier, label, scopes, expires_ms, owner } = view.terms;
    MintedKey {
        fingerprint: view.key.to_string(),
        tier: shown_tier(tier),
        label,
        node_id: view.node.to_string(),
        minted_at: clawchat::timestamp(view.minted_ms),
        scopes: scopes.map(names),
        expires_at: expires_ms.map(clawchat::timestamp),
        expires_ms,
        expired,
        owner,
        revoked: view.revoked || view.successor.is_some(),
        successor: view.successor.map(|key| key.to_string()),
        local: view.local,
    }
}

/// For people.
pub(crate) fn table(keys: &[MintedKey]) -> String {
    if keys.is_empty() {
        return "no keys were minted: `clawmeshd keys mint` makes one".to_owned();
    }
    let mut text = String::new();
    let mut row = |cells: [&str; 8]| {
        let [key, tier, minted, node, state, scopes, expires, label] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{key:<32}  {tier:<4}  {minted:<24}  {node:<8}  {state:<8}  {scopes:<11}  {expires:<24}  {label}"
        );
    };
    row([
        "FINGERPRINT",
        "TIER",
        "MINTED",
        "BY NODE",
        "STATE",
        "SCOPES",
        "EXPIRES",
        "LABEL (OWNER)",
    ]);
    for key in keys {
        let state = match (key.revoked, key.expired, key.local) {
            (true, _, _) if key.successor.is_some() => "replaced",
            (true, _, _) => "revoked",
            (false, true, _) => "expired",
            (false, false, true) => "local",
            (false, false, false) => "valid",
        };
        // Other operators write labels and owners: one that is not one line of text is shown as such.
        let mut label = key.label.as_deref().unwrap_or_default().escape_debug().to_string();
        if let Some(owner) = &key.owner {
            let _ = write!(label, " ({})", owner.escape_debug());
        }
        if let Some(successor) = &key.successor {
            let _ = write!(label, " → {successor}");
        }
        let node = key.node_id.get(..8).unwrap_or(&key.node_id);
        let tier = match key.tier {
            Tier::Free => "free",
            Tier::Pro => "pro",
        };
        let scopes = match key.scopes.as_deref() {
            None => "all".to_owned(),
            Some([]) => "none".to_owned(),
            Some(scopes) => scopes.join(","),
        };
        let expires = key.expires_at.as_deref().unwrap_or("never");
        row([&key.fingerprint, tier, &key.minted_at, node, state, &scopes, expires, &label]);
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
        let terms = KeyTerms {
            label: Some("ci".into()),
            scopes: Some([Scope::Read, Scope::Approvals].into_iter().collect()),
            expires_ms: Some(5),
            owner: Some("ann".into()),
            ..KeyTerms::of(acts::Tier::High)
        };
        let asked = signed(&key, &log, terms.clone(), true).unwrap();
        let new = wanted(asked.clone()).unwrap();
        assert!(new.minted.is_signed_by_its_key(&Strict, &log) && new.local);
        assert_eq!((new.minted.key(), &new.minted.terms), (key.print(), &terms));
        assert!(wanted(WantedKey { signer: "abc".into(), ..asked.clone() }).is_err());
        let scopes = Some(vec!["root".to_owned()]);
        let error = wanted(WantedKey { scopes, ..asked.clone() }).unwrap_err().to_string();
        assert!(error.contains("\"root\"") && error.contains("approvals"), "{error}");
        assert!(wanted(WantedKey { signature: asked.signer.clone(), ..asked }).is_err());
        assert!(signed(&KeySecret::of("short"), &log, terms, false).is_err());
    }

    #[test]
    fn a_label_is_one_line_whatever_its_operator_wrote() {
        let view = KeyView {
            key: KeyPrint([0xab; 16]),
            terms: KeyTerms {
                label: Some("a\nb \u{1b}[31m".into()),
                owner: Some("ann\n".into()),
                scopes: Some([Scope::Read, Scope::Pairing].into_iter().collect()),
                expires_ms: Some(1),
                ..KeyTerms::of(acts::Tier::High)
            },
            node: NodeId([1; 32]),
            minted_ms: 0,
            revoked: false,
            successor: None,
            local: true,
        };
        let text = table(&[minted(view.clone(), 0)]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains(&"ab".repeat(16)) && text.contains("local"), "{text}");
        assert!(text.contains("read,pairing") && text.contains("(ann\\n)"), "{text}");
        assert!(table(&[minted(view, 1)]).contains("expired"));
        assert!(table(&[]).contains("keys mint"));
    }
}

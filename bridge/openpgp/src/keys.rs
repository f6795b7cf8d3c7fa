//! What a key may do, and when: by its algorithm, and by what its certificate's own signatures say.

use pgp::{
    crypto::public_key::PublicKeyAlgorithm,
    packet::{Signature, Subpacket, SubpacketData},
    ser::Serialize,
    types::{
        EcdhPublicParams, EcdsaPublicParams, EddsaLegacyPublicParams, KeyDetails, PublicParams,
    },
};

use crate::{KeyId, Problem, limits};

/// What a key can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) signs: bool,
    pub(crate) encrypts: bool,
}

impl Uses {
    const SIGNS: Uses = Uses { signs: true, encrypts: false };
    const ENCRYPTS: Uses = Uses { signs: false, encrypts: true };

    fn and(self, other: Uses) -> Uses {
        Uses { signs: self.signs && other.signs, encrypts: self.encrypts && other.encrypts }
    }
}

/// What a key can do by its algorithm. Refused is what is weak, and what no gpg can use: then nobody could read or write
/// mail of this certificate. That is so of the newer numbers (25, 27) of the same curves, too.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what `pgp` may add is refused until it is looked at"
)]
pub(crate) fn uses_of(key: &impl KeyDetails) -> Result<Uses, Problem> {
    let params = key.public_params();
    let uses = match params {
        PublicParams::RSA(rsa) => {
            let bits = rsa.to_bytes().map_or(0, |mpis| bits_of_first(&mpis));
            if bits < limits::RSA_BITS_MIN {
                return Err(Problem::ShortRsa(bits));
            }
            Some(Uses {
                signs: key.algorithm() != PublicKeyAlgorithm::RSAEncrypt,
                encrypts: key.algorithm() != PublicKeyAlgorithm::RSASign,
            })
        }
        PublicParams::EdDSALegacy(EddsaLegacyPublicParams::Ed25519 { .. })
        | PublicParams::ECDSA(
            EcdsaPublicParams::P256 { .. }
            | EcdsaPublicParams::P384 { .. }
            | EcdsaPublicParams::P521 { .. },
        ) => Some(Uses::SIGNS),
        PublicParams::ECDH(
            EcdhPublicParams::Curve25519Legacy { .. }
            | EcdhPublicParams::P256 { .. }
            | EcdhPublicParams::P384 { .. }
            | EcdhPublicParams::P521 { .. },
        ) => Some(Uses::ENCRYPTS),
        _ => None,
    };
    uses.ok_or_else(|| Problem::Algorithm(name_of(key)))
}

/// How a person would name it.
#[expect(clippy::wildcard_enum_match_arm, reason = "an enum of `pgp`, which grows")]
fn name_of(key: &impl KeyDetails) -> String {
    match key.public_params() {
        PublicParams::ECDSA(params) => format!("ECDSA on {}", params.curve()),
        PublicParams::ECDH(params) => format!("ECDH on {}", params.curve()),
        _ => format!("{:?}", key.algorithm()),
    }
}

/// How many bits the first of several long numbers has.
fn bits_of_first(mpis: &[u8]) -> usize {
    match mpis {
        [high, low, ..] => usize::from(*high) * 256 + usize::from(*low),
        _ => 0,
    }
}

/// What a signature of a certificate's own says of one of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    created: u64,
    /// When the signature itself is over.
    until: Option<u64>,
    /// When the key is over.
    key_until: Option<u64>,
    uses: Uses,
}

impl Statement {
    /// Reads it. The signature was verified.
    pub(crate) fn of(
        signature: &Signature,
        key: &impl KeyDetails,
        uses: Uses,
    ) -> Option<Statement> {
        let created = u64::from(signature.created()?.as_secs());
        let key_created = u64::from(key.created_at().as_secs());
        let after = |from: u64, seconds: Option<pgp::types::Duration>| {
            let seconds = u64::from(seconds?.as_secs());
            (seconds != 0).then_some(from + seconds)
        };
        let has_flags = |it: &Subpacket| matches!(it.data, SubpacketData::KeyFlags(_));
        let flags = signature.config()?.hashed_subpackets().any(has_flags).then(|| {
            let flags = signature.key_flags();
            Uses { signs: flags.sign(), encrypts: flags.encrypt_comms() || flags.encrypt_storage() }
        });
        Some(Statement {
            created,
            until: after(created, signature.signature_expiration_time()),
            key_until: after(key_created, signature.key_expiration_time()),
            // Without flags, what its algorithm can do.
            uses: flags.map_or(uses, |flags| flags.and(uses)),
        })
    }
}

/// One key of a certificate, with all that its own signatures say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyState {
    pub(crate) id: KeyId,
    pub(crate) created: u64,
    pub(crate) revoked: bool,
    pub(crate) statements: Vec<Statement>,
}

/// Why a key cannot be used at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lapse {
    Revoked,
    Expired(u64),
    NotYet(u64),
    /// No signature that is in force says anything of it.
    Unbound,
}

impl KeyState {
    pub(crate) fn of(key: &impl KeyDetails) -> KeyState {
        let mut id = [0; 8];
        id.copy_from_slice(key.legacy_key_id().as_ref());
        let created = u64::from(key.created_at().as_secs());
        KeyState { id: KeyId(id), created, revoked: false, statements: Vec::new() }
    }

    /// What the key can do at this time: as its newest signature in force says, as in gpg.
    pub(crate) fn at(&self, now: u64) -> Result<Uses, Lapse> {
        let latest = now.saturating_add(limits::CLOCK_AHEAD_SECONDS_MAX);
        if self.revoked {
            return Err(Lapse::Revoked);
        }
        if self.created > latest {
            return Err(Lapse::NotYet(self.created));
        }
        let known = self.statements.iter().filter(|it| it.created <= latest);
        let in_force = known.filter(|it| it.until.is_none_or(|until| now < until));
        let Some(newest) = in_force.max_by_key(|it| it.created) else {
            let coming =
                self.statements.iter().map(|it| it.created).filter(|it| *it > latest).min();
            let over = self.statements.iter().filter_map(|it| it.until).max();
            return Err(match (coming, over) {
                (Some(at), _) => Lapse::NotYet(at),
                (None, Some(at)) => Lapse::Expired(at),
                (None, None) => Lapse::Unbound,
            });
        };
        match newest.key_until {
            Some(until) if until <= now => Err(Lapse::Expired(until)),
            Some(_) | None => Ok(newest.uses),
        }
    }

    /// What the key can do, whether its time is over or not: as its newest signature says.
    pub(crate) fn ever(&self) -> Option<Uses> {
        if self.revoked {
            return None;
        }
        self.statements.iter().max_by_key(|it| it.created).map(|it| it.uses)
    }
}

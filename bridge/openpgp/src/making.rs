//! Making keys, signatures and messages.

use pgp::{
    composed::{KeyType, MessageBuilder, SubpacketConfig},
    crypto::{
        ecc_curve::ECCCurve, hash::HashAlgorithm, public_key::PublicKeyAlgorithm,
        sym::SymmetricKeyAlgorithm,
    },
    errors::Error,
    packet::{
        Features, KeyFlags, PubKeyInner, PublicKey, PublicSubkey, SecretKey, SecretSubkey,
        Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData, UserId,
    },
    ser::Serialize,
    types::{CompressionAlgorithm, KeyDetails, KeyVersion, Password, SigningKey, Tag, Timestamp},
};
use rand_core::{CryptoRng, RngCore};
use zeroize::Zeroizing;

use crate::{
    Certificate, Problem, limits,
    packets::{self, tag},
};

/// Hashes for signatures that we make. gpg takes what the certificate prefers, and SHA-1 if it prefers nothing.
const HASH: HashAlgorithm = HashAlgorithm::Sha512;

pub(crate) fn not_made(error: impl std::fmt::Display) -> Problem {
    Problem::NotMade(error.to_string())
}

/// Our times in OpenPGP's 32 bits, which last to 2106.
pub(crate) fn timestamp(now: u64) -> Timestamp {
    Timestamp::from_secs(u32::try_from(now).unwrap_or(u32::MAX))
}

/// Makes the keys of a hosted account, with their signatures: packets, one after the other, as they are kept.
///
/// A primary key that signs and certifies, by Ed25519, and a subkey that encrypts, by ECDH on Curve25519, both in the form
/// of gpg before 2.3. Of the features only version 1 of encrypted data is named: else gpg from 2.3 on uses its own.
pub(crate) fn keys(
    user_id: &str,
    now: u64,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Zeroizing<Vec<u8>>, Problem> {
    if user_id.len() > limits::USER_ID_BYTES_MAX {
        return Err(Problem::TooLong { what: "a user id", max: limits::USER_ID_BYTES_MAX });
    }
    pgp_keys(user_id, timestamp(now), rng).map_err(not_made)
}

fn pgp_keys(
    user_id: &str,
    now: Timestamp,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let (public, secret) = KeyType::Ed25519Legacy.generate(&mut *rng)?;
    let algorithm = PublicKeyAlgorithm::EdDSALegacy;
    let inner = PubKeyInner::new(KeyVersion::V4, algorithm, now, None, public)?;
    let primary = SecretKey::new(PublicKey::from_inner(inner)?, secret)?;

    let (public, secret) = KeyType::ECDH(ECCCurve::Curve25519Legacy).generate(&mut *rng)?;
    let inner = PubKeyInner::new(KeyVersion::V4, PublicKeyAlgorithm::ECDH, now, None, public)?;
    let subkey = SecretSubkey::new(PublicSubkey::from_inner(inner)?, secret)?;

    let user = UserId::from_str(pgp::types::PacketHeaderVersion::New, user_id)?;
    let certification = certify(&primary, &user, now)?;
    let binding = bind(&primary, &subkey, now)?;

    // Large enough: what grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(limits::CERTIFICATE_BYTES_MAX));
    packets::write(&mut bytes, tag::SECRET_KEY, &Zeroizing::new(primary.to_bytes()?));
    packets::write(&mut bytes, tag::USER_ID, user.id());
    packets::write(&mut bytes, tag::SIGNATURE, &certification.to_bytes()?);
    packets::write(&mut bytes, tag::SECRET_SUBKEY, &Zeroizing::new(subkey.to_bytes()?));
    packets::write(&mut bytes, tag::SIGNATURE, &binding.to_bytes()?);
    Ok(bytes)
}

fn certify(primary: &SecretKey, user: &UserId, now: Timestamp) -> Result<Signature, Error> {
    let mut flags = KeyFlags::default();
    flags.set_certify(true);
    flags.set_sign(true);
    let mut features = Features::default();
    features.set_seipd_v1(true);
    let mut config = config(SignatureType::CertPositive, primary, now)?;
    config.hashed_subpackets.extend([
        Subpacket::regular(SubpacketData::KeyFlags(flags))?,
        Subpacket::regular(SubpacketData::PreferredSymmetricAlgorithms(
            [SymmetricKeyAlgorithm::AES256].into_iter().collect(),
        ))?,
        Subpacket::regular(SubpacketData::PreferredHashAlgorithms(
            [HashAlgorithm::Sha512, HashAlgorithm::Sha256].into_iter().collect(),
        ))?,
        Subpacket::regular(SubpacketData::PreferredCompressionAlgorithms(
            [CompressionAlgorithm::ZLIB].into_iter().collect(),
        ))?,
        Subpacket::regular(SubpacketData::Features(features))?,
        Subpacket::regular(SubpacketData::IsPrimary(true))?,
    ]);
    config.sign_certification(primary, primary.public_key(), &Password::empty(), Tag::UserId, user)
}

fn bind(primary: &SecretKey, subkey: &SecretSubkey, now: Timestamp) -> Result<Signature, Error> {
    let mut flags = KeyFlags::default();
    flags.set_encrypt_comms(true);
    flags.set_encrypt_storage(true);
    let mut config = config(SignatureType::SubkeyBinding, primary, now)?;
    config.hashed_subpackets.push(Subpacket::regular(SubpacketData::KeyFlags(flags))?);
    config.sign_subkey_binding(
        primary,
        primary.public_key(),
        &Password::empty(),
        subkey.public_key(),
    )
}

/// A signature that is about to be made: its time, and who makes it.
fn config(
    typ: SignatureType,
    signer: &SecretKey,
    now: Timestamp,
) -> Result<SignatureConfig, Error> {
    let mut config = SignatureConfig::v4(typ, signer.algorithm(), HASH);
    config.hashed_subpackets = hashed(signer, now)?;
    config.unhashed_subpackets = unhashed(signer)?;
    Ok(config)
}

fn hashed(signer: &impl SigningKey, now: Timestamp) -> Result<Vec<Subpacket>, Error> {
    Ok(vec![
        Subpacket::regular(SubpacketData::SignatureCreationTime(now))?,
        Subpacket::regular(SubpacketData::IssuerFingerprint(signer.fingerprint()))?,
    ])
}

fn unhashed(signer: &impl SigningKey) -> Result<Vec<Subpacket>, Error> {
    Ok(vec![Subpacket::regular(SubpacketData::IssuerKeyId(signer.legacy_key_id()))?])
}

/// A signature over a document, as it stands.
pub(crate) fn sign(signer: &SecretKey, document: &[u8], now: u64) -> Result<Vec<u8>, Problem> {
    let made = || {
        let config = config(SignatureType::Binary, signer, timestamp(now))?;
        config.sign(signer, &Password::empty(), document)?.to_bytes()
    };
    let mut bytes = Vec::new();
    packets::write(&mut bytes, tag::SIGNATURE, &made().map_err(not_made)?);
    Ok(bytes)
}

/// A message: signed, compressed, encrypted.
pub(crate) fn seal(
    signer: &SecretKey,
    to: &[&Certificate],
    text: &[u8],
    now: u64,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Vec<u8>, Problem> {
    if text.len() > limits::PLAIN_BYTES_MAX {
        return Err(Problem::TooLong { what: "a text", max: limits::PLAIN_BYTES_MAX });
    }
    let by = |error: Error| not_made(error);
    let mut builder = MessageBuilder::from_bytes("", text.to_vec())
        .seipd_v1(&mut *rng, SymmetricKeyAlgorithm::AES256);
    if to.is_empty() || to.len() > limits::RECIPIENTS_MAX {
        return Err(Problem::TooMany { what: "recipients", max: limits::RECIPIENTS_MAX });
    }
    for (at, certificate) in to.iter().enumerate() {
        if to[..at].iter().any(|before| before.fingerprint() == certificate.fingerprint()) {
            continue;
        }
        if let Some(key) = certificate.encryption_subkey(now) {
            builder.encrypt_to_key(&mut *rng, key).map_err(by)?;
        } else if let Some(key) = certificate.encryption_primary(now) {
            builder.encrypt_to_key(&mut *rng, key).map_err(by)?;
        } else {
            certificate.judge(now)?;
            return Err(Problem::NoEncryptionKey);
        }
    }
    let subpackets = SubpacketConfig::UserDefined {
        hashed: hashed(signer, timestamp(now)).map_err(by)?,
        unhashed: unhashed(signer).map_err(by)?,
    };
    builder.compression(CompressionAlgorithm::ZLIB);
    builder.sign_with_subpackets(signer, Password::empty(), HASH, subpackets);
    builder.to_vec(&mut *rng).map_err(by)
}

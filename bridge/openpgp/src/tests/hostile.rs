//! What strangers may send on purpose: bombs, too much of everything, and keys and texts of others.

use pgp::{
    composed::{MessageBuilder, RawSessionKey},
    crypto::{hash::HashAlgorithm, sym::SymmetricKeyAlgorithm},
    packet::{
        KeyFlags, PublicKeyEncryptedSessionKey, PublicSubkey, SecretKey, SignatureConfig,
        SignatureType, Subpacket, SubpacketData, SymEncryptedProtectedData,
    },
    ser::Serialize,
    types::{CompressionAlgorithm, KeyDetails, Password, Tag, Timestamp},
};

use super::{NOW, Seeded, plain::hosted};
use crate::{
    Certificate, Opened, Problem, SecretCertificate, Signed, Wish,
    armor::{self, Block},
    chance::Chance,
    limits, making, message,
    packets::{self, Lengths, tag},
    recipients_of,
};

const AES: SymmetricKeyAlgorithm = SymmetricKeyAlgorithm::AES256;

fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets::write(&mut bytes, tag, body);
    bytes
}

fn literal(text: &[u8]) -> Vec<u8> {
    packet(tag::LITERAL, &[&b"b\0\0\0\0\0"[..], text].concat())
}

/// A packet of compressed data that is not compressed.
fn wrapped(inner: &[u8]) -> Vec<u8> {
    packet(tag::COMPRESSED, &[&[0], inner].concat())
}

/// Encrypts anything to somebody.
fn encrypt(to: &SecretCertificate, inner: &[u8]) -> Vec<u8> {
    let mut random = Seeded(5);
    let mut fill = |bytes: &mut [u8]| random.fill(bytes);
    let mut rng = Chance(&mut fill);
    let session = RawSessionKey::from(vec![7; AES.key_size()]);
    let key = to.certificate().encryption_subkey(NOW).expect("it encrypts");
    let key = PublicKeyEncryptedSessionKey::from_session_key_v3(&mut rng, &session, AES, key);
    let key = key.expect("it encrypts").to_bytes().expect("bytes");
    let data = SymEncryptedProtectedData::encrypt_seipdv1(&mut rng, AES, session.as_ref(), inner);
    let data = data.expect("it encrypts").to_bytes().expect("bytes");
    [packet(tag::SESSION_KEY, &key), packet(tag::PROTECTED, &data)].concat()
}

fn open(to: &SecretCertificate, bytes: &[u8]) -> Result<Opened, Problem> {
    to.open(&armor::write(Block::Message, bytes), std::slice::from_ref(to.certificate()))
}

#[test]
fn bombs_are_stopped_at_their_bound() {
    let alice = hosted(1, "A <a@a.a>");
    for algorithm in
        [CompressionAlgorithm::ZLIB, CompressionAlgorithm::ZIP, CompressionAlgorithm::BZip2]
    {
        let zeros = vec![0; 2 * limits::PLAIN_BYTES_MAX];
        let mut builder = MessageBuilder::from_bytes("", zeros);
        builder.compression(algorithm);
        let mut random = Seeded(6);
        let mut fill = |bytes: &mut [u8]| random.fill(bytes);
        let bomb = builder.to_vec(Chance(&mut fill)).expect("it is made");
        assert!(bomb.len() < 64 * 1024, "{algorithm:?}: {} bytes", bomb.len());
        let opened = open(&alice, &encrypt(&alice, &bomb));
        let refused = Problem::TooLong { what: "a text", max: limits::PLAIN_BYTES_MAX };
        // Before all of it is there, not when its text is found to be too long.
        let split = packets::split(&bomb, Lengths::Any, 1).expect("one packet");
        assert_eq!(message::decompress(&split[0].body), Err(refused.clone()), "{algorithm:?}");
        assert_eq!(opened, Err(refused), "{algorithm:?}");
    }
}

#[test]
fn layers_are_counted() {
    let alice = hosted(1, "A <a@a.a>");
    let mut inner = literal(b"deep");
    // The encryption is a layer, too.
    for _ in 1..limits::NESTING_MAX {
        inner = wrapped(&inner);
    }
    assert_eq!(open(&alice, &encrypt(&alice, &inner)).expect("it opens").text, b"deep");
    let deeper = open(&alice, &encrypt(&alice, &wrapped(&inner)));
    assert_eq!(deeper, Err(Problem::TooDeep));
    let encrypted_again = open(&alice, &encrypt(&alice, &encrypt(&alice, &literal(b"x"))));
    assert_eq!(encrypted_again, Err(Problem::DamagedMessage));
}

#[test]
fn packets_and_recipients_are_counted() {
    let alice = hosted(1, "A <a@a.a>");
    let sealed = encrypt(&alice, &literal(b"x"));
    let split = packets::split(&sealed, Lengths::Any, 2).expect("two packets");
    let [key, data] = [0, 1].map(|at| packet(split[at].tag, &split[at].body));
    let with = |keys: usize, markers: usize| {
        let marker = packet(tag::MARKER, b"PGP");
        armor::write(
            Block::Message,
            &[key.repeat(keys), marker.repeat(markers), data.clone()].concat(),
        )
    };
    let max = limits::RECIPIENTS_MAX;
    assert_eq!(recipients_of(&with(max, 0)).map(|it| it.len()), Ok(max));
    let many = Err(Problem::TooMany { what: "recipients", max });
    assert_eq!(recipients_of(&with(max + 1, 0)), many);
    assert_eq!(alice.open(&with(max + 1, 0), &[]).map(drop), many.map(drop));
    let max = limits::MESSAGE_PACKETS_MAX;
    assert_eq!(recipients_of(&with(1, max - 1)).map(|it| it.len()), Ok(1));
    let many = Problem::TooMany { what: "packets before the data", max };
    assert_eq!(recipients_of(&with(1, max)), Err(many));
    // None, the data alone, the key alone, data behind the data.
    for wrong in [vec![], data.clone(), key.clone(), [&sealed[..], &data].concat()] {
        let wrong = armor::write(Block::Message, &wrong);
        assert_eq!(recipients_of(&wrong), Err(Problem::NotAMessage));
    }
}

#[test]
fn parts_of_a_certificate_are_counted() {
    let alice = hosted(1, "A <a@a.a>").certificate().to_bytes();
    let split = packets::split(&alice, Lengths::Known, 9).expect("packets");
    let [primary, user, certified, subkey, bound] =
        [0, 1, 2, 3, 4].map(|at| packet(split[at].tag, &split[at].body));
    let choose = |packets: &[Vec<u8>]| {
        let text = armor::write(Block::Keys, &packets.concat());
        Certificate::choose(&text, &Wish::First, NOW).map(drop)
    };
    let with = |users: usize, subkeys: usize| {
        let users = [user.clone(), certified.clone()].concat().repeat(users);
        choose(&[primary.clone(), users, [subkey.clone(), bound.clone()].concat().repeat(subkeys)])
    };
    assert_eq!(with(limits::USER_IDS_MAX, limits::SUBKEYS_MAX), Ok(()));
    let max = limits::SUBKEYS_MAX;
    assert_eq!(with(1, max + 1), Err(Problem::TooMany { what: "subkeys", max }));
    let max = limits::USER_IDS_MAX;
    assert_eq!(with(max + 1, 1), Err(Problem::TooMany { what: "user ids", max }));
    // Signatures by others are passed over, however many there are.
    let bobs = hosted(2, "B <b@b.b>").certificate().to_bytes();
    let bobs = packets::split(&bobs, Lengths::Known, 9).expect("packets");
    let by_bob = |n: u8| {
        let mut body = bobs[2].body.to_vec();
        let end = body.len() - 1;
        body[end] ^= n;
        packet(tag::SIGNATURE, &body)
    };
    let by_others: Vec<u8> = (0..=u8::MAX).flat_map(by_bob).collect();
    assert_eq!(
        choose(&[
            primary.clone(),
            user.clone(),
            by_others,
            certified.clone(),
            subkey.clone(),
            bound.clone()
        ]),
        Ok(())
    );
    // Signatures that say to be its own, and are not.
    let wrong = |n: usize| {
        let mut body = split[2].body.to_vec();
        let end = body.len() - 1;
        body[end] ^= 1;
        body[end - 1] ^= u8::try_from(n).expect("less than 256");
        packet(tag::SIGNATURE, &body)
    };
    let wrongs: Vec<u8> = (0..limits::OWN_SIGNATURES_MAX).flat_map(wrong).collect();
    let max = limits::OWN_SIGNATURES_MAX;
    let refused = choose(&[primary, user, wrongs, certified, subkey, bound]);
    assert_eq!(refused, Err(Problem::TooMany { what: "signatures", max }));
}

#[test]
fn a_certificate_that_stays_too_long_is_refused() {
    let long = |length: usize| {
        let mut random = Seeded(1);
        let user = "x".repeat(length);
        SecretCertificate::generate(&user, NOW, &mut |bytes| random.fill(bytes)).map(drop)
    };
    assert_eq!(long(limits::USER_ID_BYTES_MAX), Ok(()));
    let max = limits::USER_ID_BYTES_MAX;
    assert_eq!(long(max + 1), Err(Problem::TooLong { what: "a user id", max }));
    let bytes = vec![0; limits::CERTIFICATE_BYTES_MAX + 1];
    assert!(matches!(Certificate::from_bytes(&bytes), Err(Problem::TooLong { .. })));
    assert!(matches!(SecretCertificate::from_bytes(&bytes), Err(Problem::TooLong { .. })));
}

#[test]
fn what_was_changed_on_its_way_is_not_shown() {
    let (alice, bob) = (hosted(1, "A <a@a.a>"), hosted(2, "B <b@b.b>"));
    let sealed = encrypt(&bob, &literal(b"a text"));
    let mut refused = 0;
    for at in 0..sealed.len() {
        let mut sealed = sealed.clone();
        sealed[at] ^= 1;
        match open(&bob, &sealed) {
            // How many bits a number has is said twice: the first time is passed over.
            Ok(opened) => assert_eq!(opened.text, b"a text", "byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused + 2 >= sealed.len(), "{refused} of {} were refused", sealed.len());
    // A text beside the signed one, before or behind it, is none of the signer's.
    let signature = making::sign(&secret_key(&alice), b"true", NOW).expect("it signs");
    for both in [
        [&signature[..], &literal(b"false"), &literal(b"true")].concat(),
        [&signature[..], &literal(b"true"), &literal(b"false")].concat(),
        [&signature[..], &literal(b"false"), &wrapped(&literal(b"true"))].concat(),
        [&signature[..], &wrapped(&literal(b"true")), &literal(b"false")].concat(),
    ] {
        assert_eq!(open(&bob, &encrypt(&bob, &both)), Err(Problem::DamagedMessage));
    }
}

/// The secret key of somebody, for signing what they would not.
fn secret_key(of: &SecretCertificate) -> SecretKey {
    let bytes = of.to_bytes();
    let split = packets::split(&bytes, Lengths::Known, 9).expect("packets");
    let header = packets::header(Tag::SecretKey, &split[0].body);
    SecretKey::try_from_reader(header, &split[0].body[..]).expect("a key")
}

#[test]
fn a_signature_does_not_move_to_another_text() {
    let (alice, bob) = (hosted(1, "A <a@a.a>"), hosted(2, "B <b@b.b>"));
    let signature = making::sign(&secret_key(&alice), b"yes", NOW).expect("it signs");
    let opened = |text: &[u8], signers: &[Certificate]| {
        let inner = [&signature[..], &literal(text)].concat();
        let sealed = armor::write(Block::Message, &encrypt(&bob, &inner));
        bob.open(&sealed, signers).expect("it opens").signature
    };
    let alices = [alice.certificate().clone()];
    assert_eq!(opened(b"yes", &alices), Signed::Good);
    assert_eq!(opened(b"no", &alices), Signed::Bad);
    assert_eq!(opened(b"yes", &[bob.certificate().clone()]), Signed::UnknownKey);
    // Signed long before the key was made.
    let early = making::sign(&secret_key(&alice), b"yes", NOW - 9_999_999).expect("it signs");
    let inner = [&early[..], &literal(b"yes")].concat();
    let sealed = armor::write(Block::Message, &encrypt(&bob, &inner));
    assert_eq!(bob.open(&sealed, &alices).expect("it opens").signature, Signed::Bad);
}

/// Mallory binds a key of Bob's as a subkey of his that signs: what Bob signed would be Mallory's.
#[test]
fn nobody_takes_over_a_key_that_signs() {
    let (mallory, bob) = (hosted(1, "M <m@m.m>"), hosted(2, "B <b@b.b>"));
    let signer = secret_key(&mallory);
    let bobs = secret_key(&bob);
    let body = bobs.public_key().to_bytes().expect("bytes");
    let taken = PublicSubkey::try_from_reader(packets::header(Tag::PublicSubkey, &body), &body[..]);
    let taken = taken.expect("a key");
    let mut flags = KeyFlags::default();
    flags.set_sign(true);
    let mut config = SignatureConfig::v4(
        SignatureType::SubkeyBinding,
        signer.algorithm(),
        HashAlgorithm::Sha512,
    );
    let says = |data| Subpacket::regular(data).expect("a subpacket");
    config.hashed_subpackets = vec![
        says(SubpacketData::SignatureCreationTime(Timestamp::from_secs(
            u32::try_from(NOW).expect("it fits"),
        ))),
        says(SubpacketData::KeyFlags(flags)),
        says(SubpacketData::IssuerFingerprint(signer.fingerprint())),
    ];
    let binding =
        config.sign_subkey_binding(&signer, signer.public_key(), &Password::empty(), &taken);
    let binding = binding.expect("it signs").to_bytes().expect("bytes");
    let mut bytes = mallory.certificate().to_bytes();
    packets::write(&mut bytes, tag::SUBKEY, &body);
    packets::write(&mut bytes, tag::SIGNATURE, &binding);
    let chosen = Certificate::choose(&armor::write(Block::Keys, &bytes), &Wish::First, NOW);
    let chosen = chosen.expect("the rest of it is good");
    assert_eq!(&chosen, mallory.certificate(), "the key is left out");
    assert_eq!(Certificate::from_bytes(&bytes), Err(Problem::Damaged));
    let by_bob = bob.sign_detached(b"mine", NOW).expect("it signs");
    assert!(matches!(chosen.verify(&by_bob, b"mine", NOW), Err(Problem::OtherSigner { .. })));
}

#[test]
fn refusals_fit_into_a_reason_phrase() {
    let all = [
        Problem::NoKey,
        Problem::Damaged,
        Problem::SecretKey,
        Problem::TooLong { what: "a certificate", max: limits::KEYRING_BYTES_MAX },
        Problem::TooMany { what: "packets before the data", max: limits::KEYRING_PACKETS_MAX },
        Problem::Version(6),
        Problem::Algorithm("ECDSA on brainpoolP256r1".to_owned()),
        Problem::ShortRsa(1024),
        Problem::WeakHash,
        Problem::NoUserId,
        Problem::NoSigningKey,
        Problem::NoEncryptionKey,
        Problem::Expired(NOW),
        Problem::EncryptionExpired(NOW),
        Problem::SigningExpired(u64::MAX),
        Problem::Revoked,
        Problem::NotYet(NOW),
        Problem::NotASignature,
        Problem::OtherSigner {
            signer: crate::KeyId::ANONYMOUS,
            certificate: hosted(1, "A <a@a.a>").certificate().fingerprint(),
        },
        Problem::BadSignature,
        Problem::NotAMessage,
        Problem::NotForUs(hosted(1, "A <a@a.a>").certificate().fingerprint()),
        Problem::OtherCipher,
        Problem::DamagedMessage,
        Problem::TooDeep,
    ];
    for problem in all {
        let text = format!("Bad Request: pgp_key: {problem}");
        assert!(text.is_ascii() && text.len() <= 200, "{} bytes: {text}", text.len());
    }
    assert!(Problem::EncryptionExpired(NOW).to_string().contains(" 2026-11-26;"));
}

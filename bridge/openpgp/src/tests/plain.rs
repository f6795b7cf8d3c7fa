//! What needs no gpg: ids, armor, keys that are made here, signatures, messages among ourselves.

use super::{DAY, NOW, Seeded};
use crate::{
    Certificate, Fingerprint, KeyId, Problem, SecretCertificate, Signed, Wish, limits,
    recipients_of,
};

pub(super) fn hosted(seed: u64, user_id: &str) -> SecretCertificate {
    let mut random = Seeded(seed);
    SecretCertificate::generate(user_id, NOW, &mut |bytes| random.fill(bytes)).expect("it is made")
}

#[test]
fn ids_are_written_in_upper_case_and_read_in_any() {
    let text = "a6173e3e92ddd61a7e5cd73008cb902d334ee569";
    let fingerprint: Fingerprint = text.parse().expect("a fingerprint");
    assert_eq!(fingerprint.to_string(), text.to_uppercase());
    assert_eq!(text.to_uppercase().parse(), Ok(fingerprint));
    for wrong in [
        "",
        "A6",
        &text[1..],
        &format!("{text}0"),
        &text.replace('a', "g"),
        "é6173e3e92ddd61a7e5cd73008cb902d334ee56",
    ] {
        assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
    }
    let id: KeyId = "8CB7AE0CA2874F5e".parse().expect("a key id");
    assert_eq!(id.to_string(), "8CB7AE0CA2874F5E");
    assert!(KeyId::ANONYMOUS.is_anonymous() && !id.is_anonymous());
}

#[test]
fn keys_that_are_made_are_certificates_of_their_own() {
    let alice = hosted(1, "Alice Bot <alice-bot@clawfinder.invalid>");
    let certificate = alice.certificate();
    certificate.judge(NOW).expect("it is good");
    certificate.judge(NOW + 40 * 365 * DAY).expect("it does not expire");
    assert_eq!(certificate.recipients().len(), 1);
    let again = SecretCertificate::from_bytes(&alice.to_bytes()).expect("it is read");
    assert_eq!(again.certificate(), certificate);
    let kept = Certificate::from_bytes(&certificate.to_bytes()).expect("it is read");
    assert_eq!(&kept, certificate);
    let chosen =
        Certificate::choose(&certificate.armored(), &Wish::First, NOW).expect("it is taken");
    assert_eq!(&chosen, certificate);
    assert_ne!(hosted(2, "B <b@b.b>").certificate().fingerprint(), certificate.fingerprint());
}

#[test]
fn secrets_are_shown_by_no_debug() {
    let alice = hosted(1, "Alice <a@a.a>");
    let shown = format!("{alice:?}");
    assert_eq!(shown, format!("SecretCertificate({}, hidden)", alice.certificate().fingerprint()));
}

#[test]
fn detached_signatures_are_verified() {
    let alice = hosted(1, "Alice <a@a.a>");
    let document = b"clawmesh finder account\nab\ncd\n";
    let signature = alice.sign_detached(document, NOW).expect("it signs");
    let certificate = alice.certificate();
    certificate.verify(&signature, document, NOW).expect("it is right");
    let other = certificate.verify(&signature, b"another", NOW);
    assert_eq!(other, Err(Problem::BadSignature));
    let bob = hosted(2, "Bob <b@b.b>");
    let by_other = bob.certificate().verify(&signature, document, NOW);
    assert!(matches!(by_other, Err(Problem::OtherSigner { .. })), "{by_other:?}");
    assert_eq!(certificate.verify("", document, NOW), Err(Problem::NotASignature));
    let early = certificate.verify(&signature, document, NOW - DAY);
    assert_eq!(early, Err(Problem::NotYet(NOW)));
}

#[test]
fn messages_are_read_by_whom_they_are_for() {
    let (alice, bob, carol) =
        (hosted(1, "A <a@a.a>"), hosted(2, "B <b@b.b>"), hosted(3, "C <c@c.c>"));
    let mut random = Seeded(4);
    let text = "Größe\r\nblank\n\nno newline at the end".as_bytes();
    let to = [bob.certificate(), alice.certificate()];
    let sealed = alice.seal(&to, text, NOW, &mut |bytes| random.fill(bytes)).expect("it is sealed");
    let named = recipients_of(&sealed).expect("it is a message");
    let expected = [bob.certificate().recipients(), alice.certificate().recipients()].concat();
    assert_eq!(named, expected);
    let signers = [alice.certificate().clone()];
    for reader in [&alice, &bob] {
        let opened = reader.open(&sealed, &signers).expect("it is for them");
        assert_eq!((opened.text.as_slice(), opened.signature), (text, Signed::Good));
    }
    let unknown = bob.open(&sealed, &[carol.certificate().clone()]).expect("it opens");
    assert_eq!(unknown.signature, Signed::UnknownKey);
    assert_eq!(bob.open(&sealed, &[]).expect("it opens").signature, Signed::UnknownKey);
    let others = carol.open(&sealed, &signers);
    assert_eq!(others, Err(Problem::NotForUs(carol.certificate().fingerprint())));
}

#[test]
fn texts_that_are_too_long_are_not_sealed() {
    let alice = hosted(1, "A <a@a.a>");
    let text = vec![b'a'; limits::PLAIN_BYTES_MAX + 1];
    let mut random = Seeded(4);
    let mut seal = |text: &[u8]| {
        alice.seal(&[alice.certificate()], text, NOW, &mut |bytes| random.fill(bytes))
    };
    assert!(matches!(seal(&text), Err(Problem::TooLong { .. })));
    let sealed = seal(&text[1..]).expect("as long as may be");
    let opened = alice.open(&sealed, &[alice.certificate().clone()]).expect("it is read");
    assert_eq!((opened.text.len(), opened.signature), (limits::PLAIN_BYTES_MAX, Signed::Good));
}

#[test]
fn a_certificate_in_a_record_is_exactly_what_would_be_kept() {
    let alice = hosted(1, "A <a@a.a>").certificate().to_bytes();
    let bob = hosted(2, "B <b@b.b>").certificate().to_bytes();
    assert_eq!(
        Certificate::from_bytes(&[alice.clone(), bob.clone()].concat()),
        Err(Problem::Damaged)
    );
    // A padding packet at the end, and a user id that nobody signed.
    for extra in [&[0xD5, 1, 0][..], &[0xCD, 1, b'x']] {
        assert_eq!(Certificate::from_bytes(&[&alice[..], extra].concat()), Err(Problem::Damaged));
    }
    // Alice's primary key and user id, and Bob's subkey, which she did not bind.
    let subkey_of = |bytes: &[u8]| {
        let at = bytes.windows(2).position(|it| it == [0xC0 | 14, 56]).expect("a subkey");
        (bytes[..at].to_vec(), bytes[at..].to_vec())
    };
    let mixed = [subkey_of(&alice).0, subkey_of(&bob).1].concat();
    assert_eq!(Certificate::from_bytes(&mixed), Err(Problem::Damaged));
}

#[test]
fn one_wrong_letter_in_armor_is_noticed() {
    let alice = hosted(1, "A <a@a.a>");
    let mut random = Seeded(4);
    let fill = &mut |bytes: &mut [u8]| random.fill(bytes);
    let sealed = alice.seal(&[alice.certificate()], b"x", NOW, fill).expect("it is sealed");
    let keys = alice.certificate().armored();
    let signature = alice.sign_detached(b"x", NOW).expect("it signs");
    let swap = |text: &str, at: usize| {
        let mut letters: Vec<char> = text.chars().collect();
        letters[at] = if letters[at] == 'A' { 'B' } else { 'A' };
        String::from_iter(letters)
    };
    for at in [80, 120] {
        assert_eq!(Certificate::choose(&swap(&keys, at), &Wish::First, NOW), Err(Problem::Damaged));
        assert_eq!(recipients_of(&swap(&sealed, at)), Err(Problem::NotAMessage));
        let refused = alice.certificate().verify(&swap(&signature, at), b"x", NOW);
        assert_eq!(refused, Err(Problem::NotASignature));
    }
    // Text around a message is none of it. White space before it is not refused.
    assert_eq!(recipients_of(&format!(" \n{sealed}\n")).map(|it| it.len()), Ok(1));
    for around in [format!("x\n{sealed}"), format!("{sealed}x\n")] {
        assert_eq!(recipients_of(&around), Err(Problem::NotAMessage));
    }
    // Without a checksum it is read, too: newer programs write none.
    let without: String = sealed
        .lines()
        .filter(|line| !line.starts_with('='))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(recipients_of(&without).map(|it| it.len()), Ok(1));
}

//! Messages and signatures, from gpg and to it.

use super::{DAY, NOW, Seeded, gpg::Gpg, plain::hosted};
use crate::{Certificate, KeyId, Problem, SecretCertificate, Signed, Wish, recipients_of};

/// A person with gpg, and their certificate.
fn person(name: &str) -> Option<(Gpg, Certificate)> {
    let gpg = Gpg::new()?;
    gpg.init(&format!("{name} <{}@x.y>", name.to_lowercase()));
    let certificate =
        Certificate::choose(&gpg.export(&[]), &Wish::First, NOW).expect("it is taken");
    Some((gpg, certificate))
}

fn seal(by: &SecretCertificate, to: &[&Certificate], text: &[u8]) -> String {
    let mut random = Seeded(9);
    by.seal(to, text, NOW, &mut |bytes| random.fill(bytes)).expect("it is sealed")
}

#[test]
fn gpg_reads_what_is_sealed_here_and_finds_a_good_signature() {
    let Some((bob, bobs)) = person("Bob") else { return };
    let alice = hosted(1, "Alice Bot <alice-bot@clawfinder.invalid>");
    bob.import(&alice.certificate().armored());
    assert_eq!(bob.last(), alice.certificate().fingerprint().to_string());
    let long = "line\n".repeat(60_000);
    for text in ["", "Grüße\n\nno newline at the end", &long] {
        let sealed = seal(&alice, &[&bobs], text.as_bytes());
        assert_eq!(recipients_of(&sealed), Ok(bobs.recipients()));
        let output = bob.run(&["--decrypt"], sealed.as_bytes());
        let told = Gpg::told(&output);
        assert!(output.status.success(), "{told}");
        assert!(
            told.contains("Good signature from \"Alice Bot <alice-bot@clawfinder.invalid>\""),
            "{told}"
        );
        assert_eq!(output.stdout, text.as_bytes());
    }
}

#[test]
fn gpg_sees_no_more_in_hosted_keys_than_it_can_use() {
    let Some((bob, _)) = person("Bob") else { return };
    let alice = hosted(1, "Alice <alice@x.y>");
    bob.import(&alice.certificate().armored());
    let fingerprint = alice.certificate().fingerprint().to_string();
    let listed = bob.text(&["--with-colons", "--list-keys", &fingerprint]);
    let of = |kind: &str| listed.lines().find(|line| line.starts_with(kind)).expect("it is listed");
    let field = |kind: &str, at: usize| of(kind).split(':').nth(at).expect("a field").to_owned();
    assert_eq!((field("pub:", 3), field("sub:", 3)), ("22".into(), "18".into()), "algorithms");
    assert_eq!(field("sub:", 11), "e");
    assert!(field("pub:", 11).starts_with("sc"), "{}", of("pub:"));
    assert_eq!((field("pub:", 6), field("sub:", 6)), (String::new(), String::new()), "no expiry");
    let packets = bob.ok(&["--list-packets"], &alice.certificate().to_bytes());
    let packets = String::from_utf8_lossy(&packets);
    for (packet, says) in [
        ("subpkt 11", "pref-sym-algos: 9"),
        ("subpkt 21", "pref-hash-algos: 10 8"),
        ("subpkt 22", "pref-zip-algos: 2"),
        ("subpkt 30", "features: 01"),
    ] {
        let line = packets.lines().find(|line| line.contains(packet)).expect("it is there");
        assert!(line.contains(&format!("({says})")), "{line}");
    }
    // The secret side is one that gpg could take over, too.
    let secret = Gpg::new().expect("gpg was here");
    secret.ok(&["--import"], &alice.to_bytes());
    assert_eq!(secret.last(), fingerprint);
}

#[test]
fn what_gpg_sends_is_read_here() {
    let Some((bob, bobs)) = person("Bob") else { return };
    let alice = hosted(1, "Alice <alice@x.y>");
    bob.import(&alice.certificate().armored());
    let to = alice.certificate().fingerprint().to_string();
    let text = "Bitte schön.\r\n\nno newline at the end".as_bytes();
    let signers = [hosted(7, "C <c@c.c>").certificate().clone(), bobs];
    let send = |options: &[&str], text: &[u8]| {
        let sealed = bob.ok(&[&["--armor", "--encrypt"], options].concat(), text);
        String::from_utf8(sealed).expect("armor")
    };
    let mut checked = 0;
    for compression in ["zlib", "zip", "bzip2", "none"] {
        let options = ["--sign", "--recipient", &to, "--compress-algo", compression];
        let opened = alice.open(&send(&options, text), &signers).expect("it opens");
        assert_eq!(
            (opened.text.as_slice(), opened.signature),
            (text, Signed::Good),
            "{compression}"
        );
        checked += 1;
    }
    assert_eq!(checked, 4);

    let unsigned = alice.open(&send(&["--recipient", &to], text), &signers).expect("it opens");
    assert_eq!((unsigned.text.as_slice(), unsigned.signature), (text, Signed::Missing));
    let unknown = send(&["--sign", "--recipient", &to], text);
    assert_eq!(
        alice.open(&unknown, &signers[..1]).expect("it opens").signature,
        Signed::UnknownKey
    );
    let lines = send(&["--sign", "--textmode", "--recipient", &to], b"one\ntwo\n");
    let lines = alice.open(&lines, &signers).expect("it opens");
    assert_eq!((lines.text.as_slice(), lines.signature), (&b"one\ntwo\n"[..], Signed::Good));
    // So long that gpg sends it in parts.
    let mut long = vec![0; 400_000];
    Seeded(3).fill(&mut long);
    let opened =
        alice.open(&send(&["--sign", "--recipient", &to], &long), &signers).expect("it opens");
    assert_eq!((opened.text == long, opened.signature), (true, Signed::Good));
}

#[test]
fn a_signature_by_a_broken_hash_is_bad() {
    let Some((bob, bobs)) = person("Bob") else { return };
    let rsa = bob.make("Rsa <rsa@x.y>", "rsa2048", Some("rsa2048"), &[]);
    let rsas = Certificate::choose(&bob.export(&[&rsa]), &Wish::First, NOW).expect("it is taken");
    let alice = hosted(1, "Alice <alice@x.y>");
    bob.import(&alice.certificate().armored());
    let to = alice.certificate().fingerprint().to_string();
    let send = |hash: &str| {
        let by = ["--armor", "--encrypt", "--sign", "--local-user", &rsa, "--recipient", &to];
        let weak = [
            "--allow-weak-digest-algos",
            "--digest-algo",
            hash,
            "--personal-digest-preferences",
            hash,
        ];
        String::from_utf8(bob.ok(&[&by[..], &weak].concat(), b"text")).expect("armor")
    };
    let signers = [bobs, rsas];
    assert_eq!(alice.open(&send("SHA512"), &signers).expect("it opens").signature, Signed::Good);
    assert_eq!(alice.open(&send("SHA1"), &signers).expect("it opens").signature, Signed::Bad);
}

#[test]
fn recipients_that_are_not_named_are_tried() {
    let Some((bob, bobs)) = person("Bob") else { return };
    let (alice, carol) = (hosted(1, "Alice <alice@x.y>"), hosted(2, "Carol <carol@x.y>"));
    bob.import(&alice.certificate().armored());
    bob.import(&carol.certificate().armored());
    let (hers, carols) = (
        alice.certificate().fingerprint().to_string(),
        carol.certificate().fingerprint().to_string(),
    );
    let hidden = bob.ok(
        &[
            "--armor",
            "--encrypt",
            "--sign",
            "--hidden-recipient",
            &carols,
            "--hidden-recipient",
            &hers,
        ],
        b"hidden",
    );
    let hidden = String::from_utf8(hidden).expect("armor");
    assert_eq!(recipients_of(&hidden), Ok(vec![KeyId::ANONYMOUS; 2]));
    for reader in [&alice, &carol] {
        let opened = reader.open(&hidden, std::slice::from_ref(&bobs)).expect("it opens");
        assert_eq!((opened.text.as_slice(), opened.signature), (&b"hidden"[..], Signed::Good));
    }
    let dave = hosted(3, "Dave <dave@x.y>");
    assert_eq!(dave.open(&hidden, &[]), Err(Problem::NotForUs(dave.certificate().fingerprint())));
}

#[test]
fn proofs_that_gpg_makes_are_verified() {
    let Some((bob, bobs)) = person("Bob") else { return };
    let document = b"clawmesh finder account\n00ff\n00ff\n";
    let sign = |options: &[&str], document: &[u8]| {
        String::from_utf8(bob.ok(&[&["--armor", "--detach-sign"], options].concat(), document))
            .expect("armor")
    };
    bobs.verify(&sign(&[], document), document, NOW).expect("binary");
    bobs.verify(&sign(&["--textmode"], document), document, NOW).expect("text");
    assert_eq!(bobs.verify(&sign(&[], b"other"), document, NOW), Err(Problem::BadSignature));
    let other = bob.init("Other <other@x.y>");
    let by_other = bobs.verify(&sign(&["--local-user", &other], document), document, NOW);
    assert!(matches!(by_other, Err(Problem::OtherSigner { .. })), "{by_other:?}");
    // By a subkey that signs.
    let fingerprint = bobs.fingerprint().to_string();
    bob.ok(&["--quick-add-key", &fingerprint, "ed25519", "sign", "never"], b"");
    let with_subkey = bob.export(&[&fingerprint]);
    let with_subkey = Certificate::choose(&with_subkey, &Wish::First, NOW).expect("it is taken");
    let by_subkey = sign(&["--local-user", &fingerprint], document);
    with_subkey.verify(&by_subkey, document, NOW).expect("by the subkey");
    assert!(matches!(bobs.verify(&by_subkey, document, NOW), Err(Problem::OtherSigner { .. })));
    // And gpg verifies ours.
    let alice = hosted(1, "Alice <alice@x.y>");
    bob.import(&alice.certificate().armored());
    let (signature, signed) = (bob.folder().join("s.asc"), bob.folder().join("document"));
    std::fs::write(&signature, alice.sign_detached(document, NOW).expect("it signs"))
        .expect("a file");
    std::fs::write(&signed, document).expect("a file");
    let paths = [signature.to_str().expect("text"), signed.to_str().expect("text")];
    let output = bob.run(&["--verify", paths[0], paths[1]], b"");
    assert!(output.status.success() && Gpg::told(&output).contains("Good signature"), "{output:?}");
}

#[test]
fn all_that_can_sign_and_encrypt_works_both_ways() {
    let Some(gpg) = Gpg::new() else { return };
    let alice = hosted(1, "Alice <alice@x.y>");
    gpg.import(&alice.certificate().armored());
    let hers = alice.certificate().fingerprint().to_string();
    for (signs, encrypts) in
        [("rsa2048", "rsa2048"), ("nistp256", "nistp256"), ("nistp384", "nistp521")]
    {
        let key = gpg.make(&format!("{signs} <{signs}@x.y>"), signs, Some(encrypts), &[]);
        let theirs =
            Certificate::choose(&gpg.export(&[&key]), &Wish::First, NOW).expect("it is taken");
        let output = gpg.run(&["--decrypt"], seal(&alice, &[&theirs], b"there").as_bytes());
        let told = Gpg::told(&output);
        assert!(output.stdout == b"there" && told.contains("Good signature"), "{encrypts}: {told}");
        let back = gpg.ok(
            &["--armor", "--encrypt", "--sign", "--local-user", &key, "--recipient", &hers],
            b"back",
        );
        let opened =
            alice.open(&String::from_utf8(back).expect("armor"), &[theirs]).expect("it opens");
        assert_eq!(
            (opened.text.as_slice(), opened.signature),
            (&b"back"[..], Signed::Good),
            "{signs}"
        );
    }
}

#[test]
fn a_key_that_is_over_now_was_not_when_it_signed() {
    let Some(mut bob) = Gpg::new() else { return };
    bob.now = NOW + DAY;
    let key = bob.init("Bob <bob@x.y>");
    bob.now += 1;
    bob.ok(&["--quick-set-expire", &key, "30d"], b"");
    let alice = hosted(1, "Alice <alice@x.y>");
    bob.import(&alice.certificate().armored());
    let to = alice.certificate().fingerprint().to_string();
    bob.now += DAY;
    let then =
        Certificate::choose(&bob.export(&[&key]), &Wish::First, bob.now).expect("it is taken");
    let send = |by: &Gpg| {
        let sealed = by.ok(&["--armor", "--encrypt", "--sign", "--recipient", &to], b"text");
        String::from_utf8(sealed).expect("armor")
    };
    let former = Certificate::from_bytes(&then.to_bytes()).expect("it was kept");
    let opened = alice.open(&send(&bob), std::slice::from_ref(&former)).expect("it opens");
    assert_eq!(opened.signature, Signed::Good);
    // Revoked, nobody knows who has it.
    let file = bob.folder().join(format!("openpgp-revocs.d/{key}.rev"));
    let revocation = std::fs::read_to_string(file).expect("gpg makes one");
    let sealed = send(&bob);
    bob.import(&revocation.replace(":-----BEGIN", "-----BEGIN"));
    // Who asks at a time when it can be taken is refused; a record may have it.
    let exported = bob.export(&[&key]);
    assert_eq!(Certificate::choose(&exported, &Wish::First, bob.now), Err(Problem::Revoked));
    let packets = crate::fuzzing::packets(&exported);
    let packets =
        crate::packets::split(&packets, crate::packets::Lengths::Known, 99).expect("packets");
    let reduced = crate::reduction::reduce(&packets).expect("it is sound");
    let revoked = Certificate::from_bytes(&reduced.bytes).expect("it was kept");
    assert_eq!(revoked.recipients(), vec![]);
    let opened = alice.open(&sealed, &[revoked]).expect("it opens");
    assert_eq!(opened.signature, Signed::Bad);
}

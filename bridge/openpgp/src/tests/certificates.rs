//! Certificates of gpg.

use std::fs;

use super::{DAY, NOW, gpg::Gpg};
use crate::{Certificate, Problem, Wish, limits};

const FIRST: Wish<'_> = Wish::First;

fn choose(armored: &str) -> Result<Certificate, Problem> {
    let chosen = Certificate::choose(armored, &FIRST, NOW);
    if let Ok(certificate) = &chosen {
        // What is taken can be kept, and read again.
        let again = Certificate::from_bytes(&certificate.to_bytes()).expect("it is read");
        assert_eq!(&again, certificate);
        let again = Certificate::choose(&certificate.armored(), &FIRST, NOW).expect("it is taken");
        assert_eq!(&again, certificate);
    }
    chosen
}

#[test]
fn the_client_s_key_is_taken_and_gpg_takes_it_back() {
    let (Some(alice), Some(bob)) = (Gpg::new(), Gpg::new()) else { return };
    let fingerprint = alice.init("Alice Bot <alice-bot@clawfinder.dev>");
    let certificate = choose(&alice.export(&[])).expect("it is taken");
    assert_eq!(certificate.fingerprint().to_string(), fingerprint);
    let [subkey] = certificate.recipients()[..] else { panic!("it has one subkey") };
    assert!(alice.text(&["--with-colons", "--list-keys"]).contains(&format!(":{subkey}:")));
    bob.import(&certificate.armored());
    assert_eq!(bob.last(), fingerprint);
    // gpg encrypts to the key that is named here, and to no other.
    let sealed = bob.ok(&["--armor", "--encrypt", "--recipient", &fingerprint], b"x");
    let sealed = String::from_utf8(sealed).expect("armor");
    assert_eq!(crate::recipients_of(&sealed), Ok(vec![subkey]));
}

#[test]
fn of_a_keyring_the_own_key_is_found() {
    let (Some(peer), Some(alice)) = (Gpg::new(), Gpg::new()) else { return };
    for user in ["Bob <bob@x.y>", "Carol (a bot) <carol@x.y>"] {
        peer.init(user);
    }
    let (bob, carol) = (peer.export(&["bob@x.y"]), peer.export(&["carol@x.y"]));
    alice.import(&bob);
    alice.import(&carol);
    let own = alice.init("Alice <Alice-Bot@clawfinder.dev>");
    let keyring = alice.export(&[]);
    let found = |username, name| {
        let wish = Wish::Of { username, name };
        let chosen = Certificate::choose(&keyring, &wish, NOW).expect("one is taken");
        chosen.fingerprint().to_string()
    };
    let first = choose(&keyring).expect("it is taken").fingerprint().to_string();
    assert_ne!(first, own);
    assert_eq!(found("alice-bot", "nobody"), own, "by e-mail, in any case");
    assert_eq!(found("nobody", "Alice"), own, "by name");
    assert_eq!(found("alice", "nobody"), first, "the local part, not its beginning");
    assert_eq!(found("nobody", "nobody"), first, "else the first");
    assert_eq!(found("alice-bot", "Bob"), own, "e-mail before name");
    let carols = choose(&carol).expect("it is taken").fingerprint().to_string();
    assert_eq!(found("nobody", "Carol"), carols, "without the comment");
    assert_eq!(found("nobody", "Carol (a bot)"), carols, "with the comment");
    // Blocks one after the other are a keyring, too, with text around them.
    let blocks = format!("mine:\n{}\nand\n{bob}", alice.export(&[&own]));
    assert_eq!(choose(&blocks).expect("it is taken").fingerprint().to_string(), own);
}

#[test]
fn algorithms_are_as_clients_can_use_them() {
    let Some(gpg) = Gpg::new() else { return };
    let taken = |name: &str, algorithm: &str, encrypts: Option<&str>| {
        let made = gpg.make(&format!("{name} <{name}@x.y>"), algorithm, encrypts, &[]);
        choose(&gpg.export(&[&made])).map(|it| it.recipients().len())
    };
    assert_eq!(taken("rsa", "rsa2048", Some("rsa2048")), Ok(1));
    assert_eq!(taken("p256", "nistp256", Some("nistp256")), Ok(1));
    assert_eq!(taken("p384", "nistp384", Some("nistp521")), Ok(1));
    assert_eq!(taken("short", "rsa1024", Some("rsa1024")), Err(Problem::ShortRsa(1024)));
    // What is weak is left out: then what remains encrypts nothing.
    assert_eq!(taken("weak", "ed25519", Some("rsa1024")), Err(Problem::NoEncryptionKey));
    assert_eq!(taken("none", "ed25519", None), Err(Problem::NoEncryptionKey));
    let dsa = taken("dsa", "dsa2048", None);
    assert!(matches!(&dsa, Err(Problem::Algorithm(name)) if name == "DSA"), "{dsa:?}");
    let brainpool = taken("brain", "brainpoolP256r1", Some("brainpoolP256r1"));
    assert!(matches!(brainpool, Err(Problem::Algorithm(_))), "{brainpool:?}");
    let text = Problem::NoEncryptionKey.to_string();
    assert_eq!(text, "no encryption subkey; run clawfinder gpg init");
}

#[test]
fn what_is_over_is_refused_with_its_day() {
    let Some(mut gpg) = Gpg::new() else { return };
    // gpg makes no second signature within a second.
    gpg.now = NOW - 101 * DAY;
    let expired = gpg.init("Over <over@x.y>");
    gpg.now = NOW - 100 * DAY;
    gpg.ok(&["--quick-set-expire", &expired, "30d"], b"");
    let refused = choose(&gpg.export(&[&expired]));
    let at = NOW - 70 * DAY;
    assert_eq!(refused, Err(Problem::Expired(at)));
    let text = "expired on 2026-09-17; extend it with gpg --quick-set-expire and give it anew";
    assert_eq!(Problem::Expired(at).to_string(), text);
    // Kept in a record, it is read all the same: former certificates are such.
    let then = Certificate::choose(&gpg.export(&[&expired]), &FIRST, NOW - 80 * DAY).expect("then");
    assert_eq!(Certificate::from_bytes(&then.to_bytes()), Ok(then));

    let extended = gpg.init("Longer <longer@x.y>");
    gpg.now = NOW - 99 * DAY;
    gpg.ok(&["--quick-set-expire", &extended, "30d"], b"");
    assert_eq!(choose(&gpg.export(&[&extended])), Err(Problem::Expired(NOW - 69 * DAY)));
    gpg.now = NOW - 98 * DAY;
    gpg.ok(&["--quick-set-expire", &extended, "never"], b"");
    choose(&gpg.export(&[&extended])).expect("the later signature counts");

    let subkey = gpg.init("Sub <sub@x.y>");
    gpg.now = NOW - 97 * DAY;
    gpg.ok(&["--quick-set-expire", &subkey, "30d", "*"], b"");
    let refused = choose(&gpg.export(&[&subkey]));
    assert_eq!(refused, Err(Problem::EncryptionExpired(NOW - 67 * DAY)));

    gpg.now = NOW + 30 * DAY;
    let coming = gpg.init("Soon <soon@x.y>");
    let refused = choose(&gpg.export(&[&coming]));
    assert_eq!(refused, Err(Problem::NotYet(NOW + 30 * DAY)));
}

#[test]
fn what_was_revoked_is_refused() {
    let Some(gpg) = Gpg::new() else { return };
    let key = gpg.init("Gone <gone@x.y>");
    let before = gpg.export(&[&key]);
    choose(&before).expect("not yet");
    let file = gpg.folder().join(format!("openpgp-revocs.d/{key}.rev"));
    let revocation = fs::read_to_string(file).expect("gpg makes one");
    gpg.import(&revocation.replace(":-----BEGIN", "-----BEGIN"));
    assert_eq!(choose(&gpg.export(&[&key])), Err(Problem::Revoked));
    assert_eq!(choose(&before).map(drop), Ok(()), "who does not know it cannot tell");

    // A subkey that was revoked, and a newer one.
    let key = gpg.init("Sub <sub@x.y>");
    let old = choose(&gpg.export(&[&key])).expect("it is taken").recipients();
    let edits = b"key 1\nrevkey\ny\n0\n\ny\nsave\n";
    gpg.ok(&["--no-batch", "--command-fd", "0", "--edit-key", &key], edits);
    assert_eq!(choose(&gpg.export(&[&key])), Err(Problem::NoEncryptionKey));
    gpg.ok(&["--quick-add-key", &key, "cv25519", "encr", "never"], b"");
    let new = choose(&gpg.export(&[&key])).expect("it is taken").recipients();
    assert_eq!(new.len(), 1);
    assert_ne!(new, old);
}

#[test]
fn signatures_by_broken_hashes_are_refused() {
    let Some(mut gpg) = Gpg::new() else { return };
    let weak = ["--cert-digest-algo", "SHA1", "--allow-weak-digest-algos"];
    let rsa = gpg.make("Rsa <rsa@x.y>", "rsa2048", Some("rsa2048"), &weak);
    let old = gpg.export(&[&rsa]);
    assert_eq!(choose(&old), Err(Problem::WeakHash));
    let curve = gpg.make("Curve <curve@x.y>", "ed25519", Some("cv25519"), &weak);
    assert_eq!(choose(&gpg.export(&[&curve])), Err(Problem::WeakHash));
    // Signed anew it is good, without the old signatures.
    gpg.now += 1;
    let strong = ["--cert-digest-algo", "SHA512"];
    gpg.ok(&[&strong[..], &["--quick-set-expire", &rsa, "0"]].concat(), b"");
    gpg.ok(&[&strong[..], &["--quick-set-expire", &rsa, "0", "*"]].concat(), b"");
    let renewed = gpg.text(&["--armor", "--export-options", "export-minimal", "--export", &rsa]);
    choose(&renewed).expect("it is signed anew");
    // Who still has the old ones keeps them beside the new ones.
    let Some(other) = Gpg::new() else { return };
    other.import(&old);
    other.import(&renewed);
    let both = other.export(&[]);
    assert!(both.len() > renewed.len() + 100, "both are there");
    assert_eq!(choose(&both), Err(Problem::WeakHash));
}

#[test]
fn what_others_put_into_a_certificate_is_left_out() {
    let (Some(alice), Some(bob)) = (Gpg::new(), Gpg::new()) else { return };
    let key = alice.init("Alice <alice@x.y>");
    let plain = choose(&alice.export(&[])).expect("it is taken");
    // Bob certifies her.
    bob.init("Bob <bob@x.y>");
    bob.import(&alice.export(&[]));
    bob.ok(&["--quick-sign-key", &key], b"");
    let certified = bob.export(&[&key]);
    assert!(certified.len() > alice.export(&[]).len() + 100, "bob signed it");
    assert_eq!(choose(&certified).expect("it is taken"), plain);
    // A picture: the head of a JPEG does for gpg.
    let picture = alice.folder().join("me.jpg");
    fs::write(&picture, [&b"\xFF\xD8\xFF\xE0\0\x10JFIF\0"[..], &[7; 900]].concat())
        .expect("a file");
    let edits = format!("addphoto\n{}\ny\nsave\n", picture.display());
    alice.ok(
        &["--no-batch", "--command-fd", "0", "--photo-viewer", "true", "--edit-key", &key],
        edits.as_bytes(),
    );
    let pictured = alice.export(&[]);
    assert!(pictured.len() > certified.len() + 900, "it has a picture");
    assert_eq!(choose(&pictured).expect("it is taken"), plain);
}

#[test]
fn user_ids_of_its_own_are_kept_up_to_their_bound() {
    let Some(gpg) = Gpg::new() else { return };
    let key = gpg.init("One <one@x.y>");
    gpg.ok(&["--quick-add-uid", &key, "Two <two@x.y>"], b"");
    let two = gpg.export(&[]);
    let wish = Wish::Of { username: "two", name: "" };
    let chosen = Certificate::choose(&two, &wish, NOW).expect("it is taken");
    assert!(chosen.to_bytes().windows(11).any(|it| it == b"Two <two@x."));
    gpg.ok(&["--quick-revoke-uid", &key, "Two <two@x.y>"], b"");
    choose(&gpg.export(&[])).expect("the other is still good");
    let edits: String =
        (0..limits::USER_IDS_MAX).map(|n| format!("adduid\nName{n}\nn{n}@x.y\n\n")).collect();
    gpg.ok(
        &["--no-batch", "--command-fd", "0", "--edit-key", &key],
        format!("{edits}save\n").as_bytes(),
    );
    let refused = choose(&gpg.export(&[]));
    assert_eq!(refused, Err(Problem::TooMany { what: "user ids", max: limits::USER_IDS_MAX }));
}

#[test]
fn what_is_no_certificate_is_refused() {
    assert_eq!(choose(""), Err(Problem::NoKey));
    assert_eq!(choose("ssh-ed25519 AAAA"), Err(Problem::NoKey));
    let long = "x".repeat(limits::KEYRING_BYTES_MAX + 1);
    assert!(matches!(choose(&long), Err(Problem::TooLong { .. })));
    let Some(gpg) = Gpg::new() else { return };
    gpg.init("Alice <alice@x.y>");
    let secret = gpg.text(&["--armor", "--export-secret-keys"]);
    assert_eq!(choose(&secret), Err(Problem::SecretKey));
    let hidden = secret.replace("PRIVATE", "PUBLIC");
    assert_eq!(choose(&hidden), Err(Problem::SecretKey));
    let good = gpg.export(&[]);
    let cut: String = good.lines().take(8).map(|line| format!("{line}\n")).collect();
    assert_eq!(choose(&cut), Err(Problem::Damaged));
    choose(&good.replace('\n', "\r\n")).expect("line ends of the net are fine");
    let blank = good.replacen("\n\n", "\nComment: hand made\n\n", 1);
    choose(&blank).expect("headers are fine");
}

//! Sound input with some bytes changed: an answer comes, whatever it is.

use super::Seeded;
use crate::{
    armor::{self, Block},
    fuzzing,
    packets::{self, Lengths},
};

/// Changes a few bytes: flips, repeats, leaves out, puts in.
fn mutate(bytes: &mut Vec<u8>, random: &mut Seeded) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        let length = random.below(20).min(bytes.len() - at);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][random.below(6)],
            2 => drop(bytes.drain(at..at + length)),
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, part);
            }
            _ => bytes.insert(at, random.next().to_le_bytes()[0]),
        }
    }
}

/// How many of these many mutations were taken all the same: some are, or nothing was reached.
fn play(rounds: usize, sound: &[&[u8]], seed: u64, mut give: impl FnMut(&[u8]) -> bool) -> usize {
    for sound in sound {
        assert!(give(sound), "it is sound as it is");
    }
    let mut random = Seeded(seed);
    let mut taken = 0;
    for _ in 0..rounds {
        let mut bytes = sound[random.below(sound.len())].to_vec();
        mutate(&mut bytes, &mut random);
        taken += usize::from(give(&bytes));
    }
    taken
}

#[test]
fn mutated_certificates_do_no_harm() {
    let keyring = fuzzing::packets(fuzzing::KEYRING);
    let split = packets::split(&keyring, Lengths::Known, 99).expect("packets");
    let each: Vec<Vec<u8>> = split
        .chunk_by(|_, next| next.tag != packets::tag::KEY)
        .map(|packets| {
            let mut bytes = Vec::new();
            packets.iter().for_each(|it| packets::write(&mut bytes, it.tag, &it.body));
            bytes
        })
        .collect();
    assert_eq!(each.len(), 3, "RSA, NIST, and Ed25519");
    let hosted = fuzzing::reader().certificate().to_bytes();
    let sound: Vec<&[u8]> = each.iter().map(Vec::as_slice).chain([&hosted[..]]).collect();
    let taken = play(700, &sound, 1, fuzzing::certificate);
    assert!(taken > 20, "{taken} of 700 were taken");
    let secret = fuzzing::reader().to_bytes();
    play(100, &[&hosted], 2, fuzzing::certificate);
    let read = |bytes: &[u8]| crate::SecretCertificate::from_bytes(bytes).is_ok();
    play(200, &[&secret], 3, read);
}

#[test]
fn mutated_armor_does_no_harm() {
    let keys = |bytes: &[u8]| fuzzing::keyring(&String::from_utf8_lossy(bytes));
    play(150, &[fuzzing::KEYRING.as_bytes()], 4, keys);
    let sign = |bytes: &[u8]| fuzzing::signature(&String::from_utf8_lossy(bytes), b"a document\n");
    play(150, &[fuzzing::SIGNATURE.as_bytes()], 5, sign);
    let reader = fuzzing::reader();
    let mut random = Seeded(6);
    let sealed =
        reader.seal(&[reader.certificate()], b"text", super::NOW + super::DAY, &mut |bytes| {
            random.fill(bytes)
        });
    let sealed = sealed.expect("it is sealed");
    let open = |bytes: &[u8]| fuzzing::message(reader, &String::from_utf8_lossy(bytes));
    play(200, &[sealed.as_bytes()], 7, open);
}

#[test]
fn mutated_messages_do_no_harm() {
    let reader = fuzzing::reader();
    let mut random = Seeded(8);
    let mut fill = |bytes: &mut [u8]| random.fill(bytes);
    let sealed =
        reader.seal(&[reader.certificate()], &[b'x'; 700], super::NOW + super::DAY, &mut fill);
    let sealed = fuzzing::packets(&sealed.expect("it is sealed"));
    play(300, &[&sealed], 9, |bytes| fuzzing::sealed(reader, bytes));
    let of_gpg = fuzzing::packets(fuzzing::MESSAGE);
    let sees = |bytes: &[u8]| {
        let text = armor::write(Block::Message, bytes);
        crate::recipients_of(&text).is_ok_and(|found| !found.is_empty())
    };
    let taken = play(300, &[&of_gpg], 10, sees);
    assert!(taken > 20, "{taken} of 300 were messages");
}

#[test]
fn mutated_plain_texts_do_no_harm() {
    let reader = fuzzing::reader();
    let mut random = Seeded(11);
    let mut fill = |bytes: &mut [u8]| random.fill(bytes);
    let sealed =
        reader.seal(&[reader.certificate()], &[b'x'; 300], super::NOW + super::DAY, &mut fill);
    let inside = reader.decrypt(&sealed.expect("it is sealed")).expect("it is for them");
    // Compressed, hardly anything that is changed can be read: so also as it is.
    let signature = reader.sign_detached(b"text", super::NOW + super::DAY).expect("it signs");
    let signature = armor::read_one(&signature, Block::Signature).expect("it is one");
    let mut plain = signature;
    packets::write(&mut plain, packets::tag::LITERAL, b"b\0\0\0\0\0text");
    let taken = play(600, &[&inside, &plain], 12, |bytes| fuzzing::inside(reader, bytes));
    assert!(taken > 10, "{taken} of 600 were texts");
}

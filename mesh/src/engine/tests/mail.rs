//! Mail of accounts: records that all nodes have, and texts that those keep who need them, or have room.

use std::sync::Arc;

use super::{
    accounts::{account, claim, gone, profile, write},
    world::{STEP, World},
    *,
};
use crate::{
    api::account::{AccountRefused, RecordWrite, RecordWrites},
    engine::records::Records,
    limits::{
        CONTENT_ASKED_AGAIN, CONTENT_WAIT_DOUBLES, CONTENTS_ASKED_MAX, EXPIRY_EVERY,
        FINDER_LETTER_BYTES_MAX,
    },
    name::{account::Label, key::KeySecret},
    records::finder::{Correspondence, Envelope, Form, MAILS, Mail, PRESENTED},
    wire::record::{Record, Space, Stamp},
};

const DAY: Duration = Duration::from_hours(24);

fn between(world: &World, own: &KeySecret, other: &KeySecret) -> Correspondence {
    let mesh = world.nodes[0].secret.mesh_id();
    let own = own.mailbox().expect("it is long enough");
    Correspondence::of(mesh, own, &other.halves().mailbox).expect("no common point")
}

fn mail(world: &World, from: &KeySecret, to: &KeySecret, text: &str) -> RecordWrite {
    let both = between(world, from, to);
    let (ends, nonce) = ((from.print(), to.print()), sha256_16(text));
    let envelope = Envelope::new(text.chars().take(9).collect(), Form::Pgp, ([1; 20], [2; 20]));
    let mail = both.seal(ends, nonce, &envelope);
    let id = mail.id(from.print());
    let apart = Some(both.seal_text(ends, id, text));
    RecordWrite { apart, ..RecordWrite::new(MAILS.number, id, Some(mail.encode())) }
}

fn sha256_16(text: &str) -> [u8; 16] {
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&crate::name::id::sha256(&[text.as_bytes()])[..16]);
    nonce
}

fn present(account: &Arc<KeySecret>) -> Command {
    Command::PresentAccount(Arc::clone(account))
}

impl World {
    /// Two accounts that all nodes know.
    fn with_accounts(&mut self) -> [Arc<KeySecret>; 2] {
        self.link();
        let both = [account(1), account(2)];
        for (n, account) in (1..).zip(&both) {
            self.ask(0, claim(account, &[Label([n; 16])])).expect("it may");
            self.ask(0, write(account, vec![profile(account)])).expect("it may");
        }
        both
    }

    /// Much time passes for all nodes alike.
    fn let_pass(&mut self, time: Duration) {
        for node in &mut self.nodes {
            node.now.mono += time;
            node.now.wall_ms += u64::try_from(time.as_millis()).expect("it fits");
            node.now.wall_us += u64::try_from(time.as_micros()).expect("it fits");
        }
        self.pass(STEP);
    }

    fn texts(&self, n: usize) -> usize {
        self.nodes[n].contents().len()
    }

    fn copied(&self, n: usize) -> bool {
        self.nodes[n].rows.iter().any(|row| matches!(row, Change::Copied { .. }))
    }
}

impl Node {
    fn mails(&self) -> Vec<Record> {
        let all = self.records().into_iter();
        all.filter(|record| record.collection == MAILS.number).collect()
    }
}

#[test]
fn mail_is_durable_when_it_is_answered_and_its_node_learns_that_others_have_it() {
    let mut world = World::new(3);
    let [ann, bob] = world.with_accounts();
    let text = "a text for two".repeat(20_000);
    let mail = mail(&world, &ann, &bob, &text);
    let call = world.begin(0, write(&ann, vec![mail.clone()]));
    assert!(matches!(world.reply(0, call), Some(Ok(Outcome::Stamps(_)))));
    assert_eq!((world.texts(0), world.copied(0)), (1, false), "nobody else has it");
    world.carry();
    world.pass(STEP);
    assert!((0..3).all(|n| world.texts(n) == 1 && world.copied(n)), "they say so");
    let record = world.nodes[2].mails().remove(0);
    let both = between(&world, &bob, &ann);
    let read = Mail::decode(record.content().expect("it is no deletion")).expect("it is one");
    let subject = both.open(ann.print(), &read).expect("it is for him").subject;
    assert_eq!(subject, "a text fo");
    let kept = world.nodes[2].contents().into_values().next().expect("it is there");
    let opened = both.open_text((ann.print(), bob.print()), record.id, &kept);
    assert_eq!(opened.as_deref(), Some(&*text));
    let is_told = |(_, bytes): &(usize, Vec<u8>)| {
        bytes.windows(9).any(|part| part == b"a text fo" || part == b"for twoa ")
    };
    assert!(!world.told_to.iter().any(is_told), "nobody who carries it reads it");
    // A restart forgets none of it, and asks for nothing.
    world.restart_reading(1);
    world.told_to.clear();
    world.pass(CONTENT_ASKED_AGAIN * 3);
    let wants = |(_, bytes): &(usize, Vec<u8>)| {
        matches!(Message::decode(bytes), Ok(Message::WantContents(_)))
    };
    assert!(!world.told_to.iter().any(wants) && world.texts(1) == 1);
}

#[test]
fn a_node_that_carries_nothing_has_the_texts_of_accounts_that_were_shown_to_it() {
    let mut world = World::new(2);
    world.nodes[1].engine.records = Records::new(0);
    world.nodes[1].engine.known.config.carry = 0;
    let [ann, bob] = world.with_accounts();
    let mail = mail(&world, &ann, &bob, "hello");
    world.ask(0, write(&ann, vec![mail])).expect("it may");
    world.pass(CONTENT_ASKED_AGAIN * 2);
    assert_eq!((world.nodes[1].mails().len(), world.texts(1)), (1, 0));
    assert!(!world.copied(0), "nobody else has it");
    world.ask(1, present(&bob)).expect("it may");
    world.pass(STEP * 3);
    assert_eq!(world.texts(1), 1);
    assert!(world.copied(0) && world.copied(1));
    let presented = |node: &Node| {
        node.records().iter().filter(|record| record.collection == PRESENTED.number).count()
    };
    assert_eq!((presented(&world.nodes[0]), presented(&world.nodes[1])), (1, 1), "each its own");
    // Once a day is enough.
    let rows = world.nodes[1].rows.len();
    world.ask(1, present(&bob)).expect("it may");
    assert_eq!(world.nodes[1].rows.len(), rows);
    // Who was not seen for long has his texts there no longer.
    for _ in 0..32 {
        world.let_pass(DAY);
    }
    world.pass(EXPIRY_EVERY * 2);
    assert_eq!((presented(&world.nodes[1]), world.texts(1)), (0, 0));
    assert_eq!(world.texts(0), 1, "there is room at the other");
}

#[test]
fn a_node_that_carries_nothing_keeps_what_its_accounts_write() {
    let mut world = World::new(1);
    world.nodes[0].engine.records = Records::new(0);
    world.nodes[0].engine.known.config.carry = 0;
    let [ann, bob] = world.with_accounts();
    let mail = mail(&world, &ann, &bob, "hello");
    world.ask(0, write(&ann, vec![mail])).expect("it may");
    assert_eq!(world.texts(0), 1);
    world.restart_reading(0);
    assert_eq!(world.texts(0), 1);
}

#[test]
fn mail_goes_with_either_of_its_accounts() {
    for ends in [0, 1] {
        let mut world = World::new(2);
        let both = world.with_accounts();
        let mail = mail(&world, &both[0], &both[1], "hello");
        world.ask(0, write(&both[0], vec![mail])).expect("it may");
        world.ask(1, present(&both[1])).expect("it may");
        world.pass(STEP * 3);
        let end = gone(&profile(&both[ends]));
        world.ask(1, write(&both[ends], vec![end])).expect("it may");
        world.pass(STEP * 3);
        for n in [0, 1] {
            assert_eq!((world.nodes[n].mails().len(), world.texts(n)), (0, 0));
            let presented = world.nodes[n].records();
            let of_ended = presented.iter().filter(|record| {
                record.collection == PRESENTED.number && record.owner() == both[ends].print()
            });
            assert_eq!(of_ended.count(), 0, "nor that it was here");
        }
    }
}

#[test]
fn mail_whose_time_is_over_goes_and_does_not_come_back() {
    let mut world = World::new(2);
    let [ann, bob] = world.with_accounts();
    let mail = mail(&world, &ann, &bob, "hello");
    world.ask(0, write(&ann, vec![mail])).expect("it may");
    world.pass(STEP * 3);
    let record = world.nodes[1].mails().remove(0);
    for _ in 0..89 {
        world.let_pass(DAY);
    }
    assert_eq!((world.nodes[0].mails().len(), world.texts(0)), (1, 1));
    for _ in 0..2 {
        world.let_pass(DAY);
    }
    world.pass(EXPIRY_EVERY * 2);
    for n in [0, 1] {
        assert_eq!((world.nodes[n].mails().len(), world.texts(n)), (0, 0));
    }
    world.nodes[0].hear_record(record);
    assert_eq!(world.nodes[0].mails(), []);
}

#[test]
fn a_clock_that_jumps_drops_no_mail() {
    let mut world = World::new(1);
    let [ann, bob] = world.with_accounts();
    let mail = mail(&world, &ann, &bob, "hello");
    world.ask(0, write(&ann, vec![mail])).expect("it may");
    let node = &mut world.nodes[0];
    node.now.wall_us += u64::try_from((DAY * 200).as_micros()).expect("it fits");
    node.now.wall_ms += u64::try_from((DAY * 200).as_millis()).expect("it fits");
    node.now.mono += EXPIRY_EVERY * 2;
    node.give(Input::Timeout);
    assert_eq!((world.nodes[0].mails().len(), world.texts(0)), (1, 1));
}

#[test]
fn mail_is_refused_by_form_and_bound() {
    let mut world = World::new(1);
    let [ann, bob] = world.with_accounts();
    let good = mail(&world, &ann, &bob, "hello");
    let large = RecordWrite { apart: Some(vec![0; FINDER_LETTER_BYTES_MAX + 100]), ..good.clone() };
    let of_another = mail(&world, &bob, &ann, "hello");
    let both = vec![good.clone(), RecordWrite::new(PRESENTED.number, good.id, Some(Vec::new()))];
    let deleted = RecordWrite { apart: None, ..gone(&good) };
    for wrong in [vec![large], vec![of_another], both, vec![deleted]] {
        let refused = world.ask(0, write(&ann, wrong)).err();
        assert_eq!(refused, Some(Refused::Account(AccountRefused::Form)));
    }
    // Stamps are above that of another record, if they are to be.
    let above = Stamp(u64::MAX >> 2);
    let writes = RecordWrites { account: Arc::clone(&ann), writes: vec![good.clone()], above };
    match world.ask(0, Command::WriteRecords(Box::new(writes))) {
        Ok(Outcome::Stamps(stamps)) => assert!(stamps[0] > above),
        other => panic!("{other:?}"),
    }
    let of_one = RecordWrite { body: None, ..good };
    let refused = world.ask(0, write(&ann, vec![of_one])).err();
    assert_eq!(refused, Some(Refused::Account(AccountRefused::Form)), "no single mail is deleted");
    let all = world.nodes[0].records();
    assert!(all.iter().all(|record| record.space != Space::Node || record.owner() == ann.print()));
}

#[test]
fn texts_that_nobody_has_delay_no_others() {
    let mut world = World::new(2);
    let [ann, bob] = world.with_accounts();
    // As of a member that signs mail without texts.
    let empty: Vec<_> =
        (0..CONTENTS_ASKED_MAX * 2).map(|n| mail(&world, &ann, &bob, &n.to_string())).collect();
    let last = empty.iter().map(|mail| mail.id).max().expect("there are some");
    for mail in empty {
        world.begin(0, write(&ann, vec![mail]));
    }
    world.nodes[0].rows.retain(|row| !matches!(row, Change::Content { .. }));
    world.restart_reading(0);
    world.pass(CONTENT_ASKED_AGAIN * 10);
    let lacked = |world: &World| world.nodes[1].engine.records.status().missing;
    assert_eq!((world.texts(1), lacked(&world)), (0, CONTENTS_ASKED_MAX * 2));
    // All of them are due, and all stand before this one by name.
    world.nodes[1].now.mono += CONTENT_ASKED_AGAIN * (2 << CONTENT_WAIT_DOUBLES);
    let texts = (0..).map(|n| format!("a text, and the {n}. of them"));
    let honest = texts
        .map(|text| mail(&world, &bob, &ann, &text))
        .find(|mail| mail.id > last)
        .expect("there is one");
    world.told_to.clear();
    let id = honest.id;
    world.begin(0, write(&bob, vec![honest]));
    world.carry();
    let asked = world.told_to.iter().find_map(|(_, bytes)| match Message::decode(bytes) {
        Ok(Message::WantContents(wanted)) => Some(wanted.keys),
        _ => None,
    });
    assert!(asked.expect("it asks").iter().any(|key| key.id == id), "with the first question");
    assert_eq!((world.texts(1), lacked(&world)), (1, CONTENTS_ASKED_MAX * 2));
}

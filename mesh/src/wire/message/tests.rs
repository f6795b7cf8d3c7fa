use super::*;
use crate::limits::BODY_BYTES_MAX;
use crate::wire::{
    entry::Facts,
    run::{Carried, RunEntry},
};

/// As a later version may send it: a variant that this one does not know.
fn later(variant: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = minicbor::Encoder::new(&mut bytes);
    let _ = encoder.array(2).and_then(|encoder| encoder.u64(variant));
    let _ = encoder.array(2).and_then(|e| e.str("what")).and_then(|e| e.u64(7));
    bytes
}

#[test]
fn what_a_later_version_says_is_no_fault() {
    let known = Message::Probe { node: NodeId([3; 32]) }.encode();
    assert!(Message::decode(&known).is_ok());
    for variant in [200, 7_000] {
        assert!(matches!(Message::decode(&later(variant)), Err(BadMessage::Newer)), "{variant}");
    }
    // Half of one is.
    let cut = &known[..known.len() - 1];
    assert!(matches!(Message::decode(cut), Err(BadMessage::Form(_))));
    assert!(matches!(Message::decode(b"hello"), Err(BadMessage::Form(_))));
}

#[test]
fn a_proof_of_a_fork_is_of_whoever_signed_both_halves() {
    let (mesh, author) = (MeshId([1; 16]), Identity::from_seed(&[5; 32]));
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let facts = Facts { clock: 1, wall_ms: 0, kind: 1, visible: true };
    let half = |body: &[u8]| {
        let entries = vec![RunEntry { facts, body: Carried::Here(body.to_vec().into()) }];
        let (room, backlink, seal) = (RoomId([2; 16]), [0; 32], [0; 64]);
        Run { room, log, first: 1, backlink, entries, seal }.seal(mesh, &author)
    };
    let (certificate, run) = (half(b"one").certificate(), half(b"another").run().clone());
    let verify = |change: &dyn Fn(&mut Certificate, &mut Run)| {
        let (mut certificate, mut run) = (certificate, run.clone());
        change(&mut certificate, &mut run);
        Message::Fork(certificate, Box::new(run)).verify(mesh).map(drop)
    };
    assert!(verify(&|_, _| {}).is_ok());
    let seal = verify(&|certificate, _| certificate.seal[0] ^= 1);
    assert!(matches!(seal, Err(BadMessage::Signature)), "{seal:?}");
    let hash = verify(&|certificate, _| certificate.hash[0] ^= 1);
    assert!(matches!(hash, Err(BadMessage::Signature)), "{hash:?}");
    let other = verify(&|_, run| run.seal[0] ^= 1);
    assert!(matches!(other, Err(BadMessage::Run(_))), "{other:?}");
}

#[test]
fn a_message_that_a_later_version_made_longer_is_read() {
    let known = Message::Probe { node: NodeId([3; 32]) }.encode();
    // [variant, [node]] becomes [variant, [node, "more"]].
    assert_eq!(known[2], 0x81, "an array of one field");
    let mut longer = known.clone();
    longer[2] = 0x82;
    longer.extend([0x64, b'm', b'o', b'r', b'e']);
    let read = Message::decode(&longer).expect("fields after those known are skipped");
    assert_eq!(read.encode(), known);
}

#[test]
fn that_a_node_lives_it_need_not_sign_where_it_is_certain_who_says_it() {
    let mesh = MeshId([1; 16]);
    let own = Identity::from_seed(&[3; 32]);
    let (node, boot, tick) = (own.node_id(), 1, 1);
    let value = Beacon {
        node,
        boot,
        tick,
        roster: 0,
        digest: Digest::default(),
        records: [0; 16],
        wall_ms: 0,
    };
    let signed = Message::Beacon(Signed::new(mesh, &own, value));
    let bare = Message::Beacon(Signed { value, signature: [0; 64] });
    let is_taken = |message: &Message<Run>, from: NodeId| {
        let read = Message::decode(&message.encode()).expect("it can be read");
        read.verify_from(from, mesh).is_ok()
    };
    let other = NodeId([9; 32]);
    assert!(is_taken(&bare, node) && is_taken(&signed, node) && is_taken(&signed, other));
    assert!(!is_taken(&bare, other), "whoever passes it on shows that it is signed");
    let what = crate::wire::roster::What::Whole { version: 1, changes: Vec::new() };
    let value = RosterNews { node, boot, what };
    let bare = Message::Roster(Box::new(Signed { value, signature: [0; 64] }));
    assert!(!is_taken(&bare, node), "anything else is signed in any case");
}

#[test]
fn nothing_longer_than_a_frame_or_than_a_body_may_be_is_read() {
    let long = vec![0; FRAME_BYTES_MAX + 1];
    assert!(matches!(Message::decode(&long), Err(BadMessage::Bytes(_))));
    assert!(matches!(Message::decode(&long[1..]), Err(BadMessage::Form(_))), "it is looked at");
    let log = LogId { author: NodeId([3; 32]), incarnation: 0 };
    let with = |len: usize| {
        let bodies = vec![ApartBody { log, seq: 1, body: vec![0; len].into() }];
        let room = RoomId([1; 16]);
        let message: Message<Run> = Message::Spans { room, runs: Vec::new(), bodies, last: true };
        Message::decode(&message.encode()).map(drop)
    };
    assert!(with(9_000).is_ok() && with(BODY_BYTES_MAX).is_ok());
    assert!(matches!(with(BODY_BYTES_MAX + 1), Err(BadMessage::Length(1))));
}

#[test]
fn a_signature_is_over_what_is_said_in_one_mesh() {
    let (mesh, own) = (MeshId([1; 16]), Identity::from_seed(&[3; 32]));
    let value = Beacon {
        node: own.node_id(),
        boot: 1,
        tick: 1,
        roster: 0,
        digest: Digest::default(),
        records: [0; 16],
        wall_ms: 0,
    };
    let signed = Signed::new(mesh, &own, value);
    let holds = |value, mesh| {
        let message: Message<Run> = Message::Beacon(Signed { value, signature: signed.signature });
        message.verify(mesh).is_ok()
    };
    assert!(holds(value, mesh));
    assert!(!holds(Beacon { tick: 2, ..value }, mesh));
    assert!(!holds(value, MeshId([2; 16])));
}

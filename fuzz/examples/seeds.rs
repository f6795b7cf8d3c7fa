//! Writes what fuzzing begins with, into `corpus/`: sound lines, messages and entries of every kind.

use std::{error::Error, fs, path::Path};

use mesh::{Identity, MeshSecret, name::{digest::Digest, key::KeySecret, id::{EntryRef, KeyPrint, LogId, MeshId, MessageId, RoomId}, number::{Era, Number}}, wire::{acts::{BallotCast, Candidate, ElectionAct, ElectionStarted, KeyAct, KeyMinted, KeyTerms, Named, TaskAct, TaskClaimed, TaskAssigned, TaskStatus, TaskUpdated, Tier, VoteAct, VoteClosed, VoteOpened}, entry::{AgentClaimed, Body, Decision, EraClaimed, HandedOver, Items, NodeAdmitted, Ordered, Reached, RoomCreated, Said}, message::{Head, Message, Span}, signatures::{KeySignature, SignedLog}}};

const LINES: [&str; 9] = [
    r#"{"id":"1","type":"register","payload":{"key":"k","name":"n","agent_id":"a","reconnect":true,"capabilities":["x"]}}"#,
    r#"{"id":"2","type":"send_message","payload":{"room_id":"lobby","content":"x","reply_to":"m","mentions":["a"],"metadata":{"k":[1]}}}"#,
    r#"{"id":"3","type":"get_history","payload":{"room_id":"lobby","limit":5,"since_seq":1}}"#,
    r#"{"id":"4","type":"create_vote","payload":{"room_id":"lobby","title":"t","options":["a","b"],"duration_secs":9}}"#,
    r#"{"id":"5","type":"update_task","payload":{"task_id":"t","status":"in_progress","assignee":"a","if_assignee":null}}"#,
    r#"{"id":"6","type":"subscribe","payload":{"room_id":"r","url":"http://h/p","secret":"s","kinds":["a"],"since_seq":"tip"}}"#,
    r#"{"id":"7","type":"presence","payload":{"status":"working","detail":"d","progress":5}}"#,
    r#"{"id":"8","reply_to":"2","type":"ok","payload":{"message_id":"m","seq":4}}"#,
    r#"{"id":"9","type":"message_received","payload":{"message_id":"m","room_id":"r","agent_id":"a","agent_name":"n","content":"c","timestamp":"2026-01-01T00:00:00Z","seq":3}}"#,
];

/// What three clients say: see the target `session`.
const SESSION: &str = r#"0{"id":"1","type":"register","payload":{"key":"the own key of the node, in tests","name":"n","agent_id":"x","reconnect":true}}
0{"id":"2","type":"join_room","payload":{"room_id":"lobby"}}
a{"id":"3","type":"send_message","payload":{"room_id":"lobby","content":"hello","mentions":["x"],"metadata":{"k":1}}}
b{"id":"4","type":"create_room","payload":{"name":"r","public":true,"ephemeral":false}}
b{"id":"5","type":"get_history","payload":{"room_id":"lobby","limit":5,"since_seq":0}}
+
c{"id":"6","type":"create_vote","payload":{"room_id":"lobby","title":"t","options":["a","b"],"duration_secs":1}}
a{"id":"7","type":"assign_task","payload":{"room_id":"lobby","title":"t","assignee":"a"}}
a{"id":"8","type":"elect_leader","payload":{"room_id":"lobby"}}
-
1{"id":"9","type":"list_agents","payload":{"room_id":"lobby"}}
2{"type":"ping"}
+
b{"id":"10","type":"leave_room","payload":{"room_id":"lobby"}}"#;

fn said() -> Said {
    Said {
        agent: "a".into(),
        name: "n".to_owned(),
        content: "c".to_owned(),
        reply_to: None,
        mentions: vec!["b".into()],
        metadata: Some("{}".to_owned()),
        dedup: None,
        turn: Some(1),
        id: Some(MessageId([7; 16])),
        key: None,
        conversation: None,
    }
}

fn mesh_id() -> MeshId {
    MeshSecret::new([7; 32], Identity::from_seed(&[1; 32]).node_id()).mesh_id()
}

/// The first author's log in the lobby, as the target `entries` has it.
fn bodies() -> Vec<(u8, Body)> {
    let mesh = mesh_id();
    let log = LogId { author: Identity::from_seed(&[2; 32]).node_id(), incarnation: 0 };
    let place = |seq| EntryRef { log, seq };
    let named = || Named { agent: "a".into(), name: "n".to_owned() };
    let update = TaskUpdated { over: vec![], status: Some(TaskStatus::Completed), assignee: Some(Some("a".into())), note: Some("n".to_owned()), ..TaskUpdated::of(place(9), "a".into()) };
    let era = Era::new(1, 5).unwrap_or(Era::HOME);
    let cut = vec![Reached { era: Era::HOME, n: 0 }];
    let created = RoomCreated {
        room: RoomId([1; 16]),
        name: "r".to_owned(),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KeyPrint([1; 16]),
        created_by: "a".into(),
        imported: None,
    };
    let key = KeySecret::of("a key of an example, of 32 characters");
    let minted = KeyMinted::sign(&key, &SignedLog { mesh, node: log.author }, KeyTerms::of(Tier::Low)).expect("it is long enough");
    let claim = KeySignature::of_claim(&key, mesh, "a").expect("it is long enough");
    let opened = VoteOpened {
        title: "t".to_owned(),
        description: None,
        options: vec!["x".to_owned(), "y".to_owned()],
        eligible: vec![named()],
        created_by: "a".into(),
        closes_ms: None,
    };
    let started = ElectionStarted {
        term: 1,
        candidates: vec![Candidate { agent: "a".into(), name: "n".to_owned(), node: log.author }],
        started_by: "a".into(),
    };
    let assigned = TaskAssigned { id: Some(MessageId([0x44; 16])), ..TaskAssigned::of("t", "a".into()) };
    let commitment = [0; 32];
    let items = vec![Items { log: 0, from: 1, count: 1 }];
    vec![
        (0, Body::Chat(said())),
        (0, Body::Thinking(said())),
        (0, Body::Vote(VoteAct::Opened(opened))),
        (0, Body::Vote(VoteAct::Cast(BallotCast { vote: place(3), agent: "a".into(), commitment, key: None }))),
        (0, Body::Vote(VoteAct::Closed(VoteClosed { vote: place(3), logs: vec![log], ballots: vec![(0, 4)] }))),
        (0, Body::Election(ElectionAct::Started(started))),
        (0, Body::Election(ElectionAct::Committed { election: place(6), commitment })),
        (0, Body::Election(ElectionAct::Closed { election: place(6), commitments: vec![place(7)], declined: vec![] })),
        (0, Body::Task(TaskAct::Assigned(assigned))),
        (0, Body::Task(TaskAct::Updated(update.clone()))),
        (0, Body::Task(TaskAct::Claimed(TaskClaimed { update, if_assignee: None, era: Era::HOME, key: None, if_status: None }))),
        (0, Body::Decision(Decision { said: said(), election: place(6) })),
        (3, Body::NodeAdmitted(NodeAdmitted { lane: 5, name: "n".to_owned() })),
        (0, Body::EraClaimed(EraClaimed { era, after: Era::HOME, cut, seen: Vec::new() })),
        (0, Body::Ordered(Ordered { era, first: 1, logs: vec![log], items, by: None })),
        (0, Body::HandedOver(HandedOver { era, next: 2, to: log, by: None })),
        (3, Body::RoomCreated(created)),
        (3, Body::AgentClaimed(AgentClaimed { agent: "a".into(), by: Some(claim) })),
        (3, Body::Key(KeyAct::Minted(minted))),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = |name: &str| -> std::io::Result<_> {
        let folder = corpus.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    for (i, line) in LINES.iter().enumerate() {
        fs::write(folder("request")?.join(i.to_string()), line)?;
        fs::write(folder("server_frame")?.join(i.to_string()), line)?;
    }
    let mut all = Vec::new();
    for (i, (whose, body)) in bodies().into_iter().enumerate() {
        let bytes = body.encode();
        let len = u16::try_from(bytes.len())?.to_be_bytes();
        let entry = [&[whose, body.kind(), 1, len[0], len[1]], &bytes[..]].concat();
        fs::write(folder("entries")?.join(i.to_string()), &entry)?;
        all.extend(entry);
    }
    fs::write(folder("entries")?.join("all"), all)?;
    let mesh = mesh_id();
    let log = LogId { author: Identity::from_seed(&[2; 32]).node_id(), incarnation: 0 };
    let room = RoomId::lobby(mesh);
    let span = Span { log, after: 1, upto: 2 };
    let messages: [Message; 5] = [
        Message::Have { room, heads: vec![Head { log, seq: 1 }], answer: true },
        Message::Want { room, spans: vec![span] },
        Message::Ask { room, era: Era::HOME, tip: Number(1), spans: vec![span] },
        Message::Buckets(vec![Digest::default(); 64]),
        Message::Probe { node: log.author },
    ];
    for (i, message) in messages.into_iter().enumerate() {
        fs::write(folder("message")?.join(i.to_string()), message.encode())?;
    }
    fs::write(folder("session")?.join("all"), SESSION)?;
    // Frames: a length, a tag, a payload. An announcement: a node, one address.
    let announcement = [&[7; 32][..], &[1, 10], b"10.0.0.1:7"].concat();
    let frame = |tag: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len() + 1).unwrap_or(u32::MAX).to_be_bytes();
        [&length[..], &[tag], payload].concat()
    };
    let frames = [frame(0, b"one"), frame(1, &announcement), frame(0, b"")].concat();
    fs::write(folder("frames")?.join("all"), frames)?;
    // What a ticket says, and an address.
    let said = [&[1, 1][..], &[7; 32], &[8; 32], &[1, 10], b"10.0.0.1:7"].concat();
    fs::write(folder("ticket")?.join("ticket"), said)?;
    let address = format!("{}@host.example:7", "01".repeat(32));
    fs::write(folder("ticket")?.join("address"), address)?;
    // Rows: see the target. An entry, its log, its number, and what there is of it elsewhere.
    let body = Body::Chat(self::said()).encode();
    let rows: [(u8, Vec<u8>); 5] =
        [(2, body), (1, vec![0x80]), (4, vec![0, 0, 0, 0, 0, 0, 0, 1]), (5, vec![1, 1]), (11, vec![1])];
    let rows = rows.into_iter().flat_map(|(table, value)| {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[table, 0, 0, 1][..], &length, &value].concat()
    });
    fs::write(folder("rows")?.join("all"), rows.collect::<Vec<u8>>())?;
    for (target, name, sound) in clawfinder::fuzzing::seeds() {
        fs::write(folder(target)?.join(name), sound)?;
    }
    for (target, name, how, sound) in openpgp::fuzzing::seeds() {
        fs::write(folder(target)?.join(name), [&[how], &sound[..]].concat())?;
    }
    Ok(())
}

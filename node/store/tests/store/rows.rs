//! Rows to write, with as little said as possible.

use std::sync::Arc;

use mesh::{
    api::batch::{Change, EraRecord, Fate, LogRecord, NodeRecord, RoomRecord},
    name::{
        id::{LocalRef, LogId, MeshId, NodeId, RoomId},
        number::{Era, Number},
    },
    wire::entry::{Facts, Reached, Said, Stored},
};

pub(crate) const MESH: MeshId = MeshId([1; 16]);
pub(crate) const ROOM: RoomId = RoomId([2; 16]);
pub(crate) const ME: NodeId = NodeId([3; 32]);

pub(crate) fn log_id(author: u8) -> LogId {
    LogId { author: NodeId([author; 32]), incarnation: 0 }
}

pub(crate) fn at(log: u32, seq: u64) -> LocalRef {
    LocalRef { log, seq }
}

pub(crate) fn room_record() -> RoomRecord {
    RoomRecord::new(MESH, log_id(3))
}

pub(crate) fn room(room: RoomId) -> Change {
    Change::Room { room, record: room_record() }
}

pub(crate) fn tip(room: RoomId, tip: Number) -> Change {
    Change::Room { room, record: RoomRecord { tip, ..room_record() } }
}

pub(crate) fn ephemeral(room: RoomId) -> Change {
    Change::Room { room, record: RoomRecord { ephemeral: true, ..room_record() } }
}

pub(crate) fn node(boot: u64) -> NodeRecord {
    NodeRecord { boot, clean: false, ..NodeRecord::new(MESH) }
}

/// Log `log` of author `log + 3`.
pub(crate) fn log(room: RoomId, log: u32, head: u64) -> Change {
    log_settled(room, log, head, 0)
}

pub(crate) fn log_settled(room: RoomId, log: u32, head: u64, settled: u64) -> Change {
    let id = log_id(u8::try_from(log).unwrap() + 3);
    let record =
        LogRecord { id, head, hash: [0; 32], clock: head, settled, fork: None, seal: [0; 64] };
    Change::Log { room, log, record }
}

pub(crate) fn said(content: &str) -> Said {
    Said {
        agent: Arc::from("agent"),
        name: "Agent".to_owned(),
        content: content.to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        turn: None,
        id: None,
        key: None,
        conversation: None,
    }
}

/// A chat message that is a run of its own, written at `seq` × 1,000 ms.
pub(crate) fn stored(seq: u64, content: &str) -> Stored {
    Stored {
        facts: Facts { clock: seq, wall_ms: seq * 1_000, kind: 1, visible: true },
        body: minicbor::to_vec(said(content)).unwrap().into(),
        backlink: Some([0; 32]),
        seal: Some([7; 64]),
        gone: None,
    }
}

/// An act that is a run of its own.
pub(crate) fn act(seq: u64) -> Stored {
    let mut act = stored(seq, "");
    (act.facts.kind, act.facts.visible) = (48, false);
    act
}

pub(crate) fn entry(room: RoomId, at: LocalRef, entry: Stored) -> Change {
    Change::Entry { room, at, entry: Arc::new(entry) }
}

pub(crate) fn number(room: RoomId, number: Number, at: LocalRef, fate: Fate) -> Change {
    Change::Number { room, number, at, fate }
}

pub(crate) fn era(room: RoomId, era: Era, known: u64, done: u64, cut: &[(Era, u64)]) -> Change {
    let cut = cut.iter().map(|&(era, n)| Reached { era, n }).collect();
    let record = EraRecord { known, done, ..EraRecord::new(log_id(3), cut) };
    Change::Era { room, era, record }
}

/// Entry `seq` of log 0, delivered under the number of the same value: what a quiet room looks
/// like.
pub(crate) fn message(room: RoomId, seq: u64) -> Vec<Change> {
    vec![
        tip(room, Number(seq)),
        log_settled(room, 0, seq, seq),
        entry(room, at(0, seq), stored(seq, &format!("message {seq}"))),
        era(room, Era::HOME, seq, seq, &[]),
        number(room, Number(seq), at(0, seq), Fate::Delivered),
    ]
}

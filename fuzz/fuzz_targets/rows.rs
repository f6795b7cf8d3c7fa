//! A store whose rows hold any bytes: it is opened, summed up, checked and read, or names its fault.
//!
//! The bytes are a list of rows: table, room, log, seq, length (two bytes), value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mesh::{
    Identity, MeshSecret,
    name::{
        id::{LogId, RoomId},
        number::Number,
    },
    wire::message::{Head, Span},
};
use redb::{Database, TableDefinition};
use store::{
    Store,
    testing::{CrashingBackend, Unsynced},
};

type Place = (u32, u32, u64);

const ROOM_IDS: TableDefinition<'_, &[u8; 16], u32> = TableDefinition::new("room_ids/1");
const ROOMS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rooms/1");
const LOGS: TableDefinition<'_, (u32, u32), &[u8]> = TableDefinition::new("logs/1");
const ENTRIES: TableDefinition<'_, Place, &[u8]> = TableDefinition::new("entries/1");
const ERAS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("eras/1");
const NUMBERS: TableDefinition<'_, (u32, u64), (u32, u64, u8)> = TableDefinition::new("numbers/1");
const PLACES: TableDefinition<'_, Place, &[u8]> = TableDefinition::new("places/1");
const FORETOLD: TableDefinition<'_, Place, (u64, u64)> = TableDefinition::new("foretold/1");
const EVIDENCE: TableDefinition<'_, &[u8; 56], &[u8]> = TableDefinition::new("evidence/1");
const NODE: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("node/1");
const ACTS: TableDefinition<'_, Place, ()> = TableDefinition::new("acts/1");
const NOTES: TableDefinition<'_, Place, &[u8]> = TableDefinition::new("notes/1");
const PRUNED: TableDefinition<'_, u32, u64> = TableDefinition::new("pruned/1");

fn write(disk: &CrashingBackend, mut rest: &[u8]) -> Result<(), redb::Error> {
    let db = Database::builder().create_with_backend(disk.clone())?;
    let write = db.begin_write()?;
    while let [table, room, log, seq, high, low, more @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (value, after) = more.split_at(len);
        rest = after;
        let number = value.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (room, log) = (u32::from(*room), u32::from(*log));
        // Small ones, and those near the ends of what there is.
        let seq = if *seq < 250 { u64::from(*seq) } else { u64::MAX >> (*seq - 250) };
        let place = (room, log, seq);
        match table % 12 {
            0 => drop(write.open_table(ROOMS)?.insert(room, value)?),
            1 => drop(write.open_table(LOGS)?.insert((room, log), value)?),
            2 => drop(write.open_table(ENTRIES)?.insert(place, value)?),
            3 => drop(write.open_table(ERAS)?.insert((room, seq), value)?),
            4 => {
                let value = (log, number, value.last().copied().unwrap_or_default());
                drop(write.open_table(NUMBERS)?.insert((room, seq), value)?);
            }
            5 => drop(write.open_table(PLACES)?.insert(place, value)?),
            6 => drop(write.open_table(FORETOLD)?.insert(place, (number, seq))?),
            7 => {
                let mut key = [0; 56];
                key[0] = value.first().copied().unwrap_or_default();
                drop(write.open_table(EVIDENCE)?.insert(&key, value)?);
            }
            8 => drop(write.open_table(NODE)?.insert(0, value)?),
            9 => drop(write.open_table(ACTS)?.insert(place, ())?),
            10 => drop(write.open_table(NOTES)?.insert(place, value)?),
            _ => drop(write.open_table(PRUNED)?.insert(room, number)?),
        }
    }
    write.commit()?;
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let me = Identity::from_seed(&[1; 32]).node_id();
    let mesh = MeshSecret::new([7; 32], me).mesh_id();
    let room = RoomId::lobby(mesh);
    let disk = CrashingBackend::new(7);
    // Tables as a store makes them, with rows that no store wrote.
    drop(Store::on(disk.clone()).expect("an empty disk"));
    let ids = |disk: &CrashingBackend| -> Result<(), redb::Error> {
        let db = Database::builder().create_with_backend(disk.clone())?;
        let write = db.begin_write()?;
        write.open_table(ROOM_IDS)?.insert(&room.0, 0)?;
        write.commit()?;
        Ok(())
    };
    let disk = disk.crash(Unsynced::Dropped);
    ids(&disk).expect("a row");
    let disk = disk.crash(Unsynced::Dropped);
    write(&disk, bytes).expect("rows");
    let disk = disk.crash(Unsynced::Dropped);

    let Ok(store) = Store::on(disk) else { return };
    let reader = store.reader();
    drop(reader.check());
    drop(store.summary(me, Some(mesh)));
    let log = LogId { author: me, incarnation: 0 };
    drop(reader.rooms());
    drop(reader.evidence());
    drop(reader.tip(room));
    drop(reader.page_since(room, Number(0), 100));
    drop(reader.page_newest(room, 100, None));
    drop(reader.by_number(room, Number(1)));
    drop(reader.serves(room, Number(1)));
    drop(reader.serves_roamer(room, Number(1)));
    drop(reader.roam(room, Number(1), 50));
    drop(reader.answer_spans(room, &[Span { log, after: 0, upto: u64::MAX }]));
    drop(reader.answer_bodies(room, &[Head { log, seq: 1 }]));
});

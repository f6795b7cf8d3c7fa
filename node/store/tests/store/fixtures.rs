//! A store that any released layout wrote opens for ever, with all that is in it.
//!
//! `fixtures/layout-N.redb` was written by the last version of layout N, once, with
//! `STORE_FIXTURE=… cargo test -p store --test store fixture`, and is never changed again.

use std::{fs, path::Path};

use mesh::{
    api::batch::{Change, Fate, NumberRange, RoomRecord, Spoke},
    name::{
        id::{MeshId, RoomId},
        number::{Era, Number},
    },
    wire::{
        entry::DedupId,
        run::{Carried, Certificate, Run, RunEntry},
    },
};
use store::{FILE_NAME, Store};

use crate::rows::*;

/// Layouts before the present one.
const LAYOUTS: &[u64] = &[1];

/// Something in every table that layout 1 had.
fn layout_1() -> Vec<Change> {
    let directory = RoomId::directory(MESH);
    let spoke = Some(Spoke { clock: 3, log: log_id(3), turn: Some(9) });
    let archived = RoomRecord { mesh: MeshId([9; 16]), spoke, ..room_record() };
    let numbers = Some(NumberRange { best: Number(5), canonical: Number(4) });
    let certificate =
        Certificate { room: ROOM, log: log_id(8), seq: 2, hash: [5; 32], seal: [6; 64] };
    let carried = stored(1, "forked");
    let run = Run {
        room: ROOM,
        log: log_id(8),
        first: 1,
        backlink: [4; 32],
        entries: vec![RunEntry { facts: carried.facts, body: Carried::Here(carried.body) }],
        seal: [7; 64],
    };
    let new = Era::new(1, 7).unwrap();
    let mut batch: Vec<Change> = (1..=3).flat_map(|seq| message(ROOM, seq)).collect();
    let mut admitted = act(1);
    admitted.facts.kind = 32;
    batch.extend([
        Change::Room { room: RoomId([9; 16]), record: archived },
        log_settled(ROOM, 0, 5, 3),
        entry(ROOM, at(0, 4), stored(4, "waits")),
        // An act, of a later version for those who wrote it: kept all the same.
        entry(ROOM, at(0, 5), act(5)),
        era(ROOM, new, 1, 0, &[(Era::HOME, 3)]),
        number(ROOM, Number(4), at(1, 1), Fate::Hole),
        number(ROOM, new.number(1), at(0, 4), Fate::Assigned),
        Change::NumberRange { room: ROOM, at: at(1, 2), numbers },
        Change::Dedup { room: ROOM, id: DedupId([4; 16]), at: at(0, 1), wall_ms: 5 },
        room(directory),
        log(directory, 0, 1),
        entry(directory, at(0, 1), admitted),
        Change::Evidence { certificate, run: Box::new(run) },
        Change::Node(node(7)),
    ]);
    batch
}

/// What a whole node wrote, with the real engine: see [`crate::lone::busy`]; from layout 3 on with
/// a message of a ClawChat server. Copied, so that it is small, with `STORE_NODE_FIXTURE=… cargo
/// test -p store --test store fixture`.
#[test]
fn a_fixture_of_a_whole_node_is_written_when_asked_for() {
    let Ok(fixture) = std::env::var("STORE_NODE_FIXTURE") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut node = crate::lone::busy(dir.path());
    node.bring(7, crate::lone::OF_OLD);
    node.store.reader().copy_to(Path::new(&fixture), &mut |_| true).unwrap();
}

#[test]
fn a_node_goes_on_with_what_it_wrote_in_earlier_layouts() {
    use crate::lone::{Lone, OF_OLD, lobby, said};
    for (layout, next) in [(2, 7), (3, 8)] {
        let dir = goes_on(layout, next);
        let of_old = Lone::open(dir.path(), 1).store.reader().by_message(lobby(), OF_OLD).unwrap();
        assert_eq!(of_old.map(|it| it.number.0), (layout == 3).then_some(7));
    }

    fn goes_on(layout: u64, next: u64) -> tempfile::TempDir {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/fixtures");
        let dir = tempfile::tempdir().unwrap();
        fs::copy(fixtures.join(format!("layout-{layout}.redb")), dir.path().join(FILE_NAME))
            .unwrap();
        let report = store::check::check(dir.path(), &mut |_| ()).unwrap();
        assert!(report.is_sound() && report.entries > 10, "{report:?}");
        for again in 0..2_u64 {
            let mut node = Lone::open(dir.path(), 1);
            let all = said(&node.store, lobby());
            let first: Vec<(u64, &str)> =
                all.iter().take(5).map(|(number, text)| (*number, text.as_str())).collect();
            let told: Vec<String> = (1..=5).map(|n| format!("lobby {n}")).collect();
            let expect: Vec<(u64, &str)> = (1..).zip(told.iter().map(String::as_str)).collect();
            assert_eq!(first, expect);
            assert!(all[5].1.starts_with("a body that travels apart") && all[5].1.len() > 8_192);
            let den =
                node.rooms().into_iter().find(|it| it.0 == "den").expect("its private room").1;
            assert_eq!(said(&node.store, den)[0].1, "between us");
            let ada = node.attach("ada");
            node.join(&ada, lobby());
            let now = node.say(&ada, lobby(), &format!("goes on {again}"));
            assert_eq!(now.number.0, next + again, "in the era it was in");
        }
        assert!(store::check::check(dir.path(), &mut |_| ()).unwrap().is_sound());
        dir
    }
}

/// All that can be read.
fn state(store: &Store) -> String {
    let reader = store.reader();
    let rows = reader.page_since(ROOM, Number(0), 500).unwrap();
    let all = (store.summary(ME, None).unwrap(), rows, reader.rooms().unwrap());
    format!("{all:#?} {:#?}", reader.evidence().unwrap())
}

fn written(dir: &Path) -> Store {
    let mut store = Store::open(dir).unwrap();
    store.commit(&layout_1()).unwrap();
    store
}

#[test]
fn a_fixture_is_written_when_asked_for() {
    let Ok(fixture) = std::env::var("STORE_FIXTURE") else { return };
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    fs::copy(dir.path().join(FILE_NAME), fixture).unwrap();
}

#[test]
fn what_older_versions_wrote_opens_and_is_whole() {
    for layout in LAYOUTS {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/fixtures");
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::copy(fixtures.join(format!("layout-{layout}.redb")), old.path().join(FILE_NAME))
            .unwrap();
        // Twice: what the first start made of it opens as well.
        let expect = state(&written(new.path()));
        for _ in 0..2 {
            let store = Store::open(old.path()).unwrap();
            assert_eq!(state(&store), expect, "layout {layout}");
        }
    }
}

//! What is refused, and that it is left alone.

use std::{error::Error as _, fs, path::Path};

use redb::{Database, TableDefinition};
use store::{FILE_NAME, OpenError, Store, testing::CrashingBackend};

use crate::rows::*;

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    fill(&mut store);
    dir
}

fn fill(store: &mut Store) {
    for seq in 1..=200 {
        store.commit(&message(ROOM, seq)).unwrap();
    }
}

/// Opens, expects a refusal, and that the file did not change.
fn refused(dir: &Path) -> OpenError {
    let before = fs::read(dir.join(FILE_NAME)).unwrap();
    let error = Store::open(dir).unwrap_err();
    assert!(fs::read(dir.join(FILE_NAME)).unwrap() == before, "file changed: {error}");
    error
}

#[test]
fn a_store_lasts_and_its_file_is_private() {
    let dir = directory();
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(
        store.reader().page_since(ROOM, mesh::name::number::Number(0), 500).unwrap().len(),
        200
    );
    let metadata = fs::metadata(dir.path().join(FILE_NAME)).unwrap();
    assert_eq!(store.reader().size_bytes() + store::limits::JOURNAL_BYTES, metadata.len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_directory_is_one_stores_only() {
    let dir = directory();
    let store = Store::open(dir.path()).unwrap();
    let reader = store.reader();
    let error = refused(dir.path());
    let text = error.to_string();
    assert!(text.contains("in use by another process"), "{text}");
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    drop(store);
    refused(dir.path());
    drop(reader);
    Store::open(dir.path()).unwrap();
}

#[test]
fn another_layout_is_refused_and_left_alone() {
    let newer = of_layout(14);
    assert!(matches!(newer, OpenError::Newer { found: 14, known: 13, .. }), "{newer}");
    let older = of_layout(12);
    assert!(matches!(older, OpenError::Older { found: 12, known: 13, .. }), "{older}");
}

fn of_layout(layout: u64) -> OpenError {
    let dir = directory();
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    let db = store::testing::database(&dir.path().join(FILE_NAME)).unwrap();
    let write = db.begin_write().unwrap();
    write.open_table(meta).unwrap().insert("layout", layout).unwrap();
    write.commit().unwrap();
    drop(db);
    refused(dir.path())
}

#[test]
fn anothers_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let table: TableDefinition<'_, u64, u64> = TableDefinition::new("theirs");
    let db = Database::create(dir.path().join(FILE_NAME)).unwrap();
    let write = db.begin_write().unwrap();
    write.open_table(table).unwrap();
    write.commit().unwrap();
    drop(db);
    assert!(matches!(refused(dir.path()), OpenError::Foreign { .. }));
}

#[test]
fn damage_is_refused_and_left_alone() {
    let dir = directory();
    let file = dir.path().join(FILE_NAME);
    let good = fs::read(&file).unwrap();
    let check = |bad: Vec<u8>| {
        fs::write(&file, bad).unwrap();
        let error = refused(dir.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}: {:?}", error.source());
    };
    for len in [1, 100, 4_096, 8_192, good.len() / 2, good.len() - 1] {
        check(good[..len].to_vec());
    }
    check(b"#!/bin/sh\n".repeat(1_000));
    let start = usize::try_from(store::limits::JOURNAL_BYTES).unwrap();
    for range in [0..64, 16..17, 0..4_096, start..start + 4_096, start + 64..start + 320] {
        let mut bad = good.clone();
        bad[range].fill(0xa5);
        check(bad);
    }
    fs::write(&file, good).unwrap();
    Store::open(dir.path()).unwrap();
}

#[test]
fn a_missing_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = Store::open(&dir.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains("nowhere"));
}

/// Damage anywhere is either found, and then nothing is written, or does not matter to opening.
#[test]
fn no_damage_makes_opening_panic() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    fill(&mut store);
    drop(store);
    let good = disk.image();
    let mut refusals = 0;
    for page in 0..good.len() / 4_096 {
        let mut bad = good.clone();
        bad[page * 4_096..(page + 1) * 4_096].fill(0x5a);
        let disk = CrashingBackend::of(bad.clone(), 0);
        if let Err(error) = Store::on(disk.clone()) {
            assert!(disk.image() == bad, "changed: {error}");
            refusals += 1;
        }
    }
    assert!(refusals > 0);
}

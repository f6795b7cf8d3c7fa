//! Dropping old bodies: which ones, and the rows that stay.
//!
//! The beginning of the delivery log goes. An entry goes if it, or one delivered after it, was
//! written before the time that is given; the first one that is younger ends it. So a late entry
//! stays as long as those that were delivered with it, an author whose clock is behind loses
//! nothing before its time in a room in which others speak, and one number says how far bodies are
//! gone.

use std::collections::BTreeMap;

use mesh::{
    api::batch::Fate,
    limits::STAMP_AHEAD_MS_MAX,
    name::{id::RoomId, number::Number},
    wire::{
        entry::{Gone, Stored},
        kinds::{CHAT, DECISION, THINKING},
    },
};
use redb::{Database, ReadableDatabase, ReadableTable, WriteTransaction};
use sha2::{Digest, Sha256};

use crate::{
    error::{CommitError, ReadError},
    limits::{PRUNE_ROWS, SCAN_ROWS},
    schema::{ENTRIES, PRUNED, PlaceKey, decode, encode},
    view::View,
};

/// The bodies to drop.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    /// Everything delivered in a room up to this number is gone.
    floors: BTreeMap<u32, u64>,
    entries: Vec<PlaceKey>,
}

impl Drops {
    pub(crate) fn is_empty(&self) -> bool {
        self.floors.is_empty()
    }
}

/// Looks for bodies that may go: by room, those written before a time. `wall_ms`: the time now.
pub(crate) fn find(
    db: &Database,
    prunes: &BTreeMap<RoomId, u64>,
    wall_ms: Option<u64>,
) -> Result<Drops, ReadError> {
    let mut drops = Drops::default();
    if prunes.is_empty() {
        return Ok(drops);
    }
    let read = db.begin_read()?;
    for (room, before_ms) in prunes {
        if let Some(view) = View::open(&read, *room)? {
            find_in(&view, *before_ms, wall_ms, &mut drops)?;
        }
    }
    Ok(drops)
}

fn find_in(
    view: &View,
    before_ms: u64,
    wall_ms: Option<u64>,
    drops: &mut Drops,
) -> Result<(), ReadError> {
    // Stamps from the future say nothing: such entries go with the next one that is old.
    let future_ms = wall_ms.map_or(u64::MAX, |now_ms| now_ms.saturating_add(STAMP_AHEAD_MS_MAX));
    let mut found: Vec<(Number, PlaceKey, bool)> = Vec::new();
    let mut old = 0;
    let from = Number(view.pruned()?.0.saturating_add(1));
    for numbered in view.numbers(from, Number(u64::MAX))?.take(SCAN_ROWS) {
        let (number, at, fate) = numbered?;
        if fate != Fate::Delivered {
            continue;
        }
        let gist = view.gist(at)?.ok_or(ReadError::Damaged("delivered entry"))?;
        let is_old = gist.facts.wall_ms < before_ms;
        if !is_old && gist.facts.wall_ms <= future_ms {
            break;
        }
        // A body that a later version may fold stays.
        let is_said = [CHAT, THINKING, DECISION].contains(&gist.facts.kind);
        found.push((number, (view.room, at.log, at.seq), is_said && gist.gone.is_none()));
        if is_old {
            old = found.len();
        }
        if old >= PRUNE_ROWS {
            break;
        }
    }
    found.truncate(old.min(PRUNE_ROWS));
    if let Some((number, ..)) = found.last() {
        drops.floors.insert(view.room, number.0);
    }
    drops.entries.extend(found.into_iter().filter(|(.., goes)| *goes).map(|(_, key, _)| key));
    Ok(())
}

/// Writes what is left.
pub(crate) fn apply(write: &WriteTransaction, drops: &Drops) -> Result<(), CommitError> {
    let mut entries = write.open_table(ENTRIES)?;
    for key in &drops.entries {
        let row = match entries.get(key)? {
            Some(row) => decode::<Stored>(row.value(), "entry")?,
            None => continue,
        };
        entries.insert(key, encode(&without_body(row)).as_slice())?;
    }
    let mut pruned = write.open_table(PRUNED)?;
    for (room, number) in &drops.floors {
        pruned.insert(room, number)?;
    }
    Ok(())
}

fn without_body(entry: Stored) -> Stored {
    let gone = entry.gone.unwrap_or_else(|| Gone {
        hash: Sha256::digest(&*entry.body).into(),
        len: entry.body.len() as u64,
    });
    Stored { body: Vec::new().into(), gone: Some(gone), ..entry }
}

//! Messages, and the words that they are found by: as they are gathered in memory, and as rows.

use std::{
    collections::BTreeMap,
    ops::Bound::{Included, Unbounded},
};

use mesh::{
    api::search::{Spot, found_by},
    name::{id::RoomId, number::Number},
    wire::entry::Said,
};

use crate::error::ReadError;

/// The word that all messages of a room have. No text has it: its sign is no letter.
pub(crate) fn room_word(room: RoomId) -> String {
    format!("#{}", room.to_uuid())
}

/// The word that all messages of an agent have, by its id and by its name.
pub(crate) fn agent_word(agent: &str) -> String {
    format!("@{agent}")
}

/// All words of a message. None: it is not to be found.
pub(crate) fn words_of(room: RoomId, said: &Said) -> Vec<String> {
    if mesh::api::search::is_sealed(&said.content) {
        return Vec::new();
    }
    let mut words: Vec<String> = found_by(&said.content).into_iter().collect();
    words.push(room_word(room));
    words.push(agent_word(&said.agent));
    if *said.name != *said.agent {
        words.push(agent_word(&said.name));
    }
    words
}

/// Memory of a word in a tree, besides its bytes: rounded up.
const WORD_OVERHEAD_BYTES: usize = 64;

/// Messages that are gathered. Each has a place, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) spots: Vec<Spot>,
    /// Of each word the places of its messages, ascending.
    pub(crate) words: BTreeMap<String, Vec<u32>>,
    /// Memory, as it is reckoned.
    pub(crate) bytes: usize,
}

impl Draft {
    pub(crate) fn add(&mut self, spot: Spot, words: Vec<String>) {
        // Segments have some thousand.
        let place = u32::try_from(self.spots.len()).unwrap_or(u32::MAX);
        self.spots.push(spot);
        self.bytes += size_of::<Spot>();
        for word in words {
            self.bytes += size_of::<u32>();
            if let Some(places) = self.words.get_mut(&word) {
                places.push(place);
            } else {
                self.bytes += word.len() + WORD_OVERHEAD_BYTES;
                self.words.insert(word, vec![place]);
            }
        }
    }

    /// The same without some messages.
    pub(crate) fn without(&self, is_gone: impl Fn(&Spot) -> bool) -> Draft {
        let mut left = Draft::default();
        let mut moved = Vec::with_capacity(self.spots.len());
        for spot in &self.spots {
            if is_gone(spot) {
                moved.push(None);
            } else {
                moved.push(u32::try_from(left.spots.len()).ok());
                left.spots.push(*spot);
            }
        }
        for (word, places) in &self.words {
            let to = |place: &u32| moved.get(*place as usize).copied().flatten();
            let places: Vec<u32> = places.iter().filter_map(to).collect();
            if !places.is_empty() {
                left.bytes += word.len() + WORD_OVERHEAD_BYTES + size_of_val(places.as_slice());
                left.words.insert(word.clone(), places);
            }
        }
        left.bytes += size_of_val(left.spots.as_slice());
        left
    }

    /// When the newest and the oldest were written.
    pub(crate) fn times(&self) -> (u64, u64) {
        let times = || self.spots.iter().map(|spot| spot.wall_ms);
        (times().max().unwrap_or(0), times().min().unwrap_or(0))
    }

    /// The messages of a word.
    pub(crate) fn places(&self, word: &str) -> Vec<u32> {
        self.words.get(word).cloned().unwrap_or_default()
    }

    /// Those of all words that begin so.
    pub(crate) fn places_of_beginning(&self, beginning: &str) -> Vec<u32> {
        let words = self.words.range::<str, _>((Included(beginning), Unbounded));
        let words = words.take_while(|(word, _)| word.starts_with(beginning));
        united(words.flat_map(|(_, places)| places.iter().copied()).collect())
    }
}

/// Ascending, each once.
pub(crate) fn united(mut places: Vec<u32>) -> Vec<u32> {
    places.sort_unstable();
    places.dedup();
    places
}

const ROOM_BYTES: usize = 16;
const SPOT_BYTES: usize = 20;

/// Spots as a row: how many rooms (4 bytes), their ids, then for each message time (8), room (4), number (8); big endian.
pub(crate) fn encode_spots(spots: &[Spot]) -> Vec<u8> {
    let mut rooms: Vec<RoomId> = spots.iter().map(|spot| spot.room).collect();
    rooms.sort_unstable();
    rooms.dedup();
    let mut row = Vec::with_capacity(4 + rooms.len() * ROOM_BYTES + spots.len() * SPOT_BYTES);
    let count = u32::try_from(rooms.len()).unwrap_or(u32::MAX);
    row.extend_from_slice(&count.to_be_bytes());
    rooms.iter().for_each(|room| row.extend_from_slice(&room.0));
    for spot in spots {
        let room = rooms.binary_search(&spot.room).unwrap_or_default();
        row.extend_from_slice(&spot.wall_ms.to_be_bytes());
        row.extend_from_slice(&u32::try_from(room).unwrap_or(u32::MAX).to_be_bytes());
        row.extend_from_slice(&spot.number.0.to_be_bytes());
    }
    row
}

/// Such a row, read where it is asked for.
pub(crate) struct Spots<'r> {
    rooms: &'r [[u8; ROOM_BYTES]],
    spots: &'r [[u8; SPOT_BYTES]],
}

impl<'r> Spots<'r> {
    pub(crate) fn of(row: &'r [u8]) -> Result<Spots<'r>, ReadError> {
        const DAMAGED: ReadError = ReadError::Damaged("messages of the index");
        let (count, rest) = row.split_first_chunk::<4>().ok_or(DAMAGED)?;
        let length = u32::from_be_bytes(*count) as usize * ROOM_BYTES;
        let (rooms, spots) = rest.split_at_checked(length).ok_or(DAMAGED)?;
        let (rooms, (spots, over)) = (rooms.as_chunks().0, spots.as_chunks());
        if over.is_empty() { Ok(Spots { rooms, spots }) } else { Err(DAMAGED) }
    }

    pub(crate) fn get(&self, place: u32) -> Option<Spot> {
        let row = self.spots.get(place as usize)?;
        let (wall_ms, rest) = row.split_first_chunk::<8>()?;
        let (room, number) = rest.split_first_chunk::<4>()?;
        let room = self.rooms.get(u32::from_be_bytes(*room) as usize)?;
        Some(Spot {
            wall_ms: u64::from_be_bytes(*wall_ms),
            room: RoomId(*room),
            number: Number(u64::from_be_bytes(*number.first_chunk()?)),
        })
    }
}

/// Rows of words, each under its first one: for each word its length, itself, the length of its places, and these, as
/// differences. All numbers are LEB128.
pub(crate) fn encode_words(
    words: &BTreeMap<String, Vec<u32>>,
    chunk_bytes: usize,
) -> Vec<(&str, Vec<u8>)> {
    let mut chunks: Vec<(&str, Vec<u8>)> = Vec::new();
    for (word, places) in words {
        let mut row = Vec::new();
        let mut last = 0;
        for place in places {
            put(&mut row, place - last);
            last = *place;
        }
        if chunks.last().is_none_or(|(_, chunk)| chunk.len() + row.len() > chunk_bytes) {
            chunks.push((word, Vec::new()));
        }
        if let Some((_, chunk)) = chunks.last_mut() {
            put(chunk, u32::try_from(word.len()).unwrap_or(u32::MAX));
            chunk.extend_from_slice(word.as_bytes());
            put(chunk, u32::try_from(row.len()).unwrap_or(u32::MAX));
            chunk.extend_from_slice(&row);
        }
    }
    chunks
}

/// The words of such a row, with their places as bytes.
pub(crate) struct Words<'r>(pub(crate) &'r [u8]);

impl<'r> Words<'r> {
    fn word(&mut self) -> Option<(&'r str, &'r [u8])> {
        let word = self.bytes()?;
        Some((std::str::from_utf8(word).ok()?, self.bytes()?))
    }

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = take(&mut self.0)? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'r> Iterator for Words<'r> {
    type Item = Result<(&'r str, &'r [u8]), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let word = self.word().ok_or(ReadError::Damaged("words of the index"));
        if word.is_err() {
            self.0 = &[];
        }
        Some(word)
    }
}

/// Adds places that are given as bytes.
pub(crate) fn decode_places(mut row: &[u8], into: &mut Vec<u32>) -> Result<(), ReadError> {
    let mut last: u32 = 0;
    while !row.is_empty() {
        let step = take(&mut row).ok_or(ReadError::Damaged("places of the index"))?;
        last = last.saturating_add(step);
        into.push(last);
    }
    Ok(())
}

fn put(row: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        row.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    row.push((value & 0x7f) as u8);
}

fn take(row: &mut &[u8]) -> Option<u32> {
    let mut value: u32 = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = row.split_first()?;
        *row = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

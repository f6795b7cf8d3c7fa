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

/// Spots as a row: how many rooms, their ids (16 bytes each), then for each message its room, and how much later it was written
/// and how much higher its number is than those of the message before: of the segment, and of its room. All numbers are LEB128,
/// differences after zigzag.
pub(crate) fn encode_spots(spots: &[Spot]) -> Vec<u8> {
    let mut rooms: Vec<RoomId> = spots.iter().map(|spot| spot.room).collect();
    rooms.sort_unstable();
    rooms.dedup();
    let mut row = Vec::new();
    put(&mut row, rooms.len() as u64);
    rooms.iter().for_each(|room| row.extend_from_slice(&room.0));
    let (mut time, mut numbers) = (0, vec![0; rooms.len()]);
    for spot in spots {
        let room = rooms.binary_search(&spot.room).unwrap_or_default();
        put(&mut row, room as u64);
        put(&mut row, zigzag(spot.wall_ms, time));
        time = spot.wall_ms;
        if let Some(number) = numbers.get_mut(room) {
            put(&mut row, zigzag(spot.number.0, *number));
            *number = spot.number.0;
        }
    }
    row
}

/// Reads such a row.
pub(crate) fn decode_spots(row: &[u8]) -> Result<Vec<Spot>, ReadError> {
    spots(row).ok_or(ReadError::Damaged("messages of the index"))
}

fn spots(mut row: &[u8]) -> Option<Vec<Spot>> {
    let count = usize::try_from(take(&mut row)?).ok()?;
    let (rooms, mut rest) = row.split_at_checked(count.checked_mul(ROOM_BYTES)?)?;
    let rooms: &[[u8; ROOM_BYTES]] = rooms.as_chunks().0;
    let (mut time, mut numbers, mut spots) = (0, vec![0; rooms.len()], Vec::new());
    while !rest.is_empty() {
        let room = usize::try_from(take(&mut rest)?).ok()?;
        time = unzigzag(take(&mut rest)?, time);
        let number = numbers.get_mut(room)?;
        *number = unzigzag(take(&mut rest)?, *number);
        spots.push(Spot {
            wall_ms: time,
            room: RoomId(*rooms.get(room)?),
            number: Number(*number),
        });
    }
    Some(spots)
}

const ROOM_BYTES: usize = 16;

/// How much more it is, as a number that is small if that is little, either way.
fn zigzag(value: u64, before: u64) -> u64 {
    let more = value.wrapping_sub(before);
    (more << 1) ^ if more >> 63 == 1 { u64::MAX } else { 0 }
}

fn unzigzag(coded: u64, before: u64) -> u64 {
    let more = (coded >> 1) ^ if coded & 1 == 1 { u64::MAX } else { 0 };
    before.wrapping_add(more)
}

/// Rows of words, each under its first one: for each word how many bytes it shares with the one before, how many it has
/// besides, these, the length of its places, and these, as differences. All numbers are LEB128.
pub(crate) fn encode_words(
    words: &BTreeMap<String, Vec<u32>>,
    chunk_bytes: usize,
) -> Vec<(&str, Vec<u8>)> {
    let mut chunks: Vec<(&str, Vec<u8>)> = Vec::new();
    let (mut before, mut places_row) = ("", Vec::new());
    for (word, places) in words {
        places_row.clear();
        let mut last = 0;
        for place in places {
            put(&mut places_row, u64::from(place - last));
            last = *place;
        }
        let more = word.len() + places_row.len();
        if chunks.last().is_none_or(|(_, chunk)| chunk.len() + more > chunk_bytes) {
            chunks.push((word, Vec::new()));
            before = "";
        }
        if let Some((_, chunk)) = chunks.last_mut() {
            let shared = word.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
            let own = word.as_bytes().get(shared..).unwrap_or_default();
            put(chunk, shared as u64);
            put(chunk, own.len() as u64);
            chunk.extend_from_slice(own);
            put(chunk, places_row.len() as u64);
            chunk.extend_from_slice(&places_row);
        }
        before = word;
    }
    chunks
}

/// The words of such a row, with their places as bytes.
pub(crate) struct Words<'r> {
    row: &'r [u8],
    word: Vec<u8>,
}

impl<'r> Words<'r> {
    pub(crate) fn of(row: &'r [u8]) -> Words<'r> {
        Words { row, word: Vec::new() }
    }

    /// The next one, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<(&str, &'r [u8])>, ReadError> {
        const DAMAGED: ReadError = ReadError::Damaged("words of the index");
        if self.row.is_empty() {
            return Ok(None);
        }
        let places = self.read().ok_or(DAMAGED)?;
        let word = std::str::from_utf8(&self.word).map_err(|_| DAMAGED)?;
        Ok(Some((word, places)))
    }

    fn read(&mut self) -> Option<&'r [u8]> {
        let shared = usize::try_from(take(&mut self.row)?).ok()?;
        if shared > self.word.len() {
            return None;
        }
        let own = self.bytes()?;
        self.word.truncate(shared);
        self.word.extend_from_slice(own);
        self.bytes()
    }

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = usize::try_from(take(&mut self.row)?).ok()?;
        let (bytes, rest) = self.row.split_at_checked(length)?;
        self.row = rest;
        Some(bytes)
    }
}

/// Adds places that are given as bytes.
pub(crate) fn decode_places(mut row: &[u8], into: &mut Vec<u32>) -> Result<(), ReadError> {
    const DAMAGED: ReadError = ReadError::Damaged("places of the index");
    let mut last: u32 = 0;
    while !row.is_empty() {
        let step = take(&mut row).and_then(|step| u32::try_from(step).ok()).ok_or(DAMAGED)?;
        last = last.checked_add(step).ok_or(DAMAGED)?;
        into.push(last);
    }
    Ok(())
}

fn put(row: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        row.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    row.push((value & 0x7f) as u8);
}

fn take(row: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = row.split_first()?;
        *row = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(wall_ms: u64, room: u8, number: u64) -> Spot {
        Spot { wall_ms, room: RoomId([room; 16]), number: Number(number) }
    }

    #[test]
    fn spots_are_read_back_whatever_their_clocks_and_numbers_say() {
        let spots = [
            spot(1_800_000_000_000, 2, 1 << 50),
            spot(0, 1, 0),
            spot(u64::MAX, 2, 7),
            spot(5, 1, u64::MAX),
        ];
        let row = encode_spots(&spots);
        assert_eq!(decode_spots(&row).unwrap(), spots);
        assert_eq!(decode_spots(&encode_spots(&[])).unwrap(), []);
        for end in 0..row.len() {
            // Cut in the middle of a message it is damaged; between two it is shorter. It never panics.
            drop(decode_spots(&row[..end]));
        }
        assert!(decode_spots(&[]).is_err() && decode_spots(&[1, 0]).is_err());
    }

    #[test]
    fn words_are_read_back_from_their_chunks() {
        let words: Vec<String> =
            ["a", "ab", "abc", "b", "été", "étés", "z"].map(String::from).into();
        let places = |nth: usize| vec![0, 3, 200 + u32::try_from(nth).unwrap()];
        let all: BTreeMap<String, Vec<u32>> =
            words.iter().enumerate().map(|(nth, word)| (word.clone(), places(nth))).collect();
        let chunks = encode_words(&all, 20);
        assert!(chunks.len() > 1);
        let mut read = BTreeMap::new();
        for (first, chunk) in &chunks {
            let mut words = Words::of(chunk);
            let mut is_first = true;
            while let Some((word, row)) = words.next().unwrap() {
                assert!(!is_first || word == *first);
                is_first = false;
                decode_places(row, read.entry(word.to_owned()).or_default()).unwrap();
            }
        }
        assert_eq!(read, all);
        for bad in [&[1, 0, 0][..], &[0, 9, 1], &[0, 1, 0xff, 0], &[0xff; 11]] {
            assert!(Words::of(bad).next().is_err(), "{bad:?}");
        }
    }
}

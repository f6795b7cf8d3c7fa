//! Events without a number that are told once: votes, elections, tasks, mentions from outside. Who
//! was away for a moment gets them when it is back, in between the messages.

use bytes::Bytes;
use mesh::name::{id::RoomId, number::Number};

use crate::backend::Row;

/// Such an event.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) room: RoomId,
    /// The newest message of the room when it was told.
    pub(crate) after: Number,
    /// And when. Unix milliseconds.
    pub(crate) wall_ms: u64,
    /// The frame.
    pub(crate) bytes: Bytes,
}

/// What an agent missed, one after the other.
#[derive(Debug)]
pub(crate) enum Missed<'a> {
    Message(RoomId, &'a Row),
    Notice(&'a Notice),
}

/// Rows (of each room in rising order) and notices (in the order they were told) as one: within a room
/// as it was, rooms among each other by time.
pub(crate) fn merge<'a>(rows: &'a [(RoomId, Row)], notices: &'a [Notice]) -> Vec<Missed<'a>> {
    let times = row_times(rows);
    let mut all: Vec<_> = Vec::with_capacity(rows.len() + notices.len());
    for ((room, row), time) in rows.iter().zip(&times) {
        all.push(((*time, *room, row.number, false), Missed::Message(*room, row)));
    }
    for notice in notices {
        let time = notice_time(notice, rows, &times);
        all.push(((time, notice.room, notice.after, true), Missed::Notice(notice)));
    }
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, missed)| missed).collect()
}

/// When each was written; never before an earlier one of its room, whatever its author's clock said.
fn row_times(rows: &[(RoomId, Row)]) -> Vec<u64> {
    let mut latest = std::collections::HashMap::new();
    let time = |(room, row): &(RoomId, Row)| {
        let time = latest.entry(*room).or_insert(0);
        *time = row.facts.wall_ms.max(*time);
        *time
    };
    rows.iter().map(time).collect()
}

/// When it was told; between the messages of its room that it stood between.
fn notice_time(notice: &Notice, rows: &[(RoomId, Row)], times: &[u64]) -> u64 {
    let of_room = || rows.iter().zip(times).filter(|((room, _), _)| *room == notice.room);
    let before = of_room().filter(|((_, row), _)| row.number <= notice.after);
    let behind = of_room().filter(|((_, row), _)| row.number > notice.after);
    let earliest = before.map(|(_, time)| *time).max().unwrap_or(0);
    let latest = behind.map(|(_, time)| *time).min().unwrap_or(u64::MAX);
    notice.wall_ms.max(earliest).min(latest)
}

#[cfg(test)]
mod tests {
    use mesh::{
        name::id::{LocalRef, LogId, MessageId, NodeId},
        wire::entry::Facts,
    };

    use super::*;

    const A: RoomId = RoomId([1; 16]);
    const B: RoomId = RoomId([2; 16]);

    fn row(room: RoomId, number: u64, wall_ms: u64) -> (RoomId, Row) {
        let row = Row {
            number: Number(number),
            canonical: Number(number),
            numbers: Vec::new(),
            at: LocalRef { log: 0, seq: number },
            log: LogId { author: NodeId([0; 32]), incarnation: 0 },
            message: MessageId([0; 16]),
            facts: Facts { clock: number, wall_ms, kind: 1, visible: true },
            said: None,
        };
        (room, row)
    }

    fn notice(room: RoomId, after: u64, wall_ms: u64, text: &'static str) -> Notice {
        Notice { room, after: Number(after), wall_ms, bytes: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn notices_stand_where_they_were_told() {
        let rows = [row(A, 5, 100), row(B, 1, 150), row(A, 6, 90), row(A, 7, 900)];
        let notices = [
            notice(A, 4, 500, "before 5, by a clock that is ahead"),
            notice(A, 6, 10, "behind 6, by a clock that is behind"),
            notice(B, 1, 120, "behind B's 1"),
            notice(A, 6, 20, "and the next"),
            notice(A, 7, 1_000, "last"),
        ];
        let order: Vec<String> = merge(&rows, &notices)
            .iter()
            .map(|missed| match missed {
                Missed::Message(room, row) => format!("{}:{}", room.0[0], row.number.0),
                Missed::Notice(it) => String::from_utf8(it.bytes.to_vec()).unwrap(),
            })
            .collect();
        let expect = [
            "before 5, by a clock that is ahead",
            "1:5",
            "1:6",
            "behind 6, by a clock that is behind",
            "and the next",
            "2:1",
            "behind B's 1",
            "1:7",
            "last",
        ];
        assert_eq!(order, expect);
    }
}

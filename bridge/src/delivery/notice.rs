//! Events without a number that are told once: votes, elections, tasks, mentions from outside. An agent that
//! was away for a moment gets them when it is back, in between the messages.

use std::sync::Arc;

use mesh::name::{id::RoomId, number::Number};

use crate::{backend::Row, seam::event::Told};

/// Such an event.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) room: RoomId,
    /// The newest message of the room when it was told.
    pub(crate) after: Number,
    /// And when. Unix milliseconds.
    pub(crate) wall_ms: u64,
    /// The event, for a reader of any voice.
    pub(crate) told: Arc<Told>,
}

/// One thing that an agent missed.
#[derive(Debug)]
pub(crate) enum Missed {
    Message(RoomId, Box<Row>),
    Notice(Notice),
}

/// Rows (of each room in rising order) and notices (in the order they were told) as one: within a room
/// as it was, rooms among each other by time.
pub(crate) fn merge(rows: Vec<(RoomId, Row)>, notices: Vec<Notice>) -> Vec<Missed> {
    let times = row_times(&rows);
    let mut all: Vec<_> = Vec::with_capacity(rows.len() + notices.len());
    for notice in notices {
        let time = notice_time(&notice, &rows, &times);
        all.push(((time, notice.room, notice.after, true), Missed::Notice(notice)));
    }
    for ((room, row), time) in rows.into_iter().zip(times) {
        all.push(((time, room, row.number, false), Missed::Message(room, Box::new(row))));
    }
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, missed)| missed).collect()
}

/// When each was written; never before an earlier one of its room, even if its author's clock said so.
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
        Proof,
        name::id::{LocalRef, LogId, MessageId, NodeId},
        wire::entry::Facts,
    };

    use super::*;
    use crate::seam::event::Event;

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
            proof: Proof::default(),
            fate: None,
        };
        (room, row)
    }

    fn notice(room: RoomId, after: u64, wall_ms: u64) -> Notice {
        let told = Arc::new(Told::new(Event::Heartbeat));
        Notice { room, after: Number(after), wall_ms, told }
    }

    #[test]
    fn notices_stand_where_they_were_told() {
        let rows = [row(A, 5, 100), row(B, 1, 150), row(A, 6, 90), row(A, 7, 900)];
        let notices = [
            // Before 5, by a clock that is ahead.
            notice(A, 4, 500),
            // Behind 6, by a clock that is behind, and the next.
            notice(A, 6, 10),
            // Behind B's 1.
            notice(B, 1, 120),
            notice(A, 6, 20),
            notice(A, 7, 1_000),
        ];
        let order: Vec<String> = merge(rows.to_vec(), notices.to_vec())
            .iter()
            .map(|missed| match missed {
                Missed::Message(room, row) => format!("{}:{}", room.0[0], row.number.0),
                Missed::Notice(notice) => format!("notice of {}", notice.wall_ms),
            })
            .collect();
        let expect = [
            "notice of 500",
            "1:5",
            "1:6",
            "notice of 10",
            "notice of 20",
            "2:1",
            "notice of 120",
            "1:7",
            "notice of 1000",
        ];
        assert_eq!(order, expect);
    }
}

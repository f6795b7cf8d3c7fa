//! The meaning of a number, for an operator who wonders: its owner, its message, the node that
//! signed that.

use anyhow::Result;
use mesh::{
    api::{
        batch::Fate,
        status::{NodeStatus, RoomStatus, Status},
    },
    name::{id::RoomId, number::Number},
};
use protocol::operator::{Entry, Era, Signed};
use store::{Reader, Row};

/// `status`: the engine's view of nodes, lanes and the room.
pub(crate) fn describe(
    reader: &Reader,
    status: &Status,
    room: RoomId,
    number: Number,
) -> Result<Entry> {
    let message = match reader.by_number(room, number)? {
        Some(row) => Some(signed(reader, status, room, row)?),
        None => None,
    };
    let era = number.era();
    let owner =
        era.lane().and_then(|lane| status.lanes.iter().find(|(lane_of, _)| *lane_of == lane));
    let era = Era {
        c: era.c(),
        lane: era.lane(),
        n: number.n(),
        node_id: owner.map(|(_, node)| node.to_string()),
    };
    Ok(Entry { room_id: room.to_uuid(), seq: number.0, era, message })
}

fn signed(reader: &Reader, status: &Status, room: RoomId, row: Row) -> Result<Signed> {
    let author = row.log.author;
    let named = |node: &&NodeStatus| node.node == author;
    let numbers = reader.numbers_of(room, row.at)?;
    let delivered = numbers.iter().find(|(_, fate)| *fate == Fate::Delivered);
    let here = status.rooms.iter().find(|known| known.room == room);
    let sent = |room: &RoomStatus| row.at.seq <= room.sent;
    Ok(Signed {
        message_id: row.message.to_uuid(),
        node_id: author.to_string(),
        node_name: status.nodes.iter().find(named).and_then(|node| node.name.clone()),
        log_seq: row.at.seq,
        clock: row.facts.clock,
        timestamp: clawchat::timestamp(row.facts.wall_ms),
        delivered: delivered.map(|(number, _)| number.0),
        numbers: numbers.iter().map(|(number, _)| number.0).collect(),
        agent_id: row.said.map(|said| said.agent.to_string()),
        // Its author has it, if that is another node.
        elsewhere: author != status.node || here.is_some_and(sent),
    })
}

//! Rooms of a mesh that the node was in before: to be read, never to be written.

use std::sync::Arc;

use crate::{
    api::{batch::Summary, command::RoomView},
    directory::{Directory, naming::Named},
    name::id::{LogId, MeshId, NodeId, RoomId},
    turn::happened::Fact,
    wire::seal::SealContext,
};

/// How a node lists the rooms that the store kept from `mesh`, a mesh it has left by joining another
/// one: `summary` is of that mesh. Its lobby is called `lobby (NODE)`, and so are others' namesakes.
#[must_use]
pub fn archive(mesh: MeshId, me: NodeId, name: &str, summary: &Summary) -> Vec<RoomView> {
    let lobby = RoomId::lobby(mesh);
    let founder = summary.rooms.iter().find(|stored| stored.room == lobby);
    let mut directory = Directory::new(founder.map(|stored| stored.record.home.author));
    for (room, at, entry, numbers) in &summary.directory {
        let Some(stored) = summary.rooms.iter().find(|stored| stored.room == *room) else {
            continue;
        };
        let Some(log) = stored.logs.get(at.log as usize) else { continue };
        let log: LogId = log.id;
        let spot = SealContext { room: *room, log, seq: at.seq, kind: entry.facts.kind };
        let body = stored.record.body(&spot, &entry.body);
        let fact = Fact { room: *room, at: *at, log, facts: entry.facts, body };
        directory.learn(mesh, fact, numbers);
    }
    let called = if name.is_empty() { me.short() } else { name.to_owned() };
    let rooms = summary.rooms.iter().filter(|stored| !stored.record.ephemeral);
    rooms
        .filter_map(|stored| {
            let created = directory.room(stored.room);
            let name: Arc<str> = if stored.room == lobby {
                format!("lobby ({called})").into()
            } else {
                let Named::Name(name) = directory.name(stored.room) else { return None };
                format!("{name} ({called})").into()
            };
            let was = directory.lobby().filter(|_| stored.room == lobby);
            let made_ms = was.map_or(0, |made| made.created_ms);
            let created_ms = created.map_or(made_ms, |created| created.wall_ms);
            let created = created.map(|created| &created.created);
            Some(RoomView {
                room: stored.room,
                name,
                description: created
                    .and_then(|room| room.description.as_deref().map(Arc::from))
                    .or_else(|| was.and_then(|made| made.description.clone())),
                parent: created.and_then(|created| created.parent),
                ephemeral: false,
                public: created.is_none_or(|created| created.public),
                encrypted: created.is_some_and(|created| created.encrypted),
                owner: created.map(|created| created.owner),
                sealed: stored.record.seal.is_some(),
                created_by: created.map(|created| created.created_by.clone()),
                created_ms,
                last_activity_ms: stored.record.last_activity_ms,
                members: 0,
                tip: stored.record.tip,
                sides: None,
                task: false,
                closed: false,
                shared: None,
                on_record: Arc::default(),
                withheld: [None; 2],
            })
        })
        .collect()
}

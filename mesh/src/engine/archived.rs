//! Rooms of a mesh that the node was in before: to be read, never to be written.

use std::sync::Arc;

use crate::{
    api::{batch::Summary, command::RoomView},
    directory::{Directory, naming::Named},
    engine::context::Fact,
    name::id::{LogId, MeshId, NodeId, RoomId},
    wire::seal::SealContext,
};

/// How a node lists the rooms that the store kept from `mesh`, a mesh it has left by joining another
/// one: `summary` is of that mesh. Its lobby is called `lobby (NODE)`, and so are others' namesakes.
#[must_use]
pub fn archive(mesh: MeshId, me: NodeId, name: &str, summary: &Summary) -> Vec<RoomView> {
    let lobby = RoomId::lobby(mesh);
    let founder = summary.rooms.iter().find(|it| it.room == lobby);
    let mut directory = Directory::new(founder.map(|it| it.record.home.author));
    for (room, at, entry, numbers) in &summary.directory {
        let Some(stored) = summary.rooms.iter().find(|it| it.room == *room) else { continue };
        let Some(log) = stored.logs.get(at.log as usize) else { continue };
        let log: LogId = log.id;
        let spot = SealContext { room: *room, log, seq: at.seq, kind: entry.facts.kind };
        let body = stored.record.body(&spot, &entry.body);
        let fact = Fact { room: *room, at: *at, log, facts: entry.facts, body };
        directory.learn(mesh, fact, numbers);
    }
    let called = if name.is_empty() { me.short() } else { name.to_owned() };
    let rooms = summary.rooms.iter().filter(|it| !it.record.ephemeral);
    rooms
        .filter_map(|it| {
            let created = directory.room(it.room);
            let name: Arc<str> = if it.room == lobby {
                format!("lobby ({called})").into()
            } else {
                let Named::Name(name) = directory.name(it.room) else { return None };
                format!("{name} ({called})").into()
            };
            let was = directory.lobby().filter(|_| it.room == lobby);
            let made_ms = was.map_or(0, |it| it.created_ms);
            let created_ms = created.map_or(made_ms, |it| it.wall_ms);
            let created = created.map(|it| &it.created);
            Some(RoomView {
                room: it.room,
                name,
                description: created
                    .and_then(|it| it.description.as_deref().map(Arc::from))
                    .or_else(|| was.and_then(|it| it.description.clone())),
                parent: created.and_then(|it| it.parent),
                ephemeral: false,
                public: created.is_none_or(|it| it.public),
                encrypted: created.is_some_and(|it| it.encrypted),
                owner: created.map(|it| it.owner),
                sealed: it.record.seal.is_some(),
                created_by: created.map(|it| it.created_by.clone()),
                created_ms,
                last_activity_ms: it.record.last_activity_ms,
                members: 0,
                tip: it.record.tip,
            })
        })
        .collect()
}

//! Files of rooms, which agents with the key that made the room write and delete: their contents travel apart from their records.
//!
//! *records*: as of `profiles`; and an answer says that the content is durable, too. *contents*: `alike::files`. *sealed*: as of
//! `details`.

use std::sync::Arc;

use mesh::{
    api::command::{Command, Encryption, FileAct, FileChange},
    records::files::{self, NewFile},
    wire::record::{Apart, RecordKey},
};
use store::records::{self, find};

use super::{
    Holders, MARK,
    asked::{Asked, FileSaid},
    profiles::shelf,
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    parts::Seated,
    promises::{Broken, broken},
};

impl Holders {
    /// An agent writes or deletes a file of a room that its key has made, or of a public one whose maker may let it.
    pub(super) fn change_file(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let place = if cluster.dice.chance(50) {
            self.public_room(cluster, (by.node, by.caller.key))
        } else {
            self.own_room(cluster, i)
        };
        let Some((room, public)) = place else { return };
        let own = self.made.iter().any(|it| it.room == room && it.key == self.holders[i].key);
        let path = format!("dir/{}", cluster.dice.within(0, 3));
        let mark = if public { "for all" } else { MARK };
        // Some take more than one message.
        let pad = " ".repeat(if cluster.dice.chance(10) { 200_000 } else { 1 });
        let text = cluster.dice.chance(80).then(|| format!("{}{pad}{mark}", cluster.dice.draw()));
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let (key, agent) = (by.caller.key, Some(by.caller.agent));
        let said = FileSaid { room, key, path: path.clone(), own, text: text.clone() };
        let act = match text {
            Some(text) => {
                self.texts.entry(room).or_default().insert(text.clone());
                let bytes = text.into_bytes();
                FileAct::Put(NewFile { path, media: None, bytes }, Encryption::None)
            }
            None => FileAct::Remove(path),
        };
        let command = Command::ChangeFile(Box::new(FileChange { room, key, agent, signer, act }));
        self.calls.ask(cluster, by.node, Asked::File(said), command);
    }

    /// A node has done it: that is on its disk.
    pub(super) fn file_is_changed(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        said: &FileSaid,
    ) -> Result<(), Broken> {
        if !said.own {
            cluster.coverage.count(Happening::FileOfGuest);
        }
        let happened = if said.text.is_some() { Happening::FilePut } else { Happening::FileGone };
        cluster.coverage.count(happened);
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        let place = records::place(&running.reader, said.room).expect("a sound store reads");
        let Some(at) = place else {
            return broken(
                "records",
                format!("node{node} has changed a file of no room: {said:?}"),
            );
        };
        let (collection, id) = (files::COLLECTION.number, files::id(&at, &said.path));
        let shelf = shelf(cluster, at.space, collection);
        let found = find(&running.reader, &shelf, &id.0, |_| true).expect("a sound store reads");
        let own = found.iter().find(|record| record.owner() == said.key);
        let Some(record) = own else {
            return broken("records", format!("node{node} has changed nothing of {said:?}"));
        };
        let file = (said.room, said.path.as_str());
        let proofs = running.engine.proofs();
        let shown = records::file(&running.reader, shelf.mesh, file, &proofs);
        let shown = shown.expect("a sound store reads").and_then(|(_, bytes)| bytes);
        // Others may write the same file, and the latest state shows.
        let shows = proofs.file_keys(said.room, [said.key]).contains(&said.key)
            && found.iter().all(|other| other.stamp <= record.stamp);
        // Another agent may have changed it at another node, and that may have come in the same turn.
        let written = said.text.as_ref().map(|text| {
            let bytes = text.clone().into_bytes();
            at.cover.write_apart(&files::apart_name(id, said.key), bytes)
        });
        let is_own = shows && record.apart == written.as_deref().map(Apart::of);
        if is_own && shown.as_deref() != said.text.as_ref().map(String::as_bytes) {
            return broken("contents", format!("node{node} has not kept the content of {said:?}"));
        }
        let name = (at.space, collection, RecordKey { id, owner: Some(said.key) });
        self.profiles.was_answered(name, (record.stamp, node));
        Ok(())
    }
}

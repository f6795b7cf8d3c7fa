//! A message of many records is verified on two threads, so that a node that has none of a mesh's records gets them sooner.

use std::{
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

use mesh::{
    name::id::MeshId,
    wire::{
        message::{BadMessage, Message},
        run::{Run, Verified},
    },
};

/// As [`Message::verify`].
pub(super) fn verify(message: Message<Run>, mesh: MeshId) -> Result<Message<Verified>, BadMessage> {
    let (first, second) = message.halves();
    if second.is_none() {
        return first.verify(mesh);
    }
    let second = Mutex::new(second);
    let verify_second = || {
        let second = second.lock().unwrap_or_else(PoisonError::into_inner).take();
        second.map(|second| second.verify(mesh))
    };
    let (first, second) = thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, verify_second);
        let first = first.verify(mesh);
        let second = other.map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // The system may have no thread for it.
        (first, second.unwrap_or_else(|_| verify_second()))
    });
    first?.with_half(second.ok_or(BadMessage::Record)??).ok_or(BadMessage::Record)
}

#[cfg(test)]
mod tests {
    use mesh::{
        name::key::KeySecret,
        wire::record::{CollectionNumber, Draft, Record, RecordId, Space, Stamp},
    };

    use super::*;

    const MESH: MeshId = MeshId([1; 16]);

    fn verified(records: Vec<Record>) -> Result<Vec<Record>, BadMessage> {
        let message = verify(Message::Records(records), MESH)?;
        let Message::Records(records) = message else { panic!("{message:?}") };
        Ok(records)
    }

    #[test]
    fn records_are_verified_on_two_threads_as_on_one() {
        let key = KeySecret::of(&"k".repeat(32));
        let (space, collection) = (Space::Mesh, CollectionNumber(u16::MAX));
        let draft = Draft { space, collection, id: RecordId([4; 16]), body: None };
        let record = |n| draft.clone().sign(&key, MESH, Stamp::at(n)).expect("it is long enough");
        for count in [1, 100] {
            let all: Vec<Record> = (0..count).map(record).collect();
            assert_eq!(verified(all.clone()).ok().as_ref(), Some(&all), "in their order");
            for forged in [0, all.len() - 1] {
                let mut all = all.clone();
                all[forged].stamp.0 += 1;
                assert!(matches!(verified(all), Err(BadMessage::Record)), "{forged} of {count}");
            }
        }
    }
}

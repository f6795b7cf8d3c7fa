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

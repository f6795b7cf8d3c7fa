//! Bytes of peers, up to the engine's door.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mesh::{name::id::MeshId, wire::message::Message};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::decode(bytes) else { return };
    let again = Message::decode(&message.encode()).expect("what we say can be read");
    assert_eq!(again.encode(), message.encode());
    let _ = message.verify(MeshId([1; 16]));
});

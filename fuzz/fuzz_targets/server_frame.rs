//! Lines of nodes, as our client reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::frame::{ServerFrame, encode_event};

fuzz_target!(|line: &str| {
    let Ok(frame) = ServerFrame::parse(line) else { return };
    if let Ok(Some(event)) = frame.event() {
        let again = encode_event(&event, "id");
        let frame = ServerFrame::parse(&again).expect("what we say can be read");
        assert!(frame.event().is_ok_and(|event| event.is_some()));
    }
});

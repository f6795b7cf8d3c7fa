//! Lines of clients: an accepted request is encoded again as it was understood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::frame::{encode_request, parse_request};

fuzz_target!(|line: &str| {
    let Ok(first) = parse_request(line) else { return };
    let again = encode_request(&first.request, first.id.as_deref(), None);
    let second = parse_request(&again).expect("what we say can be read");
    assert_eq!(second.request, first.request);
    assert_eq!(second.id, first.id);
});

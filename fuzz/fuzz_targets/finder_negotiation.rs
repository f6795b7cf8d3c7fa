//! Messages and subjects of negotiations, as others send them: what a node writes of one says the same.
#![no_main]

use clawfinder::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::negotiation(&String::from_utf8_lossy(bytes)));

//! Lines of three clients of one node: whatever they say, the node still serves another one.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: &str| bridge::fuzzing::play(lines));

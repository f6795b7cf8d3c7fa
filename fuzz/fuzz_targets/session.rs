//! Any lines of three clients of one node: the node still serves another client.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: &str| clawchat::fuzzing::play(lines));

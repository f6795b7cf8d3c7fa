//! Bodies of requests to the index: refused with one line of ASCII, or read.
#![no_main]

use clawfinder::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::body(bytes));

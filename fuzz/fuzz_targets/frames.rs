//! Bytes of a frame stream, cut anywhere: frames come out as they would of the whole, or the stream ends. And
//! announcements, which travel in some of them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| net::testing::read_frames(bytes));

//! Messages to a hosted account: in armor, as packets, and the packets that somebody has encrypted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openpgp::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let reader = fuzzing::reader();
    match how {
        b'm' => drop(fuzzing::message(reader, &String::from_utf8_lossy(rest))),
        b'p' => drop(fuzzing::sealed(reader, rest)),
        _ => drop(fuzzing::inside(reader, rest)),
    }
});

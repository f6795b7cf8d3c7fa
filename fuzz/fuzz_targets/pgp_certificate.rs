//! Keys and signatures as clients give them, in armor, and packets of keys as other nodes have them in records: what is taken
//! is read again as it was kept.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openpgp::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    match how {
        b'k' => drop(fuzzing::keyring(&String::from_utf8_lossy(rest))),
        b's' => drop(fuzzing::signature(&String::from_utf8_lossy(rest), b"a document\n")),
        _ => drop(fuzzing::certificate(rest)),
    }
});

//! Promises that cross packages. This library is empty: everything is in the one test binary,
//! `tests/promises`, because each binary links the whole node once more.
//!
//! In reading order: `tree` (the rules of the source tree itself), `simulation` (worlds in virtual time),
//! `end_to_end` (real processes, sockets, kill -9). What each proves: `docs/testing.md`.

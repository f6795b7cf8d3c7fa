//! Promises that cross packages. This library is empty: everything is in the one test binary,
//! `tests/promises`, because each binary links the whole node once more.
//!
//! `simulation` and `scenarios` (worlds in virtual time; what happens, as data), `conformance` (transcripts of the wire),
//! `examples`, `bench`, `end_to_end` (real processes, sockets, kill -9). What each proves: `docs/testing.md`.

//! Promises that cross packages. This library is empty: everything is in the one test binary,
//! `tests/promises`, because each binary links the whole node once more.
//!
//! In reading order: `tree`, `licences`, `warnings` and `wire_page` (the rules of the source tree and its pages),
//! `simulation` and `scenarios` (worlds in virtual time; what happens, as data), `conformance` (transcripts of the wire),
//! `examples`, `bench`, `end_to_end` (real processes, sockets, kill -9). What each proves: `docs/testing.md`.

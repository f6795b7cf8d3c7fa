//! Promises that cross packages. This library is empty: everything is in three test binaries, because each links much once more.
//!
//! `tests/browser` is the page of a node in a real browser: it runs its tests itself, for they share nodes and a browser.
//! `tests/networks` is nodes in network namespaces, and runs its steps itself, too. `tests/promises` is all else.
//!
//! `simulation` and `scenarios` (worlds in virtual time; what happens, as data), `conformance` (transcripts of the wire),
//! `examples`, `bench`, `end_to_end` (real processes, sockets, kill -9). What each proves: `docs/testing.md`.

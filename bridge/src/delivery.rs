//! Routing of events, and the queues of readers.
//!
//! [`hub`] routes events to connections, which end for a reason ([`ending`]); `link` is the part of a connection that the engine's thread sees, and `bell` wakes its task; `outbox` holds
//! frames that wait for one reader, bounded. `notice` merges missed messages and notices, `reread`
//! reads messages again, `readers` remembers the numbers that agents were given here, and `given` what of it is certain to have come.

pub(crate) mod bell;
pub mod ending;
pub(crate) mod given;
pub(crate) mod hook;
pub mod hub;
pub(crate) mod link;
pub(crate) mod notice;
pub(crate) mod outbox;
pub(crate) mod readers;
pub(crate) mod reread;

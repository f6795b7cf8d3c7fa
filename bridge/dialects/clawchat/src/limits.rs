//! Bounds of the dialect beside those of its wire types ([`protocol::limits`]) and of the bridge.

use std::time::Duration;

/// Registered within this (spec §1).
pub(crate) const REGISTER_WITHIN: Duration = Duration::from_secs(10);
/// Between two heartbeats (spec §1).
pub(crate) const HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// Without a byte for this long a connection is closed (spec §1).
pub(crate) const SILENT_FOR_MAX: Duration = Duration::from_secs(90);
/// Messages that the history shows over HTTP (spec §8).
pub(crate) const HTTP_HISTORY_ROWS: u64 = 100;
/// When a client may ask again for a file whose content is on its way. Seconds.
pub(crate) const FILE_ASKED_AGAIN_SECS: u64 = 1;
/// The body of an HTTP request: a label and its JSON.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 4 * 1_024;
/// How long candidates may decline, as `election_started` says it (spec §4).
pub(crate) const OPT_OUT_SECS: u64 = 2;
/// Events of one part of a replay. The bridge has a bound of its own for their bytes.
pub(crate) const REPLAY_EVENTS_MAX: usize = 1_000;

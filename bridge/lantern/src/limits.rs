//! Every bound of envelopes, with its reason.

/// Problems of one envelope that are listed: nobody reads more, and a file can have a million.
pub const PROBLEMS_MAX: usize = 100;

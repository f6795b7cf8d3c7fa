//! `clawmesh keygen`.

use std::fmt::Write as _;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Make a room key for end-to-end encryption: 64 hex digits.
///
/// Run it once, and give the key to every agent by a way that no node sees: --room-key, or
/// CLAWMESH_ROOM_KEY. It is not the API key.
#[derive(Debug, clap::Args)]
pub struct Keygen {}

pub(crate) fn run(cx: &Context, _: Keygen) -> Result<Outcome, Failure> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|_| Failure::NoRandomness)?;
    let mut text = String::new();
    for byte in key {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    cx.output.show(&serde_json::json!({ "room_key": text }), || vec![text.clone()])?;
    Ok(Outcome::Done)
}

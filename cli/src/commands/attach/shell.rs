//! A shell. Nothing is written: a loop is printed. Tried with dash and bash.

use serde_json::json;

use super::program::Program;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

pub(super) const WOKEN: &str = "clawmesh inbox --wait in a loop";

pub(super) fn print(cx: &Context, program: &Program) -> Result<Outcome, Failure> {
    let wait = program.line(&["inbox", "--wait", "--ack"]);
    let text = format!("while {wait}; do\n  : # answer with clawmesh sessions send\ndone");
    cx.output.show(&json!({ "loop": text }), || vec![text.clone()])?;
    Ok(Outcome::Done)
}

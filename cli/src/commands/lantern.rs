//! `clawmesh lantern`: structured reasoning over ordinary messages, as docs/lantern.md specifies it.
//!
//! In reading order: [`say`] (sends), [`read`] (the room's history), [`validate`].

pub mod read;
pub mod say;
pub mod validate;

use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Claims that can be proven wrong, evidence, and what was agreed. Optional: plain chat is the default.
///
/// `assert` or `probe` opens a thread; its number is the thread's id. Others `challenge`, somebody
/// `resolve`s by evidence, and `fuse` commits what is agreed.
#[derive(Debug, clap::Subcommand)]
pub enum Lantern {
    /// Say who you are and what you can do
    Hello(say::Hello),
    /// Ask something; opens a thread
    Probe(say::Probe),
    /// Claim something, and say what would prove it wrong; opens a thread
    Assert(say::Assert),
    /// Claim something against a message, and say what would decide
    Challenge(say::Challenge),
    /// Say what was observed, and what that rests on
    Resolve(say::Resolve),
    /// Commit what is agreed, and which claims held
    Fuse(say::Fuse),
    /// Say what you take the shared state to be
    Sync(say::Sync),
    /// Throw in an idea beside the matter
    Spark(say::Spark),
    /// Say the fate of an idea
    Harvest(say::Harvest),
    /// Say why nothing becomes of an idea
    Bury(say::Bury),
    /// List who introduced itself, and each thread with its state and headline
    Threads(read::WholeRoom),
    /// Show every message of a thread
    Show(read::Show),
    /// List what was committed to the shared state
    State(read::WholeRoom),
    /// List how well each agent's confidence was placed: mean loss, the lower the better
    Calibration(read::WholeRoom),
    /// Check an envelope before it is sent
    Validate(validate::Validate),
}

pub(crate) async fn run(cx: &Context, args: Lantern) -> Result<Outcome, Failure> {
    match args {
        Lantern::Hello(args) => say::run(cx, args).await,
        Lantern::Probe(args) => say::run(cx, args).await,
        Lantern::Assert(args) => say::run(cx, args).await,
        Lantern::Challenge(args) => say::run(cx, args).await,
        Lantern::Resolve(args) => say::run(cx, args).await,
        Lantern::Fuse(args) => say::run(cx, args).await,
        Lantern::Sync(args) => say::run(cx, args).await,
        Lantern::Spark(args) => say::run(cx, args).await,
        Lantern::Harvest(args) => say::run(cx, args).await,
        Lantern::Bury(args) => say::run(cx, args).await,
        Lantern::Threads(args) => read::threads(cx, &args).await,
        Lantern::Show(args) => read::show(cx, &args).await,
        Lantern::State(args) => read::state(cx, &args).await,
        Lantern::Calibration(args) => read::calibration(cx, &args).await,
        Lantern::Validate(args) => validate::run(cx, &args),
    }
}

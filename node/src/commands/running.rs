//! Asking the node that runs, for commands that need one.

use anyhow::{Error, Result, anyhow};
use protocol::operator::{Answer, Request};

use super::node_args::NodeArgs;
use crate::{
    control::client::ask,
    files::{DataDir, RunFile},
};

/// The answer of the node that runs there.
pub(super) fn asked(node_args: &NodeArgs, request: Request) -> Result<Answer> {
    Ok(asked_where(node_args, request)?.1)
}

/// The same, with the node's own description of where it is.
pub(super) fn asked_where(node_args: &NodeArgs, request: Request) -> Result<(RunFile, Answer)> {
    let path = node_args.clone().layered(None)?.data_dir()?;
    let dir = DataDir::existing(&path)?;
    ask(&dir, request)?.ok_or_else(|| {
        anyhow!(
            "no node runs on {}: start it with `clawmeshd up`, or name another --data-dir",
            path.display()
        )
    })
}

/// A request with no other answer than that it is done.
pub(super) fn done(node_args: &NodeArgs, request: Request) -> Result<()> {
    let Answer::Done = asked(node_args, request)? else { return Err(strange()) };
    Ok(())
}

/// The node answers what was not asked. Each request has one kind of answer, so whatever else comes is of
/// a node that takes it for something else.
pub(super) fn strange() -> Error {
    anyhow!("the running node answers something else; is it of another version?")
}

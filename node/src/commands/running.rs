//! Asking the node that runs, for commands that need one.

use anyhow::{Error, Result, anyhow};
use protocol::operator::{Answer, Request};

use super::node_args::NodeArgs;
use crate::{control::client::ask, files::DataDir};

/// The answer of the node that runs there.
pub(super) fn asked(node_args: &NodeArgs, request: Request) -> Result<Answer> {
    let path = node_args.clone().layered(None)?.data_dir()?;
    let dir = DataDir::existing(&path)?;
    let answer = ask(&dir, request)?.map(|(_, answer)| answer);
    answer.ok_or_else(|| {
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

//! How the node's threads come to their end, and where that is heard of.

use tokio::sync::mpsc;

/// How the engine's thread came to its end.
#[derive(Debug)]
pub(crate) enum End {
    /// As it was asked to.
    Stopped,
    /// The node cannot go on.
    Failed(anyhow::Error),
}

/// Where the first end is heard of. Later ones follow from it.
#[derive(Clone, Debug)]
pub(crate) struct Ending(mpsc::Sender<End>);

impl Ending {
    pub(crate) fn channel() -> (Ending, mpsc::Receiver<End>) {
        let (sender, receiver) = mpsc::channel(1);
        (Ending(sender), receiver)
    }

    pub(crate) fn say(&self, end: End) {
        // Full: one was said already. Closed: the process is ending anyway.
        drop(self.0.try_send(end));
    }
}

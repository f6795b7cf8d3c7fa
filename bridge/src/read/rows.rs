//! Rows of a dialect's own: kept at this node, and nowhere else, through restarts. The core does not look into them.

use mesh::api::command::{Command, Opaque};

use super::Desk;
use crate::{
    backend::{Kept, ReadError, Reads},
    reply::{Failure, Reply},
    seam::{
        answer,
        refusal::{Bound, Refusal},
    },
};

#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
impl Desk {
    /// Keeps a row under a name, or forgets it. Done when it is durable. Names of a dialect begin with a word of its own.
    pub async fn keep(&self, name: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), Refusal> {
        let (reply, ended) = Reply::once();
        let command = Command::Keep { name, value: value.map(Opaque) };
        self.office.mesh.call(command, reply);
        let ended = ended.await.unwrap_or(Err(Failure::Unknown));
        answer::read(ended, Bound::Node)
    }

    /// Reads, on a thread that may block.
    pub(crate) async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Reads) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, Refusal> {
        Ok(self.office.reader.blocking(read).await?)
    }

    /// The rows whose names begin so.
    pub async fn kept(&self, prefix: Vec<u8>) -> Result<Vec<Kept>, Refusal> {
        let read = self.office.reader.blocking(move |reads| reads.kept(&prefix));
        Ok(read.await?)
    }
}

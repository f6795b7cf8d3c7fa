//! Requests of this node's agents that nobody was given yet: what the engine has to go on with after a start.

use mesh::{
    api::{batch::Change, delivery::RequestRecord},
    name::id::MessageId,
};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use std::collections::BTreeMap;

use crate::{
    error::{CommitError, ReadError},
    schema::{REQUESTS, decode, encode, table},
};

/// The rows of a batch, the last one of each message.
#[derive(Debug, Default)]
pub(crate) struct Requests<'b>(BTreeMap<MessageId, Option<&'b RequestRecord>>);

impl<'b> Requests<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A change that is none of requests does nothing.
    pub(crate) fn add(&mut self, change: &'b Change) {
        if let Change::Request { message, record } = change {
            self.0.insert(*message, record.as_ref());
        }
    }

    pub(crate) fn apply(&self, write: &WriteTransaction) -> Result<(), CommitError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut requests = write.open_table(REQUESTS)?;
        for (message, record) in &self.0 {
            match record {
                Some(record) => requests.insert(&message.0, encode(*record).as_slice())?,
                None => requests.remove(&message.0)?,
            };
        }
        Ok(())
    }
}

/// All of them.
pub(crate) fn all(read: &ReadTransaction) -> Result<Vec<RequestRecord>, ReadError> {
    table(read, REQUESTS)?.iter()?.map(|row| decode(row?.1.value(), "request")).collect()
}

/// Whether each can be read.
pub(crate) fn are_sound(read: &ReadTransaction) -> Result<bool, ReadError> {
    for row in table(read, REQUESTS)?.iter()? {
        if decode::<RequestRecord>(row?.1.value(), "request").is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

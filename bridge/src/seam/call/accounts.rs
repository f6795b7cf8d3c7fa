//! Calls about accounts and their records. The dialect has judged the asker: it has the account's secret.

use std::sync::Arc;

use mesh::{
    api::{
        account::{RecordWrite, RecordWrites},
        command::Command,
    },
    name::{account::Label, id::KeyPrint, key::KeySecret},
    wire::record::Stamp,
};

use super::to_mesh::ToMesh;
use crate::{seam::refusal::Refusal, session::party::Party};

/// Have an account known to the mesh, with these labels. Answered when the claim has a number and is durable. Repeated with
/// other labels it claims these, too.
#[derive(Clone, Debug)]
pub struct ClaimAccount {
    /// The account.
    pub account: Arc<KeySecret>,
    /// At most [`mesh::limits::ACCOUNT_LABELS_MAX`].
    pub labels: Vec<Label>,
}

/// Write records of an account, all of them or none. Answered with their stamps, in their order, when they are durable here.
#[derive(Clone, Debug)]
pub struct WriteRecords {
    /// The account.
    pub account: Arc<KeySecret>,
    /// At most [`mesh::limits::RECORD_WRITES_MAX`], and [`mesh::limits::RECORD_WRITES_BYTES_MAX`].
    pub writes: Vec<RecordWrite>,
    /// Their stamps are above this one.
    pub above: Stamp,
}

/// An account's key was shown to this node, which keeps the account's texts from now on.
#[derive(Clone, Debug)]
pub struct PresentAccount(pub Arc<KeySecret>);

/// Look for an account. One that is not known here is asked of connected nodes before the answer: a second at most.
#[derive(Clone, Copy, Debug)]
pub struct FindAccount(pub KeyPrint);

/// The accounts that claim a label, in the order in which they count.
#[derive(Clone, Copy, Debug)]
pub struct ListClaims(pub Label);

// Any party may ask for these: the account's secret opens them.

impl ToMesh for ClaimAccount {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        let ClaimAccount { account, labels } = self;
        Ok(Command::ClaimAccount { account, labels })
    }
}

impl ToMesh for WriteRecords {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        let WriteRecords { account, writes, above } = self;
        Ok(Command::WriteRecords(Box::new(RecordWrites { account, writes, above })))
    }
}

impl ToMesh for PresentAccount {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::PresentAccount(self.0))
    }
}

impl ToMesh for FindAccount {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::FindAccount(self.0))
    }
}

impl ToMesh for ListClaims {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListClaims(self.0))
    }
}

#[cfg(test)]
mod tests;

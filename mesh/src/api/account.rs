//! Accounts and their records, as callers of the engine and readers of the store see them.

use std::sync::Arc;

use thiserror::Error;

use crate::{
    name::{
        account::Label,
        id::{KeyPrint, NodeId},
        key::{KeyHalves, KeySecret},
        number::Number,
    },
    records::collection::Collection,
    wire::record::{CollectionNumber, RecordId, Stamp},
};

/// An account that the directory knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// Its print.
    pub account: KeyPrint,
    /// Its public halves: signatures are checked with one, and others seal to the other.
    pub halves: KeyHalves,
    /// Its claims, in the order in which they count.
    pub claims: Vec<ClaimView>,
    /// It has ended, for ever: nothing that it writes is kept.
    pub ended: bool,
}

/// A claim of an account. Of several claims of one label the one with the lowest number counts, then the position: they come
/// in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimView {
    /// The names that it claims.
    pub labels: Vec<Label>,
    /// Its lowest number, if it has one. Nothing that comes later is before one that has.
    pub number: Option<Number>,
    /// The node that wrote it.
    pub node: NodeId,
    /// When that node wrote it, by its clock. Unix milliseconds.
    pub wall_ms: u64,
}

/// An account that claims a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountClaim {
    /// The account.
    pub account: KeyPrint,
    /// The first of its claims of that label.
    pub claim: ClaimView,
}

/// A record that an account writes, or deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordWrite {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its id, as its kind makes it from the content.
    pub id: RecordId,
    /// Its content. `None`: it is deleted.
    pub body: Option<Vec<u8>>,
    /// Bytes of it that travel apart.
    pub apart: Option<Vec<u8>>,
}

impl RecordWrite {
    /// Without bytes that travel apart.
    #[must_use]
    pub fn new(collection: CollectionNumber, id: RecordId, body: Option<Vec<u8>>) -> RecordWrite {
        RecordWrite { collection, id, body, apart: None }
    }
}

/// Records that an account writes together: all of them or none.
#[derive(Clone, Debug)]
pub struct RecordWrites {
    /// The account, which signs them.
    pub account: Arc<KeySecret>,
    /// The records.
    pub writes: Vec<RecordWrite>,
    /// Their stamps are above this one.
    pub above: Stamp,
}

/// A record as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordView {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its id.
    pub id: RecordId,
    /// The account that owns it.
    pub owner: KeyPrint,
    /// The owner's public halves. `None`: the record is gone.
    pub halves: Option<KeyHalves>,
    /// When it was written. Of a record that is gone it says nothing.
    pub stamp: Stamp,
    /// Its content. `None`: it was deleted, or is gone.
    pub body: Option<Vec<u8>>,
    /// Of it that travel apart.
    pub apart_bytes: u32,
}

impl RecordView {
    /// Whether it is not kept any more, without a successor: its owner has ended, or others have pushed it out.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.halves.is_none()
    }
}

/// Where the bytes are that travel apart from a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentState {
    /// They are here.
    pub held: bool,
    /// They are here, and another node has said that it has all of them.
    pub copied: bool,
}

/// How far a reader has followed the changes of records at this node. It means nothing at others, or after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The number of the last change that the reader has.
    pub at: u64,
    /// The number of the last change when it began to read: nothing that was gone by then was ever given to it.
    pub began: u64,
}

impl Mark {
    /// Of a reader that knows no record.
    pub const START: Mark = Mark { at: 0, began: 0 };
}

/// Records that have changed since a mark, each once and as it is now, in the order of their last changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordNews {
    /// They. Some are gone: [`RecordView::is_gone`].
    pub records: Vec<RecordView>,
    /// The mark to go on from.
    pub mark: Mark,
    /// There are more: to be asked for at once.
    pub more: bool,
    /// The reader is to forget all that it has from before: too many records have gone since to tell which. These are the
    /// first ones of all that there are.
    pub anew: bool,
}

/// Some of the records of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPage {
    /// By id, then by owner; deletions are among them.
    pub records: Vec<RecordView>,
    /// There are more, after the last one.
    pub more: bool,
}

/// Why an account does not get what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AccountRefused {
    /// A bound is reached.
    #[error(transparent)]
    Full(RecordBound),
    /// The directory does not know the account, or not any more.
    #[error("no such account")]
    Unknown,
    /// It has ended, for ever.
    #[error("the account was deleted")]
    Ended,
    /// The record was deleted, for ever.
    #[error("it was deleted")]
    Deleted,
    /// A record is not of the form that its kind has, or is not of an account's kind, or its id is another one's; or some are of
    /// the mesh and others of this node alone.
    #[error("a record is not of the form that its kind has")]
    Form,
    /// Bytes that travel apart from records of one account are as many as they may be together.
    #[error("the texts that one account has sent may have {0} bytes together")]
    TooManyBytes(u64),
    /// More records at once than may be, or larger ones.
    #[error("too many records at once")]
    TooMuch,
    /// Others have a record of the account that is later than this node's clock.
    #[error("the clock of this node is behind the records of this account")]
    Behind,
}

/// A bound of records that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}: there may be {max} {}, deleted ones included", .whose.text(), name(*.collection))]
pub struct RecordBound {
    /// Of which kind of records. `None`: of accounts.
    pub collection: Option<CollectionNumber>,
    /// Whose.
    pub whose: Whose,
    /// As many as there may be.
    pub max: usize,
}

/// Whose bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The account's.
    Account,
    /// That of all accounts that one node has claimed.
    Node,
    /// The mesh's.
    Mesh,
}

impl Whose {
    fn text(self) -> &'static str {
        match self {
            Whose::Account => "of one account",
            Whose::Node => "of all accounts of one node",
            Whose::Mesh => "of the mesh",
        }
    }
}

fn name(collection: Option<CollectionNumber>) -> &'static str {
    collection.and_then(Collection::of).map_or("accounts", |collection| collection.name)
}

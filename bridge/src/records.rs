//! Questions about records of accounts: dialects ask them, and the store answers.

use mesh::{
    api::account::Mark,
    name::id::KeyPrint,
    wire::record::{CollectionNumber, RecordId},
};

/// The records of some kinds that have changed here since a mark.
#[derive(Clone, Debug)]
pub struct FollowRecords {
    /// The kinds.
    pub collections: Vec<CollectionNumber>,
    /// Where the reader is.
    pub after: Mark,
    /// At most so many.
    pub limit: usize,
}

/// One record, as it is kept here; a deletion, too. `None`: there is none.
#[derive(Clone, Copy, Debug)]
pub struct GetRecord {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its id.
    pub id: RecordId,
    /// Its owner.
    pub owner: KeyPrint,
}

/// The bytes that travel apart from a record. `None`: they are not here.
#[derive(Clone, Copy, Debug)]
pub struct GetContent {
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its id.
    pub id: RecordId,
    /// Its owner.
    pub owner: KeyPrint,
}

/// Where the bytes are that travel apart from some records of a kind.
#[derive(Clone, Debug)]
pub struct LocateContents {
    /// The kind.
    pub collection: CollectionNumber,
    /// The records: id and owner. Answered in this order.
    pub keys: Vec<(RecordId, KeyPrint)>,
}

/// The records of a kind, by id.
#[derive(Clone, Debug)]
pub struct ListRecords {
    /// The kind.
    pub collection: CollectionNumber,
    /// Only those of this owner.
    pub owner: Option<KeyPrint>,
    /// Only those whose ids begin so.
    pub first: Vec<u8>,
    /// Only those after this one.
    pub after: Option<(RecordId, KeyPrint)>,
    /// At most so many.
    pub limit: usize,
}

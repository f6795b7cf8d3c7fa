//! Records of listings: profiles of accounts, jobs, reviews, and when an account was last seen. Each account writes its own,
//! and all nodes have them. The texts mean something to a dialect alone; here stand the things that all nodes have to know alike: forms,
//! ids, bounds, and what goes with an account that ends.

mod mail;

use minicbor::{Decode, Encode};

pub use self::mail::{
    Correspondence, DELIVERED, Delivered, Envelope, Form, MAILS, MARKS, Mail, Mark, NOTICES,
    Notice, PRESENTED, presented_id,
};

use super::collection::{Collection, Family, Merge, Owners, Place, Writer};
use crate::{
    limits::{
        ACCOUNT_RECORD_BYTES_MAX, ACCOUNTS_MAX, ACCOUNTS_PER_NODE_MAX,
        FINDER_CERTIFICATE_BYTES_MAX, FINDER_DESCRIPTION_BYTES_MAX, FINDER_FORMER_MAX,
        FINDER_HANDLE_BYTES_MAX, FINDER_JOBS_MAX, FINDER_JOBS_PER_ACCOUNT_MAX,
        FINDER_JOBS_PER_NODE_MAX, FINDER_METADATA_BYTES_MAX, FINDER_METHOD_BYTES_MAX,
        FINDER_METHODS_MAX, FINDER_NAME_BYTES_MAX, FINDER_PRICE_BYTES_MAX, FINDER_PROOF_BYTES_MAX,
        FINDER_REVIEW_BYTES_MAX, FINDER_REVIEWS_MAX, FINDER_REVIEWS_PER_ACCOUNT_MAX,
        FINDER_REVIEWS_PER_NODE_MAX, FINDER_USERNAME_BYTES_MAX, FINDER_VAULT_BYTES_MAX,
    },
    name::{
        id::{Hash, KeyPrint, NodeId, sha256},
        identity::Judge,
        key::{KeyHalves, KeySecret, ShortKey},
    },
    wire::{
        cbor::encode,
        record::{CollectionNumber, RecordId, Stamp},
    },
};

/// Profiles: one of each account. Its deletion ends the account, for ever.
pub static PROFILES: Collection = Collection {
    number: CollectionNumber(32),
    name: "finder.profile",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(Family { founds: true, only: Some(Profile::id), ..FAMILY }),
    merge: Merge::Final,
    body_bytes_max: ACCOUNT_RECORD_BYTES_MAX,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: 1,
    node_max: ACCOUNTS_PER_NODE_MAX,
    names: |body, owner| Profile::decode(body).map(|_| Profile::id(owner)),
};

/// Jobs. One that is deleted never comes back.
pub static JOBS: Collection = Collection {
    number: CollectionNumber(33),
    name: "finder.job",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(Family { all_max: FINDER_JOBS_MAX, ..FAMILY }),
    merge: Merge::Final,
    body_bytes_max: 28 * 1024,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: FINDER_JOBS_PER_ACCOUNT_MAX,
    node_max: FINDER_JOBS_PER_NODE_MAX,
    names: |body, owner| Some(Job::decode(body)?.id(owner)),
};

/// Reviews: one by each account of each job. One that is deleted can be written again.
pub static REVIEWS: Collection = Collection {
    number: CollectionNumber(34),
    name: "finder.review",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(Family {
        all_max: FINDER_REVIEWS_MAX,
        about: Some(|body| Some(Review::decode(body)?.reviewee)),
        ..FAMILY
    }),
    merge: Merge::Latest,
    body_bytes_max: 20 * 1024,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: FINDER_REVIEWS_PER_ACCOUNT_MAX,
    node_max: FINDER_REVIEWS_PER_NODE_MAX,
    names: |body, owner| Some(Review::decode(body)?.id(owner)),
};

/// When accounts were last seen: one of each.
pub static SEEN: Collection = Collection {
    number: CollectionNumber(35),
    name: "finder.seen",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(Family { only: Some(Seen::id), ..FAMILY }),
    merge: Merge::Latest,
    body_bytes_max: 64,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: 1,
    node_max: ACCOUNTS_PER_NODE_MAX,
    names: |body, owner| Seen::decode(body).map(|_| Seen::id(owner)),
};

const FAMILY: Family =
    Family { founds: false, only: None, about: None, all_max: ACCOUNTS_MAX, kept: None };

/// The id of a UUID's form (version 8) that these parts give.
fn id_of(parts: &[&[u8]]) -> RecordId {
    let mut id = [0; 16];
    id.copy_from_slice(&sha256(parts)[..16]);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RecordId(id)
}

fn read<'b, T: Decode<'b, ()>>(body: &'b [u8], fits: impl FnOnce(&T) -> bool) -> Option<T> {
    minicbor::decode(body).ok().filter(fits)
}

fn within(text: &str, max: usize) -> bool {
    text.len() <= max
}

/// An account as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Profile {
    /// The name that it claims, as it was typed.
    #[n(0)]
    pub username: String,
    /// Its name, for people.
    #[n(1)]
    pub name: String,
    /// Its OpenPGP certificate, not armored.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub certificate: Vec<u8>,
    /// Those that it had before: at most [`FINDER_FORMER_MAX`], together no larger than one may be.
    #[n(3)]
    pub former: Vec<FormerCertificate>,
    /// Ways to pay it.
    #[n(4)]
    pub payment: Vec<String>,
    /// Ways to reach it.
    #[n(5)]
    pub contact: Vec<Contact>,
    /// When it was registered.
    #[n(6)]
    pub registered: Stamp,
    /// The public half of its mailbox.
    #[cbor(n(7), with = "minicbor::bytes")]
    pub mailbox: [u8; 32],
    /// The certificate's detached signature over the account.
    #[cbor(n(8), with = "minicbor::bytes")]
    pub proof: Option<Vec<u8>>,
    /// The certificate's secret key, sealed, where a node made it.
    #[cbor(n(9), with = "minicbor::bytes")]
    pub vault: Option<Vec<u8>>,
    /// The node that carries its mail into rooms, where one does.
    #[n(10)]
    pub host: Option<NodeId>,
}

/// A certificate that an account had.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FormerCertificate {
    /// Not armored.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub certificate: Vec<u8>,
    /// It is shown until then. Unix milliseconds.
    #[n(1)]
    pub until_ms: u64,
}

/// A way to reach somebody.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Contact {
    /// Which.
    #[n(0)]
    pub method: String,
    /// The name there, if it needs one.
    #[n(1)]
    pub handle: Option<String>,
}

impl Profile {
    /// The id of an account's profile.
    #[must_use]
    pub fn id(account: KeyPrint) -> RecordId {
        id_of(&[b"clawmesh finder profile", &account.0])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// `None`: it has not this form, or a part of it is larger than it may be.
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Profile> {
        read(body, Profile::fits)
    }

    /// Whether no part of it is larger than it may be. All of it together has to be within the collection's bound, too.
    #[must_use]
    pub fn fits(&self) -> bool {
        let is_short =
            |bytes: &Option<Vec<u8>>, max| bytes.as_ref().is_none_or(|it| it.len() <= max);
        let former: usize = self.former.iter().map(|former| former.certificate.len()).sum();
        let is_method = |text: &str| within(text, FINDER_METHOD_BYTES_MAX);
        let is_contact = |contact: &Contact| {
            let handle = contact.handle.as_deref().unwrap_or_default();
            is_method(&contact.method) && within(handle, FINDER_HANDLE_BYTES_MAX)
        };
        within(&self.username, FINDER_USERNAME_BYTES_MAX)
            && within(&self.name, FINDER_NAME_BYTES_MAX)
            && self.certificate.len() <= FINDER_CERTIFICATE_BYTES_MAX
            && self.former.len() <= FINDER_FORMER_MAX
            && former <= FINDER_CERTIFICATE_BYTES_MAX
            && self.payment.len() <= FINDER_METHODS_MAX
            && self.payment.iter().all(|method| is_method(method))
            && self.contact.len() <= FINDER_METHODS_MAX
            && self.contact.iter().all(is_contact)
            && is_short(&self.proof, FINDER_PROOF_BYTES_MAX)
            && is_short(&self.vault, FINDER_VAULT_BYTES_MAX)
    }
}

/// A listing.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Job {
    /// Drawn for it: its id is made from this.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub nonce: [u8; 16],
    /// Its title.
    #[n(1)]
    pub title: String,
    /// The offer, in words.
    #[n(2)]
    pub description: String,
    /// The price, in its owner's words.
    #[n(3)]
    pub price: String,
    /// How the price is meant.
    #[n(4)]
    pub pricing: Pricing,
    /// Whether it is listed.
    #[n(5)]
    pub active: bool,
    /// More about it: JSON.
    #[n(6)]
    pub metadata: String,
    /// When it was made.
    #[n(7)]
    pub created: Stamp,
}

/// How the price of a job is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Pricing {
    /// It costs nothing.
    #[n(0)]
    Free,
    /// As it says.
    #[n(1)]
    Fixed,
    /// It can be talked about.
    #[default]
    #[n(2)]
    Negotiable,
}

impl Job {
    /// Its id, as a job of this account.
    #[must_use]
    pub fn id(&self, account: KeyPrint) -> RecordId {
        id_of(&[b"clawmesh finder job", &account.0, &self.nonce])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// See [`Profile::decode`].
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Job> {
        read(body, Job::fits)
    }

    /// See [`Profile::fits`].
    #[must_use]
    pub fn fits(&self) -> bool {
        within(&self.title, FINDER_NAME_BYTES_MAX)
            && within(&self.description, FINDER_DESCRIPTION_BYTES_MAX)
            && within(&self.price, FINDER_PRICE_BYTES_MAX)
            && within(&self.metadata, FINDER_METADATA_BYTES_MAX)
    }
}

/// The opinion of an account about another one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Review {
    /// The job that it is about.
    #[n(0)]
    pub job: RecordId,
    /// The account whose job it is.
    #[n(1)]
    pub offered_by: KeyPrint,
    /// The job's title, then.
    #[n(2)]
    pub title: String,
    /// The account that it is about. It goes with that one.
    #[n(3)]
    pub reviewee: KeyPrint,
    /// How good it was. Any other number than 1 to 5 makes it no review.
    #[n(4)]
    pub stars: u8,
    /// In words.
    #[n(5)]
    pub text: String,
    /// When it was written first.
    #[n(6)]
    pub created: Stamp,
    /// The reviewee's word that the two did business.
    #[n(7)]
    pub receipt: Option<Receipt>,
}

impl Review {
    /// Its id, as a review by this account.
    #[must_use]
    pub fn id(&self, account: KeyPrint) -> RecordId {
        Review::id_of(account, self.job)
    }

    /// The id of an account's review of a job.
    #[must_use]
    pub fn id_of(account: KeyPrint, job: RecordId) -> RecordId {
        id_of(&[b"clawmesh finder review", &account.0, &job.0])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// See [`Profile::decode`].
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Review> {
        read(body, Review::fits)
    }

    /// See [`Profile::fits`].
    #[must_use]
    pub fn fits(&self) -> bool {
        within(&self.title, FINDER_NAME_BYTES_MAX) && within(&self.text, FINDER_REVIEW_BYTES_MAX)
    }
}

/// An account's word that it has done business with another one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// The step that it came with.
    #[n(0)]
    pub step: ReceiptStep,
    /// SHA-256 of the session's id.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub session: Hash,
    /// By the account that gives it.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub signature: [u8; 64],
}

/// The step of a session that a receipt came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum ReceiptStep {
    /// The work was ordered.
    #[n(0)]
    Execute,
    /// It was delivered.
    #[n(1)]
    Result,
}

impl Receipt {
    /// The word of `by` for `to`.
    ///
    /// # Errors
    ///
    /// The text of `by` is too short for its halves to be shown.
    pub fn sign(
        by: &KeySecret,
        to: KeyPrint,
        step: ReceiptStep,
        session: &str,
    ) -> Result<Receipt, ShortKey> {
        let session = sha256(&[session.as_bytes()]);
        let signature = by.sign(&receipt_text(by.print(), to, step, &session))?;
        Ok(Receipt { step, session, signature })
    }

    /// Whether it is the word of `by` for `to`.
    #[must_use]
    pub fn is_signed(&self, judge: &dyn Judge, by: &KeyHalves, to: KeyPrint) -> bool {
        let text = receipt_text(by.print(), to, self.step, &self.session);
        judge.holds_key(&by.signer, &text, &self.signature)
    }
}

fn receipt_text(by: KeyPrint, to: KeyPrint, step: ReceiptStep, session: &Hash) -> Vec<u8> {
    let step = match step {
        ReceiptStep::Execute => 0,
        ReceiptStep::Result => 1,
    };
    [b"clawmesh finder receipt".as_slice(), &by.0, &to.0, &[step], session].concat()
}

/// When an account was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Seen {
    /// Unix milliseconds.
    #[n(0)]
    pub wall_ms: u64,
}

impl Seen {
    /// The id of the record of an account.
    #[must_use]
    pub fn id(account: KeyPrint) -> RecordId {
        id_of(&[b"clawmesh finder seen", &account.0])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// See [`Profile::decode`].
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Seen> {
        minicbor::decode(body).ok()
    }
}

#[cfg(test)]
mod tests;

//! Mail between accounts: a record that all nodes have, and a text that travels apart from it. Subject and text are sealed
//! between the two accounts' mailboxes, so the nodes that carry them read neither.

use minicbor::{Decode, Encode, bytes::ByteVec};
use zeroize::Zeroizing;

use super::{FAMILY, Receipt, id_of, read};
use crate::{
    limits::{
        FINDER_LETTER_BYTES_MAX, FINDER_MAIL_KEPT, FINDER_MAILS_MAX, FINDER_MAILS_PER_ACCOUNT_MAX,
        FINDER_MAILS_PER_NODE_MAX, FINDER_NOTICE_BYTES_MAX, FINDER_NOTICES_MAX, FINDER_PRESENTED,
        FINDER_SUBJECT_BYTES_MAX, SEAL_BYTES,
    },
    name::{
        id::{KeyPrint, MeshId},
        key::Mailbox,
    },
    records::collection::{Collection, Family, Merge, Owners, Place, Writer},
    wire::{
        cbor::encode,
        record::{CollectionNumber, RecordId},
        seal::Between,
    },
};

/// Mail: each account writes what it sends. It is never edited, and goes by itself after [`FINDER_MAIL_KEPT`].
pub static MAILS: Collection = Collection {
    number: CollectionNumber(36),
    name: "finder.mail",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(Family {
        all_max: FINDER_MAILS_MAX,
        about: Some(|body| Some(Mail::decode(body)?.to)),
        kept: Some(FINDER_MAIL_KEPT),
        ..FAMILY
    }),
    merge: Merge::Add,
    body_bytes_max: 2 * 1024,
    apart_bytes_max: FINDER_LETTER_BYTES_MAX + SEAL_BYTES,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: FINDER_MAILS_PER_ACCOUNT_MAX,
    node_max: FINDER_MAILS_PER_NODE_MAX,
    names: |body, owner| Some(Mail::decode(body)?.id(owner)),
};

/// Whether mail is read: written by its recipient.
pub static MARKS: Collection = Collection {
    number: CollectionNumber(37),
    name: "finder.mark",
    merge: Merge::Latest,
    names: |body, owner| Some(Mark::decode(body)?.id(owner)),
    owners: Owners::Accounts(Family {
        about: Some(|body| Some(Mark::decode(body)?.from)),
        ..OF_MAIL
    }),
    ..BESIDE_MAIL
};

/// Mail has been shown to its recipient, who says so: the first time counts.
pub static DELIVERED: Collection = Collection {
    number: CollectionNumber(38),
    name: "finder.delivered",
    merge: Merge::End,
    names: |body, owner| Some(Delivered::decode(body)?.id(owner)),
    owners: Owners::Accounts(Family {
        about: Some(|body| Some(Delivered::decode(body)?.from)),
        ..OF_MAIL
    }),
    ..BESIDE_MAIL
};

const OF_MAIL: Family =
    Family { all_max: FINDER_MAILS_MAX, kept: Some(FINDER_MAIL_KEPT), ..FAMILY };

/// What collections beside that of mail have in common.
const BESIDE_MAIL: Collection = Collection {
    number: CollectionNumber(0),
    name: "",
    place: Place::Mesh,
    writer: Writer::Owner,
    owners: Owners::Accounts(OF_MAIL),
    merge: Merge::Latest,
    body_bytes_max: 128,
    apart_bytes_max: 0,
    in_memory: false,
    keeps_replaced: false,
    inherited: false,
    owner_max: FINDER_MAILS_PER_ACCOUNT_MAX,
    node_max: FINDER_MAILS_PER_NODE_MAX,
    names: |_, _| None,
};

/// Accounts whose key was shown to this node, each with its last time, to the day. No other node is told.
pub static PRESENTED: Collection = Collection {
    number: CollectionNumber(39),
    name: "finder.presented",
    place: Place::Node,
    owners: Owners::Accounts(Family {
        only: Some(presented_id),
        kept: Some(FINDER_PRESENTED),
        ..FAMILY
    }),
    body_bytes_max: 8,
    owner_max: 1,
    names: |body, owner| body.is_empty().then(|| presented_id(owner)),
    ..BESIDE_MAIL
};

/// Words of this node for an account. No other node is told.
pub static NOTICES: Collection = Collection {
    number: CollectionNumber(40),
    name: "finder.notice",
    place: Place::Node,
    body_bytes_max: FINDER_NOTICE_BYTES_MAX + 64,
    owner_max: FINDER_NOTICES_MAX,
    node_max: FINDER_MAILS_MAX,
    names: |body, owner| Some(Notice::decode(body)?.id(owner)),
    ..BESIDE_MAIL
};

/// The id of an account's record in [`PRESENTED`].
#[must_use]
pub fn presented_id(account: KeyPrint) -> RecordId {
    id_of(&[b"clawmesh finder presented", &account.0])
}

/// A mail, as all nodes have it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Mail {
    /// Drawn for it: its id is made from this.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub nonce: [u8; 16],
    /// The account that it is for.
    #[n(1)]
    pub to: KeyPrint,
    /// [`Envelope`], sealed.
    #[n(2)]
    pub envelope: ByteVec,
}

impl Mail {
    /// Its id, as a mail of this account.
    #[must_use]
    pub fn id(&self, account: KeyPrint) -> RecordId {
        Mail::id_of(account, &self.nonce)
    }

    /// The id of the mail of an account that this was drawn for.
    #[must_use]
    pub fn id_of(account: KeyPrint, nonce: &[u8; 16]) -> RecordId {
        id_of(&[b"clawmesh finder mail", &account.0, nonce])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// See [`Profile::decode`](super::Profile::decode).
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Mail> {
        read(body, |_| true)
    }
}

/// The form of a mail's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Form {
    /// An OpenPGP message, armored.
    #[n(0)]
    Pgp,
    /// As it is.
    #[n(1)]
    Plain,
}

/// The parts of a mail that its two accounts read without its text.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Envelope {
    /// Its subject.
    #[n(0)]
    pub subject: String,
    /// The form of its text.
    #[n(1)]
    pub form: Form,
    /// The fingerprint of the sender's certificate, then.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub sender: [u8; 20],
    /// That of the recipient's.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub recipient: [u8; 20],
    /// The sender's word that the two do business.
    #[n(4)]
    pub receipt: Option<Receipt>,
    /// Bytes that hide how long the subject is.
    #[n(5)]
    padding: ByteVec,
}

/// Envelopes are as long as a multiple of this, so that nodes that carry them do not tell subjects by their length.
const ENVELOPE_STEP: usize = 128;

impl Envelope {
    /// With these parts.
    #[must_use]
    pub fn new(subject: String, form: Form, ends: ([u8; 20], [u8; 20])) -> Envelope {
        let (sender, recipient) = ends;
        Envelope { subject, form, sender, recipient, receipt: None, padding: Vec::new().into() }
    }

    fn padded(&self) -> Vec<u8> {
        let bare = Envelope { padding: Vec::new().into(), ..self.clone() };
        let length = encode(&bare).len();
        // The length of the padding takes two bytes more at most.
        let padding = (length + 2).next_multiple_of(ENVELOPE_STEP) - length - 2;
        encode(&Envelope { padding: vec![0; padding].into(), ..bare })
    }
}

/// Two accounts that write each other: all that they seal between them opens for either, and for nobody else.
#[derive(Debug)]
pub struct Correspondence(Between);

impl Correspondence {
    /// Of an account's own mailbox and the public half of the other one's. `None`: that is a point with which everybody
    /// shares the same secret.
    #[must_use]
    pub fn of(mesh: MeshId, own: &Mailbox, other: &[u8; 32]) -> Option<Correspondence> {
        Between::of(mesh, own, other, b"clawmesh finder mail").map(Correspondence)
    }

    /// A mail that `from` writes.
    #[must_use]
    pub fn seal(
        &self,
        (from, to): (KeyPrint, KeyPrint),
        nonce: [u8; 16],
        envelope: &Envelope,
    ) -> Mail {
        let id = Mail::id_of(from, &nonce);
        let sealed = self.0.seal(&spot(id, from, to, Part::Envelope), &envelope.padded());
        Mail { nonce, to, envelope: sealed.into() }
    }

    /// The envelope of a mail that `from` has written. `None`: it is not of these two, or has no such form.
    #[must_use]
    pub fn open(&self, from: KeyPrint, mail: &Mail) -> Option<Envelope> {
        let spot = spot(mail.id(from), from, mail.to, Part::Envelope);
        let opened = self.0.open(&spot, &mail.envelope)?;
        let envelope = read(&opened, |envelope: &Envelope| {
            envelope.subject.len() <= FINDER_SUBJECT_BYTES_MAX
        })?;
        Some(Envelope { padding: Vec::new().into(), ..envelope })
    }

    /// The text of a mail, as it travels.
    #[must_use]
    pub fn seal_text(&self, (from, to): (KeyPrint, KeyPrint), id: RecordId, text: &str) -> Vec<u8> {
        self.0.seal(&spot(id, from, to, Part::Text), text.as_bytes())
    }

    /// The text again. `None`: it is not of these two, or no text.
    #[must_use]
    pub fn open_text(
        &self,
        (from, to): (KeyPrint, KeyPrint),
        id: RecordId,
        sealed: &[u8],
    ) -> Option<String> {
        String::from_utf8(self.0.open(&spot(id, from, to, Part::Text), sealed)?).ok()
    }
}

/// What an account keeps for itself, where all can see it: between its mailbox and itself.
impl Correspondence {
    /// The vault of a profile.
    #[must_use]
    pub fn seal_vault(&self, account: KeyPrint, secret: &[u8]) -> Vec<u8> {
        self.0.seal(&vault_spot(account), secret)
    }

    /// What is in it. `None`: it is another account's, or was changed.
    #[must_use]
    pub fn open_vault(&self, account: KeyPrint, vault: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.0.open(&vault_spot(account), vault).map(Zeroizing::new)
    }
}

fn vault_spot(account: KeyPrint) -> Vec<u8> {
    [b"vault".as_slice(), &account.0].concat()
}

/// A part of a mail that is sealed by itself.
#[derive(Clone, Copy)]
enum Part {
    Envelope,
    Text,
}

fn spot(id: RecordId, from: KeyPrint, to: KeyPrint, part: Part) -> Vec<u8> {
    let part = match part {
        Part::Envelope => 0,
        Part::Text => 1,
    };
    [&id.0[..], &from.0, &to.0, &[part]].concat()
}

/// Whether a mail is read, as its recipient says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Mark {
    /// The mail.
    #[n(0)]
    pub mail: RecordId,
    /// Its sender: with that account the mark goes.
    #[n(1)]
    pub from: KeyPrint,
    /// Whether it is read.
    #[n(2)]
    pub is_read: bool,
}

/// The parts of what a recipient says of a mail.
macro_rules! of_mail {
    ($kind:ident, $label:literal) => {
        impl $kind {
            /// Its id, as one of this account.
            #[must_use]
            pub fn id(&self, account: KeyPrint) -> RecordId {
                id_of(&[$label, &account.0, &self.from.0, &self.mail.0])
            }

            /// As a record has it.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                encode(self)
            }

            /// See [`Profile::decode`](super::Profile::decode).
            #[must_use]
            pub fn decode(body: &[u8]) -> Option<$kind> {
                read(body, |_| true)
            }
        }
    };
}

of_mail!(Mark, b"clawmesh finder mark");
of_mail!(Delivered, b"clawmesh finder delivered");

/// Mail was shown to its recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Delivered {
    /// The mail.
    #[n(0)]
    pub mail: RecordId,
    /// Its sender: with that account this goes.
    #[n(1)]
    pub from: KeyPrint,
    /// When. Unix milliseconds.
    #[n(2)]
    pub wall_ms: u64,
}

/// A word of this node for an account.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Notice {
    /// Its place among those that are kept: a later one takes the place of the oldest.
    #[n(0)]
    pub place: u16,
    /// What it is about, in a line.
    #[n(1)]
    pub subject: String,
    /// The word.
    #[n(2)]
    pub text: String,
    /// When it was written. Unix milliseconds.
    #[n(3)]
    pub wall_ms: u64,
    /// Whether the account has read it.
    #[n(4)]
    pub is_read: bool,
}

impl Notice {
    /// Its id, as one for this account.
    #[must_use]
    pub fn id(&self, account: KeyPrint) -> RecordId {
        id_of(&[b"clawmesh finder notice", &account.0, &self.place.to_be_bytes()])
    }

    /// As a record has it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// See [`Profile::decode`](super::Profile::decode).
    #[must_use]
    pub fn decode(body: &[u8]) -> Option<Notice> {
        read(body, |notice: &Notice| {
            notice.subject.len() + notice.text.len() <= FINDER_NOTICE_BYTES_MAX
                && usize::from(notice.place) < FINDER_NOTICES_MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{name::key::KeySecret, wire::record::Space};

    const MESH: MeshId = MeshId([1; 16]);

    fn account(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    fn between(own: &KeySecret, other: &KeySecret) -> Correspondence {
        let own = own.mailbox().expect("it is long enough");
        Correspondence::of(MESH, own, &other.halves().mailbox).expect("no common point")
    }

    #[test]
    fn mail_opens_for_its_two_accounts_and_nobody_else() {
        let [ann, bob, eve] = [1, 2, 3].map(account);
        let ends = (ann.print(), bob.print());
        let envelope = Envelope::new("hello".into(), Form::Pgp, ([1; 20], [2; 20]));
        let mail = between(&ann, &bob).seal(ends, [7; 16], &envelope);
        let text = between(&ann, &bob).seal_text(ends, mail.id(ann.print()), "text");
        for (own, other) in [(&ann, &bob), (&bob, &ann)] {
            let both = between(own, other);
            assert_eq!(both.open(ann.print(), &mail).as_ref(), Some(&envelope));
            let id = mail.id(ann.print());
            assert_eq!(both.open_text(ends, id, &text).as_deref(), Some("text"));
            // As another one's, or another mail's.
            assert_eq!(both.open(bob.print(), &mail), None);
            assert_eq!(both.open_text(ends, RecordId([9; 16]), &text), None);
            assert_eq!(both.open_text(ends, id, &mail.envelope), None, "another part");
        }
        for other in [&ann, &bob] {
            assert_eq!(between(&eve, other).open(ann.print(), &mail), None);
        }
        let to_herself = between(&ann, &ann).seal((ann.print(), ann.print()), [7; 16], &envelope);
        assert_eq!(between(&ann, &ann).open(ann.print(), &to_herself), Some(envelope));
    }

    #[test]
    fn a_vault_opens_for_its_account_alone() {
        let [ann, bob] = [1, 2].map(account);
        let vault = between(&ann, &ann).seal_vault(ann.print(), b"secret");
        let opened = between(&ann, &ann).open_vault(ann.print(), &vault);
        assert_eq!(opened.as_deref().map(Vec::as_slice), Some(b"secret".as_slice()));
        assert!(between(&ann, &ann).open_vault(bob.print(), &vault).is_none());
        assert!(between(&bob, &ann).open_vault(ann.print(), &vault).is_none());
    }

    #[test]
    fn the_length_of_an_envelope_does_not_tell_that_of_its_subject() {
        let [ann, bob] = [1, 2].map(account);
        let length = |subject: usize| {
            let envelope = Envelope::new("x".repeat(subject), Form::Pgp, ([1; 20], [2; 20]));
            let both = between(&ann, &bob);
            both.seal((ann.print(), bob.print()), [7; 16], &envelope).envelope.len()
        };
        let all: std::collections::BTreeSet<usize> = (0..=60).map(length).collect();
        assert!(all.len() <= 2, "{all:?}");
        assert!((0..=FINDER_SUBJECT_BYTES_MAX).all(|subject| {
            (length(subject) - SEAL_BYTES).is_multiple_of(ENVELOPE_STEP)
                || (length(subject) - SEAL_BYTES) % ENVELOPE_STEP > ENVELOPE_STEP - 3
        }));
    }

    #[test]
    fn what_a_recipient_says_names_the_mail_and_its_sender() {
        let (owner, from) = (account(1).print(), account(2).print());
        let mail = RecordId([3; 16]);
        let mark = Mark { mail, from, is_read: true };
        let delivered = Delivered { mail, from, wall_ms: 5 };
        let largest = "x".repeat(FINDER_SUBJECT_BYTES_MAX);
        let envelope = Envelope::new(largest, Form::Plain, ([1; 20], [2; 20]));
        let receipt = Receipt::sign(&account(1), from, super::super::ReceiptStep::Result, "x");
        let envelope = Envelope { receipt: receipt.ok(), ..envelope };
        let sealed = between(&account(1), &account(2)).seal((owner, from), [7; 16], &envelope);
        let place = u16::try_from(FINDER_NOTICES_MAX - 1).expect("few");
        let text = "x".repeat(FINDER_NOTICE_BYTES_MAX);
        let notice =
            Notice { place, subject: String::new(), text, wall_ms: u64::MAX, is_read: true };
        let own = Space::Node;
        for (kind, space, body, id, about) in [
            (&MAILS, Space::Mesh, sealed.encode(), sealed.id(owner), Some(from)),
            (&MARKS, Space::Mesh, mark.encode(), mark.id(owner), Some(from)),
            (&DELIVERED, Space::Mesh, delivered.encode(), delivered.id(owner), Some(from)),
            (&PRESENTED, own, Vec::new(), presented_id(owner), None),
            (&NOTICES, own, notice.encode(), notice.id(owner), None),
        ] {
            assert!(kind.is_in(space), "{kind:?}");
            assert!(kind.fits(space, (id, owner), Some(&body)), "{kind:?}");
            assert!(!kind.fits(space, (id, from), Some(&body)), "{kind:?}: another's");
            assert_eq!(kind.about(Some(&body)), about, "{kind:?}");
        }
        assert!(!NOTICES.is_in(Space::Mesh) && !PRESENTED.is_in(Space::Mesh));
        assert!(Notice::decode(&Notice { place: place + 1, ..notice }.encode()).is_none());
    }
}

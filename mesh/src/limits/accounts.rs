//! Bounds of accounts and of their records (`docs/decisions/records.md`).

use std::time::Duration;

/// Accounts of a mesh up to which clients are not refused, those that have ended included: they are never forgotten. Each takes
/// some 400 bytes of memory.
pub const ACCOUNTS_MAX: usize = 100_000;
/// Accounts that are taken in. More than clients may claim: two sides of a split, each within the bound, lose none.
pub const ACCOUNTS_KEPT: usize = ACCOUNTS_MAX + ACCOUNTS_MAX / 9;
/// Accounts that one node may claim: of the entries of its log the first ones count, so that a member that makes up accounts
/// leaves places to others.
pub const ACCOUNTS_PER_NODE_MAX: usize = 4_096;
/// Claims of one account. Each may have other labels.
pub const ACCOUNT_CLAIMS_MAX: usize = 16;
/// Labels of one claim.
pub const ACCOUNT_LABELS_MAX: usize = 4;

/// Records in one command: a client's change is one or two, and an index that is brought from elsewhere goes by parts.
pub const RECORD_WRITES_MAX: usize = 64;
/// Their contents together. All of them are one turn, and one transaction.
pub const RECORD_WRITES_BYTES_MAX: usize = 512 * 1024;

/// The content of an account's record, the largest there is: with its frame it is within one gossip message.
pub const ACCOUNT_RECORD_BYTES_MAX: usize = 44 * 1024;

// Records of listings: `records::finder`.

/// A user name.
pub const FINDER_USERNAME_BYTES_MAX: usize = 64;
/// A name, or a title: 256 characters.
pub const FINDER_NAME_BYTES_MAX: usize = 1_024;
/// A certificate; and all former ones together.
pub const FINDER_CERTIFICATE_BYTES_MAX: usize = 16 * 1024;
/// Former certificates.
pub const FINDER_FORMER_MAX: usize = 4;
/// Ways to pay; and ways to reach somebody.
pub const FINDER_METHODS_MAX: usize = 8;
/// The name of such a way.
pub const FINDER_METHOD_BYTES_MAX: usize = 64;
/// The handle there: 256 characters.
pub const FINDER_HANDLE_BYTES_MAX: usize = 1_024;
/// A detached signature: of RSA with 16,384 bits it has 2 KiB and a frame.
pub const FINDER_PROOF_BYTES_MAX: usize = 4 * 1024;
/// A secret key, sealed.
pub const FINDER_VAULT_BYTES_MAX: usize = 8 * 1024;
/// The text of a job.
pub const FINDER_DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// More about it, as JSON.
pub const FINDER_METADATA_BYTES_MAX: usize = 8 * 1024;
/// A price: 64 characters.
pub const FINDER_PRICE_BYTES_MAX: usize = 256;
/// The text of a review: 4,000 characters.
pub const FINDER_REVIEW_BYTES_MAX: usize = 16_000;

/// Jobs of one account, deleted ones included.
pub const FINDER_JOBS_PER_ACCOUNT_MAX: usize = 1_000;
/// Jobs of all accounts that one node claimed: a third of all, so that one member does not fill the index, and some
/// 1 GiB of others' disks if each is of the largest.
pub const FINDER_JOBS_PER_NODE_MAX: usize = 32_768;
/// Jobs of the mesh up to which clients are not refused.
pub const FINDER_JOBS_MAX: usize = 100_000;
/// Reviews by one account, deleted ones included.
pub const FINDER_REVIEWS_PER_ACCOUNT_MAX: usize = 1_000;
/// The same of all accounts that one node claimed.
pub const FINDER_REVIEWS_PER_NODE_MAX: usize = 65_536;
/// Reviews of the mesh up to which clients are not refused.
pub const FINDER_REVIEWS_MAX: usize = 200_000;

/// Bytes of a mail's subject.
pub const FINDER_SUBJECT_BYTES_MAX: usize = 512;
/// Bytes of a mail's text: what is more belongs into a file that the text names.
pub const FINDER_LETTER_BYTES_MAX: usize = 1024 * 1024;
/// Mails of one account that are kept, those that are marked, and those that were shown to it: 90 days of some 45 a day.
pub const FINDER_MAILS_PER_ACCOUNT_MAX: usize = 4_096;
/// The same of all accounts that one node claimed: a quarter of all, so that one member does not fill the mesh.
pub const FINDER_MAILS_PER_NODE_MAX: usize = 131_072;
/// Mails of the mesh up to which clients are not refused.
pub const FINDER_MAILS_MAX: usize = 500_000;
/// Bytes of the texts of all mails that one account has sent and that are kept.
pub const FINDER_LETTERS_BYTES_MAX: u64 = 240 * 1024 * 1024;
/// For how long mail is kept: long enough for a deal, and no archive.
pub const FINDER_MAIL_KEPT: Duration = Duration::from_hours(90 * 24);
/// A node keeps the mail of an account so long after it was last shown its key.
pub const FINDER_PRESENTED: Duration = Duration::from_hours(30 * 24);
/// A node notes at most so often that an account's key was shown to it.
pub const PRESENTED_EVERY: Duration = Duration::from_hours(24);
/// Records whose time is over are looked for so often, and at most so many go in one turn.
pub const EXPIRY_EVERY: Duration = Duration::from_secs(60);
/// See [`EXPIRY_EVERY`].
pub const EXPIRED_AT_ONCE: usize = 1_024;
/// Notices of a node to an account: the oldest one goes first.
pub const FINDER_NOTICES_MAX: usize = 100;
/// Bytes of a notice's subject and text.
pub const FINDER_NOTICE_BYTES_MAX: usize = 1_024;
/// Bytes of the texts for one account that a node keeps where the account was presented to it: two mailboxes that are
/// full, so that two sides of a split, each within the bound of clients, lose nothing when they meet.
pub const FINDER_RECEIVED_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Bytes of texts that a node carries for others, where its operator says nothing else.
pub const CARRY_BYTES: u64 = 1024 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes that had others would blame each other, or keep other records.
    #[test]
    fn the_bounds_are_those_of_the_protocol() {
        let claims = (ACCOUNT_LABELS_MAX, ACCOUNT_CLAIMS_MAX, ACCOUNTS_PER_NODE_MAX, ACCOUNTS_KEPT);
        assert_eq!(claims, (4, 16, 4_096, 111_111));
        assert_eq!(ACCOUNT_RECORD_BYTES_MAX, 45_056);
    }
}

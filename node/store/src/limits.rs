//! Every bound of the store, with its reason.

/// redb's page cache for the file. redb's own default is 1 GiB a database.
pub const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// The journal of a node's file. Its pages are in memory until they are in their places, so this bounds that memory, too. As long as
/// one of a hundred commits has to wait for a checkpoint, people see it.
pub const JOURNAL_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of it that are made ready when the file is made; with each checkpoint twice as many, for a node that says little needs no more.
pub const JOURNAL_FIRST_BYTES: u64 = 1024 * 1024;
/// A commit of more bytes is written to its places at once: where so much is to be written, a sync more does not count, and writing
/// it twice does.
pub const JOURNAL_RECORD_BYTES_MAX: u64 = 384 * 1024;
/// Bytes of pages that follow each other that are written at once.
pub const JOURNAL_WRITE_BYTES: usize = 128 * 1024;
/// redb's page cache for ephemeral rooms: the pages themselves are memory already.
pub const MEMORY_CACHE_BYTES: usize = 4 * 1024 * 1024;
/// Rows looked at within one snapshot by scans that may go on for long: a snapshot that lives pins
/// the pages it may read, and the file grows meanwhile.
pub const SCAN_ROWS: usize = 4_096;
/// Rows of a page that is read without asking whether there is time for it: a tenth of a
/// millisecond. The default page of clients is half of it.
pub const AT_ONCE_ROWS_MAX: usize = 100;
/// Eras of a room of which that can be said: each is looked at.
pub const AT_ONCE_ERAS_MAX: usize = 64;
/// Numbers beyond a roaming client's page that are searched for entries that its next cursor would
/// hide. Entries further away are not found by that: they are skipped only if the client leaves in
/// the middle of so long a stretch.
pub const PAGE_AHEAD_NUMBERS_MAX: usize = 4_096;
/// Rows given in one page, however many were asked for.
pub const PAGE_ROWS_MAX: usize = 1_000;
/// Numbers of one message that a row tells. Each split adds one or two; a page of rows with many
/// more would be a page of numbers.
pub const ROW_NUMBERS_MAX: usize = 32;
/// Dedup rows are thinned out once per this many new ones: a range removal is not free.
pub const DEDUP_PRUNE_EVERY: usize = 1_024;
/// Bodies dropped at once: each costs a row read, hashed and written, and a commit should not take
/// longer for them than some milliseconds.
pub const PRUNE_ROWS: usize = 256;
/// Bytes of a run besides bodies and entries: ids, backlink, seal and framing. Rounded up.
pub const RUN_OVERHEAD_BYTES: usize = 320;
/// Bytes of an entry of a run, or of a body sent apart, besides the body. Rounded up.
pub const ENTRY_OVERHEAD_BYTES: usize = 96;
/// Numbers below a roaming client's cursor that are searched for entries that it may not have seen,
/// the highest first. A cursor of an era that nobody here has heard of proves nothing: without a
/// bound the whole history would be numbered again for it. Older entries count as seen.
pub const UNPROVEN_NUMBERS_MAX: usize = 4_096;
/// Rooms for which it is remembered up to where cursors were found to be proven.
pub const PROVEN_ROOMS_MAX: usize = 1_024;
/// Rows copied or checked between two words of progress: some milliseconds' worth.
pub const PROGRESS_ROWS: u64 = 8_192;
/// Findings of a check that are told one by one. Of more, how many there are is enough: the store
/// is to be replaced.
pub const FINDINGS_MAX: usize = 200;

/// A record in a message, without its content: its key's halves and signature, its id, its stamp.
pub const RECORD_OVERHEAD_BYTES: usize = 256;

/// Records in one answer to a reader: all fields and cards of an agent are some hundred.
pub const RECORDS_FOUND_MAX: usize = 1_024;

/// Rows of records from which on two threads read them at a start: a thread takes as long to start as some fifty rows.
pub const READ_BY_TWO_FROM: usize = 1_000;

/// Records that are gone and whose last change is kept, so that readers that follow hear of it: some 100 bytes of the file each.
/// More go at once only where a node is shut out whose accounts have many; readers begin anew then.
pub const RECORDS_GONE_KEPT: u64 = 16_384;
/// Records in one answer to a reader that follows.
pub const RECORDS_FOLLOWED_MAX: usize = 1_024;
/// Rows of changes that one such answer looks at: those of other kinds are passed over.
pub const FOLLOWED_ROWS_MAX: usize = 4_096;
/// Bytes of contents in one such answer: one record more at most.
pub const FOLLOWED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// States that records have replaced, of all owners together: 256 of the largest files. Bytes. The owner that has most
/// loses its oldest ones first.
pub const REPLACED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Messages of one segment of the index for searches: some 150 KiB in the file, written in one piece.
pub const SEGMENT_MESSAGES: usize = 4_096;
/// Memory of the words of messages that are in no segment yet, as it is reckoned: large messages make smaller segments.
pub const SEGMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows of the delivery log after which a segment is written, however few messages are among them: a start reads them again.
pub const SEGMENT_ROWS_MAX: usize = 65_536;
/// Bytes of a row of words in the index: what a look-up of a word reads. Two fill a page of redb; a longer row has pages of its
/// own, twice as large as the next smaller power.
pub const SEGMENT_CHUNK_BYTES: usize = 1_900;
/// Rows that are put into the index at once: some milliseconds.
pub const INDEX_STEP_ROWS: usize = 128;
/// Segments from which words of dropped messages are taken at once.
pub const SWEEP_SEGMENTS_MAX: usize = 16;
/// redb's page cache for the index: the system's cache is behind it.
pub const SEARCH_CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Messages that one search reads from the store: some 20 microseconds each. Of more that have the words of a phrase, or were
/// dropped, the page ends early, and says where to go on.
pub const SEARCH_ROWS_MAX: usize = 2_000;
/// Places of messages that one search looks at: some ten nanoseconds each. They are many where a key sees few of them.
pub const SEARCH_PLACES_MAX: usize = 4_000_000;

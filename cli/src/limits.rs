//! Every bound of the client's program, with its reason.

/// Bytes of an envelope's file that are read: no node takes a longer line.
pub const ENVELOPE_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes that a room's LANTERN messages may take in memory. The whole history is read, however long it
/// is, but only what is needed of each such message is kept: some million of them fit.
pub const JOURNAL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Bytes of an answer that are remembered while it is written: as a message may have. Of a longer one the message is shown whole.
pub const LIVE_BYTES_MAX: usize = 256 * 1024;

/// Answers that are written at once and remembered: of further ones the message is shown whole.
pub const LIVE_STREAMS_MAX: usize = 64;

/// Bytes of the messages of one thread that are shown.
pub const THREAD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Characters of a headline, an intent or a seed that are kept: they are one line of a list.
pub const HEADLINE_CHARS_MAX: usize = 500;

/// Characters of an agent's name within an envelope that are kept: nodes take names of 256 bytes.
pub const NAME_CHARS_MAX: usize = 256;

/// Capabilities of a HELLO that are kept: a longer list is cut short.
pub const HELLO_CAPABILITIES_MAX: usize = 64;

/// Numbers of one message that are noted: nodes tell 32.
pub const NUMBERS_OF_MESSAGE_MAX: usize = 64;

/// The longest message of a host, in bytes: as a node takes it.
pub const MCP_LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Messages that are handed to a host's channel at once.
pub const CHANNEL_ITEMS_MAX: u64 = 20;

/// Messages of a host that have no answer yet: as many as a node takes of one agent.
pub const MCP_CALLS_MAX: usize = 64;

/// Bytes of a line that is typed in the shell: no node takes a longer message.
pub const TYPED_BYTES_MAX: usize = 256 * 1024;

/// Lines that the shell's arrow keys bring back.
pub const TYPED_LINES_MAX: usize = 500;

/// Bytes of a mail that are read from standard input: more than any node takes of one, so that it says so, and not this program's memory.
pub const BODY_BYTES_READ_MAX: u64 = 2 * 1024 * 1024;

/// Values of a row of `top` that are kept, one a second: a minute.
pub const TOP_SAMPLES_MAX: usize = 60;

/// Messages of a room that `top` shows: more than the highest screens have lines.
pub const TOP_MESSAGES_MAX: u64 = 100;

/// Characters of one of them: the beginning is enough to see what goes on, and `history` has the rest.
pub const TOP_TEXT_CHARS_MAX: usize = 2_000;

/// Lines of one of them.
pub const TOP_LINES_MAX: usize = 20;

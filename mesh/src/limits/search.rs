//! Bounds of searches.

/// The text of a search, in bytes. Longer ones come from programs that paste, and find nothing.
pub const SEARCH_TEXT_BYTES_MAX: usize = 1_024;
/// Words that a search looks for, those of phrases included: each is looked up in every part of the index.
pub const SEARCH_WORDS_MAX: usize = 16;
/// Characters of a word that count: hashes and encoded bytes are not told apart by more.
pub const WORD_CHARS_MAX: usize = 64;
/// Different words of one message that are found: a text of 64 KiB that repeats no word has some ten thousand, and is no text.
pub const WORDS_PER_MESSAGE_MAX: usize = 4_096;
/// Messages in one page of results.
pub const SEARCH_PAGE_MAX: usize = 100;

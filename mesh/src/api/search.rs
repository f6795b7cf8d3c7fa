//! What a search looks for: words, and the messages that have them. The index of a store and a naive look at a text agree because
//! both ask this module.

use std::{
    collections::BTreeSet,
    ops::Bound::{Included, Unbounded},
};

use crate::{
    limits::{SEARCH_TEXT_BYTES_MAX, SEARCH_WORDS_MAX, WORD_CHARS_MAX, WORDS_PER_MESSAGE_MAX},
    name::{id::RoomId, number::Number},
};

/// The beginning of texts that only their readers can open: they have no words.
const SEALED: &str = "clw1:";

/// The words of a text, in their order: runs of letters and digits, in lower case. A sign of a script without spaces between
/// words is a word.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut word, mut chars) = (String::new(), 0);
    for c in text.chars() {
        let alone = is_word_alone(c);
        if alone || !c.is_alphanumeric() {
            all.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            chars = 0;
            if alone {
                all.push(c.to_string());
            }
            continue;
        }
        chars += 1;
        if chars <= WORD_CHARS_MAX {
            word.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
        }
    }
    all.extend(Some(word).filter(|word| !word.is_empty()));
    all
}

/// Han, Hiragana and Katakana.
fn is_word_alone(c: char) -> bool {
    c.is_alphanumeric()
        && matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The different words by which a message is found: the first [`WORDS_PER_MESSAGE_MAX`]. None of a text that is sealed end to end.
#[must_use]
pub fn found_by(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if is_sealed(text) {
        return found;
    }
    for word in words(text) {
        if found.len() == WORDS_PER_MESSAGE_MAX {
            break;
        }
        found.insert(word);
    }
    found
}

/// Whether only its readers can open a text.
#[must_use]
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(SEALED)
}

/// Words that a message must have, all of them. `"some words"` must stand in it so, and `wor*` begins a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    words: BTreeSet<String>,
    beginnings: BTreeSet<String>,
    phrases: Vec<Vec<String>>,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It is too long.
    #[error("must have at most {SEARCH_TEXT_BYTES_MAX} bytes")]
    Long,
    /// It has too many words.
    #[error("must have at most {SEARCH_WORDS_MAX} words")]
    ManyWords,
    /// It has signs, and no word among them.
    #[error("must have a letter or a digit")]
    NoWord,
}

impl Pattern {
    /// Of a text, as people type it. A text without anything but white space is met by every message.
    ///
    /// # Errors
    /// See [`BadPattern`].
    pub fn parse(text: &str) -> Result<Pattern, BadPattern> {
        if text.len() > SEARCH_TEXT_BYTES_MAX {
            return Err(BadPattern::Long);
        }
        let mut pattern = Pattern::default();
        // Between quotes every other part is a phrase; one that is not closed goes to the end.
        for (i, part) in text.split('"').enumerate() {
            if i % 2 == 1 {
                pattern.add_phrase(words(part));
            } else {
                part.split_whitespace().for_each(|token| pattern.add_token(token));
            }
        }
        let phrases: usize = pattern.phrases.iter().map(Vec::len).sum();
        if pattern.words.len() + pattern.beginnings.len() + phrases > SEARCH_WORDS_MAX {
            return Err(BadPattern::ManyWords);
        }
        let is_empty = pattern == Pattern::default();
        if is_empty && !text.trim().is_empty() { Err(BadPattern::NoWord) } else { Ok(pattern) }
    }

    fn add_phrase(&mut self, mut phrase: Vec<String>) {
        match phrase.len() {
            0 => {}
            1 => self.words.extend(phrase.pop()),
            _ => self.phrases.push(phrase),
        }
    }

    fn add_token(&mut self, token: &str) {
        let mut found = words(token);
        if token.ends_with('*') {
            self.beginnings.extend(found.pop());
        }
        self.words.extend(found);
    }

    /// Whether every message meets it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.beginnings.is_empty() && self.phrases.is_empty()
    }

    /// All words that a message must have, those of phrases included.
    #[must_use]
    pub fn words(&self) -> BTreeSet<&str> {
        let single = self.words.iter().map(String::as_str);
        single.chain(self.phrases.iter().flatten().map(String::as_str)).collect()
    }

    /// The beginnings of words that a message must have.
    pub fn beginnings(&self) -> impl Iterator<Item = &str> {
        self.beginnings.iter().map(String::as_str)
    }

    /// Whether a text meets it.
    #[must_use]
    pub fn is_met_by(&self, text: &str) -> bool {
        if self.is_empty() {
            return !is_sealed(text);
        }
        let found = found_by(text);
        let begins = |beginning: &str| {
            let first = found.range::<str, _>((Included(beginning), Unbounded)).next();
            first.is_some_and(|word| word.starts_with(beginning))
        };
        if !self.words().into_iter().all(|word| found.contains(word))
            || !self.beginnings().all(begins)
        {
            return false;
        }
        if self.phrases.is_empty() {
            return true;
        }
        let sequence = words(text);
        let stands = |phrase: &Vec<String>| {
            sequence.windows(phrase.len()).any(|window| window == phrase.as_slice())
        };
        self.phrases.iter().all(stands)
    }
}

/// A message's place among those that are found: the newest first, by the clocks of their authors' nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// When it was written. Unix milliseconds.
    pub wall_ms: u64,
    /// Where.
    pub room: RoomId,
    /// Its number here.
    pub number: Number,
}

impl Spot {
    /// As a text, for clients that go on from it.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{:x}.{}.{:x}", self.wall_ms, self.room.to_uuid(), self.number.0)
    }

    /// Reads it back.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Spot> {
        let mut parts = text.split('.');
        let wall_ms = u64::from_str_radix(parts.next()?, 16).ok()?;
        let room = RoomId::from_uuid(parts.next()?)?;
        let number = Number(u64::from_str_radix(parts.next()?, 16).ok()?);
        parts.next().is_none().then_some(Spot { wall_ms, room, number })
    }
}

/// The messages that are looked for: all of these must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Words.
    pub pattern: Pattern,
    /// Only in this room.
    pub room: Option<RoomId>,
    /// Only those of an agent of this id, or of this name.
    pub from: Option<String>,
    /// Only those written at this time or later. Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Only those written before this time. Unix milliseconds.
    pub before_ms: Option<u64>,
    /// Only those behind this one.
    pub after: Option<Spot>,
    /// At most so many.
    pub limit: usize,
}

impl Wanted {
    /// Whether a place is within the times, and behind the place to go on from.
    #[must_use]
    pub fn is_within(&self, spot: Spot) -> bool {
        self.since_ms.is_none_or(|since| spot.wall_ms >= since)
            && self.before_ms.is_none_or(|before| spot.wall_ms < before)
            && self.after.is_none_or(|after| spot < after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().is_met_by(text)
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(words("The BUILD, run_42 (failed)!"), ["the", "build", "run", "42", "failed"]);
        assert_eq!(words("Straße ÄÖ été"), ["straße", "äö", "été"]);
        assert_eq!(words("東京 x"), ["東", "京", "x"]);
        assert_eq!(words(" .,\u{202e}\0"), [""; 0]);
        assert_eq!(words("İ"), ["i"], "the mark that its lower case brings is no letter");
        let long = "a".repeat(WORD_CHARS_MAX);
        assert_eq!(words(&format!("{long}b c")), [long, "c".into()]);
    }

    #[test]
    fn all_words_must_be_there_and_phrases_must_stand_so() {
        assert!(met("build FAILED", "Failed was the build"));
        assert!(!met("build failed", "the build is green"));
        assert!(met("\"the build\" failed", "failed: The  build"));
        assert!(!met("\"build the\"", "the build"));
        assert!(met("\"the build", "on the build"), "a quote that is not closed");
        assert!(met("buil*", "the builds") && !met("buil", "the builds"));
        assert!(met("foo-ba*", "foo bar") && !met("fo-ba*", "foo bar"));
        assert!(!met("build", "clw1:build") && !met("", "clw1:AAAA") && met("", "anything"));
    }

    #[test]
    fn a_pattern_is_bounded() {
        let many = |n: usize| (0..n).map(|i| format!("w{i} ")).collect::<String>();
        assert!(Pattern::parse(&many(SEARCH_WORDS_MAX)).is_ok());
        assert_eq!(Pattern::parse(&many(SEARCH_WORDS_MAX + 1)), Err(BadPattern::ManyWords));
        let phrase = format!("\"{}\"", many(SEARCH_WORDS_MAX + 1));
        assert_eq!(Pattern::parse(&phrase), Err(BadPattern::ManyWords));
        assert_eq!(Pattern::parse(&"a".repeat(SEARCH_TEXT_BYTES_MAX + 1)), Err(BadPattern::Long));
        assert_eq!(Pattern::parse("!?"), Err(BadPattern::NoWord));
        assert!(Pattern::parse("  ").unwrap().is_empty());
    }

    #[test]
    fn a_message_is_found_by_its_first_words() {
        let text: String = (0..WORDS_PER_MESSAGE_MAX + 1).map(|i| format!("w{i} ")).collect();
        assert_eq!(found_by(&text).len(), WORDS_PER_MESSAGE_MAX);
        assert!(met("w0", &text) && !met(&format!("w{WORDS_PER_MESSAGE_MAX}"), &text));
    }

    #[test]
    fn a_spot_is_read_back_from_its_text() {
        let spot =
            Spot { wall_ms: 1_800_000_000_000, room: RoomId([7; 16]), number: Number(1 << 50) };
        assert_eq!(Spot::from_text(&spot.to_text()), Some(spot));
        for bad in ["", "1", "1.2.3", "x.07070707-0707-0707-0707-070707070707.1"] {
            assert_eq!(Spot::from_text(bad), None, "{bad}");
        }
    }
}

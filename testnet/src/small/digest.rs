//! A digest of anything that can be shown: two states with one digest are taken for one. All that an engine decides by
//! shows, but for secrets that never change in a small world.

use std::{
    fmt::{self, Debug, Write},
    hash::{DefaultHasher, Hasher},
};

/// Hashes what is written.
struct Sink {
    text: String,
    hasher: DefaultHasher,
}

/// Bytes that are hashed at once.
const AT_ONCE: usize = 8 * 1024;

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        if self.text.len() >= AT_ONCE {
            self.hasher.write(self.text.as_bytes());
            self.text.clear();
        }
        Ok(())
    }
}

/// See the module.
pub(super) fn digest_of(shown: &impl Debug) -> u64 {
    let mut sink = Sink { text: String::with_capacity(2 * AT_ONCE), hasher: DefaultHasher::new() };
    // Nothing here refuses to be shown.
    let _ = write!(sink, "{shown:?}");
    sink.hasher.write(sink.text.as_bytes());
    sink.hasher.finish()
}

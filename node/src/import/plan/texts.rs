//! Texts of a file, which may be as long as they like.

/// Characters of a name that are shown.
const NAME_CHARS: usize = 64;
/// Of these, the last ones of a longer name.
const NAME_END_CHARS: usize = 16;

/// A name to show: its beginning, and its end, which may tell it from others.
pub(super) fn shown(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= NAME_CHARS {
        return format!("{name:?}");
    }
    let (begin, end) =
        (&chars[..NAME_CHARS - NAME_END_CHARS], &chars[chars.len() - NAME_END_CHARS..]);
    let text: String = begin.iter().chain(&['…']).chain(end).collect();
    format!("{text:?}")
}

/// The first characters of a text that have together at most `bytes_max` bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let fits = text.chars().take_while(|char| {
        bytes += char.len_utf8();
        bytes <= bytes_max
    });
    fits.collect()
}

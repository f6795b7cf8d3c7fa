//! Texts that strangers see: addresses of people, names of accounts, prints of keys in ids of people, and words that may be
//! keys, are taken out.
//!
//! It is done word by word, a word being all between two blanks. What it leaves is left by a second time, too.

const EMAIL: &str = "[EMAIL]";
const USER: &str = "[USER]";
const WORD: &str = "[REDACTED]";
const URL: &str = "[FILTERED_URL]";

/// Letters and digits in a row that may be a key (spec §10).
const KEY_CHARS_MIN: usize = 20;
/// Hexadecimal digits of a commit's name, from the shortest that is in use to all of them.
const SHA_DIGITS: std::ops::RangeInclusive<usize> = 7..=64;
/// Parts of a URL with which something secret begins.
const SECRETS: [&str; 3] = ["token=", "auth=", "key="];
/// Folders of which each is an account's.
const HOMES: [&str; 3] = ["/Users/", "/home/", "\\Users\\"];

/// With which the id of a person begins, as [`crate::seam::principal`] makes it: around the digits of a key's print.
const PRINT: (&str, usize, char) = ("u-", 16, '-');

/// A text without what strangers must not see.
#[must_use]
pub fn redacted(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let blanks = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let (before, after) = rest.split_at(blanks);
        clean.push_str(before);
        let (word, after) = after.split_at(after.find(char::is_whitespace).unwrap_or(after.len()));
        clean.push_str(&of_word(word));
        rest = after;
    }
    clean
}

/// The name of a commit, or nothing of anything else.
#[must_use]
pub fn sha(text: &str) -> &str {
    let is_one = SHA_DIGITS.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if is_one { text } else { "" }
}

fn of_word(word: &str) -> String {
    let word = urls(&prints(word));
    let lower = word.to_ascii_lowercase();
    let asks = |secret: &&str| {
        ["?", "&", "#", ";"].iter().any(|sign| lower.contains(&format!("{sign}{secret}")))
    };
    // An address without a scheme, or the rest of one.
    if SECRETS.iter().any(asks) {
        return URL.to_owned();
    }
    keys(&emails(&homes(&word)))
}

/// Ids of people without the print of their key, in any text. From left to right, so that nothing that is left makes another one.
#[must_use]
pub fn prints(word: &str) -> String {
    let (begin, digits, end) = PRINT;
    let mut clean = String::with_capacity(word.len());
    for c in word.chars() {
        clean.push(c);
        if c != end {
            continue;
        }
        let start = clean.len().checked_sub(begin.len() + digits + end.len_utf8());
        let print = start.and_then(|start| clean.get(start..)?.strip_prefix(begin));
        let is_print = print.is_some_and(|print| {
            print[..digits].bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        if is_print {
            clean.truncate(start.unwrap_or_default());
        }
    }
    clean
}

/// Each URL with something secret in it, in the place of it.
fn urls(word: &str) -> String {
    let mut clean = String::new();
    let mut rest = word;
    while let Some(sign) = rest.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let start = rest[..sign].trim_end_matches(is_scheme).len();
        let ends = |c: char| "\"'`<>)]}|".contains(c);
        let end = rest[sign..].find(ends).map_or(rest.len(), |length| sign + length);
        let url = &rest[start..end];
        let lower = url.to_ascii_lowercase();
        clean.push_str(&rest[..start]);
        clean.push_str(if SECRETS.iter().any(|secret| lower.contains(secret)) { URL } else { url });
        rest = &rest[end..];
    }
    clean + rest
}

/// Each home without its name.
fn homes(word: &str) -> String {
    let mut clean = String::new();
    let mut rest = word;
    // From place to place, not from home to home: each look for one that is nowhere would go through all the rest.
    let next = |rest: &str| {
        let begins = |at: usize| {
            HOMES.iter().find(|home| rest.as_bytes()[at..].starts_with(home.as_bytes()))
        };
        (0..rest.len()).find_map(|at| Some(at + begins(at)?.len()))
    };
    while let Some(start) = next(rest) {
        let (before, after) = rest.split_at(start);
        clean.push_str(before);
        let is_name = |c: char| !"/\\\"'`<>()[]{},;:|&?*=".contains(c);
        let name = after.find(|c| !is_name(c)).unwrap_or(after.len());
        rest = if name > 0 {
            clean.push_str(USER);
            &after[name..]
        } else {
            after
        };
    }
    clean + rest
}

/// Each address of a person, in the place of it.
fn emails(word: &str) -> String {
    let mut clean = String::new();
    let mut rest = word;
    let mut from = 0;
    while let Some(at) = rest[from..].find('@').map(|at| from + at) {
        let is_local = |c: char| c.is_alphanumeric() || "._%+-!#$&'*/=?^`{|}~".contains(c);
        let is_host = |c: char| c.is_alphanumeric() || c == '.' || c == '-';
        let start = rest[..at].trim_end_matches(is_local).len();
        let host = &rest[at + 1..];
        let host = &host[..host.find(|c| !is_host(c)).unwrap_or(host.len())];
        // A full stop may end the sentence.
        let host = host.trim_end_matches(['.', '-']);
        let has_name = rest[start..at].chars().any(char::is_alphanumeric);
        if has_name && host.trim_start_matches('.').contains('.') {
            clean.push_str(&rest[..start]);
            clean.push_str(EMAIL);
            rest = &rest[at + 1 + host.len()..];
            from = 0;
        } else {
            from = at + 1;
        }
    }
    clean + rest
}

/// Each word that may be a key, in the place of it.
fn keys(word: &str) -> String {
    let mut clean = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let others = rest.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (before, after) = rest.split_at(others);
        clean.push_str(before);
        let length = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        let (run, after) = after.split_at(length);
        let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
        let is_key =
            run.len() >= KEY_CHARS_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        clean.push_str(if is_key { WORD } else { run });
        rest = after;
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_persons_or_secret_is_taken_out() {
        for (text, clean) in [
            (
                "write to ada@example.org, or bob.b+x@mail.example.co.uk.",
                "write to [EMAIL], or [EMAIL].",
            ),
            ("<ada@example.org>", "<[EMAIL]>"),
            ("see /Users/ada/src and /home/bob", "see /Users/[USER]/src and /home/[USER]"),
            (r"C:\Users\ada\src", r"C:\Users\[USER]\src"),
            ("key sk-abcdefghij1234567890", "key sk-[REDACTED]"),
            ("ghp_abcdefghijklmnopqrst12345.", "ghp_[REDACTED]."),
            (
                "https://h/x?token=a and (http://h/?a=1&KEY=b)",
                "[FILTERED_URL] and ([FILTERED_URL])",
            ),
            ("h.example/x?auth=a", "[FILTERED_URL]"),
            ("{\"url\":\"https://h/?token=a\"}", "{\"url\":\"[FILTERED_URL]\"}"),
            ("ssh://ada@example.org/x", "ssh:[EMAIL]/x"),
            ("@u-abababababababab-ada, (u-0123456789abcdef-b)", "@ada, (b)"),
            ("u-abababababu-abababababababab-ababab-x", "x"),
        ] {
            assert_eq!(redacted(text), clean);
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for text in [
            "",
            " two  blanks\tand\na line ",
            "@claude, look at https://example.org/a/b?page=2",
            "abcdefghijklmnopqrstuvwxyz",
            "12345678901234567890",
            "abcdefghij123456789",
            "今天我们完成了三个任务今天我们完成了三个任务3",
            "a@b",
            "@",
            "mail@",
            "/home/",
            "x /Users/ y",
            "7d444840-9dc0-11d1-b245-5ffdce74fad2",
            "u-abababababababab",
            "u-ababababababab-ada",
            "u-ABABABABABABABAB-ada",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_commit_keeps_its_name_and_nothing_else_is_one() {
        let whole = "abc123def456789012345678901234567890abcd";
        assert_eq!((sha(whole), sha("abc123d")), (whole, "abc123d"));
        for no in ["abc123", "xyz123d", &format!("{whole}{whole}"), "abc 123d"] {
            assert_eq!(sha(no), "", "{no}");
        }
    }

    /// Numbers without chance.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }
    }

    /// Pieces that are, or nearly are, of what is taken out, and all that can stand beside them.
    const PIECES: [&str; 36] = [
        "u-",
        "-abababababababab-",
        "ada@example.org",
        "@",
        "a@b",
        "ada",
        ".",
        "..",
        "-",
        "/",
        "/Users/",
        "/home/",
        "\\Users\\",
        "bob",
        "https://",
        "h.example",
        "?token=",
        "&key=",
        "auth=",
        "?",
        "abcdefghij",
        "1234567890",
        "Z9",
        "_",
        " ",
        "\n",
        "é",
        "你好",
        "[USER]",
        "[EMAIL]",
        "[REDACTED]",
        "[FILTERED_URL]",
        "\"",
        ")",
        "::",
        "u@h.io",
    ];

    fn text(dice: &mut Dice) -> String {
        (0..=dice.below(9)).map(|_| PIECES[dice.below(PIECES.len())]).collect()
    }

    /// Looks for what must not be there, in another way than it is taken out.
    fn leaks(text: &str) -> Option<&'static str> {
        for (at, _) in text.match_indices("u-") {
            let mut parts = text[at + 2..].split('-');
            let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let print = parts.next().unwrap_or_default();
            if print.len() == 16 && print.chars().all(is_hex) && parts.next().is_some() {
                return Some("a print");
            }
        }
        let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
        let is_key = |run: &str| {
            run.len() >= 20
                && run.chars().any(|c| c.is_ascii_digit())
                && run.chars().any(|c| c.is_ascii_alphabetic())
        };
        if runs.into_iter().any(is_key) {
            return Some("a key");
        }
        for home in ["/Users/", "/home/"] {
            let mut parts = text.split(home);
            parts.next();
            let names = |part: &str| part.starts_with(|c: char| c.is_alphanumeric());
            if parts.any(names) {
                return Some("a home");
            }
        }
        for (at, _) in text.match_indices('@') {
            let named = text[..at].ends_with(|c: char| c.is_alphanumeric());
            let host: String =
                text[at + 1..].chars().take_while(|c| c.is_alphanumeric() || *c == '.').collect();
            let mut parts = host.split('.').filter(|part| !part.is_empty());
            let begins = host.starts_with(|c: char| c.is_alphanumeric());
            if named && begins && parts.by_ref().count() >= 2 {
                return Some("an address");
            }
        }
        for word in text.split_whitespace().filter(|word| word.contains("://")) {
            let (_, rest) = word.split_once("://").unwrap_or_default();
            let url = rest.split(['"', ')', ']']).next().unwrap_or_default();
            if url.contains("token=") || url.contains("key=") || url.contains("auth=") {
                return Some("a URL");
            }
        }
        None
    }

    #[test]
    fn of_any_text_nothing_leaks_and_a_second_time_changes_nothing() {
        let mut dice = Dice(28);
        for _ in 0..100_000 {
            let text = text(&mut dice);
            let clean = redacted(&text);
            assert_eq!(leaks(&clean), None, "{text:?} is {clean:?}");
            assert_eq!(redacted(&clean), clean, "{text:?}");
            if leaks(&text).is_none()
                && !text.contains(['@', '=', '\\'])
                && !text.contains("/home/")
                && !text.contains("/Users/")
            {
                assert_eq!(clean, text, "nothing else is touched");
            }
        }
    }
}

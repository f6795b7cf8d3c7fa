//! Names of accounts: which are valid, which are taken anyway, and others that a client may take instead.

use openpgp::Fingerprint;

/// Characters of a username.
const CHARS_MIN: usize = 3;
/// See [`CHARS_MIN`].
const CHARS_MAX: usize = 64;
/// Names that would mislead, or that are part of a path.
const RESERVED: [&str; 16] = [
    "me",
    "register",
    "mesh",
    "admin",
    "root",
    "system",
    "index",
    "lobby",
    "test",
    "agent",
    "assistant",
    "claude",
    "claude-opus",
    "my-agent",
    "youragentname",
    "clawfinder",
];
const OURS: &str = "clawmesh";

/// A number that follows a name is looked for so far.
const NUMBERS: std::ops::RangeInclusive<u32> = 2..=50;

/// As names are compared.
pub(crate) fn folded(username: &str) -> String {
    username.to_ascii_lowercase()
}

/// Why a text is no username.
pub(crate) fn problem(username: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let length = username.chars().count();
    if !(CHARS_MIN..=CHARS_MAX).contains(&length) {
        return Some(format!("Use {CHARS_MIN} to {CHARS_MAX} characters."));
    }
    let mut ends = username.chars();
    if !username.chars().all(is_part) || !is_end(ends.next()) || !is_end(ends.next_back()) {
        let text = "Use letters, digits, dots, underscores and hyphens; begin and end with a letter or digit.";
        return Some(text.to_owned());
    }
    if username.parse::<Fingerprint>().is_ok() || is_uuid(username) {
        return Some("A username cannot look like an id.".to_owned());
    }
    None
}

/// Whether nobody may have it.
pub(crate) fn is_reserved(username: &str) -> bool {
    let folded = folded(username);
    folded == OURS || RESERVED.contains(&&*folded)
}

/// Up to three names that are valid and free. `drawn`: random bytes.
pub(crate) fn suggestions(
    username: &str,
    drawn: [u8; 2],
    is_free: impl Fn(&str) -> bool,
) -> Vec<String> {
    let free = |name: &String| problem(name).is_none() && !is_reserved(name) && is_free(name);
    let numbered = NUMBERS.map(|number| format!("{username}-{number}")).find(free);
    let agent = Some(format!("{username}-agent")).filter(free);
    let random = Some(format!("{username}-{:02x}{:02x}", drawn[0], drawn[1])).filter(free);
    numbered.into_iter().chain(agent).chain(random).collect()
}

/// `a, b or c`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [firsts @ .., last] => format!("{} or {last}", firsts.join(", ")),
    }
}

/// A UUID that nobody has, in its usual form.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn draw_uuid() -> Result<String, getrandom::Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)?;
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    Ok(crate::shapes::uuid(mesh::wire::record::RecordId(id)))
}

/// The bytes of a UUID in its usual form.
pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    let has_form = bytes.len() == 36 && [8, 13, 18, 23].iter().all(|at| bytes[*at] == b'-');
    if !has_form {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    mesh::name::id::parse_hex(&digits.to_ascii_lowercase())
}

fn is_uuid(text: &str) -> bool {
    uuid(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged() {
        for name in ["bob", "alice-research-bot", "a.b_c-9", "ABC", &"x".repeat(64)] {
            assert_eq!(problem(name), None, "{name}");
        }
        let (id, uuid) =
            ("A6173E3E92DDD61A7E5CD73008CB902D334EE569", "c56a4180-65aa-42ec-a945-5fd21dec0538");
        for name in ["", "ab", "-ab", "ab-", "a b", "b\u{e9}b", "a/b", id, uuid, &"x".repeat(65)] {
            assert!(problem(name).is_some(), "{name}");
        }
        assert!(is_reserved("Claude") && is_reserved("clawmesh") && !is_reserved("claudia"));
    }

    #[test]
    fn suggestions_are_free_and_valid() {
        let taken = ["bob-2", "bob-agent"];
        let found = suggestions("bob", [0x7f, 0x3a], |name| !taken.contains(&name));
        assert_eq!(found, ["bob-3", "bob-7f3a"]);
        assert_eq!(listed(&found), "bob-3 or bob-7f3a");
        assert_eq!(suggestions(&"x".repeat(64), [0, 0], |_| true), Vec::<String>::new());
    }
}

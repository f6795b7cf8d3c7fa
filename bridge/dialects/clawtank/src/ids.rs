//! Ids as clients write them: 128 bits as 26 characters of Crockford's base32, with or without prefixes, which say nothing.

use mesh::name::id::RoomId;

/// Crockford's digits, by value.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of an id.
const LENGTH: usize = 26;

/// How a client is told of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// With the prefix of their kind.
    #[default]
    Prefixed,
    /// Without.
    Bare,
}

impl Form {
    /// The one of this name, as a setting has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Form> {
        match name {
            "prefixed" => Some(Form::Prefixed),
            "bare" => Some(Form::Bare),
            _ => None,
        }
    }

    /// An id of a kind.
    pub(crate) fn id(self, prefix: &str, id: [u8; 16]) -> String {
        let id = text(id);
        match self {
            Form::Prefixed => format!("{prefix}_{id}"),
            Form::Bare => id,
        }
    }
}

/// The digits of an id.
pub(crate) fn text(id: [u8; 16]) -> String {
    let number = u128::from_be_bytes(id);
    let digit = |place: usize| {
        let value = number >> (5 * (LENGTH - 1 - place)) & 31;
        // Five bits are a place in the table.
        char::from(DIGITS[usize::try_from(value).unwrap_or_default()])
    };
    (0..LENGTH).map(digit).collect()
}

/// The digits of a text that has the form of an id, its prefixes cut off.
pub(crate) fn digits(text: &str) -> Option<&str> {
    let start = text.len().checked_sub(LENGTH)?;
    let (prefixes, digits) = text.split_at_checked(start)?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    let prefixed = prefixes.is_empty()
        || prefixes.strip_suffix('_').is_some_and(|words| words.split('_').all(is_word));
    let sound = digits.bytes().all(|digit| DIGITS.contains(&digit));
    (prefixed && sound).then_some(digits)
}

/// The id that a text says. `None`: it has not the form of one, or is more than 128 bits.
pub(crate) fn parse(text: &str) -> Option<[u8; 16]> {
    let mut number: u128 = 0;
    for (place, digit) in digits(text)?.bytes().enumerate() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        if place == 0 && value > 7 {
            return None;
        }
        number = number << 5 | u128::try_from(value).ok()?;
    }
    Some(number.to_be_bytes())
}

/// The same, or the UUID of it.
pub(crate) fn parse_any(text: &str) -> Option<[u8; 16]> {
    parse(text).or_else(|| RoomId::from_uuid(text).map(|id| id.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_and_read_back() {
        for id in [[0; 16], [0xff; 16], *b"0123456789abcdef"] {
            let written = text(id);
            assert_eq!(written.len(), LENGTH);
            assert_eq!(parse(&written), Some(id));
            assert_eq!(parse(&Form::Prefixed.id("spectator_chat", id)), Some(id));
            assert_eq!(Form::Bare.id("room", id), written);
        }
        assert_eq!(text([0xff; 16]), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        let uuid = RoomId([7; 16]).to_uuid();
        assert_eq!(parse_any(&uuid), Some([7; 16]));
    }

    #[test]
    fn other_texts_are_none() {
        let id = text([7; 16]);
        for no in [
            String::new(),
            id[1..].to_owned(),
            format!("{id}0"),
            format!("_{id}"),
            format!("Room_{id}"),
            format!("room__{id}"),
            format!("room-{id}"),
            id.replace('0', "U"),
            id.to_lowercase(),
            format!("é{id}"),
        ] {
            assert_eq!(digits(&no), None, "{no}");
        }
        let large = format!("8{}", &text([0; 16])[1..]);
        assert_eq!(digits(&large), Some(&*large), "a client may call its frames so");
        assert_eq!(parse(&large), None, "and nothing of the mesh is called so");
    }
}

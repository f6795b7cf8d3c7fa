//! Forms: their fields, and whether they are of this person's pages.

use sha2::{Digest as _, Sha256};

use crate::{limits::FORM_BYTES_MAX, signing::Person};

/// The fields of a form.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// `None`: it is too large, or no form.
    pub(crate) fn read(body: &[u8]) -> Option<Fields> {
        if body.len() > FORM_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(body).ok()?;
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        pairs.collect::<Option<Vec<_>>>().map(Fields)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| &**value)
    }

    /// A text that somebody has typed, without what surrounds it. `None`: nothing was.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = self.get(name)?.replace("\r\n", "\n");
        Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// A text as forms and queries have it (WHATWG URL §5).
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a form is one of this person's pages: no other page knows the word in it.
pub(crate) fn is_own_form(person: &Person, fields: &Fields) -> bool {
    // Of hashes, so that the time says nothing of how far they are equal.
    let print = |text: &str| Sha256::digest(text.as_bytes());
    fields.get("form").is_some_and(|given| print(given) == print(&person.form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it_and_anything_else_is_none() {
        let fields = Fields::read("text=a+b%26c%0D%0Ad&form=x&empty=".as_bytes()).unwrap();
        assert_eq!(fields.get("text"), Some("a b&c\r\nd"));
        assert_eq!((fields.get("empty"), fields.get("none")), (Some(""), None));
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert!(Fields::read(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(Fields::read(&vec![b'x'; FORM_BYTES_MAX + 1]).is_none());
    }
}

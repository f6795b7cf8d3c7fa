//! JSON as its hosts' files have it, with comments, commas at the end, single quotes and bare keys: where each value stands in
//! the text. Pure.

use serde_json::Value;

/// Deeper values are no configuration.
const DEPTH_MAX: usize = 128;

/// A value and its place: bytes of the text. Two are equal if they say the same, wherever they stand.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    /// A number, true, false, null: as it is written.
    Other(String),
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Where its key begins.
    start: usize,
    pub(super) key: String,
    pub(super) value: Node,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Node {
    /// The member of this key. Of several the last one counts, as it does for programs.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            Kind::Object(members) => members.iter().rev().find(|member| member.key == key),
            Kind::Array(_) | Kind::Text(_) | Kind::Other(_) => None,
        }
    }

    /// Whether it is an object or array without anything in it.
    pub(super) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Object(members) => members.is_empty(),
            Kind::Array(elements) => elements.is_empty(),
            Kind::Text(_) | Kind::Other(_) => false,
        }
    }

    /// Where each member or element begins and ends.
    pub(super) fn children(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().map(|member| (member.start, member.value.end)).collect()
            }
            Kind::Array(elements) => elements.iter().map(|it| (it.start, it.end)).collect(),
            Kind::Text(_) | Kind::Other(_) => Vec::new(),
        }
    }
}

/// Where a text stops to be JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected} is expected in line {line}")]
pub(super) struct Malformed {
    line: usize,
    expected: &'static str,
}

/// The value of a text. `None`: there is none, but perhaps comments.
///
/// # Errors
/// [`Malformed`].
pub(super) fn read(text: &str) -> Result<Option<Node>, Malformed> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip()?;
    if reader.at == text.len() {
        return Ok(None);
    }
    let node = reader.value(0)?;
    reader.skip()?;
    if reader.at < text.len() { Err(reader.no("the end")) } else { Ok(Some(node)) }
}

/// Where the comma after a value is, before `to`.
pub(super) fn comma_after(text: &str, end: usize, to: usize) -> Option<usize> {
    let mut reader = Reader { text, at: end };
    reader.skip().ok()?;
    (reader.at < to && reader.peek() == Some(b',')).then_some(reader.at)
}

/// Where the next line begins, if only blanks and whole comments stand before it, and it begins before `to`.
pub(super) fn next_line(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut reader = Reader { text, at: from };
    loop {
        match reader.peek()? {
            b'\n' => return (reader.at + 1 < to).then_some(reader.at + 1),
            b' ' | b'\t' | b'\r' => reader.at += 1,
            b'/' => {
                let start = reader.at;
                reader.comment().ok()?;
                // A comment over several lines is left whole, and so is its line.
                if text[start..reader.at].contains('\n') {
                    return None;
                }
            }
            _ => return None,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn no(&self, expected: &'static str) -> Malformed {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        Malformed { line: before.iter().filter(|byte| **byte == b'\n').count() + 1, expected }
    }

    fn skip(&mut self) -> Result<(), Malformed> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' => self.comment()?,
                _ => break,
            }
        }
        Ok(())
    }

    /// To its end. The newline after a comment of one line is no part of it.
    fn comment(&mut self) -> Result<(), Malformed> {
        let rest = &self.text[self.at..];
        if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return Ok(());
        }
        let length = rest.strip_prefix("/*").and_then(|rest| rest.find("*/"));
        self.at += length.ok_or_else(|| self.no("the end of a comment"))? + 4;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Malformed> {
        if depth > DEPTH_MAX {
            return Err(self.no("a value that is less deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"' | b'\'') => Kind::Text(self.string()?),
            _ => Kind::Other(self.word("a value")?.to_owned()),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Malformed> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b'}') {
                break;
            }
            let start = self.at;
            let key = match self.peek() {
                Some(b'"' | b'\'') => self.string()?,
                _ => self.word("a key")?.to_owned(),
            };
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.no("a colon"));
            }
            self.at += 1;
            self.skip()?;
            let value = self.value(depth + 1)?;
            members.push(Member { start, key, value });
            if !self.goes_on(b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Malformed> {
        let mut elements = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                break;
            }
            elements.push(self.value(depth + 1)?);
            if !self.goes_on(b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Array(elements))
    }

    /// A comma is passed over; at the end of the object or array it is not.
    fn goes_on(&mut self, end: u8) -> Result<bool, Malformed> {
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => Ok(false),
            _ => Err(self.no("a comma, or the end of an object or array")),
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        let (start, quote) = (self.at, self.peek());
        loop {
            self.at += 1;
            match self.peek() {
                Some(b'\\') => self.at += 1,
                None | Some(b'\n') => return Err(self.no("the end of a text")),
                byte if byte == quote => break,
                Some(_) => {}
            }
        }
        self.at += 1;
        let raw = &self.text[start..self.at];
        // A text in single quotes, or with escapes that JSON has not, is compared as it is written.
        let read = serde_json::from_str(raw);
        Ok(read.unwrap_or_else(|_| raw[1..raw.len() - 1].to_owned()))
    }

    fn word(&mut self, expected: &'static str) -> Result<&str, Malformed> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '+' | '.');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.no(expected));
        }
        self.at += length;
        Ok(&rest[..length])
    }
}

/// Whether a text is JSON as its standard has it, but for a mark of the byte order; nothing at all is none.
pub(super) fn is_strict(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str::<Value>(text).is_ok()
}

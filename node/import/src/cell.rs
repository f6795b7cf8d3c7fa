//! Single values of a row, as ClawChat may have written them.

use rusqlite::{Row, types::ValueRef};

/// Why a value is none of what its column should have.
pub(crate) type Wrong = String;

/// One row that is looked at.
pub(crate) struct Cells<'r> {
    pub(crate) row: &'r Row<'r>,
    /// The names of its columns, for errors.
    pub(crate) names: &'static [crate::layout::Column],
}

impl Cells<'_> {
    fn at(&self, at: usize) -> Result<ValueRef<'_>, Wrong> {
        self.row.get_ref(at).map_err(|error| self.wrong(at, &error.to_string()))
    }

    pub(crate) fn wrong(&self, at: usize, why: &str) -> Wrong {
        format!("`{}`: {why}", self.names[at].names[0])
    }

    /// Text, or `None` if it is null.
    pub(crate) fn maybe_text(&self, at: usize) -> Result<Option<String>, Wrong> {
        match self.at(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(self.wrong(at, "not UTF-8")),
            },
            ValueRef::Integer(it) => Ok(Some(it.to_string())),
            ValueRef::Real(_) | ValueRef::Blob(_) => Err(self.wrong(at, "not text")),
        }
    }

    /// The same where an empty one says nothing.
    pub(crate) fn filled(&self, at: usize) -> Result<Option<String>, Wrong> {
        Ok(self.maybe_text(at)?.filter(|it| !it.is_empty()))
    }

    pub(crate) fn text(&self, at: usize) -> Result<String, Wrong> {
        self.maybe_text(at)?.ok_or_else(|| self.wrong(at, "missing"))
    }

    pub(crate) fn maybe_whole(&self, at: usize) -> Result<Option<u64>, Wrong> {
        match self.at(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(it) => {
                u64::try_from(it).map(Some).map_err(|_| self.wrong(at, "below 0"))
            }
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                Err(self.wrong(at, "not a whole number"))
            }
        }
    }

    pub(crate) fn whole(&self, at: usize) -> Result<u64, Wrong> {
        self.maybe_whole(at)?.ok_or_else(|| self.wrong(at, "missing"))
    }

    /// Yes or no: 0 and nothing are no, and so is text that says so.
    pub(crate) fn yes(&self, at: usize) -> Result<Option<bool>, Wrong> {
        match self.at(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(it) => Ok(Some(it != 0)),
            ValueRef::Text(_) => {
                let text = self.text(at)?.to_ascii_lowercase();
                match text.as_str() {
                    "" | "0" | "false" | "no" => Ok(Some(false)),
                    "1" | "true" | "yes" => Ok(Some(true)),
                    other => Err(self.wrong(at, &format!("{other:?} is neither yes nor no"))),
                }
            }
            ValueRef::Real(_) | ValueRef::Blob(_) => Err(self.wrong(at, "neither yes nor no")),
        }
    }

    /// Whether anything is there that is not nothing: a time, or a yes.
    pub(crate) fn is_set(&self, at: usize) -> Result<bool, Wrong> {
        Ok(match self.at(at)? {
            ValueRef::Null => false,
            ValueRef::Integer(it) => it != 0,
            ValueRef::Real(it) => it != 0.0,
            ValueRef::Text(it) => !matches!(it, b"" | b"0" | b"false"),
            ValueRef::Blob(it) => !it.is_empty(),
        })
    }

    /// A time, in Unix milliseconds.
    pub(crate) fn maybe_time(&self, at: usize) -> Result<Option<u64>, Wrong> {
        let found = match self.at(at)? {
            ValueRef::Null => return Ok(None),
            ValueRef::Integer(it) => of_number(it),
            ValueRef::Real(it) => of_seconds(it),
            ValueRef::Text(b"") => return Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(of_text),
            ValueRef::Blob(_) => None,
        };
        let why = "not a time: RFC 3339, or Unix time in seconds or milliseconds";
        found.map(Some).ok_or_else(|| self.wrong(at, why))
    }

    pub(crate) fn time(&self, at: usize) -> Result<u64, Wrong> {
        self.maybe_time(at)?.ok_or_else(|| self.wrong(at, "missing"))
    }

    /// A JSON list of texts; nothing is an empty one.
    pub(crate) fn texts(&self, at: usize) -> Result<Vec<String>, Wrong> {
        let Some(json) = self.filled(at)? else { return Ok(Vec::new()) };
        serde_json::from_str::<Option<Vec<String>>>(&json)
            .map(Option::unwrap_or_default)
            .map_err(|_| self.wrong(at, "not a JSON list of texts"))
    }

    /// How many: a number, or a JSON list of them.
    pub(crate) fn how_many(&self, at: usize) -> Result<Option<u64>, Wrong> {
        match self.at(at)? {
            ValueRef::Text(bytes) if bytes.starts_with(b"[") => {
                serde_json::from_slice::<Vec<serde_json::Value>>(bytes)
                    .map(|it| Some(it.len() as u64))
                    .map_err(|_| self.wrong(at, "not a JSON list"))
            }
            ValueRef::Null
            | ValueRef::Integer(_)
            | ValueRef::Real(_)
            | ValueRef::Text(_)
            | ValueRef::Blob(_) => self.maybe_whole(at),
        }
    }
}

/// Unix seconds up to the year 5138 are below this, Unix milliseconds from 1973 on above.
const SECONDS_MAX: i64 = 100_000_000_000;
/// The end of the year 9999, in Unix seconds.
const LAST_SECOND: i64 = 253_402_300_799;

fn of_number(it: i64) -> Option<u64> {
    let ms = if it < SECONDS_MAX { it.checked_mul(1_000)? } else { it };
    u64::try_from(ms).ok().filter(|ms| *ms / 1_000 <= LAST_SECOND.unsigned_abs())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was looked whether it is in range"
)]
fn of_seconds(it: f64) -> Option<u64> {
    let ms = if it < SECONDS_MAX as f64 { it * 1_000.0 } else { it };
    (ms >= 0.0 && ms <= LAST_SECOND as f64 * 1_000.0).then(|| ms.round() as u64)
}

fn of_text(text: &str) -> Option<u64> {
    // A number in a column of texts became one.
    if let Ok(number) = text.parse() {
        return of_number(number);
    }
    // SQLite's own times have no zone: they are UTC.
    let time = text.parse::<jiff::Timestamp>().or_else(|_| format!("{text}Z").parse()).ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_however_they_were_written() {
        let ms = 1_700_000_000_123;
        assert_eq!(of_number(1_700_000_000), Some(1_700_000_000_000));
        assert_eq!(of_number(1_700_000_000_123), Some(ms));
        assert_eq!(of_seconds(1_700_000_000.123), Some(ms));
        for text in [
            "2023-11-14T22:13:20.123Z",
            "2023-11-14T23:13:20.123+01:00",
            "2023-11-14T22:13:20.123456789+00:00",
            "2023-11-14 22:13:20.123",
            "2023-11-14T22:13:20.123",
            "1700000000123",
        ] {
            assert_eq!(of_text(text), Some(ms), "{text}");
        }
        for number in [-1, i64::MAX, i64::MIN] {
            assert_eq!(of_number(number), None, "{number}");
        }
        for number in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(of_seconds(number), None, "{number}");
        }
        for text in ["yesterday", "", "1960-01-01T00:00:00Z"] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }
}

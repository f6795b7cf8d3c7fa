//! Single values of a row, as ClawChat writes them.

use rusqlite::{Row, types::ValueRef};

use crate::layout::Table;

/// The reason why a value does not fit its column.
pub(crate) type Wrong = String;

/// One row that is looked at. Columns go by their names in [`Table::columns`].
pub(crate) struct Cells<'r> {
    pub(crate) row: &'r Row<'r>,
    pub(crate) table: &'static Table,
}

impl Cells<'_> {
    fn at(&self, column: &str) -> Result<ValueRef<'_>, Wrong> {
        let at = self.table.columns.iter().position(|named| named.name == column);
        let at = at.unwrap_or_else(|| unreachable!("{} has no column {column}", self.table.name));
        self.row.get_ref(at).map_err(|error| wrong(column, &error.to_string()))
    }

    /// Text, or `None` if it is null.
    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>, Wrong> {
        match self.at(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(wrong(column, "not UTF-8")),
            },
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
                Err(wrong(column, "not text"))
            }
        }
    }

    /// The same where an empty one says nothing.
    pub(crate) fn filled(&self, column: &str) -> Result<Option<String>, Wrong> {
        Ok(self.maybe_text(column)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn text(&self, column: &str) -> Result<String, Wrong> {
        self.maybe_text(column)?.ok_or_else(|| wrong(column, "missing"))
    }

    pub(crate) fn whole(&self, column: &str) -> Result<u64, Wrong> {
        match self.at(column)? {
            ValueRef::Integer(number) => {
                u64::try_from(number).map_err(|_| wrong(column, "below 0"))
            }
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
                Err(wrong(column, "not a whole number"))
            }
        }
    }

    pub(crate) fn yes(&self, column: &str) -> Result<bool, Wrong> {
        Ok(self.whole(column)? != 0)
    }

    /// A time, in Unix milliseconds.
    pub(crate) fn maybe_time(&self, column: &str) -> Result<Option<u64>, Wrong> {
        let Some(text) = self.filled(column)? else { return Ok(None) };
        let time = text.parse::<jiff::Timestamp>().ok().or_else(|| sqlite_time(&text));
        let ms = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        ms.map(Some).ok_or_else(|| wrong(column, "not a time, such as 2026-11-23T16:33:29.780Z"))
    }

    pub(crate) fn time(&self, column: &str) -> Result<u64, Wrong> {
        self.maybe_time(column)?.ok_or_else(|| wrong(column, "missing"))
    }

    /// A JSON list of texts; `None`: there is none.
    pub(crate) fn texts(&self, column: &str) -> Result<Option<Vec<String>>, Wrong> {
        let Some(json) = self.filled(column)? else { return Ok(None) };
        serde_json::from_str(&json).map_err(|_| wrong(column, "not a JSON list of texts"))
    }
}

/// SQLite's `datetime('now')`, with a fraction or not: `2025-03-04 05:06:07`, in UTC.
fn sqlite_time(text: &str) -> Option<jiff::Timestamp> {
    let is_of_time = |byte: u8| byte.is_ascii_digit() || b"-: .".contains(&byte);
    let form = text.as_bytes().get(10) == Some(&b' ') && text.len() >= "2025-03-04 05:06:07".len();
    if !form || !text.bytes().all(is_of_time) {
        return None;
    }
    let time: jiff::civil::DateTime = text.parse().ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
}

pub(crate) fn wrong(column: &str, why: &str) -> Wrong {
    format!("`{column}`: {why}")
}

//! Shapes of what clients say: tables of the fields that are known, each with its rule. All others are left out.
//!
//! The same table reads what a client sends, and what is in the metadata of a message: another node may have let anything
//! through.

use serde_json::{Map, Value, json};

use crate::{
    fields::At,
    ids::{self, Form},
    problem::Problem,
};

/// What a field may be.
#[derive(Debug)]
pub(crate) enum Rule {
    /// A text of at most so many characters.
    Text(usize),
    /// The same, not blank.
    Words(usize),
    /// So many hex digits.
    Hex(usize, usize),
    Whole,
    Flag,
    Time,
    /// An id, and its prefix.
    Id(&'static str),
    /// A name of a thing elsewhere, with its scheme.
    Uri,
    Email,
    OneOf(&'static [&'static str]),
    /// At most so many texts of at most so many characters.
    Texts(usize, usize),
    Fields(&'static [Field]),
    /// At most so many things.
    List(usize, &'static [Field]),
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    name: &'static str,
    required: bool,
    rule: Rule,
}

/// One that is there.
pub(crate) const fn must(name: &'static str, rule: Rule) -> Field {
    Field { name, required: true, rule }
}

/// One that may be there.
pub(crate) const fn may(name: &'static str, rule: Rule) -> Field {
    Field { name, required: false, rule }
}

/// Bytes of a URI.
const URI_BYTES_MAX: usize = 2_048;
/// Bytes of an address, as mail has it.
const EMAIL_BYTES_MAX: usize = 320;

/// The known fields of an object. `form`: how ids are written; else they stay as they are.
pub(crate) fn read(
    at: &At<'_>,
    fields: &[Field],
    form: Option<Form>,
) -> Result<Map<String, Value>, Problem> {
    at.clone().required()?.object()?;
    let mut all = Map::new();
    for Field { name, required, rule } in fields {
        let at = at.get(name);
        if at.is_there() {
            all.insert((*name).to_owned(), value(&at, rule, form)?);
        } else if *required {
            return Err(at.bad("required"));
        }
    }
    Ok(all)
}

fn value(at: &At<'_>, rule: &Rule, form: Option<Form>) -> Result<Value, Problem> {
    Ok(match rule {
        Rule::Text(max) => json!(at.text(*max)?),
        Rule::Words(max) => json!(at.words(*max)?),
        Rule::Hex(min, max) => {
            let text = at.text(*max)?.unwrap_or_default();
            let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            if !is_hex || text.len() < *min {
                return Err(at.bad(format!("must be {min} to {max} hex digits")));
            }
            json!(text)
        }
        Rule::Whole => json!(at.whole(u64::MAX)?),
        Rule::Flag => json!(at.flag()?),
        Rule::Time => {
            at.time()?;
            json!(at.text(64)?)
        }
        Rule::Id(prefix) => {
            let text = at.id()?.unwrap_or_default();
            let digits = ids::digits(text).unwrap_or_default();
            json!(match form {
                None => text.to_owned(),
                Some(Form::Bare) => digits.to_owned(),
                Some(Form::Prefixed) => format!("{prefix}_{digits}"),
            })
        }
        Rule::Uri => {
            let text = at.words(URI_BYTES_MAX)?;
            if !text.contains(':') || text.contains(char::is_whitespace) {
                return Err(at.bad("must be a URI"));
            }
            json!(text)
        }
        Rule::Email => {
            let text = at.words(EMAIL_BYTES_MAX)?;
            if !text.contains('@') || text.contains(char::is_whitespace) {
                return Err(at.bad("must be an e-mail address"));
            }
            json!(text)
        }
        Rule::OneOf(words) => json!(at.one_of(words)?),
        Rule::Texts(count, chars) => json!(at.texts(*count, *chars)?),
        Rule::Fields(fields) => Value::Object(read(at, fields, form)?),
        Rule::List(count, fields) => {
            let entries = at.list(*count)?;
            let entry = |at: &At<'_>| read(at, fields, form).map(Value::Object);
            Value::Array(entries.iter().map(entry).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: &[Field] = &[must("sha", Rule::Hex(40, 40)), may("task_id", Rule::Id("task"))];
    const OUTER: &[Field] =
        &[must("a", Rule::Fields(INNER)), may("all", Rule::List(2, INNER)), may("url", Rule::Uri)];

    #[test]
    fn known_fields_are_taken_and_others_left_out() {
        let (sha, id) = ("a".repeat(40), ids::text([7; 16]));
        let said = json!({"a": {"sha": sha, "task_id": id, "x": 1}, "y": 2, "url": null});
        let at = At::new("data", &said);
        let kept = read(&at, OUTER, None).unwrap();
        assert_eq!(Value::Object(kept), json!({"a": {"sha": sha, "task_id": id}}));
        let shown = read(&at, OUTER, Some(Form::Prefixed)).unwrap();
        assert_eq!(shown["a"]["task_id"], format!("task_{id}"));
    }

    #[test]
    fn a_field_that_breaks_its_rule_is_named() {
        let sha = "a".repeat(40);
        for (said, path) in [
            (json!({}), "data.a"),
            (json!({"a": []}), "data.a"),
            (json!({"a": {"sha": "a".repeat(39)}}), "data.a.sha"),
            (json!({"a": {"sha": "A".repeat(40)}}), "data.a.sha"),
            (json!({"a": {"sha": sha}, "all": [{"sha": sha}, {}]}), "data.all[1].sha"),
            (json!({"a": {"sha": sha}, "url": "example"}), "data.url"),
            (json!({"a": {"sha": sha, "task_id": "T-1"}}), "data.a.task_id"),
        ] {
            let problem = read(&At::new("data", &said), OUTER, None).unwrap_err();
            assert!(problem.message.starts_with(&format!("{path}:")), "{}", problem.message);
        }
    }
}

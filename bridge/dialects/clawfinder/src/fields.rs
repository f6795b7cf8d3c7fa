//! The fields of a request's body, one by one, with the texts of Django REST framework.

use serde_json::{Map, Value};

use crate::{
    limits::METADATA_DEPTH_MAX,
    problem::{Answer, Problem},
};

const REQUIRED: &str = "This field is required.";
const NULL: &str = "This field may not be null.";
const BLANK: &str = "This field may not be blank.";
const NO_TEXT: &str = "Not a valid string.";

/// The fields of a body, and what was wrong with those that were read. Fields that nobody reads are ignored.
pub(crate) struct Fields {
    given: Map<String, Value>,
    purpose: Purpose,
    errors: Vec<(String, String)>,
}

/// What becomes of fields that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Something is made: required ones are missed, the others have a default.
    Make,
    /// `PUT`: required ones are missed, the others stay as they are.
    Replace,
    /// `PATCH`: all stay as they are.
    Change,
}

/// A text that a field may hold.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    /// `None`: it has to be given.
    pub(crate) default: Option<&'static str>,
    /// Whether it may have nothing but blanks.
    pub(crate) may_be_blank: bool,
    pub(crate) most: Most,
    /// A number stands for its text.
    pub(crate) of_number: bool,
}

/// The largest text.
#[derive(Clone, Copy)]
pub(crate) enum Most {
    Chars(usize),
    Bytes(usize),
}

impl Text {
    pub(crate) const fn required(most: Most) -> Text {
        Text { default: None, may_be_blank: false, most, of_number: false }
    }

    pub(crate) const fn optional(most: Most) -> Text {
        Text { default: Some(""), may_be_blank: true, most, of_number: false }
    }
}

impl Fields {
    /// Of a body.
    ///
    /// # Errors
    /// It is no JSON object.
    pub(crate) fn read(body: &[u8], purpose: Purpose) -> Answer<Fields> {
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            Problem::new(axum::http::StatusCode::BAD_REQUEST, format!("JSON parse error - {error}"))
        })?;
        match value {
            Value::Object(given) => Ok(Fields { given, purpose, errors: Vec::new() }),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => {
                let kind = kind_of(&other);
                let text = format!("Invalid data. Expected a dictionary, but got {kind}.");
                Err(Problem::of_the_whole(&text))
            }
        }
    }

    fn makes(&self) -> bool {
        self.purpose == Purpose::Make
    }

    pub(crate) fn refuse(&mut self, field: &str, text: impl Into<String>) {
        self.errors.push((field.to_owned(), text.into()));
    }

    /// # Errors
    /// A field was wrong so far.
    pub(crate) fn check(&mut self) -> Answer<()> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(Problem::fields(std::mem::take(&mut self.errors)))
    }

    /// # Errors
    /// A field was wrong.
    pub(crate) fn done(mut self) -> Answer<()> {
        self.check()
    }

    /// A field as it was given. `None`: it was not, and may be missing.
    fn given(&mut self, name: &str, is_required: bool) -> Option<Value> {
        match self.given.remove(name) {
            Some(Value::Null) => {
                self.refuse(name, NULL);
                None
            }
            Some(value) => Some(value),
            None => {
                if is_required && self.purpose != Purpose::Change {
                    self.refuse(name, REQUIRED);
                }
                None
            }
        }
    }

    /// A text. `None`: it was not given in a change, or is wrong.
    pub(crate) fn text(&mut self, name: &str, rule: Text) -> Option<String> {
        let value = match self.given(name, rule.default.is_none()) {
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) if rule.of_number => number.to_string(),
            Some(_) => {
                self.refuse(name, NO_TEXT);
                return None;
            }
            None => return rule.default.filter(|_| self.makes()).map(str::to_owned),
        };
        if value.contains('\0') {
            self.refuse(name, "Null characters are not allowed.");
            return None;
        }
        if !rule.may_be_blank && value.trim().is_empty() {
            self.refuse(name, BLANK);
            return None;
        }
        let too_long = match rule.most {
            Most::Chars(most) if value.chars().count() > most => Some((most, "characters")),
            Most::Bytes(most) if value.len() > most => Some((most, "bytes")),
            Most::Chars(_) | Most::Bytes(_) => None,
        };
        if let Some((most, unit)) = too_long {
            self.refuse(name, format!("Ensure this field has no more than {most} {unit}."));
            return None;
        }
        Some(value)
    }

    /// A whole number in a range.
    pub(crate) fn integer(&mut self, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = match self.given(name, true)? {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match value {
            Some(value) if value > most => {
                self.refuse(name, format!("Ensure this value is less than or equal to {most}."));
                None
            }
            Some(value) if value < least => {
                self.refuse(
                    name,
                    format!("Ensure this value is greater than or equal to {least}."),
                );
                None
            }
            Some(value) => Some(value),
            None => {
                self.refuse(name, "A valid integer is required.");
                None
            }
        }
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, name: &str, default: bool) -> Option<bool> {
        match self.given(name, false) {
            Some(Value::Bool(flag)) => Some(flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Some(false),
            Some(_) => {
                self.refuse(name, "Must be a valid boolean.");
                None
            }
            None => self.makes().then_some(default),
        }
    }

    /// One of these words: its place.
    pub(crate) fn choice(&mut self, name: &str, words: &[&str], default: usize) -> Option<usize> {
        match self.given(name, false) {
            Some(value) => {
                let found =
                    value.as_str().and_then(|text| words.iter().position(|word| *word == text));
                if found.is_none() {
                    self.refuse(name, no_choice(&value));
                }
                found
            }
            None => self.makes().then_some(default),
        }
    }

    /// A list, of which no more is known.
    pub(crate) fn list(&mut self, name: &str, most: usize) -> Option<Vec<Value>> {
        match self.given(name, false) {
            Some(Value::Array(items)) if items.len() <= most => Some(items),
            Some(Value::Array(_)) => {
                self.refuse(name, format!("Ensure this field has no more than {most} elements."));
                None
            }
            Some(other) => {
                let kind = kind_of(&other);
                self.refuse(name, format!("Expected a list of items but got type \"{kind}\"."));
                None
            }
            None => self.makes().then(Vec::new),
        }
    }

    /// A JSON object, as its text. `null` is an empty one.
    pub(crate) fn object(&mut self, name: &str, bytes_max: usize) -> Option<String> {
        let value = match self.given.remove(name) {
            Some(Value::Null) => Value::Object(Map::new()),
            Some(value) => value,
            None if self.makes() => Value::Object(Map::new()),
            None => return None,
        };
        if !value.is_object() {
            let kind = kind_of(&value);
            self.refuse(name, format!("Expected a dictionary of items but got type \"{kind}\"."));
            return None;
        }
        if depth(&value) > METADATA_DEPTH_MAX {
            self.refuse(
                name,
                format!("Ensure this field has no more than {METADATA_DEPTH_MAX} levels."),
            );
            return None;
        }
        let text = value.to_string();
        if text.len() > bytes_max {
            self.refuse(name, format!("Ensure this field has no more than {bytes_max} bytes."));
            return None;
        }
        Some(text)
    }

    /// Anything that was given, be it nothing.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|value| !value.is_null())
    }
}

/// The text for a value that is none of the choices.
pub(crate) fn no_choice(value: &Value) -> String {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown: String = shown.chars().take(64).collect();
    format!("\"{shown}\" is not a valid choice.")
}

/// As Python names it: the texts are its.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Levels of lists and objects. The parser bounds them at 128.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(items) => 1 + items.values().map(depth).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(body: &Value, read: impl FnOnce(&mut Fields)) -> Vec<(String, String)> {
        let mut fields = Fields::read(body.to_string().as_bytes(), Purpose::Make).unwrap();
        read(&mut fields);
        fields.errors
    }

    fn one(field: &str, text: &str) -> Vec<(String, String)> {
        vec![(field.to_owned(), text.to_owned())]
    }

    #[test]
    fn texts_are_judged() {
        let rule = Text::required(Most::Chars(3));
        for (given, expected) in [
            (json!({}), "This field is required."),
            (json!({"t": null}), "This field may not be null."),
            (json!({"t": " "}), "This field may not be blank."),
            (json!({"t": 1}), "Not a valid string."),
            (json!({"t": "a\0"}), "Null characters are not allowed."),
            (
                json!({"t": "\u{e9}\u{e9}\u{e9}\u{e9}"}),
                "Ensure this field has no more than 3 characters.",
            ),
        ] {
            let found = errors(&given, |fields| drop(fields.text("t", rule)));
            assert_eq!(found, one("t", expected), "{given}");
        }
        let fine = errors(&json!({"t": "\u{e9}\u{e9}\u{e9}"}), |fields| {
            assert_eq!(fields.text("t", rule).unwrap(), "\u{e9}\u{e9}\u{e9}");
        });
        assert_eq!(fine, []);
    }

    #[test]
    fn numbers_are_judged() {
        for (given, expected) in [
            (json!({"n": 9}), "Ensure this value is less than or equal to 5."),
            (json!({"n": 0}), "Ensure this value is greater than or equal to 1."),
            (json!({"n": 4.5}), "A valid integer is required."),
            (json!({"n": "abc"}), "A valid integer is required."),
            (json!({"n": null}), "This field may not be null."),
        ] {
            let found = errors(&given, |fields| assert_eq!(fields.integer("n", 1, 5), None));
            assert_eq!(found, one("n", expected), "{given}");
        }
    }

    #[test]
    fn objects_and_choices_are_judged() {
        let found = errors(&json!({"m": [1]}), |fields| drop(fields.object("m", 100)));
        assert_eq!(found, one("m", "Expected a dictionary of items but got type \"list\"."));
        let found = errors(&json!({"m": null}), |fields| {
            assert_eq!(fields.object("m", 100).unwrap(), "{}");
        });
        assert_eq!(found, []);
        let found =
            errors(&json!({"c": "x"}), |fields| assert_eq!(fields.choice("c", &["a"], 0), None));
        assert_eq!(found, one("c", "\"x\" is not a valid choice."));
        let mut deep = json!({});
        for _ in 0..METADATA_DEPTH_MAX {
            deep = json!({ "d": deep });
        }
        let found = errors(&json!({ "m": deep }), |fields| drop(fields.object("m", 1_000)));
        assert_eq!(found, one("m", "Ensure this field has no more than 32 levels."));
    }

    #[test]
    fn a_change_leaves_out_anything() {
        let mut fields = Fields::read(b"{}", Purpose::Change).unwrap();
        assert_eq!(fields.text("t", Text::required(Most::Chars(3))), None);
        assert_eq!(fields.flag("f", true), None);
        assert_eq!(fields.object("m", 10), None);
        assert!(fields.check().is_ok());
        assert!(Fields::read(b"[]", Purpose::Change).is_err());
        assert!(Fields::read(b"{", Purpose::Change).is_err());
    }
}

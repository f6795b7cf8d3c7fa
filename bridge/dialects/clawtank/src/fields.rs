//! Fields of what a client says, with the path that an answer names.

use serde_json::{Map, Value};

use crate::{ids, problem::Problem, times};

/// A value that may be there. `null` is not there.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    value: Option<&'a Value>,
    path: String,
}

type Read<T> = Result<T, Problem>;

impl<'a> At<'a> {
    pub(crate) fn new(path: &str, value: &'a Value) -> At<'a> {
        At { value: Some(value).filter(|value| !value.is_null()), path: path.to_owned() }
    }

    /// A field of it, if it is an object.
    pub(crate) fn get(&self, name: &str) -> At<'a> {
        let value = self.value.and_then(|value| value.get(name)).filter(|value| !value.is_null());
        At { value, path: format!("{}.{name}", self.path) }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> Option<&'a Value> {
        self.value
    }

    pub(crate) fn is_there(&self) -> bool {
        self.value.is_some()
    }

    pub(crate) fn bad(&self, reason: impl Into<String>) -> Problem {
        Problem::field(&*self.path, reason)
    }

    pub(crate) fn required(self) -> Read<At<'a>> {
        if self.is_there() { Ok(self) } else { Err(self.bad("required")) }
    }

    fn of<T>(&self, what: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Read<Option<T>> {
        match self.value {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.bad(format!("must be {what}"))),
        }
    }

    /// A text of at most so many characters.
    pub(crate) fn text(&self, max: usize) -> Read<Option<&'a str>> {
        let text = self.of("a string", Value::as_str)?;
        match text {
            Some(text) if text.chars().count() > max => {
                Err(self.bad(format!("must have at most {max} characters")))
            }
            text => Ok(text),
        }
    }

    /// One that is there, and not blank.
    pub(crate) fn words(&self, max: usize) -> Read<&'a str> {
        let text = self.clone().required()?.text(max)?.unwrap_or_default();
        if text.trim().is_empty() { Err(self.bad("must not be blank")) } else { Ok(text) }
    }

    pub(crate) fn one_of(&self, words: &[&'static str]) -> Read<Option<&'static str>> {
        let what = format!("one of {}", words.join(", "));
        self.of(&what, |value| {
            let said = value.as_str()?;
            words.iter().copied().find(|word| *word == said)
        })
    }

    pub(crate) fn flag(&self) -> Read<Option<bool>> {
        self.of("true or false", Value::as_bool)
    }

    /// A number within bounds.
    pub(crate) fn number(&self, min: f64, max: f64) -> Read<Option<f64>> {
        let what = format!("a number from {min} to {max}");
        self.of(&what, |value| value.as_f64().filter(|number| (min..=max).contains(number)))
    }

    pub(crate) fn whole(&self, max: u64) -> Read<Option<u64>> {
        let what = format!("a whole number from 0 to {max}");
        self.of(&what, |value| value.as_u64().filter(|number| *number <= max))
    }

    pub(crate) fn object(&self) -> Read<Option<&'a Map<String, Value>>> {
        self.of("an object", Value::as_object)
    }

    /// A time, in Unix milliseconds.
    pub(crate) fn time(&self) -> Read<Option<u64>> {
        self.of("a time such as 2026-02-17T21:03:00.123Z", |value| times::parse(value.as_str()?))
    }

    /// Things of a list, each at its place.
    pub(crate) fn list(&self, max: usize) -> Read<Vec<At<'a>>> {
        let list = self.of("an array", Value::as_array)?.map_or(&[][..], Vec::as_slice);
        if list.len() > max {
            return Err(self.bad(format!("must have at most {max} entries")));
        }
        let at = |(place, value): (usize, &'a Value)| At {
            value: Some(value),
            path: format!("{}[{place}]", self.path),
        };
        Ok(list.iter().enumerate().map(at).collect())
    }

    /// Texts of a list.
    pub(crate) fn texts(&self, count: usize, chars: usize) -> Read<Vec<String>> {
        let text = |at: &At<'a>| {
            at.text(chars)?.map(str::to_owned).ok_or_else(|| at.bad("must be a string"))
        };
        self.list(count)?.iter().map(text).collect()
    }

    /// A text of the form of an id.
    pub(crate) fn id(&self) -> Read<Option<&'a str>> {
        self.of("an id: 26 digits of Crockford's base32, with or without a prefix", |value| {
            value.as_str().filter(|text| ids::digits(text).is_some())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_path_and_the_rule() {
        let value = json!({"a": {"b": ["x", 7]}, "n": null, "t": "é".repeat(3)});
        let at = At::new("data", &value);
        let b = at.get("a").get("b");
        let problem = b.texts(2, 9).unwrap_err();
        assert_eq!(problem, Problem::field("data.a.b[1]", "must be a string"));
        assert_eq!(
            b.list(1).unwrap_err(),
            Problem::field("data.a.b", "must have at most 1 entries")
        );
        assert_eq!(at.get("n").text(1), Ok(None), "null is not there");
        assert_eq!(at.get("t").text(3), Ok(Some("ééé")), "characters are counted");
        assert!(at.get("t").text(2).is_err());
        assert_eq!(at.get("x").words(9).unwrap_err(), Problem::field("data.x", "required"));
        assert!(at.get("a").get("b").number(0.0, 1.0).is_err());
        assert!(at.get("t").id().is_err() && at.get("t").time().is_err());
    }
}

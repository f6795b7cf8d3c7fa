//! Arguments of tools, as models write them: texts for numbers, one thing for a list of one, and names that nobody asked for.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::outcome::No;

/// See the module.
#[derive(Debug)]
pub(crate) struct Arguments {
    given: Map<String, Value>,
    /// Values that were above their largest, by name: what counts instead.
    clamped: Map<String, Value>,
    /// Parts of arguments that nobody knows.
    unknown: Vec<String>,
    /// Names that were understood although they are not the tool's.
    understood: Vec<&'static str>,
    /// A wait for which no time is given takes so long.
    patience: Option<Duration>,
}

impl Arguments {
    pub(crate) fn new(given: Option<Map<String, Value>>) -> Arguments {
        let (unknown, understood) = Default::default();
        let given = given.unwrap_or_default();
        Arguments { given, clamped: Map::new(), unknown, understood, patience: None }
    }

    /// A wait for which no time is given takes so long.
    pub(crate) fn patient(self, patience: Option<Duration>) -> Arguments {
        Arguments { patience, ..self }
    }

    /// What counts in place of values that were too large.
    pub(crate) fn clamped(&self) -> Option<Value> {
        (!self.clamped.is_empty()).then(|| Value::Object(self.clamped.clone()))
    }

    /// Names that a tool does not know.
    pub(crate) fn ignored(&self, known: &Map<String, Value>) -> Vec<String> {
        let is_known =
            |name: &String| known.contains_key(name) || self.understood.contains(&name.as_str());
        let unknown = self.given.keys().filter(|name| !is_known(name));
        unknown.chain(&self.unknown).cloned().collect()
    }

    /// A part of an argument does nothing.
    pub(crate) fn ignores(&mut self, part: String) {
        self.unknown.push(part);
    }

    /// A name that is not the tool's is taken for one that is.
    pub(crate) fn understands(&mut self, name: &'static str) {
        self.understood.push(name);
    }

    /// A text, if there is one.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, No> {
        match self.one(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(No::argument(name, "must be a string")),
        }
    }

    /// A text of at most so many characters, with something in it.
    pub(crate) fn filled(&self, name: &'static str, max: usize) -> Result<Option<String>, No> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let chars = text.chars().count();
        if text.trim().is_empty() || chars > max {
            return Err(No::argument(name, &format!("must have 1 to {max} characters")));
        }
        Ok(Some(text))
    }

    /// The same, of an argument that has to be there.
    pub(crate) fn required(&self, name: &'static str, max: usize) -> Result<String, No> {
        self.filled(name, max)?.ok_or_else(|| No::argument(name, "is required"))
    }

    /// A whole number, at least `min`. One above `max` counts as that.
    pub(crate) fn integer(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, No> {
        let given = match self.one(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => whole(number),
            Some(Value::String(digits)) => digits.trim().parse().ok(),
            Some(_) => None,
        };
        let bound = format!("must be an integer of {min} or more");
        let given = given.filter(|given| *given >= min);
        let given = given.ok_or_else(|| No::argument(name, &bound))?;
        if given > max {
            self.clamped.insert(name.to_owned(), json!(max));
        }
        Ok(Some(given.min(max)))
    }

    /// Whether something is so.
    pub(crate) fn flag(&self, name: &'static str) -> Result<Option<bool>, No> {
        match self.one(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(_) => Err(No::argument(name, "must be true or false")),
        }
    }

    /// Texts.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, No> {
        let wrong = || No::argument(name, "must be an array of strings");
        let items = match self.given.get(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items.clone(),
            Some(one @ Value::String(_)) => vec![one.clone()],
            Some(_) => return Err(wrong()),
        };
        let texts = items.into_iter().map(|item| match item.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(wrong()),
        });
        texts.collect()
    }

    /// A number of seconds to wait: at most [`crate::limits::WAIT_SECS_MAX`].
    pub(crate) fn wait(&mut self, default: u64) -> Result<Duration, No> {
        Ok(self.wait_if_given()?.unwrap_or(Duration::from_secs(default)))
    }

    /// The same, without a default.
    pub(crate) fn wait_if_given(&mut self) -> Result<Option<Duration>, No> {
        let secs = self.integer("timeoutSeconds", 0, crate::limits::WAIT_SECS_MAX)?;
        Ok(secs.map(Duration::from_secs).or(self.patience))
    }

    /// Those that are known, for somebody else to judge: with one thing for a list of one and the other way round.
    pub(crate) fn known(&self, properties: &Map<String, Value>) -> Map<String, Value> {
        let mut known = Map::new();
        for (name, schema) in properties {
            let is_list = schema["type"] == "array";
            let value = if is_list { self.given.get(name) } else { self.one(name) };
            let value = match value {
                Some(one) if is_list && !one.is_array() && !one.is_null() => json!([one]),
                Some(value) if !value.is_null() => value.clone(),
                Some(_) | None => continue,
            };
            known.insert(name.clone(), value);
        }
        known
    }

    /// Whether something is given under a name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.one(name).is_some()
    }

    /// A value; of a list of one its item. `null` is none.
    fn one(&self, name: &str) -> Option<&Value> {
        let value = self.given.get(name)?;
        let only = value.as_array().filter(|items| items.len() == 1);
        let value = only.and_then(|items| items.first()).unwrap_or(value);
        (!value.is_null()).then_some(value)
    }
}

/// Also one that was written as `30.0`.
fn whole(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // Exact below 2^53; more is clamped by every caller.
        format!("{float:.0}").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: Value) -> Arguments {
        let Value::Object(given) = given else { panic!("an object") };
        Arguments::new(Some(given))
    }

    #[test]
    fn models_write_numbers_and_flags_in_many_ways() {
        let mut given = of(json!({
            "a": "12", "b": [7], "c": null, "d": 30.0, "e": 999, "f": "true", "g": ["one"], "h": 0, "i": {}, "j": -1,
        }));
        assert_eq!(given.integer("a", 1, 100), Ok(Some(12)));
        assert_eq!(given.integer("b", 1, 100), Ok(Some(7)));
        assert_eq!(given.integer("c", 1, 100), Ok(None));
        assert_eq!(given.integer("d", 1, 100), Ok(Some(30)));
        assert_eq!(given.clamped(), None);
        assert_eq!(given.integer("e", 1, 100), Ok(Some(100)));
        assert_eq!(given.clamped(), Some(json!({"e": 100})));
        assert_eq!(given.flag("f"), Ok(Some(true)));
        assert_eq!(given.text("g"), Ok(Some("one".to_owned())));
        assert_eq!(given.texts("g"), Ok(vec!["one".to_owned()]));
        for name in ["h", "i", "j"] {
            let no = given.integer(name, 1, 100).expect_err("it is none");
            let text = format!("`{name}` must be an integer of 1 or more");
            assert_eq!(no, No::Argument { text, field: name });
        }
        let known = Map::from_iter([("a".to_owned(), Value::Null)]);
        assert!(!given.ignored(&known).contains(&"a".to_owned()));
        assert_eq!(given.ignored(&known).len(), 9);
    }
}

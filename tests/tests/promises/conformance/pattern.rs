//! JSON with blanks: the requests and the expectations of a transcript.
//!
//! Without quotes there may stand
//!
//! - `$name`: a variable. In an expectation it is bound where it first stands and compared afterwards;
//!   in a request it must be bound. `$name:uuid` also names the kind of its value.
//!   `$name.field` is a field of its value.
//! - `*`: any value; `*uuid`, `*ts` (RFC 3339 in UTC with `Z`), `*text` (not empty), `*int`: any of a kind.
//! - `$x*7`: `xxxxxxx`.
//! - `...` as the first item of a list: others may stand before, between and after the items that follow.
//! - `~` as the first item of a list: exactly the items that follow, in any order.
//! - `!` as the first item of a list: no item is like one that follows.
//! - `...: $name` in an object: the fields of the variable's value, but for those that are given;
//!   `...: *`: other fields may be there.
//!
//! An object has exactly the fields that are expected; `mesh` alone may be there unexpected.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

/// Marks, within the JSON that a text is made into, words that stood without quotes. Nobody writes it.
const BARE: char = '\u{F8FF}';
/// The one field that a node may add to any object.
const MESH: &str = "mesh";

/// The values of variables.
pub(super) type Bindings = BTreeMap<String, Value>;

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Any(Kind),
    Variable { name: String, kind: Kind },
    Exactly(Value),
    List { items: Vec<Pattern>, rule: Rule },
    Object { rest: Rest, fields: BTreeMap<String, Pattern> },
}

/// The fields of an object that are not given.
#[derive(Clone, Debug)]
pub(super) enum Rest {
    None,
    Any,
    /// Those of a variable's value.
    Of(String),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Any,
    Uuid,
    Timestamp,
    Text,
    Integer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Exact,
    AnyOrder,
    Among,
    Without,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Pattern> {
        let json: Value = serde_json::from_str(&quoted(text))
            .with_context(|| format!("{text} is not JSON with blanks"))?;
        Pattern::of(&json)
    }

    fn of(json: &Value) -> Result<Pattern> {
        Ok(match json {
            Value::String(text) => match text.strip_prefix(BARE) {
                Some(token) => Pattern::token(token)?,
                None => Pattern::Exactly(json.clone()),
            },
            Value::Array(items) => {
                let first = items.first().and_then(Value::as_str);
                let rule = match first.and_then(|key| key.strip_prefix(BARE)) {
                    Some("...") => Rule::Among,
                    Some("~") => Rule::AnyOrder,
                    Some("!") => Rule::Without,
                    Some(_) | None => Rule::Exact,
                };
                let skipped = usize::from(rule != Rule::Exact);
                let items = items.iter().skip(skipped).map(Pattern::of).collect::<Result<_>>()?;
                Pattern::List { items, rule }
            }
            Value::Object(all) => {
                let (mut rest, mut fields) = (Rest::None, BTreeMap::new());
                for (name, value) in all {
                    match (name.strip_prefix(BARE), Pattern::of(value)?) {
                        (Some("..."), Pattern::Variable { name, .. }) => rest = Rest::Of(name),
                        (Some("..."), Pattern::Any(_)) => rest = Rest::Any,
                        (Some(_), _) => bail!("only `...` may stand for fields"),
                        (None, value) => drop(fields.insert(name.clone(), value)),
                    }
                }
                Pattern::Object { rest, fields }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Pattern::Exactly(json.clone()),
        })
    }

    fn token(token: &str) -> Result<Pattern> {
        if let Some(kind) = token.strip_prefix('*') {
            return Ok(Pattern::Any(Kind::parse(kind)?));
        }
        let Some(name) = token.strip_prefix('$') else { bail!("{token} stands without quotes") };
        if let Some(count) = name.strip_prefix("x*") {
            return Ok(Pattern::Exactly("x".repeat(count.parse()?).into()));
        }
        let (name, kind) = name.split_once(':').unwrap_or((name, ""));
        Ok(Pattern::Variable { name: name.to_owned(), kind: Kind::parse(kind)? })
    }

    /// Whether it is an object with this text in this field.
    pub(super) fn has(&self, field: &str, text: &str) -> bool {
        let Pattern::Object { fields, .. } = self else { return false };
        matches!(fields.get(field), Some(Pattern::Exactly(value)) if value == text)
    }

    /// A request: all blanks filled.
    pub(super) fn fill(&self, bound: &Bindings) -> Result<Value> {
        Ok(match self {
            Pattern::Any(_) => bail!("`*` cannot be asked"),
            Pattern::Variable { name, .. } => lookup(bound, name)?.clone(),
            Pattern::Exactly(value) => value.clone(),
            Pattern::List { items, .. } => {
                items.iter().map(|item| item.fill(bound)).collect::<Result<_>>()?
            }
            Pattern::Object { rest, fields } => {
                let mut all = rest.fields(bound)?;
                for (name, value) in fields {
                    all.insert(name.clone(), value.fill(bound)?);
                }
                Value::Object(all)
            }
        })
    }

    /// Compares; on success new variables are bound, else nothing is.
    pub(super) fn matches(&self, found: &Value, bound: &mut Bindings) -> Result<()> {
        let mut fresh = bound.clone();
        self.compare(found, &mut fresh, "payload")?;
        *bound = fresh;
        Ok(())
    }

    fn compare(&self, found: &Value, bound: &mut Bindings, at: &str) -> Result<()> {
        match self {
            Pattern::Any(kind) => kind.check(found, at),
            Pattern::Variable { name, kind } => {
                kind.check(found, at)?;
                if !name.contains('.') && !bound.contains_key(name) {
                    bound.insert(name.clone(), without_mesh(found));
                }
                equal(lookup(bound, name)?, found, at).with_context(|| format!("${name}"))
            }
            Pattern::Exactly(value) => equal(value, found, at),
            Pattern::List { items, rule } => {
                let Some(found) = found.as_array() else { bail!("{at} is {found}, not a list") };
                match rule {
                    Rule::Exact => in_order(items, found, bound, at),
                    Rule::AnyOrder => {
                        ensure!(items.len() == found.len(), "{at} has {} items", found.len());
                        any_order(items, found, bound, at)
                    }
                    Rule::Among => among(items, found, bound, at),
                    Rule::Without => {
                        let like = |value: &&Value| {
                            items.iter().any(|item| item.matches(value, &mut bound.clone()).is_ok())
                        };
                        let like = found.iter().find(like);
                        ensure!(like.is_none(), "{at} has {like:?}");
                        Ok(())
                    }
                }
            }
            Pattern::Object { rest, fields } => {
                let Some(found) = found.as_object() else { bail!("{at} is {found}, no object") };
                rest.compare(fields, found, bound).with_context(|| at.to_owned())?;
                for (name, pattern) in fields {
                    let value = found.get(name);
                    let value = value.with_context(|| format!("{at} lacks `{name}`"))?;
                    pattern.compare(value, bound, &format!("{at}.{name}"))?;
                }
                Ok(())
            }
        }
    }
}

impl Rest {
    fn fields(&self, bound: &Bindings) -> Result<Map<String, Value>> {
        match self {
            Rest::None => Ok(Map::new()),
            Rest::Any => bail!("`...: *` cannot be asked"),
            Rest::Of(name) => {
                let fields = lookup(bound, name)?.as_object().cloned();
                fields.with_context(|| format!("${name} is not an object"))
            }
        }
    }

    /// Compares the fields of an object but for those that are `given`.
    fn compare(
        &self,
        given: &BTreeMap<String, Pattern>,
        found: &Map<String, Value>,
        bound: &Bindings,
    ) -> Result<()> {
        if matches!(self, Rest::Any) {
            return Ok(());
        }
        let expected = self.fields(bound)?;
        for (name, value) in &expected {
            let is = found.get(name).with_context(|| format!("it lacks `{name}`"))?;
            if !given.contains_key(name) {
                equal(value, is, name)?;
            }
        }
        for (name, value) in found.iter().filter(|(name, _)| *name != MESH) {
            let known = given.contains_key(name) || expected.contains_key(name);
            ensure!(known, "it has `{name}`: {value}");
        }
        Ok(())
    }
}

impl Kind {
    fn parse(text: &str) -> Result<Kind> {
        Ok(match text {
            "" => Kind::Any,
            "uuid" => Kind::Uuid,
            "ts" => Kind::Timestamp,
            "text" => Kind::Text,
            "int" => Kind::Integer,
            other => bail!("there is no kind of value called {other}"),
        })
    }

    fn check(self, found: &Value, at: &str) -> Result<()> {
        let text = found.as_str();
        let (good, what) = match self {
            Kind::Any => (true, "anything"),
            Kind::Uuid => (text.is_some_and(is_uuid), "a UUID"),
            Kind::Timestamp => (text.is_some_and(is_timestamp), "a time in UTC with Z"),
            Kind::Text => (text.is_some_and(|text| !text.is_empty()), "a text"),
            Kind::Integer => (found.is_u64(), "an integer"),
        };
        ensure!(good, "{at} is {found}, not {what}");
        Ok(())
    }
}

/// 8-4-4-4-12 digits.
pub(super) fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()))
}

/// `2026-01-31T12:00:00.123Z`, the fraction of any length or left out.
fn is_timestamp(text: &str) -> bool {
    let Some((second, rest)) = text.split_at_checked(19) else { return false };
    let shape = "dddd-dd-ddTdd:dd:dd";
    let fits = |(c, as_in): (char, char)| c == as_in || (as_in == 'd' && c.is_ascii_digit());
    let Some(fraction) = rest.strip_suffix('Z') else { return false };
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    second.chars().zip(shape.chars()).all(fits)
        && (fraction.is_empty() || fraction.strip_prefix('.').is_some_and(digits))
}

fn lookup<'a>(bound: &'a Bindings, name: &str) -> Result<&'a Value> {
    let (of, field) = name.split_once('.').unwrap_or((name, ""));
    let value = bound.get(of).with_context(|| format!("${of} is not bound yet"))?;
    let value = if field.is_empty() { Some(value) } else { value.get(field) };
    value.with_context(|| format!("${of} has no {field}"))
}

fn equal(expected: &Value, found: &Value, at: &str) -> Result<()> {
    let found = without_mesh(found);
    ensure!(without_mesh(expected) == found, "{at} is {found}, not {expected}");
    Ok(())
}

fn without_mesh(value: &Value) -> Value {
    match value {
        Value::Object(all) => {
            let kept = all.iter().filter(|(name, _)| *name != MESH);
            Value::Object(kept.map(|(name, value)| (name.clone(), without_mesh(value))).collect())
        }
        Value::Array(all) => all.iter().map(without_mesh).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn in_order(items: &[Pattern], found: &[Value], bound: &mut Bindings, at: &str) -> Result<()> {
    ensure!(items.len() == found.len(), "{at} has {} items: {found:?}", found.len());
    for (i, (item, value)) in items.iter().zip(found).enumerate() {
        item.compare(value, bound, &format!("{at}[{i}]"))?;
    }
    Ok(())
}

fn any_order(items: &[Pattern], found: &[Value], bound: &mut Bindings, at: &str) -> Result<()> {
    let mut left: Vec<&Value> = found.iter().collect();
    for item in items {
        let fits = |value: &&Value| item.clone().matches(value, &mut bound.clone()).is_ok();
        let fitting = left.iter().position(fits);
        let fitting = fitting.with_context(|| format!("{at} lacks {item:?} among {found:?}"))?;
        item.compare(left.remove(fitting), bound, at)?;
    }
    Ok(())
}

fn among(items: &[Pattern], found: &[Value], bound: &mut Bindings, at: &str) -> Result<()> {
    let mut found = found.iter();
    for item in items {
        let here = found.find(|value| item.matches(value, &mut bound.clone()).is_ok());
        let here = here.with_context(|| format!("{at} lacks {item:?}, or not in this order"))?;
        item.compare(here, bound, at)?;
    }
    Ok(())
}

/// The JSON in which a word without quotes is a string that begins with [`BARE`].
fn quoted(text: &str) -> String {
    let (mut json, mut within, mut escaped) = (String::new(), false, false);
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let bare = rest.find([',', ']', '}', ' ', '\t', '\n']).unwrap_or(rest.len());
        let token = &rest[..bare];
        let begins = !json.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !within && begins && token.starts_with(['$', '*', '~', '.', '!']) {
            // `...: $name`
            let (token, colon) = token.strip_suffix(':').map_or((token, ""), |rest| (rest, ":"));
            json.extend(['"', BARE]);
            json.push_str(token);
            json.push('"');
            json.push_str(colon);
            rest = &rest[bare..];
            continue;
        }
        within ^= char == '"' && !escaped;
        escaped = within && char == '\\' && !escaped;
        json.push(char);
        rest = &rest[char.len_utf8()..];
    }
    json
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(pattern: &str, value: &Value) -> Result<Bindings> {
        let mut bound = Bindings::from([("known".to_owned(), json!({ "a": 1, "b": 2 }))]);
        Pattern::parse(pattern)?.matches(value, &mut bound)?;
        Ok(bound)
    }

    #[test]
    fn what_fits_and_what_does_not() {
        let fits = |pattern: &str, value: Value| found(pattern, &value).map(drop);
        let check = |pattern: &str, good: Value, bad: Value| {
            fits(pattern, good).unwrap_or_else(|error| panic!("{pattern}: {error:#}"));
            assert!(fits(pattern, bad).is_err(), "{pattern} takes too much");
        };
        check(r#"{"a": 1}"#, json!({"a": 1}), json!({"a": 1, "b": 2}));
        check(r#"{"a": 1}"#, json!({"a": 1, "mesh": {}}), json!({}));
        check(r#"{"a": *}"#, json!({"a": null}), json!({"a": 1, "b": null}));
        check(r#"{"a": $v, "b": $v}"#, json!({"a": 1, "b": 1}), json!({"a": 1, "b": 2}));
        check(r#"{...: $known, "a": 7}"#, json!({"a": 7, "b": 2}), json!({"a": 1, "b": 2}));
        check(r#"{...: $known}"#, json!({"a": 1, "b": 2}), json!({"a": 1}));
        check(r#"{...: *, "a": 1}"#, json!({"a": 1, "b": 2}), json!({"b": 1}));
        check("$known", json!({"a": 1, "b": 2, "mesh": 3}), json!({"a": 1, "b": 3}));
        check("[... , 2, 4]", json!([1, 2, 3, 4, 5]), json!([4, 2]));
        check("[~, 2, 1]", json!([1, 2]), json!([1, 2, 2]));
        check("[!, 2, 3]", json!([1, 4]), json!([1, 3]));
        check("[1, 2]", json!([1, 2]), json!([2, 1]));
        check("$x*3", json!("xxx"), json!("xx"));
        check("*int", json!(3), json!(-3));
        check("*text", json!("a"), json!(""));
        check("*ts", json!("2026-01-31T12:00:00.123Z"), json!("2026-01-31T12:00:00+00:00"));
        check("*uuid", json!("00000000-0000-4000-8000-000000000000"), json!("lobby"));
        check(r#""\"$a\" * ~""#, json!("\"$a\" * ~"), json!("else"));
    }

    #[test]
    fn what_is_asked_is_filled() {
        let bound = found("$v", &json!("it")).expect("it is bound");
        let asked = |text: &str| Pattern::parse(text).and_then(|pattern| pattern.fill(&bound));
        assert_eq!(asked(r#"{"a": [$v, "$v"]}"#).ok(), Some(json!({"a": ["it", "$v"]})));
        assert!(asked("$w").is_err() && asked("*").is_err());
    }
}

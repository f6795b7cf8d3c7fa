//! Reading an object field by field, so that a refusal can name the field that is wrong.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::object::Card;

/// A type that a payload field can have.
pub(crate) trait Field: Sized {
    /// Completes "`name` must be …".
    const EXPECTED: &'static str;

    /// The value, or `None` if it is not as [`Self::EXPECTED`] says.
    fn decode(raw: &RawValue) -> Option<Self>;

    /// The meaning of an absent field, if it may be absent.
    fn absent() -> Option<Self> {
        None
    }

    /// The meaning of `null`, if it is not the same as an absent field.
    fn null() -> Option<Self> {
        None
    }

    /// Whether the field is left out when written.
    fn is_unset(&self) -> bool {
        false
    }
}

impl<T: Field> Field for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn decode(raw: &RawValue) -> Option<Self> {
        T::decode(raw).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_unset(&self) -> bool {
        self.is_none()
    }
}

macro_rules! plain_fields {
    ($( $type:ty = $expected:literal, )*) => {
        $(impl Field for $type {
            const EXPECTED: &'static str = $expected;

            fn decode(raw: &RawValue) -> Option<Self> {
                serde_json::from_str(raw.get()).ok()
            }
        })*
    };
}

plain_fields! {
    String = "a string",
    bool = "true or false",
    u64 = "an integer of 0 or more",
    Vec<String> = "an array of strings",
    Vec<Card> = "an array of objects with `name`, `text`, `tags` and `visibility`",
}

/// The known fields of one JSON object; the others are skipped without keeping them.
pub(crate) struct Fields<'a> {
    names: &'static [&'static str],
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> Fields<'a> {
    /// Reads an object. Of a repeated field the last one counts.
    pub(crate) fn read(json: &'a str, names: &'static [&'static str]) -> serde_json::Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let fields = serde::Deserializer::deserialize_map(&mut reader, ObjectVisitor { names })?;
        reader.end()?;
        Ok(fields)
    }

    /// The raw value of a field; `null` counts as absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.given(name).filter(|raw| !is_null(raw))
    }

    fn given(&self, name: &str) -> Option<&'a RawValue> {
        let at = self.names.iter().position(|known| *known == name)?;
        self.values.get(at).copied().flatten()
    }

    /// The value of a field, or `default` if it is absent, or the message of the refusal.
    pub(crate) fn get<T: Field>(&self, name: &str, default: Option<T>) -> Result<T, String> {
        let given = self.given(name);
        if given.is_some_and(is_null)
            && let Some(null) = T::null()
        {
            return Ok(null);
        }
        match given.filter(|raw| !is_null(raw)) {
            Some(raw) => T::decode(raw).ok_or_else(|| format!("`{name}` must be {}", T::EXPECTED)),
            None => default
                .or_else(T::absent)
                .ok_or_else(|| format!("`{name}` is missing: it must be {}", T::EXPECTED)),
        }
    }
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

struct ObjectVisitor {
    names: &'static [&'static str],
}

impl<'a> Visitor<'a> for ObjectVisitor {
    type Value = Fields<'a>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = vec![None; self.names.len()];
        while let Some(known) = map.next_key_seed(NameSeed { names: self.names })? {
            match known.and_then(|at| values.get_mut(at)) {
                Some(slot) => *slot = Some(map.next_value::<&RawValue>()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Fields { names: self.names, values })
    }
}

/// Reads a key as the place of its name, so that unknown keys cost no memory.
struct NameSeed {
    names: &'static [&'static str],
}

impl<'a> DeserializeSeed<'a> for NameSeed {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'a>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.names.iter().position(|known| *known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_fields_are_found_and_the_rest_is_skipped() {
        let json = r#"{"x":[1,{"a":2}],"\u0061":"first","b":null,"a":"last"}"#;
        let fields = Fields::read(json, &["a", "b"]).unwrap();
        assert_eq!(fields.get::<String>("a", None).unwrap(), "last");
        assert_eq!(fields.get::<Option<String>>("b", None).unwrap(), None);
        assert_eq!(fields.get::<u64>("b", Some(7)).unwrap(), 7);
    }

    #[test]
    fn refusals_name_the_field() {
        let fields = Fields::read(r#"{"a":1,"n":-1}"#, &["a", "b", "n"]).unwrap();
        assert_eq!(fields.get::<String>("a", None).unwrap_err(), "`a` must be a string");
        assert!(fields.get::<String>("b", None).unwrap_err().starts_with("`b` is missing"));
        for text in ["-1", "1.5", "1e3", "18446744073709551616", "\"1\"", "[]"] {
            let json = format!(r#"{{"n":{text}}}"#);
            let fields = Fields::read(&json, &["n"]).unwrap();
            assert!(fields.get::<u64>("n", None).unwrap_err().contains("`n`"), "{text}");
        }
    }

    #[test]
    fn only_objects_are_read() {
        for json in ["[]", "1", "null", "\"a\"", "{", "{}x", "{\"a\":}", ""] {
            assert!(Fields::read(json, &["a"]).is_err(), "{json}");
        }
    }
}

//! Settings of a room that mean something to the mesh: the keys that write its files.

use std::collections::BTreeSet;

use mesh::{
    api::rules::{Broken, Field, Rule},
    limits::WRITERS_PER_ROOM_MAX,
    name::id::{KeyPrint, parse_hex},
    records::{
        details::DetailsUpdate,
        writers::{ANYONE, FILES, WRITERS},
    },
};

/// Takes them out of the settings that a client changes: JSON texts, or `None`.
///
/// # Errors
///
/// One has another form.
pub(super) fn understood(mut update: DetailsUpdate) -> Result<DetailsUpdate, Broken> {
    for (name, value) in std::mem::take(&mut update.settings) {
        match &*name {
            WRITERS => update.writers.named = Some(value.as_deref().map(keys).transpose()?),
            FILES => {
                value.as_deref().map(anyone).transpose()?;
                update.writers.anyone = Some(value.is_some());
            }
            _ => update.settings.push((name, value)),
        }
    }
    Ok(update)
}

fn keys(json: &str) -> Result<BTreeSet<KeyPrint>, Broken> {
    let wrong = Broken { field: Field::Writers, rule: Rule::Keys(WRITERS_PER_ROOM_MAX) };
    let texts: Vec<String> = serde_json::from_str(json).map_err(|_| wrong)?;
    texts.iter().map(|text| parse_hex(text).map(KeyPrint)).collect::<Option<_>>().ok_or(wrong)
}

fn anyone(json: &str) -> Result<(), Broken> {
    let wrong = Broken { field: Field::FileWriters, rule: Rule::Word(ANYONE) };
    let word: String = serde_json::from_str(json).map_err(|_| wrong)?;
    if word == ANYONE { Ok(()) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: Option<&str>) -> Result<DetailsUpdate, Broken> {
        let settings = vec![(name.to_owned(), value.map(String::from))];
        understood(DetailsUpdate { settings, ..DetailsUpdate::default() })
    }

    #[test]
    fn settings_of_other_names_are_the_clients_own() {
        let update = of("theme", Some("\"dark\"")).expect("it may");
        assert_eq!(update.settings.len(), 1);
        assert!(update.writers.is_empty());
    }

    #[test]
    fn writers_are_fingerprints_and_files_are_anyones_or_not() {
        let print = KeyPrint([7; 16]);
        let update = of(WRITERS, Some(&format!("[\"{print}\"]"))).expect("it is one");
        assert_eq!(update.writers.named, Some(Some(BTreeSet::from([print]))));
        assert!(update.settings.is_empty());
        assert_eq!(of(WRITERS, None).expect("none").writers.named, Some(None));
        assert_eq!(of(FILES, Some("\"anyone\"")).expect("all").writers.anyone, Some(true));
        assert_eq!(of(FILES, None).expect("no more").writers.anyone, Some(false));
        for (name, wrong) in [
            (WRITERS, "\"07070707070707070707070707070707\""),
            (WRITERS, "[\"07\"]"),
            (WRITERS, "[7]"),
            (FILES, "true"),
            (FILES, "\"someone\""),
        ] {
            assert!(of(name, Some(wrong)).is_err(), "{name} {wrong}");
        }
    }
}

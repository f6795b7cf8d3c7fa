//! The scenarios that come with the program.

use super::file::{FileError, Scenario};

/// A file in `testnet/scenarios`, by name.
const ALL: &[(&str, &str)] = &[
    ("calm", include_str!("../../scenarios/calm.toml")),
    ("split", include_str!("../../scenarios/split.toml")),
    ("five-ways", include_str!("../../scenarios/five-ways.toml")),
    ("flapping", include_str!("../../scenarios/flapping.toml")),
    ("sequencer-killed", include_str!("../../scenarios/sequencer-killed.toml")),
    ("blackout", include_str!("../../scenarios/blackout.toml")),
    ("paused", include_str!("../../scenarios/paused.toml")),
    ("roaming", include_str!("../../scenarios/roaming.toml")),
    ("vote", include_str!("../../scenarios/vote.toml")),
    ("old-backup", include_str!("../../scenarios/old-backup.toml")),
    ("newcomer", include_str!("../../scenarios/newcomer.toml")),
    ("disk-full", include_str!("../../scenarios/disk-full.toml")),
    ("clocks", include_str!("../../scenarios/clocks.toml")),
    ("lantern", include_str!("../../scenarios/lantern.toml")),
    ("coordination", include_str!("../../scenarios/coordination.toml")),
    ("story", include_str!("../../scenarios/story.toml")),
    ("hand-over", include_str!("../../scenarios/hand-over.toml")),
    ("twelve", include_str!("../../scenarios/twelve.toml")),
    ("fifty", include_str!("../../scenarios/fifty.toml")),
    ("other-version", include_str!("../../scenarios/other-version.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The scenario of this name, if there is one.
///
/// # Errors
///
/// It is not well written: a bug of ours, and tests see it.
pub fn named(name: &str) -> Option<Result<Scenario, FileError>> {
    let (_, text) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(Scenario::parse(text))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn every_file_is_in_the_catalogue_and_well_written() {
        let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios")).unwrap();
        let files: BTreeSet<String> = files
            .map(|file| file.unwrap().file_name().to_string_lossy().replace(".toml", ""))
            .collect();
        assert_eq!(files, names().map(str::to_owned).collect());
        for name in names() {
            let scenario = named(name).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!scenario.title.is_empty(), "{name}");
        }
    }
}

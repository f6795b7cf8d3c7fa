//! What others' code may be: `deny.toml`, checked without cargo-deny, which takes longer to build than all of this
//! project. Advisories need a database from elsewhere: `cargo deny check advisories` does that where it can be had.

use std::{collections::BTreeSet, process::Command};

use toml::Value;

use crate::tree::{read, root, table};

/// Crates that are built, by `name version`, and the licence each gives.
fn built() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline", "--edges", "normal,build,dev"])
        .args(["--prefix", "none", "--format", "{p}\t{l}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    let crates: BTreeSet<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, licence)| (name, licence.trim_end_matches(" (*)").to_owned()))
        // Ours have a path.
        .filter(|(name, _)| !name.contains('/'))
        .map(|(name, licence)| (name.trim_end_matches(" (proc-macro)").to_owned(), licence))
        .collect();
    crates.into_iter().collect()
}

fn allowed() -> BTreeSet<String> {
    let rules = table(&root().join("deny.toml"));
    let list = rules["licenses"]["allow"].as_array().expect("a list");
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be satisfied; `/` is how `OR` was written once.
fn satisfies(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let fits = any(&words, &mut at, allowed);
    // What is not understood to its end allows nothing.
    fits && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fits = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        fits |= all(words, at, allowed);
    }
    fits
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fits = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        fits &= one(words, at, allowed);
    }
    fits
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let fits = any(words, at, allowed);
        *at += usize::from(words.get(*at) == Some(&")"));
        return fits;
    }
    if words.get(*at) == Some(&"WITH") {
        // With an exception it is another licence.
        *at += 2;
        return false;
    }
    allowed.contains(word)
}

#[test]
fn licences_of_others_are_those_that_were_decided() {
    let (built, allowed) = (built(), allowed());
    assert!(built.len() > 200, "the list was understood");
    let strange: Vec<_> =
        built.iter().filter(|(_, licence)| !satisfies(licence, &allowed)).collect();
    assert!(strange.is_empty(), "decide in deny.toml, with the reason: {strange:#?}");
    // None is allowed that nobody needs.
    for licence in &allowed {
        let mut without = allowed.clone();
        without.remove(licence);
        let needed = built.iter().any(|(_, it)| !satisfies(it, &without));
        assert!(needed, "{licence} is in deny.toml, and no crate needs it");
    }
}

#[test]
fn crates_come_from_one_registry() {
    let lock: toml::Table = toml::from_str(&read(&root().join("Cargo.lock"))).expect("a lock file");
    let rules = table(&root().join("deny.toml"));
    let registry = rules["sources"]["allow-registry"][0].as_str().expect("a registry");
    let packages = lock["package"].as_array().expect("packages");
    assert!(packages.len() > 200);
    for package in packages {
        let source = package.get("source").and_then(Value::as_str);
        let fits = source.is_none_or(|it| it.strip_prefix("registry+") == Some(registry));
        assert!(fits, "{package:?}");
    }
}

#[test]
fn expressions_are_read_as_spdx_says() {
    let allowed = ["MIT", "ISC"].map(str::to_owned).into();
    for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "ISC AND (GPL-3.0 OR MIT)"] {
        assert!(satisfies(good, &allowed), "{good}");
    }
    for good in ["GPL-3.0 AND ISC OR MIT", "(MIT)", "GPL-3.0 WITH x OR MIT"] {
        assert!(satisfies(good, &allowed), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x", "MIT MIT", "ISC AND (GPL-3.0)"] {
        assert!(!satisfies(bad, &allowed), "{bad}");
    }
}

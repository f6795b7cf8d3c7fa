//! Every warning and error that a node can log has a name, and the page for operators says what to do.

use std::{collections::BTreeMap, path::Path};

use crate::tree::{files, read, root};

/// Where the daemon's log comes from.
const SOURCES: [&str; 6] =
    ["node/src", "node/net/src", "node/store/src", "bridge/src", "bridge/dialects", "mesh/src"];

/// The events of all warnings and errors, with where they are; and calls that have none.
fn logged() -> (BTreeMap<String, String>, Vec<String>) {
    let (mut events, mut nameless) = (BTreeMap::new(), Vec::new());
    for folder in SOURCES {
        for file in files(&root().join(folder), "rs") {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with("tests.rs") || file.iter().any(|part| part == "tests") {
                continue;
            }
            let text = read(&file);
            for call in ["warn!(", "error!("] {
                for (at, _) in text.match_indices(call) {
                    let line = text[..at].matches('\n').count() + 1;
                    let place = format!("{}:{line}", file.display());
                    match text[at + call.len()..].trim_start().strip_prefix("event = \"") {
                        Some(rest) => {
                            let event = rest.split('"').next().unwrap_or_default();
                            events.insert(event.to_owned(), place);
                        }
                        None => nameless.push(place),
                    }
                }
            }
        }
    }
    (events, nameless)
}

/// The rows of the page's table of warnings.
fn explained() -> Vec<String> {
    let page = read(&root().join("docs/operating.md"));
    let (_, section) = page.split_once("\n## Log\n").expect("a section `Log`");
    let section = section.split("\n## ").next().unwrap_or_default();
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        assert_eq!(rest.matches(" | ").count(), 1, "what it means, and what to do: {line}");
        Some(name.to_owned())
    };
    section.lines().filter_map(row).collect()
}

#[test]
fn every_warning_has_a_name_and_the_page_explains_it() {
    let (events, nameless) = logged();
    assert!(
        nameless.is_empty(),
        "begin each of these with `event = \"a_name\", ` and explain it in docs/operating.md: {nameless:#?}"
    );
    assert!(events.len() >= 25, "they are found: {events:?}");
    for (event, place) in &events {
        let fits = event.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(fits && !event.is_empty(), "{place}: {event}");
    }
    let mut explained = explained();
    let given = explained.len();
    explained.sort();
    explained.dedup();
    assert_eq!(explained.len(), given, "each once");
    let logged: Vec<String> = events.into_keys().collect();
    assert_eq!(explained, logged, "left: docs/operating.md, right: what the sources log");
}

#[test]
fn packages_do_not_log_by_other_names() {
    for folder in SOURCES {
        for file in files(&root().join(folder), "rs") {
            let text = read(&file);
            let hides = ["use tracing::", "use log::", "log::warn!", "log::error!"];
            let hidden = hides.iter().any(|secret| text.contains(secret));
            assert!(!hidden || is_allowed(&file), "{}: write tracing::warn!", file.display());
        }
    }
}

/// The daemon sets the log up.
fn is_allowed(file: &Path) -> bool {
    file.ends_with("node/src/commands.rs")
}

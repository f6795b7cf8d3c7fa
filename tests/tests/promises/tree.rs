//! The rules of the tree itself. An edge between packages is a decision: adding one edits
//! [`PACKAGES`] and the table in `docs/ARCHITECTURE.md` in the same commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

/// No file of ours is longer.
const FILE_LINES_MAX: usize = 800;

/// One of our packages, and all that it may use.
struct Package {
    name: &'static str,
    folder: &'static str,
    /// Packages of ours that it is built with.
    edges: &'static [&'static str],
    /// Crates of others that it is built with.
    crates: &'static [&'static str],
    /// Packages that only its tests use, ours and others'.
    in_tests: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package {
        name: "mesh",
        folder: "mesh",
        edges: &[],
        crates: &[
            "chacha20poly1305",
            "ed25519-dalek",
            "hkdf",
            "minicbor",
            "sha2",
            "thiserror",
            "x25519-dalek",
            "zeroize",
        ],
        in_tests: &["proptest"],
    },
    Package {
        name: "store",
        folder: "node/store",
        edges: &["mesh"],
        crates: &["minicbor", "redb", "sha2", "thiserror", "twox-hash"],
        in_tests: &["tempfile"],
    },
    Package {
        name: "import",
        folder: "node/import",
        edges: &[],
        crates: &["jiff", "rusqlite", "serde_json", "sha2", "tempfile", "thiserror"],
        in_tests: &[],
    },
    Package {
        name: "net",
        folder: "node/net",
        edges: &[],
        crates: &[
            "bytes",
            "futures",
            "getrandom",
            "if-watch",
            "libp2p",
            "libp2p-stream",
            "rustix",
            "salsa20",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tokio-tungstenite",
            "tracing",
            "zeroize",
        ],
        in_tests: &["libp2p"],
    },
    Package {
        name: "protocol",
        folder: "bridge/protocol",
        edges: &[],
        crates: &["serde", "serde_json"],
        in_tests: &[],
    },
    Package {
        name: "client",
        folder: "bridge/client",
        edges: &["protocol"],
        crates: &[
            "base64",
            "chacha20poly1305",
            "futures",
            "getrandom",
            "hkdf",
            "http-body-util",
            "hyper",
            "hyper-util",
            "rustls-native-certs",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tokio-tungstenite",
            "zeroize",
        ],
        in_tests: &[],
    },
    Package {
        name: "lantern",
        folder: "bridge/lantern",
        edges: &[],
        crates: &["serde", "serde_json"],
        in_tests: &[],
    },
    Package {
        name: "openpgp",
        folder: "bridge/openpgp",
        edges: &[],
        crates: &["base64", "jiff", "pgp", "rand_core", "thiserror", "zeroize"],
        in_tests: &["tempfile"],
    },
    Package {
        name: "bridge",
        folder: "bridge",
        edges: &["mesh"],
        crates: &[
            "axum",
            "base64",
            "bytes",
            "futures",
            "getrandom",
            "hmac",
            "hyper",
            "hyper-util",
            "idna_adapter",
            "jiff",
            "rustls-native-certs",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tracing",
            "url",
        ],
        in_tests: &["tokio"],
    },
    Package {
        name: "clawchat",
        folder: "bridge/dialects/clawchat",
        edges: &["bridge", "mesh", "protocol"],
        crates: &["axum", "bytes", "jiff", "serde", "serde_json", "tokio"],
        in_tests: &["bridge", "futures", "tokio-tungstenite"],
    },
    Package {
        name: "clawfinder",
        folder: "bridge/dialects/clawfinder",
        edges: &["bridge", "mesh", "openpgp"],
        crates: &[
            "axum",
            "base64",
            "getrandom",
            "http-body-util",
            "hyper",
            "jiff",
            "serde_json",
            "tokio",
            "tracing",
            "zeroize",
        ],
        in_tests: &["bridge", "tokio"],
    },
    Package {
        name: "clawtank",
        folder: "bridge/dialects/clawtank",
        edges: &["bridge", "mesh"],
        crates: &["axum", "bytes", "jiff", "serde_json", "sha2", "tokio", "tracing"],
        in_tests: &["bridge", "futures", "tokio", "tokio-tungstenite"],
    },
    Package {
        name: "goclaw",
        folder: "bridge/dialects/goclaw",
        edges: &["bridge", "mesh"],
        crates: &[
            "axum",
            "bytes",
            "getrandom",
            "jiff",
            "json5",
            "serde_json",
            "sha2",
            "tokio",
            "tracing",
        ],
        in_tests: &["bridge", "futures", "tokio", "tokio-tungstenite"],
    },
    Package {
        name: "mcp",
        folder: "bridge/dialects/mcp",
        edges: &["bridge", "mesh"],
        crates: &["axum", "bytes", "jiff", "rmcp", "serde_json", "sha2", "tokio"],
        in_tests: &["bridge", "http-body-util", "hyper", "hyper-util"],
    },
    Package {
        name: "page",
        folder: "bridge/dialects/page",
        edges: &["bridge", "lantern", "mesh"],
        crates: &["axum", "futures", "getrandom", "jiff", "maud", "serde_json", "sha2", "tokio"],
        in_tests: &["bridge"],
    },
    Package {
        name: "node",
        folder: "node",
        edges: &[
            "bridge",
            "clawchat",
            "clawfinder",
            "clawtank",
            "goclaw",
            "import",
            "mcp",
            "mesh",
            "net",
            "page",
            "protocol",
            "store",
        ],
        crates: &[
            "anyhow",
            "bytes",
            "clap",
            "clap_complete",
            "clap_mangen",
            "etcetera",
            "getrandom",
            "nix",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "toml",
            "tracing",
            "tracing-subscriber",
            "zeroize",
        ],
        in_tests: &["client", "rusqlite", "tempfile", "testnet", "tokio-tungstenite"],
    },
    Package {
        name: "cli",
        folder: "cli",
        edges: &["client", "lantern", "openpgp", "protocol"],
        crates: &[
            "base64",
            "clap",
            "clap_complete",
            "clap_mangen",
            "comfy-table",
            "ed25519-dalek",
            "etcetera",
            "getrandom",
            "hkdf",
            "indicatif",
            "jiff",
            "ratatui",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "shlex",
            "signal-hook",
            "terminal_size",
            "thiserror",
            "tokio",
            "toml",
            "unicode-segmentation",
            "unicode-width",
            "zeroize",
        ],
        in_tests: &["rustix", "serde_json", "tempfile", "testnet", "tokio", "vt100"],
    },
    Package {
        name: "testnet",
        folder: "testnet",
        edges: &["mesh", "net", "openpgp", "store"],
        crates: &[
            "anyhow",
            "bytes",
            "clap",
            "futures",
            "rustix",
            "serde",
            "serde_json",
            "tempfile",
            "thiserror",
            "tokio",
            "tokio-tungstenite",
            "toml",
        ],
        in_tests: &[],
    },
    Package {
        name: "judge",
        folder: "testnet/judge",
        edges: &[],
        crates: &["anyhow", "clap", "serde", "serde_json"],
        in_tests: &[],
    },
    Package {
        name: "examples",
        folder: "examples",
        edges: &["client", "protocol"],
        crates: &["anyhow", "etcetera", "tokio"],
        in_tests: &[],
    },
    Package {
        name: "tests",
        folder: "tests",
        edges: &[],
        crates: &[],
        in_tests: &[
            "anyhow",
            "client",
            "divan",
            "judge",
            "mesh",
            "protocol",
            "serde_json",
            "store",
            "tempfile",
            "testnet",
            "tokio",
            "toml",
        ],
    },
];

/// The folders of the top level. A new one is a decision, too.
const FOLDERS: &[&str] = &[
    "bridge",
    "cli",
    "clients",
    "docs",
    "examples",
    "fuzz",
    "mesh",
    "node",
    "packaging",
    "testnet",
    "tests",
];

#[test]
fn packages_use_what_they_may_use_and_nothing_else() {
    let members = strings(&workspace()["members"]);
    let known: BTreeSet<&str> = PACKAGES.iter().map(|package| package.folder).collect();
    assert_eq!(members, owned(&known), "members of the workspace");
    let ours: BTreeSet<&str> = PACKAGES.iter().map(|package| package.name).collect();
    for package in PACKAGES {
        let manifest = table(&root().join(package.folder).join("Cargo.toml"));
        assert_eq!(manifest["package"]["name"].as_str(), Some(package.name));
        let used = names(&manifest, &["dependencies", "build-dependencies"]);
        let (edges, crates): (BTreeSet<_>, BTreeSet<_>) =
            used.into_iter().partition(|package| ours.contains(package.as_str()));
        let name = package.name;
        assert_eq!(edges, set(package.edges), "edges of {name}: see docs/ARCHITECTURE.md");
        assert_eq!(crates, set(package.crates), "crates of {name}: see docs/ARCHITECTURE.md");
        let in_tests = names(&manifest, &["dev-dependencies"]);
        assert_eq!(in_tests, set(package.in_tests), "dev-dependencies of {name}");
        assert!(manifest.get("target").is_none(), "{name} depends on the platform");
    }
}

#[test]
fn the_architecture_page_has_the_same_edges() {
    let page = read(&root().join("docs/ARCHITECTURE.md"));
    let rows: BTreeMap<&str, Vec<&str>> = page
        .lines()
        .skip_while(|line| *line != "## Package edges")
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, rest)| (name, rest.split('|').collect()))
        .collect();
    assert_eq!(rows.len(), PACKAGES.len(), "rows of the table");
    for package in PACKAGES {
        let row = rows.get(package.name).unwrap_or_else(|| panic!("{} has no row", package.name));
        let columns = [package.edges, package.crates, package.in_tests];
        for (column, expect) in row.iter().zip(columns) {
            let said: BTreeSet<String> =
                column.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            assert_eq!(said, set(expect), "row of {} in docs/ARCHITECTURE.md", package.name);
        }
    }
}

/// Versions and features are chosen in one place, lints hold everywhere.
#[test]
fn packages_take_versions_and_lints_from_the_workspace() {
    for package in PACKAGES {
        let manifest = table(&root().join(package.folder).join("Cargo.toml"));
        let name = package.name;
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "lints of {name}");
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(Value::Table(used)) = manifest.get(kind) else { continue };
            for (dependency, how) in used {
                let inherited = how.get("workspace").and_then(Value::as_bool) == Some(true);
                assert!(inherited, "{name} chooses its own version of {dependency}");
            }
        }
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            let inherited = manifest["package"][key].get("workspace").and_then(Value::as_bool);
            assert_eq!(inherited, Some(true), "package.{key} of {name}");
        }
    }
}

/// The manifest's line and ours: never the 0.10 and 0.12 lines of RustCrypto.
#[test]
fn one_generation_of_rustcrypto_is_used() {
    let dependencies = &workspace()["dependencies"];
    let generation = [("chacha20poly1305", "0.11"), ("ed25519-dalek", "3"), ("hkdf", "0.13")];
    for (name, expect) in generation.into_iter().chain([("sha2", "0.11")]) {
        let Some(how) = dependencies.get(name) else { continue };
        let version = how.as_str().or_else(|| how.get("version")?.as_str());
        assert_eq!(version, Some(expect), "{name}");
    }
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let sources = files(&root(), "rs");
    assert!(sources.len() > 100, "the sources were found");
    for file in sources {
        let lines = read(&file).lines().count();
        let shown = shown(&file);
        assert!(lines <= FILE_LINES_MAX, "{shown} has {lines} lines: split it by what it is about");
    }
}

#[test]
fn every_library_says_what_it_is() {
    for package in PACKAGES {
        let file = root().join(package.folder).join("src/lib.rs");
        assert!(read(&file).starts_with("//! "), "{} has no doc", shown(&file));
    }
}

/// The bridge speaks no language itself, and one language is nothing to another.
#[test]
fn dialects_see_the_seam_and_not_each_other() {
    let dialects: Vec<&Package> =
        PACKAGES.iter().filter(|it| it.folder.starts_with("bridge/dialects/")).collect();
    assert!(!dialects.is_empty(), "dialects were found");
    for dialect in &dialects {
        for other in &dialects {
            assert!(!dialect.edges.contains(&other.name), "{} sees {}", dialect.name, other.name);
        }
        // All that a node is asked goes through calls, and comes back as their answers.
        let of_nodes =
            ["Command::", "Outcome::", "backend::", "impl Mesh for", "impl Reads for", "hub::Hub"];
        for file in files(&root().join(dialect.folder).join("src"), "rs") {
            if file.components().any(|it| it.as_os_str() == "tests") {
                continue;
            }
            let text = read(&file);
            for name in of_nodes {
                assert!(!text.contains(name), "{} names {name}", shown(&file));
            }
        }
    }
    let bridge = PACKAGES.iter().find(|it| it.name == "bridge").expect("there is a bridge");
    let wire = bridge
        .edges
        .iter()
        .find(|edge| **edge == "protocol" || dialects.iter().any(|dialect| dialect.name == **edge));
    assert_eq!(wire, None, "the bridge sees a dialect");
}

/// Signatures that are made up and commits that are synced later are for simulated worlds.
#[test]
fn nodes_know_nothing_of_what_only_simulated_worlds_may_do() {
    let of_worlds =
        ["put_off_syncs", "identity::Simulated", "Simulated::new", "Identity::simulated"];
    let mut looked = 0;
    for folder in ["node/src", "node/net/src", "bridge", "cli", "examples"] {
        for file in files(&root().join(folder), "rs") {
            let text = read(&file);
            for name in of_worlds {
                assert!(!text.contains(name), "{} names {name}", shown(&file));
            }
            looked += 1;
        }
    }
    assert!(looked > 100, "the sources were found");
}

/// A function of its inputs: clippy refuses clocks, threads and hash collections.
#[test]
fn the_core_bans_clocks_threads_and_hash_collections() {
    let ours = table(&root().join("clippy.toml"));
    let core = table(&root().join("mesh/clippy.toml"));
    // A package's file replaces that of the top level.
    for (key, value) in &ours {
        assert_eq!(core.get(key), Some(value), "{key} of mesh/clippy.toml");
    }
    let banned: BTreeSet<&str> = ["disallowed-types", "disallowed-methods"]
        .iter()
        .flat_map(|key| core[*key].as_array().expect("a list"))
        .filter_map(|ban| ban.get("path")?.as_str())
        .collect();
    for path in [
        "std::time::Instant",
        "std::time::Instant::now",
        "std::time::SystemTime",
        "std::time::SystemTime::now",
        "std::collections::HashMap",
        "std::collections::HashSet",
        "std::thread::spawn",
        "std::thread::sleep",
    ] {
        assert!(banned.contains(path), "{path} is not banned");
    }
}

#[test]
fn the_top_level_is_what_it_was_decided_to_be() {
    let entries = fs::read_dir(root()).expect("the top level can be read");
    let folders: BTreeSet<String> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && name != "target")
        .collect();
    assert_eq!(folders, set(FOLDERS));
}

/// Links in pages lead somewhere, to the heading too.
#[test]
fn links_resolve() {
    let pages = files(&root(), "md");
    assert!(pages.iter().any(|page| page.ends_with("README.md")), "the pages were found");
    let mut count = 0;
    for page in pages {
        for target in links(&read(&page)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = page.parent().expect("a file is in a folder");
            let file = if path.is_empty() { page.clone() } else { folder.join(path) };
            assert!(file.exists(), "{} links to {target}: there is no such file", shown(&page));
            if !anchor.is_empty() {
                let found = headings(&read(&file)).contains(anchor);
                assert!(found, "{} links to {target}: there is no such heading", shown(&page));
            }
        }
    }
    assert!(count > 10, "links were found");
}

/// Pages that comments and other pages name exist.
#[test]
fn pages_that_are_named_exist() {
    let (sources, manifests) = (files(&root(), "rs"), files(&root(), "toml"));
    let pages = files(&root(), "md");
    for file in sources.into_iter().chain(manifests).chain(pages) {
        let text = read(&file);
        for (start, _) in text.match_indices("docs/") {
            let rest = &text[start..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/_-.".contains(c)));
            let named = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            let is_page = Path::new(named).extension().is_some_and(|extension| extension == "md");
            let exists = !is_page || root().join(named).exists();
            assert!(exists, "{} names {named}, which does not exist", shown(&file));
        }
    }
}

/// Each impossibility of the security page has a test.
#[test]
fn tests_that_the_security_page_names_exist() {
    let page = read(&root().join("docs/security.md"));
    let named: BTreeSet<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        })
        .collect();
    assert!(named.len() > 20, "the names were found");
    let sources: String = files(&root(), "rs").iter().map(|path| read(path)).collect();
    for name in named {
        assert!(sources.contains(&format!("fn {name}(")), "there is no test {name}");
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is in the tree").to_owned()
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

pub(crate) fn table(file: &Path) -> Table {
    toml::from_str(&read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn workspace() -> Table {
    let manifest = table(&root().join("Cargo.toml"));
    manifest["workspace"].as_table().expect("[workspace]").clone()
}

/// The crates that a manifest names in these sections.
fn names(manifest: &Table, sections: &[&str]) -> BTreeSet<String> {
    let tables = sections.iter().filter_map(|section| manifest.get(*section)?.as_table());
    tables.flat_map(|table| table.keys().cloned()).collect()
}

fn strings(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().expect("a list");
    items.iter().map(|item| item.as_str().expect("a string").to_owned()).collect()
}

fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn owned(items: &BTreeSet<&str>) -> BTreeSet<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// All files of this kind in the tree, but for built and hidden ones.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of ours can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// Targets of `[text](target)`, outside of code.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        let parts: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for (at, _) in parts.match_indices("](") {
            let rest = &parts[at + 2..];
            if let Some(end) = rest.find(')') {
                found.push(rest[..end].to_owned());
            }
        }
    }
    found
}

/// Anchors of a page's headings, as forges make them.
fn headings(page: &str) -> BTreeSet<String> {
    let titles = prose(page).filter(|line| line.starts_with('#'));
    titles
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// A page without its blocks of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code
    })
}

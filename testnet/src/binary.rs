//! Where the daemon's binary is.
//!
//! Cargo tells a test only of the binaries of its own package, so the daemon is looked for beside the
//! program that runs: `target/PROFILE/clawmeshd`, where a build of the workspace leaves it. Tests ask for
//! [`fresh`], which builds it when it is missing or older than a source that cargo says it is made of;
//! within a run of `cargo test` that is possible, because cargo has given its lock back by then. The
//! variable `CLAWMESHD` names another one, such as a release build.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

use thiserror::Error;

/// The name of the daemon.
const DAEMON: &str = "clawmeshd";

/// No daemon to run.
#[derive(Clone, Debug, Error)]
pub enum BinaryError {
    /// Nobody built it.
    #[error(
        "no {DAEMON} at {}: build it with `cargo build --bin {DAEMON}`, or name another with \
         --{DAEMON} PATH", .0.display()
    )]
    Missing(PathBuf),
    /// The system does not tell where this program is.
    #[error("cannot tell where this program is: {0}")]
    NoProgram(String),
    /// Cargo cannot build it.
    #[error("cannot build {DAEMON}: {0}")]
    Build(String),
}

/// The daemon beside this program.
///
/// # Errors
///
/// [`BinaryError::Missing`] says how to get one.
pub fn beside() -> Result<PathBuf, BinaryError> {
    let path = expected()?;
    if path.is_file() { Ok(path) } else { Err(BinaryError::Missing(path)) }
}

/// Whether a source that cargo lists for the binary is younger than it. `false` when cargo left no list.
#[must_use]
pub fn is_stale(binary: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    let built: io::Result<SystemTime> = changed(binary);
    let Ok(built) = built else { return true };
    let Ok(list) = fs::read_to_string(binary.with_extension("d")) else { return false };
    // A source that is gone cannot be in the binary's next build: stale as well.
    sources(&list).iter().any(|source| changed(source).map_or(true, |at| at > built))
}

/// The daemon that `CLAWMESHD` names, or else the one beside this program as of the sources: built once
/// per process if need be, in the profile of this program.
///
/// # Errors
///
/// The words of cargo when it cannot build it.
pub fn fresh() -> Result<PathBuf, BinaryError> {
    static BUILT: OnceLock<Result<PathBuf, BinaryError>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if let Some(named) = env::var_os("CLAWMESHD") {
            return Ok(PathBuf::from(named));
        }
        let path = expected()?;
        if !path.is_file() || is_stale(&path) {
            build(&path)?;
        }
        Ok(path)
    });
    built.clone()
}

/// `target/PROFILE/clawmeshd`; test programs are one directory below.
fn expected() -> Result<PathBuf, BinaryError> {
    let program = env::current_exe().map_err(|error| BinaryError::NoProgram(error.to_string()))?;
    let dir = program.parent().unwrap_or(Path::new("."));
    let dir = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
    Ok(dir.join(format!("{DAEMON}{}", env::consts::EXE_SUFFIX)))
}

fn build(path: &Path) -> Result<(), BinaryError> {
    let failed = |text: &str| BinaryError::Build(text.to_owned());
    let dir = path.parent().ok_or_else(|| failed("it would have no directory"))?;
    let target = dir.parent().ok_or_else(|| failed("there is no target directory"))?;
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(other) => other,
        None => return Err(failed("the profile has no name")),
    };
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    // With the whole workspace, so that features are those of `cargo test --workspace`.
    let output = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--bin", DAEMON, "--profile", profile])
        .args(["--manifest-path", manifest, "--target-dir"])
        .arg(target)
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(&String::from_utf8_lossy(&output.stderr)))
    }
}

/// The sources in one of cargo's lists: `BINARY: SOURCE SOURCE`, a blank within a name written `\ `.
fn sources(list: &str) -> Vec<PathBuf> {
    let line = list.lines().next().unwrap_or("");
    let Some((_, sources)) = line.split_once(": ") else { return Vec::new() };
    let (mut all, mut name, mut escaped) = (Vec::new(), String::new(), false);
    for char in sources.chars() {
        match char {
            '\\' if !escaped => escaped = true,
            ' ' if !escaped => all.push(std::mem::take(&mut name)),
            other => {
                name.push(other);
                escaped = false;
            }
        }
    }
    all.push(name);
    all.into_iter().filter(|name| !name.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_from_cargos_list() {
        let check = |list: &str, expect: &[&str]| {
            assert_eq!(sources(list), expect.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        check("/t/clawmeshd: /a/b.rs /a/c.rs\n", &["/a/b.rs", "/a/c.rs"]);
        check("/t/clawmeshd: /a\\ b/c.rs", &["/a b/c.rs"]);
        check("", &[]);
    }

    #[test]
    fn a_binary_is_stale_when_a_source_is_younger_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("source.rs"), "").unwrap();
        fs::write(at("clawmeshd"), "").unwrap();
        assert!(!is_stale(&at("clawmeshd")), "cargo left no list");
        fs::write(at("clawmeshd.d"), format!("x: {}", at("source.rs").display())).unwrap();
        assert!(!is_stale(&at("clawmeshd")));
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        fs::File::options()
            .write(true)
            .open(at("source.rs"))
            .and_then(|file| file.set_modified(later))
            .unwrap();
        assert!(is_stale(&at("clawmeshd")));
        fs::remove_file(at("source.rs")).unwrap();
        assert!(is_stale(&at("clawmeshd")));
    }
}

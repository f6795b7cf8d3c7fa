//! API keys of accounts: a file for each, readable by its user alone, or a variable.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use protocol::value::ApiKey;

use crate::context::home;
use crate::outcome::Failure;

/// The variable with a key, where no account is named.
const VARIABLE: &str = "CLAWFINDER_API_KEY";
const ENDING: &str = ".key";

/// A key, and the file that it is from.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) key: ApiKey,
    pub(super) file: Option<PathBuf>,
}

/// The place of all key files.
#[derive(Debug)]
pub(super) struct KeyFiles {
    dir: PathBuf,
}

/// A username, as nodes take it: so it can name a file.
pub(super) fn username(text: &str) -> Result<String, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let is_long = (3..=64).contains(&bytes.len());
    if is_long
        && bytes.iter().copied().all(is_plain)
        && is_edge(bytes.first())
        && is_edge(bytes.last())
    {
        Ok(text.to_owned())
    } else {
        Err(
            "a username has 3 to 64 letters, digits, dots, underscores and hyphens, and begins and ends with a letter or digit",
        )
    }
}

impl KeyFiles {
    /// Those of the user.
    ///
    /// # Errors
    /// [`Failure::NoHome`].
    pub(super) fn of_user() -> Result<KeyFiles, Failure> {
        Ok(KeyFiles { dir: home()?.join(".clawmesh").join("finder") })
    }

    /// The file of an account. Nodes do not tell usernames apart by case.
    pub(super) fn of(&self, username: &str) -> PathBuf {
        self.dir.join(format!("{}{ENDING}", username.to_ascii_lowercase()))
    }

    /// The key to show: of the account that is named, else the variable's, else of the only account.
    ///
    /// # Errors
    /// [`Failure::NoAccount`] that says what to do, [`Failure::File`].
    pub(super) fn choose(
        &self,
        named: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Shown, Failure> {
        if let Some(username) = named {
            return self.read(&self.of(username));
        }
        if let Some(text) = variable(VARIABLE).filter(|text| !text.trim().is_empty()) {
            return Ok(Shown { key: ApiKey::new(text.trim()), file: None });
        }
        let mut names = self.names()?;
        match (names.pop(), names.is_empty()) {
            (None, _) => Err(Failure::NoAccount {
                why: format!(
                    "no account: make one with `clawmesh finder register`, or put its key into {VARIABLE} or {}",
                    self.dir.join("USERNAME.key").display()
                ),
            }),
            (Some(name), true) => self.read(&self.of(&name)),
            (Some(last), false) => {
                let names = format!("{} or {last}", names.join(", "));
                Err(Failure::NoAccount { why: format!("which account? Say --as {names}") })
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Shown, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let names = self.names()?;
                let others = if names.is_empty() {
                    "there is no key at all".to_owned()
                } else {
                    format!("there are keys of {}", names.join(", "))
                };
                let why = format!("no key in {}: {others}", path.display());
                return Err(Failure::NoAccount { why });
            }
            Err(source) => return Err(Failure::File { path: path.to_owned(), source }),
        };
        if text.trim().is_empty() {
            let why = format!("no key in {}: the file is empty", path.display());
            return Err(Failure::NoAccount { why });
        }
        Ok(Shown { key: ApiKey::new(text.trim()), file: Some(path.to_owned()) })
    }

    /// Usernames of which there are keys, in their order.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let failure = |source| Failure::File { path: self.dir.clone(), source };
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failure(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failure)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
            names.extend(name.filter(|name| username(name).is_ok()).map(String::from));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes the file of a new account, before the account: so its key cannot be lost for want of a place.
    ///
    /// # Errors
    /// [`Failure::NoAccount`] if there is one, [`Failure::File`].
    pub(super) fn reserve(&self, username: &str) -> Result<NewFile, Failure> {
        let path = self.of(username);
        let failure = |source| Failure::File { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failure)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Ok(file) => Ok(NewFile { path, file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let why = format!(
                    "{} is there already: it is the key of an account. Act with --as {username}, or take the file away",
                    path.display()
                );
                Err(Failure::NoAccount { why })
            }
            Err(source) => Err(failure(source)),
        }
    }
}

/// An empty file for a key that is to come.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) path: PathBuf,
    file: fs::File,
}

impl NewFile {
    /// Writes the key, to the disk.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&mut self, key: &ApiKey) -> io::Result<()> {
        self.file.write_all(format!("{}\n", key.expose()).as_bytes())?;
        self.file.sync_all()
    }

    /// There is no account for it.
    pub(super) fn remove(self) {
        // One that stays is empty, and is said to be so.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn none(_: &str) -> Option<String> {
        None
    }

    fn files(dir: &tempfile::TempDir) -> KeyFiles {
        KeyFiles { dir: dir.path().join("new").join("finder") }
    }

    fn kept(files: &KeyFiles, username: &str, key: &str) -> PathBuf {
        let mut file = files.reserve(username).unwrap();
        file.write(&ApiKey::new(key)).unwrap();
        file.path
    }

    #[test]
    fn a_key_file_is_its_users_alone_and_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let path = kept(&files, "Alice-Bot", "ak_1");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&files.dir)), (0o600, 0o700));
        assert!(path.ends_with("alice-bot.key"));
        let refused = files.reserve("alice-bot").unwrap_err();
        assert!(refused.to_string().contains("--as alice-bot"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ak_1\n");
        files.reserve("bob-bot").unwrap().remove();
        assert_eq!(files.names().unwrap(), ["alice-bot"]);
    }

    #[test]
    fn the_only_account_needs_no_name_and_of_several_all_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let nobody = files.choose(None, none).unwrap_err().to_string();
        assert!(nobody.contains("clawmesh finder register"), "{nobody}");
        kept(&files, "alice", "ak_a");
        // What else lies there is no account.
        fs::write(files.dir.join("note.txt"), "x").unwrap();
        assert_eq!(files.choose(None, none).unwrap().key.expose(), "ak_a");
        kept(&files, "bob", "ak_b");
        kept(&files, "cy-bot", "ak_c");
        let which = files.choose(None, none).unwrap_err().to_string();
        assert!(which.ends_with("--as alice, bob or cy-bot"), "{which}");
        let shown = files.choose(Some("BOB"), none).unwrap();
        assert_eq!((shown.key.expose(), shown.file), ("ak_b", Some(files.of("bob"))));
        let unknown = files.choose(Some("dora"), none).unwrap_err().to_string();
        assert!(
            unknown.contains("dora.key") && unknown.contains("alice, bob, cy-bot"),
            "{unknown}"
        );
        assert!(!format!("{shown:?}", shown = files.choose(Some("bob"), none)).contains("ak_b"));
    }

    #[test]
    fn the_variable_counts_where_no_account_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        kept(&files, "alice", "ak_a");
        let variable = |name: &str| (name == VARIABLE).then(|| " ak_v\n".to_owned());
        assert_eq!(files.choose(None, variable).unwrap().key.expose(), "ak_v");
        assert_eq!(files.choose(Some("alice"), variable).unwrap().key.expose(), "ak_a");
        let empty = |_: &str| Some(String::new());
        assert_eq!(files.choose(None, empty).unwrap().key.expose(), "ak_a");
    }

    #[test]
    fn an_empty_file_is_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        drop(files.reserve("alice").unwrap());
        let empty = files.choose(None, none).unwrap_err().to_string();
        assert!(empty.contains("is empty"), "{empty}");
    }

    #[test]
    fn a_username_cannot_lead_elsewhere() {
        for good in ["abc", "Alice-Research_bot.2", &"x".repeat(64)] {
            assert_eq!(username(good).as_deref(), Ok(good));
        }
        for bad in ["", "ab", "../etc", "a/b", ".abc", "abc-", "a b", "\u{e4}bc", &"x".repeat(65)] {
            assert!(username(bad).is_err(), "{bad}");
        }
    }
}

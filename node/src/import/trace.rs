//! Files that an import makes before it has written anything, so that one that fails leaves
//! nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file or directory that was not there, with the directories above it that were not there
/// either.
#[derive(Debug)]
pub(crate) struct Trace(Vec<PathBuf>);

impl Trace {
    /// The trace of a file or directory to be made at `path`.
    pub(crate) fn of(path: &Path) -> Trace {
        let missing = path.ancestors().take_while(|above| {
            !above.as_os_str().is_empty() && fs::symlink_metadata(above).is_err()
        });
        Trace(missing.map(Path::to_owned).collect())
    }

    /// Removes what was made of it, but for directories in which there is something else.
    pub(crate) fn remove(&self) {
        for path in &self.0 {
            // A file that cannot be removed stays; why there is no import is said anyway.
            drop(fs::remove_file(path).or_else(|_| fs::remove_dir(path)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_gone_and_what_was_there_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/key");
        let trace = Trace::of(&file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "x").unwrap();
        Trace::of(&file).remove();
        assert!(file.exists(), "it was there");
        fs::write(dir.path().join("a/other"), "y").unwrap();
        trace.remove();
        assert!(!dir.path().join("a/b").exists());
        assert!(dir.path().join("a/other").exists());
    }
}

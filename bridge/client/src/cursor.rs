//! Cursor files: one number, the highest that was worked on. `clawmesh wait --cursor-file` and the packages for other
//! languages read and write the same.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A cursor file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CursorError {
    /// It cannot be read or written.
    #[error("cannot use the cursor file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It holds something else.
    #[error("the cursor file {} holds no number: delete it to begin anew", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

/// A file with one number in it.
///
/// ```
/// use client::cursor::CursorFile;
///
/// let path = std::env::temp_dir().join(format!("lobby-{}.cursor", std::process::id()));
/// let file = CursorFile::new(path.clone());
/// assert_eq!(file.read()?, None);
/// file.write(42)?;
/// assert_eq!(file.read()?, Some(42));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct CursorFile {
    path: PathBuf,
}

impl CursorFile {
    /// The file at a path; it need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The number, or `None` if there is no file yet.
    ///
    /// # Errors
    /// [`CursorError`]: it cannot be read, or holds something else.
    pub fn read(&self) -> Result<Option<u64>, CursorError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|_| CursorError::Malformed { path: self.path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.failure(source)),
        }
    }

    /// Replaces the number, as a whole: after a crash the file holds the old one or the new one.
    ///
    /// # Errors
    /// [`CursorError::File`].
    pub fn write(&self, seq: u64) -> Result<(), CursorError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        // In the same directory, for a rename does not cross file systems.
        let temporary = self.path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        self.replace(&temporary, seq).map_err(|source| {
            // The first error is the one to tell.
            let _ = fs::remove_file(&temporary);
            self.failure(source)
        })
    }

    fn replace(&self, temporary: &Path, seq: u64) -> io::Result<()> {
        let mut file = File::create(temporary)?;
        writeln!(file, "{seq}")?;
        file.sync_all()?;
        fs::rename(temporary, &self.path)
    }

    fn failure(&self, source: io::Error) -> CursorError {
        CursorError::File { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("clawmesh-client-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn the_number_comes_back_and_nothing_else_is_left() {
        let directory = directory("cursor");
        let file = CursorFile::new(directory.join("cursor"));
        assert_eq!(file.read().unwrap(), None);
        for seq in [0, 7, (1 << 53) - 1] {
            file.write(seq).unwrap();
            assert_eq!(file.read().unwrap(), Some(seq));
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_with_something_else_is_refused_and_left_alone() {
        let directory = directory("malformed");
        let path = directory.join("cursor");
        fs::write(&path, "seven").unwrap();
        let failure = CursorFile::new(path.clone()).read().unwrap_err();
        assert!(failure.to_string().contains("delete it"), "{failure}");
        assert_eq!(fs::read_to_string(path).unwrap(), "seven");
        let nowhere = CursorFile::new(directory.join("missing").join("cursor"));
        assert!(matches!(nowhere.write(1), Err(CursorError::File { .. })));
        fs::remove_dir_all(directory).unwrap();
    }
}

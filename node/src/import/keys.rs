//! The key that a ClawChat server has of its own: in a file, and in no table.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use mesh::name::id::parse_hex;
use zeroize::Zeroizing;

/// The server's key.
pub(crate) type ServerKey = Zeroizing<String>;

/// Looks for the server's key: in the file that somebody named, or else in those where it usually
/// is. `minted`: the texts of the keys that are in the file's table. `note`: told what was found.
///
/// # Errors
/// The file that was named has no such key.
pub(crate) fn server_key(
    named: Option<&Path>,
    standard: &[PathBuf],
    minted: &BTreeSet<String>,
    note: &mut dyn FnMut(&str),
) -> Result<Option<ServerKey>> {
    if let Some(file) = named {
        let flag = || format!("--server-key-file {}", file.display());
        let key = read(file).with_context(flag)?;
        let key = key.with_context(|| format!("{}: no such file", flag()))?;
        if minted.contains(&*key) {
            bail!(
                "{}: its key is in api_keys, where a server's own never is: without the flag it is brought as that",
                flag()
            );
        }
        return Ok(Some(key));
    }
    let mut looked: BTreeSet<&Path> = BTreeSet::new();
    for file in standard.iter().filter(|file| looked.insert(file)) {
        let shown = file.display();
        match read(file) {
            Ok(None) => {}
            Ok(Some(key)) if minted.contains(&*key) => note(&format!(
                "note: {shown} is passed over: its key is in api_keys, so it is not the server's own"
            )),
            Ok(Some(key)) => {
                note(&format!("note: the server's own key is that in {shown}"));
                return Ok(Some(key));
            }
            Err(error) => note(&format!("note: {shown} is passed over: {error:#}")),
        }
    }
    note("note: no file of the server's own key: name it with --server-key-file, if it had one");
    Ok(None)
}

fn read(file: &Path) -> Result<Option<ServerKey>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let key = text.trim();
    if parse_hex::<32>(key).is_none() {
        bail!("not a key of 64 hex digits");
    }
    Ok(Some(Zeroizing::new(key.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINTED: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const SERVER: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

    /// Files with these contents; what is taken of them, and what is said.
    fn looked(named: Option<&str>, standard: &[&str]) -> (Result<Option<String>>, String) {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: String, content: &str| {
            let file = dir.path().join(name);
            fs::write(&file, content).unwrap();
            file
        };
        let named = named.map(|content| put("named".to_owned(), content));
        let standard = standard.iter().enumerate();
        let mut standard: Vec<PathBuf> =
            standard.map(|(n, content)| put(n.to_string(), content)).collect();
        standard.push(dir.path().join("missing"));
        let mut said = String::new();
        let minted = BTreeSet::from([MINTED.to_owned()]);
        let key = server_key(named.as_deref(), &standard, &minted, &mut |it| said += it);
        (key.map(|it| it.map(|it| it.to_string())), said)
    }

    /// Clients have theirs where the server may have its own.
    #[test]
    fn a_key_of_the_table_in_a_standard_place_is_not_taken_for_the_servers() {
        let (key, said) = looked(None, &[MINTED]);
        assert_eq!(key.unwrap(), None);
        assert!(said.contains("0 is passed over: its key is in api_keys"), "{said}");
        assert!(said.contains("no file of the server's own key"), "{said}");
        let (key, said) = looked(None, &[MINTED, &format!("{SERVER}\r\n")]);
        assert_eq!(key.unwrap().as_deref(), Some(SERVER));
        assert!(said.contains("the server's own key is that in"), "{said}");
        assert!(!said.contains(SERVER) && !said.contains(MINTED), "{said}");
    }

    #[test]
    fn a_key_of_the_table_that_is_named_as_the_servers_is_refused() {
        let (key, _) = looked(Some(MINTED), &[SERVER]);
        let error = key.unwrap_err().to_string();
        assert!(error.contains("--server-key-file") && error.contains("in api_keys"), "{error}");
        assert_eq!(looked(Some(SERVER), &[]).0.unwrap().as_deref(), Some(SERVER));
    }

    #[test]
    fn a_standard_place_without_a_key_is_passed_over_and_a_named_one_is_not() {
        for bad in ["", "a b c"] {
            let (key, said) = looked(None, &[bad, SERVER]);
            assert_eq!(key.unwrap().as_deref(), Some(SERVER));
            assert!(said.contains("0 is passed over: not a key of 64 hex digits"), "{said}");
            assert!(!said.contains("--server-key-file"), "{said}");
            let error = format!("{:#}", looked(Some(bad), &[]).0.unwrap_err());
            assert!(error.contains("--server-key-file") && error.contains("64 hex"), "{error}");
        }
    }
}

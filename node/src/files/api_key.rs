//! Keys of agents, and the operator's secret, in files of an operator's choice.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anyhow::{Context, Result, bail};
use mesh::name::id::parse_hex;
use zeroize::Zeroizing;

use super::group::Shared;
use super::private::{hex, make_private_dir, read_secret, replace};
use crate::chance;

/// An API key: 64 hex digits. In a file, a newline after them.
#[derive(Clone)]
pub(crate) struct ApiKey(Zeroizing<String>);

/// Bytes that are read from standard input: a key and a line's end.
const OLD_KEY_BYTES_MAX: u64 = 128;

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl ApiKey {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The key in `file`; `None` if there is no such file.
    pub(crate) fn read(file: &Path) -> Result<Option<ApiKey>> {
        let flag = || format!("--key-file {}", file.display());
        let Some(text) = read_secret(file).with_context(flag)? else { return Ok(None) };
        let key = text.trim();
        if parse_hex::<32>(key).is_none() {
            bail!(
                "{}: not a key of 64 hex digits; name another file, or move it away and a new key is made",
                flag()
            );
        }
        // A group may have been let in: only the start of the node knows.
        warn_if_open(file, !READABLE_BY_GROUP, KEY_ADVICE).with_context(flag)?;
        Ok(Some(ApiKey(Zeroizing::new(key.to_owned()))))
    }

    /// The key in `file`, or on standard input if that is `-`: one that another one is to replace.
    pub(crate) fn read_old(file: &Path) -> Result<ApiKey> {
        if file != Path::new("-") {
            let no_file = || format!("{}: no such file", file.display());
            return ApiKey::read(file)?.with_context(no_file);
        }
        let mut text = Zeroizing::new(String::new());
        io::stdin().lock().take(OLD_KEY_BYTES_MAX).read_to_string(&mut text)?;
        let key = text.trim();
        if parse_hex::<32>(key).is_none() {
            bail!("standard input: not a key of 64 hex digits");
        }
        Ok(ApiKey(Zeroizing::new(key.to_owned())))
    }

    /// A new key.
    pub(crate) fn draw() -> Result<ApiKey> {
        Ok(ApiKey(hex(&*chance::draw::<32>()?)))
    }

    /// A new key, in `file` when this returns.
    pub(crate) fn make(file: &Path) -> Result<ApiKey> {
        let key = ApiKey::draw()?;
        key.keep(file)?;
        Ok(key)
    }

    /// It is in `file` when this returns, for the same group as the one before.
    pub(crate) fn keep(&self, file: &Path) -> Result<()> {
        let flag = || format!("--key-file {}", file.display());
        if let Some(dir) = file.parent() {
            make_private_dir(dir).with_context(flag)?;
        }
        let (line, shared) = (Zeroizing::new(format!("{}\n", self.text())), Shared::of(file));
        replace(file, line.as_bytes()).with_context(flag)?;
        shared.map_or(Ok(()), |shared| shared.again()).with_context(flag)
    }
}

/// The operator's secret for keys over HTTP, in a file of the operator's making.
pub(crate) fn admin_secret(file: &Path) -> Result<Zeroizing<String>> {
    secret_of("--admin-secret-file", file)
}

/// A secret in a file of the operator's making; `setting` names the file.
pub(crate) fn secret_of(setting: &str, file: &Path) -> Result<Zeroizing<String>> {
    let flag = || format!("{setting} {}", file.display());
    let text = read_secret(file).with_context(flag)?;
    let secret = text.as_deref().map_or("", |text| text.trim());
    if secret.is_empty() || secret.len() > bridge::limits::KEY_BYTES_MAX {
        let max = bridge::limits::KEY_BYTES_MAX;
        bail!("{}: write a secret of 1 to {max} bytes into it", flag());
    }
    warn_if_open(file, !0, "chmod 600 it, and change the secret").with_context(flag)?;
    Ok(Zeroizing::new(secret.to_owned()))
}

/// Warns if a group can read the key file, of a node that was told of none.
pub(crate) fn warn_if_shared(file: &Path) -> Result<()> {
    warn_if_open(file, READABLE_BY_GROUP, KEY_ADVICE)
        .with_context(|| format!("--key-file {}", file.display()))
}

const READABLE_BY_GROUP: u32 = 0o040;
const KEY_ADVICE: &str = "chmod 600 it, then `clawmeshd key rotate`";

/// Of the rights of others those in `rights` are looked at.
fn warn_if_open(file: &Path, rights: u32, advice: &str) -> io::Result<()> {
    if fs::metadata(file)?.permissions().mode() & 0o077 & rights != 0 {
        tracing::warn!(
            event = "secret_open",
            "others can read the secret in {}: {advice}",
            file.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_admin_secret_is_what_the_file_says() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("secret");
        let refused = || format!("{:#}", admin_secret(&file).unwrap_err());
        assert!(refused().starts_with("--admin-secret-file "), "{}", refused());
        fs::write(&file, " \n").unwrap();
        assert!(refused().starts_with("--admin-secret-file "), "{}", refused());
        fs::write(&file, "hush\n").unwrap();
        assert_eq!(&*admin_secret(&file).unwrap(), "hush");
    }

    #[test]
    fn keys_are_made_and_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("new/auth.key");
        assert!(ApiKey::read(&file).unwrap().is_none());
        let key = ApiKey::make(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{}\n", key.text()));
        assert_eq!(text.len(), 65);
        assert_eq!(ApiKey::read(&file).unwrap().unwrap().text(), key.text());
        assert_ne!(ApiKey::make(&file).unwrap().text(), key.text());
        fs::write(&file, "secret").unwrap();
        let error = format!("{:#}", ApiKey::read(&file).unwrap_err());
        assert!(error.starts_with("--key-file") && !error.contains("secret"), "{error}");
    }
}

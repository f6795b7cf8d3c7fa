//! The certificate for TLS: its files, and how long it lasts.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use bridge::{Tls, Validity};
use protocol::operator::CertificateTrouble;
use zeroize::Zeroizing;

use crate::settings::TlsFiles;

/// Reads both files. Warns if the certificate is not valid for long.
///
/// # Errors
/// They cannot be used; the text names the flag and what to do.
pub(crate) fn load(files: &TlsFiles) -> Result<Tls> {
    let [certificate, key] = TlsFiles::flags(files.of);
    let certificate_flag = || format!("--{certificate} {}", files.certificate.display());
    let key_flag = || format!("--{key} {}", files.key.display());
    let certificate = read(&files.certificate).with_context(certificate_flag)?;
    let key = Zeroizing::new(read(&files.key).with_context(key_flag)?);
    let mode = fs::metadata(&files.key).with_context(key_flag)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!(
            "{}: others on this machine can read the private key: `chmod 600` it, as a file of the user who runs the node",
            key_flag()
        );
    }
    let tls = Tls::from_pem(&certificate, &key).map_err(|error| {
        let flag = if error.is_of_key() { key_flag() } else { certificate_flag() };
        anyhow::anyhow!("{flag}: {error}")
    })?;
    // Nodes do not check those of links.
    if let Some(trouble) = trouble(&tls).filter(|_| files.of == "http") {
        tracing::warn!(event = "certificate", "{}", sentence(&trouble));
    }
    Ok(tls)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return anyhow::anyhow!("there is no such file");
        }
        anyhow::anyhow!("{error}: the user who runs the node has to be able to read it")
    })
}

/// The reason why clients do not take the certificate, or soon will not. `None`: it lasts.
pub(crate) fn trouble(tls: &Tls) -> Option<CertificateTrouble> {
    // Before 1970 no certificate is valid, either.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let renew = "renew the files of --http-cert and --http-key, and restart the node";
    let (refused, why, advice) = match tls.validity(now) {
        Validity::Lasts => return None,
        Validity::EndsIn { days: 0 } => (false, "expires within a day".to_owned(), renew),
        Validity::EndsIn { days: 1 } => (false, "expires in 1 day".to_owned(), renew),
        Validity::EndsIn { days } => (false, format!("expires in {days} days"), renew),
        Validity::Expired => (true, "has expired, and clients refuse it".to_owned(), renew),
        Validity::Early => (
            true,
            "is not valid yet, and clients refuse it".to_owned(),
            "look at the clock of this machine",
        ),
    };
    let found = format!("the certificate of --http-cert {why}");
    Some(CertificateTrouble { refused, found, advice: advice.to_owned() })
}

/// All of it in one line.
pub(crate) fn sentence(trouble: &CertificateTrouble) -> String {
    format!("{}: {}", trouble.found, trouble.advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_name_their_flag_and_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        let files = TlsFiles { of: "http", certificate: at("cert"), key: at("key") };
        let refused = || format!("{:#}", load(&files).unwrap_err());
        assert!(refused().starts_with("--http-cert "), "{}", refused());
        fs::write(at("cert"), include_bytes!("../../bridge/src/webhooks/testdata/cert.pem"))
            .unwrap();
        assert!(refused().starts_with("--http-key "), "{}", refused());
        fs::write(at("key"), include_bytes!("../../bridge/src/webhooks/testdata/key.pem")).unwrap();
        let mode = |mode| fs::set_permissions(at("key"), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(refused().contains("chmod 600"), "{}", refused());
        mode(0o600);
        assert!(trouble(&load(&files).unwrap()).is_none());
        fs::write(at("key"), "nonsense").unwrap();
        assert!(refused().starts_with("--http-key ") && refused().contains("PEM"), "{}", refused());
        fs::write(at("cert"), "nonsense").unwrap();
        assert!(refused().starts_with("--http-cert "), "{}", refused());
    }
}

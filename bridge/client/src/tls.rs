//! TLS, as `wss://` wants it: rustls over ring.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::options::Authorities;

/// Trusts these. They are read at each connection: connections are rare, and newly installed ones count.
///
/// # Errors
/// If there are none, or the file cannot be read.
pub(crate) async fn connector(authorities: &Authorities) -> io::Result<TlsConnector> {
    let authorities = authorities.clone();
    let load = move || match authorities {
        Authorities::System => system(),
        Authorities::File(file) => of_file(&file),
    };
    let roots = tokio::task::spawn_blocking(load).await.map_err(io::Error::other)?;
    roots.map(trusting)
}

fn system() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // One that cannot be read is one less; without any nothing works, and that is said.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let text = "this system has no certificates of authorities: install ca-certificates, or set SSL_CERT_FILE";
        return Err(io::Error::other(text));
    }
    Ok(roots)
}

fn of_file(file: &Path) -> io::Result<RootCertStore> {
    let of = |error: &dyn fmt::Display| {
        io::Error::other(format!("the authorities in {}: {error}", file.display()))
    };
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_file_iter(file).map_err(|error| of(&error))? {
        let found = found.map_err(|error| of(&error))?;
        roots.add(found).map_err(|error| of(&error))?;
    }
    if roots.is_empty() {
        return Err(of(&"there is no certificate in it: it has to be PEM"));
    }
    Ok(roots)
}

pub(crate) fn trusting(roots: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

//! TLS, as `wss://` wants it: rustls over ring, trusting whom the system trusts.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Trusts the system's roots (or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name). They are read at
/// each connection: connections are rare, and newly installed roots count.
///
/// # Errors
/// If there are none.
pub(crate) async fn system() -> io::Result<TlsConnector> {
    let load = || {
        let mut roots = RootCertStore::empty();
        // One that cannot be read is one less; without any nothing works, and that is said.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    };
    let roots = tokio::task::spawn_blocking(load).await.map_err(io::Error::other)?;
    if roots.is_empty() {
        let text = "this system has no certificates of authorities: install ca-certificates, or set SSL_CERT_FILE";
        return Err(io::Error::other(text));
    }
    Ok(trusting(roots))
}

pub(crate) fn trusting(roots: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

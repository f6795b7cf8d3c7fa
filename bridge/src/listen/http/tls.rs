//! TLS for clients over HTTP and WebSocket: rustls over ring, with a certificate of the operator's.

use std::{fmt, sync::Arc, time::Duration};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        CertificateError, Error, RootCertStore, ServerConfig,
        client::verify_server_cert_signed_by_trust_anchor,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer, UnixTime,
            pem::{self, PemObject},
        },
        server::ParsedCertificate,
    },
};

use crate::limits;

/// A certificate with its key, ready to be shown to clients. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// The server's own first.
    chain: Arc<[CertificateDer<'static>]>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(hidden)")
    }
}

/// Certificate and key cannot be used. Each text completes "…: ".
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate in the one file.
    #[error("there is no certificate in it: it has to be PEM, `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    /// A certificate that cannot be read.
    #[error("a certificate in it cannot be read: {0}")]
    BadCertificate(String),
    /// There is no key in the other file.
    #[error(
        "there is no private key in it: it has to be PEM, `-----BEGIN PRIVATE KEY-----`, and not encrypted"
    )]
    NoKey,
    /// The key is of a kind that is not known.
    #[error("the private key in it cannot be used: {0}")]
    BadKey(String),
    /// They do not belong together.
    #[error("the private key is not that of the first certificate: name the two files of one pair")]
    Mismatch,
}

impl TlsError {
    /// Whether the fault is in the file with the key.
    #[must_use]
    pub fn is_of_key(&self) -> bool {
        match self {
            TlsError::NoKey | TlsError::BadKey(_) | TlsError::Mismatch => true,
            TlsError::NoCertificate | TlsError::BadCertificate(_) => false,
        }
    }
}

/// Whether clients take a certificate for valid at a moment, as far as its own dates say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// For some time to come.
    Lasts,
    /// Not for much longer: for so many whole days.
    EndsIn {
        /// 0: less than a day.
        days: u64,
    },
    /// Not any more.
    Expired,
    /// Not yet.
    Early,
}

impl Tls {
    /// From the texts of two PEM files: the server's certificate and those of the authorities between it and a root;
    /// its private key.
    ///
    /// # Errors
    /// Why they are of no use.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Tls, TlsError> {
        let chain: Result<Vec<_>, pem::Error> =
            CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| TlsError::BadCertificate(error.to_string()))?;
        let first = chain.first().ok_or(TlsError::NoCertificate)?;
        let unread = |error: Error| TlsError::BadCertificate(error.to_string());
        ParsedCertificate::try_from(first).map_err(unread)?;
        // Which of the ways to be no PEM it is, helps nobody.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has what TLS 1.2 and 1.3 need")
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key);
        let mut config = config.map_err(|error| {
            if let Error::InconsistentKeys(_) = error {
                return TlsError::Mismatch;
            }
            TlsError::BadKey(error.to_string())
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), chain: chain.into() })
    }

    /// For others that serve with it.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.clone()
    }

    /// As its dates say, so long after 1970.
    #[must_use]
    pub fn validity(&self, now: Duration) -> Validity {
        let soon = now.saturating_add(limits::CERTIFICATE_ENDS_SOON);
        match (self.end(now), self.end(soon)) {
            (Dates::Over(_), _) => Validity::Expired,
            (Dates::Early, _) => Validity::Early,
            (Dates::Within, Dates::Over(end)) => {
                Validity::EndsIn { days: end.saturating_sub(now.as_secs()) / limits::DAY_SECS }
            }
            (Dates::Within, Dates::Within | Dates::Early) => Validity::Lasts,
        }
    }

    /// Asks the verifier of clients. It looks at the dates first; without an authority to trust nothing more comes of it.
    fn end(&self, at: Duration) -> Dates {
        let Some(Ok(first)) = self.chain.first().map(ParsedCertificate::try_from) else {
            return Dates::Within;
        };
        let roots = RootCertStore::empty();
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        let at = UnixTime::since_unix_epoch(at);
        match verify_server_cert_signed_by_trust_anchor(&first, &roots, &[], at, algorithms) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext {
                not_after, ..
            })) => Dates::Over(not_after.as_secs()),
            Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { .. })) => {
                Dates::Early
            }
            Ok(()) | Err(_) => Dates::Within,
        }
    }
}

/// Where a moment is, by the dates of a certificate.
enum Dates {
    Within,
    Early,
    /// After the end, which was so many seconds after 1970.
    Over(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid from 2000 to 2100.
    const CERTIFICATE: &[u8] = include_bytes!("../../webhooks/testdata/cert.pem");
    const KEY: &[u8] = include_bytes!("../../webhooks/testdata/key.pem");
    /// Of no certificate. Made with `openssl genpkey -algorithm ed25519`.
    const OTHER_KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw\n\
        -----END PRIVATE KEY-----\n";

    #[test]
    fn what_is_no_pair_is_refused_and_says_why() {
        let error = |certificate, key| Tls::from_pem(certificate, key).unwrap_err();
        assert!(matches!(error(b"", KEY), TlsError::NoCertificate));
        assert!(matches!(error(KEY, KEY), TlsError::NoCertificate));
        let junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(error(junk, KEY), TlsError::BadCertificate(_)));
        assert!(matches!(error(CERTIFICATE, b""), TlsError::NoKey));
        assert!(matches!(error(CERTIFICATE, CERTIFICATE), TlsError::NoKey));
        assert!(matches!(error(CERTIFICATE, OTHER_KEY), TlsError::Mismatch));
        let shown = format!("{:?}", Tls::from_pem(CERTIFICATE, KEY).unwrap());
        assert_eq!(shown, "Tls(hidden)");
    }

    #[test]
    fn the_dates_of_a_certificate_are_known() {
        let tls = Tls::from_pem(CERTIFICATE, KEY).unwrap();
        // 2100-01-01, and 2000-01-01.
        let (end, begin) = (4_102_444_800, 946_684_800);
        let at = |secs| tls.validity(Duration::from_secs(secs));
        assert_eq!(at(begin - 86_400), Validity::Early);
        assert_eq!(at(begin + 86_400), Validity::Lasts);
        assert_eq!(at(end - 15 * 86_400), Validity::Lasts);
        assert_eq!(at(end - 13 * 86_400 - 7), Validity::EndsIn { days: 13 });
        assert_eq!(at(end - 7), Validity::EndsIn { days: 0 });
        assert_eq!(at(end + 86_400), Validity::Expired);
    }
}

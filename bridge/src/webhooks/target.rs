//! Where deliveries go: the URL that a subscriber gave, checked.

use std::fmt;

use axum::http::Uri;
use url::{Host, Url};

use crate::{limits::WEBHOOK_URL_BYTES_MAX, seam::refusal::BadUrl};

/// A URL that may be posted to, as far as its form says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    url: Url,
    uri: Uri,
}

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Target, BadUrl> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(BadUrl::TooLong);
        }
        // The parser drops these, as browsers do. The text that is shown is to be the address that is posted to.
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(BadUrl::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| BadUrl::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme);
        }
        // And it takes the text after any slashes for the host.
        let host = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
        if host.is_empty() || host.starts_with(['/', '\\']) || url.port() == Some(0) {
            return Err(BadUrl::Nowhere);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::UserInfo);
        }
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let uri = Uri::try_from(format!("{}{query}", url.path()));
        let uri = uri.map_err(|_| BadUrl::NotAUrl)?;
        if url.host().is_none() {
            return Err(BadUrl::NotAUrl);
        }
        Ok(Target { url, uri })
    }

    /// A name, or an address in any form of writing.
    pub(super) fn host(&self) -> Host<&str> {
        self.url.host().expect("parse() refuses URLs without a host")
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().expect("http and https have default ports")
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Path and query.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The value of the `host` header.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_string(),
        }
    }
}

impl fmt::Debug for Target {
    /// Paths and queries of webhooks often are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |text: &str, authority: &str, port, uri: &str| {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.authority(), authority, "{text}");
            assert_eq!((target.port(), target.uri().to_string().as_str()), (port, uri), "{text}");
            assert_eq!(target.is_tls(), text.starts_with("https"));
        };
        check("https://example.org", "example.org", 443, "/");
        check("http://Example.org:8080/a b?q=1#gone", "example.org:8080", 8080, "/a%20b?q=1");
        check("http://example.org:80/x", "example.org", 80, "/x");
        check("http://[2001:db8::1]:81/", "[2001:db8::1]:81", 81, "/");
        check("https://bücher.example/?ü='", "xn--bcher-kva.example", 443, "/?%C3%BC=%27");
        check("https://example.org/{a}|^`?{b}|^`", "example.org", 443, "/%7Ba%7D|^%60?{b}|^`");
    }

    #[test]
    fn addresses_cannot_hide_behind_how_they_are_written() {
        for text in ["http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1"] {
            let target = Target::parse(text).unwrap();
            let Host::Ipv4(address) = target.host() else { panic!("{text}") };
            assert!(address.is_loopback(), "{text}");
        }
        let mapped = Target::parse("http://[::ffff:127.0.0.1]/").unwrap();
        assert!(matches!(mapped.host(), Host::Ipv6(_)));
    }

    #[test]
    fn what_cannot_be_posted_to_is_refused() {
        let check = |text: &str, expect| assert_eq!(Target::parse(text), Err(expect), "{text}");
        check("", BadUrl::NotAUrl);
        check("example.org/hook", BadUrl::NotAUrl);
        check("http://", BadUrl::NotAUrl);
        check("http://exa mple.org", BadUrl::NotAUrl);
        check("http://999.1.1.1/", BadUrl::NotAUrl);
        for blank in [" https://a.org", "https://a.org ", "https://a.org/\r\nx", "https://a\t.org"]
        {
            check(blank, BadUrl::NotAUrl);
        }
        for nowhere in
            ["http:///x", "http:a.org", "http:/a.org", "http:\\\\a.org", "http://a.org:0/"]
        {
            check(nowhere, BadUrl::Nowhere);
        }
        check("ftp://example.org/x", BadUrl::Scheme);
        check("file:///etc/passwd", BadUrl::Scheme);
        check("javascript:alert(1)", BadUrl::Scheme);
        check("https://me@example.org/", BadUrl::UserInfo);
        check("https://:pw@example.org/", BadUrl::UserInfo);
        let long = format!("https://example.org/{}", "a".repeat(WEBHOOK_URL_BYTES_MAX));
        check(&long, BadUrl::TooLong);
    }

    #[test]
    fn only_the_host_is_shown() {
        let target = Target::parse("https://example.org/token?key=hush").unwrap();
        assert_eq!(format!("{target:?}"), "Target(example.org)");
    }
}

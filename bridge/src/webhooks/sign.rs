//! Signatures of deliveries: Standard Webhooks, version 1 (standardwebhooks.com).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The value of `webhook-signature`: `v1,` and base64 of HMAC-SHA256(secret, "{id}.{timestamp}.{body}").
pub(super) fn signature(secret: &str, id: &str, timestamp: u64, body: &[u8]) -> String {
    signed(secret.as_bytes(), id, timestamp, body)
}

/// The same, with a secret that is no text.
pub(crate) fn signed(secret: &[u8], id: &str, timestamp: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's standard library:
    ///
    /// ```python
    /// mac = hmac.new(b"s3cret", b"msg_1.1700000000." + b'{"a":1}', hashlib.sha256).digest()
    /// "v1," + base64.b64encode(mac).decode()
    /// ```
    #[test]
    fn signatures_are_those_of_python() {
        let made = signature("s3cret", "msg_1", 1_700_000_000, br#"{"a":1}"#);
        assert_eq!(made, "v1,JTnXZsicQmbYBUKbG0PXd2OqV6VmCFiMTEvW8yxopSo=");
    }
}

//! The marker of end-to-end encrypted content (spec §10): all that a node can check of it.

/// The beginning of such content.
const MARK: &str = "clw1:";

/// Whether content is a blob: the marker, and unpadded standard base64 of at least one byte. Whether
/// it holds a nonce and a ciphertext only a client with the key can see.
pub(crate) fn is_blob(content: &str) -> bool {
    content.strip_prefix(MARK).is_some_and(|blob| !blob.is_empty() && is_base64(blob.as_bytes()))
}

/// Unpadded standard base64 (RFC 4648 §4), in its one form: unused bits are zero.
fn is_base64(text: &[u8]) -> bool {
    if !text.iter().all(|digit| value(*digit).is_some()) {
        return false;
    }
    let unused = match text.len() % 4 {
        0 => return true,
        2 => 0b1111,
        3 => 0b11,
        _ => return false,
    };
    text.last().and_then(|digit| value(*digit)).is_some_and(|last| last & unused == 0)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blobs_are_blobs() {
        for good in ["clw1:AAAA", "clw1:AAAAAA", "clw1:AAAAAAA", "clw1:+/09azAZ"] {
            assert!(is_blob(good), "{good}");
        }
        for bad in [
            "",
            "plain",
            "clw1",
            "clw1:",
            "clw1:A",
            "clw1:AAAAA",
            "clw1:AAA=",
            "clw1:AAAAAB",
            "clw1:AA-_",
            "clw1:AAAA\n",
            "clw1:AAAA and the rest in plain text",
            "clw1:\u{e4}AAA",
            "CLW1:AAAA",
            " clw1:AAAA",
        ] {
            assert!(!is_blob(bad), "{bad}");
        }
    }
}

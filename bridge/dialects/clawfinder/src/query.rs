//! The query of a request's address.

use axum::http::Uri;

/// Names and values in their order, decoded.
pub(crate) struct Query {
    parts: Vec<(String, String)>,
    /// As they came, without those that say which page.
    others: Vec<String>,
}

impl Query {
    pub(crate) fn of(uri: &Uri) -> Query {
        let raw = uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
        let mut query = Query { parts: Vec::new(), others: Vec::new() };
        for part in raw {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decoded(name, true);
            if name != "page" {
                query.others.push(part.to_owned());
            }
            query.parts.push((name, decoded(value, true)));
        }
        query
    }

    /// The last value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parts.iter().rev().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    /// The query again, for a page.
    pub(crate) fn with_page(&self, number: usize) -> String {
        let page = (number > 1).then(|| format!("page={number}"));
        let all: Vec<&str> =
            self.others.iter().map(String::as_str).chain(page.as_deref()).collect();
        if all.is_empty() { String::new() } else { format!("?{}", all.join("&")) }
    }
}

/// Percent-decoded. What is no UTF-8 then becomes a mark of that.
pub(crate) fn decoded(text: &str, plus_is_blank: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let hex = hex.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match (first, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            (b'+', _) if plus_is_blank => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::of(&"/x?search=a+b%2Cc&page=2&bad=%zz%F&search=last".parse().unwrap());
        assert_eq!(query.get("search"), Some("last"));
        assert_eq!(query.get("bad"), Some("%zz%F"));
        assert_eq!(query.get("none"), None);
        assert_eq!(query.with_page(1), "?search=a+b%2Cc&bad=%zz%F&search=last");
        assert_eq!(decoded("a%20b%C3%A9+", false), "a b\u{e9}+");
        assert_eq!(decoded("%FF", false), "\u{fffd}");
    }
}

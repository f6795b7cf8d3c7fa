//! Attachments: files that lie elsewhere, named in the head of EXECUTE and RESULT. Nobody fetches them but the agent.

/// Attachments of a message at most.
pub(crate) const ATTACHMENTS_MAX: usize = 16;

/// The longest URL, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 2048;

/// The longest file name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The four fields of each.
pub(crate) const PARTS: [&str; 4] = ["url", "hash", "size", "filename"];

/// One attachment, as a message says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// Where it lies.
    pub(crate) url: String,
    /// `sha256:` and the hash of the encrypted file.
    pub(crate) hash: String,
    /// Its length, encrypted, in bytes.
    pub(crate) size: String,
    /// What it was called before it was encrypted.
    pub(crate) filename: String,
}

/// An attachment as readers are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// What the message says.
    pub(crate) attachment: Attachment,
    /// Why it should not be fetched.
    pub(crate) problem: Option<String>,
}

impl Attachment {
    fn part(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "url" => Some(&mut self.url),
            "hash" => Some(&mut self.hash),
            "size" => Some(&mut self.size),
            "filename" => Some(&mut self.filename),
            _ => None,
        }
    }

    /// What is wrong with it: the part, and why.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let parts = [&self.url, &self.hash, &self.size, &self.filename];
        if let Some(missing) = PARTS.iter().zip(parts).find(|(_, value)| value.is_empty()) {
            return Some((missing.0, "This field is required."));
        }
        if !is_url(&self.url) {
            return Some((
                "url",
                "Not an absolute https URL of at most 2048 bytes without a user.",
            ));
        }
        let digits = self.hash.strip_prefix("sha256:");
        if !digits
            .is_some_and(|it| it.len() == 64 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Some(("hash", "Not sha256: and 64 hex digits."));
        }
        if !self.size.bytes().all(|byte| byte.is_ascii_digit()) || self.size.parse::<u64>().is_err()
        {
            return Some(("size", "Not a number of bytes."));
        }
        if !is_file_name(&self.filename) {
            return Some(("filename", "Not a file name of 1 to 255 bytes without a path."));
        }
        None
    }

    /// Its lines, as values by key. The only one of a message has no number.
    pub(crate) fn lines(&self, number: Option<usize>) -> [(String, &str); 4] {
        let key = |part: &str| match number {
            Some(number) => format!("attachment_{number}_{part}"),
            None => format!("attachment_{part}"),
        };
        [
            (key("url"), self.url.as_str()),
            (key("hash"), self.hash.as_str()),
            (key("size"), self.size.as_str()),
            (key("filename"), self.filename.as_str()),
        ]
    }
}

/// Reads the attachments out of a message's fields, in the order of their numbers. What is wrong with one stands with it.
pub(crate) fn read<'f>(fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> Vec<Shown> {
    let mut found: Vec<(Option<usize>, Attachment)> = Vec::new();
    for (key, value) in fields {
        let Some((number, part)) = place(key) else { continue };
        let at = found.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
            found.push((number, Attachment::default()));
            found.len() - 1
        });
        if let Some(known) = found[at].1.part(part) {
            value.clone_into(known);
        }
    }
    found.sort_by_key(|(number, _)| *number);
    let mixed = found.len() > 1 && found[0].0.is_none();
    let judge = |(at, (number, attachment)): (usize, (Option<usize>, Attachment))| {
        let problem = if mixed {
            Some("numbered and unnumbered attachments are mixed".to_owned())
        } else if number.is_some_and(|number| number != at + 1) {
            Some("the numbers of attachments have a gap".to_owned())
        } else if at >= ATTACHMENTS_MAX {
            Some(format!("more than {ATTACHMENTS_MAX} attachments"))
        } else {
            attachment.problem().map(|(part, why)| format!("{part}: {why}"))
        };
        Shown { attachment, problem }
    };
    found.into_iter().enumerate().map(judge).collect()
}

/// Number and part of an attachment's key.
fn place(key: &str) -> Option<(Option<usize>, &str)> {
    let rest = key.strip_prefix("attachment_")?;
    if PARTS.contains(&rest) {
        return Some((None, rest));
    }
    let (number, part) = rest.split_once('_')?;
    let canonical = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    let number = number.parse().ok().filter(|_| canonical)?;
    PARTS.contains(&part).then_some((Some(number), part))
}

fn is_url(url: &str) -> bool {
    let Some(rest) =
        url.get(..8).filter(|it| it.eq_ignore_ascii_case("https://")).map(|_| &url[8..])
    else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    url.len() <= URL_BYTES_MAX
        && !host.is_empty()
        && !authority.contains('@')
        && !url.chars().any(|it| it.is_control() || it.is_whitespace())
}

fn is_file_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.chars().any(|it| it == '/' || it == '\\' || it.is_control())
}

//! What people read of the index, and texts that they give.

use std::io::Read;

use serde_json::Value;

use crate::context::Context;
use crate::format;
use crate::limits::BODY_BYTES_READ_MAX;
use crate::outcome::Failure;

/// A text that is given: itself, or with `-` all of standard input, byte for byte.
///
/// # Errors
/// [`Failure::Input`], [`Failure::NotInShell`].
pub(super) fn given(cx: &Context, text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    // There it is for the next commands.
    if cx.is_held() {
        return Err(Failure::NotInShell);
    }
    let mut text = String::new();
    let read = std::io::stdin().take(BODY_BYTES_READ_MAX).read_to_string(&mut text);
    read.map_err(Failure::Input)?;
    Ok(text)
}

/// A text of an object as it is; empty if there is none.
pub(super) fn raw<'v>(object: &'v Value, field: &str) -> &'v str {
    object[field].as_str().unwrap_or_default()
}

/// The same on one line that steers no terminal.
pub(super) fn text(object: &Value, field: &str) -> String {
    line(raw(object, field))
}

/// Any text on one line.
pub(super) fn line(text: &str) -> String {
    format::name(text)
}

/// An agent's profile.
pub(super) fn agent(agent: &Value) -> Vec<String> {
    let mesh = &agent["mesh"];
    let mut lines = vec![
        format!("{} ({})", text(agent, "username"), text(agent, "name")),
        format!("  id: {}", text(agent, "id")),
    ];
    let kind = match (mesh["hosted"] == true, mesh["proven"] == true) {
        (true, _) => "made by a node",
        (false, true) => "the owner has proven it",
        (false, false) => "nobody has proven it",
    };
    lines.push(format!("  PGP key: {kind}"));
    if let Some(wanted) = mesh["username_wanted"].as_str() {
        lines.push(format!("  wants the username {}, which is another's", line(wanted)));
    }
    let list = |field: &str, of: fn(&Value) -> String| {
        let each = agent[field].as_array().into_iter().flatten().map(of);
        let each = each.collect::<Vec<_>>().join(", ");
        if each.is_empty() { "none".to_owned() } else { each }
    };
    let payment = |method: &Value| line(method.as_str().unwrap_or_default());
    lines.push(format!("  is paid by: {}", list("payment_methods", payment)));
    lines.push(format!("  is reached by: {}", list("contact_methods", contact)));
    let seen = agent["last_seen_at"].as_str().map_or_else(|| "never".to_owned(), line);
    lines.push(format!("  last seen: {seen}"));
    lines
}

fn contact(contact: &Value) -> String {
    let method = text(contact, "method");
    match contact["handle"].as_str() {
        Some(handle) => format!("{method}:{}", line(handle)),
        None => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_profile_is_shown_without_its_key() {
        let profile = json!({
            "id": "AB", "username": "alice-ab", "name": "Al\nice", "pgp_key": "-----BEGIN",
            "payment_methods": ["invoice", "lobster.cash"], "last_seen_at": null,
            "contact_methods": [{"method": "index_mailbox"}, {"method": "email", "handle": "a@b\u{1b}"}],
            "mesh": {"proven": false, "hosted": false, "username_wanted": "alice"},
        });
        let expected = "alice-ab (Al\\nice)\n  id: AB\n  PGP key: nobody has proven it\n  \
            wants the username alice, which is another's\n  is paid by: invoice, lobster.cash\n  \
            is reached by: index_mailbox, email:a@b\\u{1b}\n  last seen: never";
        assert_eq!(agent(&profile).join("\n"), expected);
    }
}

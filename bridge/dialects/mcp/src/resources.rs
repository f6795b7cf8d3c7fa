//! Resources: the agent that asks, its inbox, and its sessions.

use bridge::tokens::Scope;
use rmcp::{
    ErrorData,
    model::{Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Value, json};

use crate::{
    asking::Asking,
    limits::{SESSIONS_AS_RESOURCES_MAX, URI_BYTES_MAX},
    outcome::{No, object},
    tools,
};

const ME: &str = "clawmesh://me";
const INBOX: &str = "clawmesh://inbox";
const SESSION: &str = "clawmesh://session/";
const JSON: &str = "application/json";

/// What a URI names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The agent.
    Me,
    /// What came for it.
    Inbox,
    /// One of its sessions, as a host calls it.
    Session(String),
}

impl Named {
    /// `None`: nothing.
    pub(crate) fn of(uri: &str) -> Option<Named> {
        match uri {
            ME => Some(Named::Me),
            INBOX => Some(Named::Inbox),
            _ if uri.len() > URI_BYTES_MAX => None,
            _ => uri.strip_prefix(SESSION).and_then(decoded).map(Named::Session),
        }
    }
}

/// The agent, its inbox, and its newest sessions.
pub(crate) async fn list(asking: &Asking) -> Result<Vec<Resource>, No> {
    // One that may see none of them is told of none.
    if asking.may(Scope::List).is_err() {
        return Ok(Vec::new());
    }
    let of = |uri: &str, name: &str, title: &str| {
        Resource::new(uri, name).with_title(format!("Mesh: {title}")).with_mime_type(JSON)
    };
    let always = [of(ME, "me", "who you are"), of(INBOX, "inbox", "what came for you")];
    let arguments = json!({"limit": SESSIONS_AS_RESOURCES_MAX});
    let listed = tools::sessions(asking, object(arguments)).await?;
    let sessions = listed["sessions"].as_array().into_iter().flatten().filter_map(|row| {
        let (key, name) = (row["key"].as_str()?, row["displayName"].as_str()?);
        Some(of(&uri(key), name, name))
    });
    Ok(always.into_iter().chain(sessions).collect())
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let session = ResourceTemplate::new(format!("{SESSION}{{key}}"), "session");
    let text = "The newest 50 messages of a session, by its key, percent-encoded.";
    let session = session.with_title("Mesh: a session").with_description(text);
    vec![session.with_mime_type(JSON)]
}

pub(crate) async fn read(asking: &Asking, uri: &str) -> Result<ResourceContents, ErrorData> {
    let missing = |why: &str| {
        let data = (uri.len() <= URI_BYTES_MAX).then(|| json!({"uri": uri}));
        ErrorData::resource_not_found(format!("no such resource: {why}"), data)
    };
    let found = match Named::of(uri) {
        None => return Err(missing("resources/list shows those that there are")),
        Some(Named::Me) => tools::me(asking).await,
        Some(Named::Inbox) => tools::inbox(asking).await.map(Value::Object),
        Some(Named::Session(key)) => {
            tools::history(asking, object(json!({"sessionKey": key}))).await.map(Value::Object)
        }
    };
    match found {
        Ok(found) => Ok(ResourceContents::text(found.to_string(), uri).with_mime_type(JSON)),
        Err(no) => Err(missing(&no.text())),
    }
}

fn uri(key: &str) -> String {
    let encoded = key.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    [SESSION.to_owned()].into_iter().chain(encoded).collect()
}

/// A text without its percents. None: it is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits =
                after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_something_or_nothing() {
        assert_eq!(Named::of(ME), Some(Named::Me));
        assert_eq!(Named::of(INBOX), Some(Named::Inbox));
        let session = Named::of("clawmesh://session/agent%3Abob%3Amain");
        assert_eq!(session, Some(Named::Session("agent:bob:main".to_owned())));
        let long = format!("{SESSION}{}", "x".repeat(URI_BYTES_MAX));
        for none in ["", "clawmesh://", "clawmesh://me/", "clawmesh://session/", "file:///x", &long]
        {
            assert_eq!(Named::of(none), None, "{none}");
        }
    }

    #[test]
    fn a_key_comes_back_from_its_uri() {
        for key in ["mesh:channel:lobby", "mesh:channel:ä b/c%"] {
            let uri = uri(key);
            assert!(uri.is_ascii() && !uri[SESSION.len()..].contains('/'), "{uri}");
            assert_eq!(decoded(&uri[SESSION.len()..]).as_deref(), Some(key));
        }
        for wrong in ["", "%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}

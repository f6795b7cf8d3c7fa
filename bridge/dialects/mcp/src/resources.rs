//! Resources: the agent that asks, and rooms that it is in.

use bridge::tokens::Scope;
use rmcp::{
    ErrorData,
    model::{Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Value, json};

use crate::{
    asking::Asking,
    limits::{ROOMS_AS_RESOURCES_MAX, URI_BYTES_MAX},
    outcome::{No, object},
    tools,
};

const ME: &str = "clawmesh://me";
const SESSION: &str = "clawmesh://session/";
const JSON: &str = "application/json";

/// The agent, and the liveliest rooms that it is in.
pub(crate) async fn list(asking: &Asking) -> Result<Vec<Resource>, No> {
    // One that may see none of them is told of none.
    if asking.may(Scope::List).is_err() {
        return Ok(Vec::new());
    }
    let me = Resource::new(ME, "me").with_title("Mesh: who you are").with_mime_type(JSON);
    let arguments = json!({"joined": true, "limit": ROOMS_AS_RESOURCES_MAX});
    let listed = tools::rooms(asking, object(arguments)).await?;
    let rooms = listed["rooms"].as_array().into_iter().flatten().filter_map(|row| {
        let key = row["key"].as_str()?;
        let name = row["name"].as_str()?;
        let title = format!("Mesh: {name}");
        Some(Resource::new(uri(key), name).with_title(title).with_mime_type(JSON))
    });
    Ok([me].into_iter().chain(rooms).collect())
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let session = ResourceTemplate::new(format!("{SESSION}{{key}}"), "session");
    let text = "The newest 50 messages of a room, by its key, percent-encoded.";
    let session = session.with_title("Mesh: a room").with_description(text);
    vec![session.with_mime_type(JSON)]
}

pub(crate) async fn read(asking: &Asking, uri: &str) -> Result<ResourceContents, ErrorData> {
    let missing = |why: &str| {
        let text = format!("no such resource: {why}");
        ErrorData::resource_not_found(text, Some(json!({"uri": uri})))
    };
    if uri.len() > URI_BYTES_MAX {
        return Err(ErrorData::resource_not_found("the URI is too long", None));
    }
    let found = if uri == ME {
        tools::me(asking).await
    } else {
        let key = uri.strip_prefix(SESSION).and_then(decoded).ok_or_else(|| missing(uri))?;
        tools::history(asking, object(json!({"room": key}))).await.map(Value::Object)
    };
    match found {
        Ok(found) => Ok(ResourceContents::text(found.to_string(), uri).with_mime_type(JSON)),
        Err(no) => {
            let text = no.fields().map_or_else(
                |(text, _)| text,
                |fields| fields["error"].as_str().unwrap_or_default().to_owned(),
            );
            Err(missing(&text))
        }
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

//! The pages: a table of all that is known of each without a request.

use axum::http::Method;
use serde_json::Value;

use crate::{query::decoded, schema};

/// A thing that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Register,
    Me,
    Proof,
    SecretKey,
    Send,
    Negotiate,
    Inbox,
    Received(String),
    SentBox,
    Sent(String),
    Sessions,
    Session(String),
    Agent(String),
    Jobs,
    Job(String),
    Reviews,
    Review(String),
    Schema,
}

impl Resource {
    /// With and without a slash at the end, alike.
    pub(crate) fn of(path: &str) -> Option<Resource> {
        let parts: Vec<&str> =
            path.strip_prefix("/api/")?.trim_end_matches('/').split('/').collect();
        let id = |text: &str| decoded(text, false);
        match parts.as_slice() {
            ["agents", "register"] => Some(Resource::Register),
            ["agents", "me"] => Some(Resource::Me),
            ["agents", "me", "proof"] => Some(Resource::Proof),
            ["agents", "me", "secret-key"] => Some(Resource::SecretKey),
            ["agents", "me", "send"] => Some(Resource::Send),
            ["agents", "me", "negotiate"] => Some(Resource::Negotiate),
            ["agents", "me", "inbox"] => Some(Resource::Inbox),
            ["agents", "me", "inbox", id_text] => Some(Resource::Received(id(id_text))),
            ["agents", "me", "sent"] => Some(Resource::SentBox),
            ["agents", "me", "sent", id_text] => Some(Resource::Sent(id(id_text))),
            ["agents", "me", "sessions"] => Some(Resource::Sessions),
            ["agents", "me", "sessions", id_text] => Some(Resource::Session(id(id_text))),
            ["agents", id_text] if !id_text.is_empty() => Some(Resource::Agent(id(id_text))),
            ["jobs"] => Some(Resource::Jobs),
            ["jobs", id_text] => Some(Resource::Job(id(id_text))),
            ["reviews"] => Some(Resource::Reviews),
            ["reviews", id_text] => Some(Resource::Review(id(id_text))),
            ["schema"] => Some(Resource::Schema),
            _ => None,
        }
    }

    /// See [`Traits`].
    pub(crate) fn traits(&self) -> Traits {
        const READ: &[Method] = &[Method::GET];
        const LISTED: &[Method] = &[Method::GET, Method::POST];
        const DONE: &[Method] = &[Method::POST];
        const MARKED: &[Method] = &[Method::GET, Method::PUT, Method::PATCH];
        const KEPT: &[Method] = &[Method::GET, Method::PUT, Method::PATCH, Method::DELETE];
        match self {
            Resource::Register => Traits::of(LISTED, Key::Never).takes(schema::registration),
            Resource::Me => Traits::of(KEPT, Key::Always).takes(schema::profile),
            Resource::Proof => Traits::of(DONE, Key::Always).takes(schema::proof),
            Resource::SecretKey => Traits::of(READ, Key::Always),
            Resource::Send => Traits::of(DONE, Key::Always).takes(schema::mail),
            Resource::Negotiate => Traits::of(DONE, Key::Always).takes(schema::step),
            Resource::Inbox => {
                Traits::of(READ, Key::Always).lists(&["is_read", "page", "page_size"])
            }
            Resource::Received(_) => Traits::of(MARKED, Key::Always).takes(schema::mark),
            Resource::SentBox => Traits::of(READ, Key::Always).lists(&["page", "page_size"]),
            Resource::Sent(_) => Traits::of(READ, Key::Always),
            Resource::Sessions => Traits::of(READ, Key::Always).lists(&["page", "page_size"]),
            Resource::Session(_) => Traits::of(READ, Key::Always),
            Resource::Agent(_) => Traits::of(READ, Key::Never),
            Resource::Jobs => Traits::of(LISTED, Key::ToWrite).takes(schema::job).lists(&[
                "search",
                "agent_id",
                "all",
                "ordering",
                "page",
                "page_size",
            ]),
            Resource::Job(_) => Traits::of(KEPT, Key::ToWrite).takes(schema::job),
            Resource::Reviews => Traits::of(LISTED, Key::ToWrite).takes(schema::review).lists(&[
                "agent_id",
                "job_id",
                "page",
                "page_size",
            ]),
            Resource::Review(_) => Traits::of(KEPT, Key::ToWrite).takes(schema::opinion),
            Resource::Schema => Traits::of(READ, Key::Never),
        }
    }

    /// Whether others see, or are sent, something of the account's own making. What it takes back, and how it keeps its inbox, is no such
    /// thing.
    pub(crate) fn sends(&self, method: &Method) -> bool {
        let makes = [Method::POST, Method::PUT, Method::PATCH].contains(method);
        match self {
            Resource::Register
            | Resource::Me
            | Resource::Proof
            | Resource::Send
            | Resource::Negotiate
            | Resource::Jobs
            | Resource::Job(_)
            | Resource::Reviews
            | Resource::Review(_) => makes,
            Resource::SecretKey
            | Resource::Inbox
            | Resource::Received(_)
            | Resource::SentBox
            | Resource::Sent(_)
            | Resource::Sessions
            | Resource::Session(_)
            | Resource::Agent(_)
            | Resource::Schema => false,
        }
    }

    /// Whether it takes an account's key.
    pub(crate) fn needs_key(&self, method: &Method) -> bool {
        match self.traits().key {
            Key::Never => false,
            Key::ToWrite => *method != Method::GET,
            Key::Always => true,
        }
    }
}

/// Whether a page takes an account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Never,
    ToWrite,
    Always,
}

/// All that is known of a page.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    /// `HEAD` goes with `GET`.
    pub(crate) methods: &'static [Method],
    key: Key,
    /// Parameters of its list, if it is one.
    pub(crate) query: &'static [&'static str],
    /// The fields that a request may give, as the schema has them.
    pub(crate) takes: Option<fn() -> Value>,
}

impl Traits {
    fn of(methods: &'static [Method], key: Key) -> Traits {
        Traits { methods, key, query: &[], takes: None }
    }

    fn takes(self, takes: fn() -> Value) -> Traits {
        Traits { takes: Some(takes), ..self }
    }

    fn lists(self, query: &'static [&'static str]) -> Traits {
        Traits { query, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_an_end_with_and_without_a_slash() {
        for (path, expected) in [
            ("/api/agents/register/", Some(Resource::Register)),
            ("/api/agents/register", Some(Resource::Register)),
            ("/api/agents/me/proof/", Some(Resource::Proof)),
            ("/api/agents/a%20b/", Some(Resource::Agent("a b".to_owned()))),
            ("/api/agents/", None),
            ("/api/agents/me/spoons/", None),
            ("/api/jobs", Some(Resource::Jobs)),
            ("/api/jobs/x/", Some(Resource::Job("x".to_owned()))),
            ("/api/jobsy/", None),
            ("/api/schema/", Some(Resource::Schema)),
        ] {
            assert_eq!(Resource::of(path), expected, "{path}");
        }
    }
}

//! Things that people do: each is an ordinary signed act of an agent of their key.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Path, State},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use bridge::{
    seam::{
        call::{Attach, Identity, Say, StandOutside},
        refusal::Refusal,
    },
    session::ask::Ask,
};
use sha2::{Digest as _, Sha256};

use crate::{
    http::{person, room_id, see},
    limits::{FORM_BYTES_MAX, PERSON_STAYS},
    shared::Shared,
    signing::Person,
    views::{self, Problem},
};

/// The fields of a form.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// `None`: it is too large, or no form.
    pub(crate) fn read(body: &[u8]) -> Option<Fields> {
        if body.len() > FORM_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(body).ok()?;
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        pairs.collect::<Option<Vec<_>>>().map(Fields)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| &**value)
    }
}

/// A text as forms and queries have it (WHATWG URL §5).
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a form is one of this person's pages: no other page knows the word in it.
pub(crate) fn is_own_form(person: &Person, fields: &Fields) -> bool {
    // Of hashes, so that the time says nothing of how far they are equal.
    let print = |text: &str| Sha256::digest(text.as_bytes());
    fields.get("form").is_some_and(|given| print(given) == print(&person.form))
}

impl Shared {
    /// Does something as a person, who is attached for it.
    async fn act<C: Ask>(&self, person: &Person, call: C) -> Result<C::Answer, Refusal> {
        let attach = Attach {
            key: person.key.clone(),
            name: person.name.clone(),
            identity: Identity::Named(person.agent().to_string()),
            capabilities: Vec::new(),
            reconnect: false,
            linger: PERSON_STAYS,
        };
        let hosted = self.desk.host(attach).await?;
        if hosted.came {
            self.desk.ask(&hosted.visitor, StandOutside).await?;
        }
        self.desk.ask(&hosted.visitor, call).await
    }
}

/// A person says something in a room.
pub(crate) async fn say(
    State(shared): State<Arc<Shared>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let person = match person(&shared, &headers).await {
        Ok(person) => person,
        Err(response) => return response,
    };
    match said(&shared, &person, &room, &body).await {
        Ok(()) => see(&format!("/ui/rooms/{room}#end")),
        Err(problem) => (problem.status(), views::problem(&problem)).into_response(),
    }
}

async fn said(shared: &Shared, person: &Person, room: &str, body: &[u8]) -> Result<(), Problem> {
    let room = room_id(room)?;
    let fields = Fields::read(body).ok_or(Problem::Form)?;
    if !is_own_form(person, &fields) {
        return Err(Problem::Form);
    }
    let text = fields.get("text").unwrap_or_default().replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(Problem::Refused("There is nothing to say: the text is empty.".to_owned()));
    }
    let answers = fields.get("answers").filter(|id| !id.is_empty()).map(str::to_owned);
    let say = Say { reply_to: answers, ..Say::chat(room, text) };
    shared.act(person, say).await.map(drop).map_err(|refusal| Problem::of(&refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it_and_anything_else_is_none() {
        let fields = Fields::read("text=a+b%26c%0D%0Ad&form=x&empty=".as_bytes()).unwrap();
        assert_eq!(fields.get("text"), Some("a b&c\r\nd"));
        assert_eq!((fields.get("empty"), fields.get("none")), (Some(""), None));
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert!(Fields::read(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(Fields::read(&vec![b'x'; FORM_BYTES_MAX + 1]).is_none());
    }
}

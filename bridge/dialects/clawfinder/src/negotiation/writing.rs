//! Writing messages: in the one form of the client, and nothing that a reader could take for something else.

use super::{
    attachments::{ATTACHMENTS_MAX, Attachment},
    fields::{self, LINE_BYTES_MAX, PROTOCOL},
    steps::Step,
    subject,
};

/// A message that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft<'a> {
    /// Its type.
    pub(crate) step: Step,
    /// Its session.
    pub(crate) session: &'a str,
    /// The time, as it is written: UTC, milliseconds, `Z`.
    pub(crate) timestamp: &'a str,
    /// Its fields by key, in any order; an optional one may be missing or empty.
    pub(crate) fields: Vec<(&'a str, &'a str)>,
    /// Its attachments.
    pub(crate) attachments: Vec<Attachment>,
    /// Its body, byte for byte.
    pub(crate) body: Option<&'a str>,
}

/// A field that cannot be written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The field.
    pub(crate) field: String,
    /// Why, in the words of other refusals.
    pub(crate) why: String,
}

fn refused<T>(field: impl Into<String>, why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { field: field.into(), why: why.into() })
}

/// Writes a message.
pub(crate) fn write(draft: &Draft<'_>) -> Result<String, Refused> {
    if !subject::is_session(draft.session) {
        return refused("session_id", "Not 1 to 64 letters, digits, dots, dashes and underscores.");
    }
    let known = fields::of(draft.step);
    for (at, (key, _)) in draft.fields.iter().enumerate() {
        if !known.iter().any(|field| field.key == *key) {
            return refused(*key, format!("{} has no such field.", draft.step.upper()));
        }
        if draft.fields[..at].iter().any(|(before, _)| before == key) {
            return refused(*key, "This field is there twice.");
        }
    }
    let mut text = String::new();
    line(&mut text, "protocol", PROTOCOL)?;
    line(&mut text, "type", draft.step.upper())?;
    line(&mut text, "session_id", draft.session)?;
    line(&mut text, "timestamp", draft.timestamp)?;
    for field in known {
        let given = draft.fields.iter().find(|(key, _)| *key == field.key);
        match given.map(|(_, value)| value.trim()).filter(|value| !value.is_empty()) {
            Some(value) => line(&mut text, field.key, value)?,
            None if field.required && given.is_some() => {
                return refused(field.key, "This field may not be blank.");
            }
            None if field.required => return refused(field.key, "This field is required."),
            None => {}
        }
    }
    attach(&mut text, draft)?;
    match draft.body {
        Some(_) if !fields::has_body(draft.step) => {
            return refused("body", format!("{} has no body.", draft.step.upper()));
        }
        Some(body) => {
            text.push('\n');
            text.push_str(body);
        }
        None => {}
    }
    Ok(text)
}

fn attach(text: &mut String, draft: &Draft<'_>) -> Result<(), Refused> {
    let attachments = &draft.attachments;
    if !attachments.is_empty() && !fields::has_body(draft.step) {
        return refused("attachments", format!("{} has no attachments.", draft.step.upper()));
    }
    if attachments.len() > ATTACHMENTS_MAX {
        return refused("attachments", format!("At most {ATTACHMENTS_MAX} attachments."));
    }
    for (at, attachment) in attachments.iter().enumerate() {
        if let Some((part, why)) = attachment.problem() {
            return refused("attachments", format!("{}: {part}: {why}", at + 1));
        }
        let number = (attachments.len() > 1).then_some(at + 1);
        for (key, value) in attachment.lines(number) {
            line(text, &key, value)?;
        }
    }
    Ok(())
}

fn line(text: &mut String, key: &str, value: &str) -> Result<(), Refused> {
    // Line ends of Unicode, too: some reader may split there.
    if value.chars().any(|it| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')) {
        return refused(key, "Control characters and line breaks are not allowed.");
    }
    if key.len() + 2 + value.len() > LINE_BYTES_MAX {
        return refused(key, format!("Ensure this field has no more than {LINE_BYTES_MAX} bytes."));
    }
    text.push_str(&format!("{key}: {value}\n"));
    Ok(())
}

//! Reading messages: tolerant, for older clients and people write them, too.

use super::{
    attachments::{self, Shown},
    fields::{self, LINE_BYTES_MAX, LINES_MAX, PROTOCOL},
    steps::Step,
};

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    /// No message of the protocol.
    Ordinary,
    /// Meant as one, and cannot be read: why.
    Malformed(String),
    /// A message.
    Message(Message),
}

/// A message, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its type, if it is one of the eight.
    pub(crate) step: Option<Step>,
    /// All fields in their order, unknown ones too; without a `body` that stands for the one behind the head.
    pub(crate) fields: Vec<(String, String)>,
    /// What is behind the head, byte for byte.
    pub(crate) body: Option<String>,
}

impl Message {
    /// The value of a field.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Its attachments, with what is wrong with each.
    pub(crate) fn attachments(&self) -> Vec<Shown> {
        attachments::read(self.fields.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// What is wrong with it, as the message of a mail with this subject. It is delivered all the same.
    pub(crate) fn violations(&self, step: Step, session: &str) -> Vec<String> {
        let mut found = Vec::new();
        if self.step != Some(step) {
            let said = self.value("type").unwrap_or("none");
            found.push(format!("its type is {said}, that of its subject is {}", step.upper()));
        }
        if self.value("session_id") != Some(session) {
            let said = self.value("session_id").unwrap_or("none");
            found.push(format!("its session is {said}, that of its subject is {session}"));
        }
        let missing = |key: &&str| self.value(key).is_none_or(|value| value.trim().is_empty());
        let required = fields::of(step).iter().filter(|it| it.required).map(|it| it.key);
        let all = std::iter::once("timestamp").chain(required);
        found.extend(all.filter(missing).map(|key| format!("{key} is missing")));
        if fields::has_body(step) {
            let problems = self.attachments().into_iter().filter_map(|it| it.problem);
            found.extend(problems.map(|problem| format!("attachment: {problem}")));
        }
        found
    }
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Read {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut body = None;
    let mut problem = None;
    let mut lines = 0;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let is_last = !rest.contains('\n');
        let line = line.strip_suffix('\r').unwrap_or(line);
        rest = after;
        if line.is_empty() && !is_last {
            body = Some(rest.to_owned());
            break;
        }
        lines += 1;
        if lines > LINES_MAX || line.len() > LINE_BYTES_MAX {
            problem =
                Some(format!("its head has more than {LINES_MAX} lines of {LINE_BYTES_MAX} bytes"));
            break;
        }
        let Some((key, value)) = line.split_once(':') else {
            problem.get_or_insert_with(|| "a line of its head has no colon".to_owned());
            continue;
        };
        let key = key_of(key);
        if fields.iter().any(|(known, _)| *known == key) {
            problem.get_or_insert_with(|| format!("{key} is there twice"));
        }
        fields.push((key, value.trim().to_owned()));
    }
    let protocol = fields.iter().find(|(key, _)| key == "protocol");
    if protocol.is_none_or(|(_, value)| value != PROTOCOL) {
        return Read::Ordinary;
    }
    if let Some(problem) = problem {
        return Read::Malformed(problem);
    }
    if body.is_none() {
        let at = fields.iter().position(|(key, _)| key == "body");
        body = at.map(|at| fields.remove(at).1);
    }
    let step = fields.iter().find(|(key, _)| key == "type").and_then(|(_, it)| Step::read(it));
    Read::Message(Message { step, fields, body })
}

fn key_of(text: &str) -> String {
    let key = text.trim().to_lowercase().replace('-', "_");
    if key == "session" { "session_id".to_owned() } else { key }
}

//! Subjects: `negotiate:<type>:<session>`.

use super::steps::Step;

/// The longest id of a session, in bytes.
pub(crate) const SESSION_BYTES_MAX: usize = 64;

/// What a subject says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// Of mail that is no step.
    Ordinary,
    /// Of a step of this session.
    Step(Step, &'a str),
    /// Meant as one, and none: to be refused.
    Wrong,
}

/// Reads a subject.
pub(crate) fn read(subject: &str) -> Subject<'_> {
    let Some((kind, session)) =
        subject.strip_prefix("negotiate:").and_then(|rest| rest.split_once(':'))
    else {
        return Subject::Ordinary;
    };
    if kind.is_empty() || !kind.chars().all(char::is_alphabetic) {
        return Subject::Ordinary;
    }
    match Step::read(kind) {
        Some(step) if is_session(session) => Subject::Step(step, session),
        Some(_) | None => Subject::Wrong,
    }
}

/// Writes one, as the client does.
pub(crate) fn write(step: Step, session: &str) -> String {
    format!("negotiate:{}:{session}", step.lower())
}

/// Whether a text can name a session.
pub(crate) fn is_session(text: &str) -> bool {
    (1..=SESSION_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

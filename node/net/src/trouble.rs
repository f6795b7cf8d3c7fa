//! Why there is no link with a node: a kind that programs tell apart, and a line for people.

use std::error::Error;
use std::fmt;
use std::io;

/// The kinds of reasons, by how far a dial came: of several addresses, the one at which it came furthest
/// gives the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A name has no address, or there is nobody to ask for it.
    NameNotFound,
    /// A relay does not carry us there.
    NotCarried,
    /// There is no way to the machine.
    Unreachable,
    /// The machine does not answer in time.
    TimedOut,
    /// The machine answers that nobody listens at the port.
    ConnectionRefused,
    /// Somebody took the connection and closed it before a word was said.
    HungUp,
    /// Somebody is there that does not know our mesh's secret, or does not speak our language.
    WrongSecret,
    /// A node of our mesh is there: it says that the secret has changed since we were told it.
    OldSecret,
    /// Another node of the mesh than the one that was expected, or we ourselves.
    OtherNode,
    /// It runs another version.
    OtherVersion,
    /// It misbehaved, and is refused here for a while.
    RefusedHere,
    /// There was a link, and it ended.
    Lost,
    /// None of the above.
    Other,
}

impl Trouble {
    /// Whether it does not pass by itself: somebody has to do something.
    #[must_use]
    pub fn is_lasting(self) -> bool {
        match self {
            Trouble::WrongSecret
            | Trouble::OldSecret
            | Trouble::OtherNode
            | Trouble::OtherVersion => true,
            Trouble::NameNotFound
            | Trouble::NotCarried
            | Trouble::Unreachable
            | Trouble::TimedOut
            | Trouble::ConnectionRefused
            | Trouble::HungUp
            | Trouble::RefusedHere
            | Trouble::Lost
            | Trouble::Other => false,
        }
    }
}

/// Why there is no link with a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLink {
    /// For programs.
    pub trouble: Trouble,
    /// One line for people, with the address.
    pub text: String,
}

impl NoLink {
    pub(crate) fn new(trouble: Trouble, text: impl Into<String>) -> NoLink {
        NoLink { trouble, text: text.into() }
    }
}

impl fmt::Display for NoLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The step of a dial at which an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// TCP.
    Reaching,
    /// Through a relay.
    Carrying,
    /// The first bytes each way, which need no key.
    Greeting,
    /// The other end has told us at its door why we may not come in.
    Door(Trouble),
}

/// An error with its step. libp2p wraps errors in several layers.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failed {
    pub(crate) step: Step,
    pub(crate) error: io::Error,
}

/// A shell around [`Failed`]: some of libp2p's layers show the source of the error that they wrap in
/// its place, and would show nothing of a bare one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Shell(#[source] Failed);

/// The error, to be found again by [`failed`] whatever is wrapped around it.
pub(crate) fn at(step: Step, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), Shell(Failed { step, error }))
}

/// The error with its step, if it has one; else its innermost cause.
pub(crate) fn failed<'a>(
    error: &'a (dyn Error + 'static),
) -> Result<&'a Failed, &'a (dyn Error + 'static)> {
    let mut root = error;
    loop {
        if let Some(failed) = root.downcast_ref::<Failed>() {
            return Ok(failed);
        }
        match inner(root) {
            Some(source) => root = source,
            None => return Err(root),
        }
    }
}

/// `io::Error` hides the error it wraps from `source`, and shows that one's source instead.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    }
}

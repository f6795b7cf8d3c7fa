//! A read and its continuation, for a connection that need not know which read it is.

use super::{job::Job, seat::Seat};
use crate::backend::{ReadError, Reads};

/// A job and its continuation.
pub(crate) trait Reading: Send {
    fn waits(&self) -> bool;

    /// Does it if it takes no time: whether it is done.
    fn at_once(&mut self, reads: &dyn Reads) -> bool;

    fn run(&mut self, reads: &dyn Reads);

    /// To be called when it is done.
    fn go_on(self: Box<Self>, seat: &mut Seat);
}

type OnFound<J> = Box<dyn FnOnce(&mut Seat, Result<<J as Job>::Found, ReadError>) + Send>;

/// See [`Reading`].
pub(crate) struct Read<J: Job> {
    job: Option<J>,
    found: Option<Result<J::Found, ReadError>>,
    then: OnFound<J>,
}

impl<J: Job> Read<J> {
    pub(crate) fn new(
        job: J,
        then: impl FnOnce(&mut Seat, Result<J::Found, ReadError>) + Send + 'static,
    ) -> Read<J> {
        Read { job: Some(job), found: None, then: Box::new(then) }
    }
}

impl<J: Job> Reading for Read<J> {
    fn waits(&self) -> bool {
        self.job.as_ref().is_some_and(Job::waits)
    }

    fn at_once(&mut self, reads: &dyn Reads) -> bool {
        self.found = self.job.as_ref().and_then(|job| job.at_once(reads).transpose());
        self.found.is_some()
    }

    fn run(&mut self, reads: &dyn Reads) {
        self.found = self.job.take().map(|job| job.run(reads));
    }

    fn go_on(self: Box<Self>, seat: &mut Seat) {
        let found = self.found.unwrap_or_else(|| Err(ReadError::new("it was not read")));
        (self.then)(seat, found);
    }
}

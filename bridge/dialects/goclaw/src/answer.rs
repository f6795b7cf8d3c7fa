//! The answer to one request, which is given once.

use std::sync::Arc;

use bridge::delivery::ending::Ending;
use tokio::sync::oneshot;

use crate::{frame, line::Line, outcome::Outcome};

/// See the module.
pub(crate) struct Answer {
    line: Arc<Line>,
    id: String,
    /// Dropped when it is given: the request counts as one without an answer until then.
    _open: oneshot::Sender<()>,
}

impl Answer {
    /// The answer to a request, and its end.
    pub(crate) fn to(line: &Arc<Line>, id: String) -> (Answer, oneshot::Receiver<()>) {
        let (open, given) = oneshot::channel();
        (Answer { line: line.clone(), id, _open: open }, given)
    }

    pub(crate) fn line(&self) -> Arc<Line> {
        self.line.clone()
    }

    pub(crate) fn send(self, outcome: Outcome) {
        self.line.answer(frame::response(&self.id, &outcome));
        if outcome.is_err_and(|no| no.ends) {
            self.line.end(Ending::Revoked);
        }
    }
}

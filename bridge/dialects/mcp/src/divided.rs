//! A call that waits, over HTTP, in three parts: the library looks whether the request is right and hands the call over; the
//! call is made without the library; the library writes the answer. Its channels for a request cost more than the rest of a
//! wait does.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::{
    ErrorData,
    model::{CallToolResponse, JsonObject},
};
use serde_json::Value;

use crate::{asking::Asking, rows::Row, server::called};

/// What is put beside a request that is divided. It goes through the library twice.
#[derive(Clone)]
pub(crate) enum Divided {
    /// The call is to be handed over here.
    Asks(Arc<OnceLock<(Row, JsonObject)>>),
    /// This is the answer. It is taken once.
    Answers(Arc<Mutex<Option<Result<CallToolResponse, ErrorData>>>>),
}

/// What becomes of a call that has come to its method.
pub(crate) enum Turn {
    /// It was handed over: what is answered now is read by nobody.
    HandedOver,
    Answered(Result<CallToolResponse, ErrorData>),
}

impl Divided {
    /// The call has come to its method.
    pub(crate) fn turn(&self, tool: Row, given: JsonObject) -> Turn {
        match self {
            Divided::Asks(call) => {
                // The first one stays: there is one call in a request.
                call.set((tool, given)).ok();
                Turn::HandedOver
            }
            Divided::Answers(answer) => {
                let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
                let lost = || Err(ErrorData::internal_error("the answer is lost", None));
                Turn::Answered(answer.unwrap_or_else(lost))
            }
        }
    }

    /// Makes the call that was handed over, and has the answer.
    pub(crate) async fn answer(asking: &Asking, tool: Row, given: JsonObject) -> Divided {
        let answer = called(asking, tool, given).await;
        Divided::Answers(Arc::new(Mutex::new(Some(answer))))
    }
}

/// Whether a request is a call that may wait, and its client wants to hear nothing of it meanwhile.
pub(crate) fn is_for(message: &Value) -> bool {
    let params = &message["params"];
    message["method"] == "tools/call"
        && !message["id"].is_null()
        && params["_meta"]["progressToken"].is_null()
        && params["name"].as_str().and_then(Row::named).is_some_and(Row::may_wait)
}

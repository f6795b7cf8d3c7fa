//! `logs.tail`: the node's log, to its operator.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use bridge::log_tail::{LogLevel, LogLine};
use serde_json::{Value, json};
use tokio::{sync::broadcast::error::RecvError, task::AbortHandle};

use crate::{
    caller::Caller,
    outcome::{Code, No, Outcome},
    params::{Params, must_be},
    times,
};

/// Connections that are told of the log. Each goes with its connection.
#[derive(Default)]
pub(crate) struct Tails(Mutex<BTreeMap<u64, AbortHandle>>);

impl Tails {
    fn put(&self, client: u64, tail: Option<AbortHandle>) {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match tail {
            Some(tail) => tails.insert(client, tail),
            None => tails.remove(&client),
        };
        if let Some(before) = before {
            before.abort();
        }
    }

    /// A connection is gone.
    pub(crate) fn end(&self, client: u64) {
        self.put(client, None);
    }
}

fn event(line: &LogLine) -> Value {
    let at = times::text(line.at_ms);
    json!({
        "timestamp": at,
        "time": at,
        "level": line.level.name(),
        "message": line.message,
        "source": line.source,
        "attrs": line.fields,
    })
}

pub(crate) fn tail(caller: &Caller, client: u64, params: &Params) -> Outcome {
    let level = params.filled(&["level"])?.unwrap_or_else(|| "info".to_owned());
    let least = LogLevel::named(&level)
        .ok_or_else(|| must_be(&["level"], "one of trace, debug, info, warn, error"))?;
    match params.filled(&["action"])?.as_deref() {
        None | Some("start") => {}
        Some("stop") => {
            caller.shared.tails.end(client);
            return Ok(json!({"status": "stopped", "level": level}));
        }
        Some(_) => return Err(must_be(&["action"], "start or stop")),
    }
    let Some(log) = &caller.shared.log else {
        return Err(No::new(Code::NotImplemented, "this node keeps no log to be shown"));
    };
    let clients = caller.shared.clients();
    let line = clients.into_iter().find(|one| one.id == client).map(|one| one.line);
    let Some(line) = line else {
        return Err(No::new(Code::NotImplemented, "the log is told over a WebSocket alone"));
    };
    let (newest, mut to_come) = log.watch();
    let started = LogLine {
        at_ms: times::now_ms(),
        level: LogLevel::Info,
        source: "goclaw".to_owned(),
        message: "Log tailing started".to_owned(),
        fields: serde_json::Map::new(),
    };
    let telling = tokio::spawn(async move {
        let shown = newest.iter().filter(|line| line.level >= least);
        shown.for_each(|one| line.event("log", &event(one)));
        line.event("log", &event(&started));
        loop {
            match to_come.recv().await {
                Ok(one) if one.level >= least => line.event("log", &event(&one)),
                // A client that is too slow misses lines, as it misses events.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
    caller.shared.tails.put(client, Some(telling.abort_handle()));
    Ok(json!({"status": "tailing", "level": level}))
}

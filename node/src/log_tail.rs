//! The node's log, as it is shown to its operator over the wire: `LogTail` of the bridge.

use std::{fmt, sync::Arc};

use bridge::log_tail::{LogLevel, LogLine, LogTail};
use serde_json::{Map, Value};
use tracing_subscriber::layer::{Context, Layer};

use crate::{clock::Clock, limits::LOG_TEXT_BYTES_MAX};

/// Gives each line of the log to a tail.
pub(crate) struct Tailing(pub(crate) Arc<LogTail>);

impl<S: tracing::Subscriber> Layer<S> for Tailing {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let Said { message, fields } = said;
        self.0.push(LogLine {
            at_ms: Clock::start().now().wall_ms,
            level: level(*event.metadata().level()),
            source: event.metadata().target().to_owned(),
            message,
            fields,
        });
    }
}

fn level(level: tracing::Level) -> LogLevel {
    match level {
        tracing::Level::TRACE => LogLevel::Trace,
        tracing::Level::DEBUG => LogLevel::Debug,
        tracing::Level::INFO => LogLevel::Info,
        tracing::Level::WARN => LogLevel::Warn,
        tracing::Level::ERROR => LogLevel::Error,
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn say(&mut self, field: &tracing::field::Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.fields.insert(field.name().to_owned(), value);
        }
    }
}

fn cut(mut text: String) -> Value {
    text.truncate(text.floor_char_boundary(LOG_TEXT_BYTES_MAX));
    Value::String(text)
}

impl tracing::field::Visit for Said {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.say(field, cut(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.say(field, cut(value.to_owned()));
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        self.say(field, value.into());
    }

    fn record_i64(&mut self, field: &tracing::field::Field, value: i64) {
        self.say(field, value.into());
    }

    fn record_bool(&mut self, field: &tracing::field::Field, value: bool) {
        self.say(field, value.into());
    }
}

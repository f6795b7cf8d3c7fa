//! `clawmesh ping`.

use std::time::Duration;

use protocol::operator::{Answer, Pong, Request};
use serde::Serialize;
use tokio::time::sleep;

use crate::context::Context;
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};

/// Measure the way to another node: round trips, directly or through whom
///
/// Exits 2 if no answer came.
#[derive(Debug, clap::Args)]
pub struct Ping {
    /// The node: its name, its id, or the beginning of that
    #[arg(value_name = "NODE")]
    node: String,
    /// Round trips
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=COUNT_MAX))]
    count: u32,
    #[command(flatten)]
    operator: Operator,
}

/// More is for another tool.
const COUNT_MAX: i64 = 1_000;
/// Between two round trips: long enough that one loss is one loss.
const EVERY: Duration = Duration::from_millis(500);

/// All of them together.
#[derive(Debug, Default, Serialize)]
struct Summary {
    node_id: String,
    name: Option<String>,
    through: Option<String>,
    why: Option<String>,
    sent: u32,
    received: u32,
    min_ms: Option<f64>,
    mean_ms: Option<f64>,
    max_ms: Option<f64>,
}

pub(crate) async fn run(cx: &Context, args: Ping) -> Result<Outcome, Failure> {
    let (mut summary, mut total) = (Summary::default(), 0.0);
    for nth in 0..args.count {
        if nth > 0 {
            sleep(EVERY).await;
        }
        let request = Request::Ping { node: args.node.clone() };
        let Answer::Pong(pong) = args.operator.ask(&request).await? else {
            return Err(Failure::strange());
        };
        if !cx.output.is_json() {
            cx.output.line(&line(&pong))?;
        }
        total += summary.add(pong);
    }
    summary.mean_ms = (summary.received > 0).then(|| total / f64::from(summary.received));
    cx.output.show(&summary, || vec![summary.line()])?;
    Ok(if summary.received > 0 { Outcome::Done } else { Outcome::Unanswered })
}

impl Summary {
    /// Takes one in, and returns its time.
    fn add(&mut self, pong: Pong) -> f64 {
        self.sent += 1;
        (self.node_id, self.name) = (pong.node_id, pong.name);
        (self.through, self.why) = (pong.through, pong.why);
        let Some(ms) = pong.rtt_ms else { return 0.0 };
        self.received += 1;
        self.min_ms = Some(self.min_ms.map_or(ms, |min| min.min(ms)));
        self.max_ms = Some(self.max_ms.map_or(ms, |max| max.max(ms)));
        ms
    }

    fn line(&self) -> String {
        let lost = self.sent - self.received;
        let counts = format!("{} sent, {} answered, {lost} lost", self.sent, self.received);
        let shown = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!("{ms:.1}"));
        if self.received == 0 {
            return counts;
        }
        let times = [self.min_ms, self.mean_ms, self.max_ms].map(shown).join(" / ");
        format!("{counts}; least, mean, most: {times} ms")
    }
}

fn line(pong: &Pong) -> String {
    let id: String = pong.node_id.chars().take(8).collect();
    let who = pong.name.as_ref().map_or_else(|| id.clone(), |name| format!("{name} ({id})"));
    let why =
        |before: &str| pong.why.as_ref().map_or_else(String::new, |why| format!("{before}{why}"));
    let how = match (pong.rtt_ms, &pong.through) {
        (None, _) => format!("no answer{}", why(": ")),
        (Some(ms), None) => format!("{ms:.1} ms, directly"),
        (Some(ms), Some(relay)) => {
            format!("{ms:.1} ms, through {relay}{}", why("; not directly: "))
        }
    };
    format::printable(&format!("{who}: {how}"), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pong(rtt_ms: Option<f64>, through: Option<&str>, why: Option<&str>) -> Pong {
        Pong {
            node_id: "ab".repeat(32),
            name: Some("home\u{1b}".to_owned()),
            through: through.map(str::to_owned),
            rtt_ms,
            why: why.map(str::to_owned),
        }
    }

    #[test]
    fn each_round_trip_says_its_way_and_nothing_reaches_the_terminal_as_it_is() {
        let direct = line(&pong(Some(1.25), None, None));
        assert!(direct.ends_with(" (abababab): 1.2 ms, directly"), "{direct}");
        assert!(!direct.contains('\u{1b}'), "{direct}");
        let carried = line(&pong(Some(40.0), Some("hub"), Some("timed out")));
        assert!(carried.ends_with("40.0 ms, through hub; not directly: timed out"), "{carried}");
        let lost = line(&pong(None, None, Some("timed out")));
        assert!(lost.ends_with("no answer: timed out"), "{lost}");
    }

    #[test]
    fn the_summary_counts_what_was_lost() {
        let mut summary = Summary::default();
        let times = [Some(1.0), None, Some(3.0)].map(|ms| summary.add(pong(ms, None, None)));
        summary.mean_ms = Some(times.iter().sum::<f64>() / 2.0);
        let said = "3 sent, 2 answered, 1 lost; least, mean, most: 1.0 / 2.0 / 3.0 ms";
        assert_eq!(summary.line(), said);
        let mut silent = Summary::default();
        silent.add(pong(None, None, None));
        assert_eq!(silent.line(), "1 sent, 0 answered, 1 lost");
    }
}

//! Whether agents are as often right as they say they are sure. Diagnostic only.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lantern::numbers::Numbers;
use crate::lantern::record::Record;
use ::lantern::verb::Verb;

/// Confidences closer to 0 or 1 count as this close.
const CERTAIN: f64 = 1e-6;

/// The loss of being wrong at a confidence of 0.9; no claim costs more.
const LOSS_MAX: f64 = std::f64::consts::LN_10;

/// How well an agent's confidence was placed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Its name, as its messages say it.
    pub agent: String,
    /// The lower the better: 0 = sure and right each time, ln 2 = always undecided.
    pub mean_loss: f64,
    /// Claims that were scored.
    pub claims: u64,
}

/// The loss of a claim that was made with this confidence, and held or not. From 0 to ln 10.
pub fn loss(confidence: f64, held: bool) -> f64 {
    // NaN says nothing.
    let confidence = if confidence.is_nan() { 0.5 } else { confidence };
    let confidence = confidence.clamp(CERTAIN, 1.0 - CERTAIN);
    let loss = if held { -confidence.ln() } else { -(1.0 - confidence).ln() };
    loss.clamp(0.0, LOSS_MAX)
}

/// From the messages of each thread in order; best first.
pub(crate) fn scores(
    threads: &BTreeMap<u64, Vec<(u64, &Record)>>,
    numbers: &Numbers,
) -> Vec<Score> {
    let mut sums: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for messages in threads.values().filter(|messages| is_scored(messages)) {
        let outcomes = outcomes(messages, numbers);
        for (at, claim) in messages {
            if let (Some(confidence), Some(held)) = (claim.confidence, outcomes.get(at)) {
                let (sum, claims) = sums.entry(&claim.from).or_default();
                *sum += loss(confidence, *held);
                *claims += 1;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "nobody makes 2^53 claims")]
    let score = |(agent, (sum, claims)): (&str, (f64, u64))| Score {
        agent: agent.to_owned(),
        mean_loss: sum / claims as f64,
        claims,
    };
    let mut scores: Vec<Score> = sums.into_iter().map(score).collect();
    scores.sort_by(|a, b| a.mean_loss.total_cmp(&b.mean_loss));
    scores
}

/// First resolved by something that is not just an opinion. That it is fused needs no asking: outcomes
/// are said by FUSEs alone.
fn is_scored(messages: &[(u64, &Record)]) -> bool {
    let mut resolutions = messages.iter().filter(|(_, record)| record.verb == Verb::Resolve);
    let basis = resolutions.next().and_then(|(_, record)| record.basis);
    basis.is_some_and(|basis| basis.is_scored())
}

/// Which messages held, by their lowest numbers. Of several outcomes the last counts.
fn outcomes(messages: &[(u64, &Record)], numbers: &Numbers) -> BTreeMap<u64, bool> {
    let said = messages.iter().flat_map(|(_, record)| &record.outcomes);
    said.map(|(seq, held)| (numbers.lowest(*seq), *held)).collect()
}

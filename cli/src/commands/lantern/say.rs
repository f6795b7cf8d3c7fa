//! Commands that send an envelope.
//!
//! Required fields are asked for not by clap but by the check of the envelope, so that all that is
//! wrong is told at once, a missing field and a confidence of 7 alike.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use protocol::request::SendMessage;
use protocol::value::Metadata;
use serde_json::Value;

use crate::commands::lantern::validate::read;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::seq::Seq;
use ::lantern::METADATA;
use ::lantern::check::Problem;
use ::lantern::envelope::{self, Body, Capability, Envelope};
use ::lantern::verb::{Basis, Threading, Verb};

/// Say who you are (--name), and what you can do. Nobody vouches for it: it grants no permission.
#[derive(Debug, clap::Args)]
pub struct Hello {
    /// Room id, or exact name
    pub room: String,
    /// Your maker
    #[arg(long, value_name = "TEXT")]
    pub provider: Option<String>,
    /// Your model
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Your purpose
    #[arg(long, value_name = "TEXT")]
    pub role: Option<String>,
    /// Something you can do, and what would prove that wrong; repeatable
    #[arg(long = "capability", value_name = "NAME[=FALSIFIABLE_BY]", value_parser = capability)]
    pub capabilities: Vec<Capability>,
}

/// Ask something; opens a thread, whose id is printed.
#[derive(Debug, clap::Args)]
pub struct Probe {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The question (required)
    #[arg(long, value_name = "TEXT")]
    pub question: Option<String>,
}

/// Claim something, and say what would prove it wrong; opens a thread, whose id is printed.
#[derive(Debug, clap::Args)]
pub struct Assert {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The claim (required)
    #[arg(long, value_name = "TEXT")]
    pub claim: Option<String>,
    /// The observation that would prove it wrong (required)
    #[arg(long, value_name = "TEXT")]
    pub falsifiable_by: Option<String>,
    /// How sure you are, from 0 to 1; scored once the thread is fused
    #[arg(long, value_name = "0..1", value_parser = confidence, allow_negative_numbers = true)]
    pub confidence: Option<f64>,
}

/// Claim something against a message of a thread, and say what would decide between the two.
#[derive(Debug, clap::Args)]
pub struct Challenge {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The thread (required)
    #[arg(long, value_name = "SEQ")]
    pub thread: Option<Seq>,
    /// The number of the message that you challenge (required)
    #[arg(long, value_name = "SEQ")]
    pub target_seq: Option<Seq>,
    /// The other claim (required)
    #[arg(long, value_name = "TEXT")]
    pub counter_claim: Option<String>,
    /// How sure you are, from 0 to 1 (required)
    #[arg(long, value_name = "0..1", value_parser = confidence, allow_negative_numbers = true)]
    pub confidence: Option<f64>,
    /// The observation that would decide between the two (required)
    #[arg(long, value_name = "TEXT")]
    pub test: Option<String>,
}

/// Say what was observed, and what that rests on.
#[derive(Debug, clap::Args)]
pub struct Resolve {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The thread (required)
    #[arg(long, value_name = "SEQ")]
    pub thread: Option<Seq>,
    /// The observation (required)
    #[arg(long, value_name = "TEXT")]
    pub observation: Option<String>,
    /// Its grounds (required). Claims are scored by the first three
    #[arg(long, value_name = "BASIS", value_parser = bases())]
    pub basis: Option<Basis>,
}

/// Commit what is agreed: the thread is done.
#[derive(Debug, clap::Args)]
pub struct Fuse {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The thread (required)
    #[arg(long, value_name = "SEQ")]
    pub thread: Option<Seq>,
    /// The agreement (required)
    #[arg(long, value_name = "TEXT")]
    pub synthesis: Option<String>,
    /// The agents stay divided
    #[arg(long)]
    pub split: bool,
    /// A file with JSON that becomes part of the shared state
    #[arg(long, value_name = "FILE")]
    pub state_delta: Option<PathBuf>,
    /// Whether the claim of a message held; repeatable
    #[arg(long = "outcome", value_name = "SEQ=true|false")]
    pub outcomes: Vec<ClaimOutcome>,
}

/// Say what you take the shared state to be, so that others see where they differ.
#[derive(Debug, clap::Args)]
pub struct Sync {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The thread, if it is about one
    #[arg(long, value_name = "SEQ")]
    pub thread: Option<Seq>,
    /// A hash of the shared state, computed as you agreed with the others
    #[arg(long, value_name = "HASH")]
    pub state_hash: Option<String>,
    /// The difference: a JSON object or list is sent as such, anything else as a text
    #[arg(long, value_name = "JSON|TEXT", value_parser = diff)]
    pub diff: Option<Value>,
}

/// Throw in an idea beside the matter. Keep them scarce.
#[derive(Debug, clap::Args)]
pub struct Spark {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The idea (required)
    #[arg(long, value_name = "TEXT")]
    pub seed: Option<String>,
    /// Why it is worth a thought now (required)
    #[arg(long, value_name = "TEXT")]
    pub why_now: Option<String>,
    /// The least that would show whether it is any good (required)
    #[arg(long, value_name = "TEXT")]
    pub smallest_test: Option<String>,
}

/// Say the fate of an idea.
#[derive(Debug, clap::Args)]
pub struct Harvest {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The number of the spark (required)
    #[arg(long, value_name = "SEQ")]
    pub spark_seq: Option<Seq>,
    /// Its result, for example the number of a thread
    #[arg(long, value_name = "TEXT")]
    pub becomes: Option<String>,
}

/// Say why nothing becomes of an idea.
#[derive(Debug, clap::Args)]
pub struct Bury {
    /// Where and why
    #[command(flatten)]
    pub common: Common,
    /// The number of the spark (required)
    #[arg(long, value_name = "SEQ")]
    pub spark_seq: Option<Seq>,
    /// Why (required)
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Where and why.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Room id, or exact name
    pub room: String,
    /// Why you say it
    #[arg(long, value_name = "TEXT")]
    pub intent: Option<String>,
}

/// Whether the claim of a message held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimOutcome {
    seq: Seq,
    held: bool,
}

impl FromStr for ClaimOutcome {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, held) = text.split_once('=').ok_or("give SEQ=true or SEQ=false")?;
        let held = held.parse().map_err(|_| "behind the = stands true or false")?;
        Ok(Self { seq: seq.parse()?, held })
    }
}

fn capability(text: &str) -> Result<Capability, &'static str> {
    let (name, falsifiable_by) = match text.split_once('=') {
        Some((name, by)) => (name, Some(by.to_owned())),
        None => (text, None),
    };
    if name.trim().is_empty() {
        return Err("a capability has a name");
    }
    Ok(Capability { name: name.to_owned(), falsifiable_by })
}

/// A number out of range is left to the check of the envelope.
fn confidence(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or("give a number from 0 to 1")
}

fn bases() -> impl TypedValueParser<Value = Basis> {
    let words = PossibleValuesParser::new(Basis::ALL.iter().map(|basis| basis.word()));
    words.try_map(|word| Basis::of_word(&word).ok_or("there is no such basis"))
}

#[allow(clippy::unnecessary_wraps, reason = "clap wants a parser that can fail")]
fn diff(text: &str) -> Result<Value, std::convert::Infallible> {
    let json = serde_json::from_str(text).ok();
    let json = json.filter(|value: &Value| value.is_object() || value.is_array());
    Ok(json.unwrap_or_else(|| Value::String(text.to_owned())))
}

/// The message of a command.
pub(crate) struct Draft {
    room: String,
    verb: Verb,
    opens: bool,
    content: Result<String, Vec<Problem>>,
}

/// A command that says something.
pub(crate) trait Says {
    fn message(self, name: &str) -> Result<Draft, Failure>;
}

pub(crate) async fn run(cx: &Context, args: impl Says) -> Result<Outcome, Failure> {
    let Draft { room, verb, opens, content } = args.message(cx.node.name())?;
    let content = content.map_err(|problems| Failure::Lantern { verb, problems })?;
    let client = cx.client().await?;
    let room_id = cx.join(&client, &room).await?;
    let message = SendMessage {
        room_id,
        content,
        // The answered message is named within, where nodes cannot read it in an encrypted room.
        reply_to: None,
        mentions: Vec::new(),
        metadata: Metadata::parse(METADATA).ok(),
        mesh: None,
    };
    let sent = client.call(message).await?;
    cx.output.show(&sent, || {
        let (verb, seq) = (verb.word(), format::seq(&cx.output, sent.seq));
        let thread = if opens { format!(" — thread id is {seq}") } else { String::new() };
        vec![format!("{verb} sent as seq {seq}{thread}")]
    })?;
    Ok(Outcome::Done)
}

impl Says for Hello {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let hello = envelope::Hello {
            agent_name: name.to_owned(),
            provider: self.provider,
            model: self.model,
            role: self.role,
            capabilities: self.capabilities,
        };
        let content = hello.ready();
        Ok(Draft { room: self.room, verb: Verb::Hello, opens: false, content })
    }
}

impl Common {
    fn message(self, name: &str, thread: Option<Seq>, body: Body) -> Draft {
        let verb = body.verb();
        let thread = thread.map(|seq| seq.0);
        let from = name.to_owned();
        let content = Envelope { from, intent: self.intent, thread, body }.ready();
        let opens = verb.threading() == Threading::Opens;
        Draft { room: self.room, verb, opens, content }
    }
}

impl Says for Probe {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        Ok(self.common.message(name, None, Body::Probe { question: self.question }))
    }
}

impl Says for Assert {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let Self { common, claim, falsifiable_by, confidence } = self;
        Ok(common.message(name, None, Body::Assert { claim, falsifiable_by, confidence }))
    }
}

impl Says for Challenge {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let Self { common, thread, target_seq, counter_claim, confidence, test } = self;
        let target_seq = target_seq.map(|seq| seq.0);
        let body = Body::Challenge { target_seq, counter_claim, confidence, test };
        Ok(common.message(name, thread, body))
    }
}

impl Says for Resolve {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let Self { common, thread, observation, basis } = self;
        Ok(common.message(name, thread, Body::Resolve { observation, basis }))
    }
}

impl Says for Fuse {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let mut outcomes = BTreeMap::new();
        for ClaimOutcome { seq, held } in self.outcomes {
            if outcomes.insert(seq.0, held).is_some_and(|before| before != held) {
                return Err(Failure::OutcomeTwice { seq: seq.0 });
            }
        }
        let shared_state_delta = self.state_delta.as_deref().map(json).transpose()?;
        let body = Body::Fuse {
            synthesis: self.synthesis,
            split: self.split,
            shared_state_delta,
            outcomes,
        };
        Ok(self.common.message(name, self.thread, body))
    }
}

impl Says for Sync {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let Self { common, thread, state_hash, diff } = self;
        Ok(common.message(name, thread, Body::Sync { state_hash, diff }))
    }
}

impl Says for Spark {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let Self { common, seed, why_now, smallest_test } = self;
        Ok(common.message(name, None, Body::Spark { seed, why_now, smallest_test }))
    }
}

impl Says for Harvest {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let spark_seq = self.spark_seq.map(|seq| seq.0);
        Ok(self.common.message(name, None, Body::Harvest { spark_seq, becomes: self.becomes }))
    }
}

impl Says for Bury {
    fn message(self, name: &str) -> Result<Draft, Failure> {
        let spark_seq = self.spark_seq.map(|seq| seq.0);
        Ok(self.common.message(name, None, Body::Bury { spark_seq, reason: self.reason }))
    }
}

fn json(path: &Path) -> Result<Value, Failure> {
    let text = read(path)?;
    serde_json::from_str(&text).map_err(|source| Failure::NotJson { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_typed() {
        let held =
            |text: &str| text.parse::<ClaimOutcome>().map(|outcome| (outcome.seq.0, outcome.held));
        assert_eq!(held("7=true"), Ok((7, true)));
        assert_eq!(held("#7=false"), Ok((7, false)));
        assert_eq!(held("1.0.1=true"), Ok(((1 << 35) + 1, true)));
        for bad in ["7", "7=", "=true", "7=yes", "x=true", "7=true=true"] {
            assert!(held(bad).is_err(), "{bad}");
        }
        let review = capability("code_review=finds a = b").unwrap();
        assert_eq!(
            (&*review.name, review.falsifiable_by.as_deref()),
            ("code_review", Some("finds a = b"))
        );
        assert_eq!(capability("x").unwrap().falsifiable_by, None);
        assert!(capability("=x").is_err() && capability(" ").is_err());
        assert_eq!(confidence("7"), Ok(7.0), "the check says what is wrong with it");
        for bad in ["nan", "inf", "-infinity", "1e999", "sure", ""] {
            assert!(confidence(bad).is_err(), "{bad}");
        }
        assert_eq!(diff("[1]").unwrap(), serde_json::json!([1]));
        assert_eq!(diff("7").unwrap(), Value::String("7".into()));
    }
}

//! Envelopes to be sent.
//!
//! Every field may be missing, so that a command line can be told all that is wrong with it at once:
//! [`Hello::ready`] and [`Envelope::ready`] give the content of a message, or every problem.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::check::{Problem, check};
use crate::verb::{Basis, Verb};
use crate::{SELF_ATTESTED, VERSION};

/// An agent's introduction of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hello {
    /// Its name.
    pub agent_name: String,
    /// Its maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its part in the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its abilities, as it states them.
    pub capabilities: Vec<Capability>,
}

/// Something an agent says it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// A test that would prove it wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub falsifiable_by: Option<String>,
}

/// Anything but a HELLO.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The agent's name.
    pub from: String,
    /// Why it is said.
    pub intent: Option<String>,
    /// The thread: a number of the message that opened it.
    pub thread: Option<u64>,
    /// The statement.
    pub body: Body,
}

/// The statement of an envelope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    /// A question.
    Probe {
        /// Its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// A claim.
    Assert {
        /// Its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        claim: Option<String>,
        /// A test that would prove it wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        falsifiable_by: Option<String>,
        /// How sure the agent is, from 0 to 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
    },
    /// A claim against another.
    Challenge {
        /// A number of the message that is challenged.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_seq: Option<u64>,
        /// The claim against it.
        #[serde(skip_serializing_if = "Option::is_none")]
        counter_claim: Option<String>,
        /// How sure the agent is, from 0 to 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
        /// A test that would decide between the two.
        #[serde(skip_serializing_if = "Option::is_none")]
        test: Option<String>,
    },
    /// An observation.
    Resolve {
        /// Its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        observation: Option<String>,
        /// Its grounds.
        #[serde(skip_serializing_if = "Option::is_none")]
        basis: Option<Basis>,
    },
    /// An agreement.
    Fuse {
        /// In words.
        #[serde(skip_serializing_if = "Option::is_none")]
        synthesis: Option<String>,
        /// The agents stay divided.
        split: bool,
        /// An addition to the shared state; not `null`.
        #[serde(skip_serializing_if = "Option::is_none")]
        shared_state_delta: Option<Value>,
        /// Which claims held, by a number of the message that made them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        outcomes: BTreeMap<u64, bool>,
    },
    /// The shared state, as the agent sees it.
    Sync {
        /// A hash that agents agreed to compute alike.
        #[serde(skip_serializing_if = "Option::is_none")]
        state_hash: Option<String>,
        /// The difference to the others' state.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<Value>,
    },
    /// An idea.
    Spark {
        /// The idea.
        #[serde(skip_serializing_if = "Option::is_none")]
        seed: Option<String>,
        /// Why it is worth a thought now.
        #[serde(skip_serializing_if = "Option::is_none")]
        why_now: Option<String>,
        /// The least that would show whether it is any good.
        #[serde(skip_serializing_if = "Option::is_none")]
        smallest_test: Option<String>,
    },
    /// The fruit of an idea.
    Harvest {
        /// A number of the spark.
        #[serde(skip_serializing_if = "Option::is_none")]
        spark_seq: Option<u64>,
        /// The fruit.
        #[serde(skip_serializing_if = "Option::is_none")]
        becomes: Option<String>,
    },
    /// Why nothing becomes of an idea.
    Bury {
        /// A number of the spark.
        #[serde(skip_serializing_if = "Option::is_none")]
        spark_seq: Option<u64>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Body {
    /// Its `type`, and the message that it answers.
    fn traits(&self) -> (Verb, Option<u64>) {
        match self {
            Body::Probe { .. } => (Verb::Probe, None),
            Body::Assert { .. } => (Verb::Assert, None),
            Body::Challenge { target_seq, .. } => (Verb::Challenge, *target_seq),
            Body::Resolve { .. } => (Verb::Resolve, None),
            Body::Fuse { .. } => (Verb::Fuse, None),
            Body::Sync { .. } => (Verb::Sync, None),
            Body::Spark { .. } => (Verb::Spark, None),
            Body::Harvest { spark_seq, .. } => (Verb::Harvest, *spark_seq),
            Body::Bury { spark_seq, .. } => (Verb::Bury, *spark_seq),
        }
    }

    /// Its `type`.
    pub fn verb(&self) -> Verb {
        self.traits().0
    }
}

#[derive(Serialize)]
struct HelloOnWire<'a> {
    v: &'static str,
    #[serde(rename = "type")]
    verb: Verb,
    #[serde(flatten)]
    hello: &'a Hello,
    attestation: Attestation,
}

/// Nobody vouches for anything: it advertises, and grants no permission.
#[derive(Serialize)]
struct Attestation {
    agent_name: &'static str,
    provider: &'static str,
    model: &'static str,
    role: &'static str,
    capabilities: &'static str,
}

impl Attestation {
    const SELF: Attestation = Attestation {
        agent_name: SELF_ATTESTED,
        provider: SELF_ATTESTED,
        model: SELF_ATTESTED,
        role: SELF_ATTESTED,
        capabilities: SELF_ATTESTED,
    };
}

#[derive(Serialize)]
struct OnWire<'a> {
    v: &'static str,
    #[serde(rename = "type")]
    verb: Verb,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<u64>,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<&'a str>,
    body: &'a Body,
}

impl Hello {
    /// The content of a message.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn ready(&self) -> Result<String, Vec<Problem>> {
        let attestation = Attestation::SELF;
        ready(&HelloOnWire { v: VERSION, verb: Verb::Hello, hello: self, attestation })
    }
}

impl Envelope {
    /// The content of a message.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn ready(&self) -> Result<String, Vec<Problem>> {
        let (verb, reply_to) = self.body.traits();
        ready(&OnWire {
            v: VERSION,
            verb,
            thread: self.thread,
            reply_to,
            from: &self.from,
            intent: self.intent.as_deref(),
            body: &self.body,
        })
    }
}

/// Checks the very value that is sent, by the rules for files.
fn ready(envelope: &impl Serialize) -> Result<String, Vec<Problem>> {
    let value = serde_json::to_value(envelope).map_err(|error| vec![Problem::not_json(&error)])?;
    let problems = check(&value);
    if problems.is_empty() { Ok(value.to_string()) } else { Err(problems) }
}

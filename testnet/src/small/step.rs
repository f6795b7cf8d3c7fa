//! One step of a small world, and how it is written.

use std::{fmt, str::FromStr};

use anyhow::{Result, anyhow, bail, ensure};

/// One of the two streams of a connection; each keeps its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stream {
    /// Messages to all.
    Gossip,
    /// Messages to one node, and whether it is connected.
    Direct,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Step {
    /// The agent of a node says something.
    Say(u8),
    /// The first thing under way from one node to another arrives.
    Arrive(u8, u8, Stream),
    /// Time passes, until somebody says something.
    Wait,
    /// A fault: the process of a node is killed.
    Crash(u8),
    /// It starts again, with what was durable.
    Start(u8),
    /// A fault: a link is cut, and things under way are lost.
    Cut(u8, u8),
    /// It is whole again.
    Heal(u8, u8),
    /// A fault: nothing gets from the one to the other any more, and neither notices.
    Lose(u8, u8),
    /// That is over.
    Mend(u8, u8),
    /// A fault: things from the one to the other may take as long as they like from now on.
    Slow(u8, u8),
    /// A fault: a node is stopped in good order, and hands its eras over.
    Stop(u8),
}

impl Step {
    /// Whether it is counted as a fault.
    pub(super) fn is_fault(self) -> bool {
        match self {
            Step::Crash(_) | Step::Cut(..) | Step::Lose(..) | Step::Slow(..) | Step::Stop(_) => {
                true
            }
            Step::Say(_)
            | Step::Arrive(..)
            | Step::Wait
            | Step::Start(_)
            | Step::Heal(..)
            | Step::Mend(..) => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Say(node) => write!(f, "say {node}"),
            Step::Arrive(from, to, Stream::Gossip) => write!(f, "gossip {from}>{to}"),
            Step::Arrive(from, to, Stream::Direct) => write!(f, "frame {from}>{to}"),
            Step::Wait => write!(f, "wait"),
            Step::Crash(node) => write!(f, "crash {node}"),
            Step::Start(node) => write!(f, "start {node}"),
            Step::Cut(a, b) => write!(f, "cut {a}>{b}"),
            Step::Heal(a, b) => write!(f, "heal {a}>{b}"),
            Step::Lose(from, to) => write!(f, "lose {from}>{to}"),
            Step::Mend(from, to) => write!(f, "mend {from}>{to}"),
            Step::Slow(from, to) => write!(f, "slow {from}>{to}"),
            Step::Stop(node) => write!(f, "stop {node}"),
        }
    }
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Step> {
        let (name, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let node = || rest.parse().map_err(|_| anyhow!("{text:?} names no node"));
        let pair = || -> Result<(u8, u8)> {
            let (a, b) = rest.split_once('>').ok_or_else(|| anyhow!("{text:?} names no link"))?;
            Ok((a.parse()?, b.parse()?))
        };
        let of_pair = |make: fn(u8, u8) -> Step| pair().map(|(a, b)| make(a, b));
        let arrive = |stream| pair().map(|(from, to)| Step::Arrive(from, to, stream));
        Ok(match name {
            "say" => Step::Say(node()?),
            "gossip" => arrive(Stream::Gossip)?,
            "frame" => arrive(Stream::Direct)?,
            "wait" => Step::Wait,
            "crash" => Step::Crash(node()?),
            "start" => Step::Start(node()?),
            "cut" => of_pair(Step::Cut)?,
            "heal" => of_pair(Step::Heal)?,
            "lose" => of_pair(Step::Lose)?,
            "mend" => of_pair(Step::Mend)?,
            "slow" => of_pair(Step::Slow)?,
            "stop" => Step::Stop(node()?),
            _ => bail!("{text:?} is no step"),
        })
    }
}

/// A list of steps, as it is printed.
///
/// # Errors
///
/// A part of it is no step.
pub(super) fn read(text: &str) -> Result<Vec<Step>> {
    let steps: Result<Vec<Step>> = text.split(',').map(str::parse).collect();
    let steps = steps?;
    ensure!(!steps.is_empty(), "there is no step");
    Ok(steps)
}

/// The same, written.
pub(super) fn written(steps: &[Step]) -> String {
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    steps.join(", ")
}

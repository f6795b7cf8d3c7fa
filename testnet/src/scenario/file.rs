//! A scenario as it is written: TOML, checked when it is read.

use std::{collections::BTreeSet, fmt, time::Duration};

use serde::Deserialize;
use thiserror::Error;

use super::handing::AGENTS;

/// Nodes of a scenario at most: as many as one machine can simulate within minutes.
const NODES_MAX: usize = 50;
/// Messages of one step at one node at most.
const MESSAGES_MAX: u64 = 1_000_000;
/// A step waits for this long at most. Seconds.
const SECONDS_MAX: f64 = 3_600.0;

/// Events that happen to a few nodes, and promises that hold in spite of them. Nodes are counted from 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its subject, in one line.
    pub title: String,
    /// How many nodes, those that come later included.
    pub nodes: usize,
    /// So many of them, the last ones, are not there until a `start` names them.
    #[serde(default)]
    pub later: usize,
    /// Where it can be played.
    #[serde(default = "World::both")]
    pub worlds: Vec<World>,
    /// The promises that must hold.
    pub promises: BTreeSet<Promise>,
    /// Its steps, one after the other.
    #[serde(default, rename = "step")]
    pub steps: Vec<Step>,
}

/// Where a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// The real engine and store in virtual time.
    Sim,
    /// Real daemons behind pipes of our own.
    Process,
}

impl World {
    fn both() -> Vec<World> {
        vec![World::Sim, World::Process]
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            World::Sim => "sim",
            World::Process => "process",
        })
    }
}

/// A property of histories. `docs/scenarios.md` says what each one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Numbers rise on every connection and in every node's history.
    Rising,
    /// No connection and no history has a message twice.
    Once,
    /// A number never means two messages, and a message never says two things.
    Names,
    /// A message that was answered `ok` is in the end at every node.
    Acknowledged,
    /// In the end all nodes have the same messages.
    Complete,
    /// A connection misses nothing between the first and the last message that it is told.
    Pushed,
    /// A message after the last fault has one number everywhere.
    Agreement,
    /// Every number that anybody was told leads to its message at every node.
    Resolves,
    /// Numbers are 1, 2, 3 … at every node.
    Calm,
    /// A client that takes its cursor from node to node skips nothing, and its numbers rise.
    Roaming,
    /// Nobody sees a tally while a vote is open; in the end all nodes show the same one, of all ballots.
    Votes,
    /// Every node tells its operator of exactly the nodes that came back with an old disk.
    Forks,
    /// In the end all nodes show one leader, one of those that stood.
    Leader,
    /// An agent that was told that a task is its own holds it in the end at every node, or it is contested there.
    Claims,
    /// A message that was quoted by its number is found by that number at every node.
    Threads,
    /// On one agent's answer another one acts at once, at another node, and nobody is missing.
    Handed,
}

/// Something that is done. Times are seconds, of the world they are played in.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// One agent at each of these nodes sends messages, as fast as they are answered.
    Chat {
        /// Where.
        at: Vec<usize>,
        /// How many at each of them; scaled.
        messages: u64,
        /// The next steps do not wait until they are answered.
        #[serde(default)]
        background: bool,
    },
    /// Waits until so many messages of all chats in the background are answered; scaled.
    Await {
        /// Altogether.
        messages: u64,
    },
    /// Waits until chats in the background are over.
    Finish,
    /// Nothing happens for a while.
    Wait {
        /// How long.
        seconds: f64,
    },
    /// Nodes reach each other only within their group.
    Split {
        /// Each node in one of them.
        groups: Vec<Vec<usize>>,
    },
    /// No message of this node reaches that one, and neither notices.
    HalfOpen {
        /// The node that is not heard.
        from: usize,
        /// The node that does not hear.
        to: usize,
    },
    /// The link of two nodes breaks and comes back, again and again.
    Flap {
        /// Both ends.
        between: [usize; 2],
        /// How often.
        times: u64,
        /// Broken for so long, and there again for so long.
        seconds: f64,
    },
    /// All that is sent takes longer.
    Slow {
        /// Each way.
        delay_ms: u64,
    },
    /// All links are as they should be.
    Heal,
    /// Nodes end at once: their machines' power fails (simulation), SIGKILL (process).
    Kill {
        /// Which.
        nodes: Vec<usize>,
    },
    /// Nodes that are down, or were not there yet, start.
    Start {
        /// Which.
        nodes: Vec<usize>,
    },
    /// Nodes end in good order and start again.
    Restart {
        /// Which, one after the other.
        nodes: Vec<usize>,
        /// With which program.
        #[serde(default)]
        binary: Binary,
    },
    /// A client that only has a cursor reads on at a node, to the end.
    Roam {
        /// Where.
        to: usize,
    },
    /// The listener at a node opens a vote. All members at that moment may vote.
    Vote {
        /// Where.
        at: usize,
        /// How many there are to choose from.
        options: u64,
    },
    /// Every agent at these nodes casts a ballot in the last vote.
    Ballots {
        /// Where.
        at: Vec<usize>,
        /// Which option, from 0.
        option: u64,
    },
    /// The disk of a node is copied; the node is killed for that moment.
    Backup {
        /// Which.
        node: usize,
    },
    /// A node is killed, and comes back with the copy as if that were its disk: no operator may do that.
    Restore {
        /// Which.
        node: usize,
    },
    /// Nodes are killed and never start again.
    Retire {
        /// Which.
        nodes: Vec<usize>,
    },
    /// There is no room on the disks of these nodes from now on.
    Fill {
        /// Which.
        nodes: Vec<usize>,
    },
    /// There is again.
    MakeRoom {
        /// Which.
        nodes: Vec<usize>,
    },
    /// The wall clock of a node is off by so much from now on. Of a real daemon that is libfaketime's doing.
    Clock {
        /// Which.
        node: usize,
        /// How far: ahead, or (below 0) behind. At most an hour.
        seconds: f64,
    },
    /// The listener at a node begins an election.
    Elect {
        /// Where.
        at: usize,
    },
    /// The listener at a node makes a task that nobody holds.
    Task {
        /// Where.
        at: usize,
    },
    /// Every agent at these nodes claims the last task, if nobody holds it.
    Claim {
        /// Where.
        at: Vec<usize>,
    },
    /// Everybody at these nodes who knows what others have said answers the last of it, by its number.
    Quote {
        /// Where.
        at: Vec<usize>,
    },
    /// Agents at three nodes make rooms, votes and tasks, and tell each other their ids outside the mesh as soon as
    /// they are answered; each acts on them at once.
    HandOver {
        /// Where.
        at: [usize; AGENTS],
        /// How many rounds; scaled. In each something is handed over ten times.
        times: u64,
    },
    /// Nodes stand still for a while: SIGSTOP and SIGCONT.
    Pause {
        /// Which, at the same time.
        nodes: Vec<usize>,
        /// How long.
        seconds: f64,
    },
}

/// With which program a node is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binary {
    /// The one that it ran.
    #[default]
    Same,
    /// The one that `--other` names, an older or a newer version.
    Other,
    /// The one that `--clawmeshd` names, or else the one that was built.
    Usual,
}

/// Why a text is not a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// Not TOML, or not these fields.
    #[error("line {line}: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// The mistake there.
        what: String,
    },
    /// A step that cannot be.
    #[error("step {step}: {what}")]
    Step {
        /// Counted from 1.
        step: usize,
        /// Its mistake.
        what: String,
    },
    /// Something else.
    #[error("{0}")]
    Head(String),
}

impl Scenario {
    /// Reads and checks one.
    ///
    /// # Errors
    ///
    /// Which line or step is wrong, and how.
    pub fn parse(text: &str) -> Result<Scenario, FileError> {
        let scenario: Scenario = toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            let line = before.matches('\n').count() + 1;
            FileError::Syntax { line, what: error.message().replace('\n', " ") }
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Nodes that are there from the beginning.
    #[must_use]
    pub fn first(&self) -> usize {
        self.nodes - self.later
    }

    /// The same with `scale` times as many messages, at least one each time.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Scenario {
        // Rounded, and far below what a double holds exactly: MESSAGES_MAX.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "between 1 and a million"
        )]
        let scaled = |count: u64| ((count as f64 * scale).round() as u64).clamp(1, MESSAGES_MAX);
        for step in &mut self.steps {
            if let Step::Chat { messages, .. }
            | Step::Await { messages }
            | Step::HandOver { times: messages, .. } = step
            {
                *messages = scaled(*messages);
            }
        }
        self
    }

    /// Whether it sets clocks, for which real daemons need [libfaketime](super::clocks).
    #[must_use]
    pub fn sets_clocks(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Clock { .. }))
    }

    fn check(&self) -> Result<(), FileError> {
        let head = |what: &str| Err(FileError::Head(what.to_owned()));
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return head(&format!("nodes = {}: write 1 to {NODES_MAX}", self.nodes));
        }
        if self.later >= self.nodes {
            return head("later: at least one node is there from the beginning");
        }
        if self.worlds.is_empty() {
            return head("worlds: name \"sim\", \"process\" or both");
        }
        if self.promises.is_empty() {
            return head("promises: name at least one, or nothing is checked");
        }
        if !self.steps.iter().any(|step| matches!(step, Step::Chat { .. })) {
            return head("there is no `chat` step, so there is nothing to check");
        }
        for (at, step) in (1..).zip(&self.steps) {
            let checked = self.check_step(step);
            checked.map_err(|what| FileError::Step { step: at, what })?;
        }
        Ok(())
    }

    fn check_step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Chat { at, messages, .. } => {
                count("messages", *messages)?;
                self.those("at", at)
            }
            Step::Await { messages } => count("messages", *messages),
            Step::Wait { seconds: length } => seconds(*length),
            Step::Split { groups } => self.groups(groups),
            Step::HalfOpen { from, to } => self.those("from, to", &[*from, *to]),
            Step::Flap { between, times, seconds: length } => {
                self.those("between", between)?;
                count("times", *times)?;
                seconds(*length)
            }
            Step::Kill { nodes }
            | Step::Start { nodes }
            | Step::Restart { nodes, .. }
            | Step::Fill { nodes }
            | Step::MakeRoom { nodes }
            | Step::Retire { nodes } => self.those("nodes", nodes),
            Step::Clock { node, seconds: off } => {
                self.those("node", &[*node])?;
                seconds(off.abs())
            }
            Step::Backup { node } | Step::Restore { node } => self.those("node", &[*node]),
            Step::Roam { to } => self.those("to", &[*to]),
            Step::Vote { at, options } => {
                self.those("at", &[*at])?;
                let fits = (2..=10).contains(options);
                if fits { Ok(()) } else { Err(format!("options = {options}: write 2 to 10")) }
            }
            Step::Elect { at } | Step::Task { at } => self.those("at", &[*at]),
            Step::Ballots { at, .. } | Step::Claim { at } | Step::Quote { at } => {
                self.those("at", at)
            }
            Step::HandOver { at, times } => {
                count("times", *times)?;
                self.those("at", at)
            }
            Step::Pause { nodes, seconds: length } => {
                self.those("nodes", nodes)?;
                seconds(*length)
            }
            Step::Slow { delay_ms } if *delay_ms > 60_000 => {
                Err(format!("delay_ms = {delay_ms}: write at most 60000"))
            }
            Step::Slow { .. } | Step::Finish | Step::Heal => Ok(()),
        }
    }

    /// Some nodes, each once.
    fn those(&self, field: &str, nodes: &[usize]) -> Result<(), String> {
        let distinct: BTreeSet<&usize> = nodes.iter().collect();
        if nodes.is_empty() {
            return Err(format!("{field}: name at least one node"));
        }
        if distinct.len() < nodes.len() {
            return Err(format!("{field} = {nodes:?}: a node is named twice"));
        }
        match nodes.iter().find(|node| !(1..=self.nodes).contains(*node)) {
            Some(node) => Err(format!("{field}: there is no node {node}, but 1 to {}", self.nodes)),
            None => Ok(()),
        }
    }

    fn groups(&self, groups: &[Vec<usize>]) -> Result<(), String> {
        let all: Vec<usize> = groups.iter().flatten().copied().collect();
        self.those("groups", &all)?;
        let missing = (1..=self.nodes).find(|node| !all.contains(node));
        missing.map_or(Ok(()), |node| Err(format!("groups: node {node} is in none of them")))
    }
}

fn count(field: &str, value: u64) -> Result<(), String> {
    let fits = (1..=MESSAGES_MAX).contains(&value);
    if fits { Ok(()) } else { Err(format!("{field} = {value}: write 1 to {MESSAGES_MAX}")) }
}

fn seconds(value: f64) -> Result<(), String> {
    let fits = (0.0..=SECONDS_MAX).contains(&value);
    if fits { Ok(()) } else { Err(format!("seconds = {value}: write 0 to {SECONDS_MAX}")) }
}

/// Of a step that was checked.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
title = \"a split\"
nodes = 3
promises = [\"names\"]

[[step]]
do = \"chat\"
at = [1, 2]
messages = 100

[[step]]
do = \"split\"
groups = [[1, 2], [3]]
";

    #[test]
    fn a_scenario_is_read_and_scaled() {
        let scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!((scenario.nodes, scenario.first()), (3, 3));
        assert_eq!(scenario.worlds, [World::Sim, World::Process]);
        let scaled = scenario.scaled(0.05);
        assert!(matches!(scaled.steps[0], Step::Chat { messages: 5, background: false, .. }));
        let least = Scenario::parse(GOOD).unwrap().scaled(0.000_1);
        assert!(matches!(least.steps[0], Step::Chat { messages: 1, .. }));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_or_step() {
        let check = |from: &str, to: &str, expect: &str| {
            assert!(GOOD.contains(from), "{from}");
            let error = Scenario::parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expect), "{error:?} is not {expect:?}");
        };
        check("nodes = 3", "nodes = x", "line 3: ");
        check("nodes = 3", "nods = 3", "line 3: unknown field `nods`");
        check("nodes = 3", "nodes = 51", "nodes = 51: write 1 to 50");
        check("nodes = 3", "nodes = 3\nlater = 3", "at least one node");
        check("nodes = 3", "nodes = 3\nworlds = []", "worlds: name");
        check("\"names\"", "\"luck\"", "line 4: unknown variant `luck`");
        check("\"names\"", "", "promises: name at least one");
        check("at = [1, 2]", "at = [1, 4]", "step 1: at: there is no node 4, but 1 to 3");
        check("at = [1, 2]", "at = []", "step 1: at: name at least one node");
        check("at = [1, 2]", "at = [1, 1]", "a node is named twice");
        check("at = [1, 2]", "from = [1, 2]", "line 6: ");
        check("messages = 100", "messages = 0", "step 1: messages = 0: write 1 to 1000000");
        check("do = \"chat\"", "do = \"sing\"", "unknown variant `sing`");
        check("[[1, 2], [3]]", "[[1, 2]]", "step 2: groups: node 3 is in none of them");
        check("[[1, 2], [3]]", "[[1, 2], [2, 3]]", "a node is named twice");
        let quiet = GOOD.split("[[step]]").next().unwrap();
        assert!(Scenario::parse(quiet).unwrap_err().to_string().contains("no `chat` step"));
    }
}

//! The sights of agents, in either world: a list that can be judged without knowing how it came about.

use std::{collections::BTreeSet, time::Duration};

/// A message as somebody was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number it has there.
    pub number: u64,
    /// Its id.
    pub message: String,
    /// Its text.
    pub content: String,
}

/// Something that was seen of the one room that all are in. Nodes are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An agent asks its node to say this; noted with real daemons alone.
    Asked {
        /// The text: nobody says the same twice.
        content: String,
    },
    /// An agent's message was answered `ok`.
    Told {
        /// Where.
        at: usize,
        /// The answer.
        row: Row,
    },
    /// An agent's message was refused.
    Refused {
        /// Where.
        at: usize,
        /// How the protocol calls it.
        code: String,
    },
    /// A message was pushed to an agent.
    Heard {
        /// Where.
        at: usize,
        /// Of all connections in this history.
        connection: u64,
        /// The agent of that connection: it is not told of its own messages.
        by: String,
        /// The message.
        row: Row,
    },
    /// All faults are over: messages from here on have one number everywhere. Of several the last
    /// counts.
    Calm,
    /// The whole history of a node, as pages say; of several the last counts.
    Read {
        /// Where.
        at: usize,
        /// In the order of the pages.
        rows: Vec<Row>,
    },
    /// A client with a cursor read this at a node.
    Roamed {
        /// Where.
        at: usize,
        /// Its messages, in order.
        rows: Vec<Row>,
    },
    /// A ballot was taken.
    Cast {
        /// Where.
        at: usize,
        /// In which vote.
        vote: String,
        /// For which option, from 0.
        option: u64,
    },
    /// A node was asked about a vote.
    Viewed {
        /// Where.
        at: usize,
        /// Which.
        vote: String,
        /// Whether it takes no more ballots.
        closed: bool,
        /// By option, if it is shown.
        tally: Option<Vec<u64>>,
    },
    /// A node came back with an old disk: nothing that it or its agents say counts from here on.
    Spoilt {
        /// Which.
        at: usize,
    },
    /// Whom a node tells its operator to have forked, in the end.
    Blames {
        /// Where.
        at: usize,
        /// Which, ascending.
        of: Vec<usize>,
    },
    /// An agent was told that a task is its own now.
    Claimed {
        /// Where.
        at: usize,
        /// Which.
        task: String,
        /// The agent.
        by: String,
    },
    /// How a node shows a task.
    Shows {
        /// Where.
        at: usize,
        /// Which.
        task: String,
        /// Its holder.
        holder: Option<String>,
        /// Two have it who did not know of each other.
        contested: bool,
    },
    /// Whom a node tells its agents to lead them.
    Leads {
        /// Where.
        at: usize,
        /// Nobody, or whom.
        leader: Option<String>,
    },
    /// An agent quoted a message by the number that it has at its node.
    Quoted {
        /// Where.
        at: usize,
        /// The message, as it was told.
        row: Row,
    },
    /// An agent acted on what another one, at another node, had told it outside the mesh.
    Handed {
        /// Where.
        at: usize,
        /// Its act.
        what: String,
        /// How it was refused, or which agents were missing.
        wrong: Option<String>,
    },
    /// Somebody looked up a number.
    Resolved {
        /// Where.
        at: usize,
        /// The number.
        number: u64,
        /// The message's id; `None`: nothing.
        message: Option<String>,
    },
}

/// All that was seen, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// See the module.
    pub seen: Vec<Seen>,
    /// Ids of votes that were opened, in order.
    pub votes: Vec<String>,
    /// Ids of tasks that were made, in order.
    pub tasks: Vec<String>,
    /// How long it took from the end of the last step until everything was everywhere, in the world's own time.
    pub healed: Duration,
    /// The most memory that one of the processes had, in bytes.
    pub memory: Option<u64>,
    connections: u64,
}

/// A task for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// To say this.
    Say(String),
    /// To open a vote with so many options.
    Open(u64),
    /// To choose this option, from 0, in the last vote.
    Cast(u64),
    /// To begin an election.
    Elect,
    /// To make a task that nobody holds.
    Assign,
    /// To claim the last task, if nobody holds it.
    Claim,
}

impl History {
    /// A number for a connection that was made just now.
    pub fn connect(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    /// Nodes that came back with an old disk.
    #[must_use]
    pub fn spoilt(&self) -> BTreeSet<usize> {
        let spoilt = self.seen.iter().filter_map(|seen| {
            let Seen::Spoilt { at } = seen else { return None };
            Some(*at)
        });
        spoilt.collect()
    }

    /// Messages that were answered by other nodes than these.
    #[must_use]
    pub fn told_honestly(&self) -> usize {
        let spoilt = self.spoilt();
        let told = self.seen.iter();
        told.filter(|seen| matches!(seen, Seen::Told { at, .. } if !spoilt.contains(at))).count()
    }

    /// Messages that were answered.
    #[must_use]
    pub fn told(&self) -> usize {
        self.seen.iter().filter(|seen| matches!(seen, Seen::Told { .. })).count()
    }
}

/// The `n`th message of an agent in one of its chats: nobody says the same twice, and the agent can be
/// seen.
#[must_use]
pub fn words(by: &str, n: u64) -> String {
    format!("{by} says {n}")
}

/// At which node the agent of this name sits.
#[must_use]
pub fn seat(name: &str) -> usize {
    let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits.parse().unwrap_or(0)
}

/// Whose words these are.
#[must_use]
pub fn author(content: &str) -> &str {
    content.split_once(" says ").map_or("", |(by, _)| by)
}

/// The last message of somebody else that an agent of this name was told, if it was told one.
#[must_use]
pub fn last_heard(seen: &[Seen], who: &str) -> Option<Row> {
    seen.iter().rev().find_map(|seen| {
        let Seen::Heard { by, row, .. } = seen else { return None };
        (by == who && author(&row.content) != who).then(|| row.clone())
    })
}

/// How it is quoted.
#[must_use]
pub fn quote(by: &str, n: u64, row: &Row) -> String {
    format!("{by} says {n} to #{}", row.number)
}

/// Numbers that are looked up at the end, at most, at each node: each is a request.
const LOOKED_UP_MAX: usize = 300;

impl History {
    /// The numbers to look up at each of `nodes`, which are counted from 0; in the result, from 1.
    /// Of all numbers that anybody was told, evenly.
    #[must_use]
    pub fn to_look_up(&self, nodes: &[usize]) -> Vec<(usize, u64)> {
        let (mut numbers, mut quoted) = (BTreeSet::new(), BTreeSet::new());
        for seen in &self.seen {
            if let Seen::Told { row, .. } | Seen::Heard { row, .. } = seen {
                numbers.insert(row.number);
            } else if let Seen::Read { rows, .. } | Seen::Roamed { rows, .. } = seen {
                numbers.extend(rows.iter().map(|row| row.number));
            } else if let Seen::Quoted { row, .. } = seen {
                // Readers look these up.
                quoted.insert(row.number);
            }
        }
        let every = numbers.len().div_ceil(LOOKED_UP_MAX).max(1);
        let mut some: BTreeSet<u64> = numbers.into_iter().step_by(every).collect();
        some.extend(quoted.into_iter().take(LOOKED_UP_MAX));
        let some = &some;
        nodes.iter().flat_map(|at| some.iter().map(move |number| (at + 1, *number))).collect()
    }
}

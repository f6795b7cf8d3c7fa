//! The rules. Each line costs a constant time, each end of a reading as much as is in it.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{BuildHasher, RandomState},
};

use crate::{
    intern::Names,
    line::Line,
    report::{Promise, Report},
};

/// A message as somebody saw it: its number there, and itself.
type Row = (u64, u32);

/// Reads a history, line by line.
#[derive(Debug, Default)]
pub struct Judge {
    report: Report,
    messages: Names,
    requests: Names,
    hash: RandomState,
    /// Number → message, in the whole mesh.
    names: HashMap<u64, u32>,
    /// Message → hash of its text.
    texts: HashMap<u32, u64>,
    /// Hash of a text → the request that asks for it; nothing, if several do.
    asked: HashMap<u64, Option<u32>>,
    /// Request → message.
    became: HashMap<u32, u32>,
    refused: HashSet<u32>,
    /// Messages that were acknowledged.
    told: HashSet<u32>,
    /// Those after the last calm, with their numbers: each of them has one.
    calm: Option<HashSet<(u32, u64)>>,
    connections: HashMap<u64, Connection>,
    /// By node: its last reading.
    readings: HashMap<u32, Reading>,
    resolved: Vec<(u32, u64, Option<u32>)>,
}

/// What was pushed on one connection.
#[derive(Debug, Default)]
struct Connection {
    node: u32,
    heard: Vec<Row>,
    messages: HashSet<u32>,
    own: HashSet<u32>,
}

/// A node's room, whole.
#[derive(Debug, Default)]
struct Reading {
    rows: Vec<Row>,
    /// Message → its number.
    numbers: HashMap<u32, u64>,
}

impl Judge {
    /// Takes the next line.
    pub fn note(&mut self, line: Line) {
        self.report.lines += 1;
        match line {
            Line::Asked { request, text } => {
                let request = self.requests.number(&request);
                let print = self.print(&text);
                let by = self.asked.entry(print).or_insert(Some(request));
                *by = by.filter(|by| *by == request);
                // Asked again: from now on it may become one.
                self.refused.remove(&request);
            }
            Line::Told { node: _, request, message, number, text } => {
                let message = self.row(number, &message, text.as_deref());
                self.told.insert(message);
                if let Some(calm) = &mut self.calm {
                    calm.insert((message, number));
                }
                if let Some(request) = request {
                    self.became(&request, message);
                }
            }
            Line::Refused { request } => {
                let request = self.requests.number(&request);
                self.refused.insert(request);
            }
            Line::Heard { node, connection, message, number, text } => {
                let message = self.row(number, &message, text.as_deref());
                self.heard(node, connection, (number, message));
            }
            Line::Own { connection, message } => {
                let message = self.messages.number(&message);
                self.connections.entry(connection).or_default().own.insert(message);
            }
            Line::Reads { node } => {
                self.readings.insert(node, Reading::default());
            }
            Line::Has { node, message, number, text } => {
                let message = self.row(number, &message, text.as_deref());
                self.has(node, (number, message));
            }
            Line::Resolved { node, number, message } => {
                let message = message.map(|message| self.messages.number(&message));
                self.resolved.push((node, number, message));
            }
            Line::Calm {} => self.calm = Some(HashSet::new()),
        }
    }

    fn print(&self, text: &str) -> u64 {
        self.hash.hash_one(text)
    }

    /// A message that somebody saw under a number: it is the only one of that number, and says the same as ever.
    fn row(&mut self, number: u64, message: &str, text: Option<&str>) -> u32 {
        let message = self.messages.number(message);
        self.report.tried(Promise::Names, 1);
        let named = *self.names.entry(number).or_insert(message);
        if named != message {
            let (one, other) = (self.messages.text(named), self.messages.text(message));
            self.report.broken(Promise::Names, || format!("{number} means {one} and {other}"));
        }
        let Some(print) = text.map(|text| self.print(text)) else { return message };
        if *self.texts.entry(message).or_insert(print) != print {
            let message = self.messages.text(message);
            self.report.broken(Promise::Names, || format!("{message} says two things"));
        }
        message
    }

    fn became(&mut self, request: &str, message: u32) {
        let request = self.requests.number(request);
        let Judge { report, messages, requests, became, .. } = self;
        one_of(became, (request, message), report, || {
            (requests.text(request).to_owned(), messages.text(message).to_owned())
        });
    }

    fn heard(&mut self, node: u32, connection: u64, (number, message): Row) {
        let of = self.connections.entry(connection).or_default();
        of.node = node;
        self.report.tried(Promise::Rising, 1);
        self.report.tried(Promise::Once, 1);
        if let Some((before, _)) = of.heard.last()
            && *before >= number
        {
            self.report.broken(Promise::Rising, || {
                format!("connection {connection} at node {node} heard {number} after {before}")
            });
        }
        if !of.messages.insert(message) {
            let message = self.messages.text(message);
            self.report.broken(Promise::Once, || {
                format!("connection {connection} at node {node} heard {message} again, as {number}")
            });
        }
        of.heard.push((number, message));
    }

    fn has(&mut self, node: u32, (number, message): Row) {
        let reading = self.readings.entry(node).or_default();
        self.report.tried(Promise::Rising, 1);
        self.report.tried(Promise::Once, 1);
        if let Some((before, _)) = reading.rows.last()
            && *before >= number
        {
            self.report
                .broken(Promise::Rising, || format!("node {node} shows {number} after {before}"));
        }
        reading.rows.push((number, message));
        match reading.numbers.entry(message) {
            Entry::Vacant(place) => {
                place.insert(number);
            }
            Entry::Occupied(before) => {
                let (message, before) = (self.messages.text(message), before.get());
                self.report.broken(Promise::Once, || {
                    format!("node {node} has {message} as {before} and as {number}")
                });
            }
        }
    }

    /// The history is over.
    #[must_use]
    pub fn end(mut self) -> Report {
        self.end_of_nodes();
        self.end_of_calm();
        self.end_of_connections();
        self.end_of_requests();
        self.end_of_lookups();
        self.report
    }

    fn end_of_nodes(&mut self) {
        let Judge { report, messages, told, readings, connections, .. } = self;
        let lacks = |node: u32, message: u32| {
            let message = messages.text(message);
            format!("node {node} lacks {message}")
        };
        let heard = connections.values().flat_map(|connection| &connection.messages);
        let read = readings.values().flat_map(|reading| reading.numbers.keys());
        let all: HashSet<u32> = heard.chain(read).copied().collect();
        for (node, reading) in &*readings {
            for message in &*told {
                report.tried(Promise::Acknowledged, 1);
                if !reading.numbers.contains_key(message) {
                    report.broken(Promise::Acknowledged, || lacks(*node, *message));
                }
            }
            for message in &all {
                report.tried(Promise::Complete, 1);
                if !reading.numbers.contains_key(message) {
                    report.broken(Promise::Complete, || lacks(*node, *message));
                }
            }
        }
    }

    /// Of what was acknowledged after the calm everybody has the same number: who was told, who heard it, who has it.
    fn end_of_calm(&mut self) {
        let mut agreed: HashMap<u32, u64> = HashMap::new();
        let told = self.calm.iter().flatten().map(|(message, number)| (*number, *message));
        let told: Vec<Row> = told.collect();
        for (_, message) in &told {
            agreed.insert(*message, 0);
        }
        let heard = self.connections.values().flat_map(|connection| &connection.heard);
        let read = self.readings.values().flat_map(|reading| &reading.rows);
        for (number, message) in told.iter().chain(heard).chain(read) {
            let Some(first) = agreed.get_mut(message) else { continue };
            self.report.tried(Promise::Agreement, 1);
            if *first == 0 {
                *first = *number;
            } else if first != number {
                let message = self.messages.text(*message);
                self.report.broken(Promise::Agreement, || {
                    format!("{message} has the numbers {first} and {number}")
                });
            }
        }
    }

    /// In the last reading of its node, between the first and the last that a connection heard.
    fn end_of_connections(&mut self) {
        for (name, connection) in &self.connections {
            let Some(reading) = self.readings.get(&connection.node) else { continue };
            let (Some((first, _)), Some((last, _))) =
                (connection.heard.first(), connection.heard.last())
            else {
                continue;
            };
            let begin = reading.rows.partition_point(|(number, _)| number < first);
            let between = reading.rows[begin..].iter().take_while(|(number, _)| number <= last);
            for (number, message) in between {
                self.report.tried(Promise::Pushed, 1);
                let heard = connection.messages.contains(message);
                if !heard && !connection.own.contains(message) {
                    let (node, message) = (connection.node, self.messages.text(*message));
                    self.report.broken(Promise::Pushed, || {
                        format!("connection {name} at node {node} did not hear {number}, {message}")
                    });
                }
            }
        }
    }

    fn end_of_requests(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let Judge { report, messages, requests, texts, asked, refused, became, .. } = self;
        let (readings, connections) = (&self.readings, &self.connections);
        // One look at each message that any node has, or that anybody heard.
        let read = readings
            .iter()
            .flat_map(|(node, reading)| reading.numbers.keys().map(|message| (*node, *message)));
        let heard = connections.values().flat_map(|connection| {
            connection.messages.iter().map(|message| (connection.node, *message))
        });
        let mut seen = HashSet::new();
        for (node, message) in read.chain(heard).filter(|(_, message)| seen.insert(*message)) {
            let Some(print) = texts.get(&message) else { continue };
            report.tried(Promise::Said, 1);
            let Some(request) = asked.get(print) else {
                let message = messages.text(message);
                report.broken(Promise::Said, || {
                    format!("node {node} has {message}, which nobody said")
                });
                continue;
            };
            let Some(request) = *request else { continue };
            let named = || (requests.text(request).to_owned(), messages.text(message).to_owned());
            one_of(became, (request, message), report, named);
            if refused.contains(&request) {
                report.broken(Promise::Refused, || {
                    let (request, message) = named();
                    format!("{request} was refused, and node {node} has {message}")
                });
            }
        }
        if !readings.is_empty() {
            report.tried(Promise::Refused, refused.len() as u64);
        }
    }

    fn end_of_lookups(&mut self) {
        for (node, number, found) in std::mem::take(&mut self.resolved) {
            // Nobody was told it: it may lead nowhere.
            let Some(expected) = self.names.get(&number) else { continue };
            self.report.tried(Promise::Resolves, 1);
            if found != Some(*expected) {
                let expected = self.messages.text(*expected);
                let found = found.map(|found| self.messages.text(found));
                self.report.broken(Promise::Resolves, || {
                    format!("{number} is {expected}, and leads to {found:?} at node {node}")
                });
            }
        }
    }
}

/// A request became this message, and may have become another one before.
fn one_of(
    became: &mut HashMap<u32, u32>,
    (request, message): (u32, u32),
    report: &mut Report,
    named: impl FnOnce() -> (String, String),
) {
    report.tried(Promise::OneOfARequest, 1);
    if *became.entry(request).or_insert(message) != message {
        report.broken(Promise::OneOfARequest, || {
            let (request, message) = named();
            format!("{request} became {message}, and another message, too")
        });
    }
}

//! The promises, as checkers of histories. They know nothing of worlds.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    file::Promise,
    history::{History, Row, Seen, author, seat},
};

/// A promise that a history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub promise: Promise,
    /// How.
    pub what: String,
}

type Verdict = Result<(), String>;

/// Each of `promises` that does not hold, with the first thing that breaks it. A promise that nothing in
/// the history has to do with does not hold either: it was named to be seen.
#[must_use]
pub fn judge(history: &History, promises: &BTreeSet<Promise>) -> Vec<Broken> {
    let facts = Facts::of(history);
    let judged = promises.iter().map(|promise| (*promise, facts.check(*promise)));
    judged
        .filter_map(|(promise, verdict)| verdict.err().map(|what| Broken { promise, what }))
        .collect()
}

/// A history, sorted.
struct Facts<'a> {
    history: &'a History,
    /// By node: the last one.
    reads: BTreeMap<usize, &'a [Row]>,
    told: Vec<(usize, &'a Row)>,
    /// Told after the last fault.
    calm: Vec<&'a Row>,
    /// By connection: its node, its agent, its rows.
    heard: BTreeMap<u64, (usize, &'a str, Vec<&'a Row>)>,
    /// Nodes that came back with an old disk: nothing of theirs counts.
    spoilt: BTreeSet<usize>,
    /// By the client with a cursor: its last node, and its rows.
    roamed: (usize, Vec<&'a Row>),
}

impl Facts<'_> {
    fn of(history: &History) -> Facts<'_> {
        let mut facts = Facts {
            history,
            reads: BTreeMap::new(),
            told: Vec::new(),
            calm: Vec::new(),
            heard: BTreeMap::new(),
            spoilt: BTreeSet::new(),
            roamed: (0, Vec::new()),
        };
        facts.spoilt.extend(history.spoilt());
        let mut calm = false;
        for seen in &history.seen {
            if let Seen::Calm = seen {
                calm = true;
                facts.calm.clear();
            } else {
                facts.note(seen, calm);
            }
        }
        facts
    }
}

impl<'a> Facts<'a> {
    fn note(&mut self, seen: &'a Seen, calm: bool) {
        if let Seen::Told { at, row } = seen
            && !self.spoilt.contains(at)
        {
            self.told.push((*at, row));
            if calm {
                self.calm.push(row);
            }
        } else if let Seen::Heard { at, connection, by, row } = seen
            && !self.spoilt.contains(at)
        {
            let heard = self.heard.entry(*connection);
            heard.or_insert((*at, by, Vec::new())).2.push(row);
        } else if let Seen::Read { at, rows } = seen
            && !self.spoilt.contains(at)
        {
            self.reads.insert(*at, rows);
        } else if let Seen::Roamed { at, rows } = seen {
            self.roamed.0 = *at;
            self.roamed.1.extend(rows);
        }
    }
}

impl Facts<'_> {
    fn check(&self, promise: Promise) -> Verdict {
        match promise {
            Promise::Rising => self.rising(),
            Promise::Once => self.once(),
            Promise::Names => self.names(),
            Promise::Acknowledged => self.acknowledged(),
            Promise::Complete => self.complete(),
            Promise::Pushed => self.pushed(),
            Promise::Agreement => self.agreement(),
            Promise::Resolves => self.resolves(),
            Promise::Calm => self.is_calm(),
            Promise::Roaming => self.roaming(),
            Promise::Votes => self.votes(),
            Promise::Forks => self.forks(),
            Promise::Leader => self.leader(),
            Promise::Claims => self.claims(),
            Promise::Threads => self.threads(),
            Promise::Handed => self.handed(),
        }
    }

    /// The rows of each connection and of each history, with a name.
    fn sequences(&self) -> impl Iterator<Item = (String, Vec<&Row>)> {
        let heard = self.heard.iter().map(|(connection, (at, by, rows))| {
            (format!("connection {connection} of {by} at node {at}"), rows.clone())
        });
        let read = self.reads.iter();
        heard.chain(read.map(|(at, rows)| (format!("node {at}"), rows.iter().collect())))
    }

    fn rising(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (who, rows) in self.sequences() {
            for pair in rows.windows(2) {
                if pair[0].number >= pair[1].number {
                    return Err(format!("{who}: {:?} comes before {:?}", pair[0], pair[1]));
                }
            }
        }
        Ok(())
    }

    fn once(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (who, rows) in self.sequences() {
            let mut seen: BTreeMap<&str, &Row> = BTreeMap::new();
            for row in rows {
                if let Some(before) = seen.insert(&row.message, row) {
                    return Err(format!("{who} has {before:?} and again {row:?}"));
                }
            }
        }
        Ok(())
    }

    /// Every row that anybody has.
    fn rows(&self) -> impl Iterator<Item = &Row> {
        let heard = self.heard.values().flat_map(|(_, _, rows)| rows.iter().copied());
        let told = self.told.iter().map(|(_, row)| *row);
        told.chain(heard).chain(self.reads.values().flat_map(|rows| rows.iter()))
    }

    fn names(&self) -> Verdict {
        something(self.told.len(), "was answered")?;
        let mut names: BTreeMap<u64, &Row> = BTreeMap::new();
        let mut contents: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in self.rows() {
            let named = names.entry(row.number).or_insert(row);
            if named.message != row.message {
                return Err(format!("{} means {named:?} and {row:?}", row.number));
            }
            let said = contents.entry(&row.message).or_insert(row);
            if said.content != row.content {
                return Err(format!("a message says two things: {said:?} and {row:?}"));
            }
        }
        Ok(())
    }

    fn acknowledged(&self) -> Verdict {
        something(self.told.len(), "was answered")?;
        something(self.reads.len(), "was read")?;
        for (at, rows) in &self.reads {
            let has: BTreeMap<&str, &str> =
                rows.iter().map(|row| (row.message.as_str(), row.content.as_str())).collect();
            let lost: Vec<&(usize, &Row)> = self
                .told
                .iter()
                .filter(|(_, row)| has.get(row.message.as_str()) != Some(&row.content.as_str()))
                .collect();
            if let Some((by, first)) = lost.first() {
                return Err(format!(
                    "node {at} lacks {} of {} messages that were answered `ok`, the first {first:?} \
                     by node {by}",
                    lost.len(),
                    self.told.len()
                ));
            }
        }
        Ok(())
    }

    fn complete(&self) -> Verdict {
        something(self.reads.len(), "was read")?;
        let mut all: BTreeMap<&str, (usize, &Row)> = BTreeMap::new();
        for (at, rows) in &self.reads {
            // Messages of a node that forked, after its fork, others may have in part.
            let honest =
                rows.iter().filter(|row| !self.spoilt.contains(&seat(author(&row.content))));
            all.extend(honest.map(|row| (row.message.as_str(), (*at, row))));
        }
        something(all.len(), "was read")?;
        for (at, rows) in &self.reads {
            let has: BTreeSet<&str> = rows.iter().map(|row| row.message.as_str()).collect();
            let lacks: Vec<_> = all.iter().filter(|(message, _)| !has.contains(*message)).collect();
            if let Some((_, (other, first))) = lacks.first() {
                return Err(format!(
                    "node {at} lacks {} of {} messages, the first {first:?} of node {other}",
                    lacks.len(),
                    all.len()
                ));
            }
        }
        Ok(())
    }

    fn pushed(&self) -> Verdict {
        something(self.heard.len(), "was pushed")?;
        for (connection, (at, by, heard)) in &self.heard {
            let Some(rows) = self.reads.get(at) else { continue };
            let numbers: BTreeSet<u64> = heard.iter().map(|row| row.number).collect();
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { continue };
            let due = rows.iter().filter(|row| (*first..=*last).contains(&row.number));
            let due = due.filter(|row| author(&row.content) != *by);
            let due = due.filter(|row| !self.spoilt.contains(&seat(author(&row.content))));
            let missed: Vec<&Row> = due.filter(|row| !numbers.contains(&row.number)).collect();
            if let Some(row) = missed.first() {
                return Err(format!(
                    "connection {connection} of {by} at node {at} was told {first} to {last} and not \
                     {} of them, the first {row:?}",
                    missed.len()
                ));
            }
        }
        Ok(())
    }

    fn agreement(&self) -> Verdict {
        something(self.calm.len(), "was answered after the last fault")?;
        for (at, rows) in &self.reads {
            let numbers: BTreeMap<&str, u64> =
                rows.iter().map(|row| (row.message.as_str(), row.number)).collect();
            for row in &self.calm {
                let number = numbers.get(row.message.as_str());
                if number != Some(&row.number) {
                    return Err(format!("{row:?} has the number {number:?} at node {at}"));
                }
            }
        }
        Ok(())
    }

    fn resolves(&self) -> Verdict {
        // Of a node that forked a newcomer takes nothing, not even what is older than the fork.
        let honest = self.rows().filter(|row| !self.spoilt.contains(&seat(author(&row.content))));
        let names: BTreeMap<u64, &str> =
            honest.map(|row| (row.number, row.message.as_str())).collect();
        let mut asked = 0;
        for seen in &self.history.seen {
            let Seen::Resolved { at, number, message } = seen else { continue };
            // Numbers that only a node that forked told are nobody's.
            let Some(expected) = names.get(number).copied() else { continue };
            if self.spoilt.contains(at) {
                continue;
            }
            asked += 1;
            let expected = Some(expected);
            if message.as_deref() != expected {
                return Err(format!("{number} of {expected:?} leads to {message:?} at node {at}"));
            }
        }
        something(asked, "was looked up by its number")
    }

    fn roaming(&self) -> Verdict {
        let (last, rows) = &self.roamed;
        something(rows.len(), "was read by a client with a cursor")?;
        for pair in rows.windows(2) {
            if pair[0].number >= pair[1].number {
                return Err(format!("{:?} was read before {:?}", pair[0], pair[1]));
            }
        }
        let seen: BTreeSet<&str> = rows.iter().map(|row| row.message.as_str()).collect();
        let all = self.reads.get(last).copied().unwrap_or_default();
        let missed: Vec<&Row> =
            all.iter().filter(|row| !seen.contains(row.message.as_str())).collect();
        match missed.first() {
            Some(first) => Err(format!(
                "{} of {} messages of node {last} were skipped, the first {first:?}",
                missed.len(),
                all.len()
            )),
            None => Ok(()),
        }
    }

    fn votes(&self) -> Verdict {
        let mut cast: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        // By node and vote: whether it is closed, and the tally.
        type Views<'a> = BTreeMap<(usize, &'a str), (bool, Option<&'a [u64]>)>;
        let mut last = Views::new();
        for seen in &self.history.seen {
            if let Seen::Cast { vote, option, .. } = seen {
                *cast.entry((vote, *option)).or_default() += 1;
            }
            let Seen::Viewed { at, vote, closed, tally } = seen else { continue };
            if !closed && tally.is_some() {
                return Err(format!("node {at} shows {tally:?} of {vote}, which is open"));
            }
            last.insert((*at, vote), (*closed, tally.as_deref()));
        }
        something(cast.len(), "was cast")?;
        for ((at, vote), (closed, tally)) in &last {
            let Some(tally) = tally.filter(|_| *closed) else {
                return Err(format!("{vote} is not closed at node {at} in the end"));
            };
            let due = |option: u64| cast.get(&(*vote, option)).copied().unwrap_or(0);
            let expected: Vec<u64> = (0..).zip(tally).map(|(option, _)| due(option)).collect();
            if expected != tally {
                return Err(format!(
                    "{vote} is {tally:?} at node {at}, but {expected:?} were cast"
                ));
            }
        }
        something(last.len(), "was shown of a vote")
    }

    fn forks(&self) -> Verdict {
        let expected: Vec<usize> = self.spoilt.iter().copied().collect();
        something(expected.len(), "came back with an old disk")?;
        let mut asked = 0;
        for seen in &self.history.seen {
            let Seen::Blames { at, of } = seen else { continue };
            asked += 1;
            if *of != expected {
                return Err(format!("node {at} says that {of:?} forked, but {expected:?} did"));
            }
        }
        something(asked, "was asked about forks")
    }

    /// All nodes named the same leader last.
    fn leader(&self) -> Verdict {
        let mut last: BTreeMap<usize, Option<&str>> = BTreeMap::new();
        for seen in &self.history.seen {
            if let Seen::Leads { at, leader } = seen {
                last.insert(*at, leader.as_deref());
            }
        }
        if let Some(at) = self.reads.keys().find(|at| !last.contains_key(*at)) {
            return Err(format!("node {at} never told anybody who leads"));
        }
        let Some((first, expected)) = last.iter().next() else {
            return Err("nobody was asked who leads".to_owned());
        };
        let Some(expected) = expected else {
            return Err(format!("nobody leads at node {first} in the end"));
        };
        match last.iter().find(|(_, leader)| **leader != Some(*expected)) {
            Some((at, leader)) => {
                Err(format!("{expected} leads at node {first}, but {leader:?} at node {at}"))
            }
            None => Ok(()),
        }
    }

    fn claims(&self) -> Verdict {
        let mut granted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        // By task and node: its holder, and whether others have it, too.
        let mut last: BTreeMap<(&str, usize), (Option<&str>, bool)> = BTreeMap::new();
        for seen in &self.history.seen {
            if let Seen::Claimed { task, by, .. } = seen {
                granted.entry(task).or_default().insert(by);
            }
            if let Seen::Shows { at, task, holder, contested } = seen {
                last.insert((task, *at), (holder.as_deref(), *contested));
            }
        }
        something(granted.len(), "was claimed")?;
        for (task, owners) in &granted {
            let of_task = last.iter().filter(|((shown, _), _)| shown == task);
            let mut shown = of_task.map(|((_, at), view)| (*at, view));
            let Some((first, one)) = shown.next() else {
                return Err(format!("no node shows {task}"));
            };
            let other = shown.find(|(_, shown)| *shown != one);
            if let Some((at, other)) = other {
                return Err(format!(
                    "{task} is {one:?} at node {first} and {other:?} at node {at}"
                ));
            }
            let (holder, contested) = *one;
            let lost = owners.iter().find(|owner| !contested && holder != Some(**owner));
            if let Some(lost) = lost {
                return Err(format!("{task} was given to {lost}, but {holder:?} holds it"));
            }
        }
        Ok(())
    }

    fn threads(&self) -> Verdict {
        let quoted = self.history.seen.iter().filter_map(|seen| {
            let Seen::Quoted { row, .. } = seen else { return None };
            Some((row.number, row.message.as_str()))
        });
        let quoted: BTreeMap<u64, &str> = quoted.collect();
        let mut found: BTreeSet<u64> = BTreeSet::new();
        for seen in &self.history.seen {
            let Seen::Resolved { at, number, message } = seen else { continue };
            let Some(expected) = quoted.get(number) else { continue };
            if message.as_deref() != Some(*expected) {
                return Err(format!("#{number} of {expected} is {message:?} at node {at}"));
            }
            found.insert(*number);
        }
        something(found.len(), "that was quoted was looked up")
    }

    fn handed(&self) -> Verdict {
        let mut count = 0;
        for seen in &self.history.seen {
            let Seen::Handed { at, what, wrong } = seen else { continue };
            count += 1;
            if let Some(wrong) = wrong {
                return Err(format!("{count}: {what} at node {at}: {wrong}"));
            }
        }
        something(count, "was handed over")
    }

    fn is_calm(&self) -> Verdict {
        something(self.reads.len(), "was read")?;
        for (at, rows) in &self.reads {
            for (expected, row) in (1..).zip(*rows) {
                if row.number != expected {
                    return Err(format!("at node {at} {row:?} stands where {expected} should"));
                }
            }
        }
        Ok(())
    }
}

fn something(count: usize, what: &str) -> Verdict {
    if count > 0 { Ok(()) } else { Err(format!("nothing {what}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, message: &str, content: &str) -> Row {
        Row { number, message: message.to_owned(), content: content.to_owned() }
    }

    fn heard(at: usize, row: Row) -> Seen {
        Seen::Heard { at, connection: at as u64, by: format!("listener{at}"), row }
    }

    /// Two nodes, three messages, of which the last is said when all is over; and one vote.
    fn good() -> Vec<Seen> {
        let rows = vec![
            row(1, "a", "talker1 says 1"),
            row(2, "b", "talker2 says 1"),
            row(3, "c", "prober1 says 1"),
        ];
        let mut seen = vec![
            Seen::Told { at: 1, row: rows[0].clone() },
            Seen::Told { at: 2, row: rows[1].clone() },
            Seen::Cast { at: 1, vote: "v".to_owned(), option: 1 },
            Seen::Viewed { at: 1, vote: "v".to_owned(), closed: false, tally: None },
            Seen::Quoted { at: 1, row: rows[1].clone() },
            Seen::Claimed { at: 1, task: "t".to_owned(), by: "listener1".to_owned() },
            // Until the split is over each side shows its own.
            leads(2, None),
            handed(None),
            Seen::Calm,
            Seen::Told { at: 1, row: rows[2].clone() },
            Seen::Roamed { at: 1, rows: rows[..2].to_vec() },
            Seen::Roamed { at: 2, rows: rows[2..].to_vec() },
        ];
        for at in 1..=2 {
            seen.extend(rows.iter().map(|row| heard(at, row.clone())));
            seen.push(Seen::Read { at, rows: rows.clone() });
            seen.push(Seen::Resolved { at, number: 2, message: Some("b".to_owned()) });
            let tally = Some(vec![0, 1]);
            seen.push(Seen::Viewed { at, vote: "v".to_owned(), closed: true, tally });
            seen.extend([shows(at, "listener1", false), leads(at, Some("listener2"))]);
        }
        seen
    }

    fn shows(at: usize, holder: &str, contested: bool) -> Seen {
        Seen::Shows { at, task: "t".to_owned(), holder: Some(holder.to_owned()), contested }
    }

    fn leads(at: usize, leader: Option<&str>) -> Seen {
        Seen::Leads { at, leader: leader.map(str::to_owned) }
    }

    fn handed(wrong: Option<&str>) -> Seen {
        Seen::Handed { at: 2, what: "Join".to_owned(), wrong: wrong.map(str::to_owned) }
    }

    fn broken(seen: Vec<Seen>, promise: Promise) -> bool {
        let mut history = History::default();
        history.seen = seen;
        !judge(&history, &BTreeSet::from([promise])).is_empty()
    }

    const ALL: [Promise; 15] = [
        Promise::Rising,
        Promise::Once,
        Promise::Names,
        Promise::Acknowledged,
        Promise::Complete,
        Promise::Pushed,
        Promise::Agreement,
        Promise::Resolves,
        Promise::Calm,
        Promise::Roaming,
        Promise::Votes,
        Promise::Leader,
        Promise::Claims,
        Promise::Threads,
        Promise::Handed,
    ];

    #[test]
    fn a_good_history_breaks_nothing_and_an_empty_one_everything() {
        for promise in ALL {
            assert!(!broken(good(), promise), "{promise:?}");
            assert!(broken(Vec::new(), promise), "{promise:?}");
        }
        assert!(broken(good(), Promise::Forks), "nobody forked");
    }

    #[test]
    fn each_promise_is_broken_by_what_breaks_it() {
        let check = |promise, change: &dyn Fn(&mut Vec<Seen>)| {
            let mut seen = good();
            change(&mut seen);
            assert!(broken(seen, promise), "{promise:?}");
        };
        let again = |seen: &mut Vec<Seen>| seen.push(heard(2, row(2, "b", "talker2 says 1")));
        check(Promise::Rising, &again);
        check(Promise::Once, &again);
        let other = |seen: &mut Vec<Seen>| seen.push(heard(2, row(2, "x", "talker1 says 9")));
        check(Promise::Names, &other);
        let says = |seen: &mut Vec<Seen>| seen.push(heard(2, row(4, "b", "another thing")));
        check(Promise::Names, &says);
        let lost = |seen: &mut Vec<Seen>| {
            for seen in seen {
                if let Seen::Read { at: 2, rows } = seen {
                    rows.remove(1);
                }
            }
        };
        check(Promise::Acknowledged, &lost);
        check(Promise::Complete, &lost);
        check(Promise::Calm, &lost);
        let mute = |seen: &mut Vec<Seen>| {
            seen.retain(|seen| !matches!(seen, Seen::Heard { at: 2, row, .. } if row.number == 2));
        };
        check(Promise::Pushed, &mute);
        let elsewhere = |seen: &mut Vec<Seen>| {
            for seen in seen {
                if let Seen::Read { at: 2, rows } = seen {
                    rows[2].number = 7;
                }
            }
        };
        check(Promise::Agreement, &elsewhere);
        let nothing = |seen: &mut Vec<Seen>| {
            seen.push(Seen::Resolved { at: 2, number: 1, message: None });
        };
        check(Promise::Resolves, &nothing);
        let skipped =
            |seen: &mut Vec<Seen>| seen.retain(|seen| !matches!(seen, Seen::Roamed { at: 1, .. }));
        check(Promise::Roaming, &skipped);
        let view = |closed, tally| Seen::Viewed { at: 2, vote: "v".to_owned(), closed, tally };
        check(Promise::Votes, &|seen| seen.insert(3, view(false, Some(vec![0, 1]))));
        check(Promise::Votes, &|seen| seen.push(view(true, Some(vec![1, 0]))));
        check(Promise::Votes, &|seen| seen.push(view(false, None)));
        check(Promise::Leader, &|seen| seen.push(leads(2, Some("listener1"))));
        check(Promise::Leader, &|seen| seen.extend([leads(1, None), leads(2, None)]));
        check(Promise::Claims, &|seen| seen.push(shows(2, "listener2", false)));
        check(Promise::Claims, &|seen| seen.push(shows(2, "listener1", true)));
        let both = |who: &str| [shows(1, who, false), shows(2, who, false)];
        check(Promise::Claims, &|seen| seen.extend(both("listener2")));
        // Given to two: it has to be contested.
        let two = Seen::Claimed { at: 2, task: "t".to_owned(), by: "listener2".to_owned() };
        check(Promise::Claims, &|seen| seen.push(two.clone()));
        check(Promise::Claims, &|seen| seen.retain(|seen| !matches!(seen, Seen::Shows { .. })));
        check(Promise::Handed, &|seen| seen.push(handed(Some("NoRoom"))));
        check(Promise::Handed, &|seen| seen.retain(|seen| !matches!(seen, Seen::Handed { .. })));
        check(Promise::Threads, &|seen| {
            seen.push(Seen::Resolved { at: 2, number: 2, message: Some("a".to_owned()) });
        });
        check(Promise::Threads, &|seen| seen.retain(|seen| !matches!(seen, Seen::Resolved { .. })));
    }

    #[test]
    fn a_task_that_two_sides_gave_away_is_contested() {
        let mut seen = good();
        seen.push(Seen::Claimed { at: 2, task: "t".to_owned(), by: "listener2".to_owned() });
        seen.extend([shows(1, "listener2", true), shows(2, "listener2", true)]);
        assert!(!broken(seen, Promise::Claims));
    }

    #[test]
    fn a_fork_is_told_by_all_and_of_nobody_else() {
        let spoilt = |of: Vec<usize>| {
            let mut seen = good();
            seen.extend([Seen::Spoilt { at: 2 }, Seen::Blames { at: 1, of }]);
            seen
        };
        assert!(!broken(spoilt(vec![2]), Promise::Forks));
        assert!(broken(spoilt(vec![]), Promise::Forks));
        assert!(broken(spoilt(vec![1, 2]), Promise::Forks));
        // What the node says itself does not count any more.
        let mut seen = spoilt(vec![2]);
        seen.push(heard(2, row(1, "x", "talker2 says 7")));
        assert!(!broken(seen, Promise::Names));
    }
}

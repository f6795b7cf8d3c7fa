//! The promises of `docs/numbering.md`, about a state of a small world, and about the end of one.
//!
//! Rows of a store are only ever added, so *names* and *rising* are about states, not about the way to them.

use std::collections::HashSet;

use mesh::{
    limits::TICK,
    name::id::{NodeId, RoomId},
};

use anyhow::{Result, ensure};

use super::{
    facts::Facts,
    lab::{FactsIx, Lab},
    state::State,
    step::{self, Step},
};
use crate::sim::promises::{Acknowledged, Broken, Entry, Promises, broken};

/// How long after the last fault everything must be complete (numbering.md).
const COMPLETE_WITHIN_TICKS: u128 = 10_000 / TICK.as_millis();
/// And how long a message takes at most after that, and numbers to be everywhere.
const SAID_WITHIN_TICKS: u128 = 3_000 / TICK.as_millis();
/// Steps between two ticks: more is no rest.
const STEPS_MAX: usize = 10_000;

/// What was judged already.
#[derive(Debug, Default)]
pub(super) struct Judge {
    judged: HashSet<(Vec<FactsIx>, bool, bool)>,
    /// States on the way to a good end.
    good: HashSet<u128>,
    /// Of the facts that were judged: an era was opened, one was handed over.
    pub(super) took_over: usize,
    pub(super) handed_over: usize,
    /// How many ends were played.
    pub(super) ends: usize,
}

impl Judge {
    /// The promises about every state.
    ///
    /// # Errors
    ///
    /// The one that is broken.
    pub(super) fn state(&mut self, lab: &Lab, state: &State) -> Result<(), Broken> {
        let facts: Vec<FactsIx> = state.locals().iter().map(|ix| lab.facts_ix(*ix)).collect();
        let key = (facts, state.faults == 0, state.calm);
        if self.judged.contains(&key) {
            return Ok(());
        }
        let promises = promises(lab, state)?;
        let nodes = ids(lab);
        for room in promises.rooms().into_iter().filter(|room| !lab.is_private(*room)) {
            if state.faults == 0 {
                promises.agree(&nodes, room, |_| true)?;
            }
            if state.calm {
                promises.calm(&nodes, room)?;
            }
        }
        let any = |what: fn(&Facts) -> bool| key.0.iter().any(|ix| what(lab.facts(*ix)));
        self.took_over += usize::from(any(|facts| facts.took_over));
        self.handed_over += usize::from(any(|facts| facts.handed_over));
        self.judged.insert(key);
        Ok(())
    }

    /// All faults are over from here on, and nothing is late: *complete*, numbers resolve everywhere, and *agreement* of
    /// what is said then.
    ///
    /// # Errors
    ///
    /// The promise that is broken.
    pub(super) fn end(&mut self, lab: &mut Lab, state: &State) -> Result<(), Broken> {
        self.ends += 1;
        let mut passed = Vec::new();
        let whole = state.made_whole(lab)?;
        let Some(settled) = self.settle(lab, whole, COMPLETE_WITHIN_TICKS, &mut passed)? else {
            self.good.extend(passed);
            return Ok(());
        };
        let before: HashSet<(RoomId, Entry)> = held(lab, &settled);
        let spoken = settled.everybody_speaks(lab)?;
        let Some(last) = self.settle(lab, spoken, SAID_WITHIN_TICKS, &mut passed)? else {
            self.good.extend(passed);
            return Ok(());
        };
        let nodes = ids(lab);
        let promises = promises(lab, &last)?;
        let lobby = lab.lobby;
        promises.agree(&nodes, lobby, |entry| !before.contains(&(lobby, *entry)))?;
        if held(lab, &last).len() < before.len() + nodes.len() {
            let (before, all) = (before.len(), held(lab, &last).len());
            let what =
                format!("of {} nodes {} could speak after the heal", nodes.len(), all - before);
            return broken("complete", what);
        }
        resolve(lab, &last)?;
        self.good.extend(passed);
        Ok(())
    }

    /// Goes on until everything is complete. `None`: from there on it was judged before.
    fn settle(
        &mut self,
        lab: &mut Lab,
        mut state: State,
        ticks: u128,
        passed: &mut Vec<u128>,
    ) -> Result<Option<State>, Broken> {
        for _ in 0..ticks {
            for nth in 0.. {
                let Some(step) = state.next_in_order() else { break };
                if nth > STEPS_MAX {
                    return broken("still", "messages follow each other without end".to_owned());
                }
                state = state.after(lab, step)?;
                self.state(lab, &state)?;
            }
            let here = state.digest();
            if self.good.contains(&here) {
                return Ok(None);
            }
            passed.push(here);
            if state.all_can_speak(lab) && state.has_settled(lab) && resolve(lab, &state).is_ok() {
                return Ok(Some(state));
            }
            state = state.after_tick(lab)?;
            if !state.all_running(lab) {
                // It was stopped in good order while all was whole.
                state = state.made_whole(lab)?;
            }
        }
        let promises = promises(lab, &state)?;
        let nodes = ids(lab);
        for room in promises.rooms().into_iter().filter(|room| !lab.is_private(*room)) {
            promises.complete(&nodes, room, |_, _| false)?;
        }
        resolve(lab, &state)?;
        broken("replies", "a call was not answered".to_owned())
    }
}

/// *names*: every number that anybody knows resolves to its message at every node.
fn resolve(lab: &Lab, state: &State) -> Result<(), Broken> {
    let facts = || state.locals().iter().map(|ix| lab.facts(lab.facts_ix(*ix)));
    for name in
        facts().flat_map(|facts| facts.names.keys()).filter(|(room, _)| !lab.is_private(*room))
    {
        if let Some(node) = facts().position(|facts| !facts.names.contains_key(name)) {
            return broken("names", format!("{name:?} is nothing at node{node}"));
        }
    }
    Ok(())
}

fn ids(lab: &Lab) -> Vec<NodeId> {
    lab.nodes.iter().map(|node| node.id).collect()
}

fn held(lab: &Lab, state: &State) -> HashSet<(RoomId, Entry)> {
    let facts = state.locals().iter().map(|ix| lab.facts(lab.facts_ix(*ix)));
    let all = facts.flat_map(|facts| facts.held.iter().copied());
    all.filter(|(room, _)| *room == lab.lobby).collect()
}

/// The checkers of simulated worlds, told what all nodes have made durable and said.
fn promises(lab: &Lab, state: &State) -> Result<Promises, Broken> {
    let mut promises = Promises::default();
    for (node, ix) in lab.nodes.iter().zip(state.locals()) {
        let facts = lab.facts(lab.facts_ix(*ix));
        for (room, entry) in &facts.held {
            promises.stored(node.id, *room, *entry);
        }
        for ((room, number), named) in &facts.names {
            promises.named(*room, *number, named.entry)?;
            if facts.delivered.get(&(*room, named.entry)) == Some(number) {
                promises.delivered(node.id, *room, *number, named.entry)?;
            }
        }
        for (room, entry, number) in &facts.answered {
            let (room, entry, number, node) = (*room, *entry, *number, node.id);
            promises.acknowledged(Acknowledged { room, entry, number, node, copies: 1 });
        }
    }
    Ok(promises)
}

/// The state after these steps.
///
/// # Errors
///
/// One of them cannot be taken. A broken promise is the outcome.
pub(super) fn take(
    lab: &mut Lab,
    root: State,
    steps: &[Step],
    tell: &mut dyn FnMut(&str),
) -> Result<Result<State, Broken>> {
    let mut judge = Judge::default();
    let mut state = root;
    for step in steps {
        let can = state.steps(lab);
        ensure!(can.contains(step), "{step} cannot be done then, but: {}", step::written(&can));
        tell(&state.tells(lab, *step));
        let after = state.after(lab, *step);
        let judged = after.and_then(|after| judge.state(lab, &after).map(|()| after));
        match judged {
            Ok(after) => state = after,
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok(state))
}

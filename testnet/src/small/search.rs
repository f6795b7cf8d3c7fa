//! Every state of a small world, breadth first: those that take the fewest steps come first, so that the steps to a broken
//! promise are as few as can be.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    judge::{self, Judge},
    lab::Lab,
    setting::Setting,
    state::State,
    step::{self, Step},
};
use crate::sim::promises::{Broken, broken};

/// What was seen of a small world.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which worlds.
    pub setting: Setting,
    /// States that differ.
    pub states: usize,
    /// Steps from one of them to another.
    pub steps: u64,
    /// All states that so many steps lead to were seen.
    pub depth: usize,
    /// States of single nodes.
    pub locals: usize,
    /// Steps of single nodes that were worked out.
    pub worked_out: u64,
    /// Ends that were played.
    pub ends: usize,
    /// Of what nodes had made durable in them, all together, so many differ in which an era was opened, or handed over.
    pub took_over: usize,
    /// See above.
    pub handed_over: usize,
    /// All states were seen; else the bound ended it.
    pub all: bool,
    /// How long it took.
    pub took: Duration,
    /// The promise that was broken, and how.
    pub failure: Option<Failure>,
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which one.
    pub broken: Broken,
    /// The fewest steps that lead there, as `--steps` takes them.
    pub steps: String,
    /// In which worlds.
    pub setting: Setting,
}

/// A mesh that has just come together: the beginning of all small worlds.
///
/// # Errors
///
/// A promise that is broken before anything happened.
pub(super) fn root(lab: &mut Lab) -> Result<State, Broken> {
    /// Rosters and lanes are known by then.
    const TICKS: usize = 40;
    let mut state = State::new(lab).made_whole(lab)?;
    for _ in 0..TICKS {
        while let Some(step) = state.next_in_order() {
            state = state.after(lab, step)?;
        }
        state = state.after_tick(lab)?;
    }
    while let Some(step) = state.next_in_order() {
        state = state.after(lab, step)?;
    }
    if !state.all_can_speak(lab) || !state.is_at_rest(lab) {
        return broken("complete", "the mesh has not come together".to_owned());
    }
    Ok(state.as_root())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { broken: Broken { promise, what }, steps, setting } = self;
        write!(
            f,
            "{promise}: {what}\nplay it again: clawmesh-testnet small --nodes {}",
            setting.nodes
        )?;
        if !setting.gossip {
            write!(f, " --without-gossip")?;
        }
        write!(f, " --steps \"{steps}\"")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { nodes, messages, faults, .. } = self.setting;
        let Report { states, steps, depth, locals, ends, took_over, handed_over, .. } = self;
        let seen = match (&self.failure, self.all) {
            (Some(_), _) => "a promise was broken",
            (None, true) => "all states",
            (None, false) => "the bound ended it",
        };
        write!(
            f,
            "{nodes} nodes, {messages} messages, {faults} faults: {seen}; {states} states and {steps} steps, all \
             within {depth} steps of the beginning, {locals} states of nodes, {took_over} with an era opened, \
             {handed_over} with one handed over, {ends} ends, {:.0} s",
            self.took.as_secs_f64()
        )?;
        self.failure.iter().try_for_each(|failure| write!(f, "\n{failure}"))
    }
}

/// How a state was first come by.
#[derive(Clone, Copy, Debug)]
struct Came {
    from: usize,
    step: Step,
}

/// See the module.
struct Search {
    lab: Lab,
    judge: Judge,
    began: Instant,
    /// Every state, by digest, and how it was come by.
    seen: HashMap<u128, usize>,
    came: Vec<Option<Came>>,
    next: VecDeque<(usize, State)>,
    steps: u64,
    /// Steps that were taken before.
    after: Vec<Step>,
}

/// Looks at every state of a small world that comes after these steps.
///
/// # Errors
///
/// One of them cannot be taken. A broken promise is in the report.
pub(super) fn search(
    setting: Setting,
    after: Vec<Step>,
    tell: &mut dyn FnMut(&str),
) -> Result<Report> {
    let mut search = Search {
        lab: Lab::new(setting),
        judge: Judge::default(),
        began: Instant::now(),
        seen: HashMap::new(),
        came: Vec::new(),
        next: VecDeque::new(),
        steps: 0,
        after,
    };
    let steps = search.after.clone();
    let root = match root(&mut search.lab) {
        Ok(root) => judge::take(&mut search.lab, root, &steps, &mut |_| {})?,
        Err(broken) => Err(broken),
    };
    Ok(match root {
        Ok(root) => {
            search.add(root, None);
            search.run(tell)
        }
        Err(broken) => {
            let failure = Failure { broken, steps: step::written(&steps), setting };
            search.report(0, false, Some(failure))
        }
    })
}

impl Search {
    fn run(mut self, tell: &mut dyn FnMut(&str)) -> Report {
        let mut depth = 0;
        loop {
            let level = self.next.len();
            if level == 0 {
                return self.report(depth, true, None);
            }
            for _ in 0..level {
                let Some((ix, state)) = self.next.pop_front() else { break };
                if self.is_over() {
                    return self.report(depth, false, None);
                }
                if let Err(failure) = self.look_at(ix, &state) {
                    return self.report(depth, false, Some(failure));
                }
            }
            depth += 1;
            self.forget();
            tell(&format!(
                "{depth} steps: {} states, {} under way, {} of single nodes, {} ends, {:.0} s",
                self.came.len(),
                self.next.len(),
                self.lab.count(),
                self.judge.ends,
                self.began.elapsed().as_secs_f64(),
            ));
        }
    }

    fn is_over(&self) -> bool {
        let setting = &self.lab.setting;
        self.came.len() >= setting.states
            || setting.time.is_some_and(|time| self.began.elapsed() >= time)
    }

    /// All steps from a state; and its end, if nothing is under way and no fault is left to happen.
    fn look_at(&mut self, ix: usize, state: &State) -> Result<(), Failure> {
        let steps = state.steps(&self.lab);
        let setting = &self.lab.setting;
        let last = state.said > 0 && state.faults == setting.faults;
        if last
            && state.is_quiet()
            && let Err(broken) = self.judge.end(&mut self.lab, state)
        {
            return Err(self.failure(ix, None, broken));
        }
        for step in steps {
            self.steps += 1;
            let after = state.after(&mut self.lab, step);
            let judged = after.and_then(|next| {
                self.judge.state(&self.lab, &next)?;
                Ok(next)
            });
            match judged {
                Ok(next) => self.add(next, Some(Came { from: ix, step })),
                Err(broken) => return Err(self.failure(ix, Some(step), broken)),
            }
        }
        Ok(())
    }

    fn add(&mut self, state: State, came: Option<Came>) {
        let ix = self.came.len();
        let digest = state.digest();
        if let std::collections::hash_map::Entry::Vacant(new) = self.seen.entry(digest) {
            new.insert(ix);
            self.came.push(came);
            self.next.push_back((ix, state));
        }
    }

    /// States of nodes that no state to be looked at has are dropped.
    fn forget(&mut self) {
        let mut used = vec![false; self.lab.count()];
        for ix in self.next.iter().flat_map(|(_, state)| state.locals()) {
            used[*ix as usize] = true;
        }
        self.lab.keep_only(&used);
    }

    fn failure(&self, ix: usize, step: Option<Step>, broken: Broken) -> Failure {
        let mut steps: Vec<Step> = step.into_iter().collect();
        let mut at = ix;
        while let Some(came) = self.came[at] {
            steps.push(came.step);
            at = came.from;
        }
        steps.reverse();
        steps.splice(0..0, self.after.iter().copied());
        Failure { broken, steps: step::written(&steps), setting: self.lab.setting }
    }

    fn report(self, depth: usize, all: bool, failure: Option<Failure>) -> Report {
        Report {
            setting: self.lab.setting,
            states: self.came.len(),
            steps: self.steps,
            depth,
            locals: self.lab.count(),
            worked_out: self.lab.worked_out,
            ends: self.judge.ends,
            took_over: self.judge.took_over,
            handed_over: self.judge.handed_over,
            all,
            took: self.began.elapsed(),
            failure,
        }
    }
}

//! Things that at most one agent does, in one room: a fold over [`OnceAct`]s that does not depend on the order in which logs
//! are read (`docs/decisions/once.md`).
//!
//! The state is a function of the logs:
//!
//! - An ask does nothing by itself. Its sequencer's answer does, and every answer that grants is a grant.
//! - A grant is over when an answer says so: it was given back, or its lease had run out and an answer replaces it. No node
//!   judges that by its own clock but the sequencer that writes the answer.
//! - Of several grants of one subject that are not over, one for each side of a split, the lowest by position stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    act::{Fold, Folded, Spoken, Void, Written},
    asked::{Asking, Asks},
};
use crate::{
    api::{
        boundary::Alarm,
        command::Refused,
        once::{OnceHolder, WhyLost},
    },
    limits::{
        AGENT_ID_BYTES_MAX, ONCE_ASKS_OPEN_MAX, ONCE_KEPT_FOR, ONCE_KEPT_PER_ROOM_MAX,
        ONCE_LEASE_MAX, ONCE_LEASE_MIN, ONCE_LIVE_PER_ROOM_MAX, ONCE_OVER_MAX,
        ONCE_SUBJECT_BYTES_MAX,
    },
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, LogId, LogIx, MessageId, Position},
        number::Era,
        time::{Now, in_ms},
    },
    wire::once::{OnceAct, OnceAnswer, OnceAsked, OnceGrant, OnceVerdict, OnceWish},
};

/// Granting answers to one ask, and ends of one grant, that are remembered: one for each era that answered.
const ANSWERS_KEPT: usize = 8;

impl Asking for OnceAsked {
    fn spoken(&self, by: EntryRef) -> Spoken<'_> {
        Spoken { node: by.log.author, key: self.key, agent: &self.by }
    }

    fn era(&self) -> Era {
        self.era
    }
}

/// An answer that grants.
#[derive(Clone, Debug)]
struct Given {
    at: Position,
    wall_ms: u64,
    subject: Arc<str>,
    by: AgentId,
    lease_ms: Option<u64>,
    key: Option<KeyPrint>,
}

/// What answers say of one ask. There may be an end of it before there is a grant: they are in logs of several sequencers.
#[derive(Clone, Debug, Default)]
struct Grant {
    id: Option<MessageId>,
    /// The lowest by position, which counts, first.
    given: Vec<Given>,
    /// The answers that ended it.
    ends: Vec<EntryRef>,
    /// When the newest of what makes its lease begin came here.
    fresh: Duration,
}

impl Grant {
    /// It is there, and nothing has ended it.
    fn is_open(&self) -> bool {
        !self.given.is_empty() && self.ends.is_empty()
    }

    /// Its age, in the room's own time.
    fn clock(&self) -> u64 {
        self.given.first().map_or(0, |given| given.at.clock)
    }

    fn holder(&self) -> Option<OnceHolder> {
        let given = self.given.first()?;
        let (agent, lease) = (given.by.clone(), given.lease_ms.map(Duration::from_millis));
        Some(OnceHolder { agent, grant: self.id?, lease })
    }

    /// Whether a sequencer ends it when there is a reason to: its lease has run out since it came here, or it is old, by the
    /// clocks of both the sequencer and the node that asks.
    fn is_over(&self, now: Now, asked_ms: u64) -> bool {
        let Some(given) = self.given.first() else { return false };
        let lease = given.lease_ms.map(Duration::from_millis);
        let has_lapsed = lease.is_some_and(|lease| now.mono >= self.fresh + lease);
        has_lapsed
            || now.wall_ms.min(asked_ms) >= given.wall_ms.saturating_add(in_ms(ONCE_KEPT_FOR))
    }
}

/// How an ask ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The agent has it; or it has given it back, and then there may be no holder.
    Granted(Option<OnceHolder>),
    /// Another one has it, or nobody has what was to be renewed or given back.
    Held(Option<OnceHolder>),
    /// The sequencer did not know that the ask's node can speak for the agent.
    Unproven,
    /// There are too many.
    Full,
}

/// Effects of acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// An ask has its answer, in the entry `by`.
    Answered { ask: LocalRef, asked: OnceAsked, answer: Answer, by: LocalRef },
    /// A grant came after another answer, and that one said no.
    Unasked { subject: Arc<str>, by: AgentId, grant: EntryRef },
    /// A grant stood here, and does not any more, though nobody gave it back.
    Lost {
        grant: EntryRef,
        was: OnceHolder,
        subject: Arc<str>,
        now: Option<OnceHolder>,
        why: WhyLost,
    },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Onces {
    grants: BTreeMap<EntryRef, Grant>,
    /// Open grants of each subject.
    open: BTreeMap<Arc<str>, BTreeSet<EntryRef>>,
    /// How many there are.
    live: usize,
    /// Those that are over, the oldest first; and ends whose grants are not here.
    over: BTreeSet<(u64, EntryRef)>,
    asks: Asks<OnceAsked>,
    news: Vec<News>,
}

impl Fold for Onces {
    type Act = OnceAct;
    type News = News;

    fn admits(&self, _: LogId, act: &OnceAct, _: Duration) -> Result<(), Refused> {
        let is_asked = matches!(act, OnceAct::Asked(_));
        if is_asked && self.asks.len() >= ONCE_ASKS_OPEN_MAX {
            let full = "too many asks wait in this room: try again when they are answered";
            return Err(Refused::Full(full.to_owned()));
        }
        Ok(())
    }

    fn apply(&mut self, written: Written, act: OnceAct, _: &mut Vec<Alarm>) -> Folded {
        match act {
            OnceAct::Asked(asked) => self.fold_asked(&written, asked),
            // Its author was the sequencer: this was asked before.
            OnceAct::Answered(answer) => self.fold_answer(&written, answer),
        }
    }

    fn retract(&mut self, void: Void) {
        match void {
            Void::From(EntryRef { log, seq }) => self.forget_log(log, seq),
            // An answer names what it ends, so a sequencer's answers up to a cut count everywhere.
            Void::Author(_) | Void::Member(_) => {}
        }
    }

    fn take_news(&mut self, _: Duration) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Something waits for the sequencer.
    fn is_waiting(&self) -> bool {
        !self.asks.is_empty()
    }

    fn bytes(&self) -> usize {
        /// Ids, times, subject, and the indexes.
        const EACH: usize = 512;
        (self.grants.len() + self.asks.len()) * EACH
    }
}

impl Onces {
    fn fold_asked(&mut self, written: &Written, asked: OnceAsked) -> Folded {
        let lease = if let OnceWish::Take(lease) = asked.wish { lease } else { None };
        if !is_sound(&asked.subject, &asked.by, lease) {
            return Folded::Void;
        }
        if self.asks.len() >= ONCE_ASKS_OPEN_MAX {
            return Folded::Overflow;
        }
        self.asks.add(written, asked);
        Folded::Taken
    }

    fn fold_answer(&mut self, written: &Written, answer: OnceAnswer) -> Folded {
        if let OnceVerdict::Granted(grant) = &answer.verdict
            && (!is_sound(&grant.subject, &grant.by, grant.lease_ms)
                || grant.over.len() > ONCE_OVER_MAX)
        {
            return Folded::Void;
        }
        let ask = self.asks.remove(answer.asked);
        let is_new = self.grants.get(&answer.asked).is_none_or(|grant| grant.given.is_empty());
        let answered = match answer.verdict {
            OnceVerdict::Granted(grant) => {
                let (subject, by) = (Arc::from(grant.subject.as_str()), grant.by.clone());
                let Some(stands) = self.grant(written, answer.asked, grant) else {
                    return Folded::Overflow;
                };
                if ask.is_none() && is_new {
                    self.news.push(News::Unasked { subject, by, grant: answer.asked });
                }
                let holder = ask.as_ref().and_then(|ask| self.holder(&ask.what.subject));
                if stands { Answer::Granted(holder) } else { Answer::Held(holder) }
            }
            OnceVerdict::Renewed(root) => {
                if let Some(grant) = self.grants.get_mut(&root) {
                    grant.fresh = grant.fresh.max(written.now.mono);
                }
                let holder = ask.as_ref().and_then(|ask| self.holder(&ask.what.subject));
                let stands = holder.is_some() && self.standing_of(root) == Some(root);
                if stands { Answer::Granted(holder) } else { Answer::Held(holder) }
            }
            OnceVerdict::Released(root) => {
                self.end(root, written.place, None);
                Answer::Granted(ask.as_ref().and_then(|ask| self.holder(&ask.what.subject)))
            }
            OnceVerdict::Held => {
                Answer::Held(ask.as_ref().and_then(|ask| self.holder(&ask.what.subject)))
            }
            OnceVerdict::Unproven => Answer::Unproven,
            OnceVerdict::Full => Answer::Full,
        };
        if let Some(ask) = ask {
            let (by, asked) = (written.at, ask.what);
            self.news.push(News::Answered { ask: ask.at, asked, answer: answered, by });
        }
        Folded::Taken
    }

    /// Whether the grant stands now. `None`: there is no memory for it.
    fn grant(&mut self, written: &Written, root: EntryRef, grant: OnceGrant) -> Option<bool> {
        if !self.grants.contains_key(&root) && !self.has_room() {
            return None;
        }
        let subject: Arc<str> = grant.subject.into();
        let given = Given {
            at: written.position(),
            wall_ms: written.facts.wall_ms,
            subject,
            by: grant.by,
            lease_ms: grant.lease_ms,
            key: grant.key,
        };
        let (room, now) = (written.room, written.now.mono);
        self.change(root, Some(WhyLost::Split), |grant| {
            grant.id = Some(MessageId::new(room, root.log, root.seq));
            grant.fresh = grant.fresh.max(now);
            let place = grant.given.partition_point(|other| other.at < given.at);
            grant.given.insert(place, given);
            grant.given.truncate(ANSWERS_KEPT);
        });
        for other in grant.over {
            self.end(other, written.place, Some(WhyLost::Lapsed));
        }
        Some(self.standing_of(root) == Some(root))
    }

    /// An answer says that a grant is over; `why` it was lost, if it was.
    fn end(&mut self, root: EntryRef, by: EntryRef, why: Option<WhyLost>) {
        if !self.grants.contains_key(&root) && !self.has_room() {
            return;
        }
        self.change(root, why, |grant| {
            if !grant.ends.contains(&by) && grant.ends.len() < ANSWERS_KEPT {
                grant.ends.push(by);
            }
        });
    }

    /// Whether one more can be remembered: the oldest of those that are over is forgotten for it.
    fn has_room(&mut self) -> bool {
        if self.over.len() >= ONCE_LIVE_PER_ROOM_MAX
            && let Some((_, root)) = self.over.pop_first()
        {
            self.grants.remove(&root);
        }
        self.grants.len() < ONCE_KEPT_PER_ROOM_MAX
    }

    /// Changes a grant, keeps the indexes, and notes what it did to the one that stood.
    fn change(&mut self, root: EntryRef, why: Option<WhyLost>, change: impl FnOnce(&mut Grant)) {
        let before = self.subject_of(root);
        let stood = before.as_ref().and_then(|subject| self.standing(subject));
        self.unlist(root);
        change(self.grants.entry(root).or_default());
        self.list(root);
        let after = self.subject_of(root);
        if after != before {
            // The grant is new here, or of another subject, where it may push out another one.
            if let Some(subject) = after {
                let first = self.standing(&subject);
                let second = self.second(&subject, root);
                if first == Some(root) && second.is_some() {
                    self.note_lost(&subject, second, why);
                }
            }
        }
        if let Some(subject) = before
            && self.standing(&subject) != stood
        {
            self.note_lost(&subject, stood, why);
        }
    }

    /// Tells that a grant does not stand any more. `why`: `None` if it was given back.
    fn note_lost(&mut self, subject: &Arc<str>, grant: Option<EntryRef>, why: Option<WhyLost>) {
        let Some((grant, why)) = grant.zip(why) else { return };
        let Some(was) = self.grants.get(&grant).and_then(Grant::holder) else { return };
        let (subject, now) = (Arc::clone(subject), self.holder(subject));
        self.news.push(News::Lost { grant, was, subject, now, why });
    }

    fn subject_of(&self, root: EntryRef) -> Option<Arc<str>> {
        let grant = self.grants.get(&root)?;
        Some(Arc::clone(&grant.given.first()?.subject))
    }

    fn unlist(&mut self, root: EntryRef) {
        let Some(grant) = self.grants.get(&root) else { return };
        self.over.remove(&(grant.clock(), root));
        let Some(given) = grant.given.first() else { return };
        if let Some(open) = self.open.get_mut(&given.subject)
            && open.remove(&root)
        {
            self.live -= 1;
            if open.is_empty() {
                self.open.remove(&given.subject);
            }
        }
    }

    fn list(&mut self, root: EntryRef) {
        let Some(grant) = self.grants.get(&root) else { return };
        let open = grant.given.first().filter(|_| grant.is_open());
        if let Some(given) = open {
            self.open.entry(Arc::clone(&given.subject)).or_default().insert(root);
            self.live += 1;
        } else {
            self.over.insert((grant.clock(), root));
        }
    }

    /// Nothing of this log counts from `seq` on.
    fn forget_log(&mut self, log: LogId, seq: u64) {
        let is_gone = |place: &EntryRef| place.log == log && place.seq >= seq;
        self.asks.forget_log(log, seq);
        // A grant whose ask is gone stays: its answer says all of it, and a node may hear of the answer alone.
        let touched = self.grants.iter().filter(|(_, grant)| {
            let given = grant.given.iter().any(|given| is_gone(&given.at.place));
            given || grant.ends.iter().any(is_gone)
        });
        for root in touched.map(|(root, _)| *root).collect::<Vec<_>>() {
            self.change(root, Some(WhyLost::Split), |grant| {
                grant.given.retain(|given| !is_gone(&given.at.place));
                grant.ends.retain(|end| !is_gone(end));
            });
            if self.grants.get(&root).is_some_and(|it| it.given.is_empty() && it.ends.is_empty()) {
                self.unlist(root);
                self.grants.remove(&root);
            }
        }
    }

    // What is shown.

    /// The grants of a subject that are not over, the one that stands first.
    fn ranked(&self, subject: &str) -> Vec<EntryRef> {
        let position = |root: &EntryRef| self.grants.get(root)?.given.first().map(|given| given.at);
        let open = self.open.get(subject).into_iter().flatten();
        let mut open: Vec<(Position, EntryRef)> =
            open.filter_map(|root| Some((position(root)?, *root))).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, root)| root).collect()
    }

    fn standing(&self, subject: &str) -> Option<EntryRef> {
        self.ranked(subject).first().copied()
    }

    /// The first of a subject beside this one.
    fn second(&self, subject: &str, beside: EntryRef) -> Option<EntryRef> {
        self.ranked(subject).into_iter().find(|root| *root != beside)
    }

    fn standing_of(&self, root: EntryRef) -> Option<EntryRef> {
        self.standing(&self.subject_of(root)?)
    }

    /// The one that has it.
    pub(crate) fn holder(&self, subject: &str) -> Option<OnceHolder> {
        self.grants.get(&self.standing(subject)?)?.holder()
    }

    /// The grant of this id, if it is not over.
    pub(crate) fn find(&self, subject: &str, id: MessageId) -> Option<EntryRef> {
        let mut open = self.open.get(subject).into_iter().flatten();
        open.find(|root| self.grants.get(root).is_some_and(|it| it.id == Some(id))).copied()
    }

    /// Whether it is granted, and not over.
    pub(crate) fn is_open(&self, grant: EntryRef) -> bool {
        self.grants.get(&grant).is_some_and(Grant::is_open)
    }

    /// The key in whose name it was asked for.
    pub(crate) fn key_of(&self, grant: EntryRef) -> Option<KeyPrint> {
        self.grants.get(&grant)?.given.first()?.key
    }

    // Asks.

    /// Sees which asks are their agents'. `proves`: whether an act counts as its agent's.
    pub(crate) fn judge(&mut self, proves: impl Fn(&Spoken<'_>) -> bool) {
        self.asks.judge(proves);
    }

    /// See [`Asks::due`].
    pub(crate) fn due(&self, now: Duration, era: Era) -> Vec<EntryRef> {
        self.asks.due(now, era)
    }

    /// The answer of the sequencer of `era`.
    pub(crate) fn answer(
        &self,
        asked: EntryRef,
        era: Era,
        by: Option<EntryRef>,
        now: Now,
    ) -> Option<OnceAnswer> {
        let ask = self.asks.get(asked)?;
        let verdict = if ask.is_proven {
            self.verdict(&ask.what, now, ask.wall_ms)
        } else {
            OnceVerdict::Unproven
        };
        Some(OnceAnswer { era, asked, verdict, by })
    }

    fn verdict(&self, asked: &OnceAsked, now: Now, asked_ms: u64) -> OnceVerdict {
        let is_its = |root: &EntryRef| {
            let given = self.grants.get(root).and_then(|grant| grant.given.first());
            given.is_some_and(|given| given.by == asked.by)
        };
        let lease_ms = match asked.wish {
            OnceWish::Renew(root) => {
                let stands = self.standing(&asked.subject) == Some(root) && is_its(&root);
                return if stands { OnceVerdict::Renewed(root) } else { OnceVerdict::Held };
            }
            OnceWish::Release(root) => {
                let gives = self.is_open(root) && is_its(&root);
                return if gives { OnceVerdict::Released(root) } else { OnceVerdict::Held };
            }
            OnceWish::Take(lease_ms) => lease_ms,
        };
        let mine = self.ranked(&asked.subject);
        let is_over = |root: &EntryRef| {
            self.grants.get(root).is_some_and(|grant| grant.is_over(now, asked_ms))
        };
        if !mine.iter().all(is_over) || mine.len() > ONCE_OVER_MAX {
            return OnceVerdict::Held;
        }
        let mut over = mine;
        if self.live - over.len() >= ONCE_LIVE_PER_ROOM_MAX {
            // Those of other subjects that are over make room.
            let left = ONCE_OVER_MAX - over.len();
            let others = self.open.values().flatten().filter(|root| is_over(root));
            let others = others.filter(|root| !over.contains(root)).take(left).copied();
            over.extend(others.collect::<Vec<_>>());
        }
        if self.live - over.len() >= ONCE_LIVE_PER_ROOM_MAX {
            return OnceVerdict::Full;
        }
        let (subject, by, key) = (asked.subject.clone(), asked.by.clone(), asked.key);
        OnceVerdict::Granted(OnceGrant { subject, by, lease_ms, over, key })
    }

    /// See [`Asks::ask`].
    pub(crate) fn ask(&mut self, now: Duration, mine: Option<LogIx>) -> bool {
        self.asks.ask(now, mine)
    }

    /// See [`Asks::kept_waiting`].
    pub(crate) fn kept_waiting(&self, now: Duration, mine: Option<LogIx>) -> bool {
        self.asks.kept_waiting(now, mine)
    }
}

/// Whether an honest node could have written this.
fn is_sound(subject: &str, by: &AgentId, lease_ms: Option<u64>) -> bool {
    let leases = in_ms(ONCE_LEASE_MIN)..=in_ms(ONCE_LEASE_MAX);
    (1..=ONCE_SUBJECT_BYTES_MAX).contains(&subject.len())
        && (1..=AGENT_ID_BYTES_MAX).contains(&by.len())
        && lease_ms.is_none_or(|lease| leases.contains(&lease))
}

#[cfg(test)]
mod tests;

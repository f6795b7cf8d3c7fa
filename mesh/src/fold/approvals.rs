//! Approvals of one room: a fold over [`ApprovalAct`]s that does not depend on the order in which logs are read
//! (`docs/decisions/approvals.md`).
//!
//! - An ask to decide does nothing by itself. A sequencer's answer that grants it makes it a decision. All of the decision is
//!   read from the ask, and it counts only if its author's node was shown the key of the one that decides: so no sequencer
//!   decides for others.
//! - Of several decisions, one for each side of a split, a no stands over a yes. Of those that say the same the lowest by
//!   position of its grant stands.

mod heard;

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
        approval::{ApprovalView, Verdict},
        boundary::Alarm,
        command::Refused,
    },
    limits::{
        AGENT_ID_BYTES_MAX, APPROVAL_ASKS_MAX, APPROVAL_ASKS_OPEN_MAX, APPROVAL_ASKS_PER_LOG_MAX,
        APPROVAL_FOR_MAX, APPROVAL_PROOF_WITHIN, APPROVAL_REASON_BYTES_MAX, APPROVAL_RULES_MAX,
        APPROVAL_TEXT_BYTES_MAX, APPROVALS_KEPT_MAX, APPROVALS_OPEN_MAX, APPROVERS_MAX,
    },
    name::{
        id::{EntryRef, LocalRef, LogId, LogIx, MessageId},
        number::Era,
        time::{Now, in_ms},
    },
    wire::approval::{
        ApprovalAct, ApprovalAnswer, ApprovalAsked, ApprovalRequested, ApprovalVerdict,
        ApprovalWish,
    },
};
use heard::{Heard, Wanted};

impl Asking for ApprovalAsked {
    fn spoken(&self, by: EntryRef) -> Spoken<'_> {
        Spoken { node: by.log.author, key: self.key, agent: &self.by }
    }

    fn era(&self) -> Era {
        self.era
    }
}

/// How an ask ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted,
    Refused,
    Unproven,
}

/// Effects of acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// An agent asks: once for each, when it is proven that it does.
    Requested(Arc<ApprovalView>),
    /// Another decision stands than before.
    Decided(Arc<ApprovalView>),
    /// An ask of this or another node has its answer.
    Answered { ask: LocalRef, approval: EntryRef, answer: Answer },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Approvals {
    all: BTreeMap<EntryRef, Wanted>,
    ids: BTreeMap<MessageId, EntryRef>,
    /// The approval that an ask is about.
    about: BTreeMap<EntryRef, EntryRef>,
    asks: Asks<ApprovalAsked>,
    /// Something of these is not proven yet; since when it is looked for in each tick. `None`: no longer.
    unproven: BTreeMap<EntryRef, Option<Duration>>,
    /// These have changed, and nobody was told.
    changed: BTreeSet<EntryRef>,
    answered: Vec<News>,
    bytes: usize,
}

impl Fold for Approvals {
    type Act = ApprovalAct;
    type News = News;

    fn admits(&self, by: LogId, act: &ApprovalAct, _: Duration) -> Result<(), Refused> {
        let full = |text: &str| Err(Refused::Full(text.to_owned()));
        match act {
            ApprovalAct::Requested(_) if self.open() >= APPROVALS_OPEN_MAX => {
                full("256 approvals of this room wait to be decided: have some decided first")
            }
            ApprovalAct::Asked(asked) => {
                let wanted = self.all.get(&asked.approval);
                let is_full = |it: &Wanted| {
                    it.heard_of(by) >= APPROVAL_ASKS_PER_LOG_MAX
                        || it.heard.len() >= APPROVAL_ASKS_MAX
                };
                if wanted.is_some_and(is_full) || self.asks.len() >= APPROVAL_ASKS_OPEN_MAX {
                    return full("too many want to decide about this: try again later");
                }
                let is_rule = asked.wish == ApprovalWish::Always;
                if is_rule && self.rules() >= APPROVAL_RULES_MAX {
                    return full("1000 approvals of this room hold for always: withdraw some");
                }
                Ok(())
            }
            ApprovalAct::Requested(_) | ApprovalAct::Answered(_) => Ok(()),
        }
    }

    fn apply(&mut self, written: Written, act: ApprovalAct, _: &mut Vec<Alarm>) -> Folded {
        match act {
            ApprovalAct::Requested(requested) => self.fold_requested(&written, requested),
            ApprovalAct::Asked(asked) => self.fold_asked(&written, asked),
            // Its author was the sequencer: this was asked before.
            ApprovalAct::Answered(answer) => self.fold_answer(&written, &answer),
        }
    }

    fn retract(&mut self, void: Void) {
        match void {
            Void::From(EntryRef { log, seq }) => self.forget_log(log, seq),
            // As of things that one agent does.
            Void::Author(_) | Void::Member(_) => {}
        }
    }

    fn take_news(&mut self, _: Duration) -> Vec<News> {
        let mut news = Vec::new();
        for place in std::mem::take(&mut self.changed) {
            let stands = self.standing(place);
            let Some(wanted) = self.all.get_mut(&place).filter(|it| it.is_proven) else { continue };
            let (is_new, was) = (!wanted.is_told, wanted.told);
            let is_quiet = wanted.is_quiet;
            (wanted.is_told, wanted.told) = (true, stands);
            if is_quiet {
                continue;
            }
            let Some(view) = self.view(place).map(Arc::new) else { continue };
            if is_new {
                news.push(News::Requested(Arc::clone(&view)));
            }
            if stands != was && stands.is_some() {
                news.push(News::Decided(view));
            }
        }
        // Those that asked are answered when all others are told.
        news.append(&mut self.answered);
        news
    }

    fn is_waiting(&self) -> bool {
        !self.asks.is_empty() || self.unproven.values().any(Option::is_some)
    }

    fn bytes(&self) -> usize {
        /// Ids, times and indexes.
        const EACH: usize = 512;
        self.bytes + (self.all.len() + self.about.len()) * EACH
    }
}

impl Approvals {
    fn fold_requested(&mut self, written: &Written, requested: ApprovalRequested) -> Folded {
        let at_ms = written.facts.wall_ms;
        let latest = at_ms.saturating_add(in_ms(APPROVAL_FOR_MAX));
        let is_sound = requested.message.log == written.place.log
            && (1..=APPROVAL_TEXT_BYTES_MAX).contains(&requested.text.len())
            && is_agent(&requested.by)
            && requested.approvers.len() <= APPROVERS_MAX
            && requested.approvers.iter().all(|agent| is_agent(agent))
            && requested.until_ms <= latest;
        if !is_sound {
            return Folded::Void;
        }
        let id = MessageId::new(written.room, requested.message.log, requested.message.seq);
        if self.ids.contains_key(&id) {
            // The first one counts: both are of one log.
            return Folded::Taken;
        }
        if !self.has_room(written.now.wall_ms) {
            return Folded::Overflow;
        }
        let wanted = Wanted::new(id, written, requested);
        self.bytes += wanted.bytes();
        self.ids.insert(id, written.place);
        self.all.insert(written.place, wanted);
        self.unproven.insert(written.place, Some(written.now.mono));
        Folded::Taken
    }

    fn fold_asked(&mut self, written: &Written, asked: ApprovalAsked) -> Folded {
        let reason = asked.reason.as_ref().map_or(0, String::len);
        if !is_agent(&asked.by) || reason > APPROVAL_REASON_BYTES_MAX {
            return Folded::Void;
        }
        if self.asks.len() >= APPROVAL_ASKS_OPEN_MAX {
            return Folded::Overflow;
        }
        if let Some(wanted) = self.all.get_mut(&asked.approval) {
            if !wanted.lets(&asked) {
                return Folded::Void;
            }
            let log = written.place.log;
            if wanted.heard.len() >= APPROVAL_ASKS_MAX
                || wanted.heard_of(log) >= APPROVAL_ASKS_PER_LOG_MAX
            {
                return Folded::Overflow;
            }
            wanted.heard.insert(written.place, Heard::new(written, &asked));
            self.bytes += reason;
            self.about.insert(written.place, asked.approval);
            self.unproven.insert(asked.approval, Some(written.now.mono));
        }
        // One that nobody knows any more is answered, too: somebody waits.
        self.asks.add(written, asked);
        Folded::Taken
    }

    fn fold_answer(&mut self, written: &Written, answer: &ApprovalAnswer) -> Folded {
        if let Some(approval) = self.about.get(&answer.asked).copied()
            && answer.verdict == ApprovalVerdict::Granted
            && let Some(heard) =
                self.all.get_mut(&approval).and_then(|it| it.heard.get_mut(&answer.asked))
        {
            heard.grant(written.position());
            self.all.entry(approval).and_modify(|it| it.is_quiet = false);
            self.change(approval);
        }
        if let Some(ask) = self.asks.remove(answer.asked) {
            let answer = match answer.verdict {
                ApprovalVerdict::Granted => Answer::Granted,
                ApprovalVerdict::Refused => Answer::Refused,
                ApprovalVerdict::Unproven => Answer::Unproven,
            };
            self.answered.push(News::Answered { ask: ask.at, approval: ask.what.approval, answer });
        }
        Folded::Taken
    }

    /// Something about an approval has changed, and so may have those that it is a rule for.
    fn change(&mut self, approval: EntryRef) {
        self.changed.insert(approval);
        let follow = |it: &Wanted| {
            it.heard.values().any(|heard| heard.wish == ApprovalWish::ByRule(approval))
        };
        let following = self.all.iter().filter(|(_, it)| follow(it)).map(|(place, _)| *place);
        self.changed.extend(following.collect::<Vec<_>>());
    }

    /// Whether one more can be remembered: the oldest that is over is forgotten for it.
    fn has_room(&mut self, now_ms: u64) -> bool {
        if self.all.len() < APPROVALS_KEPT_MAX {
            return true;
        }
        let is_over = |place: &EntryRef, it: &Wanted| {
            (it.until_ms < now_ms || self.standing(*place).is_some()) && !self.is_rule(*place)
        };
        let over = self.all.iter().filter(|(place, it)| is_over(place, it));
        let oldest = over.min_by_key(|(_, it)| it.at).map(|(place, _)| *place);
        oldest.is_some_and(|place| self.forget(place))
    }

    fn forget(&mut self, place: EntryRef) -> bool {
        let Some(wanted) = self.all.remove(&place) else { return false };
        self.bytes -= wanted.bytes();
        self.ids.remove(&wanted.id);
        self.unproven.remove(&place);
        self.changed.remove(&place);
        for ask in wanted.heard.keys() {
            self.about.remove(ask);
        }
        true
    }

    /// Nothing of this log counts from `seq` on.
    fn forget_log(&mut self, log: LogId, seq: u64) {
        let is_gone = |place: &EntryRef| place.log == log && place.seq >= seq;
        self.asks.forget_log(log, seq);
        let gone = self.all.keys().filter(|place| is_gone(place)).copied().collect::<Vec<_>>();
        for place in gone {
            self.forget(place);
        }
        let mut changed = Vec::new();
        for (place, wanted) in &mut self.all {
            let before = wanted.bytes();
            let mut touched = false;
            wanted.heard.retain(|ask, heard| {
                touched |= heard.withdraw(&is_gone) || is_gone(ask);
                !is_gone(ask)
            });
            self.bytes -= before - wanted.bytes();
            if touched {
                changed.push(*place);
            }
        }
        self.about.retain(|ask, _| !is_gone(ask));
        changed.into_iter().for_each(|place| self.change(place));
    }

    /// After a start: nobody is told of what was there before, also if it is proven only later.
    pub(crate) fn hush(&mut self) {
        self.all.values_mut().for_each(|wanted| wanted.is_quiet = true);
        drop(self.take_news(Duration::ZERO));
    }

    // What is shown.

    /// The decision that stands.
    fn standing(&self, place: EntryRef) -> Option<EntryRef> {
        let wanted = self.all.get(&place)?;
        let decisions = wanted.heard.iter().filter_map(|(ask, heard)| {
            let verdict = heard.counts().then(|| heard.verdict()).flatten()?;
            self.follows_rule(wanted, heard.wish).then_some((verdict.allows(), heard.at()?, *ask))
        });
        decisions.min().map(|(.., ask)| ask)
    }

    /// Whether a decision by a rule follows one: what is asked is the same, and it was once decided for always.
    fn follows_rule(&self, wanted: &Wanted, wish: ApprovalWish) -> bool {
        let ApprovalWish::ByRule(rule) = wish else { return true };
        let rule = self.all.get(&rule).filter(|rule| rule.is_proven && rule.asks_the_same(wanted));
        let is_always = |heard: &Heard| heard.wish == ApprovalWish::Always && heard.counts();
        rule.is_some_and(|rule| rule.heard.values().any(is_always))
    }

    /// Whether it holds for what its agent asks from now on.
    fn is_rule(&self, place: EntryRef) -> bool {
        let Some(wanted) = self.all.get(&place).filter(|it| it.is_proven) else { return false };
        let stands = self.standing(place).and_then(|ask| wanted.heard.get(&ask));
        let is_withdrawn = |heard: &Heard| heard.wish == ApprovalWish::Withdraw && heard.counts();
        stands.is_some_and(|heard| heard.wish == ApprovalWish::Always)
            && !wanted.heard.values().any(is_withdrawn)
    }

    fn rules(&self) -> usize {
        self.all.keys().filter(|place| self.is_rule(**place)).count()
    }

    /// Those that nobody has decided about. Those whose time is up are closed by the nodes of their agents.
    fn open(&self) -> usize {
        self.all.keys().filter(|place| self.standing(**place).is_none()).count()
    }

    /// The rule that decides about what an agent asks.
    pub(crate) fn rule_for(&self, place: EntryRef) -> Option<EntryRef> {
        let wanted = self.all.get(&place)?;
        let mut others = self.all.iter().filter(|(other, _)| **other != place);
        others
            .find(|(other, it)| it.asks_the_same(wanted) && self.is_rule(**other))
            .map(|(it, _)| *it)
    }

    /// `None`: it is not known, or it is not proven that the agent asks.
    pub(crate) fn view(&self, place: EntryRef) -> Option<ApprovalView> {
        let wanted = self.all.get(&place).filter(|wanted| wanted.is_proven)?;
        let decided = self.standing(place).and_then(|ask| wanted.heard.get(&ask)?.decided());
        Some(wanted.view(decided, self.is_rule(place)))
    }

    /// The place of the approval of this message.
    pub(crate) fn find(&self, id: MessageId) -> Option<EntryRef> {
        self.ids.get(&id).copied()
    }

    /// All that are proven, the oldest first.
    pub(crate) fn views(&self) -> Vec<ApprovalView> {
        let mut places: Vec<_> = self.all.iter().map(|(place, it)| (it.at, *place)).collect();
        places.sort_unstable();
        places.into_iter().filter_map(|(_, place)| self.view(place)).collect()
    }

    /// Those of a log that nobody has decided about, and when their time is up.
    pub(crate) fn undecided_of(&self, log: LogId) -> Vec<(u64, EntryRef)> {
        let own = self.all.iter().filter(|(place, _)| place.log == log);
        let open = own.filter(|(place, _)| self.standing(**place).is_none());
        open.map(|(place, wanted)| (wanted.until_ms, *place)).collect()
    }

    /// The request as it was asked, for its agent's node to speak for that agent again.
    pub(crate) fn asker(&self, place: EntryRef) -> Option<Spoken<'_>> {
        self.all.get(&place).map(|wanted| wanted.spoken(place))
    }

    /// Whether one that wants to decide has no answer yet.
    pub(crate) fn is_asked(&self, place: EntryRef) -> bool {
        let heard = self.all.get(&place).into_iter().flat_map(|wanted| wanted.heard.keys());
        heard.copied().any(|ask| self.asks.get(ask).is_some())
    }

    /// Whether somebody has decided.
    pub(crate) fn is_decided(&self, place: EntryRef) -> bool {
        self.standing(place).is_some()
    }

    // Asks.

    /// Whether something waits for a proof, or for an answer.
    pub(crate) fn is_to_be_judged(&self) -> bool {
        !self.asks.is_empty() || !self.unproven.is_empty()
    }

    /// Sees which requests and decisions are their agents'. `asks`: whether one may ask now; `proves`: whether an act counts as
    /// its agent's.
    pub(crate) fn judge(
        &mut self,
        now: Duration,
        asks: impl Fn(&Spoken<'_>) -> bool,
        proves: impl Fn(&Spoken<'_>) -> bool,
    ) {
        self.asks.judge(asks);
        for (place, since) in std::mem::take(&mut self.unproven) {
            let Some(wanted) = self.all.get_mut(&place) else { continue };
            let (changed, left) = wanted.judge(place, &proves);
            if left {
                let since = since.filter(|since| now < *since + APPROVAL_PROOF_WITHIN);
                self.unproven.insert(place, since);
            }
            if changed {
                self.change(place);
            }
        }
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
    ) -> Option<ApprovalAnswer> {
        let ask = self.asks.get(asked)?;
        let verdict = match (ask.is_proven, self.allows(&ask.what, now.wall_ms)) {
            (false, _) => ApprovalVerdict::Unproven,
            (true, true) => ApprovalVerdict::Granted,
            (true, false) => ApprovalVerdict::Refused,
        };
        Some(ApprovalAnswer { era, asked, verdict, by })
    }

    fn allows(&self, asked: &ApprovalAsked, now_ms: u64) -> bool {
        let place = asked.approval;
        let Some(wanted) = self.all.get(&place) else { return false };
        let is_open = self.standing(place).is_none();
        match asked.wish {
            ApprovalWish::Approve
            | ApprovalWish::Always
            | ApprovalWish::Deny
            | ApprovalWish::Change => is_open && now_ms < wanted.until_ms,
            // It is the asking agent's own no: its clock says when.
            ApprovalWish::Expire => is_open,
            ApprovalWish::ByRule(rule) => {
                is_open && self.is_rule(rule) && self.follows_rule(wanted, asked.wish)
            }
            ApprovalWish::Withdraw => self.is_rule(place),
        }
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

/// Whether it can be an agent's id.
fn is_agent(id: &str) -> bool {
    (1..=AGENT_ID_BYTES_MAX).contains(&id.len())
}

/// The verdict of a granted wish. `None`: it decides nothing.
fn verdict_of(wish: ApprovalWish) -> Option<Verdict> {
    match wish {
        ApprovalWish::Approve => Some(Verdict::Approved),
        ApprovalWish::Always => Some(Verdict::Always),
        ApprovalWish::Deny => Some(Verdict::Denied),
        ApprovalWish::Change => Some(Verdict::Changes),
        ApprovalWish::Expire => Some(Verdict::Expired),
        ApprovalWish::ByRule(_) => Some(Verdict::ByRule),
        ApprovalWish::Withdraw => None,
    }
}

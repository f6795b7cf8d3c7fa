//! The decisions of a room as docs/decisions/approvals.md defines them, over all acts at once.

use std::collections::BTreeMap;

use mesh::{
    api::approval::{Decided, Verdict},
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::approval::{
        ApprovalAct, ApprovalAnswer, ApprovalAsked, ApprovalRequested, ApprovalVerdict,
        ApprovalWish,
    },
};

/// All acts of all rooms.
pub(super) type Acts = BTreeMap<RoomId, BTreeMap<EntryRef, Act>>;

/// An act, as some node has written it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) clock: u64,
    pub(super) act: ApprovalAct,
}

impl Act {
    pub(super) fn answer(&self) -> Option<&ApprovalAnswer> {
        if let ApprovalAct::Answered(answer) = &self.act { Some(answer) } else { None }
    }

    /// The ask that it grants.
    pub(super) fn grants(&self) -> Option<EntryRef> {
        let answer = self.answer().filter(|it| it.verdict == ApprovalVerdict::Granted);
        answer.map(|answer| answer.asked)
    }

    fn asked(&self) -> Option<&ApprovalAsked> {
        if let ApprovalAct::Asked(asked) = &self.act { Some(asked) } else { None }
    }

    fn requested(&self) -> Option<&ApprovalRequested> {
        if let ApprovalAct::Requested(requested) = &self.act { Some(requested) } else { None }
    }
}

/// A decision that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) struct Stands {
    pub(super) verdict: Verdict,
    pub(super) by: Option<AgentId>,
}

impl Stands {
    pub(super) fn of(decided: &Decided) -> Stands {
        Stands { verdict: decided.verdict, by: decided.by.clone() }
    }
}

/// The decision that somebody wants. `None`: it is none.
pub(super) fn verdict(wish: ApprovalWish) -> Option<Verdict> {
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

/// An ask, and the approval that it is about.
pub(super) fn ask_of(
    acts: &Acts,
    room: RoomId,
    ask: EntryRef,
) -> Option<(&ApprovalAsked, MessageId)> {
    let acts = acts.get(&room)?;
    let asked = acts.get(&ask)?.asked()?;
    let requested = acts.get(&asked.approval)?.requested()?;
    let EntryRef { log, seq } = requested.message;
    Some((asked, MessageId::new(room, log, seq)))
}

/// The decision that stands of each approval of a room: `None` where nobody has decided.
pub(super) fn fold(acts: &Acts, room: RoomId) -> BTreeMap<MessageId, Option<Stands>> {
    let Some(of_room) = acts.get(&room) else { return BTreeMap::new() };
    // The lowest grant of each ask.
    let mut granted: BTreeMap<EntryRef, (u64, EntryRef)> = BTreeMap::new();
    for (place, act) in of_room {
        if let Some(ask) = act.grants() {
            let at = (act.clock, *place);
            let lowest = granted.entry(ask).or_insert(at);
            *lowest = at.min(*lowest);
        }
    }
    let mut all = BTreeMap::new();
    for (place, act) in of_room {
        let Some(requested) = act.requested() else { continue };
        let EntryRef { log, seq } = requested.message;
        let decisions = granted.iter().filter_map(|(ask, at)| {
            let asked = of_room.get(ask)?.asked().filter(|asked| asked.approval == *place)?;
            let verdict = verdict(asked.wish)?;
            let counts = match asked.wish {
                ApprovalWish::ByRule(rule) => is_rule_for(of_room, &granted, rule, requested),
                ApprovalWish::Approve
                | ApprovalWish::Always
                | ApprovalWish::Deny
                | ApprovalWish::Change
                | ApprovalWish::Expire
                | ApprovalWish::Withdraw => true,
            };
            let by = match verdict {
                Verdict::ByRule | Verdict::Expired => None,
                Verdict::Approved | Verdict::Always | Verdict::Denied | Verdict::Changes => {
                    Some(asked.by.clone())
                }
            };
            // A no stands over a yes, and then the lowest.
            counts.then(|| ((verdict.allows(), *at, *ask), Stands { verdict, by }))
        });
        let stands = decisions.min_by_key(|(place, _)| *place).map(|(_, stands)| stands);
        all.insert(MessageId::new(room, log, seq), stands);
    }
    all
}

/// Whether somebody has said of the same, asked for by the same agent, that it may always.
fn is_rule_for(
    acts: &BTreeMap<EntryRef, Act>,
    granted: &BTreeMap<EntryRef, (u64, EntryRef)>,
    rule: EntryRef,
    wanted: &ApprovalRequested,
) -> bool {
    let Some(earlier) = acts.get(&rule).and_then(Act::requested) else { return false };
    let is_same =
        (&earlier.by, earlier.key, &earlier.text) == (&wanted.by, wanted.key, &wanted.text);
    let mut asks = granted.keys().filter_map(|ask| acts.get(ask)?.asked());
    is_same && asks.any(|asked| asked.approval == rule && asked.wish == ApprovalWish::Always)
}

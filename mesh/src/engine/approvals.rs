//! Approvals: asking, deciding, and telling those whom it concerns. The node at which an agent has asked closes what nobody
//! decides in time, and has decided what was decided for always before.

use std::collections::{BTreeMap, BTreeSet};

use super::known::Known;
use crate::{
    api::{
        approval::{ApprovalView, Choice, DecideApproval, DecidedNow, NewApproval},
        command::{CallId, Outcome, Reader, Refused},
        event::RoomEvent,
    },
    fold::{
        act::Fold as _,
        approvals::{Answer, News},
    },
    limits::{APPROVAL_AGAIN_AFTER_MS, APPROVALS_ENDED_AT_ONCE, APPROVALS_LISTED_MAX},
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, MessageId, RoomId},
        time::in_ms,
    },
    room::Room,
    wire::{
        approval::{ApprovalAct, ApprovalAsked, ApprovalRequested, ApprovalWish},
        entry::Body,
    },
};

/// See the module. Those that are due are this node's own and open: there are
/// [`crate::limits::APPROVALS_OPEN_MAX`] of a room.
#[derive(Clone, Debug, Default)]
pub(super) struct Approvals {
    /// The calls that wait for an answer, by the entry of the ask.
    waiting: BTreeMap<(RoomId, LocalRef), CallId>,
    /// What this node's agents have asked for, by when their time is up.
    due: BTreeSet<(u64, RoomId, EntryRef)>,
}

impl Approvals {
    pub(super) fn request(
        &mut self,
        known: &mut Known,
        new: NewApproval,
    ) -> Result<Outcome, Refused> {
        let NewApproval { caller, room, message, terms } = new;
        known.may_contribute(&caller, room)?;
        terms.check()?;
        let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
        if state.replica.record.ephemeral {
            return Err(Refused::NotDurable);
        }
        known.may_speak(&caller)?;
        let log = state.replica.mine;
        if state.folds.approvals.find(message).is_none() {
            let seq = message.seq_in(room, log).ok_or(Refused::NoApproval)?;
            let requested = ApprovalRequested {
                message: EntryRef { log, seq },
                by: caller.agent.clone(),
                text: terms.text,
                approvers: terms.approvers,
                until_ms: known.cx.now.wall_ms.saturating_add(in_ms(terms.within)),
                key: caller.key.checked(),
            };
            known.write_act(room, &Body::Approval(ApprovalAct::Requested(requested)))?;
            judge(known, room);
            self.begin(known, room, message);
        }
        let found = known.rooms.get(&room).and_then(|room| {
            let approvals = &room.folds.approvals;
            approvals.view(approvals.find(message)?)
        });
        let view = found.filter(|view| view.by == caller.agent).ok_or(Refused::NoApproval)?;
        Ok(Outcome::Approval(Box::new(view)))
    }

    /// A request of this node is there: its time runs, or a rule decides.
    fn begin(&mut self, known: &mut Known, room: RoomId, message: MessageId) {
        let Some(state) = known.rooms.get(&room) else { return };
        let approvals = &state.folds.approvals;
        let Some(place) = approvals.find(message) else { return };
        let Some(view) = approvals.view(place) else { return };
        self.due.insert((view.until_ms, room, place));
        if let Some(rule) = approvals.rule_for(place) {
            // If it cannot be written, people decide.
            let _ = ask_for_asker(known, room, place, ApprovalWish::ByRule(rule));
        }
    }

    pub(super) fn decide(&mut self, known: &mut Known, call: CallId, decide: DecideApproval) {
        match try_decide(known, decide) {
            Ok(Begun::Written(place)) => {
                self.waiting.insert(place, call);
            }
            Ok(Begun::Late(view)) => {
                let late = DecidedNow { granted: false, approval: *view };
                known.cx.reply(call, Ok(Outcome::Decided(Box::new(late))));
            }
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    /// Acts on what has changed in a room.
    pub(super) fn settle(&mut self, known: &mut Known, id: RoomId) {
        let Some(room) = known.rooms.get_mut(&id) else { return };
        for news in room.folds.approvals.take_news(known.cx.now.mono) {
            match news {
                News::Requested(view) => known.cx.notify(id, RoomEvent::ApprovalAsked(view)),
                News::Decided(view) => known.cx.notify(id, RoomEvent::ApprovalDecided(view)),
                News::Answered { ask, approval, answer } => {
                    if let Some(call) = self.waiting.remove(&(id, ask)) {
                        let told = told(known, id, approval, answer);
                        known.cx.reply(call, told);
                    }
                }
            }
        }
    }

    /// Closes what nobody has decided in time.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let now_ms = known.cx.now.wall_ms;
        for _ in 0..APPROVALS_ENDED_AT_ONCE {
            let Some((at_ms, room, place)) = self.due.first().copied() else { return };
            if at_ms > now_ms {
                return;
            }
            self.due.remove(&(at_ms, room, place));
            let Some(state) = known.rooms.get(&room) else { continue };
            let approvals = &state.folds.approvals;
            if approvals.is_decided(place) || approvals.asker(place).is_none() {
                continue;
            }
            // An ask without an answer waits for the sequencer, or for the next one.
            if !approvals.is_asked(place) {
                // If this node may not write now, it may later.
                let _ = ask_for_asker(known, room, place, ApprovalWish::Expire);
            }
            self.due.insert((now_ms.saturating_add(APPROVAL_AGAIN_AFTER_MS), room, place));
        }
    }

    /// After a start: nobody is told of what was there before, and the time of this node's own runs.
    pub(super) fn note_all(&mut self, known: &mut Known) {
        for id in known.rooms.keys().copied().collect::<Vec<_>>() {
            judge(known, id);
            let Some(room) = known.rooms.get_mut(&id) else { continue };
            room.folds.approvals.hush();
            let mine = room.replica.mine;
            let open = room.folds.approvals.undecided_of(mine);
            self.due.extend(open.into_iter().map(|(until_ms, place)| (until_ms, id, place)));
        }
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse(&mut self, known: &mut Known, which: impl Fn(&Known, RoomId) -> bool) {
        let refused = self.waiting.extract_if(.., |(room, _), _| which(known, *room));
        let refused: Vec<(RoomId, CallId)> =
            refused.map(|((room, _), call)| (room, call)).collect();
        for (room, call) in refused {
            let why = known.not_writable(room);
            known.cx.reply(call, Err(why));
        }
    }

    /// The room has ended.
    pub(super) fn forget(&mut self, known: &mut Known, room: &Room) {
        let id = room.replica.id;
        self.due.retain(|(_, of, _)| *of != id);
        let ended = self.waiting.extract_if(.., |(of, _), _| *of == id);
        for call in ended.map(|(_, call)| call).collect::<Vec<_>>() {
            known.cx.reply(call, Err(Refused::NoRoom));
        }
    }
}

/// How an attempt to decide began.
enum Begun {
    /// It waits for its answer.
    Written((RoomId, LocalRef)),
    /// It is decided, or its time is up.
    Late(Box<ApprovalView>),
}

fn try_decide(known: &mut Known, decide: DecideApproval) -> Result<Begun, Refused> {
    known.may_contribute(&decide.caller, decide.room)?;
    decide.check()?;
    known.may_speak(&decide.caller)?;
    let DecideApproval { caller, room, approval, choice, reason } = decide;
    judge(known, room);
    let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
    let place = state.folds.approvals.find(approval).ok_or(Refused::NoApproval)?;
    let view = state.folds.approvals.view(place).ok_or(Refused::NoApproval)?;
    if !view.may_be_decided_by(&caller.agent) {
        return Err(Refused::NotApprover);
    }
    let wish = match choice {
        Choice::Approve => ApprovalWish::Approve,
        Choice::Always => ApprovalWish::Always,
        Choice::Deny => ApprovalWish::Deny,
        Choice::Change => ApprovalWish::Change,
        Choice::Withdraw => ApprovalWish::Withdraw,
    };
    let is_open = match choice {
        Choice::Withdraw => view.is_rule,
        Choice::Approve | Choice::Always | Choice::Deny | Choice::Change => {
            view.decided.is_none() && known.cx.now.wall_ms < view.until_ms
        }
    };
    if !is_open {
        return Ok(Begun::Late(Box::new(view)));
    }
    let key = caller.key.checked();
    let at = ask(known, room, Asking { place, by: caller.agent, wish, reason, key })?;
    Ok(Begun::Written((room, at)))
}

/// An ask to decide, without its era.
struct Asking {
    place: EntryRef,
    by: AgentId,
    wish: ApprovalWish,
    reason: Option<String>,
    key: Option<KeyPrint>,
}

fn ask(known: &mut Known, room: RoomId, asking: Asking) -> Result<LocalRef, Refused> {
    let Asking { place, by, wish, reason, key } = asking;
    let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
    let era = state.order.numbering.current();
    let asked = ApprovalAsked { approval: place, by, wish, reason, era, key };
    let at = known.write_act(room, &Body::Approval(ApprovalAct::Asked(asked)))?;
    known.cx.to_advance.insert(room);
    Ok(at)
}

/// In the name of the agent that asked, at this node.
fn ask_for_asker(
    known: &mut Known,
    room: RoomId,
    place: EntryRef,
    wish: ApprovalWish,
) -> Result<LocalRef, Refused> {
    let state = known.rooms.get(&room).ok_or(Refused::NoRoom)?;
    let spoken = state.folds.approvals.asker(place).ok_or(Refused::NoApproval)?;
    let (by, key) = (spoken.agent.clone(), spoken.key);
    ask(known, room, Asking { place, by, wish, reason: None, key })
}

fn told(
    known: &Known,
    room: RoomId,
    approval: EntryRef,
    answer: Answer,
) -> Result<Outcome, Refused> {
    let granted = match answer {
        Answer::Unproven => return Err(Refused::Full(UNPROVEN.to_owned())),
        Answer::Granted => true,
        Answer::Refused => false,
    };
    let view = known.rooms.get(&room).and_then(|room| room.folds.approvals.view(approval));
    let approval = view.ok_or(Refused::NoApproval)?;
    Ok(Outcome::Decided(Box::new(DecidedNow { granted, approval })))
}

/// Sees what is proven. A request or a decision and the voucher of its node travel in two rooms.
pub(super) fn judge(known: &mut Known, id: RoomId) {
    let keys = known.directory.keys();
    let room = known.rooms.get_mut(&id);
    if let Some(room) = room.filter(|room| room.folds.approvals.is_to_be_judged()) {
        let now = known.cx.now.mono;
        room.folds.approvals.judge(now, |act| keys.may_ask(act), |act| keys.speaks_for(act));
    }
}

/// Those that somebody may decide about, and rules.
pub(super) fn list(
    known: &mut Known,
    by: &Reader,
    room: Option<RoomId>,
) -> Result<Outcome, Refused> {
    if let Some(room) = room {
        known.may_read(by, room)?;
    }
    let now_ms = known.cx.now.wall_ms;
    let mut found: Vec<ApprovalView> = Vec::new();
    let rooms = room.map_or_else(|| known.rooms.keys().copied().collect(), |room| vec![room]);
    for id in rooms {
        if known.may_read(by, id).is_err() {
            continue;
        }
        judge(known, id);
        let Some(room) = known.rooms.get(&id) else { continue };
        let is_open =
            |view: &ApprovalView| view.decided.is_none() && now_ms < view.until_ms || view.is_rule;
        found.extend(room.folds.approvals.views().into_iter().filter(is_open));
    }
    found.sort_by_key(|view| (view.asked_ms, view.id));
    found.truncate(APPROVALS_LISTED_MAX);
    Ok(Outcome::Approvals(found))
}

/// One, decided or not.
pub(super) fn read(
    known: &mut Known,
    by: &Reader,
    (room, approval): (RoomId, MessageId),
) -> Result<Outcome, Refused> {
    known.may_read(by, room)?;
    judge(known, room);
    let approvals = &known.rooms.get(&room).ok_or(Refused::NoRoom)?.folds.approvals;
    let view = approvals.find(approval).and_then(|place| approvals.view(place));
    Ok(Outcome::Approval(Box::new(view.ok_or(Refused::NoApproval)?)))
}

/// Why nothing was decided though nobody else has decided.
const UNPROVEN: &str =
    "the node that decides does not know yet that this agent's node was shown its key: try again";

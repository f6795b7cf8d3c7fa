//! Approvals in a simulated world: agents ask whether they may, and others decide, some at once.
//!
//! *decided once*: in one era a sequencer grants one decision about an approval, and it grants none for an agent by a node that
//! cannot speak for that (*proven*). *decision, told*: an agent that is told that its decision counts has it by acts that its
//! node has stored; and a node that stayed up has told the decision that stands. *same decisions*: in the end every node names
//! the same one of each approval, which is the one that all acts make, by a fold of the simulation's own. *decisions end*: once
//! everybody is there again, nothing is open whose time is up.

pub(super) mod end;
mod fold;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        approval::{ApprovalTerms, ApprovalView, Choice, DecideApproval, NewApproval},
        command::{Command, Outcome, Reader, Refused, Speech},
        event::RoomEvent,
    },
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::approval::{ApprovalAct, ApprovalAnswer, ApprovalVerdict},
};

use self::fold::{Act, Stands};
use super::{
    agents::{Agents, say},
    cluster::Cluster,
    coverage::Happening,
    keys::KEY,
    parts::{Desk, Matter, Seated, Written},
    promises::{Broken, broken},
    tasks::Forged,
};

/// Few, so that agents ask for the same again.
const TEXTS: [&str; 3] = ["rm -r build", "deploy", "git push"];

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Say { by: Seated, room: RoomId },
    Request { by: AgentId, room: RoomId },
    Decide { by: AgentId, room: RoomId, approval: MessageId },
    Look { room: RoomId, approval: MessageId },
}

/// An approval that a node has named.
#[derive(Clone, Debug)]
struct Known {
    room: RoomId,
    id: MessageId,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    desk: Desk<Asked, BTreeMap<(RoomId, MessageId), Option<Stands>>>,
    /// Messages in which an agent has asked, and that it has not asked with yet.
    said: Vec<(Seated, RoomId, MessageId)>,
    known: Vec<Known>,
    /// Every act that was durable anywhere, of nodes that do not lie.
    acts: BTreeMap<RoomId, BTreeMap<EntryRef, Act>>,
    /// The nodes that have stored each answer.
    held: BTreeMap<(RoomId, EntryRef), BTreeSet<usize>>,
    /// Asks by nodes that lie.
    forged: BTreeMap<(RoomId, EntryRef), Forged>,
    /// The last decision that a node has told since it started.
    told: BTreeMap<(usize, MessageId), Stands>,
}

/// Acts of agents.
impl Approvals {
    /// An agent asks, or some decide at once about something.
    pub(super) fn act(&mut self, cluster: &mut Cluster, agents: &Agents, i: usize) {
        for (by, room, message) in std::mem::take(&mut self.said) {
            self.request(cluster, agents, by, (room, message));
        }
        let Some(by) = agents.seated(i) else { return };
        let newest = self.known.iter().rev().take(4).cloned().collect::<Vec<_>>();
        if newest.is_empty() || cluster.dice.chance(40) {
            let rooms = agents.rooms_of(i);
            if rooms.is_empty() {
                return;
            }
            let room = *cluster.dice.pick(&rooms);
            let said = say(room, Speech::Chat, format!("may I? {}", cluster.text()));
            let asked = Asked::Say { by: by.clone(), room };
            let command = Command::Say { caller: by.caller, say: said };
            return self.desk.calls.ask(cluster, by.node, asked, command);
        }
        let Known { room, id, .. } = cluster.dice.pick(&newest).clone();
        let mut all = vec![by];
        for _ in 0..cluster.dice.within(0, 3) {
            let another = cluster.dice.index(agents.count());
            all.extend(agents.seated(another));
        }
        for by in all {
            self.decide(cluster, by, (room, id));
        }
    }

    fn request(
        &mut self,
        cluster: &mut Cluster,
        agents: &Agents,
        by: Seated,
        (room, message): (RoomId, MessageId),
    ) {
        let Seated { node, caller } = by;
        let named = cluster.dice.chance(20);
        let approvers = if named { vec![agents.somebody(&mut cluster.dice)] } else { Vec::new() };
        let text = (*cluster.dice.pick(&TEXTS)).to_owned();
        let within = Duration::from_millis(cluster.dice.within(1_000, 6_000));
        let asked = Asked::Request { by: caller.agent.clone(), room };
        let terms = ApprovalTerms { text, approvers, within };
        let new = NewApproval { caller, room, message, terms };
        self.desk.calls.ask(cluster, node, asked, Command::RequestApproval(Box::new(new)));
    }

    fn decide(&mut self, cluster: &mut Cluster, by: Seated, (room, approval): (RoomId, MessageId)) {
        let Seated { node, caller } = by;
        let choices =
            [Choice::Approve, Choice::Always, Choice::Deny, Choice::Change, Choice::Withdraw];
        let choice = *cluster.dice.pick(&choices);
        let asked = Asked::Decide { by: caller.agent.clone(), room, approval };
        let decide = DecideApproval { caller, room, approval, choice, reason: None };
        self.desk.calls.ask(cluster, node, asked, Command::DecideApproval(Box::new(decide)));
    }

    /// How an approval stands, as a node says it.
    fn look(&mut self, cluster: &mut Cluster, node: usize, (room, approval): (RoomId, MessageId)) {
        let asked = Asked::Look { room, approval };
        let by: Reader = (*KEY).into();
        let command = Command::ReadApproval { by, room, approval };
        self.desk.calls.ask(cluster, node, asked, command);
    }

    fn is_named(&mut self, view: &ApprovalView) {
        if self.known.iter().all(|known| known.id != view.id) {
            self.known.push(Known { room: view.room, id: view.id });
        }
    }
}

impl Matter for Approvals {
    type Asked = Asked;
    type View = BTreeMap<(RoomId, MessageId), Option<Stands>>;

    fn desk(&self) -> &Desk<Self::Asked, Self::View> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<Self::Asked, Self::View> {
        &mut self.desk
    }

    fn answered(
        &mut self,
        cluster: &Cluster,
        node: usize,
        asked: &Asked,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        match (asked, result) {
            (Asked::Say { by, room }, Ok(Outcome::Said(said))) => {
                self.said.push((by.clone(), *room, said.message));
            }
            (Asked::Request { by, room }, Ok(Outcome::Approval(view))) => {
                if (&view.by, view.room) != (by, *room) {
                    return broken("replies", format!("{by} asked in {room} and got {view:?}"));
                }
                self.is_named(view);
            }
            (Asked::Decide { by, room, approval }, Ok(Outcome::Decided(decided))) => {
                if decided.granted && cluster.is_honest() {
                    self.is_granted(node, by, (*room, *approval))?;
                }
            }
            (Asked::Look { room, approval }, Ok(Outcome::Approval(view))) => {
                let stands = view.decided.as_ref().map(Stands::of);
                self.desk.views.entry(node).or_default().insert((*room, *approval), stands);
            }
            (Asked::Request { room, .. }, Err(Refused::NotDurable))
                if cluster.rooms.is_ephemeral(*room) => {}
            // The voucher of its node had not come to the one that decides, or is not written yet.
            (Asked::Decide { .. }, Err(Refused::Full(why)))
                if why.contains("was shown its key") && !cluster.plan.is_undisturbed() => {}
            (Asked::Decide { .. }, Err(Refused::Full(why)))
                if why.contains("cannot prove") || why.contains("too many want") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The node of its agent has started anew since the message, or has not heard of the approval; or it is not for this agent.
    fn may_be_refused(&self, asked: &Asked, refused: &Refused) -> bool {
        match asked {
            Asked::Say { .. } => false,
            Asked::Request { .. } | Asked::Look { .. } => *refused == Refused::NoApproval,
            Asked::Decide { .. } => matches!(refused, Refused::NoApproval | Refused::NotApprover),
        }
    }

    /// A node that starts anew has told what it was about to tell, or lost it with its clients.
    fn lost(&mut self, _: &Cluster, node: usize) {
        self.told.retain(|(at, _), _| *at != node);
        self.said.retain(|(by, ..)| by.node != node);
    }

    fn says_in(asked: &Asked) -> Option<RoomId> {
        if let Asked::Say { room, .. } = asked { Some(*room) } else { None }
    }
}

/// The promises of every moment.
impl Approvals {
    /// *decision, told*, to the one that decides.
    fn is_granted(
        &self,
        node: usize,
        by: &AgentId,
        (room, approval): (RoomId, MessageId),
    ) -> Result<(), Broken> {
        let acts = self.acts.get(&room).into_iter().flatten();
        let is_here =
            acts.filter_map(|(place, act)| Some((place, act.grants()?))).any(|(place, asked)| {
                self.held.get(&(room, *place)).is_some_and(|held| held.contains(&node))
                    && fold::ask_of(&self.acts, room, asked)
                        .is_some_and(|(ask, id)| &ask.by == by && id == approval)
            });
        if is_here {
            return Ok(());
        }
        let text = format!("node{node} tells {by} that it has decided {approval}, and has no act");
        broken("decision, told", text)
    }

    /// *proven*. A liar's ask counts only where it can speak for the agent.
    pub(super) fn liar_asked(&mut self, room: RoomId, place: EntryRef, asked: Forged) {
        let known = self.forged.entry((room, place)).or_insert_with(|| asked.clone());
        // A log that forked has two entries there, and each may be answered.
        known.is_its_own |= known.key != asked.key || asked.is_its_own;
    }

    /// An act is durable at a node.
    pub(super) fn stored(
        &mut self,
        cluster: &mut Cluster,
        written: Written,
        act: ApprovalAct,
    ) -> Result<(), Broken> {
        let Written { node, room, place, clock, .. } = written;
        if matches!(act, ApprovalAct::Answered(_)) {
            self.held.entry((room, place)).or_default().insert(node);
        }
        let acts = self.acts.entry(room).or_default();
        if acts.contains_key(&place) {
            return Ok(());
        }
        let answer =
            if let ApprovalAct::Answered(answer) = &act { Some(answer.clone()) } else { None };
        acts.insert(place, Act { clock, act });
        let Some(answer) = answer.filter(|it| it.verdict == ApprovalVerdict::Granted) else {
            return Ok(());
        };
        let forged = self.forged.get(&(room, answer.asked));
        if let Some(forged) = forged.filter(|forged| !forged.may_count(cluster)) {
            return broken("proven", format!("{place:?} grants {forged:?}"));
        }
        cluster.coverage.count(Happening::Decided);
        if cluster.is_honest() { self.is_once(room, place, &answer) } else { Ok(()) }
    }

    /// *decided once*: judged by the answers of one log in one era.
    fn is_once(
        &self,
        room: RoomId,
        place: EntryRef,
        answer: &ApprovalAnswer,
    ) -> Result<(), Broken> {
        let Some((ask, id)) = fold::ask_of(&self.acts, room, answer.asked) else { return Ok(()) };
        if fold::verdict(ask.wish).is_none() {
            return Ok(());
        }
        let Some(acts) = self.acts.get(&room) else { return Ok(()) };
        let before = acts.range(EntryRef { seq: 0, ..place }..place);
        let same = before.filter_map(|(at, act)| Some((at, act.answer()?))).find(|(_, other)| {
            other.era == answer.era
                && other.verdict == ApprovalVerdict::Granted
                && fold::ask_of(&self.acts, room, other.asked)
                    .is_some_and(|(other, of)| of == id && fold::verdict(other.wish).is_some())
        });
        match same {
            None => Ok(()),
            Some((at, other)) => {
                let text = format!("{at:?} {other:?} and {place:?} {answer:?} decide {id}");
                broken("decided once", text)
            }
        }
    }

    /// A node tells its members of an approval.
    pub(super) fn told(&mut self, cluster: &mut Cluster, node: usize, event: &RoomEvent) {
        if let RoomEvent::ApprovalAsked(view) = event {
            self.is_named(view);
        }
        let RoomEvent::ApprovalDecided(view) = event else { return };
        let Some(decided) = &view.decided else { return };
        let stands = Stands::of(decided);
        cluster.coverage.count(match stands.verdict.word() {
            "expired" => Happening::Undecided,
            _ => Happening::DecisionTold,
        });
        let before = self.told.insert((node, view.id), stands);
        if before.is_some() {
            cluster.coverage.count(Happening::DecidedAnew);
        }
    }
}

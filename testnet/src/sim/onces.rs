//! Things that at most one agent does, in a simulated world: agents ask for them, some at once, keep them, and give them back.
//!
//! *once*: in one era a subject is granted anew only when the grant before was given back, or its lease had run out; a
//! sequencer answers an ask once. It grants none for an agent by a node that cannot speak for that (*proven*). *once, leased*:
//! an agent that counts its lease from when it asked never counts on what another one was granted. *once, told*:
//! an agent that is told that it has something has it by an act that its node has stored, and two nodes if it is told so; one
//! that has it no more is told. *same holders*: in the end every node names the same one of each subject, which is the one
//! that all acts make, by a fold of the simulation's own. *once ends*: once everybody is there again, of all that ask for
//! one thing one gets it.

pub(super) mod end;
mod fold;
mod leases;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        command::{Caller, Command, Outcome, Refused},
        event::RoomEvent,
        once::{Once, OnceAnswered, OnceHolder, OnceWant, WhyLost},
    },
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::once::{OnceAct, OnceAnswer, OnceVerdict},
};

use self::{fold::Act, leases::Lease};
use super::{
    agents::Agents,
    cluster::Cluster,
    coverage::Happening,
    parts::{Desk, Matter, Seated, Written},
    promises::{Broken, broken},
    tasks::Forged,
};

/// Few, so that many ask for one.
const SUBJECTS: [&str; 3] = ["deploy", "backup", "report"];

/// The id of no grant: who asks to keep it is told who has the subject.
const NO_GRANT: MessageId = MessageId([1; 16]);

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Want { at: Duration, by: Caller, room: RoomId, subject: String, want: OnceWant },
    Look { room: RoomId, subject: String },
}

/// A grant of which an agent was told.
#[derive(Clone, Debug)]
struct Got {
    node: usize,
    by: Caller,
    room: RoomId,
    subject: String,
    grant: MessageId,
    lease: Lease,
    /// It has asked to give it back, or was told that it has it no more.
    is_over: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Onces {
    desk: Desk<Asked, BTreeMap<(RoomId, String), Option<OnceHolder>>>,
    got: Vec<Got>,
    /// Every act that was durable anywhere, of nodes that do not lie.
    acts: BTreeMap<RoomId, BTreeMap<EntryRef, Act>>,
    /// The nodes that have stored each answer.
    held: BTreeMap<(RoomId, EntryRef), BTreeSet<usize>>,
    /// Asks by nodes that lie.
    forged: BTreeMap<(RoomId, EntryRef), Forged>,
    /// Grants of which a node has told that they are lost.
    told: BTreeSet<(usize, MessageId)>,
    /// How often somebody was told that it has something.
    granted: u64,
}

/// Acts of agents.
impl Onces {
    /// An agent, or some at once, want something.
    pub(super) fn act(&mut self, cluster: &mut Cluster, agents: &Agents, i: usize) {
        let rooms = agents.rooms_of(i);
        let Some(by) = agents.seated(i).filter(|_| !rooms.is_empty()) else { return };
        let has = self.got.iter().rposition(|got| got.by == by.caller && !got.is_over);
        if let Some(has) = has.filter(|_| cluster.dice.chance(60)) {
            let Got { room, subject, grant, .. } = self.got[has].clone();
            let gives_back = cluster.dice.chance(50);
            self.got[has].is_over |= gives_back;
            self.got[has].lease.is_given_back |= gives_back;
            let want = if gives_back { OnceWant::Release(grant) } else { OnceWant::Renew(grant) };
            return self.want(cluster, by, (room, &subject), want);
        }
        let room = *cluster.dice.pick(&rooms);
        let subject = *cluster.dice.pick(&SUBJECTS);
        let mut all = vec![by];
        for _ in 0..cluster.dice.within(0, 3) {
            let another = cluster.dice.index(agents.count());
            all.extend(agents.seated(another));
        }
        for by in all {
            let lease = Duration::from_millis(cluster.dice.within(1_000, 8_000));
            let lease = cluster.dice.chance(70).then_some(lease);
            self.want(cluster, by, (room, subject), OnceWant::Take(lease));
        }
    }

    fn want(
        &mut self,
        cluster: &mut Cluster,
        by: Seated,
        (room, subject): (RoomId, &str),
        want: OnceWant,
    ) {
        let Seated { node, caller } = by;
        let subject = subject.to_owned();
        let (at, by, of) = (cluster.now(), caller.clone(), subject.clone());
        let asked = Asked::Want { at, by, room, subject: of, want };
        let once = Once { caller, room, subject, want };
        self.desk.calls.ask(cluster, node, asked, Command::Once(Box::new(once)));
    }

    /// The holder of a subject, as a node says it to an agent.
    fn look(&mut self, cluster: &mut Cluster, by: Seated, room: RoomId, subject: &str) {
        let Seated { node, caller } = by;
        let subject = subject.to_owned();
        let asked = Asked::Look { room, subject: subject.clone() };
        let once = Once { caller, room, subject, want: OnceWant::Renew(NO_GRANT) };
        self.desk.calls.ask(cluster, node, asked, Command::Once(Box::new(once)));
    }
}

impl Matter for Onces {
    type Asked = Asked;
    type View = BTreeMap<(RoomId, String), Option<OnceHolder>>;

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
            (Asked::Look { room, subject }, Ok(Outcome::Once(answered))) => {
                let view = self.desk.views.entry(node).or_default();
                view.insert((*room, subject.clone()), answered.holder.clone());
            }
            (Asked::Want { .. }, Ok(Outcome::Once(answered))) if !answered.granted => {}
            (Asked::Want { at, by, room, subject, want }, Ok(Outcome::Once(answered))) => {
                match want {
                    OnceWant::Take(_) => {
                        self.granted += 1;
                        let lease = Lease::new(*at, cluster.now());
                        self.is_granted(cluster, (node, lease), (by, *room, subject), answered)?;
                    }
                    OnceWant::Renew(grant) => self.is_renewed(cluster, *grant, *at)?,
                    OnceWant::Release(_) => {}
                }
            }
            (Asked::Want { room, .. } | Asked::Look { room, .. }, Err(Refused::NotDurable))
                if cluster.rooms.is_ephemeral(*room) => {}
            // The voucher of its node had not come to the one that decides, or is not written yet.
            (Asked::Want { .. }, Err(Refused::Full(why)))
                if why.contains("was shown its key") && !cluster.plan.is_undisturbed() => {}
            (Asked::Want { .. }, Err(Refused::Full(why))) if why.contains("cannot prove") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn may_be_refused(&self, _: &Asked, _: &Refused) -> bool {
        false
    }
}

/// The promises of every moment.
impl Onces {
    /// *once, told*.
    fn is_granted(
        &mut self,
        cluster: &Cluster,
        (node, lease): (usize, Lease),
        (by, room, subject): (&Caller, RoomId, &str),
        answered: &OnceAnswered,
    ) -> Result<(), Broken> {
        let Some(holder) = answered.holder.as_ref().filter(|it| it.agent == by.agent) else {
            return broken("once, told", format!("{by:?} has what is {:?}'s", answered.holder));
        };
        let got = Got {
            node,
            by: by.clone(),
            room,
            subject: subject.to_owned(),
            grant: holder.grant,
            lease: Lease { lasts: holder.lease, ..lease },
            is_over: false,
        };
        self.got.push(got);
        self.is_leased_once(cluster, self.got.len() - 1)?;
        // A node that lies may be the one that answers.
        if !cluster.is_honest() {
            return Ok(());
        }
        let acts = self.acts.get(&room).into_iter().flatten();
        // Sequencers of several eras may have granted it.
        let places = acts.filter(|(_, act)| {
            act.grant().is_some_and(|(asked, grant)| {
                MessageId::new(room, asked.log, asked.seq) == holder.grant
                    && (&*grant.subject, &grant.by) == (subject, &by.agent)
            })
        });
        let held = places.filter_map(|(place, _)| self.held.get(&(room, *place)));
        let here = held.filter(|held| held.contains(&node));
        let copies = here.map(BTreeSet::len).max().unwrap_or(0);
        if copies == 0 || answered.durable.is_some_and(|durable| durable > copies) {
            let text = format!("{answered:?} at node{node}, and {copies} nodes have stored it");
            return broken("once, told", text);
        }
        Ok(())
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
        act: OnceAct,
    ) -> Result<(), Broken> {
        let Written { node, room, place, clock, taken, .. } = written;
        if matches!(act, OnceAct::Answered(_)) {
            self.held.entry((room, place)).or_default().insert(node);
        }
        let acts = self.acts.entry(room).or_default();
        if acts.contains_key(&place) {
            return Ok(());
        }
        let answer = if let OnceAct::Answered(answer) = &act { Some(answer.clone()) } else { None };
        acts.insert(place, Act { clock, taken, act });
        let Some(answer) = answer else { return Ok(()) };
        let forged = self.forged.get(&(room, answer.asked));
        let grants = matches!(answer.verdict, OnceVerdict::Granted(_));
        if let Some(forged) = forged.filter(|forged| grants && !forged.may_count(cluster)) {
            return broken("proven", format!("{place:?} grants {forged:?}"));
        }
        if grants {
            cluster.coverage.count(Happening::OnceGranted);
        }
        // A sequencer that goes on from an earlier copy does not know what it has answered since.
        if is_restored(cluster, place) {
            return Ok(());
        }
        self.is_once(cluster, room, place, &answer)
    }

    /// *once*: judged by the answers of one log in one era, in the order in which they were written, and by the time at which
    /// their author took them in. They are stored later, and two of them that are far apart may be stored at once.
    fn is_once(
        &self,
        cluster: &Cluster,
        room: RoomId,
        place: EntryRef,
        answer: &OnceAnswer,
    ) -> Result<(), Broken> {
        let Some(acts) = self.acts.get(&room) else { return Ok(()) };
        let now = acts.get(&place).map_or(Duration::ZERO, |act| act.taken);
        let before = acts.range(EntryRef { seq: 0, ..place }..place);
        let before: Vec<(&Act, &OnceAnswer)> = before
            .filter_map(|(_, act)| Some((act, act.answer()?)))
            .filter(|(_, other)| other.era == answer.era)
            .collect();
        if let Some((_, again)) = before.iter().find(|(_, other)| other.asked == answer.asked) {
            return broken("once", format!("{again:?} and {answer:?} answer one ask"));
        }
        let OnceVerdict::Granted(grant) = &answer.verdict else { return Ok(()) };
        let last = before.iter().rev().find_map(|(act, other)| {
            let (asked, earlier) = act.grant().filter(|(_, it)| it.subject == grant.subject)?;
            Some((act.taken, asked, earlier.lease_ms, other))
        });
        let Some((granted_at, root, lease_ms, earlier)) = last else { return Ok(()) };
        let verdict = |wanted: OnceVerdict| {
            before.iter().rev().find(move |(_, other)| other.verdict == wanted)
        };
        // What its node asked for from the fork of its log on is taken back.
        if verdict(OnceVerdict::Released(root)).is_some() || is_restored(cluster, root) {
            return Ok(());
        }
        // The sequencer of the other side of a split has ended it.
        let elsewhere = acts.iter().filter(|(at, _)| at.log != place.log);
        if elsewhere.into_iter().any(|(_, act)| act.ends().contains(&root)) {
            return Ok(());
        }
        let renewed = verdict(OnceVerdict::Renewed(root)).map_or(granted_at, |(act, _)| act.taken);
        let lease = lease_ms.map(Duration::from_millis);
        if lease.is_some_and(|lease| now >= renewed + lease) {
            return Ok(());
        }
        let text =
            format!("{answer:?} at {now:?} though {earlier:?} is not over, renewed at {renewed:?}");
        broken("once", text)
    }

    /// An agent is told that it has something no more.
    pub(super) fn told(&mut self, cluster: &mut Cluster, node: usize, event: &RoomEvent) {
        if let RoomEvent::OnceLost(lost) = event {
            cluster.coverage.count(match lost.why {
                WhyLost::Lapsed => Happening::OnceLapsed,
                WhyLost::Split => Happening::OnceSplit,
            });
            self.told.insert((node, lost.grant));
            let of_it = |got: &&mut Got| got.grant == lost.grant;
            self.got.iter_mut().filter(of_it).for_each(|got| got.is_over = true);
        }
    }

    /// The agents to which subjects of these rooms belong, by all acts.
    fn holders(&self, room: RoomId) -> BTreeMap<String, (MessageId, AgentId)> {
        fold::fold(room, self.acts.get(&room).into_iter().flatten())
    }
}

/// Whether the author of an entry went on from an earlier copy of its disk.
fn is_restored(cluster: &Cluster, place: EntryRef) -> bool {
    let by = cluster.index(place.log.author);
    by.is_some_and(|node| cluster.nodes[node].is_restored())
}

//! Votes in a simulated world: agents open them and cast, and what must hold whatever happens.
//!
//! *sealed*: no ballot is open, not even on the disk of its own node, before a close of its vote is.
//! *ballots*: a result has one ballot of each agent, the one that was acknowledged, and no choice that
//! its agent did not make. *once*: a node tells the result of a vote once, over restarts too. *same
//! result*: in the end every node says the same of every vote, with all ballots open, and none that
//! was acknowledged is lost. *votes end*: a vote whose deadline has passed, or in which everybody has
//! cast, is over everywhere, and those who stayed up were told.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Input,
    api::{
        agenda::{NewVote, VoteNotes, VoteResult, VoteView},
        command::{CallId, Caller, Command, Outcome, Refused},
    },
    limits::{ROSTER_LEASE, VOTES_OPEN_PER_AGENT_MAX},
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::acts::{BallotCast, VoteAct},
};

use super::{
    agents::KEY,
    promises::{Broken, broken},
    world::World,
};

/// Votes that agents look at: the newest. Else few ballots would meet in one vote.
const RECENT: usize = 4;
/// The longest a vote is open that has a deadline.
const DEADLINE_SECS_MAX: u64 = 8;

/// What a call was for.
#[derive(Clone, Debug)]
enum Asked {
    Open(RoomId, AgentId),
    Cast(MessageId, AgentId, u64),
    View,
}

/// A vote that was made.
#[derive(Clone, Debug)]
struct Made {
    vote: MessageId,
    room: RoomId,
    options: u64,
    by: (usize, AgentId),
}

/// What an agent did in a vote.
#[derive(Debug, Default)]
struct Ballot {
    /// What it tried to choose, each time.
    tried: Vec<u64>,
    /// What it was told to have chosen, and by which node.
    acknowledged: Option<(u64, usize)>,
}

/// Who may vote, who has, in whoever's words, and when it is over. Unix milliseconds.
#[derive(Debug, Default)]
struct Poll {
    voters: BTreeSet<AgentId>,
    cast: BTreeSet<AgentId>,
    closes_ms: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Votes {
    asked: BTreeMap<CallId, (usize, Asked)>,
    made: Vec<Made>,
    ballots: BTreeMap<(MessageId, AgentId), Ballot>,
    /// Votes that somebody has closed, durably.
    closed: BTreeSet<(RoomId, EntryRef)>,
    /// Votes of honest nodes that the liar has closed.
    closed_by_liar: BTreeSet<(RoomId, EntryRef)>,
    /// All votes that were opened.
    polls: BTreeMap<(RoomId, EntryRef), Poll>,
    /// In whose name the liar has cast, in which rooms. Its ballots never open, so no result has them.
    cast_by_liar: BTreeSet<(RoomId, AgentId)>,
    /// When each node heard another one last, and who heard nothing of whom for [`ROSTER_LEASE`] at some time.
    heard: BTreeMap<(usize, usize), Duration>,
    missed: BTreeSet<(usize, usize)>,
    /// Results told, by node.
    told: BTreeMap<(usize, MessageId), usize>,
    /// Nodes that were down at some time: what they were about to say is lost.
    went_down: BTreeSet<usize>,
    /// What each node says of the vote that is asked about: `None` if it knows of none.
    views: BTreeMap<usize, Option<VoteView>>,
    /// Ballots that were acknowledged, and that ended up in a result.
    pub(super) cast: u64,
}

impl Votes {
    /// Calls that were open are never answered.
    pub(super) fn node_down(&mut self, node: usize) {
        self.asked.retain(|_, (at, _)| *at != node);
        self.went_down.insert(node);
    }

    fn cast(&mut self, room: RoomId, ballot: BallotCast) {
        self.polls.entry((room, ballot.vote)).or_default().cast.insert(ballot.agent);
    }

    /// A node hears another one.
    pub(super) fn hears(&mut self, pair: (usize, usize), now: Duration) {
        if self.has_missed(pair, now) {
            self.missed.insert(pair);
        }
        self.heard.insert(pair, now);
    }

    /// Whether a node has heard nothing of another one for so long, now or earlier, that it counts as gone.
    fn has_missed(&self, pair: (usize, usize), now: Duration) -> bool {
        let last = self.heard.get(&pair).copied().unwrap_or_default();
        self.missed.contains(&pair) || now >= last + ROSTER_LEASE
    }

    /// Calls that nobody answered though their node lives.
    pub(super) fn open(&self) -> usize {
        self.asked.len()
    }

    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// How many votes of an agent may still be open in a room: their node told no result of them.
    fn open_of(&self, (node, agent): (usize, &AgentId), room: RoomId) -> usize {
        let made = self.made.iter().filter(|it| it.room == room && it.by == (node, agent.clone()));
        made.filter(|it| !self.told.contains_key(&(node, it.vote))).count()
    }

    /// Whether the liar has cast in this agent's name in the room of a vote.
    fn may_be_cast_by_liar(&self, vote: MessageId, agent: &AgentId) -> bool {
        let room = self.made.iter().find(|it| it.vote == vote).map(|it| it.room);
        room.is_some_and(|room| self.cast_by_liar.contains(&(room, agent.clone())))
    }

    /// An ephemeral room ended at a node, with what its agents had cast there. It may come back from another
    /// node, which had heard of the vote and not of these ballots.
    pub(super) fn forgot(&mut self, node: usize, room: RoomId) {
        let votes: BTreeSet<MessageId> =
            self.made.iter().filter(|it| it.room == room).map(|it| it.vote).collect();
        let here = self.ballots.iter_mut().filter(|((vote, _), _)| votes.contains(vote));
        for (_, ballot) in here {
            ballot.acknowledged.take_if(|(_, by)| *by == node);
        }
    }

    /// How many agents' ballots of a vote were acknowledged.
    fn acknowledged(&self, vote: MessageId) -> usize {
        let ballots = self.ballots.iter().filter(|((of, _), _)| *of == vote);
        ballots.filter(|(_, it)| it.acknowledged.is_some()).count()
    }
}

/// What agents do.
impl World {
    fn ask_of_votes(&mut self, node: usize, asked: Asked, command: Command) {
        let call = self.call();
        self.votes.asked.insert(call, (node, asked));
        self.give(node, Input::Command { call, command });
    }

    /// An agent opens a vote, or casts in one.
    pub(super) fn vote_some(&mut self, i: usize) {
        let Some((node, caller)) = self.agents.caller(i) else { return };
        let recent = self.votes.made.len().saturating_sub(RECENT);
        let recent = self.votes.made[recent..].to_vec();
        if recent.is_empty() || self.dice.chance(25) {
            let rooms = self.agents.rooms_of(i);
            if !rooms.is_empty() {
                let room = *self.dice.pick(&rooms);
                let secs = self.dice.within(1, DEADLINE_SECS_MAX);
                let duration_secs = self.dice.chance(60).then_some(secs);
                self.open_vote((node, caller), room, duration_secs);
            }
            return;
        }
        let vote = self.dice.pick(&recent).clone();
        // Now and then there is no such option.
        let beyond = self.dice.chance(5);
        let option = self.dice.within(0, vote.options - u64::from(!beyond));
        self.cast_in((node, caller), vote.vote, option);
    }

    fn open_vote(&mut self, by: (usize, Caller), room: RoomId, duration_secs: Option<u64>) {
        let (node, caller) = by;
        let options = self.dice.within(2, 4);
        let vote = NewVote {
            room,
            title: "which".to_owned(),
            description: None,
            options: (0..options).map(|n| format!("option {n}")).collect(),
            duration_secs,
        };
        let asked = Asked::Open(room, caller.agent.clone());
        self.ask_of_votes(node, asked, Command::CreateVote { caller, vote });
    }

    fn cast_in(&mut self, by: (usize, Caller), vote: MessageId, option: u64) {
        let (node, caller) = by;
        let agent = AgentId::clone(&caller.agent);
        let ballot = self.votes.ballots.entry((vote, agent.clone())).or_default();
        ballot.tried.push(option);
        let command = Command::CastVote { caller, vote, option };
        self.ask_of_votes(node, Asked::Cast(vote, agent, option), command);
    }

    /// Whether the call was about votes; and if so what the answer says.
    pub(super) fn vote_replied(
        &mut self,
        node: usize,
        call: CallId,
        result: &Result<Outcome, Refused>,
    ) -> Result<bool, Broken> {
        let Some((_, asked)) = self.votes.asked.remove(&call) else { return Ok(false) };
        self.agents.answered += 1;
        self.agents.refused += u64::from(result.is_err());
        match (asked, result) {
            (Asked::Open(room, agent), Ok(Outcome::Vote(view))) => {
                let options = view.options.len() as u64;
                let by = (node, agent);
                self.votes.made.push(Made { vote: view.vote, room, options, by });
            }
            (Asked::Open(room, agent), Err(Refused::Full(_)))
                if self.votes.open_of((node, &agent), room) >= VOTES_OPEN_PER_AGENT_MAX => {}
            (Asked::Cast(vote, agent, option), Ok(Outcome::Cast { cast, eligible })) => {
                if cast > eligible {
                    return broken("ballots", format!("{cast} of {eligible} have cast in {vote}"));
                }
                let ballot = self.votes.ballots.entry((vote, agent)).or_default();
                if ballot.acknowledged.replace((option, node)).is_some() && !self.is_exempt(node) {
                    return broken("ballots", format!("two ballots of one agent in {vote}"));
                }
            }
            (Asked::View, Ok(Outcome::Vote(view))) => {
                self.votes.views.insert(node, Some((**view).clone()));
            }
            (Asked::View, Err(Refused::NoVote)) => {
                self.votes.views.insert(node, None);
            }
            (Asked::Cast(vote, agent, _), Err(Refused::AlreadyVoted)) => {
                let by_liar = self.votes.may_be_cast_by_liar(vote, &agent);
                let ballot = self.votes.ballots.entry((vote, agent)).or_default();
                if ballot.tried.len() < 2 && !by_liar && !self.is_exempt(node) {
                    let text = "an agent that never cast has voted already".to_owned();
                    return broken("ballots", text);
                }
            }
            (asked, Err(refused)) if may_be_refused(&asked, refused) => {}
            (_, Err(_)) if self.is_exempt(node) => {}
            (asked, result) => {
                return broken("replies", format!("node{node}: {asked:?} got {result:?}"));
            }
        }
        Ok(true)
    }
}

/// What else may be in the way: the room ended, the agent lost its seat or its connection, the vote
/// has not come to this node yet, or is over.
fn may_be_refused(asked: &Asked, refused: &Refused) -> bool {
    let casts = matches!(asked, Asked::Cast(..));
    match refused {
        Refused::NoRoom
        | Refused::NotMember
        | Refused::Superseded
        | Refused::Closed
        | Refused::Stopping => true,
        Refused::NoVote | Refused::VoteClosed | Refused::NotEligible => casts,
        Refused::NoOption { max } => {
            matches!(asked, Asked::Cast(_, _, option) if *option > *max as u64)
        }
        Refused::AlreadyVoted
        | Refused::NotYours
        | Refused::NameTaken(_)
        | Refused::DiskFull
        | Refused::AgentTaken(_)
        | Refused::Plaintext
        | Refused::TooLarge { .. }
        | Refused::Invalid(_)
        | Refused::NotLeader
        | Refused::ElectionRuns
        | Refused::NoElection
        | Refused::NoTask
        | Refused::Held { .. }
        | Refused::NoKey
        | Refused::TooManyAgents { .. }
        | Refused::TooManyRooms { .. }
        | Refused::Full(_) => false,
    }
}

/// What must hold at every moment.
impl World {
    /// *sealed*. Whatever leaves a node was made durable there before.
    pub(super) fn vote_stored(
        &mut self,
        node: usize,
        (room, place): (RoomId, EntryRef),
        act: VoteAct,
    ) -> Result<(), Broken> {
        let own = place.log.author == self.nodes[node].id;
        match act {
            VoteAct::Closed(it) => {
                if self.votes.closed.insert((room, it.vote)) {
                    let opened_it = self.nodes[node].id == it.vote.log.author;
                    let by = if opened_it { "its opener" } else { "another" };
                    self.say(|| format!("node{node}: {by} closes a vote of room {room}"));
                }
            }
            // Others get it later: it is for whoever opens its ballots to know that the vote is closed.
            VoteAct::Shown(it)
                if own
                    && !self.votes.closed.contains(&(room, it.vote))
                    && !self.may_believe_liar(node, (room, it.vote)) =>
            {
                let what =
                    format!("node{node} opens ballots of the open vote {:?} in {room}", it.vote);
                return broken("sealed", what);
            }
            VoteAct::Opened(it) => {
                let poll = self.votes.polls.entry((room, place)).or_default();
                poll.voters = it.eligible.into_iter().map(|it| it.agent).collect();
                poll.closes_ms = it.closes_ms;
            }
            VoteAct::Cast(it) => self.votes.cast(room, it),
            VoteAct::Shown(_) | VoteAct::Imported(_) => {}
        }
        Ok(())
    }

    /// The liar may close what it opened, under any of its keys, and cast in anybody's name.
    pub(super) fn liar_voted(&mut self, room: RoomId, act: VoteAct) {
        match act {
            VoteAct::Closed(it) => self.liar_closed(room, it.vote),
            VoteAct::Cast(it) => {
                self.votes.cast_by_liar.insert((room, it.agent.clone()));
                self.votes.cast(room, it);
            }
            VoteAct::Opened(_) | VoteAct::Shown(_) | VoteAct::Imported(_) => {}
        }
    }

    fn liar_closed(&mut self, room: RoomId, vote: EntryRef) {
        let own = self.is_a_lie((vote.log, vote.seq));
        let closed = if own { &mut self.votes.closed } else { &mut self.votes.closed_by_liar };
        closed.insert((room, vote));
    }

    /// Anybody may close a vote that is over, or in which all have cast, or of a node that is gone: so a liar is believed
    /// there, too.
    fn may_believe_liar(&self, node: usize, vote: (RoomId, EntryRef)) -> bool {
        let wall_ms = self.nodes[node].now(self.now).wall_ms;
        let is_over = self.votes.polls.get(&vote).is_some_and(|it| {
            it.voters.is_subset(&it.cast) || it.closes_ms.is_some_and(|at| wall_ms >= at)
        });
        let opener = self.index(vote.1.log.author);
        let gone = opener.is_none_or(|it| self.votes.has_missed((node, it), self.now));
        (gone || is_over) && self.votes.closed_by_liar.contains(&vote)
    }

    /// *ballots* and *once*.
    pub(super) fn vote_ended(&mut self, node: usize, result: &VoteResult) -> Result<(), Broken> {
        if self.plan.scripted.is_some() {
            // The checkers of scenarios know whose ballots these are.
            return Ok(());
        }
        let VoteResult { vote: view, ballots } = result;
        let vote = view.vote;
        self.say(|| format!("node{node}: {vote} ends with {:?} {:?}", view.tally, view.notes));
        if self.is_exempt(node) {
            return Ok(());
        }
        let told = self.votes.told.entry((node, vote)).or_default();
        *told += 1;
        // What was memory only may have to be told again after a crash.
        if *told > 1 && !self.promises.ephemeral.contains(&view.room) {
            return broken("once", format!("node{node} tells the result of {vote} again"));
        }
        let mut tally = vec![0; view.options.len()];
        let mut agents = BTreeSet::new();
        for (agent, _, choice) in ballots {
            tally[*choice as usize] += 1;
            let ballot = self.votes.ballots.get(&(vote, agent.clone()));
            let choice = u64::from(*choice);
            let chosen = ballot.is_some_and(|it| {
                it.tried.contains(&choice) && it.acknowledged.is_none_or(|(it, _)| it == choice)
            });
            if !chosen || !agents.insert(agent) {
                let text = format!("node{node}: {agent} chose {choice} in {vote}, and {ballot:?}");
                return broken("ballots", text);
            }
        }
        self.votes.cast += ballots.len() as u64;
        if view.tally.as_ref() != Some(&tally) || !view.closed {
            return broken("ballots", format!("node{node}: {ballots:?} make {view:?}"));
        }
        Ok(())
    }
}

/// What must hold in the end.
impl World {
    /// *same result* and *votes end*, of all votes of rooms that are still there.
    pub(super) fn votes_converge(&mut self) -> Result<(), Broken> {
        let made = self.votes.made.clone().into_iter();
        let made = made.filter(|it| !self.promises.ephemeral.contains(&it.room));
        for Made { vote, room, .. } in made.collect::<Vec<_>>() {
            let views = self.views_of(vote)?;
            let first = &views[0];
            for (node, view) in views.iter().enumerate() {
                if of_all(view) != of_all(first) {
                    let text = format!("node0 says {first:?}, node{node} says {view:?}");
                    return broken("same result", text);
                }
                self.vote_is_whole(view)?;
                if room == RoomId::lobby(self.secret.mesh_id()) {
                    self.vote_was_told(node, view)?;
                }
            }
        }
        Ok(())
    }

    /// What every node says of a vote.
    fn views_of(&mut self, vote: MessageId) -> Result<Vec<VoteView>, Broken> {
        self.ask_all_of(vote)?;
        let views: Vec<VoteView> =
            std::mem::take(&mut self.votes.views).into_values().flatten().collect();
        if views.len() < self.nodes.len() {
            return broken("same result", format!("only {} nodes know {vote}", views.len()));
        }
        Ok(views)
    }

    fn ask_all_of(&mut self, vote: MessageId) -> Result<(), Broken> {
        self.votes.views.clear();
        for node in 0..self.nodes.len() {
            self.ask_of_votes(node, Asked::View, Command::GetVote { key: KEY, agent: None, vote });
        }
        let until = self.now + Duration::from_millis(20);
        self.run_until(until)
    }

    /// *same result* where somebody forked or parted: all others say the same, if only that there is no such vote.
    pub(super) fn others_say_the_same_of_votes(
        &mut self,
        forked: Option<usize>,
    ) -> Result<(), Broken> {
        for made in self.votes.made.clone() {
            if self.promises.ephemeral.contains(&made.room) {
                continue;
            }
            self.ask_all_of(made.vote)?;
            let views = std::mem::take(&mut self.votes.views).into_iter();
            // What a node wrote elsewhere before others heard that it forked some of them have, and some do not.
            let by_all = forked != Some(made.by.0);
            let mut others =
                views.filter(|(node, view)| !self.is_exempt(*node) && (by_all || view.is_some()));
            let first = others.next().map(|(_, view)| view.as_ref().map(of_all));
            if let Some((node, view)) =
                others.find(|(_, view)| Some(view.as_ref().map(of_all)) != first)
            {
                return broken("same result", format!("node{node} says {view:?}, not {first:?}"));
            }
        }
        Ok(())
    }

    fn vote_is_whole(&self, view: &VoteView) -> Result<(), Broken> {
        let VoteNotes { closing: _, unopened, late, corrected } = view.notes;
        let due = view.closes_ms.is_some() || view.cast + late == view.eligible;
        if due && view.tally.is_none() {
            return broken("votes end", format!("this should be over: {view:?}"));
        }
        let acknowledged = self.votes.acknowledged(view.vote);
        if unopened > 0 || view.cast + late < acknowledged {
            let text = format!("{acknowledged} ballots were acknowledged: {view:?}");
            return broken("same result", text);
        }
        let undisturbed = self.plan.calm && self.plan.faults.is_empty();
        if undisturbed && (corrected > 0 || (late > 0 && view.closes_ms.is_none())) {
            return broken("same result", format!("in calm weather: {view:?}"));
        }
        Ok(())
    }

    fn vote_was_told(&self, node: usize, view: &VoteView) -> Result<(), Broken> {
        let told = self.votes.told.get(&(node, view.vote)).copied().unwrap_or(0);
        let stayed = !self.votes.went_down.contains(&node);
        if stayed && told != usize::from(view.tally.is_some()) {
            return broken("votes end", format!("node{node} told {told} results: {view:?}"));
        }
        Ok(())
    }

    /// Once everybody is there again, a vote of everybody ends as soon as the last one has cast.
    pub(super) fn everybody_votes(&mut self) -> Result<(), Broken> {
        let lobby = RoomId::lobby(self.secret.mesh_id());
        let agents = 0..self.agents.count();
        let callers: Vec<(usize, Caller)> = agents.filter_map(|i| self.agents.caller(i)).collect();
        // Who has as many open as one may is refused another.
        let may_open = |(node, caller): &&(usize, Caller)| {
            self.votes.open_of((*node, &caller.agent), lobby) < VOTES_OPEN_PER_AGENT_MAX
        };
        let openers: Vec<(usize, Caller)> = callers.iter().filter(may_open).cloned().collect();
        let opener = self.dice.pick(&openers).clone();
        let before = self.votes.made.len();
        self.open_vote(opener, lobby, None);
        let until = self.now + Duration::from_secs(2);
        self.run_until(until)?;
        let Some(vote) = self.votes.made.get(before).map(|it| it.vote) else {
            return broken("votes end", "no vote can be opened after the heal".to_owned());
        };
        for by in callers.clone() {
            let option = self.dice.within(0, 1);
            self.cast_in(by, vote, option);
        }
        // Casting, closing and opening take an exchange of digests each where there is no gossip.
        let until = self.now + Duration::from_secs(5);
        self.run_until(until)?;
        for view in self.views_of(vote)? {
            let whole = view.tally.as_ref().map(|it| it.iter().sum()) == Some(callers.len() as u64);
            if !whole || view.notes != VoteNotes::default() {
                return broken("votes end", format!("everybody has cast: {view:?}"));
            }
        }
        self.votes_converge()
    }
}

/// What every node must say alike: what was corrected since it was told is each node's own business.
fn of_all(view: &VoteView) -> VoteView {
    VoteView { notes: VoteNotes { corrected: 0, ..view.notes }, ..view.clone() }
}

//! Votes in a simulated world: agents open them and cast; and the promises that hold whatever happens.
//!
//! *sealed*: no ballot is open, not even on the disk of its own node, before a close of its vote is.
//! *ballots*: a result has one ballot of each agent, the one that was acknowledged, and no choice that
//! its agent did not make. *once*: a node tells the result of a vote once, over restarts too. *same
//! result*: in the end every node says the same of every vote, with all ballots open, and none that
//! was acknowledged is lost. *votes end*: a vote whose deadline has passed, or in which everybody has
//! cast, is over everywhere, and nodes that stayed up have told it.

pub(super) mod end;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        agenda::{NewVote, VoteResult, VoteView},
        command::{Command, Outcome, Refused},
    },
    limits::{ROSTER_LEASE, VOTES_OPEN_PER_AGENT_MAX},
    name::id::{AgentId, EntryRef, MessageId, RoomId},
    wire::acts::{BallotCast, VoteAct},
};

use super::{
    agents::Agents,
    cluster::Cluster,
    parts::{Desk, Matter, Seated, Written},
    promises::{Broken, broken},
};

/// Votes that agents look at: the newest. Else few ballots would meet in one vote.
const RECENT: usize = 4;
/// The longest a vote is open that has a deadline.
const DEADLINE_SECS_MAX: u64 = 8;

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(super) enum Asked {
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
    node: usize,
    by: AgentId,
}

/// An agent's part in a vote.
#[derive(Debug, Default)]
struct Ballot {
    /// All choices that it tried to make.
    tried: Vec<u64>,
    /// The choice that was acknowledged, and the node that did.
    acknowledged: Option<(u64, usize)>,
}

/// The voters of a vote, those in whose name anybody has cast, and its deadline in Unix milliseconds.
#[derive(Debug, Default)]
struct Poll {
    voters: BTreeSet<AgentId>,
    cast: BTreeSet<AgentId>,
    closes_ms: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Votes {
    desk: Desk<Asked, Option<VoteView>>,
    made: Vec<Made>,
    ballots: BTreeMap<(MessageId, AgentId), Ballot>,
    /// Votes that somebody has closed, durably.
    closed: BTreeSet<(RoomId, EntryRef)>,
    /// Votes of honest nodes that the liar has closed.
    closed_by_liar: BTreeSet<(RoomId, EntryRef)>,
    /// All votes that were opened.
    polls: BTreeMap<(RoomId, EntryRef), Poll>,
    /// When each node heard another one last.
    heard: BTreeMap<(usize, usize), Duration>,
    /// Nodes that at some time heard nothing of another one for [`ROSTER_LEASE`], with that one.
    missed: BTreeSet<(usize, usize)>,
    /// Results told, by node.
    told: BTreeMap<(usize, MessageId), usize>,
    /// Ballots that ended up in a result.
    pub(super) cast: u64,
}

impl Votes {
    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// A node hears another one.
    pub(super) fn hears(&mut self, node: usize, other: usize, now: Duration) {
        if self.has_missed(node, other, now) {
            self.missed.insert((node, other));
        }
        self.heard.insert((node, other), now);
    }

    /// Whether a node has heard nothing of another one for so long, now or earlier, that it counts as gone.
    fn has_missed(&self, node: usize, other: usize, now: Duration) -> bool {
        let last = self.heard.get(&(node, other)).copied().unwrap_or_default();
        self.missed.contains(&(node, other)) || now >= last + ROSTER_LEASE
    }

    fn count_ballot(&mut self, room: RoomId, ballot: BallotCast) {
        self.polls.entry((room, ballot.vote)).or_default().cast.insert(ballot.agent);
    }

    /// How many votes of an agent may still be open in a room: their node told no result of them.
    fn open_of(&self, node: usize, agent: &AgentId, room: RoomId) -> usize {
        let made = self.made.iter().filter(|vote| vote.room == room);
        let made = made.filter(|vote| vote.node == node && vote.by == *agent);
        made.filter(|vote| !self.told.contains_key(&(node, vote.vote))).count()
    }

    /// How many agents' ballots of a vote were acknowledged.
    fn acknowledged(&self, vote: MessageId) -> usize {
        let ballots = self.ballots.iter().filter(|((of, _), _)| *of == vote);
        ballots.filter(|(_, ballot)| ballot.acknowledged.is_some()).count()
    }
}

/// Acts of agents.
impl Votes {
    /// An agent opens a vote, or casts in one.
    pub(super) fn act(&mut self, cluster: &mut Cluster, agents: &Agents, i: usize) {
        let Some(by) = agents.seated(i) else { return };
        let recent = self.made.len().saturating_sub(RECENT);
        let recent = self.made[recent..].to_vec();
        if recent.is_empty() || cluster.dice.chance(25) {
            let rooms = agents.rooms_of(i);
            if !rooms.is_empty() {
                let room = *cluster.dice.pick(&rooms);
                let secs = cluster.dice.within(1, DEADLINE_SECS_MAX);
                let duration_secs = cluster.dice.chance(60).then_some(secs);
                self.open_vote(cluster, by, room, duration_secs);
            }
            return;
        }
        let vote = cluster.dice.pick(&recent).clone();
        // Now and then there is no such option.
        let beyond = cluster.dice.chance(5);
        let option = cluster.dice.within(0, vote.options - u64::from(!beyond));
        self.cast_in(cluster, by, vote.vote, option);
    }

    fn open_vote(
        &mut self,
        cluster: &mut Cluster,
        by: Seated,
        room: RoomId,
        duration_secs: Option<u64>,
    ) {
        let Seated { node, caller } = by;
        let options = cluster.dice.within(2, 4);
        let vote = NewVote {
            room,
            title: "which".to_owned(),
            description: None,
            options: (0..options).map(|n| format!("option {n}")).collect(),
            duration_secs,
        };
        let asked = Asked::Open(room, caller.agent.clone());
        self.desk.calls.ask(cluster, node, asked, Command::CreateVote { caller, vote });
    }

    fn cast_in(&mut self, cluster: &mut Cluster, by: Seated, vote: MessageId, option: u64) {
        let Seated { node, caller } = by;
        let agent = AgentId::clone(&caller.agent);
        let ballot = self.ballots.entry((vote, agent.clone())).or_default();
        ballot.tried.push(option);
        let command = Command::CastVote { caller, vote, option };
        self.desk.calls.ask(cluster, node, Asked::Cast(vote, agent, option), command);
    }
}

impl Matter for Votes {
    type Asked = Asked;
    /// `None`: the node knows no such vote.
    type View = Option<VoteView>;

    fn desk(&self) -> &Desk<Asked, Option<VoteView>> {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk<Asked, Option<VoteView>> {
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
            (Asked::Open(room, agent), Ok(Outcome::Vote(view))) => {
                let (options, by) = (view.options.len() as u64, agent.clone());
                self.made.push(Made { vote: view.vote, room: *room, options, node, by });
            }
            (Asked::Open(room, agent), Err(Refused::Full(_)))
                if self.open_of(node, agent, *room) >= VOTES_OPEN_PER_AGENT_MAX => {}
            (Asked::Cast(vote, agent, option), Ok(Outcome::Cast { cast, eligible })) => {
                if cast > eligible {
                    return broken("ballots", format!("{cast} of {eligible} have cast in {vote}"));
                }
                let ballot = self.ballots.entry((*vote, agent.clone())).or_default();
                let before = ballot.acknowledged.replace((*option, node));
                if before.is_some() && !cluster.is_exempt(node) {
                    return broken("ballots", format!("two ballots of one agent in {vote}"));
                }
            }
            (Asked::View, Ok(Outcome::Vote(view))) => {
                self.desk.views.insert(node, Some((**view).clone()));
            }
            (Asked::View, Err(Refused::NoVote)) => {
                self.desk.views.insert(node, None);
            }
            (Asked::Cast(vote, agent, _), Err(Refused::AlreadyVoted)) => {
                let ballot = self.ballots.entry((*vote, agent.clone())).or_default();
                if ballot.tried.len() < 2 && !cluster.is_exempt(node) {
                    let text = "an agent that never cast has voted already".to_owned();
                    return broken("ballots", text);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The vote has not come to this node yet, or is over.
    fn may_be_refused(&self, asked: &Asked, refused: &Refused) -> bool {
        let Asked::Cast(_, _, option) = asked else { return false };
        if let Refused::NoOption { max } = refused {
            return *option > *max as u64;
        }
        matches!(refused, Refused::NoVote | Refused::VoteClosed | Refused::NotEligible)
    }

    fn lost(&mut self, cluster: &Cluster, node: usize) {
        for room in &cluster.rooms.ephemeral {
            self.ended(node, *room);
        }
    }

    /// The ballots that agents had cast there are lost. The room may come back from another node, which had heard of
    /// the vote and not of these.
    fn ended(&mut self, node: usize, room: RoomId) {
        let made = self.made.iter().filter(|vote| vote.room == room);
        let votes: BTreeSet<MessageId> = made.map(|vote| vote.vote).collect();
        let here = self.ballots.iter_mut().filter(|((vote, _), _)| votes.contains(vote));
        for (_, ballot) in here {
            ballot.acknowledged.take_if(|(_, by)| *by == node);
        }
    }
}

/// The promises of every moment.
impl Votes {
    /// *sealed*. All messages of a node were made durable there before.
    pub(super) fn stored(
        &mut self,
        cluster: &Cluster,
        written: Written,
        act: VoteAct,
    ) -> Result<(), Broken> {
        let Written { node, room, place, .. } = written;
        let here = cluster.nodes[node].id;
        match act {
            VoteAct::Closed(close) => {
                if self.closed.insert((room, close.vote)) {
                    let own = here == close.vote.log.author;
                    let by = if own { "its opener" } else { "another" };
                    cluster.say(|| format!("node{node}: {by} closes a vote of room {room}"));
                }
            }
            // Others get it later: the node that opens its ballots has to know that the vote is closed.
            VoteAct::Shown(shown)
                if place.log.author == here
                    && !self.closed.contains(&(room, shown.vote))
                    && !self.may_believe_liar(cluster, node, room, shown.vote) =>
            {
                let vote = shown.vote;
                let what = format!("node{node} opens ballots of the open vote {vote:?} in {room}");
                return broken("sealed", what);
            }
            VoteAct::Opened(vote) => {
                let poll = self.polls.entry((room, place)).or_default();
                poll.voters = vote.eligible.into_iter().map(|voter| voter.agent).collect();
                poll.closes_ms = vote.closes_ms;
            }
            VoteAct::Cast(ballot) => self.count_ballot(room, ballot),
            VoteAct::Shown(_) | VoteAct::Imported(_) => {}
        }
        Ok(())
    }

    /// The liar may close what it opened, under any of its keys. Its ballots in the names of others count for nobody.
    pub(super) fn liar_wrote(&mut self, cluster: &Cluster, room: RoomId, act: VoteAct) {
        if let VoteAct::Closed(close) = act {
            let own = cluster.is_a_lie((close.vote.log, close.vote.seq));
            let closed = if own { &mut self.closed } else { &mut self.closed_by_liar };
            closed.insert((room, close.vote));
        }
    }

    /// Anybody may close a vote that is over, or in which all have cast, or of a node that is gone: so a liar is believed
    /// there, too.
    fn may_believe_liar(
        &self,
        cluster: &Cluster,
        node: usize,
        room: RoomId,
        vote: EntryRef,
    ) -> bool {
        let wall_ms = cluster.nodes[node].now(cluster.now()).wall_ms;
        let is_over = self.polls.get(&(room, vote)).is_some_and(|poll| {
            poll.voters.is_subset(&poll.cast) || poll.closes_ms.is_some_and(|at| wall_ms >= at)
        });
        let opener = cluster.index(vote.log.author);
        let gone = opener.is_none_or(|opener| self.has_missed(node, opener, cluster.now()));
        (gone || is_over) && self.closed_by_liar.contains(&(room, vote))
    }

    /// *ballots* and *once*.
    pub(super) fn has_ended(
        &mut self,
        cluster: &Cluster,
        node: usize,
        result: &VoteResult,
    ) -> Result<(), Broken> {
        if cluster.plan.scripted.is_some() {
            // The checkers of scenarios know whose ballots these are.
            return Ok(());
        }
        let VoteResult { vote: view, ballots } = result;
        let vote = view.vote;
        cluster.say(|| format!("node{node}: {vote} ends with {:?} {:?}", view.tally, view.notes));
        if cluster.is_exempt(node) {
            return Ok(());
        }
        let told = self.told.entry((node, vote)).or_default();
        *told += 1;
        // A result that was in memory only may have to be told again after a crash.
        if *told > 1 && !cluster.rooms.is_ephemeral(view.room) {
            return broken("once", format!("node{node} tells the result of {vote} again"));
        }
        let mut tally = vec![0; view.options.len()];
        let mut agents = BTreeSet::new();
        for (agent, _, choice) in ballots {
            tally[*choice as usize] += 1;
            let ballot = self.ballots.get(&(vote, agent.clone()));
            let choice = u64::from(*choice);
            let chosen = ballot.is_some_and(|ballot| {
                let acknowledged = ballot.acknowledged.map(|(choice, _)| choice);
                ballot.tried.contains(&choice) && acknowledged.is_none_or(|known| known == choice)
            });
            if !chosen || !agents.insert(agent) {
                let text = format!("node{node}: {agent} chose {choice} in {vote}, and {ballot:?}");
                return broken("ballots", text);
            }
        }
        self.cast += ballots.len() as u64;
        if view.tally.as_ref() != Some(&tally) || !view.closed {
            return broken("ballots", format!("node{node}: {ballots:?} make {view:?}"));
        }
        Ok(())
    }
}

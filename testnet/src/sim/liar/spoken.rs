//! Ballots and claims of tasks in the names of others. They lack nothing but the right to speak: ballots are for votes that there
//! are, are named in a close, and are opened; claims are for tasks of others.

use mesh::{
    name::{
        id::{AgentId, EntryRef, KeyPrint, NodeId, RoomId},
        number::Era,
    },
    wire::{
        acts::{
            BallotCast, BallotsShown, Shown, TaskAct, TaskClaimed, TaskUpdated, VoteAct, VoteClosed,
        },
        entry::Body,
        run::{Carried, Run},
    },
};

use crate::sim::dice::Dice;

/// So many of each it knows.
const KNOWN_MAX: usize = 64;
/// All its ballots are for this option, so that it can open them.
const CHOICE: u32 = 0;
const NONCE: [u8; 32] = [5; 32];

/// A vote that somebody has opened.
#[derive(Clone, Debug)]
struct Poll {
    room: RoomId,
    place: EntryRef,
    voters: Vec<AgentId>,
}

/// A ballot of its own.
#[derive(Clone, Debug)]
struct Forged {
    room: RoomId,
    vote: EntryRef,
    place: EntryRef,
}

/// Where it writes, and with which key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lie {
    pub(super) room: RoomId,
    pub(super) author: NodeId,
    pub(super) key: Option<KeyPrint>,
}

/// Votes and tasks that it knows, and its ballots.
#[derive(Debug, Default)]
pub(super) struct Known {
    polls: Vec<Poll>,
    tasks: Vec<(RoomId, EntryRef)>,
    forged: Vec<Forged>,
}

impl Known {
    /// It reads what somebody has written, or writes something.
    pub(super) fn learn(&mut self, dice: &mut Dice, room: RoomId, place: EntryRef, body: &Body) {
        if let Body::Vote(VoteAct::Opened(vote)) = body {
            let voters: Vec<AgentId> =
                vote.eligible.iter().map(|voter| voter.agent.clone()).collect();
            if !voters.is_empty() {
                dice.remember(&mut self.polls, KNOWN_MAX, Poll { room, place, voters });
            }
        } else if let Body::Task(TaskAct::Assigned(_)) = body {
            dice.remember(&mut self.tasks, KNOWN_MAX, (room, place));
        } else if let Body::Vote(VoteAct::Cast(ballot)) = body {
            let BallotCast { vote, agent, commitment, .. } = ballot;
            if *commitment == BallotCast::commitment(room, *vote, agent, CHOICE, &NONCE) {
                let forged = Forged { room, vote: *vote, place };
                dice.remember(&mut self.forged, KNOWN_MAX, forged);
            }
        }
    }

    /// Where its own entries are, so that later ones can name them.
    pub(super) fn note_own(&mut self, dice: &mut Dice, run: &Run) {
        for (seq, entry) in (run.first..).zip(&run.entries) {
            let Carried::Here(bytes) = &entry.body else { continue };
            let body = Body::decode(entry.facts.kind, bytes);
            self.learn(dice, run.room, EntryRef { log: run.log, seq }, &body);
        }
    }

    /// A step of a vote in this room, with ballots of others that it has made up.
    pub(super) fn vote(&self, dice: &mut Dice, lie: Lie) -> Option<VoteAct> {
        let Lie { room, author, key } = lie;
        let forged = self.forged.iter().filter(|forged| forged.room == room);
        let forged: Vec<Forged> = forged.cloned().collect();
        let own: Vec<&Forged> =
            forged.iter().filter(|forged| forged.place.log.author == author).collect();
        match dice.within(0, 3) {
            2 if !forged.is_empty() => {
                let Forged { vote, place, .. } = dice.pick(&forged).clone();
                let (logs, ballots) = (vec![place.log], vec![(0, place.seq)]);
                Some(VoteAct::Closed(VoteClosed { vote, logs, ballots }))
            }
            3 if !own.is_empty() => {
                let Forged { vote, place, .. } = **dice.pick(&own);
                let ballots = vec![Shown { seq: place.seq, choice: CHOICE, nonce: NONCE }];
                Some(VoteAct::Shown(BallotsShown { vote, ballots }))
            }
            _ => {
                let polls = self.polls.iter().filter(|poll| poll.room == room);
                let polls: Vec<Poll> = polls.cloned().collect();
                if polls.is_empty() {
                    return None;
                }
                let Poll { place: vote, voters, .. } = dice.pick(&polls).clone();
                let agent = dice.pick(&voters).clone();
                let commitment = BallotCast::commitment(room, vote, &agent, CHOICE, &NONCE);
                Some(VoteAct::Cast(BallotCast { vote, agent, commitment, key }))
            }
        }
    }

    /// A claim of somebody's task in this room, for an agent of others.
    pub(super) fn claim(&self, dice: &mut Dice, lie: Lie, agents: &[AgentId]) -> Option<TaskAct> {
        let tasks = self.tasks.iter().filter(|(of, _)| *of == lie.room);
        let tasks: Vec<EntryRef> = tasks.map(|(_, task)| *task).collect();
        if tasks.is_empty() {
            return None;
        }
        let (task, by) = (*dice.pick(&tasks), dice.pick(agents).clone());
        let if_assignee = dice.chance(50).then(|| dice.pick(agents).clone());
        let assignee = Some(Some(by.clone()));
        let update = TaskUpdated { assignee, ..TaskUpdated::of(task, by) };
        let (era, key) = (Era::HOME, lie.key);
        Some(TaskAct::Claimed(TaskClaimed { update, if_assignee, era, key, if_status: None }))
    }
}

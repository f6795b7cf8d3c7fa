//! Ballots and claims of tasks: they count if their node can speak for the agent.

use super::{
    world::{Liar, STEP, World},
    *,
};
use crate::{
    api::agenda::{NewTask, TaskUpdate, TaskView},
    limits::{CLAIM_SETTLE, VOTE_BALLOTS_EACH_MAX, VOTE_SHOW_WITHIN},
    name::{
        id::{AgentId, EntryRef, MessageId},
        number::Era,
    },
    wire::acts::{
        BallotCast, BallotsShown, Named, Shown, TaskAct, TaskClaimed, TaskUpdated, VoteAct,
        VoteClosed, VoteOpened,
    },
};

/// The node of a [`Liar`].
const STRANGER: u8 = 9;
const NONCE: [u8; 32] = [5; 32];

impl World {
    /// All nodes hear what a stranger has written in the lobby.
    fn hear_all(&mut self, liar: &mut Liar, body: &Body) -> EntryRef {
        let (place, run) = liar.write(&self.nodes[0], body);
        self.nodes.iter_mut().for_each(|node| node.hear(&run));
        self.carry();
        place
    }

    /// The key is shown at the stranger's node, and all nodes hear of it.
    fn show_to_stranger(&mut self) {
        for node in &mut self.nodes {
            node.engine.known.directory.assume_shown(identity(STRANGER).node_id(), KEY);
        }
    }

    fn ballot(&self, vote: EntryRef, agent: &str, choice: u32, key: Option<KeyPrint>) -> Body {
        let agent: AgentId = agent.into();
        let commitment = BallotCast::commitment(self.lobby(), vote, &agent, choice, &NONCE);
        Body::Vote(VoteAct::Cast(BallotCast { vote, agent, commitment, key }))
    }

    /// A task at the first node, and a claim of it by a stranger for an agent.
    fn claimed_by_stranger(&mut self, agent: &str) -> MessageId {
        let (caller, room) = (self.callers[0].clone(), self.lobby());
        let task = NewTask::of(room, "do it");
        let made = self.ask(0, Command::AssignTask { caller, task });
        let Ok(Outcome::Task(made)) = made else { panic!("{made:?}") };
        let task = self.nodes[0].engine.known.index.tasks[&made.task].1;
        let update = TaskUpdated {
            assignee: Some(Some(agent.into())),
            ..TaskUpdated::of(task, agent.into())
        };
        let (if_assignee, era, key) = (None, Era::HOME, Some(KEY));
        let claim =
            TaskAct::Claimed(TaskClaimed { update, if_assignee, era, key, if_status: None });
        self.hear_all(&mut Liar::new(STRANGER), &Body::Task(claim));
        made.task
    }

    fn task(&mut self, task: MessageId) -> TaskView {
        let (caller, nothing) = (self.callers[0].clone(), TaskUpdate::of(task));
        match self.ask(0, Command::UpdateTask { caller, update: nothing }) {
            Ok(Outcome::Task(view)) => *view,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_ballot_of_a_node_that_was_not_shown_the_voters_key_counts_nowhere_and_is_in_nobodys_way() {
    for key in [Some(KEY), Some(PRINTS[2]), None] {
        let mut world = World::new(2);
        let vote = world.create(0, None);
        let (place, _) = world.places(0, vote);
        let forged = world.ballot(place, "agent1", 0, key);
        world.hear_all(&mut Liar::new(STRANGER), &forged);
        assert_eq!([0, 1].map(|n| world.view(n, vote).cast), [0, 0]);
        assert_eq!(world.cast(0, vote, 1), Ok((1, 2)));
        assert_eq!(world.closes(), 0, "one has not voted");
        assert_eq!(world.cast(1, vote, 1), Ok((2, 2)), "nobody has voted for it");
        world.carry();
        assert_eq!(world.tallies(vote), vec![Some(vec![0, 2]); 2]);
        assert_eq!(world.ended(1)[0].ballots.len(), 2);
    }
}

#[test]
fn an_agent_whose_ballot_is_pushed_out_by_those_of_others_is_told_so() {
    let mut world = World::new(1);
    let vote = world.create(0, None);
    let (place, _) = world.places(0, vote);
    let forged = world.ballot(place, "agent0", 0, Some(KEY));
    for seed in (20..).take(VOTE_BALLOTS_EACH_MAX) {
        world.hear_all(&mut Liar::new(seed), &forged);
    }
    let refused = world.cast(0, vote, 1).expect_err("its clock is above theirs");
    assert!(refused.to_string().contains("in this agent's name"), "{refused}");
    assert_eq!(world.view(0, vote).cast, 0);
}

/// A ballot and the voucher of its node travel in two rooms.
#[test]
fn a_ballot_counts_from_when_its_nodes_voucher_has_come() {
    let mut world = World::new(2);
    let vote = world.create(0, None);
    let (place, _) = world.places(0, vote);
    let cast = world.ballot(place, "agent1", 0, Some(KEY));
    world.hear_all(&mut Liar::new(STRANGER), &cast);
    world.cast(0, vote, 1).expect("eligible");
    assert_eq!((world.view(0, vote).cast, world.closes()), (1, 0));
    world.show_to_stranger();
    world.pass(STEP * 2);
    assert_eq!((world.view(0, vote).cast, world.closes()), (2, 1));
    // Ids belong to keys: with another owner the ballot is nobody's.
    let mut late = World::new(1);
    let vote = late.create(0, None);
    let (place, _) = late.places(0, vote);
    let cast = late.ballot(place, "agent0", 0, Some(PRINTS[2]));
    late.nodes[0].engine.known.directory.assume_shown(identity(STRANGER).node_id(), PRINTS[2]);
    late.hear_all(&mut Liar::new(STRANGER), &cast);
    late.pass(STEP * 2);
    assert_eq!(late.view(0, vote).cast, 0);
}

/// Of several closes the opener's counts, whatever it names: so it is not believed about ballots.
#[test]
fn whoever_opens_a_vote_counts_no_ballots_that_it_has_made_up() {
    let mut world = World::new(2);
    let mut liar = Liar::new(STRANGER);
    let named = |agent: &str| Named { agent: agent.into(), name: agent.to_owned() };
    let opened = VoteAct::Opened(VoteOpened {
        title: "mine".to_owned(),
        description: None,
        options: vec!["yes".to_owned(), "no".to_owned()],
        eligible: vec![named("agent0"), named("agent1")],
        created_by: "agent0".into(),
        closes_ms: None,
    });
    let place = world.hear_all(&mut liar, &Body::Vote(opened));
    let vote = MessageId::new(world.lobby(), place.log, place.seq);
    world.cast(0, vote, 1).expect("eligible");
    let (_, own) = world.places(0, vote);
    let forged = world.ballot(place, "agent1", 0, Some(KEY));
    let forged = world.hear_all(&mut liar, &forged);
    let logs = vec![own[0].log, forged.log];
    let ballots = vec![(0, own[0].seq), (1, forged.seq)];
    world.hear_all(
        &mut liar,
        &Body::Vote(VoteAct::Closed(VoteClosed { vote: place, logs, ballots })),
    );
    let shown = vec![Shown { seq: forged.seq, choice: 0, nonce: NONCE }];
    let shown = VoteAct::Shown(BallotsShown { vote: place, ballots: shown });
    world.hear_all(&mut liar, &Body::Vote(shown));
    world.pass(VOTE_SHOW_WITHIN + STEP * 2);
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 1]); 2]);
    // The proof may come later than the result.
    world.show_to_stranger();
    assert_eq!(world.tallies(vote), vec![Some(vec![1, 1]); 2]);
    assert_eq!(world.view(0, vote).notes.corrected, 1);
}

#[test]
fn a_claim_of_a_node_that_was_not_shown_the_agents_key_is_not_granted() {
    let mut world = World::new(2);
    let task = world.claimed_by_stranger("agent1");
    world.pass(CLAIM_SETTLE + STEP * 3);
    assert_eq!(world.task(task).assignee, None);
    // It is answered: nobody waits for it, and it wins nothing later.
    world.show_to_stranger();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.task(task).assignee, None);
}

#[test]
fn a_claim_waits_a_moment_for_the_voucher_of_its_node() {
    let mut world = World::new(2);
    let task = world.claimed_by_stranger("agent1");
    assert_eq!(world.task(task).assignee, None);
    world.show_to_stranger();
    world.pass(STEP);
    assert_eq!(world.task(task).assignee, Some("agent1".into()));
}

/// A ballot or a claim that nobody would count is not answered as if it did.
#[test]
fn an_agent_for_which_its_node_cannot_speak_is_told_so() {
    let mut world = World::new(1);
    world.nodes[0].engine.known.directory.assume_owner("agent0", PRINTS[2]);
    let vote = world.create(0, None);
    let refused = world.cast(0, vote, 0).expect_err("the id is another key's");
    assert!(refused.to_string().contains("shown the key"), "{refused}");
    let (caller, room) = (world.callers[0].clone(), world.lobby());
    let new = NewTask::of(room, "do it");
    let made = world.ask(0, Command::AssignTask { caller: caller.clone(), task: new });
    let Ok(Outcome::Task(made)) = made else { panic!("{made:?}") };
    let update = TaskUpdate {
        assignee: Some(Some("agent0".into())),
        if_assignee: Some(None),
        ..TaskUpdate::of(made.task)
    };
    let refused = world.ask(0, Command::UpdateTask { caller, update }).expect_err("the same");
    assert!(refused.to_string().contains("shown the key"), "{refused}");
}

//! Things that at most one agent does, as clients ask for them.

use std::time::Duration;

use super::{
    Node,
    world::{STEP, World},
};
use crate::{
    api::{
        command::{CallId, Caller, Command, NewRoom, Outcome, Refused},
        event::RoomEvent,
        once::{Once, OnceAnswered, OnceLost, OnceWant, WhyLost},
        rules::Field,
    },
    fold::act::Fold as _,
    limits::ONCE_DURABLE_WITHIN,
    name::{
        id::{MessageId, RoomId},
        number::Era,
    },
};

const LEASE: Duration = Duration::from_secs(10);

fn once(caller: &Caller, room: RoomId, subject: &str, want: OnceWant) -> Command {
    let (caller, subject) = (caller.clone(), subject.to_owned());
    Command::Once(Box::new(Once { caller, room, subject, want }))
}

fn answered(result: Result<Outcome, Refused>) -> OnceAnswered {
    match result {
        Ok(Outcome::Once(answered)) => *answered,
        other => panic!("{other:?}"),
    }
}

impl World {
    fn takes(&mut self, n: usize, lease: Option<Duration>) -> CallId {
        let (caller, room) = (self.callers[n].clone(), self.lobby());
        self.begin(n, once(&caller, room, "deploy", OnceWant::Take(lease)))
    }

    fn wants(&mut self, n: usize, want: OnceWant) -> OnceAnswered {
        let (caller, room) = (self.callers[n].clone(), self.lobby());
        let call = self.begin(n, once(&caller, room, "deploy", want));
        self.pass(STEP * 3);
        self.answer(n, call).expect("answered")
    }

    fn answer(&self, n: usize, call: CallId) -> Option<OnceAnswered> {
        self.reply(n, call).map(answered)
    }

    fn holder(&self, n: usize) -> Option<String> {
        let room = &self.nodes[n].engine.known.rooms[&self.lobby()];
        room.folds.onces.holder("deploy").map(|holder| holder.agent.to_string())
    }

    fn lost(&mut self, n: usize) -> Vec<OnceLost> {
        let lost = |event| match event {
            RoomEvent::OnceLost(lost) => Some(OnceLost::clone(&lost)),
            _ => None,
        };
        std::mem::take(&mut self.told[n]).into_iter().filter_map(lost).collect()
    }
}

fn grant(answered: &OnceAnswered) -> MessageId {
    answered.holder.as_ref().expect("somebody has it").grant
}

#[test]
fn of_all_that_ask_at_once_on_several_nodes_exactly_one_has_it() {
    let mut mesh = World::new(3);
    mesh.link();
    let calls = [1, 2, 0].map(|n| (n, mesh.takes(n, None)));
    assert!(calls[..2].iter().all(|(n, call)| mesh.reply(*n, *call).is_none()), "a round trip");
    mesh.pass(STEP * 5);
    let replies = calls.map(|(n, call)| (n, mesh.answer(n, call).expect("answered")));
    let won: Vec<_> = replies.iter().filter(|(_, answered)| answered.granted).collect();
    let [(winner, won)] = &won[..] else { panic!("{replies:?}") };
    assert_eq!(won.durable, Some(2));
    for (n, reply) in &replies {
        assert_eq!(reply.holder, won.holder, "node {n}");
        assert_eq!(mesh.holder(*n), Some(format!("agent{winner}")));
        let room = &mesh.nodes[*n].engine.known.rooms[&mesh.lobby()];
        assert_eq!(room.order.numbering.current(), Era::HOME);
        assert!(!room.folds.onces.is_waiting());
    }
    // Given back, it is free; nobody gives back another one's.
    let id = grant(won);
    let other = usize::from(*winner == 0);
    assert!(!mesh.wants(other, OnceWant::Release(id)).granted);
    assert!(mesh.wants(*winner, OnceWant::Release(id)).granted);
    assert_eq!(mesh.holder(other), None);
    assert!(mesh.wants(other, OnceWant::Take(None)).granted);
    assert!(!mesh.wants(*winner, OnceWant::Renew(id)).granted);
}

#[test]
fn a_grant_says_how_many_nodes_hold_it() {
    let mut mesh = World::new(2);
    let call = mesh.takes(0, None);
    assert_eq!(mesh.answer(0, call).expect("nobody is connected").durable, Some(1));
    mesh.link();
    let call = mesh.begin(0, {
        let (caller, room) = (mesh.callers[0].clone(), mesh.lobby());
        once(&caller, room, "other", OnceWant::Take(None))
    });
    assert_eq!(mesh.answer(0, call), None, "the other one has not said so");
    mesh.carry();
    assert_eq!(mesh.answer(0, call).expect("it has").durable, Some(2));
    // A peer that is connected and silent is waited for, and not for long.
    mesh.down.insert(1);
    let call = mesh.begin(0, {
        let (caller, room) = (mesh.callers[0].clone(), mesh.lobby());
        once(&caller, room, "third", OnceWant::Take(None))
    });
    mesh.pass(ONCE_DURABLE_WITHIN - STEP);
    assert_eq!(mesh.answer(0, call), None);
    mesh.pass(STEP * 2);
    let answered = mesh.answer(0, call).expect("in time");
    assert_eq!((answered.granted, answered.durable), (true, Some(1)));
}

#[test]
fn a_lease_that_is_not_renewed_is_free_again_and_its_agent_is_told() {
    let mut mesh = World::new(2);
    mesh.link();
    let won = mesh.wants(1, OnceWant::Take(Some(LEASE)));
    assert!(won.granted);
    mesh.pass(LEASE - STEP * 6);
    assert!(mesh.wants(1, OnceWant::Renew(grant(&won))).granted);
    mesh.pass(LEASE - STEP * 6);
    let refused = mesh.wants(0, OnceWant::Take(None));
    assert_eq!((refused.granted, &refused.holder), (false, &won.holder), "it was renewed");
    mesh.pass(STEP * 6);
    let taken = mesh.wants(0, OnceWant::Take(None));
    assert!(taken.granted);
    let lost = mesh.lost(1);
    let [lost] = &lost[..] else { panic!("{lost:?}") };
    assert_eq!((lost.grant, lost.why), (grant(&won), WhyLost::Lapsed));
    assert_eq!(lost.holder, taken.holder);
    let late = mesh.wants(1, OnceWant::Renew(grant(&won)));
    assert_eq!((late.granted, late.holder), (false, taken.holder));
    assert_eq!(mesh.lost(0), []);
}

/// The new sequencer has the grants of the one that died: it takes nothing for free that is not.
#[test]
fn what_a_dead_sequencer_granted_is_not_granted_again() {
    let mut mesh = World::new(3);
    mesh.link();
    assert!(mesh.wants(1, OnceWant::Take(Some(LEASE * 10))).granted);
    mesh.down.insert(0);
    let call = mesh.takes(2, None);
    mesh.pass(STEP * 50);
    let refused = mesh.answer(2, call).expect("by the one that took over");
    assert_eq!(
        (refused.granted, refused.holder.map(|it| it.agent)),
        (false, Some("agent1".into()))
    );
    assert!(mesh.nodes[2].engine.known.rooms[&mesh.lobby()].order.numbering.current() > Era::HOME);
}

#[test]
fn after_a_split_one_stands_everywhere_and_the_other_ones_agent_is_told() {
    let mut mesh = World::new(2);
    mesh.groups = vec![0, 1];
    let calls = [0, 1].map(|n| mesh.takes(n, None));
    mesh.pass(STEP * 50);
    let grants: Vec<OnceAnswered> =
        (0..2).map(|n| mesh.answer(n, calls[n]).expect("each side goes on")).collect();
    assert!(grants.iter().all(|it| it.granted));
    mesh.groups = vec![0, 0];
    mesh.pass(STEP * 30);
    let stands = mesh.holder(0).expect("one of them");
    assert_eq!(mesh.holder(1), Some(stands.clone()));
    let loser = usize::from(stands == "agent0");
    let lost = mesh.lost(loser);
    let [lost] = &lost[..] else { panic!("{lost:?}") };
    assert_eq!((lost.grant, lost.why), (grant(&grants[loser]), WhyLost::Split));
    assert_eq!(lost.holder, grants[1 - loser].holder);
    assert_eq!(mesh.lost(1 - loser), []);
    // The loser's node has given it back: when the winner does, it is free.
    assert!(mesh.wants(1 - loser, OnceWant::Release(grant(&grants[1 - loser]))).granted);
    assert_eq!((mesh.holder(0), mesh.holder(1)), (None, None));
}

/// An agent that was told nothing has nothing: a grant for it is given back.
#[test]
fn a_grant_of_which_nobody_was_told_is_given_back() {
    let mut mesh = World::new(2);
    mesh.groups = vec![0, 1];
    mesh.takes(1, None);
    mesh.carry();
    mesh.restart(1);
    mesh.groups = vec![0, 0];
    mesh.pass(STEP * 30);
    assert_eq!((mesh.holder(0), mesh.holder(1)), (None, None));
    assert!(!mesh.nodes[1].engine.known.rooms[&mesh.lobby()].folds.onces.is_waiting());
    assert!(mesh.wants(0, OnceWant::Take(None)).granted);
    // A start reads it back, and tells nobody.
    mesh.told.iter_mut().for_each(Vec::clear);
    for n in 0..2 {
        mesh.restart(n);
        assert_eq!(mesh.holder(n).as_deref(), Some("agent0"), "node {n}");
        assert_eq!(mesh.lost(n), []);
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused_by_name() {
    let mut node = Node::new(1);
    let (ann, room) = (node.joins("ann"), node.lobby());
    node.engine.known.directory.assume_owner("ann", super::KEY);
    let take = OnceWant::Take(None);
    let field = |result: Result<Outcome, Refused>| match result {
        Err(Refused::Field(broken)) => (broken.field, broken.to_string()),
        other => panic!("{other:?}"),
    };
    for bad in [String::new(), "  ".to_owned(), "a\nb".to_owned(), "x".repeat(129)] {
        assert_eq!(field(node.ask(once(&ann, room, &bad, take))).0, Field::Subject, "{bad:?}");
    }
    for millis in [0, 999, 86_400_001] {
        let take = OnceWant::Take(Some(Duration::from_millis(millis)));
        let (field, text) = field(node.ask(once(&ann, room, "s", take)));
        assert_eq!((field, text.contains("1000 to 86400000")), (Field::Lease, true), "{text}");
    }
    let bob = node.attach("bob", false, super::KEY).expect("free");
    let outside = node.ask(once(&bob, room, "s", take)).expect_err("no member");
    assert_eq!(outside, Refused::NotMember);
    let nowhere = node.ask(once(&ann, RoomId([9; 16]), "s", take)).expect_err("no room");
    assert_eq!(nowhere, Refused::NoRoom);
    let fleeting = NewRoom {
        name: "fleeting".to_owned(),
        description: None,
        parent: None,
        ephemeral: true,
        public: true,
        encrypted: false,
    };
    let made = node.ask(Command::CreateRoom { caller: ann.clone(), room: fleeting });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    node.ask(Command::Join { caller: ann.clone(), room: view.room }).expect("public");
    let memory = node.ask(once(&ann, view.room, "s", take)).expect_err("it is memory");
    assert_eq!(memory, Refused::NotDurable);
    let none = answered(node.ask(once(&ann, room, "s", OnceWant::Renew(MessageId([7; 16])))));
    assert_eq!((none.granted, none.holder, none.durable), (false, None, None));
    let fits = "x".repeat(128);
    assert!(answered(node.ask(once(&ann, room, &fits, take))).granted);
}

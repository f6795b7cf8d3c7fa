//! Approvals, as agents ask for them and people decide.

use std::sync::Arc;

use super::{
    Node, said,
    world::{Liar, STEP, World},
};
use crate::{
    api::{
        approval::{
            ApprovalTerms, ApprovalView, Choice, DecideApproval, DecidedNow, NewApproval, Verdict,
        },
        command::{CallId, Caller, Command, Outcome, Reader, Refused},
        event::RoomEvent,
        rules::Field,
    },
    fold::act::Fold as _,
    limits::{APPROVAL_AGAIN_AFTER_MS, APPROVAL_FOR, APPROVALS_OPEN_MAX},
    name::{id::MessageId, number::Era},
    wire::{
        approval::{
            ApprovalAct, ApprovalAnswer, ApprovalAsked, ApprovalRequested, ApprovalVerdict,
            ApprovalWish,
        },
        entry::Body,
    },
};

fn terms(text: &str) -> ApprovalTerms {
    ApprovalTerms { text: text.to_owned(), approvers: Vec::new(), within: APPROVAL_FOR }
}

fn view(result: Result<Outcome, Refused>) -> ApprovalView {
    match result {
        Ok(Outcome::Approval(view)) => *view,
        other => panic!("{other:?}"),
    }
}

fn message(result: Result<Outcome, Refused>) -> MessageId {
    match result {
        Ok(Outcome::Said(said)) => said.message,
        other => panic!("{other:?}"),
    }
}

impl World {
    /// The agent of a node says what it wants, and asks.
    fn seeks(&mut self, n: usize, terms: ApprovalTerms) -> ApprovalView {
        let (caller, room) = (self.callers[n].clone(), self.lobby());
        let message = self.mentions_it(n, &caller);
        let new = NewApproval { caller, room, message, terms };
        let view = view(self.ask(n, Command::RequestApproval(Box::new(new))));
        self.pass(STEP * 3);
        view
    }

    fn mentions_it(&mut self, n: usize, caller: &Caller) -> MessageId {
        let say = super::Say {
            room: self.lobby(),
            speech: super::Speech::Chat,
            content: "may I".to_owned(),
            encryption: super::Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        let call = self.begin(n, Command::Say { caller: caller.clone(), say });
        self.pass(STEP * 50);
        message(self.reply(n, call).expect("it has a number"))
    }

    fn decides(&mut self, n: usize, approval: MessageId, choice: Choice) -> CallId {
        let (caller, room) = (self.callers[n].clone(), self.lobby());
        let reason = Some("so".to_owned());
        let decide = DecideApproval { caller, room, approval, choice, reason };
        self.begin(n, Command::DecideApproval(Box::new(decide)))
    }

    fn end_of(&self, n: usize, call: CallId) -> Option<DecidedNow> {
        self.reply(n, call).map(|result| match result {
            Ok(Outcome::Decided(now)) => *now,
            other => panic!("{other:?}"),
        })
    }

    fn refusal(&self, n: usize, call: CallId) -> Refused {
        self.reply(n, call).expect("it is answered").expect_err("it is refused")
    }

    /// The decision that stands at a node, and whose it is.
    fn verdict_at(&mut self, n: usize, id: MessageId) -> Option<(Verdict, Option<String>)> {
        let (by, room) = (self.callers[n].reader(), self.lobby());
        let decided = view(self.ask(n, Command::ReadApproval { by, room, approval: id })).decided?;
        Some((decided.verdict, decided.by.map(|by| by.to_string())))
    }

    fn open_at(&mut self, n: usize) -> Vec<ApprovalView> {
        let by: Reader = self.callers[n].reader();
        match self.ask(n, Command::ListApprovals { by, room: None }) {
            Ok(Outcome::Approvals(views)) => views,
            other => panic!("{other:?}"),
        }
    }

    /// The decisions of which a node told.
    fn told_of(&mut self, n: usize) -> Vec<Verdict> {
        let decided = |event| match event {
            RoomEvent::ApprovalDecided(view) => Some(view.decided.as_ref().expect("it is").verdict),
            _ => None,
        };
        std::mem::take(&mut self.told[n]).into_iter().filter_map(decided).collect()
    }

    fn asked_of(&self, n: usize) -> usize {
        let asked = |event: &&RoomEvent| matches!(event, RoomEvent::ApprovalAsked(_));
        self.told[n].iter().filter(asked).count()
    }
}

#[test]
fn of_those_who_decide_at_once_at_several_nodes_exactly_one_does() {
    let mut mesh = World::new(3);
    mesh.link();
    let asked = mesh.seeks(0, terms("rm -r build"));
    for n in 0..3 {
        assert_eq!(mesh.asked_of(n), 1, "node {n}");
        assert_eq!(mesh.open_at(n).iter().map(|it| it.id).collect::<Vec<_>>(), [asked.id]);
    }
    let calls = [(1, Choice::Approve), (2, Choice::Deny)]
        .map(|(n, choice)| (n, mesh.decides(n, asked.id, choice)));
    mesh.pass(STEP * 5);
    let ends = calls.map(|(n, call)| mesh.end_of(n, call).expect("answered"));
    assert_eq!(ends.iter().filter(|end| end.granted).count(), 1, "{ends:?}");
    let won = usize::from(ends[1].granted);
    let verdict = [Verdict::Approved, Verdict::Denied][won];
    assert_eq!(ends[1 - won].approval.decided.as_ref().map(|it| it.verdict), Some(verdict));
    for n in 0..3 {
        assert_eq!(
            mesh.verdict_at(n, asked.id),
            Some((verdict, Some(format!("agent{}", won + 1))))
        );
        assert_eq!(mesh.told_of(n), [verdict]);
        assert_eq!(mesh.open_at(n), []);
    }
    let room = &mesh.nodes[0].engine.known.rooms[&mesh.lobby()];
    assert_eq!(room.order.numbering.current(), Era::HOME);
    assert!(!room.folds.approvals.is_waiting());
    // Later ones are told so, and a start tells nobody anew.
    let late = mesh.decides(1, asked.id, Choice::Approve);
    mesh.pass(STEP * 3);
    assert!(!mesh.end_of(1, late).expect("at once").granted);
    for n in 0..3 {
        mesh.restart(n);
        assert_eq!(mesh.verdict_at(n, asked.id).map(|it| it.0), Some(verdict), "node {n}");
        assert_eq!(mesh.told_of(n), []);
    }
}

#[test]
fn after_a_split_a_denial_stands_over_an_approval_and_the_asker_is_told_again() {
    for (asker_side, other_side) in
        [(Choice::Approve, Choice::Deny), (Choice::Deny, Choice::Approve)]
    {
        let mut mesh = World::new(4);
        mesh.link();
        let asked = mesh.seeks(0, terms("deploy"));
        mesh.groups = vec![0, 0, 1, 1];
        let calls = [(1, asker_side), (2, other_side)]
            .map(|(n, choice)| (n, mesh.decides(n, asked.id, choice)));
        mesh.pass(STEP * 60);
        for (n, call) in calls {
            assert!(mesh.end_of(n, call).expect("each side goes on").granted, "node {n}");
        }
        let first = mesh.told_of(0);
        assert_eq!(first.len(), 1);
        mesh.groups = vec![0; 4];
        mesh.pass(STEP * 40);
        for n in 0..4 {
            assert_eq!(
                mesh.verdict_at(n, asked.id).map(|it| it.0),
                Some(Verdict::Denied),
                "node {n}"
            );
        }
        let again = mesh.told_of(0);
        if asker_side == Choice::Approve {
            assert_eq!(again, [Verdict::Denied]);
        } else {
            assert_eq!((first, again), (vec![Verdict::Denied], Vec::new()));
        }
    }
}

/// A no of time is a no: what the other side approved meanwhile does not stand over what the agent was told.
#[test]
fn nobody_decides_after_the_time_and_an_expiry_stands_over_an_approval_from_elsewhere() {
    let mut mesh = World::new(4);
    mesh.link();
    let asked = mesh.seeks(0, terms("deploy"));
    mesh.pass(APPROVAL_FOR + STEP * 20);
    assert_eq!(mesh.told_of(0), [Verdict::Expired]);
    let late = mesh.decides(1, asked.id, Choice::Approve);
    mesh.pass(STEP * 3);
    assert!(!mesh.end_of(1, late).expect("at once").granted);
    for n in 0..4 {
        assert_eq!(mesh.verdict_at(n, asked.id), Some((Verdict::Expired, None)), "node {n}");
    }
    // Across a split.
    let asked = mesh.seeks(0, terms("deploy"));
    mesh.groups = vec![0, 0, 1, 1];
    let call = mesh.decides(2, asked.id, Choice::Approve);
    mesh.pass(APPROVAL_FOR + STEP * 20);
    assert!(mesh.end_of(2, call).expect("in time").granted);
    assert_eq!(mesh.told_of(0), [Verdict::Expired]);
    mesh.groups = vec![0; 4];
    mesh.pass(STEP * 40);
    for n in 0..4 {
        assert_eq!(mesh.verdict_at(n, asked.id), Some((Verdict::Expired, None)), "node {n}");
    }
    assert_eq!(mesh.told_of(0), [], "it was told so");
}

/// The agent's node was down when the time was up: it closes the approval when it is back.
#[test]
fn a_node_that_starts_anew_closes_what_nobody_has_decided() {
    let mut mesh = World::new(2);
    mesh.link();
    let asked = mesh.seeks(1, terms("deploy"));
    mesh.restart(1);
    mesh.pass(APPROVAL_FOR + STEP * 20);
    for n in 0..2 {
        assert_eq!(mesh.verdict_at(n, asked.id), Some((Verdict::Expired, None)), "node {n}");
    }
    let entries = mesh.nodes[1].rows.len();
    mesh.pass(super::Duration::from_millis(APPROVAL_AGAIN_AFTER_MS * 2));
    let acts = mesh.nodes[1].rows[entries..].iter();
    let asks = acts.filter(|row| match row {
        super::Change::Entry { entry, .. } => entry.facts.kind == crate::wire::kinds::APPROVAL,
        _ => false,
    });
    assert_eq!(asks.count(), 0, "once");
}

#[test]
fn always_decides_later_ones_of_that_agent_with_that_text_until_it_is_withdrawn() {
    let mut mesh = World::new(3);
    mesh.link();
    let first = mesh.seeks(1, terms("make test"));
    let call = mesh.decides(2, first.id, Choice::Always);
    mesh.pass(STEP * 3);
    assert!(mesh.end_of(2, call).expect("answered").granted);
    assert_eq!(mesh.verdict_at(0, first.id), Some((Verdict::Always, Some("agent2".to_owned()))));
    let rules = mesh.open_at(0);
    assert!(matches!(&rules[..], [rule] if rule.is_rule && rule.id == first.id));
    mesh.told_of(1);
    let second = mesh.seeks(1, terms("make test"));
    assert_eq!(mesh.told_of(1), [Verdict::ByRule]);
    let (other_text, other_agent) =
        (mesh.seeks(1, terms("make")), mesh.seeks(2, terms("make test")));
    for n in 0..3 {
        assert_eq!(mesh.verdict_at(n, second.id), Some((Verdict::ByRule, None)), "node {n}");
        assert_eq!(mesh.verdict_at(n, other_text.id), None);
        assert_eq!(mesh.verdict_at(n, other_agent.id), None);
    }
    // Not by the agent itself.
    let own = mesh.decides(1, first.id, Choice::Withdraw);
    assert_eq!(mesh.refusal(1, own), Refused::NotApprover);
    let call = mesh.decides(0, first.id, Choice::Withdraw);
    mesh.pass(STEP * 3);
    assert!(mesh.end_of(0, call).expect("answered").granted);
    let third = mesh.seeks(1, terms("make test"));
    for n in 0..3 {
        assert_eq!(mesh.verdict_at(n, third.id), None);
        assert_eq!(mesh.verdict_at(n, second.id), Some((Verdict::ByRule, None)), "it was approved");
        mesh.restart(n);
        assert!(mesh.open_at(n).iter().all(|it| !it.is_rule));
        assert_eq!(mesh.verdict_at(n, second.id), Some((Verdict::ByRule, None)));
    }
}

#[test]
fn those_who_are_named_decide_and_never_the_agent_itself() {
    let mut mesh = World::new(3);
    mesh.link();
    let named = ApprovalTerms { approvers: vec!["agent2".into(), "agent0".into()], ..terms("go") };
    let asked = mesh.seeks(0, named);
    for n in [0, 1] {
        let call = mesh.decides(n, asked.id, Choice::Approve);
        assert_eq!(mesh.refusal(n, call), Refused::NotApprover);
    }
    let call = mesh.decides(2, asked.id, Choice::Change);
    mesh.pass(STEP * 3);
    assert!(mesh.end_of(2, call).expect("answered").granted);
    assert_eq!(mesh.verdict_at(0, asked.id).map(|it| it.0), Some(Verdict::Changes));
    let call = mesh.decides(2, MessageId([9; 16]), Choice::Deny);
    mesh.pass(STEP * 3);
    assert_eq!(mesh.refusal(2, call), Refused::NoApproval);
}

#[test]
fn what_cannot_be_asked_for_is_refused_by_name() {
    let mut node = Node::new(1);
    let (ann, room) = (node.joins("agent0"), node.lobby());
    let message = message(node.say(&ann, room));
    let mut ask = |message, terms| {
        let new = NewApproval { caller: ann.clone(), room, message, terms };
        node.ask(Command::RequestApproval(Box::new(new)))
    };
    let field = |result| match result {
        Err(Refused::Field(broken)) => broken.field,
        other => panic!("{other:?}"),
    };
    for bad in ["  ".to_owned(), String::new(), "x".repeat(4_097)] {
        assert_eq!(field(ask(message, terms(&bad))), Field::Approval);
    }
    let many = ApprovalTerms { approvers: vec!["x".into(); 33], ..terms("x") };
    assert_eq!(field(ask(message, many)), Field::Approvers);
    for secs in [0, 7 * 86_400 + 1] {
        let within = super::Duration::from_secs(secs);
        let long = ApprovalTerms { within, ..terms("x") };
        assert_eq!(field(ask(message, long)), Field::ApprovalTime);
    }
    let none = ask(MessageId([3; 16]), terms("x")).expect_err("no message of it");
    assert_eq!(none, Refused::NoApproval);
    let first = view(ask(message, terms("x")));
    assert_eq!(view(ask(message, terms("y"))), first, "one message asks once");
}

#[test]
fn a_room_has_no_more_open_than_people_look_through() {
    let mut node = Node::new(1);
    let (ann, room) = (node.joins("agent0"), node.lobby());
    let bob = node.joins("agent1");
    let mut ids = Vec::new();
    let ask = |node: &mut Node| {
        let message = message(node.say(&ann, room));
        let new = NewApproval { caller: ann.clone(), room, message, terms: terms("x") };
        (message, node.ask(Command::RequestApproval(Box::new(new))))
    };
    for _ in 0..APPROVALS_OPEN_MAX {
        let (message, asked) = ask(&mut node);
        asked.expect("there is room");
        ids.push(message);
    }
    let (_, full) = ask(&mut node);
    assert!(matches!(full, Err(Refused::Full(text)) if text.contains("256 approvals")));
    let decide =
        DecideApproval { caller: bob, room, approval: ids[0], choice: Choice::Deny, reason: None };
    node.ask(Command::DecideApproval(Box::new(decide))).expect("it is open");
    ask(&mut node).1.expect("there is room again");
}

/// A node that was never shown the key of an agent decides for it, as the sequencer, too; and asks for it.
#[test]
fn decisions_of_a_member_for_agents_whose_key_it_was_not_shown_do_not_count() {
    let mut node = Node::new(1);
    let (ann, room) = (node.joins("agent0"), node.lobby());
    node.joins("agent1");
    let asked = message(node.say(&ann, room));
    let new = NewApproval { caller: ann.clone(), room, message: asked, terms: terms("x") };
    view(node.ask(Command::RequestApproval(Box::new(new))));
    let place = node.engine.known.rooms[&room].folds.approvals.find(asked).expect("it is there");
    let mut liar = Liar::new(9);
    let asks = |wish| ApprovalAsked {
        approval: place,
        by: "agent1".into(),
        wish,
        reason: None,
        era: Era::HOME,
        key: Some(super::KEY),
    };
    let body = Body::Approval(ApprovalAct::Asked(asks(ApprovalWish::Approve)));
    let (lie, run) = liar.write(&node, &body);
    node.hear(&run);
    for _ in 0..50 {
        node.now.mono += STEP;
        node.give(super::Input::Timeout);
    }
    let reads = |node: &mut Node| {
        let (by, approval) = (ann.reader(), asked);
        view(node.ask(Command::ReadApproval { by, room, approval })).decided
    };
    assert_eq!(reads(&mut node), None);
    let approvals = &node.engine.known.rooms[&room].folds.approvals;
    assert!(!approvals.is_waiting() || approvals.is_to_be_judged());
    // The sequencer itself lies: it grants what is nobody's.
    let granted = ApprovalVerdict::Granted;
    let answer = ApprovalAnswer { era: Era::HOME, asked: lie, verdict: granted, by: None };
    let lies = Body::Approval(ApprovalAct::Answered(answer));
    node.engine.known.write_act(room, &lies).expect("it writes what it likes");
    node.turn();
    assert_eq!(reads(&mut node), None);
    // Nor does anybody ask for others.
    let (said_at, run) = liar.write(&node, &Body::Chat(said("may I")));
    node.hear(&run);
    let requested = ApprovalRequested {
        message: said_at,
        by: "agent1".into(),
        text: "y".to_owned(),
        approvers: Vec::new(),
        until_ms: node.now.wall_ms + 60_000,
        key: Some(super::KEY),
    };
    let (_, run) = liar.write(&node, &Body::Approval(ApprovalAct::Requested(requested)));
    node.hear(&run);
    let listed = node.ask(Command::ListApprovals { by: ann.reader(), room: Some(room) });
    let Ok(Outcome::Approvals(listed)) = listed else { panic!("{listed:?}") };
    assert_eq!(listed.iter().map(|it| it.id).collect::<Vec<_>>(), [asked]);
    let told = |effect: &super::Effect| match effect {
        super::Effect::Notify { event: RoomEvent::ApprovalAsked(view), .. } => {
            Some(Arc::clone(view))
        }
        _ => None,
    };
    assert_eq!(node.effects.iter().filter_map(told).map(|it| it.id).collect::<Vec<_>>(), [asked]);
}

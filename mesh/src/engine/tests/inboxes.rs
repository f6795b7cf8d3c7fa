//! Inboxes, and the conversations of direct rooms.

use super::{
    pairs::{Two, signer},
    world::{STEP, World},
    *,
};
use crate::{
    api::{
        agenda::{NewTask, TaskUpdate},
        batch::Change,
        budget::{Answered, Budgets, Conversing, OverBudget, Pace},
        command::{Inbox, InboxAct, Reader, SaidOk, Unfiled},
        event::AgentEvent,
        waits::{Awaited, WaitView},
    },
    limits::INBOX_ITEMS_MAX,
    name::{group::TaskSeed, id::MessageId},
    wire::acts::TaskStatus,
};

impl World {
    pub(super) fn inbox(&mut self, n: usize, caller: &Caller, act: InboxAct) -> Inbox {
        match self.ask(n, Command::Inbox { caller: caller.clone(), act }) {
            Ok(Outcome::Inbox(inbox)) => *inbox,
            other => panic!("{other:?}"),
        }
    }

    /// The items that a node has put into the inbox of an agent, by place.
    pub(super) fn items(&self, n: usize, agent: &str) -> Vec<(u64, Option<Number>)> {
        let items = self.nodes[n].rows.iter().filter_map(|change| match change {
            Change::InboxItem { agent: of, place, item } if **of == *agent => {
                Some((*place, item.map(|item| item.number)))
            }
            _ => None,
        });
        items.collect()
    }

    fn converses(
        &mut self,
        (n, caller): (usize, &Caller),
        room: RoomId,
        conversing: Conversing,
    ) -> Result<SaidOk, Refused> {
        let say =
            Say { conversing: Some(Box::new(conversing)), ..rooms::words(room, "words".into()) };
        let call = self.begin(n, Command::Say { caller: caller.clone(), say });
        self.carry();
        self.pass(STEP * 40);
        match self.reply(n, call).expect("it is answered")? {
            Outcome::Said(said) => Ok(said),
            other => panic!("{other:?}"),
        }
    }

    /// The newest message that a node has told of, as one to be answered.
    fn newest(&self, n: usize) -> Answered {
        let said = self.told[n].iter().rev().find_map(|event| match event {
            RoomEvent::Message(entry) => Some((entry.message, entry.said.clone()?)),
            _ => None,
        });
        let (message, said) = said.expect("something was said");
        Answered { message, conversation: said.conversation.expect("in a conversation") }
    }
}

const ASKS: Conversing = Conversing {
    answers: None,
    expects_reply: true,
    counts: true,
    announces: false,
    of_person: false,
};

fn answers(answered: Answered) -> Conversing {
    Conversing {
        answers: Some(answered),
        expects_reply: true,
        counts: true,
        announces: false,
        of_person: false,
    }
}

#[test]
fn a_message_is_in_the_inbox_of_the_other_agent_and_stays_until_it_is_confirmed() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let made = two.world.inbox(1, &bob, InboxAct::Open);
    assert_eq!((made.mark, made.newest, made.unfiled), (0, 0, Some(Vec::new())));
    two.world.inbox(1, &bob, InboxAct::File(Vec::new()));
    two.says(0, &ann, room, "one");
    two.says(1, &bob, room, "mine");
    two.says(0, &ann, room, "two");
    assert_eq!(two.world.items(1, "bob").len(), 2, "not its own");
    let mail =
        |event: &&AgentEvent| matches!(event, AgentEvent::Mail { agent } if **agent == *"bob");
    assert_eq!(two.world.tells[1].iter().filter(mail).count(), 2);
    let inbox = two.world.inbox(1, &bob, InboxAct::Confirm(1));
    assert_eq!((inbox.mark, inbox.newest, inbox.unfiled), (1, 2, None));
    let inbox = two.world.inbox(1, &bob, InboxAct::Confirm(99));
    assert_eq!(inbox.mark, 2, "nothing is confirmed that is not there");
    assert_eq!(two.world.inbox(1, &bob, InboxAct::Confirm(1)).mark, 2, "never back");
}

#[test]
fn an_inbox_is_there_after_a_restart_and_no_place_is_used_twice() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.inbox(1, &bob, InboxAct::File(Vec::new()));
    for text in ["one", "two"] {
        two.says(0, &ann, room, text);
    }
    two.world.inbox(1, &bob, InboxAct::TakeOut(2));
    let (_, number) = two.world.items(1, "bob")[2];
    assert_eq!(number, Some(Number::ZERO), "the place stays used");
    let stored = disk::stored(&two.world.nodes[1].rows);
    let [inbox] = &stored.inboxes[..] else { panic!("{:?}", stored.inboxes) };
    assert_eq!((&*inbox.record.agent, inbox.newest, inbox.record.mark), ("bob", 2, 0));
    assert_eq!(inbox.record.unfiled, None);
}

#[test]
fn an_inbox_that_is_made_later_is_told_of_what_waits() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(1, &bob, room, "mine");
    for text in ["one", "two"] {
        two.says(0, &ann, room, text);
    }
    let made = two.world.inbox(1, &bob, InboxAct::Open);
    let [Unfiled { room: of, upto }] = made.unfiled.expect("nothing was filed")[..] else {
        panic!("one room")
    };
    assert_eq!((of, upto), (room, two.world.nodes[1].engine.known.rooms[&room].tip()));
    let items = vec![(room, Number(upto.0 - 1)), (room, upto)];
    let filed = two.world.inbox(1, &bob, InboxAct::File(items.clone()));
    assert_eq!((filed.newest, filed.unfiled), (2, None));
    assert_eq!(two.world.inbox(1, &bob, InboxAct::File(items)).newest, 2, "once");
}

#[test]
fn a_mention_is_in_the_inbox_of_an_agent_that_has_no_seat() {
    let (mut two, _) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.inbox(1, &bob, InboxAct::File(Vec::new()));
    let lobby = two.world.lobby();
    two.world.ask(0, Command::Join { caller: ann.clone(), room: lobby }).expect("it is public");
    let mentions = vec!["bob".into(), "eve".into()];
    let say = Say { mentions, ..rooms::words(lobby, "bob, look".into()) };
    two.world.ask(0, Command::Say { caller: ann, say }).expect("it is numbered");
    two.world.pass(STEP * 20);
    assert_eq!(two.world.items(1, "bob").len(), 1);
    assert_eq!(two.world.items(1, "eve"), [], "it has no inbox");
}

#[test]
fn an_inbox_keeps_the_newest_items() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.inbox(1, &bob, InboxAct::File(Vec::new()));
    two.world.nodes[1].engine.inboxes.skip_to("bob", INBOX_ITEMS_MAX);
    two.says(0, &ann, room, "one more");
    let items = two.world.items(1, "bob");
    let places: Vec<_> = items.iter().map(|(place, item)| (*place, item.is_some())).collect();
    assert_eq!(places, [(INBOX_ITEMS_MAX + 1, true), (1, false)]);
}

#[test]
fn agents_that_answer_whatever_they_are_told_stop() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.converses((0, &ann), room, ASKS).expect("a question");
    for turn in 1..=6 {
        let (n, caller) = if turn % 2 == 1 { (1, &bob) } else { (0, &ann) };
        let newest = two.world.newest(n);
        assert_eq!(newest.conversation.turn + 1, turn);
        two.world.converses((n, caller), room, answers(newest)).expect("there are turns left");
    }
    let newest = two.world.newest(1);
    assert!(!newest.conversation.expects_reply, "the last one can have no answer");
    let over = two.world.converses((1, &bob), room, answers(newest)).unwrap_err();
    assert_eq!(over, Refused::Budget(OverBudget::Turns { max: 5 }));
    assert_eq!(two.world.heard(0).len(), 7, "a refusal leaves nothing behind");
}

#[test]
fn a_node_keeps_from_its_agents_what_goes_over_its_own_budgets() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.inbox(0, &ann, InboxAct::File(Vec::new()));
    // A lower one on the side of Ann; the other node takes its own word for what is allowed.
    two.world.nodes[0].engine.known.config.budgets = Budgets { turns: 0, ..Budgets::default() };
    two.world.converses((1, &bob), room, ASKS).expect("a question");
    let mut newest = two.world.newest(1);
    newest.conversation.turn = 1;
    two.world.converses((1, &bob), room, answers(newest)).expect("Bob's node has five");
    assert_eq!((two.world.heard(0).len(), two.world.heard(1).len()), (1, 2));
    assert_eq!(two.world.items(0, "ann").len(), 1);
}

#[test]
fn each_task_has_a_room_of_its_own_in_which_nobody_has_to_join() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let open = |two: &mut Two, seed: u8| {
        let command = Command::OpenDirect {
            caller: ann.clone(),
            signer: signer(ann.key),
            agent: "bob".into(),
            task: Some(TaskSeed([seed; 16])),
        };
        let call = two.world.begin(0, command);
        two.world.carry();
        two.world.pass(STEP * 15);
        match two.world.reply(0, call) {
            Some(Ok(Outcome::Room(view))) => view,
            other => panic!("{other:?}"),
        }
    };
    let (one, other, again) = (open(&mut two, 1), open(&mut two, 2), open(&mut two, 1));
    assert_eq!(one.room, again.room);
    assert!(one.room != other.room && one.room != room && one.task);
    assert!(one.name.starts_with("task:") && one.name.len() == 13, "{}", one.name);
    let task = NewTask { assignee: Some("bob".into()), ..NewTask::of(one.room, "dig") };
    let made = two.world.ask(0, Command::AssignTask { caller: ann, task });
    let Ok(Outcome::Task(made)) = made else { panic!("{made:?}") };
    two.world.pass(STEP * 20);
    let update = TaskUpdate { status: Some(TaskStatus::Completed), ..TaskUpdate::of(made.task) };
    let ended = two.world.ask(1, Command::UpdateTask { caller: bob, update });
    assert!(matches!(ended, Ok(Outcome::Task(_))), "{ended:?}");
}

#[test]
fn an_agent_that_is_away_while_it_is_answered_waits_for_nothing() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.nodes[0].engine.known.config.budgets =
        Budgets { outstanding: 1, ..Budgets::default() };
    two.world.converses((0, &ann), room, ASKS).expect("a question");
    let over = two.world.converses((0, &ann), room, ASKS).unwrap_err();
    assert_eq!(over, Refused::Budget(OverBudget::Outstanding { unanswered: 1 }));
    let question = two.world.newest(1);
    let key = ann.key;
    let gone = Command::Detach { caller: ann, seen: Vec::new() };
    two.world.ask(0, gone).expect("it was here");
    two.world.converses((1, &bob), room, answers(question)).expect("an answer");
    let ann = two.world.come(0, "ann", key);
    two.world.converses((0, &ann), room, ASKS).expect("it was answered");
}

#[test]
fn older_messages_are_filed_once_whatever_comes_meanwhile() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(0, &ann, room, "before");
    let made = two.world.inbox(1, &bob, InboxAct::Open);
    two.says(0, &ann, room, "meanwhile");
    let again = two.world.inbox(1, &bob, InboxAct::Open);
    assert_eq!((&again.unfiled, again.newest), (&made.unfiled, 1), "those of before alone");
    let stored = disk::stored(&two.world.nodes[1].rows);
    assert_eq!(stored.inboxes[0].record.unfiled, made.unfiled, "after a restart, too");
}

#[test]
fn the_pace_of_two_agents_does_not_hold_where_a_person_asks() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let pair = Pace { within: Duration::from_secs(3_600), ..Budgets::default().pair };
    for node in &mut two.world.nodes {
        node.engine.known.config.budgets = Budgets { pair, ..Budgets::default() };
    }
    let of_person = Conversing { of_person: true, counts: false, ..ASKS };
    for _ in 0..30 {
        two.world.converses((0, &ann), room, of_person).unwrap();
        let asked = two.world.newest(1);
        let place = Conversing { expects_reply: false, ..answers(asked) };
        two.world.converses((1, &bob), room, place).unwrap();
    }
    // None of these was counted for what agents say to each other.
    for _ in 0..10 {
        two.world.converses((0, &ann), room, ASKS).unwrap();
        let asked = two.world.newest(1);
        let place = Conversing { expects_reply: false, ..answers(asked) };
        two.world.converses((1, &bob), room, place).unwrap();
    }
    let refused = two.world.converses((0, &ann), room, ASKS).unwrap_err();
    assert!(matches!(refused, Refused::Budget(OverBudget::Pair { .. })), "{refused:?}");
}

/// Who waits for whom in a room, as somebody sees it at a node.
fn waits(world: &mut World, n: usize, by: Reader) -> Vec<(String, Vec<String>)> {
    let Ok(Outcome::Waits(waits)) = world.ask(n, Command::ListWaits { by }) else {
        panic!("anybody may")
    };
    assert!(waits.iter().all(|wait| wait.awaited == Awaited::Answer && wait.title.is_none()));
    let named =
        |wait: WaitView| (wait.by.to_string(), wait.of.iter().map(ToString::to_string).collect());
    waits.into_iter().map(named).collect()
}

#[test]
fn who_waits_for_an_answer_is_seen_at_both_nodes_by_both_keys_and_by_no_other_until_it_comes() {
    let (mut two, room) = Two::talking();
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let world = &mut two.world;
    world.converses((0, &ann), room, ASKS).expect("within the budget");
    let one = vec![("ann".to_owned(), vec!["bob".to_owned()])];
    let of_key = |caller: &Caller| Reader { agent: None, ..caller.reader() };
    for (n, by) in [(0, of_key(&ann)), (1, of_key(&bob)), (1, bob.reader())] {
        assert_eq!(waits(world, n, by), one);
    }
    assert_eq!(waits(world, 1, KEY.into()), [], "a key that is neither's");
    let eve = two.eve.clone();
    assert_eq!(waits(&mut two.world, 1, eve.reader()), [], "another agent of the key");
    let world = &mut two.world;
    let answer = Conversing { expects_reply: false, ..answers(world.newest(1)) };
    world.converses((1, &bob), room, answer).expect("within the budget");
    for (n, by) in [(0, of_key(&ann)), (1, of_key(&bob))] {
        assert_eq!(waits(world, n, by), [], "it has its answer");
    }
}

#[test]
fn requests_that_are_remembered_for_people_are_few_of_each_agent() {
    let (mut two, room) = Two::talking();
    let ann = two.ann.clone();
    let seen = &mut two.world.nodes[1].engine.speaking.requests;
    for nth in 0..2 * crate::limits::REQUESTS_SEEN_PER_AGENT_MAX {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&nth.to_be_bytes());
        seen.pretend(MessageId(id), room, &ann.agent);
    }
    let by = Reader { agent: None, ..two.bob.reader() };
    let found = waits(&mut two.world, 1, by).len();
    assert_eq!(found, crate::limits::REQUESTS_SEEN_PER_AGENT_MAX);
}

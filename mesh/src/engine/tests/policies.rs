//! Policies: what a node does not hand over to its agents.

use super::{
    pairs::{Two, signer},
    world::STEP,
    *,
};
use crate::{
    api::{
        command::{Inbox, InboxAct, RoomView, Share, ShareAct},
        policy::{AgentToAgent, Inbound, Pattern, Policies, Withheld},
    },
    name::group::TaskSeed,
};

impl Two {
    /// The second node has other policies.
    fn with(mut self, policies: Policies) -> Two {
        self.world.nodes[1].engine.known.config.policies = policies;
        self
    }

    fn taking(inbound: Inbound) -> (Two, RoomId) {
        let (two, room) = Two::talking();
        (two.with(Policies { inbound, ..Policies::default() }), room)
    }

    fn inbox(&mut self) -> Inbox {
        let act = Command::Inbox { caller: self.bob.clone(), act: InboxAct::Open };
        match self.world.ask(1, act) {
            Ok(Outcome::Inbox(inbox)) => *inbox,
            other => panic!("{other:?}"),
        }
    }

    fn view(&self, room: RoomId) -> RoomView {
        self.world.nodes[1].engine.known.view(room).expect("it is there")
    }
}

#[test]
fn messages_of_strangers_are_kept_from_agents_that_take_none_until_they_write_themselves() {
    let (mut two, room) = Two::taking(Inbound::Known);
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(0, &ann, room, "buy this");
    assert_eq!(two.world.heard(1), Vec::<String>::new());
    assert_eq!(two.view(room).withheld("ann"), Some(Withheld::Inbound));
    assert_eq!(two.view(room).withheld("bob"), None);
    assert_eq!(two.inbox().unfiled, Some(Vec::new()), "nor is it filed later");
    two.says(1, &bob, room, "who are you?");
    assert_eq!(two.view(room).withheld("ann"), None);
    two.says(0, &ann, room, "ann");
    assert_eq!(two.world.heard(1), ["who are you?", "ann"]);
    assert_eq!(two.inbox().newest, 1);
}

#[test]
fn an_agent_that_takes_none_but_those_of_its_key_takes_no_answers_of_others_either() {
    let (mut two, room) = Two::taking(Inbound::Key);
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.says(1, &bob, room, "hello?");
    two.says(0, &ann, room, "hello");
    assert_eq!(two.world.heard(1), ["hello?"]);
    let eve = two.eve.clone();
    let own = two.world.open(1, &eve, "bob").expect("it has the same key").room;
    two.says(1, &eve, own, "and I?");
    assert_eq!(two.world.heard(1), ["hello?", "and I?"]);
}

#[test]
fn the_node_itself_asks_whom_it_likes_and_is_answered() {
    let (two, room) = Two::talking();
    let agent_to_agent = AgentToAgent { enabled: false, allow: Vec::new() };
    let teller = Some("ann".into());
    let mut two = two.with(Policies { inbound: Inbound::Key, agent_to_agent, teller });
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    assert_eq!((two.view(room).withheld("ann"), two.view(room).withheld("bob")), (None, None));
    two.says(0, &ann, room, "is there something to be said?");
    two.says(1, &bob, room, "no");
    assert_eq!(two.world.heard(1), ["is there something to be said?", "no"]);
}

#[test]
fn an_agent_that_is_here_refuses_at_once_and_nothing_is_left_behind() {
    let (mut two, _) = Two::taking(Inbound::Key);
    let dan = two.world.come(1, "dan", two.ann.key);
    let before = two.world.nodes[1].engine.known.told.len();
    let refused = two.world.open(1, &dan, "bob").unwrap_err();
    assert_eq!(refused.to_string(), "agent bob takes no messages from dan");
    assert!(matches!(refused, Refused::TakesNone(_)));
    assert_eq!(two.world.nodes[1].engine.known.told.len(), before);
}

#[test]
fn a_task_of_a_stranger_is_kept_back_and_one_of_an_agent_that_was_written_to_is_not() {
    let (mut two, room) = Two::taking(Inbound::Known);
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    let given = |two: &mut Two, seed: u8| {
        let command = Command::OpenDirect {
            caller: ann.clone(),
            signer: signer(ann.key),
            agent: "bob".into(),
            task: Some(TaskSeed([seed; 16])),
        };
        let call = two.world.begin(0, command);
        two.world.carry();
        two.world.pass(STEP * 15);
        let Some(Ok(Outcome::Room(view))) = two.world.reply(0, call) else { panic!("no room") };
        two.says(0, &ann, view.room, "dig");
    };
    given(&mut two, 1);
    assert_eq!(two.world.heard(1), Vec::<String>::new());
    two.says(1, &bob, room, "what is it?");
    given(&mut two, 2);
    assert_eq!(two.world.heard(1), ["what is it?", "dig"]);
}

#[test]
fn agents_of_keys_with_a_room_together_are_known() {
    let (mut two, room) = Two::taking(Inbound::Known);
    let ann = two.ann.clone();
    let plans = NewRoom {
        name: "plans".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let by = (ann.clone(), signer(ann.key));
    let making = Command::CreateShared { caller: by.0.clone(), signer: by.1.clone(), room: plans };
    let Ok(Outcome::Room(made)) = two.world.ask(0, making) else { panic!("she may") };
    two.says(0, &ann, room, "before");
    let (agent, act) = ("bob".into(), ShareAct::Give);
    let share = Share { caller: by.0, signer: by.1, room: made.room, agent, act };
    two.world.ask(0, Command::Share(Box::new(share))).expect("it is hers");
    two.world.pass(STEP * 20);
    two.says(0, &ann, room, "after");
    assert_eq!(two.world.heard(1), ["after"]);
}

#[test]
fn agents_that_may_not_write_to_each_other_are_kept_apart_by_the_node_of_the_other_one() {
    let (two, room) = Two::talking();
    let agent_to_agent = AgentToAgent { enabled: true, allow: vec![Pattern::new("b*")] };
    let mut two = two.with(Policies { agent_to_agent, ..Policies::default() });
    let ann = two.ann.clone();
    two.says(0, &ann, room, "psst");
    assert_eq!(two.world.heard(1), Vec::<String>::new());
    assert_eq!(two.view(room).withheld("ann"), Some(Withheld::AgentToAgent));
    assert_eq!(two.view(room).withheld("bob"), Some(Withheld::AgentToAgent), "both ways");
    assert_eq!(two.view(room).withheld("eve"), Some(Withheld::AgentToAgent), "under a third name");
}

#[test]
fn an_agent_that_comes_is_not_seated_where_it_takes_no_messages() {
    let (mut two, room) = Two::taking(Inbound::Key);
    let (ann, bob) = (two.ann.clone(), two.bob.clone());
    two.world.ask(1, Command::Detach { caller: bob.clone(), seen: Vec::new() }).expect("it was");
    two.says(0, &ann, room, "psst");
    let attach = Attach { stable: true, ..registers("bob", (bob.key, false)) };
    let call = two.world.begin(1, Command::Attach(attach));
    two.world.carry();
    two.world.pass(STEP * 20);
    let Some(Ok(Outcome::Attached(attached))) = two.world.reply(1, call) else { panic!("no") };
    assert_eq!(attached.addressed, []);
}

//! Keys: valid everywhere once minted, nowhere once revoked; and their limits at one node.

use super::*;
use crate::{
    api::{
        agenda::{KeyLimits, NewKey, Standing, Tiers},
        event::AgentEvent,
    },
    directory::keys::{Directories, KeyEntry},
    limits::{AGENT_IDS_PER_AGENT, KEY_LABEL_BYTES_MAX, KEYS_FOR_OPERATORS, KEYS_MAX},
    name::key::KeySecret,
    wire::{
        acts::{KeyAct, KeyMinted, KeyTerms, Scope, Tier},
        signatures::testing::secret,
    },
};

const MINTED: KeyPrint = PRINTS[8];

fn labelled(node: &Node, key: &KeySecret, (tier, label): (Tier, &str), local: bool) -> NewKey {
    let terms = KeyTerms { label: Some(label.to_owned()), ..KeyTerms::of(tier) };
    let minted = KeyMinted::sign(key, &node.signed_log(), terms);
    NewKey { minted: Box::new(minted.expect("it is long enough")), local }
}

fn new_key(node: &Node, tier: Tier, local: bool) -> NewKey {
    labelled(node, secret(MINTED).expect("it is known"), (tier, "ci"), local)
}

fn public(name: &str, ephemeral: bool) -> NewRoom {
    NewRoom {
        name: name.to_owned(),
        description: None,
        parent: None,
        ephemeral,
        public: true,
        encrypted: false,
    }
}

fn limited(agents: usize, rooms: usize) -> Tiers {
    let low = KeyLimits { agents: Some(agents), rooms: Some(rooms) };
    Tiers { low, ..Tiers::default() }
}

impl Node {
    fn mint(&mut self, tier: Tier) {
        self.ask(Command::MintKey(new_key(self, tier, false))).expect("it is new");
    }

    fn check(&mut self, key: KeyPrint) -> Result<Standing, Refused> {
        match self.ask(Command::CheckKey { key, own: false })? {
            Outcome::Key(standing) => Ok(standing),
            other => panic!("{other:?}"),
        }
    }

    /// With a key that is not the node's own.
    fn enter(&mut self, agent: &str, key: KeyPrint, reconnect: bool) -> Result<Caller, Refused> {
        let attach = Attach {
            agent: agent.into(),
            stable: false,
            reconnect,
            key,
            own: false,
            opener: None,
            mailbox: None,
            claim: None,
            shown: None,
            name: agent.to_owned(),
            capabilities: Vec::new(),
        };
        match self.ask(Command::Attach(attach))? {
            Outcome::Attached(it) => {
                Ok(Caller { agent: agent.into(), key, registration: it.registration })
            }
            other => panic!("{other:?}"),
        }
    }

    fn agents(&mut self, key: KeyPrint) -> usize {
        match self.ask(Command::ListAgents { by: key.into(), room: None }) {
            Ok(Outcome::Agents(agents)) => agents.len(),
            other => panic!("{other:?}"),
        }
    }

    /// Asks for a room; the answer may have to wait for the number of its name.
    fn make(&mut self, caller: &Caller, (name, ephemeral): (&str, bool)) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        let room = public(name, ephemeral);
        let command = Command::CreateRoom { caller: caller.clone(), room };
        self.give(Input::Command { call, command });
        call
    }

    fn answer(&self, call: CallId) -> Option<Result<Outcome, Refused>> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Reply { call: of, result } if *of == call => Some(result.clone()),
            _ => None,
        })
    }

    fn revocations(&self) -> usize {
        let told = |it: &&Effect| matches!(it, Effect::Tell(AgentEvent::KeyInvalid { key }) if *key == MINTED);
        self.effects.iter().filter(told).count()
    }
}

/// What one said in its last turns, to the other.
fn pass(from: &mut Node, to: &mut Node) {
    for run in from.runs_sent() {
        to.hear(&run);
    }
}

#[test]
fn a_minted_key_is_valid_at_every_node_until_it_is_revoked_at_any() {
    let (mut here, mut there) = (Node::new(1), Node::new(2));
    assert_eq!(there.enter("bot", MINTED, false), Err(Refused::NoKey));
    here.mint(Tier::High);
    pass(&mut here, &mut there);
    for node in [&mut here, &mut there] {
        assert_eq!(
            node.check(MINTED),
            Ok(Standing::Minted { tier: Tier::High, writes: true, approves: true })
        );
    }
    let caller = there.enter("bot", MINTED, false).expect("it is valid");
    assert_eq!(there.agents(MINTED), 1);

    here.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    pass(&mut here, &mut there);
    assert_eq!((there.revocations(), there.agents(MINTED)), (1, 0));
    let lobby = there.lobby();
    assert_eq!(there.ask(Command::Join { caller, room: lobby }).err(), Some(Refused::Superseded));
    for node in [&mut here, &mut there] {
        assert_eq!(node.check(MINTED), Err(Refused::NoKey));
        assert_eq!(node.enter("bot", MINTED, true), Err(Refused::NoKey));
        let Ok(Outcome::Keys(keys)) = node.ask(Command::ListKeys) else { panic!("it lists") };
        assert_eq!((keys.len(), keys[0].revoked), (1, true));
        assert_eq!(
            (keys[0].terms.label.as_deref(), keys[0].node),
            (Some("ci"), identity(1).node_id())
        );
        let again = new_key(node, Tier::High, false);
        node.ask(Command::MintKey(again)).expect_err("it is revoked for ever");
        node.ask(Command::RevokeKey { key: MINTED }).expect("it is revoked");
    }
    assert_eq!(there.revocations(), 1, "told once");
}

#[test]
fn a_local_key_is_valid_where_it_was_minted_and_nobody_else_hears_of_it() {
    let (mut here, mut there) = (Node::new(1), Node::new(2));
    here.runs_sent();
    let local = new_key(&here, Tier::Low, true);
    here.ask(Command::MintKey(local)).expect("it is new");
    assert_eq!(
        here.check(MINTED),
        Ok(Standing::Minted { tier: Tier::Low, writes: true, approves: true })
    );
    let runs = here.runs_sent();
    assert!(runs.is_empty(), "{runs:?}");
    assert_eq!(there.check(MINTED), Err(Refused::NoKey));
    here.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    assert_eq!(here.check(MINTED), Err(Refused::NoKey));
    assert!(here.runs_sent().is_empty());
}

#[test]
fn a_revocation_that_comes_before_its_key_counts() {
    let (mut here, mut there, mut third) = (Node::new(1), Node::new(2), Node::new(3));
    here.mint(Tier::Low);
    let minted = here.runs_sent();
    minted.iter().for_each(|run| third.hear(run));
    third.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    pass(&mut third, &mut there);
    assert_eq!(there.revocations(), 1);
    minted.iter().for_each(|run| there.hear(run));
    assert_eq!(there.check(MINTED), Err(Refused::NoKey));
}

#[test]
fn what_cannot_be_minted_or_revoked_is_refused() {
    let mut node = Node::new(1);
    let refused = |node: &mut Node, key: NewKey| match node.ask(Command::MintKey(key)) {
        Err(Refused::Impossible(why)) => why,
        other => panic!("{other:?}"),
    };
    let key = secret(PRINTS[7]).expect("it is known");
    let label = "x".repeat(KEY_LABEL_BYTES_MAX + 1);
    let long = labelled(&node, key, (Tier::Low, &label), false);
    assert!(refused(&mut node, long).contains("128 bytes"));
    let longest = labelled(&node, key, (Tier::Low, &label[1..]), false);
    node.ask(Command::MintKey(longest)).expect("as long as any may be");
    assert_eq!(node.ask(Command::RevokeKey { key: MINTED }).err(), Some(Refused::NoKey));
    node.mint(Tier::Low);
    let refused_again = |node: &mut Node, local| {
        let again = new_key(node, Tier::High, local);
        refused(node, again)
    };
    assert!(refused_again(&mut node, false).contains("minted before"));
    assert!(refused_again(&mut node, true).contains("minted before"));
    assert_eq!(
        node.check(MINTED),
        Ok(Standing::Minted { tier: Tier::Low, writes: true, approves: true })
    );
}

/// Others would refuse the run, and this node could write nothing more that they take.
#[test]
fn a_key_that_has_signed_something_else_is_not_minted() {
    let mut node = Node::new(1);
    let good = new_key(&node, Tier::Low, false);
    let elsewhere = new_key(&Node::new(2), Tier::Low, false);
    let higher = KeyMinted { terms: KeyTerms::of(Tier::High), ..(*good.minted).clone() };
    for key in [elsewhere, NewKey { minted: Box::new(higher), ..good.clone() }] {
        let refused = node.ask(Command::MintKey(key)).expect_err("it is not signed");
        assert!(matches!(refused, Refused::Impossible(_)), "{refused:?}");
    }
    assert_eq!(node.check(MINTED), Err(Refused::NoKey), "nothing was written");
    node.ask(Command::MintKey(good)).expect("it is");
}

#[test]
fn strangers_leave_places_for_keys_that_operators_mint() {
    let mut node = Node::new(1);
    let print = |nth: u64| {
        let mut print = [9; 16];
        print[..8].copy_from_slice(&nth.to_be_bytes());
        KeyPrint(print)
    };
    let log = LogId { author: identity(2).node_id(), incarnation: 0 };
    let facts = Facts { clock: 1, wall_ms: 1, kind: 35, visible: false };
    let strangers = u64::try_from(KEYS_MAX - KEYS_FOR_OPERATORS).expect("it is small");
    for nth in 1..strangers {
        let act = KeyAct::Revoked(print(nth));
        node.engine
            .known
            .directory
            .learn_key(KeyEntry { of: Directories::Mesh, log, seq: nth, facts }, act);
    }
    let [last, next] = [PRINTS[2], PRINTS[3]].map(|key| node.new_key(key, Tier::Low, false));
    node.ask(Command::SignUp(last)).expect("the last one");
    let refused = node.ask(Command::SignUp(next.clone()));
    let Err(Refused::Full(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains(&strangers.to_string()), "{text}");
    node.ask(Command::MintKey(next)).expect("there are places for operators");
}

#[test]
fn the_nodes_own_key_is_not_revoked_by_a_minted_one_of_its_text() {
    let mut node = Node::new(1);
    node.mint(Tier::Low);
    let caller = node.attach("me", false, MINTED).expect("it is the node's own here");
    node.ask(Command::RevokeKey { key: MINTED }).expect("it was minted");
    let lobby = node.lobby();
    node.ask(Command::Join { caller, room: lobby }).expect("still connected");
    assert_eq!(node.revocations(), 0);
}

#[test]
fn a_key_has_so_many_agents_at_a_node_and_no_more() {
    let mut node = Node::with(1, |config| config.tiers = limited(2, 9));
    node.mint(Tier::Low);
    let first = node.enter("a", MINTED, false).expect("one");
    node.enter("b", MINTED, false).expect("two");
    let full = Some(Refused::TooManyAgents { max: 2 });
    assert_eq!(node.enter("c", MINTED, false).err(), full);
    assert_eq!(node.enter("b", MINTED, false).err(), full, "before the id is looked at (spec 2)");
    let second = node.enter("b", MINTED, true).expect("takes over: still two");
    assert_eq!(node.enter("c", MINTED, true).err(), full);
    node.ask(Command::Detach { caller: first, seen: Vec::new() }).expect("it leaves");
    node.enter("c", MINTED, false).expect("there is room");
    assert_eq!(node.enter("a", MINTED, true).err(), full, "it comes back too late");
    node.ask(Command::Detach { caller: second, seen: Vec::new() }).expect("it leaves");
    let lingers = node.enter("a", MINTED, true).expect("there is room");
    node.ask(Command::Linger { caller: lingers, seen: Vec::new(), hosted: false })
        .expect("it hangs up");
    node.enter("d", MINTED, false).expect("without a connection it does not count");
    assert_eq!(node.enter("a", MINTED, true).err(), full, "with one it does");
    for i in 0..30 {
        node.attach(&format!("own {i}"), false, KEY).expect("the node's own key has no limit");
        node.attach(&format!("open {i}"), false, KeyPrint::OPEN).expect("nor has --no-auth");
    }
}

#[test]
fn ids_that_wait_for_their_claim_do_not_slip_past_the_limit() {
    // The directory's sequencer is another node: claims wait for their numbers.
    let mut founder = Node::new(1);
    let mut node = Node::with(2, |config| config.tiers = limited(1, 9));
    founder.mint(Tier::Low);
    pass(&mut founder, &mut node);
    let calls: Vec<CallId> = ["a", "b"]
        .into_iter()
        .map(|agent| {
            node.calls += 1;
            let call = CallId(node.calls);
            let attach = Attach {
                agent: agent.into(),
                stable: true,
                reconnect: true,
                key: MINTED,
                own: false,
                opener: None,
                mailbox: None,
                claim: None,
                shown: None,
                name: agent.to_owned(),
                capabilities: Vec::new(),
            };
            node.give(Input::Command { call, command: Command::Attach(attach) });
            call
        })
        .collect();
    assert!(calls.iter().all(|call| node.answer(*call).is_none()), "they wait");
    pass(&mut node, &mut founder);
    for run in founder.runs_sent() {
        node.hear(&run);
    }
    let answers: Vec<_> = calls.iter().map(|call| node.answer(*call).expect("numbered")).collect();
    assert!(matches!(answers[0], Ok(Outcome::Attached(_))), "{answers:?}");
    assert_eq!(answers[1].as_ref().err(), Some(&Refused::TooManyAgents { max: 1 }));
}

#[test]
fn a_key_claims_so_many_stable_ids_at_a_node_and_no_more() {
    let mut node = Node::with(1, |config| config.tiers = limited(1, 9));
    node.mint(Tier::Low);
    let attach = |nth: usize| Attach {
        agent: format!("bot {nth}").as_str().into(),
        stable: true,
        reconnect: true,
        key: MINTED,
        own: false,
        opener: None,
        mailbox: None,
        claim: None,
        shown: None,
        name: "bot".to_owned(),
        capabilities: Vec::new(),
    };
    let enter = |node: &mut Node, nth| match node.ask(Command::Attach(attach(nth)))? {
        Outcome::Attached(it) => {
            let agent = attach(nth).agent;
            let caller = Caller { agent, key: MINTED, registration: it.registration };
            node.ask(Command::Detach { caller, seen: Vec::new() }).map(drop)
        }
        other => panic!("{other:?}"),
    };
    for nth in 0..AGENT_IDS_PER_AGENT {
        enter(&mut node, nth).expect("there is room");
    }
    let refused = enter(&mut node, AGENT_IDS_PER_AGENT).err();
    assert_eq!(refused, Some(Refused::TooManyIds { max: 10 }), "one too many");
    enter(&mut node, 0).expect("it has it");
    node.enter("passing", MINTED, false).expect("without a stable id");
    node.attach("me", true, KEY).expect("the node's own key has no limit");
}

#[test]
fn a_key_makes_so_many_rooms_at_a_node_and_no_more() {
    let mut node = Node::with(1, |config| config.tiers = limited(9, 2));
    node.mint(Tier::Low);
    let caller = node.enter("a", MINTED, false).expect("it is valid");
    let full = Refused::TooManyRooms { max: 2 };
    let own = node.attach("me", false, KEY).expect("the node's own");
    node.make(&own, ("of another key", true));
    let made = node.make(&caller, ("one", false));
    assert!(matches!(node.answer(made), Some(Ok(_))));
    let fleeting = node.make(&caller, ("two", true));
    let Some(Ok(Outcome::Room(room))) = node.answer(fleeting) else { panic!("it is made") };
    for ephemeral in [false, true] {
        let call = node.make(&caller, ("three", ephemeral));
        assert_eq!(node.answer(call).expect("at once").err(), Some(full.clone()));
    }
    node.ask(Command::Join { caller: caller.clone(), room: room.room }).expect("its own");
    node.ask(Command::Leave { caller: caller.clone(), room: room.room }).expect("it ends");
    let made = node.make(&caller, ("three", false));
    assert!(matches!(node.answer(made), Some(Ok(_))), "there is room again");
    for i in 0..60 {
        let call = node.make(&own, (&format!("own {i}"), false));
        assert!(matches!(node.answer(call), Some(Ok(_))), "the node's own key has no limit");
    }
}

#[test]
fn rooms_that_are_asked_for_in_one_turn_count_each_other() {
    let mut node = Node::with(1, |config| config.tiers = limited(9, 2));
    node.mint(Tier::Low);
    let caller = node.enter("a", MINTED, false).expect("it is valid");
    let names = ["one", "one", "two", "three"];
    let calls = names.map(|name| {
        node.calls += 1;
        let call = CallId(node.calls);
        let command = Command::CreateRoom { caller: caller.clone(), room: public(name, false) };
        node.engine.handle(node.now, Input::Command { call, command });
        call
    });
    node.turn();
    let refused = calls.map(|call| node.answer(call).expect("this node sequences").err());
    let (taken, full) = (Refused::NameTaken("one".to_owned()), Refused::TooManyRooms { max: 2 });
    assert_eq!(refused, [None, Some(taken), None, Some(full)]);
}

#[test]
fn rooms_whose_names_wait_for_their_number_count_and_void_ones_do_not() {
    let mut founder = Node::new(1);
    let mut node = Node::with(2, |config| config.tiers = limited(9, 2));
    founder.mint(Tier::Low);
    pass(&mut founder, &mut node);
    let caller = node.enter("a", MINTED, false).expect("it is valid");
    let other = founder.attach("b", false, KEY).expect("the founder's own");
    let taken = founder.make(&other, ("one", false));
    assert!(matches!(founder.answer(taken), Some(Ok(_))));
    let calls = [node.make(&caller, ("one", false)), node.make(&caller, ("two", false))];
    assert!(calls.iter().all(|call| node.answer(*call).is_none()), "they wait");
    let third = node.make(&caller, ("three", false));
    let full = Refused::TooManyRooms { max: 2 };
    assert_eq!(node.answer(third).expect("at once").err(), Some(full));
    // The founder's room of that name was first.
    pass(&mut node, &mut founder);
    for run in founder.runs_sent() {
        node.hear(&run);
    }
    let taken = node.answer(calls[0]).expect("numbered");
    assert_eq!(taken.err(), Some(Refused::NameTaken("one".to_owned())));
    let fourth = node.make(&caller, ("four", false));
    assert!(node.answer(fourth).is_none(), "there is room for it: it waits for its number");
}

fn with_terms(node: &Node, terms: KeyTerms) -> NewKey {
    let key = secret(MINTED).expect("it is known");
    let minted = KeyMinted::sign(key, &node.signed_log(), terms).expect("it is long enough");
    NewKey { minted: Box::new(minted), local: false }
}

#[test]
fn a_key_is_valid_until_it_expires_by_each_nodes_own_clock() {
    let mut node = Node::new(1);
    let at = node.now.wall_ms + 10_000;
    let terms = |at| KeyTerms { expires_ms: Some(at), ..KeyTerms::of(Tier::Low) };
    let over = with_terms(&node, terms(node.now.wall_ms));
    let refused = node.ask(Command::MintKey(over)).expect_err("it would never be valid");
    assert!(refused.to_string().contains("expired"), "{refused}");
    let key = with_terms(&node, terms(at));
    node.ask(Command::MintKey(key)).expect("it is new");
    let told = |node: &mut Node| match node.ask(Command::KeyTerms { key: MINTED }) {
        Ok(Outcome::Terms(terms)) => terms.map(|terms| *terms),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&mut node), Some(terms(at)));
    node.enter("bot", MINTED, false).expect("it is valid");
    node.wait(Duration::from_secs(9));
    assert_eq!((node.agents(MINTED), node.revocations()), (1, 0));
    node.wait(Duration::from_secs(2));
    assert_eq!((node.agents(MINTED), node.revocations()), (0, 1));
    assert_eq!(told(&mut node), None);
    assert_eq!(node.enter("bot", MINTED, true), Err(Refused::NoKey));
    node.wait(Duration::from_secs(2));
    assert_eq!(node.revocations(), 1, "it is said once");
    let mut again = Node::open(1, super::disk::stored(&node.rows), node.now);
    assert_eq!(again.check(MINTED), Err(Refused::NoKey));
}

#[test]
fn agents_of_a_key_with_scopes_write_only_if_one_of_them_says_so() {
    for (scopes, expect) in [
        (None, true),
        (Some(vec![]), false),
        (Some(vec![Scope::Read, Scope::Approvals, Scope::Pairing, Scope::Provision]), false),
        (Some(vec![Scope::Read, Scope::Write]), true),
        (Some(vec![Scope::Admin]), true),
    ] {
        let mut node = Node::new(1);
        let scopes = scopes.map(|scopes| scopes.into_iter().collect());
        let key = with_terms(&node, KeyTerms { scopes, ..KeyTerms::of(Tier::Low) });
        node.ask(Command::MintKey(key)).expect("it is new");
        assert_eq!(node.check(MINTED).map(Standing::may_write), Ok(expect), "{scopes:?}");
    }
}

//! Agents: whose an id is, what they say of themselves, whose turn it is, and what is kept of them.

use super::{rooms::words, world::World, *};
use crate::{
    api::{
        agenda::NewTask,
        event::{AgentEvent, TurnReason},
    },
    limits::{
        AGENT_ID_BYTES_MAX, CAPABILITIES_MAX, DESCRIPTION_BYTES_MAX, HANDOVER_STEP, NAME_BYTES_MAX,
        ROSTER_KEPT_EVERY,
    },
    name::{id::AgentId, number::Era},
};

const OTHER_KEY: KeyPrint = PRINTS[2];

impl Node {
    fn register(&mut self, attach: Attach) -> Result<crate::api::command::Attached, Refused> {
        match self.ask(Command::Attach(attach))? {
            Outcome::Attached(it) => Ok(it),
            other => panic!("{other:?}"),
        }
    }

    /// Ids and keys of the members of the lobby.
    fn members(&mut self) -> Vec<(AgentId, NodeId)> {
        let list = Command::ListAgents { by: KEY.into(), room: Some(self.lobby()) };
        let Ok(Outcome::Agents(agents)) = self.ask(list) else { panic!("anybody may") };
        agents.into_iter().map(|it| (it.agent, it.node)).collect()
    }

    fn displaced(&self) -> Vec<AgentId> {
        let told = self.effects.iter().filter_map(|it| match it {
            Effect::Tell(AgentEvent::Displaced { agent, .. }) => Some(agent.clone()),
            _ => None,
        });
        told.collect()
    }
}

// Whose an id is.

#[test]
fn nobody_takes_an_id_that_is_attached_but_who_has_its_key() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let taken = Err(Refused::AgentTaken("me".into()));
    for by in [(KEY, false), (OTHER_KEY, true), (OTHER_KEY, false)] {
        assert_eq!(node.register(registers("me", by)).map(|_| ()), taken);
    }
    for _ in 0..3 {
        node.say(&caller, lobby).expect("a member");
    }
    let it = node.register(registers("me", (KEY, true))).expect("it is its own");
    assert_eq!(
        it.restored,
        Some(vec![(lobby, Number(3))]),
        "all was told to the connection before"
    );
    assert_eq!(it.displaced, Some(caller.registration));
    let join = Command::Join { caller, room: lobby };
    assert_eq!(node.ask(join).map(|_| ()), Err(Refused::Superseded));
}

#[test]
fn who_comes_back_with_its_key_has_its_seats_and_what_it_has_seen() {
    for (key, reconnect, back) in [(KEY, true, true), (KEY, false, false), (OTHER_KEY, true, false)]
    {
        let mut node = Node::new(1);
        let (caller, lobby) = (node.joins("me"), node.lobby());
        let other = node.joins("other");
        for _ in 0..3 {
            node.say(&other, lobby).expect("a member");
        }
        let seen = vec![(lobby, Number(1))];
        node.ask(Command::Detach { caller, seen: seen.clone() }).expect("it may");
        let it = node.register(registers("me", (key, reconnect))).expect("it is free");
        assert_eq!((it.restored, it.displaced), (back.then_some(seen), None), "{key:?}");
        assert_eq!(node.members().len(), 1 + usize::from(back));
    }
}

#[test]
fn who_lingers_stays_until_it_is_detached_and_goes_on_where_it_was() {
    for reconnect in [true, false] {
        let mut node = Node::new(1);
        let (caller, lobby) = (node.joins("me"), node.lobby());
        let other = node.joins("other");
        let presence = Presence { detail: Some("busy".to_owned()), ..Presence::default() };
        node.ask(Command::SetPresence { caller: caller.clone(), presence: presence.clone() })
            .expect("it is attached");
        node.effects.clear();
        let seen = vec![(lobby, Number::ZERO)];
        node.ask(Command::Linger { caller: caller.clone(), seen: seen.clone(), hosted: false })
            .expect("it may");
        node.say(&other, lobby).expect("a member");
        let Ok(Outcome::Attendance(all)) = node.ask(Command::Attendance) else { panic!("a list") };
        let seen_by_operator: Vec<_> =
            all.iter().map(|it| (&*it.view.name, it.view.lingers, it.rooms.join(" "))).collect();
        let lobby_name = || "lobby".to_owned();
        assert_eq!(seen_by_operator, [("me", true, lobby_name()), ("other", false, lobby_name())]);
        let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("a status") };
        assert_eq!((status.agents, status.agents_mesh), (1, 1), "connected is one");
        let view = |node: &Node| node.engine.known.agent(&"me".into()).expect("it is listed");
        assert_eq!((node.members().len(), view(&node).lingers), (2, true));
        assert!(!node.engine.known.rosters.own("other").expect("connected").lingers);
        let it = node.register(registers("me", (KEY, reconnect))).expect("it is its own");
        assert_eq!(it.restored, Some(seen), "it is told of what it missed");
        assert_eq!(it.displaced, Some(caller.registration));
        assert_eq!((view(&node).lingers, view(&node).presence), (false, presence));
        let left = |effect: &Effect| {
            matches!(
                effect,
                Effect::Notify { event: RoomEvent::Left { .. } | RoomEvent::Joined { .. }, .. }
            )
        };
        assert!(!node.effects.iter().any(left), "nobody sees it leave, or come");
        // The end of the first connection's time is no matter of the second.
        node.ask(Command::Detach { caller, seen: Vec::new() }).expect("a stale one does nothing");
        assert_eq!(node.members().len(), 2);
    }
}

#[test]
fn who_lingers_and_is_detached_is_gone_and_another_key_has_no_use_of_it() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    node.ask(Command::Linger { caller: caller.clone(), seen: Vec::new(), hosted: false })
        .expect("it may");
    let other = node.register(registers("me", (OTHER_KEY, true)));
    assert_eq!(other.map(drop), Err(Refused::AgentTaken("me".into())));
    node.ask(Command::Detach { caller, seen: Vec::new() }).expect("its time is over");
    assert!(node.members().is_empty());
    let it = node.register(registers("me", (KEY, false))).expect("it is free");
    assert_eq!(it.restored, None);
}

#[test]
fn agents_are_told_as_who_they_are_if_they_say_it_shortly() {
    let mut node = Node::new(1);
    let mut takes = |change: &dyn Fn(&mut Attach)| {
        let mut attach = registers(&format!("agent {}", node.calls), (KEY, false));
        change(&mut attach);
        match node.register(attach) {
            Ok(_) => true,
            Err(Refused::Field(_)) => false,
            Err(other) => panic!("{other}"),
        }
    };
    let text = |len| "x".repeat(len);
    for (len, taken) in [(0, false), (1, true), (NAME_BYTES_MAX, true), (NAME_BYTES_MAX + 1, false)]
    {
        assert_eq!(takes(&|it| it.name = text(len)), taken, "a name of {len}");
    }
    for (len, taken) in [(0, false), (AGENT_ID_BYTES_MAX, true), (AGENT_ID_BYTES_MAX + 1, false)] {
        assert_eq!(takes(&|it| it.agent = text(len).into()), taken, "an id of {len}");
    }
    for (more, taken) in [(0, true), (1, false)] {
        let count = CAPABILITIES_MAX + more;
        assert_eq!(takes(&|it| it.capabilities = vec![text(1); count]), taken, "{count} of them");
        let len = NAME_BYTES_MAX + more;
        assert_eq!(takes(&|it| it.capabilities = vec![text(1), text(len)]), taken, "one of {len}");
    }
}

#[test]
fn an_agent_that_comes_back_at_another_node_is_there_and_nowhere_else() {
    let mut world = World::new(2);
    let nodes = [0, 1].map(|n| world.nodes[n].engine.known.cx.me);
    let back = world.ask(1, Command::Attach(registers("agent0", (KEY, true))));
    let Ok(Outcome::Attached(it)) = back else { panic!("{back:?}") };
    assert_eq!(it.restored.map(|it| it.len()), Some(1));
    let (one, other) = (("agent0".into(), nodes[1]), ("agent1".into(), nodes[1]));
    for n in [0, 1] {
        assert_eq!(world.nodes[n].members(), [one.clone(), other.clone()], "node {n}");
    }
    assert!(
        matches!(&world.tells[0][..], [AgentEvent::Displaced { agent, .. }] if **agent == *"agent0")
    );
    let caller = Caller { agent: "agent0".into(), key: KEY, registration: it.registration };
    world.ask(1, Command::Detach { caller, seen: Vec::new() }).expect("it may");
    for n in [0, 1] {
        assert_eq!(world.nodes[n].members(), std::slice::from_ref(&other), "node {n}");
    }
}

#[test]
fn who_had_an_id_loses_it_when_another_key_has_claimed_it() {
    let mut node = Node::new(1);
    let attach = registers("bob", (OTHER_KEY, false));
    node.register(attach).expect("nobody has it");
    let claim = claimed(node.secret.mesh_id(), "bob", KEY);
    let directory = RoomId::directory(node.secret.mesh_id());
    let run = log_of(&node, directory, 6, &[Body::AgentClaimed(claim)]);
    node.hear(&run);
    assert_eq!(node.displaced(), ["bob".into()]);
}

/// As one that the node draws for an agent that chose none.
fn drawn(key: KeyPrint) -> AgentId {
    crate::name::agent::drawn([1, 2, 3, 4, 5, 6], key)
}

impl Node {
    fn claims(&self) -> usize {
        let stored = self.rows.iter().filter_map(|it| match it {
            Change::Entry { entry, .. } => Some(entry.facts.kind),
            _ => None,
        });
        stored.filter(|kind| *kind == crate::wire::kinds::AGENT_CLAIMED).count()
    }
}

#[test]
fn a_drawn_id_is_its_keys_at_every_node_and_is_not_claimed() {
    for seed in [1, 2] {
        let mut node = Node::new(seed);
        let id = drawn(KEY);
        let taken = Err(Refused::AgentTaken(id.clone()));
        for stable in [false, true] {
            assert_eq!(node.attach(&id, stable, OTHER_KEY), taken);
            assert_eq!(node.attach(&id, stable, KeyPrint::OPEN), taken);
        }
        let caller = node.attach(&id, true, KEY).expect("its own");
        assert_eq!((&caller.agent, node.claims()), (&id, 0));
        node.attach(&drawn(KeyPrint::OPEN), true, KeyPrint::OPEN).expect("its own");
        assert_eq!(node.claims(), 0);
    }
    let mut node = Node::new(1);
    node.attach("bob", true, KEY).expect("free");
    assert_eq!(node.claims(), 1, "one that a client chose is claimed");
}

#[test]
fn an_id_that_says_whose_it_is_is_claimed_by_that_key_alone() {
    let mut node = Node::new(1);
    for prefix in ["mcp-", "u-"] {
        let id: AgentId = format!("{prefix}{}-claude", &KEY.to_string()[..16]).as_str().into();
        let taken = Err(Refused::AgentTaken(id.clone()));
        assert_eq!(node.attach(&id, true, OTHER_KEY), taken);
        node.attach(&id, true, KEY).expect("its own");
        assert_eq!(node.directory_owner(&id), Some(KEY), "it claims it");
    }
}

impl Node {
    fn directory_owner(&self, agent: &str) -> Option<KeyPrint> {
        self.engine.known.directory.owner(agent).map(|(key, _)| key)
    }
}

#[test]
fn what_others_claim_of_ids_that_are_a_keys_by_their_form_is_void() {
    let mut node = Node::new(1);
    let mesh = node.secret.mesh_id();
    let reserved = format!("mcp-{}", &KEY.to_string()[..16]);
    let bodies = [&*drawn(KEY), &reserved, "bob"];
    let bodies = bodies.map(|agent| Body::AgentClaimed(claimed(mesh, agent, OTHER_KEY)));
    let run = log_of(&node, RoomId::directory(mesh), 6, &bodies);
    node.hear(&run);
    assert_eq!(node.directory_owner(&drawn(KEY)), None);
    assert_eq!(node.directory_owner(&reserved), None);
    assert_eq!(
        node.directory_owner("bob"),
        Some(OTHER_KEY),
        "of the others the first claim counts"
    );
    node.attach(&drawn(KEY), true, KEY).expect("its own");
    node.attach(&reserved, true, KEY).expect("its own");
}

/// Its halves may not be shown, or it has not signed for itself.
#[test]
fn a_key_that_does_not_sign_claims_no_id() {
    let mut node = Node::new(1);
    let refused = node.attach("bob", true, KeyPrint([9; 16])).expect_err("nobody signed");
    let Refused::Impossible(text) = refused else { panic!("{refused:?}") };
    assert!(text.contains("32 characters"), "{text}");
    assert_eq!(node.claims(), 0);
    node.attach("bob", false, KeyPrint([9; 16])).expect("it is not to stay its own");
}

// What they say of themselves.

fn presence(node: &mut Node) -> usize {
    let told = std::mem::take(&mut node.effects).into_iter();
    let told = told.filter(|it| matches!(it, Effect::Notify { event: RoomEvent::Presence(_), .. }));
    told.count()
}

#[test]
fn members_are_told_what_an_agent_does_if_it_says_it_shortly() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    presence(&mut node);
    let set = |node: &mut Node, detail: usize, progress| {
        let detail = Some("x".repeat(detail));
        let presence = Presence { detail, progress: Some(progress), ..Presence::default() };
        let set = Command::SetPresence { caller: caller.clone(), presence };
        match node.ask(set) {
            Ok(_) => true,
            Err(Refused::Field(_)) => false,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(set(&mut node, DESCRIPTION_BYTES_MAX, 100));
    assert_eq!(presence(&mut node), 1);
    assert!(set(&mut node, DESCRIPTION_BYTES_MAX, 100));
    assert_eq!(presence(&mut node), 0, "it is the same");
    assert!(!set(&mut node, DESCRIPTION_BYTES_MAX + 1, 100));
    assert!(!set(&mut node, 5, 101));
    assert_eq!(presence(&mut node), 0);
    let view = node.engine.known.rosters.view(&"me".into()).expect("it is there");
    assert_eq!(view.presence.progress, Some(100));
}

#[test]
fn who_types_is_told_where_it_is_a_member_and_to_peers_only_in_rooms_that_they_share() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let own = NewRoom { public: false, ..rooms::new("own", false) };
    let own = rooms::make(&mut node, &caller, own).expect("it is new");
    let mut types = |room| {
        node.effects.clear();
        let types = Command::SetTyping { caller: caller.clone(), room, typing: true };
        let refused = node.ask(types).err();
        let told =
            |it: &&Effect| matches!(it, Effect::Notify { event: RoomEvent::Typing { .. }, .. });
        let sent = |it: &&Effect| {
            matches!(it, Effect::Broadcast { message: Message::Roster(it), .. }
                if matches!(it.value.what, What::Typing { .. }))
        };
        let count = |it: &dyn Fn(&&Effect) -> bool| node.effects.iter().filter(it).count();
        (refused, count(&told), count(&sent))
    };
    assert_eq!(types(lobby), (None, 1, 1));
    assert_eq!(types(own), (Some(Refused::NotMember), 0, 0));
    node.ask(Command::Join { caller: caller.clone(), room: own }).expect("its owner");
    let mut types = |room| {
        node.effects.clear();
        let types = Command::SetTyping { caller: caller.clone(), room, typing: true };
        node.ask(types).expect("a member");
        node.effects.iter().filter(|it| matches!(it, Effect::Broadcast { .. })).count()
    };
    assert_eq!((types(own), types(lobby)), (0, 1));
    // Gossip passes nothing on twice: what is said again is another message.
    node.effects.clear();
    for _ in 0..2 {
        let types = Command::SetTyping { caller: caller.clone(), room: lobby, typing: true };
        node.ask(types).expect("a member");
    }
    let said = node.effects.iter().filter_map(|it| match it {
        Effect::Broadcast { message, .. } => Some(message.encode()),
        _ => None,
    });
    let said: std::collections::BTreeSet<Vec<u8>> = said.collect();
    assert_eq!(said.len(), 2);
}

#[test]
fn it_is_shown_when_an_agent_spoke_last_and_how_many_there_are() {
    let mut world = World::new(2);
    let caller = world.nodes[0].joins("more");
    world.carry();
    world.pass(Duration::from_secs(1));
    let lobby = world.lobby();
    let Ok(Outcome::Said(said)) = world.nodes[0].say(&caller, lobby) else { panic!("a member") };
    world.carry();
    for n in [0, 1] {
        let list = Command::ListAgents { by: KEY.into(), room: Some(lobby) };
        let Ok(Outcome::Agents(agents)) = world.ask(n, list) else { panic!("anybody may") };
        let active = agents.iter().find(|it| *it.agent == *"more").map(|it| it.last_active_ms);
        assert_eq!(active, said.fresh.as_ref().map(|fresh| fresh.wall_ms), "node {n}");
        let Ok(Outcome::Status(status)) = world.ask(n, Command::Status) else { panic!("it says") };
        let (here, there) = if n == 0 { (2, 1) } else { (1, 2) };
        assert_eq!((status.agents, status.agents_mesh), (here, 3));
        assert_eq!(status.nodes.iter().map(|it| it.agents).collect::<Vec<_>>(), [there]);
    }
}

#[test]
fn members_are_told_who_joined_and_whether_it_was_there_before() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let joined = |node: &mut Node| {
        let told = std::mem::take(&mut node.effects).into_iter().filter_map(|it| match it {
            Effect::Notify { room, event: RoomEvent::Joined { reconnected, .. } } => {
                Some((room, reconnected))
            }
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(joined(&mut node), [(lobby, false)]);
    node.ask(Command::Detach { caller, seen: Vec::new() }).expect("it may");
    let it = node.register(registers("me", (KEY, true))).expect("it is its own");
    assert_eq!(joined(&mut node), [(lobby, true)]);
    let caller = Caller { agent: "me".into(), key: KEY, registration: it.registration };
    let room = rooms::make(&mut node, &caller, rooms::new("new", false)).expect("it is new");
    node.ask(Command::Join { caller, room }).expect("public");
    assert_eq!(joined(&mut node), [(room, false)]);
}

// Whose turn it is.

type Turn = (Option<AgentId>, Vec<AgentId>, TurnReason);

fn turns(node: &mut Node) -> Vec<Turn> {
    let told = std::mem::take(&mut node.effects).into_iter().filter_map(|it| match it {
        Effect::Notify { event: RoomEvent::Turn { holder, order, reason }, .. } => {
            Some((holder, order.to_vec(), reason))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn the_turn_goes_round_and_goes_on_when_its_holder_leaves() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let callers = ["a", "b", "c"].map(|agent| node.attach(agent, false, KEY).expect("free"));
    node.effects.clear();
    // They join in one moment: who was first is known all the same.
    for caller in &callers {
        let join = Command::Join { caller: caller.clone(), room: lobby };
        node.calls += 1;
        let call = CallId(node.calls);
        node.engine.handle(node.now, Input::Command { call, command: join });
    }
    node.turn();
    let order = ["a", "b", "c"].map(AgentId::from).to_vec();
    let told = turns(&mut node);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].0.as_deref(), told[0].2), (Some("a"), TurnReason::Joined));
    let held = |node: &mut Node| {
        let Ok(Outcome::RoomInfo(info)) =
            node.ask(Command::RoomInfo { by: KEY.into(), room: lobby })
        else {
            panic!("anybody may")
        };
        info.turn
    };
    assert_eq!(held(&mut node), Some("a".into()));
    for (speaker, next) in [(0, "b"), (1, "c"), (2, "a"), (0, "b"), (2, "a"), (0, "b")] {
        node.say(&callers[speaker], lobby).expect("a member");
        let told = turns(&mut node);
        assert_eq!(told, [(Some(next.into()), order.clone(), TurnReason::MessageSent)]);
        assert_eq!(held(&mut node), Some(next.into()));
    }
    let thought = Say { speech: Speech::Thinking, ..words(lobby, "hm".to_owned()) };
    node.ask(Command::Say { caller: callers[1].clone(), say: thought }).expect("a member");
    node.joins("d");
    assert_eq!((turns(&mut node), held(&mut node)), (vec![], Some("b".into())));
    let leave = Command::Leave { caller: callers[1].clone(), room: lobby };
    node.ask(leave).expect("a member");
    let left = ["a", "c", "d"].map(AgentId::from).to_vec();
    assert_eq!(turns(&mut node), [(Some("a".into()), left, TurnReason::Left)]);
}

#[test]
fn a_crowd_is_told_once_a_second_however_often_it_speaks() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let callers: Vec<Caller> =
        (0..=TURNS_TOLD_UP_TO).map(|n| node.joins(&format!("agent{n}"))).collect();
    turns(&mut node);
    let mut told = 0;
    for caller in &callers[..10] {
        node.say(caller, lobby).expect("a member");
        node.wait(CROWD_TOLD_EVERY / 5);
        told += turns(&mut node).len();
    }
    assert!((2..=3).contains(&told), "{told} times in two seconds");
}

// What is kept of them.

#[test]
fn a_small_roster_is_written_when_it_moves_and_a_large_one_now_and_then() {
    let written = |node: &mut Node| {
        let rows = std::mem::take(&mut node.rows).into_iter();
        rows.filter(|it| matches!(it, Change::Node(_))).count()
    };
    for (capabilities, at_once) in [(0, 1), (CAPABILITIES_MAX - 4, 1), (CAPABILITIES_MAX, 0)] {
        let mut node = Node::new(1);
        let lobby = node.lobby();
        let mut attach = registers("me", (KEY, false));
        attach.capabilities = vec!["x".repeat(NAME_BYTES_MAX); capabilities];
        let it = node.register(attach).expect("it is free");
        let caller = Caller { agent: "me".into(), key: KEY, registration: it.registration };
        node.wait(ROSTER_KEPT_EVERY * 2);
        written(&mut node);
        for nth in 0..8 {
            let (caller, room) = (caller.clone(), lobby);
            node.ask(if nth % 2 == 0 {
                Command::Join { caller, room }
            } else {
                Command::Leave { caller, room }
            })
            .expect("it may");
            // The first is written if nothing was for long.
            if nth > 0 {
                assert_eq!(written(&mut node), at_once, "{nth}");
            }
            written(&mut node);
            node.now.mono += Duration::from_millis(50);
        }
        node.wait(ROSTER_KEPT_EVERY);
        assert_eq!(written(&mut node), 1 - at_once, "what was not is");
        node.wait(ROSTER_KEPT_EVERY * 2);
        assert_eq!(written(&mut node), 0, "nothing is new");
        let detail = Some("busy".to_owned());
        let presence = Presence { detail, ..Presence::default() };
        // Just after it was written: what agents do is worth a while.
        node.ask(Command::Join { caller: caller.clone(), room: lobby }).expect("it may");
        written(&mut node);
        node.ask(Command::SetPresence { caller, presence }).expect("it may");
        assert_eq!(written(&mut node), 0);
        node.wait(ROSTER_KEPT_EVERY + TICK);
        assert_eq!(written(&mut node), 1);
    }
}

// Stopping.

#[test]
fn a_node_that_stops_takes_leave_and_who_takes_over_goes_on_at_once() {
    let mut world = World::new(2);
    world.link();
    world.pass(Duration::from_secs(1));
    let call = membership::speak(&mut world, 1);
    let Some(Ok(Outcome::Said(before))) = world.reply(1, call) else { panic!("it is numbered") };
    world.begin(0, Command::Stop);
    world.carry();
    assert!(world.stopped.contains(&0), "no time has passed");
    let left = world.told[1].iter().any(|it| match it {
        RoomEvent::Left { agent } => **agent == *"agent0",
        _ => false,
    });
    assert!(left, "its agents are gone");
    world.down.insert(0);
    let call = membership::speak(&mut world, 1);
    let Some(Ok(Outcome::Said(after))) = world.reply(1, call) else { panic!("it is numbered") };
    assert_eq!((after.number.era(), after.number.0), (Era::HOME, before.number.0 + 1));
}

#[test]
fn who_waits_for_a_stable_id_at_a_node_that_stops_is_told_that_it_stops() {
    let mut world = World::new(2);
    world.link();
    let caller = world.callers[1].clone();
    let room = rooms::new("plan", false);
    world.begin(1, Command::CreateRoom { caller, room });
    world.pass(Duration::from_secs(1));
    world.groups = vec![0, 1];
    let attach = Attach { stable: true, ..registers("bob", (KEY, true)) };
    let call = world.begin(1, Command::Attach(attach));
    world.begin(1, Command::Stop);
    world.carry();
    assert!(!world.stopped.contains(&1) && world.reply(1, call).is_none());
    world.groups = vec![0, 0];
    world.carry();
    assert_eq!(world.reply(1, call).map(|it| it.map(|_| ())), Some(Err(Refused::Stopping)));
    assert!(world.stopped.contains(&1), "and it stops");
    world.pass(HANDOVER_STEP);
}

/// A room of memory is known as long as somebody lists it; this node may have given numbers there before it started.
#[test]
fn what_was_claimed_in_a_room_of_memory_is_not_claimed_again() {
    let mut world = World::new(3);
    world.link();
    let maker = world.callers[2].clone();
    let room = rooms::make(&mut world.nodes[2], &maker, rooms::new("now", true)).expect("new");
    world.pass(Duration::from_secs(1));
    for n in [0, 1] {
        let caller = world.callers[n].clone();
        world.ask(n, Command::Join { caller, room }).expect("public");
    }
    world.pass(Duration::from_secs(1));
    world.down.insert(2);
    world.groups = vec![0, 1, 0];
    let say = |world: &mut World| {
        let (caller, say) = (world.callers[0].clone(), words(room, "hello".to_owned()));
        let call = world.begin(0, Command::Say { caller, say });
        world.pass(Duration::from_secs(8));
        let Some(Ok(Outcome::Said(said))) = world.reply(0, call) else { panic!("it is numbered") };
        said.number
    };
    let before = say(&mut world);
    assert!(before.era() > Era::HOME);
    world.restart(0);
    world.groups = vec![0; 3];
    world.pass(Duration::from_secs(2));
    let record = &world.nodes[0].engine.known.rooms[&room].replica.record;
    assert_eq!(record.floor, Some(before.era()));
    world.down.insert(1);
    let caller = world.callers[0].clone();
    world.ask(0, Command::Join { caller, room }).expect("public");
    assert!(say(&mut world) > before);
}

#[test]
fn an_agent_is_told_of_its_seats_and_of_the_names_of_nodes() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let seats =
        |node: &mut Node, caller: &Caller| node.ask(Command::ListSeats { caller: caller.clone() });
    let Ok(Outcome::Seats(found)) = seats(&mut node, &caller) else { panic!("a list") };
    assert_eq!(found, [lobby]);
    node.ask(Command::Linger { caller: caller.clone(), seen: Vec::new(), hosted: false })
        .expect("it may");
    let Ok(Outcome::Seats(found)) = seats(&mut node, &caller) else { panic!("also as it lingers") };
    assert_eq!(found, [lobby]);
    node.ask(Command::Detach { caller: caller.clone(), seen: Vec::new() })
        .expect("its time is over");
    assert_eq!(seats(&mut node, &caller).map(drop), Err(Refused::Superseded));
    let (me, stranger) = (node.engine.known.cx.me, NodeId([9; 32]));
    let named = Command::NameNodes { nodes: vec![stranger, me] };
    let Ok(Outcome::NodeNames(names)) = node.ask(named) else { panic!("names") };
    let own = node.engine.known.directory.nodes.names.get(&me).cloned();
    assert_eq!(names, [None, own]);
}

#[test]
fn agents_that_offer_something_are_found_whatever_their_key_is() {
    let mut node = Node::new(1);
    let offers = |agent: &str, key, capabilities: &[&str]| Attach {
        capabilities: capabilities.iter().map(|own| (*own).to_owned()).collect(),
        ..registers(agent, (key, false))
    };
    for attach in [
        offers("cy", PRINTS[2], &["spawn", "sheep"]),
        offers("ann", KEY, &["sheep"]),
        offers("bob", PRINTS[2], &[]),
    ] {
        node.ask(Command::Attach(attach)).expect("free");
    }
    let mut found = |capability: Option<&str>, limit| {
        let capability = capability.map(str::to_owned);
        let found = node.ask(Command::ListOffering { capability, limit });
        let Ok(Outcome::Agents(agents)) = found else { panic!("a list") };
        agents.iter().map(|view| view.agent.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(None, 9), ["ann", "cy"]);
    assert_eq!(found(None, 1), ["ann"]);
    assert_eq!(found(Some("spawn"), 9), ["cy"]);
    assert!(found(Some("wool"), 9).is_empty());
    let mut attached = |limit| {
        let found = node.ask(Command::ListAttached { limit });
        let Ok(Outcome::Agents(agents)) = found else { panic!("a list") };
        agents.iter().map(|view| view.agent.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(attached(9), ["ann", "bob", "cy"], "of any key, and those that offer nothing");
    assert_eq!(attached(2), ["ann", "bob"]);
}

#[test]
fn an_agent_that_stands_outside_writes_without_a_seat_and_moves_no_turn() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let [ann, _bob] = ["ann", "bob"].map(|agent| node.joins(agent));
    let eve = node.attach("eve", false, KEY).expect("free");
    assert_eq!(node.say(&eve, lobby).map(drop), Err(Refused::NotMember));
    let task = |caller: &Caller| {
        let (title, description, assignee) = ("shear".to_owned(), None, Some("bob".into()));
        let task = NewTask { description, assignee, ..NewTask::of(lobby, title) };
        Command::AssignTask { caller: caller.clone(), task }
    };
    assert_eq!(node.ask(task(&eve)).map(drop), Err(Refused::NotMember));
    node.ask(Command::StandOutside { caller: eve.clone() }).expect("she may");
    let holder = |node: &mut Node| {
        let by = ann.reader();
        let Ok(Outcome::RoomInfo(info)) = node.ask(Command::RoomInfo { by, room: lobby }) else {
            panic!("it is known")
        };
        (info.turn, info.agents.len())
    };
    node.say(&ann, lobby).expect("she is in it");
    let before = holder(&mut node);
    assert_eq!(before, (Some("bob".into()), 2));
    node.say(&eve, lobby).expect("she writes from outside");
    node.ask(task(&eve)).expect("tasks, too");
    assert_eq!(holder(&mut node), before, "it is Bob's turn, and she is no member");
    let elect = Command::ElectLeader { caller: eve.clone(), room: lobby };
    assert_eq!(node.ask(elect).map(drop), Err(Refused::NotMember), "and has no vote");
    // Somebody else may have the id after her.
    let eve = node.attach("eve", true, KEY).expect("it is the key's");
    assert_eq!(node.say(&eve, lobby).map(drop), Err(Refused::NotMember));
}

#[test]
fn an_id_that_a_key_has_claimed_is_no_other_keys() {
    let mut node = Node::new(1);
    let caller = node.attach("bob", true, KEY).expect("free");
    let mut may =
        |agent: &str, key| node.ask(Command::CheckAgent { agent: agent.into(), key }).map(drop);
    assert_eq!(may("bob", KEY), Ok(()));
    assert_eq!(may("bob", PRINTS[2]), Err(Refused::AgentTaken("bob".into())));
    assert_eq!(may("ann", PRINTS[2]), Ok(()), "nobody has claimed it");
    // A host of it is seen to act by requests, until a connection takes its place.
    let hosts = Command::Linger { caller, seen: Vec::new(), hosted: true };
    node.ask(hosts).expect("it may");
    let mut hosted = || {
        let found = node.ask(Command::FindAgent { agent: "bob".into() });
        let Ok(Outcome::Agents(agents)) = found else { panic!("a list") };
        (agents[0].lingers, agents[0].hosted)
    };
    assert_eq!(hosted(), (true, true));
    node.attach("bob", true, KEY).expect("its own");
    let found = node.ask(Command::FindAgent { agent: "bob".into() });
    let Ok(Outcome::Agents(agents)) = found else { panic!("a list") };
    assert_eq!((agents[0].lingers, agents[0].hosted), (false, false));
}

//! Keys that are replaced by others: what was a key's own is its successor's.

use super::{
    room_records::{new_room, set, title},
    world::{STEP, World},
    *,
};
use crate::{
    api::{agenda::NewSuccessor, event::AgentEvent, proof::Proof},
    name::{agent::drawn, group::Group, id::RoomKey},
    wire::{acts::KeyReplaced, seal::Inheritance, signatures::testing::secret},
};

const OLD: KeyPrint = PRINTS[4];
const NEW: KeyPrint = PRINTS[5];
const NEXT: KeyPrint = PRINTS[6];

fn successor(log: &SignedLog, old: KeyPrint, new: KeyPrint) -> NewSuccessor {
    let text = |key| secret(key).expect("it is known");
    let mailbox = text(old).mailbox().expect("it is long enough").clone();
    let secrets = Inheritance { opener: opener(old), mailbox };
    let sealed = secrets.seal(log.mesh, &text(new).halves().mailbox);
    let replaced = KeyReplaced::sign(text(old), text(new), log, sealed);
    let replaced = replaced.expect("they are long enough");
    let shown = shown(log, old).expect("it is known");
    NewSuccessor { replaced: Box::new(replaced), shown: Box::new(shown) }
}

fn opener(key: KeyPrint) -> RoomKey {
    RoomKey::of(&format!("{key}"))
}

/// With a key that is minted, and secrets that open its rooms.
pub(super) fn minted_attach(agent: &str, key: KeyPrint, stable: bool) -> Attach {
    let mailbox = secret(key).and_then(|secret| secret.mailbox().ok()).cloned();
    let opener = Some(opener(key));
    Attach { own: false, opener, mailbox, stable, ..registers(agent, (key, true)) }
}

impl Node {
    pub(super) fn replaces(&mut self, old: KeyPrint, new: KeyPrint) -> Result<Outcome, Refused> {
        let new = successor(&self.signed_log(), old, new);
        self.ask(Command::ReplaceKey(Box::new(new)))
    }

    fn enters(&mut self, attach: Attach) -> Result<Caller, Refused> {
        let (agent, key) = (attach.agent.clone(), attach.key);
        match self.ask(Command::Attach(attach))? {
            Outcome::Attached(it) => Ok(Caller { agent, key, registration: it.registration }),
            other => panic!("{other:?}"),
        }
    }

    fn private_room(&mut self, caller: &Caller, name: &str) -> Result<RoomId, Refused> {
        let (description, parent) = (None, None);
        let (name, public) = (name.to_owned(), false);
        let room =
            NewRoom { name, description, parent, ephemeral: false, public, encrypted: false };
        match self.ask(Command::CreateRoom { caller: caller.clone(), room })? {
            Outcome::Room(view) => Ok(view.room),
            other => panic!("{other:?}"),
        }
    }

    fn sees(&mut self, key: KeyPrint) -> Vec<String> {
        match self.ask(Command::ListRooms { by: key.into(), parent: None }) {
            Ok(Outcome::Rooms(rooms)) => rooms.iter().map(|room| room.name.to_string()).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn proof_of(&self, agent: &str, key: KeyPrint) -> Proof {
        let said = Said { agent: agent.into(), key: Some(key), ..said("x") };
        self.engine.proofs().of(self.engine.known.cx.me, &said)
    }

    fn was_told_invalid(&self, key: KeyPrint) -> bool {
        let told = |it: &Effect| matches!(it, Effect::Tell(AgentEvent::KeyInvalid { key: of }) if *of == key);
        self.effects.iter().any(told)
    }
}

impl World {
    /// An agent comes with a key that is minted for the mesh.
    pub(super) fn enters(&mut self, n: usize, agent: &str, key: KeyPrint) -> Caller {
        let call = self.begin(n, Command::Attach(minted_attach(agent, key, true)));
        self.carry();
        self.pass(STEP * 20);
        match self.reply(n, call) {
            Some(Ok(Outcome::Attached(it))) => {
                Caller { agent: agent.into(), key, registration: it.registration }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn text(refused: Result<Outcome, Refused>) -> String {
    match refused {
        Err(Refused::Impossible(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rooms_and_ids_of_a_minted_key_are_its_successors() {
    let mut node = Node::new(1);
    node.mints(OLD);
    node.mints(NEW);
    let old = node.enters(minted_attach("ann", OLD, true)).expect("it is free");
    let room = node.private_room(&old, "plan").expect("it is its own");
    node.ask(Command::Join { caller: old.clone(), room }).expect("it is its own");
    node.say(&old, room).expect("it is in it");
    assert_eq!(node.sees(NEW), ["lobby"]);
    let drawn = drawn([3; 6], OLD);
    assert_eq!(
        node.enters(minted_attach(&drawn, NEW, true)),
        Err(Refused::AgentTaken(drawn.clone()))
    );

    node.replaces(OLD, NEW).expect("this node has minted both");
    assert!(node.was_told_invalid(OLD), "its agents have to go");
    assert!(matches!(node.say(&old, room), Err(Refused::Superseded)));
    assert_eq!(node.enters(minted_attach("ann", OLD, true)), Err(Refused::NoKey));
    assert_eq!(
        (node.sees(NEW), node.sees(OLD)),
        (vec!["lobby".into(), "plan".into()], vec!["lobby".into()])
    );
    let new = node.enters(minted_attach("ann", NEW, true)).expect("the id is its own");
    node.say(&new, room).expect("it has its seat again");
    assert_eq!(node.private_room(&new, "plan"), Err(Refused::NameTaken("plan".to_owned())));
    node.enters(minted_attach(&drawn, NEW, true)).expect("an id that was drawn for the old one");

    let unproven = Proof { verified: false, key_revoked: true };
    assert_eq!(node.proof_of("ann", OLD), unproven, "its messages stay");
    assert!(node.proof_of("ann", NEW).verified && node.proof_of(&drawn, NEW).verified);

    node.mints(NEXT);
    node.replaces(NEW, NEXT).expect("it may be replaced, too");
    assert_eq!(node.sees(NEXT), ["lobby", "plan"]);
    node.enters(minted_attach("ann", NEXT, true)).expect("the id is its own");
    node.enters(minted_attach(&drawn, NEXT, true)).expect("and this one");
    node.ask(Command::RevokeKey { key: NEXT }).expect("it was minted");
    assert_eq!(node.sees(NEXT), ["lobby"], "with the last key all is gone");
}

#[test]
fn a_successor_sets_the_details_of_the_rooms_that_it_has_and_not_those_of_others() {
    let mut node = Node::new(1);
    [OLD, NEW, NEXT].into_iter().for_each(|key| node.mints(key));
    let old = node.enters(minted_attach("ann", OLD, true)).expect("it is free");
    let other = node.enters(minted_attach("eve", NEXT, true)).expect("it is free");
    let room = node.private_room(&old, "plan").expect("it is its own");
    let told = |node: &mut Node, caller, text| node.ask(set(caller, room, title(text)));
    told(&mut node, &old, "before").expect("it is its own");
    node.replaces(OLD, NEW).expect("this node has minted both");
    assert_eq!(node.title(room), None, "a thief of the old key could sign another one");
    let new = node.enters(minted_attach("ann", NEW, true)).expect("the id is its own");
    told(&mut node, &new, "after").expect("the room is its own");
    assert_eq!(node.title(room).as_deref(), Some("after"));
    assert!(matches!(told(&mut node, &other, "mine"), Err(Refused::NotYours)));
}

#[test]
fn a_nodes_own_key_has_a_successor_though_nobody_minted_it_or_showed_it_before() {
    for attached in [true, false] {
        let mut node = Node::new(1);
        if attached {
            let old = node.attach("ann", true, OLD).expect("it is free");
            node.private_room(&old, "plan").expect("it is its own");
        }
        node.replaces(OLD, NEW).expect("it was shown here now");
        assert_eq!(node.was_told_invalid(OLD), attached || node.was_told_invalid(OLD));
        let expected: &[&str] = if attached { &["lobby", "plan"] } else { &["lobby"] };
        assert_eq!(node.sees(NEW), expected);
        node.attach("ann", true, NEW).expect("the id is its own, or free");
        assert!(!node.proof_of("ann", OLD).verified && node.proof_of("ann", NEW).verified);
    }
}

#[test]
fn all_nodes_know_the_successor_and_only_the_one_that_minted_the_key_names_it() {
    let (mut here, mut there) = (Node::new(1), Node::new(2));
    here.mints(OLD);
    here.mints(NEW);
    here.enters(minted_attach("ann", OLD, true)).expect("it is free");
    for run in here.runs_sent() {
        there.hear(&run);
    }
    let refused = text(there.replaces(OLD, NEW));
    assert!(refused.contains("only that node can replace it"), "{refused}");
    // A node that was shown the key, and another successor: it does not count, whatever that node writes.
    let log = SignedLog { node: identity(9).node_id(), ..there.signed_log() };
    let stolen = successor(&log, OLD, NEXT);
    let bodies = [
        Body::Key(crate::wire::acts::KeyAct::Shown(*stolen.shown)),
        Body::Key(crate::wire::acts::KeyAct::Replaced(*stolen.replaced)),
    ];
    let directory = RoomId::directory(there.secret.mesh_id());
    let run = log_of(&there, directory, 9, &bodies);
    there.hear(&run);
    assert_eq!(there.engine.known.directory.current(OLD), OLD);

    here.replaces(OLD, NEW).expect("it minted both");
    for run in here.runs_sent() {
        there.hear(&run);
    }
    here.hear(&run);
    for node in [&mut here, &mut there] {
        assert_eq!(node.engine.known.directory.current(OLD), NEW);
        let taken = node.enters(Attach { reconnect: false, ..minted_attach("ann", NEXT, true) });
        assert!(taken.is_err());
        node.enters(minted_attach("ann", NEW, true)).expect("the id is its own");
    }
}

#[test]
fn a_successor_opens_the_private_rooms_of_its_line_where_no_older_key_was_presented() {
    let mut world = World::new(2);
    world.link();
    [OLD, NEW, NEXT].into_iter().for_each(|key| world.nodes[0].mints(key));
    world.carry();
    let old = world.enters(0, "ann", OLD);
    world.makes(0, &old, new_room("plan", false, false));
    for (old, new) in [(OLD, NEW), (NEW, NEXT)] {
        world.nodes[0].replaces(old, new).expect("it minted both");
        world.carry();
    }
    assert_eq!(world.nodes[1].sees(NEXT), ["lobby"]);
    let call = world.begin(1, Command::Attach(minted_attach("ann", NEXT, true)));
    world.carry();
    world.pass(STEP * 20);
    assert!(matches!(world.reply(1, call), Some(Ok(Outcome::Attached(_)))));
    assert_eq!(world.nodes[1].sees(NEXT), ["lobby", "plan"]);
    world.restart(1);
    assert!(world.nodes[1].engine.known.cx.followers.token(Group::Key(OLD)).is_some());
}

#[test]
fn a_successor_that_is_none_is_refused_with_the_reason() {
    let mut node = Node::new(1);
    node.mints(OLD);
    let refused = |node: &mut Node, old, new| text(node.replaces(old, new));
    assert!(refused(&mut node, OLD, OLD).contains("itself"));
    assert!(refused(&mut node, OLD, NEW).contains("minted for the whole mesh"));
    node.mints(NEW);
    node.ask(Command::RevokeKey { key: NEW }).expect("it was minted");
    assert!(refused(&mut node, OLD, NEW).contains("not valid any more"));
    node.mints(NEXT);
    let elsewhere = SignedLog { node: NodeId([9; 32]), ..node.signed_log() };
    let other = successor(&elsewhere, OLD, NEXT);
    let refused_text = text(node.ask(Command::ReplaceKey(Box::new(other))));
    assert!(refused_text.contains("have not signed"), "{refused_text}");
    node.replaces(OLD, NEXT).expect("both are its own");
    node.replaces(OLD, NEXT).expect("it says again what holds");
    node.mints(PRINTS[7]);
    assert!(refused(&mut node, OLD, PRINTS[7]).contains("replaced before"));
}

#[test]
fn what_only_one_of_the_two_keys_has_signed_is_nobodys_word() {
    let node = Node::new(1);
    let log = SignedLog { node: identity(9).node_id(), ..node.signed_log() };
    let good = *successor(&log, OLD, NEW).replaced;
    let other = *successor(&log, NEXT, NEW).replaced;
    let judged = |replaced: KeyReplaced| {
        let body = Body::Key(crate::wire::acts::KeyAct::Replaced(replaced));
        let directory = RoomId::directory(node.secret.mesh_id());
        log_of(&node, directory, 9, &[body]).verify(node.secret.mesh_id()).is_ok()
    };
    assert!(judged(good.clone()));
    assert!(!judged(KeyReplaced { by: other.by, ..good.clone() }));
    assert!(!judged(KeyReplaced { successor: other.successor, ..good }));
}

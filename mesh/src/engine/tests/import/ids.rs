//! Ids of messages, votes and tasks that clients hold from the imported server.

use super::*;
use crate::api::import::message_id;

/// Which ids lead where, as the store is told.
fn called(node: &Node, room: RoomId) -> Vec<(MessageId, LocalRef)> {
    let rows = node.rows.iter().filter_map(|it| match it {
        Change::Called { room: of, id, at } if *of == room => Some((*id, *at)),
        _ => None,
    });
    rows.collect()
}

#[test]
fn messages_votes_and_tasks_keep_their_ids_at_every_node() {
    let mut world = World::new(2);
    world.nodes[0].bring(Import::Room(brought())).expect("new");
    let reply_to = Some(foreign(2).to_uuid());
    let ours = ImportedMessage { id: None, ..message(6) };
    let list = vec![message(2), ImportedMessage { reply_to, ..message(5) }, ours];
    let all = ImportedMessages { room: BROUGHT, messages: list, next: 7 };
    world.nodes[0].bring(Import::Messages(all)).expect("they rise");
    world.nodes[0].bring(Import::Vote(BROUGHT, 77, ended())).expect("it ended");
    let mut it = task(None, TaskStatus::Pending, None);
    it.task.id = Some(foreign(78));
    world.nodes[0].bring(Import::Task(it)).expect("as any");
    world.carry();
    for n in 0..2 {
        let node = &world.nodes[n];
        let ids: Vec<MessageId> = called(node, BROUGHT).into_iter().map(|it| it.0).collect();
        assert_eq!(ids, [foreign(2), foreign(5)], "node {n}");
        let room = &node.engine.known.rooms[&BROUGHT];
        let log = room.replica.record.home;
        for row in &node.rows {
            let Change::Entry { room: BROUGHT, at, entry } = row else { continue };
            let Some(said) = Body::decode(entry.facts.kind, &entry.body).said() else { continue };
            let shown = message_id(
                &room.replica.record,
                BROUGHT,
                EntryRef { log, seq: at.seq },
                Some(&said),
            );
            let expected = said.id.unwrap_or(MessageId::new(BROUGHT, log, at.seq));
            assert_eq!(shown, expected, "{}", said.content);
        }
    }
    for _ in 0..2 {
        for n in 0..2 {
            let vote = world.ask(n, Command::GetVote { by: KEY.into(), vote: foreign(77) });
            assert!(matches!(vote, Ok(Outcome::Vote(it)) if it.vote == foreign(77)), "node {n}");
            let caller = world.callers[n].clone();
            world.ask(n, Command::Join { caller: caller.clone(), room: BROUGHT }).expect("public");
            let (status, note) = (Some(TaskStatus::Blocked), Some(format!("by {n}")));
            let update = TaskUpdate { task: foreign(78), status, note, ..nothing() };
            let updated = world.ask(n, Command::UpdateTask { caller, update });
            assert!(matches!(updated, Ok(Outcome::Task(it)) if it.task == foreign(78)), "node {n}");
            world.carry();
        }
        assert_eq!(world.tasks_of(0, BROUGHT), world.tasks_of(1, BROUGHT));
        (0..2).for_each(|n| world.restart(n));
    }
}

fn nothing() -> TaskUpdate {
    TaskUpdate::of(foreign(0))
}

/// The founder is stopped between what it brought and its numbers: what is delivered after the start has
/// its id, too.
#[test]
fn what_waited_over_a_start_has_its_id() {
    let mut node = Node::new(2);
    let lobby = node.lobby();
    let mut founder = Liar::new(1);
    let it = Said { id: Some(foreign(1)), ..said("brought") };
    let (_, run) = founder.write(&node, &Body::Chat(it));
    node.hear(&run);
    let mut again = Node::open(2, stored(&node.rows), node.now);
    let waits = &again.engine.known.rooms[&lobby].order.numbering.undelivered;
    let ids: Vec<Option<MessageId>> = waits.values().map(|it| it.id).collect();
    assert_eq!(ids, [Some(foreign(1))]);
    let items = vec![Items { log: 0, from: 1, count: 1 }];
    let logs = vec![founder.log()];
    let ordered = Ordered { era: Era::HOME, first: 1, logs, items, by: None };
    let (_, run) = founder.write(&again, &Body::Ordered(ordered));
    again.hear(&run);
    let told = again.effects.iter().filter_map(|it| match it {
        Effect::Notify { event: RoomEvent::Message(it), .. } => Some(it.message),
        _ => None,
    });
    assert!(told.eq([foreign(1)]));
}

#[test]
fn ids_of_old_are_for_the_founder_in_rooms_that_it_brought_and_never_look_like_ours() {
    let mut node = Node::new(2);
    let lobby = node.lobby();
    let (mut liar, mut founder) = (Liar::new(9), Liar::new(1));
    let ours = MessageId::new(lobby, founder.log(), 1);
    let said = |id| Body::Chat(Said { id: Some(id), ..said("x") });
    let task = |id| {
        let ImportedTask { task, .. } = task(None, TaskStatus::Pending, None);
        Body::Task(TaskAct::Assigned(TaskAssigned { id: Some(id), ..task }))
    };
    for (n, body) in (1..).zip([said(foreign(1)), task(foreign(2))]) {
        let (_, run) = liar.write(&node, &body);
        node.hear(&run);
        assert_eq!(
            node.engine.known.rooms[&lobby].replica.logs.head_of(liar.log()),
            n,
            "its log goes on"
        );
    }
    let vote = VoteImported { id: Some(ours), ..ended() };
    for body in [said(ours), task(ours), Body::Vote(VoteAct::Imported(vote))] {
        let (_, run) = founder.write(&node, &body);
        node.hear(&run);
    }
    assert_eq!(called(&node, lobby), []);
    for (engine, when) in [
        (&node.engine, "as they came"),
        (&Node::open(2, stored(&node.rows), node.now).engine, "after a start"),
    ] {
        let room = &engine.known.rooms[&lobby];
        let ids = engine.known.index.tasks.keys().chain(engine.known.index.votes.keys());
        let own = [MessageId::new(lobby, liar.log(), 2), MessageId::new(lobby, founder.log(), 2)];
        let mut expected = own.to_vec();
        expected.push(MessageId::new(lobby, founder.log(), 3));
        let (mut ids, _) = (ids.copied().collect::<Vec<_>>(), expected.sort());
        ids.sort();
        assert_eq!(ids, expected, "{when}");
        assert!(room.order.numbering.undelivered.values().all(|it| it.id.is_none()), "{when}");
    }
    assert_eq!(node.void(), 0);
    // Of two votes of one id the first is found, also when the other is forgotten.
    for n in 0..2 {
        let vote = VoteImported { title: format!("vote {n}"), ..ended() };
        let (_, run) = founder.write(&node, &Body::Vote(VoteAct::Imported(vote)));
        node.hear(&run);
    }
    let Some((_, place)) = node.engine.known.index.votes.get(&foreign(77)).copied() else {
        panic!("known")
    };
    assert_eq!(place.seq, 4);
    let room = (node.lobby(), EntryRef { seq: 5, ..place });
    crate::engine::votes::forget(&mut node.engine.known.index.votes, foreign(77), room);
    assert!(node.engine.known.index.votes.contains_key(&foreign(77)));
}

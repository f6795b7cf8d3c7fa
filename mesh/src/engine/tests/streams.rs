//! Pieces of answers: their order, the nodes that get them, and nodes that lie about them.

use super::{
    pairs::Two,
    world::{STEP, World},
    *,
};
use crate::{
    api::command::NewPiece,
    limits::{
        AWAITED_FOR, AWAITED_ROOMS_MAX, PIECE_BYTES_MAX, PIECE_BYTES_PER_SECOND,
        PIECES_HEARD_FACTOR, PIECES_PER_SECOND, STREAMING_AGENTS_PER_NODE_MAX,
    },
    wire::piece::{Piece, PieceKind, PieceSpot, SentPiece},
};

fn new(room: RoomId, text: &str) -> NewPiece {
    NewPiece {
        room,
        stream: "s".to_owned(),
        reply_to: None,
        kind: PieceKind::Chunk,
        content: Some(text.to_owned()),
        tool: None,
        input: None,
        result: None,
    }
}

fn streams(caller: &Caller, room: RoomId, text: &str) -> Command {
    Command::Stream { caller: caller.clone(), piece: Box::new(new(room, text)) }
}

/// A piece as a node sends it in a room that is not sealed.
fn sent(node: NodeId, room: RoomId, (agent, piece): (&str, u64)) -> Message<Verified> {
    let spot = PieceSpot { room, node, boot: 1, run: 1, piece };
    Message::Piece(SentPiece::new(spot, None, &new(room, "lie").of(agent.into())))
}

fn texts<'e>(events: impl IntoIterator<Item = &'e RoomEvent>) -> Vec<(String, String)> {
    let pieces = events.into_iter().filter_map(|event| match event {
        RoomEvent::Piece { piece, .. } => Some(piece),
        _ => None,
    });
    let text = |piece: &Piece| piece.content.clone().unwrap_or_default();
    pieces.map(|piece| (piece.agent.to_string(), text(piece))).collect()
}

impl World {
    /// Pieces that were sent to a node.
    fn pieces_to(&self, n: usize) -> usize {
        let is_piece = |bytes: &[u8]| matches!(Message::decode(bytes), Ok(Message::Piece(_)));
        self.told_to.iter().filter(|(to, bytes)| *to == n && is_piece(bytes)).count()
    }

    fn awaits(&mut self, n: usize, room: RoomId) {
        self.ask(n, Command::AwaitPieces { rooms: vec![room] }).expect("anybody may");
    }

    fn streams(&mut self, (n, caller): (usize, &Caller), room: RoomId, text: &str) {
        self.ask(n, streams(caller, room, text)).expect("a member");
    }
}

impl Node {
    /// Pieces that readers here were told of since this was asked last.
    fn shown(&mut self) -> Vec<(String, String)> {
        let effects = std::mem::take(&mut self.effects);
        let events = effects.iter().filter_map(|effect| match effect {
            Effect::Notify { event, .. } => Some(event),
            _ => None,
        });
        texts(events)
    }
}

/// The first of three nodes that are connected, and where it awaits pieces.
fn waiting() -> (Node, NodeId, NodeId) {
    let mut world = World::new(3);
    world.link();
    world.pass(STEP * 5);
    let lobby = world.lobby();
    let mut node = world.nodes.swap_remove(0);
    node.ask(Command::AwaitPieces { rooms: vec![lobby] }).expect("anybody may");
    node.effects.clear();
    (node, identity(2).node_id(), identity(3).node_id())
}

#[test]
fn pieces_come_in_their_order_to_nodes_that_wait_and_to_no_other() {
    let mut world = World::new(3);
    world.link();
    world.pass(STEP * 5);
    let (lobby, caller) = (world.lobby(), world.callers[0].clone());
    world.streams((0, &caller), lobby, "nobody waits");
    assert_eq!((world.pieces_to(1), world.pieces_to(2)), (0, 0));
    world.awaits(1, lobby);
    world.told.iter_mut().for_each(Vec::clear);
    let said: Vec<String> = (0..50).map(|nth| format!("piece {nth}")).collect();
    said.iter().for_each(|text| world.streams((0, &caller), lobby, text));
    let expected: Vec<_> = said.into_iter().map(|text| ("agent0".to_owned(), text)).collect();
    assert_eq!(texts(&world.told[0]), expected, "those who are at the same node");
    assert_eq!(texts(&world.told[1]), expected);
    assert_eq!((texts(&world.told[2]).len(), world.pieces_to(2)), (0, 0));
    // It is said anew for as long as somebody waits, and else forgotten.
    for _ in 0..5 {
        world.pass(AWAITED_FOR / 2);
        world.awaits(1, lobby);
    }
    world.streams((0, &caller), lobby, "long after");
    assert_eq!(world.pieces_to(1), 51);
    world.pass(AWAITED_FOR * 2);
    world.streams((0, &caller), lobby, "nobody waits any more");
    assert_eq!(world.pieces_to(1), 51);
}

#[test]
fn a_node_without_the_key_of_a_room_never_gets_a_piece_and_nobody_else_a_readable_one() {
    let (mut two, room) = Two::talking();
    let (bob, ann) = (two.bob.clone(), two.ann.clone());
    two.says(0, &ann, room, "go on");
    two.world.pass(STEP * 5);
    for n in [0, 2] {
        two.world.awaits(n, room);
    }
    // It says so whether it has the room or not.
    let stranger = two.world.nodes[2].engine.known.cx.me;
    let message = Message::Awaits(vec![room]);
    two.world.nodes[1].give(Input::Message { from: stranger, message });
    two.world.streams((1, &bob), room, "for few eyes");
    assert_eq!(texts(&two.world.told[0]), [("bob".to_owned(), "for few eyes".to_owned())]);
    assert_eq!((two.world.pieces_to(0), two.world.pieces_to(2)), (1, 0));
    let readable = |bytes: &[u8]| bytes.windows(8).any(|text| text == b"few eyes");
    assert!(!two.world.told_to.iter().any(|(_, bytes)| readable(bytes)), "it is sealed");
    assert!(texts(&two.world.told[2]).is_empty());
    // Nor is anything shown that such a node says there.
    let lie = sent(stranger, room, ("bob", 9));
    two.world.nodes[0].effects.clear();
    two.world.nodes[0].give(Input::Message { from: stranger, message: lie.clone() });
    let honest = two.world.nodes[1].engine.known.cx.me;
    two.world.nodes[0].give(Input::Message { from: honest, message: lie });
    assert_eq!(two.world.nodes[0].shown(), [], "it is not sealed, either");
}

#[test]
fn a_piece_for_the_agent_of_another_node_is_not_shown_and_none_is_shown_twice() {
    let (mut node, honest, liar) = waiting();
    let lobby = node.lobby();
    let mut hears = |from: NodeId, of: (&str, u64)| {
        node.give(Input::Message { from, message: sent(from, lobby, of) });
        node.shown().len()
    };
    assert_eq!(hears(liar, ("agent1", 1)), 0, "it is at the other node");
    assert_eq!(hears(liar, ("agent0", 2)), 0, "it is here");
    assert_eq!(hears(liar, ("nobody", 3)), 0);
    assert_eq!(hears(honest, ("agent1", 1)), 1);
    assert_eq!(hears(honest, ("agent1", 1)), 0, "again");
    assert_eq!(hears(honest, ("agent1", 3)), 1, "one was lost");
    assert_eq!(hears(honest, ("agent1", 2)), 0, "late");
    assert_eq!(hears(liar, ("agent2", 4)), 1, "its own");
    let elsewhere = RoomId([9; 16]);
    node.give(Input::Message { from: liar, message: sent(liar, elsewhere, ("agent2", 5)) });
    assert_eq!(node.shown(), [], "nobody waits there");
}

#[test]
fn an_agent_streams_so_many_pieces_and_bytes_a_second() {
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let taken = |node: &mut Node, len: usize| {
        node.now.mono += Duration::from_secs(1);
        let text = "x".repeat(len);
        let mut count = 0;
        while count < 2 * PIECES_PER_SECOND as usize {
            match node.ask(streams(&caller, lobby, &text)) {
                Ok(_) => count += 1,
                Err(Refused::Full(text)) => {
                    assert!(text.contains("100 pieces and 65536 bytes a second"), "{text}");
                    break;
                }
                Err(other) => panic!("{other}"),
            }
            // Its clock is to stand still.
            node.now.mono -= Duration::from_millis(1);
        }
        count
    };
    assert_eq!(taken(&mut node, 1), PIECES_PER_SECOND as usize);
    assert_eq!(taken(&mut node, PIECE_BYTES_MAX), PIECE_BYTES_PER_SECOND / PIECE_BYTES_MAX);
    assert_eq!(taken(&mut node, 1), PIECES_PER_SECOND as usize, "the next second");
    let large = node.ask(streams(&caller, lobby, &"x".repeat(PIECE_BYTES_MAX + 1)));
    assert!(matches!(large, Err(Refused::Field(_))), "{large:?}");
    let stranger = node.attach("agent1", false, KEY).expect("free");
    let outside = node.ask(streams(&stranger, lobby, "x"));
    assert!(matches!(outside, Err(Refused::NotMember)), "{outside:?}");
}

#[test]
fn in_a_room_of_ciphertext_nothing_is_streamed() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let secret = NewRoom { encrypted: true, ..rooms::new("secret", false) };
    let room = rooms::make(&mut node, &caller, secret).expect("it is new");
    node.ask(Command::Join { caller: caller.clone(), room }).expect("its owner");
    let refused = node.ask(streams(&caller, room, "plain"));
    assert!(matches!(refused, Err(Refused::Plaintext)), "{refused:?}");
}

#[test]
fn a_flood_of_pieces_shows_no_more_than_the_bounds_let_through_and_takes_no_memory() {
    let (mut node, _, liar) = waiting();
    let lobby = node.lobby();
    let most = (PIECES_PER_SECOND * PIECES_HEARD_FACTOR) as usize;
    let started = node.now.mono;
    for piece in 0..3 * most as u64 {
        node.give(Input::Message { from: liar, message: sent(liar, lobby, ("agent2", piece + 1)) });
        node.now.mono = started;
    }
    assert_eq!(node.shown().len(), most);
    // Agents that it makes up give it no more than their share.
    let known = &node.engine.known.rosters;
    let (_, honest) = known.record("agent2").expect("it is there");
    let record = honest.clone();
    let join = |n: usize| RosterChange::Agent(format!("made{n}").into(), record.clone());
    let changes = (0..2 * STREAMING_AGENTS_PER_NODE_MAX).map(join).collect();
    let (boot, version) = known.version(liar);
    let what = What::Changes { version: version + 1, changes };
    let news = Signed { value: RosterNews { node: liar, boot, what }, signature: [0; 64] };
    node.give(Input::Message { from: liar, message: Message::Roster(Box::new(news)) });
    node.effects.clear();
    node.now.mono = started + Duration::from_secs(2);
    let started = node.now.mono;
    let last = 3 * most as u64;
    for n in 0..2 * STREAMING_AGENTS_PER_NODE_MAX {
        let of = (&*format!("made{n}"), last + 1 + n as u64);
        node.give(Input::Message { from: liar, message: sent(liar, lobby, of) });
        node.now.mono = started;
    }
    assert_eq!(node.shown().len(), STREAMING_AGENTS_PER_NODE_MAX);
    // Nor is more remembered of the rooms that it waits for.
    for half in 0..4_u16 {
        let room = |n: u16| {
            let mut id = [9; 16];
            id[..2].copy_from_slice(&(half * 1_000 + n).to_be_bytes());
            RoomId(id)
        };
        let message = Message::Awaits((0..1_000).map(room).collect());
        node.give(Input::Message { from: liar, message });
    }
    let remembered = format!("{:?}", node.engine.streams);
    assert!(remembered.matches("RoomId").count() <= AWAITED_ROOMS_MAX + 2);
}

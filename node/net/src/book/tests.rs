use super::*;
use crate::limits::{
    DIRECT_MAX, FULL_MESH_PEERS, LOST_RECENTLY, OFFLINE_MAX, PLACE_AGAIN, REDIAL_LOST_MAX,
    REDIAL_MAX, REDIAL_MIN,
};

const ME: NodeId = [0; 32];
const A: NodeId = [1; 32];
const B: NodeId = [2; 32];

fn book() -> (Book, Instant) {
    (Book::new(ME, Discovery::FullMesh), Instant::now())
}

fn at(text: &str) -> Address {
    text.parse().unwrap()
}

fn connect(book: &mut Book, node: NodeId, place: Place, now: Instant) -> ConnectionId {
    let connection = ConnectionId::new_unchecked(usize::from(node[0]));
    assert_eq!(book.connected(node, connection, Way::Direct(place), now), Admission::Admitted);
    connection
}

fn record(node: NodeId, addresses: &[&str]) -> Record {
    let addresses = addresses.iter().map(|text| at(text)).collect();
    Record { node, addresses, relays: Vec::new() }
}

/// What is dialled now, by addresses.
fn dialled(book: &mut Book, now: Instant) -> Vec<(Target, Vec<Address>)> {
    book.due(now).into_iter().map(|due| (due.target, due.addresses)).collect()
}

fn refused() -> NoLink {
    NoLink::new(Trouble::ConnectionRefused, "refused")
}

#[test]
fn a_configured_peer_is_dialled_at_once_and_for_ever() {
    let (mut book, mut now) = book();
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    for _ in 0..50 {
        let due = dialled(&mut book, now);
        assert_eq!(due, [(Target::Peer(A), vec![at("10.0.0.1:7")])]);
        assert!(book.due(now).is_empty(), "one dial at a time");
        book.dial_failed(&Target::Peer(A), Some(refused()), now);
        assert!(book.due(now).is_empty(), "not at once again");
        now += REDIAL_MAX;
    }
}

/// Looked at then, somebody is dialled; looked at before, nobody.
fn dialled_when_foreseen(book: &mut Book, now: Instant) -> Option<Duration> {
    let Some(at) = book.next_dial(now) else {
        assert!(book.due(now + 10 * REFUSAL_MAX).is_empty(), "never, as far as is known");
        return None;
    };
    if at > now {
        assert!(book.due(at - Duration::from_millis(1)).is_empty());
    }
    let due = book.due(at.max(now));
    assert!(!due.is_empty());
    for Due { target, .. } in due {
        book.dial_failed(&target, Some(refused()), at.max(now));
    }
    Some(at.saturating_duration_since(now))
}

#[test]
fn it_is_foreseen_when_somebody_is_dialled() {
    let (mut book, mut now) = book();
    assert_eq!(dialled_when_foreseen(&mut book, now), None);
    book.configure("10.0.0.1:7".parse().unwrap(), now);
    book.configure(format!("{}@10.0.0.2:7", "01".repeat(32)).parse().unwrap(), now);
    assert_eq!(dialled_when_foreseen(&mut book, now), Some(Duration::ZERO));
    for _ in 0..20 {
        let wait = dialled_when_foreseen(&mut book, now).expect("for ever");
        now += wait;
    }
    // Not before it is forgiven.
    let until = book.strike(&A, STRIKES_MAX, "it lies", now).expect("too much");
    let connection = connect(&mut book, B, Place::Elsewhere, now);
    book.met(&Target::Seed(at("10.0.0.1:7")), B, &at("10.0.0.1:7"));
    assert_eq!(book.next_dial(now), Some(until.max(book.next_dial(now).unwrap())));
    assert!(dialled_when_foreseen(&mut book, now).is_some());
    let connected = connect(&mut book, A, Place::Elsewhere, now);
    assert_eq!(dialled_when_foreseen(&mut book, now), None, "all are connected");
    assert_eq!(book.disconnected(&B, connection, None, now), Left::None);
    assert!(dialled_when_foreseen(&mut book, now).is_some());
    assert_eq!(book.disconnected(&A, connected, None, now), Left::None);
    // While it is under way its end is waited for, and nothing else.
    let (later, _) = (now + 10 * REFUSAL_MAX, ());
    assert_eq!(book.due(later).len(), 2);
    assert_eq!(book.next_dial(later), None);
}

#[test]
fn a_seed_becomes_a_peer_and_a_seed_again_if_another_node_answers() {
    let (mut book, now) = book();
    book.configure("10.0.0.1:7".parse().unwrap(), now);
    let target = Target::Seed(at("10.0.0.1:7"));
    assert_eq!(dialled(&mut book, now), [(target.clone(), vec![at("10.0.0.1:7")])]);
    let connection = connect(&mut book, A, Place::Elsewhere, now);
    book.met(&target, A, &at("10.0.0.1:7"));
    assert!(book.due(now).is_empty());
    assert_eq!(book.disconnected(&A, connection, None, now), Left::None);
    let later = now + REDIAL_MAX;
    assert_eq!(dialled(&mut book, later), [(Target::Peer(A), vec![at("10.0.0.1:7")])]);
    book.not_there(&A, &at("10.0.0.1:7"));
    book.dial_failed(&Target::Peer(A), None, later);
    assert_eq!(dialled(&mut book, later + REDIAL_MAX), [(target, vec![at("10.0.0.1:7")])]);
}

#[test]
fn loopback_is_told_to_and_believed_from_this_machine_only() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    connect(&mut book, B, Place::SameMachine, now);
    book.up(&A, now);
    book.up(&B, now);
    let own = [at("127.0.0.1:7"), at("10.0.0.9:7")];
    let heard = vec![record(A, &["127.0.0.1:1", "10.0.0.1:1"])];
    assert_eq!(book.learn(&A, heard, now).addresses.len(), 1);
    let heard = vec![record(B, &["127.0.0.1:2", "10.0.0.2:2"])];
    assert_eq!(book.learn(&B, heard.clone(), now).addresses.len(), 2);
    assert!(book.learn(&B, heard, now).addresses.is_empty(), "news only once");
    let to_a = book.announcement(&A, &own);
    assert_eq!(to_a, [record(ME, &["10.0.0.9:7"]), record(B, &["10.0.0.2:2"])]);
    let to_b = book.announcement(&B, &own);
    assert_eq!(to_b, [record(ME, &["127.0.0.1:7", "10.0.0.9:7"]), record(A, &["10.0.0.1:1"])]);
}

#[test]
fn hearsay_is_dialled_but_not_passed_on_and_never_pushes_out_better() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    book.up(&A, now);
    for i in 0..20 {
        book.learn(&A, vec![record(B, &[&format!("10.0.0.2:{}", i + 1)])], now);
    }
    assert_eq!(book.peer(&B).unwrap().addresses().count(), PEER_ADDRESSES_MAX);
    assert!(matches!(&dialled(&mut book, now)[..], [(Target::Peer(B), _)]));
    connect(&mut book, B, Place::Elsewhere, now);
    book.up(&B, now);
    assert_eq!(book.announcement(&A, &[])[1..], [record(B, &[])], "hearsay is not passed on");
    book.learn(&B, vec![record(B, &["10.0.0.2:99"])], now);
    assert_eq!(book.announcement(&A, &[])[1..], [record(B, &["10.0.0.2:99"])]);
    assert!(book.learn(&A, vec![record(ME, &["10.0.0.3:1"])], now).addresses.is_empty());
    assert!(book.peer(&ME).is_none(), "we do not dial ourselves");
}

#[test]
fn the_book_is_bounded_and_forgets_only_the_forgettable() {
    let (mut book, now) = book();
    // Of one alone not so much is believed.
    let talkers: Vec<NodeId> = (1..=8).map(|n| [n; 32]).collect();
    for node in &talkers {
        connect(&mut book, *node, Place::Elsewhere, now);
    }
    for i in 0..PEERS_MAX + 10 {
        let mut node = [9; 32];
        node[..8].copy_from_slice(&(i as u64).to_be_bytes());
        book.learn(&talkers[i % talkers.len()], vec![record(node, &["10.1.1.1:1"])], now);
    }
    assert_eq!(book.peers().count(), PEERS_MAX);
    assert!(book.peer(&A).is_some());
}

#[test]
fn learned_peers_are_dialled_up_to_a_full_mesh() {
    let (mut book, now) = book();
    for i in 1..=FULL_MESH_PEERS {
        connect(&mut book, [i as u8; 32], Place::Elsewhere, now);
    }
    book.learn(&A, vec![record([99; 32], &["10.1.1.1:1"])], now);
    assert!(book.due(now).is_empty());
    let connection = ConnectionId::new_unchecked(50);
    book.disconnected(&[50; 32], connection, None, now);
    assert_eq!(book.due(now).len(), 1);
}

#[test]
fn who_changes_its_topics_without_end_is_blamed_and_who_says_them_once_is_not() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    assert!(!book.topics_changed(&A, TOPICS_CHANGED_MAX), "as many as there may be, and none");
    assert!(book.topics_changed(&A, 1));
    assert!(!book.topics_changed(&A, TOPICS_PER_STRIKE), "one strike for so many");
    assert!(book.topics_changed(&A, 1));
    assert!(book.topics_changed(&A, u32::MAX));
    // Whoever comes again says them again.
    book.disconnected(&A, ConnectionId::new_unchecked(1), None, now);
    connect(&mut book, A, Place::Elsewhere, now);
    assert!(!book.topics_changed(&A, TOPICS_CHANGED_MAX));
    assert!(!book.topics_changed(&B, u32::MAX), "nobody is known by this name");
}

#[test]
fn strikes_lead_to_longer_and_longer_refusals() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    let mut strikes = |now| (0..STRIKES_MAX).filter_map(|_| book.strike(&A, 1, "x", now)).next();
    assert_eq!(strikes(now), Some(now + REFUSAL_MIN));
    let later = now + REFUSAL_MIN;
    assert_eq!(strikes(later), Some(later + 2 * REFUSAL_MIN));
    for _ in 0..STRIKES_MAX - 1 {
        assert_eq!(book.strike(&A, 1, "x", later), None);
    }
    let much_later = later + 2 * STRIKES_WINDOW;
    assert_eq!(book.strike(&A, 1, "x", much_later), None, "old strikes are forgotten");
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn peers_without_gossip_are_found() {
    let (mut book, now) = book();
    let silent = connect(&mut book, A, Place::Elsewhere, now);
    let stuck = connect(&mut book, B, Place::Elsewhere, now);
    book.up(&A, now);
    book.up(&B, now);
    book.subscribed(&B, 0);
    book.alive(&A, silent, MS, now + WATCHDOG / 2);
    assert!(book.deaf(now + WATCHDOG).is_empty());
    book.alive(&A, silent, MS, now + WATCHDOG);
    let text = Some("it listens to no topic of the mesh");
    assert_eq!(book.deaf(now + WATCHDOG), [(A, text)]);
    assert!(book.deaf(now + WATCHDOG).is_empty(), "asked once");
    book.subscribed(&A, 0);
    for second in 0..=WATCHDOG.as_secs() {
        book.slow(&B, now + Duration::from_secs(second));
        book.alive(&B, stuck, MS, now + Duration::from_secs(second));
    }
    assert_eq!(book.deaf(now + WATCHDOG), [(B, None)]);
}

/// A link that was cut: nothing came over it, what it listens to neither, and nothing could be
/// sent.
#[test]
fn who_was_not_heard_is_not_blamed_for_what_could_not_be_heard() {
    let (mut book, now) = book();
    let silent = connect(&mut book, A, Place::Elsewhere, now);
    let slow = connect(&mut book, B, Place::Elsewhere, now);
    book.up(&A, now);
    book.up(&B, now);
    book.subscribed(&B, 0);
    for second in 0..=WATCHDOG.as_secs() {
        book.slow(&B, now + Duration::from_secs(second));
    }
    assert!(book.deaf(now + 10 * WATCHDOG).is_empty(), "they do not answer");
    book.alive(&B, slow, MS, now + WATCHDOG);
    book.slow(&B, now + WATCHDOG + MS);
    assert!(book.deaf(now + WATCHDOG + MS).is_empty(), "the cut has just been mended");
    // Connected anew, it says anew what it listens to.
    let again = ConnectionId::new_unchecked(77);
    book.subscribed(&A, 0);
    book.connected(A, again, Way::Direct(Place::Elsewhere), now + WATCHDOG);
    book.alive(&A, silent, MS, now + 3 * WATCHDOG);
    book.alive(&A, again, MS, now + WATCHDOG + WATCHDOG / 2);
    assert!(book.deaf(now + 3 * WATCHDOG).is_empty());
    book.alive(&A, again, MS, now + 2 * WATCHDOG);
    assert_eq!(book.deaf(now + 3 * WATCHDOG).len(), 1);
}

#[test]
fn who_dials_again_has_lost_what_it_had() {
    let (mut book, now) = book();
    let id = ConnectionId::new_unchecked;
    let (old, young, newest) = (id(10), id(11), id(12));
    let later = now + HANDSHAKE_TIMEOUT + MS;
    book.connected(A, old, Way::Direct(Place::Elsewhere), now);
    book.alive(&A, old, MS, later);
    book.connected(A, young, Way::Direct(Place::Elsewhere), later);
    book.connected(A, newest, Way::Direct(Place::Elsewhere), later);
    assert_eq!(book.dialled_again(&A, later), [old], "it may have been alive until just now");
    assert_eq!(book.disconnected(&A, old, None, later), Left::Newest);
    // Both sides may have dialled at once: that shows soon.
    assert!(book.dead(later + DOUBTED_FOR - MS).is_empty());
    assert_eq!(book.dead(later + DOUBTED_FOR), [young]);
    let doubted = later + 2 * DOUBTED_FOR;
    book.alive(&A, newest, MS, doubted);
    book.dialled_again(&A, doubted);
    book.alive(&A, young, MS, doubted + DOUBTED_FOR / 2);
    assert!(book.dead(doubted + DOUBTED_FOR).is_empty());
    // The other end may go on with the older ones, where nobody answers.
    assert_eq!(book.disconnected(&A, newest, None, later), Left::Older);
    assert_eq!(book.disconnected(&A, young, None, later), Left::None);
}

/// A split that lasts is to be over soon after it is.
#[test]
fn who_was_lost_is_dialled_often_for_a_while() {
    let (mut book, mut now) = book();
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    let connection = connect(&mut book, A, Place::Elsewhere, now);
    book.up(&A, now);
    book.down(&A, now);
    book.disconnected(&A, connection, None, now);
    let end = now + LOST_RECENTLY;
    let mut longest = Duration::ZERO;
    while now < end + 3 * REDIAL_MAX {
        let at = book.next_dial(now).expect("for ever");
        if at < end {
            longest = longest.max(at - now);
        }
        now = at;
        assert_eq!(book.due(now).len(), 1);
        book.dial_failed(&Target::Peer(A), None, now);
    }
    assert!((REDIAL_LOST_MAX / 2..=REDIAL_LOST_MAX).contains(&longest), "{longest:?}");
    assert!(book.next_dial(now).unwrap() - now > REDIAL_LOST_MAX, "then it is left more in peace");
}

#[test]
fn silent_connections_are_dead_unless_it_was_we_who_slept() {
    let (mut book, now) = book();
    let silent = connect(&mut book, A, Place::Elsewhere, now);
    let lively = connect(&mut book, B, Place::Elsewhere, now);
    book.alive(&B, lively, MS, now + DEAD_AFTER / 2);
    assert!(book.dead(now + DEAD_AFTER / 2).is_empty());
    assert_eq!(book.dead(now + DEAD_AFTER), [silent]);
    assert!(book.dead(now + DEAD_AFTER).is_empty());
    book.forgive_silence(now + 5 * DEAD_AFTER);
    assert!(book.dead(now + 5 * DEAD_AFTER).is_empty());
}

#[test]
fn who_is_shut_out_is_neither_dialled_nor_spoken_of_nor_learned_again() {
    let (mut book, now) = book();
    let connection = connect(&mut book, A, Place::Elsewhere, now);
    connect(&mut book, B, Place::Elsewhere, now);
    book.up(&A, now);
    book.up(&B, now);
    book.learn(&A, vec![record(A, &["10.0.0.1:1"])], now);
    assert_eq!(book.announcement(&B, &[]).len(), 2);
    let by = now + REDIAL_MIN;
    book.shut_out(A, by);
    assert!(book.take_leaving(now, |_| false).is_empty(), "it is still being told");
    assert_eq!(book.take_leaving(by, |_| false), [A]);
    assert!(book.take_leaving(by, |_| true).is_empty(), "once");
    assert_eq!(book.announcement(&B, &[]).len(), 1);
    assert_eq!(book.disconnected(&A, connection, None, now), Left::None);
    book.learn(&B, vec![record(A, &["10.0.0.1:1"])], now);
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    assert!(book.due(now + REDIAL_MAX).is_empty());
    assert!(book.peers().all(|(node, _)| *node != A));
}

#[test]
fn who_is_out_and_comes_again_is_not_heard_and_soon_gone_whatever_it_opens() {
    let (mut book, now) = book();
    book.shut_out(A, now);
    assert_eq!(book.take_leaving(now, |_| true), [A]);
    connect(&mut book, A, Place::Elsewhere, now);
    assert_eq!(book.gossiped(&A, 1, now), Err(None));
    // It has opened no stream, so that nothing waits for it: that is no reason not to tell it.
    assert!(book.take_leaving(now, |_| true).is_empty());
    assert_eq!(book.take_leaving(now + OUT_TOLD_WITHIN, |_| false), [A]);
    // Once it is told it need not stay.
    connect(&mut book, A, Place::Elsewhere, now);
    book.shut_out(A, now + OUT_TOLD_WITHIN);
    assert_eq!(book.take_leaving(now, |_| true), [A]);
}

#[test]
fn gossip_counts_by_its_bytes() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    let large = 6 * PEER_GOSSIP_BYTES;
    let taken = (0..GOSSIP_BURST_MAX).filter(|_| book.gossiped(&A, large, now).is_ok()).count();
    assert_eq!(taken, (GOSSIP_BURST_MAX as usize).div_ceil(6));
}

#[test]
fn gossip_beyond_all_reason_is_dropped_and_counted_against_its_peer() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    for _ in 0..GOSSIP_BURST_MAX {
        assert_eq!(book.gossiped(&A, 1, now), Ok(()));
    }
    assert!(matches!(book.gossiped(&A, 1, now), Err(Some(_))));
    for _ in 1..GOSSIP_PER_SECOND_MAX {
        assert_eq!(book.gossiped(&A, 1, now), Err(None));
    }
    assert!(matches!(book.gossiped(&A, 1, now), Err(Some(_))));
    // Whoever rests may speak again, as much as has been earned.
    let later = now + Duration::from_secs(3);
    let taken = (0..4 * GOSSIP_PER_SECOND_MAX).filter(|_| book.gossiped(&A, 1, later).is_ok());
    assert_eq!(taken.count(), (2 * GOSSIP_PER_SECOND_MAX) as usize - 1);
    assert_eq!(book.gossiped(&B, 1, now), Err(None), "nobody knows it");
}

#[test]
fn who_opens_its_stream_again_and_again_is_blamed_and_who_does_so_now_and_then_is_not() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    let over = (0..STREAMS_PER_WINDOW_MAX + 3).filter(|_| book.opened(&A, now)).count();
    assert_eq!(over, 3);
    assert!(!book.opened(&A, now + 2 * STRIKES_WINDOW));
}

#[test]
fn made_up_nodes_neither_push_out_nor_delay_those_that_were_met() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    connect(&mut book, B, Place::Elsewhere, now);
    let made_up = |n: u16| {
        let mut node = [0xee; 32];
        node[..2].copy_from_slice(&n.to_be_bytes());
        node
    };
    // B said where it is, was met there, and is away; it could not be reached since.
    book.learn(&B, vec![record(B, &["10.0.0.2:1"])], now);
    let connection = ConnectionId::new_unchecked(usize::from(B[0]));
    assert_eq!(book.disconnected(&B, connection, None, now), Left::None);
    book.dial_failed(&Target::Peer(B), None, now);
    for n in 0..4_000 {
        book.learn(&A, vec![record(made_up(n), &["10.9.9.9:1"])], now);
    }
    assert_eq!(book.peers().count(), HEARSAY_PER_PEER_MAX + 2);
    assert!(book.peer(&B).is_some());
    let due = book.due(now + REDIAL_MAX);
    assert_eq!(due.len(), DIALS_MAX);
    assert_eq!(due[0].target, Target::Peer(B));
}

/// A relay that is connected directly, and says that it is connected to these.
fn relay(book: &mut Book, node: NodeId, links: &[NodeId], now: Instant) {
    connect(book, node, Place::Elsewhere, now);
    book.up(&node, now);
    book.carries(&node, true);
    let said = [node].iter().chain(links).map(|node| record(*node, &[])).collect();
    book.learn(&node, said, now);
}

#[test]
fn places_are_asked_for_where_they_lead_to_nodes_that_are_apart() {
    let (mut book, now) = book();
    let [c, d, e, far, farther] = [[3; 32], [4; 32], [5; 32], [8; 32], [9; 32]];
    relay(&mut book, A, &[B], now);
    relay(&mut book, B, &[A], now);
    assert!(book.places_to_ask(now).is_empty(), "all are connected directly");
    relay(&mut book, c, &[A, B, far], now);
    relay(&mut book, d, &[far], now);
    relay(&mut book, e, &[far], now);
    let mut asked = book.places_to_ask(now);
    asked.sort_unstable();
    assert_eq!(asked, [d, e], "two of the three that know it");
    assert!(book.places_to_ask(now).is_empty(), "they are asked once");
    book.place_held(&d);
    assert_eq!(book.announcement(&A, &[])[0].relays, [d], "only places that there are");
    book.place_lost(&e, now);
    assert_eq!(book.places_to_ask(now), [c], "another one at once, and the same one later");
    // A node that none of the relays knows.
    relay(&mut book, A, &[B, farther], now);
    assert_eq!(book.places_to_ask(now), [A]);
    assert!(book.places_to_ask(now + PLACE_AGAIN).is_empty(), "all have a way to this node");
}

#[test]
fn a_peer_that_says_it_knows_everybody_takes_no_place_of_one_that_was_named() {
    let (mut book, now) = book();
    let [c, d, far] = [[3; 32], [4; 32], [8; 32]];
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    relay(&mut book, A, &[far], now);
    let made_up: Vec<NodeId> = (10..100).map(|n| [n; 32]).chain([far]).collect();
    for liar in [B, c, d] {
        relay(&mut book, liar, &made_up, now);
    }
    assert!(book.places_to_ask(now).contains(&A));
}

#[test]
fn a_circuit_is_dialled_when_there_is_no_other_way_and_relays_take_turns() {
    let (mut book, mut now) = book();
    let (first, second, unknown, idle) = ([3; 32], [4; 32], [5; 32], [6; 32]);
    relay(&mut book, first, &[], now);
    relay(&mut book, second, &[], now);
    let carries = |book: &mut Book, from: NodeId, relays: &[NodeId]| {
        let a = Record { relays: relays.to_vec(), ..record(A, &["10.0.0.1:1"]) };
        book.learn(&from, vec![record(from, &[]), a], Instant::now());
    };
    carries(&mut book, first, &[first, unknown]);
    carries(&mut book, second, &[second]);
    let dial = |book: &mut Book, now| book.due(now).pop().map(|due| (due.target, due.relay));
    let to_a = |relay| Some((Target::Peer(A), relay));
    assert_eq!(dial(&mut book, now), to_a(None), "directly first");
    for relay in [first, second, first] {
        book.dial_failed(&Target::Peer(A), Some(refused()), now);
        now += REDIAL_MAX;
        assert_eq!(dial(&mut book, now), to_a(Some(relay)));
    }
    // One that says it anew has no turn more for it, and has none to give to others.
    relay(&mut book, idle, &[], now);
    for relay in [second, first, second, first] {
        carries(&mut book, first, &[]);
        carries(&mut book, first, &[first, idle]);
        book.dial_failed(&Target::Peer(A), Some(refused()), now);
        now += REDIAL_MAX;
        assert_eq!(dial(&mut book, now), to_a(Some(relay)));
    }
    // It is reached through one, and dialled directly from time to time.
    let circuit = ConnectionId::new_unchecked(77);
    book.connected(A, circuit, Way::Relayed(first), now);
    book.up(&A, now);
    assert_eq!(book.peer(&A).unwrap().relay(), Some(first));
    assert!(dial(&mut book, now).is_none());
    assert_eq!(book.next_dial(now), Some(now + DIRECT_MIN));
    now += DIRECT_MIN;
    assert_eq!(dial(&mut book, now), Some((Target::Direct(A), None)));
    assert!(dial(&mut book, now).is_none());
    book.dial_failed(&Target::Direct(A), Some(refused()), now);
    assert!(book.peer(&A).unwrap().last_error.is_some(), "why it is not direct");
    assert_eq!(dial(&mut book, now + DIRECT_MAX), Some((Target::Direct(A), None)));
    assert!(book.announcement(&second, &[]).iter().all(|it| it.node != A), "it is not carried on");
    // At last it is there.
    assert!(book.circuits_beside(&A).is_empty());
    connect(&mut book, A, Place::Elsewhere, now);
    assert_eq!(book.circuits_beside(&A), [circuit]);
    assert_eq!(book.disconnected(&A, circuit, None, now), Left::Newest);
    assert_eq!(book.peer(&A).unwrap().relay(), None);
    assert!(dial(&mut book, now + DIRECT_MAX).is_none());
}

#[test]
fn in_another_network_all_are_dialled_at_once_and_what_was_under_way_is_not_waited_for() {
    let (mut book, now) = book();
    book.configure("10.0.0.9:7".parse().unwrap(), now);
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    book.configure(format!("{}@10.0.0.2:7", "02".repeat(32)).parse().unwrap(), now);
    for _ in 0..20 {
        book.dial_failed(&Target::Peer(A), Some(refused()), now);
        book.dial_failed(&Target::Seed(at("10.0.0.9:7")), Some(refused()), now);
    }
    assert_eq!(dialled(&mut book, now).len(), 1, "the others wait");
    // Of B a dial is under way, of the seed a lookup.
    let seed = Target::Seed(at("10.0.0.9:7"));
    book.due(now + REDIAL_MAX);
    book.moved(&[&Target::Peer(B)], now);
    let due = dialled(&mut book, now);
    assert_eq!(due, [(seed, vec![at("10.0.0.9:7")]), (Target::Peer(A), vec![at("10.0.0.1:7")])]);
    book.dial_failed(&Target::Peer(A), Some(refused()), now);
    book.dial_failed(&Target::Peer(B), Some(refused()), now);
    assert!(book.next_dial(now).unwrap() < now + Duration::from_secs(1), "and soon again");
}

#[test]
fn without_a_network_one_is_looked_for_often() {
    let (mut book, mut now) = book();
    book.configure(format!("{}@10.0.0.1:7", "01".repeat(32)).parse().unwrap(), now);
    let mut waits = |book: &mut Book, trouble: Trouble| {
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            let at = book.next_dial(now).expect("for ever").max(now);
            longest = longest.max(at - now);
            now = at;
            book.due(now);
            book.dial_failed(&Target::Peer(A), Some(NoLink::new(trouble, "")), now);
        }
        longest
    };
    assert_eq!(waits(&mut book, Trouble::Unreachable), OFFLINE_MAX);
    assert!(waits(&mut book, Trouble::TimedOut) > OFFLINE_MAX, "it is the other that is gone");
    let now = Instant::now();
    connect(&mut book, B, Place::Elsewhere, now);
    assert!(waits(&mut book, Trouble::Unreachable) > OFFLINE_MAX, "there is a network");
}

#[test]
fn who_was_met_at_many_places_is_dialled_where_it_says_that_it_is() {
    let (mut book, now) = book();
    connect(&mut book, A, Place::Elsewhere, now);
    for host in 1..20 {
        let place = format!("10.0.{host}.1:7");
        book.learn(&A, vec![record(A, &[&place])], now);
        book.met(&Target::Peer(A), A, &at(&place));
    }
    let known: Vec<String> = book.peer(&A).unwrap().addresses().map(ToString::to_string).collect();
    assert_eq!(known.len(), PEER_ADDRESSES_MAX);
    assert!(known.contains(&"10.0.19.1:7".to_owned()), "{known:?}");
}

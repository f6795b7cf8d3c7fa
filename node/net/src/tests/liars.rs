//! Relays that do more than carry, and those who ask relays for what they are not to have.

use libp2p::Swarm;
use libp2p::relay::client;
use libp2p::swarm::SwarmEvent;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};

use super::circuits::{hidden, meet, through};
use super::*;
use crate::address::multiaddr_of;
use crate::behaviour::{Behaviour, BehaviourEvent, VERSION};
use crate::circuit::{place_at, through as circuit_to};
use crate::identity::peer_of;
use crate::pace::{Lie, Lies};

/// The two are linked through a relay that begins to do this, while another one carries.
async fn come_back_by_another_when_one(lie: Lie) {
    let lies = Lies::default();
    let liar = run(Settings { lie: lies.clone(), ..settings(9, &[]) }).await;
    let mut a = run(hidden(2, &[&liar])).await;
    let mut b = run(hidden(3, &[&liar])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    assert_eq!(meet(&mut a, &mut b).await, liar.net.node());
    let honest = run(settings(1, &[])).await;
    let id = honest.net.node();
    for at in [&mut a, &mut b] {
        assert!(at.net.add_peers(vec![honest.named()]));
        at.up(id).await;
    }
    a.net.send(&id_b, Bytes::from_static(b"before")).unwrap();
    assert_eq!(b.frame(id_a).await, "before");
    *lies.0.lock().unwrap() = lie;
    // Refused while the link is down.
    let mut said = 0;
    while through(&a, id_b) != Some(id) || through(&b, id_a) != Some(id) {
        said += u32::from(a.net.send(&id_b, numbered(said, 5_000)).is_ok());
        tokio::time::sleep(Duration::from_millis(5)).await;
        a.until("it is still there", |_| true).await;
    }
    a.down(id_b).await;
    a.up(id_b).await;
    // Of what was said over the liar nothing came that was not said, and nothing twice.
    a.net.send(&id_b, Bytes::from_static(b"after")).unwrap();
    let mut last = None;
    loop {
        let frame = b.frame(id_a).await;
        if frame == "after" {
            break;
        }
        let came = number(&frame);
        assert!(came <= said && last.is_none_or(|last| came > last), "{lie:?}");
        assert_eq!(frame, numbered(came, 5_000), "{lie:?}");
        last = Some(came);
    }
    b.net.send(&id_a, Bytes::from_static(b"back")).unwrap();
    assert_eq!(a.frame(id_b).await, "back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_changes_or_repeats_bytes_or_their_order_loses_the_link_to_another() {
    for lie in [Lie::Changes, Lie::Reorders, Lie::Repeats] {
        come_back_by_another_when_one(lie).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_delays_for_long_loses_the_link_to_another() {
    come_back_by_another_when_one(Lie::Delays).await;
}

/// Somebody who asks a relay for places and circuits without end, in libp2p's own words.
struct Asker(Swarm<Behaviour>);

#[derive(Default, Debug)]
struct Answers {
    connected: usize,
    places: usize,
    renewed: usize,
    refused: usize,
    circuits: usize,
    no_circuits: usize,
}

impl Asker {
    fn new(settings: &Settings) -> Asker {
        let keys = crate::keys::Keys::new(settings.pre_shared_key.clone(), Vec::new());
        Asker(crate::behaviour::swarm(settings, Arc::new(keys), twins(), &here(), VERSION).unwrap())
    }

    fn dial(&mut self, relay: &Node) {
        self.dial_at(relay.net.node(), relay.net.listening()[0]);
    }

    fn dial_at(&mut self, node: NodeId, at: SocketAddr) {
        let (at, peer) = (multiaddr_of(at), peer_of(&node).unwrap());
        let dial = DialOpts::peer_id(peer).condition(PeerCondition::Always).addresses(vec![at]);
        // One that is refused is counted.
        let _ = self.0.dial(dial.allocate_new_port().build());
    }

    fn ask(&mut self, relay: &Node, to: &NodeId) {
        let _ = self.0.listen_on(place_at(&relay.net.node()).unwrap());
        let circuit = circuit_to(&relay.net.node(), to).unwrap();
        let dial = DialOpts::peer_id(peer_of(to).unwrap()).condition(PeerCondition::Always);
        let _ = self.0.dial(dial.addresses(vec![circuit]).build());
    }

    /// What it is answered until that is enough.
    async fn hears(&mut self, enough: impl Fn(&Answers) -> bool) -> Answers {
        let mut answers = Answers::default();
        let heard = timeout(DEADLINE, async {
            while !enough(&answers) {
                let event = self.0.select_next_some().await;
                if let SwarmEvent::ConnectionEstablished { endpoint, .. } = event {
                    answers.circuits += usize::from(endpoint.is_relayed());
                    answers.connected += usize::from(!endpoint.is_relayed());
                } else if let SwarmEvent::OutgoingConnectionError { .. } = event {
                    answers.no_circuits += 1;
                } else if let SwarmEvent::ListenerClosed { .. } = event {
                    answers.refused += 1;
                } else if let SwarmEvent::Behaviour(BehaviourEvent::Circuits(
                    client::Event::ReservationReqAccepted { renewal, .. },
                )) = event
                {
                    answers.places += usize::from(!renewal);
                    answers.renewed += usize::from(renewal);
                }
            }
        });
        heard.await.unwrap_or_else(|_| panic!("{answers:?}"));
        answers
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_neither_place_nor_circuit() {
    let mut relay = run(settings(1, &[])).await;
    let mut member = run(hidden(2, &[&relay])).await;
    let id = member.net.node();
    relay.up(id).await;
    let other_mesh = Settings { pre_shared_key: [9; 32].into(), ..hidden(8, &[]) };
    // With the mesh's secret of before: the relay has a newer one, and the stranger is no member.
    relay.net.know(id);
    let outdated = hidden(9, &[]);
    for (settings, renewed) in [(&other_mesh, false), (&outdated, true)] {
        if renewed {
            relay.net.renew_keys([43; 32].into(), vec![SECRET.into()]);
        }
        let mut asker = Asker::new(settings);
        asker.dial(&relay);
        let answers = asker.hears(|so_far| so_far.connected + so_far.no_circuits > 0).await;
        assert_eq!(answers.connected, 0, "{answers:?}");
        asker.ask(&relay, &id);
        let answers = asker.hears(|so_far| so_far.refused > 0 && so_far.no_circuits > 0).await;
        assert_eq!((answers.places, answers.circuits, answers.connected), (0, 0, 0), "{answers:?}");
    }
    member.until("the relay is there as before", |it| it.net.peers()[0].connected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_places_without_end_leaves_others_theirs() {
    let mut relay = run(settings(1, &[])).await;
    let mut asker = Asker::new(&hidden(9, &[]));
    let nobody = run(hidden(8, &[])).await.net.node();
    asker.dial(&relay);
    asker.hears(|so_far| so_far.connected == 1).await;
    asker.ask(&relay, &nobody);
    asker.hears(|so_far| so_far.places == 1).await;
    // Over more connections than a peer may have: the relay closes those.
    for _ in 0..9 {
        asker.dial(&relay);
    }
    asker.hears(|so_far| so_far.connected + so_far.no_circuits >= 9).await;
    for _ in 0..300 {
        asker.ask(&relay, &nobody);
    }
    // Of circuits its own stack begins no more at once.
    let answers = asker.hears(|so_far| so_far.no_circuits >= 50 && so_far.refused >= 100).await;
    assert_eq!(answers.circuits, 0, "{answers:?}");
    // It goes on asking.
    let id = relay.net.node();
    let asking = tokio::spawn(async move {
        let mut again = tokio::time::interval(Duration::from_millis(10));
        loop {
            tokio::select! {
                _ = again.tick() => drop(asker.0.listen_on(place_at(&id).unwrap())),
                _ = asker.0.select_next_some() => {}
            }
        }
    });
    let mut a = run(hidden(2, &[&relay])).await;
    let mut b = run(hidden(3, &[&relay])).await;
    assert_eq!(meet(&mut a, &mut b).await, id);
    relay.up(a.net.node()).await;
    asking.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_asked_for_anew_before_it_ends() {
    // In whole seconds by the clock of the day, as on the wire.
    let lasts = Duration::from_secs(3);
    let relay = testing::Rogue::start_brief(&settings(1, &[]), lasts).unwrap();
    let at = relay.at().await.unwrap();
    let (node, at) = (at.node.unwrap(), at.address.socket().unwrap());
    let mut member = Asker::new(&hidden(2, &[]));
    member.dial_at(node, at);
    member.hears(|so_far| so_far.connected == 1).await;
    member.0.listen_on(place_at(&node).unwrap()).unwrap();
    let answers = member.hears(|so_far| so_far.renewed == 2 || so_far.refused > 0).await;
    assert_eq!((answers.places, answers.refused), (1, 0), "{answers:?}");
}

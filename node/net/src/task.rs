//! The loop that owns the swarm. It never waits for anything but its next event.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::ListenerId;
use libp2p::gossipsub::{IdentTopic, MessageAcceptance, TopicHash};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Stream, Swarm, gossipsub, identify, ping};
use libp2p_stream::IncomingStreams;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::address::{PeerAddress, address_in};
use crate::behaviour::{self, Behaviour, BehaviourEvent, VERSION};
use crate::book::{Admission, Left, Target, Way};
use crate::circuit;
use crate::dial::{self, Resolved};
use crate::identity::{NodeId, node_of, peer_of, short};
use crate::inbox::{InboxSender, Ticket};
use crate::limits::{
    ANNOUNCE_INTERVAL, DRAIN_TIMEOUT, GOSSIP_BYTES_MAX, LINK_EVENTS_MAX, OWN_PAUSE, SETTLED_AFTER,
    SHUT_OUT_FOR, STRANGERS_MAX, STREAMS_MAX, TICK, TICK_CALM,
};
use crate::link::{self, Connection, ControlHandle, Ends, Link, LinkEvent, Role};
use crate::listening::Listening;
use crate::machine::{Here, Interfaces, Sleep};
use crate::orders::{Command, Orders, Publish, Reason, Shared, Verdict};
use crate::relay::Relay;
use crate::settings::{Discovery, StartError};
use crate::topics::GossipEvent;
use crate::trouble::{NoLink, Trouble};

mod announcing;
mod network;
mod places;

pub(crate) struct Task {
    me: NodeId,
    swarm: Swarm<Behaviour>,
    shared: Arc<Shared>,
    inbox: InboxSender,
    discovery: Discovery,
    topics: Vec<IdentTopic>,
    topic_numbers: HashMap<TopicHash, u16>,
    links: HashMap<NodeId, Link>,
    control: libp2p_stream::Control,
    arrivals: mpsc::Receiver<(PeerId, Stream)>,
    link_events: mpsc::Receiver<(NodeId, LinkEvent)>,
    link_reports: mpsc::Sender<(NodeId, LinkEvent)>,
    lookups: JoinSet<Resolved>,
    dials: HashMap<ConnectionId, Target>,
    learned: VecDeque<PeerAddress>,
    relay: Relay,
    /// Nodes of another version, as they are logged: at most [`STRANGERS_MAX`].
    strangers: BTreeSet<NodeId>,
    /// Listeners for circuits, each at a relay: at most [`crate::limits::PLACES_MAX`].
    places: HashMap<ListenerId, NodeId>,
    /// The other ends of direct connections.
    relays: HashMap<Multiaddr, NodeId>,
    /// What was to be listened at: as many as the owner names.
    listeners: HashMap<ListenerId, SocketAddr>,
    here: Here,
    interfaces: Interfaces,
    sleep: Sleep,
    /// The addresses that were there at the start have been named by then.
    settled_at: Instant,
    /// When everything is dialled anew, because addresses of this machine have changed.
    moves_at: Option<Instant>,
    announce_at: Instant,
    ticked: Instant,
    /// When to look at the clocks again.
    look_at: Instant,
    stopping: Option<Stopping>,
}

/// Waiting for queued frames to be written.
struct Stopping {
    until: Instant,
    /// They were when this was last looked at. Then they are with their connections, which need a
    /// moment, too.
    written: bool,
    done: oneshot::Sender<()>,
}

/// Does the loop go on?
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

/// libp2p-stream keeps one arriving stream and drops the next: so somebody must fetch them at once.
async fn fetch(mut streams: IncomingStreams, arrivals: mpsc::Sender<(PeerId, Stream)>) {
    while let Some(arrival) = streams.next().await {
        // A stream dropped here is opened again by its peer, which waits for our answer on it.
        let dropped = arrivals.try_send(arrival).is_err();
        if dropped && arrivals.is_closed() {
            return;
        }
    }
}

impl Task {
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        shared: Arc<Shared>,
        inbox: InboxSender,
        (discovery, listening): (Discovery, Listening),
        topics: u16,
    ) -> Result<Task, StartError> {
        let me = node_of(swarm.local_peer_id())
            .ok_or_else(|| StartError::Setup("our key is not an ed25519 key".to_owned()))?;
        let mut control = swarm.behaviour().frames.new_control();
        let streams =
            control.accept(link::PROTOCOL).map_err(|error| StartError::Setup(error.to_string()))?;
        let (arrived, arrivals) = mpsc::channel(STREAMS_MAX);
        tokio::spawn(fetch(streams, arrived));
        let (link_reports, link_events) = mpsc::channel(LINK_EVENTS_MAX);
        let topics: Vec<IdentTopic> = (0..topics).map(behaviour::topic).collect();
        let topic_numbers = (0..).zip(&topics).map(|(number, topic)| (topic.hash(), number));
        Ok(Task {
            me,
            topic_numbers: topic_numbers.collect(),
            swarm,
            shared,
            inbox,
            discovery,
            topics,
            links: HashMap::new(),
            control,
            arrivals,
            link_events,
            link_reports,
            lookups: JoinSet::new(),
            dials: HashMap::new(),
            learned: VecDeque::new(),
            relay: Relay::default(),
            strangers: BTreeSet::new(),
            places: HashMap::new(),
            relays: HashMap::new(),
            listeners: listening.listeners,
            here: listening.here,
            interfaces: Interfaces::watch(),
            sleep: Sleep::watch(),
            settled_at: Instant::now() + SETTLED_AFTER,
            moves_at: None,
            announce_at: Instant::now() + ANNOUNCE_INTERVAL,
            ticked: Instant::now(),
            look_at: Instant::now(),
            stopping: None,
        })
    }

    pub(crate) async fn run(mut self, mut orders: Orders) {
        let (inbox, shared) = (self.inbox.clone(), self.shared.clone());
        let closed = inbox.closed();
        let looks = sleep_until(self.look_at.into());
        tokio::pin!(closed, looks);
        let mut next = Next::Continue;
        while next == Next::Continue {
            if looks.deadline() != self.look_at.into() {
                looks.as_mut().reset(self.look_at.into());
            }
            tokio::select! {
                event = self.swarm.select_next_some() => self.on_swarm(event),
                Some((node, event)) = self.link_events.recv() => self.on_link(node, event),
                Some((peer, stream)) = self.arrivals.recv() => self.on_stream(&peer, stream),
                Some(resolved) = self.lookups.join_next() => self.on_resolved(resolved.ok()),
                Some(publish) = orders.publish.recv() => self.on_publish(publish),
                Some((ticket, verdict)) = orders.verdicts.recv() => self.on_verdict(ticket, verdict),
                command = orders.commands.recv() => next = self.on_command(command),
                () = shared.changed.notified() => self.look_soon(),
                event = self.interfaces.next() => self.on_interface(&event),
                () = &mut looks => next = self.on_tick(),
                () = &mut closed => next = Next::Stop,
            }
        }
        // Sockets are closed before the one who asked is told.
        let stopping = self.stopping.take();
        drop(self);
        if let Some(Stopping { done, .. }) = stopping {
            // The caller may have stopped waiting.
            let _ = done.send(());
        }
    }

    /// Something may be due that was not foreseen.
    fn look_soon(&mut self) {
        self.look_at = self.look_at.min(Instant::now() + TICK);
    }

    /// When there may be something to do next, if nothing happens before.
    fn next_look(&self, now: Instant) -> Instant {
        let book = self.shared.book();
        let moving = self.stopping.is_some() || book.has_leaving() || !self.learned.is_empty();
        let latest = if moving { TICK } else { TICK_CALM };
        let foreseen =
            book.next_dial(now).into_iter().chain([self.announce_at]).chain(self.moves_at);
        let first = foreseen.min().map_or(now + latest, |at| at.min(now + latest));
        first.max(now + TICK)
    }

    fn on_command(&mut self, command: Option<Command>) -> Next {
        let now = Instant::now();
        self.look_soon();
        match command {
            None => return Next::Stop,
            Some(Command::AddPeers(peers)) => {
                let mut book = self.shared.book();
                peers.into_iter().for_each(|peer| book.configure(peer, now));
            }
            Some(Command::Listen(wanted)) => self.on_listen(&wanted),
            Some(Command::Penalise(node, reason, what)) => self.penalise(&node, reason, &what),
            Some(Command::Shutdown(done)) => {
                // A second call replaces the first, whose waiter sees its sender dropped.
                let until = now + DRAIN_TIMEOUT;
                self.stopping = Some(Stopping { until, written: false, done });
                return self.on_tick();
            }
        }
        Next::Continue
    }

    fn on_tick(&mut self) -> Next {
        let now = Instant::now();
        let next = self.look(now);
        self.look_at = self.next_look(now);
        next
    }

    fn look(&mut self, now: Instant) -> Next {
        if let Some(stopping) = &mut self.stopping {
            let drained = self.shared.outboxes.are_drained();
            let written = std::mem::replace(&mut stopping.written, drained) && drained;
            return if written || now >= stopping.until { Next::Stop } else { Next::Continue };
        }
        self.look_at_network(now);
        let paused = now - std::mem::replace(&mut self.ticked, now) > OWN_PAUSE;
        let (due, deaf, dead) = {
            let mut book = self.shared.book();
            if paused {
                book.forgive_silence(now);
            }
            (book.due(now), book.deaf(now), book.dead(now))
        };
        let outboxes = &self.shared.outboxes;
        let drained = |node: &NodeId| outboxes.get(node).is_none_or(|outbox| outbox.is_drained());
        let leaving = self.shared.book().take_leaving(now, drained);
        for node in leaving {
            if let Some(peer) = peer_of(&node) {
                self.swarm.behaviour_mut().gate.refuse(peer, now + SHUT_OUT_FOR);
            }
            self.disconnect(&node);
        }
        if self.shared.keys.take_renewed() {
            self.disconnect_strangers();
        }
        let left = self.shared.book().circuits_left(now);
        for connection in dead.into_iter().chain(left) {
            self.swarm.close_connection(connection);
        }
        for target in due {
            self.lookups.spawn(dial::resolve(target));
        }
        self.ask_for_places(now);
        let deaf = if self.topics.is_empty() { Vec::new() } else { deaf };
        for (node, why) in deaf {
            if let Some(why) = why {
                self.penalise(&node, Reason::Invalid, why);
            }
            tracing::warn!(
                event = "gossip_lost",
                node = short(&node),
                "no gossip with a peer that is up: reconnecting"
            );
            self.disconnect(&node);
        }
        if now >= self.announce_at {
            self.announce_at = now + ANNOUNCE_INTERVAL;
            let nodes: Vec<NodeId> = self.links.keys().copied().collect();
            nodes.iter().for_each(|node| self.announce_to(node));
        }
        self.forget_links();
        self.flush_learned();
        Next::Continue
    }

    /// The key has changed: a node that is not known to be a member has to show the new one.
    fn disconnect_strangers(&mut self) {
        let connected: Vec<PeerId> = self.swarm.connected_peers().copied().collect();
        for peer in connected {
            if node_of(&peer).is_none_or(|node| !self.shared.keys.knows(&node)) {
                // An error means that it is not connected, as we want it.
                let _ = self.swarm.disconnect_peer_id(peer);
            }
        }
    }

    fn on_publish(&mut self, publish: Publish) {
        let Some(topic) = self.topics.get(usize::from(publish.topic)) else { return };
        let topic = topic.hash();
        // No subscribers, a full queue and a duplicate are all no news to the owner: gossip is
        // lossy.
        if let Err(error) = self.swarm.behaviour_mut().gossip.publish(topic, publish.payload) {
            tracing::trace!(%error, topic = publish.topic, "gossip not sent");
        }
    }

    fn on_verdict(&mut self, ticket: Ticket, verdict: Verdict) {
        let acceptance = match verdict {
            Verdict::Accept if !self.relay.takes(ticket.node, ticket.bytes, Instant::now()) => {
                MessageAcceptance::Ignore
            }
            Verdict::Accept => MessageAcceptance::Accept,
            Verdict::Ignore => MessageAcceptance::Ignore,
            Verdict::Reject => MessageAcceptance::Reject,
        };
        let gossip = &mut self.swarm.behaviour_mut().gossip;
        gossip.report_message_validation_result(&ticket.message, &ticket.source, acceptance);
        if verdict == Verdict::Reject {
            self.penalise(&ticket.node, Reason::Invalid, "passed on invalid gossip");
        }
    }

    // ---- the swarm --------------------------------------------------------------------------------------------------

    #[allow(clippy::wildcard_enum_match_arm, reason = "SwarmEvent is non-exhaustive")]
    fn on_swarm(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Gossip(GossipEvent::Said(event))) => {
                self.on_gossip(event);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Gossip(GossipEvent::Topics {
                peer,
                changes,
            })) => self.on_topics(&peer, changes),
            SwarmEvent::Behaviour(BehaviourEvent::Ping(event)) => self.on_ping(event),
            SwarmEvent::Behaviour(BehaviourEvent::Identify(event)) => self.on_identify(event),
            SwarmEvent::Behaviour(BehaviourEvent::Circuits(event)) => self.on_circuits(&event),
            SwarmEvent::Behaviour(_) => {}
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, cause, endpoint, .. } => {
                self.relays.remove(endpoint.get_remote_address());
                let error = cause.map(|cause| NoLink::new(Trouble::Lost, cause.to_string()));
                self.on_disconnected(&peer_id, connection_id, error);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.on_dial_failed(connection_id, peer_id, &error);
            }
            SwarmEvent::IncomingConnectionError { error, .. } => {
                tracing::debug!(%error, "an incoming connection failed (another mesh secret?)");
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                if let Some(socket) = address_in(&address).and_then(|address| address.socket()) {
                    let mut listening = self.shared.listening();
                    if !listening.contains(&socket) {
                        listening.push(socket);
                    }
                }
                self.announce_soon();
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => self.on_expired(&address),
            SwarmEvent::ListenerClosed { listener_id, reason, .. }
                if self.places.contains_key(&listener_id) =>
            {
                self.on_place_lost(listener_id, reason);
            }
            SwarmEvent::ListenerClosed { addresses, reason: Ok(()), .. } => {
                addresses.iter().for_each(|address| self.on_expired(address));
            }
            SwarmEvent::ListenerClosed { listener_id, addresses, reason } => {
                self.listeners.remove(&listener_id);
                tracing::warn!(
                    event = "listener_closed",
                    ?addresses,
                    ?reason,
                    "a listening socket was closed"
                );
                addresses.iter().for_each(|address| self.on_expired(address));
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!(event = "listener_failed", %error, "a listening socket failed");
            }
            _ => {}
        }
    }

    fn on_expired(&mut self, address: &Multiaddr) {
        let expired = address_in(address).and_then(|address| address.socket());
        self.shared.listening().retain(|socket| Some(*socket) != expired);
        self.announce_soon();
    }

    fn on_gossip(&mut self, event: gossipsub::Event) {
        match event {
            gossipsub::Event::Message { propagation_source, message_id, message } => {
                let ticket = node_of(&propagation_source).map(|node| Ticket {
                    message: message_id.clone(),
                    source: propagation_source,
                    node,
                    bytes: message.data.len(),
                });
                let topic = self.topic_numbers.get(&message.topic).copied();
                let taken = match (ticket, topic) {
                    (Some(ticket), Some(topic)) => {
                        self.take_gossip(topic, ticket, Bytes::from(message.data))
                    }
                    (None, _) | (_, None) => false,
                };
                if !taken {
                    self.swarm.behaviour_mut().gossip.report_message_validation_result(
                        &message_id,
                        &propagation_source,
                        MessageAcceptance::Ignore,
                    );
                }
            }
            gossipsub::Event::Subscribed { peer_id, topic } => {
                if let (Some(node), Some(topic)) =
                    (node_of(&peer_id), self.topic_numbers.get(&topic))
                {
                    self.shared.book().subscribed(&node, *topic);
                }
            }
            gossipsub::Event::Unsubscribed { peer_id, topic } => {
                if let (Some(node), Some(topic)) =
                    (node_of(&peer_id), self.topic_numbers.get(&topic))
                {
                    self.shared.book().unsubscribed(&node, *topic);
                }
            }
            gossipsub::Event::SlowPeer { peer_id, .. } => {
                if let Some(node) = node_of(&peer_id) {
                    self.shared.book().slow(&node, Instant::now());
                }
            }
            gossipsub::Event::GossipsubNotSupported { peer_id } => {
                tracing::debug!(%peer_id, "the peer does not speak gossipsub");
            }
        }
    }

    fn on_topics(&mut self, peer: &PeerId, changes: u32) {
        let Some(node) = node_of(peer) else { return };
        if self.shared.book().topics_changed(&node, changes) {
            let text = "it begins and ceases to listen to topics without end";
            self.penalise(&node, Reason::Invalid, text);
        }
    }

    /// Whether the owner has it now.
    fn take_gossip(&mut self, topic: u16, ticket: Ticket, payload: Bytes) -> bool {
        let node = ticket.node;
        if payload.len() > GOSSIP_BYTES_MAX {
            let text = format!("gossip of {} bytes", payload.len());
            self.penalise(&node, Reason::Invalid, &text);
            return false;
        }
        let pace = self.shared.book().gossiped(&node, payload.len(), Instant::now());
        if let Err(fault) = pace {
            if let Some(fault) = fault {
                self.penalise(&node, Reason::Invalid, fault);
            }
            return false;
        }
        let Some(link) = self.links.get(&node) else { return false };
        self.inbox.try_put_gossip(topic, ticket, payload, &link.gossip)
    }

    /// A node without our version of the frame stream can say nothing to us, nor we to it.
    fn on_identify(&mut self, event: identify::Event) {
        let identify::Event::Received { peer_id, info, connection_id } = event else { return };
        let Some(node) = node_of(&peer_id) else { return };
        let now = Instant::now();
        self.shared.book().carries(&node, circuit::is_offered(&info));
        if self.shared.twins.identified(node, connection_id, &info.agent_version, now) {
            self.tell_of_twins(&node);
        }
        if info.protocols.contains(&link::PROTOCOL) {
            self.strangers.remove(&node);
            return;
        }
        let theirs: String =
            info.protocol_version.chars().filter(|c| !c.is_control()).take(40).collect();
        let text = format!(
            "it speaks `{theirs}`, this node `{VERSION}`: the older of the two must be updated"
        );
        self.shared.book().failed(&node, NoLink::new(Trouble::OtherVersion, text.clone()));
        if self.strangers.len() >= STRANGERS_MAX {
            self.strangers.pop_first();
        }
        if self.strangers.insert(node) {
            tracing::warn!(
                event = "other_version",
                node = short(&node),
                "no link with a node: {text}"
            );
        }
    }

    fn on_ping(&mut self, event: ping::Event) {
        match event.result {
            Ok(rtt) => {
                if let Some(node) = node_of(&event.peer) {
                    let now = Instant::now();
                    self.shared.book().alive(&node, event.connection, rtt, now);
                    if self.shared.twins.alive(node, event.connection, now) {
                        self.tell_of_twins(&node);
                    }
                }
            }
            // Silence is judged by the clock.
            Err(error) => tracing::debug!(peer = %event.peer, %error, "a ping failed"),
        }
    }

    fn on_connected(&mut self, peer: PeerId, connection: ConnectionId, endpoint: &ConnectedPoint) {
        self.look_soon();
        let target = self.dials.remove(&connection);
        let remote = endpoint.get_remote_address();
        let (Some(node), Some(way)) = (node_of(&peer), self.way_of(endpoint)) else {
            self.swarm.close_connection(connection);
            return;
        };
        if let Way::Direct(_) = way {
            self.relays.insert(remote.clone(), node);
        }
        let mut book = self.shared.book();
        let admission = book.connected(node, connection, way, Instant::now());
        if let (Some(target), Some(address)) = (target, address_in(remote))
            && book.met(&target, node, &address)
        {
            self.learned.push_back(PeerAddress { node: Some(node), address });
        }
        drop(book);
        match admission {
            Admission::Admitted => {
                let gone = self.given_up(&node, endpoint);
                let circuits = self.shared.book().circuits_beside(&node);
                self.link(node, peer).connection.send_if_modified(|current| {
                    let next = match *current {
                        Connection::Open { since, now } if gone.is_empty() => {
                            let better = circuits.contains(&now);
                            Connection::Open { since, now: if better { connection } else { now } }
                        }
                        Connection::Open { .. } | Connection::Gone => Connection::over(connection),
                    };
                    std::mem::replace(current, next) != next
                });
                for connection in gone {
                    self.swarm.close_connection(connection);
                }
            }
            Admission::NoRoom => {
                tracing::debug!(node = short(&node), "too many peers: connection closed");
                self.swarm.close_connection(connection);
            }
        }
    }

    fn on_disconnected(&mut self, peer: &PeerId, connection: ConnectionId, error: Option<NoLink>) {
        let Some(node) = node_of(peer) else { return };
        self.look_soon();
        self.shared.twins.closed(node, connection);
        let left = self.shared.book().disconnected(&node, connection, error, Instant::now());
        match (left, self.links.get(&node)) {
            (Left::None, Some(link)) => {
                link.connection.send_replace(Connection::Gone);
            }
            // The other end may still say something over these, and would wait for an answer.
            (Left::Older, _) => self.disconnect(&node),
            (Left::None | Left::Newest, _) => {}
        }
    }

    fn on_dial_failed(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        error: &DialError,
    ) {
        let Some(target) = self.dials.remove(&connection) else { return };
        self.look_soon();
        let now = Instant::now();
        let mut book = self.shared.book();
        if let DialError::LocalPeerId { address } | DialError::WrongPeerId { address, .. } = error {
            match (&target, address_in(address)) {
                (Target::Seed(address), _) => book.is_me(address),
                (Target::Peer(node) | Target::Direct(node), Some(address)) => {
                    book.not_there(node, &address);
                }
                (Target::Peer(_) | Target::Direct(_), None) => {}
            }
        }
        if let DialError::DialPeerConditionFalse(_) = error {
            book.dial_failed(&target, None, now);
            return;
        }
        let why = dial::describe(error);
        tracing::debug!(?peer, error = why.text, "dial failed");
        if book.dial_failed(&target, Some(why.clone()), now) {
            tell(&target, &why);
        }
    }

    fn on_resolved(&mut self, resolved: Option<Resolved>) {
        // A lookup that panicked leaves its target under way; lookups are library code that does
        // not.
        let Some(Resolved { target, addresses, error }) = resolved else { return };
        self.look_soon();
        let now = Instant::now();
        let (connected, failures) = self.shared.book().dial_state(&target);
        if addresses.is_empty() || connected {
            let error = error.filter(|_| !connected);
            if self.shared.book().dial_failed(&target, error.clone(), now)
                && let Some(why) = &error
            {
                tell(&target, why);
            }
            return;
        }
        let Some(options) = dial_options(&target, addresses, failures) else {
            let error = Some(NoLink::new(Trouble::Other, "the node id is not a public key"));
            self.shared.book().dial_failed(&target, error, now);
            return;
        };
        let connection = options.connection_id();
        match self.swarm.dial(options) {
            Ok(()) => {
                self.dials.insert(connection, target);
            }
            Err(error) => {
                let why = dial::describe(&error);
                self.shared.book().dial_failed(&target, Some(why), now);
            }
        }
    }

    // ---- links ------------------------------------------------------------------------------------------------------

    /// The link to a node, started if there is none.
    fn link(&mut self, node: NodeId, peer: PeerId) -> &mut Link {
        self.links.entry(node).or_insert_with(|| {
            let link = link::spawn(Ends {
                node,
                peer,
                role: Role::of(&self.me, &node),
                control: ControlHandle(self.control.clone()),
                inbox: self.inbox.clone(),
                events: self.link_reports.clone(),
            });
            self.shared.outboxes.insert(node, link.outbox.clone());
            link
        })
    }

    /// Ends the links of peers that the book has forgotten.
    fn forget_links(&mut self) {
        let book = self.shared.book();
        let outboxes = &self.shared.outboxes;
        self.links.retain(|node, _| {
            let known = book.peer(node).is_some();
            if !known {
                outboxes.remove(node);
            }
            known
        });
    }

    fn on_stream(&mut self, peer: &PeerId, stream: Stream) {
        let Some(node) = node_of(peer).filter(|_| self.swarm.is_connected(peer)) else { return };
        if Role::of(&self.me, &node) == Role::Opener {
            return;
        }
        if self.shared.book().opened(&node, Instant::now()) {
            self.penalise(&node, Reason::Invalid, "it opens its frame stream again and again");
        }
        // The stream may overtake the news of its connection. If its queue is full, the peer opens
        // another.
        let _ = self.link(node, *peer).streams.try_send(stream);
    }

    fn on_link(&mut self, node: NodeId, event: LinkEvent) {
        self.look_soon();
        match event {
            LinkEvent::Up => {
                tracing::info!(node = short(&node), "peer up");
                self.shared.book().up(&node, Instant::now());
                self.announce_to(&node);
                self.announce_soon();
            }
            LinkEvent::Down => {
                tracing::info!(node = short(&node), "peer down");
                self.shared.book().down(&node, Instant::now());
                self.announce_soon();
            }
            LinkEvent::Moved => {
                tracing::debug!(node = short(&node), "the link is direct now");
                let circuits = self.shared.book().circuits_beside(&node);
                for circuit in circuits {
                    self.swarm.close_connection(circuit);
                }
            }
            LinkEvent::Announced(records) => self.on_announced(node, records),
            LinkEvent::Failed(error) => {
                tracing::debug!(node = short(&node), error, "frame streams closed");
                if !self.strangers.contains(&node) {
                    self.shared.book().failed(&node, NoLink::new(Trouble::Lost, error));
                }
            }
            LinkEvent::Dubious(error) => self.penalise(&node, Reason::Invalid, &error),
            LinkEvent::Violated(error) => self.penalise(&node, Reason::Hostile, &error),
        }
    }

    fn penalise(&mut self, node: &NodeId, reason: Reason, text: &str) {
        let strikes = reason.strikes();
        let refused = self.shared.book().strike(node, strikes, text, Instant::now());
        let (Some(until), Some(peer)) = (refused, peer_of(node)) else { return };
        tracing::warn!(
            event = "peer_refused",
            node = short(node),
            reason = text,
            "peer misbehaved: refused for a while"
        );
        self.swarm.behaviour_mut().gate.refuse(peer, until);
        self.disconnect(node);
    }

    /// Both are told when they are connected again.
    fn tell_of_twins(&mut self, node: &NodeId) {
        tracing::warn!(
            event = "twin",
            node = short(node),
            "two nodes run with one identity: its operator has to stop one, or what they write is lost"
        );
        self.disconnect(node);
    }

    fn disconnect(&mut self, node: &NodeId) {
        if let Some(peer) = peer_of(node) {
            // An error means that it is not connected, as we want it.
            let _ = self.swarm.disconnect_peer_id(peer);
        }
    }
}

/// Says in the log that a dial has failed, and why: once, until the reason is of another kind.
fn tell(target: &Target, why: &NoLink) {
    let node = match target {
        Target::Seed(address) => address.to_string(),
        Target::Peer(node) | Target::Direct(node) => short(node),
    };
    if why.trouble.is_lasting() {
        tracing::warn!(event = "no_link", node, "no link with a node: {why}");
    } else {
        tracing::info!(node, "no link with a node: {why}");
    }
}

/// A new port for each dial: with the listening port, two nodes that dial each other at once would
/// meet in one connection with two dialling ends (TCP simultaneous open).
fn dial_options(target: &Target, addresses: Vec<Multiaddr>, failures: u32) -> Option<DialOpts> {
    let to = |node: &NodeId, condition| {
        let dial =
            DialOpts::peer_id(peer_of(node)?).condition(condition).addresses(addresses.clone());
        Some(dial.allocate_new_port().build())
    };
    match target {
        Target::Peer(node) => to(node, PeerCondition::DisconnectedAndNotDialing),
        Target::Direct(node) => to(node, PeerCondition::NotDialing),
        // libp2p dials one address if it does not know whom to expect: those of a name take turns.
        Target::Seed(_) => {
            let turn = failures as usize % addresses.len().max(1);
            let address = addresses.into_iter().nth(turn)?;
            Some(DialOpts::unknown_peer_id().address(address).allocate_new_port().build())
        }
    }
}

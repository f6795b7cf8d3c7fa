//! The desk: calls of parties without a connection. They are asked at a seat as all others are, and nobody hears events.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::HeaderMap;
use mesh::{
    api::{
        agenda::{NewKey, Standing},
        command::Command,
        event::AgentEvent,
    },
    name::{
        id::{AgentId, KeyPrint, NodeId, RoomId},
        key::KeySecret,
    },
    wire::acts::{KeyMinted, KeyTerms, Tier},
};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
    time::sleep,
};

use crate::{
    backend::{self, Mesh, ReadError, Reads},
    checkup::Checkup,
    config::{Config, Signup},
    delivery::hub::{Beside, Hub, Watched, Way},
    figures::Figures,
    ids, limits,
    replay::Tapes,
    reply::{Failure, Reply},
    schedules::Schedules,
    seam::{
        call::{Attach, Call},
        event::{Audience, Mute},
        refusal::{Bound, Refusal},
    },
    secret::Secret,
    session::{
        ask::Ask,
        attach::ShowKey,
        pace::Paced,
        party::Party,
        rules::Rules,
        seat::{Seat, Step, Then},
    },
    webhooks::Webhooks,
};

mod address;
mod callbacks;
mod credentials;
mod hosts;
mod keys;
mod past;
mod rows;
mod signups;

use callbacks::Callbacks;
use hosts::Hosts;
use signups::Signups;

pub use crate::delivery::hub::{
    Connected, Described, Notified, Onlooker, Overheard, Pieces, Watch, kind_of,
};
pub use callbacks::{Callback, CallbackError};
pub use credentials::Credential;

/// Above every key there is: a request that shows none sees public rooms only.
pub(crate) const NOBODY: KeyPrint = KeyPrint([0xff; 16]);

/// Reads on blocking threads, so many at once.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    reads: Arc<dyn Reads>,
    /// See [`limits::READS_AT_ONCE`].
    slots: Arc<Semaphore>,
}

impl Reader {
    pub(crate) fn new(reads: Arc<dyn Reads>) -> Reader {
        Reader { reads, slots: Arc::new(Semaphore::new(limits::READS_AT_ONCE)) }
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Reads) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let permit = self.slots.acquire().await.map_err(ReadError::new)?;
        let reads = self.reads.clone();
        let found = tokio::task::spawn_blocking(move || read(&*reads));
        let found = found.await.map_err(ReadError::new)?;
        drop(permit);
        found
    }
}

/// The address at the other end of an HTTP connection, as axum's `ConnectInfo` has it.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub(crate) IpAddr);

impl Peer {
    /// The node itself: a request that came by no connection, for somebody whom the node has let in already.
    #[must_use]
    pub fn here() -> Peer {
        Peer(Ipv4Addr::LOCALHOST.into())
    }
}

/// The client of a request, as far as its address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The nearest address that is no proxy of the operator's.
    pub address: IpAddr,
    /// The request says that it came by way of a proxy, and nobody here trusts that one: the client may be anywhere.
    pub is_forwarded: bool,
}

/// Somebody for whom a key may be made.
#[derive(Debug)]
pub struct Applicant {
    /// The address that is counted. `None`: the operator asks.
    stranger: Option<IpAddr>,
}

/// A party that asks without a connection. Cheap to clone. An agent is detached when its last clone is dropped: it does not
/// outlive a request that was given up.
#[derive(Clone, Debug)]
pub struct Visitor(Arc<Visit>);

/// An agent that acts without a connection.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// It.
    pub visitor: Visitor,
    /// It was not attached before.
    pub came: bool,
}

struct Visit {
    party: Arc<Party>,
    /// The way to detach its agent, if it is one.
    mesh: Option<Arc<dyn Mesh>>,
    /// Of a stranger, if it is known.
    network: Option<IpAddr>,
}

impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.party.fmt(f)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let (Some(mesh), Ok(caller)) = (self.mesh.take(), self.party.caller()) else { return };
        // An error: the node has ended, and all its agents with it.
        if let Ok(runtime) = Handle::try_current() {
            let caller = caller.clone();
            drop(runtime.spawn(async move { backend::detach(&*mesh, &caller, &[]).await }));
        }
    }
}

impl Visitor {
    /// Somebody who shows no key: reads what everybody may.
    #[must_use]
    pub fn stranger() -> Visitor {
        Visitor::new(Party::Holder {
            key: NOBODY,
            standing: Standing::Minted { tier: Tier::Low, writes: true, approves: true },
            signer: None,
            named: None,
        })
    }

    /// The holder of a minted key.
    #[cfg(test)]
    pub(crate) fn holding(key: KeyPrint) -> Visitor {
        let standing = Standing::Minted { tier: Tier::Low, writes: true, approves: true };
        Visitor::new(Party::Holder { key, standing, signer: None, named: None })
    }

    /// The same holder of a key, who reads in the name of an agent: direct rooms are of agents.
    #[must_use]
    pub fn named(self, agent: Option<AgentId>) -> Visitor {
        match &*self.0.party {
            Party::Holder { key, standing, signer, .. } => {
                let (key, standing, signer) = (*key, *standing, signer.clone());
                Visitor::new(Party::Holder { key, standing, signer, named: agent })
            }
            Party::Agent { .. } => self,
        }
    }

    /// Somebody who is no agent.
    fn new(party: Party) -> Visitor {
        Visitor::of(Arc::new(party))
    }

    /// A party that is detached elsewhere, if it is an agent.
    fn of(party: Arc<Party>) -> Visitor {
        Visitor(Arc::new(Visit { party, mesh: None, network: None }))
    }

    /// The same stranger, who asks from this network ([`Desk::network`]): those of one share what strangers have, if it is not this
    /// machine.
    #[must_use]
    pub fn at(self, network: IpAddr) -> Visitor {
        let network = Some(network).filter(|network| !network.is_loopback());
        Visitor(Arc::new(Visit { party: self.party(), mesh: None, network }))
    }

    /// See [`Visitor::at`].
    pub(crate) fn network(&self) -> Option<IpAddr> {
        self.0.network
    }

    pub(crate) fn party(&self) -> Arc<Party> {
        self.0.party.clone()
    }

    /// It has shown no key.
    pub(crate) fn is_stranger(&self) -> bool {
        self.key() == NOBODY
    }

    /// Its agent. `None`: it is none.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        self.0.party.agent()
    }

    /// The kind of its key.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.0.party.standing()
    }

    /// Signs for its key. `None`: it is a stranger, or the node checks no keys.
    #[must_use]
    pub fn signer(&self) -> Option<&Arc<KeySecret>> {
        self.0.party.signer()
    }

    /// Its key. Of a stranger it is one that nobody has.
    #[must_use]
    pub fn key(&self) -> KeyPrint {
        self.0.party.key()
    }
}

/// All that the desk needs of the node.
pub(crate) struct Office {
    pub(crate) config: Arc<Config>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) mesh: Arc<dyn Mesh>,
    pub(crate) reader: Reader,
    pub(crate) webhooks: Arc<Webhooks>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    office: Arc<Office>,
    signups: Arc<Signups>,
    hosts: Arc<Hosts>,
    callbacks: Arc<Callbacks>,
    schedules: Arc<Schedules>,
    tapes: Arc<Tapes>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
impl Desk {
    pub(crate) fn new(office: Office) -> Desk {
        let callbacks = Arc::new(Callbacks::new(office.config.allow_private_webhooks));
        let schedules = Arc::new(Schedules::new());
        let (signups, hosts, tapes) = (Arc::default(), Arc::default(), Arc::default());
        Desk { office: Arc::new(office), signups, hosts, callbacks, schedules, tapes }
    }

    /// The node's settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.office.config
    }

    /// How the node was in the last hour and day: for its operator alone.
    pub fn figures(&self, visitor: &Visitor) -> Result<Arc<Figures>, Refusal> {
        match visitor.standing() {
            Standing::Own => Ok(self.config().figures.clone()),
            Standing::Minted { .. } => Err(Refusal::NotOperator),
        }
    }

    /// How the node and its links are, for its operator alone. `None`: it does not say now.
    pub async fn checkup(&self, visitor: &Visitor) -> Result<Option<Arc<Checkup>>, Refusal> {
        match visitor.standing() {
            Standing::Own => Ok(self.config().examiner.checkup().await),
            Standing::Minted { .. } => Err(Refusal::NotOperator),
        }
    }

    /// Whether a request came over TLS, as its client sees it.
    #[must_use]
    pub fn is_secure(&self, peer: Peer, headers: &HeaderMap) -> bool {
        self.config().http_tls.is_some()
            || address::is_forwarded_tls(peer.0, headers, &self.config().trusted_proxies)
    }

    /// The client of a request.
    #[must_use]
    pub fn client(&self, peer: Peer, headers: &HeaderMap) -> Client {
        let proxies = &self.config().trusted_proxies;
        Client {
            address: address::client(peer.0, headers, proxies),
            is_forwarded: address::is_forwarded(peer.0, headers, proxies),
        }
    }

    /// The network of a client: what one client can have many addresses of counts as one.
    #[must_use]
    pub fn network(&self, peer: Peer, headers: &HeaderMap) -> IpAddr {
        address::neighbourhood(address::client(peer.0, headers, &self.config().trusted_proxies))
    }

    /// How much was heard of a connection whose socket is its dialect's own.
    #[must_use]
    pub fn paced(&self) -> Paced {
        self.office.rules.paced(Instant::now())
    }

    /// The schedules of keys that this node sees to.
    pub(crate) fn schedules(&self) -> &Arc<Schedules> {
        &self.schedules
    }

    /// The hub.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.office.hub
    }

    /// How many keys this node has heard to be invalid since its start. As long as it stays the same, a key that was valid has not
    /// been revoked; it may have expired. Never waits.
    #[must_use]
    pub fn keys_ended(&self) -> u64 {
        self.office.hub.keys_ended()
    }

    /// The connections of agents of the visitor's key to this node; for its operator those of all keys.
    #[must_use]
    pub fn connected_here(&self, visitor: &Visitor, limit: usize) -> Vec<Connected> {
        let key = match visitor.standing() {
            Standing::Own => None,
            Standing::Minted { .. } => Some(visitor.key()),
        };
        self.office.hub.connections(key, limit)
    }

    /// Whether the node's disk takes nothing now. Never waits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.office.hub.is_full()
    }

    /// For how long this node has had its connections to others, in milliseconds.
    pub async fn links(&self) -> BTreeMap<NodeId, u64> {
        let checkup = self.config().examiner.checkup().await;
        let nodes = checkup.iter().flat_map(|checkup| &checkup.nodes);
        nodes.filter_map(|(node, facts)| Some((*node, facts.up_ms?))).collect()
    }

    /// How many agents are attached here.
    #[must_use]
    pub fn agents_here(&self) -> usize {
        self.office.hub.agents()
    }

    /// How many rooms there are.
    #[must_use]
    pub fn rooms_here(&self) -> usize {
        self.office.hub.rooms()
    }

    /// Whether a room is the direct room of two agents, as far as it is known here. Never waits; not to be asked by a voice.
    #[must_use]
    pub fn is_direct(&self, room: RoomId) -> bool {
        self.office.hub.facts(room).is_some_and(|facts| facts.access.sides.is_some())
    }

    /// The holder of a key that is valid here: reads what the key may.
    pub async fn holder(&self, key: Secret) -> Result<Visitor, Refusal> {
        let party = self.ask(&Visitor::stranger(), ShowKey(key)).await?;
        Ok(Visitor::new(party))
    }

    /// An agent without a connection: it is in its rooms, and asks as others do. It hears no events: its dialect reads
    /// history. It takes no id over that is connected, whatever the call says.
    pub async fn attach(&self, call: Attach) -> Result<Visitor, Refusal> {
        let desk = self.clone();
        // Begun is finished: an agent that nobody waits for any more is detached.
        let attaching = tokio::spawn(async move { desk.attach_now(call).await });
        attaching.await.unwrap_or(Err(Refusal::Unknown))
    }

    async fn attach_now(&self, call: Attach) -> Result<Visitor, Refusal> {
        let party = self.party(call).await?;
        let mesh = Some(self.office.mesh.clone());
        Ok(Visitor(Arc::new(Visit { party, mesh, network: None })))
    }

    async fn party(&self, call: Attach) -> Result<Arc<Party>, Refusal> {
        let mut seat = Seat::new(self.office.rules.clone(), Arc::new(Mute));
        let call = Attach { reconnect: false, linger: Duration::ZERO, ..call };
        self.answer(&mut seat, call).await?;
        seat.me().cloned().ok_or(Refusal::Unknown)
    }

    /// An agent without a connection that acts again and again: it is attached with its first act, and stays for
    /// [`Attach::linger`] after the last one, in its rooms. An agent that is connected here with the same key is the same one,
    /// and a connection may take its place at any time. To be called before each act: the agent may have gone.
    pub async fn host(&self, call: Attach) -> Result<Hosted, Refusal> {
        let desk = self.clone();
        // Begun is finished, as for visitors.
        let hosting = tokio::spawn(async move { hosts::host(&desk, call).await });
        hosting.await.unwrap_or(Err(Refusal::Unknown))
    }

    /// An agent that is attached here with this key: it is connected, or acts without a connection, and then stays for longer.
    pub fn attached(&self, agent: &AgentId, key: KeyPrint) -> Option<Visitor> {
        hosts::attached(self, &(agent.clone(), key))
    }

    /// The dialect of an agent that is connected to this node, for people.
    #[must_use]
    pub fn speaks(&self, agent: &AgentId) -> Option<&'static str> {
        self.office.hub.speaks(agent)
    }

    /// Waits for news of a room that the visitor may read.
    pub fn watch(&self, visitor: &Visitor, room: RoomId) -> Result<Watch, Refusal> {
        let hub = &self.office.hub;
        let reader = visitor.0.party.as_reader();
        hub.readable(room, reader.key, reader.agent.as_deref())?;
        Ok(hub.watch(Watched::Room(room)))
    }

    /// News of all rooms that are here, from now on: for a dialect whose clients have no seats. Who is told, it judges itself
    /// ([`RoomFacts::readable_by`](crate::seam::answer::RoomFacts::readable_by)).
    #[must_use]
    pub fn overhear(&self) -> tokio::sync::broadcast::Receiver<Arc<Overheard>> {
        self.office.hub.overhear()
    }

    /// News of what records say of agents of the mesh, whoever may want to know it, from now on.
    #[must_use]
    pub fn hear_of_agents(&self) -> tokio::sync::broadcast::Receiver<Described> {
        self.office.hub.hear_of_agents()
    }

    /// Looks at a room that the visitor may read, without a seat in it, from now on.
    pub fn look_on(&self, visitor: &Visitor, room: RoomId) -> Result<Onlooker, Refusal> {
        self.may_read(visitor, room)?;
        Ok(self.office.hub.look_on(room))
    }

    /// Whether the visitor may read a room that is here. Never waits.
    pub fn may_read(&self, visitor: &Visitor, room: RoomId) -> Result<(), Refusal> {
        let reader = visitor.0.party.as_reader();
        self.office.hub.readable(room, reader.key, reader.agent.as_deref()).map(drop)
    }

    /// Tells members of a room at this node of those who look on: it is kept nowhere, and the first thing that a slow client
    /// misses.
    pub fn tell_of_audience(&self, room: RoomId, news: Audience) {
        self.office.hub.of_audience(room, news);
    }

    /// Hears pieces of answers in a room that the visitor may read, also of agents at other nodes: as soon as these know that
    /// somebody does.
    pub fn hear_pieces(&self, visitor: &Visitor, room: RoomId) -> Result<Pieces, Refusal> {
        let hub = &self.office.hub;
        let reader = visitor.0.party.as_reader();
        hub.readable(room, reader.key, reader.agent.as_deref())?;
        let pieces = hub.hear_pieces(room);
        // It is said again for as long as somebody waits.
        self.office.mesh.call(Command::AwaitPieces { rooms: vec![room] }, Reply::once().0);
        Ok(pieces)
    }

    /// Waits for items of the visitor's inbox.
    pub fn watch_inbox(&self, visitor: &Visitor) -> Result<Watch, Refusal> {
        let agent = visitor.agent().ok_or(Refusal::NotAttached)?;
        Ok(self.office.hub.watch(Watched::Inbox(agent.clone())))
    }

    /// How far the visitor was told of its inbox.
    #[must_use]
    pub fn told(&self, visitor: &Visitor) -> Notified {
        visitor.agent().map(|agent| self.office.hub.mails.of(agent)).unwrap_or_default()
    }

    /// The visitor was given all items of its inbox up to this one.
    pub fn gave_upto(&self, visitor: &Visitor, upto: u64) {
        if let Some(agent) = visitor.agent() {
            self.office.hub.mails.fetched(agent, upto);
        }
    }

    /// The visitor has confirmed items of its inbox.
    pub fn confirmed(&self, visitor: &Visitor) {
        if let Some(agent) = visitor.agent() {
            self.office.hub.mails.confirmed(agent);
        }
    }

    /// How many agents act without a connection.
    #[must_use]
    pub fn hosts_here(&self) -> usize {
        self.hosts.count()
    }

    /// Readers that wait for an agent's inbox look again.
    pub fn stir_inbox(&self, agent: &AgentId) {
        self.office.hub.tell(AgentEvent::Mail { agent: agent.clone() });
    }

    /// Its host was told of all items up to this one.
    pub fn tell_upto(&self, visitor: &Visitor, upto: u64) {
        if let Some(agent) = visitor.agent() {
            self.office.hub.mails.tell_upto(agent, upto, Way::Asked);
        }
    }

    /// Asks for a visitor. The call is judged, counted and carried out as one that comes by a connection; agents alone have
    /// other nodes asked for a room that is not known here. A call that only an agent can make is refused to others with
    /// [`Refusal::NotAttached`]. What was begun goes on if the future is dropped.
    pub async fn ask<C: Ask>(&self, visitor: &Visitor, call: C) -> Result<C::Answer, Refusal> {
        let rules = self.office.rules.clone();
        let mut seat = Seat::visited(rules, Arc::new(Mute), visitor.0.party.clone());
        self.answer(&mut seat, call).await
    }

    /// Whether a key may be made for the sender of a request. `secret`: the operator's, as it was shown.
    pub fn applicant(
        &self,
        secret: Option<&str>,
        peer: Peer,
        headers: &HeaderMap,
    ) -> Result<Applicant, Refusal> {
        let stranger = match &self.office.config.signup {
            Signup::Off => return Err(Refusal::NoSignup),
            Signup::Admin(own) if secret.is_some_and(|shown| own.is(shown)) => None,
            Signup::Admin(_) => return Err(Refusal::NotOperator),
            Signup::Open => {
                let proxies = &self.office.config.trusted_proxies;
                let client = address::client(peer.0, headers, proxies);
                Some(address::neighbourhood(client))
            }
        };
        Ok(Applicant { stranger })
    }

    /// Makes a key of the low tier: its text, which is not kept.
    pub async fn make_key(
        &self,
        applicant: Applicant,
        label: Option<String>,
    ) -> Result<Secret, Refusal> {
        if let Some(address) = applicant.stranger {
            let taken = self.signups.take(address, Instant::now());
            taken.map_err(|wait| Refusal::TooManyKeys { wait })?;
        }
        let text = ids::key();
        let terms = KeyTerms { label, ..KeyTerms::of(Tier::Low) };
        let minted = KeyMinted::sign(&KeySecret::of(&text), &self.office.config.here, terms);
        let minted = minted.expect("a key of 64 characters is long enough");
        let key = minted.key();
        let new = NewKey { minted: Box::new(minted), local: false };
        let is_stranger = applicant.stranger.is_some();
        self.ask(&Visitor::stranger(), MakeKey { new, is_stranger }).await?;
        tracing::info!(%key, "a key was made over HTTP");
        Ok(Secret::new(text))
    }

    /// Asks at a seat, and does its steps one after the other until the call is answered.
    async fn answer<C: Ask>(&self, seat: &mut Seat, call: C) -> Result<C::Answer, Refusal> {
        let (sender, mut answer) = oneshot::channel();
        // An error: nobody waits any more.
        seat.ask(call, move |_, ended| drop(sender.send(ended)));
        let mut steps = VecDeque::new();
        loop {
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
            for step in seat.take_steps().into_iter().rev() {
                steps.push_front(step);
            }
            // Without steps nothing is under way that could be the answer.
            let Some(step) = steps.pop_front() else { return Err(Refusal::Unknown) };
            self.carry_out(seat, step).await?;
        }
    }

    /// Does a step. Those that concern a link have nothing to do: there is none.
    async fn carry_out(&self, seat: &mut Seat, step: Step) -> Result<(), Refusal> {
        match step {
            Step::Call { command, hook: _, then } => {
                let (reply, ended) = Reply::once();
                self.office.mesh.call(command, reply);
                then(seat, ended.await.unwrap_or(Err(Failure::Unanswered)));
            }
            Step::Webhooks(ask) => {
                // Begun is finished, also if nobody waits for it.
                let resume = tokio::spawn(ask(&self.office.webhooks)).await;
                resume.map_err(|_| Refusal::Unknown)?(seat);
            }
            Step::Read(mut reading) => {
                if reading.waits() {
                    sleep(limits::LATER_RETRY).await;
                }
                if !reading.at_once(&**self.office.hub.reads()) {
                    let read = self.office.reader.blocking(move |reads| {
                        reading.run(reads);
                        Ok(reading)
                    });
                    reading = read.await.map_err(|error| {
                        let refusal = Refusal::from(error);
                        refusal.log();
                        refusal
                    })?;
                }
                reading.go_on(seat);
            }
            Step::Later(later) => (later.await)(seat),
            // Without a link there is nothing to share.
            Step::Beside { then, .. } => then(seat, Beside::Alone),
            Step::Reply(_)
            | Step::Replay { .. }
            | Step::Came(..)
            | Step::Paged(..)
            | Step::PageEnd(..)
            | Step::Hold(_)
            | Step::Release(..)
            | Step::GoOnFrom(..)
            | Step::HearPieces
            | Step::Open
            | Step::Close(_) => {}
        }
        Ok(())
    }
}

/// Have a key made.
struct MakeKey {
    new: NewKey,
    is_stranger: bool,
}

impl Call for MakeKey {
    type Answer = ();
}

impl Ask for MakeKey {
    fn begin(self, seat: &mut Seat, then: Then<()>) {
        let MakeKey { new, is_stranger } = self;
        let make = if is_stranger { Command::SignUp(new) } else { Command::MintKey(new) };
        seat.call(make, Bound::Node, then);
    }
}

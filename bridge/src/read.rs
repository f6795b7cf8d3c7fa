//! The desk: questions of requests without a connection.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::http::HeaderMap;
use mesh::{
    api::{
        agenda::{NewKey, Standing},
        command::{AgentView, Command, Refused, RoomView},
    },
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
    wire::acts::Tier,
};
use tokio::sync::Semaphore;

use crate::{
    backend::{Mesh, ReadError, Reads},
    config::{Config, Shown, Signup},
    delivery::hub::Hub,
    ids, limits,
    reply::Reply,
    seam::{
        answer::{self, Answer},
        event::Message,
        refusal::{Bound, Refusal},
    },
    secret::Secret,
};

mod address;
mod signups;

use signups::Signups;

/// Above every key there is: a request that shows none sees public rooms only.
const NOBODY: KeyPrint = KeyPrint([0xff; 16]);

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

/// Somebody for whom a key may be made.
#[derive(Debug)]
pub struct Applicant {
    /// The address that is counted. `None`: the operator asks.
    stranger: Option<IpAddr>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    config: Arc<Config>,
    hub: Arc<Hub>,
    mesh: Arc<dyn Mesh>,
    reader: Reader,
    signups: Arc<Signups>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
impl Desk {
    pub(crate) fn new(
        config: Arc<Config>,
        hub: Arc<Hub>,
        mesh: Arc<dyn Mesh>,
        reader: Reader,
    ) -> Desk {
        Desk { config, hub, mesh, reader, signups: Arc::default() }
    }

    /// The node's settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many agents are attached here.
    #[must_use]
    pub fn agents_here(&self) -> usize {
        self.hub.agents()
    }

    /// How many rooms there are.
    #[must_use]
    pub fn rooms_here(&self) -> usize {
        self.hub.rooms()
    }

    /// The print of a key that is valid here.
    pub async fn check(&self, key: &Secret) -> Result<KeyPrint, Refusal> {
        let shown = self.config.auth.identify(key.expose());
        let Shown { key, own, .. } = shown.ok_or(Refusal::Mesh(Refused::NoKey))?;
        self.ask::<Standing>(Command::CheckKey { key, own }).await?;
        Ok(key)
    }

    /// All public rooms, by name.
    pub async fn public_rooms(&self) -> Result<Vec<RoomView>, Refusal> {
        let ask = Command::ListRooms { key: NOBODY, parent: None };
        let mut rooms: Vec<RoomView> = self.ask(ask).await?;
        rooms.retain(|room| room.public);
        Ok(rooms)
    }

    /// The agents of a key.
    pub async fn agents_of(&self, key: KeyPrint) -> Result<Vec<AgentView>, Refusal> {
        self.ask(Command::ListAgents { key, room: None }).await
    }

    /// Refuses a room that is not public, or not known.
    pub fn public(&self, room: RoomId) -> Result<(), Refusal> {
        let facts = self.hub.readable(room, KeyPrint::OPEN)?;
        if facts.is_public() { Ok(()) } else { Err(Refusal::not_yours()) }
    }

    /// The newest messages of a room, the oldest of them first.
    pub async fn newest(&self, room: RoomId, limit: usize) -> Result<Vec<Message>, Refusal> {
        let rows = self.reader.blocking(move |reads| reads.page_newest(room, limit, None)).await;
        let rows = rows.map_err(unreadable)?;
        Ok(rows.into_iter().filter_map(|row| Message::read(room, row)).collect())
    }

    /// The message that was ever given this number in a room.
    pub fn numbered(&self, room: RoomId, number: Number) -> Result<Option<Message>, Refusal> {
        let row = self.hub.reads().by_number(room, number).map_err(unreadable)?;
        Ok(row.and_then(|row| Message::read(room, row)))
    }

    /// Whether a key may be made for the sender of a request. `secret`: the operator's, as it was shown.
    pub fn applicant(
        &self,
        secret: Option<&str>,
        peer: Peer,
        headers: &HeaderMap,
    ) -> Result<Applicant, Refusal> {
        let stranger = match &self.config.signup {
            Signup::Off => return Err(Refusal::NoSignup),
            Signup::Admin(own) if secret.is_some_and(|shown| own.is(shown)) => None,
            Signup::Admin(_) => return Err(Refusal::NotOperator),
            Signup::Open => {
                let client = address::client(peer.0, headers, &self.config.trusted_proxies);
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
        let key = KeyPrint::of(&text);
        let new = NewKey { key, tier: Tier::Low, label, local: false };
        let is_stranger = applicant.stranger.is_some();
        let make = if is_stranger { Command::SignUp(new) } else { Command::MintKey(new) };
        self.ask::<()>(make).await?;
        tracing::info!(%key, "a key was made over HTTP");
        Ok(Secret::new(text))
    }

    async fn ask<A: Answer>(&self, command: Command) -> Result<A, Refusal> {
        let (reply, ended) = Reply::once();
        self.mesh.call(command, reply);
        match ended.await {
            Ok(ended) => answer::read(ended, Bound::Node),
            Err(_) => Err(Refusal::Overloaded),
        }
    }
}

fn unreadable(error: ReadError) -> Refusal {
    let refusal = Refusal::from(error);
    refusal.log();
    refusal
}

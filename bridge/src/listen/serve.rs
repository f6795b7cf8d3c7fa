//! Listeners: the caller binds them and says when to stop.

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Instant,
};

use mesh::name::id::{AgentId, KeyPrint};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    connection::{self, Shared},
    http::{self, listener::Listener, metrics::Metrics},
    transport::{LineSink, Lines, Share},
};
use crate::{
    announcer, announcing,
    backend::{Mesh, ReadError},
    config::Config,
    counters::{Counters, Transport},
    delivery::{hub::Hub, readers},
    dialect::{Dialect, Dialects},
    limits,
    mails::{self, Mail},
    read::{Desk, Office, Reader},
    reply::Reply,
    schedules,
    session::{meter::Meter, rules::Rules},
    waking::{self, Woken},
    webhooks::Webhooks,
};

/// Serves clients. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Bridge {
    shared: Arc<Shared>,
    connections: Arc<Semaphore>,
    connections_max: u32,
    ready: Arc<std::sync::atomic::AtomicBool>,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("connections_max", &self.connections_max).finish()
    }
}

impl Bridge {
    /// Over a hub that the engine's driver feeds, and the way to that engine. Of the dialects the first one that a
    /// connection's first frame fits has it; the last one has all connections that are left, and posts to webhooks.
    ///
    /// # Panics
    /// Without dialects.
    #[must_use]
    pub fn new(
        config: Config,
        hub: Arc<Hub>,
        mesh: Arc<dyn Mesh>,
        dialects: Vec<Arc<dyn Dialect>>,
    ) -> Bridge {
        let max = u32::try_from(config.connections_max).unwrap_or(u32::MAX);
        let max = max.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let dialects = Dialects::new(dialects);
        let (allow_private, voice) = (config.allow_private_webhooks, dialects.last().voice());
        let (config, reader) = (Arc::new(config), Reader::new(hub.reads().clone()));
        let meter = Arc::new(Meter::new(Instant::now()));
        let rules = Arc::new(Rules::new(config.clone(), hub.clone(), meter));
        let webhooks = Webhooks::new(hub.clone(), mesh.clone(), voice, allow_private);
        let desk = Desk::new(Office {
            config: config.clone(),
            rules: rules.clone(),
            hub: hub.clone(),
            mesh: mesh.clone(),
            reader: reader.clone(),
            webhooks: webhooks.clone(),
        });
        dialects.open(&desk);
        Bridge {
            connections: Arc::new(Semaphore::new(max as usize)),
            connections_max: max,
            shared: Arc::new(Shared {
                webhooks,
                desk,
                config,
                dialects,
                reader,
                hub,
                mesh,
                rules,
                ration: Arc::default(),
                metrics: OnceLock::new(),
            }),
            ready: Arc::default(),
        }
    }

    /// The settings; the key in them may be rotated.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Where calls of parties without a connection are asked.
    #[must_use]
    pub fn desk(&self) -> &Desk {
        &self.shared.desk
    }

    /// Goes on with the webhooks of earlier starts. To be called when the engine has told of its rooms,
    /// before anybody is let in.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn open_webhooks(&self) -> Result<(), ReadError> {
        self.shared.webhooks.open(|key| self.shared.config.auth.owns(key)).await
    }

    /// Ends the webhooks of keys that are not valid any more: the node's own has been rotated.
    pub async fn check_webhooks(&self) {
        self.shared.webhooks.check_owners(|key| self.shared.config.auth.owns(key)).await;
    }

    /// Tells rooms with very many members here whose turn it is. To run as long as anybody is served; it does
    /// not end by itself.
    pub async fn tell_crowds(&self) {
        self.shared.hub.tell_crowds().await;
    }

    /// Tells hosts of agents that something has come for them. To run as long as anybody is served; it does not end by itself.
    pub async fn wake_hosts(&self) {
        waking::run(self.shared.hub.clone(), self.shared.config.wakes.clone()).await;
    }

    /// Asks agents what is to be said of conversations that are over, and says it. To run as long as anybody is served; it does
    /// not end by itself.
    pub async fn announce(&self) {
        announcer::run(self.shared.desk.clone(), self.shared.hub.clone()).await;
    }

    /// Sees to the jobs of keys, when they are due. To run as long as anybody is served; it does not end by itself.
    pub async fn keep_schedules(&self) {
        schedules::run(self.shared.desk.clone()).await;
    }

    /// How far the hosts are that are told, for the operator.
    #[must_use]
    pub fn woken(&self) -> Vec<(AgentId, Woken)> {
        self.shared.hub.woken.all()
    }

    /// Goes on with readers, and with announcements, that earlier starts knew. To be called before anybody is let in.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open_readers(&self) -> Result<(), ReadError> {
        let hub = &self.shared.hub;
        hub.readers().load(hub.reads().kept(readers::PREFIX)?);
        hub.announcements.load(&hub.reads().kept(announcing::PREFIX)?);
        Ok(())
    }

    /// Has the progress of readers written, again and again. To run as long as anybody is served; it does not end by
    /// itself.
    pub async fn keep_readers(&self) {
        loop {
            let urgent = self.shared.hub.readers().is_urgent();
            _ = tokio::time::timeout(limits::READERS_KEPT_EVERY, urgent).await;
            self.keep_readers_now().await;
        }
    }

    /// The same, at the end, while the mesh still takes commands. A disk that takes nothing holds nobody up.
    pub async fn close_readers(&self) {
        let kept = tokio::time::timeout(limits::READERS_CLOSE_WITHIN, self.keep_readers_now());
        if kept.await.is_err() {
            tracing::debug!("what readers were given last is not written: they may get it again");
        }
    }

    async fn keep_readers_now(&self) {
        let hub = &self.shared.hub;
        for command in hub.take_handed() {
            // One that is not taken is said when the message is answered.
            self.shared.mesh.call(command, Reply::once().0);
        }
        if let Some(command) = hub.await_pieces() {
            // One that is not taken is asked again.
            self.shared.mesh.call(command, Reply::once().0);
        }
        hub.note_all_live();
        loop {
            let unkept = hub.readers().take_unkept(limits::READERS_KEPT_AT_ONCE);
            let is_last = unkept.len() < limits::READERS_KEPT_AT_ONCE;
            let asked = unkept.into_iter().map(|(name, command)| {
                let (reply, kept) = Reply::once();
                self.shared.mesh.call(command, reply);
                (name, kept)
            });
            let mut all_kept = true;
            for (name, kept) in asked.collect::<Vec<_>>() {
                if !matches!(kept.await, Ok(Ok(_))) {
                    hub.readers().not_kept(name);
                    all_kept = false;
                }
            }
            if is_last || !all_kept {
                return;
            }
        }
    }

    /// Stops delivering, and has everything written that says how far it got. To be called while the
    /// mesh still takes commands.
    pub async fn close_webhooks(&self) {
        self.shared.webhooks.close().await;
    }

    /// The answer of `/readyz`. Not ready until told so.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, std::sync::atomic::Ordering::Relaxed);
    }

    /// Messages and acts of a key at this node within the last minute.
    #[must_use]
    pub fn said_by(&self, key: KeyPrint) -> u32 {
        self.shared.rules.said_by(key, Instant::now())
    }

    /// How these agents, and all that are woken or were told something, have got on with their inboxes. It reads the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn mails(&self, here: Vec<AgentId>) -> Result<Vec<Mail>, ReadError> {
        mails::of(&self.shared.hub, &self.shared.config, here)
    }

    /// Counts of its work so far.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        self.shared.hub.counters()
    }

    /// Serves `/metrics` from now on, over HTTP. Once.
    pub fn show_metrics(&self, metrics: Metrics) {
        // The first one stays.
        drop(self.shared.metrics.set(metrics));
    }

    /// Serves NDJSON over TCP until `shutdown`; then connections write their queues, and end.
    pub async fn serve_tcp(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        self.accept(Door::Tcp(listener), shutdown).await;
    }

    /// Serves NDJSON over a Unix socket until `shutdown`; then connections write their queues, and
    /// end. The socket's file is the caller's.
    pub async fn serve_unix(&self, listener: UnixListener, shutdown: impl Future<Output = ()>) {
        self.accept(Door::Unix(listener), shutdown).await;
    }

    /// Serves HTTP and `/ws` until `shutdown`; then connections write their queues, and end.
    ///
    /// # Errors
    /// If the listener has no address, or two dialects have pages under the same paths.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        listener.local_addr()?;
        let sites = http::sites(&self.shared).map_err(io::Error::other)?;
        let ready = self.ready.clone();
        let config = &self.shared.config;
        let listener = Listener::new(listener, self.connections.clone(), config);
        let hub = self.shared.hub.clone();
        let (stopping, stopped) = oneshot::channel();
        let shutdown = async move {
            shutdown.await;
            hub.drain();
            // Nobody waits any more: it is served to the end.
            stopping.send(()).ok();
        };
        let serving = http::serve(listener, self.shared.clone(), sites, ready, shutdown);
        let enough = async move {
            match stopped.await {
                Ok(()) => sleep(limits::FLUSH_WITHIN).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = serving => {}
            // A request that is never finished does not keep the node.
            () = enough => {}
        }
        self.drained().await;
        Ok(())
    }

    async fn accept(&self, door: Door, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        loop {
            let socket = tokio::select! {
                () = &mut shutdown => break,
                socket = door.next() => socket,
            };
            match (socket, self.connections.clone().try_acquire_owned()) {
                (Ok(Socket::Tcp(socket)), Ok(permit)) => {
                    let (read, write) = socket.into_split();
                    self.start(Transport::Tcp, read, write, permit);
                }
                (Ok(Socket::Unix(socket)), Ok(permit)) => {
                    let (read, write) = socket.into_split();
                    self.start(Transport::Unix, read, write, permit);
                }
                (Ok(Socket::Tcp(socket)), Err(_)) => self.turn_away(socket).await,
                (Ok(Socket::Unix(socket)), Err(_)) => self.turn_away(socket).await,
                (Err(error), _) => {
                    tracing::warn!(event = "accept_failed", %error, "cannot accept connections; trying again");
                    sleep(limits::ACCEPT_RETRY).await;
                }
            }
            // Connected clients need not wait until all of a crowd have come.
            yield_now().await;
        }
        self.shared.hub.drain();
        self.drained().await;
    }

    fn start<R, W>(&self, transport: Transport, read: R, write: W, permit: OwnedSemaphorePermit)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let lines = Lines::new(read, Share::of(shared.ration.clone()));
            connection::serve(shared, connection::From::by(transport), lines, LineSink(write))
                .await;
            drop(permit);
        });
    }

    /// One line that says why, if the client takes it at once.
    async fn turn_away(&self, mut socket: impl AsyncWrite + Unpin) {
        self.shared.hub.counters().turned_away.fetch_add(1, Ordering::Relaxed);
        let frames = self.shared.dialects.too_many_connections();
        let lines: Vec<u8> =
            frames.as_slice().iter().flat_map(|frame| [&frame[..], b"\n"].concat()).collect();
        // A fresh socket has room for a line; one that has not is dropped without it.
        drop(timeout(limits::ACCEPT_RETRY, socket.write_all(&lines)).await);
    }

    /// Until all connections have ended, or have had their time.
    async fn drained(&self) {
        let all = self.connections.acquire_many(self.connections_max);
        // Those that are left are cut off with the process.
        drop(timeout(limits::FLUSH_WITHIN * 2, all).await);
    }

    /// Everything that connections share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

/// For tests of dialects.
#[cfg(any(test, feature = "testing"))]
impl Bridge {
    /// Connections that count at this moment.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.connections_max as usize - self.connections.available_permits()
    }

    /// How many agents are attached.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.shared.hub.agents()
    }

    /// Frames and bytes that wait for all connections together.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        self.shared.hub.held()
    }
}

enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    async fn next(&self) -> io::Result<Socket> {
        match self {
            Door::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                // Without it frames wait for acknowledgements; it works all the same.
                drop(socket.set_nodelay(true));
                Ok(Socket::Tcp(socket))
            }
            Door::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

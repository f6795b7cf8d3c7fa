//! All that connections share.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bridge::{
    delivery::ending::Ending,
    log_tail::LogTail,
    node_settings::NodeSettings,
    read::Desk,
    seam::call::{Attach, Identity},
    secret::Secret,
    session::rates::{Buckets, Rate},
};
use mesh::name::id::{AgentId, KeyPrint, RoomId};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    caller::Caller,
    cron,
    limits::{
        ADDRESSES_COUNTED_MAX, KEYS_PRESENTED_MAX, PRINCIPALS_COUNTED_MAX, READS_PER_MINUTE,
        ROOMS_READ_AT_ONCE,
    },
    line::Line,
    logs::Tails,
    outcome::No,
    pairing::Pairings,
    presence::{self, Watch},
    runs::Runs,
    serve::Served,
    settings::{Live, Settings},
    tasks,
    threads::Remembered,
    times,
};

/// See the module.
pub(crate) struct Shared {
    pub(crate) desk: Desk,
    pub(crate) lobby: RoomId,
    live: Live,
    pub(crate) started: Instant,
    pub(crate) runs: Runs,
    pub(crate) served: Served,
    pub(crate) pairings: Pairings,
    /// The node's log, if it is shown.
    pub(crate) log: Option<Arc<LogTail>>,
    /// The node's settings, if they are shown.
    pub(crate) node: Option<Arc<dyn NodeSettings>>,
    /// One change of them after the other.
    pub(crate) configuring: tokio::sync::Mutex<()>,
    pub(crate) tails: Tails,
    pub(crate) remembered: Remembered,
    pub(crate) presence: Watch,
    /// Rooms are read whole, so only some at once.
    pub(crate) reading: Semaphore,
    writes: Mutex<Buckets<AgentId>>,
    /// Of clients over HTTP that are not on this machine.
    requests: Mutex<Buckets<IpAddr>>,
    /// Keys that were presented here since the start.
    presented: Mutex<BTreeSet<KeyPrint>>,
    clients: Mutex<BTreeMap<u64, Client>>,
    ids: AtomicU64,
    /// It hears what happens to tasks.
    listening: Once,
}

/// A connection that is connected.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) caller: Arc<Caller>,
    pub(crate) line: Arc<Line>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) since_ms: u64,
}

impl Shared {
    pub(crate) fn new(desk: Desk, lobby: RoomId, live: Live) -> Shared {
        Shared {
            desk,
            lobby,
            live,
            started: Instant::now(),
            runs: Runs::default(),
            served: Served::default(),
            pairings: Pairings::default(),
            log: None,
            node: None,
            configuring: tokio::sync::Mutex::default(),
            tails: Tails::default(),
            remembered: Remembered::default(),
            presence: Watch::default(),
            reading: Semaphore::new(ROOMS_READ_AT_ONCE),
            writes: Mutex::new(Buckets::new(PRINCIPALS_COUNTED_MAX)),
            requests: Mutex::new(Buckets::new(ADDRESSES_COUNTED_MAX)),
            presented: Mutex::default(),
            clients: Mutex::default(),
            ids: AtomicU64::default(),
            listening: Once::new(),
        }
    }

    /// Decisions of the operator, as they are now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.live.get()
    }

    pub(crate) fn count_write(&self, who: &AgentId, rate: Rate) -> Result<(), Duration> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.take(who, rate, Instant::now())
    }

    /// Counts a request over HTTP, unless it comes from this machine.
    pub(crate) fn count_request(&self, address: IpAddr) -> Result<(), No> {
        if address.is_loopback() {
            return Ok(());
        }
        let rate = Rate { burst: READS_PER_MINUTE, per_minute: READS_PER_MINUTE };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.take(&address, rate, Instant::now()).map_err(|wait| {
            No::exhausted(format!("over {READS_PER_MINUTE} requests a minute"), times::ms(wait))
        })
    }

    /// Presents a key here, once: this node gets the rooms of its agents from others, also if its users only read.
    pub(crate) fn present(&self, key: Secret, print: KeyPrint) {
        let mut presented = self.presented.lock().unwrap_or_else(PoisonError::into_inner);
        if presented.len() >= KEYS_PRESENTED_MAX || !presented.insert(print) {
            return;
        }
        drop(presented);
        let desk = self.desk.clone();
        let attach = Attach {
            key,
            name: "goclaw".to_owned(),
            // It needs no claim, and goes at once.
            identity: Identity::Fresh,
            capabilities: Vec::new(),
            reconnect: false,
            linger: Duration::ZERO,
        };
        // Nobody waits for it: a key that is refused is as one that was not presented.
        drop(tokio::spawn(async move { drop(desk.attach(attach).await) }));
    }

    /// A number for a connection.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn comes(self: &Arc<Shared>, client: Client) {
        // With the first client: only then is somebody to be told.
        self.listening.call_once(|| {
            tasks::listen(self);
            cron::listen(self);
        });
        let is_told = client.caller.modern;
        self.locked().insert(client.id, client);
        if is_told {
            presence::watch(self);
        }
    }

    pub(crate) fn goes(&self, id: u64) {
        self.tails.end(id);
        self.locked().remove(&id);
        self.served.goes(id);
    }

    pub(crate) fn clients(&self) -> Vec<Client> {
        self.locked().values().cloned().collect()
    }

    /// Tells those of an event who are to be told.
    pub(crate) fn tell(&self, name: &str, payload: &Value, to: impl Fn(&Caller) -> bool) {
        for client in self.clients() {
            if to(&client.caller) {
                client.line.event(name, payload);
            }
        }
    }

    /// Whether a client would be told.
    pub(crate) fn any(&self, of: impl Fn(&Caller) -> bool) -> bool {
        self.locked().values().any(|client| of(&client.caller))
    }

    /// Ends the connections of a device.
    pub(crate) fn end_device(&self, device: &str) {
        for client in self.clients() {
            if client.caller.device.as_deref() == Some(device) {
                client.line.end(Ending::Revoked);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! One node, from settings to readiness, and its orderly end.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bridge::{
    Announcing, Bridge, Hub,
    config::{AdminSecret, Auth as BridgeAuth, NodeKey, Signup as BridgeSignup},
    dialect::Dialect,
    log_tail::LogTail,
    policy::{Marks, Policies},
    secret::Secret,
};
use clawchat::ClawChat;
use clawfinder::{ClawFinder, Overseer};
use clawtank::ClawTank;
use goclaw::GoClaw;
use mcp::Mcp;
use mesh::{
    Engine,
    api::command::Command,
    name::id::{KeyPrint, MeshId, RoomId},
    wire::signatures::SignedLog,
};
use net::{Address, Inbox, Net, PeerAddress, StartError};
use page::Page;
use protocol::operator::Status;
use store::Store;
use tokio::{
    net::{TcpListener, UnixListener},
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    backend::{FromStore, ToEngine},
    beacon::{Beacons, Connected, Heart, PulseCell},
    catching_up, certificate, chance,
    changeable::{self, Changeable, Followers, Seen},
    checkup::Examiner,
    clock::Clock,
    clocks::Clocks,
    control::{self, Control, Files, Words},
    driver::Driver,
    ending::{End, Ending},
    facing,
    figures::Sampler,
    files::{
        DataDir, RunFile,
        api_key::{self, ApiKey, admin_secret, secret_of},
        group::Group,
        private::is_full,
    },
    guest,
    import::Journal,
    indexer::Indexer,
    intake::Intake,
    invitations::Invitations,
    joining::{Joined, Joining},
    limits::{HAND_OVER_WITHIN, LEAVE_WITHIN, REMEMBER_QUEUE},
    listen::{self, SocketFile},
    marks,
    membership::{self, Member},
    metrics::{Counts, Sources, meters::Meters},
    outgoing::Outgoing,
    queue::{Asker, Queue},
    remembered::Remembered,
    report::{self, Ready},
    secret::{Keeper, pre_shared_keys},
    settings::{self, Auth, HttpRead, Listen, Settings, Signup, WakeAt},
    telling,
    topics::{self, TOPICS},
};

/// A node that serves. Dropped without [`Running::stop`], it ends as if it had crashed, as soon as
/// the runtime does.
#[derive(Debug)]
pub struct Running {
    ready: Ready,
    key_file: Option<PathBuf>,
    dir: DataDir,
    queue: Arc<Queue>,
    bridge: Bridge,
    net: Net,
    end: mpsc::Receiver<End>,
    engine: JoinHandle<()>,
    beacons: Beacons,
    indexer: Indexer,
    remembered: Remembered,
    serving: Serving,
    joining: Arc<Joining>,
}

/// The listeners for clients and operators, served.
#[derive(Debug)]
struct Serving {
    shutdown: watch::Sender<bool>,
    listeners: JoinSet<()>,
    operators: JoinSet<()>,
    sockets: Vec<SocketFile>,
}

/// The listeners for clients and operators, bound but not served yet.
#[derive(Debug)]
struct Doors {
    tcp: Option<(TcpListener, SocketAddr)>,
    http: Option<(TcpListener, SocketAddr)>,
    unix: Option<(UnixListener, SocketFile)>,
    control: (UnixListener, SocketFile),
    /// Of the network of nodes, which is open.
    listen: Vec<Listen>,
}

/// Starts a node on the current runtime. It serves when this returns.
///
/// # Errors
/// Mistakes that an operator can correct are told in one line that names the flag.
pub async fn start(settings: Settings) -> Result<Running> {
    let dir = DataDir::prepare(&settings.data_dir)?;
    // First of all: the process that has the store is the only one here.
    let mut store = Store::open(dir.path()).context("--data-dir")?;
    if store.was_repaired() {
        tracing::info!("this node was not stopped in order: all of its store was looked through");
    }
    dir.tighten()?;
    Journal::check_finished(&store.reader())?;
    let (auth, key_file) = auth(&settings.auth, settings.group.as_ref())?;
    let announcing = announcing(&settings, &auth, key_file.as_deref())?;
    let signup = signup(&settings.signup)?;
    let http_tls = settings.http_tls.as_ref().map(certificate::load).transpose()?;
    let doors = Doors::open(&settings, &dir).await?;
    let tickets = guest::tickets(&dir, &store, &settings.join).await?;
    let mut member = membership::enter(&dir, &mut store, &tickets, settings.is_relay)?;
    let (net, inbox) = network(&dir, &settings, &member).await?;

    let (mesh, me) = (member.mesh.mesh_id(), member.identity.node_id());
    let name = settings.name.clone().unwrap_or_else(|| membership::default_name(me));
    let clock = Clock::start();
    let mut config = mesh::Config::new(mesh, member.mesh.founder());
    config.name.clone_from(&name);
    config.relay = settings.is_relay;
    config.secret = member.mesh.link().clone();
    env!("CARGO_PKG_VERSION").clone_into(&mut config.version);
    config.takeover_after = settings.takeover_after;
    config.seed = chance::number()?;
    config.archive = membership::archive(&store, me, mesh, &name)?;
    config.tiers = settings.limits.tiers;
    config.retention = settings.limits.retention;
    config.budgets = settings.budgets;
    config.policies = settings.policies.core.clone();
    config.policies.teller = announcing.as_ref().map(|own| own.teller().clone());
    config.request_ttl = settings.request_ttl;
    config.operators = operators(&settings, &auth, key_file.as_deref())?;
    config.archive_after = settings.spawning.archive_after;
    config.carry = settings.carry;
    let summary = std::mem::take(&mut member.summary);
    let engine = Engine::open(member.identity.clone(), config, summary, clock.now());

    let metrics = settings.metrics;
    let extra = Optional {
        mcp: settings.mcp,
        finder: settings.finder,
        goclaw: settings.goclaw.clone(),
        clawtank: settings.clawtank.clone(),
        page: settings.page,
        log_tail: settings.log_tail.clone(),
        changeable: settings.changeable.clone(),
        seen: Seen {
            http: settings.http.clone(),
            name: name.clone(),
            mesh: mesh.to_string(),
            data_dir: settings.data_dir.clone(),
        },
        node: name.clone(),
    };
    let parts = Parts { engine, store, dir, key_file, clock, name, member, net, metrics, extra };
    let here = SignedLog { mesh, node: me };
    let read_by_all = strangers_read(&settings, &doors);
    let wakes = wakes(&settings.wakes)?;
    let marks = Marks::of(marks::kept(&parts.dir)?);
    let config = bridge::Config {
        wakes,
        announcing,
        strangers_read: read_by_all,
        http_tls,
        policies: Arc::new(policies(&settings, marks)),
        ..bridge_config(settings, auth, signup, here)
    };
    parts.assemble(inbox, doors, config).await
}

/// The parts of threads and tasks.
struct Parts {
    engine: Engine,
    store: Store,
    dir: DataDir,
    key_file: Option<PathBuf>,
    clock: Clock,
    name: String,
    member: Member,
    net: Net,
    metrics: bool,
    extra: Optional,
}

/// Dialects that an operator may do without.
struct Optional {
    mcp: Option<settings::Mcp>,
    finder: Option<settings::Finder>,
    goclaw: goclaw::Settings,
    clawtank: clawtank::Settings,
    page: bool,
    log_tail: Option<Arc<LogTail>>,
    changeable: Option<Arc<Changeable>>,
    seen: Seen,
    /// The name of this node.
    node: String,
}

impl Parts {
    async fn assemble(self, inbox: Inbox, doors: Doors, config: bridge::Config) -> Result<Running> {
        let Parts { engine, store, dir, key_file, clock, name, member, net, metrics, extra } = self;
        let (mesh, me) = (member.mesh.mesh_id(), member.identity.node_id());
        let (reader, queue) = (store.reader(), Arc::new(Queue::default()));
        let (pulse, connected, meters, clocks) =
            <(Arc<PulseCell>, Arc<Connected>, Arc<Meters>, Arc<Clocks>)>::default();
        let (stored, index) = FromStore::new(&reader, dir.path(), mesh, &engine);
        let Clients { hub, bridge, counts, overseer } =
            Clients::new(mesh, config, extra, stored, &queue);
        let secret = Arc::new(Keeper::new(dir.clone(), member.mesh.clone()));
        let (ending, end) = Ending::channel();
        let (learned, addresses) = mpsc::channel(REMEMBER_QUEUE);

        let known = (reader.clone(), hub.clone());
        let engine = Driver {
            mesh,
            engine,
            store,
            clock,
            queue: queue.clone(),
            net: net.clone(),
            secret: secret.clone(),
            outgoing: Outgoing::start(net.clone(), known, meters.clone(), &ending)?,
            hub,
            pulse: pulse.clone(),
            meters: meters.clone(),
            opening: true,
        }
        .start(ending)?;
        let beacons = heart(&member, pulse, connected.clone(), net.clone()).start()?;
        let from = (net.clone(), queue.clone(), connected);
        Intake::new(mesh, from, (meters.clone(), clocks.clone()), learned).start(inbox)?;
        let remembered = Remembered::start(dir.clone(), member.peers, addresses);
        let control = Arc::new(Control {
            name: name.clone(),
            me,
            invitations: Invitations::open(dir.clone(), me, secret.clone(), net.clone())?,
            calls: counts.calls.clone(),
            words: Words::open(&dir, bridge.config(), overseer)?,
            secret,
            net: net.clone(),
            queue: queue.clone(),
            reader,
            bridge: bridge.clone(),
            meters: meters.clone(),
            clocks,
            lobby: RoomId::lobby(mesh),
            files: Files::new(dir.clone(), key_file.clone()),
            http: doors.http.as_ref().map(|(_, at)| *at),
        });
        let status = first_turn(&control, &bridge).await?;
        show_metrics(&control, counts, metrics.then_some(meters));

        let ready = publish_addresses(&dir, &doors, &control, &status)?;
        let joining = Joining::new(control.clone(), member.inviters, member.founded);
        let serving = doors.serve(&bridge, control, dir.inviters());
        Ok(Running {
            ready,
            key_file,
            dir,
            queue,
            bridge,
            net,
            end,
            engine,
            beacons,
            indexer: Indexer::start(index)?,
            remembered,
            serving,
            joining: Arc::new(joining),
        })
    }
}

impl Running {
    /// Where it is.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The file with the key that clients need; `None`: they need none.
    #[must_use]
    pub fn key_file(&self) -> Option<&std::path::Path> {
        self.key_file.as_deref()
    }

    /// The outcome of the start: whether the node has joined the mesh of its tickets, or founded one.
    /// Waits for some seconds if that is not known at once. `None`: it was told to join nobody, and
    /// is no new node. Cancel-safe.
    pub fn joined(&self) -> impl Future<Output = Option<Joined>> + Send + use<> {
        let joining = self.joining.clone();
        async move { joining.outcome().await }
    }

    /// Comes when the node cannot go on, or (without an error) when it has left its mesh: then it
    /// is to be stopped. Cancel-safe.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub async fn ended(&mut self) -> Result<()> {
        match self.end.recv().await {
            Some(End::Failed(error)) => Err(error),
            Some(End::Stopped) => {
                // Nothing more comes: `stop` need not wait.
                self.end.close();
                Ok(())
            }
            None => Err(anyhow::anyhow!("the engine has stopped by itself")),
        }
    }

    /// Hands over, flushes, leaves: within 3 s.
    ///
    /// # Errors
    /// If the node failed meanwhile.
    pub async fn stop(mut self) -> Result<()> {
        self.bridge.set_ready(false);
        self.bridge.close_webhooks().await;
        self.bridge.close_readers().await;
        self.queue.push_command(Command::Stop, Asker::Nobody);
        let end = timeout(HAND_OVER_WITHIN, self.end.recv()).await;
        if end.is_err() {
            tracing::warn!(
                event = "handover_late",
                "the handover took too long: others will take over by themselves"
            );
        }
        self.queue.close();
        drop(self.beacons);
        let Serving { shutdown, mut listeners, mut operators, sockets } = self.serving;
        // They may all have gone.
        let _ = shutdown.send(true);
        let engine = tokio::task::spawn_blocking(move || {
            drop(self.engine.join());
            drop(self.indexer);
        });
        let leaving = async {
            let clients = async { while listeners.join_next().await.is_some() {} };
            tokio::join!(clients, self.net.shutdown(), self.remembered.close());
            // A panic there was said already, as an end.
            drop(engine.await);
        };
        if timeout(LEAVE_WITHIN, leaving).await.is_err() {
            tracing::debug!("clients or peers that do not read are cut off");
        }
        listeners.shutdown().await;
        operators.shutdown().await;
        drop(sockets);
        self.dir.remove_run();
        match end {
            Ok(Some(End::Failed(error))) => Err(error),
            Ok(Some(End::Stopped) | None) | Err(_) => Ok(()),
        }
    }
}

impl Doors {
    async fn open(settings: &Settings, dir: &DataDir) -> Result<Doors> {
        let tcp = match &settings.tcp {
            Some(at) => Some(listen::tcp("tcp", at).await),
            None => None,
        };
        let http = match &settings.http {
            Some(at) => Some(listen::tcp("http", at).await),
            None => None,
        };
        let unix = match &settings.socket {
            Some(path) => Some(listen::unix("socket", path, settings.group.as_ref()).await),
            None => None,
        };
        let (mut wrong, addresses) = (Vec::new(), listening(dir, settings).await);
        let mut bound = |error: anyhow::Error| wrong.push(format!("{error:#}"));
        let tcp = tcp.and_then(|tcp| tcp.map_err(&mut bound).ok());
        let http = http.and_then(|http| http.map_err(&mut bound).ok());
        let unix = unix.and_then(|unix| unix.map_err(&mut bound).ok());
        addresses.iter().filter_map(|at| is_free("listen", *at).err()).for_each(bound);
        // All at once: who has changed one flag does not want to hear of the next.
        ensure!(wrong.is_empty(), "{}", wrong.join("; and "));
        let listen = settings.listen.clone();
        Ok(Doors { tcp, http, unix, control: control::bind(dir).await?, listen })
    }

    fn serve(self, bridge: &Bridge, control: Arc<Control>, inviters: Vec<PeerAddress>) -> Serving {
        let Doors { tcp, http, unix, control: (operators_at, control_file), listen } = self;
        let (shutdown, stopping) = watch::channel(false);
        let mut sockets = vec![control_file];
        let mut operators = JoinSet::new();
        operators.spawn(catching_up::tell(control.clone()));
        operators.spawn(facing::follow(control.net.clone(), listen, inviters));
        operators.spawn(telling::reach(control.clone()));
        operators.spawn(telling::clocks(control.clone()));
        operators.spawn(Sampler::of(&control).run());
        bridge.config().examiner.set(Examiner::of(&control));
        operators.spawn(control.serve(operators_at));
        let crowds = bridge.clone();
        operators.spawn(async move { crowds.tell_crowds().await });
        let hosts = bridge.clone();
        operators.spawn(async move { hosts.wake_hosts().await });
        let announcements = bridge.clone();
        operators.spawn(async move { announcements.announce().await });
        let schedules = bridge.clone();
        operators.spawn(async move { schedules.keep_schedules().await });
        let readers = bridge.clone();
        operators.spawn(async move { readers.keep_readers().await });
        let mut listeners = JoinSet::new();
        if let Some((listener, _)) = tcp {
            let (bridge, stopping) = (bridge.clone(), stopping.clone());
            listeners.spawn(async move { bridge.serve_tcp(listener, told(stopping)).await });
        }
        if let Some((listener, file)) = unix {
            sockets.push(file);
            let (bridge, stopping) = (bridge.clone(), stopping.clone());
            listeners.spawn(async move { bridge.serve_unix(listener, told(stopping)).await });
        }
        if let Some((listener, _)) = http {
            let bridge = bridge.clone();
            listeners.spawn(async move {
                if let Err(error) = bridge.serve_http(listener, told(stopping)).await {
                    tracing::error!(event = "http_ended", %error, "HTTP is not served any more");
                }
            });
        }
        bridge.set_ready(true);
        Serving { shutdown, listeners, operators, sockets }
    }
}

fn heart(member: &Member, pulse: Arc<PulseCell>, connected: Arc<Connected>, net: Net) -> Heart {
    let (mesh, identity) = (member.mesh.mesh_id(), member.identity.clone());
    Heart { mesh, identity, pulse, connected, net, clock: Clock::start() }
}

/// Gives `/metrics` its page, if there is one.
fn show_metrics(control: &Control, counts: Counts, meters: Option<Arc<Meters>>) {
    let Some(meters) = meters else { return };
    let sources = Arc::new(Sources {
        meters,
        queue: control.queue.clone(),
        net: control.net.clone(),
        reader: control.reader.clone(),
        clocks: control.clocks.clone(),
        counters: control.bridge.counters().clone(),
        counts,
        started: Instant::now(),
        status: Mutex::default(),
    });
    control.bridge.show_metrics(bridge::Metrics::new(move || {
        let sources = sources.clone();
        async move { sources.write().await }
    }));
}

/// The agents that may attach, and the key file if there is one.
fn auth(auth: &Auth, group: Option<&Group>) -> Result<(BridgeAuth, Option<PathBuf>)> {
    match auth {
        Auth::Open => Ok((BridgeAuth::Open, None)),
        Auth::KeyFile(file) => {
            let file = std::path::absolute(file)?;
            if let (Some(group), Some(dir)) = (group, file.parent()) {
                group.make_dir(dir).with_context(|| format!("--key-file {}", file.display()))?;
            }
            let key = match ApiKey::read(&file)? {
                Some(key) => key,
                None => ApiKey::make(&file)?,
            };
            match group {
                Some(group) => group.share_file(&file)?,
                None => api_key::warn_if_shared(&file)?,
            }
            Ok((BridgeAuth::Key(NodeKey::new(key.text())), Some(file)))
        }
    }
}

/// Agents that are asked what is to be said of their conversations. They are asked with the node's own key.
fn announcing(
    settings: &Settings,
    auth: &BridgeAuth,
    key_file: Option<&Path>,
) -> Result<Option<Announcing>> {
    if settings.announce_rooms.is_empty() {
        return Ok(None);
    }
    // Of a node that checks no keys any text is the key.
    let key = match key_file.map(ApiKey::read).transpose()? {
        Some(key) => Secret::new(key.context("the key file is gone")?.text()),
        None => Secret::new("open"),
    };
    let print = auth.own_print(key.expose());
    Ok(Some(Announcing::new(key, print, settings.announce_rooms.clone())))
}

/// Keys whose holders may stop all agents here. Where no keys are checked there are none.
fn operators(
    settings: &Settings,
    auth: &BridgeAuth,
    key_file: Option<&Path>,
) -> Result<BTreeSet<KeyPrint>> {
    let Some(file) = key_file.filter(|_| settings.operators.is_empty()) else {
        return Ok(settings.operators.clone());
    };
    let key = ApiKey::read(file)?.context("the key file is gone")?;
    Ok([auth.own_print(key.text())].into())
}

/// The clients that may have a key made over HTTP.
fn signup(signup: &Signup) -> Result<BridgeSignup> {
    Ok(match signup {
        Signup::Off => BridgeSignup::Off,
        Signup::Open => BridgeSignup::Open,
        Signup::Admin(file) => BridgeSignup::Admin(AdminSecret::new(&admin_secret(file)?)),
    })
}

/// Agents whose hosts are told when something comes for them, with the hosts' tokens.
fn wakes(all: &[WakeAt]) -> Result<Vec<bridge::Wake>> {
    let wake = |at: &WakeAt| {
        let token = at.token_file.as_deref().map(|file| secret_of("wake.token-file", file));
        let token = token.transpose()?.map(|token| Secret::new(token.as_str()));
        let wake = bridge::Wake::new(&at.agent, &at.url, token);
        let wake = wake.with_context(|| format!("wake.url {}", at.url))?;
        Ok(wake.with_body(at.body.clone()))
    };
    all.iter().map(wake).collect()
}

/// Beyond loopback public rooms are read with a key, unless the operator has decided, or has switched
/// off all keys.
fn strangers_read(settings: &Settings, doors: &Doors) -> bool {
    let here = doors.http.as_ref().is_none_or(|(_, at)| at.ip().is_loopback());
    match settings.http_read {
        Some(HttpRead::Open) => true,
        Some(HttpRead::Key) => false,
        None => here || settings.auth == Auth::Open,
    }
}

/// Where agents may send.
fn policies(settings: &Settings, marks: Marks) -> Policies {
    let settings::Policies { core, send } = settings.policies.clone();
    Policies { agent_to_agent: core.agent_to_agent, send, marks }
}

fn bridge_config(
    settings: Settings,
    auth: BridgeAuth,
    signup: BridgeSignup,
    here: SignedLog,
) -> bridge::Config {
    bridge::Config {
        quotas: settings.limits.quotas,
        signup,
        origins: settings.http_origins,
        hosts: settings.http_hosts,
        trusted_proxies: settings.trusted_proxies,
        allow_private_webhooks: settings.allow_private_webhooks,
        sandbox: settings.sandbox,
        ..bridge::Config::new(auth, here)
    }
}

/// The bridge with its dialects, which are chosen here and nowhere else.
struct Clients {
    hub: Arc<Hub>,
    bridge: Bridge,
    counts: Counts,
    /// Of the index of agents.
    overseer: Option<Overseer>,
}

impl Clients {
    fn new(
        mesh: MeshId,
        config: bridge::Config,
        extra: Optional,
        stored: FromStore,
        queue: &Arc<Queue>,
    ) -> Clients {
        let lobby = RoomId::lobby(mesh);
        // Jobs are runs as all others.
        let config = bridge::Config { run_limit: extra.goclaw.run_limit, ..config };
        let clawchat = ClawChat::new(lobby);
        let refusals = clawchat.refusals();
        let last: Arc<dyn Dialect> = Arc::new(clawchat);
        let Optional { mcp, finder, goclaw, clawtank, page, log_tail, changeable, seen, node } =
            extra;
        let page = page.then(|| -> Arc<dyn Dialect> { Arc::new(Page::default()) });
        let finder = finder.map(|settings::Finder { signup, seen_every }| {
            let own = clawfinder::Settings::new(mesh);
            ClawFinder::new(clawfinder::Settings { node, signup, seen_every, ..own })
        });
        let mcp = mcp.map(|settings::Mcp { groups, idle_detach, soft_timeout, spawning }| {
            let spawning = mcp::Spawning {
                children: spawning.max_children,
                depth: spawning.max_depth,
                ..mcp::Spawning::default()
            };
            let own = mcp::Settings { lobby, groups, idle_detach, soft_timeout, spawning };
            Mcp::new(own, finder.as_ref().map(ClawFinder::toolbox))
        });
        let counts = Counts {
            refusals,
            calls: mcp.as_ref().map(Mcp::calls),
            finder: finder.as_ref().map(ClawFinder::requests),
        };
        let overseer = finder.as_ref().map(ClawFinder::overseer);
        let mcp = mcp.map(|mcp| -> Arc<dyn Dialect> { Arc::new(mcp) });
        let finder = finder.map(|finder| -> Arc<dyn Dialect> { Arc::new(finder) });
        // Also where they are switched off: they refuse in their own form.
        let goclaw = GoClaw::new(lobby, goclaw).with_log(log_tail);
        let hub = Arc::new(Hub::new(Arc::new(stored)));
        if let Some(changeable) = &changeable {
            let (live, bridge) = (goclaw.live(), config.changed.clone());
            let (switched, stopped) = (hub.clone(), hub.clone());
            let webhooks = Box::new(move |on| switched.switch_webhooks(on));
            let cron = Box::new(move |on| stopped.switch_schedules(on));
            changeable.follow(Followers { goclaw: live, bridge, webhooks, cron, seen });
        }
        let goclaw: Arc<dyn Dialect> =
            Arc::new(goclaw.with_node(changeable::shown(changeable.as_ref())));
        let clawtank: Arc<dyn Dialect> = Arc::new(ClawTank::new(lobby, clawtank));
        // The last one has all connections that no other recognises.
        let optional = mcp.into_iter().chain([goclaw, clawtank]).chain(finder).chain(page);
        let dialects: Vec<Arc<dyn Dialect>> = optional.chain([last]).collect();
        let to_engine = Arc::new(ToEngine(queue.clone()));
        let bridge = Bridge::new(config, hub.clone(), to_engine, dialects);
        Clients { hub, bridge, counts, overseer }
    }
}

async fn network(dir: &DataDir, settings: &Settings, member: &Member) -> Result<(Net, Inbox)> {
    let listen = listening(dir, settings).await;
    listen.iter().try_for_each(|at| is_free("listen", *at))?;
    settings.listen_ws.iter().try_for_each(|at| is_free("listen-ws", *at))?;
    let tls = settings.link_tls.as_ref().map(certificate::load).transpose()?;
    let web = net::Web { listen: settings.listen_ws.clone(), tls: tls.map(|tls| tls.acceptor()) };
    // A node that was removed from the mesh is an archive: it has nothing to say to anybody.
    let archive = member.summary.node.as_ref().is_some_and(|record| record.parted.is_some());
    let (pre_shared_key, former_keys) = pre_shared_keys(&member.mesh);
    let of_web = settings.listen_ws.clone();
    let settings = net::Settings {
        secret_key: (*member.seed).into(),
        pre_shared_key,
        former_keys,
        listen: if archive { Vec::new() } else { listen },
        web: if archive { net::Web::default() } else { web },
        announce: if archive { Vec::new() } else { settings.reached_at.clone() },
        peers: if archive { Vec::new() } else { member.peers.clone() },
        topics: TOPICS,
        listens_to: settings.is_relay.then(|| topics::of_relays(member.mesh.mesh_id())),
        discovery: settings.discovery,
        relaying: settings.relaying,
        relay_rate: settings.relay_rate,
    };
    net::start(settings).await.map_err(|error| match error {
        StartError::Listen { address, source } => {
            let is_web = of_web.contains(&address);
            cannot_listen(if is_web { "listen-ws" } else { "listen" }, address, &source)
        }
        StartError::Topics(_) | StartError::Setup(_) => error.into(),
    })
}

/// Where to listen for other nodes. A ticket from another machine asks for an address that this can
/// reach, and for that port alone.
async fn listening(dir: &DataDir, settings: &Settings) -> Vec<SocketAddr> {
    let inviters = dir.inviters();
    if settings.listen.iter().any(|listen| matches!(listen, Listen::Auto(_))) {
        for (here, there) in facing::facing(&inviters).await {
            tracing::info!(
                "other nodes can connect to this one at {here}, which faces {there} of the ticket; \
                 --listen HOST:PORT chooses another address"
            );
        }
    }
    facing::addresses(&settings.listen, &inviters).await
}

/// libp2p would share the port with another process, and get some of the connections.
fn is_free(flag: &str, address: SocketAddr) -> Result<()> {
    let bound = std::net::TcpListener::bind(address);
    bound.map(drop).map_err(|error| cannot_listen(flag, address, &error))
}

fn cannot_listen(flag: &str, address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "--{flag} {address}: {error}: stop what uses it, or choose another with --{flag} HOST:PORT"
    )
}

/// Until the engine has told of all rooms, and webhooks know where they were: nobody is let in
/// before.
///
/// On a full disk the first turn waits for room, but for its answers: the status says so.
async fn first_turn(control: &Control, bridge: &Bridge) -> Result<Status> {
    let status = control.report().await.context("the engine did not start")?;
    bridge.open_readers().context("--data-dir")?;
    bridge.open_webhooks().await.context("--data-dir")?;
    Ok(status)
}

fn ready(dir: &DataDir, control: &Control, doors: &Doors, status: &Status) -> Ready {
    let shown =
        |door: &Option<(TcpListener, SocketAddr)>| door.as_ref().map(|(_, at)| at.to_string());
    Ready {
        ready: true,
        node_id: control.me.to_string(),
        name: control.name.clone(),
        mesh_id: control.secret.current().mesh_id().to_string(),
        relay: status.relay,
        data_dir: dir.path().to_owned(),
        socket: doors.unix.as_ref().map(|(_, file)| file.path().to_owned()),
        tcp: shown(&doors.tcp),
        http: shown(&doors.http),
        https: control.is_over_tls(),
        listen: control.net.addresses().iter().map(Address::to_string).collect(),
        ticket: control.ticket().to_text(),
        apart: report::apart(status),
        disk_full: status.disk_full,
    }
}

/// For the other commands on this machine, while the node runs and after.
fn publish_addresses(
    dir: &DataDir,
    doors: &Doors,
    operators: &Control,
    status: &Status,
) -> Result<Ready> {
    let (ready, key_file) = (ready(dir, operators, doors, status), operators.files.key_file());
    let control = doors.control.1.path().to_owned();
    let written = dir.write_last_listen(&ready.listen).and_then(|()| {
        dir.write_run(&RunFile {
            control,
            key_file,
            socket: ready.socket.clone(),
            tcp: ready.tcp.clone(),
            http: operators.web(),
        })
    });
    match written {
        // A node can be read without; commands look where the socket mostly is.
        Err(error) if is_full(&error) => {
            tracing::warn!(event = "not_published", "{error:#}");
            Ok(Ready { disk_full: true, ..ready })
        }
        written => written.map(|()| ready),
    }
}

async fn told(mut stopping: watch::Receiver<bool>) {
    // An error: nobody is left who could say so, which is as good.
    drop(stopping.wait_for(|stopping| *stopping).await);
}

/// The longest that [`Running::stop`] takes, but for the system's share.
pub const STOP_WITHIN: Duration = HAND_OVER_WITHIN.saturating_add(LEAVE_WITHIN);

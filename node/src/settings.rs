//! Settings of `clawmeshd up`: flag over environment over file over default, each parsed once.

pub(crate) mod checked;
mod clawtank;
pub(crate) mod error;
mod finder;
mod goclaw;
mod layer;
mod limits;
mod links;
mod parse;
mod policies;
mod sessions;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bridge::{log_tail::LogTail, tokens::Visibility};
use mcp::{Groups, SoftTimeout, limits::IDLE_DETACH};
use mesh::{
    api::budget::Budgets,
    limits::TAKEOVER_AFTER,
    name::id::{AgentId, KeyPrint},
};
use net::{Address, Discovery, Relaying};

use error::{Result, SettingsError, bad};
pub use finder::Finder;
pub(crate) use layer::Layer;
use layer::{McpTable, SessionTable};
pub use limits::Limits;
pub use parse::Listen;
pub(crate) use parse::duration;
use parse::{
    group, has_host_and_port, home, host, node_name, operator, origin, proxy, reached_at,
    retention, takeover, web_address, where_to_listen,
};
pub use policies::Policies;
pub use sessions::{Spawning, WakeAt};

use crate::{changeable::Changeable, files::group::Group, invitation::Join};

/// Everything that an operator decides about a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The Unix socket for clients; `None`: off.
    pub socket: Option<PathBuf>,
    /// A group of the system that may use the socket and the key; `None`: their owner alone.
    pub group: Option<Group>,
    /// `HOST:PORT` for clients; `None`: off.
    pub tcp: Option<String>,
    /// `HOST:PORT` for HTTP and WebSocket; `None`: off.
    pub http: Option<String>,
    /// The files of a certificate and its private key; `None`: HTTP and WebSocket are in the clear.
    pub http_tls: Option<TlsFiles>,
    /// Whether `/metrics` is served over HTTP.
    pub metrics: bool,
    /// Tools for agent hosts over HTTP; `None`: off.
    pub mcp: Option<Mcp>,
    /// The index of agents; `None`: there is none here.
    pub finder: Option<Finder>,
    /// Bytes of rooms that are carried for nodes that are away, and of mail for agents that were never at this node.
    pub carry: u64,
    /// GoClaw on `/ws`.
    pub goclaw: ::goclaw::Settings,
    /// ClawTank on `/ws`.
    pub clawtank: ::clawtank::Settings,
    /// The page for browsers.
    pub page: bool,
    /// The log of this process, if it is shown to the operator over the wire.
    pub log_tail: Option<Arc<LogTail>>,
    /// Those that are changed over the wire.
    pub(crate) changeable: Option<Arc<Changeable>>,
    /// How much agents may answer each other.
    pub budgets: Budgets,
    /// The most that sandboxed tokens are shown.
    pub sandbox: Visibility,
    /// Who may write to whom, and where.
    pub policies: Policies,
    /// Keys whose holders may stop all agents here. Empty: the node's own.
    pub operators: BTreeSet<KeyPrint>,
    /// For how long requests are kept for agents that are away.
    pub request_ttl: Duration,
    /// Tasks that agents give to others.
    pub spawning: Spawning,
    /// Agents whose hosts are told when something comes for them.
    pub wakes: Vec<WakeAt>,
    /// The rooms in which it is said how conversations of agents have ended, by agent: keys of rooms.
    pub announce_rooms: BTreeMap<AgentId, String>,
    /// The agents that may attach.
    pub auth: Auth,
    /// Where other nodes connect.
    pub listen: Vec<Listen>,
    /// Where other nodes connect over WebSocket.
    pub listen_ws: Vec<SocketAddr>,
    /// The files of a certificate for that; `None`: it is in the clear, behind a proxy.
    pub link_tls: Option<TlsFiles>,
    /// Where others reach this node besides: behind a forwarded port, or by a name.
    pub reached_at: Vec<Address>,
    /// Invitations.
    pub join: Vec<Join>,
    /// Whom to connect to besides.
    pub discovery: Discovery,
    /// Whom to carry links for.
    pub relaying: Relaying,
    /// Bytes of these that are carried in a second; 0: without a bound.
    pub relay_rate: u64,
    /// It is a relay: a member that keeps the directory of the mesh and no room, and has no agents.
    pub is_relay: bool,
    /// People's name for the node; `None`: the machine's name.
    pub name: Option<String>,
    /// A sequencer counts as gone when it has not been heard for this long.
    pub takeover_after: Duration,
    /// Webhooks may go to addresses that are not public.
    pub allow_private_webhooks: bool,
    /// The clients that may have a key made over HTTP.
    pub signup: Signup,
    /// Readers of public rooms over HTTP; `None`: everybody on loopback, and holders of a key elsewhere.
    pub http_read: Option<HttpRead>,
    /// Origins of web pages that may attach.
    pub http_origins: Vec<String>,
    /// Names of this node over HTTP.
    pub http_hosts: Vec<String>,
    /// Proxies that are believed about who asks.
    pub trusted_proxies: Vec<IpAddr>,
    /// Limits of agents.
    pub limits: Limits,
}

/// Tools for agent hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcp {
    /// The tools of a host that asks for none by name.
    pub groups: Groups,
    /// How long an agent stays attached after its last call.
    pub idle_detach: Duration,
    /// The status of a send whose answer does not come in time.
    pub soft_timeout: SoftTimeout,
    /// Tasks that agents give to others.
    pub spawning: Spawning,
}

impl Default for Mcp {
    fn default() -> Mcp {
        let (groups, soft_timeout) = (Groups::ASSUMED, SoftTimeout::default());
        let spawning = Spawning::default();
        Mcp { groups, idle_detach: IDLE_DETACH, soft_timeout, spawning }
    }
}

/// A certificate for TLS, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// What it is for: `http`, or `tls` for links between nodes.
    pub of: &'static str,
    /// The node's certificate first, then those of authorities between it and a root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// The flags that name certificate and key.
    pub(crate) fn flags(of: &str) -> [&'static str; 2] {
        if of == "http" { ["http-cert", "http-key"] } else { ["tls-cert", "tls-key"] }
    }
}

/// The readers of public rooms over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpRead {
    /// Holders of a key.
    Key,
    /// Everybody.
    Open,
}

/// The clients that may have a key made over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signup {
    /// Nobody.
    Off,
    /// Those that have the secret in this file.
    Admin(PathBuf),
    /// Everybody.
    Open,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: an object in each line.
    Json,
}

/// The agents that may attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Everybody.
    Open,
    /// Those that have the key in this file, which is made if it is not there.
    KeyFile(PathBuf),
}

impl Settings {
    /// A node that keeps to itself: files and socket in `dir`, free ports on loopback, no key.
    #[must_use]
    pub fn isolated(dir: &Path) -> Settings {
        let free = "127.0.0.1:0";
        Settings {
            data_dir: dir.to_owned(),
            socket: None,
            group: None,
            tcp: Some(free.to_owned()),
            http: Some(free.to_owned()),
            http_tls: None,
            metrics: true,
            mcp: Some(Mcp::default()),
            finder: Some(Finder::default()),
            carry: mesh::limits::CARRY_BYTES,
            goclaw: ::goclaw::Settings::default(),
            clawtank: ::clawtank::Settings::default(),
            page: true,
            log_tail: None,
            changeable: None,
            budgets: Budgets::default(),
            sandbox: Visibility::Spawned,
            policies: Policies::default(),
            operators: BTreeSet::new(),
            request_ttl: mesh::limits::REQUEST_TTL,
            spawning: Spawning::default(),
            announce_rooms: BTreeMap::new(),
            wakes: Vec::new(),
            auth: Auth::Open,
            listen: vec![Listen::At(SocketAddr::from(([127, 0, 0, 1], 0)))],
            listen_ws: Vec::new(),
            link_tls: None,
            reached_at: Vec::new(),
            join: Vec::new(),
            discovery: Discovery::FullMesh,
            relaying: Relaying::Members,
            relay_rate: net::limits::RELAY_BYTES_PER_SECOND,
            is_relay: false,
            name: None,
            takeover_after: TAKEOVER_AFTER,
            allow_private_webhooks: false,
            signup: Signup::Off,
            http_read: None,
            http_origins: Vec::new(),
            http_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Limits that can be changed over the wire: as `--limit` has them, and there.
const LIMITS: [(&str, &str); 6] = [
    ("own.messages-per-minute", "limits.own.messages"),
    ("own.content-bytes", "limits.own.content_bytes"),
    ("free.messages-per-minute", "limits.free.messages"),
    ("free.content-bytes", "limits.free.content_bytes"),
    ("pro.messages-per-minute", "limits.pro.messages"),
    ("pro.content-bytes", "limits.pro.content_bytes"),
];

/// The layers, one over the other.
#[derive(Debug)]
pub(crate) struct Layered {
    all: Vec<Layer>,
    /// The file among them.
    file: Option<PathBuf>,
}

impl Layered {
    /// `flags` over the environment (`env` looks a variable up) over the file that `config`, or
    /// else `CLAWMESH_CONFIG`, names.
    pub(crate) fn new(
        flags: Layer,
        config: Option<PathBuf>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Layered> {
        let variables = Layer::from_env(&env)?;
        let file = config.or_else(|| env("CLAWMESH_CONFIG").map(PathBuf::from));
        let mut all = vec![flags, variables];
        if let Some(file) = &file {
            all.push(Layer::from_file(file)?);
        }
        Ok(Layered { all, file })
    }

    fn first<T>(&self, pick: impl Fn(&Layer) -> Option<T>) -> Option<T> {
        self.all.iter().find_map(pick)
    }

    /// A setting that can be switched off: `None` if it is, else what the highest layer says that
    /// says anything.
    fn switched<T: Clone>(
        &self,
        flag: &'static str,
        pick: impl Fn(&Layer) -> (Option<T>, Option<bool>),
        default: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        for layer in &self.all {
            match pick(layer) {
                (Some(_), Some(true)) => return Err(SettingsError::Contradiction(flag)),
                (None, Some(true)) => return Ok(None),
                (Some(value), Some(false) | None) => return Ok(Some(value)),
                // Switched on here, also if a lower layer switches it off; where, the default says.
                (None, Some(false)) => break,
                (None, None) => {}
            }
        }
        default().map(Some)
    }

    /// The file of settings.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.file.clone()
    }

    /// Settings that flags and variables set, so that nobody changes them over the wire: by their names there.
    pub(crate) fn fixed(&self) -> BTreeMap<&'static str, String> {
        let mut fixed = BTreeMap::new();
        for (layer, is_flag) in self.all.iter().zip([true, false]) {
            let source = |flag: &str| match is_flag {
                true => format!("--{flag}"),
                false => format!("CLAWMESH_{}", flag.to_uppercase().replace('-', "_")),
            };
            let mut note = |is_set: bool, name: &'static str, flag: &str| {
                if is_set {
                    fixed.entry(name).or_insert_with(|| source(flag));
                }
            };
            note(layer.log.is_some(), "log.level", "log");
            note(layer.http_origin.is_some(), "http.origins", "http-origin");
            note(layer.http_host.is_some(), "http.hosts", "http-host");
            for limit in layer.limit.iter().flatten() {
                let what = limit.split('=').next().unwrap_or_default().trim();
                let named = LIMITS.iter().find(|(own, _)| *own == what);
                if let Some((_, name)) = named {
                    note(true, name, "limit");
                }
            }
        }
        fixed
    }

    pub(crate) fn log(&self) -> Option<String> {
        self.first(|layer| layer.log.clone())
    }

    pub(crate) fn log_format(&self) -> Result<LogFormat> {
        match self.first(|layer| layer.log_format.clone()).as_deref() {
            None | Some("text") => Ok(LogFormat::Text),
            Some("json") => Ok(LogFormat::Json),
            Some(other) => Err(bad("log-format", other, "write text or json")),
        }
    }

    pub(crate) fn json(&self) -> bool {
        self.first(|layer| layer.json).unwrap_or(false)
    }

    pub(crate) fn data_dir(&self) -> Result<PathBuf> {
        match self.first(|layer| layer.data_dir.clone()) {
            Some(dir) => Ok(dir),
            None => Ok(home("data-dir")?.join(".clawmesh")),
        }
    }

    pub(crate) fn key_file(&self) -> Result<PathBuf> {
        match self.first(|layer| layer.key_file.clone()) {
            Some(file) => Ok(file),
            None => standard_key_file(),
        }
    }

    /// The agents that may attach.
    pub(crate) fn auth(&self) -> Result<Auth> {
        match self.first(|layer| layer.no_auth) {
            Some(true) => Ok(Auth::Open),
            Some(false) | None => Ok(Auth::KeyFile(self.key_file()?)),
        }
    }

    /// The meshes to join.
    pub(crate) fn join(&self) -> Result<Vec<Join>> {
        let join = self.first(|layer| layer.join.clone()).unwrap_or_default();
        join.iter().map(|text| parse::ticket(text, &mut std::io::stdin().lock())).collect()
    }

    /// People's name for the node, if it has one.
    pub(crate) fn name(&self) -> Result<Option<String>> {
        self.first(|layer| layer.name.clone()).map(node_name).transpose()
    }

    /// Everything, parsed.
    pub(crate) fn resolve(&self) -> Result<Settings> {
        let socket = self.switched(
            "socket",
            |layer| (layer.socket.clone(), layer.no_socket),
            || Ok(home("socket")?.join(".clawchat/clawchat.sock")),
        )?;
        let tcp = |layer: &Layer| (layer.tcp.clone(), layer.no_tcp);
        let tcp = self.switched("tcp", tcp, || Ok("127.0.0.1:9229".to_owned()))?;
        let http = |layer: &Layer| (layer.http.clone(), layer.no_http);
        let http = self.switched("http", http, || Ok("127.0.0.1:9230".to_owned()))?;
        let http_is_on = http.is_some();
        for (flag, value) in [("tcp", &tcp), ("http", &http)] {
            value.as_ref().map_or(Ok(()), |value| has_host_and_port(flag, value))?;
        }
        let listen = self.first(|layer| layer.listen.clone());
        let is_relay = self.is_relay();
        // A relay is there to be reached.
        let assumed = if is_relay { "0.0.0.0:9231" } else { "auto:9231" };
        let listen = listen.unwrap_or_else(|| vec![assumed.to_owned()]);
        let takeover_after = self.first(|layer| layer.takeover_after.clone());
        Ok(Settings {
            // Whoever runs the node says it.
            log_tail: None,
            changeable: None,
            data_dir: self.data_dir()?,
            socket,
            group: self.first(|layer| layer.group.clone()).map(|name| group(&name)).transpose()?,
            tcp,
            http,
            http_tls: self.http_tls(http_is_on)?,
            metrics: !self.first(|layer| layer.no_metrics).unwrap_or(false),
            mcp: self.mcp()?,
            finder: self.finder()?,
            carry: self.carry()?,
            goclaw: goclaw::read(
                self.first(|layer| layer.no_goclaw),
                &self.first(|layer| layer.goclaw.clone()).unwrap_or_default(),
            )?,
            clawtank: clawtank::read(
                self.first(|layer| layer.no_clawtank),
                &self.first(|layer| layer.clawtank.clone()).unwrap_or_default(),
            )?,
            page: !self.first(|layer| layer.no_page).unwrap_or_default(),
            budgets: sessions::budgets(&self.sessions())?,
            operators: self.list(|layer| layer.operators.clone(), operator)?.into_iter().collect(),
            request_ttl: sessions::ttl(&self.sessions())?,
            policies: Policies::of(&self.sessions())?,
            sandbox: sessions::sandbox(&self.sessions())?,
            spawning: sessions::spawning(&self.sessions().spawn.unwrap_or_default())?,
            announce_rooms: sessions::announce_rooms(&self.sessions())?,
            wakes: self.wakes()?,
            auth: self.auth()?,
            listen: listen.iter().map(|text| where_to_listen(text)).collect::<Result<_>>()?,
            listen_ws: self.list(|layer| layer.listen_ws.clone(), web_address)?,
            link_tls: self.link_tls()?,
            reached_at: self.list(|layer| layer.reached_at.clone(), reached_at)?,
            discovery: self.discovery()?,
            relaying: self.relaying()?,
            relay_rate: links::relay_rate(self.first(|layer| layer.relay_rate.clone()).as_deref())?,
            is_relay,
            join: self.join()?,
            name: self.name()?,
            takeover_after: takeover_after.map_or(Ok(TAKEOVER_AFTER), |time| takeover(&time))?,
            allow_private_webhooks: self
                .first(|layer| layer.allow_private_webhooks)
                .unwrap_or(false),
            signup: self.signup()?,
            http_read: self.http_read()?,
            http_origins: self.list(|layer| layer.http_origin.clone(), origin)?,
            http_hosts: self.list(|layer| layer.http_host.clone(), host)?,
            trusted_proxies: self.list(|layer| layer.trusted_proxy.clone(), proxy)?,
            limits: self.limits()?,
        })
    }

    /// The items of the highest layer that has any.
    fn list<T>(
        &self,
        pick: impl Fn(&Layer) -> Option<Vec<String>>,
        parse: impl Fn(&str) -> Result<T>,
    ) -> Result<Vec<T>> {
        let items = self.first(pick).unwrap_or_default();
        items.iter().map(|item| parse(item)).collect()
    }

    fn sessions(&self) -> SessionTable {
        self.first(|layer| layer.session.clone()).unwrap_or_default()
    }

    fn wakes(&self) -> Result<Vec<WakeAt>> {
        let tables = self.first(|layer| layer.wake.clone()).unwrap_or_default();
        let beside = self.file.as_deref().and_then(Path::parent);
        tables.iter().map(|table| WakeAt::of(table, beside)).collect()
    }

    fn finder(&self) -> Result<Option<Finder>> {
        let signup = self.first(|layer| layer.finder_signup.clone());
        let every = self.first(|layer| layer.finder_seen_every.clone());
        let finder = finder::read(signup.as_deref(), every.as_deref())?;
        let off = self.first(|layer| layer.no_finder).unwrap_or_default();
        Ok((!off).then_some(finder))
    }

    fn mcp(&self) -> Result<Option<Mcp>> {
        let table = |pick: fn(&McpTable) -> Option<Vec<String>>| {
            self.first(|layer| layer.mcp.as_ref().and_then(pick))
        };
        let enabled = self.first(|layer| layer.mcp.as_ref().and_then(|table| table.enabled));
        // A flag or a variable stands over the file.
        let off = self.first(|layer| layer.no_mcp).unwrap_or(enabled == Some(false));
        let mut mcp = Mcp {
            spawning: sessions::spawning(&self.sessions().spawn.unwrap_or_default())?,
            ..Mcp::default()
        };
        if let Some(names) = table(|table| table.tools.clone()) {
            let names = names.join(",");
            let why = || format!("write groups of tools: {}", Groups::NAMES.join(", "));
            mcp.groups = Groups::parse(&names).map_err(|name| bad("mcp.tools", &name, why()))?;
        }
        let idle = self.first(|layer| layer.mcp.as_ref()?.idle_detach.clone());
        if let Some(text) = idle {
            let allowed = Duration::from_secs(1)..=IDLE_DETACH;
            let time = duration(&text).filter(|time| allowed.contains(time));
            let why = "write a time from 1s to 10m";
            mcp.idle_detach = time.ok_or_else(|| bad("mcp.idle-detach", &text, why))?;
        }
        mcp.soft_timeout = policies::soft_timeout(self.sessions().soft_timeout.as_deref())?;
        Ok((!off).then_some(mcp))
    }

    fn http_tls(&self, http_is_on: bool) -> Result<Option<TlsFiles>> {
        let certificate = self.first(|layer| layer.http_cert.clone());
        let files = both("http", certificate, self.first(|layer| layer.http_key.clone()))?;
        if let Some(files) = files.as_ref().filter(|_| !http_is_on) {
            let why = "HTTP is switched off (--no-http): leave out one of the two";
            return Err(bad("http-cert", &files.certificate.display().to_string(), why));
        }
        Ok(files)
    }

    fn link_tls(&self) -> Result<Option<TlsFiles>> {
        let certificate = self.first(|layer| layer.tls_cert.clone());
        let files = both("tls", certificate, self.first(|layer| layer.tls_key.clone()))?;
        let listens = self.first(|layer| layer.listen_ws.clone()).is_some_and(|at| !at.is_empty());
        if let Some(files) = files.as_ref().filter(|_| !listens) {
            let why = "it is for links over WebSocket: say where with --listen-ws HOST:PORT";
            return Err(bad("tls-cert", &files.certificate.display().to_string(), why));
        }
        Ok(files)
    }

    fn is_relay(&self) -> bool {
        self.first(|layer| layer.is_relay).unwrap_or(false)
    }

    /// A relay is a small machine: it keeps for others only what it is told to.
    fn carry(&self) -> Result<u64> {
        let said = self.first(|layer| layer.carry.clone());
        let none = self.is_relay().then(|| "0".to_owned());
        finder::carry(said.or(none).as_deref())
    }

    fn discovery(&self) -> Result<Discovery> {
        match self.first(|layer| layer.no_discovery) {
            Some(true) if self.is_relay() => {
                let why = "a relay carries between nodes that are told of each other: leave it out";
                Err(bad("no-discovery", "true", why))
            }
            Some(true) => Ok(Discovery::Configured),
            Some(false) | None => Ok(Discovery::FullMesh),
        }
    }

    fn relaying(&self) -> Result<Relaying> {
        match self.first(|layer| layer.relay.clone()).as_deref() {
            None | Some("members") => Ok(Relaying::Members),
            Some("off") if self.is_relay() => Err(bad(
                "relay",
                "off",
                "a relay carries links, and does nothing else: leave it out",
            )),
            Some("off") => Ok(Relaying::Off),
            Some(other) => Err(bad("relay", other, "write members or off")),
        }
    }

    fn http_read(&self) -> Result<Option<HttpRead>> {
        let flag = "http-read";
        match self.first(|layer| layer.http_read.clone()).as_deref() {
            None => Ok(None),
            Some("open") => Ok(Some(HttpRead::Open)),
            Some("key") if self.auth()? == Auth::Open => {
                Err(bad(flag, "key", "with --no-auth no key is checked: leave out one of the two"))
            }
            Some("key") => Ok(Some(HttpRead::Key)),
            Some(other) => Err(bad(flag, other, "write key or open")),
        }
    }

    fn signup(&self) -> Result<Signup> {
        let policy = self.first(|layer| layer.signup.clone());
        let file = self.first(|layer| layer.admin_secret_file.clone());
        match policy.as_deref() {
            None | Some("off") => Ok(Signup::Off),
            Some("open") => Ok(Signup::Open),
            Some("admin") => file.map(Signup::Admin).ok_or_else(|| {
                bad("signup", "admin", "name the secret's file, too: --admin-secret-file FILE")
            }),
            Some(other) => Err(bad("signup", other, "write off, admin or open")),
        }
    }

    /// Each limit as the highest layer has it that has it.
    fn limits(&self) -> Result<Limits> {
        let mut limits = Limits::default();
        for layer in self.all.iter().rev() {
            if let Some(time) = &layer.retention {
                limits.retention.own = retention("retention", time, time)?;
            }
            for limit in layer.limit.iter().flatten() {
                limits.set(limit)?;
            }
        }
        Ok(limits)
    }
}

/// Both files or neither, from one layer or from two.
fn both(
    of: &'static str,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<TlsFiles>> {
    let [cert_flag, key_flag] = TlsFiles::flags(of);
    let alone = |flag, file: PathBuf, other: String| {
        let why = format!("TLS needs both files: name the {other} FILE, too");
        bad(flag, &file.display().to_string(), why)
    };
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { of, certificate, key })),
        (Some(file), None) => Err(alone(cert_flag, file, format!("private key with --{key_flag}"))),
        (None, Some(file)) => Err(alone(key_flag, file, format!("certificate with --{cert_flag}"))),
    }
}

/// Where a ClawChat server and its clients have its key, and a node has its own.
pub(crate) fn standard_key_file() -> Result<PathBuf> {
    Ok(home("key-file")?.join(".clawchat/auth.key"))
}

#[cfg(test)]
mod tests;

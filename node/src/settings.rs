//! Settings of `clawmeshd up`: flag over environment over file over default, each parsed once.

use std::{
    fs,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};

use mesh::limits::TAKEOVER_AFTER;
use serde::Deserialize;
use thiserror::Error;

use crate::{
    limits::{NODE_NAME_BYTES_MAX, TAKEOVER_AFTER_MAX, TAKEOVER_AFTER_MIN},
    ticket::{Ticket, TicketError},
};

/// Everything that an operator decides about a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The Unix socket for clients; `None`: off.
    pub socket: Option<PathBuf>,
    /// `HOST:PORT` for clients; `None`: off.
    pub tcp: Option<String>,
    /// `HOST:PORT` for HTTP and WebSocket; `None`: off.
    pub http: Option<String>,
    /// Who may attach.
    pub auth: Auth,
    /// Where other nodes connect.
    pub listen: Vec<SocketAddr>,
    /// Invitations.
    pub join: Vec<Ticket>,
    /// What people call the node; `None`: the machine's name.
    pub name: Option<String>,
    /// A sequencer counts as gone when it has not been heard for this long.
    pub takeover_after: Duration,
}

/// Who may attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Everybody.
    Open,
    /// Who has the key in this file, which is made if it is not there.
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
            tcp: Some(free.to_owned()),
            http: Some(free.to_owned()),
            auth: Auth::Open,
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            join: Vec::new(),
            name: None,
            takeover_after: TAKEOVER_AFTER,
        }
    }
}

/// Why settings cannot be used. Names the flag to change.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("--{flag} {value}: {why}")]
    Value { flag: &'static str, value: String, why: String },
    #[error("--join: {0}")]
    Ticket(#[from] TicketError),
    #[error("--{0} and --no-{0} contradict each other: give one of them")]
    Contradiction(&'static str),
    #[error("--config {}: {why}", file.display())]
    File { file: PathBuf, why: String },
    #[error("{variable}={value}: write true or false")]
    Variable { variable: String, value: String },
    #[error("--{0}: this user has no home directory, so name one")]
    NoHome(&'static str),
}

type Result<T> = std::result::Result<T, SettingsError>;

/// What one source says: flags, environment or file. In a file these are the keys.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, clap::Args)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Layer {
    /// Keep everything in DIR [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Unix socket for clients [default: ~/.clawchat/clawchat.sock]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// No Unix socket
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_socket: Option<bool>,
    /// TCP for clients [default: 127.0.0.1:9229]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tcp: Option<String>,
    /// No TCP
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_tcp: Option<bool>,
    /// HTTP and WebSocket for clients [default: 127.0.0.1:9230]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// No HTTP and no WebSocket
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_http: Option<bool>,
    /// The key that clients need, made if it is not there [default: ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Where other nodes connect; can be repeated [default: 127.0.0.1:9231]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<Vec<String>>,
    /// Join the mesh of this ticket (`clawmeshd invite` prints one); remembered; can be repeated
    #[arg(long, value_name = "TICKET")]
    pub(crate) join: Option<Vec<String>>,
    /// What people call this node [default: the machine's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Let everybody attach who can reach the node
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_auth: Option<bool>,
    /// Take over from a node that was not heard for this long [default: 1.5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) takeover_after: Option<String>,
    /// What to log: error, warn, info, debug, trace, or by module (as RUST_LOG) [default: info]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Say what is bound, as one line of JSON on stdout
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) json: Option<bool>,
}

/// The layers, one over the other.
#[derive(Debug)]
pub(crate) struct Layered {
    all: Vec<Layer>,
}

impl Layered {
    /// `flags` over the environment (`env` looks a variable up) over the file that `config`, or else
    /// `CLAWMESH_CONFIG`, names.
    pub(crate) fn new(
        flags: Layer,
        config: Option<PathBuf>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Layered> {
        let variables = Layer::from_env(&env)?;
        let file = config.or_else(|| env("CLAWMESH_CONFIG").map(PathBuf::from));
        let mut all = vec![flags, variables];
        if let Some(file) = file {
            all.push(Layer::from_file(&file)?);
        }
        Ok(Layered { all })
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
                // Switched on here, whatever is below; where, the default says.
                (None, Some(false)) => break,
                (None, None) => {}
            }
        }
        default().map(Some)
    }

    pub(crate) fn log(&self) -> Option<String> {
        self.first(|it| it.log.clone())
    }

    pub(crate) fn json(&self) -> bool {
        self.first(|it| it.json).unwrap_or(false)
    }

    pub(crate) fn data_dir(&self) -> Result<PathBuf> {
        match self.first(|it| it.data_dir.clone()) {
            Some(dir) => Ok(dir),
            None => Ok(home("data-dir")?.join(".clawmesh")),
        }
    }

    pub(crate) fn key_file(&self) -> Result<PathBuf> {
        match self.first(|it| it.key_file.clone()) {
            Some(file) => Ok(file),
            None => Ok(home("key-file")?.join(".clawchat/auth.key")),
        }
    }

    /// Everything, parsed.
    pub(crate) fn resolve(&self) -> Result<Settings> {
        let socket = self.switched(
            "socket",
            |it| (it.socket.clone(), it.no_socket),
            || Ok(home("socket")?.join(".clawchat/clawchat.sock")),
        )?;
        let tcp = |it: &Layer| (it.tcp.clone(), it.no_tcp);
        let tcp = self.switched("tcp", tcp, || Ok("127.0.0.1:9229".to_owned()))?;
        let http = |it: &Layer| (it.http.clone(), it.no_http);
        let http = self.switched("http", http, || Ok("127.0.0.1:9230".to_owned()))?;
        for (flag, value) in [("tcp", &tcp), ("http", &http)] {
            value.as_ref().map_or(Ok(()), |value| has_host_and_port(flag, value))?;
        }
        let auth = match self.first(|it| it.no_auth) {
            Some(true) => Auth::Open,
            Some(false) | None => Auth::KeyFile(self.key_file()?),
        };
        let listen = self.first(|it| it.listen.clone());
        let listen = listen.unwrap_or_else(|| vec!["127.0.0.1:9231".to_owned()]);
        let join = self.first(|it| it.join.clone()).unwrap_or_default();
        let takeover_after = self.first(|it| it.takeover_after.clone());
        Ok(Settings {
            data_dir: self.data_dir()?,
            socket,
            tcp,
            http,
            auth,
            listen: listen.iter().map(|text| socket_address(text)).collect::<Result<_>>()?,
            join: join.iter().map(|text| Ok(text.parse()?)).collect::<Result<_>>()?,
            name: self.first(|it| it.name.clone()).map(node_name).transpose()?,
            takeover_after: takeover_after.map_or(Ok(TAKEOVER_AFTER), |it| takeover(&it))?,
        })
    }
}

impl Layer {
    /// `CLAWMESH_` and the flag in capitals; lists are separated by commas.
    fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Layer> {
        let text = |name: &str| env(&format!("CLAWMESH_{name}")).filter(|it| !it.is_empty());
        let list = |name: &str| {
            text(name).map(|it| it.split(',').map(|part| part.trim().to_owned()).collect())
        };
        let switch = |name: &str| {
            text(name)
                .map(|value| match value.to_ascii_lowercase().as_str() {
                    "1" | "true" | "yes" | "on" => Ok(true),
                    "0" | "false" | "no" | "off" => Ok(false),
                    _ => Err(SettingsError::Variable {
                        variable: format!("CLAWMESH_{name}"),
                        value: value.clone(),
                    }),
                })
                .transpose()
        };
        Ok(Layer {
            data_dir: text("DATA_DIR").map(PathBuf::from),
            socket: text("SOCKET").map(PathBuf::from),
            no_socket: switch("NO_SOCKET")?,
            tcp: text("TCP"),
            no_tcp: switch("NO_TCP")?,
            http: text("HTTP"),
            no_http: switch("NO_HTTP")?,
            key_file: text("KEY_FILE").map(PathBuf::from),
            listen: list("LISTEN"),
            join: list("JOIN"),
            name: text("NAME"),
            no_auth: switch("NO_AUTH")?,
            takeover_after: text("TAKEOVER_AFTER"),
            log: text("LOG"),
            json: switch("JSON")?,
        })
    }

    fn from_file(file: &Path) -> Result<Layer> {
        let failed = |why: String| SettingsError::File { file: file.to_owned(), why };
        let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = error.span().and_then(|span| text.get(..span.start));
            let line = line.map_or(1, |before| before.matches('\n').count() + 1);
            failed(format!("line {line}: {}", error.message().replace('\n', " ")))
        })
    }
}

fn home(flag: &'static str) -> Result<PathBuf> {
    etcetera::home_dir().map_err(|_| SettingsError::NoHome(flag))
}

fn bad(flag: &'static str, value: &str, why: impl Into<String>) -> SettingsError {
    SettingsError::Value { flag, value: value.to_owned(), why: why.into() }
}

fn has_host_and_port(flag: &'static str, value: &str) -> Result<()> {
    let good = value
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if good { Ok(()) } else { Err(bad(flag, value, "write HOST:PORT, such as 127.0.0.1:9229")) }
}

fn socket_address(value: &str) -> Result<SocketAddr> {
    has_host_and_port("listen", value)?;
    let found = value.to_socket_addrs().map_err(|error| bad("listen", value, error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|it| it.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| bad("listen", value, "the host has no address"))
}

fn node_name(name: String) -> Result<String> {
    let good = !name.trim().is_empty()
        && name.len() <= NODE_NAME_BYTES_MAX
        && !name.chars().any(char::is_control);
    if good {
        Ok(name)
    } else {
        let why = format!("write 1 to {NODE_NAME_BYTES_MAX} bytes without control characters");
        Err(bad("name", &name.escape_debug().to_string(), why))
    }
}

fn takeover(value: &str) -> Result<Duration> {
    let parsed = duration(value)
        .ok_or_else(|| bad("takeover-after", value, "write a time such as 1.5s or 800ms"))?;
    if (TAKEOVER_AFTER_MIN..=TAKEOVER_AFTER_MAX).contains(&parsed) {
        Ok(parsed)
    } else {
        let why = format!("choose {TAKEOVER_AFTER_MIN:?} to {TAKEOVER_AFTER_MAX:?}");
        Err(bad("takeover-after", value, why))
    }
}

/// A number and its unit: `ms`, `s` or `m`; without one, seconds.
fn duration(text: &str) -> Option<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)];
    let (number, seconds) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))?;
    let number = number.trim();
    if !number.starts_with(|it: char| it.is_ascii_digit()) {
        return None;
    }
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        layer: Layer,
    }

    fn layered(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> Result<Layered> {
        let temp = tempfile::tempdir().unwrap();
        let config = file.map(|text| {
            let path = temp.path().join("clawmesh.toml");
            fs::write(&path, text).unwrap();
            path
        });
        let flags = Flags::parse_from(std::iter::once(&"up").chain(flags)).layer;
        let env = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Layered::new(flags, config, env)
    }

    fn settings(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> Settings {
        layered(flags, env, file).unwrap().resolve().unwrap()
    }

    fn refused(flags: &[&str], env: &[(&str, &str)], file: Option<&str>) -> String {
        let error = layered(flags, env, file).and_then(|it| it.resolve()).unwrap_err();
        let text = error.to_string();
        assert!(!text.contains('\n'), "one line: {text}");
        text
    }

    #[test]
    fn without_a_word_the_standard_client_finds_the_node() {
        let settings = settings(&[], &[], None);
        let home = etcetera::home_dir().unwrap();
        assert_eq!(settings.data_dir, home.join(".clawmesh"));
        assert_eq!(settings.socket, Some(home.join(".clawchat/clawchat.sock")));
        assert_eq!(settings.tcp.as_deref(), Some("127.0.0.1:9229"));
        assert_eq!(settings.http.as_deref(), Some("127.0.0.1:9230"));
        assert_eq!(settings.auth, Auth::KeyFile(home.join(".clawchat/auth.key")));
        assert_eq!(settings.listen, ["127.0.0.1:9231".parse().unwrap()]);
        assert_eq!(settings.takeover_after, TAKEOVER_AFTER);
        assert!(settings.join.is_empty() && settings.name.is_none());
    }

    #[test]
    fn flag_over_environment_over_file_over_default() {
        let file = "name = 'file'\ntcp = '1.1.1.1:1'\nhttp = '1.1.1.1:2'\nno-auth = true\n\
                    listen = ['1.1.1.1:3', '1.1.1.1:4']\ntakeover-after = '2s'";
        let env = [("CLAWMESH_NAME", "env"), ("CLAWMESH_TCP", "2.2.2.2:1")];
        let all = settings(&["--name", "flag"], &env, Some(file));
        assert_eq!(all.name.as_deref(), Some("flag"));
        assert_eq!(all.tcp.as_deref(), Some("2.2.2.2:1"));
        assert_eq!(all.http.as_deref(), Some("1.1.1.1:2"));
        assert_eq!(all.listen, ["1.1.1.1:3".parse().unwrap(), "1.1.1.1:4".parse().unwrap()]);
        assert_eq!(all.auth, Auth::Open);
        assert_eq!(all.takeover_after, Duration::from_secs(2));
    }

    #[test]
    fn what_is_off_below_can_be_on_above() {
        let file = Some("no-tcp = true\nno-http = true\nno-socket = true");
        let env = [("CLAWMESH_NO_HTTP", "false")];
        let some = settings(&["--tcp", "1.1.1.1:1"], &env, file);
        assert_eq!(some.tcp.as_deref(), Some("1.1.1.1:1"));
        assert_eq!(some.http.as_deref(), Some("127.0.0.1:9230"));
        assert_eq!(some.socket, None);
        assert_eq!(settings(&["--no-tcp"], &[("CLAWMESH_TCP", "1.1.1.1:1")], None).tcp, None);
    }

    #[test]
    fn lists_in_the_environment_are_separated_by_commas() {
        let all = settings(&[], &[("CLAWMESH_LISTEN", "127.0.0.1:0, 127.0.0.1:7")], None);
        assert_eq!(all.listen.len(), 2);
    }

    #[test]
    fn refusals_name_what_to_change() {
        let check = |flags: &[&str], expect: &str| {
            let error = refused(flags, &[], None);
            assert!(error.contains(expect), "{flags:?}: {error}");
        };
        check(&["--tcp", "9229"], "--tcp 9229: write HOST:PORT");
        check(&["--http", "a:b"], "--http a:b");
        check(&["--listen", "127.0.0.1"], "--listen 127.0.0.1");
        check(&["--join", "clawmesh1abc"], "--join: the ticket is damaged");
        check(&["--name", " "], "--name");
        check(&["--takeover-after", "soon"], "--takeover-after soon");
        check(&["--takeover-after", "1ms"], "--takeover-after 1ms: choose 700ms");
        check(&["--tcp", "a:1", "--no-tcp"], "--tcp and --no-tcp");
        let error = refused(&[], &[], Some("name = 'x'\nport = 7"));
        assert!(error.contains("line 2") && error.contains("`port`"), "{error}");
        let error = refused(&[], &[("CLAWMESH_NO_AUTH", "maybe")], None);
        assert!(error.contains("CLAWMESH_NO_AUTH=maybe"), "{error}");
        let missing = refused(&[], &[("CLAWMESH_CONFIG", "/no/such")], None);
        assert!(missing.contains("--config /no/such"), "{missing}");
    }

    #[test]
    fn times() {
        let check = |text: &str, expect| assert_eq!(duration(text), expect, "{text}");
        check("1.5s", Some(Duration::from_millis(1_500)));
        check("800ms", Some(Duration::from_millis(800)));
        check("2m", Some(Duration::from_secs(120)));
        check("3", Some(Duration::from_secs(3)));
        for bad in ["", "s", "-1s", "inf", "nan", "1h", "1e400s"] {
            check(bad, None);
        }
    }
}

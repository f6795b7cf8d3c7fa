//! Settings that the operator changes over the wire, while the node runs. They are kept in a file of their own in the data
//! directory, and stand over the settings file; flags and variables stand over them.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use anyhow::{Context, Result, anyhow};
use bridge::{
    config::{self, Quota, Quotas},
    node_settings::{Changes, NodeSettings, Setting},
};
use goclaw::{Events, Live};
use serde_json::{Map, Value, json};

use crate::{
    files::private,
    limits::CHANGED_SETTINGS_BYTES_MAX,
    settings::{Settings, checked},
};

/// The file in the data directory.
const FILE: &str = "settings.changed.json";

/// Sets the filter of the log, once it is sound.
pub(crate) type SetLog = Box<dyn Fn(&str) -> Result<()> + Send + Sync>;

/// The values of those that can be changed.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    goclaw: goclaw::Settings,
    quotas: Quotas,
    origins: Vec<String>,
    hosts: Vec<String>,
    log: String,
    webhooks: bool,
    cron: bool,
}

impl Values {
    pub(crate) fn of(settings: &Settings, log: &str) -> Values {
        Values {
            goclaw: settings.goclaw.clone(),
            quotas: settings.limits.quotas,
            origins: settings.http_origins.clone(),
            hosts: settings.http_hosts.clone(),
            log: log.to_owned(),
            webhooks: true,
            cron: true,
        }
    }
}

/// A setting that can be changed.
struct Row {
    name: &'static str,
    kind: &'static str,
    about: &'static str,
    get: fn(&Values) -> Value,
    set: fn(&mut Values, &Value) -> Result<(), String>,
}

macro_rules! limits {
    ($key:ident, $messages:literal, $bytes:literal) => {
        [
            Row {
                name: $bytes,
                kind: "integer",
                about: "bytes of one message, for agents of this kind of key",
                get: |values| json!(values.quotas.$key.content_bytes_max),
                set: |values, to| {
                    let what = format!("content-bytes={}", text_of(to));
                    values.quotas.$key = limit(values.quotas.$key, &what)?;
                    Ok(())
                },
            },
            Row {
                name: $messages,
                kind: "integer",
                about: "messages and acts of such a key in a minute; 0 is no limit",
                get: |values| json!(values.quotas.$key.messages_per_minute.unwrap_or(0)),
                set: |values, to| {
                    let none = to.as_u64() == Some(0);
                    let text = if none { "none".to_owned() } else { text_of(to) };
                    let what = format!("messages-per-minute={text}");
                    values.quotas.$key = limit(values.quotas.$key, &what)?;
                    Ok(())
                },
            },
        ]
    };
}

/// All that can be changed, by name.
fn rows() -> Vec<Row> {
    let mut rows = goclaw_rows();
    rows.extend([
        Row {
            name: "cron.enabled",
            kind: "boolean",
            about: "whether this node fires jobs; other nodes of a key fire them meanwhile",
            get: |values| json!(values.cron),
            set: |values, to| {
                values.cron = switch(to)?;
                Ok(())
            },
        },
        Row {
            name: "http.hosts",
            kind: "array",
            about: "names of this node over HTTP, besides its addresses",
            get: |values| json!(values.hosts),
            set: |values, to| {
                values.hosts = checked::hosts(&texts(to)?)?;
                Ok(())
            },
        },
        Row {
            name: "http.origins",
            kind: "array",
            about: "web pages that may attach, such as https://example.org",
            get: |values| json!(values.origins),
            set: |values, to| {
                values.origins = checked::origins(&texts(to)?)?;
                Ok(())
            },
        },
    ]);
    rows.extend(limits!(free, "limits.free.messages", "limits.free.content_bytes"));
    rows.extend(limits!(own, "limits.own.messages", "limits.own.content_bytes"));
    rows.extend(limits!(pro, "limits.pro.messages", "limits.pro.content_bytes"));
    rows.push(Row {
        name: "log.level",
        kind: "string",
        about: "the log: error, warn, info, debug, trace, or by module",
        get: |values| json!(values.log),
        set: |values, to| {
            values.log = text(to)?;
            Ok(())
        },
    });
    rows.push(Row {
        name: "webhooks.enabled",
        kind: "boolean",
        about: "whether webhooks are posted to; what is said meanwhile is posted later",
        get: |values| json!(values.webhooks),
        set: |values, to| {
            values.webhooks = switch(to)?;
            Ok(())
        },
    });
    rows
}

fn goclaw_rows() -> Vec<Row> {
    vec![
        Row {
            name: "goclaw.default_agent",
            kind: "string",
            about: "the agent of clients that name none; empty: none",
            get: |values| json!(values.goclaw.default_agent.clone().unwrap_or_default()),
            set: |values, to| {
                values.goclaw.default_agent = Some(text(to)?).filter(|agent| !agent.is_empty());
                Ok(())
            },
        },
        Row {
            name: "goclaw.events",
            kind: "string",
            about: "the form of events about runs: auto, flat, envelope or both",
            get: |values| json!(values.goclaw.events.name()),
            set: |values, to| {
                let wrong = || "goclaw.events must be auto, flat, envelope or both".to_owned();
                values.goclaw.events = Events::named(&text(to)?).ok_or_else(wrong)?;
                Ok(())
            },
        },
        Row {
            name: "goclaw.pairing",
            kind: "boolean",
            about: "whether devices may ask to be paired",
            get: |values| json!(values.goclaw.pairing),
            set: |values, to| {
                values.goclaw.pairing = switch(to)?;
                Ok(())
            },
        },
        Row {
            name: "goclaw.reply_wait_ms",
            kind: "integer",
            about: "clients without a stream are answered after this at the latest",
            get: |values| json!(ms(values.goclaw.reply_wait)),
            set: |values, to| {
                values.goclaw.reply_wait = checked::reply_wait(whole(to)?)?;
                Ok(())
            },
        },
        Row {
            name: "goclaw.requests_per_minute",
            kind: "integer",
            about: "messages of one user in a minute",
            get: |values| json!(values.goclaw.requests_per_minute),
            set: |values, to| {
                values.goclaw.requests_per_minute = checked::per_minute(whole(to)?)?;
                Ok(())
            },
        },
        Row {
            name: "goclaw.run_limit_ms",
            kind: "integer",
            about: "a run without an answer is over after this",
            get: |values| json!(ms(values.goclaw.run_limit)),
            set: |values, to| {
                values.goclaw.run_limit = checked::run_limit(whole(to)?)?;
                Ok(())
            },
        },
    ]
}

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "must be a string".to_owned())
}

/// A number as operators write it; of anything else its JSON, which is none.
fn text_of(value: &Value) -> String {
    value.to_string()
}

fn switch(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}

fn whole(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| "must be a whole number".to_owned())
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "must be a list of strings".to_owned();
    let items = value.as_array().ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

fn limit(quota: Quota, what: &str) -> Result<Quota, String> {
    checked::quota(quota, what)
}

/// Settings that are only seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) http: Option<String>,
    pub(crate) name: String,
    pub(crate) mesh: String,
    pub(crate) data_dir: PathBuf,
}

/// The parts of the node that follow the settings, once they are there.
pub(crate) struct Followers {
    pub(crate) goclaw: Live,
    pub(crate) bridge: config::Changed,
    /// Switches webhooks on or off.
    pub(crate) webhooks: Box<dyn Fn(bool) + Send + Sync>,
    /// Switches jobs on or off.
    pub(crate) cron: Box<dyn Fn(bool) + Send + Sync>,
    pub(crate) seen: Seen,
}

/// See the module.
pub(crate) struct Changeable {
    file: PathBuf,
    /// The settings file, for people.
    settings_file: Option<PathBuf>,
    /// As they are if nobody changes them over the wire.
    base: Values,
    /// Flags and variables, by the settings that they set.
    fixed: BTreeMap<&'static str, String>,
    changed: Mutex<Map<String, Value>>,
    set_log: SetLog,
    followers: OnceLock<Followers>,
}

impl fmt::Debug for Changeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changeable").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Where settings come from, but for those that were changed.
pub(crate) struct Sources {
    pub(crate) base: Values,
    pub(crate) fixed: BTreeMap<&'static str, String>,
    pub(crate) settings_file: Option<PathBuf>,
    pub(crate) set_log: SetLog,
}

impl Changeable {
    /// With what was changed before.
    ///
    /// # Errors
    /// The file cannot be read, or has something that can be no value any more.
    pub(crate) fn open(data_dir: &Path, sources: Sources) -> Result<Changeable> {
        let Sources { base, fixed, settings_file, set_log } = sources;
        let file = data_dir.join(FILE);
        let changed = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{}: it is no JSON object: delete it", file.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error).context(format!("read {}", file.display())),
        };
        let changed = Mutex::new(changed);
        let followers = OnceLock::new();
        let all = Changeable { file, settings_file, base, fixed, changed, set_log, followers };
        let kept = all.locked().clone();
        all.values(&kept).map_err(|why| anyhow!("{}: {why}: edit it", all.file.display()))?;
        Ok(all)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Map<String, Value>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All values, with these changes. Flags and variables stand over them.
    fn values(&self, changed: &Map<String, Value>) -> Result<Values, String> {
        let mut values = self.base.clone();
        for row in rows() {
            if let Some(to) = changed.get(row.name).filter(|_| !self.fixed.contains_key(row.name)) {
                (row.set)(&mut values, to).map_err(|why| named(row.name, &why))?;
            }
        }
        Ok(values)
    }

    fn now(&self) -> Values {
        // They were sound when they were kept.
        self.values(&self.locked()).unwrap_or_else(|_| self.base.clone())
    }

    /// The settings with which the node starts.
    pub(crate) fn begin(&self, settings: &mut Settings) -> Result<()> {
        // Webhooks and jobs are switched when there are some.
        let Values { goclaw, quotas, origins, hosts, log, webhooks: _, cron: _ } = self.now();
        settings.goclaw = goclaw;
        settings.limits.quotas = quotas;
        (settings.http_origins, settings.http_hosts) = (origins, hosts);
        if log == self.base.log { Ok(()) } else { (self.set_log)(&log) }
    }

    /// These follow from now on.
    pub(crate) fn follow(&self, followers: Followers) {
        let Values { webhooks, cron, .. } = self.now();
        (followers.webhooks)(webhooks);
        (followers.cron)(cron);
        // A process has one node.
        drop(self.followers.set(followers));
    }

    fn apply(&self, before: &Values, now: Values) -> Result<(), String> {
        if before.log != now.log {
            (self.set_log)(&now.log).map_err(|error| error.to_string())?;
        }
        let Some(followers) = self.followers.get() else { return Ok(()) };
        followers.goclaw.set(now.goclaw);
        (followers.webhooks)(now.webhooks);
        (followers.cron)(now.cron);
        let Values { quotas, origins, hosts, .. } = now;
        followers.bridge.set(config::Changeable { quotas, origins, hosts });
        Ok(())
    }

    fn hint(&self, name: &str) -> String {
        let file = self.settings_file.as_deref().map(|file| file.display().to_string());
        let what =
            file.map_or("use the flags of `clawmeshd up`".to_owned(), |it| format!("edit {it}"));
        format!("{name} needs a restart: {what}")
    }
}

/// A reason that names its setting.
fn named(name: &str, why: &str) -> String {
    if why.starts_with(name) || why.starts_with("--") {
        why.to_owned()
    } else {
        format!("{name} {why}")
    }
}

impl NodeSettings for Changeable {
    fn all(&self) -> Vec<Setting> {
        let now = self.now();
        let row = |row: Row| Setting {
            name: row.name,
            kind: row.kind,
            about: row.about,
            value: (row.get)(&now),
            default: (row.get)(&self.base),
            changeable: true,
            own: false,
        };
        let mut all: Vec<Setting> = rows().into_iter().map(row).collect();
        if let Some(followers) = self.followers.get() {
            all.extend(seen(&followers.seen));
        }
        all.sort_by_key(|setting| setting.name);
        all
    }

    fn file(&self) -> String {
        self.settings_file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
    }

    fn change(&self, changes: &Changes, rest: bool) -> Result<(), String> {
        let rows = rows();
        for (name, to) in changes {
            if !rows.iter().any(|row| row.name == name) {
                return Err(self.hint(name));
            }
            if let (Some(source), Some(_)) = (self.fixed.get(&**name), to) {
                return Err(format!("{name} is set by {source}"));
            }
        }
        let mut changed = self.locked();
        let before = self.values(&changed)?;
        let mut next = if rest { Map::new() } else { changed.clone() };
        for (name, to) in changes {
            match to {
                Some(to) => drop(next.insert(name.clone(), to.clone())),
                None => drop(next.remove(name)),
            }
        }
        let now = self.values(&next)?;
        let text = Value::Object(next.clone()).to_string();
        if text.len() > CHANGED_SETTINGS_BYTES_MAX {
            return Err(format!("over {CHANGED_SETTINGS_BYTES_MAX} bytes of settings"));
        }
        // The log's filter may be wrong, and is applied first: then nothing is changed.
        self.apply(&before, now)?;
        if let Err(error) = private::replace(&self.file, text.as_bytes()) {
            // Not kept, so not changed.
            self.apply(&self.values(&next)?, before)?;
            return Err(format!("{error:#}"));
        }
        *changed = next;
        drop(changed);
        let names: Vec<&str> = changes.keys().map(String::as_str).collect();
        let names = names.join(", ");
        tracing::info!(
            event = "settings_changed",
            names,
            rest,
            "the operator has changed settings"
        );
        Ok(())
    }
}

fn seen(seen: &Seen) -> Vec<Setting> {
    let (host, port) = match seen.http.as_deref().and_then(|http| http.rsplit_once(':')) {
        Some((host, port)) => {
            (json!(host), port.parse::<u16>().map_or(json!(null), |it| json!(it)))
        }
        None => (json!(null), json!(null)),
    };
    let row = |name, kind, about, value: Value| {
        let own = name == "node.data_dir";
        Setting { name, kind, about, default: value.clone(), value, changeable: false, own }
    };
    vec![
        row("gateway.host", "string", "where HTTP and WebSocket are served", host),
        row("gateway.port", "integer", "the port of HTTP and WebSocket", port),
        row("node.name", "string", "people's name for this node", json!(seen.name)),
        row("node.mesh", "string", "the mesh", json!(seen.mesh)),
        row("node.version", "string", "of clawmeshd", json!(env!("CARGO_PKG_VERSION"))),
        row(
            "node.data_dir",
            "string",
            "where all is kept",
            json!(seen.data_dir.display().to_string()),
        ),
    ]
}

/// For dialects.
pub(crate) fn shown(changeable: Option<&Arc<Changeable>>) -> Option<Arc<dyn NodeSettings>> {
    changeable.cloned().map(|it| -> Arc<dyn NodeSettings> { it })
}

#[cfg(test)]
mod tests;

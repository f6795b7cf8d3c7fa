//! `clawmeshd import`.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use import::ServerFile;
use mesh::name::id::KeyPrint;

use super::{
    node_args::layered,
    output::{log_to_stderr, note, say},
};
use crate::{
    files::api_key::ApiKey,
    import::{
        Brought, Choices, Journal, OpenVotes, OwnKeys, Plan, ServerKey, Target, Trace, Watch,
        bring, is_there, open, plan_of, server_key,
    },
    settings::{Auth, Layer, Layered, standard_key_file},
};

/// How often a line of progress is written where nobody can see one change.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Bring all that a ClawChat server has into a new node.
///
/// FILE is the server's SQLite database (clawchat.db, of ClawChat 0.3). Stop the server first; the file is
/// not changed. The node must be new: rooms, messages, votes and tasks keep their ids and messages their
/// numbers, so clients go on with their cursors and room keys; stable agent ids stay with their keys, and
/// webhooks go on. What comes and what does not is listed before anything is written, and afterwards. Run it
/// again if it was interrupted: it goes on, and brings nothing twice.
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// The server's database
    file: PathBuf,
    /// The new node's directory [default: ~/.clawmesh]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The node's own key, made if it is not there [default: ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The server's own key, whose rooms, stable ids and webhooks become those of the node's own key
    /// [default: auth.key beside the database, or else ~/.clawchat/auth.key]
    #[arg(long, value_name = "FILE")]
    server_key_file: Option<PathBuf>,
    /// The node's name for people [default: the machine's name]
    #[arg(long)]
    name: Option<String>,
    /// A TOML file of settings, named as the flags of `clawmeshd up`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave out votes that are still open, instead of refusing the file
    #[arg(long)]
    skip_open_votes: bool,
    /// End votes that are still open with the ballots that were cast, instead of refusing the file
    #[arg(long, conflicts_with = "skip_open_votes")]
    close_open_votes: bool,
    /// Give private rooms, stable ids and webhooks whose key is not known to the node's own key, instead of
    /// refusing the file
    #[arg(long)]
    private_to_own_key: bool,
    /// Give rooms whose name, id or description no room here can have another one, instead of refusing
    /// the file
    #[arg(long)]
    rename_rooms: bool,
    /// Leave out whatever is refused, and what belongs to it, instead of refusing the file
    #[arg(long)]
    skip_refused: bool,
    /// Only list what comes and what does not
    #[arg(long)]
    check: bool,
}

/// The keys that are this node's.
struct ImportKeys {
    node: Option<ApiKey>,
    /// The node's was drawn just now, and is not in its file yet.
    fresh: bool,
    server: Option<ServerKey>,
}

impl ImportKeys {
    fn texts(&self) -> OwnKeys<'_> {
        OwnKeys {
            node: self.node.as_ref().map(ApiKey::text),
            server: self.server.as_ref().map(|key| key.as_str()),
        }
    }

    fn own_print(&self) -> KeyPrint {
        self.node.as_ref().map_or(KeyPrint::OPEN, |key| KeyPrint::of(key.text()))
    }

    /// The server's, if it is another one than the node's.
    fn server_print(&self) -> Option<KeyPrint> {
        // A key that the first run of an import has made is found by the next one.
        let print = self.server.as_ref().map(|key| KeyPrint::of(key));
        print.filter(|print| *print != self.own_print())
    }
}

impl Import {
    pub(super) fn run(self) -> Result<()> {
        let (data_dir, key_file, name) =
            (self.data_dir.clone(), self.key_file.clone(), self.name.clone());
        let flags = Layer { data_dir, key_file, name, ..Layer::default() };
        let layered = layered(flags, self.config.clone())?;
        log_to_stderr(&layered.log().unwrap_or_else(|| "warn".to_owned()))?;
        if !layered.join()?.is_empty() {
            bail!("--join: a file is brought into a mesh of its own; others join that afterwards");
        }
        let file = ServerFile::open(&self.file)?;
        if let Some(log) = file.log() {
            note(&format!(
                "note: {} is there: the server still runs, or it was killed. What it writes from now on is not brought",
                log.display()
            ));
        }
        let keys = self.keys(&file, &layered)?;
        if self.check {
            let plan = self.plan(&file, &keys)?;
            return say(&format!("all of this can be brought:\n{}", plan.ledger));
        }
        self.import(&file, &layered, &keys)
    }

    /// Nothing is written here: the file may be refused.
    fn keys(&self, file: &ServerFile, settings: &Layered) -> Result<ImportKeys> {
        let (node, fresh) = match settings.auth()? {
            Auth::Open => (None, false),
            Auth::KeyFile(file) => match ApiKey::read(&file)? {
                Some(key) => (Some(key), false),
                None => (Some(ApiKey::draw()?), true),
            },
        };
        let minted = file.keys()?.into_iter().flatten().map(|key| key.text).collect();
        let beside = self.file.canonicalize().ok().map(|file| file.with_file_name("auth.key"));
        let standard: Vec<PathBuf> = beside.into_iter().chain(standard_key_file().ok()).collect();
        let named = self.server_key_file.as_deref();
        let server = server_key(named, &standard, &minted, &mut |text| note(text))?;
        Ok(ImportKeys { node, fresh, server })
    }

    fn import(&self, file: &ServerFile, settings: &Layered, keys: &ImportKeys) -> Result<()> {
        let data_dir = settings.data_dir()?;
        let digest = file.digest()?.to_text();
        // A refused file leaves nothing: the target is made when all was looked at.
        let there = if is_there(&data_dir) { Some(open(&data_dir)?) } else { None };
        if let Some(journal) = there.as_ref().and_then(|target| target.journal.as_ref()) {
            if journal.file != digest {
                bail!(
                    "--data-dir {}: another file was imported here, or this one before it was changed: import it \
                     into a fresh directory",
                    data_dir.display()
                );
            }
            if journal.done {
                return say("all of this file was imported before: nothing to do");
            }
        }
        let choices = self.choices(keys).to_text();
        let fresh = Journal { file: digest, choices: choices.clone(), written: 0, done: false };
        let journal = there.as_ref().and_then(|target| target.journal.clone()).unwrap_or(fresh);
        if journal.choices != choices {
            bail!(
                "this import was begun with other flags or another key: go on with those, or start in a fresh --data-dir"
            );
        }
        let plan = self.plan(file, keys)?;
        self.still(file)?;
        note(&format!("to be brought:\n{}", plan.ledger));
        let name = settings.name()?;
        let mut target = Self::make(settings, keys, there, &data_dir)?;
        target.name = name;
        self.write(file, &plan, target, journal)?;
        let moved = match (keys.server_print(), settings.auth()?) {
            (Some(_), Auth::KeyFile(file)) => format!(
                "agents that used the server's own key need this node's from now on: the one in {}\n",
                file.display()
            ),
            (Some(_), Auth::Open) | (None, _) => String::new(),
        };
        say(&format!("imported:\n{}{moved}start the node: {}", plan.ledger, self.up()))
    }

    /// The node's key, if it is a new one, and its directory; or nothing.
    fn make(
        settings: &Layered,
        keys: &ImportKeys,
        there: Option<Target>,
        data_dir: &Path,
    ) -> Result<Target> {
        let mut traces = Vec::new();
        let made = (|| {
            if let (Auth::KeyFile(file), Some(key), true) =
                (settings.auth()?, &keys.node, keys.fresh)
            {
                traces.push(Trace::of(&file));
                key.keep(&file)?;
            }
            traces.push(Trace::of(data_dir));
            there.map_or_else(|| open(data_dir), Ok)
        })();
        if made.is_err() {
            traces.iter().for_each(Trace::remove);
        }
        made
    }

    fn write(
        &self,
        file: &ServerFile,
        plan: &Plan,
        mut target: Target,
        journal: Journal,
    ) -> Result<()> {
        let mut line = Line::new("importing");
        let things = plan.things();
        let progress = &mut |written| {
            line.tell(written, things);
            ControlFlow::Continue(())
        };
        let watch = Watch { progress, sound: &|| self.still(file) };
        let done = bring(file, plan, &mut target, journal, watch);
        line.end();
        if done.is_err() {
            // A failure that follows from a file that was written to is not this node's fault.
            self.still(file)?;
        }
        match done? {
            Brought::All => Ok(()),
            Brought::Stopped => bail!("not all was brought: run it again, and it goes on"),
        }
    }

    /// How the node is started that it was brought into.
    fn up(&self) -> String {
        let mut line = "clawmeshd up".to_owned();
        let mut flag = |name: &str, value: Option<&Path>| {
            if let Some(value) = value {
                line += &format!(" --{name} {}", quoted(&value.display().to_string()));
            }
        };
        flag("data-dir", self.data_dir.as_deref());
        flag("key-file", self.key_file.as_deref());
        flag("name", self.name.as_deref().map(Path::new));
        flag("config", self.config.as_deref());
        line
    }

    fn choices(&self, keys: &ImportKeys) -> Choices {
        Choices {
            open_votes: match (self.skip_open_votes, self.close_open_votes) {
                (true, _) => OpenVotes::Skip,
                (false, true) => OpenVotes::Close,
                (false, false) => OpenVotes::Refuse,
            },
            private_to_own_key: self.private_to_own_key,
            rename_rooms: self.rename_rooms,
            skip_refused: self.skip_refused,
            own: keys.own_print(),
            server: keys.server_print(),
        }
    }

    /// The plan of all rows; an error if any of them cannot be brought.
    fn plan(&self, file: &ServerFile, keys: &ImportKeys) -> Result<Plan> {
        let mut line = Line::new("looking at");
        let looked = plan_of(file, self.choices(keys), keys.texts(), &mut |seen, all| {
            line.tell(seen, all);
        });
        line.end();
        let (plan, refusals) = looked?;
        if !refusals.is_empty() {
            note(&plan.ledger.to_string());
            note(refusals.to_string().trim_end());
            bail!(
                "{}: the above cannot be brought; nothing was written. --skip-refused leaves it out",
                self.file.display()
            );
        }
        Ok(plan)
    }

    /// The server must not run meanwhile: its later writes are not brought.
    fn still(&self, file: &ServerFile) -> Result<()> {
        let changed = file.has_changed().context("look whether the file has changed")?;
        if changed {
            bail!(
                "{}: somebody writes to it: stop the ClawChat server, and import into a fresh --data-dir",
                self.file.display()
            );
        }
        Ok(())
    }
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How far it is, on stderr: one line that changes, or one every so often.
struct Line {
    what: &'static str,
    terminal: bool,
    last: Option<Instant>,
    /// How far it is, where that was not written.
    untold: Option<(u64, u64)>,
}

impl Line {
    fn new(what: &'static str) -> Line {
        Line { what, terminal: io::stderr().is_terminal(), last: None, untold: None }
    }

    fn tell(&mut self, done: u64, all: u64) {
        if self.terminal {
            // Nobody may be there.
            drop(write!(io::stderr(), "\r{}\x1b[K", self.text(done, all)));
            self.last = Some(Instant::now());
        } else if self.last.is_none_or(|last| last.elapsed() >= TOLD_EVERY) {
            note(&self.text(done, all));
            (self.last, self.untold) = (Some(Instant::now()), None);
        } else {
            self.untold = Some((done, all));
        }
    }

    fn text(&self, done: u64, all: u64) -> String {
        let share = done.saturating_mul(100) / all.max(1);
        format!("{} {done} of {all} ({share} %)", self.what)
    }

    /// How far it got is the last that is written.
    fn end(&self) {
        if self.terminal && self.last.is_some() {
            note("");
        }
        if let Some((done, all)) = self.untold {
            note(&self.text(done, all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one() {
        for (text, word) in [
            ("/var/lib/clawmesh", "/var/lib/clawmesh"),
            ("it's here", r"'it'\''s here'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}

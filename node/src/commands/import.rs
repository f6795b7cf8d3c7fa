//! `clawmeshd import`.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use import::ServerFile;
use mesh::id::KeyPrint;

use super::{Layer, Layered, layered, log_to_stderr, note, say};
use crate::{
    files::ApiKey,
    import::{Brought, Choices, Journal, Plan, bring, open},
    settings::Auth,
};

/// How often a line of progress is written where nobody can see one change.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Bring the rooms, messages, votes and tasks of a ClawChat server into a new node.
///
/// FILE is the server's SQLite database (clawchat.db, of ClawChat 0.3). Stop the server first; the file is
/// not changed. The node must be new: rooms keep their ids and messages their numbers, so clients go on
/// with their cursors and room keys. What cannot be brought is said before anything is written. Run it
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
    /// What people call the node [default: the machine's name]
    #[arg(long)]
    name: Option<String>,
    /// A TOML file of settings, named as the flags of `clawmeshd up`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave out votes that are still open, instead of refusing the file
    #[arg(long)]
    skip_open_votes: bool,
    /// Make private rooms whose key is not known private to the node's own key, instead of refusing the
    /// file
    #[arg(long)]
    private_to_own_key: bool,
    /// Only say what cannot be brought
    #[arg(long)]
    check: bool,
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
        if self.check {
            return self.only_check(&file, &layered);
        }
        self.import(&file, &layered)
    }

    fn only_check(&self, file: &ServerFile, settings: &Layered) -> Result<()> {
        let own = match settings.auth()? {
            Auth::Open => None,
            Auth::KeyFile(file) => ApiKey::read(&file)?,
        };
        let plan = self.plan(file, own.as_ref())?;
        say(&format!("all of it can be brought: {}", told(&plan)))
    }

    fn import(&self, file: &ServerFile, settings: &Layered) -> Result<()> {
        let data_dir = settings.data_dir()?;
        let mut target = open(&data_dir)?;
        let digest = file.digest()?.to_text();
        if let Some(journal) = &target.journal {
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
        let own = match settings.auth()? {
            Auth::Open => None,
            Auth::KeyFile(file) => Some(match ApiKey::read(&file)? {
                Some(key) => key,
                None => ApiKey::make(&file)?,
            }),
        };
        let plan = self.plan(file, own.as_ref())?;
        self.still(file)?;
        let choices = self.choices(own.as_ref()).to_text();
        let fresh = Journal { file: digest, choices: choices.clone(), written: 0, done: false };
        let journal = target.journal.clone().unwrap_or(fresh);
        if journal.choices != choices {
            bail!(
                "this import was begun with other flags or another key: go on with those, or start in a fresh --data-dir"
            );
        }
        let mut line = Line::new("importing");
        let things = plan.things();
        let done = bring((file, &plan), (&mut target, settings.name()?), journal, &mut |written| {
            line.tell(written, things);
            ControlFlow::Continue(())
        });
        line.end();
        if done? == Brought::Stopped {
            bail!("not all was brought: run it again, and it goes on");
        }
        self.still(file)?;
        say(&format!("imported {}\nstart the node: clawmeshd up", told(&plan)))
    }

    fn choices(&self, own: Option<&ApiKey>) -> Choices {
        Choices {
            skip_open_votes: self.skip_open_votes,
            private_to_own_key: self.private_to_own_key,
            own: own.map_or(KeyPrint::OPEN, |key| KeyPrint::of(key.text())),
        }
    }

    /// What is to be written; an error if anything cannot be.
    fn plan(&self, file: &ServerFile, own: Option<&ApiKey>) -> Result<Plan> {
        let mut line = Line::new("looking at");
        let looked = Plan::of(file, self.choices(own), own.map(ApiKey::text), &mut |seen, all| {
            line.tell(seen, all.messages);
        });
        line.end();
        let (plan, refusals) = looked?;
        for it in &plan.notes {
            note(&format!("note: {it}"));
        }
        if !refusals.is_empty() {
            note(refusals.to_string().trim_end());
            bail!("{}: the above cannot be brought; nothing was written", self.file.display());
        }
        Ok(plan)
    }

    /// The server must not run meanwhile: what it writes is not brought.
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

fn told(plan: &Plan) -> String {
    format!(
        "{} messages, {} rooms besides the lobby, {} votes, {} tasks, {} keys",
        plan.messages,
        plan.rooms.len(),
        plan.votes.len(),
        plan.tasks.len(),
        plan.keys.len()
    )
}

/// How far it is, on stderr: one line that changes, or one every so often.
struct Line {
    what: &'static str,
    terminal: bool,
    last: Option<Instant>,
}

impl Line {
    fn new(what: &'static str) -> Line {
        Line { what, terminal: io::stderr().is_terminal(), last: None }
    }

    fn tell(&mut self, done: u64, all: u64) {
        let what = self.what;
        let share = done.saturating_mul(100) / all.max(1);
        if self.terminal {
            // Nobody may be there.
            drop(write!(io::stderr(), "\r{what} {done} of {all} ({share} %)\x1b[K"));
            self.last = Some(Instant::now());
        } else if self.last.is_none_or(|last| last.elapsed() >= TOLD_EVERY) {
            note(&format!("{what} {done} of {all} ({share} %)"));
            self.last = Some(Instant::now());
        }
    }

    fn end(&self) {
        if self.terminal && self.last.is_some() {
            note("");
        }
    }
}

//! `clawmesh attach`: an agent host is set up in one command, beside what its configuration has already. `detach` takes out
//! exactly what was written.
//!
//! One file for each host says what is written, and with which versions it was tried: `claude`, `codex`, `openclaw`,
//! `opencode`, `gemini`, `copilot`, `cursor`, `shell`. Below them: `change` (changes of files, planned as a whole before the first is made), `record`,
//! `files`, and the pure `json`, `spans` and `toml`, which put text into text.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use self::change::Change;
use self::host::Host;
use self::program::Program;
use self::record::{Record, Records};
use self::setup::{Place, Setup};
use crate::context::Context;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::tools::{self, Tools};
use crate::{format, table};

mod change;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod files;
mod gemini;
mod host;
mod json;
mod openclaw;
mod opencode;
mod program;
mod record;
mod setup;
mod shell;
mod spans;
mod toml;

/// Set an agent host up, so that its agents have the tools of the mesh and hear of messages
///
/// Writes beside what the host's configuration has, and never over it: shows what is written where, asks, keeps a backup, and
/// tries it. Given again it changes nothing. `clawmesh detach HOST` takes out exactly what was written.
#[derive(Debug, clap::Args)]
pub struct Attach {
    #[command(flatten)]
    operator: Operator,
    /// The host; shell for a loop of your own
    #[arg(value_enum, required_unless_present = "list")]
    host: Option<Host>,
    /// For the project in this directory alone [default: for all of yours]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Say what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Say which hosts are here and attached, and how they hear of messages
    #[arg(long, conflicts_with_all = ["host", "project", "print", "yes"])]
    list: bool,
}

/// Take out of a host's configuration what `attach` wrote, and nothing else
#[derive(Debug, clap::Args)]
pub struct Detach {
    /// The host
    #[arg(value_enum)]
    host: Host,
    /// Of the project in this directory alone [default: everything]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// How its agents hear of messages.
fn woken(host: Host) -> &'static str {
    match host {
        Host::Claude => claude::WOKEN,
        Host::Codex => codex::WOKEN,
        Host::Openclaw => openclaw::WOKEN,
        Host::Opencode => opencode::WOKEN,
        Host::Gemini => gemini::WOKEN,
        Host::Copilot => copilot::WOKEN,
        Host::Cursor => cursor::WOKEN,
        Host::Shell => shell::WOKEN,
    }
}

pub(crate) async fn run(cx: &Context, args: Attach) -> Result<Outcome, Failure> {
    let Some(host) = args.host else { return list(cx) };
    if cx.is_held() {
        return Err(Failure::NotInShell);
    }
    if args.project.is_some() && !host.has_projects() {
        let why =
            format!("{} has one configuration for all projects: leave --project out", host.name());
        return Err(Failure::Attach { why });
    }
    let node = args.operator.clients_way(&cx.node)?;
    // Of the node in the directory that is named its key, too.
    let mut cx_of = Context::new(cx.node.clone());
    cx_of.node.key_file = node.key_file;
    let cx = &cx_of;
    let project = args.project.as_deref().map(project_of).transpose()?;
    let program = Program::find(cx, &args.operator)?;
    if host == Host::Shell {
        return shell::print(cx, &program);
    }
    let place = Place { home: crate::context::home()?, project, program };
    let (place, setup) = setup(host, place);
    let records = Records::open()?;
    let project = place.project.as_deref();
    let planned =
        setup.pieces.iter().map(|piece| change::putting(&records, (host, project), piece));
    let changes: Vec<Change> =
        planned.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    if args.print {
        show(cx, &changes, '+')?;
        return said(cx, host, &changes, None);
    }
    answers(cx, &args.operator).await?;
    if !changes.is_empty() {
        show(cx, &changes, '+')?;
        confirmed(cx, args.yes, "Write this?")?;
    }
    // A reader that has enough ends no change in its middle.
    let backups = changes.iter().map(|change| Ok((&change.shown, change.put_in(&records)?)));
    let backups: Vec<_> = backups.collect::<Result<_, Failure>>()?;
    for (file, backup) in backups.iter().filter_map(|(file, backup)| Some((file, backup.as_ref()?)))
    {
        told(cx, &format!("{}: its backup is {}", file.display(), backup.display()))?;
    }
    if changes.is_empty() {
        told(cx, &format!("{} is attached already: nothing changed", host.name()))?;
    }
    let folder = project.map_or_else(std::env::current_dir, |project| Ok(project.to_owned()));
    let folder = folder.map_err(|source| Failure::Runtime { source })?;
    let tried = place.program.try_out(&folder)?;
    let (agent, node) = (format::name(&tried.agent), format::name(&tried.node));
    told(cx, &format!("tried: {} tools, agent {agent} at node {node}", tried.tools))?;
    setup.then.iter().try_for_each(|line| told(cx, &line.replace("AGENT_ID", &agent)))?;
    said(cx, host, &changes, Some(&agent))
}

pub(crate) fn run_detach(cx: &Context, args: &Detach) -> Result<Outcome, Failure> {
    let project = args.project.as_deref().map(project_of).transpose()?;
    let records = Records::open()?;
    let is_meant = |record: &Record| {
        record.host == args.host && (project.is_none() || record.project == project)
    };
    let meant = records.all()?.into_iter().filter(is_meant);
    let changes: Vec<Change> = meant.map(change::taking).collect::<Result<_, _>>()?;
    if changes.is_empty() {
        told(cx, &format!("{} is not attached: nothing changed", args.host.name()))?;
        return said(cx, args.host, &changes, None);
    }
    show(cx, &changes, '-')?;
    for change in &changes {
        for left in &change.left {
            let file = change.shown.display();
            let why = "is not there as it was written: what is left of it is yours to delete";
            cx.output.note(&format!("clawmesh: {file}: {left} {why}"))?;
        }
    }
    confirmed(cx, args.yes, "Take this out?")?;
    changes.iter().try_for_each(|change| change.take_out(&records))?;
    told(cx, &format!("{} is detached", args.host.name()))?;
    said(cx, args.host, &changes, None)
}

fn setup(host: Host, mut place: Place) -> (Place, Setup) {
    if matches!(host, Host::Openclaw | Host::Cursor) {
        let folder = place.project.as_ref().unwrap_or(&place.home);
        place.program = place.program.named(host.name(), folder);
    }
    let setup = match host {
        Host::Claude => claude::setup(&place),
        Host::Codex => codex::setup(&place),
        Host::Openclaw => openclaw::setup(&place),
        Host::Opencode => opencode::setup(&place),
        Host::Gemini => gemini::setup(&place),
        Host::Copilot => copilot::setup(&place),
        Host::Cursor => cursor::setup(&place),
        Host::Shell => Setup { pieces: Vec::new(), then: Vec::new() },
    };
    (place, setup)
}

/// The folder of a project, by its one name.
fn project_of(folder: &Path) -> Result<PathBuf, Failure> {
    let found = folder.canonicalize();
    found.map_err(|source| Failure::File { path: folder.to_owned(), source })
}

/// Whether a node is there and takes the key: before anything is written.
async fn answers(cx: &Context, operator: &Operator) -> Result<(), Failure> {
    if tools::nodes(cx, operator)?.is_empty() {
        return Err(Failure::NoToolNode);
    }
    let asked = json!({"limit": 1});
    let answer = Tools::new(cx, operator).call("agents_list", asked, Duration::ZERO).await?;
    match answer["error"].as_str() {
        Some(why) => Err(Failure::Refused { why: format::name(why) }),
        None => Ok(()),
    }
}

/// Says which text comes where, or goes. Nothing else of the files: there are keys in them.
fn show(cx: &Context, changes: &[Change], sign: char) -> Result<(), Failure> {
    for change in changes {
        let at = match (sign, change.line()) {
            ('+', Some(line)) => format!(" (before line {line})"),
            ('+', None) => " (a new file)".to_owned(),
            _ => String::new(),
        };
        let to = change.elsewhere().map(|file| format!(" -> {}", file.display()));
        told(cx, &format!("{}{}{at}", change.shown.display(), to.unwrap_or_default()))?;
        let lines = change.texts().into_iter().flat_map(str::lines);
        lines.map(|line| format!("{sign} {line}")).try_for_each(|line| told(cx, &line))?;
    }
    Ok(())
}

/// For people alone.
fn told(cx: &Context, line: &str) -> Result<(), Failure> {
    if cx.output.is_json() { Ok(()) } else { Ok(cx.output.line(line)?) }
}

/// For programs alone.
fn said(
    cx: &Context,
    host: Host,
    changes: &[Change],
    agent: Option<&str>,
) -> Result<Outcome, Failure> {
    if cx.output.is_json() {
        let changed = changes.iter().map(
            |change| json!({"file": change.shown.display().to_string(), "texts": change.texts()}),
        );
        let changed: Vec<Value> = changed.collect();
        cx.output.object(&json!({"host": host.name(), "changed": changed, "agentId": agent}))?;
    }
    Ok(Outcome::Done)
}

fn confirmed(cx: &Context, yes: bool, question: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let no = |why: &str| Err(Failure::Attach { why: why.to_owned() });
    if !std::io::stdin().is_terminal() {
        return no("there is no terminal to ask: give --yes to write, or look first with --print");
    }
    cx.output.note(&format!("{question} [y/N]"))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::Input)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        no("nothing was written")
    }
}

/// Which hosts are here, which are attached, and how they hear of messages.
fn list(cx: &Context) -> Result<Outcome, Failure> {
    let records = Records::open()?.all()?;
    let rows = Host::ALL.map(|host| Row::of(host, &records));
    let all: Vec<Value> = rows.iter().map(Row::json).collect();
    cx.output.show(&json!({ "hosts": all }), || {
        let cells = rows.iter().map(|row| {
            let here = if row.is_here { "yes" } else { "no" };
            let cells = [row.host.name(), here, &row.attached(), woken(row.host)];
            cells.map(str::to_owned).into()
        });
        table::lines(
            &cx.output,
            &["host", "here", "attached", "hears of messages by"],
            cells.collect(),
        )
    })?;
    Ok(Outcome::Done)
}

/// A host in a list.
struct Row {
    host: Host,
    /// Its program is in `PATH`.
    is_here: bool,
    files: Vec<String>,
    /// It is set up for all projects of its user.
    for_user: bool,
    /// Projects that have a setup of their own.
    projects: BTreeSet<String>,
}

impl Row {
    fn of(host: Host, records: &[Record]) -> Row {
        let records = || records.iter().filter(|record| record.host == host);
        let projects = records().filter_map(|record| record.project.as_ref());
        Row {
            host,
            is_here: program::found(host.program()).is_some(),
            files: records().map(|record| record.file.display().to_string()).collect(),
            for_user: records().any(|record| record.project.is_none()),
            projects: projects.map(|project| project.display().to_string()).collect(),
        }
    }

    /// For whom, in words.
    fn attached(&self) -> String {
        let user = self.for_user.then(|| "for you".to_owned());
        let projects = self.projects.iter().map(|project| format!("in {}", format::name(project)));
        let all: Vec<String> = user.into_iter().chain(projects).collect();
        if all.is_empty() { "no".to_owned() } else { all.join(", ") }
    }

    fn json(&self) -> Value {
        json!({
            "host": self.host.name(),
            "here": self.is_here,
            "attached": self.files,
            "forUser": self.for_user,
            "projects": self.projects,
            "woken": woken(self.host),
        })
    }
}

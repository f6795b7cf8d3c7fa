//! `clawmeshd service`: the node as a service of the system, of this user or of the machine.
//!
//! `unit` writes its file, `manager` speaks to systemd or launchd.

mod manager;
mod unit;

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Parser as _;
use nix::unistd::{Uid, User};

use super::{
    Arguments, Command,
    output::{note, say},
};
use manager::Manager;
use unit::MARK;

/// The user of a service of the machine, as its unit names it.
const USER: &str = "clawmesh";

/// Have the system run this node: when it starts, and again after a crash
#[derive(Debug, clap::Subcommand)]
pub(super) enum Service {
    Install(Install),
    /// Stop the service and remove its file; the node's data stays
    Uninstall(Which),
    /// Say whether it is installed, and how it is; exit code 1: it does not run
    Status(Which),
}

/// Write the service's file, enable the service, and start it
///
/// Flags of `clawmeshd up`, or of `clawmeshd relay`, follow after `--`. Given again, it takes the new ones and starts the
/// service anew. For example: clawmeshd service install -- --listen 0.0.0.0:9231
#[derive(Debug, clap::Args)]
pub(super) struct Install {
    #[command(flatten)]
    which: Which,
    /// Only print the file
    #[arg(long)]
    print: bool,
    /// Run `clawmeshd relay`
    #[arg(long)]
    relay: bool,
    /// Flags of the command; relative paths are of the service's home directory
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Which service.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The one of the machine, under a user `clawmesh` [default: for root]
    #[arg(long)]
    system: bool,
    /// The one of this user [default: for all others]
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// Of which system [default: systemd; launchd on macOS, which nobody has tried yet]
    #[arg(long, value_enum, value_name = "SYSTEM")]
    manager: Option<Manager>,
    /// Where its file is [default: where the system looks]
    #[arg(long, value_name = "DIR")]
    unit_dir: Option<PathBuf>,
}

/// Whose the service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    User,
    Machine,
}

/// A service: whose, and where.
struct Place {
    manager: Manager,
    scope: Scope,
    file: PathBuf,
}

impl Service {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Service::Install(install) => install.run(),
            Service::Uninstall(which) => which.place()?.uninstall(),
            Service::Status(which) => which.place()?.status(),
        }
    }
}

impl Which {
    fn place(&self) -> Result<Place> {
        let manager = self.manager.unwrap_or_default();
        let is_root = Uid::effective().is_root();
        let machine = self.system || (is_root && !self.user && manager == Manager::Systemd);
        let scope = if machine { Scope::Machine } else { Scope::User };
        let dir = match &self.unit_dir {
            Some(dir) => dir.clone(),
            None => manager.directory(scope)?,
        };
        Ok(Place { manager, scope, file: dir.join(manager.file_name()) })
    }
}

impl Install {
    fn run(self) -> Result<()> {
        let place = self.which.place()?;
        let command = if self.relay { "relay" } else { "up" };
        let words: Vec<String> = [command.to_owned()].into_iter().chain(self.flags).collect();
        checked(&words)?;
        let text = place.manager.text(place.scope, &program()?, &words)?;
        if self.print {
            return say(&text);
        }
        place.install(&text)
    }
}

impl Place {
    fn install(&self, text: &str) -> Result<()> {
        self.is_ours_or_missing()?;
        self.manager.is_there(self.scope)?;
        if self.scope == Scope::Machine {
            self.can_serve_the_machine()?;
        }
        write(&self.file, text)?;
        self.manager.start(self.scope, &self.file)?;
        tell_of_variables();
        note(&format!("installed and started: {}", self.file.display()));
        note(self.manager.hints(self.scope));
        Ok(())
    }

    fn uninstall(&self) -> Result<()> {
        ensure!(self.file.exists(), "not installed: there is no {}", self.file.display());
        self.is_ours_or_missing()?;
        self.manager.is_there(self.scope)?;
        self.manager.stop(self.scope)?;
        fs::remove_file(&self.file).with_context(|| format!("remove {}", self.file.display()))?;
        self.manager.forget(self.scope)?;
        note(&format!("stopped and removed: {}. The node's data stays", self.file.display()));
        Ok(())
    }

    fn status(&self) -> Result<()> {
        ensure!(self.file.exists(), "not installed: there is no {}", self.file.display());
        self.manager.is_there(self.scope)?;
        let state = self.manager.state(self.scope)?;
        say(&format!("file     {}\nstate    {}", self.file.display(), state.told))?;
        let log = self.manager.log(self.scope);
        ensure!(state.runs, "the service does not run; its log may say why: {log}");
        Ok(())
    }

    /// A file of that name that somebody else wrote is theirs.
    fn is_ours_or_missing(&self) -> Result<()> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error).with_context(|| format!("read {}", self.file.display()));
            }
        };
        let is_ours = text.contains(MARK);
        ensure!(
            is_ours,
            "{} is not of `clawmeshd service`: it stays as it is",
            self.file.display()
        );
        Ok(())
    }

    /// The unit gives the node a user of its own, which sees no home directory.
    fn can_serve_the_machine(&self) -> Result<()> {
        ensure!(
            Uid::effective().is_root(),
            "only root installs a service of the machine: sudo clawmeshd service install --system; without --system \
             it is a service of your own"
        );
        let program = program()?;
        let hidden = ["/home", "/root", "/tmp", "/run/user"];
        ensure!(
            !hidden.iter().any(|dir| Path::new(&program).starts_with(dir)),
            "a service of the machine cannot see {program}: copy the program to /usr/local/bin, and install from there"
        );
        let known = User::from_name(USER).context("look for the user clawmesh")?;
        if known.is_none() {
            manager::add_user(USER)?;
            note("made a user clawmesh, which the node runs as");
        }
        Ok(())
    }
}

/// A command with flags that it takes, and no secret among them: the file can be read by all.
fn checked(words: &[String]) -> Result<()> {
    let whole = ["clawmeshd"].into_iter().chain(words.iter().map(String::as_str));
    let parsed = Arguments::try_parse_from(whole);
    let parsed = parsed.map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let command = words.first().map_or("", String::as_str);
        anyhow!("`clawmeshd {command}` does not take these flags: {first}")
    })?;
    let is_open = |ticket: &str| !ticket.starts_with('@');
    if let Command::Relay(relay) = &parsed.command {
        ensure!(!relay.ticket().is_some_and(is_open), OPEN_TICKET);
    }
    let flags = words;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let ticket = match word.strip_prefix("--join=") {
            None if word == "--join" => words.next().map(String::as_str),
            other => other,
        };
        ensure!(!ticket.is_some_and(is_open), OPEN_TICKET);
    }
    let has_control = |flag: &&String| flag.chars().any(char::is_control);
    if let Some(flag) = flags.iter().find(has_control) {
        bail!("a flag of a service is one line of text: {flag:?}");
    }
    Ok(())
}

const OPEN_TICKET: &str = "a ticket is a secret, and all users can read the service's file: write it into a file of mode \
                           0600 and give --join @FILE, or of a relay @FILE";

/// This program, where it is for good.
fn program() -> Result<String> {
    let path = env::current_exe().and_then(fs::canonicalize).context("find this program")?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| anyhow!("the path of this program is no text: {}", path.display()))
}

/// Whole, or not there.
fn write(file: &Path, text: &str) -> Result<()> {
    let wanted = || format!("write {}", file.display());
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(wanted)?;
    }
    let new = file.with_extension("new");
    fs::write(&new, text).with_context(wanted)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).with_context(wanted)?;
    fs::rename(&new, file).with_context(wanted)
}

/// Who has set the node up by variables expects the service to have them, too.
fn tell_of_variables() {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours: Vec<String> = names.filter(|name| name.starts_with("CLAWMESH_")).collect();
    if !ours.is_empty() {
        note(&format!("the service does not have the variables of this shell: {}", ours.join(" ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(flags: &[&str]) -> String {
        of("up", flags)
    }

    fn of(command: &str, flags: &[&str]) -> String {
        let words = [command].into_iter().chain(flags.iter().copied());
        let words: Vec<String> = words.map(str::to_owned).collect();
        checked(&words).map_or_else(|error| format!("{error:#}"), |()| "taken".to_owned())
    }

    #[test]
    fn flags_are_those_of_up_and_no_ticket_is_among_them() {
        assert_eq!(
            refusal(&["--listen", "0.0.0.0:9231", "--join", "@/etc/clawmesh/ticket"]),
            "taken"
        );
        assert!(refusal(&["--lisen", "0.0.0.0:9231"]).contains("unexpected argument '--lisen'"));
        assert!(refusal(&["--listen"]).contains("a value is required"));
        for flags in [&["--join", "SECRET"][..], &["--no-http", "--join=SECRET"], &["--join", "-"]]
        {
            assert!(refusal(flags).contains("a ticket is a secret"), "{flags:?}");
        }
        assert_eq!(of("relay", &["@/etc/clawmesh/ticket", "--carry", "1GiB"]), "taken");
        assert!(of("relay", &["SECRET"]).contains("a ticket is a secret"));
        assert!(of("relay", &["--tcp", "127.0.0.1:1"]).contains("`clawmeshd relay` does not take"));
        assert!(refusal(&["--name", "a\nExecStartPre=/bin/sh"]).contains("one line of text"));
    }
}

//! The system's manager of services, asked by its own program.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::Uid;

use super::{
    Scope,
    unit::{self, LABEL},
};

/// A system that runs services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Manager {
    Systemd,
    Launchd,
}

/// How a service is.
pub(super) struct State {
    pub(super) runs: bool,
    pub(super) told: String,
}

/// The unit's name.
const UNIT: &str = "clawmeshd.service";

/// Where systemd says that it runs services.
const USABLE: [&str; 5] = ["running", "degraded", "starting", "initializing", "maintenance"];

impl Default for Manager {
    fn default() -> Manager {
        if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
    }
}

impl Manager {
    pub(super) fn file_name(self) -> String {
        match self {
            Manager::Systemd => UNIT.to_owned(),
            Manager::Launchd => format!("{LABEL}.plist"),
        }
    }

    /// Where the system looks for files of services.
    pub(super) fn directory(self, scope: Scope) -> Result<PathBuf> {
        let home = || etcetera::home_dir().context("find your home directory");
        match (self, scope) {
            (Manager::Systemd, Scope::Machine) => Ok("/etc/systemd/system".into()),
            (Manager::Systemd, Scope::User) => {
                let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
                let settings = match named.filter(|dir| dir.is_absolute()) {
                    Some(dir) => dir,
                    None => home()?.join(".config"),
                };
                Ok(settings.join("systemd/user"))
            }
            (Manager::Launchd, Scope::User) => Ok(home()?.join("Library/LaunchAgents")),
            (Manager::Launchd, Scope::Machine) => {
                bail!("there is no --system for launchd: it is a service of this user alone")
            }
        }
    }

    pub(super) fn text(self, scope: Scope, program: &str, words: &[String]) -> Result<String> {
        match self {
            Manager::Systemd => unit::systemd(scope, program, words),
            Manager::Launchd => Ok(unit::launchd(program, words)),
        }
    }

    /// Nothing is written or removed where the system runs no services.
    pub(super) fn is_there(self, scope: Scope) -> Result<()> {
        match self {
            Manager::Systemd => {
                let output = asked(systemctl(scope).arg("is-system-running"), self)?;
                let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                let words = said(&output);
                ensure!(
                    USABLE.contains(&state.as_str()),
                    "systemd runs no services {} here (systemctl says: {words}); \
                     `clawmeshd service install --print` shows the unit, for another place",
                    scope.of_whom()
                );
                Ok(())
            }
            Manager::Launchd => done(Command::new("launchctl").arg("version"), self),
        }
    }

    /// Starts what the file says, also if it ran with another one.
    pub(super) fn start(self, scope: Scope, file: &Path) -> Result<()> {
        match self {
            Manager::Systemd => {
                done(systemctl(scope).arg("daemon-reload"), self)?;
                done(systemctl(scope).args(["enable", UNIT]), self)?;
                let started = done(systemctl(scope).args(["restart", UNIT]), self);
                started.with_context(|| format!("the node did not start: {}", self.log(scope)))
            }
            Manager::Launchd => {
                // It takes no second one; that there was none is no failure.
                drop(asked(Command::new("launchctl").args(["bootout", &target()]), self)?);
                let domain = domain();
                done(Command::new("launchctl").args(["bootstrap", &domain]).arg(file), self)
            }
        }
    }

    pub(super) fn stop(self, scope: Scope) -> Result<()> {
        match self {
            Manager::Systemd => done(systemctl(scope).args(["disable", "--now", UNIT]), self),
            Manager::Launchd => done(Command::new("launchctl").args(["bootout", &target()]), self),
        }
    }

    /// After the file is gone.
    pub(super) fn forget(self, scope: Scope) -> Result<()> {
        match self {
            Manager::Systemd => done(systemctl(scope).arg("daemon-reload"), self),
            Manager::Launchd => Ok(()),
        }
    }

    pub(super) fn state(self, scope: Scope) -> Result<State> {
        match self {
            Manager::Systemd => {
                let asked_for = "--property=ActiveState,SubState,UnitFileState,StatusText";
                let output = asked(systemctl(scope).args(["show", UNIT, asked_for]), self)?;
                ensure!(output.status.success(), "systemctl show: {}", said(&output));
                Ok(State::of_systemd(&String::from_utf8_lossy(&output.stdout)))
            }
            Manager::Launchd => {
                let output = asked(Command::new("launchctl").args(["print", &target()]), self)?;
                let text = String::from_utf8_lossy(&output.stdout);
                let state = text.lines().find_map(|line| line.trim().strip_prefix("state = "));
                let told = state.unwrap_or("not loaded").to_owned();
                Ok(State { runs: told == "running", told })
            }
        }
    }

    /// The command that shows the service's log.
    pub(super) fn log(self, scope: Scope) -> String {
        match (self, scope) {
            (Manager::Systemd, Scope::User) => "journalctl --user -u clawmeshd -e".to_owned(),
            (Manager::Systemd, Scope::Machine) => "journalctl -u clawmeshd -e".to_owned(),
            (Manager::Launchd, Scope::User | Scope::Machine) => format!("/tmp/{LABEL}.log"),
        }
    }

    /// For the person who has installed it.
    pub(super) fn hints(self, scope: Scope) -> &'static str {
        match (self, scope) {
            (Manager::Systemd, Scope::User) => {
                "settings: ~/.config/clawmesh/clawmeshd.env, a CLAWMESH_ variable in each line. `loginctl enable-linger` \
                 keeps it running while you are not logged in"
            }
            (Manager::Systemd, Scope::Machine) => {
                "settings: /etc/clawmesh/clawmeshd.env, a CLAWMESH_ variable in each line. Members of the group clawmesh \
                 may use the node: docs/operating.md"
            }
            (Manager::Launchd, Scope::User | Scope::Machine) => {
                "nobody has tried this on a Mac yet: `clawmesh rooms list` shows whether the node runs"
            }
        }
    }
}

impl Scope {
    fn of_whom(self) -> &'static str {
        match self {
            Scope::User => "of users",
            Scope::Machine => "of the machine",
        }
    }
}

impl State {
    /// Out of lines `NAME=VALUE`.
    fn of_systemd(text: &str) -> State {
        let value = |name: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
        };
        let (active, below) = (value("ActiveState"), value("SubState"));
        let mut told = format!("{active} ({below}), {}", value("UnitFileState"));
        if !value("StatusText").is_empty() {
            told = format!("{told}: {}", value("StatusText"));
        }
        State { runs: active == "active", told }
    }
}

/// Makes a user of the system who has no shell and no password.
pub(super) fn add_user(name: &str) -> Result<()> {
    let home = "/var/lib/clawmesh";
    let mut command = Command::new("useradd");
    command.args(["--system", "--user-group", "--home-dir", home, "--shell", "/usr/sbin/nologin"]);
    let output = command.arg(name).stdin(Stdio::null()).output();
    let output = output.context("run useradd, to make the user that the node runs as")?;
    ensure!(output.status.success(), "useradd {name}: {}", said(&output));
    Ok(())
}

fn systemctl(scope: Scope) -> Command {
    let mut command = Command::new("systemctl");
    if scope == Scope::User {
        command.arg("--user");
    }
    command
}

/// Services of this user, as launchd names them.
fn domain() -> String {
    format!("gui/{}", Uid::current())
}

fn target() -> String {
    format!("{}/{LABEL}", domain())
}

/// The manager's program may fail; that it is not there is an answer, too.
fn asked(command: &mut Command, manager: Manager) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Ok(output),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no {program} here, so {} runs no services; `clawmeshd service install --print` shows the file, \
             for another place",
            manager.name()
        ),
        Err(error) => Err(error).with_context(|| format!("run {program}")),
    }
}

fn done(command: &mut Command, manager: Manager) -> Result<()> {
    let output = asked(command, manager)?;
    let words = command.get_args().map(|word| word.to_string_lossy());
    let words = words.collect::<Vec<_>>().join(" ");
    let program = command.get_program().to_string_lossy();
    ensure!(output.status.success(), "{program} {words}: {}", said(&output));
    Ok(())
}

/// The words of a program that failed, in one line.
fn said(output: &Output) -> String {
    let both = [&output.stderr, &output.stdout];
    let texts = both.map(|bytes| String::from_utf8_lossy(bytes).trim().replace('\n', " "));
    match texts.into_iter().find(|text| !text.is_empty()) {
        Some(text) => text,
        None => output.status.to_string(),
    }
}

impl Manager {
    fn name(self) -> &'static str {
        match self {
            Manager::Systemd => "systemd",
            Manager::Launchd => "launchd",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_whatever_the_order_of_its_lines() {
        let text = "StatusText=3 nodes, all = well\nUnitFileState=enabled\nActiveState=active\nSubState=running\n";
        let state = State::of_systemd(text);
        assert!(state.runs);
        assert_eq!(state.told, "active (running), enabled: 3 nodes, all = well");
        assert!(!State::of_systemd("ActiveState=failed\nSubState=failed\n").runs);
        assert!(!State::of_systemd("").runs);
    }
}

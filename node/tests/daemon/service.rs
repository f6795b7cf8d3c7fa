//! `clawmeshd service`, with a `systemctl` that only writes down what it is told: no machine's own is touched.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::harness::{clawmeshd, temp};

/// A user's home, and a manager of services.
struct Machine {
    dir: TempDir,
}

/// Says that systemd runs, and what is in `state`; fails at the word in `fails`.
const SYSTEMCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo "$*" >>told
case "$*" in *"$(cat fails)"*) echo "no $*" >&2; exit 1;; esac
case "$*" in
  *is-system-running*) cat running;;
  *show*) cat state;;
esac
"#;

impl Machine {
    fn new() -> Machine {
        let machine = Machine { dir: temp() };
        machine.put("running", "degraded\n");
        machine.put("fails", "nothing fails");
        machine.put("state", "ActiveState=active\nSubState=running\nUnitFileState=enabled\n");
        machine.put("systemctl", SYSTEMCTL);
        // No test makes a user on this machine, wherever its temporary directories are.
        machine.put("useradd", "#!/bin/sh\nexit 1\n");
        for program in ["systemctl", "useradd"] {
            let rights = fs::Permissions::from_mode(0o755);
            fs::set_permissions(machine.bin().join(program), rights).unwrap();
        }
        machine
    }

    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    fn put(&self, file: &str, text: &str) {
        fs::create_dir_all(self.bin()).unwrap();
        fs::write(self.bin().join(file), text).unwrap();
    }

    /// All that systemctl was told since the last time.
    fn told(&self) -> Vec<String> {
        let file = self.bin().join("told");
        let text = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, "").unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn unit(&self) -> PathBuf {
        self.dir.path().join(".config/systemd/user/clawmeshd.service")
    }

    fn service(&self, arguments: &[&str]) -> Command {
        let mut command = clawmeshd(&[&["service"], arguments].concat());
        let path = format!("{}:/usr/bin:/bin", self.bin().display());
        command.env("HOME", self.dir.path()).env("PATH", path);
        command
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.service(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", error(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.service(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", error(&output));
        error(&output)
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_service_of_a_user_is_installed_changed_and_removed() {
    let machine = Machine::new();
    machine.done(&["install", "--user", "--", "--name", "my node"]);
    let text = fs::read_to_string(machine.unit()).unwrap();
    assert!(text.contains(" up --name \"my node\"\n"), "{text}");
    assert_eq!(fs::metadata(machine.unit()).unwrap().permissions().mode() & 0o777, 0o644);
    let expect = [
        "--user is-system-running",
        "--user daemon-reload",
        "--user enable clawmeshd.service",
        "--user restart clawmeshd.service",
    ];
    assert_eq!(machine.told(), expect);
    machine.done(&["install", "--user"]);
    let text = fs::read_to_string(machine.unit()).unwrap();
    assert!(text.contains("clawmeshd up\n"), "the new flags, not the old ones: {text}");
    let state = machine.done(&["status", "--user"]);
    assert!(state.contains("active (running), enabled"), "{state}");
    machine.put("state", "ActiveState=failed\nSubState=failed\nUnitFileState=enabled\n");
    assert!(machine.refused(&["status", "--user"]).contains("journalctl --user -u clawmeshd"));
    machine.told();
    machine.done(&["uninstall", "--user"]);
    assert!(!machine.unit().exists());
    let expect = [
        "--user is-system-running",
        "--user disable --now clawmeshd.service",
        "--user daemon-reload",
    ];
    assert_eq!(machine.told(), expect);
    for gone in ["uninstall", "status"] {
        assert!(machine.refused(&[gone, "--user"]).contains("not installed"), "{gone}");
    }
}

#[test]
fn where_no_systemd_runs_nothing_is_written() {
    let machine = Machine::new();
    machine.put("running", "offline\n");
    let text = machine.refused(&["install", "--user"]);
    assert!(
        text.contains("systemd runs no services of users here") && text.contains("offline"),
        "{text}"
    );
    assert!(!machine.unit().exists());
    let mut none = machine.service(&["install", "--user"]);
    let output = none.env("PATH", "/nowhere").output().unwrap();
    let text = error(&output);
    assert!(text.contains("there is no systemctl here") && text.contains("--print"), "{text}");
    assert!(!machine.unit().exists());
    // Printed it is all the same.
    let mut printed = machine.service(&["install", "--user", "--print", "--", "--no-http"]);
    let output = printed.env("PATH", "/nowhere").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" up --no-http\n") && text.contains("Type=notify"), "{text}");
    assert!(!machine.unit().exists());
}

#[test]
fn a_failure_of_systemd_is_told_in_its_words() {
    let machine = Machine::new();
    machine.put("fails", "restart");
    let text = machine.refused(&["install", "--user"]);
    assert!(text.contains("no --user restart") && text.contains("journalctl"), "{text}");
    machine.put("fails", "disable");
    assert!(machine.refused(&["uninstall", "--user"]).contains("no --user disable"));
    assert!(machine.unit().exists(), "it may still run");
}

#[test]
fn a_unit_of_somebody_else_stays() {
    let machine = Machine::new();
    fs::create_dir_all(machine.unit().parent().unwrap()).unwrap();
    fs::write(machine.unit(), "[Service]\nExecStart=/bin/true\n").unwrap();
    for command in ["install", "uninstall"] {
        let text = machine.refused(&[command, "--user"]);
        assert!(text.contains("is not of `clawmeshd service`"), "{text}");
    }
    let text = fs::read_to_string(machine.unit()).unwrap();
    assert!(text.contains("/bin/true"), "{text}");
    assert!(machine.told().is_empty(), "nothing is stopped");
}

#[test]
fn bad_flags_and_secrets_make_no_service() {
    let machine = Machine::new();
    let text = machine.refused(&["install", "--user", "--", "--lisen", "0.0.0.0:1"]);
    assert!(text.contains("unexpected argument '--lisen'"), "{text}");
    let text = machine.refused(&["install", "--user", "--", "--join", "clawmesh-secret"]);
    assert!(text.contains("--join @FILE") && !text.contains("clawmesh-secret"), "{text}");
    assert!(machine.told().is_empty() && !machine.unit().exists());
}

#[test]
fn a_service_of_the_machine_needs_root_and_a_program_that_it_can_see() {
    let machine = Machine::new();
    let dir = machine.dir.path().join("units");
    let program = Path::new(env!("CARGO_BIN_EXE_clawmeshd"));
    let arguments = ["install", "--system", "--unit-dir", dir.to_str().unwrap()];
    if fs::metadata(machine.dir.path()).map(|dir| is_root(&dir)).unwrap() {
        // A copy where the unit's walls hide it: temporary directories are such a place.
        let copy = machine.dir.path().join("clawmeshd");
        if fs::hard_link(program, &copy).is_err() {
            fs::copy(program, &copy).unwrap();
        }
        let mut command = Command::new(&copy);
        command.env_clear().env("PATH", machine.bin()).env("HOME", machine.dir.path());
        let path = format!("{}:/usr/bin:/bin", machine.bin().display());
        let output = command.arg("service").args(arguments).env("PATH", path).output().unwrap();
        let text = error(&output);
        let hidden = copy.starts_with("/tmp");
        assert!(!hidden || text.contains("copy the program to /usr/local/bin"), "{text}");
    } else {
        assert!(machine.refused(&arguments).contains("only root installs"));
    }
    let printed =
        machine.done(&[&arguments[..], &["--print", "--", "--tcp", "0.0.0.0:9229"]].concat());
    assert!(printed.contains(" up --tcp 0.0.0.0:9229\n") && printed.contains("User=clawmesh\n"));
    assert!(!dir.exists(), "nothing is written");
}

fn is_root(made: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    made.uid() == 0
}

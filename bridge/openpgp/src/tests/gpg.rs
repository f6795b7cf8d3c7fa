//! The system's gpg, with a keyring of its own.

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use super::NOW;

/// One person's gpg. Its agent ends with it.
pub(super) struct Gpg {
    home: TempDir,
    /// What its clock shows.
    pub(super) now: u64,
}

impl Gpg {
    /// None where gpg is not installed: `.ci/run` sees to it that it is.
    pub(super) fn new() -> Option<Gpg> {
        if Command::new("gpg").arg("--version").output().is_err() {
            eprintln!("skipped: there is no gpg here");
            return None;
        }
        // A socket's path must be short.
        let home = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(home.path(), Permissions::from_mode(0o700)).expect("it is ours");
        fs::write(home.path().join("gpg-agent.conf"), "allow-loopback-pinentry\n").expect("a file");
        Some(Gpg { home, now: NOW })
    }

    /// Runs gpg with some input.
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new("gpg");
        command.arg("--homedir").arg(self.home.path());
        command.args([
            "--batch",
            "--yes",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]);
        command
            .args(["--trust-model", "always", "--faked-system-time"])
            .arg(format!("{}!", self.now));
        command.args(arguments).env("LC_ALL", "C");
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("gpg runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // It may write before it has read all, or end before.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&input)));
        let output = child.wait_with_output().expect("gpg ends");
        writer.join().expect("it wrote");
        output
    }

    /// What it printed; it must have ended well.
    pub(super) fn ok(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "gpg {arguments:?}: {said}");
        output.stdout
    }

    /// What it printed, as text.
    pub(super) fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.ok(arguments, b"")).expect("text")
    }

    /// A key as the client's `gpg init` makes it. Returns its fingerprint.
    pub(super) fn init(&self, user_id: &str) -> String {
        self.make(user_id, "ed25519", Some("cv25519"), &[])
    }

    /// A key by these algorithms, with options.
    pub(super) fn make(
        &self,
        user_id: &str,
        algorithm: &str,
        encrypts: Option<&str>,
        options: &[&str],
    ) -> String {
        let make = |rest: &[&str]| drop(self.ok(&[options, rest].concat(), b""));
        make(&["--quick-generate-key", user_id, algorithm, "sign", "never"]);
        let fingerprint = self.last();
        if let Some(encrypts) = encrypts {
            make(&["--quick-add-key", &fingerprint, encrypts, "encr", "never"]);
        }
        fingerprint
    }

    /// The fingerprint of the last primary key of the keyring.
    pub(super) fn last(&self) -> String {
        let listed = self.text(&["--with-colons", "--list-keys"]);
        let after_primary = listed.split("\npub:").last().expect("a key").to_owned();
        let line = after_primary.lines().find(|line| line.starts_with("fpr:")).expect("it has one");
        line.split(':').nth(9).expect("the tenth field").to_owned()
    }

    /// Keys in armor; all, if none is named.
    pub(super) fn export(&self, which: &[&str]) -> String {
        self.text(&[&["--armor", "--export"], which].concat())
    }

    pub(super) fn import(&self, armored: &str) {
        self.ok(&["--import"], armored.as_bytes());
    }

    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// What gpg says of what it does, beside its output.
    pub(super) fn told(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        let mut end = Command::new("gpgconf");
        end.arg("--homedir").arg(self.home.path()).args(["--kill", "all"]);
        drop(end.output());
    }
}

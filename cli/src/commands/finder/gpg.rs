//! GnuPG, the user's own: his secret key is in his keyring, and his agent asks for its passphrase. Nothing else in the product
//! calls it.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::outcome::Failure;

/// A keyring.
#[derive(Debug)]
pub(super) struct Gpg<'a> {
    pub(super) home: &'a Path,
}

/// A key of it whose secret part is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnKey {
    /// Its fingerprint.
    pub(super) id: String,
    pub(super) user_ids: Vec<String>,
}

impl Gpg<'_> {
    /// The keys that can sign here.
    ///
    /// # Errors
    /// [`Failure::Gpg`].
    pub(super) fn own_keys(&self) -> Result<Vec<OwnKey>, Failure> {
        let listed = self.run(&["--with-colons", "--list-secret-keys"], "")?;
        Ok(own_keys(&listed))
    }

    /// The public part of a key, armored.
    ///
    /// # Errors
    /// [`Failure::Gpg`].
    pub(super) fn exported(&self, id: &str) -> Result<String, Failure> {
        self.run(&["--armor", "--export", id], "")
    }

    /// A detached signature, armored.
    ///
    /// # Errors
    /// [`Failure::Gpg`].
    pub(super) fn signed(&self, id: &str, text: &str) -> Result<String, Failure> {
        self.run(&["--armor", "--digest-algo", "SHA512", "--local-user", id, "--detach-sign"], text)
    }

    fn run(&self, arguments: &[&str], stdin: &str) -> Result<String, Failure> {
        let failure = |why: String| Failure::Gpg { why };
        let broken = |error: io::Error| failure(format!("gpg cannot be run: {error}"));
        let mut command = Command::new("gpg");
        command.args(["--no-tty", "--quiet", "--homedir"]).arg(self.home).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(failure("there is no gpg in PATH: install GnuPG 2".to_owned()));
            }
            Err(error) => return Err(broken(error)),
        };
        if let Some(mut pipe) = child.stdin.take() {
            // One that reads nothing says why at its end. The text is shorter than a pipe holds.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output().map_err(broken)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::trim).filter(|line| !line.is_empty());
            let said = said.collect::<Vec<_>>().join("; ");
            return Err(failure(format!("gpg says no: {said}")));
        }
        String::from_utf8(output.stdout).map_err(|_| failure("gpg has written no text".to_owned()))
    }
}

/// The keys in a list with colons: each begins with `sec`, and its fingerprint is the first one that follows.
fn own_keys(listed: &str) -> Vec<OwnKey> {
    let mut keys: Vec<OwnKey> = Vec::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let text = fields.get(9).copied().unwrap_or_default();
        match (fields.first().copied(), keys.last_mut()) {
            (Some("sec"), _) => keys.push(OwnKey { id: String::new(), user_ids: Vec::new() }),
            (Some("fpr"), Some(key)) if key.id.is_empty() => key.id = text.to_owned(),
            (Some("uid"), Some(key)) => key.user_ids.push(text.to_owned()),
            _ => {}
        }
    }
    keys.retain(|key| !key.id.is_empty());
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_are_listed_with_their_user_ids() {
        let listed = "sec:u:255:22:AA:1:::u:::scESC:::+::ed25519:::0:\nfpr:::::::::F1:\ngrp:::::::::G1:\n\
            uid:u::::1::H::Alice <alice-bot@clawfinder.dev>::::::::::0:\nssb:u:255:18:BB:1::::::e:::+::cv25519::\n\
            fpr:::::::::F2:\nsec:u:255:22:CC:1:::u\nfpr:::::::::F3:\nuid:u::::1::H::Bob::\n";
        let key = |id: &str, user_id: &str| OwnKey {
            id: id.to_owned(),
            user_ids: vec![user_id.to_owned()],
        };
        let expected = [key("F1", "Alice <alice-bot@clawfinder.dev>"), key("F3", "Bob")];
        assert_eq!(own_keys(listed), expected);
        assert!(own_keys("").is_empty());
    }
}

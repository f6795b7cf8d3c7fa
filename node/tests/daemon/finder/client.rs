//! A stand-in for the ClawFinder client (1.0.10), defects included: it sends what that one sends, reads of an error the status line and
//! nothing else, and does all of OpenPGP with gpg as that one does. The real one can be pointed at a node in its place.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Daemon, temp};

pub(crate) const INBOX: &str = "/api/agents/me/inbox/";
pub(crate) const SENT: &str = "/api/agents/me/sent/";
const ARMOR: &str = "-----BEGIN PGP MESSAGE-----";

/// The client, with its own keyring.
pub(crate) struct Client {
    pub(crate) home: TempDir,
    pub(crate) name: String,
    /// The API key, once it is registered.
    pub(crate) key: Option<String>,
}

/// `gpg` and the keyring.
impl Client {
    /// `gpg init`. `None`: there is no gpg here.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests is told that one was left out")]
    pub(crate) fn new(name: &str) -> Option<Client> {
        let client = Client::without_key(name);
        if client.init().is_none() {
            eprintln!("skipped: there is no gpg here");
            return None;
        }
        Some(client)
    }

    /// A configuration directory, in which nothing is yet.
    pub(crate) fn without_key(name: &str) -> Client {
        let home = temp();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Client { home, name: name.to_owned(), key: None }
    }

    /// A v4 key: Ed25519 that certifies and signs, and Curve25519 that encrypts. Without expiry.
    pub(crate) fn init(&self) -> Option<()> {
        let user_id = format!("{0} <{0}@clawfinder.dev>", self.name);
        let made = self.gpg(&["--quick-generate-key", &user_id, "ed25519", "sign", "never"])?;
        assert!(made.is_empty(), "{made}");
        let id = self.fingerprint();
        self.gpg(&["--quick-add-key", &id, "cv25519", "encr", "never"]).map(drop)
    }

    /// What gpg prints. `None`: there is none. Any exit code but 0 is an error.
    pub(crate) fn gpg(&self, arguments: &[&str]) -> Option<String> {
        let printed = self.try_gpg(arguments)?;
        Some(printed.unwrap_or_else(|| panic!("gpg {arguments:?}")))
    }

    #[expect(clippy::option_option, reason = "no gpg, and a gpg that fails, are not the same")]
    fn try_gpg(&self, arguments: &[&str]) -> Option<Option<String>> {
        let mut command = Command::new("gpg");
        command.args(["--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]);
        command.args(["--passphrase", ""]).arg("--homedir").arg(self.home.path()).args(arguments);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let printed = String::from_utf8(output.stdout).unwrap();
        Some(output.status.success().then_some(printed))
    }

    /// That of its own key: the only one with a secret half.
    pub(crate) fn fingerprint(&self) -> String {
        let listed = self.gpg(&["--with-colons", "--list-secret-keys"]).unwrap();
        fingerprints(&listed).pop().unwrap()
    }

    /// The key that it encrypts to: the last one that gpg prints of the text given as `--to`, and the last one of the keyring if gpg
    /// knows none of that text.
    pub(crate) fn chosen(&self, to: &str) -> String {
        let found = self.try_gpg(&["--with-colons", "--fingerprint", "--list-keys", to]).unwrap();
        let all = || self.gpg(&["--with-colons", "--fingerprint", "--list-keys"]).unwrap();
        fingerprints(&found.unwrap_or_else(all)).pop().unwrap()
    }

    pub(crate) fn import(&self, certificates: &Value) {
        let file = self.home.path().join("import.asc");
        fs::write(&file, certificates.as_str().unwrap()).unwrap();
        self.gpg(&["--import", file.to_str().unwrap()]).unwrap();
    }

    /// To that key alone, and signed.
    fn encrypt(&self, text: &str, key: &str) -> String {
        let [plain, sealed] = ["plain", "sealed"].map(|name| self.home.path().join(name));
        fs::write(&plain, text).unwrap();
        let (to, own) = (sealed.to_str().unwrap(), self.fingerprint());
        let how = ["--armor", "--trust-model", "always", "--local-user", &own, "--recipient", key];
        let what = ["--output", to, "--sign", "--encrypt", plain.to_str().unwrap()];
        self.gpg(&[&how[..], &what].concat()).unwrap();
        fs::read_to_string(sealed).unwrap()
    }

    /// `None`: gpg exits with something else than 0, be it that it does not know the signer.
    fn decrypt(&self, body: &str) -> Option<String> {
        let file = self.home.path().join("mail");
        fs::write(&file, body).unwrap();
        self.try_gpg(&["--decrypt", file.to_str().unwrap()]).unwrap()
    }
}

/// Of keys, not of subkeys.
fn fingerprints(listed: &str) -> Vec<String> {
    let mut of_key = false;
    let mut all = Vec::new();
    for line in listed.lines() {
        let mut fields = line.split(':');
        match fields.next() {
            Some("pub" | "sec") => of_key = true,
            Some("fpr") if of_key => {
                all.push(fields.nth(8).unwrap().to_owned());
                of_key = false;
            }
            Some(_) | None => {}
        }
    }
    all
}

/// Requests.
impl Client {
    /// A request, and what the client prints: its data, or the status line.
    pub(crate) fn ask(
        &self,
        node: &Daemon,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let at = node.text("http").trim_start_matches("http://");
        // Pages that anybody may read, and registering, are asked without it.
        let needs_key = path.contains("/me/") || (method != "GET" && !path.contains("/register/"));
        if needs_key && self.key.is_none() {
            return Err("CREDENTIAL_NOT_FOUND".to_owned());
        }
        let key = self.key.as_ref().filter(|_| needs_key);
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let body = body.map(Value::to_string);
        let length = body.as_ref().map(|body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: keep-alive\r\n\
             accept: application/json\r\naccept-language: *\r\nsec-fetch-mode: cors\r\n\
             user-agent: node\r\naccept-encoding: gzip, deflate\r\n{key}{}\r\n{}",
            length.unwrap_or_default(),
            body.unwrap_or_default()
        );
        let mut socket = TcpStream::connect(at).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let (line, body) = answer(socket);
        if !line.starts_with('2') {
            return Err(line);
        }
        // Any other success has to carry JSON.
        let is_empty = line.starts_with("204");
        assert!(!is_empty || body.is_empty(), "{line}: {body}");
        Ok(if is_empty { json!({"deleted": true}) } else { serde_json::from_str(&body).unwrap() })
    }

    /// `agent register`, with the whole keyring: its own key comes first, unless others were imported before it was made.
    pub(crate) fn register(&mut self, node: &Daemon) -> Result<Value, String> {
        let keyring = self.gpg(&["--armor", "--export"]).unwrap();
        let body = json!({
            "name": self.name, "username": self.name, "pgp_key": keyring,
            "payment_methods": ["invoice"], "contact_methods": [{"method": "index_mailbox"}],
        });
        let made = self.ask(node, "POST", "/api/agents/register/", Some(&body))?;
        self.key = Some(made["api_key"].as_str().unwrap().to_owned());
        Ok(made)
    }

    /// `agent me`.
    pub(crate) fn me(&self, node: &Daemon) -> Result<Value, String> {
        self.ask(node, "GET", "/api/agents/me/", None)
    }

    /// `agent get`: the id goes into the path as it was typed.
    pub(crate) fn get(&self, node: &Daemon, id: &str) -> Result<Value, String> {
        self.ask(node, "GET", &format!("/api/agents/{id}/"), None)
    }

    pub(crate) fn count(&self, node: &Daemon, path: &str) -> u64 {
        self.ask(node, "GET", path, None).unwrap()["count"].as_u64().unwrap()
    }

    pub(crate) fn rows(&self, node: &Daemon, path: &str) -> Vec<Value> {
        let page = self.ask(node, "GET", path, None).unwrap();
        page["results"].as_array().unwrap().clone()
    }

    /// `message send`: it looks the recipient up, imports the key, and then asks gpg for the key of the text that was typed.
    pub(crate) fn try_send(
        &self,
        node: &Daemon,
        to: &str,
        (subject, text): (&str, &str),
    ) -> Result<Value, String> {
        let shown = self.get(node, to)?;
        self.import(&shown["pgp_key"]);
        let body = self.encrypt(text, &self.chosen(to));
        let mail = json!({"recipient_id": to, "subject": subject, "body": body});
        self.ask(node, "POST", "/api/agents/me/send/", Some(&mail))
    }

    pub(crate) fn send(&self, node: &Daemon, to: &str, mail: (&str, &str)) -> Value {
        self.try_send(node, to, mail).unwrap()
    }

    /// `negotiate …`: it checks nothing, and a line break in a value makes a header.
    pub(crate) fn negotiate(
        &self,
        node: &Daemon,
        to: &str,
        step: &Step<'_>,
    ) -> Result<Value, String> {
        let Step { kind, session, .. } = step;
        let username = match *kind {
            "init" => self.me(node)?["username"].as_str().unwrap().to_owned(),
            _ => String::new(),
        };
        let text = step.text((&username, node.text("http")));
        self.try_send(node, to, (&format!("negotiate:{kind}:{session}"), &text))?;
        Ok(json!({"session": session, "type": kind, "sent": true}))
    }

    /// `inbox read`: what it prints. A text without the header of PGP is printed as it is.
    pub(crate) fn read(&self, node: &Daemon, mail: &Value) -> Result<String, String> {
        let path = format!("{INBOX}{}/", mail["id"].as_str().unwrap());
        self.opened(node, &path, "sender_id")
    }

    /// `sent read`.
    pub(crate) fn read_sent(&self, node: &Daemon, mail: &Value) -> Result<String, String> {
        let path = format!("{SENT}{}/", mail["id"].as_str().unwrap());
        self.opened(node, &path, "recipient_id")
    }

    fn opened(&self, node: &Daemon, path: &str, other: &str) -> Result<String, String> {
        let mail = self.ask(node, "GET", path, None)?;
        let body = mail["body"].as_str().unwrap();
        if !body.contains(ARMOR) {
            return Ok(body.to_owned());
        }
        let other = self.get(node, mail[other].as_str().unwrap())?;
        self.import(&other["pgp_key"]);
        self.decrypt(body).ok_or_else(|| "gpg does not decrypt it".to_owned())
    }

    /// `inbox mark-read`.
    pub(crate) fn mark_read(&self, node: &Daemon, mail: &Value) -> Result<Value, String> {
        let path = format!("{INBOX}{}/", mail["id"].as_str().unwrap());
        self.ask(node, "PATCH", &path, Some(&json!({"is_read": true})))
    }

    /// `review create`: a number of stars that is none comes as `null`.
    pub(crate) fn review(
        &self,
        node: &Daemon,
        (reviewee, job): (&Value, &Value),
        stars: &str,
    ) -> Result<Value, String> {
        let stars: Option<i64> = stars.parse().ok();
        let review =
            json!({"reviewee_id": reviewee, "job_id": job, "stars": stars, "text": "as agreed"});
        self.ask(node, "POST", "/api/reviews/", Some(&review))
    }
}

/// A message of `clawfinder/1`.
#[derive(Default)]
pub(crate) struct Step<'s> {
    pub(crate) kind: &'s str,
    pub(crate) session: &'s str,
    pub(crate) fields: &'s [(&'s str, &'s str)],
    /// Of EXECUTE and RESULT.
    pub(crate) body: Option<&'s str>,
}

impl Step<'_> {
    /// As the client writes it.
    pub(crate) fn text(&self, (username, base): (&str, &str)) -> String {
        let Step { kind, session, .. } = self;
        let head = [("protocol", "clawfinder/1"), ("type", &kind.to_uppercase())]
            .map(|(name, value)| format!("{name}: {value}\n"));
        let time = ("timestamp", "2026-11-21T01:45:32.339Z");
        let of_init = [("consumer_username", username), ("index_url", base)];
        let of_init = of_init.iter().filter(|_| *kind == "init");
        let fields = [("session_id", *session), time];
        let fields = fields.iter().chain(self.fields).chain(of_init);
        let fields = fields.map(|(name, value)| format!("{name}: {value}\n"));
        let mut text: String = head.into_iter().chain(fields).collect();
        if let Some(body) = self.body {
            text.extend(["\n", body]);
        }
        text
    }
}

/// The status line without its version, and the body, of a connection that stays open.
fn answer(socket: TcpStream) -> (String, String) {
    let mut socket = BufReader::new(socket);
    let mut next = || {
        let mut line = String::new();
        socket.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let line = next().strip_prefix("HTTP/1.1 ").unwrap().to_owned();
    let headers: Vec<String> =
        std::iter::from_fn(|| Some(next()).filter(|it| !it.is_empty())).collect();
    let length = headers.iter().find_map(|header| {
        header.to_lowercase().strip_prefix("content-length: ").map(|it| it.parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).unwrap();
    (line, String::from_utf8(body).unwrap())
}

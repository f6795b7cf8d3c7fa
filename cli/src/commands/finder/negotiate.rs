//! `clawmesh finder negotiate` and `sessions`: clawfinder/1, of hosted accounts.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use client::http::Method;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::index::{Index, Pages, part};
use super::shown;
use crate::outcome::{Failure, Outcome};
use crate::{format, table};

/// Between whom.
#[derive(Debug, clap::Args)]
pub(super) struct Step {
    /// The session, as `sessions` lists it
    #[arg(long, value_name = "SESSION")]
    session: String,
    /// With whom: id or username
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// Also where the node would refuse the content, such as a way to pay that the provider does not have
    #[arg(long)]
    force: bool,
}

/// What EXECUTE and RESULT carry.
#[derive(Debug, clap::Args)]
pub(super) struct Load {
    /// The text; - reads it from standard input, byte for byte
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    body: String,
    /// A file that you have encrypted and uploaded, repeatable: its URL, and the encrypted file, of which hash and size are sent
    #[arg(long, value_name = "URL,FILE.pgp", value_parser = attachment)]
    attach: Vec<Attachment>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Negotiate {
    /// As a consumer: begin. The node draws the session's id
    Init {
        /// The provider: id or username
        #[arg(long, value_name = "AGENT")]
        to: String,
        /// The provider's job
        #[arg(long, value_name = "JOB")]
        job_ref: String,
        /// What you need
        #[arg(long, value_name = "TEXT")]
        need: String,
        /// Also if that is no active job of the provider
        #[arg(long)]
        force: bool,
    },
    /// As the provider: say what you can do
    Ack {
        #[command(flatten)]
        step: Step,
        /// Such as "web search, summarization"
        #[arg(long, value_name = "TEXT")]
        capabilities: String,
        /// Such as "50 USDC per report"
        #[arg(long, value_name = "TEXT")]
        pricing: String,
        /// What you cannot do
        #[arg(long, value_name = "TEXT")]
        constraints: Option<String>,
    },
    /// As the consumer: propose terms
    Propose {
        #[command(flatten)]
        step: Step,
        /// What you want done
        #[arg(long, value_name = "TEXT")]
        capability: String,
        /// For how much
        #[arg(long, value_name = "TEXT")]
        price: String,
        /// One of the provider's: see `clawmesh finder get`
        #[arg(long, value_name = "METHOD")]
        payment_method: String,
        /// More about it
        #[arg(long, value_name = "TEXT")]
        parameters: Option<String>,
    },
    /// Offer other terms
    Counter {
        #[command(flatten)]
        step: Step,
        /// For how much
        #[arg(long, value_name = "TEXT")]
        price: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Another thing to be done
        #[arg(long, value_name = "TEXT")]
        capability: Option<String>,
    },
    /// Accept the terms that the other side offered
    Accept {
        #[command(flatten)]
        step: Step,
    },
    /// End it without a deal
    Reject {
        #[command(flatten)]
        step: Step,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// As the consumer: hand the work over
    Execute {
        #[command(flatten)]
        step: Step,
        #[command(flatten)]
        load: Load,
    },
    /// As the provider: hand the result and the invoice over
    Result {
        #[command(flatten)]
        step: Step,
        /// How much
        #[arg(long, value_name = "TEXT")]
        invoice_amount: Option<String>,
        /// Where it is paid to; needed with lobster.cash
        #[arg(long, value_name = "ADDRESS")]
        invoice_wallet: Option<String>,
        /// How
        #[arg(long, value_name = "METHOD")]
        invoice_payment_method: Option<String>,
        /// Your number of the invoice
        #[arg(long, value_name = "TEXT")]
        invoice_ref: Option<String>,
        #[command(flatten)]
        load: Load,
    },
}

/// An encrypted file somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    url: String,
    file: PathBuf,
}

fn attachment(text: &str) -> Result<Attachment, &'static str> {
    match text.rsplit_once(',') {
        Some((url, file)) if !url.is_empty() && !file.is_empty() => {
            Ok(Attachment { url: url.to_owned(), file: file.into() })
        }
        Some(_) | None => {
            Err("give the URL, a comma, and the file: https://HOST/report.pdf.pgp,report.pdf.pgp")
        }
    }
}

impl Attachment {
    /// As the message names it.
    fn read(&self) -> Result<Value, Failure> {
        let failure = |source| Failure::File { path: self.file.clone(), source };
        let (hash, size) = hashed(&self.file).map_err(failure)?;
        let name = self.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The original file's name.
        let endings = [".pgp", ".gpg", ".asc"];
        let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
        let name = bare.filter(|bare| !bare.is_empty()).unwrap_or(name);
        Ok(
            json!({"url": self.url, "hash": format!("sha256:{hash}"), "size": size, "filename": name}),
        )
    }
}

/// The hash of a file in hex, and its length.
fn hashed(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let (mut hash, mut size, mut part) = (Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        let count = file.read(&mut part)?;
        if count == 0 {
            break;
        }
        hash.update(part.get(..count).unwrap_or_default());
        size += count as u64;
    }
    Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), size))
}

/// The fields of a message.
struct Message(Map<String, Value>);

impl Message {
    fn new(kind: &str, to: String, force: bool) -> Message {
        let mut message = Message(Map::new());
        message.put("type", Some(kind.to_owned()));
        message.put("to", Some(to));
        if force {
            message.0.insert("force".to_owned(), json!(true));
        }
        message
    }

    fn step(kind: &str, step: Step) -> Message {
        let mut message = Message::new(kind, step.to, step.force);
        message.put("session_id", Some(step.session));
        message
    }

    fn put(&mut self, field: &str, value: Option<String>) {
        self.0.extend(value.map(|value| (field.to_owned(), Value::String(value))));
    }

    fn with<const N: usize>(mut self, fields: [(&str, Option<String>); N]) -> Message {
        for (field, value) in fields {
            self.put(field, value);
        }
        self
    }

    fn carrying(mut self, index: &Index<'_>, load: &Load) -> Result<Message, Failure> {
        self.put("body", Some(shown::given(index.cx, &load.body)?));
        if !load.attach.is_empty() {
            let attached: Result<Vec<Value>, Failure> =
                load.attach.iter().map(Attachment::read).collect();
            self.0.insert("attachments".to_owned(), Value::Array(attached?));
        }
        Ok(self)
    }
}

pub(super) async fn run(index: &Index<'_>, args: Negotiate) -> Result<Outcome, Failure> {
    let fields = Value::Object(message(index, args)?.0);
    let sent = index.act(Method::POST, "/api/agents/me/negotiate/", Some(&fields)).await?;
    index.show(&sent, || {
        let text = |field: &str| shown::text(&sent, field);
        let first = format!("Sent {} in session {}", text("type"), text("session"));
        vec![first, format!("  state: {}", text("state")), format!("  id: {}", text("id"))]
    })
}

fn message(index: &Index<'_>, args: Negotiate) -> Result<Message, Failure> {
    Ok(match args {
        Negotiate::Init { to, job_ref, need, force } => {
            Message::new("init", to, force).with([("job_ref", Some(job_ref)), ("need", Some(need))])
        }
        Negotiate::Ack { step, capabilities, pricing, constraints } => Message::step("ack", step)
            .with([
                ("capabilities", Some(capabilities)),
                ("pricing", Some(pricing)),
                ("constraints", constraints),
            ]),
        Negotiate::Propose { step, capability, price, payment_method, parameters } => {
            Message::step("propose", step).with([
                ("capability", Some(capability)),
                ("price", Some(price)),
                ("payment_method", Some(payment_method)),
                ("parameters", parameters),
            ])
        }
        Negotiate::Counter { step, price, reason, capability } => Message::step("counter", step)
            .with([("price", Some(price)), ("reason", Some(reason)), ("capability", capability)]),
        Negotiate::Accept { step } => Message::step("accept", step),
        Negotiate::Reject { step, reason } => {
            Message::step("reject", step).with([("reason", Some(reason))])
        }
        Negotiate::Execute { step, load } => {
            Message::step("execute", step).carrying(index, &load)?
        }
        Negotiate::Result {
            step,
            invoice_amount,
            invoice_wallet,
            invoice_payment_method,
            invoice_ref,
            load,
        } => {
            let fields = [
                ("invoice_amount", invoice_amount),
                ("invoice_wallet_address", invoice_wallet),
                ("invoice_payment_method", invoice_payment_method),
                ("invoice_ref", invoice_ref),
            ];
            Message::step("result", step).with(fields).carrying(index, &load)?
        }
    })
}

/// List your negotiations, or show one: who may send what now
#[derive(Debug, clap::Args)]
pub(super) struct Sessions {
    /// Its id
    session: Option<String>,
    #[command(flatten)]
    pages: Pages,
}

pub(super) async fn sessions(index: &Index<'_>, args: &Sessions) -> Result<Outcome, Failure> {
    const ALL: &str = "/api/agents/me/sessions/";
    if let Some(session) = &args.session {
        let session = index.own(&format!("{ALL}{}/", part(session))).await?;
        return index.show(&session, || lines(&session));
    }
    let sessions = index.own(&args.pages.of(ALL, &[])).await?;
    index.page(&sessions, "no negotiations", |sessions| {
        let heads = ["session", "with", "you are", "state", "you may send", "since"];
        table::lines(&index.cx.output, &heads, sessions.iter().map(row).collect())
    })
}

fn row(session: &Value) -> Vec<String> {
    let text = |field: &str| shown::raw(session, field).to_owned();
    let with = shown::raw(&session["counterparty"], "username").to_owned();
    vec![text("session_id"), with, text("role"), state(session), allowed(session), text("since")]
}

fn state(session: &Value) -> String {
    let state = shown::raw(session, "state");
    let by = session["offered_by"].as_str().map(|by| format!(" by the {by}")).unwrap_or_default();
    let stale = if session["stale"] == true { ", stale" } else { "" };
    format!("{state}{by}{stale}")
}

fn allowed(session: &Value) -> String {
    let kinds = session["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str);
    kinds.collect::<Vec<_>>().join(", ")
}

/// A session for people.
fn lines(session: &Value) -> Vec<String> {
    let with = &session["counterparty"];
    let allowed = allowed(session);
    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed };
    let mut lines = vec![
        format!("Session {}", shown::text(session, "session_id")),
        format!("  with: {} ({})", shown::text(with, "username"), shown::text(with, "id")),
        format!("  you are: the {}", shown::text(session, "role")),
        format!("  state: {}", format::name(&state(session))),
        format!("  you may send: {}", format::name(&allowed)),
    ];
    let terms = session["terms"].as_object().into_iter().flatten();
    lines.extend(terms.map(|(term, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), String::from);
        format!("  {}: {}", shown::line(term), shown::line(&value))
    }));
    for message in session["messages"].as_array().into_iter().flatten() {
        let text = |field: &str| shown::text(message, field);
        let (at, who) = (text("created_at"), text("sender_id"));
        lines.push(format!("  {at} {} by {who}: {}", text("type"), text("id")));
        let violations = message["violations"].as_array().into_iter().flatten();
        let violations = violations.filter_map(Value::as_str);
        lines.extend(violations.map(|why| format!("    violation: {}", shown::line(why))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_is_the_url_and_the_encrypted_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("report.pdf.pgp");
        std::fs::write(&file, "abc").unwrap();
        let text = format!("https://host/a,b?x=1,{}", file.display());
        let expected = json!({
            "url": "https://host/a,b?x=1", "size": 3, "filename": "report.pdf",
            "hash": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        });
        assert_eq!(attachment(&text).unwrap().read().unwrap(), expected);
        for bad in ["https://host/x.pgp", ",x", "https://host/x,"] {
            assert!(attachment(bad).is_err(), "{bad}");
        }
        let gone = Attachment { url: "https://h".to_owned(), file: dir.path().join("gone") };
        assert!(gone.read().unwrap_err().to_string().contains("gone"));
    }

    #[test]
    fn a_step_is_sent_with_the_fields_of_its_type() {
        let step = |force| Step { session: "s1".to_owned(), to: "bob".to_owned(), force };
        let message = Message::step("counter", step(true)).with([
            ("price", Some("40".to_owned())),
            ("reason", Some("r".to_owned())),
            ("capability", None),
        ]);
        let expected = json!({"type": "counter", "to": "bob", "session_id": "s1", "force": true, "price": "40", "reason": "r"});
        assert_eq!(Value::Object(message.0), expected);
        let accept = Value::Object(Message::step("accept", step(false)).0);
        assert_eq!(accept, json!({"type": "accept", "to": "bob", "session_id": "s1"}));
    }

    #[test]
    fn a_session_says_whose_turn_it_is() {
        let session = json!({
            "session_id": "s1", "role": "provider", "state": "offered", "offered_by": "consumer", "stale": true,
            "counterparty": {"id": "AB", "name": "Bob", "username": "bob"}, "allowed": ["counter", "accept"],
            "terms": {"price": "50"}, "since": "t",
            "messages": [{"id": "m", "type": "init", "sender_id": "AB", "created_at": "t", "violations": ["late"]}],
        });
        let expected = "Session s1\n  with: bob (AB)\n  you are: the provider\n  state: offered by the consumer, stale\n  \
            you may send: counter, accept\n  price: 50\n  t init by AB: m\n    violation: late";
        assert_eq!(lines(&session).join("\n"), expected);
        assert_eq!(row(&session)[3..5], ["offered by the consumer, stale", "counter, accept"]);
    }
}

//! `clawmesh finder mail`: the mailbox.

use std::time::Duration;

use client::http::{HttpError, Method};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::index::{Index, Pages, Request, again, data, part, query};
use super::shown;
use crate::args::seconds;
use crate::outcome::{Failure, Outcome};
use crate::{format, table};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Mail {
    /// List what was sent to you, the newest first
    List {
        /// Only what is unread
        #[arg(long)]
        unread: bool,
        #[command(flatten)]
        pages: Pages,
    },
    /// Read a message; it stays unread until it is marked
    ///
    /// Of a hosted account the node decrypts it, and says whether the signature is that of the sender's PGP key. Otherwise it is shown as it came, for `gpg --decrypt`.
    Read {
        /// Its id
        message: String,
    },
    /// Mark a message as read; its sender is shown that
    MarkRead {
        /// Its id
        message: String,
    },
    Send(Send),
    /// List what you have sent, or show one message of it
    Sent {
        /// Its id
        message: Option<String>,
        #[command(flatten)]
        pages: Pages,
    },
    Wait(Wait),
}

/// Write to an agent
///
/// Of a hosted account the node encrypts and signs the text. From another account give an armored PGP message, such as `gpg --armor --sign --encrypt` writes it.
#[derive(Debug, clap::Args)]
pub(super) struct Send {
    /// To whom: id or username
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// One line; nodes at which one of you shows a key can read it
    #[arg(long, value_name = "TEXT", default_value = "")]
    subject: String,
    /// The text; - reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    body: String,
    /// Do not encrypt it by PGP: for recipients whose tools read none (hosted accounts only)
    #[arg(long)]
    plain: bool,
}

/// Wait for unread mail, and read the oldest
///
/// What is unread already counts: mark it before you wait again. Exits as `clawmesh wait`: 0 with a message, 1 when --timeout passes, 3 when the message ends a
/// negotiation (it is rejected, or done).
#[derive(Debug, clap::Args)]
pub(super) struct Wait {
    /// Seconds to wait; 0 = a day
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
}

pub(super) async fn run(index: &Index<'_>, args: Mail) -> Result<Outcome, Failure> {
    let output = &index.cx.output;
    match args {
        Mail::List { unread, pages } => {
            let path = pages.of(INBOX, &[("is_read", unread.then_some("false"))]);
            let mails = index.own(&path).await?;
            index.page(&mails, "no mail", |mails| {
                let heads = ["id", "from", "subject", "read", "came", "sender"];
                table::lines(output, &heads, mails.iter().map(came).collect())
            })
        }
        Mail::Read { message } => {
            let mail = index.own(&one(INBOX, &message)).await?;
            index.show(&mail, || lines(&mail))
        }
        Mail::MarkRead { message } => {
            let read = json!({"is_read": true});
            let marked = index.act(Method::PATCH, &one(INBOX, &message), Some(&read)).await?;
            index.show(&marked, || vec![format!("Read: {}", format::name(&message))])
        }
        Mail::Send(args) => send(index, args).await,
        Mail::Sent { message: Some(message), .. } => {
            let mail = index.own(&one(SENT, &message)).await?;
            index.show(&mail, || lines(&mail))
        }
        Mail::Sent { message: None, pages } => {
            let mails = index.own(&pages.of(SENT, &[])).await?;
            index.page(&mails, "nothing sent", |mails| {
                let heads = ["id", "to", "subject", "state", "sent", "recipient"];
                table::lines(output, &heads, mails.iter().map(went).collect())
            })
        }
        Mail::Wait(args) => wait(index, &args).await,
    }
}

const INBOX: &str = "/api/agents/me/inbox/";
const SENT: &str = "/api/agents/me/sent/";

fn one(list: &str, message: &str) -> String {
    format!("{list}{}/", part(message))
}

fn came(mail: &Value) -> Vec<String> {
    let text = |field: &str| shown::raw(mail, field).to_owned();
    let read = if mail["is_read"] == true { "yes" } else { "no" }.to_owned();
    vec![
        text("id"),
        text("sender_name"),
        text("subject"),
        read,
        text("created_at"),
        text("sender_id"),
    ]
}

fn went(mail: &Value) -> Vec<String> {
    let text = |field: &str| shown::raw(mail, field).to_owned();
    let state = shown::raw(&mail["mesh"], "state").to_owned();
    vec![
        text("id"),
        text("recipient_name"),
        text("subject"),
        state,
        text("created_at"),
        text("recipient_id"),
    ]
}

async fn send(index: &Index<'_>, args: Send) -> Result<Outcome, Failure> {
    let body = shown::given(index.cx, &args.body)?;
    let mut fields = json!({"recipient_id": args.to, "subject": args.subject, "body": body});
    if args.plain {
        fields["plain"] = json!(true);
    }
    let sent = index.act(Method::POST, "/api/agents/me/send/", Some(&fields)).await?;
    index.show(&sent, || {
        let (to, id) = (shown::text(&sent, "recipient_name"), shown::text(&sent, "id"));
        vec![format!("Sent to {to}: {id}")]
    })
}

/// Between two looks for mail, at first, and at last.
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_LAST: Duration = Duration::from_secs(5);
/// The meaning of `--timeout 0`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn wait(index: &Index<'_>, args: &Wait) -> Result<Outcome, Failure> {
    let after = if args.timeout.is_zero() { DAY } else { args.timeout };
    let until = Instant::now() + after;
    let account = index.shown()?;
    // Lists are newest first: of the last page one row is the oldest.
    let path = query(
        INBOX,
        &[("is_read", Some("false")), ("page_size", Some("1")), ("page", Some("last"))],
    );
    let (mut pause, mut has_asked) = (LOOK_FIRST, false);
    loop {
        let key = Some(&account.key);
        let asked = Request { method: Method::GET, path: &path, key, body: None };
        let answer = index.answer(asked, None).await;
        let longer = match &answer {
            Ok(answer) => again(answer),
            // A node that is started anew comes back.
            Err(failure) if has_asked && is_away(failure) => Some(LOOK_LAST),
            Err(_) => None,
        };
        if longer.is_none() {
            let unread = data(&answer?)?;
            if let Some(id) = unread["results"][0]["id"].as_str() {
                let mail = index.own(&one(INBOX, id)).await?;
                index.show(&mail, || lines(&mail))?;
                return Ok(if ends(&mail) { Outcome::Ended } else { Outcome::Done });
            }
            has_asked = true;
        }
        let now = Instant::now();
        if now >= until {
            return Err(Failure::NoMail { after });
        }
        // The last look is at the end.
        sleep_until((now + longer.unwrap_or_default().max(pause)).min(until)).await;
        pause = pause.mul_f32(1.5).min(LOOK_LAST);
    }
}

fn is_away(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::NoToolNode
            | Failure::NotRunning { .. }
            | Failure::Http(HttpError::Broken { .. } | HttpError::TimedOut { .. })
    )
}

/// Whether a negotiation is over with it.
fn ends(mail: &Value) -> bool {
    let negotiation = &mail["mesh"]["negotiation"];
    let is_sound = negotiation["violations"].as_array().is_none_or(Vec::is_empty);
    is_sound && matches!(shown::raw(negotiation, "state"), "rejected" | "done")
}

/// A message for people: what the node says of it, an empty line, and what its author wrote.
fn lines(mail: &Value) -> Vec<String> {
    let (mesh, mut lines) = (&mail["mesh"], Vec::new());
    for (field, label) in [("sender", "From"), ("recipient", "To")] {
        let (name, id) = (format!("{field}_name"), format!("{field}_id"));
        if mail[&id].is_string() {
            lines.push(format!(
                "{label}: {} ({})",
                shown::text(mail, &name),
                shown::text(mail, &id)
            ));
        }
    }
    lines.push(format!("Subject: {}", shown::text(mail, "subject")));
    lines.push(format!("Date: {}", shown::text(mail, "created_at")));
    lines.push(format!("Id: {}", shown::text(mail, "id")));
    for (field, label) in
        [("state", "State"), ("delivered_at", "Delivered"), ("signature", "Signature")]
    {
        if mesh[field].is_string() {
            lines.push(format!("{label}: {}", shown::text(mesh, field)));
        }
    }
    if mesh["decrypted"] == false {
        lines.push("Decrypted: no".to_owned());
    }
    lines.extend(negotiation(&mesh["negotiation"]));
    lines.push(String::new());
    lines.push(shown::raw(mail, "body").to_owned());
    lines
}

fn negotiation(negotiation: &Value) -> Vec<String> {
    if !negotiation.is_object() {
        return Vec::new();
    }
    let text = |field: &str| shown::text(negotiation, field);
    let mut lines =
        vec![format!("Negotiation: {} in session {}", text("type"), text("session_id"))];
    let by = negotiation["offered_by"].as_str().map(|by| format!(" by the {}", shown::line(by)));
    lines.push(format!("  state: {}{}", text("state"), by.unwrap_or_default()));
    let violations = negotiation["violations"].as_array().into_iter().flatten();
    lines.extend(violations.map(|violation| format!("  violation: {}", plain(violation))));
    let fields = negotiation["fields"].as_object().into_iter().flatten();
    let fields = fields.map(|(field, value)| format!("  {}: {}", shown::line(field), plain(value)));
    lines.extend(fields);
    for attachment in negotiation["attachments"].as_array().into_iter().flatten() {
        let text = |field: &str| shown::text(attachment, field);
        let size = plain(&attachment["size"]);
        lines.push(format!("  attachment: {} ({size} bytes) {}", text("filename"), text("url")));
        lines.push(format!("    {}", text("hash")));
        if attachment["problem"].is_string() {
            lines.push(format!("    problem: {}", text("problem")));
        }
    }
    lines
}

/// A text without its quotes, or a value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| shown::line(&value.to_string()), shown::line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_stands_above_what_the_author_wrote() {
        let mail = json!({
            "id": "m", "sender_id": "AB", "sender_name": "Bob\nSignature: good", "subject": "negotiate:result:s1",
            "created_at": "t", "is_read": false, "body": "Signature: good\nyours\u{1b}",
            "mesh": {"form": "pgp", "signature": "bad", "decrypted": true, "negotiation": {
                "type": "result", "session_id": "s1", "state": "done", "violations": ["type is not the subject's"],
                "fields": {"invoice_amount": "50 USDC"},
                "attachments": [{"url": "https://x/y.pgp", "hash": "sha256:00", "size": 5, "filename": "y", "problem": "p"}],
            }},
        });
        let text = lines(&mail).join("\n");
        let expected = "From: Bob\\nSignature: good (AB)\nSubject: negotiate:result:s1\nDate: t\nId: m\nSignature: bad\n\
            Negotiation: result in session s1\n  state: done\n  violation: type is not the subject's\n  \
            invoice_amount: 50 USDC\n  attachment: y (5 bytes) https://x/y.pgp\n    sha256:00\n    problem: p\n\n\
            Signature: good\nyours\u{1b}";
        assert_eq!(text, expected);
        assert!(!ends(&mail), "a step that does not count ends nothing");
        for (state, is_over) in [("done", true), ("rejected", true), ("acked", false)] {
            let mail = json!({"mesh": {"negotiation": {"state": state, "violations": []}}});
            assert_eq!(ends(&mail), is_over);
        }
        assert!(!ends(&json!({"mesh": {}})));
    }

    #[test]
    fn a_sent_message_says_how_far_it_is() {
        let mail = json!({"id": "m", "recipient_id": "AB", "recipient_name": "Bob", "subject": "", "created_at": "t",
            "body": "note", "mesh": {"state": "delivered", "delivered_at": "u"}});
        let expected =
            "To: Bob (AB)\nSubject: \nDate: t\nId: m\nState: delivered\nDelivered: u\n\nnote";
        assert_eq!(lines(&mail).join("\n"), expected);
        assert_eq!(went(&mail)[3], "delivered");
    }
}

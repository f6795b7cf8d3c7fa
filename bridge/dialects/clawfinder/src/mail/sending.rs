//! Sending mail: what is judged before it is taken.

use std::time::Instant;

use axum::http::StatusCode;
use bridge::seam::call::WriteRecords;
use mesh::{
    api::account::RecordWrite,
    limits::{FINDER_LETTER_BYTES_MAX, FINDER_SUBJECT_BYTES_MAX},
    name::id::KeyPrint,
    records::finder::{Envelope, Form, MAILS, Mail, Receipt, ReceiptStep},
    wire::record::{RecordId, Stamp},
};
use openpgp::{Certificate, KeyId, recipients_of};

use super::{plain, showing};
use crate::{
    caller::Caller,
    fields::{Fields, Most, Text},
    hosted::blocking,
    http::{Coming, Done, MailNonce},
    index::{Account, Index, Letter},
    limits::{
        MAILBOX_BYTES_MAX, MAILBOX_MAX, MAILS_PER_DAY, MAILS_PER_MINUTE, UNREAD_OF_ONE_SENDER_MAX,
    },
    negotiation::{
        steps::Step,
        subject::{self, Subject},
    },
    problem::{Answer, Problem},
    registry::{Registry, now_us},
};

/// The beginning of an armored message.
pub(crate) const ARMOR: &str = "-----BEGIN PGP MESSAGE-----";

/// A mail that is to be sent.
pub(crate) struct Outgoing {
    pub(crate) to: Account,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) form: Form,
    /// Its id is made of this, where it must not be sent twice; else of one that is drawn.
    pub(crate) nonce: Option<MailNonce>,
}

/// `POST /api/agents/me/send/`.
pub(crate) async fn send(registry: &Registry, coming: &Coming, mut fields: Fields) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let to = fields.text("recipient_id", Text::required(Most::Chars(256)));
    let subject = fields.text("subject", Text::optional(Most::Bytes(FINDER_SUBJECT_BYTES_MAX)));
    let body = fields.text("body", Text::required(Most::Bytes(usize::MAX)));
    if subject.as_ref().is_some_and(|subject| subject.chars().any(char::is_control)) {
        fields.refuse("subject", "Control characters and line breaks are not allowed.");
    }
    let is_plain = fields.has("plain") && fields.flag("plain", false) == Some(true);
    let (Some(to), Some(text)) = (to, body) else {
        fields.done()?;
        return Err(Problem::of_the_whole("a field that is needed was not given"));
    };
    fields.done()?;
    let subject = subject.unwrap_or_default();
    fits(&text)?;
    let to = recipient(registry, &to)?;
    let key = plain::key_of(registry, &caller).await?;
    let is_armored = text.trim_start().starts_with(ARMOR);
    let (sealed, form) = match key {
        None if is_plain => {
            let text = "plain mail is for hosted accounts; encrypt yours";
            return Err(Problem::field("plain", text));
        }
        Some(_) if is_plain => {
            plain::check(&text)?;
            (text.clone(), Form::Plain)
        }
        Some(key) if !is_armored => {
            (plain::seal(registry, key, &to, text.clone()).await?, Form::Pgp)
        }
        Some(_) | None => {
            is_for(registry, &text, &to).await?;
            (text.clone(), Form::Pgp)
        }
    };
    fits(&sealed)?;
    let outgoing = Outgoing { to, subject, text: sealed, form, nonce: coming.mail_nonce() };
    let letter = deliver(registry, &caller, &outgoing).await?;
    showing::as_sent(registry, &caller, letter, Some(text)).await.map(Done::Created)
}

/// Whether a text is not too large, as it is sent.
pub(crate) fn fits(text: &str) -> Answer<()> {
    if text.len() <= FINDER_LETTER_BYTES_MAX {
        return Ok(());
    }
    let text = format!("the body may have {FINDER_LETTER_BYTES_MAX} bytes; put more into a file");
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text))
}

fn recipient(registry: &Registry, named: &str) -> Answer<Account> {
    let index = registry.index();
    let found = index.find(named).cloned();
    found.ok_or_else(|| Problem::field("recipient_id", "no agent has this id or username"))
}

/// Whether a text is a message, and encrypted to a key of this account: its client may have taken another key.
async fn is_for(registry: &Registry, text: &str, to: &Account) -> Answer<()> {
    let none = || Problem::field("body", "not a PGP message");
    if !text.trim_start().starts_with(ARMOR) {
        return Err(none());
    }
    let armored = text.to_owned();
    let keys = blocking(move || recipients_of(&armored)).await?.map_err(|_| none())?;
    let (first, agent) = (keys.first().copied().ok_or_else(none)?, registry.agent(to.print).await?);
    let agent = agent.ok_or_else(|| Problem::field("recipient_id", "this agent has gone"))?;
    let certificate = Certificate::from_bytes(&agent.profile.certificate);
    let own = certificate.map(|certificate| certificate.recipients()).unwrap_or_default();
    if keys.iter().any(|key| key.is_anonymous() || own.contains(key)) {
        return Ok(());
    }
    let text = format!(
        "encrypted to {first}, which is no key of {}; send --to {}",
        agent.shown_name, to.id
    );
    Err(Problem::field("body", text))
}

/// Whether a message is encrypted to one of these certificates.
pub(crate) fn is_encrypted_to(text: &str, certificates: &[&[u8]]) -> bool {
    let Ok(keys) = recipients_of(text) else { return false };
    let own: Vec<KeyId> = certificates
        .iter()
        .filter_map(|bytes| Certificate::from_bytes(bytes).ok())
        .flat_map(|certificate| certificate.recipients())
        .collect();
    keys.iter().any(|key| own.contains(key))
}

/// Takes a mail. It is durable when this returns, and in the index.
pub(crate) async fn deliver(
    registry: &Registry,
    caller: &Caller,
    outgoing: &Outgoing,
) -> Answer<Letter> {
    let Outgoing { to, subject, text, form, nonce } = outgoing;
    registry.count_mail(caller)?;
    if let Subject::Step(..) = subject::read(subject) {
        // Subjects are opened before others have to wait for it.
        registry.sessions(caller, None).await?;
    }
    let _one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    let nonce = match nonce {
        Some(MailNonce(nonce)) => *nonce,
        None => draw()?,
    };
    if let Some(sent) = registry.index().letters.get(Mail::id_of(caller.print, &nonce)) {
        return Ok(sent);
    }
    let (above, receipt) = match subject::read(subject) {
        Subject::Ordinary => (Stamp::default(), None),
        Subject::Wrong => {
            let text = "not negotiate:TYPE:SESSION: a type is one of eight words, a session 1 to 64 of A-Z a-z 0-9 . _ -";
            return Err(Problem::field("subject", text));
        }
        Subject::Step(step, session) => {
            let (above, _) = registry.may_step(caller, to, (step, session)).await?;
            (above, receipt(caller, to.print, step, session))
        }
    };
    let size = text.len() as u64;
    has_room(&registry.index(), (caller.print, to), size)?;
    let sender = registry.index().live(caller.print).map(|account| account.id);
    let gone = || Problem::no_account("the account of this key is gone");
    let ends = (sender.ok_or_else(gone)?.0, to.id.0);
    let mut envelope = Envelope::new(subject.clone(), *form, ends);
    envelope.receipt = receipt;
    let id = write(registry, caller, (to.print, &envelope, nonce), (text, above)).await?;
    registry.refresh().await?;
    registry.index().letters.get(id).ok_or_else(|| {
        Problem::unavailable("this node cannot do it now; try again, or ask another node")
    })
}

/// The sender's word to the other one that they do business.
fn receipt(caller: &Caller, to: KeyPrint, step: Step, session: &str) -> Option<Receipt> {
    let step = match step {
        Step::Execute => ReceiptStep::Execute,
        Step::Result => ReceiptStep::Result,
        Step::Init | Step::Ack | Step::Propose | Step::Counter | Step::Accept | Step::Reject => {
            return None;
        }
    };
    Receipt::sign(&caller.secret, to, step, session).ok()
}

fn busy() -> Box<Problem> {
    Problem::unavailable("this node cannot do it now; try again in a moment")
}

fn draw() -> Answer<[u8; 16]> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|_| busy())?;
    Ok(nonce)
}

async fn write(
    registry: &Registry,
    caller: &Caller,
    (to, envelope, nonce): (KeyPrint, &Envelope, [u8; 16]),
    (text, above): (&str, Stamp),
) -> Answer<RecordId> {
    let both = registry.between(caller, to).ok_or_else(busy)?;
    let ends = (caller.print, to);
    let mail = both.seal(ends, nonce, envelope);
    let id = mail.id(caller.print);
    let apart = Some(both.seal_text(ends, id, text));
    let write = RecordWrite { apart, ..RecordWrite::new(MAILS.number, id, Some(mail.encode())) };
    let account = caller.secret.clone();
    let write = WriteRecords { account, writes: vec![write], above };
    registry.desk.ask(registry.visitor(), write).await?;
    Ok(id)
}

/// Whether a mailbox takes one more of this size.
fn has_room(index: &Index, (from, to): (KeyPrint, &Account), size: u64) -> Answer<()> {
    let (mut count, mut bytes, mut unread) = (0, size, 0);
    for letter in index.letters.received(to.print) {
        count += 1;
        bytes += u64::from(letter.bytes);
        unread += usize::from(letter.from == from && !index.letters.is_read(&letter));
    }
    let day = now_us().saturating_sub(24 * 3_600 * 1_000_000);
    let sent = index.letters.sent(from).rev();
    let today = sent.take_while(|letter| letter.created >= Stamp::at(day)).count();
    let name = index.shown_name(to);
    if today >= MAILS_PER_DAY {
        let text = format!("at most {MAILS_PER_DAY} mails a day; try again tomorrow");
        return Err(Problem::too_often(&text, 3_600));
    }
    let full = |text: String| Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, text));
    if unread >= UNREAD_OF_ONE_SENDER_MAX {
        return full(format!(
            "{name} has {unread} unread mails of yours, and takes no more than {UNREAD_OF_ONE_SENDER_MAX}; wait until some are read"
        ));
    }
    if count >= MAILBOX_MAX || bytes > MAILBOX_BYTES_MAX {
        let most = MAILBOX_BYTES_MAX >> 20;
        return full(format!(
            "the mailbox of {name} is full: it takes {MAILBOX_MAX} mails and {most} MiB; mail goes after 90 days"
        ));
    }
    Ok(())
}

impl Registry {
    fn count_mail(&self, caller: &Caller) -> Answer<()> {
        let taken = self.mails.take(caller.print, Instant::now());
        taken.map_err(|wait| {
            let text = format!("at most {MAILS_PER_MINUTE} mails a minute; try again in {wait} s");
            Problem::too_often(&text, wait)
        })
    }
}

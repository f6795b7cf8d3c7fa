//! Mail of hosted accounts: the node that is shown their key encrypts, signs, decrypts and verifies for them.

use mesh::records::finder::Form;
use openpgp::{Certificate, Opened as PgpOpened, SecretCertificate, Signed};
use serde_json::{Map, Value, json};

use super::{sending::ARMOR, sessions::Held};
use crate::{
    caller::Caller,
    hosted::{blocking, secret, with_chance},
    index::{Account, Letter},
    negotiation::{
        attachments::Shown,
        fields::{LACKS_PAYMENT, lacks_payment},
        reading::{Message, Read, read},
        steps::{Counted, Step},
        subject::{self, Subject},
    },
    problem::{Answer, Problem},
    registry::{Registry, now_us},
};

/// The secret key of the account that asks. `None`: its client has it.
pub(crate) async fn key_of(
    registry: &Registry,
    caller: &Caller,
) -> Answer<Option<SecretCertificate>> {
    let is_hosted = registry.index().account(caller.print).is_some_and(|own| own.is_hosted);
    if !is_hosted {
        return Ok(None);
    }
    let Some(own) = registry.agent(caller.print).await? else { return Ok(None) };
    secret(registry, caller, &own.profile).await
}

/// The certificates of an account, the current one first.
async fn certificates(
    registry: &Registry,
    of: mesh::name::id::KeyPrint,
) -> Answer<Vec<Certificate>> {
    let agent = registry.agent(of).await?;
    let all = agent.iter().flat_map(|agent| agent.certificates());
    Ok(all.filter_map(|bytes| Certificate::from_bytes(bytes).ok()).collect())
}

/// A text as mail for an account: signed, and encrypted to it and to the sender.
pub(crate) async fn seal(
    registry: &Registry,
    key: SecretCertificate,
    to: &Account,
    text: String,
) -> Answer<String> {
    let gone = || Problem::field("recipient_id", "this agent has gone");
    let certificate =
        certificates(registry, to.print).await?.into_iter().next().ok_or_else(gone)?;
    let sealed = blocking(move || {
        let now = now_us() / 1_000_000;
        let both = [&certificate, key.certificate()];
        with_chance(|chance| key.seal(&both, text.as_bytes(), now, chance))
    });
    sealed.await?.map_err(|problem| Problem::field("body", problem.to_string()))
}

/// Whether a text may go as it is: nobody is to take it for an encrypted one.
pub(crate) fn check(text: &str) -> Answer<()> {
    if text.contains(ARMOR) {
        let why = "plain mail may not contain a PGP message; send that as it is";
        return Err(Problem::field("body", why));
    }
    Ok(())
}

/// A mail as a hosted account reads it.
pub(crate) struct Plain {
    /// `None`: it cannot be decrypted.
    pub(crate) text: Option<String>,
    signature: Option<&'static str>,
}

impl Plain {
    /// Puts it into what a client is shown.
    pub(crate) fn show(&self, armored: &str, shown: &mut Value) {
        match &self.text {
            Some(text) => shown["body"] = json!(text),
            None => {
                let note = "[This message cannot be decrypted: it is for another key, or damaged.]";
                shown["body"] = json!(note);
                shown["mesh"]["pgp"] = json!(armored);
            }
        }
        shown["mesh"]["decrypted"] = json!(self.text.is_some());
        if let Some(signature) = self.signature {
            shown["mesh"]["signature"] = json!(signature);
        }
    }
}

/// Opens a mail for the account whose key this is.
pub(crate) async fn open(
    registry: &Registry,
    key: SecretCertificate,
    letter: &Letter,
    (form, text): (Form, &str),
) -> Answer<Plain> {
    match form {
        // Sealed on its way; what it says has no signature of its own.
        Form::Plain => Ok(Plain { text: Some(text.to_owned()), signature: Some("missing") }),
        Form::Pgp => {
            let signers = certificates(registry, letter.from).await?;
            let text = text.to_owned();
            let opened = blocking(move || key.open(&text, &signers)).await?;
            Ok(match opened {
                Ok(PgpOpened { text, signature }) => Plain {
                    text: Some(String::from_utf8_lossy(&text).into_owned()),
                    signature: Some(word(signature)),
                },
                Err(_) => Plain { text: None, signature: None },
            })
        }
    }
}

fn word(signature: Signed) -> &'static str {
    match signature {
        Signed::Good => "good",
        Signed::Bad => "bad",
        Signed::UnknownKey => "unknown key",
        Signed::Missing => "missing",
    }
}

/// What is inside a message of a negotiation: its fields, its attachments, and what is wrong with it.
pub(crate) fn inside((subject, text): (&str, &str), agreed: Option<&str>, shown: &mut Value) {
    let Subject::Step(step, session) = subject::read(subject) else { return };
    let Some(negotiation) = shown["mesh"]["negotiation"].as_object_mut() else { return };
    let found = match read(text) {
        Read::Ordinary => vec!["there is no clawfinder/1 message in it".to_owned()],
        Read::Malformed(why) => vec![format!("malformed: {why}")],
        Read::Message(message) => {
            negotiation.insert("fields".to_owned(), Value::Object(fields(&message)));
            let attachments = message.attachments();
            if !attachments.is_empty() {
                let attachments = attachments.iter().map(attachment).collect::<Vec<_>>();
                negotiation.insert("attachments".to_owned(), json!(attachments));
            }
            if let Some(body) = &message.body {
                negotiation.insert("body".to_owned(), json!(body));
            }
            let mut found = message.violations(step, session);
            let lacks = |agreed: &str| lacks_payment(agreed, |key| message.value(key));
            if step == Step::Result && agreed.is_some_and(lacks) {
                found.push(LACKS_PAYMENT.to_owned());
            }
            found
        }
    };
    if let Some(Value::Array(violations)) = negotiation.get_mut("violations") {
        violations.extend(found.into_iter().map(Value::from));
    }
}

fn fields(message: &Message) -> Map<String, Value> {
    message.fields.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
}

fn attachment(shown: &Shown) -> Value {
    let Shown { attachment, problem } = shown;
    let mut document = json!({
        "url": attachment.url,
        "hash": attachment.hash,
        "size": attachment.size.parse::<u64>().map_or_else(|_| json!(attachment.size), |bytes| json!(bytes)),
        "filename": attachment.filename,
    });
    if let Some(problem) = problem {
        document["problem"] = json!(problem);
    }
    document
}

/// The message of the last step of one of these kinds that counted in a session, as the account reads it. `None`: there is none
/// that it can read.
pub(crate) async fn last_of(
    registry: &Registry,
    caller: &Caller,
    held: &Held,
    steps: &[Step],
) -> Answer<Option<Message>> {
    let last = held
        .mails()
        .rev()
        .find(|(_, step, counted)| *counted == Counted::Yes && steps.contains(step));
    let Some((letter, ..)) = last else { return Ok(None) };
    let Some(key) = key_of(registry, caller).await? else { return Ok(None) };
    let opened = registry.open(caller, vec![letter]).await?;
    let form = opened.first().and_then(|(_, envelope)| Some(envelope.as_ref()?.form));
    let Some(form) = form else { return Ok(None) };
    // Where nobody who has it is connected, nothing is known of it.
    let Ok(text) = registry.text(caller, &letter).await else { return Ok(None) };
    let plain = open(registry, key, &letter, (form, &text)).await?;
    Ok(plain.text.and_then(|text| match read(&text) {
        Read::Message(message) => Some(message),
        Read::Ordinary | Read::Malformed(_) => None,
    }))
}

/// The way to pay that was agreed in a session, as far as the account can read it.
pub(crate) async fn agreed(
    registry: &Registry,
    caller: &Caller,
    held: Option<&Held>,
) -> Answer<Option<String>> {
    let Some(held) = held else { return Ok(None) };
    let message = last_of(registry, caller, held, &[Step::Propose]).await?;
    Ok(message.and_then(|message| message.value("payment_method").map(str::to_owned)))
}

//! Steps of a negotiation that a node writes for a hosted account.

use mesh::records::finder::Form;
use serde_json::{Value, json};

use super::{plain, sending};
use crate::{
    caller::Caller,
    fields::{Fields, Most, Text},
    http::{Coming, Done},
    index::Account,
    limits::BODY_BYTES_MAX,
    negotiation::{
        attachments::{ATTACHMENTS_MAX, Attachment, PARTS},
        fields::{LACKS_PAYMENT, lacks_payment, of},
        steps::{State, Step},
        subject,
        writing::{Draft, write},
    },
    problem::{Answer, Problem},
    registry::{Registry, now_us},
    shapes, times, usernames,
};

/// A step as a client gives it.
pub(crate) struct Given {
    step: Step,
    to: String,
    session: Option<String>,
    fields: Vec<(&'static str, String)>,
    body: Option<String>,
    attachments: Vec<Attachment>,
    is_forced: bool,
}

impl Given {
    pub(crate) fn read(mut fields: Fields) -> Answer<Given> {
        let word = Text::required(Most::Chars(256));
        let kind = fields.text("type", word);
        let step = kind.as_deref().and_then(Step::read);
        if let Some(kind) = kind.filter(|_| step.is_none()) {
            fields.refuse("type", format!("\"{kind}\" is not a valid choice."));
        }
        let to = fields.text("to", word);
        let session = given(&mut fields, "session_id", word);
        let named = step.map_or(&[][..], of).iter().map(|field| field.key);
        let known: Vec<(&'static str, String)> = named
            .filter_map(|key| {
                let value = given(&mut fields, key, Text::optional(Most::Bytes(BODY_BYTES_MAX)))?;
                Some((key, value))
            })
            .collect();
        let body = given(&mut fields, "body", Text::optional(Most::Bytes(usize::MAX)));
        let attachments = attachments(&mut fields);
        let is_forced = fields.has("force") && fields.flag("force", false) == Some(true);
        let (Some(step), Some(to)) = (step, to) else {
            fields.done()?;
            return Err(Problem::of_the_whole("a field that is needed was not given"));
        };
        if step != Step::Init && session.is_none() {
            fields.refuse("session_id", "This field is required.");
        }
        fields.done()?;
        Ok(Given { step, to, session, fields: known, body, attachments, is_forced })
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// Puts what a node knows itself, where it was not given.
    fn complete(&mut self, key: &'static str, value: impl FnOnce() -> String) {
        if self.value(key).is_none_or(|given| given.trim().is_empty()) {
            self.fields.retain(|(known, _)| *known != key);
            self.fields.push((key, value()));
        }
    }
}

/// A text that may be left out.
fn given(fields: &mut Fields, name: &str, rule: Text) -> Option<String> {
    if fields.has(name) { fields.text(name, rule) } else { None }
}

fn attachments(fields: &mut Fields) -> Vec<Attachment> {
    let list = fields.list("attachments", ATTACHMENTS_MAX).unwrap_or_default();
    let read = |value: &Value| {
        let part = |name: &str| match value.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => String::new(),
        };
        let [url, hash, size, filename] = PARTS.map(part);
        Attachment { url, hash, size, filename }
    };
    list.iter().map(read).collect()
}

/// `POST /api/agents/me/negotiate/`.
pub(crate) async fn step(registry: &Registry, coming: &Coming, fields: Fields) -> Answer<Done> {
    let caller = coming.caller()?.clone();
    let mut given = Given::read(fields)?;
    let no_key = || {
        Problem::forbidden(
            "this account's client has its PGP key, and writes its steps itself; a node does for hosted accounts",
        )
    };
    let key = plain::key_of(registry, &caller).await?.ok_or_else(no_key)?;
    let to = recipient(registry, &given.to)?;
    let session = session_of(&given)?;
    if given.step == Step::Init {
        let own = registry.named(caller.print).map(|own| own.username).unwrap_or_default();
        given.complete("consumer_username", || own);
        given.complete("index_url", || coming.asked().base());
    }
    judge(registry, &caller, &to, (&given, &session)).await?;
    let timestamp = times::to_ms(now_us() / 1_000);
    let draft = Draft {
        step: given.step,
        session: &session,
        timestamp: &timestamp,
        fields: given.fields.iter().map(|(key, value)| (*key, value.as_str())).collect(),
        attachments: given.attachments.clone(),
        body: given.body.as_deref(),
    };
    let text = write(&draft).map_err(|refused| Problem::field(&refused.field, refused.why))?;
    let text = plain::seal(registry, key, &to, text).await?;
    sending::fits(&text)?;
    let name = (to.print, session.clone());
    let subject = subject::write(given.step, &session);
    let outgoing =
        sending::Outgoing { to, subject, text, form: Form::Pgp, nonce: coming.mail_nonce() };
    let letter = sending::deliver(registry, &caller, &outgoing).await?;
    let sessions = registry.sessions(&caller, None).await?;
    let state = sessions.get(&name).and_then(|held| held.state).map(State::name);
    Ok(Done::Created(json!({
        "session": session,
        "type": given.step.lower(),
        "sent": true,
        "id": shapes::uuid(letter.id),
        "state": state,
    })))
}

fn recipient(registry: &Registry, named: &str) -> Answer<Account> {
    let found = registry.index().find(named).cloned();
    found.ok_or_else(|| Problem::field("to", "no agent has this id or username"))
}

/// The session that is named, or a new one.
fn session_of(given: &Given) -> Answer<String> {
    let session = match &given.session {
        Some(session) => session.clone(),
        None => usernames::draw_uuid().map_err(|_| crate::agents::no_chance())?,
    };
    if !subject::is_session(&session) {
        let text = "Not 1 to 64 letters, digits, dots, dashes and underscores.";
        return Err(Problem::field("session_id", text));
    }
    Ok(session)
}

/// What a node refuses to write for an account, as the other side could do nothing with it.
async fn judge(
    registry: &Registry,
    caller: &Caller,
    to: &Account,
    (given, session): (&Given, &str),
) -> Answer<()> {
    match given.step {
        Step::Init if !given.is_forced => {
            let job = given.value("job_ref").and_then(|job| usernames::uuid(job.trim()));
            let index = registry.index();
            let job = job.and_then(|id| index.job(mesh::wire::record::RecordId(id)));
            if !job.is_some_and(|job| job.owner == to.print && job.is_active) {
                let text = "no active job of this agent has this id; force sends it all the same";
                return Err(Problem::field("job_ref", text));
            }
        }
        Step::Propose if !given.is_forced => {
            let agent = registry.agent(to.print).await?;
            let methods = agent.map(|agent| agent.profile.payment).unwrap_or_default();
            let method = given.value("payment_method").unwrap_or_default().trim();
            if !method.is_empty() && !methods.iter().any(|own| own == method) {
                let takes = if methods.is_empty() { "none".into() } else { methods.join(", ") };
                let text = format!("this agent takes {takes}; force sends it all the same");
                return Err(Problem::field("payment_method", text));
            }
        }
        Step::Result => {
            let sessions = registry.sessions(caller, None).await?;
            let held = sessions.get(&(to.print, session.to_owned()));
            let agreed = plain::agreed(registry, caller, held).await?;
            if agreed.is_some_and(|agreed| lacks_payment(&agreed, |key| given.value(key))) {
                let text =
                    format!("{LACKS_PAYMENT}: give invoice_amount and invoice_wallet_address");
                return Err(Problem::field("invoice_wallet_address", text));
            }
        }
        Step::Init
        | Step::Propose
        | Step::Ack
        | Step::Counter
        | Step::Accept
        | Step::Reject
        | Step::Execute => {}
    }
    Ok(())
}

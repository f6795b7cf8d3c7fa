//! Lists of mail, and single mails, as clients read them.

use std::{cmp::Reverse, collections::BTreeMap};

use bridge::seam::call::{LocateContents, WriteRecords};
use mesh::{
    api::account::{ContentState, RecordWrite},
    limits::RECORD_WRITES_MAX,
    name::id::KeyPrint,
    records::finder::{DELIVERED, Delivered, Form, MAILS, MARKS, Mark},
    wire::record::{RecordId, Stamp},
};
use openpgp::SecretCertificate;
use serde_json::{Value, json};

use super::{
    notices::{self, Kept},
    opened::{Opened, other},
    plain, sending,
    sessions::{self, Held, SessionName},
};
use crate::{
    caller::Caller,
    fields::Fields,
    http::{Coming, Done},
    index::Letter,
    negotiation::{
        steps::Step,
        subject::{self, Subject},
    },
    page::Page,
    problem::{Answer, Problem},
    registry::{Registry, now_us},
    shapes, times, usernames,
};

const NO_MAIL: &str = "you have no message of this id";

/// A row of the inbox.
enum Row {
    Letter(Letter),
    Notice(Kept),
}

impl Row {
    fn age(&self) -> (Stamp, RecordId) {
        match self {
            Row::Letter(letter) => (letter.created, letter.id),
            Row::Notice(notice) => (notice.created(), notice.id),
        }
    }
}

/// `GET /api/agents/me/inbox/`.
pub(crate) async fn inbox(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    let notices = notices::of(registry, caller).await?;
    let is_wanted: fn(bool) -> bool = match coming.query.get("is_read") {
        Some("false") => |is_read| !is_read,
        Some("true") => |is_read| is_read,
        Some(_) | None => |_| true,
    };
    let mut rows: Vec<Row> = {
        let index = registry.index();
        let letters = index.letters.received(caller.print).filter(|letter| {
            index.visible(letter.from).is_some() && is_wanted(index.letters.is_read(letter))
        });
        let notices = notices.into_iter().filter(|notice| is_wanted(notice.notice.is_read));
        letters.map(Row::Letter).chain(notices.map(Row::Notice)).collect()
    };
    rows.sort_by_key(|row| Reverse(row.age()));
    let page = Page::of(rows.len(), &coming.query)?;
    let on_page = page.cut(&rows);
    let letters = on_page.iter().filter_map(|row| match row {
        Row::Letter(letter) => Some(*letter),
        Row::Notice(_) => None,
    });
    let letters: Vec<Letter> = letters.collect();
    let opened = registry.open(caller, letters.clone()).await?;
    let context = Context::of(registry, caller, opened).await?;
    note_delivered(registry, caller, &letters).await;
    let shown = on_page.iter().filter_map(|row| match row {
        Row::Letter(letter) => context.received(registry, letter),
        Row::Notice(notice) => Some(notice.document()),
    });
    let shown = shown.collect();
    Ok(Done::Ok(page.document(&coming.asked(), shown)))
}

/// Mails with what is shown beside them.
struct Context {
    own: KeyPrint,
    opened: BTreeMap<RecordId, Opened>,
    sessions: BTreeMap<SessionName, Held>,
}

impl Context {
    async fn of(registry: &Registry, caller: &Caller, opened: Vec<Opened>) -> Answer<Context> {
        let is_step = |(_, envelope): &Opened| {
            let subject = envelope.as_ref().map(|envelope| envelope.subject.as_str());
            subject.is_some_and(|subject| subject.starts_with("negotiate:"))
        };
        let sessions = if opened.iter().any(is_step) {
            registry.sessions(caller, None).await?
        } else {
            BTreeMap::new()
        };
        let opened = opened.into_iter().map(|one| (one.0.id, one)).collect();
        Ok(Context { own: caller.print, opened, sessions })
    }

    /// The subject and the form of a mail, as far as it opens.
    fn envelope(&self, letter: &Letter) -> (&str, &'static str) {
        let envelope = self.opened.get(&letter.id).and_then(|(_, envelope)| envelope.as_ref());
        envelope.map_or(("", PGP), |envelope| {
            let form = match envelope.form {
                Form::Pgp => PGP,
                Form::Plain => "plain",
            };
            (envelope.subject.as_str(), form)
        })
    }

    /// Puts the text into what is shown, as a hosted account reads it.
    async fn put_plain(
        &self,
        registry: &Registry,
        caller: &Caller,
        (key, letter, text): (SecretCertificate, &Letter, &str),
        shown: &mut Value,
    ) -> Answer<()> {
        let (subject, form) = self.envelope(letter);
        let form = if form == PGP { Form::Pgp } else { Form::Plain };
        let plain = plain::open(registry, key, letter, (form, text)).await?;
        plain.show(text, shown);
        let Subject::Step(step, session) = subject::read(subject) else { return Ok(()) };
        let held = self.sessions.get(&(other(self.own, letter), session.to_owned()));
        let agreed =
            if step == Step::Result { plain::agreed(registry, caller, held).await? } else { None };
        if let Some(text) = &plain.text {
            plain::inside((subject, text), agreed.as_deref(), shown);
        }
        Ok(())
    }

    /// A mail that the account has got. `None`: its sender does not show.
    fn received(&self, registry: &Registry, letter: &Letter) -> Option<Value> {
        let sender = registry.named(letter.from)?;
        let (subject, form) = self.envelope(letter);
        let mut mesh = json!({ "form": form });
        if let Some(step) = sessions::of_message(self.own, &self.sessions, (letter, subject)) {
            mesh["negotiation"] = step;
        }
        Some(json!({
            "id": shapes::uuid(letter.id),
            "sender_id": sender.id,
            "sender_name": sender.name,
            "subject": subject,
            "is_read": registry.index().letters.is_read(letter),
            "created_at": times::of_stamp(letter.created),
            "mesh": mesh,
        }))
    }

    /// A mail that the account has sent.
    fn sent(&self, registry: &Registry, (letter, state): (&Letter, ContentState)) -> Value {
        let (subject, form) = self.envelope(letter);
        let (id, name) = {
            let index = registry.index();
            let to = index.account(letter.to);
            let id = to.map(|account| account.id.to_string()).unwrap_or_default();
            (id, to.map(|account| account.name.clone()).unwrap_or_default())
        };
        let (is_read, delivered) = {
            let index = registry.index();
            (index.letters.is_read(letter), index.letters.delivered(letter))
        };
        let state = match (is_read, delivered, state.copied) {
            (true, ..) => "read",
            (false, Some(_), _) => "delivered",
            (false, None, true) => "carried",
            (false, None, false) => "stored",
        };
        let mut mesh = json!({ "form": form, "state": state });
        if let Some(delivered) = delivered {
            mesh["delivered_at"] = times::of_ms(delivered);
        }
        if let Some(step) = sessions::of_message(self.own, &self.sessions, (letter, subject)) {
            mesh["negotiation"] = step;
        }
        json!({
            "id": shapes::uuid(letter.id),
            "recipient_id": id,
            "recipient_name": name,
            "subject": subject,
            "is_read": is_read,
            "created_at": times::of_stamp(letter.created),
            "mesh": mesh,
        })
    }
}

const PGP: &str = "pgp";

/// Tells the mesh that an account was shown these mails, if it was not before. Mail can be read where nothing can be written.
async fn note_delivered(registry: &Registry, caller: &Caller, letters: &[Letter]) {
    let new: Vec<Letter> = {
        let index = registry.index();
        let is_new = |letter: &&Letter| index.letters.delivered(letter).is_none();
        letters.iter().filter(is_new).copied().collect()
    };
    let wall_ms = now_us() / 1_000;
    let write = |letter: &Letter| {
        let delivered = Delivered { mail: letter.id, from: letter.from, wall_ms };
        let id = delivered.id(caller.print);
        RecordWrite::new(DELIVERED.number, id, Some(delivered.encode()))
    };
    for some in new.chunks(RECORD_WRITES_MAX) {
        let (account, above) = (caller.secret.clone(), Stamp::default());
        let writes = some.iter().map(write).collect();
        let write = WriteRecords { account, writes, above };
        if let Err(refusal) = registry.desk.ask(registry.visitor(), write).await {
            tracing::debug!(account = %caller.print, ?refusal, "mail was shown, and it was not written");
            return;
        }
    }
}

/// A mail by its id, if the account has got it, or has sent it.
fn find(registry: &Registry, id: &str, is_own: impl Fn(&Letter) -> bool) -> Answer<Letter> {
    let id = usernames::uuid(id).map(RecordId);
    let found = id.and_then(|id| registry.index().letters.get(id));
    found.filter(is_own).ok_or_else(|| Problem::missing(NO_MAIL))
}

fn find_received(registry: &Registry, caller: &Caller, id: &str) -> Answer<Letter> {
    let shows = |letter: &Letter| registry.index().visible(letter.from).is_some();
    find(registry, id, |letter| letter.to == caller.print && shows(letter))
}

async fn one_of(registry: &Registry, caller: &Caller, letter: Letter) -> Answer<Context> {
    let opened = registry.open(caller, vec![letter]).await?;
    Context::of(registry, caller, opened).await
}

/// `GET /api/agents/me/inbox/ID/`.
pub(crate) async fn read(registry: &Registry, coming: &Coming, id: &str) -> Answer<Done> {
    let caller = coming.caller()?;
    if let Some(notice) = notices::find(registry, caller, id).await? {
        return Ok(Done::Ok(notice.whole()));
    }
    let letter = find_received(registry, caller, id)?;
    let context = one_of(registry, caller, letter).await?;
    let text = registry.text(caller, &letter).await?;
    note_delivered(registry, caller, &[letter]).await;
    let shown = context.received(registry, &letter);
    let mut shown = shown.ok_or_else(|| Problem::missing(NO_MAIL))?;
    match plain::key_of(registry, caller).await? {
        Some(key) => context.put_plain(registry, caller, (key, &letter, &text), &mut shown).await?,
        None => shown["body"] = json!(text),
    }
    Ok(Done::Ok(shown))
}

/// `PATCH` and `PUT` of `/api/agents/me/inbox/ID/`.
pub(crate) async fn mark(
    registry: &Registry,
    coming: &Coming,
    id: &str,
    mut fields: Fields,
) -> Answer<Done> {
    let caller = coming.caller()?;
    let given = fields.has("is_read");
    let is_read = fields.flag("is_read", true);
    fields.done()?;
    let is_read = is_read.filter(|_| given);
    if let Some(notice) = notices::find(registry, caller, id).await? {
        let is_read = is_read.unwrap_or(notice.notice.is_read);
        notices::mark(registry, caller, notice, is_read).await?;
        return Ok(Done::Ok(json!({ "is_read": is_read })));
    }
    let letter = find_received(registry, caller, id)?;
    let before = registry.index().letters.is_read(&letter);
    let Some(is_read) = is_read.filter(|is_read| *is_read != before) else {
        return Ok(Done::Ok(json!({ "is_read": before })));
    };
    note_delivered(registry, caller, &[letter]).await;
    let mark = Mark { mail: letter.id, from: letter.from, is_read };
    registry.write(caller, MARKS.number, mark.id(caller.print), Some(mark.encode())).await?;
    registry.refresh().await?;
    Ok(Done::Ok(json!({ "is_read": is_read })))
}

async fn states(registry: &Registry, letters: &[Letter]) -> Answer<Vec<ContentState>> {
    let keys = letters.iter().map(|letter| (letter.id, letter.from)).collect();
    let locate = LocateContents { collection: MAILS.number, keys };
    Ok(registry.desk.ask(registry.visitor(), locate).await?)
}

/// `GET /api/agents/me/sent/`.
pub(crate) async fn sent(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    let mut letters: Vec<Letter> = {
        let index = registry.index();
        let letters = index.letters.sent(caller.print);
        letters.filter(|letter| index.account(letter.to).is_some()).collect()
    };
    letters.reverse();
    let page = Page::of(letters.len(), &coming.query)?;
    let on_page = page.cut(&letters).to_vec();
    let states = states(registry, &on_page).await?;
    let opened = registry.open(caller, on_page.clone()).await?;
    let context = Context::of(registry, caller, opened).await?;
    let shown = on_page.iter().zip(states).map(|one| context.sent(registry, one)).collect();
    Ok(Done::Ok(page.document(&coming.asked(), shown)))
}

/// `GET /api/agents/me/sent/ID/`.
pub(crate) async fn read_sent(registry: &Registry, coming: &Coming, id: &str) -> Answer<Done> {
    let caller = coming.caller()?;
    let letter = find(registry, id, |letter| letter.from == caller.print)?;
    as_sent(registry, caller, letter, None).await.map(Done::Ok)
}

/// A mail as its sender sees it. With the text as it was sent, if it is given; else as the sender can read it.
pub(crate) async fn as_sent(
    registry: &Registry,
    caller: &Caller,
    letter: Letter,
    text: Option<String>,
) -> Answer<Value> {
    let context = one_of(registry, caller, letter).await?;
    let state = states(registry, &[letter]).await?.pop().unwrap_or_default();
    let mut shown = context.sent(registry, (&letter, state));
    if let Some(text) = text {
        shown["body"] = json!(text);
        return Ok(shown);
    }
    let text = registry.text(caller, &letter).await?;
    if let Some(key) = plain::key_of(registry, caller).await? {
        context.put_plain(registry, caller, (key, &letter, &text), &mut shown).await?;
        return Ok(shown);
    }
    let own = registry.agent(caller.print).await?;
    let certificates: Vec<&[u8]> = own.iter().flat_map(|agent| agent.certificates()).collect();
    let (_, form) = context.envelope(&letter);
    if form == PGP && !sending::is_encrypted_to(&text, &certificates) {
        shown["body"] = json!(note(registry, &letter));
        shown["mesh"]["pgp"] = json!(text);
    } else {
        shown["body"] = json!(text);
    }
    Ok(shown)
}

/// In the place of a text that its sender cannot read: the client would take it for an error.
fn note(registry: &Registry, letter: &Letter) -> String {
    let index = registry.index();
    let to = index.account(letter.to).map(|to| (index.shown_name(to), to.id.to_string()));
    let (name, id) = to.unwrap_or_default();
    let short = format!("{}…{}", id.get(..4).unwrap_or(&id), id.get(36..).unwrap_or_default());
    let since = index.letters.delivered(letter);
    let delivered = since.map_or_else(
        || "not delivered yet".to_owned(),
        |at| format!("delivered {}", times::of_ms(at).as_str().unwrap_or_default()),
    );
    format!(
        "[This message was encrypted for {name} ({short}) alone: its sender cannot read it. {delivered}]"
    )
}

/// The last word of another account that the two did business, in mail that an account has got.
pub(crate) async fn receipt_of(
    registry: &Registry,
    own: &Caller,
    from: KeyPrint,
) -> Answer<Option<mesh::records::finder::Receipt>> {
    let letters: Vec<Letter> = {
        let index = registry.index();
        let received = index.letters.received(own.print);
        received.filter(|letter| other(own.print, letter) == from).collect()
    };
    let opened = registry.open(own, letters).await?;
    let last = sessions::last_receipt(&opened, from);
    Ok(last.and_then(|(_, envelope)| envelope.receipt.clone()))
}

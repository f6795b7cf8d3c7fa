//! Sessions between two accounts, as the subjects of their mail tell.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mesh::{
    name::id::KeyPrint,
    wire::record::{RecordId, Stamp},
};
use serde_json::{Value, json};

use super::{
    opened::{Opened, other},
    plain,
};
use crate::{
    caller::Caller,
    http::{Coming, Done},
    index::{Index, Letter},
    limits::{SESSION_MAILS_MAX, SESSIONS_OPEN_MAX, STALE_AFTER_MS},
    negotiation::{
        fields,
        steps::{self, Counted, Role, Sent, State, Step},
        subject::{self, Subject},
    },
    page::Page,
    problem::{Answer, Problem},
    registry::{Registry, now_us},
    shapes, times,
};

/// A session: the other account, and its name.
pub(crate) type SessionName = (KeyPrint, String);

/// A mail of a session.
#[derive(Clone, Copy, Debug)]
struct Of {
    letter: Letter,
    step: Step,
    counted: Counted,
    after: Option<State>,
}

/// A session of an account.
#[derive(Debug)]
pub(crate) struct Held {
    name: SessionName,
    consumer: Option<KeyPrint>,
    pub(crate) state: Option<State>,
    mails: Vec<Of>,
}

impl Held {
    fn fold(name: SessionName, mails: &[(Letter, Step)]) -> Held {
        let sent = mails.iter().map(|(letter, step)| Sent {
            stamp: letter.created,
            id: letter.id,
            from: letter.from,
            step: *step,
        });
        let folded = steps::fold(sent.collect());
        let by_id: HashMap<RecordId, (Letter, Step)> =
            mails.iter().map(|(letter, step)| (letter.id, (*letter, *step))).collect();
        let of = |(id, counted, after): (RecordId, Counted, Option<State>)| {
            let (letter, step) = *by_id.get(&id)?;
            Some(Of { letter, step, counted, after })
        };
        let mails = folded.mails.into_iter().filter_map(of).collect();
        Held { name, consumer: folded.consumer, state: folded.state, mails }
    }

    /// The part of an account in it.
    pub(crate) fn role_of(&self, account: KeyPrint) -> Role {
        // Where none has begun, whoever does is the consumer.
        match self.consumer {
            Some(consumer) if consumer != account => Role::Provider,
            Some(_) | None => Role::Consumer,
        }
    }

    /// The stamp of its last mail.
    pub(crate) fn last(&self) -> Stamp {
        self.mails.last().map(|of| of.letter.created).unwrap_or_default()
    }

    /// Its mails in their order, with what became of each.
    pub(crate) fn mails(&self) -> impl DoubleEndedIterator<Item = (Letter, Step, Counted)> {
        self.mails.iter().map(|of| (of.letter, of.step, of.counted))
    }

    fn is_over(&self) -> bool {
        matches!(self.state, None | Some(State::Rejected | State::Done))
    }
}

/// Sessions of an account, folded from those of its mails that are part of one.
pub(crate) fn of_mails(own: KeyPrint, opened: &[Opened]) -> BTreeMap<SessionName, Held> {
    let mut mails: BTreeMap<SessionName, Vec<(Letter, Step)>> = BTreeMap::new();
    for (letter, envelope) in opened {
        let Some(envelope) = envelope else { continue };
        if let Subject::Step(step, session) = subject::read(&envelope.subject) {
            let name = (other(own, letter), session.to_owned());
            mails.entry(name).or_default().push((*letter, step));
        }
    }
    let folded = mails.into_iter().map(|(name, mails)| {
        let held = Held::fold(name.clone(), &mails);
        (name, held)
    });
    folded.collect()
}

/// All mail between an account and others that show; with one of them, if it is named.
fn letters(index: &Index, own: KeyPrint, with: Option<KeyPrint>) -> Vec<Letter> {
    let letters = &index.letters;
    let is_with = |letter: &Letter| {
        let other = other(own, letter);
        with.is_none_or(|with| with == other) && index.account(other).is_some()
    };
    let received = letters.received(own).rev().filter(|letter| letter.from != own);
    let received = received.take(SESSION_MAILS_MAX);
    letters.sent(own).chain(received).filter(is_with).collect()
}

impl Registry {
    /// The sessions of an account; with one other account alone, if it is named.
    pub(crate) async fn sessions(
        &self,
        own: &Caller,
        with: Option<KeyPrint>,
    ) -> Answer<BTreeMap<SessionName, Held>> {
        let all = letters(&self.index(), own.print, with);
        let opened = self.open(own, all).await?;
        Ok(of_mails(own.print, &opened))
    }

    /// Whether an account may take a step now. Stamps of the mail have to be above the one that is returned.
    ///
    /// # Errors
    /// It may not, as far as this node knows.
    pub(crate) async fn may_step(
        &self,
        own: &Caller,
        with: &crate::index::Account,
        (step, session): (Step, &str),
    ) -> Answer<(Stamp, State)> {
        let all = self.sessions(own, None).await?;
        let name = (with.print, session.to_owned());
        let (held, short) = (all.get(&name), session.get(..8).unwrap_or(session));
        let state = held.and_then(|held| held.state);
        let role = held.map_or(Role::Consumer, |held| held.role_of(own.print));
        if let Some(after) = steps::next(state, step, role) {
            let open = all.values().filter(|held| !held.is_over()).count();
            if step == Step::Init && open >= SESSIONS_OPEN_MAX {
                let text = format!(
                    "at most {SESSIONS_OPEN_MAX} sessions that are not over; reject some first"
                );
                return Err(Problem::forbidden(&text));
            }
            return Ok((held.map(Held::last).unwrap_or_default(), after));
        }
        self.counts.step_refused();
        Err(Problem::conflict(match state {
            Some(state) if step == Step::Init => {
                format!("the session {short} is known here (state {state}); begin with a fresh id")
            }
            Some(state) => steps::refusal(state, step, short),
            None => {
                let name = self.index().shown_name(with);
                format!("no session {short} between you and {name} is known here; send INIT first")
            }
        }))
    }
}

/// A negotiation as a message shows it: `mesh.negotiation`.
pub(crate) fn of_message(
    own: KeyPrint,
    sessions: &BTreeMap<SessionName, Held>,
    (letter, subject): (&Letter, &str),
) -> Option<Value> {
    let Subject::Step(_, session) = subject::read(subject) else { return None };
    let held = sessions.get(&(other(own, letter), session.to_owned()))?;
    let of = held.mails.iter().find(|of| of.letter.id == letter.id)?;
    let mut shown = json!({
        "type": of.step.lower(),
        "session_id": session,
        "state": of.after.map(State::name),
        "violations": violations(of.counted),
    });
    if let Some(by) = of.after.and_then(State::offered_by) {
        shown["offered_by"] = json!(by.name());
    }
    Some(shown)
}

fn violations(counted: Counted) -> Vec<&'static str> {
    match counted {
        Counted::Yes => Vec::new(),
        Counted::No => vec!["not allowed where the session stood"],
        Counted::Late => vec!["late"],
    }
}

/// A session as clients read it.
fn document(registry: &Registry, own: KeyPrint, held: &Held) -> Option<Value> {
    let (other, session) = &held.name;
    let named = registry.named(*other)?;
    let role = held.role_of(own);
    let is_stale = held.last().wall_ms() + STALE_AFTER_MS < now_us() / 1_000;
    let allowed = steps::allowed(held.state, role);
    let id_of =
        |print: KeyPrint| registry.index().account(print).map(|account| account.id.to_string());
    let messages = held.mails.iter().map(|of| {
        json!({
            "id": shapes::uuid(of.letter.id),
            "type": of.step.lower(),
            "sender_id": id_of(of.letter.from),
            "created_at": times::of_stamp(of.letter.created),
            "violations": violations(of.counted),
        })
    });
    let mut shown = json!({
        "session_id": session,
        "role": role.name(),
        "counterparty": {"id": named.id, "name": named.name, "username": named.username},
        "state": held.state.map(State::name),
        "since": held.mails.first().map(|of| times::of_stamp(of.letter.created)),
        "stale": is_stale,
        "allowed": allowed.iter().map(|step| step.lower()).collect::<Vec<_>>(),
        "messages": messages.collect::<Vec<_>>(),
    });
    if let Some(by) = held.state.and_then(State::offered_by) {
        shown["offered_by"] = json!(by.name());
    }
    Some(shown)
}

/// `GET /api/agents/me/sessions/`.
pub(crate) async fn list(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    let all = registry.sessions(caller, None).await?;
    let mut all: Vec<&Held> = all.values().filter(|held| held.consumer.is_some()).collect();
    all.sort_by_key(|held| std::cmp::Reverse((held.last(), held.name.clone())));
    let page = Page::of(all.len(), &coming.query)?;
    let shown = page.cut(&all).iter();
    let shown = shown.filter_map(|held| document(registry, caller.print, held)).collect();
    Ok(Done::Ok(page.document(&coming.asked(), shown)))
}

/// `GET /api/agents/me/sessions/SESSION/`.
pub(crate) async fn get(registry: &Registry, coming: &Coming, session: &str) -> Answer<Done> {
    let caller = coming.caller()?;
    let all = registry.sessions(caller, None).await?;
    let named = all.values().filter(|held| held.name.1 == session && held.consumer.is_some());
    // Two others may have used one name: the one that was written in last is shown.
    let none = || Problem::missing("you have no session of this id");
    let found = named.max_by_key(|held| held.last()).ok_or_else(none)?;
    let mut shown = document(registry, caller.print, found).ok_or_else(none)?;
    let offers = [Step::Propose, Step::Counter];
    if let Some(message) = plain::last_of(registry, caller, found, &offers).await? {
        let known = message.step.map_or(&[][..], fields::of).iter().map(|field| field.key);
        let terms = known.filter_map(|key| Some((key.to_owned(), json!(message.value(key)?))));
        shown["terms"] = Value::Object(terms.collect());
    }
    Ok(Done::Ok(shown))
}

/// The receipt that another account has given last, in the mail that an account has got from it.
pub(crate) fn last_receipt(
    opened: &[Opened],
    from: KeyPrint,
) -> Option<(Stamp, Arc<mesh::records::finder::Envelope>)> {
    let given = opened.iter().filter(|(letter, _)| letter.from == from);
    let given = given.filter_map(|(letter, envelope)| {
        let envelope = envelope.as_ref().filter(|envelope| envelope.receipt.is_some())?;
        Some((letter.created, Arc::clone(envelope)))
    });
    given.max_by_key(|(created, _)| *created)
}

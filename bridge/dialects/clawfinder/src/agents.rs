//! Accounts: registered, shown, changed, proven and deleted.

use std::{sync::Arc, time::Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::{seam::call::ClaimAccount, secret::Secret};
use mesh::{
    limits::{
        FINDER_CERTIFICATE_BYTES_MAX, FINDER_FORMER_MAX, FINDER_METHODS_MAX, FINDER_PROOF_BYTES_MAX,
    },
    name::{account::Label, key::KeySecret},
    records::finder::{Contact, FormerCertificate, PROFILES, Profile},
    wire::record::Stamp,
};
use openpgp::{Certificate, Fingerprint, Wish};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    caller::Caller,
    fields::{Fields, Most, Text, no_choice},
    hosted::{self, Keys},
    http::{Coming, Done},
    limits::{
        BODY_BYTES_MAX, FORMER_FOR_MS, HANDLE_CHARS_MAX, KNOWN_WITHIN, LOOK_EVERY, NAME_CHARS_MAX,
    },
    mail::plain,
    problem::{Answer, Problem},
    proof,
    rates::Origin,
    registry::{Registry, now_us},
    rooms::linking::{self, Link},
    secret,
    settings::Signup,
    usernames,
};

const NO_AGENT: &str = "no agent has this id or username";
const PAYMENTS: [&str; 2] = ["lobster.cash", "invoice"];
/// Ways to reach an agent, and whether they have a handle.
const CONTACTS: [(&str, bool); 4] =
    [("email", true), ("telegram", true), ("whatsapp", true), ("index_mailbox", false)];

/// Who may register, and what a proof names.
pub(crate) fn signup(registry: &Registry) -> Done {
    let mesh = registry.settings.mesh.to_string();
    Done::Ok(json!({"mesh": mesh, "signup": registry.settings.signup.name()}))
}

/// The fields of a profile that a client may give.
pub(crate) struct Given {
    name: Option<String>,
    pgp_key: Option<String>,
    payment_methods: Option<Vec<String>>,
    contact_methods: Option<Vec<Contact>>,
}

impl Given {
    pub(crate) fn read(fields: &mut Fields, has_key: bool) -> Given {
        let name = fields.text("name", Text::required(Most::Chars(NAME_CHARS_MAX)));
        let name = name.filter(|name| {
            let is_plain = !name.chars().any(char::is_control);
            if !is_plain {
                fields.refuse("name", "Control characters are not allowed.");
            }
            is_plain
        });
        Given {
            name,
            pgp_key: has_key
                .then(|| fields.text("pgp_key", Text::required(Most::Bytes(BODY_BYTES_MAX))))
                .flatten(),
            payment_methods: payments(fields),
            contact_methods: contacts(fields),
        }
    }
}

fn payments(fields: &mut Fields) -> Option<Vec<String>> {
    let given = fields.list("payment_methods", FINDER_METHODS_MAX)?;
    let mut methods: Vec<String> = Vec::new();
    for value in given {
        match value.as_str().filter(|method| PAYMENTS.contains(method)) {
            Some(method) if methods.iter().any(|own| own == method) => {}
            Some(method) => methods.push(method.to_owned()),
            None => {
                fields.refuse("payment_methods", no_choice(&value));
                return None;
            }
        }
    }
    Some(methods)
}

fn contacts(fields: &mut Fields) -> Option<Vec<Contact>> {
    let given = fields.list("contact_methods", FINDER_METHODS_MAX)?;
    let mut methods: Vec<Contact> = Vec::new();
    for value in given {
        match contact(&value) {
            Ok(contact) if methods.contains(&contact) => {}
            Ok(contact) => methods.push(contact),
            Err(text) => {
                fields.refuse("contact_methods", text);
                return None;
            }
        }
    }
    Some(methods)
}

fn contact(value: &Value) -> Result<Contact, String> {
    let Value::Object(given) = value else {
        return Err("Give each as an object with a method, and a handle if it has one.".to_owned());
    };
    let named = given.get("method").cloned().unwrap_or_default();
    let known = CONTACTS.iter().find(|(method, _)| named.as_str() == Some(method));
    let Some((method, has_handle)) = known else { return Err(no_choice(&named)) };
    let method = (*method).to_owned();
    if !has_handle {
        return Ok(Contact { method, handle: None });
    }
    let handle = given.get("handle").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if handle.is_empty() {
        return Err(format!("{method} needs a handle."));
    }
    if handle.chars().count() > HANDLE_CHARS_MAX || handle.chars().any(char::is_control) {
        return Err(format!(
            "Ensure the handle of {method} has no more than {HANDLE_CHARS_MAX} characters, and no control characters."
        ));
    }
    Ok(Contact { method, handle: Some(handle.to_owned()) })
}

/// `POST /api/agents/register/`.
pub(crate) async fn register(
    registry: &Registry,
    coming: &Coming,
    mut fields: Fields,
) -> Answer<Done> {
    may_register(registry, coming)?;
    let longest = Text::required(Most::Chars(usize::MAX));
    let username = fields.text("username", longest).map(|name| name.trim().to_owned());
    if let Some(text) = username.as_deref().and_then(usernames::problem) {
        fields.refuse("username", text);
    }
    let is_hosted = fields.has("hosted") && fields.flag("hosted", false) == Some(true);
    for field in ["pgp_key", "proof"].into_iter().filter(|_| is_hosted) {
        if fields.has(field) {
            fields.refuse(field, "A node makes the PGP key of a hosted account.");
        }
    }
    let agent = is_hosted.then(|| linking::named(&mut fields)).flatten();
    let own_key = OwnKey::read(&mut fields, is_hosted);
    let mut given = Given::read(&mut fields, !is_hosted);
    let Some((username, name)) = username.zip(given.name.take()) else { return unread(fields) };
    let Some(certificate) = chosen(&mut fields, &mut given, (&username, &name)) else {
        return unread(fields);
    };
    if certificate.is_none() && !is_hosted {
        return unread(fields);
    }
    fields.done()?;
    let link = match agent {
        Some(agent) => Some(Link::open(registry, coming, agent).await?),
        None => None,
    };
    if let Some(link) = link.as_ref().filter(|link| link.is_known) {
        return again(registry, link, (&username, name), given).await;
    }
    // Who has lost another key has this one's text from here, as all others have.
    let is_shown = link.is_none() && (!is_hosted || own_key.is_none());
    let (key, proof) = match (&link, own_key) {
        (Some(link), _) => (link.api_key.clone(), None),
        (None, Some(OwnKey { key, proof })) => (Secret::new(key), proof),
        (None, None) => (secret::draw().map_err(|_| no_chance())?, None),
    };
    let secret = Arc::new(KeySecret::of(key.expose()));
    let caller = Caller { print: secret.print(), secret };
    let is_recovery = proof.is_some();
    let keys = match certificate {
        Some(certificate) => Keys { certificate, proof, vault: None },
        None => hosted::make(registry, &caller, &username, &name).await?,
    };
    let profile = Profile {
        username,
        name,
        certificate: keys.certificate.to_bytes(),
        former: Vec::new(),
        payment: given.payment_methods.unwrap_or_default(),
        contact: given.contact_methods.unwrap_or_default(),
        registered: Stamp::at(now_us()),
        mailbox: caller.secret.halves().mailbox,
        proof: keys.proof.map(String::into_bytes),
        vault: keys.vault,
        host: link.as_ref().map(|_| registry.desk.config().here.node),
    };
    let entry = Entry { origin: coming.origin, is_recovery };
    enter(registry, entry, &caller, (&keys.certificate, profile)).await?;
    if let Some(link) = link {
        link.host(registry).await?;
    }
    let mut shown = own(registry, &caller).await?;
    if is_shown {
        shown["api_key"] = json!(key.expose());
    }
    Ok(Done::Created(shown))
}

/// An agent that has its account links it at this node, which is its host from now on.
async fn again(
    registry: &Registry,
    link: &Link,
    (username, name): (&str, String),
    given: Given,
) -> Answer<Done> {
    let here = registry.desk.config().here.node;
    let caller = link.caller();
    let done = change(registry, &caller, |profile, _| {
        if usernames::folded(&profile.username) != usernames::folded(username) {
            let text = format!(
                "This agent is {}, and a username is never changed; give it to link again.",
                profile.username
            );
            return Err(Problem::field("username", text));
        }
        (profile.name, profile.host) = (name, Some(here));
        profile.payment = given.payment_methods.unwrap_or_default();
        profile.contact = given.contact_methods.unwrap_or_default();
        Ok(())
    });
    let done = done.await?;
    link.host(registry).await?;
    Ok(done)
}

/// 503.
pub(crate) fn no_chance() -> Box<Problem> {
    Problem::unavailable("this machine has no random bytes now; try again")
}

/// The key that an account is to have, made by its client.
struct OwnKey {
    key: String,
    /// The word of its certificate: of somebody who has lost another key. The node that makes a certificate needs none.
    proof: Option<String>,
}

impl OwnKey {
    fn read(fields: &mut Fields, is_hosted: bool) -> Option<OwnKey> {
        let longest = Text::required(Most::Chars(usize::MAX));
        let key = fields.has("api_key").then(|| fields.text("api_key", longest)).flatten();
        let word = Text::required(Most::Bytes(FINDER_PROOF_BYTES_MAX));
        let proof = fields.has("proof").then(|| fields.text("proof", word)).flatten();
        if key.as_deref().is_some_and(|key| !secret::is_key(key)) {
            fields.refuse("api_key", "This is no API key: ak_ and 32 random bytes in base64url.");
        }
        if !is_hosted && key.is_some() != proof.is_some() {
            fields.refuse("proof", "Give api_key and proof together.");
        }
        Some(OwnKey { key: key?, proof })
    }
}

/// The way in of a new account.
#[derive(Clone, Copy)]
struct Entry {
    origin: Origin,
    /// It may take the place of another one with its PGP key.
    is_recovery: bool,
}

/// The certificate of what a client gave. `Some(None)`: it gave none. `None`: it gave something else.
#[expect(clippy::option_option, reason = "not given is none of the faults")]
fn chosen(
    fields: &mut Fields,
    given: &mut Given,
    (username, name): (&str, &str),
) -> Option<Option<Certificate>> {
    let Some(text) = given.pgp_key.take() else { return Some(None) };
    match Certificate::choose(&text, &Wish::Of { username, name }, now_us() / 1_000_000) {
        Ok(certificate) => Some(Some(certificate)),
        Err(problem) => {
            fields.refuse("pgp_key", problem.to_string());
            None
        }
    }
}

/// The fields were not right: the answer says which.
fn unread(fields: Fields) -> Answer<Done> {
    fields.done()?;
    Err(Problem::of_the_whole("a field that is needed was not given"))
}

fn may_register(registry: &Registry, coming: &Coming) -> Answer<()> {
    let is_near = coming.origin == Origin::Near && !coming.is_forwarded;
    match registry.settings.signup {
        Signup::Open => Ok(()),
        Signup::Local if is_near => Ok(()),
        Signup::Local => Err(Problem::forbidden(
            "clients on the node's own machine may register; ask the operator for --finder-signup open",
        )),
        Signup::Off => Err(Problem::forbidden(
            "signing up is off at this node; ask the operator for --finder-signup open",
        )),
    }
}

/// Claims id and username for a new account, and writes its profile.
async fn enter(
    registry: &Registry,
    entry: Entry,
    caller: &Caller,
    (certificate, profile): (&Certificate, Profile),
) -> Answer<()> {
    let Entry { origin, is_recovery } = entry;
    let _one_at_a_time = registry.registering.lock().await;
    registry.refresh().await?;
    let id = certificate.fingerprint();
    {
        let index = registry.index();
        if index.account(caller.print).is_some() || index.is_deleted(caller.print) {
            return Err(Problem::field("api_key", "This key was used before; make another one."));
        }
        let holder = index.holder(id).and_then(|print| index.live(print));
        if let Some(holder) = holder.filter(|_| !is_recovery) {
            let name = index.shown_name(holder);
            return Err(Problem::conflict(format!(
                "this PGP key is registered as {name}; use its API key (config set-key), or recover it"
            )));
        }
        // Whoever recovers an account may go on under its name.
        let own = holder.is_some_and(|holder| {
            usernames::folded(&holder.username) == usernames::folded(&profile.username)
        });
        if !own && (usernames::is_reserved(&profile.username) || !index.is_free(&profile.username))
        {
            return Err(taken(registry, &profile.username));
        }
    }
    let public = caller.secret.halves().signer;
    if is_recovery && !proof::is_given(certificate, &profile, registry.document, &public) {
        let text = "the PGP key has not signed the document of this account";
        return Err(Problem::field("proof", text));
    }
    let counted = registry.registrations.take(origin, Instant::now());
    counted.map_err(|wait| {
        Problem::too_often("too many accounts were registered here; try again later", wait)
    })?;
    let labels = {
        let claims = &registry.index().claims;
        vec![claims.label_of_name(&usernames::folded(&profile.username)), claims.label_of_id(id)]
    };
    let name = labels.first().copied();
    registry.claim(ClaimAccount { account: caller.secret.clone(), labels }).await?;
    if let Some(name) = name.filter(|_| !is_recovery) {
        comes_first(registry, caller, name, &profile.username).await?;
    }
    let uuid = Profile::id(caller.print);
    registry.write(caller, PROFILES.number, uuid, Some(profile.encode())).await?;
    registry.refresh().await
}

/// Of all accounts that claimed a username, those that came first have been deleted, or never got as far as a profile.
async fn comes_first(
    registry: &Registry,
    caller: &Caller,
    name: Label,
    username: &str,
) -> Answer<()> {
    let began = Instant::now();
    loop {
        let order = registry.claims(name).await?;
        let before = order.iter().take_while(|print| **print != caller.print);
        let mut is_unknown = false;
        {
            let index = registry.index();
            for print in before {
                match index.account(*print) {
                    Some(other)
                        if usernames::folded(&other.username) == usernames::folded(username) =>
                    {
                        drop(index);
                        return Err(taken(registry, username));
                    }
                    Some(_) => {}
                    None => is_unknown |= !index.is_deleted(*print),
                }
            }
        }
        if !is_unknown || began.elapsed() >= KNOWN_WITHIN {
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
        registry.refresh().await?;
    }
}

/// 409, with names that are free.
fn taken(registry: &Registry, username: &str) -> Box<Problem> {
    let mut drawn = [0; 2];
    // Without random bytes the third suggestion is always the same one.
    let _ = getrandom::fill(&mut drawn);
    let index = registry.index();
    let names = usernames::suggestions(username, drawn, |name| index.is_free(name));
    let text = match names.as_slice() {
        [] => format!("username {username} is taken; try a shorter one"),
        names => format!("username {username} is taken; try {}", usernames::listed(names)),
    };
    Problem::conflict(text).with("suggestions", json!(names))
}

async fn own(registry: &Registry, caller: &Caller) -> Answer<Value> {
    let agent = registry.agent(caller.print).await?;
    let agent = agent.ok_or_else(|| {
        Problem::conflict(
            "another account with this PGP key or username came first; register again",
        )
    })?;
    Ok(agent.own())
}

/// `GET /api/agents/me/`.
pub(crate) async fn me(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    registry.saw(caller).await;
    own(registry, caller).await.map(Done::Ok)
}

/// `GET /api/agents/me/secret-key/`: of a hosted account, whose API key opens it at any node.
pub(crate) async fn secret_key(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    let text = "this account's client has its PGP key; a node has those of hosted accounts";
    let key = plain::key_of(registry, caller).await?.ok_or_else(|| Problem::forbidden(text))?;
    Ok(Done::Ok(json!({"secret_key": STANDARD.encode(&*key.to_bytes())})))
}

/// `GET /api/agents/ID/`.
pub(crate) async fn get(registry: &Registry, id: &str) -> Answer<Done> {
    let print = registry.index().find(id).map(|account| account.print);
    let agent = registry.agent(print.ok_or_else(|| Problem::missing(NO_AGENT))?).await?;
    Ok(Done::Ok(agent.ok_or_else(|| Problem::missing(NO_AGENT))?.public()))
}

/// `PATCH` and `PUT` of `/api/agents/me/`.
pub(crate) async fn update(
    registry: &Registry,
    coming: &Coming,
    mut fields: Fields,
) -> Answer<Done> {
    let given = Given::read(&mut fields, true);
    let chosen = given
        .pgp_key
        .as_deref()
        .map(|text| Certificate::choose(text, &Wish::First, now_us() / 1_000_000));
    if let Some(Err(problem)) = &chosen {
        fields.refuse("pgp_key", problem.to_string());
    }
    fields.done()?;
    let caller = coming.caller()?.clone();
    change(registry, &caller, |profile, registry| {
        if let Some(Ok(certificate)) = &chosen {
            replace(registry, &caller, profile, certificate)?;
        }
        if let Some(name) = given.name {
            profile.name = name;
        }
        if let Some(methods) = given.payment_methods {
            profile.payment = methods;
        }
        if let Some(methods) = given.contact_methods {
            profile.contact = methods;
        }
        Ok(())
    })
    .await
}

/// Changes the profile that an account has, as its node has it.
async fn change(
    registry: &Registry,
    caller: &Caller,
    how: impl FnOnce(&mut Profile, &Registry) -> Answer<()>,
) -> Answer<Done> {
    let one_at_a_time = registry.changing.lock().await;
    registry.refresh().await?;
    let gone = || Problem::no_account("the account of this key was deleted");
    let agent = registry.agent(caller.print).await?.ok_or_else(gone)?;
    let mut profile = agent.profile;
    how(&mut profile, registry)?;
    registry.write(caller, PROFILES.number, agent.account.uuid, Some(profile.encode())).await?;
    registry.refresh().await?;
    drop(one_at_a_time);
    registry.saw(caller).await;
    own(registry, caller).await.map(Done::Ok)
}

/// Another certificate takes the place of the one that an account has.
fn replace(
    registry: &Registry,
    caller: &Caller,
    profile: &mut Profile,
    certificate: &Certificate,
) -> Answer<()> {
    if profile.vault.is_some() {
        let text = "A node made this account's PGP key; to use your own, delete the account and register anew.";
        return Err(Problem::field("pgp_key", text));
    }
    let id = certificate.fingerprint();
    let holder = registry.index().holder(id).filter(|holder| *holder != caller.print);
    if holder.is_some() {
        let text = format!("the PGP key {id} is another agent's");
        return Err(Problem::conflict(text));
    }
    let before = Certificate::from_bytes(&profile.certificate).map(|before| before.fingerprint());
    let former = std::mem::replace(&mut profile.certificate, certificate.to_bytes());
    if before.is_ok_and(|before: Fingerprint| before == id) {
        return Ok(());
    }
    profile.proof = None;
    let until_ms = (now_us() / 1_000).saturating_add(FORMER_FOR_MS);
    profile.former.insert(0, FormerCertificate { certificate: former, until_ms });
    let mut bytes = 0;
    profile.former.retain(|former| {
        bytes += former.certificate.len();
        bytes <= FINDER_CERTIFICATE_BYTES_MAX && former.until_ms > now_us() / 1_000
    });
    profile.former.truncate(FINDER_FORMER_MAX);
    Ok(())
}

/// `POST /api/agents/me/proof/`.
pub(crate) async fn prove(
    registry: &Registry,
    coming: &Coming,
    mut fields: Fields,
) -> Answer<Done> {
    let signature = fields.text("signature", Text::required(Most::Bytes(FINDER_PROOF_BYTES_MAX)));
    fields.done()?;
    let Some(signature) = signature else {
        return Err(Problem::field("signature", "This field is required."));
    };
    let caller = coming.caller()?.clone();
    change(registry, &caller, |profile, registry| {
        let certificate = Certificate::from_bytes(&profile.certificate);
        let document = registry.document.of(&caller.secret.halves().signer);
        let verified = certificate
            .and_then(|own| own.verify(&signature, document.as_bytes(), now_us() / 1_000_000));
        verified.map_err(|problem| Problem::field("signature", problem.to_string()))?;
        profile.proof = Some(signature.into_bytes());
        Ok(())
    })
    .await
}

/// `DELETE /api/agents/me/`.
pub(crate) async fn delete(registry: &Registry, coming: &Coming) -> Answer<Done> {
    let caller = coming.caller()?;
    let uuid = Profile::id(caller.print);
    registry.write(caller, PROFILES.number, uuid, None).await?;
    registry.refresh().await?;
    Ok(Done::Deleted)
}

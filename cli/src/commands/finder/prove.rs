//! `clawmesh finder prove` and `recover`: for accounts of agents that have a PGP key of their own.

use std::path::PathBuf;

use client::http::Method;
use serde_json::{Map, Value, json};

use super::account;
use super::gpg::{Gpg, OwnKey};
use super::index::{Index, Request, part};
use super::keys::{KeyFiles, username};
use super::proof;
use super::shown;
use crate::outcome::{Failure, Outcome};

/// Prove that the account's PGP key is yours: gpg signs it
///
/// Nodes take any PGP key at registering, for ClawFinder's client proves nothing. A proven account goes before one that is not. Its API key is needed: --as, or CLAWFINDER_API_KEY.
#[derive(Debug, clap::Args)]
pub(super) struct Prove {
    /// Keyring of the account, such as ~/.config/clawfinder/gnupg
    #[arg(long, value_name = "DIR")]
    gnupghome: PathBuf,
}

/// Take an agent back whose API key is lost, or whose PGP key somebody else has registered: gpg signs a new account
///
/// The new API key is made here, and comes into ~/.clawmesh/finder/USERNAME.key. The former account is displaced: its key opens nothing any more. Jobs and mail of it are not taken over.
#[derive(Debug, clap::Args)]
pub(super) struct Recover {
    /// The former username, or another one
    #[arg(long, value_name = "USERNAME", value_parser = username)]
    username: String,
    /// Keyring with the PGP key, such as ~/.config/clawfinder/gnupg
    #[arg(long, value_name = "DIR")]
    gnupghome: PathBuf,
    /// Fingerprint of the PGP key, if the keyring has several of yours
    #[arg(long, value_name = "FINGERPRINT")]
    pgp_id: Option<String>,
}

/// What the node says of registering: of which mesh it is.
async fn mesh(index: &Index<'_>) -> Result<String, Failure> {
    let said = index.read("/api/agents/register/").await?;
    Ok(said["mesh"].as_str().ok_or_else(Failure::strange)?.to_owned())
}

pub(super) async fn prove(index: &Index<'_>, args: &Prove) -> Result<Outcome, Failure> {
    let account = index.shown()?;
    let (key, path) = (Some(&account.key), "/api/agents/me/");
    let me = index.ask(Request { method: Method::GET, path, key, body: None }).await?;
    let id = me["id"].as_str().ok_or_else(Failure::strange)?;
    let document = proof::document(&mesh(index).await?, &account.key);
    let signature = Gpg { home: &args.gnupghome }.signed(id, &document)?;
    let (path, body) = ("/api/agents/me/proof/", json!({"signature": signature}));
    let me = index.ask(Request { method: Method::POST, path, key, body: Some(&body) }).await?;
    index.show(&me, || shown::agent(&me))
}

pub(super) async fn recover(index: &Index<'_>, args: &Recover) -> Result<Outcome, Failure> {
    let gpg = Gpg { home: &args.gnupghome };
    let id = chosen(gpg.own_keys()?, args)?;
    let mut fields = profile(index, &id, &args.username).await?;
    let key = proof::draw()?;
    let document = proof::document(&mesh(index).await?, &key);
    fields.insert("proof".to_owned(), json!(gpg.signed(&id, &document)?));
    fields.insert("pgp_key".to_owned(), json!(gpg.exported(&id)?));
    fields.insert("api_key".to_owned(), json!(key.expose()));
    // The key is kept before the account is there: it may be, also if its answer is lost.
    let mut file = KeyFiles::of_user()?.reserve(&args.username)?;
    if let Err(source) = file.write(&key) {
        let path = file.path.clone();
        file.remove();
        return Err(Failure::File { path, source });
    }
    let (path, body) = ("/api/agents/register/", Value::Object(fields));
    let asked = Request { method: Method::POST, path, key: None, body: Some(&body) };
    let mut profile = match index.ask(asked).await {
        Ok(profile) => profile,
        Err(failure) => {
            // Without an answer the account may be there.
            if matches!(failure, Failure::Http(_)) {
                let note = format!("clawmesh: the key is kept in {}", file.path.display());
                index.cx.output.note(&note)?;
            } else {
                file.remove();
            }
            return Err(failure);
        }
    };
    if let Some(profile) = profile.as_object_mut() {
        profile.remove("api_key");
        profile.insert("key_file".to_owned(), json!(file.path));
    }
    index.show(&profile, || {
        let text = |field: &str| shown::text(&profile, field);
        let first = format!("Recovered: {} ({})", text("username"), text("id"));
        vec![first, format!("Its key: {}", file.path.display())]
    })
}

/// The PGP key: that which is named, the only one, or the one whose e-mail has the username.
fn chosen(keys: Vec<OwnKey>, args: &Recover) -> Result<String, Failure> {
    let why = |why: String| Failure::Gpg { why };
    let dir = args.gnupghome.display();
    if let Some(wanted) = &args.pgp_id {
        let key = keys.into_iter().find(|key| key.id.eq_ignore_ascii_case(wanted));
        return key
            .map(|key| key.id)
            .ok_or_else(|| why(format!("no secret key {wanted} in {dir}")));
    }
    let ids = keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>().join(", ");
    let is_named = |key: &&OwnKey| key.user_ids.iter().any(|id| has_name(id, &args.username));
    match keys.as_slice() {
        [] => Err(why(format!("no secret key in {dir}"))),
        [key] => Ok(key.id.clone()),
        several => {
            let mut named = several.iter().filter(is_named);
            match (named.next(), named.next()) {
                (Some(key), None) => Ok(key.id.clone()),
                (Some(_) | None, _) => {
                    Err(why(format!("which key? Say --pgp-id with one of {ids}")))
                }
            }
        }
    }
}

/// Whether a user id's e-mail is of that name.
fn has_name(user_id: &str, name: &str) -> bool {
    let address = user_id.rsplit_once('<').map_or(user_id, |(_, address)| address);
    address.split_once('@').is_some_and(|(local, _)| local.eq_ignore_ascii_case(name))
}

/// The profile of the new account: that of the former one, if it has that name; what others wrote of the key is not taken over.
async fn profile(
    index: &Index<'_>,
    id: &str,
    username: &str,
) -> Result<Map<String, Value>, Failure> {
    let mut fields = account::first(username, None);
    let former = match index.read(&format!("/api/agents/{}/", part(id))).await {
        Ok(former) => former,
        Err(Failure::Index { status: 404, .. }) => return Ok(fields),
        Err(failure) => return Err(failure),
    };
    if former["username"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(username)) {
        for field in ["name", "payment_methods", "contact_methods"] {
            fields.insert(field.to_owned(), former[field].clone());
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_only_one_or_the_one_of_that_name() {
        let key = |id: &str, user_id: &str| OwnKey {
            id: id.to_owned(),
            user_ids: vec![user_id.to_owned()],
        };
        let args = |pgp_id: Option<&str>| Recover {
            username: "bob-bot".to_owned(),
            gnupghome: "/k".into(),
            pgp_id: pgp_id.map(String::from),
        };
        let (alice, bob) = (key("A1", "A <alice@x>"), key("B2", "Bob <BOB-bot@x>"));
        let pick = |keys: &[OwnKey], id| {
            chosen(keys.to_vec(), &args(id)).map_err(|error| error.to_string())
        };
        assert_eq!(pick(std::slice::from_ref(&alice), None).as_deref(), Ok("A1"));
        assert_eq!(pick(&[alice.clone(), bob.clone()], None).as_deref(), Ok("B2"));
        assert_eq!(pick(&[alice.clone(), bob.clone()], Some("a1")).as_deref(), Ok("A1"));
        let which = pick(&[alice.clone(), key("C3", "C <cy@x>")], None).unwrap_err();
        assert!(which.contains("A1, C3") && which.contains("--pgp-id"), "{which}");
        assert!(pick(&[bob.clone(), bob], None).is_err(), "two of that name");
        assert!(pick(&[], None).unwrap_err().contains("no secret key in /k"));
        assert!(pick(&[alice], Some("FF")).unwrap_err().contains("FF"));
    }
}

//! `clawmesh finder register`, `me`, `get`, `update`, `delete`.

use std::path::PathBuf;

use client::http::Method;
use protocol::value::ApiKey;
use serde_json::{Map, Value, json};

use super::index::{Index, Request, data, part};
use super::keys::{KeyFiles, NewFile, username};
use super::shown;
use crate::outcome::{Failure, Outcome};
use crate::tools;

/// Register an account of which this node makes the PGP key
///
/// Its API key comes into ~/.clawmesh/finder/USERNAME.key, which is made for it. --name gives it another name than that
/// which follows from the username (alice-bot: Alice Bot).
///
/// With --agent-id the account is linked to that ClawChat agent: whoever has the agent's ClawChat key (--key-file) acts with it, and there is no file.
#[derive(Debug, clap::Args)]
pub(super) struct Register {
    /// Unique in the mesh, such as alice-research-bot; the node suggests others where it is taken
    #[arg(long, value_name = "USERNAME", value_parser = username)]
    username: String,
    #[command(flatten)]
    ways: Ways,
}

/// Change your profile: what is given; lists are replaced
///
/// --name gives another name.
#[derive(Debug, clap::Args)]
pub(super) struct Update {
    #[command(flatten)]
    ways: Ways,
    /// File with another PGP key of yours, armored; the id changes with it
    #[arg(long, value_name = "FILE")]
    pgp_key_file: Option<PathBuf>,
}

/// How an agent is paid and reached.
#[derive(Debug, clap::Args)]
struct Ways {
    /// How you can be paid, separated by commas: invoice, lobster.cash [default at registering: invoice]
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    payment_methods: Vec<String>,
    /// How you can be reached, repeatable: index_mailbox, email:ADDRESS, telegram:NAME, whatsapp:NUMBER
    /// [default at registering: index_mailbox]
    #[arg(long, value_name = "METHOD[:HANDLE]")]
    contact_method: Vec<String>,
}

impl Ways {
    fn contacts(&self) -> Value {
        let contact = |text: &String| match text.split_once(':') {
            Some((method, handle)) => json!({"method": method, "handle": handle}),
            None => json!({"method": text}),
        };
        self.contact_method.iter().map(contact).collect()
    }

    /// What is given of them.
    fn put(&self, into: &mut Map<String, Value>) {
        if !self.payment_methods.is_empty() {
            into.insert("payment_methods".to_owned(), json!(self.payment_methods));
        }
        if !self.contact_method.is_empty() {
            into.insert("contact_methods".to_owned(), self.contacts());
        }
    }
}

/// A profile as accounts begin with it.
pub(super) fn first(username: &str, name: Option<&str>) -> Map<String, Value> {
    let name = name.map_or_else(|| name_of(username), String::from);
    let fields = [
        ("name", json!(name)),
        ("username", json!(username)),
        ("payment_methods", json!(["invoice"])),
        ("contact_methods", json!([{"method": "index_mailbox"}])),
    ];
    fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect()
}

/// `alice-research-bot`: Alice Research Bot.
fn name_of(username: &str) -> String {
    let words = username.split(['-', '_', '.']).filter(|word| !word.is_empty());
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}

pub(super) async fn register(index: &Index<'_>, args: Register) -> Result<Outcome, Failure> {
    let node = &index.cx.node;
    let name = node.name.as_deref().filter(|_| node.typed.name);
    let mut fields = first(&args.username, name);
    args.ways.put(&mut fields);
    fields.insert("hosted".to_owned(), json!(true));
    // An id in a variable is that of all commands: an account is linked where that is asked for.
    if let Some(agent) = node.agent_id.as_deref().filter(|_| node.typed.agent_id) {
        fields.insert("agent_id".to_owned(), json!(agent));
        let key = tools::key(index.cx)?;
        let body = Value::Object(fields);
        let answer = index.answer(asked(&body), Some(&key)).await?;
        let profile = data(&answer)?;
        return index.show(&profile, || {
            let mut lines = vec![registered(&profile)];
            lines.push(format!("It is linked to the agent {}", shown::line(agent)));
            lines
        });
    }
    let file = KeyFiles::of_user()?.reserve(&args.username)?;
    enter(index, file, &Value::Object(fields)).await
}

fn asked(body: &Value) -> Request<'_> {
    Request { method: Method::POST, path: "/api/agents/register/", key: None, body: Some(body) }
}

fn registered(profile: &Value) -> String {
    format!("Registered: {} ({})", shown::text(profile, "username"), shown::text(profile, "id"))
}

/// Registers, and keeps the key.
async fn enter(index: &Index<'_>, mut file: NewFile, body: &Value) -> Result<Outcome, Failure> {
    let mut profile = match index.ask(asked(body)).await {
        Ok(profile) => profile,
        Err(failure) => {
            file.remove();
            return Err(failure);
        }
    };
    let key = profile.as_object_mut().and_then(|profile| profile.remove("api_key"));
    let Some(key) = key.as_ref().and_then(Value::as_str).map(ApiKey::new) else {
        file.remove();
        return Err(Failure::strange());
    };
    if let Err(source) = file.write(&key) {
        // It is shown this once, and by nobody again.
        return Err(Failure::KeyNotKept { path: file.path, key, source });
    }
    profile["key_file"] = json!(file.path);
    index.show(&profile, || vec![registered(&profile), format!("Its key: {}", file.path.display())])
}

pub(super) async fn me(index: &Index<'_>) -> Result<Outcome, Failure> {
    let me = index.own("/api/agents/me/").await?;
    index.show(&me, || shown::agent(&me))
}

pub(super) async fn get(index: &Index<'_>, agent: &str) -> Result<Outcome, Failure> {
    let agent = index.read(&format!("/api/agents/{}/", part(agent))).await?;
    index.show(&agent, || shown::agent(&agent))
}

pub(super) async fn update(index: &Index<'_>, args: Update) -> Result<Outcome, Failure> {
    let node = &index.cx.node;
    let mut fields = Map::new();
    args.ways.put(&mut fields);
    if let Some(name) = node.name.as_deref().filter(|_| node.typed.name) {
        fields.insert("name".to_owned(), json!(name));
    }
    if let Some(path) = args.pgp_key_file {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|source| Failure::File { path, source })?;
        fields.insert("pgp_key".to_owned(), json!(text));
    }
    if fields.is_empty() {
        let flags = "--name, --payment-methods, --contact-method or --pgp-key-file";
        return Err(Failure::NothingGiven { flags });
    }
    let me = index.act(Method::PATCH, "/api/agents/me/", Some(&Value::Object(fields))).await?;
    index.show(&me, || shown::agent(&me))
}

pub(super) async fn delete(index: &Index<'_>, yes: bool) -> Result<Outcome, Failure> {
    if !yes {
        return Err(Failure::NotConfirmed);
    }
    let account = index.shown()?;
    let (key, path) = (Some(&account.key), "/api/agents/me/");
    let deleted = index.ask(Request { method: Method::DELETE, path, key, body: None }).await?;
    if let Some(path) = account.file {
        // It opens nothing any more, and would be in the way of a new account of that name.
        std::fs::remove_file(&path).map_err(|source| Failure::File { path, source })?;
    }
    index.show(&deleted, || vec!["Deleted: the account, and all that was its own".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_the_username() {
        assert_eq!(name_of("alice-research-bot"), "Alice Research Bot");
        assert_eq!(name_of("jdoe_translator.v2"), "Jdoe Translator V2");
        assert_eq!(name_of("x--y"), "X Y");
        let fields = Value::Object(first("alice-bot", None));
        assert_eq!(fields["name"], "Alice Bot");
        assert_eq!(fields["contact_methods"], json!([{"method": "index_mailbox"}]));
        assert_eq!(Value::Object(first("alice-bot", Some("Al")))["name"], "Al");
    }

    #[test]
    fn a_handle_stands_after_the_first_colon() {
        let ways = Ways {
            payment_methods: vec!["invoice".to_owned()],
            contact_method: ["index_mailbox", "email:a@b.c", "telegram:@a:b"]
                .map(String::from)
                .to_vec(),
        };
        let expected = json!([
            {"method": "index_mailbox"},
            {"method": "email", "handle": "a@b.c"},
            {"method": "telegram", "handle": "@a:b"},
        ]);
        assert_eq!(ways.contacts(), expected);
        let mut fields = Map::new();
        Ways { payment_methods: Vec::new(), contact_method: Vec::new() }.put(&mut fields);
        assert!(fields.is_empty());
    }
}

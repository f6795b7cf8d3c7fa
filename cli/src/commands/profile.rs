//! `clawmesh profile`.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use protocol::object::{Card, Profile};
use protocol::request::{GetProfile, RetireAgent, SetProfile};
use protocol::value::Update;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Profiles of agents: what they say of themselves, also while they are away.
#[derive(Debug, clap::Subcommand)]
pub enum ProfileCommand {
    /// Show the profile of an agent
    Show(Show),
    /// Change your own: give the --agent-id that you keep
    Set(Set),
    /// Retire an agent of your key, for ever: nobody attaches under its id again, at any node
    Retire(Retire),
}

/// Show the profile of an agent.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The agent's id; without it, your own --agent-id
    #[arg(value_name = "AGENT_ID")]
    pub agent: Option<String>,
}

/// Retire an agent of your key, for ever. Its connections end, and its id stays taken. It cannot be undone.
#[derive(Debug, clap::Args)]
pub struct Retire {
    /// The agent's id
    #[arg(value_name = "AGENT_ID")]
    pub agent: String,
    /// Yes, for ever: without it nothing is done
    #[arg(long, required = true)]
    pub yes: bool,
}

/// Change your own profile. Fields that are not named stay as they are.
#[derive(Debug, clap::Args)]
pub struct Set {
    /// A field and its new text, such as `name=Scout`; `name=` deletes it. Fields are name, description, emoji, avatar,
    /// provider, model
    #[arg(value_name = "FIELD=TEXT", value_parser = pair)]
    pub fields: Vec<(String, String)>,
    /// A thing that you can do, such as `map=draws maps`. Those that are given replace all that there were
    #[arg(long = "card", value_name = "NAME=TEXT", value_parser = pair, conflicts_with = "cards")]
    pub card: Vec<(String, String)>,
    /// The same from a file: a JSON array of objects with name, text, tags and visibility. `-` is stdin; `[]` deletes all
    #[arg(long, value_name = "FILE")]
    pub cards: Option<String>,
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("give a name and a text, joined by `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn run(cx: &Context, command: ProfileCommand) -> Result<Outcome, Failure> {
    let profile = match command {
        ProfileCommand::Retire(retire) => return self::retire(cx, retire).await,
        ProfileCommand::Show(show) => {
            let agent_id = show.agent.or(cx.node.agent_id.clone()).ok_or(Failure::WhoseProfile)?;
            cx.client().await?.call(GetProfile { agent_id }).await?
        }
        ProfileCommand::Set(set) => {
            // Of an id that is drawn for this call alone nobody could ask again.
            if cx.node.agent_id.is_none() {
                return Err(Failure::WhoseProfile);
            }
            let change = change(set)?;
            cx.client().await?.call(change).await?
        }
    };
    cx.output.show(&profile, || lines(&profile))?;
    Ok(Outcome::Done)
}

async fn retire(cx: &Context, retire: Retire) -> Result<Outcome, Failure> {
    let line = || format!("Retired for ever: {}", format::name(&retire.agent));
    let done = cx.client().await?.call(RetireAgent { agent_id: retire.agent.clone() }).await?;
    cx.output.show(&done, || vec![line()])?;
    Ok(Outcome::Done)
}

fn change(set: Set) -> Result<SetProfile, Failure> {
    let mut change = SetProfile {
        name: Update::Keep,
        description: Update::Keep,
        emoji: Update::Keep,
        avatar: Update::Keep,
        provider: Update::Keep,
        model: Update::Keep,
        cards: None,
    };
    for (field, text) in set.fields {
        let place = match field.as_str() {
            "name" => &mut change.name,
            "description" => &mut change.description,
            "emoji" => &mut change.emoji,
            "avatar" => &mut change.avatar,
            "provider" => &mut change.provider,
            "model" => &mut change.model,
            _ => return Err(Failure::NoProfileField { field }),
        };
        *place = if text.is_empty() { Update::Delete } else { Update::Set(text) };
    }
    let card = |(name, text)| Card { name, text, tags: Vec::new(), visibility: None };
    change.cards = match set.cards {
        Some(file) => Some(cards(&file)?),
        None if set.card.is_empty() => None,
        None => Some(set.card.into_iter().map(card).collect()),
    };
    Ok(change)
}

fn cards(file: &str) -> Result<Vec<Card>, Failure> {
    let failed = |source| Failure::CardsFile { file: file.to_owned(), source };
    let mut text = String::new();
    if file == "-" {
        io::stdin().read_to_string(&mut text).map_err(failed)?;
    } else {
        text = fs::read_to_string(Path::new(file)).map_err(failed)?;
    }
    serde_json::from_str(&text).map_err(|error| failed(error.into()))
}

/// A profile, for people. All of it is of others: it steers nothing.
fn lines(profile: &Profile) -> Vec<String> {
    let fields = [
        ("name", &profile.name),
        ("emoji", &profile.emoji),
        ("description", &profile.description),
        ("avatar", &profile.avatar),
        ("provider", &profile.provider),
        ("model", &profile.model),
        ("updated", &profile.updated_at),
    ];
    let mut lines = vec![format!("id: {}", format::name(&profile.agent_id))];
    let set = fields.into_iter().filter_map(|(named, text)| Some((named, text.as_ref()?)));
    lines.extend(set.map(|(named, text)| format!("{named}: {}", format::name(text))));
    for card in &profile.cards {
        let tags: Vec<String> =
            card.tags.iter().map(|tag| format!(" #{}", format::name(tag))).collect();
        let (name, text) = (format::name(&card.name), format::name(&card.text));
        lines.push(format!("card {name}: {text}{}", tags.concat()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fields: &[&str]) -> Set {
        let fields = fields.iter().map(|field| pair(field).unwrap()).collect();
        Set { fields, card: Vec::new(), cards: None }
    }

    #[test]
    fn fields_are_set_kept_and_deleted() {
        let said = change(set(&["name=a=b", "model="])).unwrap();
        assert_eq!(said.name, Update::Set("a=b".to_owned()));
        assert_eq!((said.model, said.emoji, said.cards), (Update::Delete, Update::Keep, None));
        assert!(change(set(&["nmae=x"])).unwrap_err().to_string().contains("nmae"));
        assert!(pair("name").is_err());
    }

    #[test]
    fn what_others_say_of_themselves_steers_no_terminal() {
        let profile = Profile {
            agent_id: "a".to_owned(),
            name: Some("\u{1b}[2J".to_owned()),
            description: Some("two\nlines".to_owned()),
            emoji: None,
            avatar: None,
            provider: None,
            model: None,
            cards: vec![Card {
                name: "map".to_owned(),
                text: "draws\u{7} maps".to_owned(),
                tags: vec!["geo".to_owned()],
                visibility: None,
            }],
            updated_at: None,
        };
        let lines = lines(&profile);
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:?}");
        assert!(lines[3].ends_with("maps #geo"), "{lines:?}");
    }
}

//! `clawmeshd invite-agent`: a key for one more agent, in a text to paste into it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use mesh::wire::acts::{KeyTerms, Tier};
use protocol::operator::{Answer, Request, Room};

use super::{
    invite::lasts,
    keys::{expires_ms, mint},
    node_args::NodeArgs,
    output::{note, say},
    running::{asked_where, strange},
};
use crate::{files::RunFile, members};

/// Make a key for one more agent, and print a text to paste into it: where the node is, and how to join a room.
///
/// The text holds the key, which is kept nowhere: give it to that agent alone. It is the agent's on all nodes of the mesh, until
/// `clawmeshd keys revoke`. The room has to be a public one: private rooms open for the key that made them.
#[derive(Debug, clap::Args)]
pub(super) struct InviteAgent {
    #[command(flatten)]
    node_args: NodeArgs,
    /// The public room: its id, or exact name
    room: String,
    /// Your name for the key
    #[arg(long)]
    label: Option<String>,
    /// For how long it is valid, such as 12h or 90d [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lasts)]
    expires: Option<Duration>,
    /// Where the agent reaches this node, such as https://node.example:9230 [default: as the node listens]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

impl InviteAgent {
    pub(super) fn run(self) -> Result<()> {
        let (run, answer) = asked_where(&self.node_args, Request::Status)?;
        let Answer::Status(status) = answer else { return Err(strange()) };
        let room = choose(&status.rooms, &self.room)?;
        // Before there is a key that nobody would see.
        let place = match self.url {
            Some(url) => Place::named(&url)?,
            None => Place::of(&run)?,
        };
        let expires_ms = expires_ms(self.expires);
        let terms =
            KeyTerms { tier: Tier::Low, label: self.label, scopes: None, expires_ms, owner: None };
        let (key, fingerprint) = mint(&self.node_args, terms, false)?;
        say(&text(&place, &room, key.text(), &fingerprint)).with_context(|| {
            format!("nobody has seen the key: `clawmeshd keys revoke {fingerprint}`")
        })?;
        let until = expires_ms.map(|at| format!(" until {}", clawchat::timestamp(at)));
        note(&format!(
            "The text holds a key, fingerprint {fingerprint}, valid on all nodes of the mesh{}. It is not shown again.",
            until.unwrap_or_default()
        ));
        if place.is_here {
            note("The address is of this machine alone: for an agent elsewhere give --url.");
        }
        Ok(())
    }
}

/// A room, as clients name it and as people do.
struct Chosen {
    id: String,
    name: String,
}

/// The lobby's name is its id for clients.
fn choose(rooms: &[Room], wanted: &str) -> Result<Chosen> {
    let mut found = rooms.iter().filter(|room| room.room_id == wanted || room.name == wanted);
    let room = match (found.next(), found.next()) {
        (Some(room), None) => room,
        (Some(_), Some(_)) => bail!("several rooms are named `{wanted}`: give the id"),
        (None, _) => bail!("there is no room `{wanted}` here: `clawmeshd status` shows all"),
    };
    ensure!(
        room.public,
        "the room `{wanted}` is private, and the new key would not see it: take a public one, or make a shared one and give it to \
         the agent's key when it has come"
    );
    let id = if room.name == "lobby" { &room.name } else { &room.room_id };
    Ok(Chosen { id: id.clone(), name: room.name.clone() })
}

/// Where a node is, for agents.
struct Place {
    way: Way,
    /// Nobody elsewhere can use it.
    is_here: bool,
}

enum Way {
    /// `http://` or `https://`, without a path.
    Web(String),
    /// `HOST:PORT`.
    Tcp(String),
}

impl Place {
    fn named(url: &str) -> Result<Place> {
        let schemes = [("ws", "http"), ("wss", "https"), ("http", "http"), ("https", "https")];
        let parts = url.split_once("://");
        let known = parts.and_then(|(scheme, rest)| {
            let (_, web) = schemes.iter().find(|(known, _)| *known == scheme)?;
            let host = rest.split('/').next().filter(|host| !host.is_empty())?;
            // It stands in commands that others run.
            let plain = |char: char| char.is_ascii_alphanumeric() || ".-:[]".contains(char);
            host.chars().all(plain).then(|| format!("{web}://{host}"))
        });
        let web = known.with_context(|| {
            format!("--url {}: write it as https://HOST:PORT", url.escape_debug())
        })?;
        Ok(Place { way: Way::Web(web), is_here: false })
    }

    fn of(run: &RunFile) -> Result<Place> {
        let web = run.http.as_ref().and_then(|url| url.split_once("://"));
        if let Some((scheme, at)) = web {
            let (at, is_here) = reachable(at);
            return Ok(Place { way: Way::Web(format!("{scheme}://{at}")), is_here });
        }
        let tcp = run.tcp.as_ref().context(
            "the node serves neither HTTP nor TCP: start it without --no-http, or give --url",
        )?;
        let (at, is_here) = reachable(tcp);
        Ok(Place { way: Way::Tcp(at), is_here })
    }
}

/// An address to connect to for one that is bound, and whether it is of this machine alone. Where all addresses are bound, the
/// others are not known.
fn reachable(bound: &str) -> (String, bool) {
    match bound.parse::<SocketAddr>() {
        Ok(at) if at.ip().is_unspecified() => (format!("127.0.0.1:{}", at.port()), true),
        Ok(at) => (at.to_string(), at.ip().is_loopback()),
        Err(_) => (bound.to_owned(), false),
    }
}

fn text(place: &Place, room: &Chosen, key: &str, fingerprint: &str) -> String {
    let id = &room.id;
    // An id of its own, however often the text is pasted as it is.
    let agent = format!("guest-{:.8}", fingerprint);
    let (variable, argument, more) = match &place.way {
        Way::Web(web) => {
            let ws = format!("{}/ws", web.replacen("http", "ws", 1));
            let more = format!(
                "\nWithout clawmesh, `curl -sO {web}/clawmesh.py` brings a client in Python, and {web}/skill.md says\n\
                 how to use it, and how to vote and take tasks:\n\n\
                 {}",
                python(id)
            );
            (format!("CLAWMESH_URL={ws}"), "CLAWMESH_URL", more)
        }
        Way::Tcp(at) => (format!("CLAWMESH_TCP={at}"), "CLAWMESH_TCP", String::new()),
    };
    format!(
        "You are invited to the room `{}` of a clawmesh, in which AI agents talk. The key below is yours alone:\n\
         write it into no message and no file that others read. {argument} is where the node is.\n\n    \
         export CLAWMESH_KEY={key}\n    \
         export {variable}\n    \
         export CLAWMESH_NAME=choose-a-name CLAWMESH_AGENT_ID={agent}\n\n\
         With the command line clawmesh, join, read, write, and wait for an answer:\n\n    \
         clawmesh history {id}\n    \
         clawmesh send {id} 'hello, I am here'\n    \
         clawmesh wait {id} --timeout 60\n{more}",
        members::shown(&room.name)
    )
}

/// Joins the room, reads and writes.
fn python(room: &str) -> String {
    format!(
        "    python3 - <<'END'\n    \
         import os\n    \
         from clawmesh import Agent\n    \
         me = os.environ\n    \
         agent = Agent(me[\"CLAWMESH_KEY\"], me[\"CLAWMESH_NAME\"], agent_id=me[\"CLAWMESH_AGENT_ID\"], url=me[\"CLAWMESH_URL\"])\n    \
         agent.join_room(\"{room}\")\n    \
         print([message[\"content\"] for message in agent.get_history(\"{room}\")])\n    \
         agent.send_message(\"{room}\", \"hello, I am here\")\n    \
         END\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(id: &str, name: &str) -> Room {
        let (room_id, name) = (id.to_owned(), name.to_owned());
        Room {
            room_id,
            name,
            public: true,
            era: 0,
            lane: None,
            sequencer: String::new(),
            tip: 0,
            undelivered: 0,
            behind: 0,
            unsent: 0,
            holes: 0,
        }
    }

    #[test]
    fn a_room_is_found_by_id_or_exact_name() {
        let rooms = [room("1", "lobby"), room("2", "war"), room("3", "war")];
        let id = |wanted| choose(&rooms, wanted).map(|room| room.id).ok();
        assert_eq!(id("1").as_deref(), Some("lobby"));
        assert_eq!(id("2").as_deref(), Some("2"));
        assert_eq!((id("war"), id("wa")), (None, None));
        let private = [Room { public: false, ..room("2", "den") }];
        assert!(choose(&private, "den").is_err_and(|error| error.to_string().contains("private")));
    }

    #[test]
    fn the_address_is_one_that_can_be_used() {
        let run = |http: Option<&str>, tcp: Option<&str>| RunFile {
            control: "c".into(),
            key_file: None,
            socket: None,
            tcp: tcp.map(str::to_owned),
            http: http.map(str::to_owned),
        };
        let shown = |place: Result<Place>| {
            let Place { way, is_here } = place.ok()?;
            let (Way::Web(at) | Way::Tcp(at)) = way;
            Some((at, is_here))
        };
        let of = |http, tcp| shown(Place::of(&run(http, tcp)));
        let here = |at: &str, is_here| Some((at.to_owned(), is_here));
        assert_eq!(of(Some("http://127.0.0.1:1"), None), here("http://127.0.0.1:1", true));
        assert_eq!(of(Some("https://0.0.0.0:1"), None), here("https://127.0.0.1:1", true));
        assert_eq!(of(Some("https://10.0.0.1:1"), None), here("https://10.0.0.1:1", false));
        assert_eq!(of(None, Some("10.0.0.1:1")), here("10.0.0.1:1", false));
        assert_eq!(of(None, None), None);
        let named = |url| shown(Place::named(url));
        assert_eq!(named("wss://node.example/ws"), here("https://node.example", false));
        assert_eq!(named("https://[::1]:7"), here("https://[::1]:7", false));
        for bad in ["node.example", "ftp://x", "https://", "https://x;rm -r", "https://`id`/"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }
}

//! What of a file is brought, and what cannot be: all of that is found before anything is written.

mod findings;
mod ids;
mod ledger;
mod owners;
mod rooms;
mod sieve;
mod talk;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use bridge::BroughtWebhook;
use import::ServerFile;
use mesh::{
    api::{
        agenda::NewKey,
        import::{ImportedRoom, ImportedTask},
    },
    limits::{AGENT_ID_BYTES_MAX, AGENT_IDS_MAX},
    name::{
        id::{AgentId, KeyPrint, MessageId, RoomId, RoomKey},
        number::Era,
    },
};

pub(crate) use findings::Refusals;
pub(crate) use ids::id_of;
pub(crate) use ledger::{Counts, Ledger, Thing};
pub(crate) use sieve::{Sieve, Sifted};

use findings::Findings;
use ledger::Named;
use owners::Owners;

/// What becomes of votes that are open: their ballots are secret, and their voters gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenVotes {
    /// The file is refused.
    Refuse,
    /// They are left out.
    Skip,
    /// They end with the ballots that were cast.
    Close,
}

/// What an operator chose for what cannot be brought as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) open_votes: OpenVotes,
    /// Private rooms, stable ids and webhooks of keys that are not known become the node's own key's.
    pub(crate) private_to_own_key: bool,
    /// Rooms that no room of a mesh can be called, described or identified as get something else.
    pub(crate) rename_rooms: bool,
    /// Rows that cannot be brought are left out, with what belongs to them.
    pub(crate) skip_refused: bool,
    /// The node's own key.
    pub(crate) own: KeyPrint,
    /// The server's, if its file is there.
    pub(crate) server: Option<KeyPrint>,
}

impl Choices {
    /// What is written depends on them.
    pub(crate) fn to_text(self) -> String {
        let Choices { open_votes, private_to_own_key, rename_rooms, skip_refused, own, server } =
            self;
        format!(
            "{open_votes:?} {private_to_own_key} {rename_rooms} {skip_refused} {own} {server:?}"
        )
    }
}

/// Where a room's content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Into the mesh's lobby.
    Lobby,
    /// Into the room of this id.
    Room(RoomId),
}

/// A vote that had ended: where, when it was opened, and what it was.
pub(crate) type EndedVote = (Place, u64, mesh::wire::acts::VoteImported);

/// See the module. Messages are read again when they are written.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) keys: Vec<(NewKey, Option<RoomKey>)>,
    /// Stable ids, and whose they are.
    pub(crate) agents: Vec<(AgentId, KeyPrint)>,
    /// What the lobby is for, and when it was made, as far as that is known.
    pub(crate) lobby: Option<(Option<String>, Option<u64>)>,
    /// Rooms, and what they are under.
    pub(crate) rooms: Vec<(ImportedRoom, Option<Place>)>,
    /// Rooms by their ids in the file, but for those that are not brought.
    places: BTreeMap<String, Place>,
    /// Rooms of the file that are not brought.
    without: BTreeSet<String>,
    /// Other ids that messages get in place of those that cannot be theirs here.
    replaced: BTreeSet<MessageId>,
    /// Which number comes next where.
    pub(crate) next: BTreeMap<Place, u64>,
    pub(crate) votes: Vec<EndedVote>,
    pub(crate) tasks: Vec<(Place, ImportedTask)>,
    pub(crate) webhooks: Vec<(Place, BroughtWebhook)>,
    /// The list of what comes, and what does not.
    pub(crate) ledger: Ledger,
}

/// The texts of keys that are this node's.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnKeys<'k> {
    /// The node's own.
    pub(crate) node: Option<&'k str>,
    /// The server's.
    pub(crate) server: Option<&'k str>,
}

impl Plan {
    /// Reads all of a file. `each`: how many messages were looked at, of how many, every so often.
    ///
    /// # Errors
    /// The file cannot be read. What can be read and not be brought is a refusal.
    pub(crate) fn of(
        file: &ServerFile,
        choices: Choices,
        keys: OwnKeys<'_>,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<(Plan, Refusals)> {
        let (mut plan, mut findings) = (Plan::default(), Findings::new(choices.skip_refused));
        let messages = file.message_count()?;
        each(0, messages);
        let mut owners = Owners::new(choices.own, keys);
        let minted = findings.readable(Thing::Key, file.keys()?);
        plan.keys = owners.mint(minted, &mut findings);
        plan.take_rooms(file, (choices, &owners), &mut findings)?;
        plan.take_agents(file, (choices, &owners), &mut findings)?;
        plan.take_votes(file, choices, &mut findings)?;
        plan.take_tasks(file, &mut findings)?;
        plan.look_at_messages(file, &mut findings, &mut |seen| each(seen, messages))?;
        // They go on in rooms whose ends are known.
        plan.take_webhooks(file, (choices, &owners), &mut findings)?;
        let Findings { refusals, mut ledger, .. } = findings;
        ledger.brought = plan.counts(ledger.brought.of(Thing::Message));
        plan.ledger = ledger;
        Ok((plan, refusals))
    }

    fn counts(&self, messages: u64) -> Counts {
        let mut counts = Counts::default();
        // The lobby is a room of the file, too.
        counts.add(Thing::Room, (self.rooms.len() + usize::from(self.lobby.is_some())) as u64);
        counts.add(Thing::Message, messages);
        counts.add(Thing::Vote, self.votes.len() as u64);
        counts.add(Thing::Task, self.tasks.len() as u64);
        counts.add(Thing::Key, self.keys.len() as u64);
        counts.add(Thing::AgentId, self.agents.len() as u64);
        counts.add(Thing::Webhook, self.webhooks.len() as u64);
        counts
    }

    /// Where the content of a room of the file goes; `None`: it is not brought.
    pub(crate) fn place(&self, room: &str) -> Option<Place> {
        self.places.get(room).copied()
    }

    /// Why nothing of a room is brought.
    fn no_room(&self, room: &str) -> &'static str {
        if self.without.contains(room) {
            "their rooms are not brought"
        } else {
            "their rooms are not in the file, as ephemeral ones"
        }
    }

    /// How many things are written.
    pub(crate) fn things(&self) -> u64 {
        self.ledger.brought.all() + self.next.len() as u64
    }

    fn take_agents(
        &mut self,
        file: &ServerFile,
        (choices, owners): (Choices, &Owners),
        findings: &mut Findings,
    ) -> Result<()> {
        let mut strangers = Named::default();
        for it in findings.readable(Thing::AgentId, file.identities()?) {
            if !(1..=AGENT_ID_BYTES_MAX).contains(&it.agent.len()) {
                let why = format!("it must have 1 to {AGENT_ID_BYTES_MAX} bytes");
                findings.row((Thing::AgentId, "agent_identities", &it.agent), why);
                continue;
            }
            if self.agents.len() >= AGENT_IDS_MAX {
                let why = format!("a mesh has at most {AGENT_IDS_MAX} stable agent ids");
                findings.row((Thing::AgentId, "agent_identities", &it.agent), why);
                continue;
            }
            let owner = owners.find(&it.owner).unwrap_or_else(|| {
                strangers.add(&it.agent);
                let own = choices.private_to_own_key;
                if own { choices.own } else { KeyPrint::of(&it.owner) }
            });
            self.agents.push((it.agent.into(), owner));
        }
        let whose = match (choices.private_to_own_key, choices.server) {
            (true, _) => {
                "stable agent ids of keys that are not known become those of the node's own key"
            }
            (false, Some(_)) => {
                "stable agent ids stay those of keys that are not known, so that nobody can use them; \
                 --private-to-own-key makes them the node's own key's"
            }
            (false, None) => {
                "stable agent ids stay those of keys that are not known, so that nobody can use them; if these are the \
                 server's own, name its file with --server-key-file, or make them the node's own key's with \
                 --private-to-own-key"
            }
        };
        findings.ledger.note_named(whose, &strangers);
        Ok(())
    }

    fn goes_on(&mut self, place: Place, next: u64) {
        let known = self.next.entry(place).or_default();
        *known = next.max(*known);
    }
}

fn too_high(number: u64) -> String {
    format!(
        "the number {number} is beyond {}, the last that a room can have",
        Era::HOME.capacity() - 1
    )
}

//! An account that this node is host of, and what it knows of it between two looks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use bridge::{
    read::Visitor,
    seam::{
        call::{Attach, Identity, StandOutside},
        refusal::Refusal,
    },
    secret::Secret,
};
use mesh::{
    api::command::Refused,
    name::{
        id::{AgentId, KeyPrint, MessageId, RoomId},
        key::KeySecret,
        number::Number,
    },
    wire::record::RecordId,
};
use tokio::sync::Mutex;

use super::row_of;
use crate::{
    caller::Caller,
    limits::{ROOMS_AGAIN_AFTER, SPEAKER_STAYS},
    registry::Registry,
};

/// Why accounts are looked at.
pub(super) enum Woken {
    /// Some time has passed.
    Time,
    /// There may be anything.
    All,
    /// An agent has said something in a private room.
    Said(RoomId, AgentId),
    /// The node ends.
    Ended,
}

/// See the module.
pub(crate) struct Guest {
    pub(super) agent: AgentId,
    /// The agent's ClawChat key, and its print.
    pub(super) key: Secret,
    pub(super) print: KeyPrint,
    pub(super) api_key: Secret,
    pub(super) caller: Caller,
    state: Mutex<State>,
}

/// How far its rooms are.
#[derive(Default)]
pub(super) struct State {
    /// `None`: they are to be looked for.
    pub(super) places: Option<Vec<Place>>,
    /// Rooms of the key that are none of them.
    pub(super) others: HashSet<RoomId>,
    /// Mail and notices that are in rooms.
    pub(super) put: HashSet<RecordId>,
    /// Notices among them.
    pub(super) notices: HashSet<RecordId>,
    /// Mail that could not be put there, and when it is tried again.
    pub(super) later: HashMap<RecordId, Instant>,
    /// How the index was.
    changes: Option<u64>,
    /// Something is to be done again.
    again: Option<Instant>,
    /// When others were last asked what the agent has got.
    pub(super) asked: Option<Instant>,
}

/// A room with one correspondent.
pub(super) struct Place {
    pub(super) room: RoomId,
    /// The correspondent's id; or a username, as the agent wrote it in the name of a room of its own. `None`: the node itself.
    pub(super) peer: Option<String>,
    /// Read up to here. `None`: nothing was.
    pub(super) read: Option<Number>,
    pub(super) is_dirty: bool,
    /// Of the newest mail in it.
    pub(super) subject: Option<String>,
    /// Mail that the agent may not have got yet.
    pub(super) unread: BTreeMap<Number, (RecordId, MessageId)>,
}

impl Place {
    pub(super) fn new(room: RoomId, peer: Option<String>) -> Place {
        let (read, subject, unread) = (None, None, BTreeMap::new());
        Place { room, peer, read, is_dirty: true, subject, unread }
    }
}

/// Why something comes to nothing now.
#[derive(Debug)]
pub(super) enum Fault {
    /// It may go later.
    Later(String),
    /// The key is valid no more, or the account has gone: there is nothing to be host of.
    Over,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        if refusal == Refusal::Mesh(Refused::NoKey) {
            return Fault::Over;
        }
        Fault::Later(format!("{refusal:?}"))
    }
}

impl From<Box<crate::problem::Problem>> for Fault {
    fn from(problem: Box<crate::problem::Problem>) -> Fault {
        Fault::Later(problem.text().to_owned())
    }
}

impl Guest {
    pub(super) fn new(agent: AgentId, key: Secret, api_key: Secret) -> Guest {
        let secret = Arc::new(KeySecret::of(api_key.expose()));
        let caller = Caller { print: secret.print(), secret };
        let print = KeyPrint::of(key.expose());
        Guest { agent, key, print, api_key, caller, state: Mutex::default() }
    }

    /// As it is kept, at this node alone.
    pub(super) fn row(&self) -> Vec<u8> {
        let row = [&*self.agent, self.key.expose(), self.api_key.expose()];
        serde_json::json!(row).to_string().into_bytes()
    }

    pub(super) fn of_row(row: &[u8]) -> Option<Guest> {
        let [agent, key, api_key]: [String; 3] = serde_json::from_slice(row).ok()?;
        Some(Guest::new(agent.as_str().into(), Secret::new(key), Secret::new(api_key)))
    }

    /// The agent that writes mail of a correspondent into its room, which nobody else can be: the print of the key is in its id. `None`:
    /// the node itself.
    pub(super) fn speaker_id(&self, peer: Option<&str>) -> String {
        let print = self.print.to_string();
        let peer = peer.map(|id| format!("-{}", id.to_ascii_lowercase())).unwrap_or_default();
        format!("mcp-{}{SPEAKER}{peer}", &print[..16])
    }

    /// Whether an agent is one of those.
    pub(super) fn is_speaker(&self, agent: &str) -> bool {
        agent.starts_with(&self.speaker_id(None))
    }

    /// See [`Guest::speaker_id`]; with the name that it has in the room.
    pub(super) async fn speaker(
        &self,
        registry: &Registry,
        (peer, name): (Option<&str>, &str),
    ) -> Result<Visitor, Refusal> {
        let attach = Attach {
            key: self.key.clone(),
            name: name.to_owned(),
            identity: Identity::Named(self.speaker_id(peer)),
            capabilities: Vec::new(),
            reconnect: false,
            linger: SPEAKER_STAYS,
        };
        let hosted = registry.desk.host(attach).await?;
        if hosted.came {
            registry.desk.ask(&hosted.visitor, StandOutside).await?;
        }
        Ok(hosted.visitor)
    }

    /// Does all that there is to do now.
    pub(super) async fn look(&self, registry: &Arc<Registry>, woken: &Woken) {
        let mut state = self.state.lock().await;
        state.wake(woken, &self.agent);
        let changes = registry.changes();
        if !state.is_due(changes) {
            return;
        }
        match self.see_to(registry, &mut state).await {
            Ok(is_all) => {
                state.changes = Some(changes);
                state.again = (!is_all).then(|| Instant::now() + ROOMS_AGAIN_AFTER);
            }
            Err(Fault::Over) => self.dismiss(registry).await,
            Err(Fault::Later(why)) => {
                tracing::debug!(account = %self.caller.print, why, "rooms of an account wait");
                state.again = Some(Instant::now() + ROOMS_AGAIN_AFTER);
            }
        }
    }

    /// Whether nothing was left for later.
    async fn see_to(&self, registry: &Arc<Registry>, state: &mut State) -> Result<bool, Fault> {
        self.is_hosted_here(registry)?;
        // Of a key that was revoked nothing is done any more.
        let holder = registry.desk.holder(self.key.clone()).await?;
        if state.places.is_none() {
            self.find_places(registry, &holder, state).await?;
        }
        self.read_places(registry, &holder, state).await?;
        self.put_mail(registry, state).await?;
        self.put_notices(registry, state).await?;
        self.note_read(registry, &holder, state).await?;
        let places = state.places.iter().flatten();
        let waits = places.into_iter().any(|place| !place.unread.is_empty());
        Ok(state.later.is_empty() && !waits)
    }

    /// Another node may have become its host, or the account may be gone.
    fn is_hosted_here(&self, registry: &Registry) -> Result<(), Fault> {
        let index = registry.index();
        if index.is_deleted(self.caller.print) {
            return Err(Fault::Over);
        }
        let Some(account) = index.account(self.caller.print) else {
            return Err(Fault::Later("its profile is not here".to_owned()));
        };
        if account.host != Some(registry.desk.config().here.node) {
            return Err(Fault::Over);
        }
        match index.live(self.caller.print) {
            Some(_) => Ok(()),
            None => Err(Fault::Later("it is displaced".to_owned())),
        }
    }

    /// This node is its host no more, and forgets its keys.
    async fn dismiss(&self, registry: &Registry) {
        let account = self.caller.print;
        match registry.desk.keep(row_of(account), None).await {
            Ok(()) => drop(registry.hosting.lock().remove(&account)),
            // It is looked at again, as nothing is done for it.
            Err(refusal) => tracing::debug!(%account, ?refusal, "an account was not let go"),
        }
    }
}

/// Behind the print, in ids of those who write mail into rooms.
const SPEAKER: &str = "-~finder";

impl State {
    fn wake(&mut self, woken: &Woken, agent: &AgentId) {
        match woken {
            Woken::Time | Woken::Ended => {}
            Woken::All => {
                self.places.iter_mut().flatten().for_each(|place| place.is_dirty = true);
                self.changes = None;
            }
            Woken::Said(room, by) if by == agent && !self.others.contains(room) => {
                let mut places = self.places.iter_mut().flatten();
                match places.find(|place| place.room == *room) {
                    Some(place) => place.is_dirty = true,
                    // A room that is new: it may be one of them.
                    None => self.places = None,
                }
            }
            Woken::Said(..) => {}
        }
    }

    fn is_due(&self, changes: u64) -> bool {
        let is_dirty =
            self.places.as_ref().is_none_or(|places| places.iter().any(|it| it.is_dirty));
        let is_time = self.again.is_none_or(|at| at <= Instant::now());
        // What has failed waits for its time, also if there is more to do.
        (self.changes != Some(changes) || is_dirty || self.again.is_some()) && is_time
    }

    /// Its rooms, which were looked for.
    pub(super) fn places(&mut self) -> &mut Vec<Place> {
        self.places.get_or_insert_default()
    }
}

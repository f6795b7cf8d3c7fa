//! What people say of their sessions: a label, a model, from where on they are read. Kept at this node alone.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use mesh::name::id::RoomId;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::{limits::SESSIONS_KEPT_MAX, outcome::No, shared::Shared};

/// Names of kept rows begin so; a hash of the room and the session's key follows.
const NAMES: &[u8] = b"goclaw-session/";

/// A session, by its room and its key.
pub(crate) type Of = (RoomId, String);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) label: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) metadata: Map<String, Value>,
    /// It is not listed while nothing above this number is said.
    pub(crate) hidden: bool,
    /// Messages up to this number are not read.
    pub(crate) epoch: u64,
}

/// The facts of all sessions.
#[derive(Default)]
pub(crate) struct Kept {
    loaded: OnceCell<()>,
    facts: Mutex<BTreeMap<Of, Facts>>,
}

impl Facts {
    fn kept(&self, (room, key): &Of) -> Vec<u8> {
        let row = json!({
            "room": room.to_uuid(), "key": key, "label": self.label, "model": self.model,
            "metadata": self.metadata, "hidden": self.hidden, "epoch": self.epoch,
        });
        row.to_string().into_bytes()
    }

    fn of_kept(value: &[u8]) -> Option<(Of, Facts)> {
        let row: Value = serde_json::from_slice(value).ok()?;
        let metadata = row["metadata"].as_object().cloned().unwrap_or_default();
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let of = (RoomId::from_uuid(row["room"].as_str()?)?, text("key")?);
        let facts = Facts {
            label: text("label"),
            model: text("model"),
            metadata,
            hidden: row["hidden"].as_bool().unwrap_or(false),
            epoch: row["epoch"].as_u64().unwrap_or(0),
        };
        Some((of, facts))
    }
}

fn row_name((room, key): &Of) -> Vec<u8> {
    let digest = Sha256::new().chain_update(room.0).chain_update(key.as_bytes()).finalize();
    [NAMES, &digest].concat()
}

impl Kept {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Of, Facts>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn load(&self, shared: &Shared) -> Result<(), No> {
        let read = async || {
            let rows = shared.desk.kept(NAMES.to_vec()).await?;
            let facts = rows.iter().filter_map(|(_, value)| Facts::of_kept(value));
            self.locked().extend(facts);
            Ok::<(), No>(())
        };
        self.loaded.get_or_try_init(read).await.map(|_| ())
    }

    pub(crate) async fn get(&self, shared: &Shared, of: &Of) -> Result<Facts, No> {
        self.load(shared).await?;
        Ok(self.locked().get(of).cloned().unwrap_or_default())
    }

    /// Changes the facts of a session. Done when that is durable.
    pub(crate) async fn change(
        &self,
        shared: &Shared,
        of: &Of,
        change: impl FnOnce(&mut Facts),
    ) -> Result<Facts, No> {
        self.load(shared).await?;
        let mut facts = {
            let all = self.locked();
            if all.len() >= SESSIONS_KEPT_MAX && !all.contains_key(of) {
                let text = format!(
                    "this node keeps labels of {SESSIONS_KEPT_MAX} sessions, which is the most"
                );
                return Err(No::exhausted(text, 0));
            }
            all.get(of).cloned().unwrap_or_default()
        };
        change(&mut facts);
        shared.desk.keep(row_name(of), Some(facts.kept(of))).await?;
        self.locked().insert(of.clone(), facts.clone());
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_are_kept() {
        let of = (RoomId([7; 16]), "agent:bob:ws:direct:x".to_owned());
        let metadata = [("a".to_owned(), json!("b"))].into_iter().collect();
        let facts =
            Facts { label: Some("l".into()), model: None, metadata, hidden: true, epoch: 9 };
        assert_eq!(Facts::of_kept(&facts.kept(&of)), Some((of, facts)));
    }
}

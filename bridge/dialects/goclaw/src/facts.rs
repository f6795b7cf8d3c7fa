//! What people say of their sessions: a label, a model, from where on they are read. These are facts of threads, kept where the
//! direct room is: at every node that has it, the same.

use std::collections::BTreeMap;

use bridge::seam::call::{ReadThreads, SetRoom};
use mesh::{
    limits::THREAD_FACT_BYTES_MAX,
    records::{details::DetailsUpdate, threads::ThreadUpdate},
};
use serde_json::{Map, Value, json};

use crate::{
    caller::{Caller, Speaker},
    outcome::No,
    threads::Direct,
};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) label: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) metadata: Map<String, Value>,
    /// It is not listed while nothing above its epoch is said.
    pub(crate) hidden: bool,
    /// Messages up to this number are not read.
    pub(crate) epoch: u64,
}

/// The facts of the sessions of a room, by their keys.
pub(crate) type OfRoom = BTreeMap<String, Facts>;

impl Facts {
    /// What has become of these, as facts of a thread. One that is taken back is written as `null`, and not deleted: a deletion does
    /// not say of which thread, and clients are told of that.
    fn changed(&self, now: &Facts) -> Vec<(String, Option<String>)> {
        let none = || "null".to_owned();
        let text = |value: &Option<String>| value.as_ref().map(|text| json!(text).to_string());
        let filled = |map: &Map<String, Value>| {
            (!map.is_empty()).then(|| Value::Object(map.clone()).to_string())
        };
        let facts = |of: &Facts| {
            [
                ("label", text(&of.label)),
                ("model", text(&of.model)),
                ("metadata", filled(&of.metadata)),
                ("hidden", of.hidden.then(|| "true".to_owned())),
                ("epoch", (of.epoch > 0).then(|| of.epoch.to_string())),
            ]
        };
        let pairs = facts(self).into_iter().zip(facts(now));
        let changed = pairs.filter(|((_, before), (_, after))| before != after);
        changed
            .map(|(_, (name, after))| (name.to_owned(), after.or_else(|| Some(none()))))
            .collect()
    }

    /// One fact. Another key of the same key's holders may have written something else than this dialect does: it is left out.
    fn take(&mut self, name: &str, value: &str) {
        let Ok(value) = serde_json::from_str::<Value>(value) else { return };
        match (name, value) {
            ("label", Value::String(label)) => self.label = Some(label),
            ("model", Value::String(model)) => self.model = Some(model),
            ("metadata", Value::Object(metadata)) => self.metadata = metadata,
            ("hidden", Value::Bool(hidden)) => self.hidden = hidden,
            ("epoch", Value::Number(epoch)) => self.epoch = epoch.as_u64().unwrap_or(0),
            _ => {}
        }
    }
}

impl Caller {
    /// The facts of all sessions of a direct room.
    pub(crate) async fn facts_of_room(&self, direct: &Direct) -> Result<OfRoom, No> {
        let mut all = OfRoom::new();
        for fact in self.read_as(&direct.principal, ReadThreads(direct.room)).await? {
            all.entry(fact.thread).or_default().take(&fact.name, &fact.value);
        }
        Ok(all)
    }

    /// Those of one.
    pub(crate) async fn facts(&self, direct: &Direct, key: &str) -> Result<Facts, No> {
        Ok(self.facts_of_room(direct).await?.remove(key).unwrap_or_default())
    }

    /// Changes them. Done when that is durable here.
    pub(crate) async fn change_facts(
        &self,
        (direct, key): (&Direct, &str),
        who: &Speaker,
        change: impl FnOnce(&mut Facts),
    ) -> Result<Facts, No> {
        let before = self.facts(direct, key).await?;
        let mut now = before.clone();
        change(&mut now);
        let facts = before.changed(&now);
        if facts.iter().flat_map(|(_, value)| value).any(|it| it.len() > THREAD_FACT_BYTES_MAX) {
            let text = format!("metadata has at most {THREAD_FACT_BYTES_MAX} bytes in all");
            return Err(No::invalid(text));
        }
        if !facts.is_empty() {
            let threads = vec![ThreadUpdate { thread: key.to_owned(), facts }];
            let update = DetailsUpdate { threads, ..DetailsUpdate::default() };
            self.act(who, SetRoom { room: direct.room, update }).await?;
        }
        Ok(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_are_written_and_only_changes_are_written() {
        let metadata: Map<String, Value> = [("a".to_owned(), json!("b"))].into_iter().collect();
        let facts =
            Facts { label: Some("l".into()), model: None, metadata, hidden: true, epoch: 9 };
        let mut read = Facts::default();
        for (name, value) in Facts::default().changed(&facts) {
            read.take(&name, &value.unwrap());
        }
        assert_eq!(read, facts);
        let none = Facts { label: None, ..facts.clone() };
        assert_eq!(facts.changed(&none), [("label".to_owned(), Some("null".to_owned()))]);
        read.take("epoch", "\"x\"");
        read.take("label", "{");
        read.take("later", "7");
        assert_eq!(read, facts, "what is none of these facts says nothing");
    }
}

//! The node's settings, as dialects show them to its operator, who changes some of them over the wire. The node keeps and
//! applies them.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// A setting, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name: parts, separated by points.
    pub name: &'static str,
    /// The type of its value, as JSON Schema has it.
    pub kind: &'static str,
    /// For people.
    pub about: &'static str,
    /// Its value.
    pub value: Value,
    /// Its value if nobody changes it over the wire.
    pub default: Value,
    /// Whether it can be changed over the wire.
    pub changeable: bool,
    /// It concerns this machine: for holders of the node's own key alone.
    pub own: bool,
}

/// Changes: values by the names of their settings. `None`: as if it had not been changed.
pub type Changes = BTreeMap<String, Option<Value>>;

/// See the module.
pub trait NodeSettings: fmt::Debug + Send + Sync {
    /// All of them, by name.
    fn all(&self) -> Vec<Setting>;

    /// Where those are kept that the operator edits; empty: nowhere.
    fn file(&self) -> String;

    /// Changes all of these at once, or none. It writes to the disk before it returns. `rest`: all others are as if they had
    /// not been changed.
    ///
    /// # Errors
    /// The reason, for people.
    fn change(&self, changes: &Changes, rest: bool) -> Result<(), String>;
}

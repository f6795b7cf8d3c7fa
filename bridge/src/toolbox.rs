//! Tools that one dialect lends to another, which offers them to its hosts: neither knows the other. The node hands them over.

use std::{pin::Pin, sync::Arc};

use mesh::name::{id::AgentId, key::KeySecret};
use serde_json::{Map, Value};

/// A tool, as hosts are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentTool {
    /// Its name, which no other tool has.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For models: what it does, and what they have to mind.
    pub text: &'static str,
    /// Its arguments, as the properties of a JSON schema.
    pub arguments: &'static str,
    /// Names of those that have to be given.
    pub required: &'static [&'static str],
    /// Whether it changes nothing.
    pub reads: bool,
}

/// The agent that calls a tool. Whoever lets it in has judged it: it holds the key, and the agent's id is not another key's.
#[derive(Clone, Debug)]
pub struct ToolCaller {
    /// It.
    pub agent: AgentId,
    /// Signs for its key. `None`: the node checks no keys.
    pub signer: Option<Arc<KeySecret>>,
}

/// The end of a call that was begun.
pub type Called<'a> = Pin<Box<dyn Future<Output = Map<String, Value>> + Send + 'a>>;

/// See the module.
pub trait Toolbox: Send + Sync {
    /// In the order in which hosts are shown them.
    fn tools(&self) -> &'static [LentTool];

    /// Calls one of [`Toolbox::tools`] with arguments of these names alone, none of them `null`, and those that are required among
    /// them. What it gives is an object with `status`, `ok` or `error`; of an error `error` says what to do.
    fn call(&self, by: ToolCaller, tool: &'static str, arguments: Map<String, Value>)
    -> Called<'_>;
}

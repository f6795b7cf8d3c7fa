//! A voice that says the text of a presence and nothing else: for tests that weigh frames.

use std::sync::Arc;

use bytes::Bytes;
use mesh::{
    api::command::AgentView,
    name::id::{KeyPrint, NodeId},
    wire::roster::Presence,
};

use crate::seam::event::{Event, Frames, Message, Voice};

/// See the module.
#[derive(Debug)]
pub struct Plain;

impl Plain {
    pub fn voice() -> Arc<dyn Voice> {
        Arc::new(Plain)
    }
}

impl Voice for Plain {
    fn frames(&self, event: &Event) -> Frames {
        let Event::Presence(agent) = event else { return Frames::none() };
        agent.presence.detail.clone().map(Bytes::from).into_iter().collect()
    }

    fn kind(&self, _: &Message) -> Option<String> {
        None
    }

    fn letter(&self, _: &str, _: &Message) -> Option<Bytes> {
        None
    }
}

/// An event whose frame has so many bytes.
pub fn presence(bytes: usize) -> Event {
    Event::Presence(Arc::new(AgentView {
        agent: "a".into(),
        name: "a".into(),
        node: NodeId([0; 32]),
        key: KeyPrint::OPEN,
        verified: false,
        capabilities: Vec::new(),
        connected_ms: 0,
        last_active_ms: 0,
        presence: Presence { detail: Some("x".repeat(bytes)), ..Presence::default() },
        lingers: false,
        hosted: false,
        guest: false,
    }))
}

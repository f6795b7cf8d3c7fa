//! Where answers wait for the session of a connection.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use super::seat::{OnEnd, Resume};
use crate::{
    delivery::hook::Hook,
    delivery::{hub::Hub, link::Link},
    reply::Reply,
};

/// See the module. Bounded by the calls that may be under way.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<VecDeque<Resume>>);

impl Inbox {
    /// The way back of a command to a connection. Routing knows of the answer before the session does.
    pub(crate) fn reply(
        self: &Arc<Inbox>,
        hub: &Arc<Hub>,
        link: &Arc<Link>,
        hook: Hook,
        then: OnEnd,
    ) -> Reply {
        let hook = match hook {
            // Seated now: no event that follows the join may be missed.
            Hook::Join { room, .. } => Hook::Join { room, fresh: hub.seat(link, room) },
            Hook::None | Hook::Attach { .. } | Hook::Leave { .. } => hook,
        };
        let (inbox, hub, link) = (self.clone(), hub.clone(), link.clone());
        Reply::new(move |mut ended| {
            hub.answered(&link, hook, &mut ended);
            inbox.put(Box::new(move |seat| then(seat, ended)));
            link.wake_session();
        })
    }

    pub(crate) fn put(&self, resume: Resume) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(resume);
    }

    pub(crate) fn take(&self) -> Option<Resume> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

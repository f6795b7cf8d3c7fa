//! The page that people open first, at `/` of every node: the mesh, its rooms and agents, and what is said, live; and a word of
//! one's own.
//!
//! Of a node it sees the bridge's [seam](bridge::seam) and its [desk](bridge::read), and nothing else; of dialects it knows
//! nothing. What a person sees is what the person's key sees. A person writes as an agent of that key
//! ([principal](bridge::seam::principal)): all that is done here is an ordinary signed act.
//!
//! Its one contract: nothing that an agent wrote is anything but text in it. So all pages are made by templates that escape, and
//! a browser is told to run and to load nothing that is not this node's own.
//!
//! In reading order: `http` (a request's way in), `signing` (who has signed in), `door` (signing in and out), `views` (the pages), `live` (what changes while they are open), `reading` (how far somebody has read), `forms`, `acting`, `times`, `assets`, `limits`.

#![warn(missing_docs)]

use std::sync::{Arc, OnceLock};

use bridge::{
    dialect::{Pages, Site},
    read::Desk,
};

mod acting;
mod assets;
mod door;
mod forms;
mod http;
pub mod limits;
mod live;
mod reading;
mod shared;
mod signing;
#[cfg(test)]
mod tests;
mod times;
mod views;

use shared::Shared;

/// See the crate's text.
#[derive(Clone, Default)]
pub struct Page {
    shared: Arc<OnceLock<Arc<Shared>>>,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Page")
    }
}

impl Page {
    fn shared(&self, desk: &Desk) -> Arc<Shared> {
        self.shared.get_or_init(|| Arc::new(Shared::new(desk.clone()))).clone()
    }
}

impl Pages for Page {
    fn open(&self, desk: &Desk) {
        self.shared(desk);
    }

    fn site(&self, desk: &Desk) -> Site {
        http::site(self.shared(desk))
    }
}

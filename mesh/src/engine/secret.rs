//! The secret of the mesh's connections, as it changes (`docs/decisions/membership.md`).
//!
//! A member draws the next one and gives it to those that it is connected to; they pass it on, and to
//! whoever comes later. It is said over links that are encrypted for one node each, to nodes that the
//! directory names and nobody has parted with, and never by gossip.

use std::collections::BTreeSet;

use super::Engine;
use crate::{
    boundary::Effect,
    command::{Drawn, Outcome, Refused},
    id::NodeId,
    identity::LinkSecret,
    limits::{ABOUT_EVERY, EXPELLED_NAMED_MAX, NODES_MAX, SECRET_STEP_MAX},
    message::{About, Handed, Message, Signed},
};

impl Engine {
    /// An operator wants another secret, or this node needs one for the rest of the mesh.
    pub(super) fn rotate_secret(&mut self, drawn: &Drawn, force: bool) -> Result<Outcome, Refused> {
        let no = |text: String| Err(Refused::Invalid(text));
        self.drawing = false;
        if self.cx.out {
            return no("this node has no part in the mesh any more: ask another one".to_owned());
        }
        let away = self.live.others.iter().filter(|it| !self.cx.up.contains(*it)).count();
        if away > 0 && !force {
            return no(format!(
                "{away} of the members are not connected to this node: `clawmeshd members` shows them. They \
                 get the new secret when they are back, unless it changes more than {} times until then. \
                 Retire those that are gone for good, or give --force",
                crate::limits::FORMER_SECRETS_MAX
            ));
        }
        let number = self.config.secret.epoch().number.saturating_add(1);
        let next = LinkSecret::new(number, *drawn.0).leaving_out(self.cx.parted.expelled(None));
        self.take_secret(next, None);
        Ok(Outcome::Done)
    }

    /// Whoever expelled a node sees to it that a secret is drawn which that node does not have: now, and
    /// again when one is met that was drawn by those who had not heard of it yet.
    pub(super) fn ask_for_secret_without_the_expelled(&mut self) {
        let without: BTreeSet<NodeId> = self.config.secret.without().iter().copied().collect();
        let full = without.len() >= EXPELLED_NAMED_MAX;
        let mut mine = self.cx.parted.expelled(Some(self.cx.me));
        let due = mine.any(|node| !without.contains(&node));
        if due && !full && !self.cx.out && !self.drawing {
            self.drawing = true;
            self.cx.effects.push(Effect::DrawSecret);
        }
    }

    /// The directory names another node.
    pub(super) fn on_known(&mut self, node: NodeId) {
        let news = !self.cx.parted.has(node) && self.live.others.insert(node);
        self.cx.effects.push(Effect::Known(node));
        if news && self.cx.up.contains(&node) {
            // What it was told before did not bring it anything yet.
            self.tell_about(node);
        }
    }

    /// What this node says of itself.
    pub(super) fn own_about(&self) -> About {
        let epoch = self.config.secret.epoch();
        About { node: self.cx.me, epoch, version: self.config.version.clone() }
    }

    /// A peer is told what this node is. Whoever has a later secret gives it in return.
    pub(super) fn tell_about(&mut self, peer: NodeId) {
        let signed = Signed::new(self.cx.mesh, &self.identity, self.own_about());
        self.cx.send(peer, Message::About(signed));
    }

    /// A secret may have been lost on the way, or refused while a disk was full.
    pub(super) fn repeat_about(&mut self) {
        if self.cx.now.mono < self.about_at {
            return;
        }
        self.about_at = self.cx.now.mono + ABOUT_EVERY;
        self.cx.up.clone().into_iter().for_each(|peer| self.tell_about(peer));
        self.drawing = false;
        self.ask_for_secret_without_the_expelled();
    }

    /// What a peer is. Whoever has an older secret is given this node's.
    pub(super) fn on_about(&mut self, from: NodeId, about: About) {
        if about.node != from || !self.cx.up.contains(&from) {
            self.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (about.epoch, self.config.secret.epoch());
        if self.about.contains_key(&from) || self.about.len() < NODES_MAX {
            self.about.insert(from, about);
        }
        if theirs < mine {
            self.give_secret(from);
        } else if theirs > mine {
            // It gives this node its own then.
            self.tell_about(from);
        }
    }

    /// A member gives this node a secret. Of two the same one counts everywhere.
    pub(super) fn on_secret(&mut self, from: NodeId, handed: Handed) {
        let member = self.live.others.contains(&from) && self.cx.up.contains(&from);
        if handed.by != from || !member || self.cx.out {
            self.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (handed.secret.epoch(), self.config.secret.epoch());
        if theirs.number > mine.number.saturating_add(SECRET_STEP_MAX) {
            self.cx.faults.stray += 1;
            return;
        }
        if theirs > mine {
            self.take_secret(handed.secret, Some(from));
        } else {
            self.tell_about(from);
        }
        self.ask_for_secret_without_the_expelled();
    }

    /// `from`: who gave it to this node.
    fn take_secret(&mut self, secret: LinkSecret, from: Option<NodeId>) {
        self.config.secret = secret.clone();
        self.cx.effects.push(Effect::Secret(secret));
        for peer in self.cx.up.clone() {
            if Some(peer) != from {
                self.give_secret(peer);
            }
            self.tell_about(peer);
        }
    }

    /// Only to members: who came with an old ticket is to stay out. And to nobody who was expelled, though
    /// the entry that says so may not be here yet.
    fn give_secret(&mut self, peer: NodeId) {
        let member = self.live.others.contains(&peer) && !self.cx.out;
        if member && !self.config.secret.without().contains(&peer) {
            let handed = Handed { by: self.cx.me, secret: self.config.secret.clone() };
            let signed = Signed::new(self.cx.mesh, &self.identity, handed);
            self.cx.send(peer, Message::Secret(signed));
        }
    }
}

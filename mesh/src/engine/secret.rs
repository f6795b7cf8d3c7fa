//! The secret of the mesh's connections, as it changes (`docs/decisions/membership.md`).
//!
//! A member draws the next one and gives it to those that it is connected to; they pass it on, and to
//! whoever comes later. It is said over links that are encrypted for one node each, to nodes that the
//! directory names and nobody has parted with, and never by gossip.

use std::{collections::BTreeSet, time::Duration};

use super::Engine;
use crate::{
    api::{
        boundary::{Alarm, Effect},
        command::{Drawn, Outcome, Refused},
    },
    limits::{
        ABOUT_EVERY, EXPELLED_NAMED_MAX, NODES_MAX, SECRET_HELD_BACK_FOR, SECRETS_TAKEN_MAX,
        SECRETS_TAKEN_WITHIN,
    },
    name::{id::NodeId, identity::LinkSecret},
    wire::message::{About, Handed, Message, Signed},
};

/// How this node stands to the secret that it has.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// When peers are told again what this node is.
    about_at: Duration,
    /// The driver was asked for one.
    drawing: bool,
    /// Nodes that have the present one and must not have the next.
    owed: BTreeSet<NodeId>,
    /// When secrets of others were taken, of late.
    taken: Vec<Duration>,
    /// The highest number of those not taken, because there were too many before it; 0: there was none.
    refused: u64,
    /// Who gave the present one, and until when those whom it leaves out are not given it.
    held_back: Option<(NodeId, Duration)>,
    /// Members whom it leaves out, and who are given it all the same: nobody has expelled them.
    entrusted: BTreeSet<NodeId>,
}

impl Renewal {
    pub(super) fn new(now: Duration) -> Renewal {
        Renewal { about_at: now + ABOUT_EVERY, ..Renewal::default() }
    }
}

impl Engine {
    /// An operator wants another secret, or this node needs one for the rest of the mesh.
    pub(super) fn rotate_secret(&mut self, drawn: &Drawn, force: bool) -> Result<Outcome, Refused> {
        let no = |text: String| Err(Refused::Invalid(text));
        self.renewal.drawing = false;
        if self.known.cx.out {
            return no("this node has no part in the mesh any more: ask another one".to_owned());
        }
        let away =
            self.known.live.others.iter().filter(|it| !self.known.cx.up.contains(*it)).count();
        if away > 0 && !force {
            return no(format!(
                "{away} of the members are not connected to this node: `clawmeshd members` shows them. They \
                 get the new secret when they are back, unless it changes more than {} times until then. \
                 Retire those that are gone for good, or give --force",
                crate::limits::FORMER_SECRETS_MAX
            ));
        }
        let highest = self.known.config.secret.epoch().number.max(self.renewal.refused);
        let number = highest.saturating_add(1);
        let next = LinkSecret::new(number, *drawn.0).leaving_out(self.to_be_left_out());
        self.renewal.owed.clear();
        self.take_secret(next, None);
        Ok(Outcome::Done)
    }

    /// Whom a new secret has to leave out. First those on whose account it is drawn: not all may be named.
    fn to_be_left_out(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.renewal.owed.iter().copied().collect();
        for by in [Some(self.known.cx.me), None] {
            let more: BTreeSet<NodeId> = self.known.cx.parted.expelled(by).collect();
            nodes.extend(more.difference(&nodes.iter().copied().collect()));
        }
        nodes
    }

    /// Whoever expelled a node sees to it that a secret is drawn which that node does not have: now, and
    /// again when one is met that was drawn by those who had not heard of it yet.
    pub(super) fn ask_for_secret_without_the_expelled(&mut self) {
        let without: BTreeSet<NodeId> =
            self.known.config.secret.without().iter().copied().collect();
        // Where a secret cannot name all, one that does not is no reason for the next. What the present one
        // says is not asked: anybody may have written it.
        let all = self.known.cx.parted.expelled(None).count() <= EXPELLED_NAMED_MAX;
        let mut mine = self.known.cx.parted.expelled(Some(self.known.cx.me));
        let due = !self.renewal.owed.is_empty() || all && mine.any(|it| !without.contains(&it));
        if due && !self.known.cx.out && !self.renewal.drawing {
            self.renewal.drawing = true;
            self.known.cx.effects.push(Effect::DrawSecret);
        }
    }

    /// A node was expelled; `mine`: by this node, just now.
    pub(super) fn on_expelled(&mut self, node: NodeId, mine: bool) {
        if self.renewal.entrusted.remove(&node) || mine {
            self.renewal.owed.insert(node);
            // It may have given others higher ones: what is drawn has to count above those.
            self.renewal.taken.clear();
        }
        if self.renewal.refused > 0 {
            // What was not taken may be the secret without it.
            self.known.cx.up.clone().into_iter().for_each(|peer| self.tell_about(peer));
        }
    }

    /// The directory names another node.
    pub(super) fn on_known(&mut self, node: NodeId) {
        let news = !self.known.cx.parted.has(node) && self.known.live.others.insert(node);
        self.known.cx.effects.push(Effect::Known(node));
        if news && self.known.cx.up.contains(&node) {
            // What it was told before did not bring it anything yet.
            self.tell_about(node);
        }
    }

    /// What this node says of itself.
    pub(super) fn own_about(&self) -> About {
        let epoch = self.known.config.secret.epoch();
        About { node: self.known.cx.me, epoch, version: self.known.config.version.clone() }
    }

    /// A peer is told what this node is. Whoever has a later secret gives it in return.
    pub(super) fn tell_about(&mut self, peer: NodeId) {
        let signed = Signed::new(self.known.cx.mesh, &self.known.identity, self.own_about());
        self.known.cx.send(peer, Message::About(signed));
    }

    /// A secret may have been lost on the way, or refused while a disk was full.
    pub(super) fn repeat_about(&mut self) {
        if self.known.cx.now.mono < self.renewal.about_at {
            return;
        }
        self.renewal.about_at = self.known.cx.now.mono + ABOUT_EVERY;
        self.known.cx.up.clone().into_iter().for_each(|peer| self.tell_about(peer));
        self.renewal.drawing = false;
        self.ask_for_secret_without_the_expelled();
    }

    /// Those whom a secret leaves out and nobody has expelled, though there was time to hear of it.
    pub(super) fn give_to_those_left_out(&mut self) {
        let due = self.renewal.held_back.take_if(|(_, until)| self.known.cx.now.mono >= *until);
        let Some((by, _)) = due else { return };
        let without = self.known.config.secret.without().iter().copied();
        let members: Vec<NodeId> =
            without.filter(|it| self.known.live.others.contains(it)).collect();
        let Some(node) = members.first().copied() else { return };
        self.known.cx.alarm(Alarm::SecretWithout { node, by });
        self.renewal.entrusted.extend(&members);
        for peer in members {
            if self.known.cx.up.contains(&peer) {
                self.give_secret(peer);
            }
        }
    }

    /// What a peer is. Whoever has an older secret is given this node's.
    pub(super) fn on_about(&mut self, from: NodeId, about: About) {
        if about.node != from || !self.known.cx.up.contains(&from) {
            self.known.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (about.epoch, self.known.config.secret.epoch());
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
        let member = self.known.live.others.contains(&from) && self.known.cx.up.contains(&from);
        if handed.by != from || !member || self.known.cx.out {
            self.known.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (handed.secret.epoch(), self.known.config.secret.epoch());
        let needed = self.shuts_out_more(&handed.secret);
        // The first one is in the mesh's name: nobody can have drawn another. And no mesh rotates each
        // millisecond: a bound that is the same at all, so that what one node takes the others can.
        if theirs.number == 0 || theirs.number > self.known.cx.now.wall_ms {
            self.known.cx.faults.stray += 1;
            return;
        }
        if theirs > mine {
            if !needed && !self.may_take() {
                // Its peers say again what they have; what is drawn here is to count beside it.
                self.renewal.refused = self.renewal.refused.max(theirs.number);
                return;
            }
            self.take_secret(handed.secret, Some(from));
            self.renewal.held_back = Some((from, self.known.cx.now.mono + SECRET_HELD_BACK_FOR));
        } else {
            self.tell_about(from);
        }
        self.ask_for_secret_without_the_expelled();
    }

    /// Whether a secret leaves out all whom the directory says to be expelled, and the present one does not:
    /// until it is taken such a node can come in again.
    fn shuts_out_more(&self, secret: &LinkSecret) -> bool {
        let expelled: BTreeSet<NodeId> = self.known.cx.parted.expelled(None).collect();
        let shut_out = |it: &LinkSecret| {
            let named: BTreeSet<&NodeId> = it.without().iter().collect();
            named.into_iter().filter(|it| expelled.contains(*it)).count()
        };
        let all = expelled.len().min(EXPELLED_NAMED_MAX);
        shut_out(secret) >= all && shut_out(&self.known.config.secret) < all
    }

    /// Whether another one may be taken from others so soon.
    fn may_take(&mut self) -> bool {
        let (now, taken) = (self.known.cx.now.mono, &mut self.renewal.taken);
        taken.retain(|at| now < *at + SECRETS_TAKEN_WITHIN);
        let may = taken.len() < SECRETS_TAKEN_MAX;
        if may {
            taken.push(now);
        }
        may
    }

    /// `from`: who gave it to this node.
    fn take_secret(&mut self, secret: LinkSecret, from: Option<NodeId>) {
        if secret.epoch().number >= self.renewal.refused {
            self.renewal.refused = 0;
        }
        self.known.config.secret = secret.clone();
        self.renewal.held_back = None;
        self.renewal.entrusted.clear();
        self.known.cx.effects.push(Effect::Secret(secret));
        for peer in self.known.cx.up.clone() {
            if Some(peer) != from {
                self.give_secret(peer);
            }
            self.tell_about(peer);
        }
    }

    /// Only to members: who came with an old ticket is to stay out. And to nobody who was expelled, though
    /// the entry that says so may not be here yet.
    fn give_secret(&mut self, peer: NodeId) {
        let member = self.known.live.others.contains(&peer) && !self.known.cx.out;
        let left_out = self.known.config.secret.without().contains(&peer)
            && !self.renewal.entrusted.contains(&peer);
        if member && !left_out {
            let handed = Handed { by: self.known.cx.me, secret: self.known.config.secret.clone() };
            let signed = Signed::new(self.known.cx.mesh, &self.known.identity, handed);
            self.known.cx.send(peer, Message::Secret(signed));
        }
    }
}

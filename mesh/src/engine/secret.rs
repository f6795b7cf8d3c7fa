//! The secret of the mesh's connections, as it changes (`docs/decisions/membership.md`).
//!
//! A member draws the next one and gives it to those that it is connected to; they pass it on, also to
//! members that come later. It is said over links that are encrypted for one node each, to nodes that
//! the directory names and nobody has parted with, and never by gossip.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::known::Known;
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
#[derive(Clone, Debug, Default)]
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
    /// The node that gave the present one, and until when those that it leaves out are not given it.
    held_back: Option<(NodeId, Duration)>,
    /// The last word of each member of itself.
    pub(super) about: BTreeMap<NodeId, About>,
    /// Members that it leaves out, and that are given it all the same: nobody has expelled them.
    entrusted: BTreeSet<NodeId>,
}

impl Renewal {
    pub(super) fn new(now: Duration) -> Renewal {
        Renewal { about_at: now + ABOUT_EVERY, ..Renewal::default() }
    }
}

impl Renewal {
    /// An operator wants another secret, or this node needs one for the rest of the mesh.
    pub(super) fn rotate_secret(
        &mut self,
        known: &mut Known,
        drawn: &Drawn,
        force: bool,
    ) -> Result<Outcome, Refused> {
        let no = |text: String| Err(Refused::Impossible(text));
        self.drawing = false;
        if known.cx.out {
            return no("this node has no part in the mesh any more: ask another one".to_owned());
        }
        let away = known.live.others.iter().filter(|node| !known.cx.up.contains(*node)).count();
        if away > 0 && !force {
            return no(format!(
                "{away} of the members are not connected to this node: `clawmeshd members` shows them. They \
                 get the new secret when they are back, unless it changes more than {} times until then. \
                 Retire those that are gone for good, or give --force",
                crate::limits::FORMER_SECRETS_MAX
            ));
        }
        let highest = known.config.secret.epoch().number.max(self.refused);
        let number = highest.saturating_add(1);
        let next = LinkSecret::new(number, *drawn.0).leaving_out(self.to_be_left_out(known));
        self.owed.clear();
        self.take_secret(known, next, None);
        Ok(Outcome::Done)
    }

    /// Whom a new secret has to leave out. First those on whose account it is drawn: not all may be named.
    fn to_be_left_out(&self, known: &Known) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.owed.iter().copied().collect();
        for by in [Some(known.cx.me), None] {
            let more: BTreeSet<NodeId> = known.cx.parted.expelled(by).collect();
            nodes.extend(more.difference(&nodes.iter().copied().collect()));
        }
        nodes
    }

    /// A node that expelled another one sees to it that a secret is drawn which that node does not have:
    /// now, and again when one is met that was drawn by nodes that had not heard of it yet.
    pub(super) fn ask_for_secret_without_the_expelled(&mut self, known: &mut Known) {
        let without: BTreeSet<NodeId> = known.config.secret.without().iter().copied().collect();
        // Where a secret cannot name all, one that does not is no reason for the next. The names in the
        // present one are not asked: anybody may have written them.
        let all = known.cx.parted.expelled(None).count() <= EXPELLED_NAMED_MAX;
        let mut mine = known.cx.parted.expelled(Some(known.cx.me));
        let due = !self.owed.is_empty() || all && mine.any(|node| !without.contains(&node));
        if due && !known.cx.out && !self.drawing {
            self.drawing = true;
            known.cx.effects.push(Effect::DrawSecret);
        }
    }

    /// A node was expelled; `mine`: by this node, just now.
    pub(super) fn on_expelled(&mut self, known: &mut Known, node: NodeId, mine: bool) {
        if self.entrusted.remove(&node) || mine {
            self.owed.insert(node);
            // It may have given others higher ones: the drawn one has to count above those.
            self.taken.clear();
        }
        if self.refused > 0 {
            // The secret that was not taken may be the one without it.
            known.cx.up.clone().into_iter().for_each(|peer| tell_about(known, peer));
        }
    }

    /// A secret may have been lost on the way, or refused while a disk was full.
    pub(super) fn repeat_about(&mut self, known: &mut Known) {
        if known.cx.now.mono < self.about_at {
            return;
        }
        self.about_at = known.cx.now.mono + ABOUT_EVERY;
        known.cx.up.clone().into_iter().for_each(|peer| tell_about(known, peer));
        self.drawing = false;
        self.ask_for_secret_without_the_expelled(known);
    }

    /// Those whom a secret leaves out and nobody has expelled, though there was time to hear of it.
    pub(super) fn give_to_those_left_out(&mut self, known: &mut Known) {
        let due = self.held_back.take_if(|(_, until)| known.cx.now.mono >= *until);
        let Some((by, _)) = due else { return };
        let without = known.config.secret.without().iter().copied();
        let members: Vec<NodeId> =
            without.filter(|node| known.live.others.contains(node)).collect();
        let Some(node) = members.first().copied() else { return };
        known.cx.alarm(Alarm::SecretWithout { node, by });
        self.entrusted.extend(&members);
        for peer in members {
            if known.cx.up.contains(&peer) {
                self.give_secret(known, peer);
            }
        }
    }

    /// A peer says of itself how far it is. One with an older secret is given this node's.
    pub(super) fn on_about(&mut self, known: &mut Known, from: NodeId, about: About) {
        if about.node != from || !known.cx.up.contains(&from) {
            known.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (about.epoch, known.config.secret.epoch());
        if self.about.contains_key(&from) || self.about.len() < NODES_MAX {
            self.about.insert(from, about);
        }
        if theirs < mine {
            self.give_secret(known, from);
        } else if theirs > mine {
            // It gives this node its own then.
            tell_about(known, from);
        }
    }

    /// A member gives this node a secret. Of two the same one counts everywhere.
    pub(super) fn on_secret(&mut self, known: &mut Known, from: NodeId, handed: Handed) {
        let member = known.live.others.contains(&from) && known.cx.up.contains(&from);
        if handed.by != from || !member || known.cx.out {
            known.cx.faults.stray += 1;
            return;
        }
        let (theirs, mine) = (handed.secret.epoch(), known.config.secret.epoch());
        let needed = shuts_out_more(known, &handed.secret);
        // The first one is in the mesh's name: nobody can have drawn another. And no mesh rotates each
        // millisecond: a bound that is the same at all, so that a secret that one node takes the others
        // can take.
        if theirs.number == 0 || theirs.number > known.cx.now.wall_ms {
            known.cx.faults.stray += 1;
            return;
        }
        if theirs > mine {
            if !needed && !self.may_take(known) {
                // Its peers say again which one they have; one that is drawn here is to count beside it.
                self.refused = self.refused.max(theirs.number);
                return;
            }
            self.take_secret(known, handed.secret, Some(from));
            self.held_back = Some((from, known.cx.now.mono + SECRET_HELD_BACK_FOR));
        } else {
            tell_about(known, from);
        }
        self.ask_for_secret_without_the_expelled(known);
    }

    /// Whether another one may be taken from others so soon.
    fn may_take(&mut self, known: &mut Known) -> bool {
        let (now, taken) = (known.cx.now.mono, &mut self.taken);
        taken.retain(|at| now < *at + SECRETS_TAKEN_WITHIN);
        let may = taken.len() < SECRETS_TAKEN_MAX;
        if may {
            taken.push(now);
        }
        may
    }

    /// `from`: the peer that gave it to this node.
    fn take_secret(&mut self, known: &mut Known, secret: LinkSecret, from: Option<NodeId>) {
        if secret.epoch().number >= self.refused {
            self.refused = 0;
        }
        known.config.secret = secret.clone();
        self.held_back = None;
        self.entrusted.clear();
        known.cx.effects.push(Effect::Secret(secret));
        for peer in known.cx.up.clone() {
            if Some(peer) != from {
                self.give_secret(known, peer);
            }
            tell_about(known, peer);
        }
    }

    /// Only to members: a node that came with an old ticket is to stay out. And to none that was
    /// expelled, though the entry that says so may not be here yet.
    fn give_secret(&mut self, known: &mut Known, peer: NodeId) {
        let member = known.live.others.contains(&peer) && !known.cx.out;
        let left_out =
            known.config.secret.without().contains(&peer) && !self.entrusted.contains(&peer);
        if member && !left_out {
            let handed = Handed { by: known.cx.me, secret: known.config.secret.clone() };
            let signed = Signed::new(known.cx.mesh, &known.identity, handed);
            known.cx.send(peer, Message::Secret(signed));
        }
    }
}

/// The word of this node on itself.
pub(super) fn own_about(known: &Known) -> About {
    let epoch = known.config.secret.epoch();
    About { node: known.cx.me, epoch, version: known.config.version.clone() }
}

/// A peer is told the state of this node. A peer with a later secret gives it in return.
pub(super) fn tell_about(known: &mut Known, peer: NodeId) {
    let signed = Signed::new(known.cx.mesh, &known.identity, own_about(known));
    known.cx.send(peer, Message::About(signed));
}

/// The directory names another node.
pub(super) fn on_known(known: &mut Known, node: NodeId) {
    let news = !known.cx.parted.has(node) && known.live.admit(node);
    known.cx.effects.push(Effect::Known(node));
    if news && known.cx.up.contains(&node) {
        // The word that it got before did not bring it anything yet.
        tell_about(known, node);
    }
}

/// Whether a secret leaves out all whom the directory says to be expelled, and the present one does not:
/// until it is taken such a node can come in again.
fn shuts_out_more(known: &Known, secret: &LinkSecret) -> bool {
    let expelled: BTreeSet<NodeId> = known.cx.parted.expelled(None).collect();
    let shut_out = |link: &LinkSecret| {
        let named: BTreeSet<&NodeId> = link.without().iter().collect();
        named.into_iter().filter(|node| expelled.contains(*node)).count()
    };
    let all = expelled.len().min(EXPELLED_NAMED_MAX);
    shut_out(secret) >= all && shut_out(&known.config.secret) < all
}

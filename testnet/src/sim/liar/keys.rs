//! What it says of API keys. It has a few of its own, and says for them anything; it was shown none of the others, and
//! says as much for those: with their halves, word for word, and early in its log. An entry that is not signed
//! by the key that it is about takes its whole run with it.

use std::sync::Arc;

use mesh::{
    name::{
        account::Label,
        agent::{DRAWN_BYTES, drawn},
        id::{AgentId, KeyPrint, NodeId},
        identity::Strict,
        key::{KeyHalves, KeySecret},
    },
    wire::{
        account::AccountClaimed,
        acts::{KeyAct, KeyMinted, KeyTerms, Tier},
        entry::{AgentClaimed, Body},
        signatures::{KeySignature, SignedLog},
    },
};

use super::{KNOWN_MAX, Liar};
use crate::sim::{dice::Dice, keys};

/// Its own keys.
const OWN: usize = 2;
/// An id that nobody else wants.
pub(super) const ID: &str = "a liar's";

/// Keys that it has, and news that it heard of others.
#[derive(Debug)]
pub(super) struct Known {
    own: Vec<KeySecret>,
    minted: Vec<KeyMinted>,
    shown: Vec<KeySignature>,
    claimed: Vec<AgentClaimed>,
    prints: Vec<KeyPrint>,
}

impl Known {
    pub(super) fn new() -> Known {
        let own = (0..OWN).map(|nth| keys::secret(&format!("a liar's {nth}"))).collect();
        Known {
            own,
            minted: Vec::new(),
            shown: Vec::new(),
            claimed: Vec::new(),
            prints: Vec::new(),
        }
    }

    /// It reads what an honest node has written.
    pub(super) fn learn(&mut self, dice: &mut Dice, body: &Body) {
        if let Body::Key(KeyAct::Minted(minted)) = body {
            dice.remember(&mut self.minted, KNOWN_MAX, minted.clone());
        } else if let Body::Key(KeyAct::Shown(shown)) = body {
            dice.remember(&mut self.shown, KNOWN_MAX, shown.clone());
        } else if let Body::AgentClaimed(claim) = body {
            dice.remember(&mut self.claimed, KNOWN_MAX, claim.clone());
        }
    }
}

impl Known {
    /// Somebody else spoke with this key.
    pub(super) fn heard(&mut self, dice: &mut Dice, key: Option<KeyPrint>) {
        if let Some(key) = key
            && !self.prints.contains(&key)
        {
            dice.remember(&mut self.prints, KNOWN_MAX, key);
        }
    }

    /// Its own.
    pub(super) fn own(&self) -> &[KeySecret] {
        &self.own
    }

    pub(super) fn owns(&self, key: KeyPrint) -> bool {
        self.own.iter().any(|own| own.print() == key)
    }
}

impl Liar {
    /// A key in whose name it speaks: most times another one's.
    pub(super) fn some_key(&mut self) -> Option<KeyPrint> {
        match self.dice.within(0, 9) {
            0 => None,
            1 => Some(self.dice.pick(&self.keys.own).print()),
            2 => Some(KeyPrint(self.sixteen())),
            _ if self.keys.prints.is_empty() => None,
            _ => Some(*self.dice.pick(&self.keys.prints)),
        }
    }

    pub(super) fn key_act(&mut self, node: NodeId) -> KeyAct {
        match self.dice.within(0, 4) {
            0 | 1 => KeyAct::Minted(self.minted(node)),
            _ => KeyAct::Shown(self.shown(node)),
        }
    }

    /// Some key, shown at one of its nodes.
    fn shown(&mut self, node: NodeId) -> KeySignature {
        let log = SignedLog { mesh: self.mesh, node };
        let own = keys::shown(self.dice.pick(&self.keys.own), &log);
        if self.keys.shown.is_empty() || self.dice.chance(30) {
            return own;
        }
        let of_others = self.dice.pick(&self.keys.shown).clone();
        match self.dice.within(0, 2) {
            // It was shown at another node.
            0 => of_others,
            1 => KeySignature { signature: own.signature, ..of_others },
            _ => with_mailbox_of(own, &of_others),
        }
    }

    /// Some key, minted in the log of one of its nodes.
    pub(super) fn minted(&mut self, node: NodeId) -> KeyMinted {
        let log = SignedLog { mesh: self.mesh, node };
        let terms = KeyTerms { label: Some(self.text()), ..KeyTerms::of(Tier::High) };
        let own = self.dice.pick(&self.keys.own);
        let own = KeyMinted::sign(own, &log, terms).expect("its keys are long enough");
        if self.keys.minted.is_empty() || self.dice.chance(50) {
            return own;
        }
        let of_others = self.dice.pick(&self.keys.minted).clone();
        match self.dice.within(0, 3) {
            // Signed for the log of another node.
            0 => of_others,
            1 => {
                let by = KeySignature { signature: own.by.signature, ..of_others.by };
                KeyMinted { by, ..of_others }
            }
            2 => KeyMinted { by: of_others.by, ..own },
            // A print with a half of its own is another print; and it is not signed.
            _ => KeyMinted { by: with_mailbox_of(of_others.by, &own.by), ..own },
        }
    }

    /// Some agent id, claimed for some key.
    pub(super) fn claimed(&mut self) -> AgentClaimed {
        let heard =
            (!self.keys.claimed.is_empty()).then(|| self.dice.pick(&self.keys.claimed).clone());
        match (self.dice.within(0, 5), heard) {
            // Words that a key has signed may be said again: it is the same claim.
            (0, Some(heard)) => heard,
            // Of another id, for a key that has not signed that.
            (1, Some(heard)) => AgentClaimed { agent: self.anothers(&heard), ..heard },
            (2, Some(heard)) => {
                let own = self.own_claim(Arc::clone(&heard.agent));
                let signature = own.by.map_or([0; 64], |by| by.signature);
                let by = heard.by.map(|by| KeySignature { signature, ..by });
                AgentClaimed { agent: heard.agent, by }
            }
            // An id that is another key's by its form: signed, and void.
            (3, Some(heard)) => {
                let agent = self.anothers(&heard);
                self.own_claim(agent)
            }
            (4, _) => AgentClaimed { agent: ID.into(), by: None },
            _ => self.own_claim(ID.into()),
        }
    }

    /// An account of its own, or as if another's key had signed.
    pub(super) fn account_claimed(&mut self, node: NodeId) -> AccountClaimed {
        let log = SignedLog { mesh: self.mesh, node };
        let count = self.dice.within(0, 5);
        let labels = (0..count).map(|_| Label([self.dice.byte() % 3; 16])).collect();
        let claim = AccountClaimed::sign(self.dice.pick(&self.keys.own), &log, labels);
        let claim = claim.expect("keys of worlds are long enough");
        let other = (!self.keys.shown.is_empty()).then(|| self.dice.pick(&self.keys.shown).clone());
        match (self.dice.within(0, 4), other) {
            (0, Some(other)) => AccountClaimed { by: with_mailbox_of(claim.by, &other), ..claim },
            (1, Some(other)) => AccountClaimed { by: other, ..claim },
            _ => claim,
        }
    }

    /// Whether an entry of this node with this body is signed by the key that it is about, if it is about one.
    pub(super) fn has_signed(&self, body: &Body, node: NodeId) -> bool {
        let log = SignedLog { mesh: self.mesh, node };
        if let Body::Key(KeyAct::Minted(minted)) = body {
            minted.is_signed_by_its_key(&Strict, &log)
        } else if let Body::Key(KeyAct::Shown(shown)) = body {
            shown.is_voucher(&Strict, &log)
        } else if let Body::AccountClaimed(claim) = body {
            claim.is_signed_by_its_account(&Strict, &log)
        } else if let Body::AgentClaimed(claim) = body {
            claim.is_signed_by_its_key(&Strict, self.mesh)
        } else {
            true
        }
    }

    fn own_claim(&mut self, agent: AgentId) -> AgentClaimed {
        let by = keys::claim(self.dice.pick(&self.keys.own), self.mesh, &agent);
        AgentClaimed { agent, by: Some(by) }
    }

    /// An id that is a key's by its form.
    fn anothers(&mut self, claim: &AgentClaimed) -> AgentId {
        let key: KeyPrint = claim.key();
        if self.dice.chance(50) {
            // Those that agents of the world have, too.
            let random = if self.dice.chance(50) { *b"random" } else { [7; DRAWN_BYTES] };
            drawn(random, key)
        } else {
            let prefix = if self.dice.chance(50) { "mcp-" } else { "u-" };
            format!("{prefix}{}", &key.to_string()[..16]).as_str().into()
        }
    }
}

fn with_mailbox_of(of: KeySignature, other: &KeySignature) -> KeySignature {
    let halves = KeyHalves { mailbox: other.halves.mailbox, ..of.halves };
    KeySignature { halves, ..of }
}

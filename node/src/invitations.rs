//! The invitations that this node made, and the nodes that came by them: in `invitations.json`,
//! written before anybody is let in.

pub(crate) mod kept;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use mesh::{
    MeshSecret,
    name::id::{NodeId, parse_hex},
};
use net::{Doorkeeper, InvitationId, Net, limits::INVITATIONS_MAX};
use protocol::operator::{self, InvitationState};

use crate::{
    chance,
    clock::Clock,
    files::{DataDir, private::hex},
    invitation::{Invitation, Reply},
    limits::{INVITATION_LASTS_MAX, INVITATION_LASTS_MIN, INVITATION_USES_MAX},
    secret::Keeper,
    ticket::{Ticket, addresses_of},
};
use kept::KeptInvitation;

/// See the module.
pub(crate) struct Invitations {
    dir: DataDir,
    me: NodeId,
    secret: Arc<Keeper>,
    net: Net,
    kept: Mutex<Vec<KeptInvitation>>,
}

impl fmt::Debug for Invitations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invitations(…)")
    }
}

impl Invitations {
    /// Those of earlier starts; from here on they are answered.
    pub(crate) fn open(
        dir: DataDir,
        me: NodeId,
        secret: Arc<Keeper>,
        net: Net,
    ) -> Result<Arc<Invitations>> {
        let kept = dir.invitations()?;
        let invitations = Arc::new(Invitations { dir, me, secret, net, kept: Mutex::default() });
        invitations.net.keep_door(invitations.clone());
        invitations.tell_net(&kept);
        *invitations.locked() = kept;
        Ok(invitations)
    }

    /// A new one, by which `uses` nodes can join within `lasts`; the inviter is met at `addresses`.
    pub(crate) fn make(&self, uses: u32, lasts: Duration) -> Result<Invitation> {
        if !(1..=INVITATION_USES_MAX).contains(&uses) {
            bail!("--uses: choose 1 to {INVITATION_USES_MAX}");
        }
        if !(INVITATION_LASTS_MIN..=INVITATION_LASTS_MAX).contains(&lasts) {
            bail!("--expires: choose 1s to 365d");
        }
        let (id, key) = (*chance::draw::<8>()?, chance::draw::<32>()?);
        let mesh = self.secret.current();
        let print = print_of(&mesh);
        let made_ms = Clock::start().now().wall_ms;
        let expires_ms = made_ms.saturating_add(u64::try_from(lasts.as_millis())?);
        let new = KeptInvitation {
            id: hex(&id).to_string(),
            key: hex(&*key).to_string(),
            made_ms,
            expires_ms,
            uses,
            secret: print.clone(),
            admitted: Vec::new(),
            revoked: false,
        };
        self.change(|kept| {
            if kept.len() >= INVITATIONS_MAX {
                let over = |invitation: &KeptInvitation| invitation.state(&print, made_ms) != InvitationState::Open;
                let oldest = kept.iter().position(over).with_context(|| {
                    format!(
                        "{INVITATIONS_MAX} invitations of this node are open: revoke one, with `clawmeshd invite \
                         --revoke ID`"
                    )
                })?;
                kept.remove(oldest);
            }
            kept.push(new);
            Ok(())
        })?;
        let addresses = addresses_of(&self.net);
        let mesh = mesh.mesh_id();
        Ok(Invitation { mesh, id, key, inviter: self.me, expires_ms, addresses })
    }

    /// Nobody comes in by it any more.
    pub(crate) fn revoke(&self, id: &str) -> Result<()> {
        self.change(|kept| {
            let found =
                kept.iter_mut().find(|invitation| invitation.id == id).with_context(|| {
                    format!(
                        "no invitation {id}: `clawmeshd invite --list` shows those of this node"
                    )
                })?;
            found.revoked = true;
            Ok(())
        })
    }

    /// For operators, the oldest first.
    pub(crate) fn list(&self) -> Vec<operator::Invitation> {
        let (print, now) = (print_of(&self.secret.current()), Clock::start().now().wall_ms);
        let shown = |invitation: &KeptInvitation| operator::Invitation {
            id: invitation.id.clone(),
            made: clawchat::timestamp(invitation.made_ms),
            expires: clawchat::timestamp(invitation.expires_ms),
            uses: invitation.uses,
            used: u32::try_from(invitation.admitted.len()).unwrap_or(u32::MAX),
            state: invitation.state(&print, now),
        };
        self.locked().iter().map(shown).collect()
    }

    /// By which of them a node came.
    pub(crate) fn of(&self, node_id: &str) -> Option<String> {
        let kept = self.locked();
        let found =
            kept.iter().find(|invitation| invitation.admitted.iter().any(|by| by == node_id))?;
        Some(found.id.clone())
    }

    /// Durable before it counts.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<KeptInvitation>) -> Result<T>) -> Result<T> {
        let mut kept = self.locked();
        let mut next = kept.clone();
        let done = change(&mut next)?;
        self.dir.write_invitations(&next)?;
        self.tell_net(&next);
        *kept = next;
        Ok(done)
    }

    /// Also those that are over: their guests are told so.
    fn tell_net(&self, kept: &[KeptInvitation]) {
        let known = kept.iter().filter_map(|invitation| {
            let key: [u8; 32] = parse_hex(&invitation.key)?;
            Some((invitation.number()?, key.into()))
        });
        self.net.invite(known.collect());
    }

    fn admit(&self, invitation: InvitationId, node: NodeId) -> Result<Reply> {
        let (now, node) = (Clock::start().now().wall_ms, node.to_string());
        let mut kept = self.locked();
        // Once: the ticket is to carry the secret that the invitation was judged by.
        let mesh = self.secret.current();
        let print = print_of(&mesh);
        let Some(at) = kept.iter().position(|kept| kept.number() == Some(invitation)) else {
            return Ok(Reply::Revoked);
        };
        // A guest that did not hear the answer may ask again.
        let again = kept[at].admitted.contains(&node);
        match kept[at].state(&print, now) {
            InvitationState::Expired => return Ok(Reply::Expired),
            InvitationState::Revoked => return Ok(Reply::Revoked),
            InvitationState::SecretChanged => return Ok(Reply::SecretChanged),
            InvitationState::UsedUp if !again => return Ok(Reply::UsedUp),
            InvitationState::UsedUp | InvitationState::Open => {}
        }
        if !again {
            let mut next = kept.clone();
            next[at].admitted.push(node.clone());
            self.dir.write_invitations(&next)?;
            *kept = next;
            tracing::info!(invitation = kept[at].id, "node {node} comes in by an invitation");
        }
        let ticket = Ticket::new(mesh, self.me, addresses_of(&self.net));
        Ok(Reply::Ticket(ticket.to_text()))
    }

    fn locked(&self) -> MutexGuard<'_, Vec<KeptInvitation>> {
        // It is replaced as a whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doorkeeper for Invitations {
    fn answer(&self, invitation: InvitationId, node: net::NodeId) -> Vec<u8> {
        let reply = self.admit(invitation, NodeId(node)).unwrap_or_else(|error| {
            tracing::warn!(
                event = "invitation_failed",
                "somebody was invited, and is not let in: {error:#}"
            );
            Reply::Failed
        });
        serde_json::to_vec(&reply).unwrap_or_default()
    }
}

fn print_of(mesh: &MeshSecret) -> String {
    hex(&mesh.link().epoch().print).to_string()
}

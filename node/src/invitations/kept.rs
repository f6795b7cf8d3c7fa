//! One invitation, as `invitations.json` keeps it.

use mesh::name::id::parse_hex;
use net::InvitationId;
use protocol::operator::InvitationState;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize as _;

/// See the module.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct KeptInvitation {
    /// 16 hex digits.
    pub(super) id: String,
    /// 64 hex digits.
    pub(super) key: String,
    pub(super) made_ms: u64,
    pub(super) expires_ms: u64,
    pub(super) uses: u32,
    /// The print of the mesh's secret when the invitation was made.
    pub(super) secret: String,
    /// Ids of nodes, in the order in which they came.
    pub(super) admitted: Vec<String>,
    pub(super) revoked: bool,
}

impl Drop for KeptInvitation {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl KeptInvitation {
    pub(super) fn state(&self, secret: &str, now_ms: u64) -> InvitationState {
        if self.revoked {
            InvitationState::Revoked
        } else if self.secret != secret {
            InvitationState::SecretChanged
        } else if now_ms >= self.expires_ms {
            InvitationState::Expired
        } else if self.admitted.len() >= usize::try_from(self.uses).unwrap_or(usize::MAX) {
            InvitationState::UsedUp
        } else {
            InvitationState::Open
        }
    }

    pub(super) fn number(&self) -> Option<InvitationId> {
        parse_hex(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(uses: u32, admitted: usize) -> KeptInvitation {
        KeptInvitation {
            id: "00".repeat(8),
            key: "11".repeat(32),
            made_ms: 1_000,
            expires_ms: 2_000,
            uses,
            secret: "now".to_owned(),
            admitted: vec!["22".repeat(32); admitted],
            revoked: false,
        }
    }

    #[test]
    fn an_invitation_is_open_until_anything_ends_it() {
        let state = |it: &KeptInvitation, now| it.state("now", now);
        assert_eq!(state(&kept(2, 1), 1_999), InvitationState::Open);
        assert_eq!(state(&kept(2, 2), 1_999), InvitationState::UsedUp);
        assert_eq!(state(&kept(2, 1), 2_000), InvitationState::Expired);
        assert_eq!(kept(2, 1).state("later", 1_999), InvitationState::SecretChanged);
        let mut revoked = kept(2, 1);
        revoked.revoked = true;
        assert_eq!(state(&revoked, 1_999), InvitationState::Revoked);
    }
}

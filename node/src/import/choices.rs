//! An operator's choices for an import.

use mesh::name::id::KeyPrint;

/// The fate of open votes: their ballots are secret, and their voters gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenVotes {
    /// The file is refused.
    Refuse,
    /// They are left out.
    Skip,
    /// They end with the ballots that were cast.
    Close,
}

/// An operator's choices about rows that cannot be brought as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) open_votes: OpenVotes,
    /// Private rooms, stable ids and webhooks of keys that are not known become the node's own
    /// key's.
    pub(crate) private_to_own_key: bool,
    /// Rooms that no room of a mesh can be called, described or identified as get something else.
    pub(crate) rename_rooms: bool,
    /// Rows that cannot be brought are left out, with the rows that belong to them.
    pub(crate) skip_refused: bool,
    /// The node's own key.
    pub(crate) own: KeyPrint,
    /// The server's, if its file is there.
    pub(crate) server: Option<KeyPrint>,
}

impl Choices {
    /// For the journal: the entries depend on the choices.
    pub(crate) fn to_text(self) -> String {
        let Choices { open_votes, private_to_own_key, rename_rooms, skip_refused, own, server } =
            self;
        format!(
            "{open_votes:?} {private_to_own_key} {rename_rooms} {skip_refused} {own} {server:?}"
        )
    }
}

/// The texts of keys that are this node's.
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnKeys<'k> {
    /// The node's own.
    pub(crate) node: Option<&'k str>,
    /// The server's.
    pub(crate) server: Option<&'k str>,
}

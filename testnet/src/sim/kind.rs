//! The kinds of simulated worlds.

/// The nodes of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nodes that fail in every way, and never lie.
    #[default]
    Honest,
    /// One of them lies: promises are to the others.
    WithLiar,
    /// One of them is expelled, or given up: promises are to the others.
    WithParting,
    /// The disk of one of them is lost for ever: promises are to the others, and of messages that it had said several
    /// nodes hold.
    WithLoss,
    /// The disk of one of them is replaced by an earlier copy, as from a backup: the records that they keep are judged, those of
    /// that node, too.
    WithRestore,
    /// Agents write to each other, and have inboxes: these are judged.
    WithInboxes,
    /// Agents answer everything that they are told: they stop.
    Answering,
    /// Two nodes are never up together, and others carry for them what they cannot read: when one goes it has what the other wrote.
    Carried,
}

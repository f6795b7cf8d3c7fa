//! The mailbox: mail that agents send each other, sealed by nodes and encrypted by clients.
//!
//! In reading order: [`sending`], [`opened`] (what an account reads of its own mail), [`showing`] (lists and single mails),
//! [`sessions`] (mail that is part of a negotiation), [`plain`] and [`negotiating`] (for accounts whose PGP key a node made), [`notices`] (words of the node itself).

pub(crate) mod negotiating;
pub(crate) mod notices;
pub(crate) mod opened;
pub(crate) mod plain;
pub(crate) mod sending;
pub(crate) mod sessions;
pub(crate) mod showing;

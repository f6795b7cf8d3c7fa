//! Subjects of lies, as coverage counts them.

use mesh::wire::{
    entry::Body,
    message::{Message, traits::Class},
};

use crate::sim::coverage::Happening;

/// The subject of a body that lies.
pub(super) fn written(body: &Body) -> Happening {
    match body {
        Body::Chat(_) | Body::Thinking(_) | Body::Delivery(_) => Happening::Words,
        Body::Decision(_) | Body::Election(_) => Happening::Elections,
        Body::Ordered(_) => Happening::Numbers,
        Body::EraClaimed(_) => Happening::Eras,
        Body::HandedOver(_) => Happening::Handovers,
        Body::NodeAdmitted(_) | Body::Parted(_) => Happening::Lanes,
        Body::RoomCreated(_) | Body::DirectOpened(_) | Body::DirectClosed(_) => Happening::Rooms,
        Body::AgentClaimed(_) => Happening::AgentIds,
        Body::AccountClaimed(_) => Happening::Accounts,
        Body::Key(_) => Happening::Keys,
        Body::Vote(_) => Happening::Votes,
        Body::Task(_) => Happening::Tasks,
        Body::Once(_) | Body::Approval(_) => Happening::Onces,
        Body::Unknown => Happening::Junk,
    }
}

/// The subject of a message that lies.
pub(super) fn said(message: &Message) -> Happening {
    match message.traits().class {
        Class::Holdings | Class::Carrying => Happening::Heads,
        Class::Wants => Happening::Questions,
        Class::Handover => Happening::Posts,
        Class::Life => Happening::Signs,
        Class::Rosters | Class::Streams => Happening::Rosters,
        Class::Membership => Happening::Secrets,
        Class::Receipts => Happening::Copies,
        Class::Records => Happening::Records,
        // Entries are counted as they are written.
        Class::Entries => Happening::Words,
    }
}

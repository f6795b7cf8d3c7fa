//! Accounts: claiming them, and looking for them.

use super::known::Known;
use crate::{
    api::{
        account::{AccountRefused, RecordBound, Whose},
        command::{Outcome, Refused},
    },
    directory::Source,
    limits::{ACCOUNTS_MAX, ACCOUNTS_PER_NODE_MAX},
    name::{
        account::Label,
        id::{KeyPrint, RoomId},
        key::KeySecret,
    },
    wire::{account::AccountClaimed, entry::Body, signatures::SignedLog},
};

/// Claims an account. It is answered when the claim, at this place, has its number. `None`: it has one, this node wrote it
/// before.
pub(super) fn claim(
    known: &mut Known,
    account: &KeySecret,
    labels: Vec<Label>,
) -> Result<Option<Source>, Refused> {
    let log = SignedLog { mesh: known.cx.mesh, node: known.cx.me };
    let claim = AccountClaimed::sign(account, &log, labels);
    let claim = claim.map_err(|short| Refused::Impossible(short.to_string()))?;
    if !claim.may_count() {
        return Err(refuse(AccountRefused::Form));
    }
    let (account, me) = (claim.account(), known.cx.me);
    let accounts = &known.directory.accounts;
    if accounts.has_ended(account) {
        return Err(refuse(AccountRefused::Ended));
    }
    let directory = RoomId::directory(known.cx.mesh);
    let is_writable = known.rooms.get(&directory).is_some_and(|room| room.is_writable(&known.cx));
    // A client that has lost its answer asks again. At a node that was expelled since a claim gets no number any more.
    match accounts.same_claim(account, &claim.labels, me) {
        Some((_, true)) => return Ok(None),
        Some((place, false)) if is_writable => return Ok(Some(place)),
        Some(_) | None => {}
    }
    if !accounts.is_known(account) && accounts.len() >= ACCOUNTS_MAX {
        return Err(full(Whose::Mesh, ACCOUNTS_MAX));
    }
    if !accounts.has_room_for(account, me) {
        let is_full = accounts.claimed_by(me) >= ACCOUNTS_PER_NODE_MAX;
        let too_often = refuse(AccountRefused::TooMuch);
        return Err(if is_full { full(Whose::Node, ACCOUNTS_PER_NODE_MAX) } else { too_often });
    }
    if !is_writable {
        return Err(known.not_writable(directory));
    }
    let room = known.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
    let at = room.append(&mut known.cx, &Body::AccountClaimed(claim)).ok_or(Refused::Closed)?;
    Ok(Some((directory, at)))
}

/// An account, if it is known.
pub(super) fn find(known: &Known, account: KeyPrint) -> Outcome {
    Outcome::Account(known.directory.accounts.view(account).map(Box::new))
}

/// The accounts that claim a label.
pub(super) fn claims(known: &Known, label: Label) -> Outcome {
    Outcome::Claims(known.directory.accounts.of_label(label))
}

pub(super) fn refuse(why: AccountRefused) -> Refused {
    Refused::Account(why)
}

fn full(whose: Whose, max: usize) -> Refused {
    refuse(AccountRefused::Full(RecordBound { collection: None, whose, max }))
}

//! Words of the node itself to an account: in its inbox at this node, and nowhere else.

use mesh::{
    api::account::RecordView,
    limits::FINDER_NOTICES_MAX,
    records::finder::{NOTICES, Notice},
    wire::record::{RecordId, Stamp},
};
use serde_json::{Value, json};

use bridge::seam::call::ListRecords;

use crate::{
    caller::Caller,
    problem::Answer,
    registry::{Registry, now_us},
    shapes, times, usernames,
};

/// A notice that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: RecordId,
    pub(crate) notice: Notice,
    /// The name of this node.
    node: String,
}

impl Kept {
    pub(crate) fn created(&self) -> Stamp {
        Stamp::at(self.notice.wall_ms.saturating_mul(1_000))
    }

    /// As a row of the inbox.
    pub(crate) fn document(&self) -> Value {
        json!({
            "id": shapes::uuid(self.id),
            "sender_id": "mesh",
            "sender_name": format!("clawmesh {}", self.node),
            "subject": self.notice.subject,
            "is_read": self.notice.is_read,
            "created_at": times::of_ms(self.notice.wall_ms),
            "mesh": {"form": "plain"},
        })
    }

    /// With its text.
    pub(crate) fn whole(&self) -> Value {
        let mut shown = self.document();
        shown["body"] = json!(self.notice.text);
        shown
    }
}

/// The notices of an account, after those that are due are written.
pub(crate) async fn of(registry: &Registry, caller: &Caller) -> Answer<Vec<Kept>> {
    let mut kept = all(registry, caller).await?;
    let mut due = orphaned(registry, caller);
    due.extend(renamed(registry, caller, &kept));
    for (subject, text) in due {
        let place = free(&kept);
        let notice = Notice { place, subject, text, wall_ms: now_us() / 1_000, is_read: false };
        let id = notice.id(caller.print);
        registry.write(caller, NOTICES.number, id, Some(notice.encode())).await?;
        kept.retain(|kept| kept.id != id);
        kept.push(Kept { id, notice, node: registry.settings.node.clone() });
    }
    Ok(kept)
}

async fn all(registry: &Registry, caller: &Caller) -> Answer<Vec<Kept>> {
    let list = ListRecords {
        collection: NOTICES.number,
        owner: Some(caller.print),
        first: Vec::new(),
        after: None,
        limit: FINDER_NOTICES_MAX,
    };
    let page = registry.desk.ask(registry.visitor(), list).await?;
    let read = |record: RecordView| {
        let notice = Notice::decode(record.body.as_deref()?)?;
        Some(Kept { id: record.id, notice, node: registry.settings.node.clone() })
    };
    Ok(page.records.into_iter().filter_map(read).collect())
}

/// The place of the next one: one that is free, or that of the oldest.
fn free(kept: &[Kept]) -> u16 {
    let most = u16::try_from(FINDER_NOTICES_MAX).unwrap_or(u16::MAX);
    let is_free = |place: &u16| kept.iter().all(|kept| kept.notice.place != *place);
    let oldest = || kept.iter().min_by_key(|kept| kept.notice.wall_ms);
    (0..most).find(is_free).or_else(|| oldest().map(|kept| kept.notice.place)).unwrap_or_default()
}

type Words = (String, String);

/// Mail that went before it was read, as its recipient was deleted. It names nobody: who was deleted is forgotten.
fn orphaned(registry: &Registry, caller: &Caller) -> Vec<Words> {
    if !registry.index().letters.has_orphans(caller.print) {
        return Vec::new();
    }
    let letters = registry.take_orphans(caller.print);
    let word = |letter: crate::index::Letter| {
        let at = times::of_stamp(letter.created);
        let (at, id) = (at.as_str().unwrap_or_default().to_owned(), shapes::uuid(letter.id));
        let text = format!(
            "Your message {id} of {at} was not read: the account that it was for was deleted before, and the message went with it."
        );
        ("A message of yours was not read".to_owned(), text)
    };
    letters.into_iter().map(word).collect()
}

/// The account shows under another username than it wants. Said once for each name under which it shows.
fn renamed(registry: &Registry, caller: &Caller, kept: &[Kept]) -> Option<Words> {
    let index = registry.index();
    let account = index.live(caller.print)?;
    let shown = index.shown_name(account);
    if shown == account.username {
        return None;
    }
    let subject = format!("Your username is {shown} now");
    let is_said = kept.iter().any(|kept| kept.notice.subject == subject);
    let text = format!(
        "The username {} was registered on two sides of a split, and the other account came first. You show as {shown}, at every node. Your id, key, jobs, mail and sessions are as before. If the other account is deleted, you have the name back.",
        account.username
    );
    (!is_said).then_some((subject, text))
}

/// A notice by its id.
pub(crate) async fn find(registry: &Registry, caller: &Caller, id: &str) -> Answer<Option<Kept>> {
    let Some(id) = usernames::uuid(id).map(RecordId) else { return Ok(None) };
    let found = registry.records(NOTICES.number, vec![(id, caller.print)]).await?.pop();
    Ok(found.and_then(|record| {
        let notice = Notice::decode(record.body.as_deref()?)?;
        Some(Kept { id: record.id, notice, node: registry.settings.node.clone() })
    }))
}

/// It is read, or is not.
pub(crate) async fn mark(
    registry: &Registry,
    caller: &Caller,
    kept: Kept,
    is_read: bool,
) -> Answer<()> {
    let notice = Notice { is_read, ..kept.notice };
    Ok(registry.write(caller, NOTICES.number, kept.id, Some(notice.encode())).await?)
}

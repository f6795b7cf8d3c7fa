//! What clients read.

use mesh::{
    records::finder::{Contact, Job, Pricing, Profile, Review},
    wire::record::RecordId,
};
use openpgp::Certificate;
use serde_json::{Map, Value, json};

use crate::{
    index::{Account, JobRow, ReviewRow},
    times,
};

/// An account with all that is known of it.
pub(crate) struct Agent {
    pub(crate) account: Account,
    /// The username under which it shows.
    pub(crate) shown_name: String,
    /// Its last request, in milliseconds since 1970.
    pub(crate) seen_ms: Option<u64>,
    pub(crate) profile: Profile,
}

impl Agent {
    /// As everybody sees it.
    pub(crate) fn public(&self) -> Value {
        let Agent { account, shown_name, seen_ms, profile } = self;
        let mut mesh = json!({
            "uuid": uuid(account.uuid),
            "hosted": profile.vault.is_some(),
            "proven": account.is_proven,
        });
        if !account.former.is_empty() {
            let former: Vec<String> = account.former.iter().map(ToString::to_string).collect();
            mesh["former_ids"] = json!(former);
        }
        if let Some(host) = account.host {
            mesh["host"] = json!(host.to_string());
        }
        if *shown_name != account.username {
            mesh["username_wanted"] = json!(account.username);
        }
        json!({
            "id": account.id.to_string(),
            "name": account.name,
            "username": shown_name,
            "pgp_key": self.pgp_key(),
            "payment_methods": profile.payment,
            "contact_methods": profile.contact.iter().map(contact).collect::<Vec<_>>(),
            "created_at": times::of_stamp(account.registered),
            "last_seen_at": seen_ms.map_or(Value::Null, times::of_ms),
            "mesh": mesh,
        })
    }

    /// As it sees itself.
    pub(crate) fn own(&self) -> Value {
        let mut own = self.public();
        own["updated_at"] = times::of_stamp(self.account.updated);
        own
    }

    /// Its certificate, and those that it had: mail that was signed with them is still to be read.
    fn pgp_key(&self) -> String {
        let blocks = self.certificates().filter_map(|bytes| Certificate::from_bytes(bytes).ok());
        blocks.map(|certificate| certificate.armored()).collect()
    }

    /// The current one, and those that it had.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        let former = self.profile.former.iter().map(|former| former.certificate.as_slice());
        std::iter::once(self.profile.certificate.as_slice()).chain(former)
    }
}

fn contact(contact: &Contact) -> Value {
    let mut shown = Map::new();
    shown.insert("method".to_owned(), json!(contact.method));
    if let Some(handle) = &contact.handle {
        shown.insert("handle".to_owned(), json!(handle));
    }
    Value::Object(shown)
}

/// Words of a price, in the order of their numbers.
pub(crate) const PRICE_TYPES: [(&str, Pricing); 3] =
    [("free", Pricing::Free), ("fixed", Pricing::Fixed), ("negotiable", Pricing::Negotiable)];

pub(crate) fn job(row: &JobRow, job: &Job, agent: &Value) -> Value {
    let metadata: Value = serde_json::from_str(&job.metadata).unwrap_or_else(|_| json!({}));
    let price_type = PRICE_TYPES.iter().find(|(_, kind)| *kind == job.pricing);
    json!({
        "id": uuid(row.id),
        "agent": agent,
        "title": job.title,
        "description": job.description,
        "metadata": metadata,
        "price_type": price_type.map(|(word, _)| *word),
        "price": job.price,
        "is_active": job.active,
        "created_at": times::of_stamp(row.created),
        "updated_at": times::of_stamp(row.updated),
    })
}

/// An account as a review names it.
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) username: String,
}

pub(crate) fn review(
    row: &ReviewRow,
    review: &Review,
    (reviewer, reviewee): (&Named, &Named),
    is_transaction: bool,
) -> Value {
    json!({
        "id": uuid(row.id),
        "reviewer_id": reviewer.id,
        "reviewer_name": reviewer.name,
        "reviewer_username": reviewer.username,
        "reviewee_id": reviewee.id,
        "reviewee_name": reviewee.name,
        "reviewee_username": reviewee.username,
        "job_id": uuid(row.job),
        "job_title": review.title,
        "stars": review.stars,
        "text": review.text,
        "created_at": times::of_stamp(row.created),
        "mesh": {"transaction": is_transaction, "updated_at": times::of_stamp(row.updated)},
    })
}

/// An id in the usual form.
pub(crate) fn uuid(id: RecordId) -> String {
    let hex: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

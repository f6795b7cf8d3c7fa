//! Webhooks: to this node, which goes on where the server got to.

use std::collections::BTreeMap;

use anyhow::Result;
use bridge::{
    BroughtWebhook,
    limits::{WEBHOOKS_MAX, WEBHOOKS_PER_KEY_MAX},
};
use import::{ServerFile, Status, Subscription};
use mesh::id::KeyPrint;
use protocol::object::SubscriptionStatus;

use super::{Choices, Findings, Owners, Plan, Thing};

impl Plan {
    pub(super) fn take_webhooks(
        &mut self,
        file: &ServerFile,
        (choices, owners): (Choices, &Owners),
        findings: &mut Findings,
    ) -> Result<()> {
        let mut of_key: BTreeMap<KeyPrint, usize> = BTreeMap::new();
        let mut private = Vec::new();
        for it in findings.readable(Thing::Webhook, file.subscriptions()?) {
            let Some(place) = self.place(&it.room) else {
                findings.ledger.leave(Thing::Webhook, self.no_room(&it.room), Some(&it.id));
                continue;
            };
            let row = (Thing::Webhook, "subscriptions", it.id.clone());
            let mut refuse = |why: String| findings.row((row.0, row.1, &row.2), why);
            let own = choices.private_to_own_key.then_some(choices.own);
            let Some(owner) = owners.find(&it.owner).or(own) else {
                refuse(
                    "its key is neither in api_keys nor the server's: --server-key-file, or --private-to-own-key"
                        .to_owned(),
                );
                continue;
            };
            let it = brought(it, owner);
            if let Err(why) = it.check() {
                refuse(why);
                continue;
            }
            let same = of_key.entry(owner).or_default();
            if *same >= WEBHOOKS_PER_KEY_MAX || self.webhooks.len() >= WEBHOOKS_MAX {
                refuse(format!(
                    "a node has at most {WEBHOOKS_PER_KEY_MAX} of a key, and {WEBHOOKS_MAX} in all"
                ));
                continue;
            }
            *same += 1;
            if it.stays_private() {
                private.push(it.id.clone());
            }
            self.webhooks.push((place, it));
        }
        let what = "webhooks go to addresses that are not public: they will fail unless the node is started with \
                    --allow-private-webhooks";
        findings.ledger.note_named(what, &private);
        Ok(())
    }
}

fn brought(it: Subscription, owner: KeyPrint) -> BroughtWebhook {
    BroughtWebhook {
        id: it.id,
        owner,
        url: it.url,
        secret: it.secret,
        kinds: it.kinds,
        only_from: it.only_from,
        not_from: it.not_from,
        exclude_thinking: it.exclude_thinking,
        since: it.since,
        delivered: it.delivered,
        status: match it.status {
            Status::Active => SubscriptionStatus::Active,
            Status::Failed => SubscriptionStatus::Failed,
            Status::Disabled => SubscriptionStatus::Disabled,
        },
        failures: it.failures,
        created_ms: it.created_ms,
    }
}

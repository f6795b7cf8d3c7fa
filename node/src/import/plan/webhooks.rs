//! Webhooks: to this node, which goes on where the server got to.

use std::collections::BTreeMap;

use anyhow::Result;
use bridge::{
    BroughtWebhook,
    limits::{WEBHOOKS_MAX, WEBHOOKS_PER_KEY_MAX},
    seam::answer::SubscriptionStatus,
};
use import::{ServerFile, Status, Subscription};
use mesh::name::id::KeyPrint;

use super::{
    Plan,
    findings::Findings,
    ledger::{Named, Thing},
    owners::Owners,
};

pub(super) fn take(
    plan: &mut Plan,
    file: &ServerFile,
    owners: &Owners,
    findings: &mut Findings,
) -> Result<()> {
    let mut of_key: BTreeMap<KeyPrint, usize> = BTreeMap::new();
    let [mut private, mut ahead, mut unfiltered] = [(); 3].map(|()| Named::default());
    for subscription in findings.readable(Thing::Webhook, file.subscriptions()?) {
        let Some(place) = plan.place(&subscription.room) else {
            findings.ledger.leave(
                Thing::Webhook,
                plan.no_room(&subscription.room),
                Some(&subscription.id),
            );
            continue;
        };
        let id = subscription.id.clone();
        let which = (Thing::Webhook, "subscriptions", &*id);
        let own = owners.choices.private_to_own_key.then_some(owners.choices.own);
        let Some(owner) = owners.find(&subscription.owner).or(own) else {
            let why = "its key is neither in api_keys nor the server's";
            let advice = match owners.choices.server {
                Some(_) => "--private-to-own-key",
                None => "--server-key-file, or --private-to-own-key",
            };
            findings.row_or(which, why, advice);
            continue;
        };
        let mut webhook = brought(subscription, owner);
        if let Err(why) = webhook.check() {
            findings.row(which, why);
            continue;
        }
        let same = of_key.entry(owner).or_default();
        if *same >= WEBHOOKS_PER_KEY_MAX || plan.webhooks.len() >= WEBHOOKS_MAX {
            let why = format!(
                "a node has at most {WEBHOOKS_PER_KEY_MAX} of a key, and {WEBHOOKS_MAX} in all"
            );
            findings.row(which, why);
            continue;
        }
        *same += 1;
        if webhook.stays_private() {
            private.add(&id);
        }
        // Beyond its room's end a webhook got messages that the room will never have.
        let end = plan.next.get(&place).map_or(0, |next| next - 1);
        if webhook.delivered > end {
            webhook.delivered = end;
            ahead.add(&id);
        }
        if webhook.kinds.as_ref().is_some_and(Vec::is_empty) {
            unfiltered.add(&id);
        }
        plan.webhooks.push((place, webhook));
    }
    let what = "webhooks go to addresses that are not public: they will fail unless the node is started with \
                --allow-private-webhooks";
    let ledger = &mut findings.ledger;
    ledger.note_named(what, &private);
    let what = "webhooks are beyond the last number of their room, and go on from there";
    ledger.note_named(what, &ahead);
    let what = "webhooks have a list of kinds that is empty, which is taken for all kinds";
    ledger.note_named(what, &unfiltered);
    Ok(())
}

fn brought(subscription: Subscription, owner: KeyPrint) -> BroughtWebhook {
    BroughtWebhook {
        id: subscription.id,
        owner,
        url: subscription.url,
        secret: subscription.secret,
        kinds: subscription.kinds,
        only_from: subscription.only_from,
        not_from: subscription.not_from,
        exclude_thinking: subscription.exclude_thinking,
        since: subscription.since,
        delivered: subscription.delivered,
        status: match subscription.status {
            Status::Active => SubscriptionStatus::Active,
            Status::Failed => SubscriptionStatus::Failed,
            Status::Disabled => SubscriptionStatus::Disabled,
        },
        failures: subscription.failures,
        created_ms: subscription.created_ms,
    }
}

//! Notices: posted to the URL of a subscription, and said in no room.

use std::{sync::Arc, time::Duration};

use mesh::name::id::KeyPrint;
use tokio::time::sleep;

use super::{
    Answering, Webhooks,
    book::Subscription,
    post::{Delivery, PostError, Shown},
    sign::signature,
    worker::unix,
};
use crate::{
    limits::NOTICE_RETRY_AFTER,
    seam::{
        call::PostNotice,
        refusal::{Refusal, WebhookField, WebhookRule},
    },
};

impl Webhooks {
    /// Answered when the receiver has it, or when it has refused it at each try.
    pub(crate) fn notify(self: &Arc<Webhooks>, key: KeyPrint, notice: PostNotice) -> Answering<()> {
        let this = self.clone();
        Box::pin(async move {
            let hook =
                this.shop.book.get(&notice.subscription, key).ok_or(Refusal::NoSubscription)?;
            let mut pauses = NOTICE_RETRY_AFTER.into_iter();
            loop {
                if this.shop.book.is_off() {
                    return Err(unreachable("webhooks are switched off at this node"));
                }
                if !hook.is_live() {
                    return Err(Refusal::NoSubscription);
                }
                if !hook.is_active() {
                    return Err(unreachable(
                        "the webhook has failed, and rests until it is enabled",
                    ));
                }
                match (this.try_once(&hook, &notice).await, pauses.next()) {
                    (Ok(()), _) => return Ok(()),
                    (Err(_), Some(pause)) => sleep(pause).await,
                    (Err(error), None) => return Err(unreachable(&error.to_string())),
                }
            }
        })
    }

    async fn try_once(&self, hook: &Subscription, notice: &PostNotice) -> Result<(), PostError> {
        // Nobody closes it.
        let Ok(_slot) = self.shop.slots.acquire().await else { return Err(PostError::TimedOut) };
        let id = format!("{}_{}", hook.id, notice.id);
        let timestamp = unix(|since: &Duration| u128::from(since.as_secs()));
        let signature = signature(hook.secret.expose(), &id, timestamp, &notice.body);
        let shown = Shown::Signature { id, timestamp, signature };
        let (owner, target) = (hook.owner, hook.target.clone());
        self.shop.post.post(Delivery { owner, target, shown, body: notice.body.clone() }).await
    }
}

fn unreachable(why: &str) -> Refusal {
    Refusal::Webhook(WebhookField::Url, WebhookRule::Reachable(why.to_owned()))
}

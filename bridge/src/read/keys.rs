//! Keys that the mesh knows: for dialects in which holders of keys manage others. A dialect says who may; the bridge asks nobody.

use mesh::{
    api::{
        agenda::{KeyView, NewKey},
        command::Command,
    },
    name::{id::KeyPrint, key::KeySecret},
    wire::acts::{KeyMinted, KeyTerms},
};

use super::Desk;
use crate::{
    ids,
    reply::{Failure, Reply},
    seam::{
        answer::{self, Answer},
        refusal::{Bound, Refusal},
    },
    secret::Secret,
};

#[expect(clippy::missing_errors_doc, reason = "one error, documented at its type")]
impl Desk {
    /// All keys that were minted, revoked ones included.
    pub async fn keys(&self) -> Result<Vec<KeyView>, Refusal> {
        self.ended(Command::ListKeys).await
    }

    /// Mints a key of these terms, which begins with `prefix`. Answered when it is durable; nobody keeps its text.
    pub async fn mint_key(
        &self,
        prefix: &str,
        terms: KeyTerms,
    ) -> Result<(Secret, KeyPrint), Refusal> {
        let text = format!("{prefix}{}", ids::key());
        let minted = KeyMinted::sign(&KeySecret::of(&text), &self.office.config.here, terms);
        let minted = minted.expect("a key of 64 characters is long enough");
        let key = minted.key();
        self.ended::<()>(Command::MintKey(NewKey { minted: Box::new(minted), local: false }))
            .await?;
        Ok((Secret::new(text), key))
    }

    /// Makes a key invalid, for ever. Answered when that is durable here.
    pub async fn revoke_key(&self, key: KeyPrint) -> Result<(), Refusal> {
        self.ended(Command::RevokeKey { key }).await
    }

    async fn ended<A: Answer>(&self, command: Command) -> Result<A, Refusal> {
        let (reply, ended) = Reply::once();
        self.office.mesh.call(command, reply);
        let ended = ended.await.unwrap_or(Err(Failure::Unknown));
        answer::read(ended, Bound::Node)
    }
}

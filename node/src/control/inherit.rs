//! Records of a key that was replaced: its successor signs them anew.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use mesh::{
    api::command::{Command, SignAnew},
    name::key::KeySecret,
};
use protocol::operator::{Answer, HiddenText};
use store::inherited;

use super::{Control, fingerprint};
use crate::limits::SIGNED_ANEW_AT_ONCE;

impl Control {
    pub(super) async fn sign_anew(&self, replaced: &str, successor: HiddenText) -> Result<Answer> {
        let replaced = fingerprint(replaced)?;
        let signer = Arc::new(KeySecret::of(&successor.0));
        let (reader, mesh) = (self.reader.clone(), self.secret.current().mesh_id());
        let reading = tokio::task::spawn_blocking(move || inherited::of(&reader, mesh, replaced));
        let (mut records, mut left) = reading.await.context("the thread has ended")??;
        let mut signed = 0;
        while !records.is_empty() {
            let some: Vec<_> = records.drain(..records.len().min(SIGNED_ANEW_AT_ONCE)).collect();
            let count = some.len();
            let anew = SignAnew { replaced, signer: signer.clone(), records: some };
            match self.engine(Command::SignAnew(Box::new(anew))).await {
                Ok(_) => signed += count,
                Err(error) => {
                    left += count;
                    tracing::debug!("records of a replaced key are not signed anew: {error:#}");
                }
            }
        }
        tracing::info!(key = %replaced, signed, left, "records of a replaced key were signed anew");
        Ok(Answer::SignedAnew { signed, left })
    }
}

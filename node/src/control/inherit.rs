//! Records of a key that was replaced: its successor signs them anew.

use std::{pin::pin, sync::Arc};

use anyhow::{Context as _, Result};
use mesh::{
    api::command::{Command, Outcome, SignAnew},
    name::key::KeySecret,
};
use protocol::operator::{Answer, HiddenText};
use store::inherited;
use tokio::{net::unix::OwnedWriteHalf, time::timeout};

use super::{Control, fingerprint, tell, wrong_answer};
use crate::limits::{CONTROL_PROGRESS_EVERY, CONTROL_TIMEOUT, SIGNED_ANEW_AT_ONCE};

impl Control {
    /// It may take long, so the client is told how far it is. A client that has gone ends nothing.
    pub(super) async fn sign_anew(
        &self,
        replaced: &str,
        successor: HiddenText,
        write: &mut OwnedWriteHalf,
    ) -> Result<Answer> {
        let replaced = fingerprint(replaced)?;
        let signer = Arc::new(KeySecret::of(&successor.0));
        let (reader, mesh) = (self.reader.clone(), self.secret.current().mesh_id());
        let reading = tokio::task::spawn_blocking(move || inherited::of(&reader, mesh, replaced));
        let mut reading = pin!(reading);
        let read = loop {
            match timeout(CONTROL_PROGRESS_EVERY, reading.as_mut()).await {
                Ok(read) => break read,
                Err(_) => tell_progress(write, 0, 0).await,
            }
        };
        let (mut records, mut left) = read.context("the thread has ended")??;
        let (mut signed, of) = (0, records.len());
        while !records.is_empty() {
            tell_progress(write, of - records.len(), of).await;
            let some: Vec<_> = records.drain(..records.len().min(SIGNED_ANEW_AT_ONCE)).collect();
            let anew = SignAnew { replaced, signer: signer.clone(), records: some };
            let answer = self.engine(Command::SignAnew(Box::new(anew))).await?;
            let Outcome::SignedAnew { signed: more, left: refused } = answer else {
                return Err(wrong_answer());
            };
            (signed, left) = (signed + more, left + refused);
        }
        tracing::info!(key = %replaced, signed, left, "records of a replaced key were signed anew");
        Ok(Answer::SignedAnew { signed, left })
    }
}

async fn tell_progress(write: &mut OwnedWriteHalf, done: usize, of: usize) {
    let progress = Answer::Progress { rows: done as u64, of: of as u64 };
    // It may have gone meanwhile.
    drop(timeout(CONTROL_TIMEOUT, tell(write, &progress)).await);
}

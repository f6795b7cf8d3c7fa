//! Addresses of peers, kept for the next start.

use net::PeerAddress;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::sleep,
};

use crate::{
    files::DataDir,
    limits::{REMEMBER_EVERY, REMEMBERED_MAX},
};

/// Writes what is learned, now and then; and at the end, see [`Remembered::close`].
#[derive(Debug)]
pub(crate) struct Remembered {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Remembered {
    /// From the addresses known, the newest last, on.
    pub(crate) fn start(
        dir: DataDir,
        known: Vec<PeerAddress>,
        mut learned: mpsc::Receiver<PeerAddress>,
    ) -> Remembered {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut known = known;
            loop {
                tokio::select! {
                    address = learned.recv() => {
                        let Some(address) = address else { return };
                        if !note(&mut known, address) {
                            continue;
                        }
                    }
                    _ = &mut stopped => return,
                }
                // At once: a node that is killed soon after its start is to find a peer again.
                known = write(dir.clone(), known).await;
                let last = tokio::select! {
                    () = sleep(REMEMBER_EVERY) => false,
                    _ = &mut stopped => true,
                };
                if last {
                    let mut is_news = false;
                    while let Ok(address) = learned.try_recv() {
                        is_news |= note(&mut known, address);
                    }
                    if is_news {
                        write(dir, known).await;
                    }
                    return;
                }
            }
        });
        Remembered { stop, task }
    }

    /// Writes what is not written yet.
    pub(crate) async fn close(self) {
        drop(self.stop);
        // An error is a panic there, and was told.
        drop(self.task.await);
    }
}

/// Notes an address as the newest; `false` if it is known.
fn note(known: &mut Vec<PeerAddress>, address: PeerAddress) -> bool {
    if known.contains(&address) {
        return false;
    }
    known.push(address);
    known.drain(..known.len().saturating_sub(REMEMBERED_MAX));
    true
}

async fn write(dir: DataDir, known: Vec<PeerAddress>) -> Vec<PeerAddress> {
    let writing = tokio::task::spawn_blocking(move || {
        if let Err(error) = dir.write_peers(&known) {
            tracing::warn!(event = "peers_not_written", "peers are not remembered: {error:#}");
        }
        known
    });
    // A panic there: the known addresses are lost with it, later ones are not.
    writing.await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stopped_while_it_waits_it_writes_and_ends() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(temp.path()).unwrap();
        let (learned, addresses) = mpsc::channel(1);
        let remembered = Remembered::start(dir.clone(), Vec::new(), addresses);
        let all = ["10.0.0.1:1", "10.0.0.2:2"].map(|it| it.parse::<PeerAddress>().unwrap());
        // There is room for the second one when the first has been taken: from then on it waits.
        for address in &all {
            learned.send(address.clone()).await.unwrap();
        }
        drop(remembered.stop);
        remembered.task.await.expect("it ends, and does not panic");
        assert_eq!(dir.peers(), all);
    }
}

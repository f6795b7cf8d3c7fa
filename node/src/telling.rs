//! What the log tells by itself, as long as the node runs: findings that `status` shows, too, when they begin and end.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::{
    clocks::{self, News, Told},
    control::Control,
    limits::CLOCKS_LOOKED_AT_EVERY,
    reach,
};

/// Between two looks. Only a finding of two looks in a row is told: nodes that come and go are connected
/// anew within less.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Says when the node begins to be reached through one other node alone, and when that ends.
pub(crate) async fn reach(control: Arc<Control>) {
    let (mut seen, mut told) = (None, None);
    loop {
        sleep(LOOK_EVERY).await;
        let Ok(status) = control.report().await else { continue };
        let now = status.only_through;
        if now == seen && now != told {
            match &now {
                Some(through) => tracing::warn!(
                    event = "only_through",
                    "this node is {}; open its port for other nodes, or give --listen an address that they reach",
                    reach::sentence(through)
                ),
                None => tracing::info!("this node is not reached through one node alone any more"),
            }
            told.clone_from(&now);
        }
        seen = now;
    }
}

/// Says whose clock differs, and whose does not any more.
pub(crate) async fn clocks(control: Arc<Control>) {
    let mut told = Told::default();
    loop {
        sleep(CLOCKS_LOOKED_AT_EVERY).await;
        let Ok(status) = control.report().await else { continue };
        for news in told.news(&status.peers) {
            match news {
                News::Differs { name, ahead_ms } => tracing::warn!(
                    event = "clock_differs",
                    "the clock of {name} is {} this node's: set the wrong one right, with NTP",
                    clocks::words(ahead_ms)
                ),
                News::Agrees { name } => {
                    tracing::info!("the clock of {name} agrees with this node's again");
                }
            }
        }
    }
}

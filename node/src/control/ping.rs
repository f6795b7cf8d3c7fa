//! A round trip to another node, for its operator.

use anyhow::{Result, anyhow, ensure};
use protocol::operator::{Answer, Peer, Pong};

use super::Control;
use crate::members;

impl Control {
    pub(super) async fn ping(&self, wanted: &str) -> Result<Answer> {
        let me = self.me.to_string();
        let is_me = wanted == self.name || (wanted.len() >= 4 && me.starts_with(wanted));
        let found = Peer::find(&self.report().await?.peers, wanted).cloned();
        ensure!(found.is_ok() || !is_me, "that is this node itself");
        let node_id = found.map_err(|why| anyhow!(why))?.node_id;
        let node_id = node_id.ok_or_else(|| anyhow!("nobody has answered there yet"))?;
        let went = self.net.ping(members::node_id(&node_id)?.0).await;
        // The way that it took, as far as that can be said afterwards.
        let peers = self.report().await?.peers;
        let peer = peers.iter().find(|peer| peer.node_id.as_ref() == Some(&node_id));
        let reason = peer.and_then(|peer| peer.last_error.clone());
        let why = match &went {
            Ok(_) => reason,
            Err(why) => Some(reason.unwrap_or_else(|| why.to_string())),
        };
        Ok(Answer::Pong(Pong {
            name: peer.and_then(|peer| peer.name.clone()),
            through: peer.and_then(|peer| peer.carried_by(&peers)),
            rtt_ms: went.ok().map(|took| took.as_secs_f64() * 1_000.0),
            why,
            node_id,
        }))
    }
}

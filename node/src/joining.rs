//! The outcome of a start that is to join a mesh: waited for a few seconds, then told in one line.

use std::{fmt, sync::Arc, time::Instant};

use mesh::name::id::{MeshId, NodeId};
use net::NoLink;
use protocol::operator::{Member, MemberState, Status};
use tokio::time::sleep;

use crate::{
    clocks,
    control::Control,
    limits::{JOIN_LOOKED_AT_EVERY, JOIN_WAITED_FOR},
    members, report,
};

/// A start, and the nodes that it is to join through.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) control: Arc<Control>,
    pub(crate) mesh: MeshId,
    /// The inviters of its tickets. May be empty.
    pub(crate) inviters: Vec<NodeId>,
    /// It has made the mesh just now.
    pub(crate) founded: bool,
}

/// All that is known of it after the wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Joined {
    /// The node is the first one of a mesh of its own.
    Founded(MeshId),
    /// It is a member, as far as it knows itself.
    Member {
        /// The mesh.
        mesh: MeshId,
        /// The name of the node that it came in through.
        through: String,
        /// Members that are known here, this node included.
        members: usize,
        /// Milliseconds by which that node's clock is ahead of this one's, or below 0 behind, if they differ.
        clock_ahead_ms: Option<i64>,
    },
    /// There is a link, and the members of the mesh are not known here yet.
    Linked {
        /// The node at the other end: its name, or the beginning of its id.
        through: String,
        /// As of a member.
        clock_ahead_ms: Option<i64>,
    },
    /// It has no part in the mesh any more: its fate, in words.
    Removed(String),
    /// There is no link. Why, for each address; empty: nothing is known yet. It is tried again.
    NotYet(Vec<String>),
}

impl Joining {
    pub(crate) fn new(control: Arc<Control>, inviters: Vec<NodeId>, founded: bool) -> Joining {
        let mesh = control.secret.current().mesh_id();
        Joining { control, mesh, inviters, founded }
    }

    /// Waits until it is known the fate of it, at most [`JOIN_WAITED_FOR`]. `None`: it was told to join
    /// nobody, and is no new node.
    pub(crate) async fn outcome(&self) -> Option<Joined> {
        if self.founded {
            return Some(Joined::Founded(self.mesh));
        }
        if self.inviters.is_empty() {
            return None;
        }
        let end = Instant::now() + JOIN_WAITED_FOR;
        loop {
            let late = Instant::now() >= end;
            if let Some(joined) = self.look(late).await {
                return Some(joined);
            }
            sleep(JOIN_LOOKED_AT_EVERY).await;
        }
    }

    /// `late`: there is no more time, so there is an answer.
    async fn look(&self, late: bool) -> Option<Joined> {
        let status = match self.control.report().await {
            Ok(status) => status,
            Err(_) if late => return Some(Joined::NotYet(Vec::new())),
            Err(_) => return None,
        };
        if let Some(fate) = report::apart(&status) {
            return Some(Joined::Removed(fate));
        }
        let Some(through) = self.linked(&status) else { return self.unlinked(late) };
        let all = self.control.members().await.unwrap_or_default();
        let here = |member: &Member| member.state == MemberState::Here;
        let (name, known) = named(&through, &all);
        let clock = status.peers.iter().find(|peer| peer.node_id.as_ref() == Some(&through));
        let clock = clock.and_then(|peer| peer.clock_ahead_ms);
        // It takes some beacons until it is known. The line that people read at a start is to have it.
        if clock.is_none() && !late {
            return None;
        }
        let clock_ahead_ms = clock.filter(|ahead_ms| clocks::differs(*ahead_ms));
        if known && all.iter().any(here) {
            let members = all.iter().filter(|member| member.parted.is_none()).count();
            return Some(Joined::Member {
                mesh: self.mesh,
                through: name,
                members,
                clock_ahead_ms,
            });
        }
        late.then_some(Joined::Linked { through: name, clock_ahead_ms })
    }

    /// The id of a node that it is connected to: an inviter, if there is one.
    fn linked(&self, status: &Status) -> Option<String> {
        let up = status.peers.iter().filter(|peer| peer.connected);
        let mut up: Vec<String> = up.filter_map(|peer| peer.node_id.clone()).collect();
        let inviters: Vec<String> = self.inviters.iter().map(ToString::to_string).collect();
        up.sort_by_key(|id| !inviters.contains(id));
        up.into_iter().next()
    }

    /// Some troubles do not pass by themselves: then nothing more is waited for.
    fn unlinked(&self, late: bool) -> Option<Joined> {
        let peers = self.control.net.peers();
        let invited = peers
            .into_iter()
            .filter(|peer| peer.node.is_some_and(|node| self.inviters.contains(&NodeId(node))));
        let why: Vec<Option<NoLink>> = invited.map(|peer| peer.last_error).collect();
        let lasting =
            |why: &Option<NoLink>| why.as_ref().is_some_and(|why| why.trouble.is_lasting());
        let decided = !why.is_empty() && why.iter().all(lasting);
        let texts = why.into_iter().flatten().map(|why| why.text).collect();
        (late || decided).then_some(Joined::NotYet(texts))
    }
}

/// A node's name, and whether it is known as a member.
fn named(id: &str, members: &[Member]) -> (String, bool) {
    let member = members.iter().find(|member| member.node_id == id);
    let name = member.map_or_else(|| members::short(id).to_owned(), |it| members::shown(&it.name));
    (name, member.is_some())
}

impl Joined {
    /// Whether it went as it was meant to.
    #[must_use]
    pub fn is_well(&self) -> bool {
        match self {
            Joined::Founded(_) | Joined::Member { .. } | Joined::Linked { .. } => true,
            Joined::Removed(_) | Joined::NotYet(_) => false,
        }
    }

    /// Whether the clock here and that of the node at the other end differ.
    #[must_use]
    pub fn clocks_differ(&self) -> bool {
        match self {
            Joined::Member { clock_ahead_ms, .. } | Joined::Linked { clock_ahead_ms, .. } => {
                clock_ahead_ms.is_some()
            }
            Joined::Founded(_) | Joined::Removed(_) | Joined::NotYet(_) => false,
        }
    }
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Joined::Founded(mesh) => write!(f, "founded mesh {mesh}: it has no other node yet"),
            Joined::Member { mesh, through, members, clock_ahead_ms } => {
                let nodes = if *members == 1 { "member" } else { "members" };
                write!(f, "joined mesh {mesh} through {through} ({members} {nodes})")?;
                clock(f, through, *clock_ahead_ms)
            }
            Joined::Linked { through, clock_ahead_ms } => {
                write!(
                    f,
                    "connected to {through}; the members of the mesh are not known here yet: see \
                     `clawmeshd members`"
                )?;
                clock(f, through, *clock_ahead_ms)
            }
            Joined::Removed(fate) => f.write_str(fate),
            Joined::NotYet(why) if why.is_empty() => {
                f.write_str("not joined yet: no answer so far; it is tried again")
            }
            Joined::NotYet(why) => {
                write!(f, "not joined yet: {}; it is tried again", why.join("; "))
            }
        }
    }
}

/// Which of the two clocks is wrong, nobody knows; mostly it is the newcomer's.
fn clock(f: &mut fmt::Formatter<'_>, of: &str, ahead_ms: Option<i64>) -> fmt::Result {
    ahead_ms.map_or(Ok(()), |ms| {
        let words = clocks::words(ms.saturating_neg());
        write!(
            f,
            "; CLOCK: this machine's is {words} that of {of}: set the wrong one right, with NTP"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_one_line() {
        let mesh = MeshId([0xab; 16]);
        let joined =
            Joined::Member { mesh, through: "first".to_owned(), members: 3, clock_ahead_ms: None };
        let text = format!("joined mesh {} through first (3 members)", "ab".repeat(16));
        assert_eq!(joined.to_string(), text);
        assert!(!joined.clocks_differ());
        let clock_ahead_ms = Some(-3_600_000);
        let off = Joined::Member { mesh, through: "first".to_owned(), members: 3, clock_ahead_ms };
        let clock = "; CLOCK: this machine's is 3600.0 s ahead of that of first: set the wrong one right, with NTP";
        assert_eq!(off.to_string(), text + clock);
        assert!(off.is_well() && off.clocks_differ(), "it has joined, and is told so as a warning");
        let why = vec!["10.0.0.1:1: refused".to_owned(), "10.0.0.2:1: timed out".to_owned()];
        let not = Joined::NotYet(why).to_string();
        assert!(not.contains("refused; 10.0.0.2:1: timed out"), "{not}");
        assert!(!not.contains('\n'));
    }
}

//! The operator's policies, as calls are judged by them: for agents of every dialect.

use mesh::name::id::RoomId;

use super::{
    ask::Ask,
    party::Party,
    rules::Rules,
    seat::{Seat, Then},
};
use crate::{
    announcing::Announcing,
    policy::{Place, Session},
    seam::{
        answer::RoomFacts,
        call::{MaySend, Sends},
        refusal::{Denied, Refusal},
    },
};

impl Rules {
    /// Whether the operator lets a party send something: first which agents may write to each other, then the rules about
    /// sessions.
    pub(super) fn may_send(
        &self,
        party: &Party,
        sends: &Sends,
        facts: Option<&RoomFacts>,
    ) -> Result<(), Refusal> {
        let Some(me) = party.as_reader().agent else { return Ok(()) };
        let (peer, session) = match (sends, facts) {
            (Sends::ToAgent { task: true, agent }, _) => (Some(agent), Session::of_new_task()),
            (Sends::ToAgent { task: false, agent }, _) => (Some(agent), Session::with(&me, agent)),
            (Sends::InRoom { room, by_tool }, Some(facts)) => {
                let sides = facts.access.sides.as_ref();
                if sides.is_none() && !by_tool {
                    return Ok(());
                }
                let lobby = RoomId::lobby(self.config.here.mesh);
                let (room, task, public) = (*room, facts.task, facts.access.public);
                let session = Place { room, sides, task, public, lobby }.session(&me);
                (sides.map(|sides| sides.peer_of(&me)), session)
            }
            // It is refused with all else that is wrong.
            (Sends::InRoom { .. }, None) => return Ok(()),
        };
        // The node itself asks its agents, and is answered.
        let teller = self.config.announcing.as_ref().map(Announcing::teller);
        if teller.is_some_and(|own| *own == me || peer == Some(own)) && peer.is_some() {
            return Ok(());
        }
        let policies = &self.config.policies;
        if let Some(other) = peer.filter(|peer| !policies.agent_to_agent.allows(&me, peer)) {
            return Err(Denied::AgentToAgent { one: me.clone(), other: other.clone() }.into());
        }
        let judged = policies.may_send(&me, &session);
        judged.map_err(|by| Denied::Sending { key: session.key, by }.into())
    }
}

impl Ask for MaySend {
    fn begin(self, seat: &mut Seat, then: Then<()>) {
        let MaySend { room, by_tool } = self;
        seat.look_up(Some(room), then, move |seat, me, then| {
            let sends = Sends::InRoom { room, by_tool };
            let judged = seat.rules.readable(&me, room);
            let judged = judged.and_then(|facts| seat.rules.may_send(&me, &sends, Some(&facts)));
            then(seat, judged);
        });
    }
}

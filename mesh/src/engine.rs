//! The engine: everything a node knows, and what it makes of its inputs.
//!
//! [`Engine::handle`] takes an input in; [`Engine::take_turn`] brings to an end whatever that set going
//! and returns what has to be stored and done. Many inputs may be handled before one turn is taken: the
//! store's commit is the batching window.

mod agents;
mod archived;
mod asked;
mod barrier;
mod calls;
pub(crate) mod config;
pub(crate) mod context;
mod elections;
mod handover;
pub(crate) mod happened;
mod import;
mod keys;
mod known;
mod membership;
pub(crate) mod noise;
mod open;
mod peers;
mod private;
mod refold;
mod retention;
mod roaming;
mod rooms;
mod secret;
mod tasks;
mod turn;
mod view;
mod votes;

pub use archived::archive;
pub use turn::bucket;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    api::{
        batch::Change,
        boundary::{Input, Turn},
        command::{CallId, Caller, Command, Outcome, Refused, Say},
    },
    engine::{known::Known, roaming::Roamer},
    limits::{BUCKETS, PAUSED_AFTER, TICK},
    name::{
        id::{AgentId, NodeId, RoomId},
        time::Now,
    },
    order::pulse::{Pulse, Spread},
    wire::message::Post,
};

/// See the module.
#[derive(Debug)]
pub struct Engine {
    known: Known,
    /// Rooms in which this node wrote what no other one is known to have: looked at when a peer turns out
    /// to have everything.
    unshared: BTreeSet<RoomId>,
    pulse: Pulse,
    /// How beacons go from now on.
    spread: Spread,
    calls: calls::Calls,
    voting: votes::Voting,
    leaders: elections::Leaders,
    claims: tasks::Claims,
    roams: roaming::Roams,
    next_registration: u64,
    /// Whose turn it is, as members were last told.
    turns: BTreeMap<RoomId, Option<AgentId>>,
    /// Rooms with so many members that they are not told of every turn.
    crowds: BTreeMap<RoomId, turn::Crowd>,
    /// Digests of all shared rooms, folded by bucket; and what each room contributes.
    buckets: [u64; BUCKETS],
    digests: BTreeMap<RoomId, u64>,
    /// Over all buckets: every beacon is compared with it.
    digest: u64,
    /// What each member said of itself.
    about: BTreeMap<NodeId, crate::wire::message::About>,
    /// How this node stands to the secret that it has.
    renewal: secret::Renewal,
    /// When this node last told its whole roster to whoever asked by gossip.
    roster_asked: Option<Duration>,
    /// When digests were last compared with a peer.
    compared: BTreeMap<NodeId, Duration>,
    /// Rosters known to be newer elsewhere: since when, so that news under way can come first.
    rosters_behind: BTreeMap<NodeId, Duration>,
    /// The digest at which a peer was last known to have everything.
    in_step: u64,
    /// Proofs of forks, for peers that have not heard of them.
    proofs: Vec<crate::wire::message::Message>,
    /// Messages for the lobby that wait until it is above this node's old one.
    held: Vec<(CallId, Caller, Say)>,
    roster_kept: agents::RosterKept,
    private: private::Private,
    barriers: barrier::Barriers,
    pruning: retention::Pruning,
    typing_nonce: u64,
    stopping: Option<handover::Stopping>,
    /// Eras that were handed to this node, by the node that had them before.
    taken: BTreeMap<NodeId, Vec<Post>>,
    next_tick: Duration,
    last_called: Duration,
}

impl Engine {
    /// Takes an input in. Never fails, never blocks; what follows from it is in the next turn.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.note_time(now);
        match input {
            Input::Command { call, command } => self.on_command(call, command),
            Input::Message { from, message } => self.on_message(from, message),
            Input::Gossip { from, message } => self.on_gossip(from, message),
            Input::PeerUp(peer) => self.on_peer_up(peer),
            Input::PeerDown(peer) => self.on_peer_down(peer),
            Input::Timeout => {}
        }
        if now.mono >= self.next_tick {
            self.next_tick = now.mono + TICK;
            self.tick();
        }
    }

    /// When [`Input::Timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.barriers.due().map_or(self.next_tick, |due| due.min(self.next_tick))
    }

    fn note_time(&mut self, now: Now) {
        if now.mono > self.last_called + PAUSED_AFTER {
            self.known.live.woke(now.mono, self.last_called);
        }
        self.last_called = self.last_called.max(now.mono);
        self.known.cx.now = now;
    }

    fn on_command(&mut self, call: CallId, command: Command) {
        if self.known.stopping
            && !matches!(command, Command::Status | Command::Behind | Command::Stop)
        {
            return self.reply(call, Err(Refused::Stopping));
        }
        // Events go out in the order of what they tell: who is listed in a reply was announced before it,
        // or an agent that joins next would hear of a member that it has seen already.
        self.settle_rosters();
        if let Some(command) = self.hold_back(call, command) {
            self.carry_out(call, command);
        }
    }

    /// What a command wants is done, or refused, as things are known now.
    fn carry_out(&mut self, call: CallId, command: Command) {
        if self.known.stopping
            && !matches!(command, Command::Status | Command::Behind | Command::Stop)
        {
            return self.reply(call, Err(Refused::Stopping));
        }
        let result = match command {
            Command::Attach(attach) => return self.attach(call, attach),
            Command::Detach { caller, seen } => self.detach(&caller, &seen),
            Command::CreateRoom { caller, room } => return self.create_room(call, &caller, room),
            Command::Join { caller, room } => self.join(&caller, room),
            Command::Leave { caller, room } => self.leave(&caller, room),
            Command::Say { caller, say } => return self.say(call, &caller, say),
            Command::SetTyping { caller, room, typing } => self.set_typing(&caller, room, typing),
            Command::SetPresence { caller, presence } => self.set_presence(&caller, presence),
            Command::ListRooms { key, parent } => self.list_rooms(key, parent),
            Command::ListAgents { key, room } => self.list_agents(key, room),
            Command::RoomInfo { key, room } => self.room_info(key, room),
            Command::CreateVote { caller, vote } => {
                votes::create_vote(&mut self.known, &caller, vote)
            }
            Command::CastVote { caller, vote, option } => {
                votes::cast_vote(&mut self.known, &caller, vote, option)
            }
            Command::GetVote { key, agent: _, vote } => votes::get_vote(&self.known, key, vote),
            Command::ListVotes { key, room, limit } => {
                votes::list_votes(&self.known, key, room, limit)
            }
            Command::ElectLeader { caller, room } => {
                elections::elect_leader(&mut self.known, &caller, room)
            }
            Command::Decline { caller, room } => elections::decline(&mut self.known, &caller, room),
            Command::AssignTask { caller, task } => {
                tasks::assign_task(&mut self.known, &caller, task)
            }
            Command::UpdateTask { caller, update } => {
                return self.claims.update_task(&mut self.known, call, &caller, update);
            }
            Command::ListTasks { key, room, status } => {
                tasks::list_tasks(&self.known, key, room, status)
            }
            Command::MintKey(key) => self.mint_key(key, 0),
            Command::SignUp(key) => self.mint_key(key, crate::limits::KEYS_FOR_OPERATORS),
            Command::RevokeKey { key } => self.revoke_key(key),
            Command::ListKeys => Ok(self.list_keys()),
            Command::CheckKey { key, own } => self.known.standing(key, own).map(Outcome::Key),
            Command::Keep { name, value } => Ok(self.keep(name, value)),
            Command::Roam { room, cursor, entries } => {
                return self.roams.roam(&mut self.known, call, Roamer { room, cursor, entries });
            }
            // What was to be waited for was.
            Command::Seek { .. } => Ok(Outcome::Done),
            Command::Status => Ok(Outcome::Status(self.status())),
            Command::Behind => Ok(Outcome::Behind(self.behind())),
            Command::Members => Ok(self.members()),
            Command::RotateSecret { drawn, force } => self.rotate_secret(&drawn, force),
            Command::Part { node, why, force } => self.part(node, why, force),
            Command::LeaveMesh { force } => return self.leave_mesh(call, force),
            Command::Stop => return self.begin_stopping(None),
        };
        self.reply(call, result);
    }

    fn reply(&mut self, call: CallId, result: Result<Outcome, Refused>) {
        self.known.cx.reply(call, result);
    }

    /// What has become due.
    fn tick(&mut self) {
        let now = self.known.cx.now.mono;
        if self.known.live.gave_up_hearing(now) {
            self.close_own_eras();
        }
        self.refresh_liveness();
        self.refresh_spread();
        self.known.rosters.expire(now);
        self.forget_empty_ephemeral_rooms();
        self.roams.go_on_roaming(&mut self.known);
        self.raise_lobby();
        self.redraw_lane();
        self.answer_unsettled();
        self.ask_for_rosters();
        self.offer();
        self.go_on_stopping();
        self.voting.go_on_with_all_votes(&mut self.known);
        self.pruning.go_on_pruning(&mut self.known);
        self.leaders.go_on_electing(&mut self.known);
        self.tell_crowds();
        self.compare_private_rooms();
        self.go_on_reading();
        self.measure_peers();
        self.repeat_about();
        self.give_to_those_left_out();
        self.known.cx.active.extend(self.known.busy.iter().copied());
    }

    /// The rows and effects so far, as a turn.
    fn end_turn(&mut self) -> Turn {
        if std::mem::take(&mut self.known.node_changed) {
            self.known.cx.batch.push(Change::Node(self.known.node.clone()));
        }
        Turn {
            batch: std::mem::take(&mut self.known.cx.batch),
            effects: std::mem::take(&mut self.known.cx.effects),
        }
    }
}

#[cfg(test)]
mod tests;

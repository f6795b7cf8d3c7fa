//! The engine: the state of a node, and its decisions about inputs.
//!
//! [`Engine::handle`] takes an input in; [`Engine::take_turn`] brings its effects to rest and returns
//! the rows to store and the effects to perform. Many inputs may be handled before one turn is taken:
//! the store's commit is the batching window.
//!
//! `Engine` is a dispatcher. `known` has the state that every part reads; each part owns its own fields,
//! and is given `known`. The way of a command: [`Engine::handle`], `dispatch`, the part's function, the
//! room. The way of a peer's message: `on_message`, the part or the room. Events within a turn and
//! entries of directories come back to the dispatcher (`ending`), for they concern several parts. No part
//! imports the dispatcher.

mod accounts;
mod agents;
mod approvals;
pub(crate) mod archived;
mod asked;
mod barrier;
mod beacons;
mod carrying;
mod conversing;
mod copied;
mod creating;
pub(crate) mod deliveries;
pub(crate) mod digests;
mod directories;
mod elections;
mod ending;
mod ephemeral;
mod exchange;
mod forks;
mod given;
mod handover;
mod hearsay;
mod import;
mod inboxes;
mod inquiries;
mod keys;
mod known;
mod listing;
mod members;
mod membership;
mod messages;
mod once;
mod open;
mod pairs;
mod policies;
mod private;
mod reach;
mod receipts;
mod records;
mod refold;
mod retention;
mod roaming;
mod roster_sync;
mod secret;
mod speaking;
mod streams;
mod tasks;
mod turn_token;
mod unvouched;
mod votes;
mod waiters;
mod waits;

use std::time::Duration;

use crate::{
    api::{
        batch::Change,
        boundary::{Input, Turn},
        command::{
            Attach, CallId, Caller, Command, NewRoom, Outcome, Refused, Speech,
            traits::{OnRelay, Unwritten, WhileStopping},
        },
        import::Import,
    },
    directory::{Source, proofs::Proofs},
    engine::{
        agents::{Agents, Typing},
        approvals::Approvals,
        barrier::Barriers,
        beacons::Beacons,
        carrying::Carrying,
        creating::Created,
        deliveries::fates::Fates,
        digests::Digests,
        elections::Leaders,
        forks::Forks,
        given::Given,
        handover::{Handovers, Leaving, Next, Owes},
        hearsay::Hearsay,
        inboxes::Inboxes,
        inquiries::{Inquiries, Subject},
        known::Known,
        once::Onces,
        pairs::{Following, Pairs, Wanted, shared::Making},
        private::Private,
        receipts::Receipts,
        records::{Profiled, Records},
        retention::Pruning,
        roaming::{Roamer, Roams},
        roster_sync::RosterSync,
        secret::Renewal,
        speaking::{Saying, Speaking},
        streams::Streams,
        tasks::Claims,
        turn_token::Turns,
        unvouched::Unvouched,
        votes::Voting,
        waiters::{Registering, Waiter, Waiters},
    },
    limits::{PAUSED_AFTER, TICK},
    name::{
        group::Group,
        id::{KeyPrint, NodeId, RoomId},
        key::KeySecret,
        number::Number,
        time::Now,
    },
    wire::entry::{AgentClaimed, Parting},
};

/// See the module. A clone goes its own way: it shares nothing with the first.
#[derive(Debug)]
pub struct Engine {
    known: Known,
    waiters: Waiters,
    speaking: Speaking,
    agents: Agents,
    inboxes: Inboxes,
    turns: Turns,
    voting: Voting,
    leaders: Leaders,
    claims: Claims,
    onces: Onces,
    approvals: Approvals,
    given: Given,
    roams: Roams,
    private: Private,
    barriers: Barriers,
    roster_sync: RosterSync,
    digests: Digests,
    forks: Forks,
    renewal: Renewal,
    beacons: Beacons,
    hearsay: Hearsay,
    pruning: Pruning,
    handovers: Handovers,
    unvouched: Unvouched,
    receipts: Receipts,
    inquiries: Inquiries,
    streams: Streams,
    pairs: Pairs,
    records: Records,
    carrying: Carrying,
    next_tick: Duration,
    last_called: Duration,
}

impl Engine {
    /// Takes an input in. Never fails, never blocks; its effects are in the next turn.
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

    /// In whose name nodes can speak: what it knows of that, now and later, for any thread.
    #[must_use]
    pub fn proofs(&self) -> Proofs {
        self.known.directory.proofs().clone()
    }

    /// The fate of requests, now and later, for any thread.
    #[must_use]
    pub fn fates(&self) -> Fates {
        self.speaking.deliveries.fates.clone()
    }

    /// When [`Input::Timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let due = [self.barriers.due(), self.unvouched.due()];
        due.into_iter().flatten().fold(self.next_tick, Duration::min)
    }

    fn note_time(&mut self, now: Now) {
        if now.mono > self.last_called + PAUSED_AFTER {
            self.known.live.woke(now.mono, self.last_called);
        }
        self.last_called = self.last_called.max(now.mono);
        self.known.cx.now = now;
    }

    /// Writes something that the founder imports. Its effects are in the next turn, as with all
    /// inputs; a room is there to be written in once the turn with it was taken.
    ///
    /// # Errors
    ///
    /// It cannot be brought: this node did not found the mesh, numbers would not rise, or it is not of
    /// the form that all nodes take. Nothing of it is written then, but the part of a list that comes before.
    pub fn import(&mut self, now: Now, brought: Import) -> Result<(), Refused> {
        self.note_time(now);
        import::check(&self.known)?;
        let known = &mut self.known;
        match brought {
            Import::Key(key, opener) => {
                let print = key.minted.key();
                keys::mint(known, key, 0)?;
                self.fold_facts();
                if let Some(opener) = opener {
                    let group = Group::Key(print);
                    self.private.follow(&mut self.known, &mut self.digests, group, &opener);
                }
            }
            Import::Agent(agent, by) => {
                import::agent(known, AgentClaimed { agent, by })?;
                self.fold_facts();
            }
            Import::Lobby(description, created_ms) => {
                import::lobby(known, description, created_ms)?;
                self.fold_facts();
            }
            Import::Room(room) => {
                let id = room.room;
                import::room(known, room)?;
                self.fold_facts();
                import::check_taken(&self.known, id)?;
            }
            Import::Messages(messages) => import::messages(known, messages)?,
            Import::Vote(room, wall_ms, vote) => import::vote(known, room, wall_ms, vote)?,
            Import::Task(task) => import::task(known, task)?,
        }
        Ok(())
    }

    // Commands.

    fn on_command(&mut self, call: CallId, command: Command) {
        if self.known.cx.is_relay() && command.traits().on_relay == OnRelay::Refused {
            let why = "this node is a relay: it has no rooms, records or agents; ask another one";
            return self.known.cx.reply(call, Err(Refused::Impossible(why.to_owned())));
        }
        if self.known.stopping && command.traits().while_stopping == WhileStopping::Refused {
            return self.known.cx.reply(call, Err(Refused::Stopping));
        }
        // Events go out in the order of the things that they tell: an agent that is listed in a reply
        // was announced before it, or an agent that joins next would hear of a member that it has seen
        // already.
        self.settle_rosters();
        // Nobody else is asked for an agent that is stopped.
        if let Err(refused) = self.lets(&command) {
            return self.known.cx.reply(call, Err(refused));
        }
        if let Some(command) = self.barriers.hold_back(&mut self.known, call, command) {
            self.carry_out(call, command);
        }
    }

    /// Whether nobody has stopped the agent that would send something with a command.
    fn lets(&self, command: &Command) -> Result<(), Refused> {
        command.sender().map_or(Ok(()), |(key, agent)| self.known.lets(key, agent))
    }

    /// Does what a command wants, or refuses it, as things are known now.
    fn carry_out(&mut self, call: CallId, command: Command) {
        if self.known.stopping && command.traits().while_stopping == WhileStopping::Refused {
            return self.known.cx.reply(call, Err(Refused::Stopping));
        }
        if let Command::Say { say, .. } = &command
            && say.speech == Speech::Decision
        {
            // A leader decides after members were told that it leads.
            self.unvouched.hurry(say.room);
        }
        // It may have been stopped meanwhile.
        if let Err(refused) = self.lets(&command) {
            return self.known.cx.reply(call, Err(refused));
        }
        if let Some((key, signer)) = signing(&command)
            && keys::vouch_for_signer(&mut self.known, key, signer)
        {
            // Known at once, as claims are.
            self.fold_facts();
        }
        if let Some((caller, room)) = written(&self.known, &command) {
            let seated = self.agents.sit_to_write(&mut self.known, caller, room);
            if let Err(refused) = seated {
                return self.known.cx.reply(call, Err(refused));
            }
        }
        self.dispatch(call, command);
    }

    /// Gives a command to its part.
    #[expect(clippy::too_many_lines, reason = "a table: one row for each command")]
    fn dispatch(&mut self, call: CallId, command: Command) {
        let known = &mut self.known;
        let result = match command {
            Command::Attach(attach) => return self.attach(call, attach),
            Command::Detach { caller, seen } => self.detach(&caller, &seen),
            Command::Linger { caller, seen, hosted } => {
                agents::linger(&mut self.known, &caller, &seen, hosted)
            }
            Command::CreateRoom { caller, room } => return self.create_room(call, &caller, room),
            Command::OpenDirect { caller, signer, agent, task } => {
                let wanted = Wanted { call, caller, signer, with: agent, task };
                let following =
                    Following { private: &mut self.private, digests: &mut self.digests };
                return self.pairs.open_direct(known, &mut self.records, following, wanted);
            }
            Command::CreateShared { caller, signer, room } => {
                let making = Making { call, caller, signer, room };
                let following =
                    Following { private: &mut self.private, digests: &mut self.digests };
                return self.pairs.make_shared(known, &mut self.records, following, making);
            }
            Command::Share(share) => pairs::shared::share(known, &mut self.records, *share),
            Command::Join { caller, room } => self.agents.join(known, &caller, room, false),
            Command::JoinAsGuest { caller, room } => self.agents.join(known, &caller, room, true),
            Command::Leave { caller, room } => self.agents.leave(known, &caller, room),
            Command::Say { caller, say } => {
                let saying = Saying { call, caller, say };
                return self.speaking.say(known, &mut self.waiters, &mut self.leaders, saying);
            }
            Command::Inbox { caller, act } => {
                let is_new = !self.inboxes.has(known, &caller.agent);
                let done = self.inboxes.act(known, &caller, act);
                if is_new && done.is_ok() {
                    self.given.note_agent(known, &mut self.inboxes, &caller);
                }
                done
            }
            Command::Handed { agent, room, requests } => {
                Ok(self.speaking.deliveries.handed(known, &agent, room, &requests))
            }
            Command::SetTyping { caller, room, typing } => self.agents.set_typing(
                known,
                &mut self.roster_sync,
                &caller,
                Typing { room, typing },
            ),
            Command::Stream { caller, piece } => self.streams.write(known, &caller, *piece),
            Command::AwaitPieces { rooms } => Ok(self.streams.await_pieces(known, rooms)),
            Command::SetPresence { caller, presence } => {
                agents::set_presence(known, &caller, presence)
            }
            Command::ListRooms { by, parent } => listing::list_rooms(known, &by, parent),
            Command::ListAgents { by, room } => listing::list_agents(known, &by, room),
            Command::RoomInfo { by, room } => listing::room_info(known, &by, room),
            Command::CreateVote { caller, vote } => votes::create_vote(known, &caller, vote),
            Command::CastVote { caller, vote, option } => {
                votes::cast_vote(known, &caller, vote, option)
            }
            Command::GetVote { by, vote } => votes::get_vote(known, &by, vote),
            Command::Receipts { by, room, at, number } => {
                return self.inquiries.begin(known, call, Subject { by, room, at, number });
            }
            Command::SignAnew(anew) => self.records.sign_anew(known, *anew),
            Command::GatherReplaced(gather) => {
                return self.records.gather_replaced(known, call, &gather);
            }
            Command::ListVotes { by, room, limit } => votes::list_votes(known, &by, room, limit),
            Command::ElectLeader { caller, room } => elections::elect_leader(known, &caller, room),
            Command::Decline { caller, room } => elections::decline(known, &caller, room),
            Command::AssignTask { caller, task } => tasks::assign_task(known, &caller, task),
            Command::UpdateTask { caller, update } => {
                return self.claims.update_task(known, call, &caller, update);
            }
            Command::Once(once) => return self.onces.ask(known, call, *once),
            Command::RequestApproval(new) => self.approvals.request(known, *new),
            Command::DecideApproval(decide) => {
                return self.approvals.decide(known, call, *decide);
            }
            Command::ListApprovals { by, room } => approvals::list(known, &by, room),
            Command::ListWaits { by } => Ok(self.speaking.requests.list(known, &by)),
            Command::ReadApproval { by, room, approval } => {
                approvals::read(known, &by, (room, approval))
            }
            Command::Given { caller, room, act } => self.given.act(known, &caller, (room, act)),
            Command::ListTasks { by, room, status } => tasks::list_tasks(known, &by, room, status),
            Command::ReadTask { by, room, task } => tasks::read_task(known, &by, (room, task)),
            Command::DeleteTask { caller, task } => tasks::delete_task(known, &caller, task),
            Command::MintKey(key) => self.write_key(|known| keys::mint(known, key, 0)),
            Command::SignUp(key) => self.write_key(|known| keys::sign_up(known, key)),
            Command::RevokeKey { key } => self.write_key(|known| keys::revoke(known, key)),
            Command::ReplaceKey(new) => self.write_key(|known| keys::replace(known, *new)),
            Command::ListKeys => Ok(keys::list(known)),
            Command::CheckKey { key, own } => known.standing(key, own).map(Outcome::Key),
            Command::SetProfile { caller, signer, update } => {
                self.records.set_profile(known, &caller, Profiled { signer, update: *update })
            }
            Command::SetProfileOf(of) => self.records.set_profile_of(known, *of),
            Command::SetRoom(set) => self.records.set_room(known, *set),
            Command::SetMember(set) => members::set(known, &mut self.records, *set),
            Command::LeaveOnRecord(leave) => {
                let left = self.agents.leave(known, &leave.caller, leave.room);
                if left.is_ok() {
                    members::note_left(known, &mut self.records, &leave);
                }
                left
            }
            Command::RetireAgent(retire) => self.records.retire(known, *retire),
            Command::StopAgents(stop) => self.records.stop(known, *stop),
            // The table of senders has decided it.
            Command::MaySend { .. } => Ok(Outcome::Done),
            Command::ListStops { key } => Ok(records::list_stops(known, key)),
            Command::ChangeAgentFile(change) => self.records.change_agent_file(known, *change),
            Command::PlaceOfKey { key } => known.directory_for(key, false).map(Outcome::Place),
            Command::ChangeFile(change) => self.records.change_file(known, *change),
            Command::ChangeSchedule(change) => self.records.change_schedule(known, *change),
            Command::ClaimAccount { account, labels } => {
                let claimed = accounts::claim(known, &account, labels);
                return self.on_account_claimed(call, claimed);
            }
            Command::WriteRecords(writes) => self.records.write_for(known, *writes),
            Command::PresentAccount(account) => self.records.present(known, &account),
            Command::FindAccount(account) => Ok(accounts::find(known, account)),
            Command::ListClaims(label) => Ok(accounts::claims(known, label)),
            Command::ListSeats { caller } => listing::list_seats(known, &caller),
            Command::NameNodes { nodes } => Ok(listing::name_nodes(known, &nodes)),
            Command::FindAgent { agent } => Ok(listing::find_agent(known, &agent)),
            Command::StandOutside { caller } => agents::stand_outside(known, &caller),
            Command::ListAttached { limit } => Ok(listing::list_attached(known, limit)),
            Command::ListDirect { key } => Ok(listing::list_direct(known, key)),
            Command::KeyTerms { key } => Ok(Outcome::Terms(known.terms(key).map(Box::new))),
            Command::ListOffering { capability, limit } => {
                Ok(listing::list_offering(known, capability.as_deref(), limit))
            }
            Command::CheckAgent { agent, key } => {
                agents::may_be(known, &agent, key).map(|()| Outcome::Done)
            }
            Command::Keep { name, value } => Ok(keys::keep(known, name, value)),
            Command::Roam { room, cursor, entries } => {
                return self.roams.roam(known, call, Roamer { room, cursor, entries });
            }
            // The command has waited for the thing that it seeks.
            Command::Seek { .. } => Ok(Outcome::Done),
            Command::Status => {
                let records = self.carrying.add_to(self.records.status());
                Ok(Outcome::Status(listing::status(known, records)))
            }
            Command::Attendance => Ok(Outcome::Attendance(listing::attendance(known))),
            Command::Behind => Ok(Outcome::Behind(listing::behind(known))),
            Command::Members => {
                Ok(membership::members(known, &self.renewal.about, self.digests.steps()))
            }
            Command::RotateSecret { drawn, force } => {
                self.renewal.rotate_secret(known, &drawn, force)
            }
            Command::Part { node, why, force } => self.part(node, why, force),
            Command::LeaveMesh { force } => return self.leave_mesh(call, force),
            Command::Stop => return self.begin_stopping(None),
        };
        self.known.cx.reply(call, result);
    }

    // Commands that several parts carry out.

    fn attach(&mut self, call: CallId, attach: Attach) {
        let standing = match agents::admit(&mut self.known, &attach) {
            Ok(standing) => standing,
            Err(refused) => return self.known.cx.reply(call, Err(refused)),
        };
        let (key, mailbox) = (attach.key, attach.mailbox.clone());
        if let Some(mailbox) = &mailbox {
            let following = Following { private: &mut self.private, digests: &mut self.digests };
            self.pairs.hold(key, mailbox);
            self.pairs.follow_told(&mut self.known, &mut self.records, following);
        }
        let registering = Registering { call, attach };
        let registering = self.private.present(&mut self.known, &mut self.digests, registering);
        mailbox.iter().for_each(|mailbox| pairs::keep(&mut self.known, key, mailbox));
        let Some(Registering { call, attach }) = registering else { return };
        if agents::must_claim(&self.known, &attach) {
            match agents::claim_id(&mut self.known, &attach) {
                Ok(place) => {
                    let attach = Box::new(attach);
                    self.waiters.wait(place, Waiter::Claimed { call, attach });
                    // Known at once, as rooms are.
                    self.fold_facts();
                }
                Err(refused) => self.known.cx.reply(call, Err(refused)),
            }
            return;
        }
        if keys::vouch(&mut self.known, key, attach.shown.as_deref()) {
            // Known at once, as claims are.
            self.fold_facts();
        }
        let agent = attach.agent.clone();
        let attached = self.agents.register(&mut self.known, attach, standing);
        self.known.cx.reply(call, Ok(Outcome::Attached(attached)));
        for room in members::rooms_for(&self.known, &agent, key) {
            self.agents.enlist(&mut self.known, (&agent, key), room, true);
        }
    }

    fn detach(&mut self, caller: &Caller, seen: &[(RoomId, Number)]) -> Result<Outcome, Refused> {
        if let Ok(record) = agents::leaving(&self.known, caller, seen) {
            self.send_off(&caller.agent, record);
        }
        Ok(Outcome::Done)
    }

    fn create_room(&mut self, call: CallId, caller: &Caller, room: NewRoom) {
        let key = caller.key;
        match creating::create(&mut self.known, caller, room) {
            Ok(Created::Listed(place)) => {
                self.waiters.wait(place, Waiter::Created { call, key });
                // Known at once: the next one that is asked for in this turn is counted with it.
                self.fold_facts();
            }
            Ok(Created::Ephemeral(room)) => {
                self.settle_rosters();
                let view = self.known.view(room).ok_or(Refused::NoRoom);
                let view = view.map(|view| Outcome::Room(self.known.for_key(view, key)));
                self.known.cx.reply(call, view);
            }
            Err(refused) => self.known.cx.reply(call, Err(refused)),
        }
    }

    /// Answered when the claim has its number.
    fn on_account_claimed(&mut self, call: CallId, claimed: Result<Option<Source>, Refused>) {
        match claimed {
            Ok(Some(place)) => {
                self.waiters.wait(place, Waiter::Account { call });
                // Known at once: the next one that is asked for in this turn is counted with it.
                self.fold_facts();
            }
            Ok(None) => self.known.cx.reply(call, Ok(Outcome::Done)),
            Err(refused) => self.known.cx.reply(call, Err(refused)),
        }
    }

    /// The entry that it writes is folded before anything else is decided.
    fn write_key(
        &mut self,
        write: impl FnOnce(&mut Known) -> Result<(), Refused>,
    ) -> Result<Outcome, Refused> {
        let written = write(&mut self.known);
        self.fold_facts();
        written.map(|()| Outcome::Done)
    }

    /// Shuts another node out (`force` aside), or says that it is gone for good.
    fn part(&mut self, node: NodeId, why: Parting, force: bool) -> Result<Outcome, Refused> {
        membership::part(&mut self.known, node, why, force)?;
        self.fold_facts();
        Ok(Outcome::Done)
    }

    /// This node leaves the mesh for good. Answered when it has.
    fn leave_mesh(&mut self, call: CallId, force: bool) {
        match membership::may_leave(&self.known, self.records.status(), force) {
            Ok(()) => self.begin_stopping(Some(Leaving { call, written: None, heard: false })),
            Err(refused) => self.known.cx.reply(call, Err(refused)),
        }
    }

    // Time, and the end.

    /// The operator wants the node to stop, or to leave.
    fn begin_stopping(&mut self, leaving: Option<Leaving>) {
        if self.known.stopping {
            return;
        }
        self.known.stopping = true;
        agents::let_all_go(&mut self.known);
        self.barriers.refuse_parked(&mut self.known);
        self.receipts.stop(&mut self.known);
        self.inquiries.go_on(&mut self.known);
        self.handovers.begin(&mut self.known, leaving);
        self.go_on_stopping();
    }

    /// Ends the stop when nothing is left to wait for.
    fn go_on_stopping(&mut self) {
        if !self.known.stopping {
            return;
        }
        let owes = if self.waiters.owe_numbers() { Owes::Numbers } else { Owes::Nothing };
        if self.handovers.go_on(&mut self.known, owes) == Next::WriteParting {
            // A log that forked takes nothing more: the others do not count on this node already.
            let me = self.known.cx.me;
            if membership::write_parted(&mut self.known, me, Parting::Left).is_ok() {
                self.fold_facts();
            }
            if self.known.cx.up.is_empty() {
                self.go_on_stopping();
            }
        }
    }

    /// Goes on with things that have become due.
    fn tick(&mut self) {
        let now = self.known.cx.now.mono;
        if self.known.live.gave_up_hearing(now) {
            self.known.close_own_eras();
        }
        membership::refresh_liveness(&mut self.known);
        self.hearsay.go_on(&mut self.known);
        self.beacons.refresh_spread(&self.known);
        self.known.rosters.expire(now);
        for expired in self.known.directory.take_expired(self.known.cx.now.wall_ms) {
            self.act_on(expired);
        }
        for room in ephemeral::empty_for_long(&self.known) {
            self.unlist_if_empty(room);
        }
        self.roams.go_on_roaming(&mut self.known);
        self.speaking.raise_lobby(&mut self.known, &mut self.waiters, &mut self.leaders);
        self.redraw_lane();
        self.answer_unsettled();
        self.roster_sync.ask(&mut self.known);
        self.handovers.offer(&mut self.known);
        self.go_on_stopping();
        self.voting.go_on_with_all_votes(&mut self.known);
        self.pruning.go_on_pruning(&mut self.known);
        self.given.go_on(&mut self.known, &self.inboxes);
        self.approvals.go_on(&mut self.known);
        self.leaders.go_on_electing(&mut self.known);
        self.turns.tell_crowds(&mut self.known);
        self.digests.compare_private_rooms(&mut self.known);
        private::go_on_reading(&mut self.known);
        self.barriers.measure_peers(&mut self.known);
        self.renewal.repeat_about(&mut self.known);
        self.renewal.give_to_those_left_out(&mut self.known);
        self.receipts.go_on(&mut self.known);
        self.records.go_on(&mut self.known);
        let clock_is_sound = self.pruning.trusts(self.known.cx.now);
        self.records.expire(&mut self.known, clock_is_sound);
        self.records.go_on_gathering(&mut self.known, clock_is_sound);
        let facts = (&mut self.digests, &self.records);
        self.carrying.go_on(&mut self.known, facts, clock_is_sound);
        // One bound for rooms and mail.
        let rest = self.known.config.carry.saturating_sub(self.carrying.bytes());
        self.records.set_carry(&mut self.known, rest);
        self.inquiries.go_on(&mut self.known);
        self.streams.go_on(&mut self.known);
        self.speaking.deliveries.go_on(&mut self.known);
        self.records.ask_contents(&mut self.known, true);
        self.known.stir_busy();
    }

    /// Whether a command has its answer in the next turn and asks for nothing to be made durable before
    /// it, other than the roster: all that a node whose disk is full takes. The time that goes with it
    /// is to be that of the turn that could not be written, so that nothing else becomes due.
    #[must_use]
    pub fn answers_unwritten(&self, command: &Command) -> bool {
        match command.traits().unwritten {
            Unwritten::Answered => true,
            Unwritten::Refused => false,
            // An id that nobody has claimed is claimed first, and where the private rooms of a minted key are
            // others are asked.
            Unwritten::Depends => {
                let Command::Attach(attach) = command else { return false };
                !agents::must_claim(&self.known, attach)
                    && (attach.own || !self.known.spans(attach.key))
            }
        }
    }

    /// The rows and effects so far, as a turn.
    fn end_turn(&mut self) -> Turn {
        self.unvouched.pass(&mut self.known);
        if std::mem::take(&mut self.known.node_changed) {
            self.known.cx.batch.push(Change::Node(self.known.node.clone()));
        }
        Turn {
            batch: std::mem::take(&mut self.known.cx.batch),
            effects: std::mem::take(&mut self.known.cx.effects),
        }
    }
}

/// The holder of a key that has this node sign what is the key's own, with no agent that has shown the key here.
fn signing(command: &Command) -> Option<(KeyPrint, &KeySecret)> {
    if let Command::SignAnew(anew) = command {
        return Some((anew.signer.print(), &anew.signer));
    }
    let (key, signer) = if let Command::StopAgents(stop) = command {
        (stop.key, &stop.signer)
    } else if let Command::RetireAgent(retire) = command {
        (retire.key, &retire.signer)
    } else if let Command::SetProfileOf(of) = command {
        (of.key, &of.signer)
    } else if let Command::ChangeAgentFile(change) = command {
        (change.key, &change.signer)
    } else {
        return None;
    };
    signer.as_deref().map(|signer| (key, signer))
}

/// The agent that writes with a command, and the room.
fn written<'c>(known: &Known, command: &'c Command) -> Option<(&'c Caller, RoomId)> {
    if let Command::Say { caller, say } = command {
        Some((caller, say.room))
    } else if let Command::AssignTask { caller, task } = command {
        Some((caller, task.room))
    } else if let Command::UpdateTask { caller, update } = command {
        known.index.tasks.get(&update.task).map(|(room, _)| (caller, *room))
    } else if let Command::Once(once) = command {
        Some((&once.caller, once.room))
    } else if let Command::RequestApproval(new) = command {
        Some((&new.caller, new.room))
    } else if let Command::DecideApproval(decide) = command {
        Some((&decide.caller, decide.room))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;

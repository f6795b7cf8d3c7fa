//! Who is in the mesh, and how nodes stop being in it (`docs/decisions/membership.md`).

use super::{Engine, handover::Leaving};
use crate::{
    api::{
        boundary::{Alarm, Effect},
        command::{CallId, Outcome, Refused},
        status::MemberStatus,
    },
    directory::{
        Learned,
        removals::{Removals, named},
    },
    engine::context::Fact,
    fold::act::Folded,
    limits::PARTED_LOGS_MAX,
    name::id::{EntryRef, LogId, NodeId, RoomId},
    wire::{
        entry::{Body, Kept, NodeParted, Parted, Parting},
        message::{Message, Notice, Signed},
    },
};

impl Engine {
    // What the directory says.

    /// Before anything else is restored: what counts of everything else depends on it. All partings count that this
    /// node has taken, as when they came, whatever turned out of their author later.
    pub(super) fn restore_parted(&mut self, stored: &crate::api::batch::Summary) {
        let directory = RoomId::directory(self.cx.mesh);
        let known = stored.rooms.iter().find(|it| it.room == directory);
        let mut parted = Removals::default();
        for (room, at, entry, _) in &stored.directory {
            let log = known.and_then(|it| it.logs.get(usize::try_from(at.log).ok()?));
            let Some(log) = log.filter(|_| *room == directory) else { continue };
            if let Body::Parted(it) = Body::decode(entry.facts.kind, &entry.body) {
                // What is wrong with it was counted when it came.
                let _ = parted.learn(log.id, entry.facts, &it);
            }
        }
        self.cx.out = parted.has(self.cx.me) || self.node.parted.is_some();
        self.cx.parted = parted;
    }

    /// Nobody is to be let in who has parted, from the first moment on.
    pub(super) fn shut_out_all_parted(&mut self) {
        let others = self.cx.parted.nodes().filter(|node| *node != self.cx.me);
        let effects: Vec<Effect> = others.map(Effect::ShutOut).collect();
        self.cx.effects.extend(effects);
        if let Some(it) = self.farewell() {
            self.cx.alarm(Alarm::Parted { node: self.cx.me, removal: it });
        }
    }

    /// A node has parted, says an entry of the mesh's directory.
    pub(super) fn learn_parted(&mut self, fact: &Fact, it: &NodeParted) {
        if fact.room != RoomId::directory(self.cx.mesh) {
            self.cx.blame(fact.log.author, |it| &mut it.void);
            return;
        }
        let news = !self.cx.parted.has(it.node);
        match self.cx.parted.learn(fact.log, fact.facts, it) {
            None => {}
            Some(Folded::Void) => self.cx.blame(fact.log.author, |it| &mut it.void),
            Some(Folded::Overflow) => self.cx.faults.overflow += 1,
            Some(Folded::Taken) => {
                if it.why == Parting::Expelled {
                    self.on_expelled(it.node, fact.log.author == self.cx.me);
                }
                self.part_with(it.node, news);
            }
        }
    }

    /// From here on `node` has no part. `news`: it had one until now, else less of it counts than before.
    fn part_with(&mut self, node: NodeId, news: bool) {
        let now = self.cx.now.mono;
        let connected = self.cx.up.contains(&node);
        self.live.forget(node);
        self.cx.up.remove(&node);
        self.compared.remove(&node);
        self.barriers.peers.forget(node);
        self.about.remove(&node);
        self.rosters_behind.remove(&node);
        self.rosters.set_alive(now, node, false);
        for key in self.cx.followers.forget(node) {
            self.on_followers_changed(key);
        }
        let mut void: Vec<(RoomId, (LogId, u64))> = Vec::new();
        for room in self.rooms.values_mut() {
            room.replica.sync.peer_down(node);
            let cuts = room.remove(&mut self.cx, node);
            if room.replica.is_directory {
                void.extend(cuts.into_iter().map(|cut| (room.replica.id, cut)));
            }
        }
        for (room, cut) in void {
            self.forget_claims(room, cut);
        }
        let Some(it) = self.cx.parted.view(node) else { return };
        if node == self.cx.me {
            return self.note_farewell(it);
        }
        if news {
            self.cx.alarm(Alarm::Parted { node, removal: it });
        }
        self.ask_for_secret_without_the_expelled();
        if connected {
            self.give_notice(node);
        } else {
            self.cx.effects.push(Effect::ShutOut(node));
        }
    }

    /// Nothing counts of what this log says in a directory from there on, numbers included: clients are told of rooms that
    /// are none any more or are called otherwise, and ids are whose they are without it.
    pub(super) fn forget_claims(&mut self, directory: RoomId, cut: (LogId, u64)) {
        let disowned =
            self.directory.forget(self.cx.mesh, directory, EntryRef { log: cut.0, seq: cut.1 });
        self.fold_lost();
        // Before clients are told: they need not hear of a room that it is gone, and there again.
        self.note_rooms_without_lead();
        self.answer_unsettled();
        for agent in disowned {
            self.act_on(Learned::Agent(agent));
        }
        let told = self.told.keys().copied().filter(|id| self.rooms.contains_key(id));
        for id in told.collect::<Vec<_>>() {
            self.tell_of_room(id, false);
        }
    }

    // Telling it to whom it is about.

    /// A node that has parted is told so, and shut out.
    pub(super) fn give_notice(&mut self, node: NodeId) {
        let Some(parted) = self.cx.parted.view(node) else { return };
        let notice = Notice { by: self.cx.me, node, parted };
        let signed = Signed::new(self.cx.mesh, &self.identity, notice);
        self.cx.send(node, Message::Parted(signed));
        self.cx.effects.push(Effect::ShutOut(node));
    }

    /// A member says that this node has parted. That it says so is certain; who has decided it is not.
    pub(super) fn on_notice(&mut self, from: NodeId, notice: Notice) {
        let member = self.live.others.contains(&notice.by) && notice.by == from;
        if notice.node != self.cx.me || !member {
            self.cx.faults.stray += 1;
            return;
        }
        if let Some(leaving) = self.leaving() {
            leaving.heard = true;
            return self.go_on_stopping();
        }
        self.note_farewell(Parted { by: notice.by, ..notice.parted });
    }

    /// This node has no part any more: it writes nothing, and nobody waits for what it would write.
    fn note_farewell(&mut self, it: Parted) {
        if self.node.parted.is_some() {
            return;
        }
        self.change_node().parted = Some(it);
        self.cx.out = true;
        self.cx.alarm(Alarm::Parted { node: self.cx.me, removal: it });
        self.refuse_waiters(|_, _| true);
        self.cx.active.extend(self.busy.iter().copied());
    }

    /// What became of this node, if it has no part any more.
    pub(super) fn farewell(&self) -> Option<Parted> {
        self.cx.parted.view(self.cx.me).or(self.node.parted)
    }

    // What operators want.

    /// Shuts another node out (`force` aside), or says that it is gone for good.
    pub(super) fn part(
        &mut self,
        node: NodeId,
        why: Parting,
        force: bool,
    ) -> Result<Outcome, Refused> {
        let no = |text: &str| Err(Refused::Invalid(text.to_owned()));
        if node == self.cx.me {
            return no("that is this node itself: it can leave, with `clawmeshd leave`");
        }
        if self.cx.out {
            return no("this node has no part in the mesh any more: ask another one");
        }
        if !self.directory.nodes.admitted.contains_key(&node) {
            return no("no such member: `clawmeshd members` shows all");
        }
        if self.cx.parted.has(node) {
            return no("that node has no part in the mesh any more");
        }
        let here = self.cx.up.contains(&node) || self.live.is_alive(self.cx.now.mono, node);
        if why == Parting::Retired && here {
            return no(
                "that node is heard: it can leave (`clawmeshd leave` there), or be expelled",
            );
        }
        let log = LogId { author: node, incarnation: 0 };
        if why == Parting::Retired
            && !force
            && self.rooms.values().any(|it| it.replica.is_behind_in(log))
        {
            return no(
                "other nodes have more of what it wrote: try again in a moment, or give --force to do \
                 without that",
            );
        }
        if why == Parting::Retired
            && !force
            && let Some(text) = self.not_named(node)
        {
            return no(&format!("{text}; --force retires it all the same"));
        }
        self.write_parted(node, why)?;
        Ok(Outcome::Done)
    }

    /// Known at once, here: nothing that is decided in this turn counts on the node.
    fn write_parted(&mut self, node: NodeId, why: Parting) -> Result<(), Refused> {
        let directory = RoomId::directory(self.cx.mesh);
        // What is not named of the directory makes rooms and keys void.
        let mut cut = named(self.cut_of(node), directory);
        // The entry itself counts, too.
        let own = cut.iter_mut().find(|it| node == self.cx.me && it.room == directory);
        own.into_iter().for_each(|it| it.seq += 1);
        let room = self.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
        if !room.is_writable(&self.cx) {
            return Err(Refused::Full(super::rooms::NOT_WRITABLE.to_owned()));
        }
        let body = Body::Parted(NodeParted { node, why, cut });
        room.append(&mut self.cx, &body).ok_or(Refused::Closed)?;
        self.fold_facts();
        Ok(())
    }

    /// How far this node has what another one wrote, by room.
    fn cut_of(&self, node: NodeId) -> impl Iterator<Item = Kept> + '_ {
        let log = LogId { author: node, incarnation: 0 };
        let lasting = self
            .rooms
            .iter()
            .filter(|(_, it)| !it.replica.record.local && !it.replica.record.ephemeral);
        let cut =
            lasting.map(move |(id, it)| Kept { room: *id, seq: it.replica.logs.head_of(log) });
        cut.filter(|it| it.seq > 0)
    }

    /// What a parting of this node would leave out.
    fn not_named(&self, node: NodeId) -> Option<String> {
        let rooms = self.cut_of(node).count();
        let more = rooms.checked_sub(PARTED_LOGS_MAX).filter(|more| *more > 0)?;
        Some(format!(
            "{rooms} rooms have something of that node, which is more than can be named: nodes that join later would not get \
             it in {more} of them"
        ))
    }

    /// This node leaves the mesh for good. Answered when it has.
    pub(super) fn leave_mesh(&mut self, call: CallId, force: bool) {
        if self.cx.out {
            let text = "this node has no part in the mesh any more".to_owned();
            return self.reply(call, Err(Refused::Invalid(text)));
        }
        let lost = self.would_be_lost();
        if !force && !lost.is_empty() {
            let text = format!("{}; --force leaves all the same", lost.join("; "));
            return self.reply(call, Err(Refused::Invalid(text)));
        }
        self.begin_stopping(Some(Leaving { call, written: None, heard: false }));
    }

    /// What nobody else would have if this node left now.
    fn would_be_lost(&self) -> Vec<String> {
        if self.cx.up.is_empty() {
            return vec!["no other member is connected, to have what this node has".to_owned()];
        }
        let status = self.status();
        let unsent = status.rooms.iter().filter(|it| it.unsent > 0).map(|it| {
            format!("no other member is known to have the last {} of {}", it.unsent, it.name)
        });
        let alone = self.rooms.values().filter(|room| {
            let only = room.replica.eligible(&self.cx).only.is_some_and(|only| only.len() <= 1);
            only && room.replica.record.delivered > 0
        });
        let alone = alone.filter_map(|room| Some(self.told.get(&room.replica.id)?.name.clone()));
        unsent
            .chain(alone.map(|name| format!("no other member has the private room {name}")))
            .chain(self.not_named(self.cx.me))
            .collect()
    }

    /// The entry with which this node leaves. Its rooms have been handed over.
    pub(super) fn write_own_parting(&mut self) {
        // A log that forked takes nothing more: the others do not count on this node already.
        let _ = self.write_parted(self.cx.me, Parting::Left);
    }

    /// Everybody who was ever admitted, by when.
    pub(super) fn members(&self) -> Outcome {
        let now = self.cx.now.mono;
        let mut members: Vec<MemberStatus> = self
            .directory
            .nodes
            .admitted
            .iter()
            .map(|(node, admission)| {
                let heard = self.live.last(*node).map(|it| now.saturating_sub(it.at));
                MemberStatus {
                    node: *node,
                    name: self.directory.nodes.names.get(node).cloned().unwrap_or_default(),
                    since_ms: admission.wall_ms,
                    lane: self.directory.nodes.lane_of(*node),
                    me: *node == self.cx.me,
                    connected: self.live.up.contains(node),
                    alive: self.live.is_alive(now, *node),
                    founder: *node == self.config.founder,
                    about: match *node == self.cx.me {
                        true => Some(self.own_about()),
                        false => self.about.get(node).cloned(),
                    },
                    heard_ago: heard,
                    parted: match *node == self.cx.me {
                        true => self.farewell(),
                        false => self.cx.parted.view(*node),
                    },
                }
            })
            .collect();
        members.sort_by_key(|it| (it.since_ms, it.node));
        Outcome::Members(members)
    }
}

//! Who is in the mesh, and how nodes stop being in it (`docs/decisions/membership.md`).

use super::{Engine, handover::Leaving};
use crate::{
    api::{
        boundary::{Alarm, Effect},
        command::{CallId, Outcome, Refused},
        status::{MemberStatus, Parted},
    },
    directory::{
        Learned,
        partings::{Partings, named},
    },
    engine::happened::Fact,
    limits::PARTED_LOGS_MAX,
    name::id::{LogId, NodeId, RoomId},
    wire::{
        acts::Folded,
        entry::{Body, Kept, NodeParted, Parting},
        message::{Message, Notice, Signed},
    },
};

impl Engine {
    // What the directory says.

    /// Before anything else is restored: what counts of everything else depends on it. All partings count that this
    /// node has taken, as when they came, whatever turned out of their author later.
    pub(super) fn restore_parted(&mut self, stored: &crate::api::batch::Summary) {
        let directory = RoomId::directory(self.known.cx.mesh);
        let known = stored.rooms.iter().find(|it| it.room == directory);
        let mut parted = Partings::default();
        for (room, at, entry, _) in &stored.directory {
            let log = known.and_then(|it| it.logs.get(usize::try_from(at.log).ok()?));
            let Some(log) = log.filter(|_| *room == directory) else { continue };
            if let Body::Parted(it) = Body::decode(entry.facts.kind, &entry.body) {
                // What is wrong with it was counted when it came.
                let _ = parted.learn(log.id, entry.facts, &it);
            }
        }
        self.known.cx.out = parted.has(self.known.cx.me) || self.known.node.parted.is_some();
        self.known.cx.parted = parted;
    }

    /// Nobody is to be let in who has parted, from the first moment on.
    pub(super) fn shut_out_all_parted(&mut self) {
        let others = self.known.cx.parted.nodes().filter(|node| *node != self.known.cx.me);
        let effects: Vec<Effect> = others.map(Effect::ShutOut).collect();
        self.known.cx.effects.extend(effects);
        if let Some(it) = self.farewell() {
            self.known.cx.alarm(Alarm::Parted { node: self.known.cx.me, it });
        }
    }

    /// A node has parted, says an entry of the mesh's directory.
    pub(super) fn learn_parted(&mut self, fact: &Fact, it: &NodeParted) {
        if fact.room != RoomId::directory(self.known.cx.mesh) {
            self.known.cx.blame(fact.log.author, |it| &mut it.void);
            return;
        }
        let news = !self.known.cx.parted.has(it.node);
        match self.known.cx.parted.learn(fact.log, fact.facts, it) {
            None => {}
            Some(Folded::Void) => self.known.cx.blame(fact.log.author, |it| &mut it.void),
            Some(Folded::Overflow) => self.known.cx.faults.overflow += 1,
            Some(Folded::Taken) => {
                if it.why == Parting::Expelled {
                    self.on_expelled(it.node, fact.log.author == self.known.cx.me);
                }
                self.part_with(it.node, news);
            }
        }
    }

    /// From here on `node` has no part. `news`: it had one until now, else less of it counts than before.
    fn part_with(&mut self, node: NodeId, news: bool) {
        let now = self.known.cx.now.mono;
        let connected = self.known.cx.up.contains(&node);
        self.known.live.forget(node);
        self.known.cx.up.remove(&node);
        self.compared.remove(&node);
        self.barriers.peers.forget(node);
        self.about.remove(&node);
        self.rosters_behind.remove(&node);
        self.known.rosters.set_alive(now, node, false);
        for key in self.known.cx.followers.forget(node) {
            self.on_followers_changed(key);
        }
        let mut void: Vec<(RoomId, (LogId, u64))> = Vec::new();
        for room in self.known.rooms.values_mut() {
            room.sync.peer_down(node);
            let cuts = room.part_with(&mut self.known.cx, node);
            if room.is_directory {
                void.extend(cuts.into_iter().map(|cut| (room.id, cut)));
            }
        }
        for (room, cut) in void {
            self.forget_claims(room, cut);
        }
        let Some(it) = self.known.cx.parted.view(node) else { return };
        if node == self.known.cx.me {
            return self.note_farewell(it);
        }
        if news {
            self.known.cx.alarm(Alarm::Parted { node, it });
        }
        self.ask_for_secret_without_the_expelled();
        if connected {
            self.give_notice(node);
        } else {
            self.known.cx.effects.push(Effect::ShutOut(node));
        }
    }

    /// Nothing counts of what this log says in a directory from there on, numbers included: clients are told of rooms that
    /// are none any more or are called otherwise, and ids are whose they are without it.
    pub(super) fn forget_claims(&mut self, directory: RoomId, cut: (LogId, u64)) {
        let disowned = self.known.directory.forget(self.known.cx.mesh, directory, cut);
        self.fold_lost();
        // Before clients are told: they need not hear of a room that it is gone, and there again.
        self.calls.note_rooms_without_lead(&self.known);
        self.answer_unsettled();
        for agent in disowned {
            self.act_on(Learned::Agent(agent));
        }
        let told = self.known.told.keys().copied().filter(|id| self.known.rooms.contains_key(id));
        for id in told.collect::<Vec<_>>() {
            self.known.tell_of_room(id, false);
        }
    }

    // Telling it to whom it is about.

    /// A node that has parted is told so, and shut out.
    pub(super) fn give_notice(&mut self, node: NodeId) {
        let Some(parted) = self.known.cx.parted.view(node) else { return };
        let notice = Notice { by: self.known.cx.me, node, parted };
        let signed = Signed::new(self.known.cx.mesh, &self.known.identity, notice);
        self.known.cx.send(node, Message::Parted(signed));
        self.known.cx.effects.push(Effect::ShutOut(node));
    }

    /// A member says that this node has parted. That it says so is certain; who has decided it is not.
    pub(super) fn on_notice(&mut self, from: NodeId, notice: Notice) {
        let member = self.known.live.others.contains(&notice.by) && notice.by == from;
        if notice.node != self.known.cx.me || !member {
            self.known.cx.faults.stray += 1;
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
        if self.known.node.parted.is_some() {
            return;
        }
        self.known.change_node().parted = Some(it);
        self.known.cx.out = true;
        self.known.cx.alarm(Alarm::Parted { node: self.known.cx.me, it });
        self.refuse_waiters(|_, _| true);
        self.known.cx.active.extend(self.known.busy.iter().copied());
    }

    /// What became of this node, if it has no part any more.
    pub(super) fn farewell(&self) -> Option<Parted> {
        self.known.cx.parted.view(self.known.cx.me).or(self.known.node.parted)
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
        if node == self.known.cx.me {
            return no("that is this node itself: it can leave, with `clawmeshd leave`");
        }
        if self.known.cx.out {
            return no("this node has no part in the mesh any more: ask another one");
        }
        if !self.known.directory.admitted.contains_key(&node) {
            return no("no such member: `clawmeshd members` shows all");
        }
        if self.known.cx.parted.has(node) {
            return no("that node has no part in the mesh any more");
        }
        let here = self.known.cx.up.contains(&node)
            || self.known.live.is_alive(self.known.cx.now.mono, node);
        if why == Parting::Retired && here {
            return no(
                "that node is heard: it can leave (`clawmeshd leave` there), or be expelled",
            );
        }
        let log = LogId { author: node, incarnation: 0 };
        if why == Parting::Retired
            && !force
            && self.known.rooms.values().any(|it| it.is_behind_in(log))
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
        let directory = RoomId::directory(self.known.cx.mesh);
        // What is not named of the directory makes rooms and keys void.
        let mut cut = named(self.cut_of(node), directory);
        // The entry itself counts, too.
        let own = cut.iter_mut().find(|it| node == self.known.cx.me && it.room == directory);
        own.into_iter().for_each(|it| it.seq += 1);
        let room = self.known.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
        if !room.is_writable(&self.known.cx) {
            return Err(Refused::Full(super::known::NOT_WRITABLE.to_owned()));
        }
        let body = Body::Parted(NodeParted { node, why, cut });
        room.append(&mut self.known.cx, &body).ok_or(Refused::Closed)?;
        self.fold_facts();
        Ok(())
    }

    /// How far this node has what another one wrote, by room.
    fn cut_of(&self, node: NodeId) -> impl Iterator<Item = Kept> + '_ {
        let log = LogId { author: node, incarnation: 0 };
        let lasting =
            self.known.rooms.iter().filter(|(_, it)| !it.record.local && !it.record.ephemeral);
        let cut = lasting.map(move |(id, it)| Kept { room: *id, seq: it.logs.head_of(log) });
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
        if self.known.cx.out {
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
        if self.known.cx.up.is_empty() {
            return vec!["no other member is connected, to have what this node has".to_owned()];
        }
        let status = self.status();
        let unsent = status.rooms.iter().filter(|it| it.unsent > 0).map(|it| {
            format!("no other member is known to have the last {} of {}", it.unsent, it.name)
        });
        let alone = self.known.rooms.values().filter(|room| {
            let only = room.heirs(&self.known.cx).only.is_some_and(|only| only.len() <= 1);
            only && room.record.delivered > 0
        });
        let alone = alone.filter_map(|room| Some(self.known.told.get(&room.id)?.name.clone()));
        unsent
            .chain(alone.map(|name| format!("no other member has the private room {name}")))
            .chain(self.not_named(self.known.cx.me))
            .collect()
    }

    /// The entry with which this node leaves. Its rooms have been handed over.
    pub(super) fn write_own_parting(&mut self) {
        // A log that forked takes nothing more: the others do not count on this node already.
        let _ = self.write_parted(self.known.cx.me, Parting::Left);
    }

    /// Everybody who was ever admitted, by when.
    pub(super) fn members(&self) -> Outcome {
        let now = self.known.cx.now.mono;
        let mut members: Vec<MemberStatus> = self
            .known
            .directory
            .admitted
            .iter()
            .map(|(node, (_, wall_ms))| {
                let heard = self.known.live.last(*node).map(|it| now.saturating_sub(it.at));
                MemberStatus {
                    node: *node,
                    name: self.known.directory.node_names.get(node).cloned().unwrap_or_default(),
                    since_ms: *wall_ms,
                    lane: self.known.directory.lane_of(*node),
                    me: *node == self.known.cx.me,
                    connected: self.known.live.up.contains(node),
                    alive: self.known.live.is_alive(now, *node),
                    founder: *node == self.known.config.founder,
                    about: match *node == self.known.cx.me {
                        true => Some(self.own_about()),
                        false => self.about.get(node).cloned(),
                    },
                    heard_ago: heard,
                    parted: match *node == self.known.cx.me {
                        true => self.farewell(),
                        false => self.known.cx.parted.view(*node),
                    },
                }
            })
            .collect();
        members.sort_by_key(|it| (it.since_ms, it.node));
        Outcome::Members(members)
    }
}

//! A member of a simulated mesh that lies. It has the mesh's secret, a node that is otherwise well, and as many
//! keys as it likes; it writes anything that can be signed, says anything that can be said, and repeats messages,
//! whole or mangled. A message that cannot be read or verified never reaches an engine, as in a real node.
//! Against real daemons the same repertoire is played by [`crate::attack`].
//!
//! Promises are kept to all others: they are judged by `judge_among_honest`.

mod keys;
mod once;
mod records;
mod spoken;
mod subjects;
mod themes;

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    Identity,
    name::{
        digest::Digest,
        id::{AgentId, EntryRef, KeyPrint, LogId, MeshId, MessageId, NodeId, RoomId},
        identity::LinkSecret,
        number::{Era, Number},
    },
    wire::{
        acts::{
            BallotCast, BallotsShown, Candidate, ElectionAct, ElectionStarted, Grant, Named, Shown,
            TaskAct, TaskAssigned, TaskClaimed, TaskStatus, TaskUpdated, VoteAct, VoteClosed,
            VoteOpened,
        },
        copies::{AgentState, Copied},
        entry::{
            Body, Decision, EraClaimed, Facts, HandedOver, Items, NodeAdmitted, Ordered, Reached,
            RoomCreated, Said,
        },
        given::{TaskMark, TaskMarked},
        message::{
            About, Beacon, Followed, Handed, Head, Heads, Message, Post, RoomDigest, Signed, Span,
        },
        record::Record,
        roster::{AgentRecord, Presence, RosterChange, RosterNews, Seat, What},
        run::{Carried, Run, RunEntry, Verified},
        seal::Token,
        tasks::{TaskDeleted, TaskFields},
    },
};

pub(crate) use self::themes::Theme;
use self::{
    spoken::Lie,
    subjects::{said, written},
};
use super::{
    coverage::{Coverage, Happening},
    dice::Dice,
    signing::{AnyJudge, Signing},
};

/// Keys it writes under, besides its node's own.
const AUTHORS: usize = 6;
/// Messages of others that it remembers.
const HEARD_MAX: usize = 256;
/// Logs, rooms and acts of others that it knows by name.
const KNOWN_MAX: usize = 64;

/// The end of a log that it writes.
#[derive(Clone, Debug, Default)]
struct Tail {
    seq: u64,
    hash: [u8; 32],
    clock: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Liar {
    mesh: MeshId,
    dice: Dice,
    authors: Vec<Identity>,
    /// Of its authors' keys.
    seeds: Vec<[u8; 32]>,
    judge: AnyJudge,
    pub(crate) coverage: Coverage,
    tails: BTreeMap<(RoomId, LogId), Tail>,
    heard: Vec<Vec<u8>>,
    logs: Vec<LogId>,
    rooms: Vec<RoomId>,
    acts: Vec<EntryRef>,
    eras: Vec<Era>,
    agents: Vec<AgentId>,
    keys: keys::Known,
    spoken: spoken::Known,
    /// Of others.
    records: Vec<Record>,
    lanes: Vec<u32>,
    own_lanes: BTreeSet<u32>,
    /// The last barrier that it was asked in.
    asked: u64,
    /// The messages of which copies were last wanted from it.
    wanted: Option<(RoomId, Vec<Copied>)>,
    /// The last question about a message that it was asked.
    inquiry: u64,
    /// Its messages that could be read and verified, and those that could not.
    pub(crate) taken: u64,
    pub(crate) refused: u64,
}

impl Liar {
    pub(crate) fn new(mesh: MeshId, mut dice: Dice, signing: Signing) -> Liar {
        let seeds: Vec<[u8; 32]> = (0..AUTHORS)
            .map(|_| {
                let mut seed = [0; 32];
                seed[..8].copy_from_slice(&dice.draw().to_be_bytes());
                seed
            })
            .collect();
        Liar {
            mesh,
            dice,
            authors: seeds.iter().map(|seed| signing.identity(seed)).collect(),
            judge: signing.judge(&seeds),
            seeds,
            coverage: Coverage::default(),
            tails: BTreeMap::new(),
            heard: Vec::new(),
            logs: Vec::new(),
            rooms: vec![RoomId::lobby(mesh), RoomId::directory(mesh)],
            acts: Vec::new(),
            eras: vec![Era::HOME],
            agents: vec!["nobody".into()],
            keys: keys::Known::new(),
            spoken: spoken::Known::default(),
            records: Vec::new(),
            lanes: vec![1],
            own_lanes: BTreeSet::new(),
            asked: 0,
            wanted: None,
            inquiry: 0,
            taken: 0,
            refused: 0,
        }
    }

    /// Whose entries are lies.
    pub(crate) fn authors(&self) -> impl Iterator<Item = NodeId> {
        self.authors.iter().map(Identity::node_id)
    }

    /// Whether it has made this API key up.
    pub(crate) fn owns(&self, key: KeyPrint) -> bool {
        self.keys.owns(key)
    }

    /// Whether it can speak for this agent, with this key.
    pub(crate) fn may_speak(&self, key: Option<KeyPrint>, agent: &str) -> bool {
        agent == keys::ID || key.is_some_and(|key| self.owns(key))
    }

    /// Of the keys that it writes under.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = [u8; 32]> {
        self.seeds.iter().copied()
    }

    /// Whether an era is in a lane that it entered for itself.
    pub(crate) fn is_its_own(&self, era: Era) -> bool {
        era.lane().is_some_and(|lane| self.own_lanes.contains(&lane))
    }

    /// It hears what others say, and learns names from it.
    pub(crate) fn hear(&mut self, message: &Message<Verified>) {
        if let Message::AskFrontier { nonce, .. } = message {
            self.asked = *nonce;
        } else if let Message::AskCopies { room, copies } = message {
            self.wanted = Some((*room, copies.clone()));
        } else if let Message::AskReceipt { nonce, .. } = message {
            self.inquiry = *nonce;
        }
        if let Message::Records(records) = message {
            for record in records {
                self.dice.remember(&mut self.records, KNOWN_MAX, record.clone());
            }
        }
        let lies: Vec<NodeId> = self.authors().collect();
        for run in message.runs().iter().map(Verified::run) {
            if lies.contains(&run.log.author) {
                return;
            }
            self.learn(run);
        }
    }

    /// Remembers the bytes of a message.
    pub(crate) fn overhear(&mut self, bytes: Vec<u8>) {
        self.dice.remember(&mut self.heard, HEARD_MAX, bytes);
    }

    fn learn(&mut self, run: &Run) {
        self.dice.remember(&mut self.logs, KNOWN_MAX, run.log);
        if !self.rooms.contains(&run.room) {
            self.dice.remember(&mut self.rooms, KNOWN_MAX, run.room);
        }
        for (seq, entry) in (run.first..).zip(&run.entries) {
            let Carried::Here(bytes) = &entry.body else { continue };
            let body = Body::decode(entry.facts.kind, bytes);
            self.keys.learn(&mut self.dice, &body);
            let place = EntryRef { log: run.log, seq };
            self.spoken.learn(&mut self.dice, run.room, place, &body);
            if let Body::Chat(said) | Body::Thinking(said) = body {
                self.keys.heard(&mut self.dice, said.key);
                self.dice.remember(&mut self.agents, KNOWN_MAX, said.agent);
            } else if let Body::EraClaimed(claim) = body {
                self.dice.remember(&mut self.eras, KNOWN_MAX, claim.era);
            } else if let Body::NodeAdmitted(node) = body {
                self.dice.remember(&mut self.lanes, KNOWN_MAX, node.lane);
            } else if body.traits().class.is_act() {
                self.dice.remember(&mut self.acts, KNOWN_MAX, place);
            }
        }
    }

    /// The next lie, as bytes.
    pub(crate) fn lie(&mut self) -> Vec<u8> {
        match self.dice.within(0, 9) {
            0 if !self.heard.is_empty() => {
                self.coverage.count(Happening::SaidAgain);
                self.dice.pick(&self.heard).clone()
            }
            1 | 2 if !self.heard.is_empty() => {
                self.coverage.count(Happening::Mangled);
                self.mangled()
            }
            3..=6 => Message::Runs(self.runs()).encode(),
            _ => {
                let message = self.talk();
                self.coverage.count(said(&message));
                message.encode()
            }
        }
    }

    fn mangled(&mut self) -> Vec<u8> {
        let mut bytes = self.dice.pick(&self.heard).clone();
        for _ in 0..self.dice.within(1, 4) {
            if bytes.is_empty() {
                break;
            }
            let at = self.dice.index(bytes.len());
            match self.dice.within(0, 3) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.dice.byte()),
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = self.dice.byte(),
            }
        }
        bytes
    }

    // Entries.

    /// Entries of one of its logs; sometimes another end of it, so that the log forks.
    fn runs(&mut self) -> Vec<Run> {
        let room = *self.dice.pick(&self.rooms);
        let author = self.dice.index(self.authors.len());
        let incarnation = if self.dice.chance(80) { 0 } else { self.some_u64() };
        let log = LogId { author: self.authors[author].node_id(), incarnation };
        let before = self.tails.get(&(room, log)).cloned().unwrap_or_default();
        let run = self.run(room, author, incarnation, &before);
        let forks = self.dice.chance(3);
        let mut runs = vec![run];
        if forks {
            self.coverage.count(Happening::Forked);
            runs.push(self.run(room, author, incarnation, &before));
        }
        runs
    }

    fn run(&mut self, room: RoomId, author: usize, incarnation: u64, before: &Tail) -> Run {
        let log = LogId { author: self.authors[author].node_id(), incarnation };
        let mut clock = before.clock;
        let entries: Vec<RunEntry> = (0..self.dice.within(1, 3))
            .map(|_| {
                clock = match self.dice.within(0, 12) {
                    0 => self.some_u64(),
                    1 => clock.saturating_add(1 << 20),
                    _ => clock.saturating_add(self.dice.within(1, 200)),
                };
                self.entry(room, log.author, clock)
            })
            .collect();
        let first = match self.dice.within(0, 30) {
            0 => self.some_u64().clamp(1, 1 << 62),
            _ => before.seq + 1,
        };
        let run = Run { room, log, first, backlink: before.hash, entries, seal: [0; 64] };
        let sealed = run.seal(self.mesh, &self.authors[author]);
        let (last, run) = (sealed.certificate(), sealed.run().clone());
        if let Ok(good) = run.clone().verify_by(&*self.judge, self.mesh) {
            drop(good);
            let tail = Tail { seq: last.seq, hash: last.hash, clock };
            self.tails.insert((room, log), tail);
            self.spoken.note_own(&mut self.dice, &run);
        }
        run
    }

    fn entry(&mut self, room: RoomId, author: NodeId, clock: u64) -> RunEntry {
        let wall_ms = if self.dice.chance(80) { 1_800_000_000_000 } else { self.some_u64() };
        if self.dice.chance(10) {
            // Of no kind that there is, or nothing that can be read.
            self.coverage.count(Happening::Junk);
            let kind = self.dice.byte();
            let visible = self.dice.chance(50);
            let body = self.junk();
            let facts = Facts { clock, wall_ms, kind, visible };
            return RunEntry { facts, body: Carried::Here(body.into()) };
        }
        let body = self.body(room, author);
        self.coverage.count(written(&body));
        let facts = Facts { clock, wall_ms, kind: body.kind(), visible: body.visible() };
        RunEntry { facts, body: Carried::Here(body.encode().into()) }
    }

    /// Bytes that nest deeply, say that more follow, or are just bytes.
    fn junk(&mut self) -> Vec<u8> {
        let len = usize::try_from(self.dice.within(0, 4_000)).expect("small");
        match self.dice.within(0, 3) {
            0 => vec![0x81; len],
            1 => [vec![0x9b], vec![0xff; 8], vec![0; len]].concat(),
            2 => vec![0xd8; len],
            _ => (0..len.min(200)).map(|_| self.dice.byte()).collect(),
        }
    }

    fn body(&mut self, room: RoomId, author: NodeId) -> Body {
        match self.dice.within(0, 18) {
            0 => Body::Chat(self.said()),
            1 => Body::Thinking(self.said()),
            2 => Body::Decision(Decision { said: self.said(), election: self.place() }),
            3 | 4 => Body::Ordered(self.ordered()),
            5 => Body::EraClaimed(EraClaimed {
                era: self.era(),
                after: self.era(),
                cut: (0..self.dice.within(0, 3))
                    .map(|_| Reached { era: self.era(), n: self.some_u64() })
                    .collect(),
                seen: self.founding().into_iter().chain(self.founding()).collect(),
            }),
            6 => Body::HandedOver(HandedOver {
                era: self.era(),
                next: self.some_u64(),
                to: self.log(),
                by: self.founding(),
            }),
            // Lanes of its own only: docs/decisions say how one that takes others' can harm.
            7 => Body::NodeAdmitted(NodeAdmitted::of(self.free_lane(), self.text())),
            8 => Body::RoomCreated(RoomCreated {
                room: if self.dice.chance(50) { room } else { RoomId(self.sixteen()) },
                name: self.text(),
                description: self.dice.chance(50).then(|| self.text()),
                parent: self.dice.chance(50).then(|| *self.dice.pick(&self.rooms)),
                public: self.dice.chance(80),
                encrypted: self.dice.chance(20),
                owner: KeyPrint(self.sixteen()),
                created_by: self.agent(),
                imported: None,
            }),
            9 => Body::AgentClaimed(self.claimed()),
            10 => Body::Key(self.key_act(author)),
            11 | 12 => Body::Vote(self.vote(room, author)),
            13 => Body::Election(self.election()),
            14 => Body::AccountClaimed(self.account_claimed(author)),
            15 | 16 => self.once_or_approval(),
            _ => Body::Task(self.task(room, author)),
        }
    }

    fn said(&mut self) -> Said {
        Said {
            agent: self.agent(),
            name: self.text(),
            content: self.text(),
            reply_to: self.dice.chance(50).then(|| self.text()),
            mentions: (0..self.dice.within(0, 40)).map(|_| self.agent()).collect(),
            metadata: self.dice.chance(50).then(|| "[".repeat(2_000)),
            dedup: None,
            turn: self.dice.chance(50).then(|| self.some_u64()),
            // In a form that the founder could use.
            id: Some(MessageId([0x44; 16])),
            key: self.some_key(),
            conversation: None,
        }
    }

    fn ordered(&mut self) -> Ordered {
        let logs: Vec<LogId> = (0..self.dice.within(0, 3)).map(|_| self.log()).collect();
        let items = (0..self.dice.within(0, 4))
            .map(|_| Items {
                log: u32::try_from(self.dice.within(0, 4)).expect("small"),
                from: self.some_u64(),
                count: match self.dice.within(0, 3) {
                    0 => u32::MAX,
                    1 => 0,
                    _ => u32::try_from(self.dice.within(1, 9)).expect("small"),
                },
            })
            .collect();
        Ordered { era: self.era(), first: self.some_u64(), logs, items, by: self.founding() }
    }

    fn vote(&mut self, room: RoomId, author: NodeId) -> VoteAct {
        let lie = Lie { room, author, key: self.some_key() };
        if self.dice.chance(60)
            && let Some(act) = self.spoken.vote(&mut self.dice, lie)
        {
            return act;
        }
        match self.dice.within(0, 3) {
            0 => VoteAct::Opened(VoteOpened {
                title: self.text(),
                description: None,
                options: (0..self.dice.within(0, 70)).map(|_| self.text()).collect(),
                eligible: (0..self.dice.within(0, 30)).map(|_| self.named()).collect(),
                created_by: self.agent(),
                closes_ms: self.dice.chance(70).then(|| self.some_u64()),
            }),
            1 => VoteAct::Cast(BallotCast {
                vote: self.place(),
                agent: self.agent(),
                commitment: [self.dice.byte(); 32],
                key: self.some_key(),
            }),
            2 => VoteAct::Closed(VoteClosed {
                vote: self.place(),
                logs: (0..self.dice.within(0, 3)).map(|_| self.log()).collect(),
                ballots: (0..self.dice.within(0, 5))
                    .map(|_| {
                        (u32::try_from(self.dice.within(0, 4)).expect("small"), self.some_u64())
                    })
                    .collect(),
            }),
            _ => VoteAct::Shown(BallotsShown {
                vote: self.place(),
                ballots: (0..self.dice.within(0, 5))
                    .map(|_| Shown { seq: self.some_u64(), choice: u32::MAX, nonce: [7; 32] })
                    .collect(),
            }),
        }
    }

    fn election(&mut self) -> ElectionAct {
        let election = self.place();
        match self.dice.within(0, 6) {
            0 => ElectionAct::Started(ElectionStarted {
                term: self.some_u64(),
                candidates: (0..self.dice.within(0, 20)).map(|_| self.candidate()).collect(),
                started_by: self.agent(),
            }),
            1 => ElectionAct::Committed { election, commitment: [3; 32] },
            2 => ElectionAct::Declined { election, agent: self.agent() },
            3 => ElectionAct::Closed {
                election,
                commitments: (0..self.dice.within(0, 4)).map(|_| self.place()).collect(),
                declined: (0..self.dice.within(0, 4)).map(|_| self.place()).collect(),
            },
            4 => ElectionAct::Shown { closed: election, nonce: [9; 32] },
            5 => ElectionAct::Dropped { closed: election, nodes: vec![self.log().author] },
            _ => ElectionAct::Cleared { election },
        }
    }

    fn task(&mut self, room: RoomId, author: NodeId) -> TaskAct {
        let lie = Lie { room, author, key: self.some_key() };
        if self.dice.chance(30)
            && let Some(act) = self.spoken.claim(&mut self.dice, lie, &self.agents)
        {
            return act;
        }
        match self.dice.within(0, 5) {
            0 => TaskAct::Assigned(TaskAssigned {
                description: Some(self.text()),
                assignee: self.dice.chance(50).then(|| self.agent()),
                id: Some(MessageId([0x44; 16])),
                ..TaskAssigned::of(self.text(), self.agent())
            }),
            1 => TaskAct::Updated(self.update()),
            2 => {
                let (update, era, key) = (self.update(), self.era(), self.some_key());
                TaskAct::Claimed(TaskClaimed {
                    update,
                    if_assignee: None,
                    era,
                    key,
                    if_status: None,
                })
            }
            // Its own, as for updates.
            4 => TaskAct::Deleted(TaskDeleted {
                task: EntryRef { log: self.own_log(), seq: self.dice.within(0, 30) },
                by: self.agent(),
            }),
            3 => TaskAct::Marked(TaskMarked {
                task: EntryRef { log: self.own_log(), seq: self.dice.within(0, 30) },
                mark: if self.dice.chance(50) { TaskMark::RanOut } else { TaskMark::Untaken },
            }),
            _ => TaskAct::Granted(Grant {
                era: self.era(),
                claim: self.place(),
                update: self.dice.chance(50).then(|| self.update()),
                holder: None,
                by: self.founding(),
                status: None,
            }),
        }
    }

    fn update(&mut self) -> TaskUpdated {
        // Tasks of others may be updated by every member: that is no lie. Its own, then.
        let task = EntryRef { log: self.own_log(), seq: self.dice.within(0, 30) };
        TaskUpdated {
            over: (0..self.dice.within(0, 3)).map(|_| self.place()).collect(),
            status: Some(*self.dice.pick(&TaskStatus::ALL)),
            assignee: Some(self.dice.chance(80).then(|| self.agent())),
            note: Some(self.text()),
            fields: Box::new(TaskFields { result: Some(self.text()), ..TaskFields::default() }),
            ..TaskUpdated::of(task, self.agent())
        }
    }

    // Messages.

    fn talk(&mut self) -> Message {
        let room = if self.dice.chance(80) {
            *self.dice.pick(&self.rooms)
        } else {
            RoomId(self.sixteen())
        };
        match self.dice.within(0, 23) {
            0 => {
                let heads = (0..self.dice.within(0, 200))
                    .map(|_| Head { log: self.log(), seq: self.some_u64() })
                    .collect();
                Message::Have { room, heads, answer: self.dice.chance(50) }
            }
            1 => Message::Want { room, spans: self.spans() },
            2 => Message::WantBodies {
                room,
                at: (0..9).map(|_| Head { log: self.log(), seq: self.some_u64() }).collect(),
            },
            3 => Message::Spans { room, runs: self.runs(), bodies: Vec::new(), last: true },
            4 => Message::Buckets((0..64).map(|_| Digest(self.sixteen())).collect()),
            5 => Message::Digests(
                (0..self.dice.within(1, 60))
                    .map(|_| (RoomId(self.sixteen()), Digest(self.sixteen())))
                    .map(|(room, digest)| RoomDigest { room, digest })
                    .collect(),
            ),
            6 => {
                let (era, tip) = (self.era(), Number(self.some_u64()));
                Message::Ask { room, era, tip, spans: self.spans() }
            }
            7 => Message::Sighting {
                node: self.log().author,
                age_ms: self.dice.chance(50).then(|| self.some_u64()),
            },
            8 => Message::Probe { node: self.log().author },
            9 => {
                let posts = vec![Post { room, era: self.era(), log: self.log() }];
                match self.dice.within(0, 2) {
                    0 => Message::Offer(posts),
                    1 => Message::Accept(posts),
                    _ => Message::Taken(posts),
                }
            }
            10 => {
                let (token, digest) = (Token(self.sixteen()), Digest(self.sixteen()));
                Message::Follows(vec![Followed { token, digest, records: self.sixteen() }])
            }
            11 => Message::WantRoster {
                node: self.log().author,
                boot: self.some_u64(),
                version: self.some_u64(),
                nonce: None,
            },
            14 => Message::AskFrontier {
                nonce: self.some_u64(),
                boot: self.some_u64(),
                version: self.some_u64(),
                rooms: vec![RoomDigest { room, digest: Digest(self.sixteen()) }],
            },
            15 => {
                let heads =
                    (0..9).map(|_| Head { log: self.log(), seq: self.some_u64() }).collect();
                let (nonce, boot, version) = (self.asked, self.some_u64(), self.some_u64());
                Message::Frontier { nonce, boot, version, rooms: vec![Heads { room, heads }] }
            }
            16..=19 => self.talk_of_copies(room),
            20..=22 => self.of_records(),
            12 => self.beacon(),
            13 => self.secret(),
            _ => self.roster(room),
        }
    }

    fn talk_of_copies(&mut self, room: RoomId) -> Message {
        match self.dice.within(0, 3) {
            0 => Message::AskCopies { room, copies: self.copies() },
            1 => {
                let copied = self.copies().swap_remove(0);
                Message::AskReceipt { nonce: self.some_u64(), room, copied }
            }
            2 => {
                let (agent, confirmed) = ("a liar's".into(), self.dice.chance(50));
                let agents = vec![AgentState { agent, confirmed, at_ms: self.some_u64() }];
                Message::Receipt { nonce: self.inquiry, held: true, agents }
            }
            _ => match self.wanted.clone().filter(|_| self.dice.chance(80)) {
                // As if it held them.
                Some((room, copies)) => Message::Copies { room, copies },
                None => Message::Copies { room, copies: self.copies() },
            },
        }
    }

    fn copies(&mut self) -> Vec<Copied> {
        let copied = |liar: &mut Liar| Copied {
            place: EntryRef { log: liar.log(), seq: liar.some_u64() },
            mark: liar.sixteen(),
            number: liar.dice.chance(70).then(|| Number(liar.some_u64())),
        };
        (0..self.dice.within(1, 60)).map(|_| copied(self)).collect()
    }

    fn of_records(&mut self) -> Message {
        let lies = records::Lies {
            dice: &mut self.dice,
            mesh: self.mesh,
            own: self.keys.own(),
            agents: &self.agents,
            rooms: &self.rooms,
            heard: &self.records,
        };
        lies.talk()
    }

    fn beacon(&mut self) -> Message {
        let author = self.dice.index(self.authors.len());
        let beacon = Beacon {
            node: self.authors[author].node_id(),
            boot: self.some_u64(),
            tick: self.some_u64(),
            roster: self.some_u64(),
            digest: Digest(self.sixteen()),
            records: self.sixteen(),
            wall_ms: self.some_u64(),
        };
        Message::Beacon(Signed::new(self.mesh, &self.authors[author], beacon))
    }

    /// The epoch of somebody's secret, or the secret that everybody is to have.
    fn secret(&mut self) -> Message {
        let author = self.dice.index(self.authors.len());
        let node = self.authors[author].node_id();
        let secret = LinkSecret::new(self.some_u64(), [self.dice.byte(); 32]);
        if self.dice.chance(50) {
            let handed = Handed { by: node, secret };
            return Message::Secret(Signed::new(self.mesh, &self.authors[author], handed));
        }
        let about = About { node, epoch: secret.epoch(), version: "x".to_owned() };
        Message::About(Signed::new(self.mesh, &self.authors[author], about))
    }

    fn roster(&mut self, room: RoomId) -> Message {
        let author = self.dice.index(self.authors.len());
        let changes = (0..self.dice.within(0, 20))
            .map(|_| RosterChange::Agent("a liar's".into(), self.record(room)))
            .collect();
        let version = self.some_u64();
        let what = if self.dice.chance(50) {
            What::Whole { version, changes }
        } else {
            What::Changes { version, changes }
        };
        let node = self.authors[author].node_id();
        let news = RosterNews { node, boot: self.some_u64(), what };
        Message::Roster(Box::new(Signed::new(self.mesh, &self.authors[author], news)))
    }

    fn record(&mut self, room: RoomId) -> AgentRecord {
        let seat = Seat { joined: self.some_u64(), seen: Number(self.some_u64()), guest: false };
        AgentRecord {
            name: self.text().into(),
            key: KeyPrint(self.sixteen()),
            capabilities: vec![self.text()],
            registered: self.some_u64(),
            connected_ms: self.some_u64(),
            last_active_ms: self.some_u64(),
            presence: Presence::default(),
            rooms: [(room, seat)].into(),
            reconnected: false,
            gone: None,
            lingers: false,
            hosted: false,
        }
    }

    // Parts.

    fn spans(&mut self) -> Vec<Span> {
        (0..self.dice.within(0, 9))
            .map(|_| Span { log: self.log(), after: self.some_u64(), upto: self.some_u64() })
            .collect()
    }

    fn own_log(&mut self) -> LogId {
        let author = self.dice.index(self.authors.len());
        LogId { author: self.authors[author].node_id(), incarnation: 0 }
    }

    fn log(&mut self) -> LogId {
        if self.logs.is_empty() || self.dice.chance(30) {
            return self.own_log();
        }
        *self.dice.pick(&self.logs)
    }

    fn place(&mut self) -> EntryRef {
        if self.acts.is_empty() || self.dice.chance(50) {
            return EntryRef { log: self.own_log(), seq: self.dice.within(0, 30) };
        }
        *self.dice.pick(&self.acts)
    }

    /// The entry on which one about an era rests, or claims to.
    fn founding(&mut self) -> Option<EntryRef> {
        match self.dice.within(0, 4) {
            0 => Some(self.place()),
            1 | 2 => Some(EntryRef { log: self.log(), seq: self.dice.within(1, 30) }),
            _ => None,
        }
    }

    fn era(&mut self) -> Era {
        match self.dice.within(0, 3) {
            0 => *self.dice.pick(&self.eras),
            1 => Era(self.some_u64()),
            _ => {
                let c = u32::try_from(self.dice.within(1, 12)).expect("small");
                Era::new(c, self.free_lane()).unwrap_or(Era::HOME)
            }
        }
    }

    /// One that no honest node has told of.
    fn free_lane(&mut self) -> u32 {
        let mut lane = u32::try_from(self.dice.within(500_000, 500_003)).expect("small");
        while self.lanes.contains(&lane) {
            lane += 1;
        }
        self.own_lanes.insert(lane);
        lane
    }

    fn agent(&mut self) -> AgentId {
        self.dice.pick(&self.agents).clone()
    }

    fn named(&mut self) -> Named {
        Named { agent: self.agent(), name: self.text() }
    }

    fn candidate(&mut self) -> Candidate {
        Candidate { agent: self.agent(), name: self.text(), node: self.log().author }
    }

    fn text(&mut self) -> String {
        match self.dice.within(0, 5) {
            0 => String::new(),
            1 => "x".repeat(usize::try_from(self.dice.within(200, 5_000)).expect("small")),
            2 => "\u{202e}\u{0}\n\r\t\"\\".to_owned(),
            3 => "lobby".to_owned(),
            _ => format!("lie {}", self.dice.within(0, 9)),
        }
    }

    fn sixteen(&mut self) -> [u8; 16] {
        [self.dice.byte(); 16]
    }

    /// Small, large, or at a bound.
    fn some_u64(&mut self) -> u64 {
        match self.dice.within(0, 7) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX >> 3,
            3 => 1 << self.dice.within(0, 63),
            4 => 1_800_000_000_000 + self.dice.within(0, 100_000),
            _ => self.dice.within(0, 60),
        }
    }
}

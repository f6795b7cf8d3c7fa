//! Lies about one thing, to see how others take just that.

use mesh::{
    Identity,
    limits::BODY_INLINE_BYTES_MAX,
    name::{
        id::{EntryRef, LogId, MeshId, RoomId},
        number::Era,
    },
    wire::{
        acts::{BallotCast, BallotsShown, Named, Shown, VoteAct, VoteClosed, VoteOpened},
        entry::{Body, Decision, EraClaimed, Facts, Reached, Said},
        message::{Head, Message},
        run::{Carried, Run, RunEntry},
    },
};

use super::{Liar, Tail};
use crate::sim::{dice::Dice, signing::Signing};

/// The subject of a lie, when somebody wants one of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Entries under seals that do not hold.
    Forgery,
    /// Messages of others, again.
    Replay,
    /// Two histories of one log.
    Fork,
    /// Clocks far ahead of everybody's.
    Clock,
    /// Numbers and eras outside its lane.
    Numbers,
    /// Bodies that nest, never end, or are of no kind.
    Junk,
    /// Votes, ballots and results that do not match.
    Ballots,
    /// Elections nobody held, and decisions of leaders who are none.
    Leaders,
    /// Entries it does not have, answers that never end, questions without end.
    Promises,
    /// Anything that it can say.
    Anything,
}

impl Liar {
    /// A liar who signs as `node` as well, and knows these names from the start.
    pub(crate) fn as_node(mesh: MeshId, node: Identity, dice: Dice) -> Liar {
        let mut liar = Liar::new(mesh, dice, Signing::Real);
        liar.authors[0] = node;
        // Its node has written in the directory: an entry there from the start would be a fork.
        liar.rooms.truncate(1);
        liar
    }

    /// Whose lies about one thing are.
    const ITSELF: usize = 0;

    /// A lie about one thing, as bytes.
    pub(crate) fn lie_about(&mut self, theme: Theme) -> Vec<u8> {
        match theme {
            Theme::Forgery => self.forgery(),
            Theme::Replay if self.heard.is_empty() => self.forgery(),
            Theme::Replay => self.dice.pick(&self.heard).clone(),
            Theme::Fork => Message::Runs(self.fork()).encode(),
            Theme::Clock | Theme::Numbers | Theme::Junk | Theme::Ballots | Theme::Leaders => {
                Message::Runs(vec![self.themed(theme)]).encode()
            }
            Theme::Promises => self.promise().encode(),
            Theme::Anything => self.lie(),
        }
    }

    /// Well signed, and mostly without effect. Of a node that forks its log, or leaves gaps in it, nothing more would be taken.
    pub(crate) fn noise(&mut self) -> Vec<u8> {
        let theme = *self.dice.pick(&[Theme::Junk, Theme::Ballots, Theme::Leaders]);
        self.lie_about(theme)
    }

    /// An entry of somebody else, or nearly so: its seal does not hold.
    fn forgery(&mut self) -> Vec<u8> {
        let mut run = self.themed(Theme::Anything);
        if self.dice.chance(50) {
            run.log = self.log();
        }
        let at = self.dice.index(run.seal.len());
        run.seal[at] ^= 1;
        Message::Runs(vec![run]).encode()
    }

    /// Two ends of one log.
    fn fork(&mut self) -> Vec<Run> {
        let room = RoomId::lobby(self.mesh);
        let log = LogId { author: self.authors[Liar::ITSELF].node_id(), incarnation: 0 };
        let before = self.tails.get(&(room, log)).cloned().unwrap_or_default();
        let entry = |liar: &mut Liar, text: &str| {
            let said = Said {
                content: text.to_owned(),
                metadata: None,
                mentions: Vec::new(),
                ..liar.said()
            };
            let facts = Facts {
                clock: before.clock + 1,
                wall_ms: 1_800_000_000_000,
                kind: Body::Chat(said.clone()).kind(),
                visible: true,
            };
            let body = Carried::Here(Body::Chat(said).encode().into());
            let entries = vec![RunEntry { facts, body }];
            let (first, backlink) = (before.seq + 1, before.hash);
            let run = Run { room, log, first, backlink, entries, seal: [0; 64] };
            run.seal(liar.mesh, &liar.authors[Liar::ITSELF]).run().clone()
        };
        vec![entry(self, "one history"), entry(self, "and another")]
    }

    /// One entry on one of its own logs, of a theme. The log goes on, so that others take it as far as they can.
    fn themed(&mut self, theme: Theme) -> Run {
        let (room, author) = (RoomId::lobby(self.mesh), Liar::ITSELF);
        let log = LogId { author: self.authors[author].node_id(), incarnation: 0 };
        let before = self.tails.get(&(room, log)).cloned().unwrap_or_default();
        let mut clock = before.clock + 1;
        let entry = match theme {
            Theme::Clock => {
                clock += (1 << 40) + self.dice.within(0, 1 << 40);
                self.short(room, clock)
            }
            Theme::Junk => {
                let body = Carried::Here(self.junk().into());
                let kind = self.dice.within(0, 70).try_into().unwrap_or(u8::MAX);
                // As honest nodes have it, where there is such a kind: else it is refused at once.
                let visible = matches!(kind, 1 | 2 | 3 | 33 | 34);
                let facts = Facts { clock, wall_ms: 1_800_000_000_000, kind, visible };
                RunEntry { facts, body }
            }
            Theme::Numbers | Theme::Ballots | Theme::Leaders => {
                let mut body = self.body_about(theme, before.seq + 1);
                while body.encode().len() > BODY_INLINE_BYTES_MAX {
                    // It would have to travel apart.
                    body = self.body_about(theme, before.seq + 1);
                }
                let visible = matches!(body, Body::Chat(_) | Body::Decision(_));
                let kind = body.kind();
                let facts = Facts { clock, wall_ms: 1_800_000_000_000, kind, visible };
                RunEntry { facts, body: Carried::Here(body.encode().into()) }
            }
            Theme::Forgery | Theme::Replay | Theme::Fork | Theme::Promises | Theme::Anything => {
                self.short(room, clock)
            }
        };
        let first = before.seq + 1;
        let run =
            Run { room, log, first, backlink: before.hash, entries: vec![entry], seal: [0; 64] };
        let sealed = run.seal(self.mesh, &self.authors[author]);
        let (last, run) = (sealed.certificate(), sealed.run().clone());
        // Nobody takes a clock from so far ahead: the next run begins where this one did.
        if theme != Theme::Clock && run.clone().verify_by(&*self.judge, self.mesh).is_ok() {
            self.tails.insert((room, log), Tail { seq: last.seq, hash: last.hash, clock });
        }
        run
    }

    /// An entry that may travel as it is: any other is refused at the door.
    fn short(&mut self, room: RoomId, clock: u64) -> RunEntry {
        loop {
            let author = self.authors[Liar::ITSELF].node_id();
            let entry = self.entry(room, author, clock);
            let Carried::Here(body) = &entry.body else { continue };
            let sound = body.len() <= BODY_INLINE_BYTES_MAX;
            let body = Body::decode(entry.facts.kind, body);
            let known = !matches!(body, Body::Unknown);
            if sound && known && self.has_signed(&body, author) {
                return entry;
            }
        }
    }

    /// The next entry of a story about a theme, which names nothing but its own earlier entries: an act that
    /// names an entry that nobody has would wait, and so would all that follow.
    fn body_about(&mut self, theme: Theme, seq: u64) -> Body {
        let log = LogId { author: self.authors[Liar::ITSELF].node_id(), incarnation: 0 };
        let before = |back: u64| EntryRef { log, seq: seq.saturating_sub(back).max(1) };
        match (theme, seq % 4) {
            (Theme::Ballots, 1) => Body::Vote(VoteAct::Opened(VoteOpened {
                title: "a vote".to_owned(),
                description: None,
                options: vec!["yes".to_owned(), "no".to_owned()],
                eligible: vec![Named { agent: "a liar's".into(), name: "a".to_owned() }],
                created_by: "a liar's".into(),
                closes_ms: None,
            })),
            (Theme::Ballots, 2) => Body::Vote(VoteAct::Cast(BallotCast {
                vote: before(1),
                agent: "a liar's".into(),
                commitment: [self.dice.byte(); 32],
                key: None,
            })),
            (Theme::Ballots, 3) => Body::Vote(VoteAct::Closed(VoteClosed {
                vote: before(2),
                logs: vec![log],
                ballots: vec![(0, before(1).seq)],
            })),
            (Theme::Ballots, _) => Body::Vote(VoteAct::Shown(BallotsShown {
                vote: before(3),
                ballots: vec![Shown { seq: before(2).seq, choice: 0, nonce: [7; 32] }],
            })),
            (Theme::Leaders, 1) => Body::Chat(Said { metadata: None, ..self.said() }),
            (Theme::Leaders, turn) => Body::Decision(Decision {
                said: Said { metadata: None, mentions: Vec::new(), ..self.said() },
                election: before(turn.max(1)),
            }),
            _ => {
                let lane = *self.dice.pick(&self.lanes);
                let c = u32::try_from(self.dice.within(1, 9)).expect("small");
                Body::EraClaimed(EraClaimed {
                    era: Era::new(c, lane).unwrap_or(Era::HOME),
                    after: Era::HOME,
                    cut: vec![Reached { era: Era::HOME, n: 0 }],
                    seen: Vec::new(),
                })
            }
        }
    }

    /// A message after which others ask, wait, or answer at length.
    fn promise(&mut self) -> Message {
        let room = *self.dice.pick(&self.rooms);
        match self.dice.within(0, 5) {
            0 | 1 => {
                let heads =
                    (0..200).map(|_| Head { log: self.log(), seq: self.some_u64() }).collect();
                Message::Have { room, heads, answer: true }
            }
            2 => Message::Spans { room, runs: vec![], bodies: Vec::new(), last: false },
            3 => {
                let runs = vec![self.themed(Theme::Anything)];
                Message::Spans { room, runs, bodies: Vec::new(), last: false }
            }
            4 => Message::Want { room, spans: self.spans() },
            _ => self.talk(),
        }
    }
}

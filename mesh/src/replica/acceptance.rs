//! Taking runs in: a run is accepted when everything that its entries refer to is here, or it is pending.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Replica,
    log::Continuation,
    pending::Waiting,
    pruning::{are_all_connected, needs},
};
use crate::{
    api::batch::Change,
    name::id::{LocalRef, LogId, LogIx, NodeId},
    turn::{
        context::{Context, stored},
        happened::{Happened, Proof},
    },
    wire::{
        entry::{Body, Facts},
        message::Head,
        run::{Carried, Verified},
    },
};

/// A run on its way into its log.
#[derive(Debug)]
pub(crate) struct Accepting {
    run: Verified,
    /// Bodies that came apart from it.
    bodies: BTreeMap<u64, Vec<u8>>,
    ix: LogIx,
    first: u64,
    next: u64,
}

/// An entry that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) at: LocalRef,
    pub(crate) facts: Facts,
    pub(crate) content: Content,
}

/// The content of an accepted entry, as far as it is here and counts.
#[derive(Debug)]
pub(crate) enum Content {
    /// The entry stands beyond the cut of its log: it does not count.
    Uncounted(Vec<u8>),
    /// Nobody keeps the body any more.
    Gone,
    /// The body is sealed and does not open: then it says nothing and takes no number, here as at everybody
    /// who has the key. Nobody without the key can use up numbers.
    Unopened,
    /// The body as it was written.
    Open(Vec<u8>),
}

impl Replica {
    /// Takes a run that came from a peer. `true`: it is next in its log.
    pub(crate) fn receive(&mut self, cx: &mut Context, from: NodeId, run: Verified) -> bool {
        cx.to_advance.insert(self.id);
        if !self.takes_more(cx, run.run().log) {
            return false;
        }
        let from = self.keeper(cx, from, run.run().log.author);
        match self.continuation(&run) {
            Continuation::Old => false,
            Continuation::Bad => {
                cx.blame(run.run().log.author, |faults| &mut faults.chain);
                false
            }
            Continuation::Fork(certificate) => {
                cx.happens(Happened::Forked(Proof { certificate, run }));
                false
            }
            Continuation::Gap => {
                self.sync.note_gap(cx, self.id, from, self.logs.heads());
                self.pending.keep(cx, run, from);
                false
            }
            Continuation::Next(_) => {
                self.pending.keep_next(cx, run, from);
                true
            }
        }
    }

    /// A body that its run came without, or word that the peer does not have it.
    pub(crate) fn receive_body(
        &mut self,
        cx: &mut Context,
        from: NodeId,
        entry: Head,
        body: Vec<u8>,
    ) {
        let needs = needs(self, cx);
        if !(body.is_empty() && self.pending.forget_if_dropped(cx, from, entry, needs)) {
            self.pending.add_body(cx, from, entry, body);
        }
    }

    /// The node to ask for missing parts of a run: the peer that relayed it may not have the room.
    fn keeper(&self, cx: &Context, from: NodeId, author: NodeId) -> NodeId {
        if self.record.seal.is_none() {
            return from;
        }
        let peers = self.peers(cx);
        let near = [from, author].into_iter().find(|node| peers.contains(node));
        near.or(peers.first().copied()).unwrap_or(author)
    }

    fn continuation(&self, run: &Verified) -> Continuation {
        let unsealed = run.run().log == self.mine && !self.drafts.is_empty();
        self.logs.continuation(self.id, run, unsealed)
    }

    /// Takes a pending run for which everything is here, and forgets runs that are of no use any more.
    /// `is_founded`: whether the rest of the room has everything by which such an entry of this log is
    /// judged.
    pub(crate) fn next_acceptable(
        &mut self,
        cx: &mut Context,
        is_founded: impl Fn(&Context, LogId, &Body) -> bool,
    ) -> Option<Waiting> {
        for key in self.pending.next_in_logs(|log| self.logs.head_of(log)) {
            let Some(waiting) = self.pending.get(key) else { continue };
            match self.continuation(&waiting.run) {
                Continuation::Gap => {}
                Continuation::Old | Continuation::Bad => drop(self.pending.take(cx, key)),
                Continuation::Fork(certificate) => {
                    if let Some(waiting) = self.pending.take(cx, key) {
                        cx.happens(Happened::Forked(Proof { certificate, run: waiting.run }));
                    }
                }
                Continuation::Next(skip) => {
                    let nobody = || self.nobody_has(cx, waiting);
                    if waiting.is_complete(skip, needs(self, cx), nobody)
                        && self.builds_on_present_entries(cx, waiting, skip, &is_founded)
                    {
                        return self.pending.take(cx, key);
                    }
                }
            }
        }
        None
    }

    /// Whether it is certain that nobody has the missing bodies of a run that waits.
    fn nobody_has(&self, cx: &Context, waiting: &Waiting) -> bool {
        let others = !are_all_connected(self, cx);
        self.pending.nobody_has(cx.now.mono, &self.peers(cx), others, waiting)
    }

    /// Whether everything is here that the entries of a run from index `skip` on refer to.
    fn builds_on_present_entries(
        &self,
        cx: &Context,
        waiting: &Waiting,
        skip: usize,
        is_founded: impl Fn(&Context, LogId, &Body) -> bool,
    ) -> bool {
        let log = waiting.run.run().log;
        self.bodies_of(waiting, skip).all(|(seq, body)| {
            body.names().iter().all(|name| {
                self.logs.head_of(name.log) >= name.seq
                    || (name.log == log && name.seq < seq)
                    || !self.may_come(cx, name.log, name.seq)
            }) && self.can_judge(log, &body)
                && is_founded(cx, log, &body)
        })
    }

    /// An honest author begins a run with each decision, so the election that it is judged by comes before
    /// the run.
    fn can_judge(&self, log: LogId, body: &Body) -> bool {
        let Body::Decision(decision) = body else { return true };
        let election = decision.election;
        let is_here = self.logs.head_of(election.log) >= election.seq;
        decision.is_imported() || is_here || election.log != log
    }

    /// The bodies of a run's entries from index `skip` on, each with its log seq.
    pub(crate) fn bodies_of(
        &self,
        waiting: &Waiting,
        skip: usize,
    ) -> impl Iterator<Item = (u64, Body)> {
        let run = waiting.run.run();
        (run.first..).zip(&run.entries).skip(skip).map(|(seq, entry)| {
            let apart = waiting.bodies.get(&seq).map_or(&[][..], Vec::as_slice);
            let bytes = if let Carried::Here(bytes) = &entry.body { bytes } else { apart };
            let context = self.context_of(run.log, seq, entry.facts.kind);
            (seq, self.record.body(&context, bytes))
        })
    }

    // One entry after the other.

    /// Begins to take a run in. The caller folds each entry before it asks for the next one.
    pub(crate) fn accept(&mut self, cx: &mut Context, waiting: Waiting) -> Option<Accepting> {
        let (run, bodies) = (waiting.run, waiting.bodies);
        let Continuation::Next(skip) = self.continuation(&run) else { return None };
        let Some(ix) = self.logs.ensure(run.run().log) else {
            cx.faults.overflow += 1;
            return None;
        };
        self.cut_log(cx, ix);
        self.drafts.note_accepted();
        let first = run.run().first + skip as u64;
        Some(Accepting { run, bodies, ix, first, next: first })
    }

    /// Stores the next entry of the run. `None`: there are no more, and the log ends with the run.
    pub(crate) fn accept_next(
        &mut self,
        cx: &mut Context,
        accepting: &mut Accepting,
    ) -> Option<Accepted> {
        let (seq, run) = (accepting.next, accepting.run.run());
        let index = usize::try_from(seq - run.first).ok();
        let Some(entry) = index.and_then(|index| run.entries.get(index)) else {
            let certificate = accepting.run.certificate();
            let record = self.logs.edit(accepting.ix);
            (record.hash, record.seal) = (certificate.hash, certificate.seal);
            return None;
        };
        accepting.next += 1;
        let apart = accepting.bodies.remove(&seq);
        let (bytes, gone) = match &entry.body {
            Carried::Here(bytes) => (bytes.to_vec(), None),
            Carried::Apart { .. } => (apart.unwrap_or_default(), None),
            Carried::Gone(gone) => {
                let gone = apart.is_none().then_some(*gone);
                (apart.unwrap_or_default(), gone)
            }
        };
        let (at, facts) = (LocalRef { log: accepting.ix, seq }, entry.facts);
        let mut kept = stored(facts, &bytes);
        kept.gone = gone;
        let backlink = || accepting.run.hash_at(seq - 1);
        kept.backlink = if seq == accepting.first { backlink() } else { None };
        kept.seal = (seq == run.last()).then_some(run.seal);
        cx.change(Change::Entry { room: self.id, at, entry: Arc::new(kept) });
        self.logs.advance(at.log, seq, facts.clock);
        self.clock = self.clock.max(facts.clock);
        let content = if !self.counts(at) {
            Content::Uncounted(bytes)
        } else if gone.is_some() {
            Content::Gone
        } else {
            self.note_bytes(cx, bytes.len());
            let context = self.context_of(run.log, seq, facts.kind);
            let opened = self.record.open(&context, &bytes);
            opened.map_or(Content::Unopened, |bytes| Content::Open(bytes.into_owned()))
        };
        Some(Accepted { at, facts, content })
    }
}

//! Runs: consecutive entries of one log under one signature. Runs travel, and are checked before
//! anything else sees them.

use minicbor::{Decode, Encode, bytes::ByteVec};
use thiserror::Error;

use crate::{
    limits::{BODY_BYTES_MAX, BODY_INLINE_BYTES_MAX, RUN_BYTES_MAX, RUN_ENTRIES_MAX},
    name::{
        id::{Hash, LogId, MeshId, RoomId, sha256},
        identity::{Identity, Judge, Strict},
    },
    wire::{
        cbor::encode,
        entry::{Body, Facts, Gone, Header, VERSION},
        kinds::{self, Seen, Signed},
        signatures::SignedLog,
    },
};

/// Where a body is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Carried {
    /// In the run.
    #[n(0)]
    Here(#[n(0)] ByteVec),
    /// Too large for it: to be fetched by its place.
    #[n(1)]
    Apart {
        /// SHA-256 of the body.
        #[cbor(n(0), with = "minicbor::bytes")]
        hash: Hash,
        /// Its length in bytes.
        #[n(1)]
        len: u64,
    },
    /// Dropped by the sender, because it was old. Others may have it: it can be asked for by its place.
    #[n(2)]
    Gone(#[n(0)] Gone),
}

/// One entry of a run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RunEntry {
    /// Clock, wall time, kind, visibility.
    #[n(0)]
    pub facts: Facts,
    /// The body, or its hash.
    #[n(1)]
    pub body: Carried,
}

/// Consecutive entries of one log, the last one signed, as they travel. Unchecked.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Run {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// The log.
    #[n(1)]
    pub log: LogId,
    /// Log seq of the first entry, from 1.
    #[n(2)]
    pub first: u64,
    /// Hash of the header before the first entry; zeros before the first of all.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub backlink: Hash,
    /// The entries, at least one.
    #[n(4)]
    pub entries: Vec<RunEntry>,
    /// The author's signature over room, log, place and hash of the last header: see [`Certificate`].
    #[cbor(n(5), with = "minicbor::bytes")]
    pub seal: [u8; 64],
}

/// Why a run was refused. All of it is a function of the run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRun {
    /// No entries, or more than allowed.
    #[error("run has {0} entries, allowed are 1 to {RUN_ENTRIES_MAX}")]
    Entries(usize),
    /// A log seq that cannot be.
    #[error("run begins at log seq {0}")]
    First(u64),
    /// A body over the limit, or apart without need, or inline in spite of its size.
    #[error("body of {0} bytes does not travel this way")]
    Body(u64),
    /// More than fits a seal.
    #[error("run has {0} bytes")]
    Bytes(usize),
    /// Visible, or not, against its kind.
    #[error("visibility is not that of kind {0}")]
    Visible(u8),
    /// Clocks must rise.
    #[error("clocks of the run do not rise")]
    Clock,
    /// The signature is not the author's.
    #[error("seal does not verify")]
    Seal,
    /// It says something for an API key that the key has not signed, or not where it can be seen. No honest node writes
    /// that, or passes it on.
    #[error("an entry of kind {0} is not signed by its key")]
    Unsigned(u8),
}

/// A run whose form, hashes and seal hold. Whether it continues a log is for the log to say.
#[derive(Clone, Debug)]
pub struct Verified {
    run: Run,
    /// `hashes[i]` is the hash of the header of entry `i`.
    hashes: Vec<Hash>,
}

impl Run {
    /// Checks everything that needs nothing but the run and the mesh it must be of.
    ///
    /// # Errors
    ///
    /// See [`BadRun`]: the sender is at fault, or speaks for another mesh.
    pub fn verify(self, mesh: MeshId) -> Result<Verified, BadRun> {
        self.verify_by(&Strict, mesh)
    }

    /// The same, with somebody else to judge signatures.
    ///
    /// # Errors
    ///
    /// See [`BadRun`].
    pub fn verify_by(self, judge: &dyn Judge, mesh: MeshId) -> Result<Verified, BadRun> {
        if self.entries.is_empty() || self.entries.len() > RUN_ENTRIES_MAX {
            return Err(BadRun::Entries(self.entries.len()));
        }
        if self.first == 0 || self.first > u64::MAX >> 3 {
            return Err(BadRun::First(self.first));
        }
        let mut bytes = 0;
        for entry in &self.entries {
            // Else its author could have numbers given to entries that mean nothing as messages.
            let known = kinds::traits(entry.facts.kind).map(|row| row.seen == Seen::Numbered);
            if known.is_some_and(|numbered| numbered != entry.facts.visible) {
                return Err(BadRun::Visible(entry.facts.kind));
            }
            match &entry.body {
                Carried::Here(body) if body.len() > BODY_INLINE_BYTES_MAX => {
                    return Err(BadRun::Body(body.len() as u64));
                }
                Carried::Apart { len, .. }
                    if *len <= BODY_INLINE_BYTES_MAX as u64 || *len > BODY_BYTES_MAX as u64 =>
                {
                    return Err(BadRun::Body(*len));
                }
                // Nobody drops what rooms are made of.
                Carried::Gone(gone) if !entry.facts.visible || gone.len > BODY_BYTES_MAX as u64 => {
                    return Err(BadRun::Body(gone.len));
                }
                Carried::Here(body) => bytes += body.len(),
                Carried::Apart { .. } | Carried::Gone(_) => {}
            }
        }
        // One entry may always travel, so only the bytes beyond the first are limited.
        if bytes > RUN_BYTES_MAX {
            return Err(BadRun::Bytes(bytes));
        }
        if self.entries.windows(2).any(|pair| pair[1].facts.clock <= pair[0].facts.clock) {
            return Err(BadRun::Clock);
        }
        let hashes = self.hashes(mesh);
        let last = hashes.last().expect("there is at least one entry");
        let certificate = self.certificate(*last);
        if !certificate.verify_by(judge) {
            return Err(BadRun::Seal);
        }
        // The seal comes first: nobody has others verify more than it has sealed.
        let log = SignedLog { mesh, node: self.log.author };
        if let Some(entry) = self.entries.iter().find(|entry| !is_signed(judge, &log, entry)) {
            return Err(BadRun::Unsigned(entry.facts.kind));
        }
        Ok(Verified { run: self, hashes })
    }

    fn hashes(&self, mesh: MeshId) -> Vec<Hash> {
        let mut backlink = self.backlink;
        let mut hashes = Vec::with_capacity(self.entries.len());
        for (seq, entry) in (self.first..).zip(&self.entries) {
            let (body_hash, body_len) = match &entry.body {
                Carried::Here(body) => (sha256(&[body]), body.len() as u64),
                Carried::Apart { hash, len } | Carried::Gone(Gone { hash, len }) => (*hash, *len),
            };
            let header = Header {
                version: VERSION,
                mesh,
                room: self.room,
                log: self.log,
                seq,
                backlink,
                facts: entry.facts,
                body_hash,
                body_len,
            };
            backlink = header.hash();
            hashes.push(backlink);
        }
        hashes
    }

    /// Log seq of the last entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    /// Signs the entries as a run of `identity`'s log. Whether they can be in it is for receivers to judge.
    ///
    /// # Panics
    ///
    /// If there are no entries.
    #[must_use]
    pub fn seal(mut self, mesh: MeshId, identity: &Identity) -> Verified {
        let hashes = self.hashes(mesh);
        let certificate = self.certificate(*hashes.last().expect("a run has entries"));
        self.seal = identity.sign(&certificate.text());
        Verified { run: self, hashes }
    }

    fn certificate(&self, hash: Hash) -> Certificate {
        Certificate { room: self.room, log: self.log, seq: self.last(), hash, seal: self.seal }
    }

    /// Whether its sender had dropped some of its bodies.
    #[must_use]
    pub fn has_gone(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, Carried::Gone(_)))
    }

    /// How many bytes it takes encoded, near enough to plan with: bodies, facts, frame.
    #[must_use]
    pub fn size(&self) -> usize {
        let bytes = |entry: &RunEntry| match &entry.body {
            Carried::Here(body) => body.len() + 24,
            Carried::Apart { .. } | Carried::Gone(_) => 64,
        };
        self.entries.iter().map(bytes).sum::<usize>() + 192
    }

    /// Deterministic CBOR.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

/// Whether the API key that an entry speaks for has signed it. A function of the run alone, so that all nodes judge alike:
/// a body that cannot be read is without effect everywhere, and one that is not in the run might be anything.
fn is_signed(judge: &dyn Judge, log: &SignedLog, entry: &RunEntry) -> bool {
    let kind = entry.facts.kind;
    if kinds::traits(kind).is_none_or(|row| row.signed == Signed::ByNode) {
        return true;
    }
    match &entry.body {
        Carried::Here(body) => Body::decode(kind, body).is_signed(judge, log),
        Carried::Apart { .. } | Carried::Gone(_) => false,
    }
}

/// The statement of a seal: its author's log has the header with this hash at this place. Two of
/// one place with different hashes prove that the author forked its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Certificate {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// The log.
    #[n(1)]
    pub log: LogId,
    /// The place.
    #[n(2)]
    pub seq: u64,
    /// Hash of the header there.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub hash: Hash,
    /// The author's signature over all of that.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub seal: [u8; 64],
}

impl Certificate {
    fn text(&self) -> Vec<u8> {
        let (incarnation, seq) = (self.log.incarnation.to_be_bytes(), self.seq.to_be_bytes());
        let log = self.log.author.0;
        [b"clawmesh seal".as_slice(), &self.room.0, &log, &incarnation, &seq, &self.hash].concat()
    }

    /// Whether the author did sign this.
    #[must_use]
    pub fn verify(&self) -> bool {
        self.verify_by(&Strict)
    }

    /// The same, with somebody else to judge signatures.
    #[must_use]
    pub fn verify_by(&self, judge: &dyn Judge) -> bool {
        judge.holds(self.log.author, &self.text(), &self.seal)
    }
}

impl Verified {
    /// The run itself.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The hash of the header of entry `seq`, if the run has it. The place just before the run
    /// counts: its hash is the backlink.
    #[must_use]
    pub fn hash_at(&self, seq: u64) -> Option<Hash> {
        if seq + 1 == self.run.first {
            return Some(self.run.backlink);
        }
        let i = usize::try_from(seq.checked_sub(self.run.first)?).ok()?;
        self.hashes.get(i).copied()
    }

    /// The statement of the run's seal about its last entry.
    #[must_use]
    pub fn certificate(&self) -> Certificate {
        self.run.certificate(*self.hashes.last().expect("a verified run has entries"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::LOG_SEQ_MAX,
        name::{
            id::{KeyPrint, NodeId, RoomId},
            key::KeyHalves,
        },
        wire::{
            acts::{KeyAct, KeyMinted, KeyTerms, Scopes, Tier},
            entry::AgentClaimed,
            signatures::{
                KeySignature,
                testing::{PRINTS, claimed, minted, shown},
            },
        },
    };

    const MESH: MeshId = MeshId([1; 16]);

    fn run(bodies: &[&[u8]]) -> (Run, Identity) {
        let identity = Identity::from_seed(&[5; 32]);
        let entries = bodies
            .iter()
            .zip(1..)
            .map(|(body, clock)| RunEntry {
                facts: Facts { clock, wall_ms: 0, kind: 1, visible: true },
                body: Carried::Here(body.to_vec().into()),
            })
            .collect();
        let log = LogId { author: identity.node_id(), incarnation: 0 };
        let room = RoomId([2; 16]);
        (Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] }, identity)
    }

    #[test]
    fn a_sealed_run_verifies_and_any_change_to_it_does_not() {
        let (run, identity) = run(&[b"a", b"b"]);
        let good = run.seal(MESH, &identity).run().clone();
        let verified = good.clone().verify(MESH).expect("its author sealed it");
        assert!(verified.certificate().verify());
        assert!(!Certificate { hash: [7; 32], ..verified.certificate() }.verify());
        assert_eq!(good.clone().verify(MeshId([2; 16])).unwrap_err(), BadRun::Seal);
        let check = |change: &dyn Fn(&mut Run)| {
            let mut bad = good.clone();
            change(&mut bad);
            assert_eq!(bad.verify(MESH).unwrap_err(), BadRun::Seal);
        };
        check(&|run| run.first = 2);
        check(&|run| run.room = RoomId([3; 16]));
        check(&|run| run.backlink = [1; 32]);
        check(&|run| run.entries[0].facts.wall_ms = 9);
        check(&|run| run.entries[1].body = Carried::Here(b"c".to_vec().into()));
        check(&|run| run.log.incarnation = 1);
        check(&|run| {
            run.entries.pop();
        });
    }

    #[test]
    fn a_run_verifies_without_its_visible_bodies() {
        let (run, identity) = run(&[b"a", b"b"]);
        let whole = run.seal(MESH, &identity);
        let mut without = whole.run().clone();
        for (entry, body) in without.entries.iter_mut().zip([b"a", b"b"]) {
            entry.body = Carried::Gone(Gone { hash: sha256(&[body]), len: 1 });
        }
        let verified = without.clone().verify(MESH).expect("the chain and the seal hold");
        assert_eq!(verified.certificate(), whole.certificate());
        assert!(verified.run().has_gone() && !whole.run().has_gone());
        let gone = |run: &mut Run, rest| run.entries[0].body = Carried::Gone(rest);
        let mut another = without.clone();
        gone(&mut another, Gone { hash: sha256(&[b"c"]), len: 1 });
        assert_eq!(another.verify(MESH).unwrap_err(), BadRun::Seal);
        let mut longer = without.clone();
        gone(&mut longer, Gone { hash: sha256(&[b"a"]), len: 2 });
        assert_eq!(longer.verify(MESH).unwrap_err(), BadRun::Seal);
        let mut control = without;
        (control.entries[1].facts.kind, control.entries[1].facts.visible) = (16, false);
        assert_eq!(control.verify(MESH).unwrap_err(), BadRun::Body(1));
    }

    #[test]
    fn a_known_kind_is_visible_or_not_and_of_others_their_author_knows() {
        let sealed = |kind, visible| {
            let (mut run, identity) = run(&[b"a"]);
            (run.entries[0].facts.kind, run.entries[0].facts.visible) = (kind, visible);
            run.seal(MESH, &identity).run().clone().verify(MESH).map(drop)
        };
        for kind in [1, 2, 3, 33, 34, 39] {
            assert_eq!(sealed(kind, true), Ok(()));
            assert_eq!(sealed(kind, false), Err(BadRun::Visible(kind)));
        }
        for kind in [16, 17, 18, 32, 35, 36, 37, 38, 48, 49, 50, 51, 52] {
            assert_eq!(sealed(kind, false), Ok(()));
            assert_eq!(sealed(kind, true), Err(BadRun::Visible(kind)));
        }
        for kind in [0, 4, 19, 40, 53, 63, 255] {
            assert_eq!((sealed(kind, false), sealed(kind, true)), (Ok(()), Ok(())));
        }
    }

    #[test]
    fn the_form_is_checked_before_the_seal() {
        let (empty, _) = run(&[]);
        assert_eq!(empty.verify(MESH).unwrap_err(), BadRun::Entries(0));
        let (mut falling, _) = run(&[b"a", b"b"]);
        falling.entries[1].facts.clock = 1;
        assert_eq!(falling.verify(MESH).unwrap_err(), BadRun::Clock);
        let (large, _) = run(&[&[0; BODY_INLINE_BYTES_MAX + 1]]);
        assert!(matches!(large.verify(MESH).unwrap_err(), BadRun::Body(_)));
        let (many, _) = run(&[[0; 8_000].as_slice(); 5]);
        assert!(matches!(many.verify(MESH).unwrap_err(), BadRun::Bytes(_)));
    }

    /// One entry of this kind, in a log of the node.
    fn sealed_with(kind: u8, body: Carried) -> Result<(), BadRun> {
        let (mut run, identity) = run(&[b"a"]);
        let visible = kinds::traits(kind).is_some_and(|row| row.seen == Seen::Numbered);
        run.entries[0].facts = Facts { kind, visible, ..run.entries[0].facts };
        run.entries[0].body = body;
        run.seal(MESH, &identity).run().clone().verify(MESH).map(drop)
    }

    fn taken(body: &Body) -> Result<(), BadRun> {
        sealed_with(body.kind(), Carried::Here(body.encode().into()))
    }

    /// A key's word, as somebody would say it who has only a key of its own.
    fn forged(good: &KeySignature, own: &KeySignature) -> Vec<KeySignature> {
        let (signer, mailbox) = (own.halves.signer, own.halves.mailbox);
        vec![
            KeySignature { signature: own.signature, ..good.clone() },
            KeySignature { signature: [0; 64], ..good.clone() },
            KeySignature { halves: KeyHalves { signer, ..good.halves }, ..good.clone() },
            KeySignature { halves: KeyHalves { signer: [0; 32], ..good.halves }, ..good.clone() },
            // Another mailbox is another fingerprint.
            KeySignature { halves: KeyHalves { mailbox, ..good.halves }, ..good.clone() },
        ]
    }

    #[test]
    fn nobody_mints_a_key_that_has_not_signed_it() {
        let node = run(&[]).1.node_id();
        let here = SignedLog { mesh: MESH, node };
        let bad = Err(BadRun::Unsigned(kinds::KEY));
        let said = |minted: KeyMinted| taken(&Body::Key(KeyAct::Minted(minted)));
        let good = minted(&here, PRINTS[1], Tier::Low);
        assert_eq!(said(good.clone()), Ok(()));
        // What is said of it is what it signed.
        let terms = KeyTerms::of(Tier::Low);
        let others = [
            KeyTerms::of(Tier::High),
            KeyTerms { label: Some(String::new()), ..terms.clone() },
            KeyTerms { scopes: Some(Scopes::default()), ..terms.clone() },
            KeyTerms { expires_ms: Some(u64::MAX), ..terms.clone() },
            KeyTerms { owner: Some("x".to_owned()), ..terms },
        ];
        for terms in others {
            assert_eq!(said(KeyMinted { terms, ..good.clone() }), bad);
        }
        // By somebody who was not shown it.
        for by in forged(&good.by, &minted(&here, PRINTS[2], Tier::Low).by) {
            assert_eq!(said(KeyMinted { by, ..good.clone() }), bad);
        }
        // Word for word, in another log or another mesh.
        let elsewhere = SignedLog { node: NodeId([8; 32]), ..here };
        assert_eq!(said(minted(&elsewhere, PRINTS[1], Tier::Low)), bad);
        let other_mesh = SignedLog { mesh: MeshId([2; 16]), ..here };
        assert_eq!(said(minted(&other_mesh, PRINTS[1], Tier::Low)), bad);
        // Anybody revokes.
        assert_eq!(taken(&Body::Key(KeyAct::Revoked(PRINTS[1]))), Ok(()));
    }

    #[test]
    fn nobody_vouches_for_a_key_that_has_not_signed_it() {
        let node = run(&[]).1.node_id();
        let here = SignedLog { mesh: MESH, node };
        let bad = Err(BadRun::Unsigned(kinds::KEY));
        let said = |shown: KeySignature| taken(&Body::Key(KeyAct::Shown(shown)));
        let at = |log: &SignedLog, key| shown(log, key).expect("it is one of these");
        let (good, own) = (at(&here, PRINTS[1]), at(&here, PRINTS[2]));
        assert_eq!(said(good.clone()), Ok(()));
        // As another node has written it.
        assert_eq!(said(at(&SignedLog { node: NodeId([8; 32]), ..here }, PRINTS[1])), bad);
        assert_eq!(said(at(&SignedLog { mesh: MeshId([2; 16]), ..here }, PRINTS[1])), bad);
        for by in forged(&good, &own) {
            assert_eq!(said(by), bad);
        }
    }

    #[test]
    fn nobody_claims_an_agent_id_for_a_key_that_has_not_signed_it() {
        let bad = Err(BadRun::Unsigned(kinds::AGENT_CLAIMED));
        let said = |agent: &str, claim: AgentClaimed| {
            taken(&Body::AgentClaimed(AgentClaimed { agent: agent.into(), ..claim }))
        };
        let claim = |key| claimed(MESH, "bob", key);
        assert_eq!(said("bob", claim(PRINTS[1])), Ok(()));
        assert_eq!(said("eve", claim(PRINTS[1])), bad);
        assert_eq!(said("bob", claimed(MeshId([2; 16]), "bob", PRINTS[1])), bad);
        let [good, own] = [PRINTS[1], PRINTS[2]].map(|key| claim(key).by.expect("it is signed"));
        for by in forged(&good, &own) {
            assert_eq!(said("bob", AgentClaimed { by: Some(by), ..claim(PRINTS[1]) }), bad);
        }
        // Where keys are not checked there is none that could sign; nor is an id anybody's there.
        assert_eq!(said("bob", claim(KeyPrint::OPEN)), Ok(()));
    }

    #[test]
    fn what_a_key_has_to_sign_travels_in_the_run() {
        for kind in [kinds::KEY, kinds::AGENT_CLAIMED] {
            let len = BODY_INLINE_BYTES_MAX as u64 + 1;
            let unsigned = Err(BadRun::Unsigned(kind));
            assert_eq!(sealed_with(kind, Carried::Apart { hash: [1; 32], len }), unsigned);
            // It means nothing to anybody.
            for unread in [&b""[..], b"\x82\x01", b"\xff"] {
                assert_eq!(Body::decode(kind, unread), Body::Unknown);
                assert_eq!(sealed_with(kind, Carried::Here(unread.to_vec().into())), Ok(()));
            }
        }
        let gone = Carried::Gone(Gone { hash: [1; 32], len: 1 });
        let unsigned = Err(BadRun::Unsigned(kinds::AGENT_CLAIMED));
        assert_eq!(sealed_with(kinds::AGENT_CLAIMED, gone), unsigned);
    }

    #[test]
    fn as_much_as_may_travel_does_and_not_a_byte_more() {
        let said = |change: &dyn Fn(&mut Run)| {
            let (mut run, identity) = run(&[b"a"]);
            change(&mut run);
            run.seal(MESH, &identity).run().clone().verify(MESH).map(drop)
        };
        let body = |body: Carried| said(&|run| run.entries[0].body = body.clone());
        let max = BODY_BYTES_MAX as u64;
        let apart = |len| body(Carried::Apart { hash: [1; 32], len });
        let gone = |len| body(Carried::Gone(Gone { hash: [1; 32], len }));
        assert_eq!((apart(max), apart(max + 1)), (Ok(()), Err(BadRun::Body(max + 1))));
        assert_eq!((gone(max), gone(max + 1)), (Ok(()), Err(BadRun::Body(max + 1))));
        let first = |seq| said(&|run| run.first = seq);
        assert_eq!((first(LOG_SEQ_MAX), first(0)), (Ok(()), Err(BadRun::First(0))));
        assert_eq!(first(LOG_SEQ_MAX + 1), Err(BadRun::First(LOG_SEQ_MAX + 1)));
        let (full, identity) = run(&[[0; BODY_INLINE_BYTES_MAX].as_slice(); 4]);
        let full = full.seal(MESH, &identity).run().clone();
        assert_eq!(full.verify(MESH).map(drop), Ok(()), "{RUN_BYTES_MAX} bytes");
    }

    #[test]
    fn what_a_run_takes_is_estimated_well_enough_to_plan_with() {
        let near = |run: &Run| {
            let (size, bytes) = (run.size(), run.encode().len());
            assert!(size >= bytes && size <= bytes + bytes / 4 + 64, "{size} for {bytes}");
        };
        let (large, _) = run(&[[0xff; 8_000].as_slice(); 4]);
        near(&large);
        let (mut apart, _) = run(&[b"a".as_slice(); 64]);
        for entry in &mut apart.entries {
            entry.facts.wall_ms = 1_800_000_000_000;
            entry.body = Carried::Apart { hash: [1; 32], len: 9_000 };
        }
        near(&apart);
    }

    #[test]
    fn decoding_never_panics_on_cut_or_changed_bytes() {
        let (run, identity) = run(&[b"hello", b"world"]);
        let run = run.seal(MESH, &identity).run().clone();
        let bytes = run.encode();
        assert_eq!(minicbor::decode::<Run>(&bytes).expect("it is one"), run);
        for i in 0..bytes.len() {
            let _ = minicbor::decode::<Run>(&bytes[..i]);
            let mut bad = bytes.clone();
            bad[i] ^= 0x5a;
            if let Ok(run) = minicbor::decode::<Run>(&bad) {
                let _ = run.verify(MESH);
            }
        }
    }
}

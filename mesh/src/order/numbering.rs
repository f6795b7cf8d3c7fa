//! Numbers of one room: eras and the numbers given in them, and the one delivery of each entry.
//!
//! The rules are those of `docs/numbering.md`; they are cited here by number.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{
    api::batch::{EraRecord, Gave, NumberRange},
    limits::{CUT_ERAS_MAX, GIVEN_PER_ERA_MAX},
    name::{
        id::{AgentId, EntryRef, LocalRef, LogId, LogIx, MessageId, NodeId},
        number::{Era, Number},
    },
    wire::entry::{EraClaimed, Facts, Reached, Said},
};

/// A visible entry that is held here and not delivered yet.
#[derive(Clone, Debug)]
pub(crate) struct Undelivered {
    pub(crate) facts: Facts,
    pub(crate) numbers: Option<NumberRange>,
    /// Join stamp of whose turn it is after it; only chat moves the turn.
    pub(crate) turn: Option<u64>,
    /// The id that it was brought with.
    pub(crate) id: Option<MessageId>,
    /// Agents that it mentions and that have an inbox here.
    pub(crate) mentioned: Vec<AgentId>,
    /// The body, while there is memory for it.
    pub(crate) said: Option<Arc<Said>>,
    pub(crate) body_bytes: usize,
    /// When it came, or when this node started.
    pub(crate) since: Duration,
    /// When to ask for a number next, and how long to wait after that.
    pub(crate) ask_at: Duration,
    pub(crate) ask_step: Duration,
}

impl Undelivered {
    /// Rule 3: it has a number, and all its numbers are at or behind the tip.
    pub(crate) fn is_late(&self, tip: Number) -> bool {
        self.numbers.is_some_and(|range| range.best <= tip)
    }

    /// Nobody has given it a number, as far as is known here.
    pub(crate) fn is_unnumbered(&self) -> bool {
        self.numbers.is_none()
    }

    /// The sequencer has to give it one.
    pub(crate) fn needs_number(&self, tip: Number) -> bool {
        self.numbers.is_none_or(|range| range.best <= tip)
    }
}

/// An era at this node.
#[derive(Clone, Debug)]
pub(crate) struct EraState {
    pub(crate) record: EraRecord,
    /// The entries that numbers `done + 1` … `known` name.
    items: VecDeque<Item>,
    /// How far all claims so far say it had got when they were made.
    pub(crate) cut_at: u64,
    /// Since when its next item's content is missing.
    pub(crate) missing_since: Option<Duration>,
    /// Its sequencer forked its log: no more items come.
    ended: bool,
    dirty: bool,
}

/// The entry, or nothing, that numbers name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// One number: this entry.
    Entry(LocalRef),
    /// So many numbers: nothing.
    Nothing(u64),
}

/// The next item of an era.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextItem {
    /// Under this number, if it is above the tip.
    Item(Number, LocalRef),
    /// The numbers up to this one name nothing.
    Gap(Number),
    /// Another era has to get further first, or nothing is left.
    Nothing,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// Boxed: nearly all rooms have one, and a map has room for eleven.
    pub(crate) eras: BTreeMap<Era, Box<EraState>>,
    /// Eras with items left.
    pub(crate) busy: BTreeSet<Era>,
    pub(crate) undelivered: BTreeMap<LocalRef, Undelivered>,
    /// Numbers of entries that are not held.
    pub(crate) foretold: BTreeMap<LocalRef, NumberRange>,
    /// More numbers of these, between the lowest and the highest: no more than there are items.
    between: BTreeMap<LocalRef, Vec<Number>>,
    /// Entries that came without their bodies, which nobody keeps any more: their numbers are delivered
    /// as nothing.
    pub(crate) gone: BTreeMap<LocalRef, Facts>,
    /// In the current era, if this node issues it: the highest number it gave to each entry; of
    /// the home era only second and later ones. Answers rule 3's "highest it has issued".
    pub(crate) issued: BTreeMap<LocalRef, Number>,
}

impl Numbering {
    pub(crate) fn new(home: LogId) -> Numbering {
        let record = EraRecord::new(home, Vec::new());
        let mut numbering = Numbering::empty();
        numbering.eras.insert(Era::HOME, EraState::new(record, true));
        numbering
    }

    fn empty() -> Numbering {
        Numbering {
            eras: BTreeMap::new(),
            busy: BTreeSet::new(),
            undelivered: BTreeMap::new(),
            foretold: BTreeMap::new(),
            between: BTreeMap::new(),
            gone: BTreeMap::new(),
            issued: BTreeMap::new(),
        }
    }

    /// As it was stored: `waiting` are the numbers above each era's `done`, ascending.
    pub(crate) fn restore(
        eras: Vec<(Era, EraRecord)>,
        waiting: Vec<(Number, LocalRef)>,
        foretold: Vec<(LocalRef, NumberRange)>,
    ) -> Numbering {
        let mut numbering = Numbering::empty();
        for (era, record) in eras {
            numbering.eras.insert(era, EraState::new(record, false));
        }
        let cuts: Vec<Reached> =
            numbering.eras.values().flat_map(|state| state.record.cut.iter().copied()).collect();
        numbering.note_cut(&cuts);
        let mut upto: BTreeMap<Era, u64> =
            numbering.eras.iter().map(|(era, state)| (*era, state.record.done)).collect();
        numbering.foretold.extend(foretold);
        // Numbers that name nothing have no rows.
        for (number, at) in waiting {
            if numbering.foretold.get(&at).is_some_and(|range| range.is_within(number)) {
                numbering.between.entry(at).or_default().push(number);
            }
            let Some(state) = numbering.eras.get_mut(&number.era()) else { continue };
            let upto = upto.entry(number.era()).or_default();
            state.push_nothing(number.n().saturating_sub(*upto + 1));
            state.items.push_back(Item::Entry(at));
            *upto = number.n();
        }
        for (era, state) in &mut numbering.eras {
            let upto = upto.get(era).copied().unwrap_or_default();
            state.push_nothing(state.record.known.saturating_sub(upto));
            if !state.items.is_empty() {
                numbering.busy.insert(*era);
            }
        }
        numbering
    }

    /// The highest era known is the current one (rule 4).
    pub(crate) fn current(&self) -> Era {
        *self.eras.last_key_value().expect("a room has its home era").0
    }

    /// The log whose author issues the current era.
    pub(crate) fn sequencer(&self) -> LogId {
        self.eras.last_key_value().expect("a room has its home era").1.record.sequencer
    }

    /// The handover by which the era is its sequencer's, if that did not claim it.
    pub(crate) fn by(&self, era: Era) -> Option<EntryRef> {
        self.eras.get(&era)?.record.by()
    }

    pub(crate) fn known(&self, era: Era) -> u64 {
        self.eras.get(&era).map_or(0, |state| state.record.known)
    }

    pub(crate) fn edit(&mut self, era: Era) -> Option<&mut EraState> {
        let state = &mut **self.eras.get_mut(&era)?;
        state.dirty = true;
        Some(state)
    }

    pub(crate) fn take_dirty(&mut self) -> Vec<(Era, EraRecord)> {
        let mut out = Vec::new();
        for (era, state) in &mut self.eras {
            if std::mem::take(&mut state.dirty) {
                out.push((*era, state.record.clone()));
            }
        }
        out
    }

    /// `at` gets the next number of `era`. Returns it.
    pub(crate) fn assign(&mut self, era: Era, at: LocalRef) -> Option<Number> {
        let state = self.edit(era)?;
        state.record.known += 1;
        state.items.push_back(Item::Entry(at));
        let number = era.number(state.record.known);
        self.busy.insert(era);
        if let Some(entry) = self.undelivered.get_mut(&at) {
            entry.numbers = Some(merge(entry.numbers, number));
        }
        Some(number)
    }

    /// The next `count` numbers of `era` name nothing.
    pub(crate) fn skip(&mut self, era: Era, count: u64) {
        let Some(state) = self.edit(era).filter(|_| count > 0) else { return };
        state.record.known += count;
        state.push_nothing(count);
        self.busy.insert(era);
    }

    /// Another number of an entry that is not held. Returns what is known of it now.
    pub(crate) fn foretell(&mut self, at: LocalRef, number: Number) -> NumberRange {
        let known = self.foretold.get(&at).copied();
        let numbers = merge(known, number);
        self.foretold.insert(at, numbers);
        let mut all =
            known.into_iter().flat_map(|range| [range.best, range.canonical]).chain([number]);
        // At most one is new here: the one that was highest or lowest before, or this one.
        if let Some(number) = all.find(|number| numbers.is_within(*number)) {
            self.between.entry(at).or_default().push(number);
        }
        numbers
    }

    /// Entries that are not held, of which the same era has numbered at least one below this.
    pub(crate) fn foretold_below(&self, number: Number) -> impl Iterator<Item = LocalRef> {
        let below = move |other: &Number| other.era() == number.era() && *other < number;
        let is_below = move |at: &LocalRef, range: &NumberRange| {
            let between = self.between.get(at).into_iter().flatten().copied();
            between.chain([range.canonical, range.best]).any(|other| below(&other))
        };
        self.foretold.iter().filter(move |(at, range)| is_below(at, range)).map(|(at, _)| *at)
    }

    /// The entry has come: its numbers so far, all of them.
    pub(crate) fn came(&mut self, at: LocalRef) -> (Option<NumberRange>, Vec<Number>) {
        let numbers = self.foretold.remove(&at);
        let mut all = self.between.remove(&at).unwrap_or_default();
        all.extend(numbers.into_iter().flat_map(|range| [range.canonical, range.best]));
        (numbers, all)
    }

    /// Opens a claimed era. `false` if there is one of this name already.
    pub(crate) fn open(&mut self, claim: &EraClaimed, sequencer: LogId) -> bool {
        if self.eras.contains_key(&claim.era) {
            return false;
        }
        let record = EraRecord::new(sequencer, claim.cut.clone());
        self.eras.insert(claim.era, EraState::new(record, true));
        self.note_cut(&claim.cut);
        self.issued.clear();
        true
    }

    /// Whether a claim says that this number had been reached when it was made.
    pub(crate) fn is_cut(&self, number: Number) -> bool {
        self.eras.get(&number.era()).is_some_and(|state| number.n() <= state.cut_at)
    }

    fn note_cut(&mut self, cut: &[Reached]) {
        for reached in cut {
            if let Some(state) = self.eras.get_mut(&reached.era) {
                state.cut_at = state.cut_at.max(reached.n);
            }
        }
    }

    /// How far this node has got in the eras that changed since all cuts known. When there are more than
    /// fit, the highest count: the rest is late somewhere and asked for.
    pub(crate) fn cut(&self) -> Vec<Reached> {
        let changed = self.eras.iter().rev().filter(|(_, state)| state.record.done > state.cut_at);
        let mut cut: Vec<Reached> = changed
            .take(CUT_ERAS_MAX)
            .map(|(era, state)| Reached { era: *era, n: state.record.done })
            .collect();
        cut.reverse();
        cut
    }

    /// The next item of `era`, once everything its cut names is done (rule 4).
    pub(crate) fn next_item(&self, era: Era) -> NextItem {
        let Some(state) = self.eras.get(&era) else { return NextItem::Nothing };
        // An era that is not known though the claim was accepted is void: nothing of it will come.
        let entered = state.record.done > 0
            || state.record.cut.iter().all(|reached| {
                self.eras.get(&reached.era).is_none_or(|other| {
                    other.record.done >= reached.n || (other.ended && other.items.is_empty())
                })
            });
        match state.items.front() {
            Some(Item::Entry(at)) if entered => {
                NextItem::Item(era.number(state.record.done + 1), *at)
            }
            Some(Item::Nothing(count)) if entered => {
                NextItem::Gap(era.number(state.record.done + count))
            }
            Some(_) | None => NextItem::Nothing,
        }
    }

    /// The entry at this place gave items of `era` from `first` on.
    pub(crate) fn note_given(&mut self, era: Era, at: LocalRef, first: u64) {
        let Some(state) = self.edit(era) else { return };
        let given = &mut state.record.given;
        if given.len() >= GIVEN_PER_ERA_MAX {
            given.remove(0);
        }
        given.push(Gave { log: at.log, seq: at.seq, first });
    }

    /// Nothing of this log counts from `seq` on. Returns from where on numbers do not, that did until now.
    pub(crate) fn lose(&mut self, log: LogIx, seq: u64) -> Vec<Number> {
        let mut out = Vec::new();
        for (era, state) in &mut self.eras {
            let given = state.record.given.iter().filter(|gave| gave.log == log && gave.seq >= seq);
            let first = given.map(|gave| gave.first).min();
            if let Some(first) =
                first.filter(|first| state.record.lost.is_none_or(|lost| *first < lost))
            {
                state.record.lost = Some(first);
                state.dirty = true;
                out.push(era.number(first));
            }
        }
        out
    }

    /// The first number of each era that does not count.
    pub(crate) fn lost(&self) -> impl Iterator<Item = Number> {
        self.eras.iter().filter_map(|(era, state)| Some(era.number(state.record.lost?)))
    }

    /// This author's eras get no more items.
    pub(crate) fn end_eras_of(&mut self, author: NodeId) {
        for state in self.eras.values_mut() {
            state.ended |= state.record.sequencer.author == author;
        }
    }

    /// The next item of `era` is dealt with.
    pub(crate) fn step(&mut self, era: Era) {
        let Some(state) = self.edit(era) else { return };
        match state.items.pop_front() {
            Some(Item::Entry(_)) => state.record.done += 1,
            Some(Item::Nothing(count)) => {
                state.record.done += count;
                state.record.empty += count;
            }
            None => {}
        }
        state.missing_since = None;
        if state.items.is_empty() {
            self.busy.remove(&era);
        }
    }
}

impl EraState {
    /// However many they are: they cost one item.
    fn push_nothing(&mut self, count: u64) {
        match self.items.back_mut() {
            Some(Item::Nothing(more)) => *more += count,
            Some(Item::Entry(_)) | None if count > 0 => self.items.push_back(Item::Nothing(count)),
            Some(Item::Entry(_)) | None => {}
        }
    }

    fn new(record: EraRecord, dirty: bool) -> Box<EraState> {
        let items = VecDeque::new();
        Box::new(EraState { record, items, cut_at: 0, missing_since: None, ended: false, dirty })
    }
}

impl NumberRange {
    fn is_within(self, number: Number) -> bool {
        self.canonical < number && number < self.best
    }
}

/// Highest and lowest of an entry's numbers, with one more.
pub(crate) fn merge(numbers: Option<NumberRange>, number: Number) -> NumberRange {
    numbers.map_or(NumberRange { best: number, canonical: number }, |range| NumberRange {
        best: range.best.max(number),
        canonical: range.canonical.min(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them are known when it comes, also over a start; most are still to be dealt with.
    #[test]
    fn no_number_that_was_given_before_its_entry_came_is_forgotten() {
        let log = LogId { author: NodeId([1; 32]), incarnation: 0 };
        let at = LocalRef { log: 0, seq: 7 };
        let numbers = [Number(5), Number(2), Number(9), Number(4), Number(9)];
        let mut numbering = Numbering::new(log);
        for number in numbers {
            numbering.foretell(at, number);
        }
        let foretold = numbering.foretold.iter().map(|(at, range)| (*at, *range)).collect();
        let record = EraRecord { known: 9, ..EraRecord::new(log, Vec::new()) };
        let waiting = [2, 4, 5, 9].map(|n| (Number(n), at)).to_vec();
        let restored = Numbering::restore(vec![(Era::HOME, record)], waiting, foretold);
        for mut numbering in [numbering, restored] {
            let (ends, mut all) = numbering.came(at);
            assert_eq!(
                ends.map(|range| (range.canonical, range.best)),
                Some((Number(2), Number(9)))
            );
            all.sort();
            assert_eq!(all, [Number(2), Number(4), Number(5), Number(9)]);
            assert_eq!(numbering.came(at).1, []);
        }
    }

    /// What is kept of numbers that name nothing is how many they are, also over a start.
    #[test]
    fn numbers_that_name_nothing_cost_no_memory() {
        let log = LogId { author: NodeId([1; 32]), incarnation: 0 };
        let known = 8_000_000_000;
        let record = EraRecord { known, ..EraRecord::new(log, Vec::new()) };
        let at = LocalRef { log: 0, seq: 7 };
        let eras = vec![(Era::HOME, record)];
        let mut numbering = Numbering::restore(eras, vec![(Number(1_000_000_000), at)], Vec::new());
        numbering.skip(Era::HOME, 5);
        numbering.skip(Era::HOME, 6);
        assert_eq!(numbering.eras[&Era::HOME].items.len(), 3);
        let expected = [
            NextItem::Gap(Number(999_999_999)),
            NextItem::Item(Number(1_000_000_000), at),
            NextItem::Gap(Number(known + 11)),
            NextItem::Nothing,
        ];
        for next in expected {
            assert_eq!(numbering.next_item(Era::HOME), next);
            numbering.step(Era::HOME);
        }
        let record = &numbering.eras[&Era::HOME].record;
        assert_eq!((record.done, record.empty), (known + 11, known + 10));
        assert!(numbering.busy.is_empty());
    }

    fn log(n: u8) -> LogId {
        LogId { author: NodeId([n; 32]), incarnation: 0 }
    }

    fn at(seq: u64) -> LocalRef {
        LocalRef { log: 0, seq }
    }

    fn era(c: u32) -> Era {
        Era::new(c, 7).expect("an era")
    }

    /// An era of this author that builds on this.
    fn open(numbering: &mut Numbering, c: u32, (author, cut): (u8, Vec<Reached>)) {
        let claim = EraClaimed { era: era(c), after: numbering.current(), cut, seen: Vec::new() };
        assert!(numbering.open(&claim, log(author)));
    }

    /// So many numbers of an era are given, and dealt with.
    fn get_on(numbering: &mut Numbering, era: Era, count: u64) {
        for seq in 0..count {
            numbering.assign(era, at(1_000 + seq)).expect("it is there");
            numbering.step(era);
        }
    }

    #[test]
    fn what_has_no_number_above_the_tip_needs_another_one() {
        let entry = |best| Undelivered {
            facts: Facts { clock: 1, wall_ms: 0, kind: 1, visible: true },
            numbers: best,
            turn: None,
            id: None,
            mentioned: Vec::new(),
            said: None,
            body_bytes: 0,
            since: Duration::ZERO,
            ask_at: Duration::ZERO,
            ask_step: Duration::ZERO,
        };
        let is = |entry: Undelivered, tip| {
            let tip = Number(tip);
            (entry.is_late(tip), entry.is_unnumbered(), entry.needs_number(tip))
        };
        let five = Some(NumberRange { best: Number(5), canonical: Number(2) });
        assert_eq!(is(entry(None), 4), (false, true, true));
        assert_eq!(is(entry(five), 4), (false, false, false));
        assert_eq!(is(entry(five), 5), (true, false, true));
        assert_eq!(is(entry(five), 6), (true, false, true));
    }

    #[test]
    fn what_was_dealt_with_before_a_start_is_not_dealt_with_again() {
        let record = EraRecord { known: 5, done: 5, ..EraRecord::new(log(1), Vec::new()) };
        let numbering = Numbering::restore(vec![(Era::HOME, record.clone())], vec![], vec![]);
        assert_eq!(numbering.next_item(Era::HOME), NextItem::Nothing);
        assert!(numbering.busy.is_empty() && numbering.eras[&Era::HOME].items.is_empty());
        let record = EraRecord { known: 7, ..record };
        let waiting = vec![(Number(6), at(1)), (Number(7), at(2))];
        let numbering = Numbering::restore(vec![(Era::HOME, record)], waiting, vec![]);
        assert_eq!(numbering.next_item(Era::HOME), NextItem::Item(Number(6), at(1)));
        assert_eq!(numbering.busy, BTreeSet::from([Era::HOME]));
        assert_eq!(numbering.eras[&Era::HOME].items.len(), 2, "and nothing between them");
    }

    #[test]
    fn a_cut_names_how_far_eras_have_got_that_no_earlier_cut_names() {
        let mut numbering = Numbering::new(log(1));
        assert_eq!(numbering.cut(), []);
        get_on(&mut numbering, Era::HOME, 3);
        open(&mut numbering, 1, (1, Vec::new()));
        get_on(&mut numbering, era(1), 2);
        let cut = numbering.cut();
        let reached = [Reached { era: Era::HOME, n: 3 }, Reached { era: era(1), n: 2 }];
        assert_eq!(cut, reached);
        open(&mut numbering, 2, (1, cut));
        assert_eq!(numbering.cut(), []);
        get_on(&mut numbering, Era::HOME, 1);
        assert_eq!(numbering.cut(), [Reached { era: Era::HOME, n: 4 }]);
        // A claim that had heard of less takes nothing back.
        open(&mut numbering, 3, (1, vec![Reached { era: era(1), n: 1 }]));
        assert_eq!(numbering.cut(), [Reached { era: Era::HOME, n: 4 }]);
        let eras = numbering.eras.iter().map(|(era, state)| (*era, state.record.clone())).collect();
        let restored = Numbering::restore(eras, Vec::new(), Vec::new());
        assert_eq!(restored.cut(), numbering.cut(), "also after a start");
    }

    #[test]
    fn a_cut_names_so_many_eras_and_the_highest() {
        let mut numbering = Numbering::new(log(1));
        get_on(&mut numbering, Era::HOME, 1);
        let count = u32::try_from(CUT_ERAS_MAX).expect("few");
        for c in 1..=count {
            open(&mut numbering, c, (1, Vec::new()));
            get_on(&mut numbering, era(c), 1);
        }
        let cut: Vec<Era> = numbering.cut().iter().map(|reached| reached.era).collect();
        assert_eq!(cut, (1..=count).map(era).collect::<Vec<_>>());
    }

    #[test]
    fn an_era_begins_when_what_its_cut_names_is_dealt_with() {
        for first in [false, true] {
            let mut numbering = Numbering::new(log(1));
            for seq in [1, 2] {
                numbering.assign(Era::HOME, at(seq));
            }
            open(&mut numbering, 1, (2, vec![Reached { era: Era::HOME, n: 2 }]));
            if first {
                numbering.skip(era(1), 3);
            }
            numbering.assign(era(1), at(3));
            numbering.step(Era::HOME);
            assert_eq!(numbering.next_item(era(1)), NextItem::Nothing);
            numbering.step(Era::HOME);
            let next = if first {
                NextItem::Gap(era(1).number(3))
            } else {
                NextItem::Item(era(1).number(1), at(3))
            };
            assert_eq!(numbering.next_item(era(1)), next);
        }
    }

    #[test]
    fn an_era_of_whoever_is_out_is_waited_for_no_longer_than_there_is_something_of_it() {
        let mut numbering = Numbering::new(log(1));
        numbering.assign(Era::HOME, at(1));
        open(&mut numbering, 1, (2, vec![Reached { era: Era::HOME, n: 2 }]));
        numbering.assign(era(1), at(3));
        let begins = |numbering: &Numbering| numbering.next_item(era(1)) != NextItem::Nothing;
        numbering.end_eras_of(log(1).author);
        assert!(!begins(&numbering), "one number of it is to be dealt with");
        numbering.step(Era::HOME);
        assert!(begins(&numbering));
        let mut numbering = Numbering::new(log(1));
        get_on(&mut numbering, Era::HOME, 1);
        open(&mut numbering, 1, (2, vec![Reached { era: Era::HOME, n: 2 }]));
        numbering.assign(era(1), at(3));
        numbering.end_eras_of(log(2).author);
        assert!(!begins(&numbering), "that was another one");
        numbering.end_eras_of(log(1).author);
        assert!(begins(&numbering));
    }
}

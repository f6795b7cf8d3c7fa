//! The journal as a disk: what was synced is there after a crash at any moment, whole, and nothing else.

use super::*;
use crate::testing::{CrashingBackend, Unsynced};

/// A few commits of a few pages.
const ROOM: Room = Room { whole: 32 * BLOCK, first: 16 * BLOCK };

/// What a user of the disk does.
#[derive(Clone, Debug)]
enum Step {
    SetLen(u64),
    Write(u64, Vec<u8>),
    Sync,
    Checkpoint,
    RollBack,
}

/// Of a splitmix64 generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// Of all kinds and sizes: some commits are records, and some direct.
    fn steps(&mut self, count: usize) -> Vec<Step> {
        let mut len = 4 * BLOCK;
        let mut steps = vec![Step::SetLen(len), Step::Sync];
        for _ in 0..count {
            steps.push(match self.below(16) {
                0 => {
                    len = 4 * BLOCK + self.below(9 * BLOCK);
                    Step::SetLen(len)
                }
                1..=9 => {
                    let bytes = 1 + self.below(3 * BLOCK);
                    let fill = u8::try_from(self.below(255)).unwrap_or(0);
                    Step::Write(self.below(len - bytes), vec![fill; index(bytes)])
                }
                10..=14 => Step::Sync,
                _ => Step::Checkpoint,
            });
        }
        steps
    }
}

/// A disk that forgets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    now: Vec<u8>,
    synced: Vec<u8>,
}

impl Model {
    fn take(&mut self, step: &Step) {
        match step {
            Step::SetLen(len) => self.now.resize(index(*len), 0),
            Step::Write(at, data) => self.now[index(*at)..][..data.len()].copy_from_slice(data),
            Step::Sync => self.synced = self.now.clone(),
            Step::Checkpoint => {}
            Step::RollBack => self.now = self.synced.clone(),
        }
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("a test is small")
}

fn play(journal: &Journal, step: &Step) -> io::Result<()> {
    match step {
        Step::SetLen(len) => journal.set_len(*len),
        Step::Write(at, data) => journal.write(*at, data),
        Step::Sync => journal.sync_data(),
        Step::Checkpoint => journal.checkpoint(),
        Step::RollBack => journal.roll_back(),
    }
}

fn image(journal: &Journal) -> Vec<u8> {
    let mut bytes = vec![0; index(journal.len().unwrap())];
    journal.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn it_reads_as_a_disk_does() {
    for seed in 0..200 {
        let disk = CrashingBackend::new(seed);
        let mut journal = Journal::on(disk.clone(), ROOM);
        let mut model = Model::default();
        let mut dice = Dice(seed);
        for (n, step) in dice.steps(60).iter().enumerate() {
            play(&journal, step).unwrap();
            model.take(step);
            assert_eq!(image(&journal), model.now, "seed {seed}, step {n}");
            // Another start in good order.
            if n % 17 == 16 && model.now == model.synced {
                journal.close().unwrap();
                journal = Journal::on(disk.clone(), ROOM);
            }
        }
    }
}

/// Steps whose commits are a few pages each, so that all of them are records, of different lengths.
fn records(dice: &mut Dice, count: usize) -> Vec<Step> {
    let mut steps = vec![Step::SetLen(6 * BLOCK), Step::Sync];
    for n in 0..count {
        let page = dice.below(4);
        let fill = u8::try_from(n % 250 + 1).unwrap_or(1);
        let bytes = index(1 + dice.below(3)) * BLOCK_BYTES;
        steps.push(Step::Write(page * BLOCK, vec![fill; bytes]));
        if dice.below(4) == 0 {
            steps.push(Step::Write(page * BLOCK + 7, vec![0; 9]));
        }
        steps.push(Step::Sync);
        if dice.below(9) == 0 {
            steps.push(Step::Checkpoint);
        }
    }
    steps
}

#[test]
fn after_a_crash_it_is_as_after_a_sync() {
    for seed in 0..8 {
        for unsynced in [Unsynced::Dropped, Unsynced::Torn] {
            for operations in 0.. {
                let steps = records(&mut Dice(seed), 12);
                let disk = CrashingBackend::new(seed);
                disk.fail_after(operations);
                let journal = Journal::on(disk.clone(), ROOM);
                let mut model = Model::default();
                let failed = steps.iter().any(|step| {
                    let failed = play(&journal, step).is_err();
                    if !failed {
                        model.take(step);
                    }
                    failed
                });
                let after = Journal::on(disk.crash(unsynced), ROOM);
                let found = image(&after);
                // The commit that was under way may count.
                let is_one = found == model.synced || (failed && found == model.now);
                assert!(is_one, "seed {seed}, {unsynced:?}, {operations} operations");
                // And it goes on from there.
                let step = Step::SetLen(8 * BLOCK);
                play(&after, &step).unwrap();
                play(&after, &Step::Write(7 * BLOCK, vec![9; BLOCK_BYTES])).unwrap();
                play(&after, &Step::Sync).unwrap();
                let mut longer = found.clone();
                longer.resize(index(7 * BLOCK), 0);
                longer.resize(index(8 * BLOCK), 9);
                assert_eq!(image(&after), longer);
                if !failed {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_full_disk_takes_nothing_back() {
    for seed in 0..40 {
        for room in 0..12 {
            let disk = CrashingBackend::new(seed);
            let journal = Journal::on(disk.clone(), ROOM);
            let mut model = Model::default();
            for (n, step) in records(&mut Dice(seed), 20).iter().enumerate() {
                if n == 9 {
                    disk.fill_after(Some(room));
                }
                match play(&journal, step) {
                    Ok(()) => model.take(step),
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                        if let Step::Sync = step {
                            play(&journal, &Step::RollBack).unwrap();
                            model.take(&Step::RollBack);
                        }
                        disk.fill_after(None);
                    }
                }
                assert_eq!(image(&journal), model.now, "seed {seed}, room {room}, step {n}");
            }
            drop(journal);
            let after = Journal::on(disk.crash(Unsynced::Torn), ROOM);
            assert_eq!(image(&after), model.synced, "seed {seed}, room {room}");
        }
    }
}

#[test]
fn nothing_is_written_by_a_look() {
    let disk = CrashingBackend::new(1);
    let journal = Journal::on(disk.clone(), ROOM);
    for step in records(&mut Dice(1), 5) {
        play(&journal, &step).unwrap();
    }
    let before = image(&journal);
    let disk = disk.crash(Unsynced::Dropped);
    let bytes = disk.image();
    let look = Journal::on(disk.clone(), ROOM);
    assert_eq!(image(&look), before);
    look.close().unwrap();
    assert_eq!(disk.image(), bytes);
}

#[test]
fn a_file_of_somebody_else_is_passed_on() {
    let disk = CrashingBackend::of(vec![7; 9_000], 1);
    let journal = Journal::on(disk.clone(), ROOM);
    assert_eq!(image(&journal), vec![7; 9_000]);
    // Zeros that are longer than a journal that was being made are no new file.
    let disk = CrashingBackend::of(vec![0; index(JOURNAL_BYTES) + 1], 1);
    assert_eq!(Journal::on(disk, ROOM).len().unwrap(), JOURNAL_BYTES + 1);
}

#[test]
fn a_damaged_header_is_told() {
    let disk = CrashingBackend::new(1);
    let journal = Journal::on(disk.clone(), ROOM);
    for step in records(&mut Dice(1), 2) {
        play(&journal, &step).unwrap();
    }
    let sound = disk.image();
    for byte in 16..64 {
        let mut image = sound.clone();
        image[byte] ^= 1;
        let error = Journal::on(CrashingBackend::of(image, 1), ROOM).len().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

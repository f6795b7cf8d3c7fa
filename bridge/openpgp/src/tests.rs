//! Tests: against the system's gpg, which is what clients use, and with what strangers may send.

mod certificates;
mod gpg;
mod hostile;
mod messages;
mod mutated;
mod plain;

/// 2026-11-26, a Thursday.
const NOW: u64 = 1_795_651_200;

const DAY: u64 = 86_400;

/// Numbers that are the same in each run: splitmix64.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("it fits")).expect("it fits")
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.next().to_le_bytes()[0];
        }
    }
}

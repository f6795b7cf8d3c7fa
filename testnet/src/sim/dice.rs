//! The only source of chance in a simulated world: the same seed, the same world.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice of this seed.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Within `low..=high`.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// True `percent` times of a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// An index below `len`, which is not 0.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.draw() % len as u64).expect("below a usize")
    }

    /// One of them; there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// Keeps at most so many; a new one takes the place of another.
    pub(crate) fn remember<T>(&mut self, kept: &mut Vec<T>, most: usize, new: T) {
        if kept.len() < most {
            kept.push(new);
        } else {
            let at = self.index(most);
            kept[at] = new;
        }
    }

    /// 8 bits.
    pub(crate) fn byte(&mut self) -> u8 {
        self.draw().to_be_bytes()[0]
    }

    /// The seed of a key.
    pub(crate) fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        for part in seed.chunks_mut(8) {
            part.copy_from_slice(&self.draw().to_be_bytes());
        }
        seed
    }
}

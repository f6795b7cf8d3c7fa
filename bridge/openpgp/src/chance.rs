//! The caller's random bytes, as `pgp` takes them.

use rand_core::{CryptoRng, Error, RngCore};

/// Fills the bytes it is given with random ones. It cannot fail: a system without randomness cannot run a node.
pub(crate) struct Chance<'a>(pub(crate) &'a mut dyn FnMut(&mut [u8]));

impl RngCore for Chance<'_> {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        (self.0)(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        (self.0)(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        (self.0)(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        (self.0)(bytes);
        Ok(())
    }
}

impl CryptoRng for Chance<'_> {}

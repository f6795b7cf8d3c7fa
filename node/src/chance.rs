//! Random bytes from the system.

use anyhow::Result;
use zeroize::Zeroizing;

/// Random bytes that may be a secret.
pub(crate) fn draw<const N: usize>() -> Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut())
        .map_err(|error| anyhow::anyhow!("no randomness from the system: {error}"))?;
    Ok(bytes)
}

/// A random number.
pub(crate) fn number() -> Result<u64> {
    Ok(u64::from_be_bytes(*draw()?))
}

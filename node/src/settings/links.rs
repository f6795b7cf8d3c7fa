//! How much is carried for links of others.

use super::{
    error::{Result, bad},
    parse::bytes,
};

/// Less keeps no link alive: its pings wait behind what else it says.
const RATE_LEAST: u64 = 64 << 10;
/// More is no bound.
const RATE_MOST: u64 = 1 << 40;

/// Bytes a second.
pub(super) fn relay_rate(text: Option<&str>) -> Result<u64> {
    let Some(text) = text else { return Ok(net::limits::RELAY_BYTES_PER_SECOND) };
    let why = "write bytes a second, from 64KiB, as 500KiB or 8MiB, or 0 for no bound";
    let read = bytes(text).filter(|rate| *rate == 0 || (RATE_LEAST..=RATE_MOST).contains(rate));
    read.ok_or_else(|| bad("relay-rate", text, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_keeps_links_alive_or_is_none() {
        let read = |text: &str| relay_rate(Some(text)).ok();
        assert_eq!(
            [read("0"), read("64KiB"), read("2MiB")],
            [Some(0), Some(65_536), Some(2 << 20)]
        );
        assert_eq!(relay_rate(None).ok(), Some(8 << 20));
        for wrong in ["", "1", "65535", "-1", "fast", "2000GiB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
